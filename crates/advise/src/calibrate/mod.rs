//! Calibration: measures a device and fits a model to the measurements.
//!
//! A [`Measurer`] runs a list of [probes], small fio jobs, on a real device or on a model in
//! virtual time. Tests of the calibration use a model. The results are stored as [`Measurements`].
//! [`Calibration::of`] fits models of several kinds to the measurements and chooses the nearest
//! model. Then it compares this model with the probes, and with workloads that no fit used.

mod device;
mod error;
mod evidence;
mod fit;
mod measure;
mod measurer;
mod place;
mod probe;
mod records;
mod summary;
mod table;
mod target;
mod trace;
mod verdict;
mod write;

use iosched_disk::{Model, Profile};

pub use device::Device;
pub use error::{CalibrateError, FORMAT};
use evidence::{Evidence, WEIGHTS};
pub use evidence::{Pair, Quantity, Residual};
pub use measure::{Pace, Progress, measure};
pub use measurer::{Measurer, Simulated};
pub use place::{
    FILE_SIZE_MIB, FILE_SIZE_MIB_DEFAULT, Place, PlaceError, check_room, is_model, open_device, size_option,
};
pub use probe::{Probe, Role, Span, probes};
pub use records::{Header, Measurements, Part, Sample, write_header, write_sample};
pub use summary::{Spread, Summary};
pub use table::{Table, TableRow};
pub use target::Target;
pub use trace::{ReadAheadFound, TraceFit, find_read_ahead, fit_trace};
pub use verdict::{NOISY, Verdict, WITHIN};
pub(crate) use verdict::{covered_percent, off};

/// A kind of model that can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A rotating disk.
    Hdd,
    /// Flash.
    Ssd,
    /// Servers behind one queue.
    Server,
    /// Random draws from the measured distributions.
    Empirical,
}

impl Kind {
    /// All kinds of models that a calibration fits.
    pub const ALL: [Self; 4] = [Self::Hdd, Self::Ssd, Self::Server, Self::Empirical];

    /// Returns the name of the kind in profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::Ssd => "ssd",
            Self::Server => "server",
            Self::Empirical => "empirical",
        }
    }
}

/// A kind of model, with the mean relative distance of its best model from the probes. The error is
/// the reason why this kind was not tried.
pub type Tried = (&'static str, Result<f64, &'static str>);

/// A model of a device, and the quality of its fit.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The model as a profile. Its anchors are measured values.
    pub profile: Profile,
    /// Result of each kind of model.
    pub kinds: Vec<Tried>,
    /// The probes, measured and modelled.
    pub residuals: Vec<Residual>,
    /// The workloads that the fit did not use, measured and modelled.
    pub held_out: Vec<Residual>,
    /// The judgement of the fit.
    pub verdict: Verdict,
}

impl Calibration {
    /// Fits every kind of model, or only `only`, and takes the model that is nearest to the
    /// measurements. `name` becomes the profile's name. The same measurements give the same model.
    ///
    /// # Errors
    /// There are too few measurements, or the device cannot be of the kind `only`.
    pub fn of(measurements: &Measurements, name: &str, only: Option<Kind>) -> Result<Self, CalibrateError> {
        let evidence = Evidence::of(measurements);
        let profile_of = |model: Model| {
            let about = write::about(&measurements.header.target, &model);
            let anchors = write::anchors(measurements, &model);
            Profile::of(name, &about, model, anchors).map_err(CalibrateError::from)
        };
        let kinds = Kind::ALL.into_iter().filter(|&kind| only.is_none_or(|only| only == kind));
        Self::nearest(&evidence, kinds, profile_of)
    }

    /// Kinds that can be fitted to a table.
    pub const OF_TABLES: [Kind; 2] = [Kind::Ssd, Kind::Server];

    /// Fits the kinds that a table can show, or only `only`, and takes the nearest model by least
    /// squares. The profile lists the rows that the fit used. `target` has the size of the device.
    ///
    /// # Errors
    /// The table has no random reads, or `only` cannot be fitted to a table.
    pub fn of_table(table: &Table, target: &Target, name: &str, only: Option<Kind>) -> Result<Self, CalibrateError> {
        let kinds: Vec<Kind> =
            Self::OF_TABLES.into_iter().filter(|&kind| only.is_none_or(|only| only == kind)).collect();
        if kinds.is_empty() {
            let reason = format!("a table shows only {}", Self::OF_TABLES.map(Kind::name).join(" and "));
            return Err(CalibrateError::NoKind { reason });
        }
        let measured = table.measured(target.capacity_sectors)?;
        let evidence = Evidence::of_table(target.clone(), measured);
        let profile_of = |model: Model| {
            let about = write::about(target, &model);
            Profile::of(name, &about, model, Vec::new()).map_err(CalibrateError::from)
        };
        let mut calibration = Self::nearest(&evidence, kinds.into_iter(), profile_of)?;
        let (fitted_to, assumed) = write::lists(table, calibration.profile.model());
        calibration.profile = calibration.profile.listing(fitted_to, assumed);
        Ok(calibration)
    }

