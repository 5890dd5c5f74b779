//! Whole kernels: saxpy, a tiled matrix product, a sum.
//!
//! All indexing is checked, as users have it.

use kiln_jit_core::ir::{
    AddressSpace, AtomicOp, BinaryOp, CompareOp, InstData, LaunchBounds, Module, Ordering, Scope,
    SharedData, Type, Unroll,
};

use super::{BLOCK_DIM_X, BLOCK_IDX_X, Body, THREAD_IDX_X, legal_module, slice};

/// `y[i] = a * x[i] + y[i]` where `i < y.len()`.
pub(crate) fn saxpy(noalias: bool) -> Module {
    let mut m = legal_module("saxpy");
    let (input, output) = (
        slice(&mut m, Type::F32, false),
        slice(&mut m, Type::F32, true),
    );
    let mut b = Body::kernel("saxpy");
    let a = b.param("a", Type::F32);
    let x = b.param("x", input);
    let y = b.param("y", output);
    for param in &mut b.f.params[1..] {
        param.facts.noalias = noalias;
    }
    let i = b.global_id(&mut m);
    let len = b.value(InstData::SliceLen { slice: y }, Type::U32);
    let inside = b.compare(CompareOp::Lt, i, len);
    b.if_(inside, |b| {
        let from = b.at(&mut m, x, i);
        let to = b.at(&mut m, y, i);
        let xi = b.load(from, Type::F32);
        let yi = b.load(to, Type::F32);
        let ax = b.binary(BinaryOp::Mul, a, xi);
        let sum = b.binary(BinaryOp::Add, ax, yi);
        b.store(to, sum);
    });
    m.functions.push(b.f);
    m
}

/// One 16x16 tile of `c = a * b` for each block, with the tiles in shared memory.
pub(crate) fn tiled_matmul() -> Module {
    const TILE: i128 = 16;
    let mut m = legal_module("matmul");
    let (input, output) = (
        slice(&mut m, Type::F32, false),
        slice(&mut m, Type::F32, true),
    );
    let row_type = m.types.array(Type::F32, TILE as u64);
    let tile_type = m.types.array(row_type, TILE as u64);
    let tile_ptr = m.types.pointer(tile_type, AddressSpace::Shared, true);
    let row_ptr = m.types.pointer(row_type, AddressSpace::Shared, true);
    let cell_ptr = m.types.pointer(Type::F32, AddressSpace::Shared, true);
    let mut b = Body::kernel("matmul");
    let left = b.param("a", input);
    let right = b.param("b", input);
    let result = b.param("c", output);
    let n = b.param("n", Type::U32);
    let tiles = ["ta", "tb"].map(|name| {
        let var = b.f.shared.push(SharedData {
            name: name.into(),
            ty: tile_type,
            align: 16,
        });
        b.value(InstData::SharedAddr(var), tile_ptr)
    });
    let cell = |b: &mut Body, tile, row, column| {
        let checked = true;
        let ptr = b.value(
            InstData::ElementPtr {
                ptr: tile,
                index: row,
                checked,
            },
            row_ptr,
        );
        b.value(
            InstData::ElementPtr {
                ptr,
                index: column,
                checked,
            },
            cell_ptr,
        )
    };
    let width = b.int(TILE, Type::U32);
    let thread = b.call(&mut m, &THREAD_IDX_X, &[]);
    let block = b.call(&mut m, &BLOCK_IDX_X, &[]);
    let tx = b.binary(BinaryOp::Rem, thread, width);
    let ty = b.binary(BinaryOp::Div, thread, width);
    let row = b.binary(BinaryOp::Mul, block, width);
    let row = b.binary(BinaryOp::Add, row, ty);
    let sum = b.var(Type::F32);
    let zero = b.int(0, Type::U32);
    let one = b.int(1, Type::U32);
    b.for_([zero, n, width], Unroll::Auto, |b, start| {
        for (tile, from, by_row) in [(tiles[0], left, true), (tiles[1], right, false)] {
            let (r, c) = if by_row {
                (row, b.binary(BinaryOp::Add, start, tx))
            } else {
                (b.binary(BinaryOp::Add, start, ty), tx)
            };
            let at = b.binary(BinaryOp::Mul, r, n);
            let at = b.binary(BinaryOp::Add, at, c);
            let at = b.at(&mut m, from, at);
            let value = b.load(at, Type::F32);
            let to = cell(b, tile, ty, tx);
            b.store(to, value);
        }
        b.stmt(InstData::Barrier);
        b.for_([zero, width, one], Unroll::Full, |b, k| {
            let x = cell(b, tiles[0], ty, k);
            let x = b.load(x, Type::F32);
            let y = cell(b, tiles[1], k, tx);
            let y = b.load(y, Type::F32);
            let product = b.binary(BinaryOp::Mul, x, y);
            let old = b.value(InstData::VarGet(sum), Type::F32);
            let new = b.binary(BinaryOp::Add, product, old);
            b.stmt(InstData::VarSet(sum, new));
        });
        b.stmt(InstData::Barrier);
    });
    let at = b.binary(BinaryOp::Mul, row, n);
    let at = b.binary(BinaryOp::Add, at, tx);
    let to = b.at(&mut m, result, at);
    let value = b.value(InstData::VarGet(sum), Type::F32);
    b.store(to, value);
    m.functions.push(b.f);
    m
}

