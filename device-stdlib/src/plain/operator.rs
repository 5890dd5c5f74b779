//! Which function an operator means in a kernel: `a + b` of numbers is an instruction, of a struct the function
//! that `#[device_fn]` has on its `impl Add`.
//!
//! rustc resolves operators in the checked copy, which tells the types of their operands where the macro
//! does not see that they are numbers. By these types the description finds an implementation of
//! [`Operator`], by the number of the name of the operator's method. Where there is none, the operands have to be
//! [`numbers`](OperatorInKernels), for which the IR has the operator itself.
//!
//! ```
//! use std::ops::{Add, AddAssign, Mul, Neg};
//!
//! use kiln::prelude::*;
//!
//! #[derive(Copy, Clone, Debug, PartialEq, KernelType)]
//! #[repr(C)]
//! struct Vector {
//!     x: f32,
//!     y: f32,
//! }
//!
//! #[device_fn]
//! impl Add for Vector {
//!     type Output = Vector;
//!     fn add(self, other: Self) -> Self {
//!         Vector { x: self.x + other.x, y: self.y + other.y }
//!     }
//! }
//!
//! #[device_fn]
//! impl Mul<Vector> for f32 {
//!     type Output = Vector;
//!     fn mul(self, v: Vector) -> Vector {
//!         Vector { x: self * v.x, y: self * v.y }
//!     }
//! }
//!
//! #[device_fn]
//! impl Neg for Vector {
//!     type Output = Self;
//!     fn neg(self) -> Self::Output {
//!         -1.0 * self
//!     }
//! }
//!
//! #[device_fn]
//! impl AddAssign for Vector {
//!     fn add_assign(&mut self, other: Vector) {
//!         *self = *self + other;
//!     }
//! }
//!
//! #[kernel]
//! fn step(at: &mut [Vector], speed: &[Vector], dt: f32) {
//!     let i = global_id().x;
//!     if i < at.len() {
//!         at[i] += dt * -speed[i];
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut at = jit.upload(&[Vector { x: 1.0, y: 2.0 }])?;
//! let speed = jit.upload(&[Vector { x: 8.0, y: -4.0 }])?;
//! step.launch(&jit, (1, 32), &mut at, &speed, 0.5)?;
//! assert_eq!(at.to_vec()?, [Vector { x: -3.0, y: 4.0 }]);
//! # Ok(())
//! # }
//! ```

use std::marker::PhantomData;

use kiln_jit_core::front::macros::{Front, Operand, Pooled, Receiver};
use kiln_jit_core::ir::Type;

use super::number::NumOps;
use super::resolve::NoMethod;

/// An operator that a type has in kernels, by the number of the name of its method (`add`, `neg`, `mul_assign`) and
/// the type on its right; `()` for one that has no right side.
pub trait Operator<const NAME: u64, Right> {
    /// How the operator takes what is on its left.
    const RECEIVER: Receiver;

    /// Calls it. The arguments are what is left of the operator and what is right of it.
    fn call<'k>(front: Front<'k>, types: &[Type], args: &[Operand<'k>]) -> Operand<'k>;
}

/// What rustc infers for an operator of the checked copy: the types on its left and on its right. What an operand
/// borrows ends with the copy, so a longer borrow stands for a shorter one.
pub struct OperandsOf<L, R>(PhantomData<fn() -> (*const L, *const R)>);

impl<L, R> Copy for OperandsOf<L, R> {}

impl<L, R> Clone for OperandsOf<L, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L, R> OperandsOf<L, R> {
    /// An operator that is still to be inferred.
    pub const OPEN: Self = OperandsOf(PhantomData);

