//! The page of a comparison: its head, the answer, and its sections in order.

use iosched_advise::tune::commands_of;
use iosched_lab::{Decision, Header, WorkloadKind, listed};
use maud::{Markup, html};

use super::parts::{document, prose, section, switches};
use super::units::counted;
use super::view::View;
use super::{
    context, differences, doubts, figures, head, heat, latency, over_time, processes, reproduce, runs, scan, shares,
    sizes, slices, throughput, waits,
};

/// Returns the page of one device.
pub(crate) fn page(view: &View<'_>, file: Option<&str>) -> Markup {
    let title = title(view.header());
    let single = std::slice::from_ref(view);
    document(
        &view.header().version,
        &title,
        &html! {
            (answer(view, &title))
            (switches(&view.settings))
            @for (id, title, body) in sections(view) { (section(id, title, &body)) }
            (section("compared", "What was compared", &context::section(single)))
            (section("reproduce", "How to reproduce this report", &reproduce::section(single, file)))
        },
    )
}

/// Returns the sections of a device, each with its id, title and body.
pub(crate) fn sections(view: &View<'_>) -> Vec<(&'static str, &'static str, Markup)> {
    let figures = html! {
        (figures::section(view))
        (doubts::section(view))
    };
    let is_measured = view.device().measured.is_some();
    let mut sections = vec![("figures", "Results and verdicts", figures)];
    sections.extend(scan::section(view).map(|scan| ("scan", "Over a parameter", scan)));
    if view.results.rounds > 1 {
        sections.push(("runs", "Run by run", runs::section(view)));
    }
    // iosched does not know the I/Os of an external command.
    if view.header().workload.kind != WorkloadKind::Command {
        sections.extend([
            ("latency", "Latency", latency::section(view)),
            ("heat", "Latency over time", heat::section(view)),
            ("sizes", "Latency by size", sizes::section(view)),
            ("throughput", "Throughput over time", throughput::section(view)),
            ("iops", "I/Os per second over time", over_time::IOPS.section(view)),
            ("depth", "Queue depth over time", over_time::DEPTH.section(view)),
        ]);
        sections.extend(is_measured.then(|| ("untold", "Not measured on a real device", untold())));
    }
    if !is_measured {
        sections.extend([
            ("shares", "Device shares by process", shares::section(view)),
            ("turns", "Turns, idling and preemption", slices::section(view)),
            ("head", "Position on the device", head::section(view)),
        ]);
    }
    sections.extend(waits::section(view).map(|waits| ("waits", "Waits for controllers", waits)));
    if view.header().workload.kind != WorkloadKind::Command {
        sections.push(("processes", "Processes", processes::section(view)));
    }
    sections
}

/// Returns the text that says which plots only simulated devices have.
fn untold() -> Markup {
    html! {
        p .quiet {
            "iosched measures latencies and rates in the processes. Some plots exist only for simulated devices: \
             device shares over time, turns and idling of the scheduler, the position on the device, and the \
             I/Os that wait in the queue. On a real device, these plots would need a trace of every request."
        }
    }
}

/// Returns the title: the compared settings, the workload, and the device if there is only one.
pub(crate) fn title(header: &Header) -> String {
    let labels: Vec<String> = header.settings.iter().map(|setting| setting.label.clone()).collect();
    let place = match &header.devices[..] {
        [one] if one.measured.is_some() => format!(", on the device {}", one.name),
        [one] => format!(", simulated on a model of {}", one.name),
        _ => String::new(),
    };
    format!("{} on {}{place}", listed(&labels, "and"), header.workload.name)
}

/// Returns the decision and the chart of differences, at the top of the page.
fn answer(view: &View<'_>, title: &str) -> Markup {
    html! {
        header {
            h1 { (title) }
            (decided(&view.results.decision, &commands_of(&view.results.decision, view.header())))
            (differences::section(view))
            (reserved(view))
        }
    }
}

/// Returns a decision: the recommendation with its commands, the reasons, and the method of the
/// judgement.
pub(crate) fn decided(decision: &Decision, commands: &[String]) -> Markup {
    let (first, rest) = decision.sentences.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    html! {
        p .lead { (prose(first)) }
        @if !commands.is_empty() { pre { @for command in commands { (command) "\n" } } }
        @if !rest.is_empty() { ul .decisions { @for sentence in rest { li { (prose(sentence)) } } } }
        @if let Some(judged) = &decision.judged { p .quiet { (prose(judged)) } }
    }
}

/// Returns a note about the number of doubts, with a link to them.
pub(crate) fn reserved(view: &View<'_>) -> Markup {
    let doubts = view.doubts.len() as u64;
    html! {
        @if doubts > 0 {
            p .quiet {
                a href={ "#" (view.id("doubts")) } { (counted(doubts, "doubt", "doubts")) }
                @if doubts == 1 { " applies" } @else { " apply" } " to these results."
            }
        }
    }
}
