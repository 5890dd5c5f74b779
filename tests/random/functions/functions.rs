//! Random Rust functions (`build/`), each run as plain Rust on the host and through the JIT: in the
//! interpreter, compiled for this CPU, and on a GPU where there is one. Equal results. What may differ
//! between host and kernel is left out of them; the documentation of `#[device_fn]` says what that is.
//!
//! `random-functions [FILTER]`. A program without a harness, so that it can be carried to a machine that
//! has a GPU and no Rust; there `--require` makes it fail without a CUDA device.
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

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
pub struct Two<T> {
    a: T,
    b: T,
}

/// Functions of the same names, and generic ones whose callees take structs of their parameter.
macro_rules! alike {
    ($($module:ident $factor:literal;)*) => {$(
        pub mod $module {
            use super::Two;
            use kiln::prelude::*;

            #[device_fn]
            pub fn step(x: i32) -> i32 {
                x.wrapping_mul($factor) ^ 9
            }

            #[device_fn]
            pub fn of_slice<T: Int>(pairs: &[Two<T>]) -> T {
                pairs[0].a ^ pairs[1].b
            }

            #[device_fn]
            pub fn change<T: Int>(pairs: &mut [Two<T>; 2], by: T) -> T {
                pairs[1].b = pairs[0].a & by;
                pairs[0].b
            }

            #[device_fn]
            pub fn pair<T: Int>(x: T, y: T) -> T {
                let mut pairs = [Two { a: x, b: y }, Two { a: y, b: x }];
                let before = of_slice(&pairs);
                before ^ change(&mut pairs, y) ^ of_slice(&pairs)
            }
        }
    )*};
}
alike! { one 3; two 5; three 7; }

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

/// Runs every function on a device; what differs, or what is wrong besides.
fn compare(device: Device) -> Result<(), String> {
    let failed = failures(device).map_err(|error| error.to_string())?;
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{}\none alone, random_S: KILN_FUNCTIONS_SEED=S KILN_FUNCTIONS_COUNT=1 cargo test \
             -p kiln-random-functions",
            failed.join("\n")
        )),
    }
}

/// The functions whose results differ between the host and a device.
fn failures(device: Device) -> kiln::Result<Vec<String>> {
    let compile = CompileOptions::default().contract(false);
    let options = JitOptions::default().compile(compile);
    let jit = Jit::with(device, kiln::hooks::standard(), options);
    let (a, b, c) = arguments();
    let (da, db, dc) = (jit.upload(&a)?, jit.upload(&b)?, jit.upload(&c)?);
    let (mut failed, mut constant) = (Vec::new(), 0);
    for (name, kernel, host) in cases() {
        let want: Vec<u32> = (0..ARGUMENTS).map(|i| host(a[i], b[i], c[i])).collect();
        constant += usize::from(want.iter().all(|w| *w == want[0]));
        let mut out = jit.zeros::<u32>(ARGUMENTS)?;
        let launched = jit.launch(kernel, 3, 32, args!(&da, &db, &dc, &mut out));
        if let Err(error) = launched.and_then(|()| jit.synchronize()) {
            failed.push(format!("{name} cannot be run: {error}"));
            continue;
        }
        let got = out.to_vec()?;
        if let Some(i) = (0..ARGUMENTS).find(|&i| got[i] != want[i]) {
            let (a, b, c, got, want) = (a[i], b[i], c[i], got[i], want[i]);
            failed.push(format!(
                "{name}({a}, {b}, {c:?}) is {want:#x} on the host and {got:#x} in a kernel"
            ));
        }
    }
    // Functions that compute nothing would prove nothing; a few may.
    if constant > 3 + cases().len() / 10 {
        failed.push(format!("{constant} of {} are constant", cases().len()));
    }
    Ok(failed)
}

/// What the functions are run on: a name and the device.
fn runs(require_gpu: bool) -> Vec<(&'static str, Result<Device, String>)> {
    let cpu = |options| Ok(Device::cpu_with(options));
    let interpreted = CpuOptions::default().interpret(true);
    let one_lane = CpuOptions::default().lanes(1);
    let mut runs = vec![
        ("functions_interpreted", cpu(interpreted)),
        ("functions_compiled_for_vectors", cpu(CpuOptions::default())),
        ("functions_compiled_for_1_lane", cpu(one_lane)),
    ];
    match Device::cuda(0) {
        Err(error) if !require_gpu => println!("no CUDA device: {error}"),
        device => runs.push(("functions_on_a_gpu", device.map_err(|e| e.to_string()))),
    }
    runs
}

fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let filter = args.iter().find(|a| !a.starts_with("--"));
    let mut runs = runs(args.iter().any(|a| a == "--require"));
    runs.retain(|(name, _)| filter.is_none_or(|filter| name.contains(filter.as_str())));
    let results = std::thread::scope(|scope| {
        let run = |(name, device): (_, Result<Device, String>)| {
            (name, scope.spawn(move || device.and_then(compare)))
        };
        let threads: Vec<_> = runs.into_iter().map(run).collect();
        let end = |(name, thread): (&'static str, std::thread::ScopedJoinHandle<_>)| {
            let result = thread.join();
            (name, result.unwrap_or_else(|_| Err("panicked".to_owned())))
        };
        threads.into_iter().map(end).collect::<Vec<_>>()
    });
    for (name, result) in &results {
        match result {
            Ok(()) => println!("test {name} ... ok: {} functions", cases().len()),
            Err(error) => println!("test {name} ... FAILED: {error}"),
        }
    }
    let failed = results.iter().filter(|(_, result)| result.is_err()).count();
    println!("{} passed, {failed} failed", results.len() - failed);
    match failed {
        0 => std::process::ExitCode::SUCCESS,
        _ => std::process::ExitCode::FAILURE,
    }
}
