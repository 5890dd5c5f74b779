//! Programs of directives: who executes which iterations, and that what comes out is what the sequential program gives.

use kiln::core::args::{Arg, IntoArg};
use kiln::core::ir::{BinaryOp, Cursor, FuncId, Module, Value};
use kiln::directives::{
    Known, OverBlocks, OverThreads, Partition, Program, Schedule, Scheduled, marks,
};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    batches_of_figure_4,
    loops_of_figure_6,
    each_iteration_has_its_thread,
    chunks_are_of_whole_groups,
    loops_of_one_turn,
    indices_of_all_integers,
    loops_that_count_down,
    bounds_of_outer_loops,
    grids_of_any_dimensions,
    imperfect_nests,
    one_thread_of_each_block,
    barriers_in_batches,
    barriers_in_nests,
    inner_counters_of_batches,
    values_are_kept_over_barriers,
    partitions_in_called_functions,
];

kiln::intrinsic! {
    /// A number, in whose place tests put the number of the thread.
    fn tag(x: u32) -> u32 {
        x
    } = row("tests.tag");
}

/// The kernel of a schedule in which each `tag(x)` is `1 + 1000 * block + thread`, both counted along x.
fn tagged(scheduled: &Scheduled) -> kiln::Result<Kernel> {
    let mut module = scheduled.module().clone();
    let kernel = module.kernel().expect("it has one");
    replace_tags(&mut module, kernel);
    // SAFETY: every access is checked.
    unsafe { Kernel::from_module(&module) }
}

fn replace_tags(module: &mut Module, kernel: FuncId) {
    let mut at = Cursor::new(module, kernel);
    while at.next_inst().is_some() {
        let row = at
            .data()
            .intrinsic()
            .map(|(id, _)| at.module().intrinsics[id]);
        if row.is_none_or(|row| row.name != "tests.tag") {
            continue;
        }
        let block = linear(&mut at, "block_idx", "grid_dim");
        let thread = linear(&mut at, "thread_idx", "block_dim");
        let (thousand, one) = (at.ins().constant(1000u32), at.ins().constant(1u32));
        let block = at.ins().binary(BinaryOp::Mul, block, thousand);
        let number = at.ins().binary(BinaryOp::Add, block, thread);
        at.replace().binary(BinaryOp::Add, number, one);
    }
}

/// The number of a block or thread, x fastest.
fn linear(at: &mut Cursor<'_>, index: &str, extent: &str) -> Value {
    let mut axes = ["z", "y", "x"].into_iter().map(|axis| {
        let [index, extent] = [index, extent].map(|name| {
            let row = kiln::stdlib::find(&format!("{name}.{axis}")).expect("it is there");
            at.ins().intrinsic(row, &[]).expect("it gives one")
        });
        (index, extent)
    });
    let axes: Vec<_> = axes.by_ref().collect();
    let mut number = axes[0].0;
    for &(index, extent) in &axes[1..] {
        number = at.ins().binary(BinaryOp::Mul, number, extent);
        number = at.ins().binary(BinaryOp::Add, number, index);
    }
    number
}

/// Launches what a schedule makes of a program, which has one array.
fn run(
    jit: &Jit,
    scheduled: &Scheduled,
    kernel: &Kernel,
    out: &mut Buffer<u32>,
    numbers: Vec<Arg<'_>>,
) -> kiln::Result<()> {
    let mut args = vec![out.into_arg()];
    args.extend(numbers);
    args.extend(scheduled.extents().iter().map(|&extent| extent.into_arg()));
    jit.launch(kernel, scheduled.grid(), scheduled.block(), &args)
}

/// Who executes each of `len` iterations.
pub(super) fn who(
    jit: &Jit,
    program: &Program,
    schedule: &Schedule,
    len: i32,
    numbers: Vec<Arg<'_>>,
) -> kiln::Result<Vec<u32>> {
    let scheduled = program.apply(schedule)?;
    let mut out = jit.zeros::<u32>(len.max(1) as usize)?;
    run(jit, &scheduled, &tagged(&scheduled)?, &mut out, numbers)?;
    let mut who = out.to_vec()?;
    who.truncate(len as usize);
    Ok(who)
}

/// A block and a thread as [`tagged`] has them.
pub(super) fn tag_of(block: u32, thread: u32) -> u32 {
    1 + 1000 * block + thread
}

