//! Long runs on the first CUDA device: whether the memory of host and device, files and threads stay as they are. A
//! program without a harness, so that it can be carried to a machine that has a GPU and no Rust.
//!
//! `soak [--minutes N] [--seed S]`, and the options of Rust's harness: a million launches, 20,000 kernels that are
//! compiled and evicted, and mixed work of 32 threads for what is left of the minutes, at least a quarter of them;
//! without `--minutes` a form of seconds. It ends with a table of what it saw. Without a CUDA device it says so and
//! runs nothing; with `--require` it fails instead, and with `--cpu` it has this machine's CPU.

#[path = "../jit-core/tests/held.rs"]
mod held;
#[path = "../jit-core/tests/mixed.rs"]
mod mixed;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use held::{Held, MORE_KIB};
use kiln::core::runtime::cuda::CudaContext;
use kiln::prelude::*;
use libtest_mimic::{Arguments, Failed, Trial};
use mixed::{Random, add, compiling, sets, step};
use suite::Outcome;
use suite::options::{takes, takes_number};

/// How often each part is looked at, by itself, as work that is under way holds memory. The first looks warm it.
const LOOKS: u64 = 12;
/// The look from which on nothing may grow; a device knows the names of some thousands of kernels that are gone.
const WARM: u64 = 4;
/// Threads of the mixed work.
const THREADS: u64 = 32;
/// How much less of the device's memory may be free than when it is warm, in KiB: drivers take it in large pieces.
const LESS_FREE_KIB: u64 = 32 << 10;
/// How many bytes of kernels stay in memory while others are compiled: of some dozens.
const MEMORY_BOUND: u64 = 1 << 20;

/// How much is done.
struct Load {
    launches: u64,
    compiles: u64,
    /// How long compiling goes on at most, and mixed work at least.
    most_compiling: Duration,
    least_mixed: Duration,
    whole: Duration,
    seed: u64,
}

impl Load {
    /// That of the minutes; `None`: of seconds.
    fn of(minutes: Option<u64>, seed: u64) -> Load {
        let seconds = minutes.map_or(4, |minutes| 60 * minutes);
        let (launches, compiles) = match minutes {
            Some(_) => (1_000_000, 20_000),
            None => (12_000, 96),
        };
        Load {
            launches,
            compiles,
            most_compiling: Duration::from_secs(seconds * 5 / 6),
            least_mixed: Duration::from_secs(seconds / 4),
            whole: Duration::from_secs(seconds),
            seed,
        }
    }
}

/// What the command line asks for beside what Rust's harness takes.
struct Asked {
    minutes: Option<u64>,
    seed: u64,
    cpu: bool,
    require: bool,
}

impl Asked {
    /// Takes its options out of the arguments.
    fn take(args: &mut Vec<String>) -> Result<Asked, String> {
        Ok(Asked {
            minutes: takes_number(args, "--minutes")?.map(|minutes| minutes.clamp(1, 24 * 60)),
            seed: takes_number(args, "--seed")?.unwrap_or_default(),
            cpu: takes(args, "--cpu"),
            require: takes(args, "--require"),
        })
    }
}

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().collect();
    let asked = match Asked::take(&mut args) {
        Ok(asked) => asked,
        Err(message) => {
            eprintln!("{message}; soak [--minutes N] [--seed S] [--cpu] [--require]");
            return ExitCode::from(2);
        }
    };
    let device = match asked.cpu {
        true => Device::cpu(),
        false => match Device::cuda(0) {
            Ok(device) => device,
            Err(error) => {
                println!("no CUDA device, so nothing was soaked: {error}");
                return u8::from(asked.require).into();
            }
        },
    };
    println!("running on {}, seed {}", device.info().name, asked.seed);
    let load = Load::of(asked.minutes, asked.seed);
    let test = Trial::test("soak", move || {
        soak(&device, &load, asked.cpu).map_err(Failed::from)
    });
    libtest_mimic::run(&Arguments::from_iter(args), vec![test]).exit_code()
}

/// All parts, also where one fails; the table is told at the end.
fn soak(device: &Device, load: &Load, is_cpu: bool) -> Outcome {
    let context = match is_cpu {
        true => None,
        false => Some(CudaContext::new(0)?),
    };
    let start = Instant::now();
    let mut rows = Vec::new();
    let mut part = |what, work: &mut dyn FnMut(&mut Watch) -> Outcome| {
        let mut watch = Watch::new(what, device, context.as_deref());
        let ended = work(&mut watch).and_then(|()| watch.outcome());
        rows.push(watch.row(ended.is_ok()));
        ended.map_err(|error| format!("{what}: {error}"))
    };
    let ended = [
        part("launches", &mut |watch| launches(device, load, watch)),
        part("compiled and evicted", &mut |watch| {
            compiles(device, load, watch)
        }),
        part("steps of mixed work", &mut |watch| {
            let left = load.whole.saturating_sub(start.elapsed());
            mixed_work(device, load, left.max(load.least_mixed), watch)
        }),
    ];
    let seconds = start.elapsed().as_secs_f32();
    println!("\n{} ({seconds:.0} s in all)\n\n{HEAD}", device.info().name);
    rows.iter().for_each(|row| println!("{row}"));
    println!();
    let wrong: Vec<String> = ended.into_iter().filter_map(Result::err).collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("; ").into()),
    }
}

