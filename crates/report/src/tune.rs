//! The page of a search: the answer, the Pareto front, the effect of tunables, and all confirmed
//! settings.

use iosched_lab::{Comparison, Decimals, grouped, significant};
use maud::{Markup, html};

use super::chart::{Axis, Chart, Draw, Quantity, Series};
use super::page::decided;
use super::parts::{broken, document, prose, section, sentence, unbroken};
use super::svg::{Margin, Picture, Plot, Tick, nice_end, picture, px, shorten, ticks};
use iosched_advise::tune::{Standing, TuneResults, commands_explained, lasting};

const WIDTH: f64 = 720.0;
const ROW: f64 = 26.0;
/// Colours of the recommended setting and of the others.
const BEST: &str = "s0";
const OTHER: &str = "s7";
/// Numbers of these colours.
const BEST_COLOUR: usize = 0;
const OTHER_COLOUR: usize = 7;

pub(super) fn page(results: &TuneResults<'_>) -> Markup {
    let header = results.header;
    let title = format!("{} of {} on {}", results.goal_names(), header.workload.name, header.device.name);
    document(
        &header.version,
        &title,
        &html! {
            header {
                h1 { (title) }
                @let best = results.recommended().filter(|_| results.recommends());
                (decided(&results.decision(), &best.map_or_else(Vec::new, |best| commands_explained(&best.setting))))
                @if let Some(best) = best {
                    @for (title, lines) in lasting(&best.setting, &results.header.baseline) {
                        p { (title) }
                        pre { @for line in lines { (line) "\n" } }
                    }
                }
            }
            @if results.front.len() > 1 { (section("front", "Trade-off between the goals", &front(results))) }
            @if results.put_back.iter().any(|removed| !removed.comparisons.is_empty()) {
                (section("worth", "Effect of each change", &worth(results)))
            }
            @if !results.shares.is_empty() { (section("matters", "Share of each tunable", &matters(results))) }
            @if !results.standings.is_empty() { (section("confirmed", "Confirmed settings", &confirmed(results))) }
            @if !results.doubts().is_empty() { (section("doubts", "Doubts", &doubts(results))) }
            (section("searched", "Search space", &searched(results)))
        },
    )
}

fn doubts(results: &TuneResults<'_>) -> Markup {
    html! { ol .doubts { @for doubt in results.doubts() { li { (prose(&sentence(&doubt))) } } } }
}

const fn class(is_best: bool) -> &'static str {
    if is_best { BEST } else { OTHER }
}

/// Returns an axis from 0 to the next round number above `values`, and its marks.
fn axis(values: &[f64]) -> ((f64, f64), Vec<Tick>) {
    let end = nice_end(values.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE), 5);
    let (at, decimals) = ticks(0.0, end, 5);
    ((0.0, end), at.into_iter().map(|at| Tick { at, label: format!("{at:.decimals$}") }).collect())
}

