//! A volatile write cache in front of a back end. If the server ends without a last flush, the
//! cached data is lost, as after a power failure.
//!
//! The cache answers a write as soon as it has stored the data. It writes data to the back end in
//! units. A seed determines the times and the order of these writes. A flush and a write with FUA
//! also start writes. After a power cut, any part of the data may be missing, unless the cache
//! promised to keep it. The cache can break its promises on purpose, to test programs that check
//! for such faults.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::PathBuf;

use iosched::{Op, Time};
use iosched_system::{Buffer, Memory, Pool, Segment};
use slab::Slab;

use super::contract::{Backend, BackendCard, Completion};
use crate::Errno;
use crate::disk::{Command, Measure};
use crate::ring::Submissions;

/// Maximum time between two spontaneous writes to the back end, ns.
const PAUSE_NS_MAX: u64 = 20 * iosched::MILLISECOND_NS;
/// Maximum number of units per spontaneous write.
const UNITS_MAX: u64 = 16;

/// A promise that a cache breaks on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// A flush writes nothing.
    Flush,
    /// A write to stable storage stays in the cache.
    Fua,
    /// A flush does not cover recent writes that are already answered.
    Write,
    /// A flush does not cover zeroes and trims.
    Hole,
}

/// Parameters of the volatile cache of a back end for tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CachePlan {
    /// Size of the cache, bytes.
    pub bytes: u64,
    /// Size of a unit, bytes. The cache writes a unit either completely or not at all. If the block
    /// size of the back end is larger, the cache uses the block size.
    pub tear_bytes: u64,
    /// The promise that the cache breaks.
    pub lie: Option<Lie>,
}

/// A change of a part of the disk that has not reached the back end yet.
struct Piece {
    op: Op,
    no_hole: bool,
    offset: u64,
    length: u64,
    /// Data of a write.
    data: Vec<u8>,
    /// Whether the back end is executing the change.
    under_way: bool,
    /// Whether flushes skip the piece: see [`Lie::Write`].
    hidden: bool,
    /// Promises that wait until the piece is written.
    promises: Vec<usize>,
}

impl Piece {
    fn covers(&self, other: &Self) -> bool {
        self.offset <= other.offset && other.offset + other.length <= self.offset + self.length
    }

    /// Returns the piece's data within the range `bytes`, and the offset of this data in the range.
    fn within(&self, bytes: &Range<u64>) -> Option<(usize, Vec<u8>)> {
        let (from, to) = (self.offset.max(bytes.start), (self.offset + self.length).min(bytes.end));
        let place = (from.checked_sub(self.offset)? as usize)..(to.checked_sub(self.offset)? as usize);
        let data = if self.op == Op::Write { self.data.get(place)?.to_vec() } else { vec![0; place.len()] };
        Some(((from - bytes.start) as usize, data))
    }
}

/// A flush, or a write to stable storage, that the cache has not answered yet.
struct Promise {
    command: u32,
    /// Number of pieces that the promise waits for.
    left: usize,
    result: Result<(), Errno>,
}

/// Purpose of a command to the back end.
enum Purpose {
    /// A read, with its identifier, the memory for its data, and the cached data that replaces
    /// parts of the result.
    Read { id: u32, segments: Vec<Segment>, over: Vec<(usize, Vec<u8>)> },
    /// A write of the first piece of this unit to the back end.
    WriteBack(u64),
    /// The flush of the back end that completes a promise.
    Flush(usize),
}

/// A command for the back end.
struct Task {
    purpose: Purpose,
    /// The command, without its identifier.
    command: Command,
    data: Option<Buffer>,
}

/// A back end together with a volatile write cache in front of it.
pub(super) struct VolatileCache {
    inner: Box<dyn Backend>,
    card: BackendCard,
    plan: CachePlan,
    seed: u64,
    draws: u64,
    pool: Pool,
    /// Cached pieces of each unit, oldest first.
    units: BTreeMap<u64, VecDeque<Piece>>,
    cached_bytes: u64,
    promises: Slab<Promise>,
    /// Writes that wait for room in the cache.
    waiting: VecDeque<(Command, Vec<Segment>)>,
    /// Time of the next spontaneous write.
    next_write: Option<Time>,
    /// Tasks that wait for room in the back end. `under_way` contains the tasks that the back end
    /// executes.
    tasks: VecDeque<Task>,
    under_way: Slab<Task>,
    ended: Vec<Completion>,
}

