//! Out-of-bounds accesses: reported exactly, and the device goes on.

use kiln::error::{Error, RunError};
use kiln::prelude::*;

use super::{Outcome, chapter, kernels};

chapter![
    an_index_out_of_bounds_is_reported,
    a_negative_index_is_out_of_bounds,
    shared_and_fixed_arrays_are_checked,
    parts_of_slices_are_checked,
    faults_in_device_functions_name_them,
    faults_name_the_column_in_rust_functions,
    each_of_several_places_leaves_its_own_record,
    one_of_several_places_is_told_as_a_whole,
    places_tell_indices_of_their_own_widths,
    assumptions_that_do_not_hold_are_reported,
    assumptions_in_device_functions_and_beside_barriers,
    what_is_assumed_holds_without_checks,
    assertions_tell_their_text_and_values,
    panics_end_the_thread_and_no_other,
    what_is_asserted_is_checked_without_checks,
    barriers_do_not_wait_for_ended_threads,
    the_device_is_usable_afterwards,
    assertions_of_what_has_parts,
];

fn fault(result: kiln::Result<()>) -> kiln::core::launch::KernelFault {
    match result {
        Err(Error::Run(RunError::Fault(fault))) => fault,
        other => panic!("expected a fault, got {other:?}"),
    }
}

fn an_index_out_of_bounds_is_reported(jit: &Jit) -> Outcome {
    let line = line!() + 4;
    let kernel = Kernel::build("reach", |k| {
        let x = k.slice_mut("x", Type::F32);
        let i = k.global_id().x();
        k.if_(i.eq(70), || x.at(i + 30).set(1.0));
        k.if_(i.lt(x.len()), || x.at(i).set(2.0));
    })?;
    let mut x = jit.zeros::<f32>(100)?;
    jit.launch(&kernel, 4, 32, args!(&mut x))?;
    let fault = fault(jit.synchronize());
    assert_eq!((fault.index, fault.length), (100, 100));
    assert_eq!((fault.block.x, fault.thread.x), (2, 6));
    assert_eq!(fault.kernel, "reach");
    let place = format!("{}:{line}:", file!());
    assert!(
        fault.location.starts_with(&place),
        "{} is not at {place}",
        fault.location
    );
    // The fault is reported once; the thread that faulted wrote nothing, the others went on.
    jit.synchronize()?;
    let x = x.to_vec()?;
    assert!(
        x.iter()
            .enumerate()
            .all(|(i, &v)| v == if i == 70 { 0.0 } else { 2.0 })
    );
    Ok(())
}

fn a_negative_index_is_out_of_bounds(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("below", |k| {
        let x = k.slice("x", Type::F32);
        let out = k.slice_mut("out", Type::F32);
        let i = k.param("i", Type::I32);
        out.at(0).set(x.at(i));
    })?;
    let x = jit.zeros::<f32>(4)?;
    let mut out = jit.zeros::<f32>(1)?;
    jit.launch(&kernel, 1, 1, args!(&x, &mut out, -1i32))?;
    let fault = fault(jit.synchronize());
    assert_eq!((fault.index, fault.length), (-1, 4));
    Ok(())
}

fn shared_and_fixed_arrays_are_checked(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("tiles", |k| {
        let out = k.slice_mut("out", Type::F32);
        let (i, j) = (k.param("i", Type::U32), k.param("j", Type::U32));
        let tile = k.shared("tile", k.array(k.array(Type::F32, 8), 4));
        let list = k.shared_array("list", Type::F32, 16);
        tile.at(i).at(j).set(1.0);
        list.at(i + j).set(2.0);
        out.at(0).set(tile.at(i).at(j) + list.at(i + j));
    })?;
    let mut out = jit.zeros::<f32>(1)?;
    for (i, j, index, length) in [(4u32, 0u32, 4, 4), (1, 8, 8, 8), (3, 7, -1, 0)] {
        jit.launch(&kernel, 1, 1, args!(&mut out, i, j))?;
        match jit.synchronize() {
            Ok(()) => assert_eq!(index, -1),
            result => {
                let fault = fault(result);
                assert_eq!((fault.index, fault.length), (index, length));
            }
        }
    }
    assert_eq!(out.to_vec()?, [3.0]);
    Ok(())
}

