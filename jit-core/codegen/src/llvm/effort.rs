//! How hard LLVM tries: as hard as it can for ordinary kernels, and less for large ones, so that what a
//! compile takes grows about as the kernel does.
//!
//! Much of LLVM takes time that grows with the square of a function's size or faster. Three things are
//! done about it, on a CPU:
//! - The knobs of LLVM that bound single algorithms are set lower ([`set_knobs`]).
//! - Long blocks are cut (`split.rs`), as what schedules instructions compares those of a block in pairs.
//! - A kernel of more than [`LARGE`] is compiled with few passes and the quick code generator
//!   ([`Effort::Quick`]), which take time that grows as the kernel does.
//!
//! For a GPU the passes over loops are what grows, with the cube of how deep loops are nested, and those that compare
//! blocks: kernels with loops deeper than [`DEEP`], or of more than [`MANY`] blocks or [`LONG`] instructions, get few passes, too
//! ([`EffortForGpu`]), those of more than [`SEVERAL`] blocks each pass that most code needs, once, and those with a function
//! of more than [`SUMS`] addresses the quick code generator ([`reduced_emission`]). What `ptxas` takes is its own.

use std::ffi::{CStr, c_int};

use inkwell::OptimizationLevel;
use inkwell::llvm_sys::LLVMTypeKind;
use inkwell::llvm_sys::core::{LLVMGetTypeKind, LLVMTypeOf};
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::llvm_sys::target::LLVMSizeOfTypeInBits;
use inkwell::module::Module;
use inkwell::targets::TargetData;
use inkwell::values::{AsValueRef as _, FunctionValue, InstructionOpcode, InstructionValue};

use kiln_ir::{Function, Region};

use super::optimize::{FEW_PASSES, GPU_SHORT, OptLevel};

/// Arguments as of a command line, the first of which is the program's name.
///
/// What they are, LLVM's own number in parentheses (`benches/RESULTS.md` has what each does to the suite):
/// - how far the register allocator looks for the region in which a value is to have a register (10000): most of the time of a
///   kernel with 100 checked stores went there, for code that was longer;
/// - how many accesses to memory a scheduler compares in pairs (1000), and how many dead stores are looked for how far (90
///   steps up, 150 accesses): kernels with large values in their parameters read and write thousands of places one by one;
/// - loops are left to the loop vectorizer only where their metadata asks for it: pipelines switch
///   it on whatever their options say;
/// - GVN removes what is redundant on all ways to a place, and does not make
///   what is so on some of them redundant on all: that takes time that grows with the square of how many blocks there are,
///   and makes code for GPUs longer. A pipeline asks for it by `gvn<pre>`, as those for CPUs do;
/// - from how many blocks on what prepares a function for the selection of instructions does not begin again at
///   its first block each time that it has changed branches (10000): for GPUs it is an eighth of the code generator's time;
/// - what `default<O3>` inlines (225, none), for pipelines that name their passes.
const KNOBS: [&CStr; 11] = [
    c"kiln",
    c"-grow-region-complexity-budget=1000",
    c"-dag-maps-huge-region=100",
    c"-dse-memoryssa-walklimit=20",
    c"-dse-memoryssa-scanlimit=40",
    c"-vectorize-loops=false",
    c"-interleave-loops=false",
    c"-enable-pre=false",
    c"-cgpp-huge-func=0",
    c"-inlinedefault-threshold=250",
    c"-locally-hot-callsite-threshold=525",
];

/// Sets LLVM's knobs, which are global. To be called once LLVM is open, and again at will.
pub(crate) fn set_knobs() {
    let arguments = KNOBS.map(CStr::as_ptr);
    // SAFETY: LLVM reads the arguments, which are static, during the call; what it does not know it
    // leaves out.
    unsafe {
        LLVMParseCommandLineOptions(KNOBS.len() as c_int, arguments.as_ptr(), std::ptr::null());
    }
}

/// The largest kernel that is compiled with all effort, in registers that its instructions fill: a vector
/// of 64 `f64` fills eight of 512 bits, a number one. Counted in LLVM's instructions as Kiln writes them.
const LARGE: u64 = 40_000;

/// Bits of the widest register that there is.
const REGISTER_BITS: u64 = 512;

/// How hard LLVM tries.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    /// As the kernel's options say.
    Asked(OptLevel),
    /// As for [`OptLevel::O0`].
    Quick,
}

impl Effort {
    /// For a module as Kiln writes it.
    pub(crate) fn of(module: &Module<'_>, target: &TargetData, asked: OptLevel) -> Effort {
        if size(module, target) > LARGE {
            Effort::Quick
        } else {
            Effort::Asked(asked)
        }
    }

    fn level(self) -> OptLevel {
        match self {
            Effort::Asked(level) => level,
            Effort::Quick => OptLevel::O0,
        }
    }

    /// The passes for a kernel in which loops ask to be unrolled by a factor or none does.
    pub(crate) fn pipeline(self, by_factors: bool) -> String {
        self.level().host_pipeline(by_factors)
    }

    /// Says why a kernel is compiled with less effort than its options ask for.
    pub(crate) fn reduced(self) -> Option<String> {
        let large = || format!("its instructions fill more than {LARGE} registers");
        (self == Effort::Quick).then(large)
    }

    /// How hard the code generator tries.
    pub(crate) fn emission(self) -> OptimizationLevel {
        self.level().host_emission()
    }
}

/// The deepest nest of loops that LLVM's pipelines for GPUs are used for: 64 take a second, 127 twelve.
const DEEP: usize = 64;

