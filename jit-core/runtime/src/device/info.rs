//! What devices are: which of the process's, of which kind, what they can hold.

use std::fmt;

use kiln_interp::checks::Checks;
use kiln_ir::launch::LaunchLimits;
use kiln_ir::target::Target;

use crate::error::{DeviceError, Result};

/// Which device of this process.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeviceId {
    /// A CPU device; each has a number of its own.
    Cpu(u32),
    /// A CUDA device, by ordinal.
    Cuda(u32),
    /// A CUDA device that was reset: by ordinal, and how often. What was made before is another device's.
    CudaAgain(u32, u32),
    /// A CUDA context of the program's own; each has a number of its own.
    CudaContext(u32),
    /// A device of a backend that Kiln does not know; each has a number of its own.
    Custom(u32),
}

impl std::fmt::Display for DeviceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceId::Cpu(n) => write!(f, "CPU device {n}"),
            DeviceId::Cuda(n) => write!(f, "CUDA device {n}"),
            DeviceId::CudaAgain(n, 1) => write!(f, "CUDA device {n} after its reset"),
            DeviceId::CudaAgain(n, resets) => write!(f, "CUDA device {n} after reset {resets}"),
            DeviceId::CudaContext(n) => write!(f, "CUDA context {n} of the program"),
            DeviceId::Custom(n) => write!(f, "device {n}"),
        }
    }
}

/// What kind of device.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeviceKind {
    /// This machine's CPU.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// A device of a backend that Kiln does not know.
    Custom,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceKind::Cpu => "CPU",
            DeviceKind::Cuda => "CUDA GPU",
            DeviceKind::Custom => "device of its own kind",
        })
    }
}

/// What a device is.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// Which device of this process it is.
    pub id: DeviceId,
    /// What kind.
    pub kind: DeviceKind,
    /// The device's name for people.
    pub name: String,
    /// Number of multiprocessors; of threads that run blocks for the CPU.
    pub multiprocessors: u32,
    /// Device memory in bytes; 0 when it is the host's.
    pub memory_bytes: u64,
    /// What code for it must be.
    pub target: Target,
    /// What a launch may ask for.
    pub limits: LaunchLimits,
}

impl DeviceInfo {
    /// Refuses checks that the device does not make.
    ///
    /// # Errors
    /// [`DeviceError::NoChecks`].
    pub fn accept(&self, kernel: &str, checks: &Checks) -> Result<()> {
        if checks.is_none() || self.kind == DeviceKind::Cpu {
            return Ok(());
        }
        Err(DeviceError::NoChecks {
            kernel: kernel.to_owned(),
            device: self.name.clone(),
        })
    }
}

/// What the memory of a device is used for, in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Of the buffers that there are.
    pub used: u64,
    /// The most that these had.
    pub peak: u64,
    /// Of freed buffers, kept for later ones.
    pub pooled: u64,
}

/// How many blocks a device on the host holds at once, each on a thread of the system or of its own making.
pub(crate) const BLOCKS_TOGETHER: u32 = 64;

/// How many blocks of a launch a device holds at once.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Occupancy {
    /// Blocks that a multiprocessor holds at once; 0 of one that is too large.
    pub blocks: u32,
    /// Multiprocessors of the device.
    pub multiprocessors: u32,
}

impl Occupancy {
    /// Blocks that the device holds at once.
    pub fn all_blocks(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.multiprocessors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    #[test]
    fn a_device_that_makes_no_checks() {
        let cpu = Device::cpu();
        let info = cpu.info().clone();
        let gpu = DeviceInfo {
            kind: DeviceKind::Cuda,
            name: "NVIDIA Example".to_owned(),
            ..info.clone()
        };
        assert!(info.accept("k", &Checks::all()).is_ok());
        assert!(gpu.accept("k", &Checks::none()).is_ok());
        let error = gpu.accept("k", &Checks::none().races());
        expect_test::expect!["kernel `k`: NVIDIA Example makes no checks; launch it with these options on `Device::cpu()`, or run the program under NVIDIA's compute-sanitizer"].assert_eq(&error.expect_err("it is refused").to_string());
    }
}
