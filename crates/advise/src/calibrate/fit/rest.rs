//! The cost of a rest: reads after pauses have a longer latency than reads without pauses.

use iosched_disk::{QuantilePoint, RestConfig};

use super::{below, mean_ns, single};
use crate::calibrate::evidence::Evidence;
use crate::calibrate::probe::Role;

/// Shares of the distribution at which the cost is stored.
const SHARES: [f64; 11] = [0.0, 0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99, 1.0];
/// Least cost that counts, as a share of a read's latency.
const SHARE_MIN: f64 = 0.1;

/// Returns the cost of a rest, if there is any. Only latencies below `below_ns` count, because
/// longer latencies have other causes.
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
