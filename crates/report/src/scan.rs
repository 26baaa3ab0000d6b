//! Metrics over a scanned parameter. The settings have one scheduler and differ in the value of one
//! tunable or attribute, for example `--scheduler cfq:slice_idle=0..8/2`. A line joins settings
//! that differ only in this parameter.

use std::collections::BTreeMap;

use iosched_lab::{FigureResults, SettingFigure, grouped};
use maud::{Markup, html};

use super::chart::{Axis, Chart, Draw, Quantity, Series, Value, good};
use super::parts::{Shown, name, row, swatch};
use super::svg::{Margin, Path, Picture, Plot, Tick, nice_end, px, ticks};
use super::view::{Setting, View};

const SIZE: (f64, f64) = (330.0, 200.0);
const MARGIN: Margin = Margin { top: 26.0, right: 12.0, bottom: 34.0, left: 58.0 };
/// Minimum number of values of a scan. Fewer values are a usual comparison.
const VALUES_MIN: usize = 3;
/// Maximum ratio of the range to the smallest step for a linear axis. Above this ratio, values
/// would overlap, so the axis is logarithmic.
const STEPS_MAX: f64 = 20.0;

/// A parameter of a scheduler, and the lines over it.
struct Scan {
    scheduler: String,
    parameter: String,
    lines: Vec<Line>,
}

/// Settings that differ only in the parameter.
struct Line {
    /// The values that these settings share, in the form of a setting. Empty if they share none.
    common: String,
    /// Pairs of a value of the parameter and the index of a setting, in ascending order.
    points: Vec<(f64, usize)>,
}

/// Pairs of a value of the parameter and the index of a setting, by the values that settings share.
type Lines = BTreeMap<String, Vec<(f64, usize)>>;

impl Line {
    /// Returns the colour of the first setting.
    fn colour(&self) -> usize {
        self.points.first().map_or(0, |point| point.1) % Setting::COLOURS
    }

    fn name<'a>(&'a self, scan: &'a Scan) -> &'a str {
        if self.common.is_empty() { &scan.scheduler } else { &self.common }
    }
}

impl Scan {
    /// Returns the values in ascending order.
    fn values(&self) -> Vec<f64> {
        let mut values: Vec<f64> = self.lines.iter().flat_map(|line| &line.points).map(|point| point.0).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }

    /// Returns whether values increase by factors rather than by steps. If so, the position of a
    /// value is its binary logarithm.
    fn rises_by_factors(&self) -> bool {
        let values = self.values();
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return false };
        let step = values.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        first > 0.0 && step * STEPS_MAX < last - first
    }

    /// Returns the position of a value on the horizontal axis.
    fn place(&self, value: f64) -> f64 {
        if self.rises_by_factors() { value.log2() } else { value }
    }
}

/// Returns the scans among the settings.
fn scans(view: &View<'_>) -> Vec<Scan> {
    let mut found: BTreeMap<(String, String), Lines> = BTreeMap::new();
    for (number, record) in view.header().settings.iter().enumerate() {
        let setting = &record.setting;
        for assignment in setting.assignments() {
            let Some(value) = assignment.number() else { continue };
            let others = setting.assignments().filter(|other| other.name() != assignment.name());
            let common: Vec<_> = others.map(|other| format!("{}={}", other.name(), other.text())).collect();
            let lines = found.entry((setting.name().to_owned(), assignment.name().to_owned())).or_default();
            lines.entry(common.join(",")).or_default().push((value as f64, number));
        }
    }
    let scan = |((scheduler, parameter), lines): ((String, String), Lines)| {
        let lines = lines.into_iter().filter(|(_, points)| points.len() >= VALUES_MIN);
        let line = |(common, mut points): (String, Vec<(f64, usize)>)| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line { common, points }
        };
        Scan { scheduler, parameter, lines: lines.map(line).collect() }
    };
    found.into_iter().map(scan).filter(|scan| !scan.lines.is_empty()).collect()
}

/// Returns the section, if a parameter was scanned.
pub(crate) fn section(view: &View<'_>) -> Option<Markup> {
    let pictures = pictures(view);
    let baseline = view.baseline();
    (!pictures.is_empty()).then(|| {
        html! {
            p .legend {
                "Means of all runs for each value of a parameter. The band around a line is one standard \
                 deviation on each side."
                @if let Some(baseline) = baseline { " The dashed line is the baseline, " (name(baseline)) "." }
            }
            @for scan in scans(view).iter().filter(|scan| scan.lines.len() > 1) { (key(scan)) }
            (row(&pictures))
        }
    })
}

