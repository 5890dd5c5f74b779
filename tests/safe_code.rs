//! What programs in safe Rust may not do to their process, however odd: every outcome is a right
//! result or an error value.

#[path = "safe_code/bools.rs"]
mod bools;
#[path = "safe_code/expressions.rs"]
mod expressions;
#[path = "safe_code/launches.rs"]
mod launches;
#[path = "safe_code/null_addresses.rs"]
mod null_addresses;
#[path = "safe_code/private_memory.rs"]
mod private_memory;
#[path = "safe_code/stopping.rs"]
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
        (
            "one lane",
            with(CpuOptions {
                lanes: Some(1),
                ..plain()
            }),
        ),
        (
            "64 lanes",
            with(CpuOptions {
                lanes: Some(64),
                ..plain()
            }),
        ),
        (
            "coroutines",
            with(CpuOptions {
                barriers: Some(Barriers::Coroutines),
                ..plain()
            }),
        ),
        (
            "interpreted",
            with(CpuOptions {
                interpret: true,
                ..plain()
            }),
        ),
    ]
}
