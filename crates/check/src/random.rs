//! Random choices for operations.

use iosched_numbers::SplitMix64;

/// Choices from a stream of random numbers. The same seed always gives the same choices.
#[derive(Clone, Copy, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// Creates the stream that begins at `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Returns the next random number of 64 bits.
    #[inline]
    pub const fn next_word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below `bound`. `bound` must not be 0.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next_word() % bound
    }

    /// Returns a number below `count`. `count` must not be 0.
    #[inline]
    pub const fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    /// Returns true with a probability of `percent` percent.
    #[inline]
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `choices`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }
}

/// A hash of all events in order. Equal runs have equal hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Digest(u64);

impl Digest {
    /// Adds a number to the hash.
    #[inline]
    pub const fn add(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(5) ^ number).wrapping_mul(0xD134_2543_DE82_EF95);
        self.0 = mixed ^ (mixed >> 32);
    }

    /// Returns the hash of all values so far.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl std::fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        text.bytes().for_each(|byte| self.add(u64::from(byte)));
        Ok(())
    }
}
