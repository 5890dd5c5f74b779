//! Additions to vectors in memory, lane by lane (CUDA guide, `atomicAdd` of `__half2`, `__nv_bfloat162`, `float2`,
//! `float4`; PTX ISA, "atom", `.f16x2`, `.bf16x2`, `.v2.f32`, `.v4.f32`).

use std::ops::Add;

use kiln_jit_core::build::{IntoVal as _, Val};
use kiln_jit_core::front::macros::{Front, Operand};
use kiln_jit_core::ir::{
    AtomicOp, Cell, Family, IntrinsicDef, Module, Ordering, Scalar, Scope, TypeData, TypePattern,
    parse,
};
use kiln_jit_core::value::{BF16x2, DeviceType, F16x2, F32x2, F32x4, F64x2, I32x4, U32x4, U64x2};

use super::number::Num;
use crate::cache::{place, row};

/// What [`atomic_add`](super::atomic::atomic_add()) adds: numbers, and vectors, of which each lane is added by itself.
#[diagnostic::on_unimplemented(
    message = "there are no atomic additions of `{Self}`",
    label = "not a number, and no vector",
    note = "add each number of it, `atomic_add(&mut x[i].field, value)`"
)]
pub trait AtomicSum: DeviceType + Copy + Add<Output = Self> {}

#[diagnostic::do_not_recommend]
impl<T: Num> AtomicSum for T {}

macro_rules! sums {
    ($($t:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl AtomicSum for $t {}
    )*};
}
sums! { F16x2 BF16x2 F32x2 F32x4 F64x2 I32x4 U32x4 U64x2 }

const PAIR: TypePattern = TypePattern::Vector(
    &TypePattern::OneOf(&[
        Scalar::F16,
        Scalar::BF16,
        Scalar::F32,
        Scalar::F64,
        Scalar::U64,
    ]),
    2,
);
const QUAD: TypePattern = TypePattern::Vector(
    &TypePattern::OneOf(&[Scalar::F32, Scalar::I32, Scalar::U32]),
    4,
);
const CHOSEN_PAIR: TypePattern = TypePattern::Vector(&TypePattern::Chosen, 2);
const CHOSEN_QUAD: TypePattern = TypePattern::Vector(&TypePattern::Chosen, 4);

/// An instruction for two numbers of 16 bits, which takes them in one register.
macro_rules! packed {
    ($scalar:ident from $min_sm:literal: $instruction:literal) => {
        Cell::asm(
            Family::Ptx { min_sm: $min_sm },
            Some(Scalar::$scalar),
            concat!(
                "{ .reg .b32 by, old; mov.b32 by, {$3, $4}; ",
                $instruction,
                " old, [$2], by; mov.b32 {$0, $1}, old; }"
            ),
            "=h,=h,l,h,h,~{memory}",
        )
    };
}

static ADD_PAIR: IntrinsicDef = row(
    "atomic.add_pair",
    &[place(&PAIR, true), CHOSEN_PAIR],
    CHOSEN_PAIR,
    |scalar| body(scalar, 2),
    &[
        packed! { F16 from 0: "atom.relaxed.gpu.add.noftz.f16x2" },
        packed! { BF16 from 90: "atom.relaxed.gpu.add.noftz.bf16x2" },
        // Vectors are in global memory alone, and PTX knows them from 8.1 on, which sm_100 has.
        Cell::asm(
            Family::Ptx { min_sm: 100 },
            Some(Scalar::F32),
            "{ .reg .pred far; .reg .b64 at; isspacep.global far, $2; cvta.to.global.u64 at, $2; \
             @far atom.relaxed.gpu.global.add.v2.f32 {$0, $1}, [at], {$3, $4}; \
             @!far atom.relaxed.gpu.add.f32 $0, [$2], $3; \
             @!far atom.relaxed.gpu.add.f32 $1, [$2+4], $4; }",
            "=&f,=&f,l,f,f,~{memory}",
        ),
    ],
);

static ADD_QUAD: IntrinsicDef = row(
    "atomic.add_quad",
    &[place(&QUAD, true), CHOSEN_QUAD],
    CHOSEN_QUAD,
    |scalar| body(scalar, 4),
    &[Cell::asm(
        Family::Ptx { min_sm: 100 },
        Some(Scalar::F32),
        "{ .reg .pred far; .reg .b64 at; isspacep.global far, $4; cvta.to.global.u64 at, $4; \
         @far atom.relaxed.gpu.global.add.v4.f32 {$0, $1, $2, $3}, [at], {$5, $6, $7, $8}; \
         @!far atom.relaxed.gpu.add.f32 $0, [$4], $5; \
         @!far atom.relaxed.gpu.add.f32 $1, [$4+4], $6; \
         @!far atom.relaxed.gpu.add.f32 $2, [$4+8], $7; \
         @!far atom.relaxed.gpu.add.f32 $3, [$4+12], $8; }",
        "=&f,=&f,=&f,=&f,l,f,f,f,f,~{memory}",
    )],
);

/// The rows of this file.
pub(crate) fn rows() -> impl Iterator<Item = &'static IntrinsicDef> {
    [&ADD_PAIR, &ADD_QUAD].into_iter()
}

/// The function that adds lane by lane.
fn body(scalar: Scalar, lanes: u32) -> Option<Module> {
    let (lane, by) = (scalar.name(), 10);
    let mut text = format!(
        "module add generic
        device @add(%0 place: ptr<generic, mut {lane}x{lanes}>, %1 value: {lane}x{lanes}) -> {lane}x{lanes} {{\n"
    );
    for i in 0..lanes {
        let [index, at, value, old] = [0, 1, 2, 3].map(|n| by * (i + 1) + n);
        text += &format!(
            "%{index}: u32 = const {i}
            %{at}: ptr<generic, mut {lane}> = element_ptr unchecked %0, %{index}
            %{value}: {lane} = extract %1, {i}
            %{old}: {lane} = atomic add relaxed device %{at}, %{value}\n"
        );
    }
    let old: Vec<String> = (0..lanes)
        .map(|i| format!("%{}", by * (i + 1) + 3))
        .collect();
    text += &format!(
        "%9: {lane}x{lanes} = construct({})
        return %9 }}",
        old.join(", ")
    );
    parse(&text, &|_| None).ok()
}

/// An addition to a number or to each lane of a vector; the old value.
pub(super) fn add<'k>(
    front: Front<'k>,
    place: Operand<'k>,
    value: Operand<'k>,
    (ordering, scope): (Ordering, Scope),
) -> Operand<'k> {
    let target = place.place();
    let builder = front.builder();
    let lanes = if let TypeData::Vector { lanes, .. } = builder.type_data(target.ty()) {
        lanes
    } else {
        return front.value(target.atomic(AtomicOp::Add, value, ordering, scope));
    };
    let value = value.into_val(builder, Some(target.ty()));
    let is_plain = ordering == Ordering::Relaxed && scope == Scope::Device;
    let row = match lanes {
        2 if is_plain => &ADD_PAIR,
        4 if is_plain => &ADD_QUAD,
        _ => {
            let add = |i: u8| {
                let (lane, by) = (target.at(u32::from(i)), value.element(i.into()));
                lane.atomic(AtomicOp::Add, by, ordering, scope)
            };
            let old: Vec<Val<'k>> = (0..lanes).map(add).collect();
            return front.value(builder.construct(target.ty(), &old));
        }
    };
    let reference = front.reference_type(target.ty(), false, true);
    let place = front.passed(place.read(), reference);
    front.value(builder.intrinsic(row, &[place, value]))
}
