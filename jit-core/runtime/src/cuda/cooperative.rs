//! Launches whose blocks are all there at the same time (CUDA C++ Programming Guide, "Cooperative Groups"), and how many
//! blocks that can be ("Occupancy Calculator"). The driver takes their parameters by a pointer each.

use std::ffi::{c_int, c_void};

use kiln_ir::abi::LaunchArgs;
use kiln_ir::launch::LaunchConfig;
use smallvec::SmallVec;

use super::context::CudaContext;
use super::error::DriverError;
use super::module::CudaFunction;
use super::stream::StreamHandle;

impl CudaContext {
    /// [`CudaContext::launch`] of all blocks at the same time.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn launch_cooperative(
        &self,
        function: &CudaFunction,
        config: &LaunchConfig,
        stream: StreamHandle,
        args: &mut LaunchArgs<'_>,
    ) -> Result<(), DriverError> {
        let slots = &args.layout().slots;
        let start: *mut c_void = args.bytes_mut().as_mut_ptr().cast();
        let pointer = |offset: u32| start.wrapping_byte_add(offset as usize);
        let mut pointers: SmallVec<[*mut c_void; 32]> =
            slots.iter().map(|slot| pointer(slot.offset)).collect();
        let (grid, block) = (config.grid, config.block);
        let table = self.enter_for(function)?;
        // SAFETY: the context is current and the function loaded; the rest is the caller's promise. The driver copies
        // what the pointers are to before it returns.
        let code = unsafe {
            (table.cuLaunchCooperativeKernel)(
                function.handle,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                config.shared_bytes,
                stream.0,
                pointers.as_mut_ptr(),
            )
        };
        let call = "cuLaunchCooperativeKernel";
        self.launched(call, function, code, config)
    }
}

impl CudaFunction {
    /// The number of threads of a block, at most so many, of which a multiprocessor holds the most threads.
    ///
    /// # Errors
    /// [`DriverError::Other`] or [`DriverError::Poisoned`].
    pub(crate) fn best_block(&self, shared_bytes: u32, most: u32) -> Result<u32, DriverError> {
        let context = self.context();
        let table = context.enter()?;
        let ask = table.cuOccupancyMaxPotentialBlockSize;
        let (mut grid, mut block): (c_int, c_int) = (0, 0);
        let most = c_int::try_from(most).unwrap_or(c_int::MAX);
        // SAFETY: the function is of a loaded module; the results outlive the call; no function says how much shared
        // memory a block of a size has, as all have the same.
        let code = unsafe {
            ask(
                &mut grid,
                &mut block,
                self.handle,
                None,
                shared_bytes as usize,
                most,
            )
        };
        context.check("cuOccupancyMaxPotentialBlockSize", code)?;
        Ok(u32::try_from(block).unwrap_or(0).max(1))
    }
}
