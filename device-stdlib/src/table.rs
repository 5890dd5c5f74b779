//! The tables of methods. A method of numbers is one row of its chapter's table, from which it has
//!
//! - its method of values in the builder, `Val::sqrt`;
//! - its method in `#[kernel]` functions, `x.sqrt()`, and by its path, `f32::sqrt(x)`;
//! - where type parameters have it, its function on the host;
//! - its row of intrinsics, if it has one, in the chapter's `rows()`;
//! - its documentation, in all of these.
//!
//! A row is written like the method,
//!
//! ```text
//! /// The power with an exponent of the same type.
//! fn powf(self, exponent: Self) -> Self = function!("math.pow", power::pow);
//! ```
//!
//! with `Self`, `bool`, integers and, for a result, `(Self, Self)` for types. Behind the `=` is what it builds. [`builds!`] is an expression of
//! the receiver and the arguments, which are a [`Val`](kiln_jit_core::build::Val) where they have the
//! receiver's type, else an [`IntoVal`](kiln_jit_core::build::IntoVal). A chapter may have more of such
//! macros: with `@row` they give the row of intrinsics, with `@build` the expression. On the host it is
//! the method of this name that the number has in Rust, or what `host(|x, exponent| ..)` before the `=`
//! says. Methods under `known` are not in the host's trait: a type parameter has none of them.

