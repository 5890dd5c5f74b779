//! A body of the host for what only kernels can compute where no machine has a cell.
use kiln::core::value::F32x4;

kiln::intrinsic! {
    fn first(x: F32x4) -> f32 {
        x.0[0]
    } = row("example.first");
}

fn main() {
    first::row();
}
