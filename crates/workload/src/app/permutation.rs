//! A random permutation in constant memory.

use iosched_numbers::SplitMix64;

/// Number of rounds of the Feistel network. After four rounds, neighbours in the order look random.
const ROUNDS: usize = 4;

/// The numbers below `count` in a random order. The number at any index is computed in constant
/// time, independent of `count`. A Feistel network on the bits of the index gives the number. If
/// the number is too large, the network is applied to it again ("cycle walking": Black and Rogaway,
/// Ciphers with arbitrary finite domains, 2002).
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    count: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Creates the permutation that `seed` determines.
    pub(super) fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let mut rng = SplitMix64::new(seed);
        Self { count, half_bits: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    /// Returns the number at `place`, which must be below the count.
    pub(super) fn at(&self, place: u64) -> u64 {
        debug_assert!(place < self.count);
        let mut number = self.once(place);
        while number >= self.count {
            number = self.once(number);
        }
        number
    }

    fn once(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (SplitMix64::new(right ^ key).next_u64() & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn permutation_has_every_number_once(count in 1u64..3_000, seed in any::<u64>()) {
            let order = Permutation::new(count, seed);
            let mut numbers: Vec<u64> = (0..count).map(|place| order.at(place)).collect();
            numbers.sort_unstable();
            prop_assert!(numbers.into_iter().eq(0..count));
        }
    }

    #[test]
    fn neighbours_are_far_apart() {
        let count = 16_384;
        let order = Permutation::new(count, 1);
        let distance: u64 = (1..count).map(|place| order.at(place).abs_diff(order.at(place - 1))).sum();
        let mean = distance as f64 / (count - 1) as f64;
        let expected = count as f64 / 3.0;
        assert!((mean / expected - 1.0).abs() < 0.03, "{mean} against {expected}");
        let follow = (1..count).filter(|&place| order.at(place) == order.at(place - 1) + 1).count();
        assert!(follow < 6, "{follow} follow their neighbour");
    }
}
