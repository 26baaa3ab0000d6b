//! Tests of `iosched watch` on loop devices, as root.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{IOSCHED, Loop, PATIENCE, available, directory, has_program, image, interrupt, is_root, run};
use iosched_testing::prometheus::{Dashboard, Prometheus};
use serde_json::{Value, json};

const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");

/// Mounts tracefs if it is not mounted. The mount stays, because other tests may use it.
fn mount_tracefs() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if !Path::new("/sys/kernel/tracing/instances").is_dir() {
            let _ = Command::new("mount").args(["-t", "tracefs", "tracefs", "/sys/kernel/tracing"]).status();
        }
    });
}

/// Returns a loop device, and its name.
#[track_caller]
fn disk(name: &str) -> Option<(PathBuf, Loop, String)> {
    if !is_root() {
        return None;
    }
    mount_tracefs();
    if !available(Path::new("/sys/kernel/tracing/instances").is_dir(), "tracefs") {
        return None;
    }
    let here = directory(name);
    let disk = Loop::new(&image(&here, "image", 16 << 20))?;
    let name = disk.device.file_name().unwrap().to_str().unwrap().to_owned();
    fs::write(format!("/sys/block/{name}/queue/scheduler"), "none").unwrap();
    Some((here, disk, name))
}

/// A process that reads and writes a disk until it is dropped.
struct Load(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Load {
    fn on(device: &Path) -> Self {
        let (stop, device) = (Arc::new(AtomicBool::new(false)), device.display().to_string());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let script = format!(
                "while :; do dd if={device} of=/dev/null iflag=direct bs=4k count=500; \
                 dd if=/dev/zero of={device} oflag=direct bs=64k count=50; sleep 0.01; done 2>/dev/null"
            );
            let mut child = Command::new("sh").args(["-c", &script]).spawn().unwrap();
            while !stopped.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(20));
            }
            child.kill().unwrap();
            child.wait().unwrap();
        });
        Self(stop, Some(thread))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        let _ = self.1.take().map(std::thread::JoinHandle::join);
    }
}

/// A running `iosched watch` that serves metrics.
struct Served {
    child: Child,
    at: String,
}

