//! Long runs: whether memory, open files, threads and what is alive on a device stay as they are.
//!
//! Here in a form of seconds, which looks at the device alone, as other tests run beside. `cargo xtask soak` sets
//! `KILN_SOAK_MINUTES`, and runs these by themselves.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use kiln::prelude::*;

use crate::counting;
use crate::fake::{Fake, Ledger};
use crate::held::{Held, MORE_KIB};
use crate::mixed::{Random, add, compiling, sets, step};

/// How long the long form of the mixed work takes; `None`: the short forms.
fn minutes() -> Option<u64> {
    let minutes = std::env::var("KILN_SOAK_MINUTES").ok()?;
    Some(minutes.parse().expect("KILN_SOAK_MINUTES is a number"))
}

/// How much more may be allocated than when the process is warm, in KiB: of work that is under way.
const MORE_ALIVE_KIB: i64 = 1 << 10;

/// Watches what the process has, from when it is warm: the whole heap, and of it what this program's Rust code has
/// allocated, Kiln among it, and what the fake driver has.
struct Watch<'a> {
    what: &'static str,
    fake: &'a Fake,
    warm: Option<(Held, [i64; 2])>,
}

impl Watch<'_> {
    fn new<'a>(what: &'static str, fake: &'a Fake) -> Watch<'a> {
        Watch {
            what,
            fake,
            warm: None,
        }
    }

    /// Looks once more; the first time what is there is what may be there.
    fn look(&mut self) {
        let (Some(_), Some(now)) = (minutes(), Held::now()) else {
            return;
        };
        let alive = [counting::alive(), self.fake.alive()].map(|bytes| bytes >> 10);
        let (warm, warm_alive) = *self.warm.get_or_insert((now, alive));
        let what = self.what;
        println!("{what}: {now}; KiB of this program and the driver {alive:?}");
        let is_more = |at: usize| alive[at] > warm_alive[at] + MORE_ALIVE_KIB;
        let is_flat = now.heap_kib <= warm.heap_kib + MORE_KIB && !is_more(0) && !is_more(1);
        assert!(
            is_flat && now.has_files_and_threads_of(&warm),
            "{what}: {warm}, {warm_alive:?} when warm, and now {now}, {alive:?}"
        );
    }
}

fn of_fake(fake: &Fake) -> Device {
    Device::cuda_of(fake.open().expect("it opens"), 0).expect("a device")
}

#[test]
fn launches() {
    let fake = Fake::new();
    let count = if minutes().is_some() {
        1_000_000
    } else {
        20_000
    };
    let mut watch = Watch::new("launches", &fake);
    let jit = compiling(of_fake(&fake), None);
    let stream = jit.stream().expect("a stream");
    let mut x = jit.zeros::<u32>(32).expect("memory");
    let mut alive = None;
    for n in 0..count {
        add.launch(&jit, (1, 32), &mut x, n)
            .expect("it is launched");
        if n % 10 == 0 {
            add.launch(&stream, (1, 32), &mut x, n)
                .expect("it is launched");
        }
        if n % (count / 10) == 0 {
            jit.synchronize().expect("all is well");
            let ledger = fake.ledger();
            assert_eq!(alive.get_or_insert(fake.ledger()), &ledger, "after {n}");
            watch.look();
        }
    }
    drop((stream, x, jit));
    assert_eq!(fake.ledger(), Ledger::default());
}

/// Kernels that are redefined, compiled and dropped with their `Jit`.
#[test]
fn compiles_and_drops() {
    let fake = Fake::new();
    let (rounds, kernels) = if minutes().is_some() {
        (200, 100)
    } else {
        (2, 8)
    };
    let device = of_fake(&fake);
    let mut watch = Watch::new("compiles and drops", &fake);
    for round in 0..rounds {
        let device = if round % 2 == 0 {
            device.clone()
        } else {
            Device::cpu()
        };
        let jit = compiling(device, None);
        let mut x = jit.zeros::<u32>(4).expect("memory");
        let kernel = Kernel::build("step", sets(0)).expect("a kernel");
        for n in 0..kernels {
            let value = round * kernels + n;
            kernel.redefine(sets(value)).expect("of one kind");
            jit.launch(&kernel, 1, 1, args!(&mut x))
                .expect("it is launched");
            if round % 2 == 1 {
                assert_eq!(x.to_vec().expect("it is read")[0], value);
            }
        }
        drop((x, jit));
        assert_eq!(fake.ledger().modules, 0, "round {round}");
        // A device knows the names of some thousands of kernels that are gone, and is warm once it does.
        if round % 20 == 19 && round >= 99 {
            watch.look();
        }
    }
    drop(device);
    assert_eq!(fake.ledger(), Ledger::default());
}

