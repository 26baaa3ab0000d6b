//! What stands beside the elevator on a bio's way to the device: who may go on at once, and who has to wait.
//!
//! An elevator orders requests. A controller decides before there is one: whether a bio passes, is held back for later,
//! or puts its process to sleep. It is told when the bio becomes a request, when the device takes that and is done with
//! it, and has timers of its own.
//!
//! | file | what it is |
//! |---|---|
//! | `controller.rs` | what a controller is, and those of one queue in their order |
//! | `of_linux.rs` | the controllers of Linux as such |
//! | `about.rs` | what each is for and what is set of it, as users are told |
//! | `named.rs` | files of cgroups by names, as users write them |
//! | `wbt/` | buffered writes beside reads |
//! | `io_max/` | bytes and bios a second of a group |
//! | `io_latency/` | groups beside one whose latencies miss their target |
//! | `io_cost/` | shares the device by weight; the cost of each bio counts, not its size alone |
//! | `io_prio.rs` | the ioprio of what a group asks for |
//! | `site.rs` | what all controllers share: the moment, groups, timers, who goes on, what is recorded |
//! | `way.rs` | a bio on its way, with the marks that controllers leave on it |
//! | `wheel.rs` | timers as coarse as the kernel's |
//! | `waits.rs` | places that are taken by bios under way, and who waits for one |
//! | `event.rs` | what was decided, and why; of wbt and io.cost in `decision/` |
//!
//! The controllers are those of Linux 6.12.

mod about;
mod bio_state;
mod controller;
mod event;
mod io_cost;
mod io_latency;
mod io_max;
mod io_prio;
mod named;
mod of_linux;
mod site;
mod waits;
mod wbt;
mod wheel;
mod write_error;

pub use crate::decision::{Admission, IoCostEvent, Step, Verdict, WbtEvent, WeightReason};
pub use about::{About, File, FileOf, policies};
pub use bio_state::{BioId, BioState, BioStates, Direction, Passage, WbtClass};
pub use controller::{Controller, ControllerWaits, Controllers, Points, Served, Target};
pub use event::{ControllerEvent, EventLog, IoMaxEvent, SliceChange};
pub use io_cost::{BioCosts, IoCost, IoCostFile};
pub use io_latency::{IoLatency, IoLatencyState};
pub use io_max::IoMax;
pub(crate) use named::BFQ_WEIGHT;
pub use named::{NamedWrite, files, is_file};
pub use of_linux::ControlledDevice;
pub use site::{Groups, Site};
pub use wbt::Wbt;
pub use wheel::{TimerId, Wheel};
pub use write_error::{CgroupFileError, WriteError, what_it_takes};
