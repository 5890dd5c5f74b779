//! What hooks are told of the kernel, and what they can build for an operation.

use std::sync::{Arc, Mutex};

use expect_test::expect;
use kiln::Result;
use kiln::core::cache::CacheKey;
use kiln::core::hook::{Hook, HookContext, HookPoint, OperationError, OperationLowering};
use kiln::core::inkwell::types::BasicTypeEnum;
use kiln::core::inkwell::values::BasicValueEnum;
use kiln::core::ir::{Effects, Type};
use kiln::prelude::*;

use super::for_gpu;

fn on_cpu(hook: Hook) -> Jit {
    Jit::with(Device::cpu(), hook.into(), JitOptions::default())
}

#[kernel]
fn scaled<T: Float, const N: u32>(x: &mut [T], by: [T; 2]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = (x[i] * by[1]).sqrt();
        for _ in 0..N {
            x[i] += by[0];
        }
    }
}

/// What a hook was told at each point: a line, and the key.
type Told = Arc<Mutex<Vec<(HookPoint, String, CacheKey)>>>;

fn listens(told: &Told) -> Hook {
    let told = told.clone();
    let note = move |point, cx: HookContext<'_>| {
        let known = format!(
            "{} T={:?} N={:?} contract={}",
            cx.kernel,
            cx.type_arg("T").map(ToString::to_string),
            cx.const_arg("N"),
            cx.options.contract
        );
        let mut told = told.lock().unwrap();
        if told.last().is_none_or(|last| last.0 != point) {
            told.push((point, known, cx.key.clone()));
        }
        assert_eq!((cx.type_arg("U"), cx.const_arg("M")).1, None);
        Ok(())
    };
    let [a, b, c, d, e, f, g, h] = std::array::from_fn(|_| note.clone());
    Hook::new("listens")
        .key("changes", "nothing")
        .rewrite_ir(move |cx, _| a(HookPoint::RewriteIr, *cx))
        .fault_function(move |cx, _| {
            h(HookPoint::FaultFunction, *cx)?;
            Ok(None)
        })
        .lower_abi(move |cx, _| b(HookPoint::LowerAbi, *cx))
        .lower_intrinsic(move |cx, _, _| {
            c(HookPoint::LowerIntrinsic, cx.hook())?;
            Ok(None)
        })
        .finish_module(move |cx, _| d(HookPoint::FinishModule, *cx))
        .pass_pipeline(move |cx, _| e(HookPoint::PassPipeline, *cx))
        .finish_optimized_module(move |cx, _| f(HookPoint::FinishOptimizedModule, *cx))
        .rewrite_ptx(move |cx, _| g(HookPoint::RewritePtx, *cx))
        .if_supported()
}

#[test]
fn each_point_knows_what_the_kernel_is_made_for() -> Result<()> {
    let kernel = scaled.with_const("N", 3)?;
    for gpu in [false, true] {
        let told = Told::default();
        let jit = match gpu {
            true => for_gpu(listens(&told).into()),
            false => on_cpu(listens(&told)),
        };
        let mut x = jit.zeros::<f64>(4)?;
        let inspection = jit.inspect_block(&kernel, 32, args!(&mut x, [1.0f64, 2.0]))?;
        let told = std::mem::take(&mut *told.lock().unwrap());
        let points = told.iter().map(|told| told.0).collect::<Vec<_>>();
        let want = HookPoint::ALL.iter().copied().filter(|point| {
            use HookPoint::{ConvertArgument, LowerInst, PrepareJob};
            let others = [ConvertArgument, PrepareJob, LowerInst];
            point.changes_code() && !others.contains(point)
        });
        let last = points.last().copied();
        assert_eq!(last == Some(HookPoint::RewritePtx), gpu);
        let want = want.take(points.len()).collect::<Vec<_>>();
        assert_eq!(points, want);
        for (point, known, key) in told {
            let expected = "scaled T=Some(\"f64\") N=Some(3) contract=true";
            assert_eq!(known, expected, "{point}");
            // On a CPU code is for blocks of one shape, what comes before for those of all.
            use HookPoint::{FaultFunction, LowerAbi, RewriteIr};
            let of_code = ![RewriteIr, FaultFunction, LowerAbi].contains(&point);
            let same = key.digest() == inspection.key().digest();
            assert_eq!(same, gpu || of_code, "{point}\n{key}");
            assert!(key.to_string().contains("kernel: scaled\n"), "{key}");
        }
    }
    Ok(())
}

/// Two types and two operations of one type in one module.
#[kernel]
fn roots(x: &mut [f32], y: &mut [f64]) {
    let i = global_id().x;
    if i < x.len() && i < y.len() {
        x[i] = x[i].sqrt() + (x[i] + 1.0).sqrt();
        y[i] = y[i].sqrt();
    }
}

/// A hook that builds square roots by `f`.
fn by(
    f: for<'ctx> fn(
        &OperationLowering<'_, 'ctx>,
        &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, OperationError>,
) -> Hook {
    Hook::new("roots")
        .key("by", "function")
        .lower_intrinsic(move |cx, row, args| match row.name == "math.sqrt" {
            true => Ok(f(cx, args)?.map(Into::into)),
            false => Ok(None),
        })
}

