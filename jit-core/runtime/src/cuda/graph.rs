//! Graphs of the driver (CUDA C++ Programming Guide, "CUDA Graphs"): nodes that are added by hand, a graph that is
//! instantiated once, nodes that are set anew, launches.
//!
//! Nothing is captured: capture is a state of threads and streams that other code would be in as well, and an error
//! that it meets is told at its end. Here each node is a call, whose error is that node's.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use cudarc::driver::sys;
use kiln_ir::abi::ParamSlot;
use kiln_ir::launch::LaunchConfig;
use smallvec::SmallVec;

use super::context::CudaContext;
use super::error::DriverError;
use super::module::CudaFunction;
use super::rows::{self, Side};
use super::stream::StreamHandle;
use super::table::{Code, Table};
use crate::rows::{Laid, Rows};
use crate::stream::outside_of_calls;

/// The entry points for graphs, which drivers have from CUDA 12 on in this form.
#[derive(Copy, Clone)]
struct Calls {
    create: unsafe extern "C" fn(*mut sys::CUgraph, c_uint) -> Code,
    destroy: unsafe extern "C" fn(sys::CUgraph) -> Code,
    destroy_exec: unsafe extern "C" fn(sys::CUgraphExec) -> Code,
    instantiate: unsafe extern "C" fn(*mut sys::CUgraphExec, sys::CUgraph, u64) -> Code,
    launch: unsafe extern "C" fn(sys::CUgraphExec, sys::CUstream) -> Code,
    add_kernel: unsafe extern "C" fn(
        *mut sys::CUgraphNode,
        sys::CUgraph,
        *const sys::CUgraphNode,
        usize,
        *const sys::CUDA_KERNEL_NODE_PARAMS,
    ) -> Code,
    set_kernel: unsafe extern "C" fn(
        sys::CUgraphExec,
        sys::CUgraphNode,
        *const sys::CUDA_KERNEL_NODE_PARAMS,
    ) -> Code,
    set_attribute: unsafe extern "C" fn(
        sys::CUgraphNode,
        sys::CUlaunchAttributeID,
        *const sys::CUlaunchAttributeValue,
    ) -> Code,
    add_copy: unsafe extern "C" fn(
        *mut sys::CUgraphNode,
        sys::CUgraph,
        *const sys::CUgraphNode,
        usize,
        *const sys::CUDA_MEMCPY3D,
        sys::CUcontext,
    ) -> Code,
    set_copy: unsafe extern "C" fn(
        sys::CUgraphExec,
        sys::CUgraphNode,
        *const sys::CUDA_MEMCPY3D,
        sys::CUcontext,
    ) -> Code,
    add_fill: unsafe extern "C" fn(
        *mut sys::CUgraphNode,
        sys::CUgraph,
        *const sys::CUgraphNode,
        usize,
        *const sys::CUDA_MEMSET_NODE_PARAMS,
        sys::CUcontext,
    ) -> Code,
    set_fill: unsafe extern "C" fn(
        sys::CUgraphExec,
        sys::CUgraphNode,
        *const sys::CUDA_MEMSET_NODE_PARAMS,
        sys::CUcontext,
    ) -> Code,
}

impl Calls {
    fn of(table: &Table) -> Option<Calls> {
        Some(Calls {
            create: table.cuGraphCreate?,
            destroy: table.cuGraphDestroy?,
            destroy_exec: table.cuGraphExecDestroy?,
            instantiate: table.cuGraphInstantiateWithFlags?,
            launch: table.cuGraphLaunch?,
            add_kernel: table.cuGraphAddKernelNode_v2?,
            set_kernel: table.cuGraphExecKernelNodeSetParams_v2?,
            set_attribute: table.cuGraphKernelNodeSetAttribute?,
            add_copy: table.cuGraphAddMemcpyNode?,
            set_copy: table.cuGraphExecMemcpyNodeSetParams?,
            add_fill: table.cuGraphAddMemsetNode?,
            set_fill: table.cuGraphExecMemsetNodeSetParams?,
        })
    }
}

