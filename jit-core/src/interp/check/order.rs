//! What orders two accesses: barriers of the block, and lanes of a warp that synchronize.

use crate::ir::WARP_LANES as LANES;

/// Who accessed memory, when, and by which op. Time 0: nobody.
#[derive(Copy, Clone, Default)]
pub(super) struct Who {
    pub(super) time: u64,
    pub(super) thread: u32,
    pub(super) pc: crate::interp::ops::Target,
}

/// The order of what happens in a launch. Time counts barriers and synchronizations, from 1.
pub(super) struct Order {
    now: u64,
    /// When the block that runs started.
    block: u64,
    /// When its latest barrier was passed.
    interval: u64,
    /// For each thread, up to when the accesses of each lane of its warp are ordered before what it
    /// does next. Empty where no lanes synchronize.
    known: Vec<[u64; LANES]>,
}

impl Order {
    /// The order of blocks of so many threads.
    pub(super) fn new(threads: usize, warps_synchronize: bool) -> Self {
        let known = if warps_synchronize { threads } else { 0 };
        Order {
            now: 0,
            block: 0,
            interval: 0,
            known: vec![[0; LANES]; known],
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// The next block starts.
    pub(super) fn start_block(&mut self) {
        self.barrier();
        self.block = self.now;
    }

    /// All threads of the block pass a barrier.
    pub(super) fn barrier(&mut self) {
        self.now += 1;
        self.interval = self.now;
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
        self.now += 1;
    }

    /// Whether only some of the threads that access memory between two barriers are to be kept in
    /// mind: two are enough where nothing orders any two of them.
    pub(super) fn needs_two_threads(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether it was since the latest barrier of the block that runs.
    pub(super) fn is_in_interval(&self, who: Who) -> bool {
        who.time >= self.interval
    }

    /// Whether it was a thread of a block before this one.
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
        warp != lane(thread).0 || known.is_none_or(|known| who.time > known[other])
    }
}
