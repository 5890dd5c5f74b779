//! The programs of the suite beside their twins in CUDA C++: `cargo bench -p kiln-suite --bench suite`, on a machine with a
//! CUDA device and nvcc, or on the CPU, where checks and indices that are clamped are compared with none: by the processor's time
//! of all threads, and by the quartiles of the ratio of neighbouring samples. Run by `taskset -c 1`, threads do not get in each other's way.
//!
//! - `--filter TEXT`: the programs whose names hold it;
//! - `--samples N`: how often each is timed, 31 if not said;
//! - `--instructions`: no times, but the instructions that the small sizes execute on the CPU, with checks, without and clamped,
//!   which do not depend on what else the machine does;
//! - `--write FOLDER`: no times, but the PTX of the kernels, as `checked/PROGRAM/KERNEL.ptx`, `unchecked/PROGRAM/KERNEL.ptx` and
//!   `nvcc/PROGRAM.ptx`, beside Kiln's IR and LLVM's; for sm_90 where there is no GPU;
//! - `--checked FOLDER`, `--unchecked FOLDER`, any number of times: another way to run the programs, with the PTX in that
//!   folder for kernels that have a `PROGRAM/KERNEL.ptx` there. So one asks what an edit of the code is worth before a pass does it.
//! - `--without HOOK`: Kiln's kernels are compiled without a standard hook, as `by-value`; may be said again for more;
//! - `--ablation checked`, `--ablation unchecked`: no peers, but programs without one of what makes the kernels what they are,
//!   each hook, option and pass of LLVM: the geometric mean of the ratio to those with everything. Without a GPU instructions,
//!   those of innermost loops, registers and bytes of spills of all kernels, by `KILN_PTXAS` and `KILN_NVDISASM`. With
//!   `--of TEXT` only what has a name that holds the text;
//! - `--facts`: what is known of integers is compiled in, too; with `--write`, of those of the small sizes.
//!
//! Each program runs five ways in one process, in turn, so that what disturbs the machine disturbs all: Kiln's kernels with
//! checks, without and with indices that are clamped, nvcc's machine code (by the `ptxas` of its toolkit), and nvcc's PTX made machine code by the driver as
//! Kiln's is. A sample is at least a millisecond of work, timed by events; what is told is the median, and how far the
//! samples' quartiles are apart. Results are checked first, the twin's too. Beside the times is how many lines the kernels
//! of the program's folder have, ours and the twin's, without blank ones and comments.

mod ablation;
mod code;
#[path = "../../tests/nvcc/count.rs"]
#[allow(dead_code, reason = "tests count more")]
mod count;
#[path = "../driver.rs"]
mod driver;
#[path = "../instructions.rs"]
mod instructions;
#[path = "../../tests/nvcc/listing.rs"]
#[allow(dead_code, reason = "tests count more")]
mod listing;
#[path = "../../tests/nvcc/machine.rs"]
#[allow(dead_code, reason = "tests compare with what was recorded")]
mod machine;
mod pipeline;
mod timing;
mod twin;

use std::path::PathBuf;

use ablation::Ablation;
use code::InFolder;
use kiln::core::hook::HookSet;
use kiln::core::job::CompileOptions;
use kiln::core::runtime::DeviceKind;
use kiln::core::target::Target;
use kiln::prelude::*;
use kiln_suite::{BENCHMARKS, Benchmark, Bound, Launcher, Lines, OnJit, Size, without_checks};
use serde_json::json;
use timing::{quartiles, runs_of_a_sample, time};
use twin::Twins;

struct Options {
    filter: String,
    samples: usize,
    instructions: bool,
    write: Option<PathBuf>,
    /// Folders of PTX, and whether it is in place of code with checks.
    folders: Vec<(bool, PathBuf)>,
    without: Vec<String>,
    facts: bool,
    /// Of programs with checks, or without.
    ablation: Option<bool>,
    /// What is left out for it.
    of: String,
}

impl Options {
    /// A `Jit` with these options and hooks, as far as those are not to be left out.
    fn jit(&self, device: &Device, compile: CompileOptions, hooks: HookSet) -> kiln::Result<Jit> {
        let leave_out = |hooks: HookSet, name: &String| hooks.without(name);
        let hooks = self.without.iter().fold(hooks, leave_out);
        let builder = Jit::builder().device(device.clone()).hooks(hooks);
        let builder = builder.compile(compile);
        builder.specialize_facts(self.facts).build()
    }

