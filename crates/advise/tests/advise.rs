//! Tests of advice on a simulated device: which settings run on the device, what the advice is, and
//! what the advice says if the search was wrong.

use std::sync::atomic::AtomicBool;

use iosched::Setting;
use iosched_advise::tune::{Finding, Selection, TuneResults, Tuned, Tuning, tune};
use iosched_advise::{Advice, Confirmed, candidates, simulated};
use iosched_disk::Profile;
use iosched_kernel::settings::{Change, Recorded};
use iosched_lab::verify::{Bench, Verification, VerifyError, for_records, verify};
use iosched_lab::{
    Control, DecisionKind, DeviceRecord, Doubt, Experiment, Figure, MeasuredRecord, Records, Results, ValueRecord,
    Verdict, workload_record,
};
use iosched_sim::{Limit, Plan, Replay, RunResult};
use iosched_testing::workloads::LOOKUPS_AND_BACKUP as TASKS;
use iosched_workload::{TaskSet, Workload};

/// One reader, so that no scheduler can improve anything.
const LONELY: &str = r#"
name = "lonely"
end_ns = 1_000_000_000
[[tasks]]
pid = 1
name = "lookup"
pattern = "random"
range = [0, 400_000_000]
"#;

fn workload(tasks: &str) -> Workload {
    Workload::Tasks(TaskSet::parse("tasks.toml", tasks).unwrap().into())
}

/// A simulated device, with the present scheduler.
struct Played {
    workload: Workload,
    profile: Profile,
    present: Setting,
    set: Setting,
}

impl Bench for Played {
    fn device(&self) -> DeviceRecord {
        let settings = vec![self.present.clone()];
        let experiment = Experiment::new(self.workload.clone(), self.profile.clone(), settings).unwrap();
        let mut device = experiment.header().devices.swap_remove(0);
        device.measured = Some(MeasuredRecord { target: "/dev/sda".into(), ..MeasuredRecord::default() });
        device
    }

    fn set(&mut self, setting: &Setting) -> Result<Vec<ValueRecord>, VerifyError> {
        self.set = if setting.is_present() { self.present.clone() } else { setting.clone() };
        Ok(Vec::new())
    }

    fn run(&mut self, seed: u64, _: &AtomicBool) -> Result<Option<RunResult>, VerifyError> {
        let plan = Plan { seed, ..Plan::new(&self.workload, &self.profile, self.set.clone()) };
        Ok(Some(iosched_sim::run(&plan, ()).unwrap()))
    }

    fn foreign(&self) -> Vec<Change> {
        Vec::new()
    }

    fn finish(&mut self) -> Result<Vec<Change>, VerifyError> {
        Ok(Vec::new())
    }
}

fn search(tasks: &str, profile: &str, present: &str, goal: &str) -> Tuned {
    let schedulers = ["none", "mq-deadline", "bfq"].map(Setting::defaults).to_vec();
    let experiment = Experiment::new(workload(tasks), Profile::named(profile).unwrap(), schedulers).unwrap();
    let mut tuning = Tuning::new(experiment, &Selection::default(), vec![goal.parse().unwrap()]).unwrap();
    tuning.baseline = present.parse().unwrap();
    tuning.budget = 60;
    tune(&tuning, &Control::new(2), |_| Ok(())).unwrap()
}

/// Runs of each setting on the device.
const RUNS: u32 = 8;

fn on_device(tasks: &str, profile: &str, present: &str, tried: &[Setting]) -> Records {
    let present: Setting = present.parse().unwrap();
    let (workload, profile) = (workload(tasks), Profile::named(profile).unwrap());
    let all = [Setting::present()].into_iter().chain(tried.iter().cloned());
    let verification = Verification {
        workload: workload_record(&workload),
        settings: all.map(for_records).collect(),
        baseline: 0,
        runs: RUNS,
        seed: 3,
        replay: Replay::Closed,
        warm_up_ns: 0,
        limit: Limit::default(),
        until_sure_percent: None,
        equal_within_percent: iosched_lab::EQUAL_WITHIN_PERCENT,
        goals: vec!["mean(lookup)".parse().unwrap()],
        command: "iosched advise /dev/sda".to_owned(),
    };
    let mut bench = Played { workload, profile, set: present.clone(), present };
    verify(&verification, &mut bench, &Control::new(1), |_| Ok(())).unwrap().records
}

