//! Binding: what a kernel's type and const parameters are, from the arguments of a launch.
//!
//! Each parameter's type is matched against the type of its argument. A type parameter is bound by
//! the first argument in which it occurs, and the others must agree; a const parameter is given by
//! name or bound by the length of an array. Everything a caller can get wrong about arguments is a
//! [`BindError`] that names the kernel, the argument and the line that declared it.

use std::fmt;

use super::bind_error::{ArgumentPlace, BindError};
use super::{HostType, ParamSpec, Specialization, const_fits, describe_bound, satisfies};
use crate::ir::{
    ArrayLen, ConstParam, Entity, Function, Module, Type, TypeData, TypeParam, TypeTable,
};

/// What a launch argument is.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ArgumentKind {
    /// A value, copied.
    Value,
    /// A device buffer or a part of one.
    Slice {
        /// Whether the slice was passed as `&mut`.
        mutable: bool,
    },
    /// A device address without a length.
    Pointer {
        /// Whether the memory may be written through the pointer.
        mutable: bool,
    },
}

/// The type of a launch argument.
#[derive(Clone, Debug)]
pub struct ArgumentType {
    /// The value's type, or the element's type of a slice or pointer.
    pub host: HostType,
    /// The name of that type in Rust, for errors ([`std::any::type_name`]).
    pub rust_name: &'static str,
    /// How the argument is passed.
    pub kind: ArgumentKind,
    /// The field that it is, if it is a part of a view.
    pub field: Option<&'static str>,
}

impl fmt::Display for ArgumentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ArgumentKind::Value => write!(f, "`{}`", self.rust_name),
            ArgumentKind::Slice { .. } => write!(f, "a slice of `{}`", self.rust_name),
            ArgumentKind::Pointer { .. } => write!(f, "a pointer to `{}`", self.rust_name),
        }
    }
}

/// Binds the parameters of `kernel`, a function of `module`, to arguments of these types.
///
/// `const_args` are const parameters by name. `facts` are what is known about the arguments, in
/// order, and may be shorter; a fact that means nothing for a parameter's type is left out.
///
/// # Errors
///
/// A [`BindError`] about the first thing that does not fit.
pub fn bind(
    kernel: &Function,
    module: &Module,
    args: &[ArgumentType],
    const_args: &[(String, i128)],
    facts: &[ParamSpec],
) -> Result<Specialization, BindError> {
    let mut binder = Binder {
        kernel,
        module,
        types: module.types.clone(),
        bound_types: vec![None; kernel.type_params.len()],
        bound_consts: vec![None; kernel.const_params.len()],
    };
    if args.len() != kernel.params.len() {
        return Err(BindError::Count {
            kernel: kernel.name.clone(),
            params: kernel.params.iter().map(|p| p.name.clone()).collect(),
            given: args.len(),
            declared_at: binder.declared_at(),
        });
    }
    for (name, value) in const_args {
        binder.named_const(name, *value)?;
    }
    for (position, arg) in args.iter().enumerate() {
        binder.argument(position, arg)?;
    }
    let suited = |(i, param): (usize, &crate::ir::ParamData)| {
        let spec = facts.get(i).copied().unwrap_or_default();
        suited_facts(&module.types, kernel.type_of(param.value), &args[i], spec)
    };
    let params = kernel.params.iter().enumerate().map(suited).collect();
    binder.finish(params)
}

/// The facts of `spec` that mean something for a parameter of type `ty`.
fn suited_facts(types: &TypeTable, ty: Type, arg: &ArgumentType, spec: ParamSpec) -> ParamSpec {
    match arg.kind {
        ArgumentKind::Slice { .. } => ParamSpec {
            wide: spec.wide,
            short: spec.short,
            align: spec.align,
            noalias: spec.noalias,
            ..ParamSpec::default()
        },
        ArgumentKind::Pointer { .. } => ParamSpec {
            align: spec.align,
            noalias: spec.noalias,
            ..ParamSpec::default()
        },
        ArgumentKind::Value => {
            let concrete = match types.data(ty) {
                TypeData::Param(_) => arg.host.resolve(&mut TypeTable::new()),
                _ => ty,
            };
            match concrete.is_int() {
                true => ParamSpec {
                    divisor: spec.divisor,
                    equal_one: spec.equal_one,
                    ..ParamSpec::default()
                },
                false => ParamSpec::default(),
            }
        }
    }
}

/// A type parameter's binding: the type, where it came from, and by which argument.
#[derive(Clone)]
struct BoundType {
    ty: Type,
    host: HostType,
    position: usize,
}

/// A const parameter's binding: the value, and the argument that gave it unless by name.
#[derive(Copy, Clone)]
struct BoundConst {
    value: i128,
    position: Option<usize>,
}

struct Binder<'a> {
    kernel: &'a Function,
    module: &'a Module,
    /// The kernel's types and the host types met.
    types: TypeTable,
    bound_types: Vec<Option<BoundType>>,
    bound_consts: Vec<Option<BoundConst>>,
}

/// Why a type does not match.
enum NoMatch {
    /// Types that differ: the mismatch is of the argument as a whole.
    Differs,
    Error(Box<BindError>),
}

