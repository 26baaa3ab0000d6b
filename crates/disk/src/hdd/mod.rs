//! `hdd`: a rotating disk.
//!
//! The disk has one arm, a spindle that never stops, and a cache. Times follow Ruemmler and Wilkes,
//! "An introduction to disk drive modeling" (1994). A command takes a seek (from a curve), a head
//! switch, the rotation to the sector, and a transfer at the rate of the zone. Tracks are skewed.
//! There are read segments with read-ahead, a volatile write cache, and a command queue. The queue
//! serves the command with the shortest positioning time first (Jacobson and Wilkes, "Disk
//! scheduling algorithms based on rotational position", 1991).
//!
//! The model acts only at decisions: when a command arrives, and when the head becomes free and has
//! further work. The model computes other actions of the head, mostly read-ahead, afterwards from
//! the path of the head (the *pass*).
//!
//! Sequential reads lose no revolution. The head always reads the sectors up to the end of the
//! current read. After a read that continued an earlier read, the head reads some more sectors. A
//! read that begins at one of these sectors joins the pass, whether it is queued or arrives later.
//! The first sectors of this read cross the link while the head passes them. The head then
//! continues with its other sectors. Therefore a read can be larger than a segment. A segment keeps
//! only the latest sectors of its stream.
//!
//! A write crosses the link in parts, as space in the write cache becomes free. Link and head work
//! at the same time, and a write can be larger than the cache. The head never overtakes the link. A
//! write that begins where the head has just written needs no positioning.
//!
//! The medium has blocks of one or more sectors. To write a part of a block, the disk reads the
//! block, unless a read segment has it, and writes the block one revolution later. Writing back
//! leaves the incomplete block at the end of a range until all whole blocks of the range are
//! written.
//!
//! Not modelled: sectors remapped in use, thermal recalibration, and retries. If the head arrives
//! in the middle of a command's sectors, it does not read the end first. Transfers from the medium
//! do not compete with other transfers on the link.

mod arm;
mod config;
mod geometry;
mod queue;
mod read_cache;
mod seek;
mod spindle;
mod write_cache;

use std::collections::VecDeque;
use std::sync::Arc;

use iosched::{Op, Time};

pub use self::config::{
    HddConfig, InterfaceConfig, OverheadsConfig, QueueConfig, ReadAheadAfter, ReadAheadUntil, ReadCacheConfig,
    SeekConfig, SeekFormula, SeekPoint, TrackOrder, WriteCacheConfig, ZoneConfig,
};
use self::geometry::{Geometry, Pass};
use self::queue::{Head, Pending, Queue};
use self::read_cache::ReadCache;
use self::spindle::Spindle;
use self::write_cache::WriteCache;
use crate::completions::Completions;
use crate::config::ConfigError;
use crate::link::LinkRate;
use crate::{Card, Command, Device};

/// A time that never comes, ns.
const NEVER_NS: u64 = u64::MAX;

/// Kind of a command's first action, which determines the overhead.
#[derive(Clone, Copy)]
enum Work {
    ReadHit,
    ReadMiss,
    WriteHit,
    WriteMiss,
}

/// Parameters in the form that the model needs.
#[derive(Clone, Copy, Debug)]
struct Settings {
    command_ns: u64,
    /// Overheads by [`Work`], ns: for each kind, the overhead after a read and after a write.
    overheads_ns: [[u64; 2]; 4],
    /// Size of a physical block, sectors. The last block of a read crosses the link only after the
    /// head has passed the whole block.
    block_sectors: u64,
    link: LinkRate,
    write_settle_ns: u64,
    write_to_read_ns: u64,
    read_ahead_sectors: u64,
    sequential_read_ahead_sectors: u64,
    read_ahead_after: ReadAheadAfter,
    read_ahead_until: ReadAheadUntil,
    read_on_arrival: bool,
    replace_requested: bool,
    keep_written: bool,
    write_cache: bool,
    idle_ns: u64,
    destage_sectors: u64,
    flush_ns: u64,
    starvation_ns: u64,
}

