//! What kernels choose of what is usually left to the compilation: what an index out of bounds does, how exact
//! floats are, how many registers a thread may have.

use kiln::core::ir::FastMath;
use kiln::core::job::CompileOptions;
use kiln::error::{Error, RunError};
use kiln::prelude::*;
use kiln_suite::without_checks;

use super::{Outcome, chapter};

chapter![
    a_clamped_index_is_that_of_the_last_element,
    a_clamped_access_of_nothing_ends_the_thread,
    parts_of_slices_are_not_clamped,
    neighbours_are_clamped_lane_by_lane,
    clamped_windows_end_at_the_last_element,
    clamped_stores_go_to_the_last_element,
    clamped_tiles_end_where_they_do,
    minima_and_maxima_of_neighbours,
    a_kernel_without_checks_computes_the_same,
    approximations_are_as_near_as_is_said,
    sums_in_any_order_are_the_sums,
    what_is_fast_is_told_by_expressions,
    few_registers_change_no_result,
    small_numbers_are_flushed_where_it_is_permitted,
    options_of_a_jit_hold_for_kernels_that_do_not_choose,
];

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Pair {
    near: f32,
    far: f32,
}

#[device_fn]
fn beside(x: &[f32], i: i32) -> f32 {
    x[(i + 1) as usize]
}

#[kernel(clamped)]
fn neighbours(x: &[f32], at: &[i32], out: &mut [f32], last: &mut [Pair]) {
    let i = global_id().x;
    if i < out.len() {
        let table = [0.0f32, 1.0, 4.0, 9.0];
        let j = at[i];
        out[i] = x[j as usize] + beside(x, j) + table[j as usize];
        if i + 1 == out.len() {
            last[i].far = out[i + 7];
        }
    }
}

fn a_clamped_index_is_that_of_the_last_element(jit: &Jit) -> Outcome {
    let x = [10.0f32, 20.0, 30.0];
    let at = [0i32, 1, 2, 3, -1, -7, i32::MIN, i32::MAX, 1000, 1];
    let host = |j: i32| {
        let pick = |list: &[f32], j: i32| {
            let last = list.len() - 1;
            list[usize::try_from(j).map_or(last, |j| j.min(last))]
        };
        pick(&x, j) + pick(&x, j.wrapping_add(1)) + pick(&[0.0, 1.0, 4.0, 9.0], j)
    };
    let wanted: Vec<f32> = at.iter().map(|&j| host(j)).collect();
    let (x, at) = (jit.upload(&x)?, jit.upload(&at)?);
    let mut out = jit.zeros::<f32>(wanted.len())?;
    let mut last = jit.zeros::<Pair>(2)?;
    neighbours.launch(jit, (1, 32), &x, &at, &mut out, &mut last)?;
    assert_eq!(out.to_vec()?, wanted);
    assert_eq!(last.to_vec()?[1].far, wanted[wanted.len() - 1]);
    Ok(())
}

#[kernel(clamped)]
fn first_of(x: &[f32], out: &mut [f32]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = 1.0;
        if i == 3 {
            out[i] = x[i];
        }
    }
}

fn a_clamped_access_of_nothing_ends_the_thread(jit: &Jit) -> Outcome {
    let (x, mut out) = (jit.zeros::<f32>(0)?, jit.zeros::<f32>(8)?);
    first_of.launch(jit, (1, 32), &x, &mut out)?;
    let Err(Error::Run(RunError::Fault(fault))) = jit.synchronize() else {
        panic!("there is no last element");
    };
    assert_eq!((fault.index, fault.length, fault.thread.x), (0, 0, 3));
    // What the thread stored that ended is unspecified.
    let mut out = out.to_vec()?;
    out.remove(3);
    assert_eq!(out, [1.0; 7]);
    Ok(())
}

#[kernel(clamped)]
fn parts(x: &[f32], from: u32, out: &mut [f32]) {
    let part = &x[from as usize..from as usize + 2];
    out[0] = part[7];
}

