//! Launches, the streams that they go to, and events.

use std::ffi::{c_int, c_uint, c_void};

use super::{Code, Handle, call, with};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    function: Handle,
    threads: c_int,
    _: usize,
) -> Code {
    call("cuOccupancyMaxActiveBlocksPerMultiprocessor", true, |s| {
        if !s.functions.contains_key(&function) || threads == 0 {
            return 1;
        }
        // SAFETY: the caller's pointer is live.
        unsafe { *blocks = 2048 / threads };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
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
    extra: *mut *mut c_void,
) -> Code {
    call("cuLaunchKernel", true, |s| {
        let Some((_, _, shared_limit)) = s.functions.get(&function) else {
            return 400;
        };
        if stream != 0 && !s.streams.contains(&stream) {
            return 400;
        }
        let threads = u64::from(bx) * u64::from(by) * u64::from(bz);
        let size = [gx, gy, gz, bx, by, bz];
        let most = [i32::MAX as u32, 65535, 65535, 1024, 1024, 64];
        let outside = size.iter().zip(most).any(|(n, most)| *n == 0 || *n > most);
        if outside || threads > 1024 || shared as c_int > *shared_limit || !extra.is_null() {
            return 1;
        }
        if threads > 512 {
            return 701;
        }
        let first = if params.is_null() {
            0
        } else {
            // SAFETY: the block of parameters has at least 8 bytes from the first on, that of the fault channel
            // among them.
            unsafe { (*params).cast::<u64>().read_unaligned() }
        };
        let [gx, gy, gz, bx, by, bz] = size.map(u64::from);
        s.last_launch = [gx, gy, gz, bx, by, bz, u64::from(shared), first];
        if let Some((left, code)) = &mut s.sticky_after {
            *left -= 1;
            if *left == 0 {
                s.sticky = *code;
                s.sticky_after = None;
            }
        }
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut Handle, _: c_uint) -> Code {
    call("cuStreamCreate", true, |s| {
        let handle = s.handle();
        s.streams.insert(handle);
        // SAFETY: the caller's pointer is live.
        unsafe { *stream = handle };
        0
    })
}

fn stream_call(name: &str, stream: Handle) -> Code {
    call(name, true, |s| {
        if stream == 0 || s.streams.contains(&stream) {
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: Handle) -> Code {
    call("cuStreamDestroy_v2", true, |s| {
        if s.streams.remove(&stream) { 0 } else { 400 }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: Handle) -> Code {
    stream_call("cuStreamSynchronize", stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: Handle) -> Code {
    match stream_call("cuStreamQuery", stream) {
        0 if with(|s| s.busy) => 600,
        code => code,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: Handle, _: Handle, flags: c_uint) -> Code {
    if flags != 0 {
        return 1;
    }
    stream_call("cuStreamWaitEvent", stream)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut Handle, _: c_uint) -> Code {
    call("cuEventCreate", true, |s| {
        let handle = s.handle();
        s.events.insert(handle, false);
        // SAFETY: the caller's pointer is live.
        unsafe { *event = handle };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: Handle) -> Code {
    call("cuEventDestroy_v2", true, |s| {
        if s.events.remove(&event).is_some() {
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: Handle, stream: Handle) -> Code {
    call("cuEventRecord", true, |s| {
        if stream != 0 && !s.streams.contains(&stream) {
            return 400;
        }
        match s.events.get_mut(&event) {
            Some(recorded) => {
                *recorded = true;
                0
            }
            None => 400,
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: Handle) -> Code {
    call("cuEventQuery", true, |s| {
        if s.events.contains_key(&event) {
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: Handle) -> Code {
    call("cuEventSynchronize", true, |s| {
        if s.events.contains_key(&event) {
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(ms: *mut f32, start: Handle, end: Handle) -> Code {
    call("cuEventElapsedTime", true, |s| {
        if s.events.get(&start) != Some(&true) || s.events.get(&end) != Some(&true) {
            return 400;
        }
        // SAFETY: the caller's pointer is live.
        unsafe { *ms = 1.5 };
        0
    })
}
