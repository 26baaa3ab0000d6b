//! The measurements as JSON lines: a header with the device
//! and the probes, then one line for each run of a probe.
//!
//! A fit depends only on these lines. If writing stops early, the complete lines remain readable.

use std::io::{self, BufRead, Write};

use iosched_lab::RecordWriter;
use iosched_sim::{Histogram, JobResult, RunResult};
use serde::{Deserialize, Serialize};

use super::error::{CalibrateError, FORMAT};
use super::probe::Probe;
use super::target::Target;

/// The plan of a calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Format of the file, at most [`FORMAT`].
    pub format: u32,
    /// Version of iosched that wrote the file.
    pub version: String,
    /// The command line that repeats the measurement.
    pub command: String,
    /// The measured device.
    pub target: Target,
    /// Seed of the places of random I/Os and of the order of the probes.
    pub seed: u64,
    /// The probes, in the order of their numbers.
    pub probes: Vec<Probe>,
}

/// One run of a probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Number of the probe in the header.
    pub probe: usize,
    /// The round, from 0.
    pub round: u32,
    /// Warm-up before the measured time, ns.
    pub warm_up_ns: u64,
    /// Measured time, ns.
    pub counted_ns: u64,
    /// Latencies of reads.
    pub reads: Histogram,
    /// Latencies of writes.
    pub writes: Histogram,
    /// Latencies of flushes.
    pub flushes: Histogram,
    /// Results of the parts of a probe in parts. Empty for other probes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// One part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Duration of the part, ns.
    pub counted_ns: u64,
    /// I/Os that completed in the part.
    pub ios: u64,
}

impl Part {
    /// Returns the I/Os per second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.ios as f64 * 1e9 / self.counted_ns.max(1) as f64
    }
}

impl Sample {
    /// Creates a sample from the result of a run. `None` if no I/O completed in the measured time.
    #[must_use]
    pub fn of(probe: usize, round: u32, result: &RunResult) -> Option<Self> {
        let (first, others) = result.jobs.split_first()?;
        let warm_up_ns = first.counted_from_ns.saturating_sub(first.started_ns.unwrap_or(0));
        let part = |job: &JobResult| Part { counted_ns: job.counted_ns(), ios: job.read.ios + job.write.ios };
        let mut sample = Self {
            probe,
            round,
            warm_up_ns,
            counted_ns: first.counted_ns(),
            reads: first.read.latency.clone(),
            writes: first.write.latency.clone(),
            flushes: first.sync.clone(),
            parts: if others.is_empty() { Vec::new() } else { result.jobs.iter().map(part).collect() },
        };
        for job in others {
            sample.counted_ns += job.counted_ns();
            sample.reads.merge(&job.read.latency);
            sample.writes.merge(&job.write.latency);
            sample.flushes.merge(&job.sync);
        }
        (sample.counted_ns > 0 && sample.ios() > 0).then_some(sample)
    }

    /// Returns the number of reads and writes.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.reads.count() + self.writes.count()
    }

    /// Returns the latencies of reads and writes together.
    #[must_use]
    pub fn latency(&self) -> Histogram {
        let mut all = self.reads.clone();
        all.merge(&self.writes);
        all
    }
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line {
    Calibration(Box<Header>),
    Sample(Box<Sample>),
}

/// All measurements of a calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurements {
    /// The device and the planned probes.
    pub header: Header,
    /// The runs, in the order of the measurement.
    pub samples: Vec<Sample>,
    /// Warnings for the reader, for example about a truncated line.
    pub warnings: Vec<String>,
}

/// Writes the header of a file. `out` should not buffer.
///
/// # Errors
/// `out` fails.
pub fn write_header(out: impl Write, header: &Header) -> io::Result<()> {
    RecordWriter::new(out).write(&Line::Calibration(Box::new(header.clone())))
}

/// Appends a run to a file.
///
/// # Errors
/// `out` fails.
pub fn write_sample(out: impl Write, sample: &Sample) -> io::Result<()> {
    RecordWriter::new(out).write(&Line::Sample(Box::new(sample.clone())))
}

impl Measurements {
    /// Creates measurements without runs.
    #[must_use]
    pub const fn new(header: Header) -> Self {
        Self { header, samples: Vec::new(), warnings: Vec::new() }
    }

    /// Reads a file. `file` is its name for messages. A
    /// truncated last line is left out, with a warning.
    ///
    /// # Errors
    /// The file cannot be read, does not contain measurements,
    /// has a later format, or has a damaged line before its last.
    pub fn read(mut reader: impl BufRead, file: &str) -> Result<Self, CalibrateError> {
        let mut text = Vec::new();
        let mut next = |text: &mut Vec<u8>| {
            text.clear();
            let read = reader.read_until(b'\n', text);
            read.map_err(|source| CalibrateError::Io { file: file.to_owned(), source })
        };
        next(&mut text)?;
        let mut measurements = Self::new(header(&text, file)?);
        let mut line = 1;
        while next(&mut text)? > 0 {
            line += 1;
            let bad = |problem: String| CalibrateError::BadLine { file: file.to_owned(), line, problem };
            match serde_json::from_slice(&text) {
                Ok(Line::Sample(sample)) => {
                    measurements.check(&sample).map_err(|problem| bad(problem.to_owned()))?;
                    measurements.samples.push(*sample);
                }
                Ok(Line::Calibration(_)) => return Err(bad("the file has a second header".to_owned())),
                Err(error) if error.is_eof() && text.last() != Some(&b'\n') => measurements.warnings.push(format!(
                    "{file}: line {line} is incomplete, because writing was interrupted there; iosched left this \
                     line out"
                )),
                Err(error) => return Err(bad(format!("the line is not a measurement: {error}"))),
            }
        }
        Ok(measurements)
    }

