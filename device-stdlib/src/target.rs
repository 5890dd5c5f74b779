//! Questions about the machine that a kernel is compiled for (CUDA guide, `__CUDA_ARCH__`; CUDA.jl, `compute_capability`).
//!
//! They are answered before code is made, and what they decide of branches is left out: it may use what only other machines
//! have, and costs nothing.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn tell(out: &mut [u32]) {
//!     if !target_is_gpu() {
//!         out[0] = 1;
//!     } else if target_sm() >= 90 {
//!         out[0] = 2;
//!     } else {
//!         out[0] = 3;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::on(Device::cpu());
//! let mut out = jit.zeros(1)?;
//! tell.launch(&jit, (1, 1), &mut out)?;
//! assert_eq!(out.to_vec()?, [1]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::ir::Known;

use crate::table::operations;

operations! {
    /// Questions about the target, as methods of the builder.
    builder TargetQuestions;

    /// Whether the kernel is compiled for a GPU.
    fn target_is_gpu() -> bool {
        false
    } = row("target.is_gpu").known_as(Known::TargetIsGpu);

    /// The architecture of the NVIDIA GPU that the kernel is compiled for, 90 for sm_90 (CUDA `__CUDA_ARCH__` divided by
    /// 10); 0 for any other machine.
    fn target_sm() -> u32 {
        0
    } = row("target.sm").known_as(Known::TargetSm);
}
