//! What only descriptions that the macro writes need of a builder: types as a table, and addresses
//! made from others.

use crate::ir::Entity;
use crate::ir::{AddressSpace, ArrayLen, ConstArg, Constant, InstData, Type, TypeTable, Value};

use super::{BuildErrorKind, DeviceFn, KernelBuilder, Val};

impl KernelBuilder {
    /// Reads or extends the types of the module.
    pub(crate) fn with_types<R>(&self, look: impl FnOnce(&mut TypeTable) -> R) -> R {
        look(&mut self.state.borrow_mut().module.types)
    }

    /// What stands for no value.
    pub(crate) fn unit(&self) -> Val<'_> {
        Val {
            builder: self,
            id: Value::from_index(u32::MAX as usize - 1),
            ty: Type::UNIT,
        }
    }

    /// Keeps the scalars of a constant, and returns their number.
    pub(crate) fn keep_constants(&self, scalars: Vec<Constant>) -> usize {
        let constants = &mut self.state.borrow_mut().constants;
        constants.push(scalars);
        constants.len() - 1
    }

    /// The scalars of a constant.
    pub(crate) fn kept_constants(&self, number: usize) -> Vec<Constant> {
        let state = self.state.borrow();
        state.constants.get(number).cloned().unwrap_or_default()
    }

    /// Describes a call with const arguments, which the function that is called takes.
    pub(crate) fn giving<R>(&self, consts: Vec<ConstArg>, call: impl FnOnce() -> R) -> R {
        self.given_consts.replace(consts);
        let result = call();
        self.given_consts.take();
        result
    }

    /// Takes the const arguments of the call that is described.
    pub(crate) fn given_consts(&self) -> Vec<ConstArg> {
        self.given_consts.take()
    }

    /// Leaves of the const arguments that are given those with these numbers: the callee has no others.
    pub(crate) fn keep_consts(&self, numbers: &[usize]) {
        let all = self.given_consts.take();
        let kept = numbers
            .iter()
            .filter_map(|&number| all.get(number).cloned());
        let kept = kept.collect();
        self.given_consts.replace(kept);
    }

    /// The names of a callee's type parameters, and the types of its parameters.
    pub(crate) fn callee_params(&self, callee: &DeviceFn) -> (Vec<String>, Vec<Type>) {
        let declaration = self.declare_callee(callee);
        let state = self.state.borrow();
        let function = &state.module.functions[declaration];
        let names = function.type_params.iter().map(|p| p.name.clone());
        let types = function.params.iter().map(|p| function.type_of(p.value));
        (names.collect(), types.collect())
    }

    /// A pointer or slice as another one that points at the same, checked by the verifier.
    #[track_caller]
    pub(crate) fn space_cast<'k>(&'k self, value: Val<'k>, ty: Type) -> Val<'k> {
        let value = self.adopt(value);
        self.emit(InstData::SpaceCast { arg: value.id }, ty)
    }

    /// A pointer to an array as a slice of its elements.
    #[track_caller]
    pub(crate) fn slice_of_array<'k>(&'k self, array: Val<'k>) -> Val<'k> {
        let array = self.adopt(array);
        let parts = self.with_types(|types| {
            let (array, space, mutable) = types.as_pointer(array.ty)?;
            let (element, len) = types.as_array(array)?;
            Some((element, len, space, mutable))
        });
        let Some((element, len, space, mutable)) = parts else {
            return self.wrong_type("a slice", "an array", array, array.ty);
        };
        let len = match len {
            ArrayLen::Known(len) if u32::try_from(len).is_ok() => {
                self.constant(Constant::Int(len.into()), Type::U32)
            }
            ArrayLen::Known(_) => {
                let message = "this array is too long for a slice".to_owned();
                return self.error(BuildErrorKind::Unsupported(message), array.ty);
            }
            ArrayLen::Param(param) => {
                let len = self.emit(InstData::ConstParam(param), Type::U64);
                len.cast(Type::U32)
            }
        };
        self.first_elements(array, element, space, mutable, len)
    }

    /// A length as a `u64` if taking it is the last thing built; other values as they are. `x.len() as
    /// u64` takes all of a length, of which a `usize` of kernels holds 32 bits.
    pub(crate) fn whole_len<'k>(&'k self, value: Val<'k>) -> Val<'k> {
        let mut state = self.state.borrow_mut();
        let here = state.here();
        let function = &mut state.function;
        let last = function.regions[here].insts.last().copied();
        let Some(last) = last.map(|inst| &function.insts[inst]) else {
            return value;
        };
        match (&last.data, last.result) {
            (InstData::SliceLen { .. }, Some(result)) if result == value.id => {
                function.values[result].ty = Type::U64;
                Val {
                    ty: Type::U64,
                    ..value
                }
            }
            _ => value,
        }
    }

    #[track_caller]
    fn first_elements<'k>(
        &'k self,
        array: Val<'k>,
        element: Type,
        space: AddressSpace,
        mutable: bool,
        len: Val<'k>,
    ) -> Val<'k> {
        let zero = self.constant(Constant::Int(0), Type::U32);
        let first = InstData::ElementPtr {
            ptr: array.id,
            index: zero.id,
            checked: false,
        };
        let ptr = self.emit(first, self.pointer_type(element, space, mutable));
        let ty = self.slice_type(element, space, mutable);
        let data = InstData::SliceNew {
            ptr: ptr.id,
            len: len.id,
        };
        self.emit(data, ty)
    }
}

