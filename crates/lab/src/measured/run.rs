//! Simulation of measured cases.

use std::collections::BTreeMap;

use iosched::{Decision, Op, Setting};
use iosched_disk::io_cost::Family;
use iosched_disk::{Host, Profile, Recorded};
use iosched_machine::description::Machine;
use iosched_sim::{Histogram, Observer, Plan, Submitted, Taken, run};
use iosched_workload::Workload;
use iosched_workload::outcome::{DirectionResult, JobResult, RunResult};

use super::case::{Figure, MeasuredCase, MeasuredDisk, Metric, Source};
use super::isolation::ALL_JOBS;
use super::{isolation, mails};

use crate::error::LabError;
use crate::experiment::run_seed;
use crate::machine::MachineProfile;
use crate::pool::{Control, Event, in_order, settled};
use crate::reproduce::fio_jobs;

/// Options of the simulations of published measurements.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredOptions<'a> {
    /// Number of runs of each case, at least 1. Figures are means of these runs.
    pub runs: u32,
    /// Seed of the simulation. The seed of every run follows from it.
    pub seed: u64,
    /// Simulated time of each run, s. A warm-up of the same length precedes it.
    pub seconds: u32,
    /// Model to use instead of the sources' models.
    pub device: Option<&'a Profile>,
}

/// A case and its simulated figures.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredResult<'a> {
    /// The case.
    pub case: &'a MeasuredCase,
    /// Simulated value of each figure of the case; `None` if the job completed no I/O.
    pub simulated: Vec<Option<f64>>,
    /// Errors of the model, from its profile.
    pub recorded: Option<Recorded>,
}

impl MeasuredResult<'_> {
    /// Returns each figure with its simulated value, if there is one.
    pub fn figures(&self) -> impl Iterator<Item = (&Figure, Option<f64>)> {
        self.case.figures.iter().zip(self.simulated.iter().copied())
    }

    /// Returns the measured and the simulated value of a metric of a job.
    #[must_use]
    pub fn value(&self, job: &str, metric: Metric) -> Option<(f64, f64)> {
        let (figure, simulated) = self.figures().find(|(figure, _)| figure.job == job && figure.metric == metric)?;
        Some((figure.measured, simulated?))
    }
}

/// Simulates the cases in order. `observe` receives the number of completed runs and of planned
/// runs. After an interruption, returns only the results of the completed cases.
///
/// # Errors
/// The number of runs is 0, a model is missing, or a run fails.
pub fn simulate<'a>(
    cases: &'a [MeasuredCase],
    options: &MeasuredOptions<'_>,
    control: &Control,
    mut observe: impl FnMut(usize, usize),
) -> Result<Vec<MeasuredResult<'a>>, LabError> {
    if options.runs == 0 {
        return Err(LabError::NoRuns);
    }
    let prepared = cases.iter().map(|case| Prepared::new(case, options)).collect::<Result<Vec<_>, _>>()?;
    let jobs: Vec<(usize, u32)> =
        (0..cases.len()).flat_map(|case| (0..options.runs).map(move |run| (case, run))).collect();
    let mut finished: Vec<Vec<Option<f64>>> = Vec::with_capacity(jobs.len());
    in_order(
        control,
        &jobs,
        |&(number, run_number)| {
            let case = &cases[number];
            let Some(prepared) = &prepared[number] else { return Ok(Some(vec![None; case.figures.len()])) };
            let seed = run_seed(options.seed, run_number);
            let name = || format!("{} under {}", case.group, case.setting);
            settled(name, run_number, seed, || {
                let plan = Plan { seed, interrupt: Some(control.aborted()), ..prepared.plan(case) };
                let mut on_device = DeviceLatency::from(u64::from(options.seconds) * 1_000_000_000);
                let watched = case.figures.iter().any(|figure| figure.metric.is_of_device());
                let result = run(&plan, watched.then_some(&mut on_device))?;
                Ok(figures(case, &result, &on_device))
            })
        },
        |event| {
            match event {
                Event::Done { done } => observe(done, jobs.len()),
                Event::Taken(values) => finished.push(values),
            }
            Ok(())
        },
    )?;
    let runs = options.runs as usize;
    let complete_cases = finished.chunks_exact(runs).zip(cases).zip(&prepared);
    Ok(complete_cases
        .map(|((runs, case), prepared)| {
            let recorded = prepared.as_ref().and_then(|prepared| prepared.profile.fit()?.recorded);
            MeasuredResult { case, simulated: means(runs), recorded }
        })
        .collect())
}

/// A case that is ready to run.
struct Prepared {
    workload: Workload,
    profile: Profile,
    more_disks: Vec<(Profile, Setting)>,
    /// Costs of the host, if the host of the measurement is known.
    host: Option<Host>,
    /// Machine of a case with buffered I/O.
    machine: Option<Machine>,
}

