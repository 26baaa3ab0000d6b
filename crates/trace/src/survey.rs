//! Oddities in the times, positions and lengths of a trace: coarse times, missing times, times that
//! step back, and values that no device can have.

use std::collections::BTreeSet;
use std::fmt;

use iosched::{MICROSECOND_NS, MILLISECOND_NS, Op, SECOND_NS, SECTOR_BYTES};

use crate::format::Format;
use crate::grouped::grouped;
use crate::reader::TraceReader;
use crate::record::TraceRequest;
use crate::unit::TimeUnit;

/// Resolution from which times are coarse, ns. A fast device executes an I/O in less time.
pub const COARSE_NS: u64 = 100_000;
/// If more than this number of requests all have the same time, the trace has no times.
pub const TIMELESS_MIN: u64 = 8;
/// Minimum number of requests to determine the resolution of times. The next constant is the
/// minimum number of different times.
const REQUESTS_MIN: u64 = 64;
const TIMES_MIN: u64 = 16;
/// Minimum ratio of a tick to the resolution of the written times. If the ratio is smaller, the
/// ticks may be regular events instead of a coarse clock.
const COARSER: u64 = 10;
/// Requests per second that no device can execute.
const RATE_MAX: f64 = 1e7;
/// The same as [`RATE_MAX`], if the unit of times is only a convention. Few devices reach this
/// rate.
const BARE_RATE_MAX: f64 = 1e6;
/// Minimum number of requests per second of a log of fio whose times have the assumed unit. If the
/// rate is lower, the unit is shorter, or the job is almost idle.
const FIO_RATE_MIN: f64 = 10.0;
/// The same as [`FIO_RATE_MIN`], for a table whose times are whole numbers of a unit.
const TABLE_RATE_MIN: f64 = 0.1;
/// Minimum number of requests for a meaningful rate.
const RATE_REQUESTS_MIN: u64 = 16;
/// The rate that decides the likely unit of times, requests per second. It is between the usual
/// rates of disks and SSDs.
const RATE_USUAL: f64 = 1e3;
/// Capacity above which no device exists, bytes: 1 PB.
const EXTENT_MAX: u64 = 1_000_000_000_000_000;
/// Capacity above which a device is doubtful if the times are also impossible, bytes.
const EXTENT_DOUBTED: u64 = 100_000_000_000_000;
/// Capacity, in bytes, from which offsets in sectors are doubtful if they look like bytes.
const BYTES_EXTENT_MIN: u64 = 4_000_000_000_000;
/// Divisor of all starts and lengths in bytes.
const BYTES_GRAIN: u64 = SECTOR_BYTES;
/// Length that no read or write reaches, bytes.
const LENGTH_MAX: u64 = 1 << 30;
/// Largest step back in time that several writers of one file cause, ns.
const DISORDER_NS: u64 = MILLISECOND_NS;
/// Maximum number of devices that are distinguished.
const DEVICES_MAX: usize = 4_096;

/// An oddity of a trace that a person who uses the trace should know. `Display` formats it as a
/// sentence, with a remedy if there is one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Oddity {
    /// All times are equal.
    NoTimes {
        /// Number of requests.
        requests: u64,
    },
    /// The times step back in the file.
    StepsBack {
        /// Number and size of the steps.
        steps: StepsBack,
    },
    /// There are more requests per second than any device can execute.
    Rate {
        /// Number of requests.
        requests: u64,
        /// Time from the first request to the last, ns.
        span_ns: u64,
        /// The assumed and the probable unit of the times, if known.
        units: Option<(TimeUnit, TimeUnit)>,
        /// Whether the unit is only a convention of the format, so that the user can give another
        /// unit.
        bare: bool,
    },
    /// There are fewer requests per second than a load generator makes, or almost none.
    Slow {
        /// Number of requests.
        requests: u64,
        /// Time from the first request to the last, ns.
        span_ns: u64,
        /// The assumed and a possible unit of the times.
        units: (TimeUnit, TimeUnit),
        /// Whether the trace is a table. Its columns name the unit.
        in_table: bool,
    },
    /// All starts and lengths in sectors are multiples of 512, and the device would be very large.
    /// So they may be bytes.
    Bytes {
        /// Largest end of a request, bytes.
        bytes: u64,
    },
    /// The times are between 2000 and 2050 only in another unit.
    Epoch {
        /// The assumed and the likely unit of the times.
        units: (TimeUnit, TimeUnit),
    },
    /// Requests end at a position that no device has.
    Extent {
        /// Largest end of a request, bytes.
        bytes: u64,
        /// Whether the format counts in sectors.
        in_sectors: bool,
    },
    /// Requests are longer than any real request.
    Length {
        /// Largest length, bytes.
        bytes: u64,
        /// Number of these requests.
        requests: u64,
        /// Whether the format counts in sectors.
        in_sectors: bool,
    },
    /// Requests of the same sectors were in flight at the same time, so their latencies are
    /// uncertain.
    SameSectors {
        /// Number of requests whose latency may be the latency of another request.
        requests: u64,
    },
    /// The times are coarse.
    Coarse {
        /// Resolution of the times, ns.
        resolution_ns: u64,
    },
}

