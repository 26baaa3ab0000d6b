//! Operations that are one 64-bit word each, so that seeds, fuzzers and shrinking can all produce
//! lists of operations.

use iosched::{Flags, IoClass, IoPriority, Op};

use crate::random::Random;

/// An operation of a host on a request queue. The number of a task, cgroup or request selects one
/// of the tasks, cgroups or requests that exist at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A task submits a bio. If the task already waits for room, it continues to wait.
    Submit {
        /// Number of the task.
        task: u8,
        /// Operation.
        op: Op,
        /// Flags.
        flags: Flags,
        /// Choice of the first sector.
        place: SectorChoice,
        /// Length in sectors. The host splits I/Os that are too long for the queue.
        nr_sectors: u16,
        /// Whether the queue is run afterwards, even if this is not required.
        run: bool,
    },
    /// A task begins to collect requests on a plug.
    Plug {
        /// Number of the task.
        task: u8,
    },
    /// A task gives the requests of its plug to the elevator.
    Unplug {
        /// Number of the task.
        task: u8,
    },
    /// The queue is run.
    Run {
        /// Largest number of requests that the queue may dispatch.
        requests: u8,
    },
    /// The device completes a request.
    Complete {
        /// Number of the request among those in the device.
        pick: u8,
        /// Whether the request failed.
        failed: bool,
        /// Time that passes before the completion, ns.
        after_ns: u32,
        /// Whether the queue is run afterwards.
        run: bool,
    },
    /// The host waits for the timer, if there is one.
    Timer {
        /// Time by which the timer fires too late, ns.
        late_ns: u32,
    },
    /// Time passes.
    Advance {
        /// Length of the time, ns.
        ns: u64,
    },
    /// A tunable of the elevator is written.
    Tunable {
        /// Number of the tunable.
        which: u8,
        /// Value.
        value: Value,
    },
    /// An attribute of the queue is written.
    Attribute {
        /// Number of the attribute.
        which: u8,
        /// Value.
        value: Value,
    },
    /// A task's ioprio changes.
    Priority {
        /// Number of the task.
        task: u8,
        /// New ioprio.
        ioprio: IoPriority,
    },
    /// A process starts, unless there are too many.
    Start {
        /// Its priority.
        ioprio: IoPriority,
        /// Its cgroup.
        cgroup: u8,
    },
    /// A process exits, even with I/O in flight.
    Exit {
        /// Number of the task.
        task: u8,
    },
    /// A cgroup is created, unless there are too many.
    CreateCgroup {
        /// Number of the parent.
        parent: u8,
        /// Its weight, which may be out of range.
        weight: u16,
        /// The weight of its own processes, which may be out of range.
        leaf_weight: u16,
    },
    /// A cgroup's weights change.
    Weights {
        /// Number of the cgroup.
        cgroup: u8,
        /// Its weight, which may be out of range.
        weight: u16,
        /// The weight of its own processes, which may be out of range.
        leaf_weight: u16,
    },
    /// A task moves to another cgroup.
    Move {
        /// Number of the task.
        task: u8,
        /// Number of the new cgroup.
        cgroup: u8,
    },
    /// A cgroup other than the root is removed.
    RemoveCgroup {
        /// Number of the cgroup.
        cgroup: u8,
    },
    /// The device gives a request back without completing it.
    Requeue {
        /// Number of the request among those in the device.
        pick: u8,
        /// Whether the queue is run afterwards.
        run: bool,
    },
    /// A task waits for I/O of another task, and yields to that task.
    Yield {
        /// Number of the yielding task.
        from: u8,
        /// Number of the other task.
        to: u8,
    },
    /// The elevator is switched.
    Switch {
        /// Index of the new elevator. More indices select the run's home elevator than any other
        /// elevator.
        to: u8,
    },
    /// All I/O in flight completes.
    Drain,
}

