//! Servers with deliberate faults, which test that histories find such faults. Most faults are in
//! the back end. For clients, they look like faults of a reactor or of a real back end.

use std::path::PathBuf;

use iosched::{Op, Time};
use iosched_check::Random;
use iosched_system::{Memory, Segment};

use super::UNIT_BYTES;
use crate::backend::{Backend, BackendCard, Completion, Lie};
use crate::disk::Command;
use crate::ring::Submissions;

/// A deliberate fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// The server assumes that the disk has no volatile cache, and omits flushes.
    NoFlushes,
    /// Clients leave out the flag FUA, but check the disk as if they had sent the flag.
    FuaUnheard,
    /// The cache of the back end breaks this promise.
    Lie(Lie),
    /// The back end makes a mistake in some commands, but reports them as complete.
    Command(Mistake),
}

/// A mistake in a command that is nevertheless reported as complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// A flush is not executed.
    Flush,
    /// A write is not on stable storage, although this was requested.
    Fua,
    /// A write is not executed.
    Write,
    /// The beginning of a write is not executed.
    Torn,
    /// A write goes to the block before the correct block.
    Misplaced,
    /// Writes of zeroes and trims are not executed.
    Hole,
    /// An error is reported as success.
    Error,
    /// A read returns the previous content of the memory.
    Read,
    /// The completion is never reported.
    Untold,
}

impl Broken {
    /// All faults with their names.
    pub const ALL: [(&str, Self); 15] = [
        ("no-flushes", Self::NoFlushes),
        ("fua-unheard", Self::FuaUnheard),
        ("lie-flush", Self::Lie(Lie::Flush)),
        ("lie-fua", Self::Lie(Lie::Fua)),
        ("lie-write", Self::Lie(Lie::Write)),
        ("lie-hole", Self::Lie(Lie::Hole)),
        ("flush", Self::Command(Mistake::Flush)),
        ("fua", Self::Command(Mistake::Fua)),
        ("write", Self::Command(Mistake::Write)),
        ("torn", Self::Command(Mistake::Torn)),
        ("misplaced", Self::Command(Mistake::Misplaced)),
        ("hole", Self::Command(Mistake::Hole)),
        ("error", Self::Command(Mistake::Error)),
        ("read", Self::Command(Mistake::Read)),
        ("untold", Self::Command(Mistake::Untold)),
    ];

    /// Returns the fault with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, broken)| *broken)
    }

    /// Returns whether the fault hides errors of the back end. The history must then have such
    /// errors.
    pub(super) fn needs_errors(self) -> bool {
        self == Self::Command(Mistake::Error)
    }
}

/// Default percentage of commands with the mistake.
const SOME_PERCENT: u64 = 10;

impl Mistake {
    /// Returns the percentage of commands with the mistake.
    fn percent(self) -> u64 {
        match self {
            // With a lower percentage, other flushes and FUA writes would fulfil the same promise.
            Self::Flush | Self::Fua => 100,
            // One missing completion is enough.
            Self::Untold => 1,
            _ => SOME_PERCENT,
        }
    }
}

/// A back end with mistakes.
pub(super) struct Mistaken {
    inner: Box<dyn Backend>,
    mistake: Mistake,
    random: Random,
}

impl Mistaken {
    pub(super) fn new(inner: Box<dyn Backend>, mistake: Mistake, random: Random) -> Self {
        Self { inner, mistake, random }
    }

    /// Returns the changed command for the back end. Returns `None` if the command completes
    /// without execution.
    fn changed(&self, command: &Command, segments: &mut Vec<Segment>) -> Option<Command> {
        let unit = u64::from(UNIT_BYTES);
        let mut changed = *command;
        match (self.mistake, command.op) {
            (Mistake::Flush, Op::Flush)
            | (Mistake::Write, Op::Write)
            | (Mistake::Read, Op::Read)
            | (Mistake::Hole, Op::Discard | Op::WriteZeroes) => {
                segments.clear();
                return None;
            }
            (Mistake::Fua, Op::Write) => changed.fua = false,
            (Mistake::Misplaced, Op::Write) => changed.offset = command.offset.saturating_sub(unit),
            (Mistake::Torn, Op::Write) => {
                if let Some(first) = segments.first_mut().filter(|first| first.len() as u64 > unit) {
                    first.skip(unit as usize);
                    changed.offset += unit;
                    changed.length -= unit;
                }
            }
            _ => {}
        }
        Some(changed)
    }

    /// Reports the completions `ended` to the reactor.
    fn tell(&mut self, ended: Vec<Completion>, done: &mut Vec<Completion>) {
        for (id, result) in ended {
            match self.mistake {
                Mistake::Untold if self.random.chance(self.mistake.percent()) => {}
                Mistake::Error => done.push((id, Ok(()))),
                _ => done.push((id, result)),
            }
        }
    }
}

impl Backend for Mistaken {
    fn card(&self) -> &BackendCard {
        self.inner.card()
    }

    fn start(
        &mut self,
        now: Time,
        command: &Command,
        segments: &mut Vec<Segment>,
        ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    ) {
        let is_mistaken = self.random.chance(self.mistake.percent());
        let given = if is_mistaken { self.changed(command, segments) } else { Some(*command) };
        let Some(given) = given else {
            done.push((command.id, Ok(())));
            return;
        };
        let mut ended = Vec::new();
        self.inner.start(now, &given, segments, ring, &mut ended);
        self.tell(ended, done);
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
        let mut ended = Vec::new();
        self.inner.completed(now, id, result, memory, ring, &mut ended);
        self.tell(ended, done);
    }

    fn gone(&self) -> Option<PathBuf> {
        self.inner.gone()
    }

    fn next_event(&self) -> Option<Time> {
        self.inner.next_event()
    }

    fn advance(&mut self, now: Time, ring: &mut Submissions<'_>, done: &mut Vec<Completion>) {
        let mut ended = Vec::new();
        self.inner.advance(now, ring, &mut ended);
        self.tell(ended, done);
    }
}
