//! Tests of the order of runs and of their end, with a bench that executes no workload.

use super::*;
use crate::record::{MeasuredRecord, WorkloadKind};
use iosched_sim::{IoKind, IoTimeline, TaskResult};

/// A bench whose settings take a given time, with some noise.
#[derive(Default)]
struct Mock {
    present: String,
    /// Calls in their order.
    log: Vec<String>,
    /// Label of each setting, with the mean and the noise of its runs, ms.
    ms: Vec<(&'static str, f64, f64)>,
    /// Number of the run that fails.
    fails_at: Option<usize>,
    /// Number of runs before an interruption, and the control to interrupt.
    interrupt: Option<(usize, std::sync::Arc<Control>)>,
    cannot_restore: bool,
    /// Numbers of runs during which another program changes a setting.
    disturbed: Vec<usize>,
    /// Changes by another program that `finish` returns.
    left: Vec<Change>,
    runs: usize,
    rng: Option<SplitMix64>,
}

impl Bench for Mock {
    fn device(&self) -> DeviceRecord {
        DeviceRecord {
            name: "mock".into(),
            about: String::new(),
            fingerprint: String::new(),
            profile: None,
            fit: None,
            capacity_sectors: 1,
            depth: 1,
            rotational: false,
            write_cache: false,
            measured: Some(MeasuredRecord { target: "/dev/mock".into(), ..MeasuredRecord::default() }),
            values: Vec::new(),
        }
    }

    fn set(&mut self, setting: &Setting) -> Result<Vec<ValueRecord>, VerifyError> {
        if !self.ms.iter().any(|(name, ..)| *name == setting.name()) {
            let problem = "the kernel has no such scheduler".to_owned();
            return Err(VerifyError::Setting { setting: setting.to_string(), problem });
        }
        self.present = setting.name().to_owned();
        self.log.push(format!("set {}", setting.name()));
        Ok(Vec::new())
    }

    fn run(&mut self, _seed: u64, _interrupt: &AtomicBool) -> Result<Option<RunResult>, VerifyError> {
        self.log.push(format!("run {}", self.present));
        self.runs += 1;
        if self.fails_at == Some(self.runs) {
            return Err(VerifyError::Run { problem: "the disk is gone".into() });
        }
        if let Some((_, control)) = self.interrupt.as_ref().filter(|(after, _)| *after == self.runs) {
            control.interrupt();
        }
        let rng = self.rng.get_or_insert(SplitMix64::new(5));
        let noise = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        let (_, ms, deviation) = self.ms.iter().find(|(name, ..)| *name == self.present).unwrap();
        let ns = ((ms + noise * deviation) * 1e6) as u64;
        let mut result = RunResult { finished_ns: ns * 1000, ios: 1000, ..RunResult::default() };
        let mut task = TaskResult { ios: 1000, ..TaskResult::default() };
        (0..1000).for_each(|_| task.latency.record(ns));
        result.latency.reads = task.latency.clone();
        result.tasks.push(task);
        let mut timeline = IoTimeline::default();
        timeline.completed(ns, IoKind::Read, 4096, ns);
        result.io_timeline = Some(Box::new(timeline));
        Ok(Some(result))
    }

    fn foreign(&self) -> Vec<Change> {
        let change = |from: &str| Change { name: "nr_requests".into(), from: Some(from.into()), to: "64".into() };
        if self.disturbed.contains(&self.runs) { vec![change("256")] } else { Vec::new() }
    }

