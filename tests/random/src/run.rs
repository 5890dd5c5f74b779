//! Running a case, and comparing what runs gave.

use std::fmt;

use kiln_jit_core::abi::{ParamKind, ParamLayout, ParamSlot};
use kiln_jit_core::checks::Checks;
use kiln_jit_core::codegen::OptLevel;
use kiln_jit_core::compile::{NoObserver, compile};
use kiln_jit_core::fault::FaultRecord;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::interp::{InterpretLaunch, InterpretedKernel};
use kiln_jit_core::job::{CompileJob, CompileOptions};
use kiln_jit_core::legal::Legal;
use kiln_jit_core::runtime::{BlockOrder, HostModule, OnHostModule, OnHostOptions, Schedule};
use kiln_jit_core::target::{Barriers, CpuTarget, Target};

use crate::case::{Arg, Case};
use crate::hooked::{hook_sets, hooked};
use crate::memory::DeviceMemory;
use crate::random::Random;
use crate::sound;

/// The loop iterations a thread may make; a generated one makes far fewer.
const STEP_LIMIT: u64 = 20_000;

/// The numbers of lanes that the compiled backend is run with.
pub const WIDTHS: [u32; 5] = [1, 8, 16, 32, 64];

/// Lanes of a vector where operations of a warp are.
const WARP: u32 = 32;

/// Something that executes cases.
pub trait Runner {
    /// What it is called in reports.
    fn name(&self) -> String;

    /// The buffers as they are after the launch.
    ///
    /// # Errors
    /// What went wrong, if the launch could not be made or ended early, a fault included.
    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String>;

    /// Whether an index out of bounds is clamped here, so that a thread may go on where it faults elsewhere.
    fn clamps(&self) -> bool {
        false
    }
}

/// The runner that the others are compared with.
pub fn reference() -> Box<dyn Runner> {
    Box::new(InterpreterRunner)
}

/// All runners that are compared with the reference. A backend is added here.
pub fn runners() -> Vec<Box<dyn Runner>> {
    let mut runners: Vec<Box<dyn Runner>> = vec![
        Box::new(ReversedRunner),
        Box::new(ShuffledRunner),
        Box::new(CheckedRunner),
        Box::new(OnHostRunner::default()),
    ];
    for hooks in hook_sets() {
        runners.push(Box::new(Hooked {
            hooks: hooks.clone(),
            runner: InterpreterRunner,
        }));
        runners.push(Box::new(Hooked {
            hooks,
            runner: HostRunner::new(WARP),
        }));
    }
    runners.push(Box::new(HostRunner {
        clamped: true,
        ..HostRunner::new(WARP)
    }));
    for lanes in WIDTHS {
        runners.push(Box::new(HostRunner::new(lanes)));
        runners.push(Box::new(HostRunner {
            barriers: Some(Barriers::Coroutines),
            ..HostRunner::new(lanes)
        }));
    }
    runners
}

/// The interpreter.
#[derive(Copy, Clone, Debug)]
pub struct InterpreterRunner;

impl Runner for InterpreterRunner {
    fn name(&self) -> String {
        "interpreter".to_owned()
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        interpret(case, &Checks::none(), BlockOrder::Increasing)
    }
}

/// The interpreter with threads and blocks in the opposite order: it gives the same unless the
/// kernel has a race.
#[derive(Copy, Clone, Debug)]
pub struct ReversedRunner;

impl Runner for ReversedRunner {
    fn name(&self) -> String {
        "interpreter, last thread first".to_owned()
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let reversed = sound::reversed(case);
        interpret(&reversed, &Checks::none(), BlockOrder::Increasing)
    }
}

/// The interpreter with blocks in an order that the seed chooses.
#[derive(Copy, Clone, Debug)]
pub struct ShuffledRunner;

impl Runner for ShuffledRunner {
    fn name(&self) -> String {
        "interpreter, blocks in any order".to_owned()
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let order = block_order(case, BlockOrder::Shuffled(case.seed));
        interpret(case, &Checks::none(), order).map_err(|e| format!("{e}; blocks began {order}"))
    }
}

/// The order in which the blocks of a case begin where this one is asked for: those that wait for
/// earlier ones begin in order, since they would wait for ever.
fn block_order(case: &Case, order: BlockOrder) -> BlockOrder {
    match case.waits() {
        true => BlockOrder::Increasing,
        false => order,
    }
}

