//! Tests of searches: the settings that they find, the false claims that they avoid, and the
//! reproducibility of their records.

use std::io::BufReader;

use iosched::Setting;
use iosched_advise::tune::{
    Finding, Phase, Progress, Selection, TuneError, TuneRecord, TuneResults, Tuned, Tuning, read, tune,
};
use iosched_disk::Profile;
use iosched_lab::{Control, Experiment};
use iosched_workload::{TaskSet, Workload};

/// A random reader and two sequential readers with think time. CFQ
/// idles for the sequential readers while the random reader waits.
const SHARED: &str = r#"
name = "shared"
end_ns = 1_500_000_000
[[tasks]]
pid = 1
name = "scan"
pattern = "seq"
nr_sectors = 128
start_sector = 200_000_000
think_ns = [200000, 1500000]
[[tasks]]
pid = 2
name = "scan"
pattern = "seq"
nr_sectors = 128
start_sector = 1_200_000_000
think_ns = [200000, 1500000]
[[tasks]]
pid = 3
name = "lookup"
pattern = "random"
range = [600_000_000, 1_000_000_000]
think_ns = [1000000, 6000000]
"#;

/// One reader with one I/O at a time, so that no scheduler can improve anything.
const LONELY: &str = r#"
name = "lonely"
end_ns = 1_000_000_000
[[tasks]]
pid = 1
name = "reader"
pattern = "random"
range = [0, 1_000_000_000]
"#;

fn tuning(tasks: &str, schedulers: &[&str], goals: &[&str], budget: u32) -> Tuning {
    let workload = Workload::Tasks(TaskSet::parse("tasks.toml", tasks).unwrap().into());
    let schedulers = schedulers.iter().map(|text| text.parse().unwrap()).collect();
    let experiment = Experiment::new(workload, Profile::named("sata-7200").unwrap(), schedulers).unwrap();
    let goals = goals.iter().map(|text| text.parse().unwrap()).collect();
    let mut tuning = Tuning::new(experiment, &Selection::default(), goals).unwrap();
    tuning.budget = budget;
    tuning
}

fn run(tuning: &Tuning) -> Tuned {
    let tuned = tune(tuning, &Control::new(2), |_| Ok(())).unwrap();
    assert!(!tuned.interrupted);
    tuned
}

fn set(setting: &Setting, name: &str) -> Option<String> {
    setting.tunables().iter().find(|tunable| tunable.name() == name).map(iosched::Assignment::text)
}

#[test]
fn search_confirms_a_gain_and_drops_needless_tunables() {
    let tuned = run(&tuning(SHARED, &["cfq"], &["mean(lookup)"], 150));
    let results = TuneResults::of(&tuned.header, &tuned.runs);
    assert_eq!(results.finding, Finding::Better);
    let best = results.recommended().unwrap();
    assert_eq!(set(&best.setting, "slice_idle").as_deref(), Some("0"), "{}", best.label);
    assert!(best.changes <= 3, "{}", best.label);
    let percent = best.figures[0].as_ref().unwrap().comparison.unwrap().percent.unwrap();
    assert!(percent < -30.0, "{percent}");
    // The confirming runs share no seed with the search.
    let seeds = |phase| tuned.runs.iter().filter(move |run| run.phase == phase).map(|run| run.seed);
    assert!(seeds(Phase::Confirm).all(|seed| seeds(Phase::Search).all(|other| other != seed)));
    // The results contain the value of the change, and show that the tunable matters.
    assert!(
        results
            .put_back
            .iter()
            .any(|removed| removed.name == "slice_idle" && removed.comparisons[0].percent.unwrap() > 30.0)
    );
    assert_eq!(results.shares.first().map(|share| share.name.as_str()), Some("slice_idle"));
    assert!(tuned.runs.len() <= 150, "{}", tuned.runs.len());
}

#[test]
fn default_is_recommended_if_no_tunable_matters() {
    for (tasks, scheduler) in [(LONELY, "deadline"), (SHARED, "noop")] {
        let tuned = run(&tuning(tasks, &[scheduler], &["p99(sync)"], 60));
        let results = TuneResults::of(&tuned.header, &tuned.runs);
        assert_eq!(results.finding, Finding::NothingBetter, "{scheduler}");
        assert_eq!(results.recommended().unwrap().label, scheduler);
        assert_eq!((results.shares.len(), results.put_back.len()), (0, 0));
    }
}

