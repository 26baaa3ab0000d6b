//! Options for the judgement of differences.

use clap::Args;
use iosched_lab::EQUAL_WITHIN_PERCENT;

use super::percent;

/// How differences are judged, and how much is told of them.
#[derive(Args, Debug)]
pub(crate) struct VerdictArgs {
    /// Largest difference that counts as equal, in percent of the baseline
    #[arg(long, value_name = "PERCENT", default_value_t = EQUAL_WITHIN_PERCENT, value_parser = percent)]
    pub(crate) equal_within: f64,

    /// Print everything: all metrics, all doubts about the result, and the details of each setting
    /// and device
    #[arg(long)]
    pub(crate) details: bool,
}