/// One thread takes the part that is asked for, the others a whole slice.
#[kernel]
fn take_part(x: &[f32], which: u32, from: usize, to: usize, out: &mut [u32]) {
    let i = global_id().x;
    let part = if i != 37 {
        x
    } else {
        match which {
            0 => &x[from..to],
            1 => &x[from..],
            2 => &x[..to],
            _ => &x[from..=to],
        }
    };
    out[i] = part.len() as u32;
}

fn parts_of_slices_are_checked(jit: &Jit) -> Outcome {
    let x = jit.zeros::<f32>(10)?;
    let mut out = jit.zeros::<u32>(40)?;
    let max = u32::MAX as usize;
    let refused = [
        (0, 3, 11, (11, 10)),
        (0, 7, 6, (7, 6)),
        (0, 11, 11, (11, 10)),
        (0, max, 0, (max, 0)),
        (1, 11, 0, (11, 10)),
        (1, max, 0, (max, 10)),
        (2, 0, 11, (11, 10)),
        (2, 0, max, (max, 10)),
        (3, 0, 10, (10, 10)),
        (3, 0, max, (max, 10)),
        (3, 6, 4, (6, 5)),
    ];
    for (which, from, to, (index, length)) in refused {
        take_part.launch(jit, (1, 40), &x, which, from, to, &mut out)?;
        let fault = fault(jit.synchronize());
        let what = format!("{which}: {from} to {to}");
        assert_eq!(
            (fault.index, fault.length),
            (index as i128, length),
            "{what}"
        );
        assert_eq!(fault.thread.x, 37, "{what}");
    }
    let taken = [
        (0, 0, 10, 10),
        (0, 10, 10, 0),
        (0, 3, 5, 2),
        (1, 10, 0, 0),
        (1, 4, 0, 6),
        (2, 0, 0, 0),
        (2, 0, 10, 10),
        (3, 9, 9, 1),
        (3, 0, 9, 10),
        (3, 5, 4, 0),
    ];
    for (which, from, to, length) in taken {
        take_part.launch(jit, (1, 40), &x, which, from, to, &mut out)?;
        let lengths = out.to_vec()?;
        assert_eq!(lengths[37], length, "{which}: {from} to {to}");
        assert!(lengths[..37].iter().all(|&n| n == 10));
    }
    Ok(())
}

fn faults_in_device_functions_name_them(jit: &Jit) -> Outcome {
    let pick = DeviceFn::build("pick", |f| {
        let (x, i) = (f.slice("x", Type::U32), f.param("i", Type::U32));
        f.return_value(x.at(i));
    })?;
    let kernel = Kernel::build("picks", |k| {
        let (x, out) = (k.slice("x", Type::U32), k.slice_mut("out", Type::U32));
        out.at(0).set(k.call(&pick, &[x, x.len()]));
    })?;
    let x = jit.zeros::<u32>(5)?;
    let mut out = jit.upload(&[9u32])?;
    jit.launch(&kernel, 1, 1, args!(&x, &mut out))?;
    let fault = fault(jit.synchronize());
    assert_eq!((fault.index, fault.length), (5, 5));
    assert!(fault.inside.contains("pick"), "{fault}");
    assert_eq!(out.to_vec()?, [9]);
    Ok(())
}

#[device_fn]
fn doubled<F: Fn(usize) -> u32>(i: usize, f: F) -> u32 {
    2 * f(i)
}

/// The line of the access in [`reaches_in_a_closure`].
const LINE: u32 = line!() + 7;

#[kernel]
fn reaches_in_a_closure(x: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    out[i] = doubled(i, |k| {
        let next = k + 1;
        7 + x[next]
    });
}

