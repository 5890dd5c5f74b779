//! The stages that a kernel goes through, each by itself: the IR's text and verifier, specialization, PTX,
//! the interpreter. `cargo xtask test -p kiln-jit-core specialize` runs one module.
//!
//! Apart are programs that hold something of their process: `cuda_driver` counts allocations and opens a
//! fake driver, `llvm_library` opens one library or another.

mod interpreter;
mod intrinsics;
mod ir_robustness;
mod kernels;
mod mutation;
mod ptx;
mod ptx_grid;
mod ptx_shapes;
mod rules;
mod seen_writes;
mod specialize;
