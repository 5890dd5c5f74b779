//! Types on their way from rustc to the IR.

use std::fmt;
use std::iter;
use std::marker::PhantomData;
use std::ops;

use crate::ir::{AddressSpace, Constant, Type, TypeForm, TypeTable};
use crate::value::{DeviceType, KernelValue};

/// The type that rustc infers for an expression of the checked copy. What that borrows ends with the copy, so
/// a longer borrow stands for a shorter one.
pub struct TypeOf<T: ?Sized>(PhantomData<fn() -> *const T>);

impl<T: ?Sized> Copy for TypeOf<T> {}

impl<T: ?Sized> Clone for TypeOf<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> TypeOf<T> {
    /// A type that is still to be inferred. A constant, as functions that are called cost rustc more.
    pub const OPEN: Self = TypeOf(PhantomData);
}

/// The value, which fixes the type.
#[inline(always)]
pub const fn of<T>(_: TypeOf<T>, value: T) -> T {
    value
}

/// What methods of kernels are called on: values, and options and results of anything.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type that kernels can hold",
    label = "kernels do not know this type",
    note = "they know numbers, `bool`, fixed arrays, and structs with `#[derive(Copy, Clone, KernelType)]` and \
            `#[repr(C)]` before them; a struct with slices has `#[derive(KernelView)]` and is written with \
            its lifetime, `View<'_>`"
)]
pub trait Receives {}

#[diagnostic::do_not_recommend]
impl<T: KernelValue> Receives for T {}
#[diagnostic::do_not_recommend]
impl<T> Receives for Option<T> {}
#[diagnostic::do_not_recommend]
impl<T, E> Receives for Result<T, E> {}

/// A type that something in a kernel can have for a while, be it made of references: the type of a `None`, of an `Ok`.
/// How it is made says which implementation is meant, and rustc finds that out.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type that kernels can hold",
    label = "kernels do not know this type"
)]
pub trait InKernels<How> {
    /// The IR type, entered in `types` if it is new.
    fn type_in(types: &mut TypeTable) -> Type;
}

/// How a type is made.
mod how {
    #![allow(missing_debug_implementations, reason = "nothing has such a type")]

    /// A type of values.
    pub struct Value;
    /// A reference.
    pub struct Reference<T>(T);
    /// A reference to a slice.
    pub struct Slice<T>(T);
    /// An `Option`.
    pub struct Option<T>(T);
    /// A `Result`.
    pub struct Result<T, E>(T, E);
    /// `()`.
    pub struct Unit;
    /// A pair with a reference behind a value, before one, or two of them.
    pub struct Second<T>(T);
    pub struct First<T>(T);
    pub struct Both<T, U>(T, U);
}

#[diagnostic::do_not_recommend]
impl<T: KernelValue> InKernels<how::Value> for T {
    fn type_in(types: &mut TypeTable) -> Type {
        T::type_in(types)
    }
}

