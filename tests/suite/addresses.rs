//! Addresses in arrays and tuples, addresses as numbers, null pointers: `tests/kernels/addresses.rs`, with
//! the hooks that the `Jit` has. With each hook and without: `tests/hooks.rs`.

use kiln::prelude::*;

use super::{Outcome, address_kernels, chapter};

chapter![addresses_go_anywhere];

fn addresses_go_anywhere(jit: &Jit) -> Outcome {
    for example in address_kernels::examples()? {
        address_kernels::check(jit, &example)?;
    }
    Ok(())
}
