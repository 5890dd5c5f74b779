//! Sines and exponentials by a GPU's instructions for them, which are less exact (PTX ISA, "sin", "ex2").

use std::f32::consts::LOG2_E;

use kiln::core::prelude::*;

kiln::intrinsic! {
    /// The sine, as the instruction gives it.
    pub fn fast_sine(x: f32) -> f32 { x.sin() } = row("outside.fast_sine")
        .with_cells(&[Cell::asm(Family::PTX, None, "sin.approx.f32 $0, $1;", "=f,f")]);

    /// 2 to a power, as the instruction gives it.
    pub fn fast_power(x: f32) -> f32 { x.exp2() } = row("outside.fast_power")
        .with_cells(&[Cell::asm(Family::PTX, None, "ex2.approx.f32 $0, $1;", "=f,f")]);
}

/// Where code is for a GPU, `sin` and `exp` of `f32` become these.
pub fn approximate() -> Hook {
    Hook::new("approximate").rewrite_ir(|cx, module| {
        if !matches!(cx.target, Target::Ptx(_)) {
            return Ok(());
        }
        module.rewrite_each(|at| {
            let &InstData::Intrinsic { id, ref args } = at.data() else {
                return;
            };
            let args = args.clone();
            if at
                .result()
                .is_none_or(|result| at.type_of(result) != Type::F32)
            {
                return;
            }
            match at.module().intrinsics[id].name {
                "math.sin" => drop(at.replace().intrinsic(fast_sine::row(), &args)),
                "math.exp" => {
                    let scale = at.ins().constant(LOG2_E);
                    let power = at.ins().binary(BinaryOp::Mul, args[0], scale);
                    at.replace().intrinsic(fast_power::row(), &[power]);
                }
                _ => {}
            }
        });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use kiln::core::prelude::*;
    use kiln::prelude::*;

    use super::approximate;
    use crate::machines::{cpu, ptx};

    #[kernel]
    fn waves(x: &mut [f32]) {
        let i = global_id().x;
        if i < x.len() {
            x[i] = x[i].sin() + x[i].exp();
        }
    }

    fn code(hooks: HookSet) -> kiln::Result<(String, kiln::core::ir::CacheKey)> {
        let jit = ptx(hooks);
        let mut x = jit.zeros::<f32>(4)?;
        let inspection = jit.inspect(&waves, args!(&mut x))?;
        Ok((inspection.ptx()?.to_owned(), inspection.key().clone()))
    }

    #[test]
    fn a_gpu_takes_the_instructions() -> kiln::Result<()> {
        let ((plain, key), (fast, other)) = (code(HookSet::new())?, code(approximate().into())?);
        assert!(!plain.contains("sin.approx"));
        assert!(
            fast.contains("sin.approx.f32") && fast.contains("ex2.approx.f32"),
            "{fast}"
        );
        assert!(fast.lines().count() * 2 < plain.lines().count());
        assert_ne!(key.digest(), other.digest());
        Ok(())
    }

    #[test]
    fn a_cpu_computes_as_before() -> kiln::Result<()> {
        let jit = cpu(approximate());
        let mut x = jit.upload(&[0.5f32, 1.0])?;
        waves.launch(&jit, (1, 32), &mut x)?;
        let want = [0.5f32, 1.0].map(|x| x.sin() + x.exp());
        for (got, want) in x.to_vec()?.into_iter().zip(want) {
            assert!((got - want).abs() < 1e-6, "{got} {want}");
        }
        Ok(())
    }
}
