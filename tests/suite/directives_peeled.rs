//! Loops whose first or last iterations are split off, beside the functions as they are written: of any number of iterations, in any
//! integer, with barriers, staged slices and sums in them.

use kiln::directives::{Known, Program, Schedule, marks};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    all_iterations_are_there,
    ends_of_rows,
    ends_of_what_is_distributed,
    iterations_with_barriers,
    iterations_with_directives,
    peeled_and_in_tiles,
    only_the_ends,
];

fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i * 7 % 23 + 1).collect()
}

/// A program whose loop of a type writes down the bits of each index, one behind the other.
fn written_down(ty: Type, [start, end, step]: [i64; 3]) -> kiln::Result<Program> {
    let region = DeviceFn::build("written_down", |k| {
        let out = k.slice_mut("out", Type::U64);
        let place = k.var("place", k.lit(Type::U32, 0));
        let [start, end, step] = [start, end, step].map(|number| k.lit(ty, number));
        k.for_loop(start, end, step, Unroll::Auto, |index| {
            out.at(place.get()).set(index.cast(Type::U64) + 1u64);
            place.set(place.get() + 1u32);
        });
    })?;
    Program::of(&region)
}

fn all_iterations_are_there(jit: &Jit) -> Outcome {
    let loops = [
        (Type::U32, [0, 0, 1]),
        (Type::U32, [3, 4, 1]),
        (Type::U32, [7, 2, 1]),
        (Type::I32, [-5, 6, 3]),
        (Type::I32, [-5, 7, 3]),
        (Type::I8, [-128, 127, 50]),
        (Type::U8, [250, 255, 2]),
        (Type::U8, [0, 255, 100]),
        (Type::I64, [i64::MAX - 7, i64::MAX, 2]),
        (Type::I32, [i32::MIN.into(), (i32::MIN + 3).into(), 1]),
    ];
    for (ty, [start, end, step]) in loops {
        let program = written_down(ty, [start, end, step])?;
        let all = (start..end).step_by(step as usize);
        let mut wanted: Vec<u64> = all.map(|index| (index as u64).wrapping_add(1)).collect();
        wanted.resize(20, 0);
        for (first, last) in [(1, 0), (0, 1), (1, 1), (2, 3), (4, 1), (9, 9)] {
            let mut schedule = program.schedule(&[1], &[1]);
            schedule.loops[0].peel_first = (first > 0).then_some(first);
            schedule.loops[0].peel_last = (last > 0).then_some(last);
            program.verify(&schedule, &[Known::Length(20)])?;
            let kernel = program.apply(&schedule)?;
            let mut out = jit.zeros::<u64>(20)?;
            let args = args!(&mut out);
            jit.launch(kernel.kernel(), kernel.grid(), kernel.block(), args)?;
            assert_eq!(out.to_vec()?, wanted, "{schedule} {start} {end} {step}");
        }
    }
    Ok(())
}

/// What is at the ends of rows is asked in iterations that are split off.
#[kiln::offload]
fn smoothed(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2), thread(32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_transform(peel_first(1), peel_last(1))]
            for j in 0..m {
                let left = if j == 0 { 0 } else { x[i * m + j - 1] };
                let right = if j + 1 == m { 0 } else { x[i * m + j + 1] };
                y[i * m + j] = left + 2 * x[i * m + j] + right;
            }
        }
    }
}

fn ends_of_rows(jit: &Jit) -> Outcome {
    for (n, m) in [(0, 5), (3, 0), (2, 1), (5, 2), (70, 3), (33, 50)] {
        let x = numbers(n * m);
        let (mut y, mut z) = (vec![0; n * m], vec![0; n * m]);
        let ((), report) = smoothed.launch_reported(jit, &x, &mut y, n, m)?;
        smoothed.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
        let text = report.launches[0].to_string();
        assert!(
            text.contains("loop 1: sequential peel_first(1) peel_last(1)"),
            "{text}"
        );
        assert_eq!(text.parse::<Schedule>()?, *report.launches[0]);
    }
    Ok(())
}

/// The first threads have the iterations that are split off.
#[kiln::offload]
fn ended(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(2), thread(2, 32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[loop_transform(peel_first(2), peel_last(3))]
        for i in 0..n {
            #[loop_partition(over_thread)]
            for j in 0..7usize {
                let at_end = i < 2 || i + 3 >= n;
                // The first and the last iterations of what is left.
                let next = if i == 2 || i + 4 == n { 100 } else { 0 };
                let own = if at_end { 5 } else { x[i - 2] + x[i + 3] };
                y[i * 7 + j] = own + next + j as u32;
            }
        }
    }
}

