//! Tests of results on real devices: the effect of generated noise on verdicts.

use iosched_disk::Profile;
use iosched_kernel::checks::Finding;
use iosched_kernel::knobs::{Inert, Reason};
use iosched_lab::{
    Comparison, Doubt, Experiment, Figure, MeasuredRecord, Record, Records, Results, RunRecord, Verdict, sure,
};
use iosched_numbers::SplitMix64;
use iosched_sim::{Note, RunResult, TaskResult};
use iosched_testing::machine::has_minutes;
use iosched_workload::{TaskSet, Workload};

const TASKS: &str = r#"
    name = "two"
    [[tasks]]
    pid = 1
    name = "reader"
    pattern = "random"
    total = 1000
    [[tasks]]
    pid = 2
    name = "writer"
    op = "write"
    pattern = "random"
    total = 1000
"#;

/// Returns a random number that is approximately standard normal.
fn normal(rng: &mut SplitMix64) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// Returns results of two settings on a real device. `ms` returns the time of a run, ms, from its
/// setting, its number and its turn.
fn results(rounds: u32, mut ms: impl FnMut(usize, u32, u32) -> f64) -> Results {
    let measured = MeasuredRecord { target: "/dev/loop0".into(), ..MeasuredRecord::default() };
    results_of(["bfq", "kyber"], Some(measured), rounds, |setting, run, turn| result(ms(setting, run, turn))).1
}

/// Returns the records and results of two settings. They are from a real device if `measured` is
/// given.
fn results_of(
    settings: [&str; 2],
    measured: Option<MeasuredRecord>,
    rounds: u32,
    mut result: impl FnMut(usize, u32, u32) -> RunResult,
) -> (Records, Results) {
    let workload = Workload::Tasks(TaskSet::parse("two.toml", TASKS).unwrap().into());
    let settings = settings.map(|setting| setting.parse().unwrap()).to_vec();
    let mut experiment = Experiment::new(workload, Profile::named("sata-ssd").unwrap(), settings).unwrap();
    experiment.runs = rounds;
    let mut header = experiment.header();
    header.alone.clear();
    header.devices[0].measured = measured;
    let mut records = Records::new(header);
    for run in 0..rounds {
        for place in 0..2 {
            // The settings alternate in the first position of a round.
            let setting = (place + run as usize) % 2;
            let turn = run * 2 + place as u32;
            let result = result(setting, run, turn);
            records.add(Record::Run(Box::new(RunRecord {
                device: 0,
                setting,
                run,
                seed: 1,
                turn: Some(turn),
                result,
            })));
        }
    }
    let results = Results::of(records.on(0).unwrap());
    // Every verdict must agree with its interval.
    for figure in results.figures.iter().flat_map(|figure| &figure.settings).flatten() {
        let Some(Comparison { verdict, interval: Some((low, high)), .. }) = figure.comparison else { continue };
        let holds_none = low <= 0.0 && high >= 0.0;
        assert_eq!(holds_none && verdict != Verdict::Equal, verdict == Verdict::CannotTell, "{:?}", figure.comparison);
    }
    (records, results)
}

/// Returns a run in which every I/O takes about `ms`.
fn result(ms: f64) -> RunResult {
    let mut result = RunResult {
        finished_ns: (ms * 6e9) as u64,
        ios: 2000,
        device_busy_ns: (ms * 5e9) as u64,
        ..RunResult::default()
    };
    for name in ["reader", "writer"] {
        let mut task = TaskResult { pid: 1, name: name.into(), ios: 1000, ..TaskResult::default() };
        for io in 0..1000 {
            let ns = (ms * 1e6) as u64 + io * 10;
            task.latency.record(ns);
            result.latency.reads.record(ns);
        }
        result.tasks.push(task);
    }
    result
}

fn differs(results: &Results) -> bool {
    let verdicts = results
        .figures
        .iter()
        .filter(|results_of_figure| results_of_figure.concludes())
        .flat_map(|results_of_figure| &results_of_figure.settings);
    verdicts.flatten().filter_map(|figure| figure.comparison.as_ref()).any(|comparison| comparison.verdict.differs())
}

#[test]
fn equal_settings_differ_in_at_most_1_of_20_comparisons() {
    let wrong = (0..200).filter(|&seed| {
        let mut rng = SplitMix64::entity(seed, 7);
        differs(&results(10, |_, _, _| 10.0 + 0.4 * normal(&mut rng)))
    });
    let wrong = wrong.count();
    assert!(wrong <= 10, "{wrong} of 200");
}