/// Steps back of the times of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepsBack {
    /// Number of steps.
    pub count: u64,
    /// Largest step, ns.
    pub largest_ns: u64,
    /// Whether iosched keeps the order of the file. Otherwise iosched sorts the requests by time.
    pub kept: bool,
}

impl Oddity {
    /// Returns whether the oddity only means that the reader makes an assumption. Other oddities
    /// may make the whole answer wrong.
    #[must_use]
    pub const fn is_assumption(&self) -> bool {
        matches!(self, Self::SameSectors { .. } | Self::Coarse { .. })
    }

    const fn is_of_place(&self) -> bool {
        matches!(self, Self::Extent { .. } | Self::Length { .. })
    }
}

/// Formats a time in the largest unit in which it is a whole number.
fn duration(ns: u64) -> String {
    let units = [(SECOND_NS, "s"), (MILLISECOND_NS, "ms"), (MICROSECOND_NS, "us"), (1, "ns")];
    let (unit_ns, name) = units.into_iter().find(|(unit_ns, _)| ns.is_multiple_of(*unit_ns)).unwrap_or(units[3]);
    format!("{} {name}", grouped(ns / unit_ns))
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTimes { requests } => write!(
                f,
                "the trace has no usable times, because all {} requests have the same time; in a replay, each process \
                 submits its requests one after another",
                grouped(*requests)
            ),
            Self::StepsBack { steps: StepsBack { count, largest_ns, kept } } => write!(
                f,
                "times go backwards {} {}, by up to {} s; {}",
                grouped(*count),
                if *count == 1 { "time" } else { "times" },
                *largest_ns as f64 / SECOND_NS as f64,
                if *kept {
                    "iosched keeps the order of the file and, like fio, treats each step backwards as a wait of 0 s"
                } else {
                    "iosched sorted the requests by time; if the file contains several recordings, use only one \
                     recording"
                }
            ),
            Self::Rate { requests, span_ns, units, bare } => {
                let span_s = *span_ns as f64 / SECOND_NS as f64;
                let any = if *bare { "almost any" } else { "any" };
                write!(f, "{} requests in {span_s} s are more than {any} device can serve; ", grouped(*requests))?;
                match units {
                    Some((read, likely)) if *bare => {
                        write!(f, "the unit of the times may be {likely}, not {read}; if so, add --time-unit {likely}")
                    }
                    Some((read, likely)) => {
                        write!(
                            f,
                            "the unit of the times may be {likely}, not {read}; name the columns with --columns, \
                             as in time_{likely},device,sector,nr_sectors,op=1:read"
                        )
                    }
                    None => f.write_str("the unit of the times may be wrong"),
                }
            }
            Self::Slow { requests, span_ns, units: (read, likely), in_table } => {
                let (few, remedy) = match in_table {
                    true => ("few", format!("name the columns with --columns, as in time_{likely}")),
                    false => ("too few for a log of fio", format!("add --time-unit {likely}")),
                };
                write!(
                    f,
                    "{} requests in {} s are {few}. The unit of the times may be {likely}, not {read}; if so, {remedy}",
                    grouped(*requests),
                    *span_ns as f64 / SECOND_NS as f64
                )
            }
            Self::Bytes { bytes } => write!(
                f,
                "all starts and lengths are multiples of 512 sectors, and requests end at {} bytes. The starts and \
                 lengths may be in bytes, not sectors; if so, give --columns with offset_bytes and length_bytes",
                grouped(*bytes)
            ),
            Self::Epoch { units: (read, likely) } => {
                write!(
                    f,
                    "if the times are Unix times, the unit of the times is {likely}, not {read}; in this case, \
                           add --time-unit {likely}"
                )
            }
            Self::Extent { bytes, in_sectors } => write!(
                f,
                "requests end at {} bytes, beyond the end of any device. {}",
                grouped(*bytes),
                if *in_sectors {
                    "Offsets may be in bytes, not sectors; if so, give --columns with offset_bytes and length_bytes"
                } else {
                    "The unit of the offsets or the meaning of the columns may be wrong; if so, name the columns \
                     with --columns"
                }
            ),
            Self::Length { bytes, requests, in_sectors } => write!(
                f,
                "{} {} longer than 1 GiB; the longest has {} bytes. {}",
                grouped(*requests),
                if *requests == 1 { "request is" } else { "requests are" },
                grouped(*bytes),
                if *in_sectors {
                    "Lengths may be in bytes, not sectors; if so, give --columns with length_bytes"
                } else {
                    "The unit of the lengths or the meaning of the columns may be wrong; if so, name the columns \
                     with --columns"
                }
            ),
            Self::SameSectors { requests } => write!(
                f,
                "{} completed requests shared sectors with another request in flight. A block trace identifies a \
                 request only by its sectors, so the trace does not show which of these requests completed. iosched \
                 prefers a request of the same length, then the oldest request. Therefore some of these requests may \
                 have the latency of another request, even of a request of another process",
                grouped(*requests)
            ),
            Self::Coarse { resolution_ns } => write!(
                f,
                "the recorded times are exact only to {}; a replay spreads the arrivals at random within this time, \
                 and keeps the order of the trace",
                duration(*resolution_ns)
            ),
        }
    }
}

