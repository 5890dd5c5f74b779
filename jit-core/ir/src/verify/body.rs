//! Rules about bodies: scopes, control flow, and the result of every instruction.

use std::cell::OnceCell;

use super::rules::Rules;
use super::{Checker, signature};
use crate::print::ValueNumbers;
use crate::{Entity, FastMath, Function, Inst, InstData, InstNode, Region, Type, Value};

/// Checks the body of a function whose entities exist.
pub(super) fn check(checker: &mut Checker<'_>, function: &Function) {
    let root = &function.regions[function.body];
    if function.is_declaration {
        if !root.insts.is_empty() {
            checker.report(function, None, "a declaration has no body");
        }
        return;
    }
    let mut live = vec![false; function.values.len()];
    for param in &function.params {
        live[param.value.index()] = true;
    }
    let mut walk = Walk {
        checker,
        function,
        live,
        loops: 0,
        numbers: OnceCell::new(),
    };
    walk.region(function.body);
    if function.result != Type::UNIT && falls_through(function, function.body) {
        let result = checker.module.types.display(function.result);
        let message = format!("not every path returns a value; the result is `{result}`");
        checker.report(function, None, message);
    }
}

/// Whether the end of a region can be reached, as far as its last instruction tells.
fn falls_through(function: &Function, region: Region) -> bool {
    let Some(&last) = function.regions[region].insts.last() else {
        return true;
    };
    match function.insts[last].data {
        InstData::If {
            then_region,
            else_region: Some(other),
            ..
        } => falls_through(function, then_region) || falls_through(function, other),
        InstData::Loop { body } => breaks(function, body, 0),
        ref data => !data.is_terminator(),
    }
}

/// Whether something in a region leaves the loop `depth` loops out.
fn breaks(function: &Function, region: Region, depth: u32) -> bool {
    let insts = &function.regions[region].insts;
    insts.iter().any(|&inst| match function.insts[inst].data {
        InstData::Break { depth: out } => out == depth,
        InstData::Loop { body } | InstData::For { body, .. } => breaks(function, body, depth + 1),
        ref data => {
            let mut regions = data.regions().into_iter();
            regions.any(|inner| breaks(function, inner, depth))
        }
    })
}

/// A walk through one body, in the order of the text.
struct Walk<'c, 'm> {
    checker: &'c mut Checker<'m>,
    function: &'c Function,
    /// By value: whether it is defined where the walk is.
    live: Vec<bool>,
    /// How many loops the walk is inside of.
    loops: u32,
    /// Made for the first error.
    numbers: OnceCell<ValueNumbers>,
}

impl Walk<'_, '_> {
    fn report(&mut self, inst: Inst, message: impl Into<String>) {
        self.checker.report(self.function, Some(inst), message);
    }

    /// A value as the listing names it.
    fn name(&self, value: Value) -> String {
        let function = self.function;
        let numbers = self.numbers.get_or_init(|| ValueNumbers::of(function));
        numbers.text(value)
    }

    fn region(&mut self, region: Region) {
        let function = self.function;
        let insts = &function.regions[region].insts;
        for (position, &inst) in insts.iter().enumerate() {
            let data = &function.insts[inst].data;
            if data.is_terminator() && position + 1 < insts.len() {
                self.report(inst, "it ends its region, and instructions follow");
            }
            self.operands(inst);
            self.types(inst);
            self.control(inst);
            self.set_live(function.insts[inst].result, true);
        }
        for &inst in insts {
            self.set_live(function.insts[inst].result, false);
        }
    }

    fn set_live(&mut self, value: Option<Value>, live: bool) {
        if let Some(value) = value {
            self.live[value.index()] = live;
        }
    }

    fn operands(&mut self, inst: Inst) {
        let mut unknown = Vec::new();
        self.function.insts[inst].data.for_each_operand(|value| {
            if !self.live[value.index()] && !unknown.contains(&value) {
                unknown.push(value);
            }
        });
        for value in unknown {
            let name = self.name(value);
            let message = format!(
                "{name} is not defined here; a value is defined above, in this region or in one \
                 around it"
            );
            self.report(inst, message);
        }
    }

    fn types(&mut self, inst: Inst) {
        let function = self.function;
        let node = &function.insts[inst];
        let result = node.result.map_or(Type::UNIT, |v| function.type_of(v));
        if node.result.is_some()
            && let Some(wrong) = signature::value_type(self.checker, result)
        {
            self.report(inst, format!("the result {wrong}"));
            return;
        }
        if let InstData::For { index, .. } = node.data
            && let Some(wrong) = signature::value_type(self.checker, function.type_of(index))
        {
            self.report(inst, format!("the index {wrong}"));
            return;
        }
        if let Some(wrong) = wrong_flags(node) {
            self.report(inst, wrong.to_owned());
            return;
        }
        let rules = Rules::new(self.checker, function);
        let types = &self.checker.module.types;
        let message = match rules.check(&node.data, result) {
            Ok(given) if given == result => return,
            Ok(given) if node.result.is_none() => {
                format!(
                    "it gives a `{}`, and no value takes it",
                    types.display(given)
                )
            }
            Ok(Type::UNIT) => "it has a result and gives none".to_owned(),
            Ok(given) => {
                let (given, result) = (types.display(given), types.display(result));
                format!("it gives a `{given}`, and its result is a `{result}`")
            }
            Err(message) => message,
        };
        self.report(inst, message);
    }

    fn control(&mut self, inst: Inst) {
        match self.function.insts[inst].data {
            InstData::If {
                then_region,
                else_region,
                ..
            } => {
                self.region(then_region);
                if let Some(other) = else_region {
                    self.region(other);
                }
            }
            InstData::Loop { body } => self.repeated(body),
            InstData::For { index, body, .. } => {
                self.set_live(Some(index), true);
                self.repeated(body);
                self.set_live(Some(index), false);
            }
            InstData::Break { depth } | InstData::Continue { depth } if depth >= self.loops => {
                let (named, around) = (u64::from(depth) + 1, self.loops);
                let message = format!("it names loop {named} around it, and there are {around}");
                self.report(inst, message);
            }
            _ => {}
        }
    }

    fn repeated(&mut self, body: Region) {
        self.loops += 1;
        self.region(body);
        self.loops -= 1;
    }
}

/// What is wrong with the flags of an instruction.
fn wrong_flags(node: &InstNode) -> Option<&'static str> {
    if node.fast.has(FastMath::FLUSH) {
        return Some("numbers are flushed to zero in whole kernels, not in one operation");
    }
    (!node.fast.is_empty() && !node.data.takes_fast())
        .then_some("flags of floats stand on arithmetic and intrinsics alone")
}
