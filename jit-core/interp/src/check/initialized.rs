//! Which bytes of shared and local memory were written since the block started.

use crate::InterpretError;
use crate::checks::Access;
use crate::memory::many;

/// A flag for each byte of some ranges.
pub(crate) struct Initialized {
    /// The start of each range, and its flags.
    ranges: Vec<(u64, Vec<bool>)>,
}

impl Initialized {
    /// Nothing is written yet in these ranges, as (start, bytes).
    ///
    /// # Errors
    /// The host has no memory left.
    pub(super) fn new(ranges: &[(u64, u64)]) -> Result<Self, InterpretError> {
        let mut all = Vec::new();
        for &(start, bytes) in ranges {
            all.push((start, many(false, bytes as usize)?));
        }
        Ok(Initialized { ranges: all })
    }

    /// The flags as they are.
    ///
    /// # Errors
    /// The host has no memory left.
    pub(super) fn copy(&self) -> Result<Self, InterpretError> {
        let mut ranges = Vec::new();
        for (start, flags) in &self.ranges {
            let mut copy = many(false, flags.len())?;
            copy.copy_from_slice(flags);
            ranges.push((*start, copy));
        }
        Ok(Initialized { ranges })
    }

    /// A new block: everything is as if never written.
    pub(super) fn forget(&mut self) {
        for (_, flags) in &mut self.ranges {
            flags.fill(false);
        }
    }

    /// Notes an access; the address of the first byte that it reads and nobody has written.
    pub(super) fn access(&mut self, access: Access, address: u64, bytes: u8) -> Option<u64> {
        let (start, flags) = self
            .ranges
            .iter_mut()
            .find(|(start, flags)| address >= *start && address - *start < flags.len() as u64)?;
        let first = (address - *start) as usize;
        let end = flags.len().min(first + usize::from(bytes));
        let flags = &mut flags[first..end];
        if matches!(access, Access::Write | Access::AtomicWrite) {
            flags.fill(true);
            return None;
        }
        let missing = flags.iter().position(|written| !written)?;
        Some(address + missing as u64)
    }
}
