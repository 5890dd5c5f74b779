//! AMD's GPUs, as lowering sees them.

use inkwell::values::{BasicValueEnum, IntValue};

use kiln_ir::{Choices, Known, LaunchBounds, Module, Ordering, Processor, Scalar, Scope};

use super::known;
use crate::gpu::lower::{Dialect, ParamBlock, Point};
use crate::llvm::bindings::{Wrap, build_gep};
use crate::llvm::error::BackendError;
use crate::llvm::optimize::OptLevel;

/// LLVM's calling convention of a kernel (`amdgpu_kernel`).
pub(super) const AMDGPU_KERNEL: u32 = 91;

/// LLVM's number of the address space of constants, where the parameter block lies.
const CONSTANT_SPACE: u16 = 4;

/// The most threads of a block.
const MAX_BLOCK: u32 = 1024;

/// Where the sizes of the grid in blocks, of a block in threads, and of dynamic shared memory lie behind
/// a kernel's parameters, in bytes (User Guide, "AMDHSA Code Object V5 Metadata", hidden arguments).
const GRID_DIM: u64 = 0;
const BLOCK_DIM: u64 = 12;
const DYNAMIC_SHARED_BYTES: u64 = 120;

/// The names of dimensions in intrinsics.
const AXES: [char; 3] = ['x', 'y', 'z'];

/// AMD's GPUs.
pub(super) struct Amd;

impl Dialect for Amd {
    fn processor(&self) -> Processor {
        Processor::Amdgpu
    }

    fn kernel_convention(&self) -> u32 {
        AMDGPU_KERNEL
    }

    fn kernel_attributes(
        &self,
        bounds: Option<LaunchBounds>,
        choices: Choices,
    ) -> Vec<(&'static str, String)> {
        let promised = bounds
            .map(|bounds| bounds.max_threads)
            .filter(|&max| max > 0);
        let most = promised.unwrap_or(MAX_BLOCK).min(MAX_BLOCK);
        let mut attributes = vec![
            ("amdgpu-flat-work-group-size", format!("1,{most}")),
            ("uniform-work-group-size", "true".to_owned()),
        ];
        if choices.max_registers > 0 {
            attributes.push(("amdgpu-num-vgpr", choices.max_registers.to_string()));
        }
        attributes
    }

    fn param_block(&self) -> ParamBlock {
        ParamBlock {
            space: Some(CONSTANT_SPACE),
            by_value: "byref",
            mark: None,
        }
    }

    fn passes(&self, level: OptLevel, _: &Module) -> String {
        level.amd_pipeline()
    }

    fn scope(&self, scope: Scope) -> &'static str {
        match scope {
            Scope::Block => "workgroup",
            Scope::Device => "agent",
            Scope::System => "",
        }
    }

    fn address_register(&self) -> char {
        'v'
    }

    fn thread_index<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        axis: usize,
    ) -> Result<IntValue<'ctx>, BackendError> {
        at.number(&format!("llvm.amdgcn.workitem.id.{}", AXES[axis]), &[])
    }

    fn block_index<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        axis: usize,
    ) -> Result<IntValue<'ctx>, BackendError> {
        at.number(&format!("llvm.amdgcn.workgroup.id.{}", AXES[axis]), &[])
    }

    fn dynamic_shared_bytes<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        hidden_argument(at, DYNAMIC_SHARED_BYTES, 32)
    }

    /// `s_barrier` orders nothing by itself.
    fn barrier(&self, at: &Point<'_, '_, '_>) -> Result<(), BackendError> {
        at.fence((Ordering::Release, Scope::Block));
        at.call("llvm.amdgcn.s.barrier", &[], &[])?;
        at.fence((Ordering::Acquire, Scope::Block));
        Ok(())
    }

    fn publish(&self, at: &Point<'_, '_, '_>) -> Result<(), BackendError> {
        at.fence((Ordering::Release, Scope::System));
        Ok(())
    }

    /// Ends the wave: a thread has no end of its own.
    fn end_thread(&self, at: &Point<'_, '_, '_>) -> Result<(), BackendError> {
        at.call("llvm.amdgcn.endpgm", &[], &[])?;
        Ok(())
    }

    fn knows(&self, known: Known) -> bool {
        known::knows(known)
    }

    fn known<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        known: (Known, Scalar),
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        known::lower(self, at, known, args)
    }
}

/// Threads of a block or blocks of the grid along an axis, as 32 bits.
pub(super) fn extent<'ctx>(
    at: &Point<'_, '_, 'ctx>,
    of_block: bool,
    axis: usize,
) -> Result<IntValue<'ctx>, BackendError> {
    let axis = axis as u64;
    match of_block {
        true => hidden_argument(at, BLOCK_DIM + 2 * axis, 16),
        false => hidden_argument(at, GRID_DIM + 4 * axis, 32),
    }
}

/// A number of so many bits that the runtime puts behind a kernel's parameters, as 32 bits.
fn hidden_argument<'ctx>(
    at: &Point<'_, '_, 'ctx>,
    offset: u64,
    bits: u32,
) -> Result<IntValue<'ctx>, BackendError> {
    let start = at.value("llvm.amdgcn.implicitarg.ptr", &[], &[])?;
    let offset = at.int(64).const_int(offset, false);
    let (byte, start) = (at.int(8).into(), start.into_pointer_value());
    let address = build_gep(at.builder, byte, start, &[offset], Wrap::InBoundsForward);
    let number = at.builder.build_load(at.int(bits), address, "")?;
    let number = number.into_int_value();
    Ok(at
        .builder
        .build_int_z_extend_or_bit_cast(number, at.int(32), "")?)
}
