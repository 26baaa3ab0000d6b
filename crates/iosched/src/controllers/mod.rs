//! Controllers: they decide, before a bio becomes a request, whether it continues immediately or
//! must wait.
//!
//! An elevator orders requests. A controller acts earlier: it lets a bio pass, holds it, or makes
//! its process sleep. The controller also learns when the bio becomes a request, when the device
//! takes the request, and when the request is complete. A controller can have timers.
//!
//! | file | content |
//! |---|---|
//! | `controller.rs` | the trait of a controller, and the list of a queue's controllers |
//! | `of_linux.rs` | the controllers of Linux as implementations of the trait |
//! | `about.rs` | descriptions of the controllers, for users |
//! | `named.rs` | files of cgroups by name, as users write them |
//! | `wbt/` | limits buffered writes while there are reads |
//! | `io_max/` | limits bytes and bios per second of a group |
//! | `io_latency/` | limits the siblings of a group that misses its latency target |
//! | `io_cost/` | shares the device by weight; counts the cost of each bio, not only its size |
//! | `io_prio.rs` | sets the ioprio of a group's I/O |
//! | `site.rs` | data that all controllers share: the present time, groups, timers, released bios, events |
//! | `bio_state.rs` | the state of a bio in the controllers |
//! | `wheel.rs` | timers with the resolution of the kernel's timer wheel |
//! | `waits.rs` | places for bios in flight, and the bios that wait for a place |
//! | `event.rs` | decisions with their reasons; those of wbt and io.cost are in `decision/` |
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
