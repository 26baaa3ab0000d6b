//! Formats numbers with as many digits as are meaningful.

pub use iosched_trace::grouped;

/// Number of digits after the decimal point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimals(pub usize);

/// Largest number of decimals. More decimals, such as fractions of a microsecond, are of no use to
/// a reader.
const DECIMALS_MAX: usize = 3;

/// Returns the number of decimals that show `digits` significant digits of `value`. Returns 0 for
/// the value 0.
fn decimals_for(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let exponent = value.abs().log10().floor() as i32;
    usize::try_from(digits - 1 - exponent).unwrap_or(0).min(DECIMALS_MAX)
}

impl Decimals {
    /// Returns the number of decimals for each mean in a row of means with deviations. The number
    /// is enough for three significant digits of the smallest mean. A mean has fewer decimals if
    /// this number would show more than two significant digits of its deviation, or more than four
    /// significant digits of the mean.
    #[must_use]
    pub fn row(cells: &[(f64, Option<f64>)]) -> Vec<Self> {
        let wanted = cells.iter().map(|&(mean, _)| decimals_for(mean, 3)).max().unwrap_or(0);
        let decimals_of_cell = |&(mean, sd): &(f64, Option<f64>)| {
            let worth = sd.filter(|&sd| sd > 0.0).map_or(DECIMALS_MAX, |sd| decimals_for(sd, 2));
            let most = if mean == 0.0 { wanted } else { decimals_for(mean, 4) };
            Self(wanted.min(worth).min(most))
        };
        cells.iter().map(decimals_of_cell).collect()
    }

    /// Returns the largest number of decimals that [`row`](Self::row) gives, for tables in which
    /// all cells have the same number of decimals.
    #[must_use]
    pub fn of(cells: &[(f64, Option<f64>)]) -> Self {
        Self(Self::row(cells).into_iter().map(|decimals| decimals.0).max().unwrap_or(0))
    }

    /// Formats `value` with this number of decimals.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        let text = format!("{value:.*}", self.0);
        // "-0.00" would suggest a negative value.
        if text.starts_with('-') && text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.')) {
            text[1..].to_owned()
        } else {
            text
        }
    }
}

/// Formats `value` with `digits` significant digits, and all digits before the point.
#[must_use]
pub fn significant(value: f64, digits: i32) -> String {
    let decimals = decimals_for(value, digits);
    let shown = Decimals(decimals).show(value);
    // 9.98 rounds to 10.0, which has one digit too many.
    let rounded = shown.parse().map_or(decimals, |rounded| decimals_for(rounded, digits));
    if rounded < decimals { Decimals(rounded).show(value) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([grouped(1), grouped(999), grouped(1000), grouped(1_234_567)], ["1", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn digits_follow_the_smallest_mean_and_each_deviation() {
        let show = |cells: &[(f64, Option<f64>)]| {
            let decimals = Decimals::row(cells);
            cells.iter().zip(decimals).map(|(cell, decimals)| decimals.show(cell.0)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(show(&[(3.1234, Some(0.0234)), (2.9, Some(0.03))]), "3.12 2.90");
        assert_eq!(show(&[(2.861, Some(0.52)), (22.49, Some(10.28))]), "2.86 22");
        assert_eq!(show(&[(0.996, Some(0.001)), (1.0021, Some(0.001))]), "0.996 1.002");
        assert_eq!(show(&[(0.93, Some(0.0)), (0.41, None)]), "0.930 0.410");
        assert_eq!(show(&[(12_345.6, None)]), "12346");
        assert_eq!(show(&[(0.0, Some(0.0)), (0.5, None)]), "0.000 0.500");
    }

    #[test]
    fn small_numbers_keep_their_digits_and_zero_has_no_sign() {
        assert_eq!(significant(0.0623, 2), "0.062");
        assert_eq!(significant(6.23, 2), "6.2");
        assert_eq!(significant(9.98, 2), "10");
        assert_eq!(significant(0.0, 2), "0");
        assert_eq!(significant(1234.5, 2), "1234");
        assert_eq!(Decimals(2).show(-0.001), "0.00");
    }
}
