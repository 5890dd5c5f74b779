//! Specialization: a generic kernel and what it calls become one module with concrete types.
//!
//! [`bind`] finds out, from the types of the launch arguments, what the type and const parameters
//! of a kernel are: a [`Specialization`]. [`specialize`] then copies the kernel and every function
//! it reaches into a new module of phase [`Phase::Specialized`]: one copy of a device function for
//! each set of type and const arguments it is called with, literals converted to the types they
//! are used at, facts about arguments noted at the kernel's parameters.
//!
//! A specialized module is dense (nothing unreachable is copied) and its order depends on content
//! alone: the kernel first, then its callees in the order of their first call.

mod bind;
mod bind_error;
mod error;
mod instance;
mod literal;
mod type_map;
mod wide;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

use crate::definition::{Body, Snapshot};
use crate::ir::free_name;
use crate::ir::{
    FuncId, Function, FunctionKind, Location, Module, ParamData, Phase, ScalarKind, Type,
    TypeBound, TypeForm, TypeTable,
};
use crate::value::KernelType;

pub use bind::{ArgumentKind, ArgumentType, bind};
pub use bind_error::{ArgumentPlace, BindError};
pub use error::{CodePlace, SpecializeError};
use wide::WideFlow;

/// A type of the host program, or a part of one, that can be entered in any module.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct HostType(pub &'static TypeForm);

impl HostType {
    /// The type `T`.
    pub fn of<T: KernelType>() -> HostType {
        HostType(T::FORM)
    }

    /// The type, entered in `types` if it is new.
    pub fn resolve(self, types: &mut TypeTable) -> Type {
        self.0.enter(types)
    }

    /// A field, or the element of an array; unit if it has no such part.
    fn part(self, position: u32) -> HostType {
        HostType(self.0.part(position).unwrap_or(&TypeForm::UNIT))
    }
}

impl fmt::Debug for HostType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What is known about one argument beyond its type. The default is nothing.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ParamSpec {
    /// A slice has 2^32 elements or more: its length takes 64 bits.
    pub wide: bool,
    /// A slice has fewer than [`ParamFacts::SHORT`](crate::ir::ParamFacts::SHORT) elements.
    pub short: bool,
    /// The address of a slice or pointer is a multiple of this power of two, in bytes (0 and 1:
    /// nothing known).
    pub align: u32,
    /// An integer is a multiple of this number (0 and 1: nothing known).
    pub divisor: u32,
    /// An integer is 1. The parameter stays in the signature; the body uses the constant.
    pub equal_one: bool,
    /// No other parameter reaches the memory behind this slice or pointer, unless both only read.
    pub noalias: bool,
}

/// What a kernel is specialized on.
#[derive(Clone, Debug, Default)]
pub struct Specialization {
    /// The kernel's type parameters, in order.
    pub type_args: Vec<HostType>,
    /// The kernel's const parameters by name: an integer, or 0 or 1 for a bool.
    pub const_args: Vec<(String, i128)>,
    /// The kernel's parameters, in order; those left out have no facts.
    pub params: Vec<ParamSpec>,
}

/// Makes the module of a kernel for concrete types.
///
/// `snapshot` is of a kernel whose bodies passed the verifier. The result should be verified
/// again: an operation that a bound type does not have (a shift of a float, a 32-bit length of a
/// wide slice) is found there.
///
/// # Errors
///
/// See [`SpecializeError`].
pub fn specialize(
    snapshot: &Snapshot,
    specialization: &Specialization,
) -> Result<Module, SpecializeError> {
    let mut specializer = Specializer::new(snapshot);
    let key = specializer.kernel_key(specialization)?;
    specializer.request(key)?;
    specializer.emit_requested(&specialization.params)?;
    specializer.module.phase = Phase::Specialized;
    Ok(specializer.module)
}

/// Adds the device function of a definition, for type and const arguments, with all it calls, to a
/// specialized module.
///
/// # Errors
///
/// See [`SpecializeError`]; the module is then of no further use.
pub(crate) fn link(
    module: &mut Module,
    snapshot: &Snapshot,
    type_args: &[Type],
    const_args: &[i128],
) -> Result<FuncId, SpecializeError> {
    let mut specializer = Specializer::new(snapshot);
    specializer.names = module.functions.values().map(|f| f.name.clone()).collect();
    specializer.module = std::mem::replace(module, Module::new(""));
    let linked = specializer.link(type_args, const_args);
    *module = specializer.module;
    linked
}

/// The largest number of functions in a specialized module. Device functions that each call the
/// next one at two types double the number at every step.
const INSTANCE_LIMIT: usize = 4096;

/// One copy of a definition's function.
#[derive(Clone, PartialEq, Eq, Hash)]
struct InstanceKey {
    /// Position in the snapshot.
    definition: usize,
    /// In the new module.
    type_args: Vec<Type>,
    const_args: Vec<i128>,
    /// Which parameters receive a slice that became wide.
    wide: Vec<bool>,
}