impl Served {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(IOSCHED);
        command.args(args).args(["--metrics", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.map_while(Result::ok).find(|line| line.contains("metrics: http://"));
        let at = line.unwrap().split("http://").nth(1).unwrap().trim_end_matches("/metrics").to_owned();
        Self { child, at }
    }

    fn page(&self) -> String {
        get(&self.at, "/metrics")
    }

    /// Returns the page of metrics as soon as it contains a metric.
    fn page_with(&self, metric: &str) -> String {
        let began = Instant::now();
        loop {
            let page = self.page();
            if page.lines().any(|line| line.starts_with(metric)) {
                return page;
            }
            assert!(began.elapsed() < PATIENCE, "{metric} is not in\n{page}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(at: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Returns the number of trace instances of a process.
fn instances(pid: u32) -> usize {
    let names = fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&format!("iosched-{pid}-"))).count()
}

#[test]
fn latencies_and_rates_of_a_disk_are_printed() {
    let Some((_here, disk, name)) = disk("watch-json") else { return };
    let _load = Load::on(&disk.device);
    let (code, out, err) = run(&["watch", &name, "-i", "1", "-n", "2", "--json", "--every-request"]);
    assert_eq!(code, 0, "{err}");
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["disks"][0]["disk"], name);
    let of = |operation: &str| {
        let series = last["series"].as_array().unwrap().iter().filter(|series| series["operation"] == operation);
        series.map(|series| series["ios_per_s"].as_f64().unwrap()).sum::<f64>()
    };
    let truth = |field: &str| last["disks"][0][field].as_f64().unwrap();
    for (operation, field) in [("read", "reads_per_s"), ("write", "writes_per_s")] {
        let (found, truth) = (of(operation), truth(field));
        assert!(truth > 10.0 && (found / truth - 1.0).abs() < 0.1, "{operation}: {found} of {truth}: {out}");
    }
    let (_, table, _) = run(&["watch", &name, "-i", "0.5", "-n", "1"]);
    assert!(table.starts_with(&format!("{name}: none, busy ")) && table.contains("p99 ms"), "{table}");
}

#[test]
fn trace_instance_is_removed_after_a_signal_or_kill() {
    let Some((_here, _disk, name)) = disk("watch-instance") else { return };
    let mut interrupted = Served::start(&["watch", &name, "-i", "0.5"]);
    let pid = interrupted.child.id();
    assert_eq!(instances(pid), 1);
    interrupt(&interrupted.child);
    assert!(interrupted.child.wait().unwrap().success());
    assert_eq!(instances(pid), 0);
    let mut killed = Served::start(&["watch", &name, "-i", "0.5"]);
    let pid = killed.child.id();
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert_eq!(instances(pid), 1);
    assert_eq!(run(&["watch", &name, "-i", "0.1", "-n", "1"]).0, 0);
    assert_eq!(instances(pid), 0);
}

#[test]
fn without_tracefs_the_load_is_printed_with_a_reason() {
    let Some((_here, disk, name)) = disk("watch-without") else { return };
    let _load = Load::on(&disk.device);
    let script = format!("umount /sys/kernel/tracing && exec {IOSCHED} watch {name} -i 0.5 -n 1");
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output();
    if !available(output.is_ok(), "unshare") {
        return;
    }
    let output = output.unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(err.contains("watch cannot observe latencies: tracefs is not mounted"), "{err}");
    assert!(out.starts_with(&format!("{name}: none, busy ")) && !out.contains("p99"), "{out}");
}

#[test]
fn root_without_capabilities_can_observe() {
    let Some((_here, disk, name)) = disk("watch-capabilities") else { return };
    if !has_program("setpriv") {
        return;
    }
    let _load = Load::on(&disk.device);
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", IOSCHED, "watch", &name]);
    let output = command.args(["-i", "1", "-n", "1"]).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(out.contains("p99 ms"), "{out}{err}");
}

#[test]
fn wrong_disks_and_plans_are_refused() {
    let (code, _, err) = run(&["watch", "no-such-disk", "-n", "1"]);
    assert!(code == 2 && err.contains("there is no such disk"), "{err}");
    let here = directory("watch-wrong");
    let file = here.join("plan.json");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        run(&["plan", file.to_str().unwrap(), "--check"])
    };
    let (code, _, err) = check("{}");
    assert!(code == 2 && err.contains("missing field") && err.contains("iosched plan --output"), "{err}");
    let (code, _, err) = check(&plan(None, "none", &[]).to_string());
    assert!(code == 2 && err.contains("modelled device ssd-sata"), "{err}");
    let (code, _, err) = run(&["plan", here.join("none.json").to_str().unwrap(), "--check"]);
    assert!(code == 2 && err.contains("none.json: No such file"), "{code} {err}");
}

/// Returns a plan with one unit, which contains all processes named dd.
fn plan(device: Option<&Path>, setting: &str, goals: &[&str]) -> Value {
    let goal = |text: &&str| {
        json!({
            "wanted": {"goal": text, "hard": true},
            "predicted": {"value": 1.0, "from": 0.5, "to": 2.0},
            "outcome": "met",
        })
    };
    let unit = json!({
        "name": "dd", "target": "process:dd", "cgroup": "dd", "goals": goals.iter().map(goal).collect::<Vec<_>>()
    });
    json!({"version": "0.1.0", "device": device, "profile": "ssd-sata", "setting": {"name": setting}, "units": [unit]})
}

#[test]
fn plan_check_compares_setting_and_goals() {
    let Some((here, disk, name)) = disk("watch-plan") else { return };
    let setting = iosched::Setting::parse("mq-deadline:read_expire=400", &iosched::Registry::linux()).unwrap();
    let setting = serde_json::to_value(&setting).unwrap();
    let mut plan = plan(Some(&disk.device), "none", &["mean(read) < 10 s", "iops >= 5", "limit 1 IOPS"]);
    plan["setting"] = setting;
    let file = here.join("plan.json");
    fs::write(&file, plan.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let _load = Load::on(&disk.device);
    let check = || run(&["plan", file, "--check", "--for", "2"]);
    let (code, out, err) = check();
    assert!(code == 1 && out.starts_with("The plan does not hold on /dev/loop"), "{out}{err}");
    assert!(out.contains("differs from the plan: scheduler is none, but the plan has mq-deadline"), "{out}");
    assert!(out.contains("dd: mean(read) <= 10000 ms: met") && out.contains("dd: iops >= 5 IOPS: met"), "{out}");
    assert!(out.contains("dd: limit 1 IOPS: MISSED"), "{out}");
    if !available(fs::write(format!("/sys/block/{name}/queue/scheduler"), "mq-deadline").is_ok(), "mq-deadline") {
        return;
    }
    fs::write(format!("/sys/block/{name}/queue/iosched/read_expire"), "400").unwrap();
    plan["units"][0]["goals"].as_array_mut().unwrap().pop();
    fs::write(file, plan.to_string()).unwrap();
    let (code, out, err) = check();
    assert!(code == 0 && out.starts_with("The plan holds on /dev/loop"), "{out}{err}");
    let served = Served::start(&["plan", file, "--check", "--for", "0.5"]);
    let page = served.page_with("iosched_goal_met");
    assert!(page.contains("iosched_goal_met{unit=\"dd\",goal=\"iops >= 5 IOPS\",kind=\"hard\"} 1"), "{page}");
    drop(served);
    fs::write(format!("/sys/block/{name}/queue/scheduler"), "none").unwrap();
}

#[test]
fn alerts_and_panels_use_only_metrics_that_watch_has() {
    let Some((here, disk, name)) = disk("watch-alerts") else { return };
    let file = here.join("plan.json");
    fs::write(&file, plan(Some(&disk.device), "none", &["iops >= 1"]).to_string()).unwrap();
    let _load = Load::on(&disk.device);
    let (disks, goals) = (
        Served::start(&["watch", &name, "-i", "0.5"]),
        Served::start(&["plan", file.to_str().unwrap(), "--check", "--for", "0.5"]),
    );
    let pages = disks.page_with("iosched_disk_operations_total") + &goals.page_with("iosched_goal_met");
    let known: Vec<&str> = pages.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let rules = fs::read_to_string(format!("{PACKAGING}/prometheus/iosched-watch.rules.yml")).unwrap();
    let panels: String = dashboard().panels.into_iter().map(|(_, query)| query + "\n").collect();
    let text = rules + &panels;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let names = text.split(|c: char| !is_part(c)).filter(|word| word.starts_with("iosched_"));
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        assert!(known.contains(&family), "{name} is used, but the metrics are {known:?}");
    }
}

#[test]
fn alerts_pass_the_tests_of_promtool() {
    if !has_program("promtool") {
        return;
    }
    let mut command = Command::new("promtool");
    command.args(["test", "rules", "iosched-watch.rules.test.yml"]).current_dir(format!("{PACKAGING}/prometheus"));
    let output = command.output().unwrap();
    let [printed, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{printed}{errors}");
}

/// Returns the dashboard for kernel disks.
fn dashboard() -> Dashboard {
    Dashboard::read(&fs::read_to_string(format!("{PACKAGING}/grafana/iosched-kernel-disks.json")).unwrap()).unwrap()
}

#[test]
fn every_panel_of_the_dashboard_shows_a_disk_with_load() {
    if !has_program("prometheus") {
        return;
    }
    let Some((here, disk, name)) = disk("watch-dashboard") else { return };
    let _load = Load::on(&disk.device);
    let served = Served::start(&["watch", &name, "-i", "0.5"]);
    let prometheus = Prometheus::start(&here, &[("disks", served.at.parse().unwrap())]).unwrap();
    let Dashboard { panels, variables } = dashboard();
    assert!(panels.len() > 10 && variables.len() > 3, "{panels:?} {variables:?}");
    for (title, query) in panels {
        prometheus.query_of_a_panel(&query).unwrap_or_else(|error| panic!("{title}: {error}"));
    }
    variables.iter().for_each(|variable| drop(prometheus.values_of_a_variable(variable).unwrap()));
}
