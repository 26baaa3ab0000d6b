//! Messages of a served disk, with and without a reader, and the end of the server.

use std::fs;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::tools::{MESSAGES, READ, Serving, WRITE, ask, bad_handshake, full_pipe, send, wait_until};
use crate::common::{IOSCHED, Mounted, has_fuse, output};
use crate::list::Sandbox;

pub(super) fn stalled_reader(place: &Sandbox) {
    let (errors, _nobody) = full_pipe();
    let mut command = place.command(&["serve", "memory:1M", "--unix", "s"]);
    let mut serving = Serving::spawn(place, command.stderr(errors));
    wait_until(|| UnixStream::connect(place.path("s")).ok(), || "the server's socket".to_owned());
    let mut first = serving.connect();
    for _ in 0..1000 {
        bad_handshake(&place.here);
    }
    assert_eq!(ask(&mut first, WRITE, 0), 0);
    assert_eq!(ask(&mut serving.connect(), READ, 0), 0);
    assert_eq!(serving.stop(), Some(0));
    assert!(!place.path("s").exists());
}

pub(super) fn stalled_reader_of_a_mount(place: &Sandbox) {
    if !has_fuse() {
        return;
    }
    let (errors, _nobody) = full_pipe();
    let (out, _nobody_either) = full_pipe();
    let at = place.path("mnt");
    fs::create_dir_all(&at).unwrap();
    let mut command = place.command(&["mount", "memory:1M", "mnt", "--name", "sda"]);
    let mut serving = Serving::spawn(place, command.stderr(errors).stdout(out));
    wait_until(|| at.join("sda").exists().then_some(()), || "the disk".to_owned());
    assert_eq!(fs::read(at.join("sda")).unwrap().len(), 1 << 20);
    assert_eq!(serving.stop(), Some(0));
    assert!(!at.join("sda").exists());
}

pub(super) fn stalled_reader_and_two_signals(place: &Sandbox) {
    let (errors, _nobody) = full_pipe();
    let backing = "fault:late=1000000,late_ms=600000:memory:1M";
    let mut command = place.command(&["serve", backing, "--unix", "s"]);
    let mut serving = Serving::spawn(place, command.stderr(errors));
    wait_until(|| UnixStream::connect(place.path("s")).ok(), || "the server's socket".to_owned());
    let mut socket = serving.connect();
    send(&mut socket, WRITE, 0);
    thread::sleep(Duration::from_millis(100));
    serving.signal("-TERM");
    thread::sleep(Duration::from_millis(100));
    assert!(serving.child.try_wait().unwrap().is_none(), "the server waits for the write");
    serving.signal("-TERM");
    assert_eq!(serving.wait(), Some(143));
}

pub(super) fn repeated_messages(place: &Sandbox) {
    let mut serving = Serving::start(place, &["memory:1M", "--metrics", "127.0.0.1:0"]);
    for _ in 0..50 {
        bad_handshake(&place.here);
    }
    let metrics = serving.metrics("");
    assert!(metrics.contains("\niosched_messages_dropped_total 0\n"), "{metrics}");
    let suppressed = metrics.lines().find_map(|line| line.strip_prefix("iosched_messages_suppressed_total "));
    let suppressed: usize = suppressed.unwrap().parse().unwrap();
    assert_eq!(serving.stop(), Some(0));
    let text = serving.messages();
    let count = text.matches("the client set flags").count();
    assert!((10..50).contains(&count) && count + suppressed == 50, "{count} and {suppressed}: {text}");
    assert!(text.contains(&format!("and {suppressed} more: bad handshakes")), "{text}");
}

pub(super) fn closed_message_pipe(place: &Sandbox) {
    let mut command = place.command(&["serve", "memory:1M", "--unix", "s", "--metrics", "127.0.0.1:0"]);
    let mut serving = Serving::spawn(place, command.stderr(Stdio::piped()));
    wait_until(|| UnixStream::connect(place.path("s")).ok(), || "the server's socket".to_owned());
    drop(serving.child.stderr.take());
    for _ in 0..5 {
        bad_handshake(&place.here);
    }
    assert_eq!(ask(&mut serving.connect(), READ, 0), 0);
    assert_eq!(serving.stop(), Some(0));
}

pub(super) fn early_sigterm(place: &Sandbox) {
    let image = place.file("disk.img", vec![0; 1 << 20]);
    for _ in 0..20 {
        let text = fs::File::create(place.path(MESSAGES)).unwrap();
        let args = ["serve", image.to_str().unwrap(), "--unix", "s", "--control", "c"];
        let mut serving = Serving::spawn(place, place.command(&args).stderr(text));
        wait_until(|| place.path("s").exists().then_some(()), || "the server's socket".to_owned());
        assert_eq!(serving.stop(), Some(0), "{}", serving.messages());
        assert!(!place.path("s").exists() && !place.path("c").exists(), "the sockets are removed");
    }
}

pub(super) fn early_sigterm_to_vhost(place: &Sandbox) {
    // There are many sockets, so that the signal arrives when only some of them are served.
    let names: Vec<String> = (0..60).map(|number| number.to_string()).collect();
    let mut args = vec!["vhost", "memory:1M", "--control", "c"];
    names.iter().for_each(|name| args.extend(["--socket", name, "--export", name]));
    for _ in 0..10 {
        let text = fs::File::create(place.path(MESSAGES)).unwrap();
        let mut serving = Serving::spawn(place, place.command(&args).stdout(Stdio::null()).stderr(text));
        wait_until(|| place.path("0").exists().then_some(()), || "the first socket".to_owned());
        assert_eq!(serving.stop(), Some(0), "{}", serving.messages());
        assert!(names.iter().all(|name| !place.path(name).exists()), "the sockets are removed");
    }
}

