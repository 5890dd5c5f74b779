//! The kernel IR: what host code describes, hooks rewrite, and backends lower; and, as plain data, what
//! the layers around it tell each other.
//!
//! | module | what it is, and between whom |
//! |---|---|
//! | [`legal`] | the proof that a module may become code: from the pipeline to every backend |
//! | [`target`], [`code`] | what code is made for, and code: from code generation to the runtime |
//! | [`abi`], [`host_abi`] | what a launch passes: between code and whoever launches it |
//! | [`printed`] | what kernels print: between code and whoever reads it |
//! | [`fault`], [`stop`], [`row_panic`] | how a thread ends early, and how a launch does |
//! | [`CacheKey`] | all that decides the code of a compilation: between the cache, hooks and those who look |
//! | [`launch`], [`block_order`] | grids and blocks, limits, what is wrong with a launch |
//! | `gpu_on_host` | code for GPUs that runs on this CPU, for tests: between code and its device |
//! | [`rounding`] | numbers as 16-bit floats |
//! | [`environment`] | the environment variables that Kiln reads |
//!
//! # What it means
//!
//! A [`Module`] holds one kernel and everything it needs. A [`Function`]'s body is a tree of
//! regions. A region is a list of instructions executed in order; `if`, `loop` and `for` hold
//! regions of their own; `break`, `continue` and `return` end a region. There is no jump.
//!
//! A **value** is defined once, by an instruction, a parameter or a `for`, and can be used by later
//! instructions of its region and of the regions inside those. What changes lives in a mutable
//! **variable** (`var`), which has no address, or in memory, which has. Every instruction carries
//! the line of the program that built it.
//!
//! A kernel is executed by every thread of every block of the grid. Threads of a block share
//! shared memory and meet at barriers; blocks are independent and may run in any order
//! (CUDA guide, "Programming Model").
//!
//! A **hidden value** ([`HiddenData`]) is what a launch passes besides its arguments, for all threads the
//! same: a buffer that a hook counts in, the channel by which faults are told. It is declared in the
//! module, and any function reads it.
//!
//! # What may come
//!
//! The enums of the IR ([`InstData`], [`TypeData`], the operators) are closed lists: who rewrites or lowers them
//! matches them whole, and a version of Kiln with another instruction is another major version, in which rustc
//! shows each such place. Enums that programs only read (`DeviceKind`, errors, stages) are `non_exhaustive`.
//!
//! # Defined everywhere
//!
//! These have one result on every backend:
//! - Integer `add`, `sub`, `mul`, `neg` wrap.
//! - A division or remainder whose divisor is zero, or that would overflow (`MIN / -1`), behaves
//!   as if the divisor were 1: `x / 0 == x`, `x % 0 == 0`.
//! - A shift amount counts modulo the width of the type.
//! - A float converted to an integer saturates; NaN becomes 0.
//! - `f16` and `bf16` are computed in `f32`, each result rounded to nearest-even.
//! - `rem` of floats is exact, with the sign of the dividend; NaN if the divisor is zero or the dividend
//!   infinite.
//! - `min` and `max` of floats give the other operand when one is NaN.
//! - An operation that gives NaN gives some NaN: its sign and its other bits are left to the machine.
//! - A variable read before it is assigned is zero.
//! - An index out of bounds of a checked access ends its thread and leaves a fault record; the
//!   other threads go on, and barriers no longer wait for the ended one.
//!
//! Floating-point `add`, `sub`, `mul` round each result, except that a multiplication and a
//! following addition may be contracted to a fused one where the compile options allow it (they do
//! by default, as nvcc's do), and what the flags of an instruction permit besides ([`FastMath`]). `shared` and `local` memory is uninitialized: what a read before a
//! write gives is unspecified. A data race gives unspecified values. Unchecked accesses out of
//! bounds are undefined behaviour, which is why building them takes `unsafe`.
//!
//! # Phases
//!
//! [`Phase`] says which constructs may occur: type and const parameters and bodiless callees in
//! `Generic`, none of them in `Specialized`, no aggregate kernel parameter passed directly, no
//! `rem` of floats, no `print` and no `hidden` but as parameters in `Legal`. The rule list is in [`mod@verify`]; the text form is described at [`print()`] and read by
//! [`parse`](fn@parse).

pub mod abi;
mod assertion;
mod attribute;
pub mod block_order;
mod bounded;
mod cache_key;
mod choice;
pub mod code;
mod control;
pub mod entity;
pub mod environment;
mod facts;
pub mod fault;
mod form;
mod function;
#[cfg(feature = "gpu-on-host")]
pub mod gpu_on_host;
pub mod host_abi;
mod inst;
mod intrinsic;
mod keywords;
pub mod launch;
pub mod legal;
mod module;
pub mod named_barrier;
mod operands;
mod parse;
mod print;
pub mod printed;
mod result;
mod rewrite;
pub mod rounding;
pub mod row_panic;
pub mod stop;
pub mod target;
mod types;
mod variants;
pub mod verify;

pub use assertion::StaticAssertion;
pub use attribute::{AttributeValue, Attributes};
pub(crate) use bounded::shortened_listing;
pub use bounded::{READABLE, first_of, readable, shortened, write_rest};
pub use cache_key::CacheKey;
pub use choice::{Bounds, Choices, FastMath};
pub use control::{Control, VarUse};
pub use entity::{Entity, PrimaryMap};
pub use facts::{Assumption, Check, Facts, Printed, Read, Source, Told};
pub use form::{FieldForm, TypeDigest, TypeForm};
pub use function::{
    ConstParamData, Function, FunctionKind, Inline, Inst, LaunchBounds, ParamData, ParamFacts,
    Passing, Region, RegionData, SharedData, SharedVar, TypeBound, TypeParamData, Value, ValueData,
    ValueDef, Var, VarData,
};
pub use inst::{
    AtomicOp, BinaryOp, CompareOp, ConstArg, Constant, FloatAtomic, FloatOp, InstData, InstNode,
    Ordering, Scope, UnaryOp, Unroll, ValueList,
};
pub use intrinsic::{
    Axis, Cell, Effects, Family, IntrinsicDef, Known, Lanes, Lowering, Match, Meaning, Processor,
    PtxFunction, Reduction, Shuffle, ThreadPosition, TypePattern, Uniformity, Vote, WARP_LANES,
    WarpArgs,
};
pub use module::free_name;
pub use module::{
    FileId, FuncId, GlobalData, GlobalId, HiddenData, HiddenParam, HiddenSource, Inlined,
    InlinedCall, IntrinsicId, Location, Module, Phase,
};
pub use operands::{OperandRole, OperandType, OperandTypes, Takes};
pub use parse::{ParseError, parse, parse_file};
pub use print::{PrintOptions, print, print_function};
pub use result::ResultType;
pub use rewrite::{
    Cursor, InstBuilder, InstCopy, LinkError, Literal, NoFaultFunction, StillUsed, Use,
};
pub use types::{
    Address, AddressSpace, ArrayLen, ConstParam, FloatFormat, Half, HostFact, HostFacts, Layout,
    LeafKind, LeafType, Scalar, ScalarKind, StructData, StructId, Type, TypeData, TypeParam,
    TypeTable,
};
pub use verify::{VerifyError, VerifyErrors, verify};
