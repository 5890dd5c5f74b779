//! Who is told of faults besides whoever waits: what a program asks to be called with.
//!
//! What kernels print comes out in the same way, after any call that waits.
//!
//! A fault is an error of the next call that waits for what has it. Whoever listens is called in that call, before it
//! returns, in its thread; once for each fault, and once when the device is lost, which every later call says.

use std::cell::Cell;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::device::Device;
use crate::error::{DeviceError, Result};

/// What is called with a fault.
pub type FaultListener = dyn Fn(&DeviceError) + Send + Sync;

/// Who is called after a call has waited.
pub trait WaitListener: Send + Sync {
    /// A call on the device has waited, in this thread.
    fn waited(&self);
}

/// Who listens to a device.
#[derive(Default)]
pub(crate) struct Listeners {
    list: Mutex<Vec<Weak<FaultListener>>>,
    /// Whether the listeners were told that the device is lost.
    told_of_loss: AtomicBool,
    waits: Mutex<Vec<Weak<dyn WaitListener>>>,
    /// Whether anybody was ever to be called after a wait.
    has_waits: AtomicBool,
}

thread_local! {
    /// Whether this thread is in a listener.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

struct Telling;

impl Drop for Telling {
    fn drop(&mut self) {
        TELLING.set(false);
    }
}

impl Device {
    /// Calls this with each fault that a call on this device is told, for as long as it lives.
    pub fn on_fault(&self, listener: Weak<FaultListener>) {
        let mut list = self.listeners().list.lock();
        list.retain(|known| known.strong_count() > 0);
        list.push(listener);
    }

    /// Calls this after each call on this device that waits for work, in its thread, for as long as it lives.
    pub fn on_wait(&self, listener: Weak<dyn WaitListener>) {
        let mut waits = self.listeners().waits.lock();
        waits.retain(|known| known.strong_count() > 0);
        waits.push(listener);
        self.listeners().has_waits.store(true, Relaxed);
    }

    /// Calls those who are to be called after a wait, and tells those who listen of a fault, before a call returns it.
    /// Nothing may be locked.
    #[inline]
    pub fn waited<T>(&self, result: Result<T>) -> Result<T> {
        if self.listeners().has_waits.load(Relaxed) {
            self.tell_waited();
        }
        self.told(result)
    }

    #[cold]
    fn tell_waited(&self) {
        // What a listener waits for itself is told to nobody.
        if TELLING.get() {
            return;
        }
        let waits = self.listeners().waits.lock();
        let list: Vec<_> = waits.iter().filter_map(Weak::upgrade).collect();
        drop(waits);
        TELLING.set(true);
        let _telling = Telling;
        list.iter().for_each(|listener| listener.waited());
    }

    /// Tells those who listen of a fault, before a call returns it. Nothing may be locked.
    #[inline]
    pub fn told<T>(&self, result: Result<T>) -> Result<T> {
        // In two arms, as what is well is then not moved.
        match result {
            Ok(value) => Ok(value),
            Err(error) => Err(self.told_of(error)),
        }
    }

    #[cold]
    fn told_of(&self, error: DeviceError) -> DeviceError {
        self.tell(&error);
        error
    }

    fn tell(&self, error: &DeviceError) {
        let listeners = self.listeners();
        let is_first = || !error.is_loss() || !listeners.told_of_loss.swap(true, Relaxed);
        // What a listener does itself it is not told.
        if !error.is_fault() || TELLING.get() || !is_first() {
            return;
        }
        let list: Vec<_> = listeners
            .list
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        TELLING.set(true);
        let _telling = Telling;
        for listener in list {
            listener(error);
        }
    }
}
