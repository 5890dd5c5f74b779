//! Front ends of other languages: kernels of modules of the IR and of its text, and places in files that are
//! not Rust.

use expect_test::{Expect, expect};
use kiln::core::compile::Stage;
use kiln::core::error::DescribeError;
use kiln::core::inspect::Inspection;
use kiln::core::ir::{self, Module, Phase};
use kiln::core::job::CompileOptions;
use kiln::core::runtime::CpuOptions;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use kiln::{Error, Result};

/// Two functions that call a third one, at two types; one access without a check of its index.
const TEXT: &str = "module norms generic
device @square<$0 T: float>(%0 x: $0) -> $0 {
  %1: $0 = mul %0, %0
  return %1
}
device @length(%0 x: f32, %1 y: f32) -> f32 {
  %2: f32 = call @square<f32>(%0)
  %3: f32 = call @square<f32>(%1)
  %4: f32 = add %2, %3
  %5: f32 = intrinsic math.sqrt(%4)
  return %5
}
kernel @norms<$0 T: float>(%0 x: slice<generic, f32>, %1 y: slice<generic, mut f32>, %2 z: slice<generic, mut $0>) {
  %3: u32 = intrinsic thread_idx.x()
  %4: ptr<generic, f32> = slice_index %0, %3
  %5: f32 = load %4
  %6: ptr<generic, mut f32> = slice_index %1, %3
  %7: f32 = load %6
  %8: f32 = call @length(%5, %7)
  store %6, %8
  %9: ptr<generic, mut $0> = slice_index %2, %3
  %10: $0 = load %9
  %11: $0 = call @square<$0>(%10)
  store %9, %11
}";

fn parse(text: &str) -> Result<Kernel> {
    // SAFETY: all accesses of the tests are checked.
    unsafe { Kernel::parse("norms.kir", text, &kiln::stdlib::find) }
}

fn from_module(module: &Module) -> Result<Kernel> {
    // SAFETY: as above.
    unsafe { Kernel::from_module(module) }
}

fn devices() -> [Jit; 2] {
    let interpreted = CpuOptions::default().interpret(true);
    [
        Jit::on(Device::cpu()),
        Jit::on(Device::cpu_with(interpreted)),
    ]
}

fn for_gpu(compile: CompileOptions) -> Jit {
    let options = JitOptions::default()
        .target(Target::Ptx(PtxTarget::for_sm(90)))
        .compile(compile);
    Jit::with(Device::cpu(), kiln::hooks::standard(), options)
}

#[test]
fn text_is_a_kernel_like_any_other() -> Result<()> {
    let norms = parse(TEXT)?;
    for jit in devices() {
        let x = jit.upload(&[3.0f32, 5.0])?;
        let mut y = jit.upload(&[4.0f32, 12.0])?;
        let mut z = jit.upload(&[1.5f64, -2.0])?;
        jit.launch(&norms, 1, 2, args!(&x, &mut y, &mut z))?;
        assert_eq!(y.to_vec()?, [5.0, 13.0]);
        assert_eq!(z.to_vec()?, [2.25, 4.0]);
        // Another specialization, and arguments that do not fit.
        let mut z = jit.upload(&[0.5f32, 4.0])?;
        jit.launch(&norms, 1, 2, args!(&x, &mut y, &mut z))?;
        assert_eq!(z.to_vec()?, [0.25, 16.0]);
        let wrong = jit.launch(&norms, 1, 2, args!(&x, &mut y, 1u32));
        let wrong = wrong.expect_err("a number is no slice").to_string();
        assert!(wrong.contains("norms.kir:13:86"), "{wrong}");
    }
    Ok(())
}

#[test]
fn a_fault_names_the_place_in_the_text() -> Result<()> {
    let norms = parse(TEXT)?;
    for jit in devices() {
        let x = jit.zeros::<f32>(4)?;
        let (mut y, mut z) = (jit.zeros::<f32>(3)?, jit.zeros::<f32>(4)?);
        let launched = jit.launch(&norms, 1, 4, args!(&x, &mut y, &mut z));
        let fault = launched.and_then(|()| y.to_vec()).expect_err("4 of 3");
        let fault = fault.to_string();
        assert!(fault.contains("norms.kir:17:3"), "{fault}");
    }
    Ok(())
}

