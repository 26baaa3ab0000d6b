//! none: no elevator. Requests wait in the order they came, one queue for each hardware queue, until the device takes
//! them.
//!
//! As in Linux, what is queued is sent to the device at once, so bios merge on their process' plug, or, while the
//! device is full, with the newest requests that wait for it.

use crate::collections::List;
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::layer::{Layer, Merging, MultiQueueRules, Tags};
use crate::parts::software_queue;
use crate::request::{Bio, Fifo, MergeSide, RequestId};

const RULES: MultiQueueRules =
    MultiQueueRules { tags: Tags::Device, merging: Merging::Own, per_hw_queue: true, ..MultiQueueRules::USUAL };

pub(crate) const REGISTERED: Registered = Registered {
    about: "no elevator: every hardware queue first come, first served",
    since: "3.13",
    until: None,
    layer: Layer::MultiQueue(RULES),
    how: &[
        "One list for each hardware queue, first come, first served; hardware queues take turns.",
        "A request has one of the device's tags from the start, so little waits in a list; who finds no tag waits outside.",
        "Bios merge on their process' plug, or with the newest eight requests that wait for a full device.",
    ],
    when: "The device is fast and orders requests itself (NVMe), or a layer below does; nobody has to be treated fairly.",
    ..Registered::new("none", &|env| Box::new(NoElevator::new(env.hw_queues)))
};

struct NoElevator {
    /// For each hardware queue.
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

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        self.take(env, usize::from(env.hw_queue))
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        (0..self.fifos.len()).find_map(|hw_queue| self.take(env, hw_queue))
    }
}
