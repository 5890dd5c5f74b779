//! Memory as kernels ask for it: dynamic shared memory in several arrays, slices of other elements, globals.

use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    several_arrays,
    parts_that_are_not_there,
    elements_of_another_type,
    slices_that_do_not_fit,
    vectors_in_shared_memory,
    globals,
    globals_of_the_host,
    cache_hints,
];

#[kernel]
fn cut(x: &[f64], out: &mut [f64], gaps: u32) {
    let (i, n) = (thread_idx().x, block_dim().x);
    let numbers = dynamic_shared_at::<f64>(0, n);
    let flags = dynamic_shared_at::<u8>(8 * n, n);
    let start = (9 * n + gaps as usize).next_multiple_of(16);
    let quads = dynamic_shared_at::<F32x4>(start, 2);
    let order = dynamic_shared_at::<u16>(start + 32, n);
    numbers[i] = x[i];
    flags[i] = (i % 3) as u8;
    order[n - 1 - i] = i as u16;
    if i < 2 {
        quads[i] = F32x4::new(1.0, 2.0, 3.0, i as f32);
    }
    barrier();
    let from = order[i] as usize;
    out[i] = numbers[from] * quads[flags[from] as usize % 2].sum() as f64 + flags[from] as f64;
}

fn several_arrays(jit: &Jit) -> Outcome {
    let n = 40;
    let x: Vec<f64> = (0..n).map(|i| i as f64 - 7.0).collect();
    let mut out = jit.zeros::<f64>(n)?;
    let bytes = (9 * n + 5).next_multiple_of(16) + 32 + 2 * n;
    let config = LaunchConfig::new(1, n as u32).shared_bytes(bytes as u32);
    cut.launch(jit, config, &jit.upload(&x)?, &mut out, 5)?;
    let wanted = (0..n).rev().map(|i| {
        let flag = i % 3;
        x[i] * (6.0 + (flag % 2) as f64) + flag as f64
    });
    assert_eq!(out.to_vec()?, wanted.collect::<Vec<_>>());
    Ok(())
}

#[kernel]
fn fill_part(offset: usize, len: usize, out: &mut [u32]) {
    let part = dynamic_shared_at::<u32>(offset, len);
    part[len - 1] = 7;
    out[0] = part[len - 1] + part.len() as u32;
}

fn parts_that_are_not_there(jit: &Jit) -> Outcome {
    let mut out = jit.zeros::<u32>(1)?;
    let mut run = |offset: usize, len: usize| {
        let config = LaunchConfig::new(1, 1).shared_bytes(40);
        let launched = fill_part.launch(jit, config, offset, len, &mut out);
        launched.and_then(|()| out.to_vec())
    };
    assert_eq!(run(0, 10)?, [17]);
    assert_eq!(run(36, 1)?, [8]);
    let far = run(36, 2).expect_err("44 bytes").to_string();
    let said = "ends after that of the launch, in bytes (left: 44, right: 40)";
    assert!(far.contains(said), "{far}");
    let wide = run(4, 1 << 30).expect_err("4 GiB").to_string();
    assert!(wide.contains("(left: 4294967300, right: 40)"), "{wide}");
    let odd = run(6, 1).expect_err("it is not aligned").to_string();
    let said = "elements that begin at a multiple of 4 bytes do not begin here (left: 2, right: 0)";
    assert!(odd.contains(said), "{odd}");
    Ok(())
}

/// The words of numbers, and what numbers are of words.
#[device_fn]
fn mixed(x: &[f64], y: &mut [f32], bytes: &[u8]) -> u32 {
    let words = cast_slice::<u32>(x);
    let mut sum = 0;
    for i in 0..words.len() {
        sum ^= words[i];
    }
    let pairs = cast_slice_mut::<F32x2>(y);
    let last = pairs.len() - 1;
    pairs[0] += 1.0;
    pairs[last].y = 9.0;
    let whole = cast_slice::<u64>(cast_slice::<[u16; 4]>(bytes));
    sum ^ whole[0] as u32 ^ pairs.len() as u32
}

#[kernel]
fn mix(x: &[f64], y: &mut [f32], bytes: &[u8], out: &mut [u32]) {
    out[0] = mixed(x, y, bytes);
}

