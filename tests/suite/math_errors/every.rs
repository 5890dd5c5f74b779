//! How far functions of one `f32` are from the exact results, at every number there is: beside the same functions of `f64`,
//! whose own errors are 2^-26 units in the last place of `f32` at most.
//!
//! Numbers are tried in an order in which the first ones are spread over all, so that a few of them say something, too. A
//! result that is infinite is taken for 2^128, which the largest number is a unit below. The logarithm of the gamma function
//! takes negative arguments by a name of its own.

use kiln::prelude::*;

use super::{BLOCK, Function, Seen, THREADS, Trial, launches, table_row};

/// How many numbers there are.
pub const ALL: u64 = 1 << 32;

/// The largest error of what they are compared with, in units in the last place of `f32`.
pub const OF_DOUBLES: f64 = 1.0 / (1 << 26) as f64;

/// An odd factor, by which 32-bit integers go around all of them (Knuth, "The Art of Computer Programming", 6.4: the golden
/// ratio).
const SPREAD: u64 = 0x9e37_79b1;

/// What the table of errors says of a function's results in `f32`, in units in the last place; `None` where it has no row.
pub fn documented(f: &Function) -> Option<f64> {
    let [of_f32, _] = table_row(f)?;
    Some(of_f32)
}

impl Function {
    /// Tries the function of `f32` at so many numbers or somewhat more, at all if they are [`ALL`].
    ///
    /// # Errors
    /// Those of compiling and of the launches.
    pub fn sweep_f32(&self, jit: &Jit, points: u64) -> kiln::Result<Seen> {
        launches(jit, &self.kernel_f32()?, points, 0)
    }

    fn kernel_f32(&self) -> kiln::Result<Kernel> {
        Kernel::build(&format!("{}_f32", self.name), |k| {
            let trial = Trial::declare(k);
            let (i, threads) = (k.global_id().x(), k.grid_dim().x() * BLOCK);
            k.for_range(0u32, trial.rounds, |n| {
                let number = trial.first.cast(Type::U32) + n * threads + i;
                let x = (number * SPREAD as u32).bitcast(Type::F32);
                let exact = (self.tried)(x.cast(Type::F64));
                let (result, least) = ((self.tried)(x), self.least(x.cast(Type::F64)));
                let error = error(result.cast(Type::F64), exact, least);
                let is_left_out = match self.name {
                    "ln_gamma" => x.lt(k.lit(Type::F32, 0.0)),
                    _ => k.lit(Type::BOOL, false),
                };
                trial.note(x.cast(Type::F64), error, is_left_out);
            });
            trial.end(i);
        })
    }
}

/// How far a result is from the exact one, in units in the last place of `f32`, that of a `least` number where it is less; infinite
/// where one alone is no number.
fn error<'k>(result: Val<'k>, exact: Val<'k>, least: Val<'k>) -> Val<'k> {
    let k = result.builder();
    let float = |value: f64| k.lit(Type::F64, value);
    let word = |bits: u64| k.lit(Type::U64, bits);
    let finite = |x: Val<'k>| x.max(float(-(128f64.exp2()))).min(float(128f64.exp2()));
    let (is_nan, is_wrong) = (exact.ne(exact), result.ne(result));
    // Units are those of the smallest and of the largest exponent beyond these.
    let size = exact.abs().max(least).bitcast(Type::U64);
    let exponent = (size >> 52u32).max(word(1023 - 126)).min(word(1023 + 127));
    let unit = ((exponent - word(23)) << 52u32).bitcast(Type::F64);
    let error = (finite(result) - finite(exact)).abs() / unit;
    let numbers = (is_nan | is_wrong).select(float(f64::INFINITY), error);
    (is_nan & is_wrong).select(float(0.0), numbers)
}

/// Launches take whole rounds of all threads, of which the numbers are a multiple.
const _: () = assert!(ALL.is_multiple_of(THREADS));
