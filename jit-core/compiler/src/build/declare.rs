//! What a function declares: parameters, types, shared and local memory, constants.

use std::sync::Arc;

use crate::ir::{
    AddressSpace, ArrayLen, AttributeValue, ConstParam, ConstParamData, Constant, Entity,
    FunctionKind, GlobalData, Inline, InstData, LaunchBounds, SharedData, StructData, Type,
    TypeBound, TypeData, TypeParamData,
};
use crate::value::{KernelType, KernelValue};

use super::{BuildErrorKind, IntoVal, KernelBuilder, Place, Val};

/// A type parameter whose bound is still to be said.
#[derive(Debug)]
pub struct TypeParamBuilder<'k> {
    builder: &'k KernelBuilder,
    name: String,
}

impl std::fmt::Debug for KernelBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KernelBuilder({})", self.name())
    }
}

impl TypeParamBuilder<'_> {
    /// A floating-point type.
    pub fn float(self) -> Type {
        self.bounded(TypeBound::Float)
    }

    /// An integer type.
    pub fn int(self) -> Type {
        self.bounded(TypeBound::Int)
    }

    /// An integer or floating-point type.
    pub fn num(self) -> Type {
        self.bounded(TypeBound::Num)
    }

    /// Any type: values can be moved, loaded and stored, nothing else.
    pub fn any(self) -> Type {
        self.bounded(TypeBound::Any)
    }

    fn bounded(self, bound: TypeBound) -> Type {
        let mut state = self.builder.state.borrow_mut();
        let param = crate::ir::TypeParam::from_index(state.function.type_params.len());
        state.function.type_params.push(TypeParamData {
            name: self.name,
            bound,
        });
        state.module.types.intern(TypeData::Param(param))
    }
}

