//! Static assertions: what must hold of the type and const arguments that a function is specialized for.

use std::collections::HashSet;

use crate::{Function, InstData, Location, Value};

/// A condition that specialization checks; where it does not hold there is no code, but an error with the message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaticAssertion {
    /// A `bool` that type and const arguments decide: by arithmetic, comparisons, conversions and selections of them.
    pub condition: Value,
    /// What is wrong where it does not hold, and what to do.
    pub message: String,
    /// The line that asserts it.
    pub location: Location,
}

impl Function {
    /// The values that constants, type and const arguments decide, so that they are known as soon as the function
    /// is specialized: arithmetic, comparisons, conversions and selections of such values.
    pub(crate) fn decided_by_arguments(&self) -> HashSet<Value> {
        let mut decided = HashSet::new();
        // In the order of the text, in which a value stands before its uses.
        self.for_each_inst(|_, inst| {
            let node = &self.insts[inst];
            let computes = matches!(
                node.data,
                InstData::Const(_)
                    | InstData::ConstParam(_)
                    | InstData::Unary { .. }
                    | InstData::Binary { .. }
                    | InstData::Compare { .. }
                    | InstData::Cast { .. }
                    | InstData::Select { .. }
            );
            let mut all_decided = computes;
            node.data
                .for_each_operand(|operand| all_decided &= decided.contains(&operand));
            if all_decided {
                decided.extend(node.result);
            }
        });
        decided
    }
}
