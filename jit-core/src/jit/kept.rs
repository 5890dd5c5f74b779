//! From what was asked for to code: what memory does not have is looked for on disk, and compiled if it is not there
//! either.

use std::sync::Arc;

use once_cell::sync::OnceCell;

use super::load::identity;
use super::{Jit, JitOptions};
use crate::cache::disk::{Disk, EntryKey, Kept, KernelRows, difference, own_functions};
use crate::cache::{CacheKey, CodeOrigin, LoadedCodeOf, LoadedKernel, Request, Unshaped};
use kiln_compiler::args::{Arg, Converted};
use kiln_compiler::build::Kernel;
use kiln_compiler::code::{Assembled, Code, CompiledKernel, KernelInfo};
use kiln_compiler::definition::Snapshot;
use kiln_compiler::error::{CompileError, Error, Result};
use kiln_compiler::front::AsKernel;
use kiln_compiler::hook::HookSet;
use kiln_compiler::job::{KernelIdentity, LegalJob};
use kiln_compiler::launch::{Dim3, check_block};
use kiln_compiler::runtime::LoadedCode;
use kiln_compiler::target::Target;
use kiln_compiler::under_way::Made;

/// Who assembles PTX where no hook does, as errors call it.
const DRIVER: &str = "the CUDA driver";

/// The field of the key that says what hooks there are and what rows they have put in.
const HOOKS: &str = "hooks";

/// The folder of a `Jit` with these settings.
pub(super) fn disk(options: &JitOptions, hooks: &HookSet, target: &Target) -> Disk {
    // All that can change code is in the key, as code of another process is taken by it: who adds a setting says here
    // where that is.
    let JitOptions {
        // Field `options`.
        compile: _,
        // Fields `facts` of the specialization.
        specialize_facts: _,
        // Fields of the target.
        target: _,
        // Code with checks is the interpreter's, which is not kept.
        checks: _,
        // No part of code.
        time_limit: _,
        on_fault: _,
        on_print: _,
        memory_bound: _,
        share_code: _,
        // Code for their machines is not kept.
        isas: _,
        cache,
        shipped,
        observer,
    } = options;
    let hook = hooks.iter().find(|hook| !hook.is_kept());
    let against = if observer.is_some() {
        Some("an observer is to see every stage of each kernel".to_owned())
    } else if let Some(hook) = hook {
        Some(format!(
            "hook `{}` does not say by `Hook::may_be_kept` that its code may be kept",
            hook.name()
        ))
    } else {
        match target {
            Target::Ptx(_) | Target::Cpu(_) => None,
            Target::Interpreter | Target::Custom(_) => {
                Some(format!("code for {target} is not kept"))
            }
        }
    };
    Disk::new(cache, shipped, against)
}

/// What code is for that has come with the program.
struct CompiledFor {
    target: Target,
    key: CacheKey,
}

fn with_code((kept, made): (Kept, CompiledFor)) -> Option<CompiledKernel> {
    Some(CompiledKernel {
        info: Arc::new(kept.info),
        target: made.target,
        code: kept.code?,
        key: made.key,
        retargeted_by: None,
    })
}

/// Code that was asked for.
struct Asked<'a> {
    request: &'a Request,
    /// The target that the `Jit` has for it.
    target: Target,
    /// The key before hooks have run.
    key: CacheKey,
}

impl Jit {
    /// Compiles a kernel ahead of time, for arguments of these types and, where code depends on it, for blocks of a
    /// shape, and keeps it on disk; it is not loaded. The target need not be here, so that a machine with LLVM fills a
    /// folder from which one with a GPU and without LLVM runs; both programs are of one build of Kiln.
    ///
    /// ```
    /// use kiln::core::cache::CacheFolder;
    /// use kiln::core::target::{PtxTarget, Target};
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
    /// let folder = std::env::temp_dir().join(format!("kiln-ahead-{}", std::process::id()));
    /// for sm in [80, 90] {
    ///     let jit = Jit::builder()
    ///         .device(Device::cpu())
    ///         .target(Target::Ptx(PtxTarget::for_sm(sm)))
    ///         .cache(CacheFolder::At(folder.clone()))
    ///         .build()?;
    ///     // Buffers say of which types and how aligned arguments are.
    ///     jit.keep(&double, 256, args!(&mut jit.zeros::<f32>(1)?))?;
    ///     assert_eq!(jit.cache_stats().disk_writes, 1);
    /// }
    /// # let _ = std::fs::remove_dir_all(folder);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Jit::launch`], as far as compilation goes; a kernel that cannot be kept, or a folder that cannot be written
    /// to.
    pub fn keep(
        &self,
        kernel: &(impl AsKernel + ?Sized),
        block: impl Into<Dim3>,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let (kernel, block) = (kernel.as_kernel()?, block.into());
        check_block(block, &self.0.device.info().limits, &kernel.name())?;
        let converted = self.convert(&|| kernel.name(), args)?;
        let args = converted.as_ref().map_or(args, Converted::args);
        let snapshot = self.snapshot(kernel)?;
        let made = Made::Specialization(snapshot.fingerprint);
        let _under_way = self.begin(made, || kernel.name())?;
        let request = self.request(kernel, snapshot, args)?;
        self.keep_code(request, block)
    }

