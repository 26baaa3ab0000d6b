//! `hdd`: a rotating disk.
//!
//! One arm, a spindle that never stops, a cache in front. Time is spent as in Ruemmler and Wilkes, "An
//! introduction to disk drive modeling" (1994): seek by a curve, head switch, rotation to the sector, transfer at
//! the zone's rate with skewed tracks; read segments that read ahead, a volatile write cache, and a command
//! queue served by shortest positioning time (Jacobson and Wilkes, "Disk scheduling algorithms based on rotational
//! position", 1991).
//!
//! The disk looks at the world only when something is decided: when a command comes, and when the head becomes
//! free while something waits. What the head does in between, reading ahead above all, is worked out from its
//! pass when it matters.
//!
//! Reads of one stream lose no revolution. The head is certain to pass the sectors up to the end of
//! the present read, and a little more behind a read that continued an earlier one. A read that
//! begins there, queued or arriving, joins: its first sectors cross the link as they pass, and the
//! head reads on for the rest. So reads may be larger than a segment, which keeps only the latest
//! sectors of its stream.
//!
//! A write crosses the link in parts, as room in the write cache frees: link and head work at the
//! same time, and a write may be larger than the cache. The head never overtakes the link. A write
//! that begins where the head has just written needs no positioning.
//!
//! Left out: sectors remapped in use, thermal recalibration, retries, reading the end of a command before its beginning
//! where the head arrives in between, contention of a medium transfer with other transfers on the link.

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

/// Never, in ns.
const NEVER_NS: u64 = u64::MAX;

/// What a command does first, for the work it costs.
#[derive(Clone, Copy)]
enum Work {
    ReadHit,
    ReadMiss,
    WriteHit,
    WriteMiss,
}

/// Parameters as the model needs them.
#[derive(Clone, Copy, Debug)]
struct Settings {
    command_ns: u64,
    /// By [`Work`], [after a read, after a write].
    overheads_ns: [[u64; 2]; 4],
    /// Sectors the medium gives at once: those of a read that cross the link after its last came from the medium.
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

/// A write that waits for room in the cache, or the rest of one.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    tag: u32,
    sequence: u64,
    submitted_ns: u64,
    /// First sector that the cache has not taken.
    start: u64,
    end: u64,
    /// The work until its next part crosses the link: none once the first part has.
    overhead_ns: u64,
}

/// A flush that waits for the medium.
#[derive(Clone, Copy, Debug)]
struct Flush {
    tag: u32,
    sequence: u64,
    submitted_ns: u64,
    /// The last epoch it is about.
    epoch: u64,
}

/// A rotating disk.
#[derive(Clone, Debug)]
pub struct Hdd {
    card: Card,
    /// What never changes: shared by all disks of a type.
    geometry: Arc<Geometry>,
    settings: Settings,
    spindle: Spindle,
    /// The way of the head since it was last positioned.
    pass: Pass,
    /// The sector at which the pass stops.
    pass_end: u64,
    /// The sector up to which the pass will not be broken off.
    committed_end: u64,
    /// The read segment that the pass fills.
    filling: Option<usize>,
    /// Whether the pass is, or the latest was, a write.
    writing: bool,
    /// Whether the command before was a write.
    after_write: bool,
    /// Until when the head is not free.
    busy_until_ns: u64,
    /// When the medium was last busy with a read.
    read_ns: u64,
    /// When enough of what waits to be written back has crossed the link to begin.
    cached_ns: u64,
    /// The sector behind the latest that the write cache took.
    taken_end: u64,
    /// When the link is free.
    link_free_ns: u64,
    /// When something has to be decided, or [`NEVER_NS`].
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
    /// An idle disk: arm at the outer edge, caches empty, angle 0 under the heads at the origin of time.
    ///
    /// # Errors
    /// As [`HddConfig::validate`].
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

    /// Sets the angle under the heads at the origin of time, in units of 2^-32 of a revolution. It is what differs
    /// between two runs of one disk; to be called before any command.
    pub fn set_start_angle(&mut self, angle: u32) {
        self.spindle.start = angle;
    }

    /// Sectors that the write cache has accepted, and that are not on the medium yet. A sector that
    /// takes the place of one that the head is writing counts as accepted.
    #[must_use]
    pub fn dirty_sectors(&self) -> u64 {
        self.write_cache.dirty_sectors()
    }

