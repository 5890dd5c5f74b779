//! Graphs: recorded once, replayed with other buffers and values, in any stream.

use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    replays_are_of_their_arguments,
    steps_come_after_what_they_use,
    branches_meet,
    copies_and_fills,
    values_and_structs,
    dynamic_shared_memory,
    globals_in_graphs,
    kept_memory_stays,
    replays_are_ordered_among_streams,
    faults_in_graphs,
    what_was_recorded_stays,
    graphs_that_are_dropped,
    parts_of_buffers,
    launches_that_rustc_checks,
    prepared_kernels_in_graphs,
    cooperative_launches_in_graphs,
    array_expressions_in_graphs,
    reductions_in_graphs,
];

#[kernel]
fn scale(x: &[u32], by: u32, y: &mut [u32]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = x[i].wrapping_mul(by);
    }
}

#[kernel]
fn add(x: &[u32], y: &mut [u32]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = y[i].wrapping_add(x[i]);
    }
}

const N: usize = 1000;

fn numbers(first: u32) -> Vec<u32> {
    (first..).take(N).collect()
}

fn replays_are_of_their_arguments(jit: &Jit) -> Outcome {
    let (x, mut y) = (jit.upload(&numbers(0))?, jit.zeros::<u32>(N)?);
    let mut graph = jit.graph((&x, 1u32, &mut y), |g, (x, by, mut y)| {
        g.launch(&scale, grid_for(N, 128), 128, args!(&x, &by, &mut y))
    })?;
    assert_eq!(y.to_vec()?, [0; N], "recording does nothing");
    for by in [3, 3, 7] {
        graph.replay(args!(&x, by, &mut y))?;
        let expected: Vec<u32> = numbers(0).iter().map(|n| n * by).collect();
        assert_eq!(y.to_vec()?, expected);
    }
    let (other, mut shorter) = (jit.upload(&numbers(5))?, jit.zeros::<u32>(10)?);
    graph.replay(args!(&other, 2u32, &mut shorter))?;
    assert_eq!(
        shorter.to_vec()?,
        (5..15).map(|n| 2 * n).collect::<Vec<u32>>()
    );
    Ok(())
}

fn steps_come_after_what_they_use(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&[1u32; N])?;
    let mut graph = jit.graph((&mut x,), |g, (mut x,)| {
        let mut other = g.keep(jit.zeros::<u32>(N)?);
        for _ in 0..10 {
            g.launch(&scale, grid_for(N, 128), 128, args!(&x, 3u32, &mut other))?;
            g.launch(&add, grid_for(N, 128), 128, args!(&other, &mut x))?;
        }
        Ok(())
    })?;
    graph.replay(args!(&mut x))?;
    assert_eq!(x.to_vec()?, [4u32.pow(10); N]);
    Ok(())
}

