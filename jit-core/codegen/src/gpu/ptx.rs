//! PTX for NVIDIA's GPUs.

use inkwell::AddressSpace as LlvmSpace;
use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;
use inkwell::values::{BasicValueEnum, InstructionOpcode, InstructionValue};

use kiln_ir::code::{Code, PtxCode};
use kiln_ir::legal::Legal;
use kiln_ir::target::PtxTarget;
use kiln_ir::{AddressSpace, Processor};

use super::call_numbers;
use super::cold;
use super::fault_text::{self, FaultBody};
use super::inline_ptx::WrittenPtx;
use super::kernel::{BackEnd, GpuKernel};
use super::legal::check_legal;
use super::line_info::keep_directives;
use super::lower::{DYNAMIC_SHARED, FAULT_FUNCTION};
use super::nvptx::PTX_KERNEL;
use super::ptxas;
use super::recomputed::{WORTH, recompute};
use super::roots;
use super::summed::{self, Held, sum_early};
use super::types::space_number;
use super::written_text;
use crate::admitted::{Admitted, Float};
use crate::illegal::IllegalOperations;
use crate::isa::{Generator, Isa, LlvmIsa, LlvmJob, LlvmKernel as _, Lowered};
use crate::llvm::LLVM_VERSION;
use crate::llvm::effort::reduced_emission;
use crate::llvm::error::BackendError;
use crate::llvm::machine::Machine;

/// Makes PTX.
pub(crate) struct PtxIsa {
    target: PtxTarget,
}

impl PtxIsa {
    /// For an architecture and a version of PTX.
    pub(crate) fn new(target: PtxTarget) -> PtxIsa {
        PtxIsa { target }
    }
}

impl Isa for PtxIsa {
    fn fingerprint(&self) -> String {
        format!("LLVM {LLVM_VERSION}")
    }

    fn check(&self, legal: &Legal) -> Result<(), IllegalOperations> {
        check_legal(legal, &self.target)
    }

    fn processor(&self) -> Processor {
        self.target.processor()
    }

    fn has_fault_channel(&self) -> bool {
        true
    }

    fn generator(&self) -> Generator<'_> {
        Generator::Llvm(self)
    }
}

impl LlvmIsa for PtxIsa {
    fn lower<'a>(&self, job: LlvmJob<'a>) -> Result<Lowered<'a>, BackendError> {
        let machine = Machine::nvptx(self.target.sm, ptx_version(self.target, job.legal))?;
        let kernel = GpuKernel::new(job, machine, &self.target, PtxBackEnd)?;
        Ok(Lowered::Module(Box::new(kernel)))
    }
}

/// The PTX version to write: that of the target, unless the kernel has what only a later one has (PTX ISA, "atom": of 16
/// bytes from 8.3 on, and of system scope from 8.4 on). A driver that does not know it says so when the kernel is loaded.
pub(super) fn ptx_version(target: PtxTarget, legal: &Legal) -> u32 {
    match legal.changes_word_pairs() {
        true => target.ptx.max(84),
        false => target.ptx,
    }
}

/// LLVM's code generator for NVPTX, and after it `ptxas` in the driver.
pub(super) struct PtxBackEnd;

impl BackEnd for PtxBackEnd {
    fn admitted<'k>(&self, written: &'k WrittenPtx) -> Admitted<'k> {
        Admitted {
            family: "nvvm",
            intrinsic: has_instruction,
            assembly: Some(Box::new(|template, constraints| {
                written.has(template, constraints) || ptxas::writes(template)
            })),
            entry_convention: PTX_KERNEL,
            symbol: |name| {
                SYSTEM_CALLS.contains(&name) || [DYNAMIC_SHARED, FAULT_FUNCTION].contains(&name)
            },
            linked: Vec::new(),
        }
    }

    fn write_around<'a>(
        &self,
        context: &'a Context,
        module: &LlvmModule<'a>,
    ) -> Result<(), BackendError> {
        ptxas::write_around(context, module)
    }

    fn fault_body(&self) -> FaultBody {
        FaultBody::InText
    }

    fn reduced(&self, module: &LlvmModule<'_>) -> Option<String> {
        match may_be_atomic_on_local(module) {
            true => None,
            false => reduced_emission(module),
        }
    }

    fn emit(&self, kernel: &GpuKernel<'_, Self>) -> Result<Code, BackendError> {
        let (session, module) = (kernel.job.session, &kernel.module);
        // Before anything is added that was not there when it was told.
        let reduced = self.reduced(module);
        let has_faults = fault_text::is_left_to_text(module)?;
        kernel.prepare_emission()?;
        recompute(kernel.job.context, module, WORTH)?;
        sum_early(kernel.job.context, module, (summed::WORTH, Held::ByPtx))?;
        roots::write_together(kernel.job.context, module)?;
        cold::move_to_end(module);
        let text = match reduced {
            None => kernel.machine.emit_assembly(session, module)?,
            Some(_) => kernel.machine.quick()?.emit_assembly(session, module)?,
        };
        let gather_registers = kernel.job.options.gather_registers;
        let text = ptxas::write_around_in_text(&keep_directives(text), gather_registers);
        let text = call_numbers::from_zero(text);
        let text = match has_faults {
            true => fault_text::define(text, kernel.job.kernel_tag),
            false => text,
        };
        let text = kernel.written_functions().fold(text, written_text::define);
        Ok(Code::Ptx(PtxCode {
            text: text.into(),
            entry: kernel.entry(),
            assembled: None,
        }))
    }
}

