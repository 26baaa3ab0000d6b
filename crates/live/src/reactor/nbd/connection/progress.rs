//! Whether a client gets on with what it has begun: a request that comes, an answer that goes.

use iosched::Time;

/// Whoever moves fewer bytes than this in the time that is allowed, and ends nothing, stands still.
const LEAST_BYTES: u64 = 64 << 10;

/// What a client has moved since it was last looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    since: Time,
    bytes: u64,
    /// A request was complete, or there was nothing to send.
    ended: bool,
}

impl Progress {
    pub(super) const fn new(now: Time) -> Self {
        Self { since: now, bytes: 0, ended: false }
    }

    /// Bytes have come or gone.
    pub(super) fn moved(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// It has ended something.
    pub(super) fn ended(&mut self) {
        self.ended = true;
    }

    /// Whether it has stood still for `allowed_ns`, though it is its turn.
    pub(super) fn stands_still(&mut self, now: Time, its_turn: bool, allowed_ns: u64) -> bool {
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
        assert!(!progress.stands_still(at(99), true, ALLOWED_NS));
        assert!(progress.stands_still(at(100), true, ALLOWED_NS));
    }

    #[test]
    fn a_byte_now_and_then_is_standing_still_and_more_is_not() {
        let mut progress = Progress::new(at(0));
        progress.moved(10);
        assert!(!progress.stands_still(at(50), true, ALLOWED_NS));
        progress.moved(10);
        assert!(progress.stands_still(at(100), true, ALLOWED_NS));
        progress.moved(LEAST_BYTES as usize);
        assert!(!progress.stands_still(at(120), true, ALLOWED_NS));
        assert!(!progress.stands_still(at(219), true, ALLOWED_NS));
        assert!(progress.stands_still(at(220), true, ALLOWED_NS));
    }

    #[test]
    fn small_requests_and_waits_for_the_server_are_progress() {
        let mut progress = Progress::new(at(0));
        for ns in (0..1000).step_by(50) {
            progress.moved(28);
            progress.ended();
            assert!(!progress.stands_still(at(ns), true, ALLOWED_NS));
        }
        assert!(!progress.stands_still(at(5000), false, ALLOWED_NS));
        assert!(!progress.stands_still(at(5099), true, ALLOWED_NS));
    }
}
