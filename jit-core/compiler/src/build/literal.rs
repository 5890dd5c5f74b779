//! What can stand for a value in a builder: values, places, variables and Rust numbers.

use crate::ir::{Constant, Scalar, Type, TypeData};

use super::{BuildErrorKind, KernelBuilder, Place, Val, Var};

/// Something that has a value in the kernel being built.
///
/// A [`Val`] is itself, a [`Place`] or [`Var`] is read, a Rust number is a literal. A literal takes
/// the type it is used with, as an unsuffixed literal does in Rust: in `x * 2.0` the `2.0` has the
/// type of `x`. On its own it has its Rust type.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::build::IntoVal;
///
/// fn clamped<'k>(k: &'k KernelBuilder, x: impl IntoVal<'k>, limit: impl IntoVal<'k>) -> Val<'k> {
///     let by_itself = x.own_type().or(limit.own_type());
///     if limit.known_int() == Some(0) {
///         return k.zero(by_itself.unwrap_or(Type::F32));
///     }
///     let x = x.into_val(k, by_itself);
///     x.min(limit)
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let clamp = Kernel::build("clamp", |k| {
///     let x = k.slice_mut("x", k.ty::<f32>());
///     x.at(0).set(clamped(k, x.at(0), 1.5));
///     x.at(1).set(clamped(k, x.at(1), 0));
/// })?;
/// let jit = Jit::new()?;
/// let mut x = jit.upload(&[8.0f32, 8.0])?;
/// jit.launch(&clamp, 1, 1, args!(&mut x))?;
/// assert_eq!(x.to_vec()?, [1.5, 0.0]);
/// # Ok(())
/// # }
/// ```
pub trait IntoVal<'k>: Copy {
    /// The type it has by itself; `None` for a literal, which adapts.
    fn own_type(&self) -> Option<Type>;
    /// The value, of type `like` if this is a literal and `like` is given.
    #[track_caller]
    fn into_val(self, builder: &'k KernelBuilder, like: Option<Type>) -> Val<'k>;
    /// The integer it is, if it is a literal.
    fn known_int(&self) -> Option<i128> {
        None
    }
}

impl<'k> IntoVal<'k> for Val<'k> {
    fn own_type(&self) -> Option<Type> {
        Some(self.ty)
    }
    #[track_caller]
    fn into_val(self, builder: &'k KernelBuilder, _like: Option<Type>) -> Val<'k> {
        builder.adopt(self)
    }
}

impl<'k> IntoVal<'k> for Place<'k> {
    fn own_type(&self) -> Option<Type> {
        Some(self.ty)
    }
    #[track_caller]
    fn into_val(self, builder: &'k KernelBuilder, _like: Option<Type>) -> Val<'k> {
        builder.adopt(self.get())
    }
}

impl<'k> IntoVal<'k> for Var<'k> {
    fn own_type(&self) -> Option<Type> {
        Some(self.ty)
    }
    #[track_caller]
    fn into_val(self, builder: &'k KernelBuilder, _like: Option<Type>) -> Val<'k> {
        builder.adopt(self.get())
    }
}

macro_rules! literals {
    ($($rust:ty => $scalar:ident, $constant:ident as $wide:ty;)*) => {$(
        impl<'k> IntoVal<'k> for $rust {
            fn own_type(&self) -> Option<Type> {
                None
            }
            #[track_caller]
            fn into_val(self, builder: &'k KernelBuilder, like: Option<Type>) -> Val<'k> {
                let own = Type::scalar(Scalar::$scalar);
                builder.literal(Constant::$constant(self as $wide), like.unwrap_or(own))
            }
            fn known_int(&self) -> Option<i128> {
                integer(Constant::$constant(*self as $wide))
            }
        }
    )*};
}
literals! {
    i8 => I8, Int as i128;
    i16 => I16, Int as i128;
    i32 => I32, Int as i128;
    i64 => I64, Int as i128;
    u8 => U8, Int as i128;
    u16 => U16, Int as i128;
    u32 => U32, Int as i128;
    u64 => U64, Int as i128;
    f32 => F32, Float as f64;
    f64 => F64, Float as f64;
}

/// The integer that a constant is.
fn integer(constant: Constant) -> Option<i128> {
    match constant {
        Constant::Int(n) => Some(n),
        Constant::Float(_) | Constant::Bool(_) | Constant::Zero => None,
    }
}

impl<'k> IntoVal<'k> for bool {
    fn own_type(&self) -> Option<Type> {
        None
    }
    #[track_caller]
    fn into_val(self, builder: &'k KernelBuilder, like: Option<Type>) -> Val<'k> {
        builder.literal(Constant::Bool(self), like.unwrap_or(Type::BOOL))
    }
}

/// Whether `constant` is a value of `data`, and what to say if it is not.
pub(super) fn fits(constant: Constant, data: &TypeData) -> Result<(), &'static str> {
    match (constant, data) {
        // The bound type decides; specialization checks again.
        (Constant::Int(_) | Constant::Float(_), TypeData::Param(_)) => Ok(()),
        (Constant::Zero, _) => Ok(()),
        (Constant::Bool(_), TypeData::Scalar(s)) if s.is_bool() => Ok(()),
        (Constant::Int(n), TypeData::Scalar(s)) if s.is_int() => match s.holds(n) {
            true => Ok(()),
            false => Err("it is out of range"),
        },
        (Constant::Int(_) | Constant::Float(_), TypeData::Scalar(s)) if s.is_float() => Ok(()),
        (Constant::Float(_), TypeData::Scalar(s)) if s.is_int() => Err("write it without a point"),
        (Constant::Bool(_), TypeData::Scalar(_)) => {
            Err("use `select` to turn a bool into a number")
        }
        (Constant::Int(_) | Constant::Float(_), TypeData::Scalar(_)) => {
            Err("write `true` or `false`, or compare with 0")
        }
        (
            Constant::Bool(_) | Constant::Int(_) | Constant::Float(_),
            TypeData::Unit
            | TypeData::Vector { .. }
            | TypeData::Array { .. }
            | TypeData::Struct(_)
            | TypeData::Pointer { .. }
            | TypeData::Slice { .. }
            | TypeData::Param(_),
        ) => Err("literals are scalars; use `construct` or `splat`"),
    }
}

impl KernelBuilder {
    /// A literal of type `ty`.
    #[track_caller]
    pub(super) fn literal(&self, constant: Constant, ty: Type) -> Val<'_> {
        let verdict = fits(constant, self.state.borrow().module.types.data(ty));
        if let Err(hint) = verdict {
            let literal = match constant {
                Constant::Bool(b) => b.to_string(),
                Constant::Int(n) => n.to_string(),
                Constant::Float(x) => format!("{x:?}"),
                Constant::Zero => "0".to_owned(),
            };
            return self.error(
                BuildErrorKind::Literal {
                    literal,
                    ty: self.type_name(ty),
                    hint,
                },
                ty,
            );
        }
        self.constant(constant, ty)
    }
}
