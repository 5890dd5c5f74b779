//! The library as `#[kernel]` functions see it: ordinary functions and traits.
//!
//! Each function is there twice under one name. As a function it is plain Rust, for rustc to check
//! kernels against and for device functions that run on the host, where there is one thread, the
//! only one of its warp, block and grid. As a type without values it is
//! [`Callable`](kiln_jit_core::front::macros::Callable): it builds the instruction. A call `f(x)` in a kernel
//! means both, so that names are resolved as anywhere in Rust.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn lane_and_block() -> u32 {
//!     lane_id() + 1000 * block_idx().x as u32
//! }
//!
//! #[kernel]
//! fn fill(out: &mut [u32]) {
//!     let i = global_id().x;
//!     if i < out.len() {
//!         out[i] = lane_and_block();
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! // On the host: one thread, the only one of its block.
//! assert_eq!(lane_and_block(), 0);
//! let jit = Jit::new()?;
//! let mut out = jit.zeros(66)?;
//! fill.launch(&jit, (2, 64), &mut out)?;
//! assert_eq!(out.to_vec()?[62..], [30, 31, 1000, 1001]);
//! # Ok(())
//! # }
//! ```
//!
//! | chapter | what is in it |
//! |---|---|
//! | [`ascii`] | ASCII methods of `u8` |
//! | [`bytes`] | numbers as bytes |
//! | [`chain`] | what chains of iterators add up and compare |
//! | [`comparison`] | `Ordering`, and what gives it |
//! | [`conversion`] | `into` and `try_into` |
//! | [`dispatch`] | what a type parameter has by a trait of the user's |
//! | [`index`] | thread, block and grid indices |
//! | [`number`] | what bounds on type parameters mean: `Num`, `Int`, `Float` |
//! | [`memory`] | barriers, fences, dynamic shared memory |
//! | [`assumption`] | what a kernel takes to be so |
//! | [`atomic`] | atomics |
//! | [`atomic_vector`] | additions to vectors in memory |
//! | [`atomic_view`] | atomics by a shared reference |
//! | [`ordering`] | orderings of atomics and fences |
//! | [`precision`] | approximations, sums in another order |
//! | [`warp`] | lanes, shuffles, votes, matches and reductions of a warp |
//! | [`crate::barrier`] | barriers at which the threads of a block vote |
//! | [`crate::group`] | groups of threads, and what they compute together |
//! | [`method`] | methods of numbers, slices and arrays |
//! | [`option`] | methods of `Option` |
//! | [`result`] | methods of `Result` |
//! | [`resolve`] | which function a method or a path means |
//! | [`mod@slice`] | methods of slices and arrays |
//! | [`operator`] | which function an operator means |

pub mod ascii;
pub mod assumption;
pub mod atomic;
pub mod atomic_vector;
pub mod atomic_view;
pub mod bytes;
pub mod chain;
pub mod comparison;
pub mod conversion;
pub mod dispatch;
pub mod index;
pub mod memory;
pub mod method;
pub mod number;
pub mod operator;
pub mod option;
pub mod ordering;
pub mod precision;
pub mod resolve;
pub mod result;
pub mod slice;

#[doc(no_inline)]
pub use crate::warp::operations as warp;

/// A function with what it builds: the function as it runs on the host, and after `=>` what it is in
/// a kernel.
macro_rules! functions {
    ($(
        $(#[$doc:meta])*
        fn $name:ident $(<$t:ident: $bound:path>)? ($($arg:ident: $ty:ty),* $(,)?) $(-> $result:ty)? $body:block
        => |$front:ident, $types:pat_param, $args:pat_param| $build:expr;
    )*) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, clippy::extra_unused_type_parameters, reason = "one shape for all")]
        pub fn $name $(<$t: $bound>)? ($($arg: $ty),*) $(-> $result)? $body

        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        pub enum $name {}

        impl ::kiln_jit_core::front::macros::Callable for $name {
            fn call<'k>(
                $front: ::kiln_jit_core::front::macros::Front<'k>,
                $types: &[::kiln_jit_core::ir::Type],
                args: &[::kiln_jit_core::front::macros::Operand<'k>],
            ) -> ::kiln_jit_core::front::macros::Operand<'k> {
                // rustc has checked the number of arguments against the function.
                match args {
                    $args => $build,
                    #[allow(unreachable_patterns, reason = "for functions of any number of arguments")]
                    _ => $front.unit(),
                }
            }
        }
    )*};
}
pub(crate) use functions;
