//! Choice by head position between two requests.

use crate::request::{RequestId, Requests, Sector, SortNode};

/// Limit and cost of backward seeks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackSeek {
    /// Longest backward seek, in sectors.
    pub(crate) max_sectors: u64,
    /// Cost of a backward seek, as a multiple of a forward seek of that length.
    pub(crate) penalty: u64,
}

impl BackSeek {
    /// Returns the cost of a seek from `position` to `sector`; `None`: too far back.
    #[inline]
    fn cost(self, position: Sector, sector: Sector) -> Option<u64> {
        if sector >= position {
            Some(sector - position)
        } else if sector + self.max_sectors >= position {
            Some((position - sector).saturating_mul(self.penalty))
        } else {
            None
        }
    }
}

/// Returns whether `a` is the better request with the head at `position`.
#[inline]
fn first_is_better(a: &SortNode, b: &SortNode, position: Sector, back_seek: BackSeek) -> bool {
    if a.urgency != b.urgency {
        return a.urgency > b.urgency;
    }
    first_is_nearer(a, b, position, back_seek)
}

/// Returns whether the seek to `a` is cheaper.
#[inline]
fn first_is_nearer(a: &SortNode, b: &SortNode, position: Sector, back_seek: BackSeek) -> bool {
    match (back_seek.cost(position, a.sector), back_seek.cost(position, b.sector)) {
        (Some(cost_a), Some(cost_b)) if cost_a == cost_b => a.sector >= b.sector,
        (Some(cost_a), Some(cost_b)) => cost_a < cost_b,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => a.sector <= b.sector,
    }
}

/// Position of the head, and cost of backward seeks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Sector of the head.
    pub(crate) position: Sector,
    /// Cost of backward seeks.
    pub(crate) back_seek: BackSeek,
}

impl Head {
    /// Returns the better of two requests, or the only one.
    #[inline(always)]
    pub(crate) fn better(self, requests: &Requests, a: Option<RequestId>, b: Option<RequestId>) -> Option<RequestId> {
        self.choose(requests, a, b, first_is_better)
    }

    /// Returns the nearer of two requests, or the only one. Only positions count, not urgency.
    #[inline(always)]
    pub(crate) fn nearer(self, requests: &Requests, a: Option<RequestId>, b: Option<RequestId>) -> Option<RequestId> {
        self.choose(requests, a, b, first_is_nearer)
    }

    #[inline(always)]
    fn choose(
        self,
        requests: &Requests,
        a: Option<RequestId>,
        b: Option<RequestId>,
        first: impl FnOnce(&SortNode, &SortNode, Sector, BackSeek) -> bool,
    ) -> Option<RequestId> {
        match (a, b) {
            (Some(x), Some(y)) if x != y => {
                let nodes = requests.sort_nodes();
                let (node_x, node_y) = (&nodes[x.index()], &nodes[y.index()]);
                Some(if first(node_x, node_y, self.position, self.back_seek) { x } else { y })
            }
            _ => a.or(b),
        }
    }
}
