use iosched_kernel::checks::Finding;

use super::*;
use crate::compare::{Bounds, Pair, SIGNIFICANCE};
use crate::doubt::Doubt;
use crate::record::WorkloadKind;
use iosched_workload::outcome::{JobResult, TaskResult};

/// Returns values of runs around a mean, with a little noise that differs between settings.
fn around(value: f64, noise: f64, setting: usize, runs: usize) -> Vec<f64> {
    let noises = [0.3, -0.5, 0.8, -0.9, 0.1, 0.6, -0.2, -0.7, 0.9, -0.4];
    (0..runs)
        .map(|run| value * (1.0 + noise * noises[(run * [1, 3, 7, 9][setting % 4] + setting) % noises.len()]))
        .collect()
}

/// Returns a metric under several settings, the baseline first, with the given noise and model
/// error.
fn criterion(figure: Figure, values: &[f64], noise: f64, runs: usize, model_error_percent: f64) -> Criterion {
    let bounds = Bounds { model_error_percent, ..Bounds::default() };
    let of = |setting: usize| around(values[setting], noise, setting, runs);
    let base = of(0);
    let settings = (0..values.len()).map(|setting| {
        let values = of(setting);
        let pair = Pair { figure, values: &values, base: &base, bounds, concludes: true };
        Some((crate::stat::mean(&values), (setting != 0).then(|| pair.compare(SIGNIFICANCE))))
    });
    Criterion { figure, phrase: figure.phrase(false), settings: settings.collect(), concludes: true }
}

fn evidence(labels: &[&str], criteria: &[(Figure, &[f64])]) -> Evidence {
    with_noise(labels, criteria, 0.001, 10)
}

fn with_noise(labels: &[&str], criteria: &[(Figure, &[f64])], noise: f64, runs: usize) -> Evidence {
    Evidence {
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        criteria: criteria.iter().map(|(figure, values)| criterion(*figure, values, noise, runs, 0.0)).collect(),
        reason: Some("the workload has an end"),
        task_word: "job",
        runs_option: Some("--runs"),
        runs: runs as u32,
        run_word: "runs",
        equal_within_percent: 5.0,
        ..Evidence::default()
    }
}

/// Returns the metric IOPS of the job `db`, which runs together with the job `backup`.
fn iops_of_db() -> Figure {
    let jobs = [JobResult { name: "db".to_owned(), ..JobResult::default() }, JobResult::default()];
    let task = |name: &str| TaskResult { name: name.to_owned(), ..TaskResult::default() };
    let (figures, _) = Figure::of_tasks(&[task("db"), task("backup")], &jobs, false, WorkloadKind::Jobs);
    figures.concat().into_iter().find(|figure| figure.name().contains("IOPS")).unwrap()
}

/// Checks the kind, setting and sentences of a decision.
#[track_caller]
fn check(evidence: &Evidence, kind: DecisionKind, setting: usize, sentences: &[&str]) {
    let found = decide(evidence);
    assert_eq!((found.kind, found.setting), (kind, Some(setting)), "{found}");
    assert_eq!(found.sentences, sentences);
}

const FINISH: Figure = Figure::Finish;

#[test]
fn keep_names_the_equal_and_the_worse_settings() {
    let labels = ["mq-deadline", "none", "kyber", "bfq"];
    let given = evidence(&labels, &[(FINISH, &[10.0, 10.0, 10.1, 11.9]), (Figure::SyncP99, &[5.0; 4])]);
    check(
        &given,
        DecisionKind::Keep,
        0,
        &[
            "Keep `mq-deadline`. Nothing is faster.",
            "`none` and `kyber` are equal within 5 % in the time to finish.",
            "`bfq` takes 19 % longer.",
        ],
    );
}

#[test]
fn decision_names_the_better_setting_without_a_cost() {
    let labels = ["mq-deadline", "kyber", "bfq"];
    let metrics = [(FINISH, &[10.0, 8.0, 7.0][..]), (Figure::SyncP99, &[5.0, 5.0, 20.0])];
    check(
        &evidence(&labels, &metrics),
        DecisionKind::Change,
        1,
        &["Set `kyber`: it finishes 20 % sooner.", "Against `mq-deadline`, `bfq` finishes 30 % sooner."],
    );
}

#[test]
fn gain_in_another_metric_is_a_reason_to_change() {
    let metrics = [(FINISH, &[10.0, 10.0][..]), (Figure::SyncP99, &[5.0, 4.0])];
    let expected = ["Set `kyber`: it shortens the p99 of sync I/O by 20 %.", "The time to finish is equal within 5 %."];
    check(&evidence(&["none", "kyber"], &metrics), DecisionKind::Change, 1, &expected);
}

