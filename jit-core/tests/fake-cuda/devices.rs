//! Initialization, texts of errors, devices and their contexts.

use std::ffi::{CStr, c_char, c_int, c_uint};

use super::{CONTEXT, CURRENT, Code, Handle, call};

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(flags: c_uint) -> Code {
    call(
        "cuInit",
        false,
        |s| if flags == 0 { s.init_code } else { 1 },
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    call("cuDriverGetVersion", false, |s| {
        // SAFETY: the caller's pointer is live.
        unsafe { *version = s.version };
        0
    })
}

fn error_text(code: Code) -> Option<(&'static CStr, &'static CStr)> {
    Some(match code {
        1 => (c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
        2 => (c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
        3 => (c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
        4 => (c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
        46 => (
            c"CUDA_ERROR_DEVICE_UNAVAILABLE",
            c"device busy or unavailable",
        ),
        218 => (c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
        222 => (
            c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            c"unsupported PTX version",
        ),
        400 => (c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
        700 => (c"CUDA_ERROR_ILLEGAL_ADDRESS", c"illegal memory access"),
        701 => (
            c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
            c"too many resources requested",
        ),
        719 => (c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
        803 => (c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", c"version mismatch"),
        _ => return None,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: Code, text: *mut *const c_char) -> Code {
    call("cuGetErrorName", false, |_| match error_text(code) {
        // SAFETY: the caller's pointer is live.
        Some((name, _)) => unsafe {
            *text = name.as_ptr();
            0
        },
        None => 1,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(code: Code, text: *mut *const c_char) -> Code {
    call("cuGetErrorString", false, |_| match error_text(code) {
        // SAFETY: the caller's pointer is live.
        Some((_, description)) => unsafe {
            *text = description.as_ptr();
            0
        },
        None => 1,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Code {
    call("cuDeviceGetCount", false, |s| {
        // SAFETY: the caller's pointer is live.
        unsafe { *count = s.devices };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Code {
    call("cuDeviceGet", false, |s| {
        if ordinal < 0 || ordinal >= s.devices {
            return 101;
        }
        // SAFETY: the caller's pointer is live.
        unsafe { *device = ordinal };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, _: c_int) -> Code {
    call("cuDeviceGetName", false, |_| {
        let text = c"Fake GPU";
        if (length as usize) < text.to_bytes_with_nul().len() {
            return 1;
        }
        // SAFETY: the buffer has the length given.
        unsafe { name.copy_from(text.as_ptr(), text.to_bytes_with_nul().len()) };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, which: u32, _: c_int) -> Code {
    call("cuDeviceGetAttribute", false, |s| {
        let found = match which {
            1 => 1024,
            2 | 3 => 1024,
            4 => 64,
            5 => i32::MAX,
            6 | 7 => 65535,
            8 => 48 * 1024,
            10 => 32,
            12 => 65536,
            13 => 1_980_000,
            16 => 132,
            20 => s.compute_mode,
            36 => 2_619_000,
            37 => 5120,
            38 => 50 << 20,
            39 => 2048,
            75 => 9,
            76 => 0,
            81 => 228 * 1024,
            97 => 227 * 1024,
            115 => c_int::from(!s.without_pools),
            _ => return 1,
        };
        // SAFETY: the caller's pointer is live.
        unsafe { *value = found };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _: c_int) -> Code {
    call("cuDeviceTotalMem_v2", false, |s| {
        // SAFETY: the caller's pointer is live.
        unsafe { *bytes = s.total };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) -> Code {
    call("cuDevicePrimaryCtxRetain", false, |s| {
        if s.compute_mode == 2 {
            return 46;
        }
        *s.retained.entry(device).or_default() += 1;
        // SAFETY: the caller's pointer is live.
        unsafe { *context = CONTEXT + s.resets * 0x100 + device as usize };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Code {
    call("cuDevicePrimaryCtxRelease_v2", false, |s| {
        let count = s.retained.entry(device).or_default();
        if *count == 0 {
            s.order.found("a primary context is released that nobody has");
            return 201;
        }
        *count -= 1;
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxReset_v2(_: c_int) -> Code {
    call("cuDevicePrimaryCtxReset_v2", false, |s| {
        s.begin_anew();
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut Handle) -> Code {
    call("cuCtxGetCurrent", false, |_| {
        // SAFETY: the caller's pointer is live.
        unsafe { *context = CURRENT.get() };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: Handle) -> Code {
    call("cuCtxSetCurrent", false, |_| {
        CURRENT.set(context);
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> Code {
    call("cuCtxSynchronize", true, |s| {
        s.order.wait_for_all_on_host();
        0
    })
}
