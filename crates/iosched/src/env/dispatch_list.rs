//! The dispatch list: requests that have left the elevator or bypass it, and wait for the device.
//!
//! Elevators of the multi-queue layer dispatch a request when the device takes it.
//! Elevators of the single-queue layer can release requests to this list earlier, in
//! sector order from the device's position.

use crate::collections::List;
use crate::request::{Fifo, RequestId, Requests, Sector};

/// Dispatch list. The device takes requests from the head.
#[derive(Debug, Default)]
pub(crate) struct DispatchList {
    list: List<Fifo>,
    /// Last of the requests that the device has returned. These requests are at the head.
    given_back: Option<RequestId>,
    /// The last barrier in the list.
    barrier: Option<RequestId>,
    /// Sector after the last request that the device took; 0 at first.
    pub(crate) taken_end: Sector,
}

impl DispatchList {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds `id` at the end.
    pub(crate) fn push_back(&mut self, requests: &mut Requests, id: RequestId) {
        self.list.push_back(requests.list_nodes(), id);
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<RequestId> {
        self.list.first()
    }

    /// Adds the barrier `id` at the end. Requests that are inserted in sector order later come
    /// after it.
    pub(crate) fn push_barrier(&mut self, requests: &mut Requests, id: RequestId) {
        self.push_back(requests, id);
        self.barrier = Some(id);
    }

    /// Adds `id`, a barrier that has begun, before all
    /// requests except those that the device returned.
    pub(crate) fn return_barrier(&mut self, requests: &mut Requests, id: RequestId) {
        self.barrier.get_or_insert(id);
        match self.given_back {
            Some(before) => self.list.insert_after(requests.list_nodes(), before, id),
            None => self.list.push_front(requests.list_nodes(), id),
        }
    }

    /// Adds `id`, which the device returned, at the head. The device takes it before all requests
    /// that are released later.
    pub(crate) fn give_back(&mut self, requests: &mut Requests, id: RequestId) {
        self.list.push_front(requests.list_nodes(), id);
        self.given_back.get_or_insert(id);
    }

    /// Inserts `id` in the order of a sweep: from the device's position upwards, then from the
    /// lowest sector upwards. `id` stays behind barriers. With `keep_directions`, it also stays
    /// behind requests of the other direction (read or write).
    pub(crate) fn insert_sorted(&mut self, requests: &mut Requests, id: RequestId, keep_directions: bool) {
        let boundary = self.taken_end;
        let (sector, writes) = (requests[id].sector, requests[id].op.is_write());
        let mut at = self.list.last();
        while let Some(here) = at {
            let other = &requests[here];
            let stays_before = if self.given_back == Some(here)
                || self.barrier == Some(here)
                || keep_directions && other.op.is_write() != writes
            {
                true
            } else if sector >= boundary {
                other.sector >= boundary && other.sector <= sector
            } else {
                other.sector >= boundary || other.sector <= sector
            };
            if stays_before {
                break;
            }
            at = requests.list_links(here).prev();
        }
        match at {
            Some(before) => self.list.insert_after(requests.list_nodes(), before, id),
            None => self.list.push_front(requests.list_nodes(), id),
        }
    }

    /// Removes and returns the first request.
    #[inline]
    pub(crate) fn pop(&mut self, requests: &mut Requests) -> Option<RequestId> {
        let id = self.list.first()?;
        self.list.remove(requests.list_nodes(), id);
        if self.given_back == Some(id) {
            self.given_back = None;
        }
        if self.barrier == Some(id) {
            self.barrier = None;
        }
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ContextId;
    use crate::request::{Bio, Flags, Op};
    use crate::time::Time;

    /// Returns the order of requests at the sectors `places` (negative: writes), with the device at
    /// sector `taken_end`.
    fn order(taken_end: Sector, keep_directions: bool, places: &[i64]) -> Vec<i64> {
        let mut requests = Requests::default();
        let mut list = DispatchList { taken_end, ..DispatchList::default() };
        for &place in places {
            let op = if place < 0 { Op::Write } else { Op::Read };
            let (sector, context) = (place.unsigned_abs(), ContextId(0));
            let bio = Bio { op, flags: Flags::empty(), sector, nr_sectors: 1, context, cookie: place as u64 };
            let id = requests.allocate(Time::ZERO, &bio);
            list.insert_sorted(&mut requests, id, keep_directions);
        }
        let mut order = Vec::new();
        while let Some(id) = list.pop(&mut requests) {
            order.push(requests.cookie(id) as i64);
        }
        order
    }

    #[test]
    fn dispatch_list_sweeps_up_from_the_head_then_wraps() {
        assert_eq!(order(100, false, &[50, 150, 20, 300, 100]), [100, 150, 300, 20, 50]);
    }

    #[test]
    fn returned_requests_stay_first() {
        let mut requests = Requests::default();
        let mut list = DispatchList { taken_end: 100, ..DispatchList::default() };
        let mut request = |sector| {
            let context = ContextId(0);
            let bio = Bio { op: Op::Read, flags: Flags::empty(), sector, nr_sectors: 1, context, cookie: sector };
            requests.allocate(Time::ZERO, &bio)
        };
        let [first, second, low, high] = [500, 400, 150, 450].map(&mut request);
        list.give_back(&mut requests, first);
        list.give_back(&mut requests, second);
        list.insert_sorted(&mut requests, high, false);
        list.insert_sorted(&mut requests, low, false);
        let order: Vec<_> = std::iter::from_fn(|| list.pop(&mut requests)).collect();
        assert_eq!(order, [second, first, low, high]);
    }

    #[test]
    fn no_request_is_sorted_before_a_barrier() {
        let mut requests = Requests::default();
        let mut list = DispatchList { taken_end: 100, ..DispatchList::default() };
        let mut request = |sector| {
            let context = ContextId(0);
            let bio = Bio { op: Op::Write, flags: Flags::empty(), sector, nr_sectors: 1, context, cookie: sector };
            requests.allocate(Time::ZERO, &bio)
        };
        let [before, barrier, low, high] = [500, 700, 150, 450].map(&mut request);
        list.push_back(&mut requests, before);
        list.push_barrier(&mut requests, barrier);
        list.insert_sorted(&mut requests, high, false);
        assert_eq!((list.pop(&mut requests), list.pop(&mut requests)), (Some(before), Some(barrier)));
        list.return_barrier(&mut requests, barrier);
        list.insert_sorted(&mut requests, low, false);
        let order: Vec<_> = std::iter::from_fn(|| list.pop(&mut requests)).collect();
        assert_eq!(order, [barrier, low, high]);
    }

    #[test]
    fn keep_directions_does_not_sort_reads_among_writes() {
        assert_eq!(order(0, true, &[50, -40, 10, 45]), [50, -40, 10, 45]);
        assert_eq!(order(0, false, &[50, -40, 10, 45]), [10, -40, 45, 50]);
    }
}
