//! The states of queues and tunables that were reported last.

use crate::decision::BfqState;

/// The state reported last for each queue, with the queue's serial number; kept only while decisions are recorded.
#[derive(Debug, Default)]
pub(in crate::bfq) struct ReportedStates {
    pub(in crate::bfq) states: Vec<(u32, BfqState)>,
    pub(in crate::bfq) low_latency_off: bool,
    pub(in crate::bfq) strict: bool,
}
