//! Read segments: the stretches of sectors the disk keeps of what it read.
//!
//! One segment at most is growing: that of the present or latest read, filled by the head as it passes. The
//! others keep what they hold until they are the one unused longest and a new stretch needs a place.

use super::config::ReadCacheConfig;

/// The segments.
#[derive(Clone, Debug)]
pub(crate) struct ReadCache {
    /// First sector of each.
    start: Vec<u64>,
    /// The sector behind the last of each.
    end: Vec<u64>,
    /// When each was used last, on a clock that ticks at every use.
    used: Vec<u64>,
    clock: u64,
    segment_sectors: u64,
}

impl ReadCache {
    pub(crate) fn new(config: &ReadCacheConfig) -> Self {
        let segments = config.segments as usize;
        Self {
            start: vec![0; segments],
            end: vec![0; segments],
            used: vec![0; segments],
            clock: 0,
            segment_sectors: u64::from(config.segment_sectors),
        }
    }

    /// The segment that holds `lbn`, or that `lbn` continues. Empty segments have no place, so none does for them.
    #[inline]
    pub(crate) fn find(&self, lbn: u64) -> Option<usize> {
        let holds = |(&start, &end): (&u64, &u64)| lbn.wrapping_sub(start) <= end - start && end != start;
        self.start.iter().zip(&self.end).position(holds)
    }

    #[inline]
    pub(crate) fn start(&self, segment: usize) -> u64 {
        self.start[segment]
    }

    #[inline]
    pub(crate) fn end(&self, segment: usize) -> u64 {
        self.end[segment]
    }

    /// Notes that `segment` was of use.
    #[inline]
    pub(crate) fn touch(&mut self, segment: usize) {
        self.clock += 1;
        self.used[segment] = self.clock;
    }

    /// Gives up the segment unused longest for a stretch that begins at `lbn`.
    #[inline]
    pub(crate) fn begin(&mut self, lbn: u64) -> usize {
        let (mut oldest, mut at) = (u64::MAX, 0);
        for (segment, &used) in self.used.iter().enumerate() {
            if used < oldest {
                (oldest, at) = (used, segment);
            }
        }
        (self.start[at], self.end[at]) = (lbn, lbn);
        self.touch(at);
        at
    }

    /// `segment` now reaches to `end`, and drops from its front what it has no room for.
    #[inline]
    pub(crate) fn grow(&mut self, segment: usize, end: u64) {
        if end > self.end[segment] {
            self.end[segment] = end;
            let least = end.saturating_sub(self.segment_sectors);
            self.start[segment] = self.start[segment].max(least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(segments: u32) -> ReadCache {
        let config =
            ReadCacheConfig { segments, segment_sectors: 100, read_ahead_sectors: 0, sequential_read_ahead_sectors: 0 };
        ReadCache::new(&config)
    }

    #[test]
    fn a_segment_is_found_by_what_it_holds_and_by_what_continues_it() {
        let mut cache = cache(2);
        assert_eq!(cache.find(0), None);
        let segment = cache.begin(50);
        cache.grow(segment, 60);
        assert_eq!([49, 50, 60, 61].map(|lbn| cache.find(lbn).is_some()), [false, true, true, false]);
    }

    #[test]
    fn a_segment_keeps_its_size() {
        let mut cache = cache(1);
        let segment = cache.begin(0);
        cache.grow(segment, 250);
        assert_eq!((cache.start(segment), cache.end(segment)), (150, 250));
    }

    #[test]
    fn the_segment_unused_longest_goes() {
        let mut cache = cache(2);
        for lbn in [0, 1000] {
            let segment = cache.begin(lbn);
            cache.grow(segment, lbn + 8);
        }
        let first = cache.find(0).unwrap();
        cache.touch(first);
        let new = cache.begin(5000);
        cache.grow(new, 5008);
        assert_eq!([0, 1000, 5000].map(|lbn| cache.find(lbn).is_some()), [true, false, true]);
    }
}
