//! A library with a type of its own, which it copies on the program's device. With `--cfg wide` the type
//! has another layout and, as far as Rust tells, is the same one.

use std::any::{TypeId, type_name};

use kiln::prelude::*;

#[cfg(not(wide))]
type Number = f32;
#[cfg(wide)]
type Number = f64;

#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
pub struct Pair {
    first: Number,
    second: Number,
}

#[kernel]
fn copy<T: KernelType>(x: &[T], y: &mut [T]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = x[i];
    }
}

/// What Rust takes the type for, and its bytes.
#[unsafe(no_mangle)]
pub fn identity() -> (TypeId, &'static str, usize) {
    (TypeId::of::<Pair>(), type_name::<Pair>(), size_of::<Pair>())
}

fn copies(jit: &Jit, arrays: &Arrays, values: &[Pair]) -> kiln::array::Result<[Vec<Pair>; 2]> {
    let x = jit.upload(values)?;
    let mut y = jit.upload(&vec![values[0]; values.len()])?;
    copy.launch(jit, (1, 32), &x, &mut y)?;
    let array = arrays.vector(values.to_vec())?.expr().eval()?;
    Ok([y.to_vec()?, array.to_vec()?])
}

/// Copies values by a kernel and by an expression over arrays; says what is wrong with them.
#[unsafe(no_mangle)]
pub fn run(jit: &Jit, arrays: &Arrays) -> Result<(), String> {
    let value = |i: u8| Pair {
        first: Number::from(i) + 0.25,
        second: -Number::from(i),
    };
    let values: Vec<Pair> = (0..20).map(value).collect();
    let copies = copies(jit, arrays, &values).map_err(|e| e.to_string())?;
    match copies.iter().all(|found| *found == values) {
        true => Ok(()),
        false => Err(format!("{values:?} became {copies:?}")),
    }
}