#[test]
fn better_of_two_schedulers_is_recommended() {
    let tuned = run(&tuning(SHARED, &["cfq", "deadline"], &["mean(lookup)"], 100));
    let results = TuneResults::of(&tuned.header, &tuned.runs);
    let tried = |name: &str| tuned.runs.iter().any(|run| run.setting == name);
    assert!(tried("cfq") && tried("deadline"));
    // The elevator with its defaults is good enough, so the recommendation sets no tunable of
    // deadline.
    assert_eq!(results.recommended().unwrap().label, "deadline");
}

/// A reader, and a backup of class idle that always has I/O to do.
const IDLE_BACKUP: &str = r#"
name = "idle-backup"
end_ns = 4_000_000_000
[[tasks]]
pid = 1
name = "reader"
pattern = "random"
range = [0, 400_000_000]
[[tasks]]
pid = 2
name = "backup"
class = "idle"
pattern = "random"
range = [800_000_000, 1_200_000_000]
"#;

#[test]
fn decision_names_tasks_that_starve_under_the_setting() {
    let tuned = run(&tuning(IDLE_BACKUP, &["none", "bfq"], &["mean(reader)"], 60));
    let results = TuneResults::of(&tuned.header, &tuned.runs);
    let best = results.recommended().unwrap();
    assert!(best.label.starts_with("bfq"), "{}", best.label);
    let decision = results.decision().to_string();
    assert!(decision.contains("The cost: it starves the task backup"), "{decision}");
    assert!(results.baseline().unwrap().starved.is_empty());
    // The records contain the evidence.
    assert!(tuned.runs.iter().filter(|run| run.setting == best.label).any(|run| run.starved[..] == best.starved[..]));
}

#[test]
fn recommended_setting_meets_all_constraints() {
    let mut tuning = tuning(SHARED, &["cfq"], &["throughput"], 120);
    let free = run(&tuning);
    let free = TuneResults::of(&free.header, &free.runs).recommended().unwrap().label.clone();
    tuning.constraints = vec!["mean(lookup) <= 60%".parse().unwrap(), "throughput >= 1 kB/s".parse().unwrap()];
    let tuned = run(&tuning);
    let results = TuneResults::of(&tuned.header, &tuned.runs);
    let best = results.recommended().unwrap();
    assert_eq!(results.finding, Finding::Allowed);
    assert_ne!(best.label, free);
    assert!(best.constraints.iter().all(|constraint| constraint.kept), "{best:?}");
    assert!(!results.baseline().unwrap().constraints[0].kept);
    assert!((best.constraints[1].limit - 0.001).abs() < 1e-12);
}

#[test]
fn unmet_constraint_is_reported() {
    let mut tuning = tuning(SHARED, &["cfq"], &["mean(lookup)"], 60);
    tuning.constraints = vec!["throughput >= 1000%".parse().unwrap()];
    let tuned = run(&tuning);
    let results = TuneResults::of(&tuned.header, &tuned.runs);
    assert_eq!((results.finding, results.recommended()), (Finding::NothingAllowed, None));
    assert!(!results.standings.is_empty());
}

#[test]
fn settings_of_the_front_trade_one_goal_for_another() {
    let tuned = run(&tuning(SHARED, &["cfq"], &["throughput", "mean(lookup)"], 150));
    let results = TuneResults::of(&tuned.header, &tuned.runs);
    assert!(results.front.len() >= 2, "{:?}", results.front);
    let of = |number: usize, goal: usize| results.standings[number].figures[goal].as_ref().unwrap().mean;
    for pair in results.front.windows(2) {
        assert!(of(pair[0], 0) > of(pair[1], 0), "the front is sorted by the first goal");
        assert!(of(pair[0], 1) > of(pair[1], 1), "a loss in the first goal is a gain in the second");
    }
}

#[test]
fn fairness_is_accepted_as_a_goal() {
    let tuned = run(&tuning(SHARED, &["cfq"], &["fairness"], 40));
    assert_eq!(tuned.header.measures[0].name, "fairness");
    assert!(tuned.runs.iter().all(|run| run.values[0].is_some_and(|fairness| (0.0..=1.0).contains(&fairness))));
}

