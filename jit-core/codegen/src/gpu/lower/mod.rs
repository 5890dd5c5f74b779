//! From a verified module in the legal phase to an LLVM module for a GPU. What GPUs have in different ways
//! is asked of the machine's [`Dialect`].
//!
//! [`lower`] declares everything first (constants, shared variables, functions), then fills the
//! bodies one by one with a [`FunctionLowering`]. Each family of instructions has its file; the one
//! list of all instructions is the dispatch in `function`.
//!
//! Nothing here checks whether LLVM can select what is built: `legal` has done so. Nor does it check what
//! the verifier has: types, operands and results are asked for as things that are there ([`Proved`]). What
//! is left of errors is LLVM's.
//!
//! [`Proved`]: kiln_ir::legal::Proved

mod arith;
mod atomic;
mod call;
mod cast;
mod control;
mod dialect;
mod fault;
mod function;
mod line_info;
mod meeting_loops;
mod memory;
mod names;
mod own_arrays;
mod registers;
mod signature;
mod slice;
mod value;

use std::cell::OnceCell;
use std::collections::HashMap;

use inkwell::AddressSpace as LlvmSpace;
use inkwell::builder::BuilderError;
use inkwell::context::Context;
use inkwell::module::{Linkage, Module as LlvmModule};
use inkwell::values::{FunctionValue, GlobalValue, PointerValue};

use kiln_ir::{AddressSpace, Effects, Entity as _, FuncId, GlobalId, Inst, Module, SharedVar};

use super::types::{TypeLowering, space_number};
use crate::gpu::fault_text::FaultBody;
use crate::gpu::inline_ptx::WrittenPtx;
use crate::hooks::LoweringHooks;
use crate::isa::LlvmJob;
use crate::llvm::error::BackendError;
use crate::llvm::machine::Machine;
use crate::options::CompileOptions;

pub(super) use atomic::Order;
pub(super) use dialect::{Atomic, Dialect, ParamBlock, Point};
pub(super) use fault::FAULT_FUNCTION;
#[cfg(test)]
pub(super) use fault::by_llvm::fault_function_by_llvm;
pub(super) use function::FunctionLowering;
pub use names::kernel_entry_name;
pub(super) use value::Lowered;

impl From<BuilderError> for BackendError {
    fn from(error: BuilderError) -> BackendError {
        BackendError::new("lower", error.to_string())
    }
}

/// The name of a launch's dynamic shared memory.
pub(super) const DYNAMIC_SHARED: &str = "dynamic_shared";

/// What the functions of one module share while they are lowered.
pub(super) struct ModuleLowering<'a, 'ctx> {
    pub(super) context: &'ctx Context,
    pub(super) module: &'a Module,
    pub(super) llvm: LlvmModule<'ctx>,
    pub(super) types: TypeLowering<'a, 'ctx>,
    pub(super) dialect: &'a dyn Dialect,
    pub(super) options: &'a CompileOptions,
    pub(super) kernel_tag: u64,
    pub(super) hooks: &'a dyn LoweringHooks,
    functions: Vec<FunctionValue<'ctx>>,
    constants: Vec<GlobalValue<'ctx>>,
    shared: HashMap<(FuncId, SharedVar), GlobalValue<'ctx>>,
    dynamic_shared: OnceCell<GlobalValue<'ctx>>,
    fault_function: OnceCell<FunctionValue<'ctx>>,
    fault_sites: HashMap<(FuncId, Inst), u32>,
    fault_body: FaultBody,
    /// Whether threads can see each other's writes before the kernel ends.
    orders_memory: bool,
    line_info: Option<line_info::LineInfo<'ctx>>,
    /// The inline PTX that is written.
    written: WrittenPtx,
}

/// Lowers a kernel that [`super::legal::check_legal`] has passed for this target: the module, and the
/// inline PTX that it holds. To be called on a compile thread.
///
/// # Errors
/// Of stage `lower`, if a hook refused, or LLVM does not have what a row names.
pub(super) fn lower<'a>(
    job: &LlvmJob<'a>,
    machine: &Machine,
    dialect: &dyn Dialect,
    fault_body: FaultBody,
) -> Result<(LlvmModule<'a>, WrittenPtx), BackendError> {
    let mut lowering = ModuleLowering::new(job, machine, dialect, fault_body);
    let module = lowering.module;
    lowering.declare_constants()?;
    lowering.declare_shared()?;
    for (id, _) in module.functions.iter() {
        let declared = lowering.declare_function(id)?;
        lowering.functions.push(declared);
    }
    for (id, _) in module.functions.iter() {
        FunctionLowering::new(&lowering, id)?.lower_body()?;
    }
    if let Some(line_info) = &lowering.line_info {
        line_info.finish();
    }
    Ok((lowering.llvm, lowering.written))
}