impl Prepared {
    /// Prepares a case; `None` if it cannot be simulated.
    fn new(case: &MeasuredCase, options: &MeasuredOptions<'_>) -> Result<Option<Self>, LabError> {
        if case.obstacle.is_some() {
            return Ok(None);
        }
        let profile = profile(case, options.device)?;
        let buffered = case.jobs.iter().any(|job| job.contains("direct=0"));
        Ok(Some(Self {
            workload: workload(case, options.seconds)?,
            more_disks: (1..case.disks).map(|number| (profile.specimen(number), case.setting.clone())).collect(),
            host: if case.source == Source::ListTables { None } else { Some(case.host()?) },
            machine: buffered.then(|| MachineProfile::named(MACHINE)).transpose()?.map(|found| found.machine),
            profile,
        }))
    }

    /// Returns the plan of a run, without its seed.
    fn plan(&self, case: &MeasuredCase) -> Plan<'_> {
        Plan {
            more_disks: &self.more_disks,
            host: self.host.as_ref(),
            machine: self.machine.as_ref(),
            ..Plan::new(&self.workload, &self.profile, case.setting.clone())
        }
    }
}

/// Latencies of reads on the device, from the dispatch of a request to its completion.
struct DeviceLatency {
    /// Time from which requests count, ns.
    from_ns: u64,
    /// Dispatch time of each read, ns, by the ordinal of its first bio; `None` before the dispatch.
    under_way: BTreeMap<u64, Option<u64>>,
    reads: Histogram,
}

impl DeviceLatency {
    fn from(from_ns: u64) -> Self {
        Self { from_ns, under_way: BTreeMap::new(), reads: Histogram::default() }
    }

    fn quantile_us(&self, share: f64) -> Option<f64> {
        (self.reads.count() > 0).then(|| self.reads.quantile_ns(share) as f64 / 1e3)
    }
}

impl Observer for DeviceLatency {
    fn wants_decisions(&self) -> bool {
        true
    }

    fn submitted(&mut self, _now_ns: u64, bio: &Submitted) {
        if bio.op == Op::Read && matches!(bio.taken, Taken::Allocated | Taken::Held) {
            self.under_way.insert(bio.bio, None);
        }
    }

    fn decision(&mut self, now_ns: u64, decision: &Decision) {
        match *decision {
            Decision::Dispatch { cookie, .. } => {
                if let Some(dispatched_ns) = self.under_way.get_mut(&cookie) {
                    *dispatched_ns = Some(now_ns);
                }
            }
            Decision::Complete { cookie } => {
                let dispatched_ns = self.under_way.remove(&cookie).flatten();
                if let Some(dispatched_ns) = dispatched_ns.filter(|&ns| ns >= self.from_ns) {
                    self.reads.record(now_ns - dispatched_ns);
                }
            }
            _ => {}
        }
    }
}

/// Returns the mean of each figure over the runs; `None` if a run lacks the figure.
fn means(runs: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let mean = |figure: usize| {
        let sum: Option<f64> = runs.iter().map(|values| values[figure]).sum();
        sum.map(|sum| sum / runs.len() as f64)
    };
    (0..runs[0].len()).map(mean).collect()
}

fn profile(case: &MeasuredCase, given: Option<&Profile>) -> Result<Profile, LabError> {
    let named = || {
        if let Some(disk) = &case.disk {
            let (name, profile) = match disk {
                MeasuredDisk::Member { name, latencies } => {
                    let unknown = || LabError::Data { file: name.clone(), problem: "not in a family".to_owned() };
                    let (family, member) = Family::member(name).ok_or_else(unknown)?;
                    (name, Profile::of_member_with(family, &member, Some(*latencies)))
                }
                MeasuredDisk::Named(name) => (name, Profile::load(name)),
                MeasuredDisk::Text { name, text } => (name, Profile::parse(name, text)),
            };
            return profile.map_err(|error| LabError::Data { file: name.clone(), problem: error.to_string() });
        }
        if case.source == Source::IsolIocost {
            return isolation::disk();
        }
        let name = case.source.device();
        Profile::named(name)
            .map_err(|error| LabError::Data { file: case.source.name().to_owned(), problem: error.to_string() })
    };
    given.cloned().map_or_else(named, Ok)
}

/// Machine of cases with buffered I/O.
const MACHINE: &str = "linux-6.12";

/// Warm-up of cases with io.cost's targets, as a multiple of the time that counts. io.cost adjusts
/// its rate once per period. In these cases a period is one second, because the latency target of
/// writes is one second. The highest rate is 15 times the lowest rate. io.cost needs about 60
/// periods from the lowest to the highest rate.
const IOCOST_WARM_UP: u64 = 70;

