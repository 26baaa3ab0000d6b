//! Whole runs of the simulator.

mod buffered;
mod coarse_times;
mod engine;
mod job_examples;
mod jobs;
mod limits;
mod literature;
mod nothing_queues;
mod own_trace;
mod recorded_driver;
mod rests;
mod several;
mod streams;
mod tpcc;
