//! Simplified flash translation layer. It tracks the fill level and valid pages of blocks, chooses
//! the block to clean, and computes the cost of cleaning.
//!
//! Only a sample of the pages is tracked (spatial sampling). A group is 2^k neighbouring pages. One
//! page of each group represents the whole group; a hash selects this page. Waldspurger and others
//! use this method for caches in "Efficient MRC construction with SHARDS", 2015. Blocks fill page
//! by page. The number of valid pages of a block is the number of its tracked pages times 2^k.
//! Memory is therefore at most 6 MiB for any size of the device, and most writes do not access it.
//! On a small device, all pages are tracked.
//!
//! The place of a page in its block, and thus its die, is not tracked.

use std::collections::VecDeque;

use super::config::{PAGE_SECTORS, SsdConfig, SsdStartConfig, SsdVictim};

/// Largest number of tracked pages.
const FOLLOWED_MAX: u64 = 1 << 19;
/// Number of free blocks at or below which cleaning begins.
const FREE_LOW: usize = 4;
/// Number of free blocks reserved for cleaning.
const FREE_RESERVED: usize = 1;
/// Fractional bits of `owed`.
const OWED_BITS: u32 = 16;
/// Number of a page or block that does not exist.
const NONE: u32 = u32::MAX;

/// Work of the flash so far. Pages have 4 KiB. A block is one erase unit on every die.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SsdWear {
    /// Pages written by the host.
    pub written_pages: u64,
    /// Pages moved by cleaning.
    pub moved_pages: u64,
    /// Blocks erased.
    pub erased_blocks: u64,
}

impl SsdWear {
    /// Returns the number of programmed pages per page written by the host; 1 if none was written.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        1.0 + self.moved_pages as f64 / self.written_pages.max(1) as f64
    }

    /// Returns the work since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            written_pages: self.written_pages - earlier.written_pages,
            moved_pages: self.moved_pages - earlier.moved_pages,
            erased_blocks: self.erased_blocks - earlier.erased_blocks,
        }
    }
}

/// State of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Closed,
    /// Being cleaned.
    Victim,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// First tracked page in the block, plus one; 0 if the block has no tracked page.
    first: u32,
    /// Number of tracked pages.
    valid: u32,
    state: State,
    /// Number of pages that the host had written when the block became full.
    closed_at: u64,
}

/// A block that is being written.
#[derive(Clone, Copy, Debug)]
struct Open {
    block: u32,
    pages_left: u64,
}

/// The block that is being cleaned.
#[derive(Clone, Copy, Debug)]
struct Victim {
    block: u32,
    /// Number of pages to move for each page that the host writes, in fixed point.
    ratio: u64,
}

/// A tracked page: its block, and its two neighbours in the list of this block. Each number is one
/// higher than the real number; 0 means none.
type Followed = [u32; 3];
const BLOCK: usize = 0;
const NEXT: usize = 1;
const PREVIOUS: usize = 2;

/// State of the translation layer.
#[derive(Clone, Debug)]
pub(super) struct Ftl {
    /// One of 2^shift pages is tracked.
    shift: u32,
    victim_by: SsdVictim,
    pages_per_block: u64,
    pages: u64,
    // An array, because the system provides its zeroed memory only when it is accessed.
    followed: Vec<Followed>,
    blocks: Vec<Block>,
    /// Free blocks, in the order in which they were erased. The first block is used first.
    free: VecDeque<u32>,
    host: Open,
    cleaned: Open,
    victim: Option<Victim>,
    /// Pages to move, in fixed point with [`OWED_BITS`] fractional bits.
    owed: u64,
    wear: SsdWear,
}

impl Ftl {
    /// Creates the translation layer in the start state of a configuration.
    pub(super) fn new(config: &SsdConfig) -> Self {
        let pages = config.capacity_sectors.div_ceil(u64::from(PAGE_SECTORS));
        let mut shift = 0;
        while pages >> shift > FOLLOWED_MAX {
            shift += 1;
        }
        Self::following(config, shift)
    }

    /// Creates the translation layer in which one of 2^shift pages is tracked.
    fn following(config: &SsdConfig, shift: u32) -> Self {
        let pages = config.capacity_sectors.div_ceil(u64::from(PAGE_SECTORS));
        let count = config.blocks() as u32;
        let mut ftl = Self {
            shift,
            victim_by: config.cleaning.victim,
            pages_per_block: config.block_sectors() / u64::from(PAGE_SECTORS),
            pages,
            followed: vec![[0; 3]; (pages.div_ceil(1 << shift)) as usize],
            blocks: vec![Block { first: 0, valid: 0, state: State::Free, closed_at: 0 }; count as usize],
            free: (0..count).collect(),
            host: Open { block: NONE, pages_left: 0 },
            cleaned: Open { block: NONE, pages_left: 0 },
            victim: None,
            owed: 0,
            wear: SsdWear::default(),
        };
        ftl.prepare(config.start);
        ftl.wear = SsdWear::default();
        ftl
    }

