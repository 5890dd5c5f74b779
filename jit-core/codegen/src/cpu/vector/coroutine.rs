//! A coroutine for each warp: for barriers that no cut of the kernel reaches (LLVM, "Coroutines in
//! LLVM", switched-resume lowering).
//!
//! The whole kernel becomes a function that runs one warp and suspends at every barrier; LLVM finds
//! what has to live on. A block starts all its warps and resumes those that have not ended, round
//! after round: a barrier waits for all threads that have not ended, whichever barrier they are at.
//! What a warp keeps while it waits lies in the block's memory, behind what segments keep; how much
//! that is, LLVM says once it has split the function ([`take_frame_bytes`]).
//! Lanes of a warp come to a barrier together, so a barrier where they part needs warps of one lane.

use inkwell::AddressSpace as LlvmSpace;
use inkwell::IntPredicate;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::core::{LLVMBuildCall2, LLVMConstNull, LLVMTokenTypeInContext};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module as LlvmModule;
use inkwell::types::AsTypeRef as _;
use inkwell::values::{
    AnyValueEnum, AsValueRef as _, BasicValue as _, BasicValueEnum, FunctionValue, IntValue,
    Operand, PointerValue,
};

use super::Warp;
use super::block::BlockWriter;
use super::emit::{Emit, unexpected};
use super::entry::Entry;
use super::flow::Level;
use super::plan::{ALIGN, Plan};
use crate::llvm::ask::{declared, parameters, value_of};
use crate::llvm::error::BackendError;

/// Where a suspended warp goes.
#[derive(Copy, Clone)]
pub(super) struct Coroutine<'ctx> {
    /// Back to whoever resumed it.
    suspended: BasicBlock<'ctx>,
    /// To its end, were it given up.
    cleanup: BasicBlock<'ctx>,
}

impl<'ctx> Emit<'_, 'ctx> {
    /// Calls a function whose operands or result may be tokens, which inkwell has no type for.
    fn raw_call(&self, function: FunctionValue<'ctx>, args: &[LLVMValueRef]) -> LLVMValueRef {
        let mut args = args.to_vec();
        // SAFETY: the function and the arguments are of this module, and the callers pass what the
        // intrinsic takes; the builder is positioned.
        unsafe {
            LLVMBuildCall2(
                self.builder.as_mut_ptr(),
                function.get_type().as_type_ref(),
                function.as_value_ref(),
                args.as_mut_ptr(),
                args.len() as u32,
                c"".as_ptr(),
            )
        }
    }

    fn coroutine_intrinsic(&self, name: &str) -> Result<FunctionValue<'ctx>, BackendError> {
        let overloads: &[inkwell::types::BasicTypeEnum<'ctx>] = match name {
            "llvm.coro.size" => &[self.int(64).into()],
            _ => &[],
        };
        declared(self.module, name, overloads)
    }

    /// No token.
    fn no_token(&self) -> LLVMValueRef {
        // SAFETY: the context is alive; tokens have a null.
        unsafe { LLVMConstNull(LLVMTokenTypeInContext(self.context.raw())) }
    }

    fn flag(&self, value: bool) -> LLVMValueRef {
        self.int(1).const_int(value.into(), false).as_value_ref()
    }
}

/// A function that is never called: the call that names it is taken out again, with the number that
/// LLVM has put there.
pub(crate) const FRAME_BYTES: &str = "kiln_frame_bytes";

/// The bytes that a warp keeps while it waits, once coroutines are split; 0 if there are none.
pub(crate) fn take_frame_bytes(module: &LlvmModule<'_>) -> Result<u64, BackendError> {
    let Some(marker) = module.get_function(FRAME_BYTES) else {
        return Ok(0);
    };
    let mut bytes = None;
    while let Some(site) = marker.as_global_value().as_pointer_value().get_first_use() {
        let user = site.get_user();
        bytes = frame_size(user);
        match user {
            AnyValueEnum::InstructionValue(call) if bytes.is_some() => {
                call.erase_from_basic_block()
            }
            _ => break,
        }
    }
    let bytes = bytes.ok_or_else(|| unexpected("coroutines whose frames have no known size"))?;
    // SAFETY: nothing uses it any more.
    unsafe { marker.delete() };
    Ok(bytes)
}

/// The number that a call of the marker is given.
fn frame_size(user: AnyValueEnum<'_>) -> Option<u64> {
    let AnyValueEnum::InstructionValue(call) = user else {
        return None;
    };
    match call.get_operand(0).and_then(Operand::value)? {
        BasicValueEnum::IntValue(size) => size.get_zero_extended_constant(),
        _ => None,
    }
}

