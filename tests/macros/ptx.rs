//! What PTX some kernels become, where one instruction would be wrong.

use kiln::core::args::Arg;
use kiln::core::front::AsKernel;
use kiln::core::inspect::Inspection;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

/// Works on an array of its caller's, so that a call keeps that in local memory. It is so long that LLVM would call it
/// where it is called twice.
macro_rules! turns {
    ($(#[$inline:meta] $name:ident $kernel:ident;)*) => {$(
        #[device_fn]
        #[$inline]
        fn $name(a: &mut [f64; 8], by: f64) {
            for j in [0, 1, 2, 3, 4, 5, 6, 7] {
                a[j] = a[j] * (by * j as f64).sin() + (by + j as f64).cos();
            }
        }

        #[kernel]
        fn $kernel(x: &mut [f64]) {
            let mut a = [0.0; 8];
            for j in [0, 1, 2, 3, 4, 5, 6, 7] {
                a[j] = x[j];
            }
            $name(&mut a, x[9]);
            $name(&mut a, x[8]);
            for j in [0, 1, 2, 3, 4, 5, 6, 7] {
                x[j] = a[j];
            }
        }
    )*};
}
turns! {
    #[inline(always)] turn_always calls_always;
    #[inline(never)] turn_never calls_never;
    #[allow(dead_code, reason = "it stands for no attribute")] turn_auto calls_auto;
}

#[device_fn]
#[inline(never)]
fn halved(x: f64) -> f64 {
    x * 0.5
}

#[kernel]
fn halves(x: &mut [f64]) {
    let i = global_id().x;
    x[i] = halved(x[i]);
}

#[test]
fn functions_are_inlined_as_their_attributes_say() -> kiln::Result<()> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let mut x = jit.zeros::<f64>(16)?;
    let inspection = jit.inspect(&calls_always, args!(&mut x))?;
    let ptx = inspection.ptx()?;
    assert!(!ptx.contains("turn_always"), "{ptx}");
    let inspection = jit.inspect(&calls_auto, args!(&mut x))?;
    let ptx = inspection.ptx()?;
    assert!(
        !ptx.contains("turn_auto") && !ptx.contains(".local"),
        "{ptx}"
    );
    let inspection = jit.inspect(&calls_never, args!(&mut x))?;
    let ptx = inspection.ptx()?;
    assert_eq!(calls(ptx, "turn_never"), 2, "{ptx}");
    let inspection = jit.inspect(&halves, args!(&mut x))?;
    let ptx = inspection.ptx()?;
    assert_eq!(calls(ptx, "halved"), 1, "{ptx}");
    Ok(())
}

/// How often a function is called: `call.uni` with a result may name it in a line of its own.
fn calls(ptx: &str, name: &str) -> usize {
    let called = |call: &&str| {
        call.split(';')
            .next()
            .is_some_and(|call| call.contains(name))
    };
    ptx.split("call.uni").skip(1).filter(called).count()
}

#[kernel]
fn sizes(x: &[i16], out: &mut [i64]) {
    let i = global_id().x;
    if i < x.len() {
        let size = if x[i] < 0 { -x[i] } else { x[i] };
        out[i] = size as i64 + x[i].wrapping_abs() as i64;
    }
}

/// What a kernel becomes for an architecture.
fn inspect(kernel: &impl AsKernel, args: &[Arg<'_>]) -> kiln::Result<Inspection> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    Jit::with(Device::cpu(), kiln::hooks::standard(), options).inspect(kernel, args)
}

#[kernel]
fn carried(x: &mut [u32], y: &mut [u32], table: &[u32]) {
    let i = thread_idx().x;
    // Twice the same between two barriers: `y` is another slice, so one load is enough.
    let sum = x[0] + table[i];
    y[0] = sum;
    y[1] = x[0];
    barrier();
    // What is in memory may be another number now; nobody writes to the table.
    y[2] = x[0] + table[i];
}

#[test]
fn a_barrier_is_where_memory_is_read_again() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let (mut x, mut y, table) = (
        jit.zeros::<u32>(4)?,
        jit.zeros::<u32>(4)?,
        jit.zeros::<u32>(4)?,
    );
    // With checks there are two versions of all of it.
    let mut options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    // SAFETY: nothing is launched.
    options.compile = unsafe { options.compile.unchecked() };
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let inspection = jit.inspect(&carried, args!(&mut x, &mut y, &table))?;
    let ptx = inspection.ptx()?;
    let count = |what: &str| ptx.matches(what).count();
    assert_eq!(count("ld.global.nc."), 1, "{ptx}");
    assert_eq!(count("ld.global.b32") + count("ld.global.u32"), 2, "{ptx}");
    Ok(())
}

#[kernel]
fn gathered(index: &mut [u32], x: &[u32], y: &mut [u32]) {
    let i = global_id().x;
    if i < y.len() && i < index.len() {
        y[i] = x[index[i] as usize];
    }
}

