//! A `#[kernel]` function as a value: launched, inspected, given const arguments, redefined; and what
//! it says when something is wrong.

use kiln::prelude::*;

use super::{devices, exact};

#[kernel]
fn scale<T: Float>(x: &mut [T], by: T) {
    let i = global_id().x;
    if i < x.len() {
        x[i] *= by;
    }
}

#[kernel]
fn scale_twice<T: Float>(x: &mut [T], by: T) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = x[i] * by * by;
    }
}

#[test]
fn generic_kernels_are_specialized_at_launch() -> kiln::Result<()> {
    for device in devices() {
        let jit = exact(device);
        let mut single = jit.upload(&[1.0f32, 2.0, 3.0])?;
        let mut double = jit.upload(&[1.0f64, 2.0, 3.0])?;
        let mut half = jit.upload(&[half::f16::ONE; 3])?;
        jit.launch(&scale, 1, 32, args!(&mut single, 2.0f32))?;
        jit.launch(&scale, 1, 32, args!(&mut double, 3.0f64))?;
        jit.launch(&scale, 1, 32, args!(&mut half, half::f16::from_f32(0.5)))?;
        assert_eq!(single.to_vec()?, [2.0, 4.0, 6.0]);
        assert_eq!(double.to_vec()?, [3.0, 6.0, 9.0]);
        assert_eq!(half.to_vec()?, [half::f16::from_f32(0.5); 3]);
        assert_eq!(jit.cache_stats().compiles, 3);
    }
    Ok(())
}

#[kernel]
fn fir<const N: usize, const BIAS: i32>(x: &[i32], taps: [i32; N], out: &mut [i32]) {
    let i = global_id().x;
    if i + N <= x.len() {
        let mut sum = BIAS;
        for k in 0..N {
            sum += x[i + k] * taps[k];
        }
        out[i] = sum;
    }
}

#[kernel]
fn window<const N: usize>(x: &[i32], out: &mut [i32]) {
    let tile = shared!([i32; N]);
    let i = thread_idx().x;
    if i < N {
        tile[i] = x[i];
    }
    barrier();
    let mut sum = 0;
    for k in 0..tile.len() {
        sum += tile[k];
    }
    out[i] = sum + N as i32 * 1000;
}

#[test]
fn const_parameters() -> kiln::Result<()> {
    for device in devices() {
        let jit = exact(device);
        let x = jit.upload(&(0..10).collect::<Vec<i32>>())?;
        let mut out = jit.zeros::<i32>(10)?;
        let kernel = fir.with_const("BIAS", 100)?;
        jit.launch(&kernel, 1, 16, args!(&x, [1i32, 2, 3], &mut out))?;
        let want = (0..8).map(|i| 100 + i + (i + 1) * 2 + (i + 2) * 3);
        assert_eq!(out.to_vec()?[..8], want.collect::<Vec<i32>>());

        let mut out = jit.zeros::<i32>(4)?;
        jit.launch(&window.with_const("N", 3)?, 1, 4, args!(&x, &mut out))?;
        assert_eq!(out.to_vec()?, [3003; 4]);
    }
    Ok(())
}

#[test]
fn typed_launches() -> kiln::Result<()> {
    for device in devices() {
        let jit = exact(device);
        let mut single = jit.upload(&[1.0f32, 2.0, 3.0])?;
        let mut double = jit.upload(&[1.0f64, 2.0, 3.0])?;
        scale.launch(&jit, (1, 32), &mut single, 2.0)?;
        scale.launch(&jit, LaunchConfig::new(1, 32), &mut double, 3.0)?;
        assert_eq!(single.to_vec()?, [2.0, 4.0, 6.0]);
        assert_eq!(double.to_vec()?, [3.0, 6.0, 9.0]);

        let x = jit.upload(&(0..10).collect::<Vec<i32>>())?;
        let mut out = jit.zeros::<i32>(4)?;
        // `N` follows from the array, `BIAS` from nothing.
        fir.launch::<2, 100>(&jit, (1, 4), &x, [10, 1], &mut out)?;
        assert_eq!(out.to_vec()?, [101, 112, 123, 134]);
        window.launch::<3>(&jit, (1, 4), &x, &mut out)?;
        assert_eq!(out.to_vec()?, [3003; 4]);

        let indices = jit.upload(&[3u32, 0, 7])?;
        let mut out = jit.zeros::<i32>(3)?;
        gather.launch(&jit, ((1, 1), (1, 3)), &x, &indices, 2, &mut out)?;
        assert_eq!(out.to_vec()?, [5, 2, 9]);
    }
    Ok(())
}