/// Passes the advice for `device`, after a search on `model`, to `check`.
fn with_advice(tasks: &str, model: &str, device: &str, present: &str, check: impl FnOnce(&Advice<'_>)) {
    let search = search(tasks, model, present, "mean(lookup)");
    let predicted = TuneResults::of(&search.header, &search.runs);
    let tried = candidates(&predicted, true, 4);
    let records = on_device(tasks, device, present, &tried);
    let confirmed = Confirmed::of(&search.header, &records);
    let advice = Advice::of(present.to_owned(), Some(true), predicted, &confirmed);
    check(&advice);
}

#[test]
fn better_setting_on_the_device_is_advised_with_evidence() {
    with_advice(TASKS, "sata-7200", "sata-7200", "none", |advice| {
        assert_eq!(advice.measured.finding, Finding::Better, "{}", advice.decision());
        let best = advice.recommended().unwrap();
        assert_ne!(best.name(), "none");
        let decision = advice.decision();
        assert!(
            decision.sentences[0].starts_with(&format!("Set `{best}`: it shortens mean(lookup) by ")),
            "{decision}"
        );
        assert_eq!(decision.kind, DecisionKind::Change);
        // Every setting had as many runs as the present setting. The model of the search is the
        // device, so the prediction is right.
        assert!(advice.measured.standings.iter().all(|standing| standing.runs == RUNS as usize));
        let best = advice.predictions.iter().find(|prediction| prediction.label == best.to_string()).unwrap();
        let (predicted, measured) = (best.predicted[0].unwrap(), best.measured[0].unwrap());
        assert!((predicted.percent.unwrap() - measured.percent.unwrap()).abs() < 15.0, "{best:?}");
    });
}

#[test]
fn present_setting_is_kept_if_no_setting_is_better() {
    with_advice(LONELY, "sata-7200", "sata-7200", "mq-deadline", |advice| {
        assert_eq!(advice.recommended(), None);
        assert_eq!(advice.measured.finding, Finding::NothingBetter);
        let decision = advice.decision();
        assert!(decision.sentences[0].starts_with("Keep `mq-deadline`"), "{decision}");
    });
}

#[test]
fn device_runs_decide_over_the_model() {
    // The order of commands matters much on the model, but not on the device.
    with_advice(TASKS, "sata-7200", "nvme", "none", |advice| {
        let predicted = advice.predicted.recommended().unwrap();
        assert_ne!(predicted.label, "none");
        let measured =
            advice.predictions.iter().find(|prediction| prediction.label == predicted.label).unwrap().measured[0]
                .unwrap();
        let promised =
            advice.predictions.iter().find(|prediction| prediction.label == predicted.label).unwrap().predicted[0]
                .unwrap();
        assert!(promised.percent.unwrap() < -8.0, "{promised:?}");
        assert!(measured.percent.unwrap() > promised.percent.unwrap() / 2.0, "{measured:?}");
        // If they disagree, the decision says which evidence counts.
        let sentences = advice.decision().sentences.concat();
        let agree = advice.measured.recommended().is_some_and(|standing| standing.label == predicted.label);
        assert!(agree || sentences.contains("The runs on the device decide"), "{sentences}");
    });
}

/// Passes advice to `check`. `value(setting, run)` replaces the first goal's value of each run.
/// Setting 0 is the present setting.
fn with_values(value: impl Fn(usize, u32) -> f64, check: impl FnOnce(&Advice<'_>)) {
    let search = search(TASKS, "sata-7200", "none", "mean(lookup)");
    let predicted = TuneResults::of(&search.header, &search.runs);
    let tried = [Setting::defaults("mq-deadline"), Setting::defaults("bfq")];
    let mut confirmed = Confirmed::of(&search.header, &on_device(TASKS, "sata-7200", "none", &tried));
    confirmed.of_device = None;
    confirmed.runs.retain(|run| run.run < 5);
    for run in &mut confirmed.runs {
        let setting = ["present", "mq-deadline", "bfq"].iter().position(|label| *label == run.setting).unwrap();
        run.values[0] = Some(value(setting, run.run));
    }
    check(&Advice::of("none".to_owned(), Some(true), predicted, &confirmed));
}

#[test]
fn undecided_advice_names_the_number_of_runs_needed() {
    // The runs vary by more than the difference that bfq seems to make.
    let scattered = [0.0, 3.0, -2.0, 4.0, -4.0];
    with_values(
        |setting, run| 20.0 - setting as f64 + scattered[(setting + run as usize) % 5],
        |advice| {
            let (decision, doubts) = (advice.decision(), advice.doubts());
            let runs = advice.measured.standings.iter().find(|standing| standing.label == "bfq").unwrap();
            let runs = runs.figures[0].as_ref().unwrap().comparison.unwrap().runs_needed.unwrap();
            assert_eq!(decision.kind, DecisionKind::CannotTell);
            assert_eq!(decision.sentences[0], "Keep `none` for now: the runs do not show whether `bfq` is better.");
            let would = format!("About {runs} runs of each setting would give a verdict: --runs {runs}.");
            assert!(decision.sentences.contains(&would), "{decision}");
            // Other settings may need more runs, so the doubt names the setting.
            let named = format!("may show whether `bfq` is better in mean(lookup): add --runs {runs}, or");
            assert!(doubts.iter().any(|doubt| doubt.contains(&named)), "{doubts:?}");
        },
    );
    // A single comparison would show that bfq is better. Among several comparisons, a difference of
    // this size is often chance, so the interval contains 0.
    let noise = [0.0, 1.2, -1.2, 1.9, -1.9];
    with_values(
        |setting, run| 20.0 - if setting == 2 { 2.1 + noise[run as usize] } else { noise[run as usize % 2] },
        |advice| {
            let decision = advice.decision();
            let bfq = advice.measured.standings.iter().find(|standing| standing.label == "bfq").unwrap();
            let found = bfq.figures[0].as_ref().unwrap().comparison.unwrap();
            assert!(found.p.unwrap() < 0.05 && found.p.unwrap() > found.level, "{found:?}");
            let (low, high) = found.interval.unwrap();
            assert!(low < 0.0 && high > 0.0 && found.verdict == Verdict::CannotTell, "{found:?}");
            assert_eq!(decision.kind, DecisionKind::CannotTell, "{decision}");
        },
    );
}

#[test]
fn advice_and_comparison_have_the_same_verdicts() {
    let search = search(TASKS, "sata-7200", "none", "mean(lookup)");
    let tried = [Setting::defaults("mq-deadline"), Setting::defaults("bfq")];
    let records = on_device(TASKS, "sata-7200", "none", &tried);
    let confirmed = Confirmed::of(&search.header, &records);
    let (above, below) = (confirmed.results(), Results::of(records.on(0).unwrap()));
    let mut compared = 0;
    for (number, measure) in above.header.measures.iter().enumerate() {
        let Some(figure) = below.named(&measure.name) else { continue };
        for (setting, record) in records.header.settings.iter().enumerate().skip(1) {
            let standing = above.standings.iter().find(|standing| standing.label == record.label).unwrap();
            let comparison = standing.figures[number].as_ref().and_then(|figure| figure.comparison);
            assert_eq!(
                comparison,
                figure.settings[setting].as_ref().and_then(|figure| figure.comparison),
                "{}",
                measure.name
            );
            compared += 1;
        }
    }
    assert!(compared >= 10, "{compared}");
    // Only the goal is used for conclusions.
    let goal = below.named("mean(lookup)").unwrap();
    assert!(goal.concludes() && !below.figure(Figure::SyncP99).unwrap().concludes());
}

#[test]
fn advice_names_starving_tasks_first() {
    let search = search(TASKS, "sata-7200", "none", "mean(lookup)");
    let predicted = || TuneResults::of(&search.header, &search.runs);
    let records = on_device(TASKS, "sata-7200", "none", &candidates(&predicted(), true, 4));
    let mut confirmed = Confirmed::of(&search.header, &records);
    let advised =
        Advice::of("none".to_owned(), Some(false), predicted(), &confirmed).recommended().unwrap().to_string();
    for (label, task) in [("another", "reader"), (advised.as_str(), "backup")] {
        let (settings, task) = (vec![label.to_owned()], task.to_owned());
        confirmed.of_device.as_mut().unwrap().doubts.push(Doubt::Starved { settings, task, percent: 1.0 });
    }
    let advice = Advice::of("none".to_owned(), Some(false), predicted(), &confirmed);
    assert!(advice.doubts()[0].starts_with(&format!("`{advised}`: backup starves")), "{:?}", advice.doubts());
    assert!(advice.reservations.iter().any(|reservation| reservation.starts_with("`another`: reader starves")));
}

#[test]
fn candidates_include_the_best_of_every_scheduler() {
    let search = search(TASKS, "sata-7200", "none", "mean(lookup)");
    let results = TuneResults::of(&search.header, &search.runs);
    let best = results.recommended().unwrap().setting.clone();
    let names = |all: &[Setting]| all.iter().map(|setting| setting.name().to_owned()).collect::<Vec<_>>();
    let few = candidates(&results, true, 1);
    assert_eq!(few, std::slice::from_ref(&best));
    let all = candidates(&results, true, 9);
    assert_eq!(all[0], best);
    assert!(!all.contains(&search.header.baseline), "{all:?}");
    for name in ["mq-deadline", "bfq"] {
        assert!(names(&all).contains(&name.to_owned()), "{all:?}");
    }
    // If the model does not fit, every scheduler is tried with its defaults, even above the given
    // limit.
    let blind = candidates(&results, false, 1);
    for name in ["mq-deadline", "bfq"] {
        assert!(blind.contains(&Setting::defaults(name)), "{blind:?}");
    }
}

#[test]
fn present_setting_maps_to_a_known_scheduler_setting() {
    let recorded = |scheduler: &str, name: &str, value: &str| Recorded {
        scheduler: scheduler.to_owned(),
        values: vec![(name.to_owned(), value.to_owned()), ("nr_requests".to_owned(), "64".to_owned())],
    };
    let of = |recorded: &Recorded| simulated(recorded).map(|setting| setting.to_string());
    assert_eq!(of(&recorded("bfq", "iosched/low_latency", "0")).as_deref(), Some("bfq:low_latency=0"));
    assert_eq!(of(&recorded("bfq", "iosched/low_latency", "1")).as_deref(), Some("bfq"));
    assert_eq!(of(&recorded("another", "iosched/depth", "1")), None);
}
