//! From a launch's arguments to code that is loaded: look-up, specialization, compilation.

use std::sync::Arc;

use super::Jit;
use crate::cache::{
    CacheKey, CodeOrigin, Consts, Launched, LoadedCodeOf, LoadedKernel, ReadyLaunch, Signatures,
    Specialized,
};
use kiln_compiler::args::{Arg, Converted, Tag};
use kiln_compiler::build::Kernel;
use kiln_compiler::code::{CompiledKernel, KernelInfo};
use kiln_compiler::compile::{Compiler, NoObserver, StageObserver, failed};
use kiln_compiler::definition::{Fingerprint, Snapshot};
use kiln_compiler::error::{CompileError, Error, GraphError, Result};
use kiln_compiler::hook::{HookContext, HookError, HookErrorKind, HookPoint, at};
use kiln_compiler::job::{CompileJob, KernelIdentity, LegalJob};
use kiln_compiler::launch::{Dim3, LaunchConfig, LaunchError, check_config};
use kiln_compiler::runtime::{CodeFacts, DeviceError, LoadedCode};
use kiln_compiler::specialize::{ParamSpec, Specialization, bind, specialize};
use kiln_compiler::under_way::{Compilation, Made, UnderWay};

impl Jit {
    /// How this thread looks up what it launched before; `None` where hooks say what kernels call, which redefinitions
    /// do not tell.
    #[inline]
    pub(super) fn ready_launch<'a>(
        &self,
        kernel: &Kernel,
        consts: Consts<'a>,
        block: Option<Dim3>,
        args: &'a [Arg<'a>],
    ) -> Result<Option<ReadyLaunch<'a>>> {
        if self.0.overlaid.is_some() {
            return Ok(None);
        }
        Ok(Some(ReadyLaunch {
            content: kernel.content()?,
            consts,
            args,
            facts: self.0.options.specialize_facts,
            block,
        }))
    }

    /// The code for a launch that this thread has not made before. A kernel with const arguments that a launch gives
    /// is made only where the map of all has none.
    #[cold]
    pub(super) fn loaded(
        &self,
        kernel: &Kernel,
        consts: Consts<'_>,
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<Arc<LoadedKernel>> {
        // Before the look-up: what is kept under these numbers is of this content or a later one.
        let ready = self.ready_launch(kernel, consts, Some(config.block), args)?;
        let launched = self.launched(self.fingerprint(kernel)?, consts, args);
        let (specialized, loaded) = match self.0.cache.get(&launched, config.block) {
            Some(found) => found,
            None => {
                let specialized = match consts {
                    Consts::Bound(_) => self.specialized(kernel, args)?,
                    Consts::Given(given) => self.specialized(&with_consts(kernel, given), args)?,
                };
                let loaded = self.code_for(&specialized, config)?;
                (specialized, loaded)
            }
        };
        if let Some(ready) = ready {
            self.0.cache.keep_ready(&ready, &specialized, &loaded);
        }
        Ok(loaded)
    }

    /// The code of a specialized kernel for a launch.
    pub(super) fn code_for(
        &self,
        specialized: &Specialized,
        config: &LaunchConfig,
    ) -> Result<Arc<LoadedKernel>> {
        // Before anything is compiled for a block that cannot be.
        let info = specialized.info();
        check_config(config, &self.0.device.info().limits, info)?;
        let _under_way = self.begin(Made::Code(info.kernel_tag), || info.name.clone())?;
        specialized.for_block(config.block, |unshaped| {
            self.made_for_block(unshaped, config.block)
        })
    }

    /// The kernel specialized for arguments of these types. The snapshot is taken once, so that key and
    /// code are of one content whatever is redefined meanwhile.
    pub(super) fn specialized(
        &self,
        kernel: &Kernel,
        args: &[Arg<'_>],
    ) -> Result<Arc<Specialized>> {
        let checks = &self.0.options.checks;
        self.0.device.info().accept(&kernel.name(), checks)?;
        let snapshot = self.snapshot(kernel)?;
        let consts = Consts::Bound(kernel.consts());
        let launched = self.launched(snapshot.fingerprint, consts, args);
        let made = Made::Specialization(snapshot.fingerprint);
        let _under_way = self.begin(made, || kernel.name())?;
        self.0.cache.get_or_specialize(launched, || {
            let request = self.request(kernel, snapshot.clone(), args)?;
            if self.0.target.wants_block() {
                let unshaped = self.unshaped(request)?;
                self.check_params(&unshaped.info)?;
                return Ok(Specialized::by_block(unshaped));
            }
            Ok(Specialized::whole(self.made_whole(&request)?))
        })
    }

    /// Begins to make something that all who want it wait for.
    pub(super) fn begin(
        &self,
        what: Made,
        kernel: impl FnOnce() -> String,
    ) -> Result<UnderWay, LaunchError> {
        let jit = Arc::as_ptr(&self.0).addr();
        UnderWay::begin(Compilation { jit, what }, kernel)
    }

    /// Makes code of a legal kernel, unless LLVM could not go on with it before.
    pub(super) fn generate(
        &self,
        job: &LegalJob,
        observer: &dyn StageObserver,
    ) -> Result<CompiledKernel> {
        let failed = &self.0.cache.failed;
        let key = job.identity().key.digest();
        if let Some(error) = failed.find(&key) {
            return Err(error.into());
        }
        let generated = self.compiler(observer).generate(job);
        if let Err(Error::Compile(CompileError::Thread(error))) = &generated {
            failed.note(key, error);
        }
        generated
    }

    /// Makes code launchable.
    pub(super) fn load_code(&self, compiled: &CompiledKernel) -> Result<Box<dyn LoadedCode>> {
        let (backend, checks) = (self.0.device.backend(), &self.0.options.checks);
        let code = if checks.is_none() {
            backend.load(compiled)
        } else {
            backend.load_checked(compiled, checks)
        };
        code.map_err(|error| not_loaded(compiled, error))
    }

    /// A kernel whose code was made launchable, once hooks were told.
    pub(super) fn with_code(
        &self,
        shared: Arc<LoadedCodeOf>,
        origin: CodeOrigin,
        identity: &KernelIdentity,
    ) -> Result<LoadedKernel> {
        if self.0.hooks.has(&[HookPoint::AfterLoad]) {
            self.tell_loaded(&shared.compiled, &shared.code.facts(), identity)?;
        }
        Ok(self.0.cache.take(shared, origin, &self.0.limits))
    }

    fn tell_loaded(
        &self,
        compiled: &CompiledKernel,
        facts: &CodeFacts,
        identity: &KernelIdentity,
    ) -> Result<()> {
        let (info, options) = (&compiled.info, &self.0.options.compile);
        let (kernel, tag) = (info.name.as_str(), info.kernel_tag);
        let cx = HookContext::new(kernel, &compiled.target, options, identity, tag);
        let told = self
            .0
            .hooks
            .each(&at::after_load(), kernel, |_, after_load| {
                failed(after_load(&cx, facts))
            });
        Ok(told?)
    }

    /// Compiles with this `Jit`'s hooks and code generators.
    pub(super) fn compiler<'a>(&'a self, observer: &'a dyn StageObserver) -> Compiler<'a> {
        Compiler {
            hooks: &self.0.hooks,
            isas: &self.0.options.isas,
            observer,
        }
    }

    pub(super) fn observer(&self) -> &dyn StageObserver {
        match &self.0.options.observer {
            Some(observer) => observer.as_ref(),
            None => &NoObserver,
        }
    }

    /// What a launch is looked up by.
    pub(super) fn launched<'a>(
        &self,
        kernel: Fingerprint,
        consts: Consts<'a>,
        args: &'a [Arg<'a>],
    ) -> Launched<'a> {
        let facts = self.0.options.specialize_facts;
        let args = Signatures::Of { args, facts };
        Launched {
            kernel,
            consts,
            args,
        }
    }

    pub(super) fn check_params(&self, info: &KernelInfo) -> Result<(), LaunchError> {
        let (given, limit) = (info.layout.size, self.0.device.info().limits.param_bytes);
        if given <= limit {
            return Ok(());
        }
        Err(LaunchError::OverLimit {
            kernel: info.name.clone(),
            what: "size of the parameters in bytes",
            given: given.into(),
            limit: limit.into(),
            fix: "pass large values in a buffer",
        })
    }

    pub(super) fn bind(
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
    /// aliased by no other argument, unless both are read-only. Alignment is always compiled in: devices give whole
    /// buffers more than enough, so it makes one specialization of a kernel in all programs but odd ones.
    fn param_spec(&self, arg: &Arg<'_>) -> ParamSpec {
        let facts = arg.signature().facts();
        let mut spec = ParamSpec {
            wide: facts.wide(),
            short: arg.signature().is_slice() && !facts.long(),
            align: if facts.aligned_16() { 16 } else { 0 },
            noalias: true,
            ..ParamSpec::default()
        };
        if self.0.options.specialize_facts {
            spec.divisor = if facts.divisible_by_16() { 16 } else { 0 };
            spec.equal_one = facts.equal_one();
        }
        spec
    }

    /// Everything that decides the code.
    pub(super) fn key(
        &self,
        kernel: &Kernel,
        snapshot: &Snapshot,
        args: &[Arg<'_>],
        spec: &Specialization,
    ) -> CacheKey {
        let isa = self.0.options.isas.of(&self.0.target);
        let generator = isa.map(|isa| isa.fingerprint());
        CacheKey::default()
            .with("kernel", kernel.name())
            .with("content", snapshot.fingerprint)
            .with("argument types", type_forms(args))
            .with("type arguments", format_args!("{:?}", spec.type_args))
            .with("facts", format_args!("{:?}", spec.params))
            .with("const arguments", format_args!("{:?}", kernel.consts()))
            .with_all(self.0.target.settings())
            .with("options", format_args!("{:?}", self.0.options.compile))
            .with("hooks", self.0.hooks.fingerprint())
            .with("kiln", env!("CARGO_PKG_VERSION"))
            .with("code generator", generator.unwrap_or_default())
    }

    pub(super) fn job(
        &self,
        snapshot: &Snapshot,
        spec: &Specialization,
        identity: Arc<KernelIdentity>,
    ) -> Result<CompileJob> {
        let (module, target) = (specialize(snapshot, spec)?, self.0.target.clone());
        let job = CompileJob::new(module, target, self.0.options.compile.clone());
        Ok(job.with_identity(identity))
    }

    /// The arguments with host values converted by hooks and views as what they are made of, if there are
    /// any.
    pub(super) fn convert<'a>(
        &self,
        kernel: &dyn Fn() -> String,
        args: &'a [Arg<'_>],
    ) -> Result<Option<Converted<'a>>> {
        Converted::of(args, |position, value| {
            self.convert_one(kernel(), position, value)
        })
    }

    pub(super) fn convert_one<'a>(
        &self,
        name: String,
        position: usize,
        value: &'a (dyn std::any::Any + Send + Sync),
    ) -> Result<Arg<'a>> {
        if Tag::of(value).is_some() {
            let kernel = name;
            return Err(GraphError::NotRecorded { kernel, position }.into());
        }
        let mut converted = None;
        self.0
            .hooks
            .each(&at::convert_argument(), &name, |_, convert| {
                if converted.is_none() {
                    converted = failed(convert(value))?;
                }
                Ok(())
            })?;
        Ok(converted.ok_or(LaunchError::NoConversion {
            kernel: name,
            position,
        })?)
    }
}