/// The compiled CPU backend.
#[derive(Copy, Clone, Debug)]
pub struct HostRunner {
    /// Lanes of a vector; a case with operations of a warp is run with 32 all the same.
    pub lanes: u32,
    /// What happens at barriers.
    pub barriers: Option<Barriers>,
    /// The order in which blocks begin, in cases that can have any.
    pub order: BlockOrder,
    /// Whether indices are clamped: all are in bounds, so that this changes nothing.
    pub clamped: bool,
}

impl HostRunner {
    /// As users have it, with vectors of `lanes` lanes.
    pub fn new(lanes: u32) -> HostRunner {
        HostRunner {
            lanes,
            barriers: None,
            order: BlockOrder::Increasing,
            clamped: false,
        }
    }
}

/// The pipeline of passes that a case is compiled by for the CPU: mostly none, which takes less than half of the
/// time, as what is tried here is what LLVM is given. What its passes make of that is seen at the other level, and in
/// code for GPUs.
fn level(seed: u64) -> OptLevel {
    match Random::new(seed).chance(70) {
        true => OptLevel::O0,
        false => OptLevel::O1,
    }
}

impl Runner for HostRunner {
    fn name(&self) -> String {
        let mut name = format!("compiled, {} lanes", self.lanes);
        if let Some(way) = self.barriers {
            name += &format!(", {way:?}");
        }
        if self.order != BlockOrder::Increasing {
            name += &format!(", blocks {}", self.order);
        }
        if self.clamped {
            name += ", clamped";
        }
        name
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let target = Target::Cpu(CpuTarget {
            block: Some(case.block),
            lanes: Some(self.lanes),
            barriers: self.barriers,
            ..CpuTarget::host()
        });
        let options = CompileOptions::default()
            // Fused operations round once, which is another result.
            .contract(false)
            .opt_level(level(case.seed));
        let (options, hooks) = match self.clamped {
            true => (
                options.clamped(),
                kiln_hooks::standard().only("bounds-checks"),
            ),
            false => (options, HookSet::new()),
        };
        let job = CompileJob::new(case.module.clone(), target, options);
        let compiled = compile(job, &hooks, &NoObserver).map_err(|e| e.to_string())?;
        let module = HostModule::load(&compiled).map_err(|e| e.to_string())?;
        let module = module.ok_or("its barriers are for the interpreter only")?;
        let mut memory = DeviceMemory::new(case);
        let addresses: Vec<u64> = memory.ranges().iter().map(|r| r.0).collect();
        let layout = module.layout();
        let params = param_block(case, &layout.params, layout.size, &addresses)?;
        let order = block_order(case, self.order);
        // SAFETY: generated kernels access their buffers only, which `memory` holds until the run
        // is over; a backend with a bug may write beside one, where guard bytes are.
        let fault = unsafe { module.run(case.grid, case.dynamic_shared, &params, order) };
        describe(fault.map_err(|e| e.to_string())?)?;
        memory.into_buffers()
    }

    fn clamps(&self) -> bool {
        self.clamped
    }
}

/// A runner of what hooks make of a case.
#[derive(Debug)]
pub struct Hooked<R> {
    /// The hooks.
    pub hooks: HookSet,
    /// The runner.
    pub runner: R,
}

impl<R: Runner> Runner for Hooked<R> {
    fn name(&self) -> String {
        format!("{}, hooks {:?}", self.runner.name(), self.hooks)
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        self.runner.run(&hooked(case, &self.hooks)?)
    }
}

/// The architectures that random kernels are compiled for.
const ARCHITECTURES: [u32; 4] = [75, 80, 90, 120];

/// Code for GPUs on this CPU: everything up to LLVM's passes, which a launch on a GPU would have,
/// too. What is not set follows from the case's seed.
#[derive(Clone, Debug, Default)]
pub struct OnHostRunner {
    /// Hooks before those that the seed chooses from the standard ones.
    pub hooks: HookSet,
}

impl OnHostRunner {
    /// The architecture, the hooks and the order of turns for a seed.
    fn choose(&self, seed: u64) -> (u32, HookSet, Schedule) {
        // The generator has drawn from the seed itself, and the CPU's width from its complement.
        let mut random = Random::new(seed.rotate_left(32));
        let sm = random.of(&ARCHITECTURES);
        let standard = kiln_hooks::standard();
        let chosen = standard
            .iter()
            .fold(standard.clone(), |set, hook| match random.chance(75) {
                true => set,
                false => set.without(hook.name()),
            });
        let hooks = self.hooks.clone().with_all(&chosen);
        let schedule = match random.chance(25) {
            true => Schedule::RoundRobin,
            false => Schedule::Shuffled(random.bits()),
        };
        (sm, hooks, schedule)
    }
}

