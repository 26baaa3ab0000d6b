//! The sustained limits of a device: in the long probes, the rate falls once and stays low.

use iosched_disk::{CreditsConfig, CreditsOf, CreditsUnit};

use crate::calibrate::evidence::{Evidence, Measured};
use crate::calibrate::probe::Role;

/// Least number of parts after the fall that show that the rate stays low.
const BEHIND_MIN: usize = 3;
/// Least ratio of the slowest part before the fall to the fastest part after it.
const FALL_MIN: f64 = 1.25;
/// Least I/O size at which credits count bytes instead of I/Os.
const LARGE_BYTES: u32 = 32 * 1024;
/// Largest relative difference of two rates that come from the same bucket.
const SAME: f64 = 0.1;

/// A fall of the rate.
#[derive(Clone, Copy, Debug)]
struct Fall {
    /// Number of I/Os before the fall in excess of the I/Os that the sustained rate allows.
    saved: f64,
    /// I/Os per second after the fall.
    iops: f64,
}

/// Returns the credit buckets that the measurements show.
pub(super) fn credits(evidence: &Evidence) -> Vec<CreditsConfig> {
    let mut found: Vec<CreditsConfig> = evidence.of_role(Role::Steady).filter_map(bucket).collect();
    // Reads and writes can share a bucket.
    while let Some((i, j)) = alike(&found) {
        found[i].of = CreditsOf::All;
        found.remove(j);
    }
    found
}

fn alike(found: &[CreditsConfig]) -> Option<(usize, usize)> {
    let pairs = (0..found.len()).flat_map(|i| (i + 1..found.len()).map(move |j| (i, j)));
    let ratio = |i: usize, j: usize| found[i].per_second as f64 / found[j].per_second as f64;
    pairs.into_iter().find(|&(i, j)| found[i].unit == found[j].unit && (ratio(i, j) - 1.0).abs() < SAME)
}

fn bucket(measured: &Measured) -> Option<CreditsConfig> {
    let fall = fall(measured)?;
    let (unit, each) = match measured.probe.bytes {
        bytes if bytes < LARGE_BYTES => (CreditsUnit::Ios, 1.0),
        bytes => (CreditsUnit::Bytes, f64::from(bytes)),
    };
    Some(CreditsConfig {
        of: if measured.probe.writes() { CreditsOf::Writes } else { CreditsOf::Reads },
        unit,
        per_second: ((fall.iops * each) as u64).max(1),
        saved: ((fall.saved * each) as u64).max(1),
    })
}

/// Returns the fall, if the rate fell once and stayed low.
fn fall(measured: &Measured) -> Option<Fall> {
    let parts = &measured.summary.parts;
    // The part during which the rate falls is not compared with other parts.
    let at = (1..parts.len().checked_sub(BEHIND_MIN)?).find(|&at| {
        let slowest = parts[..at].iter().map(|part| part.iops()).fold(f64::INFINITY, f64::min);
        let fastest = parts[at + 1..].iter().map(|part| part.iops()).fold(0.0, f64::max);
        slowest > fastest * FALL_MIN && parts[at].iops() < slowest
    })?;
    let behind = &parts[at + 1..];
    let iops = behind.iter().map(|part| part.ios).sum::<u64>() as f64 * 1e9
        / behind.iter().map(|part| part.counted_ns).sum::<u64>().max(1) as f64;
    let before = &parts[..=at];
    let ios: u64 = before.iter().map(|part| part.ios).sum();
    let ns: u64 = before.iter().map(|part| part.counted_ns).sum::<u64>() + measured.summary.span.warm_up_ns;
    // The I/Os of the warm-up also used credits. Their rate is assumed to be the rate of the first
    // part.
    let ios = ios as f64 + parts[0].iops() * measured.summary.span.warm_up_ns as f64 / 1e9;
    let saved = ios - iops * ns as f64 / 1e9;
    (saved > 0.0).then_some(Fall { saved, iops })
}
