//! Tests of block traces of simulated runs: iosched, blkparse and btt read the same values from the
//! traces as the records contain.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use iosched_disk::Profile;
use iosched_lab::{Control, Experiment, RunRecord, execute, write_blktrace};
use iosched_trace::{Action, EventReader, Payload, TraceReader};
use iosched_workload::{TaskSet, Workload};

/// Random reads, batches of neighbouring writes that merge on a plug, and a writer that fills the
/// queue.
const TASKS: &str = r#"
name = "mixed"
[[tasks]]
pid = 11
name = "reader"
pattern = "random"
range = [0, 100_000_000]
think_ns = 100_000
total = 300
[[tasks]]
pid = 12
name = "log writer"
op = "write"
sync = true
pattern = "seq"
start_sector = 500_000_000
iodepth = 8
total = 400
[[tasks]]
pid = 13
op = "write"
sync = false
iodepth = 64
pattern = "random"
range = [700_000_000, 900_000_000]
total = 500
"#;

const SETTINGS: [&str; 4] = ["noop", "deadline", "cfq", "cfq:nr_requests=16"];

fn experiment(workload: Workload) -> Experiment {
    let settings = SETTINGS.iter().map(|setting| setting.parse().unwrap()).collect();
    let mut experiment = Experiment::new(workload, Profile::named("sata-7200").unwrap(), settings).unwrap();
    experiment.runs = 1;
    experiment
}

fn tasks() -> Experiment {
    experiment(Workload::Tasks(TaskSet::parse("mixed.toml", TASKS).unwrap().into()))
}

/// A trace with flushes, writes with flushes, readahead, and an I/O that is split.
fn pgbench() -> Experiment {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/samples/pgbench.blktrace");
    experiment(Workload::open(&sample).unwrap())
}

fn runs(experiment: &Experiment) -> Vec<RunRecord> {
    execute(experiment, &Control::new(2), |_| Ok(())).unwrap().records.runs
}

fn trace(experiment: &Experiment, setting: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_blktrace(experiment, 0, setting, &mut bytes).unwrap();
    bytes
}

/// Returns the number of events of each action, and the number of requests that left plugs. Events
/// about priorities of processes do not count.
fn counts(bytes: Vec<u8>) -> (BTreeMap<Action, u64>, u64) {
    let (mut counts, mut unplugged) = (BTreeMap::new(), 0);
    for event in EventReader::from_reader(Cursor::new(bytes), "simulated", &Default::default()).unwrap() {
        let event = event.unwrap();
        if event.ioprio().is_some() {
            continue;
        }
        *counts.entry(event.action).or_default() += 1;
        if let Payload::Count(count) = event.payload {
            unplugged += count;
        }
    }
    (counts, unplugged)
}

#[test]
fn blktrace_output_has_every_io_with_process_and_latency() {
    let experiment = tasks();
    for run in runs(&experiment) {
        let bytes = trace(&experiment, run.setting);
        let mut reader = TraceReader::from_reader(Cursor::new(bytes), "simulated", &Default::default()).unwrap();
        let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert!(reader.warnings().is_empty(), "{:?}", reader.warnings().kept());
        assert_eq!(requests.len() as u64, run.result.ios);
        for task in &run.result.tasks {
            let requests_of_task: Vec<_> = requests.iter().filter(|request| request.pid == task.pid).collect();
            assert_eq!(requests_of_task.len() as u64, task.ios);
            let sum_ns: u64 = requests_of_task.iter().map(|request| request.latency_ns.expect("a completion")).sum();
            // In the trace, the latency begins at the submission. If a task waits for a free
            // request, it submits its next I/Os late, so the sum of latencies in the trace is
            // smaller than in the records.
            let exact = !SETTINGS[run.setting].contains("nr_requests");
            assert!(sum_ns == task.latency.sum_ns() || !exact && sum_ns < task.latency.sum_ns(), "{}", task.pid);
            assert!(
                requests_of_task.iter().all(|request| request.ioprio.unwrap().to_string() == task.ioprio),
                "{}",
                task.ioprio
            );
            let name = reader.process_names().get(&task.pid).map(|name| name.to_text());
            let expected = if task.name.is_empty() { format!("task-{}", task.pid) } else { task.name.clone() };
            assert_eq!(name, Some(expected));
        }
    }
}

#[test]
fn every_bio_and_request_completes() {
    let experiment = tasks();
    for run in runs(&experiment) {
        let (counts, unplugged) = counts(trace(&experiment, run.setting));
        let of = |action| counts.get(&action).copied().unwrap_or(0);
        assert_eq!(of(Action::Queue), run.result.ios);
        let merged = of(Action::BackMerge) + of(Action::FrontMerge);
        assert!(merged > 0, "neighbours merge");
        assert_eq!(of(Action::GetRequest) + merged, of(Action::Queue));
        assert_eq!(of(Action::Insert), of(Action::GetRequest));
        assert_eq!(of(Action::Issue), run.result.requests_dispatched);
        assert_eq!(of(Action::Complete), of(Action::Issue));
        assert!(of(Action::Plug) > 0 && of(Action::Plug) == of(Action::Unplug), "{counts:?}");
        assert!(unplugged >= of(Action::Unplug) && unplugged <= of(Action::Insert), "{unplugged}");
        assert_eq!(of(Action::SleepRequest) > 0, SETTINGS[run.setting].contains("nr_requests"), "{counts:?}");
        assert_eq!(of(Action::NoteMessage) > 0, SETTINGS[run.setting].starts_with("cfq"));
    }
}

