//! The threads of a block: whose turn it is, and where they meet.
//!
//! A thread runs until it waits for others. An operation of a warp is executed as soon as all lanes
//! of its member mask that have not ended wait at an operation of the same row with that mask (PTX
//! ISA, "shfl.sync": "the same qualifiers and the same membermask"; where in the code they are does
//! not matter, as LLVM may have copied it); one without a mask once no thread can go on, for the
//! lanes that wait at the first place. A barrier opens when all threads that have not ended wait
//! there.

use std::collections::VecDeque;

use corosensei::stack::DefaultStack;

use kiln_ir::gpu_on_host::{Operation, RowCall, Site};
use kiln_ir::named_barrier::{NamedBarrier, NamedBarriers, Ticket};
use kiln_ir::{Lanes, Meaning, ThreadPosition, WARP_LANES, WarpArgs};

use super::Schedule;
use super::thread::{MAX_ARGS, Thread, ThreadFn, Wish};

/// A block to be run.
pub(super) struct BlockRun<'a> {
    pub(super) entry: ThreadFn,
    /// What the calls in the code stand for.
    pub(super) sites: &'a [Site],
    pub(super) params: *const u8,
    pub(super) stack_bytes: usize,
    pub(super) dynamic_shared: u32,
    /// Where the first thread of the block is.
    pub(super) first: ThreadPosition,
}

/// Chooses by a seed (SplitMix64; Steele, Lea, Flood 2014).
pub(super) struct Chooser(Option<u64>);

impl Chooser {
    pub(super) fn new(schedule: Schedule) -> Chooser {
        Chooser(match schedule {
            Schedule::RoundRobin => None,
            Schedule::Shuffled(seed) => Some(seed),
        })
    }

    /// A number below `bound`; 0 if no seed decides.
    fn below(&mut self, bound: usize) -> usize {
        let Some(state) = &mut self.0 else {
            return 0;
        };
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 16) as usize % bound
    }
}

/// What a thread is doing while it is not its turn.
#[derive(Copy, Clone)]
enum State {
    /// A thread that can go on, with this result of what it did last.
    Ready(u64),
    Barrier,
    /// At a named barrier, to which other lanes of the warp have not come.
    Named(NamedBarrier),
    /// At a named barrier that is not open.
    Arrived(Ticket),
    Grid,
    Meets(&'static Site, [u64; MAX_ARGS]),
    Ended,
}

/// How far a block has come.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Reached {
    End,
    /// A wait for all of the grid.
    Grid,
}

/// The threads of a block at their beginning.
///
/// # Errors
/// No memory for a stack.
///
/// # Safety
/// The code may be run with these parameters by nobody but blocks that run in turn, of which the code and what `block`
/// refers to outlive this one.
pub(super) unsafe fn start(
    block: &BlockRun<'_>,
    stacks: &mut Vec<DefaultStack>,
) -> Result<Block, String> {
    let [width, height, depth] = block.first.block_dim;
    let mut threads = Vec::new();
    for n in 0..width * height * depth {
        let thread = [n % width, n / width % height, n / width / height];
        let position = ThreadPosition {
            thread,
            ..block.first
        };
        let stack = match stacks.pop() {
            Some(stack) => stack,
            None => DefaultStack::new(block.stack_bytes).map_err(|e| {
                format!("no stack for thread {n}: {e}; the process has too many mappings")
            })?,
        };
        // SAFETY: the caller's promise.
        let thread = unsafe { Thread::new(stack, block, position) };
        threads.push(thread);
    }
    Ok(Block {
        states: vec![State::Ready(0); threads.len()],
        ready: (0..threads.len()).collect(),
        threads,
        named: NamedBarriers::default(),
    })
}

/// A block whose threads have begun.
pub(super) struct Block {
    threads: Vec<Thread>,
    states: Vec<State>,
    ready: VecDeque<usize>,
    named: NamedBarriers,
}

impl Block {
    /// Runs the threads to their ends, or to where the block waits for the grid: those that wait for that go on at the next
    /// call.
    ///
    /// # Errors
    /// What keeps one from its end.
    pub(super) fn go_on(&mut self, chooser: &mut Chooser) -> Result<Reached, String> {
        for thread in 0..self.states.len() {
            if matches!(self.states[thread], State::Grid) {
                self.release(thread, 0);
            }
        }
        loop {
            while let Some(thread) = self.next(chooser) {
                self.step(thread)?;
            }
            if self.meet_without_mask() || self.open_barrier() {
                continue;
            }
            if self.states.iter().any(|s| matches!(s, State::Grid)) {
                return Ok(Reached::Grid);
            }
            return match self.states.iter().all(|s| matches!(s, State::Ended)) {
                true => Ok(Reached::End),
                false => Err(self.stuck()),
            };
        }
    }