fn parts_of_slices_are_not_clamped(jit: &Jit) -> Outcome {
    let (x, mut out) = (jit.upload(&[1.0f32, 2.0, 3.0])?, jit.zeros::<f32>(1)?);
    parts.launch(jit, (1, 1), &x, 1, &mut out)?;
    assert_eq!(out.to_vec()?, [3.0]);
    parts.launch(jit, (1, 1), &x, 2, &mut out)?;
    let Err(Error::Run(RunError::Fault(fault))) = jit.synchronize() else {
        panic!("the part ends behind the slice");
    };
    assert_eq!((fault.index, fault.length), (4, 3));
    Ok(())
}

#[kernel(clamped)]
fn shifted<T: KernelType>(x: &[T], shift: i32, out: &mut [T]) {
    let i = global_id().x;
    if i < out.len() {
        let at = i as i32 + shift;
        out[i] = x[at as usize];
    }
}

/// The element of a clamped index.
fn clamped_of<T: Copy>(x: &[T], at: i64) -> T {
    let last = x.len() - 1;
    x[usize::try_from(at).map_or(last, |at| at.min(last))]
}

fn shifted_as<T: KernelType + PartialEq + std::fmt::Debug>(
    jit: &Jit,
    of: impl Fn(u8) -> T,
) -> Outcome {
    for (n, shift) in [
        (1, 0),
        (31, 1),
        (64, -1),
        (64, 40),
        (150, -33),
        (200, 3),
        (256, 0),
    ] {
        let x: Vec<T> = (0..n).map(|i| of(i as u8)).collect();
        let (on_device, mut out) = (jit.upload(&x)?, jit.upload(&[of(0); 256])?);
        shifted.launch(jit, (4, 64), &on_device, shift, &mut out)?;
        let wanted = (0..256).map(|i| clamped_of(&x, i + i64::from(shift)));
        assert_eq!(out.to_vec()?, wanted.collect::<Vec<T>>(), "{n} {shift}");
    }
    Ok(())
}

fn neighbours_are_clamped_lane_by_lane(jit: &Jit) -> Outcome {
    shifted_as(jit, |i| i)?;
    shifted_as(jit, |i| i16::from(i) - 9)?;
    shifted_as(jit, f32::from)?;
    shifted_as(jit, f64::from)
}

#[kernel(clamped)]
fn windows(x: &[u32], turns: u32, step: u32, out: &mut [u32]) {
    let i = global_id().x;
    if i < out.len() {
        let mut all = 0u32;
        for turn in 0..turns {
            all = all * 31 + x[i + (turn * step) as usize];
        }
        out[i] = all;
    }
}

fn clamped_windows_end_at_the_last_element(jit: &Jit) -> Outcome {
    let x: Vec<u32> = (0..300).map(|i| i * i + 7).collect();
    let on_device = jit.upload(&x)?;
    // The last steps wrap around.
    for (turns, step) in [
        (0, 1),
        (1, 1),
        (40, 1),
        (40, 7),
        (3, u32::MAX),
        (5, 1 << 30),
    ] {
        let mut out = jit.zeros::<u32>(280)?;
        windows.launch(jit, (5, 64), &on_device, turns, step, &mut out)?;
        let host = |i: u32| {
            (0..turns).fold(0u32, |all, turn| {
                let at = i.wrapping_add(turn.wrapping_mul(step));
                all.wrapping_mul(31)
                    .wrapping_add(clamped_of(&x, i64::from(at)))
            })
        };
        let wanted: Vec<u32> = (0..280).map(host).collect();
        assert_eq!(out.to_vec()?, wanted, "{turns} {step}");
    }
    Ok(())
}

#[kernel(clamped)]
fn copied(x: &[f32], out: &mut [f32]) {
    let (i, n) = (global_id().x, out.len());
    // One thread alone writes the last element, from beyond the end.
    if i + 1 < n || i == 191 {
        out[i] = x[i] + 1.0;
    }
}

