//! Code for GPUs: the code of one thread, which the machine runs for all.
//!
//! | file | subject |
//! |---|---|
//! | `ptx` | the Isa for NVIDIA's GPUs |
//! | `amdgpu` | the Isa for AMD's GPUs |
//! | `kernel` | a kernel between lowering and code: passes, emission |
//! | `legal` | what the machine has; nothing else reaches LLVM |
//! | `lower`, `types` | a legal module as a module of LLVM, for any GPU |
//! | `nvptx` | what of that NVIDIA's GPUs have in their own way |
//! | `intrinsic`, `inline_ptx` | rows by their cells |
//! | `hooked_ptx` | inline PTX that hooks write |
//! | `call_numbers` | numbers of calls, counted from the text's first |
//! | `fault_text` | the function that records a fault, as text |
//! | `cold` | blocks in which a thread ends go last |
//! | `placeless` | addresses that LLVM's inference of address spaces forgets |
//! | `recomputed` | addresses that are computed again behind barriers |
//! | `roots` | square roots of `f32`, several by one question |
//! | `summed` | sums that are computed before barriers, as their summands are |
//! | `line_info` | source lines in PTX |
//! | `ptxas` | what `ptxas` makes wrong or slow of right PTX, written in another way |
//! | `on_host` | the code made to run on this CPU, for tests |

pub(crate) mod amdgpu;
mod call_numbers;
mod cold;
mod fault_text;
mod hooked_ptx;
mod inline_ptx;
mod intrinsic;
mod kernel;
mod legal;
mod line_info;
mod lower;
mod nvptx;
#[cfg(feature = "gpu-on-host")]
pub(crate) mod on_host;
mod placeless;
pub(crate) mod ptx;
mod ptxas;
mod recomputed;
mod roots;
mod summed;
mod types;
mod written_text;

#[cfg(test)]
pub(crate) use line_info::keep_directives;
pub use lower::kernel_entry_name;
#[cfg(test)]
pub(crate) use nvptx::HIDDEN_ADDRESS;
