//! The litmus tests on the CPU, compiled and in the interpreter: each outcome is one that the memory
//! model allows. `tests/litmus.rs` runs them on a GPU.

#[path = "litmus/mod.rs"]
mod litmus;

use kiln::core::runtime::CpuOptions;
use kiln::prelude::*;
use litmus::{Load, SCOPES, TESTS, outcomes, weak};

fn run(jit: &Jit, load: &Load) {
    for test in TESTS {
        for scope in SCOPES {
            let seen = outcomes(jit, test, scope, load);
            let seen = seen.unwrap_or_else(|error| panic!("{}: {error}", test.name));
            let (weak, of) = weak(test, &seen);
            let all = u64::from(load.blocks * load.threads * load.launches.end);
            assert_eq!(of, all, "{}", test.name);
            assert!(
                test.allowed || weak == 0,
                "{}, {scope:?}: {weak} of {of}",
                test.name
            );
        }
    }
}

#[test]
fn compiled() {
    let load = Load {
        blocks: 64,
        threads: 256,
        launches: 0..4,
        stress: 0,
    };
    run(&Jit::on(Device::cpu()), &load);
}

#[test]
fn interpreted() {
    let device = Device::cpu_with(CpuOptions::default().interpret(true));
    let load = Load {
        blocks: 4,
        threads: 64,
        launches: 0..1,
        stress: 0,
    };
    run(&Jit::on(device), &load);
}
