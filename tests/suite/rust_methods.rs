//! Methods, associated functions and constants of `impl` blocks with `#[device_fn]`. Each function runs
//! as plain Rust on the host and through the JIT.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    constructors values shared_references changes_of_variables changes_of_parts receivers_in_order
    constants of_enums generic_types by_path chains same_name_as_a_library_method own_parameters
    library_names_that_change_something
    private_methods shadowed_self; in_buffers
}

/// A complex number of integers.
#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
pub struct Gauss {
    re: i32,
    im: i32,
}

#[device_fn]
impl Gauss {
    pub const ZERO: Gauss = Gauss { re: 0, im: 0 };
    pub const I: Self = Self { re: 0, im: 1 };

    /// A number from its parts.
    pub const fn new(re: i32, im: i32) -> Self {
        Self { re, im }
    }

    pub fn norm2(self) -> i32 {
        self.re
            .wrapping_mul(self.re)
            .wrapping_add(self.im.wrapping_mul(self.im))
    }

    pub fn times(&self, other: &Gauss) -> Gauss {
        let re = self.re.wrapping_mul(other.re);
        let re = re.wrapping_sub(self.im.wrapping_mul(other.im));
        let im = self.re.wrapping_mul(other.im);
        Gauss::new(re, im.wrapping_add(self.im.wrapping_mul(other.re)))
    }

    pub fn turn(&mut self) -> i32 {
        *self = self.times(&Self::I);
        self.re
    }

    pub fn scale(&mut self, by: i32) {
        self.re = self.re.wrapping_mul(by);
        self.im = self.im.wrapping_mul(by);
    }

    fn turned(mut self, times: i32) -> Self {
        let mut n = 0;
        while n < times {
            if self.re == 100_000 {
                return self;
            }
            self.turn();
            n += 1;
        }
        self
    }

    fn sum(numbers: &[Gauss]) -> Self {
        let mut sum = Self::ZERO;
        for i in 0..numbers.len() {
            sum.re = sum.re.wrapping_add(numbers[i].re);
            sum.im += numbers[i].norm2() & 3;
        }
        sum
    }

    // A name that numbers have, too.
    fn max(self, other: Gauss) -> Gauss {
        if self.norm2() < other.norm2() {
            other
        } else {
            self
        }
    }

    fn len(&self) -> i32 {
        self.norm2() & 0xff
    }

    // What numbers have under these names changes nothing.
    fn pow(&mut self, by: i32) -> i32 {
        self.scale(by);
        self.re
    }

    fn min(self, least: &mut i32) -> i32 {
        *least += self.re;
        *least
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, KernelType)]
#[repr(u32)]
enum Side {
    Left,
    Right,
}

#[device_fn]
impl Side {
    fn of(x: i32) -> Side {
        match x & 1 {
            0 => Self::Left,
            _ => Self::Right,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Side::Right => Side::Left,
        }
    }

    fn flip(&mut self) {
        *self = self.other();
    }
}

/// A vector of two numbers of any type.
#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
pub struct Pair<T> {
    a: T,
    b: T,
}

#[device_fn]
impl<T: Num> Pair<T> {
    pub const UNIT: Self = Pair {
        a: T::ZERO,
        b: T::ONE,
    };

    pub fn new(a: T, b: T) -> Self {
        Pair { a, b }
    }

    fn unit() -> Self {
        Self::UNIT
    }

    fn dot(self, other: Self) -> T {
        self.a * other.a + self.b * other.b
    }

    fn swap(&mut self) {
        (self.a, self.b) = (self.b, self.a);
    }

    fn of_first<'a>(numbers: &'a [T], other: &'a [T]) -> Self {
        Self::new(numbers[0], other[0])
    }

    fn size() -> i32 {
        2
    }

    fn to<U: Num>(self, zero: U) -> Pair<U> {
        Pair::new(self.a.cast::<U>() + zero, self.b.cast::<U>())
    }
}

// A block for one type only.
#[device_fn]
impl Pair<i32> {
    fn spread(self) -> i32 {
        self.b.wrapping_sub(self.a)
    }
}

#[device_fn]
impl Pair<Gauss> {
    fn norms(self) -> Pair<i32> {
        Pair {
            a: self.a.norm2(),
            b: self.b.norm2(),
        }
    }
}

#[device_fn]
fn constructors(x: i32) -> i32 {
    let z = Gauss::new(x & 15, 3);
    let w = self::Gauss::new(1, z.re);
    z.re + w.im * 100
}

#[device_fn]
fn values(x: i32) -> i32 {
    let z = Gauss { re: x & 31, im: 2 };
    let z = z.turned(3);
    z.norm2() + Gauss::new(z.im, 1).norm2() * 1000 + Gauss::new(100_000, x & 3).turned(9).im
}

