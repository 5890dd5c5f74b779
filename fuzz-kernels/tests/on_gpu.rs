//! Random kernels on a GPU beside the interpreter, bit by bit, with and without each standard hook.
//!
//! `random-kernels [--count N] [--seconds T] [--seed S] [--o0] [--out FOLDER] [--replay FILE]`: N kernels,
//! 2,000 if it is not said, as many of them as T seconds are enough for, compiled on all cores, after those
//! that once differed; what differs goes to FOLDER, reduced. With `--planted` LLVM is told that no
//! other thread writes to slices, which has to be found. A program without a harness, so that it can
//! be carried to a machine that has a GPU and no Rust; there `--require` makes it fail without a CUDA
//! device.

#[path = "../../tests/planted/mod.rs"]
mod planted;

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kiln_jit_core::code::{Code, CompiledKernel};
use kiln_jit_core::codegen::OptLevel;
use kiln_jit_core::compile::{NoObserver, compile};
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::job::{CompileJob, CompileOptions};
use kiln_jit_core::runtime::cuda::CudaContext;
use kiln_jit_core::target::{PtxTarget, Target};
use kiln_random::run::{by_value, difference, param_block, reference};
use kiln_random::{Budget, Case, Runner, generate, hooks_of, reduce, sound};
use planted::Planted;

/// Cases that a GPU, or a backend, once got wrong, by name.
const KNOWN: [(&str, &str); 13] = [
    (
        "float_stored_as_16_bits",
        include_str!("../../docs/upstream/float_stored_as_16_bits.kir"),
    ),
    (
        "float_stored_as_8_bits",
        include_str!("../../docs/upstream/float_stored_as_8_bits.kir"),
    ),
    (
        "lanes_that_end_after_a_vote",
        include_str!("../../docs/upstream/lanes_that_end_after_a_vote.kir"),
    ),
    (
        "negated_16_bits",
        include_str!("../../docs/upstream/negated_16_bits.kir"),
    ),
    (
        "negated_zero_of_a_bool",
        include_str!("../../docs/upstream/negated_zero_of_a_bool.kir"),
    ),
    (
        "negated_zero_of_bf16",
        include_str!("../../docs/upstream/negated_zero_of_bf16.kir"),
    ),
    (
        "sum_of_16_bits",
        include_str!("../../docs/upstream/sum_of_16_bits.kir"),
    ),
    (
        "truth_as_float_beside_a_vote",
        include_str!("../../docs/upstream/truth_as_float_beside_a_vote.kir"),
    ),
    (
        "condition_of_another_segment",
        include_str!("cases/condition_of_another_segment.kir"),
    ),
    (
        "conversion_rounds_once",
        include_str!("cases/conversion_rounds_once.kir"),
    ),
    (
        "partly_constant_vectors",
        include_str!("cases/partly_constant_vectors.kir"),
    ),
    (
        "variable_after_a_guard",
        include_str!("cases/variable_after_a_guard.kir"),
    ),
    (
        "variable_of_an_ended_warp",
        include_str!("cases/variable_of_an_ended_warp.kir"),
    ),
];

/// How many kernels that differ are enough.
const FAILURES: usize = 8;

/// How long a kernel that differs is made smaller.
const REDUCTION: Duration = Duration::from_secs(25);

/// The first CUDA device. Kernels are compiled side by side and run one after the other.
struct Gpu {
    context: Arc<CudaContext>,
    target: PtxTarget,
    opt_level: OptLevel,
    /// Whether LLVM is told that no other thread writes to slices.
    planted: bool,
    runs: Mutex<()>,
}

impl Gpu {
    fn compile(&self, case: &Case, hooks: &HookSet) -> Result<CompiledKernel, String> {
        let options = CompileOptions {
            // Fused operations round once, which is another result.
            contract: false,
            opt_level: self.opt_level,
            ..CompileOptions::default()
        };
        let job = CompileJob::new(case.module.clone(), Target::Ptx(self.target), options);
        compile(job, hooks, &NoObserver).map_err(|e| e.to_string())
    }

