//! Kernels against their CUDA C++ twins, compiled by nvcc -O3 and run in the same process.
//!
//! `cargo bench --bench gpu` on a machine with a CUDA device and nvcc. The goals: saxpy on 2^28
//! elements within 2 % of nvcc's, naive and tiled matrix products of 4096 x 4096 within 5 %.
//! nvcc's kernels check no bounds, so Kiln's are built both ways.

mod driver;
#[path = "../tests/kernels/mod.rs"]
mod kernels;
mod report;

use std::ffi::c_void;
use std::time::Instant;

use kiln::core::runtime::Event;
use kiln::core::runtime::cuda::CudaContext;
use kiln::core::target::Target;
use kiln::prelude::*;
use report::{Report, median};

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let Target::Ptx(target) = jit.target().clone() else {
        println!("no CUDA device: nothing to measure");
        return Ok(());
    };
    let mut report = Report::new("gpu");
    first_buffers(&jit, &mut report)?;
    saxpy(&jit, target.sm, &mut report)?;
    matmul(&jit, target.sm, &mut report)?;
    buffers(&jit, &mut report)?;
    report.print();
    Ok(())
}

/// What the process's first buffer, the next one and the first of the pool cost the host, beside `cuMemAlloc`: a driver
/// makes ready for pools when memory is asked of one for the first time. To be called before there is any buffer.
fn first_buffers(jit: &Jit, report: &mut Report) -> kiln::Result<()> {
    const BYTES: usize = 1 << 10;
    let driver = CudaContext::new(0).expect("the device is open");
    let start = Instant::now();
    let address = driver.alloc(BYTES as u64).expect("memory");
    let direct = start.elapsed().as_secs_f64() * 1e6;
    let mut buffers = Vec::new();
    for which in ["first", "second"] {
        let start = Instant::now();
        // SAFETY: nobody reads it.
        buffers.push(unsafe { jit.uninit::<u8>(BYTES)? });
        let took = start.elapsed().as_secs_f64() * 1e6;
        let name = format!("{which} buffer of the process, 1 KiB");
        report.against(&name, took, "us", "cuMemAlloc", direct);
    }
    // From the first that is dropped on, memory is the pool's.
    buffers.pop();
    let start = Instant::now();
    // SAFETY: as above.
    buffers.push(unsafe { jit.uninit::<u8>(BYTES + 1)? });
    let took = start.elapsed().as_secs_f64() * 1e6;
    let name = "first buffer of the pool, 1 KiB";
    report.against(name, took, "us", "cuMemAlloc", direct);
    driver.free(address).expect("it is freed");
    Ok(())
}

/// What a buffer costs the host from its allocation to its end, beside `cuMemAlloc` and `cuMemFree`, which are what a
/// buffer was before it came from a pool.
fn buffers(jit: &Jit, report: &mut Report) -> kiln::Result<()> {
    const TURNS: u32 = 200;
    let driver = CudaContext::new(0).expect("the device is open");
    // What was dropped of the first buffers is not used again.
    jit.synchronize()?;
    for bytes in [1usize << 10, 1 << 20, 64 << 20] {
        let (mut pool, mut direct) = (Vec::new(), Vec::new());
        for _ in 0..11 {
            let start = Instant::now();
            for _ in 0..TURNS {
                // SAFETY: nobody reads it.
                drop(unsafe { jit.uninit::<u8>(bytes)? });
            }
            pool.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(TURNS));
            let start = Instant::now();
            for _ in 0..TURNS {
                let address = driver.alloc(bytes as u64).expect("memory");
                driver.free(address).expect("it is freed");
            }
            direct.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(TURNS));
        }
        let kib = bytes >> 10;
        let (pool, direct) = (median(&pool), median(&direct));
        report.row(
            &format!("buffer of {kib} KiB, allocated and dropped"),
            pool,
            "us",
        );
        report.row(
            &format!("cuMemAlloc and cuMemFree of {kib} KiB"),
            direct,
            "us",
        );
    }
    Ok(())
}

/// Median milliseconds of `runs` launches of each of several variants, in turn.
fn time(
    jit: &Jit,
    runs: usize,
    variants: &mut [&mut dyn FnMut() -> kiln::Result<()>],
) -> kiln::Result<Vec<f64>> {
    let mut times = vec![Vec::new(); variants.len()];
    for run in 0..runs + 3 {
        for (times, launch) in times.iter_mut().zip(variants.iter_mut()) {
            let from = Event::record(jit.device())?;
            launch()?;
            let took = from.elapsed_ms(&Event::record(jit.device())?)?;
            // The first runs warm up.
            if run >= 3 {
                times.push(took);
            }
        }
    }
    jit.synchronize()?;
    Ok(times.iter().map(|t| median(t)).collect())
}

