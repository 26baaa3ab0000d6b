//! ADIOS (version 3.3.0): deadlines from learned latencies, and batches by predicted time.
//!
//! ADIOS is not in Linux; CachyOS and others build it into their kernels. Reads are one side, and
//! all other requests are the second side. Each side is sorted by deadline. The deadline of a sync
//! request is the time of its allocation. The deadline of another request is later by a target and
//! the predicted latency. Requests leave this order in batches. The predicted latencies decide
//! which side is next. A batch is served by operation, or on rotational devices in sector order.
//! Latencies are learned in [`model`]; the order is in [`sorted`], batches are in [`batch`].

mod batch;
mod model;
mod sorted;
mod tunables;

use crate::collections::List;
use crate::decision::{AdiosEvent, AdiosList, Decision};
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::layer::{Layer, MultiQueueRules};
use crate::request::{Bio, Fifo, Flags, Op, RequestId, SECTOR_BYTES, Sector};
use crate::time::Time;
use crate::tunable::{TunableError, TunableSet};
use batch::{Bias, LISTS, Page};
use model::{Known, Model, SMALL_BYTES, Samples, Shrinking};
use sorted::{NO_STEP, Sorted, Steps};
use tunables::{DECLARATIONS, Effect, TEXTS, Tunables, VERSION};

const RULES: MultiQueueRules = MultiQueueRules { reads_are_sync: false, ..MultiQueueRules::USUAL };

pub(crate) const REGISTERED: Registered = Registered {
    about: "learns the latencies of the device, and orders requests by deadline and predicted time; part of CachyOS \
        and other kernels, but not of Linux",
    since: VERSION,
    until: None,
    layer: Layer::MultiQueue(RULES),
    how: &[
        "For reads, writes and discards, adios learns the time of a 4 KiB request and the time of each further KiB.",
        "Until adios knows the latency of reads and writes, it serves requests in the order of arrival and merges no \
         requests.",
        "adios sorts reads and other requests separately, by deadline. The deadline of a sync request is its arrival. \
         The deadline of an async request is its arrival plus its lat_target plus its predicted time.",
        "While reads and other requests wait, the two kinds take turns by predicted time. With the default \
         read_priority, reads get about six times as much time as other requests.",
        "A batch is full when the predicted times of its requests and of the requests in flight add up to \
         global_latency_window.",
        "A batch is also full when its reads, writes or discards reach their batch_limit. Within a batch, reads go \
         first, then writes, then discards.",
        "adios prepares the next batch when the predicted time of the requests in flight is below \
         bq_refill_below_ratio percent of global_latency_window.",
    ],
    when: "A fast SSD or NVMe device on a desktop: reads stay fast during many writes. adios ignores ionice and \
           cgroups.",
    tunables: || DECLARATIONS.specs().collect(),
    texts: TEXTS,
    out_of_tree: Some("CachyOS"),
    ..Registered::new("adios", &|env| Box::new(Adios::new(env)))
};

/// Kinds of requests: reads, writes, discards, others.
const KINDS: usize = 4;
const WRITE: usize = 1;
const OTHER: usize = 3;
/// Operation that stands for each kind.
const OPS: [Op; KINDS] = [Op::Read, Op::Write, Op::Discard, Op::WriteZeroes];
/// Time from a sample to the timer that updates the models, ms.
const LEARN_MS: u64 = 100;

fn kind_of(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => WRITE,
        Op::Discard => 2,
        Op::WriteZeroes | Op::Flush => OTHER,
    }
}

/// Returns the side of a kind.
fn side_of(kind: usize) -> usize {
    usize::from(kind != 0)
}

/// Data of a request besides its deadline. After its dispatch, the deadline
/// field contains the time of the dispatch.
#[derive(Clone, Copy, Debug)]
struct Slot {
    predicted_ns: u64,
    /// Length at insertion.
    bytes: u32,
    /// Step of [`sorted`] that contains the request: a range of deadlines of about 1 ms.
    step: u32,
}

