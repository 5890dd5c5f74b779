//! Calls of device functions: type parameters that arguments determine, however deep in them they are,
//! functions of one name, and functions that are asked to be inlined. Each function runs on the host and
//! as a kernel.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    by_value_and_reference nested_generics lengths_and_types through_closures
    functions_of_one_name generics_of_one_name inlined_on_request const_arguments; a_kernel_of_a_callees_name
}

#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Pair<T> {
    a: T,
    b: T,
}

#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Two<A, B> {
    first: A,
    second: B,
}

#[device_fn]
fn of_pair<T: Num>(p: Pair<T>) -> T {
    p.a + p.b
}

#[device_fn]
fn of_reference<T: Num>(p: &Pair<T>) -> T {
    p.a + p.b + p.b
}

#[device_fn]
fn changes_pair<T: Num>(p: &mut Pair<T>) -> T {
    p.a = p.a + p.b;
    p.b
}

#[device_fn]
fn of_array<T: Num>(p: [Pair<T>; 2]) -> T {
    p[0].a + p[1].b
}

#[device_fn]
fn of_array_reference<T: Num>(p: &mut [Pair<T>; 2]) -> T {
    p[1].a = p[0].b;
    p[0].a + p[1].b
}

#[device_fn]
fn of_slice<T: Num>(p: &[Pair<T>]) -> T {
    let mut sum = p[0].a;
    for i in 0..p.len() {
        sum = sum + p[i].b;
    }
    sum
}

#[device_fn]
fn of_tuple<T: Num, U: Num>(p: (T, &[Pair<U>]), q: Pair<Two<U, T>>) -> T {
    p.0 + q.a.second + p.1[0].a.cast::<T>() + q.b.first.cast::<T>()
}

/// Calls each of them with types of its own parameter.
#[device_fn]
fn all_of<T: Num>(one: T, x: T) -> T {
    let mut pairs = [Pair { a: one, b: x }, Pair { a: x, b: one }];
    let mut sum = of_pair(pairs[0]) + of_reference(&pairs[1]) + changes_pair(&mut pairs[0]);
    sum = sum + of_array(pairs) + of_array_reference(&mut pairs) + of_slice(&pairs);
    let two = Two {
        first: one,
        second: x,
    };
    sum + of_slice(&pairs[1..]) + of_tuple((x, &pairs), Pair { a: two, b: two })
}

#[device_fn]
fn by_value_and_reference(x: i32) -> i32 {
    let x = x & 0xff;
    let wide = all_of(3i64, x as i64);
    let float = all_of(0.5f32, (x & 31) as f32);
    all_of(7, x) + wide as i32 + (float * 4.0) as i32
}

#[device_fn]
fn deep<T: Num>(p: &[Pair<Pair<[T; 2]>>]) -> T {
    p[0].a.b[1] + p[0].b.a[0]
}

#[device_fn]
fn swapped<T: Num, U: Num>(p: [Two<U, T>; 2]) -> [Two<T, U>; 2] {
    let (a, b) = (p[0], p[1]);
    [
        Two {
            first: b.second,
            second: a.first,
        },
        Two {
            first: a.second,
            second: b.first,
        },
    ]
}

/// The parameters of the callee are those of the caller in another order.
#[device_fn]
fn crossed<T: Num, U: Num>(x: T, y: U) -> T {
    let p = [Two {
        first: x,
        second: y,
    }; 2];
    let q = swapped(swapped(swapped(p)));
    let nested = [Pair {
        a: Pair {
            a: [x, x],
            b: [x, x + x],
        },
        b: Pair {
            a: [x, x],
            b: [x, x],
        },
    }; 1];
    q[0].second + q[1].first.cast::<T>() + deep(&nested)
}

#[device_fn]
fn nested_generics(x: i32) -> i32 {
    crossed(x & 63, 2.0f32) + crossed((x & 7) as f64, 3u32) as i32 * 10
}

#[device_fn]
fn total<T: Num, const N: usize>(p: [[Pair<T>; N]; 2]) -> T {
    let mut sum = p[0][0].a;
    for i in 0..N {
        sum = sum + p[1][i].b;
    }
    sum
}

#[device_fn]
fn totals<T: Num>(x: T) -> T {
    let p = Pair { a: x, b: x + x };
    total([[p; 3]; 2]) + total([[p; 5]; 2])
}

#[device_fn]
fn lengths_and_types(x: i32) -> i32 {
    totals(x & 31) + totals((x & 31) as f32) as i32
}

#[device_fn]
fn mapped<T: Num, U: Num, F: Fn(Pair<T>) -> U>(p: &[Pair<T>], pair: (&[U], T), f: F) -> U {
    f(p[0])
        + pair.0[0]
        + f(Pair {
            a: pair.1,
            b: p[1].b,
        })
}

#[device_fn]
fn of_closure<T: Num>(x: T) -> T {
    let p = [Pair { a: x, b: x }; 2];
    mapped(&p, (&[x, x], x), |p| p.a + p.b)
}

