//! Things that can be read and written: memory and mutable variables.

use std::ops;

use crate::ir::{AtomicOp, BinaryOp, InstData, Ordering, Scope, Type, Var as IrVar};

use super::{BuildErrorKind, IntoVal, KernelBuilder, Val};

/// One value in memory: an element of a slice, a field of a struct in memory, a shared variable.
///
/// In an expression a place is read where it stands.
///
/// ```
/// use kiln::prelude::*;
///
/// kiln::core::kernel_type! {
///     struct Particle { position: [f32; 3], mass: f32 }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let fall = Kernel::build("fall", |k| {
///     let p = k.slice_mut("p", k.ty::<Particle>()).at(k.global_id().x());
///     assert_eq!(p.ty(), k.ty::<Particle>());
///     let height = p.field("position").at(2);
///     height.set(height - 9.81 * p.field("mass"));
///     // SAFETY: the array has three elements.
///     let x = unsafe { p.field("position").at_unchecked(0) };
///     x.set(x.get() + 1.0);
///     // SAFETY: it is the address of the place.
///     unsafe { p.field("mass").address().deref() }.set(0.0);
/// })?;
/// let jit = Jit::new()?;
/// let mut p = jit.upload(&[Particle { position: [0.0, 0.0, 9.81], mass: 1.0 }])?;
/// jit.launch(&fall, 1, 1, args!(&mut p))?;
/// assert_eq!(p.to_vec()?, [Particle { position: [1.0, 0.0, 0.0], mass: 0.0 }]);
/// # Ok(())
/// # }
/// ```
///
/// Atomics give the old value:
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::ir::{AtomicOp, Ordering};
///
/// # fn main() -> kiln::Result<()> {
/// let count = Kernel::build("count", |k| {
///     let (x, lane) = (k.slice_mut("x", k.ty::<u32>()), k.thread_idx().x());
///     x.at(0).atomic_add(1);
///     x.at(1).atomic_min(lane);
///     x.at(2).atomic_max(lane);
///     x.at(3).atomic(AtomicOp::Or, k.lit(Type::U32, 1) << lane, Ordering::Relaxed, Scope::Block);
///     k.if_(x.at(4).atomic_cas(0, 7).eq(0), || drop(x.at(5).atomic_exchange(8)));
///     x.at(6).atomic_cas_with(0, 9, Ordering::AcquireRelease, Scope::Device);
///     k.if_(x.at(6).atomic_load(Ordering::Acquire, Scope::Device).eq(9), || {
///         x.at(7).atomic_store(1, Ordering::Release, Scope::Device);
///     });
/// })?;
/// let jit = Jit::new()?;
/// let mut x = jit.upload(&[0u32, 9, 9, 0, 0, 0, 0, 0])?;
/// jit.launch(&count, 1, 32, args!(&mut x))?;
/// assert_eq!(x.to_vec()?, [32, 0, 31, u32::MAX, 7, 8, 9, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Copy, Clone, Debug)]
pub struct Place<'k> {
    pub(super) builder: &'k KernelBuilder,
    ptr: Val<'k>,
    pub(super) ty: Type,
    mutable: bool,
}

impl<'k> Place<'k> {
    pub(super) fn new(ptr: Val<'k>, ty: Type, mutable: bool) -> Self {
        Place {
            builder: ptr.builder,
            ptr,
            ty,
            mutable,
        }
    }

    /// The type of the value.
    pub fn ty(self) -> Type {
        self.ty
    }

