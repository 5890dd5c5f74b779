//! What runs later: which work is ordered before which, and whether work that is not uses the same memory.
//!
//! Each stream has a clock: how much of every stream's work is before what it is given next. Work adds one of its own;
//! an event takes the clock along; a stream that waits for the event takes its part. What the host has waited for is
//! before everything that is given to any stream from then on. Two accesses of one allocation, of which one writes, are
//! a race unless the first is before the second; and so is the end of an allocation that work may still use.
//!
//! A driver promises no more than that, and so does this: a stream that does not wait for stream 0 runs at any time.

use std::collections::{BTreeMap, BTreeSet};

use super::{CONTEXT, CURRENT, Handle, State};

/// How much of each stream's work is done.
pub(crate) type Clock = BTreeMap<Handle, u64>;

/// The stream that a handle stands for in the current context: each context has a stream 0 of its own.
fn stream_of(handle: Handle) -> Handle {
    match (handle, CURRENT.get().saturating_sub(CONTEXT) & 0xFF) {
        (0, context @ 1..) => usize::MAX - context,
        _ => handle,
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    for (stream, number) in other {
        let known = clock.entry(*stream).or_default();
        *known = (*known).max(*number);
    }
}

fn covers(clock: &Clock, other: &Clock) -> bool {
    other
        .iter()
        .all(|(stream, number)| clock.get(stream).is_some_and(|known| known >= number))
}

/// An access of an allocation: by which work, and whether it writes.
struct Access {
    stream: Handle,
    number: u64,
    writes: bool,
}

/// What is known of the order of work.
#[derive(Default)]
pub(crate) struct Order {
    /// What is before the next work of each stream.
    clocks: BTreeMap<Handle, Clock>,
    /// Streams that wait for stream 0, and it for them.
    pub(crate) blocking: Vec<Handle>,
    events: BTreeMap<Handle, Clock>,
    /// What the host has waited for.
    done: Clock,
    /// Streams that have ended, of which there is work that the host has not waited for.
    ended: Vec<Handle>,
    accesses: BTreeMap<u64, Vec<Access>>,
    /// The context that a stream has worked in.
    contexts: BTreeMap<Handle, usize>,
    /// Whether work is done only once the host has waited for it.
    pub(crate) lazy: bool,
    /// The first race, in words.
    pub(crate) race: Option<String>,
    /// How often a stream was made to wait for an event.
    pub(crate) waits: u64,
}

impl Order {
    /// The clock of a stream's next work.
    fn clock(&mut self, stream: Handle) -> Clock {
        let stream = stream_of(stream);
        let mut clock = self.clocks.get(&stream).cloned().unwrap_or_default();
        join(&mut clock, &self.done);
        let others = match stream {
            0 => self.blocking.clone(),
            _ if self.blocking.contains(&stream) => vec![0],
            _ => Vec::new(),
        };
        for other in others {
            if let Some(other) = self.clocks.get(&other) {
                join(&mut clock, other);
            }
        }
        clock
    }

    /// Work of a stream that accesses these allocations.
    pub(crate) fn work(&mut self, stream: Handle, accesses: &[(u64, bool)], what: &str) {
        let stream = stream_of(stream);
        self.contexts.insert(stream, CURRENT.get());
        let mut clock = self.clock(stream);
        for (start, writes) in accesses {
            let before = self.accesses.entry(*start).or_default();
            let is_before = |access: &Access| clock.get(&access.stream) >= Some(&access.number);
            let race = |access: &&Access| (access.writes || *writes) && !is_before(access);
            if let Some(race) = before.iter().find(race) {
                let text = format!(
                    "{what} in stream {stream:#x} is not behind a {} in stream {:#x}",
                    if race.writes { "write" } else { "read" },
                    race.stream
                );
                self.race.get_or_insert(text);
            }
        }
        let number = clock.entry(stream).or_default();
        *number += 1;
        let number = *number;
        for (start, writes) in accesses {
            let (stream, writes) = (stream, *writes);
            let access = Access {
                stream,
                number,
                writes,
            };
            let before = self.accesses.entry(*start).or_default();
            // What is behind this work is behind those as well: each access has to be known until then alone.
            before.retain(|earlier| {
                let is_before = clock.get(&earlier.stream) >= Some(&earlier.number);
                !is_before || earlier.writes && !writes
            });
            before.push(access);
        }
        self.clocks.insert(stream, clock);
    }

    /// A launch of a graph: nodes as handle, what each comes after, and what it accesses. All are behind the work of the
    /// stream and behind this clock, and what comes back is behind all.
    pub(crate) fn graph(
        &mut self,
        stream: Handle,
        last: &Clock,
        nodes: &[(Handle, Vec<Handle>, Vec<(u64, bool)>)],
    ) -> Clock {
        if nodes.iter().all(|(_, _, accesses)| accesses.is_empty()) {
            // Nothing is to be ordered: clocks of many nodes take long.
            self.work(stream, &[], "a graph");
            return self.clock(stream);
        }
        let mut before = self.clock(stream);
        join(&mut before, last);
        let mut behind = before.clone();
        for (node, after, accesses) in nodes {
            let mut clock = before.clone();
            for earlier in after {
                join(&mut clock, &self.clocks[earlier]);
            }
            self.clocks.insert(*node, clock);
            self.work(*node, accesses, "a step of a graph");
            join(&mut behind, &self.clocks[node]);
        }
        self.clocks.insert(stream_of(stream), behind.clone());
        behind
    }

    pub(crate) fn found(&mut self, race: &str) {
        self.race.get_or_insert_with(|| race.to_owned());
    }

    pub(crate) fn record(&mut self, event: Handle, stream: Handle) {
        let clock = self.clock(stream);
        self.events.insert(event, clock);
    }

    /// The end of an event; streams that wait for it have its clock.
    pub(crate) fn forget_event(&mut self, event: Handle) {
        self.events.remove(&event);
    }

    pub(crate) fn wait(&mut self, stream: Handle, event: Handle) {
        self.waits += 1;
        let clock = self.events.get(&event).cloned().unwrap_or_default();
        join(self.clocks.entry(stream_of(stream)).or_default(), &clock);
    }

    /// The end of a stream, which is given no more work. What was ordered behind its work is asked of memory alone that
    /// this work used and nothing has written since: without any, or once the host has waited, nothing has to know of
    /// the stream. A program makes streams as long as it runs.
    pub(crate) fn end_stream(&mut self, stream: Handle) {
        self.ended.push(stream);
        let ended = std::mem::take(&mut self.ended);
        let used: BTreeSet<Handle> = self.accesses.values().flatten().map(|a| a.stream).collect();
        for stream in ended {
            let last = self.clocks.get(&stream).and_then(|own| own.get(&stream));
            let is_asked_of = self.lazy || used.contains(&stream);
            if is_asked_of && self.done.get(&stream) < last {
                self.ended.push(stream);
                continue;
            }
            self.clocks.remove(&stream);
            self.contexts.remove(&stream);
            self.done.remove(&stream);
            self.blocking.retain(|other| *other != stream);
            let clocks = self.clocks.values_mut().chain(self.events.values_mut());
            clocks.for_each(|clock| {
                clock.remove(&stream);
            });
            for accesses in self.accesses.values_mut() {
                accesses.retain(|access| access.stream != stream);
            }
        }
    }

    pub(crate) fn wait_on_host(&mut self, stream: Handle) {
        let clock = self.clock(stream);
        join(&mut self.done, &clock);
    }

    pub(crate) fn wait_for_event_on_host(&mut self, event: Handle) {
        let clock = self.events.get(&event).cloned().unwrap_or_default();
        join(&mut self.done, &clock);
    }

    /// The host waits for the streams of the current context.
    pub(crate) fn wait_for_all_on_host(&mut self) {
        let current = CURRENT.get();
        for (stream, clock) in &self.clocks {
            if self.contexts.get(stream).is_none_or(|context| *context == current) {
                join(&mut self.done, clock);
            }
        }
    }

    /// Whether a stream's work is done, as the host is told.
    pub(crate) fn is_done(&mut self, stream: Handle) -> bool {
        if !self.lazy {
            self.wait_on_host(stream);
        }
        let clock = self.clock(stream);
        covers(&self.done, &clock)
    }

    /// Whether an event is reached, as the host is told.
    pub(crate) fn is_reached(&mut self, event: Handle) -> bool {
        if !self.lazy {
            self.wait_for_event_on_host(event);
        }
        let clock = self.events.get(&event).cloned().unwrap_or_default();
        covers(&self.done, &clock)
    }

    /// The end of an allocation, behind the work that a stream has.
    pub(crate) fn free_in(&mut self, start: u64, stream: Handle) {
        let clock = self.clock(stream);
        let accesses = self.accesses.remove(&start).unwrap_or_default();
        let open = |access: &&Access| clock.get(&access.stream) < Some(&access.number);
        if let Some(access) = accesses.iter().find(open) {
            let text = format!(
                "memory is freed in stream {stream:#x}, which is not behind work of stream {:#x}",
                access.stream
            );
            self.race.get_or_insert(text);
        }
    }

    /// The end of an allocation, for which the driver waits for stream 0.
    pub(crate) fn free(&mut self, start: u64) {
        self.wait_on_host(0);
        let accesses = self.accesses.remove(&start).unwrap_or_default();
        let open = |access: &&Access| self.done.get(&access.stream) < Some(&access.number);
        if let Some(access) = accesses.iter().find(open) {
            let text = format!("memory is freed under work of stream {:#x}", access.stream);
            self.race.get_or_insert(text);
        }
    }
}

impl State {
    /// The allocation that an address is in.
    pub(crate) fn allocation(&self, address: u64) -> Option<u64> {
        let (start, length) = self.lengths.range(..=address).next_back()?;
        (address - start < *length as u64).then_some(*start)
    }

    /// Work of a stream that accesses the allocation at an address.
    pub(crate) fn access(&mut self, stream: Handle, address: u64, writes: bool, what: &str) {
        if let Some(start) = self.allocation(address) {
            self.order.work(stream, &[(start, writes)], what);
        }
    }
}

/// What a kernel does with the allocations that it is given, by its name: `uses_rw` reads the first and writes the
/// second. One that ends in `f` has the fault channel behind them. Others are not looked at.
pub(crate) fn uses_of(name: &str) -> (Vec<bool>, bool) {
    let letters = name.strip_prefix("uses_").unwrap_or_default();
    let letters = letters.split('_').next().unwrap_or_default();
    let uses = letters.trim_end_matches('f').chars();
    (uses.map(|letter| letter == 'w').collect(), letters.ends_with('f'))
}
