//! Who runs a workload on the device that is calibrated.

use iosched::Setting;
use iosched_disk::Profile;
use iosched_sim::{Plan, RunResult, SimError, run};
use iosched_workload::Workload;

use super::target::Target;

/// Runs workloads on one device.
pub trait Measurer {
    /// Why a run gives no result.
    type Error: std::error::Error + Send + Sync + 'static;

    /// What it runs them on.
    fn target(&self) -> &Target;

    /// Runs `workload` on it, alone. The same seed means the same I/Os, as far as the device allows.
    ///
    /// # Errors
    /// The device fails, or the run was ended.
    fn measure(&mut self, workload: &Workload, seed: u64) -> Result<RunResult, Self::Error>;
}

/// Measures a modelled device, in virtual time.
#[derive(Clone, Debug)]
pub struct Simulated {
    profile: Profile,
    target: Target,
}

impl Simulated {
    /// Of that profile.
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

/// A run on a model, without a scheduler.
pub(super) fn simulate(profile: &Profile, workload: &Workload, seed: u64) -> Result<RunResult, SimError> {
    run(&Plan { seed, ..Plan::new(workload, profile, Setting::defaults("none")) }, ())
}