    /// Stops the threads where they are, and gives their stacks back.
    pub(super) fn stop(self, stacks: &mut Vec<DefaultStack>) {
        stacks.extend(self.threads.into_iter().map(Thread::stop));
    }

    fn next(&mut self, chooser: &mut Chooser) -> Option<usize> {
        match self.ready.len() {
            0 => None,
            count => self.ready.swap_remove_front(chooser.below(count)),
        }
    }

    fn step(&mut self, thread: usize) -> Result<(), String> {
        let State::Ready(result) = self.states[thread] else {
            return Ok(());
        };
        match self.threads[thread].resume(result) {
            Wish::GoOn => self.release(thread, 0),
            Wish::Barrier => self.states[thread] = State::Barrier,
            Wish::Named(came) => {
                self.states[thread] = State::Named(came);
                self.come_to_named(thread)?;
            }
            Wish::Grid => self.states[thread] = State::Grid,
            Wish::Meet(site, args) => {
                self.states[thread] = State::Meets(site, args);
                self.meet(thread)?;
            }
            Wish::End => {
                self.states[thread] = State::Ended;
                self.meet(thread)?;
                self.come_to_named(thread)?;
            }
            Wish::Endless => {
                let name = self.name(thread);
                return Err(format!("{name} is in a loop that does not end"));
            }
        }
        Ok(())
    }

    fn release(&mut self, thread: usize, result: u64) {
        self.states[thread] = State::Ready(result);
        self.ready.push_back(thread);
    }

    /// The threads of the warp of a thread.
    fn warp(&self, thread: usize) -> std::ops::Range<usize> {
        let start = thread / WARP_LANES * WARP_LANES;
        start..(start + WARP_LANES).min(self.states.len())
    }

    /// Executes what is complete now that a thread has come to an operation of its warp, or has ended: its own operation, as
    /// no other waits for it, or, as many may have waited for its end, any of the warp.
    fn meet(&mut self, thread: usize) -> Result<(), String> {
        match self.states[thread] {
            State::Ended => self.warp(thread).try_for_each(|n| self.complete(n)),
            _ => self.complete(thread),
        }
    }

    /// Executes the operation at which a thread waits, if all its lanes that have not ended wait there.
    fn complete(&mut self, thread: usize) -> Result<(), String> {
        let State::Meets(site, args) = self.states[thread] else {
            return Ok(());
        };
        let Some(call) = masked(site) else {
            return Ok(());
        };
        let (warp, mask) = (self.warp(thread), args[0] as u32);
        if mask >> (thread - warp.start) & 1 == 0 {
            let (name, row) = (self.name(thread), call.row.name);
            return Err(format!(
                "the member mask {mask:#010x} of {name} at `{row}` leaves it out"
            ));
        }
        let states = self.states[warp.clone()].iter().enumerate();
        let left = states.fold(0, |left, (lane, state)| {
            left | u32::from(!matches!(state, State::Ended)) << lane
        });
        let here = self.lanes(warp.clone(), |other, theirs| {
            masked(other).is_some_and(|c| same(c, call)) && theirs[0] as u32 == mask
        });
        if here == mask & left {
            self.execute(warp.start, call, here);
        }
        Ok(())
    }

    /// Has the warp of a thread come to the named barrier that all its lanes wait at which have not ended, and lets those
    /// go on whose barrier is open then.
    fn come_to_named(&mut self, thread: usize) -> Result<(), String> {
        let warp = self.warp(thread);
        let mut came = None;
        for state in &self.states[warp.clone()] {
            match (*state, came) {
                (State::Ended, _) => {}
                (State::Named(mine), None) => came = Some(mine),
                (State::Named(mine), Some(other)) if mine == other => {}
                (State::Named(_), Some(_)) => {
                    let name = self.name(warp.start);
                    return Err(format!(
                        "lanes of the warp of {name} come to different named barriers"
                    ));
                }
                _ => return Ok(()),
            }
        }
        let Some(came) = came else {
            return Ok(());
        };
        let ticket = self.named.arrive(came)?;
        for n in warp {
            match (self.states[n], ticket) {
                (State::Named(_), Some(ticket)) => self.states[n] = State::Arrived(ticket),
                (State::Named(_), None) => self.release(n, 0),
                _ => {}
            }
        }
        for n in 0..self.states.len() {
            if matches!(self.states[n], State::Arrived(ticket) if self.named.is_open(ticket)) {
                self.release(n, 0);
            }
        }
        Ok(())
    }

