//! The page of reproduced experiments: published and simulated results, in the form in which the
//! documents present them.

mod bars;
mod processes;
mod table;
mod time;

use iosched_lab::reproduce::{
    ExperimentResults, Goal, GoalOutcome, Measure, ReproductionHeader, SeriesRecord, Summary,
};
use iosched_lab::{MachineProfile, significant};
use maud::{Markup, html};

use super::parts::{document, name, sentence, unbroken};
use super::units::{counted, time as duration};
use super::view::Setting;

/// Returns the page.
pub(crate) fn page(header: &ReproductionHeader, results: &[ExperimentResults<'_>]) -> Markup {
    let summary = Summary::of(results, header.runs);
    document(
        &header.version,
        "Published experiments, reproduced",
        &html! {
            header {
                h1 { "Published experiments, reproduced" }
                p .lead { (unbroken(&sentence(&summary.sentence()))) }
                @if results.len() > 1 { (navigation(results)) }
                (goals(results))
            }
            @for results_of_one in results { (experiment(header, results_of_one, results.len() > 1)) }
            (method(header, &summary))
        },
    )
}

/// Returns the selected series of the first runs, each once: the number of the case, and the name
/// of the series.
fn series_names<'a>(
    results: &ExperimentResults<'a>,
    settings: &[Setting<'_>],
    is_wanted: impl Fn(&SeriesRecord) -> bool,
) -> Vec<(usize, &'a str)> {
    let mut names = Vec::new();
    for case in 0..results.experiment.cases.len() {
        for setting in settings {
            for series in results.series(case, setting.number).filter(|series| is_wanted(series)) {
                if !names.contains(&(case, series.name.as_str())) {
                    names.push((case, series.name.as_str()));
                }
            }
        }
    }
    names
}

fn navigation(results: &[ExperimentResults<'_>]) -> Markup {
    html! {
        nav aria-label="Experiments" {
            ul .devices {
                @for results_of_one in results { li { a href={ "#" (results_of_one.experiment.name) } { (results_of_one.experiment.title) } } }
                li { a href="#method" { "How to read and repeat these experiments" } }
            }
        }
    }
}

fn goals(results: &[ExperimentResults<'_>]) -> Markup {
    let all: Vec<_> = results.iter().filter(|results_of_one| !results_of_one.goals.is_empty()).collect();
    html! {
        @if !all.is_empty() {
            div .scroll tabindex="0" {
                table .figures {
                    thead {
                        tr {
                            th scope="col" { "Expected results" }
                            th scope="col" { "Wanted" }
                            th scope="col" .number { "Published" }
                            th scope="col" .number { "Simulated" }
                            th scope="col" {}
                        }
                    }
                    tbody {
                        @for results_of_one in all {
                            @for (number, (goal, outcome)) in results_of_one.goals.iter().enumerate() {
                                tr .begins[number == 0] { (goal_cells(goal, outcome)) }
                            }
                        }
                    }
                }
            }
            p .legend { "Each value is a ratio of means, or of standard deviations if the table says so." }
        }
    }
}

fn goal_cells(goal: &Goal, outcome: &GoalOutcome) -> Markup {
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), |ratio| significant(ratio, 2));
    html! {
        td {
            (goal.about)
            @if goal.measure == Measure::Deviation { span .quiet { " (deviations)" } }
        }
        td .quiet { (goal.bounds()) }
        td .number { (ratio(outcome.published)) }
        td .number { (ratio(outcome.simulated)) }
        td {
            @match outcome.met {
                Some(true) => "met",
                Some(false) => strong { "missed" },
                None => span .quiet { "not run" },
            }
        }
    }
}

/// Returns the appearance of an experiment's settings.
fn settings<'a>(results: &ExperimentResults<'a>) -> Vec<Setting<'a>> {
    let setting = |(number, variant): (usize, &'a iosched_lab::reproduce::Variant)| Setting {
        number,
        label: &variant.label,
        short: variant.label.clone(),
        class: format!("s{}", number % 8),
    };
    results.experiment.settings.iter().enumerate().map(setting).collect()
}

