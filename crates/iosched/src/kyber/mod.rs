//! kyber: meets latency targets for reads and writes. For this purpose, it limits the requests of
//! each domain in the device.
//!
//! The rules are those of Linux 6.12. Requests are not sorted, and processes and classes are not
//! distinguished. Each domain has tokens, one for every request in the device. When latencies miss
//! the targets, domains with good latencies lose tokens, and domains with bad latencies gain
//! tokens. [`latency`] computes the percentiles for this.

mod latency;

use crate::collections::{List, NIL};
use crate::decision::{Decision, KyberEvent, LatencyKind};
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::layer::{Layer, Merging, MultiQueueRules};
use crate::parts::software_queue;
use crate::parts::tags::{TagLayout, TagMap};
use crate::request::{Bio, Fifo, MergeSide, Op, RequestId};
use crate::tunable::{Declarations, Reads, Span, TunableSet, Tuned, tunable};
use latency::{DISCARD_TARGET_NS, GOOD_BUCKETS, Latencies};

const RULES: MultiQueueRules = MultiQueueRules { merging: Merging::Own, per_hw_queue: true, ..MultiQueueRules::USUAL };

pub(crate) const REGISTERED: Registered = Registered {
    about: "limits the requests in flight to meet latency targets for reads and writes; for fast devices",
    since: "4.12",
    until: None,
    layer: Layer::MultiQueue(RULES),
    how: &[
        "There are four domains: reads, writes, discards and others. Each domain serves its \
         requests in the order of arrival.",
        "In each hardware queue, the domains take turns: 16 reads, 8 writes, 1 discard, 1 other request.",
        "A request needs a token of its domain to enter the device. At first, the domains have \
         256, 128, 64 and 16 tokens.",
        "Every 100 ms, kyber compares two percentiles with the target: the 90th percentile of the time in the \
         device, and the 99th percentile of the whole latency.",
        "The target is read_lat_nsec for reads, write_lat_nsec for writes, and 5 s for discards.",
        "If a domain misses its target, each domain gets more or fewer tokens, according to its \
         99th percentile and its target.",
        "Async writes can use at most three quarters of the tags.",
    ],
    when: "A fast device with a deep queue, on which reads must not wait for writes. The order of sectors does not \
        matter on such a device.",
    tunables: || DECLARATIONS.specs().collect(),
    ..Registered::new("kyber", &|env| Box::new(Kyber::new(env)))
};

#[derive(Debug, Default)]
struct Tunables {
    read_target_ns: u64,
    write_target_ns: u64,
}

static DECLARATIONS: Declarations<Tunables> = Declarations {
    owner: "kyber",
    what: "tunable",
    tunables: &[
        tunable!(
            Tunables.read_target_ns,
            "read_lat_nsec",
            Nanoseconds,
            1,
            2_000_000,
            0..=u64::MAX,
            "4.12",
            "target latency of reads",
            { reads: Reads::U64, tuning: Span::of(125_000, 64_000_000) }
        ),
        tunable!(
            Tunables.write_target_ns,
            "write_lat_nsec",
            Nanoseconds,
            1,
            10_000_000,
            0..=u64::MAX,
            "4.12",
            "target latency of writes",
            { reads: Reads::U64, tuning: Span::of(625_000, 160_000_000) }
        ),
    ],
};

const DOMAINS: usize = 4;
/// Number of domains with measured latencies.
const TIMED: usize = 3;
/// Initial numbers of tokens, which are also the maximum.
const DEPTHS: [u32; DOMAINS] = [256, 128, 64, 16];
/// Number of requests in one turn.
const BATCHES: [u32; DOMAINS] = [16, 8, 1, 1];
/// Share of the tags that async requests may use, percent.
const ASYNC_PERCENT: u64 = 75;

fn domain_of(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::WriteZeroes | Op::Flush => 3,
    }
}

/// Requests of one hardware queue, and the domain whose turn it is.
#[derive(Debug, Default)]
struct HwQueue {
    /// Requests that bios may still join.
    arrived: [List<Fifo>; DOMAINS],
    /// Requests that have left the software queue.
    flushed: [List<Fifo>; DOMAINS],
    domain: usize,
    batch: u32,
    queued: usize,
}