#[test]
fn among_equal_settings_the_largest_gain_decides() {
    let labels = ["mq-deadline", "kyber", "none"];
    let metrics = [(FINISH, &[10.0, 9.99, 10.0][..]), (Figure::SyncP99, &[5.0, 4.0, 2.0])];
    let expected = [
        "Set `none`: it shortens the p99 of sync I/O by 60 %.",
        "The time to finish is equal within 5 %.",
        "Against `mq-deadline`, `kyber` is equal within 5 % in the time to finish.",
    ];
    check(&evidence(&labels, &metrics), DecisionKind::Change, 2, &expected);
}

#[test]
fn larger_gain_of_a_setting_with_a_cost_is_named() {
    let labels = ["mq-deadline", "kyber", "none"];
    let metrics = |fairness| {
        [(FINISH, &[10.0, 10.0, 10.0][..]), (Figure::SyncP99, &[5.0, 4.0, 2.0]), (Figure::Fairness, fairness)]
    };
    let expected = [
        "Set `kyber`: it shortens the p99 of sync I/O by 20 %.",
        "The time to finish is equal within 5 %.",
        "Against `mq-deadline`, `none` is equal within 5 % in the time to finish.",
        "`none` gains more: it shortens the p99 of sync I/O by 60 %. But it shares the disk less fairly (0.50 against 0.90).",
    ];
    check(&evidence(&labels, &metrics(&[0.9, 0.9, 0.5])), DecisionKind::Change, 1, &expected);
    // A gain that is only slightly larger is not worth a sentence.
    let metrics = [(FINISH, &[10.0; 3][..]), (Figure::SyncP99, &[5.0, 4.0, 3.8]), (Figure::Fairness, &[0.9, 0.9, 0.5])];
    check(&evidence(&labels, &metrics), DecisionKind::Change, 1, &expected[..3]);
}

#[test]
fn setting_with_a_cost_is_a_trade_without_a_goal() {
    let metrics = [(FINISH, &[10.0, 8.0][..]), (Figure::SyncP99, &[5.0, 16.0]), (Figure::Fairness, &[1.0, 0.7])];
    let mut given = evidence(&["deadline", "cfq"], &metrics);
    check(
        &given,
        DecisionKind::Trade,
        1,
        &[
            "Set `cfq` if the time to finish matters more than the p99 of sync I/O. Otherwise keep `deadline`.",
            "The gain: it finishes 20 % sooner.",
            "The cost: it makes the p99 of sync I/O 3.2 times as long and shares the disk less fairly (0.70 \
             against 1.00).",
        ],
    );
    given.reason = None;
    check(
        &given,
        DecisionKind::Change,
        1,
        &[
            "Set `cfq`: it finishes 20 % sooner.",
            "The cost: it makes the p99 of sync I/O 3.2 times as long and shares the disk less fairly (0.70 \
             against 1.00).",
        ],
    );
}

#[test]
fn slower_and_fairer_setting_is_named_as_an_alternative() {
    let metrics = [(FINISH, &[10.0, 11.9][..]), (Figure::Fairness, &[0.36, 0.63])];
    check(
        &evidence(&["mq-deadline", "bfq"], &metrics),
        DecisionKind::Keep,
        0,
        &[
            "Keep `mq-deadline`. Nothing is faster.",
            "`bfq` takes 19 % longer.",
            "Set `bfq` only if fairness matters more than the time to finish. It shares the disk more fairly (0.63 \
             against 0.36).",
        ],
    );
}

#[test]
fn open_decision_says_how_many_runs_are_needed() {
    let given = with_noise(&["none", "bfq"], &[(FINISH, &[10.0, 9.4])], 0.2, 10);
    let found = decide(&given);
    assert_eq!((found.kind, found.setting), (DecisionKind::CannotTell, Some(0)));
    let runs = given.criteria[0].settings[1].unwrap().1.unwrap().runs_needed.unwrap();
    assert_eq!(found.sentences[0], "Keep `none` for now: the runs do not show whether `bfq` is better.");
    assert_eq!(found.sentences[1], "Nothing is faster for sure.");
    assert!(found.sentences[2].starts_with("`bfq` (-"), "{found}");
    assert_eq!(found.sentences[3], format!("About {runs} runs of each setting would give a verdict: --runs {runs}."));
}

