//! Whether the memory is there that LLVM is expected to take.
//!
//! LLVM ends the process when it cannot allocate. So before it is opened, and before each compile, as
//! much memory as that usually takes at its peak is asked of the system and given back: if it is not
//! there, that is an error. It is no promise: other threads may take the memory meanwhile, and a
//! kernel may take more than is usual.

use memmap2::MmapMut;

use kiln_ir::Module;

use super::error::CompileThreadError;

/// What opening LLVM takes, in bytes: the library's pages, and what it makes when it starts.
const OPENING: usize = 256 << 20;

/// What a compile takes at least, its thread's stack included.
const SMALLEST: usize = 160 << 20;

/// What an instruction of a kernel takes besides: on a CPU it becomes some twenty of LLVM's, in each of
/// several forms.
const INSTRUCTION: usize = 16 << 10;

/// What compiling a module is expected to take.
pub(super) fn expected(module: &Module) -> usize {
    let insts: usize = module.functions.values().map(|f| f.insts.len()).sum();
    SMALLEST.saturating_add(insts.saturating_mul(INSTRUCTION))
}

/// What compiling something small is expected to take.
#[cfg(test)]
pub(super) const fn least() -> usize {
    SMALLEST
}

/// Tries whether so many bytes can be had, and some more if LLVM is still to be opened.
///
/// # Errors
/// They cannot.
pub(super) fn try_for(kernel: &str, bytes: usize, is_open: bool) -> Result<(), CompileThreadError> {
    let bytes = bytes.saturating_add(if is_open { 0 } else { OPENING });
    // The pages are not touched, so this costs a call of the system.
    match MmapMut::map_anon(bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(CompileThreadError::Memory {
            kernel: kernel.to_owned(),
            bytes,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_an_error() {
        assert!(try_for("k", least(), true).is_ok());
        let error = try_for("k", 1 << 60, true).expect_err("no machine has that");
        assert!(error.to_string().starts_with("compiling kernel `k` needs"));
    }
}
