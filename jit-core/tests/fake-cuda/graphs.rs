//! Graphs: nodes, what is instantiated of them, and launches, whose nodes run in every order that their edges leave.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};

use super::modules::Function;
use super::order::Clock;
use super::{Code, Handle, State, call, order};

/// What a node does, with a copy of what it is given.
#[derive(Clone)]
enum Work {
    Kernel { function: Handle, words: Vec<u64>, size: [u32; 7] },
    Copy { to: u64, from: u64, bytes: usize },
    Fill { to: u64, value: u32, element: usize, count: usize },
}

#[derive(Clone)]
struct Node {
    handle: Handle,
    after: Vec<Handle>,
    work: Work,
    /// Whether all blocks of a kernel are there at the same time: an attribute, which setting parameters leaves.
    cooperative: bool,
}

struct Exec {
    nodes: Vec<Node>,
    /// What its last launch was behind, and its nodes.
    last: Clock,
}

/// The graphs that there are.
#[derive(Default)]
pub(crate) struct Graphs {
    graphs: BTreeMap<Handle, Vec<Node>>,
    execs: BTreeMap<Handle, Exec>,
    /// Nodes that were set anew, and launches.
    pub(crate) set: u64,
    pub(crate) launched: u64,
    /// For each node of the last launch its numbers: function, then parameters.
    pub(crate) last: Vec<Vec<u64>>,
}

#[repr(C)]
pub struct KernelParams {
    function: Handle,
    size: [c_uint; 7],
    params: *const *const c_void,
    extra: *const c_void,
    kern: Handle,
    ctx: Handle,
}

#[repr(C)]
pub struct CopyParams {
    pub(crate) from_at: [usize; 4],
    pub(crate) from_type: c_uint,
    pub(crate) from_host: usize,
    pub(crate) from: u64,
    pub(crate) from_array: usize,
    pub(crate) reserved0: usize,
    pub(crate) from_pitch: [usize; 2],
    pub(crate) to_at: [usize; 4],
    pub(crate) to_type: c_uint,
    pub(crate) to_host: usize,
    pub(crate) to: u64,
    pub(crate) to_array: usize,
    pub(crate) reserved1: usize,
    pub(crate) to_pitch: [usize; 2],
    pub(crate) extent: [usize; 3],
}

#[repr(C)]
pub struct FillParams {
    to: u64,
    pitch: usize,
    value: c_uint,
    element: c_uint,
    width: usize,
    height: usize,
}

impl State {
    /// What a kernel node has, or why it cannot.
    fn kernel_work(&self, params: &KernelParams) -> Result<Work, Code> {
        let Function { name, shared_limit, .. } = self.functions.get(&params.function).ok_or(400u32)?;
        let [gx, gy, gz, bx, by, bz, shared] = params.size;
        let most = [i32::MAX as u32, 65535, 65535, 1024, 1024, 64];
        let outside = [gx, gy, gz, bx, by, bz].iter().zip(most).any(|(n, most)| *n == 0 || *n > most);
        if outside || bx * by * bz > 1024 || shared as i32 > *shared_limit || !params.extra.is_null() {
            return Err(1);
        }
        if bx * by * bz > 512 {
            return Err(701);
        }
        let (uses, tells_faults) = order::uses_of(name);
        // Kernels whose name says nothing are given at most one word that is looked at.
        let count = match uses.len() {
            0 => usize::from(!params.params.is_null()),
            slices => 2 * slices + usize::from(tells_faults),
        };
        let word = |at| {
            // SAFETY: there is a pointer for each parameter, the first of which has 8 bytes, as addresses have. A length
            // has 4, and what is read behind them belongs to the same block.
            unsafe { (*params.params.wrapping_add(at)).cast::<u64>().read_unaligned() }
        };
        let words = (0..count).map(word).collect();
        Ok(Work::Kernel { function: params.function, words, size: params.size })
    }

    /// The accesses of a node, as far as they are there.
    fn accesses_of(&mut self, work: &Work) -> Vec<(u64, bool)> {
        let given: Vec<(u64, bool)> = match work {
            Work::Kernel { function, words, .. } => {
                let Some(Function { name, .. }) = self.functions.get(function) else {
                    self.order.found("a graph launches a kernel that is unloaded");
                    return Vec::new();
                };
                let (uses, _) = order::uses_of(name);
                let slices = words.iter().step_by(2).copied();
                slices.zip(uses).collect()
            }
            Work::Copy { to, from, .. } => vec![(*from, false), (*to, true)],
            Work::Fill { to, .. } => vec![(*to, true)],
        };
        let mut accesses = Vec::new();
        for (address, writes) in given {
            match self.allocation(address) {
                Some(start) => accesses.push((start, writes)),
                None => self.order.found("a graph is given memory that is not there"),
            }
        }
        accesses
    }

