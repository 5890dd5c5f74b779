//! Barriers, and memory that the threads of a block share: shared memory, and tiles in global memory.
//!
//! Such memory is read by all outside of *sections*. A section begins with a barrier, so that all
//! have read; in it each thread writes its own slot, or all accumulate by atomics; it ends with a
//! barrier. Sections are where all threads of the block that have not ended come by.

use kiln_jit_core::ir::{
    AddressSpace, AtomicOp, BinaryOp, CompareOp, InstData, SharedData, Type, TypeData, Unroll,
    Value,
};

use super::launch::{Permutation, Role};
use super::memory::{Access, Base, Place, SCOPES};
use super::{Generator, control::Returns};

impl Generator {
    /// Whether there is shared memory that a section can write.
    pub(super) fn has_shared(&self) -> bool {
        self.frame.thread.is_some() && !self.shared_places().is_empty()
    }

    /// The positions of shared memory that all read now.
    fn shared_places(&self) -> Vec<usize> {
        let places = self.frame.places.iter().enumerate();
        let fits = |(_, p): &(usize, &Place)| p.access == Access::Read && self.is_exchanged(p);
        places.filter(fits).map(|(i, _)| i).collect()
    }

    /// The shared memory of the kernel, written before anything can end a thread.
    pub(super) fn declare_shared(&mut self, thread: Value) {
        let mut places = Vec::new();
        for (element, len) in self.plan.shared.clone() {
            let place = self.static_shared(element, len);
            self.initialize(&place, len, thread);
            places.push(place);
        }
        if let Some((element, len)) = self.plan.dynamic {
            let slice = self.module.types.slice(element, AddressSpace::Shared, true);
            let slice = self.raw(InstData::DynamicShared, slice);
            let place = Place {
                base: Base::Slice(slice),
                element,
                len: Some(len),
                access: Access::Read,
            };
            self.initialize(&place, len, thread);
            places.push(place);
        }
        for (at, param) in self.plan.params.clone().into_iter().enumerate() {
            if let Role::Tile(element, len) = param.role {
                let place = self.tile_of_block(at, element, len);
                self.initialize(&place, len, thread);
                places.push(place);
            }
        }
        if !places.is_empty() {
            self.act(InstData::Barrier);
        }
        self.frame.places.extend(places);
    }

    /// The array of the block in a parameter's slice.
    fn tile_of_block(&mut self, param: usize, element: Type, len: u64) -> Place {
        let slice = self.frame.function.params[param].value;
        let TypeData::Slice { space, .. } = *self.module.types.data(self.frame.ty(slice)) else {
            return self.static_shared(element, len);
        };
        let grid = self.plan.grid;
        let index = self.linear("block_idx", "grid_dim", grid);
        let types = &mut self.module.types;
        let array = types.array(element, len);
        let array = types.pointer(array, space, true);
        let checked = self.random.chance(50);
        let data = InstData::SliceIndex {
            slice,
            index,
            checked,
        };
        let ptr = self.raw(data, array);
        self.array_or_slice(ptr, space, element, len)
    }

    /// A shared array, reached as an array or as a slice.
    pub(super) fn static_shared(&mut self, element: Type, len: u64) -> Place {
        let ty = self.module.types.array(element, len);
        let align = self.module.types.layout(ty).map_or(16, |l| l.align) as u32;
        let align = align.max(self.random.of(&[1, 1, 16, 64]));
        let name = "tile".to_owned();
        let var = self
            .frame
            .function
            .shared
            .push(SharedData { name, ty, align });
        let space = AddressSpace::Shared;
        let array = self.module.types.pointer(ty, space, true);
        let ptr = self.raw(InstData::SharedAddr(var), array);
        self.array_or_slice(ptr, space, element, len)
    }

    /// The memory behind a pointer to an array, reached as an array or as a slice.
    fn array_or_slice(
        &mut self,
        ptr: Value,
        space: AddressSpace,
        element: Type,
        len: u64,
    ) -> Place {
        let types = &mut self.module.types;
        let (first, slice) = (
            types.pointer(element, space, true),
            types.slice(element, space, true),
        );
        let base = if self.random.chance(50) {
            Base::Array(ptr)
        } else {
            let index = self.int(Type::U32, 0);
            let checked = false;
            let ptr = self.raw(
                InstData::ElementPtr {
                    ptr,
                    index,
                    checked,
                },
                first,
            );
            let len = self.int(Type::U32, i128::from(len));
            Base::Slice(self.raw(InstData::SliceNew { ptr, len }, slice))
        };
        Place {
            base,
            element,
            len: Some(len),
            access: Access::Read,
        }
    }

