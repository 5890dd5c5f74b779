//! Functions of Rust's `std::mem` that kernels have. Rust has no types of their names, by which kernels find functions, so
//! the macros name these where a path ends with the name of one; what rustc has found for the path says whether it is
//! that.

use crate::ir::{Type, TypeData};

use super::binding::tuple_parts;
use super::operand::Kind;
use super::option::is_option;
use super::slice::exchange;
use super::{CallableFn, Front, Operand, Pooled, TypeOf};

/// What to say about another function of the same name.
const OTHER: &str =
    "this is not a function of kernels; mark it with `#[device_fn]`, or call that of `std::mem`";
/// What to say about slices that are to be exchanged.
const SLICES: &str =
    "a variable that is a slice has no address; exchange slices by `(a, b) = (b, a)`";

macro_rules! functions {
    ($($name:ident = |$front:ident, $($arg:ident),*| $value:expr;)*) => {$(
        /// The function of this name.
        pub mod $name {
            use super::*;

            /// The function as the macros import it.
            #[derive(Debug)]
            pub enum HostFunction {}

            #[diagnostic::do_not_recommend]
            impl<F: ?Sized> CallableFn<F> for HostFunction {
                fn pooled_found(_: &TypeOf<F>) -> Pooled {
                    let name = std::any::type_name::<F>();
                    match name.starts_with(concat!("core::mem::", stringify!($name), "<")) {
                        true => Pooled::call(|$front, _, args| match args {
                            &[$($arg),*] => $value,
                            // rustc has counted them.
                            _ => $front.unit(),
                        }),
                        false => Pooled::call(|front, _, _| front.refuse(OTHER)),
                    }
                }
            }
        }
    )*};
}

functions! {
    swap = |front, a, b| front.swap(a, b);
    replace = |front, to, value| front.replace(to, value);
    take = |front, from| front.take(from);
}

impl<'k> Front<'k> {
    fn swap(self, a: Operand<'k>, b: Operand<'k>) -> Operand<'k> {
        match (a.deref().kind, b.deref().kind) {
            (Kind::Place(a, _), Kind::Place(b, _)) => exchange(a, b),
            _ => return self.refuse(SLICES),
        }
        self.unit()
    }

    fn replace(self, to: Operand<'k>, value: Operand<'k>) -> Operand<'k> {
        let (to, value) = (to.deref(), value.eager());
        let Kind::Place(..) = to.kind else {
            return self.refuse(SLICES);
        };
        let before = to.eager();
        self.assign(to, value);
        before
    }

    fn take(self, from: Operand<'k>) -> Operand<'k> {
        let ty = from.deref().ty();
        match self.is_zero_by_default(ty) {
            true => self.replace(from, self.none(ty)),
            false => self.refuse("`take` is for numbers, `bool`, options, and arrays and tuples of such; name the value with `replace`"),
        }
    }

    /// Whether the default of a type is all zeros, as Rust has it.
    fn is_zero_by_default(self, ty: Type) -> bool {
        let b = self.builder;
        match b.type_data(ty) {
            TypeData::Scalar(_) | TypeData::Param(_) => true,
            TypeData::Array { element, .. } => self.is_zero_by_default(element),
            TypeData::Struct(_) if b.with_types(|types| is_option(types, ty)) => true,
            TypeData::Struct(_) => b
                .with_types(|types| tuple_parts(types, ty))
                .is_some_and(|parts| parts.into_iter().all(|ty| self.is_zero_by_default(ty))),
            TypeData::Unit
            | TypeData::Vector { .. }
            | TypeData::Pointer { .. }
            | TypeData::Slice { .. } => false,
        }
    }
}
