//! Graphs: work of a device that is described once and handed to it again and again.
//!
//! A graph is a list of steps, each with those before it that it comes after; steps between which nothing is said may
//! run at the same time. What changes from one replay to the next is written into a step before it is launched.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use kiln_ir::abi::{LaunchArgs, ParamSlot};
use kiln_ir::code::KernelInfo;
use kiln_ir::launch::LaunchConfig;

use crate::device::{Device, LoadedCode};
use crate::error::Result;
use crate::order::OrderedStream;
use crate::stream::BackendStream;

/// What a step of a graph does.
pub enum Step<'a> {
    /// A launch.
    Launch {
        /// The code.
        code: &'a dyn LoadedCode,
        /// The kernel.
        kernel: &'a Arc<KernelInfo>,
        /// The shape.
        config: &'a LaunchConfig,
        /// What is passed, as the kernel's layout has it. The device fills in the fault channel.
        block: &'a [u8],
    },
    /// A copy between memory of the device; the ranges do not overlap.
    Memcpy {
        /// Where to.
        to: u64,
        /// Where from.
        from: u64,
        /// How much, which is not 0.
        bytes: usize,
    },
    /// A fill.
    Fill {
        /// Where to.
        to: u64,
        /// What is repeated: 1, 2 or 4 bytes.
        value: &'a [u8],
        /// How much, a multiple of that and not 0.
        bytes: usize,
    },
}

/// A graph that a device has made ready.
pub trait BackendGraph: Send + Sync {
    /// Begins to change steps: what a device does for its thread is done once, before all of them.
    ///
    /// # Errors
    /// A device that has failed.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    /// What a step passes that is a launch, as the kernel's layout has it, to be written in place; `None` of any other step.
    /// The device's own part of it stays. Launches of the graph see it once it was [set](BackendGraph::set_blocks).
    fn block_mut(&mut self, at: usize) -> Option<&mut [u8]>;

    /// Writes a number to the blocks of launches, to each step's slot, which is of 8 bytes at most:
    /// [`BackendGraph::block_mut`] for all of them, as one number may be passed to thousands.
    ///
    /// # Errors
    /// A step that is no launch.
    fn write_numbers(&mut self, places: &[(usize, ParamSlot)], number: u64) -> Result<()>;

    /// Has launches of the graph from now on pass what [`BackendGraph::block_mut`] of these steps has, behind
    /// [`BackendGraph::begin`]. Those that were made before are as they were. It begins with the last step, takes away each
    /// that is set, and leaves off at one that is no launch.
    ///
    /// # Errors
    /// A device that has failed, on a step that is not taken away.
    fn set_blocks(&mut self, steps: &mut Vec<usize>) -> Result<()>;

    /// Changes the ranges of a copy or a fill, behind [`BackendGraph::begin`]. Launches that were made before are as they
    /// were.
    ///
    /// # Errors
    /// A device that has failed.
    fn set(&mut self, at: usize, step: &Step<'_>) -> Result<()>;

    /// Hands the graph to a stream; `None` is the device's own.
    ///
    /// # Errors
    /// A device that has failed.
    fn launch(&mut self, stream: Option<&dyn BackendStream>, limit: Option<Duration>)
    -> Result<()>;
}

/// Bytes of a value that is repeated before it is copied on.
const REPEATED: usize = 4096;

impl Device {
    /// Does a step at once, in a stream: what a graph is on a device that has none.
    ///
    /// # Errors
    /// What the step's own call gives.
    pub fn take_step(
        &self,
        stream: &OrderedStream,
        step: &Step<'_>,
        limit: Option<Duration>,
    ) -> Result<()> {
        let backend = self.backend();
        match *step {
            Step::Launch {
                code,
                kernel,
                config,
                block,
            } => {
                let mut block: smallvec::SmallVec<[u8; 256]> = block.into();
                let layout = &kernel.layout;
                let Some(mut args) = LaunchArgs::in_zeros(layout, &mut block) else {
                    return Err(crate::DeviceError::Internal(
                        "a step of a graph has a block that is too small",
                    ));
                };
                match stream.work() {
                    Some(work) => work.launch(code, kernel, config, &mut args, limit),
                    None => backend.launch(code, kernel, config, &mut args, limit),
                }
            }
            Step::Memcpy { to, from, bytes } => match stream.work() {
                Some(work) => work.copy(to, from, bytes),
                None => backend.copy(to, from, bytes),
            },
            Step::Fill { to, value, bytes } => self.fill_in(stream, to, value, bytes),
        }
    }

    /// Fills memory: a part from the host, which is copied on.
    fn fill_in(&self, stream: &OrderedStream, to: u64, value: &[u8], bytes: usize) -> Result<()> {
        let first = bytes.min(REPEATED);
        let repeated = value.iter().cycle().take(first).copied();
        let repeated: Vec<_> = repeated.map(MaybeUninit::new).collect();
        match stream.work() {
            Some(work) => work.upload(to, &repeated)?,
            None => self.backend().upload(to, &repeated)?,
        }
        let mut done = first;
        while done > 0 && done < bytes {
            let count = done.min(bytes - done);
            match stream.work() {
                Some(work) => work.copy(to + done as u64, to, count)?,
                None => self.backend().copy(to + done as u64, to, count)?,
            }
            done += count;
        }
        Ok(())
    }
}
