//! The length of runs.

use clap::Args;
use iosched_lab::request::ns;
use iosched_lab::verify::Limits;

use super::{seconds, seconds_above_0};

/// How long each run is, and from when it counts, in simulation and on real devices.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct RunLength {
    /// Length of each run after the warm-up [default: the workload decides]
    #[arg(long, value_name = "SECONDS", help_heading = None, value_parser = seconds_above_0)]
    run_for: Option<f64>,

    /// Seconds at the start of each run that do not count in any result
    #[arg(long, value_name = "SECONDS", help_heading = None, default_value = "0", value_parser = seconds)]
    warm_up: f64,
}

impl RunLength {
    /// Returns the limits in ns.
    pub(crate) fn limits(self) -> Limits {
        Limits { warm_up_ns: ns(self.warm_up), run_for_ns: self.run_for.map(ns) }
    }

    /// Returns the warm-up, and the length of runs after it if it was given, s.
    pub(crate) const fn seconds(self) -> (f64, Option<f64>) {
        (self.warm_up, self.run_for)
    }

    pub(crate) const fn is_default(self) -> bool {
        self.run_for.is_none() && self.warm_up == 0.0
    }
}
