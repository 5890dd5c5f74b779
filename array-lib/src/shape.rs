//! Shapes of one and two dimensions, and which of them go together.

use std::fmt;

/// The extent of an array: rows and columns, stored row by row. A vector is one row.
///
/// ```
/// use kiln::array::Shape;
///
/// let m = Shape::Matrix { rows: 2, columns: 3 };
/// assert_eq!((m.len(), m.columns(), m.is_empty()), (6, 3, false));
/// assert_eq!(m.broadcast(Shape::Vector(3)), Ok(m));
/// assert!(m.broadcast(Shape::Vector(2)).is_err());
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Shape {
    /// One dimension.
    Vector(usize),
    /// Two dimensions.
    Matrix {
        /// The slow dimension.
        rows: usize,
        /// The fast dimension.
        columns: usize,
    },
}

impl Shape {
    /// The number of elements; `usize::MAX`, which no memory holds, if there are even more.
    pub fn len(self) -> usize {
        match self {
            Shape::Vector(n) => n,
            Shape::Matrix { rows, columns } => rows.saturating_mul(columns),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The extent of the fast dimension.
    pub fn columns(self) -> usize {
        match self {
            Shape::Vector(n) => n,
            Shape::Matrix { columns, .. } => columns,
        }
    }

    /// The shape of an element-wise operation on arrays of these shapes: equal shapes stay, one
    /// element goes with everything, a row of n elements goes with a matrix of n columns.
    ///
    /// # Errors
    /// Shapes that do not go together.
    pub fn broadcast(self, other: Shape) -> Result<Shape, ShapeMismatch> {
        let mismatch = ShapeMismatch {
            left: self,
            right: other,
        };
        match (self, other) {
            (a, b) if a == b => Ok(a),
            (a, b) if b.len() == 1 => Ok(a),
            (a, b) if a.len() == 1 => Ok(b),
            (m @ Shape::Matrix { columns, .. }, Shape::Vector(n))
            | (Shape::Vector(n), m @ Shape::Matrix { columns, .. })
                if columns == n =>
            {
                Ok(m)
            }
            (
                Shape::Matrix {
                    rows: 1,
                    columns: n,
                },
                m @ Shape::Matrix { columns, .. },
            )
            | (
                m @ Shape::Matrix { columns, .. },
                Shape::Matrix {
                    rows: 1,
                    columns: n,
                },
            ) if columns == n => Ok(m),
            _ => Err(mismatch),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Vector(n) => write!(f, "{n}"),
            Shape::Matrix { rows, columns } => write!(f, "{rows}x{columns}"),
        }
    }
}

/// Two shapes that do not go together.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "arrays of shape {left} and {right} do not go together element by element; equal shapes do, \
     one element with anything, and a row of n elements with a matrix of n columns"
)]
pub struct ShapeMismatch {
    /// The left operand's.
    pub left: Shape,
    /// The right operand's.
    pub right: Shape,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shape_overflows() {
        for (rows, columns) in [
            (1 << 32, 1 << 32),
            (usize::MAX, 2),
            (usize::MAX, usize::MAX),
        ] {
            let shape = Shape::Matrix { rows, columns };
            assert_eq!(shape.len(), usize::MAX);
            assert!(!shape.is_empty());
        }
        let (rows, columns) = (0, usize::MAX);
        assert!(Shape::Matrix { rows, columns }.is_empty());
    }

    #[test]
    fn what_goes_together() {
        let m = Shape::Matrix {
            rows: 3,
            columns: 4,
        };
        assert_eq!(m.broadcast(Shape::Vector(4)), Ok(m));
        assert_eq!(Shape::Vector(1).broadcast(m), Ok(m));
        assert_eq!(
            m.broadcast(Shape::Matrix {
                rows: 1,
                columns: 4
            }),
            Ok(m)
        );
        let error = m.broadcast(Shape::Vector(3)).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("arrays of shape 3x4 and 3 do not go together")
        );
    }
}
