//! Weights in use: whether all queues with requests have the same
//! share, so that shares need no enforcement.

/// Distinct weights, smallest first, with the number of queues of each.
#[derive(Debug, Default)]
pub(in crate::bfq) struct Weights {
    counts: Vec<(u32, u32)>,
}

impl Weights {
    pub(in crate::bfq) fn add(&mut self, weight: u32) {
        match self.counts.binary_search_by_key(&weight, |&(weight, _)| weight) {
            Ok(at) => self.counts[at].1 += 1,
            Err(at) => self.counts.insert(at, (weight, 1)),
        }
    }

    pub(in crate::bfq) fn remove(&mut self, weight: u32) {
        let place = self.counts.binary_search_by_key(&weight, |&(weight, _)| weight);
        debug_assert!(place.is_ok(), "a counted weight is there");
        let Ok(at) = place else { return };
        self.counts[at].1 -= 1;
        if self.counts[at].1 == 0 {
            self.counts.remove(at);
        }
    }

    /// Returns the smallest weight, if there are different weights.
    #[inline]
    pub(in crate::bfq) fn smallest_of_several(&self) -> Option<u32> {
        (self.counts.len() > 1).then(|| self.counts[0].0)
    }

    pub(in crate::bfq) fn total(&self) -> u32 {
        self.counts.iter().map(|&(_, count)| count).sum()
    }
}