macro_rules! references {
    ($(($($mutability:tt)?) $mutable:literal;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: InKernels<How>, How> InKernels<how::Reference<How>> for &$($mutability)? T {
            fn type_in(types: &mut TypeTable) -> Type {
                let target = T::type_in(types);
                types.pointer(target, AddressSpace::Generic, $mutable)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: InKernels<How>, How> InKernels<how::Slice<How>> for &$($mutability)? [T] {
            fn type_in(types: &mut TypeTable) -> Type {
                let element = T::type_in(types);
                types.slice(element, AddressSpace::Generic, $mutable)
            }
        }
    )*};
}
references! { () false; (mut) true; }

#[diagnostic::do_not_recommend]
impl<T: InKernels<How>, How> InKernels<how::Option<How>> for Option<T> {
    fn type_in(types: &mut TypeTable) -> Type {
        let value = T::type_in(types);
        super::option::option_type(types, value)
    }
}

#[diagnostic::do_not_recommend]
impl<T: InKernels<A>, E: InKernels<B>, A, B> InKernels<how::Result<A, B>> for Result<T, E> {
    fn type_in(types: &mut TypeTable) -> Type {
        let (value, error) = (T::type_in(types), E::type_in(types));
        super::result::result_type(types, value, error)
    }
}

/// References, of which a pair is no value.
mod referring {
    pub trait Reference {}
    impl<T: ?Sized> Reference for &T {}
    impl<T: ?Sized> Reference for &mut T {}
}

macro_rules! pairs {
    ($([$($generics:tt)*] $first:ident $second:ident $how:ty;)*) => {$(
        /// What `enumerate` and `zip` give of references.
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> InKernels<$how> for ($first, $second) {
            fn type_in(types: &mut TypeTable) -> Type {
                let parts = [$first::type_in(types), $second::type_in(types)];
                super::binding::tuple_type(types, &parts)
            }
        }
    )*};
}
pairs! {
    [A: KernelValue, R: referring::Reference + InKernels<H>, H] A R how::Second<H>;
    [R: referring::Reference + InKernels<H>, H, A: KernelValue] R A how::First<H>;
    [R: referring::Reference + InKernels<H>, H, S: referring::Reference + InKernels<G>, G] R S how::Both<H, G>;
}

#[diagnostic::do_not_recommend]
impl InKernels<how::Unit> for () {
    fn type_in(_: &mut TypeTable) -> Type {
        Type::UNIT
    }
}

/// The type parameter with number `INDEX`, standing for itself while a generic function is
/// described. It has the operators that bounds ask for, so that it meets them; nothing computes with
/// it.
///
/// Of its values there are two, so that constants made of `T::ZERO` and `T::ONE` tell them apart.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Param<const INDEX: usize> {
    is_one: bool,
}

impl<const INDEX: usize> Param<INDEX> {
    /// The 0 of the type.
    pub const ZERO: Self = Param { is_one: false };
    /// The 1 of the type.
    pub const ONE: Self = Param { is_one: true };
}

#[diagnostic::do_not_recommend]
impl<const INDEX: usize> DeviceType for Param<INDEX> {
    const FORM: &'static TypeForm = &TypeForm::param(INDEX as u32);
    fn scalars(&self, out: &mut Vec<Constant>) {
        out.push(match self.is_one {
            true => Constant::Int(1),
            false => Constant::Zero,
        });
    }
}

/// What prints numbers on the host; nobody prints one of these.
macro_rules! printed {
    ($($trait:ident)*) => {$(
        impl<const INDEX: usize> fmt::$trait for Param<INDEX> {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                Ok(())
            }
        }
    )*};
}
printed! { Display LowerHex UpperHex Octal Binary LowerExp UpperExp }

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident;)*) => {$(
        impl<const INDEX: usize> ops::$trait for Param<INDEX> {
            type Output = Self;
            fn $method(self, _: Self) -> Self {
                self
            }
        }
        impl<const INDEX: usize> ops::$assign for Param<INDEX> {
            fn $assign_method(&mut self, _: Self) {}
        }
    )*};
}
operators! {
    Add add AddAssign add_assign;
    Sub sub SubAssign sub_assign;
    Mul mul MulAssign mul_assign;
    Div div DivAssign div_assign;
    Rem rem RemAssign rem_assign;
    BitAnd bitand BitAndAssign bitand_assign;
    BitOr bitor BitOrAssign bitor_assign;
    BitXor bitxor BitXorAssign bitxor_assign;
}

macro_rules! sums {
    ($($trait:ident $method:ident;)*) => {$(
        impl<const INDEX: usize> iter::$trait for Param<INDEX> {
            fn $method<I: Iterator<Item = Self>>(_: I) -> Self {
                Param::ZERO
            }
        }

        impl<'a, const INDEX: usize> iter::$trait<&'a Self> for Param<INDEX> {
            fn $method<I: Iterator<Item = &'a Self>>(_: I) -> Self {
                Param::ZERO
            }
        }
    )*};
}

sums! {
    Sum sum;
    Product product;
}

macro_rules! shifts {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident;)*) => {$(
        impl<const INDEX: usize> ops::$trait<u32> for Param<INDEX> {
            type Output = Self;
            fn $method(self, _: u32) -> Self {
                self
            }
        }
        impl<const INDEX: usize> ops::$assign<u32> for Param<INDEX> {
            fn $assign_method(&mut self, _: u32) {}
        }
    )*};
}
shifts! {
    Shl shl ShlAssign shl_assign;
    Shr shr ShrAssign shr_assign;
}

impl<const INDEX: usize> ops::Neg for Param<INDEX> {
    type Output = Self;
    fn neg(self) -> Self {
        self
    }
}

impl<const INDEX: usize> ops::Not for Param<INDEX> {
    type Output = Self;
    fn not(self) -> Self {
        self
    }
}
