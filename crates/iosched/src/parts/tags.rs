//! Tags: small numbers that are allocated and returned, with
//! limits on the numbers that a caller may get.
//!
//! The rules are those of Linux' sbitmap (6.12), as one processor sees them. The numbers are
//! divided among several words, so that callers use different words. A returned number is only
//! marked. It still looks taken until a search of its word fails. A caller with a limit can use
//! only the lowest numbers of each word. The limit applies to the *number* that the caller would
//! get, not to the count of numbers in use. Therefore callers without a limit that hold low numbers
//! can block callers with a limit.
//!
//! The request queue gives every request a tag. `kyber` gives every
//! request in the device a token of its domain.

/// Layout of tags: how many numbers one word contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TagLayout {
    /// Layout of Linux: about four words, even for few numbers.
    #[default]
    Spread,
    /// Words of 64 numbers each.
    Compact,
}

/// Size of the largest word, as a power of two.
const SHIFT_MAX: u32 = 6;

impl TagLayout {
    fn shift(self, depth: u32) -> u32 {
        match self {
            Self::Spread if depth >= 4 => (0..SHIFT_MAX)
                .rev()
                .fold(SHIFT_MAX, |shift, smaller| if (4u64 << shift) > u64::from(depth) { smaller } else { shift }),
            _ => SHIFT_MAX,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// Numbers that look taken.
    taken: u64,
    /// Taken numbers that were returned since the word was last cleared.
    returned: u64,
}

/// Allocator of the numbers below a depth.
#[derive(Clone, Debug)]
pub(crate) struct TagMap {
    layout: TagLayout,
    /// Whether a limit is counted in each word instead of over all numbers.
    limits_words: bool,
    depth: u32,
    shift: u32,
    /// Words, more than the depth needs if it was larger before.
    words: Vec<Word>,
    /// Start of the next search.
    hint: u32,
    /// Count of numbers in use, including numbers beyond a reduced depth.
    held: u32,
}

/// Returns the lowest `count` bits.
#[inline]
fn low_bits(count: u32) -> u64 {
    if count >= u64::BITS { u64::MAX } else { (1 << count) - 1 }
}

impl TagMap {
    /// Creates the allocator of all numbers below `depth`, which is at least 1.
    pub(crate) fn new(layout: TagLayout, depth: u32) -> Self {
        let depth = depth.max(1);
        let mut map = Self {
            layout,
            limits_words: false,
            depth,
            shift: layout.shift(depth),
            words: Vec::new(),
            hint: 0,
            held: 0,
        };
        map.words.resize(map.words_in_use(), Word::default());
        map
    }

    /// Sets whether limits are counted in each word (`limits_words`) or over all numbers.
    pub(crate) fn with_limits(self, limits_words: bool) -> Self {
        Self { limits_words, ..self }
    }

    /// Returns the size of a word, if limits are counted in each word.
    pub(crate) fn limit_word(&self) -> Option<u32> {
        self.limits_words.then_some(1 << self.shift)
    }

    #[inline]
    fn words_in_use(&self) -> usize {
        self.depth.div_ceil(1 << self.shift) as usize
    }

    /// Returns the count of numbers in `word`; the last word has the rest.
    #[inline]
    fn size(&self, word: usize) -> u32 {
        (self.depth - ((word as u32) << self.shift)).min(1 << self.shift)
    }

    /// Returns the depth.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the count of numbers in use.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// Allocates a free number; with a limit, a number that the limit allows.
    #[inline]
    pub(crate) fn get(&mut self, limit: Option<u32>) -> Option<u32> {
        if self.hint >= self.depth {
            self.hint = 0;
        }
        let found = self.search(limit);
        match found {
            None => self.hint = 0,
            Some(number) => {
                self.held += 1;
                if number == self.hint {
                    self.hint = if number + 1 >= self.depth - 1 { 0 } else { number + 1 };
                }
            }
        }
        found
    }

    /// Updates the state like a search that finds nothing.
    pub(crate) fn miss(&mut self) {
        self.hint = 0;
    }

    #[inline]
    fn search(&mut self, limit: Option<u32>) -> Option<u32> {
        let first = (self.hint >> self.shift) as usize;
        let start = if limit.is_some() { self.hint & low_bits(self.shift) as u32 } else { 0 };
        self.take_in(first, limit, start).or_else(|| self.search_behind(first, limit))
    }

    /// Searches the words after `first`, and then those before it.
    #[inline(never)]
    fn search_behind(&mut self, first: usize, limit: Option<u32>) -> Option<u32> {
        let words = self.words_in_use();
        (first + 1..words).chain(0..first).find_map(|word| self.take_in(word, limit, 0))
    }

    /// Allocates the first free number of a word at or after `start`. If there is none, allocates
    /// the first free number of the word.
    #[inline]
    fn take_in(&mut self, word: usize, limit: Option<u32>, start: u32) -> Option<u32> {
        let usable = limit.map_or_else(|| self.size(word), |limit| self.share(word, limit));
        if usable == 0 {
            return None;
        }
        let bit = self.words[word].take(low_bits(usable), start)?;
        Some(((word as u32) << self.shift) + bit)
    }

    /// Returns how many numbers of `word` a caller with `limit` may use. The
    /// limit applies to all numbers or to each word.
    fn share(&self, word: usize, limit: u32) -> u32 {
        if self.limits_words {
            return self.size(word).min(limit);
        }
        let size = u64::from(self.size(word));
        let depth = u64::from(self.depth);
        let product = size * u64::from(limit.min(self.depth));
        let more = product % depth >= (word as u64 + 1) * size;
        (product / depth) as u32 + u32::from(more)
    }

    /// Returns `number` to the allocator.
    #[inline]
    pub(crate) fn put(&mut self, number: u32) {
        let bit = 1 << (number & low_bits(self.shift) as u32);
        let word = &mut self.words[(number >> self.shift) as usize];
        debug_assert!(word.taken & !word.returned & bit != 0, "each taken number returns once");
        word.returned |= bit;
        self.held -= 1;
        if number < self.depth {
            self.hint = number;
        }
    }

    /// Changes the depth. Numbers beyond it stay in use until they are returned.
    pub(crate) fn resize(&mut self, depth: u32) {
        let depth = depth.max(1);
        for word in 0..self.words_in_use() {
            self.words[word].clear();
        }
        self.depth = depth;
        if self.words_in_use() > self.words.len() {
            self.relay();
        }
    }

    /// Creates the words again for the largest depth so far. Numbers in use stay in use.
    fn relay(&mut self) {
        let shift = self.layout.shift(self.depth);
        let mut words = vec![Word::default(); self.depth.div_ceil(1 << shift) as usize];
        for (from, word) in self.words.iter().enumerate() {
            let held = word.taken & !word.returned;
            for bit in (0..1 << self.shift).filter(|bit| held >> bit & 1 != 0) {
                let number = ((from as u32) << self.shift) + bit;
                words[(number >> shift) as usize].taken |= 1 << (number & low_bits(shift) as u32);
            }
        }
        (self.shift, self.words) = (shift, words);
    }

    /// Returns whether `number` is in use.
    pub(crate) fn holds(&self, number: u32) -> bool {
        self.words
            .get((number >> self.shift) as usize)
            .is_some_and(|word| (word.taken & !word.returned) >> (number & low_bits(self.shift) as u32) & 1 != 0)
    }
}

impl Word {
    /// Takes the first free bit of `usable` at or after `start`. If there is none, takes the first
    /// free bit.
    #[inline]
    fn take(&mut self, usable: u64, start: u32) -> Option<u32> {
        loop {
            let free = usable & !self.taken;
            if free != 0 {
                let behind = free & !low_bits(start);
                let bit = if behind == 0 { free } else { behind }.trailing_zeros();
                self.taken |= 1 << bit;
                return Some(bit);
            }
            if self.returned == 0 {
                return None;
            }
            self.clear();
        }
    }

    /// Frees the returned numbers.
    #[inline]
    fn clear(&mut self) {
        self.taken &= !self.returned;
        self.returned = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn take(map: &mut TagMap, count: usize) -> Vec<u32> {
        (0..count).map_while(|_| map.get(None)).collect()
    }

    #[test]
    fn spread_layout_has_at_least_four_words_from_depth_4() {
        let shifts = [1, 4, 7, 16, 40, 64, 128, 256, 1000].map(|depth| TagLayout::Spread.shift(depth));
        assert_eq!(shifts, [6, 0, 0, 2, 3, 4, 5, 6, 6]);
        assert_eq!(TagLayout::Compact.shift(7), 6);
    }

    #[test]
    fn freed_number_is_reused_only_when_its_word_is_full() {
        let mut map = TagMap::new(TagLayout::Compact, 4);
        assert_eq!(take(&mut map, 2), [0, 1]);
        map.put(0);
        assert_eq!(take(&mut map, 4), [2, 3, 0]);
    }

    #[test]
    fn allocation_starts_in_the_word_of_the_last_freed_number() {
        let mut map = TagMap::new(TagLayout::Spread, 16);
        assert_eq!(take(&mut map, 16), (0..16).collect::<Vec<_>>());
        map.put(9);
        map.put(2);
        assert_eq!(take(&mut map, 3), [2, 9]);
    }

    #[test]
    fn a_limit_is_divided_among_all_words() {
        let shares = |depth, limit| {
            let map = TagMap::new(TagLayout::Spread, depth);
            (0..map.words_in_use()).map(|word| map.share(word, limit)).collect::<Vec<_>>()
        };
        assert_eq!(shares(64, 23), [6, 6, 6, 5]);
        assert_eq!(shares(64, 1), [1, 0, 0, 0]);
        assert_eq!(shares(64, 64), [16; 4]);
        assert_eq!(shares(64, 1000), [16; 4]);
        assert_eq!(shares(7, 3).iter().sum::<u32>(), 3);
    }

    #[test]
    fn a_limit_per_word_allows_more_numbers_than_a_total_limit() {
        let mut map = TagMap::new(TagLayout::Spread, 64).with_limits(true);
        assert_eq!(map.limit_word(), Some(16));
        let taken: Vec<u32> = std::iter::from_fn(|| map.get(Some(1))).collect();
        assert_eq!(taken, [0, 16, 32, 48], "one number in each word");
        let mut map = TagMap::new(TagLayout::Spread, 64);
        assert_eq!(std::iter::from_fn(|| map.get(Some(1))).count(), 1, "one number in total");
    }

    #[test]
    fn limited_search_fails_while_low_numbers_are_in_use() {
        let mut map = TagMap::new(TagLayout::Compact, 8);
        take(&mut map, 6);
        assert_eq!(map.get(Some(6)), None);
        map.put(5);
        assert_eq!(map.get(Some(6)), Some(5));
        assert_eq!(map.get(Some(6)), None);
        assert_eq!(map.get(None), Some(6));
    }

    #[test]
    fn only_a_limited_search_begins_at_the_hint() {
        for (limit, expected) in [(None, 1), (Some(8), 6)] {
            let mut map = TagMap::new(TagLayout::Compact, 8);
            take(&mut map, 8);
            for number in [6, 1, 6].into_iter().take(2) {
                map.put(number);
            }
            map.hint = 6;
            assert_eq!(map.get(limit), Some(expected));
        }
    }

    #[test]
    fn numbers_beyond_a_reduced_depth_return_when_depth_grows() {
        let mut map = TagMap::new(TagLayout::Spread, 16);
        take(&mut map, 16);
        map.resize(4);
        assert_eq!(map.get(None), None);
        map.put(12);
        assert_eq!((map.get(None), map.held()), (None, 15));
        map.put(3);
        assert_eq!(map.get(None), Some(3));
        map.resize(16);
        assert_eq!(map.get(None), Some(12));
        map.resize(100);
        assert_eq!(map.get(None), Some(16));
        assert!((0..17).all(|number| map.holds(number)) && !map.holds(17));
    }

    proptest! {
        /// In every sequence of operations, no number is allocated twice or above the limits, and a
        /// free number is always found.
        #[test]
        fn no_number_is_allocated_twice(
            depth in 1u32..200,
            compact in any::<bool>(),
            operations in prop::collection::vec((0u8..8, 0u32..300, any::<prop::sample::Index>()), 1..300),
        ) {
            let mut map = TagMap::new(if compact { TagLayout::Compact } else { TagLayout::Spread }, depth);
            let mut held: Vec<u32> = Vec::new();
            for (kind, number, pick) in operations {
                match kind {
                    0..=4 => {
                        let limit = (kind >= 3).then_some(number % (map.depth() + 2));
                        let share = |map: &TagMap, tag: u32| {
                            let bit = tag & low_bits(map.shift) as u32;
                            limit.is_none_or(|limit| bit < map.share((tag >> map.shift) as usize, limit))
                        };
                        match map.get(limit) {
                            Some(tag) => {
                                prop_assert!(tag < map.depth() && !held.contains(&tag) && share(&map, tag));
                                held.push(tag);
                            }
                            None => prop_assert!((0..map.depth()).all(|tag| held.contains(&tag) || !share(&map, tag))),
                        }
                    }
                    5 | 6 if !held.is_empty() => map.put(held.swap_remove(pick.index(held.len()))),
                    7 => map.resize(number),
                    _ => {}
                }
                prop_assert_eq!(map.held() as usize, held.len());
                prop_assert!(held.iter().all(|&tag| map.holds(tag)));
            }
        }
    }
}
