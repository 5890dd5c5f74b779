//! Rules about signatures and variables, and what a phase allows of them.

use std::collections::HashSet;

use super::arithmetic::wrong_factor;
use super::{Checker, MAX_VALUE_SCALARS};
use crate::{
    AddressSpace, FastMath, Function, FunctionKind, Inline, ParamData, Passing, Phase, Type,
    TypeTable, Unroll,
};

/// How few and how many registers a thread of a GPU can be limited to.
const MIN_REGISTERS: u32 = 16;
const MAX_REGISTERS: u32 = 255;

/// Checks the signature and the variables of a function whose entities exist.
pub(super) fn check(checker: &mut Checker<'_>, function: &Function) {
    let mut messages = Vec::new();
    let check = Signature {
        checker,
        types: &checker.module.types,
        phase: checker.module.phase,
        function,
    };
    messages.extend(check.kind());
    messages.extend(check.generics());
    for (position, param) in function.params.iter().enumerate() {
        let wrong = check.param(param);
        let wrong = wrong.or_else(|| check.hidden(param, &function.params[..position]));
        messages.extend(wrong.map(|wrong| format!("parameter `{}` {wrong}", param.name)));
    }
    for var in function.vars.values() {
        let wrong = check.value_type(var.ty);
        messages.extend(wrong.map(|wrong| format!("variable `{}` {wrong}", var.name)));
    }
    for var in function.shared.values() {
        let wrong = check.shared(var.ty, var.align);
        messages.extend(wrong.map(|wrong| format!("shared variable `{}` {wrong}", var.name)));
    }
    for message in messages {
        checker.report(function, None, message);
    }
}

/// What is wrong with `ty` as the type of a value, as the rest of a sentence.
pub(super) fn value_type(checker: &Checker<'_>, ty: Type) -> Option<String> {
    use super::table::TypeFacts;
    let types = &checker.module.types;
    let facts: TypeFacts = checker.types[ty.index()];
    if ty == Type::UNIT {
        return Some("has no type that a value can have".to_owned());
    }
    if facts.scalars > MAX_VALUE_SCALARS {
        return Some(format!(
            "of type `{}` consists of more than {MAX_VALUE_SCALARS} numbers; keep it in memory and \
             go through a pointer",
            types.display(ty)
        ));
    }
    let open = checker.module.phase >= Phase::Specialized && facts.is_generic();
    open.then(|| {
        format!(
            "of type `{}` still depends on a parameter after specialization",
            types.display(ty)
        )
    })
}

struct Signature<'c, 'm> {
    checker: &'c Checker<'m>,
    types: &'c TypeTable,
    phase: Phase,
    function: &'c Function,
}

impl Signature<'_, '_> {
    fn value_type(&self, ty: Type) -> Option<String> {
        value_type(self.checker, ty)
    }

    fn is_kernel(&self) -> bool {
        self.function.kind == FunctionKind::Kernel
    }

    /// What a kernel, a device function and a declaration may be.
    fn kind(&self) -> Vec<String> {
        let function = self.function;
        let mut messages = Vec::new();
        if self.is_kernel() && function.result != Type::UNIT {
            messages.push("a kernel returns nothing; write results to a slice".to_owned());
        } else if function.result != Type::UNIT {
            let wrong = self.value_type(function.result);
            messages.extend(wrong.map(|wrong| format!("the result {wrong}")));
        }
        if function.is_declaration && self.is_kernel() {
            messages.push("a kernel has a body; only device functions are declared".to_owned());
        } else if function.is_declaration && self.phase >= Phase::Specialized {
            messages.push("the function has no body after specialization".to_owned());
        }
        if self.is_kernel() && function.inline != Inline::Auto {
            messages.push("a kernel is launched, not called, and so not inlined".to_owned());
        }
        messages.extend(self.choices());
        match function.launch_bounds {
            Some(_) if !self.is_kernel() => {
                messages.push("only kernels have launch bounds".to_owned());
            }
            Some(bounds) if !(1..=1024).contains(&bounds.max_threads) => {
                messages.push(format!(
                    "launch bounds are 1 to 1024 threads, not {}",
                    bounds.max_threads
                ));
            }
            _ => {}
        }
        messages
    }

    fn choices(&self) -> Option<String> {
        let choices = self.function.choices;
        let of_kernels = choices.bounds.is_some()
            || choices.max_registers != 0
            || choices.unroll != Unroll::Auto
            || choices.inline_threshold.is_some();
        if of_kernels && !self.is_kernel() {
            return Some(
                "only kernels say what bounds, registers and limits are; it holds for what they call"
                    .to_owned(),
            );
        }
        if choices.fast.has(FastMath::FLUSH) && !self.is_kernel() {
            return Some(
                "only a kernel flushes numbers to zero, with all that it calls".to_owned(),
            );
        }
        if let Some(message) = wrong_factor(choices.unroll) {
            return Some(message);
        }
        let registers = choices.max_registers;
        let wrong = !(registers == 0 || (MIN_REGISTERS..=MAX_REGISTERS).contains(&registers));
        wrong.then(|| {
            format!("a thread has {MIN_REGISTERS} to {MAX_REGISTERS} registers, not {registers}")
        })
    }