#[device_fn]
fn count_up(out: &mut [u32], n: i32) {
    marks::partition(2, 1);
    for i in 0..n {
        out[i as usize] = tag(1);
    }
}

fn batches_of_figure_4(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<count_up>()?)?;
    let mut schedule = program.schedule(&[2], &[4]);
    let t = tag_of;
    // B0: 0-3 and 8-11, B1: 4-7 and 12-15; of 13 iterations, the last batch of B1 has one.
    let all = [
        t(0, 0),
        t(0, 1),
        t(0, 2),
        t(0, 3),
        t(1, 0),
        t(1, 1),
        t(1, 2),
        t(1, 3),
        t(0, 0),
        t(0, 1),
        t(0, 2),
        t(0, 3),
        t(1, 0),
        t(1, 1),
        t(1, 2),
        t(1, 3),
    ];
    assert_eq!(
        who(jit, &program, &schedule, 16, vec![16i32.into_arg()])?,
        all
    );
    assert_eq!(
        who(jit, &program, &schedule, 13, vec![13i32.into_arg()])?,
        all[..13]
    );
    schedule.loops[0].partition.over_blocks = Some(OverBlocks::Block);
    // Chunks of 7: B0 has 0-6, B1 has 7-12.
    let chunks = [
        t(0, 0),
        t(0, 1),
        t(0, 2),
        t(0, 3),
        t(0, 0),
        t(0, 1),
        t(0, 2),
        t(1, 0),
        t(1, 1),
        t(1, 2),
        t(1, 3),
        t(1, 0),
        t(1, 1),
    ];
    assert_eq!(
        who(jit, &program, &schedule, 13, vec![13i32.into_arg()])?,
        chunks
    );
    Ok(())
}

/// Loop `i` over two blocks, in it `j` over three blocks and two threads, and beside it `k` over blocks, and `p`.
#[device_fn]
fn siblings(out: &mut [u32]) {
    marks::partition(1, 0);
    for i in 0..4usize {
        marks::partition(1, 1);
        for j in 0..12usize {
            out[i * 12 + j] = tag(1);
        }
        marks::partition(2, 0);
        for k in 0..7usize {
            out[48 + i * 7 + k] = tag(1);
        }
        for p in 0..2usize {
            out[76 + i * 2 + p] = 7 + p as u32;
        }
    }
}

fn loops_of_figure_6(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<siblings>()?)?;
    let schedule = program.schedule(&[2, 3], &[2]);
    let got = who(jit, &program, &schedule, 84, vec![])?;
    for i in 0..4 {
        let row = i / 2;
        for j in 0..12 {
            let (block, thread) = (row * 3 + j / 4, j % 4 % 2);
            assert_eq!(
                got[(i * 12 + j) as usize],
                tag_of(block, thread),
                "i {i}, j {j}"
            );
        }
        for k in 0..7 {
            // Both threads of the block execute it, and the first one writes.
            assert_eq!(
                got[(48 + i * 7 + k) as usize],
                tag_of(row * 3 + k % 3, 0),
                "i {i}, k {k}"
            );
        }
        let p = (76 + i * 2) as usize;
        assert_eq!(got[p..p + 2], [7, 8]);
    }
    Ok(())
}

/// Who writes in iteration `k` of `n`: block and thread, the first of those that all execute it.
fn owner(partition: Partition, n: u32, k: u32, blocks: u32, threads: u32) -> (u32, u32) {
    owner_in(n.div_ceil(blocks), partition, k, blocks, threads)
}

/// The same, of chunks that are given.
fn owner_in(chunk: u32, partition: Partition, k: u32, blocks: u32, threads: u32) -> (u32, u32) {
    let thread = |of: u32| {
        if partition.over_threads.is_some() {
            of % threads
        } else {
            0
        }
    };
    match (partition.over_blocks, partition.over_threads.is_some()) {
        (None, _) => (0, thread(k)),
        (Some(OverBlocks::Block), _) => (k / chunk, thread(k % chunk)),
        (Some(OverBlocks::Cyclic), false) => (k % blocks, 0),
        (Some(OverBlocks::Cyclic), true) => (k / threads % blocks, thread(k)),
    }
}

const THREADS: Option<OverThreads> = Some(OverThreads::Threads);