/// Draws the first two goals of every confirmed setting. Settings on the front have filled dots.
fn front(results: &TuneResults<'_>) -> Markup {
    const HEIGHT: f64 = 380.0;
    /// Width of names beside dots, pixels.
    const NAME: f64 = 190.0;
    let measures = &results.header.measures;
    let point = |standing: &Standing| Some((standing.figures[0].as_ref()?.mean, standing.figures[1].as_ref()?.mean));
    let points: Vec<(usize, (f64, f64))> = results
        .standings
        .iter()
        .enumerate()
        .filter_map(|(number, standing)| Some((number, point(standing)?)))
        .collect();
    let (x, x_ticks) = axis(&points.iter().map(|(_, at)| at.0).collect::<Vec<_>>());
    let (y, y_ticks) = axis(&points.iter().map(|(_, at)| at.1).collect::<Vec<_>>());
    let margin = Margin { top: 26.0, right: 200.0, bottom: 48.0, left: 60.0 };
    let plot = Plot::linear((WIDTH, HEIGHT), margin, x, y);
    let (left, _, _, bottom) = plot.inner();
    let on_front = |number: usize| results.front.contains(&number);
    let named = |number: usize| on_front(number) || number == 0 || Some(number) == results.best;
    let body = html! {
        (plot.y_axis(&y_ticks, ""))
        text .tick x="0" y="12" { (measures[1].name) ", " (measures[1].unit) }
        (plot.x_axis(&x_ticks, true))
        text .tick x=(px(left)) y=(px(bottom + 36.0)) { (measures[0].name) ", " (measures[0].unit) }
        @for &(number, at) in &points {
            g .(class(Some(number) == results.best)) {
                circle .(if on_front(number) { "dot" } else { "hollow" }) cx=(px(plot.x.at(at.0))) cy=(px(plot.y.at(at.1))) r="5" {
                    title { (results.standings[number].label) }
                }
                @if named(number) {
                    text .halo x=(px(plot.x.at(at.0) + 9.0)) y=(px(plot.y.at(at.1))) dy=".35em" { (shorten(&results.standings[number].label, 12.0, NAME)) }
                }
            }
        }
    };
    let labels: Vec<String> = results.front.iter().map(|&number| results.standings[number].label.clone()).collect();
    let mut across = points.clone();
    across.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
    // Settings with names come last, so that they are drawn above the others.
    let (above, below): (Vec<_>, Vec<_>) = points.iter().partition(|(number, _)| named(*number));
    let series = below.into_iter().chain(above).map(|&(number, (_, up))| {
        let colour = if Some(number) == results.best { BEST_COLOUR } else { OTHER_COLOUR };
        let place = |&(candidate, _): &(usize, (f64, f64))| if candidate == number { up } else { f64::NAN };
        let dots = Series::plain(colour, &results.standings[number].label, Draw::Dots, across.iter().map(place));
        Series { hollow: !on_front(number), named: named(number), ..dots }
    });
    let of_goal = |goal: usize, ends| {
        let unit = measures[goal].unit.to_string();
        Axis { unit, ..Axis::linear(Quantity::Number, ends).named(&measures[goal].name) }
    };
    let axes = (of_goal(0, x), of_goal(1, y));
    let chart = Chart::plain(axes, across.iter().map(|(_, at)| at.0), series.collect());
    let picture = Picture {
        id: "front-plot".to_owned(),
        size: (WIDTH, HEIGHT),
        title: format!("{} over {}", measures[1].name, measures[0].name),
        about: labels.join("; "),
        body,
        chart: Some(chart),
    };
    html! {
        figure .wide .narrow {
            figcaption { "Means of the runs that confirm the result. A filled dot marks a best compromise: no other \
                 setting is better in one goal and at least as good in the other goals" }
            div .scroll tabindex="0" { (picture.html()) }
        }
        dl .sentences {
            @for &number in &results.front {
                dt { (broken(&results.standings[number].label)) }
                dd {
                    @if number == 0 { "the baseline" } @else { (unbroken(&results.against_baseline(&results.standings[number]))) }
                }
            }
        }
    }
}

/// A bar with its confidence interval.
struct Bar {
    name: String,
    value: f64,
    interval: (f64, f64),
    text: String,
}

