//! The `Jit`: a device, its hooks and options, and the kernels compiled for it.
//!
//! ```text
//! let jit = Jit::new()?;
//! let x = jit.upload(&vec![1.0f32; n])?;
//! let mut y = jit.upload(&vec![2.0f32; n])?;
//! jit.launch(&saxpy, grid_for(n, 256), 256, args!(3.0f32, &x, &mut y))?;
//! ```

mod builder;
mod foreign;
mod graph;
mod hidden;
mod kept;
#[cfg(test)]
mod key_tests;
mod load;
mod occupancy;
mod options;
mod overlaid;
mod packed;
mod prepared;
mod printed;
mod sharing;
mod stream;
mod submit;
mod usual;

use std::sync::Arc;

use crate::cache::disk::Disk;
use crate::cache::{
    CacheStats, Consts, DiskCache, KeptSignatures, KernelCache, ReadyLaunch, RecompileReport,
    Specialized,
};
use crate::inspect::{Inspection, Recorder};
pub use builder::JitBuilder;
pub use foreign::ForeignFunction;
pub use graph::{Graph, Recording};
use kiln_compiler::args::packed::PackedKey;
use kiln_compiler::args::{Arg, Converted};
use kiln_compiler::build::Kernel;
use kiln_compiler::error::Result;
use kiln_compiler::front::AsKernel;
use kiln_compiler::hook::{HookPoint, HookSet};
use kiln_compiler::launch::{Dim3, LaunchConfig, LaunchLimits, check_block};
use kiln_compiler::pinned::Pinned;
pub use kiln_compiler::runtime::Global;
use kiln_compiler::runtime::{Buffer, Device, DeviceCode, DeviceId, Event, GlobalArray, Globals};
use kiln_compiler::target::Target;
use kiln_compiler::under_way::Made;
use kiln_compiler::value::KernelType;
use load::{identity, type_forms, with_consts};
pub use options::JitOptions;
use overlaid::Overlaid;
pub use prepared::Prepared;
use printed::Output;
pub use printed::{PrintListener, Printed};
pub use stream::Stream;
use stream::Taken;

/// Compiles and launches kernels on one device. Clones share everything; any thread may use them.
///
/// Launches go to the device's own stream, one after the other; [`Jit::stream`] gives others, whose launches go on
/// beside.
///
/// ```
/// use kiln::prelude::*;
///
/// #[kernel]
/// fn scale(x: &mut [f32], by: f32) {
///     let i = global_id().x;
///     if i < x.len() {
///         x[i] *= by;
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let mut x = jit.upload(&[1.0f32, 2.0])?;
/// let mut zeros = jit.zeros::<f32>(1000)?;
/// let start = jit.record()?;
/// jit.launch(&scale, 1, 32, args!(&mut x, 3.0f32))?;
/// jit.launch(&scale, grid_for(1000, 256), 256, args!(&mut zeros, 3.0f32))?;
/// println!("{} ms on {:?}", start.elapsed_ms(&jit.record()?)?, jit.device());
/// jit.synchronize()?; // what went wrong on the device is told here, or where a buffer is read
/// assert_eq!(x.to_vec()?, [3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Jit(Arc<State>, Option<Arc<Taken>>);

struct State {
    device: Device,
    /// Of the device, which tells them through its backend.
    id: DeviceId,
    limits: LaunchLimits,
    hooks: HookSet,
    observes_launches: bool,
    /// Whether launches may pass blocks that were written before their kernel was looked up.
    takes_packed: bool,
    /// `None` where hooks put no function in the place of another.
    overlaid: Option<Overlaid>,
    options: JitOptions,
    target: Target,
    cache: KernelCache,
    /// What decides code besides its key and its rows; `None` where it is not shared.
    sharing: Option<String>,
    disk: Disk,
    globals: Globals,
    output: Arc<Output>,
}

impl std::fmt::Debug for Jit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Jit({:?}, hooks {:?})", self.0.device, self.0.hooks)
    }
}

