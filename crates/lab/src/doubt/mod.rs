//! What makes a figure doubtful, and what can be done about it.

mod find;
mod noise;

use std::fmt;

use iosched_disk::Fit;
use iosched_kernel::checks::Finding;
use iosched_kernel::knobs::Inert;
use iosched_sim::Note;
use serde::Serialize;

use crate::compare::RUNS_PUBLISHED;
use crate::fairness::ALONE_IOS_MIN;
use crate::figure::Figure;
use crate::number::significant;
use crate::record::{MissingRecord, WorkloadKind};
use crate::words::marked_list;

pub(crate) use find::Finder;
pub use find::{StarvedTask, starved_in_all, starved_tasks};

/// Length of a run below which the published method does not consider it, s.
pub const SECONDS_PUBLISHED: f64 = 60.0;

/// A warning beside the figures. `Display` says it in a sentence that names the remedy. Settings are told by label.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "doubt", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Doubt {
    /// Not all that was planned was run.
    Incomplete {
        /// Complete rounds.
        rounds: u32,
        /// Rounds planned.
        planned: u32,
        /// Runs alone that are missing.
        alone_missing: u64,
    },
    /// Fewer runs than the published method takes.
    FewRuns {
        /// Complete rounds.
        rounds: u32,
    },
    /// Runs shorter than the published method considers.
    Short {
        /// The shortest, s.
        seconds: f64,
        /// What kind of workload is to be longer.
        kind: WorkloadKind,
        /// Whether it ends at a given time on a real device.
        timed: bool,
    },
    /// Settings with a time limit did not run for the same time.
    UnlikeTimes {
        /// Label of the setting that ran for the shortest time.
        shortest: String,
        /// Label of the setting that ran for the longest time.
        longest: String,
        /// How long they ran, s.
        seconds: [f64; 2],
        /// The limit, s.
        limit_s: f64,
    },
    /// All latencies of a kind rest on a handful of I/Os: closing sentences leave them out.
    FewIos {
        /// Whether of sync I/Os; else of async ones.
        sync: bool,
        /// I/Os of a run.
        ios: u64,
    },
    /// A quantile from too few I/Os.
    ThinTail {
        /// Which.
        #[serde(rename = "metric")]
        figure: Figure,
        /// Its name for people.
        #[serde(skip)]
        label: String,
        /// I/Os of a run.
        ios: u64,
        /// I/Os of a run that lie above the quantile.
        above: u64,
    },
    /// Not one request reached the device: a page cache kept everything.
    NothingReached {
        /// Labels of the settings; empty for all.
        settings: Vec<String>,
        /// How the data reach the device.
        remedy: &'static str,
    },
    /// The device waits for the workload most of the time.
    Idle {
        /// Labels of the settings.
        settings: Vec<String>,
        /// The highest utilisation, per cent.
        utilisation_percent: f64,
        /// How many times faster than recorded a trace would be for the device to have work most of the time.
        speed: Option<f64>,
    },
    /// The device cannot keep up with the recording.
    Overload {
        /// Labels of the settings.
        settings: Vec<String>,
        /// Time over which I/Os arrived, s.
        arrivals_s: f64,
        /// Longest time to finish, s.
        finish_s: f64,
    },
    /// All runs of settings are the same to the last figure.
    NoVariance {
        /// Labels of the settings.
        settings: Vec<String>,
        /// How many runs.
        runs: u32,
    },
    /// A setting gives the same as another in every figure of every run.
    ChangedNothing {
        /// Label of the setting.
        setting: String,
        /// Label of the other.
        same_as: String,
    },
    /// Fairness has no meaning, or could not be found.
    NoFairness {
        /// Tasks that have enough I/Os to count.
        tasks: u64,
    },
    /// Not all tasks count for fairness.
    FairnessPartial {
        /// Tasks that count.
        counted: u64,
        /// Tasks that do not.
        excluded: u64,
        /// Their share of the I/Os, per cent.
        excluded_percent: f64,
    },
    /// What was found on a real device or its machine.
    Found {
        /// What.
        finding: Finding,
    },
    /// A knob that does nothing.
    Inert {
        /// Labels of the settings; empty for all.
        settings: Vec<String>,
        /// Which, and why.
        knob: Inert,
    },
    /// Figures rose or fell while the runs were made, whatever the setting.
    Drift {
        /// Which.
        #[serde(rename = "metric")]
        figure: Figure,
        /// Its name for people.
        #[serde(skip)]
        label: String,
        /// From the first run to the last, per cent of the mean.
        percent: f64,
    },
    /// A figure takes one of two values, rarely one between them.
    TwoGroups {
        /// Label of the setting.
        setting: String,
        /// Which.
        #[serde(rename = "metric")]
        figure: Figure,
        /// Its name for people.
        #[serde(skip)]
        label: String,
        /// Means of the lower and the higher ones.
        means: [f64; 2],
        /// How many runs are in each.
        runs: [u64; 2],
    },
    /// The model was fitted to a device, and this is how near it comes.
    ModelError {
        /// The device's name.
        name: String,
        /// How near.
        fit: Fit,
    },
    /// A verdict that comes from a few odd runs.
    OddRuns {
        /// Label of the setting.
        setting: String,
        /// Which.
        #[serde(rename = "metric")]
        figure: Figure,
        /// Its name for people.
        #[serde(skip)]
        label: String,
    },
    /// A task that always had an I/O to do got hardly any done.
    Starved {
        /// Labels of the settings; empty for all.
        settings: Vec<String>,
        /// The task.
        task: String,
        /// Its I/Os, per cent of those of the one that got most.
        percent: f64,
    },
    /// What the simulator says of a run.
    Simulated {
        /// Labels of the settings it is said of; empty for all.
        settings: Vec<String>,
        /// What.
        note: Note,
    },
    /// The trace is not the whole recording, or may not be: what is concluded holds for a part.
    TraceIncomplete {
        /// What is missing, what is certain first.
        missing: Vec<MissingRecord>,
    },
    /// The trace was recorded on several devices, and all of it goes to one.
    SeveralDevices {
        /// How many.
        devices: u64,
    },
    /// The trace does not tell the priorities (ionice) of processes, and settings go by them.
    PrioritiesUnknown {
        /// Labels of the settings; empty for all.
        settings: Vec<String>,
        /// Requests whose priority is not known.
        unknown: u64,
        /// Requests of the trace.
        requests: u64,
    },
    /// The trace has no times, or values that no device can have.
    WorkloadOdd {
        /// What is odd, and what to do.
        problem: String,
    },
    /// The trace leaves something open that was assumed.
    Assumed {
        /// What was assumed.
        assumed: String,
    },
    /// The workload's file was damaged.
    WorkloadDamaged {
        /// The first warning.
        first: String,
        /// How many there are.
        total: u64,
    },
    /// The file of records was damaged.
    RecordsDamaged {
        /// What is wrong.
        problem: String,
    },
}