/// A tree in dynamic shared memory, then one atomic for each block.
pub(crate) fn reduction() -> Module {
    let mut m = legal_module("sum");
    let (input, output) = (
        slice(&mut m, Type::F32, false),
        slice(&mut m, Type::F32, true),
    );
    let shared = m.types.slice(Type::F32, AddressSpace::Shared, true);
    let mut b = Body::kernel("sum");
    let from = b.param("x", input);
    let to = b.param("out", output);
    b.f.launch_bounds = Some(LaunchBounds {
        max_threads: 256,
        min_blocks: 2,
    });
    let cache = b.value(InstData::DynamicShared, shared);
    let i = b.global_id(&mut m);
    let thread = b.call(&mut m, &THREAD_IDX_X, &[]);
    let dim = b.call(&mut m, &BLOCK_DIM_X, &[]);
    let at = b.at(&mut m, from, i);
    let value = b.load(at, Type::F32);
    let own = b.at(&mut m, cache, thread);
    b.store(own, value);
    b.stmt(InstData::Barrier);
    let half = b.var(Type::U32);
    let one = b.int(1, Type::U32);
    let zero = b.int(0, Type::U32);
    let start = b.binary(BinaryOp::Shr, dim, one);
    b.stmt(InstData::VarSet(half, start));
    let body = b.region(|b| {
        let now = b.value(InstData::VarGet(half), Type::U32);
        let done = b.compare(CompareOp::Eq, now, zero);
        b.if_(done, |b| b.stmt(InstData::Break { depth: 0 }));
        let active = b.compare(CompareOp::Lt, thread, now);
        b.if_(active, |b| {
            let partner = b.binary(BinaryOp::Add, thread, now);
            let other = b.at(&mut m, cache, partner);
            let other = b.load(other, Type::F32);
            let mine = b.load(own, Type::F32);
            let sum = b.binary(BinaryOp::Add, mine, other);
            b.store(own, sum);
        });
        b.stmt(InstData::Barrier);
        let next = b.binary(BinaryOp::Shr, now, one);
        b.stmt(InstData::VarSet(half, next));
    });
    b.stmt(InstData::Loop { body });
    let first = b.compare(CompareOp::Eq, thread, zero);
    b.if_(first, |b| {
        let total = b.load(own, Type::F32);
        let ptr = b.at(&mut m, to, zero);
        b.value(
            InstData::AtomicRmw {
                op: AtomicOp::Add,
                ptr,
                value: total,
                ordering: Ordering::Relaxed,
                scope: Scope::Device,
            },
            Type::F32,
        );
    });
    m.functions.push(b.f);
    m
}