/// All ways to distribute a loop.
fn partitions() -> Vec<Partition> {
    let blocks = [None, Some(OverBlocks::Block), Some(OverBlocks::Cyclic)];
    let both = blocks.into_iter().flat_map(|over_blocks| {
        [None, THREADS].map(|over_threads| Partition {
            over_blocks,
            over_threads,
        })
    });
    both.filter(|partition| partition.is_some()).collect()
}

#[device_fn]
fn stepped(out: &mut [u32], start: i32, end: i32, step: i32) {
    for i in (start..end).step_by(step as usize) {
        out[((i - start) / step) as usize] = tag(1);
    }
}

/// The program that writes who executes each of its iterations, of a loop from a number to another in steps.
pub(super) fn stepped_program() -> kiln::Result<Program> {
    Program::of(&DeviceFn::of::<stepped>()?)
}

fn check_owners(got: &[u32], partition: Partition, blocks: u32, threads: u32) {
    let n = got.len() as u32;
    for (k, &by) in (0..).zip(got) {
        let (block, thread) = owner(partition, n, k, blocks, threads);
        assert_eq!(
            by,
            tag_of(block, thread),
            "{partition}: {k} of {n} on {blocks} x {threads}"
        );
    }
}

fn each_iteration_has_its_thread(jit: &Jit) -> Outcome {
    let program = stepped_program()?;
    for partition in partitions() {
        for (blocks, threads) in [(1, 1), (3, 4), (5, 2)] {
            let mut schedule = program.schedule(&[blocks], &[threads]);
            schedule.loops[0].partition = partition;
            for n in [0, 1, 2, 11, 24, 25] {
                let (start, step) = (n - 7, 1 + n % 3);
                let end = start + n * step - i32::from(n > 0) * (n % step);
                let got = who(
                    jit,
                    &program,
                    &schedule,
                    n,
                    [start, end, step].map(IntoArg::into_arg).into(),
                )?;
                check_owners(&got, partition, blocks, threads);
            }
        }
    }
    Ok(())
}

/// A kernel for launches in which each thread has one iteration, or one group of them, has no loop, and ends other launches.
fn loops_of_one_turn(jit: &Jit) -> Outcome {
    let program = stepped_program()?;
    let (blocks, threads) = (3, 4);
    let ways = partitions()
        .into_iter()
        .flat_map(|partition| [(partition, 1), (partition, 2)]);
    for (partition, jam) in ways {
        let mut schedule = program.schedule(&[blocks], &[threads]);
        schedule.loops[0].partition = partition;
        schedule.loops[0].jam = (jam > 1).then_some(jam);
        let of_blocks = partition.over_blocks.map_or(1, |_| blocks);
        let of_threads = partition.over_threads.map_or(1, |_| threads);
        let most = (of_blocks * of_threads * jam) as i32;
        let numbers = [0, i128::from(most), 1].map(Known::Number);
        let known = [&[Known::Nothing][..], &numbers].concat();
        let scheduled = program.apply_for(&schedule, &known)?;
        let text = scheduled.module().to_string();
        // Iterations that fill no group have one.
        assert!(jam > 1 || !text.contains("for %"), "{text}");
        let launch = |n: i32| {
            let mut out = jit.zeros::<u32>(most as usize + 1)?;
            let args = [0, n, 1].map(IntoArg::into_arg).into();
            run(jit, &scheduled, &tagged(&scheduled)?, &mut out, args)?;
            out.to_vec()
        };
        for n in [0, 1, most - 1, most] {
            let got = launch(n)?;
            let (own, rest) = got.split_at(n as usize);
            if jam == 1 {
                check_owners(own, partition, blocks, threads);
            }
            assert!(own.iter().all(|&by| by > 0) && rest.iter().all(|&by| by == 0));
        }
        let error = launch(most + 1).expect_err("a thread has two").to_string();
        assert!(
            error.contains("is for launches in which they have no more"),
            "{error}"
        );
    }
    Ok(())
}

