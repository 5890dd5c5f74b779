//! Device functions in the place of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use expect_test::expect;
use kiln::core::hook::{Hook, HookSet};
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use kiln::{Error, Result};

use super::machines;

#[device_fn]
fn grade(x: u32) -> u32 {
    x + 1
}

#[device_fn]
fn tenfold(x: u32) -> u32 {
    10 * grade(x)
}

#[device_fn]
fn by_way_of(x: u32) -> u32 {
    grade(x) + 1000
}

#[kernel]
fn grades(x: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = by_way_of(grade(i as u32));
    }
}

fn graded(jit: &Jit) -> Result<Vec<u32>> {
    let mut x = jit.zeros::<u32>(3)?;
    grades.launch(jit, (1, 32), &mut x)?;
    x.to_vec()
}

fn standard_and(hook: Hook) -> HookSet {
    kiln::hooks::standard().with(hook)
}

#[test]
fn calls_go_to_the_other_function_which_may_call_the_first() -> Result<()> {
    let (of, by) = (DeviceFn::of::<grade>()?, DeviceFn::of::<tenfold>()?);
    let plain = machines(&kiln::hooks::standard());
    let overlaid = machines(&standard_and(Hook::new("tenfold").overlay(&of, &by)));
    for ((name, plain), (_, overlaid)) in plain.iter().zip(&overlaid) {
        // Kernels are the same functions in each `Jit`, whichever launches them first.
        for _ in 0..2 {
            assert_eq!(graded(plain)?, [1002, 1003, 1004], "{name}");
            // 10 (x + 1), and that of the result.
            assert_eq!(graded(overlaid)?, [1110, 1210, 1310], "{name}");
        }
        let mut x = overlaid.zeros::<u32>(3)?;
        let prepared = overlaid.compile(&grades, args!(&mut x))?;
        prepared.launch(1, 32, args!(&mut x))?;
        assert_eq!(x.to_vec()?, [1110, 1210, 1310], "{name}");
        let inspected = overlaid.inspect(&grades, args!(&mut x))?;
        // Called, or in place of the call where a standard hook has put it.
        let ir = inspected.ir();
        let is_there = ir.contains("call @tenfold(") || ir.contains("in \"tenfold\"");
        assert!(is_there, "{name}\n{ir}");
        assert_eq!(overlaid.cache_stats().compiles, 1, "{name}");
    }
    Ok(())
}

/// A generic function, and one that is to be called in its place.
#[device_fn]
fn blend<T: Float, const N: usize>(x: T, y: [T; N]) -> T {
    x + y[0] * T::from_f64(0.5)
}

#[device_fn]
fn times<F: Float, const M: usize>(a: F, b: [F; M]) -> F {
    let mut product = a;
    for i in 0..M {
        product *= b[i];
    }
    product
}

#[repr(C)]
#[derive(Clone, Copy, KernelType)]
struct Pair {
    a: f32,
    b: f32,
}

#[device_fn]
impl Pair {
    fn new(a: f32, b: f32) -> Pair {
        Pair { a, b }
    }

    fn sum(self) -> f32 {
        self.a + self.b
    }

    fn grow(&mut self, by: f32) {
        self.a += by;
    }
}

#[device_fn]
fn difference(pair: Pair) -> f32 {
    pair.a - pair.b
}

#[device_fn]
fn swapped(a: f32, b: f32) -> Pair {
    Pair { a: b, b: a }
}

#[device_fn]
fn shrink(pair: &mut Pair, by: f32) {
    pair.a -= by;
}

#[kernel]
fn mixed(x: &mut [f32], y: &mut [f64]) {
    x[0] = blend(x[0], [x[1], 2.0]);
    y[0] = blend(y[0], [y[1], 2.0, 3.0]);
    let mut pair = Pair::new(x[1], x[2]);
    pair.grow(1.0);
    x[1] = pair.sum();
}