/// Examines the requests of a trace as they are read.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    requests: u64,
    first_ns: u64,
    last_ns: u64,
    /// Number of different times. `grain_ns` is the greatest common divisor of the differences
    /// between them, ns.
    times: u64,
    grain_ns: u64,
    /// Number of requests at the present time. `fewest` and `most` are the minimum and maximum of
    /// this number over all times except the first and the last.
    together: u64,
    fewest: u64,
    most: u64,
    latency_max_ns: u64,
    /// Bitwise OR of all starts and lengths in sectors.
    place_bits: u64,
    shortest: u32,
    longest: u32,
    end_bytes: u64,
    longest_bytes: u64,
    long: u64,
    devices: BTreeSet<u32>,
    device: Option<u32>,
}

/// Returns the greatest common divisor. If one number is 0, returns the other number.
#[must_use]
pub const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the greatest power of ten, up to 10^9, that divides a number above 0. The resolutions of
/// clocks and printed times are powers of ten.
#[must_use]
pub const fn decimal_grain(number: u64) -> u64 {
    let mut grain = 1;
    while number > 0 && grain < SECOND_NS && number.is_multiple_of(grain * 10) {
        grain *= 10;
    }
    grain
}

impl Survey {
    /// Adds a request, which must not be earlier than the preceding one.
    #[inline]
    pub fn add(&mut self, request: &TraceRequest) {
        let at_ns = request.arrival.as_ns();
        if self.requests == 0 {
            (self.first_ns, self.last_ns, self.fewest) = (at_ns, at_ns, u64::MAX);
            self.shortest = u32::MAX;
        }
        self.requests += 1;
        if at_ns > self.last_ns {
            let step_ns = at_ns - self.last_ns;
            if self.grain_ns == 0 || !step_ns.is_multiple_of(self.grain_ns) {
                self.grain_ns = common_divisor(self.grain_ns, step_ns);
            }
            if self.times > 0 {
                (self.fewest, self.most) = (self.fewest.min(self.together), self.most.max(self.together));
            }
            (self.times, self.together, self.last_ns) = (self.times + 1, 0, at_ns);
        }
        self.together += 1;
        self.latency_max_ns = self.latency_max_ns.max(request.latency_ns.unwrap_or(0));
        self.place_bits |= request.sector | u64::from(request.nr_sectors);
        self.shortest = self.shortest.min(request.nr_sectors);
        self.longest = self.longest.max(request.nr_sectors);
        self.end_bytes = self.end_bytes.max(request.end().saturating_mul(SECTOR_BYTES));
        let bytes = u64::from(request.nr_sectors) * SECTOR_BYTES;
        if bytes > LENGTH_MAX && matches!(request.op, Op::Read | Op::Write) {
            self.long += 1;
            self.longest_bytes = self.longest_bytes.max(bytes);
        }
        if request.device != self.device && self.devices.len() < DEVICES_MAX {
            self.device = request.device;
            self.devices.extend(request.device);
        }
    }

