//! Operations of a program's own: [`intrinsic!`](crate::intrinsic!) writes one like the library's.

use std::marker::PhantomData;

use half::{bf16, f16};
use kiln_jit_core::build::{DeviceFn, IntoVal, KernelBuilder, Val};
use kiln_jit_core::front::macros::{Callable, Front, Operand};
use kiln_jit_core::ir::{
    AddressSpace, Effects, IntrinsicDef, Meaning, Module, Scalar, Type, TypePattern,
};
use kiln_jit_core::value::{BF16x2, DeviceType, F16x2, F32x2, F32x4, F64x2, I32x4, U32x4, U64x2};

/// Functions that are one operation: an instruction that Kiln has no name for, or a register.
///
/// Each is written as the function that it is on the host, which is what it means everywhere, and behind the
/// `=` its row: a name that no other row of a kernel has, and how machines have it. It then is
///
/// - a function of the host, `popc(x)`;
/// - a function of `#[kernel]` and `#[device_fn]` functions, where the machine's instruction takes its place;
/// - a function of the builder, `popc::build(k, x)`;
/// - a row, `popc::row()`, for hooks and tests.
///
/// ```
/// use kiln::core::ir::{Cell, Family, Scalar};
/// use kiln::prelude::*;
///
/// kiln::intrinsic! {
///     /// How many bits are ones.
///     pub fn popc(x: u32) -> u32 {
///         x.count_ones()
///     } = row("example.popc").with_cells(&[Cell::overloaded(Family::Any, Scalar::U32, "llvm.ctpop")]);
///
///     /// The upper half of a product.
///     fn mul_high(x: u32, y: u32) -> u32 {
///         (u64::from(x) * u64::from(y) >> 32) as u32
///     } = row("example.mul_high")
///         .with_cells(&[Cell::asm(Family::PTX, None, "mul.hi.u32 $0, $1, $2;", "=r,r,r")]);
/// }
///
/// #[kernel]
/// fn hash(x: &mut [u32]) {
///     let i = global_id().x;
///     if i < x.len() {
///         x[i] = mul_high(x[i], 0x9e37_79b9) ^ popc(x[i]);
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let mut x = jit.upload(&[123_456_789])?;
/// hash.launch(&jit, (1, 32), &mut x)?;
/// assert_eq!(x.to_vec()?, [mul_high(123_456_789, 0x9e37_79b9) ^ popc(123_456_789)]);
/// # Ok(())
/// # }
/// ```
///
/// Its types are numbers and `bool`, vectors, arrays and references ([`RowType`]), for a result also tuples, or
/// nothing ([`RowResult`]). It may have a type parameter, with what
/// that can be, in brackets, `any` scalar, or `each`: any scalar, and a struct, a tuple, an array or a vector of them,
/// for each number of which the operation is executed. The type that it is called with chooses the cell. An argument that
/// is a part of the instruction is a literal: a function of `Option<i128>` says behind `where` what it may be.
///
/// ```
/// use kiln::core::ir::{Cell, Family, Scalar};
/// use kiln::prelude::*;
///
/// fn distance(n: Option<i128>) -> Result<(), String> {
///     match n {
///         Some(0..32) => Ok(()),
///         _ => Err("a literal below 32 for its distance".to_owned()),
///     }
/// }
///
/// kiln::intrinsic! {
///     /// The larger number.
///     fn larger<T: Int = [i32, u32]>(x: T, y: T) -> T {
///         x.max(y)
///     } = row("example.larger").with_cells(&[
///         Cell::overloaded(Family::Any, Scalar::I32, "llvm.smax"),
///         Cell::overloaded(Family::Any, Scalar::U32, "llvm.umax"),
///     ]);
///
///     /// The bits, turned.
///     fn turned(x: u32, by: u32) -> u32
///         where by is distance
///     {
///         x.rotate_left(by)
///     } = row("example.turned")
///         .with_cells(&[Cell::asm(Family::PTX, None, "shf.l.wrap.b32 $0, $1, $1, $2;", "=r,r,r")]);
/// }
///
/// #[kernel]
/// fn mix(x: &mut [u32], y: &[i32]) {
///     x[0] = larger(x[0], turned(x[1], 7)) + larger(y[0], -5) as u32;
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let (mut x, y) = (jit.upload(&[1, 0x8000_0001])?, jit.upload(&[-7])?);
/// mix.launch(&jit, (1, 1), &mut x, &y)?;
/// assert_eq!(x.to_vec()?[0], 0xc0 - 5);
/// # Ok(())
/// # }
/// ```
///
/// What takes or gives more than scalars is, where a machine has no cell for it, a device function, whose name
/// stands in place of a body. What takes a reference reads or writes memory, and says so.
///
/// ```
/// use kiln::core::ir::{Cell, Effects, Family};
/// use kiln::prelude::*;
///
/// #[device_fn]
/// fn replaced(place: &mut u32, new: u32) -> (u32, bool) {
///     let old = *place;
///     *place = new;
///     (old, old != new)
/// }
///
/// kiln::intrinsic! {
///     /// Writes `new`, and gives what was there and whether that is something else.
///     fn swap(place: &mut u32, new: u32) -> (u32, bool) = row("example.swap", replaced)
///         .with_effects(Effects::Memory)
///         .with_cells(&[Cell::asm(
///             Family::PTX,
///             None,
///             "{ .reg .pred p; ld.u32 $0, [$2]; st.u32 [$2], $3; setp.ne.u32 p, $0, $3; selp.u32 $1, 1, 0, p; }",
///             "=&r,=&r,l,r,~{memory}",
///         )]);
/// }
///
/// #[kernel]
/// fn count_changes(x: &mut [u32], changes: &mut [u32]) {
///     let i = global_id().x;
///     if i < x.len() {
///         let (old, changed) = swap(&mut x[i], 7);
///         if changed {
///             atomic_add(&mut changes[0], old);
///         }
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let (mut x, mut changes) = (jit.upload(&[7, 5, 3])?, jit.zeros(1)?);
/// count_changes.launch(&jit, (1, 32), &mut x, &mut changes)?;
/// assert_eq!((x.to_vec()?, changes.to_vec()?), (vec![7; 3], vec![8]));
/// # Ok(())
/// # }
/// ```
///
/// What follows `row(..)` are methods of
/// [`IntrinsicDef`](kiln_jit_core::ir::IntrinsicDef). A machine without a cell is an error at the launch that
/// names operation and machine; a CPU calls the function itself where there is none for it. An operation that
/// tells where its thread is has another meaning than its function of the host, and says so:
/// `row("example.lane", Meaning::Position(|at| at.lane().into()))`.
///
/// A row without a dot in its name is refused, so that rows of programs and of the library keep apart:
///
/// ```compile_fail
/// kiln::intrinsic! {
///     fn popc(x: u32) -> u32 { x.count_ones() } = row("popc");
/// }
/// ```
#[macro_export]
macro_rules! intrinsic {
    ($(
        $(#[$attribute:meta])*
        $vis:vis fn $name:ident $(<$t:ident: $bound:path = $scalars:tt>)?
            ($($arg:ident: $ty:ty),* $(,)?) $(-> $result:ty)?
            $(where $($checked:ident is $check:path),+)?
            $($host:block)?
            = row($row:literal $(, $($meaning:tt)+)?) $(.$with:ident($($value:expr),* $(,)?))*;
    )+) => {$(
        $(#[$attribute])*
        $vis fn $name $(<$t: $bound>)? ($($arg: $ty),*) $(-> $result)? {
            $crate::intrinsic!(@host [$($host)?] ($($arg),*) $($($meaning)+)?)
        }

        #[doc = concat!("What [`", stringify!($name), "()`] is in kernels.")]
        #[allow(non_camel_case_types, dead_code, reason = "it has the name of the function")]
        $vis enum $name {}

        const _: () = ::core::assert!(
            $crate::macros::is_row_name($row),
            "the name of a row has a dot, `my_crate.popc`, which keeps it apart from the rows of others"
        );

        $(impl $crate::macros::Choice for $name {
            const SCALARS: &'static [$crate::macros::Scalar] = $crate::intrinsic!(@scalars $t $scalars);
            $crate::intrinsic!(@pattern $scalars);
        })?

        #[allow(dead_code, reason = "a program may use some of it")]
        impl $name {
            /// The row of this intrinsic.
            $vis fn row() -> &'static $crate::macros::IntrinsicDef {
                $(type $t = $crate::macros::Open<$name>;)?
                const PARAMS: &[$crate::macros::TypePattern] = &$crate::macros::params(
                    [$(<$ty as $crate::macros::RowType>::FIRST),*],
                    [$(<$ty as $crate::macros::RowType>::LATER),*],
                );
                const RESULT: $crate::macros::TypePattern =
                    <$crate::intrinsic!(@result $($result)?) as $crate::macros::RowResult>::PATTERN;
                static ROW: $crate::macros::IntrinsicDef = $crate::macros::IntrinsicDef::new(
                    $row,
                    PARAMS,
                    RESULT,
                    $crate::intrinsic!(
                        @meaning $name [$($host)?] [$($t = $scalars)?]
                        {$row: $($arg: $ty),* => $crate::intrinsic!(@result $($result)?)}
                        $($($meaning)+)?
                    ),
                )
                $(.$with($($value),*))*;
                const _: () = ::core::assert!(
                    $crate::macros::has_meaning(&ROW),
                    "an intrinsic of more than scalars is a function of kernels where a machine has no cell for it: \
                     write that as a `#[device_fn]`, and its name behind that of the row in place of a body, \
                     `fn f(..) -> .. = row(\"my_crate.f\", name);`"
                );
                const _: () = ::core::assert!(
                    $crate::macros::says_memory(&ROW),
                    "an intrinsic that takes references reads or writes memory, and says so: \
                     `row(..).with_effects(Effects::Memory)`"
                );
                &ROW
            }

            /// Builds it.
            #[track_caller]
            $vis fn build<'k>(
                builder: &'k $crate::macros::KernelBuilder
                $(, $arg: impl $crate::macros::IntoVal<'k>)*
            ) -> $crate::macros::Val<'k> {
                $(type $t = $crate::macros::Open<$name>;)?
                let chosen = &mut ::core::option::Option::None::<$crate::macros::Type>;
                let args: &[$crate::macros::Val<'k>] =
                    &[$(<$ty as $crate::macros::RowType>::argument($arg, builder, chosen)),*];
                $($(
                    if let ::core::result::Result::Err(wanted) = $check($checked.known_int()) {
                        let message = ::std::format!("`{}` takes {}", $row, wanted);
                        return builder.intrinsic_error(message, chosen.unwrap_or($crate::macros::Type::U32));
                    }
                )+)?
                let _ = chosen;
                builder.intrinsic($name::row(), args)
            }
        }

        #[diagnostic::do_not_recommend]
        impl $crate::macros::Callable for $name {
            fn call<'k>(
                front: $crate::macros::Front<'k>,
                _: &[$crate::macros::Type],
                args: &[$crate::macros::Operand<'k>],
            ) -> $crate::macros::Operand<'k> {
                $(type $t = $crate::macros::Open<$name>;)?
                match args {
                    [$($arg),*] => front.value($name::build(
                        front.builder()
                        $(, <$ty as $crate::macros::RowType>::operand(*$arg))*
                    )),
                    // rustc has counted them.
                    _ => front.unit(),
                }
            }
        }
    )+};

    (@scalars $t:ident any) => { &$crate::macros::Scalar::ALL };
    (@scalars $t:ident each) => { &$crate::macros::Scalar::ALL };
    (@scalars $t:ident [$($scalar:ty),+ $(,)?]) => {
        &[$(<$scalar as $crate::macros::RowScalar>::SCALAR),+]
    };

    (@pattern each) => {
        const PATTERN: $crate::macros::TypePattern = $crate::macros::TypePattern::Each(Self::SCALARS);
    };
    (@pattern $scalars:tt) => {};

    (@host [$host:block] $args:tt $($meaning:tt)*) => { $host };
    (@host [] ($($arg:ident),*) $function:path) => { $function($($arg),*) };
    (@host [] $args:tt $($meaning:tt)*) => {
        ::core::compile_error!(
            "an intrinsic has a body, or the name of a `#[device_fn]` that is its body behind that of its row: \
             `fn divide(x: u32, y: u32) -> (u32, u32) = row(\"example.divide\", quotient_and_remainder);`"
        )
    };

    (@meaning $name:ident [$host:block] [] $args:tt) => {
        $crate::macros::Meaning::Pure(|_, args| $crate::intrinsic!(@apply $name args $args))
    };
    (@meaning $name:ident [$host:block] [$t:ident = each] $args:tt) => {
        $crate::intrinsic!(@meaning $name [$host] [$t = any] $args)
    };
    (@meaning $name:ident [$host:block] [$t:ident = any] $args:tt) => {
        $crate::intrinsic!(
            @meaning $name [$host]
            [$t = [
                bool, i8, i16, i32, i64, u8, u16, u32, u64,
                $crate::macros::f16, $crate::macros::bf16, f32, f64
            ]]
            $args
        )
    };
    (@meaning $name:ident [$host:block] [$t:ident = [$($scalar:ty),+ $(,)?]] $args:tt) => {
        $crate::macros::Meaning::Pure(|chosen, args| {
            $(if chosen == <$scalar as $crate::macros::RowScalar>::SCALAR {
                type $t = $scalar;
                return $crate::intrinsic!(@apply $name args $args);
            })+
            let _ = args;
            0
        })
    };
    (@meaning $name:ident [$host:block] $scalars:tt $args:tt $($meaning:tt)+) => {
        $($meaning)+
    };
    (
        @meaning $name:ident [] $scalars:tt {$row:literal: $($arg:ident: $ty:ty),* => $result:ty}
        $function:path
    ) => {
        $crate::macros::Meaning::Body(|chosen| {
            $crate::macros::function::<$function>($row, &[
                $((::core::stringify!($arg), &|front| {
                    <$ty as $crate::macros::RowType>::ty(front, chosen)
                })),*
            ])
        })
    };
    (@meaning $($other:tt)*) => {
        $crate::macros::Meaning::Body(|_| ::core::option::Option::None)
    };
    (@apply $name:ident $bits:ident {$row:literal: $($arg:ident: $ty:ty),* => $result:ty}) => {
        match $bits {
            [$($arg),*] => match ($(<$ty as $crate::macros::RowType>::from_bits(*$arg),)*) {
                ($(::core::option::Option::Some($arg),)*) => {
                    <$result as $crate::macros::RowResult>::into_bits($name($($arg),*))
                }
                #[allow(unreachable_patterns, reason = "without arguments there are none to miss")]
                _ => 0,
            },
            _ => 0,
        }
    };
    (@result) => { () };
    (@result $result:ty) => { $result };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "an intrinsic is a function with its row behind it, \
             `fn popc(x: u32) -> u32 { x.count_ones() } = row(\"example.popc\").with_cells(&[..]);`, \
             and a type parameter says what it can be, `<T: Num = [u32, u64]>`"
        );
    };
}

