//! Earliest time of a job's next I/O, from `rate`, `rate_iops` and `thinktime`.

use crate::fio::generator::JobIo;
use crate::fio::job::Job;
use crate::fio::value::{Direction, PerDirection, RateProcess, ThinkTimeBlocks};
use iosched_numbers::SplitMix64;

const SECOND_NS: u128 = 1_000_000_000;

/// Limit of a rate, and its unit.
#[derive(Clone, Copy, Debug)]
enum Limit {
    None,
    BytesPerS(u64),
    IosPerS(u64),
}

/// Rate of one direction.
#[derive(Clone, Copy, Debug)]
struct Rate {
    limit: Limit,
    /// Number of bytes or I/Os issued.
    issued: u64,
    /// Due time of the next I/O of a Poisson process, ns after the start.
    poisson_ns: f64,
}

/// Rates and think time of a job.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    start_ns: u64,
    rates: PerDirection<Rate>,
    process: RateProcess,
    rng: SplitMix64,
    think: crate::fio::value::ThinkTime,
    ignore_think: bool,
    issued: u64,
    completed: u64,
    /// Number of I/Os after which the next think time begins.
    think_at: u64,
    /// End of the last think time, ns. Before the first think time, this is the start of the job.
    working_since_ns: u64,
}

impl Pace {
    /// Creates the pace of a job that begins at `start_ns`.
    pub(super) fn new(job: &Job, start_ns: u64, rng: SplitMix64) -> Self {
        let rate = |direction| {
            let limit = match (job.rate_bytes_per_s.of(direction), job.rate_iops.of(direction)) {
                (Some(bytes @ 1..), _) => Limit::BytesPerS(*bytes),
                (_, Some(ios @ 1..)) => Limit::IosPerS(*ios),
                _ => Limit::None,
            };
            Rate { limit, issued: 0, poisson_ns: 0.0 }
        };
        let rates =
            PerDirection { read: rate(Direction::Read), write: rate(Direction::Write), trim: rate(Direction::Trim) };
        Self {
            start_ns,
            rates,
            process: job.rate_process,
            rng,
            think: job.think_time,
            ignore_think: job.rate_ignore_think_time,
            issued: 0,
            completed: 0,
            think_at: job.think_time.blocks.max(1).into(),
            working_since_ns: start_ns,
        }
    }

    /// Returns the earliest time of the next I/O of a direction, ns. Returns 0 if the direction has
    /// no rate.
    pub(super) fn next_ns(&self, direction: Direction) -> u64 {
        let rate = self.rates.of(direction);
        let per_s = match rate.limit {
            Limit::None => return 0,
            Limit::BytesPerS(per_s) | Limit::IosPerS(per_s) => per_s,
        };
        let after_ns = match self.process {
            RateProcess::Linear => (u128::from(rate.issued) * SECOND_NS / u128::from(per_s)) as u64,
            RateProcess::Poisson => rate.poisson_ns as u64,
        };
        self.start_ns.saturating_add(after_ns)
    }

    /// Returns whether a direction has a rate.
    pub(super) fn is_limited(&self, direction: Direction) -> bool {
        !matches!(self.rates.of(direction).limit, Limit::None)
    }

    /// Counts an issued I/O.
    pub(super) fn issued(&mut self, io: &JobIo) {
        self.issued += 1;
        let rate = self.rates.of_mut(io.direction);
        let (amount, per_s) = match rate.limit {
            Limit::None => return,
            Limit::BytesPerS(per_s) => (io.bytes, per_s),
            Limit::IosPerS(per_s) => (1, per_s),
        };
        rate.issued += amount;
        if self.process == RateProcess::Poisson {
            let mean_ns = amount as f64 * SECOND_NS as f64 / per_s as f64;
            rate.poisson_ns -= (1.0 - self.rng.unit()).ln() * mean_ns;
        }
    }

    /// Counts completed I/Os.
    pub(super) fn completed(&mut self, ios: u64) {
        self.completed += ios;
    }

    /// Returns the think time that is due now, ns, if any. The call begins this pause.
    pub(super) fn think_ns(&mut self, now_ns: u64) -> Option<u64> {
        let pause_ns = self.think.pause_ns;
        if pause_ns == 0 {
            return None;
        }
        let ios = match self.think.counted {
            ThinkTimeBlocks::Complete => self.completed,
            ThinkTimeBlocks::Issue => self.issued,
        };
        let worked = self.think.io_time_ns > 0 && now_ns.saturating_sub(self.working_since_ns) >= self.think.io_time_ns;
        if ios < self.think_at && !worked {
            return None;
        }
        self.think_at = ios + u64::from(self.think.blocks.max(1));
        if self.ignore_think {
            // The job does not catch up on I/Os that it did not issue during the pause.
            self.start_ns = self.start_ns.saturating_add(pause_ns);
        }
        Some(pause_ns)
    }

    /// Ends the pause.
    pub(super) fn thought(&mut self, now_ns: u64) {
        self.working_since_ns = now_ns;
    }
}
