//! Calls: of device functions and of intrinsics.

use std::sync::Arc;

use crate::ir::free_name;
use crate::ir::{
    ArrayLen, ConstArg, Constant, Entity, FuncId, Function, FunctionKind, InstData, IntrinsicDef,
    Type, TypeData, TypeTable, ValueList,
};

use super::{BuildErrorKind, DeviceFn, KernelBuilder, Val};

impl KernelBuilder {
    /// Calls an intrinsic. The library wraps its intrinsics in functions; this is for those, and
    /// for rows of one's own.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let roots = Kernel::build("roots", |k| {
    ///     let x = k.slice_mut("x", k.ty::<f32>());
    ///     match kiln::stdlib::find("math.sqrt") {
    ///         Some(sqrt) => x.at(0).set(k.intrinsic(sqrt, &[x.at(0).get()])),
    ///         None => drop(k.intrinsic_error("there is no square root".to_owned(), Type::F32)),
    ///     }
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[9.0f32])?;
    /// jit.launch(&roots, 1, 1, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [3.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn intrinsic<'k>(&'k self, def: &'static IntrinsicDef, args: &[Val<'k>]) -> Val<'k> {
        let args: Vec<Val<'k>> = args.iter().map(|&a| self.adopt(a)).collect();
        let arg_types: Vec<Type> = args.iter().map(|a| a.ty).collect();
        if args.iter().any(|arg| self.is_recovered(*arg)) {
            return self.recovered(arg_types[0]);
        }
        let result = def.result_type(&mut self.state.borrow_mut().module.types, &arg_types);
        let result = match result {
            Ok(ty) => ty,
            Err(message) => {
                let ty = arg_types.first().copied().unwrap_or(Type::I32);
                return self.error(BuildErrorKind::Intrinsic(message), ty);
            }
        };
        let other = self.state.borrow().module.other_intrinsic(def);
        if let Some(other) = other {
            let message = other.conflict(def);
            return self.error(BuildErrorKind::Intrinsic(message), result);
        }
        let id = self.state.borrow_mut().module.intrinsic(def);
        let args = args.iter().map(|a| a.id).collect();
        self.emit(InstData::Intrinsic { id, args }, result)
    }

    /// Notes a wrong use of a library function at the caller's line, and gives a zero of type
    /// `ty` to go on with. For what the patterns of an intrinsic's row cannot say.
    #[track_caller]
    pub fn intrinsic_error(&self, message: String, ty: Type) -> Val<'_> {
        self.error(BuildErrorKind::Intrinsic(message), ty)
    }

    /// Calls a device function. Type parameters are determined by the arguments.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let scaled = DeviceFn::build("scaled", |k| {
    ///     let t = k.type_param("T").num();
    ///     let factor = k.const_param("FACTOR", Type::U32);
    ///     k.return_value(k.param("x", t) * factor.cast(t));
    /// })?;
    /// let square = DeviceFn::build("square", |k| {
    ///     let x = k.param("x", k.type_param("T").num());
    ///     k.return_value(x * x);
    /// })?;
    /// let both = Kernel::build("both", |k| {
    ///     let x = k.slice_mut("x", k.ty::<f32>());
    ///     let squared = k.call(&square, &[x.at(0).get()]);
    ///     x.at(0).set(k.call_with(&scaled, &[], &[("FACTOR", 10)], &[squared]));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[3.0f32])?;
    /// jit.launch(&both, 1, 1, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [90.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn call<'k>(&'k self, callee: &DeviceFn, args: &[Val<'k>]) -> Val<'k> {
        self.call_with(callee, &[], &[], args)
    }

    /// Calls a device function, giving type and const arguments that its arguments do not
    /// determine: both by the parameter's name.
    #[track_caller]
    pub fn call_with<'k>(
        &'k self,
        callee: &DeviceFn,
        type_args: &[(&str, Type)],
        const_args: &[(&str, i128)],
        args: &[Val<'k>],
    ) -> Val<'k> {
        let declaration = self.declare_callee(callee);
        let params = self.state.borrow().module.functions[declaration]
            .const_params
            .clone();
        let consts = params.iter().map(|param| {
            let given = const_args.iter().find(|(name, _)| *name == param.name);
            given.map(|(_, value)| ConstArg::Known(Constant::Int(*value)))
        });
        self.call_declared(callee, type_args, consts.collect(), args)
    }

    /// Calls a device function with type arguments by name, and its first const arguments.
    #[track_caller]
    pub(crate) fn call_bound<'k>(
        &'k self,
        callee: &DeviceFn,
        type_args: &[(&str, Type)],
        const_args: Vec<ConstArg>,
        args: &[Val<'k>],
    ) -> Val<'k> {
        let declaration = self.declare_callee(callee);
        let count = self.state.borrow().module.functions[declaration]
            .const_params
            .len();
        let mut consts: Vec<Option<ConstArg>> = const_args.into_iter().map(Some).collect();
        consts.resize(count, None);
        self.call_declared(callee, type_args, consts, args)
    }

    #[track_caller]
    fn call_declared<'k>(
        &'k self,
        callee: &DeviceFn,
        type_args: &[(&str, Type)],
        const_args: Vec<Option<ConstArg>>,
        args: &[Val<'k>],
    ) -> Val<'k> {
        let args: Vec<Val<'k>> = args.iter().map(|&a| self.adopt(a)).collect();
        let declaration = self.declare_callee(callee);
        let signature = self.state.borrow().module.functions[declaration].clone();
        if signature.params.len() != args.len() {
            let what = format!("`{}`", signature.name);
            let (expected, found) = (signature.params.len(), args.len());
            return self.error(
                BuildErrorKind::Count {
                    what,
                    expected,
                    found,
                },
                signature.result,
            );
        }
        if args.iter().any(|arg| self.is_recovered(*arg)) {
            // What they would tell of the callee's parameters is not known.
            return self.recovered(Type::I32);
        }
        let mut bound = Bindings::new(&signature, type_args, const_args);
        if let Err(wrong) = self.unify_args(&mut bound, &signature, &args) {
            return wrong;
        }
        let (type_args, const_args) = match bound.finish(&signature) {
            Ok(bound) => bound,
            Err(parameter) => {
                let callee_at = callee.defined_at();
                let callee = signature.name.clone();
                let kind = BuildErrorKind::NotInferred {
                    callee,
                    callee_at,
                    parameter,
                };
                return self.error(kind, Type::I32);
            }
        };
        let result = self.substitute(signature.result, &type_args, &const_args);
        let args: ValueList = args.iter().map(|a| a.id).collect();
        self.emit(
            InstData::Call {
                callee: declaration,
                type_args,
                const_args,
                args,
            },
            result,
        )
    }

    /// Determines type parameters by the arguments; `Err` with what stands for the result if one does not fit.
    #[track_caller]
    fn unify_args<'k>(
        &'k self,
        bound: &mut Bindings,
        signature: &Function,
        args: &[Val<'k>],
    ) -> Result<(), Val<'k>> {
        for (param, arg) in signature.params.iter().zip(args) {
            let wanted = signature.type_of(param.value);
            let matches = {
                let state = self.state.borrow();
                bound.unify(&state.module.types, wanted, arg.ty)
            };
            if !matches {
                let operation = format!("parameter `{}` of `{}`", param.name, signature.name);
                let expected = format!("a `{}`", self.type_name(wanted));
                return Err(self.wrong_type(&operation, expected, *arg, arg.ty));
            }
        }
        Ok(())
    }

    /// The declaration of `callee` in the module being built, entered at its first call.
    pub(crate) fn declare_callee(&self, callee: &DeviceFn) -> FuncId {
        let mut state = self.state.borrow_mut();
        let known = state
            .callees
            .iter()
            .find(|(_, d)| Arc::ptr_eq(d, callee.definition()));
        if let Some((id, _)) = known {
            return *id;
        }
        let body = callee.definition().body();
        let source = &body.module.functions[body.function];
        let name = free_name(&source.name, |name| {
            let mut others = state.module.functions.values();
            state.function.name == name || others.any(|f| f.name == name)
        });
        let at = body.module.display_location(source.location);
        let location = declared_location(&mut state.module, &body.module, source);
        debug_assert!(!at.is_empty());
        let mut declaration = Function::new(name, FunctionKind::Device, location);
        declaration.is_declaration = true;
        declaration.type_params = source.type_params.clone();
        declaration.const_params = source.const_params.clone();
        let types = &mut state.module.types;
        for param in &source.params {
            let ty = types.import(&body.module.types, source.type_of(param.value));
            declaration.add_param(&param.name, ty, location);
        }
        declaration.result = types.import(&body.module.types, source.result);
        let id = state.module.functions.push(declaration);
        state.callees.push((id, callee.definition().clone()));
        id
    }

    fn substitute(&self, ty: Type, type_args: &[Type], const_args: &[ConstArg]) -> Type {
        self.state
            .borrow_mut()
            .module
            .types
            .substitute(ty, type_args, const_args)
    }
}

