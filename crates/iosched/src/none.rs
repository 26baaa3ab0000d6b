//! none: no elevator. Requests wait in the order they came, one queue for each hardware queue, until the device takes them.
//!
//! As in Linux, what is queued is sent to the device at once, so bios merge on their process' plug, or, while the device
//! is full, with the newest requests that wait for it.

use crate::collections::List;
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::layer::{Layer, Merging, MultiQueueRules, Tags};
use crate::parts::software_queue;
use crate::request::{Bio, Fifo, MergeSide, RequestId};
use crate::tunable::{Declarations, TunableError};

const RULES: MultiQueueRules =
    MultiQueueRules { tags: Tags::Device, merging: Merging::Own, per_hw_queue: true, ..MultiQueueRules::USUAL };

pub(crate) const REGISTERED: Registered = Registered {
    name: "none",
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
    tunables: || DECLARATIONS.specs().collect(),
    build: |env| Box::new(NoElevator::new(env.hw_queues)),
};

static DECLARATIONS: Declarations<NoElevator> = Declarations { owner: "none", what: "tunable", tunables: &[] };

struct NoElevator {
    /// For each hardware queue.
    fifos: Vec<List<Fifo>>,
    queued: usize,
}

impl NoElevator {
    fn new(hw_queues: u16) -> Self {
        Self { fifos: (0..hw_queues).map(|_| List::default()).collect(), queued: 0 }
    }

    fn take(&mut self, env: &mut Env, hw_queue: usize) -> Option<RequestId> {
        let fifo = &mut self.fifos[hw_queue];
        let id = fifo.first()?;
        fifo.remove(env.requests.list_nodes(), id);
        self.queued -= 1;
        Some(id)
    }
}

impl Elevator for NoElevator {
    fn name(&self) -> &'static str {
        REGISTERED.name
    }

    fn find_merge(&mut self, env: &mut Env, bio: &Bio) -> Option<(RequestId, MergeSide)> {
        let hw_queue = env.hw_queue_of(bio.context);
        software_queue::find_merge(&self.fifos[usize::from(hw_queue)], &RULES, env, bio)
    }

    fn former(&self, _env: &Env, _id: RequestId) -> Option<RequestId> {
        None
    }

    fn latter(&self, _env: &Env, _id: RequestId) -> Option<RequestId> {
        None
    }

    fn absorb(&mut self, env: &mut Env, _survivor: RequestId, absorbed: RequestId) {
        let hw_queue = env.requests[absorbed].hw_queue;
        self.fifos[usize::from(hw_queue)].remove(env.requests.list_nodes(), absorbed);
        self.queued -= 1;
    }

    fn insert(&mut self, env: &mut Env, id: RequestId) {
        let hw_queue = env.requests[id].hw_queue;
        self.fifos[usize::from(hw_queue)].push_back(env.requests.list_nodes(), id);
        self.queued += 1;
        env.run_queue();
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        self.take(env, usize::from(env.hw_queue))
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        (0..self.fifos.len()).find_map(|hw_queue| self.take(env, hw_queue))
    }

    fn queued(&self) -> usize {
        self.queued
    }

    fn tunable(&self, name: &str) -> Result<u64, TunableError> {
        DECLARATIONS.get(self, name)
    }

    fn set_tunable(&mut self, name: &str, value: &str) -> Result<(), TunableError> {
        DECLARATIONS.set(self, name, value)
    }
}
