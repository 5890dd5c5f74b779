//! The launch of a kernel takes what its parameters are.

use kiln::prelude::*;

#[kernel]
fn scale(x: &mut [f32], by: f32) {
    x[0] *= by;
}

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let x = jit.zeros::<f32>(1)?;
    let mut n = jit.zeros::<u32>(1)?;
    scale.launch(&jit, (1, 1), &x, 2.0)?;
    scale.launch(&jit, (1, 1), &mut n, 2.0)?;
    scale.launch(&jit, (1, 1), &mut n)?;
    Ok(())
}
