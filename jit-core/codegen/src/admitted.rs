//! What a module of LLVM may refer to besides what is in it.
//!
//! LLVM's verifier lets pass what ends the process later: intrinsics that a back end cannot select, of
//! another machine, or that there are not; and it cannot know which symbols whoever loads the code has.
//! Kiln's own code keeps to closed tables; what hooks leave is looked through here.

use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys::LLVMTypeKind;
use inkwell::llvm_sys::core::{LLVMGetElementType, LLVMGetParam, LLVMGetTypeKind, LLVMTypeOf};
use inkwell::module::Module;
use inkwell::values::{AsValueRef as _, BasicValue as _, FunctionValue};

/// What a machine's code may refer to.
pub struct Admitted<'a> {
    /// The prefix of the intrinsics that only this machine has: `nvvm` of `llvm.nvvm.barrier0`.
    pub family: &'a str,
    /// Whether its back end has an instruction for an intrinsic, told with the type of its first operand.
    pub intrinsic: fn(name: &str, float: Option<Float>) -> bool,
    /// Whether whoever loads the code has a function or variable of this name.
    pub symbol: fn(name: &str) -> bool,
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
    /// Whether a module with this entry refers to nothing else.
    ///
    /// # Errors
    /// What it lacks, or refers to.
    pub fn check(&self, module: &Module<'_>, entry: &str) -> Result<(), String> {
        let has_body = |function: FunctionValue<'_>| function.count_basic_blocks() > 0;
        if !module.get_function(entry).is_some_and(has_body) {
            return Err(format!(
                "there is no function `{entry}` any more, where launches begin"
            ));
        }
        for function in module.get_functions() {
            if !has_body(function) && is_used(function) {
                self.check_declaration(function)?;
            }
        }
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

    fn check_declaration(&self, function: FunctionValue<'_>) -> Result<(), String> {
        let name = function.get_name().to_string_lossy();
        let Some(rest) = name.strip_prefix("llvm.") else {
            return match (self.symbol)(&name) {
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
