//! Tests of published experiments: their data, and the results of synthetic runs.

use std::path::PathBuf;

use iosched_lab::RecordWriter;
use iosched_lab::reproduce::{
    CaseRun, Experiment, ExperimentResults, Family, Known, Origin, ReproductionHeader, ReproductionRecord, Summary,
    read,
};
use iosched_workload::app::{Better, Figure, Report, Series};

/// Returns the directory of the published figures, which is next to the repository.
fn published() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found =
        [root.join("../shared/published"), root.join("shared/published")].into_iter().find(|path| path.is_dir());
    if found.is_none() {
        eprintln!("skipped: there is no folder shared/published beside the repository");
    }
    found
}

/// Field of a line, by the name of its column.
type Field<'a> = &'a dyn Fn(&str) -> String;

/// Returns the lines of a published file, with each field under the name of its column.
fn table(file: &std::path::Path) -> Vec<Vec<(String, String)>> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let columns: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    lines.map(|line| columns.iter().cloned().zip(line.split(',').map(str::to_owned)).collect()).collect()
}

fn known(experiment: &Experiment, case: &str, test: &str, unit: &str, setting: &str) -> Option<Known> {
    let mut all = experiment.published.iter();
    all.find(|published| {
        (&*published.case, &*published.test, &*published.unit, &*published.setting) == (case, test, unit, setting)
    })
    .map(|published| published.known)
}

#[test]
fn experiments_contain_every_published_figure() {
    let Some(folder) = published() else { return };
    let mut counts = Vec::new();
    let mut check = |file: &str, name: &str, rows: &dyn Fn(Field<'_>) -> Vec<[String; 6]>| {
        let experiment = Experiment::named(name).unwrap();
        let table = table(&folder.join(file));
        for line in &table {
            let field = |column: &str| line.iter().find(|(name, _)| name == column).unwrap().1.clone();
            for [case, test, unit, setting, mean, sd] in rows(&field) {
                let found = known(&experiment, &case, &test, &unit, &setting);
                let expected = Known { mean: mean.parse().unwrap(), sd: sd.parse().ok() };
                assert_eq!(found, Some(expected), "{name}: {case}/{test} {unit} {setting}");
                counts.push(name.to_owned());
            }
        }
    };
    let text = str::to_owned;
    let quantum = |case: String, test: String, unit: String, field: Field<'_>| -> Vec<[String; 6]> {
        let row = |quantum: &str| {
            let [mean, sd] = ["mean", "sd"].map(|what| field(&format!("quantum{quantum}_{what}")));
            [case.clone(), test.clone(), unit.clone(), format!("quantum={quantum}"), mean, sd]
        };
        vec![row("4"), row("32")]
    };
    check("fdtree.csv", "quantum", &|field| {
        quantum(format!("fdtree {}", field("test")), field("phase"), field("unit"), field)
    });
    check("iozone.csv", "quantum", &|field| {
        quantum(format!("iozone {}", field("record")), field("test"), text("KB/s"), field)
    });
    check("fsync-yield.csv", "fsync-yield", &|field| {
        let case = format!("iozone 64k {}", field("device"));
        vec![[case, field("test"), text("KB/s"), field("scheduler"), field("kb_per_s"), text("")]]
    });
    check("dd-desktop.csv", "dd", &|field| {
        let row = |unit: &str, column: &str| {
            [field("test"), field("test"), text(unit), field("scheduler"), field(column), text("")]
        };
        vec![row("s", "seconds"), row("MB/s", "mb_per_s")]
    });
    check("tpcc.csv", "tpcc", &|field| {
        let row = |(column, test, unit): (&str, &str, &str)| {
            [text("tpcc"), text(test), text(unit), field("test"), field(column), text("")]
        };
        let rates = ["tps", "user_calls", "physical_reads", "physical_writes"].map(|name| row((name, name, "1/s")));
        rates.into_iter().chain([row(("log_file_sync_pct", "log_file_sync", "%"))]).collect()
    });
    // The experiments contain only published figures. The four figures of 32 writers are computed
    // from published figures.
    let all = Experiment::all().unwrap();
    for experiment in
        all.iter().filter(|experiment| experiment.family == Family::Cfq && experiment.name != "low-latency")
    {
        let given = experiment.published.iter().filter(|published| published.origin == Origin::Given);
        assert_eq!(counts.iter().filter(|name| **name == experiment.name).count(), given.count());
    }
    let low_latency = Experiment::named("low-latency").unwrap();
    let seconds: Vec<f64> =
        table(&folder.join("dd-32-writers.csv")).iter().map(|line| line[1].1.parse().unwrap()).collect();
    assert_eq!(low_latency.series[0].values, seconds);
    let last = seconds.iter().copied().fold(0.0, f64::max);
    let published = known(&low_latency, "32 writers", "write_last", "s", "low_latency=1").unwrap();
    assert_eq!(published.mean, last);
}

