//! Tests of summaries, from tables with a known answer.

use iosched_numbers::SplitMix64;
use iosched_sweep::{Choice, Strategy, Summary, Table, Values};

/// A volume: workload, device, number of I/Os, and for each setting the label, the mean of the
/// metric and the verdict.
struct TestVolume {
    workload: String,
    device: &'static str,
    settings: Vec<(&'static str, f64, &'static str)>,
    ios: u64,
}

const RUNS: u64 = 10;

fn tables(volumes: &[TestVolume], noise: f64, seed: u64) -> (Table, Table) {
    let mut random = SplitMix64::new(seed);
    let (mut workload, mut device, mut scheduler, mut run, mut value) = (vec![], vec![], vec![], vec![], vec![]);
    let mut verdict_rows = Vec::new();
    for volume in volumes {
        for &(label, mean, verdict) in &volume.settings {
            for number in 0..RUNS {
                // The sum of twelve uniform values has approximately a normal distribution.
                let normal: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
                workload.push(Some(volume.workload.clone()));
                device.push(Some(volume.device.to_owned()));
                scheduler.push(Some(label.to_owned()));
                run.push(Some(number));
                value.push(Some(mean * (normal * noise).exp()));
            }
            verdict_rows.push((volume, label, verdict));
        }
    }
    let count = value.len();
    let text = |value: &str, count: usize| Values::Text(vec![Some(value.to_owned()); count]);
    let runs = Table::default()
        .with("workload", Values::Text(workload))
        .with("device", Values::Text(device))
        .with("scheduler", Values::Text(scheduler))
        .with("metric", text("sync_mean", count))
        .with("seed", Values::Whole(vec![Some(1); count]))
        .with("run", Values::Whole(run))
        .with("value", Values::Number(value));
    let count = verdict_rows.len();
    let verdicts = Table::default()
        .with("workload", verdict_rows.iter().map(|row| Some(row.0.workload.clone())).collect())
        .with("device", verdict_rows.iter().map(|row| Some(row.0.device.to_owned())).collect())
        .with("scheduler", verdict_rows.iter().map(|row| Some(row.1.to_owned())).collect())
        .with("metric", text("sync_mean", count))
        .with("unit", text("ms", count))
        .with("better", text("lower", count))
        .with("baseline", verdict_rows.iter().map(|row| Some(row.2.is_empty())).collect())
        .with("verdict", verdict_rows.iter().map(|row| (!row.2.is_empty()).then(|| row.2.to_owned())).collect())
        .with("ios", verdict_rows.iter().map(|row| Some(row.0.ios)).collect())
        .with("doubts", text("", count));
    (runs, verdicts)
}

fn volume(number: usize, device: &'static str, settings: &[(&'static str, f64, &'static str)]) -> TestVolume {
    TestVolume { workload: format!("v{number}"), device, settings: settings.to_vec(), ios: 1_000 }
}

#[test]
fn gains_match_the_known_effect_of_settings() {
    // bfq halves the metric on disks and doubles it on flash. One setting for all volumes gains
    // nothing, but one setting for each device gains a lot.
    let mut volumes: Vec<TestVolume> = (0..20)
        .map(|n| volume(n, "disk", &[("none", 10.0, ""), ("bfq", 5.0, "better")]))
        .chain((20..40).map(|n| volume(n, "flash", &[("none", 1.0, ""), ("bfq", 2.0, "worse")])))
        .collect();
    volumes[0].ios = 1_000_000;
    let (runs, verdicts) = tables(&volumes, 0.02, 1);
    let summary = Summary::of(&runs, &verdicts, "sync_mean").unwrap();
    assert_eq!(
        [Choice::Better, Choice::NothingBetter, Choice::CannotTell].map(|choice| summary.count(choice)),
        [20, 20, 0]
    );
    assert_eq!(summary.chosen(), [("bfq", 20), ("none", 20)]);
    assert_eq!(summary.choices(), [("bfq", Choice::Better, 20), ("none", Choice::NothingBetter, 20)]);
    let [common, device, each] = &summary.gains[..] else { panic!("{:?}", summary.gains) };
    assert_eq!(
        (common.strategy, device.strategy, each.strategy),
        (Strategy::Common, Strategy::PerDevice, Strategy::PerVolume)
    );
    assert!(common.percent.abs() < 2.0, "{common:?}");
    // One half of the volumes changes by a factor of 0.5. The geometric mean of all changes is
    // therefore the square root of 0.5.
    for gain in [device, each] {
        assert!((gain.percent - (0.5_f64.sqrt() - 1.0) * 100.0).abs() < 1.0, "{gain:?}");
        let (low, high) = gain.interval.unwrap();
        assert!(low < gain.percent && gain.percent < high);
        // The volume with nearly all I/Os is on a disk.
        assert!(gain.total_percent.unwrap() < -45.0, "{gain:?}");
        assert!(gain.is_gain);
    }
    assert_eq!(device.settings["disk"], "bfq");
    assert_eq!(device.settings["flash"], "none");
    let text = summary.answer();
    let head = "Set `bfq` on 20 of 40 volumes. This clearly improves the mean latency of sync I/O. Keep `none` \
                on 20 of 40 volumes: no setting improves the mean latency of sync I/O. Each pair of a workload and a device is called a \
                volume.";
    assert!(text.starts_with(head), "{text}");
    let gain =
        "With one setting for each device (`bfq` on disk, `none` on flash), the mean latency of sync I/O is 29 % less";
    assert!(text.contains(gain), "{text}");
    let sentences = summary.decision();
    assert!(
        sentences
            .iter()
            .any(|sentence| sentence.starts_with("With one setting for each volume, ")
                && sentence.ends_with(" in total."))
    );
}

