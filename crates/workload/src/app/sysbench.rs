//! sysbench's fileio test: threads read and write blocks of many files, and sync all files at
//! intervals.
//!
//! The files exist as `prepare` leaves them, except with `seqwr`, which creates them. Random blocks
//! are uniformly distributed. With `rndrw`, there are three reads for every two writes. After every
//! 100 requests, each file is synced if any request was a write. The threads take reads, writes and
//! syncs from one list. Syncs count as events. The model follows the system calls of sysbench
//! 1.0.20.

use crate::WorkloadError;
use crate::app::command_line::Line;
use crate::app::option::{DIRECT_BYTES, flag, option};
use crate::app::phased::{Action, Order, Phase, PhaseResult, Plan, Syncs};
use crate::app::{About, Better, Figure, OpenFlags, Report};

/// Name and options of sysbench.
pub(in crate::app) const ABOUT: About = About {
    name: "sysbench",
    about: "the test fileio, whose threads read, write and sync blocks of many files",
    options: &[
        option("--file-test-mode", "MODE", "seqwr, seqrewr, seqrd, rndrd, rndwr or rndrw"),
        option("--file-total-size", "SIZE", "size of all files together; default 2G"),
        option("--file-num", "N", "number of files; default 128"),
        option("--file-block-size", "SIZE", "size of a request; default 16384"),
        option("--file-io-mode", "MODE", "sync"),
        option(
            "--file-async-backlog",
            "N",
            "no effect in iosched, because iosched does not simulate the asynchronous I/O of sysbench",
        ),
        option("--file-extra-flags", "FLAGS", "any of direct, dsync and sync, separated by commas"),
        option("--file-fsync-freq", "N", "sync all files after this number of requests; 0: never; default 100"),
        option("--file-fsync-all", "[on|off]", "sync after each write; default off"),
        option("--file-fsync-end", "[on|off]", "sync all files at the end; default on"),
        option("--file-fsync-mode", "MODE", "fsync or fdatasync; default fsync"),
        option("--file-rw-ratio", "R", "number of reads for each write of rndrw; default 1.5"),
        option("--threads", "N", "number of threads; default 1"),
        option("--time", "SECONDS", "end after this time in seconds; 0: no limit; default 10"),
        option("--events", "N", "end after this number of requests; 0: no limit; default 0"),
        option(
            "--test",
            "TEST",
            "fileio, in the syntax before sysbench 1.0; without --time, the test ends after 10,000 requests",
        ),
        option("--num-threads", "N", "the same as --threads"),
        option("--max-time", "SECONDS", "the same as --time"),
        option("--max-requests", "N", "the same as --events"),
        option("--report-interval", "SECONDS", "no effect in iosched, because the option affects only the output"),
        option("--percentile", "N", "no effect in iosched, because iosched always reports the 95th percentile"),
        option("--verbosity", "N", "no effect in iosched, because the option affects only the output"),
        flag("--histogram", "no effect in iosched, because the option affects only the output"),
        option("--rand-seed", "N", "no effect in iosched, because each run has a seed"),
        flag("--init-rng", "no effect in iosched, because each run has a seed"),
    ],
};

