//! The host's cost of a launch: the look-up of a cache hit, counted allocations, and on a GPU
//! `jit.launch` beside raw `cuLaunchKernel` in the same process.
//!
//! `cargo bench --bench launch`. The figures to meet: a launch of a kernel's own method or of one made ready 1.03
//! times the driver's call, one by `args!` 1.06 (1.15 with 256 numbers), for each list of `arguments.rs`, one with 16
//! slices to several streams in turn 1.06; a look-up among 2,000 kernels 1.3 times one among one; no allocation; an empty
//! block on a CPU 0.3 us.
//!
//! - `--instructions`: times nothing, and counts the instructions that the host executes, those of the driver and
//!   of what it calls left out. Without a GPU it does so with the driver that the tests have, which runs nothing;
//!   `KILN_LIBCUDA` names another. A word besides keeps those whose name has it.

mod arguments;
mod driver;
mod instructions;
#[path = "../tests/kernels/mod.rs"]
mod kernels;
mod report;

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arguments::List;
use kiln::core::runtime::cuda::Driver;
use kiln::prelude::*;
use report::{Report, median};

/// Counts allocations.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> kiln::Result<()> {
    if std::env::args().any(|arg| arg == "--instructions") {
        return count_instructions();
    }
    let jit = Jit::new()?;
    let mut report = Report::new("launch");
    let x = jit.upload(&vec![1.0f32; 256])?;
    let mut y = jit.upload(&vec![2.0f32; 256])?;
    let saxpy = kernels::saxpy()?;
    jit.launch(&saxpy, 1, 256, args!(2.0f32, &x, &mut y))?;
    jit.synchronize()?;
    look_up(&jit, &saxpy, &x, &mut y, &mut report)?;
    with_consts(&jit, &mut y, &mut report)?;
    if jit.device().info().kind == DeviceKind::Cuda {
        beside_driver(&jit, &saxpy, &x, &mut y, &mut report)?;
        lists_beside_driver(&jit, &x, &mut report)?;
        streams_beside_driver(&jit, &x, &mut report)?;
        threads_beside_driver(&jit, &x, &mut report)?;
    }
    empty_block(&mut report)?;
    among_many(&jit, &x, &mut y, &mut report)?;
    report.print();
    Ok(())
}

/// Counts what the host executes for a look-up and for launches.
fn count_instructions() -> kiln::Result<()> {
    let jit = counted_jit()?;
    let (x, mut y) = (jit.zeros::<f32>(256)?, jit.zeros::<f32>(256)?);
    let saxpy = kernels::saxpy()?;
    let prepared = jit.compile(&saxpy, args!(2.0f32, &x, &mut y))?;
    // Only a launch leaves what the next look-up of its thread finds.
    jit.launch(&saxpy, 1, 256, args!(2.0f32, &x, &mut y))?;
    print_count("cache hit look-up", &mut || {
        std::hint::black_box(jit.look_up(&saxpy, args!(2.0f32, &x, &mut y))?);
        Ok(())
    });
    println!(
        "{:32} {:>8} {:>8} {:>8} {:>8}",
        "", "before", "there", "back", "behind"
    );
    print_parts("saxpy, args!", &mut || {
        let args = args!(2.0f32, &x, &mut y);
        arguments::marked(args, || jit.launch(&saxpy, 1, 256, args))
    });
    print_parts("saxpy, prepared", &mut || {
        let args = args!(2.0f32, &x, &mut y);
        arguments::marked(args, || prepared.launch(1, 256, args))
    });
    print_parts("a const argument, typed", &mut || {
        arguments::marked(&[], || add_const.launch::<3>(&jit, (1, 32), &mut y))
    });
    for list in arguments::lists(&jit, &x)? {
        for (way, mut launch) in list.ways {
            print_parts(&format!("{}, {way}", list.name), &mut launch);
        }
    }
    // The buffer was written by the device's own stream, and each of these has read it since.
    let beside = jit.stream()?;
    let [_, _, _, slices, _] = arguments::lists(&beside, &x)?;
    for (way, mut launch) in slices.ways {
        print_parts(
            &format!("{}, another stream, {way}", slices.name),
            &mut launch,
        );
    }
    let cpu = Jit::on(Device::cpu());
    empty.launch(&cpu, (1, 256))?;
    print_count("an empty block on a CPU", &mut || {
        empty.launch(&cpu, (1, 256))
    });
    print_count("waiting for it", &mut || cpu.synchronize());
    let mut graph = jit.graph((&mut y, 1u32), |g, (mut y, n)| {
        (0..STEPS).try_for_each(|_| g.launch(&add, 1, 32, args!(&mut y, &n)))
    })?;
    let mut n = 1u32;
    print_count(&format!("a graph, {STEPS} launches set anew"), &mut || {
        n += 1;
        graph.replay(args!(&mut y, n))
    });
    Ok(())
}

