//! Tests of reading, writing and transforming traces.

mod blktrace;
mod common;
mod corpus;
mod damage;
mod formats;
mod pass;
mod rates;
mod same_sectors;
mod stages;
mod tools;
mod tracepoints;
mod transform;
mod whole;
mod written;