/// A write, or the rest of a write, that waits for space in the cache.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    tag: u32,
    sequence: u64,
    submitted_ns: u64,
    /// First sector that is not in the cache.
    start: u64,
    end: u64,
    /// Overhead before the next part crosses the link. 0 after the first part.
    overhead_ns: u64,
}

/// A flush that waits for the medium.
#[derive(Clone, Copy, Debug)]
struct Flush {
    tag: u32,
    sequence: u64,
    submitted_ns: u64,
    /// Last epoch that the flush covers.
    epoch: u64,
}

/// Model of a rotating disk with heads, platters and caches.
#[derive(Clone, Debug)]
pub struct Hdd {
    card: Card,
    /// Immutable layout, shared by all disks of a type.
    geometry: Arc<Geometry>,
    settings: Settings,
    spindle: Spindle,
    /// Path of the head since it was last positioned.
    pass: Pass,
    /// Sector at which the pass stops.
    pass_end: u64,
    /// Sector up to which the pass cannot be interrupted.
    committed_end: u64,
    /// Read segment that the pass fills.
    filling: Option<usize>,
    /// Whether the current or latest pass is a write.
    writing: bool,
    /// Whether the previous command was a write.
    after_write: bool,
    /// Time at which the head becomes free, ns.
    busy_until_ns: u64,
    /// Time at which the last read of the medium ended, ns.
    read_ns: u64,
    /// Time at which enough dirty data has crossed the link to begin writing back, ns.
    cached_ns: u64,
    /// Sector after the last sector that the write cache accepted.
    taken_end: u64,
    /// Time at which the link becomes free, ns.
    link_free_ns: u64,
    /// Time of the next decision, ns, or [`NEVER_NS`].
    wake_ns: u64,
    queue: Queue,
    read_cache: ReadCache,
    write_cache: WriteCache,
    waiting: VecDeque<Waiting>,
    flushes: VecDeque<Flush>,
    done: Completions,
    submitted: u64,
    medium_commands: u64,
}

impl Hdd {
    /// Creates an idle disk. The arm is at the outer edge, the caches are empty, and angle 0 is
    /// under the heads at time 0.
    ///
    /// # Errors
    /// The errors of [`HddConfig::validate`].
    pub fn new(config: &HddConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let spindle = Spindle::new(config.rpm);
        let geometry = Geometry::new(config, &spindle);
        let pass = Pass::new(&geometry, geometry.locate(0), 0, 0);
        let depth = config.depth as usize;
        Ok(Self {
            card: Card {
                capacity_sectors: config.capacity_sectors,
                depth: config.depth,
                hw_queues: 1,
                rotational: true,
                write_cache: config.write_cache.enabled,
                fua: config.fua,
                max_hw_sectors_kb: config.max_hw_sectors_kb,
            },
            settings: Settings {
                command_ns: config.interface.command_ns,
                overheads_ns: config.interface.overheads(),
                block_sectors: u64::from(config.physical_block_bytes / 512),
                link: LinkRate::new(config.interface.bytes_per_second),
                write_settle_ns: config.write_settle_ns,
                write_to_read_ns: config.write_to_read_ns.unwrap_or_else(|| seek::settle_ns(&config.seek)),
                read_ahead_sectors: u64::from(config.read_cache.read_ahead_sectors),
                sequential_read_ahead_sectors: u64::from(config.read_cache.sequential_read_ahead_sectors),
                read_ahead_after: config.read_cache.read_ahead_after,
                read_ahead_until: config.read_cache.read_ahead_until,
                read_on_arrival: config.read_cache.read_on_arrival,
                replace_requested: config.read_cache.replace_requested,
                keep_written: config.read_cache.keep_written,
                write_cache: config.write_cache.enabled,
                idle_ns: config.write_cache.idle_ns,
                destage_sectors: u64::from(config.write_cache.destage_sectors),
                flush_ns: config.write_cache.flush_ns,
                starvation_ns: config.queue.starvation_ns,
            },
            spindle,
            pass,
            pass_end: 0,
            committed_end: 0,
            filling: None,
            writing: false,
            after_write: false,
            busy_until_ns: 0,
            read_ns: 0,
            cached_ns: 0,
            taken_end: 0,
            link_free_ns: 0,
            wake_ns: NEVER_NS,
            queue: Queue::new(config.depth, config.queue.starvation_ns),
            read_cache: ReadCache::new(&config.read_cache),
            write_cache: WriteCache::new(&config.write_cache),
            waiting: VecDeque::with_capacity(depth),
            flushes: VecDeque::with_capacity(depth),
            done: Completions::new(config.depth),
            submitted: 0,
            medium_commands: 0,
            geometry: Arc::new(geometry),
        })
    }

