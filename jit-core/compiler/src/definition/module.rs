//! Definitions of the functions of a module, such as one that was read from text.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Body, Definition};
use crate::error::Error;
use crate::ir::{FuncId, Module, ParseError, Passing, Phase, debug_as_text, error_text};

/// A module that no kernel can be made of.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The text is not of the form.
    #[error("{}", error_text!("{file}:{error}"))]
    Text {
        /// The file that was named.
        file: String,
        /// What is wrong, and where.
        error: ParseError,
    },
    /// No function is a kernel.
    #[error("{}", error_text!(
        "the module `{module}` has no kernel: write `kernel` in place of `device` before the function \
         that is to be launched"
    ))]
    NoKernel {
        /// The module.
        module: String,
    },
    /// A module that has been through the compiler.
    #[error("{}", error_text!(
        "the module `{module}` is in the phase `legal`, which the compiler brings modules to: give the one \
         that it was made from, in the phase `generic` or `specialized`"
    ))]
    Legal {
        /// The module.
        module: String,
    },
    /// A function that is called has no body.
    #[error("{}", error_text!(
        "`{function}` ({location}) is declared and has no body: write it in the module `{module}`"
    ))]
    Declaration {
        /// The module.
        module: String,
        /// The function.
        function: String,
        /// Where the function is declared.
        location: String,
    },
    /// A parameter of the kernel says how it is passed.
    #[error("{}", error_text!(
        "parameter `{param}` of `{kernel}` ({location}) says how it is passed, which is for the compiler to \
         decide: make it a value of the type that it points to"
    ))]
    Passing {
        /// The kernel.
        kernel: String,
        /// The parameter.
        param: String,
        /// Where the kernel is declared.
        location: String,
    },
}

debug_as_text!(ModuleError);

impl Body {
    /// The body of the kernel of a verified module, whose callees are definitions of their own.
    pub(crate) fn of_kernel(module: &Module) -> Result<Body, Error> {
        let name = || module.name.clone();
        if module.phase == Phase::Legal {
            return Err(ModuleError::Legal { module: name() }.into());
        }
        let Some(kernel) = module.kernel() else {
            return Err(ModuleError::NoKernel { module: name() }.into());
        };
        let function = &module.functions[kernel];
        let mut params = function.params.iter();
        if let Some(param) = params.find(|param| param.passing != Passing::Direct) {
            let error = ModuleError::Passing {
                kernel: function.name.clone(),
                param: param.name.clone(),
                location: module.display_location(param.location),
            };
            return Err(error.into());
        }
        let circle = Error::Internal("a function of a verified module calls itself");
        let order = callees_first(module, kernel).ok_or(circle)?;
        let mut functions = order.iter().map(|&id| &module.functions[id]);
        if let Some(function) = functions.find(|function| function.is_declaration) {
            let error = ModuleError::Declaration {
                module: name(),
                function: function.name.clone(),
                location: module.display_location(function.location),
            };
            return Err(error.into());
        }
        Ok(last_of(module, &order).ok_or(ModuleError::NoKernel { module: name() })?)
    }
}

impl Definition {
    /// The first function of a module. `None`: it has none, or one that calls itself, or what is not there.
    pub(crate) fn of_library(library: &Module) -> Option<Arc<Self>> {
        let first = library.functions.keys().next()?;
        let order = callees_first(library, first)?;
        Some(Self::new(last_of(library, &order)?))
    }
}

/// The functions that a function reaches, each behind all that it calls; `None` if one calls itself, or what is
/// not there. A list, not recursion: a chain of calls has any length.
fn callees_first(module: &Module, root: FuncId) -> Option<Vec<FuncId>> {
    let mut ordered = Vec::new();
    let mut done = HashSet::new();
    // Of each function that was met, the callees that are still to be visited.
    let mut pending = HashMap::from([(root, callees(module, root)?)]);
    let mut path = vec![root];
    while let Some(&at) = path.last() {
        match pending.get_mut(&at)?.pop() {
            None => {
                ordered.push(at);
                done.insert(at);
                path.pop();
            }
            Some(next) if done.contains(&next) => {}
            Some(next) if pending.contains_key(&next) => return None,
            Some(next) => {
                pending.insert(next, callees(module, next)?);
                path.push(next);
            }
        }
    }
    Some(ordered)
}

/// Whom a function calls, last call first.
fn callees(module: &Module, id: FuncId) -> Option<Vec<FuncId>> {
    let function = module.functions.get(id)?;
    let mut list = Vec::new();
    function.for_each_inst(|_, inst| list.extend(function.insts[inst].data.callee()));
    list.reverse();
    Some(list)
}

/// The body of the last of some functions, each behind all that it calls, which become definitions.
fn last_of(module: &Module, order: &[FuncId]) -> Option<Body> {
    let (&last, callees) = order.split_last()?;
    let mut made = HashMap::new();
    for &id in callees {
        let body = separate(module, id, &made);
        made.insert(id, Definition::new(body));
    }
    Some(separate(module, last, &made))
}

/// One function of a module, in a module of its own with declarations of those that it calls.
fn separate(module: &Module, id: FuncId, made: &HashMap<FuncId, Arc<Definition>>) -> Body {
    let mut function = module.functions[id].clone();
    let mut own = Module::new(&function.name);
    own.types = module.types.clone();
    own.files = module.files.clone();
    own.inlined = module.inlined.clone();
    own.intrinsics = module.intrinsics.clone();
    own.globals = module.globals.clone();
    own.hidden = module.hidden.clone();
    let mut declared = HashMap::new();
    let mut definitions = Vec::new();
    for (_, node) in function.insts.iter_mut() {
        let Some(callee) = node.data.callee_mut() else {
            continue;
        };
        // Others are of instructions that are in no region.
        let Some(definition) = made.get(callee) else {
            continue;
        };
        *callee = *declared.entry(*callee).or_insert_with(|| {
            let declaration = module.functions[*callee].declaration();
            let declaration = own.functions.push(declaration);
            definitions.push((declaration, definition.clone()));
            declaration
        });
    }
    let function = own.functions.push(function);
    Body::new(own, function, definitions)
}