    /// Executes the first operation without a member mask that threads wait at in any warp.
    fn meet_without_mask(&mut self) -> bool {
        let mut met = false;
        for start in (0..self.states.len()).step_by(WARP_LANES) {
            let warp = self.warp(start);
            let sites = self.states[warp.clone()].iter().filter_map(|s| match s {
                State::Meets(site, _) if masked(site).is_none() => Some(*site),
                _ => None,
            });
            let Some(first) = sites.min_by_key(|site| site.number) else {
                continue;
            };
            let here = self.lanes(warp, |site, _| site.number == first.number);
            if let Operation::Row(call) = &first.operation {
                self.execute(start, call, here);
                met = true;
            }
        }
        met
    }

    /// The lanes of a warp that wait where `chosen` says, as a mask.
    fn lanes(
        &self,
        warp: std::ops::Range<usize>,
        chosen: impl Fn(&'static Site, &[u64; MAX_ARGS]) -> bool,
    ) -> u32 {
        let states = self.states[warp].iter().enumerate();
        states.fold(0, |mask, (lane, state)| match state {
            State::Meets(site, args) if chosen(site, args) => mask | 1 << lane,
            _ => mask,
        })
    }

    fn execute(&mut self, start: usize, call: &RowCall, lanes: u32) {
        let mut lists: [Lanes; MAX_ARGS] = [[0; WARP_LANES]; MAX_ARGS];
        for lane in (0..WARP_LANES).filter(|lane| lanes >> lane & 1 == 1) {
            if let State::Meets(_, args) = &self.states[start + lane] {
                for (list, value) in lists.iter_mut().zip(call.arguments(args)) {
                    list[lane] = value;
                }
            }
        }
        let Meaning::Warp(f) = call.row.meaning else {
            return;
        };
        let args = &lists[..call.row.params.len().min(MAX_ARGS)];
        let results = f(call.scalar, &WarpArgs { lanes, args });
        for lane in (0..WARP_LANES).filter(|lane| lanes >> lane & 1 == 1) {
            self.release(start + lane, results[lane]);
        }
    }

    fn open_barrier(&mut self) -> bool {
        let waits = |s: &State| matches!(s, State::Barrier);
        let open = self.states.iter().any(waits)
            && self
                .states
                .iter()
                .all(|s| waits(s) || matches!(s, State::Ended));
        if open {
            for thread in 0..self.states.len() {
                if waits(&self.states[thread]) {
                    self.release(thread, 0);
                }
            }
        }
        open
    }

    fn name(&self, thread: usize) -> String {
        let at = self.threads[thread].position();
        format!("thread {:?} of block {:?}", at.thread, at.block)
    }

    /// Who waits for whom in vain.
    fn stuck(&self) -> String {
        let at = |wanted: fn(&State) -> bool| {
            let found = self.states.iter().position(wanted);
            found.map(|thread| (thread, self.name(thread)))
        };
        let mut parts = vec!["threads wait for each other in vain".to_owned()];
        if let Some((_, name)) = at(|s| matches!(s, State::Named(_))) {
            parts.push(format!(
                "{name} at a named barrier, to which not all lanes of its warp come"
            ));
        }
        if let Some((thread, name)) = at(|s| matches!(s, State::Arrived(_)))
            && let State::Arrived(ticket) = self.states[thread]
        {
            parts.push(format!("{name}: {}", self.named.in_vain(ticket)));
        }
        if let Some((_, name)) = at(|s| matches!(s, State::Barrier)) {
            parts.push(format!("{name} at a barrier"));
        }
        if let Some((thread, name)) = at(|s| matches!(s, State::Meets(..)))
            && let State::Meets(site, args) = self.states[thread]
            && let Operation::Row(call) = &site.operation
        {
            let (row, mask) = (call.row.name, args[0] as u32);
            parts.push(format!(
                "{name} at `{row}` with the member mask {mask:#010x}"
            ));
        }
        parts.join("; ")
    }
}

/// The operation of a warp at a site, if it has a member mask.
fn masked(site: &'static Site) -> Option<&'static RowCall> {
    match &site.operation {
        Operation::Row(call) if !call.row.params.is_empty() => Some(call),
        _ => None,
    }
}

/// Whether two calls are of the same instruction.
fn same(one: &RowCall, other: &RowCall) -> bool {
    std::ptr::eq(one.row, other.row) && one.scalar == other.scalar
}