#[test]
fn generic_functions_and_methods_are_replaced() -> Result<()> {
    let hook = Hook::new("others")
        .overlay(&DeviceFn::of::<blend>()?, &DeviceFn::of::<times>()?)
        .overlay(&kiln::method!(Pair, sum)?, &DeviceFn::of::<difference>()?)
        .overlay(&kiln::method!(Pair, new)?, &DeviceFn::of::<swapped>()?)
        .overlay(&kiln::method!(Pair, grow)?, &DeviceFn::of::<shrink>()?);
    for (hooks, want) in [
        (kiln::hooks::standard(), ([4.0, 13.0, 8.0], [3.5, 1.0])),
        (standard_and(hook), ([16.0, 3.0, 8.0], [18.0, 1.0])),
    ] {
        for (name, jit) in machines(&hooks) {
            let (mut x, mut y) = (
                jit.upload(&[2.0f32, 4.0, 8.0])?,
                jit.upload(&[3.0f64, 1.0])?,
            );
            mixed.launch(&jit, (1, 1), &mut x, &mut y)?;
            assert_eq!(
                (x.to_vec()?, y.to_vec()?),
                (want.0.to_vec(), want.1.to_vec()),
                "{name}"
            );
        }
    }
    Ok(())
}

/// A function of the builder that gives a number.
fn gives(name: &str, number: u32) -> Result<DeviceFn> {
    DeviceFn::build(name, |k| k.return_value(k.lit(Type::U32, number)))
}

/// A kernel that stores what a function gives.
fn stores(function: &DeviceFn) -> Result<Kernel> {
    Kernel::build("stores", |k| {
        let x = k.slice_mut("x", k.ty::<u32>());
        x.at(0).set(k.call(function, &[]));
    })
}

fn stored(jit: &Jit, kernel: &Kernel) -> Result<u32> {
    let mut x = jit.zeros::<u32>(1)?;
    jit.launch(kernel, 1, 1, args!(&mut x))?;
    Ok(x.to_vec()?[0])
}

#[test]
fn a_redefinition_of_what_is_in_the_place_reaches_the_next_launch() -> Result<()> {
    let (one, two) = (gives("one", 1)?, gives("two", 2)?);
    let kernel = stores(&one)?;
    for (name, jit) in machines(&standard_and(Hook::new("two").overlay(&one, &two))) {
        two.redefine(|k| k.return_value(k.lit(Type::U32, 2u32)))?;
        assert_eq!(stored(&jit, &kernel)?, 2, "{name}");
        one.redefine(|k| k.return_value(k.lit(Type::U32, 7u32)))?;
        assert_eq!(stored(&jit, &kernel)?, 2, "{name}");
        assert_eq!(jit.cache_stats().compiles, 1, "{name}: `one` is not called");
        two.redefine(|k| k.return_value(k.lit(Type::U32, 3u32)))?;
        assert_eq!(stored(&jit, &kernel)?, 3, "{name}");
        let report = jit
            .explain_recompile(&kernel)
            .ok_or("it was compiled")
            .unwrap();
        let fields: Vec<&str> = report.changes.iter().map(|change| change.field).collect();
        assert_eq!(fields, ["content"], "{name}");
    }
    Ok(())
}

#[test]
fn a_later_overlay_sees_what_an_earlier_has_made() -> Result<()> {
    let (one, two, three) = (gives("one", 1)?, gives("two", 2)?, gives("three", 3)?);
    let kernel = stores(&one)?;
    let first = || Hook::new("first").overlay(&one, &two);
    let then = || Hook::new("then").overlay(&two, &three);
    for (hooks, want) in [
        (HookSet::new().with(first()).with(then()), 3),
        (HookSet::new().with(then()).with(first()), 2),
    ] {
        for (name, jit) in machines(&hooks) {
            assert_eq!(stored(&jit, &kernel)?, want, "{name}");
        }
    }
    Ok(())
}

#[test]
fn nothing_is_kept_of_kernels_that_are_dropped() -> Result<()> {
    let (one, two) = (gives("one", 1)?, gives("two", 2)?);
    for (name, jit) in machines(&Hook::new("second").overlay(&one, &two).into()) {
        let mut dropped = Vec::new();
        for _ in 0..3 {
            let kernel = stores(&one)?;
            assert_eq!(stored(&jit, &kernel)?, 2, "{name}");
            dropped.push(Arc::downgrade(&kernel.snapshot()?.root));
        }
        let kept = dropped.iter().filter(|kernel| kernel.strong_count() > 0);
        assert_eq!(kept.count(), 0, "{name}");
    }
    Ok(())
}

