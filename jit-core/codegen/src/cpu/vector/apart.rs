//! Elements anywhere for which the processor has no gather and no scatter: read and written lane after lane, without a
//! branch. LLVM makes a branch a lane of its own intrinsics there, so that a struct of some bytes had hundreds of
//! blocks, whose registers took most of the compile's time. Lanes that are off have a place on the stack instead.

use inkwell::values::{BasicValueEnum, PointerValue};

use kiln_ir::LeafType;

use super::Warp;
use super::access::Pattern;
use super::leaf::{Leaf, Leaves};
use crate::llvm::error::BackendError;

/// Gathers and scatters of processors that have them are of elements from so many bytes on.
const GATHERED: u32 = 4;

impl<'ctx> Warp<'_, '_, 'ctx> {
    /// Whether a value with these parts is accessed lane after lane.
    pub(super) fn is_apart(&self, address: Leaf<'ctx>, leaves: &[LeafType]) -> bool {
        let lacks = |leaf: &LeafType| leaf.bytes() < GATHERED || !self.kernel.has_gathers;
        let is_scattered =
            |leaf: &LeafType| matches!(self.pattern(address, leaf.bytes()), Pattern::Scattered);
        leaves.iter().any(lacks) && leaves.iter().all(is_scattered)
    }

    /// Where each lane's value is; a place on the stack for those that are off.
    fn places(
        &self,
        address: Leaf<'ctx>,
        leaves: &[LeafType],
    ) -> Result<Vec<PointerValue<'ctx>>, BackendError> {
        let end = |leaf: &LeafType| leaf.offset + u64::from(leaf.bytes());
        let bytes = leaves.iter().map(end).max().unwrap_or(0);
        let words = self.emit.int(64).array_type(bytes.div_ceil(8) as u32);
        let slot = self.entry.slot(self.emit, words.into())?;
        let own = address.vector(self.emit)?;
        let addresses = self
            .emit
            .select(self.mask()?.into(), own.into(), slot.into())?;
        let place = |lane| {
            let lane = self.emit.i32(lane);
            let at = self.emit.lane(addresses.into_vector_value(), lane)?;
            Ok(at.into_pointer_value())
        };
        (0..self.emit.lanes).map(place).collect()
    }

    /// The value of each active lane at its address, zero in the others.
    pub(super) fn load_apart(
        &self,
        address: Leaf<'ctx>,
        leaves: &[LeafType],
    ) -> Result<Leaves<'ctx>, BackendError> {
        let places = self.places(address, leaves)?;
        let mut value = Leaves::new();
        for &leaf in leaves {
            let scalar = self.emit.leaf_in_memory(leaf);
            let zeros = self.emit.vector_of(scalar).const_zero();
            let mut all = zeros;
            for (lane, &place) in (0..).zip(&places) {
                let at = self.emit.offset_const(place, leaf.offset)?;
                let element = self.emit.load(scalar, at, leaf.bytes(), false)?;
                let lane = self.emit.i32(lane);
                all = self
                    .emit
                    .builder
                    .build_insert_element(all, element, lane, "")?;
            }
            let mask = self.mask()?.into();
            let active = self.emit.select(mask, all.into(), zeros.into())?;
            value.push(self.as_computed(active, leaf)?);
        }
        Ok(value)
    }

    /// Writes the parts of a value at the address of each active lane, in order.
    pub(super) fn store_apart(
        &self,
        address: Leaf<'ctx>,
        parts: &[Leaf<'ctx>],
        leaves: &[LeafType],
    ) -> Result<(), BackendError> {
        let places = self.places(address, leaves)?;
        for (&leaf, &part) in leaves.iter().zip(parts) {
            let part: BasicValueEnum<'ctx> = self.to_memory(part, leaf)?.vector(self.emit)?.into();
            for (lane, &place) in (0..).zip(&places) {
                let at = self.emit.offset_const(place, leaf.offset)?;
                let element = self
                    .emit
                    .lane(part.into_vector_value(), self.emit.i32(lane))?;
                self.emit.store(at, element, leaf.bytes(), false)?;
            }
        }
        Ok(())
    }
}