    /// Returns the rows of a table that the fit of `profile` did not use, with measured and
    /// simulated values.
    ///
    /// # Errors
    /// The profile cannot run a row.
    pub fn unused_rows(table: &Table, profile: &Profile) -> Result<Vec<Residual>, CalibrateError> {
        let is_used = |row: &TableRow| profile.fitted_to().iter().any(|entry| entry.ends_with(&write::row(row)));
        let rows = table.rows.iter().filter(|row| !is_used(row)).copied().collect();
        let table = Table { file: table.file.clone(), rows };
        let target = Target::of_card(profile.name(), profile.card());
        let measured = table.measured_as(target.capacity_sectors, |_| probe::Role::HeldOut);
        Evidence::of_table(target, measured).residuals(profile, true)
    }

    /// Fits `kinds` and takes the nearest model.
    fn nearest(
        evidence: &Evidence,
        kinds: impl Iterator<Item = Kind>,
        profile_of: impl Fn(Model) -> Result<Profile, CalibrateError>,
    ) -> Result<Self, CalibrateError> {
        let mut tried = Vec::new();
        let mut best: Option<(f64, Profile, Vec<Residual>)> = None;
        // An empirical model repeats the probes exactly. Therefore, only probes that its fit did
        // not use can judge the model.
        let repeated = |evidence: &Evidence| match fit::fit(Kind::Empirical, evidence)? {
            Ok(model) => profile_of(model),
            Err(reason) => Err(CalibrateError::Incomplete { missing: reason.to_owned() }),
        };
        for kind in kinds {
            let model = match fit::fit(kind, evidence)? {
                Ok(model) => model,
                Err(reason) => {
                    tried.push((kind.name(), Err(reason)));
                    continue;
                }
            };
            let profile = profile_of(model)?;
            let residuals = match profile.model() {
                Model::Empirical(_) => evidence.left_out(repeated)?,
                _ => evidence.residuals(&profile, false)?,
            };
            let off = evidence.distance(&residuals, WEIGHTS);
            tried.push((kind.name(), Ok(off.exp() - 1.0)));
            if best.as_ref().is_none_or(|(least, ..)| off < *least) {
                best = Some((off, profile, residuals));
            }
        }
        let Some((_, profile, residuals)) = best else {
            let reason = tried.into_iter().find_map(|(kind, fit)| Some(format!("{kind}: {}", fit.err()?)));
            return Err(CalibrateError::NoKind { reason: reason.unwrap_or_default() });
        };
        let mut calibration = Self::beside(evidence, profile, tried, residuals)?;
        let fit = verdict::fit(&calibration.verdict, &calibration.residuals, &calibration.held_out);
        calibration.profile = calibration.profile.fitted(fit);
        Ok(calibration)
    }

    /// Compares an existing profile with the measurements, without a fit.
    ///
    /// # Errors
    /// The profile cannot run the probes.
    pub fn check(measurements: &Measurements, profile: &Profile) -> Result<Self, CalibrateError> {
        let evidence = Evidence::of(measurements);
        let residuals = evidence.residuals(profile, false)?;
        let kinds = vec![(profile.model().kind(), Ok(evidence.distance(&residuals, WEIGHTS).exp() - 1.0))];
        Self::beside(&evidence, profile.clone(), kinds, residuals)
    }

    fn beside(
        evidence: &Evidence,
        profile: Profile,
        kinds: Vec<Tried>,
        residuals: Vec<Residual>,
    ) -> Result<Self, CalibrateError> {
        let held_out = evidence.residuals(&profile, true)?;
        let verdict = Verdict::of(profile.model().kind(), &residuals, &held_out);
        Ok(Self { profile, kinds, residuals, held_out, verdict })
    }

    /// Returns a sentence about a drift of rates from the first to the last round that exceeds
    /// noise, with its likely causes. `None` without drift.
    #[must_use]
    pub fn drift(&self) -> Option<String> {
        verdict::drift(&self.residuals)
    }

    /// Returns the text of the profile. It begins with comments on how the profile was made.
    ///
    /// # Errors
    /// TOML cannot represent a number of the profile.
    pub fn to_toml(&self, header: &Header) -> Result<String, toml::ser::Error> {
        Ok(write::preface(self, header) + &self.profile.to_toml()?)
    }
}
