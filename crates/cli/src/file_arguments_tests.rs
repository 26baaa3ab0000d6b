//! Tests of every option with a file name, from the declarations of clap. [`ARGUMENTS`] lists how
//! the commands use the files. No output may replace a file of another program.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, ValueHint};
use iosched_kernel::{BlockDevice, Roots};

use crate::command::{command, parse};
use iosched_terminal::fail::is_usage;

const FOREIGN: &str = "a file of another program\n";
const TASKS: &str = "[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 4\n";
const INTENTS: &str =
    "device = \"sata-7200\"\n[unit.a]\nmatch = \"a.slice\"\nworkload = \"tasks.toml\"\ngoal = \"iops >= 1\"\n";
const TRACE: &str = "arrival_ns,pid,op,sync,sector,nr_sectors\n0,1,R,1,0,8\n";
/// Placeholder for a disk of this machine with a scheduler.
const DISK: &str = "{disk}";

/// How a command uses a file.
enum Use {
    /// The command only reads the file. This also stands for names of devices and directories that
    /// other code protects (`consent`, `ground`).
    Reads,
    /// The command listens on a socket. `OwnedListener` only replaces a socket whose server has
    /// ended.
    Listens,
    /// The command mounts a disk on a directory. `hides_nothing` refuses a directory that contains
    /// files.
    Mounts,
    /// The command writes the file `foreign` when it runs with the arguments `line` in a directory
    /// of the test.
    Writes { foreign: &'static str, line: &'static str },
}
use Use::{Listens, Mounts, Reads};

const fn writes(foreign: &'static str, line: &'static str) -> Use {
    Use::Writes { foreign, line }
}

