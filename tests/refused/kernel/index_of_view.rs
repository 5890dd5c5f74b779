//! Elements of several indices that kernels do not find.

use std::ops::{Index, IndexMut};

use kiln::prelude::*;

#[derive(KernelView)]
struct Plane<'a> {
    data: &'a mut [f32],
    columns: u32,
}

#[device_fn]
impl Index<(usize, usize)> for Plane<'_> {
    type Output = f32;
    fn index(&self, at: (usize, usize)) -> &f32 {
        let data = &self.data;
        &data[at.0 * self.columns as usize + at.1]
    }
}

#[device_fn]
impl IndexMut<(usize, usize)> for Plane<'_> {
    fn index_mut(&mut self, at: (usize, usize)) -> &mut f32 {
        &mut self.data[at.0 * self.columns as usize + at.1]
    }
}

#[device_fn]
impl Index<usize> for Plane<'_> {
    type Output = f32;
    fn index(&self, at: usize) -> &f32 {
        &self.data[at]
    }
}

#[derive(KernelView)]
struct Space<'a> {
    data: &'a [f32],
}

impl Index<(usize, usize, usize)> for Space<'_> {
    type Output = f32;
    fn index(&self, at: (usize, usize, usize)) -> &f32 {
        &self.data[at.0]
    }
}

#[kernel]
fn f(x: Space<'_>, y: &mut [f32]) {
    y[0] = x[(1, 2, 3)];
}

fn main() {}