#[device_fn]
fn shared_references(x: i32) -> i32 {
    let z = Gauss::new(x & 7, 5);
    let r = &z;
    let w = r.times(&Gauss::I).times(r);
    let zs = [z, w, Gauss::ZERO];
    zs[1].times(&zs[0]).re + zs[((x & 1) + 1) as usize].norm2()
}

#[device_fn]
fn changes_of_variables(x: i32) -> i32 {
    let mut z = Gauss::new(x & 15, 1);
    z.scale(3);
    let first = z.turn();
    {
        let r = &mut z;
        r.scale(2);
    }
    for i in 0..(x & 3) {
        z.scale(i + 1);
        if z.turn() > 1000 {
            break;
        }
    }
    // What has no name is changed and forgotten.
    Gauss::new(1, 1).scale(7);
    let late;
    if x & 4 == 0 {
        late = Gauss::new(1, 2);
    } else {
        late = z;
    }
    first + z.re * 10 + z.im * 1000 + late.norm2()
}

#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Body {
    at: Gauss,
    parts: [Gauss; 3],
    side: Side,
}

#[device_fn]
impl Body {
    fn advance(&mut self) -> i32 {
        self.at.scale(2);
        self.parts[1].turn();
        self.side.flip();
        for i in 0..self.parts.len() {
            self.parts[i].scale(i as i32 + 1);
        }
        self.at.re
    }
}

#[device_fn]
fn changes_of_parts(x: i32) -> i32 {
    let start = Gauss::new(x & 15, 2);
    let mut body = Body {
        at: start,
        parts: [start; 3],
        side: Side::of(x),
    };
    body.parts[(x & 1) as usize].scale(5);
    body.at.turn();
    let re = body.advance() + body.advance();
    let mut bodies = [body, body];
    bodies[1].parts[2].scale(-1);
    bodies[(x & 1) as usize].side.flip();
    let mut sum = re;
    for i in 0..2 {
        let b = bodies[i];
        sum += b.at.norm2() + Gauss::sum(&b.parts).re * 3 + (b.side as i32) * 100;
        sum += b.parts[2].im;
    }
    sum
}

#[device_fn]
fn receivers_in_order(x: i32) -> i32 {
    let mut z = Gauss::new(x & 7, 3);
    // The receiver is read before the argument changes it, and the left side before the right one.
    let a = z.max({
        z.scale(4);
        Gauss::ZERO
    });
    let b = z.re + z.turn() + z.re * 100;
    let c = z.turn() * 3 + z.re;
    a.re + b + c * 7
}

#[device_fn]
fn constants(x: i32) -> i32 {
    let mut z = Gauss::ZERO;
    if x > 3 {
        z = Gauss::I;
    }
    let u = Pair::UNIT;
    let f: Pair<f32> = Pair::UNIT;
    let n = Pair::<i64>::UNIT.b + 3;
    z.im + u.dot(Pair::new(x & 7, 5)) * 10 + (f.a + 2.0 * f.b) as i32 + n as i32
}

#[device_fn]
fn of_enums(x: i32) -> i32 {
    let mut side = Side::of(x);
    if x > 10 {
        side.flip();
    }
    let same = side == Side::of(x).other();
    side as i32 * 10 + same as i32 + (side.other() == Side::Left) as i32 * 100
}

#[device_fn]
fn dots<T: Num>(x: T) -> T {
    let mut p = Pair::new(x, T::ONE);
    p.swap();
    let u = Pair::unit();
    p.dot(u) + p.dot(Pair::UNIT) * Pair::<T>::new(x, x).a + u.b
}

#[device_fn]
fn generic_types(x: i32) -> i32 {
    let small = x & 15;
    let a = dots(small) + dots(small as u8) as i32 + dots(small as f32) as i32;
    let p = Pair::new(small, 7);
    a + p.spread() + p.to(0.5f32).b as i32 + p.to(1u8).a as i32 + Pair::<f64>::size()
}

#[device_fn]
fn by_path(x: i32) -> i32 {
    let mut z = Gauss::new(x & 7, 1);
    Gauss::scale(&mut z, 3);
    Gauss::scale(&mut z, 2);
    let w = Gauss::times(&z, &Gauss::I);
    let mut p = Pair::new(1u64, 9);
    Pair::swap(&mut p);
    let first = Pair::of_first(&[4i32, 5], &[6]);
    Gauss::norm2(z) + w.im + Pair::dot(p, Pair::unit()) as i32 + first.a * 10 + first.b
}

#[device_fn]
fn chains(x: i32) -> i32 {
    let z = Gauss::new(x & 3, 1);
    let n = z.times(&z).times(&Gauss::I).turned(2).max(z).norm2();
    let pairs = Pair {
        a: z,
        b: z.turned(1),
    }
    .norms();
    n + [z, z.turned(3)][1].turned(1).re + pairs.spread() + pairs.to(0i64).b as i32
}

