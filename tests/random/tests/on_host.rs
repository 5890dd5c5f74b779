//! Code for GPUs, as LLVM's passes for NVPTX leave it, against the interpreter: random kernels, bit by
//! bit, for several architectures, with and without each standard hook, and threads that take turns in
//! any order. No GPU is needed.
//!
//! The seeds are always the same; `KILN_FUZZ_SEED` sets another first one, `KILN_FUZZ_COUNT` how many
//! kernels there are. `cargo xtask fuzz --on-host` takes fresh seeds.
//!
//! A program of its own: promises to LLVM that are planted here make wrong code, which this process runs.

mod campaign;
#[path = "../../planted/mod.rs"]
mod planted;

use kiln_jit_core::hook::HookSet;
use kiln_random::{Budget, Campaign, OnHostRunner, Talk};
use planted::Planted;

/// How many kernels are compared.
const KERNELS: u64 = 1600;

/// How many kernels find a planted promise.
const PLANTED: u64 = 2000;

#[test]
fn random_kernels_give_the_same_as_code_for_gpus() {
    campaign::find_nothing(Campaign {
        coverage: false,
        all_widths: u64::MAX,
        on_host: Some(OnHostRunner::default()),
        ..Campaign::new(1 << 32, KERNELS)
    });
}

#[test]
fn kernels_that_swap_two_words_give_the_same_as_code_for_gpus() {
    campaign::find_nothing(Campaign {
        budget: Budget {
            pairs: 100,
            ..Budget::default()
        },
        coverage: false,
        all_widths: u64::MAX,
        on_host: Some(OnHostRunner::default()),
        ..Campaign::new(1 << 33, 500)
    });
}

/// The seeds are fixed: wrong code may do anything.
fn find_with(planted: Planted, budget: Budget) {
    let hooks = HookSet::new().with(planted.hook());
    let campaign = Campaign {
        budget,
        failures: 1,
        coverage: false,
        all_widths: u64::MAX,
        on_host: Some(OnHostRunner { hooks }),
        ..Campaign::new(0, PLANTED)
    };
    let report = campaign.run();
    println!("{planted:?}: {report}");
    assert!(!report.failures.is_empty(), "{planted:?} is not found");
    println!("{}", report.failures[0]);
}

fn find(planted: Planted) {
    find_with(planted, Budget::default());
}

/// Kernels whose threads talk in one way only, besides shared memory.
fn only(talk: Talk) -> Budget {
    Budget {
        talk,
        warps: if talk.lanes > 0 { 100 } else { 0 },
        ..Budget::default()
    }
}

#[test]
fn slices_that_no_other_thread_writes_are_found() {
    find(Planted::NoAlias);
}

#[test]
fn barriers_that_order_nothing_are_found() {
    find(Planted::Unordered);
}

const LANES: Talk = Talk {
    lanes: 100,
    ..Talk::NONE
};

#[test]
fn slices_that_no_other_lane_writes_are_found() {
    find_with(Planted::NoAlias, only(LANES));
}

#[test]
fn warp_synchronization_that_orders_nothing_is_found() {
    find_with(Planted::UnorderedWarps, only(LANES));
}

#[test]
fn flags_before_their_data_are_found() {
    let mail = Talk {
        mail: 100,
        ..Talk::NONE
    };
    find_with(Planted::LateStores, only(mail));
}

#[test]
fn tickets_before_their_parts_are_found() {
    let arrivals = Talk {
        arrivals: 100,
        ..Talk::NONE
    };
    find_with(Planted::LateStores, only(arrivals));
}
