//! Chooses the requests to observe. At low rates, all requests are observed. At high rates, only a
//! *cohort* is observed: the requests that start in a part of each period. The events stay enabled
//! until each request of the cohort is complete. Long latencies are therefore included.

use std::time::Duration;

/// Longest time between two readings of events.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// Length of a period with one cohort, ns.
const PERIOD_NS: u64 = 500_000_000;
/// Interval at which the rate is checked while all requests are observed, ns.
const CHECK_NS: u64 = 100_000_000;
/// Shortest time in which the requests of a cohort start, ns.
const COHORT_NS_MIN: u64 = 2_000_000;
/// Longest time to wait for the completion of a cohort's requests, ns.
const PATIENCE_NS: u64 = 10_000_000_000;
/// If the share of requests to observe is above this limit, all requests are observed.
const NEARLY_ALL: f64 = 0.9;

/// State of the events.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    /// No events until this time.
    Off(u64),
    /// Requests are observed if they start after the first time. At the second time, the phase
    /// ends.
    Collect(u64, u64),
    /// Waits for the completion of requests that started between the two times.
    Drain(u64, u64),
}

/// Change to make to the recording of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Continue,
    SwitchOn,
    SwitchOff,
}

/// The choice of the requests to observe.
#[derive(Debug)]
pub(super) struct Cohort {
    /// Rate above which only a part of the requests is observed, requests per second.
    sampled_above: Option<u32>,
    phase: Phase,
    /// Start of the period in ns, and the number of requests of all disks until then.
    period: Option<(u64, u64)>,
    /// Time of the last sample, ns. `on_ns` is the time since the last sample in which requests
    /// were observed.
    since_ns: Option<u64>,
    on_ns: u64,
    /// Time up to which `on_ns` counts.
    counted_ns: u64,
}

impl Cohort {
    pub(super) fn new(sampled_above: Option<u32>) -> Self {
        Self { sampled_above, phase: Phase::Off(0), period: None, since_ns: None, on_ns: 0, counted_ns: 0 }
    }

    /// Returns whether events are on.
    pub(super) const fn is_on(&self) -> bool {
        !matches!(self.phase, Phase::Off(_))
    }

    /// Returns whether a request that starts at this time is observed.
    #[inline]
    pub(super) const fn contains(&self, time_ns: u64) -> bool {
        match self.phase {
            Phase::Off(_) => false,
            Phase::Collect(from, _) => time_ns >= from,
            Phase::Drain(from, to) => time_ns >= from && time_ns < to,
        }
    }

    /// Returns the time to the next step.
    pub(super) fn pause(&self, now_ns: u64) -> Duration {
        let at = match self.phase {
            Phase::Off(until) => until,
            Phase::Collect(_, until) => until,
            // The requests of a cohort are soon complete.
            Phase::Drain(..) => now_ns + 5_000_000,
        };
        Duration::from_nanos(at.saturating_sub(now_ns)).clamp(Duration::from_millis(1), PAUSE)
    }

    /// Advances the state. `in_flight` is the number of observed requests that are not complete,
    /// and `requests` returns the number of requests of all disks so far.
    pub(super) fn step(&mut self, now_ns: u64, in_flight: usize, requests: impl FnOnce() -> u64) -> Step {
        self.since_ns.get_or_insert(now_ns);
        self.count(now_ns);
        match self.phase {
            Phase::Off(until) if now_ns < until => Step::Continue,
            Phase::Off(_) => {
                let length = match self.share(now_ns, requests) {
                    None => CHECK_NS,
                    Some(share) => ((PERIOD_NS as f64 * share) as u64).max(COHORT_NS_MIN),
                };
                self.phase = Phase::Collect(now_ns, now_ns + length);
                self.counted_ns = now_ns;
                Step::SwitchOn
            }
            Phase::Collect(_, end) if now_ns < end => Step::Continue,
            Phase::Collect(from, _) => match self.share(now_ns, requests) {
                // Nothing changes: all requests stay observed.
                None => {
                    self.phase = Phase::Collect(from, now_ns + CHECK_NS);
                    Step::Continue
                }
                Some(_) => {
                    self.phase = Phase::Drain(from, now_ns);
                    Step::Continue
                }
            },
            Phase::Drain(_, to) if in_flight > 0 && now_ns < to + PATIENCE_NS => Step::Continue,
            Phase::Drain(from, _) => {
                self.phase = Phase::Off((from + PERIOD_NS).max(now_ns));
                Step::SwitchOff
            }
        }
    }