/// The attribute is found by its path as in the prelude.
#[kiln::kernel]
fn by_path(out: &mut [u32]) {
    out[0] = 7;
}

#[test]
fn the_attribute_has_a_path() -> kiln::Result<()> {
    let jit = exact(Device::cpu());
    let mut out = jit.zeros::<u32>(1)?;
    by_path.launch(&jit, (1usize, 1), &mut out)?;
    assert_eq!(out.to_vec()?, [7]);
    Ok(())
}

/// Indices on the host are `u32`, as in kernels.
#[kernel]
fn gather(x: &[i32], indices: &[usize], offset: usize, out: &mut [i32]) {
    let i = thread_idx().y;
    out[i] = x[indices[i]] + offset as i32;
}

/// An item in a block has the name of a const parameter there.
#[kernel]
fn hidden<const N: usize>(out: &mut [u32]) {
    out[0] = N as u32;
    {
        const N: u32 = 7;
        out[1] = N;
    }
    out[2] = N as u32;
}

#[test]
fn items_hide_const_parameters() -> kiln::Result<()> {
    let jit = exact(Device::cpu());
    let mut out = jit.zeros::<u32>(3)?;
    hidden.launch::<4>(&jit, (1, 1), &mut out)?;
    assert_eq!(out.to_vec()?, [4, 7, 4]);
    Ok(())
}

/// A kernel of which some tokens are the macro's and some are from where it is used. `y` of the one is
/// not `y` of the other.
macro_rules! elementwise {
    ($name:ident, $x:ident => $value:expr) => {
        #[kernel]
        fn $name(x: &mut [i32]) {
            let i = global_id().x;
            if i < x.len() {
                let $x = x[i];
                let y = 1;
                x[i] = $value + y;
            }
        }
    };
}
elementwise!(squares, v => {
    let y = v;
    let times = |x| x * v;
    times(y)
});
elementwise!(doubles, y => 2 * y);

#[test]
fn kernels_from_macros() -> kiln::Result<()> {
    let jit = exact(Device::cpu());
    let mut x = jit.upload(&[1i32, 2, 3])?;
    squares.launch(&jit, (1, 32), &mut x)?;
    assert_eq!(x.to_vec()?, [2, 5, 10]);
    doubles.launch(&jit, (1, 32), &mut x)?;
    assert_eq!(x.to_vec()?, [5, 11, 21]);
    Ok(())
}

#[test]
fn kernels_as_expressions() -> kiln::Result<()> {
    let jit = exact(Device::cpu());
    let mut x = jit.upload(&[1i32, 2, 3])?;
    let twice = kiln::kernel_expr!(twice(x: &mut [i32]) {
        let i = global_id().x;
        if i < x.len() {
            x[i] *= 2;
        }
    });
    jit.launch(twice, 1, 32, args!(&mut x))?;
    twice.launch(&jit, (1, 32), &mut x)?;
    assert_eq!(x.to_vec()?, [4, 8, 12]);
    let add = kiln::kernel_expr!(add<T: Num, const N: usize>(x: &mut [T], by: [T; N]) {
        for k in 0..N {
            x[k] += by[k];
        }
    });
    jit.launch(add, 1, 1, args!(&mut x, [10i32, 20]))?;
    assert_eq!(x.to_vec()?, [14, 28, 12]);
    assert_eq!(add.name(), "add");
    Ok(())
}

#[test]
fn redefinition() -> kiln::Result<()> {
    #[kernel]
    fn changing<T: Float>(x: &mut [T], by: T) {
        x[0] += by;
    }
    let jit = exact(Device::cpu());
    let mut x = jit.upload(&[5.0f32])?;
    jit.launch(&changing, 1, 1, args!(&mut x, 3.0f32))?;
    assert_eq!(x.to_vec()?, [8.0]);
    changing.redefine(&scale_twice)?;
    jit.launch(&changing, 1, 1, args!(&mut x, 3.0f32))?;
    assert_eq!(x.to_vec()?, [72.0]);
    Ok(())
}