    fn ablation<'a>(
        &'a self,
        device: &'a Device,
        target: &'a Target,
        has_checks: bool,
    ) -> Ablation<'a> {
        Ablation {
            device,
            target,
            has_checks,
            samples: self.samples,
            of: &self.of,
        }
    }
}

fn options() -> Options {
    let mut options = Options {
        filter: String::new(),
        samples: 31,
        instructions: false,
        write: None,
        folders: Vec::new(),
        without: Vec::new(),
        facts: false,
        ablation: None,
        of: String::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--filter" => options.filter = args.next().expect("`--filter` has a text"),
            "--samples" => {
                let number = args.next().and_then(|number| number.parse().ok());
                options.samples = number.expect("`--samples` has a number");
            }
            "--instructions" => options.instructions = true,
            "--write" => {
                options.write = Some(args.next().expect("`--write` has a folder").into());
            }
            "--checked" | "--unchecked" => {
                let folder = args.next().expect("what code is from is a folder");
                options.folders.push((arg == "--checked", folder.into()));
            }
            "--without" => {
                let name = args.next().expect("`--without` has the name of a hook");
                let known = kiln::hooks::standard();
                let known: Vec<&str> = known.iter().map(|hook| hook.name()).collect();
                assert!(known.contains(&&*name), "no hook `{name}`, but {known:?}");
                options.without.push(name);
            }
            "--facts" => options.facts = true,
            "--ablation" => {
                options.ablation = match args.next().as_deref() {
                    Some("checked") => Some(true),
                    Some("unchecked") => Some(false),
                    _ => panic!("`--ablation` has `checked` or `unchecked`"),
                };
            }
            "--of" => options.of = args.next().expect("`--of` has a text"),
            // Cargo's own.
            "--bench" => {}
            other => panic!("no option `{other}`"),
        }
    }
    options
}

fn main() -> kiln::Result<()> {
    let options = options();
    let device = Device::best()?;
    let with = |compile, hooks| options.jit(&device, compile, hooks);
    let checked = with(CompileOptions::default(), kiln::hooks::standard())?;
    let unchecked = with(without_checks(), kiln::hooks::standard())?;
    let clamped = with(CompileOptions::default().clamped(), kiln::hooks::standard())?;
    let chosen = || {
        BENCHMARKS
            .iter()
            .filter(|b| b.name.contains(&options.filter))
    };
    if options.instructions {
        return compare_instructions(chosen());
    }
    if let Some(has_checks) = options.ablation {
        let target = checked.target();
        let ablation = options.ablation(&device, target, has_checks);
        return ablation.print(&chosen().collect::<Vec<_>>());
    }
    if let Some(folder) = &options.write {
        return code::write(folder, checked.target(), chosen(), options.facts);
    }
    let twins = match checked.target() {
        Target::Ptx(target) => Twins::compile(chosen().map(|b| b.twin), target.sm),
        _ => Twins::default(),
    };
    let mut rows = Vec::new();
    print_head();
    for benchmark in chosen() {
        let folders = options.folders.iter();
        let texts = folders.map(|(_, folder)| InFolder::read(&folder.join(benchmark.name)));
        let texts: Vec<InFolder> = texts.collect();
        let edited = options.folders.iter().zip(&texts);
        let from_folders: Vec<Jit> = edited
            .map(|((has_checks, _), texts)| {
                let compile = match has_checks {
                    true => CompileOptions::default(),
                    false => without_checks(),
                };
                with(compile, kiln::hooks::standard().with(texts.hook()))
            })
            .collect::<kiln::Result<_>>()?;
        let jits: Vec<&Jit> = [&checked, &unchecked, &clamped]
            .into_iter()
            .chain(&from_folders)
            .collect();
        let row = measure(benchmark, &jits, &twins, options.samples)?;
        row.print(&options.folders);
        for kernel in texts.iter().flat_map(InFolder::left) {
            println!("`{kernel}`, of which there is PTX, was not launched");
        }
        rows.push(row);
    }
    summarize(&rows);
    for row in &rows {
        println!("{}", row.json());
    }
    Ok(())
}

/// Prints what the columns of [`Row::print`] are.
fn print_head() {
    println!(
        "{:<32} {:>11} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9}  checked to unchecked, clamped",
        "program",
        "bound",
        "peer, ms",
        "its PTX",
        "unchecked",
        "checked",
        "clamped",
        "spread",
        "lines"
    );
}

