//! Numbers for people: as many digits as they are worth.

/// Digits after the decimal point that a row of figures is shown with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimals(pub usize);

/// More than this is not worth reading.
const DECIMALS_MAX: usize = 4;

/// Decimals that show `digits` significant digits of `value`; 0 is shown as it is.
fn decimals_for(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let exponent = value.abs().log10().floor() as i32;
    usize::try_from(digits - 1 - exponent).unwrap_or(0).min(DECIMALS_MAX)
}

impl Decimals {
    /// For means with their deviations: three significant digits of the smallest mean, but no digit finer than the
    /// second of the smallest deviation that is not 0.
    #[must_use]
    pub fn of(cells: &[(f64, Option<f64>)]) -> Self {
        let wanted = cells.iter().map(|&(mean, _)| decimals_for(mean, 3)).max().unwrap_or(0);
        let deviations = cells.iter().filter_map(|&(_, sd)| sd.filter(|&sd| sd > 0.0));
        let worth = deviations.map(|sd| decimals_for(sd, 2)).max().unwrap_or(DECIMALS_MAX);
        Self(wanted.min(worth))
    }

    /// `value` with so many decimals.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        let text = format!("{value:.*}", self.0);
        // "-0.00" says something that is not so.
        if text.starts_with('-') && text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.')) {
            text[1..].to_owned()
        } else {
            text
        }
    }
}

/// `value` with `digits` significant digits, and all digits before the point.
#[must_use]
pub fn significant(value: f64, digits: i32) -> String {
    Decimals(decimals_for(value, digits)).show(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_as_exact_as_its_smallest_mean_and_deviation_allow() {
        let show = |cells: &[(f64, Option<f64>)]| Decimals::of(cells).show(cells[0].0);
        assert_eq!(show(&[(3.1234, Some(0.0234)), (2.9, Some(0.03))]), "3.12");
        assert_eq!(show(&[(61.234, Some(41.0)), (44.3, Some(30.2))]), "61");
        assert_eq!(show(&[(61.234, Some(4.1)), (44.3, Some(3.2))]), "61.2");
        assert_eq!(show(&[(0.93, Some(0.0)), (0.41, Some(0.0))]), "0.930");
        assert_eq!(show(&[(12_345.6, None)]), "12346");
        assert_eq!(show(&[(0.0, Some(0.0))]), "0");
    }

    #[test]
    fn small_numbers_keep_their_digits_and_zero_has_no_sign() {
        assert_eq!(significant(0.0623, 2), "0.062");
        assert_eq!(significant(6.23, 2), "6.2");
        assert_eq!(significant(1234.5, 2), "1234");
        assert_eq!(Decimals(2).show(-0.001), "0.00");
    }
}
