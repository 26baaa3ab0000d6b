//! The table of metrics: mean and deviation of every setting, and the verdict.

use iosched_lab::{Comparison, Decimals, Direction, Figure, FigureResults, SettingFigure};
use maud::{Markup, html};

use super::chart::arrow;
use super::doubts::{about, marks};
use super::parts::{name, unbroken};
use super::view::View;

pub(crate) fn section(view: &View<'_>) -> Markup {
    if view.results.rounds == 0 {
        return html! { p .quiet { "No round is complete, so there are no results." } };
    }
    html! {
        div .scroll tabindex="0" {
            table .figures .many[view.settings.len() > 4] {
                (head(view))
                tbody {
                    @for results in &view.results.figures { (row(view, results)) }
                }
            }
        }
        (legend(view))
    }
}

fn head(view: &View<'_>) -> Markup {
    html! {
        thead {
            tr {
                th scope="col" { "Figure" }
                th scope="col" { "Unit" }
                @for setting in &view.settings {
                    th scope="col" .number {
                        (name(setting))
                        @if setting.number == view.header().baseline && view.settings.len() > 1 {
                            br; span .quiet { "baseline" }
                        }
                    }
                }
            }
        }
    }
}

/// Returns whether a line above the metric separates it from the metrics before it.
const fn begins_group(figure: Figure) -> bool {
    matches!(figure, Figure::SyncMean | Figure::AsyncMean | Figure::Utilisation)
}

fn row(view: &View<'_>, results: &FigureResults) -> Markup {
    let figure = results.figure;
    let cells: Vec<(f64, Option<f64>)> =
        results.settings.iter().flatten().map(|figure| (figure.mean, figure.sd)).collect();
    let decimals = Decimals::of(&cells);
    let better = match figure.direction() {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
        Direction::Neither => "neither direction is better",
    };
    html! {
        tr .begins[begins_group(figure)] {
            th scope="row" title={ (figure.doc()) "; " (better) } { (results.label) (arrow(figure.direction())) (marks(view, &about(view, figure, None))) }
            td .unit { (figure.unit()) }
            @for (setting, setting_figure) in results.settings.iter().enumerate() {
                td .number {
                    @match setting_figure {
                        Some(setting_figure) => (cell(view, figure, setting, setting_figure, decimals)),
                        None => span .quiet { "–" },
                    }
                }
            }
        }
    }
}

fn cell(view: &View<'_>, figure: Figure, setting: usize, setting_figure: &SettingFigure, decimals: Decimals) -> Markup {
    html! {
        span .value { (decimals.show(setting_figure.mean)) }
        @if let Some(sd) = setting_figure.sd { span .sd { " ± " (decimals.show(sd)) } }
        @if let Some(comparison) = &setting_figure.comparison {
            br;
            (verdict(comparison, figure))
            (marks(view, &about(view, figure, Some(setting))))
        }
    }
}

/// Returns the verdict. Its interval goes to a second line in narrow columns.
fn verdict(comparison: &Comparison, figure: Figure) -> Markup {
    let description = comparison.describe(figure.unit());
    let (what, interval) = description.split_once(" (").unwrap_or((&description, ""));
    html! {
        span .verdict .(comparison.verdict.id()) {
            span { (unbroken(what)) }
            @if !interval.is_empty() { " " span .interval { "(" (unbroken(interval)) } }
        }
    }
}

fn legend(view: &View<'_>) -> Markup {
    let rounds = view.results.rounds;
    html! {
        p .legend {
            @if rounds > 1 {
                "Mean ± standard deviation of " (rounds) " runs. "
            } @else {
                "With only one run of each setting, there are no deviations and no verdicts. "
            }
            "↓ lower is better, ↑ higher is better. "
            @if view.settings.len() > 1 && rounds > 1 {
                "Brackets show the confidence interval of the mean difference from the baseline. With 95 % \
                 confidence, every interval contains its true difference. The verdict is equal if the interval \
                 contains only differences of at most "
                (view.header().equal_within_percent) " %, and better or worse if the interval excludes 0. \
                                                      Otherwise the verdict is \"cannot tell\"."
            }
        }
    }
}