impl Runner for OnHostRunner {
    fn name(&self) -> String {
        "code for GPUs on this CPU".to_owned()
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let (sm, hooks, schedule) = self.choose(case.seed);
        let sm = match case.module.changes_word_pairs() {
            true => sm.max(90),
            false => sm,
        };
        let options = CompileOptions::default()
            // Fused operations round once, which is another result.
            .contract(false);
        let place = format!("sm_{sm}, hooks {hooks:?}, {schedule}");
        let failed = |error: &dyn std::fmt::Display| format!("{error}\n  {place}");
        let on_host = OnHostOptions { sm, schedule };
        let job = CompileJob::new(case.module.clone(), on_host.target(), options);
        let compiled = compile(job, &hooks, &NoObserver).map_err(|error| failed(&error))?;
        let module = OnHostModule::load(&compiled, on_host).map_err(|error| failed(&error))?;
        let mut memory = DeviceMemory::new(case);
        let addresses: Vec<u64> = memory.ranges().iter().map(|r| r.0).collect();
        let layout = module.layout();
        let case = &by_value(case, layout);
        let params = param_block(case, &layout.params, layout.size, &addresses)?;
        let shape = [case.grid, case.block];
        // SAFETY: generated kernels access their buffers only, which `memory` holds until the run
        // is over.
        let fault = unsafe { module.run(shape, case.dynamic_shared, &params) };
        describe(fault.map_err(|error| failed(&error))?)?;
        memory.into_buffers()
    }
}

/// The case with the bytes of those buffers as arguments that are passed by value now.
pub fn by_value(case: &Case, now: &ParamLayout) -> Case {
    let mut case = case.clone();
    let before = ParamLayout::of(&case.module).unwrap_or_default();
    for (i, (before, now)) in before.params.iter().zip(&now.params).enumerate() {
        if let (ParamKind::Reference { bytes, .. }, ParamKind::Value(_)) = (before, now)
            && let Arg::Buffer(buffer) = case.args[i]
        {
            let bytes = case.buffers[buffer][..*bytes as usize].to_vec();
            case.args[i] = Arg::Bytes(bytes);
        }
    }
    case
}

/// A fault is an error that says where.
pub(crate) fn describe(fault: Option<FaultRecord>) -> Result<(), String> {
    match fault {
        None => Ok(()),
        Some(fault) => Err(format!(
            "fault: index {} of {} (block {:?}, thread {:?})",
            fault.index, fault.length, fault.block, fault.thread
        )),
    }
}

/// The interpreter with every check: there is nothing to find in a generated kernel.
#[derive(Copy, Clone, Debug)]
pub struct CheckedRunner;

impl Runner for CheckedRunner {
    fn name(&self) -> String {
        "interpreter, checking".to_owned()
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let checks = Checks::all().watchdog(STEP_LIMIT);
        interpret(case, &checks, BlockOrder::Increasing)
    }
}

pub(crate) fn interpret(
    case: &Case,
    checks: &Checks,
    order: BlockOrder,
) -> Result<Vec<Vec<u8>>, String> {
    let legal = Legal::new(case.module.clone()).map_err(|e| e.to_string())?;
    let kernel = InterpretedKernel::new(&legal).map_err(|e| e.to_string())?;
    let mut memory = DeviceMemory::new(case);
    let ranges = memory.ranges();
    let addresses: Vec<u64> = ranges.iter().map(|r| r.0).collect();
    let layout = kernel.layout();
    let params = param_block(case, &layout.params, layout.size, &addresses)?;
    let launch = InterpretLaunch {
        grid: case.grid,
        block: case.block,
        dynamic_shared: case.dynamic_shared,
        params: &params,
        kernel_tag: 0,
        step_limit: Some(STEP_LIMIT),
        order,
    };
    // SAFETY: the ranges are those of `memory`, which nobody else uses until the run is over.
    let fault =
        unsafe { kernel.run_checked(&launch, &ranges, checks) }.map_err(|e| e.to_string())?;
    describe(fault)?;
    memory.into_buffers()
}

