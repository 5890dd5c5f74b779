//! The rows of warp operations, all of inline PTX or special registers.
//!
//! In the templates `$0` is the result and `$1` on are the row's parameters; for an operation
//! without a result they start at `$0`. Names and labels declared in braces are not seen outside.

use kiln_jit_core::ir::{
    Cell, CompareOp, Effects, Family, IntrinsicDef, Known, Match, Meaning, Reduction, Scalar,
    Shuffle, ThreadPosition, TypePattern, Uniformity, Vote,
};

use super::meaning;

const MASK: TypePattern = TypePattern::Exact(Scalar::U32);
const PREDICATE: TypePattern = TypePattern::Exact(Scalar::Bool);
const LANE: TypePattern = TypePattern::Exact(Scalar::U32);
const ANY: TypePattern = TypePattern::OneOf(&Scalar::ALL);
const WORD: TypePattern = TypePattern::OneOf(&[Scalar::I32, Scalar::U32]);

const U32: TypePattern = TypePattern::Exact(Scalar::U32);
const BOOL: TypePattern = TypePattern::Exact(Scalar::Bool);

/// A cell of inline PTX: template and constraints.
const fn asm(ty: Option<Scalar>, min_sm: u32, code: [&'static str; 2]) -> Cell {
    let [template, constraints] = code;
    Cell::asm(Family::Ptx { min_sm }, ty, template, constraints)
}

/// One cell for all types.
const fn one(template: &'static str, constraints: &'static str) -> [Cell; 1] {
    [asm(None, 0, [template, constraints])]
}

/// The cells of all types: templates for values in 16-, 32- and 64-bit registers, and constraints
/// for registers of 16 bits, 32 bits, `f32`, 64 bits, `f64`. Halves and 8-bit integers come in
/// registers of 16 bits, `bool` in one of 32.
const fn all_types(templates: [&'static str; 3], constraints: [&'static str; 5]) -> [Cell; 13] {
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
        all_types(
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
        all_types(
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
        one(
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
            asm(Some(Scalar::I32), 80, reduce_cells!($operation, $signed)),
            asm(Some(Scalar::U32), 80, reduce_cells!($operation, $unsigned)),
            asm(
                Some(Scalar::I32),
                0,
                reduce_cells!(loop $operation, $signed),
            ),
            asm(
                Some(Scalar::U32),
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
const fn register(name: &'static str) -> [Cell; 1] {
    [Cell::named(Family::PTX, name)]
}

/// The warp's number from the linear index of the thread; `%warpid` may change.
const WARP_ID: [Cell; 1] = one(
    "{ .reg .b32 a, b, n; mov.u32 n, %tid.z; mov.u32 a, %ntid.y; mov.u32 b, %tid.y; \
     mad.lo.u32 n, n, a, b; mov.u32 a, %ntid.x; mov.u32 b, %tid.x; mad.lo.u32 n, n, a, b; \
     shr.u32 $0, n, 5; }",
    "=r",
);

macro_rules! rows {
    (
        positions { $($p:ident $p_name:literal $p_known:expr, $p_uniformity:ident below $p_below:literal,
            $p_cells:expr, |$at:ident| $p_meaning:expr;)* }
        operations { $($o:ident $o_name:literal $o_known:expr, ($($param:expr),*) -> $result:expr,
            $o_uniformity:ident $o_effects:ident, $o_cells:expr, $o_meaning:expr;)* }
    ) => {
        /// The rows of this chapter. Their parameters are mask; then for votes the predicate, for
        /// shuffles value, lane or delta, width, for the others the value.
        pub static ROWS: &[IntrinsicDef] = &[
            $(IntrinsicDef::new(
                $p_name,
                &[],
                U32,
                Meaning::Position(|$at: &ThreadPosition| u64::from($p_meaning)),
            )
            .known_as($p_known)
            .with_uniformity(Uniformity::$p_uniformity)
            .with_result_below($p_below)
            .with_cells(&$p_cells),)*
            $(IntrinsicDef::new($o_name, &[$($param),*], $result, Meaning::Warp($o_meaning))
                .known_as($o_known)
                .with_uniformity(Uniformity::$o_uniformity)
                .with_effects(Effects::$o_effects)
                .with_cells(&$o_cells),)*
        ];
        #[allow(non_camel_case_types, reason = "row numbers, spelled as the methods")]
        #[derive(Copy, Clone)]
        pub(super) enum Row { $($p,)* $($o,)* }
    };
}
rows! {
    positions {
        lane_id "warp.lane_id" Known::LaneId, Lane below 32,
            register("llvm.nvvm.read.ptx.sreg.laneid"), |at| at.lane();
        warp_id "warp.warp_id" Known::WarpId, Warp below 32, WARP_ID, |at| at.warp();
        lanemask_lt "warp.lanemask_lt" Known::LaneMask(CompareOp::Lt), Lane below 0,
            register("llvm.nvvm.read.ptx.sreg.lanemask.lt"), |at| (1u32 << at.lane()) - 1;
        lanemask_le "warp.lanemask_le" Known::LaneMask(CompareOp::Le), Lane below 0,
            register("llvm.nvvm.read.ptx.sreg.lanemask.le"), |at| u32::MAX >> (31 - at.lane());
        lanemask_gt "warp.lanemask_gt" Known::LaneMask(CompareOp::Gt), Lane below 0,
            register("llvm.nvvm.read.ptx.sreg.lanemask.gt"), |at| !(u32::MAX >> (31 - at.lane()));
        lanemask_ge "warp.lanemask_ge" Known::LaneMask(CompareOp::Ge), Lane below 0,
            register("llvm.nvvm.read.ptx.sreg.lanemask.ge"), |at| u32::MAX << at.lane();
        lanemask_eq "warp.lanemask_eq" Known::LaneMask(CompareOp::Eq), Lane below 0,
            register("llvm.nvvm.read.ptx.sreg.lanemask.eq"), |at| 1u32 << at.lane();
    }
    operations {
        active_mask "warp.active_mask" Known::ActiveMask, () -> U32, Warp Convergent,
            one("activemask.b32 $0;", "=r"), meaning::active_mask;
        shuffle_idx "warp.shuffle_idx" Known::Shuffle(Shuffle::Idx), (MASK, ANY, LANE, U32) -> TypePattern::SameAs(1), Lane Convergent,
            shuffle_cells!("idx", "31"), meaning::shuffle_idx;
        shuffle_up "warp.shuffle_up" Known::Shuffle(Shuffle::Up), (MASK, ANY, LANE, U32) -> TypePattern::SameAs(1), Lane Convergent,
            shuffle_cells!("up", "0"), meaning::shuffle_up;
        shuffle_down "warp.shuffle_down" Known::Shuffle(Shuffle::Down), (MASK, ANY, LANE, U32) -> TypePattern::SameAs(1), Lane Convergent,
            shuffle_cells!("down", "31"), meaning::shuffle_down;
        shuffle_xor "warp.shuffle_xor" Known::Shuffle(Shuffle::Xor), (MASK, ANY, LANE, U32) -> TypePattern::SameAs(1), Lane Convergent,
            shuffle_cells!("bfly", "31"), meaning::shuffle_xor;
        ballot "warp.ballot" Known::Vote(Vote::Ballot), (MASK, PREDICATE) -> U32, Warp Convergent,
            one(
                "{ .reg .pred p; setp.ne.u32 p, $2, 0; vote.sync.ballot.b32 $0, p, $1; }",
                "=r,r,r",
            ),
            meaning::ballot;
        warp_all "warp.all" Known::Vote(Vote::All), (MASK, PREDICATE) -> BOOL, Warp Convergent, vote_cells!("all"), meaning::all;
        warp_any "warp.any" Known::Vote(Vote::Any), (MASK, PREDICATE) -> BOOL, Warp Convergent, vote_cells!("any"), meaning::any;
        warp_uniform "warp.uniform" Known::Vote(Vote::Uniform), (MASK, PREDICATE) -> BOOL, Warp Convergent,
            vote_cells!("uni"), meaning::uniform;
        match_any "warp.match_any" Known::Match(Match::Any), (MASK, ANY) -> U32, Lane Convergent,
            match_cells!("any"), meaning::match_any;
        match_all "warp.match_all" Known::Match(Match::All), (MASK, ANY) -> U32, Warp Convergent,
            match_cells!("all"), meaning::match_all;
        warp_reduce_add "warp.reduce_add" Known::Reduce(Reduction::Add), (MASK, WORD) -> TypePattern::SameAs(1), Warp Convergent,
            reduce_cells!("add", "s32", "u32"), meaning::reduce_add;
        warp_reduce_min "warp.reduce_min" Known::Reduce(Reduction::Min), (MASK, WORD) -> TypePattern::SameAs(1), Warp Convergent,
            reduce_cells!("min", "s32", "u32"), meaning::reduce_min;
        warp_reduce_max "warp.reduce_max" Known::Reduce(Reduction::Max), (MASK, WORD) -> TypePattern::SameAs(1), Warp Convergent,
            reduce_cells!("max", "s32", "u32"), meaning::reduce_max;
        warp_reduce_and "warp.reduce_and" Known::Reduce(Reduction::And), (MASK, WORD) -> TypePattern::SameAs(1), Warp Convergent,
            reduce_cells!("and", "b32", "b32"), meaning::reduce_and;
        warp_reduce_or "warp.reduce_or" Known::Reduce(Reduction::Or), (MASK, WORD) -> TypePattern::SameAs(1), Warp Convergent,
            reduce_cells!("or", "b32", "b32"), meaning::reduce_or;
        warp_reduce_xor "warp.reduce_xor" Known::Reduce(Reduction::Xor), (MASK, WORD) -> TypePattern::SameAs(1), Warp Convergent,
            reduce_cells!("xor", "b32", "b32"), meaning::reduce_xor;
        warp_sync "warp.sync" Known::WarpSync, (MASK) -> TypePattern::Unit, Warp Synchronizes,
            one("bar.warp.sync $0;", "r,~{memory}"), meaning::sync;
    }
}