impl From<BindError> for NoMatch {
    fn from(error: BindError) -> Self {
        NoMatch::Error(Box::new(error))
    }
}

impl Binder<'_> {
    fn named_const(&mut self, name: &str, value: i128) -> Result<(), BindError> {
        let params = &self.kernel.const_params;
        let Some(index) = params.iter().position(|p| p.name == name) else {
            return Err(BindError::UnknownConst {
                kernel: self.kernel.name.clone(),
                name: name.to_owned(),
                const_params: params.iter().map(|p| p.name.clone()).collect(),
                declared_at: self.declared_at(),
            });
        };
        if self.bound_consts[index].is_some() {
            return Err(BindError::DuplicateConst {
                kernel: self.kernel.name.clone(),
                name: name.to_owned(),
                declared_at: self.declared_at(),
            });
        }
        self.check_const(index, value)?;
        self.bound_consts[index] = Some(BoundConst {
            value,
            position: None,
        });
        Ok(())
    }

    fn check_const(&self, index: usize, value: i128) -> Result<(), BindError> {
        let param = &self.kernel.const_params[index];
        if const_fits(param.ty, value) {
            return Ok(());
        }
        Err(BindError::ConstRange {
            kernel: self.kernel.name.clone(),
            param: param.name.clone(),
            ty: param
                .ty
                .as_scalar()
                .map_or("no type it can have", |s| s.name()),
            value,
            declared_at: self.declared_at(),
        })
    }

    fn argument(&mut self, position: usize, arg: &ArgumentType) -> Result<(), BindError> {
        let param = &self.kernel.params[position];
        let declared = self.kernel.type_of(param.value);
        if let Some(field) = arg.field
            && param.name.rsplit('.').next() != Some(field)
        {
            return Err(BindError::Field {
                at: self.place(position),
                field,
            });
        }
        let (pattern, written) = match (self.types.data(declared), arg.kind) {
            (
                TypeData::Slice {
                    element, mutable, ..
                },
                ArgumentKind::Slice { mutable: given },
            ) => (*element, *mutable && !given),
            (
                TypeData::Pointer {
                    pointee, mutable, ..
                },
                ArgumentKind::Pointer { mutable: given },
            ) => (*pointee, *mutable && !given),
            (TypeData::Slice { .. }, _) => {
                return Err(self.kind_error(position, arg, "pass a device buffer"));
            }
            (TypeData::Pointer { .. }, _) => {
                return Err(self.kind_error(position, arg, "pass a device pointer"));
            }
            (_, ArgumentKind::Value) => (declared, false),
            (_, _) => return Err(self.kind_error(position, arg, "pass a value")),
        };
        let actual = arg.host.resolve(&mut self.types);
        match self.unify(position, pattern, actual, arg.host) {
            Ok(()) if written => Err(BindError::ReadOnly {
                at: self.place(position),
            }),
            Ok(()) => Ok(()),
            Err(NoMatch::Error(error)) => Err(*error),
            Err(NoMatch::Differs) => {
                let mut expected = self.describe(declared);
                let mut given = arg.to_string();
                // Two structs of one name: what differs is inside.
                if self.types.display(pattern) == self.types.display(actual) {
                    expected.push_str(&self.describe_fields(pattern));
                    given.push_str(&self.describe_fields(actual));
                }
                Err(BindError::Mismatch {
                    at: self.place(position),
                    expected,
                    given,
                })
            }
        }
    }

    fn unify(
        &mut self,
        position: usize,
        pattern: Type,
        actual: Type,
        host: HostType,
    ) -> Result<(), NoMatch> {
        if pattern == actual {
            return Ok(());
        }
        match (
            self.types.data(pattern).clone(),
            self.types.data(actual).clone(),
        ) {
            (TypeData::Param(param), _) => Ok(self.bind_type(position, param, actual, host)?),
            (TypeData::Array { element, len }, TypeData::Array { element: e, len: l }) => {
                self.unify(position, element, e, host.part(0))?;
                match (len, l) {
                    (ArrayLen::Known(a), ArrayLen::Known(b)) if a == b => Ok(()),
                    (ArrayLen::Param(param), ArrayLen::Known(n)) => {
                        Ok(self.bind_const(position, param, n.into())?)
                    }
                    _ => Err(NoMatch::Differs),
                }
            }
            (TypeData::Struct(a), TypeData::Struct(b)) => {
                let (a, b) = (self.types.struct_data(a), self.types.struct_data(b));
                let same_names = (&a.name, a.align) == (&b.name, b.align)
                    && a.fields.len() == b.fields.len()
                    && a.fields.iter().zip(&b.fields).all(|(x, y)| x.0 == y.0);
                if !same_names {
                    return Err(NoMatch::Differs);
                }
                let fields = a.fields.iter().zip(&b.fields);
                let pairs: Vec<_> = fields.map(|(x, y)| (x.1, y.1)).collect();
                for (i, (pattern, actual)) in pairs.into_iter().enumerate() {
                    self.unify(position, pattern, actual, host.part(i as u32))?;
                }
                Ok(())
            }
            _ => Err(NoMatch::Differs),
        }
    }

    fn bind_type(
        &mut self,
        position: usize,
        param: TypeParam,
        ty: Type,
        host: HostType,
    ) -> Result<(), NoMatch> {
        let index = param.index();
        let Some(data) = self.kernel.type_params.get(index) else {
            return Err(NoMatch::Differs);
        };
        if let Some(first) = &self.bound_types[index] {
            if first.ty == ty {
                return Ok(());
            }
            return Err(BindError::TypeConflict {
                param: data.name.clone(),
                first: self.place(first.position),
                first_type: self.types.display(first.ty),
                second: self.place(position),
                second_type: self.types.display(ty),
            }
            .into());
        }
        if !satisfies(&self.types, data.bound, ty) {
            return Err(BindError::Bound {
                param: data.name.clone(),
                bound: describe_bound(data.bound),
                at: self.place(position),
                ty: self.types.display(ty),
            }
            .into());
        }
        self.bound_types[index] = Some(BoundType { ty, host, position });
        Ok(())
    }

    fn bind_const(
        &mut self,
        position: usize,
        param: ConstParam,
        value: i128,
    ) -> Result<(), NoMatch> {
        let index = param.index();
        let Some(data) = self.kernel.const_params.get(index) else {
            return Err(NoMatch::Differs);
        };
        match self.bound_consts[index] {
            Some(first) if first.value == value => {}
            Some(first) => {
                let source_of_first = match first.position {
                    Some(i) => format!("argument {} (`{}`)", i + 1, self.kernel.params[i].name),
                    None => format!("the const argument `{}`", data.name),
                };
                return Err(BindError::ConstConflict {
                    param: data.name.clone(),
                    source_of_first,
                    first: first.value,
                    at: self.place(position),
                    second: value,
                }
                .into());
            }
            None => {
                self.check_const(index, value)?;
                self.bound_consts[index] = Some(BoundConst {
                    value,
                    position: Some(position),
                });
            }
        }
        Ok(())
    }

    fn finish(self, params: Vec<ParamSpec>) -> Result<Specialization, BindError> {
        let mut type_args = Vec::new();
        for (bound, param) in self.bound_types.iter().zip(&self.kernel.type_params) {
            let Some(bound) = bound else {
                return Err(BindError::UnboundType {
                    kernel: self.kernel.name.clone(),
                    param: param.name.clone(),
                    declared_at: self.declared_at(),
                });
            };
            type_args.push(bound.host);
        }
        let mut const_args = Vec::new();
        for (bound, param) in self.bound_consts.iter().zip(&self.kernel.const_params) {
            let Some(bound) = bound else {
                return Err(BindError::UnboundConst {
                    kernel: self.kernel.name.clone(),
                    param: param.name.clone(),
                    ty: self.types.display(param.ty),
                    declared_at: self.declared_at(),
                });
            };
            const_args.push((param.name.clone(), bound.value));
        }
        Ok(Specialization {
            type_args,
            const_args,
            params,
        })
    }

    fn kind_error(&self, position: usize, arg: &ArgumentType, fix: &'static str) -> BindError {
        let declared = self.kernel.type_of(self.kernel.params[position].value);
        BindError::Kind {
            at: self.place(position),
            expected: self.describe(declared),
            given: arg.to_string(),
            fix,
        }
    }

    /// A parameter's type as [`ArgumentType`] shows an argument's.
    fn describe(&self, ty: Type) -> String {
        match self.types.address(ty) {
            Some(at) if self.types.is_slice(ty) => {
                format!("a slice of `{}`", self.named(at.pointee))
            }
            Some(at) => format!("a pointer to `{}`", self.named(at.pointee)),
            None => format!("`{}`", self.named(ty)),
        }
    }

    /// The type as text, with the names of type and const parameters.
    fn named(&self, ty: Type) -> String {
        let mut text = self.types.display(ty);
        // From the highest number down, so that `$1` does not match in `$10`.
        for (i, param) in self.kernel.type_params.iter().enumerate().rev() {
            text = text.replace(&format!("${i}"), &param.name);
        }
        for (i, param) in self.kernel.const_params.iter().enumerate().rev() {
            text = text.replace(&format!("#{i}"), &param.name);
        }
        text
    }

    fn describe_fields(&self, ty: Type) -> String {
        let Some(data) = self.types.as_struct(ty) else {
            return String::new();
        };
        let field = |(name, ty): &(String, Type)| format!("{name}: {}", self.named(*ty));
        let fields: Vec<_> = data.fields.iter().map(field).collect();
        let align = match data.align {
            1 => String::new(),
            align => format!(" align({align})"),
        };
        format!("{align} {{ {} }}", fields.join(", "))
    }

    fn place(&self, position: usize) -> Box<ArgumentPlace> {
        let param = &self.kernel.params[position];
        Box::new(ArgumentPlace {
            kernel: self.kernel.name.clone(),
            position,
            name: param.name.clone(),
            declared_at: self.module.display_location(param.location),
        })
    }

    fn declared_at(&self) -> String {
        self.module.display_location(self.kernel.location)
    }
}
