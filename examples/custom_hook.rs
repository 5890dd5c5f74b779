//! A user's hook that changes the code of one operation: `math.sqrt` of `f32` becomes the
//! approximate `sqrt.approx.f32`. The PTX differs, and so does the cache key.

use kiln::core::codegen::FunctionLowering;
use kiln::core::hook::{Hook, HookResult};
use kiln::core::ir::IntrinsicDef;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use kiln_jit_core::inkwell::values::BasicValueEnum;

// The hook: 30 lines.
struct ApproximateSqrt;

impl Hook for ApproximateSqrt {
    fn name(&self) -> &'static str {
        "approximate-sqrt"
    }

    fn lowers_operations(&self) -> bool {
        true
    }

    fn lower_intrinsic<'ctx>(
        &self,
        cx: &mut FunctionLowering<'_, 'ctx>,
        intrinsic: &IntrinsicDef,
        args: &[BasicValueEnum<'ctx>],
    ) -> HookResult<Option<BasicValueEnum<'ctx>>> {
        let f32 = cx.context().f32_type();
        if intrinsic.name != "math.sqrt" || args[0].get_type() != f32.into() {
            return Ok(None);
        }
        let ty = f32.fn_type(&[f32.into()], false);
        let sqrt = cx
            .llvm_module()
            .add_function("llvm.nvvm.sqrt.approx.f", ty, None);
        let call = cx.builder().build_call(sqrt, &[args[0].into()], "")?;
        Ok(call.try_as_basic_value().basic())
    }
}

fn main() -> kiln::Result<()> {
    let roots = Kernel::build("roots", |k| {
        let x = k.slice_mut("x", k.ty::<f32>());
        let i = k.global_id().x();
        k.if_(i.lt(x.len()), || x.at(i).set(x.at(i).sqrt()));
    })?;
    // Code for a GPU, whether there is one or not.
    let options = JitOptions {
        target: Some(Target::Ptx(PtxTarget::for_sm(90))),
        ..JitOptions::default()
    };
    let device = Device::cpu();
    let plain = Jit::with(device.clone(), kiln::hooks::standard(), options.clone());
    let hooked = Jit::with(
        device,
        kiln::hooks::standard().with(ApproximateSqrt),
        options,
    );

    let mut x = plain.zeros::<f32>(1)?;
    let before = plain.inspect(&roots, args!(&mut x))?;
    let after = hooked.inspect(&roots, args!(&mut x))?;
    let line = |ptx: &str| {
        ptx.lines()
            .find(|l| l.contains("sqrt."))
            .map(|l| l.trim().to_owned())
    };
    println!(
        "without the hook: {}",
        line(before.ptx()?).unwrap_or_default()
    );
    println!(
        "with the hook:    {}",
        line(after.ptx()?).unwrap_or_default()
    );
    for ((name, a), (_, b)) in before.key().fields().zip(after.key().fields()) {
        if a != b {
            println!(
                "cache key, field `{name}`: {} -> {}",
                a.trim_end(),
                b.trim_end()
            );
        }
    }
    assert_ne!(before.ptx()?, after.ptx()?);
    assert_ne!(before.key().digest(), after.key().digest());
    Ok(())
}
