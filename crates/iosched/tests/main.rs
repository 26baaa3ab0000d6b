//! Tests of the queue, the elevators and the controllers, without hosts.

mod bfq;
mod cfq;
mod cfq_generations;
mod controllers;
mod foreign;
mod historic;
mod host;
mod io_cost;
mod kernels;
mod kernels_bfq;
mod kernels_io_max;
mod mclock;
mod misuse;
mod multi_queue;
mod queue;
mod sysfs;