#[test]
fn a_kernel_of_text_is_redefined() -> Result<()> {
    let write = |value: &str| {
        format!(
            "module write generic
             kernel @write(%0 x: slice<generic, mut u32>) {{
               %1: u32 = intrinsic thread_idx.x()
               %2: ptr<generic, mut u32> = slice_index %0, %1
               %3: u32 = const {value}
               store %2, %3
             }}"
        )
    };
    let module = |value| ir::parse_file("w.kir", &write(value), &kiln::stdlib::find);
    let [one, two] = [module("1"), module("2")].map(|m| m.expect("it can be read"));
    let (kernel, jit) = (from_module(&one)?, Jit::on(Device::cpu()));
    let mut x = jit.zeros::<u32>(1)?;
    let mut launch = || -> Result<u32> {
        jit.launch(&kernel, 1, 1, args!(&mut x))?;
        Ok(x.to_vec()?[0])
    };
    assert_eq!(launch()?, 1);
    // SAFETY: every access is checked.
    unsafe { kernel.redefine_from_module(&two) }?;
    assert_eq!(launch()?, 2);
    kernel.redefine(|k| k.slice_mut("x", Type::U32).at(0).set(3))?;
    assert_eq!(launch()?, 3);
    let before = jit.cache_stats().compiles;
    // SAFETY: every access is checked.
    unsafe { kernel.redefine_from_module(&one) }?;
    assert_eq!(launch()?, 1);
    assert_eq!(jit.cache_stats().compiles, before, "its code is known");
    Ok(())
}

#[kernel]
fn reduce(x: &[f32], sums: &mut [f32], scale: f32) {
    let tile = shared!([f32; 64]);
    let t = thread_idx().x;
    let i = global_id().x;
    tile[t % 64] = if i < x.len() { x[i] } else { 0.0 };
    barrier();
    if t == 0 {
        let mut sum = 0.0;
        for j in 0..64 {
            sum += (tile[j] * scale).sin();
        }
        sums[block_idx().x] = sum;
    }
}

/// What is written and read again is the same kernel.
#[test]
fn a_specialized_module_goes_through_text() -> Result<()> {
    let jit = for_gpu(CompileOptions::default());
    let (x, mut sums) = (jit.zeros::<f32>(64)?, jit.zeros::<f32>(1)?);
    let written = jit.inspect(&reduce, args!(&x, &mut sums, 2.0f32))?;
    let text = written.stage(Stage::Specialized);
    let read = parse(text.expect("it has this stage"))?;
    let read = jit.inspect(&read, args!(&x, &mut sums, 2.0f32))?;
    // Their keys differ, and with them the number by which a fault finds its kernel.
    let without_tag = |inspected: &Inspection| -> Result<String> {
        let tag = inspected.info().kernel_tag;
        let ptx = inspected.ptx()?.replace(&format!("_{tag:016x}"), "");
        Ok(ptx.replace(&tag.cast_signed().to_string(), "TAG"))
    };
    assert_eq!(without_tag(&written)?, without_tag(&read)?);
    Ok(())
}

fn check(result: Result<Kernel>, want: Expect) {
    let error = match result {
        Ok(kernel) => panic!("{kernel:?} is none"),
        Err(error) => error,
    };
    want.assert_eq(&error.to_string());
}

