//! The page of several devices: the best settings of each device, then one section for each device.
//! A section has the content of the page of one device.

use iosched_lab::{Decimals, Figure, Margin, Outcome, Overview, Records, Results, figures_of, runs_in_words};
use maud::{Markup, html};

use super::page::{decided, reserved, sections, title};
use super::parts::{document, name, place, prose, section, switches, unbroken};
use super::view::{View, device_id};
use super::{context, differences, reproduce};

pub(crate) fn page(records: &Records, views: &mut [View<'_>], file: Option<&str>) -> Markup {
    let header = &records.header;
    let results: Vec<Results> = views.iter().map(|view| view.results.clone()).collect();
    let overview = Overview::of(records, &results);
    for view in views.iter_mut() {
        view.doubts = overview.own_doubts(&view.results).cloned().collect();
    }
    let title = format!("{}, {} devices", title(header), views.len());
    document(
        &header.version,
        &title,
        &html! {
            header {
                h1 { (title) }
                @if let Some(first) = overview.sentences.first() { p .lead { (prose(first)) } }
                ul .decisions { @for sentence in overview.sentences.iter().skip(1) { li { (prose(sentence)) } } }
                @if let Some(judged) = &overview.judged { p .quiet { (prose(judged)) } }
                (navigation(views))
                @if header.settings.len() > 1 { (wins(views, &overview)) } @else { (by_device(views)) }
            }
            (switches(&views[0].settings))
            @for view in views.iter() { (device(view)) }
            (shared_doubts(&overview))
            (section("compared", "What was compared", &context::section(views)))
            (section("reproduce", "How to reproduce this report", &reproduce::section(views, file)))
        },
    )
}

fn navigation(views: &[View<'_>]) -> Markup {
    html! {
        nav aria-label="Devices" {
            ul .devices {
                @for view in views {
                    li { a href={ "#" (device_id(view.records.number())) } { (view.device().name) } }
                }
                li { a href="#compared" { "What was compared" } }
                li { a href="#reproduce" { "How to reproduce this report" } }
            }
        }
    }
}

/// Returns the table of the best settings and their leads, with a row per device and a column per
/// metric.
fn wins(views: &[View<'_>], overview: &Overview) -> Markup {
    let Some(baseline) = views.first().and_then(View::baseline).filter(|_| !overview.figures.is_empty()) else {
        return html! {};
    };
    html! {
        div .scroll tabindex="0" {
            table .wins {
                thead {
                    tr {
                        th scope="col" { "Best on" }
                        @for column in &overview.figures { th scope="col" { (column.label) } }
                    }
                }
                tbody {
                    @for (number, view) in views.iter().enumerate() {
                        tr {
                            th scope="row" { a href={ "#" (device_id(number)) } { (view.device().name) } }
                            @for column in &overview.figures { td { (win(view, column.figure, &column.devices[number])) } }
                        }
                    }
                }
            }
        }
        p .legend {
            "Each cell shows the settings that are clearly better than " (name(baseline)) ", and the gain of the \
                best setting. If no setting is better, the cell shows the settings that are equal \
                to " (name(baseline)) ", and the lead of the \
             baseline over the next best setting."
        }
    }
}

fn win(view: &View<'_>, figure: Figure, outcome: &Outcome) -> Markup {
    match outcome {
        Outcome::Unknown => html! { span .quiet { "–" } },
        Outcome::Equal => html! { span .quiet { "equal" } },
        Outcome::Idle => html! { span .quiet { "idle" } },
        Outcome::CannotTell { runs_needed } => html! {
            span .quiet {
                "cannot tell"
                @if let Some(runs) = runs_needed { br; "needs " (unbroken(&runs_in_words(*runs))) }
            }
        },
        Outcome::NothingBetter => html! { span .quiet { "nothing is better" } },
        Outcome::Best { settings, margin } => html! {
            @for &setting in settings { span .winner { (name(&view.settings[setting])) } " " }
            br;
            (ahead(view, figure, margin))
        },
    }
}

fn ahead(view: &View<'_>, figure: Figure, margin: &Margin) -> Markup {
    let description = margin.comparison.describe(figure.unit());
    let (what, interval) = description.split_once(" (").unwrap_or((&description, ""));
    html! {
        span .verdict {
            span { (unbroken(what)) }
            @if margin.than != view.header().baseline { " than " (view.settings[margin.than].label) }
            @if !interval.is_empty() { " " span .interval .quiet { "(" (unbroken(interval)) } }
        }
    }
}

/// Returns the metrics of one setting, with a row per metric and a column per device.
fn by_device(views: &[View<'_>]) -> Markup {
    let mean_and_sd = |view: &View<'_>, figure| {
        let figure = view.results.figure(figure)?.settings.first()?.as_ref()?;
        Some((figure.mean, figure.sd))
    };
    let row = |figure: Figure| {
        let cells: Vec<Option<(f64, Option<f64>)>> = views.iter().map(|view| mean_and_sd(view, figure)).collect();
        let known: Vec<_> = cells.iter().copied().flatten().collect();
        let mut decimals = Decimals::row(&known).into_iter();
        html! {
            @if !known.is_empty() {
                tr {
                    th scope="row" { (iosched_lab::label_on(views.iter().map(|view| &view.results), figure)) }
                    td .unit { (figure.unit()) }
                    @for cell in cells {
                        td .number {
                            @match cell.zip(cell.and_then(|_| decimals.next())) {
                                Some(((mean, sd), decimals)) => {
                                    (decimals.show(mean))
                                    @if let Some(sd) = sd { span .sd { " ± " (decimals.show(sd)) } }
                                }
                                None => span .quiet { "–" },
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        div .scroll tabindex="0" {
            table .figures {
                thead {
                    tr {
                        th scope="col" { "Figure" }
                        th scope="col" { "Unit" }
                        @for view in views {
                            th scope="col" .number { a href={ "#" (device_id(view.records.number())) } { (view.device().name) } }
                        }
                    }
                }
                tbody { @for figure in figures_of(views.iter().map(|view| &view.results)) { (row(figure)) } }
            }
        }
    }
}

fn shared_doubts(overview: &Overview) -> Markup {
    html! {
        @if !overview.shared_doubts.is_empty() {
            section id="doubts" {
                h2 { "Doubts about the results on every device" }
                ol .doubts { @for doubt in &overview.shared_doubts { li { (prose(&doubt.to_string())) "." } } }
            }
        }
    }
}

/// Returns the section of one device.
fn device(view: &View<'_>) -> Markup {
    let record = view.device();
    html! {
        section .device id=(device_id(view.records.number())) {
            h2 { (record.name) (place(&device_id(view.records.number()), &record.name)) }
            p .quiet { (context::device(record)) }
            (decided(&view.results.decision, &[]))
            (differences::section(view))
            (reserved(view))
            (context::values(view))
            @for (id, title, body) in sections(view) {
                section id=(view.id(id)) {
                    h3 { (title) (place(&view.id(id), title)) }
                    (body)
                }
            }
        }
    }
}