fn elements_of_another_type(jit: &Jit) -> Outcome {
    let x: Vec<f64> = (0..5).map(|i| 1.1 * f64::from(i)).collect();
    let mut y = vec![F32x2::new(0.5, 1.5); 3];
    // The host's own bytes are aligned as the device's are.
    let words = [0x0123_4567_89ab_cdefu64, 2];
    let (mut on_device, mut out) = (jit.upload(&[0.5, 1.5, 0.5, 1.5, 0.5, 1.5])?, jit.zeros(1)?);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    mix.launch(
        jit,
        (1, 1),
        &jit.upload(&x)?,
        &mut on_device,
        &jit.upload(&bytes)?,
        &mut out,
    )?;
    let wanted = mixed(&x, cast_slice_mut::<f32>(&mut y), cast_slice::<u8>(&words));
    assert_eq!(out.to_vec()?, [wanted]);
    assert_eq!(on_device.to_vec()?, [1.5, 2.5, 0.5, 1.5, 0.5, 9.0]);
    assert_eq!(cast_slice::<f32>(&y), on_device.to_vec()?);
    Ok(())
}

#[kernel]
fn quads_from(x: &mut [f32], from: usize, to: usize) {
    let quads = cast_slice_mut::<F32x4>(&mut x[from..to]);
    quads[0] += 1.0;
}

fn slices_that_do_not_fit(jit: &Jit) -> Outcome {
    let mut x = jit.zeros::<f32>(16)?;
    let mut run = |from: usize, to: usize| {
        let launched = quads_from.launch(jit, (1, 1), &mut x, from, to);
        launched.and_then(|()| x.to_vec())
    };
    let sum: f32 = run(4, 12)?.iter().sum();
    assert_eq!(sum, 4.0);
    let odd = run(6, 10)
        .expect_err("8 bytes after a multiple of 16")
        .to_string();
    let said =
        "elements that begin at a multiple of 16 bytes do not begin here (left: 8, right: 0)";
    assert!(odd.contains(said), "{odd}");
    let rest = run(4, 11).expect_err("28 bytes are no vectors").to_string();
    let said =
        "the bytes of a slice are no whole number of elements of 16 bytes (left: 12, right: 0)";
    assert!(rest.contains(said), "{rest}");
    Ok(())
}

#[kernel]
fn turned(x: &[F32x4], out: &mut [F32x4]) {
    let tile = shared!([[f32; 4]; 32]);
    let (thread, i) = (thread_idx().x, global_id().x);
    let quads = cast_slice_mut::<F32x4>(&mut tile[..]);
    quads[thread] = x[i];
    barrier();
    out[i] = cast_slice::<F32x4>(&tile[..])[31 - thread];
    out[i][thread % 4] = tile[thread][3];
}

fn vectors_in_shared_memory(jit: &Jit) -> Outcome {
    let x: Vec<F32x4> = (0..64)
        .map(|i| F32x4::splat(i as f32) * F32x4::new(1.0, 2.0, 3.0, 4.0))
        .collect();
    let mut out = jit.upload(&[F32x4::ZERO; 64])?;
    turned.launch(jit, (2, 32), &jit.upload(&x)?, &mut out)?;
    for (i, found) in out.to_vec()?.into_iter().enumerate() {
        let mut wanted = x[i / 32 * 32 + 31 - i % 32];
        wanted[i % 4] = x[i].w;
        assert_eq!(found, wanted, "{i}");
    }
    Ok(())
}

kiln::global! {
    /// How many threads had an even number, and how many an odd one.
    fn parity() -> [u32; 2];
    /// Factors by which numbers are weighed.
    pub fn weights() -> [f32; 3] = [0.5, 1.0, 4.0];
}

#[device_fn]
fn weighed(x: f32, by: usize) -> f32 {
    atomic_add(&mut parity()[by % 2], 1);
    x * weights()[by % 3]
}

#[kernel]
fn weigh(x: &mut [f32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = weighed(x[i], i);
    }
}

#[kernel]
fn reweigh(by: f32) {
    let all = weights();
    let i = thread_idx().x;
    if i < all.len() {
        all[i] *= by;
    }
}

fn globals(jit: &Jit) -> Outcome {
    // Other cases of this device have another `Jit`, or the same: what is there first is read.
    let before = parity::on(jit)?.to_vec()?;
    weights::on(jit)?.write(&[0.5, 1.0, 4.0])?;
    let mut x = jit.upload(&[2.0f32; 70])?;
    weigh.launch(jit, (3, 32), &mut x)?;
    let mut wanted: Vec<f32> = (0..70).map(|i| 2.0 * [0.5, 1.0, 4.0][i % 3]).collect();
    assert_eq!(x.to_vec()?, wanted);
    reweigh.launch(jit, (1, 32), 3.0)?;
    assert_eq!(weights::on(jit)?.to_vec()?, [1.5, 3.0, 12.0]);
    weigh.launch(jit, (3, 32), &mut x)?;
    for (i, x) in wanted.iter_mut().enumerate() {
        *x *= [1.5, 3.0, 12.0][i % 3];
    }
    assert_eq!(x.to_vec()?, wanted);
    let counts: Vec<u32> = before.iter().map(|count| count + 70).collect();
    assert_eq!(parity::on(jit)?.to_vec()?, counts);
    Ok(())
}

