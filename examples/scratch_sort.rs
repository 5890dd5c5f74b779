use kiln::prelude::*;
fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let arrays = Arrays::new(&jit);
    let x = arrays.full(1 << 20, 3u32)?;
    let _ = x.sort(0)?;
    let _ = x.argsort(0)?;
    let f = arrays.full(1 << 20, 1.0f32)?;
    let _ = f.sort(0)?;
    let _ = x.cumsum(0)?;
    Ok(())
}
