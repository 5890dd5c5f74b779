//! Memory of the device and pinned memory of the host; copies.

use std::ffi::c_uint;

use super::graphs::CopyParams;
use super::{CURRENT, Code, Handle, State, call};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code {
    call("cuMemGetInfo_v2", true, |s| {
        // SAFETY: the caller's pointers are live.
        unsafe {
            *free = s.total - s.used();
            *total = s.total;
        }
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> Code {
    call("cuMemAlloc_v2", true, |s| {
        if bytes == 0 {
            return 1;
        }
        if bytes > s.total - s.used() {
            return 2;
        }
        let words = vec![0xDEAD_BEEF_DEAD_BEEF; bytes.div_ceil(8)];
        let start = words.as_ptr() as u64;
        s.memory.insert(start, words);
        s.lengths.insert(start, bytes);
        s.owners.insert(start, CURRENT.get());
        // SAFETY: the caller's pointer is live.
        unsafe { *address = start };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> Code {
    call("cuMemFree_v2", true, |s| {
        // A driver waits for the kernel, which here is never done.
        if s.busy {
            return 999;
        }
        s.order.free(address);
        s.lengths.remove(&address);
        s.pooled.remove(&address);
        s.owners.remove(&address);
        if s.memory.remove(&address).is_some() {
            0
        } else {
            1
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(pointer: *mut usize, bytes: usize, flags: c_uint) -> Code {
    call("cuMemHostAlloc", true, |s| {
        if flags != 3 {
            return 1;
        }
        let pinned: usize = s.pinned.values().map(|words| 8 * words.len()).sum();
        if s.pinned_limit.is_some_and(|limit| pinned + bytes > limit) {
            return 2;
        }
        let words = vec![0u64; bytes.div_ceil(8)];
        let start = words.as_ptr() as usize;
        s.pinned.insert(start, words);
        // SAFETY: the caller's pointer is live.
        unsafe { *pointer = start };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostGetDevicePointer_v2(
    device: *mut u64,
    host: usize,
    flags: c_uint,
) -> Code {
    call("cuMemHostGetDevicePointer_v2", true, |s| {
        if flags != 0 || !s.pinned.contains_key(&host) {
            return 1;
        }
        // SAFETY: the caller's pointer is live.
        unsafe { *device = host as u64 };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(host: usize) -> Code {
    call("cuMemFreeHost", true, |s| {
        if s.pinned.remove(&host).is_some() {
            0
        } else {
            1
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const u8, bytes: usize) -> Code {
    call("cuMemcpyHtoD_v2", true, |s| s.upload(to, from, bytes, 0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const u8,
    bytes: usize,
    stream: Handle,
) -> Code {
    call("cuMemcpyHtoDAsync_v2", true, |s| {
        s.upload(to, from, bytes, stream)
    })
}

impl State {
    fn upload(&mut self, to: u64, from: *const u8, bytes: usize, stream: Handle) -> Code {
        self.access(stream, to, true, "a copy to the device");
        match self.range(to, bytes) {
            // SAFETY: both ranges have this many bytes.
            Some(to) => unsafe {
                to.copy_from(from, bytes);
                0
            },
            None => 1,
        }
    }

    fn copy(&mut self, to: u64, from: u64, bytes: usize, stream: Handle) -> Code {
        self.access(stream, from, false, "a copy");
        self.access(stream, to, true, "a copy");
        match (self.range(to, bytes), self.range(from, bytes)) {
            // SAFETY: both ranges have this many bytes.
            (Some(to), Some(from)) => unsafe {
                to.copy_from(from, bytes);
                0
            },
            _ => 1,
        }
    }

    fn download(&mut self, to: *mut u8, from: u64, bytes: usize, stream: Handle) -> Code {
        self.access(stream, from, false, "a copy from the device");
        match self.range(from, bytes) {
            // SAFETY: both ranges have this many bytes.
            Some(from) => unsafe {
                to.copy_from(from, bytes);
                0
            },
            None => 1,
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, bytes: usize) -> Code {
    call("cuMemcpyDtoH_v2", true, |s| {
        let code = s.download(to, from, bytes, 0);
        s.order.wait_on_host(0);
        code
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut u8,
    from: u64,
    bytes: usize,
    stream: Handle,
) -> Code {
    call("cuMemcpyDtoHAsync_v2", true, |s| {
        s.download(to, from, bytes, stream)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) -> Code {
    call("cuMemcpyDtoD_v2", true, |s| s.copy(to, from, bytes, 0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyPeerAsync(
    to: u64,
    to_context: Handle,
    from: u64,
    from_context: Handle,
    bytes: usize,
    stream: Handle,
) -> Code {
    call("cuMemcpyPeerAsync", true, |s| {
        let is_of = |address: u64, context: Handle| {
            let start = s.allocation(address);
            start.is_some_and(|start| s.owners.get(&start) == Some(&context))
        };
        if !is_of(to, to_context) || !is_of(from, from_context) {
            return 1;
        }
        s.peer_copies += 1;
        s.copy(to, from, bytes, stream)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoDAsync_v2(
    to: u64,
    from: u64,
    bytes: usize,
    stream: Handle,
) -> Code {
    call("cuMemcpyDtoDAsync_v2", true, |s| {
        s.copy(to, from, bytes, stream)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: Handle) -> Code {
    call("cuMemsetD8Async", true, |s| {
        s.access(stream, to, true, "a fill");
        match s.range(to, count) {
            // SAFETY: the range has this many bytes.
            Some(to) => unsafe {
                to.write_bytes(value, count);
                0
            },
            None => 1,
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemsetD32Async(to: u64, value: u32, count: usize, _: Handle) -> Code {
    call("cuMemsetD32Async", true, |s| match s.range(to, count * 4) {
        Some(to) if to as usize % 4 == 0 => {
            for i in 0..count {
                // SAFETY: the range has this many aligned words.
                unsafe { to.cast::<u32>().add(i).write(value) };
            }
            0
        }
        _ => 1,
    })
}

/// Copies of rows, of a device (2) or of the host (1) on either side.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpy3DAsync_v2(params: *const CopyParams, stream: Handle) -> Code {
    // SAFETY: the caller's pointer is live.
    let params = unsafe { &*params };
    call("cuMemcpy3DAsync_v2", true, |s| {
        let [bytes, rows, planes] = params.extent;
        let to = [params.to_pitch[0], params.to_pitch[0] * params.to_pitch[1]];
        let from = [params.from_pitch[0], params.from_pitch[0] * params.from_pitch[1]];
        let fits = |[pitch, plane]: [usize; 2]| pitch >= bytes && (planes == 1 || plane >= rows * pitch);
        let plain = [params.to_at, params.from_at].concat().iter().all(|at| *at == 0);
        if bytes * rows * planes == 0 || !plain || !fits(to) || !fits(from) {
            return 1;
        }
        s.row_copies += 1;
        for (plane, row) in (0..planes).flat_map(|plane| (0..rows).map(move |row| (plane, row))) {
            let at = |[pitch, next]: [usize; 2]| plane * next + row * pitch;
            let (to, from) = (at(to), at(from));
            let code = match (params.to_type, params.from_type) {
                (2, 2) => s.copy(params.to + to as u64, params.from + from as u64, bytes, stream),
                (2, 1) => {
                    let host = (params.from_host + from) as *const u8;
                    s.upload(params.to + to as u64, host, bytes, stream)
                }
                (1, 2) => {
                    let host = (params.to_host + to) as *mut u8;
                    s.download(host, params.from + from as u64, bytes, stream)
                }
                _ => 1,
            };
            if code != 0 {
                return code;
            }
        }
        0
    })
}

/// How often rows were copied by one call.
#[unsafe(no_mangle)]
pub extern "C" fn fake_row_copies() -> u64 {
    super::with(|s| s.row_copies)
}

/// Has the host no more than this to pin.
#[unsafe(no_mangle)]
pub extern "C" fn fake_pinned_limit(bytes: usize) {
    super::with(|s| s.pinned_limit = Some(bytes));
}

#[unsafe(no_mangle)]
pub extern "C" fn fake_peer_copies() -> u64 {
    super::with(|s| s.peer_copies)
}
