//! Doubts about metrics, with remedies.

mod find;
mod noise;
mod starved;

use std::fmt;

use iosched_disk::Fit;
use iosched_kernel::checks::Finding;
use iosched_kernel::knobs::Inert;
use iosched_sim::Note;
use serde::Serialize;

use crate::compare::{Outcomes, RUNS_PUBLISHED};
use crate::fairness::ALONE_IOS_MIN;
use crate::figure::Figure;
use crate::number::significant;
use crate::record::{MissingRecord, WorkloadKind};
use crate::words::{marked_list, some_of};

pub(crate) use find::Finder;
pub use starved::{StarvedTask, starved_in_all, starved_tasks};

/// Length of the shortest run in the published method, s.
pub const SECONDS_PUBLISHED: f64 = 60.0;

/// Largest number of tasks that the text of a doubt names.
const NAMED_MAX: usize = 4;

/// Warning about the results. `Display` prints a sentence with the remedy. Settings are identified
/// by their labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "doubt", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Doubt {
    /// Not all planned runs were made.
    Incomplete {
        /// Number of complete rounds.
        rounds: u32,
        /// Number of planned rounds.
        planned: u32,
        /// Number of missing runs of tasks alone.
        alone_missing: u64,
    },
    /// Tasks did no I/O in any simulated run.
    NoIo {
        /// Names of the tasks.
        tasks: Vec<String>,
        /// Length of the longest run, s.
        seconds: f64,
    },
    /// There are fewer runs than in the published method.
    FewRuns {
        /// Number of complete rounds.
        rounds: u32,
    },
    /// Runs are shorter than the shortest runs of the published method.
    Short {
        /// Length of the shortest run, s.
        seconds: f64,
        /// Kind of the workload, which determines the remedy.
        kind: WorkloadKind,
        /// Whether runs have a time limit.
        timed: bool,
    },
    /// Settings with a time limit did not run for the same time.
    UnlikeTimes {
        /// Label of the setting that ran for the shortest time.
        shortest: String,
        /// Label of the setting that ran for the longest time.
        longest: String,
        /// Times of these two settings, s.
        seconds: [f64; 2],
        /// Time limit without the warm-up, s.
        limit_s: f64,
    },
    /// Too few I/Os for the latencies of sync or of async I/Os. The sentences about settings leave
    /// these latencies out.
    FewIos {
        /// Whether the I/Os are sync. If false, they are async.
        sync: bool,
        /// Smallest number of these I/Os in any run.
        ios: u64,
    },
    /// There are too few I/Os for a quantile.
    ThinTail {
        /// The metric.
        #[serde(rename = "metric")]
        figure: Figure,
        /// Name of the metric for display.
        #[serde(skip)]
        label: String,
        /// Smallest number of I/Os in any run.
        ios: u64,
        /// Number of I/Os above the quantile in that run.
        above: u64,
    },
    /// No request reached the device, because the page cache kept all data.
    NothingReached {
        /// Labels of the settings; empty for all settings.
        settings: Vec<String>,
        /// Remedy, which makes the data reach the device.
        remedy: &'static str,
    },
    /// The device is idle most of the time.
    Idle {
        /// Labels of the settings.
        settings: Vec<String>,
        /// Highest utilisation, per cent.
        utilisation_percent: f64,
        /// Replay speed at which the device would have work most of the time, as a multiple of the
        /// recorded speed. `None` if the workload is not a trace.
        speed: Option<f64>,
    },
    /// The device cannot keep up with the recorded arrivals.
    Overload {
        /// Labels of the settings.
        settings: Vec<String>,
        /// Time from the first to the last arrival of an I/O, s.
        arrivals_s: f64,
        /// Longest time to finish, s.
        finish_s: f64,
    },
    /// All runs of a setting have exactly the same values.
    NoVariance {
        /// Labels of the settings.
        settings: Vec<String>,
        /// Number of runs.
        runs: u32,
    },
    /// Settings have the same values in every metric of every run.
    ChangedNothing {
        /// Labels of the settings, two or more.
        settings: Vec<String>,
    },
    /// Fewer than two tasks have enough I/Os for the metric fairness.
    NoFairness {
        /// Number of tasks with enough I/Os.
        tasks: u64,
    },
    /// The metric fairness does not cover all tasks.
    FairnessPartial {
        /// Number of tasks that it covers.
        counted: u64,
        /// Number of tasks that it does not cover.
        excluded: u64,
        /// I/Os of the tasks that the metric does not cover, per cent of all I/Os.
        excluded_percent: f64,
    },
    /// A finding about a real device or its machine.
    Found {
        /// The finding.
        finding: Finding,
    },
    /// A tunable or attribute has no effect.
    Inert {
        /// Labels of the settings; empty for all settings.
        settings: Vec<String>,
        /// The tunable or attribute, and the reason.
        knob: Inert,
    },
    /// A metric rose or fell from run to run under every setting.
    Drift {
        /// The metric.
        #[serde(rename = "metric")]
        figure: Figure,
        /// Name of the metric for display.
        #[serde(skip)]
        label: String,
        /// Change from the first run to the last, per cent of the mean.
        percent: f64,
    },
    /// The values of a metric form two groups, with almost no value between the groups.
    TwoGroups {
        /// Label of the setting.
        setting: String,
        /// The metric.
        #[serde(rename = "metric")]
        figure: Figure,
        /// Name of the metric for display.
        #[serde(skip)]
        label: String,
        /// Means of the lower and the higher group.
        means: [f64; 2],
        /// Number of runs in each group.
        runs: [u64; 2],
    },
    /// Accuracy of a model that was fitted to a device.
    ModelError {
        /// Name of the device.
        name: String,
        /// Accuracy of the fit.
        fit: Fit,
    },
    /// A verdict depends on a few unusual runs.
    OddRuns {
        /// Label of the setting.
        setting: String,
        /// The metric.
        #[serde(rename = "metric")]
        figure: Figure,
        /// Name of the metric for display.
        #[serde(skip)]
        label: String,
    },
    /// A task always had I/O in flight but got almost no service.
    Starved {
        /// Labels of the settings; empty for all settings.
        settings: Vec<String>,
        /// Name of the task; `NAME (PID)` or `process PID` for a process of a trace.
        task: String,
        /// Work of the task, per cent of the work of the busiest task. This is the larger of the
        /// two ratios, by I/Os and by bytes.
        percent: f64,
    },
    /// On flash, I/Os waited for a free request. The limits of the queue then decide the result,
    /// not the device.
    RequestsRanOut {
        /// Labels of the settings; empty for all settings.
        settings: Vec<String>,
        /// Percentage of I/Os that waited, in the setting with the highest percentage.
        percent: f64,
    },
    /// A processor of the modelled host was busy most of the time. The costs of the host then decide
    /// the result, not the device.
    HostDecides {
        /// Labels of the settings; empty for all settings.
        settings: Vec<String>,
        /// Time in which the busiest processor worked, per cent of the run, in the setting with the
        /// highest percentage.
        percent: u32,
        /// Number of processors of the host.
        cores: u32,
    },
    /// A note of the simulator about a run.
    Simulated {
        /// Labels of the settings with this note; empty for all settings.
        settings: Vec<String>,
        /// The note.
        note: Note,
    },
    /// The trace may be incomplete. Conclusions then hold only for a part of the recording.
    TraceIncomplete {
        /// Missing parts, certain ones first.
        missing: Vec<MissingRecord>,
    },
    /// The trace was recorded on several devices, but its replay uses one device.
    SeveralDevices {
        /// Number of recorded devices.
        devices: u64,
    },
    /// The trace does not record the priorities (ionice) of processes, but settings serve processes
    /// by priority.
    PrioritiesUnknown {
        /// Labels of the settings; empty for all settings.
        settings: Vec<String>,
        /// Number of requests with unknown priority.
        unknown: u64,
        /// Number of requests of the trace.
        requests: u64,
    },
    /// Tasks or processes have different I/O priorities (ionice), but settings ignore the
    /// priorities.
    PrioritiesIgnored {
        /// Labels of the settings; empty for all settings.
        settings: Vec<String>,
        /// Whether the priorities differ only in their level, not in their class.
        levels_only: bool,
    },
    /// The trace has no times, or impossible values.
    WorkloadOdd {
        /// Problem and remedy.
        problem: String,
    },
    /// The trace lacks information that was replaced by an assumption.
    Assumed {
        /// The assumption, in a sentence.
        assumed: String,
    },
    /// The workload's file was damaged.
    WorkloadDamaged {
        /// The first warning.
        first: String,
        /// Number of warnings.
        total: u64,
    },
    /// The file of records was damaged.
    RecordsDamaged {
        /// Description of the damage.
        problem: String,
    },
}