/// One kernel that is redefined again and again, with code that comes and goes in memory: what it was before leaves
/// nothing.
#[test]
fn redefinitions() {
    let fake = Fake::new();
    let (count, bound) = match minutes() {
        Some(_) => (100_000, 1 << 20),
        None => (60, 1),
    };
    let mut watch = Watch::new("redefinitions", &fake);
    let jit = compiling(of_fake(&fake), Some(bound));
    let kernel = Kernel::build("step", sets(0)).expect("a kernel");
    let mut x = jit.zeros::<u32>(4).expect("memory");
    for n in 1..=count {
        kernel.redefine(sets(n)).expect("of one kind");
        jit.launch(&kernel, 1, 1, args!(&mut x))
            .expect("it is launched");
        // A device knows the names of some thousands of kernels that are gone, and is warm once it does.
        if n % (count / 10) == 0 {
            jit.synchronize().expect("all is well");
            watch.look();
        }
    }
    let stats = jit.cache_stats();
    assert_eq!(stats.compiles, u64::from(count), "{stats:?}");
    let left = stats.compiles - stats.evictions;
    assert!(left <= 1 + (bound >> 14), "{stats:?}");
    assert!(fake.ledger().modules <= 1 + left, "{:?}", fake.ledger());
    drop((kernel, x, jit));
    assert_eq!(fake.ledger(), Ledger::default());
}

/// Many threads launch the same kernels, each from another of them on: each kernel is compiled and loaded once.
#[test]
fn threads_compile_each_kernel_once() {
    let (threads, count) = if minutes().is_some() {
        (64, 1000u32)
    } else {
        (16, 24)
    };
    let fake = Fake::new();
    for (computes, device) in [(false, of_fake(&fake)), (true, Device::cpu())] {
        let jit = compiling(device, None);
        let kernel = |n| Kernel::build("step", sets(n)).expect("a kernel");
        let kernels: Vec<_> = (0..count).map(kernel).collect();
        let begin = Barrier::new(threads);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (jit, kernels, begin) = (&jit, &kernels, &begin);
                scope.spawn(move || {
                    let mut x = jit.zeros::<u32>(4).expect("memory");
                    begin.wait();
                    // Two that begin at one place are waiting for one compile from the first on.
                    let first = thread / 2 * kernels.len() / threads;
                    for n in (first..kernels.len()).chain(0..first) {
                        jit.launch(&kernels[n], 1, 1, args!(&mut x))
                            .expect("it is launched");
                        if computes {
                            assert_eq!(x.to_vec().expect("it is read")[0] as usize, n);
                        }
                    }
                });
            }
        });
        let stats = jit.cache_stats();
        assert_eq!(stats.compiles, u64::from(count), "{stats:?}");
        if !computes {
            assert_eq!(fake.ledger().modules, u64::from(count));
        }
    }
}

#[test]
fn mixed_work_of_many_threads() {
    let seed = std::env::var("KILN_SOAK_SEED").map_or(Ok(1), |seed| seed.parse());
    let seed: u64 = seed.expect("KILN_SOAK_SEED is a number");
    let (threads, steps) = if minutes().is_some() {
        (32, u64::MAX)
    } else {
        (4, 60)
    };
    println!("mixed work of {threads} threads, seed {seed}");
    let fake = Fake::new();
    let (cpu, gpu) = (
        compiling(Device::cpu(), None),
        compiling(of_fake(&fake), None),
    );
    let kernel = Kernel::build("step", sets(0)).expect("a kernel");
    let (end, done) = (AtomicBool::new(false), Arc::new(AtomicU64::new(0)));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (cpu, gpu, kernel, end, done) = (&cpu, &gpu, &kernel, &end, &done);
            scope.spawn(move || {
                let mut random = Random(seed.wrapping_mul(1000).wrapping_add(thread));
                for _ in 0..steps {
                    let jit = if random.below(2) == 0 { cpu } else { gpu };
                    let played = step(jit, kernel, &mut random, std::ptr::eq(jit, cpu));
                    if let Err(error) = played {
                        end.store(true, Ordering::Relaxed);
                        panic!("seed {seed}, thread {thread}: {error}");
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                    if end.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        if let Some(minutes) = minutes() {
            watch_for(minutes, &fake, &end, &done);
        }
    });
    drop((cpu, gpu));
    // The thread that looks after copies may have the device for a moment more.
    assert_eq!(fake.ledger(), Ledger::default());
    assert_eq!(fake.race(), None);
}

/// Looks at the process now and then, and ends the work.
fn watch_for(minutes: u64, fake: &Fake, end: &AtomicBool, done: &AtomicU64) {
    let mut watch = Watch::new("mixed work", fake);
    let (start, whole) = (Instant::now(), Duration::from_secs(60 * minutes));
    let looks = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        while start.elapsed() < whole && !end.load(Ordering::Relaxed) {
            std::thread::sleep((whole / 12).min(Duration::from_secs(60)));
            watch.look();
            let ledger = fake.ledger();
            println!("{} steps, {ledger:?}", done.load(Ordering::Relaxed));
            assert!(ledger.total() < 2000, "{ledger:?}");
        }
    }));
    end.store(true, Ordering::Relaxed);
    if let Err(panic) = looks {
        std::panic::resume_unwind(panic);
    }
}
