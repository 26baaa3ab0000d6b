//! The page of a calibration: the measurements of a device, and the quality of the model's fit.
//!
//! Other pages include the sections of a calibration without its page.

mod plots;
mod table;

use iosched_lab::{grouped, significant};
use maud::{Markup, html};

use super::parts::{document, section, sentence, unbroken};
use super::units::{counted, time};
use iosched_advise::calibrate::{Calibration, Measurements, NOISY, WITHIN};
use iosched_advise::io_cost::IoCost;

/// Returns the page as HTML.
pub(super) fn page(measurements: &Measurements, calibration: &Calibration) -> Markup {
    let header = &measurements.header;
    let title = format!("Calibration of {}", header.target.name);
    document(
        &header.version,
        &title,
        &html! {
            header {
                h1 { (title) }
                p .lead { (answer(calibration)) }
                (reservations(measurements, calibration))
            }
            @for (id, title, body) in sections(measurements, calibration) { (section(id, title, &body)) }
        },
    )
}

/// Returns a sentence about whether a model fits.
pub(super) fn answer(calibration: &Calibration) -> String {
    unbroken(&sentence(&calibration.verdict.to_string()))
}

/// Returns the doubts about the results. Empty without doubts.
pub(super) fn reservations(measurements: &Measurements, calibration: &Calibration) -> Markup {
    let reservations: Vec<String> = measurements.warnings.iter().cloned().chain(calibration.drift()).collect();
    html! {
        @if !reservations.is_empty() {
            ul .doubts { @for reservation in &reservations { li { (unbroken(&sentence(reservation))) } } }
        }
    }
}

/// Returns the sections, each with its anchor, title and body. Anchors begin with "calibration", so
/// that they are unique in a larger page.
pub(super) fn sections(
    measurements: &Measurements,
    calibration: &Calibration,
) -> Vec<(&'static str, &'static str, Markup)> {
    let mut sections = Vec::new();
    if !calibration.held_out.is_empty() {
        sections.push(("calibration-held-out", "Workloads that the fit did not use", held_out(calibration)));
    }
    let figures = plots::figures(&measurements.header.target, calibration);
    if !figures.is_empty() {
        sections.push(("calibration-plots", "Measurements and model", plots::section(&figures)));
    }
    sections.push(("calibration-probes", "Measurements used for the fit", probes(calibration)));
    sections.push(("calibration-models", "Models that were tried", models(measurements, calibration)));
    sections.push(("calibration-io-cost", "Settings for io.cost", io_cost(measurements, calibration)));
    sections.push(("calibration-conditions", "Method of the measurement", conditions(measurements)));
    sections
}

fn held_out(calibration: &Calibration) -> Markup {
    html! {
        p {
            "The fit did not use these workloads. Expect errors of a similar size for your own workloads."
        }
        (table::table(&calibration.held_out))
        p .legend {
            "Medians of the runs. ± is the standard deviation between runs. If the deviation is above " (percent(NOISY)) ", the \
             value has a \"!\": no model can match a value that varies so much. With one run, the \
             deviation is unknown. Values that are wrong by more than " (percent(WITHIN)) " are bold."
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}\u{a0}%", share * 100.0)
}

fn probes(calibration: &Calibration) -> Markup {
    let (met, all) = calibration.verdict.met;
    html! {
        p {
            (counted(all as u64, "probe", "probes")) ". Each probe is a closed loop of equal I/Os. For " (met)
            " of the probes, the model's rate is within " (percent(WITHIN)) " of the measured rate."
        }
        details {
            summary { "Every probe, measurement and model" }
            (table::table(&calibration.residuals))
        }
    }
}

fn models(measurements: &Measurements, calibration: &Calibration) -> Markup {
    let profile = calibration.to_toml(&measurements.header).ok();
    html! {
        table {
            thead { tr { th scope="col" { "Kind" } th scope="col" { "Mean error of the best model of each kind" } } }
            tbody {
                @for (kind, fit) in &calibration.kinds {
                    tr {
                        th scope="row" { @if *kind == calibration.verdict.kind { b { (kind) } } @else { (kind) } }
                        td {
                            @match fit {
                                Ok(off) => { (significant(off * 100.0, 2)) "\u{a0}%" },
                                Err(reason) => span .quiet { "not tried: " (reason) },
                            }
                        }
                    }
                }
            }
        }
        @if let Some(profile) = profile {
            details {
                summary { "The profile, for --device" }
                pre { (profile) }
            }
        }
    }
}

fn io_cost(measurements: &Measurements, calibration: &Calibration) -> Markup {
    let io_cost = IoCost::of_measurements(measurements, &calibration.profile);
    html! {
        p { "To use weights of cgroups, write the number of the device and these values to io.cost.model and \
            io.cost.qos." }
        pre { (io_cost.model.line()) "\n" (io_cost.qos.line()) }
        table {
            thead { tr { th scope="col" { "Figure" } th scope="col" { "Value" } th scope="col" { "From" } } }
            tbody {
                @for origin in &io_cost.origins {
                    tr { th scope="row" { (origin.name) } td { (grouped(origin.value)) } td { (origin.from) } }
                }
            }
        }
        details {
            summary { "Entry for systemd's hwdb" }
            pre { (io_cost.hwdb(measurements.header.target.model_name.as_deref())) }
        }
    }
}

fn conditions(measurements: &Measurements) -> Markup {
    let header = &measurements.header;
    let target = &header.target;
    let rounds = measurements.samples.iter().map(|sample| sample.round + 1).max().unwrap_or(0);
    let counted_ns: u64 = measurements.samples.iter().map(|sample| sample.counted_ns).sum();
    html! {
        dl .facts {
            dt { "Device" }
            dd {
                strong { (target.name) } ", " (significant(target.capacity_sectors as f64 * 512.0 / 1e9, 3)) " GB; "
                (counted(target.depth.into(), "command", "commands")) " at once, each of "
                (grouped(target.max_sectors_kb.into())) " KiB at most"
            }
            dt { "Access" }
            dd { @if target.writable { "read and written" } @else { "only read" } }
            @if !target.conditions.is_empty() {
                dt { "Conditions" }
                @for condition in &target.conditions { dd { (condition) } }
            }
            dt { "Runs" }
            dd {
                (counted(header.probes.len() as u64, "probe", "probes")) " in " (counted(rounds.into(), "round", "rounds")) ", "
                (time(counted_ns as f64, 3)) "; each round has a different order of probes; seed " (header.seed)
            }
            dt { "Measure again" }
            dd { pre { (header.command) } }
            dt { "Version" }
            dd { "iosched " (header.version) ", measurements of format " (header.format) }
        }
        p .legend {
            "The measurements alone determine the model. To fit the model again without new measurements, run "
            code { "iosched calibrate --from RECORDS" } "."
        }
    }
}