    fn generics(&self) -> Vec<String> {
        let function = self.function;
        let mut messages = Vec::new();
        let type_names = function.type_params.iter().map(|p| &p.name);
        let const_names = function.const_params.iter().map(|p| &p.name);
        let mut known = HashSet::new();
        for name in type_names.chain(const_names) {
            if self.phase >= Phase::Specialized {
                messages.push(format!("`{name}` is left open after specialization"));
            }
            if !known.insert(name) {
                messages.push(format!("there are two parameters named `{name}`"));
            }
        }
        for param in &function.const_params {
            if !param.ty.is_int() && param.ty != Type::BOOL {
                let ty = self.types.display(param.ty);
                let name = &param.name;
                messages.push(format!(
                    "const parameter `{name}` is an integer or a bool, not `{ty}`"
                ));
            }
        }
        messages
    }

    /// What is wrong with a parameter, as the rest of a sentence.
    fn param(&self, param: &ParamData) -> Option<String> {
        let ty = self.function.type_of(param.value);
        self.value_type(ty)
            .or_else(|| self.passing(param.passing, ty))
            .or_else(|| self.facts(param, ty))
    }

    /// What is wrong with a parameter as a hidden value, or as none, behind others.
    fn hidden(&self, param: &ParamData, before: &[ParamData]) -> Option<String> {
        let Some(id) = param.hidden else {
            let behind = before.iter().any(|other| other.hidden.is_some());
            return behind.then(|| "comes after one that is hidden, and is not".to_owned());
        };
        let (given, ty) = (
            &self.checker.module.hidden[id],
            self.function.type_of(param.value),
        );
        let passed = match (param.passing, self.types.as_pointer(ty)) {
            (Passing::ByReference | Passing::ByValue, Some((value, ..))) => value,
            _ => ty,
        };
        if self.phase != Phase::Legal {
            return Some("is hidden, and the module is not legal; read it by `hidden`".to_owned());
        }
        if before.iter().any(|other| other.hidden == Some(id)) {
            return Some(format!(
                "is the hidden value `{}`, as another is",
                given.name
            ));
        }
        (passed != given.ty).then(|| {
            let (ty, given) = (self.types.display(passed), self.types.display(given.ty));
            format!("is a `{ty}`, and the hidden value that it is a `{given}`")
        })
    }

    fn passing(&self, passing: Passing, ty: Type) -> Option<String> {
        let name = self.types.display(ty);
        let pointer = self.types.as_pointer(ty);
        let pointer = pointer.map(|(_, space, mutable)| (space, mutable));
        let space = self.space(ty);
        if !self.is_kernel() {
            let direct = passing == Passing::Direct;
            return (!direct).then(|| "is not passed directly, and this is no kernel".to_owned());
        }
        let from_host = matches!(
            space,
            None | Some(AddressSpace::Generic | AddressSpace::Global | AddressSpace::Constant)
        );
        match passing {
            Passing::Direct if self.phase == Phase::Legal && self.types.is_aggregate(ty) => {
                Some("is an aggregate passed directly, after ABI lowering".to_owned())
            }
            Passing::Direct if !from_host => Some(format!(
                "of type `{name}` is an address that the host does not have; take generic or \
                 global memory"
            )),
            Passing::Direct => None,
            Passing::ByReference => {
                (!from_host || !matches!(pointer, Some((_, false)))).then(|| {
                    format!(
                        "is passed by reference and is no read-only pointer to it, but `{name}`"
                    )
                })
            }
            Passing::ByValue => (pointer != Some((AddressSpace::Param, false))).then(|| {
                format!("is passed by value and is no pointer into parameter memory, but `{name}`")
            }),
        }
    }

    fn space(&self, ty: Type) -> Option<AddressSpace> {
        self.types.address(ty).map(|address| address.space)
    }

    fn facts(&self, param: &ParamData, ty: Type) -> Option<String> {
        let facts = param.facts;
        let is_address = self.space(ty).is_some();
        if facts.align > 1 && !facts.align.is_power_of_two() {
            return Some(format!("is aligned to {}, no power of two", facts.align));
        }
        if (facts.align > 1 || facts.noalias) && !is_address {
            return Some("has the facts of an address and is none".to_owned());
        }
        if facts.short && !matches!(self.types.as_slice(ty), Some((_, false))) {
            return Some("is short and is no slice with a length of 32 bits".to_owned());
        }
        (facts.divisor > 1 && !ty.is_int()).then(|| "has a divisor and is no integer".to_owned())
    }

    fn shared(&self, ty: Type, align: u32) -> Option<String> {
        // Its size is limited by the device, not by what a value can be.
        if ty == Type::UNIT || self.phase >= Phase::Specialized && self.open(ty) {
            return self.value_type(ty);
        }
        let needed = self.types.layout(ty).map_or(1, |layout| layout.align);
        let fits = align.is_power_of_two() && u64::from(align) >= needed && align <= 4096;
        (!fits).then(|| {
            format!("is aligned to {align}; a power of two from {needed} to 4096 is needed")
        })
    }

    fn open(&self, ty: Type) -> bool {
        self.checker.types[ty.index()].is_generic()
    }
}
