//! Operators and named element-wise functions: one line each.

use std::ops;

use kiln_device_stdlib::math::Math;
use kiln_device_stdlib::number::Signed;

use crate::{Array, Element, Expr, IntoExpr};

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl<T: Element, R: IntoExpr<T>> ops::$trait<R> for Expr<T> {
            type Output = Expr<T>;
            fn $method(self, right: R) -> Expr<T> {
                self.binary(right.into_expr(), stringify!($method), |a, b| ops::$trait::$method(a, b))
            }
        }
        impl<T: Element, R: IntoExpr<T>> ops::$trait<R> for &Expr<T> {
            type Output = Expr<T>;
            fn $method(self, right: R) -> Expr<T> {
                ops::$trait::$method(self.clone(), right)
            }
        }
        impl<T: Element, R: IntoExpr<T>> ops::$trait<R> for &Array<T> {
            type Output = Expr<T>;
            fn $method(self, right: R) -> Expr<T> {
                ops::$trait::$method(self.expr(), right)
            }
        }
        impl<T: Element, R: IntoExpr<T>> ops::$trait<R> for Array<T> {
            type Output = Expr<T>;
            fn $method(self, right: R) -> Expr<T> {
                ops::$trait::$method(self.expr(), right)
            }
        }
        operators!(@scalar $trait $method f32 f64 i32 i64 u32 u64);
    )*};
    (@scalar $trait:ident $method:ident $($scalar:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl ops::$trait<Expr<$scalar>> for $scalar {
            type Output = Expr<$scalar>;
            fn $method(self, right: Expr<$scalar>) -> Expr<$scalar> {
                ops::$trait::$method(self.into_expr(), right)
            }
        }
        #[diagnostic::do_not_recommend]
        impl ops::$trait<&Array<$scalar>> for $scalar {
            type Output = Expr<$scalar>;
            fn $method(self, right: &Array<$scalar>) -> Expr<$scalar> {
                ops::$trait::$method(self.into_expr(), right.expr())
            }
        }
        #[diagnostic::do_not_recommend]
        impl ops::$trait<Array<$scalar>> for $scalar {
            type Output = Expr<$scalar>;
            fn $method(self, right: Array<$scalar>) -> Expr<$scalar> {
                ops::$trait::$method(self.into_expr(), right.expr())
            }
        }
        #[diagnostic::do_not_recommend]
        impl ops::$trait<&Expr<$scalar>> for $scalar {
            type Output = Expr<$scalar>;
            fn $method(self, right: &Expr<$scalar>) -> Expr<$scalar> {
                ops::$trait::$method(self.into_expr(), right.clone())
            }
        }
    )*};
}
operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl<T: Element> ops::Neg for Expr<T> {
    type Output = Expr<T>;
    fn neg(self) -> Expr<T> {
        self.unary("neg", |x| -x)
    }
}

impl<T: Element> ops::Neg for &Expr<T> {
    type Output = Expr<T>;
    fn neg(self) -> Expr<T> {
        -self.clone()
    }
}

impl<T: Element> ops::Neg for &Array<T> {
    type Output = Expr<T>;
    fn neg(self) -> Expr<T> {
        -self.expr()
    }
}

impl<T: Element> ops::Neg for Array<T> {
    type Output = Expr<T>;
    fn neg(self) -> Expr<T> {
        -self.expr()
    }
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) = |$x:ident| $body:expr;)*) => {
        impl<T: Element> Expr<T> {
            $($(#[$doc])*
            pub fn $name(self $(, $arg: $ty)*) -> Expr<T> {
                let name = [stringify!($name).to_owned() $(, $arg.to_string())*].join(" ");
                self.unary(name, move |$x| $body)
            })*
        }
        impl<T: Element> Array<T> {
            $($(#[$doc])*
            pub fn $name(&self $(, $arg: $ty)*) -> Expr<T> {
                self.expr().$name($($arg),*)
            })*
        }
    };
}
functions! {
    /// The square root of every element; floats.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![4.0f32, 9.0])?;
    /// assert_eq!(x.sqrt().eval()?.to_vec()?, [2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    sqrt() = |x| Math::sqrt(x);
    /// The absolute value of every element; floats.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![-4.0f32, 9.0])?;
    /// assert_eq!((&x - 1.0).abs().eval()?.to_vec()?, [5.0, 8.0]);
    /// # Ok(())
    /// # }
    /// ```
    abs() = |x| Signed::abs(x);
    /// Every element to a power known now; floats.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![-4.0f32, 2.0])?;
    /// assert_eq!(x.powi(3).eval()?.to_vec()?, [-64.0, 8.0]);
    /// # Ok(())
    /// # }
    /// ```
    powi(exponent: i32) = |x| Math::powi(x, exponent);
}
