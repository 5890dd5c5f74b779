//! An instruction that Kiln has no name for: `prmt`, which picks four of eight bytes (PTX ISA, "prmt").

use kiln::core::prelude::*;

kiln::intrinsic! {
    /// The bytes of `a` and, from 4 on, of `b` that the four lowest hexadecimal digits of `selector` name; a digit
    /// of 8 or more gives eight times the highest bit of the byte instead.
    pub fn permute_bytes(a: u32, b: u32, selector: u32) -> u32 {
        let both = u64::from(b) << 32 | u64::from(a);
        let picked = |n: u32| {
            let digit = selector >> (4 * n) & 15;
            let byte = (both >> (8 * (digit & 7))) as u8;
            if digit < 8 { byte } else { (byte as i8 >> 7) as u8 }
        };
        u32::from_le_bytes([picked(0), picked(1), picked(2), picked(3)])
    } = row("outside.permute_bytes")
        .with_cells(&[Cell::asm(Family::PTX, None, "prmt.b32 $0, $1, $2, $3;", "=r,r,r,r")]);
}

#[cfg(test)]
mod tests {
    use kiln::core::prelude::*;
    use kiln::prelude::*;

    use super::permute_bytes;
    use crate::machines::{cpu, interpreter, ptx};

    #[kernel]
    fn permute(x: &mut [u32], y: &[u32], selectors: &[u32]) {
        let i = global_id().x;
        if i < x.len() {
            x[i] = permute_bytes(x[i], y[i], selectors[i]);
        }
    }

    #[test]
    fn it_is_one_instruction_and_means_the_same_everywhere() -> kiln::Result<()> {
        assert_eq!(permute_bytes(0x4433_2211, 0x8877_6655, 0x7410), 0x8855_2211);
        assert_eq!(permute_bytes(0x4433_2211, 0x8877_6655, 0xf123), 0xff22_3344);
        let (a, b) = (0x8070_6050, 0x0f1e_2d3c);
        let selectors: Vec<u32> = (0..1 << 16).step_by(257).collect();
        let wanted: Vec<u32> = selectors.iter().map(|&s| permute_bytes(a, b, s)).collect();
        let count = selectors.len();
        for jit in [cpu(Hook::new("none")), interpreter(Hook::new("none"))] {
            let mut x = jit.upload(&vec![a; count])?;
            let (y, selectors) = (jit.upload(&vec![b; count])?, jit.upload(&selectors)?);
            permute.launch(&jit, (8, 32), &mut x, &y, &selectors)?;
            assert_eq!(x.to_vec()?, wanted);
        }
        let jit = ptx(Hook::new("none"));
        let (mut x, y) = (jit.zeros::<u32>(1)?, jit.zeros::<u32>(1)?);
        let inspected = jit.inspect(&permute, args!(&mut x, &y, &y))?;
        assert_eq!(inspected.ptx()?.matches("prmt.b32").count(), 1);
        Ok(())
    }
}
