//! The discrete-event engine: tasks, request queue, device, virtual time.
//!
//! A [`Plan`] consists of a workload, a device profile, a scheduler setting and a seed. [`run`]
//! returns a [`RunResult`]. A run is single-threaded, reads no clock, and gives the same bytes
//! every time. The runs of a plan share the workload by reference, and can run in several threads.
//!
//! ```no_run
//! # fn example(workload: iosched_workload::Workload, profile: iosched_disk::Profile) -> Result<(), Box<dyn std::error::Error>> {
//! use iosched_sim::{Plan, Timeline, run};
//! let plan = Plan { seed: 7, ..Plan::new(&workload, &profile, "noop:nr_requests=512".parse()?) };
//! let mut timeline = Timeline::default();
//! let result = run(&plan, &mut timeline)?;
//! println!("{} I/Os, p99 {} ns", result.ios, result.latency.sync().quantile_ns(0.99));
//! # Ok(()) }
//! ```
//!
//! # Inside
//!
//! | file | content |
//! |---|---|
//! | `plan.rs` | the description of a run |
//! | `engine/` | the event loop (`drive`), one disk with its queue (`core`), and the sources of I/O: `tasks`, `open` and `closed` replay, `recorded`, `jobs`, `system` (programs on a machine) |
//! | `observer.rs` | observers of a run |
//! | `timeline.rs` | a bounded timeline of a run |
//! | `service_log.rs` | the times of every request |
//! | `scenario.rs` | runs of recorded scenarios |
#![forbid(unsafe_code)]

mod engine;
mod observer;
mod plan;
mod scenario;
mod service_log;
mod timeline;

pub use engine::{RecordedError, Replayed, check, replay_recorded, run};
pub use iosched_workload::Replay;
pub use iosched_workload::outcome::{
    DirectionResult, Histogram, IoBin, IoKind, IoTimeline, JobResult, Latencies, LatencyClasses, Note, QueueStat,
    QueueStatGroup, RunResult, SAMPLE_NS, Samples, SizeClass, TaskResult,
};
pub use observer::{Change, Completed, Decisions, Dispatched, Observer, Submitted, Taken};
pub use plan::{BlockLayer, Limit, Plan, SimError};
pub use scenario::{ScenarioError, run_scenario};
pub use service_log::{Service, ServiceLog, Wait};
pub use timeline::{Bin, HeadBin, QueueTotal, Span, SpanKind, TaskBins, Timeline};