struct Specializer<'a> {
    snapshot: &'a Snapshot,
    module: Module,
    instances: HashMap<InstanceKey, FuncId>,
    queue: VecDeque<(InstanceKey, FuncId)>,
    names: HashSet<String>,
    wide: WideFlow<'a>,
    /// Declarations known to fit their definition: position of the body, declaration.
    linked: HashSet<(usize, FuncId)>,
}

impl<'a> Specializer<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            module: Module::new(snapshot.root.name()),
            instances: HashMap::new(),
            queue: VecDeque::new(),
            names: HashSet::new(),
            wide: WideFlow::new(snapshot),
            linked: HashSet::new(),
        }
    }

    /// Adds the first function of the snapshot.
    fn link(&mut self, types: &[Type], consts: &[i128]) -> Result<FuncId, SpecializeError> {
        let body = self.body(0);
        let function = body.function();
        let location = || body.module.display_location(function.location);
        if types.len() != function.type_params.len() {
            return Err(SpecializeError::TypeArgumentCount {
                function: function.name.clone(),
                expected: function.type_params.len(),
                given: types.len(),
                location: location(),
            });
        }
        if consts.len() != function.const_params.len() {
            return Err(SpecializeError::ConstArgumentCount {
                function: function.name.clone(),
                expected: function.const_params.len(),
                given: consts.len(),
                location: location(),
            });
        }
        let key = InstanceKey {
            definition: 0,
            type_args: types.to_vec(),
            const_args: consts.to_vec(),
            wide: vec![false; function.params.len()],
        };
        self.check_generics(body, &key, function.location, &body.module)?;
        let linked = self.request(key)?;
        self.emit_requested(&[])?;
        Ok(linked)
    }

    /// Emits what is in the queue and what that calls. `facts` are those of the kernel's
    /// parameters; other functions have none.
    fn emit_requested(&mut self, facts: &[ParamSpec]) -> Result<(), SpecializeError> {
        while let Some((key, id)) = self.queue.pop_front() {
            let facts = if self.is_kernel(id) { facts } else { &[] };
            let function = instance::emit(self, &key, id, facts)?;
            self.module.functions[id] = function;
        }
        Ok(())
    }

    fn body(&self, definition: usize) -> &'a Body {
        &self.snapshot.bodies[definition].1
    }

    /// The kernel is requested before any other function.
    fn is_kernel(&self, id: FuncId) -> bool {
        Some(id) == self.module.functions.keys().next()
    }

    /// Checks a specialization against the kernel it is for.
    fn kernel_key(&mut self, spec: &Specialization) -> Result<InstanceKey, SpecializeError> {
        let body = self.body(0);
        let kernel = body.function();
        if kernel.kind != FunctionKind::Kernel {
            return Err(SpecializeError::NotAKernel {
                name: kernel.name.clone(),
                location: body.module.display_location(kernel.location),
            });
        }
        if spec.type_args.len() != kernel.type_params.len() {
            return Err(SpecializeError::TypeArgumentCount {
                function: kernel.name.clone(),
                expected: kernel.type_params.len(),
                given: spec.type_args.len(),
                location: body.module.display_location(kernel.location),
            });
        }
        let mut const_args = Vec::new();
        for param in &kernel.const_params {
            let found = spec.const_args.iter().find(|(name, _)| *name == param.name);
            let Some((_, value)) = found else {
                return Err(SpecializeError::ConstArgumentMissing {
                    function: kernel.name.clone(),
                    param: param.name.clone(),
                    location: body.module.display_location(kernel.location),
                });
            };
            const_args.push(*value);
        }
        if spec.params.iter().any(|param| param.wide) {
            self.wide.widen_inside();
        }
        let types = &mut self.module.types;
        let key = InstanceKey {
            definition: 0,
            type_args: spec.type_args.iter().map(|t| t.resolve(types)).collect(),
            const_args,
            wide: (0..kernel.params.len())
                .map(|i| spec.params.get(i).is_some_and(|p| p.wide))
                .collect(),
        };
        self.check_generics(body, &key, kernel.location, &body.module)?;
        Ok(key)
    }

    /// Checks type and const arguments against what `body`'s function declares; `location` and
    /// `module` say who gives them. There are as many as it declares.
    fn check_generics(
        &self,
        body: &Body,
        key: &InstanceKey,
        location: Location,
        module: &Module,
    ) -> Result<(), SpecializeError> {
        let function = body.function();
        for (param, &ty) in function.type_params.iter().zip(&key.type_args) {
            if !satisfies(&self.module.types, param.bound, ty) {
                return Err(SpecializeError::Bound {
                    function: function.name.clone(),
                    param: param.name.clone(),
                    bound: describe_bound(param.bound),
                    ty: self.module.types.display(ty),
                    location: module.display_location(location),
                });
            }
        }
        for (param, &value) in function.const_params.iter().zip(&key.const_args) {
            if !const_fits(param.ty, value) {
                return Err(SpecializeError::ConstRange {
                    function: function.name.clone(),
                    param: param.name.clone(),
                    ty: body.module.types.display(param.ty),
                    value,
                    location: module.display_location(location),
                });
            }
        }
        Ok(())
    }

    /// The function for `key`, put in the queue if it is new.
    fn request(&mut self, key: InstanceKey) -> Result<FuncId, SpecializeError> {
        if let Some(&id) = self.instances.get(&key) {
            return Ok(id);
        }
        let function = self.body(key.definition).function();
        if self.module.functions.len() >= INSTANCE_LIMIT {
            return Err(SpecializeError::TooManyInstances {
                kernel: self.module.name.clone(),
                function: function.name.clone(),
                limit: INSTANCE_LIMIT,
            });
        }
        let name = self.instance_name(function, &key);
        let placeholder = Function::new(name, function.kind, Location::unknown());
        let id = self.module.functions.push(placeholder);
        self.instances.insert(key.clone(), id);
        self.queue.push_back((key, id));
        Ok(id)
    }

    /// `dot`, `dot.f32`, `dot.f32.16`; the kernel keeps its name whatever it is specialized on.
    fn instance_name(&mut self, function: &Function, key: &InstanceKey) -> String {
        let mut name = function.name.clone();
        if function.kind == FunctionKind::Device {
            for &ty in &key.type_args {
                name.push('.');
                name.push_str(&type_map::name_part(&self.module.types.display(ty)));
            }
            for value in &key.const_args {
                name.push('.');
                name.push_str(&type_map::name_part(&value.to_string()));
            }
            if key.wide.contains(&true) {
                name.push_str(".wide");
            }
        }
        let unique = free_name(&name, |name| self.names.contains(name));
        self.names.insert(unique.clone());
        unique
    }
}

