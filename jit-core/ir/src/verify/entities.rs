//! Rules about entities: every index is one of its map, everything is placed once.
//!
//! What passes here can be walked and indexed without further care: regions form a tree of
//! bounded depth, and values, placed or not, name what exists.

use super::{Checker, MAX_INSTS, MAX_NESTING, MAX_PARAMS};
use crate::{
    ConstArg, Entity, Function, HiddenParam, Inst, InstData, InstNode, Location, Region, SharedVar,
    Type, Value, ValueDef, Var,
};

/// Checks one function.
pub(super) fn check(checker: &mut Checker<'_>, function: &Function) {
    let mut check = Entities { checker, function };
    check.signature();
    check.values();
    for (inst, node) in function.insts.iter() {
        if let Err(message) = check.inst(node) {
            check.report(Some(inst), message);
        }
    }
    let placed = check.tree();
    check.definitions(&placed);
}

struct Entities<'c, 'm> {
    checker: &'c mut Checker<'m>,
    function: &'c Function,
}

/// `Err` with what does not exist.
fn exists<E: Entity + std::fmt::Display>(found: bool, entity: E) -> Result<(), String> {
    if found {
        Ok(())
    } else {
        Err(format!("{entity} does not exist"))
    }
}

impl Entities<'_, '_> {
    fn report(&mut self, inst: Option<Inst>, message: impl Into<String>) {
        self.checker.report(self.function, inst, message);
    }

    /// A type of the module, whose type and const parameters are the function's.
    fn ty(&self, ty: Type) -> Result<(), String> {
        let Some(facts) = self.checker.types.get(ty.index()) else {
            return Err("a type is not of this module".to_owned());
        };
        let types = facts.type_params as usize <= self.function.type_params.len();
        let consts = facts.const_params as usize <= self.function.const_params.len();
        if types && consts {
            return Ok(());
        }
        let name = self.checker.module.types.display(ty);
        Err(format!(
            "`{name}` has a parameter that the function has not"
        ))
    }

    fn location(&self, at: Location) -> Result<(), String> {
        let known = !at.is_known() || self.checker.module.files.get(at.file).is_some();
        exists(known, at.file)?;
        match at.inlined {
            Some(call) => exists(self.checker.module.inlined.get(call).is_some(), call),
            None => Ok(()),
        }
    }

    fn value(&self, value: Value) -> Result<(), String> {
        match self.function.values.get(value) {
            Some(_) => Ok(()),
            None => Err(format!("a value does not exist: number {}", value.index())),
        }
    }

    fn var(&self, var: Var) -> Result<(), String> {
        exists(self.function.vars.get(var).is_some(), var)
    }

    fn shared(&self, var: SharedVar) -> Result<(), String> {
        exists(self.function.shared.get(var).is_some(), var)
    }

    fn hidden(&self, id: HiddenParam) -> Result<(), String> {
        exists(self.checker.module.hidden.get(id).is_some(), id)
    }

    fn signature(&mut self) {
        let function = self.function;
        let mut results = vec![self.ty(function.result), self.location(function.location)];
        results.extend(function.const_params.iter().map(|p| self.ty(p.ty)));
        results.extend(function.vars.values().map(|v| self.ty(v.ty)));
        results.extend(function.shared.values().map(|s| self.ty(s.ty)));
        for param in &function.params {
            results.push(self.value(param.value));
            results.push(self.location(param.location));
            results.push(param.hidden.map_or(Ok(()), |id| self.hidden(id)));
        }
        for assertion in &function.assertions {
            results.push(self.value(assertion.condition));
            results.push(self.location(assertion.location));
        }
        if function.params.len() > MAX_PARAMS {
            results.push(Err(format!(
                "it has more than {MAX_PARAMS} parameters; use a struct"
            )));
        }
        if function.insts.len() > MAX_INSTS {
            results.push(Err(format!(
                "it has more than {MAX_INSTS} instructions; split it"
            )));
        }
        for message in results.into_iter().filter_map(Result::err) {
            self.report(None, message);
        }
    }

    fn values(&mut self) {
        let function = self.function;
        for data in function.values.values() {
            let def = match data.def {
                ValueDef::Inst(inst) | ValueDef::Index(inst) => {
                    exists(function.insts.get(inst).is_some(), inst)
                }
                ValueDef::Param(position) if (position as usize) < function.params.len() => Ok(()),
                ValueDef::Param(position) => Err(format!("there is no parameter {position}")),
            };
            if let Err(message) = self.ty(data.ty).and(def) {
                self.report(None, message);
            }
        }
    }

