//! Where the elements of an array lie in its buffer.

use smallvec::SmallVec;

use crate::{ArrayError, Result, Shape};

/// Distances of elements that are neighbours along each dimension, in elements.
pub(crate) type Strides = SmallVec<[isize; 4]>;

/// A shape, and where its elements lie: that of indices `i` at `offset` and the sum of `i * stride`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    pub(crate) strides: Strides,
    pub(crate) offset: usize,
}

/// The distances in an array of these extents whose elements lie one after the other, the last dimension fastest.
pub(crate) fn dense_strides(dims: &[usize]) -> Strides {
    let mut strides: Strides = SmallVec::from_elem(0, dims.len());
    let mut next = 1isize;
    for (stride, dim) in strides.iter_mut().zip(dims).rev() {
        *stride = next;
        next = next.saturating_mul((*dim).max(1) as isize);
    }
    strides
}

impl Layout {
    /// Elements one after the other from the first of a buffer.
    pub(crate) fn dense(shape: Shape) -> Layout {
        Layout {
            strides: dense_strides(shape.dims()),
            shape,
            offset: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.shape.len()
    }

    /// Whether the elements lie one after the other, in order.
    pub(crate) fn is_dense(&self) -> bool {
        let dense = dense_strides(self.shape.dims());
        let mut dims = self
            .shape
            .dims()
            .iter()
            .zip(self.strides.iter().zip(&dense));
        self.shape.is_empty() || dims.all(|(dim, (stride, dense))| *dim == 1 || stride == dense)
    }

    /// Whether the elements are all of a buffer of so many, in order.
    pub(crate) fn is_all(&self, buffer: usize) -> bool {
        self.offset == 0 && self.len() == buffer && self.is_dense()
    }

    /// The first place of an element, and the one behind the last; of at least one element.
    pub(crate) fn span(&self) -> (usize, usize) {
        let reach = |(dim, stride): (&usize, &isize)| (*dim as isize - 1) * stride;
        let reaches = self.shape.dims().iter().zip(&self.strides).map(reach);
        let (mut first, mut last) = (self.offset as isize, self.offset as isize);
        for reach in reaches {
            first += reach.min(0);
            last += reach.max(0);
        }
        (first as usize, last as usize + 1)
    }

    /// Where the element of these indices lies.
    pub(crate) fn place(&self, indices: &[usize]) -> usize {
        let steps = indices.iter().zip(&self.strides);
        let shift: isize = steps.map(|(i, stride)| *i as isize * stride).sum();
        (self.offset as isize + shift) as usize
    }

    /// The elements as those of a larger shape, along whose other dimensions they are the same; `None` if they do not go
    /// with it.
    pub(crate) fn broadcast_to(&self, shape: &Shape) -> Option<Layout> {
        if self.shape == *shape {
            return Some(self.clone());
        }
        if self.shape.rank() == 0 {
            return Some(Layout {
                shape: shape.clone(),
                strides: SmallVec::from_elem(0, shape.rank()),
                offset: self.offset,
            });
        }
        let missing = shape.rank().checked_sub(self.shape.rank())?;
        let stride = |(at, dim): (usize, &usize)| match at.checked_sub(missing) {
            None => Some(0),
            Some(own) if self.shape.dims()[own] == *dim => Some(self.strides[own]),
            Some(own) => (self.shape.dims()[own] == 1).then_some(0),
        };
        let strides = shape.dims().iter().enumerate().map(stride);
        Some(Layout {
            strides: strides.collect::<Option<_>>()?,
            shape: shape.clone(),
            offset: self.offset,
        })
    }

    /// The dimensions with these numbers, in their order.
    pub(crate) fn permuted(&self, order: &[usize]) -> Layout {
        Layout {
            shape: Shape::of(order.iter().map(|at| self.shape.dims()[*at])),
            strides: order.iter().map(|at| self.strides[*at]).collect(),
            offset: self.offset,
        }
    }

    /// Elements `start + step * i` along a dimension, `count` of them.
    pub(crate) fn stepped(
        &self,
        axis: usize,
        (start, step, count): (usize, isize, usize),
    ) -> Layout {
        let mut layout = self.clone();
        let dims = self.shape.dims().iter().enumerate();
        layout.shape = Shape::of(dims.map(|(at, dim)| if at == axis { count } else { *dim }));
        layout.strides[axis] = self.strides[axis] * step;
        // Without elements the buffer may have none either, and nothing lies beyond its end.
        layout.offset = match layout.shape.is_empty() {
            true => 0,
            false => (self.offset as isize + start as isize * self.strides[axis]) as usize,
        };
        layout
    }

    /// Without a dimension, of whose elements those with this index stay.
    pub(crate) fn without(&self, axis: usize, index: usize) -> Layout {
        let mut layout = self.stepped(axis, (index, 1, 1));
        let dims = self.shape.dims().iter().enumerate();
        layout.shape = Shape::of(dims.filter(|(at, _)| *at != axis).map(|(_, dim)| *dim));
        layout.strides.remove(axis);
        layout
    }

    /// With one more dimension, before the one that has this number.
    pub(crate) fn with(&self, axis: usize, (dim, stride): (usize, isize)) -> Layout {
        let mut dims: Vec<usize> = self.shape.dims().to_vec();
        dims.insert(axis, dim);
        let mut strides = self.strides.clone();
        strides.insert(axis, stride);
        Layout {
            shape: Shape::of(dims),
            strides,
            offset: self.offset,
        }
    }

    /// The elements in their order as those of another shape of as many; `None` if no distances say so.
    pub(crate) fn reshaped(&self, shape: &Shape) -> Option<Layout> {
        if self.shape.is_empty() {
            return Some(Layout {
                offset: self.offset,
                ..Layout::dense(shape.clone())
            });
        }
        let mut old = collapsed(self.shape.dims(), &self.strides)
            .into_iter()
            .rev();
        let (mut left, mut stride) = old.next().unwrap_or((1, 1));
        let mut strides: Strides = SmallVec::from_elem(0, shape.rank());
        for (at, dim) in shape.dims().iter().enumerate().rev() {
            if left == 1 && *dim > 1 {
                (left, stride) = old.next()?;
            }
            if left % dim != 0 {
                return None;
            }
            strides[at] = stride;
            left /= dim;
            stride *= *dim as isize;
        }
        Some(Layout {
            shape: shape.clone(),
            strides,
            offset: self.offset,
        })
    }
}

/// The dimensions that are left when those of one element are left out, and those whose elements lie one after the other
/// are one.
fn collapsed(dims: &[usize], strides: &[isize]) -> Vec<(usize, isize)> {
    let mut left: Vec<(usize, isize)> = Vec::new();
    for (&dim, &stride) in dims.iter().zip(strides).filter(|(dim, _)| **dim != 1) {
        match left.last_mut() {
            Some(last) if last.1 == stride * dim as isize => *last = (last.0 * dim, stride),
            _ => left.push((dim, stride)),
        }
    }
    left
}

/// The number of a dimension, counted from the end if it is negative.
pub(crate) fn axis_of(axis: isize, shape: &Shape) -> Result<usize> {
    let rank = shape.rank() as isize;
    let at = if axis < 0 { axis + rank } else { axis };
    match (0..rank).contains(&at) {
        true => Ok(at as usize),
        false => Err(ArrayError::Axis {
            axis,
            shape: shape.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(dims: &[usize]) -> Layout {
        Layout::dense(Shape::new(dims))
    }

    #[test]
    fn what_is_reshaped_without_a_copy() {
        let x = dense(&[4, 6]);
        let flat = x
            .reshaped(&Shape::new(24))
            .map(|flat| flat.strides.to_vec());
        assert_eq!(flat, Some(vec![1]));
        let left = x.stepped(1, (0, 1, 3));
        assert!(left.reshaped(&Shape::new(12)).is_none());
        let cut = left.reshaped(&Shape::new((2, 2, 1, 3)));
        assert_eq!(cut.map(|cut| cut.strides.to_vec()), Some(vec![12, 6, 3, 1]));
        let t = x.permuted(&[1, 0]);
        assert!(t.reshaped(&Shape::new(24)).is_none());
        assert!(t.reshaped(&Shape::new((3, 2, 4))).is_some());
        assert!(dense(&[]).reshaped(&Shape::new((1, 1))).is_some());
        assert!(dense(&[1, 1]).reshaped(&Shape::new(())).is_some());
    }

    #[test]
    fn where_elements_lie() {
        let x = dense(&[2, 3]).permuted(&[1, 0]);
        assert_eq!(
            (x.place(&[2, 1]), x.place(&[0, 1]), x.span()),
            (5, 3, (0, 6))
        );
        let back = dense(&[4]).stepped(0, (3, -1, 4));
        assert_eq!(
            (back.place(&[0]), back.place(&[3]), back.span()),
            (3, 0, (0, 4))
        );
        assert_eq!((dense(&[]).place(&[]), dense(&[]).span()), (0, (0, 1)));
        // Also if it is another dimension that has no element.
        assert_eq!(dense(&[4, 0]).stepped(0, (1, 1, 3)).offset, 0);
    }
}
