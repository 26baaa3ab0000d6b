//! Queues of a group by position. A queue is sorted again when an insertion or a removal changes
//! its next request, and when its turn ends.

use super::Bfq;
use super::data::entity::Class;
use super::data::queue::QueueId;
use super::merge::CLOSE_SECTORS;
use crate::env::Env;
use crate::request::Sector;

impl Bfq {
    /// Inserts a queue by its next sector, unless it cannot be merged. A second
    /// queue at the same sector is not inserted.
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
        let tree = &mut self.groups[entity.group].positions;
        self.queues[id].positioned = tree.insert(&mut self.queues.positions, id);
    }

    #[inline]
    pub(super) fn leave_position(&mut self, id: QueueId) {
        if std::mem::take(&mut self.queues[id].positioned) {
            let group = self.entities[id.entity()].group;
            self.groups[group].positions.remove(&mut self.queues.positions, id);
        }
    }

    /// Returns the queue of the same group whose next request is close to `sector`.
    pub(super) fn close_queue(&self, id: QueueId, sector: Sector) -> Option<QueueId> {
        let tree = &self.groups[self.entities[id.entity()].group].positions;
        tree.close(&self.queues.positions, sector, CLOSE_SECTORS)
    }
}
