//! Rows of a program's own.

use kiln::core::ir::{
    Cell, Family, IntrinsicDef, Meaning, Scalar, ThreadPosition, TypePattern, Uniformity,
};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    where_a_thread_is,
    bits_by_llvm,
    halves_by_llvm,
    rows_without_results,
];

/// The row of this chapter with a name, for texts of its kernels.
pub(crate) fn find(name: &str) -> Option<&'static IntrinsicDef> {
    let rows = [
        &THREAD, &WARP, &PLACE, &COUNT, &LEFT, &MAGNITUDE, &TELL, &PAUSE,
    ];
    rows.into_iter().find(|row| row.name == name)
}

const U32: TypePattern = TypePattern::Exact(Scalar::U32);
const INTEGERS: TypePattern =
    TypePattern::OneOf(&[Scalar::U8, Scalar::U16, Scalar::U32, Scalar::U64]);

const fn position(name: &'static str, meaning: fn(&ThreadPosition) -> u64) -> IntrinsicDef {
    IntrinsicDef::new(name, &[], U32, Meaning::Position(meaning))
}

const fn ptx(template: &'static str, constraints: &'static str) -> Cell {
    Cell::asm(Family::PTX, None, template, constraints)
}

const LINEAR: &str = "{ .reg .b32 a, b, n; mov.u32 n, %tid.z; mov.u32 a, %ntid.y; \
     mov.u32 b, %tid.y; mad.lo.u32 n, n, a, b; mov.u32 a, %ntid.x; mov.u32 b, %tid.x; \
     mad.lo.u32 $0, n, a, b; }";

static THREAD: IntrinsicDef = position("user.thread", |at| at.linear().into())
    .with_uniformity(Uniformity::Lane)
    .with_cells(&[ptx(LINEAR, "=r")]);

static WARP: IntrinsicDef = position("user.warp", |at| u64::from(at.warp()) + 1)
    .with_uniformity(Uniformity::Warp)
    .with_cells(&[ptx(
        "{ .reg .b32 a, b, n; mov.u32 n, %tid.z; mov.u32 a, %ntid.y; mov.u32 b, %tid.y; \
         mad.lo.u32 n, n, a, b; mov.u32 a, %ntid.x; mov.u32 b, %tid.x; mad.lo.u32 n, n, a, b; \
         shr.u32 n, n, 5; add.u32 $0, n, 1; }",
        "=r",
    )]);

static PLACE: IntrinsicDef = position("user.place", |at| {
    u64::from(at.block[1] * 100 + at.block[0] * 10 + at.grid_dim[0] + at.block_dim[2])
})
.with_uniformity(Uniformity::Block)
.with_cells(&[ptx(
    "{ .reg .b32 n, p; mov.u32 n, %ctaid.y; mul.lo.u32 p, n, 100; mov.u32 n, %ctaid.x; \
     mad.lo.u32 p, n, 10, p; mov.u32 n, %nctaid.x; add.u32 p, p, n; mov.u32 n, %ntid.z; \
     add.u32 $0, p, n; }",
    "=r",
)]);

/// Functions of where the thread is, of each uniformity, in blocks of one to three dimensions.
fn where_a_thread_is(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("places", |k| {
        let out = k.slice_mut("out", Type::U32);
        let thread = k.intrinsic(&THREAD, &[]);
        let block = k.block_idx().y() * k.grid_dim().x() + k.block_idx().x();
        let threads = k.block_dim().x() * k.block_dim().y() * k.block_dim().z();
        let at = (block * threads + thread) * 3;
        out.at(at).set(thread);
        out.at(at + 1).set(k.intrinsic(&WARP, &[]));
        // One side of a branch that the whole block takes.
        let place = k.intrinsic(&PLACE, &[]);
        k.if_((place % 2).eq(0), || out.at(at + 2).set(place))
            .else_(|| out.at(at + 2).set(place * 2));
    })?;
    let grid = [3u32, 2, 1];
    for block in [[40u32, 1, 1], [8, 4, 2], [5, 3, 3]] {
        let threads = block.iter().product::<u32>();
        let mut out = jit.zeros::<u32>((6 * threads * 3) as usize)?;
        jit.launch(&kernel, grid, block, args!(&mut out))?;
        let mut want = Vec::new();
        for (y, x) in (0..grid[1]).flat_map(|y| (0..grid[0]).map(move |x| (y, x))) {
            let place = y * 100 + x * 10 + grid[0] + block[2];
            let place = if place.is_multiple_of(2) {
                place
            } else {
                place * 2
            };
            want.extend((0..threads).flat_map(|t| [t, t / 32 + 1, place]));
        }
        assert_eq!(out.to_vec()?, want, "{block:?}");
    }
    Ok(())
}

fn integer(scalar: Scalar, bits: u64) -> u64 {
    bits & (u64::MAX >> (64 - scalar.bits()))
}

static COUNT: IntrinsicDef = IntrinsicDef::new(
    "user.count",
    &[INTEGERS],
    TypePattern::SameAs(0),
    Meaning::Pure(|_, args| args[0].count_ones().into()),
)
.with_cells(&[
    Cell::overloaded(Family::Any, Scalar::U8, "llvm.ctpop"),
    Cell::overloaded(Family::Any, Scalar::U16, "llvm.ctpop"),
    Cell::overloaded(Family::Any, Scalar::U32, "llvm.ctpop"),
    Cell::overloaded(Family::Any, Scalar::U64, "llvm.ctpop"),
]);

