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

/// The exponent; of 0 minus infinity, of infinities infinity, of NaN that.
pub(super) fn logb(x: f64) -> f64 {
    match x {
        0.0 => f64::NEG_INFINITY,
        _ if x.is_finite() => f64::from(ilogb(x)),
        _ => x.abs(),
    }
}

/// An angle in half turns less a multiple of a quarter turn, at most an eighth of a turn, and that multiple.
fn half_turns(x: f64) -> (f64, i32) {
    let rest = x - 2.0 * (x * 0.5).round_ties_even();
    let quadrant = (rest * 2.0).round_ties_even();
    (rest - 0.5 * quadrant, quadrant as i32)
}

/// The sine of the angle and so many quarter turns.
fn turned((rest, quadrant): (f64, i32), quadrants: i32) -> f64 {
    let (sine, cosine) = (rest * std::f64::consts::PI).sin_cos();
    match (quadrant + quadrants) & 3 {
        0 => sine,
        1 => cosine,
        2 => -sine,
        _ => -cosine,
    }
}

/// `sin(pi x)`.
pub(super) fn sin_pi(x: f64) -> f64 {
    match turned(half_turns(x), 0) {
        0.0 => 0f64.copysign(x),
        sine => sine,
    }
}

/// `cos(pi x)`.
pub(super) fn cos_pi(x: f64) -> f64 {
    // Of minus zero it is zero.
    turned(half_turns(x), 1) + 0.0
}

/// The fraction and the integer next to zero, both with the sign of the number.
pub(super) fn modf(x: f64) -> (f64, f64) {
    let fraction = if x.is_infinite() { 0.0 } else { x.fract() };
    (fraction.copysign(x), x.trunc())
}

/// `1 / hypot(x, y)`.
pub(super) fn rhypot(x: f64, y: f64) -> f64 {
    let scale = match x.abs().max(y.abs()) {
        long if long > 1.0 => 0.5,
        long if long < power_of_two(-450) => power_of_two(450),
        _ => 1.0,
    };
    scale / (x * scale).hypot(y * scale)
}

/// The remainder of the division by the integer that is nearest to the quotient, of two the even one, and the lowest
/// three bits of that with its sign.
pub(super) fn remquo(x: f64, y: f64) -> (f64, i32) {
    let b = y.abs();
    let (mut rest, mut quotient) = (x.abs() % (8.0 * b), 0);
    for n in [4, 2] {
        let multiple = f64::from(n) * b;
        if rest >= multiple {
            (rest, quotient) = (rest - multiple, quotient + n);
        }
    }
    if 2.0 * rest > b {
        (rest, quotient) = (rest - b, quotient + 1);
        if 2.0 * rest >= b {
            (rest, quotient) = (rest - b, quotient + 1);
        }
    }
    let (quotient, sign) = (quotient & 7, 1f64.copysign(x));
    let negative = sign != 1f64.copysign(y);
    (rest * sign, if negative { -quotient } else { quotient })
}