fn faults_name_the_column_in_rust_functions(jit: &Jit) -> Outcome {
    let x = jit.zeros::<u32>(8)?;
    let mut out = jit.zeros::<u32>(8)?;
    jit.launch(&reaches_in_a_closure, 1, 8, args!(&x, &mut out))?;
    let fault = fault(jit.synchronize());
    assert_eq!((fault.index, fault.length), (8, 8));
    assert_eq!(fault.location, format!("{}:{LINE}:13", file!()));
    Ok(())
}

#[device_fn]
#[inline(never)]
fn far(x: &[u32], i: usize) -> u32 {
    x[i] + 1
}

#[device_fn]
fn next(x: &[u32], i: usize) -> u32 {
    x[i] + far(x, i)
}

/// The line of the first access in [`several`]; places 1 to 3 are in the next lines, 4 is three behind those.
const SEVERAL: u32 = line!() + 16;

/// A thread reaches to `to` at one of eight places: thread 37 at the one that is asked for or, if there is none of that
/// number, each thread at its own.
#[kernel]
fn several(x: &[u32], rows: &[[u16; 5]], place: u32, to: usize, out: &mut [u32]) {
    let tile = shared!([u32; 64]);
    let t = thread_idx().x;
    let asked = if t == 37 { place } else { 8 };
    let mine = if place < 8 { asked } else { t as u32 % 8 };
    let mut at = [0; 8];
    for p in 0..8 {
        at[p] = if mine == p as u32 { to } else { 0 };
    }
    let mut sum = 0;
    for k in 0..x.len() / 2 {
        sum += x[at[0] + k];
        sum += x[at[1]];
        sum += rows[at[2]][1] as u32;
        sum += rows[1][at[3]] as u32;
    }
    tile[t] = sum;
    barrier();
    sum += tile[at[4]];
    sum += next(x, at[5]);
    sum += far(x, at[6]);
    assert!(at[7] == 0, "seven");
    barrier();
    out[t] = sum;
}

/// What a fault at a place of [`several`] has to tell, of 9 numbers and 6 rows.
fn assert_tells(fault: &kiln::core::launch::KernelFault, place: u32, to: usize) {
    let line = |n: u32| format!(":{}:", SEVERAL + n);
    let (length, of) = match place {
        0 | 1 => (9, line(place)),
        2 => (6, line(2)),
        3 => (5, line(3)),
        4 => (64, line(7)),
        5 => (9, "next".to_owned()),
        6 => (9, "far".to_owned()),
        _ => (0, "seven".to_owned()),
    };
    let index = if length == 0 { 0 } else { to as i128 };
    assert_eq!(
        (fault.index, fault.length),
        (index, length),
        "{place}: {fault}"
    );
    assert!(fault.to_string().contains(&of), "{place}: {fault}");
}

fn each_of_several_places_leaves_its_own_record(jit: &Jit) -> Outcome {
    let x = jit.upload(&[1u32; 9])?;
    let rows = jit.upload(&[[1u16; 5]; 6])?;
    for (place, to) in (0..8).flat_map(|place| [64, 0xffff_fff0].map(|to| (place, to))) {
        let mut out = jit.upload(&[99u32; 64])?;
        several.launch(jit, (1, 64), &x, &rows, place, to, &mut out)?;
        let fault = fault(jit.synchronize());
        assert_tells(&fault, place, to);
        assert_eq!(fault.thread.x, 37, "{fault}");
        let out = out.to_vec()?;
        assert_eq!((out[36], out[37], out[38]), (37, 99, 37), "{place}");
    }
    Ok(())
}