/// Writes the function that runs one warp: `warp(launch, block x, y, z, warp, kept, memory)`, which
/// gives the handle of the coroutine.
pub(super) fn write_coroutine<'ctx>(
    emit: &Emit<'_, 'ctx>,
    plan: &Plan<'_>,
) -> Result<FunctionValue<'ctx>, BackendError> {
    let ptr = emit.context.ptr_type(LlvmSpace::default());
    let int = emit.int(32);
    let (p, i) = (ptr.into(), int.into());
    let params = [p, i, i, i, i, p, p];
    let ty = ptr.fn_type(&params, false);
    let function = emit.module.add_function("warp_of_block", ty, None);
    function.set_linkage(inkwell::module::Linkage::Internal);
    emit.report_stack(function);
    for name in ["nounwind", "presplitcoroutine", "noinline"] {
        let kind = Attribute::get_named_enum_kind_id(name);
        let attribute = emit.context.create_enum_attribute(kind, 0);
        function.add_attribute(AttributeLoc::Function, attribute);
    }
    let [slots_block, body, suspended, cleanup] = ["slots", "entry", "suspended", "cleanup"]
        .map(|name| emit.context.append_basic_block(function, name));
    let slots = emit.context.create_builder();
    slots.position_at_end(slots_block);
    emit.builder.position_at_end(body);
    let [launch, x, y, z, warp, kept, arena] = parameters(function);
    let frames = emit.offset_const(kept.into_pointer_value(), plan.arena.kept)?;
    let handle = begin(emit, frames, warp)?;
    let pointers = [launch, kept, arena].map(BasicValueEnum::into_pointer_value);
    // A warp that ends early is never resumed: whoever drives it looks, too.
    let mut entry = Entry::new(emit, plan, function, slots, pointers, suspended)?;
    entry.block_index = [x, y, z].map(BasicValueEnum::into_int_value);
    entry.coroutine = Some(Coroutine { suspended, cleanup });
    let none = emit.i64(0);
    let writer = BlockWriter::with(emit, plan, entry, [none, none]);
    writer.warp_body(warp.into_int_value())?;
    finish(emit, function, handle, [suspended, cleanup])?;
    writer.entry.slots.build_unconditional_branch(body)?;
    Ok(function)
}

/// Begins, with what lives on in this warp's place among the frames.
fn begin<'ctx>(
    emit: &Emit<'_, 'ctx>,
    frames: PointerValue<'ctx>,
    warp: BasicValueEnum<'ctx>,
) -> Result<LLVMValueRef, BackendError> {
    let ptr = emit.context.ptr_type(LlvmSpace::default());
    let null = ptr.const_null().as_value_ref();
    // What lives on holds vectors, and frames lie at multiples of this.
    let align = emit.i32(ALIGN as u32).as_value_ref();
    let id = emit.raw_call(
        emit.coroutine_intrinsic("llvm.coro.id")?,
        &[align, null, null, null],
    );
    let size = emit.raw_call(emit.coroutine_intrinsic("llvm.coro.size")?, &[]);
    let word = emit.int(64);
    let ty = emit.context.void_type().fn_type(&[word.into()], false);
    let marker = emit.module.add_function(FRAME_BYTES, ty, None);
    emit.raw_call(marker, &[size]);
    // SAFETY: the intrinsic gives an `i64`.
    let size = unsafe { IntValue::new(size) };
    let over = emit.add(size.into(), emit.i64(ALIGN as i64 - 1).into())?;
    let bytes = emit.and(over, emit.i64(-(ALIGN as i64)).into())?;
    let warp = emit.resize(warp, 64, false)?;
    let memory = emit.offset(frames.into(), emit.mul(warp, bytes)?)?;
    let begin = emit.coroutine_intrinsic("llvm.coro.begin")?;
    Ok(emit.raw_call(begin, &[id, memory.as_value_ref()]))
}

/// The last suspension, and the way back to the caller.
fn finish<'ctx>(
    emit: &Emit<'_, 'ctx>,
    function: FunctionValue<'ctx>,
    handle: LLVMValueRef,
    [suspended, cleanup]: [BasicBlock<'ctx>; 2],
) -> Result<(), BackendError> {
    let never = emit.context.append_basic_block(function, "never");
    let state = suspend(emit, true)?;
    let destroyed = emit.int(8).const_int(1, false);
    let resumed = emit.int(8).const_zero();
    emit.builder
        .build_switch(state, suspended, &[(resumed, never), (destroyed, cleanup)])?;
    emit.builder.position_at_end(never);
    emit.builder.build_unreachable()?;
    emit.builder.position_at_end(cleanup);
    emit.builder.build_unconditional_branch(suspended)?;
    emit.builder.position_at_end(suspended);
    let end = emit.coroutine_intrinsic("llvm.coro.end")?;
    emit.raw_call(end, &[handle, emit.flag(false), emit.no_token()]);
    // SAFETY: what `llvm.coro.begin` gives is a pointer.
    let handle = unsafe { PointerValue::new(handle) };
    emit.builder.build_return(Some(&handle))?;
    Ok(())
}

