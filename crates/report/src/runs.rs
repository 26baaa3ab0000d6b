//! Each run as a dot, so that drifts, groups and outliers are visible. The runs of a real device
//! are in the order of execution.

use std::collections::BTreeSet;

use iosched_lab::FigureResults;
use maud::{Markup, html};

use super::chart::{Axis, Chart, Draw, Quantity, Series, Value, good};
use super::parts::{Shown, key, row};
use super::svg::{Margin, Picture, Plot, Tick, nice_end, px, ticks};
use super::view::{Setting, View};

const SIZE: (f64, f64) = (330.0, 190.0);
const MARGIN: Margin = Margin { top: 26.0, right: 10.0, bottom: 34.0, left: 58.0 };

/// Position of a run in the order, and its value.
type Point = (f64, f64);

pub(crate) fn section(view: &View<'_>) -> Markup {
    let is_measured = view.device().measured.is_some();
    html! {
        p .legend {
            "Each dot is a run. From left to right, the dots are "
            @if is_measured {
                "in the order of execution"
            } @else {
                "in the order of run numbers. Runs with the same number have the same seed"
            }
            ". Each line is the mean of a setting. "
        }
        (key(&view.settings.iter().collect::<Vec<_>>()))
        (row(&pictures(view)))
    }
}

/// Returns a plot of each metric that is used for conclusions.
pub(crate) fn pictures<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    let shown = view.results.figures.iter().filter(|results| results.concludes());
    shown.map(|results| Shown::of_all(&results.label, plot(view, results))).collect()
}

/// Returns the runs of a setting, in order.
fn points(view: &View<'_>, results: &FigureResults, setting: usize) -> Vec<Point> {
    let values = results.settings[setting].iter().flat_map(|figure| figure.values.iter().copied());
    let turns = view.records.complete_runs(setting).into_iter().map(|run| f64::from(run.turn.unwrap_or(run.run)) + 1.0);
    let mut points: Vec<Point> = turns.zip(values).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn plot(view: &View<'_>, results: &FigureResults) -> Picture {
    let all: Vec<Vec<Point>> = (0..view.settings.len()).map(|setting| points(view, results, setting)).collect();
    let flat = || all.iter().flatten();
    let last = flat().map(|point| point.0).fold(1.0, f64::max);
    let top = nice_end(flat().map(|point| point.1).fold(0.0, f64::max), 4);
    let plot = Plot::linear(SIZE, MARGIN, (0.5, last + 0.5), (0.0, top));
    let marks = |low: f64, high: f64, wanted: usize| -> Vec<Tick> {
        let (values, decimals) = ticks(low, high, wanted);
        values.into_iter().map(|at| Tick { at, label: format!("{at:.decimals$}") }).collect()
    };
    let (left, _, right, bottom) = plot.inner();
    let body = html! {
        (plot.y_axis(&marks(0.0, top, 4), results.figure.unit()))
        (plot.good(results.figure.direction()))
        @for ((setting, figure), points) in view.settings.iter().zip(&results.settings).zip(&all) {
            g .(setting.class) {
                @if let Some(figure) = figure {
                    @let y = plot.y.at(figure.mean);
                    line .line .thin x1=(px(left)) x2=(px(right)) y1=(px(y)) y2=(px(y)) {}
                }
                @for (turn, value) in points {
                    circle .dot cx=(px(plot.x.at(*turn))) cy=(px(plot.y.at(*value))) r="3.2" {}
                }
            }
        }
        (plot.x_axis(&marks(1.0, last, 5), false))
        text .tick x=(px(right)) y=(px(bottom + 30.0)) text-anchor="end" { "run" }
    };
    let means = view
        .settings
        .iter()
        .zip(&results.settings)
        .filter_map(|(setting, figure)| Some(format!("{}: mean {:.3}", setting.label, figure.as_ref()?.mean)));
    let about = means.collect::<Vec<_>>().join("; ");
    let places: BTreeSet<u64> = flat().map(|point| point.0 as u64).collect();
    let series = |(setting, points): (&Setting<'_>, &Vec<Point>)| {
        let value =
            |place: &u64| points.iter().find(|point| point.0 as u64 == *place).map_or(f64::NAN, |point| point.1);
        let mean = results.settings[setting.number].as_ref().map(|figure| Value(figure.mean));
        Series { mean, ..Series::of(setting, setting.label, Draw::Dots, places.iter().map(value)) }
    };
    let chart = Chart {
        x: Axis::linear(Quantity::Number, plot.x.domain()),
        y: Axis { unit: results.figure.unit().to_owned(), ..Axis::linear(Quantity::Number, (0.0, top)) },
        at: places.iter().map(|&place| Value(place as f64)).collect(),
        series: view.settings.iter().zip(&all).map(series).collect(),
        heat: None,
        stack: None,
        good: good(results.figure.direction()),
        group: String::new(),
    };
    let (id, title) = (view.id(&format!("runs-{}", results.figure.id())), results.label.clone());
    Picture { id, size: SIZE, title, about, body, chart: Some(chart) }
}
