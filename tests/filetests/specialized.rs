//! Files of kind `specialize`: the kernel of the module, for arguments and const arguments of its settings.
//!
//! `; arg: slice<global, mut f32> align 16 noalias` is the type of an argument in the IR's notation, with
//! what is known of it (`align N`, `divisor N`, `noalias`, `one`, `wide`); there is one for each parameter.
//! `; const N: 4` is a const argument. Functions that the kernel calls are definitions of their own, as
//! users' are.

use std::sync::Arc;

use kiln::core::definition::{Body, Definition, Snapshot};
use kiln::core::ir::{self, Region};
use kiln::core::ir::{
    ArrayLen, FuncId, Function, InstData, Module, Type, TypeData, TypeForm, TypeTable,
};
use kiln::core::specialize::{ArgumentKind, ArgumentType, HostType, ParamSpec, bind, specialize};
use suite::Outcome;
use suite::files::File;

use super::gives;

pub(super) fn check(file: &File) -> Outcome {
    let module = file.module()?;
    let kernel = module.kernel().ok_or("there is no kernel")?;
    let (mut args, mut facts, mut consts) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in file.settings() {
        if name == "arg" {
            let (arg, known) = argument(value)?;
            args.push(arg);
            facts.push(known);
        } else if let Some(name) = name.strip_prefix("const ") {
            consts.push((name.to_owned(), value.parse()?));
        }
    }
    let definition = define(&module, kernel)?;
    let snapshot = Snapshot::of(&definition)?;
    let function = &module.functions[kernel];
    let given = match bind(function, &module, &args, &consts, &facts) {
        Err(error) => error.to_string(),
        Ok(bound) => match specialize(&snapshot, &bound) {
            Err(error) => error.to_string(),
            Ok(module) => match ir::verify(&module) {
                Err(errors) => errors.to_string(),
                Ok(()) => ir::print(&module, ir::PrintOptions { locations: false }),
            },
        },
    };
    gives::settle(file, &given)
}

/// A function of a module as a definition, with those that it calls.
fn define(module: &Module, id: FuncId) -> Result<Arc<Definition>, String> {
    let mut alone = module.clone();
    let mut callees = Vec::new();
    for (other, function) in alone.functions.iter_mut() {
        if other != id {
            let called = calls(&module.functions[id], other);
            declare(function);
            if called {
                callees.push((other, define(module, other)?));
            }
        }
    }
    Ok(Definition::new(Body::new(alone, id, callees)))
}

/// Leaves the signature of a function.
fn declare(function: &mut Function) {
    let mut declared = Function::new(function.name.clone(), function.kind, function.location);
    declared.is_declaration = true;
    declared.type_params = function.type_params.clone();
    declared.const_params = function.const_params.clone();
    for param in &function.params {
        let ty = function.type_of(param.value);
        declared.add_param(param.name.clone(), ty, param.location);
    }
    declared.result = function.result;
    *function = declared;
}

fn calls(function: &Function, callee: FuncId) -> bool {
    let mut found = false;
    function.for_each_inst(|_: Region, inst| {
        let data = &function.insts[inst].data;
        found |= matches!(data, InstData::Call { callee: called, .. } if *called == callee);
    });
    found
}

/// An argument's type, and what is known of it.
fn argument(text: &str) -> Result<(ArgumentType, ParamSpec), String> {
    let end = match text.rfind(['>', ']']) {
        Some(at) => at + 1,
        None => text.find(' ').unwrap_or(text.len()),
    };
    let (ty, known) = text.split_at(end);
    let module = format!("module type specialized\nkernel @type(%0 it: {ty}) {{\n}}\n");
    let module = ir::parse(&module, &|_| None).map_err(|e| format!("`{ty}`: {e}"))?;
    let kernel = module.functions.values().next().ok_or("no kernel")?;
    let types = &module.types;
    let (kind, value) = match *types.data(kernel.type_of(kernel.params[0].value)) {
        TypeData::Slice {
            element, mutable, ..
        } => (ArgumentKind::Slice { mutable }, element),
        TypeData::Pointer {
            pointee, mutable, ..
        } => (ArgumentKind::Pointer { mutable }, pointee),
        _ => (ArgumentKind::Value, kernel.type_of(kernel.params[0].value)),
    };
    let argument = ArgumentType {
        host: HostType(form(types, value)?),
        rust_name: types.display(value).leak(),
        kind,
        field: None,
    };
    Ok((argument, facts(known)?))
}

/// A type written out, for as long as the program runs.
fn form(types: &TypeTable, ty: Type) -> Result<&'static TypeForm, String> {
    let form = match *types.data(ty) {
        TypeData::Scalar(scalar) => TypeForm::scalar(scalar),
        TypeData::Vector { element, lanes } => TypeForm::vector(element, lanes),
        TypeData::Array {
            element,
            len: ArrayLen::Known(len),
        } => TypeForm::array(form(types, element)?, len),
        _ => return Err(format!("`{}` is no type of the host", types.display(ty))),
    };
    Ok(Box::leak(Box::new(form)))
}

fn facts(words: &str) -> Result<ParamSpec, String> {
    let mut facts = ParamSpec::default();
    let mut words = words.split_whitespace();
    while let Some(word) = words.next() {
        let mut number = || {
            let number = words.next().and_then(|word| word.parse().ok());
            number.ok_or_else(|| format!("`{word}` takes a number"))
        };
        match word {
            "align" => facts.align = number()?,
            "divisor" => facts.divisor = number()?,
            "noalias" => facts.noalias = true,
            "short" => facts.short = true,
            "one" => facts.equal_one = true,
            "wide" => facts.wide = true,
            _ => return Err(format!("`{word}` is nothing that can be known")),
        }
    }
    Ok(facts)
}
