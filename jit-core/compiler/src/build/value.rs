//! Values of a kernel being built, and the operators on them.

use std::ops;

use crate::ir::{AddressSpace, BinaryOp, CompareOp, InstData, Takes, Type, TypeData, UnaryOp};
use crate::value::KernelType;

use super::{BuildErrorKind, IntoVal, KernelBuilder, Place, Var};

/// A value of the kernel being built: what an instruction computes, once per thread.
///
/// Operators build instructions. Both operands have one type; nothing converts by itself.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let mix = Kernel::build("mix", |k| {
///     let (x, out) = (k.slice("x", k.ty::<f32>()), k.slice_mut("out", k.ty::<f32>()));
///     let i = k.global_id().x();
///     k.if_(i.lt(out.len()), || {
///         let v = x.at(i).get();
///         let is_small = v.ge(-1.0) & v.le(1.0);
///         let limited = v.max(-2.0).min(2.0);
///         out.at(i).set(is_small.select(v * v, limited));
///     });
/// })?;
/// let jit = Jit::new()?;
/// let x = jit.upload(&[0.5f32, 1.5, -9.0])?;
/// let mut out = jit.zeros::<f32>(3)?;
/// jit.launch(&mix, 1, 32, args!(&x, &mut out))?;
/// assert_eq!(out.to_vec()?, [0.25, 1.5, -2.0]);
/// # Ok(())
/// # }
/// ```
///
/// Comparisons give a bool for each thread; they are methods, since Rust's operators give a bool of the host:
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let compare = Kernel::build("compare", |k| {
///     let (x, out) = (k.param("x", k.ty::<u32>()), k.slice_mut("out", k.ty::<u32>()));
///     let all = [x.eq(3), x.ne(3), x.lt(3), x.le(3), x.gt(3), x.ge(3)];
///     for (i, holds) in all.into_iter().enumerate() {
///         out.at(i as u32).set(holds.cast(Type::U32));
///     }
/// })?;
/// let jit = Jit::new()?;
/// let mut out = jit.zeros::<u32>(6)?;
/// jit.launch(&compare, 1, 1, args!(3u32, &mut out))?;
/// assert_eq!(out.to_vec()?, [1, 0, 0, 1, 0, 1]);
/// # Ok(())
/// # }
/// ```
///
/// Other types, and parts of values:
///
/// ```
/// use kiln::prelude::*;
///
/// kiln::core::kernel_type! {
///     struct Pair { first: f32, both: [u32; 2] }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let parts = Kernel::build("parts", |k| {
///     let (pair, out) = (k.param("pair", k.ty::<Pair>()), k.slice_mut("out", k.ty::<u32>()));
///     assert_eq!(pair.ty(), k.ty::<Pair>());
///     let first = pair.field("first");
///     out.at(0).set(first.cast(Type::U32));
///     out.at(1).set(first.bitcast(Type::U32));
///     out.at(2).set(pair.field("both").element(1));
///     out.at(3).set(out.len64().cast_to::<u32>());
///     // Everything leads back to the builder.
///     out.at(4).set(first.builder().lit(Type::U32, 7));
/// })?;
/// let jit = Jit::new()?;
/// let mut out = jit.zeros::<u32>(5)?;
/// jit.launch(&parts, 1, 1, args!(Pair { first: 2.5, both: [3, 4] }, &mut out))?;
/// assert_eq!(out.to_vec()?, [2, 0x4020_0000, 4, 5, 7]);
/// # Ok(())
/// # }
/// ```
///
/// Addresses, which are followed without a check:
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let addresses = Kernel::build("addresses", |k| {
///     let x = k.slice_mut("x", k.ty::<u32>());
///     let third = x.as_ptr().offset(2);
///     // SAFETY: the launch below passes three elements.
///     unsafe {
///         x.at_unchecked(0).set(third.deref());
///         third.to_generic().deref().set(1);
///     }
/// })?;
/// let jit = Jit::new()?;
/// let mut x = jit.upload(&[7u32, 8, 9])?;
/// jit.launch(&addresses, 1, 1, args!(&mut x))?;
/// assert_eq!(x.to_vec()?, [9, 8, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Copy, Clone)]
pub struct Val<'k> {
    pub(super) builder: &'k KernelBuilder,
    pub(super) id: crate::ir::Value,
    pub(super) ty: Type,
}

impl std::fmt::Debug for Val<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.id, self.builder.type_name(self.ty))
    }
}

