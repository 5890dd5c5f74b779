//! Functions that are instructions of GPUs on integers: exact results made of wider integers or bit by bit, and those of
//! the host.

use kiln::prelude::*;

use super::rust_integers::samples;
use super::{Outcome, chapter};

chapter![
    upper_halves,
    products_of_bytes,
    products_of_halves,
    sums_of_differences,
    bytes_chosen,
    funnels,
    fields_extracted,
    fields_inserted,
    in_the_builder,
];

/// Samples, and others beside each.
fn pairs() -> (Vec<u64>, Vec<u64>) {
    let samples = samples();
    let n = samples.len();
    let other = |i: usize| samples[(i * 7 + i / n * 5) % n];
    (0..4 * n).map(|i| (samples[i % n], other(i))).unzip()
}

fn converted<T>(list: &[u64], of: impl Fn(u64) -> T) -> Vec<T> {
    list.iter().map(|&n| of(n)).collect()
}

#[kernel]
fn upper<T: Int>(x: &[T], y: &[T], out: &mut [T]) {
    let i = global_id().x;
    if i < x.len() {
        out[i] = mul_hi(x[i], y[i]);
    }
}

fn upper_halves(jit: &Jit) -> Outcome {
    fn check<T: Int + KernelType + std::fmt::Debug>(
        jit: &Jit,
        [x, y]: [Vec<T>; 2],
        exact: fn(T, T) -> T,
    ) -> Outcome {
        let mut out = jit.zeros::<T>(x.len())?;
        let config = (grid_for(x.len(), 64), 64);
        upper.launch(jit, config, &jit.upload(&x)?, &jit.upload(&y)?, &mut out)?;
        for (i, got) in out.to_vec()?.into_iter().enumerate() {
            let (x, y) = (x[i], y[i]);
            assert_eq!(got, exact(x, y), "{x:?}, {y:?}");
            assert_eq!(got, mul_hi(x, y), "on the host, {x:?}, {y:?}");
        }
        Ok(())
    }
    let (x, y) = pairs();
    check(jit, [&x, &y].map(|n| converted(n, |n| n as u32)), |x, y| {
        ((u64::from(x) * u64::from(y)) >> 32) as u32
    })?;
    check(jit, [&x, &y].map(|n| converted(n, |n| n as i32)), |x, y| {
        ((i64::from(x) * i64::from(y)) >> 32) as i32
    })?;
    check(jit, [x.clone(), y.clone()], |x, y| {
        ((u128::from(x) * u128::from(y)) >> 64) as u64
    })?;
    check(jit, [&x, &y].map(|n| converted(n, |n| n as i64)), |x, y| {
        ((i128::from(x) * i128::from(y)) >> 64) as i64
    })
}

#[kernel]
fn dots(x: &[u32], y: &[u32], unsigned: &mut [u32], signed: &mut [i32]) {
    let i = global_id().x;
    if i < x.len() {
        unsigned[i] = dp4a(x[i], y[i], x[i] ^ y[i]);
        signed[i] = dp4a(x[i] as i32, y[i] as i32, (x[i] ^ y[i]) as i32);
    }
}

fn products_of_bytes(jit: &Jit) -> Outcome {
    let (x, y) = pairs();
    let [x, y] = [x, y].map(|n| converted(&n, |n| n as u32));
    let (mut unsigned, mut signed) = (jit.zeros::<u32>(x.len())?, jit.zeros::<i32>(x.len())?);
    let config = (grid_for(x.len(), 64), 64);
    let (a, b) = (jit.upload(&x)?, jit.upload(&y)?);
    dots.launch(jit, config, &a, &b, &mut unsigned, &mut signed)?;
    let (unsigned, signed) = (unsigned.to_vec()?, signed.to_vec()?);
    for (i, (&x, &y)) in x.iter().zip(&y).enumerate() {
        let bytes = || x.to_le_bytes().into_iter().zip(y.to_le_bytes());
        let wanted = bytes().fold(x ^ y, |sum, (a, b)| {
            sum.wrapping_add(u32::from(a) * u32::from(b))
        });
        assert_eq!(unsigned[i], wanted, "{x:#x}, {y:#x}");
        assert_eq!(dp4a(x, y, x ^ y), wanted, "on the host, {x:#x}, {y:#x}");
        let wanted = bytes().fold((x ^ y) as i32, |sum, (a, b)| {
            sum.wrapping_add(i32::from(a as i8) * i32::from(b as i8))
        });
        assert_eq!(signed[i], wanted, "{x:#x}, {y:#x}");
        assert_eq!(dp4a(x as i32, y as i32, (x ^ y) as i32), wanted);
    }
    Ok(())
}

