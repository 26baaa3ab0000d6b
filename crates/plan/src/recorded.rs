//! Records the workloads of the units with `workload = "observed"`. A workload consists of the
//! requests of the device that the unit submitted.

use std::collections::BTreeMap;
use std::io::Seek;
use std::sync::Arc;
use std::time::{Duration, Instant};

use iosched::{SECTOR_BYTES, Time};
use iosched_kernel::observe::Owner;
use iosched_kernel::{BlockDevice, RecordError, Recorder, StateDirectory};
use iosched_lab::{grouped, listed};
use iosched_trace::{ReadOptions, TraceError, TraceReader, TraceRequest};
use iosched_workload::{Trace, Workload, WorkloadError};

use crate::check::is_of;
use crate::ground::LONGEST_RUN_S;
use crate::intents::Intents;
use crate::target::Target;

/// Interval between two reads of the kernel's events.
const TICK: Duration = Duration::from_millis(5);
/// Largest number of requests of a unit. Further requests are left out, and the recording then
/// repeats sooner.
const REQUESTS_MAX: usize = 2_000_000;
/// Least share of recorded bytes without a unit at which a note is added.
const SHARE_NOTED: f64 = 0.05;
/// Largest number of names in a note or an error.
const NAMES_MAX: usize = 4;

/// The device to record, and the length of the recording.
#[derive(Clone, Copy)]
pub struct RecordRequest<'a> {
    /// The disk.
    pub device: &'a BlockDevice,
    /// Directory for the settings of the tracer, which must survive a crash.
    pub state: &'a StateDirectory,
    /// Length of the recording.
    pub length: Duration,
    /// Returns whether the user has ended the recording.
    pub is_ended: &'a dyn Fn() -> bool,
}

/// Reason why the workload of a unit could not be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// The device cannot be recorded.
    #[error(
        "{device}: {error}; workload = \"observed\" needs a recording, so run iosched plan as root on the machine with \
         the device, or write workload = \"FILE\" with a trace or a fio job file"
    )]
    Record {
        /// Name of the device.
        device: String,
        /// The reason.
        error: RecordError,
    },
    /// A unit had no I/O.
    #[error(
        "{file}: unit.{unit}: match = \"{target}\" had no I/O on {device} in {seconds:.1} s; run the workload of the \
         unit during the recording, record for longer with --observe-for, or correct the field match.{others} Reads \
         from the page cache cause no requests"
    )]
    Silent {
        /// Name of the intents file.
        file: String,
        /// Name of the unit.
        unit: String,
        /// The unit's counterpart on the machine.
        target: Target,
        /// Name of the device.
        device: String,
        /// Length of the recording, s.
        seconds: f64,
        /// A space and a sentence about the cgroups and processes that had I/O, or an empty text.
        others: String,
    },
    /// The recording cannot be stored or read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The recording is not a workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The recording cannot be stored.
    #[error("the recording cannot be stored in {}: {error}", std::env::temp_dir().display())]
    Io {
        /// Error of the system.
        #[from]
        error: std::io::Error,
    },
    /// The user ended the recording.
    #[error("interrupted before the recording was complete")]
    Interrupted,
}

/// Records the workloads of the units with `workload = "observed"`. `progress` gets the time since
/// the start, and the number of events.
///
/// # Errors
/// The device cannot be recorded, a unit had no I/O, or the user ended the recording.
#[expect(clippy::result_large_err, reason = "an error ends the command, so the size of the error does not matter")]
pub fn record(
    intents: &mut Intents,
    request: &RecordRequest<'_>,
    mut progress: impl FnMut(Duration, u64),
) -> Result<(), ObserveError> {
    let device = request.device;
    let name = device.name().to_owned();
    let failed = |error| ObserveError::Record { device: name.clone(), error };
    let mut recorder = Recorder::begin(device, request.state).map_err(failed)?.with_owners(device.roots());
    let begun = Instant::now();
    while begun.elapsed() < request.length {
        recorder.take().map_err(failed)?;
        if (request.is_ended)() {
            recorder.end().map_err(failed)?;
            return Err(ObserveError::Interrupted);
        }
        progress(begun.elapsed(), recorder.events());
        std::thread::sleep(TICK);
    }
    let length = begun.elapsed();
    let recorded = recorder.end().map_err(failed)?;
    let (lost, owners) = (recorded.lost(), recorded.owners().clone());
    let mut file = tempfile::tempfile()?;
    let mut requests = Vec::new();
    if recorded.events() > 0 {
        recorded.write(&mut file)?;
        file.rewind()?;
        let options = ReadOptions { partial: true, ..ReadOptions::default() };
        requests = TraceReader::from_reader(file, &name, &options)?.collect::<Result<_, _>>()?;
    }
    if lost > 0 {
        intents.notes.push(format!(
            "The kernel lost {} events of the recording of {name}, so the observed workloads are incomplete.",
            grouped(lost)
        ));
    }
    assign(intents, &Heard { device: &name, length, requests: &requests, owners: &owners })
}

