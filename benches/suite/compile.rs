//! How long kernels take to compile, stage by stage: those of the suite to PTX, beside NVRTC on their twins in the same
//! run, and to code for this CPU; and kernels of a thousand and more statements.
//! `cargo bench -p kiln-suite --bench compile-suite`.
//!
//! - `--filter TEXT`: the programs and kernels whose names hold it;
//! - `--samples N`: how often each is compiled, 9 if not said;
//! - `--nvrtc PATH`: the library to compare with, if the system's loader does not find it;
//! - `--passes TEXT`: another pipeline for PTX, in the notation of LLVM's `opt -passes`;
//! - `--suite`, `--growth`: only that;
//! - `--ptx`: no code for this CPU;
//! - `--processor`: the processor time of a kernel's compile from its description to code that is kept in a folder, in
//!   place of the clock's time of the stages, for machines on which others work. No stage is written as text for it.
//!
//! "Plain" is how kernels were compiled before there were questions and second versions: a check at each access, without the hook for
//! bounds checks, and the pipeline of then.
//!
//! A time is that of the stages together, from the specialized IR to the code, as `Jit::inspect` tells it, and the least of
//! the samples, since what else the machine does only adds to it; LLVM is open and warm before. NVRTC is given a twin as it is, with all kernels of its folder, and is compared
//! with the sum of these.

#[path = "../cpu/clock.rs"]
mod clock;
#[path = "compile/growth.rs"]
mod growth;
#[path = "compile/nvrtc.rs"]
mod nvrtc;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kiln::core::args::Arg;
use kiln::core::cache::CacheFolder;
use kiln::core::compile::Stage;
use kiln::core::hook::Hook;
use kiln::core::inspect::Inspection;
use kiln::core::job::CompileOptions;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use kiln_suite::{BENCHMARKS, Benchmark, Launch, Launcher, Size, without_checks};
use nvrtc::Nvrtc;
use serde_json::json;

const SM: u32 = 90;

/// The pipeline for PTX before the compiler was worked on for the suite.
const PLAIN_PIPELINE: &str = "function(sroa<modify-cfg>,infer-address-spaces,\
     separate-const-offset-from-gep,slsr,gvn<>,nary-reassociate,early-cse<>),default<O3>";

/// How many ways a kernel is compiled: to PTX with checks, without, and plain; for this CPU with checks and without.
const WAYS: usize = 5;

struct Options {
    filter: String,
    samples: usize,
    nvrtc: Option<PathBuf>,
    passes: Option<String>,
    suite: bool,
    growth: bool,
    host: bool,
    processor: bool,
}

fn options() -> Options {
    let mut options = Options {
        filter: String::new(),
        samples: 9,
        nvrtc: None,
        passes: None,
        suite: true,
        growth: true,
        host: true,
        processor: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("`{arg}` has a value"));
        match arg.as_str() {
            "--filter" => options.filter = value(),
            "--samples" => options.samples = value().parse().expect("`--samples` has a number"),
            "--nvrtc" => options.nvrtc = Some(value().into()),
            "--passes" => options.passes = Some(value()),
            "--suite" => options.growth = false,
            "--growth" => options.suite = false,
            "--ptx" => options.host = false,
            "--processor" => options.processor = true,
            // Cargo's own.
            "--bench" => {}
            other => panic!("no option `{other}`"),
        }
    }
    options
}

fn main() -> kiln::Result<()> {
    let options = options();
    let bench = Bench::new(&options)?;
    if options.suite {
        bench.suite()?;
    }
    if options.growth {
        bench.growth()?;
    }
    Ok(())
}

/// Where kernels are compiled.
struct Bench<'o> {
    options: &'o Options,
    /// Where code is kept whose compile was timed.
    folder: PathBuf,
    checked: Jit,
    unchecked: Jit,
    plain: Jit,
    host: Jit,
    host_unchecked: Jit,
}

/// Milliseconds of the parts of a compile.
#[derive(Copy, Clone, Default)]
struct Parts {
    all: f64,
    hooks: f64,
    passes: f64,
    emission: f64,
}

impl Parts {
    fn of(inspection: &Inspection) -> Parts {
        let ms = |took: Duration| took.as_secs_f64() * 1e3;
        let stage = |wanted: &[Stage]| {
            let timings = inspection.timings();
            let of = timings.filter(|(stage, _)| wanted.contains(stage));
            of.map(|(_, took)| ms(took)).sum()
        };
        Parts {
            all: inspection.timings().map(|(_, took)| ms(took)).sum(),
            hooks: inspection.hooks().iter().map(|hook| ms(hook.took)).sum(),
            passes: stage(&[Stage::OptimizedLlvm]),
            emission: stage(&[Stage::Ptx, Stage::Object]),
        }
    }

    /// The least of each.
    fn least(samples: &[Parts]) -> Parts {
        let of = |part: fn(&Parts) -> f64| least(samples.iter().map(part));
        Parts {
            all: of(|parts| parts.all),
            hooks: of(|parts| parts.hooks),
            passes: of(|parts| parts.passes),
            emission: of(|parts| parts.emission),
        }
    }

