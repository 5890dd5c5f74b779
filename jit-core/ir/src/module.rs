//! Modules: a kernel with everything it needs, and the source files its locations name.

use std::fmt;
use std::sync::Arc;

use super::entity::{Entity, PrimaryMap, entity};
use super::function::Function;
use super::intrinsic::IntrinsicDef;
use super::printed::PrintSite;
use super::types::{AddressSpace, Type, TypeTable};

entity! {
    /// A function of a module.
    FuncId = "func";
    /// A constant of a module.
    GlobalId = "global";
    /// A value that a launch passes besides its arguments.
    HiddenParam = "hidden";
    /// An intrinsic used by a module.
    IntrinsicId = "intrinsic";
    /// A source file named by locations of a module.
    FileId = "file";
    /// A call of a module that the body of the function called stands in place of.
    Inlined = "inlined";
}

/// A call in place of which the body of the function called stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InlinedCall {
    /// The name of the function called.
    pub function: Arc<str>,
    /// Where the call was, which may itself be in the body of a function that was put in place of a call.
    pub at: Location,
}

/// A place in a source file. Line and column start at 1; line 0 means unknown.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Location {
    /// Which file of the module.
    pub file: FileId,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
    /// The call in place of which this is, if it is of the body of another function than it stands in.
    pub inlined: Option<Inlined>,
}

impl Location {
    /// No place known.
    pub fn unknown() -> Location {
        Location {
            file: FileId::from_index(0),
            line: 0,
            column: 0,
            inlined: None,
        }
    }

    /// Whether a place is known.
    pub fn is_known(self) -> bool {
        self.line != 0
    }
}

/// Which constructs are allowed, and what has been done.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Type and const parameters may be open; callees may be declarations.
    Generic,
    /// All types are concrete, all callees have bodies.
    Specialized,
    /// Kernel parameters are as they are passed: no aggregate is `Direct`. What is written in the IR, the
    /// remainder of floats, is a call.
    Legal,
}

impl Phase {
    /// The name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Generic => "generic",
            Phase::Specialized => "specialized",
            Phase::Legal => "legal",
        }
    }
}

/// A read-only value that is part of the code, in the constant address space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GlobalData {
    /// The value's name, unique in its module.
    pub name: String,
    /// The value's type.
    pub ty: Type,
    /// The value's bytes in memory order, as many as the type has.
    pub bytes: Arc<[u8]>,
}

/// A value that each launch passes besides its arguments; any function of the module can have it, by
/// [`InstData::Hidden`](crate::InstData::Hidden).
///
/// Before [`Phase::Legal`] it is an operation; then it is a parameter, behind the others, of the kernel and
/// of each function that needs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HiddenData {
    /// The name of the hidden value, the only one of its source.
    pub name: String,
    /// The type of the hidden value: of an argument, and a pointer or slice is one into global memory.
    pub ty: Type,
    /// Who gives it.
    pub source: HiddenSource,
    /// Where the hidden value was declared.
    pub location: Location,
}

/// Who gives the value of a hidden parameter at each launch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum HiddenSource {
    /// The hook of this name.
    Hook(String),
    /// The `Jit`: the address of memory on its device that all its kernels share by this name. The bytes are what
    /// is there at first; without them zeros are.
    Global(Option<Arc<[u8]>>),
    /// The device: the address of the [`FaultChannel`](crate::fault::FaultChannel).
    FaultChannel,
}

impl HiddenSource {
    /// Whether the source is the hook of this name.
    pub fn is_hook(&self, name: &str) -> bool {
        matches!(self, HiddenSource::Hook(hook) if hook == name)
    }
}

impl fmt::Display for HiddenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HiddenSource::Hook(hook) => write!(f, "hook `{hook}`"),
            HiddenSource::Global(_) => f.write_str("the `Jit`"),
            HiddenSource::FaultChannel => f.write_str("the device"),
        }
    }
}

/// A kernel with everything it needs: a unit of specialization and compilation.
#[derive(Clone, Debug)]
pub struct Module {
    /// A name for dumps: the kernel's.
    pub name: String,
    /// How far it has come.
    pub phase: Phase,
    /// Types.
    pub types: TypeTable,
    /// Source files. File 0 is always there.
    pub files: PrimaryMap<FileId, Arc<str>>,
    /// Intrinsics used.
    pub intrinsics: PrimaryMap<IntrinsicId, &'static IntrinsicDef>,
    /// Constants.
    pub globals: PrimaryMap<GlobalId, GlobalData>,
    /// What launches pass besides the kernel's arguments.
    pub hidden: PrimaryMap<HiddenParam, HiddenData>,
    /// Functions.
    pub functions: PrimaryMap<FuncId, Function>,
    /// The places that print, in the order of their numbers, once they are calls.
    pub print_sites: Vec<PrintSite>,
    /// Calls in place of which the bodies called stand: one that is in such a body comes after that one.
    pub inlined: PrimaryMap<Inlined, InlinedCall>,
}

impl Module {
    /// An empty module in the generic phase.
    pub fn new(name: impl Into<String>) -> Self {
        let mut files = PrimaryMap::new();
        files.push("unknown".into());
        Self {
            name: name.into(),
            phase: Phase::Generic,
            types: TypeTable::new(),
            files,
            intrinsics: PrimaryMap::new(),
            globals: PrimaryMap::new(),
            hidden: PrimaryMap::new(),
            functions: PrimaryMap::new(),
            print_sites: Vec::new(),
            inlined: PrimaryMap::new(),
        }
    }

