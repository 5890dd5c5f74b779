//! Methods of numbers, slices and arrays: what `x.name(..)` builds. rustc checks them against the
//! methods that the types have in Rust, and the macro has the list of these names.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn distances(x: &[f32], y: &[f32], out: &mut [f32]) {
//!     let i = global_id().x;
//!     if i < out.len().min(x.len()) {
//!         out[i] = x[i].mul_add(x[i], y[i] * y[i]).sqrt();
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (x, y) = (jit.upload(&[3.0, 8.0])?, jit.upload(&[4.0, 15.0])?);
//! let mut out = jit.zeros(2)?;
//! distances.launch(&jit, (1, 32), &x, &y, &mut out)?;
//! assert_eq!(out.to_vec()?, [5.0, 17.0]);
//! # Ok(())
//! # }
//! ```

use kiln_description::method_name;
use kiln_jit_core::build::{IntoVal, Val};
use kiln_jit_core::front::{Front, Operand, Receiver};
use kiln_jit_core::ir::Type;
use kiln_jit_core::value::DeviceType;

pub use super::integer::*;
use super::number::{IntOps, NumOps};
use super::resolve::Method;
use crate::math::Math as _;

/// Says of which types a function of this file is a method.
macro_rules! methods {
    ($([$($generics:tt)*] $t:ty, $how:ident: $($name:ident)*;)*) => {
        $(methods! { @of [$($generics)*] $t, $how: $($name)* })*
    };
    (@of $generics:tt $t:ty, $how:ident: $($name:ident)*) => {
        $(methods! { @one $generics $t, $how: $name })*
    };
    (@one [$($generics:tt)*] $t:ty, $how:ident: $name:ident) => {
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> Method<{ method_name(stringify!($name)) }, ()> for $t {
            const RECEIVER: Receiver = Receiver::$how;

            fn call<'k>(front: Front<'k>, _: &[Type], args: &[Operand<'k>]) -> Operand<'k> {
                let mut args = args.iter().map(|arg| arg.target());
                match args.next() {
                    Some(receiver) => $name(front, receiver, &args.collect::<Vec<_>>()),
                    None => front.unit(),
                }
            }
        }
    };
}
methods! {
    [T: NumOps] T, Value:
        abs ceil cos exp exp2 floor is_nan ln log10 log2 max min mul_add powf powi recip
        round_ties_even sin sqrt tanh to_bits trunc wrapping_add wrapping_mul wrapping_neg
        wrapping_shl wrapping_shr wrapping_sub clamp signum;
    [T: IntOps + DeviceType] T, Value:
        abs_diff count_ones count_zeros div_ceil div_euclid is_power_of_two leading_ones
        leading_zeros pow rem_euclid reverse_bits rotate_left rotate_right saturating_add
        saturating_sub swap_bytes trailing_ones trailing_zeros unsigned_abs wrapping_abs wrapping_div
        wrapping_pow wrapping_rem;
    [T: DeviceType] [T], Unread: len is_empty;
    [T: DeviceType, const N: usize] [T; N], Unread: len is_empty;
}

/// Methods without arguments that are methods of values in the builder.
macro_rules! unary {
    ($($name:ident $builder:ident;)*) => {$(
        /// The method of this name.
        pub fn $name<'k>(front: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
            front.value(x.read().$builder())
        }
    )*};
}
unary! {
    sqrt sqrt;
    floor floor;
    ceil ceil;
    trunc trunc;
    round_ties_even rint;
    exp exp;
    exp2 exp2;
    ln ln;
    log2 log2;
    log10 log10;
    sin sin;
    cos cos;
    tanh tanh;
}

/// Methods that are operators of the IR.
macro_rules! operators {
    ($($name:ident $operator:ident;)*) => {$(
        /// The method of this name.
        pub fn $name<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
            match args {
                [y] => front.$operator(x, *y),
                _ => front.unit(),
            }
        }
    )*};
}
operators! {
    wrapping_add add;
    wrapping_sub sub;
    wrapping_mul mul;
    wrapping_shl shl;
    wrapping_shr shr;
}

pub(super) fn both<'k>(x: Operand<'k>, y: Operand<'k>) -> (Val<'k>, Val<'k>) {
    let x = x.read();
    (x, y.into_val(x.builder(), Some(x.ty())))
}

/// `x.min(y)`: the number if the other is NaN.
pub fn min<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    let [y] = args else { return front.unit() };
    let (x, y) = both(x, *y);
    front.value(x.min(y))
}

/// `x.max(y)`: the number if the other is NaN.
pub fn max<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    let [y] = args else { return front.unit() };
    let (x, y) = both(x, *y);
    front.value(x.max(y))
}

/// `x.abs()`, of floats and signed integers; the smallest integer is its own.
pub fn abs<'k>(front: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
    let x = x.read();
    if !front.is_integer(x.ty()) {
        return front.value(x.abs());
    }
    let zero = x.builder().zero(x.ty());
    front.value(x.lt(zero).select(-x, x))
}

