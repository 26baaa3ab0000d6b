//! Read segments: the ranges of sectors that the disk caches after reading them.
//!
//! At most one segment grows: the segment of the current or latest read. The head fills it while it
//! passes the sectors. When this segment is full, it drops its first sectors. A new range takes the
//! segment that was least recently used.

use super::config::ReadCacheConfig;

/// All segments.
#[derive(Clone, Debug)]
pub(crate) struct ReadCache {
    /// First sector of each segment.
    start: Vec<u64>,
    /// Number of sectors of each segment.
    length: Vec<u64>,
    /// Ring of the segments by last use: for each segment, the next older and the next younger
    /// segment.
    older: Vec<u8>,
    younger: Vec<u8>,
    youngest: u8,
    segment_sectors: u64,
    /// A range of sectors that are in no segment: the place of the last write.
    gap: (u64, u64),
}

impl ReadCache {
    pub(crate) fn new(config: &ReadCacheConfig) -> Self {
        let segments = config.segments as usize;
        let ring = |shift: usize| (0..segments).map(|segment| ((segment + shift) % segments) as u8).collect();
        Self {
            // No sector has this position. An empty segment therefore contains no sector, and no
            // sector continues it.
            start: vec![u64::MAX; segments],
            length: vec![0; segments],
            older: ring(1),
            younger: ring(segments - 1),
            youngest: 0,
            segment_sectors: u64::from(config.segment_sectors),
            gap: (0, u64::MAX),
        }
    }

    /// Returns the segment that contains `lbn`, or that ends just before `lbn`.
    #[inline]
    pub(crate) fn find(&self, lbn: u64) -> Option<usize> {
        let mut found = usize::MAX;
        for (segment, (&start, &length)) in self.start.iter().zip(&self.length).enumerate() {
            // The code has no branch, because a branch would not be predictable.
            found = if lbn.wrapping_sub(start) <= length { segment } else { found };
        }
        (found != usize::MAX).then_some(found)
    }

    #[inline]
    pub(crate) fn is_empty(&self, segment: usize) -> bool {
        self.length[segment] == 0
    }

    #[inline]
    pub(crate) fn start(&self, segment: usize) -> u64 {
        self.start[segment]
    }

    #[inline]
    pub(crate) fn end(&self, segment: usize) -> u64 {
        self.start[segment].wrapping_add(self.length[segment])
    }

    /// Returns the sector at which `segment` is full if it keeps its first sectors.
    #[inline]
    pub(crate) fn full_end(&self, segment: usize) -> u64 {
        self.start[segment] + self.segment_sectors
    }

    /// Returns whether `segment` overlaps `start..end`.
    #[inline]
    pub(crate) fn overlaps(&self, segment: usize, start: u64, end: u64) -> bool {
        self.start[segment] < end && start < self.end(segment)
    }

    /// Returns whether one segment has all of `start..end`.
    pub(crate) fn holds(&self, start: u64, end: u64) -> bool {
        (0..self.start.len()).any(|segment| self.start[segment] <= start && end <= self.end(segment))
    }

    /// Removes `start..end` from all segments. If a segment begins before this range, it also loses
    /// everything after the range.
    #[inline]
    pub(crate) fn cut(&mut self, start: u64, end: u64) {
        if self.gap.0 <= start && end <= self.gap.1 {
            return;
        }
        let mut gap = (0, u64::MAX);
        for (own_start, length) in self.start.iter_mut().zip(&mut self.length) {
            let own_end = own_start.wrapping_add(*length);
            if *own_start < end && start < own_end {
                if start <= *own_start {
                    *length = own_end.saturating_sub(end);
                    *own_start = own_end - *length;
                } else {
                    *length = start - *own_start;
                }
            }
            if *length > 0 {
                gap.0 = if *own_start < start { gap.0.max(*own_start + *length) } else { gap.0 };
                gap.1 = if *own_start >= end { gap.1.min(*own_start) } else { gap.1 };
            }
        }
        self.gap = gap;
    }

    /// Marks `segment` as the most recently used one.
    #[inline]
    pub(crate) fn touch(&mut self, segment: usize) {
        let youngest = self.youngest as usize;
        if segment == youngest {
            return;
        }
        let (older, younger) = (self.older[segment], self.younger[segment]);
        self.older[younger as usize] = older;
        self.younger[older as usize] = younger;
        let oldest = self.younger[youngest];
        self.older[segment] = self.youngest;
        self.younger[segment] = oldest;
        self.younger[youngest] = segment as u8;
        self.older[oldest as usize] = segment as u8;
        self.youngest = segment as u8;
    }

    /// Replaces the least recently used segment with an empty segment that begins at `lbn`.
    #[inline]
    pub(crate) fn begin(&mut self, lbn: u64) -> usize {
        // In the ring, the oldest is next to the youngest.
        let segment = self.younger[self.youngest as usize];
        self.youngest = segment;
        (self.start[segment as usize], self.length[segment as usize]) = (lbn, 0);
        segment as usize
    }

    /// Extends `segment` to `end`, and drops sectors from its front if it is full.
    #[inline]
    pub(crate) fn grow(&mut self, segment: usize, end: u64) {
        let start = self.start[segment];
        let length = end.saturating_sub(start).max(self.length[segment]);
        self.gap = (0, 0);
        let retained = length.min(self.segment_sectors);
        self.start[segment] = start + (length - retained);
        self.length[segment] = retained;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(segments: u32) -> ReadCache {
        let config = ReadCacheConfig {
            segments,
            segment_sectors: 100,
            read_ahead_sectors: 0,
            sequential_read_ahead_sectors: 0,
            read_ahead_after: Default::default(),
            read_ahead_until: Default::default(),
            read_on_arrival: false,
            replace_requested: true,
            keep_written: false,
        };
        ReadCache::new(&config)
    }

    #[test]
    fn segment_is_found_by_its_sectors_and_the_next_sector() {
        let mut cache = cache(2);
        assert_eq!(cache.find(0), None);
        let segment = cache.begin(50);
        cache.grow(segment, 60);
        assert_eq!([49, 50, 60, 61].map(|lbn| cache.find(lbn).is_some()), [false, true, true, false]);
    }

    #[test]
    fn full_segment_drops_its_oldest_sectors() {
        let mut cache = cache(1);
        let segment = cache.begin(0);
        cache.grow(segment, 250);
        assert_eq!((cache.start(segment), cache.end(segment)), (150, 250));
    }

    #[test]
    fn writes_drop_their_range_from_the_read_cache() {
        let mut cache = cache(2);
        for lbn in [0, 1000] {
            let segment = cache.begin(lbn);
            cache.grow(segment, lbn + 50);
        }
        let (low, high) = (cache.find(0).unwrap(), cache.find(1000).unwrap());
        assert!(cache.overlaps(low, 49, 60) && !cache.overlaps(low, 50, 60));
        cache.cut(40, 1010);
        assert_eq!([(cache.start(low), cache.end(low)), (cache.start(high), cache.end(high))], [(0, 40), (1010, 1050)]);
        cache.cut(500, 600);
        cache.grow(low, 520);
        cache.cut(510, 515);
        assert_eq!(cache.end(low), 510, "also where nothing was before");
        cache.cut(0, 2000);
        assert!(cache.is_empty(low) && cache.is_empty(high));
    }

    #[test]
    fn least_recently_used_segment_is_replaced() {
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