/// Both halves of products, and the sums of differences.
#[kernel]
fn halves(x: &[u32], y: &[u32], unsigned: &mut [[u32; 4]], signed: &mut [[i32; 2]]) {
    let i = global_id().x;
    if i < x.len() {
        let (x, y) = (x[i], y[i]);
        let (a, b, sum) = (x as i32, y as i32, x ^ y);
        unsigned[i] = [
            dp2a_lo(x, y, sum),
            dp2a_hi(x, y, sum),
            sad(x, y, sum),
            sad(a, b, sum),
        ];
        signed[i] = [dp2a_lo(a, b, sum as i32), dp2a_hi(a, b, sum as i32)];
    }
}

/// Arguments, and what `halves` gives.
type Halves = ([u32; 2], [u32; 4], [i32; 2]);

fn of_halves(jit: &Jit) -> kiln::Result<Vec<Halves>> {
    let (x, y) = pairs();
    let [x, y] = [x, y].map(|n| converted(&n, |n| n as u32));
    let (mut unsigned, mut signed) = (
        jit.zeros::<[u32; 4]>(x.len())?,
        jit.zeros::<[i32; 2]>(x.len())?,
    );
    let config = (grid_for(x.len(), 64), 64);
    let (a, b) = (jit.upload(&x)?, jit.upload(&y)?);
    halves.launch(jit, config, &a, &b, &mut unsigned, &mut signed)?;
    let results = unsigned.to_vec()?.into_iter().zip(signed.to_vec()?);
    let args = x.into_iter().zip(y).zip(results);
    Ok(args.map(|((x, y), (u, s))| ([x, y], u, s)).collect())
}

fn products_of_halves(jit: &Jit) -> Outcome {
    for ([x, y], unsigned, signed) in of_halves(jit)? {
        let sum = x ^ y;
        let bytes = y.to_le_bytes();
        let wanted = [[bytes[0], bytes[1]], [bytes[2], bytes[3]]].map(|[low, high]| {
            let unsigned = sum
                .wrapping_add((x & 0xffff) * u32::from(low))
                .wrapping_add((x >> 16) * u32::from(high));
            let signed = (sum as i32)
                .wrapping_add(i32::from(x as i16) * i32::from(low as i8))
                .wrapping_add(i32::from((x >> 16) as i16) * i32::from(high as i8));
            (unsigned, signed)
        });
        let device = [(unsigned[0], signed[0]), (unsigned[1], signed[1])];
        assert_eq!(device, wanted, "{x:#x}, {y:#x}");
        let (a, b, c) = (x as i32, y as i32, sum as i32);
        let host = [
            (dp2a_lo(x, y, sum), dp2a_lo(a, b, c)),
            (dp2a_hi(x, y, sum), dp2a_hi(a, b, c)),
        ];
        assert_eq!(host, wanted, "on the host, {x:#x}, {y:#x}");
    }
    Ok(())
}

fn sums_of_differences(jit: &Jit) -> Outcome {
    for ([x, y], [.., unsigned, signed], _) in of_halves(jit)? {
        let (a, b, sum) = (x as i32, y as i32, x ^ y);
        let wanted = [x.abs_diff(y), a.abs_diff(b)].map(|d| sum.wrapping_add(d));
        assert_eq!([unsigned, signed], wanted, "{x:#x}, {y:#x}");
        assert_eq!([sad(x, y, sum), sad(a, b, sum)], wanted, "on the host");
    }
    Ok(())
}

#[kernel]
fn three(x: &[u32], y: &[u32], z: &[u32], out: &mut [[u32; 3]]) {
    let i = global_id().x;
    if i < x.len() {
        out[i] = [
            byte_permute(x[i], y[i], z[i]),
            funnel_shift_left(x[i], y[i], z[i]),
            funnel_shift_right(x[i], y[i], z[i]),
        ];
    }
}

/// What `three` gives, with its arguments.
fn of_three(jit: &Jit) -> kiln::Result<Vec<([u32; 3], [u32; 3])>> {
    let (x, y) = pairs();
    let [x, y] = [x, y].map(|n| converted(&n, |n| n as u32));
    let selectors = [0x3210, 0x7654, 0xba98, 0xfedc, 0x0123, 0xffff_4567];
    let z: Vec<u32> = (0..x.len() as u32)
        .map(|i| match i % 3 {
            0 => selectors[i as usize % 6],
            1 => i % 67,
            _ => i.wrapping_mul(0x9e37_79b9),
        })
        .collect();
    let mut out = jit.zeros::<[u32; 3]>(x.len())?;
    let buffers = (jit.upload(&x)?, jit.upload(&y)?, jit.upload(&z)?);
    let config = (grid_for(x.len(), 64), 64);
    three.launch(jit, config, &buffers.0, &buffers.1, &buffers.2, &mut out)?;
    let args = (0..x.len()).map(|i| [x[i], y[i], z[i]]);
    Ok(args.zip(out.to_vec()?).collect())
}

