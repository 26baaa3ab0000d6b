//! What was found on the way to advice.

use iosched_advise::calibrate::{Calibration, Measurements};
use iosched_advise::tune::{TuneResults, Tuned};
use iosched_advise::{Advice, Confirmed};
use iosched_disk::Profile;
use iosched_kernel::settings::{Lasting, Recorded};
use iosched_lab::Records;

/// What was found, step by step.
pub(crate) struct Found {
    /// What was set on the device.
    pub(crate) present: Recorded,
    /// What the model was made of; `None` if it was given.
    pub(crate) calibration: Option<(Measurements, Calibration)>,
    /// The model.
    pub(crate) profile: Profile,
    /// The search on it.
    pub(crate) search: Tuned,
    /// Runs on the device.
    pub(crate) records: Records,
    /// What they say of the search.
    pub(crate) confirmed: Confirmed,
    /// Whether it was ended early.
    pub(crate) interrupted: bool,
}

impl Found {
    /// What follows from it.
    pub(crate) fn advice(&self) -> Advice<'_> {
        let present = self.present.setting().map_or_else(|_| self.present.scheduler.clone(), |own| own.to_string());
        let fits = self.profile.fit().map(|fit| fit.fits);
        let predicted = TuneResults::of(&self.search.header, &self.search.runs);
        Advice::of(present, fits, predicted, &self.confirmed)
    }

    /// The page.
    pub(crate) fn page(&self, advice: &Advice<'_>, lasting: Option<&Lasting>, untried: Option<&Lasting>) -> String {
        let calibration = self.calibration.as_ref().map(|(measurements, calibration)| (measurements, calibration));
        iosched_report::advice_html(advice, &self.records, calibration, lasting, untried)
    }
}