/// A type of arguments of intrinsics: numbers and `bool`, vectors and fixed arrays of them, and references to
/// those.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of an intrinsic",
    label = "no registers hold it",
    note = "an intrinsic takes and gives `bool`, `i8` to `i64`, `u8` to `u64`, `f16`, `bf16`, `f32`, `f64`, arrays of \
            them and `F32x4` and its kind; it takes references, `&mut u32`, and gives tuples. For a `usize` take a \
            `u32`, which is what kernels hold"
)]
pub trait RowType {
    /// The pattern of this type in a row, before another parameter has left a choice.
    const FIRST: TypePattern;
    /// The pattern of this type in a row where a parameter before has left the choice.
    const LATER: TypePattern = Self::FIRST;

    /// The value with these bits, the others zero ([`Meaning`]), of a scalar.
    fn from_bits(bits: u64) -> Option<Self>
    where
        Self: Sized,
    {
        let _ = bits;
        None
    }

    /// The type in kernels, where arguments choose `chosen`.
    fn ty(front: Front<'_>, chosen: Scalar) -> Type;

    /// An argument of a call in a kernel.
    fn operand(arg: Operand<'_>) -> Operand<'_> {
        arg.target()
    }

    /// An argument of the builder. `chosen` is the type that the arguments before have chosen.
    #[track_caller]
    fn argument<'k>(
        arg: impl IntoVal<'k>,
        builder: &'k KernelBuilder,
        chosen: &mut Option<Type>,
    ) -> Val<'k> {
        let _ = chosen;
        arg.into_val(builder, None)
    }
}

