//! Warp operations: who takes part, masks of lanes and votes; and every other row by its meaning.
//!
//! Lanes of a warp go in step: those that are active at an operation execute it together, less the
//! lanes whose member masks differ. Where the member mask is the same in all lanes nothing has to be
//! done about it, as it names the active lanes. Where it is not (`match_any` gives such masks) each
//! lane counts the active lanes of its own, and what needs more than that is done mask by mask.
//!
//! Shuffles, matches and reductions are in `warp_shuffle` and `warp_group`. A row without code here is
//! computed by its meaning, for the 32 lanes at once. A plan with warp operations has 32 lanes.

use std::mem::offset_of;

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, VectorValue};

use kiln_ir::host_abi::HostLaunch;
use kiln_ir::{
    CompareOp, IntrinsicDef, Known, Match, Scalar, Type, Uniformity, Value, Vote, WARP_LANES,
};

use super::Warp;
use super::emit::{Built, unexpected};
use super::leaf::Leaf;
use crate::llvm::error::BackendError;

impl<'ctx> Warp<'_, '_, 'ctx> {
    /// An operation of a warp for lanes of any member masks, if there is code for it.
    pub(super) fn warp_function(
        &mut self,
        def: &IntrinsicDef,
        args: &[Value],
    ) -> Result<Option<Leaf<'ctx>>, BackendError> {
        let Some(known) = def.known else {
            return Ok(None);
        };
        Ok(match (known, args) {
            (Known::LaneId, []) => Some(Leaf::Affine {
                base: self.emit.i32(0).into(),
                stride: 1,
            }),
            (Known::WarpId, []) => Some(Leaf::Uniform(self.warp_of_block()?)),
            (Known::LaneMask(op), []) => Some(self.lane_masks(op)),
            (Known::ActiveMask, []) => Some(Leaf::Uniform(self.lanes_here()?.into())),
            (Known::Vote(vote), &[mask, value]) => Some(Leaf::from(self.vote(vote, mask, value)?)),
            (Known::Match(Match::Any), &[mask, value]) => Some(self.match_any(mask, value)?),
            (Known::Shuffle(kind), &[mask, value, source, width]) => {
                Some(self.shuffle(def, kind, [mask, value, source, width])?)
            }
            _ => None,
        })
    }

    /// For each lane, those whose numbers compare so to its own.
    fn lane_masks(&self, op: CompareOp) -> Leaf<'ctx> {
        let mask = |lane: u32| -> u32 {
            let (own, below) = (1 << lane, (1 << lane) - 1);
            match op {
                CompareOp::Eq => own,
                CompareOp::Ne => !own,
                CompareOp::Lt => below,
                CompareOp::Le => own | below,
                CompareOp::Gt => !(own | below),
                CompareOp::Ge => !below,
            }
        };
        let lanes = self
            .emit
            .const_lanes(self.emit.int(32), |lane| mask(lane).into());
        Leaf::Vector {
            lanes,
            affine: None,
        }
    }

    /// The active lanes as a number. They are those that execute this together.
    pub(super) fn lanes_here(&self) -> Result<IntValue<'ctx>, BackendError> {
        self.number(self.mask()?)
    }

    /// A mask as a number.
    pub(super) fn number(&self, mask: VectorValue<'ctx>) -> Result<IntValue<'ctx>, BackendError> {
        let bits = self.emit.mask_bits(mask)?;
        Ok(self.emit.resize(bits.into(), 32, false)?.into_int_value())
    }

    /// The lanes that execute an operation with each lane, as a number; one for each lane if they have
    /// member masks of their own.
    pub(super) fn members(&self, mask: Value) -> Built<'ctx> {
        self.among_members(self.lanes_here()?, mask)
    }

    /// Of active lanes, given as a number, those that execute an operation with each lane.
    pub(super) fn among_members(&self, lanes: IntValue<'ctx>, mask: Value) -> Built<'ctx> {
        match self.leaf(mask)? {
            Leaf::Uniform(_) => Ok(lanes.into()),
            masks => self.emit.and(lanes.into(), masks.vector(self.emit)?.into()),
        }
    }

    fn vote(&self, vote: Vote, mask: Value, value: Value) -> Built<'ctx> {
        let yes = self.among_members(self.votes(value)?, mask)?;
        let none = self.emit.int_like(0, yes);
        match vote {
            Vote::Any => self.emit.icmp(IntPredicate::NE, yes, none),
            Vote::All => self.emit.icmp(IntPredicate::EQ, yes, self.members(mask)?),
            Vote::Uniform => {
                let all = self.emit.icmp(IntPredicate::EQ, yes, self.members(mask)?)?;
                let none = self.emit.icmp(IntPredicate::EQ, yes, none)?;
                self.emit.or(all, none)
            }
            Vote::Ballot => Ok(yes),
        }
    }

    /// The active lanes that vote yes.
    fn votes(&self, vote: Value) -> Result<IntValue<'ctx>, BackendError> {
        let vote = self.leaf(vote)?.vector(self.emit)?;
        let yes = self.emit.and(vote.into(), self.mask()?.into())?;
        self.number(yes.into_vector_value())
    }

    /// A warp operation for which lanes of one member mask have to be by themselves.
    pub(super) fn warp_operation(
        &mut self,
        def: &'static IntrinsicDef,
        scalar: Scalar,
        args: &[Value],
        result: Type,
    ) -> Result<Option<Leaf<'ctx>>, BackendError> {
        if def.known == Some(Known::WarpSync) {
            // The lanes are here, and what they wrote before comes before what follows.
            return Ok(None);
        }
        let masks = match args {
            [] => None,
            [mask, ..] => Some(self.leaf(*mask)?),
        };
        match masks {
            None | Some(Leaf::Uniform(_)) => self.together(def, scalar, args, result),
            Some(masks) => {
                let masks = masks.vector(self.emit)?;
                self.each_group(masks, result, |warp| {
                    warp.together(def, scalar, args, result)
                })
            }
        }
    }

    /// An operation that all active lanes execute with one member mask.
    fn together(
        &mut self,
        def: &'static IntrinsicDef,
        scalar: Scalar,
        args: &[Value],
        result: Type,
    ) -> Result<Option<Leaf<'ctx>>, BackendError> {
        let combined = match (def.known, args) {
            (Some(Known::Match(Match::All)), &[_, value]) => Some(self.match_all(value)?),
            (Some(Known::Reduce(how)), &[_, value]) => self.reduce(how, scalar, value)?,
            _ => None,
        };
        if combined.is_some() {
            return Ok(combined);
        }
        self.warp_meaning(def, scalar, args, result)
    }

    /// Calls the row's meaning for all lanes.
    fn warp_meaning(
        &mut self,
        def: &'static IntrinsicDef,
        scalar: Scalar,
        args: &[Value],
        result: Type,
    ) -> Result<Option<Leaf<'ctx>>, BackendError> {
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
            return Ok(Some(Leaf::Uniform(value)));
        }
        Ok(Some(leaf))
    }

    /// The lowest active lane.
    pub(super) fn first_lane(&self) -> Result<IntValue<'ctx>, BackendError> {
        self.emit.lowest_bit(self.lanes_here()?)
    }

    /// An argument as 64-bit words.
    fn lane_words(&self, arg: Value) -> Built<'ctx> {
        let bits = self.lane_bits(arg)?;
        self.emit.resize(bits.into(), 64, false)
    }

    fn as_lanes(
        &self,
        lanes: BasicValueEnum<'ctx>,
        to: Scalar,
    ) -> Result<Leaf<'ctx>, BackendError> {
        Ok(Leaf::from(self.emit.of_bits(lanes, to)?))
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