impl VolatileCache {
    pub(super) fn new(inner: Box<dyn Backend>, plan: CachePlan, seed: u64) -> Self {
        let mut card = inner.card().clone();
        card.about += " behind a volatile cache";
        (card.device.write_cache, card.device.fua) = (true, true);
        let plan = CachePlan { tear_bytes: plan.tear_bytes.max(u64::from(card.block_bytes)), ..plan };
        Self {
            inner,
            card,
            plan,
            seed,
            draws: 0,
            pool: Pool::default(),
            units: BTreeMap::new(),
            cached_bytes: 0,
            promises: Slab::new(),
            waiting: VecDeque::new(),
            next_write: None,
            tasks: VecDeque::new(),
            under_way: Slab::new(),
            ended: Vec::new(),
        }
    }

    fn draw(&mut self, bound: u64) -> u64 {
        self.draws += 1;
        mix(self.seed ^ mix(self.draws)) % bound
    }

    fn has_room(&self, command: &Command) -> bool {
        self.units.is_empty() || self.cached_bytes + command.length <= self.plan.bytes
    }

    // ---- commands of the disk

    fn write(&mut self, now: Time, command: &Command, segments: &[Segment], done: &mut Vec<Completion>) {
        let stable = command.fua && self.plan.lie != Some(Lie::Fua);
        let promise = stable.then(|| self.promises.insert(Promise { command: command.id, left: 0, result: Ok(()) }));
        let data: Vec<u8> = segments.iter().flat_map(|segment| segment.iter()).copied().collect();
        let (mut at, end) = (command.offset, command.offset + command.length);
        while at < end {
            let unit = at / self.plan.tear_bytes;
            let to = ((unit + 1) * self.plan.tear_bytes).min(end);
            let place = (at - command.offset) as usize..(to - command.offset) as usize;
            let piece = Piece {
                op: command.op,
                no_hole: command.no_hole,
                offset: at,
                length: to - at,
                data: data.get(place).unwrap_or_default().to_vec(),
                under_way: false,
                hidden: !stable && self.plan.lie == Some(Lie::Write),
                promises: promise.into_iter().collect(),
            };
            self.add(unit, piece);
            if let Some(promise) = promise {
                self.promises[promise].left += 1;
                self.write_back(unit);
            }
            at = to;
        }
        if self.next_write.is_none() {
            self.next_write = Some(now + self.draw(PAUSE_NS_MAX));
        }
        match promise {
            Some(promise) => self.keep_if_due(promise, done),
            None => done.push((command.id, Ok(()))),
        }
    }

    /// Adds a piece. Drops the older pieces that the new piece covers, except pieces that are being
    /// written. Promises that waited for a dropped piece then wait for the new piece.
    fn add(&mut self, unit: u64, mut piece: Piece) {
        let pieces = self.units.entry(unit).or_default();
        let mut forgotten_bytes = 0;
        pieces.retain_mut(|older| {
            let stays = older.under_way || !piece.covers(older);
            if !stays {
                piece.promises.append(&mut older.promises);
                forgotten_bytes += older.length;
            }
            stays
        });
        self.cached_bytes = self.cached_bytes - forgotten_bytes + piece.length;
        pieces.push_back(piece);
    }

