//! Short vectors: how they are made, their lanes, operators and methods, in memory of each kind.

use std::fmt::Debug;

use half::{bf16, f16};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    operators,
    lanes,
    lanes_in_memory,
    unsigned_and_double,
    loops_and_calls,
    a_lane_out_of_bounds,
    halves,
];

const N: usize = 70;

/// Small numbers, so that no sum is rounded and none overflows.
fn numbers(step: usize) -> Vec<f32> {
    let numbers = (0..4 * N).map(|i| ((i * step) % 23) as f32 - 11.0);
    numbers.collect()
}

fn quads(numbers: &[f32]) -> Vec<F32x4> {
    let quads = numbers.chunks_exact(4);
    quads.map(|n| F32x4::new(n[0], n[1], n[2], n[3])).collect()
}

#[device_fn]
fn computed(a: F32x4, b: F32x4, s: f32) -> [F32x4; 6] {
    let mut sum = a + b * s;
    sum += F32x4::splat(0.5);
    sum *= 2.0;
    let mut rest = s - a;
    rest -= b;
    rest /= F32x4([1.0, 2.0, 4.0, 8.0]);
    let product = F32x4::new(a.dot(b), a.sum(), (-a).y, F32x4::ZERO.w);
    [sum, rest, product, a / 4.0, 1.0 + a * b, a - b]
}

#[kernel]
fn compute(a: &[F32x4], b: &[F32x4], s: f32, out: &mut [[F32x4; 6]]) {
    let i = global_id().x;
    if i < a.len() {
        out[i] = computed(a[i], b[i], s);
    }
}

fn operators(jit: &Jit) -> Outcome {
    let (a, b) = (quads(&numbers(5)), quads(&numbers(7)));
    let mut out = jit.upload(&[[F32x4::ZERO; 6]; N])?;
    compute.launch(
        jit,
        (3, 32),
        &jit.upload(&a)?,
        &jit.upload(&b)?,
        3.0,
        &mut out,
    )?;
    for (i, found) in out.to_vec()?.into_iter().enumerate() {
        assert_eq!(found, computed(a[i], b[i], 3.0), "{i}");
        // Lane by lane, without the operators of vectors.
        let ([a, b], mut by_lane) = ([a[i].0, b[i].0], [[0.0; 4]; 6]);
        for lane in 0..4 {
            by_lane[0][lane] = (a[lane] + b[lane] * 3.0 + 0.5) * 2.0;
            by_lane[1][lane] = (3.0 - a[lane] - b[lane]) / (1 << lane) as f32;
            by_lane[3][lane] = a[lane] / 4.0;
            by_lane[4][lane] = 1.0 + a[lane] * b[lane];
            by_lane[5][lane] = a[lane] - b[lane];
        }
        let dot = (0..4).map(|lane| a[lane] * b[lane]).sum();
        by_lane[2] = [dot, a.iter().sum(), -a[1], 0.0];
        assert_eq!(found.map(F32x4::to_array), by_lane, "{i}");
    }
    Ok(())
}

#[device_fn]
fn rearranged(v: F32x4, at: usize) -> [F32x4; 2] {
    let mut w = v;
    w.x = v.w;
    w[1] = v[at];
    w[at] += 10.0;
    w.w *= w.x;
    let first = v.to_array();
    let mut all = F32x4(first);
    for lane in 0..4 {
        all[lane] -= first[3 - lane] * v.0[lane];
    }
    [w, all]
}

#[kernel]
fn rearrange(v: &[F32x4], out: &mut [[F32x4; 2]]) {
    let i = global_id().x;
    if i < v.len() {
        out[i] = rearranged(v[i], i % 4);
    }
}

fn lanes(jit: &Jit) -> Outcome {
    let v = quads(&numbers(3));
    let mut out = jit.upload(&[[F32x4::ZERO; 2]; N])?;
    rearrange.launch(jit, (3, 32), &jit.upload(&v)?, &mut out)?;
    for (i, found) in out.to_vec()?.into_iter().enumerate() {
        assert_eq!(found, rearranged(v[i], i % 4), "{i}");
    }
    let by_hand = rearranged(F32x4::new(1.0, 2.0, 3.0, 4.0), 2);
    assert_eq!(by_hand[0], F32x4([4.0, 3.0, 13.0, 16.0]));
    assert_eq!(by_hand[1], F32x4([-3.0, -4.0, -3.0, 0.0]));
    Ok(())
}

