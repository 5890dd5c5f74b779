//! The proof that a module may become code: what backends and the interpreter take.

mod proved;

use std::ops::Deref;

use crate::abi::ParamLayout;
use crate::fault::{FaultSite, fault_insts, fault_sites};
use crate::{
    FuncId, Function, Inst, Module, Phase, VerifyErrors, debug_as_text, error_text, verify,
};

pub use proved::{LegalTypes, Proved, jumped_to};

/// A module that was verified in [`Phase::Legal`] and has a kernel, with what follows from that.
///
/// There is no way to change the module inside, and none to make one without the verifier. A clone of
/// the module is a module again, and needs a proof of its own.
#[derive(Debug)]
pub struct Legal {
    module: Module,
    kernel: FuncId,
    layout: ParamLayout,
    fault_insts: Vec<(FuncId, Inst)>,
}

/// Why a module is not legal.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotLegal {
    /// A module that breaks rules of the IR.
    #[error(transparent)]
    Broken(#[from] VerifyErrors),
    /// A module of another phase.
    #[error("{}", error_text!(
        "module `{module}` is in phase `{phase}`, and code is made of modules in phase `legal`; \
         specialize it, and let `compile` lower its ABI"
    ))]
    Phase {
        /// The module.
        module: String,
        /// The module's phase.
        phase: &'static str,
    },
    /// A module of device functions only.
    #[error("{}", error_text!(
        "module `{module}` has no kernel that can be launched; add a function of kind `kernel`"
    ))]
    NoKernel {
        /// The module.
        module: String,
    },
}

debug_as_text!(NotLegal);

impl NotLegal {
    /// The module is of the wrong phase.
    pub fn phase_of(module: &Module) -> NotLegal {
        NotLegal::Phase {
            phase: module.phase.name(),
            module: module.name.clone(),
        }
    }
}

impl Legal {
    /// Verifies a module.
    ///
    /// # Errors
    /// Every broken rule; a module of another phase or without a kernel.
    pub fn new(module: Module) -> Result<Legal, NotLegal> {
        verify(&module)?;
        if module.phase != Phase::Legal {
            return Err(NotLegal::phase_of(&module));
        }
        let proof = (module.kernel(), ParamLayout::of(&module));
        let (Some(kernel), Some(layout)) = proof else {
            return Err(NotLegal::NoKernel {
                module: module.name,
            });
        };
        Ok(Legal {
            kernel,
            layout,
            fault_insts: fault_insts(&module),
            module,
        })
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The kernel.
    pub fn kernel(&self) -> &Function {
        &self.module.functions[self.kernel]
    }

    /// How arguments are passed.
    pub fn layout(&self) -> &ParamLayout {
        &self.layout
    }

    /// The instructions that can fault, in the order of their site numbers.
    pub fn fault_insts(&self) -> &[(FuncId, Inst)] {
        &self.fault_insts
    }

    /// Where the kernel can fault, for turning a record into an error.
    pub(crate) fn fault_sites(&self) -> Vec<FaultSite> {
        fault_sites(&self.module)
    }
}

impl Deref for Legal {
    type Target = Module;

    fn deref(&self) -> &Module {
        &self.module
    }
}
