//! Modules, their functions and variables.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::launches::parameters;
use super::{Code, Handle, call};

/// A kernel of a module.
pub(super) struct Function {
    module: Handle,
    pub(super) name: String,
    /// The dynamic shared memory that it is allowed.
    pub(super) shared_limit: c_int,
    /// The offset and the bytes of each parameter.
    pub(super) params: Vec<(usize, usize)>,
}

/// Writes a log into the buffer given by a pair of options, cut to its size.
unsafe fn write_log(log: &CStr, which: u32, options: &[u32], values: &[*mut c_void]) {
    let value = |option| options.iter().position(|o| *o == option).map(|i| values[i]);
    if let (Some(buffer), Some(size)) = (value(which), value(which + 1)) {
        let bytes = log.to_bytes_with_nul();
        let count = bytes.len().min(size as usize);
        // SAFETY: the buffer has the size given.
        unsafe { buffer.cast::<u8>().copy_from(bytes.as_ptr(), count) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut Handle,
    image: *const c_char,
    count: c_uint,
    options: *const u32,
    values: *const *mut c_void,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { load(module, image, count, options, values) }
}

unsafe fn load(
    module: *mut Handle,
    image: *const c_char,
    count: c_uint,
    options: *const u32,
    values: *const *mut c_void,
) -> Code {
    call("cuModuleLoadDataEx", true, |s| {
        // SAFETY: the arrays have `count` elements, and the image is a C string.
        let (options, values, text) = unsafe {
            (
                std::slice::from_raw_parts(options, count as usize),
                std::slice::from_raw_parts(values, count as usize),
                CStr::from_ptr(image).to_string_lossy().into_owned(),
            )
        };
        if let Some((code, log)) = s.reject.take() {
            // SAFETY: as above.
            unsafe { write_log(&log, 5, options, values) };
            return code;
        }
        // Machine code is not looked into: only its first text.
        if !text.contains(".version") && !text.starts_with("\x7fELF") {
            let log = c"ptxas fatal   : Missing .version directive\n";
            // SAFETY: as above.
            unsafe { write_log(log, 5, options, values) };
            return 218;
        }
        // SAFETY: as above.
        unsafe { write_log(c"ptxas info    : Used 32 registers\n", 3, options, values) };
        let handle = s.handle();
        for line in text.lines() {
            if let Some(rest) = line.trim().strip_prefix(".global .align 8 .b8 ")
                && let Some((name, size)) = rest.trim_end_matches("];").split_once('[')
                && let Ok(size) = size.parse::<usize>()
            {
                s.globals
                    .insert((handle, name.to_owned()), vec![0; size.div_ceil(8)]);
            }
        }
        s.modules.insert(handle, text);
        // SAFETY: the caller's pointer is live.
        unsafe { *module = handle };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLinkCreate_v2(
    _count: c_uint,
    _options: *const u32,
    _values: *const *mut c_void,
    state: *mut Handle,
) -> Code {
    call("cuLinkCreate_v2", true, |s| {
        let handle = s.handle();
        s.links.insert(handle, Vec::new());
        // SAFETY: the caller's pointer is live.
        unsafe { *state = handle };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLinkAddData_v2(
    state: Handle,
    kind: u32,
    data: *const u8,
    size: usize,
    _name: *const c_char,
    _count: c_uint,
    _options: *const u32,
    _values: *const *mut c_void,
) -> Code {
    call("cuLinkAddData_v2", true, |s| {
        // SAFETY: the data has that many bytes.
        let data = unsafe { std::slice::from_raw_parts(data, size) };
        let Some(image) = s.links.get_mut(&state) else {
            return 400;
        };
        // PTX is kind 1, and ends with NUL.
        if kind != 1 || data.last() != Some(&0) {
            return 1;
        }
        image.extend(b"\x7fELF\n");
        image.extend(data);
        image.resize(image.len().max(64), 0);
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLinkComplete(
    state: Handle,
    image: *mut *const u8,
    size: *mut usize,
) -> Code {
    call("cuLinkComplete", true, |s| {
        let Some(made) = s.links.get(&state) else {
            return 400;
        };
        s.linked += 1;
        // SAFETY: the caller's pointers are live.
        unsafe { (*image, *size) = (made.as_ptr(), made.len()) };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLinkDestroy(state: Handle) -> Code {
    call("cuLinkDestroy", true, |s| {
        // What was made is no longer there.
        if s.links.remove(&state).is_some() {
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: Handle) -> Code {
    call("cuModuleUnload", true, |s| {
        s.functions.retain(|_, function| function.module != module);
        s.globals.retain(|(owner, _), _| *owner != module);
        if s.modules.remove(&module).is_some() {
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut Handle, image: *const c_char) -> Code {
    let (none, no_values) = (std::ptr::dangling(), std::ptr::dangling());
    // SAFETY: the caller's pointers, and no options.
    unsafe { load(module, image, 0, none, no_values) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    function: *mut Handle,
    module: Handle,
    name: *const c_char,
) -> Code {
    call("cuModuleGetFunction", true, |s| {
        // SAFETY: the name is a C string.
        let name = unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned();
        let Some(text) = s.modules.get(&module) else {
            return 400;
        };
        if !text.contains(&format!(".entry {name}(")) {
            return 500;
        }
        let found = Function {
            module,
            params: parameters(text, &name),
            name,
            shared_limit: 48 * 1024,
        };
        let handle = s.handle();
        s.functions.insert(handle, found);
        // SAFETY: the caller's pointer is live.
        unsafe { *function = handle };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetGlobal_v2(
    address: *mut u64,
    bytes: *mut usize,
    module: Handle,
    name: *const c_char,
) -> Code {
    call("cuModuleGetGlobal_v2", true, |s| {
        // SAFETY: the name is a C string.
        let name = unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned();
        let Some(words) = s.globals.get(&(module, name)) else {
            return 500;
        };
        // SAFETY: the caller's pointers are live.
        unsafe {
            *address = words.as_ptr() as u64;
            *bytes = words.len() * 8;
        }
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, which: u32, f: Handle) -> Code {
    call("cuFuncGetAttribute", true, |s| {
        if !s.functions.contains_key(&f) {
            return 400;
        }
        let found = match which {
            0 => 512,
            1 => 1024,
            2 => 360,
            3 => 16,
            4 => 128,
            6 => 90,
            _ => return 1,
        };
        // SAFETY: the caller's pointer is live.
        unsafe { *value = found };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(function: Handle, which: u32, value: c_int) -> Code {
    call("cuFuncSetAttribute", true, |s| {
        match s.functions.get_mut(&function) {
            Some(function) if which == 8 && value <= 226 * 1024 => {
                function.shared_limit = value;
                0
            }
            Some(_) => 1,
            None => 400,
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetParamInfo(
    function: Handle,
    index: usize,
    offset: *mut usize,
    size: *mut usize,
) -> Code {
    call("cuFuncGetParamInfo", true, |s| {
        let Some(function) = s.functions.get(&function) else {
            return 400;
        };
        let Some((at, bytes)) = function.params.get(index) else {
            return 1;
        };
        // SAFETY: the caller's pointers are live.
        unsafe {
            *offset = *at;
            *size = *bytes;
        }
        0
    })
}
