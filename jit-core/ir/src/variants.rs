//! Lists of all variants of an enumeration, which cannot lack one.

/// Writes `ALL`, every variant in the order given, for enumerations whose variants have no fields. A
/// variant that is not listed does not compile.
///
/// ```
/// #[derive(Debug, PartialEq)]
/// enum Side { Left, Right }
///
/// kiln_ir::all_variants! { Side { Left, Right } }
/// assert_eq!(Side::ALL, [Side::Left, Side::Right]);
/// ```
///
/// ```compile_fail,E0004
/// #[derive(Debug, PartialEq)]
/// enum Side { Left, Right }
///
/// kiln_ir::all_variants! { Side { Left } }
/// ```
#[macro_export]
macro_rules! all_variants {
    ($($name:ident { $($variant:ident),* $(,)? })*) => {$(
        impl $name {
            /// Every variant, in order.
            pub const ALL: [$name; [$(stringify!($variant)),*].len()] = [$($name::$variant),*];
        }

        const _: fn($name) = |of| match of {
            $($name::$variant => (),)*
        };
    )*};
}