fn declared_location(
    module: &mut crate::ir::Module,
    from: &crate::ir::Module,
    source: &Function,
) -> crate::ir::Location {
    let file = module.file(&from.files[source.location.file]);
    crate::ir::Location {
        file,
        inlined: None,
        ..source.location
    }
}

/// What the type and const parameters of a callee are found to be.
pub(super) struct Bindings {
    types: Vec<Option<Type>>,
    consts: Vec<Option<ConstArg>>,
}

impl Bindings {
    fn new(callee: &Function, types: &[(&str, Type)], consts: Vec<Option<ConstArg>>) -> Self {
        let named = |name: &str| types.iter().find(|(n, _)| *n == name).map(|(_, ty)| *ty);
        Bindings {
            types: callee.type_params.iter().map(|p| named(&p.name)).collect(),
            consts,
        }
    }

    /// Bindings of type and const parameters, some of them given.
    pub(super) fn of(types: Vec<Option<Type>>, consts: Vec<Option<ConstArg>>) -> Self {
        Bindings { types, consts }
    }

    /// Binds what `actual` tells of `pattern`, where a reference to an array stands for a slice, and
    /// a mutable one in any memory for another. rustc has checked that they fit.
    pub(super) fn unify_shape(&mut self, types: &TypeTable, pattern: Type, actual: Type) {
        let element = |ty: Type| match types.as_slice(ty) {
            Some((elements, _)) => Some(elements.pointee),
            None => Some(types.as_array(types.as_pointer(ty)?.0)?.0),
        };
        match (types.data(pattern), types.data(actual)) {
            (TypeData::Pointer { pointee: p, .. }, TypeData::Pointer { pointee: a, .. }) => {
                self.unify(types, *p, *a);
            }
            (TypeData::Slice { element: p, .. }, _) => {
                if let Some(a) = element(actual) {
                    self.unify(types, *p, a);
                }
            }
            (TypeData::Struct(p), TypeData::Struct(a)) => {
                let fields = types.struct_data(*p).fields.iter();
                for (p, a) in fields.zip(&types.struct_data(*a).fields) {
                    self.unify_shape(types, p.1, a.1);
                }
            }
            _ => {
                self.unify(types, pattern, actual);
            }
        }
    }

