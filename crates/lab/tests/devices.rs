//! Tests of experiments on several devices.

use std::path::Path;

use iosched_disk::Profile;
use iosched_lab::{
    Control, Doubt, Experiment, Figure, LabError, Outcome, Overview, Progress, RECORDS_FORMAT, Record, RecordReader,
    RecordWriter, Records, Results, execute,
};
use iosched_testing::workloads::THREE_TASKS as TASKS;
use iosched_workload::{TaskSet, Workload};

fn profile(name: &str) -> Profile {
    match name {
        "fixed" => Profile::parse(
            name,
            "kind = \"fixed\"\n[fixed]\ndepth = 4\nparallel = 4\nlat_ns = 200_000\nns_per_sector = 500\n",
        )
        .unwrap(),
        _ => Profile::named(name).unwrap(),
    }
}

fn experiment(devices: &[&str], settings: &[&str], runs: u32) -> Experiment {
    let settings = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    let workload = Workload::Tasks(TaskSet::parse("three.toml", TASKS).unwrap().into());
    let mut experiment = Experiment::new(workload, profile(devices[0]), settings).unwrap();
    devices[1..].iter().for_each(|device| experiment.add_device(profile(device)).unwrap());
    experiment.runs = runs;
    experiment
}

fn records(experiment: &Experiment) -> Records {
    execute(experiment, &Control::new(2), |_| Ok(())).unwrap().records
}

fn results(records: &Records) -> Vec<Results> {
    records.devices().map(Results::of).collect()
}

fn file(experiment: &Experiment, jobs: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = RecordWriter::new(&mut bytes);
    execute(experiment, &Control::new(jobs), |progress| {
        if let Progress::Record(record) = progress {
            writer.write(record).unwrap();
        }
        Ok(())
    })
    .unwrap();
    bytes
}

#[test]
fn device_has_the_same_results_alone_and_with_others() {
    const DEVICES: [&str; 3] = ["sata-7200", "fixed", "sata-ssd"];
    let together = results(&records(&experiment(&DEVICES, &["noop", "cfq"], 3)));
    for (device, results_together) in DEVICES.iter().zip(together) {
        assert_eq!(results(&records(&experiment(&[device], &["noop", "cfq"], 3))), [results_together], "{device}");
    }
}

#[test]
fn every_round_runs_every_setting_on_every_device_with_one_seed() {
    let experiment = experiment(&["sata-7200", "sata-ssd"], &["noop", "cfq"], 3);
    let mut order = Vec::new();
    execute(&experiment, &Control::new(1), |progress| {
        if let Progress::Record(Record::Run(run)) = progress {
            assert_eq!(run.seed, experiment.run_seed(run.run));
            order.push((run.run, run.device, run.setting));
        }
        Ok(())
    })
    .unwrap();
    let of_round = |number: u32| -> Vec<_> {
        order.iter().filter(|(run, ..)| *run == number).map(|&(_, device, setting)| (device, setting)).collect()
    };
    assert_eq!(of_round(0), [(0, 0), (0, 1), (1, 0), (1, 1)]);
    assert_eq!(of_round(1), [(0, 1), (1, 0), (1, 1), (0, 0)]);
    assert_eq!(of_round(2), [(1, 0), (1, 1), (0, 0), (0, 1)]);
}

#[test]
fn record_file_is_independent_of_the_number_of_threads() {
    let experiment = experiment(&["sata-7200", "sata-ssd"], &["noop", "cfq"], 3);
    let bytes = file(&experiment, 1);
    assert_eq!(bytes, file(&experiment, 4));
    let read = RecordReader::read(bytes.as_slice(), "last.jsonl").unwrap();
    assert_eq!(read, records(&experiment));
    assert_eq!((read.runs.len(), read.timelines.len(), read.alone.len()), (12, 4, 12));
}

#[test]
fn round_counts_only_when_all_devices_completed_it() {
    let mut records = records(&experiment(&["sata-7200", "sata-ssd"], &["noop", "cfq"], 3));
    records.runs.retain(|run| (run.run, run.device, run.setting) != (1, 1, 0));
    assert_eq!(records.rounds(), [0, 2]);
    for device_results in results(&records) {
        assert_eq!(device_results.rounds, 2);
        assert!(device_results.figures.iter().flat_map(|f| f.settings.iter().flatten()).all(|s| s.values.len() == 2));
        assert!(
            device_results.doubts.iter().any(|doubt| matches!(doubt, Doubt::Incomplete { rounds: 2, planned: 3, .. }))
        );
    }
}

