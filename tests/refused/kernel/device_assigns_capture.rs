//! What is captured is a copy that all threads read.

use kiln::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arrays = Arrays::new(&Jit::new()?);
    let x = arrays.vector(vec![1.0f32, 2.0])?;
    let mut count = 0;
    x.map(device!(|v| {
        count += 1;
        v
    }))
    .eval()?;
    println!("{count}");
    Ok(())
}
