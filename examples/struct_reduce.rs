//! Listing 10 of "Effective Extensible Programming: Unleashing Julia on GPUs" (Besard et al. 2018):
//! a reduction over a user's struct with a user's operation.

use kiln::prelude::*;

/// A point of the plane.
#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Point {
    x: i64,
    y: i64,
}

/// `+` of points.
#[device_fn]
fn add(a: Point, b: Point) -> Point {
    Point {
        x: a.x + b.x,
        y: a.y + b.y,
    }
}

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let arrays = Arrays::new(&jit);
    let host: Vec<Point> = (0..40_000).map(|i| Point { x: i, y: -2 * i }).collect();
    let points = arrays.vector(host.clone())?;

    // reduce(+, Point(0, 0), X)
    let sum = points.reduce(device!(add), Point { x: 0, y: 0 })?;

    let want: i64 = host.iter().map(|p| p.x).sum();
    assert_eq!(
        sum,
        Point {
            x: want,
            y: -2 * want
        }
    );
    println!(
        "{} points sum up to ({}, {}), ok",
        points.len(),
        sum.x,
        sum.y
    );
    Ok(())
}