/// A launch as a node has it: what the driver reads is written once, but for the parameters, which are written in place.
pub(crate) struct LaunchNode {
    function: CudaFunction,
    /// Whether all blocks are there at the same time, which a node is once and for all.
    cooperative: bool,
    /// What is passed. It is as long as it was made.
    passed: Vec<u8>,
    /// For each parameter where it lies in what is passed.
    _pointers: Vec<*mut c_void>,
    /// With a pointer to those.
    params: sys::CUDA_KERNEL_NODE_PARAMS,
}

// SAFETY: the pointers are to memory that the node has, which nobody but the driver reads them for, in a call that has the
// node.
unsafe impl Send for LaunchNode {}
// SAFETY: as above.
unsafe impl Sync for LaunchNode {}

impl LaunchNode {
    /// Of a function, with what is passed, in which each parameter has its place.
    pub(crate) fn new(
        function: CudaFunction,
        config: &LaunchConfig,
        slots: &[ParamSlot],
        mut passed: Vec<u8>,
    ) -> LaunchNode {
        let start: *mut c_void = passed.as_mut_ptr().cast();
        let pointer = |slot: &ParamSlot| start.wrapping_byte_add(slot.offset as usize);
        let mut pointers: Vec<*mut c_void> = slots.iter().map(pointer).collect();
        let params = sys::CUDA_KERNEL_NODE_PARAMS {
            func: function.handle,
            gridDimX: config.grid.x,
            gridDimY: config.grid.y,
            gridDimZ: config.grid.z,
            blockDimX: config.block.x,
            blockDimY: config.block.y,
            blockDimZ: config.block.z,
            sharedMemBytes: config.shared_bytes,
            kernelParams: match pointers.is_empty() {
                true => ptr::null_mut(),
                false => pointers.as_mut_ptr(),
            },
            extra: ptr::null_mut(),
            kern: ptr::null_mut(),
            ctx: ptr::null_mut(),
        };
        LaunchNode {
            function,
            cooperative: config.cooperative,
            passed,
            _pointers: pointers,
            params,
        }
    }

    /// What is passed, to be written.
    pub(crate) fn passed_mut(&mut self) -> &mut [u8] {
        &mut self.passed
    }

    #[cold]
    fn refused(&self, call: &'static str, code: Code) -> DriverError {
        let params = &self.params;
        let grid = [params.gridDimX, params.gridDimY, params.gridDimZ];
        let block = [params.blockDimX, params.blockDimY, params.blockDimZ];
        let shared_bytes = params.sharedMemBytes;
        self.function
            .launch_error(call, code, grid, block, shared_bytes)
    }
}

/// What a node does.
pub(crate) enum Node<'a> {
    Launch(&'a LaunchNode),
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
    },
    /// `value` is 1, 2 or 4 bytes.
    Fill {
        to: u64,
        value: &'a [u8],
        bytes: usize,
    },
}

/// A graph of the driver's that can be launched. What its nodes name, functions above all, has to outlive it.
pub(crate) struct CudaGraph {
    context: Arc<CudaContext>,
    calls: Calls,
    graph: sys::CUgraph,
    exec: sys::CUgraphExec,
    nodes: Vec<sys::CUgraphNode>,
    /// The numbers of two of its kernels, for errors that appear later: two tell that there are several.
    suspects: SmallVec<[u32; 2]>,
}

// SAFETY: handles of graphs may be used from any thread, one at a time (CUDA Driver API, "Graph object thread
// safety"), which `&mut self` sees to.
unsafe impl Send for CudaGraph {}
// SAFETY: as above; nothing is done through `&self`.
unsafe impl Sync for CudaGraph {}

