//! Memory of the CPU device: host memory, reached through its address only.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use memmap2::MmapMut;
use parking_lot::Mutex;

use crate::device::MemoryStats;
use crate::error::{DeviceError, Result};

/// Alignment of allocations in bytes, as on a GPU.
const ALIGNMENT: usize = 256;

/// From this size on memory comes in pages of its own, large ones where the system has them: a kernel
/// whose threads stride through an array touches many pages at once.
const MAPPED: usize = 4 << 20;

/// Host memory that belongs to one owner.
pub(crate) struct Allocation {
    start: NonNull<u8>,
    source: Source,
}

/// Where memory comes from, and how it is given back.
enum Source {
    Heap(Layout),
    Pages(MmapMut),
    /// Other code's, of so many bytes.
    Lent(usize),
}

// SAFETY: the memory belongs to the allocation, and nothing about it is tied to a thread.
unsafe impl Send for Allocation {}

impl Allocation {
    /// `bytes` zeros, so that all of it is initialized; `None` if there is no memory.
    pub(crate) fn new(bytes: usize) -> Option<Allocation> {
        if bytes >= MAPPED {
            return Allocation::pages(bytes);
        }
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()?;
        // SAFETY: the layout has at least one byte.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })?;
        let source = Source::Heap(layout);
        Some(Allocation { start, source })
    }