    /// Does what needs no kernel.
    fn run_node(&mut self, work: &Work) {
        match *work {
            Work::Kernel { .. } => {}
            Work::Copy { to, from, bytes } => {
                if let (Some(to), Some(from)) = (self.range(to, bytes), self.range(from, bytes)) {
                    // SAFETY: both are inside of allocations.
                    unsafe { std::ptr::copy(from, to, bytes) };
                } else {
                    self.order.found("a graph copies more than there is");
                }
            }
            Work::Fill { to, value, element, count } => {
                let Some(start) = self.range(to, element * count) else {
                    return self.order.found("a graph fills more than there is");
                };
                let bytes = value.to_le_bytes();
                for at in 0..element * count {
                    // SAFETY: inside of an allocation.
                    unsafe { start.add(at).write(bytes[at % element]) };
                }
            }
        }
    }
}

fn copy_work(params: &CopyParams) -> Result<Work, Code> {
    let [bytes, rows, planes] = params.extent;
    let device = params.from_type == 2 && params.to_type == 2;
    match device && bytes > 0 && (rows, planes) == (1, 1) {
        true => Ok(Work::Copy { to: params.to, from: params.from, bytes }),
        false => Err(1),
    }
}

fn fill_work(params: &FillParams) -> Result<Work, Code> {
    let (element, count) = (params.element as usize, params.width);
    let fits = element == 4 || u64::from(params.value) < 1 << (8 * element);
    match matches!(element, 1 | 2 | 4) && fits && count > 0 && params.height == 1 {
        true => Ok(Work::Fill { to: params.to, value: params.value, element, count }),
        false => Err(1),
    }
}

unsafe fn add(
    name: &str,
    (node, graph): (*mut Handle, Handle),
    (after, count): (*const Handle, usize),
    work: impl FnOnce(&State) -> Result<Work, Code>,
) -> Code {
    call(name, true, |s| {
        let work = match work(s) {
            Ok(work) => work,
            Err(code) => return code,
        };
        // SAFETY: the caller gives that many.
        let after = match count {
            0 => Vec::new(),
            _ => unsafe { std::slice::from_raw_parts(after, count) }.to_vec(),
        };
        let handle = s.handle();
        let Some(nodes) = s.graphs.graphs.get_mut(&graph) else {
            return 400;
        };
        let known = |wanted: &Handle| nodes.iter().any(|node| node.handle == *wanted);
        if !after.iter().all(known) {
            return 1;
        }
        nodes.push(Node { handle, after, work, cooperative: false });
        // SAFETY: the caller's pointer is live.
        unsafe { *node = handle };
        0
    })
}

