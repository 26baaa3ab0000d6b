//! Tests of experiments from plan to results.

use std::io::Write as _;
use std::sync::Arc;

use iosched_disk::Profile;
use iosched_lab::request::ComparisonRequest;
use iosched_lab::{
    Control, Doubt, Experiment, Fairness, Figure, Finished, Group, LabError, Progress, Record, RecordReader,
    RecordWriter, Records, Results, Verdict, execute,
};
use iosched_sim::Replay;
use iosched_testing::workloads::THREE_TASKS as TASKS;
use iosched_trace::{ReadOptions, TraceReader};
use iosched_workload::{TaskSet, Trace, Workload};

fn tasks() -> Workload {
    Workload::Tasks(TaskSet::parse("three.toml", TASKS).unwrap().into())
}

/// Returns a trace of `n` random reads by two processes. One read arrives every `gap_ns` ns.
fn trace(n: u64, gap_ns: u64) -> Workload {
    let mut text = String::from("arrival_ns,pid,op,sync,sector,nr_sectors\n");
    for i in 0..n {
        let sector = (i * 7_919_993) % 900_000_000;
        text += &format!("{},{},R,1,{sector},8\n", i * gap_ns, 10 + i % 2);
    }
    let reader = TraceReader::from_reader(std::io::Cursor::new(text), "reads.csv", &ReadOptions::default()).unwrap();
    Workload::Trace(Arc::new(Trace::read("reads.csv", reader).unwrap()))
}

fn experiment(workload: Workload, settings: &[&str], runs: u32) -> Experiment {
    let settings = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    let profile = Profile::named("sata-7200").unwrap();
    let mut experiment = Experiment::new(workload, profile, settings).unwrap();
    experiment.runs = runs;
    experiment
}

fn records(experiment: &Experiment) -> Records {
    execute(experiment, &Control::new(2), |_| Ok(())).unwrap().records
}

/// Returns the results of the first device.
fn results(records: &Records) -> Results {
    Results::of(records.on(0).unwrap())
}

/// Returns the file of records of an experiment.
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
fn records_are_independent_of_the_number_of_threads() {
    let experiment = experiment(tasks(), &["noop", "deadline", "cfq"], 4);
    let alone = file(&experiment, 1);
    assert_eq!(alone, file(&experiment, 4));
    assert_eq!(alone, file(&experiment, 1));
}

#[test]
fn records_read_from_a_file_give_the_same_results() {
    let experiment = experiment(trace(300, 2_000_000), &["noop", "cfq"], 3);
    let bytes = file(&experiment, 2);
    let read = RecordReader::read(bytes.as_slice(), "last.jsonl").unwrap();
    let kept = records(&experiment);
    assert_eq!(read, kept);
    assert_eq!(results(&read), results(&kept));
    assert_eq!((read.runs.len(), read.timelines.len(), read.alone.len()), (6, 2, 4));
}

#[test]
fn truncated_record_file_is_read_to_its_last_complete_line() {
    let bytes = file(&experiment(tasks(), &["noop", "cfq"], 3), 2);
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    // The header, two runs with their timelines, and half of another run.
    let cut = (ends[4] + ends[5]) / 2;
    let read = RecordReader::read(&bytes[..cut], "last.jsonl").unwrap();
    assert_eq!((read.runs.len(), read.rounds()), (2, vec![0]));
    assert_eq!(read.warnings.len(), 1);
    assert!(read.warnings[0].starts_with("last.jsonl: line 6 is incomplete"), "{}", read.warnings[0]);
    let doubts = results(&read).doubts;
    assert!(doubts.iter().any(|doubt| matches!(doubt, Doubt::Incomplete { rounds: 1, planned: 3, .. })), "{doubts:?}");
    // A cut between two lines loses nothing and gives no warning.
    assert_eq!(RecordReader::read(&bytes[..ends[4]], "x").unwrap().warnings, [] as [String; 0]);
}

#[test]
fn file_without_records_is_refused_with_the_line() {
    let read = |bytes: &[u8]| RecordReader::read(bytes, "x.jsonl").unwrap_err().to_string();
    assert!(read(b"").contains("x.jsonl: line 1: this is not a file of records"), "{}", read(b""));
    assert!(read(b"hello\n").contains("not a file of records"));
    assert!(read(b"{\"record\":\"alone\"}\n").contains("not a file of records"));
    let later = read(b"{\"record\":\"header\",\"format\":99,\"version\":\"9.0\"}\n");
    assert!(later.contains("format 99, of iosched 9.0"), "{later}");
    let mut bytes = file(&experiment(tasks(), &["noop"], 1), 1);
    bytes.write_all(b"{\"record\":\"nonsense\"}\n").unwrap();
    assert!(read(&bytes).contains("the line is not a record"), "{}", read(&bytes));
}

