//! Random numbers (cuRAND's device API): generators whose state is a value of the thread, by their definitions, so that
//! a seed gives the same numbers on every device and on the host.
//!
//! | generator | state | what it is good for |
//! |---|---|---|
//! | [`Philox`] | 48 bytes | each thread, each element has a stream of its own, and any place in it at once |
//! | [`Xoroshiro`] | 16 bytes | many numbers a thread, of 64 bits; a state that is kept in a buffer between launches |
//!
//! Neither is for secrets. A thread makes its generator from the seed of the whole launch and a number of its own, the
//! stream:
//!
//! ```
//! use kiln::prelude::*;
//! use kiln::stdlib::random::Philox;
//!
//! #[kernel]
//! fn noise(x: &mut [f32], dice: &mut [u32], seed: u64) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         let mut random = Philox::new(seed, i as u64);
//!         x[i] = random.normal_f32();
//!         dice[i] = 1 + random.below(6);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut x, mut dice) = (jit.zeros(4)?, jit.zeros(4)?);
//! noise.launch(&jit, (1, 32), &mut x, &mut dice, 2024)?;
//! // On the host: the same generator, here that of thread 3.
//! let mut random = Philox::new(2024, 3);
//! assert!((x.to_vec()?[3] - random.normal_f32()).abs() < 1e-6);
//! assert_eq!(dice.to_vec()?[3], 1 + random.below(6));
//! # Ok(())
//! # }
//! ```
//!
//! Every distribution, here of the other generator:
//!
//! ```
//! use kiln::prelude::*;
//! use kiln::stdlib::random::Xoroshiro;
//!
//! #[kernel]
//! fn draw(integers: &mut [i64], floats: &mut [f64], random: &mut [Xoroshiro]) {
//!     let mut mine = random[0];
//!     integers[0] = mine.below(10) as i64;
//!     integers[1] = mine.below_u64(10) as i64;
//!     integers[2] = mine.range_i32(0, 10) as i64;
//!     integers[3] = mine.range_i64(0, 10);
//!     floats[0] = mine.uniform_f32() as f64;
//!     floats[1] = mine.uniform_f64();
//!     floats[2] = mine.normal_f32() as f64;
//!     floats[3] = mine.normal_f64();
//!     let (single, double) = (mine.normal_pair_f32(), mine.normal_pair_f64());
//!     (floats[4], floats[5]) = (single.0 as f64 + single.1 as f64, double.0 + double.1);
//!     random[0] = mine; // for the next launch
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut integers, mut floats) = (jit.zeros(4)?, jit.zeros(6)?);
//! let mut random = jit.upload(&[Xoroshiro::new(7, 0)])?;
//! draw.launch(&jit, (1, 1), &mut integers, &mut floats, &mut random)?;
//! assert!(integers.to_vec()?.iter().all(|n| (0..10).contains(n)));
//! assert!(floats.to_vec()?[..2].iter().all(|x| (0.0..1.0).contains(x)));
//! # Ok(())
//! # }
//! ```
//!
//! Both have the same methods:
//!
//! | method | what it gives | takes of the stream |
//! |---|---|---|
//! | `next_u32`, `next_u64` | all integers alike | one number; of Philox `next_u64` two |
//! | `uniform_f32`, `uniform_f64` | from 0 to 1, without 1: multiples of 2^-24 and of 2^-53 | `next_u32`, `next_u64` |
//! | `normal_f32`, `normal_f64` | mean 0, standard deviation 1 | two of these |
//! | `normal_pair_f32`, `normal_pair_f64` | two independent ones | two of these |
//! | `below(n)`, `below_u64(n)` | integers below `n`, all alike | `next_u32`, `next_u64`; rarely more |
//! | `range_i32(a, b)`, `range_i64(a, b)` | integers from `a` on, below `b`, all alike | the same |
//!
//! Integers and uniform numbers have the same bits everywhere. Normal ones are made by the method of Box and Muller of
//! the library's logarithm, sine and cosine, whose bits all devices share; those of the host are the platform's, so
//! there the last bits may differ.

use kiln_kernel_macro::{KernelType, device_fn};

use crate::integer::words::mul_hi;

