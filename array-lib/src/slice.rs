//! Which elements of an array a view shows: what `s![..]` says.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::layout::{Layout, axis_of};
use crate::{ArrayError, Result};

/// What a view shows along one dimension: what stands between the commas of [`s!`](crate::s).
///
/// ```
/// use kiln::array::{SliceItem, s};
///
/// let all: [SliceItem; 3] = s![1..-1, ..;2, -1];
/// assert_eq!(all[2], SliceItem::from(-1));
/// assert_eq!(all[1], SliceItem::from(..).step_by(2));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SliceItem {
    /// One index; the view has no such dimension. A negative one counts from the end.
    Index(isize),
    /// Indices from `start` up to `end`, both counted from the end if they are negative, every `step`th; from the last
    /// one down if the step is negative.
    Range {
        /// The first.
        start: isize,
        /// The one behind the last; `None` for all that are there.
        end: Option<isize>,
        /// How far one is from the next; not 0.
        step: isize,
    },
}

impl SliceItem {
    /// Every `step`th of the elements; from the last one down if it is negative. What `;` says in [`s!`](crate::s).
    pub fn step_by(self, step: isize) -> SliceItem {
        match self {
            SliceItem::Index(_) => self,
            SliceItem::Range { start, end, .. } => SliceItem::Range { start, end, step },
        }
    }
}

macro_rules! items {
    ($($number:ty)*) => {$(
        impl From<$number> for SliceItem {
            fn from(index: $number) -> SliceItem {
                SliceItem::Index(index as isize)
            }
        }
        impl From<Range<$number>> for SliceItem {
            fn from(range: Range<$number>) -> SliceItem {
                let end = Some(range.end as isize);
                SliceItem::Range { start: range.start as isize, end, step: 1 }
            }
        }
        impl From<RangeFrom<$number>> for SliceItem {
            fn from(range: RangeFrom<$number>) -> SliceItem {
                SliceItem::Range { start: range.start as isize, end: None, step: 1 }
            }
        }
        impl From<RangeTo<$number>> for SliceItem {
            fn from(range: RangeTo<$number>) -> SliceItem {
                SliceItem::Range { start: 0, end: Some(range.end as isize), step: 1 }
            }
        }
        impl From<RangeInclusive<$number>> for SliceItem {
            fn from(range: RangeInclusive<$number>) -> SliceItem {
                let end = behind(*range.end() as isize);
                SliceItem::Range { start: *range.start() as isize, end, step: 1 }
            }
        }
        impl From<RangeToInclusive<$number>> for SliceItem {
            fn from(range: RangeToInclusive<$number>) -> SliceItem {
                SliceItem::Range { start: 0, end: behind(range.end as isize), step: 1 }
            }
        }
    )*};
}
items! { i32 isize usize }

/// The index behind this one; `None` behind the last one, -1.
fn behind(last: isize) -> Option<isize> {
    (last != -1).then_some(last.saturating_add(1))
}

impl From<RangeFull> for SliceItem {
    fn from(_: RangeFull) -> SliceItem {
        SliceItem::Range {
            start: 0,
            end: None,
            step: 1,
        }
    }
}

/// Which elements of an array a view shows, a range or an index for each dimension: `s![1..3, .., ..;2, -1]`. A range
/// has its step behind a `;`; with a negative one it is shown from its last element down. An index leaves its dimension
/// out. Negative numbers count from the end, as in NumPy. What is not said of the last dimensions is `..`.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let x = arrays.array((0..24).collect::<Vec<i32>>(), (4, 6))?;
/// assert_eq!(x.slice(s![1..3, ..;2])?.to_vec()?, [6, 8, 10, 12, 14, 16]);
/// assert_eq!(x.slice(s![-1, -2..])?.to_vec()?, [22, 23]);
/// assert_eq!(x.slice(s![..;-1, 0])?.to_vec()?, [18, 12, 6, 0]);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! s {
    (@items [$($done:expr,)*]) => {
        {
            #[allow(clippy::reversed_empty_ranges, reason = "negative numbers count from the end")]
            let items: [$crate::SliceItem; _] = [$($done),*];
            items
        }
    };
    (@items [$($done:expr,)*] $item:expr; $step:expr, $($rest:tt)*) => {
        $crate::s!(@items [$($done,)* $crate::SliceItem::from($item).step_by($step),] $($rest)*)
    };
    (@items [$($done:expr,)*] $item:expr; $step:expr) => {
        $crate::s!(@items [$($done,)* $crate::SliceItem::from($item).step_by($step),])
    };
    (@items [$($done:expr,)*] $item:expr, $($rest:tt)*) => {
        $crate::s!(@items [$($done,)* $crate::SliceItem::from($item),] $($rest)*)
    };
    (@items [$($done:expr,)*] $item:expr) => {
        $crate::s!(@items [$($done,)* $crate::SliceItem::from($item),])
    };
    ($($items:tt)*) => {
        $crate::s!(@items [] $($items)*)
    };
}

impl Layout {
    /// What these items show.
    pub(crate) fn sliced(&self, items: &[SliceItem]) -> Result<Layout> {
        let shape = &self.shape;
        if items.len() > shape.rank() {
            return Err(ArrayError::Items {
                items: items.len(),
                shape: shape.clone(),
            });
        }
        let (mut layout, mut axis) = (self.clone(), 0);
        for (at, item) in items.iter().enumerate() {
            let dim = shape.dims()[at];
            let outside = || ArrayError::Outside {
                item: *item,
                axis: at,
                shape: shape.clone(),
            };
            match *item {
                SliceItem::Index(index) => {
                    layout = layout.without(axis, place(index, dim).ok_or_else(outside)?);
                }
                SliceItem::Range { start, end, step } => {
                    let (first, end) = bounds((start, end), dim).ok_or_else(outside)?;
                    let count = (end - first).div_ceil(step.unsigned_abs().max(1));
                    if step == 0 {
                        return Err(outside());
                    }
                    let from = if step > 0 {
                        first
                    } else {
                        end.saturating_sub(1)
                    };
                    layout = layout.stepped(axis, (from, step, count));
                    axis += 1;
                }
            }
        }
        Ok(layout)
    }

    /// Without a dimension that is named by its number, of whose elements those with this index stay.
    pub(crate) fn indexed(&self, axis: isize, index: isize) -> Result<Layout> {
        let axis = axis_of(axis, &self.shape)?;
        let index = place(index, self.shape.dims()[axis]).ok_or_else(|| ArrayError::Outside {
            item: SliceItem::Index(index),
            axis,
            shape: self.shape.clone(),
        })?;
        Ok(self.without(axis, index))
    }
}

/// The index that this is of so many.
pub(crate) fn place(index: isize, dim: usize) -> Option<usize> {
    let at = if index < 0 {
        index + dim as isize
    } else {
        index
    };
    (0..dim as isize).contains(&at).then_some(at as usize)
}

/// A range of so many.
fn bounds((start, end): (isize, Option<isize>), dim: usize) -> Option<(usize, usize)> {
    let bound = |at: isize| if at < 0 { at + dim as isize } else { at };
    let (start, end) = (bound(start), end.map_or(dim as isize, bound));
    let is_there = 0 <= start && start <= end && end <= dim as isize;
    is_there.then_some((start as usize, end as usize))
}

impl std::fmt::Display for SliceItem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            SliceItem::Index(index) => write!(f, "{index}"),
            SliceItem::Range { start, end, step } => {
                write!(f, "{start}..")?;
                if let Some(end) = end {
                    write!(f, "{end}")?;
                }
                if step != 1 {
                    write!(f, ";{step}")?;
                }
                Ok(())
            }
        }
    }
}