kiln::global! {
    fn table() -> [I32x4; 2] = [I32x4([1, 2, 3, 4]), I32x4([5, 6, 7, 8])];
}

#[kernel]
fn look_up(at: &[u32], out: &mut [i32]) {
    let i = global_id().x;
    let table = table();
    out[i] = table[at[i] as usize][i % 4];
}

fn globals_of_the_host(jit: &Jit) -> Outcome {
    // Before any kernel has it.
    let on_host = table::on(jit)?;
    assert_eq!(on_host.to_vec()?[1], I32x4([5, 6, 7, 8]));
    on_host.write(&[I32x4([-1, -2, -3, -4])])?;
    let mut out = jit.zeros(8)?;
    let at = jit.upload(&[0, 0, 1, 1, 1, 1, 0, 0])?;
    look_up.launch(jit, (1, 8), &at, &mut out)?;
    assert_eq!(out.to_vec()?, [-1, -2, 7, 8, 5, 6, -3, -4]);
    on_host.write(&[I32x4([1, 2, 3, 4])])?;
    let other = jit.global::<f32>(concat!(module_path!(), "::table"));
    let error = other.expect_err("it has integers").to_string();
    assert!(
        error.contains("is a `ptr<global, mut [i32x4; 2]>`"),
        "{error}"
    );
    Ok(())
}

#[device_fn]
fn passed_on(x: &f32, y: &mut f64, quad: &mut F32x4, pair: &F64x2, whole: &mut I32x4) -> F64x2 {
    prefetch(pair);
    prefetch_l1(x);
    let v = load_cached_global(quad) * load_streaming(x);
    store_streaming(quad, v);
    store_write_through(y, v.sum() as f64);
    store_cached_global(whole, load_streaming(whole) + 1);
    load_cached_global(pair) * 2.0
}

#[kernel]
fn pass_on(
    x: &[f32],
    y: &mut [f64],
    quads: &mut [F32x4],
    pairs: &mut [F64x2],
    whole: &mut [I32x4],
    words: &mut [u64],
) {
    let tile = shared!([u32; 32]);
    let (i, thread) = (global_id().x, thread_idx().x);
    store_streaming(&mut tile[thread], i as u32 * 3);
    barrier();
    if i < x.len() {
        let pair = passed_on(&x[i], &mut y[i], &mut quads[i], &pairs[i], &mut whole[i]);
        store_cached_global(&mut pairs[i], pair);
        store_write_through(&mut words[i], load_cached_global(&tile[31 - thread]) as u64);
    }
}

fn cache_hints(jit: &Jit) -> Outcome {
    let n = 64;
    let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let mut on_host: Vec<_> = (0..n as i32)
        .map(|i| {
            let quad = F32x4::new(1.0, 2.0, i as f32, -1.0);
            (0.0, quad, F64x2::splat(f64::from(i)), I32x4::splat(i))
        })
        .collect();
    let mut y = jit.zeros::<f64>(n)?;
    let mut quads = jit.upload(&on_host.iter().map(|all| all.1).collect::<Vec<_>>())?;
    let mut pairs = jit.upload(&on_host.iter().map(|all| all.2).collect::<Vec<_>>())?;
    let mut whole = jit.upload(&on_host.iter().map(|all| all.3).collect::<Vec<_>>())?;
    let mut words = jit.zeros::<u64>(n)?;
    let (config, input) = ((2, 32), jit.upload(&x)?);
    pass_on.launch(
        jit, config, &input, &mut y, &mut quads, &mut pairs, &mut whole, &mut words,
    )?;
    for (x, (y, quad, pair, whole)) in x.iter().zip(&mut on_host) {
        *pair = passed_on(x, y, quad, pair, whole);
    }
    assert_eq!(
        y.to_vec()?,
        on_host.iter().map(|all| all.0).collect::<Vec<_>>()
    );
    assert_eq!(
        quads.to_vec()?,
        on_host.iter().map(|all| all.1).collect::<Vec<_>>()
    );
    assert_eq!(
        pairs.to_vec()?,
        on_host.iter().map(|all| all.2).collect::<Vec<_>>()
    );
    assert_eq!(
        whole.to_vec()?,
        on_host.iter().map(|all| all.3).collect::<Vec<_>>()
    );
    let wanted = (0..n as u64).map(|i| (i / 32 * 32 + 31 - i % 32) * 3);
    assert_eq!(words.to_vec()?, wanted.collect::<Vec<_>>());
    Ok(())
}