/// What Philox multiplies by (table 2 of the paper).
const FACTORS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// What Philox adds to the key after each round: the golden ratio, and the root of 3 less 1.
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011): four numbers
/// that a counter and a key stand for. Nothing has to be kept: it is a function.
///
/// ```
/// use kiln::stdlib::random::philox4x32_10;
///
/// assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
/// ```
#[device_fn]
#[inline(always)]
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut a, mut b, mut c, mut d) = (counter[0], counter[1], counter[2], counter[3]);
    let (mut k, mut l) = (key[0], key[1]);
    #[unroll]
    for _ in 0..10 {
        let first = FACTORS[0] as u64 * a as u64;
        let second = FACTORS[1] as u64 * c as u64;
        a = (second >> 32) as u32 ^ b ^ k;
        b = second as u32;
        c = (first >> 32) as u32 ^ d ^ l;
        d = first as u32;
        k = k.wrapping_add(WEYL[0]);
        l = l.wrapping_add(WEYL[1]);
    }
    [a, b, c, d]
}

/// A stream of Philox4x32-10: the seed is the key, the stream the upper half of the counter, whose lower half counts.
/// So it has 2^66 numbers, any of which is at hand without those before it ([`skip`](Self::skip)); the `u32` are those
/// of cuRAND's `curandStatePhilox4_32_10_t` after `curand_init(seed, stream, 0, &state)`.
#[derive(KernelType, Copy, Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Philox {
    seed: u64,
    stream: u64,
    /// The counter of the next four numbers.
    next: u64,
    /// The numbers that are made and not taken, first those that come next.
    made: [u32; 4],
    /// How many these are.
    left: u32,
}

#[device_fn]
impl Philox {
    /// The stream of this number that a seed has, from its start.
    ///
    /// ```
    /// use kiln::stdlib::random::Philox;
    ///
    /// assert_ne!(Philox::new(7, 0).next_u32(), Philox::new(7, 1).next_u32());
    /// ```
    #[inline(always)]
    pub fn new(seed: u64, stream: u64) -> Self {
        Self {
            seed,
            stream,
            next: 0,
            made: [0; 4],
            left: 0,
        }
    }

    /// The next number of 32 bits.
    ///
    /// ```
    /// use kiln::stdlib::random::Philox;
    ///
    /// assert_eq!(Philox::new(0, 0).next_u32(), 0x6627_e8d5);
    /// ```
    #[inline(always)]
    pub fn next_u32(&mut self) -> u32 {
        if self.left == 0 {
            self.made = self.next_four();
            self.left = 4;
        }
        let number = self.made[0];
        self.drop_one();
        number
    }

    /// The next number of 64 bits: two of 32, the first one the lower half.
    ///
    /// ```
    /// use kiln::stdlib::random::Philox;
    ///
    /// assert_eq!(Philox::new(0, 0).next_u64(), 0xe169_c58d_6627_e8d5);
    /// ```
    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        let low = self.next_u32() as u64;
        low | (self.next_u32() as u64) << 32
    }

    /// Four numbers at once, which cost what one costs: those of the next counter. What was left of the counter before
    /// is passed over, so that a stream that is read by this method alone has all of its numbers.
    ///
    /// ```
    /// use kiln::stdlib::random::Philox;
    ///
    /// let (mut one, mut four) = (Philox::new(7, 0), Philox::new(7, 0));
    /// assert_eq!(four.next_u32x4(), [(); 4].map(|()| one.next_u32()));
    /// ```
    #[inline(always)]
    pub fn next_u32x4(&mut self) -> [u32; 4] {
        self.left = 0;
        self.next_four()
    }

    /// Passes over this many numbers of 32 bits, however many they are at the cost of one.
    ///
    /// ```
    /// use kiln::stdlib::random::Philox;
    ///
    /// let mut far = Philox::new(7, 0);
    /// far.skip(1_000_000_000_001);
    /// let mut back = Philox::new(7, 0);
    /// back.skip(1_000_000_000_000);
    /// back.next_u32();
    /// assert_eq!(far.next_u32(), back.next_u32());
    /// ```
    #[inline(always)]
    pub fn skip(&mut self, numbers: u64) {
        let taken = (4 - self.left) % 4;
        if self.left != 0 {
            self.next = self.next.wrapping_sub(1);
        }
        // How many of four are taken then.
        let taken = taken + (numbers % 4) as u32;
        self.next = self
            .next
            .wrapping_add(numbers / 4)
            .wrapping_add((taken / 4) as u64);
        self.left = 0;
        if taken % 4 != 0 {
            self.made = self.next_four();
            self.left = 4;
            for _ in 0..taken % 4 {
                self.drop_one();
            }
        }
    }

    /// The numbers of the next counter.
    #[inline(always)]
    fn next_four(&mut self) -> [u32; 4] {
        let (next, stream, seed) = (self.next, self.stream, self.seed);
        self.next = next.wrapping_add(1);
        philox4x32_10(
            [
                next as u32,
                (next >> 32) as u32,
                stream as u32,
                (stream >> 32) as u32,
            ],
            [seed as u32, (seed >> 32) as u32],
        )
    }

    /// Takes the first number that is made: the others move up, as an array in registers has no index.
    #[inline(always)]
    fn drop_one(&mut self) {
        self.made = [self.made[1], self.made[2], self.made[3], 0];
        self.left -= 1;
    }
}

