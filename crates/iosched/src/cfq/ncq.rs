//! Whether the device queues commands: as the host knows, or judged by how many it was seen to hold.

/// Holding this many shows that it does.
const DEPTH_MIN: u32 = 5;
/// Occasions on which it could have, before there is a verdict.
const SAMPLES: u32 = 50;

/// How a generation judges.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// What is said before the first verdict: -1 not known, which counts as yes, 0 no, 1 yes.
    pub(super) first: i8,
    /// A verdict of yes is final, and one of no is looked at again each time; otherwise judging begins anew after each.
    pub(super) yes_is_final: bool,
    /// While an idling queue is active that sends too little to fill the device, nothing is concluded from that.
    pub(super) spares_idlers: bool,
}

/// The detector of one device.
#[derive(Debug)]
pub(super) struct QueueDepth {
    known: bool,
    verdict: i8,
    most_in_driver: u32,
    samples: u32,
}

/// The load when a request completes.
pub(super) struct Load {
    pub(super) in_driver: u32,
    pub(super) queued: u32,
    /// The active queue may idle and has this many requests, queued and in flight.
    pub(super) active_idler_requests: Option<u32>,
}

impl QueueDepth {
    /// A detector; `known` is what is so if that need not be judged.
    pub(super) fn new(rules: Rules, known: Option<bool>) -> Self {
        Self { known: known.is_some(), verdict: known.map_or(rules.first, i8::from), most_in_driver: 0, samples: 0 }
    }

    /// Looks at the load before a completion is counted; returns the verdict if it changed.
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
        // A queue that idles may be what keeps the device from being full.
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

    /// Not known counts as yes.
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
    fn declared_command_queueing_is_not_guessed() {
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
    fn a_final_yes_stays_and_another_is_looked_at_again() {
        let last = Rules { first: -1, yes_is_final: true, spares_idlers: true };
        let anew = Rules { first: 1, yes_is_final: false, spares_idlers: false };
        for (rules, deep_then_shallow) in [(last, true), (anew, false)] {
            assert!(verdict_after(rules, &[(50, 1)]), "fifty occasions are not enough for no");
            assert!(!verdict_after(rules, &[(51, 1)]));
            assert!(verdict_after(rules, &[(51, 8)]));
            assert_eq!(verdict_after(rules, &[(51, 8), (102, 1)]), deep_then_shallow);
        }
    }
}
