//! Addresses in all lanes, and bounds checks.
//!
//! A checked index that grows evenly is checked once for the warp: if lane 0 and the last lane are
//! in bounds, all lanes are, and none has wrapped around. Only if that fails are the first and the
//! last active lane looked at, where rows often have edges, and then the lanes one by one. Which way
//! it went decides later whether the element is read by one wide load.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, IntValue, VectorValue};

use kiln_ir::{Inst, ParamFacts, Type, Value, ValueDef};

use super::Warp;
use super::emit::Built;
use super::leaf::{Affine, AffineForm, Element, Indexed, Leaf, Leaves, Part};
use crate::llvm::bindings::build_freeze;
use crate::llvm::error::BackendError;

/// An index to be checked.
#[derive(Copy, Clone)]
struct Checked<'ctx> {
    inst: Inst,
    index: Leaf<'ctx>,
    signed: bool,
    len: Leaf<'ctx>,
}

/// What a check found of all lanes at once.
#[derive(Copy, Clone)]
struct AtOnce<'ctx> {
    /// Whether all lanes are in bounds.
    all: IntValue<'ctx>,
    /// The index that lane 0 would have, of 64 bits, and whether it gives that of all active lanes,
    /// which are in bounds.
    part: Option<(BasicValueEnum<'ctx>, IntValue<'ctx>)>,
}

impl<'ctx> Warp<'_, '_, 'ctx> {
    fn size_of(&self, ty: Type) -> u64 {
        self.types().layout_of(ty).size
    }

    fn pointee(&self, ptr: Value) -> Type {
        self.types().pointee_of(self.type_of(ptr))
    }

    /// How far apart the elements of private memory lie: elements of all lanes side by side.
    fn spread(&self, ptr: Value) -> u64 {
        if self.kernel.is_spread(ptr) {
            u64::from(self.emit.lanes)
        } else {
            1
        }
    }

