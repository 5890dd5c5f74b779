//! One suite over all devices: every case is a function of a `Jit`, run without a GPU by `tests/suite.rs`
//! and on one by `tests/gpu.rs`. A case checks its results itself and panics if they are wrong.
//!
//! It is a crate, so that programs that run it share what rustc makes of it.
//!
//! The chapters `rust_*` are kernels as `#[kernel]` functions; the others are written with the builder.
//! The chapters `tricky_*` are kernels as CUDA programs have them, of the kind that compilers for
//! CPUs get wrong. What goes wrong in them by intent is elsewhere: faults in `faults`, races and
//! divergent barriers in `tests/checks`. Printing is left out, as the IR has none.

#[path = "../kernels/addresses.rs"]
pub mod address_kernels;
#[path = "../kernels/gpucc.rs"]
pub mod gpucc_kernels;
#[path = "../kernels/mod.rs"]
pub mod kernels;

mod addresses;
mod arithmetic;
mod array_again;
mod array_arguments;
mod array_beside;
mod array_numbers;
mod array_oracle;
mod array_order;
mod array_scatter;
mod array_search;
mod array_shapes;
mod array_sizes;
mod array_structure;
mod arrays;
mod barrier_votes;
mod block_orders;
mod block_sums;
mod blocks_beside;
pub mod cells;
mod control;
mod directives;
mod directives_arrays;
mod directives_computed;
mod directives_constants;
mod directives_copyout;
mod directives_data;
mod directives_forms;
mod directives_peeled;
mod directives_private;
pub mod directives_programs;
pub mod directives_random;
mod directives_reductions;
mod directives_scans;
mod directives_shared;
mod directives_warps;
mod extensions;
mod faults;
pub mod files;
mod gpucc;
mod graphs;
mod grids;
mod groups;
mod groups_built;
mod launching;
mod math;
pub mod math_errors;
mod memory;
mod memory_model;
mod named_barriers;
pub mod options;
mod parts;
pub mod programs;
pub mod quiet;
mod row_patterns;
mod rust_atomic_words;
mod rust_atomics;
mod rust_calls;
mod rust_carried;
mod rust_chains;
mod rust_choices;
mod rust_closures;
mod rust_comparisons;
mod rust_const_params;
mod rust_conversions;
mod rust_directed;
mod rust_floats;
mod rust_indices;
mod rust_integers;
mod rust_items;
mod rust_language;
mod rust_limits;
mod rust_math;
mod rust_memory;
mod rust_methods;
mod rust_offload;
mod rust_options;
mod rust_papers;
mod rust_patterns;
mod rust_print;
mod rust_random;
mod rust_ranges;
mod rust_references;
mod rust_results;
mod rust_returned;
mod rust_slices;
mod rust_special;
mod rust_threads;
mod rust_time;
mod rust_traits;
mod rust_types;
mod rust_values;
mod rust_vectors;
mod rust_views;
mod rust_words;
mod streams;
mod targets;
mod tricky_atomics;
pub mod tricky_barriers;
mod tricky_bits;
mod tricky_ends;
mod tricky_grids;
mod tricky_lanes;
mod tricky_rows;
mod tricky_tiles;
mod tricky_warps;
mod user_rows;
pub mod visibility;
mod warp;
mod warp_patterns;

use kiln::core::ir::IntrinsicDef;
use kiln::prelude::*;

/// What a case returns: an error fails it as a panic does.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A case.
#[derive(Copy, Clone, Debug)]
pub struct Case {
    /// The path of its function, from the crate on.
    path: &'static str,
    /// What it does.
    pub run: fn(&Jit) -> Outcome,
}

impl Case {
    /// Its chapter and its name, which no other case has: `control::loops_end`.
    pub fn path(&self) -> &'static str {
        self.path
            .split_once("::")
            .map_or(self.path, |(_, path)| path)
    }

    /// Its name in its chapter.
    pub fn name(&self) -> &'static str {
        self.path
            .rsplit_once("::")
            .map_or(self.path, |(_, name)| name)
    }
}

/// The row of the library or of a case with this name, for texts of the cases' kernels.
pub fn find_row(name: &str) -> Option<&'static IntrinsicDef> {
    let of_cases = || {
        let rows = [user_rows::find, row_patterns::find, extensions::find];
        rows.iter().find_map(|find| find(name))
    };
    kiln::stdlib::find(name).or_else(of_cases)
}

