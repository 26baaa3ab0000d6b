//! Tables of measurements: a published table as CSV, or results of fio as JSON.
//!
//! A row is one closed loop of equal I/Os that ran alone. It has a pattern, a block size, a queue
//! depth, a number of jobs and a rate. It can have the mean, median and 99th percentile of the
//! latency.

use serde_json::Value;

use super::error::CalibrateError;
use super::evidence::Measured;
use super::probe::{Probe, Role, Span};
use super::summary::{Spread, Summary};
use iosched_sim::Histogram;

/// Number of I/Os in the distribution that represents the percentiles of a row.
const IOS: u64 = 1_000;
/// Span of a row for the simulation, ns. Tables rarely state the span.
const SPAN: Span = Span { warm_up_ns: 1_000_000_000, measured_ns: 10_000_000_000 };
/// Largest block size, bytes.
const BYTES_MAX: u64 = 1 << 30;

/// One row of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableRow {
    /// Whether the I/Os are sequential.
    pub is_sequential: bool,
    /// Share of reads, per cent.
    pub read_percent: u32,
    /// Size of each I/O, bytes.
    pub bytes: u32,
    /// I/Os in flight: the queue depth, times the number of jobs.
    pub depth: u32,
    /// I/Os per second.
    pub iops: f64,
    /// Mean latency, ns.
    pub mean_ns: Option<f64>,
    /// Median latency, ns.
    pub p50_ns: Option<f64>,
    /// 99th percentile of the latency, ns.
    pub p99_ns: Option<f64>,
    /// Whether a fit may use the row.
    pub is_for_fit: bool,
}

/// Table of measured results of jobs that ran alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the file.
    pub file: String,
    /// The rows, in the order of the file.
    pub rows: Vec<TableRow>,
}

impl TableRow {
    /// Returns the row as a probe of a device with this many sectors.
    pub(super) fn probe(&self, role: Role, sectors: u64) -> Probe {
        let read = Probe::read(role, self.bytes, self.depth, sectors);
        Probe { sequential: self.is_sequential, read_percent: self.read_percent, ..read }
    }

    /// Returns the row in words, with its rate. The words identify the row.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}: {:.0} IOPS", self.probe(Role::Size, 8), self.iops)
    }

    /// Returns the metrics of the row in the form of measured metrics. A metric that the row lacks
    /// is NaN.
    fn summary(&self) -> Summary {
        let known = |value: Option<f64>| Spread { median: value.unwrap_or(f64::NAN), variation: None };
        let latency = self.latency();
        let (mut reads, mut writes) = (Histogram::default(), Histogram::default());
        if self.read_percent > 0 { &mut reads } else { &mut writes }.merge(&latency);
        Summary {
            iops: Spread { median: self.iops, variation: None },
            mean_ns: known(self.mean_ns),
            p50_ns: known(self.p50_ns),
            p99_ns: known(self.p99_ns),
            latency,
            reads,
            writes,
            flushes: Histogram::default(),
            parts: Vec::new(),
            span: SPAN,
            counted_ns: SPAN.measured_ns,
            drift: None,
        }
    }

    /// Returns a distribution with the known percentiles. If the row has no median, the mean
    /// replaces it. If the row has no mean, the mean follows from the rate and the I/Os in flight
    /// (Little's law).
    fn latency(&self) -> Histogram {
        let mean_ns = self.mean_ns.unwrap_or(f64::from(self.depth) * 1e9 / self.iops);
        let p50_ns = self.p50_ns.unwrap_or(mean_ns);
        let p99_ns = self.p99_ns.unwrap_or(p50_ns).max(p50_ns);
        let mut latency = Histogram::default();
        // Slightly more than a hundredth of the I/Os has the 99th percentile as latency.
        for io in 0..IOS {
            latency.record(if io + IOS / 90 >= IOS { p99_ns } else { p50_ns } as u64);
        }
        latency
    }

    fn is_random_read(&self) -> bool {
        !self.is_sequential && self.read_percent == 100
    }
}

