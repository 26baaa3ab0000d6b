//! Numbers within their ranges.

use std::ops::RangeInclusive;

/// How well differences are to be known if nothing else is said, per cent.
pub(crate) const UNTIL_SURE_PERCENT: &str = "3";

/// A whole number in `range`. One below 0 is out of range, as any other.
pub(crate) fn whole(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync {
    move |text| match text.parse::<i128>() {
        Ok(number) => {
            let found = u64::try_from(number).ok().filter(|number| range.contains(number));
            found.ok_or_else(|| format!("{text} is not in {}..={}", range.start(), range.end()))
        }
        Err(_) => Err(format!("is no whole number in {}..={}", range.start(), range.end())),
    }
}

pub(crate) fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| speed.is_finite() && (1e-6..=1e6).contains(speed));
    speed.ok_or_else(|| "a speed is a number from 0.000001 to 1000000, such as 2 or 0.5".to_owned())
}

pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.01..=100.0).contains(percent));
    percent.ok_or_else(|| "takes per cent from 0.01 to 100, such as 3".to_owned())
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=1e6).contains(seconds));
    seconds.ok_or_else(|| "takes seconds from 0 to 1000000, such as 60 or 0.5".to_owned())
}

/// So many runs at a time, or one per CPU.
pub(crate) fn or_cpus(jobs: Option<u16>) -> usize {
    let cpus = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    jobs.map_or_else(cpus, usize::from)
}
