//! What stands beside the elevator on a bio's way to the device: who may go on at once, and who has to wait.
//!
//! An elevator orders requests. A controller decides before there is one: whether a bio passes, is held back for later,
//! or puts its process to sleep. It is told when the bio becomes a request, when the device takes that and is done with
//! it, and has timers of its own.
//!
//! | file | what it is |
//! |---|---|
//! | `site.rs` | what all controllers share: the moment, groups, timers, who goes on, what is recorded |
//! | `way.rs` | a bio on its way, with the marks that controllers leave on it |
//! | `wheel.rs` | timers as coarse as the kernel's |
//! | `event.rs` | what was decided, and why |
//!
//! The controllers are those of Linux 6.12.

mod event;
mod site;
mod way;
mod wheel;

pub use event::{ControllerEvent, EventLog};
pub use site::{Groups, Site};
pub use way::{Passage, Way, WayId, Ways};
pub use wheel::{TimerId, Wheel};
