//! Optimization levels and the LLVM pass pipeline of each.
//!
//! The pipelines are text in the syntax of `opt -passes=` and part of a compile's options, so that
//! a hook can replace them. They need the target machine: without it the NVPTX passes and cost
//! model are missing.

use inkwell::OptimizationLevel;

use kiln_ir::{Module, Type};

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

    /// The pass pipeline for PTX, of a kernel whose operations the machine may have for several numbers at once
    /// ([`has_packs`]) or not.
    pub(crate) fn ptx_pipeline(self, packs: bool) -> String {
        match self {
            OptLevel::O3 => {
                let pack = if packs { PACK } else { "" };
                [PTX_TO_PACKS, pack, PTX_FROM_PACKS].concat()
            }
            fewer => fewer.of_llvm().to_owned(),
        }
    }

    /// The pass pipeline for AMD's GPUs.
    pub(crate) fn amd_pipeline(self) -> String {
        match self {
            OptLevel::O3 => AMD_PIPELINE.to_owned(),
            fewer => fewer.of_llvm().to_owned(),
        }
    }

    /// LLVM's own pipeline of the level.
    fn of_llvm(self) -> &'static str {
        match self {
            OptLevel::O0 => "default<O0>",
            OptLevel::O1 => "default<O1>",
            OptLevel::O2 => "default<O2>",
            OptLevel::O3 => "default<O3>",
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

/// The optimization pipeline for PTX, up to where operations are packed: what `default<O3>` is for NVPTX, without the passes
/// that change no code of the suite, each left out alone and all together (`benches/RESULTS.md`), nor the second runs of those
/// that change it by hardly an instruction.
///
/// Straight-line code that was unrolled before LLVM sees it keeps its addresses as base plus
/// constant offset only if the offsets are split off before InstCombine runs, hence the pass at the start.
/// It sees nothing while variables are stack slots, hence `sroa` first;
/// address spaces are inferred early so that alias analysis knows them. Strength reduction of straight-line code (`slsr`)
/// and `nary-reassociate` are left to the code generator, which runs them anyway: their time grows with the
/// square of how many accesses there are.
///
/// Counters are not looked at again behind the first unrolling, nor variables before inlining: no code of the suite changes
/// by either.
///
/// `loop-unroll-full` has the thresholds of `O2` here, and those of `O3` only inside of `default<O3>`; `loop-unroll<O3;..>`
/// before it, without what makes copies of less than all turns, unrolls what that would. Loops that ask for a factor are
/// unrolled by it there.
const PTX_TO_PACKS: &str = "function(sroa<modify-cfg>,infer-address-spaces,\
     separate-const-offset-from-gep,early-cse<>),\
     nvvm-reflect,function(nvvm-intr-range),inferattrs,\
     function<eager-inv>(lower-expect,simplifycfg,early-cse<>),ipsccp,globalopt,always-inline,\
     cgscc(devirt<4>(inline,function-attrs<skip-non-recursive-function-attrs>,argpromotion,\
     function<eager-inv;no-rerun>(speculative-execution<only-if-divergent-target>,\
     instcombine<no-verify-fixpoint>,aggressive-instcombine,reassociate,constraint-elimination,\
     loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,loop-rotate,licm<allowspeculation>,\
     simple-loop-unswitch<nontrivial;trivial>),\
     simplifycfg<switch-range-to-icmp>,instcombine<no-verify-fixpoint>,\
     loop(loop-idiom,indvars,loop-deletion),loop-unroll<O3;no-partial;no-runtime;no-upperbound>,\
     loop(loop-deletion,loop-unroll-full),\
     sroa<modify-cfg>,gvn<>,sccp,bdce,correlated-propagation,memcpyopt,dse,loop-mssa(licm<allowspeculation>),\
     simplifycfg<switch-range-to-icmp;hoist-common-insts;sink-common-insts>),function-attrs)),\
     deadargelim,globalopt,globaldce,\
     function<eager-inv>(drop-unnecessary-assumes,float2int,lower-constant-intrinsics,\
     loop(loop-rotate,loop-deletion),\
     loop-vectorize<interleave-forced-only;vectorize-forced-only>,\
     simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-lookup;no-keep-loops;hoist-common-insts;sink-common-insts>,";

/// Makes one operation of several on numbers of fewer than 32 bits, or pairs of `f32` where the machine has them.
const PACK: &str = "slp-vectorizer,instcombine<no-verify-fixpoint>,";

/// The passes after that.
///
/// `vector-combine` reads one element of a vector where no other is used.
/// Addresses from inside of structs are values only now. What LLVM knows of alignment does not go
/// through a change of address space, so both are inferred at the end, before the code generator makes vectors of
/// accesses.
const PTX_FROM_PACKS: &str = "vector-combine,loop-unroll<O3>,sroa<preserve-cfg>,instcombine<no-verify-fixpoint>,\
     loop-mssa(licm<allowspeculation>),alignment-from-assumptions,div-rem-pairs,simplifycfg<switch-range-to-icmp>),\
     globaldce,constmerge,function(infer-address-spaces,infer-alignment)";

/// The optimization pipeline for AMD's GPUs, whose back end adds passes of its own to `default<O3>`.
const AMD_PIPELINE: &str = "function(sroa<modify-cfg>,infer-address-spaces,\
     separate-const-offset-from-gep,early-cse<>),default<O3>,\
     function(infer-address-spaces,infer-alignment)";

/// The first architecture that adds and multiplies two `f32` at once (PTX ISA, `add.f32x2`).
const PAIRS_OF_F32: u32 = 100;

/// Whether NVIDIA's GPUs of an architecture may have one operation for several of a kernel's numbers.
pub(crate) fn has_packs(sm: u32, kernel: &Module) -> bool {
    let mut functions = kernel.functions.values();
    let is_short = |ty: Type| {
        let lane = kernel.types.as_vector(ty).map(|(lane, _)| lane);
        let number = ty.as_scalar().or(lane);
        number.is_some_and(|number| !number.is_bool() && number.bytes() < 4)
    };
    sm >= PAIRS_OF_F32
        || functions.any(|function| function.values.values().any(|value| is_short(value.ty)))
}

/// The least that makes values of variables, for code that is compiled often and hardly run.
pub(super) const FEW_PASSES: &str = "function(sroa<modify-cfg>,early-cse<memssa>,\
     instcombine<no-verify-fixpoint>,simplifycfg)";

/// Passes that make most of the code of most kernels for GPUs, in time that grows with the number of their blocks.
pub(super) const GPU_SHORT: &str = "always-inline,cgscc(inline),globaldce,function(sroa<modify-cfg>,infer-address-spaces,\
     separate-const-offset-from-gep,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,\
     loop-mssa(loop-rotate,licm<allowspeculation>),loop(indvars,loop-deletion,loop-unroll-full),\
     sroa<modify-cfg>,early-cse<memssa>,simplifycfg,infer-alignment)";

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
