//! The `LLVM_Initialize*` functions, for the targets Kiln compiles for.
//!
//! In C these are inline functions of `llvm-c/Target.h`, so libLLVM does not export them and
//! llvm-sys declares them for a C wrapper that is not built when LLVM is not linked. They are
//! defined here for NVPTX and the processor the program runs on; "all targets" means these two.

use std::ffi::{CStr, c_void};

use inkwell::llvm_sys::prelude::LLVMBool;
use inkwell::llvm_sys::target::{
    LLVMInitializeNVPTXAsmPrinter, LLVMInitializeNVPTXTarget, LLVMInitializeNVPTXTargetInfo,
    LLVMInitializeNVPTXTargetMC,
};

#[cfg(target_arch = "aarch64")]
use inkwell::llvm_sys::target::{
    LLVMInitializeAArch64AsmParser as native_asm_parser,
    LLVMInitializeAArch64AsmPrinter as native_asm_printer,
    LLVMInitializeAArch64Disassembler as native_disassembler,
    LLVMInitializeAArch64Target as native_target,
    LLVMInitializeAArch64TargetInfo as native_target_info,
    LLVMInitializeAArch64TargetMC as native_target_mc,
};
#[cfg(target_arch = "x86_64")]
use inkwell::llvm_sys::target::{
    LLVMInitializeX86AsmParser as native_asm_parser,
    LLVMInitializeX86AsmPrinter as native_asm_printer,
    LLVMInitializeX86Disassembler as native_disassembler, LLVMInitializeX86Target as native_target,
    LLVMInitializeX86TargetInfo as native_target_info,
    LLVMInitializeX86TargetMC as native_target_mc,
};

/// What LLVM's inline functions return on success.
const OK: LLVMBool = 0;

/// The address of our definition of `name`, if it is one of the functions libLLVM lacks.
pub(super) fn initializer(name: &CStr) -> Option<*mut c_void> {
    let address = match name.to_bytes() {
        b"LLVM_InitializeAllTargetInfos" => all_target_infos as *mut c_void,
        b"LLVM_InitializeAllTargets" => all_targets as *mut c_void,
        b"LLVM_InitializeAllTargetMCs" => all_target_mcs as *mut c_void,
        b"LLVM_InitializeAllAsmPrinters" => all_asm_printers as *mut c_void,
        b"LLVM_InitializeAllAsmParsers" => native_asm_parser as *mut c_void,
        b"LLVM_InitializeAllDisassemblers" => native_disassembler as *mut c_void,
        b"LLVM_InitializeNativeTarget" => this_target as *mut c_void,
        b"LLVM_InitializeNativeAsmParser" => this_asm_parser as *mut c_void,
        b"LLVM_InitializeNativeAsmPrinter" => this_asm_printer as *mut c_void,
        b"LLVM_InitializeNativeDisassembler" => this_disassembler as *mut c_void,
        _ => return None,
    };
    Some(address)
}

extern "C" fn all_target_infos() {
    // SAFETY: libLLVM is open, as these functions are only reachable through filled slots;
    // registering a target's description twice has no effect.
    unsafe {
        LLVMInitializeNVPTXTargetInfo();
        native_target_info();
    }
}

extern "C" fn all_targets() {
    // SAFETY: as in `all_target_infos`.
    unsafe {
        LLVMInitializeNVPTXTarget();
        native_target();
    }
}

extern "C" fn all_target_mcs() {
    // SAFETY: as in `all_target_infos`.
    unsafe {
        LLVMInitializeNVPTXTargetMC();
        native_target_mc();
    }
}

extern "C" fn all_asm_printers() {
    // SAFETY: as in `all_target_infos`.
    unsafe {
        LLVMInitializeNVPTXAsmPrinter();
        native_asm_printer();
    }
}

extern "C" fn this_target() -> LLVMBool {
    // SAFETY: as in `all_target_infos`.
    unsafe {
        native_target_info();
        native_target();
        native_target_mc();
    }
    OK
}

extern "C" fn this_asm_parser() -> LLVMBool {
    // SAFETY: as in `all_target_infos`.
    unsafe { native_asm_parser() };
    OK
}

extern "C" fn this_asm_printer() -> LLVMBool {
    // SAFETY: as in `all_target_infos`.
    unsafe { native_asm_printer() };
    OK
}

extern "C" fn this_disassembler() -> LLVMBool {
    // SAFETY: as in `all_target_infos`.
    unsafe { native_disassembler() };
    OK
}
