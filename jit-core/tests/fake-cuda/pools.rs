//! Pools of memory: allocations and their ends in the order of streams.

use std::ffi::c_uint;

use super::{CURRENT, Code, Handle, call};

/// A pool.
#[derive(Default)]
pub(crate) struct Pool {
    /// Bytes of freed allocations.
    pub(crate) kept: usize,
    /// How many of these stay when the device is waited for.
    pub(crate) threshold: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolCreate(pool: *mut Handle, properties: *const [u32; 4]) -> Code {
    call("cuMemPoolCreate", true, |s| {
        // SAFETY: the caller's structure is live, and begins with four numbers.
        let [kind, handles, place, device] = unsafe { *properties };
        if s.without_pools || (kind, handles, place) != (1, 0, 1) || device as i32 >= s.devices {
            return 1;
        }
        let handle = s.handle();
        s.pools.insert(handle, Pool::default());
        // SAFETY: the caller's pointer is live.
        unsafe { *pool = handle };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolDestroy(pool: Handle) -> Code {
    call("cuMemPoolDestroy", true, |s| match s.pools.remove(&pool) {
        Some(_) => 0,
        None => 400,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolSetAttribute(pool: Handle, which: c_uint, value: *mut u64) -> Code {
    call("cuMemPoolSetAttribute", true, |s| {
        match (which, s.pools.get_mut(&pool)) {
            (4, Some(pool)) => {
                // SAFETY: the caller's pointer is live.
                pool.threshold = unsafe { *value };
                0
            }
            _ => 1,
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolGetAttribute(pool: Handle, which: c_uint, value: *mut u64) -> Code {
    call("cuMemPoolGetAttribute", true, |s| {
        let live = s.pooled.iter().filter(|(_, of)| **of == pool);
        let used: usize = live.map(|(start, _)| s.lengths[start]).sum();
        match (which, s.pools.get(&pool)) {
            (5, Some(pool)) => {
                // SAFETY: the caller's pointer is live.
                unsafe { *value = (used + pool.kept) as u64 };
                0
            }
            _ => 1,
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolTrimTo(pool: Handle, keep: usize) -> Code {
    call("cuMemPoolTrimTo", true, |s| match s.pools.get_mut(&pool) {
        Some(pool) => {
            pool.kept = pool.kept.min(keep);
            0
        }
        None => 400,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocFromPoolAsync(
    address: *mut u64,
    bytes: usize,
    pool: Handle,
    stream: Handle,
) -> Code {
    call("cuMemAllocFromPoolAsync", true, |s| {
        let free = s.total - s.used();
        let Some(known) = s.pools.get_mut(&pool) else {
            return 400;
        };
        if bytes == 0 {
            return 1;
        }
        // What is kept is in pieces: one allocation has all of its memory from there, or none.
        if bytes <= known.kept {
            known.kept -= bytes;
        } else if bytes > free {
            return 2;
        }
        let words = vec![0xDEAD_BEEF_DEAD_BEEF; bytes.div_ceil(8)];
        let start = words.as_ptr() as u64;
        s.memory.insert(start, words);
        s.lengths.insert(start, bytes);
        s.pooled.insert(start, pool);
        s.owners.insert(start, CURRENT.get());
        s.order.work(stream, &[(start, true)], "an allocation");
        // SAFETY: the caller's pointer is live.
        unsafe { *address = start };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: u64, stream: Handle) -> Code {
    call("cuMemFreeAsync", true, |s| {
        let Some(pool) = s.pooled.remove(&address) else {
            return 1;
        };
        s.order.free_in(address, stream);
        s.memory.remove(&address);
        s.owners.remove(&address);
        let bytes = s.lengths.remove(&address).unwrap_or_default();
        if let Some(pool) = s.pools.get_mut(&pool) {
            pool.kept += bytes;
        }
        0
    })
}