#[test]
fn noise_gives_no_gain() {
    // All settings are equal. By chance, the best of the eight looks better for each volume. If the
    // same runs chose and judged the settings, the gain would seem to be 8 %.
    let labels = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut settings: Vec<(&str, f64, &str)> = labels.iter().map(|label| (*label, 10.0, "cannot_tell")).collect();
    settings[0].2 = "";
    let volumes: Vec<TestVolume> = (0..200).map(|n| volume(n, "disk", &settings)).collect();
    let (runs, verdicts) = tables(&volumes, 0.2, 7);
    let summary = Summary::of(&runs, &verdicts, "sync_mean").unwrap();
    let each = summary.gains.iter().find(|gain| gain.strategy == Strategy::PerVolume).unwrap();
    let (low, high) = each.interval.unwrap();
    assert!(low < 0.0 && 0.0 < high && each.percent.abs() < 2.0, "{each:?}");
    // For each volume, the runs do not decide, so the baseline stays.
    assert!(summary.count(Choice::CannotTell) > 180);
    assert!(summary.answer().contains(
        " for now: there are too few runs to tell whether another setting improves the mean latency of sync I/O."
    ));
    assert_eq!(summary.chosen(), [("a", 200)]);
    assert!(
        summary.doubts.iter().any(|doubt| doubt.contains("there are too few runs to tell")),
        "{:?}",
        summary.doubts
    );
    let page = summary.html();
    assert!(page.contains("Doubtful volumes") && page.contains("v199"));
}

#[test]
fn single_run_gives_no_verdict() {
    let (runs, verdicts) = tables(&[volume(0, "disk", &[("none", 10.0, ""), ("bfq", 5.0, "cannot_tell")])], 0.0, 1);
    let first = |table: &Table| {
        let rows: Vec<usize> = (0..table.rows()).filter(|&row| table.whole("run").unwrap()[row] == Some(0)).collect();
        let pick = |name: &str| rows.iter().map(|&row| table.text(name).unwrap()[row].clone()).collect::<Values>();
        let whole = |name: &str| rows.iter().map(|&row| table.whole(name).unwrap()[row]).collect::<Values>();
        let mut all = Table::default();
        for name in ["workload", "device", "scheduler", "metric"] {
            all = all.with(name, pick(name));
        }
        all.with("seed", whole("seed"))
            .with("run", whole("run"))
            .with("value", rows.iter().map(|&row| table.number("value").unwrap()[row]).collect())
    };
    let summary = Summary::of(&first(&runs), &verdicts, "sync_mean").unwrap();
    assert_eq!(summary.gains, []);
    assert_eq!(summary.volumes[0].choice, Choice::CannotTell);
    assert!(summary.doubts[0].contains("1 volumes have only one run"), "{:?}", summary.doubts);
}

#[test]
fn error_names_a_missing_column() {
    let other = Table::default().with("x", Values::Text(vec![None]));
    let error = Summary::of(&other, &other, "sync_mean").unwrap_err().to_string();
    assert!(error.contains("has no column workload"), "{error}");
}
