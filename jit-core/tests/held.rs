//! What a process has, for programs that show that it stays the same.

use std::fmt;
use std::fs;

/// How much more of the heap a process may use at the end than when it is warm, in KiB.
pub(crate) const MORE_KIB: u64 = 2 << 10;

/// How many files and threads may come and go: of looking, and of work that is under way.
const MORE: u64 = 8;

/// What a process has.
#[derive(Copy, Clone)]
pub(crate) struct Held {
    /// The heap in use, in KiB. What the allocator keeps of freed memory is not in it: of many threads that is much,
    /// and grows for hours.
    pub(crate) heap_kib: u64,
    /// Resident memory, in KiB, which says what the allocator keeps, too.
    pub(crate) resident_kib: u64,
    pub(crate) files: u64,
    pub(crate) threads: u64,
}

impl Held {
    /// What this one has, where the system tells.
    pub(crate) fn now() -> Option<Held> {
        let heap_kib = heap_in_use()? >> 10;
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let number = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Held {
            heap_kib,
            resident_kib: number("VmRSS:")?,
            files: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
            threads: number("Threads:")?,
        })
    }

    /// Whether there are no more files and threads than when the process was warm.
    pub(crate) fn has_files_and_threads_of(&self, warm: &Held) -> bool {
        self.files <= warm.files + MORE && self.threads <= warm.threads + MORE
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} KiB of the heap in use, {} KiB resident, {} files, {} threads",
            self.heap_kib, self.resident_kib, self.files, self.threads
        )
    }
}

/// The bytes of the heap in use, of all libraries of the process, LLVM and the driver among them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn heap_in_use() -> Option<u64> {
    // SAFETY: both take no pointer, and may be called at any time from any thread.
    let info = unsafe {
        libc::malloc_trim(0);
        libc::mallinfo2()
    };
    Some((info.uordblks + info.hblkhd) as u64)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn heap_in_use() -> Option<u64> {
    None
}
