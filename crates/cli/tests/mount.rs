//! Tests of `iosched mount` with the programs that use the file system.
//!
//! If a machine lacks FUSE, fio or loop devices, the test reports this and ends. With CI set, the
//! test fails instead.

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use common::{IOSCHED, Mounted, PATIENCE, directory, has_fuse, has_program, image, run, sh};

#[test]
fn control_tree_of_a_mounted_disk_behaves_like_sysfs() {
    if !has_fuse() {
        return;
    }
    let mounted = Mounted::new(&directory("mount-tree"), "sda", "memory:16M", &[]);
    assert_eq!(fs::metadata(mounted.disk()).unwrap().len(), 16 << 20);
    assert_eq!(mounted.read("size"), "32768");
    assert_eq!(mounted.read("stat").split_whitespace().count(), 17);
    assert!(mounted.read("queue/scheduler").contains("[cfq]"));
    assert_eq!(mounted.echo("queue/iosched/slice_idle", "0"), Ok(()));
    assert_eq!(mounted.read("queue/iosched/slice_idle"), "0");
    assert_eq!(mounted.echo("queue/scheduler", "deadline"), Ok(()));
    assert!(mounted.read("queue/scheduler").contains("[deadline]"));
    assert!(mounted.attribute("queue/iosched/fifo_batch").exists());
    assert!(
        !mounted.attribute("queue/iosched/slice_idle").exists(),
        "the tunables of the previous scheduler are still there"
    );
    for (path, value, errno) in [
        ("queue/scheduler", "bogus", 22),
        ("queue/nr_requests", "x", 22),
        ("queue/nr_requests", "0", 22),
        ("device/queue_depth", "0", 22),
        ("queue/rotational", "1", 13),
        ("stat", "0", 13),
        ("queue/nothing", "0", 2),
    ] {
        let before = mounted.read("queue/scheduler") + &mounted.read("queue/nr_requests");
        assert_eq!(mounted.echo(path, value), Err(errno), "{path} {value}");
        assert_eq!(mounted.read("queue/scheduler") + &mounted.read("queue/nr_requests"), before);
    }
    for (path, mode) in [("stat", 0o444), ("queue/nr_requests", 0o644), ("queue/rotational", 0o444), ("queue", 0o555)] {
        assert_eq!(fs::metadata(mounted.attribute(path)).unwrap().permissions().mode() & 0o777, mode, "{path}");
    }
    fs::create_dir(mounted.attribute("groups/db")).unwrap();
    assert_eq!(mounted.echo("groups/db/weight", "300"), Ok(()));
    assert_eq!(mounted.read("groups/db/weight"), "300");
    assert_eq!(mounted.echo("groups/db/io.max", "wbps=5000000 riops=100"), Ok(()));
    assert_eq!(mounted.read("groups/db/io.max"), "rbps=max wbps=5000000 riops=100 wiops=max");
    assert_eq!(mounted.echo("groups/db/io.max", "wbps=0"), Err(34));
    assert_eq!(mounted.echo("groups/db/io.max", "wbps"), Err(22));
    assert_eq!(fs::create_dir(mounted.attribute("groups/a\nb")).unwrap_err().raw_os_error(), Some(22));
    fs::remove_dir(mounted.attribute("groups/db")).unwrap();
    assert!(!mounted.attribute("groups/db").exists());
    assert_eq!(fs::remove_dir(mounted.attribute("groups")).unwrap_err().raw_os_error(), Some(1));
    fs::create_dir(mounted.attribute("groups/db")).unwrap();
    assert_eq!(mounted.read("groups/db/io.max"), "rbps=max wbps=max riops=max wiops=max");
    assert!(File::create(mounted.at.join("new")).is_err());
    assert!(fs::remove_file(mounted.disk()).is_err());
    // Shell scripts that are written for /sys/block also work here.
    let script = "for f in $(find \"$1\" -type f -perm -u+w -path '*queue*'); do v=$(cat $f); \
                  case $f in */scheduler) ;; *) echo $v > $f; [ \"$(cat $f)\" = \"$v\" ];; esac; done";
    sh(script, &[&mounted.attribute("")]);
    assert_eq!(mounted.end(), 0);
}