/// Numbers and `bool`.
pub trait RowScalar: DeviceType {
    /// The type in the IR.
    const SCALAR: Scalar;
    /// The bits of the number.
    fn bits(self) -> u64;
}

macro_rules! scalars {
    ($($t:ty: $scalar:ident, |$bits:ident| $from:expr, |$value:ident| $into:expr;)*) => {$(
        impl RowScalar for $t {
            const SCALAR: Scalar = Scalar::$scalar;
            fn bits(self) -> u64 {
                let $value = self;
                $into
            }
        }

        impl RowType for $t {
            const FIRST: TypePattern = TypePattern::Exact(Scalar::$scalar);
            fn from_bits($bits: u64) -> Option<Self> {
                Some($from)
            }
            fn ty(_: Front<'_>, _: Scalar) -> Type {
                Type::scalar(Scalar::$scalar)
            }
            #[track_caller]
            fn argument<'k>(
                arg: impl IntoVal<'k>,
                builder: &'k KernelBuilder,
                _: &mut Option<Type>,
            ) -> Val<'k> {
                arg.into_val(builder, Some(Type::scalar(Scalar::$scalar)))
            }
        }

        impl RowResult for $t {
            const PATTERN: TypePattern = TypePattern::Exact(Scalar::$scalar);
            fn into_bits(self) -> u64 {
                self.bits()
            }
        }
    )*};
}
scalars! {
    bool: Bool, |bits| bits & 1 == 1, |value| value.into();
    u8: U8, |bits| bits as u8, |value| value.into();
    u16: U16, |bits| bits as u16, |value| value.into();
    u32: U32, |bits| bits as u32, |value| value.into();
    u64: U64, |bits| bits, |value| value;
    i8: I8, |bits| bits as i8, |value| (value as u8).into();
    i16: I16, |bits| bits as i16, |value| (value as u16).into();
    i32: I32, |bits| bits as i32, |value| (value as u32).into();
    i64: I64, |bits| bits as i64, |value| value as u64;
    f16: F16, |bits| f16::from_bits(bits as u16), |value| value.to_bits().into();
    bf16: BF16, |bits| bf16::from_bits(bits as u16), |value| value.to_bits().into();
    f32: F32, |bits| f32::from_bits(bits as u32), |value| value.to_bits().into();
    f64: F64, |bits| f64::from_bits(bits), |value| value.to_bits();
}

