//! `const { assert!(..) }` in `#[kernel]` and `#[device_fn]` functions: assertions of type and const arguments.

use expect_test::{Expect, expect};
use kiln::prelude::*;

use super::{devices, exact};

/// What threads share at most.
const MOST: usize = 128;

/// What is asserted does not hold for the `N` of 1 that rustc checks the kernel with.
#[kernel]
fn tiles<const N: usize, const ODD: bool>(x: &mut [u32]) {
    const {
        assert!(
            N % 32 == 0 && N as u32 <= MOST as u32,
            "`N` is a multiple of 32, {{32}} to {{128}}"
        );
        assert!(N > 32 || !ODD);
    }
    x[0] = N as u32;
}

#[device_fn]
fn ends_of_halves<const N: usize>(x: [u32; N]) -> u32 {
    const { assert!(N % 2 == 0, "`N` has two halves") };
    x[N / 2 - 1] * 10 + x[N - 1]
}

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct Factor {
    by: u32,
}

#[device_fn]
impl Factor {
    fn times<const N: usize>(self, x: [u32; N]) -> u32 {
        const { assert!(!(N > 8) && MOST > 8, "at most 8") };
        self.by * ends_of_halves(x)
    }
}

#[kernel]
fn halves<const N: usize>(x: [u32; N], out: &mut [u32]) {
    let factor = Factor { by: 2 };
    out[0] = factor.times(x);
}

/// An error's text, without the lines and columns of this file.
fn text_of(result: kiln::Result<()>) -> String {
    let text = result.expect_err("it does not hold").to_string();
    let mut parts = text.split("assertions.rs:");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digit = |c: char| c.is_ascii_digit() || c == ':';
        shown += "assertions.rs:L";
        shown += part.trim_start_matches(digit);
    }
    shown + "\n"
}

/// Compares what launches are refused with, which is the same on each device.
fn check(launches: impl Fn(Jit) -> kiln::Result<String>, want: Expect) -> kiln::Result<()> {
    let [interpreted, compiled] = devices().map(|device| launches(exact(device)));
    let said = interpreted?;
    assert_eq!(said, compiled?);
    want.assert_eq(&said);
    Ok(())
}

#[test]
fn a_launch_decides_them() -> kiln::Result<()> {
    let launches = |jit: Jit| {
        let mut x = jit.zeros::<u32>(1)?;
        tiles.launch::<64, true>(&jit, (1, 1), &mut x)?;
        assert_eq!(x.to_vec()?, [64]);
        tiles.launch::<32, false>(&jit, (1, 1), &mut x)?;
        let mut said = text_of(tiles.launch::<33, false>(&jit, (1, 1), &mut x));
        said += &text_of(tiles.launch::<256, false>(&jit, (1, 1), &mut x));
        said += &text_of(tiles.launch::<32, true>(&jit, (1, 1), &mut x));
        assert_eq!(x.to_vec()?, [32], "nothing was launched");
        Ok(said)
    };
    check(
        launches,
        expect![[r#"
            `tiles` (tests/macros/assertions.rs:L): `N` is a multiple of 32, {32} to {128}
              a static assertion that does not hold with N = 33, ODD = 0
            `tiles` (tests/macros/assertions.rs:L): `N` is a multiple of 32, {32} to {128}
              a static assertion that does not hold with N = 256, ODD = 0
            `tiles` (tests/macros/assertions.rs:L): assertion failed: N > 32 || ! ODD
              a static assertion that does not hold with N = 32, ODD = 1
        "#]],
    )
}

#[test]
fn a_device_function_asserts_for_each_of_its_calls() -> kiln::Result<()> {
    // On the host rustc decides.
    assert_eq!(Factor { by: 1 }.times([1, 2, 3, 4]), 24);
    let launches = |jit: Jit| {
        let mut x = jit.zeros::<u32>(1)?;
        halves.launch(&jit, (1, 1), [1, 2, 3, 4], &mut x)?;
        assert_eq!(x.to_vec()?, [48]);
        let said = text_of(halves.launch(&jit, (1, 1), [1, 2, 3], &mut x));
        Ok(said + &text_of(halves.launch(&jit, (1, 1), [1; 10], &mut x)))
    };
    check(
        launches,
        expect![[r#"
            `ends_of_halves` (tests/macros/assertions.rs:L): `N` has two halves
              a static assertion that does not hold with N = 3
            `Factor::times` (tests/macros/assertions.rs:L): at most 8
              a static assertion that does not hold with N = 10
        "#]],
    )
}