/// xoroshiro128++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021): numbers of 64 bits, of
/// which there are 2^128 - 1 before they repeat.
#[derive(KernelType, Copy, Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Xoroshiro {
    state: [u64; 2],
}

#[device_fn]
impl Xoroshiro {
    /// A generator whose state is drawn from a seed and the number of a stream (by SplitMix64, of their sum after the
    /// stream went through it). Streams are parts of one sequence that begin anywhere: that two of 2^32 streams of 2^32
    /// numbers meet has a chance of 2^-32. [`jump`](Self::jump) makes streams that do not.
    ///
    /// ```
    /// use kiln::stdlib::random::Xoroshiro;
    ///
    /// assert_ne!(Xoroshiro::new(7, 0).next_u64(), Xoroshiro::new(7, 1).next_u64());
    /// ```
    #[inline(always)]
    pub fn new(seed: u64, stream: u64) -> Self {
        // Of stream 0 it is 0: that stream is what others make of the seed.
        let start = seed.wrapping_add(splitmix_mixed(stream));
        Self {
            state: [
                splitmix_mixed(start.wrapping_add(GOLDEN)),
                splitmix_mixed(start.wrapping_add(GOLDEN.wrapping_mul(2))),
            ],
        }
    }

    /// The generator with this state, which is not all zeros: of that all numbers would be 0.
    ///
    /// ```
    /// use kiln::stdlib::random::Xoroshiro;
    ///
    /// assert_eq!(Xoroshiro::from_state([1, 2]).next_u64(), 393_217);
    /// ```
    #[inline(always)]
    pub fn from_state(state: [u64; 2]) -> Self {
        assert!(
            state[0] != 0 || state[1] != 0,
            "a generator whose state is 0 gives nothing but 0"
        );
        Self { state }
    }

    /// The next number of 64 bits.
    ///
    /// ```
    /// use kiln::stdlib::random::Xoroshiro;
    ///
    /// assert_eq!(Xoroshiro::new(0, 0).next_u64(), 0x6f68_e1e7_e264_6ee1);
    /// ```
    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        let (first, mut second) = (self.state[0], self.state[1]);
        let number = first
            .wrapping_add(second)
            .rotate_left(17)
            .wrapping_add(first);
        second ^= first;
        self.state = [
            first.rotate_left(49) ^ second ^ (second << 21),
            second.rotate_left(28),
        ];
        number
    }

    /// The next number of 32 bits: the upper half of one of 64.
    ///
    /// ```
    /// use kiln::stdlib::random::Xoroshiro;
    ///
    /// assert_eq!(Xoroshiro::new(0, 0).next_u32(), 0x6f68_e1e7);
    /// ```
    #[inline(always)]
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Passes over 2^64 numbers, at the cost of 128: each jump begins a stream that no stream before comes to.
    ///
    /// ```
    /// use kiln::stdlib::random::Xoroshiro;
    ///
    /// let mut streams = [Xoroshiro::new(7, 0); 2];
    /// streams[1].jump();
    /// assert_ne!(streams[0].next_u64(), streams[1].next_u64());
    /// ```
    pub fn jump(&mut self) {
        self.multiply([0x2bd7_a6a6_e99c_2ddc, 0x0992_ccaf_6a6f_ca05]);
    }

    /// Passes over 2^96 numbers, at the cost of 128: 2^32 jumps.
    ///
    /// ```
    /// use kiln::stdlib::random::Xoroshiro;
    ///
    /// let mut of_devices = [Xoroshiro::new(7, 0); 2];
    /// of_devices[1].long_jump();
    /// assert_ne!(of_devices[0].next_u64(), of_devices[1].next_u64());
    /// ```
    pub fn long_jump(&mut self) {
        self.multiply([0x360f_d5f2_cf8d_5d99, 0x9c6e_6877_736c_46e3]);
    }

    /// What a polynomial of the step over the field of two elements makes of the state.
    fn multiply(&mut self, polynomial: [u64; 2]) {
        let mut sum = [0, 0];
        for i in 0..128u32 {
            let word = if i < 64 { polynomial[0] } else { polynomial[1] };
            if word >> (i % 64) & 1 != 0 {
                sum = [sum[0] ^ self.state[0], sum[1] ^ self.state[1]];
            }
            self.next_u64();
        }
        self.state = sum;
    }
}

