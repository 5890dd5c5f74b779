//! What PTX some kernels become, where one instruction would be wrong.

use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

#[kernel]
fn sizes(x: &[i16], out: &mut [i64]) {
    let i = global_id().x;
    if i < x.len() {
        let size = if x[i] < 0 { -x[i] } else { x[i] };
        out[i] = size as i64 + x[i].wrapping_abs() as i64;
    }
}

/// The smallest integer of 16 bits is its own absolute value, which not every `ptxas` makes of `abs.s16`.
#[test]
fn absolute_values_of_16_bits_are_computed_in_32() -> kiln::Result<()> {
    for sm in [75, 90] {
        let options = JitOptions {
            target: Some(Target::Ptx(PtxTarget::for_sm(sm))),
            ..JitOptions::default()
        };
        let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
        let (x, mut out) = (jit.zeros::<i16>(4)?, jit.zeros::<i64>(4)?);
        let inspection = jit.inspect(&sizes, args!(&x, &mut out))?;
        let ptx = inspection.ptx()?;
        assert!(!ptx.contains("abs.s16"), "{ptx}");
        assert!(ptx.contains("abs.s32"), "{ptx}");
        assert!(ptx.contains("cvt.s32.s16"), "{ptx}");
    }
    Ok(())
}
