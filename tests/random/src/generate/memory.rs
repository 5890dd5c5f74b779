//! Memory: addresses that are in bounds, loads, stores and atomics that cannot race.

use kiln_jit_core::ir::{
    AddressSpace, AtomicOp, BinaryOp, CompareOp, Constant, InstData, Ordering, Scalar, Scope, Type,
    TypeData, Unroll, Value,
};

use super::Generator;

/// The orderings and scopes that atomics have.
pub(super) const ORDERINGS: [Ordering; 5] = [
    Ordering::Relaxed,
    Ordering::Acquire,
    Ordering::Release,
    Ordering::AcquireRelease,
    Ordering::SequentiallyConsistent,
];
pub(super) const SCOPES: [Scope; 3] = Scope::ALL;

/// The scopes of atomics by which threads of different blocks meet.
pub(super) const WIDE_SCOPES: [Scope; 2] = [Scope::Device, Scope::System];

/// How memory is reached.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Base {
    /// A slice.
    Slice(Value),
    /// A pointer to an array.
    Array(Value),
    /// A pointer to one element.
    One(Value),
}

/// What a thread may do with memory, here and now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Access {
    /// Read all of it; nobody writes meanwhile.
    Read,
    /// Read and write the element with this index; nobody else does.
    Own(Value),
    /// Atomics of one operation whose results are not used, anywhere.
    Accumulate(AtomicOp),
    /// Read and write all of it: it is the thread's.
    Private,
}

/// Memory that statements can use.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) base: Base,
    pub(super) element: Type,
    /// How many elements there are at least; `None`: ask the slice.
    pub(super) len: Option<u64>,
    pub(super) access: Access,
}

impl Place {
    fn address(&self) -> Value {
        match self.base {
            Base::Slice(v) | Base::Array(v) | Base::One(v) => v,
        }
    }
}

impl Generator {
    /// A place for an array behind a pointer.
    pub(super) fn array_place(&self, address: Value, array: Type, access: Access) -> Place {
        let parts = self.parts(array);
        Place {
            base: Base::Array(address),
            element: parts[0],
            len: Some(parts.len() as u64),
            access,
        }
    }

    /// The address space of a place, and whether it is mutable.
    pub(super) fn space(&self, place: &Place) -> (AddressSpace, bool) {
        self.kind(place.address())
    }

    /// The address space of an address, and whether it is mutable.
    fn kind(&self, address: Value) -> (AddressSpace, bool) {
        match *self.module.types.data(self.frame.ty(address)) {
            TypeData::Slice { space, mutable, .. } | TypeData::Pointer { space, mutable, .. } => {
                (space, mutable)
            }
            _ => (AddressSpace::Generic, false),
        }
    }

    /// An index below `len`.
    pub(super) fn index_below(&mut self, len: u64, uniform: bool) -> Value {
        if self.random.chance(15) {
            let at = self.random.below(len as usize) as i128;
            let ty = self.index_type(len);
            return self.int(ty, at);
        }
        let ty = self.index_type(len);
        let mut index = self.expr(ty, 1, uniform);
        let signed = ty.as_scalar().is_some_and(Scalar::is_signed_int);
        if signed {
            let max = (1i128 << (ty.as_scalar().map_or(32, Scalar::bits) - 1)) - 1;
            let mask = self.int(ty, max);
            index = self.raw_binary(BinaryOp::And, index, mask);
        }
        if len.is_power_of_two() {
            let mask = self.int(ty, i128::from(len - 1));
            self.raw_binary(BinaryOp::And, index, mask)
        } else {
            let len = self.int(ty, i128::from(len));
            self.raw_binary(BinaryOp::Rem, index, len)
        }
    }

    /// An integer type that holds `len`.
    fn index_type(&mut self, len: u64) -> Type {
        let ty = self.int_type();
        let bits = ty.as_scalar().map_or(32, Scalar::bits);
        if len < 1 << (bits - 1).min(63) {
            ty
        } else {
            Type::U32
        }
    }

    /// An index into a place.
    pub(super) fn index(&mut self, place: &Place, uniform: bool) -> Value {
        match (place.access, place.len, place.base) {
            (Access::Own(index), ..) => index,
            (Access::Read, ..) if !uniform && self.random.chance(15) => self.held_index(place),
            (_, Some(len), Base::Slice(_)) if self.random.chance(70) => {
                self.index_below(len, uniform)
            }
            (_, _, Base::Slice(slice)) => {
                let wide = matches!(
                    self.module.types.data(self.frame.ty(slice)),
                    TypeData::Slice { wide: true, .. }
                );
                let ty = if wide || self.random.chance(20) {
                    Type::U64
                } else {
                    Type::U32
                };
                let len = self.raw(InstData::SliceLen { slice }, ty);
                let any = self.expr(ty, 1, uniform);
                self.raw_binary(BinaryOp::Rem, any, len)
            }
            (_, len, _) => self.index_below(len.unwrap_or(1), uniform),
        }
    }

