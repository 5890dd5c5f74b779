//! Constants, arithmetic, comparisons and selections, in all lanes at once.
//!
//! The IR's definitions hold in every lane, active or not: a divisor of 0 counts as 1, a shift
//! amount counts modulo the width. So no lane can trap, and none has to be masked off.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, InstructionOpcode};

use kiln_ir::legal::Proved as _;
use kiln_ir::rounding::{bf16_from_f64, f16_from_f64};
use kiln_ir::{
    BinaryOp, CompareOp, Constant, FastMath, FloatOp, LeafType, Scalar, Type, UnaryOp, Value,
};

use super::Warp;
use super::emit::Built;
use super::leaf::{AffineForm, Leaf, Leaves};
use crate::llvm::error::BackendError;
use crate::llvm::operations::{by_sign, float_predicate, int_predicate, sum_flags};

impl<'ctx> Warp<'_, '_, 'ctx> {
    pub(super) fn constant(
        &self,
        constant: Constant,
        ty: Type,
    ) -> Result<Leaves<'ctx>, BackendError> {
        let Some(scalar) = ty.as_scalar() else {
            return self.zero(ty);
        };
        let value: BasicValueEnum<'ctx> = match constant {
            Constant::Zero => return self.zero(ty),
            Constant::Bool(b) => self.emit.int(1).const_int(b.into(), false).into(),
            Constant::Int(n) if scalar.is_float() => self.float_constant(scalar, n as f64),
            Constant::Int(n) => {
                let llvm = self.emit.int(scalar.bits());
                llvm.const_int(n as u64, false).into()
            }
            Constant::Float(x) => self.float_constant(scalar, x),
        };
        Ok(Leaves::from_elem(Leaf::Uniform(value), 1))
    }

    /// A number of a float type; the verifier lets a float be of no other.
    fn float_constant(&self, scalar: Scalar, x: f64) -> BasicValueEnum<'ctx> {
        let half = |bits: u16| self.emit.int(16).const_int(bits.into(), false).into();
        let context = self.emit.context;
        match scalar {
            Scalar::F16 => half(f16_from_f64(x).to_bits()),
            Scalar::BF16 => half(bf16_from_f64(x).to_bits()),
            // LLVM would round a double to nearest as Rust does; the bits are ours to choose.
            Scalar::F32 => context.f32_type().const_float(f64::from(x as f32)).into(),
            Scalar::F64
            | Scalar::Bool
            | Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64 => context.f64_type().const_float(x).into(),
        }
    }

    /// The zero of a type.
    pub(super) fn zero(&self, ty: Type) -> Result<Leaves<'ctx>, BackendError> {
        let leaves = self.types().leaves(ty);
        let zero = |leaf: &LeafType| Leaf::Uniform(self.emit.leaf_type(*leaf).const_zero());
        Ok(leaves.iter().map(zero).collect())
    }

    pub(super) fn unary(&self, op: UnaryOp, arg: Value) -> Result<Leaf<'ctx>, BackendError> {
        let scalar = self.scalar_of(arg);
        let leaf = self.leaf(arg)?;
        if let (UnaryOp::Neg, true, Leaf::Affine { base, stride }) = (op, scalar.is_int(), leaf) {
            let zero = self.emit.int_like(0, base);
            return Ok(Leaf::Affine {
                base: self.emit.sub(zero, base)?,
                stride: stride.wrapping_neg(),
            });
        }
        let value = leaf.value(self.emit)?;
        let result = match op {
            UnaryOp::Neg if scalar.is_half() => {
                // The sign bit alone changes.
                let sign = self.emit.int_like(0x8000, value);
                self.emit.binary(InstructionOpcode::Xor, value, sign)?
            }
            UnaryOp::Neg if scalar.is_float() => match value {
                BasicValueEnum::VectorValue(v) => self.emit.builder.build_float_neg(v, "")?.into(),
                v => self
                    .emit
                    .builder
                    .build_float_neg(v.into_float_value(), "")?
                    .into(),
            },
            UnaryOp::Neg => self.emit.sub(self.emit.int_like(0, value), value)?,
            UnaryOp::Not => self.emit.not(value)?,
        };
        Ok(Leaf::from(result))
    }

    pub(super) fn binary(
        &self,
        op: BinaryOp,
        [a, b]: [Value; 2],
    ) -> Result<Leaf<'ctx>, BackendError> {
        let scalar = self.scalar_of(a);
        if scalar.is_int()
            && let Some(held) = self.affine_extremum(op, [a, b])?
        {
            return Ok(held);
        }
        let (left, right) = (self.leaf(a)?, self.leaf(b)?);
        if scalar.is_int()
            && let Some(affine) = self.affine_binary(op, left, right)?
        {
            return Ok(affine);
        }
        let (x, y) = (left.value(self.emit)?, right.value(self.emit)?);
        let value = if scalar.is_half() {
            let (x, y) = (self.widen_half(scalar, x)?, self.widen_half(scalar, y)?);
            let wide = self.float_binary(op, x, y)?;
            self.round_to_half(scalar, wide)?
        } else if scalar.is_float() {
            self.float_binary(op, x, y)?
        } else {
            self.int_binary(op, scalar, x, y)?
        };
        Ok(Leaf::from(value))
    }

    /// Sums, differences and products that keep the affine form; `None` if they do not.
    fn affine_binary(
        &self,
        op: BinaryOp,
        left: Leaf<'ctx>,
        right: Leaf<'ctx>,
    ) -> Result<Option<Leaf<'ctx>>, BackendError> {
        if let (Leaf::Uniform(_), Leaf::Uniform(_)) = (left, right) {
            return Ok(None);
        }
        let (Some((a, s, when_a)), Some((b, t, when_b))) = (left.affine(), right.affine()) else {
            return Ok(None);
        };
        let Some((opcode, stride)) = self.affine_form(op, (a, s), (b, t)) else {
            return Ok(None);
        };
        let (a, b) = if opcode == InstructionOpcode::Shl {
            let bits = u64::from(self.emit.int_bits(b));
            (a, self.emit.and(b, self.emit.int_like(bits - 1, b))?)
        } else {
            (a, b)
        };
        let base = self.emit.binary(opcode, a, b)?;
        let when = match (when_a, when_b) {
            (None, None) => return Ok(Some(Leaf::Affine { base, stride })),
            (Some(when), None) | (None, Some(when)) => when,
            (Some(x), Some(y)) => self.emit.and(x.into(), y.into())?.into_int_value(),
        };
        let exact = |leaf: Leaf<'ctx>| leaf.value(self.emit);
        let mut y = exact(right)?;
        if opcode == InstructionOpcode::Shl {
            let bits = u64::from(self.emit.int_bits(y));
            y = self.emit.and(y, self.emit.int_like(bits - 1, y))?;
        }
        let lanes = self
            .emit
            .binary(opcode, exact(left)?, y)?
            .into_vector_value();
        let affine = AffineForm {
            base,
            stride,
            when,
            unwrapped: None,
            readable: false,
            part: None,
        };
        Ok(Some(Leaf::Vector {
            lanes,
            affine: Some(affine),
        }))
    }

    /// What is done to the bases of two affine operands, and the stride of the result; `None` if that is not
    /// affine.
    fn affine_form(
        &self,
        op: BinaryOp,
        (a, s): (BasicValueEnum<'ctx>, i64),
        (b, t): (BasicValueEnum<'ctx>, i64),
    ) -> Option<(InstructionOpcode, i64)> {
        let known = |value: BasicValueEnum<'ctx>| {
            let BasicValueEnum::IntValue(value) = value else {
                return None;
            };
            value.get_sign_extended_constant()
        };
        match op {
            BinaryOp::Add => Some((InstructionOpcode::Add, s.wrapping_add(t))),
            BinaryOp::Sub => Some((InstructionOpcode::Sub, s.wrapping_sub(t))),
            BinaryOp::Mul => match (s, t, known(a), known(b)) {
                (_, 0, _, Some(factor)) => Some((InstructionOpcode::Mul, s.wrapping_mul(factor))),
                (0, _, Some(factor), _) => Some((InstructionOpcode::Mul, t.wrapping_mul(factor))),
                _ => None,
            },
            BinaryOp::Shl if t == 0 => {
                let bits = i64::from(self.emit.int_bits(a));
                let stride = s.wrapping_shl((known(b)? & (bits - 1)) as u32);
                Some((InstructionOpcode::Shl, stride))
            }
            _ => None,
        }
    }

    fn float_binary(
        &self,
        op: BinaryOp,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let contract = match self.kernel.contract {
            true => FastMath::CONTRACT,
            false => FastMath::NONE,
        };
        let flags = sum_flags(self.fast | contract);
        match op.on_floats().proved("an operation of floats") {
            FloatOp::Add => self.emit.float_binary(InstructionOpcode::FAdd, a, b, flags),
            FloatOp::Sub => self.emit.float_binary(InstructionOpcode::FSub, a, b, flags),
            FloatOp::Mul => self.emit.float_binary(InstructionOpcode::FMul, a, b, flags),
            // LLVM's approximations for x86 make NaNs of infinities, and are no faster.
            FloatOp::Div => self.emit.binary(InstructionOpcode::FDiv, a, b),
            FloatOp::Min => self.pick("llvm.minnum", a, b),
            FloatOp::Max => self.pick("llvm.maxnum", a, b),
        }
    }

    fn pick(&self, name: &str, a: BasicValueEnum<'ctx>, b: BasicValueEnum<'ctx>) -> Built<'ctx> {
        let (a, b) = self.emit.same_shape(a, b)?;
        self.emit.value(name, &[a.get_type()], &[a, b])
    }

    pub(super) fn int_binary(
        &self,
        op: BinaryOp,
        scalar: Scalar,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let signed = scalar.is_signed_int();
        let (a, b) = self.emit.same_shape(a, b)?;
        match op {
            BinaryOp::Add => self.emit.add(a, b),
            BinaryOp::Sub => self.emit.sub(a, b),
            BinaryOp::Mul => self.emit.mul(a, b),
            BinaryOp::Div => {
                let b = self.safe_divisor(signed, a, b)?;
                let opcode = by_sign(signed, InstructionOpcode::SDiv, InstructionOpcode::UDiv);
                self.emit.binary(opcode, a, b)
            }
            BinaryOp::Rem => {
                let b = self.safe_divisor(signed, a, b)?;
                let opcode = by_sign(signed, InstructionOpcode::SRem, InstructionOpcode::URem);
                self.emit.binary(opcode, a, b)
            }
            BinaryOp::Min => self.pick(by_sign(signed, "llvm.smin", "llvm.umin"), a, b),
            BinaryOp::Max => self.pick(by_sign(signed, "llvm.smax", "llvm.umax"), a, b),
            BinaryOp::And => self.emit.and(a, b),
            BinaryOp::Or => self.emit.or(a, b),
            BinaryOp::Xor => self.emit.binary(InstructionOpcode::Xor, a, b),
            BinaryOp::Shl => {
                let b = self.shift_amount(b)?;
                self.emit.binary(InstructionOpcode::Shl, a, b)
            }
            BinaryOp::Shr => {
                let b = self.shift_amount(b)?;
                let opcode = by_sign(signed, InstructionOpcode::AShr, InstructionOpcode::LShr);
                self.emit.binary(opcode, a, b)
            }
        }
    }

    /// A shift counts modulo the width; the widths are powers of two.
    fn shift_amount(&self, amount: BasicValueEnum<'ctx>) -> Built<'ctx> {
        let bits = self.emit.int_bits(amount);
        let mask = u64::from(bits) - 1;
        self.emit.and(amount, self.emit.int_like(mask, amount))
    }

    /// The divisor, or 1 where the division would have no result: by zero, and `MIN / -1`.
    fn safe_divisor(
        &self,
        signed: bool,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let zero = self.emit.int_like(0, b);
        let mut undefined = self.emit.icmp(IntPredicate::EQ, b, zero)?;
        if signed {
            let bits = self.emit.int_bits(a);
            let smallest = self.emit.int_like(1 << (bits - 1), a);
            let minus_one = self.emit.int_like(u64::MAX, b);
            let is_smallest = self.emit.icmp(IntPredicate::EQ, a, smallest)?;
            let is_minus_one = self.emit.icmp(IntPredicate::EQ, b, minus_one)?;
            let overflows = self.emit.and(is_smallest, is_minus_one)?;
            undefined = self.emit.or(undefined, overflows)?;
        }
        self.emit.select(undefined, self.emit.int_like(1, b), b)
    }

    pub(super) fn compare(
        &self,
        op: CompareOp,
        [a, b]: [Value; 2],
    ) -> Result<Leaf<'ctx>, BackendError> {
        let ty = self.type_of(a);
        let (x, y) = (
            self.leaf(a)?.value(self.emit)?,
            self.leaf(b)?.value(self.emit)?,
        );
        if self.types().is_pointer(ty) {
            return Ok(Leaf::from(self.emit.icmp(
                int_predicate(op, false),
                x,
                y,
            )?));
        }
        let scalar = self.scalar_of(a);
        let value = if scalar.is_half() {
            let (x, y) = (self.widen_half(scalar, x)?, self.widen_half(scalar, y)?);
            self.emit.fcmp(float_predicate(op), x, y)?
        } else if scalar.is_float() {
            self.emit.fcmp(float_predicate(op), x, y)?
        } else {
            let signed = scalar.is_signed_int();
            self.emit.icmp(int_predicate(op, signed), x, y)?
        };
        Ok(Leaf::from(value))
    }

    pub(super) fn select(
        &self,
        cond: Value,
        if_true: Value,
        if_false: Value,
    ) -> Result<Leaves<'ctx>, BackendError> {
        let cond = self.leaf(cond)?.value(self.emit)?;
        let (a, b) = (self.get(if_true)?, self.get(if_false)?);
        let mut result = Leaves::new();
        for (&a, &b) in a.iter().zip(&b) {
            result.push(self.select_leaf(cond, a, b)?);
        }
        Ok(result)
    }

    fn select_leaf(
        &self,
        cond: BasicValueEnum<'ctx>,
        a: Leaf<'ctx>,
        b: Leaf<'ctx>,
    ) -> Result<Leaf<'ctx>, BackendError> {
        if let (
            false,
            Leaf::Affine { base: x, stride },
            Leaf::Affine {
                base: y,
                stride: other,
            },
        ) = (cond.is_vector_value(), a, b)
            && stride == other
        {
            let base = self.emit.select(cond, x, y)?;
            return Ok(Leaf::Affine { base, stride });
        }
        let (a, b) = (a.value(self.emit)?, b.value(self.emit)?);
        Ok(Leaf::from(self.emit.select(cond, a, b)?))
    }
}