fn experiment(header: &ReproductionHeader, results: &ExperimentResults<'_>, several: bool) -> Markup {
    let published = results.experiment;
    let settings = settings(results);
    html! {
        section .device id=(published.name) {
            h2 { (published.title) }
            p .quiet { (published.about) }
            @if several { p .lead { (unbroken(&sentence(&Summary::of(std::slice::from_ref(results), header.runs).sentence()))) } }
            (facts(header, results, &settings))
            @if results.was_run() {
                (processes::pictures(results, &settings))
                (time::pictures(results, &settings))
                section {
                    h3 { "Published and simulated results" }
                    (bars::pictures(results, &settings))
                }
                section {
                    h3 { "All metrics" }
                    (table::table(results, &settings))
                }
            }
        }
    }
}

fn facts(header: &ReproductionHeader, results: &ExperimentResults<'_>, settings: &[Setting<'_>]) -> Markup {
    let published = results.experiment;
    let mut disks: Vec<&str> = published.cases.iter().flat_map(|case| &case.devices).map(String::as_str).collect();
    disks.sort_unstable();
    disks.dedup();
    let about = |name: &str| iosched_disk::Profile::named(name).map(|profile| profile.about().to_owned());
    html! {
        dl .facts {
            dt { "Machine" }
            dd { strong { (published.machine) } @if let Ok(machine) = MachineProfile::named(&published.machine) { ", " (machine.machine.about) } }
            dt { @if disks.len() == 1 { "Disk" } @else { "Disks" } }
            @for disk in disks { dd { strong { (disk) } @if let Ok(about) = about(disk) { ", " (about) } } }
            dt { "Settings" }
            @for (setting, variant) in settings.iter().zip(&published.settings) {
                dd {
                    (name(setting))
                    @if let Some(about) = &variant.about { ", " (about) }
                    " " span .quiet { (schedulers(variant)) }
                }
            }
            dt { "Runs" }
            dd {
                (results.runs_in_words(header.runs)) ", under each setting; " (duration(results.simulated_ns() as f64, 3)) " simulated"
            }
        }
    }
}

/// Returns the schedulers of a setting.
fn schedulers(setting: &iosched_lab::reproduce::Variant) -> String {
    let all: Vec<String> = setting.schedulers.iter().map(ToString::to_string).collect();
    all.join(" and ")
}

fn method(header: &ReproductionHeader, summary: &Summary) -> Markup {
    html! {
        section id="method" {
            h2 { "How to read and repeat these experiments" }
            ul .method {
                li {
                    "Every case is run " (counted(header.runs.into(), "time", "times")) " under each setting; the \
                     settings take turns. Runs with the same number have the same seed. The seed determines the \
                     position of the platters, the location of files, and the times at which periodic threads \
                     start."
                }
                li {
                    "Two settings differ only if their means differ by more than the standard \
                     deviations. This method is from the document of the experiment \"quantum\". Simulated means \
                     must also differ by at least 0.5 %. If a document gives no standard deviations, published and \
                     simulated differences below 10 % do not count."
                }
                li {
                    "◦ marks tests shorter than a minute. The authors of the experiment quantum exclude such tests."
                }
                li {
                    "Some publications do not give every parameter of their experiment. For such a parameter, \
                     iosched tries several values: all runs use one value, and iosched repeats the first run with \
                     each of the other values. \"Over unknown values\" shows the lowest and the highest mean for \
                     all values. If another value leads to another verdict, the table shows that value and its \
                     verdict. " code { "iosched reproduce --assumptions" }
                    " lists the values of each parameter, and the fitted values."
                }
                li { "† marks published results that were not used to make the models." }
                li { (duration(summary.simulated_ns as f64, 3)) " of virtual time were simulated in total." }
            }
            pre { (header.command) }
        }
    }
}