impl KernelBuilder {
    /// Declares a type parameter; its bound follows: `k.type_param("T").float()`. It is bound to a
    /// type when the kernel is launched or the function is called.
    pub fn type_param(&self, name: &str) -> TypeParamBuilder<'_> {
        TypeParamBuilder {
            builder: self,
            name: name.to_owned(),
        }
    }

    /// Declares a const parameter: an integer or bool that is known when the kernel is
    /// specialized. A launch gives it by name.
    #[track_caller]
    pub fn const_param(&self, name: &str, ty: Type) -> Val<'_> {
        let param = self.declare_const(name, ty);
        self.emit(InstData::ConstParam(param), ty)
    }

    /// Declares a const parameter of type `u64` to be the length of an array type; see
    /// [`KernelBuilder::array_of_len`].
    pub fn const_len(&self, name: &str) -> ConstParam {
        self.declare_const(name, Type::U64)
    }

    pub(crate) fn declare_const(&self, name: &str, ty: Type) -> ConstParam {
        let params = &mut self.state.borrow_mut().function.const_params;
        let param = ConstParam::from_index(params.len());
        params.push(ConstParamData {
            name: name.to_owned(),
            ty,
        });
        param
    }

    /// Declares a parameter passed by value: a scalar, vector, struct or array.
    ///
    /// Of a kernel, a struct with slices inside becomes a parameter for each of its fields, `t.data` and
    /// `t.rows` of a `t`, which a launch passes [together](crate::view) or one by one; what this gives is
    /// the struct of them.
    #[track_caller]
    pub fn param(&self, name: &str, ty: Type) -> Val<'_> {
        match self.separate_fields(ty) {
            Some(fields) => {
                let part =
                    |(field, ty): &(String, Type)| self.param(&format!("{name}.{field}"), *ty);
                let parts: Vec<Val<'_>> = fields.iter().map(part).collect();
                self.construct(ty, &parts)
            }
            None => self.one_param(name, ty),
        }
    }

    /// The fields of a struct that are parameters of their own where the struct is one of a kernel: a launch
    /// has no layout for slices inside of others.
    fn separate_fields(&self, ty: Type) -> Option<Vec<(String, Type)>> {
        let state = self.state.borrow();
        let types = &state.module.types;
        let fields = &types.as_struct(ty)?.fields;
        let is_kernel = state.function.kind == FunctionKind::Kernel;
        (is_kernel && types.has_references(ty)).then(|| fields.clone())
    }

    #[track_caller]
    fn one_param(&self, name: &str, ty: Type) -> Val<'_> {
        let location = self.here();
        let mut state = self.state.borrow_mut();
        if state.function.params.iter().any(|p| p.name == name) {
            drop(state);
            let message = format!("there are two parameters called `{name}`; rename one");
            return self.error(BuildErrorKind::Declaration(message), ty);
        }
        let id = state.function.add_param(name, ty, location);
        // A parameter belongs to the whole body, wherever it is declared.
        let outermost = state.open[0].scope;
        state.scopes.push(outermost);
        drop(state);
        Val {
            builder: self,
            id,
            ty,
        }
    }

    /// Declares a parameter that is a read-only slice.
    #[track_caller]
    pub fn slice(&self, name: &str, element: Type) -> Val<'_> {
        self.param(name, self.slice_type(element, AddressSpace::Generic, false))
    }

    /// Declares a parameter that is a slice the kernel may write.
    #[track_caller]
    pub fn slice_mut(&self, name: &str, element: Type) -> Val<'_> {
        self.param(name, self.slice_type(element, AddressSpace::Generic, true))
    }

    /// Declares a parameter that is a read-only pointer, without a length.
    #[track_caller]
    pub fn pointer(&self, name: &str, pointee: Type) -> Val<'_> {
        self.param(
            name,
            self.pointer_type(pointee, AddressSpace::Generic, false),
        )
    }

    /// Declares a parameter that is a pointer the kernel may write through, without a length.
    #[track_caller]
    pub fn pointer_mut(&self, name: &str, pointee: Type) -> Val<'_> {
        self.param(
            name,
            self.pointer_type(pointee, AddressSpace::Generic, true),
        )
    }

    /// The IR type of a Rust type.
    pub fn ty<T: KernelType>(&self) -> Type {
        T::ir_type(&mut self.state.borrow_mut().module.types)
    }

    /// Declares parameters that are a `#[derive(KernelView)]` struct together, and gives the struct:
    /// `k.view::<Tensor>("t").field("data")`. A launch passes what [becomes](crate::view::ToKernel) the view.
    #[track_caller]
    pub fn view<V: KernelValue>(&self, name: &str) -> Val<'_> {
        let ty = V::type_in(&mut self.state.borrow_mut().module.types);
        self.param(name, ty)
    }

    /// A fixed array type.
    pub fn array(&self, element: Type, len: u64) -> Type {
        self.state.borrow_mut().module.types.array(element, len)
    }

    /// A fixed array type whose length is a const parameter.
    pub fn array_of_len(&self, element: Type, len: ConstParam) -> Type {
        let data = TypeData::Array {
            element,
            len: ArrayLen::Param(len),
        };
        self.state.borrow_mut().module.types.intern(data)
    }

    /// A struct type with C layout.
    pub fn struct_type(&self, name: &str, fields: &[(&str, Type)]) -> Type {
        let fields = fields
            .iter()
            .map(|(n, ty)| ((*n).to_owned(), *ty))
            .collect();
        let data = StructData {
            name: name.to_owned(),
            fields,
        };
        self.state.borrow_mut().module.types.intern_struct(data)
    }

    pub(super) fn slice_type(&self, element: Type, space: AddressSpace, mutable: bool) -> Type {
        self.state
            .borrow_mut()
            .module
            .types
            .slice(element, space, mutable)
    }

    /// Declares a shared variable: one per block, uninitialized (CUDA guide, `__shared__`).
    #[track_caller]
    pub fn shared(&self, name: &str, ty: Type) -> Place<'_> {
        let data = SharedData {
            name: name.to_owned(),
            ty,
            align: 16,
        };
        let var = self.state.borrow_mut().function.shared.push(data);
        let ptr_ty = self.pointer_type(ty, AddressSpace::Shared, true);
        Place::new(self.emit(InstData::SharedAddr(var), ptr_ty), ty, true)
    }

    /// Declares a shared array of `len` elements, as a slice.
    #[track_caller]
    pub fn shared_array(&self, name: &str, element: Type, len: u32) -> Val<'_> {
        let ty = self.array(element, len.into());
        let place = self.shared(name, ty);
        self.array_slice(place, element, AddressSpace::Shared, len)
    }

    /// All dynamic shared memory of the launch, as a slice; how many elements it has is decided by
    /// the launch.
    #[track_caller]
    pub fn dynamic_shared(&self, element: Type) -> Val<'_> {
        let ty = self.slice_type(element, AddressSpace::Shared, true);
        self.emit(InstData::DynamicShared, ty)
    }

    /// Memory of this thread for one value: zeros whenever control comes here. A launch with
    /// [`Checks::uninitialized`](crate::checks::Checks::uninitialized) finds reads of what was not
    /// written since.
    #[track_caller]
    pub fn local(&self, ty: Type) -> Place<'_> {
        let ptr_ty = self.pointer_type(ty, AddressSpace::Local, true);
        Place::new(self.emit(InstData::LocalAlloc, ptr_ty), ty, true)
    }

    /// An array of this thread, as a slice, with the content that [`KernelBuilder::local`] has.
    #[track_caller]
    pub fn local_array(&self, element: Type, len: u32) -> Val<'_> {
        let place = self.local(self.array(element, len.into()));
        self.array_slice(place, element, AddressSpace::Local, len)
    }

    #[track_caller]
    fn array_slice<'k>(
        &'k self,
        array: Place<'k>,
        element: Type,
        space: AddressSpace,
        len: u32,
    ) -> Val<'k> {
        let zero = self.constant(Constant::Int(0), Type::U32);
        let ptr_ty = self.pointer_type(element, space, true);
        let first = InstData::ElementPtr {
            ptr: array.address().id,
            index: zero.id,
            checked: false,
        };
        let ptr = self.emit(first, ptr_ty);
        let len = self.constant(Constant::Int(len.into()), Type::U32);
        let ty = self.slice_type(element, space, true);
        self.emit(
            InstData::SliceNew {
                ptr: ptr.id,
                len: len.id,
            },
            ty,
        )
    }

    /// An array in the device's memory that all kernels of a `Jit` share by its name, as a slice
    /// (CUDA guide, `__device__`): it is made with these values at the first launch, and kept from launch to
    /// launch, whatever is redefined. The host has it by `Jit::global`. Another kernel that
    /// declares it has the same memory, and other values at first count for nothing then; other types or lengths
    /// are an error of the launch. Threads that write what others read need atomics.
    #[track_caller]
    pub fn global<T: KernelType>(&self, name: &str, values: &[T]) -> Val<'_> {
        let initial = crate::value::defined_bytes(values).into();
        self.global_array(name, self.ty::<T>(), values.len() as u32, Some(initial))
    }

    /// An array in the device's memory as [`KernelBuilder::global`] makes it, of `len` zeros.
    #[track_caller]
    pub fn global_zeros<T: KernelType>(&self, name: &str, len: u32) -> Val<'_> {
        self.global_array(name, self.ty::<T>(), len, None)
    }

    #[track_caller]
    fn global_array(
        &self,
        name: &str,
        element: Type,
        len: u32,
        initial: Option<Arc<[u8]>>,
    ) -> Val<'_> {
        let array = self.array(element, len.into());
        let location = self.here();
        let global = {
            let module = &mut self.state.borrow_mut().module;
            module.add_global(name, array, initial, location)
        };
        let ptr_ty = self.pointer_type(array, AddressSpace::Global, true);
        let place = Place::new(self.emit(InstData::Hidden(global), ptr_ty), array, true);
        self.array_slice(place, element, AddressSpace::Global, len)
    }

    /// A read-only table that becomes part of the code, as a slice (CUDA guide, `__constant__`).
    #[track_caller]
    pub fn constant_array<T: KernelType>(&self, name: &str, values: &[T]) -> Val<'_> {
        let element = self.ty::<T>();
        let ty = self.array(element, values.len() as u64);
        let bytes = crate::value::defined_bytes(values).into();
        let ptr_ty = self.pointer_type(ty, AddressSpace::Constant, false);
        let global = {
            let mut state = self.state.borrow_mut();
            let name = format!("{name}{}", state.module.globals.len());
            state.module.globals.push(GlobalData { name, ty, bytes })
        };
        let array = self.emit(InstData::GlobalAddr(global), ptr_ty);
        let zero = self.constant(Constant::Int(0), Type::U32);
        let ptr_ty = self.pointer_type(element, AddressSpace::Constant, false);
        let data = InstData::ElementPtr {
            ptr: array.id,
            index: zero.id,
            checked: false,
        };
        let ptr = self.emit(data, ptr_ty);
        let len = self.constant(Constant::Int(values.len() as i128), Type::U32);
        let ty = self.slice_type(element, AddressSpace::Constant, false);
        self.emit(
            InstData::SliceNew {
                ptr: ptr.id,
                len: len.id,
            },
            ty,
        )
    }

    /// A literal of a given type: `k.lit(t, 2)`.
    #[track_caller]
    pub fn lit<'k>(&'k self, ty: Type, literal: impl IntoVal<'k>) -> Val<'k> {
        literal.into_val(self, Some(ty))
    }

    /// The zero of any type: 0, 0.0, false, all fields zero.
    #[track_caller]
    pub fn zero(&self, ty: Type) -> Val<'_> {
        self.constant(Constant::Zero, ty)
    }

    /// A struct, array or vector value from all its parts, in order.
    #[track_caller]
    pub fn construct<'k>(&'k self, ty: Type, parts: &[Val<'k>]) -> Val<'k> {
        let wanted: Vec<Type> = match self.type_data(ty) {
            TypeData::Struct(id) => {
                let state = self.state.borrow();
                state
                    .module
                    .types
                    .struct_data(id)
                    .fields
                    .iter()
                    .map(|f| f.1)
                    .collect()
            }
            TypeData::Vector { element, lanes } => vec![Type::scalar(element); lanes.into()],
            TypeData::Array {
                element,
                len: ArrayLen::Known(n),
            } if n <= 1 << 16 => {
                vec![element; n as usize]
            }
            _ => {
                let zero = self.zero(ty);
                return self.wrong_type("`construct`", "a struct, array or vector type", zero, ty);
            }
        };
        if wanted.len() != parts.len() {
            let what = format!("`{}`", self.type_name(ty));
            let kind = BuildErrorKind::Count {
                what,
                expected: wanted.len(),
                found: parts.len(),
            };
            return self.error(kind, ty);
        }
        let parts = parts.iter().zip(&wanted).map(|(&part, &wanted)| {
            let part = self.adopt(part);
            if part.ty == wanted {
                return part.id;
            }
            let expected = format!("a `{}`", self.type_name(wanted));
            self.wrong_type("a part of `construct`", expected, part, wanted)
                .id
        });
        let parts = parts.collect();
        self.emit(InstData::Construct { parts }, ty)
    }

    /// Says something of the function for hooks to read
    /// ([`HookContext::attribute`](crate::hook::HookContext::attribute) for a kernel,
    /// [`Function::attributes`](crate::ir::Function::attributes) in the IR). The compiler itself reads none.
    ///
    /// ```
    /// # use kiln_compiler::build::Kernel;
    /// let kernel = Kernel::build("k", |k| {
    ///     k.attribute("fast_math", true);
    ///     k.attribute("unroll", 4);
    /// })?;
    /// # drop(kernel);
    /// # Ok::<(), kiln_compiler::error::Error>(())
    /// ```
    pub fn attribute(&self, name: &str, value: impl Into<AttributeValue>) {
        let attributes = &mut self.state.borrow_mut().function.attributes;
        attributes.set(name, value);
    }

    /// How calls of the device function that is described are to be inlined. Code for the CPU has no
    /// calls: there it says nothing.
    #[track_caller]
    pub fn inline(&self, inline: Inline) {
        if self.state.borrow().function.kind == FunctionKind::Kernel {
            let message = "a kernel is launched, not called, and so not inlined";
            self.note(BuildErrorKind::Declaration(message.to_owned()));
            return;
        }
        self.state.borrow_mut().function.inline = inline;
    }

    /// Promises that no launch will have more than `max_threads` threads in a block, and asks for
    /// registers so that `min_blocks` blocks (0: as it comes) are resident on a multiprocessor
    /// (CUDA guide, `__launch_bounds__`).
    #[track_caller]
    pub fn launch_bounds(&self, max_threads: u32, min_blocks: u32) {
        if self.state.borrow().function.kind != FunctionKind::Kernel {
            let message = "launch bounds belong to a kernel, not to a device function";
            self.note(BuildErrorKind::Declaration(message.to_owned()));
            return;
        }
        let bounds = LaunchBounds {
            max_threads,
            min_blocks,
        };
        self.state.borrow_mut().function.launch_bounds = Some(bounds);
    }
}
