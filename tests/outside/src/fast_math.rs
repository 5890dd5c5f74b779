//! Fast arithmetic, few registers and few passes, for the kernels that ask for them.

use kiln::core::inkwell::attributes::AttributeLoc;
use kiln::core::inkwell::module::Module;
use kiln::core::inkwell::values::FastMathFlags;
use kiln::core::prelude::*;

/// LLVM's number for the way in which kernels of NVIDIA's GPUs are called.
const PTX_KERNEL: u32 = 71;

/// Reads the attributes `fast_math`, `most_registers` and `passes`.
pub fn fast_math() -> Hook {
    Hook::new("fast-math")
        .finish_module(|cx, module| match cx.has_attribute("fast_math") {
            true => relax(
                module,
                cx.attribute("most_registers").and_then(|n| n.as_int()),
            ),
            false => Ok(()),
        })
        .pass_pipeline(|cx, passes| {
            let own = cx.attribute("passes").and_then(|value| value.as_text());
            *passes = own.unwrap_or(passes).to_owned();
            Ok(())
        })
}

fn relax(module: &Module<'_>, most_registers: Option<i64>) -> HookResult<()> {
    for function in module.get_functions() {
        let insts = function
            .get_basic_block_iter()
            .flat_map(|block| block.get_instructions());
        for inst in insts.filter(|inst| inst.can_use_fast_math_flags()) {
            inst.set_fast_math_flags(FastMathFlags::all())?;
        }
        if let (Some(most), PTX_KERNEL) = (most_registers, function.get_call_conventions()) {
            let context = module.get_context();
            let most = context.create_string_attribute("nvvm.maxnreg", &most.to_string());
            function.add_attribute(AttributeLoc::Function, most);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kiln::prelude::*;

    use super::fast_math;
    use crate::machines::{cpu, interpreter, ptx};

    #[kernel(attribute(fast_math, most_registers = 32, passes = "default<O1>"))]
    fn fast(x: &mut [f32], by: f32) {
        let i = global_id().x;
        if i < x.len() {
            x[i] /= by;
        }
    }

    #[kernel]
    fn exact(x: &mut [f32], by: f32) {
        let i = global_id().x;
        if i < x.len() {
            x[i] /= by;
        }
    }

    #[kernel(attribute(passes = "no-such-pass"))]
    fn misspelt(x: &mut [f32]) {
        x[0] = 1.0;
    }

    #[test]
    fn only_kernels_that_ask_for_it_are_fast() -> kiln::Result<()> {
        let jit = ptx(fast_math());
        let mut x = jit.zeros::<f32>(1)?;
        let inspected = jit.inspect(&fast, args!(&mut x, 3.0f32))?;
        let text = inspected.ptx()?;
        assert!(
            text.contains("div.approx") && text.contains(".maxnreg 32"),
            "{text}"
        );
        let inspected = jit.inspect(&exact, args!(&mut x, 3.0f32))?;
        let text = inspected.ptx()?;
        assert!(
            text.contains("div.rn") && !text.contains(".maxnreg"),
            "{text}"
        );
        let error = jit
            .inspect(&misspelt, args!(&mut x))
            .unwrap_err()
            .to_string();
        assert!(error.contains("no-such-pass"), "{error}");
        Ok(())
    }

    #[test]
    fn it_computes_on_the_host() -> kiln::Result<()> {
        for jit in [
            cpu(fast_math().if_supported()),
            interpreter(fast_math().if_supported()),
        ] {
            let mut x = jit.upload(&[8.0f32, 2.0])?;
            fast.launch(&jit, (1, 32), &mut x, 4.0)?;
            assert_eq!(x.to_vec()?, [2.0, 0.5]);
        }
        Ok(())
    }
}