#[device_fn]
fn same_name_as_a_library_method(x: i32) -> i32 {
    let z = Gauss::new(x & 7, 2);
    let numbers = [1, 2, 3];
    z.max(Gauss::I).re + (x & 3).max(2) * 100 + z.len() + numbers.len() as i32
}

#[device_fn]
fn library_names_that_change_something(x: i32) -> i32 {
    let mut z = Gauss::new(x & 7, 3);
    let left = z.re + z.pow(2) + z.re * 100;
    let listed = [z.re, z.pow(3), z.re];
    let kept = z.max({
        z.pow(2);
        Gauss::ZERO
    });
    // Nothing else asks for this to be in memory.
    let mut body = Body {
        at: z,
        parts: [z; 3],
        side: Side::Left,
    };
    let part = body.at.pow(-1);
    let mut least = x & 3;
    let least = least + z.min(&mut least) * 10 + least * 100;
    let sums = left + listed[0] + listed[1] * 7 + listed[2] * 11 + kept.re;
    sums + part * 13 + body.at.im + least
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Table {
    numbers: [i32; 4],
}

#[device_fn]
impl Table {
    const LEN: usize = 4;

    fn filled<T: Num>(with: T) -> Self {
        let mut numbers = [0; Self::LEN];
        for i in 0..Self::LEN {
            numbers[i] = with.cast::<i32>() * i as i32;
        }
        Self { numbers }
    }

    fn add_all<const N: usize>(&mut self, other: [i32; N]) -> i32 {
        let mut sum = 0;
        for i in 0..N {
            self.numbers[i % Table::LEN] += other[i];
            sum += other[i];
        }
        sum
    }

    fn get(&self, i: usize) -> i32 {
        self.numbers[i & 3]
    }
}

#[device_fn]
fn own_parameters(x: i32) -> i32 {
    let mut table = Table::filled(x & 7);
    let sum = table.add_all([1, 2, 3, 4, 5]) + table.add_all([7]);
    sum + table.get(0) + table.get(3) * 10 + Table::filled(2.5f32).get(2)
}

mod inside {
    use kiln::prelude::*;

    #[derive(Copy, Clone, KernelType)]
    #[repr(C)]
    pub struct Hidden {
        pub x: i32,
    }

    #[device_fn]
    impl Hidden {
        fn secret(self) -> i32 {
            self.x * 2
        }

        pub fn open(&self) -> i32 {
            self.secret() + 1
        }
    }
}

#[device_fn]
fn private_methods(x: i32) -> i32 {
    inside::Hidden { x: x & 255 }.open()
}

#[device_fn]
impl Side {
    fn shadowed(self, x: i32) -> i32 {
        let side = self;
        let add = |n: i32| n + self as i32;
        add(x & 7) * 10 + side as i32
    }
}

#[device_fn]
fn shadowed_self(x: i32) -> i32 {
    Side::of(x).shadowed(x)
}

#[kernel]
fn advance_all(bodies: &mut [Body], pairs: &mut [Pair<f32>], sums: &mut [i32]) {
    let i = global_id().x;
    let tile = shared!([Gauss; 32]);
    let t = thread_idx().x;
    tile[t] = Gauss::ZERO;
    if i < bodies.len() {
        bodies[i].advance();
        bodies[i].parts[0].turn();
        pairs[i].swap();
        tile[t] = bodies[i].at;
        tile[t].scale(2);
    }
    barrier();
    if t == 0 {
        sums[block_idx().x] = Gauss::sum(&*tile).re;
    }
}

fn in_buffers(jit: &Jit) -> Outcome {
    let body = |i: i32| Body {
        at: Gauss::new(i, i + 1),
        parts: [Gauss::new(1, i); 3],
        side: Side::of(i),
    };
    let mut want: Vec<Body> = (0..70).map(body).collect();
    let mut want_pairs: Vec<_> = (0..70).map(|i| Pair::new(i as f32, 0.5)).collect();
    let mut bodies = jit.upload(&want)?;
    let mut pairs = jit.upload(&want_pairs)?;
    let mut sums = jit.zeros::<i32>(3)?;
    advance_all.launch(jit, (3, 32), &mut bodies, &mut pairs, &mut sums)?;
    for body in &mut want {
        body.advance();
        body.parts[0].turn();
    }
    want_pairs.iter_mut().for_each(Pair::swap);
    let doubled = |block: &[Body]| block.iter().map(|body| body.at.re * 2).sum();
    let want_sums: Vec<i32> = want.chunks(32).map(doubled).collect();
    assert_eq!(bodies.to_vec()?, want);
    assert_eq!(pairs.to_vec()?, want_pairs);
    assert_eq!(sums.to_vec()?, want_sums);
    Ok(())
}
