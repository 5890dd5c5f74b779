//! Shapes, what they are made of, and which of them go together.

use std::fmt;
use std::panic::Location;

use smallvec::SmallVec;

/// How many elements an array has along each of its dimensions, the last of which is the fastest. Without dimensions it
/// is the shape of one element.
///
/// ```
/// use kiln::array::Shape;
///
/// let m = Shape::new((2, 3));
/// assert_eq!((m.rank(), m.len(), m.is_empty()), (2, 6, false));
/// assert_eq!((m.dims(), m.to_string().as_str()), (&[2, 3][..], "2x3"));
/// assert_eq!(m.broadcast(&Shape::new(3)), Ok(m.clone())); // as in NumPy
/// assert_eq!(m.broadcast(&Shape::new((2, 1))), Ok(m.clone()));
/// assert!(m.broadcast(&Shape::new(2)).is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; 4]>);

impl Shape {
    /// A shape of these extents.
    pub fn new(dims: impl IntoShape) -> Shape {
        dims.into_shape()
    }

    pub(crate) fn of(dims: impl IntoIterator<Item = usize>) -> Shape {
        Shape(dims.into_iter().collect())
    }

    /// The extents, the slowest first.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The number of elements; `usize::MAX`, which no memory holds, if there are even more.
    pub fn len(&self) -> usize {
        match self.0.contains(&0) {
            true => 0,
            false => self.0.iter().fold(1, |len, dim| len.saturating_mul(*dim)),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape of an element-wise operation on arrays of these shapes, as in NumPy: dimensions are compared from the
    /// last, those that one of the shapes lacks are 1, and what is 1 goes with anything.
    ///
    /// # Errors
    /// Shapes that do not go together.
    pub fn broadcast(&self, other: &Shape) -> Result<Shape, ShapeMismatch> {
        // What is most often so.
        if self == other || other.rank() == 0 {
            return Ok(self.clone());
        }
        if self.rank() == 0 {
            return Ok(other.clone());
        }
        let mismatch = || ShapeMismatch {
            left: self.clone(),
            right: other.clone(),
            at: None,
        };
        let rank = self.rank().max(other.rank());
        let dims = (0..rank).map(
            |at| match (self.of_last(rank - at), other.of_last(rank - at)) {
                (a, b) if a == b => Ok(a),
                (1, b) => Ok(b),
                (a, 1) => Ok(a),
                _ => Err(mismatch()),
            },
        );
        Ok(Shape(dims.collect::<Result<_, _>>()?))
    }

    /// The extent of the dimension that is so many from the end, counted from 1.
    fn of_last(&self, count: usize) -> usize {
        match self.rank().checked_sub(count) {
            Some(at) => self.0[at],
            None => 1,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dims() {
            [] => f.write_str("()"),
            [first, rest @ ..] => {
                write!(f, "{first}")?;
                rest.iter().try_for_each(|dim| write!(f, "x{dim}"))
            }
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shape({self})")
    }
}

/// What says how many elements there are along each dimension: a number for a vector, a tuple, an array or a slice of
/// numbers; `()` for one element without dimensions.
///
/// ```
/// use kiln::array::{IntoShape, Shape};
///
/// fn rank(shape: impl IntoShape) -> usize {
///     shape.into_shape().rank()
/// }
/// assert_eq!((rank(7), rank((2, 3)), rank([2, 3, 4]), rank(()), rank(&vec![1; 5][..])), (1, 2, 3, 0, 5));
/// assert_eq!(rank(&Shape::new((1, 2))), 2);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no shape of an array",
    note = "a number is one, a tuple, an array or a slice of `usize`: `3`, `(2, 3)`, `[2, 3, 4]`, `()`"
)]
pub trait IntoShape {
    /// The shape.
    fn into_shape(self) -> Shape;
}

impl IntoShape for Shape {
    fn into_shape(self) -> Shape {
        self
    }
}

impl IntoShape for &Shape {
    fn into_shape(self) -> Shape {
        self.clone()
    }
}

impl IntoShape for usize {
    fn into_shape(self) -> Shape {
        Shape::of([self])
    }
}

impl IntoShape for () {
    fn into_shape(self) -> Shape {
        Shape::default()
    }
}

impl IntoShape for &[usize] {
    fn into_shape(self) -> Shape {
        Shape(SmallVec::from_slice(self))
    }
}

impl IntoShape for Vec<usize> {
    fn into_shape(self) -> Shape {
        self.as_slice().into_shape()
    }
}

impl<const N: usize> IntoShape for [usize; N] {
    fn into_shape(self) -> Shape {
        self.as_slice().into_shape()
    }
}

impl<const N: usize> IntoShape for &[usize; N] {
    fn into_shape(self) -> Shape {
        self.as_slice().into_shape()
    }
}

macro_rules! tuples {
    ($(($($dim:ident),*))*) => {$(
        impl IntoShape for ($(tuples!(@usize $dim),)*) {
            fn into_shape(self) -> Shape {
                let ($($dim,)*) = self;
                Shape::of([$($dim),*])
            }
        }
    )*};
    (@usize $dim:ident) => { usize };
}
tuples! {
    (a)
    (a, b)
    (a, b, c)
    (a, b, c, d)
    (a, b, c, d, e)
    (a, b, c, d, e, g)
}

/// Two shapes that do not go together, and the line of the operation, if it is one of an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShapeMismatch {
    /// The left operand's.
    pub left: Shape,
    /// The right operand's.
    pub right: Shape,
    /// Where the operation is written.
    pub at: Option<&'static Location<'static>>,
}

impl ShapeMismatch {
    /// A mismatch of an operation that is written there.
    pub(crate) fn at(self, place: &'static Location<'static>) -> ShapeMismatch {
        ShapeMismatch {
            at: Some(place),
            ..self
        }
    }
}

impl fmt::Display for ShapeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, right) = (&self.left, &self.right);
        write!(
            f,
            "arrays of shape {left} and {right} do not go together element by element; dimensions are compared from \
             the last, and two have to be equal, or one of them 1"
        )?;
        match self.at {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ShapeMismatch {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shape_overflows() {
        for dims in [
            (1 << 32, 1 << 32),
            (usize::MAX, 2),
            (usize::MAX, usize::MAX),
        ] {
            let shape = Shape::new(dims);
            assert_eq!(shape.len(), usize::MAX);
            assert!(!shape.is_empty());
        }
        assert!(Shape::new((usize::MAX, usize::MAX, 0)).is_empty());
    }

    #[test]
    fn what_goes_together() {
        let together = |a: &[usize], b: &[usize]| {
            let shape = Shape::new(a).broadcast(&Shape::new(b));
            shape.map(|shape| shape.dims().to_vec())
        };
        assert_eq!(together(&[3, 4], &[4]), Ok(vec![3, 4]));
        assert_eq!(together(&[3, 1], &[4]), Ok(vec![3, 4]));
        assert_eq!(together(&[], &[2, 0]), Ok(vec![2, 0]));
        assert_eq!(together(&[0], &[1]), Ok(vec![0]));
        assert_eq!(together(&[5, 1, 4], &[3, 1]), Ok(vec![5, 3, 4]));
        let error = together(&[3, 4], &[3]).unwrap_err();
        let start = "arrays of shape 3x4 and 3 do not go together";
        assert!(error.to_string().starts_with(start));
    }
}
