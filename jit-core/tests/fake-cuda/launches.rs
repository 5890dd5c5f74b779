//! Launches, the streams that they go to, and events.

use std::ffi::{c_int, c_uint, c_void};

use super::{CONTEXT, Code, Handle, State, call, order, with};

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
    let size = [gx, gy, gz, bx, by, bz];
    // SAFETY: the caller's promise.
    unsafe { launch("cuLaunchKernel", function, size, shared, stream, params, extra) }
}

/// The launch: a function of the driver that calls another by its name would not find it where a test has renamed it.
pub(super) unsafe fn launch(
    name: &str,
    function: Handle,
    size: [c_uint; 6],
    shared: c_uint,
    stream: Handle,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Code {
    let [.., bx, by, bz] = size;
    if with(|s| s.slow) {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
    wait_while_held(function);
    call(name, true, |s| {
        let Some(kernel) = s.functions.get(&function) else {
            return 400;
        };
        let shared_limit = &kernel.shared_limit;
        let (uses, tells_faults) = order::uses_of(&kernel.name);
        if stream != 0 && !s.streams.contains(&stream) {
            return 400;
        }
        let threads = u64::from(bx) * u64::from(by) * u64::from(bz);
        let most = [i32::MAX as u32, 65535, 65535, 1024, 1024, 64];
        let outside = size.iter().zip(most).any(|(n, most)| *n == 0 || *n > most);
        if outside || threads > 1024 || shared as c_int > *shared_limit {
            return 1;
        }
        if threads > 512 {
            return 701;
        }
        // SAFETY: the caller's promise.
        let passed = match unsafe { Passed::of(&kernel.params, params, extra) } {
            Ok(passed) => passed,
            Err(code) => return code,
        };
        // SAFETY: as above.
        let param = |at: usize| unsafe { passed.word(&kernel.params, at) };
        let mut accesses = Vec::new();
        for (at, writes) in uses.iter().enumerate() {
            match s.allocation(param(2 * at)) {
                Some(start) => accesses.push((start, *writes)),
                None => s.order.found("a launch is given memory that is not there"),
            }
        }
        s.captures.work(stream);
        s.order.work(stream, &accesses, "a launch");
        let first = param(if tells_faults { 2 * uses.len() } else { 0 });
        let [gx, gy, gz, bx, by, bz] = size.map(u64::from);
        s.last_launch = [gx, gy, gz, bx, by, bz, u64::from(shared), first];
        // SAFETY: as above.
        s.last_params = unsafe { passed.all(&kernel.params) };
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

/// Waits as long as the test holds launches of this function. Calls of other threads go on.
fn wait_while_held(function: Handle) {
    let is_held = |s: &mut State| {
        let kernel = s.functions.get(&function);
        s.holds && kernel.is_some_and(|kernel| kernel.name.contains("_held"))
    };
    if !with(is_held) {
        return;
    }
    with(|s| s.held += 1);
    while with(is_held) {
        std::thread::sleep(std::time::Duration::from_micros(20));
    }
    with(|s| s.held -= 1);
}

/// What a launch gives: a pointer for each parameter, or the words 1 and 2 before a block and the address of its size.
enum Passed {
    Nothing,
    Pointers(*mut *mut c_void),
    Block(*const u8),
}

impl Passed {
    unsafe fn of(
        list: &[(usize, usize)],
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Result<Passed, Code> {
        match (params.is_null(), extra.is_null()) {
            (true, true) if list.is_empty() => Ok(Passed::Nothing),
            (false, true) => Ok(Passed::Pointers(params)),
            (true, false) => {
                // SAFETY: the words up to the end, and the size behind the second address.
                let (extra, size) = unsafe {
                    let extra = extra.cast::<[usize; 5]>().read();
                    (extra, *(extra[3] as *const usize))
                };
                if (extra[0], extra[2], extra[4]) != (1, 2, 0) {
                    return Err(1);
                }
                // As many bytes as the kernel's parameters have, and nothing behind the last.
                if size != list.last().map_or(0, |(offset, bytes)| offset + bytes) {
                    return Err(701);
                }
                Ok(Passed::Block(extra[1] as *const u8))
            }
            _ => Err(1),
        }
    }

    /// The bytes of a parameter; none where there is none.
    unsafe fn bytes(&self, list: &[(usize, usize)], at: usize) -> &[u8] {
        let Some((offset, bytes)) = list.get(at) else {
            return &[];
        };
        // SAFETY: there is a pointer for each parameter, or a block with all, each of its bytes.
        unsafe {
            let from = match self {
                Passed::Nothing => return &[],
                Passed::Pointers(pointers) => (*pointers.add(at)).cast::<u8>().cast_const(),
                Passed::Block(block) => block.add(*offset),
            };
            std::slice::from_raw_parts(from, *bytes)
        }
    }

    /// The first 8 bytes of a parameter, or as many as it has; 0 where there is none.
    unsafe fn word(&self, list: &[(usize, usize)], at: usize) -> u64 {
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.bytes(list, at) };
        let bytes = bytes.iter().take(8).rev();
        bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    /// All parameters, each at its place.
    unsafe fn all(&self, list: &[(usize, usize)]) -> Vec<u8> {
        let mut all = Vec::new();
        for (at, (offset, _)) in list.iter().enumerate() {
            all.resize(*offset, 0);
            // SAFETY: the caller's promise.
            all.extend_from_slice(unsafe { self.bytes(list, at) });
        }
        all
    }
}

/// The offset and the bytes of each of a kernel's parameters, each at its alignment.
pub(super) fn parameters(text: &str, kernel: &str) -> Vec<(usize, usize)> {
    let list = text.split_once(&format!(".entry {kernel}("));
    let list = list.and_then(|(_, behind)| behind.split_once(')'));
    let (mut params, mut end) = (Vec::new(), 0usize);
    for param in list.map_or("", |(list, _)| list).split(',') {
        let words: Vec<&str> = param.split_whitespace().collect();
        let bits = |word: &&str| word.trim_start_matches(['.', 'b', 'u', 's', 'f']).parse::<usize>();
        let Some(bits) = words.iter().skip(1).find_map(|word| bits(word).ok().filter(|_| word.starts_with('.')))
        else {
            continue;
        };
        let align = words.iter().position(|word| *word == ".align").filter(|_| !words.contains(&".ptr"));
        let align = align.and_then(|at| words.get(at + 1)?.parse().ok());
        let count = param.split_once('[').and_then(|(_, count)| count.trim_end().trim_end_matches(']').parse().ok());
        let (offset, bytes) = (end.next_multiple_of(align.unwrap_or(bits / 8)), bits / 8 * count.unwrap_or(1));
        params.push((offset, bytes));
        end = offset + bytes;
    }
    params
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchHostFunc(
    stream: Handle,
    function: extern "C" fn(*mut c_void),
    data: *mut c_void,
) -> Code {
    let code = stream_call("cuLaunchHostFunc", stream);
    if code == 0 {
        let data = data as usize;
        // A thread of the driver's, at once: nothing says that it is later.
        let called = std::thread::spawn(move || function(data as *mut c_void)).join();
        return if called.is_ok() { 0 } else { 999 };
    }
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetStreamPriorityRange(
    least: *mut c_int,
    greatest: *mut c_int,
) -> Code {
    call("cuCtxGetStreamPriorityRange", true, |_| {
        // SAFETY: the caller's pointers are live.
        unsafe {
            *least = 0;
            *greatest = -5;
        }
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreateWithPriority(
    stream: *mut Handle,
    flags: c_uint,
    priority: c_int,
) -> Code {
    call("cuStreamCreateWithPriority", true, |s| {
        if flags != 1 || !(-5..=0).contains(&priority) {
            return 1;
        }
        let handle = s.handle();
        s.streams.insert(handle);
        // SAFETY: the caller's pointer is live.
        unsafe { *stream = handle };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut Handle, _: c_uint) -> Code {
    call("cuStreamCreate", true, |s| {
        let handle = s.handle();
        s.streams.insert(handle);
        s.order.blocking.push(handle);
        // SAFETY: the caller's pointer is live.
        unsafe { *stream = handle };
        0
    })
}

fn stream_call(name: &str, stream: Handle) -> Code {
    call(name, true, |s| {
        s.captures.work(stream);
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
        if s.streams.remove(&stream) {
            s.order.end_stream(stream);
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: Handle) -> Code {
    match stream_call("cuStreamSynchronize", stream) {
        0 => with(|s| match s.captures.wait(stream) {
            0 => {
                s.order.wait_on_host(stream);
                0
            }
            code => code,
        }),
        code => code,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: Handle) -> Code {
    match stream_call("cuStreamQuery", stream) {
        0 if with(|s| s.captures.wait(stream)) != 0 => 900,
        0 if with(|s| s.busy || !s.order.is_done(stream)) => 600,
        code => code,
    }
}

/// A stream that is not of this driver is said to be of another context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamGetCtx(stream: Handle, context: *mut Handle) -> Code {
    call("cuStreamGetCtx", true, |s| {
        let is_known = stream == 0 || s.streams.contains(&stream);
        // SAFETY: the caller's pointer is live.
        unsafe { *context = if is_known { CONTEXT } else { CONTEXT + 1 } };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) -> Code {
    if flags != 0 {
        return 1;
    }
    let code = stream_call("cuStreamWaitEvent", stream);
    if code == 0 {
        with(|s| s.order.wait(stream, event));
    }
    code
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
            s.order.forget_event(event);
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
                s.captures.work(stream);
                s.order.record(event, stream);
                0
            }
            None => 400,
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: Handle) -> Code {
    call("cuEventQuery", true, |s| {
        match s.events.contains_key(&event) {
            true if !s.busy && s.order.is_reached(event) => 0,
            true => 600,
            false => 400,
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: Handle) -> Code {
    call("cuEventSynchronize", true, |s| {
        if s.events.contains_key(&event) {
            s.order.wait_for_event_on_host(event);
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