impl<'k> Val<'k> {
    /// The type of the value.
    pub fn ty(self) -> Type {
        self.ty
    }

    /// The builder this value belongs to.
    pub fn builder(self) -> &'k KernelBuilder {
        self.builder
    }

    /// Whether the value equals `other`; false for NaN.
    #[track_caller]
    pub fn eq(self, other: impl IntoVal<'k>) -> Val<'k> {
        self.builder.compare(CompareOp::Eq, self, other)
    }

    /// Whether the value differs from `other`; true for NaN.
    #[track_caller]
    pub fn ne(self, other: impl IntoVal<'k>) -> Val<'k> {
        self.builder.compare(CompareOp::Ne, self, other)
    }

    /// Whether the value is less than `other`; false for NaN.
    #[track_caller]
    pub fn lt(self, other: impl IntoVal<'k>) -> Val<'k> {
        self.builder.compare(CompareOp::Lt, self, other)
    }

    /// Whether the value is less than or equal to `other`; false for NaN.
    #[track_caller]
    pub fn le(self, other: impl IntoVal<'k>) -> Val<'k> {
        self.builder.compare(CompareOp::Le, self, other)
    }

    /// Whether the value is greater than `other`; false for NaN.
    #[track_caller]
    pub fn gt(self, other: impl IntoVal<'k>) -> Val<'k> {
        self.builder.compare(CompareOp::Gt, self, other)
    }

    /// Whether the value is greater than or equal to `other`; false for NaN.
    #[track_caller]
    pub fn ge(self, other: impl IntoVal<'k>) -> Val<'k> {
        self.builder.compare(CompareOp::Ge, self, other)
    }

    /// The smaller of two numbers; the number if the other is NaN.
    #[track_caller]
    pub fn min(self, other: impl IntoVal<'k>) -> Val<'k> {
        self.builder.binary(BinaryOp::Min, self, other)
    }

    /// The larger of two numbers; the number if the other is NaN.
    #[track_caller]
    pub fn max(self, other: impl IntoVal<'k>) -> Val<'k> {
        self.builder.binary(BinaryOp::Max, self, other)
    }

    /// `if_true` where this bool is true, else `if_false`; both are evaluated.
    #[track_caller]
    pub fn select(self, if_true: impl IntoVal<'k>, if_false: impl IntoVal<'k>) -> Val<'k> {
        let b = self.builder;
        let cond = b.expect_bool("the condition of `select`", self);
        let (x, y) = b.pair("select", if_true, if_false);
        let data = InstData::Select {
            cond: cond.id,
            if_true: x.id,
            if_false: y.id,
        };
        b.emit(data, x.ty)
    }

    /// The value converted to a scalar type, with the meaning of Rust's `as`.
    #[track_caller]
    pub fn cast(self, ty: Type) -> Val<'k> {
        let b = self.builder;
        let this = b.adopt(self);
        if this.ty == ty {
            return this;
        }
        let convertible = |ty| matches!(b.type_data(ty), TypeData::Scalar(_) | TypeData::Param(_));
        if !convertible(this.ty) || !convertible(ty) || ty == Type::BOOL {
            let expected = format!("a scalar that converts to `{}`", b.type_name(ty));
            return b.wrong_type("`cast`", expected, this, ty);
        }
        b.emit(InstData::Cast { arg: this.id }, ty)
    }

    /// The value converted to the scalar type `T`, with the meaning of Rust's `as`.
    #[track_caller]
    pub fn cast_to<T: KernelType>(self) -> Val<'k> {
        self.cast(self.builder.ty::<T>())
    }

    /// The value's bits as another type of equal size: numbers, vectors of them, and pointers.
    #[track_caller]
    pub fn bitcast(self, ty: Type) -> Val<'k> {
        let b = self.builder;
        let this = b.adopt(self);
        b.emit(InstData::Bitcast { arg: this.id }, ty)
    }

    /// A field of a struct value.
    #[track_caller]
    pub fn field(self, name: &str) -> Val<'k> {
        let b = self.builder;
        let this = b.adopt(self);
        match b.find_field(this.ty, name) {
            Ok((index, ty)) => b.emit(
                InstData::Extract {
                    aggregate: this.id,
                    index,
                },
                ty,
            ),
            Err(kind) => b.error_about(&[this], kind, Type::I32),
        }
    }

    /// A lane of a vector value or an element of an array value, by a number known now.
    #[track_caller]
    pub fn element(self, index: u32) -> Val<'k> {
        let b = self.builder;
        let this = b.adopt(self);
        let element = b.with_types(|types| match types.as_vector(this.ty) {
            Some((element, lanes)) => (index < u32::from(lanes)).then_some(Type::scalar(element)),
            None => types.as_array(this.ty).map(|(element, _)| element),
        });
        let Some(ty) = element else {
            let expected = format!("a vector or array with an element {index}");
            return b.wrong_type("`element`", expected, this, Type::I32);
        };
        b.emit(
            InstData::Extract {
                aggregate: this.id,
                index,
            },
            ty,
        )
    }

    /// The number of elements of a slice, as `u32`. A kernel that uses it does not accept slices
    /// of 2^32 elements or more; [`Val::len64`] does.
    #[track_caller]
    pub fn len(self) -> Val<'k> {
        self.slice_len(Type::U32)
    }

    /// The number of elements of a slice, as `u64`.
    #[track_caller]
    pub fn len64(self) -> Val<'k> {
        self.slice_len(Type::U64)
    }

    #[track_caller]
    fn slice_len(self, ty: Type) -> Val<'k> {
        let b = self.builder;
        let this = b.adopt(self);
        match b.as_slice(this.ty) {
            Some(_) => b.emit(InstData::SliceLen { slice: this.id }, ty),
            None => b.wrong_type("`len`", "a slice", this, ty),
        }
    }

    /// The element `index` of a slice. An index out of bounds ends the thread and is reported by
    /// the next synchronizing call.
    #[track_caller]
    pub fn at(self, index: impl IntoVal<'k>) -> Place<'k> {
        self.index(index, true)
    }

    /// The element `index` of a slice, unchecked.
    ///
    /// # Safety
    /// The index must be below the length in every thread that gets here.
    #[track_caller]
    pub unsafe fn at_unchecked(self, index: impl IntoVal<'k>) -> Place<'k> {
        self.index(index, false)
    }

    /// An element that is there by how its index is made, which is below the length in every thread.
    pub(crate) fn at_known(self, index: impl IntoVal<'k>) -> Place<'k> {
        self.index(index, false)
    }

    #[track_caller]
    fn index(self, index: impl IntoVal<'k>, checked: bool) -> Place<'k> {
        let b = self.builder;
        let this = b.adopt(self);
        let index = b.index_value(index);
        let checked = checked && !b.options.unchecked;
        match b.as_slice(this.ty) {
            Some((at, _)) => {
                let data = InstData::SliceIndex {
                    slice: this.id,
                    index: index.id,
                    checked,
                };
                let ptr = b.pointer_type(at.pointee, at.space, at.mutable);
                Place::new(b.emit(data, ptr), at.pointee, at.mutable)
            }
            None => Place::new(
                b.wrong_type("indexing", "a slice", this, b.any_pointer()),
                Type::I32,
                true,
            ),
        }
    }

    /// The address of the first element of a slice.
    #[track_caller]
    pub fn as_ptr(self) -> Val<'k> {
        let b = self.builder;
        let this = b.adopt(self);
        match b.as_slice(this.ty) {
            Some((at, _)) => {
                let ty = b.pointer_type(at.pointee, at.space, at.mutable);
                b.emit(InstData::SlicePtr { slice: this.id }, ty)
            }
            None => b.wrong_type("`as_ptr`", "a slice", this, b.any_pointer()),
        }
    }

    /// The address `index` elements after this pointer. Computing it is harmless; following it
    /// takes [`Val::deref`].
    #[track_caller]
    pub fn offset(self, index: impl IntoVal<'k>) -> Val<'k> {
        let b = self.builder;
        let this = b.adopt(self);
        let index = b.index_value(index);
        match b.is_pointer(this.ty) {
            true => b.emit(
                InstData::PtrOffset {
                    ptr: this.id,
                    index: index.id,
                },
                this.ty,
            ),
            false => b.wrong_type("`offset`", "a pointer", this, b.any_pointer()),
        }
    }

    /// What this pointer points at.
    ///
    /// # Safety
    /// In every thread that gets here the address must be that of a value of the pointee type, in
    /// the pointer's address space, aligned, and not written by another thread at the same time.
    #[track_caller]
    pub unsafe fn deref(self) -> Place<'k> {
        self.pointee("`deref`", "a pointer")
    }

    /// This pointer or slice as one into the generic address space.
    #[track_caller]
    pub fn to_generic(self) -> Val<'k> {
        let b = self.builder;
        let this = b.adopt(self);
        let ty = b.in_space(this.ty, AddressSpace::Generic);
        match ty {
            Some(ty) if ty == this.ty => this,
            Some(ty) => b.emit(InstData::SpaceCast { arg: this.id }, ty),
            None => b.wrong_type(
                "`to_generic`",
                "a pointer or a slice",
                this,
                b.any_pointer(),
            ),
        }
    }
}

impl<'k> Val<'k> {
    /// What a pointer points at that was made from a place or came in as a reference.
    #[track_caller]
    pub(crate) fn referent(self) -> Place<'k> {
        self.pointee("`*`", "a reference")
    }

    /// What a pointer points at; for another value the error says what `operation` takes.
    #[track_caller]
    fn pointee(self, operation: &str, takes: &str) -> Place<'k> {
        let b = self.builder;
        let this = b.adopt(self);
        match b.with_types(|types| types.as_pointer(this.ty)) {
            Some((pointee, _, mutable)) => Place::new(this, pointee, mutable),
            None => Place::new(
                b.wrong_type(operation, takes, this, b.any_pointer()),
                Type::I32,
                true,
            ),
        }
    }
}

