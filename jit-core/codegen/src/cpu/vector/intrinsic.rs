//! Intrinsics in all lanes.
//!
//! Where a thread is follows from the shape of the block, which is known. What a row's cell says LLVM has
//! for vectors is written as such. Every other row of the table is computed from its meaning, lane by
//! lane: slow, but the row needs nothing else to work here.

use std::mem::offset_of;

use inkwell::values::{BasicValueEnum, InstructionOpcode};

use kiln_ir::host_abi::HostLaunch;
use kiln_ir::legal::Proved as _;
use kiln_ir::{
    Axis, Effects, IntrinsicDef, Known, Lowering, Meaning, Processor, Scalar, Type, Uniformity,
    Value,
};

use super::Warp;
use super::emit::{Built, unexpected};
use super::leaf::{Leaf, Leaves, scalar_type};
use crate::llvm::ask::{given_by_cell, value_of};
use crate::llvm::error::BackendError;

impl<'ctx> Warp<'_, '_, 'ctx> {
    pub(super) fn intrinsic(
        &mut self,
        def: &'static IntrinsicDef,
        args: &[Value],
        result: Type,
    ) -> Result<Option<Leaves<'ctx>>, BackendError> {
        let position = def.known.map(|known| self.position(known)).transpose()?;
        let known = match position.flatten() {
            None => self.warp_function(def, args)?,
            leaf => leaf,
        };
        if let Some(leaf) = known {
            return Ok(Some(Leaves::from_elem(leaf, 1)));
        }
        let types: Vec<Type> = args.iter().map(|&a| self.type_of(a)).collect();
        let scalar = def.meaning_type(&self.types(), &types, result);
        let leaf = match def.meaning {
            Meaning::Warp(_) => self.warp_operation(def, scalar, args, result)?,
            Meaning::Pure(_) => match vector_function(def, scalar) {
                Some(name) if result != Type::UNIT => {
                    let value = self.host_function(name, scalar, args)?;
                    let wanted = scalar_type(self.emit, self.types().scalar_of(result));
                    let wanted = self.emit.shaped(wanted, value);
                    Some(Leaf::from(given_by_cell(def, Some(value), wanted)?))
                }
                _ => {
                    let operands = args.iter().map(|&a| Ok((self.leaf(a)?, self.scalar_of(a))));
                    let operands = operands.collect::<Result<Vec<_>, BackendError>>()?;
                    self.by_meaning(def, scalar, operands, result)?
                }
            },
            Meaning::Position(_) => {
                let operands = self.thread_position(def.uniformity)?;
                self.by_meaning(def, scalar, operands, result)?
            }
            Meaning::Grid => {
                self.each_lane(&[], |warp, _| {
                    warp.call_meaning(def, scalar, &[], &[]).map(drop)
                })?;
                None
            }
            Meaning::NamedBarrier { .. } => return Err(unexpected("a named barrier")),
            Meaning::Body(_) => return Err(unexpected("an intrinsic that was not expanded")),
        };
        Ok(leaf.map(|leaf| Leaves::from_elem(leaf, 1)))
    }

    fn host_function(&self, name: &str, scalar: Scalar, args: &[Value]) -> Built<'ctx> {
        let mut operands = Vec::new();
        for &arg in args {
            let value = self.leaf(arg)?.value(self.emit)?;
            operands.push(if scalar.is_half() {
                self.widen_half(scalar, value)?
            } else {
                value
            });
        }
        if operands.iter().any(|o| o.is_vector_value()) {
            for operand in &mut operands {
                *operand = Leaf::from(*operand).vector(self.emit)?.into();
            }
        }
        // `vector_function` names none without operands.
        let value = self
            .emit
            .value(name, &[operands[0].get_type()], &operands)?;
        match scalar.is_half() {
            true => self.round_to_half(scalar, value),
            false => Ok(value),
        }
    }

    /// Indices and extents.
    fn position(&self, known: Known) -> Result<Option<Leaf<'ctx>>, BackendError> {
        let uniform = |value: BasicValueEnum<'ctx>| Ok(Some(Leaf::Uniform(value)));
        match known {
            Known::ThreadIdx(axis) => self.thread_index(axis.index()).map(Some),
            Known::BlockIdx(axis) => uniform(self.entry.block_index[axis.index()].into()),
            Known::BlockDim(axis) => {
                let extent = self.kernel.block.threads[axis.index()];
                uniform(self.emit.i32(extent).into())
            }
            Known::GridDim(axis) => uniform(self.entry.grid[axis.index()].into()),
            _ => Ok(None),
        }
    }

    /// Where each lane's thread is, as a row's meaning is given it: a [`ThreadPosition`]'s numbers. For a
    /// row that gives all lanes one result, where the first of them is.
    ///
    /// [`ThreadPosition`]: crate::ir::ThreadPosition
    fn thread_position(
        &self,
        uniformity: Uniformity,
    ) -> Result<Vec<(Leaf<'ctx>, Scalar)>, BackendError> {
        let of_all = uniformity != Uniformity::Lane;
        let mut operands = Vec::new();
        for axis in Axis::ALL {
            let index = self.thread_index(axis.index())?;
            operands.push(match of_all {
                true => Leaf::Uniform(self.leaf_in_lane(index, self.emit.i64(0).into())?),
                false => index,
            });
        }
        for what in [Known::BlockIdx, Known::BlockDim, Known::GridDim] {
            for axis in Axis::ALL {
                operands.extend(self.position(what(axis))?);
            }
        }
        Ok(operands
            .into_iter()
            .map(|leaf| (leaf, Scalar::U32))
            .collect())
    }

    /// The index of each lane's thread.
    fn thread_index(&self, dimension: usize) -> Result<Leaf<'ctx>, BackendError> {
        let [x, y, _] = self.kernel.block.threads;
        let first: BasicValueEnum<'ctx> = self.first_thread.into();
        let below = [1, x, x * y][dimension];
        let extent = self.kernel.block.threads[dimension];
        if extent == 1 {
            return Ok(Leaf::Uniform(self.emit.i32(0).into()));
        }
        let of = |value: BasicValueEnum<'ctx>| {
            let row = self.emit.int_like(below.into(), value);
            let value = self.emit.binary(InstructionOpcode::UDiv, value, row)?;
            // The last dimension that has an extent never wraps around.
            let wraps = self.kernel.block.threads[dimension + 1..]
                .iter()
                .any(|&n| n > 1);
            if !wraps {
                return Ok(value);
            }
            let extent = self.emit.int_like(extent.into(), value);
            self.emit.binary(InstructionOpcode::URem, value, extent)
        };
        if self.kernel.block.warps_fit_rows() {
            let base = of(first)?;
            return Ok(match dimension {
                0 => Leaf::Affine { base, stride: 1 },
                _ => Leaf::Uniform(base),
            });
        }
        let linear = Leaf::Affine {
            base: first,
            stride: 1,
        };
        Ok(Leaf::from(of(linear.vector(self.emit)?.into())?))
    }

    /// Calls the row's meaning, once or for each active lane. What it gives is dropped where the row has no
    /// result.
    fn by_meaning(
        &mut self,
        def: &'static IntrinsicDef,
        scalar: Scalar,
        operands: Vec<(Leaf<'ctx>, Scalar)>,
        result: Type,
    ) -> Result<Option<Leaf<'ctx>>, BackendError> {
        let to = result.as_scalar();
        let (operands, scalars): (Vec<_>, Vec<_>) = operands.into_iter().unzip();
        let lanes = operands
            .iter()
            .any(|leaf| !matches!(leaf, Leaf::Uniform(_)));
        if !lanes {
            let mut values = Vec::new();
            for operand in operands {
                values.push(operand.uniform()?);
            }
            let bits = self.call_meaning(def, scalar, &scalars, &values)?;
            let value = to.map(|to| self.emit.of_bits(bits, to)).transpose()?;
            return Ok(value.map(Leaf::Uniform));
        }
        let mut vectors = Vec::new();
        for (operand, &scalar) in operands.iter().zip(&scalars) {
            let lanes: BasicValueEnum<'ctx> = operand.vector(self.emit)?.into();
            vectors.push(self.emit.as_stored(lanes, scalar)?);
        }
        let Some(to) = to else {
            self.each_lane(&vectors, |warp, lane| {
                warp.call_meaning(def, scalar, &scalars, lane).map(drop)
            })?;
            return Ok(None);
        };
        let stored = self.emit.stored_type(to);
        let ty = self.emit.vector_of(stored);
        let value = self.value_of_lanes(&vectors, ty, |warp, lane| {
            let bits = warp.call_meaning(def, scalar, &scalars, lane)?;
            let value = warp.emit.of_bits(bits, to)?;
            warp.emit.as_stored(value, to)
        })?;
        Ok(Some(Leaf::from(self.emit.as_computed(value, to)?)))
    }

    /// The address of a row, which the launch knows by its number.
    pub(super) fn row_address(&self, def: &'static IntrinsicDef) -> Built<'ctx> {
        let mut rows = self.kernel.module.intrinsics.values();
        let number = rows.position(|&row| std::ptr::eq(row, def));
        let number = number.proved("the row of an intrinsic");
        let ptr = self.entry.launch.get_type().into();
        let rows = offset_of!(HostLaunch, rows) as u64;
        let rows = self.emit.offset_const(self.entry.launch, rows)?;
        let rows = self.emit.load(ptr, rows, 8, false)?.into_pointer_value();
        let row = self.emit.offset_const(rows, 8 * number as u64)?;
        self.emit.load(ptr, row, 8, false)
    }

    /// The bits that a row's meaning gives.
    fn call_meaning(
        &self,
        def: &'static IntrinsicDef,
        scalar: Scalar,
        scalars: &[Scalar],
        args: &[BasicValueEnum<'ctx>],
    ) -> Built<'ctx> {
        let word = self.emit.int(64);
        let slots = self
            .entry
            .slot(self.emit, word.array_type(args.len().max(1) as u32).into())?;
        for (i, (&arg, &from)) in args.iter().zip(scalars).enumerate() {
            let bits = self.emit.to_bits(arg, from)?;
            let bits = self.emit.resize(bits, 64, false)?;
            let at = self.emit.offset_const(slots, i as u64 * 8)?;
            self.emit.store(at, bits, 8, false)?;
        }
        let row = self.row_address(def)?;
        let ptr = self.entry.launch.get_type();
        let at = self
            .emit
            .offset_const(self.entry.launch, offset_of!(HostLaunch, meaning) as u64)?;
        let function = self
            .emit
            .load(ptr.into(), at, 8, false)?
            .into_pointer_value();
        let int = self.emit.int(32);
        let ty = word.fn_type(&[ptr.into(), int.into(), ptr.into(), int.into()], false);
        let args = [
            row.into(),
            self.emit.i32(scalar as u32).into(),
            slots.into(),
            self.emit.i32(args.len() as u32).into(),
        ];
        let call = self
            .emit
            .builder
            .build_indirect_call(ty, function, &args, "")?;
        value_of(call, "a meaning")
    }
}

/// The LLVM intrinsic that takes vectors for a row, if one does. It is computed in lanes that are not
/// active, too.
fn vector_function(def: &IntrinsicDef, scalar: Scalar) -> Option<&'static str> {
    if def.effects != Effects::None || def.params.is_empty() {
        return None;
    }
    let lowering = |scalar| Some(def.cell(Some(scalar), Processor::Host)?.lowering);
    let lowering = match lowering(scalar)? {
        Lowering::ViaF32 => lowering(Scalar::F32)?,
        direct => direct,
    };
    match lowering {
        Lowering::Llvm {
            name,
            overloaded: true,
        } => Some(name),
        Lowering::Llvm { .. }
        | Lowering::Asm { .. }
        | Lowering::Function { .. }
        | Lowering::Ptx(_)
        | Lowering::ViaF32 => None,
    }
}
