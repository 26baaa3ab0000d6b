//! Recognition of fio's logs, and the reasons why some of these logs are not traces.
//!
//! fio writes all these logs in the same format (`write_lat_log`, `write_bw_log`,
//! `write_iops_log`): `time in ms, value, direction, block size`. With `log_offset`, the offset
//! follows, and in later versions the priority and the time of the issue. Only logs of latencies
//! with offsets are traces.

use iosched::MILLISECOND_NS;

use super::columns::{Delimiter, Fields};
use crate::text::number;

/// Shortest plausible latency of a device, ns.
const LATENCY_MIN_NS: f64 = 1_000.0;
/// Range of plausible numbers of I/Os in flight, computed from the latencies.
const DEPTH_PLAUSIBLE: std::ops::Range<f64> = 0.5..4_096.0;
/// Number of I/Os in flight below which a load generator would be almost idle.
const IDLE_DEPTH: f64 = 0.1;
/// Factor between fio's bandwidths and latencies. The bandwidth of one I/O is its bytes divided by
/// its latency, in KiB/s. So the latency in ns is the number of bytes, multiplied by this factor
/// and divided by the bandwidth.
const NS_KIB: f64 = 1e9 / 1_024.0;

/// The reason why a log with latencies in µs is not a trace.
const MICROSECONDS: &str = "its latencies seem to be in us, as in logs of fio before version 3. If the latencies \
                            were in ns, the disk would be idle almost all the time. For latencies in us, add \
                            --columns completed_ms,latency_us,op=0:read/1:write/2:trim,length_bytes,offset_bytes; \
                            for latencies in ns, add --input-format csv";

/// The values of a line.
struct Sample {
    time_ms: u64,
    value: u64,
    bytes: u64,
    /// Values after the block size.
    rest: Vec<u64>,
}

fn sample(line: &[u8]) -> Option<Sample> {
    // fio writes a blank after each comma. Other tools do not.
    let blanks = line.windows(2).filter(|pair| pair == b", ").count();
    let fields: Vec<&[u8]> = Fields::new(line, Delimiter::Byte(b',')).collect();
    if !(4..=7).contains(&fields.len()) || blanks + 1 != fields.len() || !matches!(fields[2], b"0" | b"1" | b"2") {
        return None;
    }
    let value = |field: &[u8]| match field.strip_prefix(b"0x") {
        Some(digits) => u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok(),
        None => number(field),
    };
    let rest = fields[4..].iter().map(|field| value(field)).collect::<Option<_>>()?;
    Some(Sample { time_ms: number(fields[0])?, value: number(fields[1])?, bytes: number(fields[3])?, rest })
}

/// Returns the reason why a file is not a trace, if the file is a log of fio. `name` is the name of
/// the file, and `lines` its first lines.
pub(super) fn refusal(lines: &[u8], name: &str) -> Option<&'static str> {
    let lines = || lines.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    sample(lines().next()?)?;
    let samples: Vec<Sample> = lines().filter_map(sample).collect();
    let is_called = |kind: &str| name.contains(kind);
    Some(if is_called("_bw.") {
        "it is a bandwidth log of fio, which does not list single I/Os; record with write_lat_log and log_offset=1, \
         or with write_iolog"
    } else if is_called("_iops.") || samples.len() > 1 && samples.iter().all(|sample| sample.value == 1) {
        "it is an IOPS log of fio, which does not list single I/Os; record with write_lat_log and log_offset=1, or \
         with write_iolog"
    } else if is_called("_slat.") {
        "it is a log of fio's submission latencies, not of completions; use the log with _lat or _clat in its name"
    } else if samples.iter().all(|sample| sample.bytes == 0) {
        "it is a log of fio's averages (log_avg_msec), which does not list single I/Os; record without log_avg_msec \
         and with log_offset=1"
    } else if samples.iter().all(|sample| sample.rest.first().is_none_or(|&offset| offset < 2)) && samples.len() > 1 {
        "it is a log of fio without offsets; record with log_offset=1"
    } else if is_called("_lat.") || is_called("_clat.") {
        return (in_flight_if_old(&samples)? < IDLE_DEPTH).then_some(MICROSECONDS);
    } else {
        return by_values(&samples);
    })
}

/// Returns the mean number of I/Os in flight, computed as if the values were latencies in ns.
/// Returns `None` if fio 3 or later certainly wrote the log. Before version 3, fio wrote latencies
/// in µs. Logs with a sixth value (since about version 3.20) are in ns.
fn in_flight_if_old(samples: &[Sample]) -> Option<f64> {
    let is_old = samples.iter().all(|sample| sample.rest.len() == 1);
    let (first, last) = (samples.first()?, samples.last()?);
    let span_ns = (last.time_ms.saturating_sub(first.time_ms) * MILLISECOND_NS) as f64;
    let in_flight = samples.iter().map(|sample| sample.value as f64).sum::<f64>() / span_ns;
    (is_old && span_ns > 0.0).then_some(in_flight)
}

