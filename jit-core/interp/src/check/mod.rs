//! The checking mode of the interpreter: an observer of every access and every barrier.
//!
//! The run loop is generic over [`Checker`]. [`Off`] does nothing and compiles to nothing; [`On`]
//! keeps shadow memory and gives back the first [`Finding`]. What counts as one is said in
//! [`crate::checks`].
//!
//! | file | subject |
//! |---|---|
//! | `order` | what orders two accesses |
//! | `released` | what fences and atomics order |
//! | `shadow` | who accessed a byte lately, and whether an access races with that |
//! | `initialized` | which bytes of shared and local memory were written |
//! | `place` | an address as an element of a named array |

mod initialized;
mod order;
mod place;
mod released;
mod shadow;

use initialized::Initialized;
use kiln_ir::Ordering;
use kiln_ir::launch::Dim3;
use order::{Order, Who};

use super::InterpretLaunch;
use super::flatten::Program;
use super::ops::OpIndex;
use crate::InterpretError;
use crate::checks::{Access, AccessSite, BarrierSite, Checks, Finding, MemoryPlace};
pub(super) use place::{Names, Object, SliceParam};
pub(super) use released::{AtomicAccess, at_named_barrier};
use shadow::{Clash, Races};

/// An access that a thread makes.
#[derive(Copy, Clone)]
pub(super) struct Touch {
    /// The op.
    pub(super) pc: OpIndex,
    /// The thread, by its number in the block.
    pub(super) thread: u32,
    /// What the access does to the bytes.
    pub(super) access: Access,
}

/// What the run loop tells a checker. The order of calls is the order of execution.
pub(super) trait Checker {
    /// Whether there is anything to tell.
    const ON: bool;

    /// What is kept of a block while others run.
    type OfBlock;

    /// A block starts.
    fn start_block(&mut self, block: [u32; 3]);

    /// The block that runs waits for all of the grid.
    fn put_aside(&mut self) -> Result<Self::OfBlock, InterpretError>;

    /// All blocks have come to a wait for the grid, which orders what they did before what they will do.
    fn grid(&mut self);

    /// A block goes on after that.
    fn take_up(&mut self, block: [u32; 3], kept: Self::OfBlock);

    /// A thread accesses `bytes` bytes at an address that is the launch's.
    fn access(&mut self, touch: Touch, address: u64, bytes: u8) -> Result<(), Box<Finding>>;

    /// A thread has made an atomic access.
    fn atomic(&mut self, thread: u32, access: AtomicAccess);

    /// A thread passes a fence.
    fn fence(&mut self, thread: u32, ordering: Ordering);

    /// Every thread of the block waits or has ended; `waiting` has the numbers of those that wait,
    /// in order, and the op at which each of them does.
    fn barrier(
        &mut self,
        waiting: impl Iterator<Item = (u32, OpIndex)>,
    ) -> Result<(), Box<Finding>>;

    /// Lanes of the warp that starts with thread `first` synchronize, which orders their accesses.
    fn synchronize(&mut self, first: u32, lanes: u32);

    /// A thread went beyond the launch's step limit.
    fn step_limit(&self, thread: u32, pc: OpIndex) -> Option<Box<Finding>>;
}

/// No checks.
pub(super) struct Off;

impl Checker for Off {
    const ON: bool = false;
    type OfBlock = ();

    fn start_block(&mut self, _: [u32; 3]) {}

    fn put_aside(&mut self) -> Result<(), InterpretError> {
        Ok(())
    }

    fn grid(&mut self) {}

    fn take_up(&mut self, _: [u32; 3], (): ()) {}

    fn access(&mut self, _: Touch, _: u64, _: u8) -> Result<(), Box<Finding>> {
        Ok(())
    }

    fn atomic(&mut self, _: u32, _: AtomicAccess) {}

    fn fence(&mut self, _: u32, _: Ordering) {}

    fn barrier(&mut self, _: impl Iterator<Item = (u32, OpIndex)>) -> Result<(), Box<Finding>> {
        Ok(())
    }

    fn synchronize(&mut self, _: u32, _: u32) {}

    fn step_limit(&self, _: u32, _: OpIndex) -> Option<Box<Finding>> {
        None
    }
}

/// Memory of a launch that is watched, as (start, bytes).
pub(super) struct Watched<'a> {
    /// Shared memory of the block that runs; dynamic shared memory starts at `dynamic`.
    pub(super) shared: (u64, u64),
    /// Where dynamic shared memory starts.
    pub(super) dynamic: u64,
    /// Local memory of all threads of the block.
    pub(super) local: (u64, u64),
    /// The allocations of the device.
    pub(super) device: &'a [(u64, u64)],
}

/// The checks of one launch.
pub(super) struct On<'a> {
    program: &'a Program,
    launch: &'a InterpretLaunch<'a>,
    names: Names<'a>,
    checks: Checks,
    /// The block that runs.
    block: [u32; 3],
    order: Order,
    /// Which blocks have started, in order.
    started: Vec<[u32; 3]>,
    /// Where shared memory is, and how many bytes of it there are.
    shared_range: (u64, u64),
    shared: Races,
    global: Races,
    initialized: Initialized,
}