/// Elevator kyber. The `elevator` field of a request contains its token, and the `deadline` field
/// contains the time of its dispatch.
struct Kyber {
    tunables: Tuned<Tunables>,
    tokens: [TagMap; DOMAINS],
    latencies: [Latencies; TIMED],
    hw_queues: Vec<HwQueue>,
    hz: u32,
    /// Whether all requests except reads have a limit on tags, not only async ones: from Linux 7.0.
    limits_sync_writes: bool,
}

impl Kyber {
    fn new(env: &Env) -> Self {
        Self {
            tunables: DECLARATIONS.tuned(Tunables::default()),
            tokens: DEPTHS.map(|depth| TagMap::new(TagLayout::Spread, depth)),
            latencies: Default::default(),
            hw_queues: (0..env.hw_queues).map(|_| HwQueue::default()).collect(),
            hz: env.hz,
            limits_sync_writes: env.kernel.is_since(7, 0),
        }
    }

    fn target_ns(&self, domain: usize) -> u64 {
        [self.tunables.read_target_ns, self.tunables.write_target_ns, DISCARD_TARGET_NS][domain]
    }

    /// Returns the next request of `domain`, if there is one and a token is free.
    fn take(&mut self, env: &mut Env, domain: usize) -> Option<RequestId> {
        let HwQueue { arrived, flushed, batch, queued, .. } = &mut self.hw_queues[usize::from(env.hw_queue)];
        let (arrived, flushed) = (&mut arrived[domain], &mut flushed[domain]);
        if flushed.is_empty() && arrived.is_empty() {
            return None;
        }
        let Some(token) = self.tokens[domain].get(None) else {
            env.note(|| Decision::Kyber(KyberEvent::Throttled { domain: domain as u8 }));
            return None;
        };
        if flushed.is_empty() {
            std::mem::swap(arrived, flushed);
        }
        let id = flushed.first()?;
        flushed.remove(env.requests.list_nodes(), id);
        *batch += 1;
        *queued -= 1;
        let request = &mut env.requests[id];
        debug_assert_eq!(request.elevator, NIL, "a request has one token");
        (request.elevator, request.deadline) = (token, env.now);
        Some(id)
    }

    fn choose(&mut self, env: &mut Env) -> Option<RequestId> {
        let hw_queue = usize::from(env.hw_queue);
        let HwQueue { mut domain, batch, .. } = self.hw_queues[hw_queue];
        if batch < BATCHES[domain]
            && let Some(id) = self.take(env, domain)
        {
            return Some(id);
        }
        self.hw_queues[hw_queue].batch = 0;
        for _ in 0..DOMAINS {
            domain = (domain + 1) % DOMAINS;
            self.hw_queues[hw_queue].domain = domain;
            if let Some(id) = self.take(env, domain) {
                return Some(id);
            }
        }
        None
    }

    /// Removes a request, and returns its token if it has one.
    fn forget(&mut self, env: &mut Env, id: RequestId) {
        let request = &mut env.requests[id];
        let token = std::mem::replace(&mut request.elevator, NIL);
        if token != NIL {
            self.tokens[domain_of(request.op)].put(token);
        }
    }

    /// Returns a percentile of a domain's latencies, if one is due.
    fn percentile(&mut self, env: &mut Env, domain: usize, kind: LatencyKind, percent: u32) -> Option<u32> {
        let (bucket, samples) = self.latencies[domain].percentile(kind, percent, env.jiffies(), self.hz)?;
        env.note(|| Decision::Kyber(KyberEvent::Latency { domain: domain as u8, kind, bucket, samples }));
        Some(bucket)
    }

    /// Returns the list that a new request joins, and counts the request.
    fn arrived(&mut self, env: &mut Env, id: RequestId) -> &mut List<Fifo> {
        let request = &mut env.requests[id];
        request.elevator = NIL;
        let HwQueue { arrived, queued, .. } = &mut self.hw_queues[usize::from(request.hw_queue)];
        *queued += 1;
        &mut arrived[domain_of(request.op)]
    }

    /// Sets the number of tokens of `domain` from its latencies,
    /// which are `bucket` quarters of the target.
    fn scale(&mut self, env: &mut Env, domain: usize, bucket: u32) {
        let before = self.tokens[domain].depth();
        let depth = (before * (bucket + 1) / GOOD_BUCKETS).clamp(1, DEPTHS[domain]);
        if depth != before {
            self.tokens[domain].resize(depth);
            env.note(|| Decision::Kyber(KyberEvent::Depth { domain: domain as u8, depth }));
        }
    }
}