/// `llvm.coro.suspend`: 0 when resumed, 1 when the coroutine is to end.
fn suspend<'ctx>(emit: &Emit<'_, 'ctx>, is_last: bool) -> Result<IntValue<'ctx>, BackendError> {
    let suspend = emit.coroutine_intrinsic("llvm.coro.suspend")?;
    let state = emit.raw_call(suspend, &[emit.no_token(), emit.flag(is_last)]);
    // SAFETY: the intrinsic gives an `i8`.
    Ok(unsafe { IntValue::new(state) })
}

impl<'ctx> Warp<'_, '_, 'ctx> {
    /// A barrier: nothing within a segment, a suspension in a coroutine.
    pub(super) fn barrier(&mut self) -> Result<(), BackendError> {
        let Some(coroutine) = self.entry.coroutine else {
            return Ok(());
        };
        let state = suspend(self.emit, false)?;
        let resumed = self.block("resumed");
        let (zero, one) = (
            self.emit.int(8).const_zero(),
            self.emit.int(8).const_int(1, false),
        );
        self.emit.builder.build_switch(
            state,
            coroutine.suspended,
            &[(zero, resumed), (one, coroutine.cleanup)],
        )?;
        self.emit.builder.position_at_end(resumed);
        Ok(())
    }
}

impl<'ctx> BlockWriter<'_, '_, 'ctx> {
    /// The kernel for one warp, to its end.
    fn warp_body(&self, index: IntValue<'ctx>) -> Result<(), BackendError> {
        let lanes = self.emit.i32(self.plan.block.lanes).into();
        let first = self.emit.mul(index.into(), lanes)?.into_int_value();
        let end = self.block("warp_end");
        let mut warp = self.warp(index, first);
        let mask = self.initial_mask(first)?;
        let mask = self.slot(mask.into())?;
        warp.levels.push(Level { mask, exit: end });
        self.bring_in(&mut warp, 0)?;
        self.segment_body(&mut warp, 0)?;
        warp.jump(end)?;
        self.emit.builder.position_at_end(end);
        Ok(())
    }

    /// Starts the coroutines of a block's warps and resumes them until all have ended.
    pub(super) fn drive(&mut self, function: FunctionValue<'ctx>) -> Result<(), BackendError> {
        let [x, y, z] = self.entry.block_index;
        self.each_warp(|writer, warp, _| {
            let entry = &writer.entry;
            let args = [
                entry.launch.into(),
                x.into(),
                y.into(),
                z.into(),
                warp.into(),
                entry.kept.into(),
                entry.arena.into(),
            ];
            let call = writer.emit.builder.build_call(function, &args, "")?;
            let handle = value_of(call, "a coroutine")?;
            writer
                .emit
                .store(writer.handle_slot(warp)?, handle, 8, false)?;
            writer.entry.look(writer.emit)
        })?;
        let (round, done) = (self.block("round"), self.block("all_ended"));
        let int = self.emit.int(32);
        let waiting = self.slot(int.const_zero().into())?;
        self.emit.builder.build_unconditional_branch(round)?;
        self.emit.builder.position_at_end(round);
        self.emit.builder.build_store(waiting, int.const_zero())?;
        self.each_warp(|writer, warp, _| writer.resume(warp, waiting))?;
        let any = self.read(int.into(), waiting)?;
        let any = self
            .emit
            .icmp(IntPredicate::NE, any, int.const_zero().into())?;
        self.emit
            .builder
            .build_conditional_branch(any.into_int_value(), round, done)?;
        self.emit.builder.position_at_end(done);
        Ok(())
    }

    fn handle_slot(&self, warp: IntValue<'ctx>) -> Result<PointerValue<'ctx>, BackendError> {
        let warp = self.emit.resize(warp.into(), 64, false)?;
        let bytes = self.emit.mul(warp, self.emit.i64(8).into())?;
        let start = self.entry.kept.into();
        Ok(self.emit.offset(start, bytes)?.into_pointer_value())
    }

    /// Resumes a warp if it has not ended, and notes that there is one.
    fn resume(
        &self,
        warp: IntValue<'ctx>,
        waiting: PointerValue<'ctx>,
    ) -> Result<(), BackendError> {
        let emit = self.emit;
        let ptr = self.entry.launch.get_type();
        let handle = emit.load(ptr.into(), self.handle_slot(warp)?, 8, false)?;
        let handle = handle.as_value_ref();
        let ended = emit.raw_call(emit.coroutine_intrinsic("llvm.coro.done")?, &[handle]);
        // SAFETY: the intrinsic gives an `i1`.
        let ended = unsafe { IntValue::new(ended) };
        let (go_on, next) = (self.block("go_on"), self.block("resumed"));
        emit.builder.build_conditional_branch(ended, next, go_on)?;
        emit.builder.position_at_end(go_on);
        emit.raw_call(emit.coroutine_intrinsic("llvm.coro.resume")?, &[handle]);
        self.entry.look(emit)?;
        emit.builder.build_store(waiting, emit.i32(1))?;
        emit.builder.build_unconditional_branch(next)?;
        emit.builder.position_at_end(next);
        Ok(())
    }
}
