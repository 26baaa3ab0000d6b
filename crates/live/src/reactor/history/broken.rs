//! Servers that are broken on purpose, to see that histories find it: what is broken, and a back end that does not do
//! what it says, as a reactor or a back end with that mistake would have it.

use std::path::PathBuf;

use iosched::{Op, Time};
use iosched_check::Random;
use iosched_system::{Memory, Segment};

use super::UNIT_BYTES;
use crate::backend::{Backend, BackendCard, Completion, Lie};
use crate::disk::Command;
use crate::ring::Submissions;

/// What is broken on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// The server takes the disk for one without a cache, and leaves its flushes out.
    NoFlushes,
    /// The server does not hear that a write is to be on stable storage.
    FuaUnheard,
    /// The cache of the back end does not do what it says.
    Lie(Lie),
    /// Now and then a command is not done as the reactor is told.
    Command(Mistake),
}

/// What goes wrong with a command that is told to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// A flush is not done.
    Flush,
    /// A write is not on stable storage, as it was to be.
    Fua,
    /// A write is not done.
    Write,
    /// The beginning of a write is not done.
    Torn,
    /// A write goes to the block before.
    Misplaced,
    /// Zeroes and trims are not done.
    Hole,
    /// It has failed.
    Error,
    /// A read gives what stood in memory before.
    Read,
    /// It is done, and that is never told.
    Untold,
}

impl Broken {
    /// All there are, with their names.
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

    /// The one with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(of, _)| *of == name).map(|(_, broken)| *broken)
    }

    /// What is wrong with it is that it hides errors: there must be some.
    pub(super) fn needs_errors(self) -> bool {
        self == Self::Command(Mistake::Error)
    }
}

/// Most mistakes are made with so many of a hundred commands.
const SOME_PERCENT: u64 = 10;

impl Mistake {
    /// With how many of a hundred commands it is made.
    fn percent(self) -> u64 {
        match self {
            // What is promised is promised by others, too.
            Self::Flush | Self::Fua => 100,
            // One is enough.
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

    /// What the back end is given instead; nothing if it is told to be done at once.
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

    /// What the reactor hears of `ended`.
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
