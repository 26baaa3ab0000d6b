//! Random operations on the queue, and the checker itself; the library's pages, and its package.

mod corpus;
mod deadline;
mod found;
mod howto;
mod package;
mod properties;
mod runs;
