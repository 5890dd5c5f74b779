//! Graphs: their order inside and among other work, what a replay sets anew, faults, and failures at each call.

use kiln_jit_core::args;
use kiln_jit_core::args::{Slot, SlotMut};
use kiln_jit_core::build::Kernel;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::{Graph, Jit, JitOptions, Recording, Stream};
use kiln_jit_core::runtime::{Buffer, Device};

use super::fake::{Fake, Ledger};

type Result<T, E = kiln_jit_core::error::Error> = std::result::Result<T, E>;

/// Kernels that the fake driver knows by their names, and a `Jit`.
struct Program {
    fake: Fake,
    jit: Jit,
    reads: Kernel,
    writes: Kernel,
    copies: Kernel,
}

impl Program {
    fn new() -> Result<Program> {
        let fake = Fake::new();
        let device = Device::cuda_of(fake.open()?, 0)?;
        Ok(Program {
            fake,
            jit: Jit::with(device, HookSet::new(), JitOptions::default()),
            reads: Kernel::build("uses_r", |k| {
                k.slice("x", Type::U32);
            })?,
            writes: Kernel::build("uses_w", |k| k.slice_mut("x", Type::U32).at(0).set(1u32))?,
            copies: Kernel::build("uses_rw", |k| {
                let x = k.slice("x", Type::U32);
                k.slice_mut("y", Type::U32).at(0).set(x.at(0));
            })?,
        })
    }

    fn buffers(&self) -> Result<[Buffer<u32>; 3]> {
        let zeros = || self.jit.zeros::<u32>(4);
        Ok([zeros()?, zeros()?, zeros()?])
    }

    /// A graph of so many steps, drawn from a seed, over two slots that are written, one that is read, and a buffer of
    /// the graph's own.
    fn random(
        &self,
        buffers: &mut [Buffer<u32>; 3],
        random: &mut Random,
        steps: usize,
    ) -> Result<Graph> {
        let [x, y, z] = buffers;
        self.jit.graph((&*x, y, z), |g, (x, y, z)| {
            let own = g.keep(self.jit.zeros::<u32>(4)?);
            let mut written = [y, z, own];
            self.copy(g, &x, &mut written[0])?;
            self.copy(g, &x, &mut written[1])?;
            for _ in 0..steps {
                let (at, other) = (random.below(3), 1 + random.below(2));
                let (left, right) = written.split_at_mut(1);
                let pair = (&mut left[0], &mut right[other - 1]);
                match random.below(6) {
                    0 => g.launch(&self.reads, 1, 1, args!(&written[at]))?,
                    1 => g.launch(&self.writes, 1, 1, args!(&mut written[at]))?,
                    2 => g.launch(&self.copies, 1, 1, args!(&*pair.0, pair.1))?,
                    3 => g.copy(&*pair.1, pair.0)?,
                    4 => g.fill(&mut written[at], 3)?,
                    _ => self.copy(g, &x, &mut written[at])?,
                }
            }
            Ok(())
        })
    }

    fn copy(&self, g: &mut Recording, from: &Slot<u32>, to: &mut SlotMut<u32>) -> Result<()> {
        g.launch(&self.copies, 1, 1, args!(from, to))
    }
}

/// Numbers by a rule, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Random graphs among other work of three streams, with buffers that are dropped behind their backs, and graphs that
/// are dropped while they run.
#[test]
fn random_graphs_among_streams() -> Result<()> {
    for seed in 0..30 {
        let program = Program::new()?;
        let Program { fake, jit, .. } = &program;
        fake.set_lazy(seed % 2 == 0);
        let mut random = Random(seed);
        let streams = [jit.stream()?, jit.stream()?];
        let mut buffers = program.buffers()?;
        let mut graph = program.random(&mut buffers, &mut random, 8)?;
        for step in 0..150 {
            let stream: &Jit = match random.below(3) {
                0 => jit,
                at => &streams[at - 1],
            };
            let [x, y, z] = &mut buffers;
            match random.below(9) {
                0 | 1 => graph.replay(args!(&*x, y, z))?,
                2 => graph.replay_on(&streams[random.below(2)], args!(&*x, y, z))?,
                3 => graph.replay_on(&streams[random.below(2)], args!(&*x, z, y))?,
                4 => stream.launch(&program.writes, 1, 1, args!(x))?,
                5 => stream.launch(&program.copies, 1, 1, args!(&*z, x))?,
                6 => drop(y.to_vec()?),
                7 => *z = jit.zeros(4)?,
                _ => graph = program.random(&mut buffers, &mut random, 8)?,
            }
            assert_eq!(
                fake.race(),
                None,
                "seed {seed}, step {step}: {:?}",
                graph.dependencies()
            );
        }
        drop((graph, buffers, streams));
        assert_eq!(fake.graphs()[..2], [0, 0], "seed {seed}");
        assert_eq!(fake.race(), None, "seed {seed}, the end");
    }
    Ok(())
}

