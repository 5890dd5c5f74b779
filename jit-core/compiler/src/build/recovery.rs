//! How a description goes on after an error: one cause is reported once.
//!
//! An error leaves a zero to go on with, whose type is a guess. What is made of it is wrong because of
//! that error alone, and so is not reported again. What an error is about, and which values and variables
//! come from such zeros, is what this file keeps.

use std::collections::HashSet;

use crate::ir::{InstData, Type, Value, Var as IrVar};

use super::{BuildErrorKind, KernelBuilder, Val};

/// What stands for something that could not be described.
#[derive(Default)]
pub(super) struct Recovery {
    values: HashSet<Value>,
    vars: HashSet<IrVar>,
}

impl Recovery {
    /// Whether an instruction is made of what stands for something else. What it assigns or writes then
    /// is so, too.
    pub(super) fn reaches(&mut self, data: &InstData) -> bool {
        if self.values.is_empty() {
            return false;
        }
        match data {
            InstData::VarGet(var) => return self.vars.contains(var),
            InstData::VarSet(var, value) if self.values.contains(value) => {
                self.vars.insert(*var);
            }
            InstData::Store { ptr, value, .. } if self.values.contains(value) => {
                self.values.insert(*ptr);
            }
            _ => {}
        }
        let mut reached = false;
        data.for_each_operand(|value| reached |= self.values.contains(&value));
        reached
    }

    /// Enters a value that stands for something else.
    pub(super) fn enter(&mut self, value: Value) {
        self.values.insert(value);
    }
}

impl KernelBuilder {
    /// Whether an error that was noted is why this value is what it is.
    pub(crate) fn is_recovered(&self, value: Val<'_>) -> bool {
        let state = self.state.borrow();
        std::ptr::eq(self, value.builder) && state.recovery.values.contains(&value.id)
    }

    /// Whether an error that was noted is why this variable is what it is.
    pub(crate) fn is_recovered_var(&self, var: IrVar) -> bool {
        self.state.borrow().recovery.vars.contains(&var)
    }

    /// A zero of type `ty` that stands for something that could not be described.
    #[track_caller]
    pub(crate) fn recovered(&self, ty: Type) -> Val<'_> {
        let zero = self.constant(crate::ir::Constant::Zero, ty);
        self.state.borrow_mut().recovery.enter(zero.id);
        zero
    }

    /// Notes an error about these values at the caller's line, unless one of them is what an earlier
    /// error has left, and returns a zero of type `ty` to go on with.
    #[track_caller]
    pub(crate) fn error_about(
        &self,
        values: &[Val<'_>],
        kind: BuildErrorKind,
        ty: Type,
    ) -> Val<'_> {
        if !values.iter().any(|value| self.is_recovered(*value)) {
            self.note(kind);
        }
        self.recovered(ty)
    }
}
