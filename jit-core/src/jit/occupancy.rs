//! How many blocks a device holds at once: the block that `launch_auto` takes, and launches that need all of theirs.

use super::{Jit, Prepared};
use crate::cache::Specialized;
use kiln_compiler::args::{Arg, Converted};
use kiln_compiler::code::KernelInfo;
use kiln_compiler::error::Result;
use kiln_compiler::front::AsKernel;
use kiln_compiler::launch::{Dim3, LaunchConfig, LaunchError, grid_for};
use kiln_compiler::runtime::{LoadedCode, Occupancy};

/// Threads of a block where the device has no best number: a CPU, on which a block runs on one thread of the host.
const ANY_BLOCK: u32 = 256;

impl Jit {
    /// Launches a kernel of one dimension that has a thread for each of so many elements. The device says which block it
    /// holds the most threads of, as the kernel's registers and shared memory allow and its launch bounds promise; on a
    /// CPU a block has 256 threads or what the bounds allow. That is asked once for a specialized kernel. The last block
    /// has threads that are beyond the elements, so the kernel compares.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[kernel]
    /// fn double(x: &mut [f32]) {
    ///     let i = global_id().x;
    ///     if i < x.len() {
    ///         x[i] *= 2.0;
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[1.0f32; 1000])?;
    /// jit.launch_auto(&double, 1000, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [2.0; 1000]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Jit::launch`]; more elements than a grid has threads.
    pub fn launch_auto(
        &self,
        kernel: &(impl AsKernel + ?Sized),
        elements: usize,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let kernel = kernel.as_kernel()?;
        let converted = self.convert(&|| kernel.name(), args)?;
        let args = converted.as_ref().map_or(args, Converted::args);
        let specialized = self.prepare(kernel, args)?;
        let block = self.best_block(&specialized)?;
        let config = LaunchConfig::new(grid_for(elements, block), block);
        if let Some(loaded) = specialized.find(config.block) {
            return self.launch_first(&loaded, &config, args);
        }
        let loaded = self.code_for(&specialized, &config)?;
        self.launch_first(&loaded, &config, args)
    }

    /// The number of threads of a block that `launch_auto` takes.
    fn best_block(&self, specialized: &Specialized) -> Result<u32> {
        let info = specialized.info();
        let best = specialized.best_block.get_or_try_init(|| {
            let promised = info
                .launch_bounds
                .map_or(u32::MAX, |bounds| bounds.max_threads);
            let most = promised
                .min(self.0.limits.block_threads)
                .min(self.0.limits.block[0]);
            let any = ANY_BLOCK.min(most);
            if specialized.is_by_block() {
                return Ok(any);
            }
            let loaded = self.code_for(specialized, &LaunchConfig::new(1, 1).cooperative())?;
            let best = self.0.device.backend().best_block(loaded.code(), 0, most)?;
            Ok(best.unwrap_or(any))
        });
        best.copied()
    }

    /// How many blocks of a launch the device holds at once.
    fn occupancy_of(&self, code: &dyn LoadedCode, config: &LaunchConfig) -> Result<Occupancy> {
        let threads = u32::try_from(config.block.count()).unwrap_or(u32::MAX);
        let backend = self.0.device.backend();
        Ok(backend.occupancy(code, threads, config.shared_bytes)?)
    }

    /// Refuses a cooperative launch of more blocks than the device holds at once.
    #[cold]
    pub(super) fn check_all_at_once(
        &self,
        info: &KernelInfo,
        code: &dyn LoadedCode,
        config: &LaunchConfig,
    ) -> Result<()> {
        let occupancy = self.occupancy_of(code, config)?;
        let (blocks, fitting) = (config.grid.count(), occupancy.all_blocks());
        if blocks <= u128::from(fitting) {
            return Ok(());
        }
        Err(LaunchError::NotAllAtOnce {
            kernel: info.name.clone(),
            device: self.0.device.info().name.clone(),
            blocks,
            fitting,
            threads: config.block.count(),
            shared_bytes: config.shared_bytes,
            each: occupancy.blocks,
            multiprocessors: occupancy.multiprocessors,
        }
        .into())
    }
}

impl Prepared {
    /// The number of threads of a block that [`Jit::launch_auto`] takes for the kernel.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[kernel]
    /// fn double(x: &mut [f32]) {
    ///     let i = global_id().x;
    ///     if i < x.len() {
    ///         x[i] *= 2.0;
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[1.0f32; 1000])?;
    /// let ready = jit.compile(&double, args!(&mut x))?;
    /// let block = ready.best_block()?;
    /// let occupancy = ready.occupancy(block, 0)?;
    /// println!("{} blocks of {block} threads at once", occupancy.all_blocks());
    /// // All of these are there at the same time, so that they can wait for each other.
    /// let grid = occupancy.all_blocks().min(4);
    /// ready.launch_with(LaunchConfig::new(grid, block).cooperative(), args!(&mut x))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A device that has failed.
    pub fn best_block(&self) -> Result<u32> {
        self.jit.best_block(&self.specialized)
    }

    /// How many blocks of a shape, with so much dynamic shared memory, the device holds at once.
    ///
    /// # Errors
    /// A block that the device does not have; code that cannot be compiled; a device that has failed.
    pub fn occupancy(&self, block: impl Into<Dim3>, shared_bytes: u32) -> Result<Occupancy> {
        let config = LaunchConfig::new(1, block)
            .shared_bytes(shared_bytes)
            .cooperative();
        let loaded = self.jit.code_for(&self.specialized, &config)?;
        self.jit.occupancy_of(loaded.code(), &config)
    }
}
