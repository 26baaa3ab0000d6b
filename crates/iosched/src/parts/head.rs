//! Choosing by head position: of two requests, the one that is served better first.

use crate::request::{RequestId, Requests, Sector, SortNode};

/// What a backward seek may reach and costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackSeek {
    /// How far behind the head a backward seek may reach.
    pub(crate) max_sectors: u64,
    /// How many times dearer than one forward it counts.
    pub(crate) penalty: u64,
}

impl BackSeek {
    /// The cost of going from `position` to `sector`; `None`: too far behind.
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

/// Whether the first of two requests is the better one to serve with the head at `position`.
#[inline]
fn first_is_better(a: &SortNode, b: &SortNode, position: Sector, back_seek: BackSeek) -> bool {
    if a.urgency != b.urgency {
        return a.urgency > b.urgency;
    }
    first_is_nearer(a, b, position, back_seek)
}

/// Whether the first of two requests is the cheaper one to go to.
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

/// Where the head is, and what going back costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Where it is: a sector.
    pub(crate) position: Sector,
    /// What going back costs.
    pub(crate) back_seek: BackSeek,
}

impl Head {
    /// The better of two requests to serve, if they are two.
    #[inline(always)]
    pub(crate) fn better(self, requests: &Requests, a: Option<RequestId>, b: Option<RequestId>) -> Option<RequestId> {
        self.choose(requests, a, b, first_is_better)
    }

    /// The nearer of two requests, if they are two: however urgent they are, only their places count.
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
