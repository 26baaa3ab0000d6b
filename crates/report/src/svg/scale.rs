//! Scales: the mapping of values to positions, and round values for marks.

/// Maps a domain of values to a range of positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    domain: (f64, f64),
    range: (f64, f64),
    log: bool,
}

impl Scale {
    /// Creates a linear scale. An empty domain becomes one unit wide.
    pub(crate) fn linear(domain: (f64, f64), range: (f64, f64)) -> Self {
        let (low, high) = domain;
        Self { domain: if high > low { domain } else { (low, low + 1.0) }, range, log: false }
    }

    /// Creates a logarithmic scale. The domain must be above 0.
    pub(crate) fn log(domain: (f64, f64), range: (f64, f64)) -> Self {
        let low = domain.0.max(f64::MIN_POSITIVE);
        let high = if domain.1 > low { domain.1 } else { low * 10.0 };
        Self { domain: (low, high), range, log: true }
    }

    /// Returns the position of a value. A value outside the domain has the position of the nearer
    /// end.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let (low, high) = self.domain;
        let value = value.clamp(low, high);
        let part = if self.log { (value / low).log10() / (high / low).log10() } else { (value - low) / (high - low) };
        self.range.0 + part * (self.range.1 - self.range.0)
    }

    /// Returns the domain, after any widening.
    pub(crate) const fn domain(&self) -> (f64, f64) {
        self.domain
    }
}

/// Returns round values that divide `low..=high` into about `wanted` steps, and the number of
/// decimals that they need. A step is 1, 2 or 5 times a power of ten.
pub(crate) fn ticks(low: f64, high: f64, wanted: usize) -> (Vec<f64>, usize) {
    let span = high - low;
    if span <= 0.0 || !span.is_finite() || wanted == 0 {
        return (vec![low], 0);
    }
    let rough = span / wanted as f64;
    let exponent = rough.log10().floor() as i32;
    let power = 10f64.powi(exponent);
    let step = match rough / power {
        r if r <= 1.0 => power,
        r if r <= 2.0 => 2.0 * power,
        r if r <= 5.0 => 5.0 * power,
        _ => 10.0 * power,
    };
    let decimals = if step >= 1.0 { 0 } else { (-step.log10()).ceil() as usize };
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    ((first..=last).map(|i| i as f64 * step).collect(), decimals)
}

/// Returns the end of a domain that begins at 0 and contains `max`. The end is a value of
/// [`ticks`].
pub(crate) fn nice_end(max: f64, wanted: usize) -> f64 {
    let (values, _) = ticks(0.0, max, wanted);
    let step = if values.len() > 1 { values[1] - values[0] } else { max.max(1.0) };
    let steps = (max / step - 1e-9).ceil().max(1.0);
    steps * step
}

/// Returns the powers of ten in `low..=high`. If there are few powers, also returns 2 and 5 times
/// the powers, so that there are at least two values if possible.
pub(crate) fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let within = |value: &f64| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9);
    let few = (high / low).log10() < 2.5;
    let factors: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
    decades.flat_map(|e| factors.iter().map(move |f| f * 10f64.powi(e))).filter(within).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_range() {
        assert_eq!(ticks(0.0, 10.0, 5), (vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0], 0));
        assert_eq!(ticks(0.0, 0.9, 4).1, 1);
        assert_eq!(ticks(3.0, 3.0, 4).0, vec![3.0]);
        let (values, decimals) = ticks(512.31, 512.58, 4);
        assert_eq!(decimals, 1);
        assert!(values.iter().all(|v| (512.31..=512.58).contains(v)), "{values:?}");
    }

    #[test]
    fn axis_end_is_at_least_the_maximum() {
        for max in [0.0, 0.3, 1.0, 7.2, 99.0, 101.0, 1e7] {
            let end = nice_end(max, 4);
            assert!(end >= max && end > 0.0 && end <= max * 2.0 + 1.0, "{max}: {end}");
        }
    }

    #[test]
    fn log_axis_marks_decades_and_more_for_short_ranges() {
        assert_eq!(log_ticks(1e3, 1e6), [1e3, 1e4, 1e5, 1e6]);
        let few = log_ticks(30.0, 300.0);
        assert_eq!(few.len(), 3, "{few:?}");
    }

    #[test]
    fn log_scale_maps_ends_to_ends_and_clamps_small_values() {
        let scale = Scale::log((10.0, 1000.0), (0.0, 100.0));
        assert_eq!((scale.at(10.0), scale.at(1000.0)), (0.0, 100.0));
        assert!((scale.at(100.0) - 50.0).abs() < 1e-9);
        assert_eq!(scale.at(1.0), 0.0);
    }
}
