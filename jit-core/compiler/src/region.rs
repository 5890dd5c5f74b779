//! Rectangles and boxes of elements in buffers that are matrices, and copies of them.

use std::ops::Range;

use kiln_runtime::{Laid, Rows};

use crate::error::{MemoryError, Result};
use crate::part::Part;
use crate::value::{KernelType, bytes_of, vec_from_bytes};

/// Elements of a matrix, or of several behind each other: a rectangle of rows and columns, or a box of planes, rows and
/// columns. Copies are of one region to another of the same extent, on the host or on devices.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::region::Region;
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let image = jit.upload(&(0..30).collect::<Vec<u32>>())?; // 5 rows of 6
/// let whole = Region::of([5, 6]);
/// let inner = whole.part([1..3, 2..5])?;
/// let mut crop = vec![0; 6];
/// image.read_region(&inner, &mut crop, &Region::of([2, 3]))?;
/// assert_eq!(crop, [8, 9, 10, 14, 15, 16]);
///
/// let mut copy = jit.zeros::<u32>(30)?;
/// copy.copy_region(&whole.part([0..2, 0..3])?, &image, &inner)?; // on the device
/// copy.write_region(&whole.part([4..5, 4..6])?, &[7, 8, 9], &Region::of([3]).part([1..3])?)?;
/// let copy = copy.to_vec()?;
/// assert_eq!((&copy[..4], &copy[6..10]), (&[8, 9, 10, 0][..], &[14, 15, 16, 0][..]));
/// assert_eq!(copy[28..], [8, 9]);
///
/// let cube = Region::of([4, 5, 6]); // 4 planes
/// assert_eq!(cube.part([1..3, 0..5, 2..4])?.extent(), [2, 5, 2]);
/// assert!(cube.part([1..3, 0..6, 2..4]).is_err() && whole.part([0..5, 4..7]).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Planes, rows and columns of all.
    whole: [usize; 3],
    start: [usize; 3],
    extent: [usize; 3],
}

/// Planes, rows and columns; those that are not said are one.
fn of_three<const N: usize, T>(values: [T; N], one: impl Fn() -> T) -> [T; 3] {
    const { assert!(N >= 1 && N <= 3, "a region has one to three dimensions") };
    let mut values = values.into_iter();
    let missing = 3 - N;
    std::array::from_fn(|at| match at < missing {
        true => one(),
        false => values.next().unwrap_or_else(&one),
    })
}

impl Region {
    /// All of a buffer of so many elements: `[columns]`, `[rows, columns]` or `[planes, rows, columns]`, of which the last
    /// lie next to each other.
    pub fn of<const N: usize>(whole: [usize; N]) -> Region {
        let whole = of_three(whole, || 1);
        Region {
            whole,
            start: [0; 3],
            extent: whole,
        }
    }

    /// Some of its elements: a range for each dimension, of this region's.
    ///
    /// # Errors
    /// A range that ends beyond the region, or before it begins.
    pub fn part<const N: usize>(&self, ranges: [Range<usize>; N]) -> Result<Region> {
        let ranges = of_three(ranges, || 0..1);
        let is_there = |(range, extent): (&Range<usize>, usize)| {
            range.start <= range.end && range.end <= extent
        };
        if !ranges.iter().zip(self.extent).all(is_there) {
            return Err(MemoryError::NoRegion {
                whole: self.extent,
                ranges,
            }
            .into());
        }
        Ok(Region {
            whole: self.whole,
            start: std::array::from_fn(|at| self.start[at] + ranges[at].start),
            extent: ranges.map(|range| range.end - range.start),
        })
    }

