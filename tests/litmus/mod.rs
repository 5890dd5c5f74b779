//! Litmus tests: a few accesses of a few threads, many times at once, and which outcomes the memory
//! model allows (Alglave et al.: *GPU Concurrency: Weak Behaviours and Programming Assumptions*, 2015;
//! Lustig, Sahasrabuddhe, Giroux: *A Formal Analysis of the NVIDIA PTX Memory Consistency Model*, 2019).
//!
//! A launch runs an instance of the test for each of its threads; a thread plays each role, in another
//! instance each time, so that the roles of an instance are far apart (Levine et al.: *MC Mutants*, 2023).
//! With device and system scope the roles of an instance are in any two blocks, with block scope in one.

use std::ops::Range;

use kiln::core::ir::{AtomicOp, Ordering, Scope};
use kiln::prelude::{Index as _, Jit, Kernel, KernelBuilder, LaunchConfig, Place, Type, Val, args};

const U32: Type = Type::U32;

use Ordering::{Acquire, AcquireRelease, Relaxed, Release, SequentiallyConsistent};

/// The two locations of a test.
#[derive(Copy, Clone)]
enum At {
    X,
    Y,
}

/// What a thread of a test does.
#[derive(Copy, Clone)]
enum Step {
    /// Writes 1.
    Write(At, Ordering),
    /// Writes 1 without an atomic.
    Plain(At),
    /// Reads into a register of the test.
    Read(At, usize, Ordering),
    /// Reads without an atomic, if a register is 1; else the register that it reads into is 1.
    PlainIf(usize, At, usize),
    /// Reads by a read-modify-write that changes nothing.
    Change(At, usize, Ordering),
    Fence(Ordering),
}

/// A litmus test.
pub struct Litmus {
    pub name: &'static str,
    /// The threads.
    threads: &'static [&'static [Step]],
    /// The outcome, by register, that tells the orders apart.
    weak: &'static [u32],
    /// Whether the model allows it.
    pub allowed: bool,
    /// Whether a GPU is known to show it: a run that does not is without power.
    #[allow(dead_code, reason = "on the CPU it need not show")]
    pub shows: bool,
}

use At::{X, Y};
use Step::{Change, Fence, Plain, PlainIf, Read, Write};

const fn test(
    name: &'static str,
    threads: &'static [&'static [Step]],
    weak: &'static [u32],
    allowed: bool,
) -> Litmus {
    Litmus {
        name,
        threads,
        weak,
        allowed,
        shows: false,
    }
}

const fn shown(litmus: Litmus) -> Litmus {
    Litmus {
        shows: true,
        ..litmus
    }
}

/// Whose threads each test's orders are for.
pub const SCOPES: [Scope; 3] = [Scope::Block, Scope::Device, Scope::System];

