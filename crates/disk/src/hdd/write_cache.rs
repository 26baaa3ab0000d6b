//! The volatile write cache. It has data that is acknowledged and not yet on the medium.
//!
//! Dirty sectors are stored as disjoint extents in order of position. Every flush begins a new
//! epoch. A flush is done when no extent of its epoch or an earlier epoch is left. A write to dirty
//! sectors changes their data, but the sectors keep their epoch.

use std::collections::VecDeque;

use super::config::WriteCacheConfig;
use super::geometry::{Geometry, HeadPosition};

/// A range of dirty sectors. Its start is in [`WriteCache::starts`].
#[derive(Clone, Copy, Debug)]
struct Extent {
    end: u64,
    epoch: u64,
    /// Place of the start.
    place: HeadPosition,
}

/// The sectors that the head is writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) place: HeadPosition,
}

/// State of the write cache.
#[derive(Clone, Debug)]
pub(crate) struct WriteCache {
    extents: Vec<Extent>,
    free: Vec<u16>,
    /// First sectors of the extents, ascending. They are stored separately, because a search reads
    /// many of them.
    starts: Vec<u64>,
    /// For each start, the index of its extent in `extents`.
    order: Vec<u16>,
    /// Position in `order` of the latest write.
    latest: usize,
    /// Sectors in extents and in the chunk.
    dirty_sectors: u64,
    chunk: Option<Chunk>,
    /// Epochs of the extents that are completely in the chunk.
    chunk_epochs: Vec<u64>,
    /// Number of the current epoch.
    epoch: u64,
    /// For each epoch up to the current epoch, the number of extents that are not on the medium.
    epochs: VecDeque<u32>,
    sectors_max: u64,
    /// Whether a write can replace sectors while the head is writing them. A cache that is much
    /// larger than one chunk would gain nothing from this.
    takes_over: bool,
    extents_max: usize,
    sectors_high: u64,
    extents_high: usize,
}

impl WriteCache {
    pub(crate) fn new(config: &WriteCacheConfig) -> Self {
        let high = |most: u32| u64::from(most) * u64::from(config.high_percent) / 100;
        Self {
            extents: Vec::new(),
            free: Vec::new(),
            starts: Vec::new(),
            order: Vec::new(),
            latest: 0,
            dirty_sectors: 0,
            chunk: None,
            chunk_epochs: Vec::new(),
            epoch: 0,
            epochs: VecDeque::from([0]),
            sectors_max: u64::from(config.sectors),
            takes_over: config.sectors / 4 < config.destage_sectors,
            extents_max: config.extents as usize,
            sectors_high: high(config.sectors),
            extents_high: high(config.extents) as usize,
        }
    }

    /// Returns whether no extents wait to be written back.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns whether all acknowledged data is on the medium.
    #[inline]
    pub(crate) fn is_clean(&self) -> bool {
        self.order.is_empty() && self.chunk.is_none()
    }

    /// Returns the number of sectors that are acknowledged and not on the medium.
    #[inline]
    pub(crate) fn dirty_sectors(&self) -> u64 {
        self.dirty_sectors
    }

    /// Returns whether the cache is so full that writing back competes with reads.
    #[inline]
    pub(crate) fn is_high(&self) -> bool {
        self.dirty_sectors >= self.sectors_high || self.order.len() >= self.extents_high
    }

    /// Returns the number of sectors that the cache can accept from a write at `start`. In a small
    /// cache, this includes the space of the current chunk. Sectors that continue the latest write
    /// need no additional extent.
    #[inline]
    pub(crate) fn room(&self, start: u64) -> u64 {
        let continues = || self.order.get(self.latest).is_some_and(|&id| self.continues(id, start));
        if self.order.len() < self.extents_max || continues() {
            let chunk = self.chunk.filter(|_| self.takes_over).map_or(0, |chunk| chunk.end - chunk.start);
            self.sectors_max + chunk - self.dirty_sectors
        } else {
            0
        }
    }

    /// Returns whether a write can replace sectors while the head is writing them.
    #[inline]
    pub(crate) fn takes_over(&self) -> bool {
        self.takes_over
    }

    /// Returns the number of sectors that the cache can accept now.
    #[inline]
    pub(crate) fn free(&self) -> u64 {
        self.sectors_max.saturating_sub(self.dirty_sectors)
    }

    /// Returns the number of sectors that must be written before the cache can accept `nr_sectors`.
    pub(crate) fn needed(&self, nr_sectors: u64) -> u64 {
        (self.dirty_sectors + nr_sectors).saturating_sub(self.sectors_max)
    }