/// The most blocks that LLVM's pipelines for GPUs are used for, of a module as Kiln writes it. A bounds check makes
/// one, a branch two or three. 3,000 of branches take two seconds, 12,000 half a minute.
const MANY: usize = 5_000;

/// The most blocks of a module as Kiln writes it for which passes run that compare conditions with each other, and others
/// more than once: 1,000 checks of places that are computed from one number take them five times as long
/// (`benches/RESULTS.md`).
const SEVERAL: usize = 2_000;

/// The most instructions that LLVM's pipelines for GPUs are used for, of a module as Kiln writes it: one block of as many
/// takes twice the time for each that a block of a tenth takes.
const LONG: usize = 64_000;

/// The most sums, products and addresses of one function that LLVM's whole code generator for NVIDIA's GPUs is used for, of
/// a module that passes have run on. Its strength reduction of straight-line code compares them in pairs
/// (llvm-project issue 162376): 1,000 branches with a load each take 1.5 s, 4,000 take 25. LLVM's option `-opt-disable`
/// leaves it out in the whole process, also where a hook's pipeline names it, and for small kernels it pays.
const SUMS: usize = 1_000;

/// The passes for a GPU.
pub(crate) struct EffortForGpu {
    /// The pipeline.
    pub(crate) passes: String,
    /// Says why the passes are fewer than the options ask for.
    pub(crate) reduced: Option<String>,
}

/// Says why the code generator for NVIDIA's GPUs is to do no more for a module than it must, if it is.
pub(crate) fn reduced_emission(module: &Module<'_>) -> Option<String> {
    let most = module.get_functions().map(sums).max().unwrap_or(0);
    (most > SUMS).then(|| {
        format!("a function of it has {most} sums, products and addresses, more than {SUMS}")
    })
}

/// How many sums, products and addresses a function computes.
fn sums(function: FunctionValue<'_>) -> usize {
    let blocks = function.get_basic_block_iter();
    let opcodes = blocks.flat_map(|block| block.get_instructions().map(|inst| inst.get_opcode()));
    let compared = |opcode: &InstructionOpcode| {
        matches!(
            opcode,
            InstructionOpcode::Add | InstructionOpcode::Mul | InstructionOpcode::GetElementPtr
        )
    };
    opcodes.filter(compared).count()
}

impl EffortForGpu {
    /// For a kernel, and the module that it is as Kiln writes it. `asked` is the pipeline that its options ask for.
    pub(crate) fn of(kernel: &kiln_ir::Module, module: &Module<'_>, asked: String) -> Self {
        let depths = kernel.functions.values();
        let deepest = depths.map(|function| loops_around(function, function.body));
        let deepest = deepest.max().unwrap_or(0);
        let (blocks, instructions) = count(module);
        if deepest > DEEP {
            EffortForGpu::few(&format!("its loops are {deepest} deep, more than {DEEP}"))
        } else if blocks > MANY {
            EffortForGpu::few(&format!("it has {blocks} blocks, more than {MANY}"))
        } else if instructions > LONG {
            EffortForGpu::few(&format!(
                "it has {instructions} instructions, more than {LONG}"
            ))
        } else if blocks > SEVERAL {
            EffortForGpu {
                passes: GPU_SHORT.to_owned(),
                reduced: Some(format!("it has {blocks} blocks, more than {SEVERAL}")),
            }
        } else {
            EffortForGpu {
                passes: asked,
                reduced: None,
            }
        }
    }

    /// The few passes that large kernels get, for a reason.
    pub(crate) fn few(reason: &str) -> EffortForGpu {
        EffortForGpu {
            passes: FEW_PASSES.to_owned(),
            reduced: Some(reason.to_owned()),
        }
    }
}

/// How many blocks and instructions a module has.
fn count(module: &Module<'_>) -> (usize, usize) {
    let blocks = module
        .get_functions()
        .flat_map(|function| function.get_basic_block_iter());
    let each = blocks.map(|block| block.get_instructions().count());
    each.fold((0, 0), |(blocks, all), instructions| {
        (blocks + 1, all + instructions)
    })
}

/// How deep loops are nested in a region.
fn loops_around(function: &Function, region: Region) -> usize {
    let insts = function.regions[region].insts.iter();
    let depths = insts.flat_map(|&inst| {
        let data = &function.insts[inst].data;
        let is_loop = data.is_loop();
        let inner = data.regions().into_iter();
        inner.map(move |inner| usize::from(is_loop) + loops_around(function, inner))
    });
    depths.max().unwrap_or(0)
}

/// Registers that the instructions of a module fill.
fn size(module: &Module<'_>, target: &TargetData) -> u64 {
    let blocks = module
        .get_functions()
        .flat_map(|function| function.get_basic_block_iter());
    blocks
        .flat_map(|block| block.get_instructions())
        .map(|instruction| registers(instruction, target))
        .sum()
}

/// Registers that the result of an instruction fills; 1 for one without a result.
pub(crate) fn registers(instruction: InstructionValue<'_>, target: &TargetData) -> u64 {
    // SAFETY: the instruction belongs to a live module. inkwell would panic at the tokens of coroutines.
    let bits = unsafe {
        let ty = LLVMTypeOf(instruction.as_value_ref());
        match LLVMGetTypeKind(ty) {
            LLVMTypeKind::LLVMVectorTypeKind => LLVMSizeOfTypeInBits(target.as_mut_ptr(), ty),
            _ => 0,
        }
    };
    bits.div_ceil(REGISTER_BITS).max(1)
}