/// Prints how many instructions a run takes, if it is asked for, once it is warm.
fn print_count(what: &str, run: &mut dyn FnMut() -> kiln::Result<()>) {
    print_counted(what, run, &|mut run| {
        let count = instructions::count(instructions::Counted::ThisThread, &mut run)?;
        Ok(format!("{count:8}"))
    });
}

/// Prints how many instructions a launch takes in each of its parts: what is before the call and behind it are the
/// arguments and this bench's own.
fn print_parts(what: &str, run: &mut dyn FnMut() -> kiln::Result<()>) {
    print_counted(what, run, &|mut run| {
        let instructions::Parts {
            before,
            there,
            back,
            behind,
        } = instructions::parts(&mut run)?;
        Ok(format!("{before:8} {there:8} {back:8} {behind:8}"))
    });
}

/// What counts a run, and says what it was.
type Count<'a> =
    dyn Fn(&mut dyn FnMut() -> instructions::Outcome<()>) -> instructions::Outcome<String> + 'a;

fn print_counted(what: &str, run: &mut dyn FnMut() -> kiln::Result<()>, count: &Count<'_>) {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    if wanted.is_some_and(|wanted| !what.contains(&wanted)) {
        return;
    }
    // The first run compiles, the second one makes ready what is made once besides.
    let mut run = || Ok(run()?);
    match run().and_then(|()| run()).and_then(|()| count(&mut run)) {
        Ok(count) => println!("{what:32} {count}"),
        Err(error) => eprintln!("{what}: {error}"),
    }
}

/// Launches of a graph whose instructions are counted.
const STEPS: u32 = 100;

