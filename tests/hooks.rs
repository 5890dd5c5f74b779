//! Every extension point, and what Kiln's own hooks are worth.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln::Result;
use kiln::core::args::{self, Arg, IntoArg};
use kiln::core::codegen::FunctionLowering;
use kiln::core::hook::{Changed, Hook, HookContext, HookResult, HookSet, KeyWriter, LaunchEvent};
use kiln::core::inkwell;
use kiln::core::inkwell::values::BasicValueEnum;
use kiln::core::ir::{BinaryOp, InstData, InstNode, Module};
use kiln::core::job::CompileJob;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

kiln::core::kernel_type! {
    /// Passed by value.
    #[repr(C)]
    pub struct Scale {
        factor: f32,
        offset: f32,
    }
}

fn for_gpu(hooks: HookSet) -> Jit {
    let target = Some(Target::Ptx(PtxTarget::for_sm(90)));
    Jit::with(
        Device::cpu(),
        hooks,
        JitOptions {
            target,
            ..JitOptions::default()
        },
    )
}

fn scale() -> Result<Kernel> {
    Kernel::build("scale", |k| {
        let x = k.slice_mut("x", Type::F32);
        let s = k.param("s", k.ty::<Scale>());
        let i = k.global_id().x();
        k.if_(i.lt(x.len()), || {
            x.at(i).set(x.at(i) * s.field("factor") + s.field("offset"))
        });
    })
}

fn scale_ptx(hooks: HookSet) -> Result<(String, String)> {
    let jit = for_gpu(hooks);
    let mut x = jit.zeros::<f32>(4)?;
    let inspection = jit.inspect(
        &scale()?,
        args!(
            &mut x,
            Scale {
                factor: 2.0,
                offset: 1.0
            }
        ),
    )?;
    Ok((inspection.ir().to_owned(), inspection.ptx()?.to_owned()))
}

#[test]
fn by_value_reads_parameters_without_a_copy() -> Result<()> {
    let (ir, ptx) = scale_ptx(kiln::hooks::standard())?;
    assert!(ir.contains("ptr<param, @Scale> by_value"), "{ir}");
    assert!(
        ptx.contains(".align 4 .b8 scale_") && ptx.contains("_param_2[8]"),
        "{ptx}"
    );
    assert!(!ptx.contains(".local"), "{ptx}");
    let (ir, ptx) = scale_ptx(kiln::hooks::standard().without("by-value"))?;
    assert!(ir.contains("ptr<generic, @Scale> by_reference"), "{ir}");
    assert!(!ptx.contains("_param_2[8]"), "{ptx}");
    Ok(())
}

#[test]
fn address_spaces_are_inferred() -> Result<()> {
    let (with, _) = scale_ptx(kiln::hooks::standard())?;
    assert!(with.contains("slice<global, mut f32>"), "{with}");
    let (without, _) = scale_ptx(kiln::hooks::standard().without("address-spaces"))?;
    assert!(without.contains("slice<generic, mut f32>"), "{without}");
    Ok(())
}

/// A pointer that a loop moves along shared memory ("gpucc", figure 4), through a variable and a
/// device function.
fn walk() -> Result<Kernel> {
    let last = DeviceFn::build("last", |f| {
        let p = f.pointer_mut("p", Type::F32);
        // SAFETY: called with pointers into the array.
        f.return_value(unsafe { p.deref() });
    })?;
    Kernel::build("walk", |k| {
        let out = k.slice_mut("out", Type::F32);
        let tile = k.shared_array("tile", Type::F32, 64);
        let i = k.thread_idx().x();
        tile.at(i).set(i.cast(Type::F32));
        k.barrier();
        let p = k.var("p", tile.as_ptr().to_generic());
        let sum = k.var("sum", 0.0f32);
        k.for_range(0u32, 64, |_| {
            sum.set(sum + k.call(&last, &[p.get()]));
            p.set(p.get().offset(1));
        });
        out.at(i).set(sum);
    })
}

