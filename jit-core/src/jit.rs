//! The `Jit`: a device, its hooks and options, and the kernels compiled for it.
//!
//! ```text
//! let jit = Jit::new()?;
//! let x = jit.upload(&vec![1.0f32; n])?;
//! let mut y = jit.upload(&vec![2.0f32; n])?;
//! jit.launch(&saxpy, grid_for(n, 256), 256, args!(3.0f32, &x, &mut y))?;
//! ```

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::abi::{ParamKind, ParamSlot};
use crate::args::{Arg, Payload};
use crate::build::Kernel;
use crate::cache::{CacheKey, CacheStats, KernelCache, LaunchKey, LoadedKernel, RecompileReport};
use crate::checks::Checks;
use crate::compile::{NoObserver, StageObserver, compile, failed};
use crate::definition::{Fingerprint, Snapshot};
use crate::error::{Error, Result};
use crate::front::AsKernel;
use crate::hook::{HookPoint, HookSet, LaunchEvent};
use crate::inspect::Inspection;
use crate::job::{CompileJob, CompileOptions, CompiledKernel};
use crate::launch::{Dim3, LaunchConfig, LaunchError, check_block, check_config};
use crate::runtime::{Buffer, Device, Event};
use crate::specialize::{ParamSpec, Specialization, bind, specialize};
use crate::target::Target;
use crate::value::KernelType;

/// Settings of a [`Jit`].
#[derive(Clone, Default)]
pub struct JitOptions {
    /// Compile options.
    pub compile: CompileOptions,
    /// Whether facts about arguments (16-byte alignment, integers equal to 1 or divisible by 16)
    /// are compiled in. A launch whose arguments have other facts is another specialization.
    pub specialize_facts: bool,
    /// Code for this target instead of what the device reports; for inspecting code of machines
    /// that are not here.
    pub target: Option<Target>,
    /// What launches are checked for, on a CPU device; kernels are then compiled for the
    /// interpreter.
    pub checks: Checks,
    /// How long a launch may run. A CPU device then ends it, with
    /// [`LaunchStopped::TimeLimit`](crate::launch::LaunchStopped), and goes on with the next; time
    /// counts from the launch's first block on. On a GPU it is how long a call waits: that of the
    /// latest launch counts. By default launches may run as long as they like.
    pub time_limit: Option<Duration>,
    /// Looks on while kernels are compiled.
    pub observer: Option<Arc<dyn StageObserver + Send + Sync>>,
}

/// Compiles and launches kernels on one device. Clones share everything; any thread may use them.
#[derive(Clone)]
pub struct Jit(Arc<State>);

struct State {
    device: Device,
    hooks: HookSet,
    observes_launches: bool,
    options: JitOptions,
    target: Target,
    cache: KernelCache,
}

impl std::fmt::Debug for Jit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Jit({:?}, hooks {:?})", self.0.device, self.0.hooks)
    }
}

impl Jit {
    /// A `Jit` for a device with these hooks and options.
    pub fn with(device: Device, hooks: HookSet, options: JitOptions) -> Jit {
        let target = options.target.clone().unwrap_or_else(|| {
            if options.checks.is_none() {
                device.info().target.clone()
            } else {
                Target::Interpreter
            }
        });
        let observes_launches = hooks.iter().any(|h| h.observes_launches());
        let cache = KernelCache::default();
        Jit(Arc::new(State {
            device,
            hooks,
            observes_launches,
            options,
            target,
            cache,
        }))
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
        Buffer::from_slice(&self.0.device, values)
    }