const EMPTY: Slot = Slot { predicted_ns: 0, bytes: 0, step: NO_STEP };

/// Number of requests on lists, on pages and in the device, and the sum of their predicted
/// latencies.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    count: u64,
    predicted_ns: u64,
}

/// Largest batches so far.
#[derive(Clone, Copy, Debug, Default)]
struct Maxima {
    of_kind: [u64; KINDS],
    total: u64,
}

struct Adios {
    tunables: Tunables,
    /// Effect of the last write to a file, if the effect must still be executed.
    effect_due: Option<Effect>,
    models: [Model; KINDS],
    /// Samples that all models share.
    shared: Samples,
    slots: Vec<Slot>,
    /// Requests inserted before latencies were known.
    normal: List<Fifo>,
    /// Requests inserted at the head.
    head: List<Fifo>,
    steps: Steps,
    sides: [Sorted; 2],
    pages: [Page; 2],
    /// Page that is served.
    front: usize,
    bias: Bias,
    /// Whether the latencies of reads and writes are known.
    stable: bool,
    in_flight: InFlight,
    maxima: Maxima,
    /// Time of the last completion while another request was in flight. The origin means none.
    completed: Time,
    /// First sector of the last completed request; 0: not known. Only on rotational devices.
    completed_sector: Sector,
    /// Sector after the last dispatched request. Only on rotational devices.
    head_sector: Sector,
    backward: bool,
    places: Vec<(u64, u32, RequestId)>,
    hz: u32,
    rotational: bool,
}

impl Adios {
    fn new(env: &Env) -> Self {
        let jiffy = env.jiffies();
        Self {
            tunables: Tunables::new(env.rotational),
            effect_due: None,
            models: std::array::from_fn(|_| Model::new(jiffy)),
            shared: Samples::default(),
            slots: Vec::new(),
            normal: List::default(),
            head: List::default(),
            steps: Steps::default(),
            sides: Default::default(),
            pages: Default::default(),
            front: 0,
            bias: Bias::default(),
            stable: false,
            in_flight: InFlight::default(),
            maxima: Maxima::default(),
            completed: Time::ZERO,
            completed_sector: 0,
            head_sector: 0,
            backward: false,
            places: Vec::new(),
            hz: env.hz,
            rotational: env.rotational,
        }
    }

    fn shrinking(&self) -> Shrinking {
        let values = &self.tunables.values;
        Shrinking { kilo_requests: values.shrink_kreqs, gib: values.shrink_gbytes, shift: values.shrink_resist }
    }

    /// Returns the direction for [`AdiosEvent::Flipped`].
    fn told_backward(&self) -> Option<bool> {
        self.rotational.then_some(self.backward)
    }

    // ---- waiting requests

    /// Predicts the latency of a new request.
    #[inline]
    fn predict(&mut self, env: &Env, id: RequestId) {
        if self.slots.len() <= id.index() {
            self.slots.resize(env.requests.capacity(), EMPTY);
        }
        let request = &env.requests[id];
        let bytes = request.nr_sectors.wrapping_mul(SECTOR_BYTES as u32);
        let predicted_ns = self.models[kind_of(request.op)].predict(bytes).min(self.tunables.values.limit_ns);
        self.slots[id.index()] = Slot { predicted_ns, bytes, step: NO_STEP };
    }

    fn count(&mut self, id: RequestId) {
        self.in_flight.count += 1;
        self.in_flight.predicted_ns = self.in_flight.predicted_ns.wrapping_add(self.slots[id.index()].predicted_ns);
    }

    fn note_queued(&self, env: &mut Env, id: RequestId, list: AdiosList) {
        if env.log.is_on() {
            let (cookie, predicted_ns) = (env.requests.cookie(id), self.slots[id.index()].predicted_ns);
            let deadline = (list == AdiosList::Sorted).then_some(env.requests[id].deadline);
            env.note(|| Decision::Adios(AdiosEvent::Queued { cookie, list, predicted_ns, deadline }));
        }
    }