    fn launch(&self, case: &Case, kernel: &CompiledKernel) -> Result<Vec<Vec<u8>>, String> {
        let Code::Ptx(ptx) = &kernel.code else {
            return Err("code for another target".to_owned());
        };
        let context = &self.context;
        let module = context
            .load_module(ptx.text.as_bytes(), &kernel.info.name)
            .map_err(|e| e.to_string())?;
        let function = module.function(&ptx.entry).map_err(|e| e.to_string())?;
        if case.dynamic_shared > 48 << 10 {
            let allowed = function.allow_dynamic_shared(case.dynamic_shared);
            allowed.map_err(|e| e.to_string())?;
        }
        let mut addresses = Vec::new();
        for bytes in &case.buffers {
            let address = context
                .alloc(bytes.len().max(16) as u64)
                .map_err(|e| e.to_string())?;
            let bytes: Vec<MaybeUninit<u8>> = bytes.iter().map(|&b| MaybeUninit::new(b)).collect();
            if !bytes.is_empty() {
                context
                    .copy_to_device(address, &bytes)
                    .map_err(|e| e.to_string())?;
            }
            addresses.push(address);
        }
        let layout = &kernel.info.layout;
        let case = &by_value(case, layout);
        let mut params = param_block(case, &layout.params, layout.size, &addresses)?;
        let channel = layout.fault_channel().offset as usize;
        params[channel..channel + 8].copy_from_slice(&context.channel_address().to_ne_bytes());
        let block: *mut c_void = params.as_mut_ptr().cast();
        let slots = layout.slots.iter();
        let mut slots: Vec<_> = slots
            .map(|s| block.wrapping_byte_add(s.offset as usize))
            .collect();
        let stream = context.default_stream().handle();
        // SAFETY: the parameters are laid out as the kernel takes them, and generated kernels access
        // their buffers only, which are freed after the launch has ended.
        let launched = unsafe {
            context.launch(
                &function,
                case.grid,
                case.block,
                case.dynamic_shared,
                stream,
                slots.as_mut_ptr(),
            )
        };
        launched.map_err(|e| e.to_string())?;
        context.synchronize().map_err(|e| e.to_string())?;
        let fault = context.take_fault();
        let mut buffers = Vec::new();
        for (bytes, &address) in case.buffers.iter().zip(&addresses) {
            let mut now = vec![0u8; bytes.len()];
            if !now.is_empty() {
                context
                    .copy_to_host(&mut now, address)
                    .map_err(|e| e.to_string())?;
            }
            buffers.push(now);
            context.free(address).map_err(|e| e.to_string())?;
        }
        match fault {
            None => Ok(buffers),
            Some(fault) => Err(format!("fault: {fault:?}")),
        }
    }
}

impl Runner for Gpu {
    fn name(&self) -> String {
        "GPU".to_owned()
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let mut hooks = hooks_of(case);
        if self.planted {
            hooks.push(Arc::new(Planted::NoAlias));
        }
        let kernel = self.compile(case, &hooks)?;
        let _one = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        self.launch(case, &kernel)
            .map_err(|e| format!("{e}, hooks {hooks:?}"))
    }
}

/// The case of a seed: one in four large, one full of operations of warps, one of blocks of all sizes.
fn case(seed: u64) -> Case {
    let mut budget = Budget::default();
    match seed % 4 {
        1 => {
            budget.instructions = 150;
            budget.depth = 5;
        }
        2 => budget.warps = 100,
        3 => {
            budget.uniform_shared = true;
            budget.threads = 1024;
        }
        _ => {}
    }
    generate(seed, &budget)
}

