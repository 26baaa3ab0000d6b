//! The measured loads, and their targets: a whole request queue, an elevator without a queue, or
//! neither of them.

use std::collections::VecDeque;
use std::hint::black_box;

use iosched::bare::Bare;
use iosched::{
    Bio, Cgroup, CgroupId, ContextId, Driver, Due, Flags, IoPriority, Op, QueueConfig, Registry, RequestId,
    RequestQueue, Rerun, Step, Submit, Time, UnknownElevator,
};

/// Reason why a load cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The registry has no scheduler of this name.
    #[error(transparent)]
    Unknown(#[from] UnknownElevator),
    /// The queue refuses an attribute of the load.
    #[error("{file}: {problem}")]
    Attribute {
        /// Name of the attribute or of the cgroup's file.
        file: &'static str,
        /// Reason.
        problem: String,
    },
}

/// Adds the name of the attribute to an error.
fn set<T, E: std::fmt::Display>(file: &'static str, result: Result<T, E>) -> Result<T, LoadError> {
    result.map_err(|problem| LoadError::Attribute { file, problem: problem.to_string() })
}

/// Sector of a task's next request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// After the last request of the task, with a gap, so that requests do not merge.
    Sequential,
    Random,
}

/// Shape of a load, for the measurement of costs.
pub struct Shape {
    /// Name of the shape.
    pub name: &'static str,
    tasks: u64,
    queued_per_task: u64,
    pattern: Pattern,
    /// Share of async writes, per cent.
    write_percent: u64,
    /// Whether the elevator looks up queued requests for merges. It never finds such a request.
    lookup: bool,
}

/// All shapes of loads, in the order of the tables.
pub const SHAPES: &[Shape] = &[
    shape("sequential", 64, 16, Pattern::Sequential, 0, false),
    shape("random", 64, 16, Pattern::Random, 0, false),
    shape("random, half writes", 64, 16, Pattern::Random, 50, false),
    shape("sequential, lookup", 64, 16, Pattern::Sequential, 0, true),
    shape("random, lookup", 64, 16, Pattern::Random, 0, true),
    shape("1,000 tasks x 1", 1_000, 1, Pattern::Random, 0, false),
    shape("10,000 tasks x 1", 10_000, 1, Pattern::Random, 0, false),
    shape("10 tasks x 10,000", 10, 10_000, Pattern::Random, 0, false),
];

const fn shape(
    name: &'static str,
    tasks: u64,
    queued_per_task: u64,
    pattern: Pattern,
    write_percent: u64,
    lookup: bool,
) -> Shape {
    Shape { name, tasks, queued_per_task, pattern, write_percent, lookup }
}

impl Shape {
    /// Returns a value of `nr_requests` that is large enough, even if an elevator lets tasks use
    /// only a part of the requests.
    fn nr_requests(&self) -> u32 {
        (8 * self.tasks * self.queued_per_task) as u32
    }

    /// Returns the number of requests before the load reaches its steady state.
    #[must_use]
    pub fn warm_up(&self) -> u64 {
        2 * self.tasks * self.queued_per_task.max(50)
    }
}

const DEPTH: usize = 32;
const REQUEST_SECTORS: u32 = 8;
const SERVICE_NS: u64 = 100_000;
const BEGIN: Time = Time::from_ns(1_000_000_000_000);

/// The generator xorshift64. It is so fast that it does not disturb the measurement.
pub struct Random(pub u64);

impl Random {
    /// Returns the next random number of a load.
    #[expect(
        clippy::should_implement_trait,
        reason = "a load never ends, and the cost of an iterator's Option would count"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Requests in the device, oldest first.
#[derive(Default)]
pub struct Device(VecDeque<RequestId>);

impl Device {
    fn has_room(&self) -> bool {
        self.0.len() < DEPTH
    }
}

/// Target of a load: a request queue, or a part of it.
pub trait Target: Sized {
    /// Creates the target for an elevator and a shape of load.
    ///
    /// # Errors
    /// The registry has no such elevator, or the queue refuses an attribute of the load.
    fn new(registry: &Registry, elevator: &str, shape: &Shape) -> Result<Self, LoadError>;

