//! Several results of one kernel.

use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::{Kernel, KernelBuilder, Val};
use kiln_jit_core::runtime::Buffer;
use kiln_jit_core::value::DeviceType;

use crate::eval::BLOCK;
use crate::fused::{Fused, Passed, Purpose};
use crate::signature::{Signature, Word};
use crate::{Array, ElementFn, Expr, IntoExpr, Result, broadcast};

/// Tuples of expressions that are computed together: two to four.
///
/// ```
/// use kiln::array::{Outputs, eval_all};
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let (x, y) = (arrays.vector(vec![3.0f64, 5.0])?, arrays.vector(vec![4.0, 12.0])?);
/// let radius = x.hypot(&y);
/// let (radius, angle) = eval_all((radius, y.atan2(&x)))?; // x and y are read once
/// assert_eq!(radius.to_vec()?, [5.0, 13.0]);
/// let (double, far) = (2.0 * &radius, radius.gt(10.0)).eval_all()?;
/// assert_eq!((double.to_vec()?, far.to_vec()?), (vec![10.0, 26.0], vec![false, true]));
/// assert_eq!(arrays.launches(), 2);
/// # drop(angle);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of expressions",
    note = "two to four of them are computed together: `eval_all((&x + &y, &x - &y))`"
)]
pub trait Outputs {
    /// The results.
    type Arrays;

    /// Computes all of them by one kernel, each as large as their shapes are together.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    fn eval_all(self) -> Result<Self::Arrays>;
}

/// Computes several expressions by one kernel, which reads what they have in common once; [`Outputs`] has an example.
///
/// # Errors
/// As [`Expr::eval`].
#[track_caller]
pub fn eval_all<O: Outputs>(outputs: O) -> Result<O::Arrays> {
    outputs.eval_all()
}

/// The values as one struct, halves rounded.
fn together<'k, const N: usize>(
    values: [Val<'k>; N],
    types: [kiln_jit_core::ir::Type; N],
) -> Val<'k> {
    let k = values[0].builder();
    let names: Vec<String> = (0..N).map(|n| n.to_string()).collect();
    let fields: Vec<_> = names.iter().map(String::as_str).zip(types).collect();
    let values: Vec<Val<'k>> = (values.into_iter().zip(types))
        .map(|(value, ty)| {
            if value.ty() == ty {
                value
            } else {
                value.cast(ty)
            }
        })
        .collect();
    let ty = k.struct_type("Outputs", &fields);
    k.construct(ty, &values)
}

macro_rules! tuples {
    ($($count:literal: $($of:ident $ty:ident $out:ident $position:tt)*;)*) => {$(
        impl<$($ty: crate::Element,)* $($of: OutputOf<Element = $ty>),*> Outputs for ($($of,)*) {
            type Arrays = ($(Array<$ty>,)*);

            #[track_caller]
            fn eval_all(self) -> Result<Self::Arrays> {
                let operation = ElementFn::operation(concat!("outputs ", $count), |values: [Val<'_>; $count]| {
                    let k = values[0].builder();
                    let types = [$(k.ty::<$ty>()),*];
                    together(values, types)
                });
                // What the elements are the kernel alone knows; the first stands for all.
                let expr: Expr<tuples!(@first $($ty)*)> = broadcast::<($($ty,)*), _>(($(self.$position.output(),)*), operation);
                let mut signature = Signature::broadcast::<tuples!(@first $($ty)*)>();
                $(signature.add(Word::Named("output", <$ty as DeviceType>::FORM.digest()));)*
                let fused = Fused::new(&expr, &Purpose::default(), &mut signature)?;
                let arrays = fused.arrays()?;
                let len = fused.shape.len();
                $(let mut $out: Buffer<$ty> = arrays.jit().zeros(len)?;)*
                if len > 0 {
                    let build = || {
                        Kernel::build(&fused.name("eval"), |k: &KernelBuilder| {
                            let outs = [$(k.slice_mut(stringify!($out), k.ty::<$ty>())),*];
                            let mut elements = fused.declare(k, outs[0]);
                            elements.more = outs[1..].to_vec();
                            elements.store_all();
                        })
                    };
                    let kernel = arrays.kernel(signature, build)?;
                    let passed = fused.passed();
                    let mut args: Vec<Arg<'_>> = vec![$((&mut $out).into_arg()),*];
                    for passed in &passed {
                        args.push(Passed::arg(passed)?);
                    }
                    arrays.jit().launch(&kernel, fused.grid(), BLOCK, &args)?;
                    arrays.count_launch();
                }
                Ok(($(arrays.of($out, fused.shape.clone()),)*))
            }
        }
    )*};
    (@first $first:ident $($rest:ident)*) => { $first };
}
tuples! {
    2: P A a 0 Q B b 1;
    3: P A a 0 Q B b 1 R C c 2;
    4: P A a 0 Q B b 1 R C c 2 S D d 3;
}

/// What is one of several results: an expression or an array.
pub trait OutputOf {
    /// The type of its elements.
    type Element: crate::Element;

    /// As an expression.
    #[doc(hidden)]
    fn output(self) -> Expr<Self::Element>;
}

macro_rules! outputs {
    ($($of:ty)*) => {$(
        impl<T: crate::Element> OutputOf for $of {
            type Element = T;
            fn output(self) -> Expr<T> {
                self.into_expr()
            }
        }
    )*};
}
outputs!(Expr<T> &Expr<T> Array<T> &Array<T>);
