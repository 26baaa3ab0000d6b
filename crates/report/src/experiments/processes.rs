//! End times of many processes: one strip per setting for the published times, and below it one for
//! the simulated times.

use maud::{Markup, html};

use super::series_names;
use crate::parts::section;
use crate::svg::{Margin, Plot, nice_end, picture, px};
use crate::units::linear_ticks;
use crate::view::Setting;
use iosched_lab::reproduce::ExperimentResults;

const WIDTH: f64 = 740.0;
/// Height of a strip, pixels.
const STRIP: f64 = 22.0;
/// Space between settings, pixels.
const GAP: f64 = 10.0;
const MARGIN: Margin = Margin { top: 6.0, right: 16.0, bottom: 26.0, left: 196.0 };

struct Strip<'a> {
    setting: &'a Setting<'a>,
    whose: &'static str,
    published: bool,
    values: &'a [f64],
}

/// Returns one plot per series of times by process.
pub(super) fn pictures(results: &ExperimentResults<'_>, settings: &[Setting<'_>]) -> Markup {
    let names = series_names(results, settings, |series| series.step_s.is_none() && series.unit == "s");
    html! {
        @if !names.is_empty() {
            (section(&format!("{}-processes", results.experiment.name), "End of each process", &html! {
                p .legend {
                    "Each mark is one process. The published strip is above the strip of the first simulated \
                     run. If a published strip has two marks, only the first and the last process are known."
                }
                @for (case, name) in names {
                    figure .wide.narrow { div .scroll tabindex="0" { (strips(results, settings, case, name)) } }
                }
            }))
        }
    }
}

fn strips(results: &ExperimentResults<'_>, settings: &[Setting<'_>], case: usize, name: &str) -> Markup {
    let case_name = &results.experiment.cases[case].name;
    let mut strips = Vec::new();
    for setting in settings {
        let published = results.experiment.series.iter();
        let published = published
            .filter(|series| series.case == *case_name && series.setting == setting.label && series.name == name);
        let strip = |whose, published, values| Strip { setting, whose, published, values };
        strips.extend(published.map(|series| strip("published", true, series.values.as_slice())));
        let ours = results.series(case, setting.number).filter(|series| series.name == name && series.unit == "s");
        strips.extend(ours.map(|series| strip("simulated", false, series.values.as_slice())));
    }
    let changes = strips.windows(2).filter(|pair| pair[0].setting.number != pair[1].setting.number).count();
    let height = MARGIN.top + strips.len() as f64 * STRIP + changes as f64 * GAP + MARGIN.bottom;
    let size = (WIDTH, height);
    let last = strips.iter().flat_map(|strip| strip.values).copied().fold(0.0, f64::max);
    let end = nice_end(last, 6);
    let plot = Plot::linear(size, MARGIN, (0.0, end), (0.0, 1.0));
    let mut marks = linear_ticks(0.0, end, 6, ("s", 1.0));
    if let Some(last) = marks.last_mut() {
        last.label.push_str(" s");
    }
    let mut top = MARGIN.top;
    let mut before: Option<usize> = None;
    let body = html! {
        (plot.x_axis(&marks, true))
        @for strip in &strips {
            @let begins = before.is_none_or(|before| before != strip.setting.number);
            @let () = if begins && before.is_some() { top += GAP };
            @let middle = top + STRIP / 2.0;
            @let () = { before = Some(strip.setting.number); top += STRIP; };
            g .(strip.setting.class) {
                @if begins { text .coloured x="0" y=(px(middle + 4.0)) { (strip.setting.label) } }
                text .tick x=(px(MARGIN.left - 10.0)) y=(px(middle + 4.0)) text-anchor="end" { (strip.whose) }
                @for &value in strip.values {
                    @let x = px(plot.x.at(value));
                    line .mark .ours[!strip.published] x1=(x) x2=(x) y1=(px(middle - 7.0)) y2=(px(middle + 7.0)) {}
                }
            }
        }
    };
    let about = format!("seconds from the start to the end of each process, in {} strips", strips.len());
    picture(&format!("processes-{}-{case}-{name}", results.experiment.name), size, case_name, &about, &body)
}
