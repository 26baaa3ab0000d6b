//! Formats, read and written, and what is done with traces.

mod blktrace;
mod common;
mod corpus;
mod damage;
mod formats;
mod pass;
mod rates;
mod stages;
mod tools;
mod tracepoints;
mod transform;
mod whole;
mod written;
