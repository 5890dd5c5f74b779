//! What a hook may know of the kernel besides what it is given to change.

use inkwell::module::Module;

use kiln_ir::target::Target;
use kiln_ir::{AttributeValue, Attributes, CacheKey, TypeForm};

use crate::llvm::error::BackendError;
use crate::llvm::machine::run_passes_of_no_machine;
use crate::llvm::session::link_bitcode;
use crate::options::CompileOptions;

/// What a kernel was specialized for, and the key that its code is kept under. Empty for a job that is
/// compiled by itself, under no key.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KernelIdentity {
    /// The kernel's type parameters, in order: name and type.
    pub type_args: Vec<(String, &'static TypeForm)>,
    /// The kernel's const parameters by name: an integer, or 0 or 1 for a bool.
    pub const_args: Vec<(String, i128)>,
    /// All that decides the code.
    pub key: CacheKey,
    /// What is said of the kernel for hooks to read.
    pub attributes: Attributes,
}

/// What a hook may know besides what it is given to change.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct HookContext<'a> {
    /// The kernel's name.
    pub kernel: &'a str,
    /// What machine the code is for; where code depends on the shape of blocks and is being made, with that.
    pub target: &'a Target,
    /// The options.
    pub options: &'a CompileOptions,
    /// The kernel's type parameters, in order: name and type. Empty in a job that is compiled by itself.
    pub type_args: &'a [(String, &'static TypeForm)],
    /// The kernel's const parameters by name: an integer, or 0 or 1 for a bool. Empty in a job that is
    /// compiled by itself.
    pub const_args: &'a [(String, i128)],
    /// The key that the code is kept under, field by field; its digest tells codes apart. At the points on the IR it
    /// does not yet say which rows of intrinsics hooks put in. Empty in a job that is compiled by itself.
    pub key: &'a CacheKey,
    /// What is said of the kernel for hooks to read.
    pub attributes: &'a Attributes,
    /// Identifies the kernel in fault records and in the name of its entry.
    pub tag: u64,
}

impl<'a> HookContext<'a> {
    /// What is known of a kernel.
    pub fn new(
        kernel: &'a str,
        target: &'a Target,
        options: &'a CompileOptions,
        identity: &'a KernelIdentity,
        tag: u64,
    ) -> HookContext<'a> {
        HookContext {
            kernel,
            target,
            options,
            type_args: &identity.type_args,
            const_args: &identity.const_args,
            key: &identity.key,
            attributes: &identity.attributes,
            tag,
        }
    }

    /// Runs passes of LLVM's over a module, in the notation of `opt -passes`: for hooks that want some of their
    /// own before or after the pipeline. They know nothing of the machine, so that nothing becomes a vector.
    ///
    /// # Errors
    /// Of stage `optimize`, if LLVM cannot read the text.
    pub fn run_passes(&self, module: &Module<'_>, passes: &str) -> Result<(), BackendError> {
        run_passes_of_no_machine(module, passes)
    }

    /// Links a bitcode file into a module: its functions are internal ones of the module then, and those that nothing
    /// calls are left out. A row's [`Cell::function`](kiln_ir::Cell::function) calls them. What they ask by `__nvvm_reflect` is
    /// answered: the architecture times 10, whether the kernel flushes, whether roots and quotients are rounded, which they are
    /// unless the kernel's may be approximated, 0 of anything else. The functions flush as the kernel does, whatever they were compiled for. `name` is for errors.
    ///
    /// # Errors
    /// Of stage `link`, if the bytes are not bitcode that LLVM 22 reads, are for another machine, or have a function that
    /// the module defines, too, or calls with other types, or that asks `__nvvm_reflect` what is no constant.
    pub fn link_bitcode(
        &self,
        module: &Module<'_>,
        bitcode: &[u8],
        name: &str,
    ) -> Result<(), BackendError> {
        let sm = match self.target {
            Target::Ptx(target) => Some(target.sm),
            _ => None,
        };
        link_bitcode(module, bitcode, name, sm)
    }

    /// The type that a type parameter of the kernel has.
    pub fn type_arg(&self, name: &str) -> Option<&'static TypeForm> {
        by_name(self.type_args, name)
    }

    /// What an attribute of the kernel says, if it is there.
    pub fn attribute(&self, name: &str) -> Option<&'a AttributeValue> {
        self.attributes.get(name)
    }

    /// Whether an attribute of the kernel is there and does not say no.
    pub fn has_attribute(&self, name: &str) -> bool {
        self.attributes.has(name)
    }

    /// The value that a const parameter of the kernel has: an integer, or 0 or 1 for a bool.
    pub fn const_arg(&self, name: &str) -> Option<i128> {
        by_name(self.const_args, name)
    }
}

fn by_name<T: Copy>(list: &[(String, T)], name: &str) -> Option<T> {
    let found = list.iter().find(|(known, _)| known == name);
    found.map(|&(_, value)| value)
}
