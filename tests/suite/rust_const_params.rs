//! Structs with const parameters, and functions and kernels that are generic in them: each function runs as plain Rust on
//! the host and through the JIT.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use std::ops::{AddAssign, Mul};

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    stacks heaps products of_functions nested chosen_by_bool compared with_bodies
    beside_closures of_other_types handed_on rows_of_zeros; in_buffers by_name in_shared_memory beside_closures_in_kernels
    numbers_that_nothing_tells numbers_that_are_asserted
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Stack<T, const CAPACITY: usize> {
    items: [T; CAPACITY],
    len: u32,
}

#[device_fn]
impl<T: Num, const CAPACITY: usize> Stack<T, CAPACITY> {
    const CAPACITY: usize = CAPACITY;

    fn new() -> Self {
        Stack {
            items: [T::ZERO; CAPACITY],
            len: 0,
        }
    }

    fn capacity() -> usize {
        CAPACITY
    }

    fn is_full(&self) -> bool {
        self.len as usize == CAPACITY
    }

    fn push(&mut self, item: T) -> bool {
        if self.is_full() {
            return false;
        }
        self.items[self.len as usize] = item;
        self.len += 1;
        true
    }

    fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        Some(self.items[self.len as usize])
    }

    fn sum(self) -> T {
        let part = &self.items[..self.len as usize];
        part.iter().fold(T::ZERO, |sum, item| sum + *item)
    }
}

#[device_fn]
fn in_rows<const N: usize, const M: usize>(x: i32) -> i32 {
    let mut rows = [[0i32; M]; N];
    let mut seen = [[[false; 2]; 3]; N];
    let halves = [[0.0f32; 300]; 2];
    for i in 0..N {
        rows[i][i % M] += x + i as i32;
        seen[i][i % 3][1] = true;
    }
    let mut sum = halves[1][299] as i32;
    for i in 0..N {
        for j in 0..M {
            sum = sum * 3 + rows[i][j];
        }
        if seen[i][1][1] && !seen[i][0][0] {
            sum += 7;
        }
    }
    sum
}

#[device_fn]
fn rows_of_zeros(x: i32) -> i32 {
    in_rows::<5, 3>(x) - in_rows::<2, 4>(x)
}

