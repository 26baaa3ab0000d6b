//! Job files of other authors: fio's own examples. The tests compare the results and the options
//! with an installed fio.
#![allow(clippy::disallowed_methods, reason = "the test reads job files of other people, and runs an installed fio")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Variables, installed_fio};
use iosched_testing::machine::shared_folder;
use iosched_workload::fio::{CheckedJobs, JobError, ProblemKind, Treatment, ValueKind, job_options};

/// Variable with the folder of fio's examples. They are not in the repository, because they have
/// fio's licence.
const VARIABLE: &str = "IOSCHED_FIO_JOBS";

fn examples() -> Vec<PathBuf> {
    let Some(folder) = shared_folder("fio-jobs", VARIABLE) else { return Vec::new() };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|extension| extension == "fio")).collect();
    files.sort();
    assert!(!files.is_empty(), "the folder holds job files");
    files
}

/// Values of the variables that the examples use.
const EXAMPLE_VARIABLES: Variables = Variables(&[
    ("FIO_BS", "4096"),
    ("FIO_RW", "read"),
    ("FIO_IODEPTH", "4"),
    ("FIO_DIR", "/tmp"),
    ("GPU_DEV_IDS", "0"),
    ("POOL", "pool"),
    ("CONT", "cont"),
    ("S3_KEY", "key"),
    ("S3_ID", "id"),
]);

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn examples_are_valid_or_need_command_line_options() {
    for path in examples() {
        match CheckedJobs::open(&path, &EXAMPLE_VARIABLES) {
            Ok(checked) => {
                assert!(!checked.jobs.is_empty());
                for refusal in &checked.refusals {
                    assert!(refusal.place.line > 0 && !refusal.why.is_empty() && !refusal.option.is_empty());
                    let line = std::fs::read(&path).unwrap();
                    let line = line.split(|byte| *byte == b'\n').nth(refusal.place.line as usize - 1).unwrap();
                    assert!(String::from_utf8_lossy(line).contains(&refusal.option), "{refusal}");
                }
                let why: Vec<_> = checked
                    .refusals
                    .iter()
                    .map(|refusal| format!("line {}: {}={}", refusal.place.line, refusal.option, refusal.value))
                    .collect();
                let runs = if why.is_empty() { "runs".to_owned() } else { format!("refused: {}", why.join(", ")) };
                println!("{:36} {:3} jobs  {runs}", name(&path), checked.jobs.len());
            }
            Err(JobError::Invalid { problems, .. }) => {
                for problem in &problems {
                    // In practice, the user gives the missing device, or the engine with its
                    // options, on fio's command line.
                    let kind = &problem.kind;
                    assert!(is_for_the_command_line(kind), "{problem}");
                }
                println!("{:36}           needs {}", name(&path), problems[0].kind);
            }
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

fn is_for_the_command_line(kind: &ProblemKind) -> bool {
    match kind {
        ProblemKind::Contradiction { option, .. } => option == "size",
        ProblemKind::OtherEngine { .. } => true,
        _ => false,
    }
}

/// Returns whether an installed fio accepts a file. fio rejects valid files whose engines are
/// missing in this fio.
fn fio_accepts(path: &Path, why: &mut String) -> bool {
    let mut command = Command::new("fio");
    command.arg("--parse-only").arg(path);
    for (variable, value) in EXAMPLE_VARIABLES.0 {
        command.env(variable, value);
    }
    let output = command.output().unwrap();
    *why = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("").to_owned();
    output.status.success()
}

#[test]
fn examples_that_fio_accepts_are_accepted() {
    let Some(version) = installed_fio() else { return };
    let (mut both, mut newer) = (0, 0);
    for path in examples() {
        let mut why = String::new();
        let theirs = fio_accepts(&path, &mut why);
        let ours = CheckedJobs::open(&path, &EXAMPLE_VARIABLES);
        let ours = match ours {
            Ok(_) => true,
            // `--parse-only` does not check for contradictions.
            Err(JobError::Invalid { problems, .. }) => {
                problems.iter().all(|problem| matches!(problem.kind, ProblemKind::Contradiction { .. }))
            }
            Err(error) => panic!("{error}"),
        };
        assert!(ours || !theirs, "{}: {version} accepts it", path.display());
        both += usize::from(ours && theirs);
        if ours && !theirs {
            // This fio lacks the engine, or the option is from a later version.
            println!("{}: {version}: {why}", name(&path));
            newer += 1;
        }
    }
    println!("{both} accepted by both, {newer} not by {version}");
}

#[test]
fn every_option_of_an_installed_fio_is_known_with_its_aliases() {
    let Some(version) = installed_fio() else { return };
    let output = Command::new("fio").arg("--cmdhelp=all").output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    let mut known = 0;
    for line in names.lines() {
        let Some((option, _)) = line.split_once(':') else { continue };
        let option = option.trim();
        if option.is_empty() || option.contains(' ') {
            continue;
        }
        let ours = job_options().find(|ours| ours.engines.is_empty() && ours.is_called(option));
        let ours = ours.unwrap_or_else(|| panic!("{option} of {version} is not known"));
        known += 1;
        let help = Command::new("fio").arg(format!("--cmdhelp={option}")).output().unwrap();
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        for line in help.lines() {
            let Some((field, value)) = line.split_once(':') else { continue };
            match (field.trim(), value.trim()) {
                ("alias", alias) => assert!(ours.is_called(alias), "{option}: alias {alias}"),
                ("type", kind) if kind.starts_with("boolean") => {
                    // Some of these options have more than two values in later versions of fio.
                    let more =
                        matches!(ours.kind, ValueKind::Choice(words) if words.contains(&"0") && words.contains(&"1"));
                    assert!(ours.kind == ValueKind::Bool || more, "{option}");
                }
                ("type", kind) if kind.starts_with("empty or boolean") => {
                    assert_eq!(ours.kind, ValueKind::Flag, "{option}");
                }
                ("type", kind) if kind.starts_with("string with time") => {
                    let kind_of_ours = ours.kind.to_string();
                    assert!(kind_of_ours.starts_with("time"), "{option}: {kind_of_ours}");
                }
                _ => {}
            }
        }
    }
    assert!(known > 200, "{version} lists only {known} options");
    println!("{known} options of {version} are known");
}

#[test]
fn every_engine_option_of_an_installed_fio_is_known() {
    let Some(version) = installed_fio() else { return };
    let list = Command::new("fio").arg("--enghelp").output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let mut counts = BTreeMap::new();
    for engine in list.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && !line.contains(' ')) {
        let engine_is_known = iosched_workload::fio::io_engine(engine).is_some();
        assert!(engine_is_known, "engine {engine} of {version} is not known");
        let help = Command::new("fio").arg(format!("--enghelp={engine}")).output().unwrap();
        for line in String::from_utf8_lossy(&help.stdout).lines() {
            let Some((option, _)) = line.split_once(':') else { continue };
            let option = option.trim();
            if option.is_empty() || option.contains(' ') {
                continue;
            }
            let ours = job_options().find(|ours| ours.engines.contains(&engine) && ours.is_called(option));
            assert!(ours.is_some(), "{engine}: {option} of {version} is not known");
            *counts.entry(engine.to_owned()).or_insert(0) += 1;
        }
    }
    println!("options of engines of {version}: {counts:?}");
}

#[test]
fn iosched_and_fio_accept_the_same_values() {
    let Some(version) = installed_fio() else { return };
    let folder = std::env::temp_dir().join(format!("iosched-fio-values-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("job.fio");
    let mut differ = Vec::new();
    for line in LINES {
        let text = format!("[j]\nsize=1m\n{line}\n");
        std::fs::write(&path, &text).unwrap();
        let theirs = fio_accepts(&path, &mut String::new());
        let ours = CheckedJobs::open(&path, &EXAMPLE_VARIABLES).is_ok();
        if ours != theirs {
            differ.push(*line);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(differ.is_empty(), "{version} and iosched differ for {differ:?}");
}

/// Options with valid and invalid values. fio 3.33 also accepts some values of which it parses only
/// the beginning (`bs=4x`). iosched rejects such values, so they are not in this list.
const LINES: &[&str] = &[
    "bs=4k",
    "bs=8k,32k,",
    "bs=,8k",
    "bs=0",
    "bs=x",
    "bs=\"4k\"",
    "blocksize=4K",
    "ba=4k",
    "bsrange=4k",
    "bsrange=4k-8k,8k:16k/1k-2k",
    "bssplit=4k/10:64k/50:32k/40",
    "rw=randrw",
    "rw=Read",
    "rw=readwrite",
    "rw=read:8k",
    "rw=read:-8k",
    "rw",
    "rw=randread:8",
    "direct=1",
    "direct=2",
    "direct=true",
    "direct",
    "buffered=0",
    "stonewall",
    "stonewall=1",
    "norandommap=0",
    "iodepth=0",
    "iodepth=1k",
    "iodepth=0x10",
    "iodepth_batch_complete=0",
    "prio=7",
    "prio=8",
    "prioclass=3",
    "prioclass=4",
    "nice=-20",
    "nice=-21",
    "rwmixread=100",
    "rwmixread=101",
    "percentage_random=50,20",
    "percentage_random=101",
    "sync=dsync",
    "sync=5",
    "sync_file_range=write:8",
    "sync_file_range=x:8",
    "random_distribution=zipf:1.2",
    "random_distribution=zipf:1.2:0.25",
    "random_distribution=zipf:1",
    "random_distribution=pareto:0.2",
    "random_distribution=pareto:1.2",
    "random_distribution=normal:10",
    "random_distribution=normal:101",
    "random_distribution=zoned:60/10:30/20:8/30:2/40",
    "random_distribution=zoned:60/10:30/20",
    "random_distribution=flat",
    "file_service_type=random:8",
    "file_service_type=zipf:1.2",
    "runtime=5m",
    "runtime=1500ms",
    "runtime=x",
    "startdelay=1:5",
    "startdelay=a",
    "thinktime=5ms",
    "max_latency=5s",
    "rate=1m,500k",
    "rate=a",
    "rate_iops=,10",
    "rate_process=poisson",
    "rate_process=z",
    "latency_percentile=99.9",
    "latency_percentile=101",
    "kb_base=1000",
    "kb_base=1023",
    "unit_base=8",
    "unit_base=4",
    "size=10%",
    "size=",
    "offset=50%",
    "offset_increment=10%",
    "io_size=10%",
    "filesize=4k-8k",
    "number_ios=x",
    "loops=3",
    "numjobs=4",
    "description=",
    "description=a b",
    "filename=",
    "percentile_list=1:2:3",
    "percentile_list=abc",
    "significant_figures=11",
    "log_entries=3",
    "log_entries=2048",
    "zonemode=x",
    "random_generator=lfsr",
    "random_generator=x",
    "exit_what=all",
    "exit_what=z",
    "io_submit_mode=offload",
    "io_submit_mode=x",
    "continue_on_error=all",
    "continue_on_error=zz",
    "fadvise_hint=9",
    "fallocate=keep",
    "fallocate=9",
    "dedupe_mode=z",
    "unified_rw_reporting=both",
    "unified_rw_reporting=3",
    "write_hint=short",
    "write_hint=z",
    "lockfile=x",
    "cgroup_weight=1001",
    "flow=100",
    "verify_backlog=x",
    "hipri",
    "blocksizee=4k",
    "BS=4k",
    "threads=1",
    "thread",
    "write_bw_log",
    "write_lat_log=x",
    "cmdprio_percentage=20",
    "ioengine=libaio\ncmdprio_percentage=20",
    "ioengine=libaio\ncmdprio_class=4",
    "ioengine=libaio\ncmdprio_bssplit=64k/25/1/1:64k/75/3/2:1024k/0,1024k/0",
    "ioengine=io_uring\nhipri",
    "ioengine=libaio\nhipri",
    "ioengine=rbd\nrbdname=x",
    "zone_reset_threshold=2",
    "rw_sequencer=identical",
    "rw_sequencer=z",
    "replay_time_scale=0",
    "thinktime_blocks_type=issue",
    "clat_percentiles",
    "exitall",
    "mem_align=4k",
    "hugepage-size=2m",
    "nr_files=3",
    "ss=iops:10%",
];

#[test]
fn options_that_are_not_honoured_have_a_reason() {
    for option in job_options() {
        assert_eq!(option.treatment.reason().is_empty(), option.treatment == Treatment::Honoured, "{}", option.name);
        assert!(!option.help.is_empty() && !option.help.ends_with('.'), "{}", option.name);
    }
}
