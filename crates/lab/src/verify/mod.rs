//! Comparison of settings on a real device. The runs are in random order. Their noise comes from
//! the device and the machine, not from seeds.
//!
//! The records have the same format as the records of a simulation, so the same code computes and
//! prints the results. A [`Bench`] makes the runs. This module decides their order and number.

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

/// Stream of random numbers for the order of runs.
const ORDER_STREAM: u64 = 0x0de2;

/// Largest number of attempts at a run. An attempt fails if another program changes settings during
/// the attempt.
const DISTURBED_MAX: u32 = 4;

/// Target of runs: a device under the kernel's schedulers, with its workload.
pub trait Bench {
    /// Returns the description of the device. The caller adds the values of the settings.
    fn device(&self) -> DeviceRecord;

    /// Applies a setting to the idle device, and returns the values that are then in effect.
    ///
    /// # Errors
    /// The device does not accept the setting.
    fn set(&mut self, setting: &Setting) -> Result<Vec<ValueRecord>, VerifyError>;

    /// Makes a run without cached data of earlier runs. `interrupt` becomes true when the run must
    /// end at once. Returns `None` if the interrupt ended the run.
    ///
    /// # Errors
    /// The run cannot be completed.
    fn run(&mut self, seed: u64, interrupt: &AtomicBool) -> Result<Option<RunResult>, VerifyError>;

    /// Returns the settings that another program has changed since iosched set them.
    fn foreign(&self) -> Vec<Change>;

    /// Restores all settings, except those that another program has changed. Returns the changes of
    /// other programs.
    ///
    /// # Errors
    /// A setting cannot be restored. The message says how to restore it by hand.
    fn finish(&mut self) -> Result<Vec<Change>, VerifyError>;
}

/// Plan of a comparison on a real device.
#[derive(Clone, Debug)]
pub struct Verification {
    /// Description of the workload.
    pub workload: WorkloadRecord,
    /// The settings, without duplicates.
    pub settings: Vec<SettingRecord>,
    /// Index of the baseline in `settings`.
    pub baseline: usize,
    /// Number of runs of each setting. With `until_sure_percent`, this is the maximum.
    pub runs: u32,
    /// Seed of the comparison. The seed of every run and the order of runs follow from it.
    pub seed: u64,
    /// Replay mode of a trace.
    pub replay: Replay,
    /// Warm-up, ns: time from the start of each run that does not count.
    pub warm_up_ns: u64,
    /// Limits that end a run early.
    pub limit: Limit,
    /// Precision that ends the comparison, per cent of the baseline. It ends when every difference
    /// is clear or is known with this precision.
    pub until_sure_percent: Option<f64>,
    /// Largest difference from the baseline that counts as equal, per cent.
    pub equal_within_percent: f64,
    /// Metrics that conclusions use. If empty, conclusions use the usual metrics.
    pub goals: Vec<Goal>,
    /// Command line that produces comparable records. The records store it.
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

    /// Returns the order of settings in a round. The order is random, so that no setting always
    /// follows the same other setting.
    fn order(&self, round: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.settings.len()).collect();
        let mut rng = SplitMix64::entity(self.seed ^ ORDER_STREAM, round.into());
        for left in (1..order.len()).rev() {
            order.swap(left, rng.below(left as u64 + 1) as usize);
        }
        order
    }
}

/// Makes all runs on `bench` and passes events to `observe`. It restores all settings at the end,
/// even after an error. Stops early if `control` is interrupted, or if the results are precise
/// enough.
///
/// # Errors
/// A setting is not accepted, a run fails, `observe` fails, or a setting cannot be restored.
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
    // The first error is the cause. If a setting was not restored, this must be reported in any
    // case.
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
    // This loop finds settings that the device does not accept before the first run.
    let values: Vec<_> = settings.iter().map(|record| bench.set(&record.setting)).collect::<Result<_, _>>()?;
    let header = verification.header(DeviceRecord { values, ..bench.device() });
    observe(Progress::Record(&Record::Header(Box::new(header.clone()))))?;
    let mut records = Records::new(header);
    let total = settings.len() * verification.runs as usize;
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
            observe(Progress::Done { done: turn as usize, total })?;
        }
        if is_sure(verification, &records) {
            break;
        }
    }
    Ok(Finished { records, interrupted: false })
}

/// Makes a run during which no other program changes settings; `None` if the run was ended early.
fn run_undisturbed(
    bench: &mut dyn Bench,
    record: &SettingRecord,
    seed: u64,
    control: &Control,
    observe: &mut dyn FnMut(Progress<'_>) -> Result<(), LabError>,
) -> Result<Option<RunResult>, LabError> {
    for runs in 1.. {
        bench.set(&record.setting)?;
        let Some(result) = bench.run(seed, control.aborted())? else { break };
        let changes = bench.foreign();
        if changes.is_empty() {
            return Ok(Some(result));
        }
        if runs == DISTURBED_MAX {
            return Err(VerifyError::Disturbed { setting: record.label.clone(), changes, runs }.into());
        }
        observe(Progress::Discarded { setting: &record.label, changes: &changes })?;
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