#[test]
fn rescan_grows_a_mounted_disk() {
    if !has_fuse() {
        return;
    }
    let here = directory("mount-grows");
    image(&here, "disk.img", 1 << 20);
    let mounted = Mounted::new(&here, "sda", here.join("disk.img").to_str().unwrap(), &[]);
    let disk = OpenOptions::new().read(true).write(true).open(mounted.disk()).unwrap();
    assert_eq!(disk.metadata().unwrap().len(), 1 << 20);
    OpenOptions::new().write(true).open(here.join("disk.img")).unwrap().set_len(2 << 20).unwrap();
    assert!(disk.write_all_at(&[7; 512], 1 << 20).is_err());
    assert_eq!(mounted.echo("device/rescan", "1"), Ok(()));
    assert_eq!(disk.metadata().unwrap().len(), 2 << 20);
    disk.write_all_at(&[7; 512], (2 << 20) - 512).unwrap();
    let mut read = [0; 512];
    disk.read_exact_at(&mut read, (2 << 20) - 512).unwrap();
    assert_eq!(read, [7; 512]);
    drop(disk);
    assert_eq!(mounted.end(), 0);
}

#[test]
fn ls_get_and_set_work_on_a_mounted_disk() {
    if !has_fuse() {
        return;
    }
    let mounted = Mounted::new(&directory("mount-attributes"), "sda", "memory:16M", &["--scheduler", "noop"]);
    let at = mounted.at.to_str().unwrap();
    let disk = mounted.attribute("");
    let (code, out, _) = run(&["ls", "--at", at]);
    assert_eq!(code, 0);
    assert_eq!(
        out.lines().nth(1).map(|l| l.split_whitespace().collect()),
        Some(vec!["sda", "16", "MiB", "noop", "no", "128"])
    );
    let set = ["set", "--at", at, "scheduler=cfq", "slice_idle=0", "sda/nr_requests=32"];
    assert_eq!(run(&set), (0, "scheduler=cfq\nslice_idle=0\nsda/nr_requests=32\n".to_owned(), String::new()));
    let get = ["get", "--at", disk.to_str().unwrap(), "iosched/slice_idle", "nr_requests", "size"];
    assert_eq!(run(&get), (0, "iosched/slice_idle=0\nnr_requests=32\nsize=32768\n".to_owned(), String::new()));
    let (code, out, _) = run(&["get", "--at", at]);
    assert_eq!(code, 0);
    for line in ["nr_requests=32", "iosched/quantum=8", "device/queue_depth=128", "size=32768"] {
        assert!(out.lines().any(|found| found == line), "{line}: {out}");
    }
    for (args, code, expected) in [
        (
            ["set", "scheduler=bogus"],
            2,
            "scheduler: there is no scheduler \"bogus\"; available: noop, anticipatory, deadline, cfq",
        ),
        (["set", "quantum=no"], 2, "quantum: \"no\" is not a whole number; it must be from 1 to "),
        (["set", "rotational=0"], 1, "read-only"),
        (["set", "nothing=0"], 2, "nothing: there is no such attribute; sda has"),
        (["set", "scheduler"], 2, "is not NAME=VALUE"),
        (["get", "nothing"], 2, "nothing: there is no such attribute"),
    ] {
        let (found, _, err) = run(&[&args[..], &["--at", at]].concat());
        assert!(found == code && err.contains(expected), "{args:?}: {found} {err}");
    }
    assert_eq!(mounted.end(), 0);
}