    /// Starts sorting once the latencies of reads and writes are known.
    fn settle(&mut self, env: &mut Env) {
        if !self.stable && self.models[..=WRITE].iter().all(|model| model.known.base_ns > 0) {
            self.stable = true;
            env.note(|| Decision::Adios(AdiosEvent::Stable));
        }
    }

    /// Inserts `id` into the deadline order, with the present tunables.
    #[inline]
    fn sort_in(&mut self, env: &mut Env, id: RequestId) {
        let request = &mut env.requests[id];
        let kind = kind_of(request.op);
        let slot = &mut self.slots[id.index()];
        let mut deadline = request.allocated.as_ns();
        if !request.flags.contains(Flags::SYNC) {
            deadline = deadline.wrapping_add(self.tunables.target_ns(kind));
            if self.tunables.values.compliance & 1 == 0 {
                deadline = deadline.wrapping_add(slot.predicted_ns);
            }
        }
        request.deadline = Time::from_ns(deadline);
        slot.step = self.sides[side_of(kind)].insert(&mut self.steps, &mut env.requests, id, deadline);
    }

    /// Removes `id` from the deadline order.
    #[inline]
    fn sort_out(&mut self, env: &mut Env, id: RequestId) {
        let side = side_of(kind_of(env.requests[id].op));
        let step = std::mem::replace(&mut self.slots[id.index()].step, NO_STEP);
        self.sides[side].remove(&mut self.steps, &mut env.requests, id, step);
    }

    // ---- batches

    /// Fills the batch of the back page.
    fn fill(&mut self, env: &mut Env) {
        let back = self.front ^ 1;
        let order = self.tunables.values.order;
        self.pages[back].order = order;
        let before_ns = self.in_flight.predicted_ns;
        let (mut counts, mut total, mut added_ns) = ([0_u64; KINDS], 0_u64, 0_u64);
        loop {
            let side = self.bias.side();
            let firsts = [0, 1].map(|side| self.sides[side].first(&self.steps));
            let (id, charged) = match (firsts[side], firsts[side ^ 1]) {
                (Some(id), Some(other)) => (id, env.requests[id].deadline > env.requests[other].deadline),
                (Some(id), None) => (id, true),
                (None, Some(id)) => (id, false),
                (None, None) => break,
            };
            let kind = kind_of(env.requests[id].op);
            let predicted_ns = self.slots[id.index()].predicted_ns;
            let sum_ns = before_ns.wrapping_add(added_ns).wrapping_add(predicted_ns);
            if total > 0
                && (self.models[kind].known.base_ns == 0
                    || counts[kind] >= u64::from(self.tunables.batch_limit(kind))
                    || sum_ns > self.tunables.values.window_ns)
            {
                break;
            }
            if charged {
                let nice = if side == 0 { self.tunables.values.read_priority } else { 0 };
                self.bias.charge(side, predicted_ns, nice);
            }
            self.sort_out(env, id);
            env.hide(id);
            let request = &env.requests[id];
            let list = match kind {
                OTHER => OTHER,
                kind if order == 0 => kind,
                _ => usize::from(request.deadline != request.allocated),
            };
            self.pages[back].push(&mut env.requests, list, id);
            counts[kind] += 1;
            total += 1;
            added_ns = added_ns.wrapping_add(predicted_ns);
        }
        if order == 1 && counts[WRITE] >= 2 {
            self.pages[back].sort(&mut env.requests, &mut self.places);
        }
        self.in_flight.count += total;
        self.in_flight.predicted_ns = before_ns.wrapping_add(added_ns);
        for (most, count) in self.maxima.of_kind.iter_mut().zip(counts) {
            *most = (*most).max(count);
        }
        self.maxima.total = self.maxima.total.max(total);
        if env.log.is_on() {
            self.note_filled(env, before_ns, added_ns);
        }
    }

