//! What a device allows in the long run: a rate that falls once, and stays there, in the probes that go on for long.

use iosched_disk::{CreditsConfig, CreditsOf, CreditsUnit};

use crate::calibrate::evidence::{Evidence, Measured};
use crate::calibrate::probe::Role;

/// Parts that must lie behind the fall: that it stays is seen.
const BEHIND_MIN: usize = 3;
/// Every part behind it is slower than every part before it by this much at least.
const FALL_MIN: f64 = 1.25;
/// From this size on, credits are for bytes.
const LARGE_BYTES: u32 = 32 * 1024;
/// Two kinds of commands whose rates differ by no more are paid for together.
const SAME: f64 = 0.1;

/// A fall of the rate.
#[derive(Clone, Copy, Debug)]
struct Fall {
    /// I/Os that were made beyond what is credited.
    saved: f64,
    /// I/Os a second behind it.
    iops: f64,
}

/// The buckets that the device seems to have.
pub(super) fn credits(evidence: &Evidence) -> Vec<CreditsConfig> {
    let mut found: Vec<CreditsConfig> = evidence.of_role(Role::Steady).filter_map(bucket).collect();
    // Reads and writes may be paid for from one.
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

/// The one part in which the rate fell for good.
fn fall(measured: &Measured) -> Option<Fall> {
    let parts = &measured.summary.parts;
    // The part in which it falls is neither before nor behind.
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
    // What was done in the warm-up, as fast as in the first part, was paid for as well.
    let ios = ios as f64 + parts[0].iops() * measured.summary.span.warm_up_ns as f64 / 1e9;
    let saved = ios - iops * ns as f64 / 1e9;
    (saved > 0.0).then_some(Fall { saved, iops })
}
