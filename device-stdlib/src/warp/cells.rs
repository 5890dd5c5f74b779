//! How NVIDIA's GPUs have operations of a warp: inline PTX and special registers.
//!
//! In the templates `$0` is the result and `$1` on are the row's parameters; for an operation
//! without a result they start at `$0`. Names and labels declared in braces are not seen outside.

use kiln_jit_core::ir::{Cell, Family, Scalar};

/// A cell of inline PTX: template and constraints.
pub(super) const fn asm(ty: Option<Scalar>, min_sm: u32, code: [&'static str; 2]) -> Cell {
    let [template, constraints] = code;
    Cell::asm(Family::Ptx { min_sm }, ty, template, constraints)
}

/// One cell for all types.
pub(super) const fn one(template: &'static str, constraints: &'static str) -> [Cell; 1] {
    [asm(None, 0, [template, constraints])]
}

/// The cells of all types: templates for values in 16-, 32- and 64-bit registers, and constraints
/// for registers of 16 bits, 32 bits, `f32`, 64 bits, `f64`. Halves and 8-bit integers come in
/// registers of 16 bits, `bool` in one of 32.
pub(super) const fn all_types(
    templates: [&'static str; 3],
    constraints: [&'static str; 5],
) -> [Cell; 13] {
    let [half, word, double] = templates;
    let [h, r, f, l, d] = constraints;
    [
        asm(Some(Scalar::Bool), 0, [word, r]),
        asm(Some(Scalar::I8), 0, [half, h]),
        asm(Some(Scalar::U8), 0, [half, h]),
        asm(Some(Scalar::I16), 0, [half, h]),
        asm(Some(Scalar::U16), 0, [half, h]),
        asm(Some(Scalar::F16), 0, [half, h]),
        asm(Some(Scalar::BF16), 0, [half, h]),
        asm(Some(Scalar::I32), 0, [word, r]),
        asm(Some(Scalar::U32), 0, [word, r]),
        asm(Some(Scalar::F32), 0, [word, f]),
        asm(Some(Scalar::I64), 0, [double, l]),
        asm(Some(Scalar::U64), 0, [double, l]),
        asm(Some(Scalar::F64), 0, [double, d]),
    ]
}

/// The cells of a shuffle. The last operand of `shfl.sync` before the mask holds the segment mask,
/// `32 - width`, in bits 8 to 12, and the last lane that can be read, or for `up` the first, in
/// bits 0 to 4. The assembler computes it.
macro_rules! shuffle_cells {
    ($mode:literal, $clamp:literal) => {
        $crate::warp::cells::all_types(
            [
                shuffle_cells!(
                    $mode, $clamp,
                    ".reg .b32 v; cvt.u32.u16 v, $2;", ["v"], "cvt.u16.u32 $0, v;"
                ),
                shuffle_cells!(
                    $mode, $clamp,
                    ".reg .b32 v; mov.b32 v, $2;", ["v"], "mov.b32 $0, v;"
                ),
                shuffle_cells!(
                    $mode, $clamp,
                    ".reg .b32 l, h; mov.b64 {l, h}, $2;", ["l" "h"], "mov.b64 $0, {l, h};"
                ),
            ],
            ["=h,r,h,r,r", "=r,r,r,r,r", "=f,r,f,r,r", "=l,r,l,r,r", "=d,r,d,r,r"],
        )
    };
    ($mode:literal, $clamp:literal, $split:literal, [$($word:literal)*], $join:literal) => {
        concat!(
            "{ .reg .b32 c; sub.u32 c, 32, $4; shl.b32 c, c, 8; or.b32 c, c, ", $clamp, "; ",
            $split,
            $(" shfl.sync.", $mode, ".b32 ", $word, ", ", $word, ", $3, c, $1;",)*
            " ", $join, " }"
        )
    };
}

/// The cells of `match.sync`.
macro_rules! match_cells {
    ($mode:literal) => {
        $crate::warp::cells::all_types(
            [
                concat!(
                    "{ .reg .b32 v; cvt.u32.u16 v, $2; match.",
                    $mode,
                    ".sync.b32 $0, v, $1; }"
                ),
                concat!("match.", $mode, ".sync.b32 $0, $2, $1;"),
                concat!("match.", $mode, ".sync.b64 $0, $2, $1;"),
            ],
            ["=r,r,h", "=r,r,r", "=r,r,f", "=r,r,l", "=r,r,d"],
        )
    };
}

/// The cells of a vote with a result of type `bool`, in a register of 32 bits.
macro_rules! vote_cells {
    ($mode:literal) => {
        $crate::warp::cells::one(
            concat!(
                "{ .reg .pred p; setp.ne.u32 p, $2, 0; vote.sync.",
                $mode,
                ".pred p, p, $1; selp.u32 $0, 1, 0, p; }"
            ),
            "=r,r,r",
        )
    };
}

/// The cells of a reduction: `redux.sync`, and before sm_80 a loop that takes lane after lane of
/// those that vote.
macro_rules! reduce_cells {
    ($operation:literal, $signed:literal, $unsigned:literal) => {
        [
            $crate::warp::cells::asm(Some(::kiln_jit_core::ir::Scalar::I32), 80, reduce_cells!($operation, $signed)),
            $crate::warp::cells::asm(Some(::kiln_jit_core::ir::Scalar::U32), 80, reduce_cells!($operation, $unsigned)),
            $crate::warp::cells::asm(
                Some(::kiln_jit_core::ir::Scalar::I32),
                0,
                reduce_cells!(loop $operation, $signed),
            ),
            $crate::warp::cells::asm(
                Some(::kiln_jit_core::ir::Scalar::U32),
                0,
                reduce_cells!(loop $operation, $unsigned),
            ),
        ]
    };
    ($operation:literal, $type:literal) => {
        [
            concat!("redux.sync.", $operation, ".", $type, " $0, $2, $1;"),
            "=r,r,r",
        ]
    };
    (loop $operation:literal, $type:literal) => {
        [
            concat!(
                "{ .reg .b32 left, lane, bit, v, sum; .reg .pred p; ",
                "setp.eq.u32 p, $1, $1; vote.sync.ballot.b32 left, p, $1; ",
                "bfind.u32 lane, left; shfl.sync.idx.b32 sum, $2, lane, 31, $1; ",
                "next: shl.b32 bit, 1, lane; xor.b32 left, left, bit; ",
                "setp.eq.u32 p, left, 0; @p bra done; ",
                "bfind.u32 lane, left; shfl.sync.idx.b32 v, $2, lane, 31, $1; ",
                $operation, ".", $type, " sum, sum, v; bra next; ",
                "done: mov.b32 $0, sum; }"
            ),
            "=r,r,r",
        ]
    };
}

/// A special register.
pub(super) const fn register(name: &'static str) -> [Cell; 1] {
    [Cell::named(Family::PTX, name)]
}

/// The warp's number from the linear index of the thread; `%warpid` may change.
pub(super) const WARP_ID: [Cell; 1] = one(
    "{ .reg .b32 a, b, n; mov.u32 n, %tid.z; mov.u32 a, %ntid.y; mov.u32 b, %tid.y; \
     mad.lo.u32 n, n, a, b; mov.u32 a, %ntid.x; mov.u32 b, %tid.x; mad.lo.u32 n, n, a, b; \
     shr.u32 $0, n, 5; }",
    "=r",
);

pub(super) use {match_cells, reduce_cells, shuffle_cells, vote_cells};