#[test]
fn three_uncertain_runs_are_too_few() {
    let given = with_noise(&["none", "bfq"], &[(FINISH, &[10.0, 9.4])], 0.2, 3);
    let found = decide(&given);
    assert_eq!((found.kind, found.setting), (DecisionKind::TooFewRuns, Some(0)));
    assert_eq!(found.sentences[0], "Keep `none` for now: 3 runs of each setting are too few to decide.");
    assert_eq!(found.sentences[2], "`bfq` may be better or worse.");
    assert!(found.sentences[3].contains("--runs "), "{found}");
}

#[test]
fn one_run_decides_nothing() {
    let given = with_noise(&["none", "bfq"], &[(FINISH, &[10.0, 5.0])], 0.0, 1);
    let expected = ["Keep `none` for now: one run of each setting is too few to decide.", "Make 10 runs: --runs 10."];
    check(&given, DecisionKind::TooFewRuns, 0, &expected);
}

#[test]
fn settings_that_are_equal_in_all_metrics_make_no_difference() {
    let metrics = [(FINISH, &[10.0; 3][..]), (Figure::SyncP99, &[5.0; 3])];
    let expected = [
        "Keep `none`: the setting makes no difference here.",
        "All 3 settings are equal within 5 % in the time to finish and the p99 of sync I/O.",
    ];
    check(&evidence(&["none", "bfq", "kyber"], &metrics), DecisionKind::Equal, 0, &expected);
}

#[test]
fn a_program_that_stays_in_the_page_cache_decides_nothing() {
    let given = Evidence { nothing_reached: true, runs: 1, ..evidence(&["none", "bfq"], &[(FINISH, &[10.0, 10.0])]) };
    let found = decide(&given);
    assert_eq!(found.kind, DecisionKind::Idle);
    assert!(found.sentences[0].starts_with("Keep `none`. Nothing reached the disk: all data stayed in"), "{found}");
}

#[test]
fn an_idle_device_decides_nothing() {
    let given = Evidence { idle_percent: Some(1.2), ..evidence(&["none", "bfq"], &[(FINISH, &[10.0, 10.0])]) };
    let found = decide(&given);
    assert_eq!(found.kind, DecisionKind::Idle);
    assert_eq!(found.sentences[0], "Keep `none`: the scheduler makes no difference here.");
    assert!(found.sentences[1].starts_with("The device was idle at least 98.8 % of the time"), "{found}");
}

#[test]
fn starving_settings_are_not_advised() {
    let starving =
        |settings: &[usize]| vec![Starving { task: "backup".into(), settings: settings.to_vec(), percent: 0.4 }];
    let metrics = [(FINISH, &[10.0, 8.0][..])];
    let given = Evidence { starving: starving(&[1]), ..evidence(&["none", "bfq"], &metrics) };
    let expected = [
        "Keep `none`. Nothing is faster without starving a task.",
        "`bfq` finishes 20 % sooner, but starves the job backup.",
    ];
    check(&given, DecisionKind::Keep, 0, &expected);
    // With a goal, the user decides which tasks may wait.
    let given = Evidence { reason: None, ..given };
    let expected = ["Set `bfq`: it finishes 20 % sooner.", "The cost: it starves the job backup."];
    check(&given, DecisionKind::Change, 1, &expected);
    let weighed = [(FINISH, &[10.0, 11.9][..]), (Figure::SyncP99, &[5.0, 4.0])];
    let given = Evidence { starving: starving(&[1]), ..evidence(&["none", "bfq"], &weighed) };
    let expected = [
        "Keep `none`. Nothing is faster.",
        "`bfq` takes 19 % longer and starves the job backup.",
        "`bfq` shortens the p99 of sync I/O by 20 %, but starves the job backup.",
    ];
    check(&given, DecisionKind::Keep, 0, &expected);
    let equal = [(FINISH, &[10.0, 10.0][..]), (Figure::SyncP99, &[5.0, 4.0])];
    let given = Evidence { starving: starving(&[0]), ..evidence(&["none", "bfq"], &equal) };
    let expected = [
        "Set `bfq`: it shortens the p99 of sync I/O by 20 %.",
        "It also serves the job backup, which starves under `none`.",
        "The time to finish is equal within 5 %.",
    ];
    check(&given, DecisionKind::Change, 1, &expected);
    // With a goal, starvation of a task may be intended. The decision then depends on the costs in
    // other metrics.
    let costly = [(FINISH, &[10.0, 8.0][..]), (Figure::SyncP99, &[5.0, 6.0])];
    let given = Evidence { starving: starving(&[0]), ..evidence(&["none", "bfq"], &costly) };
    let expected = [
        "Set `bfq` if the time to finish or progress of the job backup matters more than the p99 of sync I/O. \
         Otherwise keep \
         `none`.",
        "The gain: it finishes 20 % sooner and serves the job backup, which starves under `none`.",
        "The cost: it lengthens the p99 of sync I/O by 20 %.",
    ];
    check(&given, DecisionKind::Trade, 1, &expected);
    let slower = [(FINISH, &[10.0, 11.9][..])];
    let given = Evidence { starving: starving(&[0]), ..evidence(&["none", "bfq"], &slower) };
    let expected = [
        "Set `bfq` if progress of the job backup matters more than the time to finish. Otherwise keep `none`.",
        "`none` starves the job backup: backup gets 0.40 % of the I/Os of the busiest job.",
        "`bfq` takes 19 % longer.",
    ];
    check(&given, DecisionKind::Trade, 1, &expected);
}