/// `x.mul_add(factor, addend)`, with one rounding.
pub fn mul_add<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    match args {
        [factor, addend] => front.value(x.read().mul_add(*factor, *addend)),
        _ => front.unit(),
    }
}

/// `x.powf(exponent)`, with C's `pow` for special values.
pub fn powf<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    match args {
        [exponent] => front.value(x.read().powf(*exponent)),
        _ => front.unit(),
    }
}

/// `x.powi(n)`, by repeated squaring: multiplications written out if `n` is a literal, else a loop of
/// the same ones.
pub fn powi<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    let [n] = args else { return front.unit() };
    let x = x.read();
    if let Some(n) = n.known_int().and_then(|n| i32::try_from(n).ok()) {
        return front.value(x.powi(n));
    }
    let n = n.read();
    let one = x.builder().lit(x.ty(), 1.0);
    let zero = n.builder().zero(n.ty());
    let size = front.value(n.lt(zero).select(-n, n).cast(Type::U32));
    let power = power(front, x, size, one).read();
    front.value(n.lt(zero).select(one / power, power))
}

/// `x` to the power of `n`, a `u32`, in a loop.
pub(super) fn power<'k>(front: Front<'k>, x: Val<'k>, n: Operand<'k>, one: Val<'k>) -> Operand<'k> {
    let b = x.builder();
    let (power, square) = (b.var("power", one), b.var("square", x));
    let rest = b.var("rest", n.read());
    let (none, bit) = (b.zero(Type::U32), front.int(Type::U32, 1).read());
    b.while_(
        || rest.get().ne(none),
        || {
            b.if_((rest.get() & bit).ne(none), || {
                power.set(power.get() * square.get())
            });
            rest.set(rest.get() >> bit);
            square.set(square.get() * square.get());
        },
    );
    front.value(power.get())
}

/// `x.signum()`: of an integer -1, 0 or 1, of a float 1 with its sign, or NaN.
pub fn signum<'k>(front: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
    let x = x.read();
    let b = x.builder();
    if front.is_integer(x.ty()) {
        let (zero, one) = (b.zero(x.ty()), front.int(x.ty(), 1).read());
        let negative = x.lt(zero).select(-one, zero);
        return front.value(zero.lt(x).select(one, negative));
    }
    let Some((bits, sign)) = float_bits(x.ty()) else {
        return front.refuse("`signum` is for integers and floats whose type is known");
    };
    let one = b.lit(x.ty(), 1.0).bitcast(bits);
    let sign = front.int(bits, sign).read();
    let signed = ((x.bitcast(bits) & sign) | one).bitcast(x.ty());
    front.value(x.ne(x).select(x, signed))
}

/// The integer type of a float's bits, and the bit of its sign.
fn float_bits(ty: Type) -> Option<(Type, i128)> {
    Some(match ty {
        Type::F64 => (Type::U64, 1 << 63),
        Type::F32 => (Type::U32, 1 << 31),
        Type::F16 | Type::BF16 => (Type::U16, 1 << 15),
        _ => return None,
    })
}

/// `x.clamp(low, high)`; NaN stays, and where `high` is below `low`, for which Rust panics, it is
/// `high`.
pub fn clamp<'k>(front: Front<'k>, x: Operand<'k>, args: &[Operand<'k>]) -> Operand<'k> {
    let [low, high] = args else {
        return front.unit();
    };
    let (x, low) = both(x, *low);
    let high = high.into_val(x.builder(), Some(x.ty()));
    let raised = x.lt(low).select(low, x);
    front.value(high.lt(raised).select(high, raised))
}

/// `x.recip()`.
pub fn recip<'k>(front: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
    let x = x.read();
    let one = x.builder().lit(x.ty(), 1.0);
    front.value(one / x)
}

/// `x.wrapping_neg()`.
pub fn wrapping_neg<'k>(front: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
    front.neg(x)
}

/// `x.is_nan()`.
pub fn is_nan<'k>(front: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
    let x = x.read();
    front.value(x.ne(x))
}

/// `x.to_bits()`.
pub fn to_bits<'k>(front: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
    let x = x.read();
    let bits = match x.ty() {
        Type::F64 => Type::U64,
        Type::F32 => Type::U32,
        _ => Type::U16,
    };
    front.value(x.bitcast(bits))
}

/// `x.len()`, of slices and arrays.
pub fn len<'k>(_: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
    x.len()
}

/// `x.is_empty()`, of slices and arrays.
pub fn is_empty<'k>(front: Front<'k>, x: Operand<'k>, _: &[Operand<'k>]) -> Operand<'k> {
    let len = x.len().read();
    let zero = len.builder().zero(len.ty());
    front.value(len.eq(zero))
}