    /// Executes the writes before the run.
    fn prepare(&mut self, start: SsdStartConfig) {
        let groups = self.followed.len() as u64;
        let filled = groups * u64::from(start.filled_percent) / 100;
        for group in 0..filled {
            self.append(1 << self.shift, Some(group as u32));
        }
        let mut state = 1u64;
        for _ in 0..groups * u64::from(start.overwritten_percent) / 100 {
            state = state.wrapping_add(1);
            let group = (u128::from(scramble(state)) * u128::from(filled)) >> 64;
            self.append(1 << self.shift, (filled > 0).then_some(group as u32));
        }
    }

    pub(super) const fn wear(&self) -> SsdWear {
        self.wear
    }

    /// Returns the tracked page of a group.
    #[inline]
    fn page_of(&self, group: u64) -> u64 {
        (group << self.shift) + (scramble(group) & ((1 << self.shift) - 1))
    }

    /// Records that the host wrote pages `first..end`. [`wear`](Self::wear) then includes the pages
    /// that were moved and the blocks that were erased for these writes.
    #[inline]
    pub(super) fn write(&mut self, first: u64, end: u64) {
        let end = end.min(self.pages);
        let mut at = first;
        while at < end {
            let group = at >> self.shift;
            let piece_end = end.min((group + 1) << self.shift);
            let page = self.page_of(group);
            let followed = (at..piece_end).contains(&page).then_some(group as u32);
            self.append(piece_end - at, followed);
            at = piece_end;
        }
    }

    /// Records that the host discarded pages `first..end`.
    pub(super) fn discard(&mut self, first: u64, end: u64) {
        let end = end.min(self.pages);
        for group in first >> self.shift..end.div_ceil(1 << self.shift) {
            if (first..end).contains(&self.page_of(group)) {
                self.unlink(group as u32);
            }
        }
    }

    /// Appends `pages` pages that the host writes. At most one of them is tracked.
    #[inline]
    fn append(&mut self, pages: u64, followed: Option<u32>) {
        let mut left = pages;
        while left > 0 {
            if self.host.pages_left == 0 {
                self.close(self.host.block);
                self.reclaim();
                self.host = self.open();
            }
            let piece = left.min(self.host.pages_left);
            self.host.pages_left -= piece;
            left -= piece;
        }
        if let Some(page) = followed {
            self.unlink(page);
            self.link(page, self.host.block);
        }
        self.wear.written_pages += pages;
        if let Some(victim) = self.victim {
            self.owed += pages * victim.ratio;
            self.move_owed();
        } else if self.free.len() <= FREE_LOW {
            self.choose_victim();
        }
    }

    /// Moves the pages that are due, and erases the victim when it has no pages left.
    #[inline]
    fn move_owed(&mut self) {
        let weight = 1u64 << self.shift;
        while let Some(victim) = self.victim {
            let first = self.blocks[victim.block as usize].first;
            if first == 0 {
                self.erase(victim.block);
                return;
            }
            if self.owed < weight << OWED_BITS {
                return;
            }
            self.owed -= weight << OWED_BITS;
            self.move_page(first - 1);
        }
    }

    fn move_page(&mut self, page: u32) {
        let weight = 1u64 << self.shift;
        if self.cleaned.pages_left < weight {
            self.close(self.cleaned.block);
            self.cleaned = self.open();
        }
        self.cleaned.pages_left -= weight.min(self.cleaned.pages_left);
        self.unlink(page);
        self.link(page, self.cleaned.block);
        self.wear.moved_pages += weight;
    }

    fn erase(&mut self, block: u32) {
        self.blocks[block as usize].state = State::Free;
        self.free.push_back(block);
        self.wear.erased_blocks += 1;
        self.victim = None;
        self.owed = 0;
    }

    /// Cleans blocks until the host can use a free block.
    fn reclaim(&mut self) {
        while self.free.len() <= FREE_RESERVED {
            let Some(victim) = self.victim.or_else(|| self.choose_victim()) else { return };
            while let first @ 1.. = self.blocks[victim.block as usize].first {
                self.move_page(first - 1);
            }
            self.erase(victim.block);
        }
    }

