//! Clocks, which no two looks make one look, and waits; breakpoints.

use kiln::prelude::*;
use kiln::stdlib::debugger::{Debugger as _, breakpoint};
use kiln::stdlib::time::{Time as _, clock, global_timer, nanosleep};

use super::{Outcome, chapter};

chapter![
    clocks_go_on,
    waits_end,
    clocks_in_the_builder,
    breakpoints_change_nothing,
];

/// Waits until both clocks have gone on by so much: for ever, if each had been looked at once.
#[kernel]
fn wait(passed: &mut [[u64; 2]], x: &mut [f32], by: u64) {
    let i = global_id().x;
    if i < passed.len() {
        let (start, start_ns) = (clock(), global_timer());
        while clock() - start < by || global_timer() - start_ns < by {
            x[i] += 1.0;
        }
        // Never the other way round.
        let (before, after) = (clock(), clock());
        let (before_ns, after_ns) = (global_timer(), global_timer());
        assert!(
            before <= after && before_ns <= after_ns,
            "a clock goes back"
        );
        passed[i] = [after - start, after_ns - start_ns];
    }
}

fn clocks_go_on(jit: &Jit) -> Outcome {
    // Not a multiple of a warp.
    let (mut passed, mut x) = (jit.zeros::<[u64; 2]>(70)?, jit.zeros::<f32>(70)?);
    wait.launch(jit, (3, 32), &mut passed, &mut x, 2000)?;
    for [cycles, nanoseconds] in passed.to_vec()? {
        assert!(
            cycles >= 2000 && nanoseconds >= 2000,
            "{cycles}, {nanoseconds}"
        );
    }
    Ok(())
}

#[kernel]
fn sleep(out: &mut [u32], duration: u32) {
    let i = global_id().x;
    if i < out.len() {
        let mut naps = 0;
        let start = global_timer();
        while naps < 10 || global_timer() - start < 5000 {
            nanosleep(duration);
            naps += 1;
        }
        out[i] = naps;
    }
}

fn waits_end(jit: &Jit) -> Outcome {
    for duration in [0, 200, 1_000_000] {
        let mut out = jit.zeros::<u32>(40)?;
        sleep.launch(jit, (1, 64), &mut out, duration)?;
        assert!(out.to_vec()?.iter().all(|&naps| naps >= 10));
    }
    let start = global_timer();
    nanosleep(20_000);
    assert!(global_timer() - start >= 20_000 && clock() >= start);
    Ok(())
}

fn clocks_in_the_builder(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("ticks", |k| {
        let out = k.slice_mut("out", k.ty::<u64>());
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            let (start, start_ns) = (k.clock(), k.global_timer());
            k.nanosleep(50u32);
            out.at(i)
                .set((k.clock() - start) | (k.global_timer() - start_ns));
        });
    })?;
    let mut out = jit.upload(&[u64::MAX; 33])?;
    jit.launch(&kernel, 2, 32, args!(&mut out))?;
    // An hour of either: a difference of clocks, not one of them.
    let hour = 3600 * 10_000_000_000;
    assert!(out.to_vec()?.iter().all(|&passed| passed < hour));
    Ok(())
}

/// On a GPU no thread comes to it: what a launch does there without a debugger is the driver's affair.
#[kernel]
fn stops(x: &mut [i32]) {
    let i = global_id().x;
    if i < x.len() {
        if x[i] < 0 || !target_is_gpu() {
            breakpoint();
        }
        x[i] *= 2;
    }
}

fn breakpoints_change_nothing(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&(0..70).collect::<Vec<i32>>())?;
    stops.launch(jit, (3, 32), &mut x)?;
    assert_eq!(x.to_vec()?, (0..70).map(|n| 2 * n).collect::<Vec<_>>());
    let kernel = Kernel::build("stops", |k| {
        let x = k.slice_mut("x", Type::I32);
        k.if_(x.at(0u32).get().lt(0), || k.breakpoint());
        x.at(0u32).set(7);
    })?;
    jit.launch(&kernel, 1, 1, args!(&mut x))?;
    assert_eq!(x.to_vec()?[0], 7);
    Ok(())
}
