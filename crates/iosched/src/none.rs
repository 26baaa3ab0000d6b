//! none: no elevator. Requests wait in order of arrival, in one list per
//! hardware queue, until the device takes them.
//!
//! As in Linux, queued requests go to the device immediately. Bios therefore merge on the plug of
//! their process. While the device is full, they also merge with the newest waiting requests.

use crate::collections::List;
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::layer::{Layer, Merging, MultiQueueRules, Tags};
use crate::parts::software_queue;
use crate::request::{Bio, Fifo, MergeSide, RequestId};

const RULES: MultiQueueRules =
    MultiQueueRules { tags: Tags::Device, merging: Merging::Own, per_hw_queue: true, ..MultiQueueRules::USUAL };

pub(crate) const REGISTERED: Registered = Registered {
    about: "does not reorder requests; each hardware queue serves its requests in the order of arrival; for fast \
            devices",
    since: "3.13",
    until: None,
    layer: Layer::MultiQueue(RULES),
    how: &[
        "Each hardware queue has one list and serves it in the order of arrival. Hardware queues take turns.",
        "A request needs one of the device's tags before it enters a list. Without a free tag, \
         the process waits. Therefore lists are short.",
        "A bio can be merged in the plug of its process. If the device is full, a bio can also be merged with one of \
         the newest eight waiting requests.",
    ],
    when: "A device that orders requests itself (NVMe), or a disk for which a lower layer orders requests. Use none \
         only if processes need no fairness.",
    ..Registered::new("none", &|env| Box::new(NoElevator::new(env.hw_queues)))
};

struct NoElevator {
    /// One list for each hardware queue.
    fifos: Vec<List<Fifo>>,
}

impl NoElevator {
    fn new(hw_queues: u16) -> Self {
        Self { fifos: (0..hw_queues).map(|_| List::default()).collect() }
    }

    fn take(&mut self, env: &mut Env, hw_queue: usize) -> Option<RequestId> {
        let fifo = &mut self.fifos[hw_queue];
        let id = fifo.first()?;
        fifo.remove(env.requests.list_nodes(), id);
        Some(id)
    }
}

impl Elevator for NoElevator {
    fn find_merge(&mut self, env: &mut Env, bio: &Bio) -> Option<(RequestId, MergeSide)> {
        let hw_queue = env.hw_queue_of(bio.context);
        software_queue::find_merge(&self.fifos[usize::from(hw_queue)], &RULES, env, bio)
    }

    fn absorb(&mut self, env: &mut Env, _survivor: RequestId, absorbed: RequestId) {
        let hw_queue = env.requests[absorbed].hw_queue;
        self.fifos[usize::from(hw_queue)].remove(env.requests.list_nodes(), absorbed);
    }

    fn insert(&mut self, env: &mut Env, id: RequestId) {
        let hw_queue = env.requests[id].hw_queue;
        self.fifos[usize::from(hw_queue)].push_back(env.requests.list_nodes(), id);
        env.run_queue();
    }

    fn insert_at_head(&mut self, env: &mut Env, id: RequestId) {
        let hw_queue = env.requests[id].hw_queue;
        self.fifos[usize::from(hw_queue)].push_front(env.requests.list_nodes(), id);
        env.run_queue();
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        self.take(env, usize::from(env.hw_queue))
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        (0..self.fifos.len()).find_map(|hw_queue| self.take(env, hw_queue))
    }
}
