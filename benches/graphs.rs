//! Graphs beside the driver's own of the same kernel in the same process, a thousand launches each.
//!
//! `cargo bench --bench graphs`. The figures to meet: 0.56 us a kernel of a replay, on an H200 where CUDA C++ takes 0.53;
//! an update 1.05 times the driver's. On a CPU a replay is beside the launches that it does.

mod driver;
mod report;

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::time::Instant;

use cudarc::driver::sys;
use kiln::prelude::*;
use report::{Report, median};

/// Launches of a graph.
const STEPS: usize = 1000;
/// Elements of the buffer: one block, as the figure is about launches.
const N: usize = 256;
const SAMPLES: usize = 60;

#[kernel]
fn step(x: &mut [f32], by: f32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] += by;
    }
}

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let mut report = Report::new("graphs");
    let mut x = jit.zeros::<f32>(N)?;
    let mut graph = jit.graph((&mut x, 1.0f32), |g, (mut x, by)| {
        for _ in 0..STEPS {
            g.launch(&step, 1, N, args!(&mut x, &by))?;
        }
        Ok(())
    })?;
    match jit.device().info().kind == DeviceKind::Cuda {
        true => beside_driver(&jit, &mut graph, &mut x, &mut report)?,
        false => beside_launches(&jit, &mut graph, &mut x, &mut report)?,
    }
    report.print();
    Ok(())
}

/// Microseconds until this returns, and until the device is done, from a device that has nothing to do.
fn time(jit: &Jit, run: &mut dyn FnMut() -> kiln::Result<()>) -> kiln::Result<[f64; 2]> {
    jit.synchronize()?;
    let start = Instant::now();
    run()?;
    let returned = start.elapsed();
    jit.synchronize()?;
    Ok([returned, start.elapsed()].map(|time| time.as_secs_f64() * 1e6))
}

/// Kiln's way and the other in turn: a row for the time until each returns, and one until it is done, for each of so many
/// kernels. The ratio is the median of those of neighbours.
fn compare(
    jit: &Jit,
    (what, peer): (&str, &str),
    each: f64,
    ours: &mut dyn FnMut() -> kiln::Result<()>,
    theirs: &mut dyn FnMut() -> kiln::Result<()>,
    report: &mut Report,
) -> kiln::Result<()> {
    ours()?;
    theirs()?;
    let (mut own, mut ratios) = ([vec![], vec![]], [vec![], vec![]]);
    for _ in 0..SAMPLES {
        let (by_peer, by_kiln) = (time(jit, theirs)?, time(jit, ours)?);
        for at in 0..2 {
            own[at].push(by_kiln[at] / each);
            ratios[at].push(by_kiln[at] / by_peer[at]);
        }
    }
    for (at, until) in ["until it returns", "until it is done"].iter().enumerate() {
        let (value, ratio) = (median(&own[at]), median(&ratios[at]));
        let name = format!("{what}, {until}");
        report.against(&name, value, "us", peer, value / ratio);
    }
    Ok(())
}

fn beside_launches(
    jit: &Jit,
    graph: &mut kiln::Graph,
    x: &mut Buffer<f32>,
    report: &mut Report,
) -> kiln::Result<()> {
    let ready = jit
        .compile(&step, args!(&mut *x, 1.0f32))?
        .prepare_block(N as u32)?;
    let mut other = jit.zeros::<f32>(N)?;
    let mut replay = || graph.replay(args!(&mut *x, 1.0f32));
    let mut launch = || (0..STEPS).try_for_each(|_| ready.launch(1, N, args!(&mut other, 1.0f32)));
    let what = ("replay, a kernel", "prepared.launch");
    compare(jit, what, STEPS as f64, &mut replay, &mut launch, report)
}