    /// An index near that of the thread, which a minimum holds in bounds, at times behind a maximum.
    fn held_index(&mut self, place: &Place) -> Value {
        let (ty, last) = match (place.base, place.len) {
            (Base::Slice(slice), None) => {
                let data = self.module.types.data(self.frame.ty(slice));
                let is_wide = matches!(data, TypeData::Slice { wide: true, .. });
                let ty = match is_wide || self.random.chance(20) {
                    true => Type::U64,
                    false => Type::U32,
                };
                let len = self.raw(InstData::SliceLen { slice }, ty);
                let one = self.int(ty, 1);
                (ty, self.raw_binary(BinaryOp::Sub, len, one))
            }
            (_, len) => {
                let len = len.unwrap_or(1);
                let ty = self.index_type(len);
                (ty, self.int(ty, i128::from(len) - 1))
            }
        };
        let mut index = self.position("thread_idx.x");
        if ty != Type::U32 {
            index = self.raw(InstData::Cast { arg: index }, ty);
        }
        let offset = match self.random.chance(70) {
            true => {
                let offset = self.random.below(48) as i128;
                self.int(ty, offset)
            }
            false => self.expr(ty, 1, true),
        };
        let op = self.random.of(&[BinaryOp::Add, BinaryOp::Sub]);
        index = self.raw_binary(op, index, offset);
        let signed = ty.as_scalar().is_some_and(Scalar::is_signed_int);
        if signed || self.random.chance(25) {
            let least = self.int(ty, 0);
            index = self.raw_binary(BinaryOp::Max, index, least);
        }
        self.raw_binary(BinaryOp::Min, index, last)
    }

    fn pointer_type(&mut self, pointee: Type, (space, mutable): (AddressSpace, bool)) -> Type {
        self.module.types.pointer(pointee, space, mutable)
    }

    /// The address of an element, which is in bounds, in one of the ways there are.
    pub(super) fn element_address(&mut self, place: &Place, index: Value) -> Value {
        let ptr = self.direct_address(place, index);
        match self.frame.is_uniform(index) {
            true => ptr,
            false => self.way_round(ptr),
        }
    }

    fn direct_address(&mut self, place: &Place, index: Value) -> Value {
        let mut kind = self.space(place);
        let checked = self.random.chance(75);
        match place.base {
            Base::One(address) => address,
            Base::Array(ptr) => {
                let ty = self.pointer_type(place.element, kind);
                self.raw(
                    InstData::ElementPtr {
                        ptr,
                        index,
                        checked,
                    },
                    ty,
                )
            }
            Base::Slice(mut slice) => {
                if !self.frame.is_uniform(index) {
                    slice = self.way_round(slice);
                    kind = self.kind(slice);
                }
                if self.random.chance(8) && kind.0 != AddressSpace::Generic {
                    let ty = self.frame.ty(slice);
                    let generic = self.module.types.in_space(ty, AddressSpace::Generic);
                    if let Some(ty) = generic {
                        slice = self.raw(InstData::SpaceCast { arg: slice }, ty);
                        kind.0 = AddressSpace::Generic;
                    }
                }
                let ty = self.pointer_type(place.element, kind);
                if self.random.chance(12) {
                    let ptr = self.raw(InstData::SlicePtr { slice }, ty);
                    return self.raw(InstData::PtrOffset { ptr, index }, ty);
                }
                self.raw(
                    InstData::SliceIndex {
                        slice,
                        index,
                        checked,
                    },
                    ty,
                )
            }
        }
    }

    /// From the address of a struct or array, sometimes on to a part of it.
    fn narrowed(&mut self, ptr: Value) -> Value {
        let Some((pointee, space, mutable)) = self.module.types.as_pointer(self.frame.ty(ptr))
        else {
            return ptr;
        };
        let parts = self.parts(pointee);
        if !self.module.types.is_aggregate(pointee) || self.random.chance(35) {
            return ptr;
        }
        let at = self.random.below(parts.len());
        let ty = self.pointer_type(parts[at], (space, mutable));
        let inner = if self.module.types.as_struct(pointee).is_some() {
            self.raw(
                InstData::FieldPtr {
                    ptr,
                    field: at as u32,
                },
                ty,
            )
        } else {
            let index = self.index_below(parts.len() as u64, false);
            let checked = self.random.chance(70);
            self.raw(
                InstData::ElementPtr {
                    ptr,
                    index,
                    checked,
                },
                ty,
            )
        };
        self.narrowed(inner)
    }

