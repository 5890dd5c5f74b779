//! How many blocks there can be at once, and launches that need all of theirs.

use std::ffi::{c_int, c_uint, c_void};

use super::launches::launch;
use super::{Code, Handle, call};

/// As many threads of a block as the driver says that is best, whatever the kernel.
const BEST: c_int = 384;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuOccupancyMaxPotentialBlockSize(
    grid: *mut c_int,
    block: *mut c_int,
    function: Handle,
    bytes_of_block: *const c_void,
    _shared: usize,
    limit: c_int,
) -> Code {
    call("cuOccupancyMaxPotentialBlockSize", true, |s| {
        if !s.functions.contains_key(&function) || !bytes_of_block.is_null() {
            return 1;
        }
        s.asked_for_block += 1;
        // SAFETY: the caller's pointers are live.
        unsafe {
            *block = if limit > 0 { BEST.min(limit) } else { BEST };
            *grid = 132;
        }
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchCooperativeKernel(
    function: Handle,
    gx: c_uint,
    gy: c_uint,
    gz: c_uint,
    bx: c_uint,
    by: c_uint,
    bz: c_uint,
    shared: c_uint,
    stream: Handle,
    params: *mut *mut c_void,
) -> Code {
    let fits = super::State::cooperative_blocks(bx * by * bz);
    if gx * gy * gz > fits {
        // CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
        return call("cuLaunchCooperativeKernel", true, |_| 720);
    }
    let (size, none) = ([gx, gy, gz, bx, by, bz], std::ptr::null_mut());
    // SAFETY: the caller's promise.
    let code = unsafe { launch("cuLaunchCooperativeKernel", function, size, shared, stream, params, none) };
    super::with(|s| s.cooperative += u64::from(code == 0));
    code
}

impl super::State {
    /// Multiprocessors times what `cuOccupancyMaxActiveBlocksPerMultiprocessor` says.
    pub(super) fn cooperative_blocks(threads: u32) -> u32 {
        132 * (2048 / threads.max(1))
    }
}

/// Cooperative launches, and how often the driver was asked which block is best.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_occupancy(out: *mut [u64; 2]) {
    // SAFETY: the test passes a live array.
    super::with(|s| unsafe { *out = [s.cooperative, s.asked_for_block] });
}
