//! What orders two accesses: barriers of the block, lanes of a warp that synchronize, and releases that
//! are acquired.

use kiln_ir::{Ordering, WARP_LANES as LANES};

use super::released::{AtomicAccess, Clock, Released};

/// Who accessed memory, when, and by which op. Time 0: nobody.
#[derive(Copy, Clone, Default)]
pub(super) struct Who {
    pub(super) time: u64,
    pub(super) thread: u32,
    pub(super) pc: crate::ops::OpIndex,
}

/// The order of what happens in a launch. Time counts barriers, synchronizations and releases, from 1.
pub(super) struct Order {
    now: u64,
    /// When each block so far started.
    starts: Vec<u64>,
    /// When the block that runs started.
    block: u64,
    /// When the latest wait for the grid was over.
    grid: u64,
    /// When the latest barrier of the block was passed.
    interval: u64,
    /// For each thread, up to when the accesses of each lane of its warp are ordered before what it
    /// does next. Empty where no lanes synchronize.
    known: Vec<[u64; LANES]>,
    /// Releases and acquires, where there are any.
    released: Option<Released>,
}

impl Order {
    /// The order of blocks of so many threads. `releases`: fences and atomics order accesses, too.
    pub(super) fn new(threads: usize, warps_synchronize: bool, releases: bool) -> Self {
        let known = if warps_synchronize { threads } else { 0 };
        Order {
            now: 0,
            starts: Vec::new(),
            block: 0,
            grid: 0,
            interval: 0,
            known: vec![[0; LANES]; known],
            released: releases.then(|| Released::new(threads)),
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// The next block starts, whose shared memory is there.
    pub(super) fn start_block(&mut self, shared: (u64, u64)) {
        self.barrier();
        self.block = self.now;
        self.starts.push(self.now);
        if let Some(released) = &mut self.released {
            released.start_block(shared);
        }
    }

    /// All blocks have waited for each other.
    pub(super) fn grid(&mut self) {
        self.barrier();
        self.grid = self.now;
    }

    /// Which of the blocks so far ran at a time.
    pub(super) fn block_at(&self, time: u64) -> Option<usize> {
        let after = self.starts.partition_point(|start| *start <= time);
        after.checked_sub(1)
    }

    /// All threads of the block pass a barrier.
    pub(super) fn barrier(&mut self) {
        self.now += 1;
        self.interval = self.now;
        if let Some(released) = &mut self.released {
            released.barrier(self.now);
        }
    }

    /// Lanes of the warp that starts with thread `first` synchronize: what each of them knows and
    /// did is ordered before what any of them does from now on.
    pub(super) fn synchronize(&mut self, first: u32, lanes: u32) {
        let warp = self.known.iter_mut().skip(first as usize).take(LANES);
        let mut warp: Vec<_> = warp
            .enumerate()
            .filter(|(n, _)| lanes >> n & 1 == 1)
            .collect();
        let mut all = [0; LANES];
        for (_, known) in &warp {
            for (all, known) in all.iter_mut().zip(known.iter()) {
                *all = (*all).max(*known);
            }
        }
        for (lane, _) in &warp {
            all[*lane] = self.now;
        }
        for (_, known) in &mut warp {
            **known = all;
        }
        if let Some(released) = &mut self.released {
            let lanes = (0..LANES).filter(|lane| lanes >> lane & 1 == 1);
            released.synchronize(lanes.map(|lane| first as usize + lane), self.now);
        }
        self.now += 1;
    }

    /// A fence of a thread.
    pub(super) fn fence(&mut self, thread: u32, ordering: Ordering) {
        let own = self.clock(thread);
        if let Some(released) = &mut self.released {
            released.fence(thread, ordering, &own, self.now);
            self.now += 1;
        }
    }

    /// An atomic access of a thread.
    pub(super) fn atomic(&mut self, thread: u32, access: AtomicAccess) {
        let own = match access.ordering.releases() {
            true => self.clock(thread),
            false => Clock::default(),
        };
        if let Some(released) = &mut self.released {
            released.atomic(thread, access, &own, self.now);
            self.now += u64::from(access.ordering.releases());
        }
    }

    /// A thread writes plainly to an address.
    pub(super) fn overwrite(&mut self, address: u64) {
        if let Some(released) = &mut self.released {
            released.overwrite(address);
        }
    }

    /// All that comes before what a thread does next.
    fn clock(&self, thread: u32) -> Clock {
        let Some(released) = &self.released else {
            return Clock::default();
        };
        let mut clock = released.clock(thread, self.now);
        let block = (self.starts.len().saturating_sub(1)) as u32;
        clock.add_block(block, self.interval.saturating_sub(1));
        clock.add_thread(block, thread, self.now);
        if let Some(known) = self.known.get(thread as usize) {
            let first = thread / LANES as u32 * LANES as u32;
            for (lane, &time) in (first..).zip(known).filter(|(_, time)| **time > 0) {
                clock.add_thread(block, lane, time);
            }
        }
        clock
    }

    /// Whether only some of the threads that access memory between two barriers are to be kept in
    /// mind: two are enough where nothing orders any two of them.
    pub(super) fn needs_two_threads(&self) -> bool {
        self.known.is_empty() && self.released.is_none()
    }

    /// Whether releases that are acquired order accesses, of different blocks, too.
    pub(super) fn has_releases(&self) -> bool {
        self.released.is_some()
    }

    /// Whether an access was made since the latest barrier of the block that runs.
    pub(super) fn is_in_interval(&self, who: Who) -> bool {
        who.time >= self.interval
    }

    /// Whether an access was made by a thread of an earlier block.
    pub(super) fn is_of_earlier_block(&self, who: Who) -> bool {
        who.time != 0 && who.time < self.block
    }

    /// Whether nothing orders an earlier access of the same block before one now by `thread`.
    pub(super) fn is_unordered(&self, who: Who, thread: u32) -> bool {
        if !self.is_in_interval(who) || who.thread == thread {
            return false;
        }
        let lane = |thread: u32| (thread as usize / LANES, thread as usize % LANES);
        let (warp, other) = lane(who.thread);
        let known = self.known.get(thread as usize);
        let apart = warp != lane(thread).0 || known.is_none_or(|known| who.time > known[other]);
        apart && !self.is_acquired(who, thread)
    }

    /// Whether nothing orders an access of an earlier block before one now by `thread`.
    pub(super) fn is_unordered_of_earlier_block(&self, who: Who, thread: u32) -> bool {
        self.is_of_earlier_block(who) && who.time >= self.grid && !self.is_acquired(who, thread)
    }

    /// Whether a release that `thread` has acquired came after an earlier access.
    fn is_acquired(&self, who: Who, thread: u32) -> bool {
        let Some(released) = &self.released else {
            return false;
        };
        let block = self.block_at(who.time).unwrap_or(0) as u32;
        released.covers(thread, (block, who.thread), who.time)
    }
}
