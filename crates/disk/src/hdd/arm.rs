//! Decisions of the arm: the next command or extent, and its execution.

use iosched::Time;

use super::geometry::Pass;
use super::queue::{Head, Pending};
use super::{Hdd, NEVER_NS};

/// Number of extents that are compared to choose the next extent to write back.
const DESTAGE_CHOICE: usize = 32;

/// The next work of the head.
enum Choice {
    Command(usize),
    /// The extent at this position of the write cache.
    Destage(usize),
}

impl Hdd {
    /// Executes all decisions up to `now_ns`.
    #[inline]
    pub(super) fn run(&mut self, now_ns: u64) {
        while self.wake_ns <= now_ns {
            let at_ns = self.wake_ns;
            if self.write_cache.has_chunk() {
                self.chunk_done(at_ns);
                // After this chunk there may be no work left.
                self.reschedule(at_ns);
                if self.wake_ns > at_ns {
                    continue;
                }
            }
            self.turn_to_next(at_ns);
            self.reschedule(at_ns);
        }
    }

    /// Handles a chunk that is on the medium. Waiting writes get space, and flushes may complete.
    fn chunk_done(&mut self, at_ns: u64) {
        self.write_cache.chunk_done();
        let oldest = self.write_cache.oldest_epoch();
        let clean = self.write_cache.is_clean();
        while let Some(&flush) = self.flushes.front().filter(|flush| clean || flush.epoch < oldest) {
            self.flushes.pop_front();
            self.done.push(Time::from_ns(at_ns + self.settings.flush_ns), flush.sequence, flush.tag);
        }
        self.take_waiting(at_ns);
    }

    /// Moves waiting writes into the cache while it has space.
    fn take_waiting(&mut self, at_ns: u64) {
        while let Some(&write) = self.waiting.front() {
            let mut rest = write;
            if !self.cache(at_ns, &mut rest) {
                self.waiting[0] = rest;
                break;
            }
            self.waiting.pop_front();
        }
    }

    /// Moves the free head to the next command or extent.
    #[inline]
    fn turn_to_next(&mut self, at_ns: u64) {
        let reached = self.follow(at_ns);
        match self.choose(at_ns, reached) {
            Some(Choice::Command(index)) => {
                let pending = self.queue.remove(index);
                self.serve(at_ns, reached, &pending);
            }
            Some(Choice::Destage(position)) => self.destage(at_ns, position),
            None => {}
        }
    }

    /// Chooses the next work: a command that has waited too long, or else the work that the head
    /// reaches first.
    #[inline]
    fn choose(&mut self, at_ns: u64, reached: u64) -> Option<Choice> {
        let urgent = self.is_urgent() && self.cached_ns <= at_ns;
        let starved = self.queue.starved(at_ns);
        let oldest_ns = if urgent { self.oldest_write_back_ns() } else { NEVER_NS };
        let write_back_only = match starved {
            Some((index, submitted_ns)) if submitted_ns <= oldest_ns => return Some(Choice::Command(index)),
            Some(_) => true,
            None => oldest_ns.saturating_add(self.settings.starvation_ns) <= at_ns,
        };
        if !write_back_only && self.has_just_written(at_ns) {
            // A write that continues here needs no positioning, because the skew of the tracks
            // gives the head enough time.
            if let Some(index) = self.queue.next_write(at_ns, self.pass_end) {
                return Some(Choice::Command(index));
            }
        }
        let head = self.head(at_ns);
        let command = if write_back_only { None } else { self.queue.nearest(&head) };
        if command.is_some() && !urgent {
            return command.map(|(index, _)| Choice::Command(index));
        }
        let extent = self.nearest_extent(&head, reached, command.map_or(u64::MAX, |(_, reach_ns)| reach_ns));
        extent.map(Choice::Destage).or(command.map(|(index, _)| Choice::Command(index)))
    }

    /// Returns the position of the extent that the head reaches first, if the head needs less than
    /// `limit_ns`. This is a separate function so that its loop can use all registers.
    #[inline(never)]
    fn nearest_extent(&self, head: &Head<'_>, reached: u64, limit_ns: u64) -> Option<usize> {
        let epoch = self.flushes.back().map_or(u64::MAX, |flush| flush.epoch);
        let (mut nearest_ns, mut nearest) = (limit_ns, None);
        self.write_cache.around(reached, DESTAGE_CHOICE, epoch, |position, place| {
            let reach_ns = head.positioning_ns(place, true);
            if reach_ns < nearest_ns {
                (nearest_ns, nearest) = (reach_ns, Some(position));
            }
        });
        nearest
    }