#[test]
fn setting_that_starves_another_task_trades_the_tasks() {
    let starving = |task: &str, setting: usize| Starving { task: task.into(), settings: vec![setting], percent: 0.4 };
    let starving = vec![starving("backup", 0), starving("db", 1)];
    let labels = ["mq-deadline", "none", "bfq"];
    let of = |bfq: f64| evidence(&labels, &[(Figure::Throughput, &[1.0, 100.0, bfq][..])]);
    let found = decide(&Evidence { starving: starving.clone(), ..of(0.5) });
    let expected =
        "Set `bfq` if progress of the job backup matters more than throughput. Otherwise keep `mq-deadline`.";
    assert_eq!(found.sentences[0], expected);
    let labels = ["mq-deadline", "none"];
    let found = decide(&Evidence { starving, ..evidence(&labels, &[(Figure::Throughput, &[1.0, 100.0][..])]) });
    let expected = "Keep `mq-deadline` if progress of the job db matters more than progress of the job backup. \
                    Otherwise \
                    set `none`.";
    assert_eq!(found.sentences[0], expected);
}

#[test]
fn version_of_linux_is_used_not_set() {
    let given = evidence(&["bfq @ 6.1", "bfq @ 6.18"], &[(FINISH, &[10.0, 8.0])]);
    let found = decide(&Evidence { kernels_differ: true, ..given });
    assert_eq!(found.sentences[0], "Use `bfq @ 6.18`: it finishes 20 % sooner.");
}

#[test]
fn all_tasks_that_starve_are_named() {
    let starving = |task: &str| Starving { task: task.into(), settings: vec![1], percent: 0.4 };
    let starving = vec![starving("backup"), starving("batch")];
    let given = Evidence { starving, reason: None, ..evidence(&["none", "bfq"], &[(FINISH, &[10.0, 8.0])]) };
    let expected = ["Set `bfq`: it finishes 20 % sooner.", "The cost: it starves the jobs backup and batch."];
    check(&given, DecisionKind::Change, 1, &expected);
}

#[test]
fn large_difference_is_stated_with_its_values() {
    let metrics = [
        (Figure::SyncP99, &[1023.0, 99.4][..]),
        (Figure::AsyncP99, &[3.18, 10067.0]),
        (Figure::Throughput, &[101.0, 1.43]),
    ];
    let given = Evidence { reason: None, run_s: Some(11.0), ..evidence(&["none", "bfq"], &metrics) };
    let found = decide(&given);
    // A goal decides alone, unless the whole run loses very much.
    let head = "Set `bfq` if the p99 of sync I/O matters more than throughput. Otherwise keep `none`.";
    assert_eq!(found.sentences[0], head);
    assert!(
        found.sentences[1].starts_with("The gain: it shortens the p99 of sync I/O from 1.02 s to 99.4 ms, by 90 %"),
        "{found}"
    );
    let cost = "The cost: it lowers throughput from 101 to 1.43 MB/s. It also lengthens the p99 of async I/O \
                from 3.18 ms to 10.1 s \
                (most of the run).";
    assert_eq!(found.sentences[2], cost);
}

#[test]
fn latency_as_long_as_the_run_is_marked_in_a_gain_too() {
    let metrics = [(Figure::SyncP99, &[3037.0, 783.0][..])];
    let compared = Evidence { reason: None, run_s: Some(3.0), ..evidence(&["mq-deadline", "bfq"], &metrics) };
    let text = "Set `bfq`: it shortens the p99 of sync I/O from 3.04 s to 783 ms (under `mq-deadline`, I/Os \
                waited during \
                most of the run).";
    assert_eq!(decide(&compared).sentences, [text]);
    let compared = Evidence { run_s: Some(60.0), ..compared };
    assert_eq!(decide(&compared).sentences, ["Set `bfq`: it shortens the p99 of sync I/O by 74 %."]);
}