    /// The address of the value.
    pub fn address(self) -> Val<'k> {
        self.ptr
    }

    /// Reads the value.
    #[track_caller]
    pub fn get(self) -> Val<'k> {
        let ptr = self.builder.adopt(self.ptr);
        self.builder.emit(
            InstData::Load {
                ptr: ptr.id,
                volatile: false,
            },
            self.ty,
        )
    }

    /// Writes the value.
    #[track_caller]
    pub fn set(self, value: impl IntoVal<'k>) {
        if let Some((ptr, value)) = self.writable("an element", value) {
            let data = InstData::Store {
                ptr: ptr.id,
                value: value.id,
                volatile: false,
            };
            self.builder.emit(data, Type::UNIT);
        }
    }

    /// The address and the value to write, unless something is wrong with either.
    #[track_caller]
    fn writable(self, what: &str, value: impl IntoVal<'k>) -> Option<(Val<'k>, Val<'k>)> {
        let b = self.builder;
        let ptr = b.adopt(self.ptr);
        let value = value.into_val(b, Some(self.ty));
        if b.is_recovered(ptr) {
            return None;
        }
        if !self.mutable {
            b.note(BuildErrorKind::ReadOnly {
                what: what.to_owned(),
                declare: "slice_mut",
            });
            return None;
        }
        if value.ty != self.ty {
            let expected = format!("a `{}`", b.type_name(self.ty));
            b.wrong_type("writing this place", expected, value, self.ty);
            return None;
        }
        Some((ptr, value))
    }

    /// A field of a struct in memory.
    #[track_caller]
    pub fn field(self, name: &str) -> Place<'k> {
        let b = self.builder;
        match b.find_field(self.ty, name) {
            Ok((field, ty)) => {
                let ptr = b.adopt(self.ptr);
                self.derived(InstData::FieldPtr { ptr: ptr.id, field }, ty)
            }
            Err(kind) => Place::new(
                b.error_about(&[self.ptr], kind, b.any_pointer()),
                Type::I32,
                true,
            ),
        }
    }

    /// An element of a fixed array in memory, or a lane of a vector. An index out of bounds ends the thread, as
    /// with [`Val::at`].
    #[track_caller]
    pub fn at(self, index: impl IntoVal<'k>) -> Place<'k> {
        self.index(index, true)
    }

    /// An element of a fixed array in memory, unchecked.
    ///
    /// # Safety
    /// The index must be below the length in every thread that gets here.
    #[track_caller]
    pub unsafe fn at_unchecked(self, index: impl IntoVal<'k>) -> Place<'k> {
        self.index(index, false)
    }

    /// An element that is there by how its index is made, which is below the length in every thread.
    pub(crate) fn at_known(self, index: impl IntoVal<'k>) -> Place<'k> {
        self.index(index, false)
    }

    #[track_caller]
    fn index(self, index: impl IntoVal<'k>, checked: bool) -> Place<'k> {
        let b = self.builder;
        let ptr = b.adopt(self.ptr);
        let index = b.index_value(index);
        let checked = checked && !b.options.unchecked;
        match b.with_types(|types| types.as_indexed(self.ty)) {
            Some((element, _)) => self.derived(
                InstData::ElementPtr {
                    ptr: ptr.id,
                    index: index.id,
                    checked,
                },
                element,
            ),
            None => {
                let place = match b.is_recovered(ptr) {
                    true => b.recovered(self.ty),
                    false => b.constant(crate::ir::Constant::Zero, self.ty),
                };
                let ptr = b.wrong_type(
                    "indexing",
                    "a fixed array or a vector",
                    place,
                    b.any_pointer(),
                );
                Place::new(ptr, Type::I32, true)
            }
        }
    }

    #[track_caller]
    fn derived(self, data: InstData, ty: Type) -> Place<'k> {
        let b = self.builder;
        let pointer = b.with_types(|types| types.as_pointer(self.ptr.ty));
        let space = pointer.map_or(crate::ir::AddressSpace::Generic, |(_, space, _)| space);
        let ptr_ty = b.pointer_type(ty, space, self.mutable);
        Place::new(b.emit(data, ptr_ty), ty, self.mutable)
    }

    /// Reads the value atomically (PTX ISA, "ld"). The ordering is relaxed, acquire or sequentially
    /// consistent.
    #[track_caller]
    pub fn atomic_load(self, ordering: Ordering, scope: Scope) -> Val<'k> {
        let ptr = self.builder.adopt(self.ptr).id;
        let data = InstData::AtomicLoad {
            ptr,
            ordering,
            scope,
        };
        self.builder.emit(data, self.ty)
    }

    /// Writes the value atomically (PTX ISA, "st"). The ordering is relaxed, release or sequentially
    /// consistent.
    #[track_caller]
    pub fn atomic_store(self, value: impl IntoVal<'k>, ordering: Ordering, scope: Scope) {
        if let Some((ptr, value)) = self.writable("the target of an atomic operation", value) {
            let data = InstData::AtomicStore {
                ptr: ptr.id,
                value: value.id,
                ordering,
                scope,
            };
            self.builder.emit(data, Type::UNIT);
        }
    }

    /// Atomically replaces the value `v` by `v + value` and returns the old `v`; relaxed, for all
    /// threads of the device (CUDA guide, `atomicAdd`).
    #[track_caller]
    pub fn atomic_add(self, value: impl IntoVal<'k>) -> Val<'k> {
        self.atomic(AtomicOp::Add, value, Ordering::Relaxed, Scope::Device)
    }

    /// Atomically replaces the value by the smaller of it and `value`; returns the old one.
    #[track_caller]
    pub fn atomic_min(self, value: impl IntoVal<'k>) -> Val<'k> {
        self.atomic(AtomicOp::Min, value, Ordering::Relaxed, Scope::Device)
    }

    /// Atomically replaces the value by the larger of it and `value`; returns the old one.
    #[track_caller]
    pub fn atomic_max(self, value: impl IntoVal<'k>) -> Val<'k> {
        self.atomic(AtomicOp::Max, value, Ordering::Relaxed, Scope::Device)
    }

    /// Atomically replaces the value by `value`; returns the old one (CUDA guide, `atomicExch`).
    #[track_caller]
    pub fn atomic_exchange(self, value: impl IntoVal<'k>) -> Val<'k> {
        self.atomic(AtomicOp::Exchange, value, Ordering::Relaxed, Scope::Device)
    }

    /// An atomic read-modify-write with an ordering and a scope of choice; returns the old value. An exchange is also of
    /// vectors of 16 bytes, on GPUs from sm_90 on.
    #[track_caller]
    pub fn atomic(
        self,
        op: AtomicOp,
        value: impl IntoVal<'k>,
        ordering: Ordering,
        scope: Scope,
    ) -> Val<'k> {
        let b = self.builder;
        if op.takes_words() && self.is_other_than_words() {
            let value = value.into_val(b, Some(self.ty));
            let (words, [value]) = self.as_words([value]);
            return words.atomic(op, value, ordering, scope).bitcast(self.ty);
        }
        match self.writable("the target of an atomic operation", value) {
            Some((ptr, value)) => {
                let (ptr, value) = (ptr.id, value.id);
                b.emit(
                    InstData::AtomicRmw {
                        op,
                        ptr,
                        value,
                        ordering,
                        scope,
                    },
                    self.ty,
                )
            }
            None => b.constant(crate::ir::Constant::Zero, self.ty),
        }
    }

    /// Atomically writes `new` if the value is `expected`; returns the old value, which equals
    /// `expected` if and only if the write happened; relaxed, for all threads of the device (CUDA
    /// guide, `atomicCAS`). The value is an integer, or a vector of integers of 16 bytes, on GPUs from sm_90 on.
    #[track_caller]
    pub fn atomic_cas(self, expected: impl IntoVal<'k>, new: impl IntoVal<'k>) -> Val<'k> {
        self.atomic_cas_with(expected, new, Ordering::Relaxed, Scope::Device)
    }

    /// [`Place::atomic_cas`] with an ordering and a scope of choice.
    #[track_caller]
    pub fn atomic_cas_with(
        self,
        expected: impl IntoVal<'k>,
        new: impl IntoVal<'k>,
        ordering: Ordering,
        scope: Scope,
    ) -> Val<'k> {
        let b = self.builder;
        let expected = expected.into_val(b, Some(self.ty));
        if self.is_other_than_words() && self.has_integers() {
            let operands = [expected, new.into_val(b, Some(self.ty))];
            let (words, [expected, new]) = self.as_words(operands);
            let old = words.atomic_cas_with(expected, new, ordering, scope);
            return old.bitcast(self.ty);
        }
        let Some((ptr, new)) = self.writable("the target of an atomic operation", new) else {
            return b.constant(crate::ir::Constant::Zero, self.ty);
        };
        if expected.ty != self.ty {
            let what = format!("a `{}`", b.type_name(self.ty));
            return b.wrong_type("`atomic_cas`", what, expected, self.ty);
        }
        let data = InstData::AtomicCas {
            ptr: ptr.id,
            expected: expected.id,
            new: new.id,
            ordering,
            scope,
        };
        b.emit(data, self.ty)
    }
}

/// A mutable variable of the kernel being built: one per thread, without an address.
///
/// In an expression a variable is read where it stands.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let powers = Kernel::build("powers", |k| {
///     let x = k.slice_mut("x", k.ty::<u32>());
///     let power = k.var("power", 1u32);
///     assert_eq!(power.ty(), Type::U32);
///     k.for_range(0, x.len(), |i| {
///         x.at(i).set(power);
///         power.set(power.get() * 3);
///     });
/// })?;
/// let jit = Jit::new()?;
/// let mut x = jit.zeros::<u32>(4)?;
/// jit.launch(&powers, 1, 1, args!(&mut x))?;
/// assert_eq!(x.to_vec()?, [1, 3, 9, 27]);
/// # Ok(())
/// # }
/// ```
#[derive(Copy, Clone, Debug)]
pub struct Var<'k> {
    pub(super) builder: &'k KernelBuilder,
    pub(super) var: IrVar,
    pub(super) ty: Type,
}

impl<'k> Var<'k> {
    /// The variable in the IR.
    pub(crate) fn id(self) -> IrVar {
        self.var
    }

    /// The type of the variable.
    pub fn ty(self) -> Type {
        self.ty
    }

    /// The current value of the variable.
    #[track_caller]
    pub fn get(self) -> Val<'k> {
        self.builder.emit(InstData::VarGet(self.var), self.ty)
    }

    /// Assigns it.
    #[track_caller]
    pub fn set(self, value: impl IntoVal<'k>) {
        let b = self.builder;
        let value = value.into_val(b, Some(self.ty));
        if value.ty != self.ty && b.is_recovered_var(self.var) {
            return;
        }
        if value.ty != self.ty {
            let expected = format!("a `{}`", b.type_name(self.ty));
            b.wrong_type("assigning this variable", expected, value, self.ty);
            return;
        }
        b.emit(InstData::VarSet(self.var, value.id), Type::UNIT);
    }
}

macro_rules! assign_operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<'k, R: IntoVal<'k>> ops::$trait<R> for Var<'k> {
            #[track_caller]
            fn $method(&mut self, right: R) {
                self.set(self.builder.binary(BinaryOp::$op, *self, right));
            }
        }
        impl<'k, R: IntoVal<'k>> ops::$trait<R> for Place<'k> {
            #[track_caller]
            fn $method(&mut self, right: R) {
                self.set(self.builder.binary(BinaryOp::$op, *self, right));
            }
        }
    )*};
}
assign_operators! {
    AddAssign add_assign Add;
    SubAssign sub_assign Sub;
    MulAssign mul_assign Mul;
    DivAssign div_assign Div;
    RemAssign rem_assign Rem;
    BitAndAssign bitand_assign And;
    BitOrAssign bitor_assign Or;
    BitXorAssign bitxor_assign Xor;
    ShlAssign shl_assign Shl;
    ShrAssign shr_assign Shr;
}
