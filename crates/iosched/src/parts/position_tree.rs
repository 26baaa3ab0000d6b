//! Queues by the first sectors of their next requests: where another process works on the same place.
//!
//! The tree is compared with the live sectors, but a queue keeps its place in it until its elevator takes it out and
//! puts it in again; and which of two neighbours a descent ends at depends on the tree's shape, which is the
//! textbook's.

use std::marker::PhantomData;

use crate::collections::{Id, Kind, RbLinks, RbNode, RbTree};
use crate::request::Sector;

/// A queue's place in a tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PositionNode {
    /// First sector of the queue's next request now; meaningless while it has none.
    pub(crate) next_sector: Sector,
    links: RbLinks,
}

/// Trees of queues called `I` by their next sectors.
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

/// A tree of queues called `I`.
#[derive(Debug)]
pub(crate) struct PositionTree<I> {
    tree: RbTree<ByPosition<I>>,
}

impl<I> Default for PositionTree<I> {
    fn default() -> Self {
        Self { tree: RbTree::default() }
    }
}

/// Where a descent ended.
struct Descent<I> {
    /// The queue whose next request begins at the very sector.
    exact: Option<I>,
    /// The last queue met.
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

    /// Puts a queue where its next sector belongs; `false`: it stays out, since another one is at the very sector.
    pub(crate) fn insert(&mut self, nodes: &mut [PositionNode], id: I) -> bool {
        let descent = self.descend(nodes, next_sector(nodes, id));
        let alone = descent.exact.is_none();
        if alone {
            self.tree.attach(nodes, id, descent.parent, descent.left);
        }
        alone
    }

    /// Takes out `id`, which is in.
    pub(crate) fn remove(&mut self, nodes: &mut [PositionNode], id: I) {
        self.tree.remove(nodes, id);
    }

    /// The queue whose next request is at `sector`, or else one within `reach` of it: that which a descent ends at, or
    /// its neighbour on the other side.
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

    /// Checks the shape; returns the number of queues.
    pub(crate) fn check(&self, nodes: &[PositionNode]) -> usize {
        self.tree.check(nodes, |_, _| true)
    }
}
