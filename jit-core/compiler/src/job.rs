//! Compile jobs: all that decides the code, as data.

use std::sync::Arc;

use crate::code::KernelInfo;
pub use crate::codegen::{CompileOptions, KernelIdentity, OptLevel};
use crate::hook::HookContext;
use crate::ir::Module;
use crate::legal::Legal;
use crate::target::Target;

/// One compilation: the specialized module and everything else that decides the code, as data.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompileJob {
    /// The kernel with everything it calls, in [`crate::ir::Phase::Specialized`].
    pub module: Module,
    /// What machine the code is for.
    pub target: Target,
    /// Options.
    pub options: CompileOptions,
    /// Identifies the code in fault records: the leading bytes of the cache key's digest.
    pub kernel_tag: u64,
    pub(crate) identity: Arc<KernelIdentity>,
    /// The hook that changed the target last, where that is not the one that was asked for.
    pub(crate) retargeted_by: Option<String>,
}

impl CompileJob {
    /// A job of its own, under no key.
    pub fn new(module: Module, target: Target, options: CompileOptions) -> CompileJob {
        let kernel = module.kernel().map(|kernel| &module.functions[kernel]);
        let mut identity = KernelIdentity::default();
        identity.attributes = kernel
            .map(|kernel| kernel.attributes.clone())
            .unwrap_or_default();
        CompileJob {
            module,
            target,
            options,
            kernel_tag: 0,
            identity: Arc::new(identity),
            retargeted_by: None,
        }
    }

    /// The job under a key, and what the kernel was specialized for.
    #[must_use]
    pub fn with_identity(self, identity: Arc<KernelIdentity>) -> CompileJob {
        CompileJob {
            kernel_tag: identity.key.tag(),
            identity,
            ..self
        }
    }

    /// What the kernel was specialized for, and the key that its code is kept under.
    pub fn identity(&self) -> &KernelIdentity {
        &self.identity
    }
}

/// A job whose module is legal: what the code for each shape of block is made of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LegalJob {
    /// The module.
    pub legal: Arc<Legal>,
    /// What machine the code is for.
    pub target: Target,
    /// Options.
    pub options: CompileOptions,
    /// What launches need to know.
    pub info: Arc<KernelInfo>,
    pub(crate) identity: Arc<KernelIdentity>,
    pub(crate) retargeted_by: Option<String>,
}

impl LegalJob {
    /// The job for blocks of a shape.
    #[doc(hidden)]
    pub fn for_block(&self, block: [u32; 3]) -> LegalJob {
        let target = self.target.for_block(block);
        let mut identity = KernelIdentity::clone(&self.identity);
        identity.key = identity.key.for_target(&target);
        LegalJob {
            target,
            identity: Arc::new(identity),
            ..self.clone()
        }
    }

    /// What the kernel was specialized for, and the key that its code is kept under.
    pub fn identity(&self) -> &KernelIdentity {
        &self.identity
    }

    /// What hooks may know of it.
    pub(crate) fn context(&self) -> HookContext<'_> {
        let info = &self.info;
        let (target, options) = (&self.target, &self.options);
        HookContext::new(&info.name, target, options, &self.identity, info.kernel_tag)
    }
}
