//! Blocks that wait for each other: each runs up to where it waits for all of the grid, and once all are there, the first
//! goes on.
//!
//! One block runs at a time, at the same addresses as any other: what is a block's own is put aside while others run.

use kiln_ir::launch::DesertedGrid;
use kiln_ir::named_barrier::NamedBarriers;

use super::InterpretError;
use super::check::Checker;
use super::run::{BlockMemory, Reached, Runner, Thread, UNINITIALIZED};

/// What is a block's own, while another one runs.
struct Aside<B> {
    block: [u32; 3],
    file: Vec<u64>,
    states: Vec<Thread>,
    shared: Vec<u8>,
    local: Vec<u8>,
    named: NamedBarriers,
    checked: B,
}

impl<C: Checker> Runner<'_, C> {
    /// All blocks, from one wait for the grid to the next.
    ///
    /// # Errors
    /// As a block; blocks that wait for others that have ended.
    pub(super) fn together(&mut self, own: &mut BlockMemory) -> Result<(), InterpretError> {
        let mut waiting = Vec::new();
        let mut total = 0;
        for block in self.blocks() {
            own.shared.refill(UNINITIALIZED);
            own.local.refill(0);
            let (mut file, mut states) = self.threads()?;
            self.start(block, &mut file, &mut states)?;
            total += 1;
            if self.go_on(block, &mut file, &mut states)? == Reached::Grid {
                waiting.push(self.put_aside(block, file, states, own)?);
            }
        }
        while !waiting.is_empty() {
            if waiting.len() as u64 != total {
                let deserted = DesertedGrid {
                    kernel: self.program.name.clone(),
                    waiting: waiting.len() as u64,
                    blocks: total,
                };
                return Err(deserted.into());
            }
            self.checker.grid();
            for aside in std::mem::take(&mut waiting) {
                let (block, mut file, mut states) = self.take_up(aside, own);
                if self.go_on(block, &mut file, &mut states)? == Reached::Grid {
                    waiting.push(self.put_aside(block, file, states, own)?);
                }
            }
        }
        Ok(())
    }

    fn put_aside(
        &mut self,
        block: [u32; 3],
        file: Vec<u64>,
        states: Vec<Thread>,
        own: &BlockMemory,
    ) -> Result<Aside<C::OfBlock>, InterpretError> {
        Ok(Aside {
            block,
            file,
            states,
            shared: own.shared.copy()?,
            local: own.local.copy()?,
            named: self.named.clone(),
            checked: self.checker.put_aside()?,
        })
    }

    fn take_up(
        &mut self,
        aside: Aside<C::OfBlock>,
        own: &mut BlockMemory,
    ) -> ([u32; 3], Vec<u64>, Vec<Thread>) {
        own.shared.put_back(&aside.shared);
        own.local.put_back(&aside.local);
        self.named = aside.named;
        self.checker.take_up(aside.block, aside.checked);
        (aside.block, aside.file, aside.states)
    }
}
