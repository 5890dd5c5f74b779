//! Code for GPUs that runs on this CPU, for tests: the target, and the code as plain data.
//!
//! `codegen/gpu/on_host` makes the code, `runtime/on_host` runs it; this is what both know. The code calls
//! [`OPERATE`] for everything that only a GPU has, with the number of a [`Site`], and addresses a block's
//! shared memory from [`SHARED`] on. Whoever loads it resolves both.

mod kept;

use std::sync::Arc;

use crate::code::{CustomCode, KeptCode};
use crate::target::{CustomTarget, PtxTarget, Target};
use crate::{AtomicOp, IntrinsicDef, Scalar};

/// The family of the targets.
pub const FAMILY: &str = "code for GPUs on this CPU";

/// The symbol of the function that runs a thread of a kernel, `fn(parameter block)`.
pub const THREAD_ENTRY: &str = "kiln_thread";

/// The symbol of the function that does what only a GPU has: `fn(number of the site, arguments) -> result`. The
/// second word of a result of two is left in the place of the first argument.
pub const OPERATE: &str = "kiln_operate";

/// The symbol of the block's shared memory.
pub const SHARED: &str = "kiln_shared";

/// What code for an architecture, 90 is sm_90, is for that is to run on this CPU.
pub fn target(sm: u32) -> Target {
    Target::Custom(CustomTarget {
        family: FAMILY,
        settings: format!("sm_{sm}"),
    })
}

/// The architecture of such a target.
pub fn architecture(target: &CustomTarget) -> Option<PtxTarget> {
    let sm = target.settings.strip_prefix("sm_")?.parse().ok()?;
    Some(PtxTarget::for_sm(sm))
}

/// The code of a kernel.
#[derive(Debug)]
pub struct OnHostCode {
    /// The object file.
    pub object: Vec<u8>,
    /// What the calls in the code stand for, by their numbers.
    pub sites: Arc<[Site]>,
    /// Bytes of shared memory before those of the launch.
    pub static_shared: u64,
    /// Bytes of stack that a thread needs at most.
    pub stack_bytes: u64,
}

impl CustomCode for OnHostCode {
    fn size(&self) -> usize {
        self.object.len()
    }

    fn keep(&self) -> KeptCode {
        self.kept()
    }
}

/// A call that was replaced, or a place where a thread may be made to wait.
#[derive(PartialEq, Eq, Debug)]
pub struct Site {
    /// What the call stands for.
    pub operation: Operation,
    /// The site's place in the order of all sites in the code.
    pub number: usize,
    /// How many arguments it has.
    pub arguments: usize,
}

/// What a call stands for. Arguments and results are the bits of registers, in the low bits of
/// words; those of 128 bits are two words, the low one first.
#[derive(PartialEq, Eq, Debug)]
pub enum Operation {
    /// Nothing that shows here: fences, and what only LLVM's passes are to see.
    Nothing,
    /// The end of the thread.
    Exit,
    /// The barrier of the block.
    Barrier,
    /// The wait for one thread of each block.
    Grid,
    /// Bytes of dynamic shared memory.
    DynamicSharedBytes,
    /// The index of the thread in its block, in x, y or z.
    Thread(u8),
    /// The index of the block in the grid, in x, y or z.
    Block(u8),
    /// The low bits of the argument, so many of them.
    LowBits(u32),
    /// An integer as `f32`, rounded towards zero.
    ToFloat {
        /// Whether the integer is signed.
        signed: bool,
        /// How many bits it has: 32 or 64.
        bits: u32,
    },
    /// What a row means.
    Row(RowCall),
    /// Inline PTX that changes memory in one step, and gives what was there. Its arguments are the address,
    /// then the value, or the expected one and the new one.
    Atomic(Change, Element),
    /// No call: a turn of a loop.
    Turn,
    /// No call: an access is done that other threads may wait for.
    Accessed,
}

/// A row, and the types of one of its cells.
#[derive(Clone, Debug)]
pub struct RowCall {
    /// The row.
    pub row: &'static IntrinsicDef,
    /// The type that selects the cell.
    pub scalar: Scalar,
    /// The types of the parameters.
    pub params: Vec<Scalar>,
}

impl PartialEq for RowCall {
    fn eq(&self, other: &RowCall) -> bool {
        let types = |call: &RowCall| (call.scalar, call.params.clone());
        std::ptr::eq(self.row, other.row) && types(self) == types(other)
    }
}

impl Eq for RowCall {}

impl RowCall {
    /// What registers hold, as a [`Meaning`](crate::Meaning) wants it.
    pub fn arguments(&self, registers: &[u64]) -> Vec<u64> {
        let value = |(&scalar, &bits): (&Scalar, &u64)| match scalar.is_bool() {
            true => u64::from(bits != 0),
            false => bits & (u64::MAX >> (u64::BITS - scalar.bits())),
        };
        self.params.iter().zip(registers).map(value).collect()
    }
}

/// What is put in the place of what is there.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// The old value combined with another.
    Modify(AtomicOp),
    /// A value, if another one is there.
    CompareAndSwap,
}

/// The type of an instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// `s`, `u`, `f` or `b`.
    pub class: char,
    /// 8 to 64, or 128.
    pub bits: u32,
}

impl Element {
    /// The element with a name of PTX, if there are such atomics.
    pub fn named(text: &str) -> Option<Element> {
        let class = text.chars().next().filter(|c| "sufb".contains(*c))?;
        let bits = text.get(1..)?.parse().ok()?;
        let known = matches!(bits, 8 | 16 | 32 | 64) && !(class == 'f' && bits < 32);
        let is_pair = (class, bits) == ('b', 128);
        (known || is_pair).then_some(Element { class, bits })
    }
}