#[device_fn]
fn stacks(x: i32) -> i32 {
    let (mut small, mut large) = (Stack::<i32, 3>::new(), Stack::<i32, 8>::new());
    let mut dropped = 0;
    for i in 0..(x & 7) {
        dropped += !small.push(i * 3 + (x & 1)) as i32;
        large.push(i ^ 5);
    }
    let mut mixed = 0;
    while let Some(item) = small.pop() {
        mixed = mixed * 5 + item;
    }
    let wide = Stack::<i32, 8>::capacity() + Stack::<f32, 5>::CAPACITY;
    mixed + 100 * dropped + 1000 * large.sum() + wide as i32
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Heap<const N: usize> {
    items: [u32; N],
    len: u32,
}

#[device_fn]
impl<const N: usize> Heap<N> {
    fn of(items: [u32; N]) -> Self {
        let mut heap = Heap {
            items: [0; N],
            len: 0,
        };
        for item in items {
            heap.insert(item);
        }
        heap
    }

    fn insert(&mut self, item: u32) {
        let mut at = self.len as usize;
        self.len += 1;
        self.items[at] = item;
        while at > 0 && self.items[(at - 1) / 2] < self.items[at] {
            self.items.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }
}

#[device_fn]
fn heaps(x: i32) -> i32 {
    let of_five = Heap::of([3, x as u32 & 15, 9, x as u32 >> 4 & 15, 1]);
    let of_two = Heap::of([x as u32 & 3, 2]);
    let start = of_two.items[0] * 7 + of_two.items[1];
    of_five.items.iter().fold(start, |all, v| all * 16 + v) as i32
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Matrix<T, const ROWS: usize, const COLUMNS: usize> {
    rows: [[T; COLUMNS]; ROWS],
}

#[device_fn]
impl<T: Num, const R: usize, const K: usize, const C: usize> Mul<Matrix<T, K, C>>
    for Matrix<T, R, K>
{
    type Output = Matrix<T, R, C>;
    fn mul(self, other: Matrix<T, K, C>) -> Matrix<T, R, C> {
        let mut product = Matrix {
            rows: [[T::ZERO; C]; R],
        };
        for r in 0..R {
            for c in 0..C {
                for k in 0..K {
                    product.rows[r][c] = product.rows[r][c] + self.rows[r][k] * other.rows[k][c];
                }
            }
        }
        product
    }
}

#[device_fn]
impl<T: Num, const R: usize, const C: usize> AddAssign for Matrix<T, R, C> {
    fn add_assign(&mut self, other: Self) {
        for r in 0..R {
            for c in 0..C {
                self.rows[r][c] += other.rows[r][c];
            }
        }
    }
}

#[device_fn]
impl<T: Num, const R: usize, const C: usize> Matrix<T, R, C> {
    fn transposed(&self) -> Matrix<T, C, R> {
        let mut rows = [[T::ZERO; R]; C];
        for r in 0..R {
            for c in 0..C {
                rows[c][r] = self.rows[r][c];
            }
        }
        Matrix { rows }
    }
}

#[device_fn]
fn products(x: i32) -> i32 {
    let a = Matrix {
        rows: [[x & 7, 2, 3], [4, x & 3, 6]],
    };
    let mut square = a * a.transposed();
    square += Matrix {
        rows: [[1, 0], [0, 10]],
    };
    let other = a.transposed() * square;
    let row = Matrix { rows: [[1, 2, 3]] };
    let last = row * other;
    last.rows[0][0] + 1000 * last.rows[0][1]
}

#[device_fn]
fn doubled<T: Num, const N: usize>(stack: &Stack<T, N>) -> Stack<T, N> {
    let mut twice = Stack::<T, N>::new();
    for item in &stack.items {
        twice.push(*item + *item);
    }
    twice
}

#[device_fn]
fn folded<const N: usize, const TIMES: u32>(stack: Stack<i32, N>) -> i32 {
    let mut sum = 0;
    for _ in 0..TIMES {
        sum = sum * 3 + stack.sum() + N as i32;
    }
    sum
}

#[device_fn]
fn of_functions(x: i32) -> i32 {
    let (mut one, mut two) = (Stack::<i32, 4>::new(), Stack::<i32, 6>::new());
    one.push(x & 31);
    two.push(x & 15);
    two.push(3);
    folded::<4, 2>(doubled(&one)) + 7 * folded::<6, 1>(doubled(&two))
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Both<A, B, const WEIGHT: i32> {
    a: A,
    b: B,
}

#[device_fn]
impl<const N: usize, const WEIGHT: i32> Both<Stack<i32, N>, [i32; 2], WEIGHT> {
    fn weighed(&self) -> i32 {
        WEIGHT * self.a.sum() + self.b[1] * N as i32
    }
}

#[device_fn]
fn nested(x: i32) -> i32 {
    let mut a = Stack::<i32, 5>::new();
    a.push(x & 63);
    a.push(2);
    let light = Both::<_, _, -2> { a, b: [0, x & 7] };
    let heavy = Both::<_, _, 100> { a, b: [1, 2] };
    light.weighed() + heavy.weighed()
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Counter<const DOWN: bool> {
    at: i32,
}

#[device_fn]
impl<const DOWN: bool> Counter<DOWN> {
    fn step(&mut self) {
        self.at += if DOWN { -1 } else { 2 };
    }
}

#[device_fn]
fn chosen_by_bool(x: i32) -> i32 {
    let (mut up, mut down) = (Counter::<false> { at: x & 15 }, Counter::<true> { at: 3 });
    for _ in 0..5 {
        up.step();
        down.step();
    }
    up.at * 100 + down.at
}

#[device_fn]
fn compared(x: i32) -> i32 {
    let one = Matrix {
        rows: [[x & 1, 2], [3, 4]],
    };
    let other = Matrix {
        rows: [[1, 2], [3, 4]],
    };
    (one == other) as i32 + 2 * (one != other.transposed()) as i32
}

#[device_fn]
trait Measured: Copy {
    const PARTS: u32;
    fn size(&self) -> i32;
    fn twice(&self) -> i32 {
        2 * self.size()
    }
}

#[device_fn]
impl<const N: usize> Measured for Heap<N> {
    const PARTS: u32 = N as u32;
    fn size(&self) -> i32 {
        self.len as i32 * 10 + self.items[0] as i32
    }
}

#[device_fn]
fn measured<M: Measured>(of: &M) -> i32 {
    of.twice() + M::PARTS as i32
}

#[device_fn]
fn with_bodies(x: i32) -> i32 {
    measured(&Heap::of([1, x as u32 & 7, 5])) + 1000 * measured(&Heap::of([x as u32 & 3]))
}

#[device_fn]
fn repeated<const N: usize, T: Num, F: FnMut(T) -> T>(x: T, mut f: F) -> T {
    let mut x = x;
    for _ in 0..N {
        x = f(x);
    }
    x
}

/// The number is told by an argument, or by the call.
#[device_fn]
fn joined<T: Num, const N: usize, F: Fn(T, T) -> T>(x: &[T; N], f: F) -> T {
    const { assert!(N > 0, "nothing is joined") };
    let mut all = x[0];
    for i in 1..N {
        all = f(all, x[i]);
    }
    all
}

#[device_fn]
fn built<const N: usize, F>(f: F) -> [i32; N]
where
    F: Fn(usize) -> i32,
{
    let mut all = [0; N];
    for (i, one) in all.iter_mut().enumerate() {
        *one = f(i);
    }
    all
}

const STEPS: usize = 3;

#[device_fn]
fn beside_closures(x: i32) -> i32 {
    let (mut calls, by) = (0, x & 3);
    let four = repeated::<4, _, _>(x & 15, |v| {
        calls += 1;
        v * 3 - by
    });
    let more =
        repeated::<STEPS, i32, _>(1, |v| v + by) + repeated::<{ STEPS - 3 }, _, _>(7, |v| v * v);
    let half = repeated::<{ 1 + 1 }, f32, _>((x & 7) as f32, |v| v * 0.5);
    let squares = built::<5, _>(|i| (i * i) as i32 + by);
    let told = joined(&squares, |a, b| a * 2 + b) + joined::<_, _, _>(&[x & 1, 5], |a, b| a - b);
    let named = joined::<i32, 5, _>(&squares, |a, b| a.max(b));
    four + 7 * calls + 11 * more + (half * 4.0) as i32 + 1000 * told + named
}

#[device_fn]
fn scaled<const BY: i32, const UP: bool, const BITS: u8, F: Fn(i32) -> i32>(x: i32, f: F) -> i32 {
    let shifted = f(x & 255) >> BITS;
    if UP { shifted * BY } else { shifted - BY }
}

#[device_fn]
fn of_other_types(x: i32) -> i32 {
    let down = scaled::<-3, false, 2, _>(x, |v| v + 1);
    down * 1000 + scaled::<{ i32::MIN >> 20 }, true, { 1 + 2 }, _>(x, |v| v * 2)
}

/// Hands its own numbers on, to a function that takes closures and one that takes none.
#[device_fn]
fn around<const N: usize, const WIDE: usize, F: Fn(i32) -> i32>(x: [i32; N], f: F) -> i32 {
    let all = built::<WIDE, _>(|i| f(x[i % N]) + WIDE as i32);
    let often = repeated::<{ N }, _, _>(1, |v| f(v) & 31);
    joined(&all, |a, b| a ^ b) + 100 * often + of_array::<N>(x)
}

#[device_fn]
fn of_array<const N: usize>(x: [i32; N]) -> i32 {
    joined::<_, N, _>(&x, |a, b| a + b) + repeated::<N, _, _>(0, |v| v + N as i32)
}

#[device_fn]
fn handed_on(x: i32) -> i32 {
    let one = around::<3, 5, _>([x & 7, 2, 9], |v| v * 5 + 1);
    one + 3 * around::<1, 2, _>([x & 3], |v| v - x)
}

/// A number of the kernel's, and shared memory of its length.
#[kernel]
fn turned<T: Num, const N: usize>(x: &mut [T]) {
    let i = global_id().x;
    let more = repeated::<N, _, _>(x[i], |v| v + v);
    x[i] = exchanged_by::<{ N }, T, _>(more, |at| (at + 1) % N);
}

#[device_fn]
fn exchanged_by<const N: usize, T: Num, F: Fn(usize) -> usize>(value: T, from: F) -> T {
    let all = shared!([T; N]);
    barrier();
    all[thread_idx().x] = value;
    barrier();
    all[from(thread_idx().x)]
}

fn beside_closures_in_kernels(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&[1u32, 2, 3, 4])?;
    turned.launch::<u32, 4>(jit, (1, 4), &mut x)?;
    assert_eq!(x.to_vec()?, [32, 48, 64, 16]);
    let mut x = jit.upload(&[0.5f64, 1.5])?;
    turned.launch::<f64, 2>(jit, (1, 2), &mut x)?;
    assert_eq!(x.to_vec()?, [6.0, 2.0]);
    Ok(())
}

#[kernel]
fn told_by_the_result(out: &mut [i32]) {
    let all: [i32; 3] = built(|i| i as i32);
    out[0] = all[2];
}

#[kernel]
fn told_in_part(out: &mut [i32]) {
    out[0] = joined::<i32, _, _>(&[1, 2], |a, b| a + b);
}

/// What rustc finds out by more than the arguments has to be written.
fn numbers_that_nothing_tells(_: &Jit) -> Outcome {
    let text = told_by_the_result
        .get()
        .expect_err("nothing tells it")
        .to_string();
    let told =
        "nothing tells the const parameter `N` of `built`; write it at the call, `built::<..>(..)`";
    assert!(text.contains(told), "{text}");
    let text = told_in_part.get().expect_err("it is not clear").to_string();
    let told = "this call of `joined` has types or numbers, and `_` for a const parameter as `N`; write all numbers, or no list";
    assert!(text.contains(told), "{text}");
    Ok(())
}

#[device_fn]
fn pairs<const N: usize, F: Fn(usize) -> u32>(f: F) -> u32 {
    const { assert!(N % 2 == 0, "these are no pairs") };
    f(N)
}

#[kernel]
fn in_pairs<const N: usize>(out: &mut [u32]) {
    out[0] = pairs::<N, _>(|n| n as u32 / 2) + pairs::<6, _>(|n| 10 * n as u32);
}

#[kernel]
fn in_odd_pairs(out: &mut [u32]) {
    out[0] = pairs::<3, _>(|n| n as u32);
}

fn numbers_that_are_asserted(jit: &Jit) -> Outcome {
    let mut out = jit.zeros::<u32>(1)?;
    in_pairs.launch::<8>(jit, (1, 1), &mut out)?;
    assert_eq!(out.to_vec()?, [64]);
    let odd = [
        in_pairs.launch::<7>(jit, (1, 1), &mut out),
        in_odd_pairs.launch(jit, (1, 1), &mut out),
    ];
    for launched in odd {
        let text = launched.expect_err("it is odd").to_string();
        assert!(text.contains("these are no pairs"), "{text}");
    }
    Ok(())
}

#[kernel]
fn transform<T: Num, const N: usize>(
    m: &[Matrix<T, N, N>],
    x: &[Matrix<T, N, 1>],
    out: &mut [Matrix<T, N, 1>],
) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = m[i % m.len()] * x[i];
    }
}

/// A kernel is one for each number that its arguments have.
fn in_buffers(jit: &Jit) -> Outcome {
    let m = jit.upload(&[Matrix {
        rows: [[1, 2], [3, 4]],
    }])?;
    let x: Vec<_> = (0..5)
        .map(|i| Matrix {
            rows: [[i], [i + 1]],
        })
        .collect();
    let mut out = jit.upload(&x)?;
    transform.launch(jit, (1, 32), &m, &jit.upload(&x)?, &mut out)?;
    let want = |i: i32| Matrix {
        rows: [[3 * i + 2], [7 * i + 4]],
    };
    assert_eq!(out.to_vec()?, (0..5).map(want).collect::<Vec<_>>());
    let m = jit.upload(&[Matrix {
        rows: [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [4.0, 0.0, 0.0]],
    }])?;
    let x = [Matrix {
        rows: [[1.0], [10.0], [100.0]],
    }];
    let mut out = jit.upload(&x)?;
    transform.launch(jit, (1, 32), &m, &jit.upload(&x)?, &mut out)?;
    assert_eq!(
        out.to_vec()?,
        [Matrix {
            rows: [[10.0], [200.0], [4.0]]
        }]
    );
    Ok(())
}

#[kernel]
fn reversed<const N: usize, const EACH: usize>(x: &[u32], out: &mut [u32]) {
    let mut stack = Stack::<u32, N>::new();
    let i = global_id().x * EACH;
    for v in &x[i..i + EACH] {
        stack.push(*v);
    }
    let mut at = i;
    while let Some(v) = stack.pop() {
        out[at] = v;
        at += 1;
    }
}

/// Numbers that no argument has are given at the launch.
fn by_name(jit: &Jit) -> Outcome {
    let x = jit.upload(&[1, 2, 3, 4, 5, 6])?;
    let mut out = jit.zeros(6)?;
    reversed.launch::<4, 3>(jit, (1, 2), &x, &mut out)?;
    assert_eq!(out.to_vec()?, [3, 2, 1, 6, 5, 4]);
    let mut out = jit.zeros(6)?;
    reversed.launch::<2, 3>(jit, (1, 2), &x, &mut out)?;
    assert_eq!(out.to_vec()?, [2, 1, 0, 5, 4, 0]);
    Ok(())
}

#[kernel]
fn exchanged<T: Num, const N: usize>(x: &mut [Stack<T, N>]) {
    let all = shared!([Stack<T, N>; 32]);
    let (i, n) = (thread_idx().x, block_dim().x);
    all[i] = x[i];
    barrier();
    x[i] = all[n - 1 - i];
    x[i].push(T::ONE);
}

fn in_shared_memory(jit: &Jit) -> Outcome {
    let stack = |i: i64| Stack {
        items: [i, 2 * i, 0, 0],
        len: 2,
    };
    let mut x = jit.upload(&[0, 1, 2, 3, 4, 5].map(stack))?;
    exchanged.launch(jit, (1, 6), &mut x)?;
    for (i, got) in x.to_vec()?.into_iter().enumerate() {
        let from = 5 - i as i64;
        assert_eq!((got.items, got.len), ([from, 2 * from, 1, 0], 3));
    }
    Ok(())
}
