//! Code for GPUs, as LLVM's passes for NVPTX leave it, against the interpreter: random kernels, bit by
//! bit, for several architectures, with and without each standard hook, and threads that take turns in
//! any order. No GPU is needed.
//!
//! The seeds are always the same; `KILN_FUZZ_SEED` sets another first one, `KILN_FUZZ_COUNT` how many
//! kernels there are. `cargo xtask fuzz --on-host` takes fresh seeds.

#[path = "../../tests/planted/mod.rs"]
mod planted;

use std::time::Duration;

use kiln_jit_core::hook::HookSet;
use kiln_random::{Campaign, OnHostRunner};
use planted::Planted;

/// How many kernels are compared.
const KERNELS: u64 = 5000;

/// How many kernels find a planted promise.
const PLANTED: u64 = 2000;

/// How long a failing case is made smaller.
const REDUCTION: Duration = Duration::from_secs(60);

fn setting(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else {
        return default;
    };
    text.parse()
        .unwrap_or_else(|_| panic!("{name}: `{text}` is no number"))
}

#[test]
fn random_kernels_give_the_same_as_code_for_gpus() {
    let (seed, count) = (
        setting("KILN_FUZZ_SEED", 1 << 32),
        setting("KILN_FUZZ_COUNT", KERNELS),
    );
    println!("{count} kernels; KILN_FUZZ_SEED={seed} runs them again");
    let campaign = Campaign {
        failures: 3,
        coverage: false,
        all_widths: u64::MAX,
        on_host: Some(OnHostRunner::default()),
        ..Campaign::new(seed, count)
    };
    let report = campaign.run();
    println!("{report}");
    for failure in &report.failures {
        let small = campaign.reduced(failure, REDUCTION);
        println!("{failure}\n{}", small.to_text());
    }
    assert!(
        report.failures.is_empty(),
        "{report}; KILN_FUZZ_SEED={} KILN_FUZZ_COUNT=1 runs the first of them again",
        report.failures[0].seed
    );
    assert_eq!(report.kernels, count);
}

/// The seeds are fixed: wrong code may do anything.
fn find(planted: Planted) {
    let hooks = HookSet::new().with(planted);
    let campaign = Campaign {
        failures: 1,
        coverage: false,
        all_widths: u64::MAX,
        on_host: Some(OnHostRunner { hooks }),
        ..Campaign::new(0, PLANTED)
    };
    let report = campaign.run();
    println!("{planted:?}: {report}");
    assert!(!report.failures.is_empty(), "{planted:?} is not found");
}

#[test]
fn slices_that_no_other_thread_writes_are_found() {
    find(Planted::NoAlias);
}

#[test]
fn barriers_that_order_nothing_are_found() {
    find(Planted::Unordered);
}
