//! Registers of running sums of a block in memory: with more than 32 a thread a multiprocessor has fewer than the 2,048 threads
//! that there is room for, which took 1.4 times as long where it was so.

use std::fmt::Write;

use expect_test::expect;
use kiln::core::front::AsKernel as _;
use kiln::core::job::CompileOptions;
use kiln::prelude::*;

use super::machine::{Assembled, SM, jit, machines};

#[derive(KernelType, Copy, Clone, Default)]
#[repr(C)]
struct Pair {
    a: i64,
    b: i64,
}

/// Kernels with 64 sums in a row.
macro_rules! kernels {
    ($($name:ident: $ty:ty, |$a:ident, $b:ident| $sum:expr;)*) => {$(
        #[kernel]
        fn $name<const BLOCK: usize>(x: &[$ty], out: &mut [$ty]) {
            assume(block_dim().x == BLOCK && block_dim().y == 1 && block_dim().z == 1);
            let (i, memory) = (global_id().x, shared!([$ty; BLOCK]));
            let mut v = x[i];
            for _ in 0..64 {
                v = block_inclusive_scan_in(v, memory, |$a, $b| $sum);
            }
            out[i] = v;
        }
    )*};
}
kernels! {
    sums_i32: i32, |a, b| a + b;
    sums_f32: f32, |a, b| a + b;
    sums_pair: Pair, |a, b| Pair { a: a.a + b.a, b: a.b + b.b };
}

/// The sizes of blocks.
const BLOCKS: [u32; 4] = [128, 256, 512, 1024];

/// Registers and bytes of spills of a kernel with blocks of each size; `None` without `KILN_PTXAS` and `KILN_NVDISASM`.
fn usages<T: KernelType + Default>(
    jit: &Jit,
    kernel: &Kernel,
) -> kiln::Result<Option<Vec<[usize; 2]>>> {
    let (x, mut out) = (jit.upload(&[T::default()])?, jit.upload(&[T::default()])?);
    let mut all = Vec::new();
    for block in BLOCKS {
        let kernel = kernel.with_const("BLOCK", block.into());
        let inspection = jit.inspect(&kernel, args!(&x, &mut out))?;
        match Assembled::of_entry(inspection.ptx()?, SM) {
            Some(assembled) => all.push(assembled),
            None => return Ok(None),
        }
    }
    let machines = machines(all, SM);
    let usages = |machines: Vec<_>| {
        let usages = machines
            .iter()
            .map(|m: &super::machine::Machine| [m.registers, m.spills]);
        usages.collect()
    };
    Ok(machines.map(usages))
}

#[test]
fn all_threads_of_a_multiprocessor_have_the_registers_of_running_sums() -> kiln::Result<()> {
    let jit = jit(CompileOptions::default())?;
    let kernels = [
        ("i32", usages::<i32>(&jit, sums_i32.as_kernel()?)?),
        ("f32", usages::<f32>(&jit, sums_f32.as_kernel()?)?),
        ("pair", usages::<Pair>(&jit, sums_pair.as_kernel()?)?),
    ];
    let mut table = String::new();
    for (ty, usages) in kernels {
        let Some(usages) = usages else {
            println!("no ptxas, or no nvdisasm: registers are not counted");
            return Ok(());
        };
        for (block, [registers, spills]) in BLOCKS.into_iter().zip(usages) {
            let _ = writeln!(table, "{ty} {block}: {registers}");
            assert_eq!(spills, 0, "{ty}, {block} threads");
            // Of 16 bytes CUB's have up to 90 (512 threads).
            let most = if ty == "pair" { 40 } else { 32 };
            assert!(registers <= most, "{ty}, {block} threads: {registers}");
        }
    }
    expect![[r#"
        i32 128: 30
        i32 256: 30
        i32 512: 32
        i32 1024: 32
        f32 128: 30
        f32 256: 30
        f32 512: 32
        f32 1024: 32
        pair 128: 40
        pair 256: 32
        pair 512: 32
        pair 1024: 32
    "#]]
    .assert_eq(&table);
    Ok(())
}
