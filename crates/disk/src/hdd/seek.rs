//! Table of seek times by distance in cylinders. It is exact for short seeks. For long seeks, it
//! interpolates linearly between close points.

use super::config::{SeekConfig, SeekPoint};

/// Distance below which each seek has an entry, cylinders.
const NEAR: u32 = 4096;
/// Longest seek that is used to derive the settle time, cylinders.
const SETTLE_CYLINDERS: u32 = 10;
/// Number of steps of the table for longer seeks.
const FAR_STEPS: u32 = 2048;

/// Seek times by distance.
#[derive(Clone, Debug)]
pub(crate) struct SeekTable {
    near: Vec<u32>,
    /// For every `1 << shift` cylinders of distance: the time, and its increase until the next
    /// entry, ns.
    far: Vec<(u32, i32)>,
    shift: u32,
}

impl SeekTable {
    /// Creates the table for a disk with this number of cylinders.
    pub(crate) fn new(config: &SeekConfig, cylinders: u32) -> Self {
        let mut shift = 0;
        while cylinders >> shift > FAR_STEPS {
            shift += 1;
        }
        let ns = |distance: u32| if distance == 0 { 0 } else { seek_ns(config, distance) };
        Self {
            near: (0..NEAR).map(ns).collect(),
            far: (0..=cylinders >> shift)
                .map(|step| (ns(step << shift), ns((step + 1) << shift)))
                .map(|(from, to)| (from, to.wrapping_sub(from) as i32))
                .collect(),
            shift,
        }
    }

    /// Returns the time to move over `distance` cylinders, ns; 0 for no distance.
    #[inline]
    pub(crate) fn ns(&self, distance: u32) -> u64 {
        if let Some(&ns) = self.near.get(distance as usize) {
            return u64::from(ns);
        }
        let (from, rise) = self.far[(distance >> self.shift) as usize];
        let part = i64::from(distance & ((1 << self.shift) - 1));
        (i64::from(from) + ((i64::from(rise) * part) >> self.shift)) as u64
    }
}

fn seek_ns(config: &SeekConfig, distance: u32) -> u32 {
    let d = f64::from(distance);
    let ns = match config {
        SeekConfig::Formula(formula) if distance <= formula.knee_cylinders => {
            formula.near_ns + formula.near_root_ns * d.sqrt()
        }
        SeekConfig::Formula(formula) => formula.far_ns + formula.far_cylinder_ns * d,
        SeekConfig::Table(points) => interpolate(points, d),
    };
    // A cast saturates, so the longest seek is 4.29 s.
    ns.round() as u32
}

/// Returns the settle time of a short seek, ns. This is the constant part of a curve that rises
/// with the square root of the distance (Ruemmler and Wilkes, 1994). For measured points, it is the
/// constant part of the best fit to the points up to ten cylinders.
pub(crate) fn settle_ns(config: &SeekConfig) -> u64 {
    let points = match config {
        SeekConfig::Formula(formula) => return formula.near_ns.round() as u64,
        SeekConfig::Table(points) => points,
    };
    let near = || points.iter().filter(|point| point.cylinders <= SETTLE_CYLINDERS);
    let count = near().count() as f64;
    let mean = |value: fn(&SeekPoint) -> f64| near().map(value).sum::<f64>() / count;
    let (root, ns) = (|point: &SeekPoint| f64::from(point.cylinders).sqrt(), |point: &SeekPoint| point.ns as f64);
    let (root_mean, ns_mean) = (mean(root), mean(ns));
    let spread: f64 = near().map(|point| (root(point) - root_mean).powi(2)).sum();
    let rise: f64 = near().map(|point| (root(point) - root_mean) * (ns(point) - ns_mean)).sum();
    let at_no_distance = if spread > 0.0 { ns_mean - rise / spread * root_mean } else { ns_mean };
    // The settle time is at most the shortest seek.
    at_no_distance.clamp(0.0, points.first().map_or(0.0, ns)).round() as u64
}

fn interpolate(points: &[SeekPoint], d: f64) -> f64 {
    let behind = points.partition_point(|point| f64::from(point.cylinders) <= d).max(1);
    let Some(to) = points.get(behind) else {
        return points.last().map_or(0.0, |last| last.ns as f64);
    };
    let from = points[behind - 1];
    let share = (d - f64::from(from.cylinders)) / f64::from(to.cylinders - from.cylinders);
    from.ns as f64 + (to.ns as f64 - from.ns as f64) * share
}

#[cfg(test)]
mod tests {
    use super::super::config::SeekFormula;
    use super::*;

    #[test]
    fn seek_table_follows_the_formula() {
        let formula = SeekFormula {
            near_ns: 800_000.0,
            near_root_ns: 20_000.0,
            knee_cylinders: 100_000,
            far_ns: 4_000_000.0,
            far_cylinder_ns: 31.0,
        };
        let config = SeekConfig::Formula(formula);
        let table = SeekTable::new(&config, 347_000);
        assert_eq!(table.ns(0), 0);
        for distance in (1..347_000).step_by(37) {
            let exact = i64::from(seek_ns(&config, distance));
            // At the knee, the table smooths a corner.
            let tolerance_ns = if distance.abs_diff(100_000) < 256 { 300_000 } else { 3_000 };
            assert!((table.ns(distance) as i64 - exact).abs() < tolerance_ns, "{distance}");
        }
    }

    #[test]
    fn settle_time_is_the_seek_curve_extrapolated_to_zero() {
        let formula = SeekFormula {
            near_ns: 700_000.0,
            near_root_ns: 200_000.0,
            knee_cylinders: 100,
            far_ns: 0.0,
            far_cylinder_ns: 1.0,
        };
        let config = SeekConfig::Formula(formula);
        assert_eq!(settle_ns(&config), 700_000);
        // The same curve as points. Points at larger distances do not count.
        let points = [1, 2, 4, 9, 50].map(|cylinders| SeekPoint {
            cylinders,
            ns: if cylinders == 50 { 9_000_000 } else { u64::from(seek_ns(&config, cylinders)) },
        });
        assert!(settle_ns(&SeekConfig::Table(points.to_vec())).abs_diff(700_000) < 10);
        assert_eq!(settle_ns(&SeekConfig::Table(points[..1].to_vec())), 900_000);
        let falling = [SeekPoint { cylinders: 1, ns: 5 }, SeekPoint { cylinders: 9, ns: 1 }];
        assert_eq!(settle_ns(&SeekConfig::Table(falling.to_vec())), 5, "not more than the shortest seek");
    }

    #[test]
    fn a_measured_curve_passes_through_its_points() {
        let point = |cylinders, ns| SeekPoint { cylinders, ns };
        let config = SeekConfig::Table(vec![point(1, 1000), point(3, 2000), point(5000, 9000)]);
        let table = SeekTable::new(&config, 6000);
        assert_eq!([1, 2, 3, 5999].map(|d| table.ns(d)), [1000, 1500, 2000, 9000]);
    }
}
