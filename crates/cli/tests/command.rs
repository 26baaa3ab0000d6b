//! Tests of the output and the exit codes of the command.

mod common;

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{IOSCHED, command_in as iosched, directory, interrupt, run_in as run};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/samples/pgbench.blktrace.0.zst");
const TASKS: &str =
    "[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 100\n\n[[tasks]]\npid = 2\npattern = \"random\"\ntotal = 50\n";

/// Asserts that the command fails with `code`, prints nothing on standard output, writes no
/// records, and prints each of `expected` on standard error.
#[track_caller]
fn refused(directory: &Path, args: &[&str], code: i32, expected: &[&str]) {
    let (found, out, err) = run(directory, args);
    assert_eq!((found, out.as_str()), (code, ""), "{args:?}: {err}");
    assert!(err.starts_with("error: "), "{args:?}: {err}");
    for part in expected {
        assert!(err.contains(part), "{args:?} should say {part:?}: {err}");
    }
    for never in ["panicked", "Error(", "Os {", "kind:"] {
        assert!(!err.contains(never), "{args:?}: {err}");
    }
    assert!(!directory.join("last.jsonl").exists(), "{args:?} ran something");
}

#[test]
fn iosched_without_arguments_compares_the_sample() {
    let here = directory("main-job");
    let (code, out, err) = run(&here, &[]);
    assert_eq!((code, err.as_str()), (0, ""));
    for part in [
        "7,638 requests, 674 reads, 9 processes",
        "sata-7200",
        "(baseline)",
        "sync p99",
        "Keep `mq-deadline`. ",
        "\nThis is a sample: ",
        "--workload FILE and --device PROFILE or --on DEVICE",
        "difference from `mq-deadline` (",
        "doubts, the most important first:",
        "next: ",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains('\u{1b}'), "iosched prints colours only on a terminal");
    let records = std::fs::read_to_string(here.join("last.jsonl")).unwrap();
    assert!(records.starts_with("{\"record\":\"header\","));
    // The file contains a header, 50 runs, 5 timelines, and runs of single processes.
    assert!(records.lines().count() > 56, "{}", records.lines().count());
    for setting in ["none", "mq-deadline", "kyber", "bfq", "cfq"] {
        assert!(out.contains(setting), "{setting} is missing: {out}");
    }
    let width = out.lines().filter(|line| !line.starts_with("records: ")).map(|line| line.chars().count()).max();
    assert!(width <= Some(100), "{width:?}: {out}");
}

