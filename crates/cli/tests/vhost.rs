//! Tests of `iosched vhost`: a guest that speaks the protocol, QEMU, and a server that is killed.

mod common;
#[path = "../../live/tests/vhost/guest.rs"]
mod guest;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::{IOSCHED, PATIENCE, directory, has_program, image, output, run};
use guest::{Guest, IN, OUT};
use iosched_check::Random;

const EMULATOR: &str = "qemu-system-x86_64";

/// A process that is killed at the end of the test.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, and waits until it is ready.
fn serve(here: &Path, args: &[&str]) -> ChildGuard {
    let mut command = Command::new(IOSCHED);
    let command = command.current_dir(here).arg("vhost").args(args).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(".sock: "), "{line:?}");
    ChildGuard(child)
}

fn pattern(place: u64, version: u32) -> Vec<u8> {
    let mut data = vec![version as u8; 4096];
    data[..8].copy_from_slice(&place.to_le_bytes());
    data[8..12].copy_from_slice(&version.to_le_bytes());
    data
}

#[test]
fn killed_server_loses_no_writes() {
    const PLACES: usize = 256;
    let here = directory("vhost-kill");
    image(&here, "disk.img", (PLACES * 4096) as u64);
    let args = ["disk.img", "--socket", "vm.sock"];
    let seed = 7;
    let mut random = Random::new(seed);
    let mut guest = Guest::new(2);
    let mut versions = [0_u32; PLACES];
    // For each slot of each queue, the place on the disk that the slot writes.
    let mut writes = [[None; guest::SLOTS as usize]; 2];
    let (mut answered, mut left) = (0_u64, 0);
    for _ in 0..20 {
        let mut server = serve(&here, &args);
        guest.connect(&here.join("vm.sock"));
        let until = answered + 50 + random.below(400);
        while answered < until {
            for (queue, writes) in writes.iter_mut().enumerate() {
                let place = random.index(PLACES);
                // Two writes of one place in flight at the same time would have no order.
                if guest.has_free(queue) && place % 2 == queue && !writes.contains(&Some(place)) {
                    versions[place] += 1;
                    let data = pattern(place as u64, versions[place]);
                    let slot = guest.submit(queue, OUT, place as u64 * 8, &data, 0);
                    writes[usize::from(slot)] = Some(place);
                }
                while let Some((slot, status)) = guest.answered(queue) {
                    assert_eq!(status, 0);
                    writes[usize::from(slot)] = None;
                    answered += 1;
                }
            }
        }
        server.0.kill().unwrap();
        server.0.wait().unwrap();
        left += writes.iter().flatten().flatten().count();
        guest.disconnect();
    }
    assert!(left > 0, "no write was in flight when the server was killed");
    println!("{answered} writes completed, {left} were in flight when the server was killed 20 times");
    let _server = serve(&here, &args);
    guest.connect(&here.join("vm.sock"));
    for (queue, writes) in writes.iter().enumerate() {
        (0..writes.iter().flatten().count()).for_each(|_| assert_eq!(guest.wait(queue).1, 0));
    }
    for (place, &version) in versions.iter().enumerate().filter(|(_, version)| **version > 0) {
        assert!(guest.read(place as u64 * 8, 4096) == pattern(place as u64, version), "place {place}, seed {seed}");
    }
}

