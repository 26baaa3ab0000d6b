//! How differences are judged.

use clap::Args;
use iosched_lab::EQUAL_WITHIN_PERCENT;

use super::percent;

/// How differences are judged, and how much is told of them.
#[derive(Args, Debug)]
pub(crate) struct VerdictArgs {
    /// Differences within so many per cent of the baseline matter to nobody: settings that are no further apart for
    /// sure are equal
    #[arg(long, value_name = "PERCENT", default_value_t = EQUAL_WITHIN_PERCENT, value_parser = percent)]
    pub(crate) equal_within: f64,

    /// Print everything: all figures, every doubt, what is said of each setting and each device
    #[arg(long)]
    pub(crate) details: bool,
}
