//! Writes a summary as an HTML page.

use std::collections::BTreeSet;

use iosched_lab::{grouped, significant};
use iosched_report::prose;
use maud::{Markup, html};

use super::gains::{Gain, between, signed_percent};
use super::volumes::{Choice, Volume};
use super::{Strategy, Summary};

/// Largest number of volumes in a list. The table of verdicts contains all volumes.
const LISTED_MAX: usize = 500;

pub(super) fn page(summary: &Summary) -> String {
    let title = format!("{} of {} volumes", summary.name, grouped(summary.volumes.len() as u64));
    let body = html! {
        header {
            h1 { (title) }
            @let decision = summary.decision();
            @if let Some(first) = decision.first() { p .lead { (prose(first)) } }
            ul .decisions { @for line in decision.iter().skip(1) { li { (prose(line)) } } }
        }
        section id="gains" {
            h2 { "Gain of the fleet" }
            (gains(&summary.gains))
            p .quiet {
                "If iosched used the same runs to choose a setting and to measure its gain, the gain would look too \
                 large. Therefore iosched chooses a setting with one half of the runs and measures its gain with the \
                 other half. Then iosched exchanges the halves. \"Typical volume\" is the geometric mean over \
                 volumes, with its 95 % interval. In \"total\", each volume counts by its number of I/Os."
            }
        }
        section id="chosen" {
            h2 { "Best settings of the volumes" }
            (chosen(summary))
        }
        @if summary.doubtful().next().is_some() {
            section id="doubtful" {
                h2 { "Doubtful volumes" }
                p { "Another setting may be better, but there are too few runs to tell." }
                (listed(summary, Choice::CannotTell))
            }
        }
        @if summary.count(Choice::Better) > 0 {
            section id="better" {
                h2 { "Volumes with a better setting" }
                (listed(summary, Choice::Better))
            }
        }
        @if !summary.doubts.is_empty() {
            section id="doubts" {
                h2 { "Doubts" }
                ul { @for doubt in &summary.doubts { li { (doubt) } } }
            }
        }
    };
    iosched_report::document(env!("CARGO_PKG_VERSION"), &title, &body)
}

fn gains(all: &[Gain]) -> Markup {
    html! {
        @if all.is_empty() {
            p { "No verdict is possible: no volume has two runs of each setting." }
        } @else {
            div .scroll {
                table {
                    thead { tr { th { "strategy" } th { "settings" } th { "typical volume" } th { "of the total" } th { "volumes" } } }
                    tbody {
                        @for gain in all {
                            tr {
                                th scope="row" { (gain.strategy.words()) }
                                td { (settings(gain)) }
                                td { (signed_percent(gain.percent)) (between(gain.interval)) }
                                td { (gain.total_percent.map_or_else(String::new, signed_percent)) }
                                td { (grouped(gain.volumes as u64)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn settings(gain: &Gain) -> String {
    match gain.strategy {
        Strategy::Common => gain.settings.values().cloned().collect(),
        Strategy::PerDevice => {
            let each = gain.settings.iter().map(|(device, label)| format!("{label} on {device}"));
            each.collect::<Vec<_>>().join(", ")
        }
        Strategy::PerVolume => "one for each volume".to_owned(),
    }
}

fn chosen(summary: &Summary) -> Markup {
    let devices: BTreeSet<&str> = summary.volumes.iter().map(|volume| volume.device.as_str()).collect();
    let count = |label: &str, choice: Choice, device: &str| {
        let wanted = |volume: &&Volume| volume.chosen == label && volume.choice == choice && volume.device == device;
        summary.volumes.iter().filter(wanted).count() as u64
    };
    html! {
        div .scroll {
            table {
                thead { tr { th { "setting" } th { "why" } th { "volumes" } @for device in &devices { th { (device) } } } }
                tbody {
                    @for (label, choice, all) in summary.choices() {
                        tr {
                            th scope="row" { (label) }
                            td { (choice.words()) }
                            td { (grouped(all as u64)) }
                            @for device in &devices { td { (grouped(count(label, choice, device))) } }
                        }
                    }
                }
            }
        }
        p .quiet { "Change the setting of a volume only if another setting is certainly better than the baseline." }
    }
}

fn listed(summary: &Summary, choice: Choice) -> Markup {
    let mut all: Vec<&Volume> = summary.volumes.iter().filter(|volume| volume.choice == choice).collect();
    // Volumes with the most I/Os come first.
    all.sort_by_key(|volume| std::cmp::Reverse(volume.ios));
    let more = all.len().saturating_sub(LISTED_MAX);
    all.truncate(LISTED_MAX);
    html! {
        div .scroll {
            table {
                thead {
                    tr {
                        th { "workload" } th { "device" } th { "now" }
                        th { @if choice == Choice::Better { "better" } @else { "may be better" } }
                        th { (summary.name) }
                        th { "I/Os" }
                    }
                }
                tbody {
                    @for volume in &all { (row(volume)) }
                }
            }
        }
        @if more > 0 { p .quiet { (grouped(more as u64)) " more volumes are in the dataset." } }
    }
}

fn row(volume: &Volume) -> Markup {
    let other = volume.maybe.as_ref().unwrap_or(&volume.chosen);
    let mean = |label: &str| volume.values.get(label).map(|values| iosched_lab::stat::mean(values));
    let (now, then) = (mean(&volume.baseline), mean(other));
    html! {
        tr {
            th scope="row" { (volume.workload) }
            td { (volume.device) }
            td { (volume.baseline) }
            td { @if volume.maybe.is_some() || volume.chosen != volume.baseline { (other) } }
            td {
                @if let (Some(now), Some(then)) = (now, then) {
                    (significant(now, 3)) " to " (significant(then, 3))
                    @if now != 0.0 { ", " (signed_percent((then / now - 1.0) * 100.0)) }
                }
            }
            td { (grouped(volume.ios)) }
        }
    }
}