/// Whether an atomic operation has an address that may be of local memory, on which there are none: only the whole code
/// generator sees which those are and makes ordinary accesses of them; the quick one ends the compile ("Cannot select").
fn may_be_atomic_on_local(module: &LlvmModule<'_>) -> bool {
    let blocks = module
        .get_functions()
        .flat_map(|function| function.get_basic_block_iter());
    let mut instructions = blocks.flat_map(|block| block.get_instructions());
    let all_threads = [AddressSpace::Global, AddressSpace::Shared];
    let all_threads = all_threads.map(|space| LlvmSpace::from(space_number(space)));
    instructions.any(|instruction| {
        let is_atomic = matches!(
            instruction.get_opcode(),
            InstructionOpcode::AtomicRMW | InstructionOpcode::AtomicCmpXchg
        );
        is_atomic && !address_space(instruction).is_some_and(|space| all_threads.contains(&space))
    })
}

/// The address space of what an instruction takes first, if that is an address.
fn address_space(instruction: InstructionValue<'_>) -> Option<LlvmSpace> {
    match instruction.get_operand(0)?.value()? {
        BasicValueEnum::PointerValue(address) => Some(address.get_type().get_address_space()),
        _ => None,
    }
}

/// Functions that the driver adds to the code it loads (PTX Writer's Guide, "System Calls").
const SYSTEM_CALLS: [&str; 4] = ["__assertfail", "free", "malloc", "vprintf"];

/// Whether LLVM's back end selects an intrinsic; see [`crate::llvm::machine`] for what was tried.
fn has_instruction(name: &str, float: Option<Float>) -> bool {
    let operation = name.split('.').nth(1).unwrap_or_default();
    match operation {
        // Of `f32` there are approximations, which take the flag `afn`.
        "sin" | "cos" => float == Some(Float::F32),
        "tan" | "pow" | "tanh" | "exp" | "log" | "log2" | "log10" => false,
        "exp2" => float != Some(Float::F64),
        "canonicalize" => float != Some(Float::BF16),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use inkwell::memory_buffer::MemoryBuffer;

    use super::*;
    use crate::llvm::session::on_compile_thread;

    /// Whether a module with such an operation may have an atomic one on local memory: `%p` is generic, `%q` in global, `%s`
    /// in shared and `%l` in local memory.
    fn may_be_local(operation: &'static str) -> bool {
        let found = move || -> Result<bool, BackendError> {
            let context = Context::create();
            let text = format!(
                "define void @f(ptr %p, ptr addrspace(1) %q, ptr addrspace(3) %s, ptr addrspace(5) %l) {{\n{operation}\nret void\n}}\n\0"
            );
            let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "f");
            let module = context
                .create_module_from_ir(buffer)
                .map_err(|error| BackendError::new("parse", error.to_string_lossy()))?;
            Ok(may_be_atomic_on_local(&module))
        };
        let found = on_compile_thread("atomic", found).expect("LLVM is there");
        found.expect("it is a module")
    }

    #[test]
    fn atomic_operations_that_may_be_on_local_memory_are_found() {
        assert!(may_be_local("%a = atomicrmw add ptr %p, i32 1 seq_cst"));
        assert!(may_be_local(
            "%a = cmpxchg ptr %p, i32 1, i32 2 seq_cst seq_cst"
        ));
        assert!(!may_be_local(
            "%a = atomicrmw add ptr addrspace(1) %q, i32 1 seq_cst"
        ));
        assert!(!may_be_local(
            "%a = atomicrmw add ptr addrspace(3) %s, i32 1 seq_cst"
        ));
        assert!(may_be_local(
            "%a = atomicrmw add ptr addrspace(5) %l, i32 1 seq_cst"
        ));
        assert!(!may_be_local("store i32 1, ptr %p"));
    }
}