    pub(super) fn ptr_offset(&self, ptr: Value, index: Value) -> Result<Leaf<'ctx>, BackendError> {
        let size = self.size_of(self.pointee(ptr)) * self.spread(ptr);
        let signed = self.scalar_of(index).is_signed_int();
        self.element(self.leaf(ptr)?, self.leaf(index)?, signed, size)
    }

    pub(super) fn field_ptr(&self, ptr: Value, field: u32) -> Result<Leaf<'ctx>, BackendError> {
        let offset = self.types().field_offset(self.pointee(ptr), field);
        self.shift(self.leaf(ptr)?, offset * self.spread(ptr))
    }

    /// An address a constant number of bytes further on.
    pub(super) fn shift(&self, ptr: Leaf<'ctx>, bytes: u64) -> Result<Leaf<'ctx>, BackendError> {
        if bytes == 0 {
            return Ok(ptr);
        }
        let step: BasicValueEnum<'ctx> = self.emit.i64(bytes as i64).into();
        let moved = |affine: AffineForm<'ctx>| -> Result<AffineForm<'ctx>, BackendError> {
            let base = self.emit.offset(affine.base, step)?;
            let part = match affine.part {
                Some(part) => Some(Part {
                    base: self.emit.offset(part.base, step)?,
                    ..part
                }),
                None => None,
            };
            Ok(AffineForm {
                base,
                part,
                ..affine
            })
        };
        Ok(match ptr {
            Leaf::Uniform(base) => Leaf::Uniform(self.emit.offset(base, step)?),
            Leaf::Affine { base, stride } => Leaf::Affine {
                base: self.emit.offset(base, step)?,
                stride,
            },
            Leaf::Indexed(indexed) => Leaf::Indexed(Indexed {
                origin: self.emit.offset(indexed.origin, step)?,
                affine: indexed.affine.map(moved).transpose()?,
                ..indexed
            }),
            Leaf::Element { element, affine } => {
                let origin = self.emit.offset(element.origin, step)?;
                Leaf::Element {
                    element: Element { origin, ..element },
                    affine: moved(affine)?,
                }
            }
            Leaf::Vector { lanes, affine } => Leaf::Vector {
                lanes: self.emit.offset(lanes.into(), step)?.into_vector_value(),
                affine: affine.map(moved).transpose()?,
            },
        })
    }

    /// The address `index` elements of `size` bytes after `ptr`.
    pub(super) fn element(
        &self,
        ptr: Leaf<'ctx>,
        index: Leaf<'ctx>,
        signed: bool,
        size: u64,
    ) -> Result<Leaf<'ctx>, BackendError> {
        let wide = self.resize_leaf(index, 64, signed)?;
        let affine = self.affine_element(ptr, wide, size)?;
        match affine {
            Some((base, 0, None)) => return Ok(Leaf::Uniform(base)),
            Some((base, stride, None)) => return Ok(Leaf::Affine { base, stride }),
            _ => {}
        }
        let affine = affine.and_then(|(base, stride, when)| {
            when.map(|when| AffineForm {
                base,
                stride,
                when,
                unwrapped: None,
                readable: false,
                part: None,
            })
        });
        if let (Leaf::Uniform(origin), Leaf::Affine { base, stride }, Some(affine)) =
            (ptr, index, affine)
        {
            let element = Element {
                origin,
                index: base,
                step: stride,
                signed,
                size,
            };
            return Ok(Leaf::Element { element, affine });
        }
        if let (Leaf::Uniform(origin), Leaf::Vector { lanes, .. }) = (ptr, index) {
            return Ok(Leaf::Indexed(Indexed {
                origin,
                index: lanes,
                signed,
                size,
                affine,
            }));
        }
        let index = wide.value(self.emit)?;
        let bytes = self.emit.mul(index, self.emit.int_like(size, index))?;
        let lanes = self.emit.offset(ptr.value(self.emit)?, bytes)?;
        Ok(match lanes {
            BasicValueEnum::VectorValue(lanes) => Leaf::Vector { lanes, affine },
            scalar => Leaf::Uniform(scalar),
        })
    }

    /// The address of an element where array and index are affine: base, stride, and when it is so.
    fn affine_element(
        &self,
        ptr: Leaf<'ctx>,
        wide: Leaf<'ctx>,
        size: u64,
    ) -> Result<Option<Affine<'ctx>>, BackendError> {
        let (Some((a, s, when_a)), Some((b, t, when_b))) = (ptr.affine(), wide.affine()) else {
            return Ok(None);
        };
        let bytes = self.emit.mul(b, self.emit.int_like(size, b))?;
        let base = self.emit.offset(a, bytes)?;
        let stride = s.wrapping_add(t.wrapping_mul(size as i64));
        Ok(Some((base, stride, self.both(when_a, when_b)?)))
    }

    fn both(
        &self,
        a: Option<IntValue<'ctx>>,
        b: Option<IntValue<'ctx>>,
    ) -> Result<Option<IntValue<'ctx>>, BackendError> {
        Ok(match (a, b) {
            (Some(a), Some(b)) => Some(self.emit.and(a.into(), b.into())?.into_int_value()),
            (a, b) => a.or(b),
        })
    }

    pub(super) fn slice_index(
        &mut self,
        inst: Inst,
        slice: Value,
        index: Value,
        checked: bool,
    ) -> Result<Leaf<'ctx>, BackendError> {
        let (elements, _) = self.types().slice_of(self.type_of(slice));
        let [ptr, len] = self.slice(slice)?;
        let size = self.size_of(elements.pointee);
        if !checked && self.is_clamped(index, slice) {
            let address = self.clamped_element((ptr, size), index)?;
            return self.narrowed(address, self.is_short(slice));
        }
        let address = self.checked_element(inst, (ptr, size), index, len, checked)?;
        self.narrowed(address, self.is_short(slice))
    }

    /// Whether a slice is an argument of which a launch says that it has fewer than 2^31 elements.
    fn is_short(&self, slice: Value) -> bool {
        let function = self.function();
        match function.values[slice].def {
            ValueDef::Param(position) => function.params[position as usize].facts.short,
            _ => false,
        }
    }

    /// The address of an element with its index as a signed number of 32 bits, where the array is so short that one in bounds
    /// is no other: gathers take twice as many of these at once.
    fn narrowed(&self, address: Leaf<'ctx>, is_short: bool) -> Result<Leaf<'ctx>, BackendError> {
        match address {
            Leaf::Indexed(indexed)
                if is_short && self.emit.int_bits(indexed.index.into()) >= 32 =>
            {
                let index = self.emit.resize(indexed.index.into(), 32, false)?;
                Ok(Leaf::Indexed(Indexed {
                    index: index.into_vector_value(),
                    signed: true,
                    ..indexed
                }))
            }
            other => Ok(other),
        }
    }

    pub(super) fn element_ptr(
        &mut self,
        inst: Inst,
        ptr: Value,
        index: Value,
        checked: bool,
    ) -> Result<Leaf<'ctx>, BackendError> {
        let (element, len) = self.types().indexed_of(self.pointee(ptr));
        let size = self.size_of(element) * self.spread(ptr);
        let is_short = len < ParamFacts::SHORT;
        let len = Leaf::Uniform(self.emit.i64(len as i64).into());
        let place = (self.leaf(ptr)?, size);
        let address = match !checked && self.is_clamped(index, ptr) {
            true => self.clamped_element(place, index)?,
            false => self.checked_element(inst, place, index, len, checked)?,
        };
        self.narrowed(address, is_short)
    }

    /// A value that is the same number wherever it is used.
    pub(super) fn frozen(&self, index: Leaf<'ctx>) -> Leaf<'ctx> {
        let freeze = |value| build_freeze(&self.emit.builder, value);
        match index {
            Leaf::Uniform(value) => Leaf::Uniform(freeze(value)),
            Leaf::Affine { base, stride } => Leaf::Affine {
                base: freeze(base),
                stride,
            },
            Leaf::Vector { lanes, affine } => Leaf::Vector {
                lanes: freeze(lanes.into()).into_vector_value(),
                affine: affine.map(|affine| AffineForm {
                    base: freeze(affine.base),
                    ..affine
                }),
            },
            Leaf::Indexed(_) | Leaf::Element { .. } => index,
        }
    }

    fn checked_element(
        &mut self,
        inst: Inst,
        (ptr, size): (Leaf<'ctx>, u64),
        index: Value,
        len: Leaf<'ctx>,
        checked: bool,
    ) -> Result<Leaf<'ctx>, BackendError> {
        let signed = self.scalar_of(index).is_signed_int();
        let may_race = self.kernel.provenance.may_race(index);
        let mut index = self.leaf(index)?;
        if !checked {
            return self.element(ptr, index, signed, size);
        }
        if may_race {
            index = self.frozen(index);
        }
        let checked = self.check(Checked {
            inst,
            index,
            signed,
            len,
        })?;
        let address = self.element(ptr, index, signed, size)?;
        let (Some(checked), Leaf::Uniform(origin)) = (checked, ptr) else {
            return Ok(address);
        };
        let part = match checked.part {
            Some((index, when)) => {
                let bytes = self.emit.mul(index, self.emit.int_like(size, index))?;
                let base = self.emit.offset(origin, bytes)?;
                Some(Part { base, when })
            }
            None => None,
        };
        // All lanes are known to be in bounds, so none has wrapped around.
        let affine = |affine: AffineForm<'ctx>| AffineForm {
            when: checked.all,
            readable: true,
            part,
            ..affine
        };
        Ok(match address {
            Leaf::Element { element, affine: e } => Leaf::Element {
                element,
                affine: affine(e),
            },
            Leaf::Indexed(indexed) => Leaf::Indexed(Indexed {
                affine: indexed.affine.map(affine),
                ..indexed
            }),
            Leaf::Vector { lanes, affine: e } => Leaf::Vector {
                lanes,
                affine: e.map(affine),
            },
            other => other,
        })
    }

    /// Ends the lanes whose index is out of bounds. For an affine index: what was found of all lanes
    /// at once.
    fn check(&mut self, check: Checked<'ctx>) -> Result<Option<AtOnce<'ctx>>, BackendError> {
        match (check.index, check.len, check.index.affine()) {
            (Leaf::Uniform(index), Leaf::Uniform(len), _) => {
                self.check_uniform(check, index, len)?;
                Ok(None)
            }
            (_, Leaf::Uniform(len), Some(index)) => self.check_even(check, index, len).map(Some),
            _ => {
                self.check_lanes(check)?;
                Ok(None)
            }
        }
    }

    fn check_uniform(
        &mut self,
        check: Checked<'ctx>,
        index: BasicValueEnum<'ctx>,
        len: BasicValueEnum<'ctx>,
    ) -> Result<(), BackendError> {
        let index = self.emit.resize(index, 64, check.signed)?;
        let len = self.emit.resize(len, 64, false)?;
        let in_bounds = self
            .emit
            .icmp(IntPredicate::ULT, index, len)?
            .into_int_value();
        self.check_uniform_condition(check.inst, in_bounds, [index, len])
    }

    /// Ends all active lanes unless a condition holds, by a fault with an index and a length.
    fn check_uniform_condition(
        &mut self,
        inst: Inst,
        holds: IntValue<'ctx>,
        [index, len]: [BasicValueEnum<'ctx>; 2],
    ) -> Result<(), BackendError> {
        if holds.get_zero_extended_constant() == Some(1) {
            return Ok(());
        }
        let next = self.block("in_bounds");
        let fault = self.block("out_of_bounds");
        self.likely(holds, next, fault)?;
        self.emit.builder.position_at_end(fault);
        let mask = self.mask()?;
        self.report(inst, mask, index, len)?;
        self.leave_all(mask)?;
        self.emit.builder.position_at_end(next);
        Ok(())
    }

    fn check_even(
        &mut self,
        check: Checked<'ctx>,
        (base, stride, when): (BasicValueEnum<'ctx>, i64, Option<IntValue<'ctx>>),
        len: BasicValueEnum<'ctx>,
    ) -> Result<AtOnce<'ctx>, BackendError> {
        let limit = self.limit_of(base, check.signed, len)?;
        let reach = stride.saturating_mul(i64::from(self.emit.lanes) - 1);
        let first = self.emit.resize(base, 64, check.signed)?;
        let reach = self.emit.i64(reach).into();
        let inside = self.reaches_within(first, reach, limit)?;
        let inside = self.both(Some(inside), when)?.unwrap_or(inside);
        let next = self.block("in_bounds");
        let slow = self.block("not_at_once");
        let before = self.current_block()?;
        self.likely(inside, next, slow)?;
        self.emit.builder.position_at_end(slow);
        let part = if stride == 1 && self.rows_have_edges() {
            Some(self.check_active(check, (base, when), limit, next)?)
        } else {
            None
        };
        self.check_lanes(check)?;
        let after = self.current_block()?;
        self.emit.builder.build_unconditional_branch(next)?;
        self.emit.builder.position_at_end(next);
        let flag = self.emit.int(1);
        let (yes, no) = (flag.const_all_ones(), flag.const_zero());
        let all = self.emit.builder.build_phi(self.emit.int(1), "all_in")?;
        all.add_incoming(&[(&yes, before), (&no, after)]);
        let Some((start, active)) = part else {
            let all = all.as_basic_value().into_int_value();
            return Ok(AtOnce { all, part: None });
        };
        all.add_incoming(&[(&no, active)]);
        let nowhere = self.emit.i64(0);
        let index = self.emit.builder.build_phi(self.emit.int(64), "start")?;
        index.add_incoming(&[(&nowhere, before), (&nowhere, after), (&start, active)]);
        let found = self.emit.builder.build_phi(self.emit.int(1), "active_in")?;
        found.add_incoming(&[(&no, before), (&no, after), (&yes, active)]);
        Ok(AtOnce {
            all: all.as_basic_value().into_int_value(),
            part: Some((
                index.as_basic_value(),
                found.as_basic_value().into_int_value(),
            )),
        })
    }

    /// Whether looking at the row that active lanes access pays where not all lanes are in bounds.
    /// It does where a block comes by often, as in a loop or at the edge of a tile in shared memory; at
    /// the end of an array it would be code that is run once.
    fn rows_have_edges(&self) -> bool {
        let often = !self.loops.is_empty() || self.kernel.segments.segments.len() > 1;
        often && self.levels.len() > 1
    }

    /// Goes to `next` if all active lanes are in bounds and none has wrapped around, from the block it
    /// gives; with the index that lane 0 would have.
    fn check_active(
        &mut self,
        check: Checked<'ctx>,
        (base, when): (BasicValueEnum<'ctx>, Option<IntValue<'ctx>>),
        limit: BasicValueEnum<'ctx>,
        next: BasicBlock<'ctx>,
    ) -> Result<(BasicValueEnum<'ctx>, BasicBlock<'ctx>), BackendError> {
        let mask: BasicValueEnum<'ctx> = self.emit.mask_as_word(self.mask()?)?.into();
        let ends = |name| {
            let no_poison = self.emit.int(1).const_zero().into();
            let count = self
                .emit
                .value(name, &[mask.get_type()], &[mask, no_poison])?;
            self.emit.resize(count, 64, false)
        };
        let first_lane = ends("llvm.cttz")?;
        let last = u64::from(self.emit.mask_word()?.get_bit_width() - 1);
        let last_lane = self
            .emit
            .sub(self.emit.i64(last as i64).into(), ends("llvm.ctlz")?)?;
        // As the lane computes it, modulo the width of the index.
        let lane = self
            .emit
            .resize(first_lane, self.emit.int_bits(base), false)?;
        let first = self
            .emit
            .resize(self.emit.add(base, lane)?, 64, check.signed)?;
        let reach = self.emit.sub(last_lane, first_lane)?;
        let inside = self.reaches_within(first, reach, limit)?;
        let inside = self.both(Some(inside), when)?.unwrap_or(inside);
        let start = self.emit.sub(first, first_lane)?;
        let lanes = self.block("lane_by_lane");
        let from = self.current_block()?;
        self.emit
            .builder
            .build_conditional_branch(inside, next, lanes)?;
        self.emit.builder.position_at_end(lanes);
        Ok((start, from))
    }

    /// The first index out of bounds, of 64 bits: the length, or where the index would wrap around.
    fn limit_of(
        &self,
        index: BasicValueEnum<'ctx>,
        signed: bool,
        len: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let bits = self.emit.int_bits(index);
        let limit = self.emit.resize(len, 64, false)?;
        if bits >= 64 {
            return Ok(limit);
        }
        let cap = 1u64 << (bits - u32::from(signed));
        let cap = self.emit.int(64).const_int(cap, false).into();
        self.emit
            .value("llvm.umin", &[limit.get_type()], &[limit, cap])
    }

    /// Whether `first` and what lies `reach` behind it are less than the limit.
    fn reaches_within(
        &self,
        first: BasicValueEnum<'ctx>,
        reach: BasicValueEnum<'ctx>,
        limit: BasicValueEnum<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let last = self.emit.add(first, reach)?;
        let first_in = self.emit.icmp(IntPredicate::ULT, first, limit)?;
        let last_in = self.emit.icmp(IntPredicate::ULT, last, limit)?;
        Ok(self.emit.and(first_in, last_in)?.into_int_value())
    }

    fn check_lanes(&mut self, check: Checked<'ctx>) -> Result<(), BackendError> {
        let lanes = check.index.vector(self.emit)?.into();
        let len = check.len.value(self.emit)?;
        // Unsigned numbers are compared as they are, if the length fits their width.
        let bits = self.emit.int_bits(lanes);
        let fits = match len {
            BasicValueEnum::IntValue(len) => len
                .get_zero_extended_constant()
                .is_some_and(|n| bits == 32 && n < 1 << 32),
            _ => false,
        };
        let same = !check.signed && (fits || bits == self.emit.int_bits(len));
        let width = if same { bits } else { 64 };
        let index = self.emit.resize(lanes, width, check.signed)?;
        let len = self.emit.resize(len, width, false)?;
        let out = self.emit.icmp(IntPredicate::UGE, index, len)?;
        self.end_where(check.inst, out, [index, len])
    }

    /// Ends the active lanes for which something is so, by a fault with an index and a length.
    fn end_where(
        &mut self,
        inst: Inst,
        so: BasicValueEnum<'ctx>,
        [index, len]: [BasicValueEnum<'ctx>; 2],
    ) -> Result<(), BackendError> {
        let mask = self.mask()?;
        let bad = self.emit.and(so, mask.into())?.into_vector_value();
        let any = self.emit.any(bad)?;
        let next = self.block("checked");
        let fault = self.block("out_of_bounds");
        let fine = self.emit.not(any.into())?.into_int_value();
        self.likely(fine, next, fault)?;
        self.emit.builder.position_at_end(fault);
        self.report(inst, bad, index, len)?;
        self.end_lanes(bad)?;
        self.continue_if_any(next)?;
        self.emit.builder.position_at_end(next);
        Ok(())
    }

    /// Ends the lanes for which a condition does not hold, and leaves two values of the first of them in the record.
    pub(super) fn assert(
        &mut self,
        inst: Inst,
        cond: Value,
        values: Option<[Value; 2]>,
    ) -> Result<(), BackendError> {
        let none = self.emit.i64(0).into();
        let values = match values {
            None => [none, none],
            Some([left, right]) => [self.told(left)?, self.told(right)?],
        };
        let cond = match self.leaf(cond)? {
            Leaf::Uniform(cond) => {
                return self.check_uniform_condition(inst, cond.into_int_value(), values);
            }
            cond => cond.vector(self.emit)?,
        };
        let fails = self.emit.not(cond.into())?;
        self.end_where(inst, fails, values)
    }

    /// A number or a bool, as integers of its bits, for a fault record.
    fn told(&self, value: Value) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let scalar = self.scalar_of(value);
        let leaf = self.leaf(value)?;
        match scalar.is_float() && !scalar.is_half() {
            true => self.bits(leaf.value(self.emit)?, scalar.bits()),
            false => leaf.value(self.emit),
        }
    }

    /// Leaves a fault record for the first lane of `lanes`.
    fn report(
        &self,
        inst: Inst,
        lanes: VectorValue<'ctx>,
        index: BasicValueEnum<'ctx>,
        len: BasicValueEnum<'ctx>,
    ) -> Result<(), BackendError> {
        let bits: BasicValueEnum<'ctx> = self.emit.mask_as_word(lanes)?.into();
        let no_poison: BasicValueEnum<'ctx> = self.emit.int(1).const_zero().into();
        let lane = self
            .emit
            .value("llvm.cttz", &[bits.get_type()], &[bits, no_poison])?;
        let lane = self.emit.resize(lane, 32, false)?.into_int_value();
        let pick = |value: BasicValueEnum<'ctx>| match value {
            BasicValueEnum::VectorValue(v) => self.emit.lane(v, lane),
            scalar => Ok(scalar),
        };
        let word = |value: BasicValueEnum<'ctx>| self.emit.resize(value, 64, false);
        let thread = self.emit.add(self.first_thread.into(), lane.into())?;
        let site = self.kernel.site(inst);
        self.kernel.call_fault(
            self.emit,
            self.entry,
            [
                self.emit.i32(site).into(),
                word(pick(index)?)?,
                word(pick(len)?)?,
                thread,
            ],
        )
    }

    pub(super) fn slice_new(
        &self,
        ptr: Value,
        len: Value,
        result: Type,
    ) -> Result<Leaves<'ctx>, BackendError> {
        let (_, wide) = self.types().slice_of(result);
        let len = self.resize_leaf(self.leaf(len)?, if wide { 64 } else { 32 }, false)?;
        Ok(Leaves::from_slice(&[self.leaf(ptr)?, len]))
    }

    pub(super) fn slice_len(&self, slice: Value, result: Type) -> Result<Leaf<'ctx>, BackendError> {
        let [_, len] = self.slice(slice)?;
        self.resize_leaf(len, self.types().scalar_of(result).bits(), false)
    }

    /// All dynamic shared memory, which lies behind everything else in the arena.
    pub(super) fn dynamic_shared(&self, result: Type) -> Result<Leaves<'ctx>, BackendError> {
        let (elements, wide) = self.types().slice_of(result);
        let size = self.size_of(elements.pointee).max(1);
        let bytes = self.entry.dynamic_bytes;
        let len =
            self.emit
                .builder
                .build_int_unsigned_div(bytes, self.emit.i32(size as u32), "")?;
        let len = self
            .emit
            .resize(len.into(), if wide { 64 } else { 32 }, false)?;
        let ptr = self
            .emit
            .offset_const(self.entry.arena, self.kernel.arena.dynamic)?;
        Ok(Leaves::from_slice(&[
            Leaf::Uniform(ptr.into()),
            Leaf::Uniform(len),
        ]))
    }
}
