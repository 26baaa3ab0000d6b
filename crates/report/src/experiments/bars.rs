//! Bars with deviations: the published and the simulated result of each test of a case.
//!
//! The tests of a case have different units and sizes. The bars of each test are therefore relative
//! to its published baseline, or to its simulated baseline if none was published.

use iosched_lab::reproduce::{Cell, ExperimentResults, Known, Row};
use iosched_lab::{grouped, significant};
use maud::{Markup, html};

use crate::parts::swatch;
use crate::svg::{Margin, Path, Plot, Tick, picture, px};
use crate::view::Setting;

const WIDTH: f64 = 520.0;
/// Height of a bar, pixels. Each setting has two bars.
const BAR: f64 = 6.5;
/// Height of a setting, pixels.
const SETTING: f64 = 18.0;
/// Space between tests, pixels.
const GAP: f64 = 12.0;
const MARGIN: Margin = Margin { top: 8.0, right: 112.0, bottom: 26.0, left: 128.0 };
/// Maximum length of a bar, as a multiple of the baseline.
const CUT: f64 = 2.0;

/// Returns one plot per case with results.
pub(super) fn pictures(results: &ExperimentResults<'_>, settings: &[Setting<'_>]) -> Markup {
    let of_case = |case: usize| -> Vec<(&Row, f64)> {
        let rows = results.rows.iter().filter(|row| row.case == case);
        rows.filter_map(|row| Some((row, reference(row, results.experiment.baseline())?))).collect()
    };
    let cases: Vec<(usize, Vec<(&Row, f64)>)> = (0..results.experiment.cases.len())
        .map(|case| (case, of_case(case)))
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    html! {
        p .legend {
            "Percent of the published baseline, or of the simulated baseline if no baseline was published. Solid \
             bars: published. Light bars: simulated. Lines: mean ± standard deviation. At the right: the \
             published and the simulated mean. "
            @for setting in settings {
                span .legend-name .(setting.class) { (swatch()) span .coloured-name { (setting.label) } } "  "
            }
        }
        div .pair {
            @for (case, rows) in &cases {
                figure {
                    figcaption { (results.experiment.cases[*case].name) }
                    (bars(results, *case, rows, settings))
                }
            }
        }
    }
}

/// Returns the mean that is the unit of a row's bars.
fn reference(row: &Row, baseline: usize) -> Option<f64> {
    let base = &row.cells[baseline];
    let published = base.published.map(|known| known.mean);
    published.or_else(|| Some(base.simulated.as_ref()?.known.mean)).filter(|mean| *mean > 0.0)
}

fn bars(results: &ExperimentResults<'_>, case: usize, rows: &[(&Row, f64)], settings: &[Setting<'_>]) -> Markup {
    let group = settings.len() as f64 * SETTING + GAP;
    let size = (WIDTH, MARGIN.top + rows.len() as f64 * group + MARGIN.bottom);
    let longest = rows.iter().flat_map(|(row, reference)| row.cells.iter().map(move |cell| longest(cell) / reference));
    let end = longest.fold(1.1, f64::max).min(CUT);
    let plot = Plot::linear(size, MARGIN, (0.0, end), (0.0, 1.0));
    let mut percents = vec![0.0, 0.5, 1.0, 1.5, 2.0];
    percents.retain(|share| *share <= end);
    let marks: Vec<Tick> = percents.into_iter().map(|at| Tick { at, label: format!("{:.0} %", at * 100.0) }).collect();
    let body = html! {
        (plot.x_axis(&marks, true))
        @for (number, (row, reference)) in rows.iter().enumerate() {
            @let top = MARGIN.top + number as f64 * group + GAP / 2.0;
            text x=(px(MARGIN.left - 8.0)) y=(px(top + 11.0)) text-anchor="end" {
                (row.test) @if row.is_short() { " ◦" }
            }
            text .tick x=(px(MARGIN.left - 8.0)) y=(px(top + 25.0)) text-anchor="end" { (row.unit) }
            @for (setting, cell) in settings.iter().zip(&row.cells) {
                g .(setting.class) { (setting_bars(&plot, cell, *reference, top + setting.number as f64 * SETTING)) }
            }
        }
    };
    let name = &results.experiment.cases[case].name;
    let about = format!("{} tests under {} settings; the values are in the table below", rows.len(), settings.len());
    picture(&format!("bars-{}-{case}", results.experiment.name), size, name, &about, &body)
}

fn longest(cell: &Cell) -> f64 {
    let reach = |known: Known| known.mean + known.sd.unwrap_or(0.0);
    let published = cell.published.map_or(0.0, reach);
    published.max(cell.simulated.as_ref().map_or(0.0, |simulated| reach(simulated.known)))
}

/// Draws the published bar above the simulated bar, and both means to the right.
fn setting_bars(plot: &Plot, cell: &Cell, reference: f64, top: f64) -> Markup {
    let simulated = cell.simulated.as_ref().map(|simulated| simulated.known);
    let (_, _, right, _) = plot.inner();
    let shown = |known: Option<Known>| known.map_or_else(|| "–".to_owned(), |known| quantity(known.mean));
    html! {
        @for (known, class, y) in [(cell.published, "solid", top), (simulated, "area", top + BAR + 0.5)] {
            @if let Some(known) = known {
                @let mut path = Path::default();
                @let () = path.bar(plot.x.at(0.0), y, plot.x.at(known.mean / reference) - plot.x.at(0.0), BAR);
                path .(class) d=(path.data()) {}
                @if let Some(sd) = known.sd.filter(|sd| *sd > 0.0) {
                    @let middle = px(y + BAR / 2.0);
                    line .whisker x1=(px(plot.x.at((known.mean - sd) / reference)))
                        x2=(px(plot.x.at((known.mean + sd) / reference))) y1=(middle) y2=(middle) {}
                }
            }
        }
        @if cell.published.is_some() || simulated.is_some() {
            text .inside .tick x=(px(right + 8.0)) y=(px(top + BAR + 4.5)) {
                (shown(cell.published)) " | " (shown(simulated))
            }
        }
    }
}

/// Formats a number with three significant digits. Never rounds digits before the decimal point.
fn quantity(value: f64) -> String {
    if value >= 1000.0 { grouped(value.round() as u64) } else { significant(value, 3) }
}
