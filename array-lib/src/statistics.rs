//! Reductions by name: sums, extremes, averages, counts, of all elements or along some dimensions.

use std::sync::Arc;

use kiln_device_stdlib::math::Math;
use kiln_jit_core::build::Val;

use crate::layout::{Layout, axis_of};
use crate::{
    Array, ArrayError, Element, ElementFn, Expr, FloatElement, IntoAxes, IntoExpr, NumberElement,
    Result, keep_dims,
};

/// The sum of two elements.
pub(crate) fn sum_of<T: Element>() -> ElementFn<(T, T), T> {
    ElementFn::operation("sum", |[a, b]| a + b)
}

fn product_of<T: Element>() -> ElementFn<(T, T), T> {
    ElementFn::operation("product", |[a, b]| a * b)
}

/// The smaller of two elements; NaN if one of them is.
fn least_of<T: Element>() -> ElementFn<(T, T), T> {
    ElementFn::operation("least", |[a, b]: [Val<'_>; 2]| {
        (a.lt(b) | a.ne(a)).select(a, b)
    })
}

/// The larger of two elements; NaN if one of them is.
fn greatest_of<T: Element>() -> ElementFn<(T, T), T> {
    ElementFn::operation("greatest", |[a, b]: [Val<'_>; 2]| {
        (a.gt(b) | a.ne(a)).select(a, b)
    })
}

/// Of two elements with their indices the one that comes first in an order, NaN before all, and of equal ones that with
/// the smaller index.
fn first_of<T: NumberElement>(greatest: bool) -> ElementFn<(T::Indexed, T::Indexed), T::Indexed> {
    let name = if greatest {
        "first greatest"
    } else {
        "first least"
    };
    ElementFn::operation(name, move |[a, b]: [Val<'_>; 2]| {
        let (x, y) = (a.field("value"), b.field("value"));
        let (i, j) = (a.field("index"), b.field("index"));
        let (x_nan, y_nan) = (x.ne(x), y.ne(y));
        let beyond = if greatest { y.gt(x) } else { y.lt(x) };
        let is_before = beyond | (y_nan & !x_nan);
        let is_same = x.eq(y) | (x_nan & y_nan);
        let second = is_before | (is_same & j.lt(i));
        let parts = [second.select(y, x), second.select(j, i)];
        a.builder().construct(a.ty(), &parts)
    })
}

impl<T: Element> Expr<T> {
    /// As [`ArrayError::Empty`] where elements are folded and there are none.
    fn some(&self, operation: &'static str) -> Result<()> {
        let shape = self.shape.clone()?;
        match shape.dims().contains(&0) {
            true => Err(ArrayError::Empty { operation, shape }),
            false => Ok(()),
        }
    }
}

impl<T: NumberElement> Expr<T> {
    /// Each element with an index.
    fn with(self, indices: Expr<u32>) -> Expr<T::Indexed> {
        self.binary(indices, "indexed", |value, index| {
            let k = value.builder();
            k.construct(k.ty::<T::Indexed>(), &[value.cast(k.ty::<T>()), index])
        })
    }

    fn identity_of_first(greatest: bool) -> T::Indexed {
        let value = if greatest { T::LEAST } else { T::GREATEST };
        value.indexed(u32::MAX)
    }

    #[track_caller]
    fn first(&self, greatest: bool) -> Result<usize> {
        self.some(if greatest {
            "the index of the greatest"
        } else {
            "the index of the least"
        })?;
        let arrays = self.arrays.as_ref().ok_or(ArrayError::NoArray)?;
        let indexed = self.clone().with(arrays.indices(&self.shape.clone()?));
        let first = indexed.reduce_axis(
            ..,
            first_of::<T>(greatest),
            Self::identity_of_first(greatest),
        )?;
        Ok(index_of::<T>(first)?.item()? as usize)
    }

    #[track_caller]
    fn first_along(&self, axis: isize, greatest: bool) -> Result<Array<u32>> {
        self.some(if greatest {
            "the index of the greatest"
        } else {
            "the index of the least"
        })?;
        let shape = self.shape.clone()?;
        let axis = axis_of(axis, &shape)?;
        let arrays = self.arrays.as_ref().ok_or(ArrayError::NoArray)?;
        let indexed = self.clone().with(arrays.coordinates(&shape, axis as isize));
        let first = indexed.reduce_axis(
            axis,
            first_of::<T>(greatest),
            Self::identity_of_first(greatest),
        )?;
        index_of::<T>(first)
    }
}