    fn finish(&mut self) -> Result<Vec<Change>, VerifyError> {
        self.log.push("finish".into());
        let problem = "scheduler was none".to_owned();
        if self.cannot_restore { Err(VerifyError::Left { problem }) } else { Ok(self.left.clone()) }
    }
}

fn verification(names: &[&str], runs: u32) -> Verification {
    let setting = |name: &&str| SettingRecord { label: (*name).into(), setting: Setting::defaults(name) };
    Verification {
        workload: WorkloadRecord::new("mock".into(), WorkloadKind::Tasks, String::new(), 1),
        settings: names.iter().map(setting).collect(),
        baseline: 0,
        runs,
        seed: 1,
        replay: Replay::Closed,
        warm_up_ns: 0,
        limit: Limit::default(),
        until_sure_percent: None,
        equal_within_percent: crate::EQUAL_WITHIN_PERCENT,
        goals: Vec::new(),
        command: String::new(),
    }
}

fn ignore(_: Progress<'_>) -> Result<(), LabError> {
    Ok(())
}

fn mock(ms: &[(&'static str, f64, f64)]) -> Mock {
    Mock { ms: ms.to_vec(), ..Mock::default() }
}

#[test]
fn only_the_first_run_of_each_setting_has_a_timeline() {
    let mut bench = mock(&[("a", 1.0, 0.0), ("b", 3.0, 0.0)]);
    let records = verify(&verification(&["a", "b"], 3), &mut bench, &Control::new(1), ignore).unwrap().records;
    let of = |record: &TimelineRecord| {
        (record.setting, record.timeline.io.bins.iter().map(|bin| bin.under_way_ns).sum::<u64>())
    };
    assert_eq!(records.timelines.iter().map(of).collect::<Vec<_>>(), [(0, 1_000_000), (1, 3_000_000)]);
    assert!(records.runs.iter().all(|run| run.result.io_timeline.is_none()));
}

#[test]
fn every_round_has_every_setting_once_in_random_order() {
    let mut bench = mock(&[("a", 1.0, 0.0), ("b", 1.0, 0.0), ("c", 1.0, 0.0)]);
    let verification = verification(&["a", "b", "c"], 12);
    let finished = verify(&verification, &mut bench, &Control::new(1), ignore).unwrap();
    assert_eq!(finished.records.rounds().len(), 12);
    let mut turns: Vec<_> = finished.records.runs.iter().map(|run| (run.turn.unwrap(), run.run, run.setting)).collect();
    turns.sort_unstable();
    assert!(turns.iter().enumerate().all(|(at, (turn, run, _))| (at, at / 3) == (*turn as usize, *run as usize)));
    let orders: std::collections::BTreeSet<Vec<usize>> =
        turns.chunks(3).map(|round| round.iter().map(|(.., setting)| *setting).collect()).collect();
    assert!(orders.len() >= 4, "{orders:?}");
    assert!(orders.iter().all(|order| order.iter().sum::<usize>() == 3));
    // Each setting was applied once before the first run, and again before each run.
    assert_eq!(bench.log[..3], ["set a", "set b", "set c"]);
    assert!(bench.log[3..bench.log.len() - 1].chunks(2).all(|pair| pair[0][4..] == pair[1][4..]));
    assert_eq!(bench.log.last().unwrap(), "finish");
}

#[test]
fn unknown_scheduler_is_refused_before_any_run() {
    let mut bench = mock(&[("a", 1.0, 0.0)]);
    let error = verify(&verification(&["a", "bfq"], 3), &mut bench, &Control::new(1), ignore).unwrap_err();
    assert_eq!(error.to_string(), "bfq: the kernel has no such scheduler");
    assert_eq!(bench.log, ["set a", "finish"]);
}

#[test]
fn values_are_restored_after_an_error() {
    let mut bench = Mock { fails_at: Some(3), ..mock(&[("a", 1.0, 0.0), ("b", 1.0, 0.0)]) };
    let error = verify(&verification(&["a", "b"], 5), &mut bench, &Control::new(1), ignore).unwrap_err();
    assert_eq!(error.to_string(), "the disk is gone");
    assert_eq!(bench.log.last().unwrap(), "finish");

    let mut bench = Mock { fails_at: Some(1), cannot_restore: true, ..mock(&[("a", 1.0, 0.0)]) };
    let error = verify(&verification(&["a"], 5), &mut bench, &Control::new(1), ignore).unwrap_err();
    assert_eq!(error.to_string(), "the disk is gone; a second error followed: scheduler was none");

    let mut bench = Mock { cannot_restore: true, ..mock(&[("a", 1.0, 0.0)]) };
    assert!(verify(&verification(&["a"], 2), &mut bench, &Control::new(1), ignore).is_err());
}

#[test]
fn interrupt_keeps_completed_runs() {
    let control = std::sync::Arc::new(Control::new(1));
    let interrupt = Some((5, std::sync::Arc::clone(&control)));
    let mut bench = Mock { interrupt, ..mock(&[("a", 1.0, 0.0), ("b", 1.0, 0.0)]) };
    let finished = verify(&verification(&["a", "b"], 50), &mut bench, &control, ignore).unwrap();
    assert!(finished.interrupted);
    assert_eq!((finished.records.runs.len(), finished.records.rounds().len()), (5, 2));
    assert_eq!(bench.log.last().unwrap(), "finish");
}

#[test]
fn until_sure_ends_only_when_verdicts_are_certain() {
    let rounds = |ms: &[(&'static str, f64, f64)]| {
        let verification = Verification { until_sure_percent: Some(3.0), ..verification(&["a", "b"], 60) };
        let finished = verify(&verification, &mut mock(ms), &Control::new(1), ignore).unwrap();
        let results = Results::of(finished.records.on(0).unwrap());
        let incomplete = results.doubts.iter().any(|doubt| matches!(doubt, crate::Doubt::Incomplete { .. }));
        assert!(!incomplete, "{:?}", results.doubts);
        results.rounds
    };
    // Four cases: twice as slow, equal with little noise, equal with more noise, and too noisy for
    // this number of runs.
    assert!(rounds(&[("a", 10.0, 0.3), ("b", 20.0, 0.3)]) <= 6);
    assert!(rounds(&[("a", 10.0, 0.1), ("b", 10.0, 0.1)]) <= 10);
    let more = rounds(&[("a", 10.0, 0.5), ("b", 10.0, 0.5)]);
    assert!((10..60).contains(&more), "{more}");
    assert_eq!(rounds(&[("a", 10.0, 5.0), ("b", 10.0, 5.0)]), 60);
}

#[test]
fn run_is_repeated_if_another_program_changed_a_setting() {
    let left = vec![Change { name: "nr_requests".into(), from: Some("256".into()), to: "64".into() }];
    let mut bench = Mock { disturbed: vec![2, 3], left, ..mock(&[("a", 1.0, 0.0), ("b", 1.0, 0.0)]) };
    let mut warnings = Vec::new();
    let finished = verify(&verification(&["a", "b"], 2), &mut bench, &Control::new(1), |progress| {
        warnings.extend(progress.warning());
        Ok(())
    });
    assert_eq!(finished.unwrap().records.runs.len(), 4);
    assert_eq!(bench.runs, 6);
    assert_eq!(warnings.len(), 3);
    assert!(
        warnings[0].contains("iosched repeats a run of a, because another program changed nr_requests from 64 to 256"),
        "{warnings:?}"
    );
    let not_put_back =
        "iosched did not restore these values, because another program changed them: nr_requests is 256 (before: 64)";
    assert_eq!(warnings[2], not_put_back);
    // The same setting is applied and run again.
    let first = &bench.log[2..8];
    assert_eq!(first[2..4], first[4..6], "{first:?}");
}

#[test]
fn setting_that_another_program_keeps_changing_is_an_error() {
    let mut bench = Mock { disturbed: (2..20).collect(), ..mock(&[("a", 1.0, 0.0), ("b", 1.0, 0.0)]) };
    let error = verify(&verification(&["a", "b"], 2), &mut bench, &Control::new(1), ignore).unwrap_err().to_string();
    assert!(error.contains("nr_requests from 64 to 256 in each of 4 runs"), "{error}");
    assert_eq!((bench.runs, bench.log.last().unwrap().as_str()), (5, "finish"));
}