fn one_of_several_places_is_told_as_a_whole(jit: &Jit) -> Outcome {
    let x = jit.upload(&[1u32; 9])?;
    let rows = jit.upload(&[[1u16; 5]; 6])?;
    for to in [64usize, 70, 1 << 31] {
        let mut out = jit.upload(&[99u32; 64])?;
        several.launch(jit, (1, 64), &x, &rows, 8, to, &mut out)?;
        let fault = fault(jit.synchronize());
        assert_tells(&fault, fault.thread.x % 8, to);
        assert_eq!(out.to_vec()?, [99; 64]);
        // No other one is told.
        jit.synchronize()?;
    }
    Ok(())
}

fn places_tell_indices_of_their_own_widths(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("widths", |k| {
        let (x, out) = (k.slice("x", Type::U32), k.slice_mut("out", Type::U32));
        let place = k.param("place", Type::U32);
        let at = [Type::U8, Type::I32, Type::U32, Type::I64, Type::U64];
        for (n, ty) in (0..).zip(at) {
            let index = k.param(&format!("i{n}"), ty);
            k.if_(place.eq(n), || out.at(n).set(x.at(index)));
        }
        k.assert_eq(k.param("both", Type::I64), 7i64, "both");
    })?;
    let x = jit.upload(&[1u32; 9])?;
    let mut out = jit.zeros::<u32>(5)?;
    let (far, high) = (1i64 << 40 | 70, 1u64 << 63 | 5);
    let told: [i128; 5] = [200, -5, 0xffff_fff0, far.into(), high.into()];
    for (place, index) in (0u32..).zip(told) {
        let numbers = args!(
            &x,
            &mut out,
            place,
            200u8,
            -5i32,
            0xffff_fff0u32,
            far,
            high,
            7i64
        );
        jit.launch(&kernel, 1, 1, numbers)?;
        let fault = fault(jit.synchronize());
        assert_eq!((fault.index, fault.length), (index, 9), "{place}: {fault}");
    }
    jit.launch(
        &kernel,
        1,
        1,
        args!(&x, &mut out, 9u32, 0u8, 0i32, 0u32, 0i64, 0u64, far),
    )?;
    let fault = fault(jit.synchronize());
    let panic = fault.panic.as_deref().unwrap_or_default();
    assert!(panic.contains(&far.to_string()), "{fault}");
    assert_eq!(out.to_vec()?, [0; 5]);
    Ok(())
}

#[kernel]
fn add_halves(x: &mut [f32], n: usize) {
    assume(n % 2 == 0 && n <= x.len());
    let i = global_id().x;
    if i < n / 2 {
        x[i] += x[n / 2 + i];
    }
}

fn assumptions_that_do_not_hold_are_reported(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
    add_halves.launch(jit, (1, 64), &mut x, 4)?;
    jit.synchronize()?;
    for n in [3, 6] {
        add_halves.launch(jit, (1, 64), &mut x, n)?;
        let fault = fault(jit.synchronize());
        let assumed = fault.assumed.as_deref();
        assert_eq!(assumed, Some("n % 2 == 0 && n <= x.len()"), "{n}");
        assert_eq!((fault.index, fault.length), (0, 0));
    }
    // Nobody has gone on with the wrong ones.
    assert_eq!(x.to_vec()?, [4.0, 6.0, 3.0, 4.0, 5.0]);
    Ok(())
}

#[device_fn]
fn halved(n: u32) -> u32 {
    assume(n % 2 == 0);
    n / 2
}

#[kernel]
fn halves(x: &[u32], out: &mut [u32]) {
    let tile = shared!([u32; 64]);
    let i = thread_idx().x;
    tile[i] = halved(x[i]);
    barrier();
    out[i] = tile[63 - i];
}

