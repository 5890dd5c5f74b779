//! Virtual grids: any number of dimensions of blocks and threads, on those of the hardware.

use kiln_jit_core::ir::{
    BinaryOp, CompareOp, FuncId, Function, Inst, IntrinsicId, Location, Module, Type, Value,
};
use kiln_jit_core::launch::Dim3;

use crate::along::{Along, WARP};
use crate::emit::{Emit, position_row};
use crate::error::DirectiveError;
use crate::fill::AlongRows;
use crate::schedule::Schedule;

/// The fewest lanes that a CPU has a warp of; lines of threads that are a multiple of them are whole warps.
const LEAST_LANES: u32 = 8;
/// The most threads of a block, along x and y and in all (CUDA guide, "Compute Capabilities").
const MAX_THREADS: u128 = 1024;
/// The most threads of a block along z.
const MAX_THREADS_Z: u32 = 64;
/// The most blocks along x, and in all of a grid whose blocks lie along x.
const MAX_BLOCKS: u128 = (1 << 31) - 1;
/// The most blocks along y and z.
const MAX_BLOCKS_YZ: u32 = 65535;

/// Dimensions of a virtual grid on those of the hardware.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mapping {
    /// What a launch has.
    pub(crate) hardware: Dim3,
    /// The extents, where they all lie along x; each is a parameter of the kernel then.
    pub(crate) linear: Option<Vec<u32>>,
}

impl Mapping {
    /// Along x the last dimension, along y the one before and along z that before that, if there are no more and
    /// each is within its limit; else all along x, the last one fastest.
    fn new(
        dims: &[u32],
        limits: [u128; 3],
        all: u128,
        what: &str,
    ) -> Result<Mapping, DirectiveError> {
        let wrong = |problem: String| {
            let list: Vec<_> = dims.iter().map(u32::to_string).collect();
            let dims = format!("{what}({})", list.join(", "));
            DirectiveError::Grid { dims, problem }
        };
        if dims.is_empty() || dims.contains(&0) {
            return Err(wrong(
                "a grid has one dimension or more, each of at least 1".to_owned(),
            ));
        }
        let product = dims
            .iter()
            .try_fold(1u128, |all, &dim| all.checked_mul(dim.into()));
        if let Some(product) = product.filter(|&product| product <= all) {
            let axis = |axis: usize| match dims.len() > axis {
                true => dims[dims.len() - 1 - axis],
                false => 1,
            };
            let axes = [axis(0), axis(1), axis(2)];
            let fits = dims.len() <= 3
                && axes
                    .iter()
                    .zip(limits)
                    .all(|(&dim, limit)| u128::from(dim) <= limit);
            return Ok(match fits {
                true => Mapping {
                    hardware: Dim3::from((axes[0], axes[1], axes[2])),
                    linear: None,
                },
                // At most `all`, which is less than 2^31.
                false => Mapping {
                    hardware: Dim3::from(product as u32),
                    linear: Some(dims.to_vec()),
                },
            });
        }
        let product = product.map_or("too many to count".to_owned(), |product| {
            product.to_string()
        });
        Err(wrong(format!(
            "these are {product} in all, and at most {all} are launched: choose smaller dimensions, a loop takes any \
             number of turns"
        )))
    }

    /// The blocks of a schedule.
    pub(crate) fn of_blocks(schedule: &Schedule) -> Result<Mapping, DirectiveError> {
        let limits = [MAX_BLOCKS, MAX_BLOCKS_YZ.into(), MAX_BLOCKS_YZ.into()];
        Mapping::new(&schedule.blocks, limits, MAX_BLOCKS, "tblock")
    }

    /// The threads of a block.
    pub(crate) fn of_threads(schedule: &Schedule) -> Result<Mapping, DirectiveError> {
        let limits = [MAX_THREADS, MAX_THREADS, MAX_THREADS_Z.into()];
        Mapping::new(&schedule.threads, limits, MAX_THREADS, "thread")
    }
}

