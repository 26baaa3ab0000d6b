//! Rules of bfq that differ between versions of Linux.

use super::data::group::GroupId;
use crate::kernel::KernelVersion;
use crate::time::{MILLISECOND_NS, SECOND_NS};

/// Rules for merging queues that were created together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Together {
    /// Longest time between the creations of two queues that may belong together, ms.
    pub(super) window_ms: u64,
    /// Age at which a queue may be merged with a queue that was created together with it, ms.
    pub(super) age_ms: u64,
}

/// Rules for the detection of wakers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waking {
    /// Longest time from a completion to a request that it may have caused, ns.
    pub(super) soon_ns: u64,
    /// Number of detections that make a waker.
    pub(super) detections: u32,
    /// Whether the detections must happen within a limited time.
    pub(super) is_limited_in_time: bool,
}

/// Rules of a version of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rules {
    /// Rules that merge queues that were created together. `None`: BFQ has no such rules.
    pub(super) together: Option<Together>,
    /// Whether BFQ can inject requests of queues that the active queue wakes, and whether a merge
    /// keeps the waker.
    pub(super) serves_woken: bool,
    pub(super) waking: Waking,
    /// Whether a cgroup may not use more tags than its weight allows.
    pub(super) shares_tags: bool,
    /// Largest number of groups with pending requests for which shares count as equal.
    pub(super) equal_groups: u32,
    /// Whether the root group counts among these groups.
    pub(super) counts_root: bool,
    /// Whether BFQ idles for a queue that is the only busy one.
    pub(super) waits_for_lone: bool,
    /// Whether queues of any weight may be raised, not only those of the default weight.
    pub(super) raises_any_weight: bool,
}

impl Rules {
    pub(super) fn of(kernel: KernelVersion) -> Self {
        let is_since = |major, minor| kernel.is_since(major, minor);
        Self {
            together: match () {
                () if is_since(5, 14) => Some(Together { window_ms: 600, age_ms: 600 }),
                () if is_since(5, 13) => Some(Together { window_ms: 180, age_ms: 200 }),
                () => None,
            },
            serves_woken: is_since(5, 13),
            waking: if is_since(5, 12) {
                Waking { soon_ns: 4 * MILLISECOND_NS, detections: 3, is_limited_in_time: is_since(5, 17) }
            } else {
                Waking { soon_ns: SECOND_NS / 5000, detections: 1, is_limited_in_time: false }
            },
            shares_tags: is_since(5, 17),
            equal_groups: u32::from(is_since(6, 2)),
            counts_root: is_since(6, 2),
            waits_for_lone: is_since(5, 12),
            raises_any_weight: !is_since(5, 12),
        }
    }

    /// Returns whether a group counts among those with pending requests.
    #[inline]
    pub(super) fn counts(&self, group: GroupId) -> bool {
        self.counts_root || group != GroupId::ROOT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Rules {
        Rules::of(text.parse().unwrap())
    }

    #[test]
    fn queues_created_together_are_merged_from_5_13() {
        let of = |text: &str| rules(text).together.map(|together| (together.window_ms, together.age_ms));
        assert_eq!(
            ["5.12", "5.13", "5.14", "6.12"].map(of),
            [None, Some((180, 200)), Some((600, 600)), Some((600, 600))]
        );
        assert_eq!(["5.12", "5.13"].map(|text| rules(text).serves_woken), [false, true]);
    }

    #[test]
    fn bfq_rules_change_in_5_12_and_5_17() {
        let of = |text: &str| (rules(text).waking.detections, rules(text).waking.soon_ns);
        assert_eq!(["5.11", "5.12"].map(of), [(1, 200_000), (3, 4_000_000)]);
        assert_eq!(["5.16", "5.17"].map(|text| rules(text).waking.is_limited_in_time), [false, true]);
        assert_eq!(["5.11", "5.12"].map(|text| rules(text).waits_for_lone), [false, true]);
        assert_eq!(["5.11", "5.12"].map(|text| rules(text).raises_any_weight), [true, false]);
    }
}
