//! The sequence of a job's I/Os, with the direction, file, place and length of each I/O, and the
//! syncs between the I/Os.
//!
//! Other modules control time, depth and rates. Runs of fio 3.33 with `write_iolog` showed the
//! behaviour in special cases (ends of files, full maps, passes):
//!
//! - Each direction has its own position in each file. `:N` counts I/Os of all directions.
//! - Only random I/Os read and update the random map. If the drawn block is taken, the I/O uses the
//!   next free block. An I/O that reaches a taken block ends before this block.
//! - A file is done when its positions reach the end or its map is full. A pass is done when all
//!   files are done or `size` bytes were moved.
//! - Without a map, random I/Os continue until `io_size` or `size` bytes were moved.
//! - With `randrepeat`, a pass repeats the offsets of the previous pass, if `loops` or an `io_size`
//!   above `size` causes the pass. Passes of `time_based` use different offsets.
//!
//! The generator does not reproduce two special cases of fio. When fio goes backward from offset 0,
//! its first I/O is at the start of the file. With a map and different block sizes for each
//! direction, fio accesses some blocks twice and other blocks never.

use iosched::IoPriority;

use super::distribution::Spread;
use super::job::Job;
use super::layout::{JobLayout, Region, smallest_block};
use super::random_map::RandomMap;
use super::service::Service;
use super::value::{
    BlockSize, Direction, Distribution, LogIo, Mode, PerDirection, Placement, RandomGenerator, ReplayLog, Sequencer,
};
use crate::outcome::SyncKind;
use iosched_numbers::SplitMix64;

/// Largest number of blocks in the random maps of all jobs together. Each block needs one bit.
pub(super) const MAP_BLOCKS_MAX: u64 = 1 << 33;
/// Number of draws of a length near the end of a file. After them, the smallest length is used.
const LENGTH_DRAWS_MAX: u32 = 64;

/// Next action of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An I/O.
    Io(JobIo),
    /// A sync of the data that the job wrote.
    Sync(SyncKind),
}

/// An I/O of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobIo {
    /// Direction of the I/O.
    pub direction: Direction,
    /// Number of the file in the job.
    pub file: u32,
    /// Start of the I/O on the device, bytes.
    pub start: u64,
    /// Length of the I/O, bytes; at least 1.
    pub bytes: u64,
    /// Whether the I/O is a write barrier.
    pub barrier: bool,
    /// Priority of the I/O, if it differs from the job's.
    pub priority: Option<IoPriority>,
}

/// Streams of random numbers, one for each purpose. Therefore an option does not change the random
/// numbers of another option.
#[derive(Clone, Debug)]
struct Streams {
    offset: SplitMix64,
    origin: SplitMix64,
    length: SplitMix64,
    mix: SplitMix64,
    random: SplitMix64,
    file: SplitMix64,
    priority: SplitMix64,
}

impl Streams {
    fn new(seed: u64) -> Self {
        let stream = |number| SplitMix64::entity(seed, number);
        Self {
            offset: stream(1),
            length: stream(2),
            mix: stream(3),
            random: stream(4),
            file: stream(5),
            priority: stream(6),
            origin: stream(7),
        }
    }
}

/// State of one file of the job.
#[derive(Clone, Debug)]
struct File {
    region: Region,
    /// Offset after the last I/O of each direction, from the start of the region. It can be
    /// negative when going backward.
    next: PerDirection<i64>,
    /// Start of the last I/O of each direction.
    last: PerDirection<u64>,
    /// Whether a direction has had an I/O.
    begun: PerDirection<bool>,
    map: Option<RandomMap>,
    spread: PerDirection<Option<Spread>>,
}

