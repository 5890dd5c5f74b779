//! Slices of 2^31 and of 2^32 elements and more in `#[kernel]` functions.

use expect_test::expect;
use kiln::core::job::CompileOptions;
use kiln::core::runtime::OnHostOptions;
use kiln::prelude::*;

/// Takes a length and indices of 64 bits, and leaves what it saw in `out`.
#[kernel]
fn at_the_ends(x: &mut [u8], out: &mut [u64]) {
    let n = x.len() as u64;
    let i = global_id().x;
    if i == 0 {
        out[0] = n;
        x[(n - 1) as usize] = 7;
        // What an index of 32 bits would have reached.
        out[1] = x[((n - 1) as u32) as usize] as u64;
        out[2] = last(x);
    }
    let mut at = (1u64 << 32) - 2 + i as u64;
    while at < x.len() as u64 {
        x[at as usize] += 1;
        at += global_size().x as u64;
    }
}

#[device_fn]
fn last(x: &[u8]) -> u64 {
    let mut sum = 0;
    let mut i = x.len() as i64 - 3;
    while i < x.len() as i64 {
        sum += x[i as usize] as u64;
        i += 1;
    }
    sum
}

#[kernel]
fn one_of(x: &[u8], at: u64, out: &mut [u64]) {
    out[0] = x[at as usize] as u64;
}

/// The memory is given by the system as it is touched, which is at the ends.
#[test]
fn slices_of_more_elements_than_32_bits_count() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let len = (1usize << 32) + 5;
    let mut x = jit.zeros::<u8>(len)?;
    let mut out = jit.zeros::<u64>(3)?;
    at_the_ends.launch(&jit, (1, 1), &mut x, &mut out)?;
    assert_eq!(out.to_vec()?, [len as u64, 0, 7]);
    for (at, want) in [(1 << 32, 1), (len - 1, 8), ((1 << 32) - 3, 0), (4, 0)] {
        one_of.launch(&jit, (1, 1), &x, at as u64, &mut out)?;
        assert_eq!(out.to_vec()?[0], want, "at {at}");
    }
    one_of.launch(&jit, (1, 1), &x, len as u64, &mut out)?;
    let error = jit.synchronize().expect_err("the index is out of bounds");
    let text = error.to_string();
    assert!(text.contains("4294967301"), "{text}");
    Ok(())
}

/// The same kernels where 32 bits are enough: an index past them does not come round.
#[test]
fn an_index_of_64_bits_is_not_cut_off() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let x = jit.upload(&[1u8, 2, 3])?;
    let mut out = jit.zeros::<u64>(1)?;
    one_of.launch(&jit, (1, 1), &x, 2, &mut out)?;
    assert_eq!(out.to_vec()?, [3]);
    one_of.launch(&jit, (1, 1), &x, (1 << 32) + 2, &mut out)?;
    let text = jit
        .synchronize()
        .expect_err("it is out of bounds")
        .to_string();
    assert!(text.contains("4294967298"), "{text}");
    Ok(())
}

/// Slices that reach others through what they are parts of.
#[derive(KernelView, Copy, Clone)]
struct Both<'a> {
    left: &'a [u8],
    right: &'a [u8],
    plus: u64,
}

#[device_fn]
impl Both<'_> {
    fn sum_at(&self, at: u64) -> u64 {
        (self.left[at as usize] + self.right[(at % 2) as usize]) as u64 + self.plus
    }

    fn turned(self) -> Self {
        Both {
            left: self.right,
            right: self.left,
            ..self
        }
    }
}

#[kernel]
fn of_a_view(both: Both<'_>, at: u64, out: &mut [u64]) {
    let turned = both.turned();
    out[0] = both.sum_at(at);
    out[1] = turned.right[at as usize] as u64 + turned.right.len() as u64;
    out[2] = both.right.len() as u64;
}

#[kernel]
fn of_tuples(x: &[u8], y: &[u8], at: u64, out: &mut [u64]) {
    let mut pair = (y, x);
    out[0] = pair.1[at as usize] as u64;
    pair = (pair.1, pair.0);
    out[1] = pair.0[at as usize] as u64 + pair.0.len() as u64;
    let several = [x, y];
    out[2] = several[(at % 2) as usize].len() as u64;
}

#[test]
fn wide_slices_are_parts_of_others() -> kiln::Result<()> {
    let at = 1u64 << 32;
    let len = at as usize + 5;
    for device in super::devices() {
        let jit = Jit::on(device);
        let mut x = jit.zeros::<u8>(len)?;
        let mut out = jit.zeros::<u64>(3)?;
        at_the_ends.launch(&jit, (1, 1), &mut x, &mut out)?;
        let y = jit.upload(&[20u8, 30])?;
        let both = BothArgs {
            left: &x,
            right: &y,
            plus: 100,
        };
        of_a_view.launch(&jit, (1, 1), both, at, &mut out)?;
        assert_eq!(out.to_vec()?, [121, 1 + len as u64, 2]);
        of_tuples.launch(&jit, (1, 1), &x, &y, at, &mut out)?;
        assert_eq!(out.to_vec()?, [1, 1 + len as u64, len as u64]);
    }
    Ok(())
}

/// Two elements so far apart that a difference with a sign has another one.
#[kernel]
fn far_apart(x: &mut [u8], i: usize, both: bool) {
    x[i] += 1;
    if both {
        x[i + 0x9000_0000] += 2;
    }
}

/// Of slices of fewer than 2^31 elements indices are as far apart as they are modulo 2^32, which these are not.
#[test]
fn elements_of_long_slices_are_apart_as_they_are() -> kiln::Result<()> {
    // SAFETY: all indices below are in bounds.
    let unchecked = unsafe { CompileOptions::default().unchecked() };
    for device in [OnHostOptions::default().device(), Device::cpu()] {
        let jit = Jit::builder()
            .device(device)
            .compile(unchecked.clone())
            .build()?;
        let mut short = jit.zeros::<u8>(16)?;
        let mut x = jit.zeros::<u8>(0x9000_0010)?;
        let mut out = jit.zeros::<u64>(1)?;
        for _ in 0..2 {
            far_apart.launch(&jit, (1, 1), &mut short, 5, false)?;
        }
        far_apart.launch(&jit, (1, 1), &mut x, 5, true)?;
        for (at, want) in [(5, 1), (0x9000_0005, 2), (0x9000_0004, 0)] {
            one_of.launch(&jit, (1, 1), &x, at, &mut out)?;
            assert_eq!(out.to_vec()?[0], want, "at {at}");
        }
    }
    Ok(())
}

#[test]
fn a_launch_prepared_for_a_short_slice_takes_no_long_one() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let short = jit.upload(&[1u8, 2, 3])?;
    let long = jit.zeros::<u8>(1 << 31)?;
    let mut out = jit.zeros::<u64>(1)?;
    let for_long = jit.compile(&one_of, args!(&long, 2u64, &mut out))?;
    for_long.launch(1, 1, args!(&short, 2u64, &mut out))?;
    assert_eq!(out.to_vec()?, [3]);
    let for_short = jit.compile(&one_of, args!(&short, 2u64, &mut out))?;
    let refused = for_short.launch(1, 1, args!(&long, 2u64, &mut out));
    expect!["argument 1 of the launch of `one_of` is not a slice of fewer than 2^31 elements, and the kernel was prepared for one that is; call `compile` again for these arguments, or launch the kernel itself, which finds the code for each"].assert_eq(&refused.expect_err("it has 2^31 elements").to_string());
    Ok(())
}
