//! Forwarders: the LLVM-C functions this crate's dependents link against.
//!
//! inkwell and llvm-sys are built without linking LLVM and leave every `LLVM*` function undefined.
//! Each is defined here as one indirect jump through a slot of [`SLOTS`], so arguments and results
//! pass through untouched and no signature is needed. [`fill`] points the slots at an opened
//! libLLVM; until then they point at a stub that ends the process with a message, which only a
//! call made without [`super::library`] can reach.
//!
//! The symbols are hidden: they satisfy references inside the program or shared object they are
//! linked into, and neither appear in its dynamic symbol table nor can be replaced by another
//! libLLVM that the process may have loaded. A Rust `dylib` whose users call inkwell themselves
//! (its generic functions are compiled into the users) has to offer them; the feature
//! `export-llvm-symbols` makes them visible there, still bound to our own inside the dylib.

use std::arch::naked_asm;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::targets;

/// One row for each forwarder, in the order of [`SLOTS`].
struct Symbol {
    /// The C name, NUL-terminated as `dlsym` wants it.
    name: &'static CStr,
    /// Whether every LLVM 22 exports it (target initializers apart).
    needed: bool,
}

macro_rules! forwarders {
    ($($index:literal $name:ident $needed:literal;)*) => {
        $(
            // SAFETY: the symbol is defined once in a program (llvm-sys only declares it), and the
            // jump preserves every register and the stack, so the callee sees the caller's call.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name() {
                forward!($name, $index)
            }
        )*

        const SYMBOLS: &[Symbol] = &[
            $(Symbol {
                name: match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a symbol name has no inner NUL"),
                },
                needed: $needed,
            },)*
        ];
    };
}

#[cfg(all(not(target_vendor = "apple"), not(feature = "export-llvm-symbols")))]
macro_rules! visibility {
    () => {
        ".hidden "
    };
}

#[cfg(all(not(target_vendor = "apple"), feature = "export-llvm-symbols"))]
macro_rules! visibility {
    () => {
        ".protected "
    };
}

#[cfg(all(target_vendor = "apple", not(feature = "export-llvm-symbols")))]
macro_rules! visibility {
    () => {
        ".private_extern _"
    };
}

#[cfg(all(target_vendor = "apple", feature = "export-llvm-symbols"))]
macro_rules! visibility {
    () => {
        ".globl _"
    };
}

#[cfg(all(target_arch = "x86_64", not(target_vendor = "apple")))]
macro_rules! forward {
    ($name:ident, $index:literal) => {
        naked_asm!(
            concat!(visibility!(), stringify!($name)),
            "jmp qword ptr [rip + {slots} + {offset}]",
            slots = sym SLOTS,
            offset = const 8 * $index,
        )
    };
}

#[cfg(all(target_arch = "aarch64", not(target_vendor = "apple")))]
macro_rules! forward {
    ($name:ident, $index:literal) => {
        naked_asm!(
            concat!(visibility!(), stringify!($name)),
            "adrp x16, {slots} + {offset}",
            "ldr x16, [x16, :lo12:{slots} + {offset}]",
            "br x16",
            slots = sym SLOTS,
            offset = const 8 * $index,
        )
    };
}

#[cfg(all(target_arch = "x86_64", target_vendor = "apple"))]
macro_rules! forward {
    ($name:ident, $index:literal) => {
        naked_asm!(
            concat!(visibility!(), stringify!($name)),
            "jmp qword ptr [rip + {slots} + {offset}]",
            slots = sym SLOTS,
            offset = const 8 * $index,
        )
    };
}

#[cfg(all(target_arch = "aarch64", target_vendor = "apple"))]
macro_rules! forward {
    ($name:ident, $index:literal) => {
        naked_asm!(
            concat!(visibility!(), stringify!($name)),
            "adrp x16, {slots}@PAGE + {offset}",
            "ldr x16, [x16, {slots}@PAGEOFF + {offset}]",
            "br x16",
            slots = sym SLOTS,
            offset = const 8 * $index,
        )
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("kiln-jit-core forwards LLVM-C calls on x86_64 and aarch64 only");

include!(concat!(env!("OUT_DIR"), "/llvm_forwarders.rs"));

/// Where each forwarder jumps to.
static SLOTS: [AtomicPtr<c_void>; SYMBOLS.len()] =
    [const { AtomicPtr::new(unavailable as *mut c_void) }; SYMBOLS.len()];

/// What a slot holds until libLLVM is open, and for good where LLVM 22 has no such function.
extern "C" fn unavailable() -> ! {
    eprintln!(
        "kiln: an LLVM-C function was called that is not available: either libLLVM has not been \
         opened (kiln_jit_core::codegen::library() comes first) or LLVM 22 lacks the function"
    );
    std::process::abort()
}

/// What stands for the initializer of a target the library was built without.
extern "C" fn absent_target() {}

/// The address for each slot, all found.
pub(super) struct Addresses(Vec<*mut c_void>);

/// Looks every function up with `resolve`.
///
/// # Errors
/// The name of the first function that every LLVM 22 has and `resolve` does not find.
pub(super) fn addresses(
    resolve: impl Fn(&CStr) -> Option<*mut c_void>,
) -> Result<Addresses, &'static CStr> {
    let address = |symbol: &Symbol| match targets::initializer(symbol.name) {
        Some(own) => Ok(own),
        None => match resolve(symbol.name) {
            Some(address) => Ok(address),
            None if symbol.name.to_bytes().starts_with(b"LLVMInitialize") => {
                Ok(absent_target as *mut c_void)
            }
            None if symbol.needed => Err(symbol.name),
            None => Ok(unavailable as *mut c_void),
        },
    };
    SYMBOLS
        .iter()
        .map(address)
        .collect::<Result<_, _>>()
        .map(Addresses)
}

/// Points every slot at its function.
pub(super) fn fill(addresses: &Addresses) {
    for (slot, &address) in SLOTS.iter().zip(&addresses.0) {
        slot.store(address, Ordering::Release);
    }
}