#[test]
fn a_real_difference_is_found_although_the_machine_drifts() {
    let mut rng = SplitMix64::new(3);
    let found = results(12, |setting, _, turn| {
        (10.0 + 0.1 * normal(&mut rng) + f64::from(turn) * 0.1) * if setting == 1 { 0.9 } else { 1.0 }
    });
    let finish = found.figure(Figure::Finish).unwrap().settings[1].as_ref().unwrap().comparison.unwrap();
    assert_eq!(finish.verdict, Verdict::Better);
    let (low, high) = finish.interval_percent.unwrap();
    assert!(low < -10.0 && -10.0 < high && high < -8.0, "{low} {high}");
    let drift = found.doubts.iter().find(|doubt| matches!(doubt, Doubt::Drift { figure: Figure::Finish, .. }));
    let Some(Doubt::Drift { percent, .. }) = drift else { panic!("{:?}", found.doubts) };
    assert!((15.0..30.0).contains(percent), "{percent}");
}

#[test]
fn two_groups_of_runs_are_a_doubt() {
    let mut rng = SplitMix64::new(3);
    let found = results(15, |setting, run, _| {
        10.0 + 0.05 * normal(&mut rng) + if setting == 1 && run % 3 == 0 { 4.0 } else { 0.0 }
    });
    let groups = found.doubts.iter().find_map(|doubt| match doubt {
        Doubt::TwoGroups { setting, figure: Figure::Finish, runs, .. } => Some((setting.as_str(), *runs)),
        _ => None,
    });
    assert_eq!(groups, Some(("kyber", [10, 5])));
}

/// Returns the largest number of runs that the table shows for an open metric.
fn runs_needed_in_table(found: &Results) -> Option<u32> {
    let open = |figure: &Figure| found.figure(*figure).unwrap().settings[1].as_ref().unwrap().comparison.unwrap();
    let figures = &found.answer.open.as_ref().unwrap().figures;
    figures.iter().map(|figure| open(figure).runs_needed).collect::<Option<Vec<_>>>()?.into_iter().max()
}

#[test]
fn answer_and_table_ask_for_equally_many_runs() {
    // The means are far apart, so it matters of which mean a percentage is.
    for seed in 0..40 {
        let mut rng = SplitMix64::new(seed);
        let found = results(5, |setting, _, _| 10.0 + 6.0 * normal(&mut rng).abs() + f64::from(setting as u32) * 2.0);
        let finish = found.figure(Figure::Finish).unwrap().settings[1].as_ref().unwrap().comparison.unwrap();
        let is_decided = finish.verdict != Verdict::CannotTell;
        let open = found.answer.open.as_ref().is_some_and(|open| open.figures.contains(&Figure::Finish));
        assert_eq!(is_decided, !open, "{seed}: {finish:?}");
        if open {
            assert_eq!(found.answer.open.as_ref().unwrap().runs_needed, runs_needed_in_table(&found), "{seed}");
        }
    }
}

#[test]
fn uncertain_difference_names_the_number_of_runs_needed() {
    let mut rng = SplitMix64::new(8);
    let found = results(5, |setting, _, _| 10.0 + 0.5 * normal(&mut rng) + if setting == 1 { 0.3 } else { 0.0 });
    let finish = found.figure(Figure::Finish).unwrap().settings[1].as_ref().unwrap().comparison.unwrap();
    assert_eq!(finish.verdict, Verdict::CannotTell);
    let description = finish.describe("s");
    assert!(
        finish.runs_needed.unwrap() > 5 && description.contains(&format!("{} runs", finish.runs_needed.unwrap())),
        "{description}"
    );
    let answer = found.answer.open.as_ref().unwrap();
    assert!(answer.figures.contains(&Figure::Finish) && answer.runs_needed.unwrap() > 5, "{answer:?}");
    assert_eq!(answer.runs_needed, runs_needed_in_table(&found), "the answer and the table name the same number");
}

#[test]
fn one_outlier_is_not_a_difference_of_settings() {
    let mut rng = SplitMix64::new(5);
    let found = results(10, |setting, run, _| {
        10.0 + 0.05 * normal(&mut rng) + if setting == 1 && run == 4 { 60.0 } else { 0.0 }
    });
    assert!(!differs(&found));
}

