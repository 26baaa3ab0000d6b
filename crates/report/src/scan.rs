//! Figures over a parameter that was scanned: settings of one scheduler that differ in the value of one tunable or
//! attribute, as `--scheduler cfq:slice_idle=0..8/2` makes them. A line is of settings that are alike in everything
//! else.

use std::collections::BTreeMap;

use iosched_lab::{FigureResults, SettingFigure};
use maud::{Markup, html};

use super::chart::{Axis, Chart, Draw, Quantity, Series, Value, good};
use super::parts::{Shown, name, row};
use super::svg::{Margin, Path, Picture, Plot, Tick, nice_end, px, ticks};
use super::view::{Setting, View};

const SIZE: (f64, f64) = (330.0, 200.0);
const MARGIN: Margin = Margin { top: 26.0, right: 12.0, bottom: 34.0, left: 58.0 };
/// Fewer values are a comparison, and no scan.
const VALUES_MIN: usize = 3;

/// A parameter of a scheduler, and the lines over it.
struct Scan {
    scheduler: String,
    parameter: String,
    lines: Vec<Line>,
}

/// Settings that are alike but for the parameter.
struct Line {
    /// What they have in common, as in a setting; empty if that is nothing.
    common: String,
    /// The parameter's value and the setting's number, rising.
    points: Vec<(f64, usize)>,
}

/// Values of the parameter and numbers of settings, by what these have in common.
type Lines = BTreeMap<String, Vec<(f64, usize)>>;

impl Line {
    /// That of its first setting.
    fn colour(&self) -> usize {
        self.points.first().map_or(0, |point| point.1) % Setting::COLOURS
    }
}

/// The scans among the settings.
fn scans(view: &View<'_>) -> Vec<Scan> {
    let mut found: BTreeMap<(String, String), Lines> = BTreeMap::new();
    for (number, record) in view.header().settings.iter().enumerate() {
        let setting = &record.setting;
        for own in setting.assignments() {
            let Some(value) = own.number() else { continue };
            let others = setting.assignments().filter(|other| other.name() != own.name());
            let common: Vec<_> = others.map(|other| format!("{}={}", other.name(), other.text())).collect();
            let lines = found.entry((setting.name().to_owned(), own.name().to_owned())).or_default();
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

/// The section, if anything was scanned.
pub(crate) fn section(view: &View<'_>) -> Option<Markup> {
    let pictures = pictures(view);
    let baseline = view.baseline();
    (!pictures.is_empty()).then(|| {
        html! {
            p .legend {
                "Means of all runs over the values of a parameter; bars reach a standard deviation up and down."
                @if let Some(baseline) = baseline { " The dashed line across is the baseline, " (name(baseline)) "." }
            }
            (row(&pictures))
        }
    })
}

/// A plot of each figure from which something is concluded, of each parameter.
pub(crate) fn pictures<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    let mut all = Vec::new();
    for scan in scans(view) {
        for results in view.results.figures.iter().filter(|results| results.concludes()) {
            let caption = format!("{} over {} of {}", results.figure.name(), scan.parameter, scan.scheduler);
            all.push(Shown::of_all(&caption, plot(view, &scan, results, &caption)));
        }
    }
    all
}

/// A place across, and the figure there.
type Point<'r> = (f64, &'r SettingFigure);

fn points<'r>(line: &Line, results: &'r FigureResults) -> Vec<Point<'r>> {
    line.points.iter().filter_map(|&(value, setting)| Some((value, results.settings[setting].as_ref()?))).collect()
}

/// A mean with its deviation down and up.
fn reach(own: &SettingFigure) -> (f64, f64) {
    let sd = own.sd.unwrap_or(0.0);
    (own.mean - sd, own.mean + sd)
}