fn clamped_stores_go_to_the_last_element(jit: &Jit) -> Outcome {
    for n in [1u16, 17, 64, 100, 191] {
        let x: Vec<f32> = (0..n).map(f32::from).collect();
        let (on_device, mut out) = (jit.upload(&x)?, jit.zeros::<f32>(x.len())?);
        copied.launch(jit, (3, 64), &on_device, &mut out)?;
        let wanted: Vec<f32> = x.iter().map(|x| x + 1.0).collect();
        assert_eq!(out.to_vec()?, wanted);
    }
    Ok(())
}

#[kernel(clamped)]
fn tiled(x: &[f32], out: &mut [f32]) {
    let tile = shared!([f32; 50]);
    let (t, i) = (thread_idx().x, global_id().x);
    if t < 50 {
        tile[t] = x[i];
    }
    barrier();
    if i < out.len() {
        let mut sum = tile[t];
        for k in 1..4 {
            sum = sum * 2.0 + tile[t + k];
        }
        out[i] = sum + tile[t - 1];
    }
}

fn clamped_tiles_end_where_they_do(jit: &Jit) -> Outcome {
    let x: Vec<f32> = (0..100u8).map(f32::from).collect();
    let (on_device, mut out) = (jit.upload(&x)?, jit.zeros::<f32>(128)?);
    tiled.launch(jit, (2, 64), &on_device, &mut out)?;
    let host = |i: i64| {
        let (block, t) = (i / 64, i % 64);
        let tile: Vec<f32> = (0..50).map(|t| clamped_of(&x, block * 64 + t)).collect();
        let sum = (1..4).fold(clamped_of(&tile, t), |sum, k| {
            sum * 2.0 + clamped_of(&tile, t + k)
        });
        sum + clamped_of(&tile, t - 1)
    };
    assert_eq!(out.to_vec()?, (0..128).map(host).collect::<Vec<f32>>());
    Ok(())
}

#[kernel]
fn bounded(x: &[f32], low: i32, high: i32, out: &mut [f32]) {
    let i = global_id().x;
    if i < out.len() {
        let last = x.len() - 1;
        let at = i as i32;
        let west = x[(at - 1).max(0) as usize];
        let east = x[(i + 1).min(last)];
        let near = x[(at - 20).clamp(low, high) as usize];
        let narrow = x[(i as u8).max(3).min(250) as usize + 1];
        let signed = x[((i as i8).min(100).max(-100) as i32 + 100) as usize];
        let far = x[(i as u64 + 5).min(last as u64) as usize];
        out[i] = west + east * 3.0 + near * 5.0 + narrow * 7.0 + signed * 11.0 + far * 13.0;
    }
}

fn minima_and_maxima_of_neighbours(jit: &Jit) -> Outcome {
    let x: Vec<f32> = (0..400u16).map(|i| f32::from(i * 7 % 64)).collect();
    let on_device = jit.upload(&x)?;
    for (low, high) in [(0, 399), (100, 200), (64, 320), (7, 7)] {
        let mut out = jit.zeros::<f32>(400)?;
        bounded.launch(jit, (7, 64), &on_device, low, high, &mut out)?;
        let host = |i: i32| {
            let near = x[(i - 20).clamp(low, high) as usize];
            let narrow = x[usize::from((i as u8).clamp(3, 250)) + 1];
            let signed = x[(i32::from((i as i8).clamp(-100, 100)) + 100) as usize];
            x[(i - 1).max(0) as usize]
                + x[(i + 1).min(399) as usize] * 3.0
                + near * 5.0
                + narrow * 7.0
                + signed * 11.0
                + x[(i + 5).min(399) as usize] * 13.0
        };
        assert_eq!(out.to_vec()?, (0..400).map(host).collect::<Vec<f32>>());
    }
    Ok(())
}

#[kernel(
    // SAFETY: each thread stays within the slices.
    unsafe(unchecked)
)]
fn reversed(x: &[f32], out: &mut [f32]) {
    let i = global_id().x;
    if i < out.len() {
        let part = &x[..out.len()];
        out[i] = part[part.len() - 1 - i] + beside(x, i as i32 - 1);
    }
}

