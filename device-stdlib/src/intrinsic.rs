//! Operations of a program's own: [`intrinsic!`](crate::intrinsic!) writes one like the library's.

use half::{bf16, f16};
use kiln_jit_core::ir::{Scalar, TypePattern};
use kiln_jit_core::value::DeviceType;

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
/// Its types are numbers and `bool` ([`RowScalar`]), or nothing for a result. What follows `row(..)` are methods of
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
        $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $result:ty)? $host:block
            = row($row:literal $(, $meaning:expr)? $(,)?) $(.$with:ident($($value:expr),* $(,)?))*;
    )+) => {$(
        $(#[$attribute])*
        $vis fn $name($($arg: $ty),*) $(-> $result)? $host

        #[doc = concat!("What [`", stringify!($name), "()`] is in kernels.")]
        #[allow(non_camel_case_types, dead_code, reason = "it has the name of the function")]
        $vis enum $name {}

        const _: () = ::core::assert!(
            $crate::macros::is_row_name($row),
            "the name of a row has a dot, `my_crate.popc`, which keeps it apart from the rows of others"
        );

        #[allow(dead_code, reason = "a program may use some of it")]
        impl $name {
            /// Its row.
            $vis fn row() -> &'static $crate::macros::IntrinsicDef {
                static ROW: $crate::macros::IntrinsicDef = $crate::macros::IntrinsicDef::new(
                    $row,
                    &[$($crate::macros::pattern_of::<$ty>()),*],
                    $crate::macros::result_of::<$crate::intrinsic!(@result $($result)?)>(),
                    $crate::intrinsic!(@meaning $name($($arg: $ty),*) $($meaning)?),
                )
                $(.$with($($value),*))*;
                &ROW
            }

            /// Builds it.
            #[track_caller]
            $vis fn build<'k>(
                builder: &'k $crate::macros::KernelBuilder
                $(, $arg: impl $crate::macros::IntoVal<'k>)*
            ) -> $crate::macros::Val<'k> {
                let args: &[$crate::macros::Val<'k>] =
                    &[$($arg.into_val(builder, Some(builder.device_type::<$ty>()))),*];
                builder.intrinsic($name::row(), args)
            }
        }

        impl $crate::macros::Callable for $name {
            fn call<'k>(
                front: $crate::macros::Front<'k>,
                _: &[$crate::macros::Type],
                args: &[$crate::macros::Operand<'k>],
            ) -> $crate::macros::Operand<'k> {
                match args {
                    [$($arg),*] => front.value($name::build(front.builder() $(, $arg.target())*)),
                    // rustc has counted them.
                    _ => front.unit(),
                }
            }
        }
    )+};
    (@meaning $name:ident($($arg:ident: $ty:ty),*)) => {
        $crate::macros::Meaning::Pure(|_, args| match args {
            [$($arg),*] => $crate::macros::RowResult::into_bits(
                $name($($crate::macros::RowScalar::from_bits(*$arg)),*)
            ),
            _ => 0,
        })
    };
    (@meaning $name:ident($($arg:ident: $ty:ty),*) $meaning:expr) => {
        $meaning
    };
    (@result) => { () };
    (@result $result:ty) => { $result };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "an intrinsic is a function without type parameters, with its row behind it: \
             `fn popc(x: u32) -> u32 { x.count_ones() } = row(\"example.popc\").with_cells(&[..]);`"
        );
    };
}

/// A type of arguments and results of intrinsics: numbers and `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of an intrinsic",
    label = "not a scalar",
    note = "an intrinsic takes and gives `bool`, `i8` to `i64`, `u8` to `u64`, `f16`, `bf16`, `f32`, `f64`; for a \
            `usize` take a `u32`, which is what kernels hold"
)]
pub trait RowScalar: DeviceType {
    /// The type in the IR.
    const SCALAR: Scalar;
    /// The value with these bits, the others zero ([`Meaning`](kiln_jit_core::ir::Meaning)).
    fn from_bits(bits: u64) -> Self;
    /// Its bits.
    fn bits(self) -> u64;
}

macro_rules! scalars {
    ($($t:ty: $scalar:ident, |$bits:ident| $from:expr, |$value:ident| $into:expr;)*) => {$(
        impl RowScalar for $t {
            const SCALAR: Scalar = Scalar::$scalar;
            fn from_bits($bits: u64) -> Self {
                $from
            }
            fn bits(self) -> u64 {
                let $value = self;
                $into
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

/// A result of intrinsics: a scalar or nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no result of an intrinsic",
    note = "an intrinsic gives a number, a `bool` or nothing"
)]
pub trait RowResult {
    /// The type in the IR.
    const PATTERN: TypePattern;
    /// Its bits.
    fn into_bits(self) -> u64;
}

#[diagnostic::do_not_recommend]
impl<T: RowScalar> RowResult for T {
    const PATTERN: TypePattern = TypePattern::Exact(T::SCALAR);
    fn into_bits(self) -> u64 {
        self.bits()
    }
}

impl RowResult for () {
    const PATTERN: TypePattern = TypePattern::Unit;
    fn into_bits(self) -> u64 {
        0
    }
}

/// The pattern of a parameter of one type.
pub const fn pattern_of<T: RowScalar>() -> TypePattern {
    TypePattern::Exact(T::SCALAR)
}

/// The pattern of a result of one type.
pub const fn result_of<T: RowResult>() -> TypePattern {
    T::PATTERN
}

/// Whether a row of a program can have a name.
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