#[test]
fn usage_errors_come_before_any_run() {
    let here = directory("refused");
    std::fs::write(here.join("tasks.toml"), TASKS).unwrap();
    std::fs::write(here.join("jobs.fio"), "[job]\nrw=read\ndirect=1\nsize=1m\n").unwrap();
    std::fs::write(here.join("text"), "hello\n").unwrap();
    std::fs::write(here.join("empty"), "").unwrap();
    std::fs::write(here.join("bad.toml"), "[[tasks]]\npid = 1\npatern = \"seq\"\n").unwrap();
    std::fs::write(here.join("dev.toml"), "kind = \"hdd\"\n").unwrap();
    let compare = |args: &[&str], code, expected: &[&str]| {
        refused(&here, &[&["compare"], args].concat(), code, expected);
    };
    compare(&["--scheduler", "nop"], 2, &["--scheduler", "there is no scheduler \"nop\"; available: noop"]);
    compare(&["--scheduler", "cfq:slice_idel=0"], 2, &["slice_idel", "slice_idle"]);
    compare(
        &["--scheduler", "cfq:quantum=0"],
        2,
        &["quantum: 0 is out of range; it must be from 1 to 4294967295 requests"],
    );
    compare(&["--scheduler", "cfq:quantum"], 2, &["is not of the form name=value"]);
    compare(&["--scheduler", "cfq", "--scheduler", "cfq"], 2, &["given twice"]);
    compare(&["--scheduler", "cfq:max_sectors_kb=100000"], 2, &["max_sectors_kb: 100000 is out of range"]);
    compare(&["--scheduler", "cfq", "--baseline", "noop"], 2, &["baseline noop is not one of", "cfq"]);
    compare(&["--cgroup", "db"], 2, &["--cgroup", "write CGROUP=PROCESS, such as db=postgres"]);
    compare(
        &["--cgroup", "db=mysqld"],
        2,
        &["db=mysqld: the trace has no process with this name; the names in the trace are postgres, "],
    );
    let unknown = ["--cgroup", "db=postgres", "--scheduler", "none:io.max=dc:riops=20"];
    compare(&unknown, 2, &["io.max: the workload has no cgroup \"dc\"; available: db; did you mean db?"]);
    let none = "the workload has no cgroups; ";
    compare(&["-s", "none:io.max=dc:riops=20"], 2, &[none, "--cgroup dc=PROCESS"]);
    compare(
        &["-w", "tasks.toml", "-s", "none:io.max=dc:riops=20"],
        2,
        &[none, "to put a task into this cgroup, add cgroup = \"dc\" to the task"],
    );
    compare(
        &["-w", "jobs.fio", "-s", "none:io.max=dc:riops=20"],
        2,
        &[none, "to put a job into this cgroup, add cgroup=dc"],
    );
    let of_dd = ["-w", "dd if=/dev/zero of=f bs=1M count=1", "-s", "none:io.max=dc:riops=20"];
    compare(&of_dd, 2, &["applications never have cgroups"]);
    let tuned = ["tune", "--goal", "throughput", "--cgroup", "db=postgres", "-s", "none:io.max=dc:riops=20"];
    refused(&here, &tuned, 2, &["available: db; did you mean db?"]);
    refused(
        &here,
        &["tune", "--goal", "throughput", "-s", "none", "--baseline", "none:io.max=dc:riops=20"],
        2,
        &[none],
    );
    compare(
        &["--scheduler", "none:io.bfq.weight=db:200"],
        2,
        &["only bfq has this file, and bfq is not the current scheduler"],
    );
    compare(&["--runs", "0"], 2, &["--runs"]);
    compare(&["--runs", "many"], 2, &["many"]);
    compare(&["--replay", "closed", "--speed", "2"], 2, &["--speed needs open replay"]);
    compare(&["--replay", "open", "--speed", "0"], 2, &["a speed is a number from"]);
    compare(&["--workload", "tasks.toml", "--replay", "open"], 2, &["for traces"]);
    compare(&["--json", "--csv"], 2, &["cannot be used with"]);
    compare(&["--device", "sata"], 2, &["no device profile \"sata\"", "sata-7200"]);
    compare(&["--device", "./none.toml"], 2, &["./none.toml: cannot be read"]);
    compare(&["--device", "sata-7200:dpth=1"], 2, &["sata-7200:depth=N", "did you mean sata-7200:depth=1?"]);
    compare(&["--device", "sata-ssd:stedy"], 2, &["did you mean sata-ssd:steady?"]);
    compare(&["--device", "./dev.toml:depht=4"], 2, &["did you mean ./dev.toml:depth=4?"]);
    compare(&["--workload", "izone -s 64 -e -i 0"], 2, &["did you mean the program iozone?"]);
    compare(
        &["--workload", "ycsb --bench"],
        2,
        &["ycsb: iosched does not simulate this program", "iosched can simulate the programs ", "iozone"],
    );
    compare(&["--on", ".", "--", "truee"], 2, &["truee: there is no such program in $PATH; did you mean "]);
    compare(&["--on", ".", "--", "./truee"], 2, &["./truee: there is no such program"]);
    compare(&["--device", "dev.toml"], 2, &["dev.toml", "hdd"]);
    compare(&["--workload", "none"], 2, &["none: there is no such file"]);
    compare(&["--workload", "none.toml"], 2, &["none.toml: No such file"]);
    compare(&["--workload", "text"], 2, &["text: this is not a trace in a known format", "--input-format"]);
    compare(&["--workload", "empty"], 2, &["empty: the trace is empty"]);
    compare(&["--workload", "bad.toml"], 2, &["bad.toml", "line 3", "patern"]);
    compare(
        &["--records", "no/such/dir.jsonl"],
        2,
        &["no/such/dir.jsonl: cannot be written: there is no directory no/such"],
    );
    refused(&here, &["comapre"], 2, &["comapre", "compare"]);
    refused(&here, &["serve", "memory:1M", "--scheduler", "cqf"], 2, &["did you mean cfq?"]);
    refused(&here, &["serve", "memory:1M", "--scheduler", "cfq:slice_idel=0"], 2, &["did you mean slice_idle?"]);
    refused(&here, &["serve", "model:sata-720"], 2, &["did you mean sata-7200?"]);
    refused(&here, &["man", "compaer"], 2, &["did you mean compare?"]);
    refused(&here, &["scheduler", "show", "bfg"], 2, &["there is no scheduler \"bfg\""]);
    refused(&here, &["trace", "info", "text"], 2, &["not a trace in a known format"]);
    refused(&here, &["trace", "convert", SAMPLE, "out.xyz"], 2, &["add --format FORMAT"]);
    refused(&here, &["trace", "convert", SAMPLE, "out", "--format", "blkparse"], 2, &["iosched can write blktrace"]);
    refused(&here, &["trace", "convert", SAMPLE, "no/such/dir.csv"], 2, &["no/such/dir.csv: cannot be written"]);
    refused(
        &here,
        &["trace", "convert", SAMPLE, "-"],
        2,
        &["the format for standard output is missing", "--format csv"],
    );
}