/// Largest number of threads and of files.
const COUNT_MAX: u64 = 100_000;
/// Number of requests of a test in the old syntax, which sets no time limit.
const OLD_REQUESTS: u64 = 10_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Parses the options of sysbench into a phase.
pub(in crate::app) fn plan(line: &Line<'_>) -> Result<Plan, WorkloadError> {
    let first = line.arguments().find(|word| !word.starts_with('-'));
    if let Some(test) = first.filter(|word| word.starts_with("oltp") || word.ends_with(".lua")) {
        let problem = format!("iosched does not simulate the test `{test}`, because its I/O comes from a database");
        let remedy = "simulate a database with the workload tpcc, or record the disk of the database: iosched record \
                      DISK --for 60";
        return Err(line.error("TEST", problem, remedy));
    }
    if let Some(test) = first.filter(|word| ["cpu", "memory", "threads", "mutex"].contains(word)) {
        let problem = format!("the test `{test}` makes no I/O");
        return Err(line.error("TEST", problem, "write sysbench fileio ... run"));
    }
    let (given, words) = line.options(ABOUT.options)?;
    let last = |names: &[&str]| given.iter().rev().find(|given| names.contains(&given.name)).copied();
    let on = |name: &str, default: bool| match last(&[name]).map(|given| (given, given.value)) {
        None => Ok(default),
        Some((_, "" | "on" | "yes" | "1" | "true")) => Ok(true),
        Some((_, "off" | "no" | "0" | "false")) => Ok(false),
        Some((given, value)) => {
            Err(line.error(given.name, format!("`{value}` is neither on nor off"), "write on or off"))
        }
    };
    let is_old = last(&["--test"]).is_some();
    let test = last(&["--test"]).map_or_else(|| words.first().copied().unwrap_or(""), |given| given.value);
    if test != "fileio" {
        let problem = format!("iosched does not simulate the test `{test}`");
        return Err(line.error("TEST", problem, "write sysbench fileio ... run"));
    }
    match words.last() {
        Some(&"run") => {}
        Some(command) if ["prepare", "cleanup"].contains(command) => {
            return Err(line.error(
                *command,
                "iosched simulates only the command run; the files already exist",
                "write run",
            ));
        }
        _ => return Err(line.error("run", "is missing", "write sysbench fileio ... run")),
    }
    if let Some(given) = last(&["--file-io-mode"]).filter(|given| given.value != "sync") {
        let remedy = "write --file-io-mode=sync, or use a fio command line with --iodepth";
        return Err(line.error(given.name, format!("iosched does not simulate {}", given.value), remedy));
    }
    let size = |name: &str, default: u64| last(&[name]).map_or(Ok(default), |given| line.size(given, 1));
    let (total_bytes, block_bytes) = (size("--file-total-size", 2 << 30)?, size("--file-block-size", 16 << 10)?);
    let number = |names: &[&str], default: u64, least: u64, most: u64| {
        last(names).map_or(Ok(default), |given| line.number(given, least, most))
    };
    let files = number(&["--file-num"], 128, 1, COUNT_MAX)?;
    let threads = number(&["--threads", "--num-threads"], 1, 1, COUNT_MAX)?;
    let requests = number(&["--events", "--max-requests"], if is_old { OLD_REQUESTS } else { 0 }, 0, u64::MAX)?;
    let time = last(&["--time", "--max-time"]).map(|given| line.time(given)).transpose()?;
    let time_ns = time.unwrap_or(if is_old { 0 } else { 10 * SECOND_NS });
    if requests == 0 && time_ns == 0 {
        return Err(line.error("--time", "the test has no end", "write --time=SECONDS or --events=N"));
    }
    let file_bytes = total_bytes / files;
    if file_bytes < block_bytes {
        let problem = format!(
            "{files} files of {file_bytes} bytes each are smaller than a block of {block_bytes} \
            bytes"
        );
        return Err(line.error("--file-total-size", problem, "give a larger size, or fewer files"));
    }
    let flags = last(&["--file-extra-flags"]).map_or("", |given| given.value);
    let mut open = OpenFlags::default();
    for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
        match flag {
            "direct" => open.direct = true,
            "sync" => (open.sync, open.data_only) = (true, false),
            "dsync" => (open.sync, open.data_only) = (true, !open.sync || open.data_only),
            other => {
                let problem = format!("`{other}` is not a known value");
                return Err(line.error("--file-extra-flags", problem, "use direct, dsync or sync"));
            }
        }
    }
    if open.direct && !block_bytes.is_multiple_of(DIRECT_BYTES) {
        let problem = format!("direct I/O is not possible with blocks of {block_bytes} bytes");
        return Err(line.error("--file-block-size", problem, format!("write a multiple of {DIRECT_BYTES}")));
    }
    let ratio = match last(&["--file-rw-ratio"]) {
        None => 1.5,
        Some(given) => given.value.parse().ok().filter(|ratio: &f64| (0.0..=1e6).contains(ratio)).ok_or_else(|| {
            line.error(given.name, format!("`{}` is not a ratio from 0 to 10^6", given.value), "write 1.5")
        })?,
    };
    let Some(mode) = last(&["--file-test-mode"]) else {
        let remedy = "write --file-test-mode=rndrw, or seqwr, seqrewr, seqrd, rndrd, rndwr";
        return Err(line.error("--file-test-mode", "is missing", remedy));
    };
    let (action, order) = match mode.value {
        "seqwr" | "seqrewr" => (Action::Write, Order::Around),
        "seqrd" => (Action::Read, Order::Around),
        "rndrd" => (Action::Read, Order::Random),
        "rndwr" => (Action::Write, Order::Random),
        "rndrw" => (Action::Mixed { reads_per_write: ratio }, Order::Random),
        other => {
            let remedy = "use seqwr, seqrewr, seqrd, rndrd, rndwr or rndrw";
            return Err(line.error(mode.name, format!("`{other}` is not a known value"), remedy));
        }
    };
    let makes_files = mode.value == "seqwr";
    (open.create, open.truncate) = (makes_files, makes_files);
    let data_only = match last(&["--file-fsync-mode"]).map_or("fsync", |given| given.value) {
        "fsync" => false,
        "fdatasync" => true,
        other => {
            let problem = format!("`{other}` is not a known value");
            return Err(line.error("--file-fsync-mode", problem, "write fsync or fdatasync"));
        }
    };
    let each_write = on("--file-fsync-all", false)?;
    let every_requests = number(&["--file-fsync-freq"], 100, 0, u64::MAX)?;
    let at_end = on("--file-fsync-end", true)? && action != Action::Read;
    let syncs = Syncs { data_only, every_requests: if each_write { 0 } else { every_requests }, each_write, at_end };
    let phase = Phase {
        name: "fileio",
        tasks: threads as usize,
        action,
        order,
        block_bytes,
        file_bytes_max: u64::MAX,
        flags: open,
        requests: Some(requests).filter(|&requests| requests > 0),
        duration_ns: Some(time_ns).filter(|&time_ns| time_ns > 0),
        compute_ns: 0,
        syncs,
        has_latency: true,
    };
    Ok(Plan {
        program: ABOUT.name,
        files: vec![file_bytes; files as usize],
        files_exist: !makes_files,
        tasks: threads as usize,
        phases: vec![phase],
        report,
        notes: Vec::new(),
    })
}