impl Table {
    /// Reads a table: fio's JSON, or CSV.
    ///
    /// # Errors
    /// The text has neither format, or a row is not valid. The message names the line or the job.
    pub fn read(file: &str, text: &str) -> Result<Self, CalibrateError> {
        let wrong = |problem: String| CalibrateError::Table { file: file.to_owned(), problem };
        // fio can print notes before the document. No line of a table begins with a brace.
        let json = if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|at| at + 1) };
        let rows = match json {
            Some(at) => fio::rows(&text[at..]).map_err(wrong)?,
            None => csv_rows(text).map_err(wrong)?,
        };
        if rows.is_empty() {
            return Err(wrong(format!("the table has no rows; {}", columns_help())));
        }
        Ok(Self { file: file.to_owned(), rows })
    }

    /// Returns the rows with the roles that a fit needs. The random read with the fewest I/Os in
    /// flight gets the role of a single I/O in flight.
    pub(super) fn measured(&self, sectors: u64) -> Result<Vec<Measured>, CalibrateError> {
        let reads = self.rows.iter().filter(|row| row.is_for_fit && row.is_random_read());
        let lone = reads.min_by_key(|row| (row.depth, row.bytes));
        let Some(&lone) = lone else {
            let problem = "the fit needs a row of random reads; add such a row, preferably with 4 KiB and depth 1";
            return Err(CalibrateError::Table { file: self.file.clone(), problem: problem.to_owned() });
        };
        Ok(self.measured_as(sectors, |row| role(row, &lone)))
    }

    /// Returns each row with the role that `role` gives it.
    pub(super) fn measured_as(&self, sectors: u64, role: impl Fn(&TableRow) -> Role) -> Vec<Measured> {
        let measured = |row: &TableRow| Measured { probe: row.probe(role(row), sectors), summary: row.summary() };
        self.rows.iter().map(measured).collect()
    }
}

fn role(row: &TableRow, lone: &TableRow) -> Role {
    match row {
        _ if !row.is_for_fit => Role::HeldOut,
        _ if row.read_percent == 0 => Role::Write,
        _ if row.read_percent < 100 => Role::Mixed,
        _ if row.is_sequential => Role::Sequential,
        _ if row == lone || row.depth == lone.depth => Role::Size,
        _ if row.bytes <= lone.bytes.max(4096) => Role::Depth,
        _ => Role::Bandwidth,
    }
}

/// Names of each column, without its unit. The first name is the usual one.
const COLUMNS: [(&str, &[&str]); 10] = [
    ("rw", &["rw", "pattern", "op", "workload"]),
    ("bs", &["bs", "block_size", "blocksize", "size"]),
    ("depth", &["depth", "iodepth", "qd", "queue_depth"]),
    ("jobs", &["jobs", "numjobs", "threads", "processes"]),
    ("read_percent", &["read_percent", "rwmixread"]),
    ("iops", &["iops", "rate"]),
    ("mean", &["mean", "lat_mean", "clat_mean", "latency", "lat"]),
    ("p50", &["p50", "median", "clat_p50", "lat_p50"]),
    ("p99", &["p99", "clat_p99", "lat_p99"]),
    ("split", &["split", "set", "used"]),
];

fn columns_help() -> String {
    "the first line must name the columns. rw, bs and iops are required; depth, jobs, read_percent, mean, p50, p99 \
     and split are optional. Latencies are in us, unless the name of their column ends in a unit, such as p99_ms"
        .to_owned()
}

/// A column: the position in [`COLUMNS`], and the factor from its unit to ns.
fn column_of(head: &str) -> Option<(usize, f64)> {
    let head = head.trim().trim_matches('"').to_ascii_lowercase().replace([' ', '-', '(', ')'], "_");
    let head = head.trim_matches('_').replace("__", "_");
    let units = [("_ns", 1.0), ("_us", 1e3), ("_usec", 1e3), ("_ms", 1e6), ("_msec", 1e6), ("_s", 1e9)];
    let unit = units.into_iter().find(|(unit, _)| head.ends_with(unit));
    let name = unit.map_or(head.as_str(), |(unit, _)| head.trim_end_matches(unit));
    let column = COLUMNS.iter().position(|(_, names)| names.contains(&name) || names.contains(&head.as_str()))?;
    Some((column, unit.map_or(1e3, |(_, factor)| factor)))
}

