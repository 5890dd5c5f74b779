//! What a kernel's hooks keep: the parameters that its arguments were bound to.
//!
//! A launch writes its arguments as binding found them: each with the bytes of its type, a slice as an
//! address and a length. Nothing tells the launch what a hook has made of the parameters, so a hook that
//! changed their types would have the kernel read other values than the caller passed, and write memory
//! that the caller did not lend. What a hook may change is what the compiler's own hooks do: in which
//! memory an address is said to lie, and whether an aggregate is passed by reference or by value.

use crate::definition::row_digest;
use crate::hook::{Hook, HookErrorKind, HookPoint};
use crate::ir::{
    AddressSpace, FuncId, HiddenData, HiddenParam, HiddenSource, Inst, IntrinsicDef, Module,
    ParamData, ParamFacts, Passing, Phase, Type, TypeData, TypeTable,
};

/// A parameter as the launch sees it.
struct Bound {
    /// The parameter's type, addresses as generic ones; of an aggregate, however it is passed, the aggregate's.
    ty: Type,
    facts: ParamFacts,
    hidden: Option<HiddenParam>,
}

/// For the cache key, what a row is that a hook has put in.
pub(crate) fn row_text(row: &IntrinsicDef) -> String {
    let content = row_digest(row);
    format!("  puts in {} v{} {content}\n", row.name, row.version)
}

/// The state of a module before a hook.
pub(crate) struct Contract {
    phase: Phase,
    /// The types of `params`.
    types: TypeTable,
    params: Vec<Bound>,
    hidden: Vec<HiddenData>,
    /// The rows of intrinsics that hooks have put in.
    rows: Vec<&'static IntrinsicDef>,
}

impl Contract {
    /// What is to be kept of a verified module.
    pub(crate) fn of(module: &Module) -> Contract {
        let mut types = TypeTable::new();
        let params = kernel_params(module);
        let bound = |(param, ty): (&ParamData, Type)| Bound {
            ty: passed(module, param, ty, &mut types),
            facts: param.facts,
            hidden: param.hidden,
        };
        Contract {
            phase: module.phase,
            params: params.map(bound).collect(),
            hidden: module.hidden.values().cloned().collect(),
            types,
            rows: Vec::new(),
        }
    }

    /// What is to be kept of a module that the compiler has changed since hooks did.
    pub(crate) fn of_changed(self, module: &Module) -> Contract {
        Contract {
            rows: self.rows,
            ..Contract::of(module)
        }
    }

    /// Notes the rows that a hook has put in: the code is what they say, and no key of the hook's tells their version.
    pub(crate) fn note_rows(&mut self, before: &Before, module: &Module) {
        for &row in module.intrinsics.values() {
            let mut known = before.rows.iter().chain(&self.rows);
            if !known.any(|known| known.is_same(row)) {
                self.rows.push(row);
            }
        }
    }

    /// For the cache key, what the rows are that hooks have put in: a line each, by name.
    pub(crate) fn rows_text(&self) -> String {
        let mut lines: Vec<String> = self.rows.iter().map(|row| row_text(row)).collect();
        lines.sort();
        lines.concat()
    }

    /// Whether a hook has left a verified module that keeps it. What the hook has declared is kept from
    /// now on.
    pub(crate) fn check(&mut self, hook: &Hook, module: &Module) -> Result<(), HookErrorKind> {
        self.check_phase_and_params(module)?;
        self.check_hidden(hook, module)
            .map_err(HookErrorKind::WrongHidden)?;
        self.hidden = module.hidden.values().cloned().collect();
        Ok(())
    }

    fn check_hidden(&self, hook: &Hook, module: &Module) -> Result<(), String> {
        let mut now = module.hidden.values();
        for before in &self.hidden {
            if now.next() != Some(before) {
                return Err(format!(
                    "`{}` of {} is not what it was; declare others, by `Module::add_hidden`",
                    before.name, before.source
                ));
            }
        }
        for HiddenData { name, source, .. } in now {
            if let HiddenSource::Global(_) = source {
                continue;
            }
            if !source.is_hook(hook.name()) {
                return Err(format!(
                    "`{name}` is declared for {source} to give; declare it by the hook's own name, `{}`",
                    hook.name()
                ));
            }
            if !hook
                .points()
                .any(|point| point == HookPoint::HiddenArguments)
            {
                return Err(format!(
                    "nothing gives `{name}`; give the hook a function by `Hook::hidden_arguments`"
                ));
            }
            if module.phase == Phase::Legal {
                return Err(format!(
                    "`{name}` is declared in a legal module, where nothing can read it; declare it in \
                     `rewrite_ir`"
                ));
            }
        }
        Ok(())
    }

    fn check_phase_and_params(&mut self, module: &Module) -> Result<(), HookErrorKind> {
        if module.phase != self.phase {
            return Err(HookErrorKind::ChangedPhase {
                from: self.phase.name(),
                to: module.phase.name(),
            });
        }
        let count = kernel_params(module).count();
        if count != self.params.len() {
            return Err(HookErrorKind::ChangedParams(format!(
                "it has {count} now, and {} arguments are passed",
                self.params.len()
            )));
        }
        for (i, (param, ty)) in kernel_params(module).enumerate() {
            let now = passed(module, param, ty, &mut self.types);
            self.check_param(i, param, now)
                .map_err(HookErrorKind::ChangedParams)?;
        }
        Ok(())
    }

