//! Bringing everything under way to its end.

use super::Host;
use crate::violation::{Checked, ensure};

/// Time a request takes while draining, ns.
const SERVICE_NS: u64 = 100_000;

/// How much later a multi-queue elevator is asked again that let an idle device wait, ns: Linux' 3 ms at first, later more.
const ASKED_AGAIN_NS: u64 = 3_000_000;

impl Host {
    /// Ends all plugs and lets the device serve until nothing is left: within a number of calls that follows from what
    /// there is, and with nobody left waiting.
    pub(super) fn drain(&mut self) -> Checked {
        self.coverage.drains += 1;
        for task in 0..self.tasks.len() {
            self.unplug(task)?;
        }
        // A round serves a request or lets a timer fire; a request may need a flush before it and one after it, and waits
        // for one timer.
        let mut asked_again_ns = ASKED_AGAIN_NS;
        let mut rounds_left = 80 + 4 * (self.model.live() + self.parts_left() as usize);
        loop {
            ensure!(rounds_left > 0, Progress, "{} requests are left after all rounds", self.model.requests);
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
            if self.queue.next_timer().is_none() && self.queue.is_multi_queue() {
                self.now = self.now + asked_again_ns;
                asked_again_ns *= 2;
                continue;
            }
            ensure!(self.queue.next_timer().is_some(), Progress, "{} requests are left and stay", self.model.requests);
            self.timer(0)?;
        }
        self.check_waiters()?;
        self.check()?;
        self.model.check_empty()
    }
}
