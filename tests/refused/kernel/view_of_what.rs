//! What no view can be.
use kiln::prelude::*;

#[derive(KernelView)]
struct Unnamed<'a>(&'a [f32], u32);

#[derive(KernelView)]
struct Bounded<'a, T: Num> {
    data: &'a [T],
}

#[derive(KernelView)]
struct Where<'a, T>
where
    T: Num,
{
    data: &'a [T],
}

#[derive(KernelView)]
struct Two<'a, 'b> {
    left: &'a [f32],
    right: &'b [f32],
}

#[derive(KernelView)]
struct Sized<'a, const N: usize> {
    data: &'a [[f32; N]],
}

#[derive(KernelView)]
enum Either<'a> {
    Left(&'a [f32]),
}

#[derive(KernelView)]
union Both<'a> {
    left: &'a [f32],
}

fn main() {}
