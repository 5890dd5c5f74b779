//! AMD's GPUs: objects for gfx90a, which no device of Kiln's runs yet.
//!
//! Lowering is that of all GPUs; what AMD's have in their own way is in `dialect`, and the operations that
//! rows are known by in `known` and, of all lanes of a member mask, in `members`. A warp of 32 lanes is one half of a wave of 64.
//!
//! What is open: a fault ends the whole wave, as there is no end of one thread; addresses of shared and
//! local memory have 32 bits in memory, where the IR has 64, so what keeps them there is refused;
//! operations of a warp take for granted that the lanes of their member mask are there together.
//!
//! Sources: LLVM, "User Guide for AMDGPU Backend"; AMD, "Instinct MI200 Instruction Set Architecture".

mod dialect;
mod known;
mod members;
mod separate_loads;

use std::sync::{Arc, OnceLock};

use inkwell::OptimizationLevel;
use inkwell::module::FlagBehavior;
use inkwell::targets::{InitializationConfig, Target as LlvmTarget, TargetTriple};

use kiln_ir::code::{Code, KeptCode};
use kiln_ir::legal::Legal;
use kiln_ir::target::{CustomTarget, MAX_PARAM_BYTES, Target};
use kiln_ir::{AddressSpace, FastMath, IntrinsicDef, Processor, Scalar, Type, TypeData, TypeTable};

use crate::admitted::{Admitted, Float};
use crate::gpu::inline_ptx::WrittenPtx;
use crate::gpu::kernel::{BackEnd, GpuKernel};
use crate::gpu::legal::{Has, check_legal};
use crate::gpu::lower::{DYNAMIC_SHARED, Dialect as _};
use crate::gpu::placeless::has_generic_addresses;
use crate::illegal::IllegalOperations;
use crate::isa::{Generator, Isa, LlvmIsa, LlvmJob, Lowered};
use crate::llvm::LLVM_VERSION;
use crate::llvm::effort::EffortForGpu;
use crate::llvm::error::BackendError;
use crate::llvm::machine::Machine;
use dialect::Amd;

/// The family of the targets.
pub(crate) const FAMILY: &str = "amdgcn";

/// The processors that code can be made for.
const PROCESSORS: [&str; 1] = ["gfx90a"];

/// The version of objects that the implicit arguments of [`dialect`] belong to.
const CODE_OBJECT: u64 = 500;

/// Bytes of shared memory in a block ("LDS"), at most.
const MAX_SHARED_BYTES: u64 = 64 << 10;

/// What code for a processor is for, as [`CustomTarget`] says it: `gfx90a`.
pub fn amdgpu_target(processor: &str) -> Target {
    Target::Custom(CustomTarget {
        family: FAMILY,
        settings: processor.to_owned(),
    })
}

/// Makes objects.
pub(crate) struct AmdgpuIsa {
    processor: &'static str,
}

impl AmdgpuIsa {
    /// For the processor that a target names, if it is one of [`PROCESSORS`].
    pub(crate) fn new(target: &CustomTarget) -> Option<AmdgpuIsa> {
        let mut known = PROCESSORS.into_iter();
        let processor = known.find(|known| *known == target.settings)?;
        Some(AmdgpuIsa { processor })
    }
}

impl Isa for AmdgpuIsa {
    fn fingerprint(&self) -> String {
        format!("LLVM {LLVM_VERSION}")
    }

    fn check(&self, legal: &Legal) -> Result<(), IllegalOperations> {
        check_legal(legal, self)
    }

    fn processor(&self) -> Processor {
        Processor::Amdgpu
    }

    fn has_fault_channel(&self) -> bool {
        true
    }

    fn generator(&self) -> Generator<'_> {
        Generator::Llvm(self)
    }

    fn read_kept(&self, kept: &KeptCode) -> Option<Code> {
        Some(Code::Custom(Arc::new(kept.bytes.clone())))
    }
}

impl Has for AmdgpuIsa {
    fn name(&self) -> String {
        self.processor.to_owned()
    }

    fn processor(&self) -> Processor {
        Processor::Amdgpu
    }

    fn max_param_bytes(&self) -> u32 {
        MAX_PARAM_BYTES
    }

    fn max_constant_bytes(&self) -> u64 {
        u32::MAX.into()
    }

    fn max_shared_bytes(&self) -> u64 {
        MAX_SHARED_BYTES
    }

    fn intrinsic(
        &self,
        def: &IntrinsicDef,
        ty: Option<Scalar>,
        _fast: FastMath,
    ) -> Result<(), String> {
        let known = def.known.is_some_and(|known| Amd.knows(known));
        if known || def.cell(ty, Amd.processor()).is_some() {
            return Ok(());
        }
        let of = ty.map_or(String::new(), |ty| format!(" of `{}`", ty.name()));
        Err(format!(
            "there is no `{}`{of} on AMD's GPUs; its row needs a cell for them",
            def.name
        ))
    }