    #[cold]
    fn note_filled(&self, env: &mut Env, before_ns: u64, added_ns: u64) {
        let back = self.front ^ 1;
        let page = &self.pages[back];
        for list in 0..LISTS {
            let cookies: Vec<u64> = page.ids(&env.requests, list).map(|id| env.requests.cookie(id)).collect();
            for cookie in cookies {
                env.note(|| Decision::Adios(AdiosEvent::Batched { cookie, list: list as u8 }));
            }
        }
        let (page, order, bias) = (back as u8, page.order as u8, self.bias.0);
        env.note(|| Decision::Adios(AdiosEvent::Filled { page, order, before_ns, added_ns, bias }));
    }

    /// Sets the direction for requests sorted by sector.
    fn turn(&mut self, env: &Env) {
        self.backward = self.rotational && self.pages[self.front].is_backward_from(&env.requests, self.head_sector);
    }

    /// Removes and returns the first request of a list by age.
    fn pop_first(&mut self, env: &mut Env, from_head: bool) -> Option<RequestId> {
        let list = if from_head { &mut self.head } else { &mut self.normal };
        let id = list.first()?;
        list.remove(env.requests.list_nodes(), id);
        if list.is_empty() {
            self.turn(env);
        }
        Some(id)
    }

    /// Returns the next request of the pages. Fills the back page, and makes it the front page, if
    /// necessary.
    fn pop_batched(&mut self, env: &mut Env) -> Option<(RequestId, AdiosList)> {
        let back = self.front ^ 1;
        let front_is_empty = self.pages[self.front].len == 0;
        let values = &self.tunables.values;
        let little_ns = values.window_ns.wrapping_mul(values.refill_percent) / 100;
        if self.pages[back].len == 0
            && self.sides.iter().any(|side| side.len > 0)
            && (front_is_empty || self.in_flight.predicted_ns == 0 || self.in_flight.predicted_ns < little_ns)
        {
            self.fill(env);
        }
        if front_is_empty && self.pages[back].len > 0 {
            self.front = back;
            self.turn(env);
            let backward = self.told_backward();
            env.note(|| Decision::Adios(AdiosEvent::Flipped { page: back as u8, backward }));
        }
        let (id, list) = self.pages[self.front].pop(&mut env.requests, self.backward)?;
        Some((id, AdiosList::Batch(list as u8)))
    }

    // ---- latencies

    /// Updates the model of one operation from the samples.
    fn learn(&mut self, env: &mut Env, kind: usize) {
        let (jiffy, shrinking) = (env.jiffies(), self.shrinking());
        self.models[kind].update(&mut self.shared, jiffy, self.hz, shrinking);
    }

    fn known(&self) -> [Known; KINDS] {
        std::array::from_fn(|kind| self.models[kind].known)
    }

    /// Reports the models that differ from `before`.
    #[cold]
    fn note_changed(&self, env: &mut Env, before: &[Known; KINDS]) {
        for kind in 0..KINDS {
            let known = self.models[kind].known;
            if known != before[kind] {
                env.note(|| {
                    let Known { base_ns, slope_ns, small_sum, small_count, large_sum, large_bytes } = known;
                    let op = OPS[kind];
                    Decision::Adios(AdiosEvent::Model {
                        op,
                        base_ns,
                        slope_ns,
                        small_sum,
                        small_count,
                        large_sum,
                        large_bytes,
                    })
                });
            }
        }
    }

    /// Changes the models, and reports which of them changed.
    fn changing(&mut self, env: &mut Env, change: impl FnOnce(&mut Self, &mut Env)) {
        if env.log.is_on() {
            let before = self.known();
            change(self, env);
            self.note_changed(env, &before);
        } else {
            change(self, env);
        }
    }

    /// Returns the weight of a latency sample. On a rotational
    /// device, it increases with the seek distance.
    fn weight(&mut self, sector: Sector) -> u64 {
        if !self.rotational {
            return 1;
        }
        let last = std::mem::replace(&mut self.completed_sector, sector);
        match last.abs_diff(sector) {
            distance if last > 0 && distance > 0 => u64::from(distance.ilog2()) + 2,
            _ => 1,
        }
    }