impl Doubt {
    /// How much of the answer it spoils: doubts of a lower rank are told first.
    #[must_use]
    pub fn rank(&self) -> u8 {
        match self {
            // It is the answer to another question.
            Self::RecordsDamaged { .. }
            | Self::TraceIncomplete { .. }
            | Self::WorkloadDamaged { .. }
            | Self::WorkloadOdd { .. }
            | Self::PrioritiesUnknown { .. } => 0,
            // Whatever is concluded is of the model or of an idle device.
            Self::ModelError { fit, .. } if !fit.fits => 1,
            Self::UnlikeTimes { .. }
            | Self::SeveralDevices { .. }
            | Self::NothingReached { .. }
            | Self::Idle { .. }
            | Self::Overload { .. } => 2,
            Self::Incomplete { .. } | Self::FewRuns { rounds: 1 } => 3,
            // What the device or its machine does to figures.
            Self::Found { .. } | Self::Drift { .. } | Self::TwoGroups { .. } | Self::OddRuns { .. } => 4,
            Self::Starved { .. } | Self::Inert { .. } | Self::Assumed { .. } => 5,
            Self::ModelError { .. } | Self::ChangedNothing { .. } | Self::NoVariance { .. } => 6,
            // Single figures; what nothing is concluded from is last.
            Self::ThinTail { figure, .. } if !figure.is_headline() => 10,
            Self::FewIos { .. } | Self::ThinTail { .. } => 7,
            Self::Short { .. } | Self::FewRuns { .. } | Self::NoFairness { .. } | Self::FairnessPartial { .. } => 8,
            Self::Simulated { .. } => 9,
        }
    }
}

