//! What each thing is worth that makes the kernels what they are: the programs without one of them, beside those with all.
//!
//! Where there is a GPU, programs are timed; a program whose PTX is the same is not, and has the ratio one. Elsewhere their
//! machine code is counted, by `KILN_PTXAS` and `KILN_NVDISASM`, or without these, how many programs have other PTX.

use std::collections::{BTreeMap, BTreeSet};

use kiln::core::hook::{Hook, HookSet};
use kiln::core::ir::Unroll;
use kiln::core::job::CompileOptions;
use kiln::core::runtime::DeviceKind;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use kiln_suite::{Benchmark, Launch, Launcher, OnJit, Size, Workload, without_checks};

use crate::code::{SM, entry, kernel};
use crate::machine::{Assembled, Machine, machines};
use crate::pipeline;

/// A way to compile that differs in one thing.
#[derive(Clone)]
struct Variant {
    name: String,
    compile: CompileOptions,
    hooks: HookSet,
    facts: bool,
}

impl Variant {
    fn jit(&self, device: &Device, target: Option<Target>) -> kiln::Result<Jit> {
        let builder = Jit::builder().device(device.clone()).target(target);
        let builder = builder
            .hooks(self.hooks.clone())
            .compile(self.compile.clone());
        builder.specialize_facts(self.facts).build()
    }

    /// For an architecture, on a machine that need not have it.
    fn to_ptx(&self, target: PtxTarget) -> kiln::Result<Jit> {
        self.jit(&Device::cpu(), Some(Target::Ptx(target)))
    }
}

/// PTX by the name of the twin's kernel, without what options change in names and numbers of kernels.
type Texts = BTreeMap<&'static str, String>;

/// What stands for a kernel's number, which is that of its key.
const TAG: &str = "1";

/// Looks at the code of launches, and runs none.
struct Look<'a> {
    jit: &'a Jit,
    texts: Texts,
    passes: BTreeSet<String>,
}

impl Launcher for Look<'_> {
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()> {
        if self.texts.contains_key(launch.twin) {
            return Ok(());
        }
        let inspection = self.jit.inspect(launch.kernel, launch.args)?;
        let ptx = inspection.ptx()?;
        let text = ptx.replace(entry(ptx), kernel(ptx));
        let tag = inspection.info().kernel_tag;
        let text = text.replace(&tag.to_string(), TAG);
        let text = text.replace(&tag.cast_signed().to_string(), TAG);
        self.texts.insert(launch.twin, text);
        let passes = inspection.passes().unwrap_or_default();
        self.passes.extend(pipeline::names(passes));
        Ok(())
    }
}

/// The PTX of a program, and the passes that made it.
fn look(program: &Benchmark, jit: &Jit) -> kiln::Result<(Texts, BTreeSet<String>)> {
    let mut workload = (program.make)(jit, Size::Small)?;
    let mut look = Look {
        jit,
        texts: BTreeMap::new(),
        passes: BTreeSet::new(),
    };
    workload.run(&mut look)?;
    Ok((look.texts, look.passes))
}

/// Everything, and all that differs from it in one thing: what is known to be on is off, and what is not on by default is.
fn variants(has_checks: bool, passes: &BTreeSet<String>) -> Vec<Variant> {
    let all = Variant {
        name: "everything".to_owned(),
        compile: match has_checks {
            true => CompileOptions::default(),
            false => without_checks(),
        },
        hooks: kiln::hooks::standard(),
        facts: false,
    };
    let mut variants = vec![all.clone()];
    variants.extend(all.hooks.iter().map(|hook| Variant {
        name: format!("without `{}`", hook.name()),
        hooks: all.hooks.clone().without(hook.name()),
        ..all.clone()
    }));
    variants.push(Variant {
        name: "facts of integers, too".to_owned(),
        facts: true,
        ..all.clone()
    });
    variants.extend(of_options(&all, has_checks));
    variants.extend(of_code(passes).into_iter().map(|hook| Variant {
        name: hook.name().to_owned(),
        hooks: all.hooks.clone().with(hook),
        ..all.clone()
    }));
    variants
}

