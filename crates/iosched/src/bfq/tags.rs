//! Limits on tags. Writes leave some tags for reads, and more tags while queues are raised. While
//! other queues or groups are active, a queue or group uses at most the part of the tags that
//! corresponds to its weight.

use super::Bfq;
use super::data::entity::{Class, EntityId};
use super::data::queue::QueueId;
use crate::env::Env;
use crate::request::Bio;

/// Ratio between the weights of adjacent classes: the number of levels.
const CLASS_FACTOR: u64 = 8;

impl Bfq {
    /// Returns how many of `nr_requests` tags a new request for `bio` may use; `None`: all.
    pub(super) fn tags_for(&self, env: &Env, bio: &Bio, nr_requests: u32) -> Option<u32> {
        let sync = bio.is_sync();
        let parts = match (sync, self.raised_busy != 0) {
            _ if sync && !bio.op.is_write() => None,
            (false, false) => Some(8),
            (true, false) => Some(12),
            (false, true) => Some(3),
            (true, true) => Some(6),
        };
        let part_of = |tags: u32| parts.map(|parts| (u64::from(tags) * parts / 16).max(1) as u32);
        if env.groups
            && self.rules.shares_tags
            && let Some(queue) = self.queue_of(bio.context, sync)
            && self.is_over_share(queue, part_of(nr_requests).unwrap_or(nr_requests))
        {
            return Some(1);
        }
        part_of(env.limit_word.unwrap_or(nr_requests))
    }

    /// Returns whether a queue, or a group that contains it, already has as many requests as its
    /// weight's part of `tags`.
    fn is_over_share(&self, id: QueueId, tags: u32) -> bool {
        let mut levels: Vec<EntityId> = Vec::new();
        let mut at = Some(id.entity());
        while let Some(entity) = at {
            if !self.is_on_tree_or_in_service(entity) {
                return false;
            }
            levels.push(entity);
            at = self.parent_of(entity);
        }
        let mut limit = u64::from(tags);
        for &level in levels.iter().rev() {
            let entity = &self.entities[level];
            let trees = &self.groups[entity.group].trees;
            let (weights, requests) = match entity.own_group {
                Some(child) => (trees[entity.class.index()].weights, self.groups[child].requests),
                None => {
                    let classes = Class::ALL[..=entity.class.index()].iter();
                    let weights = classes.fold(0, |sum, class| sum * CLASS_FACTOR + trees[class.index()].weights);
                    (weights, i64::from(self.queues[id].requests))
                }
            };
            if weights == 0 {
                continue;
            }
            limit = (limit * u64::from(entity.weight) + weights / 2) / weights;
            if requests >= limit as i64 {
                return true;
            }
        }
        false
    }
}
