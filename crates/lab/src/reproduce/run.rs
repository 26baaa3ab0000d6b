//! Runs published experiments: every case under every setting, in turn.
//!
//! A round runs each case once under each of its settings, with one seed. The next round starts
//! with another setting. If the runs are stopped, the complete rounds are a smaller but valid
//! experiment.

use iosched::Setting;
use iosched_disk::Profile;
use iosched_machine::description::Machine;
use iosched_sim::{BlockLayer, Plan, check, run};
use iosched_workload::{Workload, app, fio};

use super::assumptions::Decided;
use super::catalogue::{Case, Experiment, Variant};
use super::record::{CaseRun, ReproductionHeader, ReproductionRecord, report};
use crate::error::LabError;
use crate::experiment::run_seed;
use crate::pool::{Control, Event, in_order, settled};

/// Number of runs, seed and properties that are stored in the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReproduceOptions {
    /// Number of runs of each case under each setting, at least 1.
    pub runs: u32,
    /// Seed of the reproduction. The seed of every run follows from it.
    pub seed: u64,
    /// Text that selected cases; `None` for all cases. The records store it.
    pub case: Option<String>,
    /// Command line that produces the same records again. The records store it.
    pub command: String,
}

/// Event while the runs of a reproduction proceed.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A record, in the order of the plan. The header is the first one.
    Record(&'a ReproductionRecord),
    /// A run is complete.
    Done {
        /// Number of complete runs so far.
        done: usize,
        /// Number of planned runs.
        total: usize,
    },
}

/// Records of a reproduction, and whether it was interrupted.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// The plan.
    pub header: ReproductionHeader,
    /// Runs that were made, in the order of the plan.
    pub runs: Vec<CaseRun>,
    /// Whether the runs were stopped before the end.
    pub interrupted: bool,
}

/// A case that is ready to run.
struct Prepared<'a> {
    experiment: &'a Experiment,
    case: Case,
    /// The assumption that is not the usual one, if there is one.
    assumption: Option<String>,
    machine: Machine,
    workload: Workload,
    company: Option<app::Spec>,
    first: Profile,
    /// The disks after the first disk, for each setting.
    more: Vec<Vec<(Profile, Setting)>>,
}

/// Number of runs for each unusual value of an unknown. One run is enough, because an unusual value
/// matters only if this value changes a mean by more than the noise.
pub(super) const BAND_RUNS: u32 = 1;

/// A planned run.
#[derive(Clone, Copy, Debug)]
struct Job {
    case: usize,
    setting: usize,
    run: u32,
}

