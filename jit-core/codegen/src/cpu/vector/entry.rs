//! The function's frame: its parameters, what is there in all of it, and its stack slots.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::mem::offset_of;

use inkwell::AddressSpace as LlvmSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::{Linkage, Module as LlvmModule};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, FunctionValue, GlobalValue, IntValue, PointerValue};

use kiln_ir::host_abi::{ENTRY, HostLaunch};
use kiln_ir::target::Barriers;
use kiln_ir::{GlobalId, Inst, Module, Value};

use super::block::BlockWriter;
use super::coroutine::{Coroutine, write_coroutine};
use super::emit::{Built, Emit};
use super::leaf::Leaves;
use super::plan::{ALIGN, Plan};
use super::warp::param_values;
use crate::hooks::LoweringHooks;
use crate::llvm::error::BackendError;
use crate::llvm::unrolled::LeftAsLoop;

/// What is there in the whole function.
pub(super) struct Entry<'ctx> {
    pub(super) function: FunctionValue<'ctx>,
    pub(super) launch: PointerValue<'ctx>,
    /// What is kept between segments.
    pub(super) kept: PointerValue<'ctx>,
    /// Private and shared memory.
    pub(super) arena: PointerValue<'ctx>,
    pub(super) grid: [IntValue<'ctx>; 3],
    pub(super) dynamic_bytes: IntValue<'ctx>,
    pub(super) block_index: [IntValue<'ctx>; 3],
    /// Which of the blocks that are run side by side it is, where there are several.
    pub(super) beside: Option<IntValue<'ctx>>,
    /// A place on the stack with the address of the word that is 0 as long as the launch is to go on. In a
    /// register it would take one from the loops, for something that is hardly ever used.
    pub(super) stop: PointerValue<'ctx>,
    /// Where control goes when the launch is to end.
    pub(super) stopped: BasicBlock<'ctx>,
    /// How a warp waits, if it is a coroutine.
    pub(super) coroutine: Option<Coroutine<'ctx>>,
    /// Parameters, and the indices of loops of the block.
    pub(super) values: HashMap<Value, Leaves<'ctx>>,
    pub(super) slots: Builder<'ctx>,
    constants: RefCell<HashMap<GlobalId, GlobalValue<'ctx>>>,
    locals: RefCell<HashMap<Inst, PointerValue<'ctx>>>,
}

impl<'ctx> Entry<'ctx> {
    /// Reads what a launch hands over. `launch`, what is kept, and the memory of a block are
    /// parameters of the function; the builder is where the function starts. `stopped` is where
    /// control leaves it when the launch is to end.
    pub(super) fn new(
        emit: &Emit<'_, 'ctx>,
        plan: &Plan<'_>,
        function: FunctionValue<'ctx>,
        slots: Builder<'ctx>,
        [launch, kept, arena]: [PointerValue<'ctx>; 3],
        stopped: BasicBlock<'ctx>,
    ) -> Result<Entry<'ctx>, BackendError> {
        let field = |offset: usize, ty: BasicTypeEnum<'ctx>, align| {
            let at = emit.offset_const(launch, offset as u64)?;
            emit.load(ty, at, align, false)
        };
        let int: BasicTypeEnum<'ctx> = emit.int(32).into();
        let mut grid = [emit.i32(0); 3];
        for (i, extent) in grid.iter_mut().enumerate() {
            let offset = offset_of!(HostLaunch, grid) + 4 * i;
            *extent = field(offset, int, 4)?.into_int_value();
        }
        let dynamic_bytes = field(offset_of!(HostLaunch, dynamic_shared), int, 4)?;
        let ptr = launch.get_type().into();
        let params = field(offset_of!(HostLaunch, params), ptr, 8)?.into_pointer_value();
        let stop = slots.build_alloca(ptr, "stop")?;
        let address = field(offset_of!(HostLaunch, stop), ptr, 8)?;
        emit.builder.build_store(stop, address)?;
        let values = param_values(emit, plan, params)?;
        Ok(Entry {
            function,
            launch,
            kept,
            arena,
            grid,
            dynamic_bytes: dynamic_bytes.into_int_value(),
            block_index: grid,
            beside: None,
            stop,
            stopped,
            coroutine: None,
            values,
            slots,
            constants: RefCell::default(),
            locals: RefCell::default(),
        })
    }

    /// A place on the stack for the whole function.
    pub(super) fn slot(
        &self,
        _emit: &Emit<'_, 'ctx>,
        ty: BasicTypeEnum<'ctx>,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        Ok(self.slots.build_alloca(ty, "")?)
    }

    /// The place of a private allocation, one for all warps.
    pub(super) fn local_slot(
        &self,
        emit: &Emit<'_, 'ctx>,
        inst: Inst,
        ty: BasicTypeEnum<'ctx>,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        if let Some(&known) = self.locals.borrow().get(&inst) {
            return Ok(known);
        }
        let slot = self.slot(emit, ty)?;
        if let Some(alloca) = slot.as_instruction() {
            // A power of two, which is all that can be refused.
            let _ = alloca.set_alignment(64);
        }
        self.locals.borrow_mut().insert(inst, slot);
        Ok(slot)
    }

    /// The address of a constant of the module.
    pub(super) fn constant(
        &self,
        emit: &Emit<'_, 'ctx>,
        module: &Module,
        id: GlobalId,
    ) -> Built<'ctx> {
        if let Some(known) = self.constants.borrow().get(&id) {
            return Ok(known.as_pointer_value().into());
        }
        let data = &module.globals[id];
        // A constant of no bytes still has an address.
        let bytes: &[u8] = if data.bytes.is_empty() {
            &[0]
        } else {
            &data.bytes
        };
        let value = emit.context.const_string(bytes, false);
        let global = emit.module.add_global(value.get_type(), None, "constant");
        global.set_initializer(&value);
        global.set_constant(true);
        global.set_linkage(Linkage::Internal);
        global.set_alignment(16);
        self.constants.borrow_mut().insert(id, global);
        Ok(global.as_pointer_value().into())
    }
}