    /// Whether there are barriers of some warps of a block.
    pub fn has_named_barriers(&self) -> bool {
        let mut rows = self.intrinsics.values();
        rows.any(|row| row.is_named_barrier())
    }

    /// Whether a function exchanges, or compares and swaps, 16 bytes in one step.
    pub fn changes_word_pairs(&self) -> bool {
        let mut functions = self.functions.values();
        functions.any(|function| function.changes_word_pairs(&self.types))
    }

    /// The entity of a source file, entered if it is new.
    pub fn file(&mut self, path: &str) -> FileId {
        let known = self
            .files
            .iter()
            .find(|(_, p)| ***p == *path)
            .map(|(id, _)| id);
        known.unwrap_or_else(|| self.files.push(path.into()))
    }

    /// The entity of a location of the host program, entered if its file is new.
    pub fn location(&mut self, file: &str, line: u32, column: u32) -> Location {
        Location {
            file: self.file(file),
            line,
            column,
            inlined: None,
        }
    }

    /// The entity of a call in place of which the body of the function called is put, entered if it is new.
    pub fn inlined_call(&mut self, call: InlinedCall) -> Inlined {
        let known = self.inlined.iter().find(|(_, known)| **known == call);
        match known {
            Some((id, _)) => id,
            None => self.inlined.push(call),
        }
    }

    /// The name of the function of whose body something at this place is, which stands in a function of the name
    /// `stands_in`: another one where it was put in place of a call.
    pub fn function_of<'m>(&'m self, at: Location, stands_in: &'m str) -> &'m str {
        let call = at.inlined.and_then(|id| self.inlined.get(id));
        call.map_or(stands_in, |call| &call.function)
    }

    /// The entity of an intrinsic, entered if it is new. The verifier refuses another row of its name;
    /// [`Module::other_intrinsic`] finds that before.
    pub fn intrinsic(&mut self, def: &'static IntrinsicDef) -> IntrinsicId {
        let known = self
            .intrinsics
            .iter()
            .find(|(_, row)| row.is_same(def))
            .map(|(id, _)| id);
        known.unwrap_or_else(|| self.intrinsics.push(def))
    }

    /// Another row of the module with the name of this one.
    pub fn other_intrinsic(&self, def: &IntrinsicDef) -> Option<&'static IntrinsicDef> {
        let mut rows = self.intrinsics.values().copied();
        rows.find(|row| row.name == def.name && !row.is_same(def))
    }

    /// The hidden value of a hook, by a name that is the hook's own, declared if it is new. A hook declares it
    /// where it rewrites the IR, reads it by [`InstData::Hidden`](crate::InstData::Hidden) and gives it at
    /// each launch. The verifier refuses one that is declared with two types.
    pub fn add_hidden(&mut self, hook: &str, name: &str, ty: Type) -> HiddenParam {
        self.hidden_value(HiddenData {
            name: name.to_owned(),
            ty,
            source: HiddenSource::Hook(hook.to_owned()),
            location: Location::unknown(),
        })
    }

    /// The address of memory that all kernels of a `Jit` share by a name, for a value of type `ty`; `initial` is
    /// what is there at first, zeros if it is not said.
    pub fn add_global(
        &mut self,
        name: &str,
        ty: Type,
        initial: Option<Arc<[u8]>>,
        location: Location,
    ) -> HiddenParam {
        let ty = self.types.pointer(ty, AddressSpace::Global, true);
        self.hidden_value(HiddenData {
            name: name.to_owned(),
            ty,
            source: HiddenSource::Global(initial),
            location,
        })
    }

    /// The entity of a hidden value, entered if none is of its name, source and type.
    pub fn hidden_value(&mut self, data: HiddenData) -> HiddenParam {
        let same = |known: &HiddenData| {
            (&known.name, known.ty, &known.source) == (&data.name, data.ty, &data.source)
        };
        let known = self.hidden.iter().find(|(_, known)| same(known));
        match known {
            Some((id, _)) => id,
            None => self.hidden.push(data),
        }
    }

    /// The kernel of this module: its only kernel.
    pub fn kernel(&self) -> Option<FuncId> {
        let mut kernels = self
            .functions
            .iter()
            .filter(|(_, f)| f.kind == super::FunctionKind::Kernel);
        kernels.next().map(|(id, _)| id)
    }

    /// The function with this name.
    pub fn function_named(&self, name: &str) -> Option<FuncId> {
        self.functions
            .iter()
            .find(|(_, f)| f.name == name)
            .map(|(id, _)| id)
    }

    /// A location as `file:line:column`, or `unknown`.
    pub fn display_location(&self, at: Location) -> String {
        if !at.is_known() {
            return "unknown".to_owned();
        }
        let file = self.files.get(at.file).map_or("unknown", |f| f);
        format!("{file}:{}:{}", at.line, at.column)
    }
}

/// `name`, or else the first of `name.2`, `name.3` ... that is not taken.
pub fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2u64..).map(|number| format!("{name}.{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let free = names.find(|name| !is_taken(name));
    free.unwrap_or_else(|| name.to_owned())
}