fn csv_rows(text: &str) -> Result<Vec<TableRow>, String> {
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
    let Some((header, number)) = lines.next() else { return Ok(Vec::new()) };
    let separator = if header.contains('\t') {
        '\t'
    } else if header.contains(';') {
        ';'
    } else {
        ','
    };
    let columns: Vec<Option<(usize, f64)>> = split(header, separator).iter().map(|head| column_of(head)).collect();
    for needed in ["rw", "bs", "iops"] {
        if !columns.iter().flatten().any(|(column, _)| COLUMNS[*column].0 == needed) {
            return Err(format!("line {number}: the column {needed} is missing; {}", columns_help()));
        }
    }
    lines.map(|(line, number)| csv_row(line, separator, &columns).map_err(|e| format!("line {number}: {e}"))).collect()
}

/// Splits a line of CSV. A field in quotes can contain the separator.
fn split(line: &str, separator: char) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => fields.push(String::new()),
            c => fields.last_mut().into_iter().for_each(|field| field.push(c)),
        }
    }
    fields.iter().map(|field| field.trim().to_owned()).collect()
}

fn csv_row(line: &str, separator: char, columns: &[Option<(usize, f64)>]) -> Result<TableRow, String> {
    let fields = split(line, separator);
    if fields.len() != columns.len() {
        return Err(format!("this line has {} fields, but the first line has {}", fields.len(), columns.len()));
    }
    let field = |name: &str| {
        let found = columns.iter().zip(&fields).find_map(|(column, field)| {
            column.filter(|(column, _)| COLUMNS[*column].0 == name).map(|(_, factor)| (field.as_str(), factor))
        });
        found.filter(|(field, _)| !matches!(*field, "" | "-" | "n/a" | "NaN" | "nan"))
    };
    let needed = |name: &str| field(name).map(|(text, _)| text).ok_or_else(|| format!("{name} is missing"));
    let count = |name: &str, default: u32| {
        field(name).map_or(Ok(default), |(text, _)| match text.parse::<u32>() {
            Ok(value) if value > 0 || name == "read_percent" => Ok(value),
            _ => Err(format!("{name}: {text:?} must be a whole number of 1 or more")),
        })
    };
    let latency = |name: &str| {
        field(name).map(|(text, factor)| number(text).map(|value| value * factor).map_err(|e| format!("{name}: {e}")))
    };
    let bytes = needed("bs").and_then(|text| bytes(text).map_err(|error| format!("bs: {error}")))?;
    let (is_sequential, share) = pattern(needed("rw")?)?;
    let read_percent = if share == 50 { count("read_percent", 50)? } else { share };
    row(Given {
        pattern: (is_sequential, read_percent),
        bytes,
        depth: (count("depth", 1)?, count("jobs", 1)?),
        iops: number(needed("iops")?).map_err(|error| format!("iops: {error}"))?,
        latencies: [latency("mean").transpose()?, latency("p50").transpose()?, latency("p99").transpose()?],
        is_for_fit: !field("split").is_some_and(|(text, _)| matches!(text, "kept" | "held-out" | "no" | "0" | "false")),
    })
}

/// Values of a row before they are checked.
struct Given {
    pattern: (bool, u32),
    bytes: u32,
    /// Queue depth of a job, and number of jobs.
    depth: (u32, u32),
    iops: f64,
    /// Mean, median and 99th percentile, ns.
    latencies: [Option<f64>; 3],
    is_for_fit: bool,
}