/// A `Jit` for the GPU, or else for the driver of the tests.
fn counted_jit() -> kiln::Result<Jit> {
    // One that was named and does not open is no reason to count with another.
    let is_named = std::env::var_os("KILN_LIBCUDA").is_some();
    match Device::cuda(0) {
        Ok(device) => return Ok(Jit::on(device)),
        Err(error) if is_named => return Err(error.into()),
        Err(_) => (),
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join(format!("libcuda-{}.so", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("jit-core/tests/fake-cuda/lib.rs");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2024", "--crate-type=cdylib", "-Cpanic=abort"]);
    let built = rustc.arg("-O").arg("-o").arg(&library).arg(&source);
    let built = built.status().is_ok_and(|status| status.success());
    assert!(built, "rustc compiles {}", source.display());
    let device = Driver::open(&library).map(|driver| Device::cuda_of(driver, 0));
    let _ = std::fs::remove_file(&library);
    Ok(Jit::on(device.expect("the tests' driver opens")?))
}

fn look_up(
    jit: &Jit,
    kernel: &Kernel,
    x: &Buffer<f32>,
    y: &mut Buffer<f32>,
    report: &mut Report,
) -> kiln::Result<()> {
    const BATCH: u32 = 1000;
    let mut times = Vec::new();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let mut batch = || -> kiln::Result<f64> {
        let start = Instant::now();
        for _ in 0..BATCH {
            std::hint::black_box(jit.look_up(kernel, args!(2.0f32, x, &mut *y))?);
        }
        Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH))
    };
    let first = batch()?;
    let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
    times.push(first);
    for _ in 0..200 {
        times.push(batch()?);
    }
    report.against("cache hit look-up", median(&times), "ns", "goal", 150.0);
    report.row("allocations in 1000 hits", allocated as f64, "");
    Ok(())
}

/// The look-up of one kernel after the other among 2,000, beside that of one.
fn among_many(
    jit: &Jit,
    x: &Buffer<f32>,
    y: &mut Buffer<f32>,
    report: &mut Report,
) -> kiln::Result<()> {
    let kernels: Vec<Kernel> = (0..2000).map(numbered).collect::<kiln::Result<_>>()?;
    // Threads compile, and this one's launches find what they made.
    let compiled = std::thread::scope(|scope| {
        let compile = |kernels: &[Kernel]| -> kiln::Result<()> {
            let mut y = jit.zeros::<f32>(256)?;
            kernels
                .iter()
                .try_for_each(|kernel| jit.launch(kernel, 1, 1, args!(x, &mut y)))
        };
        let parts: Vec<_> = kernels
            .chunks(kernels.len().div_ceil(THREADS))
            .map(|part| scope.spawn(move || compile(part)))
            .collect();
        let ends = parts.into_iter().map(|part| part.join().expect("a thread"));
        ends.collect::<kiln::Result<Vec<()>>>()
    });
    compiled?;
    for kernel in &kernels {
        jit.launch(kernel, 1, 1, args!(x, &mut *y))?;
    }
    let mut time = |kernels: &[Kernel]| -> kiln::Result<f64> {
        let mut times = Vec::new();
        for _ in 0..50 {
            let start = Instant::now();
            for kernel in kernels.iter().cycle().take(2000) {
                std::hint::black_box(jit.look_up(kernel, args!(x, &mut *y))?);
            }
            times.push(start.elapsed().as_secs_f64() * 1e9 / 2000.0);
        }
        Ok(median(&times))
    };
    let (one, many) = (time(&kernels[..1])?, time(&kernels)?);
    report.against("look-up among 2000 kernels", many, "ns", "among one", one);
    Ok(())
}

/// A kernel that differs from those of other numbers.
fn numbered(number: u32) -> kiln::Result<Kernel> {
    Kernel::build("numbered", |k| {
        let (x, y) = (k.slice("x", k.ty::<f32>()), k.slice_mut("y", k.ty::<f32>()));
        y.at(0).set(x.at(0).get() + number as f32);
    })
}

/// Adds a number that is compiled in, and one that is not.
#[kernel]
fn add_const<const N: u32>(y: &mut [f32]) {
    y[thread_idx().x] += N as f32;
}

#[kernel]
fn add(y: &mut [f32], n: u32) {
    y[thread_idx().x] += n as f32;
}

/// Launches of one block whose kernel is ready, with a const argument beside those without.
fn with_consts(jit: &Jit, y: &mut Buffer<f32>, report: &mut Report) -> kiln::Result<()> {
    const BATCH: u32 = 1000;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut time =
        |launch: &mut dyn FnMut(&mut Buffer<f32>) -> kiln::Result<()>| -> kiln::Result<f64> {
            let start = Instant::now();
            for _ in 0..BATCH {
                launch(y)?;
            }
            jit.synchronize()?;
            Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH))
        };
    for _ in 0..200 {
        with.push(time(&mut |y| add_const.launch::<3>(jit, (1, 32), y))?);
        without.push(time(&mut |y| add.launch(jit, (1, 32), y, 3))?);
    }
    let without = median(&without);
    let what = "launch with a const argument";
    report.against(what, median(&with), "ns", "without", without);
    Ok(())
}

/// Microseconds a launch, of many after the device has been drained.
fn time_batch(jit: &Jit, launch: &mut dyn FnMut() -> kiln::Result<()>) -> kiln::Result<f64> {
    const BATCH: u32 = 200;
    jit.synchronize()?;
    let start = Instant::now();
    for _ in 0..BATCH {
        launch()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH))
}

/// Batches of launches with the device drained between them, the two ways in turn.
fn beside_driver(
    jit: &Jit,
    kernel: &Kernel,
    x: &Buffer<f32>,
    y: &mut Buffer<f32>,
    report: &mut Report,
) -> kiln::Result<()> {
    let time = |launch: &mut dyn FnMut() -> kiln::Result<()>| time_batch(jit, launch);
    let prepared = jit.compile(kernel, args!(2.0f32, x, &mut *y))?;
    let ptx = jit.inspect(kernel, args!(2.0f32, x, &mut *y))?;
    let code = ptx.compiled().and_then(|kernel| kernel.code.ptx());
    let code = code.expect("a GPU runs PTX");
    let function = driver::load(code.text.as_bytes(), &code.entry);
    // The same code with the same arguments: a, x, x.len, y, y.len, and no fault channel, which
    // this launch does not touch.
    let (mut a, mut xs, mut n, mut ys, mut channel) =
        (2.0f32, x.address(), 256u32, y.address(), 0u64);
    let mut params = [
        (&raw mut a).cast(),
        (&raw mut xs).cast(),
        (&raw mut n).cast(),
        (&raw mut ys).cast(),
        (&raw mut n).cast(),
        (&raw mut channel).cast(),
    ];
    // SAFETY: the parameters are those of the kernel, in order, and the buffers are alive.
    let mut raw = || unsafe { driver::launch(function, (1, 1), (256, 1), &mut params) };
    let (mut by_jit, mut by_prepared, mut by_driver) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..100 {
        by_driver.push(time(&mut || {
            raw();
            Ok(())
        })?);
        by_jit.push(time(&mut || {
            jit.launch(kernel, 1, 256, args!(2.0f32, x, &mut *y))
        })?);
        by_prepared.push(time(&mut || {
            prepared.launch(1, 256, args!(2.0f32, x, &mut *y))
        })?);
    }
    jit.synchronize()?;
    let driver = median(&by_driver);
    for (what, times) in [("jit.launch", by_jit), ("prepared.launch", by_prepared)] {
        report.against(what, median(&times), "us", "cuLaunchKernel", driver);
    }
    Ok(())
}