    /// Returns the submission time of the oldest command that waits for writing back, ns. Returns
    /// [`NEVER_NS`] if no command waits.
    #[inline]
    fn oldest_write_back_ns(&self) -> u64 {
        let write_ns = self.waiting.front().map_or(NEVER_NS, |write| write.submitted_ns);
        self.flushes.front().map_or(NEVER_NS, |flush| flush.submitted_ns).min(write_ns)
    }

    /// Begins a command on the medium. `reached` is the sector that the head has reached.
    #[inline]
    fn serve(&mut self, at_ns: u64, reached: u64, pending: &Pending) {
        let &Pending { first, start, end, place, .. } = pending;
        let ready_ns = at_ns.max(pending.ready_ns);
        let continues = pending.continues.map(|segment| segment as usize);
        let continues = continues.filter(|&segment| self.read_cache.end(segment) == start);
        if pending.write && self.is_partial(start, end) {
            return self.serve_partial(ready_ns, pending);
        }
        let (moved_ns, wait_ns) = self.head(ready_ns).moved_and_wait_ns(&place, pending.write);
        let geometry = &*self.geometry;
        let is_there = if pending.write {
            self.writing && self.pass_end == start
        } else {
            continues.is_some() && continues == self.filling
        };
        if !(is_there && reached == start && self.passes_on_until(ready_ns)) {
            self.pass = Pass::new(geometry, place, start, ready_ns + moved_ns + wait_ns);
        }
        let media_ns = self.pass.passed_ns(geometry, &self.spindle, end);
        (self.committed_end, self.pass_end, self.busy_until_ns) = (end, end, media_ns);
        self.writing = pending.write;
        self.medium_commands += 1;
        if pending.write {
            self.filling = None;
            let linked_ns = ready_ns + self.link_ns(end - start);
            return self.done.push(Time::from_ns(media_ns.max(linked_ns)), pending.sequence, pending.tag);
        }
        let last = geometry.capacity_sectors;
        let segment = match continues {
            Some(segment) => {
                let segment =
                    if first == start && self.is_full(segment) { self.read_cache.begin(start) } else { segment };
                self.committed_end = (end + self.settings.sequential_read_ahead_sectors).min(last);
                self.busy_until_ns = self.pass.passed_ns(geometry, &self.spindle, self.committed_end);
                segment
            }
            None if self.settings.read_on_arrival => {
                self.read_cache.begin(start - geometry.seen_before(start, &place, wait_ns))
            }
            None => self.read_cache.begin(start),
        };
        let wanted = self.read_ahead_end(self.read_cache.start(segment), end, continues.is_some());
        self.pass_end = wanted.max(self.committed_end);
        if !self.settings.replace_requested {
            self.pass_end = self.pass_end.min(self.read_cache.full_end(segment)).max(self.committed_end);
        }
        self.filling = Some(segment);
        self.read_ns = self.busy_until_ns;
        // The part that is in the segment crosses the link first.
        let block_end = start + self.settings.block_sectors;
        let first_block_ns =
            if end <= block_end { media_ns } else { self.pass.passed_ns(geometry, &self.spindle, block_end) };
        let linked_ns = first_block_ns.max(ready_ns + self.link_ns(start - first));
        self.done_while_read(linked_ns, media_ns, end - start, pending.sequence, pending.tag);
        self.attach(at_ns);
    }

    /// Returns whether a write covers a block of the medium only in part.
    #[inline]
    fn is_partial(&self, start: u64, end: u64) -> bool {
        let block = self.settings.block_sectors;
        block > 1 && !(start.is_multiple_of(block) && end.is_multiple_of(block))
    }

    /// Begins a pass that writes `start..end` in whole blocks, and returns its end. The cache may
    /// lack the rest of the first or the last block. Then the disk reads these blocks, and writes
    /// them one revolution later.
    fn write_blocks(&mut self, at_ns: u64, start: u64, end: u64) -> u64 {
        let block = self.settings.block_sectors;
        let blocks_start = start - start % block;
        let blocks_end = end.next_multiple_of(block).min(self.geometry.capacity_sectors).max(end);
        let has = |from: u64, to: u64| from == to || self.read_cache.holds(from, to);
        let read_ns = if has(blocks_start, start) && has(end, blocks_end) { 0 } else { self.spindle.revolution_ns() };
        let place = self.geometry.locate(blocks_start);
        let meets_ns = at_ns + self.head(at_ns).positioning_ns(&place, true) + read_ns;
        self.pass = Pass::new(&self.geometry, place, blocks_start, meets_ns);
        self.busy_until_ns = self.pass.passed_ns(&self.geometry, &self.spindle, blocks_end);
        (self.committed_end, self.pass_end) = (blocks_end, blocks_end);
        self.filling = None;
        self.writing = true;
        blocks_end
    }