#[test]
fn setting_without_effect_is_equal_and_a_doubt() {
    let experiment = experiment(tasks(), &["cfq", "cfq:quantum=8"], 3);
    let results = results(&records(&experiment));
    for figure in &results.figures {
        let comparison = figure.settings[1].as_ref().unwrap().comparison.unwrap();
        assert_eq!(comparison.verdict, Verdict::Equal, "{:?}", figure.figure);
        assert_eq!((comparison.difference, comparison.published), (0.0, Some(false)));
    }
    let expected = Doubt::ChangedNothing { settings: vec!["cfq".to_owned(), "cfq:quantum=8".to_owned()] };
    assert!(results.doubts.contains(&expected), "{:?}", results.doubts);
    assert!(results.answer.best.is_empty());
    assert_eq!(
        results.sentence(&experiment.header(), 1).unwrap(),
        "finish, sync mean, sync p99, async p99 and fairness equal within 5 %"
    );
}

#[test]
fn read_ahead_kb_without_a_page_cache_is_a_doubt() {
    let experiment = experiment(tasks(), &["noop", "noop:read_ahead_kb=0"], 3);
    let results = results(&records(&experiment));
    let doubts: Vec<String> = results.doubts.iter().map(ToString::to_string).collect();
    let expected = "`noop:read_ahead_kb=0`: read_ahead_kb does nothing: the workload has no buffered reads";
    assert!(doubts.iter().any(|doubt| doubt == expected), "{doubts:?}");
}

#[test]
fn settings_that_ignore_the_priorities_of_tasks_are_named() {
    let found = |extra: [&str; 2]| {
        let of = |pid: usize| {
            format!("[[tasks]]\npid = {pid}\npattern = \"random\"\nrange = [0, 2000]\ntotal = 20\n{}\n", extra[pid - 1])
        };
        let text = format!("name = \"two\"\n{}{}", of(1), of(2));
        let workload = Workload::Tasks(TaskSet::parse("two.toml", &text).unwrap().into());
        let records = records(&experiment(workload, &["none", "mq-deadline", "kyber", "bfq", "cfq-2.6.34"], 2));
        let doubts = results(&records).doubts.iter().map(ToString::to_string).collect::<Vec<_>>();
        doubts.into_iter().filter(|doubt| doubt.contains("ionice")).collect::<Vec<_>>()
    };
    assert_eq!(
        found(["class = \"be\"", "class = \"idle\""]),
        ["`none` and `kyber` ignore the I/O priorities (ionice) of this workload; mq-deadline, bfq and cfq use \
         these priorities"]
    );
    assert_eq!(
        found(["class = \"be\"\nlevel = 0", "class = \"be\"\nlevel = 7"]),
        [
            "`none`, `mq-deadline` and `kyber` ignore the levels of the I/O priorities (ionice -n) of this workload; bfq \
             and cfq use these levels"
        ]
    );
    assert!(found(["", ""]).is_empty());
}

#[test]
fn a_known_shift_is_found_with_its_size_and_direction() {
    let experiment = experiment(tasks(), &["noop", "cfq:quantum=8"], 5);
    let mut records = records(&experiment);
    for run in 0..5 {
        let base = records.on(0).unwrap().run(run, 0).unwrap().result.clone();
        let run_record =
            records.runs.iter_mut().find(|run_record| run_record.run == run && run_record.setting == 1).unwrap();
        run_record.result = base;
        run_record.result.finished_ns = run_record.result.finished_ns / 10 * 11;
    }
    let results = results(&records);
    let comparison = |figure| results.figure(figure).unwrap().settings[1].as_ref().unwrap().comparison.unwrap();
    let finish = comparison(Figure::Finish);
    assert_eq!(finish.verdict, Verdict::Worse);
    assert!((finish.percent.unwrap() - 10.0).abs() < 0.01, "{finish:?}");
    assert!(finish.p.unwrap() <= finish.level, "{finish:?}");
    assert_eq!(comparison(Figure::Throughput).verdict, Verdict::Worse);
    assert_eq!(comparison(Figure::SyncMean).verdict, Verdict::Equal);
    let best = Group { settings: vec![0], figures: vec![Figure::Finish], is_certain: true, runs_needed: None };
    assert_eq!(results.answer.best, [best]);
    assert!(results.sentence(&experiment.header(), 1).unwrap().starts_with("finish worse by 10 %; "));
}

