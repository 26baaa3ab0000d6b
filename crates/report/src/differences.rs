//! The verdicts as a picture: the difference between each setting and the baseline, with its
//! confidence interval.

use iosched_lab::{Comparison, FigureResults, significant};
use maud::{Markup, html};

use super::chart::arrow;
use super::parts::{Shown, name, unbroken};
use super::svg::{Margin, Picture, Plot, Tick, nice_end, px, ticks};
use super::view::{Setting, View};

const WIDTH: f64 = 720.0;
const ROW: f64 = 14.0;
const GAP: f64 = 7.0;
/// Largest difference that is drawn at its position, per cent. Larger differences are drawn at the
/// edge, with labels that have their values.
const PERCENT_MAX: f64 = 100.0;

/// Maximum number of characters of a label. Longer labels are shortened.
const LABEL_CHARS: usize = 26;

/// Maximum number of differences that are drawn. Headline metrics are always drawn, even if they
/// exceed this number.
const MARKS_MAX: usize = 20;

/// Difference of a setting in one metric.
struct Mark<'a> {
    setting: &'a Setting<'a>,
    comparison: &'a Comparison,
    percent: f64,
    interval: Option<(f64, f64)>,
}

/// Returns the section. Empty if there is nothing to compare.
pub(crate) fn section(view: &View<'_>) -> Markup {
    let (Some(baseline), Some(picture)) = (view.baseline(), picture(view)) else { return html! {} };
    html! {
        figure .wide .narrow {
            figcaption { "Difference from " (name(baseline)) " in per cent, with its confidence interval" }
            div .scroll tabindex="0" { (picture.html()) }
            p .legend {
                "↓ Lower is better, ↑ higher is better."
                @if is_cut(view) {
                    " An arrowhead at the edge stands for a value beyond " (PERCENT_MAX) " %. Longer intervals end at the edge."
                }
            }
        }
    }
}

/// Returns the plot, if there is anything to compare.
pub(crate) fn pictures<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    let caption = view.baseline().map(|baseline| format!("Difference from {} in percent", baseline.label));
    picture(view).map(|picture| Shown::of_all(&caption.unwrap_or_default(), picture)).into_iter().collect()
}

/// Returns the metrics that are drawn, each with its marks.
fn rows<'a>(view: &'a View<'_>) -> Vec<(&'a FigureResults, Vec<Mark<'a>>)> {
    // The goals alone would hide the costs of the settings. Other metrics of the tables are
    // therefore added as long as all metrics fit on one screen.
    let headline = |results: &FigureResults| usize::from(results.headline) * marks(view, &results.settings).len();
    let all: usize = view.results.figures.iter().map(headline).sum();
    let has_goals = view.results.figures.iter().any(|results| results.goal);
    let mut room = if has_goals { MARKS_MAX.saturating_sub(all) } else { 0 };
    let mut is_drawn = |results: &FigureResults| {
        let more = marks(view, &results.settings).len();
        let fits = results.shown && !results.headline && more <= room;
        room -= if fits { more } else { 0 };
        results.headline || fits
    };
    let figures = view.results.figures.iter().filter(|results| is_drawn(results));
    let rows = figures.map(|results| (results, marks(view, &results.settings)));
    let mut rows: Vec<_> = rows.filter(|(_, marks)| !marks.is_empty()).collect();
    // The deciding metric comes first.
    rows.sort_by_key(|(results, _)| Some(results.figure) != view.results.decision.metric);
    rows
}

/// Returns whether a difference exceeds the drawn range.
fn is_cut(view: &View<'_>) -> bool {
    let far = |mark: &Mark<'_>| mark.percent.max(mark.interval.map_or(0.0, |interval| interval.1)) > PERCENT_MAX;
    rows(view).iter().any(|(_, marks)| marks.iter().any(far))
}

fn picture(view: &View<'_>) -> Option<Picture> {
    let rows = rows(view);
    let baseline = view.baseline().filter(|_| !rows.is_empty())?;
    Some(plot(view, &rows, format!("Difference from {} in percent", baseline.label)))
}

fn marks<'a>(view: &'a View<'_>, figures: &'a [Option<iosched_lab::SettingFigure>]) -> Vec<Mark<'a>> {
    let marks = view.settings.iter().zip(figures).filter_map(|(setting, figure)| {
        let comparison = figure.as_ref()?.comparison.as_ref()?;
        let percent = comparison.percent.filter(|percent| percent.is_finite())?;
        Some(Mark { setting, comparison, percent, interval: comparison.interval_percent })
    });
    marks.collect()
}

