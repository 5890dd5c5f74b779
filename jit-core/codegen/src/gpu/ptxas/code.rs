//! A function of a PTX text as blocks of instructions, with the registers that each reads and writes.

use std::collections::HashMap;
use std::ops::Range;

use super::text::{functions, registers};

/// A register of a function, by its place in [`Code::names`] and [`Code::words`].
pub(super) type Register = usize;

/// One instruction, or one line of inline PTX that has several.
#[derive(Debug)]
pub(super) struct Instruction<'a> {
    /// The line of the function's text, from 0.
    pub(super) line: usize,
    /// The name of the operation; empty for a line of several.
    pub(super) opcode: &'a str,
    /// The operands, as they are written.
    pub(super) operands: &'a str,
    /// Whether a predicate may leave the instruction out.
    pub(super) conditional: bool,
    pub(super) writes: Vec<Register>,
    pub(super) reads: Vec<Register>,
}

impl Instruction<'_> {
    pub(super) fn is_branch(&self) -> bool {
        self.opcode.starts_with("bra")
    }

    /// Whether nothing behind it is run.
    fn is_last(&self) -> bool {
        let ends = self.is_branch() || matches!(self.opcode, "ret" | "exit" | "trap");
        ends && !self.conditional
    }
}

/// Instructions that run one after the other.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) instructions: Range<usize>,
    /// The blocks that may come next.
    pub(super) next: Vec<usize>,
}

/// A function.
#[derive(Debug, Default)]
pub(super) struct Code<'a> {
    pub(super) instructions: Vec<Instruction<'a>>,
    pub(super) blocks: Vec<Block>,
    /// How many registers of 32 bits each register fills; a predicate fills none.
    pub(super) words: Vec<usize>,
    pub(super) names: Vec<&'a str>,
    known: HashMap<&'a str, Register>,
    labels: HashMap<&'a str, usize>,
}

impl<'a> Code<'a> {
    /// Reads each of the [`functions`] of a text.
    pub(super) fn all(ptx: &'a str) -> Vec<Option<Code<'a>>> {
        functions(ptx).map(Code::read).collect()
    }

    /// Reads a function; `None` if its branches do not say where they go to: by a table, or to labels of inline PTX that
    /// are there twice.
    pub(super) fn read(function: &'a str) -> Option<Code<'a>> {
        let mut code = Code::default();
        let mut begin = 0;
        for (at, line) in function.lines().enumerate() {
            let line = without_comment(line).trim_ascii();
            if let Some(label) = line.strip_suffix(':').filter(|label| !label.contains(' ')) {
                code.end_block(&mut begin);
                if code.labels.insert(label, code.blocks.len()).is_some() {
                    return None;
                }
            } else if line.ends_with([';', '}']) && !line.starts_with('.') {
                let instruction = code.instruction(at, line);
                let ends = instruction.is_branch() || instruction.is_last();
                code.instructions.push(instruction);
                if ends {
                    code.end_block(&mut begin);
                }
            }
        }
        code.end_block(&mut begin);
        code.connect()?;
        Some(code)
    }

    fn instruction(&mut self, at: usize, line: &'a str) -> Instruction<'a> {
        let (condition, text) = match line.strip_prefix('@').and_then(|l| l.split_once(' ')) {
            Some((condition, text)) => (condition, text.trim_start()),
            None => ("", line),
        };
        let several = text.starts_with(['{', '}']) || text.trim_end_matches(';').contains(';');
        let (opcode, operands) = match text.split_once(char::is_whitespace) {
            _ if several => ("", text),
            Some((opcode, operands)) => (opcode, operands.trim_start()),
            None => (text.trim_end_matches(';'), ""),
        };
        // What is written comes first, and nothing is where an address does.
        let end = match operands.chars().next() {
            _ if several => 0,
            Some('{') => operands.find('}').unwrap_or(operands.len()),
            Some('[') | None => 0,
            Some(_) => operands.find(',').unwrap_or(operands.len()),
        };
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        self.registers(&operands[..end], &mut writes);
        self.registers(condition, &mut reads);
        self.registers(&operands[end..], &mut reads);
        Instruction {
            line: at,
            opcode,
            operands,
            conditional: !condition.is_empty(),
            writes,
            reads,
        }
    }

    /// The registers that a text names, without special ones, of which only some end in a number.
    fn registers(&mut self, text: &'a str, named: &mut Vec<Register>) {
        named.extend(registers(text).filter_map(|name| {
            let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let words = match kind {
                _ if kind == name => return None,
                "%p" => 0,
                "%r" | "%rs" | "%f" | "%h" | "%hh" => 1,
                "%rd" | "%fd" => 2,
                "%rq" => 4,
                _ => return None,
            };
            let next = self.words.len();
            let register = *self.known.entry(name).or_insert(next);
            if register == next {
                self.words.push(words);
                self.names.push(name);
            }
            Some(register)
        }));
    }

    fn end_block(&mut self, begin: &mut usize) {
        let end = self.instructions.len();
        if *begin < end {
            self.blocks.push(Block {
                instructions: *begin..end,
                next: Vec::new(),
            });
            *begin = end;
        }
    }

    /// Finds what comes behind each block.
    fn connect(&mut self) -> Option<()> {
        let count = self.blocks.len();
        for (at, block) in self.blocks.iter_mut().enumerate() {
            let last = &self.instructions[block.instructions.end - 1];
            if last.is_branch() {
                let target = last.operands.trim_end_matches(';').trim_end();
                // Behind the last instruction is nothing.
                block
                    .next
                    .extend(Some(*self.labels.get(target)?).filter(|&to| to < count));
            }
            if !last.is_last() && at + 1 < count {
                block.next.push(at + 1);
            }
        }
        let mut all = self.instructions.iter();
        all.all(|instruction| !instruction.opcode.starts_with("brx"))
            .then_some(())
    }
}

/// What stands in a line before `//`.
fn without_comment(line: &str) -> &str {
    let mut slashes = line.match_indices('/').map(|(at, _)| at);
    let comment = slashes.find(|at| line[at + 1..].starts_with('/'));
    &line[..comment.unwrap_or(line.len())]
}