#[test]
fn pointers_that_loops_move_are_tightened() -> Result<()> {
    let ptx = |hooks: HookSet| -> Result<(String, String)> {
        let jit = for_gpu(hooks);
        let mut out = jit.zeros::<f32>(64)?;
        let inspection = jit.inspect(&walk()?, args!(&mut out))?;
        Ok((inspection.ir().to_owned(), inspection.ptx()?.to_owned()))
    };
    let (ir, with) = ptx(kiln::hooks::standard())?;
    assert!(ir.contains(" p: ptr<shared, mut f32>"), "{ir}");
    assert!(
        with.contains("ld.shared") && !with.contains("\tld.b32"),
        "{with}"
    );
    let (ir, _) = ptx(kiln::hooks::standard().without("address-spaces"))?;
    assert!(ir.contains(" p: ptr<generic, mut f32>"), "{ir}");
    // The meaning is the same.
    for hooks in [kiln::hooks::standard(), HookSet::new()] {
        let jit = Jit::with(Device::cpu(), hooks, JitOptions::default());
        let mut out = jit.zeros::<f32>(64)?;
        jit.launch(&walk()?, 1, 64, args!(&mut out))?;
        assert_eq!(out.to_vec()?, [(0..64).sum::<i32>() as f32; 64]);
    }
    Ok(())
}

/// Needs NVIDIA's tools, which `cargo xtask test` brings; without them the error says so.
#[test]
fn machine_code_can_be_read() -> Result<()> {
    let jit = for_gpu(kiln::hooks::standard());
    let mut x = jit.zeros::<f32>(4)?;
    let s = Scale {
        factor: 2.0,
        offset: 1.0,
    };
    match jit.inspect(&scale()?, args!(&mut x, s))?.sass() {
        Ok(sass) => assert!(sass.contains("FFMA") && sass.contains("STG"), "{sass}"),
        Err(error) => {
            assert!(std::env::var_os("KILN_PTXAS").is_none(), "{error}");
            assert!(error.to_string().contains("cargo xtask setup"), "{error}");
        }
    }
    Ok(())
}

#[test]
fn without_hooks_everything_works_too() -> Result<()> {
    let jit = Jit::with(Device::cpu(), HookSet::new(), JitOptions::default());
    let mut x = jit.upload(&[1.0f32, 2.0, 3.0])?;
    jit.launch(
        &scale()?,
        1,
        32,
        args!(
            &mut x,
            Scale {
                factor: 2.0,
                offset: 1.0
            }
        ),
    )?;
    assert_eq!(x.to_vec()?, [3.0, 5.0, 7.0]);
    Ok(())
}

/// Does something visible at every extension point.
#[derive(Default)]
struct Everywhere {
    launches: Arc<AtomicU32>,
}

/// A host value that is no argument by itself.
struct Meters(f32);

