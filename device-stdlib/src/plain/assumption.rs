//! What a kernel takes to be so: conditions that the compiler makes use of.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn add_halves(x: &mut [f32], n: usize) {
//!     assume(n % 2 == 0 && n <= x.len());
//!     let i = global_id().x;
//!     if i < n / 2 {
//!         x[i] += x[n / 2 + i];
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
//! add_halves.launch(&jit, (1, 32), &mut x, 4)?;
//! assert_eq!(x.to_vec()?, [4.0, 6.0, 3.0, 4.0]);
//! add_halves.launch(&jit, (1, 32), &mut x, 6)?;
//! let error = x.to_vec().unwrap_err().to_string();
//! assert!(error.contains("the assumption `n % 2 == 0 && n <= x.len()` does not hold"), "{error}");
//! # Ok(())
//! # }
//! ```
//!
//! In a kernel with checks, and in one whose indices are clamped, an assumption is checked as an index is: a thread for
//! which it does not hold ends there, and the launch is an error. A kernel that is
//! `unsafe(unchecked)` promises it, with its indices.

use super::functions;

functions! {
    /// Says that a condition holds wherever control comes here, for the compiler to make use of. On the host it is
    /// asserted.
    fn assume(condition: bool) {
        assert!(condition, "an assumption does not hold");
    } => |front, _, [condition]| {
        front.builder().assume(*condition);
        front.unit()
    };
}
