//! Numbers that rows are launched with: at the ends of their types, near one, and of any bits.

use kiln::core::ir::{FloatFormat, IntrinsicDef, Scalar, ScalarKind};

use super::call::is_shuffle;

/// A bijection of integers that spreads them (the finalizer of SplitMix64).
fn spread(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How the bits of a float lie.
struct Bits {
    /// Bits of the significand that are stored.
    digits: u32,
    one: u64,
    infinity: u64,
    sign: u64,
}

impl Bits {
    fn of(scalar: Scalar, format: FloatFormat) -> Bits {
        let digits = format.precision - 1;
        Bits {
            digits,
            one: u64::from(format.max_exponent) << digits,
            infinity: u64::from(2 * format.max_exponent + 1) << digits,
            sign: 1 << (scalar.bits() - 1),
        }
    }

    /// Zero, the ends of the subnormal and of the normal numbers, what is rounded to an integer, infinity, two NaNs.
    fn edges(&self) -> Vec<u64> {
        let (unit, one) = (1 << self.digits, self.one);
        let (half, two) = (one - unit, one + unit);
        let integers = one + u64::from(self.digits) * unit;
        let quiet = self.infinity | (unit >> 1);
        let magnitudes = [
            [0, 1, unit - 1, unit],
            [half, one - 1, one, one + 1],
            [one | unit >> 1, two, two | unit >> 2, two | unit >> 1],
            [integers - unit, integers - 1, integers, integers + 1],
            [self.infinity - 1, self.infinity, quiet, quiet | 1],
        ];
        let signed = |bits: u64| [bits, bits | self.sign];
        magnitudes.into_iter().flatten().flat_map(signed).collect()
    }

    /// A number whose magnitude is from 2^-8 to 2^8.
    fn near_one(&self, random: u64) -> u64 {
        let exponent = (self.one >> self.digits) - 8 + spread(random) % 16;
        let significand = random & ((1 << self.digits) - 1);
        exponent << self.digits | significand | ((random >> 63) * self.sign)
    }

    fn is_subnormal(&self, bits: u64) -> bool {
        let magnitude = bits & (self.sign - 1);
        (1..1 << self.digits).contains(&magnitude)
    }
}

/// Whether a number is a NaN.
pub(super) fn is_nan(scalar: Scalar, bits: u64) -> bool {
    let ScalarKind::Float(format) = scalar.kind() else {
        return false;
    };
    let layout = Bits::of(scalar, format);
    bits & (layout.sign - 1) > layout.infinity
}

fn ones(scalar: Scalar) -> u64 {
    u64::MAX >> (64 - scalar.bits())
}

/// The numbers that a type ends with, and those around which functions do something else.
fn edges(scalar: Scalar) -> Vec<u64> {
    let (ones, top) = (ones(scalar), 1u64 << (scalar.bits() - 1));
    match scalar.kind() {
        ScalarKind::Bool => vec![0, 1],
        ScalarKind::Int { .. } => {
            let around = [0, top, ones];
            let around = around.map(|n| [n.wrapping_sub(1), n, n.wrapping_add(1)]);
            let more = [
                2,
                8,
                31,
                32,
                33,
                63,
                64,
                0xff,
                0x5555_5555_5555_5555,
                0x0123_4567_89ab_cdef,
            ];
            let all = around.into_iter().flatten().chain(more);
            all.map(|n| n & ones).collect()
        }
        ScalarKind::Float(format) => Bits::of(scalar, format).edges(),
    }
}

/// A number of a third of the kinds each: an edge, near one or of few digits, any.
fn random(scalar: Scalar, edges: &[u64], seed: u64) -> u64 {
    let (bits, kind) = (spread(seed), spread(!seed));
    match (kind % 3, scalar.kind()) {
        (0, _) => edges[(bits % edges.len() as u64) as usize],
        (1, ScalarKind::Float(format)) => Bits::of(scalar, format).near_one(bits),
        (1, _) => (bits >> ((kind >> 32) % 64)) & ones(scalar),
        _ => bits & ones(scalar),
    }
}

/// Of which parameter numbers are, and for whom.
pub(super) struct Input<'a> {
    pub(super) def: &'a IntrinsicDef,
    pub(super) scalar: Scalar,
    /// Another one gives other numbers.
    pub(super) seed: u64,
    /// How many numbers a block has.
    pub(super) block: usize,
}

impl Input<'_> {
    /// The bits of so many numbers: all edges first, so that of one parameter each of them is there.
    pub(super) fn numbers(&self, count: usize) -> Vec<u64> {
        let edges = edges(self.scalar);
        let first = spread(self.seed);
        let number = |i: usize| match edges.get(i) {
            Some(&edge) if !self.is_shared() => edge,
            _ => random(self.scalar, &edges, first.wrapping_add(self.place(i))),
        };
        (0..count).map(|i| self.taken(number(i))).collect()
    }

    /// Whether what threads bring is compared or voted on: all numbers being others would say little.
    fn is_shared(&self) -> bool {
        self.def.effects.meets() && !is_shuffle(self.def)
    }

    /// Threads of one place bring one number: where it is shared, all threads of a block in turn, one of two groups, each
    /// for itself.
    fn place(&self, i: usize) -> u64 {
        let (block, thread) = (i / self.block, i % self.block);
        let thread = match (self.is_shared(), block % 3) {
            (true, 0) => 0,
            (true, 1) => usize::from(spread(i as u64).is_multiple_of(5)),
            _ => thread,
        };
        (block * self.block + thread) as u64
    }

    /// The number, or one in place of those that devices may take differently:
    ///
    /// - an atomic addition of `f32` takes a subnormal number for zero on a GPU (PTX ISA, "atom");
    /// - a 16-bit float is computed with as an `f32`, and a NaN that becomes one may lose its sign, which `copysign` reads.
    fn taken(&self, bits: u64) -> u64 {
        let ScalarKind::Float(format) = self.scalar.kind() else {
            return bits;
        };
        let layout = Bits::of(self.scalar, format);
        let loses_sign = self.scalar.is_half() && self.def.name == "math.copysign";
        let differs = self.def.name.starts_with("atomic.") && layout.is_subnormal(bits)
            || loses_sign && is_nan(self.scalar, bits);
        if differs { layout.one } else { bits }
    }
}