/// With iterations side by side, each block but one has whole groups of all its threads, or nothing.
fn chunks_are_of_whole_groups(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<count_up>()?)?;
    let sizes = [0, 1, 127, 128, 129, 500, 4001];
    let grids = [(16, 8, None), (16, 8, Some(5)), (1, 3, Some(7))];
    for (threads, jam, blocks) in grids {
        for over_threads in [None, THREADS] {
            let partition = Partition {
                over_blocks: Some(OverBlocks::Block),
                over_threads,
            };
            for n in sizes {
                let blocks = blocks.unwrap_or((n as u32).div_ceil(128).max(1));
                let mut schedule = program.schedule(&[blocks], &[threads]);
                schedule.loops[0].partition = partition;
                schedule.loops[0].jam = Some(jam);
                let got = who(jit, &program, &schedule, n, vec![n.into_arg()])?;
                let at_once = over_threads.map_or(1, |_| threads);
                let chunk = (n as u32).div_ceil(blocks).next_multiple_of(at_once * jam);
                for (k, by) in (0..).zip(got) {
                    let (block, thread) = owner_in(chunk, partition, k, blocks, threads);
                    let wanted = tag_of(block, thread);
                    assert_eq!(by, wanted, "{schedule}: {k} of {n}");
                }
            }
        }
    }
    Ok(())
}

/// A program whose loop counts in the type of `T` from a number to below another one, and writes who executes it to
/// the place that each turn counts for itself from 0 on by `place`.
fn counted_in(ty: Type, [start, end, step]: [i64; 3]) -> kiln::Result<Program> {
    let region = DeviceFn::build("counted", |k| {
        let out = k.slice_mut("out", k.ty::<u32>());
        let number = |number: i64| k.lit(Type::I64, number).cast(ty);
        let (start, step) = (number(start), number(step));
        marks::partition::build(k, marks::BLOCK, 1);
        k.for_loop(start, number(end), step, Unroll::Auto, |i| {
            let place = (i - start).cast(Type::I64) / step.cast(Type::I64);
            out.at(place).set(tag::build(k, 1u32));
        });
    })?;
    Program::of(&region)
}

fn indices_of_all_integers(jit: &Jit) -> Outcome {
    let of_types = [
        (Type::I8, [-60, 60, 5]),
        (Type::I8, [50, -50, -9]),
        (Type::I8, [100, -28, -128]),
        (Type::U8, [200, 255, 20]),
        (Type::I16, [-3, 3, 1]),
        (Type::U32, [u32::MAX.into(), 0, 1]),
        (Type::U32, [i64::from(u32::MAX) - 20, u32::MAX.into(), 6]),
        (Type::I32, [i32::MIN.into(), i64::from(i32::MIN) + 40, 7]),
        (Type::I32, [i32::MAX.into(), i64::from(i32::MAX) - 40, -7]),
        (Type::I64, [i64::MAX - 9, i64::MAX, 2]),
        (Type::I64, [i64::MIN + 9, i64::MIN, -2]),
        (Type::U64, [1 << 40, (1 << 40) + 9, 3]),
        (Type::I32, [4, 9, 0]),
    ];
    for (ty, [start, end, step]) in of_types {
        let program = counted_in(ty, [start, end, step])?;
        let (ahead, size) = match step > 0 {
            true => (i128::from(end) - i128::from(start), step),
            false => (i128::from(start) - i128::from(end), -step),
        };
        let n = match size {
            0 => 0,
            size => (ahead.max(0) + i128::from(size) - 1) / i128::from(size),
        };
        for partition in partitions() {
            let mut schedule = program.schedule(&[3], &[2]);
            schedule.loops[0].partition = partition;
            let got = who(jit, &program, &schedule, n as i32, vec![])?;
            check_owners(&got, partition, 3, 2);
        }
    }
    Ok(())
}

#[device_fn]
fn backwards(out: &mut [u32], n: i32) {
    marks::partition(1, 1);
    for i in (0..n).rev() {
        out[i as usize] = tag(1);
    }
}

fn loops_that_count_down(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<backwards>()?)?;
    for partition in partitions() {
        for n in [0, 1, 7, 16, 31] {
            let mut schedule = program.schedule(&[3], &[4]);
            schedule.loops[0].partition = partition;
            let mut got = who(jit, &program, &schedule, n, vec![n.into_arg()])?;
            got.reverse();
            check_owners(&got, partition, 3, 4);
        }
    }
    Ok(())
}

#[device_fn]
fn triangle(out: &mut [u32], n: i32) {
    marks::partition(2, 0);
    for i in 0..n {
        marks::partition(1, 1);
        for j in i..n {
            out[(i * n + j) as usize] = tag(1);
        }
    }
}

