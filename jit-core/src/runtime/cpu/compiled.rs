//! Kernels compiled for this machine: one piece of code for each shape of block.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use once_cell::sync::OnceCell;
use parking_lot::RwLock;

use super::object::LoadedObject;
use super::pool::Blocks;
use super::symbols;
use crate::codegen::{
    Barriers, Bug, HostCode, HostJob, HostOutput, compile_host, host_vector_lanes,
};
use crate::error::Result;
use crate::host_abi::BlocksFn;
use crate::ir::{Effects, InstData, Module};
use crate::job::CpuCode;
use crate::simt::BlockShape;

/// Threads of a warp, as in CUDA.
const WARP: u32 = 32;

/// Code for one shape of block.
pub(super) enum Variant {
    /// Machine code.
    Code(Arc<HostKernel>),
    /// Only the interpreter can run it.
    Interpret,
}

/// Machine code, loaded.
pub(super) struct HostKernel {
    name: String,
    object: LoadedObject,
    arena_bytes: [usize; 2],
    stack_bytes: usize,
    cost: AtomicU64,
}

impl Blocks for HostKernel {
    fn entry(&self) -> BlocksFn {
        // SAFETY: the symbol is the function that `codegen::vector` declares with this signature;
        // the caller keeps `self` while it runs.
        unsafe { std::mem::transmute::<*const u8, BlocksFn>(self.object.entry()) }
    }

    fn arena_bytes(&self) -> [usize; 2] {
        self.arena_bytes
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn stack_bytes(&self) -> usize {
        self.stack_bytes
    }

    fn cost(&self) -> &AtomicU64 {
        &self.cost
    }
}

/// A kernel and what has been compiled of it.
pub(super) struct Compiled {
    name: String,
    code: CpuCode,
    variants: RwLock<Vec<([u32; 3], Arc<OnceCell<Variant>>)>>,
}

/// What may be set for tests.
#[derive(Copy, Clone, Default)]
pub(super) struct Settings {
    /// Lanes of a vector, unless warps matter.
    pub(super) lanes: Option<u32>,
    /// Numbers that a register holds.
    pub(super) native_lanes: u32,
    pub(super) barriers: Option<Barriers>,
    pub(super) bug: Option<Bug>,
}

impl Compiled {
    pub(super) fn new(name: &str, code: &CpuCode) -> Compiled {
        Compiled {
            name: name.to_owned(),
            code: code.clone(),
            variants: RwLock::default(),
        }
    }

    pub(super) fn module(&self) -> &Module {
        &self.code.module
    }

    /// The code for blocks of a shape; compiled once, however many threads ask.
    pub(super) fn variant(
        &self,
        block: [u32; 3],
        settings: Settings,
        then: impl FnOnce(&Variant) -> Result<()>,
    ) -> Result<()> {
        let find = |list: &[([u32; 3], Arc<OnceCell<Variant>>)]| {
            let found = list.iter().find(|(shape, _)| *shape == block);
            found.map(|(_, cell)| cell.clone())
        };
        let known = find(&self.variants.read());
        let cell = known.unwrap_or_else(|| {
            let mut variants = self.variants.write();
            find(&variants).unwrap_or_else(|| {
                let cell = Arc::default();
                variants.push((block, Arc::clone(&cell)));
                cell
            })
        });
        then(cell.get_or_try_init(|| self.compile(block, settings))?)
    }

    fn compile(&self, block: [u32; 3], settings: Settings) -> Result<Variant> {
        let output = compile_host(job(&self.code, block, settings))?;
        Ok(match output {
            HostOutput::Interpret(_) => Variant::Interpret,
            HostOutput::Code(code) => Variant::Code(Arc::new(load(&self.name, &code)?)),
        })
    }
}

/// Makes code runnable.
pub(super) fn load(kernel: &str, code: &HostCode) -> Result<HostKernel> {
    Ok(HostKernel {
        name: kernel.to_owned(),
        object: LoadedObject::load(
            kernel,
            &code.object,
            crate::codegen::HOST_ENTRY,
            symbols::find,
        )?,
        arena_bytes: code.arena_bytes.map(|bytes| bytes as usize),
        stack_bytes: code.stack_bytes as usize,
        cost: AtomicU64::new(0),
    })
}

/// What to compile for blocks of a shape.
fn job(code: &CpuCode, block: [u32; 3], settings: Settings) -> HostJob {
    let warps_matter = uses_warps(&code.module);
    let lanes = if warps_matter {
        WARP
    } else {
        let registers = if is_short(&code.module) { 2 } else { 4 };
        settings
            .lanes
            .unwrap_or_else(|| choose_lanes(block, settings.native_lanes, registers))
    };
    HostJob {
        module: code.module.clone(),
        block: BlockShape {
            threads: block,
            lanes,
        },
        contract: code.contract,
        opt_level: code.opt_level,
        barriers: settings.barriers,
        warps_matter,
        bug: settings.bug,
        keep_text: false,
    }
}

/// Compiles for blocks of a shape and keeps the text of each stage; gives the number of lanes, too.
pub(crate) fn list_host_code(code: &CpuCode, block: [u32; 3]) -> Result<(u32, HostOutput)> {
    let settings = Settings {
        native_lanes: host_vector_lanes()?,
        ..Settings::default()
    };
    let job = HostJob {
        keep_text: true,
        ..job(code, block, settings)
    };
    Ok((job.block.lanes, compile_host(job)?))
}

pub(super) fn uses_warps(module: &Module) -> bool {
    module
        .intrinsics
        .values()
        .any(|def| def.effects == Effects::Convergent || def.name.starts_with("warp."))
}

/// Whether a thread does little: a few accesses, no loop, and no barrier, which is a loop over
/// warps.
fn is_short(module: &Module) -> bool {
    const FEW: usize = 4;
    let insts = || module.functions.values().flat_map(|f| f.insts.values());
    let repeats = insts().any(|node| {
        matches!(
            node.data,
            InstData::Loop { .. } | InstData::For { .. } | InstData::Barrier
        )
    });
    let accesses = insts()
        .filter(|node| matches!(node.data, InstData::Load { .. } | InstData::Store { .. }))
        .count();
    !repeats && accesses <= FEW
}

/// The most lanes of a vector.
const MOST_LANES: u32 = 64;

/// The number of lanes for a shape of block: `registers` vector registers of 32-bit numbers, if
/// rows divide into that.
///
/// Four hide the latency of arithmetic, and have a grid-stride loop read several cache lines at a
/// stop; with eight, what lives in a loop no longer fits the registers. A short kernel waits for
/// memory whatever it is, and is compiled faster for two.
fn choose_lanes(block: [u32; 3], native: u32, registers: u32) -> u32 {
    let most = (registers * native).min(MOST_LANES);
    let [x, y, z] = block;
    let length = if y == 1 && z == 1 { x * y * z } else { x };
    let fitting = [64, 32, 16, 8]
        .into_iter()
        .find(|&lanes| lanes <= most && length.is_multiple_of(lanes));
    match fitting {
        Some(lanes) => lanes,
        // A long row has one partial warp, which costs little.
        None if length > most && y == 1 && z == 1 => most,
        None => native.max(8),
    }
}
