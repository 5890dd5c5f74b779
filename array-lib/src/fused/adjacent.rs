//! Elements next to each other that a thread of a GPU has, as many as an access of 16 bytes: the most that it reads or
//! writes at once (CUDA guide, "Device Memory Accesses").
//!
//! That accesses are one is found by LLVM, from the alignment of arrays and from indices that are multiples of how many
//! there are. What a kernel is passed, extents and distances, is therefore in units of that.

use kiln_jit_core::build::Val;

use super::{Fused, Operand, What};
use crate::input::Identity;
use crate::space::{Access, Inner};

/// The bytes of an access, at most.
const WIDEST: usize = 16;

impl Fused<'_> {
    /// How many elements next to each other a thread has.
    pub(crate) fn adjacent(&self) -> u32 {
        self.adjacent
    }

    /// The group along which a thread has elements next to each other: of a fold that which is folded, if it lies along
    /// the arrays, or that which stays.
    pub(crate) fn along(&self) -> usize {
        self.along
    }

    /// Finds how many elements next to each other a thread has; `result` is the size of what is stored or folded.
    pub(super) fn find_adjacent(&mut self, result: usize, folds: bool) {
        let is_grouped = self.groups.len() > 1;
        self.along = usize::from(is_grouped && self.apart(1) <= self.apart(0));
        if !self.is_for_gpu() || !folds && self.items == 1 && !self.by_rows {
            return;
        }
        // What is read where a function says is read an element at a time, and by threads beside each other at once only
        // where these have elements beside each other.
        if !folds && self.reads_anywhere() && self.stencil.is_none() {
            return;
        }
        let near = self.near_arrays().map(|near| near.bytes);
        let bytes = self
            .operands
            .iter()
            .filter_map(|operand| match operand.what {
                What::Buffer(input) if operand.is_along(self.along) => Some(input.element_bytes()),
                _ => None,
            });
        let Some(largest) = bytes.chain(near).max() else {
            return;
        };
        let stored = if folds { 1 } else { result };
        let mut most = WIDEST / largest.max(stored).max(1).next_power_of_two();
        while most > 1 && !self.can_have(most, is_grouped) {
            most /= 2;
        }
        self.adjacent = most.max(1) as u32;
        if !folds && self.adjacent > 1 && !self.by_rows {
            self.items = self.adjacent;
        }
    }

    fn can_have(&self, count: usize, is_grouped: bool) -> bool {
        let dims = &self.groups[self.along].dims;
        let fits = match (is_grouped, self.along) {
            (false, _) if self.by_rows => {
                self.out.is_none() && dims.last().is_some_and(|row| row.is_multiple_of(count))
            }
            (false, _) => dims.len() <= 1 && self.out.is_none(),
            (true, 0) => dims.last().is_some_and(|last| last.is_multiple_of(count)),
            (true, _) => matches!(dims.as_slice(), [row] if row.is_multiple_of(count)),
        };
        let fits = fits
            && self
                .near_arrays()
                .all(|near| self.is_near_even(near, count));
        let mut operands = self.operands.iter().enumerate();
        fits && operands.all(|(array, operand)| match (operand.what, operand.access) {
            // What is read wherever an index says is read an element at a time.
            (What::Number(_) | What::Whole(_), _)
            | (
                _,
                Access::One | Access::Scalar | Access::Own | Access::Whole | Access::Coordinate(_),
            ) => true,
            (_, Access::Linear) => operand.is_aligned(),
            (_, Access::Strided(_)) if !is_grouped && !self.by_rows => false,
            (What::Place, _) => true,
            (What::Buffer(_), Access::Strided(inners)) => match inners[self.along] {
                Inner::Same | Inner::Still => true,
                Inner::Any => false,
                Inner::Unit => self.is_even(array, count) && operand.is_aligned(),
            },
        })
    }

    /// Whether an operand begins at a multiple of so many elements, in all rows.
    pub(super) fn is_even(&self, array: usize, count: usize) -> bool {
        let mut passed = self.groups.iter().flat_map(|group| group.passed(array));
        let starts = self.operands[array].layout.offset.is_multiple_of(count);
        starts && passed.all(|stride| *stride % count as isize == 0)
    }

    /// In units of how many elements an operand's place is passed.
    pub(super) fn place_unit(&self, array: usize) -> usize {
        let is_wide = |operand: &Operand<'_>| {
            (matches!(operand.what, What::Buffer(_)) || self.is_place_of_near(array))
                && matches!(operand.access, Access::Strided(inners) if inners[self.along] == Inner::Unit)
        };
        match self.operands.get(array) {
            Some(operand) if is_wide(operand) => self.adjacent as usize,
            _ => 1,
        }
    }

    /// What is passed in units, as a number of elements.
    pub(super) fn in_units<'k>(&self, passed: Val<'k>, unit: u32) -> Val<'k> {
        match unit {
            1 => passed,
            _ => passed * unit,
        }
    }
}

impl Operand<'_> {
    /// Whether neighbours along a group lie side by side.
    fn is_along(&self, group: usize) -> bool {
        match self.access {
            Access::Linear | Access::Own => true,
            Access::Strided(inners) => inners[group] == Inner::Unit,
            Access::One | Access::Scalar | Access::Whole | Access::Coordinate(_) => false,
        }
    }

    /// Whether the first element lies where the widest access may, or, of distances, the array does. What slots stand
    /// for is not known; most buffers do.
    pub(super) fn is_aligned(&self) -> bool {
        let (What::Buffer(input) | What::Whole(input)) = self.what else {
            return true;
        };
        let first = match self.access {
            Access::Linear => (self.layout.offset * input.element_bytes()) as u64,
            _ => 0,
        };
        match input.identity() {
            Some(Identity::Buffer(address)) => (address + first).is_multiple_of(WIDEST as u64),
            Some(Identity::Slot(_)) | None => true,
        }
    }
}
