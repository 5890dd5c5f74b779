//! How a [`Jit`] is made.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cache::CacheFolder;
use kiln_compiler::checks::Checks;
use kiln_compiler::codegen::Isas;
use kiln_compiler::compile::StageObserver;
use kiln_compiler::error::Result;
use kiln_compiler::hook::{Hook, HookSet};
use kiln_compiler::job::CompileOptions;
use kiln_compiler::runtime::{Device, DeviceError};
use kiln_compiler::target::Target;

use super::{Jit, JitOptions, Printed};

impl Jit {
    /// A `Jit` on the first CUDA device, or on this CPU if the machine has no CUDA device, with
    /// [`kiln_hooks::standard`] and default options.
    ///
    /// # Errors
    /// A CUDA driver that is there but cannot be used, too old for instance.
    pub fn new() -> Result<Jit> {
        Ok(Jit::on(Device::best()?))
    }

    /// A `Jit` on this device, with [`kiln_hooks::standard`] and default options.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// let jit = Jit::on(Device::cpu());
    /// assert_eq!(jit.device().info().kind, DeviceKind::Cpu);
    /// ```
    pub fn on(device: Device) -> Jit {
        Jit::with(device, kiln_hooks::standard(), JitOptions::default())
    }

    /// A `Jit` with settings of its own; what is not set is as in [`Jit::new`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use kiln::core::hook::Hook;
    /// use kiln::core::jit::Jit;
    /// use kiln::core::runtime::Device;
    ///
    /// # fn main() -> kiln::core::error::Result<()> {
    /// let quiet = Hook::new("quiet").rewrite_ir(|_, _| Ok(()));
    /// let jit = Jit::builder()
    ///     .device(Device::cpu())
    ///     .hook(quiet)
    ///     .time_limit(Duration::from_secs(10))
    ///     .build()?;
    /// # drop(jit);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> JitBuilder {
        JitBuilder {
            device: None,
            hooks: kiln_hooks::standard(),
            options: JitOptions::default(),
        }
    }
}

/// The settings of a [`Jit`] that is about to be made; [`Jit::builder`].
///
/// ```
/// use kiln::prelude::*;
///
/// use std::sync::Arc;
///
/// use kiln::core::cache::CacheFolder;
/// use kiln::core::codegen::Isas;
/// use kiln::core::compile::NoObserver;
/// use kiln::core::job::CompileOptions;
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::builder()
///     .device(Device::cpu())
///     .hooks(kiln::hooks::standard())
///     .options(JitOptions::default())
///     .compile(CompileOptions::default().contract(false))
///     .specialize_facts(true)
///     .checks(Checks::none().races())
///     .target(None)
///     .isas(Isas::default())
///     .cache(CacheFolder::Off)
///     .shipped("kernels")
///     .observer(Arc::new(NoObserver))
///     .build()?;
/// assert!(jit.options().specialize_facts && jit.options().checks.has_races());
/// # Ok(())
/// # }
/// ```
#[must_use = "`build` makes the `Jit`"]
#[derive(Clone, Debug)]
pub struct JitBuilder {
    device: Option<Device>,
    hooks: HookSet,
    options: JitOptions,
}

impl JitBuilder {
    /// Sets the device; without this it is [`Device::best`].
    pub fn device(self, device: Device) -> JitBuilder {
        JitBuilder {
            device: Some(device),
            ..self
        }
    }

    /// Sets the whole list of hooks, in place of [`kiln_hooks::standard`] and of hooks that were added before.
    pub fn hooks(self, hooks: impl Into<HookSet>) -> JitBuilder {
        JitBuilder {
            hooks: hooks.into(),
            ..self
        }
    }

    /// Adds a hook behind those that there are.
    pub fn hook(self, hook: Hook) -> JitBuilder {
        JitBuilder {
            hooks: self.hooks.with(hook),
            ..self
        }
    }