/// Generator of a job's I/Os.
#[derive(Clone, Debug)]
pub struct Generator<'a> {
    job: &'a Job,
    seed: u64,
    files: Vec<File>,
    service: Service,
    streams: Streams,
    /// Unit of the random maps, bytes.
    map_block: u64,
    /// Bytes to move in one pass, and in all passes.
    pass_bytes: u64,
    total_bytes: u64,
    passes_left: u64,
    /// Bytes moved in this pass, and in total. With `TrimWrite` only writes count.
    pass_done: u64,
    done: u64,
    ios: u64,
    writes: u64,
    /// I/Os until the next random offset.
    until_random: u32,
    /// Direction that the generator has drawn and not used yet.
    chosen: Option<Direction>,
    /// Part that was trimmed and will be written next: file, place and length.
    trimmed: Option<(u32, u64, u64)>,
    /// Number of writes that the job had made at the last sync of each kind.
    synced: [u64; 3],
    /// For a replayed log: the next I/O, and the duration of the earlier passes.
    log_next: usize,
    log_passed_ns: u64,
    finished: bool,
}

impl<'a> Generator<'a> {
    /// Creates the generator of the I/Os of `job` with this layout. `seed` is the seed of its
    /// random numbers: see [`super::Jobs::seed`].
    #[must_use]
    pub fn new(job: &'a Job, layout: &JobLayout, seed: u64) -> Self {
        let map_block = smallest_block(job);
        let size = layout.size_bytes;
        let endless = matches!(job.placement, Placement::Random { .. }) && !uses_map(job);
        let io_size = layout.io_size_bytes;
        let mut generator = Self {
            job,
            seed,
            files: Vec::new(),
            service: Service::new(job, layout.regions.len()),
            streams: Streams::new(seed),
            map_block,
            pass_bytes: if endless { size.max(io_size.unwrap_or(0)) } else { size },
            total_bytes: io_size.unwrap_or(size).saturating_mul(job.loops),
            passes_left: job.loops,
            pass_done: 0,
            done: 0,
            ios: 0,
            writes: 0,
            until_random: 0,
            chosen: None,
            trimmed: None,
            synced: [0; 3],
            log_next: 0,
            log_passed_ns: 0,
            finished: false,
        };
        generator.skip_in_log();
        generator.files = layout.regions.iter().map(|&region| generator.file(region)).collect();
        if Self::map_blocks(job, layout) > 0 {
            for file in &mut generator.files {
                file.map = Some(RandomMap::new((file.region.length / map_block).max(1)));
            }
        }
        generator
    }

    /// Returns the number of blocks in a job's random maps. Returns 0 if the job has no maps, or if
    /// its maps are too large and the job runs without them.
    #[must_use]
    pub fn map_blocks(job: &Job, layout: &JobLayout) -> u64 {
        let blocks: u64 = layout.regions.iter().map(|region| region.length / smallest_block(job)).sum();
        let without = !uses_map(job) || job.soft_random_map && blocks > MAP_BLOCKS_MAX;
        if without { 0 } else { blocks }
    }

    fn file(&mut self, region: Region) -> File {
        let mut spread = PerDirection::all(None);
        if matches!(self.job.placement, Placement::Random { .. }) {
            for &direction in self.job.mode.directions() {
                let align = self.align(direction);
                let blocks = (region.length - self.least(direction).min(region.length)) / align + 1;
                *spread.of_mut(direction) =
                    Some(Spread::new(&self.job.distribution, direction, blocks, align, &mut self.streams.origin));
            }
        }
        File {
            region,
            next: PerDirection::all(0),
            last: PerDirection::all(0),
            begun: PerDirection::all(false),
            map: None,
            spread,
        }
    }

    /// Returns the smallest block of a direction, bytes.
    fn least(&self, direction: Direction) -> u64 {
        let sizes = &self.job.block_size;
        match self.job.bs_is_seq_rand {
            true => sizes.read.min_bytes().min(sizes.write.min_bytes()),
            false => sizes.of(direction).min_bytes(),
        }
        .max(1)
    }

    /// Returns the alignment of random offsets of a direction, bytes.
    fn align(&self, direction: Direction) -> u64 {
        self.job.block_align.of(direction).filter(|&bytes| bytes > 0).unwrap_or_else(|| self.least(direction))
    }