impl Doubt {
    /// Returns the rank of the doubt. Rank 0 has the largest effect on the answer. Doubts are
    /// printed in this order.
    #[must_use]
    pub fn rank(&self) -> u8 {
        match self {
            // The answer may belong to another workload.
            Self::RecordsDamaged { .. }
            | Self::TraceIncomplete { .. }
            | Self::WorkloadDamaged { .. }
            | Self::WorkloadOdd { .. }
            | Self::PrioritiesUnknown { .. }
            | Self::NoIo { .. } => 0,
            // With these doubts, the results hold only for an inaccurate model, or for a device
            // with too little or too much load.
            Self::ModelError { fit, .. } if !fit.fits => 1,
            Self::UnlikeTimes { .. }
            | Self::SeveralDevices { .. }
            | Self::NothingReached { .. }
            | Self::RequestsRanOut { .. }
            | Self::HostDecides { .. }
            | Self::Idle { .. }
            | Self::Overload { .. } => 2,
            Self::Incomplete { .. } | Self::FewRuns { rounds: 1 } => 3,
            // Effects of the device or its machine on metrics.
            Self::Found { .. } | Self::Drift { .. } | Self::TwoGroups { .. } | Self::OddRuns { .. } => 4,
            Self::PrioritiesIgnored { .. } | Self::Starved { .. } | Self::Inert { .. } | Self::Assumed { .. } => 5,
            Self::ModelError { .. } | Self::ChangedNothing { .. } | Self::NoVariance { .. } => 6,
            // Doubts about single metrics. Metrics without conclusions come last.
            Self::ThinTail { figure, .. } if !figure.is_headline() => 10,
            Self::FewIos { .. } | Self::ThinTail { .. } => 7,
            Self::Short { .. } | Self::FewRuns { .. } | Self::NoFairness { .. } | Self::FairnessPartial { .. } => 8,
            Self::Simulated { .. } => 9,
        }
    }
}

