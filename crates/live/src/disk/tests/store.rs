//! A back end that a test controls. A command takes effect when it starts or when it ends. Commands
//! complete in any order and fail as planned. The back end records which data is on stable storage,
//! and which data is only in its write cache.

use std::ops::Range;

use iosched::Op;
use iosched_check::Random;
use iosched_system::Segment;

use crate::Errno;
use crate::backend::BackendCard;
use crate::disk::Command;

/// The commands that fail.
#[derive(Clone, Debug)]
pub(super) enum Faults {
    Never,
    /// All commands that touch these bytes.
    Bad(Range<u64>),
    /// This percentage of the commands.
    Percent(u64),
}

/// Bytes, and the version of each block.
#[derive(Clone)]
struct Content {
    bytes: Vec<u8>,
    versions: Vec<u64>,
}

impl Content {
    fn copy_block(&mut self, from: &Self, block: usize, block_bytes: usize) {
        let place = block * block_bytes..(block + 1) * block_bytes;
        self.bytes[place.clone()].copy_from_slice(&from.bytes[place]);
        self.versions[block] = from.versions[block];
    }
}

struct UnderWay {
    command: Command,
    segments: Vec<Segment>,
    /// Result of the command, if it has already taken effect.
    result: Option<Result<(), Errno>>,
    /// Content of the store at the start of a flush.
    found: Option<Content>,
}

pub(super) struct Store {
    card: BackendCard,
    now: Content,
    stable: Content,
    changes: u64,
    faults: Faults,
    under_way: Vec<UnderWay>,
    /// Commands that failed, in order.
    pub(super) failures: Vec<(Op, Range<u64>)>,
    pub(super) commands: u64,
}

fn place(command: &Command) -> Range<u64> {
    command.offset..command.offset + command.length
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Store {
    pub(super) fn new(card: &BackendCard, faults: Faults) -> Self {
        let blocks = card.capacity_bytes() / u64::from(card.block_bytes);
        let empty = Content { bytes: vec![0; card.capacity_bytes() as usize], versions: vec![0; blocks as usize] };
        Self {
            card: card.clone(),
            now: empty.clone(),
            stable: empty,
            changes: 0,
            faults,
            under_way: Vec::new(),
            failures: Vec::new(),
            commands: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.now.bytes
    }

    pub(super) fn stable(&self) -> &[u8] {
        &self.stable.bytes
    }

    /// Returns the version of each block.
    pub(super) fn versions(&self) -> &[u64] {
        &self.now.versions
    }

    /// Returns the version of each block that is on stable storage.
    pub(super) fn stable_versions(&self) -> &[u64] {
        &self.stable.versions
    }

    pub(super) fn must_fail(&self, blocks: &Range<u64>) -> bool {
        matches!(&self.faults, Faults::Bad(bad) if overlap(bad, blocks))
    }

    pub(super) fn start(&mut self, random: &mut Random, command: Command, segments: &mut Vec<Segment>) {
        let block_bytes = u64::from(self.card.block_bytes);
        let Command { op, offset, length, .. } = command;
        assert!(offset % block_bytes == 0 && length % block_bytes == 0, "not of whole blocks: {command:?}");
        assert!(offset + length <= self.card.capacity_bytes(), "beyond the end: {command:?}");
        assert_eq!(op == Op::Flush, length == 0, "{command:?}");
        assert!(!command.fua || self.card.device.fua, "the device has no FUA: {command:?}");
        let moved: u64 = segments.iter().map(|segment| segment.len() as u64).sum();
        assert_eq!(moved, if matches!(op, Op::Read | Op::Write) { length } else { 0 }, "{command:?}");
        let changes = |op| matches!(op, Op::Write | Op::Discard | Op::WriteZeroes);
        for UnderWay { command: other, .. } in &self.under_way {
            assert_ne!(other.id, command.id, "numbers of commands differ");
            let races = changes(op) && changes(other.op) && overlap(&place(&command), &place(other));
            assert!(!races, "{command:?} and {other:?} change the same block at once");
        }
        self.commands += 1;
        let found = (op == Op::Flush).then(|| self.now.clone());
        let mut begun = UnderWay { command, segments: std::mem::take(segments), result: None, found };
        if random.chance(50) {
            begun.result = Some(self.execute(random, &mut begun));
        }
        self.under_way.push(begun);
    }

    /// Completes one of the commands.
    pub(super) fn complete_one(&mut self, random: &mut Random) -> Option<(u32, Result<(), Errno>)> {
        if self.under_way.is_empty() {
            return None;
        }
        let mut ended = self.under_way.swap_remove(random.index(self.under_way.len()));
        let result = ended.result.unwrap_or_else(|| self.execute(random, &mut ended));
        if let (Some(found), Ok(())) = (&ended.found, result) {
            for block in 0..found.versions.len() {
                if found.versions[block] > self.stable.versions[block] {
                    self.stable.copy_block(found, block, self.card.block_bytes as usize);
                }
            }
        }
        Some((ended.command.id, result))
    }

    fn execute(&mut self, random: &mut Random, under_way: &mut UnderWay) -> Result<(), Errno> {
        let command = under_way.command;
        let fails = match &self.faults {
            Faults::Never => false,
            Faults::Bad(bad) => overlap(bad, &place(&command)),
            &Faults::Percent(percent) => random.chance(percent),
        };
        if fails {
            self.failures.push((command.op, place(&command)));
        }
        let from = command.offset as usize;
        match command.op {
            Op::Flush => {}
            Op::Read => {
                let mut at = from;
                for segment in &mut under_way.segments {
                    let bytes = &mut **segment;
                    bytes.copy_from_slice(&self.now.bytes[at..at + bytes.len()]);
                    if fails {
                        bytes.fill(0xee);
                    }
                    at += bytes.len();
                }
            }
            Op::Write => {
                let new: Vec<u8> = under_way.segments.iter().flat_map(|segment| segment.iter()).copied().collect();
                self.change(random, &command, &new, fails);
            }
            Op::Discard | Op::WriteZeroes => {
                self.change(random, &command, &vec![0; command.length as usize], fails);
            }
        }
        if fails { Err(Errno::EIO) } else { Ok(()) }
    }

    /// Changes blocks. A command that fails may still have changed some of its blocks.
    fn change(&mut self, random: &mut Random, command: &Command, new: &[u8], fails: bool) {
        let block_bytes = self.card.block_bytes as usize;
        let first = command.offset as usize / block_bytes;
        let all = new.len() / block_bytes;
        let blocks = if fails { random.index(all + 1) } else { all };
        for (block, new) in (first..first + blocks).zip(new.chunks(block_bytes)) {
            self.changes += 1;
            self.now.bytes[block * block_bytes..(block + 1) * block_bytes].copy_from_slice(new);
            self.now.versions[block] = self.changes;
            if command.fua || !self.card.device.write_cache {
                self.stable.copy_block(&self.now, block, block_bytes);
            }
        }
    }
}
