//! The locks and atomics of `queue`, which `model.rs` has loom's in place of.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};

pub(super) use parking_lot::{Condvar, Mutex, MutexGuard};