/// Choice of the first sector of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectorChoice {
    /// A fixed sector.
    At(u32),
    /// The sector after the end of the task's last bio.
    Onward,
    /// A position relative to a recent bio of any task, or of the same task. The last bio has index
    /// 0.
    Near {
        /// Number of the recent bio.
        recent: u8,
        /// Whether the recent bio must be of the same task.
        of_task: bool,
        /// Relative position.
        how: Near,
        /// Whether the bio has the operation and the flags of the recent bio.
        alike: bool,
    },
}

/// Position of a bio relative to a recent bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Near {
    /// The bio begins where the recent bio ends.
    Behind,
    /// The bio ends where the recent bio begins.
    Before,
    /// The bio begins where the recent bio begins.
    Same,
    /// The bio leaves a gap of its own length after the recent bio. A later bio can fill the gap.
    Beyond,
    /// The bio fills the gap after the recent bio, up to the next recent bio.
    Fill,
}

/// A value for a tunable or attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The default.
    Default,
    /// The smallest valid value.
    Min,
    /// The largest valid value, but at most 16 times the default.
    Max,
    /// The smallest valid value plus this number.
    Small(u8),
    /// A number of eighths of the default.
    Eighths(u8),
    /// A value below the smallest valid value.
    TooSmall,
    /// A value above the largest valid value.
    TooLarge,
    /// A text that is not a number.
    NotANumber,
    /// A write to a name that does not exist.
    NoSuchName,
}

const COMMON: usize = 7;
const RARE: usize = 14;

/// Frequencies of the kinds of random operations.
#[derive(Clone)]
pub struct Mix {
    common: [u8; 256],
    rare: [u8; 256],
    flush_in_256: u8,
    /// Frequency of a queue run after a submission, in eighths.
    run_in_8: u8,
}

impl std::fmt::Debug for Mix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mix").field("flush_in_256", &self.flush_in_256).finish_non_exhaustive()
    }
}

fn table(weights: &[u32]) -> [u8; 256] {
    let total: u32 = weights.iter().sum();
    let mut table = [0; 256];
    for (slot, kind) in table.iter_mut().enumerate() {
        let at = slot as u32 * total / 256;
        let mut before = 0;
        *kind = weights
            .iter()
            .position(|weight| {
                before += weight;
                at < before
            })
            .unwrap_or(0) as u8;
    }
    table
}

impl Default for Mix {
    /// Returns a mix in which all kinds of operations are frequent, for short lists.
    fn default() -> Self {
        Self::of(Theme::Everything)
    }
}

/// Emphasis of a mix of random operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Theme {
    /// No emphasis.
    Everything,
    /// Many submissions and few other operations, so that many requests are queued and merged.
    Queueing,
    /// Flushes and force-unit-access.
    Flushes,
    /// Time and timers.
    Time,
    /// Writes to tunables, attributes, priorities and weights.
    Control,
    /// Processes that start and exit.
    Processes,
    /// Switching elevators.
    Switching,
}

impl Mix {
    /// Returns a mix for short lists.
    #[must_use]
    pub fn of(theme: Theme) -> Self {
        // Weights: submit, plug, unplug, run, complete, timer, time, rare operations.
        let (common, rare_of_its_own, flush_in_256, run_in_8): ([u32; COMMON], &[usize], u8, u8) = match theme {
            Theme::Everything => ([90, 14, 8, 40, 60, 14, 30], &[], 24, 2),
            Theme::Queueing => ([160, 14, 10, 10, 40, 4, 4], &[], 4, 0),
            Theme::Flushes => ([90, 4, 4, 30, 80, 4, 6], &[], 120, 2),
            Theme::Time => ([90, 4, 4, 40, 60, 60, 6], &[0, 8], 4, 2),
            Theme::Control => ([90, 4, 4, 30, 60, 10, 60], &[0, 1, 2, 7, 12], 8, 2),
            Theme::Processes => ([90, 10, 4, 30, 60, 10, 60], &[3, 4, 5, 6, 10, 11], 8, 1),
            Theme::Switching => ([90, 10, 4, 30, 60, 10, 40], &[9], 24, 1),
        };
        let rare: [u32; RARE] = std::array::from_fn(|kind| if rare_of_its_own.contains(&kind) { 12 } else { 1 });
        Self { common: table(&common), rare: table(&rare), flush_in_256, run_in_8 }
    }

