//! The state of a task's program: the place of the next I/O and the think time.

use crate::tasks::{Pattern, Task, Think};
use iosched_numbers::SplitMix64;

/// Constant that is added to a task's seed for its think times.
const THINK_SEED: u64 = 0x5_DEEC_E66D;
/// End of the range of `random` if no range is given, sectors.
const RANGE_END: u64 = 1 << 31;

/// A phase with all its fields filled in.
#[derive(Clone, Copy, Debug)]
struct Step {
    count: u64,
    pattern: Pattern,
    start_sector: u64,
    nr_sectors: u32,
    stride: i64,
    /// First sector of the range, and number of aligned positions in the range.
    random: (u64, u64),
    align: u64,
    think_lo_ns: u64,
    /// Largest minus smallest think time, ns.
    think_span_ns: u64,
}

/// The state of a task's program.
#[derive(Clone, Debug)]
pub struct Program {
    steps: Vec<Step>,
    current: usize,
    /// Number of I/Os in the current step so far.
    ios_in_step: u64,
    position: u64,
    place: SplitMix64,
    think: SplitMix64,
}

impl Program {
    /// Creates the program of `task` in its initial state. Returns `None` if the task has no
    /// program.
    #[must_use]
    pub fn new(task: &Task) -> Option<Self> {
        if !task.has_program() {
            return None;
        }
        let phases = [crate::tasks::Phase { count: u64::MAX, ..Default::default() }];
        let phases = if task.phases.is_empty() { &phases[..] } else { &task.phases };
        let steps: Vec<Step> = phases
            .iter()
            .map(|phase| {
                let nr_sectors = phase.nr_sectors.or(task.nr_sectors).unwrap_or(8);
                let align = phase.align.or(task.align).unwrap_or(u64::from(nr_sectors)).max(1);
                let [lo, hi] = phase.range.or(task.range).unwrap_or([0, RANGE_END]);
                let (think_lo_ns, think_hi_ns) = match phase.think_ns.or(task.think_ns) {
                    None => (0, 0),
                    Some(Think::Fixed(ns)) => (ns, ns),
                    Some(Think::Range([lo, hi])) => (lo, hi),
                };
                Step {
                    count: phase.count,
                    pattern: phase.pattern.or(task.pattern).unwrap_or(Pattern::Seq),
                    start_sector: phase.start_sector.or(task.start_sector).unwrap_or(0),
                    nr_sectors,
                    stride: phase.stride.or(task.stride).unwrap_or(0),
                    random: (lo, (hi.saturating_sub(lo) / align).max(1)),
                    align,
                    think_lo_ns,
                    think_span_ns: think_hi_ns.saturating_sub(think_lo_ns),
                }
            })
            .collect();
        let seed = task.seed.unwrap_or(u64::from(task.pid));
        let position = steps[0].start_sector;
        Some(Self {
            steps,
            current: 0,
            ios_in_step: 0,
            position,
            place: SplitMix64::new(seed),
            think: SplitMix64::new(seed.wrapping_add(THINK_SEED)),
        })
    }

    /// Returns the first sector and the length of the next I/O. The sector can lie beyond the end
    /// of the device.
    #[inline]
    pub fn next_place(&mut self) -> (u64, u32) {
        self.end_phase();
        let step = self.steps[self.current];
        self.ios_in_step += 1;
        let sector = self.position;
        let length = u64::from(step.nr_sectors);
        match step.pattern {
            Pattern::Seq => self.position = sector.wrapping_add(length),
            Pattern::Back => self.position = sector.wrapping_sub(length),
            Pattern::Stride => self.position = sector.wrapping_add_signed(step.stride),
            Pattern::Random => {
                let (lo, positions) = step.random;
                return (lo + self.place.next_u64() % positions * step.align, step.nr_sectors);
            }
        }
        (sector, step.nr_sectors)
    }

    /// Moves to the next phase if all I/Os of the current phase were made. Without this call, the
    /// next I/O moves to the next phase.
    #[inline]
    pub fn end_phase(&mut self) {
        while self.ios_in_step >= self.steps[self.current].count && self.current + 1 < self.steps.len() {
            self.current += 1;
            self.ios_in_step = 0;
            self.position = self.steps[self.current].start_sector;
        }
    }

    /// Returns the number of the current phase.
    #[must_use]
    pub fn phase(&self) -> usize {
        self.current
    }

    /// Returns the next think time, ns.
    #[inline]
    pub fn next_think_ns(&mut self) -> u64 {
        let step = &self.steps[self.current];
        match step.think_span_ns {
            0 => step.think_lo_ns,
            span => step.think_lo_ns + self.think.next_u64() % span.saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::Phase;

    fn places(task: &Task, n: usize) -> Vec<u64> {
        let mut program = Program::new(task).unwrap();
        (0..n).map(|_| program.next_place().0).collect()
    }

    #[test]
    fn patterns_access_the_expected_sectors() {
        let task = |pattern| Task { pattern: Some(pattern), start_sector: Some(100), stride: Some(50), ..Task::new(1) };
        assert_eq!(places(&task(Pattern::Seq), 3), [100, 108, 116]);
        assert_eq!(places(&task(Pattern::Back), 3), [100, 92, 84]);
        assert_eq!(places(&task(Pattern::Stride), 3), [100, 150, 200]);
        let random = Task { range: Some([1000, 1100]), align: Some(50), ..task(Pattern::Random) };
        assert!(places(&random, 40).iter().all(|s| [1000, 1050].contains(s)));
    }

    #[test]
    fn phase_starts_at_its_sector_and_last_phase_continues() {
        let phases = vec![
            Phase { count: 2, ..Phase::default() },
            Phase { count: 1, start_sector: Some(5), nr_sectors: Some(16), ..Phase::default() },
        ];
        let task = Task { phases, start_sector: Some(100), ..Task::new(1) };
        assert_eq!(places(&task, 5), [100, 108, 5, 21, 37]);
        assert_eq!(task.total(), Some(3));
    }

    #[test]
    fn positions_do_not_change_think_times() {
        let task = Task { pattern: Some(Pattern::Random), think_ns: Some(Think::Range([10, 20])), ..Task::new(9) };
        let mut program = Program::new(&task).unwrap();
        let mut other = program.clone();
        let thinks: Vec<u64> = (0..20).map(|_| program.next_think_ns()).collect();
        let interleaved: Vec<u64> = (0..20).map(|_| (other.next_place(), other.next_think_ns()).1).collect();
        assert_eq!(thinks, interleaved);
        assert!(thinks.iter().all(|ns| (10..=20).contains(ns)));
    }
}