/// Options of the compilation.
fn of_options(all: &Variant, has_checks: bool) -> Vec<Variant> {
    let options = || all.compile.clone();
    let mut named = vec![
        (
            "32 registers for gathers",
            options().gather_registers(false),
        ),
        ("inlined up to 0", options().inline_threshold(0)),
        ("inlined up to 1000", options().inline_threshold(1000)),
        ("no loop unrolled", options().unroll(Unroll::Never)),
    ];
    if has_checks {
        named.push(("no checks", without_checks()));
        named.push(("clamped", options().clamped()));
    }
    let variant = |(name, compile): (&str, CompileOptions)| Variant {
        name: name.to_owned(),
        compile,
        ..all.clone()
    };
    named.into_iter().map(variant).collect()
}

/// What changes PTX, or the passes that make it.
fn of_code(passes: &BTreeSet<String>) -> Vec<Hook> {
    let is_unrolling = |pass: &&String| pass.starts_with("loop-unroll");
    let unrolling: Vec<&String> = passes.iter().filter(is_unrolling).collect();
    let mut hooks = vec![
        unrolled_by_llvm_alone(),
        without_passes("unrolled by `ptxas` alone", &unrolling),
        loads_by_the_common_path(),
        licm_without_speculation(),
    ];
    hooks.extend(passes.iter().map(|pass| {
        let name = format!("without `{pass}`");
        without_passes(&name, &[pass])
    }));
    hooks
}

/// Leaves loops that LLVM has made as they are: `ptxas` unrolls none.
fn unrolled_by_llvm_alone() -> Hook {
    Hook::new("unrolled by LLVM alone").rewrite_ptx(|_, ptx| {
        let lines: Vec<&str> = ptx.lines().collect();
        let label = |line: &str| Some(line.split_once(':')?.0.to_owned());
        let is_back = |at: usize, label: &str| {
            let branches = |line: &&str| line.contains("bra") && line.contains(label);
            lines[at..].iter().any(branches)
        };
        let mut text = String::with_capacity(ptx.len());
        for (at, line) in lines.iter().enumerate() {
            text.push_str(line);
            text.push('\n');
            let label = label(line).filter(|label| label.starts_with("$L"));
            if label.is_some_and(|label| is_back(at, &format!("{label};"))) {
                text.push_str("\t.pragma \"nounroll\";\n");
            }
        }
        *ptx = text;
        Ok(())
    })
}

/// Loads what nobody writes as what somebody may.
fn loads_by_the_common_path() -> Hook {
    Hook::new("without `ld.global.nc`").rewrite_ptx(|_, ptx| {
        *ptx = ptx.replace("ld.global.nc", "ld.global");
        Ok(())
    })
}

/// Moves nothing out of a loop that is not executed in each turn.
fn licm_without_speculation() -> Hook {
    Hook::new("`licm` without speculation").pass_pipeline(|_, passes| {
        *passes = passes.replace("licm<allowspeculation>", "licm<no-allowspeculation>");
        Ok(())
    })
}

/// Leaves passes out wherever they are.
fn without_passes(name: &str, left_out: &[&String]) -> Hook {
    let left_out: Vec<String> = left_out.iter().map(|&pass| pass.clone()).collect();
    let hook = Hook::new(name).key("passes", &left_out);
    hook.pass_pipeline(move |_, passes| {
        *passes = pipeline::without(passes, &left_out);
        Ok(())
    })
}

/// What a variant costs, everything being one.
#[derive(Default)]
struct Cost {
    /// Programs whose code is another.
    others: usize,
    /// The ratios of these.
    ratios: Vec<(&'static str, f64)>,
    /// Of all kernels; none without a `ptxas`.
    counts: Option<Counts>,
}

/// Sums over kernels.
#[derive(Copy, Clone, Default)]
struct Counts {
    instructions: usize,
    innermost: usize,
    registers: usize,
    spills: usize,
}

impl Counts {
    fn add(&mut self, machine: &Machine) {
        self.instructions += machine.instructions;
        self.innermost += machine.innermost;
        self.registers += machine.registers;
        self.spills += machine.spills;
    }
}

/// Programs beside themselves, with one thing changed.
pub struct Ablation<'a> {
    pub device: &'a Device,
    /// What the device is compiled for.
    pub target: &'a Target,
    pub has_checks: bool,
    pub samples: usize,
    /// What the names of the things hold that are left out.
    pub of: &'a str,
}