    fn choose_victim(&mut self) -> Option<Victim> {
        let pages = self.pages_per_block as f64;
        let (shift, now) = (self.shift, self.wear.written_pages);
        let score = |block: &Block| {
            // The sample can overestimate the valid pages of a block, even beyond the size of the
            // block.
            let used = ((u64::from(block.valid) << shift) as f64 / pages).min(1.0);
            match self.victim_by {
                SsdVictim::Greedy => 1.0 - used,
                SsdVictim::CostBenefit => {
                    (1.0 - used) * (1 + now - block.closed_at.min(now)) as f64 / (2.0 * used + 1e-9)
                }
            }
        };
        let closed = self.blocks.iter().enumerate().filter(|(_, block)| block.state == State::Closed);
        let (block, _) = closed.map(|(i, block)| (i, score(block))).reduce(|a, b| if b.1 > a.1 { b } else { a })?;
        self.blocks[block].state = State::Victim;
        let valid = (u64::from(self.blocks[block].valid) << self.shift).min(self.pages_per_block);
        let won = (self.pages_per_block - valid).max(self.pages_per_block / 64).max(1);
        self.victim = Some(Victim { block: block as u32, ratio: (valid << OWED_BITS).div_ceil(won) });
        self.victim
    }

    fn close(&mut self, block: u32) {
        if let Some(block) = self.blocks.get_mut(block as usize) {
            block.state = State::Closed;
            block.closed_at = self.wear.written_pages;
        }
    }

    /// Opens a free block. There is always a free block: the configuration has enough spare space,
    /// and the host leaves the last free block to cleaning.
    fn open(&mut self) -> Open {
        let Some(block) = self.free.pop_front() else {
            unreachable!("the last free block is only for garbage collection")
        };
        self.blocks[block as usize].state = State::Open;
        Open { block, pages_left: self.pages_per_block }
    }

    #[inline]
    fn link(&mut self, page: u32, block: u32) {
        let block_state = &mut self.blocks[block as usize];
        let next = std::mem::replace(&mut block_state.first, page + 1);
        block_state.valid += 1;
        self.followed[page as usize] = [block + 1, next, 0];
        if next > 0 {
            self.followed[next as usize - 1][PREVIOUS] = page + 1;
        }
    }

    #[inline]
    fn unlink(&mut self, page: u32) {
        let entry = std::mem::take(&mut self.followed[page as usize]);
        let Some(block) = entry[BLOCK].checked_sub(1) else { return };
        let block_state = &mut self.blocks[block as usize];
        block_state.valid -= 1;
        match entry[PREVIOUS] {
            0 => block_state.first = entry[NEXT],
            previous => self.followed[previous as usize - 1][NEXT] = entry[NEXT],
        }
        if entry[NEXT] > 0 {
            self.followed[entry[NEXT] as usize - 1][PREVIOUS] = entry[PREVIOUS];
        }
    }
}

