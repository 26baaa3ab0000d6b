//! The page of advice: the answer and its commands, the results on the device, the predictions, and
//! the model.

use iosched_advise::calibrate::{Calibration, Measurements};
use iosched_advise::tune::Standing;
use iosched_advise::{Advice, Prediction};
use iosched_kernel::settings::Lasting;
use iosched_lab::Records;
use maud::{Markup, html};

use super::page::{decided, sections};
use super::parts::{document, prose, section, sentence, unbroken};
use super::view::View;
use super::{calibrate, context, differences, reproduce, tune};

/// Returns the page.
pub(super) fn page(
    advice: &Advice<'_>,
    records: &Records,
    calibration: Option<(&Measurements, &Calibration)>,
    lasting: Option<&Lasting>,
    untried: Option<&Lasting>,
) -> Markup {
    let header = advice.measured.header;
    let title = format!("Settings of {} for {}", header.device.name, header.workload.name);
    let view = records.on(0).map(View::of);
    let doubts = advice.doubts();
    document(
        &header.version,
        &title,
        &html! {
            header {
                h1 { (title) }
                (decided(&advice.decision(), lasting.map_or(&[], |lasting| &lasting.commands)))
                @if let Some(view) = &view { (differences::section(view)) }
            }
            @if let Some(lasting) = lasting { (section("set", "How to apply the setting, and how to undo it", &how(lasting))) }
            @if let (Some(best), Some(lasting)) = (advice.untried(), untried) {
                (section("untried", "Not tried on the device", &not_tried(advice, best, lasting)))
            }
            (section("confirmed", "Confirmed on the device", &confirmed(advice)))
            @if let Some(view) = &view {
                @for (id, title, body) in sections(view) { (section(id, title, &body)) }
                (section("compared", "What was compared", &context::section(std::slice::from_ref(view))))
            }
            @if !doubts.is_empty() { (section("reservations", "Doubts about the advice", &doubt_list(&doubts))) }
            (section("predicted", "Predictions", &predicted(advice)))
            @if let Some((measurements, calibration)) = calibration {
                (section("model", "The model of the device", &model(measurements, calibration)))
            }
            @if let Some(view) = &view {
                (section("reproduce", "How to reproduce this report", &reproduce::section(std::slice::from_ref(view), None)))
            }
        },
    )
}

fn how(lasting: &Lasting) -> Markup {
    let lines = |lines: &[String]| html! { pre { @for line in lines { (line) "\n" } } };
    html! {
        p { "To apply this setting until the next boot, run as root:" }
        (lines(&lasting.commands))
        p { "To apply this setting at every boot, write these lines to " code { (lasting.rule_path) } ", then \
            run " code { "udevadm control --reload && udevadm trigger" } ":" }
        pre { (lasting.rule) }
        @for drop_in in &lasting.drop_ins {
            p { "Also write these lines to " code { (drop_in.path) } ", then run " code { "systemctl \
                daemon-reload" } ":" }
            pre { (drop_in.text) }
        }
        p {
            "Or, if you use tuned, write these lines to " code { (lasting.profile_path) } ", then \
                run " code { "tuned-adm profile " (lasting.profile_name) } ":"
        }
        pre { (lasting.profile) }
        p { "To restore the previous settings:" }
        (lines(&lasting.undo))
    }
}

/// Returns the section about the best setting of the search, if it was not tried on the device.
fn not_tried(advice: &Advice<'_>, best: &Standing, lasting: &Lasting) -> Markup {
    html! {
        p {
            "iosched ran this setting only in simulation, because the setting includes values of \
             cgroups: " strong { (best.label) } ", \
                best in simulation: "
            (unbroken(&advice.predicted.against_baseline(best))) ". Apply this setting, and check the effect."
        }
        (how(lasting))
    }
}

fn doubt_list(doubts: &[String]) -> Markup {
    html! { ol .doubts { @for doubt in doubts { li { (prose(&sentence(doubt))) } } } }
}

fn confirmed(advice: &Advice<'_>) -> Markup {
    html! {
        p {
            "Means and standard deviations of " (advice.measured.confirm_runs) " runs on the device, compared with \
             the present setting of the device: "
            (advice.present) "."
        }
        (tune::table(&advice.measured, &tune::requested(&advice.measured)))
        (beside(advice))
    }
}

/// Returns the table of predicted and measured differences by setting.
fn beside(advice: &Advice<'_>) -> Markup {
    let goals = || 0..advice.measured.header.goals;
    let is_measured =
        |prediction: &Prediction| goals().any(|goal| advice.predicted_and_measured(prediction, goal).is_some());
    html! {
        @if advice.predictions.iter().any(is_measured) {
            h3 { "Predicted and measured" }
            div .scroll tabindex="0" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Against " (advice.present) }
                            @for goal in goals() {
                                @let name = &advice.measured.header.measures[goal].name;
                                th scope="col" .number { (name) ", predicted" }
                                th scope="col" .number { (name) ", measured" }
                            }
                        }
                    }
                    tbody {
                        @for prediction in advice.predictions.iter().filter(|prediction| is_measured(prediction)) {
                            tr {
                                th scope="row" { (prediction.label) }
                                @for goal in goals() {
                                    @let (predicted, measured) = advice.predicted_and_measured(prediction, goal).unwrap_or_default();
                                    td .number { (unbroken(&predicted)) }
                                    td .number { (unbroken(&measured)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn predicted(advice: &Advice<'_>) -> Markup {
    let results = &advice.predicted;
    html! {
        p {
            "The search on the model chose which settings to try on the device. The runs on the device decide, \
             because a model is never exact. The decision of the simulation alone: " (prose(&results.decision().sentences.join(" ")))
        }
        @if results.put_back.iter().any(|removed| !removed.comparisons.is_empty()) {
            h3 { "Effect of each change" }
            (tune::worth(results))
        }
        @if !results.shares.is_empty() {
            h3 { "Share of each tunable" }
            (tune::matters(results))
        }
        @if !results.standings.is_empty() { (tune::table(results, &tune::requested(results))) }
        (tune::searched(results))
    }
}

fn model(measurements: &Measurements, calibration: &Calibration) -> Markup {
    html! {
        p { (calibrate::answer(calibration)) }
        (calibrate::reservations(measurements, calibration))
        @for (id, title, body) in calibrate::sections(measurements, calibration) {
            h3 id=(id) { (title) }
            (body)
        }
    }
}
