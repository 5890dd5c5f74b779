//! Memory as the interpreter sees it: real addresses, every access checked.
//!
//! All dereferencing of raw addresses is in this file. An access is allowed if it lies within one
//! of the ranges the launch was given (device allocations, the block's shared memory, the threads'
//! local memory, constants, parameters) and is aligned to its size, up to 8 bytes, an atomic one up to 16.

use std::alloc::Layout;

use super::InterpretError;

/// Bytes of a `u64x2`, of which there are atomics.
pub(super) const WORD_PAIR: u8 = 16;

/// Why an access was refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// No memory of the launch.
    Illegal,
    /// Not aligned to its size.
    Misaligned,
}

/// The ranges a launch may touch.
pub(super) struct Memory {
    /// As (start, end), disjoint, in order.
    ranges: Vec<(u64, u64)>,
    /// The range of the latest access: the next one is likely there.
    latest: (u64, u64),
}

impl Memory {
    /// Memory of these ranges, as (start, bytes).
    ///
    /// # Safety
    /// Until it is dropped, every range is valid for reads and writes through its exposed address,
    /// initialized, and accessed by nobody else.
    pub(super) unsafe fn new(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let ends = ranges
            .into_iter()
            .map(|(start, bytes)| (start, start.saturating_add(bytes)));
        let mut ranges: Vec<(u64, u64)> = ends.filter(|(start, end)| start < end).collect();
        ranges.sort_unstable();
        Memory {
            ranges,
            latest: (0, 0),
        }
    }

    /// Checks an access.
    #[inline]
    fn check(&mut self, address: u64, bytes: u64) -> Result<(), Refused> {
        let (start, end) = self.latest;
        // In this order nothing wraps around, not even at the last address there is.
        let inside = address >= start && address <= end && bytes <= end - address;
        if !inside {
            self.find(address, bytes)?;
        }
        if address & (bytes - 1) != 0 {
            return Err(Refused::Misaligned);
        }
        Ok(())
    }

    #[cold]
    fn find(&mut self, address: u64, bytes: u64) -> Result<(), Refused> {
        let after = self.ranges.partition_point(|(start, _)| *start <= address);
        let range = after
            .checked_sub(1)
            .map(|i| self.ranges[i])
            .ok_or(Refused::Illegal)?;
        if address.checked_add(bytes).is_none_or(|last| last > range.1) {
            return Err(Refused::Illegal);
        }
        self.latest = range;
        Ok(())
    }

    /// Writes zeros to a range.
    pub(super) fn clear(&mut self, address: u64, bytes: u64) -> Result<(), Refused> {
        if bytes == 0 {
            return Ok(());
        }
        self.find(address, bytes)?;
        let at = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: `find` has found the range inside one of the launch's.
        unsafe { at.write_bytes(0, bytes as usize) };
        Ok(())
    }

    /// Reads 1, 2, 4 or 8 bytes, zero-extended.
    #[inline]
    pub(super) fn read(&mut self, address: u64, bytes: u8) -> Result<u64, Refused> {
        self.check(address, bytes.into())?;
        let at = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: `check` has found the access inside a range, aligned to its size.
        Ok(unsafe {
            match bytes {
                1 => at.read().into(),
                2 => at.cast::<u16>().read().into(),
                4 => at.cast::<u32>().read().into(),
                _ => at.cast::<u64>().read(),
            }
        })
    }

    /// Reads 16 bytes, and writes `new` there if they are as expected or nothing is expected.
    pub(super) fn swap_words(
        &mut self,
        address: u64,
        expected: Option<[u64; 2]>,
        new: [u64; 2],
    ) -> Result<[u64; 2], Refused> {
        self.check(address, WORD_PAIR.into())?;
        let old = [self.read(address, 8)?, self.read(address + 8, 8)?];
        if expected.is_none_or(|expected| expected == old) {
            self.write(address, 8, new[0])?;
            self.write(address + 8, 8, new[1])?;
        }
        Ok(old)
    }

    /// Writes the low 1, 2, 4 or 8 bytes of `value`.
    #[inline]
    pub(super) fn write(&mut self, address: u64, bytes: u8, value: u64) -> Result<(), Refused> {
        self.check(address, bytes.into())?;
        let at = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: `check` has found the access inside a range, aligned to its size.
        unsafe {
            match bytes {
                1 => at.write(value as u8),
                2 => at.cast::<u16>().write(value as u16),
                4 => at.cast::<u32>().write(value as u32),
                _ => at.cast::<u64>().write(value),
            }
        }
        Ok(())
    }
}

/// Host memory of a launch's own: shared, local, constants, parameters. 16-byte aligned, and
/// reached through its exposed address only.
pub(super) struct Arena {
    start: *mut u8,
    layout: Layout,
}

impl Arena {
    /// `bytes` bytes, all of them `fill`.
    ///
    /// # Errors
    /// The host has no memory left.
    pub(super) fn new(bytes: usize, fill: u8) -> Result<Self, InterpretError> {
        let no_memory = InterpretError::HostMemory { bytes };
        let size = bytes.max(1).checked_next_multiple_of(16);
        let layout = size.and_then(|size| Layout::from_size_align(size, 16).ok());
        let layout = layout.ok_or_else(|| no_memory.clone())?;
        // SAFETY: the layout has at least 16 bytes.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        if start.is_null() {
            return Err(no_memory);
        }
        let mut arena = Arena { start, layout };
        if fill != 0 {
            arena.refill(fill);
        }
        Ok(arena)
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    /// The host has no memory left.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, InterpretError> {
        let arena = Arena::new(bytes.len(), 0)?;
        // SAFETY: the arena is at least as long as `bytes`, and nobody else has it yet.
        unsafe { arena.start.copy_from(bytes.as_ptr(), bytes.len()) };
        Ok(arena)
    }

    /// Overwrites everything with `fill`.
    pub(super) fn refill(&mut self, fill: u8) {
        // SAFETY: valid for its length; no reference into it exists.
        unsafe { self.start.write_bytes(fill, self.layout.size()) };
    }

    /// A copy of all bytes.
    ///
    /// # Errors
    /// The host has no memory left.
    pub(super) fn copy(&self) -> Result<Vec<u8>, InterpretError> {
        let mut bytes = many(0, self.layout.size())?;
        // SAFETY: the arena is as long, and initialized; no reference into it exists.
        unsafe {
            self.start
                .copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len())
        };
        Ok(bytes)
    }

    /// Puts back what [`Arena::copy`] gave of this arena.
    pub(super) fn put_back(&mut self, bytes: &[u8]) {
        let count = bytes.len().min(self.layout.size());
        // SAFETY: the arena is as long; no reference into it exists.
        unsafe { self.start.copy_from_nonoverlapping(bytes.as_ptr(), count) };
    }

    /// Start address and size in bytes.
    pub(super) fn range(&self) -> (u64, u64) {
        (
            self.start.expose_provenance() as u64,
            self.layout.size() as u64,
        )
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { std::alloc::dealloc(self.start, self.layout) };
    }
}

/// `len` copies of a value, where the number is decided by a kernel or a launch.
///
/// # Errors
/// The host has no memory left.
pub(super) fn many<T: Clone>(value: T, len: usize) -> Result<Vec<T>, InterpretError> {
    let mut list = Vec::new();
    list.try_reserve_exact(len)
        .map_err(|_| InterpretError::HostMemory {
            bytes: len.saturating_mul(size_of::<T>()),
        })?;
    list.resize(len, value);
    Ok(list)
}
