//! Settings compared on a real device: runs in random order, with other noise than that of seeds.
//!
//! The same records come of it as of a simulation, and so everything that is computed and shown is the same. What a run
//! is, and what it is made on, is a [`Bench`]'s; here is in which order, how often, and when there are enough.

pub(crate) mod error;
mod kernel;
mod request;

use std::sync::atomic::AtomicBool;

use iosched::Setting;
use iosched_kernel::settings::Change;
use iosched_numbers::SplitMix64;
use iosched_sim::{Limit, Replay, RunResult, Timeline};

pub use error::VerifyError;
pub use kernel::{ForeignCommand, KernelBench, Limits, Work, for_records};
pub use request::{DeviceRequestError, RealComparison, named_baseline, named_settings, open_target, scheduled_disk};

use crate::error::LabError;
use crate::execute::{Finished, Progress, counts, knows};
use crate::experiment::run_seed;
use crate::goal::Goal;
use crate::pool::Control;
use crate::record::{
    DeviceRecord, Header, RECORDS_FORMAT, Record, Records, RunRecord, SettingRecord, TimelineRecord, ValueRecord,
    WorkloadRecord,
};
use crate::results::Results;
use crate::sure::unclear;

/// Stream of random numbers that decide the order of runs.
const ORDER_STREAM: u64 = 0x0de2;

/// A run is made so often at most if something else changes settings meanwhile.
const DISTURBED_MAX: u32 = 4;

/// Something that runs are made on: a device under the kernel's schedulers, and what is done to it.
pub trait Bench {
    /// What is known of the device; the values of settings are filled in by who asks.
    fn device(&self) -> DeviceRecord;

    /// Brings a setting into effect, on a device that does nothing. What is in effect then.
    ///
    /// # Errors
    /// The device does not take it.
    fn set(&mut self, setting: &Setting) -> Result<Vec<ValueRecord>, VerifyError>;

    /// Makes a run, with nothing in caches that an earlier one left. `None` if it was ended by `interrupt`, which
    /// becomes true when runs are to end at once.
    ///
    /// # Errors
    /// It cannot be made to its end.
    fn run(&mut self, seed: u64, interrupt: &AtomicBool) -> Result<Option<RunResult>, VerifyError>;

    /// What is not as it was set last, because something else has changed it meanwhile.
    fn foreign(&self) -> Vec<Change>;

    /// Puts everything back as it was, but for what something else has set meanwhile: that is returned.
    ///
    /// # Errors
    /// What cannot be put back, and how to do that by hand.
    fn finish(&mut self) -> Result<Vec<Change>, VerifyError>;
}

/// What is compared on a real device.
#[derive(Clone, Debug)]
pub struct Verification {
    /// What is to be known of what is run.
    pub workload: WorkloadRecord,
    /// The settings, each once.
    pub settings: Vec<SettingRecord>,
    /// Number in `settings` of the one that others are compared with.
    pub baseline: usize,
    /// Runs of each setting; the most there are if it ends when it is sure.
    pub runs: u32,
    /// Every run's seed follows from it, and the order of runs.
    pub seed: u64,
    /// How a trace is replayed.
    pub replay: Replay,
    /// What is done in this time from the start of each run does not count, ns.
    pub warm_up_ns: u64,
    /// When runs stop early.
    pub limit: Limit,
    /// Ends once every difference is clear or known to within so many per cent of the baseline.
    pub until_sure_percent: Option<f64>,
    /// Differences within so many per cent of the baseline matter to nobody.
    pub equal_within_percent: f64,
    /// The figures that something is concluded from; none: the usual ones.
    pub goals: Vec<Goal>,
    /// The command line that makes such records again: kept in them.
    pub command: String,
}

impl Verification {
    fn header(&self, device: DeviceRecord) -> Header {
        Header {
            format: RECORDS_FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.command.clone(),
            workload: self.workload.clone(),
            devices: vec![device],
            settings: self.settings.clone(),
            baseline: self.baseline,
            seed: self.seed,
            runs: self.runs,
            replay: self.replay,
            block_layer: iosched_sim::BlockLayer::default(),
            machine: None,
            warm_up_ns: self.warm_up_ns,
            limit: self.limit,
            until_sure_percent: self.until_sure_percent,
            equal_within_percent: self.equal_within_percent,
            goals: self.goals.iter().map(ToString::to_string).collect(),
            alone: Vec::new(),
            no_fairness: false,
        }
    }

