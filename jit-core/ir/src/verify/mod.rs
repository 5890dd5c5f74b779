//! The verifier: the rules of the IR, all of them checked, all violations reported.
//!
//! It returns on any module, however mangled: what later checks index by is checked first, and a
//! function whose entities are wrong is not looked at further. An instruction is reported for at
//! most one wrong type; everything else is reported as often as it occurs.
//!
//! # Rules
//!
//! *Types* (`table.rs`). A type is made of types entered before it. A vector has 2, 4, 8 or 16
//! lanes of a number. An array has elements and a struct has fields, and neither they nor what
//! pointers and slices point at are unit. Nothing in constant or parameter memory is mutable.
//! A type nests at most [`MAX_TYPE_DEPTH`] deep, has at most [`MAX_TYPE_PARTS`] parts (an array's
//! elements counted once) and [`MAX_TYPE_BYTES`] bytes. A value or variable has at most
//! [`MAX_VALUE_SCALARS`] numbers; LLVM treats each as a value of its own.
//!
//! *Entities* (`entities.rs`). Every value, variable, region, instruction, function, constant,
//! intrinsic, file, type, type parameter and const parameter is one of the module or function.
//! A region is held by one instruction or is the body, an instruction is placed at most once, and
//! a value is defined by what its `def` names. An instruction that is not placed has no meaning.
//! Regions nest at most [`MAX_NESTING`] deep; a function has at most [`MAX_INSTS`] instructions
//! and [`MAX_PARAMS`] parameters.
//!
//! *Module* (`module.rs`). Functions, and constants, have names of their own. There is at most one
//! kernel, and exactly one from [`Phase::Specialized`] on. A constant has a concrete type and as
//! many bytes. A hidden value has a type of known size, if it is an address one of global memory, and a
//! name that nothing else from its source has. No function calls itself, directly or through others.
//!
//! *Signatures* (`signature.rs`). Values, variables and results have types that values can have. A
//! kernel returns nothing and is no declaration; pointers and slices it takes are generic, global
//! or constant. Only kernels say what bounds are and how many registers a thread may have (16 to 255); only kernels have launch bounds (1 to 1024 threads) and parameters that are not
//! passed directly; of those, by reference is a read-only pointer, by value one into parameter
//! memory, and no other parameter points there. An alignment is a power of two and, like
//! `noalias`, of a pointer or slice; a divisor is of an integer. A const parameter is an integer
//! or a bool. A shared variable is aligned to a power of two, at least as its type is.
//!
//! *Static assertions* (`assertions.rs`). What is asserted is a bool that constants, type and const parameters decide.
//!
//! *Phases* (`signature.rs`, `calls.rs`, `assertions.rs`). From [`Phase::Specialized`] on there are no type or
//! const parameters, no arguments for them, no static assertions, and no declarations. In [`Phase::Legal`] no kernel
//! parameter is an aggregate passed directly, the remainder of floats is a call, and hidden values are
//! parameters: behind the others, each once and of its own type. Before, they are operations.
//!
//! *Scopes and control* (`body.rs`). An operand is defined by a parameter, by an instruction
//! before it in its region or in one around it, or by a `for` around it. Nothing follows `break`,
//! `continue` or `return` in their region. `break` and `continue` are inside as many loops as they
//! name. A declaration has no body. A function with a result cannot reach its end without
//! returning.
//!
//! *Operations* (`arithmetic.rs`, `memory.rs`, `aggregates.rs`, `calls.rs`). Operands have the
//! types the operation takes and the result has the type it gives, and is there when it gives one:
//! - arithmetic, `min`, `max`, `neg` and ordering are on numbers; remainder, shifts on integers;
//!   bit operations on integers and bools; bools are compared for equality only;
//! - a value of a type parameter takes what its bound takes: with `any` it is only moved, loaded
//!   and stored, with `num` or `float` it is a number, with `int` an integer;
//! - a constant is one of its type: integers in range, integers of a float type exact;
//! - a cast is between scalars and never to bool, unless from it; a bit cast is between numbers,
//!   vectors and pointers of one size, pointers of one address space, and makes nothing mutable;
//! - a store or atomic needs a mutable pointer; addresses keep the address space and mutability of
//!   what they are computed from; a space cast has generic on one side or stays in its space,
//!   keeps what is pointed at, makes nothing mutable and does not enter parameter memory;
//! - `slice_len` gives `u32` only for slices that are not wide; `slice_new` takes `u32`, or `u64`
//!   for a wide slice;
//! - atomics are in global, shared or generic memory, on integers, additions,
//!   extremes and exchanges also on floats, exchanges and compare-and-swap also on `u64x2`, loads and
//!   stores on any scalar; in a legal module all of scalars but
//!   compare-and-swap are on 32 and 64 bits, and there are no extremes of floats; a load releases
//!   nothing, a store acquires nothing, a fence orders something;
//! - arguments fit the parameters of the device function or intrinsic that is called, type
//!   arguments meet their bounds, const arguments are values of their parameters' types;
//! - a named barrier has a number from 1 to 15 and takes whole warps;
//! - an `if` decides on a bool, a `for` counts in one integer type, by a factor of 1 to
//!   [`MAX_UNROLL`] if one is given; thread-local memory is at most [`MAX_LOCAL_BYTES`] bytes
//!   (CUDA guide, "Technical Specifications per Compute Capability").
//!
//! What a target cannot do, such as an intrinsic without a cell for its type, is for the
//! backend's own table.

