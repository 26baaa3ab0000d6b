//! The only pseudo-random generator: splitmix64.

/// A splitmix64 stream. Each entity of a run has a separate stream, which follows from the run's
/// seed. The same seed always gives the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Creates the stream that begins at `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Creates the stream of the entity with index `number`, in a run with `seed`. Streams of one
    /// seed do not overlap in practice.
    #[must_use]
    pub fn entity(seed: u64, number: u64) -> Self {
        let mut outer = Self::new(seed ^ number.wrapping_mul(0xD605_1CFD_A9A1_3E2B));
        Self::new(outer.next_u64())
    }

    /// Returns the next random number of 64 bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = self.state;
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a uniform number from `0..bound`, or 0 if `bound` is 0. It uses only one number of
    /// the stream, so it has a bias of less than `bound` / 2^64.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// Returns a uniform number from 0 (included) to 1 (excluded), in steps of 2^-53.
    #[inline]
    pub const fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_published_numbers() {
        let mut rng = SplitMix64::new(1_234_567);
        let numbers = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| rng.next_u64()), numbers);
    }
}