    fn pages(bytes: usize) -> Option<Allocation> {
        let mut pages = MmapMut::map_anon(bytes).ok()?;
        // Small pages do as well.
        #[cfg(target_os = "linux")]
        let _ = pages.advise(memmap2::Advice::HugePage);
        let start = NonNull::new(pages.as_mut_ptr())?;
        let source = Source::Pages(pages);
        Some(Allocation { start, source })
    }

    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }

    pub(crate) fn bytes(&self) -> usize {
        match &self.source {
            Source::Heap(layout) => layout.size(),
            Source::Pages(pages) => pages.len(),
            Source::Lent(bytes) => *bytes,
        }
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Source::Heap(layout) = self.source {
            // SAFETY: allocated in `new` with this layout, freed once.
            unsafe { std::alloc::dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// Bytes of freed allocations that are kept for later ones of the same size. Fresh pages cost more
/// than a simple kernel takes to fill them.
const MAX_SPARE: usize = 1 << 29;

/// All allocations of a device.
#[derive(Default)]
pub(crate) struct DeviceMemory {
    allocations: Mutex<BTreeMap<u64, Allocation>>,
    /// The bytes of these, and the most that they had.
    used: AtomicU64,
    peak: AtomicU64,
    spare: Mutex<Spare>,
}

/// Freed allocations, by size.
struct Spare {
    bytes: usize,
    /// The most bytes that are kept.
    limit: usize,
    by_size: BTreeMap<usize, Vec<Allocation>>,
}

impl Default for Spare {
    fn default() -> Spare {
        Spare {
            bytes: 0,
            limit: MAX_SPARE,
            by_size: BTreeMap::new(),
        }
    }
}

impl Spare {
    fn take(&mut self, bytes: usize) -> Option<Allocation> {
        let list = self.by_size.get_mut(&bytes)?;
        let allocation = list.pop()?;
        if list.is_empty() {
            self.by_size.remove(&bytes);
        }
        self.bytes -= bytes;
        Some(allocation)
    }

    fn keep(&mut self, allocation: Allocation) {
        let bytes = allocation.bytes();
        if bytes > self.limit {
            return;
        }
        // Sizes that are no longer asked for make room.
        self.shrink(self.limit - bytes);
        self.bytes += bytes;
        self.by_size.entry(bytes).or_default().push(allocation);
    }

    /// Keeps so many bytes, at most.
    fn shrink(&mut self, most: usize) {
        while self.bytes > most {
            let Some((size, list)) = self.by_size.pop_last() else {
                break;
            };
            self.bytes -= size * list.len();
        }
    }
}

impl DeviceMemory {
    pub(crate) fn alloc(&self, bytes: usize) -> Result<u64> {
        let spare = self.spare.lock().take(bytes.max(1));
        self.enter(spare, bytes)
    }

    fn enter(&self, spare: Option<Allocation>, bytes: usize) -> Result<u64> {
        let allocation = spare.or_else(|| Allocation::new(bytes)).or_else(|| {
            // What is kept of other sizes may be what there is no room for.
            self.trim();
            Allocation::new(bytes)
        });
        let allocation = allocation.ok_or(DeviceError::HostMemory { bytes })?;
        let (address, bytes) = (allocation.address(), allocation.bytes() as u64);
        self.allocations.lock().insert(address, allocation);
        let used = self.used.fetch_add(bytes, Relaxed) + bytes;
        self.peak.fetch_max(used, Relaxed);
        Ok(address)
    }

    /// Gives what is kept back to the system.
    pub(crate) fn trim(&self) {
        self.spare.lock().shrink(0);
    }

    /// From now on keeps so many bytes of freed memory, at most.
    pub(crate) fn keep_freed(&self, bytes: u64) {
        let mut spare = self.spare.lock();
        spare.limit = usize::try_from(bytes).unwrap_or(usize::MAX);
        let limit = spare.limit;
        spare.shrink(limit);
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        MemoryStats {
            used: self.used.load(Relaxed),
            peak: self.peak.load(Relaxed),
            pooled: self.spare.lock().bytes as u64,
        }
    }

    /// New memory is zeros, which the system gives page by page as they are touched.
    pub(super) fn alloc_zeros(&self, bytes: usize) -> Result<u64> {
        let spare = self.spare.lock().take(bytes.max(1));
        if let Some(spare) = &spare {
            // SAFETY: the allocation has that many bytes, and nothing else refers to a spare one.
            unsafe { spare.start().write_bytes(0, bytes) };
        }
        self.enter(spare, bytes)
    }

    pub(crate) fn free(&self, address: u64) {
        let freed = self.allocations.lock().remove(&address);
        if let Some(allocation) = freed
            && !matches!(allocation.source, Source::Lent(_))
        {
            self.used.fetch_sub(allocation.bytes() as u64, Relaxed);
            self.spare.lock().keep(allocation);
        }
    }

    /// Takes over memory of the process that other code has allocated, which is not freed here.
    pub(super) fn adopt(&self, address: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let foreign = DeviceError::ForeignAddress { address };
        let start = std::ptr::with_exposed_provenance_mut(address as usize);
        let (Some(start), Some(end)) = (NonNull::new(start), address.checked_add(bytes as u64))
        else {
            return Err(foreign);
        };
        let mut allocations = self.allocations.lock();
        // That which begins before the end is the only one that can reach into it.
        let before = allocations.range(..end).next_back();
        if before.is_some_and(|(base, a)| base + a.bytes() as u64 > address) {
            return Err(DeviceError::KnownMemory { address });
        }
        let source = Source::Lent(bytes);
        allocations.insert(address, Allocation { start, source });
        Ok(())
    }

    /// Leaves memory that was adopted to other code; memory of this allocator no other code can free.
    pub(super) fn give_up(&self, address: u64) -> Result<()> {
        let mut allocations = self.allocations.lock();
        match allocations.get(&address) {
            Some(Allocation {
                source: Source::Lent(_),
                ..
            }) => {
                allocations.remove(&address);
                Ok(())
            }
            _ => Err(DeviceError::ForeignAddress { address }),
        }
    }

    /// All ranges, as (start, bytes).
    pub(crate) fn ranges(&self) -> Vec<(u64, u64)> {
        let allocations = self.allocations.lock();
        allocations
            .iter()
            .map(|(&base, a)| (base, a.bytes() as u64))
            .collect()
    }

    /// Gives `f` a pointer to `bytes` bytes at a device address.
    pub(crate) fn with<R>(
        &self,
        address: u64,
        bytes: usize,
        f: impl FnOnce(*mut u8) -> R,
    ) -> Result<R> {
        let allocations = self.allocations.lock();
        let found = allocations.range(..=address).next_back();
        let offset = found.map_or(0, |(base, _)| (address - base) as usize);
        match found {
            Some((_, a)) if bytes <= a.bytes() && offset <= a.bytes() - bytes => {
                Ok(f(a.start().wrapping_add(offset)))
            }
            _ => Err(DeviceError::ForeignAddress { address }),
        }
    }
}
