//! A die. Reads come first and interrupt long operations, but a limit ensures that these operations
//! finish.

use std::collections::VecDeque;

/// Slot of a read that belongs to no command. It reads the rest of a page before a write.
pub(super) const NOBODY: u32 = u32::MAX;

/// A read of a die for a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Slot of the command, or [`NOBODY`].
    pub(super) slot: u32,
    /// Sectors to transfer to the host.
    pub(super) sectors: u32,
    pub(super) busy_ns: u64,
}

/// Work of a die while no read waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) kind: WorkKind,
    pub(super) busy_ns: u64,
}

/// Kind of a die's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkKind {
    /// Program the buffer's unit with this number.
    Program(u64),
    /// Read pages to move.
    MoveOut,
    /// Program pages that were moved.
    MoveIn,
    Erase,
}

impl WorkKind {
    /// Returns whether the work is a program. Its data crosses the channel first.
    pub(super) const fn is_program(self) -> bool {
        matches!(self, Self::Program(_) | Self::MoveIn)
    }
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    Nothing,
    Reading(Part),
    Working { work: Work, end_ns: u64, suspends: u32 },
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Finished {
    Read(Part),
    Work(WorkKind),
}

/// Times and limits that all dies share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) suspend_ns: u64,
    pub(super) suspends_max: u32,
    pub(super) reads_in_a_row: u32,
    pub(super) cached_programs: u32,
    /// Time of a unit on the channel, ns.
    pub(super) unit_ns: u64,
}

/// State of a die.
#[derive(Clone, Debug)]
pub(super) struct Die {
    doing: Doing,
    reads: VecDeque<Part>,
    work: VecDeque<Work>,
    /// Work that a read interrupted, its remaining time in ns, and the number of interruptions so
    /// far.
    suspended: Option<(Work, u64, u32)>,
    /// Number of reads since the last work.
    in_a_row: u32,
    /// Number of programs that began directly after another program, before waiting reads.
    cached: u32,
    /// Number of the current operation. The scheduled end of an interrupted operation has another
    /// number and has no effect.
    begun: u32,
}

impl Die {
    pub(super) const fn new() -> Self {
        Self {
            doing: Doing::Nothing,
            reads: VecDeque::new(),
            work: VecDeque::new(),
            suspended: None,
            in_a_row: 0,
            cached: 0,
            begun: 0,
        }
    }

    /// Returns the number of the current operation. A scheduled end with another number has no
    /// effect.
    #[inline]
    pub(super) const fn begun(&self) -> u32 {
        self.begun
    }

    /// Adds a read. Returns the new end of the current operation, if it changed.
    #[inline]
    pub(super) fn read(&mut self, now_ns: u64, part: Part, channel_free_ns: &mut u64, limits: &Limits) -> Option<u64> {
        self.reads.push_back(part);
        match self.doing {
            Doing::Working { work, end_ns, suspends }
                if suspends < limits.suspends_max && work.kind != WorkKind::MoveOut && end_ns > now_ns =>
            {
                self.suspended = Some((work, end_ns - now_ns, suspends + 1));
                self.in_a_row = 0;
                self.doing = Doing::Nothing;
                self.begin(now_ns + limits.suspend_ns, channel_free_ns, limits)
            }
            _ => self.begin(now_ns, channel_free_ns, limits),
        }
    }

    /// Adds work. Returns the new end of the current operation, if it changed.
    #[inline]
    pub(super) fn add(&mut self, now_ns: u64, work: Work, channel_free_ns: &mut u64, limits: &Limits) -> Option<u64> {
        self.work.push_back(work);
        self.begin(now_ns, channel_free_ns, limits)
    }

    /// Returns whether the die, whose program has just ended, begins another program before it
    /// serves reads. The next operation is then work, not a read.
    #[inline]
    pub(super) fn continues(&mut self, limits: &Limits) -> bool {
        let continues = self.cached < limits.cached_programs;
        if continues {
            self.cached += 1;
            self.in_a_row = limits.reads_in_a_row;
        } else {
            self.cached = 0;
        }
        continues
    }