/// What is missing of a recording, in a sentence.
#[must_use]
pub fn incomplete(missing: &[MissingRecord]) -> String {
    let certain = missing.iter().any(|own| own.certain);
    let whole = if certain { "the recording is incomplete" } else { "the recording may be incomplete" };
    let problems: Vec<&str> = missing.iter().map(|own| own.problem.as_str()).collect();
    let mut remedies: Vec<&str> = missing.iter().map(|own| own.remedy.as_str()).collect();
    remedies.dedup();
    format!("{whole}: {}; {}", problems.join("; and "), remedies.join(", and "))
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete { rounds, planned, alone_missing } => {
                write!(f, "not all runs finished: only the {rounds} complete rounds of {planned} count")?;
                if *alone_missing > 0 {
                    write!(f, "; {alone_missing} runs of processes alone are missing, so fairness is unknown")?;
                }
                f.write_str("; let it run to its end")
            }
            Self::FewRuns { rounds: 1 } => {
                f.write_str("one run of each setting shows no spread, so there are no verdicts; give --runs 10")
            }
            Self::FewRuns { rounds } => write!(
                f,
                "there are {rounds} runs of each setting; the published method has {RUNS_PUBLISHED}. More runs make \
                 narrower intervals: --runs {RUNS_PUBLISHED}"
            ),
            Self::Short { seconds, timed: true, .. } => write!(
                f,
                "runs last {} s; the published method does not consider tests below {SECONDS_PUBLISHED:.0} s: --run-for {SECONDS_PUBLISHED:.0}",
                significant(*seconds, 2)
            ),
            Self::Short { seconds, kind, .. } => write!(
                f,
                "runs last {} s; the published method does not consider tests below {SECONDS_PUBLISHED:.0} s: {}",
                significant(*seconds, 2),
                match kind {
                    WorkloadKind::Trace => "record the server for longer",
                    WorkloadKind::Tasks => "raise the tasks' totals or end_ns",
                    WorkloadKind::Jobs => "raise the jobs' size, loops or runtime",
                    WorkloadKind::Application | WorkloadKind::Command => "give the program more work",
                }
            ),
            Self::UnlikeTimes { shortest, longest, seconds: [least, most], limit_s } => {
                write!(
                    f,
                    "the settings ran for different times: `{shortest}` for {} s and `{longest}` for {} s, with a limit \
                     of {} s; ",
                    significant(*least, 3),
                    significant(*most, 3),
                    significant(*limit_s, 3)
                )?;
                f.write_str(if *least < *limit_s {
                    "a setting that finished its work early ran on another part of the workload; shorten --run-for, or give the workload more to do"
                } else {
                    "requests that were in flight at the limit completed late; lengthen --run-for, so that they weigh less"
                })
            }
            Self::FewIos { sync, ios } => write!(
                f,
                "{} latencies are from only {ios} I/Os per run, so the conclusions leave them out; use a longer \
                 workload",
                if *sync { "sync" } else { "async" }
            ),
            Self::ThinTail { label, ios, above: 0, .. } => write!(
                f,
                "{}: a run has only {ios} I/Os, so this percentile is the longest latency; use a \
                 longer workload, or a lower percentile",
                label
            ),
            Self::ThinTail { label, ios, above, .. } => write!(
                f,
                "{}: only {above} of the {ios} I/Os of a run exceed it, so it depends on a few \
                 I/Os; use a longer workload, or a lower percentile",
                label
            ),
            Self::NothingReached { settings, remedy } => {
                if !settings.is_empty() {
                    write!(f, "{}: ", marked_list(settings))?;
                }
                write!(
                    f,
                    "nothing reached the disk: all data stayed in the page cache, so the program measured memory; {remedy}"
                )
            }
            Self::Idle { settings, utilisation_percent, speed } => {
                write!(
                    f,
                    "{}: the device is busy for at most {} % of the time, so this says little about a busier device; ",
                    marked_list(settings),
                    significant(*utilisation_percent, 2)
                )?;
                match speed {
                    Some(speed) => write!(f, "try more load: --replay open --speed {speed}"),
                    None => f.write_str("use a busier workload"),
                }
            }
            Self::Overload { settings, arrivals_s, finish_s } => write!(
                f,
                "{}: the device cannot keep up: the I/Os of {} s took up to {} s, so latencies grow with the length \
                 of the recording; use --replay closed, a lower --speed or a faster device",
                marked_list(settings),
                significant(*arrivals_s, 3),
                significant(*finish_s, 3)
            ),
            Self::PrioritiesUnknown { settings, unknown, requests } => {
                let who = if settings.is_empty() { "every setting".to_owned() } else { marked_list(settings) };
                let of = if unknown == requests {
                    String::new()
                } else {
                    format!(" of {unknown} of its {requests} requests")
                };
                let serve = if settings.len() > 1 { "serve" } else { "serves" };
                write!(
                    f,
                    "the trace does not contain priorities (ionice){of}, but {who} {serve} processes by priority; \
                     record with iosched record, or give priorities: --ionice backup=idle, or --ionice '*=none' if \
                     no process had one"
                )
            }
            Self::NoVariance { settings, runs } => write!(
                f,
                "{}: all {runs} runs are the same with every seed, so a deviation of 0 does not \
                 show how a slightly different workload behaves; use --runs 1, or vary the \
                 workload",
                marked_list(settings)
            ),
            Self::ChangedNothing { setting, same_as } => {
                write!(f, "`{setting}` gives the same as `{same_as}` in every metric of every run, so leave one out")
            }
            Self::NoFairness { tasks } => {
                let there = if *tasks == 1 { "there is 1" } else { &format!("there are {tasks}") };
                write!(
                    f,
                    "fairness needs at least two processes with {ALONE_IOS_MIN} I/Os or more: {there}; use a \
                     workload with several busy processes"
                )
            }
            Self::FairnessPartial { counted, excluded, excluded_percent } => write!(
                f,
                "fairness covers only the {counted} busiest processes; the other {excluded}, with {} % of the I/Os, \
                 have fewer than {ALONE_IOS_MIN} I/Os in a run or are not among the first {}; use a longer workload \
                 to cover more",
                significant(*excluded_percent, 2),
                crate::fairness::ALONE_TASKS_MAX
            ),
            Self::Found { finding } => match finding.remedy() {
                Some(remedy) => write!(f, "{finding}; {remedy}"),
                None => write!(f, "{finding}"),
            },
            Self::Inert { settings, knob } if settings.is_empty() => write!(f, "{knob}"),
            Self::Inert { settings, knob } => write!(f, "{}: {knob}", marked_list(settings)),
            Self::Drift { label, percent, .. } => write!(
                f,
                "{} {} by {} % from the first run to the last, under every setting, so something else changed. The \
                 settings took turns, so the comparison is still fair, but look for other load, heat, or a disk \
                 that fills up",
                label,
                if *percent > 0.0 { "rose" } else { "fell" },
                significant(percent.abs(), 2)
            ),
            Self::TwoGroups { setting, figure, label, means, runs } => write!(
                f,
                "`{setting}`: {} is about {} {} in {} runs and about {} {} in {}, and rarely between: the mean mixes \
                 two kinds of runs; find out how these runs differ",
                label,
                significant(means[0], 3),
                figure.unit(),
                runs[0],
                significant(means[1], 3),
                figure.unit(),
                runs[1]
            ),
            Self::ModelError { name, fit: Fit { validated: Some(own), .. } } => write!(
                f,
                "the model of {name} was validated on the device: it predicted {} % of the \
                 metrics well. In nine cases of ten, differences between schedulers are wrong by \
                 at most {} % in rates and {} % in the slowest I/Os. Smaller differences do not \
                 count; compare on the device itself: --on",
                significant(own.trust_percent, 2),
                significant(own.rate_difference_error_percent, 2),
                significant(own.tail_difference_error_percent, 2)
            ),
            Self::ModelError { name, fit } if fit.rates_only => write!(
                f,
                "the model of {name} is made only from maximum rates, and may be wrong by {} %. \
                 Its latencies were not measured, so the slowest I/Os may take twice or half as \
                 long. Smaller differences do not count; calibrate the device, or compare on it: \
                 --on",
                significant(fit.rate_error_percent, 2)
            ),
            Self::ModelError { name, fit } => write!(
                f,
                "the model of {name} {} the device. In four cases of five, rates are wrong by at \
                 most {} % and the slowest I/Os by at most {} %. Smaller differences do not \
                 count; calibrate it again, or compare on the device itself: --on",
                if fit.fits { "fits, but is not" } else { "does not fit" },
                significant(fit.rate_error_percent, 2),
                significant(fit.tail_error_percent, 2)
            ),
            Self::OddRuns { setting, label, .. } => write!(
                f,
                "{setting}: only a few unusual runs make {} differ; a test that ignores single runs finds no \
                 difference. Make more --runs, and look at the unusual ones",
                label
            ),
            Self::Starved { settings, task, percent } => write!(
                f,
                "{}{task} starves: it always has I/O to do, but gets at most {} % of the I/Os and bytes of the busiest task",
                if settings.is_empty() { String::new() } else { format!("{}: ", marked_list(settings)) },
                significant(*percent, 2)
            ),
            Self::Simulated { settings, note } if settings.is_empty() => write!(f, "{note}"),
            Self::Simulated { settings, note } => write!(f, "{}: {note}", marked_list(settings)),
            Self::TraceIncomplete { missing } => f.write_str(&incomplete(missing)),
            Self::SeveralDevices { devices } => write!(
                f,
                "the trace has {devices} devices, but iosched sends all requests to one device, \
                 at their recorded sectors; select one device with iosched trace filter --device"
            ),
            Self::WorkloadDamaged { first, total: 1 } => write!(f, "{first}; record it again if that matters"),
            Self::WorkloadDamaged { first, total } => {
                write!(f, "{first}; and {} more; record it again if that matters", total - 1)
            }
            Self::RecordsDamaged { problem } | Self::WorkloadOdd { problem } | Self::Assumed { assumed: problem } => {
                f.write_str(problem)
            }
        }
    }
}