impl Ablation<'_> {
    /// Prints a line for each thing.
    pub fn print(&self, programs: &[&'static Benchmark]) -> kiln::Result<()> {
        let is_timed = self.device.info().kind == DeviceKind::Cuda;
        let target = match self.target {
            Target::Ptx(target) => *target,
            _ => PtxTarget::for_sm(SM),
        };
        let passes = self.passes(target, programs)?;
        let mut variants = variants(self.has_checks, &passes);
        let everything = variants[0].name.clone();
        variants.retain(|variant| variant.name == everything || variant.name.contains(self.of));
        let texts = texts(&variants, target, programs)?;
        let mut costs: Vec<Cost> = variants.iter().map(|_| Cost::default()).collect();
        for (at, program) in programs.iter().enumerate() {
            let is_other = |way: &usize| texts[*way][at] != texts[0][at];
            let others: Vec<usize> = (1..variants.len()).filter(is_other).collect();
            for &way in &others {
                costs[way].others += 1;
            }
            if is_timed {
                self.time(program, &variants, &others, &mut costs)?;
            }
        }
        match is_timed {
            true => println!("{:<44} {:>6} {:>7}", "", "others", "mean"),
            false => {
                count(&texts, target.sm, &mut costs);
                println!(
                    "{:<44} others, instructions, of innermost loops, registers, spills",
                    ""
                );
            }
        }
        for (variant, cost) in variants.iter().zip(&costs) {
            match is_timed {
                true => print_times(&variant.name, cost, programs.len()),
                false => print_counts(&variant.name, cost),
            }
        }
        let none = (1..variants.len()).filter(|&way| costs[way].others == 0);
        let none: Vec<&str> = none.map(|way| &*variants[way].name).collect();
        println!("change no code: {}", none.join(", "));
        Ok(())
    }

    /// The passes of all programs' kernels.
    fn passes(&self, target: PtxTarget, programs: &[&Benchmark]) -> kiln::Result<BTreeSet<String>> {
        let everything = &variants(self.has_checks, &BTreeSet::new())[0];
        let jit = everything.to_ptx(target)?;
        let mut passes = BTreeSet::new();
        for program in programs {
            passes.extend(look(program, &jit)?.1);
        }
        Ok(passes)
    }

    /// Times a program with everything and in other ways, one after the other, and keeps the ratios of the medians.
    fn time(
        &self,
        program: &'static Benchmark,
        variants: &[Variant],
        others: &[usize],
        costs: &mut [Cost],
    ) -> kiln::Result<()> {
        let ways: Vec<usize> = std::iter::once(0).chain(others.iter().copied()).collect();
        let jits: Vec<Jit> = ways
            .iter()
            .map(|&way| variants[way].jit(self.device, None))
            .collect::<kiln::Result<_>>()?;
        for (jit, &way) in jits.iter().zip(&ways) {
            check_small(program, jit, &variants[way].name)?;
        }
        let mut workload = (program.make)(&jits[0], Size::Full)?;
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
        let once = self.warm_up(workload.as_mut(), &jits)?;
        let runs = (crate::timing::LEAST / once).ceil().clamp(1.0, 1000.0) as usize;
        for _ in 0..self.samples {
            for (jit, times) in jits.iter().zip(&mut times) {
                times.push(crate::time(jit, workload.as_mut(), &mut OnJit(jit), runs)?);
            }
        }
        let median = |times: &mut Vec<f64>| crate::quartiles(times)[1];
        let medians: Vec<f64> = times.iter_mut().map(median).collect();
        for (&way, time) in ways.iter().zip(&medians).skip(1) {
            costs[way].ratios.push((program.name, time / medians[0]));
        }
        println!(
            "{}: {:.4} ms, {} other ways",
            program.name,
            medians[0],
            others.len()
        );
        Ok(())
    }

    /// Runs a program once each way, which compiles what only the large size has. Gives the milliseconds of a run.
    fn warm_up(&self, workload: &mut dyn Workload, jits: &[Jit]) -> kiln::Result<f64> {
        for jit in jits {
            workload.reset(&mut OnJit(jit))?;
            workload.run(&mut OnJit(jit))?;
        }
        crate::time(&jits[0], workload, &mut OnJit(&jits[0]), 1)
    }
}

