//! Containers of requests: sorted by sector, and by age.

use crate::collections::{List, RbTree};
use crate::request::{BySector, Fifo, RequestId, Requests, Sector};

/// Requests in sector order. Equal sectors are in the order of insertion.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    tree: RbTree<BySector>,
}

impl Sorted {
    #[inline]
    pub(crate) fn insert(&mut self, requests: &mut Requests, id: RequestId) {
        let sector = requests.prepare_sort(id);
        self.tree.insert(requests.sort_nodes_mut(), id, |at| sector < at.sector);
    }

    /// Inserts `id`, unless a request at the same sector is present. In that case, returns the
    /// present request. The elevators of the single-queue 2.6 kernels hold one request per sector,
    /// and release the present request early.
    pub(crate) fn insert_alone(&mut self, requests: &mut Requests, id: RequestId) -> Result<(), RequestId> {
        match self.find(requests, requests[id].sector) {
            Some(other) => Err(other),
            None => {
                self.insert(requests, id);
                Ok(())
            }
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, requests: &mut Requests, id: RequestId) {
        self.tree.remove(requests.sort_nodes_mut(), id);
    }

    /// Removes and inserts `id`, because its sector changed.
    pub(crate) fn reinsert(&mut self, requests: &mut Requests, id: RequestId) {
        self.remove(requests, id);
        self.insert(requests, id);
    }

    /// Updates the position of `id` after its first sector has decreased. Usually, the request
    /// before `id` stays the same.
    pub(crate) fn moved_forward(&mut self, requests: &mut Requests, id: RequestId) {
        let prev = self.prev(requests, id);
        if prev.is_some_and(|prev| requests[prev].sector > requests[id].sector) {
            self.reinsert(requests, id);
        } else {
            requests.prepare_sort(id);
        }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<RequestId> {
        self.tree.first()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    #[inline]
    pub(crate) fn next(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        self.tree.next(requests.sort_nodes(), id)
    }

    #[inline]
    pub(crate) fn prev(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        self.tree.prev(requests.sort_nodes(), id)
    }

    /// Returns the candidates after `id`: its successor, or else the first request, and its
    /// predecessor. With two requests, both candidates are the other request.
    #[inline(always)]
    pub(crate) fn neighbours(&self, requests: &Requests, id: RequestId) -> (Option<RequestId>, Option<RequestId>) {
        let successor = self.next(requests, id).or_else(|| self.first().filter(|&first| first != id));
        (successor, self.prev(requests, id))
    }

    /// Returns a request that begins at `sector`. If there are several, returns the request nearest
    /// to the root.
    #[inline]
    pub(crate) fn find(&self, requests: &Requests, sector: Sector) -> Option<RequestId> {
        let nodes = requests.sort_nodes();
        let mut at = self.tree.root();
        while let Some(id) = at {
            at = match sector.cmp(&nodes[id.index()].sector) {
                std::cmp::Ordering::Less => self.tree.left(nodes, id),
                std::cmp::Ordering::Greater => self.tree.right(nodes, id),
                std::cmp::Ordering::Equal => return Some(id),
            };
        }
        None
    }

    /// Returns the first request that begins at or after `sector`.
    #[inline]
    pub(crate) fn at_or_after(&self, requests: &Requests, sector: Sector) -> Option<RequestId> {
        let nodes = requests.sort_nodes();
        let (mut at, mut found) = (self.tree.root(), None);
        while let Some(id) = at {
            at = if nodes[id.index()].sector < sector {
                self.tree.right(nodes, id)
            } else {
                found = Some(id);
                self.tree.left(nodes, id)
            };
        }
        found
    }

    /// Checks order and shape. Returns the number of requests.
    pub(crate) fn check(&self, requests: &Requests) -> usize {
        self.tree.check(requests.sort_nodes(), |a, b| a.sector <= b.sector)
    }
}

/// Gives `survivor` the deadline and the position of `absorbed` in the same FIFO, if that deadline
/// is earlier. `absorbed` leaves the FIFO next.
pub(crate) fn inherit_fifo_place(
    fifo: &mut List<Fifo>,
    requests: &mut Requests,
    survivor: RequestId,
    absorbed: RequestId,
) {
    if requests[absorbed].deadline < requests[survivor].deadline {
        requests[survivor].deadline = requests[absorbed].deadline;
        fifo.remove(requests.list_nodes(), survivor);
        fifo.insert_after(requests.list_nodes(), absorbed, survivor);
    }
}