    /// Creates the context of a process.
    fn create_context(&mut self, pid: u32) -> ContextId;

    /// Submits `bio`, and starts the requests that must start at once.
    fn submit(&mut self, now: Time, bio: &Bio, device: &mut Device);

    /// Starts requests for which the device has room.
    fn turn(&mut self, now: Time, device: &mut Device);

    /// Completes `id`, and returns the task that it belongs to.
    fn complete(&mut self, now: Time, id: RequestId) -> u64;

    /// Waits while the elevator idles for a process, or until a timer expires. Returns the end of
    /// the wait.
    fn wait(&mut self, now: Time) -> Time;

    /// Checks the invariants.
    ///
    /// # Panics
    /// An invariant is violated.
    fn check(&self);
}

/// An elevator with a controller that does not limit anything. It shows the cost of a controller
/// that is only present.
pub struct ControllerLoad {
    /// Name of the case.
    pub name: &'static str,
    elevator: &'static str,
    /// Pairs of a file and a value. A file belongs to the group of all tasks or to the root, or is
    /// `wbt_lat_usec`.
    files: &'static [(&'static str, &'static str)],
}

/// Cases with a controller and an elevator.
pub const CONTROLLER_LOADS: &[ControllerLoad] = &[
    ControllerLoad { name: "none+wbt", elevator: "none", files: &[("wbt_lat_usec", "2000")] },
    ControllerLoad { name: "none+io.max", elevator: "none", files: &[("io.max", "riops=1000000000")] },
    ControllerLoad { name: "none+io.latency", elevator: "none", files: &[("io.latency", "target=1000000")] },
    ControllerLoad {
        name: "none+io.cost",
        elevator: "none",
        files: &[
            (
                "io.cost.model",
                "rbps=1000000000000 rseqiops=100000000 rrandiops=100000000 wbps=1000000000000 wseqiops=100000000 wrandiops=100000000",
            ),
            ("io.cost.qos", "enable=1 min=100 max=100"),
        ],
    },
];
/// The load of these cases. The controllers delay none of its requests.
pub const CONTROLLER_SHAPE: &str = "random";

/// Returns the elevator of a case.
fn elevator_of(case: &str) -> &str {
    CONTROLLER_LOADS.iter().find(|load| load.name == case).map_or(case, |load| load.elevator)
}

/// A request queue with an elevator, and its driver.
pub struct QueueTarget {
    driver: Driver,
    /// The group of all tasks.
    cgroup: CgroupId,
}

impl Target for QueueTarget {
    fn new(registry: &Registry, elevator: &str, shape: &Shape) -> Result<Self, LoadError> {
        let mut queue = RequestQueue::new(BEGIN, &QueueConfig::default(), registry.get(elevator_of(elevator))?);
        let nomerges = if shape.lookup { "0" } else { "1" };
        set("nr_requests", queue.set_attribute(BEGIN, "nr_requests", &shape.nr_requests().to_string()))?;
        set("nomerges", queue.set_attribute(BEGIN, "nomerges", nomerges))?;
        let mut driver = Driver::new(queue, Rerun::LINUX);
        let mut cgroup = CgroupId::ROOT;
        if let Some(ControllerLoad { files, .. }) = CONTROLLER_LOADS.iter().find(|load| load.name == elevator) {
            let group = Cgroup { name: "all".to_owned(), parent: None, weight: None, leaf_weight: None };
            cgroup = set("cgroup", driver.create_cgroup(group))?;
            for &(file, text) in *files {
                if file == "wbt_lat_usec" {
                    set(file, driver.set_attribute(BEGIN, file, text))?;
                } else {
                    let cgroup_of_file = if file.starts_with("io.cost") { CgroupId::ROOT } else { cgroup };
                    set(file, driver.set_cgroup_attribute(BEGIN, cgroup_of_file, file, text))?;
                }
            }
        }
        Ok(Self { driver, cgroup })
    }

