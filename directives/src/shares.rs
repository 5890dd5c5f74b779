//! The iterations that a thread has of a distributed loop, as loops.
//!
//! Iterations are counted from 0: iteration `k` of a loop has the index `start + k * step`. Of a loop over blocks,
//! a block has a share; of a loop over threads, a thread has each `T`th of its block's share. Numbers are computed
//! in `u32`, and in `u64` for indices of 64 bits, and do not wrap around, whatever the bounds are.
//!
//! | over | loop | iteration |
//! |---|---|---|
//! | blocks, `BLOCK` | `k in lo .. lo + share` | `k` |
//! | blocks, `CYCLIC` | `k in b .. N step B` | `k` |
//! | threads | `o in t .. share step T` | `lo + o` |
//! | blocks, `CYCLIC`, and threads | `m in b .. ceil(N / T) step B` | `m * T + t`, if that is below `N` |
//!
//! With iterations side by side, a share of `BLOCK` is rounded up to whole groups of all threads: otherwise each block's
//! last threads would have groups that are not full, and their warps would execute what is for full ones and what is
//! for others.
//!
//! A loop over threads in which all threads of the block meet has a turn for each batch of `T` iterations of its
//! block, `m in 0 .. ceil(share / T)`, which all threads take and in which a guard tells those that have an
//! iteration. Where others execute one, too ([`edge`](crate::edge)), it is the last one of the share.
//!
//! A loop of which it is known that each thread has one turn at most is no loop: it is executed if its first turn is before
//! its end.

use kiln_jit_core::ir::{BinaryOp, CompareOp, Constant, Region, Type, Unroll, Value};

use crate::apply::{Shares, Turn};
use crate::emit::Emit;
use crate::grid::Dim;
use crate::once::Once;
use crate::schedule::OverBlocks;
use crate::transform::unsigned;

/// Iterations `lo .. lo + count` of a loop.
struct Share {
    lo: Value,
    count: Value,
}

/// What is written where a turn starts.
struct Start {
    /// The index of the thread's iteration.
    index: Value,
    /// The index that the block's first thread has.
    first: Value,
    /// The region within the turn for what is in the loop, if that is not the turn itself.
    region: Option<Region>,
    guard: Option<Value>,
}

impl Start {
    /// Of an iteration that is that of all threads that come there together.
    fn at(index: Value) -> Start {
        Start {
            index,
            first: index,
            region: None,
            guard: None,
        }
    }
}

impl Shares {
    /// The type that iterations are counted in.
    fn counted_in(&self, emit: &Emit<'_>) -> Type {
        let scalar = emit.function.type_of(self.bounds[0]).as_scalar();
        match scalar.is_some_and(|scalar| scalar.bits() > 32) {
            true => Type::U64,
            false => Type::U32,
        }
    }

    /// How many iterations the loop has.
    fn count(&self, emit: &mut Emit<'_>) -> Value {
        let [start, end, step] = self.bounds;
        let ty = self.counted_in(emit);
        let zero = emit.int(0, emit.function.type_of(step));
        let known = emit.function.constant(step);
        let up = self.count_of(emit, [start, end], step, ty);
        let signed = emit.function.type_of(step).as_scalar();
        let signed = signed.is_some_and(kiln_jit_core::ir::Scalar::is_signed_int);
        if matches!(known, Some(Constant::Int(1..))) {
            return up;
        }
        let none = emit.int(0, ty);
        let forward = emit.compare(CompareOp::Gt, step, zero);
        let otherwise = match signed {
            true => {
                let size = emit.binary(BinaryOp::Sub, zero, step);
                let down = self.count_of(emit, [end, start], size, ty);
                let backward = emit.compare(CompareOp::Lt, step, zero);
                emit.select(backward, down, none)
            }
            false => none,
        };
        emit.select(forward, up, otherwise)
    }

    /// How many there are from `from` to below `to` in steps that are above 0.
    fn count_of(
        &self,
        emit: &mut Emit<'_>,
        [from, to]: [Value; 2],
        step: Value,
        ty: Type,
    ) -> Value {
        let some = emit.compare(CompareOp::Lt, from, to);
        let [low, high] = [from, to].map(|bound| emit.cast(bound, ty));
        let ahead = emit.binary(BinaryOp::Sub, high, low);
        let count = match emit.function.constant(step) {
            Some(Constant::Int(1)) => ahead,
            _ => {
                let size = self.size(emit, step, ty);
                let one = emit.int(1, ty);
                let last = emit.binary(BinaryOp::Sub, ahead, one);
                let last = emit.binary(BinaryOp::Div, last, size);
                emit.binary(BinaryOp::Add, last, one)
            }
        };
        let none = emit.int(0, ty);
        emit.select(some, count, none)
    }

