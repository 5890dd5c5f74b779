//! A kernel called like a function.
use kiln::prelude::*;

#[kernel]
fn scale(x: &mut [f32]) {
    x[0] *= 2.0;
}

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let mut x = jit.upload(&[1.0f32])?;
    scale(&mut x);
    Ok(())
}