#[device_fn]
fn through_closures(x: i32) -> i32 {
    let p = [Pair { a: x & 7, b: 2 }, Pair { a: 1, b: x & 3 }];
    let float = mapped(&p, (&[0.5f32], 3), |p| (p.a + p.b) as f32 * 0.5);
    (float * 4.0) as i32 + of_closure(x & 15) + of_closure((x & 15) as f64) as i32
}

mod first {
    use kiln::prelude::*;
    #[device_fn]
    pub fn f(x: i32) -> i32 {
        x.wrapping_add(1)
    }
    #[device_fn]
    pub fn of<T: Num>(x: T) -> T {
        x + x
    }
}

mod second {
    use kiln::prelude::*;
    #[device_fn]
    pub fn f(x: i32) -> i32 {
        super::third::f(super::first::f(x)).wrapping_mul(2)
    }
    #[device_fn]
    pub fn of<T: Num>(x: T) -> T {
        x * x
    }
}

mod third {
    use kiln::prelude::*;
    #[device_fn]
    pub fn f(x: i32) -> i32 {
        x.wrapping_mul(3)
    }
    #[device_fn]
    pub fn of<T: Num>(x: T) -> T {
        super::first::of(x) + super::second::of(x)
    }
}

mod fourth {
    use kiln::prelude::*;
    #[device_fn]
    pub fn f(x: i32) -> i32 {
        super::second::f(x).wrapping_sub(super::third::f(x)) ^ super::first::f(x)
    }
}

#[device_fn]
fn functions_of_one_name(x: i32) -> i32 {
    let a = first::f(x).wrapping_add(second::f(x));
    let b = third::f(x) ^ fourth::f(x);
    a.wrapping_mul(5) ^ b ^ second::f(b)
}

#[device_fn]
fn generics_of_one_name(x: i32) -> i32 {
    let x = x & 31;
    let a = first::of(x) + second::of(x) + third::of(x);
    let b = first::of(x as f32) + second::of(x as f32) + third::of(x as f32);
    a * 3 + b as i32 + third::of(x as i64) as i32
}

mod kernel_of_that_name {
    use kiln::prelude::*;

    use super::{first, second, third};

    #[kernel]
    pub fn f(x: &[i32], out: &mut [i32]) {
        let i = global_id().x;
        out[i] = first::f(x[i]) ^ second::f(x[i]) ^ third::f(x[i]);
    }
}

fn a_kernel_of_a_callees_name(jit: &Jit) -> Outcome {
    let x: Vec<i32> = (0..64).collect();
    let (buffer, mut out) = (jit.upload(&x)?, jit.zeros::<i32>(64)?);
    kernel_of_that_name::f.launch(jit, (1, 64), &buffer, &mut out)?;
    let want = x.iter().map(|&x| first::f(x) ^ second::f(x) ^ third::f(x));
    assert_eq!(out.to_vec()?, want.collect::<Vec<_>>());
    Ok(())
}

#[device_fn]
#[inline(always)]
fn turned(a: &mut [i32; 4], by: i32) {
    for j in 0..4 {
        a[j] = a[j].wrapping_mul(by) ^ a[(j + 1) % 4];
    }
}

#[device_fn]
#[inline(never)]
fn mixed(a: &[i32; 4]) -> i32 {
    a[0] ^ a[1].rotate_left(5) ^ a[2].rotate_left(9) ^ a[3]
}

#[device_fn]
#[inline]
fn folded(x: i32) -> i32 {
    x ^ (x >> 7)
}

#[device_fn]
fn inlined_on_request(x: i32) -> i32 {
    let mut a = [x, 1, 2, 3];
    turned(&mut a, 5);
    turned(&mut a, folded(x));
    folded(mixed(&a)) ^ mixed(&[x; 4])
}

const LIMIT: i32 = 5;

#[device_fn]
fn power<const N: u32>(x: i32) -> i32 {
    let mut power = 1i32;
    for _ in 0..N {
        power = power.wrapping_mul(x);
    }
    power
}

#[device_fn]
fn between<T: Int, const LOW: i32, const INCLUSIVE: bool>(x: T) -> bool {
    let x = x.cast::<i32>();
    if INCLUSIVE { x >= LOW } else { x > LOW }
}

#[device_fn]
fn table<const N: usize, const STEP: usize>(x: i32) -> [i32; N] {
    let mut table = [0; N];
    for i in (0..N).step_by(STEP) {
        table[i] = x ^ i as i32;
    }
    table
}

#[device_fn]
fn powers<const N: u32>(x: i32) -> i32 {
    power::<N>(x) ^ power::<{ N }>(power::<2>(x))
}

#[device_fn]
fn const_arguments(x: i32) -> i32 {
    let held = between::<i32, LIMIT, true>(x) as i32 + 2 * between::<i32, { -3 }, false>(x) as i32;
    let held = held + 4 * between::<u8, { LIMIT * 2 }, true>(x as u8) as i32;
    let (wide, narrow) = (table::<8, 3>(x), table::<2, 1>(power::<1>(x)));
    powers::<3>(x) ^ powers::<0>(x) ^ held ^ wide[6] ^ narrow[1]
}
