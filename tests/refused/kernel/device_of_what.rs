//! `device!` takes a function or a closure.

use kiln::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arrays = Arrays::new(&Jit::new()?);
    let x = arrays.vector(vec![1.0f32, 2.0])?;
    x.map(device!(x + 1.0)).eval()?;
    x.map(device!(f32::sqrt)).eval()?;
    x.map(device!(|| 1.0)).eval()?;
    x.map(device!()).eval()?;
    x.map(device!(|v| v.classify() as u8 as f32)).eval()?;
    Ok(())
}