fn bars(id: &str, title: &str, bars: &[Bar]) -> Markup {
    let ends = bars.iter().flat_map(|bar| [bar.value, bar.interval.1, -bar.interval.0]);
    let end = nice_end(ends.fold(1.0, f64::max), 5);
    let low = bars.iter().map(|bar| bar.value.min(bar.interval.0)).fold(0.0, f64::min);
    let low = if low < 0.0 { -nice_end(-low, 3) } else { 0.0 };
    let height = 40.0 + bars.len() as f64 * ROW + 28.0;
    let margin = Margin { top: 26.0, right: 190.0, bottom: 28.0, left: 130.0 };
    let plot = Plot::linear((WIDTH, height), margin, (low, end), (0.0, 1.0));
    let (at, decimals) = ticks(low, end, 5);
    let ticks: Vec<Tick> = at.into_iter().map(|at| Tick { at, label: format!("{at:.decimals$} %") }).collect();
    let body = html! {
        (plot.x_axis(&ticks, true))
        @for (number, bar) in bars.iter().enumerate() {
            @let y = margin.top + 8.0 + number as f64 * ROW;
            @let (from, to) = (plot.x.at(bar.value.min(0.0)), plot.x.at(bar.value.max(0.0)));
            g .(BEST) {
                text .row x=(px(margin.left - 10.0)) y=(px(y + 8.0)) dy=".35em" text-anchor="end" { (bar.name) }
                rect .range x=(px(from)) y=(px(y)) width=(px(to - from)) height="16" {}
                line .interval x1=(px(plot.x.at(bar.interval.0))) x2=(px(plot.x.at(bar.interval.1))) y1=(px(y + 8.0)) y2=(px(y + 8.0)) {}
                text .halo x=(px(plot.x.at(bar.interval.1.max(bar.value)) + 8.0)) y=(px(y + 8.0)) dy=".35em" { (bar.text) }
            }
        }
    };
    let about: Vec<String> = bars.iter().map(|bar| format!("{} {}", bar.name, bar.text)).collect();
    html! {
        figure .wide .narrow {
            figcaption { (title) }
            div .scroll tabindex="0" { (picture(id, (WIDTH, height), title, &about.join("; "), &body)) }
        }
    }
}

pub(super) fn worth(results: &TuneResults<'_>) -> Markup {
    let of_goal = |goal: usize| {
        let measure = &results.header.measures[goal];
        let bars = results.put_back.iter().filter_map(|removed| {
            let comparison = removed.comparisons.get(goal)?;
            let (percent, (low, high)) = (comparison.percent?, comparison.interval_percent?);
            // Worse results are to the right.
            let turned = measure.is_better(1.0);
            let (value, interval) = if turned { (-percent, (-high, -low)) } else { (percent, (low, high)) };
            let text = short(&measure.describe(comparison));
            Some(Bar { name: format!("{}={}", removed.name, removed.default_text()), value, interval, text })
        });
        bars.collect::<Vec<_>>()
    };
    html! {
        p { "For each changed tunable of the recommended setting: the result if you reset only this tunable to its \
             default." }
        @for goal in 0..results.header.goals {
            @let bars_of_goal = of_goal(goal);
            @if !bars_of_goal.is_empty() {
                (bars(&format!("worth-{goal}"), &format!("Loss of {}", results.header.measures[goal].name), &bars_of_goal))
            }
        }
    }
}

/// Removes the interval from a text, because the picture shows the interval.
fn short(description: &str) -> String {
    unbroken(description.split(" (").next().unwrap_or(description))
}

pub(super) fn matters(results: &TuneResults<'_>) -> Markup {
    html! {
        p {
            "The tried settings gave different results. Each bar shows how much of these differences one tunable \
             causes (main effects, omega squared, with 95 % bootstrap intervals). The chart leaves out tunables whose \
             share may be chance. The shares hold for the settings that the search tried, not for all settings."
        }
        @for goal in 0..results.header.goals {
            @let bars_of_goal: Vec<Bar> = results.shares.iter().filter(|share| share.goal == goal).map(|share| Bar {
                name: share.name.clone(),
                value: share.percent,
                interval: share.interval_percent,
                text: format!("{:.0}\u{a0}%", share.percent),
            }).collect();
            @if !bars_of_goal.is_empty() { (bars(&format!("matters-{goal}"), &results.header.measures[goal].name, &bars_of_goal)) }
        }
    }
}

/// Returns the measures that the user requested: the goals, and the measures of constraints.
pub(super) fn requested(results: &TuneResults<'_>) -> Vec<usize> {
    let header = results.header;
    let constrained = |measure: usize| header.constraints.iter().any(|constraint| constraint.measure == measure);
    (0..header.measures.len()).filter(|&measure| measure < header.goals || constrained(measure)).collect()
}

