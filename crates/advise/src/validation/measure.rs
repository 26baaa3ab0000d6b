//! Runs every workload with every scheduler several times, on the device or on a model of a device.

use iosched::{Registry, SECTOR_BYTES, Setting};
use iosched_disk::Profile;
use iosched_kernel::StateDirectory;
use iosched_kernel::checks::Finding;
use iosched_kernel::target::Target as KernelTarget;
use iosched_lab::verify::{RealComparison, Work};
use iosched_lab::{Control, Progress as LabProgress, Record};

use super::error::ValidationError;
use super::judge::simulate;
use super::records::{FORMAT, Header, Measured, Outcome, Run};
use crate::calibrate::Target;

/// Schedulers that a modelled device is measured with.
pub(super) const MODEL_SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];
/// Divisor of the measured time of a run. The result is the warm-up of the run.
const WARM_UP: u64 = 5;

/// An event of a validation.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// The plan. This is the first event.
    Header(&'a Header),
    /// A trial begins.
    Begins {
        /// Name of the trial.
        trial: &'static str,
    },
    /// A run is complete.
    Run(&'a Run),
    /// Other programs use the device or the CPUs.
    Load(&'a Finding),
    /// A warning for the user.
    Warning(&'a str),
}

impl Header {
    /// Creates the plan of a validation on `target`, which offers the schedulers `offered`. If
    /// `named` is empty, the plan has all offered schedulers.
    ///
    /// # Errors
    /// The target does not offer a scheduler, or iosched cannot predict one.
    pub fn of(
        target: Target,
        offered: &[String],
        named: &[String],
        rounds: u32,
        seed: u64,
        measured_ns: u64,
    ) -> Result<Self, ValidationError> {
        let wrong = |problem| Err(ValidationError::Wrong(problem));
        let named = named.iter().map(|name| name.trim().to_owned());
        let schedulers: Vec<String> = if named.len() == 0 { offered.to_vec() } else { named.collect() };
        if schedulers.is_empty() {
            return wrong(format!("{}: this device has no scheduler of its own", target.name));
        }
        if let Some(name) = schedulers.iter().find(|name| !offered.contains(name)) {
            let offered = offered.join(", ");
            return wrong(format!(
                "--scheduler {name}: the device {} does not offer this scheduler now; it offers {offered}",
                target.name
            ));
        }
        if let Some(name) = schedulers.iter().find(|name| Registry::linux().get(name).is_err()) {
            return wrong(format!(
                "--scheduler {name}: iosched does not have this scheduler, so iosched cannot predict results for it"
            ));
        }
        Ok(Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: String::new(),
            target,
            schedulers,
            rounds,
            seed,
            warm_up_ns: measured_ns / WARM_UP,
            measured_ns,
        })
    }

    /// Returns the total number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.trials().len() * self.schedulers.len() * self.rounds as usize
    }

    fn bytes(&self) -> u64 {
        self.target.capacity_sectors * SECTOR_BYTES
    }
}

/// Runs the trials on a model instead of the device. Ends early if `control` is interrupted.
///
/// # Errors
/// A run fails.
pub(super) fn measure_model(
    header: &Header,
    device: &Profile,
    control: &Control,
    mut observe: impl FnMut(Progress<'_>),
) -> Result<Measured, ValidationError> {
    observe(Progress::Header(header));
    let mut measured = Measured::new(header.clone());
    for (number, trial) in header.trials().iter().enumerate() {
        observe(Progress::Begins { trial: trial.name });
        for round in 0..header.rounds {
            for (scheduler, name) in header.schedulers.iter().enumerate() {
                if control.is_stopping() {
                    return Ok(measured);
                }
                let seed = header.seed_of_run(round);
                let outcome = simulate(trial, (header.bytes(), header.span()), device, name, seed)?;
                let run = Run { trial: number, scheduler, run: round, outcome };
                observe(Progress::Run(&run));
                measured.runs.push(run);
            }
        }
    }
    Ok(measured)
}

/// Returns whether a finding before workload `number` shows load of other programs. The load
/// average of the machine shows such load only before the first workload. Later, it also contains
/// the load of iosched's own runs.
fn is_load(finding: &Finding, number: usize) -> bool {
    match finding {
        Finding::OtherLoad { .. } => true,
        Finding::LoadedCpus { .. } => number == 0,
        _ => false,
    }
}

/// Runs the trials on the target `place` with the kernel's
/// schedulers. Ends early if `control` is interrupted.
///
/// # Errors
/// The kernel rejects a setting, a run fails, or a setting cannot be restored.
pub(super) fn measure_device(
    header: &Header,
    place: &KernelTarget,
    state: &StateDirectory,
    control: &Control,
    mut observe: impl FnMut(Progress<'_>),
) -> Result<Measured, ValidationError> {
    observe(Progress::Header(header));
    let mut measured = Measured::new(header.clone());
    for (number, trial) in header.trials().iter().enumerate() {
        if control.is_stopping() {
            break;
        }
        observe(Progress::Begins { trial: trial.name });
        let work = Work::Workload(trial.workload(header.bytes(), header.span()));
        let settings = header.schedulers.iter().map(|name| Setting::defaults(name));
        let comparison = RealComparison {
            runs: header.rounds,
            seed: header.seed + number as u64,
            ..RealComparison::of(work, settings, header.command.clone())
        };
        let mut bench = comparison.bench(place, state)?;
        for load in bench.findings().iter().filter(|finding| is_load(finding, number)) {
            observe(Progress::Load(load));
            measured.loads.push(load.clone());
        }
        let mut problem = None;
        comparison.run(&mut bench, control, |progress| {
            if let Some(warning) = progress.warning() {
                observe(Progress::Warning(&warning));
            }
            if let LabProgress::Record(Record::Run(record)) = progress {
                match Outcome::of(trial, &header.schedulers[record.setting], &record.result) {
                    Ok(outcome) => {
                        let run = Run { trial: number, scheduler: record.setting, run: record.run, outcome };
                        observe(Progress::Run(&run));
                        measured.runs.push(run);
                    }
                    Err(error) => problem = Some(error),
                }
            }
            Ok(())
        })?;
        problem.map_or(Ok(()), Err)?;
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(named: &[&str]) -> Result<Header, ValidationError> {
        let profile = Profile::load("nvme").unwrap();
        let target = Target::of_card(profile.name(), profile.card());
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        Header::of(target, &["none", "bfq2"].map(str::to_owned), &named, 2, 1, 1_000_000)
    }

    #[test]
    fn unavailable_and_unknown_schedulers_are_errors() {
        let refused = |named: &[&str]| header(named).unwrap_err().to_string();
        assert!(refused(&["bfq"]).ends_with("does not offer this scheduler now; it offers none, bfq2"));
        assert!(refused(&[]).starts_with("--scheduler bfq2: iosched does not have this scheduler"));
        assert_eq!(header(&[" none "]).unwrap().schedulers, ["none"]);
    }

    #[test]
    fn load_average_counts_only_before_the_first_run() {
        let loaded = Finding::LoadedCpus { load: 3.0, cpus: 2 };
        assert_eq!([is_load(&loaded, 0), is_load(&loaded, 1)], [true, false]);
        assert!(!is_load(&Finding::OneCpu, 0));
    }

    #[test]
    fn an_interrupted_validation_returns_its_runs() {
        let (header, device) = (header(&["none"]).unwrap(), Profile::load("nvme").unwrap());
        let control = Control::new(1);
        let mut events = Vec::new();
        let measured = measure_model(&header, &device, &control, |progress| {
            events.push(format!("{progress:?}").split([' ', '(']).next().unwrap_or_default().to_owned());
            if matches!(progress, Progress::Run(_)) {
                control.interrupt();
            }
        });
        assert_eq!(measured.unwrap().runs.len(), 1);
        assert_eq!(events, ["Header", "Begins", "Run"]);
    }
}