fn plot(view: &View<'_>, rows: &[(&FigureResults, Vec<Mark<'_>>)], title: String) -> Picture {
    let marks = || rows.iter().flat_map(|(_, marks)| marks);
    let ends = || marks().flat_map(|m| [m.percent, m.interval.map_or(0.0, |i| i.0), m.interval.map_or(0.0, |i| i.1)]);
    let limit = |value: f64| nice_end(value.min(PERCENT_MAX), 4);
    let low = -limit(ends().fold(0.0, |a: f64, b| a.max(-b)).max(0.5));
    let high = limit(ends().fold(0.0, f64::max).max(0.5));
    let count = marks().count() as f64;
    let height = 26.0 + count * ROW + rows.len() as f64 * GAP + 28.0;
    // Goals may have long names.
    let longest = rows.iter().map(|(results, _)| results.label.chars().count()).max().unwrap_or(0) as f64;
    let left = (longest * 6.6 + 34.0).clamp(100.0, 260.0);
    let margin = Margin { top: 26.0, right: 190.0, bottom: 28.0, left };
    let plot = Plot::linear((WIDTH, height), margin, (low, high), (0.0, 1.0));
    let (values, decimals) = ticks(low, high, 6);
    let ticks: Vec<Tick> = values.iter().map(|&at| Tick { at, label: signed(at, decimals) }).collect();
    let mut y = margin.top + GAP / 2.0;
    let body = html! {
        (plot.x_axis(&ticks, true))
        line .zero x1=(px(plot.x.at(0.0))) x2=(px(plot.x.at(0.0))) y1=(px(margin.top)) y2=(px(height - margin.bottom)) {}
        @for (results, marks) in rows {
            text .row x=(px(margin.left - 10.0)) y=(px(y + ROW * marks.len() as f64 / 2.0)) dy=".35em" text-anchor="end" {
                (results.label) (arrow(results.figure.direction()))
            }
            @for (i, mark) in marks.iter().enumerate() {
                (whisker(&plot, mark, y + (i as f64 + 0.5) * ROW))
            }
            ({ y += ROW * marks.len() as f64 + GAP; "" })
        }
    };
    let about: Vec<String> = marks().map(|mark| described(mark)).collect();
    let about = format!("The table below has the full intervals. {}", about.join("; "));
    Picture { id: view.id("differences"), size: (WIDTH, height), title, about, body, chart: None }
}

fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$} %", value.abs());
    match value {
        v if v > 1e-9 => format!("+{text}"),
        v if v < -1e-9 => format!("−{text}"),
        _ => "0".to_owned(),
    }
}

fn described(mark: &Mark<'_>) -> String {
    format!("{} {} %", mark.setting.label, significant(mark.percent, 2))
}

/// Returns the complete label, as in the decision. If it is too long for a plot, returns the short
/// name.
fn label<'s>(setting: &'s Setting<'_>) -> &'s str {
    if setting.label.chars().count() <= LABEL_CHARS { setting.label } else { &setting.short }
}

fn whisker(plot: &Plot, mark: &Mark<'_>, y: f64) -> Markup {
    let (low, high) = mark.interval.unwrap_or((mark.percent, mark.percent));
    let differs = mark.comparison.verdict.differs();
    let edge = plot.x.at(plot.x.domain().1);
    let is_beyond = |percent: f64| percent > plot.x.domain().1;
    let description = mark.comparison.describe("");
    let mut word = unbroken(description.split(" (").next().unwrap_or_default());
    if is_beyond(mark.percent) && !differs {
        word = format!("{word}: +{}\u{a0}%", significant(mark.percent, 3));
    }
    let kind = if differs { "dot" } else { "hollow" };
    html! {
        g .(mark.setting.class) {
            line .interval x1=(px(plot.x.at(low))) x2=(px(plot.x.at(high))) y1=(px(y)) y2=(px(y)) {}
            @if is_beyond(mark.percent) {
                path .(kind) d={ "M" (px(edge - 5.0)) " " (px(y - 4.5)) "L" (px(edge + 4.0)) " " (px(y)) "L" (px(edge - 5.0)) " " (px(y + 4.5)) "Z" } {
                    title { (mark.setting.label) ": " (word) }
                }
            } @else {
                @if is_beyond(high) {
                    path .line .thin d={ "M" (px(edge - 5.0)) " " (px(y - 4.0)) "L" (px(edge)) " " (px(y)) "L" (px(edge - 5.0)) " " (px(y + 4.0)) } {}
                }
                circle .(kind) cx=(px(plot.x.at(mark.percent))) cy=(px(y)) r="4" {
                    title { (mark.setting.label) ": " (word) }
                }
            }
            text .halo x=(px(plot.x.at(high.max(mark.percent)) + 8.0)) y=(px(y)) dy=".35em" {
                tspan .coloured { (label(mark.setting)) }
                tspan .tick dx="6" { (word) }
            }
        }
    }
}
