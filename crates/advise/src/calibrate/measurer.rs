//! Interface to the device that is calibrated.

use iosched::Setting;
use iosched_disk::Profile;
use iosched_sim::{Plan, RunResult, SimError, run};
use iosched_workload::Workload;

use super::target::Target;

/// Runs workloads on one device.
pub trait Measurer {
    /// Error of a run.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Returns the device.
    fn target(&self) -> &Target;

    /// Runs `workload` alone on the device. The same seed
    /// gives the same I/Os, as far as the device allows.
    ///
    /// # Errors
    /// The device failed, or the run was interrupted.
    fn measure(&mut self, workload: &Workload, seed: u64) -> Result<RunResult, Self::Error>;
}

/// Measures a modelled device in virtual time.
#[derive(Clone, Debug)]
pub struct Simulated {
    profile: Profile,
    target: Target,
}

impl Simulated {
    /// Creates a measurer of the device of `profile`.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        let target = Target::of_card(profile.name(), profile.card());
        Self { profile, target }
    }
}

impl Measurer for Simulated {
    type Error = SimError;

    fn target(&self) -> &Target {
        &self.target
    }

    fn measure(&mut self, workload: &Workload, seed: u64) -> Result<RunResult, SimError> {
        simulate(&self.profile, workload, seed)
    }
}

/// Runs a workload on a model, without a scheduler.
pub(super) fn simulate(profile: &Profile, workload: &Workload, seed: u64) -> Result<RunResult, SimError> {
    run(&Plan { seed, ..Plan::new(workload, profile, Setting::defaults("none")) }, ())
}
