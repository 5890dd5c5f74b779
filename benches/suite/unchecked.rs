//! Kernels without bounds checks, as CUDA C++ has them.

use kiln::core::job::CompileOptions;

/// The options of a `Jit` whose kernels have no bounds checks, as users say them, so that there is nothing to be moved out of
/// loops. For kernels that stay within their buffers, as those of the suite do: on every device tests run them with checks,
/// too.
pub fn without_checks() -> CompileOptions {
    // SAFETY: kernels that it is for have no index out of bounds, with the arguments that they are launched with.
    unsafe { CompileOptions::default().unchecked() }
}
