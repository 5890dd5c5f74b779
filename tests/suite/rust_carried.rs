//! Loops whose variables are halved, doubled, counted down or moved on, beside what the host makes of them: every
//! element in its turn, and the first index that is out of bounds.

use std::iter::successors;

use kiln::error::{Error, RunError};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    halved,
    doubled,
    counted_down,
    moved_along,
    moved_before_use,
    two_variables,
    a_tree_in_shared_memory,
];

const LENGTH: usize = 40;

/// Ends of loops, and what they step by: within the slice, at its end, beyond it, and where 32 bits wrap around.
const NUMBERS: [u32; 9] = [0, 1, 3, 39, 40, 41, 1 << 31, u32::MAX - 2, u32::MAX];

/// Runs a kernel for all numbers, beside the indices that the host comes to with the same ones; where it would come to too
/// many, not.
fn walk<I: Iterator<Item = u32>>(
    jit: &Jit,
    launch: impl Fn(&mut Buffer<u32>, [u32; 3]) -> kiln::Result<()>,
    indices: impl Fn([u32; 3]) -> I,
) -> Outcome {
    let mut seen = [0; 2];
    for numbers in NUMBERS.iter().flat_map(|&a| NUMBERS.map(|b| [a, b])) {
        for step in [1, 2, 7, 1 << 31, u32::MAX] {
            let [start, end] = numbers;
            let numbers = [start, end, step];
            let Some((wanted, outside)) = walked(indices(numbers)) else {
                continue;
            };
            seen[usize::from(outside.is_some())] += 1;
            let mut x = jit.zeros::<u32>(LENGTH)?;
            launch(&mut x, numbers)?;
            match (outside, jit.synchronize()) {
                (None, Ok(())) => assert_eq!(x.to_vec()?, wanted, "{numbers:?}"),
                (Some(index), Err(Error::Run(RunError::Fault(fault)))) => {
                    let found = (fault.index, fault.length);
                    assert_eq!(found, (i128::from(index), LENGTH as u64), "{numbers:?}");
                }
                (outside, result) => panic!("{numbers:?}: {result:?}, expected {outside:?}"),
            }
        }
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
    Ok(())
}

/// The elements as they become, and the first index beyond them; `None` if the loop goes on for long.
fn walked(indices: impl Iterator<Item = u32>) -> Option<(Vec<u32>, Option<u32>)> {
    let mut x = vec![0u32; LENGTH];
    for (turn, index) in indices.enumerate() {
        match x.get_mut(index as usize) {
            Some(x) => *x = x.wrapping_mul(3).wrapping_add(index + 1),
            None => return Some((x, Some(index))),
        }
        if turn == 500 {
            return None;
        }
    }
    Some((x, None))
}

#[device_fn]
fn touch(x: &mut u32, index: u32) {
    *x = x.wrapping_mul(3).wrapping_add(index + 1);
}

#[kernel]
fn halve(x: &mut [u32], start: u32, _end: u32, _step: u32) {
    let mut s = start;
    while s > 0 {
        touch(&mut x[s as usize], s);
        s /= 2;
    }
}

#[kernel]
fn halve_signed(x: &mut [u32], start: u32, _end: u32, _step: u32) {
    let mut s = start as i32;
    while s > 0 {
        touch(&mut x[s as usize], s as u32);
        s >>= 1;
    }
}

/// The variable is not what ends the loop.
#[kernel]
fn halve_in_turns(x: &mut [u32], start: u32, end: u32, _step: u32) {
    let mut s = start;
    for turn in 0..end {
        if turn % 3 == 2 {
            continue;
        }
        touch(&mut x[s as usize], s);
        s /= 2;
    }
}

fn halved(jit: &Jit) -> Outcome {
    let halves = |s: u32| successors(Some(s), |s| Some(s / 2));
    walk(
        jit,
        |x, [start, end, step]| halve.launch(jit, (1, 1), x, start, end, step),
        |[start, ..]| halves(start).take_while(|s| *s != 0),
    )?;
    walk(
        jit,
        |x, [start, end, step]| halve_signed.launch(jit, (1, 1), x, start, end, step),
        |[start, ..]| halves(start).take_while(|s| (*s as i32) > 0),
    )?;
    walk(
        jit,
        |x, [start, end, step]| halve_in_turns.launch(jit, (1, 1), x, start, end, step),
        |[start, end, _]| {
            let turns = (0..end).filter(|turn| turn % 3 != 2);
            turns.zip(halves(start)).map(|(_, s)| s)
        },
    )
}

#[kernel]
fn double(x: &mut [u32], start: u32, end: u32, _step: u32) {
    let mut s = start;
    while s < end {
        touch(&mut x[s as usize], s);
        s *= 2;
    }
}

#[kernel]
fn double_signed(x: &mut [u32], start: u32, end: u32, _step: u32) {
    let mut s = start as i32;
    while s <= end as i32 {
        touch(&mut x[s as usize], s as u32);
        s <<= 1;
    }
}

fn doubled(jit: &Jit) -> Outcome {
    let doubles = |s: u32| successors(Some(s), |s| Some(s.wrapping_mul(2)));
    walk(
        jit,
        |x, [start, end, step]| double.launch(jit, (1, 1), x, start, end, step),
        |[start, end, _]| doubles(start).take_while(move |s| *s < end),
    )?;
    walk(
        jit,
        |x, [start, end, step]| double_signed.launch(jit, (1, 1), x, start, end, step),
        |[start, end, _]| doubles(start).take_while(move |s| *s as i32 <= end as i32),
    )
}

/// Counted down before what it is for.
#[kernel]
fn down(x: &mut [u32], start: u32, end: u32, _step: u32) {
    let mut i = start;
    while i > end {
        i -= 1;
        touch(&mut x[i as usize], i);
    }
}

#[kernel]
fn down_by_three(x: &mut [u32], start: u32, _end: u32, _step: u32) {
    let mut i = start;
    while i >= 3 {
        touch(&mut x[(i - 3) as usize], i - 3);
        i -= 3;
    }
}

#[kernel]
fn down_signed(x: &mut [u32], start: u32, _end: u32, _step: u32) {
    let mut i = start as i32;
    while i >= 0 {
        touch(&mut x[i as usize], i as u32);
        i -= 1;
    }
}

fn counted_down(jit: &Jit) -> Outcome {
    let below = |i: u32, by: u32| successors(Some(i), move |i| Some(i.wrapping_sub(by)));
    walk(
        jit,
        |x, [start, end, step]| down.launch(jit, (1, 1), x, start, end, step),
        |[start, end, _]| {
            let turns = below(start, 1).take_while(move |i| *i > end);
            turns.map(|i| i - 1)
        },
    )?;
    walk(
        jit,
        |x, [start, end, step]| down_by_three.launch(jit, (1, 1), x, start, end, step),
        |[start, ..]| below(start, 3).take_while(|i| *i >= 3).map(|i| i - 3),
    )?;
    walk(
        jit,
        |x, [start, end, step]| down_signed.launch(jit, (1, 1), x, start, end, step),
        |[start, ..]| below(start, 1).take_while(|i| *i as i32 >= 0),
    )
}

/// Beside the counter, and of an element in each turn.
#[kernel]
fn along(x: &mut [u32], start: u32, end: u32, step: u32) {
    let mut at = start;
    for _ in 0..end {
        touch(&mut x[at as usize], at);
        at += step;
    }
}

#[kernel]
fn back_along(x: &mut [u32], start: u32, end: u32, step: u32) {
    let mut at = start;
    for _ in 0..end {
        touch(&mut x[at as usize], at);
        at -= step;
    }
}

/// Some turns do not move it on, others do so twice.
#[kernel]
fn along_with_gaps(x: &mut [u32], start: u32, end: u32, step: u32) {
    let (mut at, mut turn) = (start, 0);
    while turn < end {
        turn += 1;
        if turn % 3 == 1 {
            continue;
        }
        touch(&mut x[at as usize], at);
        at += step;
    }
}

/// Some turns are not counted, and so are more than the counter says.
#[kernel]
fn along_for_longer(x: &mut [u32], start: u32, end: u32, step: u32) {
    let (mut at, mut turn, mut all) = (start, 0, 0);
    while turn < end {
        touch(&mut x[at as usize], at);
        at += step;
        all += 1;
        if all % 4 != 0 {
            continue;
        }
        turn += 1;
    }
}

fn moved_along(jit: &Jit) -> Outcome {
    let along_by = |at: u32, by: u32| successors(Some(at), move |at| Some(at.wrapping_add(by)));
    walk(
        jit,
        |x, [start, end, step]| along.launch(jit, (1, 1), x, start, end, step),
        |[start, end, step]| along_by(start, step).take(end as usize),
    )?;
    walk(
        jit,
        |x, [start, end, step]| back_along.launch(jit, (1, 1), x, start, end, step),
        |[start, end, step]| along_by(start, step.wrapping_neg()).take(end as usize),
    )?;
    walk(
        jit,
        |x, [start, end, step]| along_with_gaps.launch(jit, (1, 1), x, start, end, step),
        |[start, end, step]| {
            let turns = (1..=u64::from(end)).filter(|turn| turn % 3 != 1);
            turns.zip(along_by(start, step)).map(|(_, at)| at)
        },
    )?;
    walk(
        jit,
        |x, [start, end, step]| along_for_longer.launch(jit, (1, 1), x, start, end, step),
        |[start, end, step]| along_by(start, step).take(end as usize * 4),
    )
}

/// What a turn moves on is used behind that, and what it was.
#[kernel]
fn ahead(x: &mut [u32], start: u32, end: u32, step: u32) {
    let (mut i, mut at) = (0, start);
    while i < end {
        let was = at;
        at += step;
        i += 1;
        touch(&mut x[was as usize], was);
        touch(&mut x[at as usize], at);
        touch(&mut x[(i - 1) as usize], i - 1);
    }
}

fn moved_before_use(jit: &Jit) -> Outcome {
    walk(
        jit,
        |x, [start, end, step]| ahead.launch(jit, (1, 1), x, start, end, step),
        |[start, end, step]| {
            (0..end).flat_map(move |i| {
                let was = start.wrapping_add(i.wrapping_mul(step));
                [was, was.wrapping_add(step), i]
            })
        },
    )
}

#[kernel]
fn together(x: &mut [u32], start: u32, end: u32, step: u32) {
    let (mut i, mut at) = (0, start);
    while i + 2 <= end {
        touch(&mut x[(at + i) as usize], at + i);
        at += step;
        i += 2;
    }
}

fn two_variables(jit: &Jit) -> Outcome {
    walk(
        jit,
        |x, [start, end, step]| together.launch(jit, (1, 1), x, start, end, step),
        |[start, end, step]| {
            let turns = successors(Some(0u32), |i| Some(i.wrapping_add(2)));
            let turns = turns.take_while(move |i| i.wrapping_add(2) <= end);
            turns.map(move |i| (start.wrapping_add(i)).wrapping_add((i / 2).wrapping_mul(step)))
        },
    )
}

const TILE: usize = 64;

#[kernel]
fn tree(x: &[u32], start: u32, sum: &mut [u32]) {
    let tile = shared!([u32; TILE]);
    let thread = thread_idx().x as u32;
    tile[thread as usize] = x[thread as usize];
    barrier();
    let mut s = start;
    while s > 0 {
        if thread < s {
            tile[thread as usize] += tile[(thread + s) as usize];
        }
        barrier();
        s /= 2;
    }
    if thread == 0 {
        sum[0] = tile[0];
    }
}

fn a_tree_in_shared_memory(jit: &Jit) -> Outcome {
    let x: Vec<u32> = (1..=TILE as u32).collect();
    let all = jit.upload(&x)?;
    for start in [0u32, 1, 16, 32] {
        let mut sum = jit.zeros::<u32>(1)?;
        tree.launch(jit, (1, TILE), &all, start, &mut sum)?;
        let mut tile = x.clone();
        let steps = successors(Some(start as usize), |s| Some(s / 2));
        for s in steps.take_while(|s| *s > 0) {
            (0..s).for_each(|thread| tile[thread] += tile[thread + s]);
        }
        assert_eq!(sum.to_vec()?, [tile[0]], "from {start}");
    }
    for start in [33u32, 64] {
        let mut sum = jit.zeros::<u32>(1)?;
        tree.launch(jit, (1, TILE), &all, start, &mut sum)?;
        let Err(Error::Run(RunError::Fault(fault))) = jit.synchronize() else {
            panic!("the first turn reads beyond the tile");
        };
        assert_eq!(fault.length, TILE as u64, "from {start}");
    }
    Ok(())
}
