//! Detection of command queueing in the device.

/// Number of requests, in the device and waiting, above which the detection takes samples.
const LOADED: u32 = 3;

/// Number of samples per verdict; the next sample decides.
const SAMPLES: u32 = 32;

/// Samples since the last verdict, and the verdict.
#[derive(Debug)]
pub(in crate::bfq) struct QueueDepth {
    /// -1 not known, 0 no, 1 yes. The verdict 1 is final.
    verdict: i8,
    most_in_driver: u32,
    samples: u32,
}

impl Default for QueueDepth {
    fn default() -> Self {
        Self { verdict: -1, most_in_driver: 0, samples: 0 }
    }
}

impl QueueDepth {
    #[inline]
    pub(in crate::bfq) fn verdict(&self) -> i8 {
        self.verdict
    }

    /// Returns the largest number of requests in the device at the same time since the last
    /// verdict.
    pub(in crate::bfq) fn most_in_driver(&self) -> u32 {
        self.most_in_driver
    }

    /// Adds a sample at the completion of a request. `in_driver` requests, including the completed
    /// one, are in the device, and `queued` requests wait. `lone` tells whether the active queue
    /// has a short think time and few requests. A sample with fewer than `LOADED` requests in the
    /// device is then ignored. Returns the verdict if it changed.
    #[inline]
    pub(in crate::bfq) fn observe(&mut self, in_driver: u32, queued: u32, lone: bool) -> Option<i8> {
        self.most_in_driver = self.most_in_driver.max(in_driver);
        if self.verdict == 1 || in_driver + queued <= LOADED || (lone && in_driver < LOADED) {
            return None;
        }
        self.samples += 1;
        if self.samples <= SAMPLES {
            return None;
        }
        let verdict = i8::from(self.most_in_driver > LOADED);
        self.most_in_driver = 0;
        self.samples = 0;
        (std::mem::replace(&mut self.verdict, verdict) != verdict).then_some(verdict)
    }
}
