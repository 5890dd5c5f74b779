//! How far functions of one `f64` are from the exact results: at as many points as one likes, against references of twice
//! the digits that the device computes itself.
//!
//! A function is compared as a kernel calls it, and the reference is a kernel, too, of nothing but sums, products,
//! quotients and square roots ([`pair`]). What it gives is off by 2^-30 units in the last place of `f64` at most
//! ([`OF_REFERENCE`]), as `tests/math_pairs.rs` shows by MPFR. No more may a function be off than the table says that users
//! read (`device-stdlib/src/math/errors.md`).
//!
//! The functions are all of one number that the table has but [those without a reference](WITHOUT), which are exact; of
//! the logarithm of the gamma function numbers from 0.75 to 4 are left out. Sine, cosine and tangent are tried a second time, of
//! numbers from 2^30 on, whose multiple of pi takes integers of the reference. The logarithm of the gamma function of a negative
//! number `x` has zeros that are no numbers, and units are at least those of the one of `1 - x`, of which it is what is left.
//!
//! Half of the points have any exponent that a function's arguments have, each as often as another one, the others lie
//! evenly in an interval. Left out are arguments whose results are so small that digits of the reference are lost.

pub mod every;
pub mod pair;
mod references;

use kiln::prelude::*;
use pair::Pair;

/// The largest error of a reference, in units in the last place of `f64`.
pub const OF_REFERENCE: f64 = 1.0 / (1 << 30) as f64;

/// Threads of a launch, if there are as many points.
const THREADS: u64 = 1 << 17;
const BLOCK: u32 = 128;
/// The most points of a thread in a launch.
const ROUNDS: u64 = 1 << 10;
/// Below this magnitude digits of a reference are lost: its second part, and what is lost of a product, is subnormal.
const LEAST: f64 = 1e-280;

/// A function of one number, and its reference.
#[derive(Copy, Clone)]
pub struct Function {
    /// What it is called.
    pub name: &'static str,
    /// What its row in the table of errors begins with.
    pub row: &'static str,
    tried: for<'k> fn(Val<'k>) -> Val<'k>,
    reference: for<'k> fn(Val<'k>) -> Pair<'k>,
    /// The least and the largest exponent of arguments.
    exponents: [i64; 2],
    /// Whether those may be negative.
    is_signed: bool,
    /// Where arguments lie evenly.
    interval: [f64; 2],
}

macro_rules! functions {
    ($($name:ident $sign:tt 2^$from:literal..$to:literal, $low:literal..$high:literal;)*) => {
        &[$(Function {
            name: stringify!($name),
            row: functions!(@row $name),
            tried: |x| functions!(@of x $name),
            reference: references::$name,
            exponents: [$from, $to],
            is_signed: functions!(@is_signed $sign),
            interval: [$low, $high],
        }),*]
    };
    // Besides there is the sign of the gamma function.
    (@of $x:ident ln_gamma) => { $x.ln_gamma().field("0") };
    (@of $x:ident ln_gamma_of_negative) => { (-$x.abs()).ln_gamma().field("0") };
    (@of $x:ident sin_of_large) => { $x.sin() };
    (@of $x:ident cos_of_large) => { $x.cos() };
    (@of $x:ident tan_of_large) => { $x.tan() };
    (@row ln_gamma) => { "`ln_gamma` of positive numbers" };
    (@row ln_gamma_of_negative) => { "`ln_gamma` of negative numbers" };
    (@row sin_of_large) => { "`sin`" };
    (@row cos_of_large) => { "`cos`" };
    (@row tan_of_large) => { "`tan`" };
    (@row $name:ident) => { concat!("`", stringify!($name), "`") };
    (@of $x:ident $name:ident) => { $x.$name() };
    (@is_signed +) => { false };
    (@is_signed -) => { true };
}