    /// Returns the direction of the next I/O. Repeated calls before [`next`](Self::next) return the
    /// same direction.
    pub fn direction(&mut self) -> Direction {
        if let Some(chosen) = self.chosen {
            return chosen;
        }
        if let Some((_, io)) = self.of_log() {
            return io.direction.unwrap_or(Direction::Read);
        }
        let direction = match self.job.mode {
            Mode::Read => Direction::Read,
            Mode::Write => Direction::Write,
            Mode::Trim => Direction::Trim,
            Mode::TrimWrite if self.trimmed.is_some() => Direction::Write,
            Mode::TrimWrite => Direction::Trim,
            Mode::ReadWrite if self.streams.mix.below(100) < self.job.rwmix_read_percent.into() => Direction::Read,
            Mode::ReadWrite => Direction::Write,
        };
        self.chosen = Some(direction);
        direction
    }

    /// Changes the direction of the next I/O to `direction`.
    pub fn redirect(&mut self, direction: Direction) {
        if self.job.mode == Mode::ReadWrite {
            self.chosen = Some(direction);
        }
    }

    /// Returns the sync that is due before the next I/O, if any.
    #[must_use]
    pub fn sync_due(&self) -> Option<SyncKind> {
        if self.job.replay.is_some() {
            return None;
        }
        let every = [self.job.fsync_ios, self.job.fdatasync_ios, self.job.sync_file_range_ios];
        let kinds = [SyncKind::Fsync, SyncKind::Fdatasync, SyncKind::Range];
        (0..3)
            .find(|&i| every[i] > 0 && self.writes > self.synced[i] && self.writes.is_multiple_of(u64::from(every[i])))
            .map(|i| kinds[i])
    }