fn bounds_of_outer_loops(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<triangle>()?)?;
    let n = 9;
    let got = who(
        jit,
        &program,
        &program.schedule(&[2, 3], &[2]),
        81,
        vec![n.into_arg()],
    )?;
    for i in 0..n {
        for j in 0..n {
            let by = got[(i * n + j) as usize];
            let (count, k) = ((n - i) as u32, (j - i) as u32);
            let wanted = match j < i {
                true => 0,
                false => {
                    let chunk = count.div_ceil(3);
                    tag_of(i as u32 % 2 * 3 + k / chunk, k % chunk % 2)
                }
            };
            assert_eq!(by, wanted, "i {i}, j {j}");
        }
    }
    Ok(())
}

#[device_fn]
fn nest_of_five(out: &mut [u32]) {
    marks::partition(1, 1);
    for a in 0..3usize {
        marks::partition(2, 1);
        for b in 0..2usize {
            marks::partition(1, 1);
            for c in 0..4usize {
                marks::partition(2, 1);
                for d in 0..3usize {
                    marks::partition(1, 1);
                    for e in 0..5usize {
                        out[(((a * 2 + b) * 4 + c) * 3 + d) * 5 + e] = tag(1);
                    }
                }
            }
        }
    }
}

fn grids_of_any_dimensions(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<nest_of_five>()?)?;
    let (blocks, threads) = ([2, 2, 3, 2, 2], [2, 1, 2, 2, 3]);
    let got = who(
        jit,
        &program,
        &program.schedule(&blocks, &threads),
        360,
        vec![],
    )?;
    let extents = [3u32, 2, 4, 3, 5];
    for (number, &by) in got.iter().enumerate() {
        let mut rest = number as u32;
        let (mut block, mut thread, mut places) = (0, 0, Vec::new());
        for extent in extents.iter().rev() {
            places.push(rest % extent);
            rest /= extent;
        }
        places.reverse();
        for (dim, &k) in places.iter().enumerate() {
            let over_blocks = Some([OverBlocks::Block, OverBlocks::Cyclic][dim % 2]);
            let partition = Partition {
                over_blocks,
                over_threads: THREADS,
            };
            let (b, t) = owner(partition, extents[dim], k, blocks[dim], threads[dim]);
            block = block * blocks[dim] + b;
            thread = thread * threads[dim] + t;
        }
        assert_eq!(by, tag_of(block, thread), "{places:?}");
    }
    Ok(())
}

#[device_fn]
fn imperfect(out: &mut [u32], n: usize) {
    marks::partition(1, 0);
    for i in 0..n {
        let twice = 2 * i as u32;
        out[i * 10] = twice;
        marks::partition(0, 1);
        for j in 1..5usize {
            out[i * 10 + j] = twice + j as u32;
        }
        for j in 5..7usize {
            out[i * 10 + j] = 5;
        }
        marks::partition(0, 1);
        for j in 7..10usize {
            if j == 8 {
                continue;
            }
            out[i * 10 + j] = twice * j as u32;
        }
    }
}

/// Compares what a program under a schedule gives with what it gives sequentially.
fn beside_sequential(
    jit: &Jit,
    program: &Program,
    schedule: &Schedule,
    len: u32,
    n: u32,
) -> kiln::Result<()> {
    let scheduled = program.apply(schedule)?;
    let start: Vec<u32> = (0..len).map(|i| i * 7 % 11).collect();
    let (mut parallel, mut sequential) = (jit.upload(&start)?, jit.upload(&start)?);
    run(
        jit,
        &scheduled,
        scheduled.kernel(),
        &mut parallel,
        vec![n.into_arg()],
    )?;
    jit.launch(&program.sequential()?, 1, 1, args!(&mut sequential, n))?;
    assert_eq!(parallel.to_vec()?, sequential.to_vec()?, "{schedule}");
    Ok(())
}

fn imperfect_nests(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<imperfect>()?)?;
    for (blocks, threads) in [(1, 1), (2, 3), (7, 8)] {
        beside_sequential(
            jit,
            &program,
            &program.schedule(&[blocks], &[threads]),
            50,
            5,
        )?;
    }
    Ok(())
}

#[device_fn]
fn with_singular(out: &mut [u32], n: usize) {
    marks::partition(1, 0);
    for i in 0..n {
        if marks::singular() {
            out[i] += 100;
        }
        barrier();
        marks::partition(0, 1);
        for j in 0..6usize {
            out[n + i * 6 + j] = out[i] + j as u32;
        }
        barrier();
        if marks::singular() {
            out[i] += 1;
        }
    }
}

