//! What chains of iterators, `x.iter().map(|v| v * v).sum()`, have in the loops that `#[kernel]` makes of them: the
//! sums and products of which rustc finds the types, as it does for `Iterator::sum`. Kernels have the operators themselves.

use crate::plain::number::Num;

/// A number that items are added to and multiplied with: numbers, and references to them.
#[diagnostic::on_unimplemented(
    message = "items of type `{I}` do not add up to `{Self}` in kernels",
    label = "no number, or one of another type",
    note = "`sum` and `product` are of numbers of one type; what else is to be added up stands in `fold` or a `for`"
)]
pub trait Accumulates<I> {
    /// The sum.
    fn add(self, item: I) -> Self;
    /// The product.
    fn multiply(self, item: I) -> Self;
}

impl<T: Num> Accumulates<T> for T {
    fn add(self, item: T) -> T {
        self + item
    }
    fn multiply(self, item: T) -> T {
        self * item
    }
}

impl<T: Num> Accumulates<&T> for T {
    fn add(self, item: &T) -> T {
        self + *item
    }
    fn multiply(self, item: &T) -> T {
        self * *item
    }
}

/// What a sum begins with.
#[doc(hidden)]
pub fn sum_of_none<T: Num>() -> T {
    T::ZERO
}

/// What a product begins with.
#[doc(hidden)]
pub fn product_of_none<T: Num>() -> T {
    T::ONE
}

/// A sum with one more item.
#[doc(hidden)]
pub fn added<S: Accumulates<I>, I>(sum: S, item: I) -> S {
    sum.add(item)
}

/// A product with one more item.
#[doc(hidden)]
pub fn multiplied<S: Accumulates<I>, I>(product: S, item: I) -> S {
    product.multiply(item)
}

/// An item, which is of the type that an option is of.
#[doc(hidden)]
pub fn alike<T>(item: T, _: Option<T>) -> T {
    item
}

/// An item of a type that is ordered, as `max` and `min` need it.
#[doc(hidden)]
pub fn ordered<T: Ord>(item: T) -> T {
    item
}
