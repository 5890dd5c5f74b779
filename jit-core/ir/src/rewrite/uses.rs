//! Who uses a value: asked and changed for a whole function, and by a walk that changes it.

use std::collections::HashMap;

use crate::{Entity, Function, Inst, InstData, Value, debug_as_text, error_text};

/// An operand of an instruction.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Use {
    /// The instruction.
    pub inst: Inst,
    /// Which of its operands, in the order of [`InstData::for_each_operand`].
    pub position: usize,
}

/// An instruction cannot be erased, as something uses its result.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!(
    "{value} cannot be erased with its instruction, as it is used {uses} times; give its uses another \
     value before (`replace_uses`)"
))]
pub struct StillUsed {
    /// The result.
    pub value: Value,
    /// How many operands it is.
    pub uses: usize,
}

debug_as_text!(StillUsed);

impl Function {
    /// The operands that a value is, of the instructions reachable from the body, in the order of the text.
    /// Takes a walk over the function.
    ///
    /// ```
    /// use kiln_ir::{BinaryOp, Function, FunctionKind, InstData, Location, Type};
    ///
    /// let mut f = Function::new("double", FunctionKind::Device, Location::unknown());
    /// let x = f.add_param("x", Type::F32, Location::unknown());
    /// let sum = InstData::Binary { op: BinaryOp::Add, args: [x, x] };
    /// f.append(f.body, sum, Type::F32, Location::unknown());
    /// let positions: Vec<usize> = f.uses(x).iter().map(|used| used.position).collect();
    /// assert_eq!(positions, [0, 1]);
    /// ```
    pub fn uses(&self, value: Value) -> Vec<Use> {
        let mut uses = Vec::new();
        self.for_each_inst(|_, inst| {
            let data = &self.insts[inst].data;
            uses.extend(positions_of(data, value).map(|position| Use { inst, position }));
        });
        uses
    }

    /// Puts `new` in the place of `old` in every operand. Takes a walk over the function; a
    /// [`Cursor`](super::Cursor) does many at the cost of one.
    pub fn replace_uses(&mut self, old: Value, new: Value) {
        self.replace_uses_except(old, new, &[]);
    }

    /// Replaces the uses of `old` by `new`, but for the operands of the instructions `except`: those that
    /// make `new` of `old`.
    pub fn replace_uses_except(&mut self, old: Value, new: Value, except: &[Inst]) {
        for (inst, node) in self.insts.iter_mut() {
            if !except.contains(&inst) {
                node.data.map_operands(|v| if v == old { new } else { v });
            }
        }
    }

    /// Takes an instruction out of the function, with the regions that it holds. Takes a walk over the
    /// function.
    ///
    /// # Errors
    /// [`StillUsed`] if its result is; nothing is changed then.
    pub fn erase(&mut self, inst: Inst) -> Result<(), StillUsed> {
        if let Some(value) = self.insts[inst].result {
            let uses = self.uses(value).len();
            if uses > 0 {
                return Err(StillUsed { value, uses });
            }
        }
        for (_, region) in self.regions.iter_mut() {
            region.insts.retain(|&other| other != inst);
        }
        Ok(())
    }
}

/// Which operands of an operation a value is.
pub(super) fn positions_of(data: &InstData, value: Value) -> impl Iterator<Item = usize> + use<> {
    let mut operands = smallvec::SmallVec::<[Value; 8]>::new();
    data.for_each_operand(|operand| operands.push(operand));
    let found = operands.into_iter().enumerate();
    found.filter_map(move |(position, operand)| (operand == value).then_some(position))
}

/// A value that takes the place of another.
struct Replacement {
    new: Value,
    /// What goes on using the other.
    except: Vec<Inst>,
}

/// Values that take the places of others, noted when they do and put in when the walk comes to an
/// instruction: each instruction takes those that were made since it was last looked at, in their order, so
/// that it ends with the operands that it would have had at once.
#[derive(Default)]
pub(super) struct Replacements {
    made: Vec<Replacement>,
    /// By value that is replaced: which ones of `made`, in their order.
    of: HashMap<Value, Vec<usize>>,
    /// By instruction: how many of `made` it has taken. What is not there has taken none.
    taken: Vec<usize>,
}

impl Replacements {
    /// Notes that `new` takes the place of `old`.
    pub(super) fn make(&mut self, old: Value, new: Value, except: &[Inst]) {
        self.of.entry(old).or_default().push(self.made.len());
        self.made.push(Replacement {
            new,
            except: except.to_vec(),
        });
    }

    /// Says that an instruction has the operands that it is to have now.
    pub(super) fn settle(&mut self, inst: Inst) {
        if self.made.is_empty() {
            return;
        }
        if self.taken.len() <= inst.index() {
            self.taken.resize(inst.index() + 1, 0);
        }
        self.taken[inst.index()] = self.made.len();
    }

    /// Gives an instruction its operands.
    pub(super) fn put_in(&mut self, function: &mut Function, inst: Inst) {
        let taken = self.taken.get(inst.index()).copied().unwrap_or(0);
        if taken == self.made.len() {
            return;
        }
        let data = &mut function.insts[inst].data;
        data.map_operands(|operand| self.now(operand, inst, taken));
        self.settle(inst);
    }

    /// Gives all instructions their operands.
    pub(super) fn put_in_all(&mut self, function: &mut Function) {
        if !self.made.is_empty() {
            for inst in function.insts.keys() {
                self.put_in(function, inst);
            }
        }
    }

    /// What an operand of an instruction has become that has taken so many.
    fn now(&self, operand: Value, inst: Inst, mut taken: usize) -> Value {
        let mut value = operand;
        let next = |value: Value, taken: usize| {
            let made = self.of.get(&value)?;
            let later = &made[made.partition_point(|&number| number < taken)..];
            let mut theirs = later.iter();
            let own = |number: &&usize| !self.made[**number].except.contains(&inst);
            theirs.find(own).copied()
        };
        while let Some(number) = next(value, taken) {
            value = self.made[number].new;
            taken = number + 1;
        }
        value
    }
}

/// How many operands each value is.
pub(super) struct UseCounts(Vec<usize>);

impl UseCounts {
    /// None yet.
    pub(super) fn new() -> UseCounts {
        UseCounts(Vec::new())
    }

    /// Of a value.
    pub(super) fn of(&self, value: Value) -> usize {
        self.0.get(value.index()).copied().unwrap_or(0)
    }

    /// Counts the operands of an operation.
    pub(super) fn add(&mut self, data: &InstData) {
        data.for_each_operand(|operand| self.set(operand, self.of(operand) + 1));
    }

    /// Counts them no more.
    pub(super) fn remove(&mut self, data: &InstData) {
        data.for_each_operand(|operand| self.set(operand, self.of(operand).saturating_sub(1)));
    }

    /// Says that `new` takes the places of `old`, but for so many.
    pub(super) fn replace(&mut self, old: Value, new: Value, kept: usize) {
        let moved = self.of(old).saturating_sub(kept);
        self.set(old, kept);
        self.set(new, self.of(new) + moved);
    }

    fn set(&mut self, value: Value, count: usize) {
        // A value that does not exist is told by the verifier.
        const FAR: usize = 1 << 24;
        if value.index() < FAR {
            let len = self.0.len().max(value.index() + 1);
            self.0.resize(len, 0);
            self.0[value.index()] = count;
        }
    }
}
