//! The builder: host code that describes a kernel.
//!
//! A kernel is described once, by running a closure over a [`KernelBuilder`]; operators on the
//! builder's values append instructions to the IR. Host control flow (`for`, `if`, closures,
//! generics) shapes the description and leaves no trace; the kernel's own control flow is written
//! with [`KernelBuilder::if_`], [`KernelBuilder::for_range`] and the like. The same builder makes
//! device functions.
//!
//! ```
//! # use kiln::core::build::Kernel;
//! let saxpy = Kernel::build("saxpy", |k| {
//!     let t = k.type_param("T").float();
//!     let (a, x, y) = (k.param("a", t), k.slice("x", t), k.slice_mut("y", t));
//!     k.for_range(0, y.len(), |i| y.at(i).set(a * x.at(i) + y.at(i)));
//! })?;
//! # drop(saxpy);
//! # Ok::<(), kiln::core::error::Error>(())
//! ```
//!
//! Wrong use is collected as [`BuildErrors`] that name the Rust lines; nothing panics.

mod atomic;
mod call;
mod choice;
mod control;
mod declare;
mod described;
mod error;
mod kernel;
mod literal;
mod place;
mod position;
mod recovery;
mod seen;
mod slot;
mod value;

pub use control::IfThen;
pub use declare::TypeParamBuilder;
pub(crate) use described::{Parameter, PartBounds};
pub use error::{BuildError, BuildErrorKind, BuildErrors};
pub use kernel::{DeviceFn, Kernel};
pub use literal::IntoVal;
pub use place::{Place, Var};
pub use value::Val;

use recovery::Recovery;
use slot::Slot;

use std::cell::{Cell, RefCell};
use std::panic::Location as RustLocation;
use std::sync::Arc;

use crate::definition::Definition;
use crate::ir::{
    Address, AddressSpace, ArrayLen, Bounds, Constant, Entity, FastMath, FuncId, Function,
    FunctionKind, InstData, Location, Module, Region, RegionData, Type, TypeBound, TypeData,
    TypeParam, Value,
};

/// Choices that hold for a whole function.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct BuildOptions {
    /// All indexing is unchecked.
    pub(crate) unchecked: bool,
}

/// Describes one kernel or device function. See the [module](self) documentation.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::ir::TypeData;
///
/// # fn main() -> kiln::Result<()> {
/// // What the host decides while it describes leaves no trace in the kernel.
/// let fill = |values: &[f32]| {
///     Kernel::build("fill", |k| {
///         let x = k.slice_mut("x", k.ty::<f32>());
///         assert_eq!((k.name().as_str(), k.type_name(x.ty()).as_str()), ("fill", "slice<generic, mut f32>"));
///         assert!(matches!(k.type_data(x.ty()), TypeData::Slice { .. }));
///         for (i, &value) in values.iter().enumerate() {
///             x.at(i as u32).set(value);
///         }
///     })
/// };
/// let jit = Jit::new()?;
/// let mut x = jit.zeros::<f32>(2)?;
/// jit.launch(&fill(&[1.0, 2.0])?, 1, 1, args!(&mut x))?;
/// assert_eq!(x.to_vec()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub struct KernelBuilder {
    state: RefCell<State>,
    options: BuildOptions,
    /// The descriptions under way that need this one, outermost first: a function that is among
    /// them calls itself.
    described_for: Vec<DescriptionId>,
    /// What floats may do that are computed now.
    fast: Cell<FastMath>,
    /// The const arguments of the call that is described now.
    given_consts: RefCell<Vec<crate::ir::ConstArg>>,
    /// How the condition is written that is assumed now.
    written: Cell<&'static str>,
    /// Where instructions are said to come from, where that is not the caller.
    position: Cell<Option<Location>>,
    /// What type parameters stand for while functions are described in place.
    inlining: Inlining,
}

/// Functions that are described in place of their calls.
#[derive(Default)]
struct Inlining {
    /// What the type parameters of each of them stand for.
    scopes: RefCell<Vec<Vec<Type>>>,
    /// The one that is described; none while the function itself is.
    current: Cell<Option<usize>>,
    /// How many are under way.
    depth: Cell<usize>,
}

/// Identifies a function that is described at its first use, with its name and where it is.
#[derive(Clone, Debug)]
pub(crate) struct DescriptionId {
    /// The address of the function that describes.
    pub(crate) address: usize,
    /// The function's name.
    pub(crate) name: &'static str,
    /// Where the function is defined, as `file:line:column`.
    pub(crate) at: String,
}

/// What is being built.
struct State {
    module: Module,
    function: Function,
    /// The regions that are open, outermost first.
    open: Vec<OpenRegion>,
    /// The scope each value belongs to, by value.
    scopes: Vec<ScopeId>,
    /// What each scope is, for errors.
    scope_names: Vec<String>,
    callees: Vec<(FuncId, Arc<Definition>)>,
    /// Variables that have their type from what is assigned to them.
    slots: Vec<Slot>,
    /// The scalars of constants of the host, by number.
    constants: Vec<Vec<Constant>>,
    errors: Vec<BuildError>,
    recovery: Recovery,
}

