//! Operators that a struct has on the host alone, and operands that are references.
use std::ops::{Add, AddAssign, Neg};

use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Host(f32);

impl Add for Host {
    type Output = Host;
    fn add(self, other: Host) -> Host {
        Host(self.0 + other.0)
    }
}

impl AddAssign for Host {
    fn add_assign(&mut self, other: Host) {
        self.0 += other.0;
    }
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Both(f32);

#[device_fn]
impl Neg for Both {
    type Output = Both;
    fn neg(self) -> Both {
        Both(-self.0)
    }
}

impl<'a> Neg for &'a Both {
    type Output = Both;
    fn neg(self) -> Both {
        -*self
    }
}

#[kernel]
fn sums(x: &mut [Host], y: &mut [Both]) {
    let a = x[0];
    x[1] = a + x[2];
    x[2] += a;
    let b = &y[0];
    y[1] = -b;
}

#[kernel]
fn mixed(x: &mut [Host], y: f32) {
    x[0] = x[1] + y;
}

fn main() {}
