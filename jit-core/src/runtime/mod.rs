//! Devices, memory, and launching: what happens after the code is there.
//!
//! A [`Device`] is a CUDA device or this machine's CPU behind one trait, so that everything above
//! is written once. Dynamic dispatch is at this boundary and nowhere above it.

mod buffer;
mod cpu;
pub mod cuda;
mod cuda_device;
mod device;
mod event;
#[cfg(feature = "gpu-on-host")]
mod on_host;

pub use crate::block_order::BlockOrder;
pub use buffer::Buffer;
pub use cpu::{CpuOptions, HostModule, ObjectError};
pub use device::{Backend, Device, DeviceId, DeviceInfo, DeviceKind, LoadedCode, Marker};
pub use event::Event;
#[cfg(feature = "gpu-on-host")]
pub use on_host::{OnHostError, OnHostModule, OnHostOptions, Schedule};
