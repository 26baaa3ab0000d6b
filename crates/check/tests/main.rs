//! Tests with random operations on the queue. Other tests check the checker, the library's pages
//! and its package.

mod corpus;
mod deadline;
mod found;
mod howto;
mod package;
mod properties;
mod runs;