fn assumptions_in_device_functions_and_beside_barriers(jit: &Jit) -> Outcome {
    let mut numbers: Vec<u32> = (0..64).map(|i| 2 * i).collect();
    let mut out = jit.zeros::<u32>(64)?;
    halves.launch(jit, (1, 64), &jit.upload(&numbers)?, &mut out)?;
    assert_eq!(out.to_vec()?, (0..64).rev().collect::<Vec<u32>>());
    numbers[17] = 7;
    let mut out = jit.upload(&[99u32; 64])?;
    halves.launch(jit, (1, 64), &jit.upload(&numbers)?, &mut out)?;
    let fault = fault(jit.synchronize());
    assert_eq!(fault.thread.x, 17);
    assert!(fault.inside.contains("halved"), "{fault}");
    assert_eq!(fault.assumed.as_deref(), Some("n % 2 == 0"));
    // Barriers do not wait for the thread that ended; the one that reads its element gets what was there.
    let out = out.to_vec()?;
    assert_eq!((out[17], out[16], out[18]), (99, 47, 45));
    Ok(())
}

#[kernel(
    // SAFETY: the host launches it as its assumption says.
    unsafe(unchecked)
)]
fn rows_of_eight(x: &[u32], out: &mut [u32], columns: usize) {
    assume(columns % 8 == 0 && columns > 0);
    let row = global_id().x;
    if row < out.len() {
        let mut sum = 0;
        for i in 0..columns {
            sum += x[row * columns + i];
        }
        out[row] = sum / columns as u32;
    }
}

fn what_is_assumed_holds_without_checks(jit: &Jit) -> Outcome {
    let x = jit.upload(&(0..64).collect::<Vec<u32>>())?;
    for columns in [8usize, 16] {
        let mut out = jit.zeros::<u32>(64 / columns)?;
        rows_of_eight.launch(jit, (1, 32), &x, &mut out, columns)?;
        let wanted = (0..64 / columns).map(|row| (row * columns + (columns - 1) / 2) as u32);
        assert_eq!(out.to_vec()?, wanted.collect::<Vec<u32>>());
    }
    Ok(())
}

/// What a fault of the kernels below says, without its place.
fn panicked(jit: &Jit) -> String {
    let fault = fault(jit.synchronize());
    assert_eq!((fault.index, fault.length, &fault.assumed), (0, 0, &None));
    fault.panic.expect("it is a panic")
}

/// The line of the first assertion below.
const ASSERTS: u32 = line!() + 7;

#[kernel]
fn asserts(x: &[f32], n: i64, which: u32) {
    let i = thread_idx().x;
    let h = x[i];
    match which {
        0 => assert!(x.len() > i && h < 3.0),
        1 => assert!(h < 3.0, "{{too}} large"),
        2 => assert_eq!(h, x[i % 3]),
        3 => assert_ne!(n + i as i64, -6, "n is wrong",),
        4 => debug_assert!(i != 3),
        5 => assert_eq!((i / 3) as u8 * 240, 0),
        6 => assert_eq!((i / 3) as i8 * -7, 0),
        9 => assert_eq!(i != 3, x.len() == 4),
        7 => debug_assert_eq!(n * 2, n + n),
        8 => debug_assert_ne!(n, n + 1),
        _ => {}
    }
}

fn assertions_tell_their_text_and_values(jit: &Jit) -> Outcome {
    let x = jit.upload(&[0.0f32, 1.0, 2.0, 3.5])?;
    let wanted = [
        "assertion failed: x.len() > i && h < 3.0",
        "{too} large",
        "assertion `h == x[i % 3]` failed (left: 3.5, right: 0.0)",
        "assertion `n + i as i64 != -6` failed: n is wrong (left: -6, right: -6)",
        "assertion failed: i != 3",
    ];
    for (which, wanted) in wanted.into_iter().enumerate() {
        asserts.launch(jit, (1, 4), &x, -9, which as u32)?;
        if which == 4 && !cfg!(debug_assertions) {
            jit.synchronize()?;
            continue;
        }
        let fault = fault(jit.synchronize());
        assert_eq!(fault.panic.as_deref(), Some(wanted));
        assert_eq!(fault.thread.x, 3, "{fault}");
        let place = format!("{}:{}:14", file!(), ASSERTS as usize + which);
        assert_eq!(fault.location, place);
    }
    for (which, left) in [(5, "240"), (6, "-7"), (9, "false")] {
        asserts.launch(jit, (1, 4), &x, 0, which)?;
        let told = panicked(jit);
        let right = if which == 9 { "true" } else { "0" };
        assert!(
            told.ends_with(&format!("(left: {left}, right: {right})")),
            "{told}"
        );
    }
    for holds in [7, 8, 10] {
        asserts.launch(jit, (1, 4), &x, 0, holds)?;
        jit.synchronize()?;
    }
    Ok(())
}

