//! The search for parameters that no probe shows directly: one parameter at a time, downhill.

use iosched_disk::{Model, Profile};

use crate::calibrate::error::CalibrateError;
use crate::calibrate::evidence::Evidence;
use crate::calibrate::probe::Role;

/// Factors by which a parameter is changed, coarse factors first.
const FACTORS: [f64; 3] = [1.4, 1.1, 1.02];
/// Largest number of steps with one factor and direction.
const STEPS_MAX: u32 = 12;

/// A search for the best configuration.
pub(super) struct Search<'a, C> {
    evidence: &'a Evidence,
    model: fn(C) -> Model,
    roles: Vec<Role>,
    best: C,
    miss: f64,
}

impl<'a, C: Clone + PartialEq> Search<'a, C> {
    /// Creates a search that starts with `start` and uses the probes of `roles`.
    pub(super) fn new(
        evidence: &'a Evidence,
        model: fn(C) -> Model,
        start: C,
        roles: &[Role],
    ) -> Result<Self, CalibrateError> {
        let mut search = Self { evidence, model, roles: roles.to_vec(), best: start, miss: f64::INFINITY };
        search.miss = search.miss_of(&search.best)?;
        Ok(search)
    }

    /// Uses the probes of `roles` from now on.
    pub(super) fn judged_by(&mut self, roles: &[Role]) -> Result<&mut Self, CalibrateError> {
        self.roles = roles.to_vec();
        self.miss = self.miss_of(&self.best)?;
        Ok(self)
    }

    /// Returns the distance of `candidate` from the probes, infinite for invalid parameters.
    fn miss_of(&self, candidate: &C) -> Result<f64, CalibrateError> {
        match Profile::of("fit", "", (self.model)(candidate.clone()), Vec::new()) {
            Ok(profile) => self.evidence.miss(&profile, &self.roles),
            Err(_) => Ok(f64::INFINITY),
        }
    }

    /// Takes `candidate` if it is better, and returns whether it is.
    fn try_one(&mut self, candidate: C) -> Result<bool, CalibrateError> {
        if candidate == self.best {
            return Ok(false);
        }
        let miss = self.miss_of(&candidate)?;
        let is_better = miss < self.miss;
        if is_better {
            (self.best, self.miss) = (candidate, miss);
        }
        Ok(is_better)
    }

    /// Tries each of `values` in the best configuration so far.
    pub(super) fn among<T: Copy>(
        &mut self,
        values: &[T],
        set: impl Fn(&mut C, T),
    ) -> Result<&mut Self, CalibrateError> {
        let start = self.best.clone();
        for &value in values {
            let mut candidate = start.clone();
            set(&mut candidate, value);
            self.try_one(candidate)?;
        }
        Ok(self)
    }

    /// Multiplies a parameter by each factor, and by the inverse of each factor, for as long as the
    /// fit improves.
    pub(super) fn scale(&mut self, scale: impl Fn(&mut C, f64)) -> Result<&mut Self, CalibrateError> {
        for factor in FACTORS {
            for factor in [factor, 1.0 / factor] {
                for _ in 0..STEPS_MAX {
                    let mut candidate = self.best.clone();
                    scale(&mut candidate, factor);
                    if !self.try_one(candidate)? {
                        break;
                    }
                }
            }
        }
        Ok(self)
    }

    /// Returns the best configuration so far.
    pub(super) const fn best(&self) -> &C {
        &self.best
    }

    /// Returns the distance of the best configuration from the measurements.
    pub(super) const fn miss(&self) -> f64 {
        self.miss
    }

    /// Applies `change` to the best configuration, whether the fit improves or not.
    pub(super) fn set(&mut self, change: impl Fn(&mut C)) -> Result<&mut Self, CalibrateError> {
        change(&mut self.best);
        self.miss = self.miss_of(&self.best)?;
        Ok(self)
    }

    /// Returns the best configuration.
    pub(super) fn into_best(self) -> C {
        self.best
    }
}

/// Multiplies a number by a factor.
pub(super) fn times(value: u64, factor: f64) -> u64 {
    (value as f64 * factor).round() as u64
}