#[test]
fn a_target_may_be_asked_for() -> Result<()> {
    let (one, two) = (gives("one", 1)?, gives("two", 2)?);
    let kernel = stores(&one)?;
    let is_interpreter = |target: &Target| matches!(target, Target::Interpreter);
    let hook = Hook::new("interpreted").overlay_for(is_interpreter, &one, &two);
    for (name, jit) in machines(&hook.into()) {
        let want = if name == "interpreted" { 2 } else { 1 };
        assert_eq!(stored(&jit, &kernel)?, want, "{name}");
    }
    let is_gpu = |target: &Target| matches!(target, Target::Ptx(_));
    let hook = Hook::new("gpu").overlay_for(is_gpu, &one, &two);
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), hook.into(), options);
    let mut x = jit.zeros::<u32>(1)?;
    let inspected = jit.inspect(&kernel, args!(&mut x))?;
    assert!(inspected.ir().contains("call @two("), "{}", inspected.ir());
    Ok(())
}

/// The error of a launch, which is that of each later one and of an inspection.
fn error_of(hooks: HookSet, kernel: &Kernel) -> String {
    let jit = Jit::with(Device::cpu(), hooks.clone(), JitOptions::default());
    let error = stored(&jit, kernel).expect_err("it is wrong");
    let mut x = jit.zeros::<u32>(1).expect("memory");
    let inspected = jit.inspect(kernel, args!(&mut x)).map(drop);
    assert_eq!(
        inspected.expect_err("it still is").to_string(),
        error.to_string()
    );
    if matches!(error, Error::HookSet(_)) {
        let built = Jit::builder().device(Device::cpu()).hooks(hooks).build();
        assert_eq!(built.expect_err("it was").to_string(), error.to_string());
    }
    let text = error.to_string();
    // Lines of this file move.
    let mut kept = String::new();
    for part in text.split(file!()) {
        let numbers = |c: char| c.is_ascii_digit() || c == ':';
        let rest = if kept.is_empty() {
            part
        } else {
            part.trim_start_matches(numbers)
        };
        kept += rest;
        kept += "FILE";
    }
    kept.trim_end_matches("FILE").to_owned() + "\n"
}

#[test]
fn mistakes_are_told_by_the_first_use() -> Result<()> {
    let (one, two) = (gives("one", 1)?, gives("two", 2)?);
    let kernel = stores(&one)?;
    let takes_more = DeviceFn::build("takes_more", |k| {
        let more = k.param("more", Type::U32);
        k.return_value(more);
    })?;
    let calls_two = DeviceFn::build("calls_two", |k| k.return_value(k.call(&two, &[])))?;
    let middle = DeviceFn::build("middle", |k| k.return_value(k.call(&one, &[])))?;
    let around = DeviceFn::build("around", |k| k.return_value(k.call(&middle, &[])))?;
    let mut said = String::new();
    for hooks in [
        Hook::new("more").overlay(&one, &takes_more).into(),
        HookSet::new()
            .with(Hook::new("first").overlay(&one, &two))
            .with(Hook::new("second").overlay(&one, &calls_two)),
        Hook::new("panics")
            .overlay_for(|_| panic!("which target?"), &one, &two)
            .into(),
        Hook::new("circle").overlay(&one, &around).into(),
    ] {
        said += &error_of(hooks, &kernel);
    }
    expect![[r#"
        hook `more` has a function in the place of one that is called in another way
          replaced:     fn one() -> u32, defined at FILE
          in its place: fn takes_more(more: u32) -> u32, defined at FILE
        give both the same parameters and result
        the hooks `first` and `second` both have a function in the place of `one`; take one of them out, or have the second replace the function of the first
        hook `panics` panicked when it was asked whether to replace `one`: which target?
          this is a bug in the hook
        `around` calls itself: `around` (FILE, in the place of `one`) calls `middle` (FILE) calls `around`; a device function cannot be recursive, write a loop instead
    "#]].assert_eq(&said);
    Ok(())
}

#[test]
fn a_jit_may_be_made_while_others_launch() -> Result<()> {
    let done = Arc::new(AtomicBool::new(false));
    let (of, by) = (DeviceFn::of::<grade>()?, DeviceFn::of::<tenfold>()?);
    let jit = Jit::with(
        Device::cpu(),
        standard_and(Hook::new("tenfold").overlay(&of, &by)),
        JitOptions::default(),
    );
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let found = graded(&jit).expect("it runs");
                    assert_eq!(found, [1110, 1210, 1310]);
                }
                done.store(true, Ordering::Relaxed);
            });
        }
    });
    assert!(done.load(Ordering::Relaxed));
    assert_eq!(jit.cache_stats().compiles, 1);
    Ok(())
}
