//! A launch, as hooks are told of it, and how long it took the device.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::abi::{LaunchArg, LaunchArgs};
use crate::code::KernelInfo;
use crate::error::Result;
use crate::launch::LaunchConfig;
use crate::runtime::{Device, Event, OrderedStream};

/// A launch, as run-time hooks see it.
///
/// ```
/// use kiln::prelude::*;
///
/// use std::sync::Mutex;
///
/// use kiln::core::hook::{Hook, LaunchTime};
///
/// #[kernel]
/// fn double(x: &mut [f32], n: u32) {
///     let i = global_id().x;
///     if i < n as usize {
///         x[i] *= 2.0;
///     }
/// }
///
/// static TIMES: Mutex<Vec<LaunchTime>> = Mutex::new(Vec::new());
///
/// # fn main() -> kiln::Result<()> {
/// let timer = Hook::new("timer").before_launch(|event| {
///     assert_eq!(event.kernel, "double");
///     assert_eq!(event.args().count(), 2);
///     assert!(event.arg("n").is_some());
///     TIMES.lock().expect("nobody panics").push(event.measure());
///     Ok(())
/// });
/// let jit = Jit::builder().hook(timer).build()?;
/// let mut x = jit.upload(&[1.0f32; 100])?;
/// jit.launch(&double, 1, 128, args!(&mut x, 100u32))?;
/// for time in TIMES.lock().expect("nobody panics").iter() {
///     println!("{:?} ms", time.milliseconds()?);
/// }
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
pub struct LaunchEvent<'a> {
    /// Which launch it is: the same number before and after it, and no other launch of the process has it.
    pub id: u64,
    /// The kernel's name, which need not be unique.
    pub kernel: &'a str,
    /// Identifies what the code was made of: the leading bytes of the cache key's digest
    /// ([`HookContext::tag`](super::HookContext)).
    pub tag: u64,
    /// Grid, block, dynamic shared memory.
    pub config: &'a LaunchConfig,
    /// The device.
    pub device: &'a Device,
    /// In which order of its work.
    pub stream: LaunchStream,
    info: &'a KernelInfo,
    args: &'a LaunchArgs<'a>,
    time: &'a OnceLock<LaunchTime>,
}

/// In which order of a device's work a launch is done.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum LaunchStream {
    /// The device's own: one after the other.
    #[default]
    Device,
    /// A stream beside it, by its place among the device's streams, from 1.
    Beside(u32),
}

/// How long a launch took the device, once it is asked for.
#[derive(Clone, Default)]
pub struct LaunchTime(Arc<OnceLock<(Event, Event)>>);

impl fmt::Debug for LaunchEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchEvent")
            .field("id", &self.id)
            .field("kernel", &self.kernel)
            .field("config", &self.config)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LaunchTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let measured = self.0.get().is_some();
        write!(f, "LaunchTime(measured: {measured})")
    }
}

impl<'a> LaunchEvent<'a> {
    /// What is passed for each of the kernel's parameters, in order, by name: values, and addresses on the device.
    pub fn args(&self) -> impl Iterator<Item = (&'a str, LaunchArg<'a>)> {
        let names = self.info.param_names.iter().map(String::as_str);
        names.zip(self.args.iter()).take(self.args.layout().visible)
    }

    /// What is passed for the parameter of this name.
    pub fn arg(&self, name: &str) -> Option<LaunchArg<'a>> {
        let found = self.args().find(|(known, _)| *known == name);
        found.map(|(_, arg)| arg)
    }

    /// Has the launch measured, if this is asked before it: the device then notes when it begins and ends, and
    /// nobody waits. What comes back can be kept, and asked at any time later. On a CPU the time is that of the
    /// launch alone: its code has been made by then.
    pub fn measure(&self) -> LaunchTime {
        self.time.get_or_init(LaunchTime::default).clone()
    }
}

impl LaunchTime {
    /// Milliseconds between the device's coming to the launch and its end; waits for that. Where other threads
    /// launch at the same time, theirs may lie between. `None` if the launch was not made, or not yet, or was
    /// measured for nobody before it.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn milliseconds(&self) -> Result<Option<f64>> {
        let measured = self.0.get();
        measured.map(|(from, to)| from.elapsed_ms(to)).transpose()
    }
}

/// A launch under way, of which hooks are told.
#[doc(hidden)]
pub struct Observed<'a> {
    id: u64,
    info: &'a KernelInfo,
    config: &'a LaunchConfig,
    device: &'a Device,
    stream: &'a OrderedStream,
    time: OnceLock<LaunchTime>,
}

impl<'a> Observed<'a> {
    #[doc(hidden)]
    pub fn new(
        info: &'a KernelInfo,
        config: &'a LaunchConfig,
        device: &'a Device,
        stream: &'a OrderedStream,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Observed {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            info,
            config,
            device,
            stream,
            time: OnceLock::new(),
        }
    }

    /// What hooks are told.
    #[doc(hidden)]
    pub fn event<'e>(&'e self, args: &'e LaunchArgs<'e>) -> LaunchEvent<'e> {
        LaunchEvent {
            id: self.id,
            kernel: &self.info.name,
            tag: self.info.kernel_tag,
            config: self.config,
            device: self.device,
            stream: match self.stream.place() {
                0 => LaunchStream::Device,
                place => LaunchStream::Beside(place as u32),
            },
            info: self.info,
            args,
            time: &self.time,
        }
    }

    /// Makes the launch, measured if a hook has asked for that.
    #[doc(hidden)]
    pub fn launch(&self, submit: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(time) = self.time.get() else {
            return submit();
        };
        let from = Event::record_in(self.device, self.stream)?;
        submit()?;
        let to = Event::record_in(self.device, self.stream)?;
        // It is made once.
        let _ = time.0.set((from, to));
        Ok(())
    }
}
