//! Keys that are in the order of elements: unsigned integers whose bits compare as the elements do.

use half::{bf16, f16};
use kiln_device_stdlib::plain::index::global_id;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Result;
use kiln_jit_core::front::AsKernel as _;
use kiln_jit_core::value::KernelType;
use kiln_kernel_macro::{device_fn, kernel};

/// A type of elements that can be sorted. NaNs come last, as NumPy has them, and are alike.
pub trait SortElement: KernelType {
    /// What is sorted in its place.
    #[doc(hidden)]
    type Key: RadixKey;
    /// How many bits of a key differ.
    #[doc(hidden)]
    const BITS: u32;
    /// The kernel that makes keys.
    #[doc(hidden)]
    fn to_keys() -> Result<&'static Kernel>;
    /// The kernel that makes elements of keys.
    #[doc(hidden)]
    fn of_keys() -> Result<&'static Kernel>;
}

/// An unsigned integer that is sorted by its digits.
#[doc(hidden)]
pub trait RadixKey: KernelType {
    /// Counts digits.
    fn count() -> Result<&'static Kernel>;
    /// Puts keys in order.
    fn keys() -> Result<&'static Kernel>;
    /// Puts keys in order, and numbers beside them.
    fn pairs() -> Result<&'static Kernel>;
}

/// The kernels of each type: to a key, and back.
macro_rules! keys {
    ($($ty:ident $key:ident $bits:literal $to:ident $of:ident = |$x:ident| $to_key:expr, |$k:ident| $of_key:expr;)*) => {$(
        #[kernel]
        fn $to(x: &[$ty], out: &mut [$key]) {
            let i = global_id().x;
            if i < out.len() {
                let $x = x[i];
                out[i] = $to_key;
            }
        }

        #[kernel]
        fn $of(keys: &[$key], out: &mut [$ty]) {
            let i = global_id().x;
            if i < out.len() {
                let $k = keys[i];
                out[i] = $of_key;
            }
        }

        impl SortElement for $ty {
            type Key = $key;
            const BITS: u32 = $bits;
            fn to_keys() -> Result<&'static Kernel> {
                $to.as_kernel()
            }
            fn of_keys() -> Result<&'static Kernel> {
                $of.as_kernel()
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

keys! {
    u8 u32 8 keys_of_u8 u8_of_keys = |x| x as u32, |k| k as u8;
    u16 u32 16 keys_of_u16 u16_of_keys = |x| x as u32, |k| k as u16;
    u32 u32 32 keys_of_u32 u32_of_keys = |x| x, |k| k;
    u64 u64 64 keys_of_u64 u64_of_keys = |x| x, |k| k;
    i8 u32 8 keys_of_i8 i8_of_keys = |x| (x as u8 ^ 0x80) as u32, |k| (k as u8 ^ 0x80) as i8;
    i16 u32 16 keys_of_i16 i16_of_keys = |x| (x as u16 ^ 0x8000) as u32, |k| (k as u16 ^ 0x8000) as i16;
    i32 u32 32 keys_of_i32 i32_of_keys = |x| x as u32 ^ 0x8000_0000, |k| (k ^ 0x8000_0000) as i32;
    i64 u64 64 keys_of_i64 i64_of_keys = |x| x as u64 ^ (1 << 63), |k| (k ^ (1 << 63)) as i64;
    f16 u32 16 keys_of_f16 f16_of_keys =
        |x| if x.is_nan() { 0xffff } else { key_of_bits(x.to_bits() as u32, 0x8000) & 0xffff },
        |k| f16::from_bits(bits_of_key(k, 0x8000) as u16);
    bf16 u32 16 keys_of_bf16 bf16_of_keys =
        |x| if x.is_nan() { 0xffff } else { key_of_bits(x.to_bits() as u32, 0x8000) & 0xffff },
        |k| bf16::from_bits(bits_of_key(k, 0x8000) as u16);
    f32 u32 32 keys_of_f32 f32_of_keys =
        |x| if x.is_nan() { u32::MAX } else { key_of_bits(x.to_bits(), 0x8000_0000) },
        |k| f32::from_bits(bits_of_key(k, 0x8000_0000));
    f64 u64 64 keys_of_f64 f64_of_keys = |x| key_of_f64(x), |k| f64_of_key(k);
}
