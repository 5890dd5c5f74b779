//! How exact floats are: functions whose closures may compute something else than each operation rounded.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn forces(x: &[f32], out: &mut [f32]) {
//!     let i = global_id().x;
//!     if i < out.len() {
//!         let r2 = x[i] * x[i] + 0.01;
//!         let inverse = approximate(|| 1.0 / r2.sqrt()); // one instruction on NVIDIA's GPUs
//!         let sum = reassociated(|| x[i] + inverse + r2 + 1.0); // in any order
//!         let fused = contracted(|| x[i] * inverse + sum); // rounded once, or twice
//!         out[i] = fast(|| fused / sum); // all three
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (x, mut out) = (jit.upload(&[0.0f32, 1.0])?, jit.zeros(2)?);
//! forces.launch(&jit, (1, 32), &x, &mut out)?;
//! assert!((out.to_vec()?[0] - 1.0).abs() < 1e-5);
//! # Ok(())
//! # }
//! ```
//!
//! What is written in the closure is meant, and what functions with closures of their own do that it calls;
//! other functions compute what they say themselves. The flags are those of
//! [`FastMath`], which has what each permits; on the host nothing changes.

use kiln_jit_core::front::macros::{Callable, Front, Inlinable, InlineCall, Operand};
use kiln_jit_core::ir::{FastMath, Type};

/// A function that calls its closure, in kernels with flags.
macro_rules! with_flags {
    ($($(#[$doc:meta])* fn $name:ident = $flags:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name<R, F: FnOnce() -> R>(f: F) -> R {
            f()
        }

        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        pub enum $name {}

        impl Inlinable for $name {
            fn call_inline<'k>(front: Front<'k>, call: &InlineCall<'_, 'k>) -> Operand<'k> {
                match call.closures {
                    [f, ..] => front.builder().fast($flags, || f(&[])),
                    [] => front.unit(),
                }
            }
        }

        // For calls whose closure is none: rustc says so of the argument, and of nothing else.
        impl Callable for $name {
            fn call<'k>(front: Front<'k>, _: &[Type], _: &[Operand<'k>]) -> Operand<'k> {
                front.refuse("this function takes a closure, `|| ..`")
            }
        }
    )*};
}

with_flags! {
    /// What the closure computes, with divisions, square roots and functions of `f32` that may be
    /// approximations ([`FastMath::APPROXIMATE`]).
    fn approximate = FastMath::APPROXIMATE;
    /// What the closure computes, with sums and products in any order ([`FastMath::REASSOCIATE`]).
    fn reassociated = FastMath::REASSOCIATE;
    /// What the closure computes, with multiplications and additions that may be fused
    /// ([`FastMath::CONTRACT`]), whatever `CompileOptions::contract` says.
    fn contracted = FastMath::CONTRACT;
    /// What the closure computes, by any of these ([`FastMath::FAST`]).
    fn fast = FastMath::FAST;
}