/// Launches of each list of arguments in each way, beside the driver's own of the same code. The ratio is the median
/// of those of neighbouring batches.
fn lists_beside_driver(jit: &Jit, x: &Buffer<f32>, report: &mut Report) -> kiln::Result<()> {
    for list in arguments::lists(jit, x)? {
        let List {
            name,
            code,
            mut words,
            ways,
        } = list;
        let code = code.expect("a GPU runs PTX");
        let function = driver::load(code.text.as_bytes(), &code.entry);
        let mut params: Vec<_> = words
            .iter_mut()
            .map(|word| (&raw mut *word).cast())
            .collect();
        // SAFETY: the parameters are those of the kernel, in order, and the buffer is alive.
        let mut raw = || unsafe { driver::launch(function, (1, 1), (32, 1), &mut params) };
        for (way, mut launch) in ways {
            let what = format!("{name}, {way}");
            one_beside_driver(jit, &what, &mut launch, &mut raw, report)?;
        }
        if words.is_empty() {
            continue;
        }
        // Whether many parameters are better passed by a pointer each or as one block.
        let mut block: Vec<u8> = match name.ends_with("scalars") {
            true => words
                .iter()
                .flat_map(|word| (*word as u32).to_le_bytes())
                .collect(),
            false => words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        };
        if !name.ends_with("scalars") {
            // The driver takes no byte behind the last parameter, which is a length of 4.
            block.truncate(block.len() - 4);
        }
        let mut in_block = || {
            // SAFETY: the parameters are these numbers, a length in the first half of its word.
            unsafe { driver::launch_block(function, &mut block) };
            Ok(())
        };
        let what = format!("{name}, the driver's by one block");
        one_beside_driver(jit, &what, &mut in_block, &mut raw, report)?;
    }
    jit.synchronize()
}

/// Batches of launches and of the driver's own in turn.
fn one_beside_driver(
    jit: &Jit,
    what: &str,
    launch: &mut dyn FnMut() -> kiln::Result<()>,
    raw: &mut dyn FnMut(),
    report: &mut Report,
) -> kiln::Result<()> {
    launch()?;
    let (mut times, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        let by_driver = time_batch(jit, &mut || {
            raw();
            Ok(())
        })?;
        let time = time_batch(jit, launch)?;
        times.push(time);
        ratios.push(time / by_driver);
    }
    let (time, ratio) = (median(&times), median(&ratios));
    report.against(what, time, "us", "cuLaunchKernel", time / ratio);
    Ok(())
}

/// Streams that one thread launches to in turn.
const STREAMS: usize = 4;

/// Launches with 16 slices to several streams in turn, beside the driver's own to as many. All read one buffer, so that no
/// stream waits for another.
fn streams_beside_driver(jit: &Jit, x: &Buffer<f32>, report: &mut Report) -> kiln::Result<()> {
    let streams = (0..STREAMS)
        .map(|_| jit.stream())
        .collect::<kiln::Result<Vec<_>>>()?;
    let of_slices = |stream| -> kiln::Result<List<'_>> {
        let [_, _, _, list, _] = arguments::lists(stream, x)?;
        Ok(list)
    };
    let lists = streams.iter().map(|stream| of_slices(stream));
    let mut lists = lists.collect::<kiln::Result<Vec<_>>>()?;
    let code = lists[0].code.take().expect("a GPU runs PTX");
    let function = driver::load(code.text.as_bytes(), &code.entry);
    let driver_streams: Vec<_> = (0..STREAMS).map(|_| driver::Stream::new()).collect();
    let mut words = lists[0].words.clone();
    let mut params: Vec<_> = words
        .iter_mut()
        .map(|word| (&raw mut *word).cast())
        .collect();
    let (mut turn, mut raw_turn) = (0, 0);
    let mut raw = || {
        raw_turn = (raw_turn + 1) % STREAMS;
        // SAFETY: the parameters are those of the kernel, in order, and the buffer is alive.
        unsafe { driver_streams[raw_turn].launch(function, &mut params) };
    };
    for way in 0..lists[0].ways.len() {
        let what = format!("16 slices on {STREAMS} streams, {}", lists[0].ways[way].0);
        let mut launch = || {
            turn = (turn + 1) % STREAMS;
            lists[turn].ways[way].1()
        };
        one_beside_driver(jit, &what, &mut launch, &mut raw, report)?;
    }
    jit.synchronize()
}

