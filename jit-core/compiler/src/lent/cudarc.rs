//! Memory of cudarc. What it does with a slice is ordered in the slice's stream, which lending waits for: also for the
//! allocation itself.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DevicePtr as _};

use super::{DeviceFunction, DeviceMemory, DeviceStream};
use crate::error::Result;
use crate::runtime::DeviceError;
use crate::value::KernelType;

// SAFETY: cudarc frees it where the slice is dropped, which a borrow keeps from happening, and has no way to what is
// borrowed mutably but the borrow.
unsafe impl<T: KernelType> DeviceMemory for CudaSlice<T> {
    type Element = T;

    fn address(&self) -> u64 {
        // What keeps the order of streams ends at once: `settle` waits.
        let (address, order) = self.device_ptr(self.stream());
        drop(order);
        address
    }

    fn len(&self) -> usize {
        CudaSlice::len(self)
    }

    fn settle(&self) -> Result<()> {
        let device = || format!("CUDA device {}", self.ordinal());
        let waited = self.stream().synchronize();
        waited.map_err(|error| {
            let (device, message) = (
                device(),
                format!("cudarc cannot wait for its stream: {error}"),
            );
            DeviceError::Backend { device, message }.into()
        })
    }
}

// SAFETY: cudarc destroys it where the last that has it is dropped.
unsafe impl DeviceStream for Arc<CudaStream> {
    fn as_raw(&self) -> *mut c_void {
        self.cu_stream().cast()
    }
}

// SAFETY: it has its module, which cudarc unloads where the last that has it is dropped.
unsafe impl DeviceFunction for CudaFunction {
    fn as_raw(&self) -> *mut c_void {
        self.cu_function().cast()
    }
}