/// Each edge is needed: the fake driver finds what is not ordered.
#[test]
fn steps_wait_for_what_they_use() -> Result<()> {
    let program = Program::new()?;
    let [mut x, mut y, mut z] = program.buffers()?;
    let mut graph = program
        .jit
        .graph((&mut x, &mut y, &mut z), |g, (mut x, mut y, mut z)| {
            g.launch(&program.writes, 1, 1, args!(&mut x))?; // 0
            g.launch(&program.copies, 1, 1, args!(&x, &mut y))?; // 1: behind 0
            g.launch(&program.copies, 1, 1, args!(&x, &mut z))?; // 2: behind 0, beside 1
            g.launch(&program.reads, 1, 1, args!(&y))?; // 3: behind 1
            g.fill(&mut x, 7)?; // 4: behind 1 and 2
            g.copy(&z, &mut y) // 5: behind 2 and 3
        })?;
    let edges = [vec![], vec![0], vec![0], vec![1], vec![1, 2], vec![2, 3]];
    assert_eq!(graph.dependencies(), edges);
    graph.replay(args!(&mut x, &mut y, &mut z))?;
    assert_eq!(program.fake.race(), None);
    assert_eq!(x.to_vec()?, [7; 4]);
    Ok(())
}

/// A replay sets the nodes whose arguments differ from those of the replay before, and no others.
#[test]
fn what_a_replay_sets_anew() -> Result<()> {
    let program = Program::new()?;
    let Program { fake, jit, .. } = &program;
    let scaled = Kernel::build("scaled", |k| {
        let (n, x) = (k.param("n", Type::U32), k.slice_mut("x", Type::U32));
        x.at(0).set(n);
    })?;
    let [x, mut y, mut z] = program.buffers()?;
    let mut graph = jit.graph((&x, 1u32, &mut y), |g, (x, n, mut y)| {
        g.launch(&program.reads, 1, 1, args!(&x))?;
        for _ in 0..3 {
            g.launch(&scaled, 1, 1, args!(&n, &mut y))?;
        }
        g.launch(&scaled, 1, 1, args!(5u32, &mut y))
    })?;
    let calls =
        |graph: &mut Graph, x: &Buffer<u32>, n: u32, y: &mut Buffer<u32>| -> Result<[u64; 2]> {
            let before = fake.graphs();
            graph.replay(args!(x, n, y))?;
            let after = fake.graphs();
            Ok([after[2] - before[2], after[3] - before[3]])
        };
    assert_eq!(calls(&mut graph, &x, 1, &mut y)?, [0, 1]);
    assert_eq!(calls(&mut graph, &x, 1, &mut y)?, [0, 1]);
    assert_eq!(calls(&mut graph, &x, 9, &mut y)?, [3, 1]);
    assert_eq!(calls(&mut graph, &x, 9, &mut z)?, [4, 1]);
    assert_eq!(calls(&mut graph, &y, 9, &mut z)?, [1, 1]);
    assert_eq!(calls(&mut graph, &z, 1, &mut y)?, [5, 1]);
    // The first word of a node's parameters: the number, in 4 bytes of 8.
    let number = |at: usize| fake.graph_node(at)[8] as u32;
    assert_eq!([number(1), number(3), number(4)], [1, 1, 5]);
    assert_eq!(fake.graph_node(0)[8], z.address());
    // Another stream has another place for faults, which kernels that can fault are passed.
    let stream = jit.stream()?;
    let before = fake.graphs()[2];
    graph.replay_on(&stream, args!(&z, 1u32, &mut y))?;
    assert_eq!(fake.graphs()[2] - before, 4);
    graph.replay_on(&stream, args!(&z, 1u32, &mut y))?;
    assert_eq!(fake.graphs()[2] - before, 4);
    Ok(())
}

