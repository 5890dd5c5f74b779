//! Literals at concrete types, facts about arguments, wide slices.
//!
//! Each test shows the specialized module or the error.
//! A wide slice is one whose length takes 64 bits.

use std::sync::Arc;

use expect_test::{Expect, expect};
use kiln_jit_core::definition::Definition;
use kiln_jit_core::ir::*;
use kiln_jit_core::specialize::{HostType, ParamSpec};

use super::build::*;

fn literal_kernel(constant: Constant) -> Arc<Definition> {
    let mut k = Build::kernel("k");
    let t = k.type_param("T", TypeBound::Any);
    k.slice("x", t, false);
    k.constant(constant, t);
    k.define()
}

#[test]
fn literals_take_the_bound_type() {
    let ok = |constant: Constant, host: HostType| {
        let module = specialized(&literal_kernel(constant), &on(&[host], &[]));
        let kernel = &module.functions[module.kernel().unwrap()];
        match kernel.insts.values().next().unwrap().data {
            InstData::Const(constant) => constant,
            _ => panic!("not a constant"),
        }
    };
    let int = Constant::Int;
    assert_eq!(ok(int(2), HostType::of::<f32>()), Constant::Float(2.0));
    assert_eq!(
        ok(int(-2048), HostType::of::<half::f16>()),
        Constant::Float(-2048.0)
    );
    assert_eq!(ok(int(255), HostType::of::<u8>()), int(255));
    assert_eq!(ok(int(-128), HostType::of::<i8>()), int(-128));
    let max = i128::from(u64::MAX);
    assert_eq!(ok(int(max), HostType::of::<u64>()), int(max));
    let tenth = Constant::Float(0.1);
    assert_eq!(ok(tenth, HostType::of::<f32>()), tenth);
    assert_eq!(
        ok(Constant::Zero, HostType::of::<[f32; 3]>()),
        Constant::Zero
    );
    assert_eq!(
        ok(Constant::Bool(true), HostType::of::<bool>()),
        Constant::Bool(true)
    );
}

