//! Whether the device queues commands, judged by how many it was seen to hold.

/// Holding this many shows that it does.
const DEPTH_MIN: u32 = 5;
/// Occasions on which it could have, before the verdict is no.
const SAMPLES: u32 = 50;

/// The detector of one device.
#[derive(Debug)]
pub(super) struct QueueDepth {
    verdict: i8,
    most_in_driver: u32,
    samples: u32,
}

impl Default for QueueDepth {
    fn default() -> Self {
        Self { verdict: -1, most_in_driver: 0, samples: 0 }
    }
}

/// The load when a request completes.
pub(super) struct Load {
    pub(super) in_driver: u32,
    pub(super) queued: u32,
    /// The active queue may idle and has this many requests, queued and in flight.
    pub(super) active_idler_requests: Option<u32>,
}

impl QueueDepth {
    /// Looks at the load before a completion is counted; returns the verdict if it changed.
    #[inline]
    pub(super) fn observe(&mut self, load: &Load) -> Option<i8> {
        self.most_in_driver = self.most_in_driver.max(load.in_driver);
        if self.verdict == 1 || (load.queued <= DEPTH_MIN && load.in_driver <= DEPTH_MIN) {
            return None;
        }
        // A queue that idles may be what keeps the device from being full.
        if load.active_idler_requests.is_some_and(|n| n < DEPTH_MIN) && load.in_driver < DEPTH_MIN {
            return None;
        }
        if self.samples < SAMPLES {
            self.samples += 1;
            return None;
        }
        let before = self.verdict;
        self.verdict = i8::from(self.most_in_driver >= DEPTH_MIN);
        (self.verdict != before).then_some(self.verdict)
    }

    /// Not known counts as yes.
    #[inline]
    pub(super) fn queues_commands(&self) -> bool {
        self.verdict != 0
    }
}