#[test]
fn inspection_shows_each_stage() -> kiln::Result<()> {
    let jit = exact(Device::cpu());
    let mut x = jit.upload(&[1.0f32])?;
    let inspection = jit.inspect(&scale, args!(&mut x, 2.0f32))?;
    assert!(inspection.ir().contains("kernel @scale"));
    assert_eq!(scale.name(), "scale");
    Ok(())
}

#[kernel]
fn reads_beyond(x: &[f32], out: &mut [f32]) {
    let i = thread_idx().x;
    let first = 1.0;
    out[i] = first + x[i + 2];
}

/// The line of this file with these words.
fn line_of(words: &str) -> usize {
    let text = include_str!("values.rs");
    let found = text.lines().position(|line| line.contains(words));
    found.expect("the words are in this file") + 1
}

#[test]
fn a_fault_names_the_line_and_column() -> kiln::Result<()> {
    for device in devices() {
        let jit = exact(device);
        let x = jit.upload(&[0.0f32; 4])?;
        let mut out = jit.zeros::<f32>(4)?;
        jit.launch(&reads_beyond, 1, 3, args!(&x, &mut out))?;
        let error = jit.synchronize().expect_err("it reads x[4]").to_string();
        let at = format!("values.rs:{}:22", line_of("first + x[i + 2];"));
        assert!(error.contains(&at), "{at} is not in: {error}");
        assert!(error.contains("index 4"), "{error}");
    }
    Ok(())
}

#[kernel]
fn too_many(x: &mut [f32]) {
    let list = [x[0]; 1000];
    x[1] = list[3];
}

#[test]
fn a_build_error_names_the_line() {
    let jit = exact(Device::cpu());
    let mut x = jit.zeros::<f32>(1).expect("memory");
    let error = jit.launch(&too_many, 1, 1, args!(&mut x));
    let error = error.expect_err("the list is too long").to_string();
    let at = format!("values.rs:{}:16", line_of("[x[0]; 1000];"));
    assert!(error.contains(&at), "{at} is not in: {error}");
}

#[device_fn]
fn even(n: i32) -> bool {
    if n == 0 { true } else { odd(n - 1) }
}

#[device_fn]
fn odd(n: i32) -> bool {
    if n == 0 { false } else { even(n - 1) }
}

#[kernel]
fn recursive(out: &mut [u32]) {
    out[0] = even(10) as u32;
}

#[test]
fn recursion_through_others_is_an_error() {
    let jit = exact(Device::cpu());
    let mut x = jit.zeros::<u32>(1).expect("memory");
    let error = jit.launch(&recursive, 1, 1, args!(&mut x));
    let error = error.expect_err("it has no end").to_string();
    assert!(error.contains("`even` calls itself"), "{error}");
    assert!(error.contains("calls `odd`"), "{error}");
    // On the host it is an ordinary function.
    assert!(even(10) && odd(7));
}

#[device_fn]
fn there<F: Fn(i32) -> i32>(n: i32, f: F) -> i32 {
    if n == 0 { f(0) } else { back(n - 1, &f) }
}

#[device_fn]
fn back<F: Fn(i32) -> i32>(n: i32, f: F) -> i32 {
    there(n, &f) + there(n, |x| f(x))
}

#[kernel]
fn recursive_with_closures(out: &mut [i32]) {
    out[0] = there(3, |x| x + 1);
}

#[test]
fn recursion_of_functions_with_closures_is_an_error() {
    let jit = exact(Device::cpu());
    let mut x = jit.zeros::<i32>(1).expect("memory");
    let error = jit.launch(&recursive_with_closures, 1, 1, args!(&mut x));
    let error = error.expect_err("it has no end").to_string();
    assert!(
        error.contains("described in its own description"),
        "{error}"
    );
}

#[kernel]
fn beyond_in_a_closure(x: &[f32], out: &mut [f32]) {
    let i = thread_idx().x;
    let read = |k| x[i + k];
    out[i] = read(2);
}

#[test]
fn a_fault_in_a_closure_names_its_line() -> kiln::Result<()> {
    let jit = exact(Device::cpu());
    let x = jit.upload(&[0.0f32; 4])?;
    let mut out = jit.zeros::<f32>(4)?;
    jit.launch(&beyond_in_a_closure, 1, 3, args!(&x, &mut out))?;
    let error = jit.synchronize().expect_err("it reads x[4]").to_string();
    let at = format!("values.rs:{}:20", line_of("let read = |k| x[i + k];"));
    assert!(error.contains(&at), "{at} is not in: {error}");
    Ok(())
}

