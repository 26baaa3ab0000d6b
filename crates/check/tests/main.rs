//! Random operations on the queue, and the checker itself.

mod corpus;
mod deadline;
mod found;
mod properties;
mod runs;
