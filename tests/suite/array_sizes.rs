//! Arrays larger than what a block or a round of all blocks has, and than no multiple of it, beside the host: folds of
//! all and along dimensions, tiles, selections, sorting, and buffers whose values are not specified.

use expect_test::expect;
use kiln::core::runtime::DeviceKind;
use kiln::core::target::Target;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    folds_of_all_elements,
    folds_of_elements_that_begin_anywhere,
    folds_along_each_dimension,
    halves_and_bytes_beside_each_other,
    rows_beside_each_other,
    more_rows_than_a_grid_has,
    turned_dimensions_in_tiles,
    many_tiles_are_scanned,
    many_tiles_are_sorted,
    many_tiles_are_selected,
    buffers_of_any_values,
    more_elements_than_are_counted,
];

/// A small number without an order.
fn number(i: usize) -> i64 {
    let mixed = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 57) as i64 - 60
}

fn numbers(count: usize) -> Vec<i64> {
    (0..count).map(number).collect()
}

/// The sum of numbers of 32 bits, which has 64.
fn total(x: &[i64]) -> i64 {
    x.iter().map(|x| i64::from(*x as i32)).sum()
}

/// A grid has 65,535 blocks along y. The interpreter would take a minute for so many elements.
fn more_rows_than_a_grid_has(jit: &Jit) -> Outcome {
    if matches!(jit.target(), Target::Interpreter) {
        return Ok(());
    }
    let arrays = Arrays::new(jit);
    let beside = arrays.vector((0..64).collect::<Vec<u32>>())?;
    for rows in [65_535, 65_536] {
        let column = arrays.indices(rows).eval()?.reshape((rows, 1))?;
        let got = (&column * 64 + &beside).eval()?.to_vec()?;
        let wrong = (0u32..).zip(&got).find(|(n, value)| n != *value);
        assert_eq!((got.len(), wrong), (rows * 64, None), "{rows}");
    }
    Ok(())
}

/// Of four blocks of a GPU a round has 32,768 elements of 4 bytes.
fn folds_of_all_elements(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for n in [1023, 4099, 32_768, 70_001] {
        let x = numbers(n);
        let narrow = arrays.vector(x.iter().map(|x| *x as i32).collect::<Vec<_>>())?;
        assert_eq!(narrow.sum()?, total(&x), "{n}");
        let wide = arrays.vector(x.clone())?;
        assert_eq!((&wide * 3 + 1).sum()?, x.iter().map(|x| 3 * x + 1).sum());
        let turned = arrays.vector(x.iter().rev().copied().collect::<Vec<_>>())?;
        let products = x.iter().zip(x.iter().rev()).map(|(a, b)| a * b);
        assert_eq!((&wide * &turned).sum()?, products.sum::<i64>(), "{n}");
        let most = x.iter().copied().max().unwrap_or_default();
        let first = x.iter().position(|x| *x == most).unwrap_or_default();
        assert_eq!((narrow.max()?, narrow.argmax()?), (most as i32, first));
        let floats = arrays.vector(x.iter().map(|x| *x as f32).collect::<Vec<_>>())?;
        let sum = floats.sum()?;
        assert_eq!(
            sum,
            x.iter().sum::<i64>() as f32,
            "sums of small numbers are exact"
        );
        let tenths = (&floats / 10.0).eval()?;
        let again: Vec<u32> = (0..3)
            .map(|_| Ok(tenths.sum()?.to_bits()))
            .collect::<kiln::Result<_>>()?;
        assert_eq!(again, [again[0]; 3], "the same bits each time");
    }
    Ok(())
}

fn folds_of_elements_that_begin_anywhere(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = numbers(9000);
    let all = arrays.vector(x.iter().map(|x| *x as i32).collect::<Vec<_>>())?;
    for start in 0..5 {
        let part = all.slice(s![start..])?;
        let want = total(&x[start as usize..]);
        assert_eq!(part.sum()?, want, "{start}");
        let moved = (&part + &part).eval()?.to_vec()?;
        let doubled = x[start as usize..].iter().map(|x| 2 * *x as i32);
        assert!(moved.into_iter().eq(doubled), "{start}");
    }
    Ok(())
}

