//! noop: first come, first served. The request queue still merges.
//!
//! The smallest elevator there is; read a new one against it.

use crate::collections::List;
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::layer::Layer;
use crate::request::{Fifo, RequestId};
use crate::tunable::{Declarations, TunableError};

pub(crate) const REGISTERED: Registered = Registered {
    name: "noop",
    about: "first come, first served: for devices that schedule themselves, and as the measure of all others",
    since: "2.6.0",
    until: Some("5.0"),
    layer: Layer::SingleQueue,
    how: &["One list, first come, first served.", "The request queue in front of it still merges neighbours."],
    when: "The device orders requests itself (a RAID controller, an SSD), or as the measure of what the others change.",
    tunables: || DECLARATIONS.specs().collect(),
    build: |_| Box::new(Noop::default()),
};

static DECLARATIONS: Declarations<Noop> = Declarations { owner: "noop", what: "tunable", tunables: &[] };

#[derive(Default)]
struct Noop {
    fifo: List<Fifo>,
    queued: usize,
}

impl Elevator for Noop {
    fn name(&self) -> &'static str {
        REGISTERED.name
    }

    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        env.requests.list_links(id).prev()
    }

    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        env.requests.list_links(id).next()
    }

    fn absorb(&mut self, env: &mut Env, _survivor: RequestId, absorbed: RequestId) {
        self.fifo.remove(env.requests.list_nodes(), absorbed);
        self.queued -= 1;
    }

    fn insert(&mut self, env: &mut Env, id: RequestId) {
        self.fifo.push_back(env.requests.list_nodes(), id);
        self.queued += 1;
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        let id = self.fifo.first()?;
        self.fifo.remove(env.requests.list_nodes(), id);
        self.queued -= 1;
        Some(id)
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        self.dispatch(env)
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
