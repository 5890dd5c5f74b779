//! The checking mode: which checks the launches of a `Jit` make, and what they find.
//!
//! ```text
//! let options = JitOptions::default().checks(Checks::all());
//! let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
//! match jit.launch(&kernel, 1, 64, args!(&mut x)) {
//!     Err(Error::Run(RunError::Finding(finding))) => eprintln!("{finding}"),
//!     result => result?,
//! }
//! ```
//!
//! Checks run in the interpreter, on a CPU device. They see what one launch does: a launch stops at
//! its first finding, which is its error value; memory is then as the launch left it, and the
//! device goes on. Bounds are checked always, by the kernel itself; a bounds fault is reported by
//! the next synchronizing call, and what is found after it in the same launch is left out, because
//! the thread that ended early may be its cause.
//!
//! # What counts as a race
//!
//! Two threads access the same byte, at least one of them writes it, not both are atomic, and
//! nothing orders the two: within a block, no barrier is between them (nor, within a warp, a
//! synchronization of its lanes); and nowhere a release that was acquired, by atomics or fences, as the
//! guide's chapter on memory has it. Two writes of the same value are a race, too; so is a plain read of what another thread
//! changes atomically: a compare-and-swap loop that starts from a plain read starts better from a
//! guess, or from `atomic_add` of zero. Neighbouring bytes are never taken for one.
//!
//! Threads run one after the other, but a race is found whichever comes first. A thread that takes
//! another way because of the race is checked on the way that it takes.
//!
//! A fence works for its own thread's atomics: where one thread of a block takes a ticket for all,
//! its fences stand between the barriers and the ticket. Scopes are not looked at. In kernels with
//! fences or ordered atomics some races with accesses of much earlier blocks are not reported.

use kiln_ir::AddressSpace;
use kiln_ir::launch::Dim3;
use kiln_ir::{debug_as_text, error_text};

/// Which checks launches make; a part of `JitOptions`.
///
/// ```
/// use kiln_interp::checks::Checks;
///
/// let some = Checks::none().races().barriers().watchdog(1_000_000);
/// assert!(some.has_races() && some.has_barriers() && !some.has_uninitialized());
/// assert_eq!(some.iterations(), Some(1_000_000));
/// assert!(Checks::default().is_none() && Checks::all().has_uninitialized());
/// assert_ne!(some.uninitialized(), some);
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Checks {
    races: bool,
    barriers: bool,
    uninitialized: bool,
    watchdog: Option<u64>,
}

impl Checks {
    /// The loop iterations of a thread that [`Checks::all`] lets pass.
    pub const DEFAULT_WATCHDOG: u64 = 10_000_000;

    /// No checks but those of bounds, which kernels make themselves. The default.
    pub const fn none() -> Checks {
        Checks {
            races: false,
            barriers: false,
            uninitialized: false,
            watchdog: None,
        }
    }

    /// Every check there is.
    pub const fn all() -> Checks {
        Checks {
            races: true,
            barriers: true,
            uninitialized: true,
            watchdog: Some(Checks::DEFAULT_WATCHDOG),
        }
    }

    /// With races looked for, in shared and global memory; the module says what is one.
    #[must_use]
    pub const fn races(self) -> Checks {
        Checks {
            races: true,
            ..self
        }
    }

    /// With barriers checked: the threads of a block that have not ended must wait at the same one.
    #[must_use]
    pub const fn barriers(self) -> Checks {
        Checks {
            barriers: true,
            ..self
        }
    }

    /// With reads of shared and local memory checked: what is read must have been written, in the
    /// same launch by the same block or thread.
    #[must_use]
    pub const fn uninitialized(self) -> Checks {
        Checks {
            uninitialized: true,
            ..self
        }
    }

    /// With an end for threads that make more than this many loop iterations.
    #[must_use]
    pub const fn watchdog(self, iterations: u64) -> Checks {
        Checks {
            watchdog: Some(iterations),
            ..self
        }
    }

