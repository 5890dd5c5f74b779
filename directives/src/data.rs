//! `global!(..)` and `constant!(..)`: sections of slices that are copied to the device and back where the directive stands.
//!
//! A slice on the device is there as a whole, so that indices are those of the host; what is said of sections is which of its
//! elements are copied, and which regions may use.

use std::ops::{Bound, Range, RangeBounds};

use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::error::Result;
use kiln_jit_core::region::Region;
use kiln_jit_core::value::KernelType;

use crate::constant::{Chosen, MAX_BYTES};
use crate::error::DirectiveError;
use crate::offload::{Copied, Held, Offload, Present, Ready};
use crate::touched::Elements;

/// Elements of a slice that has a shape: a range along each dimension.
#[derive(Clone, Debug)]
pub struct Section {
    pub(crate) region: Region,
    /// Planes, rows and columns of all, and where the section begins.
    whole: [usize; 3],
    start: [usize; 3],
    pub(crate) elements: Elements,
    pub(crate) is_all: bool,
}

impl Section {
    /// Elements of a slice of so many, as rows and planes of a shape.
    ///
    /// # Errors
    /// A shape of more elements or fewer; a range that ends beyond it.
    pub fn of<const N: usize>(
        len: usize,
        shape: [usize; N],
        ranges: [(Bound<usize>, Bound<usize>); N],
    ) -> Result<Section> {
        check_shape(len, &shape)?;
        let mut extents = shape.iter();
        let ranges = ranges.map(|bounds| range(bounds, *extents.next().unwrap_or(&1)));
        let region = Region::of(shape).part(ranges.clone())?;
        Ok(Section {
            is_all: region.len() == len,
            whole: last_three(shape, 1),
            start: last_three(ranges.clone().map(|range| range.start), 0),
            elements: Elements::boxed(&shape, &ranges),
            region,
        })
    }

    /// The elements of a row in the slice.
    fn row(&self, plane: usize, row: usize) -> Range<usize> {
        let [_, rows, columns] = self.whole;
        let [first, above, before] = self.start;
        let start = ((first + plane) * rows + above + row) * columns + before;
        start..start + self.region.extent()[2]
    }

    /// From the first element of the section to its last one, with what is between.
    fn span(&self) -> Range<usize> {
        let [planes, rows, _] = self.region.extent();
        match self.region.is_empty() {
            true => 0..0,
            false => self.row(0, 0).start..self.row(planes - 1, rows - 1).end,
        }
    }

    /// How many bytes the elements have.
    fn bytes<T>(&self) -> usize {
        self.region.len() * size_of::<T>()
    }
}

/// Refuses a shape of more elements than a slice has, or fewer.
pub fn check_shape(len: usize, shape: &[usize]) -> Result<(), DirectiveError> {
    let mut extents = shape.iter();
    let all = extents.try_fold(1usize, |all, &extent| all.checked_mul(extent));
    if all != Some(len) {
        let shape = format!("{shape:?}");
        return Err(DirectiveError::Shape { shape, len });
    }
    Ok(())
}

/// Numbers along three dimensions, of which the first ones are this if there are fewer.
fn last_three<const N: usize>(numbers: [usize; N], first: usize) -> [usize; 3] {
    std::array::from_fn(|at| match (at + N).checked_sub(3) {
        Some(at) => numbers[at],
        None => first,
    })
}

