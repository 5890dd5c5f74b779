//! Questions about the target: what they are on this device, and that what is for others is gone.

use kiln::core::ir::gpu_on_host::architecture;
use kiln::core::target::Target;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    answers,
    answers_in_the_builder,
    functions_for_other_targets_are_gone,
    branches_end_as_they_are_decided,
];

/// The architecture of this device's code; 0 of a CPU.
pub(super) fn architecture_of(jit: &Jit) -> u32 {
    match jit.target() {
        Target::Ptx(target) => target.sm,
        Target::Custom(target) => architecture(target).map_or(0, |target| target.sm),
        Target::Cpu(_) | Target::Interpreter => 0,
    }
}

#[kernel]
fn ask(out: &mut [u32]) {
    out[0] = target_sm();
    out[1] = if target_is_gpu() { 1 } else { 2 };
}

fn answers(jit: &Jit) -> Outcome {
    let mut out = jit.zeros::<u32>(2)?;
    jit.launch(&ask, 1, 1, args!(&mut out))?;
    let sm = architecture_of(jit);
    assert_eq!(out.to_vec()?, [sm, if sm > 0 { 1 } else { 2 }]);
    Ok(())
}

fn answers_in_the_builder(jit: &Jit) -> Outcome {
    let asks = Kernel::build("asks", |k| {
        let out = k.slice_mut("out", Type::U32);
        k.if_(k.target_sm().ge(75), || out.at(0).set(7))
            .else_(|| out.at(0).set(8));
        out.at(1).set(k.target_is_gpu().cast(Type::U32));
    })?;
    let mut out = jit.zeros::<u32>(2)?;
    jit.launch(&asks, 1, 1, args!(&mut out))?;
    let is_gpu = architecture_of(jit) > 0;
    let first = if is_gpu { 7 } else { 8 };
    assert_eq!(out.to_vec()?, [first, is_gpu.into()]);
    Ok(())
}

#[device_fn]
#[inline(never)]
fn of_new_gpus(x: u32) -> u32 {
    x + 11_111
}

#[device_fn]
#[inline(never)]
fn of_gpus(x: u32) -> u32 {
    x + 22_222
}

#[device_fn]
#[inline(never)]
fn of_cpus(x: u32) -> u32 {
    x + 33_333
}

#[kernel]
fn chosen(out: &mut [u32]) {
    let i = global_id().x;
    let sm = target_sm();
    out[i] = if target_is_gpu() && sm >= 90 {
        of_new_gpus(out[i])
    } else if sm > 0 {
        of_gpus(out[i])
    } else {
        of_cpus(out[i])
    };
}

fn functions_for_other_targets_are_gone(jit: &Jit) -> Outcome {
    let mut out = jit.upload(&[1u32, 2])?;
    let legal = jit.inspect(&chosen, args!(&mut out))?.ir().to_string();
    jit.launch(&chosen, 1, 2, args!(&mut out))?;
    let (added, of) = match architecture_of(jit) {
        90.. => (11_111, "of_new_gpus"),
        1.. => (22_222, "of_gpus"),
        0 => (33_333, "of_cpus"),
    };
    assert_eq!(out.to_vec()?, [1 + added, 2 + added]);
    let found = ["of_new_gpus", "of_gpus", "of_cpus"].map(|name| legal.contains(name));
    assert_eq!(
        found,
        ["of_new_gpus", "of_gpus", "of_cpus"].map(|name| name == of),
        "{legal}"
    );
    Ok(())
}

/// Returns, loops and what is behind them, of branches that are decided.
#[kernel]
fn leave(x: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    for round in 0..10 {
        if target_sm() == 0 && round > 2 {
            break;
        }
        if target_sm() > 0 {
            if round == x[i] {
                break;
            }
        } else if round == x[i] + 1 {
            continue;
        }
        out[i] += 1 + round;
    }
    if !target_is_gpu() {
        out[i] += 100;
        return;
    }
    out[i] += 1000;
}

fn branches_end_as_they_are_decided(jit: &Jit) -> Outcome {
    let x: Vec<u32> = (0..40).map(|i| i % 4).collect();
    let (x_there, mut out) = (jit.upload(&x)?, jit.zeros::<u32>(40)?);
    jit.launch(&leave, 1, 40, args!(&x_there, &mut out))?;
    let is_gpu = architecture_of(jit) > 0;
    let of = |x: &u32| match is_gpu {
        true => (0..*x).map(|round| 1 + round).sum::<u32>() + 1000,
        false => {
            (0..3)
                .filter(|round| *round != x + 1)
                .map(|round| 1 + round)
                .sum::<u32>()
                + 100
        }
    };
    assert_eq!(out.to_vec()?, x.iter().map(of).collect::<Vec<_>>());
    Ok(())
}