pub(super) fn sigterm_while_waiting_for_exports(place: &Sandbox) {
    output(Command::new("mkfifo").arg(place.path("fifo")));
    let commands = [["serve", "--unix", "s"], ["vhost", "--socket", "s"], ["ublk", "--control", "s"]];
    for [command, socket, path] in commands {
        let args = [command, "memory:1M", socket, path, "--exports", "fifo"];
        let mut serving = Serving::spawn(place, place.command(&args).stderr(Stdio::null()));
        let status = format!("/proc/{}/status", serving.child.id());
        let takes_signals = || {
            let status = fs::read_to_string(&status).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap() >> 14 & 1 == 1
        };
        wait_until(|| takes_signals().then_some(()), || "a handler of SIGTERM".to_owned());
        assert_eq!(serving.stop(), Some(143), "{args:?}");
        assert!(!place.path("s").exists(), "no socket is created");
    }
}

pub(super) fn early_sigterm_to_a_mount(place: &Sandbox) {
    if !has_fuse() {
        return;
    }
    let at = place.path("mnt");
    fs::create_dir_all(&at).unwrap();
    for _ in 0..5 {
        let text = fs::File::create(place.path(MESSAGES)).unwrap();
        let args = ["mount", "memory:1M", "mnt", "--name", "sda"];
        let mut serving = Serving::spawn(place, place.command(&args).stdout(Stdio::null()).stderr(text));
        let mounts = || fs::read_to_string("/proc/self/mounts").unwrap();
        let here = at.to_str().unwrap();
        wait_until(|| mounts().contains(here).then_some(()), || "the mount".to_owned());
        assert_eq!(serving.stop(), Some(0), "{}", serving.messages());
        assert!(!mounts().contains(here), "the disk is unmounted");
    }
}

pub(super) fn hangup(place: &Sandbox) {
    let mut serving = Serving::start(place, &["memory:1M"]);
    serving.signal("-HUP");
    assert_eq!(serving.wait(), Some(0));
    assert!(!place.path("s").exists());
}

pub(super) fn ignored_hangup(place: &Sandbox) {
    let mut command = place.command(&[""; 0]);
    let script = "trap '' HUP; exec \"$0\" serve memory:1M --unix s --control c";
    let mut nohup = Command::new("sh");
    nohup.args(["-c", script, IOSCHED]).current_dir(command.get_current_dir().unwrap()).stdin(Stdio::null());
    command = nohup;
    let mut serving = Serving::of(place, &mut command);
    serving.signal("-HUP");
    assert_eq!(ask(&mut serving.connect(), READ, 0), 0);
    assert_eq!(serving.stop(), Some(0));
}

pub(super) fn closed_standard_streams(place: &Sandbox) {
    let image = place.file("disk.img", vec![7; 1 << 20]);
    let script = "exec \"$0\" serve disk.img --unix s --control c <&- >&- 2>&-";
    let mut command = Command::new("sh");
    let mut serving = Serving::spawn(place, command.args(["-c", script, IOSCHED]).current_dir(&place.here));
    wait_until(|| UnixStream::connect(place.path("s")).ok(), || "the server's socket".to_owned());
    for _ in 0..20 {
        bad_handshake(&place.here);
    }
    assert_eq!(ask(&mut serving.connect(), READ, 0), 0);
    assert_eq!(serving.stop(), Some(0));
    assert!(fs::read(image).unwrap() == vec![7; 1 << 20], "messages do not go into the disk");
}

pub(super) fn unreachable_notify_socket(place: &Sandbox) {
    let args = ["serve", "memory:1M", "--unix", "s", "--control", "c"];
    let mut serving = Serving::of(place, place.command(&args).env("NOTIFY_SOCKET", place.path("gone")));
    assert_eq!(ask(&mut serving.connect(), READ, 0), 0);
    assert_eq!(serving.stop(), Some(0));
}

pub(super) fn inherited_file_is_not_a_socket(place: &Sandbox) {
    let script = "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" serve memory:1M 3</dev/null";
    let output = Command::new("sh").args(["-c", script, IOSCHED]).current_dir(&place.here).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("error: LISTEN_FDS: ") && text.contains("is not a listening socket"), "{text}");
}

pub(super) fn mount_on_a_directory_with_files(place: &Sandbox) {
    if !has_fuse() {
        return;
    }
    fs::create_dir_all(place.path("full")).unwrap();
    place.file("full/precious", "");
    let args = ["mount", "memory:1M", "full"];
    place.iosched(&args).refused(2, &["full: the directory is not empty", "\"precious\"", "an empty directory"]);
}

pub(super) fn mount_over_a_mount(place: &Sandbox) {
    if !has_fuse() {
        return;
    }
    let mounted = Mounted::new(&place.here, "sda", "memory:1M", &[]);
    place.iosched(&["mount", "memory:1M", "mnt"]).refused(2, &["a disk is already mounted on this directory"]);
    assert_eq!(mounted.end(), 0);
}