    /// Returns the latency of a completed request: the time since the last completion, or, if the
    /// request was alone in the device, since its dispatch.
    fn latency_ns(&mut self, now: Time, dispatched: Time, bytes: u32) -> Option<u64> {
        let from = if self.completed == Time::ZERO { dispatched } else { self.completed };
        self.completed = if self.in_flight.count > 0 { now } else { Time::ZERO };
        (bytes != 0 && now >= from).then(|| now.since(from))
    }

    fn measure(&mut self, env: &mut Env, id: RequestId, kind: usize, slot: Slot) {
        let request = &env.requests[id];
        let (sector, dispatched) = (request.sector, request.deadline);
        let Some(latency_ns) = self.latency_ns(env.now, dispatched, slot.bytes) else { return };
        let weight = self.weight(sector);
        if latency_ns > self.tunables.values.limit_ns {
            return;
        }
        let Slot { bytes, predicted_ns, .. } = slot;
        let large = bytes > SMALL_BYTES;
        if let Some(cell) = self.models[kind].sample(latency_ns, weight, bytes, predicted_ns) {
            let cookie = env.requests.cookie(id);
            let cell = cell as u8;
            env.note(|| Decision::Adios(AdiosEvent::Sample { cookie, latency_ns, weight, large, cell }));
            if !large && self.models[kind].known.base_ns == 0 {
                self.changing(env, |adios, env| adios.learn(env, kind));
            }
        }
        if env.timer.is_none() {
            let at = env.wheel((LEARN_MS * u64::from(self.hz)).div_ceil(1000));
            env.timer = Some(at);
            env.note(|| Decision::Adios(AdiosEvent::TimerArm { at }));
        }
    }
}

impl Elevator for Adios {
    fn limit_depth(&mut self, env: &Env, bio: &Bio, nr_requests: u32) -> Option<u32> {
        bio.op.is_write().then_some(env.limit_word.unwrap_or(nr_requests))
    }

    fn merged_front(&mut self, env: &mut Env, id: RequestId) {
        self.merged_back(env, id);
    }

    /// Sorts the request again, by its new deadline. It becomes the last request of its step.
    fn merged_back(&mut self, env: &mut Env, id: RequestId) {
        self.sort_out(env, id);
        self.sort_in(env, id);
    }

    fn absorb(&mut self, env: &mut Env, _survivor: RequestId, absorbed: RequestId) {
        self.sort_out(env, absorbed);
    }

    fn insert(&mut self, env: &mut Env, id: RequestId) {
        self.predict(env, id);
        if self.stable {
            self.sort_in(env, id);
            self.note_queued(env, id, AdiosList::Sorted);
            return;
        }
        env.hide(id);
        self.normal.push_back(env.requests.list_nodes(), id);
        self.count(id);
        self.note_queued(env, id, AdiosList::Normal);
        self.settle(env);
    }

    fn insert_at_head(&mut self, env: &mut Env, id: RequestId) {
        self.predict(env, id);
        env.hide(id);
        self.head.push_back(env.requests.list_nodes(), id);
        self.count(id);
        self.note_queued(env, id, AdiosList::Head);
        self.settle(env);
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        let (id, list) = if let Some(id) = self.pop_first(env, false) {
            (id, AdiosList::Normal)
        } else if let Some(id) = self.pop_first(env, true) {
            (id, AdiosList::Head)
        } else {
            self.pop_batched(env)?
        };
        let request = &mut env.requests[id];
        request.deadline = env.now;
        if self.rotational {
            self.head_sector = request.end();
        }
        let (InFlight { count: in_flight, predicted_ns }, backward) = (self.in_flight, self.told_backward());
        env.note(|| Decision::Adios(AdiosEvent::Choice { list, predicted_ns, in_flight, backward }));
        Some(id)
    }

    /// A request that was drained, or that the device returned, is dispatched now.
    fn start(&mut self, env: &mut Env, id: RequestId) {
        env.requests[id].deadline = env.now;
    }