/// Where a thread is along a dimension of the virtual grid, and how many there are: `u32`s.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Dim {
    pub(crate) index: Value,
    pub(crate) extent: Value,
    /// Whether the index is 0, a `bool`.
    pub(crate) is_first: Value,
}

/// Rows of the hardware's places, entered in a module.
struct Rows {
    index: [IntrinsicId; 3],
    extent: [IntrinsicId; 3],
}

impl Rows {
    fn enter(module: &mut Module, index: &str, extent: &str) -> Rows {
        Rows {
            index: [0, 1, 2].map(|axis| position_row(module, index, axis)),
            extent: [0, 1, 2].map(|axis| position_row(module, extent, axis)),
        }
    }
}

/// Where a thread is in a virtual grid.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub(crate) blocks: Vec<Dim>,
    pub(crate) threads: Vec<Dim>,
    /// Along the warps and the lanes of the last dimension, if a loop is distributed over them.
    warps: Option<[Dim; 2]>,
    /// Whether all threads of a block lie along x, whatever the dimensions of the virtual grid are.
    is_linear: bool,
    /// Whether the thread is the first of its block.
    pub(crate) is_first: Value,
}

impl Grid {
    /// Where the thread is along what a loop is distributed over.
    pub(crate) fn thread(&self, along: Along) -> Dim {
        let of_warp = |place: usize| {
            let dims = self.warps.expect("they are there where a loop has them");
            dims[place]
        };
        match along {
            Along::Dim(level) => self.threads[level],
            Along::Warps => of_warp(0),
            Along::Lanes => of_warp(1),
        }
    }

    /// Whether a thread is the first lane of its warp, of a last dimension of whole warps.
    pub(crate) fn is_first_lane(&self, emit: &mut Emit<'_>) -> Value {
        if let Some([_, lanes]) = self.warps {
            return lanes.is_first;
        }
        let index = self.threads[self.threads.len() - 1].index;
        let [zero, size] = [0, WARP.into()].map(|number| emit.int(number, Type::U32));
        let lane = emit.binary(BinaryOp::Rem, index, size);
        emit.compare(CompareOp::Eq, lane, zero)
    }

    /// All that tells where the thread is in its block.
    pub(crate) fn of_threads(&self) -> impl Iterator<Item = &Dim> {
        self.threads.iter().chain(self.warps.iter().flatten())
    }

    /// Writes which warp of the last dimension and which lane the thread is; the list of these instructions.
    pub(crate) fn write_warps(&mut self, function: &mut Function) -> Vec<Inst> {
        let at = function.location;
        let mut emit = Emit::new(function, at);
        let Dim { index, extent, .. } = self.threads[self.threads.len() - 1];
        let [zero, size] = [0, WARP.into()].map(|number| emit.int(number, Type::U32));
        let warps = emit.binary(BinaryOp::Div, extent, size);
        let [warp, lane] = [BinaryOp::Div, BinaryOp::Rem].map(|op| emit.binary(op, index, size));
        self.warps = Some([(warp, warps), (lane, size)].map(|(index, extent)| Dim {
            index,
            extent,
            is_first: emit.compare(CompareOp::Eq, index, zero),
        }));
        emit.list
    }

    /// The number of the thread in its block, of so many along each dimension, and how many there are.
    pub(crate) fn linear(&self, emit: &mut Emit<'_>, threads: &[u32]) -> (Value, i128) {
        let mut own = self.threads[0].index;
        for (dim, &extent) in self.threads.iter().zip(threads).skip(1) {
            let extent = emit.int(extent.into(), Type::U32);
            own = emit.binary(BinaryOp::Mul, own, extent);
            own = emit.binary(BinaryOp::Add, own, dim.index);
        }
        let count = threads.iter().map(|&extent| i128::from(extent)).product();
        (own, count)
    }

