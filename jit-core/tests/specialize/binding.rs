//! Binding of type and const parameters from launch arguments, and all that can be wrong.
//!
//! Host types are matched against parameter types.
//! Every error text is here once.

use std::sync::Arc;

use expect_test::{Expect, expect};
use kiln_jit_core::definition::Definition;
use kiln_jit_core::ir::*;
use kiln_jit_core::kernel_type;
use kiln_jit_core::specialize::{
    ArgumentKind, ArgumentType, BindError, HostType, ParamSpec, Specialization, bind,
};
use kiln_jit_core::value::KernelType;

use super::build::*;

kernel_type! {
    struct Point {
        x: f32,
        y: f32,
    }
}

fn value<T: KernelType>() -> ArgumentType {
    argument::<T>(ArgumentKind::Value)
}

fn slice<T: KernelType>(mutable: bool) -> ArgumentType {
    argument::<T>(ArgumentKind::Slice { mutable })
}

fn argument<T: KernelType>(kind: ArgumentKind) -> ArgumentType {
    ArgumentType {
        host: HostType::of::<T>(),
        rust_name: std::any::type_name::<T>(),
        kind,
        field: None,
    }
}

fn bound(
    kernel: &Arc<Definition>,
    args: &[ArgumentType],
    const_args: &[(&str, i128)],
) -> Result<Specialization, BindError> {
    let body = kernel.body();
    bind(
        body.function(),
        &body.module,
        args,
        &consts(const_args),
        &[],
    )
}

#[test]
fn arguments_bind_parameters() {
    let saxpy = saxpy().define();
    let args = [value::<f64>(), slice::<f64>(true), slice::<f64>(true)];
    let spec = bound(&saxpy, &args, &[]).unwrap();
    assert_eq!(format!("{:?}", spec.type_args), "[f64]");
    assert_eq!(spec.params.len(), 3);
    let by_hand = on(&[HostType::of::<f64>()], &[]);
    assert_eq!(
        dump(&specialized(&saxpy, &spec)),
        dump(&specialized(&saxpy, &by_hand))
    );
}