    fn create_context(&mut self, pid: u32) -> ContextId {
        self.driver.create_context(pid, IoPriority::default(), self.cgroup)
    }

    #[inline]
    fn submit(&mut self, now: Time, bio: &Bio, device: &mut Device) {
        let submitted = self.driver.submit(now, bio);
        debug_assert!(matches!(submitted, Submit::Queued(_) | Submit::Merged));
        black_box(submitted);
        while let Some(id) = self.driver.kicked(now, device.has_room()) {
            device.0.push_back(id);
        }
    }

    #[inline]
    fn turn(&mut self, now: Time, device: &mut Device) {
        while let Some(step) = self.driver.turn(now, device.has_room()) {
            match step {
                Step::Start(id) => device.0.push_back(id),
                Step::Wake(_) => unreachable!("there is a free request for each process"),
            }
        }
    }

    #[inline]
    fn complete(&mut self, now: Time, id: RequestId) -> u64 {
        let mut task = 0;
        self.driver.complete(now, id, Ok(()), |bio, _| task = bio.cookie);
        task
    }

    fn wait(&mut self, now: Time) -> Time {
        let Some((at, due)) = self.driver.next_due(None, None) else {
            unreachable!("every queued request is dispatched, now or later");
        };
        let now = now.max(at);
        if due == Due::Timer {
            self.driver.timer(now);
        } else {
            self.driver.rerun(now);
        }
        now
    }

    fn check(&self) {
        self.driver.queue().check();
    }
}

/// An elevator without a queue.
pub struct Alone {
    elevator: Bare,
    is_multi_queue: bool,
    /// Unused requests.
    free: Vec<RequestId>,
}

impl Target for Alone {
    fn new(registry: &Registry, elevator: &str, shape: &Shape) -> Result<Self, LoadError> {
        let registered = registry.get(elevator_of(elevator))?;
        let bare = Bare::new(BEGIN, &QueueConfig::default(), registered, shape.nr_requests(), shape.lookup);
        Ok(Self { elevator: bare, is_multi_queue: registered.layer.is_multi_queue(), free: Vec::new() })
    }

    fn create_context(&mut self, pid: u32) -> ContextId {
        self.elevator.create_context(pid, IoPriority::default(), CgroupId::ROOT)
    }

    #[inline]
    fn submit(&mut self, now: Time, bio: &Bio, device: &mut Device) {
        let id = renewed(&mut self.elevator, &mut self.free, now, bio);
        self.elevator.insert(id, bio);
        if self.elevator.take_kick() {
            self.turn(now, device);
        }
    }

    #[inline]
    fn turn(&mut self, now: Time, device: &mut Device) {
        while device.has_room()
            && let Some(id) = self.elevator.dispatch(now)
        {
            device.0.push_back(id);
        }
    }

    #[inline]
    fn complete(&mut self, now: Time, id: RequestId) -> u64 {
        self.elevator.complete(now, id);
        self.free.push(id);
        self.elevator.request(id).context().index() as u64
    }

    fn wait(&mut self, now: Time) -> Time {
        let again = self.is_multi_queue.then(|| now + Rerun::AFTER_NS);
        match (self.elevator.next_timer(), again) {
            (Some(at), again) if again.is_none_or(|again| at <= again) => {
                let now = now.max(at);
                self.elevator.timer(now);
                now
            }
            (_, Some(again)) => again,
            (_, None) => unreachable!("every queued request is dispatched, now or later"),
        }
    }