    /// Rejects a sample that no run can have produced.
    fn check(&self, sample: &Sample) -> Result<(), &'static str> {
        if sample.probe >= self.header.probes.len() {
            return Err("the header does not list the probe of this run");
        }
        if self.samples.iter().any(|known| (known.probe, known.round) == (sample.probe, sample.round)) {
            return Err("the same run appears twice");
        }
        if sample.counted_ns == 0 || sample.ios() == 0 {
            return Err("the run has no I/O");
        }
        Ok(())
    }
}

fn header(text: &[u8], file: &str) -> Result<Header, CalibrateError> {
    let none = |problem: String| CalibrateError::NotMeasurements { file: file.to_owned(), problem };
    if text.is_empty() {
        return Err(none("the file is empty".to_owned()));
    }
    let value: serde_json::Value = serde_json::from_slice(text).map_err(|error| none(error.to_string()))?;
    let format = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if format > FORMAT.into() {
        let version = value.get("version").and_then(serde_json::Value::as_str).unwrap_or("?").to_owned();
        let format = u32::try_from(format).unwrap_or(u32::MAX);
        return Err(CalibrateError::LaterFormat { file: file.to_owned(), format, version });
    }
    match serde_json::from_value(value) {
        Ok(Line::Calibration(header)) => Ok(*header),
        Ok(Line::Sample(_)) => Err(none("the first line is a run, not the header".to_owned())),
        Err(error) => Err(none(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::probe::probes;
    use iosched_disk::Profile;

    fn measurements() -> Measurements {
        let target = Target::of_card("nvme", Profile::named("nvme").unwrap().card());
        let probes = probes(&target, true);
        let header =
            Header { format: FORMAT, version: "test".to_owned(), command: String::new(), target, seed: 1, probes };
        let mut measurements = Measurements::new(header);
        for probe in 0..2 {
            let mut reads = Histogram::default();
            [80_000, 90_000, 1_000_000].iter().for_each(|&ns| reads.record(ns));
            let (writes, flushes) = Default::default();
            measurements.samples.push(Sample {
                probe,
                round: 0,
                warm_up_ns: 0,
                counted_ns: 1_000_000,
                reads,
                writes,
                flushes,
                parts: Vec::new(),
            });
        }
        measurements
    }

    fn text(measurements: &Measurements) -> Vec<u8> {
        let mut text = Vec::new();
        write_header(&mut text, &measurements.header).unwrap();
        measurements.samples.iter().for_each(|sample| write_sample(&mut text, sample).unwrap());
        text
    }

    #[track_caller]
    fn refused(text: &[u8], expected: &str) {
        let error = Measurements::read(text, "m.jsonl").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn calibration_records_round_trip() {
        let measurements = measurements();
        assert_eq!(Measurements::read(&text(&measurements)[..], "m.jsonl").unwrap(), measurements);
    }

    #[test]
    fn truncated_file_keeps_complete_samples() {
        let measurements = measurements();
        let text = text(&measurements);
        let read = Measurements::read(&text[..text.len() - 9], "m.jsonl").unwrap();
        assert_eq!(read.samples, measurements.samples[..1]);
        assert!(read.warnings[0].contains("m.jsonl: line 3 is incomplete"), "{:?}", read.warnings);
    }

    #[test]
    fn errors_of_damaged_files_name_line_or_cause() {
        let measurements = measurements();
        let whole = String::from_utf8(text(&measurements)).unwrap();
        refused(b"", "the file is empty");
        refused(b"{\"record\":\"header\"}\n", "line 1: this is not a file of measurements");
        refused(whole.replace("\"format\":2", "\"format\":7").as_bytes(), "format 7, of iosched test");
        refused(whole.replace("\"probe\":1", "\"probe\":999").as_bytes(), "line 3: the header does not list the probe");
        refused(whole.replace("\"probe\":1", "\"probe\":0").as_bytes(), "line 3: the same run appears twice");
        refused(whole.replace("\"counted_ns\":1000000", "\"counted_ns\":0").as_bytes(), "line 2: the run has no I/O");
        refused((whole.clone() + "nonsense\n").as_bytes(), "line 4: the line is not a measurement");
        let (_, headless) = whole.split_once('\n').unwrap();
        refused(headless.as_bytes(), "the first line is a run, not the header");
    }
}