    fn flush(&mut self, id: u32, done: &mut Vec<Completion>) {
        if self.plan.lie == Some(Lie::Flush) {
            done.push((id, Ok(())));
            return;
        }
        let promise = self.promises.insert(Promise { command: id, left: 0, result: Ok(()) });
        let passes_holes = self.plan.lie == Some(Lie::Hole);
        let mut units = Vec::new();
        for (&unit, pieces) in &mut self.units {
            let is_meant = |piece: &&mut Piece| !(piece.hidden || (passes_holes && piece.op != Op::Write));
            let meant = pieces.iter_mut().filter(is_meant);
            let count = meant.map(|piece| piece.promises.push(promise)).count();
            self.promises[promise].left += count;
            if count > 0 {
                units.push(unit);
            }
        }
        units.into_iter().for_each(|unit| self.write_back(unit));
        self.keep_if_due(promise, done);
    }

    fn read(&mut self, command: &Command, segments: Vec<Segment>) {
        let bytes = command.offset..command.offset + command.length;
        let units = bytes.start / self.plan.tear_bytes..bytes.end.div_ceil(self.plan.tear_bytes);
        let pieces = self.units.range(units).flat_map(|(_, pieces)| pieces);
        let over = pieces.filter_map(|piece| piece.within(&bytes)).collect();
        let data = Some(self.pool.buffer(command.length as usize));
        self.tasks.push_back(Task {
            purpose: Purpose::Read { id: command.id, segments, over },
            command: *command,
            data,
        });
    }

    // ---- commands to the back end

    /// Starts to write the first piece of a unit, unless it is being written already.
    fn write_back(&mut self, unit: u64) {
        let Some(piece) = self.units.get_mut(&unit).and_then(VecDeque::front_mut).filter(|piece| !piece.under_way)
        else {
            return;
        };
        piece.under_way = true;
        let &mut Piece { op, no_hole, offset, length, .. } = piece;
        let data = (op == Op::Write).then(|| {
            let mut data = self.pool.buffer(piece.data.len());
            data.copy_from_slice(&piece.data);
            data
        });
        let command = Command { id: 0, op, offset, length, fua: false, no_hole };
        self.tasks.push_back(Task { purpose: Purpose::WriteBack(unit), command, data });
    }

    /// Starts to write at most `count` random units.
    fn write_some(&mut self, count: u64) {
        for _ in 0..count {
            let from = self.draw(self.card.capacity_bytes() / self.plan.tear_bytes + 1);
            let picked = self.units.range(from..).next().or_else(|| self.units.first_key_value());
            let Some((&unit, _)) = picked else { return };
            self.write_back(unit);
        }
    }

    /// Completes a promise if all its pieces are written. If the back end itself has a volatile
    /// cache, flushes the back end first.
    fn keep_if_due(&mut self, promise: usize, done: &mut Vec<Completion>) {
        let Promise { command: id, left, result } = self.promises[promise];
        if left > 0 {
            return;
        }
        if result.is_ok() && self.inner.card().device.write_cache {
            let command = Command { id: 0, op: Op::Flush, offset: 0, length: 0, fua: false, no_hole: false };
            self.tasks.push_back(Task { purpose: Purpose::Flush(promise), command, data: None });
        } else {
            self.promises.remove(promise);
            done.push((id, result));
        }
    }

    fn written(&mut self, unit: u64, result: Result<(), Errno>, done: &mut Vec<Completion>) {
        let Some(pieces) = self.units.get_mut(&unit) else { return };
        let mut heard = Vec::new();
        if result.is_ok() {
            let written = pieces.pop_front();
            self.cached_bytes -= written.as_ref().map_or(0, |piece| piece.length);
            heard.extend(written.into_iter().flat_map(|piece| piece.promises));
        } else {
            // The piece stays in the cache for a retry. All promises that wait for this piece, or
            // for a later piece of the unit, get the error.
            for piece in pieces.iter_mut() {
                piece.under_way = false;
                heard.append(&mut piece.promises);
            }
        }
        let again = pieces.iter().any(|piece| !piece.promises.is_empty());
        if pieces.is_empty() {
            self.units.remove(&unit);
        }
        for promise in heard {
            let state = &mut self.promises[promise];
            state.left -= 1;
            state.result = state.result.and(result);
            self.keep_if_due(promise, done);
        }
        if again {
            self.write_back(unit);
        }
        if let Err(errno) = result {
            done.extend(self.waiting.drain(..).map(|(command, _)| (command.id, Err(errno))));
        }
    }