    fn inst(&self, node: &InstNode) -> Result<(), String> {
        self.location(node.location)?;
        node.result.map_or(Ok(()), |value| self.value(value))?;
        let mut operands = Ok(());
        node.data.for_each_operand(|value| {
            if operands.is_ok() {
                operands = self.value(value);
            }
        });
        operands?;
        for region in node.data.regions() {
            exists(self.function.regions.get(region).is_some(), region)?;
        }
        self.named(&node.data)
    }

    /// What an instruction names besides operands and regions.
    fn named(&self, data: &InstData) -> Result<(), String> {
        let module = self.checker.module;
        let const_params = self.function.const_params.len();
        match data {
            InstData::ConstParam(param) => exists(param.index() < const_params, *param),
            InstData::VarGet(var) | InstData::VarSet(var, _) => self.var(*var),
            InstData::SharedAddr(var) => self.shared(*var),
            InstData::GlobalAddr(id) => exists(module.globals.get(*id).is_some(), *id),
            InstData::Hidden(id) => self.hidden(*id),
            InstData::Intrinsic { id, .. } => exists(module.intrinsics.get(*id).is_some(), *id),
            InstData::For { index, .. } => self.value(*index),
            InstData::Call {
                callee,
                type_args,
                const_args,
                ..
            } => {
                exists(module.functions.get(*callee).is_some(), *callee)?;
                for &ty in type_args {
                    self.ty(ty)?;
                }
                const_args.iter().try_for_each(|arg| match arg {
                    ConstArg::Known(_) => Ok(()),
                    ConstArg::Param(param) => exists(param.index() < const_params, *param),
                })
            }
            _ => Ok(()),
        }
    }

    /// Regions form a tree, and hold each instruction at most once. Without recursion, because
    /// regions may hold each other until this has passed. Which instructions are placed.
    fn tree(&mut self) -> Vec<bool> {
        let function = self.function;
        let mut placed = vec![false; function.insts.len()];
        let mut held = vec![false; function.regions.len()];
        let mut pending: Vec<(Region, Option<Inst>, usize)> = vec![(function.body, None, 0)];
        while let Some((region, holder, depth)) = pending.pop() {
            let Some(data) = function.regions.get(region) else {
                // Of an instruction's regions this is reported already.
                if holder.is_none() {
                    self.report(None, "the region of the body does not exist");
                }
                continue;
            };
            if std::mem::replace(&mut held[region.index()], true) {
                self.report(holder, format!("{region} is held twice"));
                continue;
            }
            if depth > MAX_NESTING {
                let message =
                    format!("regions nest more than {MAX_NESTING} deep; split the function");
                self.report(holder, message);
                continue;
            }
            for &inst in &data.insts {
                let Some(node) = function.insts.get(inst) else {
                    self.report(holder, format!("{inst} does not exist"));
                    continue;
                };
                if std::mem::replace(&mut placed[inst.index()], true) {
                    self.report(Some(inst), "the instruction is placed twice");
                    continue;
                }
                let inner = node.data.regions().into_iter();
                pending.extend(inner.map(|region| (region, Some(inst), depth + 1)));
            }
        }
        placed
    }

    /// A value of the text is defined by what its `def` names, and by nothing else.
    fn definitions(&mut self, placed: &[bool]) {
        let function = self.function;
        let def = |value: Value| function.values.get(value).map(|data| data.def);
        for (position, param) in function.params.iter().enumerate() {
            let wanted = ValueDef::Param(position as u32);
            if def(param.value).is_some_and(|def| def != wanted) {
                let message = format!("parameter `{}` is defined elsewhere, too", param.name);
                self.report(None, message);
            }
        }
        let insts = function.insts.iter();
        for (inst, node) in insts.filter(|(inst, _)| placed[inst.index()]) {
            let result = node.result.and_then(def);
            if result.is_some_and(|def| def != ValueDef::Inst(inst)) {
                self.report(Some(inst), "the result is defined elsewhere, too");
            }
            if let InstData::For { index, .. } = node.data
                && def(index).is_some_and(|def| def != ValueDef::Index(inst))
            {
                self.report(Some(inst), "the index is defined elsewhere, too");
            }
        }
    }
}
