//! Detection of command queueing: the host knows it, or CFQ
//! observes the number of requests in the device.

/// Number of requests in the device that shows command queueing.
const DEPTH_MIN: u32 = 5;
/// Number of samples under load before a verdict.
const SAMPLES: u32 = 50;

/// Rules of a generation for the detection.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// First verdict: -1 (not known, which counts as yes), 0 (no) or 1 (yes).
    pub(super) first: i8,
    /// Whether the verdict "yes" is final, and the verdict "no" is checked at each further sample.
    /// Otherwise the detection starts again after each verdict.
    pub(super) yes_is_final: bool,
    /// Whether samples do not count while CFQ may idle for the active queue, and this queue sends
    /// too few requests to fill the device.
    pub(super) spares_idlers: bool,
}

/// Detector of one device.
#[derive(Debug)]
pub(super) struct QueueDepth {
    known: bool,
    verdict: i8,
    most_in_driver: u32,
    samples: u32,
}

/// Load when a request completes.
pub(super) struct Load {
    pub(super) in_driver: u32,
    pub(super) queued: u32,
    /// Number of requests of the active queue, queued and in flight, if CFQ may idle for the queue.
    pub(super) active_idler_requests: Option<u32>,
}

impl QueueDepth {
    /// Creates a detector. `known`: the result if the host knows it.
    pub(super) fn new(rules: Rules, known: Option<bool>) -> Self {
        Self { known: known.is_some(), verdict: known.map_or(rules.first, i8::from), most_in_driver: 0, samples: 0 }
    }

    /// Adds a sample of the load, before the completion is
    /// counted. Returns the verdict if it changed.
    #[inline]
    pub(super) fn observe(&mut self, rules: Rules, load: &Load) -> Option<i8> {
        if self.known {
            return None;
        }
        self.most_in_driver = self.most_in_driver.max(load.in_driver);
        if rules.yes_is_final && self.verdict == 1 {
            return None;
        }
        if load.queued <= DEPTH_MIN && load.in_driver <= DEPTH_MIN {
            return None;
        }
        // Idling may be the reason why the device is not full.
        if rules.spares_idlers
            && load.active_idler_requests.is_some_and(|n| n < DEPTH_MIN)
            && load.in_driver < DEPTH_MIN
        {
            return None;
        }
        if self.samples < SAMPLES {
            self.samples += 1;
            return None;
        }
        let before = self.verdict;
        self.verdict = i8::from(self.most_in_driver >= DEPTH_MIN);
        if !rules.yes_is_final {
            self.samples = 0;
            self.most_in_driver = 0;
        }
        (self.verdict != before).then_some(self.verdict)
    }

    /// Returns whether the device queues commands. An unknown result counts as yes.
    #[inline]
    pub(super) fn queues_commands(&self) -> bool {
        self.verdict != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_after(rules: Rules, loads: &[(usize, u32)]) -> bool {
        let mut depth = QueueDepth::new(rules, None);
        for &(times, in_driver) in loads {
            for _ in 0..times {
                depth.observe(rules, &Load { in_driver, queued: 10, active_idler_requests: None });
            }
        }
        depth.queues_commands()
    }

    #[test]
    fn observations_do_not_change_declared_command_queueing() {
        let rules = Rules { first: -1, yes_is_final: true, spares_idlers: true };
        for known in [false, true] {
            let mut depth = QueueDepth::new(rules, Some(known));
            for in_driver in [1, 8].repeat(100) {
                assert_eq!(depth.observe(rules, &Load { in_driver, queued: 10, active_idler_requests: None }), None);
                assert_eq!(depth.queues_commands(), known);
            }
        }
    }

    #[test]
    fn command_queueing_verdict_stays_only_if_rules_make_it_final() {
        let last = Rules { first: -1, yes_is_final: true, spares_idlers: true };
        let anew = Rules { first: 1, yes_is_final: false, spares_idlers: false };
        for (rules, deep_then_shallow) in [(last, true), (anew, false)] {
            assert!(verdict_after(rules, &[(50, 1)]), "50 samples are too few for the verdict no");
            assert!(!verdict_after(rules, &[(51, 1)]));
            assert!(verdict_after(rules, &[(51, 8)]));
            assert_eq!(verdict_after(rules, &[(51, 8), (102, 1)]), deep_then_shallow);
        }
    }
}