    /// Returns the resolution of the times, ns. `written_ns` is the resolution in which they are
    /// written. Times are coarse if they are multiples of a coarse tick and the number of requests
    /// per tick varies. If this number is constant, the times are exact times of regular bursts.
    #[must_use]
    pub fn resolution_ns(&self, written_ns: u64) -> u64 {
        let enough = self.requests >= REQUESTS_MIN && self.times >= TIMES_MIN;
        let is_coarse = self.grain_ns >= COARSE_NS.max(COARSER * written_ns) && self.fewest < self.most;
        if enough && is_coarse { self.grain_ns } else { written_ns }
    }

    /// Returns the oddities of the requests that `reader` gave, the worst first.
    #[must_use]
    pub fn oddities_of(&self, reader: &TraceReader) -> Vec<Oddity> {
        let (format, given, steps) = (reader.format(), reader.time_unit(), reader.steps_back());
        let mut found = self.oddities(format, reader.resolution_ns(), given, steps);
        if self.looks_like_bytes() && reader.counts_sectors() && !found.iter().any(Oddity::is_of_place) {
            found.insert(0, Oddity::Bytes { bytes: self.end_bytes });
        }
        let units = assumed_unit(format, reader.resolution_ns()).zip(reader.likely_unit());
        if let Some(units) = units {
            // The first time shows the unit better than the rate does.
            found.retain(|oddity| !matches!(oddity, Oddity::Rate { .. }));
            found.insert(0, Oddity::Epoch { units });
        }
        let uncertain = Some(reader.uncertain_pairs()).filter(|&requests| requests > 0);
        found.extend(uncertain.map(|requests| Oddity::SameSectors { requests }));
        found
    }

    /// Returns whether starts and lengths in sectors look like numbers of bytes. A stream of large
    /// requests also looks like this, but all its lengths are equal, so it does not count.
    const fn looks_like_bytes(&self) -> bool {
        self.requests >= REQUESTS_MIN
            && self.place_bits.is_multiple_of(BYTES_GRAIN)
            && self.shortest < self.longest
            && self.end_bytes > BYTES_EXTENT_MIN
    }

    /// Returns the oddities, the worst first. `written_ns` is the resolution of the written times.
    /// `given` is the unit that the user gave.
    fn oddities(&self, format: Format, written_ns: u64, given: Option<TimeUnit>, steps: StepsBack) -> Vec<Oddity> {
        let mut found = Vec::new();
        let in_sectors = matches!(format, Format::Tencent | Format::Fiu | Format::Mqsim | Format::Blkreplay);
        let span_ns = self.last_ns - self.first_ns;
        // If the format's clock is coarse, all requests may be within one tick. In any other file,
        // equal times of all requests are not real times.
        let has_ticks = format.resolution_ns() >= COARSE_NS && written_ns >= COARSE_NS;
        let is_timeless = self.requests > TIMELESS_MIN && span_ns == 0 && !has_ticks;
        if is_timeless {
            found.push(Oddity::NoTimes { requests: self.requests });
        }
        let rate = self.requests as f64 / self.devices.len().max(1) as f64 / span_ns as f64 * SECOND_NS as f64;
        let bare = format.has_bare_times();
        let rate_max = if bare { BARE_RATE_MAX } else { RATE_MAX };
        let is_fast = span_ns > 0 && self.requests >= RATE_REQUESTS_MIN && rate > rate_max;
        if is_fast {
            let read = given.or_else(|| assumed_unit(format, written_ns));
            let units = read.and_then(|read| Some((read, likely_unit(read, rate)?)));
            found.push(Oddity::Rate { requests: self.requests, span_ns, units, bare });
        }
        // fio generates load, so a log of fio is rarely slow. Recordings of machines may be this
        // slow.
        let is_slow = format.keeps_order() && self.requests >= REQUESTS_MIN && span_ns > 0 && rate < FIO_RATE_MIN;
        if is_slow && given.is_none() {
            let units = (TimeUnit::Us, TimeUnit::Ns);
            found.push(Oddity::Slow { requests: self.requests, span_ns, units, in_table: false });
        }
        let read = assumed_unit(format, written_ns).filter(|unit| *unit >= TimeUnit::Ms && format == Format::Csv);
        let is_slow = self.requests >= REQUESTS_MIN && span_ns > 0 && rate < TABLE_RATE_MIN;
        if let Some(units) = read.filter(|_| is_slow).and_then(|read| Some((read, shorter_unit(read, rate)?))) {
            found.push(Oddity::Slow { requests: self.requests, span_ns, units, in_table: true });
        }
        // If the user gives the unit of times, the trace comes from another tool, and its other
        // units may also differ.
        if self.end_bytes > EXTENT_MAX || (is_fast || given.is_some()) && self.end_bytes > EXTENT_DOUBTED {
            found.push(Oddity::Extent { bytes: self.end_bytes, in_sectors });
        }
        if self.long > 0 {
            found.push(Oddity::Length { bytes: self.longest_bytes, requests: self.long, in_sectors });
        }
        // If the file has the order of completion, arrivals step back by up to the longest latency.
        let explained_ns = self.latency_max_ns.max(if steps.kept { 0 } else { DISORDER_NS });
        if steps.largest_ns > explained_ns {
            found.push(Oddity::StepsBack { steps });
        }
        let resolution_ns = self.resolution_ns(written_ns);
        if resolution_ns >= COARSE_NS && !is_timeless {
            found.push(Oddity::Coarse { resolution_ns });
        }
        found
    }
}

