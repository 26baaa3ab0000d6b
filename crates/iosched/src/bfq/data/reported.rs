//! What was last told of queues and tunables.

use crate::decision::BfqState;

/// What was told of each queue last, with its serial number; only kept while decisions are recorded.
#[derive(Debug, Default)]
pub(in crate::bfq) struct ReportedStates {
    pub(in crate::bfq) states: Vec<(u32, BfqState)>,
    pub(in crate::bfq) low_latency_off: bool,
    pub(in crate::bfq) strict: bool,
}
