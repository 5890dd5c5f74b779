//! A hyperbolic tangent by a GPU's instruction for it (PTX ISA, "tanh"), in the place of a library's function.

use kiln::core::hook::Hook;
use kiln::core::ir::{Cell, Family};
use kiln::core::target::Target;
use kiln::prelude::*;

/// A function of a library, which knows nothing of this extension.
#[device_fn]
pub fn activation(x: f32) -> f32 {
    let squared = (2.0 * x).exp();
    (squared - 1.0) / (squared + 1.0)
}

kiln::intrinsic! {
    /// The hyperbolic tangent, as the instruction gives it.
    pub fn instruction(x: f32) -> f32 { x.tanh() } = row("outside.fast_tanh")
        .with_cells(&[Cell::asm(Family::PTX, None, "tanh.approx.f32 $0, $1;", "=f,f")]);
}

/// What is called on GPUs.
#[device_fn]
pub fn fast_activation(x: f32) -> f32 {
    instruction(x)
}

/// Where code is for a GPU, the library's function becomes the other.
pub fn fast_tanh() -> kiln::Result<Hook> {
    let (of, by) = (
        DeviceFn::of::<activation>()?,
        DeviceFn::of::<fast_activation>()?,
    );
    let is_gpu = |target: &Target| matches!(target, Target::Ptx(_));
    Ok(Hook::new("fast-tanh").overlay_for(is_gpu, &of, &by))
}

#[cfg(test)]
mod tests {
    use kiln::prelude::*;

    use super::{activation, fast_activation, fast_tanh};
    use crate::machines::{cpu, interpreter, ptx};

    #[kernel]
    fn activate(x: &mut [f32]) {
        let i = global_id().x;
        if i < x.len() {
            x[i] = activation(x[i]);
        }
    }

    #[test]
    fn a_gpu_has_an_instruction_for_it() -> kiln::Result<()> {
        let jit = ptx(fast_tanh()?);
        let mut x = jit.zeros::<f32>(1)?;
        let inspection = jit.inspect(&activate, args!(&mut x))?;
        let text = inspection.ptx()?;
        assert!(
            text.contains("tanh.approx.f32") && !text.contains("ex2"),
            "{text}"
        );
        Ok(())
    }

    #[test]
    fn the_host_computes_as_the_library_does() -> kiln::Result<()> {
        assert!((activation(0.5) - fast_activation(0.5)).abs() < 1e-6);
        for jit in [cpu(fast_tanh()?), interpreter(fast_tanh()?)] {
            let mut x = jit.upload(&[0.0f32, 0.5])?;
            activate.launch(&jit, (1, 32), &mut x)?;
            let found = x.to_vec()?;
            assert!(found[0] == 0.0 && (found[1] - activation(0.5)).abs() < 1e-6);
        }
        Ok(())
    }
}