#[test]
fn written_data_survive_the_unmount() {
    if !has_fuse() {
        return;
    }
    let here = directory("mount-file");
    let image = image(&here, "disk.img", 8 << 20);
    let mounted = Mounted::new(&here, "sda", image.to_str().unwrap(), &[]);
    let pattern: Vec<u8> = (0..1_000_003_u32).map(|n| (n * 7 + n / 251) as u8).collect();
    let disk = OpenOptions::new().read(true).write(true).open(mounted.disk()).unwrap();
    disk.write_all_at(&pattern, 12_345).unwrap();
    let mut read = vec![0; pattern.len()];
    disk.read_exact_at(&mut read, 12_345).unwrap();
    assert!(read == pattern);
    // Accesses at the end behave like accesses at the end of a device.
    assert_eq!(disk.write_at(&[1; 100], (8 << 20) - 10).unwrap(), 10);
    assert_eq!(disk.write_at(&[1; 100], 8 << 20).unwrap_err().raw_os_error(), Some(28));
    assert_eq!(disk.read_at(&mut [0; 100], 8 << 20).unwrap(), 0);
    disk.sync_all().unwrap();
    drop(disk);
    // dd and the `>` of a shell truncate the file. This must not change the data.
    drop(OpenOptions::new().write(true).truncate(true).open(mounted.disk()).unwrap());
    let synced = OpenOptions::new().write(true).custom_flags(0o4_010_000).open(mounted.disk()).unwrap();
    synced.write_all_at(b"synced", 0).unwrap();
    drop(synced);
    sh("fallocate --punch-hole --offset 20480 --length 10001 \"$1\"", &[&mounted.disk()]);
    sh("fallocate --zero-range --offset 100000 --length 7 \"$1\"", &[&mounted.disk()]);
    assert!(fs::read(mounted.attribute("stat")).is_ok());
    assert_eq!(mounted.end(), 0);

    let found = fs::read(&image).unwrap();
    let mut expected = vec![0; 8 << 20];
    expected[12_345..12_345 + pattern.len()].copy_from_slice(&pattern);
    expected[(8 << 20) - 10..].fill(1);
    expected[..6].copy_from_slice(b"synced");
    expected[20480..30481].fill(0);
    expected[100_000..100_007].fill(0);
    assert!(found == expected, "first difference at {:?}", found.iter().zip(&expected).position(|(a, b)| a != b));
}