/// Returns experiment, case, test and unit of the figure that a line of `held-out-1.csv` names.
fn held_out_place(experiment: &str, case: &str) -> Option<[String; 4]> {
    let (first, unit) = case.rsplit_once(' ').unwrap_or((case, ""));
    let place = |parts: [&str; 4]| Some(parts.map(str::to_owned));
    match experiment {
        "fdtree" => {
            let (tree, test) = first.split_once(' ')?;
            place(["quantum", &format!("fdtree {}", tree.replace("medium", "large")), test, unit])
        }
        "fs_mark" => place(["fsync-yield", &format!("fs_mark {first}"), "fs_mark", unit]),
        "dd copy" => place(["dd", "copy", "copy", "s"]),
        "tpcc" => place(["tpcc", "tpcc", "tps", "1/s"]),
        _ => place(["quantum", experiment, case, "KB/s"]).filter(|_| experiment.starts_with("iozone")),
    }
}

#[test]
fn every_held_out_figure_is_present_and_marked() {
    let Some(file) = published().map(|folder| folder.join("held-out-1.csv")).filter(|file| file.is_file()) else {
        return;
    };
    let mut found = 0;
    for line in &table(&file) {
        let field = |column: &str| line.iter().find(|(name, _)| name == column).unwrap().1.clone();
        let Some([experiment, case, test, unit]) = held_out_place(&field("experiment"), &field("case")) else {
            continue;
        };
        let mut setting = field("setting").replace("quantum", "quantum=");
        if experiment == "tpcc" {
            setting = field("case")[..1].to_owned();
        }
        let experiment = Experiment::named(&experiment).unwrap();
        let mut all = experiment.published.iter();
        let published = all
            .find(|published| {
                (&*published.case, &*published.test, &*published.unit, &*published.setting)
                    == (&*case, &*test, &*unit, &*setting)
            })
            .unwrap_or_else(|| panic!("{case}/{test} {unit} under {setting}"));
        let expected = Known { mean: field("mean").parse().unwrap(), sd: field("sd").parse().ok() };
        assert_eq!((published.known, published.origin), (expected, Origin::HeldOut), "{case}/{test}");
        found += 1;
    }
    let all = Experiment::all().unwrap();
    let kept_back =
        all.iter().flat_map(|published| &published.published).filter(|published| published.origin == Origin::HeldOut);
    assert_eq!(kept_back.count(), found);
}