#[test]
fn large_loss_of_throughput_precedes_larger_losses_of_latency() {
    let metrics = [
        (FINISH, &[10.0, 8.0][..]),
        (Figure::SyncMean, &[10.0, 40.0]),
        (Figure::SyncP99, &[10.0, 50.0]),
        (Figure::AsyncP99, &[10.0, 60.0]),
        (Figure::Throughput, &[100.0, 31.0]),
    ];
    let compared = Evidence { reason: None, ..evidence(&["none", "bfq"], &metrics) };
    let cost = "The cost: it lowers throughput by 69 % and makes the p99 of async I/O 6.0 times as long. It \
                also makes the p99 of sync I/O \
                5.0 times as long and worsens the mean latency of sync I/O.";
    assert_eq!(decide(&compared).sentences[1], cost);
    // A small loss must not hide other losses.
    let mut compared = compared;
    compared.criteria[4] = criterion(Figure::Throughput, &[100.0, 90.0], 0.001, 10, 0.0);
    assert!(
        decide(&compared).sentences[1].starts_with("The cost: it makes the p99 of async I/O 6.0 times as long"),
        "{}",
        decide(&compared)
    );
}

#[test]
fn summary_of_worse_settings_names_the_worst() {
    let labels = ["none", "a", "b", "c", "d"];
    let of = |values: &[f64]| decide(&evidence(&labels[..values.len()], &[(FINISH, values)])).sentences[1..].to_vec();
    let named = ["`a` takes 10 % longer (9.9 to 10 %).", "`b` takes 20 % longer.", "`c` takes 30 % longer."];
    assert_eq!(of(&[10.0, 11.0, 12.0, 13.0, 14.0]), [&named[..], &["`d` takes 40 % longer."]].concat());
    let labels = ["none", "a", "b", "c", "d", "e"];
    let compared = evidence(&labels, &[(FINISH, &[10.0, 11.0, 12.0, 13.0, 14.0, 30.0])]);
    let all = [&named[..], &["2 more settings are worse. The worst: `e` takes 3.0 times as long."]].concat();
    assert_eq!(decide(&compared).sentences[1..], all);
}

#[test]
fn first_mention_of_a_served_setting_is_annotated() {
    let metrics = [(FINISH, &[10.0, 10.0, 12.0][..])];
    let compared = Evidence { served: vec![0, 2], ..evidence(&["noop", "none", "cfq"], &metrics) };
    let text = [
        "Keep `noop` (only on a disk that iosched serves). Nothing is faster.",
        "`none` is equal within 5 % in the time to finish.",
        "`cfq` (not in Linux, only on disks that iosched serves) takes 20 % longer.",
    ];
    check(&compared, DecisionKind::Keep, 0, &text);
}

#[test]
fn served_setting_with_a_range_has_one_pair_of_brackets() {
    let compared = with_noise(&["none", "bfq", "cfq"], &[(FINISH, &[10.0, 10.0, 10.4])], 0.2, 10);
    let found = decide(&Evidence { served: vec![2], ..compared }).to_string();
    assert!(
        found.contains("`bfq` (-") && found.contains("`cfq` (not in Linux, only on disks that iosched serves; -"),
        "{found}"
    );
}

#[test]
fn fall_to_a_tenth_is_named_before_a_rise_to_twice() {
    let metrics = [
        (FINISH, &[10.0, 8.0][..]),
        (Figure::SyncMean, &[10.0, 11.0]),
        (Figure::SyncP99, &[10.0, 25.0]),
        (Figure::AsyncP99, &[10.0, 26.0]),
        (Figure::Throughput, &[100.0, 9.0]),
    ];
    let given = Evidence { reason: None, ..evidence(&["none", "bfq"], &metrics) };
    let cost = "The cost: it lowers throughput from 100 to 9.00 MB/s and makes the p99 of async I/O 2.6 times \
                as long. It also makes \
                the p99 of sync I/O 2.5 times as long and worsens the mean latency of sync I/O.";
    assert_eq!(decide(&given).sentences[2], cost);
}

#[test]
fn no_sentence_of_a_decision_has_more_than_25_words() {
    let metrics = [
        (FINISH, &[10.0, 8.0, 12.0, 10.0][..]),
        (Figure::SyncMean, &[10.0, 31.0, 2.0, 10.0]),
        (Figure::SyncP99, &[10.0, 250.0, 0.1, 10.0]),
        (Figure::AsyncP99, &[10.0, 26.0, 9.0, 1000.0]),
        (Figure::Fairness, &[0.9, 0.3, 0.95, 0.9]),
    ];
    let starving = vec![Starving { task: "backup".into(), settings: vec![0, 2], percent: 0.4 }];
    let labels = ["mq-deadline", "kyber", "bfq", "cfq"];
    for reason in [None, Some("all runs are equally long and no setting can finish sooner")] {
        for served in [vec![], vec![3], vec![0, 1, 2, 3]] {
            let starving = starving.clone();
            let found = decide(&Evidence { starving, reason, served, ..evidence(&labels, &metrics) });
            for sentence in found.to_string().split_inclusive(". ") {
                assert!(sentence.split_whitespace().count() <= 25, "{sentence}");
            }
        }
    }
}

