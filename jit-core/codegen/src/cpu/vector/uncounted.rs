//! Loops that are not counted: `loop` and `while`.
//!
//! They look now and then whether the launch is to end (`look.rs`); the turns of a short one are written
//! several times, so that this costs little.

use inkwell::basic_block::BasicBlock;

use kiln_ir::{Inst, Region, Uniformity};

use super::Warp;
use super::look::Looks;
use crate::llvm::error::BackendError;
use crate::simt::dwindles;

/// How often a body is written at most: counting the turns up to the next look costs a loop of a few
/// instructions some per cent.
const TURNS_AT_ONCE: usize = 8;

/// The most operations that the turns of a loop have together, where they are written several times.
const OPERATIONS_AT_ONCE: usize = 128;

impl<'ctx> Warp<'_, '_, 'ctx> {
    pub(super) fn loop_(&mut self, inst: Inst, body: Region) -> Result<(), BackendError> {
        let (head, exit) = (self.block("loop"), self.block("loop_end"));
        let divergent = self.kernel.uniformity.control(inst) == Uniformity::Lane;
        let looks = self.looks(body, dwindles(self.function(), body))?;
        self.enter_loop(divergent, head, exit)?;
        self.jump(head)?;
        self.emit.builder.position_at_end(head);
        for _ in 1..self.turns_at_once(looks, body) {
            let again = self.block("again");
            self.turn(body, Looks::Never, (again, exit))?;
            self.emit.builder.position_at_end(again);
        }
        self.turn(body, looks, (head, exit))?;
        self.leave_loop(exit, body)
    }

    /// A turn of a loop that is not counted, from which control goes to the first block while lanes are
    /// left in the loop.
    fn turn(
        &mut self,
        body: Region,
        looks: Looks<'ctx>,
        (on, exit): (BasicBlock<'ctx>, BasicBlock<'ctx>),
    ) -> Result<(), BackendError> {
        let next = self.block("next");
        if let Some(state) = self.loops.last_mut() {
            state.next = next;
        }
        self.start_iteration(next)?;
        self.region(body)?;
        self.jump(next)?;
        self.emit.builder.position_at_end(next);
        self.end_iteration(body)?;
        self.look(looks)?;
        match self.active_lanes()? {
            Some(active) => {
                let any = self.emit.any(active)?;
                self.emit.builder.build_conditional_branch(any, on, exit)?;
            }
            None => self.jump(on)?,
        }
        Ok(())
    }

    /// How many turns of a loop are written one after the other, with one look at their end.
    fn turns_at_once(&self, looks: Looks<'ctx>, body: Region) -> usize {
        let function = self.function();
        let (mut operations, mut waits) = (0, false);
        function.walk(body, &mut |_, inst| {
            let data = &function.insts[inst].data;
            if data.is_barrier() {
                waits = true;
            } else if data.constant().is_none() && data.var_use().is_none() {
                operations += 1;
            }
        });
        let last = function.regions[body].insts.last();
        let has_turns = last.is_none_or(|&inst| !function.insts[inst].data.is_terminator());
        match looks {
            Looks::Rarely(_) if has_turns && !waits => {
                (OPERATIONS_AT_ONCE / operations.max(1)).clamp(1, TURNS_AT_ONCE)
            }
            _ => 1,
        }
    }
}
