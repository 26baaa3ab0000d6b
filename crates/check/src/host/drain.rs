//! Completion of all I/O in flight.

use iosched::{Due, Rerun};

use super::Host;
use crate::violation::{Checked, ensure};

/// Service time of a request while draining, ns.
const SERVICE_NS: u64 = 100_000;

impl Host {
    /// Ends all plugs and lets the device serve requests until no request is left. The number of
    /// rounds is limited in proportion to the number of requests. At the end, no task may wait.
    pub(super) fn drain(&mut self) -> Checked {
        self.coverage.drains += 1;
        for task in 0..self.tasks.len() {
            self.unplug(task)?;
        }
        // Each round serves a request or lets a timer fire. A request needs at most four rounds:
        // for a flush before the request, for the request itself, for a flush after it, and for a
        // timer.
        let mut asked_later_ns = 0;
        let mut rounds_left = 80 + 4 * (self.model.live() + self.parts_left() as usize);
        loop {
            ensure!(rounds_left > 0, Progress, "{} requests are not complete after all rounds", self.model.requests);
            rounds_left -= 1;
            self.run(u32::MAX)?;
            if !self.in_device.is_empty() {
                self.now = self.now + SERVICE_NS;
                self.complete(rounds_left, false)?;
                continue;
            }
            if self.arena() == 0 {
                break;
            }
            match self.driver.next_due(None, None) {
                Some((at, Due::Rerun)) => {
                    let limited = self.driver.next_timer().filter(|_| self.driver.queue().scheduler() == "mclock");
                    self.now = self.now.max(at);
                    if let Some(until) = limited {
                        // The timer of mclock is the time at which mclock dispatches again.
                        self.now = self.now.max(until);
                    } else {
                        // Linux waits 3 ms at first. Later waits are longer.
                        self.now = self.now + asked_later_ns;
                        asked_later_ns = 2 * asked_later_ns + Rerun::AFTER_NS;
                    }
                    self.driver.rerun(self.now);
                }
                Some(_) => self.timer(0)?,
                None => ensure!(false, Progress, "{} requests never complete", self.model.requests),
            }
        }
        self.check_waiters()?;
        self.check()?;
        self.model.check_empty()
    }
}
