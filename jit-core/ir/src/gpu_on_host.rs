//! Code for GPUs that runs on this CPU, for tests: the target, and the code as plain data.
//!
//! `codegen/gpu/on_host` makes the code, `runtime/on_host` runs it; this is what both know. The code calls
//! [`OPERATE`] for everything that only a GPU has, with the number of a [`Site`], and addresses a block's
//! shared memory from [`SHARED`] on. Whoever loads it resolves both.

use std::sync::Arc;

use crate::code::CustomCode;
use crate::target::{CustomTarget, PtxTarget, Target};
use crate::{AtomicOp, IntrinsicDef, Scalar, ThreadPosition};

/// The family of the targets.
pub const FAMILY: &str = "code for GPUs on this CPU";

/// The symbol of the function that runs a thread of a kernel, `fn(parameter block)`.
pub const THREAD_ENTRY: &str = "kiln_thread";

/// The symbol of the function that does what only a GPU has: `fn(number of the site, arguments) -> result`.
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
    /// What its calls stand for, by their numbers.
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
}

/// A call that was replaced, or a place where a thread may be made to wait.
#[derive(Debug)]
pub struct Site {
    /// What it stands for.
    pub operation: Operation,
    /// Its place in the order of all sites in the code.
    pub number: usize,
    /// How many arguments it has.
    pub arguments: usize,
}

/// What a call stands for. Arguments and results are the bits of registers, in the low bits of
/// words.
#[derive(Debug)]
pub enum Operation {
    /// Nothing that shows here: fences, and what only LLVM's passes are to see.
    Nothing,
    /// The end of the thread.
    Exit,
    /// The barrier of the block.
    Barrier,
    /// Bytes of dynamic shared memory.
    DynamicSharedBytes,
    /// Where the thread is.
    Position(fn(&ThreadPosition) -> u64),
    /// A function of its argument.
    Function(fn(u64) -> u64),
    /// A row that means a function of its arguments.
    Pure(RowCall, fn(Scalar, &[u64]) -> u64),
    /// A row that lanes execute together.
    Warp(RowCall),
    /// Inline PTX that accesses memory.
    Accesses(Vec<Access>),
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

/// One statement of inline PTX that accesses memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// What it does.
    pub kind: AccessKind,
    /// What it does it to.
    pub element: Element,
    /// Which argument is the address.
    pub address: usize,
    /// Which arguments are the values: stored, combined, or expected and new.
    pub values: Vec<usize>,
}

/// What a statement does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// Gives what is there.
    Load,
    /// Puts a value there.
    Store,
    /// Combines what is there with a value, and gives what was there.
    Modify(AtomicOp),
    /// Puts a value there if another one is there, and gives what was there.
    CompareAndSwap,
}

/// The type of an instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// `s`, `u`, `f` or `b`.
    pub class: char,
    /// 8 to 64.
    pub bits: u32,
}