/// Number of I/Os of 64 KiB that collect at the slowest of several disks in one second. For
/// example, if disks differ by 1 % and complete 30,000 I/Os per second, 300 reads collect. For
/// writes, the number is smaller.
const COLLECTED_PER_S: u64 = 200;
/// Longest warm-up of cases with several disks, as a multiple of the time that counts.
const SEVERAL_DISKS_WARM_UP: u64 = 12;

/// Returns the number that follows `key` in a job's section, such as 65,536 for `bs=64k`.
fn value_of(job: &str, key: &str) -> Option<u64> {
    let value = job.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    match value.strip_suffix('k') {
        Some(kibibytes) => Some(kibibytes.parse::<u64>().ok()? * 1024),
        None => value.parse().ok(),
    }
}

/// Returns the warm-up of a case, as a multiple of the time that counts. If jobs use several disks
/// in turn, their I/Os collect at the slowest disk. This takes longer with more and larger I/Os in
/// flight.
fn warm_up(case: &MeasuredCase) -> u64 {
    if case.source == Source::IsolIocost {
        return IOCOST_WARM_UP;
    }
    if case.disks == 1 {
        return 1;
    }
    let units = |job: &String| {
        let value = |key| value_of(job, key).unwrap_or(1);
        value("iodepth") * value("numjobs") * value("bs") / (64 * 1024)
    };
    (case.jobs.iter().map(units).sum::<u64>() / COLLECTED_PER_S).clamp(1, SEVERAL_DISKS_WARM_UP)
}

/// Returns the case as fio jobs: direct I/O over the whole disks, after a [`warm_up`]. Several
/// disks complete millions of small reads per second. Such a case runs for a tenth of the time,
/// which gives about the same number of I/Os as a case with one disk.
fn workload(case: &MeasuredCase, seconds: u32) -> Result<Workload, LabError> {
    if case.source == Source::ListTables {
        return fio_jobs(&case.group, &mails::job_file(case));
    }
    let is_light = case.disks == 1 || case.jobs.iter().any(|job| job.contains("write") || job.contains("bs=64k"));
    let milliseconds = u64::from(seconds) * if is_light { 1000 } else { 100 };
    let warm_up = milliseconds * warm_up(case);
    let disks: Vec<String> = (0..case.disks.max(1)).map(|disk| format!("/dev/nvme{disk}n1")).collect();
    let disks = disks.join(":");
    let engine = if case.source == Source::IsolIocost { "libaio" } else { "io_uring" };
    let text = format!(
        "[global]\nioengine={engine}\ndirect=1\nfilename={disks}\nnorandommap\ngroup_reporting\ntime_based\n\
         ramp_time={warm_up}ms\nruntime={milliseconds}ms\n{}",
        case.jobs.concat()
    );
    fio_jobs(&case.group, &text)
}

fn figures(case: &MeasuredCase, result: &RunResult, on_device: &DeviceLatency) -> Vec<Option<f64>> {
    let value = |figure: &Figure| {
        if figure.metric.is_of_device() {
            return on_device.quantile_us(if figure.metric.is_tail() { 0.99 } else { 0.5 });
        }
        if figure.job == ALL_JOBS {
            let mut all = result.jobs.first()?.clone();
            result.jobs[1..].iter().for_each(|job| all.merge(job));
            return figure.metric.of(&all.read, all.counted_ns());
        }
        let mut copies = result.jobs.iter().filter(|job| job.name == figure.job);
        let mut all: JobResult = copies.next()?.clone();
        copies.for_each(|copy| all.merge(copy));
        if figure.metric == Metric::StartUp {
            return Some(all.ended_ns.checked_sub(all.started_ns?)? as f64 / 1e9);
        }
        if figure.metric == Metric::WriteIops {
            return figure.metric.of(&all.write, all.counted_ns());
        }
        let busy = |direction: &&DirectionResult| direction.ios > 0;
        let direction = [&all.read, &all.write].into_iter().find(busy)?;
        figure.metric.of(direction, all.counted_ns())
    };
    case.figures.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_grows_with_ios_in_flight_on_several_disks() {
        let case = |disks, job: &str| MeasuredCase {
            source: Source::Icpe24Interference,
            group: "11b: a".to_owned(),
            setting: "none".parse().unwrap(),
            jobs: vec![job.to_owned()],
            disks,
            disk: None,
            obstacle: None,
            figures: vec![],
        };
        let job = "[b]\nrw=randread\nbs=64k\niodepth=128\nnumjobs=8\n";
        assert_eq!(warm_up(&case(8, job)), 5);
        assert_eq!(warm_up(&case(1, job)), 1, "one disk needs no longer warm-up");
        assert_eq!(warm_up(&case(8, &job.replace("64k", "4k"))), 1);
        assert_eq!(warm_up(&case(8, &job.replace("=8", "=64"))), SEVERAL_DISKS_WARM_UP);
    }
}
