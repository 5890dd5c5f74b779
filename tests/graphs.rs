//! Graphs: what is refused, when they are recorded and when they are replayed, and what each error says.

use expect_test::{Expect, expect};
use kiln::core::args::{Slot, SlotMut};
use kiln::core::hook::Hook;
use kiln::prelude::*;

#[kernel]
fn scale(x: &[f32], by: f32, y: &mut [f32]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = x[i] * by;
    }
}

fn jit() -> Jit {
    Jit::on(Device::cpu())
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: kiln::Result<T>, expected: Expect) {
    let text = result.expect_err("it is refused").to_string();
    // Each device of the process has a number of its own.
    const OF_THE_CPU: &str = "CPU device ";
    let mut parts = text.split(OF_THE_CPU);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += OF_THE_CPU;
        text += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    expected.assert_eq(&text);
}

/// Records one launch, as the closure says.
fn recorded(
    jit: &Jit,
    record: impl FnOnce(&mut kiln::Recording, Slot<f32>, SlotMut<f32>) -> kiln::Result<()>,
) -> kiln::Result<kiln::Graph> {
    let (x, mut y) = (jit.zeros::<f32>(4)?, jit.zeros::<f32>(4)?);
    jit.graph((&x, &mut y), |g, (x, y)| record(g, x, y))
}

#[test]
fn what_cannot_be_recorded() -> kiln::Result<()> {
    let jit = jit();
    refused(
        recorded(&jit, |_, _, _| Ok(())),
        expect![
            "the graph is empty; record a launch, a copy or a fill in the closure, or leave the graph out"
        ],
    );
    refused(
        recorded(&jit, |g, _, mut y| g.fill(&mut y, 0.0)),
        expect![
            "nothing that the graph has recorded uses sample 1, so replays would be given an argument for nothing; pass its slot to a launch, or leave the sample out"
        ],
    );
    let other = jit.zeros::<f32>(4)?;
    refused(
        recorded(&jit, |g, _, mut y| {
            g.launch(&scale, 1, 4, args!(&other, 2.0f32, &mut y))
        }),
        expect![
            "kernel `scale`: argument 1 (`x`) is a buffer that the graph does not hold, and could be dropped before a replay; make it a sample of `Jit::graph` and pass its slot, or give it to the graph with `keep`"
        ],
    );
    let mut stolen = None;
    let first = recorded(&jit, |g, x, mut y| {
        g.launch(&scale, 1, 4, args!(&x, 2.0f32, &mut y))?;
        stolen = Some(x);
        Ok(())
    });
    first?;
    let stolen = stolen.expect("it was recorded");
    refused(
        recorded(&jit, |g, _, mut y| {
            g.launch(&scale, 1, 4, args!(&stolen, 2.0f32, &mut y))
        }),
        expect![
            "kernel `scale` is given a slot of another graph; pass slots in the closure that has them"
        ],
    );
    // A slot is no argument of a launch.
    let mut y = jit.zeros::<f32>(4)?;
    let ready = jit.compile(&scale, args!(&other, 2.0f32, &mut y))?;
    refused(
        ready.launch(1, 4, args!(&stolen, 2.0f32, &mut y)),
        expect![
            "kernel `scale`: argument 1 is a slot of a graph, which stands for what replays are given; pass it to `launch` of the `Recording` that the closure has"
        ],
    );
    refused(
        jit.launch(&scale, 1, 4, args!(&other, 2.0f32, &stolen)),
        expect![
            "kernel `scale`: argument 3 is a slot of a graph, which stands for what replays are given; pass it to `launch` of the `Recording` that the closure has"
        ],
    );
    refused(
        jit.launch(&scale, 1, 4, args!(&stolen, 2.0f32, &mut y)),
        expect![
            "kernel `scale`: argument 1 is a slot of a graph, which stands for what replays are given; pass it to `launch` of the `Recording` that the closure has"
        ],
    );
    refused(
        recorded(&jit, |g, x, mut y| {
            g.launch(&scale, 1, 4, args!(&x, &mut y))
        }),
        expect![
            "kernel `scale` (declared at tests/graphs.rs:9:4) takes 3 arguments (x, by, y), 2 were passed"
        ],
    );
    refused(
        recorded(&jit, |g, x, mut y| {
            g.launch(&scale, 1, 4000, args!(&x, 1.0f32, &mut y))
        }),
        expect![
            "kernel `scale`: the number of threads of a block is 4000, the device's limit is 1024; use a smaller block and a larger grid"
        ],
    );
    // A CPU holds 64 blocks at once.
    let together = LaunchConfig::new(65, 4).cooperative();
    let mut y = jit.zeros::<f32>(4)?;
    refused(
        jit.launch_with(&scale, together, args!(&other, 2.0f32, &mut y)),
        expect![
            "kernel `scale`: a cooperative launch has 65 blocks, which have to be there at the same time, and this machine's CPU holds 64 of 4 threads and 0 bytes of dynamic shared memory (64 on each of 1 multiprocessors); launch at most 64, and loop over the grid in the kernel"
        ],
    );
    // What a `Jit` has prepared has the hooks and the globals of that.
    let unlike = Jit::on(jit.device().clone());
    let theirs = unlike.compile(&scale, args!(&other, 2.0f32, &mut y))?;
    refused(
        recorded(&jit, |g, x, mut y| {
            theirs.record(g, (1, 4), args!(&x, 2.0f32, &mut y))
        }),
        expect![
            "kernel `scale` was prepared by another `Jit` than the graph's; prepare it with the `Jit` that records"
        ],
    );
    refused(
        recorded(&jit, |g, x, mut y| {
            ready.record(g, (1, 4), args!(&x, 2.0f64, &mut y))
        }),
        expect![
            "kernel `scale` was prepared for other argument types (&[f32], f32, &mut [f32]) than it is launched with (&[f32], f64, &mut [f32]); call `compile` again for these"
        ],
    );
    let elsewhere = Jit::on(Device::cpu()).zeros::<f32>(4)?;
    let foreign = jit.graph((&elsewhere,), |_, _| Ok(()));
    refused(
        foreign,
        expect![
            "argument 1 of the graph lies on CPU device , and the graph is of CPU device ; copy it with `to_vec` and `upload`"
        ],
    );
    Ok(())
}

