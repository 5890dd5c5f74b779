//! Conversions in all lanes, and the 16-bit floats in terms of `f32`.
//!
//! `f16` goes through the processor's own conversion if it has one (F16C), else through integer
//! arithmetic; `bf16` is the upper half of an `f32`. What has more digits than an `f32` is rounded
//! to odd on the way, so that it is rounded once (Boldo and Melquiond, "Emulation of FMA and
//! correctly rounded sums", 2008).

use std::cmp::Ordering;

use inkwell::values::{BasicValueEnum, InstructionOpcode};
use inkwell::{FloatPredicate, IntPredicate};

use kiln_ir::legal::Proved as _;
use kiln_ir::{Half, LeafType, Scalar, Type, Value};

use super::Warp;
use super::emit::{Built, unexpected};
use super::leaf::{AffineForm, Leaf, Leaves, scalar_type};
use crate::llvm::error::BackendError;

impl<'ctx> Warp<'_, '_, 'ctx> {
    pub(super) fn cast(&self, arg: Value, result: Type) -> Result<Leaf<'ctx>, BackendError> {
        let from = self.scalar_of(arg);
        let to = self.types().scalar_of(result);
        let leaf = self.leaf(arg)?;
        if from == to {
            return Ok(leaf);
        }
        if from.is_int() && to.is_int() {
            return self.resize_leaf(leaf, to.bits(), from.is_signed_int());
        }
        let value = leaf.value(self.emit)?;
        Ok(Leaf::from(match (from.is_float(), to.is_float()) {
            (false, false) => self.emit.resize(value, to.bits(), false)?,
            (false, true) => self.int_to_float(value, from, to)?,
            (true, false) => self.float_to_int(value, from, to)?,
            (true, true) => self.float_to_float(value, from, to)?,
        }))
    }

    /// An integer in another width. Widening keeps the affine form while no lane wraps around.
    pub(super) fn resize_leaf(
        &self,
        leaf: Leaf<'ctx>,
        bits: u32,
        signed: bool,
    ) -> Result<Leaf<'ctx>, BackendError> {
        match leaf {
            Leaf::Uniform(value) => Ok(Leaf::Uniform(self.emit.resize(value, bits, signed)?)),
            Leaf::Affine { base, stride } if self.emit.int_bits(base) >= bits => Ok(Leaf::Affine {
                base: self.emit.resize(base, bits, signed)?,
                stride,
            }),
            Leaf::Affine { base, stride } => {
                let lanes = leaf.vector(self.emit)?;
                let lanes = self
                    .emit
                    .resize(lanes.into(), bits, signed)?
                    .into_vector_value();
                let narrow = self.emit.int_bits(base);
                let wide = self.emit.resize(base, 64, signed)?;
                let when = self.stays_in_range(wide, stride, narrow, signed)?;
                let affine = AffineForm {
                    base: self.emit.resize(base, bits, signed)?,
                    stride,
                    when: when.into_int_value(),
                    unwrapped: Some(signed),
                    readable: false,
                    part: None,
                };
                Ok(Leaf::Vector {
                    lanes,
                    affine: Some(affine),
                })
            }
            Leaf::Element { .. } | Leaf::Indexed(_) => Err(unexpected("an address as a number")),
            Leaf::Vector { lanes, affine } => {
                let affine = match affine {
                    Some(form) => Some(self.resize_form(form, bits, signed)?),
                    None => None,
                };
                let lanes = self
                    .emit
                    .resize(lanes.into(), bits, signed)?
                    .into_vector_value();
                Ok(Leaf::Vector { lanes, affine })
            }
        }
    }

    /// What is known of a vector of integers, in another width.
    fn resize_form(
        &self,
        form: AffineForm<'ctx>,
        bits: u32,
        signed: bool,
    ) -> Result<AffineForm<'ctx>, BackendError> {
        let before = self.emit.int_bits(form.base);
        let widens = bits > before;
        let when = if widens && form.unwrapped != Some(signed) {
            let wide = self.emit.resize(form.base, 64, signed)?;
            let stays = self.stays_in_range(wide, form.stride, before, signed)?;
            self.emit.and(form.when.into(), stays)?.into_int_value()
        } else {
            form.when
        };
        Ok(AffineForm {
            base: self.emit.resize(form.base, bits, signed)?,
            stride: form.stride,
            when,
            unwrapped: widens.then_some(signed),
            readable: false,
            part: None,
        })
    }

    /// Whether the last lane of an integer of `bits` bits, extended to 64 bits, is where the affine
    /// form says, and with it all lanes between.
    fn stays_in_range(
        &self,
        base: BasicValueEnum<'ctx>,
        stride: i64,
        bits: u32,
        signed: bool,
    ) -> Built<'ctx> {
        let reach = stride.saturating_mul(i64::from(self.emit.lanes) - 1);
        let last = self.emit.add(base, self.emit.i64(reach).into())?;
        // From 32 bits or less nothing overflows in 64; larger strides are not affine.
        let (low, high) = match (signed, bits) {
            (true, _) => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
            (false, _) => (0, (1i64 << bits) - 1),
        };
        let above = self
            .emit
            .icmp(IntPredicate::SGE, last, self.emit.i64(low).into())?;
        let below = self
            .emit
            .icmp(IntPredicate::SLE, last, self.emit.i64(high).into())?;
        self.emit.and(above, below)
    }

    fn int_to_float(&self, value: BasicValueEnum<'ctx>, from: Scalar, to: Scalar) -> Built<'ctx> {
        let opcode = if from.is_signed_int() {
            InstructionOpcode::SIToFP
        } else {
            InstructionOpcode::UIToFP
        };
        if !to.is_half() {
            return self.emit.cast(opcode, value, scalar_type(self.emit, to));
        }
        // 32 bits are exact in f64; 64 bits are rounded to odd on their way.
        let double = scalar_type(self.emit, Scalar::F64);
        let mut wide = self.emit.cast(opcode, value, double)?;
        if from.bits() == 64 {
            let back = self.float_to_int(wide, Scalar::F64, from)?;
            let size = |v| self.magnitude(v, from.is_signed_int());
            let lost = self.emit.icmp(IntPredicate::NE, back, value)?;
            let grown = self
                .emit
                .icmp(IntPredicate::UGT, size(back)?, size(value)?)?;
            wide = self.to_odd(wide, 64, lost, grown)?;
        }
        let single = self.double_to_odd_single(wide)?;
        let rounded = self.round_to_half(to, single)?;
        match to.as_half() == Some(Half::F16) && from.bits() > 16 {
            true => self.beyond_f16(single, rounded),
            false => Ok(rounded),
        }
    }

    /// The bits of an `f16`, once more said to be infinite beyond its range: LLVM takes an integer of few digits for one that
    /// converts exactly, as for GPUs (`codegen/gpu/lower/cast.rs`).
    fn beyond_f16(
        &self,
        single: BasicValueEnum<'ctx>,
        rounded: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let ends = [
            (FloatPredicate::OGE, 65520.0, 0x7c00),
            (FloatPredicate::OLE, -65520.0, 0xfc00),
        ];
        ends.into_iter()
            .try_fold(rounded, |bits, (predicate, end, infinite)| {
                let end = self.emit.context.f32_type().const_float(end);
                let is_beyond = self.emit.fcmp(predicate, single, end.into())?;
                self.emit
                    .select(is_beyond, self.emit.int_like(infinite, bits), bits)
            })
    }

    fn magnitude(&self, value: BasicValueEnum<'ctx>, signed: bool) -> Built<'ctx> {
        if !signed {
            return Ok(value);
        }
        let no_poison = self.emit.int(1).const_zero().into();
        self.emit
            .value("llvm.abs", &[value.get_type()], &[value, no_poison])
    }

    /// A float rounded to nearest, as if it had been rounded to odd: towards zero, with the last
    /// digit set if anything was `lost`; `grown` says that rounding went away from zero.
    fn to_odd(
        &self,
        value: BasicValueEnum<'ctx>,
        bits: u32,
        lost: BasicValueEnum<'ctx>,
        grown: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let raw = self.bits(value, bits)?;
        let grown = self.emit.and(grown, lost)?;
        let less = self.emit.resize(grown, bits, false)?;
        let last = self.emit.resize(lost, bits, false)?;
        let odd = self.emit.or(self.emit.sub(raw, less)?, last)?;
        self.float_from_bits(odd, bits)
    }

    fn double_to_odd_single(&self, value: BasicValueEnum<'ctx>) -> Built<'ctx> {
        let single = scalar_type(self.emit, Scalar::F32);
        let double = scalar_type(self.emit, Scalar::F64);
        let rounded = self.emit.cast(InstructionOpcode::FPTrunc, value, single)?;
        let back = self.emit.cast(InstructionOpcode::FPExt, rounded, double)?;
        // Not true of NaN, which stays as it is.
        let lost = self.emit.fcmp(FloatPredicate::ONE, back, value)?;
        let size = |v: BasicValueEnum<'ctx>| self.emit.value("llvm.fabs", &[v.get_type()], &[v]);
        let grown = self
            .emit
            .fcmp(FloatPredicate::OGT, size(back)?, size(value)?)?;
        self.to_odd(rounded, 32, lost, grown)
    }

    /// Saturating, NaN to 0.
    fn float_to_int(&self, value: BasicValueEnum<'ctx>, from: Scalar, to: Scalar) -> Built<'ctx> {
        let value = if from.is_half() {
            self.widen_half(from, value)?
        } else {
            value
        };
        let name = if to.is_signed_int() {
            "llvm.fptosi.sat"
        } else {
            "llvm.fptoui.sat"
        };
        let ty = self.emit.shaped(scalar_type(self.emit, to), value);
        self.emit.value(name, &[ty, value.get_type()], &[value])
    }

    fn float_to_float(&self, value: BasicValueEnum<'ctx>, from: Scalar, to: Scalar) -> Built<'ctx> {
        let (value, from) = if from.is_half() {
            (self.widen_half(from, value)?, Scalar::F32)
        } else {
            (value, from)
        };
        if to.is_half() {
            let single = match from.bits() > 32 {
                true => self.double_to_odd_single(value)?,
                false => value,
            };
            return self.round_to_half(to, single);
        }
        let opcode = match to.bits().cmp(&from.bits()) {
            Ordering::Equal => return Ok(value),
            Ordering::Greater => InstructionOpcode::FPExt,
            Ordering::Less => InstructionOpcode::FPTrunc,
        };
        self.emit.cast(opcode, value, scalar_type(self.emit, to))
    }

    /// The bits of a float.
    pub(super) fn bits(&self, value: BasicValueEnum<'ctx>, bits: u32) -> Built<'ctx> {
        self.emit.cast(
            InstructionOpcode::BitCast,
            value,
            self.emit.int(bits).into(),
        )
    }

    fn float_from_bits(&self, value: BasicValueEnum<'ctx>, bits: u32) -> Built<'ctx> {
        let scalar = if bits == 64 { Scalar::F64 } else { Scalar::F32 };
        let ty = scalar_type(self.emit, scalar);
        self.emit.cast(InstructionOpcode::BitCast, value, ty)
    }

    /// `f16` or `bf16` as `f32`, which is exact.
    pub(super) fn widen_half(&self, scalar: Scalar, value: BasicValueEnum<'ctx>) -> Built<'ctx> {
        match scalar.as_half() {
            Some(Half::F16) if self.kernel.has_f16c => {
                let half = self.emit.context.f16_type().into();
                let value = self.emit.cast(InstructionOpcode::BitCast, value, half)?;
                let single = scalar_type(self.emit, Scalar::F32);
                self.emit.cast(InstructionOpcode::FPExt, value, single)
            }
            Some(Half::F16) => self.widen_f16(value),
            Some(Half::BF16) => {
                let wide = self.emit.resize(value, 32, false)?;
                self.float_from_bits(self.shifted_left(wide, 16)?, 32)
            }
            None => Err(unexpected("a half that is none")),
        }
    }

    fn shifted_left(&self, value: BasicValueEnum<'ctx>, bits: u64) -> Built<'ctx> {
        let amount = self.emit.int_like(bits, value);
        self.emit.binary(InstructionOpcode::Shl, value, amount)
    }

    fn widen_f16(&self, value: BasicValueEnum<'ctx>) -> Built<'ctx> {
        let wide = self.emit.resize(value, 32, false)?;
        let shift = |v, n| self.shifted_left(v, n);
        // The exponent of the 15 bits without a sign, shifted in place, is too small by 112; a
        // multiplication corrects it, for subnormal numbers, too. Infinity and NaN are set apart.
        let sign = shift(self.emit.and(wide, self.emit.int_like(0x8000, wide))?, 16)?;
        let rest = shift(self.emit.and(wide, self.emit.int_like(0x7fff, wide))?, 13)?;
        let scale = scalar_type(self.emit, Scalar::F32)
            .into_float_type()
            .const_float(f64::from(2.0f32.powi(112)));
        let small = self.float_from_bits(rest, 32)?;
        let scaled = self
            .emit
            .binary(InstructionOpcode::FMul, small, scale.into())?;
        let finite = self.bits(scaled, 32)?;
        let special = self.emit.or(rest, self.emit.int_like(0x7f80_0000, rest))?;
        let limit = self.emit.int_like(0x7c00 << 13, rest);
        let is_special = self.emit.icmp(IntPredicate::UGE, rest, limit)?;
        let size = self.emit.select(is_special, special, finite)?;
        self.float_from_bits(self.emit.or(size, sign)?, 32)
    }

    /// `f32` as `f16` or `bf16`, rounded to nearest-even.
    pub(super) fn round_to_half(&self, scalar: Scalar, value: BasicValueEnum<'ctx>) -> Built<'ctx> {
        match scalar.as_half() {
            Some(Half::F16) if self.kernel.has_f16c => {
                let half = self.emit.context.f16_type().into();
                let value = self.emit.cast(InstructionOpcode::FPTrunc, value, half)?;
                let bits = self.emit.int(16).into();
                self.emit.cast(InstructionOpcode::BitCast, value, bits)
            }
            Some(Half::F16) => self.round_to_f16(value),
            Some(Half::BF16) => self.round_to_bf16(value),
            None => Err(unexpected("a half that is none")),
        }
    }

    fn round_to_bf16(&self, value: BasicValueEnum<'ctx>) -> Built<'ctx> {
        let raw = self.bits(value, 32)?;
        let shift = |v, n| {
            let amount = self.emit.int_like(n, v);
            self.emit.binary(InstructionOpcode::LShr, v, amount)
        };
        let constant = |n| self.emit.int_like(n, raw);
        let last = self.emit.and(shift(raw, 16)?, constant(1))?;
        let bias = self.emit.add(last, constant(0x7fff))?;
        let rounded = shift(self.emit.add(raw, bias)?, 16)?;
        let quiet = self.emit.or(shift(raw, 16)?, constant(0x40))?;
        let is_nan = self.emit.fcmp(FloatPredicate::UNO, value, value)?;
        let result = self.emit.select(is_nan, quiet, rounded)?;
        self.emit.resize(result, 16, false)
    }

    /// Without help of the processor: adding a number whose last digit is worth as much as the
    /// result's rounds to it, for subnormal results, too.
    fn round_to_f16(&self, value: BasicValueEnum<'ctx>) -> Built<'ctx> {
        let raw = self.bits(value, 32)?;
        let constant = |n| self.emit.int_like(n, raw);
        let shift = |op, v, n| self.emit.binary(op, v, constant(n));
        let size = self.emit.and(raw, constant(0x7fff_ffff))?;
        let sign = self
            .emit
            .and(shift(InstructionOpcode::LShr, raw, 16)?, constant(0x8000))?;
        // Normal results: round the 13 bits away, then move the exponent.
        let last = self
            .emit
            .and(shift(InstructionOpcode::LShr, size, 13)?, constant(1))?;
        let bias = self.emit.add(last, constant(0xfff))?;
        let moved = self
            .emit
            .sub(self.emit.add(size, bias)?, constant(112 << 23))?;
        let normal = shift(InstructionOpcode::LShr, moved, 13)?;
        // Results below 2^-14: 0.5 has its last digit where theirs is.
        let half = scalar_type(self.emit, Scalar::F32)
            .into_float_type()
            .const_float(0.5);
        let float = self.float_from_bits(size, 32)?;
        let sum = self
            .emit
            .binary(InstructionOpcode::FAdd, float, half.into())?;
        let small = self.emit.sub(self.bits(sum, 32)?, constant(0x3f00_0000))?;
        let is_small = self
            .emit
            .icmp(IntPredicate::ULT, size, constant(113 << 23))?;
        let finite = self.emit.select(is_small, small, normal)?;
        let overflows = self
            .emit
            .icmp(IntPredicate::UGE, size, constant(0x477f_f000))?;
        let finite = self.emit.select(overflows, constant(0x7c00), finite)?;
        let payload = self
            .emit
            .and(shift(InstructionOpcode::LShr, size, 13)?, constant(0x3ff))?;
        let nan = self.emit.or(payload, constant(0x7e00))?;
        let is_nan = self.emit.fcmp(FloatPredicate::UNO, value, value)?;
        let result = self.emit.or(self.emit.select(is_nan, nan, finite)?, sign)?;
        self.emit.resize(result, 16, false)
    }

    /// A value's bits as another type. Vectors change their number of leaves, so everything goes
    /// through integers.
    pub(super) fn bitcast(&self, arg: Value, result: Type) -> Result<Leaves<'ctx>, BackendError> {
        let from = self.types().leaves(self.type_of(arg));
        let to = self.types().leaves(result);
        let value = self.get(arg)?;
        let same =
            from.len() == to.len() && from.iter().zip(&to).all(|(a, b)| a.bytes() == b.bytes());
        if same {
            let pairs = value.iter().zip(from.iter().zip(&to));
            return pairs
                .map(|(&leaf, (a, b))| self.bitcast_leaf(leaf, a.scalar(), b.scalar()))
                .collect();
        }
        self.repack(&value, &from, &to)
    }

    fn bitcast_leaf(
        &self,
        leaf: Leaf<'ctx>,
        from: Option<Scalar>,
        to: Option<Scalar>,
    ) -> Result<Leaf<'ctx>, BackendError> {
        let float = |s: Option<Scalar>| s.is_some_and(|s| s.is_float() && !s.is_half());
        if from.is_none() == to.is_none() && !float(from) && !float(to) {
            return Ok(leaf);
        }
        let value = leaf.value(self.emit)?;
        let ty = match to {
            None => self
                .emit
                .context
                .ptr_type(inkwell::AddressSpace::default())
                .into(),
            Some(to) => scalar_type(self.emit, to),
        };
        let word = self.emit.int(64).into();
        Ok(Leaf::from(match (from, to) {
            (None, None) => value,
            (None, Some(_)) => {
                let bits = self.emit.cast(InstructionOpcode::PtrToInt, value, word)?;
                self.emit.cast(InstructionOpcode::BitCast, bits, ty)?
            }
            (Some(_), None) => {
                let bits = self.emit.cast(InstructionOpcode::BitCast, value, word)?;
                self.emit.cast(InstructionOpcode::IntToPtr, bits, ty)?
            }
            (Some(_), Some(_)) => self.emit.cast(InstructionOpcode::BitCast, value, ty)?,
        }))
    }

    /// Bits of leaves of one size as leaves of another, lowest first.
    fn repack(
        &self,
        value: &Leaves<'ctx>,
        from: &[LeafType],
        to: &[LeafType],
    ) -> Result<Leaves<'ctx>, BackendError> {
        let mut result = Leaves::new();
        for leaf in to {
            let (start, end) = (leaf.offset, leaf.offset + u64::from(leaf.bytes()));
            let bits = leaf.bytes() * 8;
            let mut whole: Option<BasicValueEnum<'ctx>> = None;
            for (part, source) in value.iter().zip(from) {
                let (first, last) = (source.offset, source.offset + u64::from(source.bytes()));
                if last <= start || first >= end {
                    continue;
                }
                let mut raw = self.integer_bits(*part, *source)?;
                if first < start {
                    let amount = self.emit.int_like((start - first) * 8, raw);
                    raw = self.emit.binary(InstructionOpcode::LShr, raw, amount)?;
                }
                raw = self.emit.resize(raw, bits, false)?;
                if first > start {
                    let amount = self.emit.int_like((first - start) * 8, raw);
                    raw = self.emit.binary(InstructionOpcode::Shl, raw, amount)?;
                }
                whole = Some(match whole {
                    None => raw,
                    Some(low) => self.emit.or(low, raw)?,
                });
            }
            let whole = whole.proved("as much to reinterpret");
            let integer = match bits {
                8 => Scalar::U8,
                16 => Scalar::U16,
                32 => Scalar::U32,
                _ => Scalar::U64,
            };
            result.push(self.bitcast_leaf(Leaf::from(whole), Some(integer), leaf.scalar())?);
        }
        Ok(result)
    }

    fn integer_bits(&self, part: Leaf<'ctx>, ty: LeafType) -> Built<'ctx> {
        let value = part.value(self.emit)?;
        match ty.scalar() {
            None => {
                let bits = self.emit.int(ty.bytes() * 8).into();
                self.emit.cast(InstructionOpcode::PtrToInt, value, bits)
            }
            Some(scalar) => self.emit.to_bits(value, scalar),
        }
    }
}
