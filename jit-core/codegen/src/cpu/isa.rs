//! Machine code for CPUs of this machine's kind: a warp is a vector.

use inkwell::module::Module as LlvmModule;

use kiln_ir::code::{Code, HostCode};
use kiln_ir::host_abi::{ENTRY, FUNCTIONS};
use kiln_ir::legal::Legal;
use kiln_ir::target::{Barriers, CpuTarget};

use super::gathers::extend_at_accesses;
use super::split::split_long_blocks;
use super::vector::{
    FRAME_BYTES, HOOKED, Plan, PlanOptions, Unplannable, blocks_beside, choose_lanes,
    take_frame_bytes, uses_warps, write_kernel,
};
use crate::admitted::{Admitted, Float};
use crate::illegal::{Illegal, IllegalOperations};
use crate::isa::{Generator, Isa, LlvmIsa, LlvmJob, LlvmKernel, Lowered};
use crate::llvm::LLVM_VERSION;
use crate::llvm::effort::Effort;
use crate::llvm::error::BackendError;
use crate::llvm::machine::Machine;
use crate::llvm::session::stack_bytes;
use crate::llvm::unrolled::{LeftAsLoop, has_factors, left_as_loop};
use crate::simt::BlockShape;

/// The most stack that code may take, in bytes: what the threads that run blocks have, less a margin.
const MAX_STACK: u64 = 4 << 20;

/// LLVM's calling convention of C.
const C: u32 = 0;

/// Makes functions of coroutines; the passes after it see nothing special.
const SPLIT_COROUTINES: &str = "coro-early,cgscc(coro-split),coro-cleanup";

/// Makes machine code.
pub(crate) struct CpuIsa {
    target: CpuTarget,
}

impl CpuIsa {
    /// For a processor and, by the time code is made, a shape of block.
    pub(crate) fn new(target: CpuTarget) -> CpuIsa {
        CpuIsa { target }
    }

    /// The way to run a kernel: cut at its barriers; else with a coroutine for each warp; else, where
    /// lanes of a warp part at a barrier, for each thread.
    fn plan<'a>(&self, job: &LlvmJob<'a>) -> Result<Plan<'a>, Unplannable> {
        let legal = job.legal;
        let no_block =
            || BackendError::new("vectorize", "the target does not say how large blocks are");
        let threads = self.target.block.ok_or_else(no_block)?;
        let lanes = choose_lanes(legal, &self.target, threads);
        let block = BlockShape {
            threads,
            lanes,
            beside: 1,
        };
        let beside = match (self.target.barriers, job.hooks.lowers_insts()) {
            (None | Some(Barriers::Segments), false) => blocks_beside(legal, threads, lanes),
            _ => 1,
        };
        let options = |barriers| PlanOptions {
            contract: job.options.contract,
            has_f16c: self.target.features.converts_f16(),
            has_gathers: self.target.features.gathers(),
            barriers,
            hooked: job.hooks.lowers_insts(),
        };
        let wants = [
            (beside > 1).then_some((Barriers::Segments, beside)),
            self.target.barriers.map(|barriers| (barriers, 1)),
            Some((Barriers::Segments, 1)),
            Some((Barriers::Coroutines, 1)),
        ];
        let mut latest = None;
        for (barriers, beside) in wants.into_iter().flatten() {
            let block = BlockShape { beside, ..block };
            match Plan::new(legal, block, options(barriers)) {
                Err(error @ Unplannable::Barrier { .. }) => latest = Some(error),
                other => return other,
            }
        }
        match latest {
            // Lanes are told apart by their number in the warp.
            Some(error) if uses_warps(legal) => Err(error),
            _ => {
                let one_lane = BlockShape { lanes: 1, ..block };
                Plan::new(legal, one_lane, options(Barriers::Coroutines))
            }
        }
    }
}

impl Isa for CpuIsa {
    fn fingerprint(&self) -> String {
        format!("LLVM {LLVM_VERSION}")
    }

    /// An operation without machine code is computed by the function of its row, so that every kernel
    /// can be compiled; the target can ask for vectors that there are not.
    fn check(&self, legal: &Legal) -> Result<(), IllegalOperations> {
        let lanes = match self.target.lanes {
            None | Some(1 | 8 | 16 | 32 | 64) => return Ok(()),
            Some(lanes) => lanes,
        };
        let kernel = legal.kernel();
        Err(IllegalOperations {
            module: legal.name.clone(),
            target: "this machine's CPU".to_owned(),
            list: vec![Illegal {
                function: kernel.name.clone(),
                location: legal.display_location(kernel.location),
                message: format!(
                    "vectors of {lanes} lanes were asked for; a vector has 1, 8, 16, 32 or 64"
                ),
            }],
        })
    }

    fn generator(&self) -> Generator<'_> {
        Generator::Llvm(self)
    }
}