/// Faults in graphs are told by who waits for the stream of the replay, and name the kernel.
#[test]
fn faults_in_graphs() -> Result<()> {
    let fake = Fake::new();
    let jit = Jit::on(Device::cuda_of(fake.open()?, 0)?);
    let build = |name: &str| {
        Kernel::build(name, |k| {
            let x = k.slice_mut("x", Type::U32);
            x.at(9).set(1u32);
        })
    };
    let (first, second) = (build("uses_wf_first")?, build("uses_wf_second")?);
    let (one, other) = (jit.stream()?, jit.stream()?);
    let mut x = jit.zeros::<u32>(4)?;
    let tag = jit.compile(&second, args!(&mut x))?.info().kernel_tag;
    let mut graph = jit.graph((&mut x,), |g, (mut x,)| {
        g.launch(&first, 1, 1, args!(&mut x))?;
        g.launch(&second, 1, 1, args!(&mut x))
    })?;
    let mut fault_in = |graph: &mut Graph, stream: Option<&Stream>| -> Result<()> {
        match stream {
            Some(stream) => graph.replay_on(stream, args!(&mut x))?,
            None => graph.replay(args!(&mut x))?,
        }
        let channels: Vec<u64> = (0..2).filter_map(|at| fake.graph_node(at).pop()).collect();
        assert_eq!(channels[0], channels[1]);
        assert!(fake.raise_fault(channels[1], 0, tag, 9, 4));
        Ok(())
    };
    let told = |result: Result<()>| {
        let text = result.expect_err("a fault").to_string();
        assert!(
            text.contains("uses_wf_second") && text.contains("index 9"),
            "{text}"
        );
    };
    fault_in(&mut graph, Some(&one))?;
    other.synchronize()?;
    told(one.synchronize());
    one.synchronize()?;
    fault_in(&mut graph, Some(&other))?;
    one.synchronize()?;
    told(other.synchronize());
    fault_in(&mut graph, None)?;
    one.synchronize()?;
    told(jit.synchronize());
    jit.synchronize()?;
    Ok(())
}

/// Whatever call fails, the error says so, nothing is left, and the next replay does all that was asked for.
#[test]
fn each_call_fails_once() -> Result<()> {
    let program = Program::new()?;
    let Program { fake, jit, .. } = &program;
    let stream = jit.stream()?;
    let mut failures = 0;
    for nth in 1.. {
        let [mut x, y, mut z] = program.buffers()?;
        fake.fail("*", nth, 1);
        let run = |x: &mut Buffer<u32>, y: &Buffer<u32>, z: &mut Buffer<u32>| -> Result<Graph> {
            let mut graph = jit.graph((&mut *x, &mut *z), |g, (mut x, mut z)| {
                g.launch(&program.writes, 1, 1, args!(&mut x))?;
                g.fill(&mut x, 3)?;
                g.copy(&x, &mut z)
            })?;
            let mut other = jit.zeros::<u32>(4)?;
            let first = graph.replay_on(&stream, args!(&mut *x, &mut *z));
            let second = graph.replay(args!(&mut other, &mut *z));
            drop(y.to_vec());
            // What failed is made good by the next.
            graph.replay_on(&stream, args!(&mut *x, &mut *z))?;
            assert_eq!(fake.graph_node(1)[0], x.address());
            first.and(second).map(|()| graph)
        };
        let result = run(&mut x, &y, &mut z);
        let Some(call) = fake.failed() else {
            // The plan was for a later call than there is: it is taken back.
            result?;
            fake.fail("none", 1, 1);
            break;
        };
        failures += usize::from(result.is_err());
        drop(result);
        assert_eq!(fake.graphs()[..2], [0, 0], "{call}");
        assert_eq!(fake.race(), None, "{call}");
    }
    assert!(failures > 10, "{failures}");
    Ok(())
}

/// Nothing is left in the driver, whichever of graph, `Jit` and buffers ends first.
#[test]
fn graphs_end() -> Result<()> {
    for order in 0..3 {
        let Program {
            fake, jit, copies, ..
        } = Program::new()?;
        fake.set_lazy(true);
        let (x, mut y) = (jit.zeros::<u32>(4)?, jit.zeros::<u32>(4)?);
        let mut graph = jit.graph((&x, &mut y), |g, (x, mut y)| {
            let mut own = g.keep(jit.zeros::<u32>(4)?);
            g.launch(&copies, 1, 1, args!(&x, &mut own))?;
            g.launch(&copies, 1, 1, args!(&own, &mut y))
        })?;
        let stream = jit.stream()?;
        graph.replay_on(&stream, args!(&x, &mut y))?;
        match order {
            0 => drop((graph, x, y, stream, jit)),
            1 => drop((jit, stream, x, y, graph)),
            _ => drop((x, graph, jit, y, stream)),
        }
        assert_eq!(
            (fake.race(), fake.ledger()),
            (None, Ledger::default()),
            "{order}"
        );
        assert_eq!(fake.graphs()[..2], [0, 0], "{order}");
    }
    Ok(())
}