/// Returns the doubts about starvation of a writer that always has I/O in flight and makes
/// `writer_ios` I/Os. The reader makes 1,000 I/Os of 4 KiB.
fn starvation(writer_ios: [u64; 2], writer_bytes_each: u64) -> Vec<String> {
    let workload = Workload::Tasks(TaskSet::parse("two.toml", TASKS).unwrap().into());
    let settings = ["bfq", "none"].map(|setting| setting.parse().unwrap()).to_vec();
    let experiment = Experiment::new(workload, Profile::named("sata-ssd").unwrap(), settings).unwrap();
    let mut header = experiment.header();
    header.alone.clear();
    let mut records = Records::new(header);
    for run in 0..3 {
        for (setting, writer_ios) in writer_ios.into_iter().enumerate() {
            let mut result = RunResult { finished_ns: 10_000_000_000, ..RunResult::default() };
            for (name, ios) in [("reader", 1000), ("writer", writer_ios)] {
                let mut task = TaskResult { name: name.into(), ios, first_submit_ns: Some(0), ..TaskResult::default() };
                task.bytes_read = if name == "reader" { ios * 4096 } else { 0 };
                task.bytes_written = if name == "writer" { ios * writer_bytes_each } else { 0 };
                (0..ios).for_each(|_| task.latency.record(8 * 10_000_000_000 / ios));
                result.tasks.push(task);
            }
            records.add(Record::Run(Box::new(RunRecord { device: 0, setting, run, seed: 1, turn: None, result })));
        }
    }
    let found = Results::of(records.on(0).unwrap()).doubts;
    found.iter().filter(|doubt| matches!(doubt, Doubt::Starved { .. })).map(ToString::to_string).collect()
}

#[test]
fn waiting_task_with_almost_no_ios_starves() {
    let found = starvation([4, 900], 4096);
    assert!(found.len() == 1 && found[0].starts_with("`bfq`: writer starves. "), "{found:?}");
}

#[test]
fn few_large_requests_are_not_starvation() {
    assert_eq!(starvation([4, 900], 1 << 20), Vec::<String>::new());
}

/// Returns eight runs of two settings with a little noise. The runs of the second setting take
/// `times` times as long.
fn times_as_slow(settings: [&str; 2], measured: Option<MeasuredRecord>, times: f64) -> (Records, Results) {
    let mut rng = SplitMix64::new(17);
    results_of(settings, measured, 8, |setting, _, _| {
        result((10.0 + 0.05 * normal(&mut rng)) * if setting == 1 { times } else { 1.0 })
    })
}

#[test]
fn no_doubt_contradicts_the_metrics() {
    let findings = vec![Finding::DeepDriver { driver_depth: 128 }];
    let inert = vec![Vec::new(), vec![Inert { knob: "fifo_batch".to_owned(), reason: Reason::Alone }]];
    let measured = MeasuredRecord { findings, inert, ..MeasuredRecord::default() };
    let deep = |settings, times| {
        let (_, found) = times_as_slow(settings, Some(measured.clone()), times);
        found.doubts.iter().any(|doubt| matches!(doubt, Doubt::Found { .. }))
    };
    assert!(deep(["none", "mq-deadline"], 1.0));
    assert!(!deep(["none", "mq-deadline"], 5.0), "a fivefold difference contradicts the doubt");
    assert!(!deep(["none", "bfq"], 1.0), "bfq itself holds requests back");
    let inert = |times| {
        let (_, found) = times_as_slow(["mq-deadline", "mq-deadline:fifo_batch=1"], Some(measured.clone()), times);
        found.doubts.iter().any(|doubt| matches!(doubt, Doubt::Inert { .. }))
    };
    assert!(inert(1.0) && !inert(1.5));
}

#[test]
fn waits_for_free_requests_on_flash_are_a_doubt() {
    let doubts = |late: [u64; 2]| {
        let (_, found) = results_of(["none", "kyber"], None, 3, |setting, _, _| {
            let notes = match late[setting] {
                0 => Vec::new(),
                ios => vec![Note::WaitedForAllocation { times: ios, ios }],
            };
            RunResult { notes, ..result(10.0) }
        });
        let texts: Vec<String> = found.doubts.iter().map(ToString::to_string).collect();
        texts.into_iter().filter(|text| text.contains("request")).collect::<Vec<_>>()
    };
    let found = doubts([0, 1_500]);
    assert!(
        found.len() == 1 && found[0].starts_with("`kyber`: up to 75 % of the I/Os waited for a free request"),
        "{found:?}"
    );
    assert!(found[0].contains("set hw_queues in the profile"), "{found:?}");
    assert!(doubts([1_000, 1_500])[0].starts_with("up to 75 %"), "all settings");
    // A few late I/Os are only a note.
    let few = doubts([0, 4]);
    assert!(
        few.len() == 1 && few[0].contains("4 times, all requests of the queue (nr_requests) were in use"),
        "{few:?}"
    );
}