#[test]
fn blktrace_output_has_flushes_and_parts_of_long_ios() {
    let experiment = pgbench();
    for run in runs(&experiment) {
        let bytes = trace(&experiment, run.setting);
        let mut reader = TraceReader::from_reader(Cursor::new(bytes), "simulated", &Default::default()).unwrap();
        let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert!(reader.warnings().is_empty(), "{:?}", reader.warnings().kept());
        // One I/O has two parts.
        assert_eq!(requests.len() as u64, run.result.ios + 1);
        assert!(requests.iter().all(|request| request.latency_ns.is_some()));
        let bytes: u64 = requests.iter().map(|request| u64::from(request.nr_sectors) * 512).sum();
        assert_eq!(bytes, run.result.bytes_read + run.result.bytes_written);
        let last = requests.iter().map(|r| r.arrival.as_ns() + r.latency_ns.unwrap_or(0)).max().unwrap();
        let first = run.result.tasks.iter().filter_map(|task| task.first_submit_ns).min().unwrap();
        assert_eq!(last, run.result.finished_ns - first);
    }
}

/// Creates an empty directory for a test.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Returns the output of an installed program; `None`, with a message, if it is not installed.
fn installed(directory: &Path, program: &str, args: &[&str]) -> Option<String> {
    match Command::new(program).args(args).current_dir(directory).output() {
        Ok(output) => {
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{program} cannot be run ({error}), and CI skips nothing");
            println!("skipped: {program} cannot be run ({error}); the package blktrace has it");
            None
        }
    }
}

#[test]
fn installed_blkparse_prints_every_record() {
    let here = directory("blkparse");
    for (name, experiment) in [("tasks", tasks()), ("pgbench", pgbench())] {
        for setting in 0..SETTINGS.len() {
            let base = format!("{name}-{setting}");
            let path = here.join(format!("{base}.blktrace.0"));
            std::fs::write(&path, trace(&experiment, setting)).unwrap();
            let Some(printed) = installed(&here, "blkparse", &["-q", "-i", &base]) else { return };
            let mut reader = EventReader::open(&path).unwrap();
            let mut ours = Vec::new();
            while let Some(event) = reader.next() {
                let event = event.unwrap();
                let name = reader.process_names().get(&event.pid).copied();
                ours.extend(event.to_blkparse_line(name));
            }
            let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            let is_event = |line: &&str| line.split_whitespace().next().is_some_and(|word| word == "8,0");
            let theirs: Vec<String> = printed.lines().filter(is_event).map(squeezed).collect();
            let ours: Vec<String> = ours.iter().map(String::as_str).filter(is_event).map(squeezed).collect();
            println!("{base}: {} records compared", ours.len());
            let differ = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
            assert_eq!((differ, ours.len()), (None, theirs.len()), "{base}");
        }
    }
}

/// Returns the mean (s) and the number of I/Os in a row of btt's first table.
fn row(table: &str, name: &str) -> (f64, u64) {
    let line = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {table}"));
    let fields: Vec<&str> = line.split_whitespace().collect();
    (fields[2].parse().unwrap(), fields[4].parse().unwrap())
}

#[test]
fn installed_btt_finds_the_mean_latency_of_the_records() {
    let here = directory("btt");
    let experiment = tasks();
    for run in runs(&experiment) {
        // In the records, the latency includes the time for which a task waits for a free request.
        // If tasks wait, the latency therefore differs from the trace.
        if SETTINGS[run.setting].contains("nr_requests") {
            continue;
        }
        let base = format!("tasks-{}", run.setting);
        std::fs::write(here.join(format!("{base}.blktrace.0")), trace(&experiment, run.setting)).unwrap();
        let binary = format!("{base}.bin");
        let Some(_) = installed(&here, "blkparse", &["-q", "-O", "-i", &base, "-d", &binary]) else { return };
        let Some(table) = installed(&here, "btt", &["-i", &binary]) else { return };
        let (mean_s, ios) = row(&table, "Q2C");
        assert_eq!(ios, run.result.ios, "{table}");
        let sum_ns: u64 = run.result.tasks.iter().map(|task| task.latency.sum_ns()).sum();
        let own_s = sum_ns as f64 / ios as f64 / 1e9;
        println!("{}: Q2C {mean_s} s of btt, {own_s} s of the records", SETTINGS[run.setting]);
        assert!((mean_s - own_s).abs() <= 1e-9, "{mean_s} {own_s}");
        let (_, queued) = row(&table, "Q2Q");
        assert_eq!(queued, run.result.ios - 1);
    }
}