impl Elevator for Kyber {
    fn find_merge(&mut self, env: &mut Env, bio: &Bio) -> Option<(RequestId, MergeSide)> {
        let hw_queue = &self.hw_queues[usize::from(env.hw_queue_of(bio.context))];
        software_queue::find_merge(&hw_queue.arrived[domain_of(bio.op)], &RULES, env, bio)
    }

    fn limit_depth(&mut self, env: &Env, bio: &Bio, nr_requests: u32) -> Option<u32> {
        let tags = env.limit_word.unwrap_or(nr_requests);
        let share = (u64::from(tags) * ASYNC_PERCENT / 100) as u32;
        let is_limited = if self.limits_sync_writes { bio.op != Op::Read } else { !bio.is_sync() };
        (is_limited && share > 0).then_some(share)
    }

    fn absorb(&mut self, _env: &mut Env, _survivor: RequestId, _absorbed: RequestId) {
        unreachable!("kyber merges no neighbouring requests");
    }

    fn insert(&mut self, env: &mut Env, id: RequestId) {
        self.arrived(env, id).push_back(env.requests.list_nodes(), id);
    }

    fn insert_at_head(&mut self, env: &mut Env, id: RequestId) {
        self.arrived(env, id).push_front(env.requests.list_nodes(), id);
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        if self.hw_queues[usize::from(env.hw_queue)].queued == 0 {
            return None;
        }
        let chosen = self.choose(env);
        let HwQueue { domain, batch, .. } = self.hw_queues[usize::from(env.hw_queue)];
        let token = chosen.map(|id| env.requests[id].elevator);
        env.note(|| Decision::Kyber(KyberEvent::Choice { domain: domain as u8, batch, token }));
        chosen
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        for hw_queue in &mut self.hw_queues {
            for list in hw_queue.flushed.iter_mut().chain(&mut hw_queue.arrived) {
                if let Some(id) = list.first() {
                    list.remove(env.requests.list_nodes(), id);
                    hw_queue.queued -= 1;
                    return Some(id);
                }
            }
        }
        None
    }

    /// A drained request has no token; a request that the device returned has kept its token.
    fn start(&mut self, env: &mut Env, id: RequestId) {
        env.requests[id].deadline = env.now;
    }

    fn complete(&mut self, env: &mut Env, id: RequestId) {
        let request = &env.requests[id];
        let (domain, allocated, dispatched) = (domain_of(request.op), request.allocated, request.deadline);
        if domain < TIMED {
            let target_ns = self.target_ns(domain);
            let latencies = &mut self.latencies[domain];
            latencies.record(LatencyKind::Total, env.now.since(allocated), target_ns);
            latencies.record(LatencyKind::Device, env.now.since(dispatched), target_ns);
            if env.timer.is_none() {
                let at = env.wheel(u64::from(self.hz / 10));
                env.timer = Some(at);
                env.note(|| Decision::Kyber(KyberEvent::TimerArm { at }));
            }
        }
        self.forget(env, id);
    }

    fn timer(&mut self, env: &mut Env) {
        env.note(|| Decision::Kyber(KyberEvent::Timer));
        self.latencies.iter_mut().for_each(Latencies::age);
        let mut missed = false;
        for domain in 0..TIMED {
            missed |= self.percentile(env, domain, LatencyKind::Device, 90).is_some_and(|p90| p90 >= GOOD_BUCKETS);
        }
        for domain in 0..TIMED {
            let p99 = self.percentile(env, domain, LatencyKind::Total, 99);
            let remembered = &mut self.latencies[domain].remembered;
            let p99 = if missed {
                let last = remembered.take();
                p99.or(last)
            } else {
                *remembered = p99.or(*remembered);
                p99
            };
            if let Some(p99) = p99.filter(|&p99| missed || p99 >= GOOD_BUCKETS) {
                self.scale(env, domain, p99);
            }
        }
    }

    fn check(&self, env: &Env) {
        assert_eq!(self.hw_queues.iter().map(|hw_queue| hw_queue.queued).sum::<usize>(), env.queued());
        for hw_queue in &self.hw_queues {
            let empty = hw_queue.arrived.iter().chain(&hw_queue.flushed).all(List::is_empty);
            assert_eq!(empty, hw_queue.queued == 0);
        }
    }

    fn tunables(&self) -> Option<&dyn TunableSet> {
        Some(&self.tunables)
    }

    fn tunables_mut(&mut self) -> Option<&mut dyn TunableSet> {
        Some(&mut self.tunables)
    }
}
