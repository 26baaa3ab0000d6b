//! Last reported states of queues and tunables.

use crate::decision::BfqState;

/// Last reported state of each queue, with the queue's serial number.
/// Filled only while decisions are recorded.
#[derive(Debug, Default)]
pub(in crate::bfq) struct ReportedStates {
    pub(in crate::bfq) states: Vec<(u32, BfqState)>,
    pub(in crate::bfq) low_latency_off: bool,
    pub(in crate::bfq) strict: bool,
}