    /// What the type parameters are bound to, and the const parameters, or the first of them that is not.
    pub(super) fn found(self) -> (Result<Vec<Type>, usize>, Result<Vec<ConstArg>, usize>) {
        let types = self.types.into_iter().enumerate();
        let consts = self.consts.into_iter().enumerate();
        (
            types.map(|(i, ty)| ty.ok_or(i)).collect(),
            consts.map(|(i, number)| number.ok_or(i)).collect(),
        )
    }

    /// Whether `actual` is an instance of `pattern`, binding parameters on the way. A mutable
    /// pointer or slice is accepted where a read-only one is wanted only if the types are equal:
    /// callees are specialized on what they get.
    ///
    /// Equal types tell as much as others: a generic caller has type parameters of its own, and those
    /// of caller and callee are numbered alike.
    fn unify(&mut self, types: &TypeTable, pattern: Type, actual: Type) -> bool {
        match (types.data(pattern), types.data(actual)) {
            (TypeData::Param(p), _) => match &mut self.types[p.index()] {
                Some(bound) => *bound == actual,
                slot => {
                    *slot = Some(actual);
                    true
                }
            },
            (
                TypeData::Array {
                    element: p,
                    len: pattern_len,
                },
                TypeData::Array { element: a, len },
            ) => self.unify_len(*pattern_len, *len) && self.unify(types, *p, *a),
            (
                TypeData::Pointer {
                    pointee: p,
                    space: s,
                    mutable: m,
                },
                TypeData::Pointer {
                    pointee: a,
                    space: t,
                    mutable: n,
                },
            ) => s == t && m == n && self.unify(types, *p, *a),
            (
                TypeData::Slice {
                    element: p,
                    space: s,
                    mutable: m,
                    wide: w,
                },
                TypeData::Slice {
                    element: a,
                    space: t,
                    mutable: n,
                    wide: v,
                },
            ) => s == t && m == n && w == v && self.unify(types, *p, *a),
            (TypeData::Struct(p), TypeData::Struct(a)) => {
                let (p, a) = (types.struct_data(*p), types.struct_data(*a));
                let same_names = (&p.name, p.align) == (&a.name, a.align)
                    && p.fields.len() == a.fields.len()
                    && p.fields.iter().zip(&a.fields).all(|(x, y)| x.0 == y.0);
                let mut fields = p.fields.iter().zip(&a.fields);
                same_names && fields.all(|(p, a)| self.unify(types, p.1, a.1))
            }
            _ => pattern == actual,
        }
    }

    fn unify_len(&mut self, pattern: ArrayLen, actual: ArrayLen) -> bool {
        let actual = match actual {
            ArrayLen::Known(n) => ConstArg::Known(Constant::Int(n.into())),
            ArrayLen::Param(p) => ConstArg::Param(p),
        };
        match pattern {
            ArrayLen::Known(n) => actual == ConstArg::Known(Constant::Int(n.into())),
            ArrayLen::Param(p) => match &mut self.consts[p.index()] {
                Some(bound) => *bound == actual,
                slot => {
                    *slot = Some(actual);
                    true
                }
            },
        }
    }

    /// All bindings, or the name of a parameter that has none.
    fn finish(self, callee: &Function) -> Result<(Vec<Type>, Vec<ConstArg>), String> {
        let mut types = Vec::new();
        for (param, bound) in callee.type_params.iter().zip(self.types) {
            types.push(bound.ok_or_else(|| param.name.clone())?);
        }
        let mut consts = Vec::new();
        for (param, bound) in callee.const_params.iter().zip(self.consts) {
            consts.push(bound.ok_or_else(|| param.name.clone())?);
        }
        Ok((types, consts))
    }
}