/// The indices of indexed numbers. Of a single one nothing is computed: what lies there is looked at as what it is.
fn index_of<T: NumberElement>(indexed: Array<T::Indexed>) -> Result<Array<u32>> {
    let is_one = indexed.len() == 1 && size_of::<T>() + size_of::<u32>() == size_of::<T::Indexed>();
    let place = indexed.layout.offset * size_of::<T::Indexed>() + T::PLACE_OF_INDEX;
    match Arc::try_unwrap(indexed.buffer) {
        Ok(buffer) if is_one => Ok(Array {
            buffer: Arc::new(buffer.into_cast()?),
            layout: Layout {
                offset: place / size_of::<u32>(),
                ..indexed.layout
            },
            arrays: indexed.arrays,
        }),
        buffer => {
            let buffer = buffer.map_or_else(|shared| shared, Arc::new);
            let indexed = Array { buffer, ..indexed };
            indexed.expr().unary("index", |x| x.field("index")).eval()
        }
    }
}

/// How many elements are folded for each that stays.
fn folded<T: Element>(expr: &Expr<T>, axes: &crate::Axes) -> Result<usize> {
    let shape = expr.shape.clone()?;
    let mask = axes.mask(&shape)?;
    let dims = shape.dims().iter().zip(&mask);
    Ok(dims
        .filter(|(_, folded)| **folded)
        .map(|(dim, _)| *dim)
        .fold(1, usize::saturating_mul))
}

/// The elements as sums are computed of them.
fn widened<T: NumberElement>(x: &Expr<T>) -> Expr<T::Accumulator> {
    x.clone().cast()
}

fn summed<T: NumberElement>(x: &Expr<T>) -> Result<T::Accumulator> {
    widened(x).reduce(sum_of(), T::Accumulator::ZERO)
}

fn summed_along<T: NumberElement>(
    x: &Expr<T>,
    axes: impl IntoAxes,
) -> Result<Array<T::Accumulator>> {
    widened(x).reduce_axis(axes, sum_of(), T::Accumulator::ZERO)
}

/// Each element as a sum that has lost nothing.
fn uncompensated<T: FloatElement>(x: Expr<T>) -> Expr<T::Compensated> {
    x.unary("compensated", |x| {
        let k = x.builder();
        let ty = k.ty::<T::Compensated>();
        let zero = k.zero(k.ty::<T::Accumulator>());
        k.construct(ty, &[x.cast(zero.ty()), zero])
    })
}

/// What two sums are together, and what that has lost.
fn compensated_of<T: FloatElement>() -> ElementFn<(T::Compensated, T::Compensated), T::Compensated>
{
    ElementFn::operation("compensated_sum", |[a, b]: [Val<'_>; 2]| {
        let (x, y) = (a.field("sum"), b.field("sum"));
        let sum = x + y;
        let of_y = sum - x;
        let lost = (x - (sum - of_y)) + (y - of_y);
        let lost = a.field("lost") + b.field("lost") + lost;
        a.builder().construct(a.ty(), &[sum, lost])
    })
}

/// Compensated sums as numbers; one that is infinite or NaN has lost nothing that counts.
fn whole_of<T: FloatElement>(sums: Array<T::Compensated>) -> Expr<T> {
    sums.expr().unary("compensate", |x| {
        let (sum, lost) = (x.field("sum"), x.field("lost"));
        let whole = sum + lost;
        whole
            .eq(whole)
            .select(whole, sum)
            .cast(x.builder().ty::<T>())
    })
}