/// The functions: of positive numbers (`+`) or of any (`-`), with the exponents and the interval of their arguments.
pub const FUNCTIONS: &[Function] = functions! {
    recip - 2^-900..900, -4.0..4.0;
    sqrt + 2^-900..1020, 0.5..4.0;
    rsqrt + 2^-900..1020, 0.5..4.0;
    cbrt - 2^-900..900, -8.0..8.0;
    rcbrt - 2^-900..900, -8.0..8.0;
    exp - 2^-60..8, -640.0..709.0;
    exp2 - 2^-60..8, -920.0..1023.0;
    exp10 - 2^-60..7, -278.0..308.0;
    exp_m1 - 2^-60..8, -40.0..709.0;
    ln + 2^-1000..1020, 0.5..2.0;
    log2 + 2^-1000..1020, 0.5..2.0;
    log10 + 2^-1000..1020, 0.5..2.0;
    ln_1p + 2^-60..1000, -0.999..2.0;
    sin - 2^-60..29, -100.0..100.0;
    cos - 2^-60..29, -100.0..100.0;
    tan - 2^-60..29, -100.0..100.0;
    sin_of_large - 2^30..1023, 1e9..1e15;
    cos_of_large - 2^30..1023, 1e9..1e15;
    tan_of_large - 2^30..1023, 1e9..1e15;
    sin_pi - 2^-60..40, -4.0..4.0;
    cos_pi - 2^-60..40, -4.0..4.0;
    asin - 2^-60..-1, -0.999_999..0.999_999;
    acos - 2^-60..-1, -0.999_999..0.999_999;
    atan - 2^-60..60, -4.0..4.0;
    sinh - 2^-60..8, -700.0..700.0;
    cosh - 2^-60..8, -700.0..700.0;
    tanh - 2^-60..4, -20.0..20.0;
    asinh - 2^-60..400, -4.0..4.0;
    acosh + 2^0..400, 1.0..3.0;
    atanh - 2^-60..-1, -0.999_999..0.999_999;
    erf - 2^-60..2, -6.0..6.0;
    erfc - 2^-60..4, -6.0..25.0;
    erfcx - 2^-60..3, -20.0..100.0;
    erf_inv - 2^-60..-1, -0.999_999..0.999_999;
    erfc_inv + 2^-900..-1, 1e-6..1.999_999;
    normcdf - 2^-60..4, -35.0..8.0;
    normcdf_inv + 2^-900..-2, 1e-6..0.999_999;
    gamma - 2^-60..6, -170.5..171.5;
    ln_gamma + 2^2..900, 1e-3..0.75;
    ln_gamma_of_negative + 2^-60..20, 1e-3..12.0;
};

/// The functions of one number in the table of errors that have no reference here, and why.
pub const WITHOUT: &[(&str, &str)] = &[
    ("floor", "exact"),
    ("ceil", "exact"),
    ("trunc", "exact"),
    ("round", "exact"),
    ("round_ties_even", "exact"),
    ("fract", "exact"),
    ("logb", "exact"),
    (
        "sin_cos",
        "the results of `sin` and `cos`, which the suite compares with it",
    ),
];

/// What the table of errors says of a function's results in `f64`, in units in the last place; `None` where it has no row.
pub fn documented(f: &Function) -> Option<f64> {
    let [_, of_f64] = table_row(f)?;
    Some(of_f64)
}

/// What the table of errors says of results in `f32` and in `f64`.
fn table_row(f: &Function) -> Option<[f64; 2]> {
    let table = include_str!("../../../device-stdlib/src/math/errors.md");
    let start = format!("| {} ", f.row);
    let row = table.lines().find(|line| line.starts_with(&start))?;
    let mut bounds = row.trim_end_matches('|').rsplit('|');
    let mut bound = || match bounds.next()?.trim() {
        "exact" => Some(0.0),
        "rounded once" => Some(0.5),
        number => number.parse().ok(),
    };
    let of_f64 = bound()?;
    Some([bound()?, of_f64])
}

/// What was seen of a function.
#[derive(Copy, Clone, Debug)]
pub struct Seen {
    /// The largest error, in units in the last place of the exact result.
    pub error: f64,
    /// The argument where.
    pub at: f64,
    /// How many points were tried.
    pub points: u64,
    /// How many of them were left out, as the result is too small.
    pub left_out: u64,
}

/// Whether a reference has all its digits.
pub fn is_told(reference: f64) -> bool {
    reference.abs() >= LEAST
}

/// A `Jit` that rounds each operation by itself, as references need it.
pub fn jit(device: Device) -> Jit {
    let mut options = JitOptions::default();
    options.compile.contract = false;
    Jit::with(device, kiln::hooks::standard(), options)
}

