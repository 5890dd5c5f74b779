//! Captured are numbers; arrays are arguments.

use kiln::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arrays = Arrays::new(&Jit::new()?);
    let x = arrays.vector(vec![1.0f32, 2.0])?;
    let weights = vec![0.5f32, 2.0];
    x.map(device!(|v| v * weights[0])).eval()?;
    let (y, n) = (arrays.vector(vec![3.0f32, 4.0])?, x.len());
    x.map(device!(|v| v * n as f32)).eval()?;
    x.map(device!(|v| v + y.len() as f32)).eval()?;
    Ok(())
}