impl Doubt {
    /// Returns a short description of the doubt, if it may change a decision.
    pub(crate) fn spoils(&self) -> Option<&'static str> {
        match self {
            Self::RecordsDamaged { .. } => Some("the records are damaged"),
            Self::TraceIncomplete { missing } if missing.iter().any(|record| record.certain) => {
                Some("the recording is incomplete")
            }
            Self::TraceIncomplete { .. } => Some("the recording may be incomplete"),
            Self::WorkloadDamaged { .. } => Some("the file of the workload is damaged"),
            Self::WorkloadOdd { .. } => Some("the trace has unusual values"),
            Self::PrioritiesUnknown { .. } => Some("the trace does not contain priorities"),
            Self::NoIo { .. } => Some("the runs do not contain the whole workload"),
            _ => None,
        }
    }
}

/// Returns a sentence about the missing parts of a recording.
#[must_use]
pub fn incomplete(missing: &[MissingRecord]) -> String {
    let certain = missing.iter().any(|record| record.certain);
    let whole = if certain { "the recording is incomplete" } else { "the recording may be incomplete" };
    let problems: Vec<&str> = missing.iter().map(|record| record.problem.as_str()).collect();
    let mut remedies: Vec<&str> = missing.iter().map(|record| record.remedy.as_str()).collect();
    remedies.dedup();
    format!("{whole}: {}; {}", problems.join("; and "), remedies.join(", and "))
}