    /// Returns a random mix for a long run. Operations that are rare in other mixes may be frequent
    /// or missing in this mix.
    #[must_use]
    pub fn swarm(random: &mut Random) -> Self {
        let mut scale = |weight: u32, factors: &[u32]| weight * random.pick(factors);
        let common: [u32; COMMON] = [
            scale(90, &[4, 4, 3, 6]),
            scale(12, &[0, 0, 1, 4]),
            scale(8, &[4]),
            scale(20, &[1, 4, 8]),
            scale(60, &[3, 4, 5]),
            scale(8, &[1, 4, 8]),
            scale(6, &[0, 1, 1, 2]),
        ];
        let mut rare: [u32; RARE] = std::array::from_fn(|_| scale(4, &[0, 1, 1, 4]));
        // A drain takes many calls, so it stays rare.
        rare[RARE - 1] = rare[RARE - 1].min(1);
        if rare.iter().all(|&weight| weight == 0) {
            rare = [1; RARE];
        }
        Self {
            common: table(&common),
            rare: table(&rare),
            flush_in_256: random.pick(&[0, 1, 1, 4, 16, 64]),
            run_in_8: random.pick(&[0, 0, 1, 4, 8]),
        }
    }
}

/// Bits of a word. They are taken from the low end.
struct Bits(u64);

impl Bits {
    #[inline]
    fn take(&mut self, count: u32) -> u64 {
        let bits = self.0 & ((1 << count) - 1);
        self.0 >>= count;
        bits
    }

    #[inline]
    fn byte(&mut self) -> u8 {
        self.take(8) as u8
    }

    #[inline]
    fn one_in(&mut self, bits: u32) -> bool {
        self.take(bits) == 0
    }

    /// Returns a number that is small more often than large.
    #[inline]
    fn span(&mut self, largest_shift: u64) -> u64 {
        let shift = self.take(5) % (largest_shift + 1);
        self.take(8) << shift
    }

    fn ioprio(&mut self) -> IoPriority {
        let class = match self.take(3) {
            0 => IoClass::RealTime,
            1 => IoClass::Idle,
            2 | 3 => IoClass::BestEffort,
            _ => IoClass::None,
        };
        IoPriority::new(class, self.take(3) as u8)
    }

    fn value(&mut self) -> Value {
        match self.take(4) {
            0..=2 => Value::Default,
            3 => Value::Min,
            4 => Value::Max,
            5..=7 => Value::Small(self.byte() % 32),
            8..=11 => Value::Eighths(self.take(5) as u8),
            12 => Value::TooSmall,
            13 => Value::TooLarge,
            14 => Value::NotANumber,
            _ => Value::NoSuchName,
        }
    }

    fn weight(&mut self) -> u16 {
        (self.take(11) % 1200) as u16
    }
}

const LENGTHS: [u16; 16] = [1, 1, 2, 8, 8, 8, 8, 8, 8, 8, 8, 16, 16, 64, 256, 2500];

impl Operation {
    /// Returns the operation that `word` encodes under `mix`. Every word encodes an operation.
    #[inline]
    #[must_use]
    pub fn decode(word: u64, mix: &Mix) -> Self {
        let mut bits = Bits(word);
        match mix.common[usize::from(bits.byte())] {
            0 => Self::decode_submit(bits, mix),
            1 => Self::Plug { task: bits.byte() },
            2 => Self::Unplug { task: bits.byte() },
            3 => Self::Run { requests: if bits.take(1) == 0 { u8::MAX } else { bits.take(2) as u8 + 1 } },
            4 => Self::Complete {
                pick: bits.byte(),
                failed: bits.one_in(5),
                run: !bits.one_in(3),
                after_ns: bits.span(16) as u32,
            },
            5 if bits.take(1) == 0 => Self::Timer { late_ns: if bits.take(1) == 0 { 0 } else { bits.span(14) as u32 } },
            5 => Self::Advance { ns: bits.span(22) },
            _ => Self::decode_rare(bits, mix),
        }
    }

