//! Runs the suite on code for GPUs, as LLVM's passes for NVPTX leave it, on this machine's CPU, and
//! shows with planted mistakes that it finds what those passes make of a wrong promise.
//!
//! `KILN_SCHEDULE` sets another seed for whose turn it is among the threads of a block.

mod planted;
mod suite;

use std::panic::{AssertUnwindSafe, catch_unwind};

use expect_test::{Expect, expect};
use kiln::core::hook::HookSet;
use kiln::core::runtime::{GpuOnHost, OnHostOptions, Schedule};
use kiln::prelude::*;
use planted::Planted;

/// Runs cases, and gives those that failed, with why.
fn failures(options: OnHostOptions, hooks: &HookSet, cases: &[suite::Case]) -> Vec<String> {
    let on_host = GpuOnHost::new(options);
    let mut failed = Vec::new();
    for (name, case) in cases {
        let hooks = on_host.hooks(hooks.clone());
        let jit = Jit::with(on_host.device(), hooks, JitOptions::default());
        let outcome = catch_unwind(AssertUnwindSafe(|| case(&jit).map_err(|e| e.to_string())));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failed.push(format!("{name}: {error}")),
            Err(_) => failed.push(format!("{name}: panicked")),
        }
    }
    failed
}

/// Runs the suite.
fn run(options: OnHostOptions, hooks: &HookSet) {
    let schedule = options.schedule;
    let failed = failures(options, hooks, &suite::cases());
    assert!(
        failed.is_empty(),
        "threads took turns: {schedule} (KILN_SCHEDULE)\n{}",
        failed.join("\n")
    );
}

fn seed() -> u64 {
    let Ok(text) = std::env::var("KILN_SCHEDULE") else {
        return 1;
    };
    text.parse()
        .unwrap_or_else(|_| panic!("KILN_SCHEDULE: `{text}` is no number"))
}

#[test]
fn threads_in_turn() {
    run(OnHostOptions::default(), &kiln::hooks::standard());
}

/// On the oldest architecture, which has other cells of rows, and without hooks.
#[test]
fn threads_in_any_order() {
    let options = OnHostOptions {
        sm: 75,
        schedule: Schedule::Shuffled(seed()),
    };
    run(options, &HookSet::new());
}

/// Runs the chapter about what threads see of each other with a planted promise.
fn find(planted: Planted, expected: &[&str]) {
    let hooks = kiln::hooks::standard().with(planted);
    let failed = failures(OnHostOptions::default(), &hooks, suite::visibility::CASES);
    println!("{}", failed.join("\n"));
    for case in expected {
        assert!(
            failed.iter().any(|f| f.starts_with(&format!("{case}:"))),
            "{planted:?} breaks `{case}`, which was not found; found were {failed:#?}"
        );
    }
}

#[test]
fn slices_that_are_taken_for_private_are_found() {
    find(
        Planted::NoAlias,
        &[
            "over_barriers",
            "over_warp_synchronization",
            "loops_that_others_end",
            "through_variables",
            "through_functions",
        ],
    );
}

#[test]
fn slices_that_are_taken_for_constant_are_found() {
    find(
        Planted::Invariant,
        &[
            "over_barriers",
            "over_warp_synchronization",
            "loops_that_others_end",
            "through_variables",
            "through_functions",
            "through_arrays_of_structs",
            "over_fences_and_atomics",
            "neighbours_round_by_round",
        ],
    );
}

#[test]
fn barriers_that_order_nothing_are_found() {
    find(
        Planted::Unordered,
        &[
            "over_barriers",
            "over_warp_synchronization",
            "loops_that_others_end",
            "through_variables",
            "through_functions",
            "through_arrays_of_structs",
            "neighbours_round_by_round",
        ],
    );
}

/// A launch of a kernel that does not come to its end says who waits where.
fn refused(kernel: &Kernel, threads: u32, expected: Expect) -> kiln::Result<()> {
    let options = OnHostOptions {
        schedule: Schedule::Shuffled(7),
        ..OnHostOptions::default()
    };
    let on_host = GpuOnHost::new(options);
    let hooks = on_host.hooks(kiln::hooks::standard());
    let jit = Jit::with(on_host.device(), hooks, JitOptions::default());
    let mut out = jit.zeros::<u32>(64)?;
    let result = jit.launch(kernel, 1, threads, args!(&mut out));
    let error = result.expect_err("it cannot end").to_string();
    expected.assert_eq(&error);
    Ok(())
}

#[test]
fn waiting_in_vain_is_an_error() -> kiln::Result<()> {
    let kernel = Kernel::build("parted", |k| {
        let _out = k.slice_mut("out", Type::U32);
        k.if_(k.thread_idx().x().eq(0), || k.warp_sync(0b11))
            .else_(|| k.barrier());
    })?;
    refused(
        &kernel,
        40,
        expect![[r#"
        kernel `parted`, code for sm_90 on this CPU: threads wait for each other in vain; thread [1, 0, 0] of block [0, 0, 0] at a barrier; thread [0, 0, 0] of block [0, 0, 0] at `warp.sync` with the member mask 0x00000003
          threads took turns: shuffled by seed 7"#]],
    )
}

#[test]
fn loops_without_end_are_an_error() -> kiln::Result<()> {
    let kernel = Kernel::build("endless", |k| {
        let out = k.slice_mut("out", Type::U32);
        k.while_(|| out.at(0).get().eq(0), || k.barrier());
    })?;
    refused(
        &kernel,
        1,
        expect![[r#"
        kernel `endless`, code for sm_90 on this CPU: thread [0, 0, 0] of block [0, 0, 0] is in a loop that does not end
          threads took turns: shuffled by seed 7"#]],
    )
}
