//! Counts of the database during the measured time.

use crate::app::{Better, Figure, Report, Series};

const NS_PER_S: u64 = 1_000_000_000;

/// Events that a session or a writer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A session waits for the read of a block.
    Read,
    /// A session waits for a free buffer.
    FreeBuffer,
    /// A session waits until its commit is in the log.
    LogSync,
    /// The database writer waits for a batch.
    BatchWrite,
    /// The log writer waits for a write to the log.
    LogWrite,
}

const EVENTS: usize = 5;

/// Number of waits, and their total time.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    count: u64,
    ns: u64,
}

/// Counts between the end of the warm-up and the end of the run.
#[derive(Debug)]
pub(super) struct Measure {
    /// Start of the database, ns; `None`: it has not started.
    began_ns: Option<u64>,
    /// Start of the measured time, ns. Before the database starts, it is relative to this start;
    /// afterwards it is absolute.
    start_ns: u64,
    end_ns: u64,
    /// Latest time seen, ns.
    now_ns: u64,
    transactions: u64,
    new_orders: u64,
    user_calls: u64,
    physical_writes: u64,
    /// Waits by [`Event`].
    waits: [Waits; EVENTS],
    /// Number of transactions in each second.
    each_second: Vec<u32>,
}

impl Measure {
    pub(super) const fn new(warmup_s: u64, seconds: u64) -> Self {
        Self {
            began_ns: None,
            start_ns: warmup_s * NS_PER_S,
            end_ns: (warmup_s + seconds) * NS_PER_S,
            now_ns: 0,
            transactions: 0,
            new_orders: 0,
            user_calls: 0,
            physical_writes: 0,
            waits: [Waits { count: 0, ns: 0 }; EVENTS],
            each_second: Vec::new(),
        }
    }

    pub(super) const fn see(&mut self, now_ns: u64) {
        if self.began_ns.is_none() {
            self.began_ns = Some(now_ns);
            self.start_ns += now_ns;
            self.end_ns += now_ns;
        }
        if now_ns > self.now_ns {
            self.now_ns = now_ns;
        }
    }

    pub(super) const fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns
    }

    pub(super) fn progress(&self) -> f64 {
        let began_ns = self.began_ns.unwrap_or(0);
        (self.now_ns.saturating_sub(began_ns) as f64 / (self.end_ns - began_ns) as f64).min(1.0)
    }

    const fn counts(&self) -> bool {
        self.now_ns >= self.start_ns && self.now_ns < self.end_ns
    }

    pub(super) fn transaction(&mut self, calls: u64, is_new_order: bool) {
        if !self.counts() {
            return;
        }
        self.transactions += 1;
        self.new_orders += u64::from(is_new_order);
        self.user_calls += calls;
        let second = ((self.now_ns - self.start_ns) / NS_PER_S) as usize;
        if self.each_second.len() <= second {
            self.each_second.resize(second + 1, 0);
        }
        self.each_second[second] += 1;
    }

    /// Counts a wait for an event. The wait ends now.
    pub(super) fn waited(&mut self, event: Event, since_ns: u64) {
        if self.counts() {
            let waits = &mut self.waits[event as usize];
            waits.count += 1;
            waits.ns += self.now_ns - since_ns;
        }
    }

    pub(super) fn wrote(&mut self, blocks: usize) {
        if self.counts() {
            self.physical_writes += blocks as u64;
        }
    }

    pub(super) fn report(&self) -> Report {
        let seconds = self.now_ns.min(self.end_ns).saturating_sub(self.start_ns) as f64 / NS_PER_S as f64;
        if seconds == 0.0 {
            return Report::default();
        }
        let figure = |name: &str, unit: &'static str, value, better| {
            let (name, unit) = (name.to_owned(), unit.into());
            Figure { name, unit, value, better }
        };
        let rate = |name, count: u64| figure(name, "1/s", count as f64 / seconds, Better::Higher);
        let waits = |event: Event| self.waits[event as usize];
        let sessions_ns: u64 =
            [Event::Read, Event::FreeBuffer, Event::LogSync].map(|event| waits(event).ns).iter().sum();
        let log_sync_pct = 100.0 * waits(Event::LogSync).ns as f64 / (sessions_ns as f64).max(1.0);
        let mean = |name, event| {
            let Waits { count, ns } = waits(event);
            figure(name, "ms", ns as f64 / (count as f64).max(1.0) / 1e6, Better::Lower)
        };
        let figures = vec![
            rate("tps", self.transactions),
            figure("log_file_sync", "%", log_sync_pct, Better::Lower),
            rate("user_calls", self.user_calls),
            rate("physical_reads", waits(Event::Read).count),
            rate("physical_writes", self.physical_writes),
            figure("tpmC", "1/min", self.new_orders as f64 / seconds * 60.0, Better::Higher),
            mean("db_file_sequential_read", Event::Read),
            mean("db_file_parallel_write", Event::BatchWrite),
            mean("log_file_parallel_write", Event::LogWrite),
            mean("log_file_sync_wait", Event::LogSync),
        ];
        // The series includes seconds without transactions, and excludes an incomplete second.
        let mut values: Vec<f64> = self.each_second.iter().copied().map(f64::from).collect();
        values.resize(seconds as usize, 0.0);
        let series = Series { name: "tps".to_owned(), unit: "1/s".into(), values, step_s: Some(1.0) };
        Report { figures, series: vec![series] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_time_starts_after_database_start_and_warm_up() {
        let mut measure = Measure::new(1, 4);
        for (at_s, is_over, progress) in
            [(60, false, 0.0), (61, false, 0.2), (64, false, 0.8), (65, true, 1.0), (70, true, 1.0)]
        {
            measure.see(at_s * NS_PER_S);
            measure.transaction(5, true);
            assert_eq!(measure.is_over(at_s * NS_PER_S), is_over, "at {at_s} s");
            assert!((measure.progress() - progress).abs() < 1e-9, "at {at_s} s");
        }
        // The transactions at 61 and at 64 s count.
        let report = measure.report();
        assert!((report.figures[0].value - 0.5).abs() < 1e-9);
        assert_eq!(report.series[0].values, [1.0, 0.0, 0.0, 1.0]);
    }
}