/// Returns the settings as the beginning of a sentence: "`bfq` and `kyber`: ". Empty for all
/// settings.
fn of_settings(settings: &[String]) -> String {
    if settings.is_empty() { String::new() } else { format!("{}: ", marked_list(settings)) }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete { rounds, planned, alone_missing } => {
                write!(f, "not all runs finished: the results use only the complete rounds ({rounds} of {planned})")?;
                if *alone_missing > 0 {
                    write!(f, "; {alone_missing} runs of single processes are missing, so fairness is unknown")?;
                }
                f.write_str("; let the comparison run to its end")
            }
            Self::NoIo { tasks, seconds } => write!(
                f,
                "{} did no I/O in any run, so the results do not include {}. The runs last {} s. Let them run longer \
                 (--run-for, runtime), or start the {} sooner",
                some_of(tasks, NAMED_MAX, "and"),
                if tasks.len() == 1 { "it" } else { "them" },
                significant(*seconds, 2),
                if tasks.len() == 1 { "task" } else { "tasks" },
            ),
            Self::FewRuns { rounds: 1 } => f.write_str(
                "one run of each setting does not show how much runs vary, so there are no \
                 verdicts; give --runs 10",
            ),
            Self::FewRuns { rounds } => write!(
                f,
                "there are {rounds} runs of each setting. With {RUNS_PUBLISHED} runs, the intervals are narrower; give \
                 --runs {RUNS_PUBLISHED}"
            ),
            Self::Short { seconds, timed: true, .. } => write!(
                f,
                "runs last only {} s. Longer runs are more reliable; give --run-for {SECONDS_PUBLISHED:.0}",
                significant(*seconds, 2)
            ),
            Self::Short { seconds, kind, .. } => write!(
                f,
                "runs last only {} s. Runs of at least {SECONDS_PUBLISHED:.0} s are more reliable; {}",
                significant(*seconds, 2),
                match kind {
                    WorkloadKind::Trace => "record the server for longer",
                    WorkloadKind::Tasks => "increase total or end_ns in the task file",
                    WorkloadKind::Jobs => "increase size, loops or runtime of the jobs",
                    WorkloadKind::Application | WorkloadKind::Command => "give the program more work",
                    WorkloadKind::Several => "give each unit more work",
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
                    "under one setting, the workload ended early, so the settings did not run the same part of the \
                     workload; give a shorter --run-for, or a workload with more I/O"
                } else {
                    "some requests were in flight when the time limit was reached, and completed after it; give \
                     a longer --run-for, so that these requests matter less"
                })
            }
            Self::FewIos { sync, ios } => write!(
                f,
                "a run has only {ios} {} I/Os, too few for conclusions about their latencies; use a longer workload",
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
                "{}: only {above} of the {ios} I/Os of a run exceed this percentile, so the percentile depends \
                 on a few I/Os; use a longer workload, or a lower percentile",
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
                    "{}: the device is busy for at most {} % of the time, so these results say little about a \
                     busier device; ",
                    marked_list(settings),
                    significant(*utilisation_percent, 2)
                )?;
                match speed {
                    Some(speed) => write!(f, "try more load with --replay open --speed {speed}"),
                    None => f.write_str("use a busier workload"),
                }
            }
            Self::Overload { settings, arrivals_s, finish_s } => write!(
                f,
                "{}: the device is too slow for this trace: the I/Os arrived within {} s, but took up to {} s. \
                 Therefore latencies grow with the length of the recording. Use --replay closed, a lower --speed or a \
                 faster device",
                marked_list(settings),
                significant(*arrivals_s, 3),
                significant(*finish_s, 3)
            ),
            Self::PrioritiesIgnored { settings, levels_only } => {
                let (who, ignore) = match settings.as_slice() {
                    [] => ("all settings".to_owned(), "ignore"),
                    [one] => (format!("`{one}`"), "ignores"),
                    several => (marked_list(several), "ignore"),
                };
                let (what, others) = if *levels_only {
                    ("levels of the I/O priorities (ionice -n)", "bfq and cfq use these levels")
                } else {
                    ("I/O priorities (ionice)", "mq-deadline, bfq and cfq use these priorities")
                };
                write!(f, "{who} {ignore} the {what} of this workload; {others}")
            }
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
                    "the trace does not contain priorities (ionice){of}, but {who} {serve} processes by priority. \
                     Record with iosched record, or give priorities, such as --ionice backup=idle. If no process had \
                     a priority, give --ionice '*=none'"
                )
            }
            Self::NoVariance { settings, runs } => write!(
                f,
                "{}: all {runs} runs are the same, although their seeds differ. Therefore the runs do not show how a \
                 slightly different workload behaves; use --runs 1, or vary the workload",
                marked_list(settings)
            ),
            Self::ChangedNothing { settings } => {
                let all = marked_list(settings);
                write!(f, "{all} give the same results in every metric of every run, so one of them is enough")
            }
            Self::NoFairness { tasks } => {
                write!(
                    f,
                    "fairness needs at least two processes with {ALONE_IOS_MIN} I/Os or more, but the workload has \
                     {tasks}; use a workload with several busy processes"
                )
            }
            Self::FairnessPartial { counted, excluded, excluded_percent } => write!(
                f,
                "fairness covers only the {counted} busiest processes. It leaves out {excluded} others, which made {} \
                 % of the I/Os. Each of these has fewer than {ALONE_IOS_MIN} I/Os in a run, or is not among the \
                 busiest {}. Use a longer workload to cover more processes",
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
                "{} {} by {} % of its mean from the first run to the last. This happened under every setting, so the \
                 setting is not the cause. The settings took turns, so the comparison is still fair. Look for other \
                 load, heat, or a disk that fills up",
                label,
                if *percent > 0.0 { "rose" } else { "fell" },
                significant(percent.abs(), 2)
            ),
            Self::TwoGroups { setting, figure, label, means: [low, high], runs: [runs_low, runs_high] } => {
                let (runs_low, runs) = (*runs_low as u32, (runs_low + runs_high) as u32);
                let outcomes = Outcomes { low: *low, high: *high, runs_low, runs };
                let outcomes = outcomes.describe(figure.unit());
                write!(
                    f,
                    "`{setting}`: {label} has two outcomes: {outcomes}. The mean describes neither outcome, so \
                     find out how these runs differ"
                )
            }
            Self::ModelError { name, fit: Fit { validated: Some(validated), .. } } => write!(
                f,
                "the model of {name} was validated on the device: it predicted {} % of the metrics well. In nine cases \
                 of ten, differences between schedulers are wrong by at most {} % in rates and {} % in the slowest \
                 I/Os. Differences below these errors do not count; compare on the device itself with --on",
                significant(validated.trust_percent, 2),
                significant(validated.rate_difference_error_percent, 2),
                significant(validated.tail_difference_error_percent, 2)
            ),
            Self::ModelError { name, fit: Fit { recorded: Some(recorded), .. } } => write!(
                f,
                "the model of {name} was compared with published measurements. In {} % of the measured cases, \
                 predicted differences between schedulers are wrong by at most these factors: {}. Ignore smaller \
                 differences; compare on the device itself with --on",
                significant(recorded.covered_percent, 2),
                recorded.lines().join("; ")
            ),
            Self::ModelError { name, fit } if fit.rates_only => write!(
                f,
                "the model of {name} was made only from maximum rates, and its rates may be wrong by {} %. Nobody \
                 measured latencies, so the slowest I/Os may take half or twice the predicted time. Differences below \
                 these errors do not count; calibrate the device, or compare on the device itself with --on",
                significant(fit.rate_error_percent, 2)
            ),
            Self::ModelError { name, fit } => write!(
                f,
                "the model of {name} {} the device. In four cases of five, rates are wrong by at most {} % and the \
                 slowest I/Os by at most {} %. Differences below these errors do not count; calibrate the device \
                 again, or compare on the device itself with --on",
                if fit.fits { "fits, but is not" } else { "does not fit" },
                significant(fit.rate_error_percent, 2),
                significant(fit.tail_error_percent, 2)
            ),
            Self::OddRuns { setting, label, .. } => write!(
                f,
                "{setting}: {} differs only because of a few unusual runs; a test that ignores single unusual \
                 runs finds no difference. Give more --runs, and look at the unusual runs",
                label
            ),
            Self::Starved { settings, task, percent } => write!(
                f,
                "{}{task} starves. This task always has I/O to do, but it gets at most {} % of the I/Os and \
                 bytes that the busiest task gets",
                of_settings(settings),
                significant(*percent, 2)
            ),
            Self::RequestsRanOut { settings, percent } => write!(
                f,
                "{}up to {} % of the I/Os waited for a free request, because all nr_requests were in use. A libaio \
                 job that waits submits nothing, so a setting with fewer requests has shorter latencies without more \
                 throughput. Raise nr_requests (with none, at most the queue depth of the disk). For an NVMe disk, \
                 instead set hw_queues in the profile: Linux gives each processor a hardware queue with its own \
                 requests",
                of_settings(settings),
                significant(*percent, 2)
            ),
            Self::HostDecides { settings, percent, cores } => write!(
                f,
                "{}the processors limit the rate, not the disk: one of {cores} modelled processors was busy \
                 {percent} % of the time. Your processors have other costs. Copy the profile with iosched device \
                 show PROFILE --toml and change [host], or measure with --on",
                of_settings(settings),
            ),
            Self::Simulated { settings, note } => write!(f, "{}{note}", of_settings(settings)),
            Self::TraceIncomplete { missing } => f.write_str(&incomplete(missing)),
            Self::SeveralDevices { devices } => write!(
                f,
                "the trace has {devices} devices, but iosched sends all requests to one device, \
                 at their recorded sectors; select one device with iosched trace filter --device"
            ),
            Self::WorkloadDamaged { first, total: 1 } => write!(
                f,
                "{first}; if this matters, record the trace \
                 again"
            ),
            Self::WorkloadDamaged { first, total } => {
                write!(f, "{first}; and {} more; if this matters, record the trace again", total - 1)
            }
            Self::RecordsDamaged { problem } | Self::WorkloadOdd { problem } | Self::Assumed { assumed: problem } => {
                f.write_str(problem)
            }
        }
    }
}
