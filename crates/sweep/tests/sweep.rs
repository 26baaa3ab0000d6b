//! Tests of sweeps: the dataset does not depend on the order or place of execution, and an invalid
//! workload does not stop the sweep.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use iosched_sweep::dataset::{Directory, FAILED, RUNS, VERDICTS};
use iosched_sweep::{Event, Outcome, Plan, Summary, Sweeping, Unit, Units, estimate, find, run};
use tempfile::TempDir;

/// A plan for several different traces, in a temporary directory.
struct Fleet {
    place: TempDir,
}

impl Fleet {
    fn new(volumes: u64) -> Self {
        let place = TempDir::new().unwrap();
        for number in 0..volumes {
            fs::write(place.path().join(format!("vol{number}.csv")), trace(number)).unwrap();
        }
        Self { place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn units(&self, plan: &str) -> Units {
        let plan = Plan::parse("plan.toml", plan, self.place.path()).unwrap();
        plan.units(|pattern| find(pattern, plan.directory()))
    }
}

const PLAN: &str = r#"
workloads = "vol*.csv"
devices = ["sata-7200", "sata-ssd"]
schedulers = ["none", "mq-deadline"]
baseline = "mq-deadline"
runs = 2
"#;

/// Returns a trace of reads and writes at random places.
fn trace(number: u64) -> String {
    let mut text = String::from("time_us,op,offset_bytes,length_bytes,pid\n");
    for line in 0..60 {
        let place = (line * 7_919 + number * 104_729) % 100_000 * 4_096;
        let op = if (line + number).is_multiple_of(3) { "write" } else { "read" };
        text.push_str(&format!("{},{op},{place},4096,{}\n", line * 900, 1 + line % 3));
    }
    text
}

/// Returns every file of a dataset, by its path.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, directory: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, all);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                all.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(root, root, &mut all);
    all
}

fn sweep(units: &Units, root: &Path, jobs: usize) -> Outcome {
    run(units, &Directory::create(root).unwrap(), jobs, &Sweeping::default(), |_, _, _| Ok(())).unwrap()
}

#[test]
fn dataset_is_independent_of_the_number_of_jobs() {
    let fleet = Fleet::new(4);
    let units = fleet.units(PLAN);
    assert_eq!(units.units.len(), 8);
    let outcome = sweep(&units, &fleet.path("one"), 1);
    assert_eq!((outcome.finished, outcome.before, outcome.failed.len()), (8, 0, 0));
    sweep(&units, &fleet.path("two"), 3);
    let one = files(&fleet.path("one"));
    assert_eq!(one.len(), 2 * 8 + 1);
    assert_eq!(one, files(&fleet.path("two")));
    // The second sweep makes no unit and changes no file.
    let again = sweep(&units, &fleet.path("one"), 2);
    assert_eq!((again.finished, again.before), (0, 8));
    assert_eq!(one, files(&fleet.path("one")));
}

#[test]
fn interrupted_sweep_continues_to_the_same_dataset() {
    let fleet = Fleet::new(5);
    let units = fleet.units(PLAN);
    sweep(&units, &fleet.path("whole"), 2);
    let root = fleet.path("parts");
    let mut stops = 0;
    loop {
        let sweeping = Sweeping::default();
        let directory = Directory::create(&root).unwrap();
        let outcome = run(&units, &directory, 2, &sweeping, |event, _, _| {
            if matches!(event, Event::Done(_)) {
                // Alternates between two kinds of stops: running units finish, or they are ended.
                (0..1 + stops % 2).for_each(|_| sweeping.interrupt());
            }
            Ok(())
        })
        .unwrap();
        if !outcome.interrupted {
            break;
        }
        stops += 1;
    }
    assert!(stops >= 3, "{stops}");
    assert_eq!(files(&fleet.path("whole")), files(&root));
}

#[test]
fn unit_ids_depend_on_content_and_plan() {
    let fleet = Fleet::new(2);
    let ids = |units: &Units| units.units.iter().map(|unit| unit.id().to_owned()).collect::<Vec<_>>();
    let first = ids(&fleet.units(PLAN));
    assert_eq!(first, ids(&fleet.units(PLAN)));
    // The same content at another path gives the same ids.
    let copy = Fleet::new(2);
    assert_eq!(first, ids(&copy.units(PLAN)));
    for other in ["runs = 3", "seeds = 2", "warm_up_s = 0.01", "replay = \"open\"", "equal_within_percent = 1.0"] {
        let plan = PLAN.replace("runs = 2\n", "") + if other.starts_with("runs") { "" } else { "runs = 2\n" } + other;
        assert!(ids(&fleet.units(&plan)).iter().all(|id| !first.contains(id)), "{other}");
    }
    let longer = fs::read_to_string(fleet.path("vol0.csv")).unwrap() + "99999,read,0,4096,1\n";
    fs::write(fleet.path("vol0.csv"), longer).unwrap();
    let changed = ids(&fleet.units(PLAN));
    assert_eq!(changed.iter().filter(|id| first.contains(id)).count(), 2, "vol1 on two devices");
    // Conversion to JSON and back does not change a unit.
    let unit = &fleet.units(PLAN).units[0];
    assert_eq!(&Unit::from_json(&unit.to_json().unwrap()).unwrap(), unit);
    assert!(Unit::from_json("{}").is_err());
}

#[test]
fn invalid_workloads_are_listed_and_do_not_stop_the_sweep() {
    let fleet = Fleet::new(3);
    let good = "vol1.csv";
    fs::write(fleet.path("vol0.csv"), "time_us,op,offset_bytes,length_bytes\n1,read,0,4096\n2,reed,0,4096\n").unwrap();
    fs::write(fleet.path("vol2.csv"), "not a trace at all").unwrap();
    let plan = PLAN.replace("\"vol*.csv\"", "[\"vol*.csv\", \"absent.csv\", \"none/*.csv\"]");
    let units = fleet.units(&plan);
    assert_eq!(units.refused.len(), 2);
    let root = fleet.path("out");
    let outcome = sweep(&units, &root, 2);
    assert_eq!(outcome.finished, 2);
    let failed: Vec<(&str, &str)> =
        outcome.failed.iter().map(|failure| (failure.workload.as_str(), failure.problem.as_str())).collect();
    assert_eq!(failed.len(), 2 * 2 + 2, "{failed:?}");
    assert!(failed.iter().any(|(name, problem)| *name == "vol0.csv" && problem.contains("line 3")), "{failed:?}");
    assert!(
        failed.iter().any(|(name, problem)| *name == "absent.csv" && problem.contains("no such file")),
        "{failed:?}"
    );
    let listed = fs::read_to_string(root.join(FAILED)).unwrap();
    assert!(listed.contains("vol2.csv") && !listed.contains(good), "{listed}");
    // After the traces are corrected, the sweep makes their units.
    for number in [0, 2] {
        fs::write(fleet.path(&format!("vol{number}.csv")), trace(number)).unwrap();
    }
    let outcome = sweep(&fleet.units(PLAN), &root, 2);
    assert_eq!((outcome.finished, outcome.before, outcome.failed.len()), (4, 2, 0));
    assert_eq!(fs::read_to_string(root.join(FAILED)).unwrap(), "[]\n");
}

#[test]
fn no_fairness_changes_the_unit_id() {
    let fleet = Fleet::new(1);
    let unit = |plan: &str| fleet.units(plan).units[0].clone();
    let (usual, without) = (unit(PLAN), unit(&format!("no_fairness = true\n{PLAN}")));
    assert!(!usual.to_json().unwrap().contains("no_fairness"), "units of earlier plans keep their names");
    assert!(without.to_json().unwrap().contains("\"no_fairness\":true") && without.id() != usual.id());
}

#[test]
fn dataset_rows_equal_the_runs_of_a_comparison() {
    let fleet = Fleet::new(1);
    let units = fleet.units(PLAN);
    let root = fleet.path("out");
    sweep(&units, &root, 1);
    let directory = Directory::at(&root);
    let (runs, verdicts) = (directory.table(RUNS).unwrap(), directory.table(VERDICTS).unwrap());
    let request = iosched_lab::request::ComparisonRequest {
        workload: Some(fleet.path("vol0.csv")),
        schedulers: vec!["none".to_owned(), "mq-deadline".to_owned()],
        baseline: Some("mq-deadline".to_owned()),
        runs: 2,
        ..iosched_lab::request::ComparisonRequest::default()
    };
    let control = iosched_lab::Control::new(1);
    let finished = iosched_lab::execute(&request.experiment().unwrap(), &control, |_| Ok(())).unwrap();
    for record in &finished.records.runs {
        let label = &finished.records.header.settings[record.setting].label;
        for &figure in iosched_lab::Figure::ALL {
            let Some(expected) = figure.of(&record.result) else { continue };
            let row = (0..runs.rows()).find(|&row| {
                runs.text("device").unwrap()[row].as_deref() == Some("sata-7200")
                    && runs.text("scheduler").unwrap()[row].as_ref() == Some(label)
                    && runs.text("metric").unwrap()[row].as_deref() == Some(figure.id())
                    && runs.whole("run").unwrap()[row] == Some(record.run.into())
            });
            let row = row.unwrap_or_else(|| panic!("{label}: {}", figure.id()));
            assert_eq!(runs.number("value").unwrap()[row], Some(expected), "{label}: {}", figure.id());
            assert_eq!(runs.whole("run_seed").unwrap()[row], Some(record.seed));
        }
    }
    assert!(verdicts.text("verdict").unwrap().iter().any(Option::is_some));
    let summary = Summary::of(&runs, &verdicts, "sync_mean").unwrap();
    assert_eq!(summary.volumes.len(), 2);
    assert!(summary.html().contains("sync mean of 2 volumes"));
    let wrong = Summary::of(&runs, &verdicts, "sync_men").unwrap_err().to_string();
    assert!(wrong.contains("available: ") && wrong.contains("sync_mean"), "{wrong}");
    let neither = Summary::of(&runs, &verdicts, "utilisation").unwrap_err().to_string();
    assert!(neither.contains("a high value is neither good nor bad"), "{neither}");
}

#[test]
fn files_of_several_cpus_are_one_workload() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/samples");
    let named = find("pgbench.blktrace", &samples).unwrap();
    let matched = find("*.blktrace.*.zst", &samples).unwrap();
    assert_eq!((named.len(), matched.len()), (1, 2), "{matched:?}");
    assert_eq!((named[0].bytes, &named[0].identity), (matched[0].bytes, &matched[0].identity));
    assert_ne!(matched[0].identity, matched[1].identity);
}