    /// Sets the angle under the heads at time 0, in units of 2^-32 of a revolution. Two runs of one
    /// disk differ in this angle. The host calls this before any command.
    pub fn set_start_angle(&mut self, angle: u32) {
        self.spindle.start = angle;
    }

    /// Returns the number of sectors that the write cache has accepted and that are not on the
    /// medium yet. If the host replaces a sector while the head writes it, the new sector also
    /// counts.
    #[must_use]
    pub fn dirty_sectors(&self) -> u64 {
        self.write_cache.dirty_sectors()
    }

    /// Returns the number of commands for which the head was positioned. Reads from the cache,
    /// writes into it, and writing back do not count.
    #[must_use]
    pub fn medium_commands(&self) -> u64 {
        self.medium_commands
    }

    /// Returns the time of a revolution, ns.
    #[must_use]
    pub fn revolution_ns(&self) -> u64 {
        self.spindle.revolution_ns()
    }

    /// Returns the time to move the arm between the cylinders of two sectors, ns, without rotation.
    #[must_use]
    pub fn seek_ns(&self, from: u64, to: u64) -> u64 {
        let place = |lbn| self.geometry.locate(lbn).cylinder;
        self.geometry.seeks.ns(place(from).abs_diff(place(to)))
    }

    #[inline]
    const fn link_ns(&self, nr_sectors: u64) -> u64 {
        self.settings.link.ns(nr_sectors)
    }

    /// Returns the overhead of a command, ns.
    #[inline]
    const fn overhead_ns(&self, work: Work) -> u64 {
        self.settings.overheads_ns[work as usize][self.after_write as usize]
    }

    /// Completes a command that needs only the link, `overhead_ns` after the link is free.
    #[inline]
    fn transfer(&mut self, now_ns: u64, tag: u32, sequence: u64, nr_sectors: u64, overhead_ns: u64) {
        self.link_free_ns = self.link_free_ns.max(now_ns) + overhead_ns + self.link_ns(nr_sectors);
        self.done.push(Time::from_ns(self.link_free_ns), sequence, tag);
    }

    /// Completes a read that crosses the link while the head passes its sectors. The transfer
    /// starts at `ready_ns`. It ends after the last sector, which passes at `media_ns`.
    #[inline(always)]
    fn done_while_read(&mut self, ready_ns: u64, media_ns: u64, nr_sectors: u64, sequence: u64, tag: u32) {
        let tail_ns = self.link_ns(nr_sectors.min(self.settings.block_sectors));
        let at_ns = (ready_ns + self.link_ns(nr_sectors)).max(media_ns + tail_ns);
        self.done.push(Time::from_ns(at_ns), sequence, tag);
    }

    /// Completes a read from the cache.
    #[inline]
    fn hit(&mut self, now_ns: u64, command: &Command, sequence: u64, nr_sectors: u64) {
        self.transfer(now_ns, command.tag, sequence, nr_sectors, self.overhead_ns(Work::ReadHit));
    }

    /// Advances the pass to `now_ns`, and returns the sector it has reached.
    #[inline]
    fn follow(&mut self, now_ns: u64) -> u64 {
        let reached = self.pass.follow(&self.geometry, &self.spindle, now_ns, self.pass_end);
        if let Some(segment) = self.filling {
            self.read_cache.grow(segment, reached);
        }
        reached
    }