    /// What a launch with these arguments asks for.
    pub(super) fn request(
        &self,
        kernel: &Kernel,
        snapshot: Arc<Snapshot>,
        args: &[Arg<'_>],
    ) -> Result<Request> {
        let specialization = self.bind(kernel, &snapshot, args)?;
        let key = self.key(kernel, &snapshot, args, &specialization);
        Ok(Request {
            name: snapshot.root.name().to_owned(),
            identity: identity(&snapshot, &specialization, &key),
            sharing: self.sharing(&snapshot),
            snapshot: Some(snapshot),
            specialization,
        })
    }

    /// A kernel whose code is for blocks of all shapes.
    pub(super) fn made_whole(&self, request: &Request) -> Result<LoadedKernel> {
        let asked = Asked {
            request,
            target: self.0.target.clone(),
            key: request.identity.key.clone(),
        };
        self.made(&asked, &asked.key, || {
            let legal = self.legalized(request)?;
            self.generate(&legal, self.observer())
        })
    }

    /// A kernel whose code is for blocks of one shape.
    pub(super) fn made_for_block(&self, unshaped: &Unshaped, block: Dim3) -> Result<LoadedKernel> {
        let block = block.to_array();
        let target = self.0.target.for_block(block);
        let asked = Asked {
            request: &unshaped.request,
            key: unshaped.request.identity.key.for_target(&target),
            target,
        };
        let legal = || self.legal(unshaped).map(|legal| legal.for_block(block));
        let key = match unshaped.legal.get() {
            // Hooks may have sent it to another target.
            Some(legal) => legal.for_block(block).identity().key.clone(),
            None => unshaped.key.for_target(&asked.target),
        };
        self.made(&asked, &key, || self.generate(&legal()?, self.observer()))
    }

    /// What all shapes of block have in common: what launches need to know is on disk, or the kernel is made legal.
    pub(super) fn unshaped(&self, mut request: Request) -> Result<Unshaped> {
        let disk = &self.0.disk;
        let asked = Asked {
            target: self.0.target.clone(),
            key: request.identity.key.clone(),
            request: &request,
        };
        let key = self.entry_key("info", &asked, None);
        let kept = key.as_ref().and_then(|key| disk.find(key, &|_, _| None));
        let kept = kept.filter(|kept| self.0.hooks.puts_in_all(&kept.put_in));
        if kept.is_none()
            && let Some((Kept { info, .. }, made)) = self.shipped("info", &asked)
        {
            return Ok(Unshaped {
                key: made.key,
                info: Arc::new(info),
                legal: OnceCell::new(),
                request,
            });
        }
        if let Some(Kept { info, put_in, .. }) = &kept
            && !disk.verify
        {
            return Ok(Unshaped {
                key: asked.key.clone().extended(HOOKS, put_in),
                info: Arc::new(info.clone()),
                legal: OnceCell::new(),
                request,
            });
        }
        let legal = self.legal_of(&request)?;
        if let Some(kept) = kept {
            self.verify(&asked, (&kept.info, None), (&legal.info, None))?;
        } else if let Some(key) = key
            && let Some(put_in) = self.put_in(&asked, &legal.target, &legal.identity().key)
        {
            disk.write(&key, (&legal.info, &put_in), None);
        }
        if !disk.is_on() && !disk.has_shipped() {
            // All code is made of the legal kernel: who drops the kernel itself gets its memory back.
            request.snapshot = None;
        }
        Ok(Unshaped {
            key: legal.identity().key.clone(),
            info: legal.info.clone(),
            legal: OnceCell::with_value(legal),
            request,
        })
    }

    fn legal(&self, unshaped: &Unshaped) -> Result<Arc<LegalJob>> {
        let make = || self.legal_of(&unshaped.request);
        unshaped.legal.get_or_try_init(make).cloned()
    }

    fn legal_of(&self, request: &Request) -> Result<Arc<LegalJob>> {
        let key = &request.identity.key;
        let legalize = || self.legalized(request);
        self.0.cache.get_or_legalize(key, legalize)
    }

    fn legalized(&self, request: &Request) -> Result<LegalJob> {
        let Request {
            name: _,
            snapshot,
            specialization,
            identity,
            sharing: _,
        } = request;
        let gone = Error::Internal("a kernel that is gone was to be made legal");
        let snapshot = snapshot.as_ref().ok_or(gone)?;
        let job = self.job(snapshot, specialization, identity.clone())?;
        self.compiler(self.observer()).legalize(job)
    }

    /// The code that a `Jit` of the device has, or memory under a key, or disk, or that `make` compiles.
    fn made(
        &self,
        asked: &Asked<'_>,
        key: &CacheKey,
        make: impl FnOnce() -> Result<CompiledKernel>,
    ) -> Result<LoadedKernel> {
        let made = || self.made_here(asked, key, make);
        let (shared, origin) = match self.shared_code(asked.request, key) {
            Some((table, digest)) => self.made_once(table, digest, made)?,
            None => {
                let made = Arc::new(made()?);
                let origin = made.origin;
                (made, origin)
            }
        };
        self.check_params(&shared.compiled.info)?;
        let mut identity = KernelIdentity::clone(&asked.request.identity);
        identity.key = shared.compiled.key.clone();
        self.with_code(shared, origin, &identity)
    }

    /// The code that memory has under a key, or disk, or that `make` compiles, loaded.
    fn made_here(
        &self,
        asked: &Asked<'_>,
        key: &CacheKey,
        make: impl FnOnce() -> Result<CompiledKernel>,
    ) -> Result<LoadedCodeOf> {
        let (mut loaded, mut origin) = (None, CodeOrigin::Memory);
        let name = &asked.request.name;
        let compiled = self.0.cache.get_or_make(name, key, |compiles| {
            let (compiled, from) = self.through_disk(asked, &mut loaded, || {
                compiles();
                make()
            })?;
            origin = from;
            Ok(compiled)
        })?;
        self.check_params(&compiled.info)?;
        let code = match loaded {
            Some(code) => code,
            None => self.load_code(&compiled)?,
        };
        Ok(LoadedCodeOf {
            compiled,
            code,
            by: self.0.cache.made_for(),
            origin,
        })
    }

    /// What is kept, loaded, or what `compile` gives, which is then kept; and which it is.
    ///
    /// Of PTX there are two entries: the text, for every driver and made without one, and with what this
    /// driver makes of it.
    fn through_disk(
        &self,
        asked: &Asked<'_>,
        loaded: &mut Option<Box<dyn LoadedCode>>,
        compile: impl FnOnce() -> Result<CompiledKernel>,
    ) -> Result<(CompiledKernel, CodeOrigin)> {
        let disk = &self.0.disk;
        let Some(plain) = self.entry_key("code", asked, None) else {
            return Ok(match self.shipped("code", asked).and_then(with_code) {
                Some(found) => (
                    self.count_shipped(asked, found, compile)?,
                    CodeOrigin::Shipped,
                ),
                None => (compile()?, CodeOrigin::Compiled),
            });
        };
        let assembler = self.0.device.backend().assembler();
        let assembled = match &assembler {
            Some(assembler) => self.entry_key("code", asked, Some(assembler)),
            None => None,
        };
        let key = assembled.as_ref().unwrap_or(&plain);
        let mut lock = None;
        let mut shipped = None;
        let found = self.find(asked, key, loaded).or_else(|| {
            shipped = self.shipped("code", asked).and_then(with_code);
            if shipped.is_some() {
                return None;
            }
            // Another process may have made it by the time it gives up the lock.
            lock = disk.lock(&plain);
            self.find(asked, key, loaded)
        });
        if let Some(found) = found {
            disk.hit();
            return Ok((self.verified(asked, found, compile)?, CodeOrigin::Disk));
        }
        if let Some(found) = shipped {
            let found = self.count_shipped(asked, found, compile)?;
            let found = self.kept_assembled(asked, found, assembled.as_ref(), loaded);
            return Ok((found, CodeOrigin::Shipped));
        }
        let text = assembled.as_ref().and_then(|_| self.read(asked, &plain));
        let (made, origin) = match text {
            Some(text) => {
                disk.hit();
                (self.verified(asked, text, compile)?, CodeOrigin::Disk)
            }
            None => {
                disk.miss();
                (compile()?, CodeOrigin::Compiled)
            }
        };
        if origin == CodeOrigin::Compiled {
            self.write(asked, &plain, &made);
        }
        let made = self.kept_assembled(asked, made, assembled.as_ref(), loaded);
        drop(lock);
        Ok((made, origin))
    }

    /// What has come with the program, counted and compared as what is kept is.
    fn count_shipped(
        &self,
        asked: &Asked<'_>,
        found: CompiledKernel,
        compile: impl FnOnce() -> Result<CompiledKernel>,
    ) -> Result<CompiledKernel> {
        self.0.disk.hit_shipped();
        self.verified(asked, found, compile)
    }

    /// A kernel with what the driver makes of its PTX, which is kept.
    fn kept_assembled(
        &self,
        asked: &Asked<'_>,
        mut made: CompiledKernel,
        key: Option<&EntryKey>,
        loaded: &mut Option<Box<dyn LoadedCode>>,
    ) -> CompiledKernel {
        if self.assemble(&mut made, loaded)
            && let Some(key) = key
        {
            self.write(asked, key, &made);
        }
        made
    }

    /// What was found, once it was compared with what `compile` gives, if that is asked for.
    fn verified(
        &self,
        asked: &Asked<'_>,
        found: CompiledKernel,
        compile: impl FnOnce() -> Result<CompiledKernel>,
    ) -> Result<CompiledKernel> {
        // Code of a lesser machine is other code.
        if self.0.disk.verify && found.target == asked.target {
            let now = compile()?;
            let kept = (&*found.info, Some(&found.code));
            self.verify(asked, kept, (&now.info, Some(&now.code)))?;
        }
        Ok(found)
    }

    /// Keeps code, if it is what was asked for and can be kept.
    fn write(&self, asked: &Asked<'_>, key: &EntryKey, made: &CompiledKernel) -> bool {
        let put_in = self.put_in(asked, &made.target, &made.key);
        let put_in = put_in.filter(|_| made.code.keep().is_some());
        put_in.is_some_and(|put_in| {
            let disk = &self.0.disk;
            disk.write(key, (&made.info, &put_in), Some(&made.code))
        })
    }

    /// Compiles a kernel for blocks of a shape, where its code depends on that, and keeps it.
    pub(super) fn keep_code(&self, request: Request, block: Dim3) -> Result<()> {
        let name = request.name.clone();
        let unshaped = match self.0.target.wants_block() {
            true => self.unshaped(request)?,
            false => {
                let legal = Arc::new(self.legalized(&request)?);
                Unshaped {
                    key: request.identity.key.clone(),
                    info: legal.info.clone(),
                    legal: OnceCell::with_value(legal),
                    request,
                }
            }
        };
        let target = self.0.target.for_block(block.to_array());
        let asked = Asked {
            request: &unshaped.request,
            key: unshaped.request.identity.key.for_target(&target),
            target,
        };
        let mut no_code = None;
        let is_kept = match self.entry_key("code", &asked, None) {
            Some(key) if self.read(&asked, &key).is_some() => true,
            Some(key) => {
                let legal = self.legal(&unshaped)?.for_block(block.to_array());
                let made = self.generate(&legal, self.observer())?;
                no_code = why_interpreted(&made.code);
                self.write(&asked, &key, &made)
            }
            None => false,
        };
        if is_kept {
            return Ok(());
        }
        let why = no_code.or_else(|| self.0.disk.report().note);
        let why = why.unwrap_or_else(|| "it is of no form that is kept".to_owned());
        Err(CompileError::NotKept { kernel: name, why }.into())
    }

    /// What something is kept under. `None`: nothing is, or not of this kernel.
    fn entry_key(
        &self,
        what: &str,
        asked: &Asked<'_>,
        assembler: Option<&str>,
    ) -> Option<EntryKey> {
        let disk = &self.0.disk;
        if !disk.is_on() {
            return None;
        }
        let functions = own_functions(asked.request.snapshot.as_deref()?);
        if functions.is_none() {
            disk.refuse("a row's function cannot be told".to_owned());
        }
        Some(disk.key(what, &asked.key, &functions?, assembler))
    }

    /// What is kept under a key, if this device takes it.
    fn find(
        &self,
        asked: &Asked<'_>,
        key: &EntryKey,
        loaded: &mut Option<Box<dyn LoadedCode>>,
    ) -> Option<CompiledKernel> {
        let kept = self.read(asked, key)?;
        match self.load_code(&kept) {
            Ok(code) => {
                *loaded = Some(code);
                Some(kept)
            }
            Err(error) => {
                let why = format!("what is kept is not loaded: {error}");
                self.0.disk.refuse(why);
                None
            }
        }
    }

    /// What is kept under a key.
    fn read(&self, asked: &Asked<'_>, key: &EntryKey) -> Option<CompiledKernel> {
        let hooks = &self.0.hooks;
        let rows = KernelRows::of(asked.request.snapshot.as_deref()?, hooks);
        let find = |name: &str, digest: &[u8; 32]| rows.find(name, digest);
        let Kept { info, put_in, code } = self.0.disk.find(key, &find)?;
        let code = code.filter(|_| hooks.puts_in_all(&put_in))?;
        Some(CompiledKernel {
            info: Arc::new(info),
            target: asked.target.clone(),
            code,
            key: asked.key.clone().extended(HOOKS, &put_in),
            retargeted_by: None,
        })
    }

    /// What has come with the program: for the target that is asked for, or for a lesser one, which it runs.
    fn shipped(&self, what: &str, asked: &Asked<'_>) -> Option<(Kept, CompiledFor)> {
        let disk = &self.0.disk;
        if !disk.has_shipped() {
            return None;
        }
        let (snapshot, hooks) = (asked.request.snapshot.as_deref()?, &self.0.hooks);
        let functions = own_functions(snapshot)?;
        let rows = KernelRows::of(snapshot, hooks);
        let find = |name: &str, digest: &[u8; 32]| rows.find(name, digest);
        asked.target.and_lesser().find_map(|target| {
            let key = asked.key.for_target(&target);
            let entry = disk.shipped_key(what, &key, &functions);
            let kept = disk.find_shipped(&entry, &find)?;
            let key = key.extended(HOOKS, &kept.put_in);
            let is_whole = hooks.puts_in_all(&kept.put_in);
            is_whole.then_some((kept, CompiledFor { target, key }))
        })
    }

    /// Has the driver make machine code of PTX, where no hook has and it can; whether it has.
    fn assemble(
        &self,
        compiled: &mut CompiledKernel,
        loaded: &mut Option<Box<dyn LoadedCode>>,
    ) -> bool {
        let image = match &compiled.code {
            Code::Ptx(ptx) if ptx.assembled.is_none() => {
                let backend = self.0.device.backend();
                backend.assemble(&compiled.info.name, ptx)
            }
            _ => None,
        };
        let Some(image) = image else {
            return false;
        };
        let by = DRIVER.to_owned();
        set_assembled(compiled, Some(Assembled { image, by }));
        match self.load_code(compiled) {
            Ok(code) => *loaded = Some(code),
            Err(error) => {
                self.0.disk.refuse(error.to_string());
                set_assembled(compiled, None);
            }
        }
        loaded.is_some()
    }

    /// What the key of something says of rows that hooks have put in. `None`: it is not for the target that was asked for,
    /// or no hook lists one of the rows, so that it cannot be kept.
    fn put_in(&self, asked: &Asked<'_>, target: &Target, key: &CacheKey) -> Option<String> {
        let hooks = |key: &CacheKey| {
            let mut fields = key.fields();
            let field = fields.find(|(name, _)| *name == HOOKS);
            field.map(|(_, text)| text.to_owned())
        };
        let put_in = hooks(key)?.strip_prefix(&hooks(&asked.key)?)?.to_owned();
        let is_all = *key == asked.key.clone().extended(HOOKS, &put_in);
        let can_be_kept = is_all && *target == asked.target && self.0.hooks.puts_in_all(&put_in);
        can_be_kept.then_some(put_in)
    }

    /// Whether what was kept is what is made now.
    fn verify(
        &self,
        asked: &Asked<'_>,
        kept: (&KernelInfo, Option<&Code>),
        now: (&KernelInfo, Option<&Code>),
    ) -> Result<()> {
        let Some(what) = difference(kept, now) else {
            return Ok(());
        };
        let folder = self.0.disk.report().folder.unwrap_or_default();
        Err(CompileError::KeptDiffers {
            kernel: asked.request.name.clone(),
            folder: folder.display().to_string(),
            what,
        }
        .into())
    }
}

fn set_assembled(compiled: &mut CompiledKernel, assembled: Option<Assembled>) {
    if let Code::Ptx(ptx) = &mut compiled.code {
        ptx.assembled = assembled;
    }
}

/// Why code that is none is not kept.
fn why_interpreted(code: &Code) -> Option<String> {
    let Code::Interpreted { why, .. } = code else {
        return None;
    };
    let because = why.as_ref().map(|why| format!(", as {why}"));
    Some(format!(
        "it has no code, the interpreter runs it{}",
        because.unwrap_or_default()
    ))
}
