//! Named barriers: a warp comes to one when all its lanes that have not ended have, and waits until as many threads have
//! come as open it.

use kiln_ir::Ordering;
use kiln_ir::named_barrier::{NamedBarrier, Ticket};

use super::InterpretError;
use super::check::{Checker, at_named_barrier};
use super::flatten::Program;
use super::ops::{Op, OpIndex};
use super::run::{Pause, Runner, Thread, Trouble};
use super::warp;

/// What a thread at an op comes to a barrier with, if the op is one.
fn call(program: &Program, at: OpIndex, regs: &[u64]) -> Option<NamedBarrier> {
    match program.ops[at as usize] {
        Op::NamedBarrier {
            number,
            threads,
            waits,
        } => Some(NamedBarrier {
            number: regs[number as usize] as u32,
            threads: regs[threads as usize] as u32,
            waits,
        }),
        _ => None,
    }
}

/// The name of the operation at an op that a warp comes to as a whole.
pub(super) fn operation(program: &Program, at: OpIndex) -> &'static str {
    match program.ops[at as usize] {
        Op::NamedBarrier { waits: true, .. } => "barrier_sync",
        Op::NamedBarrier { waits: false, .. } => "barrier_arrive",
        _ => warp::operation(program, at).map_or("", |op| op.name),
    }
}

impl<C: Checker> Runner<'_, C> {
    /// Has a warp, no lane of which can run on, come to the named barrier that its lanes wait at, if they do. Whether they
    /// run on then.
    pub(super) fn come_to_named(
        &mut self,
        block: [u32; 3],
        first: u32,
        file: &[u64],
        states: &mut [Thread],
    ) -> Result<bool, InterpretError> {
        let waits = |t: &Thread| !t.ended && t.waits == Some(Pause::Named);
        let Some(lane) = states.iter().position(waits) else {
            return Ok(false);
        };
        let registers = self.program.registers.max(1) as usize;
        let came = |n: usize| {
            let regs = &file[n * registers..][..registers];
            call(self.program, states[n].pc.saturating_sub(1), regs)
        };
        let (at, mine) = (states[lane].pc - 1, came(lane));
        let with_it = |n: usize| states[n].ended || waits(&states[n]) && came(n) == mine;
        let other = (0..states.len()).find(|&n| !with_it(n));
        let arrived = match (other, mine) {
            (Some(other), _) => Err(format!(
                "lane {other} of the warp waits elsewhere, or for another barrier: all lanes of a warp that have not \
                 ended come to a named barrier together"
            )),
            (None, Some(mine)) => self.named.arrive(mine),
            (None, None) => Ok(None),
        };
        let ticket = arrived.map_err(|what| {
            self.error(
                Trouble::Warp(what),
                at,
                &self.position(block, first + lane as u32),
            )
        })?;
        let number = mine.map_or(0, |mine| mine.number);
        let has_to_see = mine.is_some_and(|mine| mine.waits);
        self.order_at(number, Ordering::Release, first, states);
        if ticket.is_none() && has_to_see {
            self.order_at(number, Ordering::Acquire, first, states);
        }
        for state in states.iter_mut().filter(|t| !t.ended) {
            state.waits = ticket.map(Pause::Arrived);
        }
        Ok(ticket.is_none())
    }

    /// Tells the checker what the lanes of a warp that have not ended do at a barrier.
    fn order_at(&mut self, number: u32, ordering: Ordering, first: u32, states: &[Thread]) {
        if C::ON {
            for (n, _) in (first..).zip(states).filter(|(_, t)| !t.ended) {
                let access = at_named_barrier(number, ordering);
                self.checker.atomic(n, access);
            }
        }
    }

    /// Lets the threads of a block run on whose named barriers have opened, once none can run on otherwise. Whether there
    /// are any.
    pub(super) fn open_named(
        &mut self,
        block: [u32; 3],
        states: &mut [Thread],
    ) -> Result<bool, InterpretError> {
        let mut in_vain: Option<(usize, Ticket)> = None;
        let mut any = false;
        for (n, state) in states.iter_mut().enumerate() {
            let Some(Pause::Arrived(ticket)) = state.waits.filter(|_| !state.ended) else {
                continue;
            };
            if !self.named.is_open(ticket) {
                in_vain.get_or_insert((n, ticket));
                continue;
            }
            state.waits = None;
            any = true;
            if C::ON {
                let access = at_named_barrier(ticket.number(), Ordering::Acquire);
                self.checker.atomic(n as u32, access);
            }
        }
        match in_vain {
            Some((n, ticket)) if !any => {
                let what = self.named.in_vain(ticket);
                let position = self.position(block, n as u32);
                Err(self.error(Trouble::Warp(what), states[n].pc - 1, &position))
            }
            _ => Ok(any),
        }
    }
}