/// Returns the unit of a format's times if the user gives none. Times of tables without decimals
/// have a resolution of one unit.
fn assumed_unit(format: Format, written_ns: u64) -> Option<TimeUnit> {
    let ns = match format {
        Format::Spc | Format::Blkreplay | Format::Blkparse | Format::Tracepoints => SECOND_NS,
        _ if format.has_bare_times() => format.resolution_ns(),
        _ => written_ns,
    };
    TimeUnit::ALL.into_iter().find(|unit| unit.ns() == ns)
}

/// Returns the unit above `read` that gives the most usual rate.
fn likely_unit(read: TimeUnit, rate: f64) -> Option<TimeUnit> {
    most_usual(TimeUnit::ALL.into_iter().filter(|unit| *unit > read), read, rate)
}

/// Returns the unit below `read` that gives the most usual rate.
fn shorter_unit(read: TimeUnit, rate: f64) -> Option<TimeUnit> {
    most_usual(TimeUnit::ALL.into_iter().filter(|unit| *unit < read), read, rate)
}

fn most_usual(units: impl Iterator<Item = TimeUnit>, read: TimeUnit, rate: f64) -> Option<TimeUnit> {
    let distance = |unit: &TimeUnit| (rate * read.ns() as f64 / unit.ns() as f64 / RATE_USUAL).ln().abs();
    units.min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

#[cfg(test)]
mod tests {
    use iosched::{Flags, Time};

    use super::*;

    fn survey(requests: impl Iterator<Item = (u64, u64, u32)>) -> Survey {
        let mut survey = Survey::default();
        for (at_ns, sector, nr_sectors) in requests {
            survey.add(&TraceRequest {
                arrival: Time::from_ns(at_ns),
                pid: 0,
                device: None,
                op: Op::Read,
                flags: Flags::SYNC,
                sector,
                nr_sectors,
                latency_ns: None,
                ioprio: None,
            });
        }
        survey
    }

    fn warnings(survey: &Survey, format: Format) -> Vec<String> {
        survey.oddities(format, 1, None, StepsBack::default()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn clock_resolution_is_detected_for_any_tick_length() {
        let of_grain = |grain_ns: u64| {
            let mut rng = iosched_numbers::SplitMix64::new(1);
            let mut at_ns = 0;
            survey((0..400).map(|_| {
                at_ns += rng.below(grain_ns);
                (at_ns / grain_ns * grain_ns, 0, 8)
            }))
        };
        for grain_ns in [100_000, 1_000_000, 4_000_000, 15_625_000, 50_000_000, 1_000_000_000] {
            assert_eq!(of_grain(grain_ns).resolution_ns(1), grain_ns);
        }
        assert_eq!(of_grain(1_000).resolution_ns(1), 1, "fine enough");
    }

    #[test]
    fn regular_arrivals_do_not_look_like_a_coarse_clock() {
        let bursts = survey((0..640).map(|i| (i / 32 * 10_000_000, 0, 8)));
        assert_eq!(bursts.resolution_ns(1), 1);
        let regular = survey((0..640).map(|i| (i * 10_000_000, 0, 8)));
        assert_eq!(regular.resolution_ns(1), 1);
    }

    #[test]
    fn equal_times_are_reported_as_unusable() {
        assert!(warnings(&survey((0..200).map(|i| (0, i, 8))), Format::FioV2)[0].contains("no usable times"));
        assert_eq!(
            warnings(&survey((0..8).map(|i| (0, i, 8))), Format::FioV2),
            [""; 0],
            "a few requests may have equal times"
        );
        let second = survey((0..200).map(|i| (0, i, 8)));
        let warnings: Vec<_> = second.oddities(Format::Tencent, SECOND_NS, None, StepsBack::default());
        assert_eq!(warnings, [Oddity::Coarse { resolution_ns: SECOND_NS }], "one tick of a coarse clock");
    }

    #[test]
    fn slow_fio_logs_get_a_warning_that_times_may_be_in_ns() {
        let slow = || survey((0..300).map(|i| (i * 700_000_000, i, 8)));
        let warnings = warnings(&slow(), Format::FioV3);
        assert!(
            warnings[0]
                .starts_with("300 requests in 209.3 s are too few for a log of fio. The unit of the times may be ns"),
            "{warnings:?}"
        );
        assert_eq!(super::tests::warnings(&slow(), Format::Alibaba), [""; 0], "machines may be idle");
        let given = slow().oddities(Format::FioV3, 1_000, Some(TimeUnit::Us), StepsBack::default());
        assert!(given.is_empty(), "{given:?}");
    }

    #[test]
    fn slow_tables_get_a_warning_that_the_unit_may_be_shorter() {
        let table = |step_ns: u64, written_ns| {
            let survey = survey((0..300).map(|i| (i * step_ns, i, 8)));
            let found = survey.oddities(Format::Csv, written_ns, None, StepsBack::default());
            found.iter().map(ToString::to_string).collect::<String>()
        };
        let slow = table(10_000 * SECOND_NS, SECOND_NS);
        assert!(slow.contains("300 requests in 2990000 s are few. The unit of the times may be us, not s"), "{slow}");
        assert!(table(20 * SECOND_NS, MILLISECOND_NS).contains("may be us, not ms"));
        // Times with decimals have a certain unit, so a low rate means only that the device is
        // slow.
        assert!(!table(60 * SECOND_NS, 1_000).contains("few") && !table(SECOND_NS, SECOND_NS).contains("few"));
    }

    #[test]
    fn starts_and_lengths_in_bytes_are_detected() {
        let looks = |lengths: [u32; 2], scale: u64| {
            let requests = (0..300).map(|i| (i, i * 30_000_000 * scale, lengths[i as usize % 2]));
            survey(requests).looks_like_bytes()
        };
        assert!(looks([4_096, 65_536], 512));
        assert!(!looks([8, 128], 1), "sectors");
        assert!(!looks([2_048, 2_048], 512), "a stream of large requests");
        assert!(!looks([4_096, 4_104], 512), "a length that no number of bytes has");
    }

    #[test]
    fn impossible_rates_get_a_warning_with_the_likely_unit() {
        let milliseconds = survey((0..400).map(|i| (i * 4, 1_000 * i, 8)));
        let warnings = super::tests::warnings(&milliseconds, Format::Mqsim);
        assert!(warnings[0].contains("400 requests in 0.000001596 s"), "{warnings:?}");
        assert!(warnings[0].contains("may be ms, not ns; if so, add --time-unit ms"), "{warnings:?}");
        let warnings = super::tests::warnings(&survey((0..400).map(|i| (i * 300, 1_000 * i, 8))), Format::Mqsim);
        assert!(warnings[0].contains("may be us, not ns"), "{warnings:?}");
        let warnings = super::tests::warnings(&milliseconds, Format::Blkreplay);
        assert!(warnings[0].contains("the unit of the times may be wrong"), "{warnings:?}");
        let possible = survey((0..400).map(|i| (i * 1_100, 1_000 * i, 8)));
        assert!(super::tests::warnings(&possible, Format::Mqsim).is_empty());
    }

    #[test]
    fn impossible_offsets_and_lengths_get_a_warning() {
        let far = warnings(&survey([(0, 4_000_000_000_000, 8)].into_iter()), Format::Mqsim);
        assert!(far[0].contains("Offsets may be in bytes, not sectors"), "{far:?}");
        let long = warnings(&survey([(0, 0, 4 << 20)].into_iter()), Format::Mqsim);
        assert!(long[0].contains("1 request is longer than 1 GiB"), "{long:?}");
        // The columns of a table may already be in bytes.
        let table = warnings(&survey([(0, 4_000_000_000_000, 4 << 20)].into_iter()), Format::Csv);
        assert_eq!(table.len(), 2);
        assert!(table.iter().all(|warning| warning.contains("may be wrong")), "{table:?}");
    }
}