fn row(given: Given) -> Result<TableRow, String> {
    let Given { pattern: (is_sequential, read_percent), bytes, depth, iops, latencies, is_for_fit } = given;
    if read_percent > 100 {
        return Err(format!("read_percent: {read_percent} must not be more than 100"));
    }
    if iops <= 0.0 {
        return Err(format!("iops: {iops} must be more than 0"));
    }
    let depth = depth.0.checked_mul(depth.1).filter(|depth| *depth <= 65_535);
    let depth = depth.ok_or("depth times jobs must be at most 65,535 I/Os in flight")?;
    let [mean_ns, p50_ns, p99_ns] = latencies.map(|latency| latency.filter(|ns| *ns > 0.0));
    if let (Some(p50_ns), Some(p99_ns)) = (p50_ns, p99_ns)
        && p99_ns < p50_ns
    {
        return Err(format!("p99 ({} us) must not be below p50 ({} us)", p99_ns / 1e3, p50_ns / 1e3));
    }
    Ok(TableRow { is_sequential, read_percent, bytes, depth, iops, mean_ns, p50_ns, p99_ns, is_for_fit })
}

/// Returns whether a pattern is sequential, and its share of reads: 50 for a mix.
fn pattern(text: &str) -> Result<(bool, u32), String> {
    let name = text.to_ascii_lowercase().replace([' ', '_', '-'], "");
    let is_random = name.contains("rand");
    let (reads, writes) = (name.contains("read"), name.contains("write"));
    let share = match (reads, writes) {
        (true, false) => 100,
        (false, true) => 0,
        (true, true) => 50,
        (false, false) if name.trim_start_matches("random").trim_start_matches("rand") == "rw" => 50,
        (false, false) => {
            return Err(format!("rw: {text:?} must be one of read, write, randread, randwrite, rw, randrw"));
        }
    };
    Ok((!is_random, share))
}

/// Parses a number, which can have thousands separators and the suffix k or M.
fn number(text: &str) -> Result<f64, String> {
    let plain = text.replace([',', '_', ' '], "");
    let (digits, factor) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => plain.strip_suffix('M').map_or((plain.as_str(), 1.0), |digits| (digits, 1e6)),
    };
    let value = digits.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    value.map(|value| value * factor).ok_or_else(|| format!("{text:?} must be a number of 0 or more"))
}

/// Parses a block size such as `4k`, `128KiB` or `4096`.
fn bytes(text: &str) -> Result<u32, String> {
    let lower = text.to_ascii_lowercase().replace(' ', "");
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &lower[digits.len()..] {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        unit => return Err(format!("{text:?}: {unit:?} is not a unit of size; write 4k, 1m or 4096")),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(factor));
    let is_valid = |bytes: &u64| bytes.is_multiple_of(512) && (512..=BYTES_MAX).contains(bytes);
    let bytes = bytes.filter(is_valid).and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| format!("{text:?} must be a multiple of 512 bytes, up to 1 GiB"))
}

/// Rows of fio's JSON.
mod fio {
    use super::{Given, TableRow, Value, bytes, pattern, row};

