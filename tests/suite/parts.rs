//! Parts of buffers as arguments, and what the host does with them.

use std::panic::AssertUnwindSafe;

use kiln::core::region::Region;
use kiln::error::{Error, MemoryError};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    parts_are_arguments,
    two_parts_of_a_buffer_in_one_launch,
    parts_begin_anywhere,
    parts_in_views,
    threads_and_streams_have_parts,
    the_host_works_on_parts,
    bytes_as_other_values,
    who_reads_a_part_is_told_of_faults,
    parts_that_are_not_there,
    regions_are_copied,
    regions_that_are_not_there,
];

#[kernel]
fn copy(x: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() && i < out.len() {
        out[i] = x[i];
    }
}

#[kernel]
fn add_length(x: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] += x.len() as u32;
    }
}

/// Reads fours of numbers, at once where they lie at multiples of 16 bytes.
#[kernel]
fn sums_of_fours(x: &[f32], out: &mut [f32]) {
    let i = global_id().x;
    if i < out.len() {
        let mut sum = 0.0;
        for k in 0..4 {
            sum += x[4 * i + k];
        }
        out[i] = sum;
    }
}

fn parts_are_arguments(jit: &Jit) -> Outcome {
    let x = jit.upload(&[1u32, 2, 3, 4, 5, 6, 7, 8])?;
    let mut out = jit.zeros::<u32>(8)?;
    copy.launch(jit, (1, 32), &x[2..5], &mut out[4..])?;
    jit.launch(&copy, 1, 32, args!(&x[..=1], &mut out[..3]))?;
    assert_eq!(out.to_vec()?, [1, 2, 0, 0, 3, 4, 5, 0]);
    let prepared = jit.compile(&copy, args!(&x[1..], &mut out[1..]))?;
    prepared.launch(1, 32, args!(&x[4..][..=2][1..], &mut out[2..=3]))?;
    assert_eq!(out.to_vec()?, [1, 2, 6, 7, 3, 4, 5, 0]);
    // A kernel sees the part's length, none at all among them.
    for (start, end) in [(0, 8), (3, 5), (7, 8), (8, 8), (2, 2)] {
        let mut x = jit.zeros::<u32>(8)?;
        add_length.launch(jit, (1, 32), &mut x[start..end])?;
        let expected = (0..8).map(|i| match (start..end).contains(&i) {
            true => (end - start) as u32,
            false => 0,
        });
        assert_eq!(x.to_vec()?, expected.collect::<Vec<_>>());
    }
    Ok(())
}

fn two_parts_of_a_buffer_in_one_launch(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&[1u32, 2, 3, 4, 5])?;
    let (left, right) = x.split_at_mut(2);
    copy.launch(jit, (1, 32), left, right)?;
    assert_eq!(x.to_vec()?, [1, 2, 1, 2, 5]);
    let (left, right) = x.split_at_mut(x.len());
    jit.launch(&add_length, 1, 32, args!(&mut *left))?;
    jit.launch(&copy, 1, 32, args!(&*left, right))?;
    assert_eq!(x.to_vec()?, [6, 7, 6, 7, 10]);
    let (left, right) = x.split_at(1);
    assert_eq!((left.len(), right.to_vec()?), (1, vec![7, 6, 7, 10]));
    Ok(())
}

fn parts_begin_anywhere(jit: &Jit) -> Outcome {
    let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let x = jit.upload(&values)?;
    for start in 0..6 {
        let mut out = jit.zeros::<f32>(6)?;
        for place in 0..2 {
            let out = &mut out[place..][..4];
            sums_of_fours.launch(jit, (1, 32), &x[start..], out)?;
            let sums = values[start..].chunks_exact(4).take(4);
            let sums: Vec<f32> = sums.map(|four| four.iter().sum()).collect();
            assert_eq!(out.to_vec()?, sums, "{start} {place}");
        }
    }
    Ok(())
}

#[derive(KernelView)]
struct Both<'a> {
    from: &'a [u32],
    to: &'a mut [u32],
}

#[kernel]
fn copy_in_view(both: Both<'_>) {
    let i = global_id().x;
    if i < both.from.len() {
        both.to[i] = both.from[i];
    }
}

fn parts_in_views(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&[1u32, 2, 3, 4])?;
    let (to, from) = x.split_at_mut(2);
    copy_in_view.launch(jit, (1, 32), BothArgs { from, to })?;
    assert_eq!(x.to_vec()?, [3, 4, 3, 4]);
    Ok(())
}

