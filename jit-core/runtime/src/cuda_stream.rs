//! Streams of a CUDA device beside its default stream.
//!
//! They are non-blocking, so that nothing waits but what events say. Each has one event that whoever waits for the
//! stream shares: a stream that waits takes the event as it is then, and one that was recorded later covers more.

use std::any::Any;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use kiln_ir::abi::LaunchArgs;
use kiln_ir::code::KernelInfo;
use kiln_ir::launch::LaunchConfig;

use parking_lot::{RwLock, RwLockReadGuard};

use super::cuda::{CudaContext, CudaEvent, CudaStream, DriverError, StreamFaults, StreamHandle};
use super::cuda_device::{event_of, launch_in, mark_in};
use super::cuda_kernels::LoadedKernels;
use super::device::{LoadedCode, Marker};
use crate::adopted::LentStream;
use crate::error::{DeviceError, Result};
use crate::rows::{Laid, Rows};
use crate::stream::{BackendStream, HostCall, StreamOptions};

/// A stream beside the device's own.
pub(super) struct BesideStream {
    context: Arc<CudaContext>,
    kernels: Arc<LoadedKernels>,
    stream: CudaStream,
    event: CudaEvent,
    faults: StreamFaults,
    /// The device's own stream, and what is waited for it by.
    own: (CudaStream, Arc<CudaEvent>),
    /// Of a stream of other code: it is not left while somebody here uses it without having it.
    lent: Option<RwLock<()>>,
}

impl BesideStream {
    pub(super) fn create(
        context: &Arc<CudaContext>,
        kernels: &Arc<LoadedKernels>,
        own_event: &Arc<CudaEvent>,
        options: StreamOptions,
    ) -> Result<BesideStream> {
        Ok(BesideStream {
            context: context.clone(),
            kernels: kernels.clone(),
            event: context.create_order_event()?,
            faults: StreamFaults::create(context)?,
            stream: context.create_stream_beside(options.priority)?,
            own: (context.default_stream(), own_event.clone()),
            lent: None,
        })
    }

    /// A stream of other code. What it is given from here on is behind what the device's own stream was given.
    pub(super) fn adopt(
        context: &Arc<CudaContext>,
        kernels: &Arc<LoadedKernels>,
        own_event: &Arc<CudaEvent>,
        stream: &LentStream,
    ) -> Result<BesideStream> {
        let adopted = BesideStream {
            context: context.clone(),
            kernels: kernels.clone(),
            event: context.create_order_event()?,
            faults: StreamFaults::create(context)?,
            // SAFETY: the stream lives as long as what `stream` keeps, which the device has until it has left it.
            stream: unsafe { context.lent_stream(stream.as_raw())? },
            own: (context.default_stream(), own_event.clone()),
            lent: Some(RwLock::default()),
        };
        if let Err(error) = adopted.takes_work() {
            adopted.stream.leave();
            return Err(error);
        }
        Ok(adopted)
    }

    /// Keeps the stream from being left until what is returned is dropped, and refuses one that other code captures. A
    /// launch has the stream, and need not keep it.
    fn stay(&self) -> Result<Option<RwLockReadGuard<'_, ()>>> {
        // Waiting for others within others' waiting is no way to be stopped by who leaves.
        let stays = self.lent.as_ref().map(RwLock::read_recursive);
        self.takes_work()?;
        Ok(stays)
    }

    /// Refuses a stream that other code captures: of Kiln's own nobody has the handle, or promises not to.
    #[inline]
    pub(super) fn takes_work(&self) -> Result<()> {
        match self.lent {
            None => Ok(()),
            Some(_) => Ok(self.stream.is_not_captured()?),
        }
    }

    /// The stream of this device that another trait object is.
    pub(super) fn of(stream: &dyn BackendStream) -> Result<&BesideStream> {
        let stream = stream.as_any().downcast_ref();
        stream.ok_or(DeviceError::Internal(
            "a stream of another backend reached the CUDA device",
        ))
    }

    /// The stream, for work that it is given at once, and the fault channel of that.
    pub(super) fn where_faults_go(&self) -> Result<(StreamHandle, u64)> {
        self.takes_work()?;
        Ok((self.stream.handle(), self.faults.address()))
    }

    /// Copies to memory of another context, behind the work that the stream has.
    pub(super) fn copy_to(
        &self,
        other: &CudaContext,
        to: u64,
        from: u64,
        bytes: u64,
    ) -> Result<()> {
        let _stays = self.stay()?;
        Ok(self.stream.copy_to_other(other, to, from, bytes)?)
    }

    /// Makes later work wait for an event of another context.
    pub(super) fn wait_for_other(&self, event: &CudaEvent) -> Result<()> {
        let _stays = self.stay()?;
        Ok(self.stream.wait_for_other(event)?)
    }

    /// Makes later work of another stream wait for what this one was given so far.
    pub(super) fn precede(&self, other: &CudaStream) -> Result<()> {
        let _stays = self.stay()?;
        self.event.record(&self.stream)?;
        Ok(other.wait(&self.event)?)
    }
}

impl BackendStream for BesideStream {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn launch(
        &self,
        code: &dyn LoadedCode,
        _kernel: &Arc<KernelInfo>,
        config: &LaunchConfig,
        args: &mut LaunchArgs<'_>,
        limit: Option<Duration>,
    ) -> Result<()> {
        self.takes_work()?;
        let (stream, channel) = (self.stream.handle(), self.faults.address());
        launch_in(&self.context, stream, channel, code, config, args, limit)
    }

