//! What programs need that extend the compiler, by hooks or operations of their own, or look at its IR:
//! `use kiln::core::prelude::*;` beside `use kiln::prelude::*;`.
//!
//! ```
//! use kiln::core::prelude::*;
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn difference(x: &mut [u32], y: &[u32]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         x[i] = x[i] - y[i];
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! // Every difference of `u32` becomes a sum.
//! let sums = Hook::new("sums").rewrite_ir(|_, module| {
//!     module.rewrite_each(|at| {
//!         if let InstData::Binary { op: BinaryOp::Sub, args: [a, b] } = *at.data()
//!             && at.type_of(a) == Type::U32
//!         {
//!             at.replace().binary(BinaryOp::Add, a, b);
//!         }
//!     });
//!     Ok(())
//! });
//! let jit = Jit::builder().hook(sums).build()?;
//! let (mut x, y) = (jit.upload(&[1, 2])?, jit.upload(&[10, 20])?);
//! difference.launch(&jit, (1, 32), &mut x, &y)?;
//! assert_eq!(x.to_vec()?, [11, 22]);
//! # Ok(())
//! # }
//! ```

pub use crate::hook::{
    HiddenArguments, Hook, HookContext, HookPoint, HookResult, HookSet, LaunchEvent, LaunchTime,
    LoweredOperation, OperationLowering,
};
pub use crate::ir::{
    AddressSpace, AtomicOp, BinaryOp, Cell, CompareOp, Constant, Cursor, Family, FuncId, Function,
    InstData, IntrinsicDef, Meaning, Module, Scalar, Scope, Type, TypeData, UnaryOp, Value,
};
pub use crate::job::{CompileJob, CompileOptions};
pub use crate::target::{PtxTarget, Target};