#[test]
fn parts_of_host_types_bind_parameters() {
    let mut k = Build::kernel("k");
    let t = k.type_param("T", TypeBound::Any);
    let n = k.const_param("N", Type::U32);
    let inner = k.array(t, n);
    let pair = k.module.types.intern_struct(StructData::new(
        "Pair".into(),
        vec![("tag".into(), Type::U8), ("data".into(), inner)],
    ));
    let outer = k.module.types.array(pair, 2);
    k.slice("x", outer, false);
    let kernel = k.define();

    kernel_type! {
        struct Pair {
            tag: u8,
            data: [Point; 5],
        }
    }
    let spec = bound(&kernel, &[slice::<[Pair; 2]>(false)], &[]).unwrap();
    let point = "[@Point {x: f32, y: f32}]";
    assert_eq!(format!("{:?}", spec.type_args), point);
    assert_eq!(spec.const_args, consts(&[("N", 5)]));
    let module = specialized(&kernel, &spec);
    expect![[r#"
        Kernel k(%0 x: slice<global, [@Pair; 2]>) -> ()
    "#]]
    .assert_eq(&dump(&module));
    assert!(bound(&kernel, &[slice::<[Pair; 2]>(false)], &[("N", 5)]).is_ok());
}

#[test]
fn facts_that_mean_nothing_are_left_out() {
    let mut k = Build::kernel("k");
    let t = k.type_param("T", TypeBound::Any);
    k.slice("x", t, false);
    k.param("n", t);
    k.param("f", Type::F32);
    let pointer = k.pointer_type(t, true);
    k.param("p", pointer);
    let body = k.body();
    let all = ParamSpec {
        wide: false,
        short: true,
        align: 16,
        divisor: 4,
        equal_one: true,
        noalias: true,
    };
    let pointer = argument::<i32>(ArgumentKind::Pointer { mutable: true });
    let args = [slice::<i32>(false), value::<i32>(), value::<f32>(), pointer];
    let spec = bind(body.function(), &body.module, &args, &[], &[all; 4]).unwrap();
    let none = ParamSpec::default();
    let expected = [
        ParamSpec {
            short: true,
            align: 16,
            noalias: true,
            ..none
        },
        ParamSpec {
            divisor: 4,
            equal_one: true,
            ..none
        },
        none,
        ParamSpec {
            align: 16,
            noalias: true,
            ..none
        },
    ];
    assert_eq!(spec.params, expected);
    specialized(&Definition::new(body), &spec);
}

#[test]
fn arguments_that_do_not_fit() {
    let saxpy = saxpy().define();
    let check = |args: &[ArgumentType], expect: Expect| {
        expect.assert_eq(&shown(&bound(&saxpy, args, &[]).unwrap_err()));
    };
    let y = || slice::<f32>(true);
    let x = || slice::<f32>(false);
    check(
        &[value::<f32>(), x()],
        expect![[r#"
            kernel `saxpy` (declared at k.rs:1:1) takes 3 arguments (a, x, y), 2 were passed
        "#]],
    );
    check(
        &[value::<u32>(), x(), y()],
        expect![[r#"
            `T` must be a float, argument 1 (`a`, declared at k.rs:2:1) of kernel `saxpy` makes it `u32`: pass a float
        "#]],
    );
    check(
        &[value::<f32>(), slice::<f64>(false), y()],
        expect![[r#"
            `T` would be both `f32` and `f64`: argument 2 (`x`, declared at k.rs:3:1) of kernel `saxpy` disagrees with argument 1 (`a`): pass both with one type
        "#]],
    );
    check(
        &[value::<f32>(), x(), x()],
        expect![[r#"
            argument 3 (`y`, declared at k.rs:4:1) of kernel `saxpy` is written by the kernel, it was passed read-only: pass `&mut`
        "#]],
    );
    check(
        &[value::<f32>(), value::<f32>(), y()],
        expect![[r#"
            argument 2 (`x`, declared at k.rs:3:1) of kernel `saxpy` must be a slice of `T`, `f32` was passed: pass a device buffer
        "#]],
    );
    check(
        &[x(), x(), y()],
        expect![[r#"
            argument 1 (`a`, declared at k.rs:2:1) of kernel `saxpy` must be `T`, a slice of `f32` was passed: pass a value
        "#]],
    );
    let error = bound(&saxpy, &[value::<f32>(), x(), y()], &[("N", 3)]).unwrap_err();
    expect![[r#"
        kernel `saxpy` (declared at k.rs:1:1) has no const parameter `N`: it has none
    "#]]
    .assert_eq(&shown(&error));
}

#[test]
fn arguments_of_the_wrong_type() {
    let mut k = Build::kernel("k");
    let n = k.const_param("N", Type::U8);
    let pointer = k.pointer_type(Type::U32, true);
    k.param("p", pointer);
    let tile = k.array(Type::F32, n);
    k.param("tile", tile);
    let data = StructData::new(
        "Point".into(),
        vec![("x".into(), Type::F32), ("y".into(), Type::F64)],
    );
    let point = k.module.types.intern_struct(data);
    k.param("at", point);
    let kernel = k.define();
    let p = |mutable| argument::<u32>(ArgumentKind::Pointer { mutable });
    let check = |args: &[ArgumentType], const_args: &[(&str, i128)], expect: Expect| {
        expect.assert_eq(&shown(&bound(&kernel, args, const_args).unwrap_err()));
    };
    let tile = value::<[f32; 4]>;
    let at = value::<Point>;
    check(
        &[slice::<u32>(true), tile(), at()],
        &[],
        expect![[r#"
            argument 1 (`p`, declared at k.rs:2:1) of kernel `k` must be a pointer to `u32`, a slice of `u32` was passed: pass a device pointer
        "#]],
    );
    check(
        &[p(false), tile(), at()],
        &[],
        expect![[r#"
            argument 1 (`p`, declared at k.rs:2:1) of kernel `k` is written by the kernel, it was passed read-only: pass `&mut`
        "#]],
    );
    let signed = argument::<i32>(ArgumentKind::Pointer { mutable: true });
    check(
        &[signed, tile(), at()],
        &[],
        expect![[r#"
            argument 1 (`p`, declared at k.rs:2:1) of kernel `k` must be a pointer to `u32`, a pointer to `i32` was passed: convert it, or change the kernel
        "#]],
    );
    check(
        &[p(true), value::<f32>(), at()],
        &[],
        expect![[r#"
            argument 2 (`tile`, declared at k.rs:3:1) of kernel `k` must be `[f32; N]`, `f32` was passed: convert it, or change the kernel
        "#]],
    );
    check(
        &[p(true), value::<[f64; 4]>(), at()],
        &[],
        expect![[r#"
            argument 2 (`tile`, declared at k.rs:3:1) of kernel `k` must be `[f32; N]`, `[f64; 4]` was passed: convert it, or change the kernel
        "#]],
    );
    check(
        &[p(true), value::<[f32; 300]>(), at()],
        &[],
        expect![[r#"
            the const parameter `N: u8` of kernel `k` (declared at k.rs:1:1) cannot be 300: give a value of `u8`
        "#]],
    );
    check(
        &[p(true), tile(), at()],
        &[("N", 5)],
        expect![[r#"
            `N` would be both 5 and 4: argument 2 (`tile`, declared at k.rs:3:1) of kernel `k` has an array of 4, but the const argument `N` gives 5: make them agree
        "#]],
    );
    check(
        &[p(true), tile(), at()],
        &[("N", 256)],
        expect![[r#"
            the const parameter `N: u8` of kernel `k` (declared at k.rs:1:1) cannot be 256: give a value of `u8`
        "#]],
    );
    check(
        &[p(true), tile(), at()],
        &[("N", 4), ("N", 4)],
        expect![[r#"
            the const argument `N` of kernel `k` (declared at k.rs:1:1) was given twice: give it once
        "#]],
    );
    check(
        &[p(true), tile(), at()],
        &[("M", 4)],
        expect![[r#"
            kernel `k` (declared at k.rs:1:1) has no const parameter `M`: it has N
        "#]],
    );
    check(
        &[p(true), tile(), at()],
        &[],
        expect![[r#"
            argument 3 (`at`, declared at k.rs:4:1) of kernel `k` must be `@Point` { x: f32, y: f64 }, `stages::specialize::binding::Point` { x: f32, y: f32 } was passed: convert it, or change the kernel
        "#]],
    );
}

#[test]
fn parameters_that_nothing_binds() {
    let mut k = Build::kernel("k");
    k.type_param("T", TypeBound::Any);
    let error = bound(&k.define(), &[], &[]).unwrap_err();
    expect![[r#"
        no argument of kernel `k` (declared at k.rs:1:1) says what `T` is: use `T` in the type of a parameter
    "#]].assert_eq(&shown(&error));
    let mut k = Build::kernel("k");
    k.const_param("N", Type::U32);
    let error = bound(&k.define(), &[], &[]).unwrap_err();
    expect![[r#"
        the const parameter `N: u32` of kernel `k` (declared at k.rs:1:1) has no value: give it by name, as the const argument `("N", value)`
    "#]].assert_eq(&shown(&error));
    let mut k = Build::kernel("k");
    k.param("n", Type::U32);
    let error = bound(&k.define(), &[], &[]).unwrap_err();
    expect![[r#"
        kernel `k` (declared at k.rs:1:1) takes 1 argument (n), 0 were passed
    "#]]
    .assert_eq(&shown(&error));
}

#[test]
fn two_arrays_of_different_length() {
    let mut k = Build::kernel("k");
    let n = k.const_param("N", Type::U32);
    let tile = k.array(Type::F32, n);
    k.param("a", tile);
    k.param("b", tile);
    let args = [value::<[f32; 4]>(), value::<[f32; 8]>()];
    let error = bound(&k.define(), &args, &[]).unwrap_err();
    expect![[r#"
        `N` would be both 4 and 8: argument 2 (`b`, declared at k.rs:3:1) of kernel `k` has an array of 8, but argument 1 (`a`) gives 4: make them agree
    "#]].assert_eq(&shown(&error));
}
