//! Small problems that once prevented a user from continuing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use crate::common::{Loop, Server, image, is_root};
use crate::list::{Answer, Case, Sandbox, case};

/// The options for each kind of file that iosched reads as text.
const TEXTS: [(&str, &[&str]); 5] = [
    ("x.toml", &["compare", "--device"]),
    ("x.toml", &["compare", "--workload"]),
    ("x.fio", &["compare", "--workload"]),
    ("x.fio", &["job", "check"]),
    ("x.toml", &["compare", "--workload", "dd if=/dev/zero of=f bs=1M count=1", "--machine"]),
];

/// Asserts that each command refuses a file that is not text.
#[track_caller]
fn refuses_non_text(place: &Sandbox, make: impl Fn(&str), what: &str) {
    for (name, args) in TEXTS {
        let _ = fs::remove_file(place.path(name));
        let _ = fs::remove_dir(place.path(name));
        make(name);
        place.iosched(&[args, &[name]].concat()).refused(2, &[name, what]).never(&["stream did not"]);
    }
}

pub(crate) const CASES: &[Case] = &[
    case("the error for an unknown tunable suggests a known one", |place| {
        place.iosched(&["compare", "--scheduler", "cfq:slice_idel=0"]).refused(2, &["slice_idel", "slice_idle"]);
    }),
    case("a block device as a profile is refused with a hint at --on", |place| {
        let disk = image(&place.here, "disk.img", 1 << 20);
        if !is_root() {
            return;
        }
        let Some(device) = Loop::new(&disk) else { return };
        let name = device.device.to_str().unwrap();
        for args in [&["compare", "--device", name][..], &["tune", "-s", "cfq", "-g", "iops", "-d", name]] {
            place.iosched(args).refused(2, &[name, "is a block device", "TOML file", &format!("--on {name}")]);
        }
    }),
    case("a binary file as a profile, task, job or machine is refused", |place| {
        refuses_non_text(place, |name| drop(place.file(name, b"\n\xff\xfe\x00\x80")), "UTF-8")
    }),
    case("a directory as a profile, task, job or machine is refused", |place| {
        refuses_non_text(place, |name| fs::create_dir(place.path(name)).unwrap(), "is a directory")
    }),
    case("/dev/zero as a profile, task, job or machine is refused", |place| {
        place.iosched(&["compare", "--device", "/dev/zero"]).refused(2, &["/dev/zero: this is no file"]);
        let zero = std::path::Path::new("/dev/zero");
        refuses_non_text(place, |name| std::os::unix::fs::symlink(zero, place.path(name)).unwrap(), "file");
    }),
    case("a socket as a profile, task, job or machine is refused", |place| {
        refuses_non_text(place, |name| drop(UnixListener::bind(place.path(name)).unwrap()), "file")
    }),
    case("a directory as a trace or as records is a usage error", |place| {
        fs::create_dir(place.path("d")).unwrap();
        place.iosched(&["trace", "info", "d"]).refused(2, &["d: this is a directory"]);
        place.iosched(&["trace", "convert", "d", "o.csv"]).refused(2, &["d: this is a directory"]);
        place.iosched(&["compare", "--workload", "d"]).refused(2, &["d: this is a directory"]);
        place.iosched(&["report", "d"]).refused(2, &["d: ", "directory"]);
        place.iosched(&["calibrate", "--from", "d"]).refused(2, &["d: ", "directory"]);
        place.iosched(&["validate", "disk", "-d", "sata-7200", "-t", "d"]).refused(2, &["d: ", "directory"]);
        assert!(!place.path("o.csv").exists());
    }),
    case("a path below a regular file is a usage error", |place| {
        place.file("f", "text");
        for args in [&["trace", "info", "f/x"][..], &["report", "f/x"], &["compare", "-w", "f/x.toml"]] {
            place.iosched(args).code(2).says(&["f/x"]);
        }
    }),
    case("numeric options report negative values as out of range", |place| {
        let out_of_range: &[&[&str]] = &[
            &["compare", "-n", "-5"],
            &["compare", "--runs", "-5"],
            &["compare", "--runs=-5"],
            &["compare", "--seed", "-5"],
            &["compare", "--jobs", "-5"],
            &["tune", "-s", "cfq", "-g", "iops", "--budget", "-5"],
            &["tune", "-s", "cfq", "-g", "iops", "--seed", "-5"],
            &["reproduce", "-n", "-5"],
            &["calibrate", "sata-ssd", "--file-size", "-5"],
            &["advise", "/dev/null", "-w", "x.toml", "-n", "-5"],
            &["advise", "/dev/null", "-w", "x.toml", "--confirm", "-5"],
            &["validate", "disk", "-d", "sata-7200", "-t", "x", "--seed", "-5"],
            &["trace", "filter", "a", "b", "--pid", "-5"],
            &["top", "--at", "x", "-n", "-5"],
        ];
        for args in out_of_range {
            place.iosched(args).refused(2, &["-5 is not in "]).never(&["unexpected argument"]);
        }
        for args in [&["compare", "--speed", "-5"][..], &["top", "--at", "x", "--interval", "-5"]] {
            place.iosched(args).refused(2, &["-5"]).never(&["unexpected argument"]);
        }
        for interval in ["0", "-5", "0.05", "2h"] {
            place.iosched(&["top", "--interval", interval]).refused(2, &["give a time from 0.1s to 3600s"]);
        }
        place.iosched(&["validate", "./x", "-p", "sata-ssd", "--run-for", "0"]).refused(2, &["give a time from 1ns"]);
        place.iosched(&["compare", "-w", "dd if=/dev/zero of=f bs=x"]).refused(2, &["from 1 to 2^50"]);
        place.iosched(&["compare", "--on", "/tmp", "--until-sure", "-5"]).refused(2, &["percentage from 0.01"]);
        place.iosched(&["compare", "--on", "/tmp", "--run-for", "-5"]).refused(2, &["give a time from 1ns"]);
    }),
    case("the error for a workload argument suggests --workload", |place| {
        for command in ["compare", "tune"] {
            place.iosched(&[command, "my job.fio"]).refused(2, &["--workload 'my job.fio'"]);
        }
        place.iosched(&["doctor", "--at", "x", "job.fio"]).never(&["--workload"]);
        place.iosched(&["compare", "--no-such"]).refused(2, &["--no-such"]).never(&["--workload 'no"]);
    }),
    case("advise accepts repeated and comma-separated schedulers", |place| {
        for given in [&["--scheduler", "a", "--scheduler", "b"][..], &["-s", "a,b"], &["--schedulers", "a,b"]] {
            let answer = place.iosched(&[&["advise", "/dev/none", "-w", "none.toml"], given].concat());
            answer.refused(2, &["none"]).never(&["unexpected argument", "cannot be used"]);
        }
        place.iosched(&["advise", "--help"]).says(&["--scheduler"]).never(&["--schedulers"]);
    }),
    case("validate accepts both --device and --profile", |place| {
        for option in ["--device", "-d", "--profile", "-p"] {
            let answer = place.iosched(&["validate", "disk", option, "none", "--trace", "t"]);
            answer.refused(2, &["no device profile \"none\""]);
        }
    }),
    case("top reports the end of its server", |place| {
        let server = Server::serving(&place.here, &["memory:1M"]);
        let mut command = place.command(&["top", "--at", "c", "--interval", "0.1"]);
        let mut top = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(top.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        assert!(first.contains("clients"), "{first}");
        assert_eq!(server.stop(), Some(0));
        let answer = Answer::of(top.wait_with_output().unwrap(), &["top"]);
        answer.refused(1, &["c: the server of the disk has ended"]).never(&["Broken pipe", "os error"]);
    }),
    case("man prints the pages of commands and subcommands", |place| {
        place.iosched(&["man"]).code(0).says(&[".TH iosched 1"]);
        place.iosched(&["man", "compare"]).code(0).says(&[".TH iosched-compare 1", "workload"]);
        place.iosched(&["man", "trace", "convert"]).code(0).says(&[".TH iosched-trace-convert 1"]);
    }),
    case("man refuses unknown commands and names known ones", |place| {
        place.iosched(&["man", "comapre"]).refused(2, &["iosched comapre", "compare", "calibrate"]);
        place.iosched(&["man", "trace", "covert"]).refused(2, &["iosched trace covert", "convert", "slice"]);
        place.iosched(&["man", "compare", "all"]).refused(2, &["iosched compare all"]);
        place.iosched(&["man", "compare", "--dir", "x"]).code(2);
        assert!(!place.path("x").exists());
    }),
    case("random refuses a range of one sector, seq and back accept it", |place| {
        let set = |pattern: &str| {
            let text = format!("[[tasks]]\npid = 1\npattern = \"{pattern}\"\nrange = [8, 9]\ntotal = 50\n");
            place.file("t.toml", text);
            place.iosched(&["compare", "-w", "t.toml", "-s", "noop", "-n", "2", "--csv"])
        };
        set("seq").code(0);
        set("back").code(0);
        set("random").refused(2, &["t.toml", "tasks[0].range", "[8, 9] contains no position"]);
    }),
    case("a goal for a job covers all copies of the job", |place| {
        place.file("j.fio", "[a]\nrw=randread\nbs=8k\nsize=1m\nnumjobs=4\n[b]\nrw=write\nsize=1m\n");
        let compare = |goal: &str| {
            place.iosched(&[
                "compare",
                "-w",
                "j.fio",
                "-d",
                "sata-ssd",
                "-n",
                "2",
                "-s",
                "none",
                "-g",
                goal,
                "--details",
            ])
        };
        compare("p99(a)").code(0).says(&["p99(a)", "a (4 jobs) IOPS"]);
        compare("iops(a.3)").code(0).says(&["iops(a.3)"]);
        compare("p99(c)").refused(2, &["you can use the tasks a, b"]);
    }),
    case("a job that starts after the end of the runs is a doubt", |place| {
        let jobs = "[late]\nrw=read\nsize=1m\nstartdelay=20\n[early]\nrw=read\nsize=1g\ntime_based\nruntime=60\n";
        place.file("j.fio", jobs);
        let compared = place.iosched(&["compare", "-w", "j.fio", "-d", "sata-ssd", "-n", "2", "--run-for", "1"]);
        compared.code(0).says(&["the runs do not contain the whole", "late did no I/O in any run"]);
    }),
    case("parameters without effect in simulation are doubts", |place| {
        place.file("j.fio", "[a]\nrw=randread\nsize=1m\ncgroup=web\n");
        let settings = ["none:io.weight=web:500", "bfq:io.weight=web:500", "none:nr_requests=256"];
        let settings = settings.into_iter().flat_map(|setting| ["-s", setting]);
        let args: Vec<&str> = "compare -w j.fio -d sata-ssd -n 2 --details".split(' ').chain(settings).collect();
        let reasons = [
            "io.weight does nothing: io.cost is off; add",
            "io.weight does nothing: io.cost is off, and bfq",
            "nr_requests does nothing: with none, Linux",
        ];
        place.iosched(&args).code(0).says(&reasons);
    }),
    case("a task file without tasks is refused", |place| {
        place.file("t.toml", "desc = \"nothing\"\n");
        place.iosched(&["compare", "-w", "t.toml"]).refused(2, &["t.toml: tasks: the file has no tasks"]);
    }),
    case("a closed standard output pipe is not an error", |place| {
        let mut command = place.command(&["job", "options"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let answer = Answer::of(child.wait_with_output().unwrap(), &["job options"]);
        answer.code(0);
        assert_eq!(answer.err, "");
    }),
    case("examples in --help fit into 80 columns", |place| {
        for name in ["compare", "tune", "advise", "serve", "calibrate"] {
            let mut command: Command = place.command(&[name, "--help"]);
            let answer = Answer::of(command.env("COLUMNS", "80").output().unwrap(), &[name]);
            let examples = answer.code(0).out.split_once("Examples:\n").map(|(_, examples)| examples.to_owned());
            let mut continued = true;
            for line in examples.unwrap().lines() {
                let begins = line.starts_with("  iosched ") || line.starts_with("      ") || line.trim().is_empty();
                assert!(begins || continued, "{name}: {line}");
                assert!(line.len() <= 80, "{name}: {line}");
                continued = line.ends_with('\\');
            }
        }
    }),
    case("report requires either a file of records or --last", |place| {
        place.iosched(&["report"]).refused(2, &["name a file of records", "--last"]);
        place.iosched(&["report", "--last", "r.jsonl"]).code(2).says(&["--last"]);
        place.iosched(&["report", "--last"]).refused(2, &["there is no comparison yet"]);
    }),
];