#[kernel]
fn mixed_slices(x: &[u32], y: &mut [u32]) {
    // Either of two slices, and a part of the other parameter's type.
    let i = global_id().x;
    let from: &[u32] = if i % 2 == 0 { x } else { &y[..] };
    let v = from[i];
    y[i] = v + 1;
}

#[test]
fn slices_as_values() -> kiln::Result<()> {
    for device in devices() {
        let jit = exact(device);
        let x = jit.upload(&[10u32, 20, 30, 40])?;
        let mut y = jit.upload(&[1u32, 2, 3, 4])?;
        jit.launch(&mixed_slices, 1, 4, args!(&x, &mut y))?;
        assert_eq!(y.to_vec()?, [11, 3, 31, 5]);
    }
    Ok(())
}

/// Kernels and types with the names that generated code would choose for its variables.
mod names {
    #![allow(dead_code, reason = "that it compiles is what is tested")]

    use kiln::prelude::*;

    macro_rules! kernels {
        ($($name:ident)*) => {$(
            #[kernel]
            pub fn $name(x: &mut [Pair<f32>]) {
                x[0] = Point(1.0, 2.0).pair();
            }
        )*};
    }
    kernels! {
        kernel jit config front types args all ty fields size align out bytes value start end a b order equal of known
        host name supertraits
    }

    #[derive(Copy, Clone, Debug, PartialEq, PartialOrd, KernelType)]
    #[repr(C)]
    pub struct Pair<T> {
        pub a: T,
        pub b: T,
    }

    #[derive(Copy, Clone, KernelType)]
    #[repr(C)]
    struct Point(f32, f32);

    #[derive(Copy, Clone, PartialEq, KernelType)]
    #[repr(u8)]
    enum Side {
        Left,
    }

    #[device_fn]
    impl Point {
        fn pair(self) -> Pair<f32> {
            let second = if Side::Left.other() == Side::Left {
                self.1
            } else {
                0.0
            };
            Pair {
                a: self.0,
                b: second,
            }
        }
    }

    #[device_fn]
    impl Side {
        fn other(self) -> Side {
            self
        }
    }

    #[device_fn]
    trait Named: Copy {
        fn twice(self) -> f32 {
            2.0
        }
    }

    #[device_fn]
    impl Named for Side {}

    #[kernel]
    pub fn each<T: Named>(x: &mut [f32], y: &[T]) {
        x[0] = y[0].twice();
    }
}

/// What is expected of a kernel is expected once.
mod expected {
    use kiln::prelude::*;

    #[kernel]
    #[expect(unused_variables, reason = "the body is what does not use it")]
    pub fn unused(x: &[f32], y: &mut [f32]) {
        y[0] = 1.0;
    }
}

#[test]
fn lints_of_kernels_may_be_expected() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let (x, mut y) = (jit.zeros::<f32>(1)?, jit.zeros::<f32>(1)?);
    expected::unused.launch(&jit, (1, 1), &x, &mut y)?;
    assert_eq!(y.to_vec()?, [1.0]);
    Ok(())
}

#[test]
fn kernels_may_be_named_as_anything() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let mut x = jit.zeros::<names::Pair<f32>>(1)?;
    names::kernel.launch(&jit, (1, 1), &mut x)?;
    names::config.launch(&jit, (1, 1), &mut x)?;
    assert_eq!(x.to_vec()?, [names::Pair { a: 1.0, b: 2.0 }]);
    Ok(())
}

#[device_fn]
fn nothing_tells<T: Num>() -> T {
    T::from_i32(1)
}

#[kernel]
fn made_of_one_mistake(a: &[f32], out: &mut [f32]) {
    let i = global_id().x;
    let one: f32 = nothing_tells();
    let mut sum = one * 2.5 + a[i];
    for _ in 0..(one as u32) {
        sum += one.max(sum);
    }
    let picked = if sum > 1.0 { one } else { a[i] };
    let all = [one, picked, sum];
    out[i] = all[i % 3];
}

/// What follows from a mistake that the first launch finds is not reported beside it.
#[test]
fn one_mistake_is_one_error() {
    let error = made_of_one_mistake.get();
    let error = error.expect_err("nothing tells the type").to_string();
    assert!(error.contains("cannot be built: 1 error\n"), "{error}");
    assert!(
        error.contains("a parameter `T` that no argument"),
        "{error}"
    );
}