#[test]
fn guests_and_nbd_clients_share_a_disk() {
    let here = directory("vhost-nbd");
    let disk = ["memory:8M", "--nbd", "n.sock", "--control", "c"];
    let doors =
        ["--socket", "vm.sock", "--export", "vm,weight=200", "--socket", "b.sock", "--export", "backup,read-only"];
    let args = [&disk[..], &doors].concat();
    let _server = serve(&here, &args);
    let mut guest = Guest::new(1);
    guest.connect(&here.join("vm.sock"));
    guest.write(8, &[0x5a; 4096]);
    let read = ["-r", "-f", "raw", "-c", "read -P 0x5a 4096 4096", "nbd+unix:///backup?socket=n.sock"];
    output(Command::new("qemu-io").current_dir(&here).args(read));
    let mut backup = Guest::new(1);
    backup.connect(&here.join("b.sock"));
    assert_eq!(backup.call(IN, 8, &[], 512), Ok(vec![0x5a; 512]));
    assert_eq!(backup.call(OUT, 8, &[0; 512], 0), Err(1), "the export is read-only");
    let control = here.join("c");
    let (code, out, error) = run(&["top", control.to_str().unwrap(), "--once"]);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("vm vhost") && out.contains("backup vhost"), "{out}");
}

#[test]
fn sigterm_removes_all_sockets() {
    let here = directory("vhost-end");
    let names: Vec<String> = (0..8).map(|number| format!("{number}.sock")).collect();
    let mut args = vec!["memory:1M", "--nbd", "n.sock", "--control", "c.sock"];
    names.iter().for_each(|name| args.extend(["--socket", name, "--export", name]));
    let mut server = serve(&here, &args);
    let mut guest = Guest::new(1);
    guest.connect(&here.join("0.sock"));
    assert!(Command::new("kill").args(["-TERM", &server.0.id().to_string()]).status().unwrap().success());
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
    let left: Vec<_> = std::fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn wrong_arguments_are_refused_with_the_reason() {
    let refused = |args: &[&str], code: i32, expected: &str| {
        let (found, _, error) = run(&[&["vhost"], args].concat());
        assert!(found == code && error.contains(expected), "{args:?}: {found}: {error}");
    };
    refused(&["memory:1M"], 2, "--socket <SOCKET>");
    refused(&["memory:1M", "--socket", "a", "--socket", "b"], 2, "2 sockets for 1 exports");
    let one = ["memory:1M", "--socket", "a", "--export", "x", "--export", "y"];
    refused(&one, 2, "1 sockets for 2 exports");
    let twice = ["memory:1M", "--socket", "a", "--export", "x", "--socket", "./a", "--export", "y"];
    refused(&twice, 2, "./a: --socket names this socket twice; use a different socket for each");
    refused(&["memory:1M", "--socket", "a", "--nbd", "a"], 2, "a: both --socket and --nbd name this socket");
    refused(&["memory:1M", "--socket", "/nowhere/a"], 2, "/nowhere/a: cannot listen on this socket");
}

/// Returns a boot sector that prints a text on the first serial port.
fn boot_sector() -> Vec<u8> {
    const TEXT: &[u8] = b"booted from the disk\r\n\0";
    // cli; ds = 0; si = address after the code; dx = port; send bytes until a byte is 0; halt in a
    // loop.
    let code = [
        0xfa, 0x31, 0xc0, 0x8e, 0xd8, 0xbe, 0x17, 0x7c, 0xba, 0xf8, 0x03, 0xac, 0x84, 0xc0, 0x74, 0x03, 0xee, 0xeb,
        0xf8, 0xf4, 0xeb, 0xfd, 0x90,
    ];
    let mut sector = [&code, TEXT].concat();
    sector.resize(510, 0);
    sector.extend([0x55, 0xaa]);
    sector
}

/// Returns the output of a program, in parts as it arrives.
fn messages(mut from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if sender.send(String::from_utf8_lossy(&bytes[..count]).into_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Waits until the output contains `part`. Returns the output up to then.
#[track_caller]
fn wait_for(lines: &mpsc::Receiver<String>, part: &str) -> String {
    let mut all = String::new();
    while !all.contains(part) {
        all += &lines
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|error| panic!("no output contains {part:?} ({error}): {all}"));
    }
    all
}

const PAGE: &str = include_str!("../../../docs/howto/virtual-machines.md");

/// Returns the code block of the book that begins with `begin`. Joins continued lines.
fn block(begin: &str) -> String {
    let from = PAGE.find(&format!("```\n{begin}")).unwrap_or_else(|| panic!("a block that begins with {begin}"));
    let block = PAGE[from + 4..].split("```").next().unwrap();
    block.replace("\\\n", " ")
}

#[test]
fn qemu_boots_with_documented_commands_and_refuses_migration() {
    if !has_program(EMULATOR) {
        return;
    }
    let here = directory("vhost-qemu");
    let mut disk = boot_sector();
    disk.resize(1 << 20, 0);
    std::fs::write(here.join("disk.img"), disk).unwrap();
    let (server, machine) = (block("iosched vhost"), block(EMULATOR));
    let words: Vec<_> = server.split_whitespace().skip(2).collect();
    let _server = serve(&here, &words);
    let mut words = machine.split_whitespace().skip(1);
    let mut command = Command::new(EMULATOR);
    // The test adds a monitor socket for commands to the documented options.
    let command =
        command.current_dir(&here).args(&mut words).args(["-monitor", "none", "-qmp", "unix:q,server=on,wait=off"]);
    let mut machine = ChildGuard(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    let console = messages(machine.0.stdout.take().unwrap());
    wait_for(&console, "booted from the disk");
    let mut socket = std::os::unix::net::UnixStream::connect(here.join("q")).unwrap();
    let answers = messages(socket.try_clone().unwrap());
    socket.write_all(b"{\"execute\":\"qmp_capabilities\"}\n").unwrap();
    socket.write_all(b"{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"exec:cat\"}}\n").unwrap();
    wait_for(&answers, "Migration disabled: vhost-user backend lacks VHOST_USER_PROTOCOL_F_LOG_SHMFD feature");
}

#[test]
fn libvirt_boots_the_documented_domain() {
    const RUNNER: &str = "virt-qemu-run";
    if !has_program(EMULATOR) || !has_program(RUNNER) {
        return;
    }
    let here = directory("vhost-libvirt");
    let mut disk = boot_sector();
    disk.resize(1 << 20, 0);
    std::fs::write(here.join("disk.img"), disk).unwrap();
    let server = block("iosched vhost");
    let _server = serve(&here, &server.split_whitespace().skip(2).collect::<Vec<_>>());
    // Changes to the documented domain: the socket is in the directory of the test, there is no
    // hardware virtualisation, and the guest's first serial port is a file.
    let console = here.join("console");
    let port = format!("<serial type=\"file\"><source path=\"{}\"/></serial></devices>", console.display());
    let domain = PAGE.split_once("```xml\n").unwrap().1.split_once("```").unwrap().0;
    let domain = domain.replace("/run/iosched", here.to_str().unwrap()).replace("\"kvm\"", "\"qemu\"");
    std::fs::write(here.join("domain.xml"), domain.replace("</devices>", &port)).unwrap();
    // Uses libvirt's driver without the daemon. As root, libvirt needs users that only its packages
    // create, so libvirt runs as another user in a namespace. The namespace also ends the processes
    // that libvirt leaves.
    let namespace =
        ["--user", "--map-user=1000", "--map-group=1000", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let mut command = Command::new("unshare");
    let command = command.args(namespace).args(["sh", "-c", "virt-qemu-run --root \"$PWD/libvirt\" domain.xml; exit"]);
    let command = command.current_dir(&here).env("HOME", &here).env("XDG_RUNTIME_DIR", &here).stdin(Stdio::null());
    let mut runner = ChildGuard(command.stderr(Stdio::piped()).spawn().unwrap());
    let began = Instant::now();
    let booted = || std::fs::read_to_string(&console).is_ok_and(|text| text.contains("booted from the disk"));
    while !booted() && began.elapsed() < PATIENCE && runner.0.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let has_booted = booted();
    drop(runner.0.kill());
    let mut text = String::new();
    runner.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(has_booted, "{text}");
}