impl KernelBuilder {
    /// Both operands as values of one type.
    #[track_caller]
    pub(super) fn pair<'k>(
        &'k self,
        operation: &str,
        left: impl IntoVal<'k>,
        right: impl IntoVal<'k>,
    ) -> (Val<'k>, Val<'k>) {
        let like = left.own_type().or(right.own_type());
        let x = left.into_val(self, like);
        // The type of what an error has left says nothing about a literal beside it.
        let y = right.into_val(self, (!self.is_recovered(x)).then_some(x.ty));
        if x.ty == y.ty {
            return (x, y);
        }
        let kind = BuildErrorKind::TypeMismatch {
            operation: operation.to_owned(),
            left: self.type_name(x.ty),
            left_at: self.built_at(x),
            right: self.type_name(y.ty),
            right_at: self.built_at(y),
        };
        (x, self.error_about(&[x, y], kind, x.ty))
    }

    #[track_caller]
    pub(crate) fn binary<'k>(
        &'k self,
        op: BinaryOp,
        left: impl IntoVal<'k>,
        right: impl IntoVal<'k>,
    ) -> Val<'k> {
        let name = format!("{op:?}").to_lowercase();
        let (x, y) = self.pair(&name, left, right);
        let takes = op.takes();
        if !self.is_taken(takes, x.ty) {
            return self.wrong_type(&format!("`{name}`"), takes.words(), x, x.ty);
        }
        self.emit(
            InstData::Binary {
                op,
                args: [x.id, y.id],
            },
            x.ty,
        )
    }

    #[track_caller]
    pub(crate) fn compare<'k>(
        &'k self,
        op: CompareOp,
        left: impl IntoVal<'k>,
        right: impl IntoVal<'k>,
    ) -> Val<'k> {
        let name = format!("{op:?}").to_lowercase();
        let (x, y) = self.pair(&name, left, right);
        let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
        let address = self.is_pointer(x.ty);
        if !(self.is_number(x.ty) || address || (equality && x.ty == Type::BOOL)) {
            return self.wrong_type(&format!("`{name}`"), "numbers", x, Type::BOOL);
        }
        self.emit(
            InstData::Compare {
                op,
                args: [x.id, y.id],
            },
            Type::BOOL,
        )
    }

    #[track_caller]
    pub(crate) fn unary<'k>(&'k self, op: UnaryOp, arg: impl IntoVal<'k>) -> Val<'k> {
        let x = arg.into_val(self, None);
        if !self.is_taken(op.takes(), x.ty) {
            let name = format!("`{}`", format!("{op:?}").to_lowercase());
            return self.wrong_type(&name, "a number (`not`: an integer or a bool)", x, x.ty);
        }
        self.emit(InstData::Unary { op, arg: x.id }, x.ty)
    }

    /// An index: any integer, a literal counts as `u32` unless it is negative.
    #[track_caller]
    pub(super) fn index_value<'k>(&'k self, index: impl IntoVal<'k>) -> Val<'k> {
        let index = match index.own_type() {
            Some(_) => index.into_val(self, None),
            None => index.into_val(self, Some(Type::I64)),
        };
        if self.is_integer(index.ty) {
            return index;
        }
        self.wrong_type("an index", "an integer", index, Type::U32)
    }
}

