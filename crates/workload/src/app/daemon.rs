//! Background I/O of any machine: a daemon that writes its log.

use super::{AppTask, Application, Call, Existing, Node, OpenFlags, Report, Source, Step};
use iosched_numbers::SplitMix64;

/// Length of a line of the log, bytes.
const LINE_BYTES: u64 = 100;
/// Longest time from one line to the next line, ns. The shortest time is half of this time.
const PERIOD_NS: u64 = 10_000_000_000;
const LOG: Node = Node::new(0);

/// A daemon that appends a line to its log every few seconds, for the whole run. No process waits
/// for its data. Writeback sends the data to the disk. The journal of the file system commits the
/// new size and times of the file.
#[derive(Debug)]
pub struct Daemon {
    tasks: [AppTask; 1],
    rng: SplitMix64,
    written: u64,
    is_open: bool,
    sleeps: bool,
}

impl Daemon {
    /// Creates a daemon. `seed` determines the times of its lines.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            tasks: [AppTask { name: "syslogd".to_owned() }],
            rng: SplitMix64::new(seed),
            written: 0,
            is_open: false,
            sleeps: false,
        }
    }
}

impl Application for Daemon {
    fn tasks(&self) -> &[AppTask] {
        &self.tasks
    }

    fn existing(&self) -> &[Existing] {
        &[]
    }

    fn step(&mut self, _task: usize, now_ns: u64) -> Step {
        if !std::mem::replace(&mut self.is_open, true) {
            let flags = OpenFlags { create: true, ..OpenFlags::default() };
            return Step::Call(Call::Open { parent: Node::root(0), node: LOG, name_bytes: 8, flags });
        }
        self.sleeps = !self.sleeps;
        if self.sleeps {
            return Step::Sleep { until_ns: now_ns + PERIOD_NS / 2 + self.rng.below(PERIOD_NS / 2) };
        }
        let offset = self.written * LINE_BYTES;
        self.written += 1;
        Step::Call(Call::Write { node: LOG, offset, bytes: LINE_BYTES, calls: 1, source: Source::Buffer })
    }

    fn progress(&self) -> f64 {
        0.0
    }

    fn report(&self) -> Report {
        Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemon_appends_a_line_every_few_seconds() {
        let mut daemon = Daemon::new(1);
        let mut now_ns = 0;
        assert!(matches!(daemon.step(0, now_ns), Step::Call(Call::Open { .. })));
        for line in 0..20 {
            let Step::Sleep { until_ns } = daemon.step(0, now_ns) else { panic!("the daemon does not sleep") };
            assert!((PERIOD_NS / 2..PERIOD_NS).contains(&(until_ns - now_ns)));
            now_ns = until_ns;
            let Step::Call(Call::Write { offset, .. }) = daemon.step(0, now_ns) else {
                panic!("the daemon does not write")
            };
            assert_eq!(offset, line * LINE_BYTES);
        }
    }
}
