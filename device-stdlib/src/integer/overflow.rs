//! Results of integers that do not fit: whether they do, and the limit that they are beyond.

use kiln_jit_core::build::{IntoVal, Val};
use kiln_jit_core::front::macros::Front;
use kiln_jit_core::ir::Type;

use super::words::high_half;
use super::{is_signed, limits, unsigned};

/// A result modulo 2 to the width, and whether it is another than the exact one.
#[derive(Copy, Clone)]
pub(super) struct Wrapped<'k> {
    pub(super) value: Val<'k>,
    pub(super) overflows: Val<'k>,
}

impl<'k> Wrapped<'k> {
    /// The tuple that it is in kernels.
    #[track_caller]
    pub(super) fn tuple(self) -> Val<'k> {
        crate::math::rows::pair(self.value, self.overflows)
    }

    /// The `Option` that it is in kernels: none where it does not fit.
    #[track_caller]
    pub(super) fn checked(self) -> Val<'k> {
        some_if(!self.overflows, self.value)
    }

    /// The value, or a limit where it does not fit.
    #[track_caller]
    pub(super) fn or(self, limit: Val<'k>) -> Val<'k> {
        self.overflows.select(limit, self.value)
    }
}

/// The value, if the condition holds.
#[track_caller]
pub(super) fn some_if<'k>(holds: Val<'k>, value: Val<'k>) -> Val<'k> {
    Front::new(value.builder()).option(holds, value).read()
}

/// Whether a quotient is there and fits: not by 0, and not of the least integer by -1.
#[track_caller]
pub(super) fn divides<'k>(x: Val<'k>, by: Val<'k>) -> Val<'k> {
    let zero = by.builder().zero(by.ty());
    match is_signed(x.ty()) {
        true => by.ne(zero) & !(by.eq(!zero) & x.eq(limits(x).0)),
        false => by.ne(zero),
    }
}

/// The sum: it is less than the number exactly where what is added is negative, but for one that overflows.
#[track_caller]
pub(super) fn add<'k>(x: Val<'k>, y: Val<'k>) -> Wrapped<'k> {
    let value = x + y;
    let falls = y.lt(y.builder().zero(y.ty()));
    Wrapped {
        value,
        overflows: value.lt(x) ^ falls,
    }
}

/// The difference: as the sum, the other way.
#[track_caller]
pub(super) fn sub<'k>(x: Val<'k>, y: Val<'k>) -> Wrapped<'k> {
    let value = x - y;
    let rises = y.lt(y.builder().zero(y.ty()));
    Wrapped {
        value,
        overflows: value.gt(x) ^ rises,
    }
}

/// The negative: it has the sign that the number has where it does not fit, of an unsigned integer always, but for 0.
#[track_caller]
pub(super) fn neg(x: Val<'_>) -> Wrapped<'_> {
    let (value, zero) = (-x, x.builder().zero(x.ty()));
    let changes = x.lt(zero) ^ value.lt(zero);
    Wrapped {
        value,
        overflows: x.ne(zero) & !changes,
    }
}

/// The product. It fits if its upper half is what the sign of the lower one makes of it.
#[track_caller]
pub(super) fn mul<'k>(x: Val<'k>, y: Val<'k>) -> Wrapped<'k> {
    let ty = x.ty();
    let value = x * y;
    if let Some(wide) = doubled(ty) {
        let exact = x.cast(wide) * y.cast(wide);
        return Wrapped {
            value,
            overflows: value.cast(wide).ne(exact),
        };
    }
    let above = match is_signed(ty) {
        true => value >> 63u32,
        false => x.builder().zero(ty),
    };
    Wrapped {
        value,
        overflows: high_half(x, y).ne(above),
    }
}

/// The integer type with twice the bits, of those with 32 bits at most.
fn doubled(ty: Type) -> Option<Type> {
    let wide = match ty.as_scalar()?.bits() {
        8 => [Type::I16, Type::U16],
        16 => [Type::I32, Type::U32],
        32 => [Type::I64, Type::U64],
        _ => return None,
    };
    Some(wide[usize::from(!is_signed(ty))])
}

/// The power, by repeated squaring. A square that is still needed and does not fit is a factor of at least 2.
#[track_caller]
pub(super) fn pow<'k>(x: Val<'k>, exponent: impl IntoVal<'k>) -> Wrapped<'k> {
    let b = x.builder();
    let rest = b.var("rest", exponent.into_val(b, Some(Type::U32)));
    let (power, square) = (b.var("power", b.lit(x.ty(), 1)), b.var("square", x));
    let overflows = b.var("overflows", b.lit(Type::BOOL, false));
    let note = |step: Wrapped<'k>| {
        overflows.set(overflows.get() | step.overflows);
        step.value
    };
    b.while_(
        || rest.get().ne(0),
        || {
            b.if_((rest.get() & 1).ne(0), || {
                power.set(note(mul(power.get(), square.get())))
            });
            rest.set(rest.get() >> 1);
            b.if_(rest.get().ne(0), || {
                square.set(note(mul(square.get(), square.get())))
            });
        },
    );
    Wrapped {
        value: power.get(),
        overflows: overflows.get(),
    }
}