fn report(figures: &[(&str, &'static str, f64)]) -> Report {
    let better = |unit: &str| if unit == "s" { Better::Lower } else { Better::Higher };
    let figure = |&(name, unit, value): &(&str, &'static str, f64)| Figure {
        name: name.to_owned(),
        unit: unit.into(),
        value,
        better: better(unit),
    };
    Report { figures: figures.iter().map(figure).collect(), series: Vec::new() }
}

/// Returns runs of two settings of quantum's `iozone 4M`, with only one of its tests.
fn iozone(test: &'static str, runs: &[(f64, f64)]) -> Vec<CaseRun> {
    let run = |number: usize, setting: &str, value: f64| {
        let report = report(&[(test, "KB/s", value)]);
        CaseRun::new("quantum", "iozone 4M", setting, (number as u32, 7), 300_000_000_000, &report)
    };
    let both = |(number, &(four, more)): (usize, &(f64, f64))| {
        [run(number, "quantum=4", four), run(number, "quantum=32", more)]
    };
    runs.iter().enumerate().flat_map(both).collect()
}

#[test]
fn results_list_published_and_simulated_values_with_verdicts() {
    let experiment =
        Experiment::with_cases(vec![Experiment::named("quantum").unwrap()], "iozone 4M").unwrap().remove(0);
    let runs = iozone("random_write", &[(76_000.0, 85_000.0), (76_200.0, 85_300.0), (76_100.0, 85_100.0)]);
    let results = ExperimentResults::of(&experiment, &runs);
    let row = results.rows.iter().find(|row| row.test == "random_write").unwrap();
    assert_eq!(row.cells[0].simulated.as_ref().unwrap().values, [76_000.0, 76_200.0, 76_100.0]);
    assert_eq!((row.cells[1].same(), row.cells[1].is_near()), (Some(true), Some(true)));
    // `random_write` transfers 16 GiB at 85 MB/s.
    assert!(!row.is_short() && row.seconds_min.unwrap() > 190.0);
    let lines: Vec<serde_json::Value> = results.lines().map(|line| serde_json::to_value(line).unwrap()).collect();
    let rows: Vec<_> = lines.iter().filter(|line| line["case"] == "iozone 4M/random_write").collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["verdict_published"], "baseline");
    assert_eq!(rows[1]["verdict_published"], "better");
    assert_eq!(rows[1]["verdict_simulated"], "better");
    assert_eq!(rows[1]["published_mean"], 86_134.5);
    let keys: Vec<&String> = rows[1].as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 15);
    for key in
        ["experiment", "case", "setting", "unit", "published_mean", "published_sd", "simulated_mean", "simulated_sd"]
    {
        assert!(keys.iter().any(|present| *present == key), "{key}");
    }
    // A case that was published but not run has a row without simulated values.
    let write = lines.iter().find(|line| line["case"] == "iozone 4M/write").unwrap();
    assert!(write["simulated_mean"].is_null() && write["verdict_simulated"].is_null());
}

#[test]
fn results_have_only_goals_of_cases_that_were_run() {
    let experiment =
        Experiment::with_cases(vec![Experiment::named("quantum").unwrap()], "iozone 4M").unwrap().remove(0);
    let met = |test, runs: &[(f64, f64)]| {
        let runs = iozone(test, runs);
        let results = ExperimentResults::of(&experiment, &runs);
        assert_eq!(results.goals.len(), 1, "the goal for the deviation of rewrite");
        (results.goals[0].1.met, Summary::of(&[results], 3))
    };
    let (unmeasured, summary) = met("random_write", &[(76_000.0, 85_000.0), (76_200.0, 85_300.0)]);
    assert_eq!((unmeasured, summary.goals_met, summary.goals), (None, 0, 0));
    assert_eq!((summary.verdicts_same, summary.verdicts), (1, 1));
    assert_eq!((summary.figures_near, summary.figures), (2, 2));
    let (wider, summary) = met("rewrite", &[(76_000.0, 98_000.0), (90_000.0, 98_010.0)]);
    assert_eq!((wider, summary.goals_met, summary.goals), (Some(true), 1, 1));
    assert!(summary.sentence().ends_with("goals met: 1 of 1"), "{}", summary.sentence());
}

#[test]
fn only_rounds_with_all_settings_count() {
    let experiment = Experiment::named("quantum").unwrap();
    let mut runs = iozone("random_write", &[(1.0, 1.0), (3.0, 3.0)]);
    runs.pop();
    let results = ExperimentResults::of(&experiment, &runs);
    let row = results.rows.iter().find(|row| row.test == "random_write" && row.cells[0].simulated.is_some()).unwrap();
    assert_eq!(row.cells[0].simulated.as_ref().unwrap().values, [1.0]);
    assert_eq!(results.rounds.iter().sum::<usize>(), 1);
}