/// Pairs in a struct, so that a lane is some way into something else.
#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Body {
    place: F32x2,
    weight: f64,
}

#[device_fn]
fn push(body: &mut Body, by: &F32x2) {
    body.place.y += by.x;
    body.place[0] -= by[1];
    body.weight += 1.0;
}

#[kernel]
fn push_all(bodies: &mut [Body], by: &[F32x2], total: &mut [f32]) {
    let tile = shared!([F32x2; 32]);
    let (i, thread) = (global_id().x, thread_idx().x);
    tile[thread] = F32x2::ZERO;
    barrier();
    if i < bodies.len() {
        push(&mut bodies[i], &by[i]);
        tile[31 - thread].y = bodies[i].place.x;
    }
    barrier();
    if thread == 0 {
        for k in 0..32 {
            atomic_add(&mut total[0], tile[k][1]);
        }
    }
}

fn lanes_in_memory(jit: &Jit) -> Outcome {
    let body = |i: usize| Body {
        place: F32x2::new(i as f32, 2.0),
        weight: i as f64,
    };
    let mut on_host: Vec<Body> = (0..N).map(body).collect();
    let by: Vec<F32x2> = (0..N).map(|i| F32x2([i as f32, 3.0])).collect();
    let (mut bodies, mut total) = (jit.upload(&on_host)?, jit.zeros::<f32>(1)?);
    push_all.launch(jit, (3, 32), &mut bodies, &jit.upload(&by)?, &mut total)?;
    for (body, by) in on_host.iter_mut().zip(&by) {
        push(body, by);
    }
    assert_eq!(bodies.to_vec()?, on_host);
    let wanted: f32 = on_host.iter().map(|body| body.place.x).sum();
    assert_eq!(total.to_vec()?, [wanted]);
    Ok(())
}

#[device_fn]
fn of_each_type(a: U32x4, b: I32x4, c: F64x2) -> (U32x4, I32x4, F64x2) {
    let mut a = a * 3 + a / U32x4::new(1, 2, 3, 4);
    a.z = a.sum();
    let b = -(b - 7) * b;
    let c = 2.0 / c + F64x2::new(c.dot(c), c[1]);
    (a, b, c)
}

#[kernel]
fn each_type(a: &mut [U32x4], b: &mut [I32x4], c: &mut [F64x2]) {
    let i = global_id().x;
    if i < a.len() {
        let (new_a, new_b, new_c) = of_each_type(a[i], b[i], c[i]);
        a[i] = new_a;
        b[i] = new_b;
        c[i] = new_c;
    }
}

fn same<T: PartialEq + Debug>(found: &[T], wanted: Vec<T>) {
    assert_eq!(found, wanted);
}

fn unsigned_and_double(jit: &Jit) -> Outcome {
    let of = |i: usize| {
        let n = i as u32;
        let a = U32x4::new(n, n + 5, 2 * n, 9);
        let b = I32x4([n as i32 - 9, 3, -(n as i32), 0]);
        (a, b, F64x2([0.25, f64::from(1 << (n % 8))]))
    };
    let all: Vec<_> = (0..N).map(of).collect();
    let mut a = jit.upload(&all.iter().map(|all| all.0).collect::<Vec<_>>())?;
    let mut b = jit.upload(&all.iter().map(|all| all.1).collect::<Vec<_>>())?;
    let mut c = jit.upload(&all.iter().map(|all| all.2).collect::<Vec<_>>())?;
    each_type.launch(jit, (3, 32), &mut a, &mut b, &mut c)?;
    let wanted: Vec<_> = all.iter().map(|&(a, b, c)| of_each_type(a, b, c)).collect();
    same(&a.to_vec()?, wanted.iter().map(|w| w.0).collect());
    same(&b.to_vec()?, wanted.iter().map(|w| w.1).collect());
    same(&c.to_vec()?, wanted.iter().map(|w| w.2).collect());
    Ok(())
}

