//! Code that elevators share: containers of requests, statistics of
//! processes, and the choice of the next request.
//!
//! Times here are in ticks of the elevator's clock, ns or jiffies. Linux' schedulers use one or the
//! other, and their arithmetic rounds in that unit.

pub(crate) mod head;
pub(crate) mod mean;
pub(crate) mod position_tree;
pub(crate) mod priority;
pub(crate) mod seek;
pub(crate) mod software_queue;
pub(crate) mod sorted;
pub(crate) mod tags;
pub(crate) mod think_time;
