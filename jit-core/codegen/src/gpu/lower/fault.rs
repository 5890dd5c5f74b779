//! The end of a thread whose index is out of bounds.
//!
//! Every failed check calls one internal function, so that the kernel's code holds no more than a
//! compare, a branch and a call that is never taken. It records the fault as [`kiln_ir::fault`]
//! describes and ends the thread: no trap, so the other threads and the context live on. For NVIDIA's GPUs LLVM
//! is given its declaration alone ([`FaultBody::InText`]).
//!
//! Each place has a call of its own, and none jumps to an end that several share: `ptxas` leaves what ends threads out of account
//! when it looks for the place where lanes of a warp meet again, and took such an end for it (sums along rows: `BSSY` at the kernel's
//! start, `BSYNC` before the end). By that a lane that faults waits for lanes that wait for it at a shuffle, and lanes that a branch
//! has parted do not meet where its two sides do.

#[cfg(test)]
pub(super) mod by_llvm;

use std::mem::offset_of;

use inkwell::attributes::AttributeLoc;
use inkwell::builder::Builder;
use inkwell::module::Linkage;
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue, PointerValue};
use inkwell::{AtomicOrdering, AtomicRMWBinOp, IntPredicate};

use kiln_ir::fault::{FaultChannel, FaultRecord};
use kiln_ir::{AddressSpace, Inst};

use super::{FunctionLowering, ModuleLowering};
use crate::gpu::fault_text::FaultBody;
use crate::llvm::ask::parameters;
use crate::llvm::bindings::{Wrap, build_gep};
use crate::llvm::error::BackendError;

/// The name of the function that records a fault.
pub(in crate::gpu) const FAULT_FUNCTION: &str = "kiln_fault";

impl<'ctx> FunctionLowering<'_, 'ctx> {
    /// Ends the thread in the current block.
    pub(super) fn call_fault(
        &self,
        inst: Inst,
        index: IntValue<'ctx>,
        length: IntValue<'ctx>,
    ) -> Result<(), BackendError> {
        let channel = self.fault_channel();
        let site = self.module.fault_sites[&(self.id, inst)];
        let site = self.types().int(32).const_int(u64::from(site), false);
        let function = self.module.fault_function()?;
        let args = [site.into(), index.into(), length.into(), channel.into()];
        self.builder().build_call(function, &args, "")?;
        self.builder().build_unreachable()?;
        Ok(())
    }
}

impl<'ctx> ModuleLowering<'_, 'ctx> {
    fn fault_function(&self) -> Result<FunctionValue<'ctx>, BackendError> {
        if let Some(&known) = self.fault_function.get() {
            return Ok(known);
        }
        let int = self.types.int(32);
        let long = self.types.int(64);
        let channel = self.types.pointer(AddressSpace::Global);
        let params = [int.into(), long.into(), long.into(), channel.into()];
        let ty = self.context.void_type().fn_type(&params, false);
        let function = self
            .llvm
            .add_function(FAULT_FUNCTION, ty, Some(Linkage::External));
        for attribute in ["cold", "noinline", "noreturn", "nounwind"] {
            function.add_attribute(AttributeLoc::Function, self.enum_attribute(attribute, 0));
        }
        if self.fault_body == FaultBody::InModule {
            function.set_linkage(Linkage::Internal);
            self.write_fault_body(function)?;
        }
        Ok(*self.fault_function.get_or_init(|| function))
    }

    fn write_fault_body(&self, function: FunctionValue<'ctx>) -> Result<(), BackendError> {
        let builder = self.context.create_builder();
        let [entry, first, end] =
            ["entry", "first", "end"].map(|name| self.context.append_basic_block(function, name));
        let [site, index, length, channel] = parameters(function);
        let channel = channel.into_pointer_value();
        builder.position_at_end(entry);
        let int = self.types.int(32);
        let claimed = self.field(&builder, channel, offset_of!(FaultChannel, claimed));
        let before = builder.build_atomicrmw(
            AtomicRMWBinOp::Xchg,
            claimed,
            int.const_int(1, false),
            AtomicOrdering::Monotonic,
        )?;
        let is_first = builder.build_int_compare(IntPredicate::EQ, before, int.const_zero(), "")?;
        builder.build_conditional_branch(is_first, first, end)?;
        builder.position_at_end(first);
        self.write_record(&builder, channel, [site, index, length])?;
        builder.build_unconditional_branch(end)?;
        builder.position_at_end(end);
        self.dialect.end_thread(&self.point(&builder))?;
        builder.build_unreachable()?;
        Ok(())
    }

    fn write_record(
        &self,
        builder: &Builder<'ctx>,
        channel: PointerValue<'ctx>,
        [site, index, length]: [BasicValueEnum<'ctx>; 3],
    ) -> Result<(), BackendError> {
        let at = self.field(builder, channel, offset_of!(FaultChannel, record));
        let record = builder.build_load(self.types.pointer(AddressSpace::Global), at, "")?;
        let record = record.into_pointer_value();
        // Volatile: the host watches, and LLVM must keep `state` last.
        let write = |offset: usize, value: BasicValueEnum<'ctx>| -> Result<(), BackendError> {
            let store = builder.build_store(self.field(builder, record, offset), value)?;
            // A store can be volatile, which is all that is asked.
            let _ = store.set_volatile(true);
            Ok(())
        };
        let tag = self.types.int(64).const_int(self.kernel_tag, false);
        write(offset_of!(FaultRecord, site), site)?;
        write(offset_of!(FaultRecord, kernel_tag), tag.into())?;
        write(offset_of!(FaultRecord, index), index)?;
        write(offset_of!(FaultRecord, length), length)?;
        let at = self.point(builder);
        for axis in 0..3 {
            let block = self.dialect.block_index(&at, axis)?;
            write(offset_of!(FaultRecord, block) + 4 * axis, block.into())?;
        }
        for axis in 0..3 {
            let thread = self.dialect.thread_index(&at, axis)?;
            write(offset_of!(FaultRecord, thread) + 4 * axis, thread.into())?;
        }
        self.dialect.publish(&at)?;
        let valid = self.types.int(32).const_int(1, false);
        write(offset_of!(FaultRecord, state), valid.into())
    }

    fn field(
        &self,
        builder: &Builder<'ctx>,
        base: PointerValue<'ctx>,
        offset: usize,
    ) -> PointerValue<'ctx> {
        let index = self.types.int(64).const_int(offset as u64, false);
        let byte = self.types.int(8).into();
        build_gep(builder, byte, base, &[index], Wrap::InBoundsForward)
    }
}