#[test]
fn copies_and_fills_that_cannot_be() -> kiln::Result<()> {
    let jit = jit();
    let filled = jit.graph((&mut jit.zeros::<f64>(4)?,), |g, (mut x,)| {
        g.fill(&mut x, 1.5)
    });
    refused(
        filled,
        expect![
            "a graph fills with what repeats every 1, 2 or 4 bytes, and this value has 8 bytes that do not; record a launch of a kernel that writes it"
        ],
    );
    let filled = jit.graph((&mut jit.zeros::<f32>(0)?,), |g, (mut x,)| {
        g.fill(&mut x, 1.5)
    });
    refused(
        filled,
        expect![
            "the graph copies or fills a buffer of no elements; leave that out for empty buffers"
        ],
    );
    let (x, mut y, mut small) = (
        jit.zeros::<f32>(4)?,
        jit.zeros::<f32>(4)?,
        jit.zeros::<f32>(2)?,
    );
    let mut graph = jit.graph((&x, &mut y), |g, (x, mut y)| g.copy(&x, &mut y))?;
    refused(
        graph.replay(args!(&x, &mut small)),
        expect!["the graph copies 16 bytes to a buffer of 8; replay it with a larger buffer there"],
    );
    // What was refused is not kept: the next replay is of its own arguments.
    let ones = jit.upload(&[1.0f32; 4])?;
    graph.replay(args!(&ones, &mut y))?;
    assert_eq!((y.to_vec()?, small.to_vec()?), (vec![1.0; 4], vec![0.0; 2]));
    Ok(())
}

