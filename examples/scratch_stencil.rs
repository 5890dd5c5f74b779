use kiln::array::Border;
use kiln::prelude::*;
fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let arrays = Arrays::new(&jit);
    let side = 4096;
    let x = arrays.full((side, side), 0.5f32)?;
    let mut y = arrays.zeros::<f32>((side, side))?;
    let at = |di, dj| x.neighbor([di, dj], Border::Clamp);
    let flow = at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1) - 4.0 * &x;
    let step = &x + 0.125 * flow;
    println!("{}", step.explain()?);
    step.eval_into(&mut y)?;
    Ok(())
}