    fn check(&self) {
        self.elevator.check();
    }
}

/// Returns a request for `bio`. Reuses an unused request if possible.
#[inline]
fn renewed(elevator: &mut Bare, free: &mut Vec<RequestId>, now: Time, bio: &Bio) -> RequestId {
    let id = free.pop().unwrap_or_else(|| elevator.create_request(bio));
    elevator.renew(now, id, bio);
    id
}

/// A target without an elevator, which shows the cost of the measuring loop. It serves the same
/// requests as [`Alone`], in the order of arrival.
pub struct Nothing {
    /// Owner of the requests. The loop does not call this elevator.
    elevator: Bare,
    free: Vec<RequestId>,
    waiting: VecDeque<RequestId>,
}

impl Target for Nothing {
    fn new(registry: &Registry, _: &str, shape: &Shape) -> Result<Self, LoadError> {
        let Alone { elevator, free, .. } = Alone::new(registry, "noop", shape)?;
        Ok(Self { elevator, free, waiting: VecDeque::new() })
    }

    fn create_context(&mut self, pid: u32) -> ContextId {
        self.elevator.create_context(pid, IoPriority::default(), CgroupId::ROOT)
    }

    #[inline]
    fn submit(&mut self, now: Time, bio: &Bio, _: &mut Device) {
        let id = renewed(&mut self.elevator, &mut self.free, now, bio);
        self.waiting.push_back(id);
    }

    #[inline]
    fn turn(&mut self, _: Time, device: &mut Device) {
        while device.has_room()
            && let Some(id) = self.waiting.pop_front()
        {
            device.0.push_back(id);
        }
    }

    #[inline]
    fn complete(&mut self, _: Time, id: RequestId) -> u64 {
        self.free.push(id);
        self.elevator.request(id).context().index() as u64
    }

    fn wait(&mut self, _: Time) -> Time {
        unreachable!("every waiting request is started at once")
    }

    fn check(&self) {}
}

/// A queue that tasks keep full: each completion causes a new request.
pub struct Load<'a, T> {
    shape: &'a Shape,
    target: T,
    contexts: Vec<ContextId>,
    positions: Vec<u64>,
    device: Device,
    random: Random,
    now: Time,
}

impl<'a, T: Target> Load<'a, T> {
    /// Creates a load of `shape` for `elevator`, after `warm_up` requests.
    ///
    /// # Errors
    /// The registry has no such elevator, or the queue refuses an attribute of the load.
    pub fn new(registry: &Registry, elevator: &str, shape: &'a Shape, warm_up: u64) -> Result<Self, LoadError> {
        let mut target = T::new(registry, elevator, shape)?;
        let contexts = (0..shape.tasks).map(|task| target.create_context(task as u32)).collect();
        let positions = (0..shape.tasks).map(|task| task * 100_000_000).collect();
        let random = Random(0x1234_5678_9ABC_DEF1);
        let mut load = Self { shape, target, contexts, positions, device: Device::default(), random, now: BEGIN };
        for _ in 0..shape.queued_per_task {
            for task in 0..shape.tasks {
                load.submit(task);
            }
        }
        load.requests(warm_up);
        Ok(load)
    }

    fn submit(&mut self, task: u64) {
        let sector = match self.shape.pattern {
            Pattern::Sequential => {
                let position = &mut self.positions[task as usize];
                *position += 2 * u64::from(REQUEST_SECTORS);
                *position
            }
            Pattern::Random => self.random.next() % 200_000_000 * 16,
        };
        let write = self.shape.write_percent > 0 && self.random.next() % 100 < self.shape.write_percent;
        let bio = Bio {
            op: if write { Op::Write } else { Op::Read },
            flags: Flags::empty(),
            sector,
            nr_sectors: REQUEST_SECTORS,
            context: self.contexts[task as usize],
            cookie: task,
        };
        self.target.submit(self.now, &bio, &mut self.device);
    }

    /// Submits and completes `count` requests.
    pub fn requests(&mut self, count: u64) {
        let mut completed = 0;
        while completed < count {
            self.target.turn(self.now, &mut self.device);
            let Some(id) = self.device.0.pop_front() else {
                self.now = self.target.wait(self.now);
                continue;
            };
            self.now = self.now + SERVICE_NS;
            let task = self.target.complete(self.now, id);
            self.submit(task);
            completed += 1;
        }
    }

    /// Checks the invariants of the target.
    ///
    /// # Panics
    /// An invariant is violated.
    pub fn check(&self) {
        self.target.check();
    }
}