    fn task_ended(&mut self, task: Task, result: Result<(), Errno>, done: &mut Vec<Completion>) {
        match task.purpose {
            Purpose::Read { id, segments, over } => {
                let mut bytes = task.data.map(|data| data.to_vec()).unwrap_or_default();
                for (at, data) in over {
                    bytes[at..at + data.len()].copy_from_slice(&data);
                }
                let mut left = &bytes[..];
                for mut segment in segments {
                    let (this, rest) = left.split_at(segment.len());
                    segment.copy_from_slice(this);
                    left = rest;
                }
                done.push((id, result));
            }
            Purpose::WriteBack(unit) => self.written(unit, result, done),
            Purpose::Flush(promise) => {
                let Promise { command, .. } = self.promises.remove(promise);
                done.push((command, result));
            }
        }
    }

    /// Submits tasks while the back end has room, and processes its completions.
    fn go_on(&mut self, now: Time, ring: &mut Submissions<'_>, done: &mut Vec<Completion>) {
        loop {
            while self.waiting.front().is_some_and(|(command, _)| self.has_room(command)) {
                let Some((command, segments)) = self.waiting.pop_front() else { break };
                self.write(now, &command, &segments, done);
            }
            if !self.waiting.is_empty() {
                self.write_some(UNITS_MAX);
            }
            while self.under_way.len() < self.inner.card().depth_max as usize
                && let Some(task) = self.tasks.pop_front()
            {
                self.begin(now, task, ring);
            }
            if self.ended.is_empty() {
                return;
            }
            for (id, result) in std::mem::take(&mut self.ended) {
                let task = self.under_way.remove(id as usize);
                self.task_ended(task, result, done);
            }
        }
    }

    fn begin(&mut self, now: Time, mut task: Task, ring: &mut Submissions<'_>) {
        let entry = self.under_way.vacant_entry();
        let command = Command { id: entry.key() as u32, ..task.command };
        let mut segments: Vec<Segment> = task.data.iter_mut().map(|data| data.lend(0, data.len())).collect();
        entry.insert(task);
        self.inner.start(now, &command, &mut segments, ring, &mut self.ended);
    }
}

impl Backend for VolatileCache {
    fn card(&self) -> &BackendCard {
        &self.card
    }

    fn start(
        &mut self,
        now: Time,
        command: &Command,
        segments: &mut Vec<Segment>,
        ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    ) {
        match command.op {
            Op::Flush => self.flush(command.id, done),
            Op::Read => self.read(command, std::mem::take(segments)),
            Op::Write | Op::Discard | Op::WriteZeroes => {
                self.waiting.push_back((*command, std::mem::take(segments)));
            }
        }
        self.go_on(now, ring, done);
    }

    fn completed(
        &mut self,
        now: Time,
        id: u32,
        result: i32,
        memory: Memory,
        ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    ) {
        self.inner.completed(now, id, result, memory, ring, &mut self.ended);
        self.go_on(now, ring, done);
    }

    fn gone(&self) -> Option<PathBuf> {
        self.inner.gone()
    }

    fn measure(&self) -> Option<Measure> {
        self.inner.measure()
    }

    fn next_event(&self) -> Option<Time> {
        self.next_write.into_iter().chain(self.inner.next_event()).min()
    }

    fn advance(&mut self, now: Time, ring: &mut Submissions<'_>, done: &mut Vec<Completion>) {
        if self.next_write.is_some_and(|at| at <= now) {
            self.units.values_mut().flatten().for_each(|piece| piece.hidden = false);
            let count = self.draw(UNITS_MAX + 1);
            self.write_some(count);
            self.next_write = (!self.units.is_empty()).then(|| now + self.draw(PAUSE_NS_MAX));
        }
        self.inner.advance(now, ring, &mut self.ended);
        self.go_on(now, ring, done);
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood, 2014): every bit of the result depends on every
/// bit of `x`.
pub(super) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