fn bytes_chosen(jit: &Jit) -> Outcome {
    for ([x, y, selector], [got, ..]) in of_three(jit)? {
        let of = |i: u32| {
            if i < 4 {
                x >> (8 * i) & 255
            } else {
                y >> (8 * i - 32) & 255
            }
        };
        let wanted = (0..4).fold(0, |word, i| {
            let digit = selector >> (4 * i) & 15;
            let byte = of(digit & 7);
            let byte = if digit < 8 {
                byte
            } else if byte < 128 {
                0
            } else {
                255
            };
            word | byte << (8 * i)
        });
        assert_eq!(got, wanted, "{x:#x}, {y:#x}, {selector:#x}");
        assert_eq!(byte_permute(x, y, selector), wanted, "on the host");
    }
    Ok(())
}

fn funnels(jit: &Jit) -> Outcome {
    for ([low, high, amount], [_, left, right]) in of_three(jit)? {
        let (mut to_left, mut to_right) = (u64::from(high) << 32 | u64::from(low), 0);
        to_right += to_left;
        for _ in 0..amount % 32 {
            (to_left, to_right) = (to_left << 1, to_right >> 1);
        }
        let wanted = ((to_left >> 32) as u32, to_right as u32);
        assert_eq!((left, right), wanted, "{low:#x}, {high:#x}, {amount}");
        let of_host = |f: fn(u32, u32, u32) -> u32| f(low, high, amount);
        assert_eq!(
            (of_host(funnel_shift_left), of_host(funnel_shift_right)),
            wanted
        );
    }
    Ok(())
}

/// Starts and lengths of fields, also beyond the number and beyond what counts.
fn fields() -> Vec<(u32, u32)> {
    let numbers = [
        0,
        1,
        7,
        8,
        31,
        32,
        33,
        63,
        64,
        65,
        127,
        128,
        200,
        255,
        256,
        264,
        0xffff_ff08,
    ];
    let of = |&start: &u32| numbers.iter().map(move |&len| (start, len));
    numbers.iter().flat_map(of).collect()
}

#[kernel]
fn extracted<T: Int>(x: &[T], start: &[u32], len: &[u32], out: &mut [T]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = bit_field_extract(x[i % x.len()], start[i / x.len()], len[i / x.len()]);
    }
}

/// Numbers with ones and zeros at the ends of fields.
const NUMBERS: [u64; 6] = [
    0,
    u64::MAX,
    0x8000_0000_8000_0000,
    0x0123_4567_89ab_cdef,
    0xfedc_ba98_7654_3210,
    0xa5a5_5a5a_c3c3_3c3c,
];

fn fields_extracted(jit: &Jit) -> Outcome {
    fn check<T: Int + KernelType + std::fmt::Debug>(
        jit: &Jit,
        x: Vec<T>,
        exact: fn(T, u32, u32) -> T,
    ) -> Outcome {
        let (start, len): (Vec<u32>, Vec<u32>) = fields().into_iter().unzip();
        let mut out = jit.zeros::<T>(x.len() * start.len())?;
        let buffers = (jit.upload(&x)?, jit.upload(&start)?, jit.upload(&len)?);
        let config = (grid_for(out.len(), 64), 64);
        extracted.launch(jit, config, &buffers.0, &buffers.1, &buffers.2, &mut out)?;
        for (i, got) in out.to_vec()?.into_iter().enumerate() {
            let (start, len) = (start[i / x.len()], len[i / x.len()]);
            let x = x[i % x.len()];
            let wanted = exact(x, start, len);
            assert_eq!(got, wanted, "{x:?} from {start}, {len} bits");
            assert_eq!(bit_field_extract(x, start, len), wanted, "on the host");
        }
        Ok(())
    }
    /// The text of the PTX ISA: bit by bit.
    fn exact(bits: i128, width: u32, signed: bool, start: u32, len: u32) -> i128 {
        let (start, len) = (start & 255, len & 255);
        let highest = (start + len).wrapping_sub(1).min(width - 1);
        let sign = signed && len > 0 && bits >> highest & 1 == 1;
        (0..width).fold(0, |field, i| {
            let is_own = i < len && start + i < width;
            let bit = if is_own {
                bits >> (start + i) & 1 == 1
            } else {
                sign
            };
            field | i128::from(bit) << i
        })
    }
    check(jit, NUMBERS.map(|n| n as u32).to_vec(), |x, start, len| {
        exact(x.into(), 32, false, start, len) as u32
    })?;
    check(jit, NUMBERS.map(|n| n as i32).to_vec(), |x, start, len| {
        exact(x.into(), 32, true, start, len) as i32
    })?;
    check(jit, NUMBERS.to_vec(), |x, start, len| {
        exact(x.into(), 64, false, start, len) as u64
    })?;
    check(jit, NUMBERS.map(|n| n as i64).to_vec(), |x, start, len| {
        exact(x.into(), 64, true, start, len) as i64
    })
}