    /// Writes all of a shared array: each thread its slot, and what is beyond the last thread.
    fn initialize(&mut self, place: &Place, len: u64, thread: Value) {
        let threads = self.plan.threads();
        let write = |g: &mut Self, index: Value| {
            let value = g.expr(place.element, 1, false);
            let own = Place {
                access: Access::Own(index),
                ..*place
            };
            g.store_own(&own, value);
        };
        if len == threads {
            return write(self, thread);
        }
        let (end, step) = (
            self.int(Type::U32, i128::from(len)),
            self.int(Type::U32, i128::from(threads)),
        );
        let trips = len.div_ceil(threads) as usize;
        let bounds = [thread, end, step];
        self.counted_loop(Type::U32, bounds, Unroll::Auto, false, trips, write);
    }

    /// A section, and a look at what it wrote.
    pub(super) fn section_statement(&mut self) {
        let at = self.shared_places();
        let at = self.random.of(&at);
        // A place that is looked at before and after: who keeps the value gives the old one.
        let looked = self.random.chance(60).then(|| self.look(at));
        self.act(InstData::Barrier);
        let atomic = matches!(
            self.frame.places[at].element,
            Type::I32 | Type::U32 | Type::I64 | Type::U64
        );
        let uniform = std::mem::replace(&mut self.frame.uniform, false);
        // In a function, whoever leaves a section would not come to its end.
        let returns = self.frame.returns;
        if returns == Returns::Together {
            self.frame.returns = Returns::Never;
        }
        if self.random.chance(if looked.is_some() { 50 } else { 20 }) {
            self.leading(at, looked.map(|(index, _)| index));
        } else if atomic && self.random.chance(40) {
            self.accumulating(at);
        } else {
            self.exchanging(at);
        }
        self.frame.returns = returns;
        self.frame.uniform = uniform;
        self.frame.places[at].access = Access::Read;
        self.act(InstData::Barrier);
        let place = self.frame.places[at];
        if let Some((_, ptr)) = looked {
            let value = self.load_at(&place, ptr, false);
            self.mix_in(value);
        }
        for _ in 0..self.random.below(3) {
            if let Some(value) = self.load_of(place.element, false)
                && self.random.chance(50)
            {
                self.mix_in(value);
            }
        }
    }

    /// Looks at an element that is the same for all threads; its index and its address.
    fn look(&mut self, at: usize) -> (Value, Value) {
        let place = self.frame.places[at];
        let index = self.index(&place, true);
        let ptr = self.element_address(&place, index);
        let value = self.load_at(&place, ptr, false);
        self.mix_in(value);
        (index, ptr)
    }

    /// Assigns a value to a variable of its type, so that it is seen in the end.
    pub(super) fn mix_in(&mut self, value: Value) {
        let ty = self.frame.ty(value);
        let mut vars = self.frame.vars.iter().rev();
        let var = vars.find(|v| v.ty == ty && !v.uniform && !v.reserved);
        if let Some(variable) = var.copied() {
            self.assign(variable, value);
        }
    }

    /// Each thread writes its own slot.
    fn exchanging(&mut self, at: usize) {
        let (threads, place) = (self.plan.threads(), self.frame.places[at]);
        let len = place.len.unwrap_or(threads);
        let permutation = loop {
            let permutation = Permutation::new(&mut self.random, threads);
            // The identity always fits, so that this ends.
            if permutation.places(threads) <= len {
                break permutation;
            }
        };
        let Some(thread) = self.frame.thread else {
            return;
        };
        let index = self.permuted(permutation, thread);
        self.frame.places[at].access = Access::Own(index);
        let place = self.frame.places[at];
        if self.random.chance(70) {
            let value = self.expr(place.element, 2, false);
            self.store_own(&place, value);
        }
        let count = self.random.below(3);
        self.statements(count);
    }