#[test]
fn runs_are_interleaved_and_paired_by_seed() {
    let experiment = experiment(tasks(), &["noop", "deadline", "cfq"], 3);
    let mut order = Vec::new();
    execute(&experiment, &Control::new(1), |progress| {
        if let Progress::Record(Record::Run(run)) = progress {
            order.push((run.run, run.setting, run.seed));
        }
        Ok(())
    })
    .unwrap();
    let settings: Vec<usize> = order.iter().map(|(_, setting, _)| *setting).collect();
    assert_eq!(settings, [0, 1, 2, 1, 2, 0, 2, 0, 1]);
    for (run, _, seed) in order {
        assert_eq!(seed, experiment.run_seed(run));
        assert!(seed < 1 << 53);
    }
    assert_ne!(experiment.run_seed(0), experiment.run_seed(1));
}

#[test]
fn an_interrupted_experiment_keeps_its_complete_rounds() {
    let experiment = experiment(tasks(), &["noop", "deadline", "cfq"], 50);
    let control = Control::new(1);
    let mut runs = 0;
    let Finished { records, interrupted } = execute(&experiment, &control, |progress| {
        runs += usize::from(matches!(progress, Progress::Done { .. }));
        if runs == 8 {
            control.interrupt();
        }
        Ok(())
    })
    .unwrap();
    assert!(interrupted);
    assert!((8..20).contains(&records.runs.len()), "{}", records.runs.len());
    let results = results(&records);
    assert_eq!(results.rounds as usize, records.runs.len() / 3);
    assert!(
        results.figures.iter().all(|f| f.settings.iter().flatten().all(|s| s.values.len() == results.rounds as usize))
    );
    let incomplete = |doubt: &Doubt| matches!(doubt, Doubt::Incomplete { planned: 50, alone_missing: 9, .. });
    assert!(results.doubts.iter().any(incomplete), "{:?}", results.doubts);
}

#[test]
fn an_error_of_the_observer_ends_the_experiment() {
    let experiment = experiment(tasks(), &["noop"], 50);
    let full = || LabError::Io { file: "last.jsonl".to_owned(), source: std::io::ErrorKind::StorageFull.into() };
    let mut seen = 0;
    let outcome = execute(&experiment, &Control::new(2), |_| {
        seen += 1;
        if seen > 5 { Err(full()) } else { Ok(()) }
    });
    assert!(matches!(outcome, Err(LabError::Io { .. })));
}

#[test]
fn fairness_compares_slowdowns_against_running_alone() {
    let records = records(&experiment(tasks(), &["noop", "cfq"], 3));
    let of_device = records.on(0).unwrap();
    let fairness = Fairness::of(of_device);
    assert_eq!((fairness.tasks.as_slice(), fairness.excluded), ([0, 1, 2].as_slice(), 0));
    for setting in 0..2 {
        let indices = fairness.indices(setting);
        assert_eq!(indices.len(), 3);
        assert!(indices.iter().all(|index| (1.0 / 3.0..=1.0).contains(index)), "{indices:?}");
        // The expected value is computed from the records.
        let run = of_device.run(0, setting).unwrap();
        let slowdowns = [0, 1, 2].map(|task| {
            run.result.tasks[task].latency.mean_ns() / of_device.alone(setting, task).unwrap().result.latency.mean_ns()
        });
        let (sum, squares) = slowdowns.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        assert!((indices[0] - sum * sum / (3.0 * squares)).abs() < 1e-12);
        assert_eq!(of_device.alone(setting, 1).unwrap().result.pid, 2);
    }
}

#[test]
fn without_fairness_no_task_runs_alone() {
    let mut experiment = experiment(tasks(), &["noop", "cfq"], 2);
    let usual = String::from_utf8(file(&experiment, 1)).unwrap();
    assert!(!usual.contains("no_fairness"), "records of experiments with fairness do not change");
    experiment.fairness = false;
    let read = RecordReader::read(file(&experiment, 1).as_slice(), "last.jsonl").unwrap();
    assert!(read.header.no_fairness && read.header.alone.is_empty() && read.alone.is_empty());
    assert_eq!(read, records(&experiment));
    let results = results(&read);
    assert_eq!(results.figure(Figure::Fairness), None);
    assert!(!results.doubts.iter().any(|doubt| doubt.to_string().contains("fairness")), "{:?}", results.doubts);
}