/// What SplitMix64 adds for each number.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that SplitMix64 makes of its state (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014; the constants are Stafford's).
#[device_fn]
#[inline(always)]
fn splitmix_mixed(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 2^-24, 2^-32, 2^-33 and 2^-53, 2^-64, 2^-65.
const UNIFORM_F32: f32 = 1.0 / (1 << 24) as f32;
const OPEN_F32: [f32; 2] = [1.0 / (1u64 << 32) as f32, 0.5 / (1u64 << 32) as f32];
const UNIFORM_F64: f64 = 1.0 / (1u64 << 53) as f64;
const OPEN_F64: [f64; 2] = [1.0 / (1u128 << 64) as f64, 0.5 / (1u128 << 64) as f64];

/// What all generators have: distributions.
macro_rules! distributions {
    ($($generator:ident)*) => {$(
        #[device_fn]
        impl $generator {
            /// A number from 0 to 1 without 1, one of the multiples of 2^-24.
            #[inline(always)]
            pub fn uniform_f32(&mut self) -> f32 {
                (self.next_u32() >> 8) as f32 * UNIFORM_F32
            }

            /// A number from 0 to 1 without 1, one of the multiples of 2^-53.
            #[inline(always)]
            pub fn uniform_f64(&mut self) -> f64 {
                (self.next_u64() >> 11) as f64 * UNIFORM_F64
            }

            /// A number of the normal distribution, of mean 0 and standard deviation 1; at most 6.8 in magnitude.
            /// [`normal_pair_f32`](Self::normal_pair_f32) gives two for the same price.
            #[inline(always)]
            pub fn normal_f32(&mut self) -> f32 {
                let (first, _) = self.normal_pair_f32();
                first
            }

            /// A number of the normal distribution, of mean 0 and standard deviation 1; at most 9.5 in magnitude.
            /// [`normal_pair_f64`](Self::normal_pair_f64) gives two for the same price.
            #[inline(always)]
            pub fn normal_f64(&mut self) -> f64 {
                let (first, _) = self.normal_pair_f64();
                first
            }

            /// Two independent numbers of the normal distribution (Box and Muller, 1958).
            #[inline(always)]
            pub fn normal_pair_f32(&mut self) -> (f32, f32) {
                // Never 0, whose logarithm is none.
                let uniform = (self.next_u32() as f32).mul_add(OPEN_F32[0], OPEN_F32[1]);
                let radius = (-2.0 * uniform.ln()).sqrt();
                let (sine, cosine) = (std::f32::consts::TAU * self.uniform_f32()).sin_cos();
                (radius * cosine, radius * sine)
            }

            /// Two independent numbers of the normal distribution (Box and Muller, 1958).
            #[inline(always)]
            pub fn normal_pair_f64(&mut self) -> (f64, f64) {
                // Never 0, whose logarithm is none.
                let uniform = (self.next_u64() as f64).mul_add(OPEN_F64[0], OPEN_F64[1]);
                let radius = (-2.0 * uniform.ln()).sqrt();
                let (sine, cosine) = (std::f64::consts::TAU * self.uniform_f64()).sin_cos();
                (radius * cosine, radius * sine)
            }

            /// An integer below a bound, which is not 0: each as likely as any other (Lemire, "Fast random integer
            /// generation in an interval", 2019).
            #[inline(always)]
            pub fn below(&mut self, bound: u32) -> u32 {
                assert!(bound != 0, "there is no integer below 0");
                let mut product = self.next_u32() as u64 * bound as u64;
                if (product as u32) < bound {
                    // 2^32 modulo the bound: as many numbers are too many for all to be alike.
                    let surplus = bound.wrapping_neg() % bound;
                    while (product as u32) < surplus {
                        product = self.next_u32() as u64 * bound as u64;
                    }
                }
                (product >> 32) as u32
            }

            /// An integer of 64 bits below a bound, which is not 0: each as likely as any other.
            #[inline(always)]
            pub fn below_u64(&mut self, bound: u64) -> u64 {
                assert!(bound != 0, "there is no integer below 0");
                let mut number = self.next_u64();
                if number.wrapping_mul(bound) < bound {
                    let surplus = bound.wrapping_neg() % bound;
                    while number.wrapping_mul(bound) < surplus {
                        number = self.next_u64();
                    }
                }
                mul_hi(number, bound)
            }

            /// An integer from `first` on and below `end`, which is greater: each as likely as any other.
            #[inline(always)]
            pub fn range_i32(&mut self, first: i32, end: i32) -> i32 {
                assert!(first < end, "a range without integers has none to draw");
                first.wrapping_add(self.below(end.wrapping_sub(first) as u32) as i32)
            }

            /// An integer of 64 bits from `first` on and below `end`, which is greater: each as likely as any other.
            #[inline(always)]
            pub fn range_i64(&mut self, first: i64, end: i64) -> i64 {
                assert!(first < end, "a range without integers has none to draw");
                first.wrapping_add(self.below_u64(end.wrapping_sub(first) as u64) as i64)
            }
        }
    )*};
}
distributions! { Philox Xoroshiro }

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum over bins of the squared differences from what is expected, by that.
    fn chi_squared(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        let square = |&count: &u32| (f64::from(count) - expected).powi(2) / expected;
        counts.iter().map(square).sum()
    }

    /// Whether what was counted differs from what is expected as much as chance would have it: what a normal number
    /// would be as rarely (Wilson and Hilferty, 1931) is below 4.5.
    #[track_caller]
    fn assert_alike(counts: &[u32]) {
        let freedom = counts.len() as f64 - 1.0;
        let unit = 2.0 / (9.0 * freedom);
        let off = ((chi_squared(counts) / freedom).cbrt() - (1.0 - unit)) / unit.sqrt();
        assert!(off.abs() < 4.5, "{off}: {counts:?}");
    }

    /// Mean, variance and the mean fourth power of numbers.
    fn moments(numbers: impl Iterator<Item = f64>) -> [f64; 3] {
        let (mut n, mut sums) = (0.0, [0.0; 3]);
        for x in numbers {
            n += 1.0;
            for (sum, power) in sums.iter_mut().zip([x, x * x, x.powi(4)]) {
                *sum += power;
            }
        }
        sums.map(|sum| sum / n)
    }

    #[test]
    fn philox_is_the_published_one() {
        // Random123 1.14, `tests/kat_vectors`.
        let known = [
            (
                [0; 4],
                [0; 2],
                [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
            ),
            (
                [u32::MAX; 4],
                [u32::MAX; 2],
                [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
            ),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, numbers) in known {
            assert_eq!(philox4x32_10(counter, key), numbers);
        }
    }

    #[test]
    fn philox_skips_to_any_place() {
        let mut sequence = Philox::new(3, 1 << 40);
        let numbers: Vec<u32> = (0..64).map(|_| sequence.next_u32()).collect();
        for start in 0..16 {
            for skipped in 0..16 {
                let mut random = Philox::new(3, 1 << 40);
                for _ in 0..start {
                    random.next_u32();
                }
                random.skip(skipped as u64);
                let at = start + skipped;
                let next = [(); 6].map(|()| random.next_u32());
                assert_eq!(next, numbers[at..at + 6], "{start} and {skipped} more");
            }
        }
        let mut far = Philox::new(3, 9);
        far.skip(u64::MAX);
        far.skip(6);
        let block = philox4x32_10([1, 1 << 30, 9, 0], [3, 0]);
        assert_eq!(far.next_u32(), block[1]);
    }

    #[test]
    fn xoroshiro_is_the_published_one() {
        // What the authors' C gives from the state 1, 2.
        let mut random = Xoroshiro::from_state([1, 2]);
        let numbers = [
            393_217,
            669_327_710_093_319,
            1_732_421_326_133_921_491,
            11_394_790_081_659_126_983,
            9_555_452_776_773_192_676,
            3_586_421_180_005_889_563,
            1_691_397_964_866_707_553,
            10_735_626_796_753_111_697,
            15_216_282_715_349_408_991,
            14_247_243_556_711_267_923,
        ];
        assert_eq!(numbers.map(|_| random.next_u64()), numbers);
    }

    #[test]
    fn jumps_are_that_many_steps() {
        type Matrix = Vec<u128>;
        // A step adds bits: what each bit of the state becomes is a column.
        let step = |bit: u32| {
            let state = 1u128 << bit;
            let mut random = Xoroshiro::from_state([state as u64, (state >> 64) as u64]);
            random.next_u64();
            u128::from(random.state[0]) | u128::from(random.state[1]) << 64
        };
        let apply = |matrix: &Matrix, state: u128| {
            let bits = (0..128).filter(|bit| state >> bit & 1 != 0);
            bits.fold(0, |sum, bit| sum ^ matrix[bit])
        };
        let mut matrix: Matrix = (0..128).map(step).collect();
        let start = Xoroshiro::new(11, 5);
        let state = u128::from(start.state[0]) | u128::from(start.state[1]) << 64;
        for doubling in 1..=96 {
            matrix = matrix
                .iter()
                .map(|&column| apply(&matrix, column))
                .collect();
            let mut jumped = start;
            match doubling {
                64 => jumped.jump(),
                96 => jumped.long_jump(),
                _ => continue,
            }
            let wanted = apply(&matrix, state);
            assert_eq!(jumped.state, [wanted as u64, (wanted >> 64) as u64]);
        }
    }

    macro_rules! distributions {
        ($($name:ident: $new:expr;)*) => {$(
            #[test]
            fn $name() {
                let random = &mut $new;
                let (mut bits, mut bins) = ([[0; 2]; 32], [0; 256]);
                for _ in 0..100_000 {
                    let number = random.next_u32();
                    for (bit, counts) in bits.iter_mut().enumerate() {
                        counts[(number >> bit & 1) as usize] += 1;
                    }
                    bins[(random.uniform_f32() * 256.0) as usize] += 1;
                    bins[(random.uniform_f64() * 256.0) as usize] += 1;
                }
                bits.iter().for_each(|counts| assert_alike(counts));
                assert_alike(&bins);
                // What is one standard deviation of the means is in the last factor.
                let n = 200_000;
                let near = |[mean, square, fourth]: [f64; 3]| {
                    let of_one = (f64::from(n)).sqrt();
                    assert!((mean * of_one).abs() < 5.0, "a mean of {mean}");
                    assert!(((square - 1.0) * of_one).abs() < 5.0 * 2f64.sqrt(), "a variance of {square}");
                    assert!(((fourth - 3.0) * of_one).abs() < 5.0 * 96f64.sqrt(), "a fourth moment of {fourth}");
                };
                near(moments((0..n).map(|_| random.normal_f32().into())));
                near(moments((0..n).map(|_| random.normal_f64())));
                let mut second = || random.normal_pair_f64().1;
                near(moments((0..n).map(|_| second())));
            }
        )*};
    }
    distributions! {
        numbers_of_philox_are_alike: Philox::new(2024, 1);
        numbers_of_xoroshiro_are_alike: Xoroshiro::new(2024, 1);
        first_numbers_of_streams_are_alike: FirstOfStreams(0);
    }

    /// The first numbers of one stream after another.
    struct FirstOfStreams(u64);

    impl FirstOfStreams {
        fn next(&mut self) -> Philox {
            self.0 += 1;
            Philox::new(2024, self.0)
        }
        fn next_u32(&mut self) -> u32 {
            self.next().next_u32()
        }
        fn uniform_f32(&mut self) -> f32 {
            self.next().uniform_f32()
        }
        fn uniform_f64(&mut self) -> f64 {
            self.next().uniform_f64()
        }
        fn normal_f32(&mut self) -> f32 {
            self.next().normal_f32()
        }
        fn normal_f64(&mut self) -> f64 {
            self.next().normal_f64()
        }
        fn normal_pair_f64(&mut self) -> (f64, f64) {
            self.next().normal_pair_f64()
        }
    }

    #[test]
    fn integers_below_a_bound_have_no_bias() {
        // A product alone, of which none is drawn again, gives multiples of 3 twice as often as the others.
        let mut random = Philox::new(5, 0);
        let (mut narrow, mut wide, mut dice) = ([0; 3], [0; 3], [0; 6]);
        for _ in 0..50_000 {
            narrow[(random.below(3 << 30) % 3) as usize] += 1;
            wide[(random.below_u64(3 << 62) % 3) as usize] += 1;
            dice[(random.range_i32(-3, 3) + 3) as usize] += 1;
        }
        assert_alike(&narrow);
        assert_alike(&wide);
        assert_alike(&dice);
        assert_eq!(random.below(1), 0);
        let all = [(); 64].map(|()| random.range_i64(i64::MIN, i64::MAX));
        assert!(all.iter().any(|n| *n < 0) && all.iter().any(|n| *n > 0));
    }
}