/// A complete recording.
struct Heard<'a> {
    device: &'a str,
    length: Duration,
    /// All requests of the device, in order of time.
    requests: &'a [TraceRequest],
    /// Owners of the requests, by thread number.
    owners: &'a BTreeMap<u32, Owner>,
}

/// Assigns the recorded workloads to the units that need a recording.
#[expect(clippy::result_large_err, reason = "an error ends the command, so the size of the error does not matter")]
fn assign(intents: &mut Intents, heard: &Heard<'_>) -> Result<(), ObserveError> {
    // If cgroups are nested, the unit with the longest name is the most specific unit.
    let unit_of = |owner: &Owner| {
        let matching = intents.units.iter().enumerate().filter(|(_, unit)| is_of(&unit.target, owner));
        matching.max_by_key(|(_, unit)| unit.target.to_string().len()).map(|(number, _)| number)
    };
    let units: BTreeMap<u32, Option<usize>> = heard.owners.iter().map(|(tid, owner)| (*tid, unit_of(owner))).collect();
    let mut by_unit: Vec<Vec<TraceRequest>> = vec![Vec::new(); intents.units.len()];
    let (mut strangers, mut bytes): (BTreeMap<String, u64>, u64) = (BTreeMap::new(), 0);
    for request in heard.requests {
        let its_bytes = u64::from(request.nr_sectors) * SECTOR_BYTES;
        bytes += its_bytes;
        match units.get(&request.pid).copied().flatten() {
            Some(unit) if by_unit[unit].len() < REQUESTS_MAX => by_unit[unit].push(*request),
            Some(_) => {}
            None => *strangers.entry(stranger(heard.owners.get(&request.pid))).or_default() += its_bytes,
        }
    }
    let mut strangers: Vec<(String, u64)> = strangers.into_iter().collect();
    strangers.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let names: Vec<String> = strangers.iter().take(NAMES_MAX).map(|(name, _)| name.clone()).collect();
    let seconds = heard.length.as_secs_f64();
    for (unit, requests) in intents.units.iter_mut().zip(&by_unit).filter(|(unit, _)| unit.needs_recording) {
        if requests.is_empty() {
            let others = if names.is_empty() {
                format!(" {} had no I/O at all.", heard.device)
            } else {
                format!(" These had I/O: {}.", listed(&names, "and"))
            };
            return Err(ObserveError::Silent {
                file: intents.name.clone(),
                unit: unit.name.clone(),
                target: unit.target.clone(),
                device: heard.device.to_owned(),
                seconds,
                others,
            });
        }
        let name = format!("{} observed on {}", unit.name, heard.device);
        let repeated = repeated(requests, heard.length.as_nanos() as u64, (LONGEST_RUN_S * unit.scale * 1e9) as u64);
        let mut trace = Trace::collect(&name, 1, repeated.into_iter().map(Ok))?;
        trace.name_processes(|tid| heard.owners.get(&tid)?.process.clone());
        (unit.workload, unit.needs_recording) = (Workload::Trace(Arc::new(trace)), false);
        intents.notes.push(format!(
            "The workload of {} was recorded on {} for {seconds:.1} s: {} requests. The unit keeps this rate in the \
             simulation.",
            unit.name,
            heard.device,
            grouped(requests.len() as u64)
        ));
    }
    let strange: u64 = strangers.iter().map(|(_, bytes)| bytes).sum();
    if strange as f64 > bytes as f64 * SHARE_NOTED {
        intents.notes.push(format!(
            "{:.0} % of the recorded bytes belong to no unit, so the plan does not include them. These bytes are from \
             {}. They can include buffered writes of the units, because kernel threads send this data to the disk.",
            strange as f64 / bytes as f64 * 100.0,
            listed(&names, "and")
        ));
    }
    Ok(())
}

/// Returns the name of an owner that belongs to no unit.
fn stranger(owner: Option<&Owner>) -> String {
    match owner {
        None => "processes that ended early".to_owned(),
        Some(Owner { cgroup: Some(cgroup), process: Some(process) }) if cgroup == "/" => format!("process {process}"),
        Some(owner) => owner.name(),
    }
}

