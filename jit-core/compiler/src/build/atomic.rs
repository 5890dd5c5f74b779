//! Atomic changes of any kind: loops around compare-and-swap.

use crate::ir::{AtomicOp, Ordering, Scalar, Scope, Type, TypeTable};

use super::{IntoVal, KernelBuilder, Place, Val};

impl<'k> Place<'k> {
    /// Atomically replaces the value `v` by what `change` makes of it, and returns the old `v`. The value is a number.
    ///
    /// It is a loop around compare-and-swap: where another thread has written in between, the change is made again of
    /// what that has left. So `change` must do nothing but compute. Bits are compared, so it ends for a NaN, too.
    ///
    /// ```
    /// use kiln::core::ir::Ordering;
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let product = Kernel::build("product", |k| {
    ///     let (x, out) = (k.slice("x", k.ty::<f32>()), k.slice_mut("out", k.ty::<f32>()));
    ///     let factor = x.at(k.thread_idx().x()).get();
    ///     out.at(0).atomic_update(Ordering::Relaxed, Scope::Device, |old| old * factor);
    /// })?;
    /// let jit = Jit::new()?;
    /// let (x, mut out) = (jit.upload(&[2.0f32; 10])?, jit.upload(&[3.0f32])?);
    /// jit.launch(&product, 1, 10, args!(&x, &mut out))?;
    /// assert_eq!(out.to_vec()?, [3072.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn atomic_update(
        self,
        ordering: Ordering,
        scope: Scope,
        change: impl FnOnce(Val<'k>) -> Val<'k>,
    ) -> Val<'k> {
        let k = self.address().builder();
        let ty = self.ty();
        let word = match ty.as_scalar() {
            Some(scalar) => Type::scalar(scalar.unsigned()),
            None => ty,
        };
        let place = self.seen_as(k, word);
        let expected = k.var("expected", place.atomic_load(Ordering::Relaxed, scope));
        k.loop_(|| {
            let old = expected.get();
            let new = of_type(change(of_type(old, ty)), word);
            let found = place.atomic_cas_with(old, new, ordering, scope);
            expected.set(found);
            k.if_(found.eq(old), || k.break_());
        });
        of_type(expected.get(), ty)
    }

    /// Atomically replaces the value `v` by 0 if it is at least `limit`, else by `v + 1`; returns the old `v`
    /// (CUDA guide, `atomicInc`). The value is a `u32`.
    ///
    /// ```
    /// use kiln::core::ir::Ordering;
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let around = Kernel::build("around", |k| {
    ///     let x = k.slice_mut("x", k.ty::<u32>());
    ///     x.at(0).atomic_inc(6, Ordering::Relaxed, Scope::Device);
    ///     x.at(1).atomic_dec(6, Ordering::Relaxed, Scope::Device);
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.zeros::<u32>(2)?;
    /// jit.launch(&around, 1, 10, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn atomic_inc(self, limit: impl IntoVal<'k>, ordering: Ordering, scope: Scope) -> Val<'k> {
        self.atomic(AtomicOp::Increment, limit, ordering, scope)
    }

    /// Atomically replaces the value `v` by `limit` if it is 0 or above `limit`, else by `v - 1`; returns the old `v`
    /// (CUDA guide, `atomicDec`). The value is a `u32`.
    #[track_caller]
    pub fn atomic_dec(self, limit: impl IntoVal<'k>, ordering: Ordering, scope: Scope) -> Val<'k> {
        self.atomic(AtomicOp::Decrement, limit, ordering, scope)
    }

    /// Whether the value is a vector of 16 bytes, but not `u64x2`, of which there are atomics.
    pub(super) fn is_other_than_words(self) -> bool {
        let ty = self.ty();
        self.address().builder().with_types(|types| {
            let size = types.layout(ty).map_or(0, |layout| layout.size);
            types.as_vector(ty).is_some() && size == 16 && !types.is_word_pair(ty)
        })
    }

    /// Whether the value is a vector of integers.
    pub(super) fn has_integers(self) -> bool {
        let vector = |types: &mut TypeTable| types.as_vector(self.ty());
        let vector = self.address().builder().with_types(vector);
        vector.is_some_and(|(lane, _)| lane.is_int())
    }

    /// The place and the operands of an atomic as `u64x2`.
    #[track_caller]
    pub(super) fn as_words<const N: usize>(
        self,
        operands: [Val<'k>; N],
    ) -> (Place<'k>, [Val<'k>; N]) {
        let k = self.address().builder();
        let words = k.with_types(|types| types.vector(Scalar::U64, 2));
        let mut as_words = operands;
        for operand in &mut as_words {
            *operand = operand.bitcast(words);
        }
        (self.seen_as(k, words), as_words)
    }

    /// The place as one of a type that is as large.
    #[track_caller]
    fn seen_as(self, k: &'k KernelBuilder, ty: Type) -> Place<'k> {
        if ty == self.ty() {
            return self;
        }
        let address = self.address();
        let pointer = k.with_types(|types| {
            let (_, space, mutable) = types.as_pointer(address.ty())?;
            Some(types.pointer(ty, space, mutable))
        });
        match pointer {
            Some(pointer) => address.bitcast(pointer).referent(),
            None => self,
        }
    }
}

fn of_type(value: Val<'_>, ty: Type) -> Val<'_> {
    match value.ty() == ty {
        true => value,
        false => value.bitcast(ty),
    }
}