    /// Ends the current operation.
    #[inline]
    pub(super) fn finish(&mut self) -> Option<Finished> {
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Nothing => None,
            Doing::Reading(part) => Some(Finished::Read(part)),
            Doing::Working { work, .. } => Some(Finished::Work(work.kind)),
        }
    }

    /// Begins the next operation and returns its end, ns. Returns `None` if there is nothing to do
    /// or an operation is running.
    #[inline]
    pub(super) fn begin(&mut self, now_ns: u64, channel_free_ns: &mut u64, limits: &Limits) -> Option<u64> {
        if !matches!(self.doing, Doing::Nothing) {
            return None;
        }
        let waits = self.suspended.is_some() || !self.work.is_empty();
        if (!waits || self.in_a_row < limits.reads_in_a_row)
            && let Some(part) = self.reads.pop_front()
        {
            self.in_a_row = if waits { self.in_a_row + 1 } else { 0 };
            self.doing = Doing::Reading(part);
            self.begun = self.begun.wrapping_add(1);
            return Some(now_ns + part.busy_ns);
        }
        let (work, end_ns, suspends) = match self.suspended.take() {
            Some((work, left_ns, suspends)) => (work, now_ns + left_ns, suspends),
            None => {
                let work = self.work.pop_front()?;
                let mut start_ns = now_ns;
                if work.kind.is_program() {
                    start_ns = start_ns.max(*channel_free_ns) + limits.unit_ns;
                    *channel_free_ns = start_ns;
                }
                (work, start_ns + work.busy_ns, 0)
            }
        };
        self.in_a_row = 0;
        self.doing = Doing::Working { work, end_ns, suspends };
        self.begun = self.begun.wrapping_add(1);
        Some(end_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { suspend_ns: 10, suspends_max: 2, reads_in_a_row: 3, cached_programs: 1, unit_ns: 5 };
    const PROGRAM: Work = Work { kind: WorkKind::Program(0), busy_ns: 1000 };

    fn part(slot: u32) -> Part {
        Part { slot, sectors: 8, busy_ns: 100 }
    }

    /// Executes all operations. Returns the end of each operation, ns, with the slot of a read or
    /// `None` for work.
    fn finish_all(die: &mut Die, mut end: Option<u64>) -> Vec<(u64, Option<u32>)> {
        let (mut ends, mut channel) = (Vec::new(), 0);
        while let Some(now_ns) = end {
            ends.push(match die.finish().unwrap() {
                Finished::Read(part) => (now_ns, Some(part.slot)),
                Finished::Work(_) => (now_ns, None),
            });
            end = die.begin(now_ns, &mut channel, &LIMITS);
        }
        ends
    }

    #[test]
    fn read_suspends_a_program_and_delays_its_end() {
        let (mut die, mut channel) = (Die::new(), 0);
        assert_eq!(die.add(0, PROGRAM, &mut channel, &LIMITS), Some(1005));
        let begun = die.begun();
        let end = die.read(205, part(1), &mut channel, &LIMITS);
        assert_eq!(end, Some(315));
        assert_ne!(die.begun(), begun, "the end time returned earlier is invalid");
        assert_eq!(finish_all(&mut die, end), [(315, Some(1)), (1115, None)]);
    }

    #[test]
    fn program_is_suspended_at_most_suspends_max_times() {
        let (mut die, mut channel) = (Die::new(), 0);
        die.add(0, PROGRAM, &mut channel, &LIMITS);
        for (slot, at_ns) in [(1, 100), (2, 300)] {
            let end = die.read(at_ns, part(slot), &mut channel, &LIMITS);
            assert_eq!(end, Some(at_ns + 110));
            die.finish();
            die.begin(at_ns + 110, &mut channel, &LIMITS);
        }
        assert_eq!(die.read(600, part(3), &mut channel, &LIMITS), None);
        // The end is at 1005 ns plus twice the suspend time and the read time.
        assert_eq!(finish_all(&mut die, Some(1225)), [(1225, None), (1325, Some(3))]);
    }

    #[test]
    fn queued_reads_do_not_starve_a_program() {
        let (mut die, mut channel) = (Die::new(), 0);
        let end = die.read(0, part(0), &mut channel, &LIMITS);
        for slot in 1..8 {
            die.read(0, part(slot), &mut channel, &LIMITS);
        }
        die.add(0, PROGRAM, &mut channel, &LIMITS);
        let order: Vec<_> = finish_all(&mut die, end).into_iter().map(|(_, slot)| slot).collect();
        assert_eq!(order[..4], [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(order[4], None, "{order:?}");
    }

    #[test]
    fn read_waits_for_at_most_one_cached_program() {
        let (mut die, mut channel) = (Die::new(), 0);
        let limits = Limits { suspends_max: 0, ..LIMITS };
        die.add(0, PROGRAM, &mut channel, &limits);
        die.read(100, part(1), &mut channel, &limits);
        die.finish();
        assert!(die.continues(&limits));
        assert_eq!(die.add(1005, PROGRAM, &mut channel, &limits), Some(2010));
        die.finish();
        assert!(!die.continues(&limits));
        assert_eq!(die.add(2010, PROGRAM, &mut channel, &limits), Some(2110), "the read");
        assert_eq!(finish_all(&mut die, Some(2110)), [(2110, Some(1)), (3115, None)]);
    }

    #[test]
    fn new_program_does_not_interrupt_a_running_program() {
        let (mut die, mut channel) = (Die::new(), 0);
        die.add(0, PROGRAM, &mut channel, &LIMITS);
        die.finish();
        assert_eq!(die.add(1005, PROGRAM, &mut channel, &LIMITS), Some(2010));
        assert_eq!(die.begin(1005, &mut channel, &LIMITS), None);
        assert_eq!(finish_all(&mut die, Some(2010)), [(2010, None)]);
    }

    #[test]
    fn programs_share_the_channel() {
        let (mut one, mut other, mut channel) = (Die::new(), Die::new(), 0);
        assert_eq!(one.add(0, PROGRAM, &mut channel, &LIMITS), Some(1005));
        assert_eq!(other.add(0, PROGRAM, &mut channel, &LIMITS), Some(1010));
    }
}
