//! The policy library: Linux' I/O elevators and the request queue they stand in, without clock, I/O, threads or
//! randomness.
//!
//! A host owns time and the device. It makes a [`RequestQueue`] with an elevator from a [`Registry`], an io context for
//! each process, and then calls, always telling the present moment:
//!
//! | family | calls |
//! |---|---|
//! | submit | [`RequestQueue::submit`], [`RequestQueue::plug`], [`RequestQueue::unplug`]: a [`Bio`] joins a request or becomes one |
//! | dispatch | [`RequestQueue::dispatch`]: at most one request out, or none |
//! | complete | [`RequestQueue::complete`]: the device is done with one |
//! | timer | [`RequestQueue::next_timer`], [`RequestQueue::timer`]: the one deadline the elevator asked for |
//! | control | tunables and attributes, [`RequestQueue::switch`], [`RequestQueue::set_ioprio`], [`RequestQueue::exit`], weights, [`RequestQueue::yield_to`] |
//!
//! When the queue is run, and who is heard first, is the same for every host: a [`Driver`] owns it, and tells the host
//! what to do next.
//!
//! What is decided, and why, can be read as [`Decision`] events: off at first, and free when off. An elevator of your
//! own is a type with the trait [`Elevator`] and an entry in a [`Registry`]; `docs/elevator-howto.md` writes one.
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
//! [`Driver`] lists the order of calls. `examples/two_tenants.rs` is a complete host: an event loop
//! with a device in virtual time, and two tenants that find the queue full and are woken.
//!
//! The same calls give the same answers: nothing here reads a clock, iterates in hash order or keeps global state. CFQ,
//! deadline and noop take the decisions that Linux 4.19 took, event for event, in every run recorded of it.
//!
//! # Inside
//!
//! | file | what it decides |
//! |---|---|
//! | `registry.rs` | which elevators there are: those of Linux, and those that a program adds |
//! | `queue/` | the request queues of both layers behind one face: merging, plugs, flush, statistics, attributes, switching; `single/` who may allocate by limits, `multi/` by tags and past which controllers, and each layer's way of a bio |
//! | `elevator.rs` | what an elevator is: the trait, and an entry of the registry |
//! | `controllers/` | what stands beside the elevator and decides before there is a request: wbt, io.max, io.latency, io.cost, and the trait for others |
//! | `layer.rs` | the two layers, and what an elevator of blk-mq leaves to its queue |
//! | `env/` | what the queue shows its elevator (`Env`), and what they share: the merge hash, the dispatch list |
//! | `noop.rs`, `deadline.rs`, `none.rs`, `mq_deadline/`, `kyber/`, `adios/` | one elevator each |
//! | `anticipatory/`, `cfq/`, `bfq/` | one elevator or family each; a file decides one thing, see the top of their `mod.rs`; `data/` is what they work on |
//! | `parts/` | what elevators share: requests by sector and by age, the better request by head position, think times, seeks, what an ioprio means, jiffies, tags |
//! | `request.rs` | requests and bios, and the one arena they live in; elevators hold ids |
//! | `context.rs` | who asks: processes, ioprio, cgroups |
//! | `issued.rs` | how a bio was issued: earlier than it comes, or as a part of a longer one |
//! | `driver/` | when the queue is run and who is heard first, sans-IO: the simulator's engines, the live disk, the checker and the measurement of costs are hosts of it; what it is told can be recorded, and `crates/sim` carries recordings out |
//! | `tunable.rs` | declarations of tunables and attributes |
//! | `setting.rs` | an elevator with what is set of it and of the queue, as users write it: for simulations, live disks, the kernel's disks and records alike |
//! | `decision/` | what was decided and why, as typed events; a file for what only one family decides |
//! | `collections/` | intrusive containers over arenas: list, red-black tree |
//! | `bare.rs` | an elevator without its queue, for measuring; only with the feature `bare` |
//!
//! Imports go one way: driver, registry and queue above the elevators, `elevator`, `env`, `layer` and `decision` below
//! them, requests and collections at the bottom. `cargo xtask rules` refuses circles of more than five files.
//!
//! A layer follows the elevator: the elevators of Linux up to 4.20 stand in the single request queue with its limits
//! for sync and async, today's in blk-mq with its tags. Switching from one to the other at run time changes both.
//!
//! CFQ is a family. `Cfq<G>` is generic over its *generation*: `linux_4_19.rs`, `linux_2_6_34.rs` and `linux_2_6_30.rs`
//! hold what each does in its own way, as constants and functions of one trait; what most share is the trait's default
//! and stands in the file of what it decides. All of it is known at compile time, so a rule that a generation lacks
//! costs nothing. The CFQ of 2.6.16 has hardly a rule in common with them and is an elevator of its own
//! (`cfq/linux_2_6_16/`) from the same parts.
//!
//! Requests are in one arena; elevators sort and link them by number. A tree's links stand apart from what it orders
//! (`SortNode`, `ServiceNode`, `CooperatorNode`), so that a descent touches little memory. The red-black tree is the
//! textbook's node for node, because CFQ's choice of a cooperator depends on its shape.
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
mod mq_deadline;
mod none;
mod noop;
mod parts;
mod queue;
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
    ControlledEvent, Decision, DecisionLog, KyberEvent, LatencyKind, Log, MqDeadlineChoice, QueueName, Workload,
};
pub use driver::{Driver, Due, Rerun, Step, recording};
pub use elevator::{Build, Elevator, PerGroup, PerProcess, Registered};
pub use env::Env;
pub use issued::{Issued, Part};
pub use kernel::{KernelVersion, UnknownKernel};
pub use layer::{Layer, Merging, MultiQueueRules, Tags, Waking};
pub use parts::tags::TagLayout;
pub use queue::{IoError, QueueConfig, RequestQueue, Stat, StatGroup, Submit};
pub use registry::{Registry, RegistryError, UnknownElevator};
pub use request::{Bio, BioDone, BioError, Flags, MergeSide, Op, Request, RequestId, Requests, SECTOR_BYTES, Sector};
pub use setting::{Assignment, Owner, Setting, SettingError};
pub use time::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS, Time};
pub use tunable::{
    Declarations, Reads, Span, Spec, StoredAs, TextSpec, Tunable, TunableError, TunableSet, Tuned, Unit, Value,
};