#[test]
fn tasks_files_and_every_output_format_work() {
    let here = directory("formats");
    std::fs::write(here.join("tasks.toml"), TASKS).unwrap();
    let common = ["compare", "-w", "tasks.toml", "-s", "noop", "-s", "cfq:slice_idle=0,quantum=4", "-n", "3"];
    let with = |more: &[&str]| {
        let (code, out, err) = run(&here, &[&common, more].concat());
        assert_eq!((code, err.as_str()), (0, ""));
        out
    };
    let json: serde_json::Value = serde_json::from_str(&with(&["--json"])).unwrap();
    assert_eq!(json["plan"]["settings"][1]["label"], "cfq:slice_idle=0,quantum=4");
    assert_eq!(json["metrics"][0]["settings"][1]["values"].as_array().unwrap().len(), 3);
    assert!(json["doubts"][0]["message"].is_string());
    assert_eq!(
        json["plan"]["command"],
        "iosched compare --workload tasks.toml --device sata-7200 --scheduler noop \
         --scheduler cfq:slice_idle=0,quantum=4 --baseline noop --runs 3 --seed 1"
    );
    let csv = with(&["--csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "metric,unit,setting,mean,sd,n,diff,ci_low,ci_high,verdict,published_rule,level");
    assert!(lines[1].starts_with("throughput,MB/s,noop,") && lines[1].ends_with(",3,,,,baseline,,"), "{}", lines[1]);
    assert!(lines[2].starts_with("throughput,MB/s,\"cfq:slice_idle=0,quantum=4\","), "{}", lines[2]);
    let markdown = with(&["--markdown"]);
    assert!(markdown.contains("| metric | unit | `noop` | `cfq:slice_idle=0,quantum=4` |\n|---|---|---:|---:|\n"));
    // The same seed gives the same results with any number of jobs.
    assert_eq!(with(&["--csv", "--jobs", "1"]), csv);
    assert_ne!(with(&["--csv", "--seed", "2"]), csv);
    let decisions = with(&["--decisions", "decisions.jsonl", "--csv"]);
    assert_eq!(decisions, csv);
    assert!(std::fs::read_to_string(here.join("decisions.jsonl")).unwrap().contains("\"ev\":\"slice\""));
}

#[test]
fn several_devices_are_compared_in_one_command() {
    let here = directory("devices");
    std::fs::write(here.join("tasks.toml"), TASKS).unwrap();
    std::fs::write(
        here.join("fixed.toml"),
        "kind = \"fixed\"\n[fixed]\ndepth = 4\nparallel = 4\nlat_ns = 200_000\nns_per_sector = 500\n",
    )
    .unwrap();
    let common = ["compare", "-w", "tasks.toml", "-d", "sata-7200", "-d", "./fixed.toml", "-s", "noop", "-s", "cfq"];
    let with = |more: &[&str]| {
        let (code, out, err) = run(&here, &[common.as_slice(), &["-n", "3"], more].concat());
        assert_eq!((code, err.as_str()), (0, ""));
        out
    };
    let text = with(&["--report", "all.html", "--details"]);
    for part in [
        "sata-7200: 1 TB",
        "3 runs of each setting on each device",
        "  - on ./fixed.toml: ",
        "best setting on each device",
        "finish ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("difference from `noop` (95 % confidence").count(), 2, "{text}");
    let (code, out, err) = run(&here, &["report", "--last", "-o", "later.html"]);
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(err.starts_with("later.html: the report of "), "{err}");
    let read = |name: &str| std::fs::read_to_string(here.join(name)).unwrap();
    assert_eq!(read("later.html"), read("all.html"));
    let csv = with(&["--csv"]);
    assert!(csv.starts_with("device,metric,unit,setting,mean,"), "{csv}");
    for device in ["sata-7200", "./fixed.toml"] {
        // The lines are the same as in a comparison on this device alone.
        let alone = ["compare", "-w", "tasks.toml", "-d", device, "-s", "noop", "-s", "cfq", "-n", "3", "--csv"];
        let (_, alone, _) = run(&here, &alone);
        let rows: Vec<&str> = csv.lines().filter_map(|line| line.strip_prefix(device)?.strip_prefix(',')).collect();
        assert_eq!(rows, alone.lines().skip(1).collect::<Vec<_>>(), "{device}");
    }
    let json: serde_json::Value = serde_json::from_str(&with(&["--json"])).unwrap();
    assert_eq!(json["devices"][1]["device"], "./fixed.toml");
    assert_eq!(json["devices"][0]["metrics"][0]["settings"][1]["setting"], "cfq");
    assert_eq!(json["overview"]["metrics"][0]["devices"][1]["device"], "./fixed.toml");
    assert_eq!(
        json["plan"]["command"],
        "iosched compare --workload tasks.toml --device sata-7200 --device ./fixed.toml --scheduler noop \
         --scheduler cfq --baseline noop --runs 3 --seed 1"
    );
    assert!(json["plan"]["devices"][1]["profile"].as_str().unwrap().contains("lat_ns"));
    with(&["--csv", "--blktrace", "traces"]);
    let mut traces: Vec<_> = std::fs::read_dir(here.join("traces")).unwrap().map(|e| e.unwrap().file_name()).collect();
    traces.sort();
    let expected =
        ["fixed.cfq", "fixed.noop", "sata-7200.cfq", "sata-7200.noop"].map(|base| format!("{base}.blktrace.0"));
    assert_eq!(traces, expected.map(std::ffi::OsString::from));
    let (code, info, _) = run(&here, &["trace", "info", "traces/fixed.cfq.blktrace.0"]);
    assert_eq!(code, 0);
    assert!(info.contains("blktrace: 150 requests"), "{info}");
    let markdown = with(&["--markdown"]);
    assert!(markdown.contains("\n## `sata-7200`\n") && markdown.contains("\n## Which setting wins where\n"));
    assert!(markdown.contains("\n| `./fixed.toml` | "), "{markdown}");
    let one =
        run(&here, &["compare", "-w", "tasks.toml", "-d", "sata-7200", "-d", "sata-ssd", "-s", "cfq", "-n", "2"]).1;
    let heads = one.lines().find(|line| line.contains("sata-7200") && line.contains("sata-ssd"));
    assert!(heads.is_some(), "the devices are not side by side: {one}");
    std::fs::remove_file(here.join("last.jsonl")).unwrap();
    refused(
        &here,
        &["compare", "--blktrace", "tasks.toml"],
        2,
        &["tasks.toml: cannot create the directory for block traces"],
    );
    refused(&here, &["compare", "-d", "sata-ssd", "-d", "sata-ssd"], 2, &["device sata-ssd is given twice"]);
}

#[test]
fn report_from_records_equals_report_of_the_run() {
    let here = directory("report");
    std::fs::write(here.join("tasks.toml"), TASKS).unwrap();
    let args = ["compare", "-w", "tasks.toml", "-n", "2", "--records", "r.jsonl", "--report", "at-once.html"];
    let (code, out, err) = run(&here, &args);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.ends_with("next:      open at-once.html in a browser\n"), "{out}");
    let says = |err: &str| (0, String::new(), format!("{err} of r.jsonl\n"));
    assert_eq!(run(&here, &["report", "r.jsonl", "-o", "later.html"]), says("later.html: the report"));
    assert_eq!(run(&here, &["report", "r.jsonl"]), says("r.html: the report"));
    let read = |name: &str| std::fs::read_to_string(here.join(name)).unwrap();
    assert_eq!(read("later.html"), read("at-once.html"));
    assert_eq!(run(&here, &["report", "r.jsonl", "-o", "-"]), (0, read("r.html"), String::new()));
    assert_eq!(run(&here, &["report", "r.jsonl", "--csv"]).1, run(&here, &[&args[..7], &["--csv"]].concat()).1);
    let bytes = std::fs::read(here.join("r.jsonl")).unwrap();
    std::fs::write(here.join("cut.jsonl"), &bytes[..bytes.len() - 20]).unwrap();
    let (code, _, err) = run(&here, &["report", "cut.jsonl"]);
    assert_eq!(code, 0);
    assert!(err.starts_with("warning: cut.jsonl: line ") && err.contains("is incomplete"), "{err}");
    refused(&here, &["report", "tasks.toml"], 2, &["tasks.toml: line 1: this is not a file of records"]);
    refused(&here, &["report", "none.jsonl"], 2, &["none.jsonl: No such file"]);
}

#[test]
fn plot_is_written_as_svg_and_unknown_names_list_plots() {
    let here = directory("plot");
    std::fs::write(here.join("tasks.toml"), TASKS).unwrap();
    assert_eq!(run(&here, &["compare", "-w", "tasks.toml", "-n", "2", "--records", "r.jsonl"]).0, 0);
    let (code, _, err) = run(&here, &["report", "r.jsonl", "--plot", "latency"]);
    assert_eq!((code, err.as_str()), (0, "r-latency.svg: the plot latency of r.jsonl\n"));
    let svg = std::fs::read_to_string(here.join("r-latency.svg")).unwrap();
    assert!(svg.starts_with("<svg xmlns=") && svg.contains("lower is better"), "{svg}");
    assert_eq!(run(&here, &["report", "r.jsonl", "--plot", "latency", "-o", "-"]).1, svg);
    assert_eq!(run(&here, &["report", "r.jsonl", "--plot", "latency"]).0, 0, "a plot of iosched is replaced");
    let (code, names, _) = run(&here, &["report", "--plot", "list"]);
    assert!(code == 0 && names.lines().any(|line| line.starts_with("heat ")), "{names}");
    let wrong = ["report", "r.jsonl", "--plot", "latncy"];
    refused(&here, &wrong, 2, &["--plot latncy: there is no plot", "throughput", "did you mean latency?"]);
    refused(&here, &["report", "r.jsonl", "--plot", "heat", "-o", "heat.gif"], 2, &["must end in .svg, .png or .pdf"]);
    #[cfg(not(feature = "pictures"))]
    refused(&here, &["report", "r.jsonl", "--plot", "heat", "-o", "heat.png"], 2, &["--features full"]);
}

#[test]
fn foreign_file_with_the_default_name_is_not_replaced() {
    let here = directory("not-ours");
    std::fs::write(here.join("tasks.toml"), TASKS).unwrap();
    std::fs::write(here.join("last.jsonl"), "precious").unwrap();
    let (code, _, err) = run(&here, &["compare", "-w", "tasks.toml", "-n", "2"]);
    assert_eq!(code, 0);
    assert!(err.contains("iosched does not replace this file"), "{err}");
    assert_eq!(std::fs::read_to_string(here.join("last.jsonl")).unwrap(), "precious");
}

#[test]
fn help_man_page_and_completions_have_the_main_options() {
    let here = directory("help");
    let (code, help, _) = run(&here, &["compare", "--help"]);
    assert_eq!(code, 0);
    let (_, man, _) = run(&here, &["man", "--dir", "man"]);
    assert_eq!(man, "");
    let man = std::fs::read_to_string(here.join("man/iosched-compare.1")).unwrap().replace("\\-", "-");
    // Options can be completed in a shell.
    let mut completion = Command::new(IOSCHED);
    completion.args(["--", "iosched", "compare", "--"]).env("COMPLETE", "bash").env("_CLAP_IFS", "\n");
    let bash = String::from_utf8(completion.env("_CLAP_COMPLETE_INDEX", "2").output().unwrap().stdout).unwrap();
    for option in
        ["--workload", "--device", "--scheduler", "--baseline", "--runs", "--seed", "--jobs", "--replay", "--records"]
    {
        assert!(help.contains(option) && man.contains(option) && bash.contains(option), "{option}");
    }
    let (_, page, _) = run(&here, &["man"]);
    assert!(page.contains(".TH iosched 1"), "{page}");
}

#[test]
fn devices_and_schedulers_are_listed_and_shown() {
    let here = directory("tell");
    let (_, list, _) = run(&here, &["device", "list"]);
    assert!(list.contains("sata-7200"), "{list}");
    let (_, card, _) = run(&here, &["device", "show", "sata-7200"]);
    assert!(card.contains("random read, depth 32") && card.contains("1000.2"), "{card}");
    let (_, card, _) = run(&here, &["device", "show", "sata-7200", "--json"]);
    let card: serde_json::Value = serde_json::from_str(&card).unwrap();
    let figures = card["metrics"].as_array().unwrap();
    assert!(figures.iter().any(|row| row["metric"] == "random_read_4k_depth_32" && row["unit"] == "IOPS"), "{card}");
    assert!(figures.iter().filter(|row| !row["anchor"].is_null()).all(|row| row["deviation"].is_number()), "{card}");
    let (_, list, _) = run(&here, &["device", "show", "nvme-980pro", "--assumptions"]);
    let (fitted, assumed) = list.split_once("\nassumed:\n").unwrap();
    assert!(fitted.contains("\nfitted:\n  dies, quick_read: 4 KiB read rows"), "{list}");
    assert!(assumed.contains("  command_slots: 256\n"), "{list}");
    let (_, list, _) = run(&here, &["device", "show", "sata-7200", "--assumptions"]);
    assert!(list.contains("comments in the file of the profile"), "{list}");
    let (_, list, _) = run(&here, &["scheduler", "list"]);
    for elevator in iosched::Registry::linux().elevators() {
        assert!(list.contains(elevator.name) && list.contains(elevator.about));
        let (code, page, _) = run(&here, &["scheduler", "show", elevator.name]);
        assert_eq!(code, 0);
        for spec in (elevator.tunables)() {
            assert!(page.contains(spec.name) && page.contains(spec.doc), "{}", spec.name);
        }
        assert!(page.contains("nr_requests"));
    }
}

#[test]
fn controllers_are_listed_with_valid_examples() {
    let here = directory("policy");
    let (_, list, _) = run(&here, &["controller", "list"]);
    for policy in iosched::controllers::policies() {
        assert!(list.contains(policy.name) && list.contains(policy.about), "{list}");
        for file in policy.files {
            let (code, page, _) = run(&here, &["controller", "show", file.name]);
            assert!(code == 0 && page.contains(file.takes) && page.contains(policy.when), "{page}");
        }
        let (_, page, _) = run(&here, &["controller", "show", policy.name]);
        for setting in page.lines().filter_map(|line| line.strip_prefix("set with --scheduler ")) {
            iosched::Setting::parse(setting, &iosched::Registry::linux())
                .unwrap_or_else(|error| panic!("{setting}: {error}"));
        }
    }
    refused(&here, &["controller", "show", "io.mex"], 2, &["there is no controller \"io.mex\"; available: io.max"]);
}

#[test]
fn scheduler_all_compares_every_scheduler() {
    let here = directory("all");
    let workload = here.join("tasks.toml");
    let task = "end_ns = 300_000_000\n[[tasks]]\npid = 1\npattern = \"seq\"\nthink_ns = 500_000\n";
    std::fs::write(&workload, task).unwrap();
    let args = ["compare", "--workload", "tasks.toml", "--scheduler", "all", "--runs", "1", "--csv"];
    let (code, csv, error) = run(&here, &args);
    assert_eq!(code, 0, "{error}");
    for elevator in iosched::Registry::linux().elevators() {
        assert!(csv.lines().any(|line| line.split(',').any(|cell| cell == elevator.name)), "{}: {csv}", elevator.name);
    }
}

#[test]
fn processes_of_a_trace_are_throttled_by_cgroup() {
    let here = directory("trace-cgroup");
    let throttled = "none:io.max=db:riops=2/wiops=2";
    let args = ["compare", "--device", "sata-ssd", "--cgroup", "db=post*", "--scheduler", "none", "--scheduler"];
    let (code, out, err) = run(&here, &[&args[..], &[throttled, "--runs", "1", "--details"]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains(&format!("`{throttled}`: io.max delayed ")) && out.contains(" bios of db, "), "{out}");
    assert!(out.contains("`none`: wbt delayed ") && !out.contains("io.max delayed 1 bio of /"), "{out}");
}

#[test]
fn traces_are_summarised_and_converted() {
    let here = directory("trace");
    let (code, text, _) = run(&here, &["trace", "info", SAMPLE]);
    assert_eq!(code, 0);
    assert!(text.contains("blktrace: 7,638 requests, 674 reads"), "{text}");
    let (_, json, _) = run(&here, &["trace", "info", SAMPLE, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["all"]["requests"], 7638);
    let (code, out, err) = run(&here, &["trace", "convert", SAMPLE, "out.csv"]);
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(err.starts_with("7638 requests written"), "{err}");
    let (_, converted, _) = run(&here, &["trace", "convert", SAMPLE, "-", "--format", "csv"]);
    assert_eq!(converted, std::fs::read_to_string(here.join("out.csv")).unwrap());
    let leftover: Vec<_> = std::fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(leftover, ["out.csv"]);
}

#[test]
fn closed_pipe_is_not_an_error() {
    let here = directory("pipe");
    let mut child = iosched(&here, &["trace", "convert", SAMPLE, "-", "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_finished_runs() {
    let here = directory("interrupt");
    std::fs::write(here.join("tasks.toml"), TASKS).unwrap();
    let child = iosched(&here, &["compare", "-w", "tasks.toml", "-n", "1000000", "-j", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = || std::fs::read_to_string(here.join("last.jsonl")).map_or(0, |text| text.lines().count());
    let begun = std::time::Instant::now();
    while lines() < 20 {
        assert!(begun.elapsed().as_secs() < 60, "the comparison wrote no runs");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("stopping after the current runs"), "{err}");
    assert!(out.contains(" of 1000000 runs each"), "{out}");
    assert!(out.contains("not all runs finished"), "{out}");
}

#[test]
fn traces_are_cut_scaled_remapped_and_filtered() {
    let here = directory("trace-steps");
    let ok = |args: &[&str]| {
        let (code, out, err) = run(&here, args);
        assert_eq!(code, 0, "{args:?}: {err}");
        (out, err)
    };
    let requests = |name: &str| std::fs::read_to_string(here.join(name)).unwrap().lines().count() - 1;
    ok(&["trace", "slice", SAMPLE, "a.csv", "--to", "500ms"]);
    ok(&["trace", "slice", SAMPLE, "b.csv", "--from", "0.5"]);
    assert_eq!(requests("a.csv") + requests("b.csv"), 7_638);
    ok(&["trace", "scale", "a.csv", "fast.csv", "--speed", "2"]);
    ok(&["trace", "slice", "fast.csv", "half.csv", "--to", "250ms"]);
    assert_eq!(requests("half.csv"), requests("a.csv"));
    ok(&["trace", "filter", SAMPLE, "reads.csv", "--op", "read", "--process", "postgres"]);
    assert!((1..=674).contains(&requests("reads.csv")));
    let (_, err) = ok(&["trace", "remap", SAMPLE, "small.csv", "--capacity", "1GB"]);
    assert!(err.contains("iosched shrank the gaps between used areas to"), "{err}");
    let (_, err) = ok(&["trace", "remap", SAMPLE, "same.csv", "--device", "sata-7200"]);
    assert!(err.contains("fits without changes"), "{err}");
    let (_, err) = ok(&["trace", "convert", "a.csv", "a.iolog"]);
    assert!(err.contains("without their process"), "{err}");
    let (text, _) = ok(&["trace", "info", "a.iolog"]);
    assert!(text.contains("fio-v3: "), "{text}");
    let (text, _) = ok(&["trace", "info", SAMPLE]);
    assert!(["Q2Q", "D2C", "seeks", "plugs"].iter().all(|part| text.contains(part)), "{text}");

    refused(&here, &["trace", "slice", SAMPLE, "x.csv", "--from", "2", "--to", "1"], 2, &["--to must be later"]);
    refused(&here, &["trace", "slice", SAMPLE, "x.csv", "--from", "soon"], 2, &["give a time in seconds"]);
    refused(&here, &["trace", "scale", SAMPLE, "x.csv", "--speed", "0"], 2, &["a speed is"]);
    refused(&here, &["trace", "filter", SAMPLE, "x.csv"], 2, &["--pid"]);
    refused(&here, &["trace", "filter", SAMPLE, "x.csv", "--sectors", "9-5"], 2, &["give FROM-TO"]);
    refused(&here, &["trace", "remap", SAMPLE, "x.csv", "--capacity", "1 parsec"], 2, &["give a size of"]);
    assert!(!here.join("x.csv").exists());
}

#[test]
fn job_check_reports_problems_with_their_line() {
    let here = directory("job-check");
    let write = |text: &str| std::fs::write(here.join("a.fio"), text).unwrap();
    write("[global]\ndirect=1\nsize=1g\nthread\n[a]\nrw=randread\nnumjobs=3\n[b]\nstonewall\nbs=${BS}8k\n");
    let (code, out, err) = run(&here, &["job", "check", "a.fio"]);
    assert_eq!((code, err.as_str()), (0, ""));
    for part in [
        "randread",
        "after all above",
        "line 4: thread: iosched treats threads and processes",
        "a.fio can be run: 4 jobs.",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (_, out, _) = run(&here, &["job", "check", "a.fio", "--json"]);
    let page: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((page["runs"].as_bool(), page["jobs"].as_array().map(Vec::len)), (Some(true), Some(4)));
    write("[a]\nioengine=rbd\nrbdname=x\n");
    let (code, out, err) = run(&here, &["job", "check", "a.fio"]);
    assert_eq!((code, err.as_str()), (1, ""));
    assert!(out.contains("line 2: ioengine=rbd: the engine needs a Ceph cluster"), "{out}");
    write("[a]\nsize=1m\nblocksizee=4k\n");
    refused(&here, &["job", "check", "a.fio"], 2, &["a.fio:3: blocksizee: no such option; did you mean blocksize?"]);
    refused(&here, &["job", "check", "none.fio"], 2, &["none.fio: "]);
}

#[test]
fn job_options_lists_fio_options_and_their_support() {
    let here = directory("job-options");
    let (code, out, _) = run(&here, &["job", "options", "zonemode"]);
    assert!(code == 0 && out.contains("not supported: iosched does not model zones of a device"), "{out}");
    let (_, out, _) = run(&here, &["job", "options"]);
    assert!(out.lines().count() > 300 && out.contains("rw, readwrite"), "{out}");
    refused(&here, &["job", "options", "blocksizee"], 2, &["blocksizee: no fio option has this text"]);
}

#[test]
fn job_file_is_a_workload_with_results_in_fio_json() {
    let here = directory("job-file");
    let text = "[global]\nfilename=/dev/sdb\ndirect=1\nsize=64m\nrw=randread\nnumber_ios=200\n\n\
                [alone]\n\n[both]\nstonewall\nnumjobs=2\nioengine=libaio\niodepth=4\n";
    std::fs::write(here.join("three.fio"), text).unwrap();
    let compare = ["compare", "--workload", "three.fio", "--scheduler", "cfq", "--runs", "2"];
    let (code, out, err) = run(&here, &compare);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("3 jobs"), "{out}");
    let (code, out, _) = run(&here, &[&compare[..], &["--output-format", "fio-json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&str> =
        document["jobs"].as_array().unwrap().iter().map(|job| job["jobname"].as_str().unwrap()).collect();
    assert_eq!((code, names), (0, vec!["alone", "both", "both"]));
    assert_eq!(document["jobs"][1]["read"]["total_ios"], 200);
    assert_eq!(document["global options"]["size"], "64m");
    let (code, again, _) = run(&here, &[&compare[..], &["--output-format", "fio-json"]].concat());
    assert!(code == 0 && out == again, "the output differs between runs");
}

#[test]
fn error_of_an_impossible_job_names_job_and_line() {
    let here = directory("job-file-wrong");
    std::fs::write(here.join("large.fio"), "[a]\nfilename=/dev/sdb\nsize=900t\n").unwrap();
    refused(&here, &["compare", "--workload", "large.fio"], 2, &["large.fio", "line 1", "job a", "smaller size"]);
    refused(&here, &["compare", "--output-format", "fio-json"], 2, &["fio-json", "*.fio"]);
    std::fs::write(here.join("open.fio"), "[a]\nfilename=/dev/sdb\n").unwrap();
    refused(&here, &["compare", "--workload", "open.fio", "--speed", "2"], 2, &["for traces"]);
}

#[test]
fn priorities_example_runs_on_four_devices() {
    let here = directory("priorities");
    let example = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/priorities.fio"));
    // A minute of a fast device is longer than the test needs.
    std::fs::write(here.join("priorities.fio"), example.unwrap().replace("runtime=60", "runtime=1")).unwrap();
    let mut args = vec!["compare", "--workload", "priorities.fio", "--runs", "2", "--json"];
    for device in ["sata-7200", "scsi-15k", "sata-ssd", "nvme"] {
        args.extend(["--device", device]);
    }
    for scheduler in ["deadline", "cfq"] {
        args.extend(["--scheduler", scheduler]);
    }
    let (code, out, err) = run(&here, &args);
    assert_eq!((code, err.as_str()), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["devices"].as_array().unwrap().len(), 4, "{json}");
    let records = std::fs::read_to_string(here.join("last.jsonl")).unwrap();
    for ioprio in ["rt/4", "be/7", "idle"] {
        assert!(records.contains(&format!("\"ioprio\":\"{ioprio}")), "{ioprio}");
    }
}

#[test]
fn a_job_replays_a_log() {
    let here = directory("job-log");
    let log = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 4096 8192\n/dev/sda write 65536 4096\n\
               /dev/sda read 0 4096\n/dev/sda close\n";
    std::fs::write(here.join("a.log"), log).unwrap();
    std::fs::write(here.join("a.fio"), "[again]\nread_iolog=a.log\ndirect=1\n").unwrap();
    let args = ["compare", "--workload", "a.fio", "--scheduler", "cfq", "--runs", "1", "--output-format", "fio-json"];
    let (code, out, err) = run(&here, &args);
    assert_eq!((code, err.as_str()), (0, ""));
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let job = &document["jobs"][0];
    assert_eq!((&job["read"]["total_ios"], &job["write"]["io_bytes"]), (&2.into(), &4096.into()));
    std::fs::remove_file(here.join("last.jsonl")).unwrap();
    std::fs::write(here.join("b.fio"), "[again]\nread_iolog=none.log\n").unwrap();
    refused(&here, &["compare", "--workload", "b.fio"], 2, &["b.fio", "line 1", "read_iolog=none.log"]);
}

#[test]
fn no_fairness_removes_fairness_from_the_output() {
    let here = directory("no-fairness");
    std::fs::write(here.join("jobs.toml"), TASKS).unwrap();
    let usual = ["compare", "-w", "jobs.toml", "-s", "none", "-s", "bfq", "-n", "2"];
    for details in [&[][..], &["--details"][..]] {
        let (code, out, _) = run(&here, &[&usual[..], details].concat());
        assert_eq!(code, 0);
        let heading = "s of this time, each process ran alone, to measure fairness (skip: --no-fairness)";
        assert!(out.contains(heading), "{out}");
    }
    let (code, out, _) = run(&here, &[&usual[..], &["--details", "--no-fairness", "--records", "kept.jsonl"]].concat());
    assert_eq!(code, 0);
    assert!(!out.contains("fairness"), "{out}");
    let (code, reported, _) = run(&here, &["report", "kept.jsonl", "--csv"]);
    assert_eq!(code, 0, "{reported}");
    refused(&directory("no-fairness-on"), &["compare", "--on", ".", "--no-fairness"], 2, &["--no-fairness", "--on"]);
}
