//! Random Rust functions (`build/`), each run as plain Rust on the host and through the JIT, in the
//! interpreter and compiled: equal results. What may differ between host and kernel is left out of
//! them; the documentation of `#[device_fn]` says what that is.
#![allow(
    warnings,
    clippy::all,
    reason = "the functions are random, and warnings about them say nothing"
)]

use kiln::core::front::LazyKernel;
use kiln::core::job::CompileOptions;
use kiln::core::runtime::CpuOptions;
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
pub struct Pair {
    x: i64,
    y: f32,
}

/// Everything that a function computed. The bits of a NaN are not defined.
#[device_fn]
pub fn digest(i: i32, u: u32, w: i64, f: f32) -> u32 {
    let bits = if f.is_nan() { 77 } else { f.to_bits() };
    let mut hash = 0x811c_9dc5u32;
    for part in [i as u32, u, w as u32, (w >> 32) as u32, bits] {
        hash = (hash ^ part).wrapping_mul(0x0100_0193);
    }
    hash
}

#[device_fn]
pub fn bump(x: &mut i32, by: i32) -> i32 {
    let before = *x;
    *x = x.wrapping_add(by);
    before
}

#[device_fn]
pub fn largest<T: Num>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

#[device_fn]
pub fn total(values: &[i32]) -> i32 {
    let mut sum = 0i32;
    for i in 0..values.len() {
        sum = sum.wrapping_add(values[i]);
    }
    sum
}

#[device_fn]
pub fn apply<T: Num, F: FnMut(T) -> T>(x: T, mut f: F) -> T {
    f(x)
}

#[device_fn]
pub fn repeat<T: Num, F: FnMut(T) -> T>(times: u32, mut x: T, mut f: F) -> T {
    for i in 0..times {
        let next = f(x);
        if next == x {
            return next;
        }
        x = next;
    }
    x
}

type Host = fn(i32, u32, f32) -> u32;

/// A kernel for each function, and the list of both.
macro_rules! cases {
    ($($name:ident)*) => {
        mod kernels {
            use kiln::prelude::*;
            $(
                #[kernel]
                pub fn $name(a: &[i32], b: &[u32], c: &[f32], out: &mut [u32]) {
                    let i = global_id().x;
                    if i < out.len() {
                        out[i] = super::$name(a[i], b[i], c[i]);
                    }
                }
            )*
        }

        fn cases() -> Vec<(&'static str, &'static LazyKernel, Host)> {
            vec![$((stringify!($name), &*kernels::$name, $name)),*]
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/functions.rs"));

/// A number of arguments, among them those where something changes.
const ARGUMENTS: usize = 96;

fn arguments() -> (Vec<i32>, Vec<u32>, Vec<f32>) {
    let mut random = kiln_random::random::Random::new(7);
    let edges = [0, 1, -1, i32::MIN, i32::MAX, 5, -100, 255];
    let floats = [0.0, -0.0, 1.5, -2.5, 1e30, f32::INFINITY, f32::NAN, 1e-40];
    let one = |_| match random.chance(40) {
        true => (
            random.of(&edges),
            random.of(&edges) as u32,
            random.of(&floats),
        ),
        false => (
            random.bits() as i32,
            random.bits() as u32,
            random.bits() as i16 as f32 * 0.37,
        ),
    };
    let all: Vec<(i32, u32, f32)> = (0..ARGUMENTS).map(one).collect();
    (
        all.iter().map(|t| t.0).collect(),
        all.iter().map(|t| t.1).collect(),
        all.iter().map(|t| t.2).collect(),
    )
}

/// Runs every function on a device and compares.
fn compare(options: CpuOptions) -> kiln::Result<()> {
    let compile = CompileOptions {
        contract: false,
        ..CompileOptions::default()
    };
    let jit = Jit::with(
        Device::cpu_with(options),
        kiln::hooks::standard(),
        JitOptions {
            compile,
            ..JitOptions::default()
        },
    );
    let (a, b, c) = arguments();
    let (da, db, dc) = (jit.upload(&a)?, jit.upload(&b)?, jit.upload(&c)?);
    let (mut failed, mut constant) = (Vec::new(), 0);
    for (name, kernel, host) in cases() {
        let mut out = jit.zeros::<u32>(ARGUMENTS)?;
        jit.launch(kernel, 3, 32, args!(&da, &db, &dc, &mut out))?;
        jit.synchronize()?;
        let want: Vec<u32> = (0..ARGUMENTS).map(|i| host(a[i], b[i], c[i])).collect();
        constant += usize::from(want.iter().all(|w| *w == want[0]));
        let got = out.to_vec()?;
        if let Some(i) = (0..ARGUMENTS).find(|&i| got[i] != want[i]) {
            let (a, b, c, got, want) = (a[i], b[i], c[i], got[i], want[i]);
            failed.push(format!(
                "{name}({a}, {b}, {c:?}) is {want:#x} on the host and {got:#x} in a kernel"
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // Functions that compute nothing would prove nothing.
    assert!(constant < cases().len() / 10, "{constant} are constant");
    Ok(())
}

#[test]
fn interpreted() -> kiln::Result<()> {
    compare(CpuOptions {
        interpret: true,
        ..CpuOptions::default()
    })
}

#[test]
fn compiled_for_vectors() -> kiln::Result<()> {
    compare(CpuOptions::default())
}

#[test]
fn compiled_for_1_lane() -> kiln::Result<()> {
    compare(CpuOptions {
        lanes: Some(1),
        ..CpuOptions::default()
    })
}
