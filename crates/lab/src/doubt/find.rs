//! Search for doubts about results.

use iosched::Setting;
use iosched_kernel::checks::Finding;
use iosched_kernel::knobs::{Inert, Reason, hands_on_at_once, looks_at_classes, looks_at_levels};
use iosched_sim::{Note, Replay, RunResult};

use super::{Doubt, SECONDS_PUBLISHED, StarvedTask, starved_in_all, starved_tasks};
use crate::compare::RUNS_PUBLISHED;
use crate::fairness::Fairness;
use crate::figure::Figure;
use crate::record::{OnDevice, SettingRecord, WorkloadKind, WorkloadRecord};
use crate::results::{FEW_IOS, FigureResults, Results, SettingFigure};
use crate::sure::unclear;

/// Smallest number of I/Os above a quantile in a run. With fewer I/Os, the quantile is almost the
/// largest value.
const TAIL_IOS_MIN: u64 = 10;
/// Utilisation below which the scheduler has almost no effect, per cent.
const IDLE_PERCENT: f64 = 20.0;
/// Utilisation that is high enough for the scheduler to matter, per cent.
const BUSY_PERCENT: f64 = 80.0;
/// Smallest utilisation at which a device may be overloaded, per cent.
const OVERLOAD_PERCENT: f64 = 95.0;
/// Limit for the time between the last arrival and the end of the work, as a share of the arrival
/// time. A device with at least [`OVERLOAD_PERCENT`] utilisation is overloaded if it exceeds this
/// limit or [`OVERLOAD_LATE_S`].
const OVERLOAD_LATE_SHARE: f64 = 0.05;
/// Limit for the time between the last arrival and the end of the work, s.
const OVERLOAD_LATE_S: f64 = 1.0;

/// Limit for the share of the I/Os that wait for a free request, per cent. Above this limit, the
/// queue's limits can decide the results.
const RAN_OUT_PERCENT: f64 = 1.0;

/// Largest ratio of the longest to the shortest run time at which the run times of settings count
/// as equal. It applies to workloads with a time limit.
const UNLIKE_TIMES: f64 = 1.05;

/// Rounds a value down to one significant digit. Returns at least 2.
fn one_digit(value: f64) -> f64 {
    let unit = 10f64.powf(value.max(1.0).log10().floor());
    ((value / unit).floor() * unit).max(2.0)
}

/// Finds the doubts about the results of a device.
pub(crate) struct Finder<'a> {
    pub(crate) records: OnDevice<'a>,
    pub(crate) results: &'a Results,
    pub(crate) fairness: &'a Fairness,
}

