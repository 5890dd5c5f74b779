//! Results of work that the host does not wait for: what is waited for later, by a call or by a task.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use kiln_runtime::{Finishing, HostMemory, Pending, Reach};

use crate::error::{Error, Result};

/// What work of a device gives back when it is done: a copy its memory, all that a stream was given nothing. Who drops it
/// neither waits nor stops the work; the memory of a copy is freed later.
///
/// It is a future, for any executor: a thread of Kiln's looks whether the work is done and wakes the task. With a time limit
/// (`JitOptions::time_limit`) a task waits on a GPU for no longer than a call does, and has the same error.
#[must_use = "what is copied, or has gone wrong, can be had from it"]
pub struct Later<R>(Option<Work<R>>);

/// What is waited for, and what it gives.
enum Work<R> {
    Copy(Pending, Box<dyn FnOnce(HostMemory) -> Result<R> + Send>),
    Stream(Finishing, R),
}

impl<R> Work<R> {
    fn reach(&self) -> &Reach {
        match self {
            Work::Copy(pending, _) => pending.reach(),
            Work::Stream(finishing, _) => finishing.reach(),
        }
    }

    fn wait(self) -> Result<R> {
        match self {
            Work::Copy(pending, finish) => finish(pending.wait()?),
            Work::Stream(finishing, result) => Ok(finishing.wait().map(|()| result)?),
        }
    }
}

impl<R> std::fmt::Debug for Later<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Later<{}>", std::any::type_name::<R>())
    }
}

impl<R> Unpin for Later<R> {}

impl Later<()> {
    /// Of all that a stream was given.
    #[doc(hidden)]
    pub fn of_stream(finishing: Finishing) -> Later<()> {
        Later(Some(Work::Stream(finishing, ())))
    }
}

impl<R> Later<R> {
    /// Of a copy, and what is made of its memory.
    pub(crate) fn of_copy(
        pending: Pending,
        finish: impl FnOnce(HostMemory) -> Result<R> + Send + 'static,
    ) -> Later<R> {
        Later(Some(Work::Copy(pending, Box::new(finish))))
    }

    /// Waits until the work is done.
    ///
    /// # Errors
    /// A fault that a launch before it has left, or a device that has failed; what was read and is no value of
    /// its type.
    pub fn wait(mut self) -> Result<R> {
        self.take()
    }

    /// Waits until the work is done, but for no longer than this: `None` if it is not, and it may be waited for again.
    ///
    /// # Errors
    /// As [`Later::wait`].
    pub fn wait_for(&mut self, limit: Duration) -> Result<Option<R>> {
        match &self.0 {
            // What has failed is what waiting tells.
            Some(work) if matches!(work.reach().wait_for(limit), Ok(false)) => Ok(None),
            _ => self.take().map(Some),
        }
    }

    /// Whether the work is done.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn is_done(&self) -> Result<bool> {
        match &self.0 {
            Some(work) => Ok(work.reach().is_done()?),
            None => Ok(true),
        }
    }

    fn take(&mut self) -> Result<R> {
        match self.0.take() {
            Some(work) => work.wait(),
            None => Err(Error::Internal("work was asked for its result again")),
        }
    }
}

impl<R> Future for Later<R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<R>> {
        if let Some(work) = &self.0
            && let Some(waits) = poll_reach(work.reach(), cx)
        {
            return match waits {
                Poll::Pending => Poll::Pending,
                Poll::Ready(error) => {
                    // The device has the memory of a copy until that is done, should it ever be.
                    self.0 = None;
                    Poll::Ready(Err(error))
                }
            };
        }
        Poll::Ready(self.take())
    }
}

/// The waiting of a task until a mark is reached, or the error of who has waited for too long. `None`: it is reached, or
/// the device has failed.
pub(crate) fn poll_reach(reach: &Reach, cx: &mut Context<'_>) -> Option<Poll<Error>> {
    if !matches!(reach.is_done(), Ok(false)) {
        return None;
    }
    Some(match reach.wake(cx.waker()) {
        Ok(()) => Poll::Pending,
        Err(error) => Poll::Ready(error.into()),
    })
}