    /// Returns the end of the read-ahead after a read that ends at `end`, in a segment that begins
    /// at `segment_start`. `continued` tells whether the read continues an earlier read.
    #[inline]
    fn read_ahead_end(&self, segment_start: u64, end: u64, continued: bool) -> u64 {
        if self.settings.read_ahead_after == ReadAheadAfter::ContinuedRead && !continued {
            return end;
        }
        let wanted = (end + self.settings.read_ahead_sectors).min(self.geometry.capacity_sectors);
        let limit = match self.settings.read_ahead_until {
            ReadAheadUntil::Distance => return wanted,
            ReadAheadUntil::Track => self.geometry.track(end - 1).end,
            ReadAheadUntil::NextTrack => {
                let track = self.geometry.track(end - 1);
                if segment_start < track.start { self.geometry.track(track.end).end } else { track.end }
            }
            ReadAheadUntil::Cylinder => self.geometry.cylinder_end(end - 1),
        };
        wanted.min(limit).max(end)
    }

    /// Returns whether writing back competes with reads.
    #[inline]
    fn is_urgent(&self) -> bool {
        !self.write_cache.is_empty()
            && (!self.waiting.is_empty() || !self.flushes.is_empty() || self.write_cache.is_high())
    }

    #[inline]
    fn read(&mut self, now_ns: u64, command: &Command, sequence: u64) {
        let (start, end) = (command.sector, self.end(command));
        let nr_sectors = end - start;
        let present = self.read_present(now_ns, start, end);
        match present {
            Present::Held => return self.hit(now_ns, command, sequence, nr_sectors),
            Present::At(media_ns) => {
                let ready_ns = now_ns + self.overhead_ns(Work::ReadHit);
                return self.done_while_read(ready_ns, media_ns, nr_sectors, sequence, command.tag);
            }
            Present::Begun | Present::Absent => {}
        }
        let mut segment = self.read_cache.find(start).filter(|&segment| !self.read_cache.is_empty(segment));
        let mut medium_start = start;
        if let Some(segment) = segment {
            self.read_cache.touch(segment);
            medium_start = self.read_cache.end(segment);
            if end <= medium_start {
                return self.hit(now_ns, command, sequence, nr_sectors);
            }
        }
        if matches!(present, Present::Begun) && self.committed_end > medium_start {
            (segment, medium_start) = (self.filling, self.committed_end);
        }
        if !self.write_cache.is_clean() && self.write_cache.covers(start, end) {
            return self.hit(now_ns, command, sequence, nr_sectors);
        }
        self.queue.push(Pending {
            tag: command.tag,
            sequence,
            submitted_ns: now_ns,
            ready_ns: now_ns + self.overhead_ns(Work::ReadMiss),
            first: start,
            start: medium_start,
            end,
            write: false,
            continues: segment.map(|segment| segment as u32),
            place: self.geometry.locate(medium_start),
        });
    }

    /// Returns whether the segment that is being filled has `start..end`, or will have these
    /// sectors without a movement of the arm.
    #[inline]
    fn read_present(&mut self, now_ns: u64, start: u64, end: u64) -> Present {
        let Some(segment) = self.filling else { return Present::Absent };
        let reached = self.follow(now_ns);
        let near = reached + self.pass.track_sectors(&self.geometry);
        if start < self.read_cache.start(segment) || start > near.max(self.committed_end) {
            return Present::Absent;
        }
        let alone = self.queue.is_empty() && !self.is_urgent();
        let runs = reached < self.pass_end;
        if end <= reached {
            self.read_cache.touch(segment);
            if alone {
                self.read_on(now_ns, end, reached, runs);
            }
            return Present::Held;
        }
        let geometry = &*self.geometry;
        if end > self.committed_end {
            if !(alone && runs) {
                let begun = start <= self.committed_end && reached <= self.committed_end;
                return if begun { Present::Begun } else { Present::Absent };
            }
            let last = geometry.capacity_sectors;
            self.committed_end = (end + self.settings.sequential_read_ahead_sectors).min(last);
            let wanted = self.read_ahead_end(self.read_cache.start(segment), end, true);
            self.pass_end = self.pass_end.max(wanted).max(self.committed_end);
            let passed_ns = self.pass.passed_ns(geometry, &self.spindle, self.committed_end);
            self.busy_until_ns = self.busy_until_ns.max(passed_ns);
            self.read_ns = self.busy_until_ns;
        }
        self.read_cache.touch(segment);
        Present::At(self.pass.passed_ns(geometry, &self.spindle, end))
    }

