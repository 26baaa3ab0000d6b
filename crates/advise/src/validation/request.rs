//! A request to run the battery on a device, a file, a directory or a model.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use iosched_disk::Profile;
use iosched_kernel::StateDirectory;
use iosched_lab::Control;
use iosched_lab::request::ns;
use iosched_lab::verify::scheduled_disk;

use super::error::ValidationError;
use super::measure::{MODEL_SCHEDULERS, Progress, measure_device, measure_model};
use super::records::{Header, Measured};
use crate::calibrate::{Measurer as _, Place, Target, is_model, open_device};

/// A request for a validation: the target, the schedulers, and the number and duration of runs.
#[derive(Clone, Debug)]
pub struct ValidationRequest {
    /// A block device, a file, a directory, or the name of a profile that replaces the device.
    pub target: String,
    /// The same device, if the runs may destroy its data.
    pub destroy_data: Option<PathBuf>,
    /// Size of the file in a directory, MiB.
    pub file_size_mib: u64,
    /// Schedulers of the runs. If empty, all schedulers that the device offers now.
    pub schedulers: Vec<String>,
    /// Runs of each workload under each scheduler.
    pub runs: u32,
    /// Measured time of each run, s.
    pub run_for_s: f64,
    /// Seed of the places of random I/Os and of the order of runs.
    pub seed: u64,
}

impl ValidationRequest {
    /// Creates a request with the defaults of `iosched validate`.
    #[must_use]
    pub fn new(target: &str) -> Self {
        Self {
            target: target.to_owned(),
            destroy_data: None,
            file_size_mib: 4096,
            schedulers: Vec::new(),
            runs: 3,
            run_for_s: 1.5,
            seed: 1,
        }
    }

    /// Runs every workload with every scheduler. `command` returns the command line that repeats
    /// the plan. Ends early if `control` is interrupted.
    ///
    /// # Errors
    /// The target cannot be used, a run fails, or a setting cannot be restored.
    pub fn measure(
        &self,
        control: &Control,
        command: impl FnOnce(&Header) -> String,
        observe: impl FnMut(Progress<'_>),
    ) -> Result<Measured, ValidationError> {
        let plan = |target: Target, offered: &[String]| {
            let mut header = Header::of(target, offered, &self.schedulers, self.runs, self.seed, ns(self.run_for_s))?;
            header.command = command(&header);
            Ok::<_, ValidationError>(header)
        };
        if is_model(&self.target) {
            if self.destroy_data.is_some() {
                let problem = "--destroy-data is only for block devices; a model has no data";
                return Err(ValidationError::Wrong(problem.to_owned()));
            }
            let device = Profile::load(&self.target)?;
            let target = Target::of_card(device.name(), device.card());
            let header = plan(target, &MODEL_SCHEDULERS.map(str::to_owned))?;
            return measure_model(&header, &device, control, observe);
        }
        let never = AtomicBool::new(false);
        let destroy_data = self.destroy_data.as_deref();
        let place = Place { name: &self.target, destroy_data, file_size_mib: self.file_size_mib };
        let opened = open_device(&place, &never)?;
        let disk = scheduled_disk(opened.place(), &self.target, None)?;
        let header = plan(opened.target().clone(), &disk.schedulers())?;
        measure_device(&header, opened.place(), &StateDirectory::usual()?, control, observe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validation_runs_on_a_model_in_place_of_a_device() {
        let request = ValidationRequest {
            schedulers: vec!["none".to_owned()],
            runs: 2,
            run_for_s: 0.01,
            ..ValidationRequest::new("nvme")
        };
        let measured = request.measure(&Control::new(1), |header| header.target.name.clone(), |_| {}).unwrap();
        assert_eq!((measured.header.command.as_str(), measured.runs.len()), ("nvme", measured.header.runs()));
    }

    #[test]
    fn missing_target_is_a_place_error() {
        let request = ValidationRequest::new("/no/such/place");
        let error = request.measure(&Control::new(1), |_| String::new(), |_| {}).unwrap_err();
        assert!(matches!(error, ValidationError::Place(_)), "{error:?}");
    }
}
