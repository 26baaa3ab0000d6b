//! noop: requests leave in the order of arrival. The request queue still merges.
//!
//! noop is the smallest elevator, and a good model for a new one.

use crate::collections::List;
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::layer::Layer;
use crate::request::{Fifo, RequestId};

pub(crate) const REGISTERED: Registered = Registered {
    about: "serves requests in the order of arrival; for devices that order requests themselves, \
            and as a baseline",
    since: "4.19",
    until: Some("4.19"),
    layer: Layer::SingleQueue,
    how: &[
        "All requests are in one list, and leave this list in the order of arrival.",
        "The request \
        queue still merges neighbouring requests.",
    ],
    when: "A device that orders requests itself, such as a RAID controller or an SSD. Comparisons also use noop as a \
        baseline.",
    ..Registered::new("noop", &|_| Box::new(Noop::default()))
};

#[derive(Default)]
struct Noop {
    fifo: List<Fifo>,
}

impl Elevator for Noop {
    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        env.requests.list_links(id).prev()
    }

    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        env.requests.list_links(id).next()
    }

    fn absorb(&mut self, env: &mut Env, _survivor: RequestId, absorbed: RequestId) {
        self.fifo.remove(env.requests.list_nodes(), absorbed);
    }

    fn insert(&mut self, env: &mut Env, id: RequestId) {
        self.fifo.push_back(env.requests.list_nodes(), id);
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        let id = self.fifo.first()?;
        self.fifo.remove(env.requests.list_nodes(), id);
        Some(id)
    }
}
