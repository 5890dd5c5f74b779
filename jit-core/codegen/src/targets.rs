//! What makes code for which target: the list of Kiln's own [`Isa`]s, and what a program adds for machines
//! of its own. The pipeline asks it; no file of a machine does.

use std::sync::Arc;

use kiln_ir::code::Code;
use kiln_ir::legal::Legal;
use kiln_ir::target::{CustomTarget, Target};

use crate::cpu::isa::CpuIsa;
use crate::gpu::amdgpu::{self, AmdgpuIsa};
#[cfg(feature = "gpu-on-host")]
use crate::gpu::on_host::OnHostIsa;
use crate::gpu::ptx::PtxIsa;
use crate::illegal::IllegalOperations;
use crate::isa::{DirectIsa, Generator, Isa};
use crate::llvm::error::BackendError;
use crate::options::CompileOptions;

/// What makes an [`Isa`] of a target.
type MakeIsa = dyn Fn(&CustomTarget) -> Arc<dyn Isa> + Send + Sync;

/// What makes code for which target: Kiln's own, and what a program adds for machines of its own.
#[derive(Clone, Default)]
pub struct Isas {
    custom: Vec<(&'static str, Arc<MakeIsa>)>,
}

impl std::fmt::Debug for Isas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let families = self.custom.iter().map(|(family, _)| family);
        f.debug_list().entries(families).finish()
    }
}

impl Isas {
    /// Has code for the machines of a family ([`CustomTarget::family`]) made by what `make` gives; what
    /// was there for the family before is replaced.
    #[must_use]
    pub fn with(
        mut self,
        family: &'static str,
        make: impl Fn(&CustomTarget) -> Arc<dyn Isa> + Send + Sync + 'static,
    ) -> Isas {
        self.custom.retain(|(known, _)| *known != family);
        self.custom.push((family, Arc::new(make)));
        self
    }

    /// Whether these are the code generators that Kiln has, and no others.
    #[doc(hidden)]
    pub fn are_kilns(&self) -> bool {
        self.custom.is_empty()
    }

    /// What makes code for a target, if there is something.
    pub fn of(&self, target: &Target) -> Option<Arc<dyn Isa>> {
        Some(match target {
            Target::Ptx(ptx) => Arc::new(PtxIsa::new(*ptx)),
            Target::Cpu(cpu) => Arc::new(CpuIsa::new(cpu.clone())),
            Target::Interpreter => Arc::new(Interpreted),
            Target::Custom(custom) => {
                let mut known = self.custom.iter();
                match known.find(|(family, _)| *family == custom.family) {
                    Some((_, make)) => make(custom),
                    None => own(custom)?,
                }
            }
        })
    }
}

/// What Kiln itself has for a machine that a family and settings say all about.
fn own(target: &CustomTarget) -> Option<Arc<dyn Isa>> {
    match target.family {
        amdgpu::FAMILY => Some(Arc::new(AmdgpuIsa::new(target)?)),
        #[cfg(feature = "gpu-on-host")]
        kiln_ir::gpu_on_host::FAMILY => Some(Arc::new(OnHostIsa::new(target)?)),
        _ => None,
    }
}

/// The interpreter takes legal modules as they are.
struct Interpreted;

impl Isa for Interpreted {
    fn fingerprint(&self) -> String {
        "none".to_owned()
    }

    fn check(&self, _: &Legal) -> Result<(), IllegalOperations> {
        Ok(())
    }

    fn generator(&self) -> Generator<'_> {
        Generator::Direct(self)
    }
}

impl DirectIsa for Interpreted {
    fn emit(&self, legal: &Arc<Legal>, _: &CompileOptions) -> Result<Code, BackendError> {
        Ok(Code::Interpreted {
            legal: legal.clone(),
            why: None,
        })
    }
}