mod aggregates;
mod arithmetic;
mod assertions;
mod body;
mod calls;
mod entities;
mod memory;
mod module;
mod rules;
mod signature;
mod table;

use std::fmt;

#[cfg(doc)]
use super::Phase;
use super::{FuncId, Function, Inst, Module};
use super::{debug_as_text, error_text};
use table::TypeFacts;

/// How deep regions may nest.
pub const MAX_NESTING: usize = 128;
/// How many instructions a function may have.
pub const MAX_INSTS: usize = 200_000;
/// How many parameters a function may have.
pub const MAX_PARAMS: usize = 512;
/// How deep a type may nest.
pub const MAX_TYPE_DEPTH: u32 = 64;
/// How many parts a type may have, parts of parts included, elements of an array counted once.
pub const MAX_TYPE_PARTS: u64 = 4096;
/// How many bytes a type may have: 1 TiB.
pub const MAX_TYPE_BYTES: u64 = 1 << 40;
/// How many numbers and addresses a value may consist of.
pub const MAX_VALUE_SCALARS: u64 = 8192;
/// How much memory a thread may have for one local allocation, in bytes.
pub const MAX_LOCAL_BYTES: u64 = 512 << 10;
/// The largest unroll factor.
pub const MAX_UNROLL: u32 = 1024;

/// One broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyError {
    /// The function it is in; empty for a rule about the module.
    pub function: String,
    /// The instruction, if it is one's.
    pub inst: Option<Inst>,
    /// The line that built it, as `file:line:column`; the module, for what no line has built.
    pub location: String,
    /// What is wrong.
    pub message: String,
}

/// All broken rules of a module. Never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyErrors {
    /// The module.
    pub module: String,
    /// The errors of the module, then those of each function, in the order of the text.
    pub errors: Vec<VerifyError>,
    /// The functions concerned, with the errors under their lines.
    pub listing: String,
}

impl VerifyErrors {
    /// Errors of `module`, with a listing of the functions they are in.
    pub(crate) fn new(module: &Module, errors: Vec<VerifyError>) -> Self {
        let listing = super::print::listing(module, super::first_of(&errors));
        let listing = super::shortened_listing(&listing);
        VerifyErrors {
            module: module.name.clone(),
            errors,
            listing,
        }
    }
}

debug_as_text!(VerifyErrors);

impl fmt::Display for VerifyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error_text!("{}", Whole(self)))
    }
}

/// The text, whole.
struct Whole<'a>(&'a VerifyErrors);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VerifyErrors {
            module,
            errors,
            listing,
        } = self.0;
        let n = errors.len();
        let s = if n == 1 { "" } else { "s" };
        write!(f, "`{module}` breaks {n} rule{s} of the IR")?;
        for error in super::first_of(errors) {
            write!(f, "\n  {}: ", error.location)?;
            if !error.function.is_empty() {
                write!(f, "in `{}`: ", super::shortened(&error.function))?;
            }
            f.write_str(&super::shortened(&error.message))?;
        }
        super::write_rest(f, errors)?;
        if !listing.is_empty() {
            write!(f, "\n{}", listing.trim_end())?;
        }
        Ok(())
    }
}

impl std::error::Error for VerifyErrors {}

/// Checks all rules.
///
/// # Errors
/// Every broken rule.
pub fn verify(module: &Module) -> Result<(), VerifyErrors> {
    let mut checker = Checker {
        module,
        types: Vec::new(),
        sound: Vec::new(),
        errors: Vec::new(),
    };
    // Nothing can be said about functions when types are wrong: even their size is unknown.
    if table::check(&mut checker) {
        checker.check();
    }
    if checker.errors.is_empty() {
        return Ok(());
    }
    Err(VerifyErrors::new(module, checker.errors))
}

/// What is known about a module so far, and what is wrong with it.
struct Checker<'m> {
    module: &'m Module,
    /// By type.
    types: Vec<TypeFacts>,
    /// By function: whether its entities exist, so that it can be looked into.
    sound: Vec<bool>,
    errors: Vec<VerifyError>,
}

impl<'m> Checker<'m> {
    fn check(&mut self) {
        let module = self.module;
        let intrinsics_fit = module::check_intrinsics(self);
        let mut broken = Vec::new();
        for function in module.functions.values() {
            let before = self.errors.len();
            entities::check(self, function);
            self.sound.push(self.errors.len() == before);
            broken.extend(self.errors.drain(before..));
        }
        module::check(self);
        self.errors.append(&mut broken);
        if !intrinsics_fit {
            return;
        }
        for (id, function) in module.functions.iter() {
            if self.is_sound(id) {
                signature::check(self, function);
                assertions::check(self, function);
                body::check(self, function);
            }
        }
    }

    fn is_sound(&self, id: FuncId) -> bool {
        use super::Entity;
        self.sound.get(id.index()) == Some(&true)
    }

    fn report_module(&mut self, message: impl Into<String>) {
        self.errors.push(VerifyError {
            function: String::new(),
            inst: None,
            location: format!("module `{}`", self.module.name),
            message: message.into(),
        });
    }

    fn report(&mut self, function: &Function, inst: Option<Inst>, message: impl Into<String>) {
        let node = inst.and_then(|i| function.insts.get(i));
        let at = node.map_or(function.location, |n| n.location);
        self.errors.push(VerifyError {
            function: function.name.clone(),
            inst,
            location: self.module.display_location(at),
            message: message.into(),
        });
    }
}
