//! What can go wrong when a kernel is specialized.
//!
//! A user sees these when a generic kernel does not make sense for the types it is launched with:
//! a literal that the type cannot hold, a callee that wants a float. Errors about the arguments
//! themselves are found earlier, see [`super::BindError`].
//! Every text names the function and the line that built the instruction.

use std::fmt;

use crate::ir::{debug_as_text, error_text};

/// A place in a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodePlace {
    /// The function.
    pub function: String,
    /// The line that built it, as `file:line:column`.
    pub location: String,
}

impl fmt::Display for CodePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error_text!("`{}` ({})", self.function, self.location))
    }
}

/// A kernel cannot be specialized. Locations are `file:line:column` of the host program.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecializeError {
    /// The root of the snapshot is a device function.
    #[error("{}", error_text!(
        "`{name}` ({location}) is a device function: only a kernel can be launched, call \
         `{name}` from one"
    ))]
    NotAKernel {
        /// The function.
        name: String,
        /// Where the function is defined.
        location: String,
    },
    /// A device function or kernel calls a kernel.
    #[error("{}", error_text!("{at} calls the kernel `{callee}`: only device functions can be called"))]
    KernelCalled {
        /// The instruction, call or declaration.
        at: Box<CodePlace>,
        /// The kernel.
        callee: String,
    },
    /// The wrong number of type arguments.
    #[error("{}", error_text!(
        "`{function}` has {expected} type parameters, {given} type arguments were given ({location})"
    ))]
    TypeArgumentCount {
        /// The function they are for.
        function: String,
        /// How many it has.
        expected: usize,
        /// How many there are.
        given: usize,
        /// The call, or the definition of the kernel.
        location: String,
    },
    /// The wrong number of const arguments.
    #[error("{}", error_text!(
        "`{function}` has {expected} const parameters, {given} const arguments were given \
         ({location})"
    ))]
    ConstArgumentCount {
        /// The function they are for.
        function: String,
        /// How many it has.
        expected: usize,
        /// How many there are.
        given: usize,
        /// The call.
        location: String,
    },
    /// A const parameter of the kernel without a value.
    #[error("{}", error_text!("the const parameter `{param}` of `{function}` ({location}) has no value: give it one"))]
    ConstArgumentMissing {
        /// The kernel.
        function: String,
        /// The const parameter.
        param: String,
        /// Where the kernel is defined.
        location: String,
    },
    /// A const argument of a call is not an integer or bool.
    #[error("{}", error_text!(
        "the const parameter `{param}` of `{function}` is given a float ({location}): it must be \
         an integer or a bool"
    ))]
    ConstArgumentKind {
        /// The callee.
        function: String,
        /// The const parameter.
        param: String,
        /// The call.
        location: String,
    },
    /// A type argument is not what the type parameter asks for.
    #[error("{}", error_text!("`{param}` of `{function}` must be {bound}, it is bound to `{ty}` ({location})"))]
    Bound {
        /// The function that has the type parameter.
        function: String,
        /// The type parameter.
        param: String,
        /// What the type must be.
        bound: &'static str,
        /// What the type parameter was bound to.
        ty: String,
        /// The call, or the definition of the kernel.
        location: String,
    },
    /// A const argument is not a value of the const parameter's type.
    #[error("{}", error_text!(
        "the const parameter `{param}` of `{function}` is {value}, which is not a value of \
             `{ty}` ({location})"
    ))]
    ConstRange {
        /// The function that has the const parameter.
        function: String,
        /// The const parameter.
        param: String,
        /// The parameter's type.
        ty: String,
        /// The value that was given.
        value: i128,
        /// The call, or the definition of the kernel.
        location: String,
    },
    /// A const parameter used as the length of an array is negative or beyond 64 bits.
    #[error("{}", error_text!("{at} has an array of length {value}: it must be 0 or more"))]
    ArrayLength {
        /// The instruction, call or declaration.
        at: Box<CodePlace>,
        /// The length.
        value: i128,
    },
    /// A literal is not a value of the type that its type parameter was bound to.
    #[error("{}", error_text!(
        "{at} has the literal {literal}, which {problem} `{ty}`, and `{generic}` is `{ty}` here: \
         write a literal that fits every type the function is used at, or narrow `{generic}`"
    ))]
    Literal {
        /// The instruction, call or declaration.
        at: Box<CodePlace>,
        /// The literal.
        literal: String,
        /// What is wrong with it, to be followed by the type.
        problem: &'static str,
        /// The concrete type.
        ty: String,
        /// The generic type.
        generic: String,
    },
    /// What a function asserts of its type and const arguments does not hold.
    #[error("{}", error_text!("{at}: {message}\n  a static assertion that does not hold with {arguments}"))]
    StaticAssertion {
        /// The assertion.
        at: Box<CodePlace>,
        /// The message of the assertion.
        message: String,
        /// The type and const arguments, `T = f32, N = 33`.
        arguments: String,
    },
    /// A call goes to a declaration that no definition stands behind.
    #[error("{}", error_text!(
        "{at} calls `{callee}`, which is declared but linked to no definition: \
         name it in the callees of the body"
    ))]
    UnlinkedCallee {
        /// The instruction, call or declaration.
        at: Box<CodePlace>,
        /// The declaration.
        callee: String,
    },
    /// A declaration and the definition it is linked to differ.
    #[error("{}", error_text!(
        "{at} calls `{callee}`, built against another signature of it\n  declared: {declared}\n  \
         defined:  {defined}\nrebuild `{}`",
        at.function
    ))]
    SignatureMismatch {
        /// The instruction, call or declaration.
        at: Box<CodePlace>,
        /// The callee.
        callee: String,
        /// The signature the caller was built against.
        declared: String,
        /// The signature there is.
        defined: String,
    },
    /// Two functions of a call graph use two intrinsics of one name.
    #[error("{}", error_text!("{at}: {conflict}"))]
    TwoIntrinsics {
        /// The instruction that uses the second one.
        at: Box<CodePlace>,
        /// Where the two are made, and what to do.
        conflict: String,
    },
    /// A fact is given for an argument that cannot have it.
    #[error("{}", error_text!("the fact `{fact}` of argument `{param}` of `{kernel}` cannot hold: {why}"))]
    Fact {
        /// The kernel.
        kernel: String,
        /// The parameter.
        param: String,
        /// Which fact: the name of the field of [`super::ParamSpec`].
        fact: &'static str,
        /// Why the fact cannot hold.
        why: &'static str,
    },
    /// More functions than a module may have.
    #[error("{}", error_text!(
        "`{kernel}` needs more than {limit} copies of device functions, the last of `{function}`: \
         call it at fewer types"
    ))]
    TooManyInstances {
        /// The kernel.
        kernel: String,
        /// The function of which one more was asked for.
        function: String,
        /// The largest number.
        limit: usize,
    },
    /// The body names something it does not have; the verifier would have refused it.
    #[error("{}", error_text!("{at} uses {what}, which it does not have: verify it first"))]
    Malformed {
        /// The instruction, call or declaration.
        at: Box<CodePlace>,
        /// What is missing.
        what: String,
    },
}

debug_as_text!(SpecializeError);