impl CudaGraph {
    /// Makes a graph of nodes, each behind those of the numbers in `after`. `None`: the driver is too old.
    pub(crate) fn create<'a>(
        context: &Arc<CudaContext>,
        nodes: impl Iterator<Item = Node<'a>>,
        after: &[Vec<usize>],
    ) -> Result<Option<CudaGraph>, DriverError> {
        let table = context.enter()?;
        let Some(calls) = Calls::of(&table) else {
            return Ok(None);
        };
        let mut graph: sys::CUgraph = ptr::null_mut();
        // SAFETY: `graph` outlives the call; the flags must be 0.
        let code = unsafe { (calls.create)(&mut graph, 0) };
        context.check("cuGraphCreate", code)?;
        context.has_graphs.store(true, Relaxed);
        // From here on, dropping destroys what was made.
        let mut made = CudaGraph {
            context: Arc::clone(context),
            calls,
            graph,
            exec: ptr::null_mut(),
            nodes: Vec::with_capacity(after.len()),
            suspects: SmallVec::new(),
        };
        for (node, after) in nodes.zip(after) {
            made.add(node, after)?;
        }
        // SAFETY: `exec` outlives the call; no flag is set.
        let code = unsafe { (calls.instantiate)(&mut made.exec, graph, 0) };
        context.check("cuGraphInstantiateWithFlags", code)?;
        Ok(Some(made))
    }

    fn add(&mut self, node: Node<'_>, after: &[usize]) -> Result<(), DriverError> {
        let after: SmallVec<[_; 8]> = after.iter().map(|&at| self.nodes[at]).collect();
        let (graph, context) = (self.graph, self.context.handle());
        let mut handle: sys::CUgraphNode = ptr::null_mut();
        let (first, count) = (after.as_ptr(), after.len());
        match node {
            Node::Launch(launch) => {
                let add = self.calls.add_kernel;
                // SAFETY: the function is of a loaded module, which the node keeps; each pointer is to a parameter, which
                // the driver copies; `handle` outlives the call.
                let code = unsafe { add(&mut handle, graph, first, count, &launch.params) };
                if code != 0 {
                    return Err(launch.refused("cuGraphAddKernelNode", code));
                }
                if launch.cooperative {
                    self.make_cooperative(handle)?;
                }
                self.suspect(launch.function.number);
            }
            Node::Copy { to, from, bytes } => {
                let params = copy_params(to, from, bytes);
                let add = self.calls.add_copy;
                // SAFETY: the parameters outlive the call; what they name is looked at when the graph is launched.
                let code = unsafe { add(&mut handle, graph, first, count, &params, context) };
                self.context.check("cuGraphAddMemcpyNode", code)?;
            }
            Node::Fill { to, value, bytes } => {
                let params = fill_params(to, value, bytes);
                let add = self.calls.add_fill;
                // SAFETY: as above.
                let code = unsafe { add(&mut handle, graph, first, count, &params, context) };
                self.context.check("cuGraphAddMemsetNode", code)?;
            }
        }
        self.nodes.push(handle);
        Ok(())
    }

    fn make_cooperative(&self, node: sys::CUgraphNode) -> Result<(), DriverError> {
        let together = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        // SAFETY: zeros are a value of the union, whichever of its fields is read.
        let mut value: sys::CUlaunchAttributeValue = unsafe { std::mem::zeroed() };
        value.cooperative = 1;
        // SAFETY: the node is one of the graph's, a kernel's; the value outlives the call.
        let code = unsafe { (self.calls.set_attribute)(node, together, &value) };
        self.context.check("cuGraphKernelNodeSetAttribute", code)
    }

    fn suspect(&mut self, number: u32) {
        if self.suspects.len() < 2 && !self.suspects.contains(&number) {
            self.suspects.push(number);
        }
    }

    /// Makes the context current in this thread, as [`CudaGraph::set`] needs it.
    pub(crate) fn enter(&self) -> Result<(), DriverError> {
        self.context.enter_at_once().map(drop)
    }

    /// Sets a node anew, for launches from now on. The context is current, as [`CudaGraph::enter`] has made it: asking for
    /// that takes a good part of what the driver takes for a node.
    pub(crate) fn set(&mut self, at: usize, node: Node<'_>) -> Result<(), DriverError> {
        let (exec, handle, context) = (self.exec, self.nodes[at], self.context.handle());
        match node {
            Node::Launch(launch) => self.set_launch(at, launch),
            Node::Copy { to, from, bytes } => {
                let params = copy_params(to, from, bytes);
                // SAFETY: the parameters outlive the call; the node is one of the graph's.
                let code = unsafe { (self.calls.set_copy)(exec, handle, &params, context) };
                self.context.check("cuGraphExecMemcpyNodeSetParams", code)
            }
            Node::Fill { to, value, bytes } => {
                let params = fill_params(to, value, bytes);
                // SAFETY: as above.
                let code = unsafe { (self.calls.set_fill)(exec, handle, &params, context) };
                self.context.check("cuGraphExecMemsetNodeSetParams", code)
            }
        }
    }

    /// [`CudaGraph::set`] of a launch.
    #[inline]
    pub(crate) fn set_launch(&mut self, at: usize, launch: &LaunchNode) -> Result<(), DriverError> {
        let set = self.calls.set_kernel;
        // SAFETY: as for adding the node, which is one of the graph's.
        match unsafe { set(self.exec, self.nodes[at], &launch.params) } {
            0 => Ok(()),
            code => Err(launch.refused("cuGraphExecKernelNodeSetParams", code)),
        }
    }

    /// Hands the graph to a stream, behind its work and behind earlier launches of the graph.
    ///
    /// # Safety
    /// Memory that the nodes name is valid until the launch has ended, and nothing else accesses it in a conflicting
    /// way; the stream is live and of the context; the functions are loaded.
    pub(crate) unsafe fn launch(&mut self, stream: StreamHandle) -> Result<(), DriverError> {
        self.context.enter_at_once()?;
        // SAFETY: the graph is instantiated; the rest is the caller's promise.
        let code = unsafe { (self.calls.launch)(self.exec, stream.0) };
        self.context.check("cuGraphLaunch", code)?;
        for number in &self.suspects {
            self.context.recent.note(*number);
        }
        Ok(())
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        // In a call that a stream makes, or behind a kernel that may never end, both stay.
        if outside_of_calls().is_err() || !self.context.may_free() {
            return;
        }
        let (calls, graph, exec) = (self.calls, self.graph, self.exec);
        if !exec.is_null() {
            self.context.release("cuGraphExecDestroy", |_| {
                // SAFETY: made once, destroyed once; the driver frees one that runs at its end (CUDA Driver API,
                // `cuGraphExecDestroy`).
                unsafe { (calls.destroy_exec)(exec) }
            });
        }
        self.context.release("cuGraphDestroy", |_| {
            // SAFETY: as above; what was instantiated is a copy.
            unsafe { (calls.destroy)(graph) }
        });
    }
}

/// A copy of one row between memory of the device.
fn copy_params(to: u64, from: u64, bytes: usize) -> sys::CUDA_MEMCPY3D {
    let alone = |start| {
        let (pitch, plane) = (0, 0);
        (
            Side::Device(start),
            Laid {
                start,
                pitch,
                plane,
            },
        )
    };
    let (rows, planes) = (1, 1);
    let rows = Rows {
        bytes,
        rows,
        planes,
    };
    rows::params(alone(to), alone(from), rows)
}

/// A fill of one row.
fn fill_params(to: u64, value: &[u8], bytes: usize) -> sys::CUDA_MEMSET_NODE_PARAMS {
    let mut word = [0; 4];
    word[..value.len()].copy_from_slice(value);
    sys::CUDA_MEMSET_NODE_PARAMS {
        dst: to,
        pitch: 0,
        value: u32::from_le_bytes(word),
        elementSize: value.len() as c_uint,
        width: bytes / value.len(),
        height: 1,
    }
}
