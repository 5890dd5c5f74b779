//! Reductions and scans of blocks beside CUB's, compiled by nvcc -O3 and run in the same process.
//!
//! `cargo bench --bench collectives` on a machine with a CUDA device and nvcc: 64 in a row, blocks of 128 to 1,024
//! threads, as many as fill the device several times, of `i32`, `f32` and a struct of two `i64`. The goal: no more than
//! 1 / 0.98 of CUB's time. Kiln's kernels check bounds; the size of blocks is a const parameter, as CUB's are a template's.
//! What they give is compared with CUB. Scans are `scan` without memory of the kernel's and `scan_in` with it, as CUB's have it.
//!
//! Also histograms of 256 bins in shared memory, four keys a thread, of keys all over the bins and of one bin alone, beside
//! CUB's by atomics: the goal is its time. And a struct of four `i64` that a warp adds up, beside four such sums of an
//! `i64` each: the goal is 1.1 of their time.
//!
//! `--unroll N` has the loops of histograms unrolled by N in place of what Kiln chooses, 1 not at all, and measures these alone.
//! `--code FOLDER` writes in place of all that the PTX of our kernels for sm_90 to a folder, for disassemblers; it needs no GPU.

mod driver;
mod report;
mod turns;

use std::ffi::c_void;
use std::path::Path;

use kiln::core::args::Arg;
use kiln::core::front::{AsKernel as _, LazyKernel};
use kiln::core::ir::Unroll;
use kiln::core::job::CompileOptions;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use report::Report;
use turns::in_turn;

/// Threads in all.
const THREADS: usize = 1 << 20;

#[derive(KernelType, Copy, Clone, PartialEq, Debug)]
#[repr(C)]
struct Pair {
    a: i64,
    b: i64,
}

#[device_fn]
fn added(x: Pair, y: Pair) -> Pair {
    Pair {
        a: x.a + y.a,
        b: x.b + y.b,
    }
}

#[device_fn]
fn next_i32(v: i32) -> i32 {
    v >> 8
}

#[device_fn]
fn next_f32(v: f32) -> f32 {
    v * 0.001
}

#[device_fn]
fn next_pair(v: Pair) -> Pair {
    Pair {
        a: v.a >> 8,
        b: v.b >> 8,
    }
}

/// The kernels of a type: what is added up, and what a round makes of what the one before has given.
macro_rules! kernels {
    ($($reduce:ident, $scan:ident, $in_memory:ident: $ty:ty, |$a:ident, $b:ident| $sum:expr, $next:ident;)*) => {$(
        #[kernel]
        fn $reduce<const BLOCK: usize>(x: &[$ty], out: &mut [$ty]) {
            assume(block_dim().x == BLOCK && block_dim().y == 1 && block_dim().z == 1);
            let i = global_id().x;
            let mut v = x[i];
            for _ in 0..64 {
                let sum = block_reduce_to_first(v, |$a, $b| $sum);
                if thread_idx().x == 0 {
                    v = $next(sum);
                }
            }
            out[i] = v;
        }

        #[kernel]
        fn $scan<const BLOCK: usize>(x: &[$ty], out: &mut [$ty]) {
            assume(block_dim().x == BLOCK && block_dim().y == 1 && block_dim().z == 1);
            let i = global_id().x;
            let mut v = x[i];
            for _ in 0..64 {
                v = $next(block_inclusive_scan(v, |$a, $b| $sum));
            }
            out[i] = v;
        }

        #[kernel]
        fn $in_memory<const BLOCK: usize>(x: &[$ty], out: &mut [$ty]) {
            assume(block_dim().x == BLOCK && block_dim().y == 1 && block_dim().z == 1);
            let (i, memory) = (global_id().x, shared!([$ty; BLOCK]));
            let mut v = x[i];
            for _ in 0..64 {
                v = $next(block_inclusive_scan_in(v, memory, |$a, $b| $sum));
            }
            out[i] = v;
        }
    )*};
}
kernels! {
    reduce_i32, scan_i32, scan_in_i32: i32, |a, b| a + b, next_i32;
    reduce_f32, scan_f32, scan_in_f32: f32, |a, b| a + b, next_f32;
    reduce_pair, scan_pair, scan_in_pair: Pair, |a, b| added(a, b), next_pair;
}