    /// Whether there is nothing to check.
    pub fn is_none(&self) -> bool {
        *self == Checks::none()
    }

    /// Whether races are looked for.
    pub const fn has_races(&self) -> bool {
        self.races
    }

    /// Whether barriers are checked.
    pub const fn has_barriers(&self) -> bool {
        self.barriers
    }

    /// Whether reads of memory that nobody has written are looked for.
    pub const fn has_uninitialized(&self) -> bool {
        self.uninitialized
    }

    /// How many loop iterations a thread may make.
    pub const fn iterations(&self) -> Option<u64> {
        self.watchdog
    }
}

/// What an access does.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Access {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads atomically.
    AtomicRead,
    /// Writes atomically.
    AtomicWrite,
    /// Reads and writes in one atomic operation.
    Atomic,
}

impl Access {
    /// Whether the access is atomic.
    pub fn is_atomic(self) -> bool {
        !matches!(self, Access::Read | Access::Write)
    }

    /// Whether the access only reads.
    pub(crate) fn only_reads(self) -> bool {
        matches!(self, Access::Read | Access::AtomicRead)
    }

    /// Whether this and another access of the same bytes are a race if nothing orders them.
    pub(crate) fn conflicts_with(self, other: Access) -> bool {
        let harmless =
            (self.is_atomic() && other.is_atomic()) || (self.only_reads() && other.only_reads());
        !harmless
    }
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Access::Read => "reads it",
            Access::Write => "writes it",
            Access::AtomicRead => "reads it atomically",
            Access::AtomicWrite => "writes it atomically",
            Access::Atomic => "changes it atomically",
        })
    }
}

/// Where in memory something happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MemoryPlace {
    /// Which memory.
    pub space: AddressSpace,
    /// The slice parameter or shared array it belongs to, if it has a name.
    pub name: Option<String>,
    /// The element. An array of arrays counts as one array of all its elements.
    pub index: u64,
    /// The number of elements there are.
    pub length: u64,
    /// Bytes of an element; 1 where elements are not known.
    pub element_bytes: u32,
    /// Bytes from the start of the array, or of the memory where there is no array.
    pub offset: u64,
}

impl std::fmt::Display for MemoryPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = if self.element_bytes == 1 && self.name.is_none() {
            "byte"
        } else {
            "element"
        };
        write!(f, "{unit} {} of {}", self.index, self.length)?;
        if let Some(name) = &self.name {
            write!(f, " of `{name}`")?;
        }
        write!(f, " in {} memory", self.space.name())
    }
}

/// One of the two accesses of a race.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct AccessSite {
    /// What the access does.
    pub access: Access,
    /// The line of Rust, as `file:line:column`.
    pub location: String,
    /// Index of the block in the grid.
    pub block: Dim3,
    /// Index of the thread in its block.
    pub thread: Dim3,
}

/// The threads of a block that wait at one barrier while others wait at another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct BarrierSite {
    /// The line of Rust, as `file:line:column`.
    pub location: String,
    /// The first of the threads.
    pub thread: Dim3,
    /// How many they are.
    pub threads: u32,
}

