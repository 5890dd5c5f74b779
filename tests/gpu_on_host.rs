//! The suite on code for GPUs, as LLVM's passes for NVPTX leave it, on this machine's CPU; planted mistakes
//! show that it finds what those passes make of a wrong promise.
//!
//! `KILN_SCHEDULE` sets another seed for whose turn it is among the threads of a block.

use std::panic::{AssertUnwindSafe, catch_unwind};

use expect_test::{Expect, expect};
use kiln::core::hook::HookSet;
use kiln::core::runtime::{GpuOnHost, OnHostOptions, Schedule};
use kiln::prelude::*;
use libtest_mimic::Trial;
use suite::{Case, Outcome, visibility};

use crate::planted::Planted;
use crate::{each_case, seed, test};

/// The tests.
pub fn tests() -> Vec<Trial> {
    // On the oldest architecture, which has other cells of rows, and without hooks.
    let shuffled = OnHostOptions {
        sm: 75,
        schedule: Schedule::Shuffled(seed("KILN_SCHEDULE")),
    };
    let in_turn = OnHostOptions::default();
    let run_in_turn = move |case: &Case| run(in_turn.clone(), &kiln::hooks::standard(), case);
    let run_shuffled = move |case: &Case| run(shuffled.clone(), &HookSet::new(), case);
    let mut tests = each_case("gpu_on_host", run_in_turn);
    tests.extend(each_case("gpu_on_host_in_any_order", run_shuffled));
    tests.extend(PROMISES.iter().map(|(name, planted, cases)| {
        test(format!("gpu_on_host_with::{name}"), || {
            find(*planted, cases)
        })
    }));
    tests.extend([
        test("gpu_on_host::waiting_in_vain_is_an_error", waiting_in_vain),
        test(
            "gpu_on_host::loops_without_end_are_an_error",
            loops_without_end,
        ),
    ]);
    tests
}

/// Runs a case.
fn run(options: OnHostOptions, hooks: &HookSet, case: &Case) -> Outcome {
    let schedule = options.schedule;
    let on_host = GpuOnHost::new(options);
    let hooks = on_host.hooks(hooks.clone());
    let jit = Jit::with(on_host.device(), hooks, JitOptions::default());
    let outcome = (case.run)(&jit);
    outcome
        .map_err(|error| format!("threads took turns: {schedule} (KILN_SCHEDULE)\n{error}").into())
}

/// Planted promises, and the cases that find each.
const PROMISES: [(&str, Planted, &[&str]); 3] = [
    (
        "slices_that_are_taken_for_private_are_found",
        Planted::NoAlias,
        &[
            "over_barriers",
            "over_warp_synchronization",
            "loops_that_others_end",
            "through_variables",
            "through_functions",
        ],
    ),
    (
        "slices_that_are_taken_for_constant_are_found",
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
    ),
    (
        "barriers_that_order_nothing_are_found",
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
    ),
];

/// Runs the chapter about what threads see of each other with a planted promise.
fn find(planted: Planted, expected: &[&str]) -> Outcome {
    let hooks = kiln::hooks::standard().with(planted);
    let fails = |case: &&Case| {
        let ran = AssertUnwindSafe(|| run(OnHostOptions::default(), &hooks, case).is_ok());
        !catch_unwind(ran).unwrap_or(false)
    };
    let failed: Vec<&str> = visibility::CASES
        .iter()
        .filter(fails)
        .map(Case::name)
        .collect();
    match expected.iter().find(|case| !failed.contains(case)) {
        None => Ok(()),
        Some(case) => {
            let lost =
                format!("{planted:?} breaks `{case}`, which was not found; found were {failed:?}");
            Err(lost.into())
        }
    }
}

/// A launch of a kernel that does not come to its end says who waits where.
fn refused(kernel: &Kernel, threads: u32, expected: Expect) -> Outcome {
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

fn waiting_in_vain() -> Outcome {
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

fn loops_without_end() -> Outcome {
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
