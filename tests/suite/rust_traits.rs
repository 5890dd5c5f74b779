//! Type parameters with traits of the user's as their bounds: each function runs as plain Rust on the host and through
//! the JIT.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use std::fmt::Debug;

use kiln::prelude::*;

use super::rust_language::on_host_and_device;

on_host_and_device! {
    called_with_each_type constants associated_functions through_references over_slices in_one_another with_numbers by_paths
    two_traits in_where_clauses in_blocks types_that_are_written changed results_of_the_type of_generic_types structs_by_parts
    the_same_names lengths numbers_and_lengths lengths_that_are_written impl_traits impl_traits_of_methods
    bodies_of_traits supertraits bodies_that_are_replaced bodies_of_other_modules bodies_of_generic_types
    ; kernels_for_each_type
}

trait Shape: Copy {
    const SIDES: i32;
    fn unit() -> Self;
    fn sized(size: i32) -> Self;
    fn area(&self) -> i32;
    fn grown(self, by: i32) -> Self;
    fn shift(&mut self, by: i32);
}

trait Named {
    const NUMBER: u32;
    fn number(self) -> u32;
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Circle {
    radius: i32,
    x: i32,
}

#[device_fn]
impl Shape for Circle {
    const SIDES: i32 = 0;
    fn unit() -> Self {
        Self { radius: 1, x: 0 }
    }
    fn sized(size: i32) -> Self {
        Circle { radius: size, x: 1 }
    }
    fn area(&self) -> i32 {
        self.radius.wrapping_mul(self.radius).wrapping_mul(3)
    }
    fn grown(self, by: i32) -> Self {
        Circle {
            radius: self.radius.wrapping_add(by),
            ..self
        }
    }
    fn shift(&mut self, by: i32) {
        self.x ^= by;
        self.radius = self.radius.wrapping_add(self.x);
    }
}

#[device_fn]
impl Named for Circle {
    const NUMBER: u32 = 7;
    fn number(self) -> u32 {
        Self::NUMBER + self.x as u32
    }
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Square {
    side: i32,
}

#[device_fn]
impl Shape for Square {
    const SIDES: i32 = 4;
    fn unit() -> Self {
        Square { side: 1 }
    }
    fn sized(size: i32) -> Self {
        Square { side: size }
    }
    fn area(&self) -> i32 {
        self.side.wrapping_mul(self.side)
    }
    fn grown(self, by: i32) -> Self {
        Square {
            side: self.side ^ by,
        }
    }
    fn shift(&mut self, by: i32) {
        self.side -= by & 15;
    }
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(u32)]
enum Kind {
    One = 1,
    Nine = 9,
}

#[device_fn]
impl Named for Kind {
    const NUMBER: u32 = 3;
    fn number(self) -> u32 {
        self as u32 * 5
    }
}

#[device_fn]
fn area_of<T: Shape>(shape: T) -> i32 {
    shape.area()
}

#[device_fn]
fn called_with_each_type(x: i32) -> i32 {
    let (circle, square) = (Circle { radius: x & 255, x }, Square { side: x & 63 });
    let first = area_of(circle) ^ area_of(square).wrapping_mul(7);
    first.wrapping_add(area_of(circle)) ^ area_of::<Square>(square)
}

#[device_fn]
fn sides<T: Shape>(count: i32, shape: &T) -> i32 {
    T::SIDES * count + shape.area()
}

#[device_fn]
fn constants(x: i32) -> i32 {
    sides(x & 3, &Circle { radius: 2, x }) * 100 + sides(x & 7, &Square { side: 3 })
}

#[device_fn]
fn of_size<T: Shape>(size: i32) -> T {
    let unit = T::unit();
    T::sized(size & 31).grown(unit.area())
}

#[device_fn]
fn associated_functions(x: i32) -> i32 {
    let circle: Circle = of_size(x);
    let square = of_size::<Square>(x >> 2);
    circle.radius * 1000 + circle.x * 100 + square.side
}

#[device_fn]
fn grow<T: Shape>(shape: &mut T, by: i32) -> i32 {
    shape.shift(by);
    *shape = shape.grown(1);
    let kept = &*shape;
    kept.area() - by
}

#[device_fn]
fn through_references(x: i32) -> i32 {
    let mut circle = Circle {
        radius: x & 15,
        x: 3,
    };
    let mut square = Square { side: x & 31 };
    let sum = grow(&mut circle, x & 3) + grow(&mut square, x & 5);
    sum * 10 + circle.x + square.side
}

#[device_fn]
fn total<T: Shape>(shapes: &[T]) -> i32 {
    let mut sum = 0;
    for shape in shapes {
        sum += shape.area();
    }
    sum ^ shapes
        .iter()
        .map(|s| s.grown(2).area())
        .max()
        .unwrap_or(T::SIDES)
}

#[device_fn]
fn over_slices(x: i32) -> i32 {
    let circles = [Circle::sized(x & 3), Circle::unit(), Circle::sized(4)];
    let squares = [Square::sized(x & 7), Square::unit()];
    total(&circles) + total(&squares[..(x & 1) as usize]) * 3
}

#[device_fn]
fn twice<T: Shape>(shape: T) -> i32 {
    area_of(shape).wrapping_add(sides(2, &of_size::<T>(area_of(shape))))
}

#[device_fn]
fn in_one_another(x: i32) -> i32 {
    twice(Circle { radius: x & 31, x }) ^ twice(Square { side: x & 127 })
}

#[device_fn]
fn scaled<T: Shape, U: Float>(shape: T, by: U, n: i32) -> U {
    U::from_i32(shape.area()) * by + U::from_i32(n)
}

#[device_fn]
fn with_numbers(x: i32) -> i32 {
    let a = scaled(Circle { radius: x & 7, x }, 0.5f32, x & 3);
    let b = scaled::<Square, f64>(Square { side: x & 7 }, 0.25, 1);
    (a * 4.0) as i32 * 1000 + (b * 4.0) as i32
}

#[device_fn]
fn called_by_path<T: Shape>(shape: T) -> i32 {
    let mut other = T::grown(shape, 3);
    T::shift(&mut other, 2);
    T::area(&other)
}

#[device_fn]
fn by_paths(x: i32) -> i32 {
    called_by_path(Circle {
        radius: x & 15,
        x: 1,
    }) ^ called_by_path(Square { side: x & 15 })
}

#[device_fn]
fn numbered<T: Shape + Named>(shape: T) -> u32 {
    shape.number() * T::NUMBER + shape.area() as u32
}

#[device_fn]
fn two_traits(x: i32) -> i32 {
    numbered(Circle {
        radius: x & 7,
        x: x & 3,
    }) as i32
}

#[device_fn]
fn both<A, B>(a: A, b: B) -> u32
where
    A: Named + Debug,
    B: Named + Copy + PartialEq,
{
    let same = b == b;
    a.number() * 100 + b.number() + A::NUMBER * 10000 + u32::from(same)
}

#[device_fn]
fn in_where_clauses(x: i32) -> i32 {
    let kind = if x & 1 == 1 { Kind::One } else { Kind::Nine };
    both(
        kind,
        Circle {
            radius: 1,
            x: x & 7,
        },
    ) as i32
        ^ both(kind, kind) as i32
}

#[derive(Copy, Clone, Debug, KernelType)]
#[repr(C)]
struct Two<T> {
    first: T,
    second: T,
}

#[device_fn]
impl<T: Shape> Two<T> {
    fn of(first: T) -> Self {
        Two {
            first,
            second: T::unit(),
        }
    }
    fn areas(&self) -> i32 {
        self.first.area() * 10 + self.second.area()
    }
    fn swapped(self, by: i32) -> Two<T> {
        Two {
            first: self.second.grown(by),
            second: self.first,
        }
    }
}

#[device_fn]
fn in_blocks(x: i32) -> i32 {
    let circles = Two::of(Circle { radius: x & 7, x });
    let squares = Two::of(Square { side: x & 7 });
    circles.areas() * 1000 + squares.swapped(x & 3).areas()
}

#[device_fn]
fn number_of<T: Named>() -> u32 {
    T::NUMBER
}

#[device_fn]
fn types_that_are_written(x: i32) -> i32 {
    number_of::<Kind>() as i32 * 10 + number_of::<Circle>() as i32 + (x & 1)
}

#[device_fn]
fn moved<T: Shape>(shapes: &mut [T], by: i32) {
    for shape in shapes.iter_mut() {
        shape.shift(by);
    }
    if let Some(first) = shapes.first_mut() {
        *first = T::sized(by).grown(1);
    }
}

#[device_fn]
fn changed(x: i32) -> i32 {
    let mut circles = [Circle::sized(x & 7), Circle::sized(2)];
    let mut squares = [Square::sized(x & 7), Square::sized(2)];
    moved(&mut circles, x & 3);
    moved(&mut squares[1..], x & 3);
    circles[0].radius * 1000 + circles[1].x * 100 + squares[0].side * 10 + squares[1].side
}

#[device_fn]
fn larger<T: Shape>(a: T, b: T) -> Option<T> {
    if a.area() == b.area() {
        return None;
    }
    Some(if a.area() > b.area() { a } else { b })
}

#[device_fn]
fn results_of_the_type(x: i32) -> i32 {
    let circle = larger(Circle::sized(x & 7), Circle::sized(3)).map_or(-1, |c| c.radius);
    let square = larger(Square::sized(x & 7), Square::sized(5)).unwrap_or(Square { side: -2 });
    circle * 100 + square.side
}

#[device_fn]
impl<T: Num + Copy> Named for Two<T> {
    const NUMBER: u32 = 50;
    fn number(self) -> u32 {
        (self.first + self.second).cast::<u32>()
    }
}

#[device_fn]
fn of_generic_types(x: i32) -> i32 {
    let ints = Two {
        first: x & 7,
        second: 2,
    };
    let floats = Two {
        first: 1.5f32,
        second: (x & 3) as f32,
    };
    (both(ints, Kind::One) ^ both(floats, Circle::unit())) as i32
}

#[device_fn]
fn structs_by_parts(x: i32) -> i32 {
    let Two { first, second } = Two::of(Square { side: x & 7 }).swapped(1);
    area_of(first) * 100 + area_of(second)
}

mod other {
    use kiln::prelude::*;