impl Hook for Everywhere {
    fn name(&self) -> &'static str {
        "everywhere"
    }

    fn version(&self) -> u32 {
        7
    }

    fn fingerprint(&self, key: &mut KeyWriter) {
        key.field("setting", "loud");
    }

    fn convert_argument<'a>(
        &self,
        value: &'a (dyn Any + Send + Sync),
    ) -> HookResult<Option<Arg<'a>>> {
        Ok(value.downcast_ref::<Meters>().map(|m| m.0.into_arg()))
    }

    fn prepare_job(&self, job: &mut CompileJob) -> HookResult<()> {
        job.options.contract = false;
        Ok(())
    }

    fn rewrite_ir(&self, _cx: &HookContext<'_>, module: &mut Module) -> HookResult<Changed> {
        // Additions become subtractions.
        let mut changed = false;
        for function in module.functions.keys().collect::<Vec<_>>() {
            for (_, node) in module.functions[function].insts.iter_mut() {
                if let InstData::Binary {
                    op: op @ BinaryOp::Add,
                    ..
                } = &mut node.data
                {
                    *op = BinaryOp::Sub;
                    changed = true;
                }
            }
        }
        Ok(changed.into())
    }

    fn lowers_operations(&self) -> bool {
        true
    }

    fn lower_inst<'ctx>(
        &self,
        cx: &mut FunctionLowering<'_, 'ctx>,
        inst: &InstNode,
        args: &[BasicValueEnum<'ctx>],
    ) -> HookResult<Option<BasicValueEnum<'ctx>>> {
        // A product of floats becomes a quotient.
        match (&inst.data, args) {
            (
                InstData::Binary {
                    op: BinaryOp::Mul, ..
                },
                [BasicValueEnum::FloatValue(a), BasicValueEnum::FloatValue(b)],
            ) => Ok(Some(cx.builder().build_float_div(*a, *b, "")?.into())),
            _ => Ok(None),
        }
    }

    fn finish_module(
        &self,
        _cx: &HookContext<'_>,
        module: &inkwell::module::Module<'_>,
    ) -> HookResult<()> {
        let context = module.get_context();
        let note = module.add_global(context.i32_type(), None, "finished_before");
        note.set_initializer(&context.i32_type().const_int(1, false));
        Ok(())
    }

    fn pass_pipeline(&self, _cx: &HookContext<'_>, pipeline: &mut String) -> HookResult<()> {
        *pipeline = "default<O1>".to_owned();
        Ok(())
    }

    fn finish_optimized_module(
        &self,
        _cx: &HookContext<'_>,
        module: &inkwell::module::Module<'_>,
    ) -> HookResult<()> {
        let context = module.get_context();
        let note = module.add_global(context.i32_type(), None, "finished_after");
        note.set_initializer(&context.i32_type().const_int(2, false));
        Ok(())
    }

    fn rewrite_ptx(&self, _cx: &HookContext<'_>, ptx: &mut String) -> HookResult<()> {
        *ptx += "// read by a hook\n";
        Ok(())
    }

    fn observes_launches(&self) -> bool {
        true
    }

    fn before_launch(&self, launch: &LaunchEvent<'_>) -> HookResult<()> {
        assert_eq!(launch.kernel, "mix");
        self.launches.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn after_launch(&self, _launch: &LaunchEvent<'_>, result: &Result<()>) {
        assert!(result.is_ok());
        self.launches.fetch_add(10, Ordering::Relaxed);
    }
}

fn mix() -> Result<Kernel> {
    Kernel::build("mix", |k| {
        let out = k.slice_mut("out", Type::F32);
        let (a, b) = (k.param("a", Type::F32), k.param("b", Type::F32));
        out.at(0).set((a + b) * b);
    })
}

#[test]
fn every_point_of_the_compiler_is_reached() -> Result<()> {
    let jit = for_gpu(HookSet::new().with(Everywhere::default()));
    let mut out = jit.zeros::<f32>(1)?;
    let inspection = jit.inspect(&mix()?, args!(&mut out, 1.0f32, 2.0f32))?;
    assert!(inspection.ir().contains(" = sub "), "{}", inspection.ir());
    let ptx = inspection.ptx()?;
    for part in [
        "sub.rn.f32",
        "div.rn.f32",
        "finished_before",
        "finished_after",
    ] {
        assert!(ptx.contains(part), "{part} is not in\n{ptx}");
    }
    assert!(ptx.ends_with("// read by a hook\n"));
    let hooks = inspection.key().fields().find(|(name, _)| *name == "hooks");
    assert_eq!(hooks, Some(("hooks", "everywhere v7 setting=\"loud\"\n")));
    Ok(())
}

#[test]
fn arguments_are_converted_and_launches_observed() -> Result<()> {
    let launches = Arc::new(AtomicU32::new(0));
    let hook = Everywhere {
        launches: launches.clone(),
    };
    let jit = Jit::with(
        Device::cpu(),
        HookSet::new().with(hook),
        JitOptions::default(),
    );
    let mut out = jit.zeros::<f32>(1)?;
    let (a, b) = (Meters(7.5), 2.0f32);
    jit.launch(&mix()?, 1, 1, args!(&mut out, args::host(&a), b))?;
    // Rewritten to a subtraction; the product is lowered by LLVM hooks only where LLVM is used.
    assert_eq!(out.to_vec()?, [11.0]);
    assert_eq!(launches.load(Ordering::Relaxed), 11);
    Ok(())
}

#[test]
fn hooks_are_ordered_and_replaced_by_name() {
    let set = kiln::hooks::standard().with(Everywhere::default());
    let names: Vec<_> = set.iter().map(|h| h.name()).collect();
    assert_eq!(names, ["address-spaces", "by-value", "everywhere"]);
    let set = set.with(Everywhere::default()).without("address-spaces");
    assert_eq!(format!("{set:?}"), "[\"by-value\", \"everywhere\"]");
}