fn confirmed(results: &TuneResults<'_>) -> Markup {
    let header = results.header;
    let requested = requested(results);
    let others: Vec<usize> = (0..header.measures.len()).filter(|measure| !requested.contains(measure)).collect();
    html! {
        p { "Means and standard deviations of runs with new seeds, which the search did not use, \
             compared with " (header.baseline) "." }
        (table(results, &requested))
        details {
            summary { "All metrics" }
            div .scroll tabindex="0" { (table(results, &others)) }
        }
    }
}

pub(super) fn table(results: &TuneResults<'_>, measures: &[usize]) -> Markup {
    let decimals: Vec<Decimals> = measures
        .iter()
        .map(|&measure| {
            let figures = results.standings.iter().filter_map(|standing| standing.figures[measure].as_ref());
            Decimals::of(&figures.map(|figure| (figure.mean, figure.sd)).collect::<Vec<_>>())
        })
        .collect();
    html! {
        div .scroll tabindex="0" {
            table .figures .many[measures.len() > 4] {
                thead {
                    tr {
                        th scope="col" { "Setting" }
                        @for &measure in measures {
                            th scope="col" .number {
                                (results.header.measures[measure].name) br; span .quiet { (results.header.measures[measure].unit) }
                            }
                        }
                    }
                }
                tbody {
                    @for (number, standing) in results.standings.iter().enumerate() {
                        tr {
                            th scope="row" {
                                (broken(&standing.label))
                                @if number == 0 { " " span .quiet { "baseline" } }
                                @if Some(number) == results.best { " " span .quiet { "recommended" } }
                                @if standing.constraints.iter().any(|constraint| !constraint.kept) { " " span .quiet { "breaks a constraint" } }
                            }
                            @for (&measure, decimals) in measures.iter().zip(&decimals) {
                                td .number { (cell(results, standing, measure, *decimals)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell(results: &TuneResults<'_>, standing: &Standing, measure: usize, decimals: Decimals) -> Markup {
    let verdict = |comparison: &Comparison| short(&results.header.measures[measure].describe(comparison));
    html! {
        @if let Some(figure) = &standing.figures[measure] {
            span { (decimals.show(figure.mean)) @if let Some(sd) = figure.sd { span .sd { " ± " (decimals.show(sd)) } } }
            @if let Some(comparison) = figure.comparison.as_ref().filter(|figure| figure.interval.is_some()) {
                br; span .verdict .(comparison.verdict.id()) { (verdict(comparison)) }
            }
        } @else { span .quiet { "–" } }
    }
}

pub(super) fn searched(results: &TuneResults<'_>) -> Markup {
    let header = results.header;
    html! {
        dl .facts {
            dt { "Tried" } dd {
                (grouped(results.settings as u64)) " settings in " (grouped(results.search_runs as u64)) " runs; "
                (grouped(results.confirm_runs as u64)) " runs to confirm; "
                (significant(results.simulated_ns as f64 / 1e9, 3)) " s of disk time"
            }
            @for constraint in &header.constraints { dt { "Subject to" } dd { (constraint.text) } }
            dt { "Run again" } dd { pre { (header.command) } }
            dt { "Version" } dd { "iosched " (header.version) }
            dt { "Workload" } dd { (header.workload.name) ", fingerprint " code { (header.workload.fingerprint) } }
            dt { "Device" } dd { (header.device.name) ", " (header.device.about) ", fingerprint " code { (header.device.fingerprint) } }
        }
        @for elevator in &header.space.elevators {
            h3 { (elevator.defaults) }
            @if elevator.dimensions.is_empty() { p .quiet { "Nothing was varied." } } @else {
                table {
                    thead { tr { th { "Tunable" } th { "Unit" } th { "Values tried" } } }
                    tbody {
                        @for dimension in &elevator.dimensions {
                            tr {
                                th scope="row" { (dimension.name) }
                                td .unit { (dimension.unit) }
                                td { span {
                                    @for (level, value) in (0..dimension.values.len()).map(|level| (level, dimension.text(level))) {
                                        @if level > 0 { ", " }
                                        @if level == dimension.default { b { (value) } } @else { (value) }
                                    }
                                } }
                            }
                        }
                    }
                }
            }
        }
        p .legend { "Defaults are bold." }
    }
}