impl Function {
    /// A copy that tries another function against the reference.
    pub fn trying(self, tried: for<'k> fn(Val<'k>) -> Val<'k>) -> Function {
        Function { tried, ..self }
    }

    /// Whether a number is among the arguments.
    pub fn takes(&self, x: f64) -> bool {
        let ([from, to], [low, high]) = (self.exponents, self.interval);
        let exponent = (x.to_bits() >> 52 & 2047) as i64 - 1023;
        let has_sign = self.is_signed || x.is_sign_positive();
        (from..=to).contains(&exponent) && has_sign || (low..=high).contains(&x) && exponent >= from
    }

    /// The number whose unit counts for results that are less, of an argument.
    fn least<'k>(&self, x: Val<'k>) -> Val<'k> {
        match self.name {
            "ln_gamma_of_negative" => (x.abs() + 1.0).ln_gamma().field("0").abs(),
            _ => x.builder().lit(Type::F64, 0.0),
        }
    }

    /// Whether it is tried in `f32` at every number, and not a second time.
    pub fn has_singles(&self) -> bool {
        !self.name.ends_with("_of_large")
    }

    /// Some of the points that are tried with a seed.
    ///
    /// # Errors
    /// Those of compiling and of the launch.
    pub fn arguments(&self, jit: &Jit, count: usize, seed: u64) -> kiln::Result<Vec<f64>> {
        let kernel = Kernel::build("arguments", |k| {
            let (x, seed) = (k.slice_mut("x", Type::F64), k.param("seed", Type::U64));
            let i = k.global_id().x();
            k.if_(i.lt(x.len()), || {
                x.at(i).set(self.point(spread(seed + i.cast(Type::U64))));
            });
        })?;
        let mut x = jit.zeros::<f64>(count)?;
        jit.launch(&kernel, grid_for(count, BLOCK), BLOCK, args!(&mut x, seed))?;
        x.to_vec()
    }

    /// The reference for each number, rounded and what is lost of it.
    ///
    /// # Errors
    /// Those of compiling and of the launch.
    pub fn references(&self, jit: &Jit, numbers: &[f64]) -> kiln::Result<[Vec<f64>; 2]> {
        let kernel = Kernel::build("references", |k| {
            let x = k.slice("x", Type::F64);
            let [high, low] = ["high", "low"].map(|name| k.slice_mut(name, Type::F64));
            let i = k.global_id().x();
            k.if_(i.lt(x.len()), || {
                let pair = (self.reference)(x.at(i).get());
                high.at(i).set(pair.high);
                low.at(i).set(pair.low);
            });
        })?;
        let x = jit.upload(numbers)?;
        let [mut high, mut low] = [jit.upload(numbers)?, jit.upload(numbers)?];
        let grid = grid_for(numbers.len(), BLOCK);
        jit.launch(&kernel, grid, BLOCK, args!(&x, &mut high, &mut low))?;
        Ok([high.to_vec()?, low.to_vec()?])
    }

    /// Tries the function at so many points or somewhat more.
    ///
    /// # Errors
    /// Those of compiling and of the launches.
    pub fn sweep(&self, jit: &Jit, points: u64, seed: u64) -> kiln::Result<Seen> {
        // What seeds and launches begin with lies so far apart that no two have a point in common.
        let first = seed.wrapping_mul(0xd134_2543_de82_ef95);
        launches(jit, &self.kernel()?, points, first)
    }

    /// Each thread tries the function at so many points, and tells the largest error and where that is.
    fn kernel(&self) -> kiln::Result<Kernel> {
        Kernel::build(self.name, |k| {
            let trial = Trial::declare(k);
            let i = k.global_id().x();
            let own = trial.first + i.cast(Type::U64) * k.lit(Type::U64, ROUNDS);
            k.for_range(0u32, trial.rounds, |n| {
                let x = self.point(spread(own + n.cast(Type::U64)));
                let reference = (self.reference)(x);
                let error = error((self.tried)(x), reference, self.least(x));
                trial.note(x, error, reference.high.abs().lt(LEAST));
            });
            trial.end(i);
        })
    }

    /// The argument that random bits stand for: of any exponent, or in the interval.
    fn point<'k>(&self, random: Val<'k>) -> Val<'k> {
        let k = random.builder();
        let ([from, to], [low, high]) = (self.exponents, self.interval);
        let word = |bits: i64| k.lit(Type::U64, bits.cast_unsigned());
        let exponent = spread(random) % word(to - from + 1) + word(from + 1023);
        let sign = match self.is_signed {
            true => (random & 2) << 62,
            false => word(0),
        };
        let spaced = sign | exponent << 52 | random >> 12;
        let unit = (random >> 11).cast(Type::F64) * (0.5f64).powi(53);
        let even = unit.mul_add(k.lit(Type::F64, high - low), k.lit(Type::F64, low));
        (random & 1).eq(1).select(even, spaced.bitcast(Type::F64))
    }
}