#[device_fn]
fn half_of(n: u32) -> u32 {
    if n % 2 == 0 {
        return n / 2;
    }
    panic!("odd")
}

#[device_fn]
fn digit(n: u32) -> u32 {
    match n {
        0..=9 => n + 48,
        10..=15 => n + 87,
        _ => unreachable!("no digit"),
    }
}

#[device_fn]
fn never() -> u32 {
    panic!()
}

#[device_fn]
fn each<F: Fn(u32) -> u32>(n: u32, f: F) -> u32 {
    if n == 77 {
        unreachable!();
    }
    f(n)
}

#[kernel]
fn panics(x: &mut [u32], which: u32) {
    let tile = shared!([u32; 32]);
    let i = thread_idx().x;
    tile[i] = 99;
    tile[i] = match which {
        0 => half_of(x[i]),
        1 => digit(x[i]),
        2 if x[i] == 33 => never(),
        3 => each(x[i], |n| {
            if n == 33 {
                panic!("in a closure")
            } else {
                n + 1
            }
        }),
        4 => each(x[i] + 44, |n| n),
        _ => {
            if x[i] == 33 {
                panic!("in {{a}} kernel");
            }
            x[i]
        }
    };
    barrier();
    x[i] = tile[31 - i];
}

fn panics_end_the_thread_and_no_other(jit: &Jit) -> Outcome {
    let wanted = [
        "odd",
        "internal error: entered unreachable code: no digit",
        "explicit panic",
        "in a closure",
        "internal error: entered unreachable code",
        "in {a} kernel",
    ];
    for (which, wanted) in wanted.into_iter().enumerate() {
        let mut numbers = [6u32; 32];
        numbers[13] = 33;
        let mut x = jit.upload(&numbers)?;
        panics.launch(jit, (1, 32), &mut x, which as u32)?;
        let fault = fault(jit.synchronize());
        assert_eq!(fault.panic.as_deref(), Some(wanted));
        assert_eq!(fault.thread.x, 13, "{fault}");
        let inside = ["half_of", "digit", "never"].get(which).copied();
        assert!(fault.inside.contains(inside.unwrap_or("")), "{fault}");
        let x = x.to_vec()?;
        let value = [3, 54, 6, 7, 50, 6][which];
        let others = x.iter().enumerate().filter(|(i, _)| ![13, 18].contains(i));
        assert!(
            others.map(|(_, &v)| v).all(|v| v == value),
            "{which}: {x:?}"
        );
        // The thread that ended wrote nothing more, here and to who reads what it was to write.
        assert_eq!((x[13], x[18]), (33, 99));
    }
    Ok(())
}

#[kernel(
    // SAFETY: the host launches it with as many threads as there are elements.
    unsafe(unchecked)
)]
fn asserted_without_checks(x: &mut [f64], limit: f64) {
    let i = global_id().x;
    assert!(x[i] < limit, "too large");
    assert_ne!(x[i], -1.5);
    x[i] = 7.0;
}

fn what_is_asserted_is_checked_without_checks(jit: &Jit) -> Outcome {
    let mut x = jit.upload(&[1.0, 5.0, 2.0])?;
    asserted_without_checks.launch(jit, (1, 3), &mut x, 4.0)?;
    assert_eq!(panicked(jit), "too large");
    assert_eq!(x.to_vec()?, [7.0, 5.0, 7.0]);
    let mut x = jit.upload(&[1.0, 3.0, -1.5])?;
    asserted_without_checks.launch(jit, (1, 3), &mut x, 4.0)?;
    let told = panicked(jit);
    assert_eq!(
        told,
        "assertion `x[i] != -1.5` failed (left: -1.5, right: -1.5)"
    );
    assert_eq!(x.to_vec()?, [7.0, 7.0, -1.5]);
    Ok(())
}