    fn complete(&mut self, env: &mut Env, id: RequestId) {
        let slot = self.slots[id.index()];
        self.in_flight.count -= 1;
        self.in_flight.predicted_ns = self.in_flight.predicted_ns.wrapping_sub(slot.predicted_ns);
        match kind_of(env.requests[id].op) {
            OTHER => self.completed_sector = 0,
            kind => self.measure(env, id, kind, slot),
        }
    }

    fn timer(&mut self, env: &mut Env) {
        let before = self.known();
        for kind in 0..KINDS {
            self.learn(env, kind);
        }
        if env.log.is_on() {
            let (small, large) = self.shared.weights();
            env.note(|| Decision::Adios(AdiosEvent::Timer { small, large }));
            self.note_changed(env, &before);
        }
    }

    /// The learned latencies affect later requests, not the present choice.
    fn runs_after_timer(&self) -> bool {
        false
    }

    fn check(&self, env: &Env) {
        let ages = [&self.normal, &self.head];
        let aged: usize = ages
            .map(|list| std::iter::successors(list.first(), |&id| env.requests.list_links(id).next()).count())
            .iter()
            .sum();
        let sorted: usize = self.sides.iter().map(|side| side.check(&self.steps, &env.requests)).sum();
        let mut batched = 0;
        for page in &self.pages {
            let ids = (0..LISTS).flat_map(|list| page.ids(&env.requests, list));
            assert_eq!(ids.count(), page.len);
            batched += page.len;
        }
        assert_eq!(aged + sorted + batched, env.queued());
        assert!((aged + batched) as u64 <= self.in_flight.count, "requests on lists or on pages count as in flight");
        assert!(self.stable || sorted == 0, "the scheduler sorts no requests before it knows latencies");
    }

    fn tunables(&self) -> Option<&dyn TunableSet> {
        Some(self)
    }

    fn tunables_mut(&mut self) -> Option<&mut dyn TunableSet> {
        Some(self)
    }

    fn tunable_changed(&mut self, env: &mut Env, _name: &str) {
        match self.effect_due.take() {
            Some(Effect::Load { first, values, empties }) => self.changing(env, |adios, env| {
                for (model, [base_ns, slope_ns]) in adios.models[first..].iter_mut().zip(values.into_iter().flatten()) {
                    model.load(base_ns, slope_ns, env.jiffies());
                }
                if empties {
                    adios.shared.clear();
                }
            }),
            Some(Effect::ResetBias) => self.bias = Bias::default(),
            Some(Effect::ResetMaxima) => self.maxima = Maxima::default(),
            None => {}
        }
    }
}

impl TunableSet for Adios {
    fn get(&self, name: &str) -> Result<u64, TunableError> {
        match TEXTS.iter().find(|spec| spec.name == name) {
            Some(spec) => Err(TunableError::NoNumber { name: spec.name }),
            None => self.tunables.values.get(name),
        }
    }

    fn text(&self, name: &str) -> Result<String, TunableError> {
        let model = |kind: usize| {
            let Known { base_ns, slope_ns, .. } = self.models[kind].known;
            format!("base : {base_ns} ns\nslope: {slope_ns} ns/KiB")
        };
        Ok(match name {
            "lat_model_read" => model(0),
            "lat_model_write" => model(1),
            "lat_model_discard" => model(2),
            "batch_actual_max" => {
                let Maxima { of_kind: [reads, writes, discards, _], total } = self.maxima;
                format!("Total  : {total}\nDiscard: {discards}\nRead   : {reads}\nWrite  : {writes}")
            }
            "adios_version" => VERSION.to_owned(),
            _ => match TEXTS.iter().find(|spec| spec.name == name) {
                Some(spec) => return Err(TunableError::WriteOnly { name: spec.name }),
                None => return self.tunables.values.text(name),
            },
        })
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), TunableError> {
        self.effect_due = self.tunables.write(name, text)?;
        Ok(())
    }
}
