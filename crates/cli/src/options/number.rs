//! Numbers with their ranges.

use std::ops::RangeInclusive;

use iosched_lab::request::{RUN_SECONDS, SPEEDS, is_warm_up};

/// Default precision of --until-sure, percent.
pub(crate) const UNTIL_SURE_PERCENT: &str = "3";

/// Parses a whole number in `range`. The message for a number outside the range, even a negative
/// number, is the same as the message of clap.
pub(crate) fn whole(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync {
    move |text| match text.parse::<i128>() {
        Ok(number) => {
            let found = u64::try_from(number).ok().filter(|number| range.contains(number));
            found.ok_or_else(|| format!("{text} is not in {}..={}", range.start(), range.end()))
        }
        Err(_) => Err(format!("must be a whole number from {} to {}", range.start(), range.end())),
    }
}

pub(crate) fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| SPEEDS.contains(speed));
    speed.ok_or_else(|| "a speed is a number from 0.000001 to 1000000, such as 2 or 0.5".to_owned())
}

pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.01..=100.0).contains(percent));
    percent.ok_or_else(|| "give a percentage from 0.01 to 100, such as 3".to_owned())
}

/// Parses a duration in seconds, with an optional unit. It is 0 or at least 1 ns.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = any_duration(text).filter(|seconds| is_warm_up(*seconds));
    seconds.ok_or_else(|| {
        "give 0, or a time from 1ns to 1000000s, such as 0.5 (seconds), 500ms, 90s, 5m or \
            2h"
        .to_owned()
    })
}

/// Parses a duration above 0, in seconds.
pub(crate) fn seconds_above_0(text: &str) -> Result<f64, String> {
    let above = any_duration(text).filter(|seconds| RUN_SECONDS.contains(seconds));
    above.ok_or_else(|| "give a time from 1ns to 1000000s, such as 0.5 (seconds), 500ms, 90s, 5m or 2h".to_owned())
}

/// Parses a duration in `range`, in seconds.
pub(crate) fn seconds_in(range: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync {
    move |text| {
        let found = any_duration(text).filter(|seconds| range.contains(seconds));
        found.ok_or_else(|| {
            format!("give a time from {}s to {}s, such as 0.5 (seconds), 500ms, 5s or 1m", range.start(), range.end())
        })
    }
}

/// Parses a duration of whole seconds.
pub(crate) fn whole_seconds(text: &str) -> Result<u16, String> {
    let duration =
        any_duration(text).filter(|seconds| seconds.fract() == 0.0 && (1.0..=f64::from(u16::MAX)).contains(seconds));
    duration
        .map(|seconds| seconds as u16)
        .ok_or_else(|| format!("give a whole number of seconds from 1 to {}, such as 60 or 5m", u16::MAX))
}

/// Parses a duration, in seconds. Any value is allowed, even a negative one.
pub(crate) fn any_duration(text: &str) -> Option<f64> {
    let unit_at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit_s = match unit {
        "" | "s" => Some(1.0),
        "ns" => Some(1e-9),
        "us" | "µs" => Some(1e-6),
        "ms" => Some(1e-3),
        "m" | "min" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    // `1e3` is a number without a unit.
    text.parse().ok().or_else(|| Some(number.trim_end().parse::<f64>().ok()? * unit_s?))
}

/// Returns the number of parallel runs, by default one per CPU.
pub(crate) fn or_cpus(jobs: Option<u16>) -> usize {
    let cpus = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    jobs.map_or_else(cpus, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_or_are_seconds() {
        for (text, expected) in [
            ("60", 60.0),
            ("0.5", 0.5),
            ("1e3", 1000.0),
            ("90s", 90.0),
            ("1m", 60.0),
            ("1.5min", 90.0),
            ("2h", 7200.0),
            ("250ms", 0.25),
            ("3 us", 3e-6),
        ] {
            assert!((seconds(text).unwrap() - expected).abs() < 1e-12, "{text}");
        }
        for wrong in ["", "s", "m", "1x", "1mm", "-1", "-1s", "inf", "NaN", "1000001", "300h", "1 2", "1e-12", "0.1ns"]
        {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(whole_seconds("2m"), Ok(120));
        assert!(whole_seconds("0.5").is_err() && whole_seconds("0").is_err() && whole_seconds("19h").is_err());
        assert_eq!(seconds_above_0("1ms"), Ok(1e-3));
        let interval = seconds_in(0.1..=3600.0);
        assert_eq!((interval("100ms"), interval("1h")), (Ok(0.1), Ok(3600.0)));
        for wrong in ["0", "0.09", "2h", "-1", "NaN", "nothing"] {
            assert!(interval(wrong).unwrap_err().starts_with("give a time from 0.1s to 3600s,"), "{wrong}");
        }
        assert_eq!((seconds("0"), seconds_above_0("1ns")), (Ok(0.0), Ok(1e-9)));
        for wrong in ["0", "0s", "-1", "nothing", "1e-12", "1e-320", "0.9ns", "0.0001 us"] {
            assert!(seconds_above_0(wrong).unwrap_err().starts_with("give a time from 1ns"), "{wrong}");
        }
    }
}