#[test]
fn decision_says_when_the_device_queues_below_the_scheduler() {
    let doubt = |finding| vec![Doubt::Found { finding }];
    let given = evidence(&["none", "bfq"], &[(FINISH, &[10.0, 10.0])]);
    let found = decide(&given.with_doubts(&doubt(Finding::Virtual { kind: "a virtual disk".into() })));
    assert_eq!(
        found.sentences[2],
        "The disk is a virtual disk. The layer below the disk also orders requests, and may matter more than the scheduler."
    );
}

#[test]
fn equal_setting_with_a_great_cost_names_the_cost() {
    let metrics = [(FINISH, &[10.0, 10.0, 10.0][..]), (Figure::AsyncP99, &[3.7, 3.7, 314.0])];
    let given = Evidence { served: vec![2], ..evidence(&["mq-deadline", "none", "cfq"], &metrics) };
    let expected = [
        "Keep `mq-deadline`. Nothing is faster.",
        "`none` and `cfq` (not in Linux, only on disks that iosched serves) are equal within 5 % in the time to finish.",
        "`cfq` lengthens the p99 of async I/O from 3.70 to 314 ms.",
    ];
    check(&given, DecisionKind::Keep, 0, &expected);
}

#[test]
fn job_gain_far_above_the_total_loss_is_a_choice() {
    let iops = iops_of_db();
    let of = |loss: f64, gain: f64| {
        let metrics = [(Figure::Throughput, &[100.0, 100.0 - loss][..]), (iops, &[10.0, 10.0 * gain])];
        decide(&evidence(&["none", "bfq"], &metrics))
    };
    let found = of(20.0, 100.0);
    assert_eq!((found.kind, found.setting, found.otherwise), (DecisionKind::Trade, Some(0), Some(1)));
    assert_eq!(
        found.sentences[0],
        format!("Keep `none` if throughput matters more than {}. Otherwise set `bfq`.", iops.phrase(false))
    );
    // A small gain is only mentioned. If the loss is as large as the gain, the user need not
    // choose.
    assert_eq!(of(20.0, 1.5).kind, DecisionKind::Keep);
    assert_eq!(of(90.0, 10.0).kind, DecisionKind::Keep);
}

#[test]
fn choice_names_losses_and_gains_of_its_setting() {
    let iops = iops_of_db();
    let metrics = [(Figure::Throughput, &[100.0, 80.0][..]), (iops, &[10.0, 1000.0]), (Figure::SyncP99, &[10.0, 15.0])];
    let found = decide(&evidence(&["none", "bfq"], &metrics));
    let choice = format!(
        "`bfq` raises {} from 10.0 to 1,000. But it lengthens the p99 of sync I/O by 50 %.",
        iops.phrase(false)
    );
    assert_eq!(found.sentences[1..], ["`bfq` lowers throughput by 20 %.".to_owned(), choice]);
}

#[test]
fn gain_of_a_job_under_a_worse_setting_is_named() {
    let iops = iops_of_db();
    let metrics = [
        (Figure::Throughput, &[200.0, 200.0, 4.0][..]),
        (Figure::SyncMean, &[10.0, 6.0, 10.0]),
        (iops, &[12.0, 12.0, 209.0]),
    ];
    let given = evidence(&["mq-deadline", "none", "bfq"], &metrics);
    let gain = format!("But `bfq` raises {} from 12.0 to 209.", iops.phrase(false));
    let found = decide(&given);
    assert_eq!((found.kind, found.sentences.last()), (DecisionKind::Change, Some(&gain)));
    // A goal of the user is the only criterion.
    let found = decide(&Evidence { reason: None, ..given.clone() });
    assert!(!found.sentences.contains(&gain), "{found}");
    // A slight gain of another setting is no reason to ignore the job.
    let mut slight = given;
    slight.criteria[1] = criterion(Figure::SyncMean, &[10.0, 9.2, 10.0], 0.001, 10, 0.0);
    let found = decide(&slight);
    let choice = format!(
        "Set `bfq` only if {0} matters more than throughput. It raises {0} from 12.0 to 209.",
        iops.phrase(false)
    );
    assert_eq!(found.kind, DecisionKind::Keep, "{found}");
    assert!(found.sentences.contains(&choice), "{found}");
}