/// All tests.
pub const TESTS: &[Litmus] = &[
    // Message passing: the flag is seen, the data is not.
    shown(test(
        "message passing, relaxed",
        &[
            &[Write(X, Relaxed), Write(Y, Relaxed)],
            &[Read(Y, 0, Relaxed), Read(X, 1, Relaxed)],
        ],
        &[1, 0],
        true,
    )),
    test(
        "message passing, release and relaxed",
        &[
            &[Write(X, Relaxed), Write(Y, Release)],
            &[Read(Y, 0, Relaxed), Read(X, 1, Relaxed)],
        ],
        &[1, 0],
        true,
    ),
    test(
        "message passing, relaxed and acquire",
        &[
            &[Write(X, Relaxed), Write(Y, Relaxed)],
            &[Read(Y, 0, Acquire), Read(X, 1, Relaxed)],
        ],
        &[1, 0],
        true,
    ),
    test(
        "message passing, release and acquire",
        &[
            &[Write(X, Relaxed), Write(Y, Release)],
            &[Read(Y, 0, Acquire), Read(X, 1, Relaxed)],
        ],
        &[1, 0],
        false,
    ),
    test(
        "message passing, fences",
        &[
            &[Write(X, Relaxed), Fence(AcquireRelease), Write(Y, Relaxed)],
            &[
                Read(Y, 0, Relaxed),
                Fence(AcquireRelease),
                Read(X, 1, Relaxed),
            ],
        ],
        &[1, 0],
        false,
    ),
    test(
        "message passing, release fence and acquire fence",
        &[
            &[Write(X, Relaxed), Fence(Release), Write(Y, Relaxed)],
            &[Read(Y, 0, Relaxed), Fence(Acquire), Read(X, 1, Relaxed)],
        ],
        &[1, 0],
        false,
    ),
    test(
        "message passing, sequentially consistent",
        &[
            &[Write(X, Relaxed), Write(Y, SequentiallyConsistent)],
            &[Read(Y, 0, SequentiallyConsistent), Read(X, 1, Relaxed)],
        ],
        &[1, 0],
        false,
    ),
    test(
        "message passing of plain data, release and acquire",
        &[
            &[Plain(X), Write(Y, Release)],
            &[Read(Y, 0, Acquire), PlainIf(0, X, 1)],
        ],
        &[1, 0],
        false,
    ),
    test(
        "message passing of plain data, fences",
        &[
            &[Plain(X), Fence(SequentiallyConsistent), Write(Y, Relaxed)],
            &[
                Read(Y, 0, Relaxed),
                Fence(SequentiallyConsistent),
                PlainIf(0, X, 1),
            ],
        ],
        &[1, 0],
        false,
    ),
    test(
        "message passing of plain data, acquired by a read-modify-write",
        &[
            &[Plain(X), Write(Y, Release)],
            &[Change(Y, 0, Acquire), PlainIf(0, X, 1)],
        ],
        &[1, 0],
        false,
    ),
    // Store buffering: neither sees the other's.
    shown(test(
        "store buffering, relaxed",
        &[
            &[Write(X, Relaxed), Read(Y, 0, Relaxed)],
            &[Write(Y, Relaxed), Read(X, 1, Relaxed)],
        ],
        &[0, 0],
        true,
    )),
    test(
        "store buffering, release and acquire",
        &[
            &[Write(X, Release), Read(Y, 0, Acquire)],
            &[Write(Y, Release), Read(X, 1, Acquire)],
        ],
        &[0, 0],
        true,
    ),
    test(
        "store buffering, acquire-release fences",
        &[
            &[
                Write(X, Relaxed),
                Fence(AcquireRelease),
                Read(Y, 0, Relaxed),
            ],
            &[
                Write(Y, Relaxed),
                Fence(AcquireRelease),
                Read(X, 1, Relaxed),
            ],
        ],
        &[0, 0],
        true,
    ),
    test(
        "store buffering, fences",
        &[
            &[
                Write(X, Relaxed),
                Fence(SequentiallyConsistent),
                Read(Y, 0, Relaxed),
            ],
            &[
                Write(Y, Relaxed),
                Fence(SequentiallyConsistent),
                Read(X, 1, Relaxed),
            ],
        ],
        &[0, 0],
        false,
    ),
    test(
        "store buffering, sequentially consistent",
        &[
            &[
                Write(X, SequentiallyConsistent),
                Read(Y, 0, SequentiallyConsistent),
            ],
            &[
                Write(Y, SequentiallyConsistent),
                Read(X, 1, SequentiallyConsistent),
            ],
        ],
        &[0, 0],
        false,
    ),
    // Load buffering: each sees what the other writes later.
    test(
        "load buffering, relaxed",
        &[
            &[Read(X, 0, Relaxed), Write(Y, Relaxed)],
            &[Read(Y, 1, Relaxed), Write(X, Relaxed)],
        ],
        &[1, 1],
        true,
    ),
    test(
        "load buffering, acquire and release",
        &[
            &[Read(X, 0, Acquire), Write(Y, Release)],
            &[Read(Y, 1, Acquire), Write(X, Release)],
        ],
        &[1, 1],
        false,
    ),
    test(
        "load buffering, fences",
        &[
            &[
                Read(X, 0, Relaxed),
                Fence(AcquireRelease),
                Write(Y, Relaxed),
            ],
            &[
                Read(Y, 1, Relaxed),
                Fence(AcquireRelease),
                Write(X, Relaxed),
            ],
        ],
        &[1, 1],
        false,
    ),
    // Coherence: one place never goes back.
    test(
        "coherence of reads, relaxed",
        &[
            &[Write(X, Relaxed)],
            &[Read(X, 0, Relaxed), Read(X, 1, Relaxed)],
        ],
        &[1, 0],
        false,
    ),
    test(
        "coherence of a write and a read, relaxed",
        &[
            &[Write(X, Relaxed), Read(X, 0, Relaxed)],
            &[Write(X, Relaxed), Read(X, 1, Relaxed)],
        ],
        &[0, 1],
        false,
    ),
    test(
        "coherence of a read and a write, relaxed",
        &[
            &[Read(X, 0, Relaxed), Write(X, Relaxed)],
            &[Read(X, 1, Relaxed), Write(X, Relaxed)],
        ],
        &[1, 1],
        false,
    ),
    // Independent reads of independent writes: two readers see two writes in two orders.
    test(
        "independent reads, relaxed",
        &[
            &[Write(X, Relaxed)],
            &[Write(Y, Relaxed)],
            &[Read(X, 0, Relaxed), Read(Y, 1, Relaxed)],
            &[Read(Y, 2, Relaxed), Read(X, 3, Relaxed)],
        ],
        &[1, 0, 1, 0],
        true,
    ),
    test(
        "independent reads, acquire",
        &[
            &[Write(X, Release)],
            &[Write(Y, Release)],
            &[Read(X, 0, Acquire), Read(Y, 1, Acquire)],
            &[Read(Y, 2, Acquire), Read(X, 3, Acquire)],
        ],
        &[1, 0, 1, 0],
        true,
    ),
    test(
        "independent reads, fences",
        &[
            &[Write(X, Relaxed)],
            &[Write(Y, Relaxed)],
            &[
                Read(X, 0, Relaxed),
                Fence(SequentiallyConsistent),
                Read(Y, 1, Relaxed),
            ],
            &[
                Read(Y, 2, Relaxed),
                Fence(SequentiallyConsistent),
                Read(X, 3, Relaxed),
            ],
        ],
        &[1, 0, 1, 0],
        false,
    ),
    test(
        "independent reads, sequentially consistent",
        &[
            &[Write(X, SequentiallyConsistent)],
            &[Write(Y, SequentiallyConsistent)],
            &[
                Read(X, 0, SequentiallyConsistent),
                Read(Y, 1, SequentiallyConsistent),
            ],
            &[
                Read(Y, 2, SequentiallyConsistent),
                Read(X, 3, SequentiallyConsistent),
            ],
        ],
        &[1, 0, 1, 0],
        false,
    ),
];