fn barriers_do_not_wait_for_ended_threads(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("some_end", |k| {
        let (x, out) = (k.slice("x", Type::U32), k.slice_mut("out", Type::U32));
        let tile = k.shared_array("tile", Type::U32, 64);
        let i = k.thread_idx().x();
        tile.at(i).set(i);
        k.barrier();
        // Every fourth thread reaches beyond `x` and ends.
        let offset = (i % 4).eq(3).select(x.len(), k.lit(Type::U32, 0));
        tile.at(i).set(tile.at(i) + x.at(offset));
        k.barrier();
        out.at(i).set(tile.at((i + 1) % 64));
    })?;
    let x = jit.upload(&[100u32])?;
    let mut out = jit.zeros::<u32>(64)?;
    jit.launch(&kernel, 1, 64, args!(&x, &mut out))?;
    fault(jit.synchronize());
    for (i, v) in out.to_vec()?.into_iter().enumerate() {
        let next = (i as u32 + 1) % 64;
        let want = if i % 4 == 3 {
            0
        } else if next % 4 == 3 {
            next
        } else {
            next + 100
        };
        assert_eq!(v, want, "thread {i}");
    }
    Ok(())
}

fn the_device_is_usable_afterwards(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("wild", |k| {
        let x = k.slice_mut("x", Type::U32);
        x.at(k.global_id().x() * 1000).set(1);
    })?;
    let saxpy = kernels::saxpy()?;
    let mut x = jit.zeros::<u32>(10)?;
    for _ in 0..20 {
        jit.launch(&kernel, 8, 64, args!(&mut x))?;
        fault(jit.synchronize());
        let a = jit.upload(&[2.0f32; 64])?;
        let mut b = jit.upload(&[1.0f32; 64])?;
        jit.launch(&saxpy, 1, 64, args!(3.0f32, &a, &mut b))?;
        assert_eq!(b.to_vec()?, [7.0; 64]);
    }
    Ok(())
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Placed {
    at: F32x2,
    number: u32,
}

#[kernel]
fn asserts_of_parts(x: &[Placed], which: u32) {
    let i = thread_idx().x;
    let (a, b) = (x[i], x[0]);
    match which {
        0 => assert_eq!(a, b),
        1 => assert_eq!(a.at, b.at, "moved"),
        2 => assert_eq!((a.number, i), (b.number, i)),
        3 => assert_eq!([a.number, 1], [b.number, 1]),
        4 => assert_ne!(x[i], a),
        _ => assert_ne!(a.at, F32x2::splat(9.0)),
    }
}

/// What is made of parts is compared by them; there are no values to tell.
fn assertions_of_what_has_parts(jit: &Jit) -> Outcome {
    let placed = |x: f32, number| Placed {
        at: F32x2::new(x, 0.0),
        number,
    };
    let x = jit.upload(&[placed(1.0, 1), placed(2.0, 2)])?;
    let wanted = [
        "assertion `a == b` failed",
        "assertion `a.at == b.at` failed: moved",
        "assertion `(a.number, i) == (b.number, i)` failed",
        "assertion `[a.number, 1] == [b.number, 1]` failed",
        "assertion `x[i] != a` failed",
    ];
    for (which, wanted) in wanted.into_iter().enumerate() {
        asserts_of_parts.launch(jit, (1, 2), &x, which as u32)?;
        assert_eq!(panicked(jit), wanted);
    }
    asserts_of_parts.launch(jit, (1, 2), &x, 5)?;
    jit.synchronize()?;
    Ok(())
}