/// Writes all that the rows of a table stand for.
macro_rules! methods {
    (
        $(#[$host_doc:meta])*
        host $host:ident: [$($super:tt)*] on [$($t:ty),* $(,)?];
        $(#[$doc:meta])*
        builder $builder:ident;
        $(all { $($all:tt)* })?
        $(known { $($known:tt)* })?
    ) => {
        $crate::table::methods! { @trait [$(#[$host_doc])*] $host [$($super)*] $($($all)*)? }
        $crate::table::methods! { @hosts $host [$($t),*] { $($($all)*)? } }
        $crate::table::methods! {
            host $host;
            $(#[$doc])*
            builder $builder;
            all { $($($all)*)? $($($known)*)? }
        }
    };
    (
        host $host:ident;
        $(#[$doc:meta])*
        builder $builder:ident;
        all { $($rows:tt)* }
    ) => {
        $crate::table::methods! { @builder [$(#[$doc])*] $builder $($rows)* }
        $crate::table::methods! { @kernels $host $builder $($rows)* }
        $crate::table::methods! { @rows $($rows)* }
    };

    // What a bound on a type parameter brings.
    (@trait [$($doc:tt)*] $host:ident [$($super:tt)*] $(
        $(#[$row_doc:meta])*
        fn $name:ident(self $(, $arg:ident: $ty:ident)*) -> $result:tt
            $(host($($own:tt)*))? = $form:ident!($($how:tt)*);
    )*) => {
        $($doc)*
        #[allow(unused_parens, reason = "what a row says of its result is one token to macros")]
        #[allow(
            clippy::wrong_self_convention,
            reason = "the names are those of Rust's methods, which take numbers by value, too"
        )]
        pub trait $host: $($super)* {$(
            $(#[$row_doc])*
            fn $name(self $(, $arg: $ty)*) -> $result;
        )*}
    };
    (@hosts $host:ident [$($t:ty),*] $rows:tt) => {
        $($crate::table::methods! { @host $host $t; $rows })*
        $crate::table::methods! { @param $host $rows }
    };
    (@host $host:ident $t:ty; { $(
        $(#[$row_doc:meta])*
        fn $name:ident(self $(, $arg:ident: $ty:ident)*) -> $result:tt
            $(host($($own:tt)*))? = $form:ident!($($how:tt)*);
    )* }) => {
        #[allow(unused_parens, reason = "what a row says of its result is one token to macros")]
        impl $host for $t {$(
            fn $name(self $(, $arg: $ty)*) -> $result {
                $crate::table::methods! {
                    @on_host $name(self $(, $arg)*) -> $result $(host($($own)*))?
                }
            }
        )*}
    };
    (@on_host $name:ident($x:ident $(, $arg:ident)*) -> $result:tt) => {
        <$result as $crate::table::Widened>::narrowed(
            <Self as $crate::table::Widened>::Wide::$name(
                $crate::table::Widened::widened($x)
                $(, $crate::table::Widened::widened($arg))*
            ),
        )
    };
    (@on_host $name:ident($($arg:ident),*) -> $result:tt host(|$($own:ident),*| $value:expr)) => {{
        let ($($own,)*) = ($($arg,)*);
        $value
    }};
    // A type parameter meets every bound while the function it belongs to is described; its own bound
    // decides what the IR allows. Nothing here is called.
    (@param $host:ident { $(
        $(#[$row_doc:meta])*
        fn $name:ident(self $(, $arg:ident: $ty:ident)*) -> $result:tt
            $(host($($own:tt)*))? = $form:ident!($($how:tt)*);
    )* }) => {
        #[allow(unused_parens, reason = "what a row says of its result is one token to macros")]
        impl<const INDEX: usize> $host for ::kiln_jit_core::front::macros::Param<INDEX> {$(
            fn $name(self $(, $arg: $ty)*) -> $result {
                $(let _ = $arg;)*
                <$result>::default()
            }
        )*}
    };

    (@builder [$($doc:tt)*] $builder:ident $(
        $(#[$row_doc:meta])*
        fn $name:ident(self $(, $arg:ident: $ty:ident)*) -> $result:tt
            $(host($($own:tt)*))? = $form:ident!($($how:tt)*);
    )*) => {
        $($doc)*
        pub trait $builder<'k>: $crate::table::InBuilder<'k> {$(
            $(#[$row_doc])*
            #[track_caller]
            fn $name(
                self
                $(, $arg: impl ::kiln_jit_core::build::IntoVal<'k>)*
            ) -> ::kiln_jit_core::build::Val<'k> {
                let receiver = self.value();
                $(let $arg = $crate::table::methods! { @argument $ty $arg receiver };)*
                $form! { @build row::$name, (receiver $(, $arg)*), $($how)* }
            }
        )*}

        // Each by itself: a blanket would be what rustc tells those of who call a method on another type.
        impl<'k> $builder<'k> for ::kiln_jit_core::build::Val<'k> {}
        impl<'k> $builder<'k> for ::kiln_jit_core::build::Place<'k> {}
        impl<'k> $builder<'k> for ::kiln_jit_core::build::Var<'k> {}
    };
    (@argument Self $arg:ident $like:ident) => {
        $arg.into_val($like.builder(), Some($like.ty()))
    };
    (@argument $ty:ident $arg:ident $like:ident) => {
        $arg
    };

    (@kernels $host:ident $builder:ident $(
        $(#[$row_doc:meta])*
        fn $name:ident(self $(, $arg:ident: $ty:ident)*) -> $result:tt
            $(host($($own:tt)*))? = $form:ident!($($how:tt)*);
    )*) => {$(
        $crate::plain::method::kernel_method! {
            [T: $host + ::kiln_jit_core::value::DeviceType] T, Value:
            $name = |front, receiver $(, $arg)*| {
                front.value($builder::$name(receiver.read() $(, *$arg)*))
            }
        }
    )*};

    (@rows $(
        $(#[$row_doc:meta])*
        fn $name:ident(self $(, $arg:ident: $ty:ident)*) -> $result:tt
            $(host($($own:tt)*))? = $form:ident!($($how:tt)*);
    )*) => {
        #[allow(non_upper_case_globals, unused_imports, reason = "a row has its method's name")]
        mod row {
            use super::*;
            use ::kiln_jit_core::ir::IntrinsicDef;
            $(pub(super) static $name: Option<IntrinsicDef> =
                $form! { @row $name($($arg),*), $($how)* };)*
        }

        /// The rows of intrinsics that methods of this chapter have.
        pub(crate) fn rows() -> impl Iterator<Item = &'static ::kiln_jit_core::ir::IntrinsicDef> {
            [$(row::$name.as_ref()),*].into_iter().flatten()
        }
    };
}

/// A method that is made of what the builder has: an expression of its receiver and its arguments.
macro_rules! builds {
    (@row $name:ident($($arg:ident),*), $($how:tt)*) => { None };
    (@build $row:path, ($($arg:ident),*), |$($param:ident),*| $value:expr) => {{
        let ($($param,)*) = ($($arg,)*);
        $value
    }};
}

/// The operations of a chapter that are functions, each written as for
/// [`intrinsic!`](crate::intrinsic!): the builder has each as a method besides, and the chapter lists its rows.
macro_rules! operations {
    (
        $(#[$doc:meta])*
        builder $builder:ident;
        $(
            $(#[$attribute:meta])*
            fn $name:ident $(<$t:ident: $bound:path = $scalars:tt>)?
                ($($arg:ident: $ty:ty),* $(,)?) $(-> $result:ty)?
                $(where $($checked:ident is $check:path),+)?
                $host:block
                = row($($row:tt)*) $(.$with:ident($($value:expr),* $(,)?))*;
        )+
    ) => {
        $crate::intrinsic! {$(
            $(#[$attribute])*
            pub fn $name $(<$t: $bound = $scalars>)? ($($arg: $ty),*) $(-> $result)?
                $(where $($checked is $check),+)?
                $host
                = row($($row)*) $(.$with($($value),*))*;
        )+}

        $(#[$doc])*
        pub trait $builder {
            /// The builder the instructions go to.
            fn builder(&self) -> &::kiln_jit_core::build::KernelBuilder;
            $($crate::table::operations! {
                @method [$(#[$attribute])*] $name ($($arg),*) $($result)?
            })+
        }

        impl $builder for ::kiln_jit_core::build::KernelBuilder {
            fn builder(&self) -> &::kiln_jit_core::build::KernelBuilder {
                self
            }
        }

        /// The rows of this chapter.
        pub(crate) fn rows() -> impl Iterator<Item = &'static ::kiln_jit_core::ir::IntrinsicDef> {
            [$($name::row()),+].into_iter()
        }
    };
    (@method [$($doc:tt)*] $name:ident ()) => {
        $($doc)*
        #[track_caller]
        fn $name(&self) {
            $name::build(self.builder());
        }
    };
    (@method [$($doc:tt)*] $name:ident ($($arg:ident),*)) => {
        $($doc)*
        #[track_caller]
        fn $name<'k>(&'k self $(, $arg: impl ::kiln_jit_core::build::IntoVal<'k>)*) {
            $name::build(self.builder() $(, $arg)*);
        }
    };
    (@method [$($doc:tt)*] $name:ident ($($arg:ident),*) $result:ty) => {
        $($doc)*
        #[track_caller]
        fn $name<'k>(
            &'k self
            $(, $arg: impl ::kiln_jit_core::build::IntoVal<'k>)*
        ) -> ::kiln_jit_core::build::Val<'k> {
            $name::build(self.builder() $(, $arg)*)
        }
    };
}

pub(crate) use builds;
pub(crate) use methods;
pub(crate) use operations;

use kiln_jit_core::build::{Place, Val, Var};

/// What methods of the builder are called on: values, and what is read.
pub trait InBuilder<'k>: Copy {
    /// The value that a method is applied to.
    #[track_caller]
    fn value(self) -> Val<'k>;
}

impl<'k> InBuilder<'k> for Val<'k> {
    fn value(self) -> Val<'k> {
        self
    }
}

impl<'k> InBuilder<'k> for Place<'k> {
    #[track_caller]
    fn value(self) -> Val<'k> {
        self.get()
    }
}

impl<'k> InBuilder<'k> for Var<'k> {
    #[track_caller]
    fn value(self) -> Val<'k> {
        self.get()
    }
}

/// A type whose methods the host takes from another: 16-bit floats are computed in `f32` and rounded.
pub(crate) trait Widened {
    type Wide;
    fn widened(self) -> Self::Wide;
    fn narrowed(wide: Self::Wide) -> Self;
}

macro_rules! widened {
    ($($t:ty => $wide:ty: $widen:expr, $narrow:expr;)*) => {$(
        impl Widened for $t {
            type Wide = $wide;
            fn widened(self) -> $wide {
                $widen(self)
            }
            fn narrowed(wide: $wide) -> $t {
                $narrow(wide)
            }
        }
    )*};
    (themselves $($t:ty)*) => {
        widened! { $($t => $t: std::convert::identity, std::convert::identity;)* }
    };
}

impl<A: Widened, B: Widened> Widened for (A, B) {
    type Wide = (A::Wide, B::Wide);
    fn widened(self) -> Self::Wide {
        (self.0.widened(), self.1.widened())
    }
    fn narrowed((a, b): Self::Wide) -> Self {
        (A::narrowed(a), B::narrowed(b))
    }
}

impl<A: Widened> Widened for Option<A> {
    type Wide = Option<A::Wide>;
    fn widened(self) -> Self::Wide {
        self.map(A::widened)
    }
    fn narrowed(wide: Self::Wide) -> Self {
        wide.map(A::narrowed)
    }
}

widened! { themselves bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 }
widened! {
    half::f16 => f32: half::f16::to_f32, half::f16::from_f32;
    half::bf16 => f32: half::bf16::to_f32, half::bf16::from_f32;
}