/// How many threads launch at once.
const THREADS: usize = 16;

/// Launches from 16 threads at once, beside the driver's own from as many: to one stream, and to a stream each.
fn threads_beside_driver(jit: &Jit, x: &Buffer<f32>, report: &mut Report) -> kiln::Result<()> {
    let [_, list, ..] = arguments::lists(jit, x)?;
    let code = list.code.expect("a GPU runs PTX");
    let function = driver::load(code.text.as_bytes(), &code.entry);
    let streams = (0..THREADS)
        .map(|_| jit.stream())
        .collect::<kiln::Result<Vec<_>>>()?;
    let driver_streams: Vec<_> = (0..THREADS).map(|_| driver::Stream::new()).collect();
    let raw = |stream: &driver::Stream| {
        let mut words = list.words.clone();
        let mut params: Vec<_> = words
            .iter_mut()
            .map(|word| (&raw mut *word).cast())
            .collect();
        // SAFETY: as for launches from one thread.
        unsafe { stream.launch(function, &mut params) };
    };
    let typed = |jit: &Jit| arguments::launch_one_slice(jit, x).expect("a launch");
    let mut compare = |what: &str, raw: &ByThread<'_>, typed: &ByThread<'_>| -> kiln::Result<()> {
        let (mut times, mut ratios) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            let (by_driver, by_kiln) = (by_threads(jit, raw)?, by_threads(jit, typed)?);
            times.push(by_kiln);
            ratios.push(by_kiln / by_driver);
        }
        let (time, ratio) = (median(&times), median(&ratios));
        report.against(what, time, "us", "cuLaunchKernel", time / ratio);
        Ok(())
    };
    compare(
        "1 slice, typed, 16 threads",
        &|_| raw(&driver::Stream::DEFAULT),
        &|_| typed(jit),
    )?;
    compare(
        "1 slice, typed, 16 threads and streams",
        &|thread| raw(&driver_streams[thread]),
        &|thread| typed(&streams[thread]),
    )
}

/// What each thread does, by its number.
type ByThread<'a> = dyn Fn(usize) + Sync + 'a;

/// Microseconds a launch, of 16 threads that launch at once after the device has been drained.
fn by_threads(jit: &Jit, launch: &ByThread<'_>) -> kiln::Result<f64> {
    const LAUNCHES: usize = 50;
    jit.synchronize()?;
    let context = &driver::Context::current();
    let (begin, end) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    // Who panics comes to the barriers all the same, as the others wait there.
    let caught = |run: &dyn Fn()| catch_unwind(AssertUnwindSafe(run));
    let took = std::thread::scope(|scope| {
        let (begin, end, caught) = (&begin, &end, &caught);
        let of_thread = move |thread| {
            // What a thread does once is not measured.
            let entered = caught(&|| {
                context.enter();
                launch(thread);
            });
            begin.wait();
            let launched =
                entered.and_then(|()| caught(&|| (0..LAUNCHES).for_each(|_| launch(thread))));
            end.wait();
            if let Err(panic) = launched {
                resume_unwind(panic);
            }
        };
        for thread in 0..THREADS {
            scope.spawn(move || of_thread(thread));
        }
        begin.wait();
        let start = Instant::now();
        end.wait();
        start.elapsed()
    });
    Ok(took.as_secs_f64() * 1e6 / (THREADS * LAUNCHES) as f64)
}

#[kernel]
fn empty() {}

/// Launches of one empty block on a CPU, each waited for.
fn empty_block(report: &mut Report) -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let mut launch = || {
        empty.launch(&jit, (1, 256))?;
        jit.synchronize()
    };
    launch()?;
    let mut times = Vec::new();
    for _ in 0..100 {
        times.push(time_batch(&jit, &mut launch)?);
    }
    report.against("an empty block on a CPU", median(&times), "us", "goal", 0.3);
    Ok(())
}