/// The number shifted by an amount modulo the width, and whether the amount is beyond it.
#[track_caller]
pub(super) fn shifted<'k>(x: Val<'k>, amount: impl IntoVal<'k>, left: bool) -> Wrapped<'k> {
    let b = x.builder();
    let amount = amount.into_val(b, Some(Type::U32));
    let width = x.ty().as_scalar().map_or(32, |scalar| scalar.bits());
    let by = amount.cast(x.ty());
    Wrapped {
        value: if left { x << by } else { x >> by },
        overflows: amount.ge(b.lit(Type::U32, width)),
    }
}

/// What all bits but the sign leave: 0, or of a negative number -1.
#[track_caller]
pub(super) fn shifted_out(x: Val<'_>, left: bool) -> Val<'_> {
    let zero = x.builder().zero(x.ty());
    match left || !is_signed(x.ty()) {
        true => zero,
        false => x.lt(zero).select(!zero, zero),
    }
}

/// The limit that a product or a quotient is beyond which has the sign of `x * y`.
#[track_caller]
pub(super) fn limit_of_product<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let (low, high) = limits(x);
    match is_signed(x.ty()) {
        true => (x ^ y).lt(x.builder().zero(x.ty())).select(low, high),
        false => high,
    }
}

/// The power, or the limit that it is beyond.
#[track_caller]
pub(super) fn saturating_pow<'k>(x: Val<'k>, exponent: impl IntoVal<'k>) -> Val<'k> {
    let b = x.builder();
    let exponent = exponent.into_val(b, Some(Type::U32));
    let (low, high) = limits(x);
    let is_negative = x.lt(b.zero(x.ty())) & (exponent & 1).ne(0);
    pow(x, exponent).or(is_negative.select(low, high))
}

/// The largest integer in place of a magnitude that does not fit, which only the least integer has.
#[track_caller]
pub(super) fn or_largest<'k>(x: Val<'k>, value: Val<'k>) -> Val<'k> {
    let (low, high) = limits(x);
    x.eq(low).select(high, value)
}

/// An unsigned integer and a signed one, added; the sum does not fit where it moves against the sign.
#[track_caller]
pub(super) fn add_signed<'k>(x: Val<'k>, by: impl IntoVal<'k>) -> Wrapped<'k> {
    let by = by.into_val(x.builder(), Some(signed(x.ty())));
    let value = x + by.cast(x.ty());
    let falls = by.lt(by.builder().zero(by.ty()));
    Wrapped {
        value,
        overflows: value.lt(x) ^ falls,
    }
}

/// A signed integer and an unsigned one, added or subtracted.
#[track_caller]
pub(super) fn move_unsigned<'k>(x: Val<'k>, by: impl IntoVal<'k>, up: bool) -> Wrapped<'k> {
    let by = by
        .into_val(x.builder(), Some(unsigned(x.ty())))
        .cast(x.ty());
    let value = if up { x + by } else { x - by };
    Wrapped {
        value,
        overflows: if up { value.lt(x) } else { value.gt(x) },
    }
}

/// The signed integer type of the same width.
pub(super) fn signed(ty: Type) -> Type {
    match ty.as_scalar().map_or(0, |scalar| scalar.bits()) {
        8 => Type::I8,
        16 => Type::I16,
        32 => Type::I32,
        64 => Type::I64,
        _ => ty,
    }
}