#[kernel]
fn inserted<T: Int>(x: &[T], start: &[u32], len: &[u32], out: &mut [T]) {
    let i = global_id().x;
    if i < out.len() {
        let (number, field) = (x[i % x.len()], x[(i + 3) % x.len()]);
        out[i] = bit_field_insert(number, field, start[i / x.len()], len[i / x.len()]);
    }
}

fn fields_inserted(jit: &Jit) -> Outcome {
    fn check<T: Int + KernelType + std::fmt::Debug>(
        jit: &Jit,
        x: Vec<T>,
        exact: fn(T, T, u32, u32) -> T,
    ) -> Outcome {
        let (start, len): (Vec<u32>, Vec<u32>) = fields().into_iter().unzip();
        let mut out = jit.zeros::<T>(x.len() * start.len())?;
        let buffers = (jit.upload(&x)?, jit.upload(&start)?, jit.upload(&len)?);
        let config = (grid_for(out.len(), 64), 64);
        inserted.launch(jit, config, &buffers.0, &buffers.1, &buffers.2, &mut out)?;
        for (i, got) in out.to_vec()?.into_iter().enumerate() {
            let (start, len) = (start[i / x.len()], len[i / x.len()]);
            let (x, field) = (x[i % x.len()], x[(i + 3) % x.len()]);
            let wanted = exact(x, field, start, len);
            assert_eq!(got, wanted, "{field:?} into {x:?} at {start}, {len} bits");
            assert_eq!(
                bit_field_insert(x, field, start, len),
                wanted,
                "on the host"
            );
        }
        Ok(())
    }
    /// The text of the PTX ISA: bit by bit.
    fn exact(x: u64, field: u64, width: u32, start: u32, len: u32) -> u64 {
        let (start, len) = (start & 255, len & 255);
        let own = (0..len).take_while(|i| start + i < width);
        own.fold(x, |x, i| {
            x & !(1 << (start + i)) | (field >> i & 1) << (start + i)
        })
    }
    check(
        jit,
        NUMBERS.map(|n| n as u32).to_vec(),
        |x, field, start, len| exact(x.into(), field.into(), 32, start, len) as u32,
    )?;
    check(jit, NUMBERS.to_vec(), |x, field, start, len| {
        exact(x, field, 64, start, len)
    })
}

fn in_the_builder(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("words", |k| {
        let (x, out) = (k.param("x", Type::U32), k.slice_mut("out", Type::U32));
        let words = [
            k.mul_hi(x, x),
            k.dp4a(x, 0x0101_0101, 1),
            k.dp2a_lo(x, 0x0101, 1),
            k.dp2a_hi(x, 0x0101_0000, 1),
            k.sad(x, 7, 1),
            k.byte_permute(x, 0, 0x0123),
            k.funnel_shift_left(x, x, 4),
            k.funnel_shift_right(x, 0, 4),
            k.bit_field_extract(x, 8, 8),
            k.bit_field_insert(x, 0, 0, 16),
        ];
        for (i, word) in words.into_iter().enumerate() {
            out.at(i as u32).set(word);
        }
    })?;
    let mut out = jit.zeros::<u32>(10)?;
    let x = 0x8001_0203_u32;
    jit.launch(&kernel, 1, 1, args!(x, &mut out))?;
    let wanted = [
        mul_hi(x, x),
        0x87,
        0x8205,
        0x8205,
        0x8001_01fd,
        0x0302_0180,
        0x0010_2038,
        0x0800_1020,
        2,
        0x8001_0000,
    ];
    assert_eq!(out.to_vec()?, wanted);
    Ok(())
}
