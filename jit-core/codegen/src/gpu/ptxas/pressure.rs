//! How many registers a function needs at once.

use super::code::{Code, Instruction};

/// The most registers of 32 bits that hold values at one place, if instructions stay in their order.
pub(super) fn pressure(code: &Code<'_>) -> usize {
    let mut at_begin = vec![vec![false; code.words.len()]; code.blocks.len()];
    let mut most = 0;
    loop {
        let mut changed = false;
        for at in (0..code.blocks.len()).rev() {
            let block = &code.blocks[at];
            let mut live = Live::new(&code.words);
            for &next in &block.next {
                let needed = (0..code.words.len()).filter(|&register| at_begin[next][register]);
                needed.for_each(|register| live.set(register, true));
            }
            most = most.max(live.held);
            for instruction in code.instructions[block.instructions.clone()].iter().rev() {
                live.go_before(instruction);
                most = most.max(live.held);
            }
            if live.registers != at_begin[at] {
                at_begin[at] = live.registers;
                changed = true;
            }
        }
        if !changed {
            return most;
        }
    }
}

/// The registers that hold values which are read further on.
struct Live<'w> {
    registers: Vec<bool>,
    words: &'w [usize],
    held: usize,
}

impl Live<'_> {
    fn new(words: &[usize]) -> Live<'_> {
        Live {
            registers: vec![false; words.len()],
            words,
            held: 0,
        }
    }

    fn set(&mut self, register: usize, is_live: bool) {
        match (
            std::mem::replace(&mut self.registers[register], is_live),
            is_live,
        ) {
            (false, true) => self.held += self.words[register],
            (true, false) => self.held -= self.words[register],
            _ => {}
        }
    }

    fn go_before(&mut self, instruction: &Instruction<'_>) {
        for &register in &instruction.writes {
            // What is left out leaves what was there.
            self.set(
                register,
                instruction.conditional && self.registers[register],
            );
        }
        instruction
            .reads
            .iter()
            .for_each(|&register| self.set(register, true));
    }
}
