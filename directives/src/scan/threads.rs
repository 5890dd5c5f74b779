//! How the threads along a dimension of a block combine their values: each all up to its own.
//!
//! Steps double how many values have been combined (Hillis and Steele, "Data parallel algorithms", 1986). Along the last
//! dimension, neighbours are lanes of a warp: where warps are whole, they take the steps by shuffles. Of several warps the last lanes
//! put what their warps have come to in shared memory, and behind one barrier the lanes of each warp combine these, too. They do so
//! in one of two places in turn, so that who is a batch ahead overwrites nothing that others still read: to be two ahead, it would
//! have to pass a barrier that these have not come to. Along other dimensions and in ragged blocks all steps are taken in
//! shared memory.

use kiln_jit_core::ir::{
    AddressSpace, BinaryOp, CompareOp, Inst, InstData, IntrinsicId, SharedData, SharedVar, Type,
    Value, Var,
};

use super::{Scan, identity};
use crate::along::{Along, WARP};
use crate::apply::{Guard, Levels, Rewrite};
use crate::combine::{ALL, row};
use crate::emit::Emit;
use crate::program::Program;

/// By what threads combine their values.
#[derive(Copy, Clone, Debug)]
pub(super) enum Way {
    /// Shared memory with two elements for each thread of the block.
    Memory(Memory),
    /// Shuffles of lanes alone: all places along the dimension are in one warp.
    Lanes(Shuffles),
    /// Shuffles, and shared memory with two elements for each warp of the block.
    Warps {
        shuffles: Shuffles,
        memory: Memory,
        /// Where the first of the two elements is in the batch at hand: 0, or the number of warps.
        place: Var,
    },
}

/// Elements in shared memory.
#[derive(Copy, Clone, Debug)]
pub(super) struct Memory {
    shared: SharedVar,
    /// The types of the address of all elements, and of one.
    in_shared: [Type; 2],
}

impl Way {
    /// The way of threads along a dimension of a block for values of a type; declares what it needs.
    pub(super) fn of(program: &mut Program, threads: &[u32], (level, ty): (usize, Type)) -> Way {
        let extent = threads.get(level).copied().unwrap_or(1);
        let threads_of_all = threads.iter().map(|&extent| u64::from(extent));
        let all = threads_of_all.fold(1, u64::saturating_mul);
        let is_last = level + 1 == threads.len();
        let divides = extent.is_multiple_of(WARP) || WARP.is_multiple_of(extent);
        if !(is_last && divides && all.is_multiple_of(WARP.into())) {
            return Way::Memory(Memory::of(program, all, ty));
        }
        let shuffles = Shuffles {
            up: row(&mut program.module, "warp.shuffle_up"),
            of: row(&mut program.module, "warp.shuffle_idx"),
        };
        if extent <= WARP {
            return Way::Lanes(shuffles);
        }
        let memory = Memory::of(program, all / u64::from(WARP), ty);
        let function = &mut program.module.functions[program.kernel];
        let place = Emit::new(function, function.location).var("scan.place", Type::U32);
        Way::Warps {
            shuffles,
            memory,
            place,
        }
    }
}

impl Memory {
    /// Two elements for each of so many.
    fn of(program: &mut Program, count: u64, ty: Type) -> Memory {
        let types = &mut program.module.types;
        let array = types.array(ty, count.saturating_mul(2));
        let align = types.layout(ty).map_or(8, |layout| layout.align);
        let in_shared = [array, ty].map(|ty| types.pointer(ty, AddressSpace::Shared, true));
        let shared = &mut program.module.functions[program.kernel].shared;
        let shared = shared.push(SharedData {
            name: "offload.scan".to_owned(),
            ty: array,
            align: align as u32,
        });
        Memory { shared, in_shared }
    }

    fn address(self, emit: &mut Emit<'_>, index: Value) -> Value {
        let [of_all, of_one] = self.in_shared;
        let ptr = emit.value(InstData::SharedAddr(self.shared), of_all);
        let data = InstData::ElementPtr {
            ptr,
            index,
            checked: false,
        };
        emit.value(data, of_one)
    }

    fn load(self, emit: &mut Emit<'_>, index: Value, ty: Type) -> Value {
        let from = self.address(emit, index);
        emit.load(from, ty)
    }

    fn store(self, emit: &mut Emit<'_>, index: Value, value: Value) {
        let to = self.address(emit, index);
        emit.store(to, value);
    }
}

/// Threads along a dimension, as one of them sees them.
struct Line {
    /// The number of the thread in its block, and how many there are.
    own: Value,
    count: i128,
    /// The place along the dimension, how many places there are, and how far apart the numbers of neighbours are.
    place: Value,
    extent: i128,
    stride: i128,
}

/// What a thread knows of a line.
struct Found {
    /// What the threads before it have come to.
    others: Value,
    /// What all have come to.
    all: Value,
}

