//! Mathematical functions beside nvcc's: libdevice's, and the intrinsics of `-use_fast_math`, compiled by nvcc -O3 and run
//! in the same process.
//!
//! `cargo bench --bench math` on a machine with a CUDA device and nvcc: each thread computes a function of 4,096 numbers of
//! a range, four side by side, as throughput is wanted and not how long one takes, and adds the values up. Both sides are of
//! the same form, and their sums are compared. Goals: precise at most 1 / 0.98 of nvcc's time each and 1 / 1.02 over all,
//! fast at most as long. Options:
//!
//! - `--filter TEXT`: only kernels whose name contains it;
//! - `--compile`: in place of all that what the first use of a function adds to compiling a kernel, by the median; it needs
//!   no GPU;
//! - `--code FOLDER`: in place of all that the PTX of our kernels for sm_90 in files, and where there is nvcc its machine
//!   code of all twins, `nvcc.cubin`, for disassemblers; it needs no GPU.

#[path = "math/cases.rs"]
mod cases;
#[path = "math/compile.rs"]
mod compile;
mod driver;
#[path = "math/kernels.rs"]
mod kernels;
mod report;
mod turns;

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cases::{CASES, Case, Exactness};
use kernels::{CHAINS, ROUNDS};
use kiln::core::front::AsKernel as _;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use lexopt::prelude::*;
use report::Report;
use turns::in_turn;

/// Threads in all, and those of a block.
const THREADS: usize = 1 << 20;
const BLOCK: u32 = 256;

const USAGE: &str = "options are --filter TEXT, --compile, --code FOLDER";

/// The command line.
#[derive(Default)]
struct Options {
    filter: String,
    compile: bool,
    code: Option<PathBuf>,
}

impl Options {
    fn read(mut args: lexopt::Parser) -> Result<Options, lexopt::Error> {
        let mut options = Options::default();
        while let Some(arg) = args.next()? {
            match arg {
                Long("filter") => options.filter = args.value()?.string()?,
                Long("compile") => options.compile = true,
                Long("code") => options.code = Some(args.value()?.into()),
                // Cargo says that this is a bench.
                Long("bench") => {}
                _ => return Err(arg.unexpected()),
            }
        }
        Ok(options)
    }

    fn cases(&self) -> impl Iterator<Item = &'static Case> {
        let wanted = |case: &&Case| case.name.contains(&self.filter);
        CASES.iter().filter(wanted)
    }
}

fn main() -> ExitCode {
    let options = match Options::read(lexopt::Parser::from_env()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("math: {error}; {USAGE}");
            return ExitCode::FAILURE;
        }
    };
    match measure(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("math: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> kiln::Result<()> {
    let mut report = Report::new("math");
    if options.compile {
        compile::first_uses(&mut report, &options.filter)?;
        report.print();
        return Ok(());
    }
    if let Some(folder) = &options.code {
        return write_code(options.cases(), folder);
    }
    let jit = Jit::new()?;
    let Target::Ptx(target) = jit.target() else {
        println!("no CUDA device: nothing to measure");
        return Ok(());
    };
    let bench = Bench {
        jit: &jit,
        twins: driver::nvcc("math.cu", target.sm),
    };
    let mut ratios = Vec::new();
    for case in options.cases() {
        let ratio = if case.kernel.ends_with("f64") {
            bench.one(&mut report, case, |x| x)?
        } else {
            bench.one(&mut report, case, |x| x as f32)?
        };
        ratios.extend(ratio.map(|ratio| (case, ratio)));
    }
    means(&mut report, &ratios);
    report.print();
    Ok(())
}

/// Writes machine code's sources to a folder: the PTX of our kernels and what nvcc makes of the twins.
fn write_code(cases: impl Iterator<Item = &'static Case>, folder: &Path) -> kiln::Result<()> {
    const SM: u32 = 90;
    let write = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    };
    let made = std::fs::create_dir_all(folder);
    made.unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(SM)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    for case in cases {
        let kernel = kernels::named(case.kernel).expect("each case has a kernel");
        let inspection = if case.kernel.ends_with("f64") {
            let (x, mut out) = (jit.zeros::<f64>(4)?, jit.zeros::<f64>(1)?);
            jit.inspect(kernel, args!(&x, &x, [0.0f64; 2], &mut out))?
        } else {
            let (x, mut out) = (jit.zeros::<f32>(4)?, jit.zeros::<f32>(1)?);
            jit.inspect(kernel, args!(&x, &x, [0.0f32; 2], &mut out))?
        };
        write(
            &format!("{}.ptx", case.kernel),
            inspection.ptx()?.as_bytes(),
        );
    }
    if let Some(twins) = driver::nvcc("math.cu", SM) {
        write("nvcc.cubin", &twins);
    }
    Ok(())
}