#[test]
fn truncated_record_file_keeps_its_complete_records() {
    let bytes = file(&experiment(&["sata-7200", "sata-ssd"], &["noop", "cfq"], 3), 2);
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    // The header, four runs with their timelines, and half of another run.
    let read = RecordReader::read(&bytes[..(ends[8] + ends[9]) / 2], "last.jsonl").unwrap();
    assert_eq!((read.runs.len(), read.rounds(), read.warnings.len()), (4, vec![0], 1));
    let read = RecordReader::read(&bytes[..ends[6]], "last.jsonl").unwrap();
    assert_eq!(read.rounds(), [] as [u32; 0], "the second device is not complete");
}

#[test]
fn records_of_unknown_devices_are_refused() {
    let mut bytes = file(&experiment(&["sata-7200"], &["noop"], 1), 1);
    let line = String::from_utf8(bytes.split(|b| *b == b'\n').nth(1).unwrap().to_vec()).unwrap();
    bytes.extend(line.replacen("\"record\":\"run\"", "\"record\":\"run\",\"device\":1", 1).bytes());
    bytes.push(b'\n');
    let error = RecordReader::read(bytes.as_slice(), "x.jsonl").unwrap_err().to_string();
    assert!(
        error.starts_with("x.jsonl: line ")
            && error.contains("the header does not list the device or the setting of this record"),
        "{error}"
    );
    let none = String::from_utf8(bytes).unwrap().replacen("\"devices\":[{", "\"devices\":[],\"rest\":[{", 1);
    let error = RecordReader::read(none.as_bytes(), "x.jsonl").unwrap_err().to_string();
    assert!(error.contains("x.jsonl: line 1: ") && error.contains("the plan has no device"), "{error}");
}

#[test]
fn records_of_format_1_are_read_as_one_device() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records-format-1.jsonl");
    let old = RecordReader::open(&path).unwrap();
    assert_eq!(old.header.format, 1, "the stored file has format 1");
    assert_eq!((old.header.devices.len(), old.header.settings.len()), (1, 2));
    let device = &old.header.devices[0];
    assert_eq!((device.name.as_str(), device.values.len()), ("sata-ssd", 2));
    let slice = device.values[1].iter().find(|value| value.name == "slice_idle").unwrap();
    assert_eq!(
        (slice.value.as_str(), slice.unit.as_str()),
        ("0", "ms"),
        "the default for a device that does not rotate"
    );
    assert_eq!((old.runs.len(), old.timelines.len(), old.rounds()), (2, 2, vec![0]));
    // The same records in the present format are equal.
    let mut present = old;
    present.header.format = RECORDS_FORMAT;
    let mut bytes = Vec::new();
    let mut writer = RecordWriter::new(&mut bytes);
    writer.write(&Record::Header(Box::new(present.header.clone()))).unwrap();
    present.runs.iter().for_each(|run| writer.write(&Record::Run(Box::new(run.clone()))).unwrap());
    present.timelines.iter().for_each(|timeline| writer.write(&Record::Timeline(Box::new(timeline.clone()))).unwrap());
    assert_eq!(RecordReader::read(bytes.as_slice(), "again").unwrap(), present);
}

#[test]
fn a_device_given_twice_is_refused() {
    let mut experiment = experiment(&["sata-7200"], &["noop"], 1);
    let error = experiment.add_device(profile("sata-7200")).unwrap_err();
    assert!(matches!(error, LabError::TwiceTheSameDevice { .. }));
    assert_eq!(error.to_string(), "the device sata-7200 is given twice; give each device once");
}

/// Scales the time of setting 1 on a device to `percent` of the time of setting 0 in every run.
fn shift(records: &mut Records, device: usize, percent: u64) {
    for run in 0..records.header.runs {
        let base = records.on(device).unwrap().run(run, 0).unwrap().result.clone();
        let run_record = records
            .runs
            .iter_mut()
            .find(|run_record| (run_record.run, run_record.device, run_record.setting) == (run, device, 1))
            .unwrap();
        run_record.result = base;
        run_record.result.finished_ns = run_record.result.finished_ns / 100 * percent;
    }
}

