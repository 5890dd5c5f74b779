//! Long runs: whether memory, open files, threads and what is alive on a device stay as they are.
//!
//! Here in a form of seconds, which looks at the device alone, as other tests run beside. `cargo xtask soak` sets
//! `KILN_SOAK_MINUTES`, and runs these by themselves.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use kiln::core::hook::HookSet;
use kiln::prelude::*;

use crate::fake::{Fake, Ledger};

/// How much more memory a process may have at the end than when it is warm, in KiB.
const MORE_KIB: u64 = 64 << 10;

/// What a process has.
#[derive(Copy, Clone, Debug)]
struct Held {
    kib: u64,
    files: usize,
    threads: u64,
}

impl Held {
    /// What this one has, where the system tells.
    fn now() -> Option<Held> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let number = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Held {
            kib: number("VmRSS:")?,
            files: fs::read_dir("/proc/self/fd").ok()?.count(),
            threads: number("Threads:")?,
        })
    }
}

/// How long the long form of the mixed work takes; `None`: the short forms.
fn minutes() -> Option<u64> {
    let minutes = std::env::var("KILN_SOAK_MINUTES").ok()?;
    Some(minutes.parse().expect("KILN_SOAK_MINUTES is a number"))
}

/// Watches what the process has, from when it is warm.
struct Watch {
    what: &'static str,
    warm: Option<Held>,
}

impl Watch {
    fn new(what: &'static str) -> Watch {
        Watch { what, warm: None }
    }

    /// Looks once more; the first time what is there is what may be there.
    fn look(&mut self) {
        let (Some(_), Some(now)) = (minutes(), Held::now()) else {
            return;
        };
        let warm = *self.warm.get_or_insert(now);
        println!("{}: {now:?}", self.what);
        let is_flat = now.kib <= warm.kib + MORE_KIB
            && now.files <= warm.files + 8
            && now.threads <= warm.threads + 8;
        assert!(
            is_flat,
            "{}: {warm:?} when warm, and now {now:?}",
            self.what
        );
    }
}

#[kernel]
fn add(x: &mut [u32], n: u32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] += n;
    }
}

fn sets(value: u32) -> impl Fn(&KernelBuilder) {
    move |k| k.slice_mut("x", k.ty::<u32>()).at(0).set(value)
}

fn of_fake(fake: &Fake) -> Device {
    Device::cuda_of(fake.open().expect("it opens"), 0).expect("a device")
}

/// Numbers by a rule, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn launches() {
    let fake = Fake::new();
    let count = if minutes().is_some() {
        1_000_000
    } else {
        20_000
    };
    let mut watch = Watch::new("launches");
    let jit = Jit::on(of_fake(&fake));
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
    let mut watch = Watch::new("compiles and drops");
    for round in 0..rounds {
        let device = if round % 2 == 0 {
            device.clone()
        } else {
            Device::cpu()
        };
        let jit = Jit::with(device, HookSet::new(), JitOptions::default());
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
        if round % 20 == 19 {
            watch.look();
        }
    }
    drop(device);
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
        let jit = Jit::with(device, HookSet::new(), JitOptions::default());
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

/// What one of many threads does next; the CPU device's results are checked.
fn step(jit: &Jit, kernel: &Kernel, random: &mut Random, computes: bool) -> kiln::Result<()> {
    let n = random.below(1000) as u32;
    let mut x = jit.upload(&[n; 64])?;
    let mut want = n;
    match random.below(8) {
        0 => x.fill(n + 1).map(|()| want = n + 1)?,
        1 => {
            let stream = jit.stream()?;
            add.launch(&stream, (2, 32), &mut x, 5)?;
            want += 5;
            if random.below(2) == 0 {
                stream.synchronize()?;
            }
        }
        2 => {
            let values = jit.pinned(&[n + 2; 64])?;
            let later = x.write_later(values)?;
            if random.below(2) == 0 {
                later.wait()?;
            }
            want = n + 2;
        }
        3 => jit.record()?.synchronize()?,
        4 => {
            let stream = jit.stream()?;
            stream.then(|| {})?;
        }
        5 => {
            let y = jit.zeros::<u32>(1 << random.below(16))?;
            drop(y);
        }
        6 => {
            // Of few kernels, each of which is compiled once.
            kernel.redefine(sets(random.below(8) as u32))?;
            let mut y = jit.zeros::<u32>(4)?;
            jit.launch(kernel, 1, 1, args!(&mut y))?;
        }
        _ => {
            for _ in 0..20 {
                add.launch(jit, (2, 32), &mut x, 1)?;
            }
            want += 20;
        }
    }
    let is = x.to_vec()?;
    if computes {
        assert_eq!(is, [want; 64]);
    }
    Ok(())
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
    let (cpu, gpu) = (Jit::on(Device::cpu()), Jit::on(of_fake(&fake)));
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
    let mut watch = Watch::new("mixed work");
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
