//! What Kiln does, as programs that use it see it: a module a subject, `cargo xtask test errors` runs one.
//!
//! Apart are the cases that run on every device (`tests/suite.rs`, `tests/gpu.rs`, `tests/litmus.rs`) and
//! what is measured in a process with little memory, which must be small (`tests/memory_limits.rs`).

mod alignment;
mod array_code;
mod block_arrays;
mod checks;
mod choices;
mod computed;
mod constants;
mod copied_out;
mod cpu_code;
mod cpu_warps;
mod directives;
mod errors;
mod foreign;
mod front_ends;
mod globals;
mod graphs;
mod growth;
mod hooks;
mod macros;
mod math;
mod math_exact;
mod math_pairs;
mod math_points;
mod math_rows;
mod memory_model;
mod nvcc;
mod peeled;
mod pipeline;
mod private;
mod ptx_functions;
mod rows;
mod safe_code;
mod scans;
mod search;
mod staged;
mod static_assertions;
mod warps;