fn a_kernel_without_checks_computes_the_same(jit: &Jit) -> Outcome {
    let x: Vec<f32> = (0..100u8).map(f32::from).collect();
    let (x, mut out) = (jit.upload(&x)?, jit.zeros::<f32>(100)?);
    reversed.launch(jit, (4, 32), &x, &mut out)?;
    assert_eq!(out.to_vec()?, [99.0; 100]);
    Ok(())
}

#[kernel(fast(approximate))]
fn functions(x: &[f32], out: &mut [f32]) {
    let i = global_id().x;
    if i < x.len() {
        let (x, n) = (x[i], x.len());
        out[i] = 1.0 / x.sqrt();
        out[n + i] = 3.0 / x;
        out[2 * n + i] = x.sqrt();
        out[3 * n + i] = x.sin();
        out[4 * n + i] = x.cos();
        out[5 * n + i] = x.exp();
        out[6 * n + i] = x.ln();
        out[7 * n + i] = x.log2();
        out[8 * n + i] = x.exp2();
        out[9 * n + i] = x.tanh();
        out[10 * n + i] = x.log10();
        let (sine, cosine) = x.sin_cos();
        out[11 * n + i] = sine;
        out[12 * n + i] = cosine;
        out[13 * n + i] = x.powf(-1.75);
        out[14 * n + i] = (x * 0.25).tan();
        out[15 * n + i] = x.rsqrt();
    }
}

/// The relative error of an approximate power, in the guide's table.
fn of_power(x: f64, y: f64) -> f64 {
    (1.0 + y.abs() + (y * x.log2()).abs()) / f64::from(1 << 20)
}

/// The relative error of an approximate tangent, in the guide's table.
fn of_tangent(x: f64) -> f64 {
    (1.0 + 1.0 / x.sin().abs() + 1.0 / x.cos().abs()) / f64::from(1 << 20)
}

/// The bounds are those of the guide's table.
fn approximations_are_as_near_as_is_said(jit: &Jit) -> Outcome {
    let x: Vec<f32> = (1..200u8).map(|i| f32::from(i) / 32.0).collect();
    let (n, on_device) = (x.len(), jit.upload(&x)?);
    let mut out = jit.zeros::<f32>(16 * n)?;
    functions.launch(jit, (grid_for(n, 64), 64), &on_device, &mut out)?;
    let out = out.to_vec()?;
    let relative = 1.0 / f64::from(1 << 21);
    for (i, x) in x.iter().map(|&x| f64::from(x)).enumerate() {
        let wanted = [
            (1.0 / x.sqrt(), relative, 0.0),
            (3.0 / x, relative, 0.0),
            (x.sqrt(), relative, 0.0),
            (x.sin(), 0.0, 2.0 * relative),
            (x.cos(), 0.0, 2.0 * relative),
            (x.exp(), 2.0 * relative * (1.0 + x), 0.0),
            (x.ln(), relative, relative),
            (x.log2(), relative, relative),
            (x.exp2(), relative, 0.0),
            (x.tanh(), 1.0 / 1024.0, 0.0),
            (x.log10(), relative, relative),
            (x.sin(), 0.0, 2.0 * relative),
            (x.cos(), 0.0, 2.0 * relative),
            (x.powf(-1.75), of_power(x, -1.75), 0.0),
            ((x * 0.25).tan(), of_tangent(x * 0.25), 0.0),
            (1.0 / x.sqrt(), relative, 0.0),
        ];
        for (which, (wanted, relative, absolute)) in wanted.into_iter().enumerate() {
            let given = f64::from(out[which * n + i]);
            let error = (given - wanted).abs();
            assert!(
                error <= relative * wanted.abs() + absolute,
                "function {which} of {x}: {given}, not {wanted}"
            );
        }
    }
    Ok(())
}

#[kernel(fast(contract, reassociate))]
fn total(x: &[f32], out: &mut [f32]) {
    let mut sum = 0.0;
    for i in 0..x.len() {
        sum += x[i] * 0.5;
    }
    out[0] = sum;
}

