//! Devices: memory, loaded code, and launches. What happens after the code is there.
//!
//! A [`Device`] is a CUDA device or this machine's CPU behind one trait, so that everything above
//! is written once. Dynamic dispatch is at this boundary and nowhere above it. No device knows a compiler.
//!
//! | file | subject |
//! |---|---|
//! | `device` | the trait of backends, and the handle of a device |
//! | `adopted` | streams of other code |
//! | `between` | copies from one device to another that it reaches |
//! | `code_facts` | what a device says of code that it has loaded |
//! | `cuda`, `cuda_device`, `cuda_graph`, `cuda_kernels`, `cuda_stream` | the CUDA driver behind safe types; the backend that uses it |
//! | `cpu` | host code loaded, blocks run by a pool of threads; kernels that the interpreter runs |
//! | `on_host` | with `gpu-on-host`, for tests: code for GPUs that this CPU runs |
//! | `graph` | work that is described once and handed to a device again and again |
//! | `later` | marks and copies that nobody waits for at once, and the host's memory that copies have |
//! | `order` | how streams order themselves by what they use |
//! | `rows` | copies of rows that lie apart |
//! | `forked` | devices in a child of the process that opened them |
//! | `told` | who is told of faults besides whoever waits |
//! | `seldom` | what is seldom there and often looked for |
//! | `stream` | what streams do: copies, waiting, calls on the host |
//! | `error` | what goes wrong on a device |

mod adopted;
mod between;
mod code_facts;
mod cpu;
pub mod cuda;
mod cuda_device;
mod cuda_graph;
mod cuda_kernels;
mod cuda_stream;
mod device;
mod error;
mod forked;
mod graph;
mod later;
#[cfg(feature = "gpu-on-host")]
mod on_host;
mod order;
mod rows;
mod seldom;
mod stream;
mod told;

pub use adopted::{AdoptedFunction, LentFunction, LentStream};
pub use code_facts::CodeFacts;
pub use cpu::{CpuOptions, HostModule, ObjectError};
pub use device::{
    Backend, Device, DeviceCode, DeviceId, DeviceInfo, DeviceKind, LoadedCode, Marker, MemoryStats,
    Occupancy, Reset,
};
pub use error::DeviceError;
pub use graph::{BackendGraph, Step};
pub use kiln_ir::block_order::BlockOrder;
pub use later::{Finishing, HostMemory, Pending, Reach};
#[cfg(feature = "gpu-on-host")]
pub use on_host::{OnHostError, OnHostModule, OnHostOptions, Schedule};
pub use order::{OrderedStream, ReadsOf, Sharing, Streams, Uses};
pub use rows::{Laid, Rows};
pub use stream::{BackendStream, HostCall, StreamOptions, is_in_call, outside_of_calls};
pub use told::{FaultListener, WaitListener};