#[test]
fn estimate_has_units_runs_and_bytes() {
    let fleet = Fleet::new(6);
    let units = fleet.units(PLAN);
    let estimate = estimate(&units.units, |unit| unit.open(None));
    assert_eq!((estimate.units, estimate.runs, estimate.unreadable), (12, 12 * 4, 0));
    assert!(estimate.core_s.is_some_and(|core_s| core_s > 0.0));
    assert_eq!(estimate.bytes, (0..6).map(|number| trace(number).len() as u64).sum::<u64>());
    assert!(estimate.memory_bytes > 0);
}

#[test]
fn cross_values_override_those_of_the_plan() {
    let fleet = Fleet::new(3);
    let plan = r#"
        schedulers = ["none", "bfq:slice_idle=0..8/8"]
        runs = 2
        [[cross]]
        workloads = "vol0.csv"
        devices = "sata-7200"
        seeds = "1..3"
        [[cross]]
        workloads = [{ path = "vol[12].csv", format = "csv" }, { command = "dd if=/dev/zero of=/f bs=1M count=4" }]
        devices = ["sata-ssd", "nvme"]
        schedulers = ["kyber", "none"]
        baseline = "mq-deadline"
    "#;
    let units = fleet.units(plan);
    let found: Vec<(String, String, u64, u64)> = units
        .units
        .iter()
        .map(|unit| (unit.workload().to_owned(), unit.device().to_owned(), unit.seed(), unit.runs()))
        .collect();
    assert_eq!(found.len(), 3 + 3 * 2, "{found:?}");
    assert_eq!(found[2], ("vol0.csv".to_owned(), "sata-7200".to_owned(), 3, 6));
    assert_eq!(found[3], ("vol1.csv".to_owned(), "sata-ssd".to_owned(), 1, 6), "the baseline adds a setting");
    let outcome = sweep(&units, &fleet.path("out"), 2);
    assert_eq!(outcome.failed, []);
}