#[test]
fn tenth_is_no_difference_without_published_deviations() {
    let experiment = Experiment::named("dd").unwrap();
    let run = |setting: &str, number: u32, value: f64| {
        let report = report(&[("write", "s", value)]);
        CaseRun::new("dd", "write", setting, (number, 1), 10_000_000_000, &report)
    };
    let runs: Vec<CaseRun> = (0..3)
        .flat_map(|number| {
            let off = f64::from(number) / 1000.0;
            [run("noop", number, 10.0 + off), run("deadline", number, 9.9 + off), run("cfq", number, 10.8 + off)]
        })
        .collect();
    let results = ExperimentResults::of(&experiment, &runs);
    let row = results.rows.iter().find(|row| row.test == "write" && row.unit == "s").unwrap();
    assert!(row.is_short());
    for cell in [&row.cells[0], &row.cells[2]] {
        assert_eq!(cell.verdict_published.map(iosched_lab::reproduce::Judgement::id), Some("no_difference"));
        assert_eq!(cell.same(), Some(true));
    }
}

#[test]
fn results_keep_the_series_of_the_first_run() {
    let experiment = Experiment::named("low-latency").unwrap();
    let mut report = report(&[("write", "s", 5.0)]);
    report.series.push(Series { name: "write".to_owned(), unit: "s".into(), values: vec![2.0, 4.5], step_s: None });
    let run = CaseRun::new("low-latency", "32 writers", "low_latency=0", (0, 1), 5_000_000_000, &report);
    let runs = [run];
    let results = ExperimentResults::of(&experiment, &runs);
    assert_eq!(results.series(0, 1).next().unwrap().values, [2.0, 4.5]);
    assert_eq!(results.series(0, 0).count(), 0);
    assert_eq!(runs[0].figures[1].test, "write_spread");
    assert_eq!(runs[0].figures[1].value, 2.5);
}

#[test]
fn unknown_assumptions_give_a_band_and_mark_verdicts() {
    let experiment = Experiment::named("dd").unwrap();
    let run = |setting: &str, number: u32, value: f64, assumption: Option<&str>| {
        let report = report(&[("copy", "s", value)]);
        let run = CaseRun::new("dd", "copy", setting, (number, 1), 10_000_000_000, &report);
        CaseRun { assumption: assumption.map(str::to_owned), ..run }
    };
    let all = |number: u32, [noop, deadline, cfq]: [f64; 3], assumption| {
        [("noop", noop), ("deadline", deadline), ("cfq", cfq)].map(|(label, s)| run(label, number, s, assumption))
    };
    let mut runs: Vec<CaseRun> = (0..3).flat_map(|number| all(number, [20.0, 20.0, 20.0], None)).collect();
    runs.extend(all(0, [20.0, 30.0, 26.0], Some("memory: 512 MiB")));
    runs.extend(all(0, [18.0, 19.0, 19.5], Some("memory: 4 GiB")));
    let results = ExperimentResults::of(&experiment, &runs);
    let row = results.rows.iter().find(|row| row.test == "copy" && row.unit == "s").unwrap();
    let [noop, deadline, cfq] = &row.cells[..] else { panic!("three settings") };
    assert_eq!(noop.simulated.as_ref().unwrap().values, [20.0; 3], "other assumptions are not among the runs");
    assert_eq!(
        (noop.band(), deadline.band(), cfq.band()),
        (Some((18.0, 20.0)), Some((19.0, 30.0)), Some((19.5, 26.0)))
    );
    assert_eq!((deadline.is_near(), deadline.is_reached()), (Some(false), Some(true)), "published 30.4");
    assert_eq!((noop.is_near(), noop.is_reached()), (Some(false), Some(false)), "published 28.9");
    // The published verdict is that cfq is better. With the usual assumptions, the simulation shows
    // no difference. With little memory, it gives the published verdict.
    assert_eq!(cfq.same(), Some(false));
    let otherwise: Vec<_> =
        cfq.otherwise().map(|assumed| (assumed.assumption.as_str(), assumed.verdict.unwrap().id())).collect();
    assert_eq!(otherwise, [("memory: 512 MiB", "better")]);
    let summary = Summary::of(&[results], 1);
    assert_eq!((summary.held_out_near, summary.held_out, summary.figures_reached), (0, 3, 2));
}