/// Rows by which lanes read each other's values.
#[derive(Copy, Clone, Debug)]
pub(super) struct Shuffles {
    up: IntrinsicId,
    of: IntrinsicId,
}

impl Shuffles {
    /// The value of the lane that is so many below, among `width`.
    fn up(self, emit: &mut Emit<'_>, value: Value, (apart, width): (i128, i128)) -> Value {
        let apart = emit.int(apart, Type::U32);
        self.shuffle(emit, self.up, (value, apart, width))
    }

    /// The value of a lane, among `width`.
    fn of(self, emit: &mut Emit<'_>, value: Value, (lane, width): (Value, i128)) -> Value {
        self.shuffle(emit, self.of, (value, lane, width))
    }

    fn shuffle(
        self,
        emit: &mut Emit<'_>,
        row: IntrinsicId,
        (value, from, width): (Value, Value, i128),
    ) -> Value {
        let ty = emit.function.type_of(value);
        let [all, width] = [ALL, width].map(|number| emit.int(number, Type::U32));
        emit.row_of(row, &[all, value, from, width], ty)
    }
}

impl Scan {
    /// What combines with any value to that value.
    pub(super) fn identity(&self, emit: &mut Emit<'_>) -> Value {
        let scalar = self.ty.as_scalar().expect("what is combined is a number");
        let identity = identity(self.op, scalar).expect("the operation has been looked at");
        emit.value(InstData::Const(identity), self.ty)
    }

    /// All steps in shared memory: what each thread has is among `2 * count` elements.
    fn by_memory(
        &self,
        emit: &mut Emit<'_>,
        memory: Memory,
        (value, line): (Value, &Line),
    ) -> Found {
        let own = self.steps_in_memory(emit, memory, (value, line));
        let of_others = emit.var("scan.others", self.ty);
        let none = self.identity(emit);
        emit.set(of_others, none);
        let [one, stride, last] =
            [1, line.stride, line.extent - 1].map(|number| emit.int(number, Type::U32));
        let has_others = emit.compare(CompareOp::Ge, line.place, one);
        emit.where_(Some(has_others), |emit| {
            let other = emit.binary(BinaryOp::Sub, own, stride);
            let others = memory.load(emit, other, self.ty);
            emit.set(of_others, others);
        });
        let ahead = emit.binary(BinaryOp::Sub, last, line.place);
        let ahead = emit.binary(BinaryOp::Mul, ahead, stride);
        let end = emit.binary(BinaryOp::Add, own, ahead);
        let all = memory.load(emit, end, self.ty);
        let others = emit.get(of_others);
        Found { others, all }
    }

    /// Where the thread's element is at the end.
    fn steps_in_memory(
        &self,
        emit: &mut Emit<'_>,
        memory: Memory,
        (value, line): (Value, &Line),
    ) -> Value {
        let sum = emit.var("scan.sum", self.ty);
        emit.set(sum, value);
        let mut own = line.own;
        memory.store(emit, own, value);
        let (mut ahead, mut is_second) = (1, false);
        while ahead < line.extent {
            emit.barrier();
            let least = emit.int(ahead, Type::U32);
            let has_one = emit.compare(CompareOp::Ge, line.place, least);
            emit.where_(Some(has_one), |emit| {
                let far = emit.int(ahead * line.stride, Type::U32);
                let other = emit.binary(BinaryOp::Sub, own, far);
                let other = memory.load(emit, other, self.ty);
                let value = emit.get(sum);
                let both = emit.binary(self.op, other, value);
                emit.set(sum, both);
            });
            is_second = !is_second;
            let all = emit.int(if is_second { line.count } else { 0 }, Type::U32);
            own = emit.binary(BinaryOp::Add, line.own, all);
            let value = emit.get(sum);
            memory.store(emit, own, value);
            ahead *= 2;
        }
        emit.barrier();
        own
    }

    /// What the lanes up to each of `count` have come to, in segments of `width`.
    fn by_lanes(
        &self,
        emit: &mut Emit<'_>,
        shuffles: Shuffles,
        (value, lane): (Value, Value),
        (count, width): (i128, i128),
    ) -> Value {
        let (mut sum, mut apart) = (value, 1);
        while apart < count {
            let other = shuffles.up(emit, sum, (apart, width));
            let both = emit.binary(self.op, other, sum);
            let least = emit.int(apart, Type::U32);
            let has_one = emit.compare(CompareOp::Ge, lane, least);
            sum = emit.select(has_one, both, sum);
            apart *= 2;
        }
        sum
    }

    /// What the lanes before each have come to, by what they have come to with it.
    fn before(
        &self,
        emit: &mut Emit<'_>,
        shuffles: Shuffles,
        (sum, lane, width): (Value, Value, i128),
    ) -> Value {
        let others = shuffles.up(emit, sum, (1, width));
        self.or_none(emit, lane, others)
    }