#[test]
fn settings_are_compared_under_each_kernel_of_the_plan() {
    let fleet = Fleet::new(1);
    let plan = |schedulers: &str, more: &str| {
        let units = fleet.units(&format!(
            "workloads = \"vol*.csv\"\ndevices = \"sata-7200\"\nschedulers = {schedulers}\nruns = 2\n{more}"
        ));
        let outcome = sweep(&units, &fleet.path(&units.units[0].id()[..8]), 1);
        assert_eq!(outcome.failed, []);
        let json: serde_json::Value = serde_json::from_str(&units.units[0].to_json().unwrap()).unwrap();
        let question = &json["question"];
        (question["schedulers"].clone(), question["baseline"].clone())
    };
    let (settings, baseline) = plan("\"mq-deadline\"", "kernels = [\"6.1\", \"rhel10\"]");
    assert_eq!(settings, serde_json::json!(["mq-deadline @ 6.1", "mq-deadline @ 6.12.0"]));
    assert_eq!(baseline, "mq-deadline @ 6.1");
    let (settings, baseline) = plan("[\"cfq\", \"none @ 5.4\", \"none\"]", "kernels = \"6.1\"\nbaseline = \"none\"");
    assert_eq!(settings, serde_json::json!(["cfq", "none @ 5.4", "none @ 6.1"]));
    assert_eq!(baseline, "none @ 6.1");
    let (settings, _) = plan("[\"none\", \"bfq\"]", "kernels = []");
    assert_eq!(settings, serde_json::json!(["none", "bfq"]), "the settings have no kernel version");
}

