//! A kernel made runnable, and launches of it.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use corosensei::stack::DefaultStack;
use parking_lot::Mutex;

use kiln_ir::ThreadPosition;
use kiln_ir::abi::ParamSlot;
use kiln_ir::code::CompiledKernel;
use kiln_ir::fault::{FaultChannel, FaultRecord};
use kiln_ir::gpu_on_host::{OPERATE, OnHostCode, Operation, SHARED, Site, THREAD_ENTRY};
use kiln_ir::launch::DesertedGrid;

use super::block::{self, Block, BlockRun, Chooser, Reached};
use super::symbols;
use super::thread::{ThreadFn, operate};
use super::{OnHostError, Schedule};
use crate::cpu::memory::Allocation;
use crate::cpu::object::LoadedObject;
use crate::device::LoadedCode;
use crate::error::{DeviceError, Result};

/// Shared memory of a block, static and dynamic, in bytes: what the largest GPUs have (CUDA guide,
/// "Technical Specifications per Compute Capability").
pub(super) const SHARED_BYTES: u32 = 227 << 10;

/// What is in shared memory before a block writes it.
const GARBAGE: u8 = 0xA5;

/// Bytes of stack that are enough for most kernels.
const USUAL_STACK: usize = 512 << 10;

/// What the block that runs has to itself. It is held while a launch runs.
pub(super) struct BlockMemory {
    held: Mutex<Held>,
    /// Where shared memory is, which is a part of the code.
    shared: u64,
}

struct Held {
    shared: Allocation,
    /// Stacks of [`USUAL_STACK`] bytes.
    stacks: Vec<DefaultStack>,
}

impl BlockMemory {
    pub(super) fn new() -> Result<BlockMemory> {
        let bytes = SHARED_BYTES as usize;
        let shared = Allocation::new(bytes).ok_or(DeviceError::HostMemory { bytes })?;
        let address = shared.address();
        let stacks = Vec::new();
        Ok(BlockMemory {
            held: Mutex::new(Held { shared, stacks }),
            shared: address,
        })
    }
}

/// A launch.
pub(super) struct OnHostLaunch<'a> {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) dynamic_shared: u32,
    pub(super) params: &'a [u8],
    pub(super) schedule: Schedule,
    pub(super) sm: u32,
}

impl OnHostLaunch<'_> {
    /// Where the first thread of a block is.
    fn first_of(&self, block: [u32; 3]) -> ThreadPosition {
        ThreadPosition {
            thread: [0; 3],
            block,
            block_dim: self.block,
            grid_dim: self.grid,
        }
    }
}

/// Code of a kernel.
pub(super) struct Loaded {
    name: String,
    object: LoadedObject,
    sites: Arc<[Site]>,
    /// Where the parameter block has the address of the fault channel, of a kernel that can fault.
    channel: Option<Range<usize>>,
    static_shared: u64,
    stack_bytes: usize,
}

impl LoadedCode for Loaded {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Loaded {
    /// Makes a kernel runnable with this memory.
    ///
    /// # Errors
    /// Code of another kind, or such as cannot be loaded.
    pub(super) fn new(kernel: &CompiledKernel, memory: &BlockMemory) -> Result<Loaded> {
        let code = kernel.code.custom::<OnHostCode>();
        let code = code.ok_or_else(|| DeviceError::WrongTarget {
            kernel: kernel.info.name.clone(),
            target: kernel.target.to_string(),
            device: "code for GPUs on this CPU".to_owned(),
        })?;
        let outside = |name: &str| match name {
            OPERATE => {
                let operate = operate as unsafe extern "C" fn(usize, *mut u64) -> u64;
                Some((operate as *const ()).expose_provenance())
            }
            SHARED => Some(memory.shared as usize),
            _ => symbols::find(name),
        };
        let info = &kernel.info;
        Ok(Loaded {
            name: info.name.clone(),
            object: LoadedObject::load(&info.name, &code.object, THREAD_ENTRY, &outside)?,
            sites: code.sites.clone(),
            channel: info.layout.fault_channel.map(ParamSlot::range),
            static_shared: code.static_shared,
            stack_bytes: USUAL_STACK.max(code.stack_bytes as usize),
        })
    }

    /// Whether blocks wait for all others of the grid.
    pub(super) fn waits_for_grid(&self) -> bool {
        self.sites
            .iter()
            .any(|site| site.operation == Operation::Grid)
    }

    /// Runs all blocks of a grid in order.
    ///
    /// # Errors
    /// What ends the launch.
    ///
    /// # Safety
    /// The parameters are laid out as the kernel's layout says, and the kernel accesses no memory
    /// through them but what is valid for that and accessed by nobody else meanwhile.
    pub(super) unsafe fn run(
        &self,
        launch: &OnHostLaunch<'_>,
        memory: &BlockMemory,
    ) -> Result<Option<FaultRecord>> {
        let held = &mut *memory.held.lock();
        let failed = |what| self.failed(launch, what);
        let wanted = self.shared_bytes(launch).map_err(failed)?;
        let mut record = FaultRecord::default();
        let mut channel = FaultChannel {
            record: (&raw mut record).expose_provenance() as u64,
            ..FaultChannel::default()
        };
        let address = (&raw mut channel).expose_provenance() as u64;
        let params = self.param_block(launch.params, address);
        // SAFETY: `codegen::gpu::on_host` has made it with this signature.
        let entry = unsafe { std::mem::transmute::<*const u8, ThreadFn>(self.object.entry()) };
        let mut larger = Vec::new();
        let stacks = match self.stack_bytes {
            USUAL_STACK => &mut held.stacks,
            _ => &mut larger,
        };
        let run = |block| BlockRun {
            entry,
            sites: &self.sites,
            params: params.as_ptr().cast(),
            stack_bytes: self.stack_bytes,
            dynamic_shared: launch.dynamic_shared,
            first: launch.first_of(block),
        };
        let mut grid = Grid {
            kernel: &self.name,
            // The memory is held, and threads of one block run at a time.
            shared: (held.shared.start(), wanted as usize),
            stacks,
            chooser: Chooser::new(launch.schedule),
            waiting: Vec::new(),
        };
        // SAFETY: the caller's promise; the parameter block and the channel outlive the threads.
        let start = |block, stacks: &mut _| unsafe { block::start(&run(block), stacks) };
        let ran = grid.run(blocks(launch.grid), start);
        grid.stop();
        // SAFETY: both are alive; the kernel has written them through their addresses.
        let record = unsafe {
            let record = (&raw const record).read_volatile();
            (record.state == 1).then_some(record)
        };
        match ran {
            // The thread that ended early may be what others wait for.
            Err(Failed::Deserted(_)) if record.is_some() => Ok(record),
            Err(error) => Err(failed(error.text())),
            Ok(()) => Ok(record),
        }
    }