/// Returns the rates, in MiB per second, and the latencies of requests and syncs.
fn report(results: &[PhaseResult]) -> Report {
    let mut report = Report::default();
    let Some(result) = results.first().filter(|result| result.requests > 0) else { return report };
    let (seconds, mib) = (result.seconds(), f64::from(1 << 20));
    let mut figure = |name: &str, unit: &'static str, value: f64, better| {
        if value > 0.0 {
            report.figures.push(Figure { name: name.to_owned(), unit: unit.into(), value, better });
        }
    };
    figure("reads", "1/s", result.reads as f64 / seconds, Better::Higher);
    figure("writes", "1/s", result.writes as f64 / seconds, Better::Higher);
    figure("fsyncs", "1/s", result.syncs as f64 / seconds, Better::Higher);
    figure("read", "MiB/s", result.bytes_read as f64 / mib / seconds, Better::Higher);
    figure("written", "MiB/s", result.bytes_written as f64 / mib / seconds, Better::Higher);
    figure("latency_avg", "ms", result.latency.mean_ns() / 1e6, Better::Lower);
    figure("latency_95th", "ms", result.latency.quantile_ns(0.95) as f64 / 1e6, Better::Lower);
    report
}

#[cfg(test)]
mod tests {
    use crate::app::tests::calls;
    use crate::app::{Call, Spec};

    const SMALL: &str = "--file-num=4 --file-total-size=1M";

    fn calls_of(text: &str) -> Vec<Call> {
        calls(text, 1_000_000).0.into_iter().map(|timed| timed.call).collect()
    }

    fn counts(calls: &[Call]) -> (usize, usize, usize) {
        let count = |is: fn(&Call) -> bool| calls.iter().filter(|call| is(call)).count();
        (
            count(|call| matches!(call, Call::Read { .. })),
            count(|call| matches!(call, Call::Write { .. })),
            count(|call| matches!(call, Call::Fsync { .. } | Call::Fdatasync { .. })),
        )
    }

    #[test]
    fn sysbench_mixes_3_to_2_and_syncs_every_100_requests() {
        let calls = calls_of(&format!("sysbench fileio --file-test-mode=rndrw {SMALL} --events=1000 --time=0 run"));
        // All four files are synced nine times, and once more at the end. sysbench counts syncs as
        // events.
        assert_eq!(counts(&calls), (579, 385, 40));
    }

