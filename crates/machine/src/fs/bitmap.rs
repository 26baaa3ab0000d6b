//! The bitmap of a group. It shows which blocks or inodes are in use.

/// Bitmap with one bit for each block or inode. A set bit means that the block or inode is in use.
#[derive(Clone, Debug)]
pub(super) struct Bitmap {
    words: Box<[u64]>,
    bits: u32,
}

impl Bitmap {
    /// Creates a bitmap of `bits` bits, all of them free.
    pub(super) fn new(bits: u32) -> Self {
        Self { words: vec![0; bits.div_ceil(64) as usize].into_boxed_slice(), bits }
    }

    /// Returns the indices of the words that contain the bits `start..start + count`, each with the
    /// mask of these bits.
    fn masks(start: u32, count: u32) -> impl Iterator<Item = (usize, u64)> {
        let end = start + count;
        (start / 64..end.div_ceil(64)).map(move |word| {
            let low = start.max(word * 64) % 64;
            let high = end.min(word * 64 + 64) - word * 64;
            (word as usize, (u64::MAX << low) & (u64::MAX >> (64 - high)))
        })
    }

    /// Sets `count` bits from `start` on.
    ///
    /// # Panics
    /// If one of these bits is already set.
    pub(super) fn set(&mut self, start: u32, count: u32) {
        assert!(start + count <= self.bits, "{start} + {count} is beyond {}", self.bits);
        for (word, mask) in Self::masks(start, count) {
            assert_eq!(self.words[word] & mask, 0, "taken twice near {}", word * 64);
            self.words[word] |= mask;
        }
    }

    /// Clears `count` bits from `start` on.
    ///
    /// # Panics
    /// If one of these bits is already clear.
    pub(super) fn clear(&mut self, start: u32, count: u32) {
        assert!(start + count <= self.bits, "{start} + {count} is beyond {}", self.bits);
        for (word, mask) in Self::masks(start, count) {
            assert_eq!(self.words[word] & mask, mask, "freed twice near {}", word * 64);
            self.words[word] &= !mask;
        }
    }

    pub(super) fn is_set(&self, bit: u32) -> bool {
        self.words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// Returns the first bit at or after `from` whose value is `set`. Returns `bits` if there is
    /// none.
    fn next(&self, from: u32, set: bool) -> u32 {
        if from >= self.bits {
            return self.bits;
        }
        let flip = if set { 0 } else { u64::MAX };
        let mut word = (from / 64) as usize;
        let mut found = (self.words[word] ^ flip) & (u64::MAX << (from % 64));
        while found == 0 {
            word += 1;
            let Some(bits) = self.words.get(word) else { return self.bits };
            found = bits ^ flip;
        }
        (word as u32 * 64 + found.trailing_zeros()).min(self.bits)
    }

    /// Returns the first free bit from `from` on.
    pub(super) fn next_clear(&self, from: u32) -> Option<u32> {
        Some(self.next(from, false)).filter(|bit| *bit < self.bits)
    }

    /// Returns the length of the run of free bits that begins at `from`.
    pub(super) fn clear_run(&self, from: u32) -> u32 {
        self.next(from, true).max(from) - from
    }

    /// Returns the start of the first run of at least `want` free bits at or after `from`.
    pub(super) fn find_run(&self, from: u32, want: u32) -> Option<u32> {
        let mut at = from;
        while let Some(start) = self.next_clear(at) {
            let run = self.clear_run(start);
            if run >= want {
                return Some(start);
            }
            at = start + run;
        }
        None
    }

    /// Returns the start of the first run of `want` free bits that begins at a multiple of `want`.
    /// `want` must be a power of two.
    pub(super) fn find_aligned(&self, want: u32) -> Option<u32> {
        let mut at = 0;
        while let Some(free) = self.next_clear(at) {
            let start = free.next_multiple_of(want);
            if start >= self.bits {
                return None;
            }
            let run = self.clear_run(start);
            if run >= want {
                return Some(start);
            }
            at = start + run.max(1);
        }
        None
    }

    /// Returns the start and length of the longest run of free bits. The length is 0 if no bit is
    /// free.
    pub(super) fn longest_run(&self) -> (u32, u32) {
        let (mut best, mut at) = ((0, 0), 0);
        while let Some(start) = self.next_clear(at) {
            let run = self.clear_run(start);
            if run > best.1 {
                best = (start, run);
            }
            at = start + run;
        }
        best
    }

    /// Returns the number of free bits.
    pub(super) fn count_clear(&self) -> u32 {
        self.bits - self.words.iter().map(|word| word.count_ones()).sum::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bitmap_searches_equal_a_scan_of_every_bit(
            bits in 1_u32..400,
            used in prop::collection::btree_set(0_u32..400, 0..200),
            from in 0_u32..400,
            want in 1_u32..40,
        ) {
            let mut bitmap = Bitmap::new(bits);
            let mut plain = vec![false; bits as usize];
            for bit in used.into_iter().filter(|bit| *bit < bits) {
                bitmap.set(bit, 1);
                plain[bit as usize] = true;
            }
            let run = |start: u32| plain.iter().skip(start as usize).take_while(|used| !**used).count() as u32;
            let begins = |start: u32| run(start) > 0 && (start == 0 || plain[start as usize - 1]);
            prop_assert_eq!(bitmap.next_clear(from), (from..bits).find(|bit| run(*bit) > 0));
            prop_assert_eq!(bitmap.clear_run(from), run(from));
            let first = (from..bits).find(|bit| run(*bit) >= want && (*bit == from || begins(*bit)));
            prop_assert_eq!(bitmap.find_run(from, want), first);
            let aligned = want.next_power_of_two();
            let first = (0..bits).step_by(aligned as usize).find(|bit| run(*bit) >= aligned);
            prop_assert_eq!(bitmap.find_aligned(aligned), first);
            prop_assert_eq!(bitmap.longest_run().1, (0..bits).map(run).max().unwrap_or(0));
            prop_assert_eq!(bitmap.count_clear() as usize, plain.iter().filter(|used| !**used).count());
        }

        #[test]
        fn freed_bits_are_free_again(bits in 64_u32..400, start in 0_u32..64, count in 1_u32..64) {
            let mut bitmap = Bitmap::new(bits);
            let count = count.min(bits - start);
            bitmap.set(start, count);
            prop_assert_eq!(bitmap.count_clear(), bits - count);
            prop_assert!((start..start + count).all(|bit| bitmap.is_set(bit)));
            bitmap.clear(start, count);
            prop_assert_eq!(bitmap.count_clear(), bits);
        }
    }

    #[test]
    #[should_panic(expected = "taken twice")]
    fn setting_a_set_bit_panics() {
        let mut bitmap = Bitmap::new(200);
        bitmap.set(60, 10);
        bitmap.set(69, 1);
    }
}
