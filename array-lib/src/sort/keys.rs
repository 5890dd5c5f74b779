//! Keys that are in the order of elements: unsigned integers whose bits compare as the elements do.

use half::{bf16, f16};
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Result;
use kiln_jit_core::front::AsKernel as _;
use kiln_jit_core::value::KernelType;
use kiln_kernel_macro::{device_fn, kernel};

use super::radix::{
    count_tile_u32, count_tile_u64, count_u32, count_u64, sweep_pairs_u32, sweep_pairs_u64,
    sweep_u32, sweep_u64,
};

/// A type of elements that can be sorted. NaNs come last, as NumPy has them, and are alike.
pub trait SortElement: KernelType {
    /// What is sorted in its place.
    #[doc(hidden)]
    type Key: RadixKey;
    /// How many bits of a key differ.
    #[doc(hidden)]
    const BITS: u32;
    /// Counts the digits of keys.
    #[doc(hidden)]
    fn count_digits() -> Result<&'static Kernel>;
    /// Counts the last digit of the keys of each tile.
    #[doc(hidden)]
    fn count_tiles() -> Result<&'static Kernel>;
    /// Puts elements in order by their only digit.
    #[doc(hidden)]
    fn sort_at_once() -> Result<&'static Kernel>;
    /// Puts keys in the order of their last digit, which comes first.
    #[doc(hidden)]
    fn sort_first() -> Result<&'static Kernel>;
    /// Puts elements in the order of their first digit, which comes last.
    #[doc(hidden)]
    fn sort_last() -> Result<&'static Kernel>;
    /// Puts keys in the order of their last digit, and numbers beside them.
    #[doc(hidden)]
    fn sort_pairs() -> Result<&'static Kernel>;
}

/// An unsigned integer that is sorted by its digits.
#[doc(hidden)]
pub trait RadixKey: KernelType {
    /// Keys of a tile.
    const TILE: usize;
    /// Counts a digit of the keys of each tile.
    fn count_tiles() -> Result<&'static Kernel>;
    /// Puts keys in the order of a digit.
    fn keys() -> Result<&'static Kernel>;
    /// Puts keys in the order of a digit, and numbers beside them.
    fn pairs() -> Result<&'static Kernel>;
}

/// The kernels of elements whose keys are of a type, with as many blocks at once as in `radix`.
macro_rules! kernels {
    ($ty:ident $key:ident $blocks:tt $to_key:expr, $of_key:expr, $count:ident $count_tile:ident $sweep:ident $sweep_pairs:ident) => {
        #[kernel]
        fn count_digits(x: &[$ty], places: usize, counts: &mut [u32]) {
            $count(x, places, counts, $to_key);
        }

        #[kernel]
        fn count_tiles(x: &[$ty], shift: u32, counts: &mut [u32]) {
            $count_tile(x, shift, counts, $to_key);
        }

        #[kernel(launch_bounds(256, $blocks))]
        fn sort_at_once(
            x: &[$ty],
            out: &mut [$ty],
            shift: u32,
            starts: &[u32],
            state: &mut [u32],
            counted: bool,
        ) {
            $sweep(x, out, shift, starts, state, counted, $to_key, $of_key);
        }

        #[kernel(launch_bounds(256, $blocks))]
        fn sort_first(
            x: &[$ty],
            out: &mut [$key],
            shift: u32,
            starts: &[u32],
            state: &mut [u32],
            counted: bool,
        ) {
            $sweep(x, out, shift, starts, state, counted, $to_key, |key| key);
        }

        #[kernel(launch_bounds(256, $blocks))]
        fn sort_last(
            x: &[$key],
            out: &mut [$ty],
            shift: u32,
            starts: &[u32],
            state: &mut [u32],
            counted: bool,
        ) {
            $sweep(x, out, shift, starts, state, counted, |key| key, $of_key);
        }

        #[kernel]
        fn sort_pairs(
            x: &[$ty],
            values: &[u32],
            numbered: bool,
            out: &mut [$key],
            values_out: &mut [u32],
            is_last: bool,
            shift: u32,
            starts: &[u32],
            state: &mut [u32],
            counted: bool,
        ) {
            $sweep_pairs(
                x, values, numbered, out, values_out, is_last, shift, starts, state, counted,
                $to_key,
            );
        }
    };
}