/// All arguments that name a file. The test fails if an argument is missing here.
const ARGUMENTS: &[(&str, Use)] = &[
    ("advise destroy_data", Reads),
    ("advise machine", Reads),
    ("advise on", Reads),
    ("advise output", writes("advice.html", "advise {disk} -w {here}/tasks.toml --output {here}")),
    ("advise profile", Reads),
    ("advise report", writes("page.html", "advise {here} -w {here}/tasks.toml --report {here}/page.html")),
    ("advise workload", Reads),
    ("calibrate check", Reads),
    ("calibrate destroy_data", Reads),
    ("calibrate from", Reads),
    ("calibrate output", writes("p.toml", "calibrate nvme --quick -o {here}/p.toml --records {here}/new")),
    ("calibrate records", writes("r.jsonl", "calibrate nvme --quick --records {here}/r.jsonl")),
    ("calibrate report", writes("p.html", "calibrate nvme --quick --report {here}/p.html --records {here}/new")),
    ("calibrate start", Reads),
    ("calibrate table", Reads),
    ("calibrate target", Reads),
    ("calibrate trace", Reads),
    ("compare blktrace", writes("noop.blktrace.0", "compare -w {here}/tasks.toml -s noop --blktrace {here}")),
    ("compare decisions", writes("d.jsonl", "compare -w {here}/tasks.toml -s noop --decisions {here}/d.jsonl")),
    ("compare destroy_data", Reads),
    ("compare given_devices", Reads),
    ("compare machine", Reads),
    ("compare on", Reads),
    ("compare records", writes("r.jsonl", "compare -w {here}/tasks.toml -s noop --records {here}/r.jsonl")),
    ("compare report", writes("p.html", "compare -w {here}/tasks.toml -s noop --report {here}/p.html")),
    ("compare workload", Reads),
    ("device io-cost device", Reads),
    ("device show device", Reads),
    ("doctor disk", Reads),
    ("doctor rates", Reads),
    ("get at", Reads),
    ("import disksim model", Reads),
    ("import disksim output", writes("p.toml", "import disksim {here}/m {here}/s {here}/d -o {here}/p.toml")),
    ("import disksim seek", Reads),
    ("import disksim specs", Reads),
    ("import disksim trace", Reads),
    ("import io-cost file", Reads),
    ("import io-cost output", writes("p.toml", "import io-cost {here}/model -o {here}/p.toml")),
    ("import resctl-bench file", Reads),
    ("import resctl-bench output", writes("p.toml", "import resctl-bench {here}/model -o {here}/p.toml")),
    ("job check file", Reads),
    ("ls at", Reads),
    ("ls disk", Reads),
    ("man dir", writes("iosched-ls.1", "man --dir {here}")),
    ("mount directory", Mounts),
    ("mount record", writes("t.blktrace.0", "mount memory:1M {here} --record {here}/t.blktrace.0")),
    ("mount record_driver", writes("driver", "mount memory:1M {here} --record-driver {here}/driver")),
    ("plan file", Reads),
    ("plan output", writes("plan.json", "plan {here}/intents.toml -o {here}/plan.json")),
    // The value is a directory. iosched replaces a file in it only if a mark shows that iosched
    // wrote it.
    ("plan write", Reads),
    ("record disk", Reads),
    ("record output", writes("t.blktrace.0", "record {disk} --for 0.01 -o {here}/t.blktrace.0")),
    ("report output", writes("p.html", "report {here}/records -o {here}/p.html")),
    ("report records", Reads),
    ("reproduce data", Reads),
    ("reproduce device", Reads),
    ("reproduce records", writes("r.jsonl", "reproduce fsync-yield --runs 1 --records {here}/r.jsonl")),
    ("reproduce report", writes("p.html", "reproduce fsync-yield --runs 1 --report {here}/p.html")),
    ("restore devices", Reads),
    ("serve control", Listens),
    ("serve exports_file", Reads),
    ("serve record", writes("t.blktrace.0", "serve memory:1M --unix {here}/no/s --record {here}/t.blktrace.0")),
    ("serve record_driver", writes("driver", "serve memory:1M --unix {here}/no/s --record-driver {here}/driver")),
    ("serve tls", Reads),
    ("serve unix", Listens),
    ("set at", Reads),
    ("set persist", writes("{rule}", "set {disk} scheduler={scheduler} --persist={here}")),
    ("sweep dataset", writes("failed.json", "sweep {here}/plan.toml -o {here}")),
    ("sweep plan", Reads),
    ("sweep report", writes("p.html", "sweep {here}/plan.toml -o {here}/new --report {here}/p.html")),
    ("top at", Reads),
    ("top disk", Reads),
    ("trace convert input", Reads),
    ("trace convert output", writes("o.csv", "trace convert {here}/in.csv {here}/o.csv")),
    ("trace filter input", Reads),
    ("trace filter output", writes("o.csv", "trace filter {here}/in.csv {here}/o.csv --pid 1")),
    ("trace info file", Reads),
    ("trace remap device", Reads),
    ("trace remap input", Reads),
    ("trace remap output", writes("o.csv", "trace remap {here}/in.csv {here}/o.csv --capacity 1GB")),
    ("trace scale input", Reads),
    ("trace scale output", writes("o.csv", "trace scale {here}/in.csv {here}/o.csv --speed 2")),
    ("trace slice input", Reads),
    ("trace slice output", writes("o.csv", "trace slice {here}/in.csv {here}/o.csv --to 1")),
    ("tune device", Reads),
    ("tune machine", Reads),
    (
        "tune records",
        writes("r.jsonl", "tune -w {here}/tasks.toml -d nvme -s cfq --goal p99(sync) --records {here}/r.jsonl"),
    ),
    (
        "tune report",
        writes("p.html", "tune -w {here}/tasks.toml -d nvme -s cfq --goal p99(sync) --report {here}/p.html"),
    ),
    ("tune workload", Reads),
    ("ublk control", Listens),
    ("ublk exports_file", Reads),
    ("ublk record", writes("t.blktrace.0", "ublk memory:1M --control {here}/no/c --record {here}/t.blktrace.0")),
    ("ublk record_driver", writes("driver", "ublk memory:1M --control {here}/no/c --record-driver {here}/driver")),
    ("validate destroy_data", Reads),
    ("validate disk device", Reads),
    ("validate disk report", writes("p.html", "validate disk -d nvme -t {here}/served --report {here}/p.html")),
    ("validate disk trace", Reads),
    ("validate from", Reads),
    ("validate output", writes("p.toml", "validate nvme -p nvme -o {here}/p.toml --records {here}/new")),
    ("validate profile", Reads),
    ("validate recording file", Reads),
    ("validate records", writes("r.jsonl", "validate nvme -p nvme --records {here}/r.jsonl")),
    ("validate table", Reads),
    ("validate target", Reads),
    ("vhost control", Listens),
    ("vhost exports_file", Reads),
    ("vhost nbd", Listens),
    ("vhost record", writes("t.blktrace.0", "vhost memory:1M --socket {here}/no/s --record {here}/t.blktrace.0")),
    ("vhost record_driver", writes("driver", "vhost memory:1M --socket {here}/no/s --record-driver {here}/driver")),
    ("vhost sockets", Listens),
    ("watch disks", Reads),
];