/// Returns the key of the lines.
fn key(scan: &Scan) -> Markup {
    html! {
        p .key {
            (scan.parameter) ": "
            @for line in &scan.lines {
                span .name .(format!("s{}", line.colour())) { (swatch()) (line.name(scan)) } " "
            }
        }
    }
}

/// Returns a plot for each parameter and each metric that is used for conclusions.
pub(crate) fn pictures<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    let mut all = Vec::new();
    for scan in scans(view) {
        for results in view.results.figures.iter().filter(|results| results.concludes()) {
            let caption = format!("{} over {} of {}", results.label, scan.parameter, scan.scheduler);
            all.push(Shown::of_all(&caption, plot(view, &scan, results, &caption)));
        }
    }
    all
}

/// A position on the horizontal axis, and the metric at this position.
type Point<'r> = (f64, &'r SettingFigure);

fn points<'r>(scan: &Scan, line: &Line, results: &'r FigureResults) -> Vec<Point<'r>> {
    let known = line.points.iter().filter_map(|&(value, setting)| Some((value, results.settings[setting].as_ref()?)));
    known.map(|(value, figure)| (scan.place(value), figure)).collect()
}

/// Returns a mean minus and plus its deviation.
fn reach(figure: &SettingFigure) -> (f64, f64) {
    let sd = figure.sd.unwrap_or(0.0);
    (figure.mean - sd, figure.mean + sd)
}

fn plot(view: &View<'_>, scan: &Scan, results: &FigureResults, title: &str) -> Picture {
    let lines: Vec<Vec<Point<'_>>> = scan.lines.iter().map(|line| points(scan, line, results)).collect();
    let baseline = view.baseline().and_then(|setting| results.settings[setting.number].as_ref());
    let flat = || lines.iter().flatten();
    let highest = flat().map(|point| reach(point.1).1).chain(baseline.map(|figure| figure.mean)).fold(0.0, f64::max);
    let top = nice_end(highest, 4);
    let values = scan.values();
    // A scan has several values.
    let ends = [values.first(), values.last()].map(|end| end.map_or(0.0, |&value| scan.place(value)));
    let room = (ends[1] - ends[0]) * 0.04;
    let plot = Plot::linear(SIZE, MARGIN, (ends[0] - room, ends[1] + room), (0.0, top));
    let (upward, decimals) = ticks(0.0, top, 4);
    let upward: Vec<Tick> = upward.into_iter().map(|at| Tick { at, label: written(at, decimals) }).collect();
    // The marks are the values of the settings that were run.
    let across: Vec<Tick> =
        values.iter().map(|&value| Tick { at: scan.place(value), label: written(value, 0) }).collect();
    let (left, _, right, bottom) = plot.inner();
    let at = |place: f64, figure: f64| (plot.x.at(place), plot.y.at(figure.clamp(0.0, top)));
    let body = html! {
        (plot.y_axis(&upward, results.figure.unit()))
        (plot.good(results.figure.direction()))
        @if let (Some(setting), Some(figure)) = (view.baseline(), baseline) {
            @let y = plot.y.at(figure.mean);
            g .(setting.class) {
                line .line .thin stroke-dasharray="4 3" x1=(px(left)) x2=(px(right)) y1=(px(y)) y2=(px(y)) {}
            }
        }
        @for (line, points) in scan.lines.iter().zip(&lines) {
            g .(format!("s{}", line.colour())) {
                path .band d=(band(points.iter().map(|&(place, figure)| (place, reach(figure))), at).data()) {}
                path .line d=(joined(points.iter().map(|&(place, figure)| at(place, figure.mean))).data()) {}
                @for &(place, figure) in points {
                    @let (x, y) = at(place, figure.mean);
                    circle .dot cx=(px(x)) cy=(px(y)) r="3.2" {}
                }
                @if let Some(&(place, figure)) = points.last().filter(|_| lines.len() > 1) {
                    @let (x, y) = at(place, figure.mean);
                    text .coloured .halo x=(px(x)) y=(px(y - 7.0)) text-anchor="end" { (line.name(scan)) }
                }
            }
        }
        (plot.x_axis(&across, false))
        text .tick x=(px(right)) y=(px(bottom + 30.0)) text-anchor="end" { (scan.parameter) }
    };
    let (id, about) =
        (format!("scan-{}-{}-{}", scan.scheduler, scan.parameter, results.figure.id()), about(scan, results));
    let chart = chart(view, scan, results, &lines, (plot.x.domain(), top));
    let (id, title) = (view.id(&id.replace('.', "-")), title.to_owned());
    Picture { id, size: SIZE, title, about, body, chart: Some(chart) }
}