    /// Sets all options, in place of those that were set before.
    pub fn options(self, options: JitOptions) -> JitBuilder {
        JitBuilder { options, ..self }
    }

    /// Sets the options of each compilation.
    pub fn compile(self, compile: CompileOptions) -> JitBuilder {
        self.change(|options| options.compile(compile))
    }

    /// Sets whether facts about arguments, such as integers that are multiples of 16, are compiled in.
    pub fn specialize_facts(self, specialize: bool) -> JitBuilder {
        self.change(|options| options.specialize_facts(specialize))
    }

    /// Sets the machine that code is for, if it is not the one that the device reports.
    pub fn target(self, target: impl Into<Option<Target>>) -> JitBuilder {
        self.change(|options| options.target(target))
    }

    /// Sets what launches are checked for, on a CPU device.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[kernel]
    /// fn all_write(x: &mut [u32]) {
    ///     x[0] = global_id().x as u32;
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::builder().device(Device::cpu()).checks(Checks::all()).build()?;
    /// let mut x = jit.zeros::<u32>(1)?;
    /// let launched = jit.launch(&all_write, 1, 32, args!(&mut x));
    /// let error = launched.and_then(|()| jit.synchronize()).unwrap_err();
    /// let race = error.finding().expect("two threads write one element");
    /// assert_eq!((race.kernel(), race.block().x), ("all_write", 0));
    /// println!("{} at {}", race, race.location());
    /// # Ok(())
    /// # }
    /// ```
    pub fn checks(self, checks: Checks) -> JitBuilder {
        self.change(|options| options.checks(checks))
    }

    /// Sets how long a launch may run; `None` is as long as it likes.
    pub fn time_limit(self, limit: impl Into<Option<Duration>>) -> JitBuilder {
        self.change(|options| options.time_limit(limit))
    }