/// The sum of a part of vectors, by a variable that is one.
#[device_fn]
fn total(v: &[F32x4], from: usize) -> F32x4 {
    let mut sum = F32x4::ZERO;
    for i in from..v.len() {
        if v[i].x < 0.0 {
            sum += v[i];
        } else {
            sum -= v[i] * 0.5;
        }
    }
    sum
}

#[kernel]
fn totals(v: &[F32x4], out: &mut [F32x4]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = total(v, i);
    }
}

fn loops_and_calls(jit: &Jit) -> Outcome {
    let v = quads(&numbers(9));
    let mut out = jit.upload(&[F32x4::ZERO; N])?;
    totals.launch(jit, (3, 32), &jit.upload(&v)?, &mut out)?;
    let wanted: Vec<F32x4> = (0..N).map(|from| total(&v, from)).collect();
    assert_eq!(out.to_vec()?, wanted);
    Ok(())
}

#[kernel]
fn choose(v: &mut [F32x4], lanes: &[u32]) {
    let i = global_id().x;
    v[i][lanes[i] as usize] = 1.0;
}

fn a_lane_out_of_bounds(jit: &Jit) -> Outcome {
    let mut v = jit.upload(&[F32x4::ZERO; 4])?;
    choose.launch(jit, (1, 4), &mut v, &jit.upload(&[0, 3, 1, 2])?)?;
    let lanes = v.to_vec()?.iter().map(|v| v.sum()).sum::<f32>();
    assert_eq!((lanes, v.to_vec()?[1].w), (4.0, 1.0));
    let lanes = jit.upload(&[0, 4, 1, 2])?;
    let launched = choose.launch(jit, (1, 4), &mut v, &lanes);
    let error = launched.and_then(|()| v.to_vec()).expect_err("lane 4");
    let error = error.to_string();
    assert!(error.contains("index 4"), "{error}");
    Ok(())
}

#[device_fn]
fn of_halves(a: F16x2, b: F16x2, s: f16) -> [F16x2; 4] {
    let mut sum = a + b * s;
    sum[1] += s;
    [
        sum,
        -a / F16x2::new(s, a.dot(b)),
        a - b,
        F16x2::splat(b.sum()),
    ]
}

#[device_fn]
fn of_brains(a: BF16x2, b: BF16x2, s: bf16) -> [BF16x2; 4] {
    let mut sum = s * a + b;
    sum.x -= s;
    [sum, a / b, a - b, BF16x2::new(b.y, a.sum())]
}

#[kernel]
fn compute_halves(
    a: &[F16x2],
    b: &[BF16x2],
    s: f16,
    brain: bf16,
    out: &mut [[F16x2; 4]],
    brains: &mut [[BF16x2; 4]],
) {
    let i = global_id().x;
    if i < a.len() {
        out[i] = of_halves(a[i], a[a.len() - 1 - i], s);
        brains[i] = of_brains(b[i], b[a.len() - 1 - i], brain);
    }
}

fn halves(jit: &Jit) -> Outcome {
    let numbers = |i: usize| [(i % 17) as f64 - 7.5, (i % 5) as f64 + 0.25];
    let a: Vec<F16x2> = (0..N)
        .map(|i| F16x2(numbers(i).map(f16::from_f64)))
        .collect();
    let b: Vec<BF16x2> = (0..N)
        .map(|i| BF16x2(numbers(i).map(bf16::from_f64)))
        .collect();
    let mut out = jit.upload(&[[F16x2::ZERO; 4]; N])?;
    let mut brains = jit.upload(&[[BF16x2::ZERO; 4]; N])?;
    let s = f16::from_f64(1.5);
    let buffers = (jit.upload(&a)?, jit.upload(&b)?);
    let brain = bf16::from_f64(1.5);
    compute_halves.launch(
        jit,
        (3, 32),
        &buffers.0,
        &buffers.1,
        s,
        brain,
        &mut out,
        &mut brains,
    )?;
    let (out, brains) = (out.to_vec()?, brains.to_vec()?);
    for i in 0..N {
        let back = N - 1 - i;
        assert_eq!(out[i], of_halves(a[i], a[back], s), "{i}");
        let wanted = of_brains(b[i], b[back], brain);
        assert_eq!(brains[i], wanted, "{i}");
    }
    Ok(())
}