    #[inline]
    fn decode_submit(mut bits: Bits, mix: &Mix) -> Self {
        let task = bits.byte();
        let run = bits.take(3) < u64::from(mix.run_in_8);
        let (op, mut flags) = match bits.take(4) {
            0..=7 => (Op::Read, Flags::empty()),
            8..=10 => (Op::Write, Flags::empty()),
            11 => (Op::Write, Flags::SYNC),
            12 => (Op::Write, Flags::SYNC | Flags::IDLE),
            13 => (Op::Discard, Flags::empty()),
            14 => (Op::WriteZeroes, Flags::SYNC),
            _ => (Op::Read, Flags::AHEAD),
        };
        if bits.one_in(4) {
            flags |= Flags::PRIO;
        }
        let nr_sectors = LENGTHS[bits.take(4) as usize];
        let flush = bits.byte() < mix.flush_in_256;
        let place = match bits.take(3) {
            0 => SectorChoice::At(bits.take(22) as u32),
            1 | 2 => SectorChoice::Onward,
            _ => SectorChoice::Near {
                how: match bits.take(3) {
                    0..=2 => Near::Behind,
                    3 | 4 => Near::Before,
                    5 => Near::Same,
                    6 => Near::Beyond,
                    _ => Near::Fill,
                },
                recent: bits.take(3).min(bits.take(3)) as u8,
                of_task: bits.take(2) != 0,
                alike: bits.take(2) != 0,
            },
        };
        if !flush {
            return Self::Submit { task, op, flags, place, nr_sectors, run };
        }
        let sync = if nr_sectors == 8 { Flags::SYNC } else { Flags::empty() };
        let (op, flags) = match word_of(place) % 4 {
            0 => (Op::Flush, sync),
            1 => (Op::Write, sync | Flags::FUA),
            2 => (Op::Write, sync | Flags::PREFLUSH),
            _ => (Op::Write, sync | Flags::PREFLUSH | Flags::FUA),
        };
        Self::Submit { task, op, flags, place, nr_sectors, run }
    }

    fn decode_rare(mut bits: Bits, mix: &Mix) -> Self {
        match mix.rare[usize::from(bits.byte())] {
            0 => Self::Tunable { which: bits.byte(), value: bits.value() },
            1 => Self::Attribute { which: bits.byte(), value: bits.value() },
            2 => Self::Priority { task: bits.byte(), ioprio: bits.ioprio() },
            3 | 4 => Self::Start { ioprio: bits.ioprio(), cgroup: bits.byte() },
            5 => Self::Exit { task: bits.byte() },
            6 => Self::CreateCgroup { parent: bits.byte(), weight: bits.weight(), leaf_weight: bits.weight() },
            7 => Self::Weights { cgroup: bits.byte(), weight: bits.weight(), leaf_weight: bits.weight() },
            8 => Self::Yield { from: bits.byte(), to: bits.byte() },
            9 => Self::Switch { to: bits.byte() },
            10 => Self::Move { task: bits.byte(), cgroup: bits.byte() },
            11 => Self::RemoveCgroup { cgroup: bits.byte() },
            12 => Self::Requeue { pick: bits.byte(), run: bits.take(1) == 0 },
            _ => Self::Drain,
        }
    }
}

/// Returns a number that is different for different choices.
fn word_of(place: SectorChoice) -> u32 {
    match place {
        SectorChoice::At(sector) => sector,
        SectorChoice::Onward => 1,
        SectorChoice::Near { recent, of_task, .. } => u32::from(recent) + u32::from(of_task),
    }
}