    /// Sets how many bytes of compiled kernels stay in memory; [`JitOptions::memory_bound`] says what that means.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::builder().device(Device::cpu()).memory_bound(100_000).build()?;
    /// let mut x = jit.zeros::<u32>(1)?;
    /// let kernel = Kernel::build("numbered", |k| k.slice_mut("x", Type::U32).at(0).set(0u32))?;
    /// for n in 0..20u32 {
    ///     kernel.redefine(move |k| k.slice_mut("x", Type::U32).at(0).set(n))?;
    ///     jit.launch(&kernel, 1, 1, args!(&mut x))?;
    /// }
    /// let stats = jit.cache_stats();
    /// assert!(stats.evictions > 0 && stats.memory_bytes <= 100_000, "{stats:?}");
    /// assert_eq!(x.to_vec()?, [19]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn memory_bound(self, bytes: impl Into<Option<u64>>) -> JitBuilder {
        self.change(|options| options.memory_bound(bytes))
    }

    /// Sets whether code is that of other `Jit`s of the device which would make the same;
    /// [`JitOptions::share_code`] says which those are.
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
    /// let first = Jit::new()?;
    /// let second = Jit::on(first.device().clone());
    /// let alone = Jit::builder().device(first.device().clone()).share_code(false).build()?;
    /// let mut x = first.zeros::<f32>(64)?;
    /// for jit in [&first, &second, &alone] {
    ///     double.launch(jit, (2, 32), &mut x)?;
    /// }
    /// assert_eq!(second.cache_stats().shared_hits, 1);
    /// assert_eq!(alone.cache_stats().shared_hits, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn share_code(self, share_code: bool) -> JitBuilder {
        self.change(|options| options.share_code(share_code))
    }

    /// Sets what makes code for machines that Kiln does not know.
    pub fn isas(self, isas: Isas) -> JitBuilder {
        self.change(|options| options.isas(isas))
    }

    /// Sets where compiled kernels are kept for later processes; [`CacheFolder`] has an example.
    pub fn cache(self, cache: CacheFolder) -> JitBuilder {
        self.change(|options| options.cache(cache))
    }

    /// Adds a folder of compiled kernels that has come with the program, as [`crate::ahead`] makes one. It is looked
    /// into before anything is compiled, also for code of lesser machines, which this one runs: PTX of an older architecture, a
    /// lower level of x86-64. What is not there is compiled, if there is a libLLVM. Nothing is written there.
    ///
    /// The folder and its files have to be this user's, the administrator's, or of whoever owns the program's file, and nobody
    /// else may write there; else it is not used, which [`Jit::disk_cache`] tells.
    pub fn shipped(self, folder: impl Into<PathBuf>) -> JitBuilder {
        self.change(|options| options.shipped(folder))
    }

    /// Sets who looks on while kernels are compiled.
    pub fn observer(self, observer: Arc<dyn StageObserver + Send + Sync>) -> JitBuilder {
        self.change(|options| options.observer(observer))
    }

    /// Has this called with each fault of the device while the `Jit` lives: a kernel that did what it must not, a
    /// device that is lost by one. A fault is an error of the next call that waits for it, and this is called in that
    /// call, in its thread, before it returns the error; of a device that is lost once. What is called may use the
    /// device, of which it is then told no faults.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// use kiln::prelude::*;
    ///
    /// #[kernel]
    /// fn beyond(x: &mut [u32]) {
    ///     x[global_id().x + 1] = 7;
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let count = Arc::new(AtomicU32::new(0));
    /// let counted = count.clone();
    /// let jit = Jit::builder()
    ///     .device(Device::cpu())
    ///     .on_fault(move |fault| {
    ///         eprintln!("{fault}");
    ///         counted.fetch_add(1, Ordering::Relaxed);
    ///     })
    ///     .build()?;
    /// let mut x = jit.zeros::<u32>(32)?;
    /// beyond.launch(&jit, (1, 32), &mut x)?;
    /// assert!(x.to_vec().is_err());
    /// assert_eq!(count.load(Ordering::Relaxed), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_fault(self, listener: impl Fn(&DeviceError) + Send + Sync + 'static) -> JitBuilder {
        self.change(|options| options.on_fault(listener))
    }

    /// Has this called with what kernels print, in the place of the program's own output: after a call that waits, in its
    /// thread, and when the `Jit` is dropped. What is called may use the device.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// use kiln::Printed;
    /// use kiln::prelude::*;
    ///
    /// #[kernel]
    /// fn count(n: u32) {
    ///     let i = global_id().x;
    ///     println!("{} of {n}", i + 1);
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let lines = Arc::new(Mutex::new(String::new()));
    /// let kept = lines.clone();
    /// let jit = Jit::builder()
    ///     .device(Device::cpu())
    ///     .on_print(move |printed| {
    ///         if let Printed::Text { text, .. } = printed {
    ///             kept.lock().unwrap().push_str(text);
    ///         }
    ///     })
    ///     .build()?;
    /// count.launch(&jit, (1, 2), 2u32)?;
    /// jit.synchronize()?;
    /// let lines = lines.lock().unwrap();
    /// assert!(lines.contains("1 of 2\n") && lines.contains("2 of 2\n"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_print(self, listener: impl Fn(Printed<'_>) + Send + Sync + 'static) -> JitBuilder {
        self.change(|options| options.on_print(listener))
    }

    /// The `Jit`.
    ///
    /// # Errors
    /// A list of hooks that does not say one thing, or a hook that cannot do on the target what it is for; a CUDA
    /// driver that is there but cannot be used.
    pub fn build(self) -> Result<Jit> {
        let device = match self.device {
            Some(device) => device,
            None => Device::best()?,
        };
        let jit = Jit::with(device, self.hooks, self.options);
        jit.hooks().check(jit.target(), &jit.options().isas)?;
        Ok(jit)
    }

    fn change(self, change: impl FnOnce(JitOptions) -> JitOptions) -> JitBuilder {
        JitBuilder {
            options: change(self.options),
            ..self
        }
    }
}
