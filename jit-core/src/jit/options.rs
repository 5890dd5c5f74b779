//! The settings of a [`Jit`](super::Jit).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cache::CacheFolder;
use kiln_compiler::checks::Checks;
use kiln_compiler::codegen::Isas;
use kiln_compiler::compile::StageObserver;
use kiln_compiler::job::CompileOptions;
use kiln_compiler::runtime::{DeviceError, FaultListener};
use kiln_compiler::target::Target;

use super::printed::{PrintListener, Printed};

/// Settings of a [`Jit`](super::Jit): fields to read, and methods of the same names that set them.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use kiln::core::cache::CacheFolder;
/// use kiln::core::codegen::Isas;
/// use kiln::core::compile::NoObserver;
/// use kiln::core::job::CompileOptions;
/// use kiln::core::target::{PtxTarget, Target};
/// use kiln::prelude::*;
///
/// let options = JitOptions::default()
///     .compile(CompileOptions::default().line_info(true))
///     .specialize_facts(true)
///     .checks(Checks::none())
///     .time_limit(Duration::from_secs(10))
///     .memory_bound(64 << 20)
///     .share_code(true)
///     .isas(Isas::default())
///     .cache(CacheFolder::Off)
///     .shipped("kernels")
///     .observer(Arc::new(NoObserver))
///     .on_fault(|fault| eprintln!("{fault}"))
///     .on_print(|printed| eprintln!("{printed:?}"))
///     .target(Target::Ptx(PtxTarget::for_sm(90)));
/// assert!(options.specialize_facts && options.compile.line_info);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct JitOptions {
    /// Compile options.
    pub compile: CompileOptions,
    /// Whether facts about the values of arguments (integers equal to 1 or divisible by 16) are compiled in. A
    /// launch whose arguments have other facts is another specialization. That a slice begins at a multiple of 16
    /// bytes, as each whole buffer does, is always compiled in.
    pub specialize_facts: bool,
    /// Code for this target instead of what the device reports; for inspecting code of machines
    /// that are not here.
    pub target: Option<Target>,
    /// What launches are checked for, on a CPU device; kernels are then compiled for the
    /// interpreter.
    pub checks: Checks,
    /// How long a launch may run. A CPU device then ends it, with
    /// [`LaunchStopped::TimeLimit`](kiln_compiler::launch::LaunchStopped), and goes on with the next; time
    /// counts from the launch's first block on. On a GPU it is how long a call waits: that of the
    /// latest launch counts. By default launches may run as long as they like.
    pub time_limit: Option<Duration>,
    /// How many bytes of compiled kernels stay in memory; by default 512 MiB. Beyond that those go that were not
    /// launched for longest, and are compiled again, or read from disk, when they are launched again. A kernel counts as its
    /// code and 16 KiB. What a [`Prepared`](super::Prepared) or a launch holds stays while it is held. What was
    /// loaded on a GPU is unloaded once the work there is done, for which the launch that makes room waits.
    pub memory_bound: Option<u64>,
    /// Whether code is that of other `Jit`s of the device which would make the same, with the same hooks, options and
    /// folders: it is compiled and loaded once, and unloaded when the last of them lets it go. So it is by default. A
    /// `Jit` with an observer shares nothing, nor does one with [`Isas`] of the program's own. A hook that can change code
    /// and does not say [`Hook::may_be_kept`](kiln_compiler::hook::Hook::may_be_kept) is the same only where it is the
    /// same value, as in clones of a [`HookSet`](kiln_compiler::hook::HookSet).
    pub share_code: bool,
    /// What makes code for machines that Kiln does not know.
    pub isas: Isas,
    /// Where compiled kernels are kept for later processes.
    pub cache: CacheFolder,
    /// Folders of compiled kernels that have come with the program, which are looked into first.
    pub shipped: Vec<PathBuf>,
    /// Looks on while kernels are compiled. A `Jit` with an observer keeps nothing on disk, since it is to see
    /// every stage of each kernel.
    pub observer: Option<Arc<dyn StageObserver + Send + Sync>>,
    /// What is called with each fault of the device.
    pub on_fault: Option<Arc<FaultListener>>,
    /// What is called with what kernels print, in the place of the program's own output.
    pub on_print: Option<Arc<PrintListener>>,
}