/// A CPU has its own cell, a GPU another.
static LEFT: IntrinsicDef = IntrinsicDef::new(
    "user.funnel",
    &[
        TypePattern::OneOf(&[Scalar::U32]),
        TypePattern::SameAs(0),
        TypePattern::SameAs(0),
    ],
    TypePattern::SameAs(0),
    Meaning::Pure(|scalar, args| {
        integer(scalar, (args[0] << 32 | args[1]) << (args[2] % 32) >> 32)
    }),
)
.with_cells(&[
    Cell::overloaded(Family::Host, Scalar::U32, "llvm.fshl"),
    Cell::asm(
        Family::PTX,
        Some(Scalar::U32),
        "shf.l.wrap.b32 $0, $2, $1, $3;",
        "=r,r,r,r",
    ),
]);

/// Functions of integers that LLVM has for vectors.
fn bits_by_llvm(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("bits", |k| {
        let (out, x) = (k.slice_mut("out", Type::U64), k.slice("x", Type::U64));
        let i = k.global_id().x();
        let value = x.at(i).get();
        let sum = k.var("sum", 0u64);
        for ty in [Type::U8, Type::U16, Type::U32, Type::U64] {
            let count = k.intrinsic(&COUNT, &[value.cast(ty)]);
            sum.set((sum.get() << 8) | count.cast(Type::U64));
        }
        let (high, low) = ((value >> 32).cast(Type::U32), value.cast(Type::U32));
        let turned = k.intrinsic(&LEFT, &[high, low, i]);
        // And a number that all threads have.
        let same = k.intrinsic(&COUNT, &[x.at(0u32).get()]);
        out.at(i)
            .set((sum.get() << 32) ^ turned.cast(Type::U64) ^ (same << 56));
    })?;
    let hx: Vec<u64> = (0..70u64)
        .map(|i| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .collect();
    let want: Vec<u64> = (0u32..)
        .zip(&hx)
        .map(|(i, &x)| {
            let counts = [x & 0xff, x & 0xffff, x & 0xffff_ffff, x];
            let sum = counts
                .iter()
                .fold(0, |sum, c| sum << 8 | u64::from(c.count_ones()));
            let turned = (x << (i % 32)) >> 32;
            (sum << 32) ^ turned ^ (u64::from(hx[0].count_ones()) << 56)
        })
        .collect();
    let (mut out, x) = (jit.zeros::<u64>(70)?, jit.upload(&hx)?);
    jit.launch(&kernel, 2, 35, args!(&mut out, &x))?;
    assert_eq!(out.to_vec()?, want);
    Ok(())
}

static MAGNITUDE: IntrinsicDef = IntrinsicDef::new(
    "user.copysign",
    &[
        TypePattern::OneOf(&[Scalar::F32, Scalar::F16]),
        TypePattern::SameAs(0),
    ],
    TypePattern::SameAs(0),
    Meaning::Pure(|scalar, args| {
        let sign = 1 << (scalar.bits() - 1);
        args[0] & !sign | args[1] & sign
    }),
)
.with_cells(&[
    Cell::overloaded(Family::Any, Scalar::F32, "llvm.copysign"),
    Cell::via_f32(Family::Any, Scalar::F16),
]);

/// A function of 16-bit floats through that of `f32`.
fn halves_by_llvm(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("signs", |k| {
        let (out, x) = (k.slice_mut("out", Type::F32), k.slice("x", Type::F32));
        let i = k.global_id().x();
        let (value, other) = (x.at(i).get(), x.at(x.len() - 1u32 - i).get());
        let half = k.intrinsic(&MAGNITUDE, &[value.cast(Type::F16), other.cast(Type::F16)]);
        let whole = k.intrinsic(&MAGNITUDE, &[other, value]);
        out.at(i).set(half.cast(Type::F32) * 4096.0f32 + whole);
    })?;
    let hx: Vec<f32> = (0..64)
        .map(|i| (i as f32 + 0.5) * if i % 3 == 0 { -1.0 } else { 1.0 })
        .collect();
    let want: Vec<f32> = (0..64)
        .map(|i| {
            let (value, other) = (hx[i], hx[63 - i]);
            value.copysign(other) * 4096.0 + other.copysign(value)
        })
        .collect();
    let (mut out, x) = (jit.zeros::<f32>(64)?, jit.upload(&hx)?);
    jit.launch(&kernel, 2, 32, args!(&mut out, &x))?;
    assert_eq!(out.to_vec()?, want);
    Ok(())
}

const fn nothing(name: &'static str, params: &'static [TypePattern]) -> IntrinsicDef {
    IntrinsicDef::new(name, params, TypePattern::Unit, Meaning::Pure(|_, _| 7))
}

static TELL: IntrinsicDef =
    nothing("user.tell", &[U32]).with_cells(&[ptx("{ .reg .b32 a; mov.u32 a, $0; }", "r")]);

static PAUSE: IntrinsicDef =
    nothing("user.pause", &[]).with_cells(&[ptx("{ .reg .b32 a; mov.u32 a, 0; }", "")]);

/// Rows that give nothing, of arguments that lanes share, of others and of none.
fn rows_without_results(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("tells", |k| {
        let out = k.slice_mut("out", Type::U32);
        let i = k.global_id().x();
        k.if_((i % 3).ne(1), || {
            k.intrinsic(&TELL, &[i]);
            k.intrinsic(&TELL, &[k.block_dim().x()]);
            k.intrinsic(&PAUSE, &[]);
            out.at(i).set(i + 1);
        });
    })?;
    let mut out = jit.zeros::<u32>(64)?;
    jit.launch(&kernel, 1, 64, args!(&mut out))?;
    let want = (0..64u32).map(|i| if i % 3 == 1 { 0 } else { i + 1 });
    assert_eq!(out.to_vec()?, want.collect::<Vec<_>>());
    Ok(())
}