    fn json(self) -> serde_json::Value {
        let Parts {
            all,
            hooks,
            passes,
            emission,
        } = self;
        json!({ "all": all, "hooks": hooks, "passes": passes, "emission": emission })
    }
}

impl<'o> Bench<'o> {
    fn new(options: &'o Options) -> kiln::Result<Bench<'o>> {
        let folder = std::env::temp_dir().join(format!("kiln-compile-{}", std::process::id()));
        let builder = || {
            let cache = CacheFolder::At(folder.clone());
            Jit::builder().device(Device::cpu()).cache(cache)
        };
        let to_ptx = || builder().target(Target::Ptx(PtxTarget::for_sm(SM)));
        let ptx = |compile| {
            let builder = to_ptx();
            let builder = match &options.passes {
                Some(passes) => builder.hook(pipeline(passes.clone())),
                None => builder,
            };
            builder.compile(compile).build()
        };
        let host = |compile| builder().compile(compile).build();
        Ok(Bench {
            options,
            checked: ptx(CompileOptions::default())?,
            unchecked: ptx(without_checks())?,
            plain: to_ptx()
                .hooks(kiln::hooks::standard().without("bounds-checks"))
                .hook(pipeline(PLAIN_PIPELINE.to_owned()))
                .build()?,
            host: host(CompileOptions::default())?,
            host_unchecked: host(without_checks())?,
            folder,
        })
    }

    /// The kernels of the suite, folder by folder, each beside NVRTC.
    fn suite(&self) -> kiln::Result<()> {
        let nvrtc = match Nvrtc::open(self.options.nvrtc.as_deref()) {
            Ok(nvrtc) => {
                println!("NVRTC {}", nvrtc.version());
                Some(nvrtc)
            }
            Err(error) => {
                println!("no NVRTC to compare with: {error}");
                None
            }
        };
        println!(
            "{:<28} {:>8} {:>9} {:>7} {:>7} {:>8} {:>8} {:>9}",
            "ms", "checked", "unchecked", "hooks", "passes", "emission", "this CPU", "unchecked"
        );
        let mut all = [0.0; WAYS];
        let chosen = BENCHMARKS
            .iter()
            .filter(|benchmark| benchmark.name.contains(&self.options.filter));
        let mut folders: Vec<(&str, Vec<&Benchmark>)> = Vec::new();
        for benchmark in chosen {
            match folders.iter_mut().find(|(twin, _)| *twin == benchmark.twin) {
                Some((_, of)) => of.push(benchmark),
                None => folders.push((benchmark.twin, vec![benchmark])),
            }
        }
        for (twin, benchmarks) in folders {
            let of_folder = self.folder(twin, &benchmarks, nvrtc.as_ref())?;
            for (all, way) in all.iter_mut().zip(of_folder) {
                *all += way;
            }
        }
        let [checked, unchecked, plain, ..] = all;
        let of_plain = checked / plain;
        println!(
            "all {checked:.1}, unchecked {unchecked:.1}; plain {plain:.1}; ratio {of_plain:.3}"
        );
        Ok(())
    }

    fn folder(
        &self,
        twin: &str,
        benchmarks: &[&Benchmark],
        nvrtc: Option<&Nvrtc>,
    ) -> kiln::Result<[f64; WAYS]> {
        let mut look = Look {
            bench: self,
            samples: BTreeMap::new(),
            seen: BTreeSet::new(),
        };
        let mut by_nvrtc = Vec::new();
        for sample in 0..=self.options.samples {
            look.seen.clear();
            for benchmark in benchmarks {
                let mut workload = (benchmark.make)(&self.checked, Size::Small)?;
                workload.run(&mut look)?;
            }
            if let Some(nvrtc) = nvrtc {
                let (start, processor) = (Instant::now(), clock::cpu_time());
                nvrtc.ptx(twin, SM);
                let took = match self.options.processor {
                    true => clock::cpu_time() - processor,
                    false => start.elapsed().as_secs_f64(),
                };
                by_nvrtc.push(took * 1e3);
            }
            // The first is not warm.
            if sample == 0 {
                look.samples.clear();
                by_nvrtc.clear();
            }
        }
        let mut sum = [0.0; WAYS];
        for (name, ways) in &look.samples {
            let ways = ways.each_ref().map(|way| Parts::least(way));
            for (sum, way) in sum.iter_mut().zip(ways) {
                *sum += way.all;
            }
            print(benchmarks[0].name, name, ways);
        }
        if !by_nvrtc.is_empty() {
            let nvrtc = least(by_nvrtc.into_iter());
            println!(
                "  together {:.2}, unchecked {:.2}; NVRTC {nvrtc:.2}; ratio {:.3}, {:.3}",
                sum[0],
                sum[1],
                sum[0] / nvrtc,
                sum[1] / nvrtc
            );
        }
        Ok(sum)
    }

    /// Kernels of many statements.
    fn growth(&self) -> kiln::Result<()> {
        println!(
            "{:<28} {:>8} {:>9} {:>7} {:>7} {:>8} {:>8} {:>9} {:>12}",
            "ms",
            "checked",
            "unchecked",
            "hooks",
            "passes",
            "emission",
            "this CPU",
            "unchecked",
            "us a line"
        );
        for (family, describe, sizes) in growth::FAMILIES {
            for &size in sizes {
                let name = format!("{family} {size}");
                if !name.contains(&self.options.filter) {
                    continue;
                }
                let kernel = describe(size)?;
                let mut samples = [const { Vec::new() }; WAYS];
                let mut y = self.checked.zeros::<f32>(16)?;
                for _ in 0..self.options.samples.min(3) {
                    for (way, samples) in samples.iter_mut().enumerate().take(self.ways()) {
                        let args = args!(1.0f32, &mut y);
                        samples.push(self.parts(way, &kernel, 256.into(), args)?);
                    }
                }
                let ways = samples.each_ref().map(|way| Parts::least(way));
                print(family, &size.to_string(), ways);
                println!(
                    "  {:.1} us a statement",
                    ways[0].all * 1e3 / f64::from(size)
                );
            }
        }
        Ok(())
    }

    /// How many ways a kernel is compiled.
    fn ways(&self) -> usize {
        if self.options.host { WAYS } else { 3 }
    }

    /// What a kernel takes, compiled a way.
    fn parts(
        &self,
        way: usize,
        kernel: &Kernel,
        block: Dim3,
        args: &[Arg<'_>],
    ) -> kiln::Result<Parts> {
        let inspection = self.inspect(way, kernel, block, args)?;
        let parts = Parts::of(&inspection);
        if !self.options.processor {
            return Ok(parts);
        }
        if inspection.interpreted().is_some() {
            // There is no code that could be kept.
            let all = f64::INFINITY;
            return Ok(Parts { all, ..parts });
        }
        let jit = self.jit(way);
        let start = clock::cpu_time();
        jit.keep(kernel, block, args)?;
        let took = clock::cpu_time() - start;
        // Else the next one reads it.
        forget(&self.folder);
        Ok(Parts {
            all: took * 1e3,
            ..parts
        })
    }

    /// Where kernels are compiled a way.
    fn jit(&self, way: usize) -> &Jit {
        [
            &self.checked,
            &self.unchecked,
            &self.plain,
            &self.host,
            &self.host_unchecked,
        ][way]
    }

    /// What a kernel becomes: as PTX with checks, without, and plain; for this CPU with checks and without.
    fn inspect(
        &self,
        way: usize,
        kernel: &Kernel,
        block: Dim3,
        args: &[Arg<'_>],
    ) -> kiln::Result<Inspection> {
        let jit = self.jit(way);
        match way {
            0..3 => jit.inspect(kernel, args),
            _ => jit.inspect_block(kernel, block, args),
        }
    }
}

/// Takes all files out of a folder.
fn forget(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => forget(&path),
            false => std::fs::remove_file(path).expect("the file is ours"),
        }
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        // What stays is in the system's folder for such files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Compiles what is launched, each kernel once, and runs nothing.
struct Look<'a> {
    bench: &'a Bench<'a>,
    /// By the name of the twin's kernel.
    samples: BTreeMap<&'static str, [Vec<Parts>; WAYS]>,
    seen: BTreeSet<&'static str>,
}

impl Launcher for Look<'_> {
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()> {
        if !self.seen.insert(launch.twin) {
            return Ok(());
        }
        let of = self.samples.entry(launch.twin).or_default();
        for (way, of) in of.iter_mut().enumerate().take(self.bench.ways()) {
            let kernel = launch.kernel.as_kernel()?;
            let (block, args) = (launch.config.block, launch.args);
            of.push(self.bench.parts(way, kernel, block, args)?);
        }
        Ok(())
    }
}

fn print(of: &str, name: &str, ways: [Parts; WAYS]) {
    let [checked, unchecked, _, host, host_unchecked] = ways;
    let label = format!("{of}: {name}");
    let told = |ms: f64| match ms.is_finite() {
        true => format!("{ms:.2}"),
        // Not compiled that way.
        false => "-".to_owned(),
    };
    println!(
        "{label:<28} {:>8} {:>9} {:>7} {:>7} {:>8} {:>8} {:>9}",
        told(checked.all),
        told(unchecked.all),
        told(checked.hooks),
        told(checked.passes),
        told(checked.emission),
        told(host.all),
        told(host_unchecked.all)
    );
    let ways = ways.map(Parts::json);
    println!(
        "{}",
        json!({ "name": format!("compile-suite/{label}"), "unit": "ms", "ways": ways })
    );
}

/// What it takes where nothing else runs: others on the machine only add to it.
fn least(samples: impl Iterator<Item = f64>) -> f64 {
    samples.fold(f64::INFINITY, f64::min)
}

fn pipeline(passes: String) -> Hook {
    let hook = Hook::new("passes").key("passes", &passes);
    hook.may_be_kept().pass_pipeline(move |_, pipeline| {
        pipeline.clone_from(&passes);
        Ok(())
    })
}
