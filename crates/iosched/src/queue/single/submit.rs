//! The way of a bio through the legacy request queue: merging, a place within the limits, the plug, insertion.

use crate::context::ContextId;
use crate::queue::{RequestQueue, Submit};
use crate::request::Bio;

impl RequestQueue {
    /// A bio with data.
    #[inline]
    pub(in crate::queue) fn submit_single(&mut self, bio: &Bio) -> Submit {
        let switching = self.next.is_some();
        if !switching && self.merge(bio) {
            return Submit::Merged;
        }
        let Some(id) = self.allocate(bio) else {
            return Submit::Full;
        };
        if switching {
            self.held.push_back(self.env.requests.list_nodes(), id);
            return Submit::Queued(id);
        }
        // The usual way, in one call: nothing comes between allocation and insertion.
        if !self.plugs.is_open(bio.context) && !self.env.log.is_on() {
            self.join_elevator(id);
            self.enqueue(id);
            self.elevator.add(&mut self.env, id);
            return Submit::Queued(id);
        }
        self.give_to_elevator(id);
        if self.plugs.is_open(bio.context) {
            if self.plugs.push(bio.context, id) {
                // The plug stays: what comes next collects again.
                while let Some(id) = self.plugs.pop(&self.env.requests, bio.context) {
                    self.insert(id);
                }
            }
        } else {
            self.insert(id);
        }
        Submit::Queued(id)
    }

    /// [`RequestQueue::unplug`], of this layer.
    pub(in crate::queue) fn unplug_single(&mut self, context: ContextId) -> bool {
        match self.plugs.pop(&self.env.requests, context) {
            Some(id) => {
                self.insert(id);
                true
            }
            None => {
                self.plugs.close(context);
                false
            }
        }
    }
}