/// The kernels of each type, each in a module of its own: to a key, and back.
macro_rules! keys {
    ($($ty:ident $key:ident $blocks:tt $bits:literal $module:ident $count:ident $count_tile:ident $sweep:ident $sweep_pairs:ident
        = $to_key:expr, $of_key:expr;)*) => {$(
        mod $module {
            use super::*;

            kernels! { $ty $key $blocks $to_key, $of_key, $count $count_tile $sweep $sweep_pairs }

            impl SortElement for $ty {
                type Key = $key;
                const BITS: u32 = $bits;
                fn count_digits() -> Result<&'static Kernel> {
                    count_digits.as_kernel()
                }
                fn count_tiles() -> Result<&'static Kernel> {
                    count_tiles.as_kernel()
                }
                fn sort_at_once() -> Result<&'static Kernel> {
                    sort_at_once.as_kernel()
                }
                fn sort_first() -> Result<&'static Kernel> {
                    sort_first.as_kernel()
                }
                fn sort_last() -> Result<&'static Kernel> {
                    sort_last.as_kernel()
                }
                fn sort_pairs() -> Result<&'static Kernel> {
                    sort_pairs.as_kernel()
                }
            }
        }
    )*};
}

/// Of negative floats all bits are turned, of others the sign.
#[device_fn]
fn key_of_bits(bits: u32, sign: u32) -> u32 {
    if bits & sign != 0 { !bits } else { bits | sign }
}

#[device_fn]
fn bits_of_key(key: u32, sign: u32) -> u32 {
    if key & sign != 0 { key ^ sign } else { !key }
}

#[device_fn]
fn key_of_f64(x: f64) -> u64 {
    let (bits, sign) = (x.to_bits(), 1 << 63);
    if x.is_nan() {
        u64::MAX
    } else if bits & sign != 0 {
        !bits
    } else {
        bits | sign
    }
}

#[device_fn]
fn f64_of_key(key: u64) -> f64 {
    let sign = 1 << 63;
    f64::from_bits(if key & sign != 0 { key ^ sign } else { !key })
}

#[device_fn]
fn key_of_f16(x: f16) -> u32 {
    if x.is_nan() {
        0xffff
    } else {
        key_of_bits(x.to_bits() as u32, 0x8000) & 0xffff
    }
}

#[device_fn]
fn key_of_bf16(x: bf16) -> u32 {
    if x.is_nan() {
        0xffff
    } else {
        key_of_bits(x.to_bits() as u32, 0x8000) & 0xffff
    }
}

#[device_fn]
fn key_of_f32(x: f32) -> u32 {
    if x.is_nan() {
        u32::MAX
    } else {
        // Two steps: a negative number's sign is in each bit.
        let bits = x.to_bits();
        bits ^ (((bits as i32) >> 31) as u32 | 0x8000_0000)
    }
}

keys! {
    u8 u32 3 8 of_u8 count_u32 count_tile_u32 sweep_u32 sweep_pairs_u32 = |x| x as u32, |k| k as u8;
    u16 u32 3 16 of_u16 count_u32 count_tile_u32 sweep_u32 sweep_pairs_u32 = |x| x as u32, |k| k as u16;
    u32 u32 3 32 of_u32 count_u32 count_tile_u32 sweep_u32 sweep_pairs_u32 = |x| x, |k| k;
    u64 u64 2 64 of_u64 count_u64 count_tile_u64 sweep_u64 sweep_pairs_u64 = |x| x, |k| k;
    i8 u32 3 8 of_i8 count_u32 count_tile_u32 sweep_u32 sweep_pairs_u32
        = |x| (x as u8 ^ 0x80) as u32, |k| (k as u8 ^ 0x80) as i8;
    i16 u32 3 16 of_i16 count_u32 count_tile_u32 sweep_u32 sweep_pairs_u32
        = |x| (x as u16 ^ 0x8000) as u32, |k| (k as u16 ^ 0x8000) as i16;
    i32 u32 3 32 of_i32 count_u32 count_tile_u32 sweep_u32 sweep_pairs_u32
        = |x| x as u32 ^ 0x8000_0000, |k| (k ^ 0x8000_0000) as i32;
    i64 u64 2 64 of_i64 count_u64 count_tile_u64 sweep_u64 sweep_pairs_u64
        = |x| x as u64 ^ (1 << 63), |k| (k ^ (1 << 63)) as i64;
    f16 u32 3 16 of_f16 count_u32 count_tile_u32 sweep_u32 sweep_pairs_u32
        = |x| key_of_f16(x), |k| f16::from_bits(bits_of_key(k, 0x8000) as u16);
    bf16 u32 3 16 of_bf16 count_u32 count_tile_u32 sweep_u32 sweep_pairs_u32
        = |x| key_of_bf16(x), |k| bf16::from_bits(bits_of_key(k, 0x8000) as u16);
    f32 u32 3 32 of_f32 count_u32 count_tile_u32 sweep_u32 sweep_pairs_u32
        = |x| key_of_f32(x), |k| f32::from_bits(bits_of_key(k, 0x8000_0000));
    f64 u64 2 64 of_f64 count_u64 count_tile_u64 sweep_u64 sweep_pairs_u64
        = |x| key_of_f64(x), |k| f64_of_key(k);
}