/// The bins of histograms, and keys of a thread.
const BINS: usize = 256;
const KEYS: usize = 4;

/// Counts the block's keys again and again, each time others, and adds up what one bin had.
#[kernel]
fn histogram<const BLOCK: usize>(x: &[u32], step: u32, out: &mut [u32]) {
    assume(block_dim().x == BLOCK && block_dim().y == 1 && block_dim().z == 1);
    let counts = shared!([u32; 256]);
    let i = global_id().x;
    let mut keys = [x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]];
    let mut total = 0;
    for _ in 0..64 {
        let bins = [keys[0] % 256, keys[1] % 256, keys[2] % 256, keys[3] % 256];
        block_histogram(bins, counts);
        total += counts[thread_idx().x % 256];
        #[unroll]
        for key in 0..4 {
            keys[key] += step;
        }
    }
    out[i] = total;
}

#[derive(KernelType, Copy, Clone, PartialEq, Debug)]
#[repr(C)]
struct Four {
    a: i64,
    b: i64,
    c: i64,
    d: i64,
}

/// 64 sums of a warp's structs in a row.
#[kernel]
fn warp_struct(x: &[Four], out: &mut [Four]) {
    let i = global_id().x;
    let mut v = x[i];
    for _ in 0..64 {
        let sum = warp_reduce(FULL_MASK, v, |x, y| Four {
            a: x.a + y.a,
            b: x.b + y.b,
            c: x.c + y.c,
            d: x.d + y.d,
        });
        v = Four {
            a: sum.a >> 8,
            b: sum.b >> 8,
            c: sum.c >> 8,
            d: sum.d >> 8,
        };
    }
    out[i] = v;
}

/// The same with a sum for each field.
#[kernel]
fn warp_fields(x: &[Four], out: &mut [Four]) {
    let i = global_id().x;
    let mut v = x[i];
    for _ in 0..64 {
        v = Four {
            a: warp_reduce(FULL_MASK, v.a, |x, y| x + y) >> 8,
            b: warp_reduce(FULL_MASK, v.b, |x, y| x + y) >> 8,
            c: warp_reduce(FULL_MASK, v.c, |x, y| x + y) >> 8,
            d: warp_reduce(FULL_MASK, v.d, |x, y| x + y) >> 8,
        };
    }
    out[i] = v;
}

fn main() -> kiln::Result<()> {
    let argument = |name: &str| {
        let mut args = std::env::args().skip_while(|arg| arg != name);
        args.next()?;
        Some(
            args.next()
                .unwrap_or_else(|| panic!("`{name}` is followed by something")),
        )
    };
    if let Some(folder) = argument("--code") {
        return write_code(Path::new(&folder));
    }
    let unroll = argument("--unroll").map(|count| match count.parse() {
        Ok(1) => Unroll::Never,
        Ok(count) => Unroll::By(count),
        Err(e) => panic!("`--unroll {count}`: {e}"),
    });
    let options = CompileOptions::default().unroll(unroll.unwrap_or_default());
    let jit = Jit::builder().compile(options).build()?;
    let Target::Ptx(target) = jit.target() else {
        println!("no CUDA device: nothing to measure");
        return Ok(());
    };
    let mut report = Report::new("collectives");
    let twins = driver::nvcc("collectives.cu", target.sm);
    let bench = Bench { jit: &jit, twins };
    if unroll.is_some() {
        for block in BLOCKS {
            bench.histograms(&mut report, block)?;
        }
    } else {
        reductions_and_scans(&bench, &mut report)?;
        structs(&jit, &mut report)?;
    }
    report.print();
    Ok(())
}