/// The bytes of the parameter block, for buffers at these addresses. The fault channel is left 0.
///
/// # Errors
/// An argument that does not fit its parameter.
pub fn param_block(
    case: &Case,
    kinds: &[ParamKind],
    size: u32,
    addresses: &[u64],
) -> Result<Vec<u8>, String> {
    let mut block = vec![0; size as usize];
    let mut put = |slot: &ParamSlot, bytes: &[u8]| {
        let at = slot.offset as usize;
        let n = bytes.len().min(slot.size as usize);
        block[at..at + n].copy_from_slice(&bytes[..n]);
    };
    for (i, (kind, arg)) in kinds.iter().zip(&case.args).enumerate() {
        let address = |buffer: usize| {
            let found = addresses.get(buffer).map(|a| a.to_le_bytes());
            found.ok_or_else(|| format!("argument {i}: there is no buffer {buffer}"))
        };
        match (kind, arg) {
            (ParamKind::Value(slot), Arg::Bytes(bytes)) => put(slot, bytes),
            (ParamKind::Value(slot), Arg::Buffer(buffer)) => put(slot, &address(*buffer)?),
            (ParamKind::Reference { address: slot, .. }, Arg::Buffer(buffer)) => {
                put(slot, &address(*buffer)?);
            }
            (
                ParamKind::Slice {
                    address: slot,
                    length,
                },
                Arg::Buffer(buffer),
            ) => {
                put(slot, &address(*buffer)?);
                put(length, &case.slice_len(i, *buffer).to_le_bytes());
            }
            (_, Arg::Bytes(_)) => return Err(format!("argument {i} takes a buffer")),
        }
    }
    Ok(block)
}

/// How a runner disagrees with the reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The runner's name; the reference's when it failed itself.
    pub runner: String,
    /// What is different.
    pub difference: Difference,
}

/// What is different.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// The run failed.
    Failed(String),
    /// A buffer has other bytes.
    Bytes {
        /// Which buffer.
        buffer: usize,
        /// The first byte that differs.
        offset: usize,
        /// How many differ.
        count: usize,
        /// The 8 bytes, or fewer, at the multiple of 8 before, as the reference gave them.
        expected: Vec<u8>,
        /// And as the runner gave them.
        found: Vec<u8>,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.difference {
            Difference::Failed(why) => write!(f, "{}: {why}", self.runner),
            Difference::Bytes {
                buffer,
                offset,
                count,
                expected,
                found,
            } => write!(
                f,
                "{}: buffer {buffer} differs in {count} bytes, first at {offset}: {found:02x?}, \
                 not {expected:02x?}",
                self.runner
            ),
        }
    }
}

/// Runs a case everywhere and compares the buffers bit by bit, padding of structs left out. Gives
/// the first disagreement.
pub fn compare(
    case: &Case,
    reference: &dyn Runner,
    others: &[Box<dyn Runner>],
) -> Option<Mismatch> {
    let failed = |runner: &dyn Runner, why| Mismatch {
        runner: runner.name(),
        difference: Difference::Failed(why),
    };
    let expected = match reference.run(case) {
        Ok(buffers) => buffers,
        Err(why) => return Some(failed(reference, why)),
    };
    others.iter().find_map(|runner| match runner.run(case) {
        Ok(found) => difference(case, &expected, &found).map(|difference| Mismatch {
            runner: runner.name(),
            difference,
        }),
        Err(why) => Some(failed(&**runner, why)),
    })
}

/// The first difference between the buffers of two runs, padding left out.
pub fn difference(case: &Case, expected: &[Vec<u8>], found: &[Vec<u8>]) -> Option<Difference> {
    if expected.len() != found.len() {
        return Some(Difference::Failed(format!(
            "it gives {} buffers",
            found.len()
        )));
    }
    let pairs = expected.iter().zip(found).enumerate();
    pairs
        .filter(|(_, (a, b))| a != b)
        .find_map(|(buffer, (a, b))| {
            if a.len() != b.len() {
                return Some(Difference::Failed(format!(
                    "buffer {buffer} has {} bytes",
                    b.len()
                )));
            }
            let defined = defined(case, buffer, a.len());
            let differs = |i: &usize| a[*i] != b[*i] && defined[*i];
            let offset = (0..a.len()).find(differs)?;
            let word = offset / 8 * 8..(offset / 8 * 8 + 8).min(a.len());
            Some(Difference::Bytes {
                buffer,
                offset,
                count: (0..a.len()).filter(differs).count(),
                expected: a[word.clone()].to_vec(),
                found: b[word].to_vec(),
            })
        })
}

/// By byte of a buffer: whether it is no padding.
fn defined(case: &Case, buffer: usize, len: usize) -> Vec<bool> {
    let param = case.args.iter().position(|arg| *arg == Arg::Buffer(buffer));
    let types = &case.module.types;
    let layout = param.and_then(|p| Some((p, types.layout(case.element(p))?)));
    let Some((param, layout)) = layout else {
        return vec![true; len];
    };
    let mut element = vec![false; layout.size as usize];
    for range in types.defined_ranges(case.element(param)) {
        element[range].fill(true);
    }
    (0..len).map(|i| element[i % element.len()]).collect()
}
