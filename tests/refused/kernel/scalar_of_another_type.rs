//! A number of another type than the elements.
use kiln::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arrays = Arrays::new(&Jit::new()?);
    let x = arrays.vector(vec![1.0f32, 2.0])?;
    (&x * 2).eval()?;
    (&x + 1.0f64).eval()?;
    Ok(())
}