#[test]
fn one_process_has_no_fairness() {
    let text = "[[tasks]]\npid = 1\npattern = \"random\"\ntotal = 50\n";
    let workload = Workload::Tasks(TaskSet::parse("one.toml", text).unwrap().into());
    let results = results(&records(&experiment(workload, &["noop", "cfq"], 2)));
    assert_eq!(results.figure(Figure::Fairness), None);
    assert!(results.doubts.contains(&Doubt::NoFairness { tasks: 1 }), "{:?}", results.doubts);
}

#[test]
fn one_run_is_shown_but_decides_nothing() {
    let results = results(&records(&experiment(tasks(), &["noop", "cfq"], 1)));
    let figure = results.figure(Figure::Finish).unwrap().settings[1].clone().unwrap();
    assert_eq!((figure.sd, figure.comparison.unwrap().verdict), (None, Verdict::CannotTell));
    assert!(results.doubts.contains(&Doubt::FewRuns { rounds: 1 }));
}

#[test]
fn settings_that_ran_for_different_times_are_named() {
    let of = |seconds: u64| {
        let mut experiment = experiment(tasks(), &["noop", "cfq"], 2);
        experiment.limit.time_ns = Some(seconds * 1_000_000_000);
        results(&records(&experiment)).doubts
    };
    // Each setting finishes all the work, at a different time.
    let doubts = of(100);
    let found = doubts.iter().find(|doubt| matches!(doubt, Doubt::UnlikeTimes { .. }));
    let message = found.unwrap_or_else(|| panic!("{doubts:?}")).to_string();
    for part in ["ran for different times: `cfq` for", "`noop` for", "a limit of 100 s", "give a shorter --run-for"] {
        assert!(message.contains(part), "{message}");
    }
    let mut unlimited = experiment(tasks(), &["noop", "cfq"], 2);
    unlimited.limit.time_ns = None;
    let doubts = results(&records(&unlimited)).doubts;
    assert!(!doubts.iter().any(|doubt| matches!(doubt, Doubt::UnlikeTimes { .. })), "{doubts:?}");
}

#[test]
fn overloaded_and_idle_devices_are_doubts() {
    let with_gap = |gap_ns| {
        let mut experiment = experiment(trace(400, gap_ns), &["noop"], 2);
        experiment.replay = Replay::Open { speed: 1.0 };
        results(&records(&experiment)).doubts
    };
    let buried = with_gap(100_000);
    assert!(buried.iter().any(|doubt| matches!(doubt, Doubt::Overload { .. })), "{buried:?}");
    let idle = with_gap(200_000_000);
    assert!(idle.iter().any(|doubt| matches!(doubt, Doubt::Idle { speed: Some(s), .. } if *s >= 2.0)), "{idle:?}");
}

#[test]
fn every_value_in_effect_is_in_the_header() {
    let experiment = experiment(tasks(), &["deadline", "cfq:slice_idle=0,nr_requests=512"], 1);
    let header = experiment.header();
    let values = &header.devices[0].values[1];
    let value = |name: &str| values.iter().find(|value| value.name == name).unwrap();
    assert_eq!((value("slice_idle").value.as_str(), value("slice_idle").set), ("0", true));
    assert_eq!((value("quantum").value.as_str(), value("quantum").set), ("8", false));
    assert_eq!((value("nr_requests").value.as_str(), value("nr_requests").attribute), ("512", true));
    assert_eq!(header.workload.requests, Some(150));
}

#[test]
fn impossible_comparison_is_refused_before_any_run() {
    let new = |settings: &[&str]| {
        let settings = settings.iter().map(|setting| setting.parse().unwrap()).collect();
        Experiment::new(tasks(), Profile::named("sata-7200").unwrap(), settings)
    };
    assert!(matches!(new(&[]), Err(LabError::NoSettings)));
    assert!(matches!(new(&["cfq", "cfq"]), Err(LabError::TwiceTheSame { .. })));
    let error = new(&["noop", "cfq"]).unwrap().set_baseline("deadline").unwrap_err();
    assert_eq!(error.to_string(), "the baseline deadline is not one of the compared settings; these are noop, cfq");
    let mut none = new(&["noop"]).unwrap();
    none.runs = 0;
    assert!(matches!(execute(&none, &Control::new(1), |_| Ok(())), Err(LabError::NoRuns)));
}

