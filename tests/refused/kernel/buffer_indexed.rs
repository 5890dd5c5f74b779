//! An element of a buffer on the host.
use kiln::prelude::*;

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let mut y = jit.zeros::<f32>(4)?;
    y[0] += 1.0;
    println!("{}", y[1]);
    Ok(())
}