/// Runs all cases of `experiments` and passes events to `observe`. Stops early if `control` is
/// interrupted.
///
/// # Errors
/// The number of runs is 0, a run fails, or `observe` fails.
pub fn reproduce(
    experiments: &[Experiment],
    options: &ReproduceOptions,
    control: &Control,
    mut observe: impl FnMut(Progress<'_>) -> Result<(), LabError>,
) -> Result<Reproduced, LabError> {
    if options.runs == 0 {
        return Err(LabError::NoRuns);
    }
    let cases = experiments.iter().flat_map(|experiment| experiment.cases.iter().map(move |case| (experiment, case)));
    let mut prepared = Vec::new();
    for (experiment, case) in cases {
        for decided in experiment.decided(case)? {
            prepared.push(Prepared::new(experiment, decided)?);
        }
    }
    prepared.iter().try_for_each(Prepared::check)?;
    let header = ReproductionHeader {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: options.command.clone(),
        experiments: experiments.iter().map(|experiment| experiment.name.clone()).collect(),
        case: options.case.clone(),
        seed: options.seed,
        runs: options.runs,
    };
    observe(Progress::Record(&ReproductionRecord::Reproduction(Box::new(header.clone()))))?;
    let jobs = jobs(&prepared, options.runs);
    let mut runs = Vec::with_capacity(jobs.len());
    let finished = in_order(
        control,
        &jobs,
        |job| {
            let (case, seed) = (&prepared[job.case], run_seed(options.seed, job.run));
            let name = || format!("{} under {}", case.case.name, case.setting(job.setting).label);
            settled(name, job.run, seed, || {
                let plan = Plan { seed, interrupt: Some(control.aborted()), ..case.plan(job.setting) };
                let result = run(&plan, ())?;
                let report = report(&result);
                let names = (case.experiment.name.as_str(), case.case.name.as_str(), &*case.setting(job.setting).label);
                let run = CaseRun::new(names.0, names.1, names.2, (job.run, seed), result.finished_ns, &report);
                Ok(CaseRun { assumption: case.assumption.clone(), ..run })
            })
        },
        |event| match event {
            Event::Done { done } => observe(Progress::Done { done, total: jobs.len() }),
            Event::Taken(case_run) => {
                let record = ReproductionRecord::Case(Box::new(case_run));
                observe(Progress::Record(&record))?;
                if let ReproductionRecord::Case(case_run) = record {
                    runs.push(*case_run);
                }
                Ok(())
            }
        },
    )?;
    Ok(Reproduced { header, runs, interrupted: !finished })
}

/// Returns all planned runs, in the order in which they start and are recorded.
fn jobs(prepared: &[Prepared<'_>], runs: u32) -> Vec<Job> {
    let of_case = |run: u32, case: usize| {
        let settings = prepared[case].experiment.settings.len();
        (0..settings).map(move |turn| Job { case, setting: (turn + run as usize) % settings, run })
    };
    let is_due = |run: u32, case: &usize| prepared[*case].assumption.is_none() || run < BAND_RUNS;
    (0..runs)
        .flat_map(|run| {
            (0..prepared.len()).filter(move |case| is_due(run, case)).flat_map(move |case| of_case(run, case))
        })
        .collect()
}

/// Parses the text of a case as a fio job file. `case` is its name in messages.
///
/// # Errors
/// The text is not a fio job file.
pub(crate) fn fio_jobs(case: &str, text: &str) -> Result<Workload, LabError> {
    let jobs = fio::JobFile::parse(case, text.as_bytes(), &fio::NoVariables)
        .map_err(|error| LabError::Data { file: case.to_owned(), problem: error.to_string() })?;
    Ok(Workload::Jobs(fio::Jobs::new(jobs)))
}

impl<'a> Prepared<'a> {
    fn new(experiment: &'a Experiment, decided: Decided) -> Result<Self, LabError> {
        let Decided { assumption, case, machine } = decided;
        let spec = |text: &str| {
            app::Spec::parse(text)
                .map_err(|error| LabError::Data { file: case.name.clone(), problem: error.to_string() })
        };
        let no_disk = || LabError::Data { file: case.name.clone(), problem: "the command names no disk".to_owned() };
        let mut profiles = case.profiles()?;
        if profiles.is_empty() {
            return Err(no_disk());
        }
        let first = profiles.remove(0);
        let more = |setting: &Variant| -> Vec<(Profile, Setting)> {
            profiles.iter().cloned().zip(setting.schedulers.iter().skip(1).cloned()).collect()
        };
        Ok(Self {
            experiment,
            assumption,
            machine: machine.machine,
            workload: if case.workload.starts_with('[') {
                fio_jobs(&case.name, &case.workload)?
            } else {
                Workload::Application(spec(&case.workload)?.into())
            },
            company: case.background.as_deref().map(spec).transpose()?,
            more: experiment.settings.iter().map(more).collect(),
            first,
            case,
        })
    }

    fn setting(&self, setting: usize) -> &'a Variant {
        &self.experiment.settings[setting]
    }

    /// Returns the plan of a run, without its seed.
    fn plan(&self, setting: usize) -> Plan<'_> {
        let scheduler = self.setting(setting).schedulers[0].clone();
        Plan {
            block_layer: BlockLayer { hz: self.machine.hz, ..BlockLayer::default() },
            machine: Some(&self.machine),
            more_disks: &self.more[setting],
            company: self.company.as_ref(),
            ..Plan::new(&self.workload, &self.first, scheduler)
        }
    }

    /// Checks the plans of all settings, so that errors are reported before the first run.
    fn check(&self) -> Result<(), LabError> {
        (0..self.more.len()).try_for_each(|setting| {
            check(&self.plan(setting)).map_err(|source| LabError::Run {
                name: format!("{} under {}", self.case.name, self.setting(setting).label),
                run: 0,
                seed: 0,
                source: Box::new(source),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_can_be_planned_under_every_setting() {
        for experiment in Experiment::all().unwrap() {
            for case in &experiment.cases {
                for decided in experiment.decided(case).unwrap() {
                    Prepared::new(&experiment, decided).unwrap().check().unwrap();
                }
            }
        }
    }

    #[test]
    fn settings_rotate_and_every_round_is_complete() {
        let experiment = Experiment::named("dd").unwrap();
        let decided = experiment.cases.iter().flat_map(|case| experiment.decided(case).unwrap());
        let mut prepared: Vec<Prepared<'_>> =
            decided.map(|decided| Prepared::new(&experiment, decided).unwrap()).collect();
        let of_bands = prepared.iter().filter(|case| case.assumption.is_some()).count();
        assert_eq!(jobs(&prepared, 10).len(), (10 * 2 + of_bands) * 3);
        assert_eq!(jobs(&prepared, 10).len(), experiment.runs_planned(10));
        prepared.retain(|case| case.assumption.is_none());
        let jobs = jobs(&prepared, 4);
        assert_eq!(jobs.len(), 4 * 2 * 3);
        for (round, jobs) in jobs.chunks(6).enumerate() {
            assert!(jobs.iter().all(|job| job.run as usize == round));
            assert_eq!(jobs[0].setting, round % 3);
            let mut places: Vec<(usize, usize)> = jobs.iter().map(|job| (job.case, job.setting)).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), 6);
        }
    }
}