    /// Continues read-ahead after the host has read the sectors before `end`. The segment that is
    /// being filled ends at `reached`. A running read-ahead is extended. A stopped read-ahead
    /// starts again.
    #[inline]
    fn read_on(&mut self, now_ns: u64, end: u64, reached: u64, runs: bool) {
        let Some(segment) = self.filling else { return };
        let wanted = self.read_ahead_end(self.read_cache.start(segment), end, true);
        if runs {
            self.pass_end = self.pass_end.max(wanted);
        } else if self.busy_until_ns <= now_ns && reached < wanted {
            let place = self.geometry.locate(reached);
            let at_ns = now_ns + self.head(now_ns).positioning_ns(&place, false);
            self.pass = Pass::new(&self.geometry, place, reached, at_ns);
            self.pass_end = wanted;
            self.writing = false;
        }
    }

    #[inline]
    fn write(&mut self, now_ns: u64, command: &Command, sequence: u64) {
        let (start, end) = (command.sector, self.end(command));
        let Command { tag, .. } = *command;
        self.forget(now_ns, start, end);
        if !self.settings.write_cache || command.fua {
            let place = self.geometry.locate(start);
            let continues = None;
            let ready_ns = now_ns + self.overhead_ns(Work::WriteMiss);
            let submitted_ns = now_ns;
            self.queue.push(Pending {
                tag,
                sequence,
                submitted_ns,
                ready_ns,
                first: start,
                start,
                end,
                write: true,
                continues,
                place,
            });
            return;
        }
        let overhead_ns = self.overhead_ns(Work::WriteHit);
        let mut write = Waiting { tag, sequence, submitted_ns: now_ns, start, end, overhead_ns };
        if !(self.waiting.is_empty() && self.cache(now_ns, &mut write)) {
            self.waiting.push_back(write);
        }
    }

    /// Moves a part of a write into the cache. The size of the part is the free space, including
    /// the space that the current write of the head will free. Returns whether the whole write is
    /// in the cache. If it is, the command completes when its last part has crossed the link.
    #[inline]
    fn cache(&mut self, now_ns: u64, write: &mut Waiting) -> bool {
        let &mut Waiting { tag, sequence, start, end, overhead_ns, .. } = write;
        let part_end = end.min(start + self.write_cache.room(start));
        if part_end == start {
            return false;
        }
        let begins_ns = self.link_free_ns.max(now_ns) + overhead_ns;
        self.link_free_ns = begins_ns + self.link_ns(part_end - start);
        if self.write_cache.free() < part_end - start {
            self.follow_head(begins_ns, part_end - start);
        }
        let first = self.write_cache.is_empty();
        self.write_cache.insert(&self.geometry, start, part_end);
        if self.settings.keep_written {
            let segment = self.read_cache.begin(start);
            self.read_cache.grow(segment, part_end);
        }
        if first {
            // The head puts a write on the medium in one piece, unless the write fills the cache
            // and must make space.
            let fits = part_end == end && self.write_cache.free() > 0;
            let piece = if fits { self.settings.destage_sectors } else { self.settings.block_sectors };
            let behind = (part_end - start).saturating_sub(piece);
            self.cached_ns = self.link_free_ns - self.link_ns(behind);
        }
        (self.taken_end, write.start, write.overhead_ns) = (part_end, part_end, 0);
        if part_end == end {
            self.done.push(Time::from_ns(self.link_free_ns), sequence, tag);
        }
        part_end == end
    }

    /// Delays the sectors of a transfer that begins at `begins_ns`, until the head has made space
    /// in the cache. For each sector that the head has written, another sector can cross the link.
    fn follow_head(&mut self, begins_ns: u64, nr_sectors: u64) {
        let Some(chunk_start) = self.write_cache.chunk_start() else { return };
        let passed_ns = |end| self.pass.passed_ns(&self.geometry, &self.spindle, end);
        let free = self.write_cache.free();
        let block = self.settings.block_sectors;
        // From the first sector that waits, the slower of link and head determines the time.
        let waits_ns = (begins_ns + self.link_ns(free)).max(passed_ns(chunk_start + block));
        let last_ns = passed_ns(chunk_start + self.write_cache.needed(nr_sectors));
        self.link_free_ns = (waits_ns + self.link_ns(nr_sectors - free)).max(last_ns + self.link_ns(block));
    }