    /// A buffer of `len` zeros on the device.
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub fn zeros<T: KernelType>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::zeros(&self.0.device, len)
    }

    /// Marks the current end of the device's work; two events give the time between them.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn record(&self) -> Result<Event> {
        Event::record(&self.0.device)
    }

    /// Waits until everything launched is done.
    ///
    /// # Errors
    /// A fault that a kernel left, or a device that has failed. It speaks for all threads: a fault is
    /// told once, by this or where a buffer is read that the launch was given, and the first one is
    /// told for all that were left.
    pub fn synchronize(&self) -> Result<()> {
        self.0.device.backend().synchronize()
    }

    /// Ends all launches on the device that have been made and have not ended; any thread may call
    /// it, while others launch or wait. What is launched later runs as usual.
    ///
    /// The threads of a launch end where they are, and its buffers hold what they wrote until then.
    /// [`LaunchStopped::Cancelled`](crate::launch::LaunchStopped) comes back from the launch itself if
    /// it has not returned, else from the next call that waits. A thread sees the call at the next turn
    /// of a loop; where the innermost loop counts with 32 bits, after that loop.
    ///
    /// # Errors
    /// The device cannot end launches: a GPU.
    pub fn cancel(&self) -> Result<()> {
        self.0.device.backend().cancel()
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
    /// # Errors
    /// As [`Jit::launch`].
    pub fn launch_with(
        &self,
        kernel: &(impl AsKernel + ?Sized),
        config: LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        self.launch_kernel(kernel.as_kernel()?, config, args)
    }

    fn launch_kernel(&self, kernel: &Kernel, config: LaunchConfig, args: &[Arg<'_>]) -> Result<()> {
        let converted;
        let args = match self.convert(kernel, args)? {
            None => args,
            Some(list) => {
                converted = list;
                &converted
            }
        };
        let loaded = self.loaded(kernel, args)?;
        self.launch_loaded(&loaded, &config, args)
    }

    /// Compiles and loads a kernel for arguments of these types, and gives it back ready: its
    /// launches skip the look-up. A later redefinition does not reach it.
    ///
    /// # Errors
    /// As [`Jit::launch`].
    pub fn compile(&self, kernel: &(impl AsKernel + ?Sized), args: &[Arg<'_>]) -> Result<Prepared> {
        let kernel = kernel.as_kernel()?;
        let converted = self.convert(kernel, args)?;
        let args = converted.as_deref().unwrap_or(args);
        let signature = args.iter().map(|a| a.signature).collect();
        Ok(Prepared {
            jit: self.clone(),
            loaded: self.loaded(kernel, args)?,
            signature,
            types: type_forms(args),
        })
    }

    /// What a kernel becomes for arguments of these types, stage by stage.
    ///
    /// # Errors
    /// As [`Jit::launch`], as far as compilation goes.
    pub fn inspect(
        &self,
        kernel: &(impl AsKernel + ?Sized),
        args: &[Arg<'_>],
    ) -> Result<Inspection> {
        let kernel = kernel.as_kernel()?;
        let converted = self.convert(kernel, args)?;
        let args = converted.as_deref().unwrap_or(args);
        let snapshot = kernel.snapshot()?;
        let spec = self.bind(kernel, &snapshot, args)?;
        let key = self.key(kernel, &snapshot, args, &spec);
        let observer = crate::inspect::Recorder::default();
        let job = self.job(&snapshot, &spec, key.tag())?;
        let compiled = compile(job, &self.0.hooks, &observer)?;
        Ok(Inspection::new(
            observer,
            compiled,
            key,
            self.0.target.clone(),
        ))
    }

    /// Why the latest compilation of a kernel was needed: the fields of the cache key that differ
    /// from the most similar earlier compilation. `None` if it was never compiled.
    pub fn explain_recompile(&self, kernel: &Kernel) -> Option<RecompileReport> {
        self.0.cache.explain(&kernel.name())
    }

    /// How often the cache was asked, and what it had.
    pub fn cache_stats(&self) -> CacheStats {
        self.0.cache.stats()
    }

    /// Whether a launch with these arguments would find its kernel ready: the look-up alone, for
    /// measuring it.
    ///
    /// # Errors
    /// A kernel that calls itself.
    #[doc(hidden)]
    pub fn look_up(&self, kernel: &Kernel, args: &[Arg<'_>]) -> Result<bool> {
        let key = self.launch_key(kernel, kernel.fingerprint()?, args);
        Ok(self.0.cache.get(&key).is_some())
    }

    fn loaded(&self, kernel: &Kernel, args: &[Arg<'_>]) -> Result<Arc<LoadedKernel>> {
        let key = self.launch_key(kernel, kernel.fingerprint()?, args);
        match self.0.cache.get(&key) {
            Some(loaded) => Ok(loaded),
            None => self.load(kernel, args),
        }
    }

    fn launch_key(&self, kernel: &Kernel, content: Fingerprint, args: &[Arg<'_>]) -> LaunchKey {
        let facts = self.0.options.specialize_facts;
        LaunchKey::new(content, kernel.consts_digest(), args, facts)
    }

    /// The loaded kernel where the look-up found none. The snapshot is taken once, so that key and
    /// code are of one content whatever is redefined meanwhile.
    #[cold]
    fn load(&self, kernel: &Kernel, args: &[Arg<'_>]) -> Result<Arc<LoadedKernel>> {
        let checks = &self.0.options.checks;
        checks.accept(&kernel.name(), self.0.device.info())?;
        let snapshot = &*kernel.snapshot()?;
        let launch_key = self.launch_key(kernel, snapshot.fingerprint, args);
        let spec = self.bind(kernel, snapshot, args)?;
        self.0.cache.get_or_load(launch_key, || {
            let key = self.key(kernel, snapshot, args, &spec);
            let tag = key.tag();
            let compiled = self.0.cache.get_or_compile(&kernel.name(), key, || {
                let job = self.job(snapshot, &spec, tag)?;
                match &self.0.options.observer {
                    Some(observer) => compile(job, &self.0.hooks, observer.as_ref()),
                    None => compile(job, &self.0.hooks, &NoObserver),
                }
            })?;
            self.check_params(&compiled)?;
            let backend = self.0.device.backend();
            let code = if checks.is_none() {
                backend.load(&compiled)?
            } else {
                backend.load_checked(&compiled, checks)?
            };
            Ok(LoadedKernel { compiled, code })
        })
    }

    fn check_params(&self, compiled: &CompiledKernel) -> Result<(), LaunchError> {
        let (given, limit) = (
            compiled.layout.size,
            self.0.device.info().limits.param_bytes,
        );
        if given <= limit {
            return Ok(());
        }
        Err(LaunchError::OverLimit {
            kernel: compiled.name.clone(),
            what: "size of the parameters in bytes",
            given: given.into(),
            limit: limit.into(),
            fix: "pass large values in a buffer",
        })
    }

    fn bind(
        &self,
        kernel: &Kernel,
        snapshot: &Snapshot,
        args: &[Arg<'_>],
    ) -> Result<Specialization> {
        let types: Vec<_> = args.iter().map(Arg::argument_type).collect();
        let facts: Vec<_> = args.iter().map(|a| self.param_spec(a)).collect();
        let body = &snapshot.bodies[0].1;
        let function = &body.module.functions[body.function];
        Ok(bind(
            function,
            &body.module,
            &types,
            kernel.consts(),
            &facts,
        )?)
    }

    /// The facts of an argument that this `Jit` compiles in. A slice passed in safe Rust is
    /// aliased by no other argument, unless both are read-only.
    fn param_spec(&self, arg: &Arg<'_>) -> ParamSpec {
        let facts = arg.signature.facts;
        let mut spec = ParamSpec {
            wide: facts.wide,
            noalias: true,
            ..ParamSpec::default()
        };
        if self.0.options.specialize_facts {
            spec.align = if facts.aligned_16 { 16 } else { 0 };
            spec.divisor = if facts.divisible_by_16 { 16 } else { 0 };
            spec.equal_one = facts.equal_one;
        }
        spec
    }

    /// Everything that decides the code.
    fn key(
        &self,
        kernel: &Kernel,
        snapshot: &Snapshot,
        args: &[Arg<'_>],
        spec: &Specialization,
    ) -> CacheKey {
        CacheKey::default()
            .with("kernel", kernel.name())
            .with("content", snapshot.fingerprint)
            .with("argument types", type_forms(args))
            .with("type arguments", format_args!("{:?}", spec.type_args))
            .with("facts", format_args!("{:?}", spec.params))
            .with("const arguments", format_args!("{:?}", kernel.consts()))
            .with("target", &self.0.target)
            .with("options", format_args!("{:?}", self.0.options.compile))
            .with("hooks", self.0.hooks.fingerprint())
            .with("kiln", env!("CARGO_PKG_VERSION"))
            .with("llvm", crate::codegen::LLVM_VERSION)
    }

    fn job(&self, snapshot: &Snapshot, spec: &Specialization, tag: u64) -> Result<CompileJob> {
        Ok(CompileJob {
            module: specialize(snapshot, spec)?,
            target: self.0.target.clone(),
            options: self.0.options.compile.clone(),
            kernel_tag: tag,
        })
    }

    /// The arguments with host values converted by hooks, if there are any.
    fn convert<'a>(&self, kernel: &Kernel, args: &'a [Arg<'_>]) -> Result<Option<Vec<Arg<'a>>>> {
        if !args.iter().any(|a| matches!(a.payload, Payload::Host(_))) {
            return Ok(None);
        }
        let convert = |(position, arg): (usize, &'a Arg<'_>)| match arg.payload {
            Payload::Host(value) => self.convert_one(kernel, position, value),
            _ => Ok(arg.reborrow()),
        };
        args.iter()
            .enumerate()
            .map(convert)
            .collect::<Result<_>>()
            .map(Some)
    }

    fn convert_one<'a>(
        &self,
        kernel: &Kernel,
        position: usize,
        value: &'a (dyn std::any::Any + Send + Sync),
    ) -> Result<Arg<'a>> {
        let mut converted = None;
        let name = kernel.name();
        self.0
            .hooks
            .run(HookPoint::ConvertArgument, &name, |hook| {
                if converted.is_none() {
                    converted = failed(hook.convert_argument(value))?;
                }
                Ok(())
            })?;
        Ok(converted.ok_or(LaunchError::NoConversion {
            kernel: name,
            position,
        })?)
    }

    fn launch_loaded(
        &self,
        loaded: &LoadedKernel,
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        check_config(config, &self.0.device.info().limits, &loaded.compiled)?;
        if self.0.observes_launches {
            return self.launch_observed(loaded, config, args);
        }
        self.submit(loaded, config, args)
    }

    #[cold]
    fn launch_observed(
        &self,
        loaded: &LoadedKernel,
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let kernel = loaded.compiled.name.as_str();
        let event = LaunchEvent { kernel, config };
        self.0.hooks.run(HookPoint::BeforeLaunch, kernel, |h| {
            failed(h.before_launch(&event))
        })?;
        let result = self.submit(loaded, config, args);
        self.0.hooks.run(HookPoint::AfterLaunch, kernel, |h| {
            h.after_launch(&event, &result);
            Ok(())
        })?;
        result
    }

    /// Packs the parameter block and hands the launch to the device.
    fn submit(&self, loaded: &LoadedKernel, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<()> {
        let compiled = &loaded.compiled;
        let device = self.0.device.info().id;
        let mut params: SmallVec<[MaybeUninit<u8>; 256]> =
            SmallVec::from_elem(MaybeUninit::new(0), compiled.layout.size as usize);
        let mut copies: SmallVec<[Buffer<u8>; 0]> = SmallVec::new();
        for (position, (arg, kind)) in args.iter().zip(&compiled.layout.params).enumerate() {
            if arg.device.is_some_and(|owner| owner != device) {
                return Err(foreign_buffer(compiled, position, arg, self).into());
            }
            match (&arg.payload, kind) {
                (Payload::Bytes(bytes), ParamKind::Value(slot)) => {
                    put(&mut params, slot.offset, bytes);
                }
                (
                    Payload::Slice { address, length },
                    ParamKind::Slice {
                        address: a,
                        length: l,
                    },
                ) => {
                    put_number(&mut params, *a, *address);
                    put_number(&mut params, *l, *length);
                }
                (Payload::Slice { address, .. }, ParamKind::Value(slot)) => {
                    put_number(&mut params, *slot, *address);
                }
                (Payload::Bytes(bytes), ParamKind::Reference { address, .. }) => {
                    let copy = Buffer::from_bytes(&self.0.device, bytes)?;
                    put_number(&mut params, *address, copy.address());
                    copies.push(copy);
                }
                _ => {
                    return Err(Error::Internal(
                        "an argument that binding accepted has no slot",
                    ));
                }
            }
        }
        let backend = self.0.device.backend();
        let limit = self.0.options.time_limit;
        backend.launch(loaded.code.as_ref(), compiled, config, &mut params, limit)
        // `copies` are freed here; freeing waits for the launch that uses them.
    }
}

/// The types of a list of arguments, as the IR has them.
fn type_forms(args: &[Arg<'_>]) -> String {
    let forms: Vec<String> = args.iter().map(Arg::type_form).collect();
    forms.join(", ")
}

fn put(params: &mut [MaybeUninit<u8>], offset: u32, bytes: &[MaybeUninit<u8>]) {
    let offset = offset as usize;
    params[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// Writes the low bytes of `number` into a slot.
fn put_number(params: &mut [MaybeUninit<u8>], slot: ParamSlot, number: u64) {
    let bytes = number.to_le_bytes().map(MaybeUninit::new);
    put(params, slot.offset, &bytes[..slot.size as usize]);
}

#[cold]
fn foreign_buffer(
    kernel: &CompiledKernel,
    position: usize,
    arg: &Arg<'_>,
    jit: &Jit,
) -> LaunchError {
    LaunchError::ForeignBuffer {
        kernel: kernel.name.clone(),
        position,
        argument: kernel
            .param_names
            .get(position)
            .cloned()
            .unwrap_or_default(),
        owner: arg.device.map(|d| d.to_string()).unwrap_or_default(),
        device: jit.0.device.info().id.to_string(),
    }
}

/// A kernel compiled for arguments of certain types, loaded on a device.
pub struct Prepared {
    jit: Jit,
    loaded: Arc<LoadedKernel>,
    signature: SmallVec<[crate::args::ArgSignature; 8]>,
    types: String,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prepared({}({}))", self.loaded.compiled.name, self.types)
    }
}

impl Prepared {
    /// What was compiled.
    pub fn compiled(&self) -> &CompiledKernel {
        &self.loaded.compiled
    }

    /// Makes the code for blocks of a shape, where it depends on that, as on a CPU device; otherwise
    /// the first launch with the shape does so.
    ///
    /// # Errors
    /// A block that the device does not have, or code that cannot be compiled.
    pub fn prepare_block(self, block: impl Into<Dim3>) -> Result<Prepared> {
        let (backend, block) = (self.jit.0.device.backend(), block.into());
        check_block(block, &backend.info().limits, &self.loaded.compiled.name)?;
        backend.prepare(self.loaded.code.as_ref(), block)?;
        Ok(self)
    }

    /// Launches it.
    ///
    /// # Errors
    /// Arguments of other types or facts than it was prepared for, a shape the device does not
    /// have, a device that has failed.
    pub fn launch(
        &self,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        args: &[Arg<'_>],
    ) -> Result<()> {
        self.launch_with(LaunchConfig::new(grid, block), args)
    }

    /// [`Prepared::launch`] with dynamic shared memory.
    ///
    /// # Errors
    /// As [`Prepared::launch`].
    pub fn launch_with(&self, config: LaunchConfig, args: &[Arg<'_>]) -> Result<()> {
        let fits = args.len() == self.signature.len()
            && args
                .iter()
                .zip(&self.signature)
                .all(|(a, s)| self.accepts(a, s));
        if !fits {
            return Err(LaunchError::OtherSignature {
                kernel: self.loaded.compiled.name.clone(),
                prepared: self.types.clone(),
                given: type_forms(args),
            }
            .into());
        }
        self.jit.launch_loaded(&self.loaded, &config, args)
    }

    /// Whether `arg` has the type it was prepared for, and the facts if they were compiled in.
    fn accepts(&self, arg: &Arg<'_>, prepared: &crate::args::ArgSignature) -> bool {
        let keep = self.jit.0.options.specialize_facts;
        arg.signature.keeping_facts(keep) == prepared.keeping_facts(keep)
    }
}