    /// Returns the next step. `None`: the job has done all its I/Os.
    #[expect(
        clippy::should_implement_trait,
        reason = "callers also need direction() and redirect(), so the type is not only an iterator"
    )]
    pub fn next(&mut self) -> Option<Step> {
        if let Some(kind) = self.sync_due() {
            // One sync also covers the weaker syncs that are due.
            self.synced = [self.writes; 3];
            return Some(Step::Sync(kind));
        }
        if self.job.replay.is_some() {
            return self.next_of_log();
        }
        while !self.finished {
            if self.is_exhausted() {
                self.finished = true;
                break;
            }
            if self.pass_done >= self.pass_bytes || self.service.is_done() {
                self.end_pass();
                continue;
            }
            let direction = self.direction();
            if let Some(io) = self.io(direction) {
                return Some(Step::Io(self.given(io)));
            }
        }
        None
    }

    /// Returns the next I/O of the replayed log, if there is one.
    fn of_log(&self) -> Option<(&'a ReplayLog, &'a LogIo)> {
        let log = self.job.replay.as_ref()?;
        Some((log, log.ios.get(self.log_next)?))
    }

    /// Returns the time of the next I/O in the log, ns since the start of the job. 0 without a log.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        self.of_log().map_or(0, |(log, io)| self.log_passed_ns.saturating_add(log.at_ns(io)))
    }

    /// Skips I/Os of the log that are not replayed.
    fn skip_in_log(&mut self) {
        while self.of_log().is_some_and(|(log, io)| !log.replays(io)) {
            self.log_next += 1;
        }
    }

    fn next_of_log(&mut self) -> Option<Step> {
        if self.job.number_ios.is_some_and(|most| self.ios >= most) {
            return None;
        }
        let (log, io) = self.of_log()?;
        self.log_next += 1;
        self.skip_in_log();
        if self.of_log().is_none() {
            self.passes_left = self.passes_left.saturating_sub(1);
            if self.passes_left > 0 || self.job.time_based {
                self.log_passed_ns = self.log_passed_ns.saturating_add(log.at_ns(io));
                self.log_next = 0;
                self.skip_in_log();
            }
        }
        let Some(direction) = io.direction else { return Some(Step::Sync(SyncKind::Fsync)) };
        let io = JobIo { direction, file: 0, start: log.start_of(io), bytes: io.bytes, barrier: false, priority: None };
        Some(Step::Io(self.given(io)))
    }

    fn is_exhausted(&self) -> bool {
        let enough = !self.job.time_based && self.done >= self.total_bytes;
        enough || self.job.number_ios.is_some_and(|most| self.ios >= most)
    }

    /// Ends a pass. Then another pass begins, or the job is done.
    fn end_pass(&mut self) {
        self.passes_left = self.passes_left.saturating_sub(1);
        let largest = self.job.mode.directions().iter().map(|&d| self.job.block_size.of(d).max_bytes()).max();
        let left = self.total_bytes.saturating_sub(self.done);
        // An empty pass would repeat forever.
        let more = self.pass_done > 0
            && (self.job.time_based
                || self.passes_left > 0
                || self.job.io_size.is_some() && left >= largest.unwrap_or(0));
        if !more {
            self.finished = true;
            return;
        }
        self.pass_done = 0;
        self.until_random = 0;
        self.trimmed = None;
        self.chosen = None;
        self.service.begin();
        for file in &mut self.files {
            file.next = PerDirection::all(0);
            file.begun = PerDirection::all(false);
            if let Some(map) = &mut file.map {
                map.clear();
            }
        }
        if !self.job.time_based && (self.job.rand_repeat != Some(false) || self.job.all_rand_repeat) {
            self.streams = Streams::new(self.seed);
        }
    }

    /// Counts an I/O that the generator returns to the caller.
    fn given(&mut self, io: JobIo) -> JobIo {
        self.chosen = None;
        self.ios += 1;
        self.service.served();
        let counts = self.job.mode != Mode::TrimWrite || io.direction == Direction::Write;
        if counts {
            self.pass_done += io.bytes;
            self.done += io.bytes;
        }
        let mut io = io;
        if io.direction == Direction::Write {
            self.writes += 1;
            let every = u64::from(self.job.barrier_ios);
            io.barrier = every > 0 && self.writes.is_multiple_of(every);
        }
        io.priority = self.priority(&io);
        io
    }

    fn priority(&mut self, io: &JobIo) -> Option<IoPriority> {
        let settings = self.job.cmd_priority.as_ref()?;
        let drawn = self.streams.priority.below(100) as u32;
        let mut share = 0;
        for split in settings.split.of(io.direction).iter().filter(|split| split.bytes == io.bytes) {
            share += split.percent;
            if drawn < share {
                return Some(split.priority);
            }
        }
        (drawn < *settings.percentage.of(io.direction)).then(|| *settings.priority.of(io.direction))
    }

    /// Returns an I/O of the next file. Returns `None`, and marks the file as done, if the file has
    /// no I/O left.
    fn io(&mut self, direction: Direction) -> Option<JobIo> {
        if direction == Direction::Write
            && let Some((file, start, bytes)) = self.trimmed.take()
        {
            return Some(JobIo { direction, file, start, bytes, barrier: false, priority: None });
        }
        let file = self.service.choose(&mut self.streams.file);
        let random = self.draws_random(direction);
        let placed = if random {
            self.place_randomly(file, direction)
        } else {
            let behind = self.place_behind(file, direction);
            match self.job.placement {
                Placement::Random { .. } => behind.or_else(|| self.place_randomly(file, direction)),
                Placement::Sequential { .. } => behind,
            }
        };
        let Some((offset, bytes)) = placed else {
            self.service.done(file);
            return None;
        };
        let state = &mut self.files[file as usize];
        *state.last.of_mut(direction) = offset;
        *state.next.of_mut(direction) = (offset + bytes) as i64;
        *state.begun.of_mut(direction) = true;
        let start = state.region.start() + offset;
        if self.job.mode == Mode::TrimWrite {
            self.trimmed = Some((file, start, bytes));
        }
        Some(JobIo { direction, file, start, bytes, barrier: false, priority: None })
    }

    /// Returns whether the next offset is random.
    fn draws_random(&mut self, direction: Direction) -> bool {
        let Placement::Random { ios_per_offset } = self.job.placement else {
            return false;
        };
        let fresh = self.until_random == 0;
        self.until_random = if fresh { ios_per_offset.max(1) } else { self.until_random } - 1;
        let percent = *self.job.random_percent.of(direction);
        fresh && (percent >= 100 || self.streams.random.below(100) < percent.into())
    }

    /// Returns the offset after the last I/O of this direction in this file, and a length. Returns
    /// `None` at the end of the file.
    fn place_behind(&mut self, number: u32, direction: Direction) -> Option<(u64, u64)> {
        let file = &self.files[number as usize];
        let length = file.region.length;
        let skip = match self.job.placement {
            Placement::Sequential { skip_bytes } => skip_bytes,
            Placement::Random { .. } => 0,
        };
        let next = *file.next.of(direction);
        let offset = match (*file.begun.of(direction), self.job.sequencer) {
            (true, Sequencer::Identical) if matches!(self.job.placement, Placement::Random { .. }) => {
                *file.last.of(direction) as i64
            }
            (true, _) => next.saturating_add(skip),
            (false, _) if skip < 0 => (length as i64).saturating_add(skip),
            (false, _) => next,
        };
        let offset = u64::try_from(offset).ok().filter(|&offset| offset < length)?;
        let bytes = self.length(direction, false, length - offset)?;
        Some((offset, bytes))
    }

    /// Returns a random offset and a length. `None` if all blocks of the file are done.
    fn place_randomly(&mut self, number: u32, direction: Direction) -> Option<(u64, u64)> {
        let align = self.align(direction);
        let file = &mut self.files[number as usize];
        let spread = file.spread.of(direction).as_ref()?;
        let length = file.region.length;
        let mut offset = spread.draw(&mut self.streams.offset) * align;
        if let Some(map) = &file.map {
            offset = map.next_free((offset / self.map_block).min(length / self.map_block - 1))? * self.map_block;
        }
        let room = length - offset;
        let mut bytes = match self.length(direction, true, room) {
            Some(bytes) => bytes,
            // The last free part can be smaller than the smallest block of this direction.
            None if self.files[number as usize].map.is_some() => room,
            None => return None,
        };
        if let Some(map) = &mut self.files[number as usize].map {
            let first = offset / self.map_block;
            let wanted = bytes.div_ceil(self.map_block);
            let free = (0..wanted).take_while(|i| map.is_free(first + i)).count() as u64;
            (first..first + free).for_each(|block| map.set(block));
            if free < wanted {
                bytes = free * self.map_block;
            }
        }
        Some((offset, bytes))
    }

    /// Draws a length that fits into `room` bytes.
    fn length(&mut self, direction: Direction, random: bool, room: u64) -> Option<u64> {
        let sizes = match (self.job.bs_is_seq_rand, random) {
            (false, _) => self.job.block_size.of(direction),
            (true, false) => &self.job.block_size.read,
            (true, true) => &self.job.block_size.write,
        };
        let least = sizes.min_bytes().max(1);
        if least > room {
            return None;
        }
        for _ in 0..LENGTH_DRAWS_MAX {
            let bytes = draw_length(sizes, self.job.bs_unaligned, &mut self.streams.length);
            if bytes <= room {
                return Some(bytes);
            }
        }
        Some(least)
    }
}

