//! Tests of `iosched serve`: installed clients, clients that violate the protocol, signals, and
//! messages about wrong arguments. If a client is not installed, the test reports what it skips.
//! With CI set, the test fails instead.

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{IOSCHED, Server, directory, image};

fn request(command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = vec![0x25, 0x60, 0x95, 0x13, 0, 0];
    bytes.extend(command.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// Reads a block, and returns the error of the reply.
fn read_error(socket: &mut UnixStream, offset: u64) -> u32 {
    socket.write_all(&request(0, 1, offset, 512)).unwrap();
    let mut reply = [0; 16];
    socket.read_exact(&mut reply).unwrap();
    let error = u32::from_be_bytes([reply[4], reply[5], reply[6], reply[7]]);
    if error == 0 {
        socket.read_exact(&mut [0; 512]).unwrap();
    }
    error
}

/// Asserts that wrong arguments give this message and this exit code.
#[track_caller]
fn refused(here: &Path, args: &[&str], code: i32, expected: &str) {
    let mut command = Command::new(IOSCHED);
    let output = command.current_dir(here).arg("serve").args(args).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    assert!(error.starts_with("error: ") && error.contains(expected), "{args:?} should say {expected:?}: {error}");
}

#[test]
fn fio_verifies_memory_and_a_file_at_depth_16_and_64() {
    let here = directory("serve-fio");
    image(&here, "disk.img", 8 << 20);
    for backing in ["memory:8M", "disk.img"] {
        let server = Server::serving(&here, &[backing]);
        server.fio_verifies("shallow", 16, "8m", 1);
        server.fio_verifies("deep", 64, "8m", 2);
        assert_eq!(server.stop(), Some(0));
    }
}

#[test]
fn copied_data_are_read_back_unchanged() {
    let here = directory("serve-copy");
    let bytes: Vec<u8> = (0..8_u32 << 20).map(|at| (at / 512 * 7 + at) as u8).collect();
    std::fs::write(here.join("in"), &bytes).unwrap();
    image(&here, "disk.img", bytes.len() as u64);
    let server = Server::serving(&here, &["disk.img", "--export", "db,class=be,level=0,weight=800"]);
    let uri = "nbd+unix:///db?socket=s";
    if let Some(out) = server.client("nbdinfo", &["--json", uri]) {
        assert!(out.contains("\"export-size\": 8388608") && out.contains("\"can_fua\": true"), "{out}");
    }
    if server.client("nbdcopy", &["--connections=4", "--flush", "in", uri]).is_some() {
        assert!(std::fs::read(here.join("disk.img")).unwrap() == bytes, "the file differs from the flushed data");
        server.client("nbdcopy", &["--connections=4", uri, "out"]);
        assert!(std::fs::read(here.join("out")).unwrap() == bytes);
        server.client("qemu-img", &["compare", "-f", "raw", "-F", "raw", "in", uri]);
    }
    server.client("qemu-io", &["-f", "raw", "-c", "write -f -P 5 1000 70000", "-c", "read -P 5 1000 70000", uri]);
}

#[test]
fn rescan_takes_a_larger_backing_and_refuses_a_smaller_one() {
    let here = directory("serve-rescan");
    image(&here, "disk.img", 1 << 20);
    let resize = |bytes| std::fs::OpenOptions::new().write(true).open(here.join("disk.img")).unwrap().set_len(bytes);
    // A fault layer before the file does not prevent this.
    let server = Server::serving(&here, &["fault:cache=64K:disk.img"]);
    let size = || server.client(IOSCHED, &["get", "c", "size"]).unwrap();
    let rescan = || Command::new(IOSCHED).current_dir(&here).args(["set", "c", "device/rescan=1"]).output().unwrap();
    let mut old = server.connect();
    resize(2 << 20).unwrap();
    assert_eq!((size().trim(), read_error(&mut old, 1 << 20)), ("size=2048", 22));
    assert!(rescan().status.success());
    assert_eq!(size().trim(), "size=4096");
    // The server has told the old client the old size, and never tells it the new size.
    assert_eq!(read_error(&mut old, 1 << 20), 22);
    let mut new = server.connect();
    assert_eq!(read_error(&mut new, (2 << 20) - 512), 0);
    assert_eq!(read_error(&mut new, 2 << 20), 22);
    if let Some(out) = server.client("nbdinfo", &["--size", "nbd+unix:///?socket=s"]) {
        assert_eq!(out.trim(), "2097152");
    }
    resize(1 << 20).unwrap();
    let refused = rescan();
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && text.contains("has shrunk to 1048576 bytes"), "{text}");
    assert_eq!(size().trim(), "size=4096");
    assert_eq!(server.stop(), Some(0));
}

/// Connects to an export, with simple replies. Returns the connection after the handshake, and the
/// export's flags. Returns `None` if the server refuses the export.
fn connect_to(here: &Path, export: &str) -> Option<(UnixStream, u16)> {
    let mut socket = UnixStream::connect(here.join("s")).unwrap();
    socket.read_exact(&mut [0; 18]).unwrap();
    socket.write_all(&[0, 0, 0, 3]).unwrap();
    let mut option = b"IHAVEOPT\0\0\0\x01".to_vec();
    option.extend((export.len() as u32).to_be_bytes());
    option.extend(export.as_bytes());
    socket.write_all(&option).unwrap();
    let mut answer = [0; 10];
    socket.read_exact(&mut answer).ok()?;
    Some((socket, u16::from_be_bytes([answer[8], answer[9]])))
}

#[test]
fn server_applies_declared_shares_or_warns_with_a_remedy() {
    let here = directory("serve-shares");
    let weights = ["memory:1M", "--export", "db,weight=800", "--export", "backup,weight=200"];
    let classes = ["memory:1M", "--export", "db", "--export", "backup,class=idle"];
    let cfq = "memory, 1 MiB, cfq";
    let keeps = |depth: u32| {
        format!(
            ":slice_idle=0, depth {depth} (this scheduler applies the declared weights if each client sends its \
             next request within 8 ms; to apply the weights to async writes too, declare sync=all)"
        )
    };
    let [at_8, at_5] = [8, 5].map(keeps);
    let approximately = " applies the declared weights only approximately; to apply them exactly, declare sync=all";
    let sync = ["memory:1M", "--export", "db,weight=800,sync=all", "--export", "backup,weight=200,read-only"];
    // For each case: the scheduler that the server announces, the warning, and the values in
    // effect.
    let cases = [
        (&weights[..], &[][..], at_8.as_str(), None, ["0", "8"]),
        (&weights, &["--depth", "5"], &at_5, None, ["0", "5"]),
        (&weights, &["--scheduler", "cfq"], "\n", Some(approximately), ["", "128"]),
        (&weights, &["--scheduler", "bfq"], "", Some(approximately), ["", "128"]),
        (&sync, &["--scheduler", "cfq"], "\n", None, ["", "128"]),
        (&weights, &["--for", "shared"], ":slice_idle=0, depth 8\n", Some(approximately), ["0", "8"]),
        (&classes, &[], "\n", None, ["", "128"]),
        (
            &weights,
            &["--scheduler", "none"],
            "",
            Some(" ignores the declared weights; use --for shared to apply them"),
            ["", "128"],
        ),
        (
            &weights,
            &["--scheduler", "bfq:slice_idle=0"],
            "",
            Some(" ignores the declared weights; use --for shared to apply them"),
            ["0", "128"],
        ),
        (
            &classes,
            &["--scheduler", "kyber"],
            "",
            Some(" ignores the declared classes and levels; use --scheduler cfq to apply them"),
            ["", "128"],
        ),
    ];
    for (exports, options, announced, warned, in_force) in cases {
        let server = Server::serving(&here, &[exports, options].concat());
        let messages = &server.messages;
        match warned {
            None => {
                assert!(messages.contains(&format!("{cfq}{announced}")) && !messages.contains("warning"), "{messages}")
            }
            Some(warning) => assert!(messages.contains(warning), "{messages}"),
        }
        for (name, value) in ["slice_idle", "device/queue_depth"].into_iter().zip(in_force) {
            if !value.is_empty() {
                let read = server.client(IOSCHED, &["get", "c", name]).unwrap();
                assert!(read.trim().ends_with(&format!("{name}={value}")), "{options:?}: {read}");
            }
        }
        assert_eq!(server.stop(), Some(0));
    }
}

#[test]
fn set_warns_about_weights_that_the_scheduler_ignores() {
    let here = directory("serve-shares-set");
    let server = Server::serving(&here, &["memory:1M", "--export", "db", "--scheduler", "none"]);
    let set = |values: &[&str]| {
        let mut command = Command::new(IOSCHED);
        let output = command.args(["set", "c"]).args(values).current_dir(&here).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = set(&["groups/db/weight=800"]);
    let way = text.strip_prefix("warning: none ignores weights; set ").and_then(|way| way.split_once(" to apply them"));
    // The command that the warning suggests works.
    assert_eq!(set(&way.unwrap().0.split(' ').collect::<Vec<_>>()), "");
    assert_eq!(set(&["groups/db/weight=700"]), "");
    assert_eq!(server.stop(), Some(0));
}

/// Returns the number of random reads of a client that were answered in the measured part of the
/// time. The client always has 16 reads in flight.
fn answers(here: &Path, export: &str, warm_up: Duration, measured: Duration) -> u64 {
    const BLOCKS: u64 = 1 << 18;
    let (mut socket, _) = connect_to(here, export).unwrap();
    let mut at = export.bytes().map(u64::from).sum::<u64>();
    let mut send = |socket: &mut UnixStream| {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        socket.write_all(&request(0, at, (at >> 33) % BLOCKS * 4096, 4096)).unwrap();
    };
    (0..16).for_each(|_| send(&mut socket));
    let (begun, mut answers, mut reply) = (Instant::now(), 0, [0; 16 + 4096]);
    while begun.elapsed() < warm_up + measured {
        socket.read_exact(&mut reply).unwrap();
        answers += u64::from(begun.elapsed() >= warm_up);
        send(&mut socket);
    }
    answers
}

#[test]
fn exports_get_their_reservation_weight_and_limit_over_nbd() {
    let here = directory("serve-rates");
    let exports = [
        "model:scsi-15k,size=1G",
        "--depth",
        "4",
        "--export",
        "db,reservation=100,weight=10",
        "--export",
        "web,weight=400",
        "--export",
        "backup,weight=400,limit=80kB",
    ];
    let server = Server::serving(&here, &exports);
    assert!(
        server.messages.contains("mclock (this scheduler applies the declared reservations and limits)"),
        "{}",
        server.messages
    );
    let (warm_up, measured) = (Duration::from_secs(2), Duration::from_secs(6));
    let clients = ["db", "web", "backup"].map(|export| {
        let here = here.clone();
        thread::spawn(move || answers(&here, export, warm_up, measured))
    });
    let [db, web, backup] = clients.map(|client| client.join().unwrap() as f64 / measured.as_secs_f64());
    println!("db {db:.1} IOPS (reservation 100), web {web:.1}, backup {backup:.1} (limit 80 kB/s, 19.5 IOPS)");
    assert!((97.0..=110.0).contains(&db), "db got {db} of 100 reserved IOPS; web {web}, backup {backup}");
    assert!((18.5..=20.0).contains(&backup), "backup got {backup} of at most 19.5 IOPS; web {web}, db {db}");
    assert!(web > 50.0, "web got {web} IOPS");
    // A new limit applies at once, and the control tree shows it.
    let set = server.client(IOSCHED, &["set", "c", "groups/backup/limit=200kB/s", "groups/db/reservation=50"]).unwrap();
    assert_eq!(set, "groups/backup/limit=200kB\ngroups/db/reservation=50\n");
    let refused = Command::new(IOSCHED).current_dir(&here).args(["set", "c", "groups/backup/limit=fast"]).output();
    let refused = refused.unwrap();
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && text.contains("\"fast\" is not a rate"), "{text}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn server_and_set_warn_about_ignored_reservations_and_limits() {
    let here = directory("serve-rates-ignored");
    let server = Server::serving(&here, &["memory:1M", "--export", "db,limit=5MB", "--scheduler", "cfq"]);
    let warning = "warning: cfq ignores the declared reservations and limits; use --scheduler mclock to apply them";
    assert!(server.messages.contains(warning), "{}", server.messages);
    let set = |value: &str| {
        let mut command = Command::new(IOSCHED);
        let output = command.args(["set", "c", value]).current_dir(&here).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        set("groups/db/reservation=10"),
        "warning: cfq ignores reservations and limits; set scheduler=mclock to apply them\n"
    );
    assert_eq!(set("scheduler=mclock"), "");
    assert_eq!(set("groups/db/limit=6MB"), "");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn control_socket_removes_only_groups_that_it_created() {
    let here = directory("serve-group-removed");
    let server = Server::serving(&here, &["memory:1M", "--export", "db"]);
    let (_stream, _) = connect_to(&here, "db").unwrap();
    let run = |args: &[&str]| {
        let output = Command::new(IOSCHED).args(args).current_dir(&here).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let set = |value: &str| run(&["set", "c", value]);
    assert_eq!(set("clients/1/group=made").0, 0);
    assert_ne!(set("groups/made/remove=1").0, 0, "a group with a client cannot be removed");
    assert_eq!(set("clients/1/group=db").0, 0);
    assert_ne!(set("groups/made/remove=0").0, 0);
    assert_ne!(set("groups/db/remove=1").0, 0, "a declared group cannot be removed");
    assert_eq!(set("groups/made/remove=1"), (0, "groups/made/remove=1".to_owned()));
    assert_ne!(run(&["get", "c", "groups/made/weight"]).0, 0);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn sighup_rereads_exports_and_keeps_them_after_an_error() {
    const READ_ONLY: u16 = 2;
    let here = directory("serve-reread");
    let declare = |text: &str| std::fs::write(here.join("exports.toml"), text).unwrap();
    declare("[export.db]\nweight = 200\n[export.old]\nweight = 300\n[export.same]\nweight = 400\n");
    let server = Server::serving(&here, &["memory:1M", "--exports", "exports.toml"]);
    let hang_up = |says: &str| {
        assert!(Command::new("kill").args(["-HUP", &server.child.id().to_string()]).status().unwrap().success());
        server.says(says);
    };
    let get = |name: &str| server.client(IOSCHED, &["get", "c", name]).unwrap().trim().to_owned();
    let (mut db, flags) = connect_to(&here, "db").unwrap();
    assert_eq!(flags & READ_ONLY, 0);
    let (mut old, _) = connect_to(&here, "old").unwrap();
    server.client(IOSCHED, &["set", "c", "groups/same/weight=444"]).unwrap();
    let client = get("clients/1/name");
    assert!(client.contains("db"), "{client}");

    declare(
        "[export.db]\nweight = 700\nclass = \"rt\"\nlevel = 2\nsync = \"all\"\nread_only = true\n\
         [export.new]\n[export.same]\nweight = 400\n",
    );
    hang_up("iosched read the exports again; changes: 3");
    assert_eq!(get("groups/db/weight"), "groups/db/weight=700");
    assert_eq!(
        get("groups/same/weight"),
        "groups/same/weight=444",
        "an export that is unchanged in the file keeps the weight from set"
    );
    assert_eq!(get("clients/1/ioprio"), "clients/1/ioprio=rt/2");
    assert_eq!(get("clients/1/sync"), "clients/1/sync=all");
    // Connected clients stay connected, even if their export no longer exists.
    assert_eq!((read_error(&mut db, 0), read_error(&mut old, 0)), (0, 0));
    let mut write = request(1, 9, 0, 512);
    write.resize(write.len() + 512, 0x5a);
    db.write_all(&write).unwrap();
    let mut reply = [0; 16];
    db.read_exact(&mut reply).unwrap();
    assert_eq!(reply[4..8], [0; 4], "this client connected while the export was writable");
    assert!(connect_to(&here, "old").is_none() && connect_to(&here, "new").is_some());
    assert_eq!(connect_to(&here, "db").unwrap().1 & READ_ONLY, READ_ONLY);

    declare("[export.db]\nweight = 100\n\n[export.new]\nlevel = 9\n");
    hang_up("warning: exports.toml:5: export \"new\": level: 9 is not a valid value");
    std::fs::remove_file(here.join("exports.toml")).unwrap();
    hang_up("exports.toml: cannot read this file: ");
    assert_eq!(get("groups/db/weight"), "groups/db/weight=700");
    assert!(connect_to(&here, "new").is_some());
    assert_eq!(server.stop(), Some(0));

    // If there is no file of exports to read again, SIGHUP ends the server.
    let mut server = Server::serving(&here, &["memory:1M", "--export", "db"]);
    assert!(Command::new("kill").args(["-HUP", &server.child.id().to_string()]).status().unwrap().success());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn io_max_limits_the_cgroup_of_an_export() {
    let here = directory("serve-cap");
    let caps = "none:io.max=slow:rbps=4194304";
    let server = Server::serving(&here, &["memory:6M", "--scheduler", caps, "--export", "fast", "--export", "slow"]);
    // The file is filled with data, because reads of holes do not count for the limit.
    std::fs::write(here.join("in"), vec![5; 6 << 20]).unwrap();
    if server.client("nbdcopy", &["in", "nbd+unix:///fast?socket=s"]).is_some() {
        let began = Instant::now();
        server.client("nbdcopy", &["nbd+unix:///slow?socket=s", "out"]);
        // The limit lets the data of one slice pass immediately.
        assert!(began.elapsed() > Duration::from_millis(1_200), "6 MiB at 4 MiB/s");
        assert!(std::fs::read(here.join("out")).unwrap() == vec![5; 6 << 20]);
    }
    // The limit is an attribute of the group.
    let cap = "groups/slow/io.max";
    assert_eq!(
        server.client(IOSCHED, &["get", "c", cap]).unwrap().trim(),
        format!("{cap}=rbps=4194304 wbps=max riops=max wiops=max")
    );
    let set = server.client(IOSCHED, &["set", "c", &format!("{cap}=rbps=max/wiops=7")]).unwrap();
    assert_eq!(set.trim(), format!("{cap}=rbps=max wbps=max riops=max wiops=7"));
    let wrong = Command::new(IOSCHED).current_dir(&here).args(["set", "c", &format!("{cap}=rbps=0")]).output().unwrap();
    let text = String::from_utf8_lossy(&wrong.stderr);
    assert!(wrong.status.code() == Some(2) && text.contains("write any of rbps=N"), "{text}");
    assert_eq!(server.stop(), Some(0));
    refused(&here, &["memory:1M", "--scheduler", "none:io.max=rbps=5"], 2, "the name of the cgroup is missing");
}

#[test]
fn for_shared_sets_slice_idle_to_0_and_depth_to_8() {
    let here = directory("serve-shared");
    let attributes = |args: &[&str]| {
        let server = Server::serving(&here, &[&["memory:8M"], args].concat());
        let attribute_values = server.client(IOSCHED, &["get", "c"]).unwrap();
        assert_eq!(server.stop(), Some(0));
        attribute_values
    };
    let attribute_values = attributes(&["--for", "shared"]);
    for attribute in ["\niosched/slice_idle=0\n", "device/queue_depth=8\n"] {
        assert!(attribute_values.contains(attribute), "{attribute_values}");
    }
    let attribute_values = attributes(&["--for", "shared", "--depth", "4"]);
    assert!(
        attribute_values.contains("\niosched/slice_idle=0\n") && attribute_values.contains("device/queue_depth=4\n"),
        "{attribute_values}"
    );
    let mut command = Command::new(IOSCHED);
    command.current_dir(&here).args(["serve", "memory:8M", "--for", "shared", "--unix", "told"]).stderr(Stdio::piped());
    let mut server = common::Running(command.spawn().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(server.0.stderr.take().unwrap()), &mut line).unwrap();
    assert_eq!(line, "memory: memory, 8 MiB, cfq:slice_idle=0, depth 8\n");
    drop(server);
    refused(&here, &["memory:8M", "--for", "shared", "--scheduler", "noop"], 2, "cannot be used with");
    refused(&here, &["memory:8M", "--for", "speed"], 2, "shared");
}

#[test]
fn sigterm_flushes_data_and_removes_the_sockets() {
    let here = directory("serve-term");
    image(&here, "disk.img", 1 << 20);
    let server = Server::serving(&here, &["disk.img"]);
    let mut socket = server.connect();
    let mut write = request(1, 9, 4096, 4096);
    write.resize(write.len() + 4096, 0x5a);
    socket.write_all(&write).unwrap();
    let mut reply = [0; 16];
    socket.read_exact(&mut reply).unwrap();
    assert_eq!(reply[4..8], [0; 4]);
    assert_eq!(server.stop(), Some(0));
    assert!(std::fs::read(here.join("disk.img")).unwrap()[4096..8192].iter().all(|&byte| byte == 0x5a));
    assert!(!here.join("s").exists() && !here.join("c").exists(), "the server left a socket");
    assert_eq!(socket.read(&mut reply).unwrap(), 0, "the connection is closed");
}

#[test]
fn only_one_server_uses_a_disk_or_a_socket() {
    let here = directory("serve-twice");
    image(&here, "disk.img", 1 << 20);
    let server = Server::serving(&here, &["disk.img"]);
    refused(&here, &["disk.img", "--unix", "other"], 1, "has locked this file");
    refused(&here, &["memory:1M", "--unix", "s"], 1, "another server listens on this socket");
    assert!(!here.join("other").exists(), "a refused server leaves no socket");
    drop(server);
    // The killed server has left its sockets.
    assert!(here.join("s").exists());
    let next = Server::start(&here, &["disk.img"]);
    assert!(next.ready().contains("s: iosched replaced this socket, because its server has ended"));
    assert_eq!(read_error(&mut next.connect(), 0), 0);
    assert_eq!(next.stop(), Some(0));
}

#[test]
fn wrong_arguments_are_refused_with_the_reason() {
    let here = directory("serve-wrong");
    for (args, expected) in [
        (&["memory:1M", "--export", "db,level=9"][..], "0 (most urgent) to 7"),
        (&["memory:1M", "--export", "db", "--export", "db"], "declared twice"),
        (&["memory:1M", "--exports", "none.toml"], "none.toml"),
        (&["memory:1M", "--scheduler", "what"], "mq-deadline"),
        (&["memory:1M", "--scheduler", "cfq:quantum=x"], "not a whole number"),
        (&["memory:1M", "--tcp", "127.0.0.1:0"], "--tls DIR or --insecure"),
        (
            &["memory:1M", "--tcp", "nowhere", "--insecure"],
            "invalid value 'nowhere' for '--tcp <ADDRESS:PORT>': write ADDRESS:PORT",
        ),
        (&["memory:1M", "--tls", "none"], "none/server-cert.pem"),
        (&["memory:1M", "--depth", "5000"], "must be from 1 to 4096"),
        (&["memory:1M", "--name", "a/b"], "without slashes"),
        (&["memory:5Q"], "K, M, G or T"),
        (&["model:none"], "sata-7200"),
        (&["none.img"], "none.img: No such file"),
        (&["."], "this is neither a file nor a block device"),
    ] {
        refused(&here, args, 2, expected);
    }
    refused(&here, &["memory:1M", "--unix", "none/s"], 2, "none/s: cannot listen on this socket");
    assert_eq!(std::fs::read_dir(&here).unwrap().count(), 0, "a refused server left a file");
}

#[test]
fn server_reports_backing_errors_to_the_client_and_goes_on() {
    let here = directory("serve-eio");
    let server = Server::serving(&here, &["fault:bad=65536+4096:memory:1M"]);
    let mut socket = server.connect();
    for _ in 0..20 {
        assert_eq!(read_error(&mut socket, 65_536), 5);
        assert_eq!(read_error(&mut socket, 0), 0);
    }
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn server_continues_after_its_stderr_is_closed() {
    let here = directory("serve-deaf");
    let server = Server::serving(&here, &["memory:1M"]);
    server.close_messages();
    let mut client = server.connect();
    for _ in 0..20 {
        // The server reports each wrong message. The test closes the pipe of reports after the
        // first one.
        let mut garbage = UnixStream::connect(here.join("s")).unwrap();
        garbage.read_exact(&mut [0; 18]).unwrap();
        garbage.write_all(&[0x5a; 5000]).unwrap();
        let _ = garbage.read_to_end(&mut Vec::new());
        thread::sleep(Duration::from_millis(5));
        assert_eq!(read_error(&mut client, 0), 0);
    }
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn unread_replies_use_limited_memory_and_block_no_other_client() {
    let here = directory("serve-unsent");
    let server = Server::serving(&here, &["memory:64M", "--budget-mib", "2"]);
    let resident_kib = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().to_owned();
        line.trim_end_matches("kB").trim().parse::<u64>().unwrap()
    };
    let before = resident_kib();
    let mut greedy: Vec<UnixStream> = (0..16).map(|_| server.connect()).collect();
    for (number, socket) in greedy.iter_mut().enumerate() {
        for at in 0..64 {
            socket.write_all(&request(0, at, (number as u64) << 20, 1 << 20)).unwrap();
        }
    }
    // Replies that these clients do not read do not block the replies to another client.
    let mut other = server.connect();
    for _ in 0..100 {
        assert_eq!(read_error(&mut other, 0), 0);
    }
    let taken = resident_kib().saturating_sub(before);
    assert!(taken < (16 + 2 + 20) << 10, "{taken} KiB for 2 MiB and a read of 1 MiB of each of 16 clients");
    // These clients get all replies when they read them.
    for socket in &mut greedy {
        let mut answers = vec![0; 64 * ((1 << 20) + 16)];
        socket.read_exact(&mut answers).unwrap();
    }
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn misbehaving_clients_do_not_disturb_others() {
    let here = directory("serve-bad-clients");
    let server = Server::serving(&here, &["memory:16M"]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut kept = Vec::new();
            for round in 0_u64.. {
                if done.load(Ordering::SeqCst) {
                    break;
                }
                // A client that disappears in the middle of a write.
                let mut socket = server.connect();
                socket.write_all(&request(1, round, 8 << 20, 65_536)).unwrap();
                socket.write_all(&vec![1; 30_000]).unwrap();
                drop(socket);
                // Garbage before and after the handshake.
                let _ = UnixStream::connect(here.join("s")).unwrap().write_all(&[0x5a; 5000]);
                let _ = server.connect().write_all(&[0x5a; 5000]);
                if kept.len() < 8 {
                    // One client stalls. Another client sends requests without reading replies.
                    let mut stalled = server.connect();
                    stalled.write_all(&request(1, 1, 8 << 20, 4096)[..20]).unwrap();
                    let mut greedy = server.connect();
                    greedy.set_nonblocking(true).unwrap();
                    while greedy.write_all(&request(0, 1, 8 << 20, 1 << 20)).is_ok() {}
                    kept.extend([stalled, greedy]);
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        let verified =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.fio_verifies("good", 16, "8m", 3)));
        done.store(true, Ordering::SeqCst);
        verified.unwrap();
    });
    assert_eq!(server.stop(), Some(0));
}
