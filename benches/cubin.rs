//! Machine code that the driver makes of PTX ahead of time, as it is kept on disk, beside the PTX itself: how long each
//! takes to load, and how long the kernels take.
//!
//! `CUDA_CACHE_DISABLE=1 cargo bench --bench cubin`, on a GPU: the driver keeps what it makes of PTX, which is then not
//! made anew. The figures to meet: kernels of both within 1 %. Kernels are timed by the driver's events, in turn; the ratio is
//! the median of those of neighbours.

mod driver;
mod report;

use std::time::Instant;

use driver::Function;
use kiln::core::code::PtxCode;
use kiln::core::front::AsKernel;
use kiln::prelude::*;
use report::{Report, median};

/// Elements of the buffers: 64 MiB each.
const N: usize = 1 << 24;
const SAMPLES: usize = 40;

#[kernel]
fn add_scaled(x: &[f32], y: &mut [f32], n: u32) {
    let i = global_id().x;
    if i < x.len() && i < y.len() {
        y[i] += n as f32 * x[i];
    }
}

#[kernel]
fn iterate(x: &[f32], y: &mut [f32], n: u32) {
    let i = global_id().x;
    if i < x.len() && i < y.len() {
        let mut value = x[i];
        for _ in 0..n {
            value = value * 0.999 + 0.5;
        }
        y[i] = value;
    }
}

#[kernel]
fn sum_blocks(x: &[f32], y: &mut [f32], n: u32) {
    let tile = shared!([f32; 256]);
    let (i, t) = (global_id().x, thread_idx().x);
    tile[t] = if i < x.len() { x[i] } else { 0.0 };
    barrier();
    let mut half = 128;
    while half > 0 {
        if t < half {
            tile[t] += tile[t + half];
        }
        barrier();
        half /= 2;
    }
    if t == 0 && block_idx().x < y.len() {
        y[block_idx().x] = n as f32 * tile[0];
    }
}

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    if jit.device().info().kind != DeviceKind::Cuda {
        println!("no CUDA device, so nothing is measured");
        return Ok(());
    }
    if std::env::var_os("CUDA_CACHE_DISABLE").is_none_or(|value| value != "1") {
        eprintln!(
            "CUDA_CACHE_DISABLE is not 1: PTX may be loaded as what the driver has kept of it"
        );
    }
    let mut report = Report::new("cubin");
    let (x, mut y) = (jit.upload(&vec![1.0f32; N])?, jit.zeros::<f32>(N)?);
    let kernels = [
        ("a sum of slices", code_of(&jit, &add_scaled, &x, &mut y)?),
        ("a loop of arithmetic", code_of(&jit, &iterate, &x, &mut y)?),
        ("sums of blocks", code_of(&jit, &sum_blocks, &x, &mut y)?),
    ];
    for (name, code) in &kernels {
        compare(&jit, name, code, (&x, &mut y), &mut report)?;
    }
    report.print();
    Ok(())
}

fn code_of(
    jit: &Jit,
    kernel: &impl AsKernel,
    x: &Buffer<f32>,
    y: &mut Buffer<f32>,
) -> kiln::Result<PtxCode> {
    let inspected = jit.inspect(kernel, args!(x, y, 1u32))?;
    let code = inspected.compiled().and_then(|kernel| kernel.code.ptx());
    Ok(code.expect("a GPU runs PTX").clone())
}

/// Both forms of one kernel.
fn compare(
    jit: &Jit,
    name: &str,
    code: &PtxCode,
    (x, y): (&Buffer<f32>, &mut Buffer<f32>),
    report: &mut Report,
) -> kiln::Result<()> {
    let Some(cubin) = jit.device().backend().assemble(name, code) else {
        println!("{name}: this driver makes no machine code of PTX without loading it");
        return Ok(());
    };
    let load = |image: &[u8]| driver::load(image, &code.entry);
    let mut loads = [vec![], vec![]];
    for _ in 0..SAMPLES {
        for (times, image) in loads.iter_mut().zip([code.text.as_bytes(), &cubin]) {
            let start = Instant::now();
            std::hint::black_box(load(image));
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let [from_ptx, from_cubin] = loads.map(|times| median(&times));
    report.against(
        &format!("{name}, loading"),
        from_cubin,
        "ms",
        "PTX",
        from_ptx,
    );

    let functions = [load(code.text.as_bytes()), load(&cubin)];
    let (mut times, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let [ptx, cubin] = functions.map(|function| time(function, (x, y)));
        times.push(cubin);
        ratios.push(cubin / ptx);
    }
    let (value, ratio) = (median(&times), median(&ratios));
    report.against(
        &format!("{name}, the kernel"),
        value,
        "ms",
        "PTX",
        value / ratio,
    );
    jit.synchronize()
}

/// Milliseconds of a launch by the driver's events, behind one that warms it.
fn time(function: Function, (x, y): (&Buffer<f32>, &mut Buffer<f32>)) -> f64 {
    // x, its length, y, its length, n, and no fault channel, which these launches do not touch.
    let (mut xs, mut ys, mut len, mut n, mut channel) =
        (x.address(), y.address(), N as u32, 200u32, 0u64);
    let mut params = [
        (&raw mut xs).cast(),
        (&raw mut len).cast(),
        (&raw mut ys).cast(),
        (&raw mut len).cast(),
        (&raw mut n).cast(),
        (&raw mut channel).cast(),
    ];
    let grid = ((N / 256) as u32, 1);
    // SAFETY: the parameters are those of the kernel, in order, and the buffers are alive.
    let mut launch = || unsafe { driver::launch(function, grid, (256, 1), &mut params) };
    launch();
    let [start, end] = [driver::Event::new(), driver::Event::new()];
    start.record();
    launch();
    end.record();
    end.since(&start)
}