    /// Planes, rows and columns.
    pub fn extent(&self) -> [usize; 3] {
        self.extent
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        let [planes, rows, columns] = self.extent;
        planes.saturating_mul(rows).saturating_mul(columns)
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Refuses memory of fewer elements than there are in all.
    fn check_within(&self, elements: usize) -> Result<(), MemoryError> {
        let [planes, rows, columns] = self.whole;
        let all = planes.saturating_mul(rows).saturating_mul(columns);
        match all <= elements {
            true => Ok(()),
            false => Err(MemoryError::RegionTooLarge {
                whole: self.whole,
                elements,
            }),
        }
    }

    /// The place of the rows in memory that begins here, with elements of a size.
    fn laid(&self, start: u64, size: usize) -> Laid {
        let [_, rows, columns] = self.whole;
        let first = (self.start[0] * rows + self.start[1]) * columns + self.start[2];
        Laid {
            start: start + (first * size) as u64,
            pitch: columns * size,
            plane: rows * columns * size,
        }
    }

    fn rows(&self, size: usize) -> Rows {
        let [planes, rows, columns] = self.extent;
        Rows {
            bytes: columns * size,
            rows,
            planes,
        }
    }
}

/// Refuses a copy between regions of two extents.
fn check_same(to: &Region, from: &Region) -> Result<(), MemoryError> {
    match to.extent == from.extent {
        true => Ok(()),
        false => Err(MemoryError::OtherExtent {
            to: to.extent,
            from: from.extent,
        }),
    }
}

impl<T: KernelType> Part<T> {
    /// Overwrites a region of this buffer with one of another; [`Region`] has an example. On one device nobody waits for
    /// it; from another device it goes through the host.
    ///
    /// # Errors
    /// Regions of two extents, or of more elements than a buffer has; a device that has failed.
    pub fn copy_region(&mut self, to: &Region, other: &Part<T>, from: &Region) -> Result<()> {
        check_same(to, from)?;
        to.check_within(self.len())?;
        from.check_within(other.len())?;
        if self.device_id() != other.device_id() {
            let values = other.dense(from)?;
            return self.write_region(to, &values, &Region::of(from.extent));
        }
        let size = size_of::<T>();
        let to_laid = (to.laid(self.address(), size), self.uses());
        let from_laid = (from.laid(other.address(), size), other.uses());
        Ok(self.device().copy_rows(to_laid, from_laid, to.rows(size))?)
    }

    /// Overwrites a region with one of values of the host, after all work that uses the buffer; [`Region`] has an
    /// example.
    ///
    /// # Errors
    /// As [`Part::copy_region`].
    pub fn write_region(&mut self, to: &Region, values: &[T], from: &Region) -> Result<()> {
        check_same(to, from)?;
        to.check_within(self.len())?;
        from.check_within(values.len())?;
        let size = size_of::<T>();
        let to_laid = (to.laid(self.address(), size), self.uses());
        let from_laid = (bytes_of(values), from.laid(0, size));
        Ok(self
            .device()
            .upload_rows(to_laid, from_laid, to.rows(size))?)
    }

    /// Copies a region over one of values of the host, after the work that has written the buffer; [`Region`] has an
    /// example.
    ///
    /// # Errors
    /// As [`Part::copy_region`]; a fault, as [`Part::to_vec`].
    pub fn read_region(&self, from: &Region, values: &mut [T], to: &Region) -> Result<()> {
        check_same(to, from)?;
        from.check_within(self.len())?;
        to.check_within(values.len())?;
        let dense = self.dense(from)?;
        let [planes, rows, columns] = to.extent;
        let [_, all_rows, all_columns] = to.whole;
        for (at, row) in dense
            .chunks_exact(columns.max(1))
            .enumerate()
            .take(planes * rows)
        {
            let (plane, line) = (to.start[0] + at / rows, to.start[1] + at % rows);
            let first = (plane * all_rows + line) * all_columns + to.start[2];
            values[first..first + columns].copy_from_slice(row);
        }
        Ok(())
    }

    /// The elements of a region, one behind the other.
    fn dense(&self, region: &Region) -> Result<Vec<T>> {
        self.synchronize()?;
        let (device, size) = (self.device(), size_of::<T>());
        let from = (region.laid(self.address(), size), self.uses());
        vec_from_bytes(region.len(), |bytes| {
            Ok(device.download_rows(from, bytes, region.rows(size))?)
        })
    }
}