macro_rules! vectors {
    ($($t:ident: $scalar:ident $lanes:literal;)*) => {$(
        impl RowType for $t {
            const FIRST: TypePattern =
                TypePattern::Vector(&TypePattern::Exact(Scalar::$scalar), $lanes);
            fn ty(front: Front<'_>, _: Scalar) -> Type {
                front.builder().device_type::<$t>()
            }
        }

        impl RowResult for $t {
            const PATTERN: TypePattern = <$t as RowType>::FIRST;
        }
    )*};
}
vectors! { F16x2: F16 2; BF16x2: BF16 2; F32x2: F32 2; F32x4: F32 4; F64x2: F64 2; I32x4: I32 4; U32x4: U32 4; U64x2: U64 2; }

impl<T: RowType, const N: usize> RowType for [T; N] {
    const FIRST: TypePattern = TypePattern::Array(&T::FIRST, N as u64);
    const LATER: TypePattern = TypePattern::Array(&T::LATER, N as u64);
    fn ty(front: Front<'_>, chosen: Scalar) -> Type {
        front.builder().array(T::ty(front, chosen), N as u64)
    }
}

impl<T: RowResult, const N: usize> RowResult for [T; N] {
    const PATTERN: TypePattern = TypePattern::Array(&T::PATTERN, N as u64);
}

