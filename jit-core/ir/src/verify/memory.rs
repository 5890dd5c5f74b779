//! Rules about addresses and memory: pointers, slices, stores, atomics, fences.

use super::MAX_LOCAL_BYTES;
use super::rules::{Rule, Rules};
use crate::{Address, AddressSpace, AtomicOp, Ordering, Phase, Type, TypeBound, Value};

/// A pointer or slice type in parts: what is pointed at, where, mutable, and of slices whether
/// they are wide.
type Reference = (Type, AddressSpace, bool, Option<bool>);

impl Rules<'_> {
    /// `result` if it is the pointer type that is given.
    pub(super) fn gives_pointer(&self, at: Address, result: Type) -> Result<Type, String> {
        if self.types.is_pointer(result) && self.types.address(result) == Some(at) {
            return Ok(result);
        }
        let mutable = if at.mutable { "mut " } else { "" };
        Err(format!(
            "it gives a `ptr<{}, {mutable}{}>`, and its result is a `{}`",
            at.space.name(),
            self.name(at.pointee),
            self.name(result)
        ))
    }

    /// What is behind a pointer one may store through.
    fn writable(&self, ptr: Value) -> Result<(Type, AddressSpace), String> {
        let (pointee, space, mutable) = self.pointer(ptr)?;
        let name = self.name(self.ty(ptr));
        match mutable {
            true => Ok((pointee, space)),
            false => Err(format!(
                "the memory behind a `{name}` is read-only; take a mutable one"
            )),
        }
    }

    pub(super) fn store(&self, ptr: Value) -> Rule {
        self.writable(ptr).map(|_| ())
    }

    pub(super) fn field_ptr(&self, ptr: Value, field: u32) -> Rule {
        let (pointee, ..) = self.pointer(ptr)?;
        let fields = self.types.as_struct(pointee).map(|s| &s.fields);
        match fields.and_then(|fields| fields.get(field as usize)) {
            Some(_) => Ok(()),
            None => Err(format!("`{}` has no field {field}", self.name(pointee))),
        }
    }

    pub(super) fn element_ptr(&self, ptr: Value, index: Value) -> Rule {
        let (pointee, ..) = self.pointer(ptr)?;
        self.index(index)?;
        match self.types.as_indexed(pointee) {
            Some(_) => Ok(()),
            None => Err(format!(
                "an array has elements and a vector lanes, not a `{}`",
                self.name(pointee)
            )),
        }
    }

    fn reference(&self, ty: Type) -> Option<Reference> {
        let Address {
            pointee,
            space,
            mutable,
        } = self.types.address(ty)?;
        let wide = self.types.as_slice(ty).map(|(_, wide)| wide);
        Some((pointee, space, mutable, wide))
    }

    pub(super) fn space_cast(&self, from: Type, to: Type) -> Rule {
        let (Some(source), Some(target)) = (self.reference(from), self.reference(to)) else {
            let (from, to) = (self.name(from), self.name(to));
            return Err(format!(
                "pointers and slices are cast, not `{from}` to `{to}`"
            ));
        };
        let broken = if (source.0, source.3) != (target.0, target.3) {
            "a space cast keeps what is pointed at"
        } else if target.2 && !source.2 {
            "a space cast makes nothing mutable"
        } else if source.1 != target.1
            && source.1 != AddressSpace::Generic
            && target.1 != AddressSpace::Generic
        {
            "an address of one space is none of another; one of the two has to be generic"
        } else if target.1 == AddressSpace::Param {
            "parameter memory is only reached through parameters"
        } else {
            return Ok(());
        };
        let (from, to) = (self.name(from), self.name(to));
        Err(format!("`{from}` does not become `{to}`: {broken}"))
    }

    pub(super) fn slice_new(&self, ptr: Value, result: Type) -> Rule {
        let (pointee, space, mutable) = self.pointer(ptr)?;
        match self.reference(result) {
            Some((element, s, m, Some(_))) if (element, s, m) == (pointee, space, mutable) => {
                Ok(())
            }
            _ => Err(format!(
                "a `{}` begins no `{}`",
                self.name(self.ty(ptr)),
                self.name(result)
            )),
        }
    }

    pub(super) fn slice_len(&self, slice: Value, result: Type) -> Rule {
        let (.., wide) = self.slice(slice)?;
        match result {
            Type::U64 => Ok(()),
            Type::U32 if !wide => Ok(()),
            Type::U32 => {
                Err("a wide slice has 2^32 elements or more; take its length as `u64`".to_owned())
            }
            _ => Err(format!(
                "a length is a `u32` or `u64`, not `{}`",
                self.name(result)
            )),
        }
    }

    pub(super) fn dynamic_shared(&self, result: Type) -> Rule {
        match self.reference(result) {
            Some((_, AddressSpace::Shared, true, Some(false))) => Ok(()),
            _ => Err(format!(
                "it gives a mutable slice in shared memory, not `{}`",
                self.name(result)
            )),
        }
    }

    pub(super) fn local_alloc(&self, result: Type) -> Rule {
        let Some((pointee, AddressSpace::Local, true)) = self.types.as_pointer(result) else {
            let result = self.name(result);
            return Err(format!(
                "it gives a mutable pointer into local memory, not `{result}`"
            ));
        };
        let size = self.types.layout(pointee).map_or(0, |layout| layout.size);
        if size <= MAX_LOCAL_BYTES {
            return Ok(());
        }
        Err(format!(
            "a thread has {MAX_LOCAL_BYTES} bytes of local memory, and `{}` takes {size}",
            self.name(pointee)
        ))
    }

    /// The type of what an atomic works on, once its address is one for atomics.
    fn atomic_place(&self, ptr: Value) -> Result<Type, String> {
        let (ty, space) = self.writable(ptr)?;
        self.atomic_space(space)?;
        Ok(ty)
    }

    fn atomic_space(&self, space: AddressSpace) -> Rule {
        match space.has_atomics() {
            true => Ok(()),
            false => Err(format!("there are no atomics in {} memory", space.name())),
        }
    }

    pub(super) fn atomic_load(&self, ptr: Value, ordering: Ordering) -> Rule {
        let (ty, space, _) = self.pointer(ptr)?;
        self.atomic_space(space)?;
        if matches!(ordering, Ordering::Release | Ordering::AcquireRelease) {
            return Err("a load releases nothing; it is `relaxed`, `acquire` or \
                        `sequentially_consistent`"
                .to_owned());
        }
        self.atomic_scalar(ty)
    }

    pub(super) fn atomic_store(&self, ptr: Value, ordering: Ordering) -> Rule {
        let ty = self.atomic_place(ptr)?;
        if matches!(ordering, Ordering::Acquire | Ordering::AcquireRelease) {
            return Err("a store acquires nothing; it is `relaxed`, `release` or \
                        `sequentially_consistent`"
                .to_owned());
        }
        self.atomic_scalar(ty)
    }

    /// What is read or written in one piece: a scalar, or a type that is bound to one.
    fn atomic_scalar(&self, ty: Type) -> Rule {
        let holds = ty.as_scalar().is_some() || self.bound(ty).is_some();
        self.expect(
            holds,
            "atomic loads and stores are of numbers and `bool`",
            ty,
        )
    }

    /// What changes 16 bytes in one step.
    fn atomic_of_vector(&self, what: &str, ty: Type) -> Rule {
        let holds = self.types.is_word_pair(ty);
        self.expect(holds, &format!("of vectors {what} is on `u64x2`"), ty)
    }

    pub(super) fn atomic_rmw(&self, op: AtomicOp, ptr: Value) -> Rule {
        let ty = self.atomic_place(ptr)?;
        if op.takes_words() && self.types.as_vector(ty).is_some() {
            return self.atomic_of_vector("an exchange", ty);
        }
        let holds = match ty.as_scalar() {
            Some(scalar) => op.is_on(scalar),
            None if op.goes_round() => false,
            None if op.takes_floats() => self.is_number(ty),
            None => matches!(self.bound(ty), Some(TypeBound::Int | TypeBound::Num)),
        };
        let taken = match op.takes_floats() {
            _ if op.goes_round() => "the atomic is on `u32`",
            true => "the atomic is on integers and floats",
            false => "the atomic is on integers",
        };
        self.expect(holds, taken, ty)?;
        let native = ty
            .as_scalar()
            .is_none_or(|scalar| op.may_be_native_on(scalar));
        match native || self.module.phase != Phase::Legal {
            true => Ok(()),
            false => Err(format!(
                "this atomic of a `{}` is a call in a legal module",
                self.name(ty)
            )),
        }
    }

    pub(super) fn atomic_cas(&self, ptr: Value) -> Rule {
        let ty = self.atomic_place(ptr)?;
        if self.types.as_vector(ty).is_some() {
            return self.atomic_of_vector("a compare-and-swap", ty);
        }
        self.expect(self.is_integer(ty), "compare-and-swap is on integers", ty)
    }

    pub(super) fn fence(&self, ordering: Ordering) -> Rule {
        match ordering {
            Ordering::Relaxed => Err("a relaxed fence orders nothing".to_owned()),
            Ordering::Acquire
            | Ordering::Release
            | Ordering::AcquireRelease
            | Ordering::SequentiallyConsistent => Ok(()),
        }
    }
}