    /// One thread writes for all, to an element that was looked at if there is one.
    fn leading(&mut self, at: usize, looked: Option<Value>) {
        let (threads, place) = (self.plan.threads(), self.frame.places[at]);
        let len = place.len.unwrap_or(threads);
        let Some(thread) = self.frame.thread else {
            return;
        };
        let (leader, slot) = [threads, len]
            .map(|n| self.random.below(n as usize) as i128)
            .into();
        let leader = self.int(Type::U32, leader);
        let cond = self.compare(CompareOp::Eq, thread, leader);
        let then_region = self.branch(false, |g| {
            let slot = looked.unwrap_or_else(|| g.int(Type::U32, slot));
            g.frame.places[at].access = Access::Own(slot);
            let place = g.frame.places[at];
            let value = g.expr(place.element, 2, false);
            g.store_own(&place, value);
        });
        let else_region = None;
        self.act(InstData::If {
            cond,
            then_region,
            else_region,
        });
    }

    /// All threads accumulate.
    fn accumulating(&mut self, at: usize) {
        let op = self.random.of(&[
            AtomicOp::Add,
            AtomicOp::Min,
            AtomicOp::Max,
            AtomicOp::And,
            AtomicOp::Or,
            AtomicOp::Xor,
        ]);
        let len = self.frame.places[at].len.unwrap_or(1);
        self.frame.places[at].access = Access::Accumulate(op);
        let place = self.frame.places[at];
        let index = self.index_below(len, false);
        let ptr = self.element_address(&place, index);
        self.accumulate(ptr, op, &SCOPES);
        let count = self.random.below(2);
        self.statements(count);
    }

    /// The tree of a block's reduction: the stride halves from barrier to barrier.
    pub(super) fn reduction_statement(&mut self) {
        let at = self.shared_places();
        let at = self.random.of(&at);
        let place = self.frame.places[at];
        let Some(thread) = self.frame.thread else {
            return;
        };
        if place.element.as_scalar().is_none() {
            return self.section_statement();
        }
        let threads = self.plan.threads();
        let half = (threads.next_power_of_two() / 2).max(1);
        let op = match place.element {
            Type::BOOL => BinaryOp::Xor,
            _ => self
                .random
                .of(&[BinaryOp::Add, BinaryOp::Mul, BinaryOp::Sub]),
        };
        self.act(InstData::Barrier);
        let trips = half.ilog2() as i128 + 1;
        let bounds = [0, trips, 1].map(|n| self.int(Type::U32, n));
        let first = self.int(Type::U32, i128::from(half));
        self.counted_loop(
            Type::U32,
            bounds,
            Unroll::Auto,
            true,
            trips as usize,
            |g, i| {
                let stride = g.binary(BinaryOp::Shr, first, i);
                g.reduction_step(&place, op, thread, stride);
                g.act(InstData::Barrier);
            },
        );
        self.load_of(place.element, false);
    }

    /// `a[t] = a[t] op a[t + stride]` where both are.
    fn reduction_step(&mut self, place: &Place, op: BinaryOp, thread: Value, stride: Value) {
        let threads = self.int(Type::U32, i128::from(self.plan.threads()));
        let lower = self.compare(CompareOp::Lt, thread, stride);
        let other = self.raw_binary(BinaryOp::Add, thread, stride);
        let inside = self.compare(CompareOp::Lt, other, threads);
        let cond = self.raw_binary(BinaryOp::And, lower, inside);
        let then_region = self.branch(false, |g| {
            let (left, right) = (
                g.element_address(place, thread),
                g.element_address(place, other),
            );
            let volatile = false;
            let a = g.raw(
                InstData::Load {
                    ptr: left,
                    volatile,
                },
                place.element,
            );
            let b = g.raw(
                InstData::Load {
                    ptr: right,
                    volatile,
                },
                place.element,
            );
            let value = g.raw_binary(op, a, b);
            g.store_at(place, left, value);
        });
        let else_region = None;
        self.act(InstData::If {
            cond,
            then_region,
            else_region,
        });
    }

    /// Whether the threads of a block exchange values in a place: whether others write there, too.
    pub(super) fn is_exchanged(&self, place: &Place) -> bool {
        let (space, mutable) = self.space(place);
        let others = !matches!(place.access, Access::Private | Access::Accumulate(_));
        mutable && others && space != AddressSpace::Local && !self.is_own_for_good(place)
    }

    /// Whether a place is an output, whose elements are each thread's throughout.
    fn is_own_for_good(&self, place: &Place) -> bool {
        place.len.is_none() && matches!(place.access, Access::Own(_))
    }

    /// Whether a type is that of a slice in which a block exchanges values, as a function takes it.
    pub(super) fn is_exchanged_slice(&self, ty: Type, access: Access) -> bool {
        let slice = self.module.types.data(ty);
        access == Access::Read && matches!(slice, TypeData::Slice { mutable: true, .. })
    }
}