    /// Returns the start of the current chunk.
    pub(crate) fn chunk_start(&self) -> Option<u64> {
        self.chunk.map(|chunk| chunk.start)
    }

    /// Returns whether a write at `start` extends the extent `id`.
    #[inline]
    fn continues(&self, id: u16, start: u64) -> bool {
        let extent = &self.extents[id as usize];
        extent.end == start && extent.epoch == self.epoch
    }

    /// Returns the start of the extent at `position`, and its place.
    #[inline]
    pub(crate) fn start(&self, position: usize) -> (u64, HeadPosition) {
        (self.starts[position], self.extents[self.order[position] as usize].place)
    }

    /// Returns the start of the extent at `position`, and the extent.
    #[inline]
    fn at(&self, position: usize) -> Option<(u64, &Extent)> {
        let start = *self.starts.get(position)?;
        Some((start, &self.extents[self.order[position] as usize]))
    }

    /// Returns the start of the extent at `position`, or the largest number if there is no extent.
    #[inline]
    fn start_or_max(&self, position: usize) -> u64 {
        self.starts.get(position).copied().unwrap_or(u64::MAX)
    }

    /// Returns the position of the first extent that begins after `lbn`.
    #[inline]
    fn behind(&self, lbn: u64) -> usize {
        self.starts.partition_point(|&start| start <= lbn)
    }