    fn upload(&self, address: u64, bytes: &[MaybeUninit<u8>]) -> Result<()> {
        let _stays = self.stay()?;
        Ok(self.stream.copy_to_device(address, bytes)?)
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let _stays = self.stay()?;
        Ok(self.stream.copy_to_host(bytes, address)?)
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        let _stays = self.stay()?;
        Ok(self.stream.copy_on_device(to, from, bytes as u64)?)
    }

    fn copy_rows(&self, to: Laid, from: Laid, rows: Rows) -> Result<()> {
        let _stays = self.stay()?;
        Ok(self.stream.copy_rows(to, from, rows)?)
    }

    fn upload_rows(
        &self,
        to: Laid,
        bytes: &[MaybeUninit<u8>],
        from: Laid,
        rows: Rows,
    ) -> Result<()> {
        let _stays = self.stay()?;
        Ok(self.stream.copy_rows_to_device(to, bytes, from, rows)?)
    }

    fn download_rows(&self, from: Laid, bytes: &mut [u8], to: Laid, rows: Rows) -> Result<()> {
        let _stays = self.stay()?;
        Ok(self.stream.copy_rows_to_host(from, bytes, to, rows)?)
    }

    unsafe fn upload_later(&self, address: u64, from: NonNull<u8>, bytes: usize) -> Result<()> {
        let _stays = self.stay()?;
        // SAFETY: passed on to the caller.
        unsafe {
            let from = from.as_ptr();
            Ok(self.stream.copy_to_device_later(address, from, bytes)?)
        }
    }

    unsafe fn download_later(&self, address: u64, to: NonNull<u8>, bytes: usize) -> Result<()> {
        let _stays = self.stay()?;
        // SAFETY: passed on to the caller.
        unsafe {
            Ok(self
                .stream
                .copy_to_host_later(to.as_ptr(), address, bytes)?)
        }
    }

    fn alloc(&self, bytes: usize) -> Result<Option<u64>> {
        if !self.context.has_pool() {
            return Ok(None);
        }
        let _stays = self.stay()?;
        let handle = self.stream.handle();
        Ok(Some(self.context.alloc_in_order(bytes as u64, handle)?))
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        let _stays = self.stay()?;
        let (handle, bytes) = (self.stream.handle(), bytes as u64);
        Ok(self.context.fill_u8_in(handle, address, 0, bytes)?)
    }

    fn free(&self, address: u64) -> bool {
        // What cannot be freed so is tried in the own stream, and left where that fails, too.
        let (context, handle) = (&self.context, self.stream.handle());
        let freed = match &self.lent {
            None => context.free_in_order(address, handle),
            // Another stream may have its handle once it has ended, which is not behind its work.
            Some(_) if self.takes_work().is_err() => return false,
            Some(_) => context.free_pooled(address, handle),
        };
        freed.unwrap_or(false)
    }

    fn wait_for(&self, other: Option<&dyn BackendStream>) -> Result<()> {
        self.takes_work()?;
        let Some(other) = other else {
            let (own, event) = &self.own;
            event.record(own)?;
            return Ok(self.stream.wait(event)?);
        };
        BesideStream::of(other)?.precede(&self.stream)
    }

    fn wait(&self, marker: &dyn Marker) -> Result<()> {
        self.takes_work()?;
        Ok(self.stream.wait(event_of(marker)?)?)
    }

    fn mark(&self) -> Result<Box<dyn Marker>> {
        let _stays = self.stay()?;
        mark_in(&self.context, &self.stream)
    }

    fn synchronize(&self) -> Result<()> {
        let _stays = self.stay()?;
        self.stream.synchronize()?;
        self.fault()
    }

    fn fault(&self) -> Result<()> {
        let _stays = self.stay()?;
        let record = self.faults.take(self.stream.handle());
        self.kernels.told(record)
    }

    fn is_done(&self) -> Result<bool> {
        let _stays = self.stay()?;
        Ok(self.stream.is_done()?)
    }

    fn then(&self, call: HostCall) -> Result<()> {
        self.takes_work()?;
        Ok(self.stream.call(call)?)
    }

    fn as_raw(&self) -> Option<*mut c_void> {
        Some(self.stream.handle().as_raw())
    }

    fn leave(&self) -> Result<()> {
        let Some(lent) = &self.lent else {
            return Err(DeviceError::Internal("a stream of Kiln's own was left"));
        };
        let _alone = lent.write();
        let (own, _) = &self.own;
        let ordered = match self.stream.is_not_captured() {
            Ok(()) => self
                .event
                .record(&self.stream)
                .and_then(|()| own.wait(&self.event)),
            // An event would be a part of the capture: all that the context does is waited for instead.
            Err(DriverError::StreamIsCaptured) => self.context.synchronize(),
            Err(error) => Err(error),
        };
        // Whatever the driver says: the stream may end.
        self.stream.leave();
        Ok(ordered?)
    }

    fn go_on(&self, stream: &LentStream) -> Result<()> {
        let Some(lent) = &self.lent else {
            return Err(DeviceError::Internal("a stream of Kiln's own goes on"));
        };
        let _alone = lent.write();
        // SAFETY: the stream lives as long as what `stream` keeps, which the device has until it has left it.
        unsafe { self.stream.go_on(stream.as_raw())? };
        let (own, event) = &self.own;
        let ordered = self.stream.is_not_captured();
        let ordered = ordered.and_then(|()| event.record(own));
        let ordered = ordered.and_then(|()| self.stream.wait(event));
        if ordered.is_err() {
            self.stream.leave();
        }
        Ok(ordered?)
    }
}