/// Returns requests that repeat until `wanted_ns`, so that each unit has its load for a whole run.
/// The period is the length of the recording. The first request is at time 0.
fn repeated(requests: &[TraceRequest], length_ns: u64, wanted_ns: u64) -> Vec<TraceRequest> {
    let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return Vec::new() };
    let first_ns = first.arrival.as_ns();
    let span_ns = last.arrival.as_ns() - first_ns;
    // If a unit has too many requests, only the first ones are stored.
    let period_ns = if requests.len() < REQUESTS_MAX { length_ns.max(span_ns + 1) } else { span_ns + 1 };
    let rounds_max = (REQUESTS_MAX / requests.len()).max(1) as u64;
    let rounds = (wanted_ns / period_ns + 1).min(rounds_max);
    let round = |round: u64| {
        requests.iter().map(move |request| {
            let arrival = Time::from_ns(request.arrival.as_ns() - first_ns + round * period_ns);
            TraceRequest { arrival, ..*request }
        })
    };
    (0..rounds).flat_map(round).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use iosched::{Flags, Op};

    use super::*;

    fn request(ms: u64, pid: u32) -> TraceRequest {
        TraceRequest {
            arrival: Time::from_ns(ms * 1_000_000),
            pid,
            device: None,
            op: Op::Read,
            flags: Flags::SYNC,
            sector: ms * 8,
            nr_sectors: 8,
            latency_ns: None,
            ioprio: None,
        }
    }

    fn intents() -> Intents {
        let text = "device = \"/dev/sdb\"\nprofile = \"sata-ssd\"\n\
                    [unit.db]\nmatch = \"system.slice/db.service\"\nworkload = \"observed\"\ngoal = \"p99(read) < 5 ms\"\n\
                    [unit.rest]\nmatch = \"system.slice\"\nworkload = \"observed\"\n";
        Intents::parse("i.toml", text, Path::new("")).unwrap()
    }

    fn owners() -> BTreeMap<u32, Owner> {
        let owner = |cgroup: &str, process: &str| Owner { cgroup: Some(cgroup.into()), process: Some(process.into()) };
        [
            (1, owner("system.slice/db.service", "postgres")),
            (2, owner("system.slice/cron.service", "cron")),
            (3, owner("/", "kworker/0:1")),
        ]
        .into()
    }

    fn heard<'a>(requests: &'a [TraceRequest], owners: &'a BTreeMap<u32, Owner>) -> Heard<'a> {
        Heard { device: "sdb", length: Duration::from_secs(20), requests, owners }
    }

    #[test]
    fn each_unit_gets_the_requests_of_its_cgroup() {
        let mut intents = intents();
        let requests = [request(5, 1), request(6, 2), request(7, 3), request(8, 1), request(9, 4)];
        assign(&mut intents, &heard(&requests, &owners())).unwrap();
        let mut names = Vec::new();
        for unit in &intents.units {
            assert!(!unit.needs_recording);
            let Workload::Trace(trace) = &unit.workload else { panic!("the workload is not a trace") };
            let first: Vec<(u64, u64)> =
                trace.entries().take(2).map(|entry| (entry.arrival_ns / 1_000_000, entry.sector())).collect();
            names.push((trace.processes()[0].name.clone(), first));
        }
        let expected = [("postgres", vec![(0, 40), (3, 64)]), ("cron", vec![(0, 48), (20_000, 48)])];
        assert_eq!(names, expected.map(|(name, first)| (name.to_owned(), first)));
        let note = intents.notes.last().unwrap();
        assert!(note.starts_with("40 % of the recorded bytes belong to no unit"), "{note}");
        assert!(note.contains("process kworker/0:1 and processes that ended early"), "{note}");
    }

    #[test]
    fn error_of_a_unit_without_io_names_processes_with_io() {
        let text =
            |requests: &[TraceRequest]| assign(&mut intents(), &heard(requests, &owners())).unwrap_err().to_string();
        let error = text(&[request(1, 2), request(2, 3)]);
        for part in [
            "i.toml: unit.db: match = \"system.slice/db.service\" had no I/O on sdb in 20.0 s",
            "--observe-for",
            "kworker/0:1",
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert!(text(&[]).contains("sdb had no I/O at all"));
    }

    #[test]
    fn recording_repeats_after_its_length() {
        let times = |requests: &[TraceRequest], length_ms: u64, wanted_ms: u64| -> Vec<u64> {
            let all = repeated(requests, length_ms * 1_000_000, wanted_ms * 1_000_000);
            all.iter().map(|request| request.arrival.as_ns() / 1_000_000).collect()
        };
        let requests = [request(100, 1), request(130, 1)];
        assert_eq!(times(&requests, 200, 450), [0, 30, 200, 230, 400, 430]);
        assert_eq!(times(&requests, 200, 100), [0, 30]);
    }

    #[test]
    fn a_plan_needs_the_recording() {
        let control = iosched_lab::Control::new(1);
        let error = crate::plan(&intents(), &crate::PlanOptions::default(), &control, |_| ()).unwrap_err();
        assert!(error.to_string().contains("unit.db"), "{error}");
    }
}