/// Returns runs of the two cases of `dd`: `write` runs of the first case and `copy` runs of the
/// second.
fn dd(write: u32, copy: u32) -> Vec<CaseRun> {
    let run = |case: &'static str, setting: &'static str, number: u32| {
        let report = report(&[(case, "s", 10.0)]);
        CaseRun::new("dd", case, setting, (number, 1), 10_000_000_000, &report)
    };
    let of_case = |case: &'static str, rounds: u32| {
        (0..rounds).flat_map(move |number| {
            ["noop", "deadline", "cfq"].into_iter().map(move |setting| run(case, setting, number))
        })
    };
    of_case("write", write).chain(of_case("copy", copy)).collect()
}

#[test]
fn stopped_reproduction_lists_finished_and_open_cases() {
    let experiment = Experiment::named("dd").unwrap();
    let summary_of = |runs: &[CaseRun], planned: u32| {
        let results = ExperimentResults::of(&experiment, runs);
        (results.runs_in_words(planned), Summary::of(&[results], planned))
    };
    let (words, summary) = summary_of(&dd(2, 0), 3);
    assert_eq!(words, "2 of 3 runs each of write; not run: copy");
    let planned = experiment.runs_planned(3);
    let stopped = format!("stopped after 6 of {planned} runs; ");
    assert!(summary.sentence().starts_with(&stopped), "{}", summary.sentence());
    assert!(summary.is_stopped() && summary.verdicts == 2, "{summary:?}");
    assert_eq!(summary_of(&dd(2, 1), 2).0, "2 runs each of write; 1 of 2 runs each of copy");
    assert_eq!(summary_of(&dd(1, 1), 1).0, "1 run each");
    // No round is complete. The message must not say that nothing was published.
    let (words, summary) = summary_of(&dd(1, 0)[..2], 3);
    assert_eq!(words, "not run");
    let sentence = format!("stopped after 2 of {planned} runs; no case ran under all settings of its experiment");
    assert_eq!(summary.sentence(), sentence);
}

#[test]
fn reproduction_records_are_read_with_their_selected_cases() {
    let header = ReproductionHeader {
        version: "1".to_owned(),
        command: "iosched reproduce dd quantum --case write".to_owned(),
        experiments: vec!["dd".to_owned(), "quantum".to_owned()],
        case: Some("write".to_owned()),
        seed: 1,
        runs: 3,
    };
    let mut file = Vec::new();
    let mut writer = RecordWriter::new(&mut file);
    writer.write(&ReproductionRecord::Reproduction(Box::new(header.clone()))).unwrap();
    let runs = dd(1, 0);
    runs.iter().for_each(|run| writer.write(&ReproductionRecord::Case(Box::new(run.clone()))).unwrap());
    let found = read(&file[..], "dd.jsonl").unwrap();
    assert_eq!(found, (header, runs));
    // A case with exactly this name takes precedence over cases that contain the name.
    let planned = found.0.planned().unwrap();
    assert_eq!(planned.iter().map(|planned_case| planned_case.cases.len()).collect::<Vec<_>>(), [1]);
    // An incomplete last line is left out. An invalid line before the last is an error.
    assert_eq!(read(&file[..file.len() - 9], "dd.jsonl").unwrap().1.len(), 2);
    file.truncate(file.len() - 9);
    file.extend_from_slice(b"\n{}\n");
    assert!(read(&file[..], "dd.jsonl").unwrap_err().to_string().starts_with("dd.jsonl: line 4: "));
    assert!(read(&b""[..], "dd.jsonl").unwrap_err().to_string().contains("the file is empty"));
}
