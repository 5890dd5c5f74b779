//! Time limits of launches: a thread that sets a launch's flag when its time is over.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use kiln_ir::stop::{Stop, StopReason};

use crate::error::{DeviceError, Result};

/// Stack of the thread, which does little.
const STACK_BYTES: usize = 128 << 10;

#[derive(Default)]
struct State {
    /// Launches that run, and until when they may.
    running: Vec<(Instant, Arc<Stop>)>,
    /// When the thread looks next, if it does by itself.
    looks: Option<Instant>,
    end: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

/// Ends launches that run too long. Its thread is started by the first launch with a limit.
#[derive(Default)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Watch {
    /// Makes sure that there is a thread.
    pub(super) fn start(&self) -> Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            let builder = std::thread::Builder::new()
                .name("kiln time limit".to_owned())
                .stack_size(STACK_BYTES);
            let started = builder.spawn(move || shared.look());
            *thread = Some(started.map_err(|error| DeviceError::Workers(error.to_string()))?);
        }
        Ok(())
    }

    /// A launch begins to run, and has this much time.
    pub(super) fn begin(&self, stop: &Arc<Stop>, limit: Duration) {
        // What does not fit the clock is no limit.
        let Some(until) = Instant::now().checked_add(limit) else {
            return;
        };
        let mut state = self.shared.state.lock();
        state.running.push((until, stop.clone()));
        if state.looks.is_none_or(|at| at > until) {
            self.shared.wake.notify_one();
        }
    }

    /// A launch has ended.
    pub(super) fn end(&self, stop: &Arc<Stop>) {
        let mut state = self.shared.state.lock();
        state
            .running
            .retain(|(_, running)| !Arc::ptr_eq(running, stop));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.state.lock().end = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn look(&self) {
        let mut state = self.state.lock();
        while !state.end {
            let now = Instant::now();
            state.running.retain(|(until, stop)| {
                if *until <= now {
                    stop.ask(StopReason::TimeLimit);
                }
                *until > now
            });
            state.looks = state.running.iter().map(|(until, _)| *until).min();
            match state.looks {
                Some(at) => {
                    self.wake.wait_until(&mut state, at);
                }
                None => self.wake.wait(&mut state),
            }
        }
    }
}
