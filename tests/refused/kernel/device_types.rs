//! rustc checks the types and the number of elements.

use kiln::prelude::*;

#[device_fn]
fn norm(x: f32, y: f32) -> f32 {
    (x * x + y * y).sqrt()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arrays = Arrays::new(&Jit::new()?);
    let x = arrays.vector(vec![1.0f32, 2.0])?;
    let n = arrays.vector(vec![1i32, 2])?;
    x.map(device!(norm)).eval()?;
    broadcast((&x, &n), device!(norm)).eval()?;
    broadcast((&x, &n), device!(|a, b| a + b)).eval()?;
    let y: Array<f64> = x.map(device!(|v| v + 1.0)).eval()?;
    x.reduce(device!(|a, b| a < b), 0.0)?;
    x.map(|v| v * 2.0).eval()?;
    Ok(())
}
