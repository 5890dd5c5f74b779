//! Named barriers of a block (PTX ISA, "barrier"), for who runs the threads of a block in turn: how many have come to each.
//!
//! A barrier opens when as many threads have come to it as those say who come, and is then as it was at first. Warps come
//! as a whole, and count as 32 threads each, ended ones and those of an incomplete warp included.

use crate::WARP_LANES;

/// How many barriers a block has, that of `barrier` itself, which is number 0, included.
pub const BARRIERS: u32 = 16;

/// The most threads of a block, and so at a barrier.
const MAX_THREADS: u32 = 1024;

/// What a warp comes to a barrier with.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct NamedBarrier {
    /// Which barrier.
    pub number: u32,
    /// How many threads it takes to open it.
    pub threads: u32,
    /// Whether the warp waits until it opens.
    pub waits: bool,
}

/// A barrier that a warp waits at, as it is now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    number: u32,
    phase: u64,
}

impl Ticket {
    /// Which barrier.
    pub fn number(self) -> u32 {
        self.number
    }
}

/// The named barriers of a block.
#[derive(Clone, Default, Debug)]
pub struct NamedBarriers([Barrier; BARRIERS as usize]);

#[derive(Copy, Clone, Default, Debug)]
struct Barrier {
    /// How many threads open it, said by the first who came since it was open.
    expected: u32,
    arrived: u32,
    /// How often it has opened.
    phase: u64,
}

/// What is wrong with the number of a barrier.
pub fn wrong_number(number: u32) -> Option<String> {
    (!(1..BARRIERS).contains(&number)).then(|| {
        format!(
            "a named barrier has a number from 1 to {}, not {number}; 0 is that of `barrier()`",
            BARRIERS - 1
        )
    })
}

/// What is wrong with a number of threads.
pub fn wrong_threads(threads: u32) -> Option<String> {
    let lanes = WARP_LANES as u32;
    let holds = threads.is_multiple_of(lanes) && (lanes..=MAX_THREADS).contains(&threads);
    (!holds).then(|| {
        format!(
            "whole warps come to a named barrier: a multiple of {lanes} threads up to {MAX_THREADS}, not {threads}"
        )
    })
}

impl NamedBarriers {
    /// A warp comes to a barrier. Gives what it waits for, if it has to.
    ///
    /// # Errors
    /// What is wrong with the number or with the number of threads.
    pub fn arrive(&mut self, came: NamedBarrier) -> Result<Option<Ticket>, String> {
        let NamedBarrier {
            number,
            threads,
            waits,
        } = came;
        if let Some(wrong) = wrong_number(number).or_else(|| wrong_threads(threads)) {
            return Err(wrong);
        }
        let barrier = &mut self.0[number as usize];
        if barrier.arrived > 0 && barrier.expected != threads {
            return Err(format!(
                "it says that {threads} threads open barrier {number}, and who came before says {}; all who \
                 come have to say the same",
                barrier.expected
            ));
        }
        barrier.expected = threads;
        barrier.arrived += WARP_LANES as u32;
        let ticket = Ticket {
            number,
            phase: barrier.phase,
        };
        if barrier.arrived >= barrier.expected {
            barrier.arrived = 0;
            barrier.phase += 1;
            return Ok(None);
        }
        Ok(waits.then_some(ticket))
    }

    /// Whether what was waited for has happened.
    pub fn is_open(&self, ticket: Ticket) -> bool {
        self.0[ticket.number as usize].phase != ticket.phase
    }

    /// Why a barrier does not open where nobody can go on.
    pub fn in_vain(&self, ticket: Ticket) -> String {
        let Barrier {
            expected, arrived, ..
        } = self.0[ticket.number as usize];
        format!(
            "barrier {} opens for {expected} threads, {arrived} have come, and nobody else will: all that \
             are left wait. Let as many come as it says, by `barrier_sync` or `barrier_arrive`",
            ticket.number
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(number: u32, threads: u32, waits: bool) -> NamedBarrier {
        NamedBarrier {
            number,
            threads,
            waits,
        }
    }

    #[test]
    fn a_barrier_opens_for_those_who_came_before() {
        let mut barriers = NamedBarriers::default();
        let first = barriers.arrive(came(3, 96, true)).expect("a barrier");
        let first = first.expect("it waits");
        assert_eq!(barriers.arrive(came(3, 96, false)), Ok(None));
        assert!(!barriers.is_open(first));
        assert_eq!(barriers.arrive(came(3, 96, true)), Ok(None));
        assert!(barriers.is_open(first));
        // It is as it was, and who comes now waits for others.
        let next = barriers.arrive(came(3, 64, true)).expect("a barrier");
        assert!(next.is_some_and(|next| !barriers.is_open(next)));
    }

    #[test]
    fn what_no_barrier_has_is_told() {
        let refused = |came| NamedBarriers::default().arrive(came).is_err();
        assert!(refused(came(0, 64, true)) && refused(came(16, 64, true)));
        assert!(refused(came(1, 0, true)) && refused(came(1, 40, false)));
        assert!(refused(came(1, 1056, true)) && !refused(came(15, 1024, true)));
        let mut barriers = NamedBarriers::default();
        assert!(barriers.arrive(came(2, 64, false)).is_ok());
        assert!(barriers.arrive(came(2, 96, true)).is_err());
    }
}