/// Formats a value of an axis. Large values have separated thousands.
fn written(value: f64, decimals: usize) -> String {
    if decimals == 0 && value >= 10_000.0 { grouped(value as u64) } else { format!("{value:.decimals$}") }
}

fn joined(places: impl Iterator<Item = (f64, f64)>) -> Path {
    let mut path = Path::default();
    places.for_each(|(x, y)| path.line_to(x, y));
    path
}

/// Draws the band: along the upper ends, and back along the lower ends.
fn band(
    points: impl DoubleEndedIterator<Item = (f64, (f64, f64))> + Clone,
    at: impl Fn(f64, f64) -> (f64, f64),
) -> Path {
    let upper = points.clone().map(|(place, (_, high))| at(place, high));
    let mut path = joined(upper.chain(points.rev().map(|(place, (low, _))| at(place, low))));
    path.close();
    path
}

/// Describes the values in a text for users who cannot see the plot.
fn about(scan: &Scan, results: &FigureResults) -> String {
    let descriptions = scan.lines.iter().map(|line| {
        let mean = |setting: usize| results.settings[setting].as_ref().map(|figure| figure.mean);
        let values = line.points.iter().filter_map(|&(value, setting)| Some(format!("{value}: {:.3}", mean(setting)?)));
        let common = if line.common.is_empty() { String::new() } else { format!("with {}, ", line.common) };
        format!("{common}{}", values.collect::<Vec<_>>().join(", "))
    });
    descriptions.collect::<Vec<_>>().join("; ")
}

/// Returns the data for a script.
fn chart(
    view: &View<'_>,
    scan: &Scan,
    results: &FigureResults,
    lines: &[Vec<Point<'_>>],
    (across, top): ((f64, f64), f64),
) -> Chart {
    let places: Vec<f64> = scan.values().into_iter().map(|value| scan.place(value)).collect();
    let baseline = view.baseline().and_then(|setting| Some((setting, results.settings[setting.number].as_ref()?)));
    let series = |(line, points): (&Line, &Vec<Point<'_>>)| {
        let at = |place: f64, value: fn(&SettingFigure) -> f64| {
            points.iter().find(|point| point.0 == place).map_or(f64::NAN, |point| value(point.1))
        };
        let all = |value: fn(&SettingFigure) -> f64| places.iter().map(|&place| Value(at(place, value))).collect();
        // No setting has this index, so no switch hides the series. The index also gives the series
        // the colour of the line.
        let number = view.settings.len().next_multiple_of(Setting::COLOURS) + line.colour();
        Series {
            low: all(|figure| reach(figure).0),
            high: all(|figure| reach(figure).1),
            ..Series::plain(
                number,
                line.name(scan),
                Draw::Line,
                places.iter().map(|&place| at(place, |figure| figure.mean)),
            )
        }
    };
    let across_baseline = baseline.map(|(setting, figure)| Series {
        dashed: true,
        ..Series::of(setting, setting.label, Draw::Line, places.iter().map(|_| figure.mean))
    });
    let quantity = if scan.rises_by_factors() { Quantity::Power } else { Quantity::Number };
    let marks = places.iter().map(|&place| Value(place)).collect();
    Chart {
        x: Axis { unit: scan.parameter.clone(), marks, ..Axis::linear(quantity, across) },
        y: Axis { unit: results.figure.unit().to_owned(), ..Axis::linear(Quantity::Number, (0.0, top)) },
        at: places.iter().map(|&place| Value(place)).collect(),
        series: scan.lines.iter().zip(lines).map(series).chain(across_baseline).collect(),
        heat: None,
        stack: None,
        good: good(results.figure.direction()),
        group: String::new(),
    }
}