#[test]
fn decision_by_a_goal_names_the_tasks_that_starve() {
    let given = evidence(&["mq-deadline", "none"], &[(Figure::SyncP99, &[1.0, 1.4])]);
    let doubt = Doubt::Starved { settings: Vec::new(), task: "idle".to_owned(), percent: 0.01 };
    let found = decide(&Evidence { reason: None, ..given.with_doubts(&[doubt]) });
    assert_eq!(found.sentences[0], "Keep `mq-deadline`. Nothing shortens the p99 of sync I/O.");
    assert!(found.sentences.contains(&"Under `mq-deadline`, idle starves.".to_owned()), "{found}");
}

#[test]
fn job_that_gains_more_under_another_setting_is_a_choice() {
    let iops = iops_of_db();
    let of = |gain: f64, loss: f64| {
        let metrics = [(Figure::Throughput, &[100.0, 100.0, 100.0 - loss][..]), (iops, &[10.0, 36.0, 36.0 * gain])];
        evidence(&["none", "io.latency", "io.max"], &metrics)
    };
    let name = iops.phrase(false);
    check(
        &of(70.0, 32.0),
        DecisionKind::Trade,
        1,
        &[
            &format!("Set `io.latency` if throughput matters more than {name}. Otherwise set `io.max`."),
            &format!("`io.latency` makes {name} 3.6 times as high."),
            "Throughput is equal within 5 %.",
            &format!("`io.max` raises {name} from 10.0 to 2,520."),
            "Against `none`, `io.max` lowers throughput by 32 %.",
        ],
    );
    // A setting that is only slightly better than the baseline is not part of the choice.
    let mut slight = of(70.0, 32.0);
    slight.criteria[1] = criterion(iops, &[10.0, 10.8, 2520.0], 0.001, 10, 0.0);
    assert_eq!(
        decide(&slight).sentences[0],
        format!("Keep `none` if throughput matters more than {name}. Otherwise set `io.max`.")
    );
    // A small gain does not make the user choose. A gain with a loss of the same size does not
    // either.
    assert_eq!(decide(&of(1.5, 32.0)).kind, DecisionKind::Change);
    assert_eq!(decide(&of(8.0, 90.0)).kind, DecisionKind::Change);
    // A goal of the user is the only criterion.
    assert_eq!(decide(&Evidence { reason: None, ..of(70.0, 32.0) }).kind, DecisionKind::Change);
}

#[test]
fn decision_mentions_a_serious_doubt() {
    let given = evidence(&["none", "bfq"], &[(FINISH, &[10.0, 8.0])]);
    let grave = Doubt::RecordsDamaged { problem: "a line is missing".into() };
    let found = decide(&given.clone().with_doubts(&[grave]));
    assert_eq!(found.sentences[1], "The first of the listed doubts may change this decision: the records are damaged.");
    assert_eq!(decide(&given.with_doubts(&[Doubt::FewRuns { rounds: 5 }])).sentences.len(), 1);
}

#[test]
fn decision_names_settings_that_only_some_kernels_have() {
    let of = |labels: &[&str], setting| {
        let lacks = vec![setting];
        let given = evidence(labels, &[(FINISH, &[10.0, 12.0])]);
        decide(&Evidence { served: lacks.clone(), out_of_tree: lacks, ..given }).sentences.join(" ")
    };
    let kept = of(&["adios", "none"], 0);
    assert!(kept.starts_with("Keep `adios` (only on a disk that iosched serves, or a kernel that has this scheduler)"));
    let other = of(&["none", "adios"], 1);
    assert!(
        other.contains(
            "`adios` (only on disks that iosched serves, and in kernels that have this scheduler) takes 20 % longer"
        ),
        "{other}"
    );
}

#[test]
fn decision_lists_settings_that_linux_lacks_separately() {
    let metrics = [(FINISH, &[10.0, 10.0, 5.0][..])];
    let given =
        Evidence { served: vec![2], better_served: vec![2], ..evidence(&["mq-deadline", "none", "cfq"], &metrics) };
    let found = decide(&given);
    assert_eq!((found.kind, found.setting), (DecisionKind::Keep, Some(0)));
    assert_eq!(
        found.sentences,
        [
            "Keep `mq-deadline`. No other scheduler of Linux is faster.",
            "`none` is equal within 5 % in the time to finish.",
            "`cfq` is even better, but only on a disk that iosched serves: it finishes 50 % sooner."
        ]
    );
    let given = Evidence { served: vec![0, 1], ..evidence(&["deadline", "cfq"], &[(FINISH, &[10.0, 5.0])]) };
    let found = decide(&given);
    assert_eq!((found.kind, found.setting), (DecisionKind::Change, Some(1)));
    let expected = "Linux has none of these settings, because they need a disk that iosched serves. On such a disk, \
                    set `cfq`: it finishes 50 % sooner.";
    assert_eq!(found.sentences, [expected]);
}