/// Collects the arguments that name a file, of a command and its subcommands.
fn collect_file_arguments(command: &Command, name: &str, all: &mut BTreeMap<String, Arg>) {
    for argument in command.get_arguments().filter(|argument| names_file(argument)) {
        all.insert(format!("{name} {}", argument.get_id()).trim_start().to_owned(), argument.clone());
    }
    for below in command.get_subcommands() {
        collect_file_arguments(below, format!("{name} {}", below.get_name()).trim_start(), all);
    }
}

/// Returns whether the value of an argument is a file, a directory or a socket. The hint, the type
/// or the value name of the argument shows this.
fn names_file(argument: &Arg) -> bool {
    const NAMES: [&str; 5] = ["FILE", "DIR", "PATH", "SOCKET", "RECORDS"];
    let mut names = argument.get_value_names().unwrap_or_default().iter();
    argument.get_action().takes_values()
        && (!matches!(argument.get_value_hint(), ValueHint::Unknown | ValueHint::Other)
            || argument.get_value_parser().type_id() == TypeId::of::<PathBuf>()
            || names.any(|name| NAMES.iter().any(|part| name.contains(part))))
}

#[test]
fn every_argument_that_names_a_file_is_classified() {
    let mut declared = BTreeMap::new();
    collect_file_arguments(&command(), "", &mut declared);
    let declared: Vec<&str> = declared.keys().map(String::as_str).collect();
    let classified: Vec<&str> = ARGUMENTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(declared, classified);
}

/// Runs the command in this process, and returns its error.
fn refused(line: &str) -> anyhow::Error {
    let words = std::iter::once("iosched").chain(line.split(' '));
    let (cli, given) = parse(words).unwrap_or_else(|error| panic!("{line}: {error}"));
    crate::carry_out(cli, &given).expect_err(line)
}

#[test]
fn no_output_replaces_a_file_of_another_program() {
    let disk = BlockDevice::disks(&Roots::default()).into_iter().find(|disk| disk.scheduler().is_some());
    let (mut written, mut failed) = (0, Vec::new());
    for (name, usage) in ARGUMENTS {
        let Use::Writes { foreign, line } = usage else { continue };
        let needs_disk = line.contains(DISK);
        let Some(disk) = disk.as_ref().map(Some).or((!needs_disk).then_some(None)) else { continue };
        let filled = |text: &str, here: &Path| {
            let named = disk.map_or("", BlockDevice::name);
            let scheduler = disk.and_then(BlockDevice::scheduler).unwrap_or_default();
            text.replace("{here}", here.to_str().unwrap())
                .replace("{rule}", &iosched_kernel::settings::rule_name(named))
                .replace("{scheduler}", &scheduler)
                .replace(DISK, named)
        };
        let here =
            std::env::temp_dir().join(format!("iosched-named-{}-{}", std::process::id(), name.replace(' ', "-")));
        fs::create_dir_all(&here).unwrap();
        for (file, text) in [
            ("tasks.toml", TASKS),
            ("intents.toml", INTENTS),
            ("in.csv", TRACE),
            ("records", "{}\n"),
            ("served", "R Miss 0 8 1000 1000\n"),
            ("model", "8:0 ctrl=user model=linear rbps=1 rseqiops=1 rrandiops=1 wbps=1 wseqiops=1 wrandiops=1"),
            (
                "plan.toml",
                "workloads = [\"tasks.toml\"]\ndevices = [\"nvme\"]\nschedulers = [\"noop\", \"none\"]\nruns = 2\n",
            ),
        ] {
            fs::write(here.join(file), text).unwrap();
        }
        let target = here.join(filled(foreign, &here));
        fs::write(&target, FOREIGN).unwrap();
        let problem = refused(&filled(line, &here));
        let message = problem.to_string();
        let names = message.starts_with(&format!("{}: this file exists", target.display()));
        if !names || !is_usage(&problem) || fs::read_to_string(&target).unwrap() != FOREIGN {
            failed.push(format!("{name}: {message}"));
        }
        fs::remove_dir_all(here).unwrap();
        written += 1;
    }
    assert!(written > 25 && failed.is_empty(), "{written}: {failed:#?}");
}