    pub(super) fn rows(text: &str) -> Result<Vec<TableRow>, String> {
        let mut rows = Vec::new();
        // Several runs of fio can be in one file.
        for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            let document = document.map_err(|error| format!("not JSON: {error}"))?;
            let jobs = document.get("jobs").and_then(Value::as_array);
            let jobs = jobs.ok_or("the file has no list of jobs; fio writes this list with --output-format=json")?;
            let global = document.get("global options").unwrap_or(&Value::Null);
            let groups = groups(jobs, global)?;
            for jobs in groups {
                let name = jobs[0].get("jobname").and_then(Value::as_str).unwrap_or_default();
                rows.push(of_jobs(&jobs, global).map_err(|error| format!("job {name:?}: {error}"))?);
            }
        }
        Ok(rows)
    }

    fn option<'a>(job: &'a Value, global: &'a Value, name: &str) -> Option<&'a str> {
        let in_job = job.get("job options").and_then(|options| options.get(name));
        in_job.or_else(|| global.get(name))?.as_str()
    }

    /// Returns the jobs in groups of copies. Different jobs at the same time are an error.
    fn groups<'a>(jobs: &'a [Value], global: &Value) -> Result<Vec<Vec<&'a Value>>, String> {
        let mut groups: Vec<Vec<&Value>> = Vec::new();
        for job in jobs {
            let is_copy = |first: &Value| ["jobname", "job options"].iter().all(|key| first.get(key) == job.get(key));
            match groups.last_mut() {
                Some(group) if is_copy(group[0]) => group.push(job),
                Some(group) if !waits(job, global) => {
                    let name = |job: &Value| job.get("jobname").and_then(Value::as_str).unwrap_or_default().to_owned();
                    return Err(format!(
                        "the jobs {:?} and {:?} ran at the same time, but a row needs a job that ran alone; add \
                         stonewall to the second job, and run fio again",
                        name(group[0]),
                        name(job)
                    ));
                }
                _ => groups.push(vec![job]),
            }
        }
        Ok(groups)
    }

    /// Returns whether a job waits for the jobs before it.
    fn waits(job: &Value, global: &Value) -> bool {
        ["stonewall", "wait_for_previous"].iter().any(|name| {
            let in_job = job.get("job options").and_then(|options| options.get(*name));
            in_job.or_else(|| global.get(*name)).is_some()
        })
    }

    fn of_jobs(jobs: &[&Value], global: &Value) -> Result<TableRow, String> {
        let rate = |job: &Value, direction: &str| job.get(direction)?.get("iops")?.as_f64();
        let sum = |direction: &str| jobs.iter().filter_map(|job| rate(job, direction)).sum::<f64>();
        let (reads, writes) = (sum("read"), sum("write"));
        let rw = option(jobs[0], global, "rw").or_else(|| option(jobs[0], global, "readwrite")).unwrap_or("read");
        // A number after a colon is the number of consecutive I/Os at a place.
        let (is_sequential, _) = pattern(rw.split(':').next().unwrap_or(rw))?;
        let iops = reads + writes;
        if iops <= 0.0 {
            return Err("the job has no reads and no writes".to_owned());
        }
        let read_percent = (reads / iops * 100.0).round() as u32;
        let number = |name: &str| option(jobs[0], global, name).and_then(|text| text.parse::<u32>().ok()).unwrap_or(1);
        let bs = option(jobs[0], global, "bs").or_else(|| option(jobs[0], global, "blocksize")).unwrap_or("4k");
        // Percentiles of reads and writes together are unknown.
        let direction = match read_percent {
            100 => Some(("read", reads)),
            0 => Some(("write", writes)),
            _ => None,
        };
        let latency = |get: &dyn Fn(&Value) -> Option<f64>| {
            let (direction, all) = direction?;
            let weighted = |job: &&Value| Some(get(job.get(direction)?)? * rate(job, direction)? / all);
            jobs.iter().map(weighted).sum::<Option<f64>>()
        };
        let percentile = |share: &'static str| {
            move |part: &Value| {
                // fio prints percentiles of the completion latency or, on request, of the total
                // latency.
                ["clat_ns", "lat_ns"].iter().find_map(|kind| part.get(kind)?.get("percentile")?.get(share)?.as_f64())
            }
        };
        let mean = |part: &Value| part.get("lat_ns")?.get("mean")?.as_f64();
        // With group_reporting there is one entry for all copies.
        let copies = if jobs.len() > 1 { jobs.len() as u32 } else { number("numjobs") };
        row(Given {
            pattern: (is_sequential, read_percent),
            bytes: bytes(bs.split(',').next().unwrap_or(bs)).map_err(|error| format!("bs: {error}"))?,
            depth: (number("iodepth"), copies),
            iops,
            latencies: [latency(&mean), latency(&percentile("50.000000")), latency(&percentile("99.000000"))],
            is_for_fit: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<TableRow> {
        Table::read("t.csv", text).unwrap().rows
    }

    fn wrong(text: &str) -> String {
        Table::read("t.csv", text).unwrap_err().to_string()
    }

    #[test]
    fn columns_accept_common_names_units_and_number_formats() {
        let text = "# a disk\nPattern,Block Size,QD,numjobs,IOPS,Latency (ms),p99_us,split\n\
                    random read,4 KiB,8,2,\"12,500\",1.28,3000,given\nseq-write,1m,1,1,1.2k,-,,kept\n";
        let [read, write] = rows(text)[..] else { panic!() };
        assert_eq!((read.is_sequential, read.read_percent, read.bytes, read.depth), (false, 100, 4096, 16));
        assert_eq!((read.iops, read.mean_ns, read.p50_ns, read.p99_ns), (12_500.0, Some(1.28e6), None, Some(3e6)));
        assert_eq!((write.is_sequential, write.read_percent, write.bytes), (true, 0, 1 << 20));
        assert_eq!((write.iops, write.mean_ns, write.is_for_fit), (1_200.0, None, false));
        assert!(read.is_for_fit && read.label() == "random read 4 KiB, depth 16: 12500 IOPS", "{}", read.label());
    }

    #[test]
    fn errors_name_the_wrong_value() {
        assert!(wrong("").contains("t.csv: the table has no rows; the first line must name the columns"));
        assert!(wrong("rw,bs\nread,4k\n").contains("line 1: the column iops is missing"));
        let line = |row: &str| wrong(&format!("rw,bs,iops,depth,p50,p99\n{row}\n"));
        assert!(line("trim,4k,1,1,,").contains("line 2: rw: \"trim\" must be one of"));
        assert!(line("read,4q,1,1,,").contains("line 2: bs: \"4q\": \"q\" is not a unit"));
        assert!(line("read,1000,1,1,,").contains("must be a multiple of 512"));
        assert!(line("read,4k,0,1,,").contains("iops: 0 must be more than 0"));
        assert!(line("read,4k,fast,1,,").contains("iops: \"fast\" must be a number"));
        assert!(line("read,4k,1,0,,").contains("depth: \"0\" must be a whole number of 1 or more"));
        assert!(line("read,4k,1,1,9,8").contains("p99 (8 us) must not be below p50 (9 us)"));
        assert!(line("read,4k,1").contains("this line has 3 fields, but the first line has 6"));
    }

    #[test]
    fn fio_json_results_become_rows() {
        let read = |iops: u64| {
            format!(
                "{{\"iops\": {iops}, \"lat_ns\": {{\"mean\": 80000}}, \"clat_ns\": {{\"percentile\": \
                 {{\"50.000000\": 70000, \"99.000000\": 200000}}}}}}"
            )
        };
        let job = |name: &str, options: &str, iops| {
            let read = read(iops);
            format!(
                "{{\"jobname\": \"{name}\", \"job options\": {{{options}}}, \"read\": {read}, \"write\": {{\"iops\": 0}}}}"
            )
        };
        let document = |jobs: &[String]| {
            let global = "{\"rw\": \"randread\", \"bs\": \"4k\"}";
            format!("note: text before\n{{\"global options\": {global}, \"jobs\": [{}]}}\n", jobs.join(","))
        };
        let copies = [job("a", "\"iodepth\": \"4\"", 1000), job("a", "\"iodepth\": \"4\"", 3000)];
        let [row] = rows(&document(&copies))[..] else { panic!() };
        assert_eq!((row.depth, row.iops, row.bytes), (8, 4000.0, 4096));
        assert_eq!((row.mean_ns, row.p50_ns, row.p99_ns), (Some(80_000.0), Some(70_000.0), Some(200_000.0)));
        let after = [job("a", "", 1000), job("b", "\"stonewall\": \"1\", \"bs\": \"64k\"", 500)];
        assert_eq!(rows(&document(&after)).len(), 2);
        let beside = [job("a", "", 1000), job("b", "\"bs\": \"64k\"", 500)];
        assert!(wrong(&document(&beside)).contains("jobs \"a\" and \"b\" ran at the same time"));
        assert!(wrong("{\"x\": 1}").contains("the file has no list of jobs"));
    }
}