fn threads_and_streams_have_parts(jit: &Jit) -> Outcome {
    let mut x = jit.zeros::<u32>(64)?;
    let (left, right) = x.split_at_mut(24);
    std::thread::scope(|scope| {
        for part in [left, right] {
            scope.spawn(move || {
                let stream = jit.stream().expect("a stream");
                for _ in 0..10 {
                    let launched = add_length.launch(&stream, (1, 64), part);
                    launched.expect("it is launched");
                }
                assert_eq!(
                    part[..1].to_vec().expect("it is read"),
                    [10 * part.len() as u32]
                );
            });
        }
    });
    let mut expected = vec![240; 24];
    expected.extend([400; 40]);
    assert_eq!(x.to_vec()?, expected);
    Ok(())
}

fn the_host_works_on_parts(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&[1u32, 2, 3, 4, 5, 6])?;
    x[1..4].fill(7)?;
    x[4..].write(&[8])?;
    x[3..].write_at(2, &[9])?;
    assert_eq!(x.to_vec()?, [1, 7, 7, 7, 8, 9]);
    let (left, right) = x.split_at_mut(3);
    left.copy_from(&right[1..])?;
    let mut last = [0; 2];
    left.read_into(1, &mut last)?;
    assert_eq!(last, [9, 7]);
    assert_eq!(x[..2].read_later(jit.pinned(&[0; 2])?)?.wait()?[..], [8, 9]);
    let written = x[2..3].write_later(jit.pinned(&[4])?)?;
    written.wait()?;
    let mut other = jit.zeros::<u32>(4)?;
    other[1..].copy_from(&x[1..=3])?;
    assert_eq!(other.to_vec()?, [0, 9, 4, 7]);
    assert_eq!(x[6..].to_vec()?, []);
    Ok(())
}

fn bytes_as_other_values(jit: &Jit) -> Outcome {
    let mut bytes = jit.upload(&[0u8; 20])?;
    add_length.launch(jit, (1, 32), bytes[4..12].cast_mut()?)?;
    copy.launch(jit, (1, 32), &jit.upload(&[5u32])?, bytes[16..].cast_mut()?)?;
    assert_eq!(bytes.cast::<u32>()?.to_vec()?, [0, 2, 2, 0, 5]);
    let pairs = bytes[4..].cast::<[u32; 2]>()?;
    assert_eq!(pairs[1..].to_vec()?, [[0, 5]]);
    assert_eq!(bytes.into_cast::<[u32; 5]>()?.to_vec()?, [[0, 2, 2, 0, 5]]);
    Ok(())
}

#[kernel]
fn reach(x: &mut [u32], at: usize) {
    x[at] = 1;
}

/// Whatever of the buffer the launch was given, and whatever is read of it.
fn who_reads_a_part_is_told_of_faults(jit: &Jit) -> Outcome {
    let mut x = jit.zeros::<u32>(8)?;
    let told = |read: kiln::Result<()>| read.unwrap_err().fault().is_some();
    reach.launch(jit, (1, 1), &mut x, 8)?;
    assert!(told(x[3..].to_vec().map(drop)));
    reach.launch(jit, (1, 1), &mut x[4..], 4)?;
    assert!(told(x[..2].read_into(0, &mut [0])));
    reach.launch(jit, (1, 1), &mut x, 8)?;
    let later = x[5..].read_later(jit.pinned(&[0; 2])?);
    assert!(told(later.and_then(|later| later.wait()).map(drop)));
    reach.launch(jit, (1, 1), &mut x[8..], 0)?;
    assert!(told(x.to_vec().map(drop)));
    assert_eq!(x.to_vec()?, [0; 8]);
    Ok(())
}

fn parts_that_are_not_there(jit: &Jit) -> Outcome {
    let mut x = jit.zeros::<u32>(4)?;
    let none = |error: Error| match error {
        Error::Memory(MemoryError::NoPart { start, values, .. }) => (start, values),
        other => panic!("{other}"),
    };
    assert_eq!(none(x.part(2..5).unwrap_err()), (2, 3));
    assert_eq!(none(x.part_mut(5..).unwrap_err()), (5, 0));
    #[expect(clippy::reversed_empty_ranges, reason = "such a part is not there")]
    let backwards = x.part(3..1).map(drop);
    assert_eq!(none(backwards.unwrap_err()), (3, 0));
    assert_eq!(none(x.part(..=usize::MAX).unwrap_err()), (0, usize::MAX));
    assert!(x.cast::<bool>().is_err() && x[..3].cast::<u64>().is_err());
    assert!(x[1..3].cast::<u64>().is_err());
    let ask = AssertUnwindSafe(|| x[3..9].len());
    let message = std::panic::catch_unwind(ask).unwrap_err();
    let message = message.downcast_ref::<String>().expect("it is text");
    assert_eq!(
        message,
        "6 values from element 3 on are no part of a buffer of 4; ask for fewer, or from earlier on"
    );
    Ok(())
}

