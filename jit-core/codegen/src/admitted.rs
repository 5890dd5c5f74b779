//! What a module of LLVM may refer to besides what is in it.
//!
//! LLVM's verifier lets pass what ends the process later: intrinsics that a back end cannot select, of
//! another machine, or that there are not; and it cannot know which symbols whoever loads the code has.
//! Kiln's own code keeps to closed tables; what hooks leave is looked through here.

use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys::LLVMTypeKind;
use inkwell::llvm_sys::core::{
    LLVMGetElementType, LLVMGetModuleInlineAsm, LLVMGetParam, LLVMGetTypeKind, LLVMTypeOf,
};
use inkwell::module::{Linkage, Module};
use inkwell::values::{AsValueRef as _, BasicValue as _, FunctionValue, InstructionOpcode};

use crate::llvm::inspect::assembly_of;

/// What a machine's code may refer to.
pub struct Admitted<'a> {
    /// The prefix of the intrinsics that only this machine has: `nvvm` of `llvm.nvvm.barrier0`.
    pub family: &'a str,
    /// Whether the machine's back end has an instruction for an intrinsic, told with the type of its first operand.
    pub intrinsic: fn(name: &str, float: Option<Float>) -> bool,
    /// Whether inline assembly is there by Kiln's doing, told by its template and its constraints. `None` if
    /// the machine's back end cannot be given any.
    pub assembly: Option<Box<dyn Fn(&str, &str) -> bool + 'a>>,
    /// LLVM's calling convention of the function where launches begin.
    pub entry_convention: u32,
    /// Whether whoever loads the code has a function or variable of this name.
    pub symbol: fn(name: &str) -> bool,
    /// Functions of rows that a hook has to link before the module is optimized, which looks for them, and those whose text goes
    /// behind the kernel's.
    pub linked: Vec<&'static str>,
}

/// A floating-point type of LLVM.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are those of the types")]
pub enum Float {
    F16,
    BF16,
    F32,
    F64,
}

/// Whether a hook vouches for inline assembly, by template and constraints.
type Vouched<'a> = dyn Fn(&str, &str) -> Result<bool, String> + 'a;

/// LLVM's families of machines: the first part of the names of their intrinsics.
const FAMILIES: [&str; 24] = [
    "aarch64",
    "amdgcn",
    "arm",
    "bpf",
    "directx",
    "dx",
    "hexagon",
    "loongarch",
    "mips",
    "nvvm",
    "ppc",
    "r600",
    "riscv",
    "s390",
    "spirv",
    "spv",
    "sve",
    "systemz",
    "ve",
    "wasm",
    "x86",
    "xcore",
    "lanai",
    "msp430",
];

