//! The section that says how to reproduce the report, and which method it uses.

use iosched_lab::{ALONE_IOS_MIN, ALONE_TASKS_MAX, grouped};
use maud::{Markup, html};

use super::view::View;

/// Returns the section for one device, or for all devices of a page.
pub(crate) fn section(views: &[View<'_>], file: Option<&str>) -> Markup {
    let Some(first) = views.first() else { return html! {} };
    let header = first.header();
    html! {
        dl .facts {
            @if !header.command.is_empty() {
                dt { "Run again" }
                dd { pre { (header.command) } }
            }
            @if let Some(file) = file {
                dt { "This page" }
                dd { "is computed from the records in " code { (file) } " alone: " code { "iosched report " (file) } }
            }
            dt { "Version" }
            dd { "iosched " (header.version) ", records of format " (header.format) }
            dt { "Seed" }
            dd { (header.seed) }
            dt { "Workload" }
            dd { (header.workload.name) ", fingerprint " code { (header.workload.fingerprint) } }
            dt { @if first.several { "Devices" } @else { "Device" } }
            @for device in &header.devices {
                dd { (device.name) ", fingerprint " code { (device.fingerprint) } }
            }
        }
        @for device in &header.devices {
            @if let Some(profile) = &device.profile {
                details {
                    summary { "Profile of " @if first.several { (device.name) } @else { "the device" } }
                    pre { (profile) }
                }
            }
        }
        (runs(first))
        (method())
    }
}

/// Returns the seeds of all runs.
fn runs(view: &View<'_>) -> Markup {
    let rounds = view.records.all().rounds();
    let planned = view.header().runs;
    html! {
        @if !rounds.is_empty() {
            details {
                summary { "Seeds of the runs" }
                p {
                    (grouped(rounds.len() as u64)) " of " (grouped(planned.into())) " rounds are complete: "
                    @for (i, &run) in rounds.iter().enumerate() {
                        @if i > 0 { ", " }
                        (run) ": " @if let Some(run) = view.records.run(run, 0) { code { (run.seed) } }
                    }
                    "."
                }
            }
        }
    }
}

fn method() -> Markup {
    html! {
        h3 { "Method" }
        ul .method {
            li {
                "Runs are simulations: workload, device, setting, seed and version determine the result. The seed \
                 determines everything that is random: the initial position of the platters, and the part of each \
                 arrival time that is finer than the resolution of the trace. Run "
                i { "i" } " of every setting has the same seed. iosched compares runs with the same seed, so \
                           random effects on both runs cancel out."
            }
            li {
                "The confidence interval is Student's t over the paired differences. \"Equal\" means that all \
                 differences in the interval are too small to matter. \"Cannot tell\" means that the interval contains \
                 zero, and also differences that are large enough to matter. Then the runs show neither a difference \
                 nor equality."
            }
            li {
                "Among many comparisons, a few differ by chance. Therefore Holm's correction widens the intervals. \
                 With 95 % confidence, every interval then contains its true difference."
            }
            li {
                "Latency is the time from submission to completion, and includes any wait for a free request. \
                 Percentiles come from histograms that are exact to 0.8 %."
            }
            li {
                "Fairness is Jain's index of slowdowns. A slowdown is the mean latency of a process while the \
                    others run, divided by its mean latency while it runs alone. Fairness includes \
                    the " (ALONE_TASKS_MAX) " busiest processes with "
                (ALONE_IOS_MIN) " I/Os or more. 1 means that all processes are slowed down equally."
            }
            li { "Plots over time show the first run of each setting. All other results are from \
                  all complete rounds." }
        }
    }
}