fn saxpy(jit: &Jit, sm: u32, report: &mut Report) -> kiln::Result<()> {
    const N: usize = 1 << 28;
    let x = jit.upload(&vec![1.5f32; N])?;
    let mut y = jit.upload(&vec![0.5f32; N])?;
    let checked = kernels::saxpy()?;
    // SAFETY: every index is below `y.len()`, and both slices have the same length.
    let unchecked = unsafe { Kernel::build_unchecked("saxpy_unchecked", kernels::describe_saxpy)? };
    let twin = driver::nvcc("saxpy.cu", sm).map(|image| driver::load(&image, "saxpy_f32"));
    let (mut n, mut a, mut xs, mut ys) = (N as u32, 1e-3f32, x.address(), y.address());
    let mut params: [*mut c_void; 4] = [
        (&raw mut n).cast(),
        (&raw mut a).cast(),
        (&raw mut xs).cast(),
        (&raw mut ys).cast(),
    ];
    let grid = grid_for(N, 256);
    let y = std::cell::RefCell::new(&mut y);
    let launch = |k: &Kernel| jit.launch(k, grid, 256, args!(1e-3f32, &x, &mut **y.borrow_mut()));
    let times = time(
        jit,
        30,
        &mut [
            &mut || launch(&checked),
            &mut || launch(&unchecked),
            &mut || {
                if let Some(twin) = twin {
                    // SAFETY: the parameters of `saxpy_f32(n, a, x, y)`; the buffers are alive.
                    unsafe { driver::launch(twin, (grid, 1), (256, 1), &mut params) };
                }
                Ok(())
            },
        ],
    )?;
    let rate = |ms: f64| 12.0 * N as f64 / ms * 1e-6;
    let peer = if twin.is_some() { "nvcc" } else { "nothing" };
    report.against("saxpy 2^28 f32, checked", times[0], "ms", peer, times[2]);
    report.against("saxpy 2^28 f32, unchecked", times[1], "ms", peer, times[2]);
    report.row("saxpy 2^28 f32, checked", rate(times[0]), "GB/s");
    Ok(())
}

fn matmul(jit: &Jit, sm: u32, report: &mut Report) -> kiln::Result<()> {
    const N: usize = 4096;
    let a = jit.upload(&kernels::ramp(N * N, 0.001))?;
    let b = jit.upload(&kernels::ramp(N * N, 0.002))?;
    let mut c = jit.zeros::<f32>(N * N)?;
    let image = driver::nvcc("matmul.cu", sm);
    let pairs: [(&str, fn(&KernelBuilder)); 2] = [
        ("naive_matmul", kernels::describe_naive_matmul),
        ("tiled_matmul", kernels::describe_tiled_matmul),
    ];
    for (name, describe) in pairs {
        let checked = Kernel::build(name, describe)?;
        // SAFETY: every access is guarded by the kernel itself, for any n; buffers are n * n.
        let unchecked = unsafe { Kernel::build_unchecked(&format!("{name}_unchecked"), describe)? };
        let twin = image.as_deref().map(|image| driver::load(image, name));
        let (mut n, mut xa, mut xb, mut xc) = (N as u32, a.address(), b.address(), c.address());
        let mut params: [*mut c_void; 4] = [
            (&raw mut n).cast(),
            (&raw mut xa).cast(),
            (&raw mut xb).cast(),
            (&raw mut xc).cast(),
        ];
        let tiles = (N / 16) as u32;
        let c = std::cell::RefCell::new(&mut c);
        let launch = |k: &Kernel| {
            let c = &mut **c.borrow_mut();
            jit.launch(k, (tiles, tiles), (16, 16), args!(&a, &b, c, N as u32))
        };
        let times = time(
            jit,
            10,
            &mut [
                &mut || launch(&checked),
                &mut || launch(&unchecked),
                &mut || {
                    if let Some(twin) = twin {
                        // SAFETY: the parameters of the twin `(n, a, b, c)`; the buffers are alive.
                        unsafe { driver::launch(twin, (tiles, tiles), (16, 16), &mut params) };
                    }
                    Ok(())
                },
            ],
        )?;
        let peer = if twin.is_some() { "nvcc" } else { "nothing" };
        for (time, what) in [(times[0], "checked"), (times[1], "unchecked")] {
            report.against(&format!("{name} 4096, {what}"), time, "ms", peer, times[2]);
        }
    }
    Ok(())
}
