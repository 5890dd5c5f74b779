//! The host's cost of a launch: the look-up of a cache hit, counted allocations, and on a GPU
//! `jit.launch` beside raw `cuLaunchKernel` in the same process.
//!
//! `cargo bench --bench launch`. The figures to meet are 150 ns without allocation for the hit, and
//! 1.10 times the driver call for the launch.
//!
//! - `--instructions`: times nothing, and counts the instructions that the host executes, those of the
//!   driver left out; so the driver may be one that runs nothing, named by `KILN_LIBCUDA`.

mod driver;
mod instructions;
#[path = "../tests/kernels/mod.rs"]
mod kernels;
mod report;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

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
    let jit = Jit::new()?;
    let mut report = Report::new("launch");
    let saxpy = kernels::saxpy()?;
    let x = jit.upload(&vec![1.0f32; 256])?;
    let mut y = jit.upload(&vec![2.0f32; 256])?;
    jit.launch(&saxpy, 1, 256, args!(2.0f32, &x, &mut y))?;
    jit.synchronize()?;
    if std::env::args().any(|arg| arg == "--instructions") {
        return count_instructions(&jit, &saxpy, &x, &mut y);
    }
    look_up(&jit, &saxpy, &x, &mut y, &mut report)?;
    with_consts(&jit, &mut y, &mut report)?;
    if jit.device().info().kind == DeviceKind::Cuda {
        beside_driver(&jit, &saxpy, &x, &mut y, &mut report)?;
    }
    report.print();
    Ok(())
}

/// Counts what the host executes for a look-up, and for launches on a GPU.
fn count_instructions(
    jit: &Jit,
    kernel: &Kernel,
    x: &Buffer<f32>,
    y: &mut Buffer<f32>,
) -> kiln::Result<()> {
    let print = |what: &str, run: &mut dyn FnMut() -> kiln::Result<()>| {
        // The first run compiles.
        let mut run = || Ok(run()?);
        match run().and_then(|()| instructions::count(instructions::Counted::ThisThread, &mut run))
        {
            Ok(count) => println!("{what:32} {count:8} instructions"),
            Err(error) => eprintln!("{what}: {error}"),
        }
    };
    print("cache hit look-up", &mut || {
        std::hint::black_box(jit.look_up(kernel, args!(2.0f32, x, &mut *y))?);
        Ok(())
    });
    if jit.device().info().kind != DeviceKind::Cuda {
        return Ok(());
    }
    let prepared = jit.compile(kernel, args!(2.0f32, x, &mut *y))?;
    print("jit.launch", &mut || {
        jit.launch(kernel, 1, 256, args!(2.0f32, x, &mut *y))
    });
    print("prepared.launch", &mut || {
        prepared.launch(1, 256, args!(2.0f32, x, &mut *y))
    });
    print("launch with a const argument", &mut || {
        add_const.launch::<3>(jit, (1, 32), y)
    });
    print("launch of a #[kernel] function", &mut || {
        add.launch(jit, (1, 32), y, 3)
    });
    Ok(())
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