/// The parameters of a kernel that tries a function, and what a thread has seen.
struct Trial<'k> {
    k: &'k KernelBuilder,
    /// What the launch begins with, and how many points a thread tries.
    first: Val<'k>,
    rounds: Val<'k>,
    errors: Val<'k>,
    places: Val<'k>,
    counts: Val<'k>,
    worst: Var<'k>,
    place: Var<'k>,
    left_out: Var<'k>,
}

impl<'k> Trial<'k> {
    fn declare(k: &'k KernelBuilder) -> Trial<'k> {
        let (first, rounds) = (k.param("first", Type::U64), k.param("rounds", Type::U32));
        let [errors, places] = ["error", "at"].map(|name| k.slice_mut(name, Type::F64));
        let counts = k.slice_mut("left_out", Type::U32);
        let [worst, place] = ["worst", "place"].map(|name| k.var(name, 0.0f64));
        let left_out = k.var("left_out", 0u32);
        Trial {
            k,
            first,
            rounds,
            errors,
            places,
            counts,
            worst,
            place,
            left_out,
        }
    }

    /// Notes how far the result of an argument is off, unless it is left out.
    fn note(&self, x: Val<'k>, error: Val<'k>, is_left_out: Val<'k>) {
        let k = self.k;
        k.if_(is_left_out, || self.left_out.set(self.left_out.get() + 1))
            .else_(|| {
                k.if_(error.gt(self.worst.get()), || {
                    self.worst.set(error);
                    self.place.set(x);
                });
            });
    }

    /// Tells what was seen.
    fn end(&self, thread: Val<'k>) {
        self.errors.at(thread).set(self.worst.get());
        self.places.at(thread).set(self.place.get());
        self.counts.at(thread).set(self.left_out.get());
    }
}

/// Launches a kernel that tries a function until so many points or somewhat more are tried.
fn launches(jit: &Jit, kernel: &Kernel, points: u64, mut first: u64) -> kiln::Result<Seen> {
    let threads = points.clamp(1, THREADS).next_multiple_of(BLOCK.into());
    let mut seen = Seen {
        error: 0.0,
        at: f64::NAN,
        points: 0,
        left_out: 0,
    };
    let len = threads as usize;
    let [mut error, mut at] = [jit.zeros::<f64>(len)?, jit.zeros::<f64>(len)?];
    let mut left_out = jit.zeros::<u32>(len)?;
    while seen.points < points {
        let rounds = (points - seen.points).div_ceil(threads).min(ROUNDS);
        let args = args!(first, rounds as u32, &mut error, &mut at, &mut left_out);
        jit.launch(kernel, (threads / u64::from(BLOCK)) as u32, BLOCK, args)?;
        first = first.wrapping_add(THREADS * ROUNDS);
        seen.points += rounds * threads;
        let counts = left_out.to_vec()?;
        seen.left_out += counts.iter().map(|&n| u64::from(n)).sum::<u64>();
        for (error, at) in error.to_vec()?.into_iter().zip(at.to_vec()?) {
            if error > seen.error {
                (seen.error, seen.at) = (error, at);
            }
        }
    }
    Ok(seen)
}

/// A bijection of integers that spreads them (the finalizer of SplitMix64).
fn spread(seed: Val<'_>) -> Val<'_> {
    let k = seed.builder();
    let word = |bits: u64| k.lit(Type::U64, bits);
    let z = seed * word(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)) * word(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)) * word(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How far a result is from the reference, in units in the last place of that, or of a `least` number where it is less; of what
/// cannot be told infinite.
fn error<'k>(result: Val<'k>, reference: Pair<'k>, least: Val<'k>) -> Val<'k> {
    let k = result.builder();
    let size = reference.high.abs().max(least);
    let exponent = size.bitcast(Type::U64) & k.lit(Type::U64, 2047u64 << 52);
    // Results are no smaller than that a unit is a normal number.
    let unit = (exponent - k.lit(Type::U64, 52u64 << 52)).bitcast(Type::F64);
    let error = ((result - reference.high) - reference.low).abs() / unit;
    error
        .eq(error)
        .select(error, k.lit(Type::F64, f64::INFINITY))
}
