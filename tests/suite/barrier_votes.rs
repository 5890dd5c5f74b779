//! Barriers at which the threads of a block vote, against counts on the host: of any number of threads, in loops, where
//! the branch is that of the whole block, after threads have ended, and with memory on both sides.

use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    votes_of_blocks_of_any_size,
    votes_decide_how_long_a_block_goes_on,
    threads_that_have_ended_have_no_vote,
    memory_is_seen_behind_a_vote,
    votes_of_the_builder,
];

const SIZES: [usize; 6] = [1, 31, 32, 33, 100, 256];

#[kernel]
fn votes(x: &[u32], out: &mut [[u32; 3]]) {
    let (i, block) = (thread_idx().x, block_idx().x);
    let value = x[block * block_dim().x + i];
    let even = barrier_count(value % 2 == 0);
    let all = barrier_and(value < 100);
    let any = barrier_or(value == 7);
    let mine = &mut out[block * block_dim().x + i];
    *mine = [even, all as u32, any as u32];
}

fn votes_of_blocks_of_any_size(jit: &Jit) -> Outcome {
    for n in SIZES {
        let host: Vec<u32> = (0..3 * n as u32)
            .map(|i| i.wrapping_mul(2_654_435_761) >> 25)
            .collect();
        let mut out = jit.zeros::<[u32; 3]>(3 * n)?;
        jit.launch(&votes, 3, n as u32, args!(&jit.upload(&host)?, &mut out))?;
        let out = out.to_vec()?;
        for (x, got) in host.chunks(n).zip(out.chunks(n)) {
            let even = x.iter().filter(|x| **x % 2 == 0).count() as u32;
            let (all, any) = (x.iter().all(|x| *x < 100), x.contains(&7));
            assert_eq!(got, vec![[even, all.into(), any.into()]; n], "{n} threads");
        }
    }
    Ok(())
}

/// Halves all numbers until none is above 1; how many rounds it took.
#[kernel]
fn halve_all(x: &mut [u32], rounds: &mut [u32]) {
    let i = thread_idx().x;
    while barrier_or(x[i] > 1) {
        x[i] /= 2;
        rounds[i] += 1;
        if barrier_and(rounds[i] > 4) {
            break;
        }
    }
}

fn votes_decide_how_long_a_block_goes_on(jit: &Jit) -> Outcome {
    for (n, largest, want) in [(1, 8, 3), (32, 9, 3), (77, 16, 4), (256, 255, 5)] {
        let host: Vec<u32> = (0..n as u32)
            .map(|i| (i * 37 + 1) % largest)
            .chain([largest])
            .skip(1)
            .collect();
        let (mut x, mut rounds) = (jit.upload(&host)?, jit.zeros::<u32>(n)?);
        jit.launch(&halve_all, 1, n as u32, args!(&mut x, &mut rounds))?;
        assert_eq!(
            rounds.to_vec()?,
            vec![want; n],
            "{n} threads up to {largest}"
        );
        let halves: Vec<u32> = host.iter().map(|x| x >> want).collect();
        assert_eq!(x.to_vec()?, halves);
    }
    Ok(())
}

#[kernel]
fn ends(out: &mut [u32], from: u32) {
    let i = thread_idx().x;
    if i % 3 == 0 || i >= from as usize {
        return;
    }
    out[i] = barrier_count(true) + 1000 * barrier_count(i % 2 == 0);
    if barrier_and(i % 3 != 0) && !barrier_or(i % 3 == 0) {
        out[i] += 1_000_000;
    }
}

fn threads_that_have_ended_have_no_vote(jit: &Jit) -> Outcome {
    for (n, from) in [(32, 32), (100, 64), (256, 33), (96, 3)] {
        let mut out = jit.zeros::<u32>(n)?;
        jit.launch(&ends, 1, n as u32, args!(&mut out, from))?;
        let there: Vec<u32> = (0..from.min(n as u32)).filter(|i| i % 3 != 0).collect();
        let even = there.iter().filter(|i| **i % 2 == 0).count() as u32;
        let vote = there.len() as u32 + 1000 * even + 1_000_000;
        let want = |i: u32| if there.contains(&i) { vote } else { 0 };
        assert_eq!(
            out.to_vec()?,
            (0..n as u32).map(want).collect::<Vec<_>>(),
            "{n}, {from}"
        );
    }
    Ok(())
}

#[kernel]
fn reversed(x: &mut [u32], count: &mut [u32]) {
    let values = shared!([u32; 256]);
    let (i, n) = (thread_idx().x, block_dim().x);
    for round in 0..3 {
        values[i] = x[i];
        count[i] += barrier_count(x[i] % 3 == round);
        x[i] = values[n - 1 - i] + 1;
        barrier_or(false);
    }
}

fn memory_is_seen_behind_a_vote(jit: &Jit) -> Outcome {
    for n in SIZES {
        let mut host: Vec<u32> = (0..n as u32).map(|i| i * i % 50).collect();
        let (mut x, mut count) = (jit.upload(&host)?, jit.zeros::<u32>(n)?);
        jit.launch(&reversed, 1, n as u32, args!(&mut x, &mut count))?;
        let mut sum = 0;
        for round in 0..3 {
            sum += host.iter().filter(|x| **x % 3 == round).count() as u32;
            host = host.iter().rev().map(|x| x + 1).collect();
        }
        assert_eq!((x.to_vec()?, count.to_vec()?), (host, vec![sum; n]));
    }
    Ok(())
}

fn votes_of_the_builder(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("votes", |k| {
        let out = k.slice_mut("out", Type::U32);
        let i = k.thread_idx().x();
        let count = k.barrier_count(i.lt(5));
        let both = k.barrier_and(i.lt(50)) & k.barrier_or(i.ge(39));
        k.if_(both, || out.at(i).set(count));
    })?;
    for (n, want) in [(40, 5), (39, 0), (51, 0)] {
        let mut out = jit.zeros::<u32>(n)?;
        jit.launch(&kernel, 1, n as u32, args!(&mut out))?;
        assert_eq!(out.to_vec()?, vec![want; n]);
    }
    Ok(())
}