/// Mixes the bits of a number (the output function of splitmix64).
#[inline]
const fn scramble(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, Profile};

    /// Returns a configuration of 256 MiB in blocks of 1 MiB. All its pages are tracked.
    fn config(spare_percent: f64, start: SsdStartConfig) -> SsdConfig {
        let profile = Profile::named("sata-ssd").unwrap();
        let Model::Ssd(config) = profile.model() else { unreachable!("sata-ssd is an ssd") };
        let mut config = (**config).clone();
        config.capacity_sectors = 1 << 19;
        config.flash.dies = 4;
        config.flash.channels = 1;
        config.flash.erase_sectors = 512;
        config.flash.program_sectors = 32;
        config.cleaning.spare_percent = spare_percent;
        config.start = start;
        config
    }

    /// Returns the number of programmed pages per page that the host writes, for uniform random
    /// writes in the steady state.
    fn amplification(ftl: &mut Ftl) -> f64 {
        let before = ftl.wear();
        let pages = ftl.pages;
        for i in 0..2 * pages {
            let page = ((u128::from(scramble(1 << 40 | i)) * u128::from(pages)) >> 64) as u64;
            ftl.write(page, page + 1);
        }
        ftl.audit();
        ftl.wear().since(&before).write_amplification()
    }

    /// Returns the theoretical value for uniform random writes and large blocks that are cleaned in
    /// the order of age. For such writes, greedy choice gives the same value (Desnoyers, "Analytic
    /// modeling of SSD write performance", 2012): a / (a + W(-a exp(-a))). Here a is the size of
    /// the flash divided by the capacity.
    fn predicted(flash_over_capacity: f64) -> f64 {
        let a = flash_over_capacity;
        // A page is still valid after one pass through the flash with probability u = exp(-a (1 -
        // u)).
        let mut valid = 0.5f64;
        for _ in 0..10_000 {
            valid = (-a * (1.0 - valid)).exp();
        }
        1.0 / (1.0 - valid)
    }

    impl Ftl {
        fn audit(&self) {
            let mut valid = vec![0u32; self.blocks.len()];
            for entry in &self.followed {
                if let Some(block) = entry[BLOCK].checked_sub(1) {
                    valid[block as usize] += 1;
                }
            }
            for (block, block_state) in self.blocks.iter().enumerate() {
                assert_eq!(block_state.valid, valid[block], "block {block}");
                let mut listed = 0;
                let mut at = block_state.first;
                while at > 0 {
                    listed += 1;
                    at = self.followed[at as usize - 1][NEXT];
                }
                assert_eq!(listed, block_state.valid, "block {block}");
                assert!(block_state.state != State::Free || block_state.valid == 0, "a free block holds nothing");
            }
            let free = self.blocks.iter().filter(|block| block.state == State::Free).count();
            assert_eq!(free, self.free.len());
        }
    }

    #[test]
    fn steady_state_write_amplification_matches_theory() {
        for spare_percent in [7.0, 15.0, 28.0, 50.0] {
            let mut config = config(spare_percent, SsdStartConfig::STEADY);
            config.capacity_sectors *= 4;
            let mut ftl = Ftl::following(&config, 0);
            let found = amplification(&mut ftl);
            let usable = (config.blocks() as f64 - FREE_LOW as f64) * config.block_sectors() as f64;
            let expected = predicted(usable / config.capacity_sectors as f64);
            assert!((found / expected - 1.0).abs() < 0.1, "{spare_percent} %: {found}, {expected} by theory");
        }
    }

    #[test]
    fn tracking_one_page_in_eight_gives_the_same_amplification() {
        let mut large = config(15.0, SsdStartConfig::STEADY);
        large.capacity_sectors *= 4;
        large.flash.erase_sectors = 2048;
        let exact = amplification(&mut Ftl::following(&large, 0));
        let sampled = amplification(&mut Ftl::following(&large, 3));
        assert!((sampled / exact - 1.0).abs() < 0.1, "{sampled} sampled, {exact} exact");
    }

    #[test]
    fn a_fresh_device_cleans_nothing_in_its_first_pass() {
        let config = config(15.0, SsdStartConfig::FRESH);
        let mut ftl = Ftl::new(&config);
        for i in 0..ftl.pages {
            let page = scramble(i) % ftl.pages;
            ftl.write(page, page + 1);
        }
        assert_eq!((ftl.wear().moved_pages, ftl.wear().erased_blocks), (0, 0));
        assert_eq!(ftl.wear().written_pages, ftl.pages);
    }

    #[test]
    fn repeated_sequential_writes_have_amplification_near_one() {
        let mut ftl = Ftl::new(&config(15.0, SsdStartConfig::FRESH));
        for _ in 0..5 {
            for page in (0..ftl.pages).step_by(32) {
                ftl.write(page, page + 32);
            }
        }
        ftl.audit();
        let amplification = ftl.wear().write_amplification();
        assert!(amplification < 1.02, "{amplification}");
        assert!(ftl.wear().erased_blocks > 3 * 256);
    }

    #[test]
    fn discarded_pages_are_not_moved() {
        let mut ftl = Ftl::new(&config(7.0, SsdStartConfig::STEADY));
        let before = amplification(&mut ftl);
        let pages = ftl.pages;
        ftl.discard(pages / 2, pages);
        let from = ftl.wear();
        for i in 0..4 * pages {
            let page = scramble(1 << 41 | i) % (pages / 2);
            ftl.write(page, page + 1);
        }
        ftl.audit();
        let after = ftl.wear().since(&from).write_amplification();
        assert!(before > 5.0 && after < 1.3, "{before}, then {after}");
    }

    #[test]
    fn cost_benefit_amplifies_skewed_writes_less_than_greedy() {
        let run = |victim| {
            let mut config = config(15.0, SsdStartConfig::STEADY);
            config.cleaning.victim = victim;
            let mut ftl = Ftl::new(&config);
            let mut from = ftl.wear();
            for i in 0..8 * ftl.pages {
                if i == 4 * ftl.pages {
                    from = ftl.wear();
                }
                // Nine of ten writes go to a tenth of the pages.
                let draw = scramble(1 << 42 | i);
                let span = if draw % 10 < 9 { ftl.pages / 10 } else { ftl.pages };
                let page = (draw >> 8) % span;
                ftl.write(page, page + 1);
            }
            ftl.wear().since(&from).write_amplification()
        };
        let (greedy, cost_benefit) = (run(SsdVictim::Greedy), run(SsdVictim::CostBenefit));
        assert!(cost_benefit < greedy, "{cost_benefit} by cost and benefit, {greedy} greedy");
    }
}