    fn count(&mut self, now_ns: u64) {
        if matches!(self.phase, Phase::Collect(..)) {
            self.on_ns += now_ns.saturating_sub(self.counted_ns);
        }
        self.counted_ns = now_ns;
    }

    /// Returns the share of requests to observe, from the rate since the last call. `None` means
    /// all requests.
    fn share(&mut self, now_ns: u64, requests: impl FnOnce() -> u64) -> Option<f64> {
        let limit = f64::from(self.sampled_above?);
        let count = requests();
        let (begun_ns, before) = self.period.replace((now_ns, count)).unwrap_or((now_ns, count));
        let seconds = now_ns.saturating_sub(begun_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            // The rate is not known yet, so the first cohort is small.
            return Some(0.1);
        }
        let rate = count.saturating_sub(before) as f64 / seconds;
        let share = if rate > 0.0 { limit / rate } else { 1.0 };
        (share < NEARLY_ALL).then_some(share)
    }

    /// Returns the fraction of the time since the last call in which every request that started was
    /// observed.
    pub(super) fn take_sampled(&mut self) -> f64 {
        let since = self.since_ns.replace(self.counted_ns).unwrap_or(self.counted_ns);
        let on = std::mem::take(&mut self.on_ns) as f64;
        let all = self.counted_ns.saturating_sub(since) as f64;
        if all > 0.0 { (on / all).min(1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Simulates `ms` milliseconds at a constant rate of `per_ms` requests per ms. Returns two
    /// values: the number of ms in which requests that started were observed, and the fraction that
    /// the cohort reports.
    fn observed(sampled_above: Option<u32>, per_ms: u64, ms: u64, latency_ms: u64) -> (u64, f64) {
        let mut cohort = Cohort::new(sampled_above);
        let (mut observed, mut last) = (0, 0);
        for now in 0..ms {
            if cohort.contains(now * MS) {
                (observed, last) = (observed + 1, now);
            }
            let in_flight = if now < last + latency_ms { 1 } else { 0 };
            cohort.step(now * MS, in_flight, || now * per_ms);
        }
        (observed, cohort.take_sampled())
    }

    #[test]
    fn all_requests_are_observed_below_the_limit() {
        let (ms, share) = observed(Some(5_000), 4, 10_000, 3);
        assert!(ms > 9_400 && share > 0.94, "{ms} {share}");
        assert_eq!(observed(None, 500, 10_000, 3).0, 9_999);
    }

    #[test]
    fn part_of_the_requests_is_observed_above_the_limit() {
        for (per_ms, expected) in [(50, 0.1), (500, 0.01)] {
            let (ms, share) = observed(Some(5_000), per_ms, 100_000, 3);
            let found = ms as f64 / 100_000.0;
            assert!((found / expected - 1.0).abs() < 0.35, "{per_ms}: {found}");
            assert!((share / expected - 1.0).abs() < 0.35, "{per_ms}: {share}");
        }
    }

    #[test]
    fn cohort_stays_on_until_its_requests_complete() {
        let mut cohort = Cohort::new(Some(1));
        assert_eq!(cohort.step(0, 0, || 0), Step::SwitchOn);
        assert_eq!(cohort.step(50 * MS, 9, || 1_000), Step::Continue);
        assert!(cohort.contains(49 * MS) && !cohort.contains(50 * MS));
        assert_eq!(cohort.step(5_000 * MS, 9, || 1_000), Step::Continue);
        assert_eq!(cohort.step(5_001 * MS, 0, || 1_000), Step::SwitchOff);
        assert!(!cohort.is_on());
    }

    #[test]
    fn cohort_ends_despite_a_lost_completion() {
        let mut cohort = Cohort::new(Some(1));
        cohort.step(0, 0, || 0);
        cohort.step(50 * MS, 9, || 1_000);
        assert_eq!(cohort.step(11_000 * MS, 1, || 1_000), Step::SwitchOff);
    }
}
