//! Tests of the volatile cache, and tests that a checker finds broken promises.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use iosched::{Op, Time};
use iosched_check::{Contents, Moment, Random, Wrong, bytes_of};
use iosched_system::{Buffer, Call, Pool, Segment};

use super::contract::{Backend, BackendCard};
use super::{CachePlan, FaultPlan, Faulty, Lie};
use crate::disk::Command;
use crate::reactor::history::{Image, Platter};
use crate::ring::{Calls, Source, Submissions, Tag};

const UNIT_BYTES: usize = 512;
const UNITS: usize = 24;
const COMMANDS: u32 = 200;

/// Receiver of system calls. It expects no calls, because a platter makes no calls.
struct Nobody;

impl Calls for Nobody {
    fn push(&mut self, _file: BorrowedFd<'_>, _call: Call, _tag: Tag) {
        unreachable!("a platter makes no system calls");
    }

    fn cancel(&mut self, _tag: Tag) {}
}

fn card() -> BackendCard {
    BackendCard {
        about: "a platter".to_owned(),
        device: iosched_disk::Card {
            capacity_sectors: UNITS as u64,
            depth: 4,
            hw_queues: 1,
            rotational: false,
            write_cache: true,
            fua: false,
            max_hw_sectors_kb: 64,
        },
        block_bytes: UNIT_BYTES as u32,
        depth_max: 4,
        trim_zeroes: true,
        fast_zeroes: true,
    }
}

struct PendingCommand {
    command: Command,
    at: Moment,
    bytes: Range<u64>,
    buffer: Option<Buffer>,
}

/// One run of a cache until a power failure.
struct Run {
    random: Random,
    now: Time,
    cache: Faulty,
    contents: Contents,
    pending: BTreeMap<u32, PendingCommand>,
    pool: Pool,
}

impl Run {
    fn new(seed: u64, lie: Option<Lie>, eio: u32, image: &Image) -> Self {
        let mut random = Random::new(seed);
        let platter = Platter::new(card(), Arc::clone(image), Random::new(random.next_word()));
        let fails = FaultPlan { eio, seed, ..FaultPlan::default() };
        let cache = CachePlan { bytes: random.pick(&[1024, 8192]), tear_bytes: 512, lie };
        let plan = FaultPlan { cache: Some(cache), seed, ..FaultPlan::default() };
        Self {
            cache: Faulty::new(Box::new(Faulty::new(Box::new(platter), fails)), plan),
            random,
            now: Time::BEGINNING,
            contents: Contents::new(UNIT_BYTES, UNITS * UNIT_BYTES),
            pending: BTreeMap::new(),
            pool: Pool::default(),
        }
    }

    fn submit(&mut self, id: u32) -> Result<(), Wrong> {
        let op = self.random.pick(&[Op::Read, Op::Write, Op::Write, Op::WriteZeroes, Op::Discard, Op::Flush]);
        let first = self.random.index(UNITS);
        let count = 1 + self.random.index((UNITS - first).min(4));
        let bytes = (first * UNIT_BYTES) as u64..((first + count) * UNIT_BYTES) as u64;
        let changes = |op| !matches!(op, Op::Read | Op::Flush);
        let overlaps = |other: &PendingCommand| other.bytes.start < bytes.end && bytes.start < other.bytes.end;
        // A queue never has two commands at the same time that change the same blocks.
        if changes(op) && self.pending.values().any(|other| changes(other.command.op) && overlaps(other)) {
            return Ok(());
        }
        let length = bytes.end - bytes.start;
        let (offset, length) = if op == Op::Flush { (0, 0) } else { (bytes.start, length) };
        let fua = op == Op::Write && self.random.chance(15);
        let command = Command { id, op, offset, length, fua, no_hole: op == Op::WriteZeroes && self.random.chance(50) };
        let stamp = if op == Op::Write { u64::from(id) + 1 } else { 0 };
        let mut buffer = matches!(op, Op::Read | Op::Write).then(|| self.pool.buffer(length as usize));
        if let (Op::Write, Some(buffer)) = (op, &mut buffer) {
            buffer.copy_from_slice(&bytes_of(stamp, offset, length as usize));
        }
        let at = match op {
            Op::Flush => self.contents.now(),
            Op::Read => self.contents.read(),
            Op::Write | Op::WriteZeroes | Op::Discard => self.contents.write(stamp, &bytes),
        };
        let mut segments: Vec<Segment> = buffer.iter_mut().map(|buffer| buffer.lend(0, buffer.len())).collect();
        self.pending.insert(id, PendingCommand { command, at, bytes, buffer });
        let (mut done, ring) = (Vec::new(), &mut Submissions { ring: &mut Nobody, source: Source::Backend });
        self.cache.start(self.now, &command, &mut segments, ring, &mut done);
        drop(segments);
        self.take_answers(done)
    }

    fn take_answers(&mut self, done: Vec<(u32, Result<(), crate::Errno>)>) -> Result<(), Wrong> {
        for (id, result) in done {
            let PendingCommand { command, at, bytes, buffer } =
                self.pending.remove(&id).expect("each command is answered once");
            match (command.op, buffer) {
                (Op::Flush, _) if result.is_ok() => self.contents.flushed(at),
                (Op::Read, Some(data)) if result.is_ok() => self.contents.check_read(at, &bytes, &data)?,
                (Op::Read, _) => self.contents.read_failed(at),
                (Op::Flush, _) => {}
                _ => self.contents.answer(at, &bytes, result.is_ok(), command.fua),
            }
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Wrong> {
        let Some(at) = self.cache.next_event() else { return Ok(()) };
        self.now = self.now.max(at);
        let (mut done, ring) = (Vec::new(), &mut Submissions { ring: &mut Nobody, source: Source::Backend });
        self.cache.advance(self.now, ring, &mut done);
        self.take_answers(done)
    }

    /// Submits commands until the power fails.
    fn go(&mut self) -> Result<(), Wrong> {
        for id in 0..COMMANDS {
            self.submit(id)?;
            while self.pending.len() >= 4 || self.random.chance(30) {
                self.wait()?;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Wrong> {
        while !self.pending.is_empty() {
            self.wait()?;
        }
        Ok(())
    }
}

/// Runs a cache until the power fails, and then checks the remaining data.
fn cut(seed: u64, lie: Option<Lie>, eio: u32) -> Result<(), Wrong> {
    let image: Image = Arc::new(Mutex::new(vec![0; UNITS * UNIT_BYTES]));
    let mut run = Run::new(seed, lie, eio, &image);
    run.go()?;
    let Run { mut contents, .. } = run;
    let left = image.lock().unwrap();
    contents.cut(&left)
}

#[test]
fn promised_data_survives_a_power_cut() {
    for seed in 0..500 {
        cut(seed, None, 0).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn cache_keeps_promises_despite_back_end_errors() {
    for seed in 0..500 {
        cut(seed, None, 30_000).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn every_command_is_answered_despite_back_end_errors() {
    for eio in [0, 100_000, 1_000_000] {
        let image: Image = Arc::new(Mutex::new(vec![0; UNITS * UNIT_BYTES]));
        let mut run = Run::new(7, None, eio, &image);
        run.go().and_then(|()| run.end()).unwrap();
    }
}

#[test]
fn checker_finds_every_kind_of_lie() {
    for lie in [Lie::Flush, Lie::Fua, Lie::Write, Lie::Hole] {
        let found = (0..100).filter(|&seed| cut(seed, Some(lie), 0).is_err()).count();
        assert!(found >= 10, "{lie:?}: {found} of 100");
    }
}