/// A process that reads from the disk when the test asks for it.
struct Reader {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Reader {
    fn new(disk: &Path) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "while read -r go; do read -r line < \"$1\"; echo \"$line\"; done", "sh"])
            .arg(disk)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn read(&mut self) -> String {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    fn ionice(&self, args: &[&str]) {
        let pid = self.child.id().to_string();
        assert!(Command::new("ionice").args(args).args(["-p", &pid]).status().unwrap().success());
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_process_is_a_client_with_its_ioprio_until_it_exits() {
    if !has_fuse() || !has_program("ionice") {
        return;
    }
    let mounted = Mounted::new(&directory("mount-ionice"), "sda", "memory:1M", &[]);
    let mut file = OpenOptions::new().write(true).open(mounted.disk()).unwrap();
    file.write_all(b"first line\n").unwrap();
    let mut reader = Reader::new(&mounted.disk());
    reader.ionice(&["-c3"]);
    assert_eq!(reader.read(), "first line\n");
    let pid = reader.child.id().to_string();
    let find = || {
        let ids = fs::read_dir(mounted.attribute("clients")).unwrap();
        let ids = ids.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // A client may end after the list is read and before its file is read.
        let pid_of = |id: &String| fs::read_to_string(mounted.attribute(&format!("clients/{id}/pid")));
        ids.into_iter().find(|id| pid_of(id).is_ok_and(|read| read.trim_end() == pid))
    };
    let id = find().expect("the reader is a client");
    let of = |file: &str| mounted.read(&format!("clients/{id}/{file}"));
    assert_eq!((of("name"), of("ioprio")), ("sh".to_owned(), "idle".to_owned()));
    assert!(of("stat").starts_with("read ios="), "{}", of("stat"));
    reader.ionice(&["-c2", "-n6"]);
    reader.read();
    assert_eq!(of("ioprio"), "be/6");
    assert_eq!(mounted.echo(&format!("clients/{id}/ioprio"), "rt/1"), Ok(()));
    reader.read();
    assert_eq!(of("ioprio"), "rt/1", "a written ioprio stays until ionice changes the ioprio");
    assert_eq!(mounted.echo(&format!("clients/{id}/ioprio"), "be/9"), Err(22));
    drop(reader);
    let began = Instant::now();
    while find().is_some() {
        assert!(began.elapsed() < PATIENCE, "the client remains after its process has exited");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(file);
    assert_eq!(mounted.end(), 0);
}

#[test]
fn o_direct_and_o_dsync_writes_have_sync_and_fua_flags() {
    if !has_fuse() {
        return;
    }
    let here = directory("mount-direct");
    let recording = here.join("driver");
    let mounted = Mounted::new(&here, "sda", "memory:1M", &["--record-driver", recording.to_str().unwrap()]);
    for (at, flags) in [(0, OFlags::empty()), (65_536, OFlags::DIRECT), (131_072, OFlags::DSYNC)] {
        let file = OpenOptions::new().write(true).custom_flags(flags.bits() as i32).open(mounted.disk()).unwrap();
        file.write_all_at(&[7; 4096], at).unwrap();
    }
    assert_eq!(mounted.end(), 0);
    let recording = fs::read_to_string(recording).unwrap();
    let bios = recording.lines().filter_map(|line| line.split_once(" submit W ")).map(|(_, bio)| bio.split(' '));
    let flags_and_sectors: Vec<Vec<&str>> = bios.map(|bio| bio.take(2).collect()).collect();
    // The flags are: none; SYNC and IDLE; SYNC and FUA.
    assert_eq!(flags_and_sectors, [["0", "0"], ["3", "128"], ["9", "256"]]);
}

#[test]
fn mount_in_use_is_served_until_its_file_is_closed() {
    if !has_fuse() {
        return;
    }
    let here = directory("mount-busy");
    let mut mounted = Mounted::new(&here, "sda", "memory:1M", &[]);
    let file = OpenOptions::new().read(true).write(true).open(mounted.disk()).unwrap();
    file.write_all_at(b"before", 0).unwrap();
    mounted.signal("-TERM");
    let began = Instant::now();
    while mounted.is_mounted() {
        assert!(began.elapsed() < PATIENCE, "the directory is still mounted after SIGTERM");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut bytes = [0; 6];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"before");
    file.write_all_at(b"after!", 0).unwrap();
    assert!(mounted.child.try_wait().unwrap().is_none(), "the server ended although the disk is open");
    let messages = || fs::read_to_string(here.join("stderr")).unwrap();
    while !messages().contains("in use by") {
        assert!(began.elapsed() < PATIENCE, "no message names the process that has the disk open: {}", messages());
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(file);
    let status = mounted.wait();
    assert_eq!(status, 0, "{}", messages());
    let messages = messages();
    assert!(messages.contains(&format!("({})", std::process::id())), "{messages}");
}

#[test]
fn second_signal_ends_a_mount_at_once() {
    if !has_fuse() {
        return;
    }
    let mut mounted = Mounted::new(&directory("mount-twice"), "sda", "memory:1M", &[]);
    let mut file = File::open(mounted.disk()).unwrap();
    mounted.signal("-INT");
    let began = Instant::now();
    while mounted.is_mounted() && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    mounted.signal("-INT");
    assert_eq!(mounted.wait(), 130);
    assert!(file.read(&mut [0; 10]).is_err(), "reads succeed after the server has ended");
}

#[test]
fn error_explains_a_mount_whose_server_was_killed() {
    if !has_fuse() {
        return;
    }
    let here = directory("mount-stale");
    let mut mounted = Mounted::new(&here, "sda", "memory:1M", &[]);
    let at = mounted.at.clone();
    let (code, _, err) = run(&["mount", "memory:1M", at.to_str().unwrap()]);
    assert!(code == 2 && err.contains("a disk is already mounted on this directory"), "{err}");
    mounted.child.kill().unwrap();
    mounted.child.wait().unwrap();
    for args in [["mount", "memory:1M"], ["ls", "--at"]] {
        let (code, _, err) = run(&[&args[..], &[at.to_str().unwrap()]].concat());
        assert!(
            code == 2 && err.contains("the server of this mount has ended") && err.contains("fusermount3 -u"),
            "{args:?}: {err}"
        );
    }
    sh("umount -l \"$1\"", &[&at]);
    drop(mounted);
    assert_eq!(Mounted::new(&here, "sda", "memory:1M", &[]).end(), 0);
}

#[test]
fn read_only_mount_cannot_be_opened_for_writing() {
    if !has_fuse() {
        return;
    }
    let mounted = Mounted::new(&directory("mount-read-only"), "sda", "memory:1M", &["--read-only"]);
    assert_eq!(fs::read(mounted.disk()).unwrap(), vec![0; 1 << 20]);
    let opened = OpenOptions::new().write(true).open(mounted.disk());
    assert_eq!(opened.unwrap_err().raw_os_error(), Some(30));
    assert_eq!(mounted.end(), 0);
}

#[test]
fn control_socket_lists_reads_and_sets_a_served_disk() {
    let here = directory("mount-control");
    let (control, nbd) = (here.join("control"), here.join("nbd"));
    let mut child = Command::new(IOSCHED)
        .args(["serve", "memory:1M", "--name", "sda", "--control"])
        .arg(&control)
        .arg("--unix")
        .arg(&nbd)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let messages = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(messages.into_iter().any(|line| line.starts_with("control: ")), "no message names the control socket");
    assert_eq!(fs::metadata(&control).unwrap().permissions().mode() & 0o777, 0o600);
    let at = control.to_str().unwrap();
    let (code, out, _) = run(&["ls", "--at", at]);
    assert!(code == 0 && out.contains("sda") && out.contains("cfq"), "{out}");
    assert_eq!(run(&["set", "--at", at, "scheduler=bfq", "low_latency=0"]).1, "scheduler=bfq\nlow_latency=0\n");
    assert_eq!(run(&["get", "--at", at, "-n", "iosched/low_latency", "sda/size"]).1, "0\n2048\n");
    assert_eq!(run(&["get", at, "-n", "iosched/low_latency", "sda/size"]).1, "0\n2048\n", "without --at");
    let (code, _, err) = run(&["set", "--at", at, "scheduler=bogus"]);
    assert!(code == 2 && err.contains("scheduler: there is no scheduler \"bogus\"; available: noop"), "{err}");
    let (code, _, err) = run(&["set", "--at", at, "nothing=1"]);
    assert!(code == 2 && err.contains("nothing: there is no such attribute; sda has"), "{err}");
    child.kill().unwrap();
    child.wait().unwrap();
    let (code, _, err) = run(&["ls", "--at", at]);
    assert!(code == 2 && err.contains("the server of this control socket has ended"), "{err}");
}

#[test]
fn served_disk_is_found_by_its_name() {
    let here = directory("mount-live");
    let iosched = |args: &[&str]| {
        let mut command = Command::new(IOSCHED);
        command.args(args).env("RUNTIME_DIRECTORY", here.join("run"));
        command
    };
    let text = |args: &[&str]| {
        let output = iosched(args).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap(), text)
    };
    let nbd = here.join("nbd");
    let serve = ["serve", "memory:1M", "--control", "live:db", "--unix", nbd.to_str().unwrap()];
    let mut child = iosched(&serve).stderr(Stdio::piped()).spawn().unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(messages.any(|line| line == "control: iosched ls live:db"));
    assert!(text(&["ls"]).1.lines().any(|line| line.starts_with("served disks: ") && line.contains("live:db")));
    assert_eq!(
        text(&["set", "live:db", "scheduler=cfq", "slice_idle=3"]),
        (0, "scheduler=cfq\nslice_idle=3\n".to_owned())
    );
    assert_eq!(text(&["get", "live:db", "slice_idle", "-n"]), (0, "3\n".to_owned()));
    let (code, top) = text(&["top", "live:db", "--once", "-i", "0.1", "--json"]);
    assert!(code == 0 && top.contains("0 clients"), "{top}");
    for (name, hint) in [("live:dv", "did you mean live:db?"), ("live:a/b", "one word without slashes")] {
        let (code, text) = text(&["get", name]);
        assert!(code == 2 && text.contains(hint), "{name}: {text}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn umount_ends_the_server_of_a_mount() {
    if !has_fuse() {
        return;
    }
    let mut mounted = Mounted::new(&directory("mount-umount"), "sda", "memory:1M", &[]);
    sh("umount \"$1\" || fusermount3 -u \"$1\"", &[&mounted.at]);
    assert_eq!(mounted.wait(), 0);
}

#[test]
fn mount_refuses_wrong_arguments() {
    let here = directory("mount-refused");
    let at = here.join("mnt");
    fs::create_dir(&at).unwrap();
    let (at, gone) = (at.to_str().unwrap(), here.join("gone"));
    for (args, expected) in [
        (vec!["mount", "memory:1M", gone.to_str().unwrap()], "name an existing directory"),
        (vec!["mount", "memory:lots", at], "not a size"),
        (vec!["mount", "model:none-such", at], "none-such"),
        (vec!["mount", gone.to_str().unwrap(), at], "gone"),
        (vec!["mount", "memory:1M", at, "--scheduler", "bogus"], "there is no scheduler \"bogus\"; available: noop"),
        (vec!["mount", "memory:1M", at, "--name", "block"], "\"block\" cannot be the name of the disk"),
        (vec!["mount", "memory:1M", at, "--depth", "0"], "0 is not in 1.."),
    ] {
        let (code, out, err) = run(&args);
        assert!(code == 2 && out.is_empty() && err.contains(expected), "{args:?}: {code} {err}");
    }
}