macro_rules! references {
    ($($t:ty: $mutable:literal;)*) => {$(
        impl<T: RowType + ?Sized> RowType for $t {
            const FIRST: TypePattern = reference(&T::FIRST, $mutable);
            const LATER: TypePattern = reference(&T::LATER, $mutable);
            fn ty(front: Front<'_>, chosen: Scalar) -> Type {
                front.reference_type(T::ty(front, chosen), false, $mutable)
            }
            fn operand(arg: Operand<'_>) -> Operand<'_> {
                arg
            }
            #[track_caller]
            fn argument<'k>(
                arg: impl IntoVal<'k>,
                builder: &'k KernelBuilder,
                chosen: &mut Option<Type>,
            ) -> Val<'k> {
                let (value, front) = (arg.into_val(builder, None), Front::new(builder));
                let target = front.referent(value.ty());
                if let (Some(target), true) = (target, T::FIRST.has_choice()) {
                    chosen.get_or_insert(target);
                }
                match target {
                    Some(target) => {
                        front.passed(value, front.reference_type(target, false, $mutable))
                    }
                    None => value,
                }
            }
        }
    )*};
}
references! { &T: false; &mut T: true; }

/// A reference into any memory.
const fn reference(to: &'static TypePattern, mutable: bool) -> TypePattern {
    TypePattern::Pointer {
        to,
        space: AddressSpace::Generic,
        mutable,
    }
}