/// Writes the kernel into a module of the host.
pub(crate) fn write_kernel<'ctx>(
    context: &'ctx Context,
    module: &LlvmModule<'ctx>,
    plan: &Plan<'_>,
    hooks: &dyn LoweringHooks,
) -> Result<Option<LeftAsLoop>, BackendError> {
    let left_as_loop = Cell::new(None);
    let emit = Emit {
        hooks,
        left_as_loop: &left_as_loop,
        context,
        module,
        builder: context.create_builder(),
        lanes: plan.block.lanes,
    };
    let function = declare(&emit, plan);
    let slots_block = context.append_basic_block(function, "slots");
    let body = context.append_basic_block(function, "entry");
    let slots = context.create_builder();
    slots.position_at_end(slots_block);
    emit.builder.position_at_end(body);
    let mut writer = BlockWriter::new(&emit, plan, function, slots)?;
    if plan.barriers == Barriers::Coroutines {
        writer.warp_function = Some(write_coroutine(&emit, plan)?);
        emit.builder.position_at_end(body);
    }
    let slots = writer.write()?;
    slots.build_unconditional_branch(body)?;
    Ok(left_as_loop.get())
}

fn declare<'ctx>(emit: &Emit<'_, 'ctx>, plan: &Plan<'_>) -> FunctionValue<'ctx> {
    let ptr = emit.context.ptr_type(LlvmSpace::default());
    let word = emit.int(64);
    let params = [ptr.into(), word.into(), word.into(), ptr.into(), ptr.into()];
    let ty = emit.context.void_type().fn_type(&params, false);
    let function = emit.module.add_function(ENTRY, ty, None);
    emit.report_stack(function);
    let attribute = |name, value| {
        let kind = Attribute::get_named_enum_kind_id(name);
        emit.context.create_enum_attribute(kind, value)
    };
    function.add_attribute(AttributeLoc::Function, attribute("nounwind", 0));
    let describe = |param, name, value| {
        function.add_attribute(AttributeLoc::Param(param), attribute(name, value));
    };
    describe(0, "readonly", 0);
    describe(0, "noalias", 0);
    for (param, bytes) in [3, 4].into_iter().zip(plan.arena_bytes()) {
        describe(param, "noalias", 0);
        describe(param, "align", ALIGN);
        if bytes > 0 {
            describe(param, "dereferenceable", bytes);
        }
    }
    for (name, value) in [
        ("prefer-vector-width", "512"),
        ("min-legal-vector-width", "512"),
    ] {
        let attribute = emit.context.create_string_attribute(name, value);
        function.add_attribute(AttributeLoc::Function, attribute);
    }
    function
}

impl Plan<'_> {
    /// Calls the launch's fault function with `[site, index, length, thread]`.
    pub(super) fn call_fault<'ctx>(
        &self,
        emit: &Emit<'_, 'ctx>,
        entry: &Entry<'ctx>,
        [site, index, length, thread]: [BasicValueEnum<'ctx>; 4],
    ) -> Result<(), BackendError> {
        let ptr = entry.launch.get_type();
        let field = |offset: usize| {
            let at = emit.offset_const(entry.launch, offset as u64)?;
            emit.load(ptr.into(), at, 8, false)
        };
        let function = field(offset_of!(HostLaunch, fault))?.into_pointer_value();
        let sink = field(offset_of!(HostLaunch, sink))?;
        let (int, word) = (emit.int(32).into(), emit.int(64).into());
        let params = [ptr.into(), int, word, word, int, int, int, int];
        let ty = emit.context.void_type().fn_type(&params, false);
        let [x, y, z] = entry.block_index;
        let args = [
            sink,
            site,
            index,
            length,
            thread,
            x.into(),
            y.into(),
            z.into(),
        ];
        let args = args.map(Into::into);
        emit.builder.build_indirect_call(ty, function, &args, "")?;
        Ok(())
    }
}