    /// The error of a launch that did not come to its end.
    fn failed(&self, launch: &OnHostLaunch<'_>, what: String) -> DeviceError {
        DeviceError::OnHost(OnHostError {
            kernel: self.name.clone(),
            sm: launch.sm,
            what,
            schedule: launch.schedule,
        })
    }

    /// The shared memory of a block of a launch, in bytes.
    fn shared_bytes(&self, launch: &OnHostLaunch<'_>) -> Result<u64, String> {
        let wanted = self.static_shared + u64::from(launch.dynamic_shared);
        match wanted > SHARED_BYTES.into() {
            true => Err(format!(
                "{wanted} bytes of shared memory, of which a block has {SHARED_BYTES}"
            )),
            false => Ok(wanted),
        }
    }

    /// The parameters at an address that is aligned for all of them, with that of the fault channel.
    fn param_block(&self, params: &[u8], channel: u64) -> Vec<u128> {
        let mut bytes = params.to_vec();
        if let Some(slot) = self.channel.clone() {
            bytes.resize(bytes.len().max(slot.end), 0);
            bytes[slot].copy_from_slice(&channel.to_ne_bytes());
        }
        let word = |bytes: &[u8]| {
            let mut word = [0; size_of::<u128>()];
            word[..bytes.len()].copy_from_slice(bytes);
            u128::from_ne_bytes(word)
        };
        bytes.chunks(size_of::<u128>()).map(word).collect()
    }
}

/// What keeps a launch from its end.
enum Failed {
    Block(String),
    Deserted(DesertedGrid),
}

impl Failed {
    fn text(self) -> String {
        match self {
            Failed::Block(what) => what,
            Failed::Deserted(deserted) => deserted.to_string(),
        }
    }
}

/// Blocks that run in turn, each to its end or to where it waits for all others.
struct Grid<'a> {
    kernel: &'a str,
    /// Where shared memory is, and how many bytes the block that runs has of it.
    shared: (*mut u8, usize),
    stacks: &'a mut Vec<DefaultStack>,
    chooser: Chooser,
    /// Blocks that wait, with what is in their shared memory.
    waiting: Vec<(Block, Vec<u8>)>,
}

impl Grid<'_> {
    fn run(
        &mut self,
        blocks: impl Iterator<Item = [u32; 3]>,
        start: impl Fn([u32; 3], &mut Vec<DefaultStack>) -> Result<Block, String>,
    ) -> Result<(), Failed> {
        let mut total = 0;
        for block in blocks {
            let (shared, bytes) = self.shared;
            // SAFETY: no block runs; the memory is as long.
            unsafe { shared.write_bytes(GARBAGE, bytes) };
            total += 1;
            let block = start(block, self.stacks).map_err(Failed::Block)?;
            self.go_on(block).map_err(Failed::Block)?;
        }
        while !self.waiting.is_empty() {
            let waiting = self.waiting.len() as u64;
            if waiting != total {
                return Err(Failed::Deserted(DesertedGrid {
                    kernel: self.kernel.to_owned(),
                    waiting,
                    blocks: total,
                }));
            }
            let mut all = std::mem::take(&mut self.waiting).into_iter();
            let mut ran = Ok(());
            while let (Ok(()), Some((block, bytes))) = (&ran, all.next()) {
                // SAFETY: no block runs; the memory is as long as when the bytes were read.
                unsafe { (self.shared.0).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                ran = self.go_on(block);
            }
            self.waiting.extend(all);
            ran.map_err(Failed::Block)?;
        }
        Ok(())
    }

    fn go_on(&mut self, mut block: Block) -> Result<(), String> {
        let reached = block.go_on(&mut self.chooser);
        if let Ok(Reached::Grid) = reached {
            let (shared, bytes) = self.shared;
            let mut copy = vec![0; bytes];
            // SAFETY: no block runs; the memory is as long.
            unsafe { shared.copy_to_nonoverlapping(copy.as_mut_ptr(), bytes) };
            self.waiting.push((block, copy));
            return Ok(());
        }
        block.stop(self.stacks);
        reached.map(drop)
    }

    /// Stops what still waits.
    fn stop(self) {
        for (block, _) in self.waiting {
            block.stop(self.stacks);
        }
    }
}

/// The blocks of a grid, x fastest.
fn blocks([width, height, depth]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..depth).flat_map(move |z| (0..height).flat_map(move |y| (0..width).map(move |x| [x, y, z])))
}