fn one_thread_of_each_block(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<with_singular>()?)?;
    for (blocks, threads) in [(1, 1), (2, 4), (3, 33)] {
        beside_sequential(
            jit,
            &program,
            &program.schedule(&[blocks], &[threads]),
            35,
            5,
        )?;
    }
    Ok(())
}

/// Neighbours read what the other one has written before the barrier, within batches of an even number of threads.
#[device_fn]
fn pairs(out: &mut [u32], n: usize) {
    marks::partition(1, 0);
    for row in 0..3usize {
        marks::partition(0, 1);
        for i in 0..n {
            out[row * 2 * n + i] = 3 + i as u32;
        }
        barrier();
        marks::partition(0, 1);
        for i in 0..n {
            let other = if i % 2 == 0 { i + 1 } else { i - 1 };
            if other < n {
                out[row * 2 * n + n + i] = out[row * 2 * n + other];
            }
        }
    }
}

fn barriers_in_batches(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<pairs>()?)?;
    for n in [1, 4, 13] {
        beside_sequential(jit, &program, &program.schedule(&[2], &[4]), 6 * n, n)?;
    }
    Ok(())
}

/// Barriers within loops over threads, whose last batch is not full.
#[device_fn]
fn in_nest(out: &mut [u32], n: usize) {
    marks::partition(1, 1);
    for i in 0..n {
        let mut sum = 0;
        let first = out[i];
        marks::partition(2, 1);
        for j in 0..5usize {
            for k in 0..3usize {
                out[n + (i * 5 + j) * 3 + k] += (i + j + k) as u32;
                barrier();
                out[n + (i * 5 + j) * 3 + k] += first + 1;
            }
        }
        sum += 5;
        barrier();
        out[i] = sum + i as u32;
    }
}

fn barriers_in_nests(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<in_nest>()?)?;
    for n in [1, 7, 8] {
        for (blocks, threads) in [([1, 1], [2, 2]), ([2, 3], [3, 4])] {
            // What the blocks along the second dimension write to `out[i]` is the same.
            let mut schedule = program.schedule(&blocks, &threads);
            schedule.blocks[1] = 1;
            schedule.threads[1] = 1;
            beside_sequential(jit, &program, &schedule, 16 * n, n)?;
        }
    }
    Ok(())
}

/// The inner one of two loops over threads, whose last batch is not full: the threads without an iteration use no index.
#[device_fn]
fn by_inner_counter(out: &mut [u32], n: usize) {
    marks::partition(1, 1);
    for i in 0..3usize {
        marks::partition(1, 1);
        for j in 0..n {
            barrier();
            out[i * n + j] += out[3 * n + j];
        }
    }
}

fn inner_counters_of_batches(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<by_inner_counter>()?)?;
    for n in [1, 5, 8] {
        beside_sequential(jit, &program, &program.schedule(&[2, 2], &[2, 4]), 4 * n, n)?;
    }
    Ok(())
}

#[device_fn]
fn kept_over_barriers(out: &mut [u32], n: usize) {
    marks::partition(2, 1);
    for i in 0..n {
        let (value, place) = (out[i], i * 2 % n);
        let more = value + 1;
        barrier();
        let next = if place < n { more } else { 0 };
        out[i] = next + value;
        barrier();
        out[i] += next;
    }
}

fn values_are_kept_over_barriers(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<kept_over_barriers>()?)?;
    for n in [1, 5, 24, 29] {
        beside_sequential(jit, &program, &program.schedule(&[3], &[4]), n, n)?;
    }
    Ok(())
}

#[device_fn]
fn row_of(out: &mut [u32], from: usize, n: usize) {
    marks::partition(0, 1);
    for j in 0..n {
        out[from + j] = tag(1);
    }
}

#[device_fn]
fn rows(out: &mut [u32], n: usize) {
    marks::partition(1, 0);
    for i in 0..n {
        row_of(out, i * n, n);
    }
}

fn partitions_in_called_functions(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<rows>()?)?;
    let got = who(
        jit,
        &program,
        &program.schedule(&[3], &[4]),
        49,
        vec![7u32.into_arg()],
    )?;
    for i in 0..7 {
        for j in 0..7 {
            assert_eq!(
                got[(i * 7 + j) as usize],
                tag_of(i / 3, j % 4),
                "i {i}, j {j}"
            );
        }
    }
    Ok(())
}
