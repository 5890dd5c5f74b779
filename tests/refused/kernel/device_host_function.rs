//! A function of the host is no device function.

use kiln::prelude::*;

fn halve(x: f32) -> f32 {
    x / 2.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arrays = Arrays::new(&Jit::new()?);
    let x = arrays.vector(vec![1.0f32, 2.0])?;
    x.map(device!(halve)).eval()?;
    x.map(device!(|v| halve(v) + 1.0)).eval()?;
    Ok(())
}