    /// Commands that the head was sent for: neither reads from the cache, nor writes into it, nor their writing back.
    #[must_use]
    pub fn medium_commands(&self) -> u64 {
        self.medium_commands
    }

    /// Time of a revolution, in ns.
    #[must_use]
    pub fn revolution_ns(&self) -> u64 {
        self.spindle.revolution_ns()
    }

    /// Time to move the arm between the cylinders of two sectors, in ns, without rotation.
    #[must_use]
    pub fn seek_ns(&self, from: u64, to: u64) -> u64 {
        let place = |lbn| self.geometry.locate(lbn).cylinder;
        self.geometry.seeks.ns(place(from).abs_diff(place(to)))
    }

    #[inline]
    const fn link_ns(&self, nr_sectors: u64) -> u64 {
        self.settings.link.ns(nr_sectors)
    }

    /// The work that a command costs, in ns.
    #[inline]
    const fn overhead_ns(&self, work: Work) -> u64 {
        self.settings.overheads_ns[work as usize][self.after_write as usize]
    }

    /// Completes a command that needs the link only, `overhead_ns` after the link is free for it.
    #[inline]
    fn transfer(&mut self, now_ns: u64, tag: u32, sequence: u64, nr_sectors: u64, overhead_ns: u64) {
        self.link_free_ns = self.link_free_ns.max(now_ns) + overhead_ns + self.link_ns(nr_sectors);
        self.done.push(Time::from_ns(self.link_free_ns), sequence, tag);
    }

    /// Completes a read that crosses the link while the head passes it: from `ready_ns` on, and not
    /// before its last sector has passed at `media_ns`.
    #[inline]
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

    /// Brings the pass to `now_ns`; returns the sector it has reached.
    #[inline]
    fn follow(&mut self, now_ns: u64) -> u64 {
        let reached = self.pass.follow(&self.geometry, &self.spindle, now_ns, self.pass_end);
        if let Some(segment) = self.filling {
            self.read_cache.grow(segment, reached);
        }
        reached
    }

    /// Where reading ends that goes on behind `end`, what the host wanted last, in a segment that begins at
    /// `segment_start`; `continued`: what it wanted goes on from an earlier read.
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

    /// Whether writing back competes with reads.
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

    /// Whether the segment being filled holds `start..end`, or will without the head being moved.
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

    /// The host took everything before `end` from the segment being filled, which reaches to `reached`: reading ahead
    /// may go further, or begin again if it had to stop.
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

    /// Takes as much of a write into the cache as there is room for, or will be once the head has
    /// written what it is writing. Returns whether that is all: the command then completes when its
    /// last part has crossed the link.
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
            // A write is written back in one piece, but one that fills the cache has to make room.
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

    /// So many sectors that would cross the link from `begins_ns` on need room that the head makes:
    /// a sector crosses when another one has been written.
    fn follow_head(&mut self, begins_ns: u64, nr_sectors: u64) {
        let Some(chunk_start) = self.write_cache.chunk_start() else { return };
        let passed_ns = |end| self.pass.passed_ns(&self.geometry, &self.spindle, end);
        let free = self.write_cache.free();
        let block = self.settings.block_sectors;
        // Of both, the link and the head, the slower one counts from the first sector that waits on.
        let waits_ns = (begins_ns + self.link_ns(free)).max(passed_ns(chunk_start + block));
        let last_ns = passed_ns(chunk_start + self.write_cache.needed(nr_sectors));
        self.link_free_ns = (waits_ns + self.link_ns(nr_sectors - free)).max(last_ns + self.link_ns(block));
    }

    /// Read segments no longer hold what is written.
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

    /// The sector behind the last of a command, within the capacity.
    #[inline]
    fn end(&self, command: &Command) -> u64 {
        let end = command.sector.saturating_add(u64::from(command.nr_sectors.max(1)));
        debug_assert!(end <= self.card.capacity_sectors, "{command:?} ends behind the last sector");
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

    /// Works out when something has to be decided next.
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

/// What the growing segment has of a read.
enum Present {
    /// All of it.
    Held,
    /// All of it, once the head has passed: when, in ns.
    At(u64),
    /// Its beginning, once the head has come to the end of what it is certain to pass.
    Begun,
    /// Neither.
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
            // Rotating disks have no use for it.
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
