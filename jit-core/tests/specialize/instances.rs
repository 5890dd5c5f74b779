//! Specialization of functions: types, const parameters, calls.
//!
//! Each test shows the specialized module or the error.
//! Device functions are copied once for each set of type and const arguments.

use std::sync::Arc;

use expect_test::expect;
use kiln_jit_core::ir::*;
use kiln_jit_core::specialize::HostType;

use super::build::*;

#[test]
fn saxpy_at_two_types() {
    let saxpy = saxpy().define();
    let module = specialized(&saxpy, &on(&[HostType::of::<f32>()], &[]));
    expect![[r#"
        Kernel saxpy(%0 a: f32, %1 x: slice<global, f32>, %2 y: slice<global, mut f32>) -> ()
          region0: %3: u32 = Intrinsic { id: intrinsic0, args: [] } @5
          region0: %4: u32 = SliceLen { slice: %2 } @6
          region0: %5: bool = Compare { op: Lt, args: [%3, %4] } @7
          region0: If { cond: %5, then_region: region1, else_region: None } @8
          region1: %6: f32 = Const(Float(2.0)) @9
          region1: %7: f32 = Binary { op: Mul, args: [%6, %0] } @10
          region1: %8: ptr<global, f32> = SliceIndex { slice: %1, index: %3, checked: true } @11
          region1: %9: f32 = Load { ptr: %8, volatile: false } @12
          region1: %10: ptr<global, mut f32> = SliceIndex { slice: %2, index: %3, checked: true } @13
          region1: %11: f32 = Load { ptr: %10, volatile: false } @14
          region1: %12: f32 = Binary { op: Mul, args: [%7, %9] } @15
          region1: %13: f32 = Binary { op: Add, args: [%12, %11] } @16
          region1: Store { ptr: %10, value: %13, volatile: false } @17
    "#]].assert_eq(&dump(&module));
    assert_eq!(
        module.display_location(module.functions[module.kernel().unwrap()].location),
        "k.rs:1:1"
    );
    assert_eq!(module.intrinsics.len(), 1);
    let wide = specialized(&saxpy, &on(&[HostType::of::<f64>()], &[]));
    assert_eq!(dump(&wide), dump(&module).replace("f32", "f64"));
}

#[test]
fn const_params_become_constants() {
    let mut k = Build::kernel("tile");
    let t = k.type_param("T", TypeBound::Any);
    let n = k.const_param("N", Type::U32);
    let on_ = k.const_param("ON", Type::BOOL);
    let tile = k.array(t, n);
    k.slice("x", tile, false);
    k.function.shared.push(SharedData {
        name: "buffer".into(),
        ty: tile,
        align: 1,
    });
    k.value(InstData::ConstParam(n), Type::U32);
    k.value(InstData::ConstParam(on_), Type::BOOL);
    let kernel = k.define();
    let spec = on(&[HostType::of::<f64>()], &[("ON", 1), ("N", 8)]);
    expect![[r#"
        Kernel tile(%0 x: slice<global, [f64; 8]>) -> ()
          shared0 buffer: [f64; 8], align 8
          region0: %1: u32 = Const(Int(8)) @3
          region0: %2: bool = Const(Bool(true)) @4
    "#]]
    .assert_eq(&dump(&specialized(&kernel, &spec)));

    let spec = on(&[HostType::of::<f64>()], &[("N", 8)]);
    expect![[r#"
        the const parameter `ON` of `tile` (k.rs:1:1) has no value: give it one
    "#]]
    .assert_eq(&shown(&refused(&kernel, &spec)));
    let spec = on(&[HostType::of::<f64>()], &[("N", -1), ("ON", 1)]);
    expect![[r#"
        the const parameter `N` of `tile` is -1, which is not a value of `u32` (k.rs:1:1)
    "#]]
    .assert_eq(&shown(&refused(&kernel, &spec)));
    let spec = on(&[], &[("N", 8), ("ON", 1)]);
    expect![[r#"
        `tile` has 1 type parameters, 0 type arguments were given (k.rs:1:1)
    "#]]
    .assert_eq(&shown(&refused(&kernel, &spec)));
}

#[test]
fn negative_array_length() {
    let mut k = Build::kernel("tile");
    let n = k.const_param("N", Type::I32);
    let tile = k.array(Type::F32, n);
    k.slice("x", tile, false);
    let kernel = k.define();
    expect![[r#"
        `tile` (k.rs:2:1) has an array of length -4: it must be 0 or more
    "#]]
    .assert_eq(&shown(&refused(&kernel, &on(&[], &[("N", -4)]))));
}

#[test]
fn one_instance_for_each_set_of_arguments() {
    let twice = twice(BinaryOp::Add).define();
    let mut k = Build::kernel("caller");
    let a = k.param("a", Type::F32);
    let b = k.param("b", Type::I32);
    let callee = k.declare(&twice);
    k.call(callee, &[Type::I32], &[], &[b], Type::I32);
    k.call(callee, &[Type::F32], &[], &[a], Type::F32);
    k.call(callee, &[Type::I32], &[], &[b], Type::I32);
    let module = specialized(&k.define(), &on(&[], &[]));
    expect![[r#"
        Kernel caller(%0 a: f32, %1 b: i32) -> ()
          region0: %2: i32 = Call { callee: func1, type_args: [], const_args: [], args: [%1] } @5
          region0: %3: f32 = Call { callee: func2, type_args: [], const_args: [], args: [%0] } @6
          region0: %4: i32 = Call { callee: func1, type_args: [], const_args: [], args: [%1] } @7
        Device twice.i32(%0 v: i32) -> i32
          region0: %1: i32 = Binary { op: Add, args: [%0, %0] } @3
          region0: Return { value: Some(%1) } @4
        Device twice.f32(%0 v: f32) -> f32
          region0: %1: f32 = Binary { op: Add, args: [%0, %0] } @3
          region0: Return { value: Some(%1) } @4
    "#]]
    .assert_eq(&dump(&module));
}

#[test]
fn const_arguments_of_calls() {
    let mut f = Build::device("scale");
    let n = f.const_param("N", Type::I32);
    let flag = f.const_param("FLAG", Type::BOOL);
    f.value(InstData::ConstParam(flag), Type::BOOL);
    let factor = f.value(InstData::ConstParam(n), Type::I32);
    f.ret(factor);
    let scale = f.define();
    let caller = |number: Constant| {
        let mut k = Build::kernel("caller");
        let m = k.const_param("M", Type::I32);
        let callee = k.declare(&scale);
        let known = [
            ConstArg::Known(number),
            ConstArg::Known(Constant::Bool(true)),
        ];
        let outer = [ConstArg::Param(m), ConstArg::Known(Constant::Zero)];
        k.call(callee, &[], &known, &[], Type::I32);
        k.call(callee, &[], &outer, &[], Type::I32);
        k.define()
    };
    let spec = on(&[], &[("M", -3)]);
    expect![[r#"
        Kernel caller() -> ()
          region0: %0: i32 = Call { callee: func1, type_args: [], const_args: [], args: [] } @3
          region0: %1: i32 = Call { callee: func2, type_args: [], const_args: [], args: [] } @4
        Device scale.7.1() -> i32
          region0: %0: bool = Const(Bool(true)) @2
          region0: %1: i32 = Const(Int(7)) @3
          region0: Return { value: Some(%1) } @4
        Device scale.minus3.0() -> i32
          region0: %0: bool = Const(Bool(false)) @2
          region0: %1: i32 = Const(Int(-3)) @3
          region0: Return { value: Some(%1) } @4
    "#]]
    .assert_eq(&dump(&specialized(&caller(Constant::Int(7)), &spec)));
    let error = refused(&caller(Constant::Int(1 << 40)), &spec);
    expect![[r#"
        the const parameter `N` of `scale` is 1099511627776, which is not a value of `i32` (k.rs:3:1)
    "#]].assert_eq(&shown(&error));
    let error = refused(&caller(Constant::Float(0.5)), &spec);
    expect![[r#"
        the const parameter `N` of `scale` is given a float (k.rs:3:1): it must be an integer or a bool
    "#]].assert_eq(&shown(&error));
}

#[test]
fn structs_of_one_name_are_told_apart() {
    // fn first<T>(p: Pair<T>) -> T { p.a }
    let mut f = Build::device("first");
    let t = f.type_param("T", TypeBound::Any);
    let pair = |types: &mut TypeTable, ty: Type| {
        types.intern_struct(StructData::new(
            "Pair".into(),
            vec![("a".into(), ty), ("b".into(), ty)],
        ))
    };
    let generic = pair(&mut f.module.types, t);
    let p = f.param("p", generic);
    let index = 0;
    let part = f.value(
        InstData::Extract {
            aggregate: p,
            index,
        },
        t,
    );
    f.ret(part);
    let first = f.define();

    let mut k = Build::kernel("k");
    let mut declaration = Function::new("first", FunctionKind::Device, Location::unknown());
    declaration.is_declaration = true;
    declaration.type_params = first.body().function().type_params.clone();
    let t = k
        .module
        .types
        .intern(TypeData::Param(TypeParam::from_index(0)));
    let generic = pair(&mut k.module.types, t);
    declaration.add_param("p", generic, Location::unknown());
    declaration.result = t;
    let callee = k.module.functions.push(declaration);
    k.callees.push((callee, first));
    for ty in [Type::F32, Type::I32, Type::F32] {
        let concrete = pair(&mut k.module.types, ty);
        let value = k.constant(Constant::Zero, concrete);
        k.call(callee, &[ty], &[], &[value], ty);
    }
    let module = specialized(&k.define(), &on(&[], &[]));
    let names: Vec<_> = module.types.structs().map(|(_, s)| &*s.name).collect();
    assert_eq!(names, ["Pair", "Pair.2"]);
    let names: Vec<_> = module.functions.values().map(|f| &*f.name).collect();
    assert_eq!(names, ["k", "first.f32", "first.i32"]);
}

#[test]
fn globals_are_shared_by_content() {
    let table = |f: &mut Build, bytes: [u8; 4]| {
        let id = f.module.globals.push(GlobalData {
            name: "table".into(),
            ty: Type::U32,
            bytes: Arc::from(bytes),
        });
        let pointer = (f.module.types).pointer(Type::U32, AddressSpace::Constant, false);
        f.value(InstData::GlobalAddr(id), pointer);
    };
    let mut f = Build::device("f");
    table(&mut f, [1, 2, 3, 4]);
    table(&mut f, [9, 9, 9, 9]);
    let value = f.constant(Constant::Int(1), Type::I32);
    f.ret(value);
    let f = f.define();
    let mut k = Build::kernel("k");
    table(&mut k, [1, 2, 3, 4]);
    let callee = k.declare(&f);
    k.call(callee, &[], &[], &[], Type::I32);
    let module = specialized(&k.define(), &on(&[], &[]));
    let globals: Vec<_> = module
        .globals
        .values()
        .map(|g| (&*g.name, g.bytes[0]))
        .collect();
    assert_eq!(globals, [("table", 1), ("table.2", 9)]);
}

#[test]
fn calls_that_cannot_be_linked() {
    let twice = twice(BinaryOp::Add).define();
    let error = |f: &dyn Fn(&mut Build)| {
        let mut k = Build::kernel("k");
        f(&mut k);
        shown(&refused(&k.define(), &on(&[], &[])))
    };
    expect![[r#"
        `twice` has 0 const parameters, 1 const arguments were given (k.rs:4:1)
    "#]]
    .assert_eq(&error(&|k| {
        let callee = k.declare(&twice);
        let value = k.constant(Constant::Int(1), Type::I32);
        let extra = [ConstArg::Known(Constant::Zero)];
        k.call(callee, &[Type::I32], &extra, &[value], Type::I32);
    }));
    expect![[r#"
        `T` of `twice` must be an integer or a float, it is bound to `bool` (k.rs:4:1)
    "#]]
    .assert_eq(&error(&|k| {
        let callee = k.declare(&twice);
        let value = k.constant(Constant::Bool(true), Type::BOOL);
        k.call(callee, &[Type::BOOL], &[], &[value], Type::BOOL);
    }));
    expect![[r#"
        `k` (k.rs:4:1) calls `twice`, which is declared but linked to no definition: name it in the callees of the body
    "#]].assert_eq(&error(&|k| {
        let callee = k.declare(&twice);
        k.callees.clear();
        let value = k.constant(Constant::Int(1), Type::I32);
        k.call(callee, &[Type::I32], &[], &[value], Type::I32);
    }));
    expect![[r#"
        `k` (k.rs:4:1) calls `twice`, built against another signature of it
          declared: fn twice<$0 T: num>(v: $0) -> f32
          defined:  fn twice<$0 T: num>(v: $0) -> $0
        rebuild `k`
    "#]]
    .assert_eq(&error(&|k| {
        let callee = k.declare(&twice);
        k.module.functions[callee].result = Type::F32;
        let value = k.constant(Constant::Int(1), Type::I32);
        k.call(callee, &[Type::I32], &[], &[value], Type::F32);
    }));
    expect![[r#"
        `twice` has 1 type parameters, 0 type arguments were given (k.rs:4:1)
    "#]]
    .assert_eq(&error(&|k| {
        let callee = k.declare(&twice);
        let value = k.constant(Constant::Int(1), Type::I32);
        k.call(callee, &[], &[], &[value], Type::I32);
    }));
    expect![[r#"
        `k` (k.rs:3:1) calls the kernel `inner`: only device functions can be called
    "#]]
    .assert_eq(&error(&|k| {
        let callee = k.declare(&Build::kernel("inner").define());
        k.call(callee, &[], &[], &[], Type::UNIT);
    }));
    expect![[r#"
        `k` (k.rs:2:1) uses the value %99, which it does not have: verify it first
    "#]]
    .assert_eq(&error(&|k| {
        let undefined = Value::from_index(99);
        k.effect(InstData::Return {
            value: Some(undefined),
        });
    }));
    expect![[r#"
        `twice` (k.rs:1:1) is a device function: only a kernel can be launched, call `twice` from one
    "#]].assert_eq(&shown(&refused(&twice, &on(&[], &[]))));
}

#[test]
fn instances_are_limited() {
    // Each function calls the next one at two types of its own.
    let mut f = Build::device("f0");
    f.type_param("T", TypeBound::Any);
    let mut last = f.define();
    for i in 1..14 {
        let mut f = Build::device(&format!("f{i}"));
        let t = f.type_param("T", TypeBound::Any);
        let callee = f.declare(&last);
        for len in [2, 3] {
            let array = f.module.types.array(t, len);
            f.call(callee, &[array], &[], &[], Type::UNIT);
        }
        last = f.define();
    }
    let mut k = Build::kernel("k");
    let callee = k.declare(&last);
    k.call(callee, &[Type::F32], &[], &[], Type::UNIT);
    expect![[r#"
        `k` needs more than 4096 copies of device functions, the last of `f1`: call it at fewer types
    "#]].assert_eq(&shown(&refused(&k.define(), &on(&[], &[]))));
}
