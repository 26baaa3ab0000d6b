//! Experiments: planned runs, their records, and results computed from the records.
//!
//! This is the lowest of three crates. It makes runs and judges them.
//! [`iosched-advise`](../iosched_advise) uses it to fit models and to search for settings.
//! [`iosched-report`](../iosched_report) draws the results of both. All three share records and
//! results.
//!
//! | to | use |
//! |---|---|
//! | parse a comparison as the command line writes it | [`request`] |
//! | plan and make runs in simulation | [`Experiment`] (workload x devices x settings x runs), [`execute`] |
//! | make the same runs on a real device | [`verify`](mod@verify) |
//! | store and read the runs | [`Record`], [`RecordWriter`], [`RecordReader`], [`Records`]: raw metrics as JSON lines, never changed |
//! | compute results for a device | [`Results`]: means, paired comparisons with the baseline, verdicts, doubts |
//! | choose a setting | [`Decision`]: [`decide`](decide()) states it in sentences, from [`Evidence`] |
//! | parse the metric that counts | [`goal`] |
//! | see which setting wins on which device | [`Overview`] |
//! | repeat published experiments | [`reproduce`] |
//! | compare models with measurements of others | [`measured`] |
//! | compare a model with a recorded disk | [`validate`] |
//! | export runs to other tools | [`write_blktrace`], [`write_decisions`], [`fio_json`] |
//!
//! # Inside
//!
//! | file | content |
//! |---|---|
//! | `request/`, `experiment.rs`, `machine.rs` | a comparison as users write it, its plan, machines by name |
//! | `goal/`, `figure.rs` | goals and constraints; metrics, declared once |
//! | `execute.rs`, `pool.rs`, `verify/`, `foreign/` | runs in simulation, on several threads, on a real device, of other programs |
//! | `record.rs`, `file.rs` | records, and their files |
//! | `results.rs`, `compare.rs`, `sure.rs`, `fairness.rs` | results, verdicts, the rule for ending the runs, fairness |
//! | `doubt/`, `answer.rs`, `decide/`, `overview.rs` | doubts, the best settings, the decision in sentences, several devices |
//! | `decisions.rs`, `decisions/`, `blktrace.rs`, `fio_json.rs` | exports |
//! | `reproduce/`, `measured/`, `validate.rs` | published experiments, measurements of others, a model against a recorded disk |
//! | `number.rs`, `words.rs`, `nearest.rs`, `cgroup.rs`, `error.rs` | digits, words and suggestions of messages; messages about cgroups; errors |
//!
//! All answers are computed from records alone. They can be computed again at any time without a
//! run. The plan determines a simulated run completely. The records have the same bytes for any
//! number of threads.
//!
//! The lab never fits a model, never searches for settings, and never formats output for display.
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
    Bounds, Comparison, EQUAL_WITHIN_PERCENT, Judged, OUTCOMES_ALARM, Outcomes, Pair, RUNS_FEW, RUNS_PUBLISHED,
    RUNS_WORTH, SIGNIFICANCE, Verdict, judge,
};
pub use decide::{BrokenConstraint, Criterion, Decision, DecisionKind, Evidence, Starving, decide};
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