fn branches_meet(jit: &Jit) -> Outcome {
    let (x, mut y) = (jit.upload(&numbers(1))?, jit.zeros::<u32>(N)?);
    let mut graph = jit.graph((&x, &mut y), |g, (x, mut y)| {
        g.fill(&mut y, 0)?;
        for by in 1..9u32 {
            let mut own = g.keep(jit.zeros::<u32>(N)?);
            g.launch(&scale, grid_for(N, 64), 64, args!(&x, by, &mut own))?;
            g.launch(&add, grid_for(N, 64), 64, args!(&own, &mut y))?;
        }
        Ok(())
    })?;
    assert_eq!(graph.dependencies()[15], [0; 0]);
    for _ in 0..3 {
        graph.replay(args!(&x, &mut y))?;
        let expected: Vec<u32> = numbers(1).iter().map(|n| n * 36).collect();
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

fn copies_and_fills(jit: &Jit) -> Outcome {
    let (x, mut y) = (jit.upload(&numbers(9))?, jit.zeros::<u32>(N + 3)?);
    let (mut bytes, mut halves) = (jit.zeros::<u8>(N)?, jit.zeros::<i16>(N)?);
    let mut zeros = jit.upload(&[1.5f64; 5])?;
    let samples = (&x, &mut y, &mut bytes, &mut halves, &mut zeros);
    let mut graph = jit.graph(
        samples,
        |g, (x, mut y, mut bytes, mut halves, mut zeros)| {
            g.fill(&mut y, 77)?;
            g.copy(&x, &mut y)?;
            g.fill(&mut bytes, 5)?;
            g.fill(&mut halves, -3)?;
            g.fill(&mut zeros, 0.0)
        },
    )?;
    graph.replay(args!(&x, &mut y, &mut bytes, &mut halves, &mut zeros))?;
    assert_eq!(y.to_vec()?[..N], numbers(9));
    assert_eq!(y.to_vec()?[N..], [77; 3]);
    assert_eq!(
        (bytes.to_vec()?, halves.to_vec()?),
        (vec![5; N], vec![-3; N])
    );
    assert_eq!(zeros.to_vec()?, [0.0; 5]);
    // Others, of another length.
    let (short, mut longer) = (jit.upload(&[1u32, 2])?, jit.zeros::<u32>(6000)?);
    graph.replay(args!(
        &short,
        &mut longer,
        &mut bytes,
        &mut halves,
        &mut zeros
    ))?;
    let longer = longer.to_vec()?;
    assert_eq!((&longer[..3], longer[5999]), (&[1, 2, 77][..], 77));
    Ok(())
}

#[derive(Clone, Copy, KernelType)]
#[repr(C)]
struct Line {
    slope: f32,
    start: f64,
    powers: [u16; 6],
}

#[kernel]
fn along(line: Line, on: bool, far: u64, out: &mut [f64]) {
    let i = global_id().x;
    if i < out.len() && on {
        out[i] = line.slope as f64 * i as f64 + line.start + line.powers[i] as f64 + far as f64;
    }
}

fn values_and_structs(jit: &Jit) -> Outcome {
    let line = |start| Line {
        slope: 0.5,
        start,
        powers: [1, 2, 4, 8, 16, 32],
    };
    let mut out = jit.zeros::<f64>(6)?;
    let samples = (line(0.0), true, 0u64, &mut out);
    let mut graph = jit.graph(samples, |g, (line, on, far, mut out)| {
        g.launch(&along, 1, 32, args!(&line, &on, &far, &mut out))
    })?;
    let far = 1 << 40;
    graph.replay(args!(line(10.0), true, far, &mut out))?;
    let expected = |start: f64, far: u64| -> Vec<f64> {
        (0..6)
            .map(|i| 0.5 * f64::from(i) + start + f64::from(1 << i) + far as f64)
            .collect()
    };
    assert_eq!(out.to_vec()?, expected(10.0, far));
    graph.replay(args!(line(20.0), false, far, &mut out))?;
    assert_eq!(out.to_vec()?, expected(10.0, far));
    graph.replay(args!(line(20.0), true, 0u64, &mut out))?;
    assert_eq!(out.to_vec()?, expected(20.0, 0));
    let mut typed = jit.graph((line(0.0), true, &mut out), |g, (slot, on, mut out)| {
        along.record(g, (1, 32), line(5.0), true, 7, &mut out)?;
        along.record(g, (1, 32), &slot, &on, 9, &mut out)
    })?;
    typed.replay(args!(line(30.0), false, &mut out))?;
    assert_eq!(out.to_vec()?, expected(5.0, 7));
    typed.replay(args!(line(30.0), true, &mut out))?;
    assert_eq!(out.to_vec()?, expected(30.0, 9));
    Ok(())
}

#[kernel]
fn reverse(x: &mut [u32]) {
    let (i, tile) = (thread_idx().x, dynamic_shared::<u32>());
    tile[i] = x[i];
    barrier();
    x[i] = tile[x.len() - 1 - i];
}

fn dynamic_shared_memory(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&numbers(0)[..256])?;
    let mut graph = jit.graph((&mut x,), |g, (mut x,)| {
        let config = LaunchConfig::new(1, 256).shared_bytes(1024);
        g.launch_with(&reverse, config, args!(&mut x))
    })?;
    graph.replay(args!(&mut x))?;
    assert_eq!(x.to_vec()?, (0..256).rev().collect::<Vec<u32>>());
    Ok(())
}

fn globals_in_graphs(jit: &Jit) -> Outcome {
    let count = Kernel::build("count", |k| {
        k.global("replays", &[0u32]).at(0).atomic_add(1);
    })?;
    let mut graph = jit.graph((), |g, ()| {
        g.launch(&count, 2, 32, args!())?;
        g.launch(&count, 1, 32, args!())
    })?;
    assert_eq!(graph.dependencies()[1], [0]);
    jit.launch(&count, 1, 1, args!())?;
    graph.replay(args!())?;
    graph.replay_on(&jit.stream()?, args!())?;
    assert_eq!(jit.global::<u32>("replays")?.to_vec()?, [1 + 2 * 96]);
    Ok(())
}

fn kept_memory_stays(jit: &Jit) -> Outcome {
    let mut out = jit.zeros::<u32>(4)?;
    let mut graph = jit.graph((&mut out,), |g, (mut out,)| {
        let one = g.keep(jit.upload(&[1u32; 4])?);
        let mut sum = g.keep(jit.zeros::<u32>(4)?);
        g.launch(&add, 1, 4, args!(&one, &mut sum))?;
        g.copy(&sum, &mut out)
    })?;
    for turn in 1..4 {
        graph.replay(args!(&mut out))?;
        assert_eq!(out.to_vec()?, [turn; 4]);
    }
    Ok(())
}

fn replays_are_ordered_among_streams(jit: &Jit) -> Outcome {
    let streams = [jit.stream()?, jit.stream()?];
    let (mut x, mut y) = (jit.upload(&[1u32; N])?, jit.zeros::<u32>(N)?);
    let mut graph = jit.graph((&x, &mut y), |g, (x, mut y)| {
        g.launch(&scale, grid_for(N, 128), 128, args!(&x, 2u32, &mut y))
    })?;
    for turn in 0..20 {
        let [one, other] = [&streams[turn % 2], &streams[(turn + 1) % 2]];
        graph.replay_on(one, args!(&x, &mut y))?;
        graph.replay_on(other, args!(&y, &mut x))?;
        add.launch(one, (grid_for(N, 128), 128), &x, &mut y)?;
        scale.launch(other, (grid_for(N, 128), 128), &y, 1, &mut x)?;
    }
    // y = 2x; x = 2y = 4x; y = 6x; x = 6x.
    assert_eq!(x.to_vec()?, [6u32.wrapping_pow(20); N]);
    Ok(())
}

#[kernel]
fn far_off(x: &mut [u32], at: usize) {
    x[at] = 1;
}

fn faults_in_graphs(jit: &Jit) -> Outcome {
    let mut x = jit.zeros::<u32>(4)?;
    let mut graph = jit.graph((&mut x, 0u32), |g, (mut x, at)| {
        g.launch(&far_off, 1, 1, args!(&mut x, &at))
    })?;
    graph.replay(args!(&mut x, 3u32))?;
    jit.synchronize()?;
    let stream = jit.stream()?;
    graph.replay_on(&stream, args!(&mut x, 9u32))?;
    let fault = stream.synchronize().expect_err("an index out of bounds");
    let fault = fault.fault().ok_or_else(|| format!("no fault: {fault}"))?;
    assert_eq!(
        (fault.kernel.as_str(), fault.index, fault.length),
        ("far_off", 9, 4)
    );
    graph.replay(args!(&mut x, 4u32))?;
    assert!(x.to_vec().is_err());
    graph.replay(args!(&mut x, 0u32))?;
    assert_eq!(x.to_vec()?, [1, 0, 0, 1]);
    Ok(())
}

fn what_was_recorded_stays(jit: &Jit) -> Outcome {
    let build =
        |value: u32| move |k: &KernelBuilder| k.slice_mut("x", k.ty::<u32>()).at(0).set(value);
    let kernel = Kernel::build("set", build(1))?;
    let mut x = jit.zeros::<u32>(1)?;
    let mut graph = jit.graph((&mut x,), |g, (mut x,)| {
        g.launch(&kernel, 1, 1, args!(&mut x))
    })?;
    kernel.redefine(build(2))?;
    graph.replay(args!(&mut x))?;
    assert_eq!(x.to_vec()?, [1]);
    jit.launch(&kernel, 1, 1, args!(&mut x))?;
    assert_eq!(x.to_vec()?, [2]);
    drop(kernel);
    graph.replay(args!(&mut x))?;
    assert_eq!(x.to_vec()?, [1]);
    Ok(())
}

fn graphs_that_are_dropped(jit: &Jit) -> Outcome {
    let (x, mut y) = (jit.upload(&numbers(1))?, jit.zeros::<u32>(N)?);
    for turn in 0..20u32 {
        let stream = jit.stream()?;
        let mut graph = jit.graph((&x, &mut y), |g, (x, mut y)| {
            let mut own = g.keep(jit.zeros::<u32>(N)?);
            g.launch(&scale, grid_for(N, 128), 128, args!(&x, turn, &mut own))?;
            g.launch(&add, grid_for(N, 128), 128, args!(&own, &mut y))
        })?;
        graph.replay_on(&stream, args!(&x, &mut y))?;
    }
    let expected: Vec<u32> = numbers(1).iter().map(|n| n * 190).collect();
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

fn parts_of_buffers(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&numbers(0)[..64])?;
    let (left, right) = x.split_at_mut(32);
    let mut graph = jit.graph((&*left, 2u32, &mut *right), |g, (x, by, mut y)| {
        g.launch(&scale, 1, 32, args!(&x, &by, &mut y))
    })?;
    graph.replay(args!(&left[..], 3u32, &mut right[16..]))?;
    let expected = (0..48).chain((0..16).map(|n| 3 * n));
    assert_eq!(x.to_vec()?, expected.collect::<Vec<u32>>());
    let (left, right) = x.split_at_mut(32);
    // One element on, it is at no multiple of 16 bytes, which the code is made for.
    let refused = graph.replay(args!(&left[1..], 3u32, right));
    assert!(refused.is_err_and(|error| error.to_string().contains("multiple of 16")));
    Ok(())
}

#[kernel]
fn blend<T: Num, const K: u32>(x: &[T], by: T, first: usize, y: &mut [T]) {
    let i = global_id().x;
    if i >= first && i < y.len() {
        let mut sum = y[i];
        for _ in 0..K {
            sum += x[i] * by;
        }
        y[i] = sum;
    }
}

fn launches_that_rustc_checks(jit: &Jit) -> Outcome {
    let (x, mut y) = (jit.upload(&[1i64, 2, 3, 4])?, jit.zeros::<i64>(4)?);
    let mut graph = jit.graph((&x, 2i64, 1u32, &mut y), |g, (x, by, first, mut y)| {
        let mut own = g.keep(jit.upload(&[10i64; 4])?);
        blend.record::<_, 2>(g, (1, 32), &x, &by, &first, &mut own)?;
        blend.record::<_, 1>(g, (1, 32), &own, 1, 0, &mut y)?;
        g.copy(&x, &mut own)
    })?;
    assert_eq!(graph.dependencies(), [vec![], vec![0], vec![1]]);
    graph.replay(args!(&x, 2i64, 1u32, &mut y))?;
    assert_eq!(y.to_vec()?, [10, 18, 22, 26]);
    // The graph's own buffer begins as `x` was.
    graph.replay(args!(&x, 0i64, 4u32, &mut y))?;
    assert_eq!(y.to_vec()?, [11, 20, 25, 30]);
    Ok(())
}

fn prepared_kernels_in_graphs(jit: &Jit) -> Outcome {
    let (x, mut y) = (jit.upload(&numbers(1))?, jit.zeros::<u32>(N)?);
    let ready = jit.compile(&scale, args!(&x, 1u32, &mut y))?;
    let mut graph = jit.graph((&x, 3u32, &mut y), |g, (x, by, mut y)| {
        let mut own = g.keep(jit.zeros::<u32>(N)?);
        ready.record(g, (grid_for(N, 128), 128), args!(&x, &by, &mut own))?;
        ready.record(g, (grid_for(N, 64), 64), args!(&own, 2u32, &mut y))
    })?;
    graph.replay(args!(&x, 3u32, &mut y))?;
    assert_eq!(
        y.to_vec()?,
        numbers(1).iter().map(|n| n * 6).collect::<Vec<u32>>()
    );
    Ok(())
}

fn cooperative_launches_in_graphs(jit: &Jit) -> Outcome {
    let (x, mut y) = (jit.upload(&[5u32; 32])?, jit.zeros::<u32>(32)?);
    let ready = jit.compile(&scale, args!(&x, 1u32, &mut y))?;
    let most = u32::try_from(ready.occupancy(32, 0)?.all_blocks())?;
    let config = |blocks| LaunchConfig::new(blocks, 32).cooperative();
    let mut graph = jit.graph((&x, 2u32, &mut y), |g, (x, by, mut y)| {
        scale.record(g, config(most), &x, &by, &mut y)?;
        add.record(g, (1, 32), &x, &mut y)
    })?;
    for by in [2, 3] {
        // Setting its arguments anew leaves it cooperative.
        graph.replay(args!(&x, by, &mut y))?;
        assert_eq!(y.to_vec()?, [5 * by + 5; 32]);
    }
    let refused = jit.graph((&x, &mut y), |g, (x, mut y)| {
        scale.record(g, config(most + 1), &x, 1, &mut y)
    });
    let refused = refused
        .expect_err("more blocks than there can be")
        .to_string();
    assert!(refused.contains("at the same time"), "{refused}");
    Ok(())
}

fn array_expressions_in_graphs(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let bias = arrays.vector(numbers(3))?;
    let square = |n: u32| n.wrapping_mul(n);
    let (x, mut y) = (jit.upload(&numbers(1))?, jit.zeros::<u32>(N)?);
    let mut graph = jit.graph((&x, 2u32, &mut y), |g, (x, a, mut y)| {
        let x = x.into_expr();
        (&x * &x * &a + &bias).record(g, &mut y)?;
        // In place, and beside it a buffer of the graph's own that one more launch reads.
        let mut own = g.keep(jit.zeros::<u32>(N)?);
        (y.into_expr() - &a).record(g, &mut y)?;
        y.into_expr().map(device!(|n| n % 7)).record(g, &mut own)?;
        add.record(g, (grid_for(own.len(), 128), 128), &own, &mut y)
    })?;
    drop(bias);
    for a in [2, 5] {
        graph.replay(args!(&x, a, &mut y))?;
        let expected = numbers(1).into_iter().map(|n| {
            let y = square(n)
                .wrapping_mul(a)
                .wrapping_add(n + 2)
                .wrapping_sub(a);
            y + y % 7
        });
        assert_eq!(y.to_vec()?, expected.collect::<Vec<u32>>());
    }
    // What was recorded is for so many elements: a replay of others would leave some out.
    let refused = graph.replay(args!(&jit.zeros::<u32>(2 * N)?, 1u32, &mut y));
    let refused = refused.expect_err("another length").to_string();
    assert!(refused.contains("2000 elements"), "{refused}");
    Ok(())
}

fn reductions_in_graphs(jit: &Jit) -> Outcome {
    const MANY: usize = 100_000;
    let x = jit.upload(&(0..MANY as u32).collect::<Vec<_>>())?;
    let (small, mut sums) = (jit.upload(&[3u32, 9, 4])?, jit.zeros::<u32>(2)?);
    let mut largest = jit.zeros::<u32>(1)?;
    let samples = (&x, &small, &mut sums, &mut largest);
    let mut graph = jit.graph(samples, |g, (x, small, mut sums, mut largest)| {
        x.into_expr().record_sum(g, &mut sums)?;
        small
            .into_expr()
            .record_reduce(g, &mut largest, device!(|a, b| a.max(b)), 0)?;
        // One element goes with everything.
        let mut scaled = g.keep(jit.zeros::<u32>(3)?);
        (small.into_expr() * &largest).record(g, &mut scaled)?;
        scaled.into_expr().record_sum(g, &mut largest)?;
        Ok(())
    })?;
    for _ in 0..2 {
        graph.replay(args!(&x, &small, &mut sums, &mut largest))?;
        let sum = (0..MANY as u32).fold(0, u32::wrapping_add);
        assert_eq!(
            (sums.to_vec()?, largest.to_vec()?),
            (vec![sum, 0], vec![144])
        );
    }
    Ok(())
}