/// Every region of a small cube to every place, beside the same copies of the host.
fn regions_are_copied(jit: &Jit) -> Outcome {
    const ALL: [usize; 3] = [2, 3, 4];
    let numbers: Vec<u16> = (1..=24).collect();
    let x = jit.upload(&numbers)?;
    let whole = Region::of(ALL);
    let of = |n: usize, length: usize| (0..=n - length).map(move |at| at..at + length);
    let extents = [
        [1, 1, 1],
        [1, 1, 4],
        [1, 2, 4],
        [1, 3, 1],
        [2, 2, 3],
        [2, 3, 4],
        [2, 1, 2],
    ];
    for [planes, rows, columns] in extents {
        let ranges = of(2, planes).flat_map(|plane| {
            let rows = of(3, rows).map(move |row| [plane.clone(), row]);
            rows.flat_map(|[plane, row]| {
                of(4, columns).map(move |c| [plane.clone(), row.clone(), c])
            })
        });
        let ranges: Vec<_> = ranges.collect();
        for from in [ranges.first(), ranges.last()].into_iter().flatten() {
            for to in &ranges {
                let (from_region, to_region) = (whole.part(from.clone())?, whole.part(to.clone())?);
                let mut expected = vec![0u16; 24];
                for (plane, to_plane) in from[0].clone().zip(to[0].clone()) {
                    for (row, to_row) in from[1].clone().zip(to[1].clone()) {
                        for (column, to_column) in from[2].clone().zip(to[2].clone()) {
                            expected[(to_plane * 3 + to_row) * 4 + to_column] =
                                numbers[(plane * 3 + row) * 4 + column];
                        }
                    }
                }
                let (mut y, mut z) = (jit.zeros::<u16>(24)?, jit.zeros::<u16>(24)?);
                y.copy_region(&to_region, &x, &from_region)?;
                z.write_region(&to_region, &numbers, &from_region)?;
                let mut host = vec![0; 24];
                x.read_region(&from_region, &mut host, &to_region)?;
                assert_eq!(y.to_vec()?, expected, "{from:?} to {to:?}");
                assert_eq!(z.to_vec()?, expected, "{from:?} to {to:?}");
                assert_eq!(host, expected, "{from:?} to {to:?}");
            }
        }
    }
    Ok(())
}

fn regions_that_are_not_there(jit: &Jit) -> Outcome {
    let (x, mut y) = (jit.zeros::<u32>(12)?, jit.zeros::<u32>(11)?);
    let (whole, inner) = (Region::of([3, 4]), Region::of([3, 4]).part([0..2, 0..2])?);
    let refused = |result: kiln::Result<()>, expected: &str| {
        let text = result.expect_err("it is refused").to_string();
        assert_eq!(text, expected);
    };
    refused(
        whole.part([0..2, 3..5]).map(drop),
        "the ranges [0..1, 0..2, 3..5] of planes, rows and columns are no part of a region of [1, 3, 4]; ask for fewer, or \
         from earlier on",
    );
    refused(
        y.copy_region(&inner, &x, &inner),
        "a region is of [1, 3, 4] planes, rows and columns in all, and the memory has 11 elements; say how the memory is \
         laid out, as `Region::of([rows, columns])`",
    );
    refused(
        y.write_region(&Region::of([2, 4]), &[0; 8], &Region::of([4, 2])),
        "a region of [1, 4, 2] planes, rows and columns is not copied to one of [1, 2, 4]; take parts of one extent",
    );
    let huge = Region::of([usize::MAX, usize::MAX]);
    assert!(x.read_region(&huge, &mut [], &huge).is_err());
    let none = whole.part([1..1, 0..4])?;
    assert!(none.is_empty());
    x.read_region(&none, &mut [], &none)
        .expect_err("the host has no region of 3 x 4");
    y.write_region(&Region::of([0, 4]), &[], &Region::of([0, 4]))?;
    Ok(())
}
