//! What a function declares: parameters, types, shared and local memory, constants.

use std::sync::Arc;

use crate::ir::{
    AddressSpace, ArrayLen, AttributeValue, ConstParam, ConstParamData, Constant, Entity,
    FunctionKind, GlobalData, Inline, InstData, LaunchBounds, SharedData, StaticAssertion,
    StructData, Type, TypeBound, TypeData, TypeParamData,
};
use crate::value::{KernelType, KernelValue};

use super::{BuildErrorKind, IntoVal, KernelBuilder, Place, Val};

/// A type parameter whose bound is still to be said.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let cast = Kernel::build("cast", |k| {
///     let (from, to) = (k.type_param("From").num(), k.type_param("To").float());
///     let (index, kept) = (k.type_param("Index").int(), k.type_param("Kept").any());
///     let (x, y) = (k.slice("x", from), k.slice_mut("y", to));
///     let (i, old, new) = (k.param("i", index), k.slice("old", kept), k.slice_mut("new", kept));
///     y.at(i).set(x.at(i).get().cast(to));
///     new.at(i).set(old.at(i));
/// })?;
/// let jit = Jit::new()?;
/// let (x, mut y) = (jit.upload(&[3u8])?, jit.zeros::<f64>(1)?);
/// let (old, mut new) = (jit.upload(&[[1u32, 2]])?, jit.zeros::<[u32; 2]>(1)?);
/// jit.launch(&cast, 1, 1, args!(&x, &mut y, 0u32, &old, &mut new))?;
/// assert_eq!((y.to_vec()?, new.to_vec()?), (vec![3.0], vec![[1, 2]]));
/// # Ok(())
/// # }
/// ```
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let double = Kernel::build("double", |k| {
    ///     let t = k.type_param("T").num();
    ///     let x = k.slice_mut("x", t);
    ///     x.at(0).set(x.at(0) * k.lit(t, 2));
    /// })?;
    /// let jit = Jit::new()?;
    /// let (mut x, mut y) = (jit.upload(&[1.5f32])?, jit.upload(&[3u64])?);
    /// jit.launch(&double, 1, 1, args!(&mut x))?;
    /// jit.launch(&double, 1, 1, args!(&mut y))?;
    /// assert_eq!((x.to_vec()?[0], y.to_vec()?[0]), (3.0, 6));
    /// # Ok(())
    /// # }
    /// ```
    pub fn type_param(&self, name: &str) -> TypeParamBuilder<'_> {
        TypeParamBuilder {
            builder: self,
            name: name.to_owned(),
        }
    }

    /// Declares a const parameter: an integer or bool that is known when the kernel is
    /// specialized. A launch gives it by name.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let scale = Kernel::build("scale", |k| {
    ///     let factor = k.const_param("FACTOR", Type::U32);
    ///     let len = k.const_len("N");
    ///     let table = k.array_of_len(k.ty::<u32>(), len);
    ///     let (x, table) = (k.slice_mut("x", k.ty::<u32>()), k.param("table", table));
    ///     x.at(0).set(factor * table.element(0));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.zeros::<u32>(1)?;
    /// jit.launch(&scale.with_const("FACTOR", 3), 1, 1, args!(&mut x, [5u32, 6]))?; // `N` is 2
    /// assert_eq!(x.to_vec()?, [15]);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// // Of a device function, addresses, too.
    /// let add = DeviceFn::build("add", |k| {
    ///     let (to, from) = (k.pointer_mut("to", k.ty::<f32>()), k.pointer("from", k.ty::<f32>()));
    ///     // SAFETY: who calls it gives the addresses of elements.
    ///     let (to, from) = unsafe { (to.deref(), from.deref()) };
    ///     to.set(to.get() + from);
    /// })?;
    /// let axpy = Kernel::build("axpy", |k| {
    ///     let (a, x) = (k.param("a", k.ty::<f32>()), k.slice("x", k.ty::<f32>()));
    ///     let y = k.slice_mut("y", k.ty::<f32>());
    ///     y.at(0).set(a * y.at(0));
    ///     k.call(&add, &[y.at(0).address(), x.at(0).address()]);
    /// })?;
    /// let jit = Jit::new()?;
    /// let (x, mut y) = (jit.upload(&[4.0f32])?, jit.upload(&[1.0f32])?);
    /// jit.launch(&axpy, 1, 1, args!(3.0f32, &x, &mut y))?;
    /// assert_eq!(y.to_vec()?, [7.0]);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[derive(KernelView)]
    /// struct Rows<'a> {
    ///     data: &'a mut [f32],
    ///     columns: u32,
    /// }
    ///
    /// struct Matrix(Buffer<f32>, u32);
    ///
    /// impl<'a> ToKernel<'a> for &'a mut Matrix {
    ///     type View = Rows<'a>;
    ///     fn to_kernel(self) -> RowsArgs<'a> {
    ///         RowsArgs { data: &mut self.0, columns: self.1 }
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let diagonal = Kernel::build("diagonal", |k| {
    ///     let (m, i) = (k.view::<Rows>("m"), k.global_id().x());
    ///     m.field("data").at(i * (m.field("columns") + 1)).set(1.0);
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut m = Matrix(jit.zeros(4)?, 2);
    /// jit.launch(&diagonal, 1, 2, args!(&mut m))?;
    /// assert_eq!(m.0.to_vec()?, [1.0, 0.0, 0.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn view<V: KernelValue>(&self, name: &str) -> Val<'_> {
        let ty = V::type_in(&mut self.state.borrow_mut().module.types);
        self.param(name, ty)
    }

    /// A fixed array type.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let pack = Kernel::build("pack", |k| {
    ///     let pair = k.array(k.ty::<u32>(), 2);
    ///     let both = k.struct_type("Both", &[("pair", pair), ("sum", k.ty::<u32>())]);
    ///     let x = k.slice_mut("x", k.ty::<u32>());
    ///     let (a, b) = (x.at(0).get(), x.at(1).get());
    ///     let value = k.construct(both, &[k.construct(pair, &[a, b]), a + b]);
    ///     x.at(2).set(value.field("sum") + value.field("pair").element(1));
    ///     x.at(0).set(k.zero(both).field("sum"));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[1u32, 2, 0])?;
    /// jit.launch(&pack, 1, 1, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [0, 2, 5]);
    /// # Ok(())
    /// # }
    /// ```
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
        let data = StructData::new(name.to_owned(), fields);
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let sums = Kernel::build("sums", |k| {
    ///     let (x, i) = (k.slice_mut("x", k.ty::<u32>()), k.thread_idx().x());
    ///     let total = k.shared("total", k.ty::<u32>());
    ///     let tile = k.shared_array("tile", k.ty::<u32>(), 32);
    ///     let spare = k.dynamic_shared(k.ty::<u32>());
    ///     k.if_(i.eq(0), || total.set(0));
    ///     tile.at(i).set(x.at(i));
    ///     spare.at(i).set(i);
    ///     k.barrier();
    ///     total.atomic_add(tile.at(31 - i));
    ///     k.barrier();
    ///     x.at(i).set(total.get() + spare.at(0));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[2u32; 32])?;
    /// jit.launch_with(&sums, LaunchConfig::new(1, 32).shared_bytes(128), args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [64; 32]);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let digits = Kernel::build("digits", |k| {
    ///     let x = k.slice_mut("x", k.ty::<u32>());
    ///     let (counts, rest) = (k.local_array(k.ty::<u32>(), 10), k.local(k.ty::<u32>()));
    ///     rest.set(x.at(0));
    ///     k.while_(|| rest.get().ne(0), || {
    ///         let count = counts.at(rest % 10);
    ///         count.set(count + 1);
    ///         rest.set(rest / 10);
    ///     });
    ///     x.at(0).set(counts.at(7));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[1_772_007u32])?;
    /// jit.launch(&digits, 1, 1, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [3]);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let count = Kernel::build("count", |k| {
    ///     let launches = k.global("launches", &[100u32]);
    ///     let by_thread = k.global_zeros::<u32>("by_thread", 32);
    ///     by_thread.at(k.thread_idx().x()).atomic_add(1);
    ///     k.if_(k.thread_idx().x().eq(0), || drop(launches.at(0).atomic_add(1)));
    /// })?;
    /// let jit = Jit::new()?;
    /// for _ in 0..3 {
    ///     jit.launch(&count, 1, 32, args!())?;
    /// }
    /// assert_eq!(jit.global::<u32>("launches")?.to_vec()?, [103]);
    /// assert_eq!(jit.global::<u32>("by_thread")?.to_vec()?, [3; 32]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn global<T: KernelType>(&self, name: &str, values: &[T]) -> Val<'_> {
        let initial = crate::value::defined_bytes(values).into();
        self.global_slice(name, self.ty::<T>(), values.len() as u32, Some(initial))
    }

    /// An array in the device's memory as [`KernelBuilder::global`] makes it, of `len` zeros.
    #[track_caller]
    pub fn global_zeros<T: KernelType>(&self, name: &str, len: u32) -> Val<'_> {
        self.global_slice(name, self.ty::<T>(), len, None)
    }

    #[track_caller]
    fn global_slice(
        &self,
        name: &str,
        element: Type,
        len: u32,
        initial: Option<Arc<[u8]>>,
    ) -> Val<'_> {
        let place = self.global_array(name, self.array(element, len.into()), initial);
        self.array_slice(place, element, AddressSpace::Global, len)
    }

    /// The array that kernels of a `Jit` have in common under a name, as a whole.
    #[track_caller]
    pub(crate) fn global_array(
        &self,
        name: &str,
        array: Type,
        initial: Option<Arc<[u8]>>,
    ) -> Place<'_> {
        let location = self.here();
        let global = {
            let module = &mut self.state.borrow_mut().module;
            module.add_global(name, array, initial, location)
        };
        let ptr_ty = self.pointer_type(array, AddressSpace::Global, true);
        Place::new(self.emit(InstData::Hidden(global), ptr_ty), array, true)
    }

    /// A read-only table that becomes part of the code, as a slice (CUDA guide, `__constant__`).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let weigh = Kernel::build("weigh", |k| {
    ///     let weights = k.constant_array("weights", &[0.25f32, 0.5, 0.25]);
    ///     let (x, i) = (k.slice_mut("x", k.ty::<f32>()), k.thread_idx().x());
    ///     x.at(i).set(x.at(i) * weights.at(i));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[4.0f32; 3])?;
    /// jit.launch(&weigh, 1, 3, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [1.0, 2.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
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

    /// Whether a value is what [`KernelBuilder::zero`] gives.
    pub(crate) fn is_zero(&self, value: Val<'_>) -> bool {
        self.state.borrow().is_zero(value)
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
    /// # use kiln::core::build::Kernel;
    /// let kernel = Kernel::build("k", |k| {
    ///     k.attribute("fast_math", true);
    ///     k.attribute("unroll", 4);
    /// })?;
    /// # drop(kernel);
    /// # Ok::<(), kiln::core::error::Error>(())
    /// ```
    pub fn attribute(&self, name: &str, value: impl Into<AttributeValue>) {
        let attributes = &mut self.state.borrow_mut().function.attributes;
        attributes.set(name, value);
    }

    /// Asserts that a condition holds of the type and const arguments that the function is specialized for. Where it
    /// does not, the launch is an error with the message and the line of this call, and nothing is compiled. The
    /// condition is computed of constants and const parameters, or of constants converted to a type parameter;
    /// where the call stands does not matter, not even under an `if_`.
    ///
    /// ```
    /// use kiln_compiler::build::Kernel;
    /// use kiln_compiler::ir::Type;
    ///
    /// # fn main() -> Result<(), kiln_compiler::error::Error> {
    /// let kernel = Kernel::build("tiles", |k| {
    ///     let n = k.const_param("N", Type::U32);
    ///     k.static_assert((n % 32).eq(0), "a tile is a multiple of 32 long: give another `N`");
    /// })?;
    /// # drop(kernel);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn static_assert<'k>(&'k self, condition: impl IntoVal<'k>, message: &str) {
        let condition = condition.into_val(self, Some(Type::BOOL));
        let condition = self.expect_bool("the condition of `static_assert`", condition);
        let location = self.here();
        self.state
            .borrow_mut()
            .function
            .assertions
            .push(StaticAssertion {
                condition: condition.id,
                message: message.to_owned(),
                location,
            });
    }

    /// How calls of the device function that is described are to be inlined. Code for the CPU has no
    /// calls: there it says nothing.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// use kiln::core::ir::Inline;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let square = DeviceFn::build("square", |k| {
    ///     k.inline(Inline::Always);
    ///     let x = k.param("x", k.ty::<f32>());
    ///     k.return_value(x * x);
    /// })?;
    /// let squares = Kernel::build("squares", |k| {
    ///     k.launch_bounds(256, 2); // and no launch has more threads in a block
    ///     let x = k.slice_mut("x", k.ty::<f32>());
    ///     let i = k.global_id().x();
    ///     k.if_(i.lt(x.len()), || x.at(i).set(k.call(&square, &[x.at(i).get()])));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[3.0f32; 10])?;
    /// jit.launch(&squares, 1, 256, args!(&mut x))?;
    /// assert!(jit.launch(&squares, 1, 512, args!(&mut x)).is_err());
    /// assert_eq!(x.to_vec()?, [9.0; 10]);
    /// # Ok(())
    /// # }
    /// ```
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
