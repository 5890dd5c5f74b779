use half::bf16;
use kiln::prelude::*;
fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let arrays = Arrays::new(&jit);
    let n = 1 << 20;
    let x = arrays.full(n, bf16::from_f32(0.5))?;
    let mut y = arrays.full(n, bf16::from_f32(0.5))?;
    let two = bf16::from_f32(2.0);
    let b = |x: f32| bf16::from_f32(x);
    let t = b(2.0) * &x * &x + b(6.0) * &x * &x * &x - x.sqrt();
    let e = (&t * &t) * b(3.0) + b(5.0) * &t + two;
    e.eval_into(&mut y)?;
    Ok(())
}
