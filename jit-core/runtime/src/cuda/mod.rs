//! The NVIDIA GPU, through the CUDA driver API reached at run time.
//!
//! Nothing is linked. [`Driver::load`] opens the driver library once and resolves a table of entry
//! points; a missing library, an old driver or a machine without a GPU is a [`DriverError`], never
//! a panic. [`CudaContext`] is a device's primary context (CUDA C++ Programming Guide, "Context")
//! with what this crate keeps per device: limits, live allocations, and the fault channel.
//!
//! | file | subject |
//! |---|---|
//! | `table` | entry points and their signatures |
//! | `driver` | finding the library, versions, number of devices |
//! | `error` | every error, with its text |
//! | `device` | limits of one device |
//! | `captures` | what other code's captures of streams refuse, and how Kiln's calls keep out of them |
//! | `context` | primary context, current context, poisoning, synchronization |
//! | `cooperative` | launches whose blocks are there at the same time, and how many fit |
//! | `recent` | which kernel to name when an asynchronous error appears |
//! | `memory` | device memory, copies, fills |
//! | `first` | the first buffers, which are not of the pool |
//! | `pool` | memory that is allocated and freed in the order of a stream |
//! | `module` | PTX loading with the JIT log, functions and their attributes |
//! | `graph` | graphs of the driver: nodes, updates, launches |
//! | `launch` | the launch and the diagnosis of a refused one |
//! | `stream` | streams and events |
//! | `waiting` | waiting for a limited time, and memory that cannot be freed yet |
//! | `fault_channel` | the fault record shared with kernels |
//!
//! # Asynchronous errors
//!
//! A kernel that accesses an illegal address leaves the context unusable for good: the driver
//! returns the same error from every later call. The first such
//! code *poisons* the [`CudaContext`]: that call and all later ones return
//! [`DriverError::Poisoned`] with the first cause, without calling the driver again, and dropping
//! handles does nothing. A new process recovers, or [`CudaContext::reset`], where the driver allows it.

mod captures;
mod context;
mod cooperative;
mod device;
mod driver;
mod error;
mod fault_channel;
mod first;
mod given_up;
mod graph;
mod launch;
mod memory;
mod module;
mod pool;
mod recent;
mod rows;
mod stream;
mod table;
mod waiting;

pub use context::CudaContext;
pub use device::DeviceInfo;
pub use driver::{Driver, DriverSettings, MIN_DRIVER_VERSION, max_ptx_version};
pub use error::{DriverError, ErrorCode, PoisonCause};
pub(crate) use fault_channel::StreamFaults;
pub(crate) use graph::{CudaGraph, LaunchNode, Node};
pub use memory::MemoryInfo;
pub use module::{CudaFunction, CudaModule, FunctionAttributes, ModuleGlobal};
pub use stream::{CudaEvent, CudaStream, StreamHandle};
pub use waiting::KeptMemory;
