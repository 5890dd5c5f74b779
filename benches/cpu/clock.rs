//! Process CPU time and wall time of something that is run a few times.
#![allow(dead_code, reason = "each bench uses a part of it")]

use std::ffi::{c_int, c_long};
use std::time::Instant;

/// Seconds of one run.
#[derive(Copy, Clone, Debug)]
pub struct Sample {
    /// What all threads of the process used.
    pub cpu: f64,
    /// What went by.
    pub wall: f64,
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: c_long,
}

/// Linux's `CLOCK_PROCESS_CPUTIME_ID`.
const PROCESS_CPU_TIME: c_int = 2;

unsafe extern "C" {
    // The C library is linked by Rust's own; its signature on 64-bit Linux.
    fn clock_gettime(clock: c_int, now: *mut Timespec) -> c_int;
}

/// CPU time of this process so far, in seconds.
pub fn cpu_time() -> f64 {
    let mut now = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: `now` is valid for writes and laid out as the C library expects.
    let result = unsafe { clock_gettime(PROCESS_CPU_TIME, &mut now) };
    assert_eq!(result, 0, "this system has no process CPU clock");
    now.seconds as f64 + now.nanoseconds as f64 * 1e-9
}

/// Times `times` runs.
pub fn timed<E>(times: u32, mut run: impl FnMut() -> Result<(), E>) -> Result<Sample, E> {
    let (cpu, wall) = (cpu_time(), Instant::now());
    for _ in 0..times {
        run()?;
    }
    let wall = wall.elapsed().as_secs_f64() / f64::from(times);
    let cpu = (cpu_time() - cpu) / f64::from(times);
    Ok(Sample { cpu, wall })
}
