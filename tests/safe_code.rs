//! What programs in safe Rust may not do to their process, however odd: every outcome is a right
//! result or an error value.

mod bools;
mod enums;
mod expressions;
mod launches;
mod null_addresses;
mod private_memory;
mod stopping;

use kiln::core::runtime::CpuOptions;
use kiln::core::target::Barriers;
use kiln::prelude::*;

/// A `Jit` for each way in which a CPU device runs kernels.
fn jits() -> Vec<(&'static str, Jit)> {
    let with = |options: CpuOptions| Jit::on(Device::cpu_with(options));
    let plain = CpuOptions::default;
    vec![
        ("as suits the machine", with(plain())),
        ("one lane", with(plain().lanes(1))),
        ("64 lanes", with(plain().lanes(64))),
        ("coroutines", with(plain().barriers(Barriers::Coroutines))),
        ("interpreted", with(plain().interpret(true))),
    ]
}
