//! Scenarios of launches that are no single ones: graphs, the block that is best, blocks that are all there at once,
//! regions of sequential functions.

use kiln::core::launch::LaunchConfig;
use kiln::prelude::*;

use super::World;
use super::list::{Outcome, add, copies, writes};

pub(super) fn records_graphs(world: &World<'_>) -> Outcome {
    let (write, copy) = (writes()?, copies()?);
    let (mut x, mut y) = (world.jit.upload(&[5u32; 4])?, world.jit.zeros::<u32>(4)?);
    let mut z = world.jit.upload(&[6u32; 4])?;
    let mut graph = world.jit.graph((&mut x, &mut y), |g, (mut x, mut y)| {
        g.launch(&write, 1, 1, args!(&mut x))?;
        g.launch(&copy, 1, 1, args!(&x, &mut y))?;
        g.copy(&x, &mut y)?;
        g.fill(&mut x, 3)
    })?;
    graph.replay(args!(&mut x, &mut y))?;
    assert_eq!((x.to_vec()?, y.to_vec()?), (vec![3; 4], vec![5; 4]));
    // With other arguments, and with those that it has now.
    for expected in [6, 3] {
        graph.replay(args!(&mut z, &mut y))?;
        assert_eq!((z.to_vec()?, y.to_vec()?), (vec![3; 4], vec![expected; 4]));
    }
    drop(graph);
    world.jit.synchronize()
}

pub(super) fn replays_graphs_in_streams(world: &World<'_>) -> Outcome {
    let streams = [world.jit.stream()?, world.jit.stream()?];
    let write = writes()?;
    let mut x = world.jit.upload(&[5u32; 4])?;
    let mut graph = world.jit.graph((&mut x, 7u32), |g, (mut x, n)| {
        g.launch(&write, 1, 1, args!(&mut x))?;
        add.record(g, (1, 4), &mut x, &n)
    })?;
    for (n, stream) in streams.iter().enumerate() {
        graph.replay_on(stream, args!(&mut x, n as u32))?;
        stream.launch(&write, 1, 1, args!(&mut x))?;
    }
    drop(graph);
    assert_eq!(x.to_vec()?, [5; 4]);
    streams[0].synchronize()
}

pub(super) fn keeps_buffers_in_graphs(world: &World<'_>) -> Outcome {
    let copy = copies()?;
    let mut y = world.jit.zeros::<u32>(4)?;
    let mut graph = world.jit.graph((&mut y,), |g, (mut y,)| {
        let mut own = g.keep(world.jit.upload(&[9u32; 4])?);
        g.launch(&copy, 1, 1, args!(&own, &mut y))?;
        g.copy(&own, &mut y)?;
        g.fill(&mut own, 8)
    })?;
    for expected in [9, 8] {
        graph.replay(args!(&mut y))?;
        assert_eq!(y.to_vec()?, [expected; 4]);
    }
    // It runs while it is dropped.
    graph.replay(args!(&mut y))?;
    drop(graph);
    y.to_vec().map(drop)
}

pub(super) fn takes_the_best_block(world: &World<'_>) -> Outcome {
    let mut x = world.jit.upload(&[2u32; 1000])?;
    for n in 0..2u32 {
        world.jit.launch_auto(&add, 1000, args!(&mut x, n))?;
    }
    let ready = world.jit.compile(&add, args!(&mut x, 1u32))?;
    assert!(ready.best_block()? > 0 && ready.occupancy(128, 0)?.all_blocks() > 0);
    assert_eq!(x.to_vec()?, [2; 1000]);
    Ok(())
}

pub(super) fn launches_together(world: &World<'_>) -> Outcome {
    let mut x = world.jit.upload(&[2u32; 32])?;
    let config = LaunchConfig::new(4, 32).cooperative();
    world.jit.launch_with(&add, config, args!(&mut x, 1u32))?;
    let stream = world.jit.stream()?;
    stream.launch_with(&add, config, args!(&mut x, 1u32))?;
    let many = LaunchConfig::new(1 << 20, 32).cooperative();
    match world.jit.launch_with(&add, many, args!(&mut x, 1u32)) {
        Err(error) if error.to_string().contains("at the same time") => {}
        Err(error) => return Err(error),
        Ok(()) => panic!("the device holds fewer"),
    }
    assert_eq!(x.to_vec()?, [2; 32]);
    Ok(())
}

/// `y[i] += x[i]`, by blocks of 2 and threads of 8.
#[kiln::offload]
fn accumulate(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            y[i] += x[i];
        }
    }
}

pub(super) fn computes_by_directives(world: &World<'_>) -> Outcome {
    let (x, mut y) = (vec![1u32; 20], vec![2u32; 20]);
    accumulate.launch(world.jit, &x, &mut y, 20)?;
    // Nothing runs, so that what comes back is what went there.
    assert_eq!(y, [2; 20]);
    Ok(())
}