/// Methods of expressions and of arrays, which become expressions.
macro_rules! reductions {
    ($(
        impl $element:ty $(where $t:ident: $bound:ident $(+ $more:ident)?)? {$(
            $(#[$doc:meta])*
            fn $name:ident $([$u:ident: $of:ident])? ($($arg:ident: $ty:ty),*) -> $result:ty = |$x:ident| $body:expr;
        )*}
    )*) => {$(
        impl $(<$t: $bound $(+ $more)?>)? Expr<$element> {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name $(<$u: $of>)? (&self $(, $arg: $ty)*) -> Result<$result> {
                let $x = self;
                $body
            }
        )*}
        impl $(<$t: $bound $(+ $more)?>)? Array<$element> {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name $(<$u: $of>)? (&self $(, $arg: $ty)*) -> Result<$result> {
                self.expr().$name $(::<$u>)? ($($arg),*)
            }
        )*}
    )*};
}
reductions! {
    impl T where T: NumberElement {
        /// The sum of all elements. Of integers it has 64 bits, `u64` or `i64`, as in NumPy; of floats it has their type, and
        /// of halves it is rounded once, at the end. [`sum_as`](Self::sum_as) gives another type. The order of additions is not
        /// specified, but the same each time.
        ///
        /// ```
        /// use kiln::prelude::*;
        ///
        /// # fn main() -> kiln::Result<()> {
        /// let arrays = Arrays::new(&Jit::new()?);
        /// let x = arrays.vector((1..=1000).collect::<Vec<u32>>())?;
        /// assert_eq!(x.sum()?, 500_500u64);
        /// assert_eq!((&x * &x).sum()?, 333_833_500); // multiplied and added by one kernel
        /// assert_eq!(arrays.full(1000, 200u8)?.sum()?, 200_000);
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// As [`Expr::eval`].
        fn sum() -> T::Sum = |x| Ok(T::whole_sum(summed(x)?));
        /// The sums along some dimensions; see [`IntoAxes`].
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`].
        fn sum_axis(axes: impl IntoAxes) -> Array<T::Sum> = |x| T::whole_sums(summed_along(x, axes)?);
    }
    impl T where T: FloatElement {
        /// The sum of all elements with what each addition loses by rounding added at the end (Neumaier's sum; T. Ogita,
        /// S. M. Rump, S. Oishi, "Accurate Sum and Dot Product", 2005): as if it was computed with twice the bits. Without
        /// [fast math](kiln_jit_core::jit::JitOptions), which takes it away.
        ///
        /// ```
        /// use kiln::prelude::*;
        ///
        /// # fn main() -> kiln::Result<()> {
        /// let arrays = Arrays::new(&Jit::new()?);
        /// let x = arrays.vector(vec![1e8f32, 1.0, -1e8, 1.0])?;
        /// assert_eq!(x.sum_compensated()?, 2.0);
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// As [`Expr::reduce`].
        fn sum_compensated() -> T = |x| x.sum_axis_compensated(..)?.item();
        /// The compensated sums along some dimensions.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`].
        fn sum_axis_compensated(axes: impl IntoAxes) -> Array<T> = |x| {
            let sums = uncompensated(x.clone()).reduce_axis(axes, compensated_of::<T>(), T::uncompensated())?;
            whole_of::<T>(sums).eval()
        };
    }
    impl T where T: Element {
        /// The sum of all elements as another type, to which each is converted before: of halves as `f32`, of bytes that may
        /// wrap around as `u8`.
        ///
        /// ```
        /// use kiln::prelude::*;
        ///
        /// # fn main() -> kiln::Result<()> {
        /// let arrays = Arrays::new(&Jit::new()?);
        /// let x = arrays.full(300, 1u8)?;
        /// assert_eq!((x.sum_as::<u8>()?, x.sum_as::<f32>()?), (44, 300.0)); // a `u8` wraps around
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// As [`Expr::reduce`].
        fn sum_as[U: NumberElement]() -> U = |x| x.clone().cast::<U>().reduce(sum_of(), U::ZERO);
        /// The sums along some dimensions as another type.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`].
        fn sum_axis_as[U: NumberElement](axes: crate::Axes) -> Array<U>
            = |x| x.clone().cast::<U>().reduce_axis(axes, sum_of(), U::ZERO);
    }
    impl T where T: NumberElement {
        /// The product of all elements, of the type of their [sum](Self::sum).
        ///
        /// # Errors
        /// As [`Expr::reduce`].
        fn prod() -> T::Sum
            = |x| Ok(T::whole_sum(widened(x).reduce(product_of(), T::Accumulator::ONE)?));
        /// The products along some dimensions.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`].
        fn prod_axis(axes: impl IntoAxes) -> Array<T::Sum>
            = |x| T::whole_sums(widened(x).reduce_axis(axes, product_of(), T::Accumulator::ONE)?);
        /// The least element; NaN if one is NaN, as in NumPy.
        ///
        /// ```
        /// use kiln::prelude::*;
        ///
        /// # fn main() -> kiln::Result<()> {
        /// let arrays = Arrays::new(&Jit::new()?);
        /// let x = arrays.array(vec![4, -7, 9, 9, 0, 2], (2, 3))?;
        /// assert_eq!((x.min()?, x.max()?, x.argmax()?), (-7, 9, 2));
        /// assert_eq!((x.max_axis(0)?.to_vec()?, x.argmin_axis(1)?.to_vec()?), (vec![9, 0, 9], vec![1, 1]));
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// As [`Expr::reduce`]; no elements.
        fn min() -> T = |x| x.some("the least").and_then(|()| x.reduce(least_of(), T::GREATEST));
        /// The least elements along some dimensions; NaN where one is NaN.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`]; no elements.
        fn min_axis(axes: impl IntoAxes) -> Array<T>
            = |x| x.some("the least").and_then(|()| x.reduce_axis(axes, least_of(), T::GREATEST));
        /// The greatest element; NaN if one is NaN, as in NumPy.
        ///
        /// # Errors
        /// As [`Expr::reduce`]; no elements.
        fn max() -> T = |x| x.some("the greatest").and_then(|()| x.reduce(greatest_of(), T::LEAST));
        /// The greatest elements along some dimensions; NaN where one is NaN.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`]; no elements.
        fn max_axis(axes: impl IntoAxes) -> Array<T>
            = |x| x.some("the greatest").and_then(|()| x.reduce_axis(axes, greatest_of(), T::LEAST));
        /// The number of the least element, the first of several, the last dimension fastest; of the first NaN, if there
        /// is one, as in NumPy.
        ///
        /// # Errors
        /// As [`Expr::reduce`]; no elements, or more than `u32` has numbers.
        fn argmin() -> usize = |x| x.first(false);
        /// The number of the greatest element, the first of several, the last dimension fastest; of the first NaN, if
        /// there is one, as in NumPy.
        ///
        /// # Errors
        /// As [`Expr::reduce`]; no elements, or more than `u32` has numbers.
        fn argmax() -> usize = |x| x.first(true);
        /// The index of the least element along a dimension; as [`argmin`](Self::argmin).
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`]; no elements.
        fn argmin_axis(axis: isize) -> Array<u32> = |x| x.first_along(axis, false);
        /// The index of the greatest element along a dimension; as [`argmax`](Self::argmax).
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`]; no elements.
        fn argmax_axis(axis: isize) -> Array<u32> = |x| x.first_along(axis, true);
        /// The sum of the products of the elements and those of another expression, both of the type of their
        /// [sum](Self::sum).
        ///
        /// ```
        /// use kiln::prelude::*;
        ///
        /// # fn main() -> kiln::Result<()> {
        /// let arrays = Arrays::new(&Jit::new()?);
        /// let (x, y) = (arrays.vector(vec![1.0f32, 2.0])?, arrays.vector(vec![3.0, 4.0])?);
        /// assert_eq!((x.dot(&y)?, y.norm()?), (11.0, 5.0));
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// As [`Expr::reduce`]; shapes that do not go together.
        fn dot(other: impl IntoExpr<T>) -> T::Sum = |x| {
            let products = widened(x) * widened(&other.into_expr());
            Ok(T::whole_sum(products.reduce(sum_of(), T::Accumulator::ZERO)?))
        };
    }
    impl T where T: FloatElement {
        /// The average of all elements; NaN of none.
        ///
        /// ```
        /// use kiln::array::keep_dims;
        /// use kiln::prelude::*;
        ///
        /// # fn main() -> kiln::Result<()> {
        /// let arrays = Arrays::new(&Jit::new()?);
        /// let x = arrays.array(vec![1.0f64, 5.0, 3.0, 7.0], (2, 2))?;
        /// assert_eq!((x.mean()?, x.var()?), (4.0, 5.0));
        /// let standard = (&x - x.mean_axis(keep_dims(0))?) / x.std_axis(keep_dims(0))?;
        /// assert_eq!(standard.eval()?.to_vec()?, [-1.0, -1.0, 1.0, 1.0]);
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// As [`Expr::reduce`].
        fn mean() -> T = |x| x.mean_axis(..)?.item();
        /// The averages along some dimensions.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`].
        fn mean_axis(axes: impl IntoAxes) -> Array<T> = |x| {
            let axes = axes.into_axes();
            let count = T::Accumulator::from_f64(folded(x, &axes)? as f64);
            (summed_along(x, axes)? / count).cast::<T>().eval()
        };
        /// The variance of all elements: the average of the squares of what they are off the average.
        ///
        /// # Errors
        /// As [`Expr::reduce`].
        fn var() -> T = |x| x.var_axis(..)?.item();
        /// The variances along some dimensions.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`].
        fn var_axis(axes: impl IntoAxes) -> Array<T> = |x| {
            let axes = axes.into_axes();
            let off = x.clone() - x.mean_axis(keep_dims(axes.clone()))?;
            (off.clone() * off).mean_axis(axes)
        };
        /// The standard deviation of all elements, the root of the variance.
        ///
        /// # Errors
        /// As [`Expr::reduce`].
        fn std() -> T = |x| x.std_axis(..)?.item();
        /// The standard deviations along some dimensions.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`].
        fn std_axis(axes: impl IntoAxes) -> Array<T> = |x| x.var_axis(axes)?.sqrt().eval();
        /// The root of the sum of the squares of all elements.
        ///
        /// # Errors
        /// As [`Expr::reduce`].
        fn norm() -> T = |x| x.norm_axis(..)?.item();
        /// The roots of the sums of squares along some dimensions.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`].
        fn norm_axis(axes: impl IntoAxes) -> Array<T>
            = |x| {
                let squares = widened(x) * widened(x);
                let sums = squares.reduce_axis(axes, sum_of(), T::Accumulator::ZERO)?;
                let roots = sums.expr().unary::<T::Accumulator>("sqrt", |x| Math::sqrt(x));
                roots.cast::<T>().eval()
            };
    }
    impl bool {
        /// Whether any element is true.
        ///
        /// ```
        /// use kiln::prelude::*;
        ///
        /// # fn main() -> kiln::Result<()> {
        /// let arrays = Arrays::new(&Jit::new()?);
        /// let x = arrays.array(vec![4.0f32, -7.0, 9.0, 8.0], (2, 2))?;
        /// assert_eq!((x.lt(0.0).any()?, x.lt(0.0).all()?, x.gt(5.0).count()?), (true, false, 2));
        /// assert_eq!(x.gt(0.0).all_axis(1)?.to_vec()?, [false, true]);
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// As [`Expr::reduce`].
        fn any() -> bool = |x| x.reduce(ElementFn::operation("or", |[a, b]| a | b), false);
        /// Whether any element along some dimensions is true.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`].
        fn any_axis(axes: impl IntoAxes) -> Array<bool>
            = |x| x.reduce_axis(axes, ElementFn::operation("or", |[a, b]| a | b), false);
        /// Whether all elements are true.
        ///
        /// # Errors
        /// As [`Expr::reduce`].
        fn all() -> bool = |x| x.reduce(ElementFn::operation("and", |[a, b]| a & b), true);
        /// Whether all elements along some dimensions are true.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`].
        fn all_axis(axes: impl IntoAxes) -> Array<bool>
            = |x| x.reduce_axis(axes, ElementFn::operation("and", |[a, b]| a & b), true);
        /// How many elements are true.
        ///
        /// # Errors
        /// As [`Expr::reduce`].
        fn count() -> usize = |x| Ok(x.sum_as::<u64>()? as usize);
        /// How many elements along some dimensions are true.
        ///
        /// # Errors
        /// As [`Expr::reduce_axis`].
        fn count_axis(axes: impl IntoAxes) -> Array<u64>
            = |x| x.clone().cast::<u64>().sum_axis(axes);
    }
}