/// Draws a length, without regard to the free room.
fn draw_length(sizes: &BlockSize, unaligned: bool, rng: &mut SplitMix64) -> u64 {
    match sizes {
        BlockSize::Fixed(bytes) => *bytes,
        BlockSize::Range { min, max } => {
            // As in fio: the smallest size plus a uniform random number below the largest size. The
            // result is limited to the largest size.
            let bytes = min + rng.below(*max);
            let least = (*min).max(1);
            (if unaligned { bytes } else { bytes - bytes % least }).min(*max)
        }
        BlockSize::Split(sizes) => {
            let drawn = rng.below(100) as u32;
            let mut share = 0;
            let found = sizes.iter().find(|size| {
                share += size.percent;
                drawn < share
            });
            found.or(sizes.last()).map_or(1, |size| size.bytes)
        }
    }
}

/// Returns whether random I/Os access each block once. With skewed distributions or aligned
/// offsets, they do not.
fn uses_map(job: &Job) -> bool {
    let once = job.random_map || job.random_generator == RandomGenerator::Lfsr;
    let aligned = job.mode.directions().iter().any(|&direction| job.block_align.of(direction).is_some());
    matches!(job.placement, Placement::Random { .. })
        && once
        && !aligned
        && matches!(job.distribution, Distribution::Random)
}

#[cfg(test)]
mod tests;
