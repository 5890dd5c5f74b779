//! Optimization levels and the LLVM pass pipeline of each.
//!
//! The pipelines are text in the syntax of `opt -passes=` and part of a compile's options, so that
//! a hook can replace them. They need the target machine: without it the NVPTX passes and cost
//! model are missing.

use inkwell::OptimizationLevel;

/// How much LLVM optimizes.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum OptLevel {
    /// Only what is needed to emit code.
    O0,
    /// A little.
    O1,
    /// Without the address passes of `O3`.
    O2,
    /// Everything; what kernels are compiled with.
    #[default]
    O3,
}

impl OptLevel {
    /// All levels.
    pub const ALL: [OptLevel; 4] = [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3];

    /// The pass pipeline for PTX.
    pub(crate) fn ptx_pipeline(self) -> &'static str {
        match self {
            OptLevel::O0 => "default<O0>",
            OptLevel::O1 => "default<O1>",
            OptLevel::O2 => "default<O2>",
            OptLevel::O3 => PTX_PIPELINE,
        }
    }

    /// The pass pipeline for the host, of a kernel in which loops ask to be unrolled by a factor or none does.
    pub(crate) fn host_pipeline(self, by_factors: bool) -> String {
        match self {
            OptLevel::O0 => FEW_PASSES.to_owned(),
            OptLevel::O1 => HOST_SHORT.to_owned(),
            OptLevel::O2 | OptLevel::O3 => {
                let by_factors = if by_factors { UNROLL_BY_FACTORS } else { "" };
                [HOST_TO_LOOPS, by_factors, HOST_FROM_LOOPS].concat()
            }
        }
    }

    /// How hard the host's back end tries.
    pub(crate) fn host_emission(self) -> OptimizationLevel {
        match self {
            OptLevel::O0 => OptimizationLevel::None,
            OptLevel::O1 | OptLevel::O2 => OptimizationLevel::Default,
            OptLevel::O3 => OptimizationLevel::Aggressive,
        }
    }
}

/// The optimization pipeline for PTX.
///
/// Straight-line code that was unrolled before LLVM sees it keeps its addresses as base plus
/// constant offset only if the offsets are split off before InstCombine runs, hence the pass
/// ahead of `default<O3>`. It sees nothing while variables are stack slots, hence `sroa` first;
/// address spaces are inferred early so that alias analysis knows them. Strength reduction of straight-line code (`slsr`)
/// and `nary-reassociate` are left to the code generator, which runs them anyway: their time grows with the
/// square of how many accesses there are, and run here, too, they change nothing (`benches/RESULTS.md`).
///
/// Addresses from inside of structs are values only after `default<O3>`. What it knows of alignment does not go
/// through a change of address space, so both are inferred behind it, before the code generator makes vectors of
/// accesses.
const PTX_PIPELINE: &str = "function(sroa<modify-cfg>,infer-address-spaces,\
     separate-const-offset-from-gep,early-cse<>),default<O3>,\
     function(infer-address-spaces,infer-alignment)";

/// The least that makes values of variables, for code that is compiled often and hardly run.
pub(super) const FEW_PASSES: &str = "function(sroa<modify-cfg>,early-cse<memssa>,\
     instcombine<no-verify-fixpoint>,simplifycfg)";

/// Passes that make most of the code of most kernels.
const HOST_SHORT: &str = "function(sroa<modify-cfg>,early-cse<memssa>,\
     instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn<pre>,\
     instcombine<no-verify-fixpoint>,simplifycfg)";

/// What kernels are compiled with, up to the passes over loops. They come as vectors, in one function, with their branches as
/// the author of the kernel wrote them: `default<O3>` takes 1.25 times as long and gives code that
/// is 5 % faster at best (benches/RESULTS.md).
const HOST_TO_LOOPS: &str = "function(sroa<modify-cfg>,early-cse<memssa>,\
     instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(loop-rotate,licm<allowspeculation>),\
     gvn<pre>,adce,loop(indvars,loop-deletion,loop-unroll-full),";

/// Unrolls the loops whose metadata has a factor, and no other.
const UNROLL_BY_FACTORS: &str = "loop-unroll<no-partial;no-runtime;no-upperbound;no-peeling;no-profile-peeling;full-unroll-max=0>,";

/// The passes after those over loops.
const HOST_FROM_LOOPS: &str = "sroa<modify-cfg>,instcombine<no-verify-fixpoint>,\
     jump-threading,correlated-propagation,loop-mssa(licm<allowspeculation>),gvn<pre>,\
     instcombine<no-verify-fixpoint>,dse,simplifycfg)";
