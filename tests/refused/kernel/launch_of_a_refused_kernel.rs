//! What is refused is one error, however often the kernel is launched.
use kiln::prelude::*;

#[kernel]
fn body(x: &mut [f32], by: f32) {
    x[0] = vec![by][0];
}

#[kernel]
fn signature(x: Vec<f32>, by: f32) {
    x[0] = by;
}

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let mut x = jit.zeros::<f32>(1)?;
    body.launch(&jit, (1, 1), &mut x, 2.0)?;
    jit.launch(&body, 1, 1, args!(&mut x, 2.0))?;
    signature.launch(&jit, (1, 1), &mut x, 2.0)?;
    Ok(())
}