    /// What a pointer points at.
    fn pointee(&self, ptr: Value) -> Type {
        let pointer = self.module.types.as_pointer(self.frame.ty(ptr));
        pointer.map_or(Type::UNIT, |(pointee, ..)| pointee)
    }

    /// The value at an address in a place.
    pub(super) fn load_at(&mut self, place: &Place, ptr: Value, uniform: bool) -> Value {
        let ty = self.pointee(ptr);
        if !uniform && self.is_atomic_here(ptr) {
            let ordering = self.random.of(&[
                Ordering::Relaxed,
                Ordering::Acquire,
                Ordering::SequentiallyConsistent,
            ]);
            let scope = self.random.of(&SCOPES);
            let load = InstData::AtomicLoad {
                ptr,
                ordering,
                scope,
            };
            return self.emit_varying(load, ty);
        }
        // A volatile load may give each thread something else.
        let volatile = !uniform && self.random.chance(5);
        let value = self.emit(InstData::Load { ptr, volatile }, ty);
        // Shared memory holds the same for all, but only where all look at it together.
        let shared = self.is_exchanged(place);
        let same = place.access == Access::Read
            && !volatile
            && (!shared || self.budget.uniform_shared && self.frame.uniform);
        if !same {
            self.frame.set_uniform(value, false);
        }
        value
    }

    /// Whether a place can be loaded from, and gives the same to all threads if it has to.
    fn readable(&self, place: &Place, uniform: bool) -> bool {
        let shared = self.is_exchanged(place);
        match place.access {
            Access::Read if shared => !uniform || self.budget.uniform_shared && self.frame.uniform,
            Access::Read => true,
            Access::Own(_) | Access::Private => !uniform,
            Access::Accumulate(_) => false,
        }
    }

    /// A load of exactly type `ty`, if there is memory of such.
    pub(super) fn load_of(&mut self, ty: Type, uniform: bool) -> Option<Value> {
        let places = &self.frame.places;
        let fits = |p: &&Place| p.element == ty && self.readable(p, uniform);
        let mut found: Vec<Place> = places.iter().filter(fits).copied().collect();
        let inner = |g: &Self, p: &Place| {
            g.space(p).0 == AddressSpace::Local || (p.access == Access::Read && g.is_exchanged(p))
        };
        if found.iter().any(|p| inner(self, p)) && self.random.chance(70) {
            found.retain(|p| inner(self, p));
        }
        if found.is_empty() {
            return None;
        }
        let place = self.random.of(&found);
        let index = self.index(&place, uniform);
        let ptr = self.element_address(&place, index);
        Some(self.load_at(&place, ptr, uniform))
    }

    /// A load of something from somewhere.
    pub(super) fn load_statement(&mut self) {
        let places = &self.frame.places;
        let fits = |p: &&Place| self.readable(p, false);
        let found: Vec<Place> = places.iter().filter(fits).copied().collect();
        if found.is_empty() {
            return self.let_statement();
        }
        let place = self.random.of(&found);
        let index = self.index(&place, false);
        let ptr = self.element_address(&place, index);
        let ptr = self.narrowed(ptr);
        self.load_at(&place, ptr, false);
    }

    /// A store to somewhere that is this thread's.
    pub(super) fn store_statement(&mut self) {
        let places = &self.frame.places;
        let fits = |p: &&Place| matches!(p.access, Access::Own(_) | Access::Private);
        let found: Vec<Place> = places.iter().filter(fits).copied().collect();
        if found.is_empty() {
            return self.assign_statement();
        }
        let place = self.random.of(&found);
        self.store_to(&place);
    }

    fn store_to(&mut self, place: &Place) {
        let index = self.index(place, false);
        let ptr = self.element_address(place, index);
        let is_own = matches!(place.access, Access::Own(_));
        if is_own && self.swaps_pairs(place.element) && self.random.chance(60) {
            return self.own_atomic(ptr);
        }
        let ptr = self.narrowed(ptr);
        let ty = self.pointee(ptr);
        let value = self.expr(ty, 2, false);
        self.store_at(place, ptr, value);
    }