/// Rows and columns of any length, folded by lanes, by blocks, and by several of these.
fn folds_along_each_dimension(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let shapes = [
        (3, 5, 2),
        (2, 9, 64),
        (1, 700, 12),
        (2, 3, 4100),
        (1, 2, 40_000),
        (1, 9000, 4),
        (5, 130, 132),
    ];
    for (a, b, c) in shapes {
        let x = numbers(a * b * c);
        let array = arrays.array(x.clone(), (a, b, c))?;
        let at = |i: usize, j: usize, k: usize| x[(i * b + j) * c + k];
        let mut want = [vec![0; b * c], vec![0; a * c], vec![0; a * b]];
        for (i, j, k) in (0..a * b * c).map(|n| (n / (b * c), n / c % b, n % c)) {
            want[0][j * c + k] += at(i, j, k);
            want[1][i * c + k] += at(i, j, k);
            want[2][i * b + j] += at(i, j, k);
        }
        for (axis, want) in want.iter().enumerate() {
            let sums = array.sum_axis(axis as isize)?;
            assert_eq!(&sums.to_vec()?, want, "{a} {b} {c} along {axis}");
            let narrow = array.cast::<i32>().eval()?.sum_axis(axis as isize)?;
            let narrow: Vec<i64> = narrow.to_vec()?;
            assert_eq!(&narrow, want, "{a} {b} {c} along {axis}, of 4 bytes");
        }
        let last = array.slice(s![.., .., 1..])?;
        let sums = last.sum_axis(-1)?.to_vec()?;
        let rows = x.chunks(c).map(|row| row[1..].iter().sum::<i64>());
        assert!(sums.into_iter().eq(rows), "{a} {b} {c} without the first");
    }
    Ok(())
}

fn halves_and_bytes_beside_each_other(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let bytes: Vec<u8> = (0..1003).map(|i| i as u8).collect();
    let x = arrays.vector(bytes.clone())?;
    assert_eq!((&x + 1u8).eval()?.to_vec()?[255..257], [0, 1]);
    let doubled = (x.cast::<f64>() * 2.0).eval()?.to_vec()?;
    assert!(
        doubled
            .into_iter()
            .eq(bytes.iter().map(|x| 2.0 * f64::from(*x)))
    );
    let even = (&x % 2u8).eq(0).eval()?.to_vec()?;
    assert!(even.into_iter().eq(bytes.iter().map(|x| x % 2 == 0)));
    let total: u64 = bytes.iter().map(|x| u64::from(*x)).sum();
    assert_eq!(x.sum_as::<u64>()?, total);
    Ok(())
}

/// Rows of a larger array, with a column and a row, whose lengths and starts are multiples of 4, and which are not.
fn rows_beside_each_other(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for (rows, whole, start, row) in [
        (3, 1300, 0, 1284),
        (5, 132, 4, 128),
        (4, 133, 3, 100),
        (2, 90, 1, 70),
    ] {
        let x: Vec<i32> = numbers(rows * whole)
            .into_iter()
            .map(|x| x as i32)
            .collect();
        let array = arrays.array(x.clone(), (rows, whole))?;
        let part = array.slice(s![.., start as isize..(start + row) as isize])?;
        let column = arrays.array((0..rows as i32).collect::<Vec<_>>(), (rows, 1))?;
        let beside = arrays.vector((0..row as i32).collect::<Vec<_>>())?;
        let got = (&part * 3 + &column * 1000 + &beside).eval()?;
        let narrow = part.cast::<i16>().eval()?.to_vec()?;
        let (mut in_place, mut at) = (part.copy()?, 0);
        in_place.assign(&in_place + &column)?;
        let (got, in_place) = (got.to_vec()?, in_place.to_vec()?);
        for (i, j) in (0..rows * row).map(|n| (n / row, n % row)) {
            let value = x[i * whole + start + j];
            assert_eq!(
                got[at],
                3 * value + 1000 * i as i32 + j as i32,
                "{row} {i} {j}"
            );
            assert_eq!(i32::from(narrow[at]), value, "{row} {i} {j}");
            assert_eq!(in_place[at], value + i as i32, "{row} {i} {j}");
            at += 1;
        }
    }
    Ok(())
}

