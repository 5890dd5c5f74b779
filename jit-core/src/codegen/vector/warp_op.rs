//! Warp operations: shuffles, votes, matches, reductions.
//!
//! The common ones are vector instructions. Every other row is computed by its meaning, for the 32
//! lanes at once. A plan with warp operations has 32 lanes.

use std::mem::offset_of;

use inkwell::values::{BasicValueEnum, InstructionOpcode, IntValue};

use super::Warp;
use super::bug::Bug;
use super::emit::unexpected;
use super::leaf::{Leaf, Wide, scalar_type};
use crate::codegen::error::BackendError;
use crate::host_abi::HostLaunch;
use crate::ir::{IntrinsicDef, Scalar, Type, Uniformity, Value, WARP_LANES};

impl<'ctx> Warp<'_, '_, 'ctx> {
    /// A warp operation by its name, if there is code for it.
    pub(super) fn warp_function(
        &mut self,
        name: &str,
        args: &[Value],
    ) -> Result<Option<Leaf<'ctx>>, BackendError> {
        let Some(name) = name.strip_prefix("warp.") else {
            return Ok(None);
        };
        Ok(match (name, args) {
            ("lane_id", []) => Some(Leaf::Affine {
                base: self.emit.i32(0).into(),
                stride: 1,
            }),
            ("warp_id", []) => Some(Leaf::Uniform(self.warp.into())),
            ("lanemask_eq", []) => Some(self.lane_masks(|lane| 1 << lane)),
            ("lanemask_lt", []) => Some(self.lane_masks(|lane| (1 << lane) - 1)),
            ("lanemask_le", []) => Some(self.lane_masks(|lane| (1 << lane) | ((1 << lane) - 1))),
            ("lanemask_gt", []) => Some(self.lane_masks(|lane| !((1 << lane) | ((1 << lane) - 1)))),
            ("lanemask_ge", []) => Some(self.lane_masks(|lane| !((1 << lane) - 1))),
            ("active_mask", []) => Some(Leaf::Uniform(self.lanes_here()?.into())),
            ("ballot", [_, vote]) => Some(Leaf::Uniform(self.votes(*vote)?.into())),
            ("any", [_, vote]) => {
                let votes = self.votes(*vote)?.into();
                let none = self.emit.i32(0).into();
                let any = self.emit.icmp(inkwell::IntPredicate::NE, votes, none)?;
                Some(Leaf::Uniform(any))
            }
            ("all", [_, vote]) => {
                let votes = self.votes(*vote)?.into();
                let all = self.lanes_here()?.into();
                let equal = self.emit.icmp(inkwell::IntPredicate::EQ, votes, all)?;
                Some(Leaf::Uniform(equal))
            }
            // Lanes of a warp go in step.
            _ => None,
        })
    }

    fn lane_masks(&self, mask: impl Fn(u32) -> u32) -> Leaf<'ctx> {
        let lanes = self
            .emit
            .const_lanes(self.emit.int(32), |lane| mask(lane).into());
        Leaf::Vector { lanes, even: None }
    }

    /// The active lanes as a number. They are those that execute this together.
    fn lanes_here(&self) -> Result<IntValue<'ctx>, BackendError> {
        let mask = match self.bug(Bug::LanesOfOuterLevel) {
            true => self.outer_mask()?,
            false => self.mask()?,
        };
        let bits = self.emit.mask_bits(mask)?;
        Ok(self.emit.resize(bits.into(), 32, false)?.into_int_value())
    }

    /// The active lanes that vote yes.
    fn votes(&self, vote: Value) -> Result<IntValue<'ctx>, BackendError> {
        let vote = self.leaf(vote)?.vector(self.emit)?;
        let yes = match self.bug(Bug::VotesOfAll) {
            true => vote.into(),
            false => self.emit.and(vote.into(), self.mask()?.into())?,
        };
        let bits = self.emit.mask_bits(yes.into_vector_value())?;
        Ok(self.emit.resize(bits.into(), 32, false)?.into_int_value())
    }

    /// Calls the row's meaning for all lanes.
    pub(super) fn warp_meaning(
        &mut self,
        def: &'static IntrinsicDef,
        scalar: Scalar,
        args: &[Value],
        result: Type,
    ) -> Result<Option<Wide<'ctx>>, BackendError> {
        if self.emit.lanes as usize != WARP_LANES {
            return Err(unexpected("a warp operation in a warp of another size"));
        }
        let word = self.emit.int(64);
        let words = word.vec_type(self.emit.lanes);
        let bytes = 8 * WARP_LANES as u64;
        let list = words.array_type(args.len().max(1) as u32);
        let slots = self.entry.slot(self.emit, list.into())?;
        for (i, &arg) in args.iter().enumerate() {
            let lanes = self.lane_words(arg)?;
            let at = self.emit.offset_const(slots, i as u64 * bytes)?;
            self.emit.store(at, lanes, 8, false)?;
        }
        self.call_warp_meaning(def, scalar, args.len(), slots.into())?;
        let Some(to) = result.as_scalar() else {
            return Ok(None);
        };
        let lanes = self.emit.load(words.into(), slots, 8, false)?;
        let leaf = self.as_lanes(lanes, to)?;
        if def.uniformity == Uniformity::Warp {
            let first = self.first_lane()?;
            let value = self.emit.lane(leaf.vector(self.emit)?, first)?;
            return Ok(Some(Wide::from_elem(Leaf::Uniform(value), 1)));
        }
        Ok(Some(Wide::from_elem(leaf, 1)))
    }

    fn first_lane(&self) -> Result<IntValue<'ctx>, BackendError> {
        let bits: BasicValueEnum<'ctx> = self.lanes_here()?.into();
        let no_poison = self.emit.int(1).const_zero().into();
        let lane = self
            .emit
            .value("llvm.cttz", &[bits.get_type()], &[bits, no_poison])?;
        Ok(lane.into_int_value())
    }

    /// An argument as 64-bit words.
    fn lane_words(&self, arg: Value) -> super::emit::Built<'ctx> {
        let scalar = self.scalar_of(arg)?;
        let lanes: BasicValueEnum<'ctx> = self.leaf(arg)?.vector(self.emit)?.into();
        let bits = match scalar {
            Scalar::F32 | Scalar::F64 => {
                let int = self.emit.int(scalar.bits()).into();
                self.emit.cast(InstructionOpcode::BitCast, lanes, int)?
            }
            _ => lanes,
        };
        self.emit.resize(bits, 64, false)
    }

    fn as_lanes(
        &self,
        lanes: BasicValueEnum<'ctx>,
        to: Scalar,
    ) -> Result<Leaf<'ctx>, BackendError> {
        let bits = self.emit.resize(lanes, to.bits(), false)?;
        Ok(Leaf::from(match to {
            Scalar::F32 | Scalar::F64 => {
                let ty = scalar_type(self.emit, to);
                self.emit.cast(InstructionOpcode::BitCast, bits, ty)?
            }
            _ => bits,
        }))
    }

    fn call_warp_meaning(
        &self,
        def: &'static IntrinsicDef,
        scalar: Scalar,
        count: usize,
        slots: BasicValueEnum<'ctx>,
    ) -> Result<(), BackendError> {
        let ptr = self.entry.launch.get_type();
        let at = self.emit.offset_const(
            self.entry.launch,
            offset_of!(HostLaunch, warp_meaning) as u64,
        )?;
        let function = self.emit.load(ptr.into(), at, 8, false)?;
        let int = self.emit.int(32);
        let params = [ptr.into(), int.into(), int.into(), ptr.into(), int.into()];
        let ty = self.emit.context.void_type().fn_type(&params, false);
        let args = [
            self.row_address(def)?.into(),
            self.emit.i32(scalar as u32).into(),
            self.lanes_here()?.into(),
            slots.into(),
            self.emit.i32(count as u32).into(),
        ];
        self.emit
            .builder
            .build_indirect_call(ty, function.into_pointer_value(), &args, "")?;
        Ok(())
    }
}