    /// Stores a value at an address in a place; canonical if it could be seen by the host.
    pub(super) fn store_at(&mut self, place: &Place, ptr: Value, value: Value) {
        let private = place.access == Access::Private;
        let shared = self.space(place).0 == AddressSpace::Shared;
        let value = if private || shared {
            value
        } else {
            self.canonical(value)
        };
        if self.is_atomic_here(ptr) {
            let ordering = self.random.of(&[
                Ordering::Relaxed,
                Ordering::Release,
                Ordering::SequentiallyConsistent,
            ]);
            let scope = self.random.of(&SCOPES);
            return self.act(InstData::AtomicStore {
                ptr,
                value,
                ordering,
                scope,
            });
        }
        let volatile = self.random.chance(5);
        self.act(InstData::Store {
            ptr,
            value,
            volatile,
        });
    }

    /// Whether to access an address atomically where nobody else accesses it, or nobody writes: any
    /// ordering and scope is right then.
    fn is_atomic_here(&mut self, ptr: Value) -> bool {
        let (space, _) = self.kind(ptr);
        let possible = self.pointee(ptr).as_scalar().is_some() && space.has_atomics();
        self.plan.atomics && possible && self.random.chance(15)
    }

    /// Stores a value to the thread's own element of a place.
    pub(super) fn store_own(&mut self, place: &Place, value: Value) {
        if let Access::Own(index) = place.access {
            let ptr = self.element_address(place, index);
            self.store_at(place, ptr, value);
        }
    }

    /// A value whose floats are canonical: a NaN has one form.
    pub(super) fn canonical(&mut self, value: Value) -> Value {
        let ty = self.frame.ty(value);
        if !self.has_float(ty) {
            return value;
        }
        if !ty.is_float() {
            let count = self.parts(ty).len() as u32;
            let parts = (0..count).map(|i| {
                let part = self.extract(value, i);
                self.canonical(part)
            });
            let parts = parts.collect();
            return self.raw(InstData::Construct { parts }, ty);
        }
        let args = [value, value];
        let number = self.raw(
            InstData::Compare {
                op: CompareOp::Eq,
                args,
            },
            Type::BOOL,
        );
        let nan = self.raw(InstData::Const(Constant::Float(f64::NAN)), ty);
        let select = InstData::Select {
            cond: number,
            if_true: value,
            if_false: nan,
        };
        self.raw(select, ty)
    }

    /// An atomic on an accumulator, or on the thread's own element.
    pub(super) fn atomic_statement(&mut self) {
        let atomic = |place: &Place| match place.access {
            Access::Accumulate(_) => true,
            Access::Own(_) => {
                matches!(place.element, Type::I32 | Type::U32 | Type::I64 | Type::U64)
                    || self.swaps_pairs(place.element)
            }
            _ => false,
        };
        let places = &self.frame.places;
        let found: Vec<Place> = places.iter().filter(|p| atomic(p)).copied().collect();
        if found.is_empty() {
            return self.store_statement();
        }
        let place = self.random.of(&found);
        let index = self.index(&place, false);
        let ptr = self.element_address(&place, index);
        match place.access {
            Access::Accumulate(op) => {
                let alone = self.plan.blocks() == 1;
                self.accumulate(ptr, op, if alone { &SCOPES } else { &WIDE_SCOPES });
            }
            _ => self.own_atomic(ptr),
        }
    }

    /// An atomic whose result is not used, of a scope that has all threads in it that do this.
    pub(super) fn accumulate(&mut self, ptr: Value, op: AtomicOp, scopes: &[Scope]) {
        let ty = self.pointee(ptr);
        let value = self.expr(ty, 2, false);
        if self.random.chance(12) && self.frame.repeats <= 4 {
            return self.swap_until_done(ptr, op, value, scopes);
        }
        let (ordering, scope) = (self.random.of(&ORDERINGS), self.random.of(scopes));
        let atomic = InstData::AtomicRmw {
            op,
            ptr,
            value,
            ordering,
            scope,
        };
        self.raw(atomic, ty);
    }

    /// The same by compare-and-swap, as often as somebody else comes between.
    fn swap_until_done(&mut self, ptr: Value, op: AtomicOp, value: Value, scopes: &[Scope]) {
        let ty = self.frame.ty(value);
        let op = match op {
            AtomicOp::Add => BinaryOp::Add,
            AtomicOp::Min => BinaryOp::Min,
            AtomicOp::Max => BinaryOp::Max,
            AtomicOp::And => BinaryOp::And,
            AtomicOp::Or => BinaryOp::Or,
            AtomicOp::Xor | AtomicOp::Exchange | AtomicOp::Increment | AtomicOp::Decrement => {
                BinaryOp::Xor
            }
        };
        let body = self.branch(false, |g| {
            let ordering = g.random.of(&[Ordering::Relaxed, Ordering::Acquire]);
            let scope = g.random.of(scopes);
            let load = InstData::AtomicLoad {
                ptr,
                ordering,
                scope,
            };
            let expected = g.raw_varying(load, ty);
            let new = g.raw_binary(op, expected, value);
            let (ordering, scope) = (g.random.of(&ORDERINGS), g.random.of(scopes));
            let swap = InstData::AtomicCas {
                ptr,
                expected,
                new,
                ordering,
                scope,
            };
            let found = g.raw_varying(swap, ty);
            let done = g.compare(CompareOp::Eq, found, expected);
            g.if_(done, |g| g.act(InstData::Break { depth: 0 }));
        });
        self.act(InstData::Loop { body });
    }

