//! Definitions, snapshots and fingerprints.
//!
//! What a redefinition changes, that going back undoes it, and that snapshots taken while other
//! threads redefine are of one moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use expect_test::expect;
use kiln_jit_core::definition::{CurrentSnapshot, Definition, Overlays, Snapshot};
use kiln_jit_core::ir::*;
use kiln_jit_core::specialize::specialize;

use super::build::*;

/// A kernel that calls `left` and `right`, which both call `base`.
fn diamond() -> (Arc<Definition>, Arc<Definition>) {
    let base = constant_function("base", 1).define();
    let side = |name: &str| {
        let mut f = Build::device(name);
        let callee = f.declare(&base);
        let value = f.call(callee, &[], &[], &[], Type::I32).unwrap();
        f.ret(value);
        f.define()
    };
    let mut k = Build::kernel("top");
    for name in ["left", "right"] {
        let callee = k.declare(&side(name));
        k.call(callee, &[], &[], &[], Type::I32);
    }
    (k.define(), base)
}

#[test]
fn a_diamond_holds_its_base_once() {
    let (top, _) = diamond();
    let taken = snapshot(&top);
    let names: Vec<_> = taken.bodies.iter().map(|(d, _)| d.name()).collect();
    assert_eq!(names, ["top", "left", "base", "right"]);
    let module = specialized(&top, &on(&[], &[]));
    let names: Vec<_> = module.functions.values().map(|f| &*f.name).collect();
    assert_eq!(names, ["top", "left", "right", "base"]);
    assert_eq!(snapshot(&diamond().0).fingerprint, taken.fingerprint);
}

#[test]
fn redefining_a_callee_is_seen_and_undone() {
    let (top, base) = diamond();
    let handle = CurrentSnapshot::new(top);
    let first = handle.get().unwrap();
    assert!(first.is_current());
    assert!(Arc::ptr_eq(&first, &handle.get().unwrap()));

    base.redefine(constant_function("base", 2).body()).unwrap();
    assert!(!first.is_current());
    let second = handle.get().unwrap();
    assert!(second.is_current());
    assert_ne!(first.fingerprint, second.fingerprint);
    assert_eq!(second.age, first.age + 1);
    // The old snapshot still means what it meant.
    let of = |s: &Snapshot| dump(&specialize(s, &on(&[], &[])).unwrap());
    assert!(of(&first).contains("Int(1)") && of(&second).contains("Int(2)"));

    base.redefine(constant_function("base", 1).body()).unwrap();
    let third = handle.get().unwrap();
    assert_eq!(first.fingerprint, third.fingerprint);
    assert!(!second.is_current() && third.age == 2);
    assert!(Arc::ptr_eq(&third, &handle.get().unwrap()));
}

#[test]
fn snapshots_with_overlays_go_with_these() {
    let (top, base) = diamond();
    let handle = CurrentSnapshot::new(top);
    let overlays: Vec<Arc<Overlays>> = (0..3).map(|_| Arc::default()).collect();
    let take = |of: &Arc<Overlays>| Arc::downgrade(&handle.get_with(of).unwrap());
    let kept: Vec<_> = overlays.iter().map(take).collect();
    let count = |kept: &[Weak<Snapshot>]| kept.iter().filter(|s| s.strong_count() > 0).count();
    assert_eq!(count(&kept), 3);
    assert!(Weak::ptr_eq(&kept[2], &take(&overlays[2])));
    // Those of overlays that nobody has go as soon as another is taken.
    drop(overlays);
    let other = Arc::default();
    let last = take(&other);
    assert_eq!(count(&kept), 0);
    // A kernel that was redefined has one of each.
    base.redefine(constant_function("base", 2).body()).unwrap();
    let newer = take(&other);
    assert_eq!(count(&[last, newer.clone()]), 1);
    drop(handle);
    assert_eq!(count(&[newer]), 0);
}

