//! The suite on code for GPUs, as LLVM's passes for NVPTX leave it, on this machine's CPU; planted mistakes
//! show that it finds what those passes make of a wrong promise.
//!
//! `KILN_SCHEDULE` sets another seed for whose turn it is among the threads of a block.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::{Expect, expect};
use kiln::core::abi::ParamKind;
use kiln::core::compile::{NoObserver, Stage, StageObserver, compile};
use kiln::core::hook::{Hook, HookSet};
use kiln::core::ir::parse;
use kiln::core::job::{CompileJob, CompileOptions};
use kiln::core::runtime::{OnHostModule, OnHostOptions, Schedule};
use kiln::prelude::*;
use libtest_mimic::Trial;
use suite::quiet::unless_it_panics;
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
        test("gpu_on_host::code_is_made_by_the_pipeline", one_pipeline),
        test("gpu_on_host::code_is_data", code_is_data),
    ]);
    tests
}

/// Runs a case.
fn run(options: OnHostOptions, hooks: &HookSet, case: &Case) -> Outcome {
    let schedule = options.schedule;
    let jit = Jit::with(options.device(), hooks.clone(), JitOptions::default());
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

/// Has GVN run before the other passes: it carries loads over all that is not said to order memory, so a promise
/// that one pipeline makes nothing of is found all the same.
fn carrying_loads() -> Hook {
    Hook::new("carrying-loads").pass_pipeline(|_, pipeline| {
        *pipeline = pipeline.replacen("early-cse<>", "gvn<>,early-cse<>", 1);
        assert!(pipeline.contains("gvn<>"), "{pipeline}");
        Ok(())
    })
}

/// Runs the chapter about what threads see of each other with a planted promise.
fn find(planted: Planted, expected: &[&str]) -> Outcome {
    let hooks = kiln::hooks::standard()
        .with(planted.hook())
        .with(carrying_loads());
    let fails = |case: &&Case| {
        let ran = unless_it_panics(|| run(OnHostOptions::default(), &hooks, case).is_ok());
        ran != Some(true)
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
    let hooks = kiln::hooks::standard();
    let jit = Jit::with(options.device(), hooks, JitOptions::default());
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

/// Keeps the stages that pass, with what comes out.
#[derive(Default)]
struct Stages(Mutex<Vec<(Stage, String)>>);

impl StageObserver for Stages {
    fn stage(&self, _: &str, stage: Stage, _: Duration, text: &dyn Fn() -> String) {
        let mut stages = self.0.lock().expect("no panic while it is held");
        stages.push((stage, text()));
    }
}

/// Launches a kernel that needs its block's memory, twice. Gives the stages that have passed.
fn reverse() -> kiln::Result<Vec<(Stage, String)>> {
    let kernel = Kernel::build("reversed", |k| {
        let out = k.slice_mut("out", Type::U32);
        let tile = k.shared_array("tile", Type::U32, 64);
        let i = k.thread_idx().x();
        tile.at(i).set(i);
        k.barrier();
        out.at(i).set(tile.at(k.lit(Type::U32, 63) - i).get());
    });
    let stages = Arc::new(Stages::default());
    let observer: Arc<dyn StageObserver + Send + Sync> = stages.clone();
    let options = JitOptions::default().observer(observer);
    let device = OnHostOptions::default().device();
    let jit = Jit::with(device, HookSet::new(), options);
    let (kernel, mut out) = (kernel?, jit.zeros::<u32>(64)?);
    for _ in 0..2 {
        jit.launch(&kernel, 1, 64, args!(&mut out))?;
    }
    assert!(out.to_vec()?.into_iter().eq((0..64).rev()));
    let mut stages = stages.0.lock().expect("no panic while it is held");
    Ok(std::mem::take(&mut stages))
}

fn one_pipeline() -> Outcome {
    let names: Vec<&str> = reverse()?.iter().map(|(stage, _)| stage.name()).collect();
    let way = ["specialized", "legal", "llvm", "optimized-llvm", "object"];
    assert_eq!(names, way, "once, and to no PTX");
    Ok(())
}

/// Code has no address of a device that it runs on.
fn code_is_data() -> Outcome {
    let options = OnHostOptions::default();
    let module = parse(&reverse()?[0].1, &kiln::stdlib::find)?;
    let job = CompileJob::new(module, options.target(), CompileOptions::default());
    let code = compile(job, &HookSet::new(), &NoObserver)?;
    let one = OnHostModule::load(&code, options.clone())?;
    let other = OnHostModule::load(&code, options)?;
    drop(code);
    for module in [&one, &other] {
        let mut out = [0u32; 64];
        let layout = module.layout();
        let ParamKind::Slice { address, length } = layout.params[0] else {
            return Err("a slice is passed as something else".into());
        };
        let mut params = vec![0; layout.size as usize];
        let start = out.as_mut_ptr().expose_provenance() as u64;
        params[address.offset as usize..][..8].copy_from_slice(&start.to_ne_bytes());
        params[length.offset as usize..][..4].copy_from_slice(&64u32.to_ne_bytes());
        // SAFETY: the kernel accesses the slice alone, which lives until the run is over.
        let fault = unsafe { module.run([[1; 3], [64, 1, 1]], 0, &params) }?;
        assert!(fault.is_none());
        assert!(out.into_iter().eq((0..64).rev()), "{out:?}");
    }
    Ok(())
}
