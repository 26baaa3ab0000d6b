//! Linux I/O schedulers (elevators) and the request queue around them. The library has no clock, no
//! I/O, no threads and no random numbers.
//!
//! A host owns time and the device. The host creates a [`RequestQueue`] with an elevator from a
//! [`Registry`], and an io context for each process. Then the host makes the following calls. Each
//! call that depends on time takes the present time.
//!
//! | family | calls |
//! |---|---|
//! | submit | [`RequestQueue::submit`], [`RequestQueue::plug`], [`RequestQueue::unplug`]: add a [`Bio`] to a queued request, or make a new request |
//! | dispatch | [`RequestQueue::dispatch`]: returns at most one request for the device |
//! | complete | [`RequestQueue::complete`]: reports that the device has finished a request |
//! | timer | [`RequestQueue::next_timer`], [`RequestQueue::timer`]: the next time at which the elevator or a controller must run |
//! | control | tunables and attributes, [`RequestQueue::switch`], [`RequestQueue::set_ioprio`], [`RequestQueue::exit`], weights, [`RequestQueue::yield_to`] |
//!
//! The rules for when to run the queue, and in which order to handle events, are the same for every
//! host. A [`Driver`] contains these rules: it owns the queue, and returns the next step to the
//! host.
//!
//! [`Decision`] events show what the elevator decides, and why. They are off by default. While they
//! are off, a decision costs one predictable branch. To add an elevator, implement the trait
//! [`Elevator`] and add an entry to a [`Registry`]. `docs/elevator-howto.md` shows how.
//!
//! # Submit, dispatch, complete, timer
//!
//! ```
//! use iosched::{Bio, CgroupId, Flags, IoPriority, Op, QueueConfig, Registry, RequestQueue, Time};
//!
//! let now = Time::ZERO;
//! let mut queue = RequestQueue::new(now, &QueueConfig::default(), Registry::linux().get("cfq")?);
//! let reader = queue.create_context(4711, IoPriority::default(), CgroupId::ROOT);
//! let bio = Bio { op: Op::Read, flags: Flags::empty(), sector: 2048, nr_sectors: 8, context: reader, cookie: 1 };
//! queue.submit(now, &bio);
//! let request = queue.dispatch(now).expect("the only request is given out");
//! assert_eq!(queue.request(request).sector(), 2048);
//! // ... the device works ...
//! let later = now + 5_000_000;
//! queue.complete(later, request, Ok(()), |bio, result| assert!(bio.cookie == 1 && result.is_ok()));
//! // CFQ waits for the reader's next request: nobody else has anything to send.
//! let in_vain = queue.next_timer().expect("it waits");
//! assert_eq!(in_vain, later + 8_000_000);
//! queue.timer(in_vain);
//! assert_eq!(queue.next_timer(), None);
//! # Ok::<(), iosched::UnknownElevator>(())
//! ```
//!
//! # Plugs
//!
//! ```
//! # use iosched::{Bio, CgroupId, Flags, IoPriority, Op, QueueConfig, Registry, RequestQueue, Submit, Time};
//! # let now = Time::ZERO;
//! # let mut queue = RequestQueue::new(now, &QueueConfig::default(), Registry::linux().get("noop")?);
//! # let writer = queue.create_context(1, IoPriority::default(), CgroupId::ROOT);
//! # let bio = |sector| Bio { op: Op::Write, flags: Flags::empty(), sector, nr_sectors: 8, context: writer, cookie: sector };
//! queue.plug(writer);
//! assert!(matches!(queue.submit(now, &bio(0)), Submit::Queued(_)));
//! assert_eq!(queue.submit(now, &bio(8)), Submit::Merged);
//! assert_eq!(queue.dispatch(now), None, "what is on a plug is not in the elevator");
//! while queue.unplug(now, writer) {}
//! let request = queue.dispatch(now).expect("one request of two bios");
//! assert_eq!(queue.bios(request).collect::<Vec<_>>(), [0, 8]);
//! # Ok::<(), iosched::UnknownElevator>(())
//! ```
//!
//! # Control
//!
//! ```
//! # use iosched::{Cgroup, QueueConfig, Registry, RequestQueue, Time};
//! # let now = Time::ZERO;
//! # let mut queue = RequestQueue::new(now, &QueueConfig::default(), Registry::linux().get("cfq")?);
//! queue.set_tunable(now, "slice_idle", "0")?;
//! queue.set_attribute(now, "nr_requests", "64")?;
//! assert_eq!((queue.tunable("slice_idle")?, queue.attribute("nr_requests")?.as_str()), (0, "64"));
//! let error = queue.set_tunable(now, "quantum", "0").unwrap_err();
//! assert_eq!(error.to_string(), "quantum: 0 is out of range; it must be from 1 to 4294967295 requests");
//!
//! let group = queue.create_cgroup(Cgroup { name: "backup".to_owned(), parent: None, weight: Some(100), leaf_weight: None })?;
//! queue.set_weights(group, Some(200), None)?;
//!
//! queue.record_decisions(true);
//! queue.switch(now, Registry::linux().get("bfq")?);
//! assert_eq!(queue.scheduler(), "bfq");
//! assert!(queue.take_decisions().any(|(_, decision)| decision == iosched::Decision::Switch { elevator: "bfq" }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The driver
//!
//! ```
//! # use iosched::{Bio, CgroupId, Driver, Flags, IoPriority, Op, QueueConfig, Registry, Rerun, RequestQueue, Step, Time};
//! # let now = Time::ZERO;
//! # let mut queue = RequestQueue::new(now, &QueueConfig::default(), Registry::linux().get("mq-deadline")?);
//! # let writer = queue.create_context(1, IoPriority::default(), CgroupId::ROOT);
//! # let bio = |sector| Bio { op: Op::Write, flags: Flags::empty(), sector, nr_sectors: 8, context: writer, cookie: sector };
//! let mut driver = Driver::new(queue, Rerun::LINUX);
//! let mut device = Vec::new();
//! driver.submit(now, &bio(800));
//! driver.submit(now, &bio(0));
//! while let Some(step) = driver.turn(now, device.len() < 1) {
//!     match step {
//!         Step::Start(request) => device.push(request),
//!         Step::Wake(_) => unreachable!("nobody waits for a request"),
//!     }
//! }
//! assert_eq!(driver.queue().request(device[0]).sector(), 0, "in the order of sectors, one at a time");
//! # Ok::<(), iosched::UnknownElevator>(())
//! ```
//!
//! [`Driver`] documents the order of calls. `examples/two_tenants.rs` is a complete host: an event
//! loop with a device in virtual time, and two tenants that find the queue full and are woken.
//!
//! The same calls give the same results: no code here reads a clock, iterates in hash order or
//! keeps global state. CFQ, deadline and noop take the same decisions as Linux 4.19, event for
//! event, in every recorded run.
//!
//! # Source files
//!
//! | file | content |
//! |---|---|
//! | `registry.rs` | the list of elevators: those of Linux, and those that a program adds |
//! | `queue/` | the request queues of both layers behind one interface: merging, plugs, flush, statistics, attributes, switching. `single/` allocates requests by limits; `multi/` allocates them by tags and calls the controllers. Each folder contains the path of a bio through its layer |
//! | `elevator.rs` | the trait of an elevator, and an entry of the registry |
//! | `controllers/` | mechanisms that decide before a bio becomes a request: wbt, io.max, io.latency, io.cost, and the trait for further controllers |
//! | `layer.rs` | the two layers, and the tasks that an elevator of blk-mq leaves to its queue |
//! | `env/` | the queue as its elevator sees it (`Env`), and the data that both use: the merge hash and the dispatch list |
//! | `noop.rs`, `deadline.rs`, `none.rs`, `mq_deadline/`, `kyber/`, `adios/`, `mclock/` | one elevator each |
//! | `anticipatory/`, `cfq/`, `bfq/` | one elevator or family each. Each file contains the code of one decision; the top of `mod.rs` lists the files. `data/` contains the data structures |
//! | `parts/` | code that elevators share: requests by sector and by age, the choice by head position, think times, seeks, the meaning of an ioprio, jiffies, tags |
//! | `request.rs` | requests and bios, and the arena that stores them; elevators hold ids |
//! | `context.rs` | processes, ioprio, cgroups |
//! | `rates.rs` | reservations and limits of cgroups |
//! | `issued.rs` | circumstances in which a bio was issued: its earlier ioprio, its position in a longer I/O |
//! | `driver/` | when to run the queue and in which order to handle events, without I/O. Its hosts are the simulator's engines, the served disk, the checker and the cost measurement. Its calls can be recorded; `crates/sim` replays recordings |
//! | `tunable.rs` | declarations of tunables and attributes |
//! | `setting.rs` | an elevator with its tunables and attributes, as users write it: for simulations, served disks, the kernel's disks and records |
//! | `decision/` | decisions and their reasons, as typed events; a file for each family with events that only that family has |
//! | `collections/` | intrusive containers over arenas: list, red-black tree |
//! | `bare.rs` | an elevator without its queue, for measurements; only with the feature `bare` |
//!
//! Imports have one direction. Driver, registry and queue are above the elevators; `elevator`,
//! `env`, `layer` and `decision` are below them; requests and collections are at the bottom.
//! `cargo xtask rules` rejects cycles of more than five files.
//!
//! The elevator determines the layer. Elevators of Linux up to 4.20 run in the single request
//! queue, which has limits for sync and async requests. Elevators of present Linux run in blk-mq,
//! which has tags. A switch between these two kinds of elevators at run time also changes the
//! layer.
//!
//! CFQ is a family. `Cfq<G>` is generic over its *generation*. The files `linux_4_19.rs`,
//! `linux_2_6_34.rs` and `linux_2_6_30.rs` contain the rules of one generation each, as constants
//! and functions of one trait. Rules that most generations share are the trait's defaults, in the
//! file of the decision. The compiler knows the generation, so a rule that a generation lacks costs
//! nothing. The CFQ of 2.6.16 shares few rules with these generations. Therefore it is a separate
//! elevator (`cfq/linux_2_6_16/`), which also uses the code in `parts/`.
//!
//! Requests are in one arena; elevators sort and link them by index. The links of a tree are stored
//! separately from the sorted items (`SortNode`, `ServiceNode`, `PositionNode`), so that a search
//! in a tree reads little memory. The red-black tree has exactly the shape that the textbook
//! algorithm produces, because CFQ's choice of a cooperator depends on this shape.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod adios;
mod anticipatory;
#[cfg(any(test, feature = "bare"))]
#[doc(hidden)]
pub mod bare;
mod bfq;
mod cfq;
mod collections;
mod context;
pub mod controllers;
mod deadline;
mod decision;
mod driver;
mod elevator;
mod env;
mod issued;
mod kernel;
mod kyber;
mod layer;
mod mclock;
mod mq_deadline;
mod none;
mod noop;
mod parts;
mod queue;
mod rates;
mod registry;
mod request;
mod setting;
mod time;
mod tunable;

