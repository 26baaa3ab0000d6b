//! Queues of a group by the first sectors of their next requests: where another process works on the same place.
//!
//! The tree is compared with the live sectors but re-sorted only when a queue's next request changes by an insert or a removal
//! and when its turn ends, and which of two neighbours a descent ends at depends on its shape: so it is the textbook's tree.

use super::Bfq;
use super::entity::Class;
use super::merge::CLOSE_SECTORS;
use super::queue::{ByPosition, PositionNode, QueueId};
use crate::collections::{Id, RbTree};
use crate::elevator::Env;
use crate::request::Sector;

/// Where a descent ended.
struct Descent {
    /// The queue whose next request begins at the very sector.
    exact: Option<QueueId>,
    /// The last queue met.
    parent: Option<QueueId>,
    left: bool,
}

fn descend(tree: &RbTree<ByPosition>, nodes: &[PositionNode], sector: Sector) -> Descent {
    let mut descent = Descent { exact: None, parent: None, left: false };
    let mut at = tree.root();
    while let Some(id) = at {
        descent.parent = Some(id);
        let here = nodes[id.number() as usize].next_sector;
        if sector == here {
            descent.exact = Some(id);
            break;
        }
        descent.left = sector < here;
        at = if descent.left { tree.left(nodes, id) } else { tree.right(nodes, id) };
    }
    descent
}

impl Bfq {
    /// Puts a queue where its next sector belongs, unless it is not to be merged anyway. A second queue at the very same sector
    /// stays out.
    #[inline]
    pub(super) fn refresh_position(&mut self, env: &Env, id: QueueId) {
        if !self.is_fast(env) {
            self.leave_position(id);
            self.enter_position(env, id);
        }
    }

    fn enter_position(&mut self, env: &Env, id: QueueId) {
        let queue = &self.queues[id];
        let entity = &self.entities[id.entity()];
        if self.is_late(env, id) || entity.class == Class::Idle || queue.next.is_none() {
            return;
        }
        let positions = &mut self.queues.positions;
        let sector = positions[id.number() as usize].next_sector;
        let tree = &mut self.groups[entity.group].positions;
        let descent = descend(tree, positions, sector);
        if descent.exact.is_none() {
            tree.attach(positions, id, descent.parent, descent.left);
            self.queues[id].positioned = true;
        }
    }

    #[inline]
    pub(super) fn leave_position(&mut self, id: QueueId) {
        if std::mem::take(&mut self.queues[id].positioned) {
            let group = self.entities[id.entity()].group;
            self.groups[group].positions.remove(&mut self.queues.positions, id);
        }
    }

    /// The queue of the same group whose next request is close to `sector`.
    pub(super) fn close_queue(&self, id: QueueId, sector: Sector) -> Option<QueueId> {
        let nodes = self.queues.positions.as_slice();
        let next_sector = |id: QueueId| nodes[id.number() as usize].next_sector;
        let is_close = |&id: &QueueId| next_sector(id).abs_diff(sector) <= CLOSE_SECTORS;
        let tree = &self.groups[self.entities[id.entity()].group].positions;
        let descent = descend(tree, nodes, sector);
        if descent.exact.is_some() {
            return descent.exact;
        }
        let nearest = descent.parent?;
        if is_close(&nearest) {
            return Some(nearest);
        }
        let other = if next_sector(nearest) < sector { tree.next(nodes, nearest) } else { tree.prev(nodes, nearest) };
        other.filter(is_close)
    }
}
