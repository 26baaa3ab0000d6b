//! The report card of a scheduler, in comparison with the schedulers of Linux.
//!
//! [`judge`] takes a registry and the names of the schedulers to judge. A [`ReportCard`] has five
//! parts:
//!
//! | part | shows | module |
//! |---|---|---|
//! | comparisons | the metric that matters in 12 workloads on 6 modelled devices, beside the schedulers of Linux | [`comparisons`] |
//! | shares | the share of the disk that one side gets where two sides compete | [`shares`] |
//! | longest waits | the longest wait that a search among workloads finds, and whether it grows with the length of the run | [`waits`] |
//! | rules | random operations on the request queue, and whether any rule was broken | [`rules`] |
//! | cost | instructions per request | [`cost`] |
//!
//! All parts except the cost read no clock, and depend only on the request and on this version of
//! iosched. The cost needs valgrind, which counts the instructions of a program
//! ([`cost::Counter`]).
//!
//! [`program`] is the complete program for a scheduler of the user:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     let registry = iosched::Registry::linux(); // add your scheduler here
//!     iosched_judge::program(&registry, &["bfq"])
//! }
//! ```
#![forbid(unsafe_code)]

mod card;
pub mod comparisons;
pub mod cost;
mod judge;
pub mod load;
mod program;
mod request;
pub mod rules;
pub mod shares;
pub mod waits;
mod workloads;

pub use card::{Judgement, ReportCard};
pub use judge::{Part, judge};
pub use program::program;
pub use request::{JudgeError, JudgeRequest};
pub use workloads::{DEVICES, JudgedWorkload, WORKLOADS};
