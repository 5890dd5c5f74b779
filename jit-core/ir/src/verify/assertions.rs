//! Rules about static assertions.

use super::Checker;
use crate::{Function, Phase, Type, ValueDef};

/// Checks the static assertions of a function whose entities exist.
pub(super) fn check(checker: &mut Checker<'_>, function: &Function) {
    if function.assertions.is_empty() {
        return;
    }
    let decided = function.decided_by_arguments();
    for assertion in &function.assertions {
        let ty = function.type_of(assertion.condition);
        let message = &assertion.message;
        let wrong = if checker.module.phase >= Phase::Specialized {
            format!("the static assertion \"{message}\" is left open after specialization")
        } else if ty != Type::BOOL {
            let ty = checker.module.types.display(ty);
            format!("the static assertion \"{message}\" decides on a bool, not on a `{ty}`")
        } else if !decided.contains(&assertion.condition) {
            format!(
                "the static assertion \"{message}\" depends on what only a thread knows; compute it from constants, \
                 type and const parameters"
            )
        } else {
            continue;
        };
        let inst = match function.values[assertion.condition].def {
            ValueDef::Inst(inst) => Some(inst),
            _ => None,
        };
        checker.report(function, inst, wrong);
    }
}
