//! Memory of cust. Its safe functions copy in the legacy default stream or wait; what it is asked to do in a stream of
//! the program's (`async_copy_from`) is the program's to wait for.

use std::ffi::c_void;
use std::sync::Arc;

use cust::memory::{DeviceBuffer, DeviceCopy, DeviceSlice};
use cust::stream::Stream;

use super::{DeviceMemory, DeviceStream};
use crate::value::KernelType;

// SAFETY: cust frees it where the buffer is dropped, which a borrow keeps from happening, and has no way to what is
// borrowed mutably but the borrow.
unsafe impl<T: KernelType + DeviceCopy> DeviceMemory for DeviceBuffer<T> {
    type Element = T;

    fn address(&self) -> u64 {
        self.as_slice().as_device_ptr().as_raw()
    }

    fn len(&self) -> usize {
        self.as_slice().len()
    }
}

// SAFETY: a part of such a buffer.
unsafe impl<T: KernelType + DeviceCopy> DeviceMemory for DeviceSlice<T> {
    type Element = T;

    fn address(&self) -> u64 {
        self.as_device_ptr().as_raw()
    }

    fn len(&self) -> usize {
        DeviceSlice::len(self)
    }
}

// SAFETY: cust destroys it where it is dropped.
unsafe impl DeviceStream for Stream {
    fn as_raw(&self) -> *mut c_void {
        self.as_inner().cast()
    }
}

// SAFETY: as above, where the last that has it is dropped.
unsafe impl DeviceStream for Arc<Stream> {
    fn as_raw(&self) -> *mut c_void {
        self.as_inner().cast()
    }
}
