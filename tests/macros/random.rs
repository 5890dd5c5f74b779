//! Generators of random numbers are values of a thread: what they become on a GPU has no memory of its own.

use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use kiln::stdlib::random::{Philox, Xoroshiro};

#[kernel]
fn draw(x: &mut [f32], n: &mut [u32], seed: u64, count: u32) {
    let i = global_id().x;
    if i < x.len() && i < n.len() {
        let mut philox = Philox::new(seed, i as u64);
        let mut xoroshiro = Xoroshiro::new(seed, i as u64);
        for _ in 0..count {
            x[i] += philox.normal_f32() + xoroshiro.uniform_f32();
            n[i] += philox.below(6) + xoroshiro.next_u32();
        }
    }
}

#[test]
fn generators_stay_in_registers() -> kiln::Result<()> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let (mut x, mut n) = (jit.zeros::<f32>(8)?, jit.zeros::<u32>(8)?);
    let inspection = jit.inspect(draw.get()?, args!(&mut x, &mut n, 1u64, 2u32))?;
    let ptx = inspection.ptx()?;
    let in_memory: Vec<&str> = ptx.lines().filter(|line| line.contains(".local")).collect();
    assert!(in_memory.is_empty(), "{}", in_memory.join("\n"));
    Ok(())
}