/// A kernel with const arguments that a launch gives.
pub(super) fn with_consts(kernel: &Kernel, consts: &[(&str, i128)]) -> Kernel {
    let bind = |kernel: Kernel, &(name, value): &(&str, i128)| kernel.with_const(name, value);
    consts.iter().fold(kernel.clone(), bind)
}

/// Why a device does not load code: it may be for a machine that a hook has asked for.
fn not_loaded(compiled: &CompiledKernel, error: DeviceError) -> Error {
    let Some(hook) = &compiled.retargeted_by else {
        return error.into();
    };
    let error = HookError {
        hook: hook.clone(),
        kernel: compiled.info.name.clone(),
        point: HookPoint::PrepareJob,
        kind: HookErrorKind::retargeted(&compiled.target, error),
    };
    error.into()
}

/// What a kernel is made for, as hooks are told.
pub(super) fn identity(
    snapshot: &Snapshot,
    spec: &Specialization,
    key: &CacheKey,
) -> Arc<KernelIdentity> {
    let body = &snapshot.bodies[0].1;
    let function = body.function();
    let names = function.type_params.iter().map(|param| param.name.clone());
    let mut identity = KernelIdentity::default();
    identity.type_args = names.zip(spec.type_args.iter().map(|ty| ty.0)).collect();
    identity.const_args = spec.const_args.clone();
    identity.attributes = function.attributes.clone();
    identity.key = key.clone();
    Arc::new(identity)
}

/// The types of a list of arguments, as the IR has them.
pub(super) fn type_forms(args: &[Arg<'_>]) -> String {
    let forms: Vec<String> = args.iter().map(Arg::type_form).collect();
    forms.join(", ")
}