    /// An atomic where nobody else is: its result can be used.
    fn own_atomic(&mut self, ptr: Value) {
        let ty = self.pointee(ptr);
        let value = self.expr(ty, 1, false);
        let (ordering, scope) = (self.random.of(&ORDERINGS), self.random.of(&SCOPES));
        let is_pair = self.swaps_pairs(ty);
        let data = if self.random.chance(if is_pair { 60 } else { 30 }) {
            InstData::AtomicCas {
                ptr,
                expected: self.expected(ptr, ty),
                new: value,
                ordering,
                scope,
            }
        } else if is_pair {
            InstData::AtomicRmw {
                op: AtomicOp::Exchange,
                ptr,
                value,
                ordering,
                scope,
            }
        } else {
            let round = [AtomicOp::Increment, AtomicOp::Decrement];
            let op = match ty == Type::U32 && self.random.chance(20) {
                true => self.random.of(&round),
                false => self.random.of(&[
                    AtomicOp::Add,
                    AtomicOp::Min,
                    AtomicOp::Max,
                    AtomicOp::And,
                    AtomicOp::Or,
                    AtomicOp::Xor,
                    AtomicOp::Exchange,
                ]),
            };
            InstData::AtomicRmw {
                op,
                ptr,
                value,
                ordering,
                scope,
            }
        };
        self.emit_varying(data, ty);
    }

    /// Whether values of a type are the 16 bytes that change in one step, and this case has that.
    fn swaps_pairs(&self, ty: Type) -> bool {
        self.budget.pairs > 0 && self.module.types.is_word_pair(ty)
    }

    /// What is compared with an element of the thread's: of pairs mostly what is there, as any other differs.
    fn expected(&mut self, ptr: Value, ty: Type) -> Value {
        if self.swaps_pairs(ty) && self.random.chance(60) {
            let volatile = false;
            return self.raw_varying(InstData::Load { ptr, volatile }, ty);
        }
        self.expr(ty, 1, false)
    }

    /// Memory of the thread, written before anybody can read it.
    pub(super) fn local_statement(&mut self) {
        let element = self.any_type();
        let single = self.random.chance(25);
        let len = self.random.within(1, 8) as u64;
        let ty = match single {
            true => element,
            false => self.module.types.array(element, len),
        };
        let pointer = self.pointer_type(ty, (AddressSpace::Local, true));
        let ptr = self.raw(InstData::LocalAlloc, pointer);
        self.frame.set_uniform(ptr, false);
        let place = match single {
            true => Place {
                base: Base::One(ptr),
                element,
                len: Some(1),
                access: Access::Private,
            },
            false => self.array_place(ptr, ty, Access::Private),
        };
        if !single && self.random.chance(40) {
            self.fill_array(&place, len);
        } else {
            let value = match self.random.chance(50) {
                true => self.raw(InstData::Const(Constant::Zero), ty),
                false => self.leaf(ty, false),
            };
            let volatile = false;
            self.act(InstData::Store {
                ptr,
                value,
                volatile,
            });
        }
        self.frame.places.push(place);
        if self.random.chance(60) {
            self.store_to(&place);
        }
        if self.random.chance(80)
            && let Some(value) = self.load_of(element, false)
        {
            self.mix_in(value);
        }
    }

    /// A loop that writes every element.
    fn fill_array(&mut self, place: &Place, len: u64) {
        let ty = self.int_type();
        let bounds = [0, i128::from(len), 1].map(|n| self.int(ty, n));
        let unroll = self.random.of(&[Unroll::Auto, Unroll::Never, Unroll::Full]);
        let place = *place;
        self.counted_loop(ty, bounds, unroll, false, len as usize, |g, index| {
            let value = g.expr(place.element, 1, false);
            let ptr = g.element_address(&place, index);
            let volatile = false;
            g.act(InstData::Store {
                ptr,
                value,
                volatile,
            });
        });
    }
}