macro_rules! tuples {
    ($(($($t:ident)*))*) => {$(
        impl<$($t: RowResult),*> RowResult for ($($t,)*) {
            const PATTERN: TypePattern = TypePattern::Tuple(&[$($t::PATTERN),*]);
        }
    )*};
}
tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H) }

/// An intrinsic with a type parameter: what that can be.
pub trait Choice {
    /// The types.
    const SCALARS: &'static [Scalar];
    /// What a parameter of it takes.
    const PATTERN: TypePattern = TypePattern::OneOf(Self::SCALARS);
}

/// The type parameter of an intrinsic, as it is in the row.
pub struct Open<C>(PhantomData<C>);

impl<C: Choice> RowType for Open<C> {
    const FIRST: TypePattern = C::PATTERN;
    const LATER: TypePattern = TypePattern::Chosen;
    fn ty(_: Front<'_>, chosen: Scalar) -> Type {
        Type::scalar(chosen)
    }
    #[track_caller]
    fn argument<'k>(
        arg: impl IntoVal<'k>,
        builder: &'k KernelBuilder,
        chosen: &mut Option<Type>,
    ) -> Val<'k> {
        let value = arg.into_val(builder, *chosen);
        chosen.get_or_insert(value.ty());
        value
    }
}

/// A result of intrinsics: what they take but references, tuples of that, or nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no result of an intrinsic",
    label = "no registers hold it",
    note = "an intrinsic gives numbers, `bool`, arrays of them, `F32x4` and its kind, tuples of these, or nothing. \
            For a `usize` give a `u32`, which is what kernels hold"
)]
pub trait RowResult {
    /// The pattern of this result in a row.
    const PATTERN: TypePattern;
    /// The bits of a scalar result.
    fn into_bits(self) -> u64
    where
        Self: Sized,
    {
        0
    }
}

impl RowResult for () {
    const PATTERN: TypePattern = TypePattern::Unit;
}

#[diagnostic::do_not_recommend]
impl<C: Choice> RowResult for Open<C> {
    const PATTERN: TypePattern = TypePattern::Chosen;
}

/// The body of an intrinsic that a device function is: of what a call of it builds for parameters of these
/// names and types.
#[doc(hidden)]
pub fn function<F: Callable>(
    name: &str,
    params: &[(&str, &dyn Fn(Front<'_>) -> Type)],
) -> Option<Module> {
    let body = DeviceFn::build(name, |k| {
        let front = Front::new(k);
        let mut args = Vec::new();
        for (name, ty) in params {
            args.push(front.param(name, ty(front), false, false));
        }
        let result = F::call(front, &[], &args).read();
        if result.ty() != Type::UNIT {
            k.return_value(result);
        }
    });
    body.and_then(|body| body.linked()).ok()
}

/// The parameters of a row: up to the first one that leaves a choice as they are first, the others as they are
/// later.
#[doc(hidden)]
pub const fn params<const N: usize>(
    first: [TypePattern; N],
    later: [TypePattern; N],
) -> [TypePattern; N] {
    let mut params = first;
    let (mut at, mut chosen) = (0, false);
    while at < N {
        if chosen {
            params[at] = later[at];
        }
        chosen = chosen || first[at].has_choice();
        at += 1;
    }
    params
}

/// Whether a row has a meaning for what it takes and gives: a function of kernels, if that is more than scalars.
#[doc(hidden)]
pub const fn has_meaning(row: &IntrinsicDef) -> bool {
    let (mut at, mut scalars) = (0, row.result.is_scalar());
    while at < row.params.len() {
        scalars = scalars && row.params[at].is_scalar();
        at += 1;
    }
    scalars || matches!(row.meaning, Meaning::Body(_) | Meaning::Grid)
}

/// Whether a row that takes references says that it reads or writes memory.
#[doc(hidden)]
pub const fn says_memory(row: &IntrinsicDef) -> bool {
    let (mut at, mut references) = (0, false);
    while at < row.params.len() {
        references = references || matches!(row.params[at], TypePattern::Pointer { .. });
        at += 1;
    }
    !references || matches!(row.effects, Effects::Memory)
}

/// Whether a row of a program can have a name.
#[doc(hidden)]
pub const fn is_row_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut at = 1;
    while at + 1 < bytes.len() {
        if bytes[at] == b'.' {
            return true;
        }
        at += 1;
    }
    false
}