#[test]
fn links_are_part_of_the_fingerprint() {
    let one = constant_function("f", 1).define();
    let other = constant_function("f", 1).define();
    let caller = |first: &Arc<Definition>, second: &Arc<Definition>| {
        let mut k = Build::kernel("k");
        for callee in [first, second] {
            let callee = k.declare(callee);
            k.call(callee, &[], &[], &[], Type::I32);
        }
        snapshot(&k.define()).fingerprint
    };
    assert_eq!(caller(&one, &other), caller(&other, &one));
    assert_ne!(caller(&one, &other), caller(&one, &one));
}

#[test]
fn fingerprints_cover_content() {
    let constant = |value: Constant, ty: Type, line: u32| {
        let mut k = Build::kernel("k");
        k.line = line;
        k.constant(value, ty);
        k.body().fingerprint
    };
    let base = constant(Constant::Float(0.0), Type::F32, 1);
    assert_eq!(base, constant(Constant::Float(0.0), Type::F32, 1));
    assert_ne!(base, constant(Constant::Float(-0.0), Type::F32, 1));
    assert_ne!(base, constant(Constant::Float(0.0), Type::F64, 1));
    assert_ne!(base, constant(Constant::Float(0.0), Type::F32, 2));
    assert_ne!(base, constant(Constant::Zero, Type::F32, 1));
    let nan = |bits| constant(Constant::Float(f64::from_bits(bits)), Type::F64, 1);
    assert_ne!(nan(0x7ff8_0000_0000_0000), nan(0x7ff8_0000_0000_0001));
    let field = |ty: Type| {
        let mut k = Build::kernel("k");
        let data = StructData::new("S".into(), vec![("x".into(), ty)]);
        let ty = k.module.types.intern_struct(data);
        k.param("s", ty);
        k.body().fingerprint
    };
    assert_ne!(field(Type::F32), field(Type::U32));
    assert_eq!(saxpy().body().fingerprint, saxpy().body().fingerprint);
    // Types that nothing uses say nothing.
    let mut k = saxpy();
    k.module.types.array(Type::F32, 77);
    assert_eq!(k.body().fingerprint, saxpy().body().fingerprint);
    assert_eq!(base.to_string().len(), 64);
}

#[test]
fn racing_redefinitions_never_leave_a_stale_snapshot() {
    // `second` is always redefined after `first` to the same number, so in any state that ever
    // was, `second` is equal to `first` or one behind.
    let first = constant_function("first", 0).define();
    let second = constant_function("second", 0).define();
    let mut k = Build::kernel("k");
    for callee in [&first, &second] {
        let callee = k.declare(callee);
        k.call(callee, &[], &[], &[], Type::I32);
    }
    let root = k.define();
    let handle = CurrentSnapshot::new(root);
    let number = |s: &Snapshot, name: &str| {
        let (_, body) = s.bodies.iter().find(|(d, _)| d.name() == name).unwrap();
        let function = body.function();
        match function.insts[function.regions[function.body].insts[0]].data {
            InstData::Const(Constant::Int(value)) => value,
            _ => panic!("not a constant"),
        }
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..7 {
            scope.spawn(|| {
                let mut last = 0;
                loop {
                    let stop = done.load(Ordering::Acquire);
                    let taken = handle.get().unwrap();
                    let (a, b) = (number(&taken, "first"), number(&taken, "second"));
                    assert!(a - b == 0 || a - b == 1, "first is {a}, second is {b}");
                    assert_eq!(taken.age as i128, a + b);
                    assert!(a + b >= last, "time goes back");
                    last = a + b;
                    if stop {
                        assert_eq!((a, b), (300, 300));
                        break;
                    }
                }
            });
        }
        for i in 1..=300 {
            first
                .redefine(constant_function("first", i).body())
                .unwrap();
            second
                .redefine(constant_function("second", i).body())
                .unwrap();
        }
        done.store(true, Ordering::Release);
    });
    assert!(handle.get().unwrap().is_current());
}