fn ends_of_what_is_distributed(jit: &Jit) -> Outcome {
    for n in [0, 1, 2, 4, 5, 6, 40, 101] {
        let (x, mut y) = (numbers(n), vec![0; n * 7]);
        let mut z = y.clone();
        ended.launch(jit, &x, &mut y, n)?;
        ended.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// Each turn reads what other threads wrote in the one before, and the first one what was there.
#[kiln::offload]
fn stepped(x: &mut [u32], y: &mut [u32], steps: usize) {
    #[kernel(tblock(1), thread(32))]
    {
        #[loop_transform(peel_first(1))]
        for step in 0..steps {
            #[loop_partition(over_thread)]
            for i in 0..50usize {
                y[i] = if step == 0 {
                    x[i]
                } else {
                    x[i] + x[(i + 1) % 50]
                };
            }
            barrier!();
            #[loop_partition(over_thread)]
            for i in 0..50usize {
                x[i] = y[i];
            }
            barrier!();
        }
    }
}

fn iterations_with_barriers(jit: &Jit) -> Outcome {
    for steps in [0, 1, 2, 5] {
        let (mut x, mut y) = (numbers(50), vec![0; 50]);
        let (mut u, mut v) = (x.clone(), y.clone());
        stepped.launch(jit, &mut x, &mut y, steps)?;
        stepped.sequential(&mut u, &mut v, steps);
        assert_eq!((x, y), (u, v), "{steps}");
    }
    Ok(())
}

/// What is split off has staged slices, sums, parts of one thread and elements of an iteration's own, as the rest has.
#[kiln::offload]
fn directed(x: &[u32], sums: &mut [u32], y: &mut [u32], n: usize) {
    let mut own: Vec<u32> = vec![0; 2];
    global!(alloc own);
    #[kernel(tblock(2), thread(32))]
    {
        #[loop_partition(over_tblock)]
        for part in 0..3usize {
            #[loop_transform(peel_last(1))]
            for i in 0..n {
                #[loop_partition(over_thread)]
                #[shared(copyin(x))]
                #[loop_transform(privatize(own))]
                for j in 0..40usize {
                    own[0] = x[i + j];
                    own[1] = x[i + j + 1];
                    y[(part * n + i) * 40 + j] = own[0] * own[1];
                }
                #[singular]
                {
                    sums[part * n + i] = 7;
                }
                barrier!();
                #[loop_partition(over_thread, reduction(sums))]
                for j in 0..40usize {
                    sums[part * n + i] += x[j];
                }
            }
        }
    }
}

fn iterations_with_directives(jit: &Jit) -> Outcome {
    for n in [0, 1, 2, 4] {
        let (x, mut sums, mut y) = (numbers(n + 41), vec![0; n * 3], vec![0; n * 120]);
        let (mut u, mut v) = (sums.clone(), y.clone());
        directed.launch(jit, &x, &mut sums, &mut y, n)?;
        directed.sequential(&x, &mut u, &mut v, n);
        assert_eq!((sums, y), (u, v), "{n}");
    }
    Ok(())
}

/// Tiles of what is left, in whose loops within the first iterations are split off, too.
#[kiln::offload]
fn tiled(a: &[u32], b: &[u32], c: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2, 1), thread(4, 8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread)]
            for j in 0..n {
                let mut sum = 0;
                #[loop_transform(peel_first(1), tile(4), unroll(2))]
                #[shared(copyin(a))]
                for k in 0..m {
                    #[loop_transform(peel_last(1))]
                    for l in 0..3usize {
                        sum = if k == 0 && l == 2 {
                            9
                        } else {
                            sum + a[i * m + k] * b[k * n + j]
                        };
                    }
                }
                c[i * n + j] = sum;
            }
        }
    }
}

fn peeled_and_in_tiles(jit: &Jit) -> Outcome {
    for (n, m) in [(1, 1), (5, 4), (9, 5), (7, 13)] {
        let (a, b) = (numbers(n * m), numbers(m * n));
        let (mut c, mut d) = (vec![0; n * n], vec![0; n * n]);
        tiled.launch(jit, &a, &b, &mut c, n, m)?;
        tiled.sequential(&a, &b, &mut d, n, m);
        assert_eq!(c, d, "{n} {m}");
    }
    Ok(())
}

#[device_fn]
fn handed_on(x: &mut [u32], n: usize) {
    marks::partition(0, marks::THREADS);
    marks::peel_first(1);
    for i in 0..n {
        x[i] = if i == 0 { 3 } else { x[i] + 1 };
    }
}

/// A loop that has fewer iterations than are split off leaves none.
fn only_the_ends(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<handed_on>()?)?;
    let mut schedule = program.schedule(&[1], &[32]);
    schedule.loops[0].peel_last = Some(64);
    let kernel = program.apply(&schedule)?;
    for n in [0, 1, 2, 64, 65, 66, 99] {
        let mut x = jit.upload(&[7u32; 100])?;
        let (length, number) = (Known::Length(100), Known::Number(n.into()));
        program.verify(&schedule, &[length, number])?;
        let args = args!(&mut x, n);
        jit.launch(kernel.kernel(), kernel.grid(), kernel.block(), args)?;
        let wanted = |i: u32| match i {
            0 if n > 0 => 3,
            i if i < n => 8,
            _ => 7,
        };
        assert_eq!(x.to_vec()?, (0..100).map(wanted).collect::<Vec<_>>(), "{n}");
    }
    Ok(())
}
