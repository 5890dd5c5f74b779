//! Events: points in a device's work, and the time between them.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kiln_runtime::{Device, Marker, OrderedStream, Reach, outside_of_calls};

use crate::error::Result;
use crate::later::poll_reach;

/// A point in the order of a stream's work (CUDA guide, "Events").
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::runtime::Event;
///
/// # fn main() -> kiln::Result<()> {
/// let device = Device::best()?;
/// let start = Event::record(&device)?;
/// let zeros = Buffer::<u8>::zeros(&device, 1 << 20)?;
/// let end = Event::record(&device)?;
/// end.synchronize()?;
/// assert!(start.is_done()?);
/// assert!(start.elapsed_ms(&end)? >= 0.0);
/// drop(zeros);
/// # Ok(())
/// # }
/// ```
///
/// In a task `event.await?`, or `(&event).await?` where it is used again, does what [`Event::synchronize`] does in a call.
pub struct Event {
    device: Device,
    marker: Arc<dyn Marker>,
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Event({:?})", self.device)
    }
}

impl Event {
    /// Marks the current end of the work of the device's own stream.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn record(device: &Device) -> Result<Event> {
        Event::record_in(device, device.streams().own())
    }

    /// Marks the current end of a stream's work.
    #[doc(hidden)]
    pub fn record_in(device: &Device, stream: &OrderedStream) -> Result<Event> {
        Ok(Event {
            device: device.clone(),
            marker: device.mark(stream)?.into(),
        })
    }

    /// Makes later work of a stream wait for this event.
    #[doc(hidden)]
    pub fn precede(&self, device: &Device, stream: &OrderedStream) -> Result<()> {
        Ok(device.wait(stream, self.marker.as_ref())?)
    }

    /// Waits until the event is reached. What went wrong before it is told by who waits for the stream or the device.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn synchronize(&self) -> Result<()> {
        Ok(Reach::of(&self.device, self.marker.clone()).wait()?)
    }

    /// Whether the event is reached.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn is_done(&self) -> Result<bool> {
        outside_of_calls()?;
        let reached = self.device.backend().is_reached(self.marker.as_ref());
        Ok(self.device.told(reached)?)
    }

    /// Milliseconds of device time from this event to `later`, waiting until it is reached.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn elapsed_ms(&self, later: &Event) -> Result<f64> {
        let backend = self.device.backend();
        Ok(backend.elapsed_ms(self.marker.as_ref(), later.marker.as_ref())?)
    }
}

/// A task's waiting for an [`Event`]: a thread of Kiln's looks whether it is reached and wakes the task. With a time limit
/// (`JitOptions::time_limit`) a task waits on a GPU for no longer than a call does, and has the same error.
#[must_use = "nothing waits until this is awaited"]
pub struct Reached(Reach);

impl std::fmt::Debug for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reached")
    }
}

impl Future for Reached {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match poll_reach(&self.0, cx) {
            Some(Poll::Pending) => Poll::Pending,
            Some(Poll::Ready(error)) => Poll::Ready(Err(error)),
            None => Poll::Ready(Ok(self.0.wait()?)),
        }
    }
}

impl IntoFuture for &Event {
    type Output = Result<()>;
    type IntoFuture = Reached;

    fn into_future(self) -> Reached {
        Reached(Reach::of(&self.device, self.marker.clone()))
    }
}

impl IntoFuture for Event {
    type Output = Result<()>;
    type IntoFuture = Reached;

    fn into_future(self) -> Reached {
        (&self).into_future()
    }
}