/// Reports geometric means of ratios beside what they may be at most.
fn means(report: &mut Report, ratios: &[(&Case, f64)]) {
    let mut mean = |name: &str, goal: f64, wanted: &dyn Fn(&Case) -> bool| {
        let chosen = ratios
            .iter()
            .filter(|(case, _)| case.counts && wanted(case));
        let logs: Vec<f64> = chosen.map(|(_, ratio)| ratio.ln()).collect();
        if !logs.is_empty() {
            let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
            let name = format!("geometric mean of {}, {name}", logs.len());
            report.against(&name, mean, "of nvcc's", "goal", goal);
        }
    };
    let precise = |case: &Case| case.exactness == Exactness::Precise;
    mean("precise", 1.0 / 1.02, &precise);
    mean("precise, f32", 1.0 / 1.02, &|case| {
        precise(case) && case.kernel.ends_with("f32")
    });
    mean("precise, f64", 1.0 / 1.02, &|case| {
        precise(case) && case.kernel.ends_with("f64")
    });
    mean("fast", 1.0, &|case| case.exactness == Exactness::Fast);
}

/// `THREADS * CHAINS` numbers of a range, near ones far from each other, and how far a thread goes on with each round: in
/// all rounds a quarter of the range.
fn numbers([from, to]: [f64; 2], salt: u64) -> (Vec<f64>, f64) {
    let quarter = (to - from) / 4.0;
    let number = |i: u64| {
        let mixed = (i + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let part = (mixed >> 11) as f64 / (1u64 << 53) as f64;
        from + part * 3.0 * quarter
    };
    let count = (THREADS * CHAINS) as u64;
    ((0..count).map(number).collect(), quarter / ROUNDS as f64)
}

struct Bench<'a> {
    jit: &'a Jit,
    /// nvcc's kernels, where there is nvcc.
    twins: Option<Vec<u8>>,
}

impl Bench<'_> {
    /// Measures a function and its twin in turn; how long it takes, of nvcc's time.
    fn one<T>(
        &self,
        report: &mut Report,
        case: &Case,
        of: impl Fn(f64) -> T,
    ) -> kiln::Result<Option<f64>>
    where
        T: KernelType + Into<f64> + Copy,
        [T; 2]: KernelType,
    {
        let jit = self.jit;
        let kernel = kernels::named(case.kernel).expect("each case has a kernel");
        let kernel = kernel.as_kernel()?;
        let [(x, x_step), (y, y_step)] = [numbers(case.ranges[0], 0), numbers(case.ranges[1], 77)];
        let upload = |numbers: Vec<f64>| {
            let numbers: Vec<T> = numbers.into_iter().map(&of).collect();
            jit.upload(&numbers)
        };
        let (x, y) = (upload(x)?, upload(y)?);
        let mut step = [of(x_step), of(y_step)];
        let none = vec![of(0.0); THREADS];
        let (mut ours, theirs) = (jit.upload(&none)?, jit.upload(&none)?);
        let twin = self.twins.as_deref();
        let twin = twin.map(|image| driver::load(image, case.kernel));
        let grid = grid_for(THREADS, BLOCK);
        let mut addresses = [x.address(), y.address(), theirs.address()];
        let [x_at, y_at, out_at] = &mut addresses;
        let mut params: [*mut c_void; 4] = [
            (x_at as *mut u64).cast(),
            (y_at as *mut u64).cast(),
            (&raw mut step).cast(),
            (out_at as *mut u64).cast(),
        ];
        let [kiln, nvcc] = in_turn(
            jit.device(),
            || jit.launch(kernel, grid, BLOCK, args!(&x, &y, step, &mut ours)),
            || {
                if let Some(twin) = twin {
                    // SAFETY: the parameters of the twin `(x, y, step, out)`; the buffers are alive.
                    unsafe { driver::launch(twin, (grid, 1), (BLOCK, 1), &mut params) };
                }
                Ok(())
            },
        )?;
        if twin.is_none() {
            report.row(case.name, kiln, "ms");
            return Ok(None);
        }
        compare(case, &ours.to_vec()?, &theirs.to_vec()?);
        report.against(case.name, kiln, "ms", "nvcc", nvcc);
        Ok(Some(kiln / nvcc))
    }
}

/// Panics where sums differ by more than what the roundings of both and of approximations explain.
fn compare<T: Copy + Into<f64>>(case: &Case, ours: &[T], theirs: &[T]) {
    let tolerance = match case.exactness {
        Exactness::Precise => 1e-4,
        Exactness::Fast => 2e-3,
    };
    let terms = (ROUNDS * CHAINS) as f64;
    for (thread, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let (ours, theirs): (f64, f64) = ((*ours).into(), (*theirs).into());
        assert!(
            (ours - theirs).abs() <= tolerance * (theirs.abs() + terms),
            "{}, thread {thread}: {ours}, and by nvcc {theirs}",
            case.name
        );
    }
}
