//! The kernels that are compared with nvcc's.

#![allow(clippy::assign_op_pattern, reason = "as the paper writes it")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln::core::args::Arg;
use kiln::core::compile::{Stage, StageObserver};
use kiln::core::ir::{Module, parse};
use kiln::core::job::CompileOptions;
use kiln::prelude::*;
use kiln_suite::without_checks;

/// A kernel, and its twin in CUDA C++.
pub struct Pair {
    /// What it is.
    pub name: &'static str,
    /// The file in `benches/peers`, and the kernel in it.
    pub twin: (&'static str, &'static str),
    /// How many per cent more instructions of SASS there may be.
    pub percent: usize,
    /// Whether indices are checked.
    checked: bool,
    /// Launches the kernel.
    launch: fn(&Jit) -> kiln::Result<()>,
}

/// Kernels without loops: how far `ptxas` unrolls one has more to do with the count than who wrote it.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "listing 9, no checks",
        twin: ("broadcast.cu", "broadcast"),
        percent: 3,
        checked: false,
        launch: launch_broadcast,
    },
    Pair {
        name: "listing 8, no checks",
        twin: ("broadcast.cu", "broadcast_scaled"),
        percent: 3,
        checked: false,
        launch: launch_expression,
    },
    Pair {
        name: "listing 9, checks",
        twin: ("broadcast.cu", "broadcast_checked"),
        // Which of the indices was out of bounds is asked once more, where one was.
        percent: 10,
        checked: true,
        launch: launch_broadcast,
    },
    Pair {
        name: "saxpy, no checks",
        twin: ("saxpy.cu", "saxpy_f32"),
        percent: 3,
        checked: false,
        launch: launch_saxpy,
    },
];

/// The user's function of listing 8, `f(t) = 3t^2 + 5t + 2`.
#[device_fn]
fn f(t: f64) -> f64 {
    3.0 * t.powi(2) + 5.0 * t + 2.0
}

/// Listing 9: the expression of listing 8 as one writes it by hand.
#[kernel]
fn broadcast(x: &[f64], y: &mut [f64]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = f(2.0 * x[i].powi(2) + 6.0 * x[i].powi(3) - x[i].sqrt());
    }
}

fn launch_broadcast(jit: &Jit) -> kiln::Result<()> {
    let (x, mut y) = (jit.zeros::<f64>(8)?, jit.zeros::<f64>(8)?);
    jit.launch(&broadcast, 1, 32, args!(&x, &mut y))
}

fn launch_expression(jit: &Jit) -> kiln::Result<()> {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![0.0f64; 8]).expect("it has a shape");
    let t = 2.0 * x.powi(2) + 6.0 * x.powi(3) - x.sqrt();
    let result = t.map(device!(f)).eval();
    result.expect("it has a shape");
    Ok(())
}

/// Figure 1 of "Scalable Parallel Programming with CUDA" (Nickolls, Buck, Garland, Skadron 2008).
#[kernel]
fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]) {
    let i = block_idx().x * block_dim().x + thread_idx().x;
    if i < n as usize {
        y[i] = a * x[i] + y[i];
    }
}

fn launch_saxpy(jit: &Jit) -> kiln::Result<()> {
    let (x, mut y) = (jit.zeros::<f32>(8)?, jit.zeros::<f32>(8)?);
    let args: &[Arg<'_>] = args!(8u32, 2.0f32, &x, &mut y);
    jit.launch(&saxpy, 1, 32, args)
}

/// Keeps the text of the last legal module.
#[derive(Default)]
struct Legal(Mutex<Option<String>>);

impl StageObserver for Legal {
    fn stage(&self, _: &str, stage: Stage, _: Duration, text: &dyn Fn() -> String) {
        if stage == Stage::Legal {
            *self.0.lock().expect("no panic while it is held") = Some(text());
        }
    }

    fn wants_text(&self) -> bool {
        false
    }
}

impl Pair {
    /// The kernel as code generation gets it.
    pub fn module(&self) -> Arc<Module> {
        let legal = Arc::new(Legal::default());
        let observer: Arc<dyn StageObserver + Send + Sync> = legal.clone();
        let compile = match self.checked {
            true => CompileOptions::default(),
            false => without_checks(),
        };
        let options = JitOptions::default().observer(observer).compile(compile);
        // What the hook that moves checks makes of a kernel is for the machine that this one is launched on.
        let hooks = kiln::hooks::standard().without("bounds-checks");
        let jit = Jit::with(Device::cpu(), hooks, options);
        (self.launch)(&jit).expect("it can be launched");
        let text = legal.0.lock().expect("no panic while it is held").take();
        let text = text.expect("the kernel was compiled");
        Arc::new(parse(&text, &kiln::stdlib::find).expect("it parses"))
    }
}