/// What expressions over slots are refused for, and launches that are given a buffer twice, of which rustc knows nothing.
#[test]
fn slots_that_are_read_and_written() -> kiln::Result<()> {
    let jit = jit();
    let arrays = Arrays::new(&jit);
    refused(
        recorded(&jit, |g, _, mut y| {
            let read = y.as_slot();
            scale.record(g, (1, 4), &read, 2.0, &mut y)
        }),
        expect![
            "kernel `scale`: argument 3 is a slot of the same buffer as argument 1, and one of them is written; pass one of them, or a buffer that `keep` has given a copy"
        ],
    );
    refused(
        recorded(&jit, |g, x, mut y| {
            x.into_expr().record_sum(g, &mut y)?;
            Ok(y.into_expr().record_sum(g, &mut y)?)
        }),
        expect![
            "the result goes to a buffer that the expression reads, and not element by element: record it to another, as of `keep`, and copy it from there"
        ],
    );
    refused(
        recorded(&jit, |g, _, y| {
            let mut one = g.keep(jit.zeros::<f32>(1)?);
            Ok((y.into_expr() * &one).record(g, &mut one)?)
        }),
        expect![
            "the result goes to a buffer that the expression reads, and not element by element: record it to another, as of `keep`, and copy it from there"
        ],
    );
    let table = arrays.matrix(vec![1.0f32; 8], 2, 4)?;
    refused(
        recorded(&jit, |g, _, y| {
            let mut rows = g.keep(jit.zeros::<f32>(8)?);
            (y.into_expr() * &table).record(g, &mut rows)?;
            let mut row = g.keep(jit.zeros::<f32>(4)?);
            Ok((row.into_expr() * &table).record(g, &mut row)?)
        }),
        expect![
            "the result goes to a buffer that the expression reads, and not element by element: record it to another, as of `keep`, and copy it from there"
        ],
    );
    refused(
        recorded(&jit, |_, x, _| {
            Ok((x.into_expr() + 1.0).eval().map(drop)?)
        }),
        expect![
            "an expression over slots of a graph is computed by replays: `record` it in the closure of `Jit::graph`"
        ],
    );
    refused(
        recorded(&jit, |_, x, _| Ok((&table + &x).sum().map(drop)?)),
        expect![
            "an expression over slots of a graph is computed by replays: `record` it in the closure of `Jit::graph`"
        ],
    );
    let far = Jit::on(Device::cpu());
    refused(
        recorded(&jit, |g, x, mut y| {
            let theirs = g.keep(far.zeros::<f32>(4)?);
            g.copy(&theirs, &mut y)?;
            g.copy(&x, &mut y)
        }),
        expect![
            "a copy is given a buffer of CPU device  that the graph keeps, and the graph is of CPU device ; copy it with `to_vec` and `upload` before"
        ],
    );
    refused(
        arrays.adopt(far.zeros::<f32>(4)?, 4).map_err(Into::into),
        expect![
            "the buffer lies on CPU device , and the arrays are of CPU device ; copy it with `to_vec`"
        ],
    );
    let (x, mut y) = (jit.zeros::<f32>(4)?, jit.zeros::<f32>(4)?);
    let mut graph = jit.graph((&x, &mut y), |g, (x, mut y)| {
        Ok((x.into_expr() + 1.0).record(g, &mut y)?)
    })?;
    refused(
        graph.replay(args!(&jit.zeros::<f32>(3)?, &mut y)),
        expect![
            "argument 1 of the replay has 3 elements, and what was recorded is for 4; give it as many, or record the graph anew"
        ],
    );
    graph.replay(args!(&x, &mut y))?;
    assert_eq!(y.to_vec()?, [1.0; 4]);
    Ok(())
}

#[test]
fn hooks_that_are_asked_or_told() -> kiln::Result<()> {
    let told = Hook::new("trace").before_launch(|_| Ok(()));
    let jit = Jit::builder().device(Device::cpu()).hook(told).build()?;
    refused(
        recorded(&jit, |_, _, _| Ok(())),
        expect![
            "hooks of this `Jit` are told of each launch (`before_launch`, `after_launch`), and a replay tells nobody; record with a `Jit` without them"
        ],
    );
    Ok(())
}

#[test]
fn what_a_graph_is_not_replayed_with() -> kiln::Result<()> {
    let jit = jit();
    let (x, mut y) = (jit.upload(&[1.0f32; 4])?, jit.zeros::<f32>(4)?);
    let mut graph = jit.graph((&x, 2.0f32, &mut y), |g, (x, by, mut y)| {
        g.launch(&scale, 1, 4, args!(&x, &by, &mut y))
    })?;
    refused(
        graph.replay(args!(&x, &mut y)),
        expect![
            "the graph was recorded with samples of 3 arguments, and is replayed with 2; give one for each"
        ],
    );
    refused(
        graph.replay(args!(&x, 2.0f64, &mut y)),
        expect![
            "argument 2 of the replay is a `f64`, and the graph was recorded with a `f32`; give one of that type, or record the graph anew"
        ],
    );
    refused(
        graph.replay(args!(&x, 2.0f32, &y)),
        expect![
            "argument 3 of the replay is a `&[f32]`, and the graph was recorded with a `&mut [f32]`; give one of that type, or record the graph anew"
        ],
    );
    let elsewhere = Jit::on(Device::cpu());
    let foreign = elsewhere.zeros::<f32>(4)?;
    refused(
        graph.replay(args!(&foreign, 2.0f32, &mut y)),
        expect![
            "argument 1 of the replay lies on CPU device , and the graph is of CPU device ; copy it with `to_vec` and `upload`"
        ],
    );
    refused(
        graph.replay_on(&elsewhere.stream()?, args!(&x, 2.0f32, &mut y)),
        expect![
            "the stream is of CPU device , and the kernel was made ready for CPU device ; use a stream of that"
        ],
    );
    graph.replay(args!(&x, 2.0f32, &mut y))?;
    assert_eq!(y.to_vec()?, [2.0; 4]);
    Ok(())
}
