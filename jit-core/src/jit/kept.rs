//! From what was asked for to code: what memory does not have is looked for on disk, and compiled if it is not there
//! either.

use std::sync::Arc;

use once_cell::sync::OnceCell;

use super::{Jit, JitOptions};
use crate::cache::disk::{Disk, EntryKey, Kept, KernelRows, difference, own_functions};
use crate::cache::{CacheKey, LoadedKernel, Request, Unshaped};
use kiln_compiler::code::{Assembled, Code, CompiledKernel, KernelInfo};
use kiln_compiler::error::{CompileError, Result};
use kiln_compiler::hook::HookSet;
use kiln_compiler::job::{KernelIdentity, LegalJob};
use kiln_compiler::launch::Dim3;
use kiln_compiler::runtime::LoadedCode;
use kiln_compiler::target::Target;

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
        // Code for their machines is not kept.
        isas: _,
        cache,
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
    Disk::new(cache, against)
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
    pub(super) fn unshaped(&self, request: Request) -> Result<Unshaped> {
        let disk = &self.0.disk;
        let asked = Asked {
            target: self.0.target.clone(),
            key: request.identity.key.clone(),
            request: &request,
        };
        let key = self.entry_key("info", &asked, None);
        let kept = key.as_ref().and_then(|key| disk.find(key, &|_, _| None));
        let kept = kept.filter(|kept| self.0.hooks.puts_in_all(&kept.put_in));
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
            snapshot,
            specialization,
            identity,
        } = request;
        let job = self.job(snapshot, specialization, identity.clone())?;
        self.compiler(self.observer()).legalize(job)
    }

    /// The code that memory has under a key, or disk, or that `make` compiles.
    fn made(
        &self,
        asked: &Asked<'_>,
        key: &CacheKey,
        make: impl FnOnce() -> Result<CompiledKernel>,
    ) -> Result<LoadedKernel> {
        let mut loaded = None;
        let name = asked.request.snapshot.root.name();
        let compiled = self.0.cache.get_or_make(name, key, |compiles| {
            self.through_disk(asked, &mut loaded, || {
                compiles();
                make()
            })
        })?;
        self.check_params(&compiled.info)?;
        let code = match loaded {
            Some(code) => code,
            None => self.load_code(&compiled)?,
        };
        let mut identity = KernelIdentity::clone(&asked.request.identity);
        identity.key = compiled.key.clone();
        self.with_code(compiled, code, &identity)
    }

    /// What is kept, loaded, or what `compile` gives, which is then kept.
    fn through_disk(
        &self,
        asked: &Asked<'_>,
        loaded: &mut Option<Box<dyn LoadedCode>>,
        compile: impl FnOnce() -> Result<CompiledKernel>,
    ) -> Result<CompiledKernel> {
        let disk = &self.0.disk;
        let assembler = self.0.device.backend().assembler();
        let Some(key) = self.entry_key("code", asked, assembler.as_deref()) else {
            return compile();
        };
        let mut lock = None;
        let found = self.find(asked, &key, loaded).or_else(|| {
            // Another process may have made it by the time it gives up the lock.
            lock = disk.lock(&key);
            self.find(asked, &key, loaded)
        });
        if let Some(found) = found {
            disk.hit();
            if disk.verify {
                let now = compile()?;
                let kept = (&*found.info, Some(&found.code));
                self.verify(asked, kept, (&now.info, Some(&now.code)))?;
            }
            return Ok(found);
        }
        disk.miss();
        let mut compiled = compile()?;
        self.assemble(&mut compiled, loaded);
        if compiled.code.keep().is_some()
            && let Some(put_in) = self.put_in(asked, &compiled.target, &compiled.key)
        {
            disk.write(&key, (&compiled.info, &put_in), Some(&compiled.code));
        }
        drop(lock);
        Ok(compiled)
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
        let functions = own_functions(&asked.request.snapshot);
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
        let disk = &self.0.disk;
        let hooks = &self.0.hooks;
        let rows = KernelRows::of(&asked.request.snapshot, hooks);
        let kept = disk.find(key, &|name, digest| rows.find(name, digest))?;
        let Kept { info, put_in, code } = kept;
        if !hooks.puts_in_all(&put_in) {
            return None;
        }
        let kept = CompiledKernel {
            info: Arc::new(info),
            target: asked.target.clone(),
            code: code?,
            key: asked.key.clone().extended(HOOKS, &put_in),
            retargeted_by: None,
        };
        match self.load_code(&kept) {
            Ok(code) => {
                *loaded = Some(code);
                Some(kept)
            }
            Err(error) => {
                disk.refuse(format!("what is kept is not loaded: {error}"));
                None
            }
        }
    }

    /// Has the driver make machine code of PTX, where no hook has and it can.
    fn assemble(&self, compiled: &mut CompiledKernel, loaded: &mut Option<Box<dyn LoadedCode>>) {
        let image = match &compiled.code {
            Code::Ptx(ptx) if ptx.assembled.is_none() => {
                let backend = self.0.device.backend();
                backend.assemble(&compiled.info.name, ptx)
            }
            _ => None,
        };
        let Some(image) = image else {
            return;
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
            kernel: asked.request.snapshot.root.name().to_owned(),
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
