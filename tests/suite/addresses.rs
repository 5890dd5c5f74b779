//! Addresses in arrays and tuples, addresses as numbers, null pointers: `tests/kernels/addresses.rs`, with
//! the hooks that the `Jit` has. With each hook and without: `tests/hooks.rs`.

use kiln::prelude::*;

use super::{Outcome, address_kernels, chapter};

chapter![addresses_go_anywhere, addresses_are_compared];

fn addresses_go_anywhere(jit: &Jit) -> Outcome {
    for example in address_kernels::examples()? {
        address_kernels::check(jit, &example)?;
    }
    Ok(())
}

/// In global, shared and private memory: equal ones, different ones, and which comes first.
fn addresses_are_compared(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("compare_addresses", |k: &KernelBuilder| {
        let (x, out) = (k.slice("x", Type::F32), k.slice_mut("out", Type::U32));
        let tile = k.shared_array("tile", Type::U32, 64);
        let own = k.local_array(Type::U32, 64);
        let i = k.thread_idx().x();
        // One address that depends on data, one on the thread.
        let j = x.at(i).get().cast(Type::U32);
        let [a, b] = [i, j].map(|at| x.at(at).address());
        let [c, d] = [i, j].map(|at| tile.at(at).address());
        let [e, f] = [i, j].map(|at| own.at(at).address());
        let answers = [a.eq(b), a.lt(b), c.ne(d), c.ge(d), e.eq(f), e.gt(f)];
        let bits = k.var("bits", 0u32);
        for (bit, answer) in answers.into_iter().enumerate() {
            bits.set(bits.get() + answer.select(1u32 << bit, 0u32));
        }
        out.at(i).set(bits.get());
    })?;
    let others: Vec<u32> = (0..64).map(|i| (i * 37 + 5) % 64).collect();
    let x: Vec<f32> = others.iter().map(|&j| j as f32).collect();
    let x = jit.upload(&x)?;
    let mut out = jit.zeros::<u32>(64)?;
    jit.launch(&kernel, 1, 64, args!(&x, &mut out))?;
    let bits = |i: u32, j: u32| {
        let bit = |condition: bool, bit: u32| if condition { bit } else { 0 };
        let global = bit(i == j, 1) + bit(i < j, 2);
        global + bit(i != j, 4) + bit(i >= j, 8) + bit(i == j, 16) + bit(i > j, 32)
    };
    let want: Vec<u32> = (0..).zip(others).map(|(i, j)| bits(i, j)).collect();
    assert_eq!(out.to_vec()?, want);
    Ok(())
}
