//! Output of the command: results, messages, errors with exit codes, progress and files.
//!
//! # Contents
//!
//! | file | content |
//! |---|---|
//! | `show/` | results as text (tables, verdicts, closing sentences), JSON, CSV and Markdown |
//! | `output/` | files that appear complete or not at all, links, devices and pipes, and messages during long work |
//! | `advice_directory.rs` | the directory of `iosched advise --output` |
//! | `ending.rs` | the orderly end of a command that serves a disk |
//! | `error.rs` | errors of the command line, of files and of standard output, with their exit codes |
//! | `estimate.rs` | the expected time of a comparison, and a warning if it is long |
//! | `fail.rs` | error messages, and the exit code of each error |
//! | `progress.rs` | progress of long work, and records that are written during it |
//! | `signals.rs` | signals that end the command |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod advice_directory;
pub mod ending;
mod error;
pub mod estimate;
pub mod fail;
pub mod output;
pub mod progress;
pub mod show;
pub mod signals;
