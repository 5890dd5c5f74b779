//! Intrinsics without host code: computed from the meaning in their row.

use std::ffi::c_void;

use crate::ir::{IntrinsicDef, Lanes, Meaning, Scalar, WARP_LANES, WarpArgs};

/// The most arguments a row has.
const MAX_ARGS: usize = 8;

/// Computes a function of its arguments; 0 for rows that are none.
///
/// # Safety
/// `row` is a row of the intrinsic table, `args` are `count` words.
pub(super) unsafe extern "C" fn pure(
    row: *const c_void,
    scalar: u32,
    args: *const u64,
    count: u32,
) -> u64 {
    // SAFETY: the code embeds the address of a static row.
    let row = unsafe { &*row.cast::<IntrinsicDef>() };
    // SAFETY: the code passes that many words on its stack.
    let args = unsafe { std::slice::from_raw_parts(args, count as usize) };
    match (row.meaning, Scalar::ALL.get(scalar as usize)) {
        (Meaning::Pure(f), Some(&scalar)) => f(scalar, args),
        _ => 0,
    }
}

/// Computes what the lanes of a warp do together. `args` are `count` words for each of 32 lanes,
/// argument by argument; the results go to the first 32 words.
///
/// # Safety
/// `row` is a row of the intrinsic table, `args` are that many words, at least 32.
pub(super) unsafe extern "C" fn warp(
    row: *const c_void,
    scalar: u32,
    lanes: u32,
    args: *mut u64,
    count: u32,
) {
    // SAFETY: the code embeds the address of a static row.
    let row = unsafe { &*row.cast::<IntrinsicDef>() };
    let mut lists: [Lanes; MAX_ARGS] = [[0; WARP_LANES]; MAX_ARGS];
    let count = (count as usize).min(MAX_ARGS);
    for (i, list) in lists[..count].iter_mut().enumerate() {
        // SAFETY: the code passes 32 words an argument on its stack.
        *list = unsafe { args.cast::<Lanes>().add(i).read() };
    }
    let (Meaning::Warp(f), Some(&scalar)) = (row.meaning, Scalar::ALL.get(scalar as usize)) else {
        return;
    };
    let results = f(
        scalar,
        &WarpArgs {
            lanes,
            args: &lists[..count],
        },
    );
    // SAFETY: there are at least 32 words.
    unsafe { args.cast::<Lanes>().write(results) };
}
