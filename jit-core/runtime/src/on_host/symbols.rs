//! What the code calls beyond the functions of the CPU backend: conversions of 16-bit floats, which
//! the plainest processor has no instructions for (compiler-rt, "Conversion").
//!
//! A 16-bit float is passed as a `float` is, in the low bits of the register.

use half::{bf16, f16};

use kiln_ir::rounding::{bf16_from_f64, f16_from_f64};

use crate::cpu::symbols;

/// The address of a function that LLVM may call.
pub(super) fn find(name: &str) -> Option<usize> {
    let address = match name {
        "__truncsfhf2" => f32_to_f16 as *const (),
        "__truncdfhf2" => f64_to_f16 as *const (),
        "__extendhfsf2" => f16_to_f32 as *const (),
        "__truncsfbf2" => f32_to_bf16 as *const (),
        "__truncdfbf2" => f64_to_bf16 as *const (),
        _ => return symbols::find(name),
    };
    Some(address.expose_provenance())
}

fn in_register(bits: u16) -> f32 {
    f32::from_bits(bits.into())
}

extern "C" fn f32_to_f16(x: f32) -> f32 {
    in_register(f16::from_f32(x).to_bits())
}

extern "C" fn f64_to_f16(x: f64) -> f32 {
    in_register(f16_from_f64(x).to_bits())
}

extern "C" fn f16_to_f32(x: f32) -> f32 {
    f16::from_bits(x.to_bits() as u16).to_f32()
}

extern "C" fn f32_to_bf16(x: f32) -> f32 {
    in_register(bf16::from_f32(x).to_bits())
}

extern "C" fn f64_to_bf16(x: f64) -> f32 {
    in_register(bf16_from_f64(x).to_bits())
}