/// Whether an operation orders accesses to memory, or may, as a row that touches memory.
fn orders_memory(module: &Module) -> bool {
    let mut orders = false;
    for (_, function) in module.functions.iter() {
        function.for_each_inst(|_, inst| {
            let data = &function.insts[inst].data;
            orders |= data.orders_memory(&module.intrinsics).is_some();
        });
    }
    let rows = || module.intrinsics.values();
    orders || rows().any(|row| row.effects == Effects::Memory)
}

impl<'a, 'ctx> ModuleLowering<'a, 'ctx> {
    fn new(
        job: &LlvmJob<'ctx>,
        machine: &Machine,
        dialect: &'a dyn Dialect,
        fault_body: FaultBody,
    ) -> ModuleLowering<'a, 'ctx>
    where
        'ctx: 'a,
    {
        let (context, module) = (job.context, job.legal.module());
        let llvm = context.create_module(&names::sanitize(&module.name));
        machine.prepare(&llvm);
        ModuleLowering {
            context,
            module,
            types: TypeLowering::new(context, job.legal.legal_types(), machine.target_data()),
            dialect,
            options: job.options,
            kernel_tag: job.kernel_tag,
            hooks: job.hooks,
            functions: Vec::new(),
            constants: Vec::new(),
            shared: HashMap::new(),
            dynamic_shared: OnceCell::new(),
            fault_function: OnceCell::new(),
            fault_sites: (0..)
                .zip(job.legal.fault_insts())
                .map(|(site, &key)| (key, site))
                .collect(),
            orders_memory: orders_memory(module),
            line_info: job
                .options
                .line_info
                .then(|| line_info::LineInfo::new(&llvm, module)),
            fault_body,
            written: WrittenPtx::default(),
            llvm,
        }
    }
}

impl<'ctx> ModuleLowering<'_, 'ctx> {
    fn declare_constants(&mut self) -> Result<(), BackendError> {
        for (id, data) in self.module.globals.iter() {
            let align = self.types.layout(data.ty).align;
            // A constant of no bytes still has an address.
            let bytes: &[u8] = if data.bytes.is_empty() {
                &[0]
            } else {
                &data.bytes
            };
            let value = self.context.const_string(bytes, false);
            let space = LlvmSpace::from(space_number(AddressSpace::Constant));
            let name = format!("constant_{}", id.index());
            let global = self.llvm.add_global(value.get_type(), Some(space), &name);
            global.set_initializer(&value);
            global.set_constant(true);
            global.set_linkage(Linkage::Internal);
            global.set_alignment(align as u32);
            self.constants.push(global);
        }
        Ok(())
    }

    fn declare_shared(&mut self) -> Result<(), BackendError> {
        for (id, function) in self.module.functions.iter() {
            for (var, data) in function.shared.iter() {
                let ty = self.types.memory(data.ty)?;
                let space = LlvmSpace::from(space_number(AddressSpace::Shared));
                let name = format!("shared_{}_{}", id.index(), var.index());
                let global = self.llvm.add_global(ty, Some(space), &name);
                let undefined = value::undef(ty);
                global.set_initializer(&undefined);
                global.set_linkage(Linkage::Internal);
                // What a thread reads before anybody wrote is unknown to LLVM, not undefined.
                global.set_externally_initialized(true);
                let align = self.types.layout(data.ty).align as u32;
                global.set_alignment(align.max(data.align));
                self.shared.insert((id, var), global);
            }
        }
        Ok(())
    }

    /// The start of the launch's dynamic shared memory (CUDA guide, "Shared Memory").
    fn dynamic_shared(&self) -> PointerValue<'ctx> {
        let declare = || {
            let ty = self.context.i8_type().array_type(0);
            let space = LlvmSpace::from(space_number(AddressSpace::Shared));
            let global = self.llvm.add_global(ty, Some(space), DYNAMIC_SHARED);
            global.set_linkage(Linkage::External);
            global.set_alignment(16);
            global
        };
        self.dynamic_shared.get_or_init(declare).as_pointer_value()
    }

    fn shared_address(&self, function: FuncId, var: SharedVar) -> PointerValue<'ctx> {
        self.shared[&(function, var)].as_pointer_value()
    }

    fn constant_address(&self, id: GlobalId) -> PointerValue<'ctx> {
        self.constants[id.index()].as_pointer_value()
    }

    fn function_value(&self, id: FuncId) -> FunctionValue<'ctx> {
        self.functions[id.index()]
    }
}