/// That a program is right, small: the host takes longer for the large size than the GPU.
fn check_small(program: &Benchmark, jit: &Jit, variant: &str) -> kiln::Result<()> {
    let mut workload = (program.make)(jit, Size::Small)?;
    workload.reset(&mut OnJit(jit))?;
    workload.run(&mut OnJit(jit))?;
    if let Err(error) = workload.check() {
        panic!("{}, {variant}: {error}", program.name);
    }
    Ok(())
}

/// The PTX of programs by variant, which threads compile side by side.
fn texts(
    variants: &[Variant],
    target: PtxTarget,
    programs: &[&'static Benchmark],
) -> kiln::Result<Vec<Vec<Texts>>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let of = |variant: &Variant| -> kiln::Result<Vec<Texts>> {
        let jit = variant.to_ptx(target)?;
        let of_program = |program: &&'static Benchmark| Ok(look(program, &jit)?.0);
        programs.iter().map(of_program).collect()
    };
    let mut texts = Vec::new();
    for some in variants.chunks(threads) {
        let some: Vec<kiln::Result<Vec<Texts>>> = std::thread::scope(|scope| {
            let threads = some.iter().map(|variant| scope.spawn(|| of(variant)));
            let threads: Vec<_> = threads.collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|of| of.expect("it compiles")).collect()
        });
        for of in some {
            texts.push(of?);
        }
    }
    Ok(texts)
}

/// Counts the machine code of all kernels, of each text once, where there is a `ptxas`.
fn count(texts: &[Vec<Texts>], sm: u32, costs: &mut [Cost]) {
    fn distinct<'t>(texts: impl Iterator<Item = &'t Texts>) -> BTreeSet<&'t str> {
        texts.flat_map(Texts::values).map(|text| &**text).collect()
    }
    let all = distinct(texts.iter().flatten());
    let assembled = all.iter().map(|text| Assembled::of_entry(text, sm));
    let assembled: Option<Vec<Assembled>> = assembled.collect();
    let Some(machines) = assembled.and_then(|assembled| machines(assembled, sm)) else {
        return;
    };
    let known: BTreeMap<&str, Machine> = all.into_iter().zip(machines).collect();
    for (programs, cost) in texts.iter().zip(costs) {
        let mut counts = Counts::default();
        // A kernel that several programs launch counts once.
        for text in distinct(programs.iter()) {
            counts.add(&known[text]);
        }
        cost.counts = Some(counts);
    }
}

fn print_counts(name: &str, cost: &Cost) {
    print!("{name:<44} {:>6}", cost.others);
    if let Some(counts) = cost.counts {
        let Counts {
            instructions,
            innermost,
            registers,
            spills,
        } = counts;
        print!(" {instructions:>7} {innermost:>7} {registers:>7} {spills:>7}");
    }
    println!();
}

fn print_times(name: &str, cost: &Cost, programs: usize) {
    let logarithms: f64 = cost.ratios.iter().map(|(_, ratio)| ratio.ln()).sum();
    let mean = (logarithms / programs as f64).exp();
    let by_ratio = |a: &&(&str, f64), b: &&(&str, f64)| a.1.total_cmp(&b.1);
    let ends = [
        cost.ratios.iter().min_by(by_ratio),
        cost.ratios.iter().max_by(by_ratio),
    ];
    let ends =
        ends.map(|end| end.map_or(String::new(), |(name, ratio)| format!("{ratio:.3} {name}")));
    let [least, most] = ends;
    let others = cost.others;
    println!("{name:<44} {others:>6} {mean:>7.3}  least {least:<40} most {most}");
}