impl Jit {
    /// A `Jit` for a device with these hooks and options.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), JitOptions::default());
    /// assert_eq!(jit.hooks().iter().count(), kiln::hooks::standard().iter().count());
    /// assert_eq!(jit.options().time_limit, None);
    /// println!("compiles for {:?}", jit.target());
    /// # Ok(())
    /// # }
    /// ```
    pub fn with(device: Device, hooks: HookSet, options: JitOptions) -> Jit {
        let target = options.target.clone().unwrap_or_else(|| {
            if options.checks.is_none() {
                device.info().target.clone()
            } else {
                Target::Interpreter
            }
        });
        if let Some(listener) = &options.on_fault {
            device.on_fault(Arc::downgrade(listener));
        }
        let observes_launches = hooks.has(&[HookPoint::BeforeLaunch, HookPoint::AfterLaunch]);
        let overlaid = Overlaid::of(&hooks, &target);
        let takes_packed = !observes_launches
            && overlaid.is_none()
            && !options.specialize_facts
            && device.code() != DeviceCode::NONE;
        let cache = KernelCache::bounded(options.memory_bound);
        let sharing = sharing::sharing(&options, &hooks, &target);
        let disk = kept::disk(&options, &hooks, &target);
        let (id, limits) = (device.info().id, device.info().limits.clone());
        let output = Output::new(&device, options.on_print.clone());
        let state = State {
            device,
            id,
            limits,
            hooks,
            observes_launches,
            takes_packed,
            overlaid,
            options,
            target,
            cache,
            sharing,
            disk,
            globals: Globals::default(),
            output,
        };
        Jit(Arc::new(state), None)
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The hooks, in order.
    pub fn hooks(&self) -> &HookSet {
        &self.0.hooks
    }

    /// The settings it was made with.
    pub fn options(&self) -> &JitOptions {
        &self.0.options
    }

    /// What code is compiled for.
    pub fn target(&self) -> &Target {
        &self.0.target
    }

    /// A buffer on the device holding a copy of `values`.
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub fn upload<T: KernelType>(&self, values: &[T]) -> Result<Buffer<T>> {
        Buffer::from_slice_in(&self.0.device, self.order(), values)
    }

    /// A buffer of `len` zeros on the device.
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub fn zeros<T: KernelType>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::zeros_in(&self.0.device, self.order(), len)
    }

