//! Elements of a slice that is borrowed twice, or changed under a loop over it.
use kiln::prelude::*;

#[kernel]
fn twice(x: &mut [f32]) {
    for a in x.iter_mut() {
        for b in x.iter_mut() {
            *a += *b;
        }
    }
}

#[kernel]
fn changed(x: &mut [f32]) {
    for v in x.iter() {
        x[0] = *v;
    }
}

#[kernel]
fn zipped(x: &mut [f32]) {
    for (a, b) in x.iter_mut().zip(&*x) {
        *a += *b;
    }
}

#[kernel]
fn not_mutable(x: &[f32]) {
    for v in x.iter_mut() {
        *v = 1.0;
    }
}

#[kernel]
fn not_elements(n: u32, y: &mut [f32]) {
    for v in n {
        y[0] += v as f32;
    }
}

fn main() {}