fn sums_in_any_order_are_the_sums(jit: &Jit) -> Outcome {
    let x: Vec<f32> = (0..1000u16).map(|i| f32::from(i) / 7.0).collect();
    let wanted: f64 = x.iter().map(|&x| f64::from(x) * 0.5).sum();
    let (x, mut out) = (jit.upload(&x)?, jit.zeros::<f32>(1)?);
    total.launch(jit, (1, 1), &x, &mut out)?;
    let given = f64::from(out.to_vec()?[0]);
    // One rounding for each addition and each multiplication, whatever the order.
    let bound = 2000.0 * f64::from(f32::EPSILON) * wanted;
    assert!((given - wanted).abs() <= bound, "{given}, not {wanted}");
    Ok(())
}

#[device_fn]
fn third(x: f32) -> f32 {
    fast(|| x / 3.0)
}

#[kernel]
fn by_expression(x: &[f32], exact: &mut [f32], near: &mut [f32]) {
    let i = global_id().x;
    if i < x.len() {
        exact[i] = x[i] / 7.0;
        let mut count = 0;
        let inverse = approximate(|| {
            count += 1;
            if x[i] < 0.0 {
                return 0.0;
            }
            1.0 / x[i].sqrt()
        });
        near[i] = inverse + third(x[i]) + reassociated(|| contracted(|| x[i] * 2.0 + 1.0));
        near[i] += count as f32;
    }
}

fn what_is_fast_is_told_by_expressions(jit: &Jit) -> Outcome {
    let x: Vec<f32> = (1..50u8).map(f32::from).collect();
    let (on_device, mut exact) = (jit.upload(&x)?, jit.zeros::<f32>(x.len())?);
    let mut near = jit.zeros::<f32>(x.len())?;
    by_expression.launch(jit, (2, 32), &on_device, &mut exact, &mut near)?;
    let wanted: Vec<f32> = x.iter().map(|x| x / 7.0).collect();
    assert_eq!(exact.to_vec()?, wanted);
    for (near, x) in near.to_vec()?.into_iter().zip(x) {
        let wanted = 1.0 / x.sqrt() + third(x) + x * 2.0 + 2.0;
        assert!(
            (near - wanted).abs() <= wanted * 1e-6,
            "{near}, not {wanted}"
        );
    }
    Ok(())
}

#[kernel(max_registers(24), launch_bounds(64))]
fn squares(x: &mut [f32]) {
    let i = global_id().x;
    let mut all = [0.0f32; 16];
    for j in 0..16 {
        all[j] = x[i * 16 + j];
    }
    for j in 0..16 {
        x[i * 16 + j] = all[15 - j] * all[j];
    }
}

fn few_registers_change_no_result(jit: &Jit) -> Outcome {
    let x: Vec<f32> = (0..1024u16).map(f32::from).collect();
    let mut on_device = jit.upload(&x)?;
    squares.launch(jit, (1, 64), &mut on_device)?;
    let host = |i: usize| x[i] * x[i / 16 * 16 + 15 - i % 16];
    let wanted: Vec<f32> = (0..x.len()).map(host).collect();
    assert_eq!(on_device.to_vec()?, wanted);
    Ok(())
}

/// A `Jit` on the same device with other options of compilation.
fn with(jit: &Jit, compile: CompileOptions) -> Jit {
    let mut options = jit.options().clone();
    options.compile = compile;
    Jit::with(jit.device().clone(), jit.hooks().clone(), options)
}

#[device_fn]
fn halved(x: f32) -> f32 {
    x * 0.5
}