/// Identifies an open region for as long as the builder lives.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct ScopeId(usize);

struct OpenRegion {
    /// Where instructions go. After a terminator this is a region that is part of nothing.
    region: Region,
    scope: ScopeId,
    is_loop: bool,
}

impl KernelBuilder {
    fn new(name: &str, kind: FunctionKind, options: BuildOptions, at: &RustLocation<'_>) -> Self {
        let mut module = Module::new(name);
        let location = module.location(at.file(), at.line(), at.column());
        let mut function = Function::new(name, kind, location);
        function.choices.bounds = options.unchecked.then_some(Bounds::Unchecked);
        let body = OpenRegion {
            region: function.body,
            scope: ScopeId(0),
            is_loop: false,
        };
        Self {
            state: RefCell::new(State {
                module,
                function,
                open: vec![body],
                scopes: Vec::new(),
                scope_names: vec![format!("the body of `{name}`")],
                callees: Vec::new(),
                slots: Vec::new(),
                constants: Vec::new(),
                errors: Vec::new(),
                recovery: Recovery::default(),
            }),
            options,
            fast: Cell::new(FastMath::NONE),
            given_consts: RefCell::default(),
            written: Cell::new(""),
            described_for: Vec::new(),
            position: Cell::new(None),
            inlining: Inlining::default(),
        }
    }

    /// The descriptions under way that need this one, itself included.
    pub(crate) fn described_for(&self) -> &[DescriptionId] {
        &self.described_for
    }

