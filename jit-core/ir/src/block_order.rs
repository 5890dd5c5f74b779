//! The order in which the blocks of a launch begin: what a kernel may count on is that earlier ones do.

use std::fmt;

/// The order in which the blocks of a launch begin on a CPU device.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum BlockOrder {
    /// By their linear index, so that a block may wait for an earlier one.
    #[default]
    Increasing,
    /// One of all orders, which this seed chooses. For tests: a kernel that gives something else then
    /// counts on an order, and one that waits for earlier blocks may never end.
    Shuffled(u64),
}

impl fmt::Display for BlockOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockOrder::Increasing => f.write_str("in increasing order"),
            BlockOrder::Shuffled(seed) => write!(f, "shuffled by seed {seed}"),
        }
    }
}

impl BlockOrder {
    /// The order of so many blocks; `None`: as they are numbered.
    pub fn of(self, count: u64) -> Option<Shuffle> {
        match self {
            BlockOrder::Increasing => None,
            BlockOrder::Shuffled(seed) => Some(Shuffle::new(seed, count)),
        }
    }
}

/// A permutation of the numbers below a count, in no memory: a Feistel network over the next power of
/// four, walked until it is back below the count (Black, Rogaway: *Ciphers with Arbitrary Finite
/// Domains*, 2002).
#[derive(Clone, Debug)]
pub struct Shuffle {
    count: u64,
    half: u32,
    keys: [u64; 4],
}

impl Shuffle {
    fn new(seed: u64, count: u64) -> Shuffle {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Shuffle {
            count,
            half: bits.div_ceil(2).max(1),
            keys: [1, 2, 3, 4].map(|n| mix(seed.wrapping_add(mix(n)))),
        }
    }

    /// The number in place `index`, which is below the count.
    pub fn at(&self, index: u64) -> u64 {
        let mut at = self.exchanged(index);
        while at >= self.count {
            at = self.exchanged(at);
        }
        at
    }

    fn exchanged(&self, number: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let start = (number >> self.half & mask, number & mask);
        let round = |(left, right), key: &u64| (right, left ^ mix(right ^ key) & mask);
        let (left, right) = self.keys.iter().fold(start, round);
        left << self.half | right
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_one_place() {
        for count in (1..200).chain([1000, 4097]) {
            for seed in 0..4 {
                let order = Shuffle::new(seed, count);
                let mut all: Vec<u64> = (0..count).map(|n| order.at(n)).collect();
                let orderly = all.is_sorted();
                all.sort_unstable();
                assert_eq!(all, (0..count).collect::<Vec<_>>(), "{count} by {seed}");
                assert!(count < 20 || !orderly, "{count} by {seed}");
            }
        }
    }

    #[test]
    fn seeds_give_orders_of_their_own() {
        let order = |seed| {
            let shuffle = Shuffle::new(seed, 50);
            (0..50).map(|n| shuffle.at(n)).collect::<Vec<_>>()
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        // As large as a grid can be.
        let count = (1 << 31) * 65_535 * 65_535;
        let last = Shuffle::new(7, count).at(count - 1);
        assert!(last < count);
    }
}
