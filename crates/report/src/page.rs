//! The page: its head, the answer, and its sections in order.

use iosched_lab::{Header, WorkloadKind, listed};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::units::counted;
use super::view::{Setting, View};
use super::{
    context, differences, doubts, figures, head, latency, processes, reproduce, runs, shares, slices, throughput,
};

const STYLE: &str = include_str!("style.css");

/// The page of one device.
pub(crate) fn page(view: &View<'_>, file: Option<&str>) -> Markup {
    let title = title(view.header());
    let one = std::slice::from_ref(view);
    document(
        &view.header().version,
        &title,
        &html! {
            (answer(view, &title))
            (section("compared", "What was compared", &context::section(one)))
            @for (id, title, body) in sections(view) { (section(id, title, &body)) }
            (section("reproduce", "How to reproduce this", &reproduce::section(one, file)))
        },
    )
}

/// A whole page of that title with that body.
pub(crate) fn document(version: &str, title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "iosched " (version) };
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    }
}

/// What there is to be told of a device: name of the place, title, body.
pub(crate) fn sections(view: &View<'_>) -> Vec<(&'static str, &'static str, Markup)> {
    let figures = html! {
        (differences::section(view))
        (figures::section(view))
        (doubts::section(view))
    };
    let mut sections = vec![("figures", "Figures and verdicts", figures)];
    if view.device().measured.is_some() {
        sections.push(("runs", "Run by run", runs::section(view)));
    }
    // A command of others tells nothing of its I/Os.
    if view.header().workload.kind != WorkloadKind::Command {
        sections.push(("latency", "Latency", latency::section(view)));
    }
    // Nobody follows a real device over time.
    if view.device().measured.is_none() {
        sections.extend([
            ("throughput", "Throughput over time", throughput::section(view)),
            ("shares", "Who got the device", shares::section(view)),
            ("turns", "Turns, idling and preemption", slices::section(view)),
            ("head", "Where the device was sent", head::section(view)),
        ]);
    }
    if view.header().workload.kind != WorkloadKind::Command {
        sections.push(("processes", "Processes", processes::section(view)));
    }
    sections
}

/// What is compared on which workload.
pub(crate) fn title(header: &Header) -> String {
    let labels: Vec<String> = header.settings.iter().map(|setting| setting.label.clone()).collect();
    format!("{} on {}", listed(&labels, "and"), header.workload.name)
}

/// The answer, before anything else.
fn answer(view: &View<'_>, title: &str) -> Markup {
    html! {
        header {
            h1 { (title) }
            p .lead { (unbroken(&sentence(&view.results.answer_sentence(view.header())))) }
            (against(view))
        }
    }
}

/// What is to be said of each setting against the baseline, and that there are doubts.
pub(crate) fn against(view: &View<'_>) -> Markup {
    let header = view.header();
    let doubts = view.doubts.len() as u64;
    let sentences = view.settings.iter().filter_map(|s| Some((s, view.results.sentence(header, s.number)?)));
    html! {
        @if let Some(baseline) = view.baseline().filter(|_| view.settings.len() > 1) {
            p .against { "Against " (name(baseline)) ":" }
            dl .sentences {
                @for (setting, said) in sentences {
                    dt { (name(setting)) }
                    dd { (unbroken(&said)) }
                }
            }
        }
        @if doubts > 0 {
            p .quiet {
                a href={ "#" (view.id("doubts")) } { (counted(doubts, "reservation", "reservations")) }
                @if doubts == 1 { " goes" } @else { " go" } " with these figures."
            }
        }
    }
}

/// With a capital and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if text.is_empty() || text.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// Numbers stay on the line of their units.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

pub(crate) fn section(id: &str, title: &str, body: &Markup) -> Markup {
    html! {
        section id=(id) {
            h2 { (title) }
            (body)
        }
    }
}

/// A setting's name with its colour.
pub(crate) fn name(setting: &Setting<'_>) -> Markup {
    html! {
        span .name .(setting.class) {
            (swatch())
            @for part in setting.label.split_inclusive([':', ',']) { (part) wbr; }
        }
    }
}

/// A square of the colour of the setting it stands in.
pub(crate) fn swatch() -> Markup {
    html! { svg .swatch viewBox="0 0 10 10" aria-hidden="true" { rect width="10" height="10" rx="2" {} } }
}

/// A plot of one setting, with the setting's name above it.
pub(crate) fn facet(setting: &Setting<'_>, plot: &Markup, below: &Markup) -> Markup {
    html! {
        figure .facet .(setting.class) {
            figcaption { (name(setting)) }
            (plot)
            (below)
        }
    }
}

/// The class of a row of `count` small plots: three beside each other, unless two make better rows.
pub(crate) const fn facets(count: usize) -> &'static str {
    if matches!(count, 1 | 2 | 4) { "facets two" } else { "facets" }
}

/// Said instead of a plot over time.
pub(crate) fn no_timelines() -> Markup {
    html! { p .quiet { "These records hold no timelines: no first run of a setting came to its end." } }
}

/// A table that is there for those who want figures rather than the plot above.
pub(crate) fn as_table(table: &Markup) -> Markup {
    html! {
        details {
            summary { "As a table" }
            div .scroll tabindex="0" { (table) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_a_capital_and_end() {
        assert_eq!([sentence("best: a"), sentence(""), sentence("A.")], ["Best: a.", "", "A."]);
    }
}