impl<'a> On<'a> {
    pub(super) fn new(
        program: &'a Program,
        launch: &'a InterpretLaunch<'a>,
        checks: &Checks,
        watched: &Watched<'a>,
    ) -> Result<Self, InterpretError> {
        let none: &[_] = &[];
        let threads = launch.block.iter().map(|&n| n as usize).product();
        let (shared, device) = match checks.has_races() {
            true => (&[watched.shared][..], watched.device),
            false => (none, none),
        };
        let owned = match checks.has_uninitialized() {
            true => &[watched.shared, watched.local][..],
            false => none,
        };
        Ok(On {
            program,
            launch,
            names: Names::new(program, launch, watched),
            checks: *checks,
            block: [0; 3],
            order: Order::new(threads, program.synchronizes_warps, program.has_releases),
            started: Vec::new(),
            shared_range: watched.shared,
            // A block's shared memory is its own: what an earlier block did there is no race.
            shared: Races::new(shared, false),
            global: Races::new(device, true),
            initialized: Initialized::new(owned)?,
        })
    }

    fn location(&self, pc: OpIndex) -> String {
        let line = self.program.lines[pc as usize] as usize;
        self.program.locations[line].clone()
    }

    fn thread(&self, n: u32) -> Dim3 {
        let [x, y, _] = self.launch.block;
        Dim3::from([n % x, n / x % y, n / x / y])
    }

    /// The block that ran at a time.
    fn block_at(&self, time: u64) -> Dim3 {
        let found = self.order.block_at(time).map(|at| self.started[at]);
        found.unwrap_or(self.block).into()
    }

    fn site(&self, who: Who, access: Access) -> AccessSite {
        AccessSite {
            access,
            location: self.location(who.pc),
            block: self.block_at(who.time),
            thread: self.thread(who.thread),
        }
    }

    #[cold]
    fn race(&self, clash: Clash, second: (Who, Access), place: MemoryPlace) -> Box<Finding> {
        Box::new(Finding::Race {
            kernel: self.program.name.clone(),
            place,
            first: self.site(clash.who, clash.access),
            second: self.site(second.0, second.1),
        })
    }

    #[cold]
    fn uninitialized(&self, touch: Touch, place: MemoryPlace) -> Box<Finding> {
        Box::new(Finding::Uninitialized {
            kernel: self.program.name.clone(),
            location: self.location(touch.pc),
            block: self.block.into(),
            thread: self.thread(touch.thread),
            place,
        })
    }
}

impl Checker for On<'_> {
    const ON: bool = true;
    type OfBlock = Initialized;

    fn start_block(&mut self, block: [u32; 3]) {
        self.block = block;
        self.order.start_block(self.shared_range);
        self.started.push(block);
        self.initialized.forget();
    }

    fn put_aside(&mut self) -> Result<Initialized, InterpretError> {
        self.initialized.copy()
    }

    fn grid(&mut self) {
        self.order.grid();
    }

    // To what orders accesses it is another block, which did nothing so far: all before is ordered.
    fn take_up(&mut self, block: [u32; 3], kept: Initialized) {
        self.block = block;
        self.order.start_block(self.shared_range);
        self.started.push(block);
        self.initialized = kept;
    }

    fn access(&mut self, touch: Touch, address: u64, bytes: u8) -> Result<(), Box<Finding>> {
        if let Some(at) = self.initialized.access(touch.access, address, bytes) {
            return Err(self.uninitialized(touch, self.names.place(at)));
        }
        let races = if self.shared.watches(address) {
            &mut self.shared
        } else if self.global.watches(address) {
            &mut self.global
        } else {
            return Ok(());
        };
        let who = Who {
            time: self.order.now(),
            thread: touch.thread,
            pc: touch.pc,
        };
        if touch.access == Access::Write {
            self.order.overwrite(address);
        }
        match races.access(&self.order, who, touch.access, address, bytes) {
            Some(clash) => {
                let place = self.names.place(address);
                Err(self.race(clash, (who, touch.access), place))
            }
            None => Ok(()),
        }
    }

    fn barrier(
        &mut self,
        waiting: impl Iterator<Item = (u32, OpIndex)>,
    ) -> Result<(), Box<Finding>> {
        self.order.barrier();
        if !self.checks.has_barriers() {
            return Ok(());
        }
        // The barrier, its first thread, how many threads.
        let mut sites: Vec<(OpIndex, u32, u32)> = Vec::new();
        for (thread, pc) in waiting {
            match sites.iter_mut().find(|site| site.0 == pc) {
                Some(site) => site.2 += 1,
                None => sites.push((pc, thread, 1)),
            }
        }
        if sites.len() < 2 {
            return Ok(());
        }
        let describe = |&(pc, thread, threads): &(OpIndex, u32, u32)| BarrierSite {
            location: self.location(pc),
            thread: self.thread(thread),
            threads,
        };
        Err(Box::new(Finding::Barrier {
            kernel: self.program.name.clone(),
            block: self.block.into(),
            sites: sites.iter().map(describe).collect(),
        }))
    }

    fn atomic(&mut self, thread: u32, access: AtomicAccess) {
        self.order.atomic(thread, access);
    }

    fn fence(&mut self, thread: u32, ordering: Ordering) {
        self.order.fence(thread, ordering);
    }

    fn synchronize(&mut self, first: u32, lanes: u32) {
        self.order.synchronize(first, lanes);
    }

    fn step_limit(&self, thread: u32, pc: OpIndex) -> Option<Box<Finding>> {
        let limit = self.checks.iterations()?;
        Some(Box::new(Finding::Watchdog {
            kernel: self.program.name.clone(),
            location: self.location(pc),
            block: self.block.into(),
            thread: self.thread(thread),
            limit,
        }))
    }
}
