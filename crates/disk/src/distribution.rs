//! Measured distributions. For each of several times, they give the share of commands that take at
//! most this time.

use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, within};

/// Largest number of points of a distribution.
const POINTS_MAX: usize = 256;

/// A point of a distribution, written `[share, ns]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, u64)", into = "(f64, u64)")]
pub struct QuantilePoint {
    /// Share of the commands that take at most `ns`, 0 to 1, strictly increasing.
    pub share: f64,
    /// Time, ns, up to a thousand seconds, not decreasing.
    pub ns: u64,
}

impl From<(f64, u64)> for QuantilePoint {
    fn from((share, ns): (f64, u64)) -> Self {
        Self { share, ns }
    }
}

impl From<QuantilePoint> for (f64, u64) {
    fn from(point: QuantilePoint) -> Self {
        (point.share, point.ns)
    }
}

/// Returns the value of a distribution at `share`, ns, by linear interpolation. Returns 0 without
/// points.
pub(crate) fn at(points: &[QuantilePoint], share: f64) -> f64 {
    let behind = points.partition_point(|point| point.share <= share).clamp(1, points.len().max(2) - 1);
    let (Some(from), Some(to)) = (points.get(behind - 1), points.get(behind)) else { return 0.0 };
    let part = ((share - from.share) / (to.share - from.share)).clamp(0.0, 1.0);
    from.ns as f64 + (to.ns - from.ns) as f64 * part
}

/// Checks that points are a distribution. An empty list is valid.
pub(crate) fn validate(field: &str, points: &[QuantilePoint]) -> Result<(), ConfigError> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Ok(()) };
    within(&format!("{field}: number of points"), points.len(), 2..=POINTS_MAX)?;
    for point in points {
        within(&format!("{field}.share"), point.share, 0.0..=1.0)?;
        within(&format!("{field}.ns"), point.ns, 0..=config::LATENCY_NS_MAX)?;
    }
    let rises = points.windows(2).all(|pair| pair[0].share < pair[1].share && pair[0].ns <= pair[1].ns);
    if first.share != 0.0 || last.share != 1.0 || !rises {
        let problem = "the points do not form a distribution";
        return Err(ConfigError::new(field, problem, "shares must increase from 0 to 1, and times must not decrease"));
    }
    Ok(())
}