/// What is wrong with a case on the GPU, if anything is.
fn wrong(gpu: &Gpu, case: &Case) -> Option<String> {
    let expected = match reference().run(case) {
        Ok(expected) => expected,
        Err(why) => return Some(format!("interpreter: {why}")),
    };
    match gpu.run(case) {
        Ok(found) => difference(case, &expected, &found).map(|d| format!("{d:?}")),
        Err(why) => Some(why),
    }
}

/// The smallest case that still differs, of those found in time.
fn reduced(gpu: &Gpu, case: Case) -> Case {
    let started = Instant::now();
    reduce(case, &|case: &Case| {
        started.elapsed() < REDUCTION && sound(case).is_ok() && wrong(gpu, case).is_some()
    })
}

/// Writes a case that differs to a folder, reduced.
fn keep(gpu: &Gpu, case: Case, folder: &str) {
    let (path, small) = (
        format!("{folder}/seed{}.kir", case.seed),
        reduced(gpu, case),
    );
    match std::fs::write(&path, small.to_text()) {
        Ok(()) => println!("{path}: {} instructions", small.instructions()),
        Err(error) => println!("{path}: {error}"),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| args.iter().any(|arg| arg == name);
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    let number = |name: &str, otherwise: u64| {
        value(name).map_or(otherwise, |text| {
            text.parse()
                .unwrap_or_else(|_| panic!("{name}: `{text}` is no number"))
        })
    };
    let context = match CudaContext::new(0) {
        Ok(context) => context,
        Err(error) => {
            println!("no CUDA device, so no random kernel was run on one: {error}");
            std::process::exit(i32::from(flag("--require")));
        }
    };
    let (seed, count) = (number("--seed", 1), number("--count", 2000));
    println!("{count} kernels; --seed {seed} --count {count} runs them again");
    let gpu = Gpu {
        target: PtxTarget::for_sm(90),
        context,
        opt_level: if flag("--o0") {
            OptLevel::O0
        } else {
            OptLevel::O3
        },
        planted: flag("--planted"),
        runs: Mutex::new(()),
    };
    let mut known_wrong = 0;
    if let Some(path) = value("--replay") {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let case = Case::from_text(&text).unwrap_or_else(|e| panic!("{path}: {e}"));
        if let Err(why) = sound(&case) {
            println!("note: {why}");
        }
        let found = wrong(&gpu, &case);
        println!("{}", found.as_deref().unwrap_or("the same"));
        if let (Some(_), Some(folder)) = (&found, value("--out")) {
            keep(&gpu, case, &folder);
        }
        std::process::exit(i32::from(found.is_some()));
    }
    for (name, text) in KNOWN {
        let case = Case::from_text(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        if let Some(why) = wrong(&gpu, &case) {
            println!("{name}: {why}");
            known_wrong += 1;
        }
    }
    let (next, started) = (AtomicU64::new(seed), Instant::now());
    let time = Duration::from_secs(number("--seconds", u64::MAX));
    let run = AtomicU64::new(0);
    let failures: Mutex<Vec<Case>> = Mutex::new(Vec::new());
    let list = || failures.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(4, usize::from) {
            scope.spawn(|| {
                while list().len() < FAILURES && started.elapsed() < time {
                    let seed_of = next.fetch_add(1, Ordering::Relaxed);
                    if seed_of >= seed + count {
                        return;
                    }
                    let case = case(seed_of);
                    run.fetch_add(1, Ordering::Relaxed);
                    if let Some(why) = wrong(&gpu, &case) {
                        let text: String = why.chars().take(400).collect();
                        println!("seed {seed_of}: {text}");
                        list().push(case);
                    }
                }
            });
        }
    });
    let failures = failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = value("--out") {
        for case in failures.iter().take(3) {
            keep(&gpu, case.clone(), &folder);
        }
    }
    let run = run.into_inner() - failures.len() as u64;
    println!("{run} passed, {} failed", failures.len());
    println!("{} of {} known cases differ", known_wrong, KNOWN.len());
    std::process::exit(i32::from(!failures.is_empty() || known_wrong > 0));
}
