//! What functions that Rust's floats lack are on the host, in `f64`.

/// `x * 2^n`, rounded once.
pub(super) fn ldexp(x: f64, n: i32) -> f64 {
    let (mut y, mut n) = (x, n);
    for _ in 0..2 {
        let by = match n {
            1024.. => 1023,
            ..-1022 => 53 - 1022,
            _ => 0,
        };
        y *= power_of_two(by);
        n -= by;
    }
    y * power_of_two(n.clamp(-1022, 1023))
}

fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// A fraction from 1/2 to 1 and the exponent of 2 that it is multiplied by; what has none, and 0.
pub(super) fn frexp(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let (normal, lowered) = match x.is_subnormal() {
        true => (x * power_of_two(53), 53),
        false => (x, 0),
    };
    let bits = normal.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022 - lowered;
    let fraction = f64::from_bits(bits & 0x800f_ffff_ffff_ffff | 1022 << 52);
    (fraction, exponent)
}

/// The exponent; of 0 and NaN the smallest integer, of infinity the largest.
pub(super) fn ilogb(x: f64) -> i32 {
    match x {
        0.0 => i32::MIN,
        _ if x.is_nan() => i32::MIN,
        _ if x.is_infinite() => i32::MAX,
        _ => frexp(x).1 - 1,
    }
}
