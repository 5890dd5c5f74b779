//! The limits and properties of one GPU, read once when its context is created.
//!
//! Source: CUDA Driver API, "Device Management", `CUdevice_attribute`.

use std::ffi::{CStr, c_char, c_int};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};

use super::driver::Driver;
use super::error::DriverError;

/// What a device is and what it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The device's number, from 0.
    pub ordinal: u32,
    /// The device's marketing name.
    pub name: String,
    /// Compute capability: major, minor.
    pub compute_capability: (u32, u32),
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Threads of a warp.
    pub warp_size: u32,
    /// Most threads of a block.
    pub max_threads_per_block: u32,
    /// Most threads resident on a multiprocessor.
    pub max_threads_per_multiprocessor: u32,
    /// Largest block in x, y, z, in threads.
    pub max_block: [u32; 3],
    /// Largest grid in x, y, z, in blocks.
    pub max_grid: [u32; 3],
    /// Shared memory of a block without opting in, in bytes.
    pub shared_bytes_per_block: u32,
    /// Shared memory of a block after opting in, in bytes.
    pub shared_bytes_per_block_optin: u32,
    /// Shared memory of a multiprocessor, in bytes.
    pub shared_bytes_per_multiprocessor: u32,
    /// 32-bit registers of a block.
    pub registers_per_block: u32,
    /// Global memory in bytes.
    pub total_memory: u64,
    /// L2 cache in bytes.
    pub l2_bytes: u32,
    /// Peak clock of the multiprocessors in kHz; 0 where the driver does not say.
    pub clock_khz: u32,
    /// Peak clock of the memory in kHz; 0 where the driver does not say.
    pub memory_clock_khz: u32,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: u32,
    /// Whether memory can be allocated in the order of a stream.
    pub has_pools: bool,
    /// Which processes may use it: "default", "exclusive process" or "prohibited".
    pub compute_mode: &'static str,
}

impl DeviceInfo {
    /// Compute capability times ten: 90 is sm_90, 120 is sm_120.
    pub fn sm(&self) -> u32 {
        self.compute_capability.0 * 10 + self.compute_capability.1
    }

    /// Asks the driver for everything.
    pub(super) fn query(
        driver: &Driver,
        device: sys::CUdevice,
        ordinal: u32,
    ) -> Result<DeviceInfo, DriverError> {
        let get = |attribute| attribute_of(driver, device, attribute);
        Ok(DeviceInfo {
            ordinal,
            name: name_of(driver, device)?,
            compute_capability: (
                get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            multiprocessors: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            warp_size: get(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            max_threads_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_threads_per_multiprocessor: get(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            )?,
            max_block: [
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
            max_grid: [
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            shared_bytes_per_block: get(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
            )?,
            shared_bytes_per_block_optin: get(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )?,
            shared_bytes_per_multiprocessor: get(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            )?,
            registers_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
            total_memory: total_memory_of(driver, device)?,
            l2_bytes: get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
            // Drivers since CUDA 13 may leave the clocks out; nothing depends on them.
            clock_khz: get(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE).unwrap_or(0),
            memory_clock_khz: get(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unwrap_or(0),
            memory_bus_bits: get(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
            // Drivers before CUDA 11.2 do not know the question.
            has_pools: get(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
                .is_ok_and(|has| has == 1),
            compute_mode: match get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)? {
                0 => "default",
                2 => "prohibited",
                _ => "exclusive process",
            },
        })
    }
}

fn attribute_of(
    driver: &Driver,
    device: sys::CUdevice,
    attribute: Attribute,
) -> Result<u32, DriverError> {
    let mut value: c_int = 0;
    // SAFETY: `value` outlives the call; `device` came from `cuDeviceGet`.
    let code = unsafe { (driver.table.cuDeviceGetAttribute)(&mut value, attribute, device) };
    driver.check("cuDeviceGetAttribute", code)?;
    Ok(u32::try_from(value).unwrap_or(0))
}

fn name_of(driver: &Driver, device: sys::CUdevice) -> Result<String, DriverError> {
    let mut name = [0u8; 256];
    // SAFETY: the buffer has the length given; the driver writes a NUL-terminated string.
    let code = unsafe {
        (driver.table.cuDeviceGetName)(
            name.as_mut_ptr().cast::<c_char>(),
            name.len() as c_int,
            device,
        )
    };
    driver.check("cuDeviceGetName", code)?;
    let text = CStr::from_bytes_until_nul(&name).map(|name| name.to_string_lossy().into_owned());
    Ok(text.unwrap_or_default())
}

fn total_memory_of(driver: &Driver, device: sys::CUdevice) -> Result<u64, DriverError> {
    let mut bytes = 0usize;
    // SAFETY: `bytes` outlives the call; `device` came from `cuDeviceGet`.
    let code = unsafe { (driver.table.cuDeviceTotalMem_v2)(&mut bytes, device) };
    driver.check("cuDeviceTotalMem", code)?;
    Ok(bytes as u64)
}
