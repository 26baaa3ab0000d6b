//! Destinations of outputs, and files that already exist there.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::common::{Loop, Mount, Server, available, has_program, image, interrupt, is_root, sh, wait_for};
use crate::list::{Answer, Case, Sandbox, case, of_repository};

const TASKS: &str = "[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 100\n";
/// A text in the output of a comparison.
const TABLE: &str = "throughput";
const PRECIOUS: &str = "precious\n";
const SAMPLE: &str = "crates/trace/samples/pgbench.blktrace.0.zst";

/// Runs a short comparison with further arguments.
#[track_caller]
fn compare(place: &Sandbox, more: &[&str]) -> Answer {
    place.file("tasks.toml", TASKS);
    let args = ["compare", "--workload", "tasks.toml", "--scheduler", "noop", "--runs", "2"];
    place.iosched(&[&args, more].concat())
}

/// Starts a comparison that runs until the test ends it.
fn long(place: &Sandbox, more: &[&str]) -> Child {
    place.file("tasks.toml", TASKS);
    let args = ["compare", "--workload", "tasks.toml", "--scheduler", "noop", "--runs", "1000000"];
    let mut command = place.command(&[&args, more].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Asserts that the directory contains only the named files.
#[track_caller]
fn contains_only(place: &Sandbox, names: &[&str]) {
    let mut there: Vec<String> =
        fs::read_dir(&place.here).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    there.retain(|name| name != "state" && name != "tasks.toml");
    there.sort();
    assert_eq!(there, names);
}

#[track_caller]
fn is_page(text: &str) {
    assert!(text.starts_with("<!DOCTYPE html>") && text.trim_end().ends_with("</html>"), "{}", text.len());
}

/// Asserts that the command leaves the file `name` unchanged and suggests --overwrite, and that it
/// replaces the file with --overwrite.
#[track_caller]
fn requires_overwrite(place: &Sandbox, name: &str, args: &[&str]) {
    place.file(name, PRECIOUS);
    place.iosched(args).refused(2, &[name, "--overwrite"]);
    assert_eq!(place.read(name), PRECIOUS);
    place.iosched(&[args, &["--overwrite"]].concat()).never(&["error"]);
    assert_ne!(place.read(name), PRECIOUS);
}

fn sample() -> String {
    of_repository(SAMPLE).to_string_lossy().into_owned()
}

pub(crate) const CASES: &[Case] = &[
    case("outputs to /dev/null do not replace the device", |place| {
        compare(place, &["--report", "/dev/null"]).code(0).says(&[TABLE]);
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        compare(place, &["--decisions", "/dev/null", "--records", "/dev/null"]).code(0);
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }),
    case("a named pipe gets the report and stays a pipe", |place| {
        let pipe = place.path("pipe");
        sh("mkfifo \"$1\"", &[&pipe]);
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        compare(place, &["--report", "pipe"]).code(0).says(&[TABLE]);
        is_page(&reader.join().unwrap());
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }),
    case("a report through a symbolic link replaces only the target", |place| {
        fs::create_dir(place.path("elsewhere")).unwrap();
        place.file("elsewhere/page.html", "");
        symlink("elsewhere/page.html", place.path("link.html")).unwrap();
        compare(place, &["--report", "link.html"]).code(0);
        assert!(fs::symlink_metadata(place.path("link.html")).unwrap().is_symlink());
        is_page(&place.read("elsewhere/page.html"));
    }),
    case("a report through a dangling link creates the target", |place| {
        symlink("b", place.path("a")).unwrap();
        symlink("target.html", place.path("b")).unwrap();
        compare(place, &["--report", "a"]).code(0);
        is_page(&place.read("target.html"));
        assert!(fs::symlink_metadata(place.path("b")).unwrap().is_symlink());
    }),
    case("circular symbolic links are refused", |place| {
        symlink("b", place.path("a")).unwrap();
        symlink("a", place.path("b")).unwrap();
        compare(place, &["--report", "a"]).refused(2, &["a: the path has too many symbolic links"]);
    }),
    case("/dev/stdout, /dev/fd/1 and - mean standard output", |place| {
        place.file("tasks.toml", TASKS);
        compare(place, &[]).code(0);
        for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"] {
            let answer = place.iosched(&["report", "--last", "-o", name]);
            is_page(&answer.code(0).out);
            let out = fs::File::create(place.path("out")).unwrap();
            let mut command = place.command(&["report", "--last", "-o", name]);
            assert!(command.stdout(out).status().unwrap().success(), "{name}");
            is_page(&place.read("out"));
        }
    }),
    case("a report to /dev/fd/N goes to that file descriptor", |place| {
        compare(place, &[]).code(0);
        let script = "\"$2\" report --last -o /dev/fd/3 3>\"$1\"/three; \"$2\" report --last -o /dev/fd/4 4>&1 | cat >\"$1\"/four";
        let state = place.path("state");
        let script = format!("export IOSCHED_STATE_DIR='{}'; {script}", state.display());
        sh(&script, &[&place.here, Path::new(crate::common::IOSCHED)]);
        is_page(&place.read("three"));
        is_page(&place.read("four"));
    }),
    case("two outputs do not both go to standard output", |place| {
        for option in ["--report", "--decisions", "--records"] {
            compare(place, &[option, "-"]).refused(2, &[option, "already goes to standard output"]).never(&[TABLE]);
        }
        compare(place, &["--report", "/dev/stdout"]).refused(2, &["already goes to standard output"]);
        place.iosched(&["calibrate", "sata-ssd", "-o", "-"]).refused(2, &["already goes to standard output"]);
    }),
    case("two outputs do not go to one file", |place| {
        let answer = compare(place, &["--report", "one", "--decisions", "./one"]);
        answer.refused(2, &["--report", "--decisions"]);
        contains_only(place, &[]);
    }),
    case("a directory or socket as output is refused before the runs", |place| {
        let _socket = UnixListener::bind(place.path("socket")).unwrap();
        fs::create_dir(place.path("directory")).unwrap();
        for (name, what) in [("socket", "is a socket"), ("directory", "is a directory")] {
            for force in [&["--report", name][..], &["--report", name, "--overwrite"]] {
                compare(place, force).refused(2, &[name, what]).never(&[TABLE]);
            }
        }
        contains_only(place, &["directory", "socket"]);
    }),
    case("a block device as output is refused, even with --overwrite", |place| {
        let disk = image(&place.here, "disk.img", 1 << 20);
        if !is_root() {
            return;
        }
        let Some(device) = Loop::new(&disk) else { return };
        let name = device.device.to_str().unwrap();
        compare(place, &["--report", name, "--overwrite"]).refused(2, &[name, "block device"]);
        place.iosched(&["trace", "convert", &sample(), name, "--format", "csv", "--overwrite"]).refused(2, &[name]);
        assert!(fs::metadata(&device.device).unwrap().file_type().is_block_device());
        assert!(fs::read(&disk).unwrap().iter().all(|&byte| byte == 0));
    }),
    case("an output in a missing directory is refused", |place| {
        for option in ["--report", "--decisions", "--records"] {
            compare(place, &[option, "no/such/file"]).refused(2, &["no/such/file", "no directory no/such"]);
        }
    }),
    case("--report does not replace foreign files without --overwrite", |place| {
        place.file("tasks.toml", TASKS);
        let args = ["compare", "-w", "tasks.toml", "-s", "noop", "-n", "2", "--report", "notes.html"];
        requires_overwrite(place, "notes.html", &args);
        place.file("page.html", "<!DOCTYPE html><html><head><title>mine</title></head></html>");
        compare(place, &["--report", "page.html"]).refused(2, &["page.html", "--overwrite"]).never(&[TABLE]);
    }),
    case("--decisions and --records require --overwrite for foreign files", |place| {
        place.file("tasks.toml", TASKS);
        let base = ["compare", "-w", "tasks.toml", "-s", "noop", "-n", "2"];
        requires_overwrite(place, "d.jsonl", &[&base[..], &["--decisions", "d.jsonl"]].concat());
        requires_overwrite(place, "r.jsonl", &[&base[..], &["--records", "r.jsonl"]].concat());
        compare(place, &["--decisions", "d.jsonl", "--records", "r.jsonl"]).code(0);
    }),
    case("neither a report nor measurements replace records", |place| {
        compare(place, &["--records", "r.jsonl"]).code(0);
        compare(place, &["--report", "r.jsonl"]).refused(2, &["r.jsonl", "--overwrite"]);
        let answer = place.iosched(&["calibrate", "sata-ssd", "--quick", "--records", "r.jsonl"]);
        answer.refused(2, &["r.jsonl", "not a file of measurements"]);
        place.iosched(&["report", "r.jsonl"]).code(0);
    }),
    case("files written by iosched and empty files are replaced", |place| {
        place.file("empty.html", "");
        for _ in 0..2 {
            compare(place, &["--report", "empty.html", "--decisions", "d", "--records", "r"]).code(0);
        }
        is_page(&place.read("empty.html"));
        contains_only(place, &["d", "empty.html", "r"]);
    }),
    case("trace commands replace files only with --overwrite", |place| {
        let convert = ["trace", "convert", &sample(), "out.csv"];
        requires_overwrite(place, "out.csv", &convert);
        place.iosched(&convert).refused(2, &["out.csv", "--overwrite"]);
        fs::copy(place.path("out.csv"), place.path("in.csv")).unwrap();
        for step in [&["slice", "--to", "1"][..], &["scale", "--speed", "2"], &["filter", "--op", "read"]] {
            let args = [&["trace", step[0], "in.csv", "out.csv"], &step[1..]].concat();
            place.iosched(&args).refused(2, &["out.csv", "--overwrite"]);
        }
    }),
    case("--blktrace replaces existing traces only with --overwrite", |place| {
        compare(place, &["--blktrace", "traces"]).code(0);
        compare(place, &["--blktrace", "traces"]).refused(2, &["noop.blktrace.0", "--overwrite"]).never(&[TABLE]);
        compare(place, &["--blktrace", "traces", "--overwrite"]).code(0);
    }),
    case("a served disk's recordings replace files with --overwrite only", |place| {
        let [data, link] = ["data", "link"].map(|name| place.path(name));
        symlink("data", &link).unwrap();
        for option in ["--record", "--record-driver"] {
            for name in ["data", "link"] {
                fs::write(&data, PRECIOUS).unwrap();
                let answer = place.iosched(&["serve", "memory:1M", "--unix", "no/s", option, name]);
                answer.refused(2, &[name, "this file exists already; to replace this file, add --overwrite"]);
                assert_eq!(place.read("data"), PRECIOUS);
            }
            let serve = ["memory:1M", option, "link", "--overwrite"];
            assert_eq!(Server::serving(&place.here, &serve).stop(), Some(0));
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && place.read("data") != PRECIOUS);
            place.iosched(&["serve", "memory:1M", option, "-"]).refused(2, &[option, "name a file or a pipe"]);
        }
        let serve = ["serve", "data", "--name", "d", "--unix", "no/s", "--overwrite", "--record", "link"];
        place.iosched(&serve).refused(2, &["link: this file is an input of the command, as data"]);
    }),
    case("calibrate does not replace a file that it did not write", |place| {
        let text = fs::read_to_string(of_repository("crates/disk/profiles/sata-ssd.toml")).unwrap();
        place.file("mine.toml", &text);
        let args = ["calibrate", "sata-ssd", "--quick", "-o", "mine.toml"];
        place.iosched(&args).refused(2, &["mine.toml", "--overwrite"]);
        assert_eq!(place.read("mine.toml"), text);
        contains_only(place, &["mine.toml"]);
    }),
    case("man --dir replaces only its own pages", |place| {
        for _ in 0..2 {
            place.iosched(&["man", "--dir", "man"]).code(0);
        }
        place.file("man/iosched-ls.1", PRECIOUS);
        place.iosched(&["man", "--dir", "man"]).refused(2, &["iosched-ls.1", "--overwrite"]);
        assert_eq!(place.read("man/iosched-ls.1"), PRECIOUS);
    }),
    case("an output never replaces an input, even with --overwrite", |place| {
        place.iosched(&["trace", "convert", &sample(), "in.csv"]).code(0);
        let before = place.read("in.csv");
        symlink("in.csv", place.path("link.csv")).unwrap();
        fs::hard_link(place.path("in.csv"), place.path("hard.csv")).unwrap();
        for name in ["in.csv", "./in.csv", "link.csv", "hard.csv"] {
            let answer = place.iosched(&["trace", "convert", "in.csv", name, "--overwrite"]);
            answer.refused(2, &[name, "is an input of the command"]);
        }
        compare(place, &["--report", "tasks.toml", "--overwrite"])
            .refused(2, &["tasks.toml", "is an input of the command"]);
        assert_eq!((place.read("in.csv"), place.read("tasks.toml")), (before, TASKS.to_owned()));
        compare(place, &["--records", "r.jsonl"]).code(0);
        place
            .iosched(&["report", "r.jsonl", "-o", "r.jsonl", "--overwrite"])
            .refused(2, &["is an input of the command"]);
    }),
    case("a replaced file keeps its owner, group and mode", |place| {
        let page = place.file("page.html", "");
        fs::set_permissions(&page, Permissions::from_mode(0o640)).unwrap();
        let root = is_root();
        if root {
            chown(&page, Some(12345), Some(54321)).unwrap();
        }
        compare(place, &["--report", "page.html"]).code(0);
        let after = fs::metadata(&page).unwrap();
        assert_eq!(after.mode() & 0o7777, 0o640);
        assert!(!root || (after.uid(), after.gid()) == (12345, 54321));
    }),
    case("the umask determines the mode of a new file", |place| {
        compare(place, &[]).code(0);
        let state = place.path("state");
        let script = "umask 027; cd \"$1\"; IOSCHED_STATE_DIR=\"$2\" \"$3\" report --last -o page.html";
        sh(script, &[&place.here, &state, Path::new(crate::common::IOSCHED)]);
        assert_eq!(fs::metadata(place.path("page.html")).unwrap().mode() & 0o7777, 0o640);
    }),
    case("the table is printed although the output device is full", |place| {
        for option in ["--report", "--decisions", "--records"] {
            let answer = compare(place, &[option, "/dev/full"]);
            answer.code(1).says(&[TABLE, "error: /dev/full: ", "No space left"]);
        }
        assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    }),
    case("a full file system leaves no partial report or record line", |place| {
        if !is_root() {
            return;
        }
        let mount = Mount::in_memory("size=16k", place.path("small"));
        let answer = compare(place, &["--report", "small/page.html"]);
        answer.code(1).says(&[TABLE, "small/page.html: cannot be written: No space left"]);
        assert_eq!(fs::read_dir(&mount.at).unwrap().count(), 0);
        let args = ["compare", "-w", "tasks.toml", "-s", "noop", "-n", "200", "--records", "small/r.jsonl"];
        let answer = place.iosched(&args);
        answer.code(1).says(&[TABLE, "small/r.jsonl: this file does not contain all records: No space left"]);
        assert!(place.read("small/r.jsonl").ends_with("}\n"), "whole lines only");
    }),
    case("an output without write permission is refused before the runs", |place| {
        if !(is_root() && has_program("setpriv")) {
            return;
        }
        place.file("tasks.toml", TASKS);
        let kept = place.file("kept.html", "");
        fs::set_permissions(&kept, Permissions::from_mode(0o444)).unwrap();
        let nobody = |args: &[&str]| {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", crate::common::IOSCHED]).args(args);
            command.current_dir(&place.here).stdin(Stdio::null()).env("HOME", "/nonexistent");
            Answer::of(command.env_remove("IOSCHED_STATE_DIR").env_remove("XDG_STATE_HOME").output().unwrap(), args)
        };
        if !available(nobody(&["--version"]).code == 0, "a command that others may run") {
            return;
        }
        for option in ["--report", "--decisions", "--records"] {
            let answer = nobody(&["compare", "-w", "tasks.toml", "-s", "noop", "-n", "2", option, "new"]);
            answer.refused(2, &["new: cannot be written: Permission denied"]).never(&[TABLE]);
        }
        let answer = nobody(&["compare", "-w", "tasks.toml", "-s", "noop", "-n", "2", "--report", "kept.html"]);
        answer.refused(2, &["kept.html: cannot be written: Permission denied"]).never(&[TABLE]);
        nobody(&["calibrate", "sata-ssd", "--quick", "-o", "new"]).refused(2, &["new: cannot be written"]);
        contains_only(place, &["kept.html"]);
    }),
    case("a read-only file system is refused before the runs, as root", |place| {
        if !is_root() {
            return;
        }
        let _mount = Mount::in_memory("ro", place.path("read-only"));
        // According to the modes of files, root may write to every directory.
        for there in ["read-only", "/proc"] {
            let file = format!("{there}/new");
            for option in ["--report", "--decisions", "--records"] {
                compare(place, &[option, &file]).refused(2, &[&format!("{file}: cannot be written")]).never(&[TABLE]);
            }
        }
    }),
    case("compare writes records to the state directory and names them", |place| {
        compare(place, &[]).code(0).says(&["records: ", "state/last.jsonl", "next: iosched report --last"]);
        contains_only(place, &[]);
        place.iosched(&["report", "--last"]).code(0).says(&["last.html"]);
        is_page(&place.read("last.html"));
    }),
    case("records go to XDG_STATE_HOME, or to ~/.local/state", |place| {
        place.file("tasks.toml", TASKS);
        let with = |name: &str, value: &Path| {
            let mut command = place.command(&["compare", "-w", "tasks.toml", "-s", "noop", "-n", "2"]);
            command.env_remove("IOSCHED_STATE_DIR").env_remove("XDG_STATE_HOME").env(name, value);
            Answer::of(command.output().unwrap(), &[name]).code(0);
        };
        with("XDG_STATE_HOME", &place.path("xdg"));
        assert!(place.read("xdg/iosched/last.jsonl").starts_with("{\"record\":\"header\""));
        with("HOME", &place.path("home"));
        assert!(place.path("home/.local/state/iosched/last.jsonl").exists());
    }),
    case("compare runs with one warning if it cannot store records", |place| {
        place.file("state", PRECIOUS);
        let answer = compare(place, &[]);
        answer.code(0).says(&[TABLE, "iosched stores no records of this comparison"]);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
        assert_eq!(place.read("state"), PRECIOUS);
        place.iosched(&["report", "--last"]).refused(2, &["no comparison yet"]);
    }),
    case("report --last works after a comparison was killed", |place| {
        let last = place.path("state/last.jsonl");
        let mut child = long(place, &[]);
        wait_for(|| lines(&last) > 5);
        child.kill().unwrap();
        child.wait().unwrap();
        place.iosched(&["report", "--last"]).code(0);
        compare(place, &[]).code(0);
        let names: Vec<_> =
            fs::read_dir(place.path("state")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["last.jsonl"], "no other files remain");
    }),
    case("concurrent comparisons do not mix their records", |place| {
        let last = place.path("state/last.jsonl");
        let child = long(place, &["--seed", "77"]);
        wait_for(|| lines(&last) > 5);
        compare(place, &["--seed", "88"]).code(0);
        assert!(place.read("state/last.jsonl").contains("--seed 88"));
        interrupt(&child);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
        let text = place.read("state/last.jsonl");
        assert!(text.contains("--seed 77") && !text.contains("--seed 88"));
        place.iosched(&["report", "--last"]).code(0);
    }),
    case("a records file that another comparison writes is refused", |place| {
        let child = long(place, &["--records", "r.jsonl"]);
        wait_for(|| lines(&place.path("r.jsonl")) > 5);
        compare(place, &["--records", "r.jsonl"]).refused(2, &["r.jsonl", "another iosched"]);
        interrupt(&child);
        child.wait_with_output().unwrap();
        compare(place, &["--records", "r.jsonl"]).code(0);
        contains_only(place, &["r.jsonl"]);
    }),
    case("a killed conversion leaves the old output unchanged", |place| {
        let pipe = place.path("in.csv");
        sh("mkfifo \"$1\"", &[&pipe]);
        place.file("out.csv", PRECIOUS);
        for signal in ["-INT", "-KILL"] {
            let mut child = place.command(&["trace", "convert", "in.csv", "out.csv", "--overwrite"]).spawn().unwrap();
            let writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
            std::io::Write::write_all(&mut &writer, b"arrival_ns,pid,op,sync,sector,nr_sectors\n0,1,R,1,0,8\n")
                .unwrap();
            assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
            assert!(!child.wait().unwrap().success());
            contains_only(place, &["in.csv", "out.csv"]);
            assert_eq!(place.read("out.csv"), PRECIOUS);
        }
    }),
    case("standard output on a full device causes an error", |place| {
        for args in [&["device", "list"][..], &["trace", "convert", &sample(), "-", "--format", "csv"]] {
            let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let output = place.command(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
            Answer::of(output, args).refused(1, &["standard output: cannot be written: No space left"]);
        }
    }),
    case("a broken output pipe is reported", |place| {
        compare(place, &[]).code(0);
        let pipe = place.path("pipe");
        sh("mkfifo \"$1\"", &[&pipe]);
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::File::open(pipe).unwrap().read_exact(&mut [0; 10]).unwrap()
        });
        // More data than a pipe can hold.
        let answer = place.iosched(&["trace", "convert", &sample(), "pipe", "--format", "csv"]);
        reader.join().unwrap();
        answer.refused(1, &["pipe: cannot be written: Broken pipe"]);
    }),
];
