//! CFQ of Linux 2.6.34. It has the kinds of work and the shared queues of the last CFQ, but no
//! groups in this implementation. It counts in jiffies. It idles for any queue that is the only
//! busy one. Queue yielding was written for this version.

use super::Cfq;
use super::clock::{Clock as _, Jiffies};
use super::data::queue::{QueueId, will_not_follow_up};
use super::generation::Generation;
use super::ncq;
use super::tunables::{Tunables, YIELD, in_jiffies as common};
use crate::context::WeightRange;
use crate::decision::Workload;
use crate::elevator::Registered;
use crate::env::Env;
use crate::layer::Layer;
use crate::request::RequestId;
use crate::time::MILLISECOND_NS;
use crate::tunable::{Declarations, Span, Tuned, tunable};

pub(crate) const REGISTERED: Registered = Registered {
    about: "CFQ of 2010: fair time slices; processes can share a queue; sequential, random and async queues take turns",
    since: "2.6.34",
    until: Some("2.6.34"),
    layer: Layer::SingleQueue,
    how: &[
        "Each process has a queue for its sync requests. Async requests share one queue for each \
         class and level.",
        "Queues take turns in time slices of whole jiffies. Higher levels get longer slices. The \
         real-time class goes first, the idle class last.",
        "Within its slice, a queue is served in sector order, from the place of the last request. A request past its \
         deadline goes first.",
        "If a queue will probably send more requests soon, the scheduler waits for the queue (slice_idle). The \
         scheduler always waits for a queue that is the only busy queue.",
        "CFQ serves all queues with many seeks as one group, and all async queues as another group. These groups \
         take turns with the sequential queues.",
        "Processes that work at the same place of the disk share a queue. CFQ ends the sharing as soon as the shared \
         queue saves no more seeks.",
        "With many queues, slices become shorter, so that each queue gets a turn within 300 ms. If a sync request \
         took too long, CFQ allows only a few async requests in the device. Afterwards, CFQ slowly allows more.",
        "With yield=1, the scheduler does not wait for a task that itself waits for the I/O of another task, as in \
         fsync.",
    ],
    when: "Experiments with a kernel of 2010, with its long waits in fsync, and with the effect of queue yielding.",
    tunables: || DECLARATIONS.specs().collect(),
    weights: WeightRange::CFQ,
    ..Registered::new("cfq-2.6.34", &|env| Box::new(Cfq::<Linux2_6_34>::new(env)))
};

/// Time within which every queue of a class must be served; not a tunable in this version, ns.
const TARGET_LATENCY_NS: u64 = 300 * MILLISECOND_NS;

/// CFQ of Linux 2.6.34.
pub(super) enum Linux2_6_34 {}

impl Generation for Linux2_6_34 {
    type Clock = Jiffies;

    fn declarations() -> &'static Declarations<Tunables> {
        &DECLARATIONS
    }

    fn tunables(env: &Env) -> Tuned<Tunables> {
        let mut tunables = Tunables::new(env, &DECLARATIONS);
        tunables.target_latency = Jiffies::ticks(env, TARGET_LATENCY_NS);
        tunables
    }

    const NCQ: ncq::Rules = ncq::Rules { first: -1, yes_is_final: true, spares_idlers: true };
    const PLANS_INCLUDE_THE_GONE: bool = true;
    const SPLIT_FORGETS_PLAN: bool = true;

    /// Idles if the present kind of work is [`Workload::Sync`], or if the hint of a request says
    /// that more requests may follow. This must be the last request of a queue, in the present turn
    /// of the kind of work. Also idles if the queue is the only busy queue.
    fn waits_after(cfq: &mut Cfq<Self>, env: &Env, completed: RequestId) -> bool {
        cfq.serving.requires_idle |= !will_not_follow_up(&env.requests[completed]);
        cfq.serving.workload == Workload::Sync || cfq.serving.requires_idle || cfq.busy_queues == 1
    }

    /// Lets `new` preempt the empty active queue if idling is worthwhile for neither queue, and if
    /// the two are the only queues in their tree.
    fn empty_gives_way(cfq: &Cfq<Self>, _: &Env, _: QueueId, new: QueueId) -> bool {
        let tree = cfq.queues[new].tree.map(|index| &cfq.groups[cfq.queues[new].group].trees[index.index()]);
        cfq.joins_no_idle(new) && tree.is_some_and(|tree| tree.count == 2)
    }
}

static DECLARATIONS: Declarations<Tunables> = Declarations {
    owner: "cfq-2.6.34",
    what: "tunable",
    tunables: &[
        common::quantum(8),
        common::FIFO_EXPIRE_SYNC,
        common::FIFO_EXPIRE_ASYNC,
        common::BACK_SEEK_MAX,
        common::BACK_SEEK_PENALTY,
        common::SLICE_SYNC,
        common::SLICE_ASYNC,
        common::SLICE_ASYNC_RQ,
        common::SLICE_IDLE,
        tunable!(
            Tunables.low_latency,
            "low_latency",
            Switch,
            1,
            1,
            0..=1,
            "2.6.32",
            "1: shorten slices to give every queue a turn within 300 ms; allow fewer async requests while sync \
             requests are slow",
            { clamps: true, tuning: Span::SWITCH }
        ),
        YIELD,
    ],
};
