//! Read segments: the stretches of sectors the disk keeps of what it read.
//!
//! One segment at most is growing: that of the present or latest read, filled by the head as it
//! passes. A full one slides: it drops its first sectors. The others keep what they hold until they
//! are the one unused longest and a new stretch needs a place.

use super::config::ReadCacheConfig;

/// The segments.
#[derive(Clone, Debug)]
pub(crate) struct ReadCache {
    /// First sector of each.
    start: Vec<u64>,
    /// Sectors in each.
    length: Vec<u64>,
    /// The segments by last use, in a ring: the next older, and the next younger.
    older: Vec<u8>,
    younger: Vec<u8>,
    youngest: u8,
    segment_sectors: u64,
    /// A stretch of sectors of which no segment holds any: where the last write was.
    gap: (u64, u64),
}

impl ReadCache {
    pub(crate) fn new(config: &ReadCacheConfig) -> Self {
        let segments = config.segments as usize;
        let ring = |shift: usize| (0..segments).map(|segment| ((segment + shift) % segments) as u8).collect();
        Self {
            // Where no sector is, so that an empty segment holds none and none continues it.
            start: vec![u64::MAX; segments],
            length: vec![0; segments],
            older: ring(1),
            younger: ring(segments - 1),
            youngest: 0,
            segment_sectors: u64::from(config.segment_sectors),
            gap: (0, u64::MAX),
        }
    }

    /// The segment that holds `lbn`, or that `lbn` continues.
    #[inline]
    pub(crate) fn find(&self, lbn: u64) -> Option<usize> {
        let mut found = usize::MAX;
        for (segment, (&start, &length)) in self.start.iter().zip(&self.length).enumerate() {
            // No branch: which segment it is, if any, cannot be foreseen.
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

    /// The sector at which `segment` is full, if nothing is dropped from its front.
    #[inline]
    pub(crate) fn full_end(&self, segment: usize) -> u64 {
        self.start[segment] + self.segment_sectors
    }

    /// Whether `segment` holds some of `start..end`.
    #[inline]
    pub(crate) fn overlaps(&self, segment: usize, start: u64, end: u64) -> bool {
        self.start[segment] < end && start < self.end(segment)
    }

    /// Takes `start..end` out of all segments, with what lies behind it in one that begins before it.
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

    /// Notes that `segment` was of use.
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

    /// Gives up the segment unused longest for a stretch that begins at `lbn`.
    #[inline]
    pub(crate) fn begin(&mut self, lbn: u64) -> usize {
        // In the ring the oldest is next to the youngest.
        let segment = self.younger[self.youngest as usize];
        self.youngest = segment;
        (self.start[segment as usize], self.length[segment as usize]) = (lbn, 0);
        segment as usize
    }

    /// `segment` now reaches to `end`, and drops from its front what it has no room for.
    #[inline]
    pub(crate) fn grow(&mut self, segment: usize, end: u64) {
        let start = self.start[segment];
        let length = end.saturating_sub(start).max(self.length[segment]);
        self.gap = (0, 0);
        let kept = length.min(self.segment_sectors);
        self.start[segment] = start + (length - kept);
        self.length[segment] = kept;
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
