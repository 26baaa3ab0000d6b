//! The lab: what to run, what it gave, what that says.
//!
//! An [`Experiment`] (workload x devices x settings x runs) is executed by [`execute`] and gives [`Record`]s: raw
//! figures, JSON lines, never changed. [`Results::of`] computes everything that is told to people of a device from records
//! alone: means and deviations, paired comparisons against the baseline, verdicts, doubts, and the answer;
//! [`Overview::of`] computes which setting wins where. So a report can be
//! made again at any time without running anything.
//!
//! Runs are simulations: a function of their plan. Records are the same bytes whatever the number of threads.
#![forbid(unsafe_code)]

pub mod advise;
mod answer;
mod blktrace;
pub mod calibrate;
mod compare;
mod decisions;
mod doubt;
mod error;
mod execute;
mod experiment;
mod fairness;
mod figure;
mod file;
mod fio_json;
pub mod foreign;
mod machine;
mod number;
mod overview;
mod pool;
mod record;
pub mod report;
pub mod reproduce;
mod results;
pub mod stat;
pub mod sure;
pub mod tune;
pub mod validate;
pub mod verify;

pub use answer::{Answer, Group, NOTHING_WAITS_PERCENT, sure_sentence};
pub use blktrace::write_blktrace;
pub use compare::{Bounds, Comparison, EQUAL_WITHIN_PERCENT, SIGNIFICANCE, Verdict, compare};
pub use decisions::write_decisions;
pub use doubt::{Doubt, RUNS_PUBLISHED, SECONDS_PUBLISHED};
pub use error::LabError;
pub use execute::{Finished, Progress, execute};
pub use experiment::{Alone, Experiment, command_record, workload_record};
pub use fairness::{ALONE_IOS_MIN, ALONE_TASKS_MAX, Fairness};
pub use figure::{Direction, Figure, Reported, TaskFigure};
pub use file::{RecordReader, RecordWriter};
pub use fio_json::fio_json;
pub use machine::MachineProfile;
pub use number::{Decimals, grouped, significant};
pub use overview::{FigureOverview, Margin, Outcome, Overview, labels};
pub use pool::Control;
pub use record::{
    AloneRecord, DeviceRecord, Header, JobRecord, MachineRecord, MeasuredRecord, MissingRecord, OnDevice,
    RECORDS_FORMAT, Record, Records, RunRecord, SettingRecord, TimelineRecord, ValueRecord, WorkloadKind,
    WorkloadRecord,
};
pub use results::{FigureResults, Results, SettingFigure, figures_of, runs_in_words};