    pub trait Sided {
        fn area(&self) -> i32;
    }

    #[device_fn]
    impl Sided for super::Kind {
        fn area(&self) -> i32 {
            *self as i32 + 40
        }
    }

    #[device_fn]
    pub fn area_of<T: Sided>(shape: T) -> i32 {
        shape.area()
    }
}

#[device_fn]
fn the_same_names(x: i32) -> i32 {
    let kind = if x & 1 == 1 { Kind::One } else { Kind::Nine };
    other::area_of(kind) * 100 + area_of(Square { side: x & 7 })
}

#[device_fn]
fn total_of<T: Shape, const N: usize>(shapes: [T; N]) -> i32 {
    let mut sum = N as i32;
    for shape in shapes {
        sum = sum.wrapping_mul(3).wrapping_add(shape.area());
    }
    sum
}

#[device_fn]
fn lengths(x: i32) -> i32 {
    let circles = [Circle::sized(x & 3), Circle::unit(), Circle::sized(4)];
    total_of(circles) ^ total_of([Square::sized(x & 7)]) ^ total_of([Square::unit(); 5])
}

#[device_fn]
fn repeated<const N: usize, T: Shape, U: Num>(shape: &T, by: U) -> U {
    let mut sum = U::ZERO;
    for _ in 0..N {
        sum += by * U::from_i32(shape.area() & 15);
    }
    sum
}

#[device_fn]
fn numbers_and_lengths(x: i32) -> i32 {
    let a = repeated::<3, Circle, f32>(&Circle::sized(x & 3), 0.5);
    let b = repeated::<{ 2 + 2 }, Square, i32>(&Square::sized(x & 7), 2);
    (a * 2.0) as i32 * 100 + b
}

#[device_fn]
fn sides_times<T: Shape, const N: i32>() -> i32 {
    T::SIDES * N + N
}

#[device_fn]
fn lengths_that_are_written(x: i32) -> i32 {
    sides_times::<Square, 5>() + sides_times::<Circle, 3>() * (x & 3)
}

#[device_fn]
fn area_times(shape: &impl Shape, by: impl Float) -> i32 {
    (by.cast::<f32>() * shape.area() as f32) as i32
}

#[device_fn]
fn mapped(x: &[i32], f: impl Fn(i32) -> i32) -> i32 {
    let mut sum = 0;
    for &v in x {
        sum += f(v);
    }
    sum
}

#[device_fn]
fn impl_traits(x: i32) -> i32 {
    let a = area_times(&Circle::sized(x & 7), 0.5f32) + area_times(&Square::sized(3), 2.0f64);
    a * 10 + mapped(&[x & 3, 4], |v| v * 2)
}

#[device_fn]
impl Square {
    fn times(self, by: impl Num) -> i32 {
        self.side * by.cast::<i32>()
    }
}

#[device_fn]
fn impl_traits_of_methods(x: i32) -> i32 {
    Square { side: x & 15 }.times(3u8) + Square::times(Square { side: 1 }, 2.5f32)
}

/// A kernel with a trait of the user's as a bound, beside other parameters.
#[kernel]
fn measured<S: Shape, T: Num, const N: usize>(shapes: &[S], by: [T; N], first: S, out: &mut [T]) {
    let i = global_id().x;
    if i < out.len() {
        let mut grown = shapes[i].grown(1);
        grown.shift(2);
        let area = shapes[i].area() + S::unit().area() * 100 + grown.area() + first.area();
        out[i] = T::from_i32(area + S::SIDES) * by[i % N];
    }
}

#[kernel]
fn shifted(shapes: &mut [impl Shape], by: i32) {
    let i = global_id().x;
    if i < shapes.len() {
        shapes[i].shift(by);
    }
}

fn want<S: Shape>(shapes: &[S], by: &[i32], first: S) -> Vec<i32> {
    let area = |i: usize| {
        let mut grown = shapes[i].grown(1);
        grown.shift(2);
        let area = shapes[i].area() + S::unit().area() * 100 + grown.area() + first.area();
        (area + S::SIDES) * by[i % by.len()]
    };
    (0..shapes.len()).map(area).collect()
}

fn kernels_for_each_type(jit: &Jit) -> super::Outcome {
    let circles: Vec<Circle> = (0..9).map(Circle::sized).collect();
    let squares: Vec<Square> = (0..5).map(Square::sized).collect();
    let (x, y) = (jit.upload(&circles)?, jit.upload(&squares)?);
    let (mut of_circles, mut of_squares) = (jit.zeros::<i32>(9)?, jit.zeros::<f64>(5)?);
    measured.launch(jit, (1, 32), &x, [2, 3], circles[3], &mut of_circles)?;
    measured.launch(
        jit,
        (1, 32),
        &y,
        [1.0, 4.0, 0.5],
        squares[2],
        &mut of_squares,
    )?;
    assert_eq!(of_circles.to_vec()?, want(&circles, &[2, 3], circles[3]));
    let halves = want(&squares, &[2, 8, 1], squares[2]);
    let halves: Vec<f64> = halves.into_iter().map(|n| f64::from(n) / 2.0).collect();
    assert_eq!(of_squares.to_vec()?, halves);

    let mut squares = jit.upload(&squares)?;
    shifted.launch(jit, (1, 32), &mut squares, 3)?;
    jit.launch(shifted.of::<Square>(), 1, 32, args!(&mut squares, 5))?;
    assert_eq!(squares.to_vec()?[4], Square { side: 4 - 3 - 5 });
    Ok(())
}

/// A trait with bodies, over one with functions alone.
#[device_fn]
trait Solid: Shape {
    const LAYERS: i32;
    fn height(&self) -> i32;
    fn volume(&self) -> i32 {
        self.area().wrapping_mul(self.height())
    }
    fn layered(&self, by: i32) -> i32 {
        let mut sum = 0;
        for i in 0..Self::LAYERS {
            sum += self.volume() ^ i * by;
        }
        sum + Self::SIDES
    }
    fn grow_by(&mut self, by: impl Num) {
        self.shift(by.cast::<i32>());
        *self = self.grown(1);
    }
    fn cube(size: i32) -> Self {
        Self::sized(size)
    }
}

/// One more level, whose bodies call those of all below.
#[device_fn]
trait Heavy: Solid + Named {
    fn weight(&self) -> i32 {
        self.volume() * 2 + self.area() + self.number() as i32
    }
}

#[device_fn]
impl Solid for Circle {
    const LAYERS: i32 = 2;
    fn height(&self) -> i32 {
        self.x & 3
    }
}

#[device_fn]
impl Solid for Square {
    const LAYERS: i32 = 3;
    fn height(&self) -> i32 {
        5
    }
    fn volume(&self) -> i32 {
        self.side
    }
    fn cube(size: i32) -> Self {
        Square { side: size + 1 }
    }
}

#[device_fn]
impl Heavy for Circle {}

#[device_fn]
fn volumes<S: Solid>(shape: &S) -> i32 {
    shape.volume() * 10 + shape.layered(3) + S::volume(shape)
}

#[device_fn]
fn bodies_of_traits(x: i32) -> i32 {
    volumes(&Circle {
        radius: x & 7,
        x: 3,
    }) + volumes(&Square { side: x & 15 })
}

#[device_fn]
fn twice_the_area<S: Solid>(mut shape: S) -> i32 {
    shape.grow_by(2u8);
    shape.area() * 2 + S::unit().area() + S::SIDES
}

#[device_fn]
fn supertraits(x: i32) -> i32 {
    let heavy = weighed(&Circle {
        radius: x & 7,
        x: 2,
    });
    heavy * 100 + twice_the_area(Circle { radius: x & 3, x }) + twice_the_area(Square { side: 3 })
}

#[device_fn]
fn weighed<H: Heavy>(heavy: &H) -> i32 {
    heavy.weight() + heavy.height() + heavy.layered(1) + H::NUMBER as i32
}

#[device_fn]
fn cube_of<S: Solid>(size: i32) -> i32 {
    S::cube(size).area()
}

#[device_fn]
fn bodies_that_are_replaced(x: i32) -> i32 {
    cube_of::<Circle>(x & 3) * 100 + cube_of::<Square>(x & 3)
}

mod bodies {
    use kiln::prelude::*;

    #[device_fn]
    pub trait Counted {
        fn count(&self) -> u32;
        fn doubled(&self) -> u32 {
            self.count() * 2
        }
    }
}

#[device_fn]
impl bodies::Counted for Kind {
    fn count(&self) -> u32 {
        *self as u32
    }
}

#[device_fn]
fn counted<C: bodies::Counted>(c: C) -> u32 {
    c.doubled() + c.count()
}

#[device_fn]
fn bodies_of_other_modules(x: i32) -> i32 {
    let kind = if x & 1 == 1 { Kind::One } else { Kind::Nine };
    counted(kind) as i32
}

#[device_fn]
impl<T: Num> bodies::Counted for Two<T> {
    fn count(&self) -> u32 {
        self.second.cast::<u32>()
    }
}

#[device_fn]
fn bodies_of_generic_types(x: i32) -> i32 {
    let (a, b) = (
        Two {
            first: 1,
            second: x & 7,
        },
        Two {
            first: 1.0f32,
            second: 2.0,
        },
    );
    (counted(a) * 100 + counted(b)) as i32
}