/// The bounds of a part of a slice, as far as they are written, each a `u32`.
#[derive(Copy, Clone)]
pub(crate) struct PartBounds<'k> {
    /// The index of the first element.
    pub(crate) from: Option<Val<'k>>,
    /// The index at the end.
    pub(crate) to: Option<Val<'k>>,
    /// Whether the part ends after the element at `to`.
    pub(crate) inclusive: bool,
}

/// Parts of slices.
impl KernelBuilder {
    /// A part of a slice. Bounds that Rust refuses end the thread: an end past the length is reported as
    /// an index of the slice, a start past the end as one of the slice up to there.
    #[track_caller]
    pub(crate) fn part_of_slice<'k>(&'k self, slice: Val<'k>, bounds: PartBounds<'k>) -> Val<'k> {
        let slice = self.adopt(slice);
        let Some((at, _)) = self.as_slice(slice.ty) else {
            return self.wrong_type("a part", "a slice or array", slice, slice.ty);
        };
        let one = self.constant(Constant::Int(1), Type::U32);
        let end = match bounds.to {
            None => slice.len(),
            Some(to) if bounds.inclusive => to + one,
            Some(to) => to,
        };
        let zero = self.constant(Constant::Int(0), Type::U32);
        let from = bounds.from.unwrap_or(zero);
        let first = self.emit(
            InstData::SlicePtr { slice: slice.id },
            self.pointer_type(at.pointee, at.space, at.mutable),
        );
        let ty = self.slice_type(at.pointee, at.space, at.mutable);
        let of = |ptr: Val<'k>, len: Val<'k>| {
            let (ptr, len) = (ptr.id, len.id);
            self.emit(InstData::SliceNew { ptr, len }, ty)
        };
        self.at_location(self.here(), || {
            if let Some(to) = bounds.to {
                let past = match bounds.inclusive {
                    true => to.ge(slice.len()),
                    false => to.gt(slice.len()),
                };
                self.if_(past, || {
                    let _ = slice.at(to);
                });
            }
            if bounds.from.is_some() {
                self.if_(from.gt(end), || {
                    let _ = of(first, end).at(from);
                });
            }
            of(first.offset(from), end - from)
        })
    }

    /// A part of a slice that is known to be there.
    pub(crate) fn known_part_of_slice<'k>(
        &'k self,
        slice: Val<'k>,
        from: Val<'k>,
        len: Val<'k>,
    ) -> Val<'k> {
        let Some((at, _)) = self.as_slice(slice.ty) else {
            return self.wrong_type("a part", "a slice or array", slice, slice.ty);
        };
        let first = self.emit(
            InstData::SlicePtr { slice: slice.id },
            self.pointer_type(at.pointee, at.space, at.mutable),
        );
        let (ptr, len) = (first.offset(from).id, len.id);
        let ty = self.slice_type(at.pointee, at.space, at.mutable);
        self.emit(InstData::SliceNew { ptr, len }, ty)
    }
}

/// Scopes: what type parameters stand for while a function is described in place of its call.
impl KernelBuilder {
    /// The scope that is described.
    pub(crate) fn scope(&self) -> Option<usize> {
        self.inlining.current.get()
    }

    /// Goes on in another scope, and returns the one before.
    pub(crate) fn enter_scope(&self, scope: Option<usize>) -> Option<usize> {
        self.inlining.current.replace(scope)
    }

    /// A scope with these types for the parameters.
    pub(crate) fn new_scope(&self, types: Vec<Type>) -> usize {
        let mut scopes = self.inlining.scopes.borrow_mut();
        scopes.push(types);
        scopes.len() - 1
    }

    /// What the type parameters stand for, in a scope.
    pub(crate) fn scope_types(&self) -> Option<Vec<Type>> {
        let scopes = self.inlining.scopes.borrow();
        scopes.get(self.scope()?).cloned()
    }

    /// Whether another function may be described in place; if so it is under way.
    pub(crate) fn may_inline(&self, max_depth: usize, max_inlined: usize) -> bool {
        let depth = self.inlining.depth.get();
        let may = depth < max_depth && self.inlining.scopes.borrow().len() < max_inlined;
        if may {
            self.inlining.depth.set(depth + 1);
        }
        may
    }

    /// One that was under way is done.
    pub(crate) fn inlined_one(&self) {
        self.inlining.depth.set(self.inlining.depth.get() - 1);
    }

    /// What the type and const parameters of a function are when it is called with arguments of these types:
    /// each may be given, too. The error is one that nothing tells.
    pub(crate) fn infer<'n>(
        &self,
        type_params: &[(&'n str, Option<Type>)],
        consts: Vec<Option<ConstArg>>,
        declared: &[Type],
        args: &[Type],
    ) -> Result<(Vec<Type>, Vec<ConstArg>), Parameter<'n>> {
        let state = self.state.borrow();
        let types = &state.module.types;
        let given = type_params.iter().map(|(_, given)| *given);
        let mut bound = super::call::Bindings::of(given.collect(), consts);
        for (&wanted, &arg) in declared.iter().zip(args) {
            bound.unify_shape(types, wanted, arg);
        }
        let (types, consts) = bound.found();
        let types = types.map_err(|index| Parameter::Type(type_params[index].0))?;
        Ok((types, consts.map_err(Parameter::Const)?))
    }
}

/// A parameter that nothing tells: a type's by its name, a number's by its place.
pub(crate) enum Parameter<'n> {
    Type(&'n str),
    Const(usize),
}