/// Prints how many instructions of compiled code programs execute on the CPU.
fn compare_instructions<'b>(programs: impl Iterator<Item = &'b Benchmark>) -> kiln::Result<()> {
    let with = |compile| {
        Jit::builder()
            .device(Device::cpu())
            .compile(compile)
            .build()
    };
    let jits = [
        with(CompileOptions::default())?,
        with(without_checks())?,
        with(CompileOptions::default().clamped())?,
    ];
    let mut ratios = [const { Vec::new() }; 2];
    for program in programs {
        let counts = jits.each_ref().map(|jit| instructions_of(program, jit));
        let [checked, unchecked, clamped] = counts;
        let (checked, unchecked, clamped) = (checked?, unchecked?, clamped?);
        let [of_checks, of_clamping] =
            [checked, clamped].map(|count| count as f64 / unchecked as f64);
        println!(
            "{:<32} {checked:>10} {unchecked:>10} {of_checks:>7.3} {clamped:>10} {of_clamping:>7.3}",
            program.name
        );
        ratios[0].push(of_checks);
        ratios[1].push(of_clamping);
    }
    for (what, ratios) in ["checked", "clamped"].into_iter().zip(&ratios) {
        print_mean(what, ratios);
    }
    Ok(())
}

/// Prints the geometric mean and the worst of what something takes, unchecked being one.
fn print_mean(what: &str, ratios: &[f64]) {
    let logarithms = ratios.iter().map(|ratio| ratio.ln());
    let mean = (logarithms.sum::<f64>() / ratios.len() as f64).exp();
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    println!("{what} to unchecked: geometric mean {mean:.3}, worst {worst:.3}");
}

/// The instructions of compiled code in a run.
fn instructions_of(program: &Benchmark, jit: &Jit) -> kiln::Result<u64> {
    let mut workload = (program.make)(jit, Size::Small)?;
    let mut on_jit = OnJit(jit);
    // The first run compiles, and threads that are being started cannot be stepped through.
    workload.reset(&mut on_jit)?;
    workload.run(&mut on_jit)?;
    workload.reset(&mut on_jit)?;
    workload.again(&mut on_jit)?;
    let counted = instructions::Counted::CompiledCode;
    let counted = instructions::count(counted, &mut || {
        workload.run(&mut on_jit)?;
        Ok(jit.synchronize()?)
    });
    Ok(counted.unwrap_or_else(|error| panic!("{}: {error}", program.name)))
}

/// Medians of a program, in milliseconds a run.
struct Row {
    benchmark: &'static Benchmark,
    checked: f64,
    unchecked: f64,
    clamped: f64,
    /// Of the code in each folder that was named.
    from_folders: Vec<f64>,
    /// nvcc's machine code, and its PTX through the driver.
    nvcc: Option<(f64, f64)>,
    /// The largest distance of quartiles, as a part of the median.
    spread: f64,
    /// Quartiles of the ratio of each sample with checks to the one without that comes next, and of clamped ones.
    ratio: [f64; 3],
    ratio_clamped: [f64; 3],
}

impl Row {
    /// What ratios are to: nvcc's machine code, or Kiln's without checks.
    fn peer(&self) -> f64 {
        self.nvcc
            .map_or(self.unchecked, |(machine_code, _)| machine_code)
    }

    fn print(&self, folders: &[(bool, PathBuf)]) {
        let ratio = |time: f64| format!("{:.3}", time / self.peer());
        let ptx = self.nvcc.map_or("-".to_owned(), |(_, ptx)| ratio(ptx));
        let Lines { kiln, twin } = self.benchmark.lines();
        let quartiles =
            |[quarter, half, three]: [f64; 3]| format!("{quarter:.3} {half:.3} {three:.3}");
        println!(
            "{:<32} {:>11} {:>10.4} {ptx:>10} {:>10} {:>10} {:>10} {:>7.1}% {:>9}  {}  {}",
            self.benchmark.name,
            format!("{:?}", self.benchmark.bound),
            self.peer(),
            ratio(self.unchecked),
            ratio(self.checked),
            ratio(self.clamped),
            100.0 * self.spread,
            format!("{kiln}/{twin}"),
            quartiles(self.ratio),
            quartiles(self.ratio_clamped),
        );
        for ((_, folder), time) in folders.iter().zip(&self.from_folders) {
            println!("{:>87} {}", ratio(*time), folder.display());
        }
    }