impl Finder<'_> {
    /// Returns all doubts, the most serious first.
    pub(crate) fn all(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let workload = &self.records.header().workload;
        if !workload.missing.is_empty() {
            doubts.push(Doubt::TraceIncomplete { missing: workload.missing.clone() });
        }
        let oddities = workload.oddities.iter();
        doubts.extend(oddities.map(|problem| Doubt::WorkloadOdd { problem: problem.clone() }));
        doubts.extend(workload.assumed.iter().map(|assumed| Doubt::Assumed { assumed: assumed.clone() }));
        doubts.extend(workload.recorded_devices.map(|devices| Doubt::SeveralDevices { devices }));
        let warnings = self.records.all().warnings.iter();
        doubts.extend(warnings.map(|problem| Doubt::RecordsDamaged { problem: problem.clone() }));
        // The list of missing parts already covers the damage.
        if let Some(first) = workload.warnings.first().filter(|_| workload.missing.is_empty()) {
            doubts.push(Doubt::WorkloadDamaged { first: first.clone(), total: workload.warnings_total });
        }
        doubts.extend(self.without_io());
        self.priorities(&mut doubts);
        doubts.extend(self.priorities_ignored());
        let device = self.records.device();
        doubts.extend(device.fit.map(|fit| Doubt::ModelError { name: device.name.clone(), fit }));
        self.runs(&mut doubts);
        doubts.extend(self.times());
        self.load(&mut doubts);
        self.tails(&mut doubts);
        self.sameness(&mut doubts);
        self.two_groups(&mut doubts);
        self.company(&mut doubts);
        self.starved(&mut doubts);
        if let Some(measured) = &self.records.device().measured {
            self.noise(&mut doubts);
            let findings = measured.findings.iter().filter(|finding| self.agrees(finding));
            doubts.extend(findings.map(|finding| Doubt::Found { finding: finding.clone() }));
            self.inert(&measured.inert, &mut doubts);
        } else {
            let inert = |record: &SettingRecord| self.inert_in_simulation(&record.setting);
            self.inert(&self.records.header().settings.iter().map(inert).collect::<Vec<_>>(), &mut doubts);
        }
        self.notes(&mut doubts);
        doubts.sort_by_key(Doubt::rank);
        doubts
    }

    /// Returns a doubt about the jobs or tasks that did no I/O in any simulated run, for example
    /// because they start later than the runs end. If no task did any I/O, other doubts say so.
    fn without_io(&self) -> Option<Doubt> {
        let kind = self.records.header().workload.kind;
        if self.records.is_measured() || !matches!(kind, WorkloadKind::Jobs | WorkloadKind::Tasks) {
            return None;
        }
        let runs: Vec<&RunResult> = self.records.runs().map(|run| &run.result).collect();
        let never =
            |task: usize| runs.iter().all(|run| run.tasks.get(task).is_none_or(|of| of.first_submit_ns.is_none()));
        let of_first = &runs.first()?.tasks;
        let names = of_first.iter().enumerate().filter(|(task, _)| never(*task)).map(|(_, of)| of.name.clone());
        let tasks: Vec<String> = names.collect();
        let seconds = runs.iter().map(|run| run.finished_ns as f64 / 1e9).fold(0.0, f64::max);
        (!tasks.is_empty() && tasks.len() < of_first.len()).then_some(Doubt::NoIo { tasks, seconds })
    }

    /// Adds a doubt if the trace does not record priorities and a setting serves processes by
    /// priority.
    fn priorities(&self, doubts: &mut Vec<Doubt>) {
        let header = self.records.header();
        let Some(unknown) = header.workload.unknown_priorities else { return };
        let settings = header.settings.iter().enumerate();
        let looking: Vec<usize> =
            settings.filter(|(_, record)| looks_at_classes(record.setting.name())).map(|(number, _)| number).collect();
        if !looking.is_empty() {
            let requests = header.workload.requests.unwrap_or(unknown);
            doubts.push(Doubt::PrioritiesUnknown { settings: self.labels_unless_all(&looking), unknown, requests });
        }
    }

    /// Returns a doubt if simulated settings ignore priorities, and processes have different
    /// priorities. On a real device, the checks of the device report this.
    fn priorities_ignored(&self) -> Option<Doubt> {
        let header = self.records.header();
        let WorkloadRecord { different_classes, different_levels, .. } = header.workload;
        if self.records.is_measured() || !(different_classes || different_levels) {
            return None;
        }
        let looks = if different_classes { looks_at_classes } else { looks_at_levels };
        let settings = header.settings.iter().enumerate();
        let ignoring: Vec<usize> =
            settings.filter(|(_, record)| !looks(record.setting.name())).map(|(number, _)| number).collect();
        let settings = self.labels_unless_all(&ignoring);
        (!ignoring.is_empty()).then_some(Doubt::PrioritiesIgnored { settings, levels_only: !different_classes })
    }

    pub(super) fn labels(&self, wanted: impl Fn(usize) -> bool) -> Vec<String> {
        let settings = self.records.header().settings.iter().enumerate();
        settings.filter(|(number, _)| wanted(*number)).map(|(_, setting)| setting.label.clone()).collect()
    }

    /// Returns the labels of `settings`. Returns no labels if `settings` contains every setting.
    fn labels_unless_all(&self, settings: &[usize]) -> Vec<String> {
        let all = settings.len() == self.records.header().settings.len();
        if all { Vec::new() } else { self.labels(|setting| settings.contains(&setting)) }
    }

    fn of(&self, figure: Figure, setting: usize) -> Option<&SettingFigure> {
        self.results.figure(figure)?.settings.get(setting)?.as_ref()
    }

    fn runs(&self, doubts: &mut Vec<Doubt>) {
        let header = self.records.header();
        let rounds = self.results.rounds;
        let alone_missing = self.records.alone_missing() as u64;
        let sure = header.until_sure_percent.is_some_and(|percent| unclear(self.results, percent).is_empty());
        if (rounds < header.runs && !sure) || alone_missing > 0 {
            doubts.push(Doubt::Incomplete { rounds, planned: header.runs, alone_missing });
        }
        if rounds < RUNS_PUBLISHED && rounds > 0 {
            doubts.push(Doubt::FewRuns { rounds });
        }
        let finish = self.results.figure(Figure::Finish);
        let seconds =
            finish.iter().flat_map(|results| results.settings.iter().flatten().flat_map(|figure| &figure.values));
        let seconds = seconds.copied().fold(f64::INFINITY, f64::min);
        if seconds < SECONDS_PUBLISHED {
            let timed = header.limit.time_ns.is_some();
            doubts.push(Doubt::Short { seconds, kind: header.workload.kind, timed });
        }
    }

    /// Returns a doubt if settings with a time limit ran for different times, and the limit does
    /// not explain the difference.
    fn times(&self) -> Option<Doubt> {
        let header = self.records.header();
        let limit_s = header.limit.time_ns?.saturating_sub(header.warm_up_ns) as f64 / 1e9;
        let finish = |setting| Some((setting, self.of(Figure::Finish, setting)?.mean));
        let mut means: Vec<(usize, f64)> = (0..header.settings.len()).filter_map(finish).collect();
        means.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (&(shortest, least), &(longest, most)) = (means.first()?, means.last()?);
        let label = |setting: usize| header.settings[setting].label.clone();
        (most > least * UNLIKE_TIMES).then(|| Doubt::UnlikeTimes {
            shortest: label(shortest),
            longest: label(longest),
            seconds: [least, most],
            limit_s,
        })
    }

    fn load(&self, doubts: &mut Vec<Doubt>) {
        let header = self.records.header();
        let utilisation = |setting| self.of(Figure::Utilisation, setting).map_or(100.0, |figure| figure.mean);
        let reached = |setting: usize| {
            let mut runs = self.records.complete_runs(setting).into_iter().peekable();
            runs.peek().is_none() || runs.any(|run| !run.result.knows_ios() || run.result.ios > 0)
        };
        let unreached = (0..header.settings.len()).filter(|&setting| !reached(setting)).count();
        if unreached > 0 && header.machine.is_some() {
            let settings =
                if unreached == header.settings.len() { Vec::new() } else { self.labels(|setting| !reached(setting)) };
            let remedy = reaching(header.workload.kind, &header.workload.name);
            doubts.push(Doubt::NothingReached { settings, remedy });
            return;
        }
        let idle = self.labels(|setting| utilisation(setting) < IDLE_PERCENT);
        let is_trace = header.workload.kind == WorkloadKind::Trace;
        let speed = match header.replay {
            Replay::Open { speed } if is_trace => Some(speed),
            _ => None,
        };
        if !idle.is_empty() {
            let highest = (0..header.settings.len()).map(utilisation).filter(|&u| u < IDLE_PERCENT).fold(0.0, f64::max);
            let now = speed.unwrap_or(1.0);
            let speed = (is_trace && highest > 0.0).then(|| now * one_digit(BUSY_PERCENT / highest));
            doubts.push(Doubt::Idle { settings: idle, utilisation_percent: highest, speed });
        }
        let (Some(speed), Some(span_ns)) = (speed, header.workload.span_ns) else { return };
        let arrivals_s = span_ns as f64 / 1e9 / speed;
        let finish = |setting| self.of(Figure::Finish, setting).map_or(0.0, |figure| figure.mean);
        let overloaded = |setting: usize| {
            let late_s = finish(setting) - arrivals_s;
            let is_late = late_s > arrivals_s * OVERLOAD_LATE_SHARE || late_s > OVERLOAD_LATE_S;
            utilisation(setting) >= OVERLOAD_PERCENT && is_late
        };
        let settings = self.labels(overloaded);
        if !settings.is_empty() {
            let finish_s = (0..header.settings.len()).map(finish).fold(0.0, f64::max);
            doubts.push(Doubt::Overload { settings, arrivals_s, finish_s });
        }
    }

    fn tails(&self, doubts: &mut Vec<Doubt>) {
        for (mean, sync) in [(Figure::SyncMean, true), (Figure::AsyncMean, false)] {
            let Some(ios) = self.results.figure(mean).and_then(|results| results.ios) else { continue };
            if ios < FEW_IOS {
                doubts.push(Doubt::FewIos { sync, ios });
                continue;
            }
            for figure in self.results.figures.iter().map(|results| results.figure) {
                let Some((q, _)) = figure.quantile().filter(|&(_, is_sync)| is_sync == sync) else { continue };
                let above = ios - (q * ios as f64).ceil() as u64;
                if above < TAIL_IOS_MIN {
                    doubts.push(Doubt::ThinTail { figure, label: self.results.label(figure), ios, above });
                }
            }
        }
        for results in &self.results.figures {
            let Some((q, ios)) = results.figure.quantile_of_goal().zip(results.ios) else { continue };
            let above = ios - (q * ios as f64).ceil() as u64;
            if above < TAIL_IOS_MIN {
                doubts.push(Doubt::ThinTail { figure: results.figure, label: results.label.clone(), ios, above });
            }
        }
    }

    /// Returns all values of a setting, metric by metric.
    fn values(&self, setting: usize) -> Vec<Option<&[f64]>> {
        let figures = self.results.figures.iter();
        figures.map(|results| results.settings[setting].as_ref().map(|figure| figure.values.as_slice())).collect()
    }

    fn sameness(&self, doubts: &mut Vec<Doubt>) {
        let rounds = self.results.rounds;
        let constant = |setting: usize| {
            let values = self.values(setting);
            values.iter().flatten().all(|values| values.iter().all(|value| *value == values[0]))
        };
        let settings = if rounds > 1 { self.labels(constant) } else { Vec::new() };
        if !settings.is_empty() {
            doubts.push(Doubt::NoVariance { settings, runs: rounds });
        }
        let count = if rounds > 0 { self.labels(|_| true).len() } else { 0 };
        let values: Vec<_> = (0..count).map(|setting| self.values(setting)).collect();
        let is_same = |a: usize, b: usize| values[a] == values[b];
        for setting in (0..count).filter(|&setting| !(0..setting).any(|before| is_same(before, setting))) {
            let settings = self.labels(|other| other >= setting && is_same(other, setting));
            if settings.len() > 1 {
                doubts.push(Doubt::ChangedNothing { settings });
            }
        }
    }

    fn company(&self, doubts: &mut Vec<Doubt>) {
        let counted = self.fairness.tasks.len() as u64;
        // Tasks of an application depend on each other, so none of them runs alone.
        let kind = self.records.header().workload.kind;
        let together = matches!(kind, WorkloadKind::Application | WorkloadKind::Command) || self.records.is_measured();
        let unwanted = self.records.header().no_fairness;
        if self.results.rounds == 0 || self.records.alone_missing() > 0 || together || unwanted {
            return;
        }
        if counted < 2 {
            let first = self.records.runs().next().map(|run| run.result.tasks.as_slice()).unwrap_or_default();
            let busy = first.iter().filter(|task| task.ios >= crate::fairness::ALONE_IOS_MIN).count();
            doubts.push(Doubt::NoFairness { tasks: busy as u64 });
        } else if self.fairness.excluded > 0 {
            let excluded_percent = self.fairness.excluded_share * 100.0;
            doubts.push(Doubt::FairnessPartial { counted, excluded: self.fairness.excluded as u64, excluded_percent });
        }
    }

    /// Returns whether two settings differ in any metric.
    fn differ(&self, setting: usize, other: usize) -> bool {
        let has_both =
            |results: &&FigureResults| results.settings[setting].is_some() && results.settings[other].is_some();
        let concluding = self.results.figures.iter().filter(|results| results.concludes()).filter(has_both);
        concluding.into_iter().any(|results| results.between(self.records, setting, other).verdict.differs())
    }

    /// Returns whether a finding concerns the compared settings and is consistent with the metrics.
    fn agrees(&self, finding: &Finding) -> bool {
        if !matches!(finding, Finding::DeepDriver { .. } | Finding::NothingQueues { .. }) {
            return true;
        }
        let settings = self.records.header().settings.iter().enumerate();
        let plain = settings.filter(|(_, record)| record.setting.assignments().next().is_none());
        let alike: Vec<usize> =
            plain.filter(|(_, record)| hands_on_at_once(record.setting.name())).map(|(number, _)| number).collect();
        alike.len() > 1 && alike.windows(2).all(|pair| !self.differ(pair[0], pair[1]))
    }

    /// Returns whether the metrics show that a tunable or attribute of a setting has an effect.
    /// This is true if another setting has different metrics and differs from this setting only in
    /// this tunable.
    fn does_something(&self, setting: usize, knob: &str) -> bool {
        let settings = &self.records.header().settings;
        let named = |setting: &Setting, without: Option<&str>| -> Vec<(String, String)> {
            let all = setting.assignments().filter(|assignment| Some(assignment.name()) != without);
            all.map(|assignment| (assignment.name().to_owned(), assignment.text())).collect()
        };
        let this = &settings[setting].setting;
        let is_without = |other: &Setting| {
            other != this && other.name() == this.name() && named(other, None) == named(this, Some(knob))
        };
        let mut others = (0..settings.len()).filter(|&other| is_without(&settings[other].setting));
        others.any(|other| self.differ(setting, other))
    }

    /// Returns the parameters without effect of a simulated setting: `read_ahead_kb` without a page
    /// cache, which alone reads ahead; `io.weight` without io.cost; and more requests with `none`
    /// than the disk takes.
    fn inert_in_simulation(&self, setting: &Setting) -> Vec<Inert> {
        let has_cache = self.records.header().machine.is_some();
        let has_cost = setting
            .assignments()
            .any(|assignment| assignment.name() == "io.cost.qos" && assignment.text().contains("enable=1"));
        let depth = self.records.device().depth;
        let reason = |name: &str, text: &str| match name {
            "read_ahead_kb" if !has_cache => Some(Reason::Without { what: "buffered reads".to_owned() }),
            "io.weight" if !has_cost => Some(Reason::CostOff { is_bfq: setting.name() == "bfq" }),
            "nr_requests" if setting.name() == "none" && text.parse().is_ok_and(|requests: u32| requests > depth) => {
                Some(Reason::AboveDepth { depth })
            }
            _ => None,
        };
        let inert = |name: &str, text: &str| Some(Inert { knob: name.to_owned(), reason: reason(name, text)? });
        setting.assignments().filter_map(|assignment| inert(assignment.name(), &assignment.text())).collect()
    }

    /// Adds one doubt for each tunable or attribute without effect.
    fn inert(&self, by_setting: &[Vec<Inert>], doubts: &mut Vec<Doubt>) {
        let mut found: Vec<(&Inert, Vec<usize>)> = Vec::new();
        for (setting, knobs) in by_setting.iter().enumerate() {
            for knob in knobs.iter().filter(|knob| !self.does_something(setting, &knob.knob)) {
                match found.iter_mut().find(|(known, _)| *known == knob) {
                    Some((_, of)) => of.push(setting),
                    None => found.push((knob, vec![setting])),
                }
            }
        }
        for (knob, of) in found {
            doubts.push(Doubt::Inert { settings: self.labels_unless_all(&of), knob: knob.clone() });
        }
    }

    /// Adds a doubt for each task that always had I/O in flight and got almost no service.
    fn starved(&self, doubts: &mut Vec<Doubt>) {
        let settings = self.records.header().settings.len();
        let mut found: Vec<(String, Vec<(usize, f64)>)> = Vec::new();
        for setting in 0..settings {
            let runs = self.records.complete_runs(setting);
            let kind = self.records.header().workload.kind;
            let starved = starved_in_all(runs.iter().map(|run| starved_tasks(&run.result, kind)));
            for StarvedTask { task, percent } in starved {
                match found.iter_mut().find(|(known, _)| *known == task) {
                    Some((_, of)) => of.push((setting, percent)),
                    None => found.push((task, vec![(setting, percent)])),
                }
            }
        }
        for (task, of) in found {
            let percent = of.iter().map(|(_, percent)| *percent).fold(0.0, f64::max);
            let of: Vec<usize> = of.into_iter().map(|(setting, _)| setting).collect();
            let settings = self.labels_unless_all(&of);
            doubts.push(Doubt::Starved { settings, task, percent });
        }
    }

    /// Adds the simulator's notes about the first run of each setting. Each note is added once.
    fn notes(&self, doubts: &mut Vec<Doubt>) {
        let settings = self.records.header().settings.len();
        let mut found: Vec<(&Note, Vec<usize>)> = Vec::new();
        let mut ran_out: Vec<(usize, f64)> = Vec::new();
        let mut busy: Vec<(usize, (u32, u32))> = Vec::new();
        for setting in 0..settings {
            let Some(run) = self.records.runs().find(|run| run.setting == setting) else { continue };
            let late_percent = self.late_percent(&run.result);
            ran_out.extend(late_percent.map(|percent| (setting, percent)));
            busy.extend(run.result.notes.iter().find_map(|note| match note {
                Note::ProcessorBusy { percent, cores } => Some((setting, (*percent, *cores))),
                _ => None,
            }));
            // Reaching the time limit is normal for a workload with a time limit, so this note is
            // left out.
            let timed = self.records.header().workload.timed;
            let is_said = |note: &&Note| match note {
                Note::Limited { .. } => timed,
                Note::WaitedForAllocation { .. } => late_percent.is_some(),
                Note::ProcessorBusy { .. } => true,
                _ => false,
            };
            for note in run.result.notes.iter().filter(|note| !is_said(note)) {
                match found.iter_mut().find(|(known, _)| *known == note) {
                    Some((_, of)) => of.push(setting),
                    None => found.push((note, vec![setting])),
                }
            }
        }
        for (note, of) in found {
            doubts.push(Doubt::Simulated { settings: self.labels_unless_all(&of), note: note.clone() });
        }
        if let Some(percent) = ran_out.iter().map(|(_, percent)| *percent).reduce(f64::max) {
            let of: Vec<usize> = ran_out.iter().map(|(setting, _)| *setting).collect();
            doubts.push(Doubt::RequestsRanOut { settings: self.labels_unless_all(&of), percent });
        }
        if let Some((percent, cores)) = busy.iter().map(|(_, host)| *host).max() {
            let of: Vec<usize> = busy.iter().map(|(setting, _)| *setting).collect();
            doubts.push(Doubt::HostDecides { settings: self.labels_unless_all(&of), percent, cores });
        }
    }

    /// Returns the percentage of the I/Os that waited for a free request. Returns `None` if the
    /// device is not flash, or if the percentage is too small to matter.
    fn late_percent(&self, result: &RunResult) -> Option<f64> {
        let late = |note: &Note| match note {
            Note::WaitedForAllocation { ios, .. } => Some(*ios),
            _ => None,
        };
        let ios = result.notes.iter().find_map(late).filter(|_| !self.records.device().rotational)?;
        let percent = ios as f64 * 100.0 / result.ios.max(1) as f64;
        (percent >= RAN_OUT_PERCENT).then_some(percent.min(100.0))
    }
}

/// Returns a remedy if all data of a program stayed in the page cache. The remedy makes the data
/// reach the device.
fn reaching(kind: WorkloadKind, command: &str) -> &'static str {
    let runs = |program: &str| {
        command.split_whitespace().any(|word| word == program || word.ends_with(&format!("/{program}")))
    };
    match kind {
        WorkloadKind::Jobs => "add end_fsync=1 or direct=1 to the job, or write more than the memory holds",
        _ if runs("dd") => "add conv=fsync or oflag=direct, or write more than the memory holds",
        _ if runs("iozone") => "add -e or -I, or write files that are larger than the memory",
        _ => "let the program sync its data, or give it more data than the memory holds",
    }
}
