//! What the tests tell the driver to do, and ask it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use super::{CURRENT, Code, Handle, STATE, with};

#[unsafe(no_mangle)]
pub extern "C" fn fake_set(version: c_int, devices: c_int, init_code: Code, total: usize) {
    with(|s| {
        s.version = version;
        s.devices = devices;
        s.init_code = init_code;
        s.total = total;
    });
}

/// Whether devices that are opened from now on have pools.
#[unsafe(no_mangle)]
pub extern "C" fn fake_pools(pools: bool) {
    with(|s| s.without_pools = !pools);
}

/// How many pools there are, their bytes that are free, and how many of these may be kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_pooled(out: *mut [u64; 3]) {
    let pooled = with(|s| {
        let kept = s.pools.values().map(|pool| pool.kept as u64).sum();
        let threshold = s.pools.values().map(|pool| pool.threshold).max();
        [s.pools.len() as u64, kept, threshold.unwrap_or(0)]
    });
    // SAFETY: the test passes a live array.
    unsafe { *out = pooled };
}

/// A kernel runs from now on, or has ended.
#[unsafe(no_mangle)]
pub extern "C" fn fake_busy(busy: bool) {
    with(|s| s.busy = busy);
}

/// Forgets everything, including this thread's current context, but the references to contexts that the process keeps.
#[unsafe(no_mangle)]
pub extern "C" fn fake_reset() {
    let kept = with(|s| std::mem::take(&mut s.retained));
    *STATE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
    with(|s| s.retained = kept.into_iter().map(|(device, count)| (device, count.min(1))).collect());
    CURRENT.set(0);
}

#[unsafe(no_mangle)]
pub extern "C" fn fake_set_compute_mode(mode: c_int) {
    with(|s| s.compute_mode = mode);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_fail(name: *const c_char, nth: u32, code: Code) {
    // SAFETY: the test passes a C string.
    let name = unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned();
    with(|s| {
        s.failed = None;
        s.plan = Some((name, nth, code));
    });
}

/// Whether work is done only once the host has waited for it.
#[unsafe(no_mangle)]
pub extern "C" fn fake_lazy(lazy: bool) {
    with(|s| s.order.lazy = lazy);
}

/// Whether launches take a while, so that other threads come between.
#[unsafe(no_mangle)]
pub extern "C" fn fake_slow(slow: bool) {
    with(|s| s.slow = slow);
}

/// Whether launches of kernels whose names have `_held` wait in the driver.
#[unsafe(no_mangle)]
pub extern "C" fn fake_hold(holds: bool) {
    with(|s| s.holds = holds);
}

/// How many launches wait there.
#[unsafe(no_mangle)]
pub extern "C" fn fake_held() -> u64 {
    with(|s| s.held)
}

/// How often a stream was made to wait for an event.
#[unsafe(no_mangle)]
pub extern "C" fn fake_waits() -> u64 {
    with(|s| s.order.waits)
}

/// Copies the words for the first race there was; gives their number of bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_race(out: *mut u8, room: usize) -> usize {
    let race = with(|s| s.order.race.take()).unwrap_or_default();
    let count = race.len().min(room);
    // SAFETY: the test passes an array of that size.
    unsafe { out.copy_from(race.as_ptr(), count) };
    count
}

/// The call that the plan made fail, or null.
#[unsafe(no_mangle)]
pub extern "C" fn fake_failed() -> *const c_char {
    with(|s| {
        s.failed
            .as_ref()
            .map_or(std::ptr::null(), |name| name.as_ptr())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn fake_sticky_after(launches: u32, code: Code) {
    with(|s| s.sticky_after = Some((launches, code)));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_reject(code: Code, log: *const c_char) {
    // SAFETY: the test passes a C string.
    let log = unsafe { CStr::from_ptr(log) }.to_owned();
    with(|s| s.reject = Some((code, log)));
}

/// The bytes that this driver has allocated and not freed.
#[unsafe(no_mangle)]
pub extern "C" fn fake_alive() -> i64 {
    crate::counting::alive()
}

#[unsafe(no_mangle)]
pub extern "C" fn fake_calls() -> u64 {
    with(|s| s.calls)
}

/// Gives this function the name of each call that was made, and how often it was.
#[unsafe(no_mangle)]
pub extern "C" fn fake_calls_of(tell: extern "C" fn(*const c_char, u64, *mut c_void), to: *mut c_void) {
    let calls = with(|s| s.calls_of.clone());
    for (name, count) in calls {
        let name = CString::new(name).unwrap_or_default();
        tell(name.as_ptr(), count, to);
    }
}

/// How often machine code was made, and how much of it is being made now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_links(out: *mut [u64; 2]) {
    // SAFETY: the test passes a live array.
    unsafe { *out = with(|s| [s.linked, s.links.len() as u64]) };
}

/// Allocations, pinned allocations, modules, streams, events, references to primary contexts beyond the one of each device
/// that a process keeps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_ledger(out: *mut [u64; 6]) {
    let ledger = with(|s| {
        [
            s.memory.len() as u64,
            s.pinned.len() as u64,
            s.modules.len() as u64,
            s.streams.len() as u64,
            s.events.len() as u64,
            s.retained.values().map(|count| count.saturating_sub(1)).sum(),
        ]
    });
    // SAFETY: the test passes a live array.
    unsafe { *out = ledger };
}

/// Grid, block, shared bytes and first parameter of the last launch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_last_launch(out: *mut [u64; 8]) {
    // SAFETY: the test passes a live array.
    unsafe { *out = with(|s| s.last_launch) };
}

/// The bytes of the last launch's parameters, at most so many, and how many there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_last_params(out: *mut u8, most: usize) -> usize {
    with(|s| {
        let count = s.last_params.len().min(most);
        // SAFETY: the test passes an array of that length.
        unsafe { std::slice::from_raw_parts_mut(out, count) }.copy_from_slice(&s.last_params[..count]);
        s.last_params.len()
    })
}

/// What a faulting thread does with the channel at this address; 1 if it claimed the record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_raise_fault(
    channel: u64,
    site: u32,
    tag: u64,
    index: u64,
    length: u64,
) -> u32 {
    with(|s| {
        if s.range(channel, 16).is_none() {
            return 2;
        }
        // SAFETY: inside a live allocation of at least 16 bytes, aligned to 8.
        unsafe {
            let claimed = channel as *mut u32;
            if claimed.read_volatile() != 0 {
                return 0;
            }
            claimed.write_volatile(1);
            let record = (channel as *const u64).add(1).read_volatile() as *mut u8;
            record.add(4).cast::<u32>().write_volatile(site);
            record.add(8).cast::<u64>().write_volatile(tag);
            record.add(16).cast::<u64>().write_volatile(index);
            record.add(24).cast::<u64>().write_volatile(length);
            record.add(32).cast::<[u32; 3]>().write_volatile([1, 2, 3]);
            record.add(44).cast::<[u32; 3]>().write_volatile([4, 5, 6]);
            record.cast::<u32>().write_volatile(1);
        }
        1
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn fake_use(stream: Handle, address: u64) {
    with(|s| s.access(stream, address, true, "other code's work"));
}