macro_rules! binary_operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        binary_operators!(@on Val $trait $method $op);
        binary_operators!(@on Place $trait $method $op);
        binary_operators!(@on Var $trait $method $op);
        binary_operators!(@scalars $trait $method $op f32 f64 i32 i64 u32 u64);
    )*};
    (@on $lhs:ident $trait:ident $method:ident $op:ident) => {
        impl<'k, R: IntoVal<'k>> ops::$trait<R> for $lhs<'k> {
            type Output = Val<'k>;
            #[track_caller]
            fn $method(self, right: R) -> Val<'k> {
                self.builder.binary(BinaryOp::$op, self, right)
            }
        }
    };
    (@scalars $trait:ident $method:ident $op:ident $($scalar:ident)*) => {$(
        binary_operators!(@scalar $scalar Val $trait $method $op);
        binary_operators!(@scalar $scalar Place $trait $method $op);
        binary_operators!(@scalar $scalar Var $trait $method $op);
    )*};
    (@scalar $scalar:ident $rhs:ident $trait:ident $method:ident $op:ident) => {
        // A mistake in a kernel is one of scalars, which have these besides.
        #[diagnostic::do_not_recommend]
        impl<'k> ops::$trait<$rhs<'k>> for $scalar {
            type Output = Val<'k>;
            #[track_caller]
            fn $method(self, right: $rhs<'k>) -> Val<'k> {
                right.builder.binary(BinaryOp::$op, self, right)
            }
        }
    };
}
binary_operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
    Rem rem Rem;
    BitAnd bitand And;
    BitOr bitor Or;
    BitXor bitxor Xor;
    Shl shl Shl;
    Shr shr Shr;
}