#[test]
fn what_is_wrong_with_a_module_is_said_at_its_place() {
    check(
        parse("module m generic\nkernel @k() {\n  lod %0\n}"),
        expect!["norms.kir:3:3: there is no instruction `lod`"],
    );
    check(
        parse("module m generic\nkernel @k(%0 x: f32, %1 n: u32) {\n  %2: f32 = add %0, %1\n}"),
        expect![[r#"
            `m` breaks 1 rule of the IR
              norms.kir:3:3: in `k`: the second operand is a `f32`, not `u32`
            kernel @k(%0 x: f32, %1 n: u32) {
              %2: f32 = add %0, %1
              ; error: the second operand is a `f32`, not `u32`
            }"#]],
    );
    check(
        parse("module m generic\ndevice @f() {\n}"),
        expect![
            "the module `m` has no kernel: write `kernel` in place of `device` before the function that is to be launched"
        ],
    );
    let calls = "module m generic\ndeclare device @f()\nkernel @k() {\n  call @f()\n}";
    check(
        parse(calls),
        expect!["`f` (norms.kir:2:1) is declared and has no body: write it in the module `m`"],
    );
    let pointer = "kernel @k(%0 s: ptr<generic, [f32; 3]> by_reference) {\n}";
    check(
        parse(&format!("module m specialized\n{pointer}")),
        expect![
            "parameter `s` of `k` (norms.kir:2:11) says how it is passed, which is for the compiler to decide: make it a value of the type that it points to"
        ],
    );
    check(
        parse(&format!("module m legal\n{pointer}")),
        expect![
            "the module `m` is in the phase `legal`, which the compiler brings modules to: give the one that it was made from, in the phase `generic` or `specialized`"
        ],
    );
    let circle = "device @f() {\n  call @g()\n}\ndevice @g() {\n  call @f()\n}\nkernel @k() {\n  call @f()\n}";
    check(
        parse(&format!("module m generic\n{circle}")),
        expect![[r#"
        `m` breaks 1 rule of the IR
          norms.kir:2:1: in `f`: it calls itself: `f` -> `g` -> `f`; use a loop
        device @f() {
          ; error: it calls itself: `f` -> `g` -> `f`; use a loop
          call @g()
        }"#]],
    );
}

#[test]
fn functions_that_are_not_reached_are_left_out() -> Result<()> {
    let module =
        "module m generic\ndeclare device @g()\ndevice @f() {\n  call @g()\n}\nkernel @k() {\n}";
    let jit = for_gpu(CompileOptions::default());
    let inspected = jit.inspect(&parse(module)?, args!())?;
    assert!(!inspected.ir().contains("device"), "{}", inspected.ir());
    Ok(())
}

/// A chain of calls has any length: nothing goes down it by recursion.
#[test]
fn calls_go_deep() -> Result<()> {
    let mut text = "module deep generic\ndevice @f0() {\n}\n".to_owned();
    for i in 1..3000 {
        text += &format!("device @f{i}() {{\n  call @f{}()\n}}\n", i - 1);
    }
    text += "kernel @k() {\n  call @f2999()\n}";
    let module = ir::parse("", &|_| None);
    assert!(module.is_err(), "an empty text is no module");
    let module = ir::parse(&text, &|_| None).expect("it can be read");
    assert_eq!(module.phase, Phase::Generic);
    from_module(&module)?;
    Ok(())
}

/// Expressions of one letter, `+`, `/` and `[]`, which is what `x[i]` is for each `i`, in the file `model.expr`.
struct Expression<'k> {
    k: &'k KernelBuilder,
    text: &'static str,
    i: Val<'k>,
}

impl<'k> Expression<'k> {
    /// The names and operators from left to right, each at its column.
    fn build(&self, names: &dyn Fn(char) -> Option<Val<'k>>) -> Option<Val<'k>> {
        let mut value: Option<Val<'k>> = None;
        let mut operator = None;
        for (column, word) in (1..).zip(self.text.chars()) {
            let at = |build: &dyn Fn() -> Val<'k>| self.k.at("model.expr", 1, column, build);
            match word {
                '+' | '/' => operator = Some((column, word)),
                name => {
                    let named = names(name)?;
                    let is_slice =
                        matches!(self.k.type_data(named.ty()), ir::TypeData::Slice { .. });
                    let right = match is_slice {
                        true => at(&|| named.at(self.i).get()),
                        false => named,
                    };
                    value = Some(match (value, operator) {
                        (Some(left), Some((column, operator))) => {
                            self.k.at("model.expr", 1, column, || match operator {
                                '+' => left + right,
                                _ => left / right,
                            })
                        }
                        _ => right,
                    });
                }
            }
        }
        value
    }
}

fn expression(text: &'static str, scalar: Type) -> Result<Kernel> {
    Kernel::build("expression", |k| {
        k.defined_at("model.expr", 1, 1);
        let out = k.slice_mut("out", Type::F32);
        let (x, y, a) = (
            k.slice("x", Type::F32),
            k.slice("y", Type::F32),
            k.param("a", scalar),
        );
        let i = k.global_id().x();
        let names = |name| match name {
            'x' => Some(x),
            'y' => Some(y),
            'a' => Some(a),
            _ => None,
        };
        let expression = Expression { k, text, i };
        k.if_(i.lt(out.len()), || {
            if let Some(value) = expression.build(&names) {
                out.at(i).set(value);
            }
        });
    })
}

#[test]
fn places_of_another_language_are_named() -> Result<()> {
    let kernel = expression("a+x/y", Type::F32)?;
    for jit in devices() {
        let (x, y) = (jit.upload(&[1.0f32, 2.0])?, jit.upload(&[4.0f32, 8.0])?);
        let mut out = jit.zeros::<f32>(2)?;
        jit.launch(&kernel, 1, 32, args!(&mut out, &x, &y, 3.0f32))?;
        assert_eq!(out.to_vec()?, [1.0, 0.625]);
        let y = jit.upload(&[4.0f32])?;
        let launched = jit.launch(&kernel, 1, 32, args!(&mut out, &x, &y, 3.0f32));
        let fault = launched
            .and_then(|()| out.to_vec())
            .expect_err("`y` is short");
        assert!(fault.to_string().contains("model.expr:1:5"), "{fault}");
        let wrong = jit.launch(&kernel, 1, 32, args!(&mut out));
        let wrong = wrong.expect_err("arguments are missing").to_string();
        assert!(wrong.contains("model.expr:1:1"), "{wrong}");
    }
    let line_info = true;
    let jit = for_gpu(CompileOptions::default().line_info(line_info));
    let (x, mut out) = (jit.zeros::<f32>(2)?, jit.zeros::<f32>(2)?);
    let inspected = jit.inspect(&kernel, args!(&mut out, &x, &x, 3.0f32))?;
    let ptx = inspected.ptx()?;
    let file = ptx.lines().find(|line| line.contains("model.expr"));
    assert!(
        file.is_some_and(|line| line.trim_start().starts_with(".file")),
        "{ptx}"
    );
    Ok(())
}

#[test]
fn mistakes_of_another_language_are_at_their_places() {
    let wrong = expression("x+a", Type::U32).expect_err("a number of another type");
    let Error::Describe(DescribeError::Build(errors)) = &wrong else {
        panic!("{wrong}");
    };
    assert_eq!(errors.errors[0].at, "model.expr:1:2");
}