#[test]
fn errors_of_invalid_plans_name_the_key_or_value() {
    let wrong = |text: &str| {
        let whole = "workloads = [\"x.csv\"]\ndevices = [\"sata-7200\"]\nschedulers = [\"none\", \"bfq\"]\n";
        let key = text.split('=').next().unwrap().trim();
        let kept: Vec<&str> = whole.lines().filter(|line| !line.starts_with(key)).collect();
        let plan = format!("{text}\n{}", kept.join("\n"));
        Plan::parse("p.toml", &plan, Path::new("")).unwrap_err().to_string()
    };
    for (text, expected) in [
        ("workloads = []", "p.toml: the plan has no workloads"),
        ("devices = []", "the plan has no devices"),
        ("devices = \"sata-720\"", "sata-7200"),
        ("schedulers = \"none\"", "fewer than two settings"),
        ("schedulers = [\"none\", \"bqf\"]", "did you mean bfq"),
        ("schedulers = [\"none\", \"none\"]", "the plan gives a setting twice"),
        ("schedulers = [\"none\", \"bfq:slice_idel=1\"]", "did you mean slice_idle"),
        ("baseline = \"cqf\"", "baseline cqf"),
        ("runs = 0", "runs is 0, but it must be from 1 to"),
        ("seeds = \"5..1\"", "is not a range"),
        ("seeds = []", "seeds: this list is empty; name at least one seed"),
        ("seeds = 1.5", "seeds must be a whole number"),
        ("replay = \"fast\"", "must be \"closed\" or \"open\""),
        ("speed = -1.0", "speed is -1, but it must be from 0.000001 to 1000000"),
        ("run_for_s = 1e-12", "run_for_s is 0.000000000001, but it must be from 0.000000001 to 1000000"),
        ("run_for_s = 0.0", "run_for_s is 0, but it must be from 0.000000001 to 1000000"),
        ("warm_up_s = -1.0", "warm_up_s is -1, but it must be from 0.000000001 to 1000000"),
        ("machine = \"server-1\"", "server-1"),
        ("worklods = 1", "did you mean workloads"),
        ("kernel = \"6.1\"", "did you mean kernels"),
        ("kernels = \"6.99\"", "kernels: \"6.99\" is not a known kernel; write a version from 4.18 to 7.0"),
        ("kernels = [\"6.1\", \"debian-12\"]", "the plan gives a setting twice"),
        ("workloads = [{ path = \"x.csv\", format = \"cvs\" }]", "there is no format cvs; available:"),
        ("workloads = [{ path = \"x.csv\", columns = \"a\" }]", "columns a"),
        ("workloads = [7]", "A workload is a path"),
        ("runs = ", "TOML"),
        ("runs = -1", "line 1, column 8"),
        ("[[cross]]\ncross = 1", "a plan has no field cross"),
    ] {
        let found = wrong(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
    // The message has the position of a wrong number, also inside a cross.
    for (text, place) in
        [("x\"\nruns = \"ten\"", "line 2, column 8"), ("x\"\n[[cross]]\nspeed = [1]", "line 3, column 9")]
    {
        let found = Plan::parse("p.toml", &format!("workloads = \"{text}"), Path::new("")).unwrap_err().to_string();
        assert!(found.contains(place), "{text}: {found}");
    }
    let directory = TempDir::new().unwrap();
    let found = Plan::open(directory.path()).unwrap_err().to_string();
    assert!(found.ends_with("this is a directory; give the file of the plan"), "{found}");
}

#[test]
fn dataset_does_not_write_through_a_symlink() {
    let place = TempDir::new().unwrap();
    let (root, victim) = (place.path().join("dataset"), place.path().join("victim"));
    let dataset = Directory::create(&root).unwrap();
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, root.join(format!(".plan.toml.part-{}", std::process::id()))).unwrap();
    dataset.write("plan.toml", b"new").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(root.join("plan.toml")).unwrap(), b"new");
}

#[test]
fn dataset_does_not_write_to_replaced_directories() {
    let place = TempDir::new().unwrap();
    let [root, moved, victim] = ["dataset", "moved", "victim"].map(|name| place.path().join(name));
    fs::create_dir(&victim).unwrap();
    let dataset = Directory::create(&root).unwrap();
    dataset.write("runs/first", b"new").unwrap();
    fs::rename(root.join("runs"), &moved).unwrap();
    std::os::unix::fs::symlink(&victim, root.join("runs")).unwrap();
    assert!(dataset.write("runs/second", b"new").is_err(), "a directory of the dataset became a link");
    fs::remove_dir_all(&moved).unwrap();
    fs::rename(&root, &moved).unwrap();
    std::os::unix::fs::symlink(&victim, &root).unwrap();
    let error = dataset.write("third", b"new").unwrap_err().to_string();
    assert!(error.contains("was renamed or replaced during the sweep"), "{error}");
    assert!(fs::read_dir(&victim).unwrap().next().is_none());
}
