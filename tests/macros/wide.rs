//! Slices of 2^32 elements and more in `#[kernel]` functions.

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