/// All cases.
pub fn cases() -> Vec<Case> {
    [
        arithmetic::CASES,
        math::CASES,
        control::CASES,
        directives::CASES,
        directives_arrays::CASES,
        directives_computed::CASES,
        directives_constants::CASES,
        directives_copyout::CASES,
        directives_data::CASES,
        directives_forms::CASES,
        directives_peeled::CASES,
        directives_private::CASES,
        directives_programs::CASES,
        directives_random::CASES,
        directives_reductions::CASES,
        directives_scans::CASES,
        directives_shared::CASES,
        directives_warps::CASES,
        memory::CASES,
        memory_model::CASES,
        named_barriers::CASES,
        faults::CASES,
        gpucc::CASES,
        graphs::CASES,
        launching::CASES,
        streams::CASES,
        parts::CASES,
        extensions::CASES,
        array_again::CASES,
        array_arguments::CASES,
        array_beside::CASES,
        array_numbers::CASES,
        array_oracle::CASES,
        array_order::CASES,
        array_scatter::CASES,
        array_search::CASES,
        array_shapes::CASES,
        array_sizes::CASES,
        array_structure::CASES,
        arrays::CASES,
        addresses::CASES,
        warp::CASES,
        barrier_votes::CASES,
        block_orders::CASES,
        block_sums::CASES,
        blocks_beside::CASES,
        grids::CASES,
        groups::CASES,
        groups_built::CASES,
        warp_patterns::CASES,
        tricky_grids::CASES,
        tricky_tiles::CASES,
        tricky_lanes::CASES,
        tricky_rows::CASES,
        tricky_warps::CASES,
        targets::CASES,
        tricky_atomics::CASES,
        tricky_ends::CASES,
        tricky_barriers::CASES,
        tricky_bits::CASES,
        user_rows::CASES,
        row_patterns::CASES,
        visibility::CASES,
        rust_atomic_words::CASES,
        rust_atomics::CASES,
        rust_calls::CASES,
        rust_carried::CASES,
        rust_chains::CASES,
        rust_choices::CASES,
        rust_closures::CASES,
        rust_comparisons::CASES,
        rust_const_params::CASES,
        rust_directed::CASES,
        rust_conversions::CASES,
        rust_floats::CASES,
        rust_indices::CASES,
        rust_integers::CASES,
        rust_items::CASES,
        rust_language::CASES,
        rust_limits::CASES,
        rust_math::CASES,
        rust_memory::CASES,
        rust_methods::CASES,
        rust_offload::CASES,
        rust_options::CASES,
        rust_print::CASES,
        rust_papers::CASES,
        rust_patterns::CASES,
        rust_random::CASES,
        rust_ranges::CASES,
        rust_references::CASES,
        rust_results::CASES,
        rust_returned::CASES,
        rust_special::CASES,
        rust_slices::CASES,
        rust_threads::CASES,
        rust_time::CASES,
        rust_traits::CASES,
        rust_types::CASES,
        rust_values::CASES,
        rust_vectors::CASES,
        rust_views::CASES,
        rust_words::CASES,
        programs::CASES,
    ]
    .concat()
}

/// Cases whose blocks wait for earlier ones, which would wait for ever if these began later.
pub const WAIT_FOR_EARLIER_BLOCKS: &[&str] = &["blocks_wait_for_earlier_ones"];

/// Names the functions of a chapter as its cases.
macro_rules! chapter {
    ($($name:ident),* $(,)?) => {
        /// The cases of this chapter.
        pub const CASES: &[$crate::Case] = &[$($crate::Case {
            path: concat!(module_path!(), "::", stringify!($name)),
            run: $name,
        }),*];
    };
}
pub(crate) use chapter;

/// A `Jit` on the same device and target that rounds each operation by itself, as the host does.
pub fn exact(jit: &Jit) -> Jit {
    let mut options = jit.options().clone();
    options.compile.contract = false;
    Jit::with(jit.device().clone(), jit.hooks().clone(), options)
}

/// A `Jit` on the same device and target whose kernels have no bounds checks, for those that stay in bounds.
pub fn unchecked(jit: &Jit) -> Jit {
    let mut options = jit.options().clone();
    options.compile = kiln_suite::without_checks();
    Jit::with(jit.device().clone(), jit.hooks().clone(), options)
}

/// Launches `kernel` with one thread an element of `out` and gives back `out`.
pub fn run_over<T: KernelType>(
    jit: &Jit,
    kernel: &Kernel,
    out: Vec<T>,
    more: &[kiln::core::args::Arg<'_>],
) -> kiln::Result<Vec<T>> {
    let mut buffer = jit.upload(&out)?;
    {
        let mut args = vec![kiln::core::args::IntoArg::into_arg(&mut buffer)];
        args.extend(more.iter().map(|a| a.duplicate().expect("it is no `&mut`")));
        jit.launch(kernel, grid_for(out.len(), 64), 64, &args)?;
    }
    buffer.to_vec()
}

/// Arguments of a launch that come after others: a list as `args!` makes it, or [`owned_args!`], which may
/// hold buffers as `&mut`.
pub trait MoreArgs<'a> {
    /// The arguments.
    fn into_list(self) -> Vec<kiln::core::args::Arg<'a>>;
}

impl<'a> MoreArgs<'a> for &[kiln::core::args::Arg<'a>] {
    fn into_list(self) -> Vec<kiln::core::args::Arg<'a>> {
        let duplicate = |arg: &kiln::core::args::Arg<'a>| arg.duplicate();
        let list = self.iter().map(duplicate).collect::<Option<_>>();
        list.expect("there is no `&mut` in it")
    }
}

impl<'a> MoreArgs<'a> for Vec<kiln::core::args::Arg<'a>> {
    fn into_list(self) -> Vec<kiln::core::args::Arg<'a>> {
        self
    }
}

/// `args!` as an owned list.
macro_rules! owned_args {
    ($($arg:expr),* $(,)?) => {
        vec![$(kiln::core::args::IntoArg::into_arg($arg)),*]
    };
}
pub(crate) use owned_args;

/// Launches `kernel` with a grid and a block of any shape, `out` as its first argument, waits for
/// it, and gives back `out`. A fault is an error.
pub fn run_blocks<'a, T: KernelType>(
    jit: &Jit,
    kernel: &Kernel,
    grid: impl Into<Dim3>,
    block: impl Into<Dim3>,
    out: &[T],
    more: impl MoreArgs<'a>,
) -> kiln::Result<Vec<T>> {
    let mut buffer = jit.upload(out)?;
    {
        let mut args = vec![kiln::core::args::IntoArg::into_arg(&mut buffer)];
        args.extend(more.into_list());
        jit.launch(kernel, grid, block, &args)?;
    }
    jit.synchronize()?;
    buffer.to_vec()
}