fn turned_dimensions_in_tiles(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for (a, b, c) in [(1, 33, 65), (3, 40, 16), (2, 100, 31), (20, 3, 17)] {
        let x = numbers(a * b * c);
        let array = arrays.array(x.clone(), (a, b, c))?;
        let row = arrays.vector(numbers(b))?;
        let turned = array.permute([0, 2, 1])?; // a c b
        let other = arrays.array(numbers(a * b * c), (a, c, b))?;
        let got = (&turned * 2 + &row - &other).eval()?.to_vec()?;
        let behind = array.permute([2, 1, 0])?.copy()?.to_vec()?; // c b a
        let before = array.permute([2, 0, 1])?.copy()?.to_vec()?; // c a b
        for (i, j, k) in (0..a * b * c).map(|n| (n / (b * c), n / c % b, n % c)) {
            let value = x[(i * b + j) * c + k];
            let at = (i * c + k) * b + j;
            assert_eq!(got[at], 2 * value + number(j) - number(at), "{a} {b} {c}");
            assert_eq!(behind[(k * b + j) * a + i], value, "{a} {b} {c}");
            assert_eq!(before[(k * a + i) * b + j], value, "{a} {b} {c}");
        }
    }
    Ok(())
}

fn many_tiles_are_sorted(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    // More tiles than a thread asks at once what they know.
    let n = 50_001;
    let x: Vec<u32> = (0..n)
        .map(|i| (i as u32).wrapping_mul(2_654_435_761) >> 11)
        .collect();
    let array = arrays.vector(x.clone())?;
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|at| x[*at as usize] % 64);
    let (mut sorted, few) = (x.clone(), (&array % 64u32).eval()?);
    assert_eq!(few.argsort(0)?.to_vec()?, order, "alike ones stay in order");
    sorted.sort_unstable();
    assert_eq!(array.sort(0)?.to_vec()?, sorted);
    let negative = (array.cast::<f32>() - 1e6).eval()?;
    let mut floats: Vec<f32> = x.iter().map(|x| *x as f32 - 1e6).collect();
    floats.sort_by(f32::total_cmp);
    assert_eq!(negative.sort(0)?.to_vec()?, floats);
    Ok(())
}

fn many_tiles_are_scanned(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    // Of a tile's parts, of tiles, and on a GPU of more tiles than a warp looks back at.
    let many = match jit.device().info().kind {
        DeviceKind::Cuda => 34 * 15_360 + 1,
        _ => 70_000,
    };
    for n in [5121, 15_359, 15_360, 15_361, many] {
        let x = numbers(n);
        let narrow = arrays.vector(x.iter().map(|x| *x as i32).collect::<Vec<_>>())?;
        let sums = |x: &[i64]| -> Vec<i32> {
            let mut sum = 0;
            let up_to = |x: &i64| {
                sum += *x as i32;
                sum
            };
            x.iter().map(up_to).collect()
        };
        assert_eq!(narrow.cumsum(0)?.to_vec()?, sums(&x), "{n}");
        // From an element on that no wide access begins at.
        let behind = narrow.slice(s![1..])?;
        assert_eq!(behind.cumsum(0)?.to_vec()?, sums(&x[1..]), "{n}");
    }
    let x: Vec<i64> = numbers(9000).iter().map(|x| x << 30).collect();
    let mut sum = 0;
    let sums = x.iter().map(|x| {
        sum += x;
        sum
    });
    let wide = arrays.vector(x.clone())?;
    assert!(wide.cumsum(0)?.to_vec()?.into_iter().eq(sums), "of 64 bits");
    Ok(())
}

/// More than elements of a block are.
#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Named {
    number: i64,
    name: [u8; 5],
}

