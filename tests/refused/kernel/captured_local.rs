//! A variable of the host in a kernel.
use kiln::prelude::*;

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let factor = 2.0;
    #[kernel]
    fn scale(x: &mut [f32]) {
        x[0] *= factor;
    }
    let by = kiln::kernel_expr!(by(x: &mut [f32]) {
        x[0] *= factor;
    });
    let mut x = jit.upload(&[1.0f32])?;
    scale.launch(&jit, (1, 32), &mut x)?;
    by.launch(&jit, (1, 32), &mut x)
}