    fn check_param(&self, position: usize, param: &ParamData, now: Type) -> Result<(), String> {
        let Bound { ty, facts, hidden } = &self.params[position];
        let name = &param.name;
        if param.hidden != *hidden {
            return Err(format!(
                "parameter {} (`{name}`) is another hidden value now, or none any more",
                position + 1
            ));
        }
        if now != *ty && !self.only_reads(*ty, now) {
            let (before, now) = (describe(&self.types, *ty), describe(&self.types, now));
            return Err(format!(
                "parameter {} (`{name}`) is a `{now}` now, and a `{before}` is passed",
                position + 1
            ));
        }
        let known = |n: u32| n.max(1);
        let claimed = [
            (
                "align",
                known(facts.align).is_multiple_of(known(param.facts.align)),
            ),
            (
                "divisor",
                known(facts.divisor).is_multiple_of(known(param.facts.divisor)),
            ),
            ("noalias", facts.noalias || !param.facts.noalias),
            ("short", facts.short || !param.facts.short),
        ];
        match claimed.into_iter().find(|(_, holds)| !holds) {
            None => Ok(()),
            Some((fact, _)) => Err(format!(
                "the fact `{fact}` of parameter {} (`{name}`) says more now than is known of the \
                 argument",
                position + 1
            )),
        }
    }

    /// Whether `now` is `bound` made read-only.
    fn only_reads(&self, bound: Type, now: Type) -> bool {
        match (self.types.data(bound), self.types.data(now)) {
            (
                TypeData::Pointer { pointee: a, .. },
                TypeData::Pointer {
                    pointee: b,
                    mutable: false,
                    ..
                },
            ) => a == b,
            (
                TypeData::Slice {
                    element: a,
                    wide: of_a,
                    ..
                },
                TypeData::Slice {
                    element: b,
                    mutable: false,
                    wide: of_b,
                    ..
                },
            ) => (a, of_a) == (b, of_b),
            _ => false,
        }
    }
}

/// The kernel's parameters with their types.
fn kernel_params(module: &Module) -> impl Iterator<Item = (&ParamData, Type)> {
    let kernel = module.kernel().map(|id| &module.functions[id]);
    kernel.into_iter().flat_map(|kernel| {
        let params = kernel.params.iter();
        params.map(|param| (param, kernel.type_of(param.value)))
    })
}

/// The type of what is passed for a parameter, in `types`.
fn passed(module: &Module, param: &ParamData, ty: Type, types: &mut TypeTable) -> Type {
    let value = match (param.passing, module.types.as_pointer(ty)) {
        (Passing::ByReference | Passing::ByValue, Some((value, ..))) => value,
        _ => ty,
    };
    let ty = types.import(&module.types, value);
    types.in_space(ty, AddressSpace::Generic).unwrap_or(ty)
}

/// A type as text, structs with their fields: two of one name are told apart.
fn describe(types: &TypeTable, ty: Type) -> String {
    let mut text = types.display(ty);
    let inner = match (types.address(ty), types.as_array(ty)) {
        (Some(address), _) => address.pointee,
        (None, Some((element, _))) => element,
        (None, None) => ty,
    };
    if let Some(data) = types.as_struct(inner) {
        let fields = data.fields.iter();
        let fields: Vec<String> = fields
            .map(|(name, ty)| format!("{name}: {}", types.display(*ty)))
            .collect();
        if data.align > 1 {
            text += &format!(" align({})", data.align);
        }
        text += &format!(" {{{}}}", fields.join(", "));
    }
    text
}

/// A module before a hook's function: its accesses that are checked, and its rows of intrinsics.
pub(crate) struct Before {
    checked: Vec<(FuncId, Inst)>,
    rows: Vec<&'static IntrinsicDef>,
}

impl Before {
    /// What is there of a module.
    pub(crate) fn of(module: &Module) -> Before {
        let mut list = Vec::new();
        for (id, function) in module.functions.iter() {
            let checked = |inst: &Inst| function.insts[*inst].data.can_fault();
            list.extend(function.insts.keys().filter(checked).map(|inst| (id, inst)));
        }
        Before {
            checked: list,
            rows: module.intrinsics.values().copied().collect(),
        }
    }

    /// Whether all checked accesses that are still there are checked.
    pub(crate) fn keeps_checks(&self, module: &Module) -> Result<(), HookErrorKind> {
        let lost = self.checked.iter().find_map(|&(id, inst)| {
            let node = module.functions.get(id)?.insts.get(inst)?;
            let can_be = node.data.access().is_some() || node.data.assumption().is_some();
            let unchecked = can_be && !node.data.can_fault();
            unchecked.then_some(node.location)
        });
        match lost {
            None => Ok(()),
            Some(at) => Err(HookErrorKind::RemovedCheck(module.display_location(at))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel_of(param: &str) -> Module {
        let text = format!("module facts specialized\n\nkernel @facts({param}) {{\n}}\n");
        crate::ir::parse(&text, &|_| None).expect(param)
    }

    /// Each fact of a parameter may be forgotten, and none may be claimed that no argument was asked for.
    #[test]
    fn a_fact_may_be_forgotten_and_not_claimed() {
        let slice = "%0 x: slice<global, mut f32>";
        let cases = [
            ("align", slice, "align(64)"),
            ("divisor", "%0 x: u32", "divisor(16)"),
            ("noalias", slice, "noalias"),
            ("short", slice, "short"),
        ];
        for (fact, param, known) in cases {
            let [without, with] = [param.to_owned(), format!("{param} {known}")];
            let [without, with] = [without, with].map(|param| kernel_of(&param));
            let after = |before, now| Contract::of(before).check_phase_and_params(now);
            assert!(after(&with, &with).is_ok(), "{fact}");
            assert!(after(&with, &without).is_ok(), "{fact}");
            let claimed = match after(&without, &with) {
                Err(HookErrorKind::ChangedParams(claimed)) => claimed,
                other => panic!("{fact}: {other:?}"),
            };
            assert_eq!(
                claimed,
                format!(
                    "the fact `{fact}` of parameter 1 (`x`) says more now than is known of the argument"
                )
            );
        }
    }
}