    /// Removes written sectors from the read segments.
    #[inline]
    fn forget(&mut self, now_ns: u64, start: u64, end: u64) {
        if let Some(segment) = self.filling {
            self.follow(now_ns);
            if self.read_cache.overlaps(segment, start, end) {
                self.filling = None;
            }
        }
        self.read_cache.cut(start, end);
    }

    fn flush(&mut self, now_ns: u64, tag: u32, sequence: u64) {
        if self.write_cache.is_clean() {
            return self.transfer(now_ns, tag, sequence, 0, self.settings.command_ns);
        }
        let epoch = self.write_cache.end_epoch();
        self.flushes.push_back(Flush { tag, sequence, submitted_ns: now_ns, epoch });
    }

    /// Returns the sector after the end of a command, within the capacity.
    #[inline]
    fn end(&self, command: &Command) -> u64 {
        let end = command.sector.saturating_add(u64::from(command.nr_sectors.max(1)));
        debug_assert!(end <= self.card.capacity_sectors, "{command:?} ends after the last sector");
        end.min(self.card.capacity_sectors).max(command.sector)
    }

    #[inline]
    fn head(&self, at_ns: u64) -> Head<'_> {
        Head {
            geometry: &self.geometry,
            spindle: &self.spindle,
            write_settle_ns: self.settings.write_settle_ns,
            read_settle_ns: if self.writing { self.settings.write_to_read_ns } else { 0 },
            cylinder: self.pass.place.cylinder,
            head: self.pass.place.head,
            angle: self.spindle.angle_at(at_ns),
        }
    }

    /// Computes the time of the next decision.
    #[inline]
    fn reschedule(&mut self, now_ns: u64) {
        self.wake_ns = if !self.queue.is_empty() || self.write_cache.has_chunk() {
            self.busy_until_ns.max(now_ns)
        } else if self.write_cache.is_empty() {
            NEVER_NS
        } else {
            let idle_ns = if self.is_urgent() { 0 } else { self.read_ns + self.settings.idle_ns };
            self.busy_until_ns.max(self.cached_ns).max(idle_ns).max(now_ns)
        };
    }
}

/// Presence of a read's sectors in the growing segment.
enum Present {
    /// All sectors are in the segment.
    Held,
    /// All sectors will be in the segment after the head has passed them, at this time, ns.
    At(u64),
    /// The segment will have only the first sectors when the head reaches `committed_end`.
    Begun,
    /// No sectors are or will be in the segment.
    Absent,
}

impl Device for Hdd {
    fn card(&self) -> &Card {
        &self.card
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        let now_ns = now.as_ns();
        if self.wake_ns <= now_ns {
            self.run(now_ns);
        }
        debug_assert!(self.done.len() < self.card.depth as usize, "more than depth commands");
        let sequence = self.submitted;
        self.submitted += 1;
        match command.op {
            Op::Read => {
                self.read(now_ns, &command, sequence);
                self.after_write = false;
            }
            Op::Write | Op::WriteZeroes => {
                self.write(now_ns, &command, sequence);
                self.after_write = true;
            }
            Op::Flush => self.flush(now_ns, command.tag, sequence),
            // Rotating disks do not use discards.
            Op::Discard => self.transfer(now_ns, command.tag, sequence, 0, self.settings.command_ns),
        }
        self.reschedule(now_ns);
        if self.wake_ns <= now_ns {
            self.run(now_ns);
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        match self.done.next() {
            Some(done) => Some(done.min(Time::from_ns(self.wake_ns))),
            None if self.wake_ns == NEVER_NS => None,
            None => Some(Time::from_ns(self.wake_ns)),
        }
    }

    #[inline]
    fn advance(&mut self, now: Time) -> Option<u32> {
        if self.wake_ns <= now.as_ns() {
            self.run(now.as_ns());
        }
        self.done.pop(now)
    }
}
