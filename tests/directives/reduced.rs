//! Elements that cannot be reduced, and the code of those that are.

use expect_test::expect;
use kiln::directives::{Program, Schedule, marks};
use kiln::prelude::*;

use super::{KNOWN, refused};

refused! {
    a_reduced_slice_that_is_read, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] += 1;
            y[i] = x[0];
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be reduced: it is used here otherwise than by `x[i] += v`, or `&=`, `|=`, `^=`, or `x[i] = x[i].min(v)` or `max` of integers, with one of them for all of the loop: write it so, or take it out of the clause"];

    two_operations_of_one_reduction, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] += y[i];
            x[0] |= y[i];
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be reduced: it is used here otherwise than by `x[i] += v`, or `&=`, `|=`, `^=`, or `x[i] = x[i].min(v)` or `max` of integers, with one of them for all of the loop: write it so, or take it out of the clause"];

    a_difference_that_is_reduced, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] = y[i] - x[i % 5];
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be reduced: it is used here otherwise than by `x[i] += v`, or `&=`, `|=`, `^=`, or `x[i] = x[i].min(v)` or `max` of integers, with one of them for all of the loop: write it so, or take it out of the clause"];

    another_element_that_is_reduced, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] = y[i] + x[i % 4];
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be reduced: it is used here otherwise than by `x[i] += v`, or `&=`, `|=`, `^=`, or `x[i] = x[i].min(v)` or `max` of integers, with one of them for all of the loop: write it so, or take it out of the clause"];

    nothing_that_is_reduced, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            y[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be reduced: nothing in the loop combines an element of it with a value: take it out of the clause"];

    sums_that_are_used_in_another_loop, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] += y[i];
        }
        marks::partition(1, 1);
        for i in 0..n {
            y[i] = x[i % 5];
        }
    }, expect!["the atomic operation at tests/directives.rs:29:1 and the read at tests/directives.rs:29:1 use one element of `x`, in one iteration, and under `tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread reduction(0); loop 1: over_tblock(BLOCK) over_thread` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    two_loops_that_reduce_differently, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] += y[i];
        }
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] |= y[i];
        }
    }, expect!["the atomic operation at tests/directives.rs:29:1 and the atomic operation at tests/directives.rs:29:1 use one element of `x`, in one iteration, and under `tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread reduction(0); loop 1: over_tblock(BLOCK) over_thread reduction(0)` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    staged_whole_and_not_read, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::whole(x.len() as u32);
        for i in 0..n {
            y[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be staged in shared memory: nothing in the loop reads an element of it: take it out of the clause"];
}

/// Reductions have a text, which names parameters that there are.
#[test]
fn reductions_have_texts() -> kiln::Result<()> {
    #[device_fn]
    fn count(x: &mut [u32], y: &mut [u32]) {
        for i in 0..100usize {
            x[y[i] as usize % 5] += 1;
        }
    }
    let program = Program::of(&DeviceFn::of::<count>()?)?;
    let text = "tblock(2) thread(8) loop 0: over_tblock(BLOCK) over_thread shared(1) whole(1) reduction(0)";
    let schedule: Schedule = text.parse()?;
    assert_eq!(schedule.to_string(), text);
    program.verify(&schedule, &KNOWN)?;
    let other = text.replace("reduction(0)", "reduction(7)").parse()?;
    let refused = program.verify(&other, &KNOWN).expect_err("there is none");
    expect![
        "tests/directives/reduced.rs:91:9: `7` cannot be reduced: the region has no such parameter"
    ]
    .assert_eq(&refused.to_string());
    let wrong: Result<Schedule, _> = text.replace("whole", "half").parse();
    assert!(wrong.is_err());
    Ok(())
}

/// What the lanes of a warp combine before one of them changes an element, and threads that have no whole warps: by region the atomic
/// operations, shuffles, reductions and votes of warps, and how many of the atomic ones are in a loop.
#[test]
fn elements_are_changed_behind_loops() -> kiln::Result<()> {
    #[device_fn]
    fn rows(x: &[u32], y: &mut [u32], n: usize) {
        marks::partition(1, marks::WARPS);
        for i in 0..n {
            marks::partition(0, marks::LANES);
            marks::reduction(y.len() as u32);
            for j in 0..n {
                y[i] += x[i * n + j];
            }
        }
    }
    #[device_fn]
    fn all(x: &[f64], y: &mut [f64], n: usize) {
        marks::partition(1, 1);
        marks::reduction(y.len() as u32);
        for i in 0..n {
            y[3] += x[i];
        }
    }
    #[device_fn]
    fn counts(x: &[u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::reduction(y.len() as u32);
        for i in 0..n {
            y[x[i] as usize] += 1;
        }
    }
    #[device_fn]
    fn side_by_side(x: &[u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::jam(2);
        marks::reduction(y.len() as u32);
        for i in 0..n {
            y[3] += x[i];
        }
    }
    let mut found = Vec::new();
    for (region, threads) in [
        (DeviceFn::of::<rows>()?, 64),
        (DeviceFn::of::<all>()?, 64),
        (DeviceFn::of::<all>()?, 16),
        (DeviceFn::of::<counts>()?, 64),
        (DeviceFn::of::<side_by_side>()?, 64),
    ] {
        let program = Program::of(&region)?;
        let scheduled = program.apply(&program.schedule(&[2], &[threads]))?;
        let text = scheduled.module().to_string();
        let calls = |what: &str| {
            let lines = text.lines();
            lines
                .filter(|line| line.contains(what) && line.contains('='))
                .count()
        };
        found.push(format!(
            "{} {threads}: {} atomic, {} shuffle_xor, {} reduce_add, {} any",
            program.name(),
            calls("atomic"),
            calls("warp.shuffle_xor"),
            calls("warp.reduce_add"),
            calls("warp.any"),
        ));
    }
    expect![[r#"
        rows 64: 1 atomic, 0 shuffle_xor, 1 reduce_add, 1 any
        all 64: 1 atomic, 5 shuffle_xor, 0 reduce_add, 1 any
        all 16: 1 atomic, 0 shuffle_xor, 0 reduce_add, 0 any
        counts 64: 1 atomic, 0 shuffle_xor, 0 reduce_add, 0 any
        side_by_side 64: 3 atomic, 0 shuffle_xor, 0 reduce_add, 0 any"#]]
    .assert_eq(&found.join("\n"));
    Ok(())
}

/// A kernel whose lanes combine values is for blocks of whole warps, as it was made for.
#[test]
fn other_blocks_are_refused() -> kiln::Result<()> {
    #[device_fn]
    fn all(x: &[u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::reduction(y.len() as u32);
        for i in 0..n {
            y[0] += x[i];
        }
    }
    let program = Program::of(&DeviceFn::of::<all>()?)?;
    let scheduled = program.apply(&program.schedule(&[2], &[64]))?;
    let jit = Jit::on(Device::cpu());
    let (x, mut y) = (jit.upload(&[1u32; 100])?, jit.zeros::<u32>(1)?);
    let kernel = scheduled.kernel();
    jit.launch(
        kernel,
        scheduled.grid(),
        scheduled.block(),
        args!(&x, &mut y, 100u32),
    )?;
    assert_eq!(y.to_vec()?, [100]);
    let other = jit.launch(kernel, 2, 48, args!(&x, &mut y, 100u32));
    let error = other.and_then(|()| jit.synchronize());
    let error = error.expect_err("it is another block").to_string();
    assert!(
        error.contains("is for the grid that it was made for"),
        "{error}"
    );
    Ok(())
}