macro_rules! unary_operators {
    ($($lhs:ident)*) => {$(
        impl<'k> ops::Neg for $lhs<'k> {
            type Output = Val<'k>;
            #[track_caller]
            fn neg(self) -> Val<'k> {
                self.builder.unary(UnaryOp::Neg, self)
            }
        }
        impl<'k> ops::Not for $lhs<'k> {
            type Output = Val<'k>;
            #[track_caller]
            fn not(self) -> Val<'k> {
                self.builder.unary(UnaryOp::Not, self)
            }
        }
    )*};
}
unary_operators! { Val Place Var }

impl KernelBuilder {
    /// Whether an operator that takes such types takes `ty`.
    fn is_taken(&self, takes: Takes, ty: Type) -> bool {
        match takes {
            Takes::Numbers => self.is_number(ty),
            Takes::Integers => self.is_integer(ty),
            Takes::Bits => self.is_integer(ty) || ty == Type::BOOL,
        }
    }

    /// Whether arithmetic is defined on `ty`: numbers, and type parameters bounded by them.
    pub(crate) fn is_number(&self, ty: Type) -> bool {
        use crate::ir::TypeBound::{Float, Int, Num};
        match self.type_data(ty) {
            TypeData::Scalar(s) => !s.is_bool(),
            TypeData::Param(p) => matches!(self.bound(p), Some(Num | Int | Float)),
            _ => false,
        }
    }

    /// Whether bit operations are defined on `ty`.
    pub(crate) fn is_integer(&self, ty: Type) -> bool {
        match self.type_data(ty) {
            TypeData::Scalar(s) => s.is_int(),
            TypeData::Param(p) => self.bound(p) == Some(crate::ir::TypeBound::Int),
            _ => false,
        }
    }
}