    fn json(&self) -> serde_json::Value {
        let Lines { kiln, twin } = self.benchmark.lines();
        json!({
            "name": format!("suite/{}", self.benchmark.name),
            "bound": format!("{:?}", self.benchmark.bound),
            "unit": "ms",
            "checked": self.checked,
            "unchecked": self.unchecked,
            "clamped": self.clamped,
            "from_folders": self.from_folders,
            "nvcc": self.nvcc.map(|(machine_code, _)| machine_code),
            "nvcc_ptx": self.nvcc.map(|(_, ptx)| ptx),
            "spread": self.spread,
            "ratio": self.ratio,
            "ratio_clamped": self.ratio_clamped,
            "lines": { "kiln": kiln, "twin": twin },
        })
    }
}

/// Prints geometric means and the worst, by what limits the programs.
fn summarize(rows: &[Row]) {
    let of_checks: Vec<f64> = rows.iter().map(|row| row.ratio[1]).collect();
    print_mean("checked", &of_checks);
    let of_clamping: Vec<f64> = rows.iter().map(|row| row.ratio_clamped[1]).collect();
    print_mean("clamped", &of_clamping);
    for bound in [Bound::Memory, Bound::Arithmetic, Bound::Gather] {
        let of: Vec<&Row> = rows
            .iter()
            .filter(|row| row.benchmark.bound == bound)
            .collect();
        if of.is_empty() {
            continue;
        }
        for (what, time) in [
            ("unchecked", (|row| row.unchecked) as fn(&Row) -> f64),
            ("checked", |row| row.checked),
            ("clamped", |row| row.clamped),
        ] {
            let ratios = of.iter().map(|row| time(row) / row.peer());
            let mean = (ratios.clone().map(f64::ln).sum::<f64>() / of.len() as f64).exp();
            let worst = ratios.fold(0.0, f64::max);
            println!("{bound:?}, {what}: geometric mean {mean:.3}, worst {worst:.3}");
        }
    }
}

fn measure(
    benchmark: &'static Benchmark,
    jits: &[&Jit],
    twins: &Twins,
    samples: usize,
) -> kiln::Result<Row> {
    let checked = jits[0];
    let on_gpu = checked.device().info().kind == DeviceKind::Cuda;
    let size = if on_gpu { Size::Full } else { Size::Medium };
    let mut workload = (benchmark.make)(checked, size)?;
    let of_jits = jits
        .iter()
        .map(|jit| -> Box<dyn Launcher + '_> { Box::new(OnJit(jit)) });
    let mut ways: Vec<_> = of_jits.collect();
    for twin in twins.of(benchmark.twin).into_iter().flatten() {
        ways.push(Box::new(twin));
    }
    for way in &mut ways {
        workload.reset(way.as_mut())?;
        workload.run(way.as_mut())?;
        if let Err(error) = workload.check() {
            panic!("{}: {error}", benchmark.name);
        }
    }
    let mut times = vec![Vec::new(); ways.len()];
    let runs = runs_of_a_sample(checked, workload.as_mut(), ways[0].as_mut())?;
    for _ in 0..samples {
        for (way, times) in ways.iter_mut().zip(&mut times) {
            times.push(time(checked, workload.as_mut(), way.as_mut(), runs)?);
        }
    }
    let to_unchecked = |way: usize| {
        let samples = times[way].iter().zip(&times[1]);
        let mut ratios: Vec<f64> = samples.map(|(time, unchecked)| time / unchecked).collect();
        quartiles(&mut ratios)
    };
    let (ratio, ratio_clamped) = (to_unchecked(0), to_unchecked(2));
    let spread = times
        .iter_mut()
        .map(|times| quartiles(times))
        .map(|[low, median, high]| (high - low) / median)
        .fold(0.0, f64::max);
    let median = |way: usize| times[way][times[way].len() / 2];
    let of_nvcc = jits.len();
    Ok(Row {
        benchmark,
        checked: median(0),
        unchecked: median(1),
        clamped: median(2),
        from_folders: (3..of_nvcc).map(median).collect(),
        nvcc: (times.len() > of_nvcc).then(|| (median(of_nvcc), median(of_nvcc + 1))),
        spread,
        ratio,
        ratio_clamped,
    })
}