    /// The operator of this name, by its number.
    #[doc(hidden)]
    pub const fn named<const NAME: u64>(self) -> NamedOperator<L, R, NAME> {
        NamedOperator(self)
    }
}

/// The left operand of an operator, as it is.
#[doc(hidden)]
pub fn left<L, R>(_: &OperandsOf<L, R>, operand: L) -> L {
    operand
}

/// The right operand of an operator, as it is.
#[doc(hidden)]
pub fn right<L, R>(_: &OperandsOf<L, R>, operand: R) -> R {
    operand
}

/// The operand of an operator that has one, as it is.
#[doc(hidden)]
pub fn only<L>(_: &OperandsOf<L, ()>, operand: L) -> L {
    operand
}

/// Tells what an operator assigns to.
#[doc(hidden)]
pub fn assigned<L, R>(_: &OperandsOf<L, R>, _: &L) {}

/// An operator by the name of its method, as [`NamedMethod`](super::resolve::NamedMethod) is a method.
pub struct NamedOperator<L, R, const NAME: u64>(OperandsOf<L, R>);

impl<L: Operator<NAME, R>, R, const NAME: u64> NamedOperator<L, R, NAME> {
    /// The entry of a pool for it.
    #[doc(hidden)]
    pub fn entry(&self) -> Pooled {
        Pooled::method(L::RECEIVER, false, L::call)
    }
}

impl<L, R, const NAME: u64> NoMethod for NamedOperator<L, R, NAME> {
    type Of = (L, R);
}

/// What an entry of a pool for an operator is made of.
pub trait HasOperator {
    /// The entry.
    fn pooled(self) -> Pooled;
}

impl HasOperator for Pooled {
    fn pooled(self) -> Pooled {
        self
    }
}

impl<L: OperatorInKernels, R: OperatorInKernels> HasOperator for super::resolve::Without<(L, R)> {
    fn pooled(self) -> Pooled {
        Pooled::primitive()
    }
}

/// The elements that a type has in kernels for several indices, `a[(i, j)]`: what `#[device_fn]` writes for its
/// `impl Index<(usize, usize)>`.
pub trait ElementAt<Indices> {
    /// The field, a slice, that has the elements.
    const FIELD: &'static str;
    /// How many indices there are.
    const COUNT: usize;

    /// The number of the element. The arguments are a reference to the whole, and the indices.
    fn call<'k>(front: Front<'k>, types: &[Type], args: &[Operand<'k>]) -> Operand<'k>;
}

/// The element of `a[(i, j)]`, as [`NamedOperator`] is an operator.
pub struct ElementOf<L, R>(OperandsOf<L, R>);

impl<L, R> OperandsOf<L, R> {
    /// What is left is indexed by what is right.
    #[doc(hidden)]
    pub const fn indexed(self) -> ElementOf<L, R> {
        ElementOf(self)
    }
}

impl<L: ElementAt<R>, R> ElementOf<L, R> {
    /// The entry of a pool for it.
    #[doc(hidden)]
    pub fn entry(&self) -> Pooled {
        Pooled::index(L::FIELD, L::COUNT, L::call)
    }
}

impl<L, R> NoMethod for ElementOf<L, R> {
    type Of = (L, R);
}

/// What has an element for several indices, as it stands before them; rustc finds these methods behind references.
#[doc(hidden)]
pub trait Indexed {
    /// What is read.
    fn __kiln_indexed<R>(&self, _: &OperandsOf<Self, R>) -> &Self
    where
        Self: Sized,
    {
        self
    }

    /// What is written.
    fn __kiln_indexed_mut<R>(&mut self, _: &OperandsOf<Self, R>) -> &mut Self
    where
        Self: Sized,
    {
        self
    }
}

impl<T> Indexed for T {}

/// What has elements in kernels for several indices: of two, what has none of its own is a matrix of columns.
#[diagnostic::on_unimplemented(
    message = "kernels have no element of this type for these indices",
    label = "no element in kernels",
    note = "mark the `impl Index` of the type with `#[device_fn]`"
)]
pub trait HasElement {
    /// The entry.
    fn pooled(self) -> Pooled;
}

impl HasElement for Pooled {
    fn pooled(self) -> Pooled {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<L, A, B> HasElement for super::resolve::Without<(L, (A, B))> {
    fn pooled(self) -> Pooled {
        Pooled::primitive()
    }
}

/// Types that the IR has operators of: numbers, `bool` and references to them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no such operator in kernels",
    label = "not an operand of this operator in kernels",
    note = "mark the `impl` block of the operator with `#[device_fn]`; operators of structs take values, so write \
            `*x` for a reference"
)]
pub trait OperatorInKernels {}

#[diagnostic::do_not_recommend]
impl<T: NumOps> OperatorInKernels for T {}

macro_rules! also {
    ($($t:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl OperatorInKernels for $t {}
    )*};
}
also! {
    () bool &bool &i8 &i16 &i32 &i64 &isize &u8 &u16 &u32 &u64 &usize &f32 &f64 &half::f16 &half::bf16
}
