//! Batches: requests that have left the deadline order together, and the balance of predicted time
//! between reads and other requests.

use crate::collections::List;
use crate::request::{Fifo, RequestId, Requests};

/// Number of lists of a page.
pub(super) const LISTS: usize = 4;
/// List that is served in sector order, on a page with `batch_order` 1.
pub(super) const BY_SECTOR: usize = 1;

/// Batch of requests.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// `batch_order` when the batch was filled.
    pub(super) order: u32,
    pub(super) lists: [List<Fifo>; LISTS],
    pub(super) len: usize,
}

impl Page {
    pub(super) fn push(&mut self, requests: &mut Requests, list: usize, id: RequestId) {
        self.lists[list].push_back(requests.list_nodes(), id);
        self.len += 1;
    }

    /// Removes and returns the next request, with the index of its list. The list is the first list
    /// with requests. The next request is the first of the list. If the list is sorted by sector
    /// and the head moves backward, the next request is the last of the list.
    #[inline]
    pub(super) fn pop(&mut self, requests: &mut Requests, backward: bool) -> Option<(RequestId, usize)> {
        let (place, list) = self.lists.iter_mut().enumerate().find(|(_, list)| !list.is_empty())?;
        let from_end = place == BY_SECTOR && self.order == 1 && backward;
        let id = if from_end { list.last() } else { list.first() }?;
        list.remove(requests.list_nodes(), id);
        self.len -= 1;
        Some((id, place))
    }

    /// Returns the requests of a list in its order.
    pub(super) fn ids<'a>(&self, requests: &'a Requests, list: usize) -> impl Iterator<Item = RequestId> + 'a {
        std::iter::successors(self.lists[list].first(), |&id| requests.list_links(id).next())
    }

    /// Sorts the list that is served in sector order. Requests at equal sectors keep their order.
    /// `places` is a buffer that the caller reuses.
    pub(super) fn sort(&mut self, requests: &mut Requests, places: &mut Vec<(u64, u32, RequestId)>) {
        places.clear();
        places.extend(self.ids(requests, BY_SECTOR).zip(0..).map(|(id, place)| (requests[id].sector(), place, id)));
        places.sort_unstable_by_key(|&(sector, place, _)| (sector, place));
        let list = &mut self.lists[BY_SECTOR];
        *list = List::default();
        for &(_, _, id) in places.iter() {
            list.push_back(requests.list_nodes(), id);
        }
    }

    /// Returns whether a head at `sector` moves backward through the list in sector order.
    pub(super) fn is_backward_from(&self, requests: &Requests, sector: u64) -> bool {
        let list = &self.lists[BY_SECTOR];
        match (list.first(), list.last()) {
            (Some(first), Some(last)) if self.order == 1 => {
                sector > requests[first].sector().wrapping_add(requests[last].sector()) / 2
            }
            _ => false,
        }
    }
}

/// Balance of predicted time between the two sides. It decides
/// which side is next when both have requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bias(pub(super) i64);

impl Bias {
    /// Returns the side that is next: 0 reads, 1 others.
    pub(super) fn side(self) -> usize {
        usize::from(self.0 < 0)
    }

    /// Charges `side` with the predicted time of a request, weighted by its nice value.
    pub(super) fn charge(&mut self, side: usize, predicted_ns: u64, nice: i32) {
        let sign = if side == 0 { -1 } else { 1 };
        self.0 = match predicted_ns {
            0 => sign,
            _ => {
                let charge = predicted_ns.wrapping_mul(weight_of(nice)) / WEIGHT_OF_ZERO;
                self.0.wrapping_add((charge as i64).wrapping_mul(sign))
            }
        };
    }
}

/// Weight of nice 0.
const WEIGHT_OF_ZERO: u64 = 1024;
const NICE_MIN: i32 = -20;
/// Weights of nice values, as Linux uses them for processes: each is about 1.25 times the next.
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

fn weight_of(nice: i32) -> u64 {
    let place = usize::try_from(nice - NICE_MIN).unwrap_or(0).min(WEIGHTS.len() - 1);
    WEIGHTS[place].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_charged_by_their_nice_value_and_others_in_full() {
        let mut bias = Bias::default();
        bias.charge(0, 1_024_000, 8);
        assert_eq!((bias.0, bias.side()), (-172_000, 1));
        bias.charge(1, 1_024_000, 0);
        assert_eq!((bias.0, bias.side()), (852_000, 0));
    }

    #[test]
    fn reads_and_other_requests_alternate_without_predictions() {
        let mut bias = Bias(12_345);
        bias.charge(0, 0, 8);
        assert_eq!(bias.0, -1);
        bias.charge(1, 0, 0);
        assert_eq!(bias.0, 1);
    }

    #[test]
    fn weights_equal_cpu_scheduler_weights_of_nice_values() {
        assert_eq!([-20, 0, 8, 19].map(weight_of), [88_761, 1024, 172, 15]);
    }
}