fn ptx_of(hook: Hook) -> Result<String> {
    let jit = for_gpu(hook.into());
    let (mut x, mut y) = (jit.zeros::<f32>(1)?, jit.zeros::<f64>(1)?);
    let inspection = jit.inspect(&roots, args!(&mut x, &mut y))?;
    Ok(inspection.ptx()?.to_owned())
}

fn run(hook: Hook) -> Result<(Vec<f32>, Vec<f64>)> {
    let jit = on_cpu(hook);
    let (mut x, mut y) = (jit.upload(&[8.0f32, 3.0])?, jit.upload(&[4.0f64, 2.25])?);
    roots.launch(&jit, (1, 32), &mut x, &mut y)?;
    Ok((x.to_vec()?, y.to_vec()?))
}

#[test]
fn an_intrinsic_is_called_for_each_type() -> Result<()> {
    // LLVM has it for both types, under two names.
    let overloaded = || {
        by(|cx, args| {
            let ty = cx.llvm_result_type()?;
            assert_eq!(ty, args[0].get_type());
            assert_eq!(cx.operand_types(), [cx.result_type()]);
            cx.call_intrinsic("llvm.fabs", Some(ty), args)
        })
    };
    assert_eq!(run(overloaded())?, (vec![17.0, 7.0], vec![4.0, 2.25]));
    let ptx = ptx_of(overloaded())?;
    // What is stored of it has the bits of a NaN, by an operation of integers.
    let of_f64 = format!(", {};", i64::MAX);
    assert!(ptx.contains("abs.f32") && ptx.contains(&of_f64), "{ptx}");
    assert!(!ptx.contains("sqrt"), "{ptx}");

    // Only GPUs have it, and only for `f32`.
    let approximate = by(|cx, args| match cx.result_type() == Type::F32 {
        true => cx.call_intrinsic(
            "llvm.nvvm.sqrt.approx.f",
            Some(cx.llvm_result_type()?),
            args,
        ),
        false => Ok(None),
    });
    let ptx = ptx_of(approximate)?;
    assert_eq!(ptx.matches("sqrt.approx.f32").count(), 2, "{ptx}");
    assert_eq!(ptx.matches("sqrt.rn.f64").count(), 1, "{ptx}");
    Ok(())
}