/// The range of bounds along so many elements.
fn range((start, end): (Bound<usize>, Bound<usize>), extent: usize) -> Range<usize> {
    let start = match start {
        Bound::Included(start) => start,
        Bound::Excluded(start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match end {
        Bound::Included(end) => end.saturating_add(1),
        Bound::Excluded(end) => end,
        Bound::Unbounded => extent,
    };
    start..end
}

/// The bounds of a range.
pub fn bounds(range: impl RangeBounds<usize>) -> (Bound<usize>, Bound<usize>) {
    (range.start_bound().cloned(), range.end_bound().cloned())
}

/// The section that is written over, and the elements that come there, of as many along each dimension.
pub fn copy_section<T: KernelType>(
    (to, over): (&mut [T], &Section),
    (from, section): (&[T], &Section),
) -> Result<()> {
    let [to_extent, extent] = [over, section].map(|section| section.region.extent());
    if to_extent != extent {
        let (from, to) = (extent, to_extent);
        return Err(DirectiveError::Extents { from, to }.into());
    }
    let [planes, rows, _] = extent;
    for (plane, row) in (0..planes).flat_map(|plane| (0..rows).map(move |row| (plane, row))) {
        let (to_row, from_row) = (over.row(plane, row), section.row(plane, row));
        to[to_row].copy_from_slice(&from[from_row]);
    }
    Ok(())
}

/// Sets all elements to zero, as the sequential program does.
pub fn clear<T: Copy + Default>(slice: &mut [T]) {
    slice.fill(T::default());
}

impl<T: KernelType> Present<T> {
    /// As [`Present::alloc`], of elements that alone regions may use.
    pub fn alloc_section(&mut self, section: Section) {
        self.alloc();
        self.allocated = (!section.is_all).then_some(section);
    }

    /// Copies elements to the device.
    ///
    /// # Errors
    /// What a copy meets; elements of which the device has newer ones, or outside of those that are there.
    pub fn copy_in(
        &mut self,
        offload: &mut Offload<'_>,
        (slice, name): (&[T], &str),
        section: Section,
    ) -> Result<()> {
        self.is_kept()?;
        let refuse = |problem| Err(not_copied(name, problem));
        if self.is_newer {
            return refuse(
                "a region has written it since it was copied to the host: copy it out first",
            );
        }
        let allocated = self.allocated.as_ref();
        if allocated.is_some_and(|all| !section.elements.are_among(&all.elements)) {
            return refuse("these are not among the elements that `alloc` says");
        }
        if matches!(self.held, Held::Nothing) && self.written.is_none() {
            self.written = Some(Vec::new());
        }
        self.hold(offload, slice.len())?;
        if section.region.is_empty() {
            if section.is_all {
                self.written = None;
            }
            return Ok(());
        }
        if let Held::Buffer(buffer) = &mut self.held {
            buffer.write_region(&section.region, slice, &section.region)?;
        }
        offload.report.uploads += 1;
        offload.report.uploaded_bytes += section.bytes::<T>();
        match (section.is_all, &mut self.written) {
            (true, written) => *written = None,
            (false, Some(written)) => written.push(section.elements),
            (false, None) => {}
        }
        Ok(())
    }

    /// Copies elements to the device, and has launches pass them by value as far as there is room: those that regions read
    /// from here on, until the host may have written the slice, or [`Present::remove`].
    ///
    /// # Errors
    /// As [`Present::copy_in`]; more bytes than constant memory has.
    pub fn constant_in(
        &mut self,
        offload: &mut Offload<'_>,
        (slice, name): (&[T], &str),
        section: Section,
    ) -> Result<()> {
        if self.constant.is_some() {
            self.let_go();
        }
        let span = section.span();
        let bytes = (span.len() * size_of::<T>()) as u64;
        if bytes > MAX_BYTES {
            let slice = name.to_owned();
            return Err(DirectiveError::Constants { slice, bytes }.into());
        }
        self.copy_in(offload, (slice, name), section.clone())?;
        let chosen = Chosen {
            start: span.start as u64,
            count: span.len() as u64,
            is_all: section.is_all,
        };
        let values = slice[span].to_vec();
        self.constant = Some(Copied { chosen, values });
        self.allocated = (!section.is_all).then_some(section);
        Ok(())
    }

    /// Takes the slice out of constant memory, and off the device.
    ///
    /// # Errors
    /// A slice that is not there.
    pub fn remove(&mut self, name: &str) -> Result<(), DirectiveError> {
        if self.constant.is_none() {
            return Err(DirectiveError::Constant {
                slice: name.to_owned(),
                problem: "`remove` is of a slice that is not there: say `constant!(copyin ..)` of it before; one that the host may \
                          have written is not there any more, either",
            });
        }
        self.let_go();
        Ok(())
    }

    /// The elements of the slice that are in constant memory.
    pub fn chosen(&self) -> Option<Chosen> {
        self.constant.as_ref().map(|held| held.chosen)
    }

    /// Elements in constant memory as an argument of a region, in which the slice is this parameter; none if they had no room.
    pub fn by_value(&self, ready: &Ready, param: usize) -> Option<Arg<'static>> {
        let capacity = ready.capacity(param)?;
        by_value(&self.constant.as_ref()?.values, capacity)
    }

    /// Copies elements to the host, where a region has written the slice. The device keeps them.
    ///
    /// # Errors
    /// What a copy meets; elements that are not known to be there.
    pub fn copy_out(
        &mut self,
        offload: &mut Offload<'_>,
        (slice, name): (&mut [T], &str),
        section: &Section,
    ) -> Result<()> {
        if self.has_newer(name, section)? {
            self.read_section(offload, (slice, section), section)?;
            self.is_newer &= !section.is_all;
        }
        Ok(())
    }

    /// Copies elements over others of another slice of the host.
    ///
    /// # Errors
    /// As [`Present::copy_out`]; sections of different extents.
    pub fn copy_out_to(
        &mut self,
        offload: &mut Offload<'_>,
        (slice, name): (&[T], &str),
        section: &Section,
        (to, over): (&mut [T], &Section),
    ) -> Result<()> {
        match self.has_newer(name, section)? {
            true => self.read_section(offload, (to, over), section),
            false => copy_section((to, over), (slice, section)),
        }
    }

    /// Whether the device has newer elements than the host.
    fn has_newer(&self, name: &str, section: &Section) -> Result<bool> {
        self.is_kept()?;
        if !self.is_newer || section.region.is_empty() {
            return Ok(false);
        }
        match self.is_known(section) {
            true => Ok(true),
            false => Err(not_copied(
                name,
                "no copy and no region is known to have written all of these",
            )),
        }
    }

    /// Whether all of a section is known to be on the device.
    pub(crate) fn is_known(&self, section: &Section) -> bool {
        let elements = &section.elements;
        let is_there =
            |written: &Vec<Elements>| written.iter().any(|some| elements.are_among(some));
        self.written.as_ref().is_none_or(is_there)
    }

    /// Copies a section that is there to the host.
    pub(crate) fn read_section(
        &self,
        offload: &mut Offload<'_>,
        (slice, over): (&mut [T], &Section),
        section: &Section,
    ) -> Result<()> {
        if over.region.extent() != section.region.extent() {
            return Err(DirectiveError::Extents {
                from: section.region.extent(),
                to: over.region.extent(),
            }
            .into());
        }
        if let Held::Buffer(buffer) = &self.held {
            buffer.read_region(&section.region, slice, &over.region)?;
        }
        offload.report.downloads += 1;
        offload.report.downloaded_bytes += section.bytes::<T>();
        Ok(())
    }

    /// Sets all elements on the device to zero; they are newer than the host's.
    pub fn clear(&mut self, offload: &mut Offload<'_>, len: usize) -> Result<()> {
        self.begin_anew();
        self.hold(offload, len)?;
        (self.written, self.is_newer) = (None, true);
        Ok(())
    }

    /// Copies what a region has written to the host, and lets go what is on the device.
    pub fn free(&mut self, offload: &mut Offload<'_>, slice: &mut [T]) -> Result<()> {
        self.copy_back(offload, slice)?;
        self.let_go();
        Ok(())
    }

    /// Refuses uses by a region of elements that are not those that `alloc` says.
    pub(crate) fn are_allocated(
        &self,
        ready: &Ready,
        param: usize,
        name: &str,
    ) -> Result<(), DirectiveError> {
        let Some(allocated) = &self.allocated else {
            return Ok(());
        };
        let touched = ready.touched(param);
        for (place, elements) in touched.reads.iter().chain(&touched.stores) {
            let is_among = |elements: &Elements| elements.are_among(&allocated.elements);
            if !elements.as_ref().is_some_and(is_among) {
                return Err(DirectiveError::Outside {
                    place: place.clone(),
                    slice: name.to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Numbers as an array of so many, one of [`CAPACITIES`](crate::constant::CAPACITIES).
fn by_value<T: KernelType>(values: &[T], capacity: u64) -> Option<Arg<'static>> {
    Some(match capacity {
        8 => array::<T, 8>(values)?,
        32 => array::<T, 32>(values)?,
        125 => array::<T, 125>(values)?,
        250 => array::<T, 250>(values)?,
        500 => array::<T, 500>(values)?,
        1000 => array::<T, 1000>(values)?,
        2000 => array::<T, 2000>(values)?,
        4000 => array::<T, 4000>(values)?,
        _ => return None,
    })
}

/// An array that begins with these values; what follows is the last one.
fn array<T: KernelType, const N: usize>(values: &[T]) -> Option<Arg<'static>> {
    let last = *values.last()?;
    let values: [T; N] = std::array::from_fn(|at| values.get(at).copied().unwrap_or(last));
    Some(values.into_arg())
}

fn not_copied(slice: &str, problem: &'static str) -> kiln_jit_core::error::Error {
    let slice = slice.to_owned();
    DirectiveError::NotCopied { slice, problem }.into()
}