/// What a check found.
#[derive(Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Finding {
    /// Two threads access the same memory, and nothing orders them.
    #[error("{}", error_text!(
        "kernel `{kernel}`, {}: a race on {place}: thread {} of block {} {} here, thread {} of \
         block {} {} at {}, in no order; {}",
        second.location, second.thread, second.block, second.access,
        first.thread, first.block, first.access, first.location, race_fix(first, second)
    ))]
    Race {
        /// The kernel.
        kernel: String,
        /// What both access.
        place: MemoryPlace,
        /// The access that the interpreter came to first.
        first: AccessSite,
        /// The access that completed the race.
        second: AccessSite,
    },
    /// Threads of one block wait at different barriers.
    #[error("{}", error_text!(
        "kernel `{kernel}`: the threads of block {block} wait at different barriers: {}; let every \
         thread of the block come to the same `barrier()`: take it out of the `if` or the loop \
         that not all threads run alike",
        barrier_list(sites)
    ))]
    Barrier {
        /// The kernel.
        kernel: String,
        /// Index of the block in the grid.
        block: Dim3,
        /// The barriers, in the order of their first threads.
        sites: Vec<BarrierSite>,
    },
    /// A thread reads memory that nobody has written.
    #[error("{}", error_text!(
        "kernel `{kernel}`, {location}: {place} is read and was not written before (block {block}, \
         thread {thread}); {}",
        uninitialized_fix(place)
    ))]
    Uninitialized {
        /// The kernel.
        kernel: String,
        /// The line of Rust, as `file:line:column`.
        location: String,
        /// Index of the block in the grid.
        block: Dim3,
        /// Index of the thread in its block.
        thread: Dim3,
        /// What is read.
        place: MemoryPlace,
    },
    /// A thread goes round in loops for too long.
    #[error("{}", error_text!(
        "kernel `{kernel}`, {location}: a thread made more than {limit} loop iterations (block \
         {block}, thread {thread}); end the loop, do not wait in it for another thread of the \
         block, or raise the number of `Checks::watchdog`"
    ))]
    Watchdog {
        /// The kernel.
        kernel: String,
        /// The line of Rust of the loop, as `file:line:column`.
        location: String,
        /// Index of the block in the grid.
        block: Dim3,
        /// Index of the thread in its block.
        thread: Dim3,
        /// The number of iterations it had.
        limit: u64,
    },
}

debug_as_text!(Finding);

fn race_fix(first: &AccessSite, second: &AccessSite) -> &'static str {
    match (first.block == second.block, first.access, second.access) {
        (true, first, second) if first.is_atomic() || second.is_atomic() => {
            "make both atomic, or put a `barrier()` between them"
        }
        (true, ..) => "put a `barrier()` between them, or make both atomic",
        (false, ..) => {
            "blocks run in any order: give each block elements of its own, make both atomic, or \
             divide the kernel in two"
        }
    }
}

fn barrier_list(sites: &[BarrierSite]) -> String {
    let describe = |site: &BarrierSite| {
        let BarrierSite {
            location,
            thread,
            threads,
        } = site;
        let noun = if *threads == 1 { "thread" } else { "threads" };
        format!("{threads} {noun} at {location} (the first is {thread})")
    };
    sites.iter().map(describe).collect::<Vec<_>>().join(", ")
}

fn uninitialized_fix(place: &MemoryPlace) -> &'static str {
    match place.space {
        AddressSpace::Shared => {
            "write it first, with a `barrier()` before another thread reads it: shared memory \
             starts with anything"
        }
        _ => "write it first: local memory starts with anything",
    }
}

impl Finding {
    /// The kernel.
    pub fn kernel(&self) -> &str {
        match self {
            Finding::Race { kernel, .. }
            | Finding::Barrier { kernel, .. }
            | Finding::Uninitialized { kernel, .. }
            | Finding::Watchdog { kernel, .. } => kernel,
        }
    }

    /// The line of Rust where it was found, as `file:line:column`; of a race the second access, of
    /// barriers the first.
    pub fn location(&self) -> &str {
        match self {
            Finding::Race { second, .. } => &second.location,
            Finding::Barrier { sites, .. } => sites.first().map_or("", |s| &s.location),
            Finding::Uninitialized { location, .. } | Finding::Watchdog { location, .. } => {
                location
            }
        }
    }

    /// Index of the block in the grid.
    pub fn block(&self) -> Dim3 {
        match self {
            Finding::Race { second, .. } => second.block,
            Finding::Barrier { block, .. }
            | Finding::Uninitialized { block, .. }
            | Finding::Watchdog { block, .. } => *block,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_checks() {
        assert_eq!(Checks::default(), Checks::none());
        let every = Checks::none().races().barriers().uninitialized();
        assert_eq!(every.watchdog(Checks::DEFAULT_WATCHDOG), Checks::all());
        assert!(Checks::none().is_none() && !Checks::none().watchdog(1).is_none());
    }
}