fn plot(view: &View<'_>, scan: &Scan, results: &FigureResults, title: &str) -> Picture {
    let lines: Vec<Vec<Point<'_>>> = scan.lines.iter().map(|line| points(line, results)).collect();
    let baseline = view.baseline().and_then(|setting| results.settings[setting.number].as_ref());
    let flat = || lines.iter().flatten();
    let highest = flat().map(|point| reach(point.1).1).chain(baseline.map(|own| own.mean)).fold(0.0, f64::max);
    let top = nice_end(highest, 4);
    let ends =
        flat().fold((f64::INFINITY, f64::NEG_INFINITY), |ends, point| (ends.0.min(point.0), ends.1.max(point.0)));
    let ends = if ends.0 < ends.1 { ends } else { (ends.0.min(0.0), ends.0.max(0.0) + 1.0) };
    let room = (ends.1 - ends.0) * 0.04;
    let plot = Plot::linear(SIZE, MARGIN, (ends.0 - room, ends.1 + room), (0.0, top));
    let marks = |low: f64, high: f64, wanted: usize| -> Vec<Tick> {
        let (values, decimals) = ticks(low, high, wanted);
        values.into_iter().map(|at| Tick { at, label: format!("{at:.decimals$}") }).collect()
    };
    let (left, _, right, bottom) = plot.inner();
    let place = |value: f64, figure: f64| (plot.x.at(value), plot.y.at(figure.clamp(0.0, top)));
    let body = html! {
        (plot.y_axis(&marks(0.0, top, 4), results.figure.unit()))
        (plot.good(results.figure.direction()))
        @if let (Some(setting), Some(own)) = (view.baseline(), baseline) {
            @let y = plot.y.at(own.mean);
            g .(setting.class) {
                line .line .thin stroke-dasharray="4 3" x1=(px(left)) x2=(px(right)) y1=(px(y)) y2=(px(y)) {}
            }
        }
        @for (line, points) in scan.lines.iter().zip(&lines) {
            g .(format!("s{}", line.colour())) {
                path .line d=(joined(points.iter().map(|&(value, own)| place(value, own.mean))).data()) {}
                @for &(value, own) in points {
                    @let ((x, y), (low, high)) = (place(value, own.mean), reach(own));
                    line .line .thin x1=(px(x)) x2=(px(x)) y1=(px(place(value, low).1)) y2=(px(place(value, high).1)) {}
                    circle .dot cx=(px(x)) cy=(px(y)) r="3.2" {}
                }
            }
        }
        (plot.x_axis(&marks(ends.0, ends.1, 5), false))
        text .tick x=(px(right)) y=(px(bottom + 30.0)) text-anchor="end" { (scan.parameter) }
    };
    let (id, about) =
        (format!("scan-{}-{}-{}", scan.scheduler, scan.parameter, results.figure.id()), about(scan, &lines));
    let chart = chart(view, scan, results, &lines, (plot.x.domain(), top));
    let (id, title) = (view.id(&id.replace('.', "-")), title.to_owned());
    Picture { id, size: SIZE, title, about, body, chart: Some(chart) }
}

fn joined(places: impl Iterator<Item = (f64, f64)>) -> Path {
    let mut path = Path::default();
    places.for_each(|(x, y)| path.line_to(x, y));
    path
}

/// The values in words.
fn about(scan: &Scan, lines: &[Vec<Point<'_>>]) -> String {
    let told = scan.lines.iter().zip(lines).map(|(line, points)| {
        let values: Vec<_> = points.iter().map(|(value, own)| format!("{value}: {:.3}", own.mean)).collect();
        let common = if line.common.is_empty() { String::new() } else { format!("with {}, ", line.common) };
        format!("{common}{}", values.join(", "))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// What a script is told.
fn chart(
    view: &View<'_>,
    scan: &Scan,
    results: &FigureResults,
    lines: &[Vec<Point<'_>>],
    (across, top): ((f64, f64), f64),
) -> Chart {
    let mut places: Vec<f64> = lines.iter().flatten().map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let baseline = view.baseline().and_then(|setting| results.settings[setting.number].as_ref());
    let series = |(line, points): (&Line, &Vec<Point<'_>>)| {
        let at = |place: f64, value: fn(&SettingFigure) -> f64| {
            points.iter().find(|point| point.0 == place).map_or(f64::NAN, |point| value(point.1))
        };
        let all = |value: fn(&SettingFigure) -> f64| places.iter().map(|&place| Value(at(place, value))).collect();
        let label = if line.common.is_empty() { scan.scheduler.as_str() } else { line.common.as_str() };
        // No setting's number, so that no switch of a setting hides it; with the colour of the line.
        let number = view.settings.len().next_multiple_of(Setting::COLOURS) + line.colour();
        Series {
            low: all(|own| reach(own).0),
            high: all(|own| reach(own).1),
            mean: baseline.map(|own| Value(own.mean)),
            ..Series::plain(number, label, Draw::Line, places.iter().map(|&place| at(place, |own| own.mean)))
        }
    };
    Chart {
        x: Axis { unit: scan.parameter.clone(), ..Axis::linear(Quantity::Number, across) },
        y: Axis { unit: results.figure.unit().to_owned(), ..Axis::linear(Quantity::Number, (0.0, top)) },
        at: places.iter().map(|&place| Value(place)).collect(),
        series: scan.lines.iter().zip(lines).map(series).collect(),
        heat: None,
        stack: None,
        good: good(results.figure.direction()),
        group: String::new(),
    }
}