/// Distinguishes logs of latencies from logs of bandwidths. The values of the right kind give a
/// plausible number of I/Os in flight.
fn by_values(samples: &[Sample]) -> Option<&'static str> {
    let (first, last) = (samples.first()?, samples.last()?);
    let span_ns = ((last.time_ms.saturating_sub(first.time_ms)) * MILLISECOND_NS) as f64;
    let is_plausible = |latency_ns: fn(&Sample) -> f64| {
        let shortest = samples.iter().map(latency_ns).fold(f64::INFINITY, f64::min);
        let sum: f64 = samples.iter().map(latency_ns).sum();
        shortest >= LATENCY_MIN_NS && DEPTH_PLAUSIBLE.contains(&(sum / span_ns))
    };
    let are_latencies = span_ns <= 0.0 || is_plausible(|sample| sample.value as f64);
    let are_bandwidths = is_plausible(|sample| sample.bytes as f64 * NS_KIB / sample.value as f64);
    let in_us = in_flight_if_old(samples).map(|in_flight| in_flight * 1_000.0);
    let are_microseconds = in_us.is_some_and(|in_flight| DEPTH_PLAUSIBLE.contains(&in_flight));
    match (are_latencies, are_bandwidths, are_microseconds) {
        (true, false, _) => None,
        (false, false, true) => Some(MICROSECONDS),
        (false, true, false) => Some(
            "it looks like a bandwidth log of fio, which does not list single I/Os; record with write_lat_log and \
             log_offset=1. If its values are latencies, add --input-format csv",
        ),
        _ => Some(
            "it is a log of fio, but neither its name (_lat, _bw, _iops) nor its values show the kind of log. For \
             latencies in ns, add --input-format csv; for latencies in us, as in logs of fio before version 3, add \
             --columns completed_ms,latency_us,op=0:read/1:write/2:trim,length_bytes,offset_bytes. iosched cannot use \
             logs of bandwidth or IOPS, because these logs do not list single I/Os",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a log of I/Os of 4 KiB, one after another. Each I/O takes `latency_us`.
    fn log(latency_us: u64, value: impl Fn(u64) -> u64, rest: &str) -> String {
        let line = |at: u64| format!("{}, {}, 0, 4096, {}{rest}\n", at * latency_us / 1_000, value(at), at * 4_096);
        (1..200).map(line).collect()
    }

    #[test]
    fn fio_log_kind_is_detected_by_name_or_by_values() {
        let of = |text: &str, name: &str| refusal(text.as_bytes(), name).unwrap_or("a trace");
        for latency_us in [100, 8_000] {
            let latencies = log(latency_us, |at| latency_us * 1_000 + at, ", 0x0000");
            let bandwidths = log(latency_us, |_| 4_000_000 / latency_us, ", 0x0000");
            assert_eq!(of(&latencies, "a_lat.1.log"), "a trace");
            assert_eq!(of(&latencies, "a_clat.1.log.gz"), "a trace");
            assert!(of(&latencies, "a_bw.1.log").contains("a bandwidth log"));
            assert!(of(&latencies, "a_iops.log").contains("an IOPS log"));
            assert!(of(&latencies, "a_slat.log").contains("submission latencies"));
            assert!(of(&bandwidths, "log").contains("log of fio"), "{latency_us}");
        }
        assert_eq!(of(&log(8_000, |_| 8_000_000, ""), "log"), "a trace");
        assert!(of(&log(8_000, |_| 512, ""), "log").contains("looks like a bandwidth log"));
        assert!(of(&log(100, |_| 60_000, ""), "log").contains("but neither its name"));
        assert!(of(&log(100, |_| 1, ""), "log").contains("an IOPS log"));
    }

    #[test]
    fn latencies_in_us_are_not_read_as_ns() {
        let of = |text: &str, name: &str| refusal(text.as_bytes(), name).unwrap_or("a trace");
        // A latency of 100 us for 4 KiB may also be a bandwidth.
        assert!(of(&log(100, |at| 100 + at % 7, ""), "log").contains("neither its name"));
        for (latency_us, name) in [(100, "a_lat.1.log"), (8_000, "a_clat.log"), (8_000, "log")] {
            let old = log(latency_us, |at| latency_us + at % 7, "");
            assert!(of(&old, name).contains("latency_us"), "{latency_us} {name}: {}", of(&old, name));
            // Later versions of fio write ns.
            assert_eq!(of(&log(latency_us, |at| latency_us * 1_000 + at, ""), "a_lat.1.log"), "a trace");
            assert_eq!(of(&log(latency_us, |at| latency_us + at % 7, ", 0x0000"), "a_lat.1.log"), "a trace");
        }
        // A fast disk that does few I/Os per second.
        let rare = |at: u64| format!("{}, 80000, 0, 4096, {}, 0, 1\n", at * 10, at * 4_096);
        assert_eq!(of(&(1..200).map(rare).collect::<String>(), "a_lat.1.log"), "a trace");
    }

    #[test]
    fn averages_and_logs_without_offsets_are_refused() {
        let of = |text: &str| refusal(text.as_bytes(), "x.log").unwrap_or("a trace");
        assert!(of("500, 2048, 0, 0, 0\n1000, 2060, 1, 0, 0\n").contains("averages"));
        assert!(of("5, 2048000, 0, 4096, 0\n10, 2060000, 1, 4096, 0\n").contains("without offsets"));
        assert!(of("5, 2048000, 0, 4096\n10, 2060000, 1, 4096\n").contains("without offsets"));
        assert_eq!(of("1538323200,12910952,128,0,1063\n"), "a trace");
    }
}