fn beside_driver(
    jit: &Jit,
    graph: &mut kiln::Graph,
    x: &mut Buffer<f32>,
    report: &mut Report,
) -> kiln::Result<()> {
    let each = STEPS as f64;
    let mut raw = RawGraph::new(jit, x)?;
    let what = ("replay, a kernel", "cuGraphLaunch");
    let mut replay = || graph.replay(args!(&mut *x, 1.0f32));
    let mut launch = || {
        raw.launch();
        Ok(())
    };
    compare(jit, what, each, &mut replay, &mut launch, report)?;

    let (mut by, mut raw_by) = (0.0f32, 0.0f32);
    let what = (
        "all steps updated, a kernel",
        "cuGraphExecKernelNodeSetParams",
    );
    let mut replay = || {
        by += 1.0;
        graph.replay(args!(&mut *x, by))
    };
    let mut launch = || {
        raw_by += 1.0;
        raw.update(raw_by);
        raw.launch();
        Ok(())
    };
    compare(jit, what, each, &mut replay, &mut launch, report)?;

    let ready = jit.compile(&step, args!(&mut *x, 1.0f32))?;
    let mut launches = || (0..STEPS).try_for_each(|_| ready.launch(1, N, args!(&mut *x, 1.0f32)));
    let what = ("launches one by one, a kernel", "cuGraphLaunch");
    let mut launch = || {
        raw.launch();
        Ok(())
    };
    compare(jit, what, each, &mut launches, &mut launch, report)
}

/// A graph as a C program makes it: one kernel node behind the other.
struct RawGraph {
    exec: sys::CUgraphExec,
    nodes: Vec<sys::CUgraphNode>,
    function: driver::Function,
    address: u64,
}

impl RawGraph {
    fn new(jit: &Jit, x: &mut Buffer<f32>) -> kiln::Result<RawGraph> {
        let inspection = jit.inspect(&step, args!(&mut *x, 1.0f32))?;
        let code = inspection.compiled().and_then(|kernel| kernel.code.ptx());
        let code = code.expect("a GPU runs PTX");
        let mut made = RawGraph {
            exec: null_mut(),
            nodes: Vec::new(),
            function: driver::load(code.text.as_bytes(), &code.entry),
            address: x.address(),
        };
        let mut graph = null_mut();
        // SAFETY: the result is valid for writes.
        check(unsafe { sys::cuGraphCreate(&mut graph, 0) });
        for _ in 0..STEPS {
            let mut node = null_mut();
            let after = made.nodes.last().map_or(null(), std::ptr::from_ref);
            let count = made.nodes.len().min(1);
            made.with_params(1.0, |params| {
                // SAFETY: the parameters are the kernel's, and the node before is of the graph.
                unsafe { sys::cuGraphAddKernelNode_v2(&mut node, graph, after, count, params) }
            });
            made.nodes.push(node);
        }
        // SAFETY: the result is valid for writes.
        check(unsafe { sys::cuGraphInstantiateWithFlags(&mut made.exec, graph, 0) });
        Ok(made)
    }

    fn with_params(
        &self,
        by: f32,
        call: impl FnOnce(&sys::CUDA_KERNEL_NODE_PARAMS) -> sys::CUresult,
    ) {
        // The parameters are address, length and number; the fault channel is not touched by this kernel.
        let (mut address, mut length, mut by, mut channel) = (self.address, N as u32, by, 0u64);
        let mut pointers: [*mut c_void; 4] = [
            (&raw mut address).cast(),
            (&raw mut length).cast(),
            (&raw mut by).cast(),
            (&raw mut channel).cast(),
        ];
        check(call(&sys::CUDA_KERNEL_NODE_PARAMS {
            func: self.function.raw(),
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: N as u32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            kernelParams: pointers.as_mut_ptr(),
            extra: null_mut(),
            kern: null_mut(),
            ctx: null_mut(),
        }));
    }

    fn update(&mut self, by: f32) {
        for node in &self.nodes {
            self.with_params(by, |params| {
                // SAFETY: the parameters are the kernel's, and the node is of the graph.
                unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.exec, *node, params) }
            });
        }
    }

    fn launch(&mut self) {
        // SAFETY: the graph is instantiated, and its buffer is there.
        check(unsafe { sys::cuGraphLaunch(self.exec, null_mut()) });
    }
}

/// Panics unless a driver call succeeded.
fn check(result: sys::CUresult) {
    assert_eq!(result, sys::CUresult::CUDA_SUCCESS);
}
