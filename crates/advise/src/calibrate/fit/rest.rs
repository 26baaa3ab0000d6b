//! What a rest costs: how much longer reads take that come one at a time with pauses than those without.

use iosched_disk::{QuantilePoint, RestConfig};

use super::{below, mean_ns, single};
use crate::calibrate::evidence::Evidence;
use crate::calibrate::probe::Role;

/// Shares at which it is kept.
const SHARES: [f64; 11] = [0.0, 0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99, 1.0];
/// Less than so much of a read's time costs nothing.
const SHARE_MIN: f64 = 0.1;

/// The cost, if there is one, in latencies below `below_ns`: what is longer has other reasons.
pub(super) fn rest(evidence: &Evidence, below_ns: u64) -> Option<RestConfig> {
    let measured = evidence.of_role(Role::Think).next()?;
    let single = single(evidence).ok()?;
    let [slow, usual] = [&measured.summary.latency, &single.latency].map(|latency| below(latency, below_ns));
    let mut most_ns = 0;
    let extra: Vec<QuantilePoint> = SHARES
        .into_iter()
        .map(|share| {
            most_ns = slow.quantile_ns(share).saturating_sub(usual.quantile_ns(share)).max(most_ns);
            QuantilePoint { share, ns: most_ns }
        })
        .collect();
    let counts = mean_ns(&extra) > SHARE_MIN * usual.mean_ns();
    counts.then(|| RestConfig { ns: (measured.probe.think_ns / 2).max(1), extra })
}