/// How a test is run.
#[derive(Clone, Debug)]
pub struct Load {
    pub blocks: u32,
    /// Threads of a block; a power of two, as is their product with the blocks.
    pub threads: u32,
    /// The numbers of the launches: each spreads its instances in its own way.
    pub launches: Range<u32>,
    /// Of how many blocks one only makes traffic; 0: none.
    pub stress: u32,
}

/// How a launch spreads its instances, by its number: the factors of the places of `x` and `y`, and
/// the factor and the addend by which the roles of an instance come to other threads. Factors are odd.
/// Roles in neighbouring blocks run at one time; what makes a store late depends on the places.
fn spread(round: u32) -> [u32; 4] {
    const PLACES: [[u32; 2]; 4] = [[1, 421], [421, 1], [33, 1057], [1, 1]];
    let [x, y] = PLACES[round as usize % PLACES.len()];
    let (factor, addend) = match round / 4 % 3 {
        0 => (1, 256 * (1 + round % 61)),
        1 => (1, 256 * (1 + round % 61) + 32),
        _ => (8 * (1 + round) + 1, round),
    };
    [x, y, factor, addend]
}

/// Bytes between two instances of a location.
const STRIDE: u32 = 4;

struct Roles<'k> {
    k: &'k KernelBuilder,
    memory: [Val<'k>; 2],
    registers: Val<'k>,
    scope: Scope,
    instances: u32,
    /// The parameters that `spread` gives.
    spread: [Val<'k>; 4],
}

impl<'k> Roles<'k> {
    /// The number below a power of two that `n` becomes; each becomes another.
    fn scattered(&self, n: Val<'k>, factor: Val<'k>, addend: Val<'k>) -> Val<'k> {
        (n * factor + addend) & (self.instances - 1)
    }

    fn place(&self, at: At, first: Val<'k>, instance: Val<'k>) -> Place<'k> {
        let factor = self.spread[at as usize];
        let index = self.scattered(instance, factor, self.k.lit(U32, 0));
        self.memory[at as usize].at((first + index) * (STRIDE / 4))
    }

    fn step(&self, step: Step, first: Val<'k>, instance: Val<'k>, count: u32) {
        let register = |n: usize| {
            let at = (first + instance) * count + n as u32;
            self.registers.at(at)
        };
        match step {
            Write(at, ordering) => {
                self.place(at, first, instance)
                    .atomic_store(1u32, ordering, self.scope);
            }
            Plain(at) => self.place(at, first, instance).set(1u32),
            Read(at, n, ordering) => {
                let place = self.place(at, first, instance);
                register(n).set(place.atomic_load(ordering, self.scope));
            }
            Change(at, n, ordering) => {
                let place = self.place(at, first, instance);
                register(n).set(place.atomic(AtomicOp::Or, 0u32, ordering, self.scope));
            }
            PlainIf(seen, at, n) => {
                let place = self.place(at, first, instance);
                register(n).set(1u32);
                self.k.if_(register(seen).get().eq(1u32), || {
                    register(n).set(place.get())
                });
            }
            Fence(ordering) => self.k.fence_with(ordering, self.scope),
        }
    }
}

/// The kernel of a test: `x`, `y` and `registers` as the instances need them, `salt` from the host.
pub fn kernel(test: &Litmus, scope: Scope, load: &Load) -> kiln::Result<Kernel> {
    let count = test.weak.len() as u32;
    // Instances that can meet: all, or those of a block.
    let instances = match scope {
        Scope::Block => load.threads,
        _ => load.threads * load.blocks,
    };
    Kernel::build("litmus", |k| {
        let x = k.slice_mut("x", U32);
        let y = k.slice_mut("y", U32);
        let registers = k.slice_mut("registers", U32);
        let traffic = k.slice_mut("traffic", U32);
        let salt = k.param("salt", U32);
        let spread = ["x_factor", "y_factor", "role_factor", "role_addend"];
        let spread = spread.map(|name| k.param(name, U32));
        let roles = Roles {
            k,
            memory: [x, y],
            registers,
            scope,
            instances,
            spread,
        };
        let (thread, block) = (k.thread_idx().x(), k.block_idx().x());
        let play = || {
            let first = match scope {
                Scope::Block => block * load.threads,
                _ => k.lit(U32, 0),
            };
            let own = match scope {
                Scope::Block => thread,
                _ => block * load.threads + thread,
            };
            for (role, steps) in test.threads.iter().enumerate() {
                let instance = match role {
                    0 => own,
                    _ => {
                        let [.., factor, addend] = roles.spread;
                        let apart = match scope {
                            Scope::Block => 37,
                            _ => 0,
                        };
                        roles.scattered(own, factor, (addend + apart) * role as u32)
                    }
                };
                for &step in *steps {
                    roles.step(step, first, instance, count);
                }
            }
        };
        if load.stress == 0 {
            play();
            return;
        }
        let makes_traffic = ((block + salt) % load.stress).eq(0u32);
        let traffic = || {
            k.for_range(0u32, 32u32, |n| {
                let at = (thread * 33u32 + n * 1021u32 + salt) & 0xffffu32;
                let old = traffic.at(at).atomic_load(Relaxed, Scope::Device);
                let to = traffic.at(at ^ 64u32);
                to.atomic_store(old + 1u32, Relaxed, Scope::Device);
            });
        };
        k.if_(makes_traffic, traffic).else_(play);
    })
}

/// How often each outcome was seen, by the registers as bits, the first one lowest. Blocks that made
/// traffic leave instances whose roles were not all played: their registers say so, and they are left out.
pub fn outcomes(jit: &Jit, test: &Litmus, scope: Scope, load: &Load) -> kiln::Result<Vec<u64>> {
    let kernel = kernel(test, scope, load)?;
    let count = test.weak.len();
    let instances = (load.blocks * load.threads) as usize;
    let tally = tally(count as u32)?;
    let mut x = jit.zeros::<u32>(instances * STRIDE as usize / 4)?;
    let mut y = jit.zeros::<u32>(instances * STRIDE as usize / 4)?;
    let mut registers = jit.upload(&vec![2u32; instances * count])?;
    let mut traffic = jit.zeros::<u32>(1 << 16)?;
    let mut seen = vec![0u64; 1 << count];
    let mut bins = jit.zeros::<u32>(1 << count)?;
    for round in load.launches.clone() {
        let salt = round.wrapping_mul(2_654_435_761);
        let [fx, fy, factor, addend] = spread(round);
        let config = LaunchConfig::new(load.blocks, load.threads);
        jit.launch_with(
            &kernel,
            config,
            args!(
                &mut x,
                &mut y,
                &mut registers,
                &mut traffic,
                salt,
                fx,
                fy,
                factor,
                addend
            ),
        )?;
        jit.launch_with(
            &tally,
            config,
            args!(&mut x, &mut y, &mut registers, &mut bins),
        )?;
        // Bins have 32 bits.
        if round % 64 == 63 || round + 1 == load.launches.end {
            for (sum, &more) in seen.iter_mut().zip(&bins.to_vec()?) {
                *sum += u64::from(more);
            }
            bins = jit.zeros::<u32>(1 << count)?;
        }
    }
    Ok(seen)
}

/// Counts outcomes and makes all as it was before a launch.
fn tally(count: u32) -> kiln::Result<Kernel> {
    Kernel::build("tally", |k| {
        let x = k.slice_mut("x", U32);
        let y = k.slice_mut("y", U32);
        let registers = k.slice_mut("registers", U32);
        let bins = k.slice_mut("bins", U32);
        let own = k.shared_array("own", U32, 1 << count);
        let thread = k.thread_idx().x();
        let i = k.global_id().x();
        k.if_(thread.lt(1u32 << count), || own.at(thread).set(0u32));
        k.barrier();
        let outcome = k.var("outcome", 0u32);
        for n in 0..count {
            let register = registers.at(i * count + n);
            // A register that was not written is 2.
            outcome.set(outcome.get() | (register.get() << n) | ((register.get() & 2u32) << 8u32));
            register.set(2u32);
        }
        k.if_(outcome.get().lt(1u32 << count), || {
            own.at(outcome.get()).atomic_add(1u32);
        });
        x.at(i * (STRIDE / 4)).set(0u32);
        y.at(i * (STRIDE / 4)).set(0u32);
        k.barrier();
        k.if_(thread.lt(1u32 << count), || {
            bins.at(thread).atomic_add(own.at(thread).get());
        });
    })
}

/// How often the outcome in question was seen, of how many.
pub fn weak(test: &Litmus, seen: &[u64]) -> (u64, u64) {
    let bits = test.weak.iter().enumerate();
    let outcome: usize = bits.map(|(n, &bit)| (bit as usize) << n).sum();
    (seen[outcome], seen.iter().sum())
}