pub use context::{
    Cgroup, CgroupId, Cgroups, Context, ContextId, Contexts, IoClass, IoPriority, IoPriorityError, LEVEL_DEFAULT,
    LEVEL_MAX, WEIGHT_MAX, WEIGHT_MIN, WeightError, WeightRange,
};
pub use decision::{
    ActiveQueue, AdiosEvent, AdiosList, Anticipation, AnticipatoryEvent, BfqEvent, BfqReason, BfqState, Cfq2616Event,
    ControlledEvent, Decision, DecisionLog, KyberEvent, LatencyKind, Log, MClockEvent, MqDeadlineChoice, Phase,
    QueueName, Workload,
};
pub use driver::{Driver, Due, Rerun, Step, recording};
pub use elevator::{Build, Elevator, PerGroup, PerProcess, Registered};
pub use env::Env;
pub use issued::{Issued, Part};
pub use kernel::{KernelVersion, UnknownKernel};
pub use layer::{Layer, Merging, MultiQueueRules, Tags, Waking};
pub use mclock::{Progress, Tracker};
pub use parts::tags::TagLayout;
pub use queue::{IoError, QueueConfig, RequestQueue, Stat, StatGroup, Submit};
pub use rates::{Rate, RateError, Rates, Work};
pub use registry::{Registry, RegistryError, UnknownElevator};
pub use request::{Bio, BioDone, BioError, Flags, MergeSide, Op, Request, RequestId, Requests, SECTOR_BYTES, Sector};
pub use setting::{Assignment, Owner, Setting, SettingError};
pub use time::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS, Time};
pub use tunable::{
    Declarations, Reads, Span, Spec, StoredAs, TextSpec, Tunable, TunableError, TunableSet, Tuned, Unit, Value,
};
