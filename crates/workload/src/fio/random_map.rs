//! Map of the blocks that were accessed in this pass. It has one bit per block, and upper levels
//! that mark full words.

/// Bits per word.
const WORD: u64 = 64;

/// A map of blocks. It needs 1 bit per block, plus about 1/63 for the upper levels.
#[derive(Clone, Debug)]
pub(super) struct RandomMap {
    blocks: u64,
    done: u64,
    /// The lowest level has one bit per block. In a higher level, a bit is set if its word in the
    /// level below is full.
    levels: Vec<Vec<u64>>,
}

impl RandomMap {
    /// Creates a map of `blocks`, at least 1, all of them free.
    pub(super) fn new(blocks: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let words = bits.div_ceil(WORD);
            levels.push(vec![0u64; words as usize]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        let mut map = Self { blocks, done: 0, levels };
        map.close_ends();
        map
    }

    /// Marks the bits after the end as taken, so that no search finds them.
    fn close_ends(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            if !bits.is_multiple_of(WORD)
                && let Some(last) = level.last_mut()
            {
                *last |= u64::MAX << (bits % WORD);
            }
            bits = bits.div_ceil(WORD);
        }
    }

    /// Marks all blocks as free.
    pub(super) fn clear(&mut self) {
        self.done = 0;
        for level in &mut self.levels {
            level.fill(0);
        }
        self.close_ends();
    }

    /// Returns whether all blocks are taken.
    pub(super) const fn is_full(&self) -> bool {
        self.done == self.blocks
    }

    #[inline]
    pub(super) fn is_free(&self, block: u64) -> bool {
        block < self.blocks && self.levels[0][(block / WORD) as usize] >> (block % WORD) & 1 == 0
    }

    /// Marks `block`, which must be free, as taken.
    #[inline]
    pub(super) fn set(&mut self, block: u64) {
        debug_assert!(self.is_free(block));
        self.done += 1;
        let mut bit = block;
        for level in &mut self.levels {
            let word = &mut level[(bit / WORD) as usize];
            *word |= 1 << (bit % WORD);
            if *word != u64::MAX {
                return;
            }
            bit /= WORD;
        }
    }

    /// Returns the first free block at or after `block`. If there is none, returns the first free
    /// block from the start. Returns `None` if all blocks are taken.
    pub(super) fn next_free(&self, block: u64) -> Option<u64> {
        if self.is_full() {
            return None;
        }
        self.free_from(block).or_else(|| self.free_from(0))
    }

    fn free_from(&self, block: u64) -> Option<u64> {
        let mut bit = block;
        let mut height = 0;
        loop {
            let level = self.levels.get(height)?;
            let word = level.get((bit / WORD) as usize)?;
            let free = !word & u64::MAX << (bit % WORD);
            if free != 0 {
                let mut found = bit / WORD * WORD + u64::from(free.trailing_zeros());
                for level in self.levels[..height].iter().rev() {
                    found = found * WORD + u64::from((!level[found as usize]).trailing_zeros());
                }
                return Some(found);
            }
            bit = bit / WORD + 1;
            height += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn next_free_finds_the_next_free_block_and_wraps(
            blocks in 1u64..10_000,
            starts in proptest::collection::vec(0u64..10_000, 1..400),
            clear in any::<bool>(),
        ) {
            let mut map = RandomMap::new(blocks);
            let mut free: std::collections::BTreeSet<u64> = (0..blocks).collect();
            for (i, start) in starts.iter().map(|start| start % blocks).enumerate() {
                let expected = free.range(start..).next().or_else(|| free.iter().next()).copied();
                prop_assert_eq!(map.next_free(start), expected);
                prop_assert_eq!(map.is_free(start), free.contains(&start));
                for block in expected.iter().flat_map(|&b| b..(b + 70).min(blocks)) {
                    if free.remove(&block) {
                        map.set(block);
                    }
                }
                prop_assert_eq!(map.is_full(), free.is_empty());
                if clear && i == 50 {
                    map.clear();
                    free = (0..blocks).collect();
                }
            }
        }
    }

    #[test]
    fn next_free_returns_every_block_once() {
        for blocks in [1, 63, 64, 65, 4096, 4097, 300_000] {
            let mut map = RandomMap::new(blocks);
            let mut given = 0;
            while let Some(block) = map.next_free(given * 7919 % blocks) {
                map.set(block);
                given += 1;
            }
            assert_eq!(given, blocks);
        }
    }
}
