//! Progress of a client: how fast it receives answers and sends requests.

use iosched::Time;

/// Minimum progress in the allowed time, bytes. If a client moves fewer bytes and completes
/// nothing, it has stalled.
const LEAST_BYTES: u64 = 64 << 10;

/// Progress of a client since the last reset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    since: Time,
    bytes: u64,
    /// Whether a request was completed, or all output was sent.
    ended: bool,
}

impl Progress {
    pub(super) const fn new(now: Time) -> Self {
        Self { since: now, bytes: 0, ended: false }
    }

    /// Counts bytes that were sent or received.
    pub(super) fn moved(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Notes that a request or an answer is complete.
    pub(super) fn ended(&mut self) {
        self.ended = true;
    }

    /// Returns whether the client has stalled for `allowed_ns`. The time counts only while the
    /// server waits for the client (`its_turn`).
    pub(super) fn has_stalled(&mut self, now: Time, its_turn: bool, allowed_ns: u64) -> bool {
        if !its_turn || self.ended || self.bytes >= LEAST_BYTES {
            *self = Self::new(now);
        }
        now.since(self.since) >= allowed_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED_NS: u64 = 100;

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn a_connection_without_progress_is_stalled() {
        let mut progress = Progress::new(at(0));
        assert!(!progress.has_stalled(at(99), true, ALLOWED_NS));
        assert!(progress.has_stalled(at(100), true, ALLOWED_NS));
    }

    #[test]
    fn few_bytes_do_not_count_as_progress() {
        let mut progress = Progress::new(at(0));
        progress.moved(10);
        assert!(!progress.has_stalled(at(50), true, ALLOWED_NS));
        progress.moved(10);
        assert!(progress.has_stalled(at(100), true, ALLOWED_NS));
        progress.moved(LEAST_BYTES as usize);
        assert!(!progress.has_stalled(at(120), true, ALLOWED_NS));
        assert!(!progress.has_stalled(at(219), true, ALLOWED_NS));
        assert!(progress.has_stalled(at(220), true, ALLOWED_NS));
    }

    #[test]
    fn small_requests_and_waits_for_the_server_are_progress() {
        let mut progress = Progress::new(at(0));
        for ns in (0..1000).step_by(50) {
            progress.moved(28);
            progress.ended();
            assert!(!progress.has_stalled(at(ns), true, ALLOWED_NS));
        }
        assert!(!progress.has_stalled(at(5000), false, ALLOWED_NS));
        assert!(!progress.has_stalled(at(5099), true, ALLOWED_NS));
    }
}