    /// Appends an instruction at the caller's line and returns its value.
    #[track_caller]
    pub(crate) fn emit(&self, data: InstData, result: Type) -> Val<'_> {
        let location = self.here();
        let mut state = self.state.borrow_mut();
        let ends = data.is_terminator();
        let recovered = state.recovery.reaches(&data);
        let here = state.here();
        let takes_fast = data.takes_fast();
        let inst = state.function.new_inst(data, result, location);
        if takes_fast {
            state.function.insts[inst].fast = self.fast.get();
        }
        state.function.regions[here].insts.push(inst);
        let value = state.function.insts[inst].result;
        state.enter_values();
        if ends {
            // What follows in this region is never executed; it is checked and then forgotten.
            let dead = state.function.regions.push(RegionData::default());
            if let Some(open) = state.open.last_mut() {
                open.region = dead;
            }
        }
        if let (true, Some(value)) = (recovered, value) {
            state.recovery.enter(value);
        }
        let id = value.unwrap_or(Value::from_index(u32::MAX as usize - 1));
        Val {
            builder: self,
            id,
            ty: result,
        }
    }

    /// Notes an error at the caller's line and returns a zero of type `ty` to go on with.
    #[track_caller]
    pub(crate) fn error(&self, kind: BuildErrorKind, ty: Type) -> Val<'_> {
        self.error_about(&[], kind, ty)
    }

    /// Notes an error at the caller's line.
    #[track_caller]
    pub(crate) fn note(&self, kind: BuildErrorKind) {
        let location = self.here();
        let mut state = self.state.borrow_mut();
        let at = state.module.display_location(location);
        state.errors.push(BuildError { kind, at });
    }

    #[track_caller]
    pub(crate) fn wrong_type(
        &self,
        operation: &str,
        expected: impl Into<String>,
        found: Val<'_>,
        ty: Type,
    ) -> Val<'_> {
        let kind = BuildErrorKind::WrongType {
            operation: operation.to_owned(),
            expected: expected.into(),
            found: self.type_name(found.ty),
            value_at: self.built_at(found),
        };
        self.error_about(&[found], kind, ty)
    }

    /// `value`, checked to be of this builder and still in scope.
    #[track_caller]
    pub(crate) fn adopt<'k>(&'k self, value: Val<'k>) -> Val<'k> {
        if !std::ptr::eq(self, value.builder) {
            let owner = value.builder.name();
            let kind = BuildErrorKind::ForeignValue {
                owner,
                user: self.name(),
            };
            // Only scalar types mean the same in both modules.
            let ty = if value.ty.as_scalar().is_some() {
                value.ty
            } else {
                Type::I32
            };
            return self.error(kind, ty);
        }
        if value.ty == Type::UNIT {
            return value;
        }
        let state = self.state.borrow();
        let scope = state.scopes[value.id.index()];
        if state.open.iter().any(|open| open.scope == scope) {
            return value;
        }
        let scope = state.scope_names[scope.0].clone();
        drop(state);
        let kind = BuildErrorKind::OutOfScope {
            value_at: self.built_at(value),
            scope,
        };
        self.error(kind, value.ty)
    }

    /// `value`, checked to be a bool.
    #[track_caller]
    pub(crate) fn expect_bool<'k>(&'k self, what: &str, value: Val<'k>) -> Val<'k> {
        let value = self.adopt(value);
        if value.ty == Type::BOOL {
            return value;
        }
        self.wrong_type(
            what,
            "a bool (compare with `lt`, `eq`, ...)",
            value,
            Type::BOOL,
        )
    }

    #[track_caller]
    pub(crate) fn constant(&self, constant: Constant, ty: Type) -> Val<'_> {
        self.emit(InstData::Const(constant), ty)
    }

    /// The name of the function being built.
    pub fn name(&self) -> String {
        self.state.borrow().function.name.clone()
    }

    /// A type in the IR's notation.
    pub fn type_name(&self, ty: Type) -> String {
        self.state.borrow().module.types.display(ty)
    }

    /// Whether a type is a pointer.
    pub(crate) fn is_pointer(&self, ty: Type) -> bool {
        self.with_types(|types| types.is_pointer(ty))
    }

    /// What a slice points at, and whether its length takes 64 bits.
    pub(crate) fn as_slice(&self, ty: Type) -> Option<(Address, bool)> {
        self.with_types(|types| types.as_slice(ty))
    }

    /// The element type and the length of an array type.
    pub(crate) fn as_array(&self, ty: Type) -> Option<(Type, ArrayLen)> {
        self.with_types(|types| types.as_array(ty))
    }

    /// What a type is.
    pub fn type_data(&self, ty: Type) -> TypeData {
        self.state.borrow().module.types.data(ty).clone()
    }

    /// Whether a type is a float whatever type parameters are bound to.
    pub(crate) fn is_certainly_float(&self, ty: Type) -> bool {
        match self.type_data(ty) {
            TypeData::Scalar(scalar) => scalar.is_float(),
            TypeData::Param(param) => self.bound(param) == Some(TypeBound::Float),
            _ => false,
        }
    }

    fn bound(&self, param: TypeParam) -> Option<TypeBound> {
        self.state
            .borrow()
            .function
            .type_params
            .get(param.index())
            .map(|p| p.bound)
    }

    /// The line of Rust that built a value.
    fn built_at(&self, value: Val<'_>) -> String {
        let state = value.builder.state.borrow();
        state.module.display_location(state.defined_at(value))
    }

    fn pointer_type(&self, pointee: Type, space: AddressSpace, mutable: bool) -> Type {
        self.state
            .borrow_mut()
            .module
            .types
            .pointer(pointee, space, mutable)
    }

    /// A pointer type to go on with after an error.
    fn any_pointer(&self) -> Type {
        self.pointer_type(Type::I32, AddressSpace::Generic, true)
    }

    /// A pointer or slice type moved to another address space.
    fn in_space(&self, ty: Type, space: AddressSpace) -> Option<Type> {
        self.state.borrow_mut().module.types.in_space(ty, space)
    }

    /// Position and type of a struct field.
    fn find_field(&self, ty: Type, name: &str) -> Result<(u32, Type), BuildErrorKind> {
        let state = self.state.borrow();
        let types = &state.module.types;
        let fields = types.as_struct(ty).map_or(&[][..], |s| &s.fields);
        match fields.iter().position(|(field, _)| field == name) {
            Some(index) => Ok((index as u32, fields[index].1)),
            None => Err(BuildErrorKind::NoField {
                ty: types.display(ty),
                field: name.to_owned(),
                fields: match fields {
                    [] => "none, it is not a struct".to_owned(),
                    _ => fields
                        .iter()
                        .map(|(n, _)| n.as_str())
                        .collect::<Vec<_>>()
                        .join(", "),
                },
            }),
        }
    }
}

impl State {
    /// Where instructions go.
    fn here(&self) -> Region {
        self.open
            .last()
            .map_or(self.function.body, |open| open.region)
    }

    /// Gives values made since the last call the scope of the innermost open region.
    fn enter_values(&mut self) {
        let scope = self.open.last().map_or(ScopeId(0), |open| open.scope);
        self.scopes.resize(self.function.values.len(), scope);
    }

    /// Whether a value is a constant all of whose bytes are zero, and was built as one.
    pub(super) fn is_zero(&self, value: Val<'_>) -> bool {
        use crate::ir::ValueDef;
        let def = self.function.values.get(value.id).map(|data| data.def);
        let Some(ValueDef::Inst(inst)) = def else {
            return false;
        };
        let node = self.function.insts.get(inst);
        node.is_some_and(|node| matches!(node.data, InstData::Const(Constant::Zero)))
    }

    fn defined_at(&self, value: Val<'_>) -> Location {
        use crate::ir::ValueDef;
        let Some(data) = self.function.values.get(value.id) else {
            return Location::unknown();
        };
        match data.def {
            ValueDef::Inst(inst) | ValueDef::Index(inst) => match self.function.insts.get(inst) {
                Some(node) => node.location,
                None => Location::unknown(),
            },
            ValueDef::Param(i) => self.function.params[i as usize].location,
        }
    }
}
