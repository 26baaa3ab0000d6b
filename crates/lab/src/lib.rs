//! Experiments: what to run, what it gave, what that says.
//!
//! The lowest of three rooms. This one runs and judges; [`iosched-advise`](../iosched_advise) fits models and searches
//! for settings with it; [`iosched-report`](../iosched_report) draws what either found. They share records and results.
//!
//! | to | use |
//! |---|---|
//! | request a comparison in words, as the command does | [`request`] |
//! | plan runs in simulation, and make them | [`Experiment`] (workload x devices x settings x runs), [`execute`] |
//! | make the same runs on a real device | [`verify`](mod@verify) |
//! | keep and read what they gave | [`Record`], [`RecordWriter`], [`RecordReader`], [`Records`]: raw figures, JSON lines, never changed |
//! | know what that says of a device | [`Results`]: means, paired comparisons with the baseline, verdicts, doubts |
//! | know which setting to use | [`Decision`]: [`decide`](decide()) says it in sentences, from [`Evidence`] |
//! | say which figure counts, in words | [`goal`] |
//! | know which setting wins where | [`Overview`] |
//! | run experiments that others published | [`reproduce`] |
//! | hold models against figures that others measured | [`measured`] |
//! | hold a model against a recorded disk | [`validate`] |
//! | hand runs on to others | [`write_blktrace`], [`write_decisions`], [`fio_json`] |
//!
//! Everything that people are told is computed from records alone, so it can be told again at any time without running
//! anything. A simulated run is a function of its plan; records are the same bytes whatever the number of threads.
//!
//! The lab never fits a model, never searches for settings, and never decides how something looks.
#![forbid(unsafe_code)]

mod answer;
mod blktrace;
mod cgroup;
mod compare;
mod decide;
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
pub mod goal;
mod machine;
pub mod measured;
mod nearest;
mod number;
mod overview;
pub mod pool;
mod record;
pub mod reproduce;
pub mod request;
mod results;
pub use iosched_numbers::stat;
pub mod sure;
pub mod validate;
pub mod verify;
mod words;

pub use answer::{Answer, Group, NOTHING_WAITS_PERCENT};
pub use blktrace::write_blktrace;
pub use compare::{
    Bounds, Comparison, EQUAL_WITHIN_PERCENT, Judged, Pair, RUNS_FEW, RUNS_PUBLISHED, RUNS_WORTH, SIGNIFICANCE,
    Verdict, judge,
};
pub use decide::{Criterion, Decision, DecisionKind, Evidence, Starving, decide};
pub use decisions::{decision_json, write_decisions};
pub use doubt::{Doubt, SECONDS_PUBLISHED, StarvedTask, incomplete, starved_in_all, starved_tasks};
pub use error::LabError;
pub use execute::{Finished, Progress, counts, execute};
pub use experiment::{Alone, Experiment, command_record, workload_record};
pub use fairness::{ALONE_IOS_MIN, ALONE_TASKS_MAX, Fairness};
pub use figure::{Direction, Figure, Reported, TAIL, TaskFigure};
pub use file::{Line, RecordReader, RecordWriter, read_lines};
pub use fio_json::fio_json;
pub use machine::MachineProfile;
pub use number::{Decimals, grouped, significant};
pub use overview::{FigureOverview, Margin, Outcome, Overview, label_on};
pub use pool::Control;
pub use record::{
    AloneRecord, DeviceRecord, Header, JobRecord, MachineRecord, MeasuredRecord, MissingRecord, OnDevice,
    RECORDS_FORMAT, Record, Records, RunRecord, SettingRecord, TimelineRecord, ValueRecord, WorkloadKind,
    WorkloadRecord, equal_within_default, is_equal_within_default,
};
pub use request::{AttributeValue, did_you_mean, is_scheduler_name, nearest, quoted, settings_meant};
pub use results::{FigureResults, Results, SettingFigure, figures_of};
pub use words::{idle_in_words, labels, listed, marked, runs_in_words};