    /// A copy of `values` in memory of the host that copies can have while the host goes on.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let mut x = jit.zeros::<f32>(2)?;
    /// let written = x.write_later(jit.pinned(&[1.0, 2.0])?)?;
    /// // .. the host does something else ..
    /// let values = x.read_later(written.wait()?)?.wait()?;
    /// assert_eq!(*values, [1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub fn pinned<T: KernelType>(&self, values: &[T]) -> Result<Pinned<T>> {
        Pinned::from_slice(&self.0.device, values)
    }

    /// A buffer of `len` elements on the device that nobody has written.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// // SAFETY: every element is written before one is read.
    /// let mut x = unsafe { jit.uninit::<f32>(1000)? };
    /// x.fill(2.5)?;
    /// assert_eq!(x.to_vec()?, [2.5; 1000]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// As [`Buffer::uninit`].
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub unsafe fn uninit<T: KernelType>(&self, len: usize) -> Result<Buffer<T>> {
        // SAFETY: passed on to the caller.
        unsafe { Buffer::uninit_in(&self.0.device, self.order(), len) }
    }

    /// A buffer of `len` elements on the device whose values are not specified, for kernels that write all of them.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[kernel]
    /// fn number(out: &mut [u32]) {
    ///     let i = global_id().x;
    ///     if i < out.len() {
    ///         out[i] = i as u32;
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let mut x: Buffer<u32> = jit.unspecified(1000)?; // nothing is cleared first
    /// number.launch(&jit, (grid_for(1000, 256), 256), &mut x)?;
    /// assert_eq!(x.to_vec()?[999], 999);
    /// let y = Buffer::<bool>::unspecified(jit.device(), 3)?;
    /// assert_eq!(y.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Buffer::unspecified`].
    pub fn unspecified<T: KernelType>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::unspecified_in(&self.0.device, self.order(), len)
    }

    /// The global of a name, by which kernels of this `Jit` share memory
    /// ([`KernelBuilder::global`](kiln_compiler::build::KernelBuilder::global)), as an array of `T`.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let count = Kernel::build("count", |k| {
    ///     k.global("launches", &[0u32, 7]).at(0).atomic_add(1);
    /// })?;
    /// let jit = Jit::new()?;
    /// for _ in 0..3 {
    ///     jit.launch(&count, 1, 1, args!())?;
    /// }
    /// let launches = jit.global::<u32>("launches")?;
    /// assert_eq!((launches.len(), launches.is_empty()), (2, false));
    /// assert_eq!(launches.to_vec()?, [3, 7]);
    /// launches.write(&[0])?;
    /// assert_eq!(launches.to_vec()?, [0, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No kernel that has it was launched here, or it is of another type.
    pub fn global<T: KernelType>(&self, name: &str) -> Result<Global<T>> {
        self.0.globals.find(name)
    }

    /// The array that `kiln::global!` declares: the memory of this `Jit`, made now if no kernel has had it.
    #[doc(hidden)]
    pub fn declared_global<T: KernelType, const N: usize>(
        &self,
        array: &GlobalArray<T, N>,
    ) -> Result<Global<T>> {
        self.0.globals.declared(&self.0.device, array)
    }

    /// Marks the current end of the stream's work; two events give the time between them.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn record(&self) -> Result<Event> {
        Event::record_in(&self.0.device, self.order())
    }

    /// Waits until everything launched is done, in all streams of the device.
    ///
    /// # Errors
    /// A fault that a kernel left, or a device that has failed. It speaks for all threads: a fault is
    /// told once, by this, by [`Stream::synchronize`] or where a buffer is read that the launch was given, and the
    /// first one is told for all that were left.
    pub fn synchronize(&self) -> Result<()> {
        Ok(self.0.device.synchronize()?)
    }

    /// Ends all launches on the device that have been made and have not ended; any thread may call
    /// it, while others launch or wait. What is launched later runs as usual.
    ///
    /// The threads of a launch end where they are, and its buffers hold what they wrote until then.
    /// [`LaunchStopped::Cancelled`](kiln_compiler::launch::LaunchStopped) comes back from the launch itself if
    /// it has not returned, else from the next call that waits. A thread sees the call at the next turn
    /// of a loop; where the innermost loop counts with 32 bits, after that loop.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// #[kernel]
    /// fn forever(x: &mut [u32]) {
    ///     while x[0] < 10 {
    ///         x[1] += 1;
    ///         x[0] = x[1] % 5;
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::on(Device::cpu());
    /// let mut x = jit.zeros::<u32>(2)?;
    /// let ended = AtomicBool::new(false);
    /// let stopped = std::thread::scope(|scope| {
    ///     // Again and again, since a launch that is made after a call is not ended by it.
    ///     scope.spawn(|| {
    ///         while !ended.load(Ordering::Relaxed) {
    ///             jit.cancel().expect("a CPU can");
    ///         }
    ///     });
    ///     let launched = jit.launch(&forever, 1, 1, args!(&mut x));
    ///     let stopped = launched.and_then(|()| jit.synchronize());
    ///     ended.store(true, Ordering::Relaxed);
    ///     stopped
    /// });
    /// assert!(stopped.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The device cannot end launches: a GPU.
    pub fn cancel(&self) -> Result<()> {
        Ok(self.0.device.backend().cancel()?)
    }

    /// A `Jit` with the hooks and options of this one on its device begun anew, which works again after an error that
    /// lasts: a CUDA device whose context is unusable, since a kernel accessed what it must not (unchecked, or through
    /// a pointer) or failed otherwise.
    ///
    /// Everything that was made on the device is lost, by whichever `Jit`: buffers, prepared kernels, streams, events,
    /// copies under way. Each use of it is an error that says so, also as an argument of the new `Jit`, and dropping
    /// it does nothing. Another `Jit` of the lost device gives by its `reset` one on the same new device.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let mut jit = Jit::new()?;
    /// if let Err(error) = jit.synchronize() {
    ///     eprintln!("{error}");
    ///     // SAFETY: nothing else in this program uses the device.
    ///     jit = unsafe { jit.reset()? };
    /// }
    /// let x = jit.upload(&[1.0f32, 2.0])?;
    /// # drop(x);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// Nothing else uses the device's primary context meanwhile: no other thread is in a call to this device, and no
    /// other code in the process (cudarc, cust, a CUDA library) has anything in it. [`Pinned`] memory of the device is
    /// neither read nor written any more.
    ///
    /// # Errors
    /// A device without errors that last: a CPU. A context that was adopted, which whoever made it ends. A driver that
    /// does not reset the device, or whose device stays unusable; then only another process can use it.
    pub unsafe fn reset(&self) -> Result<Jit> {
        // SAFETY: passed on to the caller.
        let device = unsafe { self.0.device.reset()? };
        Ok(Jit::with(
            device,
            self.0.hooks.clone(),
            self.0.options.clone(),
        ))
    }

    /// Launches a kernel: specializes and compiles it if it was not launched with such arguments
    /// before. On a GPU this returns before the kernel ends; faults are reported by the next
    /// synchronizing call.
    ///
    /// # Errors
    /// Arguments that do not fit the kernel, a shape the device does not have, a kernel that cannot
    /// be compiled, a device that has failed.
    pub fn launch(
        &self,
        kernel: &(impl AsKernel + ?Sized),
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        args: &[Arg<'_>],
    ) -> Result<()> {
        self.launch_with(kernel, LaunchConfig::new(grid, block), args)
    }

    /// [`Jit::launch`] with dynamic shared memory.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[kernel]
    /// fn reverse(x: &mut [f32]) {
    ///     let (i, tile) = (thread_idx().x, dynamic_shared::<f32>());
    ///     tile[i] = x[i];
    ///     barrier();
    ///     x[i] = tile[x.len() - 1 - i];
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[1.0f32, 2.0, 3.0])?;
    /// jit.launch_with(&reverse, LaunchConfig::new(1, 3).shared_bytes(12), args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [3.0, 2.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Jit::launch`].
    pub fn launch_with(
        &self,
        kernel: &(impl AsKernel + ?Sized),
        config: LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        self.launch_kernel(kernel.as_kernel()?, &[], config, args)
    }

    /// Launches a kernel, one without const arguments of its own if there are any here.
    #[inline]
    pub(crate) fn launch_kernel(
        &self,
        kernel: &Kernel,
        consts: &[(&str, i128)],
        config: LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        self.launch_keyed(kernel, consts, &config, None, args)
    }

    /// [`Jit::launch_kernel`] of arguments whose types may have a key.
    #[inline(never)]
    fn launch_keyed(
        &self,
        kernel: &Kernel,
        consts: &[(&str, i128)],
        config: &LaunchConfig,
        key: Option<PackedKey>,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let consts = match consts {
            [] => Consts::Bound(kernel.consts()),
            // It has those besides that it was given before: together they are another kernel's.
            given if !kernel.consts().is_empty() => {
                return self.launch_kernel(&with_consts(kernel, given), &[], *config, args);
            }
            given => Consts::Given(given),
        };
        // What was launched before has no argument that is to be converted.
        if self.0.overlaid.is_none()
            && let Some((hit, passing)) = self.0.cache.ready(&ReadyLaunch {
                content: kernel.content()?,
                consts,
                args,
                facts: self.0.options.specialize_facts,
                block: Some(config.block),
            })
        {
            if let Some(key) = key {
                hit.note_key(key);
            }
            return self.launch_loaded(&hit.loaded, config, passing, args);
        }
        self.launch_again(kernel, consts, config, key, args)
    }

    /// The launch of what this thread has not launched before, and of what is converted.
    #[cold]
    fn launch_again(
        &self,
        kernel: &Kernel,
        consts: Consts<'_>,
        config: &LaunchConfig,
        key: Option<PackedKey>,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let Some(converted) = self.convert(&|| kernel.name(), args)? else {
            let loaded = self.loaded(kernel, consts, config, args)?;
            return self.launch_first(&loaded, config, args);
        };
        let args = converted.args();
        if let Some(launch) = self.ready_launch(kernel, consts, Some(config.block), args)?
            && let Some((hit, _)) = self.0.cache.ready(&launch)
        {
            if let Some(key) = key {
                hit.note_key(key);
            }
            return self.launch_first(&hit.loaded, config, args);
        }
        let loaded = self.loaded(kernel, consts, config, args)?;
        self.launch_first(&loaded, config, args)
    }

    /// Compiles and loads a kernel for arguments of these types, and gives it back ready: its
    /// launches skip the look-up. A later redefinition does not reach it.
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
    /// let mut x = jit.upload(&[1.0f32; 64])?;
    /// let ready = jit.compile(&double, args!(&mut x))?;
    /// ready.launch(2, 32, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [2.0; 64]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Jit::launch`].
    pub fn compile(&self, kernel: &(impl AsKernel + ?Sized), args: &[Arg<'_>]) -> Result<Prepared> {
        let kernel = kernel.as_kernel()?;
        let converted = self.convert(&|| kernel.name(), args)?;
        let args = converted.as_ref().map_or(args, Converted::args);
        let facts = self.0.options.specialize_facts;
        let signature = args.iter().map(|a| a.signature()).collect();
        let specialized = self.prepare(kernel, args)?;
        let looked_up = KeptSignatures::of(args, facts, specialized.info());
        Ok(Prepared {
            jit: self.clone(),
            specialized,
            signature,
            looked_up,
            types: type_forms(args),
        })
    }

    /// What a kernel becomes for arguments of these types, stage by stage. Where code depends on the
    /// shape of blocks, as for a CPU, that is its legal IR; [`Jit::inspect_block`] goes on from there.
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
    /// let mut x = jit.upload(&[1.0f32; 64])?;
    /// assert!(jit.inspect(&double, args!(&mut x))?.ir().contains("kernel @double"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Jit::launch`], as far as compilation goes.
    pub fn inspect(
        &self,
        kernel: &(impl AsKernel + ?Sized),
        args: &[Arg<'_>],
    ) -> Result<Inspection> {
        self.inspect_for(kernel.as_kernel()?, None, args)
    }

    /// What a kernel becomes for arguments of these types and blocks of a shape, stage by stage.
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
    /// let mut x = jit.upload(&[1.0f32; 64])?;
    /// let inspection = jit.inspect_block(&double, 32, args!(&mut x))?;
    /// println!("{}", inspection.llvm().unwrap_or("interpreted"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Jit::inspect`]; a block that the device does not have.
    pub fn inspect_block(
        &self,
        kernel: &(impl AsKernel + ?Sized),
        block: impl Into<Dim3>,
        args: &[Arg<'_>],
    ) -> Result<Inspection> {
        self.inspect_for(kernel.as_kernel()?, Some(block.into()), args)
    }

    fn inspect_for(
        &self,
        kernel: &Kernel,
        block: Option<Dim3>,
        args: &[Arg<'_>],
    ) -> Result<Inspection> {
        if let Some(block) = block {
            check_block(block, &self.0.device.info().limits, &kernel.name())?;
        }
        let converted = self.convert(&|| kernel.name(), args)?;
        let args = converted.as_ref().map_or(args, Converted::args);
        let snapshot = self.snapshot(kernel)?;
        let made = Made::Specialization(snapshot.fingerprint);
        let _under_way = self.begin(made, || kernel.name())?;
        let spec = self.bind(kernel, &snapshot, args)?;
        let key = self.key(kernel, &snapshot, args, &spec);
        let _its_code = self.begin(Made::Code(key.tag()), || kernel.name())?;
        let recorder = Recorder::default();
        let compiler = self.compiler(&recorder);
        let mut job =
            compiler.legalize(self.job(&snapshot, &spec, identity(&snapshot, &spec, &key))?)?;
        if let Some(block) = block {
            job = job.for_block(block.to_array());
        }
        let compiled = match job.target.wants_block() {
            true => None,
            false => Some(self.generate(&job, &recorder)?),
        };
        let launched = self.launched(snapshot.fingerprint, Consts::Bound(kernel.consts()), args);
        let origin = self.0.cache.origin(&launched, block);
        Ok(Inspection::new(recorder, job, compiled, origin))
    }

    /// Why the latest compilation of a kernel was needed: the fields of the cache key that differ
    /// from the most similar earlier compilation. `None` if it was never compiled.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let zero = Kernel::build("zero", |k| {
    ///     let x = k.slice_mut("x", k.type_param("T").num());
    ///     x.at(0).set(0);
    /// })?;
    /// let jit = Jit::new()?;
    /// jit.launch(&zero, 1, 1, args!(&mut jit.upload(&[1.0f32])?))?;
    /// jit.launch(&zero, 1, 1, args!(&mut jit.upload(&[1u64])?))?;
    /// let report = jit.explain_recompile(&zero).expect("it was compiled");
    /// assert_eq!(report.compilations, 2);
    /// println!("{report}"); // the types of its arguments differ
    /// let stats = jit.cache_stats();
    /// assert_eq!((stats.hits, stats.misses), (0, 2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn explain_recompile(&self, kernel: &Kernel) -> Option<RecompileReport> {
        self.0.cache.explain(&kernel.name())
    }

    /// How often the cache was asked, and what it had; [`Jit::explain_recompile`] has an example.
    pub fn cache_stats(&self) -> CacheStats {
        let mut stats = self.0.cache.stats();
        self.0.disk.count(&mut stats);
        stats
    }

    /// Where compiled kernels are kept for later processes, and what about that did not work. Nothing of it fails
    /// a launch.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// match jit.disk_cache().folder {
    ///     Some(folder) => println!("kernels are kept in {}", folder.display()),
    ///     None => println!("kernels are not kept: {:?}", jit.disk_cache().note),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn disk_cache(&self) -> DiskCache {
        self.0.disk.report()
    }

    /// Whether a launch with these arguments would find its kernel ready: the look-up alone, for
    /// measuring it.
    ///
    /// # Errors
    /// A kernel that calls itself.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn look_up(&self, kernel: &Kernel, args: &[Arg<'_>]) -> Result<bool> {
        let consts = Consts::Bound(kernel.consts());
        if let Some(launch) = self.ready_launch(kernel, consts, None, args)?
            && self.0.cache.ready(&launch).is_some()
        {
            return Ok(true);
        }
        let launched = self.launched(self.fingerprint(kernel)?, consts, args);
        Ok(self.0.cache.find(&launched).is_some())
    }

    /// The kernel specialized for arguments of these types, its code loaded where that does not depend
    /// on the shape of blocks.
    fn prepare(&self, kernel: &Kernel, args: &[Arg<'_>]) -> Result<Arc<Specialized>> {
        let consts = Consts::Bound(kernel.consts());
        let launched = self.launched(self.fingerprint(kernel)?, consts, args);
        match self.0.cache.find(&launched) {
            Some(specialized) => Ok(specialized),
            None => self.specialized(kernel, args),
        }
    }
}