#[test]
fn decision_on_an_inexact_model_states_the_model_error() {
    let mut given = evidence(&["noop", "cfq"], &[]);
    given.criteria = vec![criterion(FINISH, &[10.0, 71.0], 0.001, 10, 640.0)];
    check(
        &given,
        DecisionKind::CannotTell,
        0,
        &[
            "Keep `noop` for now: the runs do not show whether `cfq` is better.",
            "Nothing is faster for sure.",
            "`cfq` was worse in simulation (7.1 times the baseline's value), but the model is too inexact to \
             prove this difference.",
            "More runs would not give a verdict, because the model may be wrong by 640 %. Compare on the \
             device itself with --on.",
        ],
    );
}

#[test]
fn setting_replaces_a_baseline_that_breaks_a_constraint() {
    let given = Evidence {
        broken: vec![
            vec![BrokenConstraint { constraint: "p99(db) <= 1 ms".to_owned(), value: "28.9 ms".to_owned() }],
            Vec::new(),
        ],
        reason: None,
        ..evidence(&["none", "bfq"], &[(Figure::Throughput, &[100.0, 90.0])])
    };
    check(
        &given,
        DecisionKind::Change,
        1,
        &[
            "Set `bfq`. It meets the constraint that `none` breaks: p99(db) <= 1 ms (`none` has 28.9 ms).",
            "The cost: it lowers throughput by 10 % (9.9 to 10 %).",
        ],
    );
}

#[test]
fn decision_names_metric_runs_and_a_goal_to_paste() {
    let mut given = evidence(&["none", "bfq"], &[(FINISH, &[10.0, 10.0])]);
    given.goal = Some("\"p99(db)\"".to_owned());
    assert_eq!(
        decide(&given).judged.unwrap(),
        "Without a goal, the time to finish decides, because the workload has an end. To let another metric decide, add --goal \
         \"p99(db)\". Based on 10 runs of each setting, with 95 % confidence."
    );
    given.reason = None;
    let expected = "The goal decides: the time to finish. Based on 10 runs of each setting, with 95 % confidence.";
    assert_eq!(decide(&given).judged.unwrap(), expected);
}

#[test]
fn equal_decisions_of_devices_are_stated_once() {
    let keep = decide(&evidence(&["none", "bfq"], &[(FINISH, &[10.0, 11.9])]));
    let set = decide(&evidence(&["none", "bfq"], &[(FINISH, &[10.0, 8.0])]));
    let labels = ["none".to_owned(), "bfq".to_owned()];
    let of = |decisions: &[&Decision]| several(&["a", "b"], &labels, 0, decisions)[0].clone();
    assert_eq!(of(&[&keep, &keep]), "Keep `none` on both devices.");
    assert_eq!(of(&[&keep, &set]), "It depends on the device: keep `none` on a; set `bfq` on b.");
}

#[test]
fn decision_names_two_outcomes() {
    let base = [100.0; 12];
    let values: Vec<f64> = (0..12).map(|run| if run % 2 == 0 { 50.0 } else { 150.0 }).collect();
    let pair = Pair { figure: FINISH, values: &values, base: &base, bounds: Bounds::default(), concludes: true };
    let found = pair.compare(SIGNIFICANCE);
    let of =
        |settings| Criterion { figure: FINISH, phrase: "the time to finish".to_owned(), settings, concludes: true };
    let mut evidence = evidence(&["none", "bfq"], &[]);
    evidence.criteria = vec![of(vec![Some((100.0, None)), Some((100.0, Some(found)))])];
    let sentences = decide(&evidence).to_string();
    let outcomes = "the time to finish has two outcomes: 50.0 s in 6 of 12 runs, 150 s in 6.";
    assert!(sentences.contains(&format!("Under `bfq`, {outcomes}")), "{sentences}");
    evidence.criteria = vec![of(vec![Some((100.0, Some(found.turned(100.0)))), Some((100.0, None))])];
    evidence.baseline = 1;
    let sentences = decide(&evidence).to_string();
    assert!(sentences.contains(&format!("Under `bfq`, {outcomes}")), "the baseline, too: {sentences}");
}
