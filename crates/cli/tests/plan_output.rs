//! Tests of `iosched plan PLAN.json --write`: files, notes, errors, and the commands of iosched
//! that read the files.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use iosched_testing::command::answer;

/// Writes a plan and returns its path.
fn plan(here: &Path, setting: &str, units: &str) -> String {
    let path = here.join("plan.json");
    let device = r#""version":"0.1.0","device":"/dev/sdzz","profile":"sata-ssd""#;
    fs::write(&path, format!("{{{device},\"setting\":{setting},\"units\":[{units}]}}")).unwrap();
    path.display().to_string()
}

fn unit(name: &str, target: &str) -> String {
    format!(r#"{{"name":"{name}","target":"{target}","cgroup":"{name}","goals":[]}}"#)
}

const BFQ: &str = r#"{"name":"bfq","tunables":[["low_latency","0"]],"attributes":[["io.bfq.weight","a:800+b:100"],["io.max","b:wbps=1000000"]]}"#;

fn iosched(arguments: &[&str]) -> (i32, String, String) {
    answer(Command::new(env!("CARGO_BIN_EXE_iosched")).args(arguments))
}

#[test]
fn plan_files_are_printed_or_written_to_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let path = plan(here, BFQ, &[unit("a", "db.service"), unit("b", "container:web")].join(","));
    let (code, out, err) = iosched(&["plan", &path, "--write", "systemd"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("==> /etc/modules-load.d/iosched-sdzz.conf <==\n"), "{out}");
    assert!(out.contains("\n==> /etc/systemd/system/db.service.d/50-iosched.conf <==\n"), "{out}");
    assert!(out.contains("\nIOWeight=7800\n") && out.contains("ATTR{queue/iosched/low_latency}=\"0\""), "{out}");
    assert!(
        err.contains("note: b: container:web is not in these files. Write this unit with --write containers."),
        "{err}"
    );
    let to = format!("containers={}", here.join("web").display());
    let (code, out, err) = iosched(&["plan", &path, "--write", &to]);
    assert_eq!((code, out.lines().count()), (0, 2), "{out}{err}");
    assert!(fs::read_to_string(here.join("web/web.options")).unwrap().contains("--blkio-weight=100"), "{err}");
}

#[test]
fn errors_of_wrong_formats_and_plans_name_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let path = plan(directory.path(), BFQ, &[unit("a", "db.service"), unit("b", "container:web")].join(","));
    for (arguments, code, words) in [
        (&["plan", &path][..], 2, "missing field `intents`"),
        (&["plan", &path, "--write", "sysv"], 2, "available: systemd, hwdb, containers"),
        (&["plan", &path, "--write", "qemu"], 2, "this plan needs the output formats: containers, systemd"),
        (&["plan", &path, "--write", "qemu="], 2, "the directory is missing"),
        (&["plan", &path, "--persist=containers"], 1, "--write containers=DIR"),
        (&["plan", &path, "--apply"], 2, "sdzz"),
        (&["plan", "Cargo.toml", "--apply"], 2, "Cargo.toml:1:"),
        (&["plan", "/nonexistent.json", "--apply"], 2, "No such file"),
    ] {
        let (found, out, err) = iosched(arguments);
        assert_eq!((found, &*out), (code, ""), "{arguments:?}: {err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
}

#[test]
fn a_workload_that_cannot_be_planned_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("i.toml");
    for (device, workload, words) in [
        (
            "\"sata-ssd\"",
            "bonnie++ -d /data -s 1g",
            "cannot simulate this program together with other units; record a trace",
        ),
        ("\"sata-ssd\"", "rsync -a /home /backup", "iosched record DISK"),
        ("\"sata-ssd\"", "backup-tool --all", "record a trace of the program"),
        ("\"sata-ssd\"", "observed", "is a profile and not a device"),
        ("[\"sata-ssd\", \"nvme\"]", "none.fio", "none.fio"),
    ] {
        let text = format!(
            "device = {device}\n[unit.db]\nmatch = \"db.slice\"\nworkload = \"{workload}\"\ngoal = \"iops >= 5\"\n"
        );
        fs::write(&file, text).unwrap();
        let (code, out, err) = iosched(&["plan", &file.display().to_string()]);
        assert_eq!((code, &*out), (2, ""), "{workload}: {err}");
        assert!(err.contains("i.toml:4: unit.db") || err.contains("i.toml:2: unit.db"), "{workload}: {err}");
        assert!(err.contains(words), "{workload}: {err}");
    }
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/plan/intents.toml");
    let (code, _, err) = iosched(&["plan", example, "--observe-for", "5"]);
    assert!(code == 2 && err.contains("has workload = \"observed\""), "{err}");
}

#[test]
fn each_device_of_a_plan_has_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let units = [unit("a", "db.service"), unit("b", "backup.slice")].join(",");
    let path = plan(here, BFQ, &units);
    let one = fs::read_to_string(&path).unwrap();
    let other = one.replace("sdzz", "sdyy").replace("a:800", "a:400");
    fs::write(&path, format!("{{\"devices\":[{one},{other}]}}")).unwrap();
    let (code, out, err) = iosched(&["plan", &path, "--write", "systemd"]);
    assert_eq!(code, 0, "{err}");
    let parts: Vec<&str> = out.split("# sdyy\n").collect();
    assert!(parts.len() == 2 && parts[0].starts_with("# sdzz\n"), "{out}");
    assert!(parts[0].contains("IOWeight=7800") && parts[1].contains("IOWeight=3400"), "{out}");
    let (code, out, err) = iosched(&["plan", &path, "--write", &format!("systemd={}", here.join("to").display())]);
    assert_eq!(code, 0, "{err}");
    for (disk, weight) in [("sdzz", "7800"), ("sdyy", "3400")] {
        let file = here.join("to").join(disk).join("etc/systemd/system/db.service.d/50-iosched.conf");
        assert!(fs::read_to_string(file).unwrap().contains(&format!("IOWeight={weight}")), "{out}");
    }
    let (code, _, err) = iosched(&["plan", &path, "--persist"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("db.service.d/50-iosched.conf: sdzz and sdyy need different contents"), "{err}");
    let (code, _, err) = iosched(&["plan", &path, "--check", "--metrics", "127.0.0.1:0"]);
    assert!(code == 2 && err.contains("has several devices"), "{err}");
}

#[test]
fn a_server_accepts_the_exports_of_a_plan() {
    let io_cost = r#"{"name":"none","attributes":[["io.cost.qos","enable=1/min=90/max=90"],["io.weight","a:800+b:100"],["wbt_lat_usec","2000"]]}"#;
    let classes = r#"{"name":"mq-deadline","attributes":[["io.prio.class","b:idle"],["io.latency","a:target=2000"]]}"#;
    for setting in [BFQ, io_cost, classes] {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let path = plan(here, setting, &[unit("a", "export:alpha"), unit("b", "export:beta")].join(","));
        let (code, _, err) = iosched(&["plan", &path, "--write", &format!("exports={}", here.display())]);
        assert_eq!(code, 0, "{err}");
        let text = fs::read_to_string(here.join("exports.toml")).unwrap();
        let command = text.lines().find_map(|line| line.strip_prefix("# Use: ")).unwrap();
        let command = command.replace("DISK.sock", "disk.sock").replace("DISK", "memory:16M");
        let command = command.replace("iosched", env!("CARGO_BIN_EXE_iosched"));
        let mut server = Command::new("sh")
            .args(["-c", &format!("exec {command} --control control.sock")])
            .current_dir(here)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while !here.join("disk.sock").exists() && began.elapsed() < Duration::from_secs(20) {
            if server.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let runs = server.try_wait().unwrap().is_none();
        let _ = server.kill();
        let ended = server.wait_with_output().unwrap();
        assert!(runs, "{command}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}