    fn memory(&self, types: &TypeTable, ty: Type) -> Result<(), String> {
        let kept = types.address(ty).map_or(ty, |address| address.pointee);
        let is_aggregate = types.is_aggregate(ty);
        match (kept != ty || is_aggregate) && holds_short_address(types, kept) {
            false => Ok(()),
            true => Err(format!(
                "`{}` keeps an address of shared or local memory in memory, where it has 32 bits on AMD's \
                 GPUs; keep an index",
                types.display(kept)
            )),
        }
    }
}

/// Whether a type in memory has an address in it that LLVM has 32 bits for.
fn holds_short_address(types: &TypeTable, ty: Type) -> bool {
    match *types.data(ty) {
        TypeData::Pointer { space, .. } => {
            matches!(space, AddressSpace::Shared | AddressSpace::Local)
        }
        TypeData::Array { element, .. } => holds_short_address(types, element),
        TypeData::Struct(id) => {
            let mut fields = types.struct_data(id).fields.iter();
            fields.any(|(_, field)| holds_short_address(types, *field))
        }
        // A slice has room for an address of 64 bits.
        TypeData::Slice { .. }
        | TypeData::Unit
        | TypeData::Scalar(_)
        | TypeData::Vector { .. }
        | TypeData::Param(_) => false,
    }
}

/// The processor's machine. To be called on a compile thread.
fn machine(processor: &str) -> Result<Machine, BackendError> {
    static INITIALIZED: OnceLock<()> = OnceLock::new();
    INITIALIZED.get_or_init(|| LlvmTarget::initialize_amd_gpu(&InitializationConfig::default()));
    let triple = TargetTriple::create("amdgcn-amd-amdhsa");
    Machine::new(triple, processor, "", OptimizationLevel::Aggressive)
}

impl LlvmIsa for AmdgpuIsa {
    fn lower<'a>(&self, job: LlvmJob<'a>) -> Result<Lowered<'a>, BackendError> {
        let machine = machine(self.processor)?;
        let kernel = GpuKernel::new(job, machine, &Amd, AmdgpuBackEnd)?;
        let version = job.context.i32_type().const_int(CODE_OBJECT, false);
        let name = "amdhsa_code_object_version";
        let module = &kernel.module;
        module.add_basic_value_flag(name, FlagBehavior::Error, version);
        Ok(Lowered::Module(Box::new(kernel)))
    }
}

/// LLVM's code generator for AMD's GPUs.
struct AmdgpuBackEnd;

impl BackEnd for AmdgpuBackEnd {
    fn admitted<'k>(&self, written: &'k WrittenPtx) -> Admitted<'k> {
        Admitted {
            family: "amdgcn",
            intrinsic: has_instruction,
            assembly: Some(Box::new(|template, constraints| {
                written.has(template, constraints)
            })),
            entry_convention: dialect::AMDGPU_KERNEL,
            symbol: |name| name == DYNAMIC_SHARED,
            linked: Vec::new(),
        }
    }

    /// LLVM's inference of address spaces runs inside of `default<O3>` here, where nobody freezes what would end it
    /// (`placeless.rs`).
    fn effort(&self, types: &TypeTable) -> Option<EffortForGpu> {
        let reason =
            "LLVM's passes for AMD's GPUs can end the process over addresses of unknown memory";
        has_generic_addresses(types).then(|| EffortForGpu::few(reason))
    }

    fn emit(&self, kernel: &GpuKernel<'_, Self>) -> Result<Code, BackendError> {
        kernel.prepare_emission()?;
        separate_loads::keep(kernel.job.context, &kernel.module);
        let object = kernel
            .machine
            .emit_object(kernel.job.session, &kernel.module)?;
        Ok(Code::Custom(Arc::new(object)))
    }
}

/// Whether LLVM's back end selects an intrinsic: of what becomes a call of the C library, none.
fn has_instruction(name: &str, _: Option<Float>) -> bool {
    let operation = name.split('.').nth(1).unwrap_or_default();
    !LIBRARY_CALLS.contains(&operation)
}

/// Intrinsics that are functions of the C library, or approximations for some types and an end of the
/// process for others.
const LIBRARY_CALLS: [&str; 18] = [
    "acos", "asin", "atan", "atan2", "cos", "cosh", "exp", "exp10", "exp2", "log", "log10", "log2",
    "modf", "pow", "powi", "sin", "sinh", "tan",
];
