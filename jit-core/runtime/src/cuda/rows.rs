//! Copies of rows that lie apart, by one call (CUDA Driver API, `cuMemcpy3DAsync`).

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use cudarc::driver::sys::{self, CUmemorytype};

use super::error::DriverError;
use super::stream::CudaStream;
use crate::rows::{Laid, Rows};

/// The name of the call, for errors.
const CALL: &str = "cuMemcpy3DAsync";

/// Whether rows lie no farther apart than the call takes.
fn is_one_call(to: &Laid, from: &Laid) -> bool {
    const MOST: usize = i32::MAX as usize;
    to.pitch <= MOST && from.pitch <= MOST
}

/// One side of a copy.
pub(super) enum Side {
    Device(u64),
    Host(*mut c_void),
}

/// The copy as the driver reads it. A row alone may have no pitch, which has a limit that rows have not.
pub(super) fn params(
    (to_side, to): (Side, Laid),
    (from_side, from): (Side, Laid),
    rows: Rows,
) -> sys::CUDA_MEMCPY3D {
    let of = |side: Side| match side {
        Side::Device(address) => (CUmemorytype::CU_MEMORYTYPE_DEVICE, address, ptr::null_mut()),
        Side::Host(start) => (CUmemorytype::CU_MEMORYTYPE_HOST, 0, start),
    };
    let height = |laid: Laid| laid.plane.checked_div(laid.pitch).unwrap_or(0);
    let ((to_type, to_device, to_host), (from_type, from_device, from_host)) =
        (of(to_side), of(from_side));
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from_type,
        srcHost: from_host.cast_const(),
        srcDevice: from_device,
        srcArray: ptr::null_mut(),
        reserved0: ptr::null_mut(),
        srcPitch: from.pitch,
        srcHeight: height(from),
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to_type,
        dstHost: to_host,
        dstDevice: to_device,
        dstArray: ptr::null_mut(),
        reserved1: ptr::null_mut(),
        dstPitch: to.pitch,
        dstHeight: height(to),
        WidthInBytes: rows.bytes,
        Height: rows.rows,
        Depth: rows.planes,
    }
}

impl CudaStream {
    /// Copies rows between device memory behind the stream's work, without waiting for it.
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`] for either range; [`DriverError::Poisoned`].
    pub(crate) fn copy_rows(&self, to: Laid, from: Laid, rows: Rows) -> Result<(), DriverError> {
        if !is_one_call(&to, &from) {
            return rows.one_by_one((to, from), |to, from, bytes| {
                self.copy_on_device(to, from, bytes as u64)
            });
        }
        let context = &self.context;
        for laid in [&to, &from] {
            context.is_range(CALL, laid.start, rows.span(laid) as u64)?;
        }
        let (to_side, from_side) = (Side::Device(to.start), Side::Device(from.start));
        // SAFETY: both ranges are inside of live allocations.
        unsafe { self.begin_rows((to_side, to), (from_side, from), rows) }
    }

    /// Copies rows of host bytes to device memory behind the stream's work, and waits for that.
    ///
    /// # Errors
    /// As [`CudaStream::copy_to_device`].
    pub(crate) fn copy_rows_to_device(
        &self,
        to: Laid,
        bytes: &[MaybeUninit<u8>],
        from: Laid,
        rows: Rows,
    ) -> Result<(), DriverError> {
        if !is_one_call(&to, &from) {
            return rows.upload_one_by_one(to, (bytes, from), |to, bytes| {
                self.copy_to_device(to, bytes)
            });
        }
        let bytes = &bytes[from.start as usize..][..rows.span(&from)];
        let context = &self.context;
        context.is_range(CALL, to.start, rows.span(&to) as u64)?;
        context.wait_within_limit(CALL, || self.is_done())?;
        let host = Side::Host(bytes.as_ptr().cast_mut().cast());
        // SAFETY: the range on the device is inside of a live allocation, that of the host is valid until the stream was
        // waited for.
        let begun = unsafe { self.begin_rows((Side::Device(to.start), to), (host, from), rows) };
        self.copied(begun)
    }

    /// Copies rows of device memory to host bytes behind the stream's work, and waits for that.
    ///
    /// # Errors
    /// As [`CudaStream::copy_to_host`].
    pub(crate) fn copy_rows_to_host(
        &self,
        from: Laid,
        bytes: &mut [u8],
        to: Laid,
        rows: Rows,
    ) -> Result<(), DriverError> {
        if !is_one_call(&to, &from) {
            return rows.download_one_by_one(from, (bytes, to), |from, bytes| {
                self.copy_to_host(bytes, from)
            });
        }
        let bytes = &mut bytes[to.start as usize..][..rows.span(&to)];
        let context = &self.context;
        context.is_range(CALL, from.start, rows.span(&from) as u64)?;
        context.wait_within_limit(CALL, || self.is_done())?;
        let host = Side::Host(bytes.as_mut_ptr().cast());
        // SAFETY: as above.
        let begun = unsafe { self.begin_rows((host, to), (Side::Device(from.start), from), rows) };
        self.copied(begun)
    }

    /// # Safety
    /// Both sides are valid for the rows until the copy is done.
    unsafe fn begin_rows(
        &self,
        (to_side, to): (Side, Laid),
        (from_side, from): (Side, Laid),
        rows: Rows,
    ) -> Result<(), DriverError> {
        let table = self.context.enter()?;
        let params = params((to_side, to), (from_side, from), rows);
        // SAFETY: the parameters outlive the call; the ranges are valid, as the caller promises.
        let code = unsafe { (table.cuMemcpy3DAsync_v2)(&params, self.raw()) };
        self.context.check(CALL, code)
    }
}
