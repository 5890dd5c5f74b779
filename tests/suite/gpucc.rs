//! The micro-kernels of the paper on gpucc, `tests/kernels/gpucc.rs`, by indices of `u32` and of `i32`, with checks and
//! without. What they become is in `tests/nvcc/gpucc.txt`.

use kiln::prelude::*;

use super::gpucc_kernels::{of_i32, of_u32};
use super::{Outcome, chapter, unchecked};

chapter![
    arrays_in_registers,
    spaces_of_memory,
    stores_and_sums_in_memory,
    offsets_and_strides,
    speculated_loads,
    divisions_of_64_bits,
];

/// A launch of a kernel.
struct Launch {
    name: &'static str,
    config: LaunchConfig,
    /// The number that the kernel takes.
    n: u8,
    /// The bits that it asks for.
    flags: u8,
}

impl Launch {
    fn of(name: &'static str, config: impl Into<LaunchConfig>, n: u8) -> Launch {
        Launch {
            name,
            config: config.into(),
            n,
            flags: 0,
        }
    }
}

/// Small whole numbers, all of whose sums and products here are exact.
fn numbers() -> Vec<f32> {
    (0..1024u16).map(|i| f32::from(i * 7 % 13) - 5.0).collect()
}

/// What a kernel writes to so many elements.
macro_rules! written {
    ($module:ident, $jit:ident, $launch:ident, $len:ident) => {{
        let mut memory = $module::Memory {
            x: $jit.upload(&numbers())?,
            out: $jit.zeros($len)?,
            a: $jit.zeros(1)?,
            b: $jit.zeros(1)?,
            quotients: $jit.zeros(1)?,
        };
        let args = [$launch.n.into(), $launch.flags.into()];
        memory.with($launch.name, args, &mut |kernel, args| {
            $jit.launch_with(kernel, $launch.config, args)
        })?;
        memory.out.to_vec()?
    }};
}

/// Compares what a kernel writes with what the host says of each element.
fn compare(jit: &Jit, launch: &Launch, len: usize, of: impl Fn(&[f32], usize) -> f32) -> Outcome {
    let x = numbers();
    let wanted: Vec<f32> = (0..len).map(|i| of(&x, i)).collect();
    for jit in [jit, &unchecked(jit)] {
        let by_u32 = written!(of_u32, jit, launch, len);
        assert_eq!(by_u32, wanted, "{} by u32", launch.name);
        let by_i32 = written!(of_i32, jit, launch, len);
        assert_eq!(by_i32, wanted, "{} by i32", launch.name);
    }
    Ok(())
}

/// The sum of the products of the first and the last, the second and the last but one, ..
fn from_both_ends(x: &[f32]) -> f32 {
    let pairs = x.iter().zip(x.iter().rev());
    pairs.map(|(a, b)| a * b).sum()
}

fn arrays_in_registers(jit: &Jit) -> Outcome {
    for (name, len) in [
        ("local_looped", 8),
        ("local_unrolled", 4),
        ("local_called", 8),
    ] {
        compare(jit, &Launch::of(name, (2, 16), 0), 32, |x, t| {
            from_both_ends(&x[t * len..(t + 1) * len])
        })?;
    }
    Ok(())
}

fn spaces_of_memory(jit: &Jit) -> Outcome {
    for n in [0, 1, 200] {
        let launch = Launch::of("spaces", (1, 256), n);
        compare(jit, &launch, 256, |x, _| x[..usize::from(n)].iter().sum())?;
    }
    Ok(())
}

fn stores_and_sums_in_memory(jit: &Jit) -> Outcome {
    compare(jit, &Launch::of("dead_store", (1, 256), 0), 256, |_, _| 3.0)?;
    let launch = Launch::of("accumulated", (1, 256), 100);
    compare(jit, &launch, 256, |x, t| {
        x[..100].iter().map(|other| other * x[t]).sum()
    })
}

fn offsets_and_strides(jit: &Jit) -> Outcome {
    const N: usize = 20;
    for name in ["neighbours_looped", "neighbours_unrolled"] {
        // 8 rows of 16 elements, of a width of `N`.
        let launch = Launch::of(name, ((2, 2), (8, 4)), 20);
        compare(jit, &launch, 8 * N, |x, at| {
            if at % N >= 16 {
                return 0.0;
            }
            let row = |row: usize| x[at + row * N..][..3].iter().sum::<f32>();
            (0..3).map(row).sum()
        })?;
    }
    for name in ["strides_looped", "strides_unrolled"] {
        compare(jit, &Launch::of(name, (2, 32), 100), 64, |x, t| {
            (1..5).map(|i| x[(t + 100) * i]).sum()
        })?;
    }
    Ok(())
}

fn speculated_loads(jit: &Jit) -> Outcome {
    for flags in 0..4 {
        let mut launch = Launch::of("speculated", (2, 32), 100);
        launch.flags = flags;
        compare(jit, &launch, 64, |x, i| {
            let [near, far] = [flags & 1, flags >> 1].map(f32::from);
            near * x[i] + far * x[i + 100]
        })?;
    }
    Ok(())
}

/// Numbers of few bits and of many, of which none is zero.
fn wide(i: u64, times: u64) -> u64 {
    (i.wrapping_mul(times) >> (i % 4 * 15)) | 1
}

macro_rules! divides {
    ($module:ident, $wide:ident, $jit:ident) => {{
        let of = |times: u64| -> Vec<$wide> { (0..64).map(|i| wide(i, times) as $wide).collect() };
        let (a, b) = (of(0x9E37_79B9_7F4A_7C15), of(0xD1B5_4A32_D192_ED03));
        let mut memory = $module::Memory {
            x: $jit.zeros(1)?,
            out: $jit.zeros(1)?,
            a: $jit.upload(&a)?,
            b: $jit.upload(&b)?,
            quotients: $jit.zeros(64)?,
        };
        memory.with("divided", [0, 0], &mut |kernel, args| {
            $jit.launch(kernel, 2, 32, args)
        })?;
        let wanted: Vec<$wide> = a.iter().zip(&b).map(|(a, b)| a / b).collect();
        assert_eq!(memory.quotients.to_vec()?, wanted);
    }};
}

fn divisions_of_64_bits(jit: &Jit) -> Outcome {
    for jit in [jit, &unchecked(jit)] {
        divides!(of_u32, u64, jit);
        divides!(of_i32, i64, jit);
    }
    Ok(())
}