/// Whether a type argument is what a type parameter asks for.
fn satisfies(types: &TypeTable, bound: TypeBound, ty: Type) -> bool {
    match bound {
        TypeBound::Any => types.layout(ty).is_some(),
        TypeBound::Num => ty.is_int() || ty.is_float(),
        TypeBound::Int => ty.is_int(),
        TypeBound::Float => ty.is_float(),
    }
}

fn describe_bound(bound: TypeBound) -> &'static str {
    match bound {
        TypeBound::Any => "a type with a size",
        TypeBound::Num => "an integer or a float",
        TypeBound::Int => "an integer",
        TypeBound::Float => "a float",
    }
}

/// Whether a const argument is a value of the const parameter's type.
fn const_fits(ty: Type, value: i128) -> bool {
    ty.as_scalar().is_some_and(|scalar| match scalar.kind() {
        ScalarKind::Bool => matches!(value, 0 | 1),
        ScalarKind::Int { .. } => scalar.holds(value),
        ScalarKind::Float(_) => false,
    })
}

/// Which fact of `spec` cannot hold for `param` of type `ty`, and why.
fn unsuited_fact(
    types: &TypeTable,
    ty: Type,
    spec: ParamSpec,
) -> Option<(&'static str, &'static str)> {
    let is_slice = types.is_slice(ty);
    let is_address = is_slice || types.as_pointer(ty).is_some();
    if spec.wide && !is_slice {
        return Some(("wide", "only a slice can be wide"));
    }
    if spec.short && (!is_slice || spec.wide) {
        return Some(("short", "only a slice that is not wide can be short"));
    }
    if spec.align > 1 && !is_address {
        return Some(("align", "only a slice or pointer has an aligned address"));
    }
    if spec.align > 1 && !spec.align.is_power_of_two() {
        return Some(("align", "an alignment is a power of two"));
    }
    if spec.noalias && !is_address {
        return Some(("noalias", "only a slice or pointer reaches memory"));
    }
    if spec.divisor > 1 && !ty.is_int() {
        return Some(("divisor", "only an integer has a divisor"));
    }
    if spec.equal_one && !ty.is_int() {
        return Some(("equal_one", "only an integer is replaced by 1"));
    }
    None
}

/// Adds the facts of `spec` to those that the kernel declares.
fn add_facts(param: &mut ParamData, spec: ParamSpec) {
    let facts = &mut param.facts;
    // Both are powers of two, so the larger is a multiple of the other.
    facts.align = facts.align.max(spec.align);
    facts.divisor = common_multiple(facts.divisor, spec.divisor);
    facts.noalias |= spec.noalias;
    facts.short |= spec.short;
}

/// The least common multiple, where 0 says nothing; the larger when it exceeds 32 bits.
fn common_multiple(a: u32, b: u32) -> u32 {
    if a == 0 || b == 0 {
        return a.max(b);
    }
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b).unwrap_or(a.max(b))
}