impl LlvmIsa for CpuIsa {
    fn lower<'a>(&self, job: LlvmJob<'a>) -> Result<Lowered<'a>, BackendError> {
        // Without the instruction LLVM calls a function of the host's library, which is not there.
        if cfg!(target_arch = "x86_64")
            && !self.target.features.has("cx16")
            && job.legal.changes_word_pairs()
        {
            let why = "this processor has no compare-and-swap of 16 bytes";
            return Ok(Lowered::Interpret(why.to_owned()));
        }
        // Warps of such a block wait for some of the others, where coroutines wait for all.
        if job.legal.has_named_barriers() {
            return Ok(Lowered::Interpret("it has named barriers".to_owned()));
        }
        let plan = match self.plan(&job) {
            Ok(plan) => plan,
            Err(Unplannable::Backend(error)) => return Err(error),
            Err(other) => return Ok(Lowered::Interpret(other.to_string())),
        };
        let level = job.options.opt_level.host_emission();
        let machine = Machine::host(&self.target.features, level)?;
        let module = job.context.create_module("kernel");
        machine.prepare(&module);
        let left_as_loop = write_kernel(job.context, &module, &plan, job.hooks)?;
        if self.target.scheduled_for_host {
            machine.tune(&module);
        }
        let effort = Effort::of(&module, &machine.target_data(), job.options.opt_level);
        Ok(Lowered::Module(Box::new(CpuKernel {
            emitter: Machine::host(&self.target.features, effort.emission())?,
            arena_bytes: plan.arena_bytes(),
            job,
            plan,
            machine,
            module,
            effort,
            left_as_loop,
        })))
    }
}

/// A kernel on its way to machine code.
struct CpuKernel<'a> {
    job: LlvmJob<'a>,
    plan: Plan<'a>,
    machine: Machine,
    /// The machine that tries as hard as the kernel's size allows.
    emitter: Machine,
    module: LlvmModule<'a>,
    effort: Effort,
    left_as_loop: Option<LeftAsLoop>,
    arena_bytes: [u64; 2],
}

impl<'a> LlvmKernel<'a> for CpuKernel<'a> {
    fn module(&self) -> &LlvmModule<'a> {
        &self.module
    }

    fn entry(&self) -> String {
        ENTRY.to_owned()
    }

    fn admitted(&self) -> Admitted<'_> {
        Admitted {
            // Without a parser of assembly LLVM would end the process.
            assembly: None,
            entry_convention: C,
            family: HOST_FAMILY,
            intrinsic: has_instruction,
            symbol: |name| FUNCTIONS.contains(&name) || name == FRAME_BYTES,
            linked: Vec::new(),
        }
    }

    fn passes(&self) -> String {
        self.effort.pipeline(has_factors(self.job.legal))
    }

    fn reduced(&self) -> Option<String> {
        let reduced = self.effort.reduced();
        let left = || Some(self.left_as_loop?.report(self.job.legal));
        reduced
            .or_else(left)
            .or_else(|| left_as_loop(self.job.legal))
    }

    fn optimize(&mut self, passes: &str) -> Result<(), BackendError> {
        let (machine, session) = (&self.machine, self.job.session);
        if self.module.get_function(HOOKED).is_some() {
            machine.run_passes(session, &self.module, "always-inline")?;
        }
        if self.plan.barriers() == Barriers::Coroutines {
            machine.run_passes(session, &self.module, SPLIT_COROUTINES)?;
            self.arena_bytes[0] += self.plan.frame_bytes(take_frame_bytes(&self.module)?);
        }
        machine.run_passes(session, &self.module, passes)?;
        extend_at_accesses(self.job.context, &self.module)?;
        split_long_blocks(self.job.context, &self.module, &machine.target_data())
    }

    fn emit(&mut self) -> Result<Code, BackendError> {
        let session = self.job.session;
        let object = self.emitter.emit_object(session, &self.module)?;
        let stack_bytes = stack_bytes(&session.diagnostics());
        if stack_bytes > MAX_STACK {
            return Ok(Code::Interpreted {
                legal: self.job.legal.clone(),
                why: Some(format!("its code takes {stack_bytes} bytes of stack")),
            });
        }
        Ok(Code::Host(HostCode {
            object: object.into(),
            block: self.plan.block_threads(),
            lanes: self.plan.lanes(),
            barriers: self.plan.barriers(),
            rows: self.job.legal.intrinsics.values().copied().collect(),
            arena_bytes: self.arena_bytes,
            blocks_a_call: self.plan.blocks_a_call(),
            stack_bytes,
        }))
    }
}

/// LLVM's name of this machine's kind, as its intrinsics have it.
const HOST_FAMILY: &str = if cfg!(target_arch = "x86_64") {
    "x86"
} else {
    "aarch64"
};

/// Whether an intrinsic becomes instructions, or calls of [`FUNCTIONS`].
fn has_instruction(name: &str, _: Option<Float>) -> bool {
    let operation = name.split('.').nth(1).unwrap_or_default();
    !LIBRARY_CALLS.contains(&operation)
}

/// Intrinsics that become calls of the C library's functions.
const LIBRARY_CALLS: [&str; 30] = [
    "acos",
    "asin",
    "atan",
    "atan2",
    "cos",
    "cosh",
    "exp",
    "exp10",
    "exp2",
    "frexp",
    "ldexp",
    "llrint",
    "llround",
    "log",
    "log10",
    "log2",
    "lrint",
    "lround",
    "modf",
    "nearbyint",
    "pow",
    "powi",
    "round",
    "roundeven",
    "sin",
    "sincos",
    "sincospi",
    "sinh",
    "tan",
    "tanh",
];