#[test]
fn winner_is_compared_with_baseline_or_next_best() {
    let experiment = experiment(&["sata-7200", "sata-ssd", "fixed"], &["noop", "cfq"], 4);
    let mut records = records(&experiment);
    shift(&mut records, 0, 90);
    shift(&mut records, 1, 125);
    shift(&mut records, 2, 100);
    let overview = Overview::of(&records, &results(&records));
    let finish = overview.figures.iter().find(|figure| figure.figure == Figure::Finish).unwrap();
    let best = |device: usize| match &finish.devices[device] {
        Outcome::Best { settings, margin } => {
            (settings.clone(), margin.setting, margin.than, margin.comparison.percent.unwrap().round())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(best(0), (vec![1], 1, 0, -10.0));
    // 100 is 20 % better than 125.
    assert_eq!(best(1), (vec![0], 0, 1, -20.0));
    assert_eq!(finish.devices[2], Outcome::Equal);
    assert_eq!(finish.everywhere, [] as [usize; 0]);
    assert!(overview.sentences[0].starts_with("It depends on the device: set `cfq` on "), "{:?}", overview.sentences);
    // The settings are now equal on all other devices. The winner on one device therefore wins on
    // all devices.
    shift(&mut records, 1, 100);
    let overview = Overview::of(&records, &results(&records));
    assert!(overview.sentences[0].contains("set `cfq` on "), "{:?}", overview.sentences);
    assert_eq!(overview.figures.iter().find(|figure| figure.figure == Figure::Finish).unwrap().everywhere, [1]);
}

#[test]
fn table_of_devices_has_verdicts_against_the_baseline() {
    // deadline is 10 % faster than noop in every run. The runs of cfq scatter, so its verdict is
    // "cannot tell".
    let mut records = records(&experiment(&["sata-7200", "sata-ssd"], &["noop", "deadline", "cfq"], 6));
    (0..2).for_each(|device| shift(&mut records, device, 90));
    for run in records.runs.iter_mut().filter(|run| run.setting == 2) {
        run.result.finished_ns = run.result.finished_ns / 100 * [40, 160, 70, 130, 55, 145][run.run as usize];
    }
    let results = results(&records);
    let overview = Overview::of(&records, &results);
    let finish = overview.figures.iter().find(|figure| figure.figure == Figure::Finish).unwrap();
    for (outcome, device_results) in finish.devices.iter().zip(&results) {
        let Outcome::Best { settings, margin } = outcome else { panic!("{outcome:?}") };
        let table = device_results.figure(Figure::Finish).unwrap().settings[1].as_ref().unwrap().comparison;
        assert_eq!((settings.as_slice(), Some(margin.comparison)), (&[1][..], table));
        assert_eq!(device_results.decision.setting, Some(1), "{}", device_results.decision);
    }
    assert!(overview.sentences[0].starts_with("Set `deadline` on both devices."), "{:?}", overview.sentences);
}

#[test]
fn too_few_runs_and_a_single_setting_decide_nothing() {
    let one_run = records(&experiment(&["sata-7200", "sata-ssd"], &["noop", "cfq"], 1));
    let overview = Overview::of(&one_run, &results(&one_run));
    assert!(overview.figures.is_empty());
    assert_eq!(overview.sentences[0], "Keep `noop` for now on both devices.");
    assert!(overview.shared_doubts.contains(&Doubt::FewRuns { rounds: 1 }));
    let one_setting = records(&experiment(&["sata-7200", "sata-ssd"], &["cfq"], 2));
    let overview = Overview::of(&one_setting, &results(&one_setting));
    assert!(overview.sentences[0].starts_with("A single setting cannot be compared."), "{:?}", overview.sentences);
}

#[test]
fn doubts_of_all_devices_are_listed_once() {
    let records = records(&experiment(&["sata-7200", "fixed"], &["noop", "cfq"], 3));
    let results = results(&records);
    let overview = Overview::of(&records, &results);
    assert!(overview.shared_doubts.contains(&Doubt::FewRuns { rounds: 3 }));
    let doubts: Vec<&Doubt> = overview.own_doubts(&results[1]).collect();
    assert!(doubts.iter().any(|doubt| matches!(doubt, Doubt::NoVariance { .. })), "{doubts:?}");
    for device_results in &results {
        assert_eq!(
            overview.own_doubts(device_results).count() + overview.shared_doubts.len(),
            device_results.doubts.len()
        );
    }
}

#[test]
fn decisions_on_several_devices_name_the_device() {
    let mut text = Vec::new();
    iosched_lab::write_decisions(&experiment(&["sata-7200", "sata-ssd"], &["noop", "cfq"], 1), &mut text).unwrap();
    let lines: Vec<serde_json::Value> =
        String::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for device in ["sata-7200", "sata-ssd"] {
        assert!(lines.iter().any(|line| line["device"] == device && line["setting"] == "cfq"), "{device}");
    }
}
