//! What elevators share: how requests are kept, how processes are judged, and how the next request is chosen.
//!
//! Times here are in ticks of the elevator's own clock, ns or jiffies: some of the originals counted in the one, some
//! in the other, and their arithmetic rounds in that unit.

pub(crate) mod head;
pub(crate) mod mean;
pub(crate) mod position_tree;
pub(crate) mod priority;
pub(crate) mod seek;
pub(crate) mod software_queue;
pub(crate) mod sorted;
pub(crate) mod tags;
pub(crate) mod think_time;