/// Reductions, scans and histograms of blocks of each size beside CUB's.
fn reductions_and_scans(bench: &Bench<'_>, report: &mut Report) -> kiln::Result<()> {
    let number = |i: usize| (i * 7919 % 1013) as i32 - 500;
    let near = |x: &f32, y: &f32| (x - y).abs() <= 1e-3 * y.abs().max(1e-6);
    for block in BLOCKS {
        bench.all(
            report,
            "i32",
            block,
            [
                reduce_i32.as_kernel()?,
                scan_i32.as_kernel()?,
                scan_in_i32.as_kernel()?,
            ],
            number,
            i32::eq,
        )?;
        let values = |i| number(i) as f32;
        bench.all(
            report,
            "f32",
            block,
            [
                reduce_f32.as_kernel()?,
                scan_f32.as_kernel()?,
                scan_in_f32.as_kernel()?,
            ],
            values,
            near,
        )?;
        let values = |i| Pair {
            a: number(i).into(),
            b: i as i64,
        };
        bench.all(
            report,
            "pair",
            block,
            [
                reduce_pair.as_kernel()?,
                scan_pair.as_kernel()?,
                scan_in_pair.as_kernel()?,
            ],
            values,
            Pair::eq,
        )?;
        bench.histograms(report, block)?;
    }
    Ok(())
}

/// The sizes of blocks.
const BLOCKS: [u32; 4] = [128, 256, 512, 1024];

/// Writes the PTX of the kernels to a folder.
fn write_code(folder: &Path) -> kiln::Result<()> {
    std::fs::create_dir_all(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let code = Code { jit: &jit, folder };
    code.write("i32", 0i32, [&reduce_i32, &scan_i32, &scan_in_i32])?;
    code.write("f32", 0f32, [&reduce_f32, &scan_f32, &scan_in_f32])?;
    code.write(
        "pair",
        Pair { a: 0, b: 0 },
        [&reduce_pair, &scan_pair, &scan_in_pair],
    )?;
    let (x, mut out) = (jit.zeros::<u32>(4)?, jit.zeros::<u32>(1)?);
    for block in BLOCKS {
        let args = args!(&x, 1u32, &mut out);
        code.one("histogram", histogram.as_kernel()?, block, args)?;
    }
    Ok(())
}

/// Where code goes.
struct Code<'a> {
    jit: &'a Jit,
    folder: &'a Path,
}

impl Code<'_> {
    fn write<T: KernelType>(
        &self,
        ty: &str,
        value: T,
        kernels: [&LazyKernel; 3],
    ) -> kiln::Result<()> {
        let (x, mut out) = (self.jit.upload(&[value])?, self.jit.upload(&[value])?);
        for (what, kernel) in ["reduce", "scan", "scan_in"].into_iter().zip(kernels) {
            for block in BLOCKS {
                let name = format!("{what}_{ty}");
                self.one(&name, kernel.as_kernel()?, block, args!(&x, &mut out))?;
            }
        }
        Ok(())
    }

    fn one(&self, name: &str, kernel: &Kernel, block: u32, args: &[Arg<'_>]) -> kiln::Result<()> {
        let kernel = kernel.with_const("BLOCK", block.into());
        let inspection = self.jit.inspect(&kernel, args)?;
        let path = self.folder.join(format!("{name}_{block}.ptx"));
        std::fs::write(&path, inspection.ptx()?)
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Ok(())
    }
}

/// A warp's sums of structs beside those of their fields.
fn structs(jit: &Jit, report: &mut Report) -> kiln::Result<()> {
    let value = |i: usize| {
        let n = (i * 7919 % 1013) as i64;
        Four {
            a: n,
            b: -n,
            c: n << 20,
            d: i as i64,
        }
    };
    let values: Vec<Four> = (0..THREADS).map(value).collect();
    let x = jit.upload(&values)?;
    let (mut whole, mut apart) = (jit.upload(&values)?, jit.upload(&values)?);
    let grid = grid_for(THREADS, 256);
    let [structs, fields] = in_turn(
        jit.device(),
        || warp_struct.launch(jit, (grid, 256), &x, &mut whole),
        || warp_fields.launch(jit, (grid, 256), &x, &mut apart),
    )?;
    assert_eq!(whole.to_vec()?, apart.to_vec()?, "sums of structs");
    let name = "warp_reduce_four_i64";
    report.against(name, structs, "ms", "fields", fields);
    Ok(())
}

struct Bench<'a> {
    jit: &'a Jit,
    /// CUB's kernels, where there is nvcc.
    twins: Option<Vec<u8>>,
}