    /// The order of settings in a round: another one in each, so that none always comes behind the same other.
    fn order(&self, round: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.settings.len()).collect();
        let mut rng = SplitMix64::entity(self.seed ^ ORDER_STREAM, round.into());
        for left in (1..order.len()).rev() {
            order.swap(left, rng.below(left as u64 + 1) as usize);
        }
        order
    }
}

/// Makes all runs on `bench`, handing `observe` what happens, and puts everything back, whatever happens. Stops early
/// if `control` is interrupted, or if it is sure.
///
/// # Errors
/// A setting is not taken, a run fails, `observe` does, or something cannot be put back.
pub fn verify(
    verification: &Verification,
    bench: &mut dyn Bench,
    control: &Control,
    mut observe: impl FnMut(Progress<'_>) -> Result<(), LabError>,
) -> Result<Finished, LabError> {
    let outcome = make_runs(verification, bench, control, &mut observe);
    let left = bench.finish();
    if let Some(changes) = left.as_ref().ok().filter(|changes| !changes.is_empty()) {
        observe(Progress::Left { changes })?;
    }
    // What failed first is the cause; that something was left behind must be told in any case.
    match (outcome, left) {
        (outcome, Ok(_)) => outcome,
        (Ok(_), Err(left)) => Err(left.into()),
        (Err(error), Err(left)) => Err(VerifyError::Twice { first: Box::new(error), then: Box::new(left) }.into()),
    }
}

fn make_runs(
    verification: &Verification,
    bench: &mut dyn Bench,
    control: &Control,
    mut observe: impl FnMut(Progress<'_>) -> Result<(), LabError>,
) -> Result<Finished, LabError> {
    let settings = &verification.settings;
    if verification.runs == 0 {
        return Err(LabError::NoRuns);
    }
    if settings.is_empty() {
        return Err(LabError::NoSettings);
    }
    // Whatever is not taken is told before anything runs.
    let values: Vec<_> = settings.iter().map(|own| bench.set(&own.setting)).collect::<Result<_, _>>()?;
    let header = verification.header(DeviceRecord { values, ..bench.device() });
    observe(Progress::Record(&Record::Header(Box::new(header.clone()))))?;
    let mut records = Records::new(header);
    let of = settings.len() * verification.runs as usize;
    let mut turn = 0;
    for run in 0..verification.runs {
        let seed = run_seed(verification.seed, run);
        for setting in verification.order(run) {
            if control.is_stopping() {
                return Ok(Finished { records, interrupted: true });
            }
            let Some(mut result) = run_undisturbed(bench, &settings[setting], seed, control, &mut observe)? else {
                return Ok(Finished { records, interrupted: true });
            };
            counts(&result, verification.warm_up_ns)?;
            if turn == 0 {
                knows(&verification.goals, &result, &verification.workload.name)?;
            }
            let timeline = result.io_timeline.take().filter(|_| run == 0).map(|io| Timeline::from(*io));
            let timeline =
                timeline.map(|timeline| Record::Timeline(Box::new(TimelineRecord { device: 0, setting, timeline })));
            let record = Record::Run(Box::new(RunRecord { device: 0, setting, run, seed, turn: Some(turn), result }));
            turn += 1;
            for record in std::iter::once(record).chain(timeline) {
                observe(Progress::Record(&record))?;
                records.add(record);
            }
            observe(Progress::Done { done: turn as usize, of })?;
        }
        if is_sure(verification, &records) {
            break;
        }
    }
    Ok(Finished { records, interrupted: false })
}

/// A run under its setting from the beginning to the end; `None` if it was ended.
fn run_undisturbed(
    bench: &mut dyn Bench,
    own: &SettingRecord,
    seed: u64,
    control: &Control,
    observe: &mut dyn FnMut(Progress<'_>) -> Result<(), LabError>,
) -> Result<Option<RunResult>, LabError> {
    for runs in 1.. {
        bench.set(&own.setting)?;
        let Some(result) = bench.run(seed, control.aborted())? else { break };
        let changes = bench.foreign();
        if changes.is_empty() {
            return Ok(Some(result));
        }
        if runs == DISTURBED_MAX {
            return Err(VerifyError::Disturbed { setting: own.label.clone(), changes, runs }.into());
        }
        observe(Progress::Discarded { setting: &own.label, changes: &changes })?;
        if control.is_stopping() {
            break;
        }
    }
    Ok(None)
}

fn is_sure(verification: &Verification, records: &Records) -> bool {
    let (Some(percent), Some(device)) = (verification.until_sure_percent, records.on(0)) else { return false };
    unclear(&Results::of(device), percent).is_empty()
}

#[cfg(test)]
mod tests;
