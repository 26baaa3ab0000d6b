//! Queues by the first sectors of their next requests, to find processes that access the same area.
//!
//! Comparisons use the present sectors, but a queue keeps its position in the tree until its
//! elevator removes and inserts it again. The shape of the tree, which follows the textbook,
//! determines at which of two neighbours a search ends.

use std::marker::PhantomData;

use crate::collections::{Id, Kind, RbLinks, RbNode, RbTree};
use crate::request::Sector;

/// Position of a queue in a tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PositionNode {
    /// First sector of the queue's next request; undefined without one.
    pub(crate) next_sector: Sector,
    links: RbLinks,
}

/// Marker for trees of queues, sorted by next sector. The ids of the queues have the type `I`.
#[derive(Debug)]
struct ByPosition<I>(PhantomData<fn() -> I>);

impl<I: Id> Kind for ByPosition<I> {
    type Id = I;
}

impl<I: Id> RbNode<ByPosition<I>> for PositionNode {
    #[inline]
    fn links(&self) -> &RbLinks {
        &self.links
    }

    #[inline]
    fn links_mut(&mut self) -> &mut RbLinks {
        &mut self.links
    }
}

/// Tree of queues with ids of type `I`.
#[derive(Debug)]
pub(crate) struct PositionTree<I> {
    tree: RbTree<ByPosition<I>>,
}

impl<I> Default for PositionTree<I> {
    fn default() -> Self {
        Self { tree: RbTree::default() }
    }
}

/// Result of a search from the root.
struct Descent<I> {
    /// Queue whose next request begins exactly at the sector.
    exact: Option<I>,
    /// Last queue of the search.
    parent: Option<I>,
    left: bool,
}

#[inline]
fn next_sector<I: Id>(nodes: &[PositionNode], id: I) -> Sector {
    nodes[id.number() as usize].next_sector
}

impl<I: Id> PositionTree<I> {
    fn descend(&self, nodes: &[PositionNode], sector: Sector) -> Descent<I> {
        let mut descent = Descent { exact: None, parent: None, left: false };
        let mut at = self.tree.root();
        while let Some(id) = at {
            descent.parent = Some(id);
            let here = next_sector(nodes, id);
            if sector == here {
                descent.exact = Some(id);
                break;
            }
            descent.left = sector < here;
            at = if descent.left { self.tree.left(nodes, id) } else { self.tree.right(nodes, id) };
        }
        descent
    }

    /// Inserts a queue by its next sector. Returns `false`, without inserting
    /// it, if another queue has the same sector.
    pub(crate) fn insert(&mut self, nodes: &mut [PositionNode], id: I) -> bool {
        let descent = self.descend(nodes, next_sector(nodes, id));
        let alone = descent.exact.is_none();
        if alone {
            self.tree.attach(nodes, id, descent.parent, descent.left);
        }
        alone
    }

    /// Removes `id`, which is in the tree.
    pub(crate) fn remove(&mut self, nodes: &mut [PositionNode], id: I) {
        self.tree.remove(nodes, id);
    }

    /// Returns the queue whose next request is at `sector`. If there is none, returns a queue
    /// within `reach` of `sector`: the queue where the search ends, or its neighbour on the other
    /// side of `sector`.
    pub(crate) fn close(&self, nodes: &[PositionNode], sector: Sector, reach: Sector) -> Option<I> {
        let is_close = |&id: &I| next_sector(nodes, id).abs_diff(sector) <= reach;
        let descent = self.descend(nodes, sector);
        if descent.exact.is_some() {
            return descent.exact;
        }
        let nearest = descent.parent?;
        if is_close(&nearest) {
            return Some(nearest);
        }
        let other = if next_sector(nodes, nearest) < sector {
            self.tree.next(nodes, nearest)
        } else {
            self.tree.prev(nodes, nearest)
        };
        other.filter(is_close)
    }

    /// Checks the shape. Returns the number of queues.
    pub(crate) fn check(&self, nodes: &[PositionNode]) -> usize {
        self.tree.check(nodes, |_, _| true)
    }
}