/// A load that races is undefined to LLVM at each use: what is compared must be what is used.
#[test]
fn an_index_from_memory_is_frozen() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let (mut index, x, mut y) = (
        jit.zeros::<u32>(4)?,
        jit.zeros::<u32>(4)?,
        jit.zeros::<u32>(4)?,
    );
    let args = args!(&mut index, &x, &mut y);
    let llvm = inspect(&gathered, args)?.llvm()?.to_owned();
    assert_eq!(llvm.matches("freeze i32").count(), 1, "{llvm}");
    Ok(())
}

/// The smallest integer of 16 bits is its own absolute value, which not every `ptxas` makes of `abs.s16`.
#[test]
fn absolute_values_of_16_bits_are_computed_in_32() -> kiln::Result<()> {
    for sm in [75, 90] {
        let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(sm)));
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

#[kernel]
fn blend(x: &[F32x4], y: &mut [F32x4], lengths: &mut [f32], weight: f32) {
    let i = global_id().x;
    if i < lengths.len() && i < x.len() && i < y.len() {
        let mut v = weight * x[i] + (1.0 - weight) * y[i];
        lengths[i] = v.dot(v);
        v.w = 1.0;
        y[i] = v;
    }
}

#[kernel]
fn halve(x: &[f64], y: &mut [f64]) {
    let (x, y) = (cast_slice::<F64x2>(x), cast_slice_mut::<F64x2>(y));
    let i = global_id().x;
    if i < x.len() {
        y[i] = x[i] * 0.5;
    }
}

#[kernel]
fn stream(x: &[F32x4], y: &mut [F32x4]) {
    let i = global_id().x;
    store_streaming(&mut y[i], load_streaming(&x[i]));
}

#[test]
fn a_vector_is_one_access() -> kiln::Result<()> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let (x, mut y) = (jit.upload(&[F32x4::ZERO])?, jit.upload(&[F32x4::ZERO])?);
    let mut lengths = jit.zeros::<f32>(1)?;
    let count = |inspection: &Inspection, wanted: [(&str, usize); 3]| -> kiln::Result<()> {
        let ptx = inspection.ptx()?;
        for (word, times) in wanted {
            assert_eq!(ptx.matches(word).count(), times, "{word} in {ptx}");
        }
        Ok(())
    };
    let blended = jit.inspect(&blend, args!(&x, &mut y, &mut lengths, 0.5f32))?;
    let (loads, stores) = ("ld.global.nc.v4.b32", "st.global.v4.b32");
    count(&blended, [(loads, 1), ("ld.global.v4.b32", 1), (stores, 1)])?;
    let (numbers, mut half) = (jit.zeros::<f64>(2)?, jit.zeros::<f64>(2)?);
    let halved = jit.inspect(&halve, args!(&numbers, &mut half))?;
    count(
        &halved,
        [
            ("ld.global.nc.v2.b64", 1),
            ("st.global.v2.b64", 1),
            (".local", 0),
        ],
    )?;
    let streamed = jit.inspect(&stream, args!(&x, &mut y))?;
    count(
        &streamed,
        [("ld.cs.v4.b32", 1), ("st.cs.v4.b32", 1), (".local", 0)],
    )
}

/// The places of an array that are added to: there and back, the row's number says which way.
#[device_fn]
fn add_back_and_forth(a: &[f32; 4], b: &[f32; 4], sums: &mut [[f32; 4]; 4]) {
    #[unroll]
    for i in 0..4 {
        #[unroll]
        for n in 0..4 {
            let j = if i % 2 == 0 { n } else { 3 - n };
            sums[i][j] += a[i] * b[j];
        }
    }
}

#[kernel]
fn adds_back_and_forth(x: &[f32], y: &mut [f32], n: usize) {
    let mut sums = [[0.0f32; 4]; 4];
    for k in 0..n {
        let (mut a, mut b) = ([0.0f32; 4], [0.0f32; 4]);
        #[unroll]
        for i in 0..4 {
            a[i] = x[k * 8 + i];
            b[i] = x[k * 8 + 4 + i];
        }
        add_back_and_forth(&a, &b, &mut sums);
    }
    #[unroll]
    for i in 0..4 {
        #[unroll]
        for j in 0..4 {
            y[i * 4 + j] = sums[i][j];
        }
    }
}

/// What a condition chooses of unrolled loops' counters is constant once they are unrolled, in the version with checks, too.
#[test]
fn an_array_whose_places_are_chosen_is_registers() -> kiln::Result<()> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let (x, mut y) = (jit.zeros::<f32>(64)?, jit.zeros::<f32>(16)?);
    let inspection = jit.inspect(&adds_back_and_forth, args!(&x, &mut y, 8usize))?;
    let (ptx, ir) = (inspection.ptx()?, inspection.ir());
    assert!(ir.contains("slice_index unchecked"), "{ir}");
    assert!(!ptx.contains(".local"), "{ptx}");
    Ok(())
}
