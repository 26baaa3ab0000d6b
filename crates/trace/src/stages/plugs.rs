//! Plugs as btt counts them: for a device as a whole, not for each process.

use iosched::Time;
use serde::{Deserialize, Serialize};

use crate::blktrace::{Action, BlkEvent, Payload};

/// Counts and times of the plugs of one device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlugSummary {
    /// Number of times that the device became plugged, minus [`PlugSummary::by_timer`].
    pub plugs: u64,
    /// Plugs that a timer or the scheduler made release their requests.
    pub by_timer: u64,
    /// Fraction of the time in which the device was plugged, 0 to 1. The time is from the first
    /// submission to the last completion of requests with data on any device. `None` if no request
    /// with data completed.
    pub plugged: Option<f64>,
    /// Mean number of requests in a plug when its process releases them; `None` if no process did.
    pub requests_per_unplug: Option<f64>,
    /// Mean number of requests in a plug when a timer or the scheduler releases them; `None` if
    /// this did not happen.
    pub requests_per_timer_unplug: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Unplugs {
    count: u64,
    requests: u64,
}

impl Unplugs {
    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.requests as f64 / self.count as f64)
    }
}

#[derive(Debug, Default)]
pub(super) struct Plugs {
    since: Option<Time>,
    plugs: u64,
    plugged_ns: u64,
    explicit: Unplugs,
    timer: Unplugs,
}

impl Plugs {
    /// Adds an event. Returns whether it is an event of a plug.
    pub(super) fn add(&mut self, event: &BlkEvent) -> bool {
        let unplugs = match event.action {
            Action::Plug => {
                self.plugs += u64::from(self.since.is_none());
                self.since.get_or_insert(event.time);
                return true;
            }
            Action::Unplug => &mut self.explicit,
            Action::UnplugTimer => &mut self.timer,
            _ => return false,
        };
        unplugs.count += 1;
        if let Payload::Count(requests) = event.payload {
            unplugs.requests = unplugs.requests.saturating_add(requests);
        }
        if let Some(since) = self.since.take() {
            self.plugged_ns += event.time.since(since);
        }
        true
    }

    /// Returns the summary, or `None` if there were no plugs. `span_ns` is the time from the first
    /// submission of the trace to the last completion, or 0 if there is none.
    pub(super) fn summary(&self, span_ns: u64) -> Option<PlugSummary> {
        let any = self.plugs + self.explicit.count + self.timer.count > 0;
        any.then(|| PlugSummary {
            plugs: self.plugs.saturating_sub(self.timer.count),
            by_timer: self.timer.count,
            plugged: (span_ns > 0).then(|| (self.plugged_ns as f64 / span_ns as f64).min(1.0)),
            requests_per_unplug: self.explicit.mean(),
            requests_per_timer_unplug: self.timer.mean(),
        })
    }
}