#[test]
fn literals_that_do_not_fit() {
    let check = |constant: Constant, host: HostType, expect: Expect| {
        let error = refused(&literal_kernel(constant), &on(&[host], &[]));
        expect.assert_eq(&shown(&error));
    };
    let int = Constant::Int;
    check(
        int(2049),
        HostType::of::<half::f16>(),
        expect![[r#"
            `k` (k.rs:3:1) has the literal 2049, which is not exact in `f16`, and `T` is `f16` here: write a literal that fits every type the function is used at, or narrow `T`
        "#]],
    );
    check(
        int((1 << 24) + 1),
        HostType::of::<f32>(),
        expect![[r#"
            `k` (k.rs:3:1) has the literal 16777217, which is not exact in `f32`, and `T` is `f32` here: write a literal that fits every type the function is used at, or narrow `T`
        "#]],
    );
    check(
        int(256),
        HostType::of::<u8>(),
        expect![[r#"
            `k` (k.rs:3:1) has the literal 256, which is out of range of `u8`, and `T` is `u8` here: write a literal that fits every type the function is used at, or narrow `T`
        "#]],
    );
    check(
        int(-1),
        HostType::of::<u32>(),
        expect![[r#"
            `k` (k.rs:3:1) has the literal -1, which is out of range of `u32`, and `T` is `u32` here: write a literal that fits every type the function is used at, or narrow `T`
        "#]],
    );
    check(
        Constant::Float(0.5),
        HostType::of::<i32>(),
        expect![[r#"
            `k` (k.rs:3:1) has the literal 0.5, which is a float, not a value of `i32`, and `T` is `i32` here: write a literal that fits every type the function is used at, or narrow `T`
        "#]],
    );
    check(
        int(1),
        HostType::of::<bool>(),
        expect![[r#"
            `k` (k.rs:3:1) has the literal 1, which is a number, not a value of `bool`, and `T` is `bool` here: write a literal that fits every type the function is used at, or narrow `T`
        "#]],
    );
    check(
        int(1),
        HostType::of::<[f32; 3]>(),
        expect![[r#"
            `k` (k.rs:3:1) has the literal 1, which is a number, not a value of `[f32; 3]`, and `T` is `[f32; 3]` here: write a literal that fits every type the function is used at, or narrow `T`
        "#]],
    );
    check(
        Constant::Bool(true),
        HostType::of::<u8>(),
        expect![[r#"
            `k` (k.rs:3:1) has the literal true, which is a bool, not a value of `u8`, and `T` is `u8` here: write a literal that fits every type the function is used at, or narrow `T`
        "#]],
    );
}

#[test]
fn facts_are_noted_and_ones_replaced() {
    let mut k = Build::kernel("k");
    let x = k.slice("x", Type::F32, true);
    let stride = k.param("stride", Type::I64);
    let n = k.param("n", Type::U32);
    k.function.params[0].facts.align = 32;
    k.function.params[2].facts.divisor = 6;
    let index = k.binary(BinaryOp::Mul, stride, stride);
    let p = k.element(x, index);
    k.load(p);
    k.element(x, n);
    let kernel = k.define();
    let mut spec = on(&[], &[]);
    spec.params = vec![
        ParamSpec {
            align: 16,
            noalias: true,
            short: true,
            ..Default::default()
        },
        ParamSpec {
            equal_one: true,
            ..Default::default()
        },
        ParamSpec {
            divisor: 16,
            ..Default::default()
        },
    ];
    let module = specialized(&kernel, &spec);
    expect![[r#"
        Kernel k(%0 x: slice<global, mut f32>, %1 stride: i64, %2 n: u32) -> ()
          region0: %3: i64 = Const(Int(1)) @3
          region0: %4: i64 = Binary { op: Mul, args: [%3, %3] } @5
          region0: %5: ptr<global, mut f32> = SliceIndex { slice: %0, index: %4, checked: true } @6
          region0: %6: f32 = Load { ptr: %5, volatile: false } @7
          region0: %7: ptr<global, mut f32> = SliceIndex { slice: %0, index: %2, checked: true } @8
    "#]]
    .assert_eq(&dump(&module));
    let facts: Vec<_> = (module.functions.values().next().unwrap().params.iter())
        .map(|p| {
            (
                p.facts.align,
                p.facts.divisor,
                p.facts.noalias,
                p.facts.short,
            )
        })
        .collect();
    let expected = [
        (32, 0, true, true),
        (0, 0, false, false),
        (0, 48, false, false),
    ];
    assert_eq!(facts, expected);

    let wrong = |i: usize, fact: ParamSpec, expect: Expect| {
        let mut spec = on(&[], &[]);
        spec.params = vec![ParamSpec::default(); 3];
        spec.params[i] = fact;
        expect.assert_eq(&shown(&refused(&kernel, &spec)));
    };
    let none = ParamSpec::default();
    let short = ParamSpec {
        short: true,
        ..none
    };
    wrong(
        1,
        short,
        expect![[r#"
        the fact `short` of argument `stride` of `k` cannot hold: only a slice that is not wide can be short
    "#]],
    );
    let wide = ParamSpec {
        wide: true,
        ..short
    };
    wrong(
        0,
        wide,
        expect![[r#"
        the fact `short` of argument `x` of `k` cannot hold: only a slice that is not wide can be short
    "#]],
    );
    wrong(
        1,
        ParamSpec { wide: true, ..none },
        expect![[r#"
            the fact `wide` of argument `stride` of `k` cannot hold: only a slice can be wide
        "#]],
    );
    wrong(
        0,
        ParamSpec { align: 12, ..none },
        expect![[r#"
            the fact `align` of argument `x` of `k` cannot hold: an alignment is a power of two
        "#]],
    );
    wrong(
        0,
        ParamSpec {
            equal_one: true,
            ..none
        },
        expect![[r#"
            the fact `equal_one` of argument `x` of `k` cannot hold: only an integer is replaced by 1
        "#]],
    );
}

#[test]
fn wide_slices_flow() {
    // fn pick(a: &[f32], b: &[f32]) -> &[f32] { a }
    let mut f = Build::device("pick");
    let a = f.slice("a", Type::F32, false);
    f.slice("b", Type::F32, false);
    f.ret(a);
    let pick = f.define();

    let mut k = Build::kernel("k");
    let slice = k.slice_type(Type::F32, false);
    let big = k.param("big", slice);
    let small = k.param("small", slice);
    let current = k.var("current", slice);
    let other = k.var("other", slice);
    k.effect(InstData::VarSet(current, small));
    k.effect(InstData::VarSet(other, small));
    let outer = k.region;
    let body = k.function.regions.push(RegionData::default());
    k.effect(InstData::Loop { body });
    k.region = body;
    // Read before the assignment that makes it wide.
    let read = k.value(InstData::VarGet(current), slice);
    k.value(InstData::SliceLen { slice: read }, Type::U64);
    let callee = k.declare(&pick);
    let picked = k.call(callee, &[], &[], &[big, small], slice).unwrap();
    k.effect(InstData::VarSet(current, picked));
    k.effect(InstData::Break { depth: 0 });
    k.region = outer;
    k.call(callee, &[], &[], &[small, big], slice);
    k.call(callee, &[], &[], &[small, small], slice);
    let kernel = k.define();

    let mut spec = on(&[], &[]);
    let narrow = dump(&specialized(&kernel, &spec));
    assert!(!narrow.contains("wide"));
    spec.params = vec![ParamSpec {
        wide: true,
        ..Default::default()
    }];
    expect![[r#"
        Kernel k(%0 big: slice<global, f32, wide>, %1 small: slice<global, f32>) -> ()
          var0 current: slice<global, f32, wide>
          var1 other: slice<global, f32>
          region0: %2: ptr<global, f32> = SlicePtr { slice: %1 } @4
          region0: %3: u64 = SliceLen { slice: %1 } @4
          region0: %4: slice<global, f32, wide> = SliceNew { ptr: %2, len: %3 } @4
          region0: VarSet(var0, %4) @4
          region0: VarSet(var1, %1) @5
          region0: Loop { body: region1 } @6
          region1: %5: slice<global, f32, wide> = VarGet(var0) @7
          region1: %6: u64 = SliceLen { slice: %5 } @8
          region1: %7: slice<global, f32, wide> = Call { callee: func1, type_args: [], const_args: [], args: [%0, %1] } @10
          region1: VarSet(var0, %7) @11
          region1: Break { depth: 0 } @12
          region0: %8: slice<global, f32> = Call { callee: func2, type_args: [], const_args: [], args: [%1, %0] } @13
          region0: %9: slice<global, f32> = Call { callee: func3, type_args: [], const_args: [], args: [%1, %1] } @14
        Device pick.wide(%0 a: slice<global, f32, wide>, %1 b: slice<global, f32>) -> slice<global, f32, wide>
          region0: Return { value: Some(%0) } @4
        Device pick.wide.2(%0 a: slice<global, f32>, %1 b: slice<global, f32, wide>) -> slice<global, f32>
          region0: Return { value: Some(%0) } @4
        Device pick(%0 a: slice<global, f32>, %1 b: slice<global, f32>) -> slice<global, f32>
          region0: Return { value: Some(%0) } @4
    "#]].assert_eq(&dump(&specialized(&kernel, &spec)));
}

#[test]
fn wide_and_narrow_slices_meet() {
    // fn either(c: bool, a: &[f32], b: &[f32]) -> &[f32] { if c { return select(c, a, b) } b }
    let mut f = Build::device("either");
    let cond = f.param("c", Type::BOOL);
    let a = f.slice("a", Type::F32, false);
    let b = f.slice("b", Type::F32, false);
    let slice = f.function.type_of(a);
    let then_region = f.function.regions.push(RegionData::default());
    let else_region = None;
    f.effect(InstData::If {
        cond,
        then_region,
        else_region,
    });
    let outer = std::mem::replace(&mut f.region, then_region);
    let select = InstData::Select {
        cond,
        if_true: a,
        if_false: b,
    };
    let chosen = f.value(select, slice);
    f.ret(chosen);
    f.region = outer;
    f.ret(b);
    let either = f.define();

    let mut k = Build::kernel("k");
    let slice = k.slice_type(Type::F32, false);
    let big = k.param("big", slice);
    let small = k.param("small", slice);
    let callee = k.declare(&either);
    let cond = k.constant(Constant::Bool(true), Type::BOOL);
    let result = k.call(callee, &[], &[], &[cond, big, small], slice);
    k.value(
        InstData::SpaceCast {
            arg: result.unwrap(),
        },
        slice,
    );
    let mut spec = on(&[], &[]);
    spec.params = vec![ParamSpec {
        wide: true,
        ..Default::default()
    }];
    expect![[r#"
        Kernel k(%0 big: slice<global, f32, wide>, %1 small: slice<global, f32>) -> ()
          region0: %2: bool = Const(Bool(true)) @5
          region0: %3: slice<global, f32, wide> = Call { callee: func1, type_args: [], const_args: [], args: [%2, %0, %1] } @6
          region0: %4: slice<global, f32, wide> = SpaceCast { arg: %3 } @7
        Device either.wide(%0 c: bool, %1 a: slice<global, f32, wide>, %2 b: slice<global, f32>) -> slice<global, f32, wide>
          region0: If { cond: %0, then_region: region1, else_region: None } @5
          region1: %3: ptr<global, f32> = SlicePtr { slice: %2 } @6
          region1: %4: u64 = SliceLen { slice: %2 } @6
          region1: %5: slice<global, f32, wide> = SliceNew { ptr: %3, len: %4 } @6
          region1: %6: slice<global, f32, wide> = Select { cond: %0, if_true: %1, if_false: %5 } @6
          region1: Return { value: Some(%6) } @7
          region0: %7: ptr<global, f32> = SlicePtr { slice: %2 } @8
          region0: %8: u64 = SliceLen { slice: %2 } @8
          region0: %9: slice<global, f32, wide> = SliceNew { ptr: %7, len: %8 } @8
          region0: Return { value: Some(%9) } @8
    "#]].assert_eq(&dump(&specialized(&k.define(), &spec)));
}
