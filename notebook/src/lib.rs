//! Kiln as one shared library, for the cells of a Rust notebook.
//!
//! evcxr compiles every cell of a notebook to a library of its own and loads them all into one process.
//! A crate that is linked into a cell brings its statics with it: with an ordinary library each cell
//! would have a Kiln of its own, with an empty kernel cache. This crate is a `dylib`, which rustc links
//! to in place of the libraries that are in it, so all cells share one Kiln: one cache, one driver, one
//! LLVM.
//!
//! A notebook's first cell names this crate `kiln`, so cells read like programs (`use kiln::prelude::*;`)
//! and what the macros write, `::kiln::macros`, is found. `hello.ipynb` is the notebook to begin with;
//! `cargo xtask notebook` runs it as Jupyter does.
#![forbid(unsafe_code)]

pub use kiln::*;

/// `kiln::kernel_expr!`, with a type that stands here for evcxr: it has to know the type of each variable of a
/// notebook, and expands no procedural macro to find it. The launch that such a kernel has is
/// `jit.launch`.
#[macro_export]
macro_rules! kernel_expr {
    ($($kernel:tt)*) => {{
        let kernel: &'static $crate::core::front::LazyKernel =
            $crate::macros::kernel_expression!($($kernel)*);
        kernel
    }};
}
