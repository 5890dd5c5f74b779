//! Signatures across modules: when two functions have the same one, and how one is shown.
//!
//! Types are entities of a module, so signatures of different modules are compared by their text,
//! in which every struct that occurs is spelled out. Names of parameters are shown but not
//! compared: callers pass by position.

use std::fmt::Write;

use super::Body;
use crate::ir::{
    Function, FunctionKind, Module, StructId, Type, TypeBound, TypeData, TypeTable, debug_as_text,
    error_text,
};

/// A redefinition that callers could not accept.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!(
    "`{name}` cannot be redefined with another signature, because callers were built against it\n  \
     it is:      {current}\n  defined at: {current_location}\n  \
     it becomes: {new}\n  defined at: {new_location}\n\
     keep the signature, or make a new definition and rebuild the callers with it"
))]
pub struct SignatureChanged {
    /// The definition.
    pub name: String,
    /// The signature of the definition so far.
    pub current: String,
    /// Where the current body was defined.
    pub current_location: String,
    /// The signature of the body that was refused.
    pub new: String,
    /// Where the body that was refused was defined.
    pub new_location: String,
}

debug_as_text!(SignatureChanged);

/// Whether `new` may replace `current`.
pub(super) fn check_redefinition(
    name: &str,
    current: &Body,
    new: &Body,
) -> Result<(), SignatureChanged> {
    let (old, young) = (current.function(), new.function());
    let called = old.kind == FunctionKind::Device;
    let same = old.kind == young.kind
        && (!called || same_signature((&current.module, old), (&new.module, young)));
    if same {
        return Ok(());
    }
    Err(SignatureChanged {
        name: name.to_owned(),
        current: display_signature(&current.module, old),
        current_location: current.module.display_location(old.location),
        new: display_signature(&new.module, young),
        new_location: new.module.display_location(young.location),
    })
}

/// Whether a call built against one of the functions can go to the other.
pub(crate) fn same_signature(a: (&Module, &Function), b: (&Module, &Function)) -> bool {
    Writer::write(a.0, a.1, false) == Writer::write(b.0, b.1, false)
}

/// A signature as text: `fn dot<T: float, N: u32>(a: slice<global, $0>) -> $0`, followed by the
/// structs that occur.
pub(crate) fn display_signature(module: &Module, function: &Function) -> String {
    Writer::write(module, function, true)
}

struct Writer<'a> {
    types: &'a TypeTable,
    structs: Vec<StructId>,
    text: String,
}

impl<'a> Writer<'a> {
    fn write(module: &'a Module, function: &Function, names: bool) -> String {
        let mut writer = Writer {
            types: &module.types,
            structs: Vec::new(),
            text: String::new(),
        };
        writer.head(function, names);
        let params = function.params.iter().map(|param| {
            let name = if names { param.name.as_str() } else { "_" };
            (name, function.type_of(param.value))
        });
        writer.list('(', params, ')');
        if function.result != Type::UNIT {
            writer.text.push_str(" -> ");
            writer.ty(function.result);
        }
        let mut next = 0;
        while let Some(&id) = writer.structs.get(next) {
            let data = writer.types.struct_data(id);
            let _ = write!(writer.text, ", struct @{} ", data.name);
            if data.align > 1 {
                let _ = write!(writer.text, "align({}) ", data.align);
            }
            let fields = data.fields.iter().map(|(name, ty)| (name.as_str(), *ty));
            writer.list('{', fields, '}');
            next += 1;
        }
        writer.text
    }

    fn head(&mut self, function: &Function, names: bool) {
        self.text.push_str(match function.kind {
            FunctionKind::Kernel => "kernel",
            FunctionKind::Device => "fn",
        });
        if names {
            let _ = write!(self.text, " {}", function.name);
        }
        let mut generics = Vec::new();
        for (i, param) in function.type_params.iter().enumerate() {
            let bound = match param.bound {
                TypeBound::Any => "any",
                TypeBound::Num => "num",
                TypeBound::Int => "int",
                TypeBound::Float => "float",
            };
            let name = if names { param.name.as_str() } else { "_" };
            generics.push(format!("${i} {name}: {bound}"));
        }
        for (i, param) in function.const_params.iter().enumerate() {
            let name = if names { param.name.as_str() } else { "_" };
            generics.push(format!("#{i} {name}: {}", self.types.display(param.ty)));
        }
        if !generics.is_empty() {
            let _ = write!(self.text, "<{}>", generics.join(", "));
        }
    }

    fn list<'n>(&mut self, open: char, items: impl Iterator<Item = (&'n str, Type)>, close: char) {
        self.text.push(open);
        for (i, (name, ty)) in items.enumerate() {
            if i > 0 {
                self.text.push_str(", ");
            }
            let _ = write!(self.text, "{name}: ");
            self.ty(ty);
        }
        self.text.push(close);
    }

    fn ty(&mut self, ty: Type) {
        self.text.push_str(&self.types.display(ty));
        self.note_structs(ty);
    }

    fn note_structs(&mut self, ty: Type) {
        match *self.types.data(ty) {
            TypeData::Struct(id) => {
                if !self.structs.contains(&id) {
                    self.structs.push(id);
                }
            }
            TypeData::Array { element, .. } | TypeData::Slice { element, .. } => {
                self.note_structs(element);
            }
            TypeData::Pointer { pointee, .. } => self.note_structs(pointee),
            TypeData::Unit | TypeData::Scalar(_) | TypeData::Vector { .. } | TypeData::Param(_) => {
            }
        }
    }
}