impl Default for JitOptions {
    fn default() -> JitOptions {
        JitOptions {
            compile: CompileOptions::default(),
            specialize_facts: false,
            target: None,
            checks: Checks::default(),
            time_limit: None,
            memory_bound: None,
            share_code: true,
            isas: Isas::default(),
            cache: CacheFolder::default(),
            shipped: Vec::new(),
            observer: None,
            on_fault: None,
            on_print: None,
        }
    }
}

impl fmt::Debug for JitOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JitOptions")
            .field("compile", &self.compile)
            .field("specialize_facts", &self.specialize_facts)
            .field("target", &self.target)
            .field("checks", &self.checks)
            .field("time_limit", &self.time_limit)
            .field("memory_bound", &self.memory_bound)
            .field("share_code", &self.share_code)
            .field("cache", &self.cache)
            .field("shipped", &self.shipped)
            .finish_non_exhaustive()
    }
}

impl JitOptions {
    /// Sets the options of each compilation.
    #[must_use]
    pub fn compile(self, compile: CompileOptions) -> JitOptions {
        JitOptions { compile, ..self }
    }

    /// Sets whether facts about arguments, such as integers that are multiples of 16, are compiled in.
    #[must_use]
    pub fn specialize_facts(self, specialize_facts: bool) -> JitOptions {
        JitOptions {
            specialize_facts,
            ..self
        }
    }

    /// Sets the machine that code is for, if it is not the one that the device reports.
    #[must_use]
    pub fn target(self, target: impl Into<Option<Target>>) -> JitOptions {
        JitOptions {
            target: target.into(),
            ..self
        }
    }

    /// Sets what launches are checked for, on a CPU device.
    #[must_use]
    pub fn checks(self, checks: Checks) -> JitOptions {
        JitOptions { checks, ..self }
    }

    /// Sets how long a launch may run; `None` is as long as it likes.
    #[must_use]
    pub fn time_limit(self, limit: impl Into<Option<Duration>>) -> JitOptions {
        JitOptions {
            time_limit: limit.into(),
            ..self
        }
    }

    /// Sets how many bytes of compiled kernels stay in memory.
    #[must_use]
    pub fn memory_bound(self, bytes: impl Into<Option<u64>>) -> JitOptions {
        JitOptions {
            memory_bound: bytes.into(),
            ..self
        }
    }

    /// Sets whether code is that of other `Jit`s of the device which would make the same.
    #[must_use]
    pub fn share_code(self, share_code: bool) -> JitOptions {
        JitOptions { share_code, ..self }
    }

    /// Sets what makes code for machines that Kiln does not know.
    #[must_use]
    pub fn isas(self, isas: Isas) -> JitOptions {
        JitOptions { isas, ..self }
    }

    /// Sets where compiled kernels are kept for later processes.
    #[must_use]
    pub fn cache(self, cache: CacheFolder) -> JitOptions {
        JitOptions { cache, ..self }
    }

    /// Adds a folder of compiled kernels that has come with the program; [`JitBuilder::shipped`](super::JitBuilder::shipped)
    /// says more.
    #[must_use]
    pub fn shipped(mut self, folder: impl Into<PathBuf>) -> JitOptions {
        self.shipped.push(folder.into());
        self
    }

    /// Sets who looks on while kernels are compiled.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn StageObserver + Send + Sync>) -> JitOptions {
        JitOptions {
            observer: Some(observer),
            ..self
        }
    }

    /// Sets what is called with each fault of the device, as [`JitBuilder::on_fault`](super::JitBuilder::on_fault)
    /// says.
    #[must_use]
    pub fn on_fault(self, listener: impl Fn(&DeviceError) + Send + Sync + 'static) -> JitOptions {
        JitOptions {
            on_fault: Some(Arc::new(listener)),
            ..self
        }
    }

    /// Sets what is called with what kernels print, as [`JitBuilder::on_print`](super::JitBuilder::on_print) says.
    #[must_use]
    pub fn on_print(self, listener: impl Fn(Printed<'_>) + Send + Sync + 'static) -> JitOptions {
        JitOptions {
            on_print: Some(Arc::new(listener)),
            ..self
        }
    }
}
