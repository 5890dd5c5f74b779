//! `Ordering` of `std::cmp` in `#[kernel]` functions: what compares two numbers or tuples, and the methods of the
//! result. They are those of Rust, by whose names rustc finds them.
//!
//! ```
//! use std::cmp::Ordering;
//!
//! use kiln::prelude::{Jit, global_id, kernel};
//!
//! #[kernel]
//! fn nearest(x: &[f32], to: &[f32], at: &mut [u32], side: &mut [i32]) {
//!     let i = global_id().x;
//!     if i < to.len() {
//!         let best = x
//!             .iter()
//!             .map(|v| (v - to[i]).abs())
//!             .enumerate()
//!             .min_by(|(_, a), (_, b)| a.total_cmp(b));
//!         at[i] = best.map_or(0, |(k, _)| k as u32);
//!         side[i] = match to[i].partial_cmp(&x[0]) {
//!             Some(Ordering::Less) => -1,
//!             Some(order) => i32::from(order.is_gt()),
//!             None => 7,
//!         };
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (x, to) = (jit.upload(&[1.0, 4.0, 9.0])?, jit.upload(&[5.0, 0.0, 1.0])?);
//! let (mut at, mut side) = (jit.zeros(3)?, jit.zeros(3)?);
//! nearest.launch(&jit, (1, 32), &x, &to, &mut at, &mut side)?;
//! assert_eq!((at.to_vec()?, side.to_vec()?), (vec![1, 0, 0], vec![1, -1, 0]));
//! # Ok(())
//! # }
//! ```

use std::cmp::Ordering;

use kiln_description::method_name;
use kiln_jit_core::build::Val;
use kiln_jit_core::front::macros::{Front, InlineCall, Operand, Receiver};
use kiln_jit_core::ir::Type;

use super::method::kernel_method;
use super::number::{FloatOps, IntOps, NumOps};
use super::resolve::{InlineMethod, Method, methods};
use crate::math::{Math as _, bits_of};

/// The `Ordering` of which is told whether it is `Less` and whether it is `Greater`.
fn ordering<'k>(less: Val<'k>, greater: Val<'k>) -> Val<'k> {
    let b = less.builder();
    let [below, same, above] =
        [Ordering::Less, Ordering::Equal, Ordering::Greater].map(|is| b.lit(Type::I8, is as i8));
    less.select(below, greater.select(above, same))
}

/// The order of numbers that are ordered.
fn compared<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    ordering(x.lt(y), y.lt(x))
}

/// The order of floats that all of them have, by their bits: negative ones first, and NaN at both ends.
fn total_order<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let bits = |x: Val<'k>| {
        let bits = x.bitcast(bits_of(x.ty()));
        x.is_sign_negative().select(!bits, bits)
    };
    let (left, right) = (bits(x), bits(y));
    let (one, other) = (x.is_sign_negative(), y.is_sign_negative());
    let same = one.eq(other);
    ordering(
        (one & !other) | (same & left.lt(right)),
        (other & !one) | (same & right.lt(left)),
    )
}

/// The order of tuples, whose first parts that differ decide.
fn order_of_parts<'k>(front: Front<'k>, x: Operand<'k>, y: Operand<'k>) -> Operand<'k> {
    let (x, y) = (x.eager(), y.target().eager());
    let (less, greater) = (front.is_less(x, y), front.is_less(y, x));
    front.value(ordering(less.read(), greater.read()))
}

/// The order of tuples, if their parts have one.
fn order_of_parts_if_any<'k>(front: Front<'k>, x: Operand<'k>, y: Operand<'k>) -> Operand<'k> {
    let (x, y) = (x.eager(), y.target().eager());
    let (less, greater) = (front.is_less(x, y).read(), front.is_less(y, x).read());
    let any = less | greater | front.is_equal(x, y).read();
    front.option(any, ordering(less, greater))
}

fn compared_with_zero<'k>(
    front: Front<'k>,
    order: Operand<'k>,
    compare: impl FnOnce(Val<'k>, Val<'k>) -> Val<'k>,
) -> Operand<'k> {
    let order = order.read();
    let zero = order.builder().zero(order.ty());
    front.value(compare(order, zero))
}

kernel_method! { [T: IntOps] T, Value: cmp = |front, x, y| front.value(compared(x.read(), y.read())) }
kernel_method! { [T: FloatOps] T, Value: total_cmp = |front, x, y| front.value(total_order(x.read(), y.read())) }
kernel_method! { [T: NumOps] T, Value: partial_cmp = |front, x, y| {
    let (x, y) = (x.read(), y.read());
    let (less, greater) = (x.lt(y), y.lt(x));
    front.option(less | greater | x.eq(y), ordering(less, greater))
} }

methods! {
    [] bool, Value, false: cmp = |front, x, y| {
        let (x, y) = (x.read(), y.target().read());
        front.value(ordering(!x & y, x & !y))
    };
    [A, B] (A, B), Value, false: cmp = |front, x, y| order_of_parts(front, x, y);
    [A, B] (A, B), Value, false: partial_cmp = |front, x, y| order_of_parts_if_any(front, x, y);
    [A, B, C] (A, B, C), Value, false: cmp = |front, x, y| order_of_parts(front, x, y);
    [A, B, C] (A, B, C), Value, false: partial_cmp = |front, x, y| order_of_parts_if_any(front, x, y);
    [A, B, C, D] (A, B, C, D), Value, false: cmp = |front, x, y| order_of_parts(front, x, y);
    [A, B, C, D] (A, B, C, D), Value, false: partial_cmp = |front, x, y| order_of_parts_if_any(front, x, y);
    [] Ordering, Value, false: is_lt = |front, x| compared_with_zero(front, x, |x, zero| x.lt(zero));
    [] Ordering, Value, false: is_le = |front, x| compared_with_zero(front, x, |x, zero| x.le(zero));
    [] Ordering, Value, false: is_gt = |front, x| compared_with_zero(front, x, |x, zero| x.gt(zero));
    [] Ordering, Value, false: is_ge = |front, x| compared_with_zero(front, x, |x, zero| x.ge(zero));
    [] Ordering, Value, false: is_eq = |front, x| compared_with_zero(front, x, |x, zero| x.eq(zero));
    [] Ordering, Value, false: is_ne = |front, x| compared_with_zero(front, x, |x, zero| x.ne(zero));
    [] Ordering, Value, false: reverse = |front, x| front.value(-x.read());
    [] Ordering, Value, false: then = |front, x, other| {
        front.either(compared_with_zero(front, x, |x, zero| x.eq(zero)), || other, || x)
    };
}

impl InlineMethod<{ method_name("then_with") }, ()> for Ordering {
    fn call_inline<'k>(front: Front<'k>, call: &InlineCall<'_, 'k>) -> Operand<'k> {
        match (call.args, call.closures) {
            (&[order], &[next]) => {
                let is_equal = compared_with_zero(front, order, |x, zero| x.eq(zero));
                front.either(is_equal, || next(&[]), || order)
            }
            _ => front.refuse(super::option::WHERE_CLOSURES_STAND),
        }
    }
}