/// One kernel, written twice.
macro_rules! halves {
    ($($(#[$attribute:meta])* $name:ident)*) => {$(
        $(#[$attribute])*
        fn $name(x: &[f32], out: &mut [f32]) {
            let i = global_id().x;
            if i < out.len() {
                out[i] = halved(x[i]) + x[i];
            }
        }
    )*};
}
halves! {
    #[kernel] halves
    #[kernel(fast(flush))] flushed_halves
}

fn small_numbers_are_flushed_where_it_is_permitted(jit: &Jit) -> Outcome {
    let least = f32::MIN_POSITIVE;
    let x = [
        1.0,
        -3.0,
        least,
        -1.5 * least,
        0.25 * least,
        -1e-44,
        1e-45,
        0.0,
    ];
    let exact: Vec<f32> = x.iter().map(|x| x * 0.5 + x).collect();
    let bits = |x: &f32| x.to_bits();
    let on_device = jit.upload(&x)?;
    let mut out = jit.zeros::<f32>(x.len())?;
    let plain = with(jit, CompileOptions::default().contract(false));
    halves.launch(&plain, (1, 32), &on_device, &mut out)?;
    let given = out.to_vec()?;
    assert!(
        given.iter().map(bits).eq(exact.iter().map(bits)),
        "{given:?}"
    );
    let is_permitted = |x: f32, given: f32| {
        let flush = |x: f32| if x.abs() < least { 0.0 } else { x };
        let scaled = [x * 0.5, flush(x) * 0.5, flush(x * 0.5)];
        let mut sums = scaled.map(|part| part + x).to_vec();
        sums.extend(scaled.map(|part| part + flush(x)));
        sums.push(x.mul_add(0.5, x));
        sums.iter().any(|&sum| sum == given || flush(sum) == given)
    };
    flushed_halves.launch(jit, (1, 32), &on_device, &mut out)?;
    let by_kernel = out.to_vec()?;
    let flushing = with(jit, CompileOptions::default().fast(FastMath::FLUSH));
    halves.launch(&flushing, (1, 32), &on_device, &mut out)?;
    for given in [by_kernel, out.to_vec()?] {
        assert_eq!(given[..2], exact[..2]);
        for (&x, &given) in x.iter().zip(&given) {
            assert!(is_permitted(x, given), "{x:e}: {given:e}");
        }
    }
    Ok(())
}

#[kernel]
fn means(x: &[f32], out: &mut [f32]) {
    let i = global_id().x;
    if i < out.len() {
        let mut sum = 0.0;
        for k in 0..7 {
            sum += halved(x[i + k]) + 0.25;
        }
        out[i] = sum / 7.0;
    }
}

fn options_of_a_jit_hold_for_kernels_that_do_not_choose(jit: &Jit) -> Outcome {
    let default = CompileOptions::default;
    let mut all = vec![
        ("contract", default().contract(false)),
        ("fast", default().fast(FastMath::FAST)),
        ("unroll", default().unroll(Unroll::Never)),
        ("by three", default().unroll(Unroll::By(3))),
        ("inline_threshold", default().inline_threshold(0)),
        ("max_registers", default().max_registers(24)),
        ("unchecked", without_checks()),
        ("clamped", default().clamped()),
    ];
    let flags = FastMath::NAMES.map(|(name, flag)| (name, default().fast(flag)));
    all.extend(flags);
    let x: Vec<f32> = (0..106u8).map(f32::from).collect();
    let on_device = jit.upload(&x)?;
    for (name, options) in all {
        let mut out = jit.zeros::<f32>(100)?;
        means.launch(&with(jit, options), (4, 32), &on_device, &mut out)?;
        for (i, given) in out.to_vec()?.into_iter().enumerate() {
            let wanted = (x[i] + 3.0) * 0.5 + 0.25;
            assert!(
                (given - wanted).abs() <= wanted * 1e-6,
                "{name}: {given}, not {wanted}"
            );
        }
    }
    // Six elements more than there are: an index out of bounds is that of the last, or ends its thread.
    let mut out = jit.zeros::<f32>(106)?;
    means.launch(
        &with(jit, default().clamped()),
        (4, 32),
        &on_device,
        &mut out,
    )?;
    let last = out.to_vec()?[105];
    assert!((last - 52.75).abs() <= 1e-4, "{last}");
    let checked = with(jit, default());
    means.launch(&checked, (4, 32), &on_device, &mut out)?;
    let Err(Error::Run(RunError::Fault(fault))) = checked.synchronize() else {
        panic!("an index is out of bounds");
    };
    assert_eq!((fault.index, fault.length), (106, 106));
    Ok(())
}