    /// Whether lines of threads of so many along each dimension are whole warps that have one place along all dimensions but x.
    pub(crate) fn has_whole_warps_along_x(&self, threads: &[u32]) -> bool {
        !self.is_linear
            && threads
                .last()
                .is_some_and(|&width| width.is_multiple_of(LEAST_LANES))
    }

    /// Where the thread is along x, and which line of threads along x it is of.
    pub(crate) fn along_rows(&self, emit: &mut Emit<'_>, threads: &[u32]) -> AlongRows {
        let (dim, outer) = self.threads.split_last().expect("a grid has a dimension");
        let mut line = emit.int(0, Type::U32);
        let (&width, extents) = threads.split_last().expect("a grid has a dimension");
        for (dim, &extent) in outer.iter().zip(extents) {
            let extent = emit.int(extent.into(), Type::U32);
            line = emit.binary(BinaryOp::Mul, line, extent);
            line = emit.binary(BinaryOp::Add, line, dim.index);
        }
        AlongRows {
            x: dim.index,
            line,
            width: width.into(),
            lines: extents.iter().map(|&extent| i128::from(extent)).product(),
            is_first: self.is_first,
        }
    }
}

/// The names of the parameters behind those of the program that a linear grid has.
fn add_extents(function: &mut Function, what: &str, mapping: &Mapping) -> Vec<Value> {
    let dims = mapping.linear.iter().flatten().enumerate();
    let name = |number| format!("offload.{what}.{number}");
    let dims: Vec<_> = dims.map(|(number, _)| name(number)).collect();
    let add = |name: String| function.add_param(name, Type::U32, Location::unknown());
    dims.into_iter().map(add).collect()
}

/// Writes at the start of a kernel where a thread is; the list of these instructions.
pub(crate) fn write_grid(
    module: &mut Module,
    kernel: FuncId,
    [blocks, threads]: [&Mapping; 2],
    [block_dims, thread_dims]: [usize; 2],
) -> (Vec<Inst>, Grid) {
    let rows = [
        Rows::enter(module, "block_idx", "grid_dim"),
        Rows::enter(module, "thread_idx", "block_dim"),
    ];
    let function = &mut module.functions[kernel];
    let block_extents = add_extents(function, "tblock", blocks);
    let thread_extents = add_extents(function, "thread", threads);
    let at = function.location;
    let mut emit = Emit::new(function, at);
    let blocks = dims(&mut emit, &rows[0], block_dims, &block_extents);
    let threads = dims(&mut emit, &rows[1], thread_dims, &thread_extents);
    let firsts: Vec<Value> = threads.iter().map(|dim| dim.is_first).collect();
    let is_first = emit.all(&firsts).expect("a grid has a dimension");
    let grid = Grid {
        blocks,
        threads,
        warps: None,
        is_linear: !thread_extents.is_empty(),
        is_first,
    };
    (emit.list, grid)
}

/// The dimensions of blocks, or of threads: of the hardware, or of a linear grid with these extents.
fn dims(emit: &mut Emit<'_>, rows: &Rows, count: usize, extents: &[Value]) -> Vec<Dim> {
    let zero = emit.int(0, Type::U32);
    let dim = |emit: &mut Emit<'_>, index, extent| Dim {
        index,
        extent,
        is_first: emit.compare(CompareOp::Eq, index, zero),
    };
    if extents.is_empty() {
        let along = |number| {
            let axis = count - 1 - number;
            let index = emit.row(rows.index[axis], Type::U32);
            let extent = emit.row(rows.extent[axis], Type::U32);
            dim(emit, index, extent)
        };
        return (0..count).map(along).collect();
    }
    let mut rest = emit.row(rows.index[0], Type::U32);
    let mut dims = Vec::new();
    for &extent in extents.iter().rev() {
        let index = emit.binary(BinaryOp::Rem, rest, extent);
        rest = emit.binary(BinaryOp::Div, rest, extent);
        dims.push(dim(emit, index, extent));
    }
    dims.reverse();
    dims
}