    #[test]
    fn syncs_count_as_events() {
        // sysbench 1.0.20 makes these calls with these options: two syncs of all four files, and
        // another sync of all files at the end.
        let calls = calls_of(&format!("sysbench fileio --file-test-mode=rndwr {SMALL} --events=250 --time=0 run"));
        assert_eq!(counts(&calls), (0, 242, 12));
    }

    #[test]
    fn sync_options_set_the_number_of_syncs() {
        let run = |options: &str| {
            counts(&calls_of(&format!(
                "sysbench fileio --file-test-mode=rndwr {SMALL} --events=100 --time=0 {options} run"
            )))
        };
        assert_eq!(run("--file-fsync-freq=0"), (0, 100, 4));
        assert_eq!(run("--file-fsync-freq=0 --file-fsync-end=off"), (0, 100, 0));
        assert_eq!(run("--file-fsync-all --file-fsync-end=off"), (0, 100, 100));
        assert_eq!(run("--file-fsync-all=on --file-fsync-end=off"), (0, 100, 100));
        let read = calls_of(&format!("sysbench fileio --file-test-mode=rndrd {SMALL} --events=100 --time=0 run"));
        assert_eq!(counts(&read), (100, 0, 0));
    }

    #[test]
    fn threads_run_in_parallel_for_the_max_time() {
        let line = format!("sysbench --test=fileio --file-test-mode=seqrd {SMALL} --num-threads=4 --max-time=1 run");
        let (all, app) = calls(&line, 10_000_000);
        let reads = all.iter().filter(|timed| matches!(timed.call, Call::Read { .. })).count();
        // Each thread makes a hundred calls of 10 ms in a second.
        assert_eq!(reads, 400);
        let report = app.report();
        let of = |name: &str| report.figures.iter().find(|figure| figure.name == name).unwrap().value;
        assert!((of("reads") - 400.0).abs() < 1.0 && (of("latency_avg") - 10.0).abs() < 0.01, "{report:?}");
        // A test in the old syntax ends after 10,000 requests.
        let old = calls_of(&format!("sysbench --test=fileio --file-test-mode=rndrd {SMALL} run"));
        assert_eq!(counts(&old).0, 10_000);
    }

    #[test]
    fn sequential_writes_create_files_and_wrap_around() {
        let calls = calls_of(&format!("sysbench fileio --file-test-mode=seqwr {SMALL} --events=65 --time=0 run"));
        let offsets: Vec<u64> = calls
            .iter()
            .filter_map(|call| match call {
                Call::Write { offset, .. } => Some(offset / 16_384),
                _ => None,
            })
            .collect();
        assert_eq!(offsets[..17], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0]);
        assert_eq!((offsets.len(), offsets[64]), (65, 0));
        assert!(calls.iter().any(|call| matches!(call, Call::Open { flags, .. } if flags.create && flags.truncate)));
    }

    #[test]
    fn errors_name_the_option() {
        let error = |text: &str| Spec::parse(&format!("sysbench {text}")).map(|_| ()).unwrap_err().to_string();
        assert!(error("cpu run").contains("TEST: the test `cpu` makes no I/O; write sysbench fileio"));
        let database = error("oltp_read_write --tables=10 --mysql-user=x run");
        assert!(database.contains(
            "TEST: iosched does not simulate the test `oltp_read_write`, because its I/O comes from a database"
        ));
        assert!(
            error("fileio --file-test-mode=rndrw prepare").contains("prepare: iosched simulates only the command run")
        );
        assert!(error("fileio --file-test-mode=rndrw").contains("run: is missing"));
        assert!(error("fileio run").contains("--file-test-mode: is missing"));
        assert!(error("fileio --file-io-mode=async run").contains("--file-io-mode: iosched does not simulate async"));
        assert!(error("fileio --file-test-mode=rndrw --rate=10 run").contains("--rate: unknown option"));
        assert!(error("fileio --file-test-mode=rndrw --file-total-size=1M run").contains("smaller than a block"));
        assert!(error("fileio --file-test-mode=rndrw --time=0 run").contains("--time: the test has no end"));
    }
}