#[test]
fn assembly_is_called_on_gpus() -> Result<()> {
    let hook = || {
        by(|cx, args| match args[0].get_type() {
            BasicTypeEnum::FloatType(f32) if f32 == cx.context().f32_type() => {
                let template = "sqrt.approx.ftz.f32 $0, $1;";
                cx.call_asm(template, "=f,f", Some(f32.into()), args, Effects::None)
            }
            _ => Ok(None),
        })
    };
    let ptx = ptx_of(hook())?;
    assert_eq!(ptx.matches("sqrt.approx.ftz.f32").count(), 2, "{ptx}");
    let error = run(hook()).expect_err("a CPU has no PTX").to_string();
    expect![[r#"
        hook `roots` failed: code for a CPU can have no inline assembly of a hook's, and `sqrt.approx.ftz.f32 $0, $1;` is some; build it of LLVM's instructions, or give `Ok(None)` where `hook().target` is that machine
          kernel: roots, extension point: lower_intrinsic"#]].assert_eq(&error);
    Ok(())
}

/// What hooks get for asking for what there is not: LLVM would end the process on most of it, or give code that
/// cannot be loaded.
#[test]
fn what_there_is_not_is_refused() {
    let mut said = String::new();
    for hook in [
        by(|cx, args| cx.call_intrinsic("llvm.nvvm.nonsense.f", Some(args[0].get_type()), args)),
        by(|cx, args| cx.call_intrinsic("sqrtf", Some(args[0].get_type()), args)),
        by(|cx, args| cx.call_intrinsic("llvm.sqrt(\n", Some(args[0].get_type()), args)),
        by(|cx, args| cx.call_intrinsic("llvm.ctlz", Some(args[0].get_type()), args)),
        by(|cx, args| cx.call_intrinsic("llvm.sqrt", Some(cx.context().i32_type().into()), args)),
        by(|cx, args| cx.call_intrinsic("llvm.fma", Some(args[0].get_type()), args)),
        by(|cx, args| cx.call_intrinsic("llvm.sqrt", None, args)),
        by(|cx, args| cx.call_intrinsic("llvm.exp", Some(args[0].get_type()), args)),
        by(|cx, args| cx.call_intrinsic("llvm.x86.sse.sqrt.ss", None, args)),
        by(|cx, args| {
            let ty = Some(args[0].get_type());
            cx.call_asm("mov.b32 $0, $1;", "=z,f", ty, args, Effects::None)
        }),
        by(|cx, args| {
            let ty = Some(args[0].get_type());
            cx.call_asm("mov.b32 $0, $2;", "=f,f", ty, args, Effects::None)
        }),
        by(|cx, args| {
            let ty = Some(args[0].get_type());
            cx.call_asm("mov.b32 $0,\0 $1;", "=f,f", ty, args, Effects::None)
        }),
        by(|cx, _| {
            let function = cx.function();
            let slice = function.params[0].value;
            cx.llvm_type(function.type_of(slice)).map(|_| None)
        }),
    ] {
        let error = ptx_of(hook)
            .expect_err("there is no such thing")
            .to_string();
        said += &format!("{error}\n");
    }
    expect![[r#"
        hook `roots` failed: LLVM 22 has no intrinsic `llvm.nvvm.nonsense.f`; LLVM's language reference and the guides of its back ends list those that there are
          kernel: roots, extension point: lower_intrinsic
        hook `roots` failed: LLVM 22 has no intrinsic `sqrtf`; LLVM's language reference and the guides of its back ends list those that there are
          kernel: roots, extension point: lower_intrinsic
        hook `roots` failed: LLVM 22 has no intrinsic `llvm.sqrt(
        `; LLVM's language reference and the guides of its back ends list those that there are
          kernel: roots, extension point: lower_intrinsic
        hook `roots` failed: LLVM's intrinsic `llvm.ctlz` cannot be called as `float (float)`; give it operands and a result of the types that LLVM's language reference says
          kernel: roots, extension point: lower_intrinsic
        hook `roots` failed: LLVM's intrinsic `llvm.sqrt` cannot be called as `i32 (float)`; give it operands and a result of the types that LLVM's language reference says
          kernel: roots, extension point: lower_intrinsic
        hook `roots` failed: LLVM's intrinsic `llvm.fma` cannot be called as `float (float)`; give it operands and a result of the types that LLVM's language reference says
          kernel: roots, extension point: lower_intrinsic
        hook `roots` failed: LLVM's intrinsic `llvm.sqrt` cannot be called as `void (float)`; give it operands and a result of the types that LLVM's language reference says
          kernel: roots, extension point: lower_intrinsic
        hook `roots` left an LLVM module that cannot become code: LLVM's back end has no instruction for `llvm.exp.f32`; call a function of the device library in its place
          kernel: roots, extension point: lower_intrinsic
        hook `roots` failed: LLVM 22 has no intrinsic `llvm.x86.sse.sqrt.ss`; LLVM's language reference and the guides of its back ends list those that there are
          kernel: roots, extension point: lower_intrinsic
        hook `roots` failed: the inline assembly `mov.b32 $0, $1;` with the constraints `=z,f` cannot be called: `=z` is no register for a `float`; write `h` for `i16`, `r` for `i32`, `l` for `i64` and addresses, `f` for `float`, `d` for `double`, and convert others
          kernel: roots, extension point: lower_intrinsic
        hook `roots` failed: the inline assembly `mov.b32 $0, $2;` with the constraints `=f,f` cannot be called: there is no operand `$2`; the 2 that there are are counted from `$0`, results first, and `$$` is a dollar
          kernel: roots, extension point: lower_intrinsic
        hook `roots` failed: there is a NUL character in inline assembly; leave it out
          kernel: roots, extension point: lower_intrinsic
        hook `roots` failed: a `slice<generic, mut f32>` is no single value of LLVM's; a slice is two, its address and its length
          kernel: roots, extension point: lower_intrinsic
    "#]].assert_eq(&said);
}

/// A pass of a hook's own, after those of the pipeline.
#[test]
fn a_hook_runs_passes_of_its_own() -> Result<()> {
    let strips = |passes: &'static str| {
        Hook::new("passes")
            .key("passes", passes)
            .finish_module(|_, module| {
                let word = module.get_context().i32_type();
                let unused = word.fn_type(&[], false);
                let linkage = kiln::core::inkwell::module::Linkage::Internal;
                let function = module.add_function("unused", unused, Some(linkage));
                let context = module.get_context();
                let builder = context.create_builder();
                builder.position_at_end(context.append_basic_block(function, "entry"));
                builder.build_return(Some(&word.const_zero()))?;
                Ok(())
            })
            .pass_pipeline(|_, pipeline| {
                *pipeline = "verify".to_owned();
                Ok(())
            })
            .finish_optimized_module(move |cx, module| Ok(cx.run_passes(module, passes)?))
    };
    for on_gpu in [false, true] {
        let inspected = |passes| {
            let hook = strips(passes);
            let jit = match on_gpu {
                true => for_gpu(hook.into()),
                false => on_cpu(hook),
            };
            let (mut x, mut y) = (jit.zeros::<f32>(1)?, jit.zeros::<f64>(1)?);
            let inspection = jit.inspect_block(&roots, 32, args!(&mut x, &mut y))?;
            Ok::<_, kiln::Error>(inspection.llvm()?.contains("@unused("))
        };
        assert!(inspected("verify")?);
        assert!(!inspected("globaldce")?);
        let error = inspected("no-such-pass").expect_err("there is no such pass");
        let want =
            "hook `passes` failed: LLVM back end, optimize: `no-such-pass`: unknown pass name";
        assert!(error.to_string().starts_with(want), "{error}");
    }
    Ok(())
}