    /// A step that is above 0 as a number of iterations' type: the smallest number of a signed type is its own
    /// negation, and above 0 without its sign.
    fn size(&self, emit: &mut Emit<'_>, step: Value, ty: Type) -> Value {
        let bits = emit.cast(step, unsigned(emit.function, step));
        emit.cast(bits, ty)
    }

    /// The index of an iteration.
    fn index(&self, emit: &mut Emit<'_>, iteration: Value) -> Value {
        let [start, _, step] = self.bounds;
        let iteration = emit.cast(iteration, emit.function.type_of(start));
        let ahead = emit.binary(BinaryOp::Mul, iteration, step);
        emit.binary(BinaryOp::Add, start, ahead)
    }

    /// The contiguous share of a block; all iterations, if the loop is not over blocks so.
    fn share(&self, emit: &mut Emit<'_>, count: Value, ty: Type) -> Share {
        let zero = emit.int(0, ty);
        let Some((Dim { index, extent, .. }, OverBlocks::Block)) = self.block else {
            return Share { lo: zero, count };
        };
        let [block, blocks] = [index, extent].map(|number| emit.cast(number, ty));
        let chunk = self.chunk(emit, count, blocks, ty);
        // Where each block has as many.
        if let (Some(all), Some(own), Some(blocks)) =
            (emit.number(count), emit.number(chunk), emit.number(blocks))
            && own * blocks == all
        {
            let lo = emit.binary(BinaryOp::Mul, block, chunk);
            return Share { lo, count: chunk };
        }
        // `block * chunk` is below `count` if, and only if, the block is up to this one.
        let one = emit.int(1, ty);
        let last = emit.binary(BinaryOp::Sub, count, one);
        let last = emit.binary(BinaryOp::Div, last, chunk);
        let has_some = emit.compare(CompareOp::Le, block, last);
        let lo = emit.binary(BinaryOp::Mul, block, chunk);
        let rest = emit.binary(BinaryOp::Sub, count, lo);
        let own = emit.binary(BinaryOp::Min, chunk, rest);
        Share {
            lo,
            count: emit.select(has_some, own, zero),
        }
    }

    /// How many iterations each block has but the last ones, as `LoopSchedule::chunk` has it.
    fn chunk(&self, emit: &mut Emit<'_>, count: Value, blocks: Value, ty: Type) -> Value {
        let chunk = ceil_div(emit, count, blocks, ty);
        // One block has all, whose number rounded up may be none of the type.
        if self.jammed == 1 || emit.number(blocks) == Some(1) {
            return chunk;
        }
        let jammed = emit.int(self.jammed.into(), ty);
        let group = match self.thread {
            Some(Dim { extent, .. }) => {
                let threads = emit.cast(extent, ty);
                emit.binary(BinaryOp::Mul, threads, jammed)
            }
            None => jammed,
        };
        let groups = ceil_div(emit, chunk, group, ty);
        let whole = emit.binary(BinaryOp::Mul, groups, group);
        // The larger one is the share of one block that is not known to be one, too.
        emit.binary(BinaryOp::Max, whole, chunk)
    }

    /// Writes the loop that a thread executes on its own; the index, and where what is in the loop goes.
    pub(crate) fn write(&self, emit: &mut Emit<'_>) -> (Value, Turn) {
        let ty = self.counted_in(emit);
        let count = self.count(emit);
        if let (Some((_, OverBlocks::Cyclic)), Some(thread)) = (self.block, self.thread) {
            if self.padded {
                return self.write_meeting(emit);
            }
            let batches = self.batches(emit, count, thread, ty);
            return self.loop_of(emit, batches, |shares, emit, batch| {
                let (own, guard) = shares.in_batch(emit, batch, thread, count, ty);
                let index = shares.index(emit, own);
                let region = guard.map(|guard| {
                    let region = emit.function.regions.push(Default::default());
                    emit.if_(guard, region);
                    region
                });
                Start {
                    region,
                    ..Start::at(index)
                }
            });
        }
        let share = self.share(emit, count, ty);
        let bounds = match (self.block, self.thread) {
            (_, Some(Dim { index, extent, .. })) => {
                let [thread, threads] = [index, extent].map(|number| emit.cast(number, ty));
                [thread, share.count, threads]
            }
            (Some((Dim { index, extent, .. }, OverBlocks::Cyclic)), None) => {
                let [block, blocks] = [index, extent].map(|number| emit.cast(number, ty));
                [block, count, blocks]
            }
            (_, None) => [emit.int(0, ty), share.count, emit.int(1, ty)],
        };
        self.loop_of(emit, bounds, |shares, emit, own| {
            let iteration = emit.binary(BinaryOp::Add, share.lo, own);
            Start::at(shares.index(emit, iteration))
        })
    }

