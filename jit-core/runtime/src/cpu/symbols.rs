//! The functions that host code may call: a closed table, each with its one meaning.
//!
//! LLVM calls the memory functions for copies and fills, and the mathematical ones for what the
//! processor has no instruction for.

use std::ffi::c_void;

/// The address of a function that LLVM may call.
pub(crate) fn find(name: &str) -> Option<usize> {
    let found = TABLE.iter().find(|(known, _)| *known == name);
    found.map(|(_, address)| address().expose_provenance())
}

/// A row's address; a function, as a static cannot hold one portably.
type Address = fn() -> *const c_void;

const TABLE: &[(&str, Address)] = &[
    ("memcpy", || memcpy as *const c_void),
    ("memmove", || memmove as *const c_void),
    ("memset", || memset as *const c_void),
    ("fma", || fma as *const c_void),
    ("fmaf", || fmaf as *const c_void),
    ("floor", || floor as *const c_void),
    ("floorf", || floorf as *const c_void),
    ("ceil", || ceil as *const c_void),
    ("ceilf", || ceilf as *const c_void),
    ("trunc", || trunc as *const c_void),
    ("truncf", || truncf as *const c_void),
    ("rint", || rint as *const c_void),
    ("rintf", || rintf as *const c_void),
    ("fmin", || fmin as *const c_void),
    ("fminf", || fminf as *const c_void),
    ("fmax", || fmax as *const c_void),
    ("fmaxf", || fmaxf as *const c_void),
];

// SAFETY: the C library's functions, with the signatures of the C standard; Rust links them anyway.
unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    fn memset(to: *mut c_void, value: i32, bytes: usize) -> *mut c_void;
}

macro_rules! math {
    ($($double:ident, $single:ident, ($($arg:ident),*) $method:ident;)*) => {$(
        extern "C" fn $double($($arg: f64),*) -> f64 {
            f64::$method($($arg),*)
        }

        extern "C" fn $single($($arg: f32),*) -> f32 {
            f32::$method($($arg),*)
        }
    )*};
}
math! {
    fma, fmaf, (a, b, c) mul_add;
    floor, floorf, (a) floor;
    ceil, ceilf, (a) ceil;
    trunc, truncf, (a) trunc;
    rint, rintf, (a) round_ties_even;
    fmin, fminf, (a, b) min;
    fmax, fmaxf, (a, b) max;
}

#[cfg(test)]
mod tests {
    use super::TABLE;
    use kiln_ir::host_abi::FUNCTIONS;

    #[test]
    fn what_code_may_call_is_there() {
        let names: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, FUNCTIONS);
    }
}
