//! The table of probes: measurements, and the model's values.

use iosched_lab::{grouped, significant};
use maud::{Markup, html};

use iosched_advise::calibrate::{NOISY, Pair, Residual, WITHIN};

/// Returns rate, median and p99 of each probe: the measured value, the model's value, the
/// difference.
pub(super) fn table(residuals: &[Residual]) -> Markup {
    html! {
        div .scroll tabindex="0" {
            table .figures .many {
                thead {
                    tr {
                        th scope="col" rowspan="2" { "Workload" }
                        @for (name, unit) in [("IOPS", ""), ("p50", "µs"), ("p99", "µs")] {
                            th scope="colgroup" colspan="3" .group { (name) " " span .quiet { (unit) } }
                        }
                    }
                    tr {
                        @for _ in 0..3 {
                            th scope="col" .number .group { "measured" }
                            th scope="col" .number { "model" }
                            th scope="col" .number { "off" }
                        }
                    }
                }
                tbody {
                    @for residual in residuals {
                        tr {
                            th scope="row" { (residual.probe) }
                            (cells(&residual.iops, 1.0))
                            (cells(&residual.p50_ns, 1e3))
                            (cells(&residual.p99_ns, 1e3))
                        }
                    }
                }
            }
        }
    }
}

/// Returns the cells of a metric: the measured value with its variation, the model's value, the
/// difference.
fn cells(pair: &Pair, divisor: f64) -> Markup {
    let difference = pair.difference();
    html! {
        td .number .group {
            span {
                (number(pair.measured.median / divisor))
                @if let Some(variation) = pair.measured.variation {
                    span .sd { " ± " (format!("{:.0}", variation * 100.0)) "\u{a0}%" @if variation > NOISY { "!" } }
                }
            }
        }
        td .number { (number(pair.model / divisor)) }
        td .number {
            span {
                // Adding 0.0 removes the sign of a negative zero.
                @let off = format!("{:+}\u{a0}%", (difference * 100.0).round() + 0.0);
                @if difference.abs() > WITHIN { b { (off) } } @else { (off) }
            }
        }
    }
}

/// Formats a number with separated thousands, or with three digits if it is small.
fn number(value: f64) -> String {
    if value >= 1000.0 { grouped(value.round() as u64) } else { significant(value, 3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_least_three_digits() {
        assert_eq!([number(7.234), number(99.96), number(468.4), number(12_345.6)], ["7.23", "100", "468", "12,346"]);
    }
}