impl Bench<'_> {
    fn all<T: KernelType + std::fmt::Debug>(
        &self,
        report: &mut Report,
        ty: &str,
        block: u32,
        kernels: [&Kernel; 3],
        value: impl Fn(usize) -> T,
        is_same: impl Fn(&T, &T) -> bool,
    ) -> kiln::Result<()> {
        let values: Vec<T> = (0..THREADS).map(value).collect();
        let beside = [("reduce", "reduce"), ("scan", "scan"), ("scan_in", "scan")];
        for ((what, twin), kernel) in beside.into_iter().zip(kernels) {
            let names = [what, twin].map(|what| format!("{what}_{ty}_{block}"));
            self.one(report, &names, kernel, block, &values, &is_same)?;
        }
        Ok(())
    }

    /// Histograms of keys all over the bins and of keys of one bin.
    fn histograms(&self, report: &mut Report, block: u32) -> kiln::Result<()> {
        let jit = self.jit;
        let kernel = &histogram.with_const("BLOCK", block.into())?;
        let twin = self.twins.as_deref();
        let twin = twin.map(|image| driver::load(image, &format!("histogram_{block}")));
        let mixed = |i: usize| (i as u32).wrapping_mul(0x9E37_79B1) >> 24;
        let ways: [(_, &dyn Fn(usize) -> u32); 2] = [("uniform", &mixed), ("one_bin", &|_| 7)];
        for (way, key) in ways {
            let keys: Vec<u32> = (0..THREADS * KEYS).map(key).collect();
            let x = jit.upload(&keys)?;
            let (mut ours, theirs) = (jit.zeros::<u32>(THREADS)?, jit.zeros::<u32>(THREADS)?);
            let grid = grid_for(THREADS, block);
            let (mut from, mut step, mut to) = (x.address(), 37u32, theirs.address());
            let mut params: [*mut c_void; 3] = [
                (&raw mut from).cast(),
                (&raw mut step).cast(),
                (&raw mut to).cast(),
            ];
            let [kiln, cub] = in_turn(
                jit.device(),
                || jit.launch(kernel, grid, block, args!(&x, step, &mut ours)),
                || {
                    if let Some(twin) = twin {
                        // SAFETY: the parameters of the twin `(x, step, out)`; the buffers are alive.
                        unsafe { driver::launch(twin, (grid, 1), (block, 1), &mut params) };
                    }
                    Ok(())
                },
            )?;
            let name = format!("histogram_{BINS}_{way}_{block}");
            if twin.is_none() {
                report.row(&name, kiln, "ms");
                continue;
            }
            assert_eq!(ours.to_vec()?, theirs.to_vec()?, "{name}");
            report.against(&name, kiln, "ms", "CUB", cub);
        }
        Ok(())
    }

    fn one<T: KernelType + std::fmt::Debug>(
        &self,
        report: &mut Report,
        [name, twin]: &[String; 2],
        kernel: &Kernel,
        block: u32,
        values: &[T],
        is_same: &impl Fn(&T, &T) -> bool,
    ) -> kiln::Result<()> {
        let jit = self.jit;
        let (x, mut ours, theirs) = (
            jit.upload(values)?,
            jit.upload(values)?,
            jit.upload(values)?,
        );
        let kernel = &kernel.with_const("BLOCK", block.into());
        let twin = self.twins.as_deref().map(|image| driver::load(image, twin));
        let grid = grid_for(THREADS, block);
        let (mut from, mut to) = (x.address(), theirs.address());
        let mut params: [*mut c_void; 2] = [(&raw mut from).cast(), (&raw mut to).cast()];
        let [kiln, cub] = in_turn(
            jit.device(),
            || jit.launch(kernel, grid, block, args!(&x, &mut ours)),
            || {
                if let Some(twin) = twin {
                    // SAFETY: the parameters of the twin `(x, out)`; the buffers are alive.
                    unsafe { driver::launch(twin, (grid, 1), (block, 1), &mut params) };
                }
                Ok(())
            },
        )?;
        if twin.is_none() {
            report.row(name, kiln, "ms");
            return Ok(());
        }
        for (i, (ours, theirs)) in ours.to_vec()?.iter().zip(&theirs.to_vec()?).enumerate() {
            assert!(
                is_same(ours, theirs),
                "{name}, {i}: {ours:?}, and by CUB {theirs:?}"
            );
        }
        report.against(name, kiln, "ms", "CUB", cub);
        Ok(())
    }
}
