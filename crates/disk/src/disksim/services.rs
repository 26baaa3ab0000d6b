//! Traces of real disks, with one request per line. The host sent the requests one at a time.
//!
//! The format is `R|W Hit|Miss|Doub|Trip block count service_us next_us`. The second field is a
//! label, which is checked and not used. `block` is the first block, and `count` is the number of
//! blocks of 512 bytes. `service_us` is the time from the request to its completion. `next_us` is
//! the time from the completion to the next request.
//!
//! We found no description of the labels. `Hit` says nothing about the cache: in eight traces, all
//! requests have it, even reads of 14 ms. `Doub` and `Trip` are labels of writes in the trace of
//! the HP C2247A. A comparison with a model uses only the measured times.

use iosched::Op;

use super::error::DiskSimError;

/// Longest valid time, us: a thousand seconds.
const US_MAX: f64 = 1e9;

/// A request to a real disk, and its measured times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Read or write.
    pub op: Op,
    /// First sector.
    pub sector: u64,
    /// Length in sectors, at least 1.
    pub nr_sectors: u32,
    /// Time from the request to its completion, ns.
    pub service_ns: u64,
    /// Time from the completion to the next request, ns.
    pub next_ns: u64,
}

/// Parses the requests of a disk of `capacity_sectors`.
///
/// # Errors
/// A line is not a valid request, a request is beyond the end of the disk, or there are no
/// requests.
pub fn service_times(file: &str, text: &str, capacity_sectors: u64) -> Result<Vec<Service>, DiskSimError> {
    let mut services = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        let Some(service) = parse(line) else {
            let remedy = "a line must have the form `R|W Hit|Miss|Doub|Trip block count service_us next_us`";
            return Err(DiskSimError::at(
                file,
                number,
                format!("{line:?} is not a line with a measured request"),
                remedy,
            ));
        };
        if service.sector + u64::from(service.nr_sectors) > capacity_sectors {
            let problem = format!("{} sectors at sector {} are out of range", service.nr_sectors, service.sector);
            let remedy = format!("the disk has only {capacity_sectors} sectors; give a trace of this disk");
            return Err(DiskSimError::at(file, number, problem, remedy));
        }
        services.push(service);
    }
    if services.is_empty() {
        return Err(DiskSimError::of(file, "the trace has no requests", "give a trace with at least one request"));
    }
    Ok(services)
}

/// Labels of requests.
const LABELS: [&str; 4] = ["Hit", "Miss", "Doub", "Trip"];

fn parse(line: &str) -> Option<Service> {
    let mut fields = line.split_ascii_whitespace();
    let op = match fields.next()? {
        "R" => Op::Read,
        "W" => Op::Write,
        _ => return None,
    };
    fields.next().filter(|label| LABELS.contains(label))?;
    let sector = fields.next()?.parse().ok().filter(|&sector: &u64| sector < 1 << 48)?;
    let nr_sectors = fields.next()?.parse().ok().filter(|count| (1..=1 << 24).contains(count))?;
    let mut ns = || {
        let us: f64 = fields.next()?.parse().ok()?;
        (0.0..=US_MAX).contains(&us).then(|| (us * 1e3).round() as u64)
    };
    let (service_ns, next_ns) = (ns()?, ns()?);
    fields.next().is_none().then_some(Service { op, sector, nr_sectors, service_ns, next_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_one_request() {
        let services = service_times("a.trace", "R Hit    3962268  12   6657.00000  64047.00000\n\n", 1 << 30).unwrap();
        let service =
            Service { op: Op::Read, sector: 3_962_268, nr_sectors: 12, service_ns: 6_657_000, next_ns: 64_047_000 };
        assert_eq!(services, [service]);
    }

    #[test]
    fn lines_with_doub_and_trip_are_read() {
        let services = service_times("a.trace", "W Doub 8 4 9.0 1.0\nW Trip 12 4 9.0 1.0\n", 1000).unwrap();
        assert_eq!(services.iter().map(|service| service.sector).collect::<Vec<_>>(), [8, 12]);
    }

    #[test]
    fn errors_name_the_line() {
        let message = |text: &str| service_times("a.trace", text, 1000).unwrap_err().to_string();
        assert!(
            message("R Hit 1 4 5.0 6.0\nR Hit 1 4 5.0\n")
                .starts_with("a.trace:2: \"R Hit 1 4 5.0\" is not a line with")
        );
        assert!(
            message("R Hit 999 4 5.0 6.0\n")
                .contains("4 sectors at sector 999 are out of range; the disk has only 1000")
        );
        assert!(message("W Hit 1 0 5.0 6.0\n").contains("is not a line with a measured request"));
        assert!(message("W Hit 1 1 -5.0 6.0\n").contains("is not a line with a measured request"));
        assert!(message("\n").contains("the trace has no requests"));
    }
}
