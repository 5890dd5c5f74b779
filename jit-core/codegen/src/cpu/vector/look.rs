//! Where code looks whether its launch is to end.
//!
//! A launch has a word that is 0 as long as it is to go on ([`kiln_ir::stop::Stop`]). Each loop reads it
//! at the end of its turns, save innermost ones whose turns are counted with 32 bits or fewer or halve what they
//! test ([`dwindles`]): there a look costs, and an end is in sight. It is read before each block of a kernel with loops. Of one without,
//! whoever runs it asks for as many blocks at once as make [`WORK_A_CALL`], and looks between. Where the
//! word is set, control leaves the function from where it is.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::PointerValue;

use kiln_ir::{Control, Function, Inst, Region};

use super::Warp;
use super::emit::Emit;
use super::entry::Entry;
use super::plan::Plan;
use crate::llvm::error::BackendError;
use crate::simt::dwindles;

/// When a loop looks whether the launch is to end.
#[derive(Copy, Clone)]
pub(super) enum Looks<'ctx> {
    Always,
    /// With the place where its turns are counted.
    Rarely(PointerValue<'ctx>),
    Never,
}

/// Turns from one look to the next in an innermost loop, as often as they are written.
const TURNS_A_LOOK: u32 = 64;

/// Instructions of a call of code without loops, counted once for each warp. A call takes some 40, and each
/// of these some microseconds if all that it loads is far away.
const WORK_A_CALL: u64 = 16384;

impl Plan<'_> {
    /// Whether the code looks before each block.
    pub(super) fn looks_before_blocks(&self) -> bool {
        let function = &self.flat.function;
        has_loops(function, function.body)
    }

    /// Whether a loop of the whole block looks at the end of its turns.
    pub(super) fn looks_each_turn(&self, inst: Inst) -> bool {
        let function = &self.flat.function;
        match function.insts[inst].data.control() {
            Control::Loop { body } => has_loops(function, body) || !dwindles(function, body),
            Control::For { .. }
            | Control::Next
            | Control::If { .. }
            | Control::Leave { .. }
            | Control::Return { .. } => true,
        }
    }

    /// How many blocks a call may ask for, so that it ends soon.
    pub(crate) fn blocks_a_call(&self) -> u64 {
        if self.looks_before_blocks() {
            return u64::MAX;
        }
        let mut instructions = 0;
        self.flat.function.for_each_inst(|_, _| instructions += 1);
        let work = instructions * u64::from(self.block.warps_of_one());
        let blocks = (WORK_A_CALL / work.max(1)).max(1);
        blocks.next_multiple_of(self.block.beside.into())
    }
}

fn has_loops(function: &Function, region: Region) -> bool {
    function.regions[region].insts.iter().any(|&inst| {
        let data = &function.insts[inst].data;
        data.is_loop() || data.regions().iter().any(|&r| has_loops(function, r))
    })
}

impl<'ctx> Entry<'ctx> {
    /// Looks whether the launch is to end, and leaves the function if so: at the end of a turn of a
    /// loop, or before the next block. Nothing of the block is of use then, so nothing is put in order.
    pub(super) fn look(&self, emit: &Emit<'_, 'ctx>) -> Result<(), BackendError> {
        let stop = emit.load(self.launch.get_type().into(), self.stop, 8, true)?;
        let word = emit.load(emit.int(32).into(), stop.into_pointer_value(), 4, true)?;
        let zero = emit.i32(0).into();
        let go_on = emit.icmp(IntPredicate::EQ, word, zero)?.into_int_value();
        let next = emit.context.append_basic_block(self.function, "go_on");
        emit.likely(go_on, next, self.stopped)?;
        emit.builder.position_at_end(next);
        Ok(())
    }

    /// [`Entry::look`] each 64th time, counted down by `turns`: for a loop of few instructions.
    pub(super) fn look_rarely(
        &self,
        emit: &Emit<'_, 'ctx>,
        turns: PointerValue<'ctx>,
    ) -> Result<(), BackendError> {
        let int: BasicTypeEnum<'ctx> = emit.int(32).into();
        let turn = emit.builder.build_load(int, turns, "turn")?;
        let turn = emit.sub(turn, emit.i32(1).into())?;
        emit.builder.build_store(turns, turn)?;
        let zero = emit.i32(0).into();
        let other = emit.icmp(IntPredicate::NE, turn, zero)?.into_int_value();
        let append = |name| emit.context.append_basic_block(self.function, name);
        let (looks, next) = (append("look"), append("turn_end"));
        emit.likely(other, next, looks)?;
        emit.builder.position_at_end(looks);
        self.look(emit)?;
        emit.builder.build_store(turns, emit.i32(TURNS_A_LOOK))?;
        emit.builder.build_unconditional_branch(next)?;
        emit.builder.position_at_end(next);
        Ok(())
    }
}

impl<'ctx> Warp<'_, '_, 'ctx> {
    /// How a loop looks whether the launch is to end: at each turn if there are loops in it, never if
    /// its turns are known to be few, else now and then.
    pub(super) fn looks(&self, body: Region, few: bool) -> Result<Looks<'ctx>, BackendError> {
        if has_loops(self.function(), body) {
            return Ok(Looks::Always);
        }
        if few {
            return Ok(Looks::Never);
        }
        let turns = self.entry.slot(self.emit, self.emit.int(32).into())?;
        let first = self.emit.i32(TURNS_A_LOOK);
        self.emit.builder.build_store(turns, first)?;
        Ok(Looks::Rarely(turns))
    }

    /// At the end of a turn.
    pub(super) fn look(&self, looks: Looks<'ctx>) -> Result<(), BackendError> {
        match looks {
            Looks::Always => self.entry.look(self.emit),
            Looks::Rarely(turns) => self.entry.look_rarely(self.emit, turns),
            Looks::Never => Ok(()),
        }
    }
}
