//! The flag that ends a launch before its time: a call from another thread, a time limit, or
//! something that went wrong in one of its blocks sets it; what runs the launch looks at it.

use std::sync::atomic::{AtomicU32, Ordering};

/// Why a launch is to end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u32)]
#[non_exhaustive]
pub enum StopReason {
    /// Somebody asked for it.
    Cancelled = 1,
    /// A launch that ran longer than it may.
    TimeLimit = 2,
    /// A launch that cannot go on, which is told elsewhere.
    Failed = 3,
}

/// Whether a launch is to end. Once set it stays, and the first reason counts.
///
/// Host code reads it as 32 bits that are 0 as long as nothing is asked.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Stop(AtomicU32);

impl Stop {
    /// Asks for the end, unless it is asked for already.
    pub fn ask(&self, reason: StopReason) {
        // Whoever is first has decided the reason.
        let _ = self
            .0
            .compare_exchange(0, reason as u32, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Whether the launch is to end.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Why the launch is to end, if it is.
    pub fn reason(&self) -> Option<StopReason> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            1 => Some(StopReason::Cancelled),
            2 => Some(StopReason::TimeLimit),
            _ => Some(StopReason::Failed),
        }
    }

    /// Where host code looks.
    pub fn as_ptr(&self) -> *const u32 {
        self.0.as_ptr()
    }
}