const HEAD: &str = "| what | how many | seconds | heap, warm and end, KiB | free on the device, warm and end, MiB | buffers, bytes | \
     files | threads | flat |\n|---|---|---|---|---|---|---|---|---|";

/// What was there at a look.
#[derive(Copy, Clone)]
struct Look {
    held: Held,
    /// Free memory of the device in KiB, also of other processes.
    free_kib: Option<u64>,
    /// Bytes of buffers that are alive.
    used: u64,
}

/// Watches what process and device have, from when they are warm.
struct Watch<'a> {
    what: &'static str,
    device: &'a Device,
    context: Option<&'a CudaContext>,
    start: Instant,
    done: u64,
    looks: Vec<Look>,
}

impl<'a> Watch<'a> {
    fn new(what: &'static str, device: &'a Device, context: Option<&'a CudaContext>) -> Watch<'a> {
        Watch {
            what,
            device,
            context,
            start: Instant::now(),
            done: 0,
            looks: Vec::new(),
        }
    }

    /// Looks once more, when so much is done.
    fn look(&mut self, done: u64) -> Outcome {
        // What is kept of freed memory is no part of it.
        self.device.trim()?;
        let free = self.context.map(CudaContext::memory_info).transpose()?;
        // A thread that looks after copies may have a buffer for a moment more.
        let warm = self.looks.get(WARM as usize).map_or(0, |look| look.used);
        for _ in 0..100 {
            if self.device.memory_stats().used <= warm {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let Some(held) = Held::now() else {
            return Err("this system does not tell what a process has".into());
        };
        let look = Look {
            held,
            free_kib: free.map(|info| info.free >> 10),
            used: self.device.memory_stats().used,
        };
        self.done = done;
        self.looks.push(look);
        println!(
            "{} {}: {held}, {} bytes of buffers",
            done, self.what, look.used
        );
        Ok(())
    }

    /// The look at what is warm, and the last.
    fn ends(&self) -> Option<(Look, Look)> {
        let warm = self.looks.get(WARM as usize)?;
        Some((*warm, *self.looks.last()?))
    }

    /// The least heap of a third of the looks, when it was warm first and at the end. Single readings differ by some
    /// MiB, up and down, where compilers and drivers have worked on many threads; what is lost is in all of them.
    fn least_heaps(&self) -> Option<(u64, u64)> {
        let least = |looks: &[Look]| looks.iter().map(|look| look.held.heap_kib).min();
        let (_, warm) = self.looks.split_at_checked(WARM as usize)?;
        let third = warm.len().div_ceil(2);
        Some((least(&warm[..third])?, least(&warm[warm.len() - third..])?))
    }

    /// Whether all is as it was when it was warm.
    fn outcome(&self) -> Outcome {
        let (Some((warm, _)), Some((first, last))) = (self.ends(), self.least_heaps()) else {
            return Err("it ended before it was warm".into());
        };
        if last > first + MORE_KIB {
            return Err(format!("{first} KiB of the heap when warm, and {last} at the end").into());
        }
        for look in &self.looks[WARM as usize..] {
            let free = look.free_kib.zip(warm.free_kib);
            let has_less = free.is_some_and(|(now, then)| now + LESS_FREE_KIB < then);
            if has_less || look.used != warm.used || !look.held.has_files_and_threads_of(&warm.held)
            {
                let text = format!(
                    "{}, {:?} KiB free on the device, {} bytes of buffers when warm, and then {}, {:?}, {}",
                    warm.held, warm.free_kib, warm.used, look.held, look.free_kib, look.used
                );
                return Err(text.into());
            }
        }
        Ok(())
    }

    /// The row of the table.
    fn row(&self, is_flat: bool) -> String {
        let seconds = self.start.elapsed().as_secs_f32();
        let ends = self.ends().map(|(warm, end)| {
            let free = |look: &Look| {
                look.free_kib
                    .map_or("-".to_owned(), |kib| (kib >> 10).to_string())
            };
            format!(
                "{} {} | {} {} | {} {} | {} {} | {} {}",
                warm.held.heap_kib,
                end.held.heap_kib,
                free(&warm),
                free(&end),
                warm.used,
                end.used,
                warm.held.files,
                end.held.files,
                warm.held.threads,
                end.held.threads
            )
        });
        format!(
            "| {} | {} | {seconds:.1} | {} | {} |",
            self.what,
            self.done,
            ends.unwrap_or("| | | | ".to_owned()),
            if is_flat { "yes" } else { "**no**" }
        )
    }
}

/// Launches of one kernel, a tenth of them in a stream of its own.
fn launches(device: &Device, load: &Load, watch: &mut Watch<'_>) -> Outcome {
    let jit = compiling(device.clone(), None);
    let stream = jit.stream()?;
    let (mut x, mut want) = (jit.zeros::<u32>(32)?, 0u32);
    let each = load.launches.div_ceil(LOOKS);
    for look in 1..=LOOKS {
        for n in 0..each as u32 {
            match n % 10 {
                0 => add.launch(&stream, (1, 32), &mut x, n)?,
                _ => add.launch(&jit, (1, 32), &mut x, n)?,
            }
            want = want.wrapping_add(n);
        }
        if x.to_vec()? != [want; 32] {
            return Err("a launch is lost, or was made twice".into());
        }
        jit.synchronize()?;
        watch.look(look * each)?;
    }
    Ok(())
}

/// Kernels that are compiled, launched, and evicted as others come: all threads of the machine do so, as a compile is
/// most of the time on one.
fn compiles(device: &Device, load: &Load, watch: &mut Watch<'_>) -> Outcome {
    let jit = compiling(device.clone(), Some(MEMORY_BOUND));
    let threads = std::thread::available_parallelism()?.get().min(16) as u64;
    let each = load.compiles.div_ceil(LOOKS * threads);
    let start = Instant::now();
    let numbers = AtomicU64::new(0);
    let compile = |kernel: &Kernel, x: &mut Buffer<u32>| -> Outcome {
        let number = numbers.fetch_add(1, Ordering::Relaxed) as u32 + 1;
        kernel.redefine(sets(number))?;
        jit.launch(kernel, 1, 1, args!(&mut *x))?;
        match x.to_vec()?[0] == number {
            true => Ok(()),
            false => Err(format!("kernel {number} does not write its number").into()),
        }
    };
    for _ in 1..=LOOKS {
        rounds(threads, |_| {
            let (kernel, mut x) = (Kernel::build("step", sets(0))?, jit.zeros::<u32>(4)?);
            (0..each).try_for_each(|_| match start.elapsed() > load.most_compiling {
                true => {
                    let done = numbers.load(Ordering::Relaxed);
                    Err(format!("{done} of {} in the time there is", load.compiles).into())
                }
                false => compile(&kernel, &mut x),
            })
        })?;
        // Of each kernel that is loaded a driver has some 50 KiB: as many are kept at each look, those that are left when
        // some were just let go.
        let (kernel, mut x) = (Kernel::build("step", sets(0))?, jit.zeros::<u32>(4)?);
        let gone = jit.cache_stats().evictions;
        while gone > 0 && jit.cache_stats().evictions == gone {
            compile(&kernel, &mut x)?;
        }
        drop((kernel, x));
        jit.synchronize()?;
        watch.look(numbers.load(Ordering::Relaxed))?;
    }
    let stats = jit.cache_stats();
    let done = numbers.into_inner();
    // What stays is within the bound; a kernel counts as 16 KiB and its code.
    match stats.compiles == done && done - stats.evictions <= MEMORY_BOUND >> 14 {
        true => Ok(()),
        false => Err(format!("{done} kernels, and {stats:?}").into()),
    }
}

/// Mixed work of many threads, in rounds, of which each ends before it is looked at what there is.
fn mixed_work(device: &Device, load: &Load, whole: Duration, watch: &mut Watch<'_>) -> Outcome {
    let jit = compiling(device.clone(), None);
    let kernel = Kernel::build("step", sets(0))?;
    let done = AtomicU64::new(0);
    for look in 1..=LOOKS {
        let (start, failed) = (Instant::now(), AtomicBool::new(false));
        rounds(THREADS, |thread| {
            let seed = load.seed.wrapping_mul(1000) + look * THREADS + thread;
            let mut random = Random(seed);
            while start.elapsed() < whole / LOOKS as u32 && !failed.load(Ordering::Relaxed) {
                let played = step(&jit, &kernel, &mut random, true);
                if let Err(error) = played {
                    failed.store(true, Ordering::Relaxed);
                    return Err(format!("round {look}, thread {thread}: {error}").into());
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })?;
        jit.synchronize()?;
        watch.look(done.load(Ordering::Relaxed))?;
    }
    Ok(())
}

/// Runs the work in so many threads to its end; the first error.
fn rounds(threads: u64, work: impl Fn(u64) -> Outcome + Sync) -> Outcome {
    std::thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread).map_err(|error| error.to_string())))
            .collect();
        let ended: Vec<_> = started.into_iter().map(|thread| thread.join()).collect();
        for ended in ended {
            ended.map_err(|_| "a thread has panicked")??;
        }
        Ok(())
    })
}