fn many_tiles_are_selected(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for n in [1, 4095, 4096, 4097, 20_001, 34 * 4096 + 1] {
        let x = numbers(n);
        let array = arrays.vector(x.clone())?;
        // None, all, about half, and few.
        for least in [-100, 0, 50, 100] {
            let kept = array.compress(&array.ge(least).eval()?)?;
            let want: Vec<i64> = x.iter().copied().filter(|x| *x >= least).collect();
            assert_eq!(kept.dims(), [want.len()], "{n} {least}");
            assert_eq!(kept.to_vec()?, want, "{n} {least}");
            // What is kept goes on as any array does.
            assert_eq!((&kept + 1).sum()?, want.iter().map(|x| x + 1).sum());
        }
    }
    let named = |i: usize| Named {
        number: number(i),
        name: [i as u8, 1, 2, 3, (i >> 8) as u8],
    };
    let x: Vec<Named> = (0..5001).map(named).collect();
    let all: Vec<bool> = (0..x.len() + 3).map(|i| number(i) > 0).collect();
    let keep = arrays.vector(all)?.slice(s![3..])?;
    let kept = arrays.vector(x.clone())?.compress(&keep)?;
    let want = (0..x.len()).filter(|i| number(i + 3) > 0).map(|i| x[i]);
    assert_eq!(kept.to_vec()?, want.collect::<Vec<_>>());
    Ok(())
}

fn buffers_of_any_values(jit: &Jit) -> Outcome {
    let mut x: Buffer<u32> = jit.unspecified(300)?;
    let iota = Kernel::build("iota", |k| {
        let x = k.slice_mut("x", k.ty::<u32>());
        let i = k.global_id().x();
        k.if_(i.lt(x.len()), || x.at(i).set(i));
    })?;
    jit.launch(&iota, grid_for(300, 64), 64, args!(&mut x))?;
    assert!(x.to_vec()?.into_iter().eq(0..300));
    // What is no value is an error where it is read, and counts as true or false in kernels.
    let flags: Buffer<bool> = jit.unspecified(64)?;
    let count = Kernel::build("count", |k| {
        let (flags, out) = (
            k.slice("flags", k.ty::<bool>()),
            k.slice_mut("out", k.ty::<u32>()),
        );
        let i = k.thread_idx().x();
        let flag = flags.at(i).get();
        out.at(i)
            .set(flag.select(1u32, 0u32) + (!flag).select(1u32, 0u32));
    })?;
    let mut out = jit.zeros::<u32>(64)?;
    jit.launch(&count, 1, 64, args!(&flags, &mut out))?;
    assert_eq!(out.to_vec()?, [1; 64]);
    match flags.to_vec() {
        Ok(flags) => assert_eq!(flags.len(), 64),
        Err(error) => assert!(error.to_string().contains("bool"), "{error}"),
    }
    assert_eq!(jit.unspecified::<u8>(0)?.len(), 0);
    Ok(())
}

/// Views of so many elements need no memory for them.
fn more_elements_than_are_counted(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.ones::<u32>(1)?.broadcast_to(1 << 32)?;
    let errors = [
        x.cumsum(0).map(drop),
        x.sort(0).map(drop),
        x.argsort(0).map(drop),
        x.compress(&arrays.full(1, true)?.broadcast_to(1 << 32)?)
            .map(drop),
        x.take(&arrays.vector(vec![0u32])?, 0).map(drop),
        x.bincount(4).map(drop),
    ];
    let texts = errors.map(|error| error.expect_err("it has too many").to_string());
    expect![[r#"
        a running sum, product or fold of an array of shape 4294967296: its indices tell 4294950911 elements apart; go through it in parts, `x.slice(s![a..b])`
        sorting of an array of shape 4294967296: its indices tell 4294961149 elements apart; go through it in parts, `x.slice(s![a..b])`
        sorting of an array of shape 4294967296: its indices tell 4294961149 elements apart; go through it in parts, `x.slice(s![a..b])`
        `compress` of an array of shape 4294967296: its indices tell 4294950911 elements apart; go through it in parts, `x.slice(s![a..b])`
        `take` of an array of shape 4294967296: its indices tell 4294967295 elements apart; go through it in parts, `x.slice(s![a..b])`
        `bincount` of an array of shape 4294967296: its indices tell 4294967295 elements apart; go through it in parts, `x.slice(s![a..b])`"#]].assert_eq(&texts.join("\n"));
    Ok(())
}