impl Admitted<'_> {
    /// Whether a module with this entry refers to nothing else. `vouched` tells whether a hook vouches for
    /// inline assembly, by its template and its constraints, or what keeps it from telling.
    ///
    /// # Errors
    /// What it lacks, or refers to.
    pub fn check(
        &self,
        module: &Module<'_>,
        entry: &str,
        vouched: &Vouched<'_>,
    ) -> Result<(), String> {
        self.check_entry(module, entry)?;
        for function in module.get_functions() {
            if !has_body(function) && is_used(function) {
                self.check_declaration(function)?;
            }
        }
        self.check_assembly(module, vouched)?;
        for global in module.get_globals() {
            let name = global.get_name().to_string_lossy();
            let undefined = global.get_initializer().is_none();
            if undefined && !name.starts_with("llvm.") && !(self.symbol)(&name) {
                return Err(format!(
                    "the variable `{name}` has no value; give it an initializer"
                ));
            }
        }
        Ok(())
    }

    /// Whether launches can begin at the entry. LLVM's verifier does not mind a module without it, and its back ends
    /// give code that nobody can launch.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_entry(&self, module: &Module<'_>, entry: &str) -> Result<(), String> {
        let Some(function) = module.get_function(entry).filter(|f| has_body(*f)) else {
            return Err(format!(
                "there is no function `{entry}` any more, where launches begin"
            ));
        };
        if function.get_linkage() != Linkage::External {
            return Err(format!(
                "the function `{entry}`, where launches begin, cannot be seen from outside any more; leave its \
                 linkage external"
            ));
        }
        if function.get_call_conventions() != self.entry_convention {
            return Err(format!(
                "the function `{entry}`, where launches begin, is no kernel any more; leave its calling convention \
                 {}",
                self.entry_convention
            ));
        }
        Ok(())
    }

    /// LLVM's back ends end the process at some assembly that they cannot read, and no pass knows what it
    /// does; so it comes from where that is said.
    fn check_assembly(&self, module: &Module<'_>, vouched: &Vouched<'_>) -> Result<(), String> {
        let mut length = 0;
        // SAFETY: the module is live; the text is not read.
        unsafe { LLVMGetModuleInlineAsm(module.as_mut_ptr(), &raw mut length) };
        if length > 0 {
            return Err(
                "it has assembly beside its functions; link LLVM IR that does the same".to_owned(),
            );
        }
        for (template, constraints) in module.get_functions().flat_map(inline_assembly) {
            let Some(written) = &self.assembly else {
                return Err(format!(
                    "it holds the inline assembly `{template}`, and this machine's code can have none; \
                     write it as LLVM IR"
                ));
            };
            if !written(&template, &constraints) && !vouched(&template, &constraints)? {
                return Err(format!(
                    "it holds the inline assembly `{template}` with the constraints `{constraints}`, \
                     which no row of the kernel has and no hook vouches for; give an `IntrinsicDef` \
                     that PTX as its cell and call it from the IR, or answer for it by \
                     `Hook::vouches_for_assembly`"
                ));
            }
        }
        Ok(())
    }

    fn check_declaration(&self, function: FunctionValue<'_>) -> Result<(), String> {
        let name = function.get_name().to_string_lossy();
        let Some(rest) = name.strip_prefix("llvm.") else {
            return match (self.symbol)(&name) || self.linked.contains(&&*name) {
                true => Ok(()),
                false => Err(format!(
                    "it calls `{name}`, which is not in the module; link what defines it in \
                     `Hook::finish_module`"
                )),
            };
        };
        if Intrinsic::find(&name).is_none() {
            return Err(format!("LLVM has no intrinsic `{name}`"));
        }
        let family = rest.split('.').next().unwrap_or_default();
        if family != self.family && FAMILIES.contains(&family) {
            return Err(format!("`{name}` is an intrinsic of another machine"));
        }
        match (self.intrinsic)(&name, first_float(function)) {
            true => Ok(()),
            false => Err(format!(
                "LLVM's back end has no instruction for `{name}`; call a function of the device library \
                 in its place"
            )),
        }
    }
}

/// The inline assembly that a function calls: templates and constraints.
fn inline_assembly(function: FunctionValue<'_>) -> Vec<(String, String)> {
    let blocks = function.get_basic_block_iter();
    let calls = blocks
        .flat_map(|block| block.get_instructions())
        .filter(|instruction| {
            let opcode = instruction.get_opcode();
            use InstructionOpcode::{Call, CallBr, Invoke};
            matches!(opcode, Call | CallBr | Invoke)
        });
    calls.filter_map(assembly_of).collect()
}

fn has_body(function: FunctionValue<'_>) -> bool {
    function.count_basic_blocks() > 0
}

fn is_used(function: FunctionValue<'_>) -> bool {
    let address = function.as_global_value().as_pointer_value();
    address.get_first_use().is_some()
}

/// The floating-point type of a function's first operand, of a vector that of its lanes. inkwell would
/// panic at the tokens of coroutines.
fn first_float(function: FunctionValue<'_>) -> Option<Float> {
    if function.count_params() == 0 {
        return None;
    }
    // SAFETY: the function belongs to a live module and has a parameter; a vector has an element type.
    let kind = unsafe {
        let mut ty = LLVMTypeOf(LLVMGetParam(function.as_value_ref(), 0));
        if LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMVectorTypeKind {
            ty = LLVMGetElementType(ty);
        }
        LLVMGetTypeKind(ty)
    };
    match kind {
        LLVMTypeKind::LLVMHalfTypeKind => Some(Float::F16),
        LLVMTypeKind::LLVMBFloatTypeKind => Some(Float::BF16),
        LLVMTypeKind::LLVMFloatTypeKind => Some(Float::F32),
        LLVMTypeKind::LLVMDoubleTypeKind => Some(Float::F64),
        _ => None,
    }
}