    /// Returns whether all of `start..end` is in the cache.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        if self.chunk.is_some_and(|chunk| chunk.start <= start && end <= chunk.end) {
            return true;
        }
        let Some(mut position) = self.behind(start).checked_sub(1) else { return false };
        let mut reached = start;
        let reaches =
            |position, reached| self.at(position).filter(|&(start, extent)| start <= reached && extent.end > reached);
        while let Some((_, extent)) = reaches(position, reached) {
            reached = extent.end;
            if reached >= end {
                return true;
            }
            position += 1;
        }
        false
    }

    /// Adds a write. The cache must have space for it.
    #[inline]
    pub(crate) fn insert(&mut self, geometry: &Geometry, start: u64, end: u64) {
        debug_assert!(start < end && end - start <= self.room(start));
        if let Some(&latest) = self.order.get(self.latest) {
            let next = self.start_or_max(self.latest + 1);
            let extent = &mut self.extents[latest as usize];
            if extent.end == start && extent.epoch == self.epoch && end < next {
                extent.end = end;
                self.dirty_sectors += end - start;
                return;
            }
        }
        self.insert_anywhere(geometry, start, end);
    }

    fn insert_anywhere(&mut self, geometry: &Geometry, start: u64, end: u64) {
        let mut position = self.behind(start);
        // If the previous extent neither has these sectors nor can grow by them, they begin or
        // continue another extent.
        let before = position.checked_sub(1).and_then(|before| self.at(before));
        let grows = |extent: &Extent| extent.end > start || (extent.end == start && extent.epoch == self.epoch);
        if before.is_some_and(|(_, extent)| grows(extent)) {
            position -= 1;
        } else {
            let next_start = self.start_or_max(position);
            if next_start <= end && self.at(position).is_some_and(|(_, next)| next.epoch == self.epoch) {
                self.starts[position] = start;
                self.extents[self.order[position] as usize].place = geometry.locate(start);
                self.dirty_sectors += next_start - start;
            } else {
                self.add(geometry, position, start, next_start.min(end));
            }
        }
        self.latest = position;
        self.fill(position, end);
    }

    /// Extends the extent at `position` and the following extents until they cover all sectors
    /// before `end`.
    fn fill(&mut self, mut position: usize, end: u64) {
        loop {
            let next = self.start_or_max(position + 1);
            let extent = &mut self.extents[self.order[position] as usize];
            let reach = end.min(next);
            if extent.end < reach {
                self.dirty_sectors += reach - extent.end;
                extent.end = reach;
            }
            if end <= next {
                return;
            }
            position += 1;
        }
    }

    fn add(&mut self, geometry: &Geometry, position: usize, start: u64, end: u64) {
        let extent = Extent { end, epoch: self.epoch, place: geometry.locate(start) };
        let id = if let Some(id) = self.free.pop() {
            self.extents[id as usize] = extent;
            id
        } else {
            self.extents.push(extent);
            (self.extents.len() - 1) as u16
        };
        self.starts.insert(position, start);
        self.order.insert(position, id);
        self.dirty_sectors += end - start;
        if let Some(count) = self.epochs.back_mut() {
            *count += 1;
        }
    }

    /// Begins a new epoch, and returns the epoch that ends.
    pub(crate) fn end_epoch(&mut self) -> u64 {
        self.epochs.push_back(0);
        self.epoch += 1;
        self.epoch - 1
    }

    /// Returns the oldest epoch with data that is not on the medium. Without such data, returns the
    /// current epoch.
    #[inline]
    pub(crate) fn oldest_epoch(&self) -> u64 {
        self.epoch + 1 - self.epochs.len() as u64
    }

    /// Calls `consider` for up to `most` extents around `lbn`, with the index of each extent in
    /// `order` and its place on the disk. Only extents of epochs up to `epoch` count.
    #[inline]
    pub(crate) fn around(&self, lbn: u64, most: usize, epoch: u64, mut consider: impl FnMut(usize, &HeadPosition)) {
        let middle = self.behind(lbn.saturating_sub(1));
        if epoch < self.epoch {
            let old = |position: &usize| self.extents[self.order[*position] as usize].epoch <= epoch;
            let above = (middle..self.order.len()).filter(old).take(most);
            let below = (0..middle).rev().filter(old).take(most);
            // Half of the extents are from each side. If one side has fewer extents, more extents
            // are from the other side.
            let (found_above, found_below) = (above.clone().count(), below.clone().count());
            let take_above = (most / 2).max(most - found_below.min(most)).min(found_above);
            for position in above.take(take_above).chain(below.take(most - take_above)) {
                consider(position, &self.extents[self.order[position] as usize].place);
            }
            return;
        }
        let last = (middle.saturating_sub(most / 2) + most).min(self.order.len());
        for position in last.saturating_sub(most)..last {
            consider(position, &self.extents[self.order[position] as usize].place);
        }
    }

    /// Returns the end of the sectors that a call of [`take`](Self::take) would start to write.
    pub(crate) fn end_of_chunk(&self, position: usize, most: u64) -> u64 {
        let start = self.start(position).0;
        let limit = start.saturating_add(most);
        let follows = |reached: u64, at: usize| self.at(at).filter(|&(start, _)| start == reached && reached < limit);
        let (mut reached, mut at) = (start, position);
        while let Some((_, extent)) = follows(reached, at) {
            reached = extent.end;
            at += 1;
        }
        reached.min(limit)
    }

    /// Starts to write the extent at `position` and the extents that follow it without a gap, at
    /// most `most` sectors in total.
    pub(crate) fn take(&mut self, geometry: &Geometry, position: usize, most: u64) -> Chunk {
        debug_assert!(self.chunk.is_none());
        let (start, place) = self.start(position);
        let (mut reached, limit, mut emptied) = (start, start + most, 0);
        while let Some(&id) = self.order.get(position + emptied) {
            let extent = &mut self.extents[id as usize];
            if self.starts[position + emptied] != reached || reached == limit {
                break;
            }
            if extent.end > limit {
                self.starts[position + emptied] = limit;
                extent.place = geometry.locate(limit);
                reached = limit;
                break;
            }
            reached = extent.end;
            self.chunk_epochs.push(extent.epoch);
            self.free.push(id);
            emptied += 1;
        }
        self.starts.drain(position..position + emptied);
        self.order.drain(position..position + emptied);
        self.latest = match self.latest.checked_sub(position) {
            // The latest extent is being written, so the next write must search for its position.
            Some(behind) if behind < emptied => usize::MAX,
            Some(_) if self.latest != usize::MAX => self.latest - emptied,
            _ => self.latest,
        };
        let chunk = Chunk { start, end: reached, place };
        self.chunk = Some(chunk);
        chunk
    }

    /// Records that the chunk is on the medium.
    pub(crate) fn chunk_done(&mut self) {
        let Some(chunk) = self.chunk.take() else { return };
        self.dirty_sectors -= chunk.end - chunk.start;
        let first = self.oldest_epoch();
        for epoch in self.chunk_epochs.drain(..) {
            self.epochs[(epoch - first) as usize] -= 1;
        }
        while self.epochs.len() > 1 && self.epochs[0] == 0 {
            self.epochs.pop_front();
        }
    }

    /// Returns whether a chunk is being written.
    #[inline]
    pub(crate) fn has_chunk(&self) -> bool {
        self.chunk.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::config::{HddConfig, WriteCacheConfig};
    use super::super::spindle::Spindle;
    use super::*;
    use crate::{Model, Profile};

    fn geometry() -> Geometry {
        let profile = Profile::named("sata-7200").unwrap();
        let Model::Hdd(config) = profile.model() else { unreachable!("sata-7200 is an hdd") };
        let config: &HddConfig = config;
        Geometry::new(config, &Spindle::new(config.rpm))
    }

    const CONFIG: WriteCacheConfig = WriteCacheConfig {
        enabled: true,
        sectors: 200,
        extents: 8,
        high_percent: 50,
        idle_ns: 0,
        destage_sectors: 16,
        flush_ns: 0,
    };
    const SECTORS: usize = 120;

    /// Expected state of a sector: the epoch of its oldest data that is not on the medium.
    #[derive(Clone, Copy, Default)]
    struct Sector {
        /// Written to the cache, and not in a chunk.
        dirty: Option<u64>,
        /// In the chunk, and not on the medium.
        sent: Option<u64>,
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Write(usize, usize),
        Flush,
        Take(usize),
        Done,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..SECTORS, 1usize..40).prop_map(|(start, length)| Step::Write(start, length.min(SECTORS - start))),
            1 => Just(Step::Flush),
            2 => (0usize..8).prop_map(Step::Take),
            2 => Just(Step::Done),
        ];
        prop::collection::vec(step, 1..80)
    }

    proptest! {
        #[test]
        fn epoch_does_not_end_before_its_sectors_are_on_the_medium(steps in steps()) {
            let geometry = geometry();
            let mut cache = WriteCache::new(&CONFIG);
            let mut sectors = [Sector::default(); SECTORS];
            let mut epoch = 0;
            for step in steps {
                match step {
                    Step::Write(start, length) if length as u64 <= cache.room(start as u64) => {
                        cache.insert(&geometry, start as u64, (start + length) as u64);
                        for sector in &mut sectors[start..start + length] {
                            sector.dirty.get_or_insert(epoch);
                        }
                    }
                    Step::Flush if !cache.is_clean() => {
                        prop_assert_eq!(cache.end_epoch(), epoch);
                        epoch += 1;
                    }
                    Step::Take(position) if !cache.has_chunk() && position < cache.order.len() => {
                        let chunk = cache.take(&geometry, position, 16);
                        prop_assert!(chunk.start < chunk.end && chunk.end - chunk.start <= 16);
                        prop_assert_eq!(chunk.place, geometry.locate(chunk.start));
                        for sector in &mut sectors[chunk.start as usize..chunk.end as usize] {
                            prop_assert!(sector.dirty.is_some(), "only dirty sectors are written back");
                            sector.sent = sector.dirty.take();
                        }
                    }
                    Step::Done => {
                        cache.chunk_done();
                        sectors.iter_mut().for_each(|sector| sector.sent = None);
                    }
                    _ => {}
                }
                let unstable: usize = sectors.iter().map(|s| usize::from(s.dirty.is_some()) + usize::from(s.sent.is_some())).sum();
                prop_assert_eq!(cache.dirty_sectors(), unstable as u64);
                prop_assert_eq!(cache.is_clean(), unstable == 0);
                prop_assert_eq!(cache.is_empty(), sectors.iter().all(|sector| sector.dirty.is_none()));
                let oldest = sectors.iter().flat_map(|sector| [sector.dirty, sector.sent]).flatten().min();
                if let Some(oldest) = oldest {
                    prop_assert!(cache.oldest_epoch() <= oldest, "{} ended too soon", oldest);
                }
                for start in (0..SECTORS - 10).step_by(7) {
                    let dirty = |range: std::ops::Range<usize>| sectors[range].iter().all(|sector| sector.dirty.is_some());
                    if dirty(start..start + 10) {
                        prop_assert!(cache.covers(start as u64, start as u64 + 10));
                    }
                }
                let extents: Vec<(u64, u64)> = (0..cache.order.len())
                    .filter_map(|position| cache.at(position))
                    .map(|(start, extent)| (start, extent.end))
                    .collect();
                prop_assert!(extents.iter().all(|&(start, end)| start < end));
                prop_assert!(extents.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{:?}", extents);
                prop_assert_eq!(cache.starts.len(), cache.order.len());
                for (position, &(start, _)) in extents.iter().enumerate() {
                    prop_assert_eq!(cache.start(position), (start, geometry.locate(start)));
                }
                let mut seen = 0;
                cache.around(60, 100, u64::MAX, |_, _| seen += 1);
                prop_assert_eq!(seen, cache.order.len());
            }
        }
    }
}