#[test]
fn processors_that_limit_the_rate_are_a_doubt() {
    let (_, found) = results_of(["none", "bfq"], None, 3, |setting, run, _| {
        let notes = match setting {
            0 => Vec::new(),
            _ => vec![Note::ProcessorBusy { percent: 96 + run, cores: 8 }],
        };
        RunResult { notes, ..result(10.0) }
    });
    let texts: Vec<String> = found.doubts.iter().map(ToString::to_string).collect();
    let found: Vec<_> = texts.iter().filter(|text| text.contains("processor")).collect();
    assert!(
        found.len() == 1
            && found[0].starts_with("`bfq`: the processors limit the rate, not the disk: one of 8 modelled processors"),
        "{texts:?}"
    );
}

#[test]
fn idle_device_is_reported_only_without_a_difference() {
    let idle = |times: f64| {
        let (_, found) = results_of(["none", "kyber"], None, 8, |setting, run, _| {
            let ms = (10.0 + 0.01 * f64::from(run)) * if setting == 1 { times } else { 1.0 };
            RunResult { device_busy_ns: 1_000_000, ..result(ms) }
        });
        found.answer.idle_percent.is_some()
    };
    assert!(idle(1.0) && !idle(3.0));
}

#[test]
fn decision_separates_settings_that_linux_lacks() {
    let best = |settings: [&str; 2], measured: Option<MeasuredRecord>, times| {
        times_as_slow(settings, measured, times).1.decision.to_string()
    };
    let decision = best(["mq-deadline", "cfq"], None, 0.5);
    assert!(decision.starts_with("Keep `mq-deadline`. "), "{decision}");
    assert!(
        decision.contains("`cfq` is even better, but only on a disk that iosched serves: it finishes 50 % sooner"),
        "{decision}"
    );
    let decision = best(["mq-deadline", "cfq"], None, 2.0);
    assert!(
        decision.starts_with("Keep `mq-deadline`. Nothing is faster. `cfq` ")
            && !decision.replacen(" (not in Linux, only on disks that iosched serves)", "", 1).contains("serves"),
        "{decision}"
    );
    let decision = best(["deadline", "cfq"], None, 0.5);
    assert!(
        decision.starts_with("Linux has none of these settings, because they need a disk that iosched serves."),
        "{decision}"
    );
    assert!(decision.contains(" On such a disk, set `cfq`: it finishes 50 % sooner"), "{decision}");
    // If the kernel has the scheduler, a user can set it.
    let decision = best(["mq-deadline", "cfq"], Some(MeasuredRecord::default()), 0.5);
    assert!(decision.starts_with("Set `cfq`: ") && !decision.contains("serves"), "{decision}");
}

#[test]
fn until_sure_ends_clear_comparisons_only() {
    let clear = |rounds, noise: f64, shift: f64| {
        let mut rng = SplitMix64::new(11);
        let found =
            results(rounds, |setting, _, _| 10.0 + noise * normal(&mut rng) + if setting == 1 { shift } else { 0.0 });
        sure::unclear(&found, 3.0).is_empty()
    };
    // A comparison is clear if its difference is large or is precisely known, but never before five
    // rounds.
    assert!(clear(6, 0.05, 3.0) && clear(12, 0.1, 0.0));
    assert!(!clear(4, 0.05, 3.0) && !clear(6, 2.0, 0.0));
}

#[test]
fn checks_after_every_round_rarely_find_a_false_difference() {
    if !has_minutes() {
        return;
    }
    let misled = (0..50).filter(|&seed| {
        (sure::ROUNDS_MIN..=20).any(|rounds| {
            let mut rng = SplitMix64::entity(seed, 9);
            let found = results(rounds, |_, _, _| 10.0 + normal(&mut rng));
            let clear = |figure| !sure::unclear(&found, 0.0).iter().any(|open| open.figure == figure);
            clear(Figure::Finish)
        })
    });
    let misled = misled.count();
    assert!(misled <= 2, "{misled} of 50");
}