#[test]
fn decisions_are_lines_of_json_for_every_setting() {
    let experiment = experiment(tasks(), &["noop", "cfq"], 1);
    let mut text = Vec::new();
    iosched_lab::write_decisions(&experiment, &mut text).unwrap();
    let lines: Vec<serde_json::Value> =
        String::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |setting: &str, event: &str| {
        lines.iter().filter(|line| line["setting"] == setting && line["ev"] == event).count()
    };
    assert_eq!(count("noop", "complete"), count("noop", "dispatch"));
    assert!(count("noop", "dispatch") > 0);
    assert!(count("cfq", "active") > 0);
    assert_eq!(count("noop", "active"), 0);
}

#[test]
fn setting_is_read_from_a_record_unchanged() {
    for form in [
        r#"{"name":"cfq","tunables":[["slice_idle","0"]],"attributes":[["nr_requests","64"]]}"#,
        r#"{"name":"sedf","tunables":[["read_expire","5"]],"attributes":[["nr_requests","064"]]}"#,
        r#"{"name":"bfq","tunables":[["iosched/of_tomorrow","on"],["low_latency","08"]]}"#,
        r#"{"name":"present","attributes":[["wbt_lat_usec","0"]]}"#,
    ] {
        let setting: iosched::Setting = serde_json::from_str(form).unwrap();
        assert_eq!(serde_json::to_string(&setting).unwrap(), form);
    }
}

#[test]
fn the_baseline_of_a_set_of_schedulers_is_mq_deadline() {
    let baseline = |schedulers: &[&str]| {
        let schedulers = schedulers.iter().map(|scheduler| (*scheduler).to_owned()).collect();
        let request = ComparisonRequest { schedulers, ..ComparisonRequest::default() };
        let header = request.experiment().unwrap().header();
        header.settings[header.baseline].label.clone()
    };
    for set in [&[][..], &["all"], &["today"]] {
        assert_eq!(baseline(set), "mq-deadline", "{set:?}");
    }
    assert_eq!(baseline(&["bfq", "mq-deadline"]), "bfq");
}

/// Returns a recording of two processes that read at random and are always busy. `db` has one I/O
/// in flight. `backup` has 16 I/Os in flight and the idle class.
fn trace_of_db_and_backup(seconds: u64) -> Workload {
    let mut rows: Vec<(u64, String)> = Vec::new();
    for i in 0..seconds * 100 {
        let sector = i * 7_919_993 % 90_000_000 / 8 * 8;
        let at_ns = i * 10_000_000;
        rows.push((at_ns, format!("{at_ns},7,R,1,{},16,9900000,db,be/4\n", 700_000_000 + sector)));
        // Each I/O starts when the I/O 16 positions before it ends.
        let at_ns = i.saturating_sub(16) * 10_000_000 + 1_000;
        let latency_ns = (i + 1).min(16) * 10_000_000 - 1_000;
        rows.push((at_ns, format!("{at_ns},1234,R,1,{sector},8,{latency_ns},backup,idle\n")));
    }
    rows.sort();
    let header = "arrival_ns,pid,op,sync,sector,nr_sectors,latency_ns,process,ioprio\n".to_owned();
    let text = rows.into_iter().fold(header, |text, (_, row)| text + &row);
    let reader = TraceReader::from_reader(std::io::Cursor::new(text), "two.csv", &ReadOptions::default()).unwrap();
    Workload::Trace(Arc::new(Trace::read("two.csv", reader).unwrap()))
}

#[test]
fn the_decision_about_a_trace_names_the_process_that_starves() {
    let mut experiment = experiment(trace_of_db_and_backup(20), &["none", "bfq"], 2);
    experiment.replay = Replay::Closed;
    experiment.fairness = false;
    let results = results(&records(&experiment));
    // Every process finishes all its I/Os. Therefore the starvation shows only in the time in which
    // both processes run.
    let is_it = |doubt: &&Doubt| {
        matches!(doubt, Doubt::Starved { settings, task, percent }
            if settings == &["bfq"] && task == "backup (1234)" && *percent < 5.0)
    };
    assert_eq!(results.doubts.iter().filter(is_it).count(), 1, "{:?}", results.doubts);
    let sentences = results.decision.sentences.join(" ");
    assert!(
        sentences.contains("`bfq` takes ") && sentences.contains("starves the process backup (1234)"),
        "{sentences}"
    );
}
