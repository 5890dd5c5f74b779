//! How many lanes a vector has.

use kiln_ir::target::CpuTarget;
use kiln_ir::{Control, Function, Inst, Module, Region};

/// Threads of a warp, as in CUDA.
const WARP: u32 = 32;

/// The most lanes of a vector.
const MOST_LANES: u32 = 64;

/// The number of lanes for a kernel and a shape of block: 32 if warps matter, else what the target
/// says, else what suits.
pub(crate) fn choose_lanes(module: &Module, target: &CpuTarget, block: [u32; 3]) -> u32 {
    if uses_warps(module) {
        return WARP;
    }
    let registers = if is_short(module) || is_dense(module) {
        2
    } else {
        4
    };
    let fitting = || lanes_for(block, target.features.lanes(), registers);
    target.lanes.unwrap_or_else(fitting)
}

/// Whether a kernel has operations that the lanes of a warp execute together.
pub(crate) fn uses_warps(module: &Module) -> bool {
    module.intrinsics.values().any(|row| row.is_of_warp())
}

/// Whether a thread does little: a few accesses, no loop, and no barrier, which is a loop over
/// warps.
fn is_short(module: &Module) -> bool {
    const FEW: usize = 4;
    let insts = || module.functions.values().flat_map(|f| f.insts.values());
    let repeats = insts().any(|node| node.data.is_loop() || node.data.is_barrier());
    let accesses = |f: &Function| accesses(f, f.body);
    !repeats && module.functions.values().map(accesses).sum::<usize>() <= FEW
}

/// The most accesses on a way through a region without loops.
fn accesses(function: &Function, region: Region) -> usize {
    let of = |&inst: &Inst| {
        let data = &function.insts[inst].data;
        let inner = data.regions().into_iter();
        let inner = inner.map(|region| accesses(function, region)).max();
        let own = data.loaded().is_some() || data.stored().is_some();
        usize::from(own) + inner.unwrap_or(0)
    };
    function.regions[region].insts.iter().map(of).sum()
}

/// Whether a thread loads much before it goes through a loop again: four registers of each, as of the points of a stencil, are more than
/// there are. Two steps of a difference equation, of which each has six, take 1.5 times as long with 64 lanes as with 32.
fn is_dense(module: &Module) -> bool {
    const MANY: usize = 6;
    let loads = |function: &Function| {
        let bodies = function
            .insts
            .values()
            .filter_map(|node| match node.data.control() {
                Control::Loop { body } | Control::For { body, .. } => Some(body),
                _ => None,
            });
        let of_all = bodies
            .chain([function.body])
            .map(|body| loads(function, body));
        of_all.max().unwrap_or(0)
    };
    module
        .functions
        .values()
        .any(|function| loads(function) >= MANY)
}

/// The most loads on a way through a region, without those of loops in it.
fn loads(function: &Function, region: Region) -> usize {
    let of = |&inst: &Inst| {
        let data = &function.insts[inst].data;
        if data.is_loop() {
            return 0;
        }
        let inner = data.regions().into_iter();
        let inner = inner.map(|region| loads(function, region)).max();
        usize::from(data.loaded().is_some()) + inner.unwrap_or(0)
    };
    function.regions[region].insts.iter().map(of).sum()
}

/// The number of lanes for a shape of block: `registers` vector registers of `native` 32-bit numbers,
/// if rows divide into that.
///
/// Four hide the latency of arithmetic, and have a grid-stride loop read several cache lines at a
/// stop; with eight, what lives in a loop no longer fits the registers. A short kernel waits for
/// memory whatever it is, and is compiled faster for two.
fn lanes_for(block: [u32; 3], native: u32, registers: u32) -> u32 {
    let most = (registers * native).min(MOST_LANES);
    let [row, y, z] = block;
    let fitting = [64, 32, 16, 8]
        .into_iter()
        .find(|&lanes| lanes <= most && row.is_multiple_of(lanes));
    match fitting {
        Some(lanes) => lanes,
        // A long row has one partial warp, which costs little.
        None if row > most && y == 1 && z == 1 => most,
        None => native.max(8),
    }
}