#[test]
fn recursion_is_named() {
    let a = constant_function("a", 1).define();
    let calling = |name: &str, callee: &Arc<Definition>| {
        let mut f = Build::device(name);
        let callee = f.declare(callee);
        let value = f.call(callee, &[], &[], &[], Type::I32).unwrap();
        f.ret(value);
        f
    };
    let b = calling("b", &a).define();
    a.redefine(calling("a", &b).body()).unwrap();
    let mut k = Build::kernel("k");
    let callee = k.declare(&b);
    k.call(callee, &[], &[], &[], Type::I32);
    let root = k.define();
    expect![[r#"
        `b` calls itself: `b` (k.rs:1:1) calls `a` (k.rs:1:1) calls `b`; a device function cannot be recursive, write a loop instead
    "#]].assert_eq(&shown(&Snapshot::of(&root).unwrap_err()));
    let error = CurrentSnapshot::new(root.clone()).get().unwrap_err();
    assert_eq!(error.cycle.len(), 2);
    // Breaking the cycle is enough.
    a.redefine(constant_function("a", 1).body()).unwrap();
    assert!(Snapshot::of(&root).is_ok());

    a.redefine(calling("a", &a).body()).unwrap();
    expect![[r#"
        `a` calls itself: `a` (k.rs:1:1) calls `a`; a device function cannot be recursive, write a loop instead
    "#]].assert_eq(&shown(&Snapshot::of(&root).unwrap_err()));
    a.redefine(constant_function("a", 1).body()).unwrap();
}

#[test]
fn long_call_chains() {
    let mut last = constant_function("f0", 1).define();
    for i in 1..2000 {
        let mut f = Build::device(&format!("f{i}"));
        let callee = f.declare(&last);
        let value = f.call(callee, &[], &[], &[], Type::I32).unwrap();
        f.ret(value);
        last = f.define();
    }
    let mut k = Build::kernel("k");
    let callee = k.declare(&last);
    k.call(callee, &[], &[], &[], Type::I32);
    let module = specialized(&k.define(), &on(&[], &[]));
    assert_eq!(module.functions.len(), 2001);
}

#[test]
fn signatures_of_device_functions_stay() {
    let f = twice(BinaryOp::Add).define();
    f.redefine(twice(BinaryOp::Mul).body()).unwrap();
    let mut renamed = Build::device("twice");
    let t = renamed.type_param("Real", TypeBound::Num);
    let v = renamed.param("other", t);
    renamed.ret(v);
    f.redefine(renamed.body()).unwrap();

    let mut changed = Build::device("twice");
    let data = StructData::new("Pair".into(), vec![("x".into(), Type::F32)]);
    let pair = changed.module.types.intern_struct(data);
    let v = changed.param("v", pair);
    changed.const_param("N", Type::U32);
    changed.ret(v);
    let before = f.version();
    let error = f.redefine(changed.body()).unwrap_err();
    assert_eq!(f.version(), before);
    expect![[r#"
        `twice` cannot be redefined with another signature, because callers were built against it
          it is:      fn twice<$0 Real: num>(other: $0) -> $0
          defined at: k.rs:1:1
          it becomes: fn twice<#0 N: u32>(v: @Pair) -> @Pair, struct @Pair {x: f32}
          defined at: k.rs:1:1
        keep the signature, or make a new definition and rebuild the callers with it
    "#]]
    .assert_eq(&shown(&error));

    let k = saxpy().define();
    k.redefine(Build::kernel("saxpy").body()).unwrap();
    let error = k.redefine(Build::device("saxpy").body()).unwrap_err();
    assert_eq!(
        (&*error.current, &*error.new),
        ("kernel saxpy()", "fn saxpy()")
    );
}

#[test]
fn fields_are_part_of_a_signature() {
    let over = |ty: Type| {
        let mut f = Build::device("f");
        let fields = vec![("x".into(), ty)];
        let name = "S".into();
        let s = f.module.types.intern_struct(StructData::new(name, fields));
        let pointer = f.pointer_type(s, false);
        f.param("s", pointer);
        f
    };
    let f = over(Type::F32).define();
    assert!(f.redefine(over(Type::F32).body()).is_ok());
    assert!(f.redefine(over(Type::I32).body()).is_err());
}
