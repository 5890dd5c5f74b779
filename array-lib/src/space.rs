//! The dimensions that a kernel goes through, as few as say where all of its arrays' elements lie, and how each array is
//! read there.
//!
//! Of dimensions whose elements lie one after the other in all arrays one is left, and of those of one element none. So
//! kernels know the number of dimensions that is left, and how an array lies in them, but no extent and no distance.

use smallvec::SmallVec;

use crate::layout::{Layout, Strides, dense_strides};

/// How an array of the expression is read for an element of the result.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Access {
    /// Element `i` of what is passed.
    Linear,
    /// The only element of what is passed.
    One,
    /// A number, not an array.
    Scalar,
    /// All of the buffer, for a function that reads it where it likes.
    Whole,
    /// The element where distances say, in each group of dimensions.
    Strided([Inner; 2]),
    /// The index along this dimension of those that are left.
    Coordinate(usize),
    /// The element that the result is stored to.
    Own,
}

/// How an array lies in a group of dimensions.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Inner {
    /// One element stands for all of them.
    Same,
    /// Neighbours along the last dimension lie side by side.
    Unit,
    /// Neighbours along the last dimension are one element.
    Still,
    /// Anyhow.
    Any,
}

/// A group of dimensions, of which a kernel has one index: all of an element-wise kernel; those that stay and those that
/// are folded of a reduction.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) dims: SmallVec<[usize; 4]>,
    /// The distances in each array.
    pub(crate) strides: SmallVec<[Strides; 4]>,
}

impl Group {
    /// Some dimensions of arrays of one shape, in their order.
    pub(crate) fn of<'l>(
        axes: &[usize],
        layouts: impl Iterator<Item = &'l Layout> + Clone,
    ) -> Group {
        let mut group = Group::default();
        let Some(first) = layouts.clone().next() else {
            return group;
        };
        group.strides = layouts.clone().map(|_| Strides::new()).collect();
        for axis in axes
            .iter()
            .copied()
            .filter(|axis| first.shape.dims()[*axis] != 1)
        {
            let dim = first.shape.dims()[axis];
            let strides: Strides = layouts.clone().map(|layout| layout.strides[axis]).collect();
            group.push(dim, &strides);
        }
        group
    }

    /// Adds a dimension behind the others, or makes it one with the last.
    fn push(&mut self, dim: usize, strides: &[isize]) {
        let goes_on =
            |(own, stride): (&Strides, &isize)| own.last() == Some(&(stride * dim as isize));
        let is_one = !self.dims.is_empty() && self.strides.iter().zip(strides).all(goes_on);
        match self.dims.last_mut() {
            Some(last) if is_one => *last *= dim,
            _ => self.dims.push(dim),
        }
        for (own, stride) in self.strides.iter_mut().zip(strides) {
            if is_one {
                own.pop();
            }
            own.push(*stride);
        }
    }

    /// How an array lies in it.
    pub(crate) fn inner(&self, array: usize) -> Inner {
        match self.strides[array].as_slice() {
            strides if strides.iter().all(|stride| *stride == 0) => Inner::Same,
            [.., 1] => Inner::Unit,
            [.., 0] => Inner::Still,
            _ => Inner::Any,
        }
    }

    /// The dimension along which alone an array goes on, by one element.
    pub(crate) fn coordinate(&self, array: usize) -> Option<usize> {
        let strides = self.strides[array].iter();
        let mut along = strides.enumerate().filter(|(_, stride)| **stride != 0);
        match (along.next(), along.next()) {
            (Some((dim, 1)), None) => Some(dim),
            _ => None,
        }
    }

    /// Whether the elements of an array lie one after the other.
    pub(crate) fn is_dense(&self, array: usize) -> bool {
        self.strides[array] == dense_strides(&self.dims)
    }

    /// The distances of an array that a kernel is passed.
    pub(crate) fn passed(&self, array: usize) -> &[isize] {
        match (self.inner(array), self.strides[array].as_slice()) {
            (Inner::Same, _) | (_, []) => &[],
            (Inner::Unit | Inner::Still, [outer @ .., _]) => outer,
            (_, strides) => strides,
        }
    }

    /// The extents that a kernel is passed, by which an index is taken apart.
    pub(crate) fn passed_dims(&self) -> &[usize] {
        self.dims.get(1..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    #[test]
    fn dimensions_become_one() {
        let dense = Layout::dense(Shape::new((2, 3, 4)));
        let row = Layout::dense(Shape::new(4)).broadcast_to(&dense.shape);
        let row = row.expect("it goes with it");
        let all =
            |layouts: &[&Layout]| Group::of(&[0, 1, 2], layouts.iter().copied()).dims.to_vec();
        assert_eq!(all(&[&dense]), [24]);
        assert_eq!(all(&[&dense, &row]), [6, 4]);
        let turned = dense.permuted(&[2, 0, 1]);
        assert_eq!(all(&[&turned]), [4, 6]);
        let one = Layout::dense(Shape::new((1, 1, 1)));
        assert!(all(&[&one]).is_empty());
    }
}