    /// Writes the loop of which all threads of a block take each turn.
    pub(crate) fn write_meeting(&self, emit: &mut Emit<'_>) -> (Value, Turn) {
        let Some(thread) = self.thread else {
            return self.write(emit);
        };
        let ty = self.counted_in(emit);
        let count = self.count(emit);
        let share = self.share(emit, count, ty);
        let batches = self.batches(emit, share.count, thread, ty);
        let threads = emit.cast(thread.extent, ty);
        self.loop_of(emit, batches, |shares, emit, batch| {
            let (own, guard) = shares.in_batch(emit, batch, thread, share.count, ty);
            let iteration = emit.binary(BinaryOp::Add, share.lo, own);
            let first = emit.binary(BinaryOp::Mul, batch, threads);
            let first = emit.binary(BinaryOp::Add, share.lo, first);
            Start {
                index: shares.index(emit, iteration),
                first: shares.index(emit, first),
                region: None,
                guard,
            }
        })
    }

    /// The bounds of a loop over the batches that a block has of a share.
    fn batches(&self, emit: &mut Emit<'_>, count: Value, thread: Dim, ty: Type) -> [Value; 3] {
        let threads = emit.cast(thread.extent, ty);
        let batches = ceil_div(emit, count, threads, ty);
        match self.block {
            Some((Dim { index, extent, .. }, OverBlocks::Cyclic)) => {
                let [block, blocks] = [index, extent].map(|number| emit.cast(number, ty));
                [block, batches, blocks]
            }
            _ => [emit.int(0, ty), batches, emit.int(1, ty)],
        }
    }

    /// What a thread has of a batch, and whether that is within the share; none if all are.
    fn in_batch(
        &self,
        emit: &mut Emit<'_>,
        batch: Value,
        thread: Dim,
        count: Value,
        ty: Type,
    ) -> (Value, Option<Value>) {
        let [thread, threads] = [thread.index, thread.extent].map(|number| emit.cast(number, ty));
        let first = emit.binary(BinaryOp::Mul, batch, threads);
        let own = emit.binary(BinaryOp::Add, first, thread);
        let numbers = emit.number(count).zip(emit.number(threads));
        if numbers.is_some_and(|(count, threads)| count % threads == 0) {
            return (own, None);
        }
        let rest = emit.binary(BinaryOp::Sub, count, first);
        let guard = emit.compare(CompareOp::Lt, thread, rest);
        if !self.padded {
            return (own, Some(guard));
        }
        // Of a sum that wraps around, too, this is one of the share's.
        let one = emit.int(1, ty);
        let last = emit.binary(BinaryOp::Sub, count, one);
        (emit.binary(BinaryOp::Min, own, last), Some(guard))
    }

    /// Ends the launch where a thread has more turns than it executes.
    fn assert_once(&self, emit: &mut Emit<'_>, [_, end, step]: [Value; 3], ty: Type) {
        let jammed = emit.int(self.jammed.into(), ty);
        let most = emit.binary(BinaryOp::Mul, step, jammed);
        let holds = emit.compare(CompareOp::Le, end, most);
        if emit.function.constant(holds) != Some(Constant::Bool(true)) {
            let message = "a kernel whose threads have one iteration each of a loop is for launches in which they have no more";
            emit.assert(holds, message, [end, most]);
        }
    }

    /// A loop; `write` writes the start of a turn.
    fn loop_of(
        &self,
        emit: &mut Emit<'_>,
        bounds: [Value; 3],
        write: impl FnOnce(&Shares, &mut Emit<'_>, Value) -> Start,
    ) -> (Value, Turn) {
        let mut written = None;
        let unroll = match self.unroll {
            // The number of turns is another.
            Unroll::Full => Unroll::Auto,
            unroll => unroll,
        };
        if self.once == Once::Asserted {
            let ty = emit.function.type_of(bounds[0]);
            self.assert_once(emit, bounds, ty);
        }
        let body = match self.once {
            Once::Asserted | Once::Known if self.jammed == 1 => {
                let [start, end, _] = bounds;
                let has_one = emit.compare(CompareOp::Lt, start, end);
                let region = emit.region(|turn| written = Some(write(self, turn, start)));
                emit.if_(has_one, region);
                region
            }
            _ => emit.for_(bounds, unroll, |turn, own| {
                written = Some(write(self, turn, own))
            }),
        };
        let Start {
            index,
            first,
            region,
            guard,
        } = written.expect("the body is written once");
        let region = region.unwrap_or(body);
        let turn = Turn {
            region,
            guard,
            first,
        };
        (index, turn)
    }
}

/// A quotient, rounded up.
pub(crate) fn ceil_div(emit: &mut Emit<'_>, number: Value, by: Value, ty: Type) -> Value {
    let whole = emit.binary(BinaryOp::Div, number, by);
    let rest = emit.binary(BinaryOp::Rem, number, by);
    let zero = emit.int(0, ty);
    let more = emit.compare(CompareOp::Ne, rest, zero);
    let more = emit.cast(more, ty);
    emit.binary(BinaryOp::Add, whole, more)
}