/// Returns the records as lines.
fn lines(tuning: &Tuning, jobs: usize) -> String {
    let mut text = String::new();
    tune(tuning, &Control::new(jobs), |progress| {
        if let Progress::Record(record) = progress {
            text.push_str(&serde_json::to_string(record).unwrap());
            text.push('\n');
        }
        Ok(())
    })
    .unwrap();
    text
}

#[test]
fn records_are_independent_of_the_number_of_threads() {
    let tuning = tuning(SHARED, &["cfq", "deadline"], &["p99(sync)", "throughput"], 80);
    let one = lines(&tuning, 1);
    assert_eq!(one, lines(&tuning, 4));
    let mut other = tuning.clone();
    other.experiment.seed = 2;
    assert_ne!(one, lines(&other, 4));
}

#[test]
fn records_round_trip_and_give_the_same_results() {
    let tuning = tuning(SHARED, &["cfq"], &["mean(lookup)"], 60);
    let text = lines(&tuning, 2);
    let (header, runs) = read(BufReader::new(text.as_bytes()), "records").unwrap();
    let tuned = run(&tuning);
    assert_eq!((&header, &runs), (&tuned.header, &tuned.runs));
    let results = |header, runs: &[_]| serde_json::to_value(TuneResults::of(header, runs)).unwrap();
    assert_eq!(results(&header, &runs), results(&tuned.header, &tuned.runs));
    let cut = &text[..text.len() - 20];
    assert_eq!(read(BufReader::new(cut.as_bytes()), "records").unwrap().1.len(), runs.len() - 1);
    assert!(read(BufReader::new(&b"{}\n"[..]), "records").is_err());
}

#[test]
fn interrupted_search_keeps_its_runs_and_recommends_nothing() {
    let tuning = tuning(SHARED, &["cfq"], &["mean(lookup)"], 100);
    let whole = run(&tuning);
    let control = Control::new(2);
    let mut seen = 0;
    let tuned = tune(&tuning, &control, |progress| {
        if let Progress::Record(TuneRecord::Trial(_)) = progress {
            seen += 1;
            if seen == 20 {
                control.interrupt();
            }
        }
        Ok(())
    })
    .unwrap();
    assert!(tuned.interrupted && tuned.runs.len() >= 20 && tuned.runs.len() < whole.runs.len());
    assert_eq!(tuned.runs[..20], whole.runs[..20]);
    let results = TuneResults::of(&tuned.header, &tuned.runs);
    assert_eq!((results.finding, results.recommended()), (Finding::Unconfirmed, None));
    assert!(results.leading.is_some());
}

#[test]
fn baseline_may_be_outside_the_search_space() {
    let mut tuning = tuning(SHARED, &["deadline"], &["mean(lookup)"], 60);
    tuning.baseline = "cfq:slice_idle=16".parse().unwrap();
    let tuned = run(&tuning);
    let results = TuneResults::of(&tuned.header, &tuned.runs);
    assert_eq!(results.baseline().unwrap().label, "cfq:slice_idle=16");
    assert_eq!(results.recommended().unwrap().label, "deadline");
}

#[test]
fn errors_of_invalid_goals_name_valid_ones() {
    let error = |goal: &str, constraint: Option<&str>| {
        let mut tuning = tuning(SHARED, &["cfq"], &[goal], 60);
        tuning.constraints = constraint.iter().map(|text| text.parse().unwrap()).collect();
        tune(&tuning, &Control::new(1), |_| Ok(())).unwrap_err().to_string()
    };
    assert!(error("p99(writer)", None).contains("lookup, scan"), "{}", error("p99(writer)", None));
    assert!(error("tps", None).contains("p99(sync)"));
    assert!(error("p99(async)", None).contains("no such metric"));
    assert!(error("throughput", Some("throughput >= 5 ms")).contains("MB/s"));
    let mut small = tuning(SHARED, &["cfq"], &["throughput"], 5);
    assert!(matches!(tune(&small, &Control::new(1), |_| Ok(())), Err(TuneError::Budget { .. })));
    (small.budget, small.goals) = (60, Vec::new());
    assert!(matches!(tune(&small, &Control::new(1), |_| Ok(())), Err(TuneError::NoGoal)));
}
