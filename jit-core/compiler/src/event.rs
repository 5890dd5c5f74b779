//! Events: points in a device's work, and the time between them.

use kiln_runtime::{Device, Marker};

use crate::error::Result;

/// A point in the order of a device's work (CUDA guide, "Events").
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
/// assert!(start.elapsed_ms(&end)? >= 0.0);
/// drop(zeros);
/// # Ok(())
/// # }
/// ```
pub struct Event {
    pub(crate) device: Device,
    pub(crate) marker: Box<dyn Marker>,
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Event({:?})", self.device)
    }
}

impl Event {
    /// Marks the current end of the device's work.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn record(device: &Device) -> Result<Event> {
        Ok(Event {
            device: device.clone(),
            marker: device.backend().mark()?,
        })
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
