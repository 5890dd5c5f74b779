//! A struct that kernels do not know: the derive is missing.
use kiln::prelude::*;

#[derive(Copy, Clone, Debug)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

#[kernel]
fn move_all(points: &mut [Point], by: Point) {
    let i = global_id().x;
    if i < points.len() {
        points[i].x += by.x;
        points[i].y += by.y;
    }
}

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let by = Point { x: 1.0, y: 2.0 };
    let mut points = jit.upload(&[by; 4])?;
    move_all.launch(&jit, (1, 32), &mut points, by)?;
    Ok(())
}