    /// Begins a write to the medium that covers a block only in part.
    #[inline(never)]
    fn serve_partial(&mut self, ready_ns: u64, pending: &Pending) {
        self.write_blocks(ready_ns, pending.start, pending.end);
        self.medium_commands += 1;
        let linked_ns = ready_ns + self.link_ns(pending.end - pending.start);
        self.done.push(Time::from_ns(self.busy_until_ns.max(linked_ns)), pending.sequence, pending.tag);
    }

    /// Returns whether a segment is full and must keep its sectors. A read that continues the
    /// segment then needs another segment.
    #[inline]
    fn is_full(&self, segment: usize) -> bool {
        !self.settings.replace_requested && self.read_cache.end(segment) >= self.read_cache.full_end(segment)
    }

    /// Returns whether the head is at the end of a write at this time.
    #[inline]
    fn has_just_written(&self, at_ns: u64) -> bool {
        self.writing && self.busy_until_ns == at_ns
    }

    /// Returns whether the pass continues until `at_ns`, if nothing interrupts it.
    #[inline]
    fn passes_on_until(&self, at_ns: u64) -> bool {
        self.pass.passed_ns(&self.geometry, &self.spindle, self.pass_end) >= at_ns
    }

    /// Attaches queued reads to the pass of the head if they begin at a sector that the head will
    /// certainly pass. If the head returned to their first sectors later, this would cost a
    /// revolution.
    #[inline]
    fn attach(&mut self, at_ns: u64) {
        let Some(segment) = self.filling else { return };
        let (from, to) = (self.read_cache.start(segment), self.committed_end);
        if self.queue.may_start_within(from, to) {
            self.attach_from(at_ns, segment, from, to);
        }
    }

    #[inline(never)]
    fn attach_from(&mut self, at_ns: u64, segment: usize, from: u64, to: u64) {
        let mut index = 0;
        while let Some(found) = self.queue.starts_within(index, from, to) {
            index = found + 1;
            let &Pending { tag, sequence, ready_ns, first, end, write, .. } = self.queue.get(found);
            if write {
                continue;
            }
            if end > to {
                self.queue.attach(found, segment, to, self.geometry.locate(to));
            } else {
                self.queue.remove(found);
                index = found;
                let media_ns = self.pass.passed_ns(&self.geometry, &self.spindle, end);
                self.done_while_read(at_ns.max(ready_ns), media_ns, end - first, sequence, tag);
            }
        }
    }

    /// Returns the number of sectors to write back from `start`, at most `most`. If there are whole
    /// blocks, an incomplete block at the end stays in the cache, because later writes may complete
    /// this block.
    #[inline]
    fn whole_blocks(&self, position: usize, start: u64, most: u64) -> u64 {
        let block = self.settings.block_sectors;
        if block == 1 {
            return most;
        }
        let end = self.write_cache.end_of_chunk(position, most);
        let whole_end = end - end % block;
        if whole_end > start { whole_end - start } else { most }
    }

    /// Begins to write back the extent at a position of the write cache.
    fn destage(&mut self, at_ns: u64, position: usize) {
        let geometry = &*self.geometry;
        let (start, place) = self.write_cache.start(position);
        let goes_on = start == self.pass_end && self.has_just_written(at_ns);
        let meets_ns = if goes_on { at_ns } else { at_ns + self.head(at_ns).positioning_ns(&place, true) };
        // The head does not overtake the link: only sectors that have crossed the link are written.
        let crossed_end = self.taken_end.saturating_sub(self.settings.link.sectors_in(meets_ns, self.link_free_ns));
        if (crossed_end..self.taken_end).contains(&start) {
            let behind = (self.taken_end - start).saturating_sub(self.settings.block_sectors);
            self.cached_ns = (self.link_free_ns - self.link_ns(behind)).max(meets_ns);
            return;
        }
        let most = if start < crossed_end { crossed_end - start } else { u64::MAX };
        let most = self.whole_blocks(position, start, self.settings.destage_sectors.min(most));
        let chunk = self.write_cache.take(geometry, position, most);
        if self.is_partial(chunk.start, chunk.end) {
            self.write_blocks(at_ns, chunk.start, chunk.end);
        } else {
            if !goes_on {
                self.pass = Pass::new(geometry, chunk.place, chunk.start, meets_ns);
            }
            self.busy_until_ns = self.pass.passed_ns(geometry, &self.spindle, chunk.end);
            (self.committed_end, self.pass_end) = (chunk.end, chunk.end);
            self.filling = None;
            self.writing = true;
        }
        if self.write_cache.takes_over() {
            self.take_waiting(at_ns);
        }
    }
}