    /// A value where a number is not 0.
    fn or_none(&self, emit: &mut Emit<'_>, number: Value, value: Value) -> Value {
        let (none, zero) = (self.identity(emit), emit.int(0, Type::U32));
        let is_first = emit.compare(CompareOp::Eq, number, zero);
        emit.select(is_first, none, value)
    }

    /// By shuffles alone, in a line of at most a warp.
    fn in_a_warp(
        &self,
        emit: &mut Emit<'_>,
        shuffles: Shuffles,
        (value, line): (Value, &Line),
    ) -> Found {
        let (lane, width) = (line.place, line.extent);
        let sum = self.by_lanes(emit, shuffles, (value, lane), (width, width));
        let last = emit.int(width - 1, Type::U32);
        Found {
            others: self.before(emit, shuffles, (sum, lane, width)),
            all: shuffles.of(emit, sum, (last, width)),
        }
    }

    /// By shuffles in each warp of a line of several, and then of what the warps have come to.
    fn by_warps(
        &self,
        emit: &mut Emit<'_>,
        shuffles: Shuffles,
        (memory, place): (Memory, Var),
        (value, line): (Value, &Line),
    ) -> Found {
        let width = i128::from(WARP);
        let (warps, all_warps) = (line.extent / width, line.count / width);
        let size = emit.int(width, Type::U32);
        let lane = emit.binary(BinaryOp::Rem, line.place, size);
        let warp = emit.binary(BinaryOp::Div, line.place, size);
        let sum = self.by_lanes(emit, shuffles, (value, lane), (width, width));
        let others = self.before(emit, shuffles, (sum, lane, width));
        // The places of the line's warps.
        let first = emit.binary(BinaryOp::Sub, line.own, line.place);
        let first = emit.binary(BinaryOp::Div, first, size);
        let of_batch = emit.get(place);
        let first = emit.binary(BinaryOp::Add, first, of_batch);
        let [last_lane, last_warp, second] =
            [width - 1, warps - 1, all_warps].map(|number| emit.int(number, Type::U32));
        let is_last = emit.compare(CompareOp::Eq, lane, last_lane);
        emit.where_(Some(is_last), |emit| {
            let own = emit.binary(BinaryOp::Add, first, warp);
            memory.store(emit, own, sum);
        });
        let of_next = emit.binary(BinaryOp::Sub, second, of_batch);
        emit.set(place, of_next);
        emit.barrier();
        // Lanes beyond the number of warps are read by nobody.
        let near = emit.binary(BinaryOp::Min, lane, last_warp);
        let from = emit.binary(BinaryOp::Add, first, near);
        let total = memory.load(emit, from, self.ty);
        let total = self.by_lanes(emit, shuffles, (total, lane), (warps, width));
        let one = emit.int(1, Type::U32);
        // The first warp reads any.
        let warp_before = emit.binary(BinaryOp::Max, warp, one);
        let warp_before = emit.binary(BinaryOp::Sub, warp_before, one);
        let before = shuffles.of(emit, total, (warp_before, width));
        let before = self.or_none(emit, warp, before);
        Found {
            others: emit.binary(self.op, before, others),
            all: shuffles.of(emit, total, (last_warp, width)),
        }
    }
}

impl Rewrite<'_> {
    /// What stands in the place of a barrier at which threads compute a running value, directly in the loop.
    pub(crate) fn scan(
        &mut self,
        barrier: Inst,
        scan: &Scan,
        (levels, guard): (Levels, Option<Guard>),
    ) -> Vec<Inst> {
        let at = self.location(barrier);
        let (grid, threads) = (self.grid, &self.schedule.threads);
        let level = levels.threads - 1;
        let mut emit = Emit::new(&mut self.module.functions[self.kernel], at);
        let (own, count) = grid.linear(&mut emit, threads);
        let inner = threads[level + 1..].iter();
        let line = Line {
            own,
            count,
            place: grid.thread(Along::Dim(level)).index,
            extent: threads[level].into(),
            stride: inner.map(|&extent| i128::from(extent)).product(),
        };
        let none = scan.identity(&mut emit);
        let value = emit.get(scan.own);
        let value = match guard {
            Some(guard) => emit.select(guard.holds, value, none),
            None => value,
        };
        let found = match scan.way {
            Way::Memory(memory) => {
                // The batch before has been read.
                emit.list.push(barrier);
                scan.by_memory(&mut emit, memory, (value, &line))
            }
            Way::Lanes(shuffles) => scan.in_a_warp(&mut emit, shuffles, (value, &line)),
            Way::Warps {
                shuffles,
                memory,
                place,
            } => scan.by_warps(&mut emit, shuffles, (memory, place), (value, &line)),
        };
        let before = emit.get(scan.before);
        let own = emit.binary(scan.op, before, found.others);
        emit.set(scan.var, own);
        let all = emit.binary(scan.op, before, found.all);
        emit.set(scan.before, all);
        emit.list
    }
}