fn set(
    name: &str,
    exec: Handle,
    node: Handle,
    work: impl FnOnce(&State) -> Result<Work, Code>,
) -> Code {
    call(name, true, |s| {
        let work = match work(s) {
            Ok(work) => work,
            Err(code) => return code,
        };
        let Some(exec) = s.graphs.execs.get_mut(&exec) else {
            return 400;
        };
        let Some(node) = exec.nodes.iter_mut().find(|known| known.handle == node) else {
            return 400;
        };
        if std::mem::discriminant(&node.work) != std::mem::discriminant(&work) {
            return 1;
        }
        node.work = work;
        s.graphs.set += 1;
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphCreate(graph: *mut Handle, flags: c_uint) -> Code {
    call("cuGraphCreate", true, |s| {
        if flags != 0 {
            return 1;
        }
        let handle = s.handle();
        s.graphs.graphs.insert(handle, Vec::new());
        // SAFETY: the caller's pointer is live.
        unsafe { *graph = handle };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphDestroy(graph: Handle) -> Code {
    call("cuGraphDestroy", true, |s| match s.graphs.graphs.remove(&graph) {
        Some(_) => 0,
        None => 400,
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphExecDestroy(exec: Handle) -> Code {
    call("cuGraphExecDestroy", true, |s| match s.graphs.execs.remove(&exec) {
        Some(_) => 0,
        None => 400,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(
    exec: *mut Handle,
    graph: Handle,
    flags: u64,
) -> Code {
    call("cuGraphInstantiateWithFlags", true, |s| {
        let Some(nodes) = s.graphs.graphs.get(&graph).cloned() else {
            return 400;
        };
        if flags != 0 {
            return 1;
        }
        let handle = s.handle();
        let last = Clock::new();
        s.graphs.execs.insert(handle, Exec { nodes, last });
        // SAFETY: the caller's pointer is live.
        unsafe { *exec = handle };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(exec: Handle, stream: Handle) -> Code {
    call("cuGraphLaunch", true, |s| {
        if stream != 0 && !s.streams.contains(&stream) {
            return 400;
        }
        let Some(launched) = s.graphs.execs.get(&exec) else {
            return 400;
        };
        let (nodes, last) = (launched.nodes.clone(), launched.last.clone());
        let mut works = Vec::new();
        for node in &nodes {
            let accesses = s.accesses_of(&node.work);
            works.push((node.handle, node.after.clone(), accesses));
        }
        for node in &nodes {
            s.run_node(&node.work);
        }
        let behind = s.order.graph(stream, &last, &works);
        s.graphs.launched += 1;
        s.cooperative += nodes.iter().filter(|node| node.cooperative).count() as u64;
        let words = |node: &Node| match &node.work {
            Work::Kernel { function, words, size } => {
                let size = size.iter().map(|n| u64::from(*n));
                [*function as u64].into_iter().chain(size).chain(words.iter().copied()).collect()
            }
            Work::Copy { to, from, bytes } => vec![*to, *from, *bytes as u64],
            Work::Fill { to, value, element, count } => {
                vec![*to, u64::from(*value), *element as u64, *count as u64]
            }
        };
        s.graphs.last = nodes.iter().map(words).collect();
        if let Some(launched) = s.graphs.execs.get_mut(&exec) {
            launched.last = behind;
        }
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphAddKernelNode_v2(
    node: *mut Handle,
    graph: Handle,
    after: *const Handle,
    count: usize,
    params: *const KernelParams,
) -> Code {
    // SAFETY: the caller's pointers are live.
    unsafe {
        let work = |s: &State| s.kernel_work(&*params);
        add("cuGraphAddKernelNode_v2", (node, graph), (after, count), work)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphAddMemcpyNode(
    node: *mut Handle,
    graph: Handle,
    after: *const Handle,
    count: usize,
    params: *const CopyParams,
    _context: Handle,
) -> Code {
    // SAFETY: the caller's pointers are live.
    unsafe {
        let work = |_: &State| copy_work(&*params);
        add("cuGraphAddMemcpyNode", (node, graph), (after, count), work)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphAddMemsetNode(
    node: *mut Handle,
    graph: Handle,
    after: *const Handle,
    count: usize,
    params: *const FillParams,
    _context: Handle,
) -> Code {
    // SAFETY: the caller's pointers are live.
    unsafe {
        let work = |_: &State| fill_work(&*params);
        add("cuGraphAddMemsetNode", (node, graph), (after, count), work)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecKernelNodeSetParams_v2(
    exec: Handle,
    node: Handle,
    params: *const KernelParams,
) -> Code {
    // SAFETY: the caller's pointer is live.
    let work = |s: &State| s.kernel_work(unsafe { &*params });
    set("cuGraphExecKernelNodeSetParams_v2", exec, node, work)
}

/// Of the attributes whether a launch is cooperative (2), in a graph that is not instantiated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphKernelNodeSetAttribute(
    node: Handle,
    attribute: c_uint,
    value: *const c_int,
) -> Code {
    call("cuGraphKernelNodeSetAttribute", true, |s| {
        let nodes = s.graphs.graphs.values_mut().flatten();
        let Some(node) = nodes.into_iter().find(|known| known.handle == node) else {
            return 400;
        };
        if attribute != 2 || !matches!(node.work, Work::Kernel { .. }) {
            return 1;
        }
        // SAFETY: the caller's pointer is live.
        node.cooperative = unsafe { *value } != 0;
        let Work::Kernel { size, .. } = node.work else { return 1 };
        let [gx, gy, gz, bx, by, bz, _] = size;
        match gx * gy * gz > super::State::cooperative_blocks(bx * by * bz) {
            true => 720,
            false => 0,
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecMemcpyNodeSetParams(
    exec: Handle,
    node: Handle,
    params: *const CopyParams,
    _context: Handle,
) -> Code {
    // SAFETY: the caller's pointer is live.
    let work = |_: &State| copy_work(unsafe { &*params });
    set("cuGraphExecMemcpyNodeSetParams", exec, node, work)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecMemsetNodeSetParams(
    exec: Handle,
    node: Handle,
    params: *const FillParams,
    _context: Handle,
) -> Code {
    // SAFETY: the caller's pointer is live.
    let work = |_: &State| fill_work(unsafe { &*params });
    set("cuGraphExecMemsetNodeSetParams", exec, node, work)
}

/// Graphs and executable graphs that there are, nodes that were set anew, launches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_graphs(out: *mut [u64; 4]) {
    super::with(|s| {
        let graphs = &s.graphs;
        let (graphs, execs) = (graphs.graphs.len(), graphs.execs.len());
        // SAFETY: the test passes a live array.
        unsafe { *out = [graphs as u64, execs as u64, s.graphs.set, s.graphs.launched] };
    });
}

/// The numbers of a node of the last launch of a graph: a kernel's function, shape and parameters, a copy's or fill's
/// ranges. Gives how many there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_graph_node(at: usize, out: *mut u64, room: usize) -> usize {
    super::with(|s| {
        let words = s.graphs.last.get(at).cloned().unwrap_or_default();
        let count = words.len().min(room);
        // SAFETY: the test passes an array of that size.
        unsafe { out.copy_from(words.as_ptr(), count) };
        count
    })
}
