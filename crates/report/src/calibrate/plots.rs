//! Plots of measurements and the model, over depth, size, position and distance.

use maud::{Markup, html};

use crate::chart::{Axis, Chart, Draw, Quantity, Series, Value};
use crate::svg::{Margin, Path, Picture, Plot, Tick, nice_end, px};
use crate::units::{SECTOR, bytes_unit, linear_ticks, log_time_ticks, time};
use iosched_advise::calibrate::{Calibration, Pair, Probe, Residual, Role, Target};

const SIZE: (f64, f64) = (340.0, 240.0);
const MARGIN: Margin = Margin { top: 26.0, right: 12.0, bottom: 40.0, left: 52.0 };
/// Colours of the measurements and of the model.
const MEASURED: &str = "s0";
const MODEL: &str = "s1";
/// Numbers of these colours.
const MEASURED_COLOUR: usize = 0;
const MODEL_COLOUR: usize = 1;
/// Margin of the scales: a share of their span, or a factor on logarithmic scales.
const ROOM: f64 = 0.04;
const ROOM_FACTOR: f64 = 1.3;
/// Minimum span of a logarithmic scale, as a factor. It keeps small differences small.
const SPAN_MIN: f64 = 10.0;

/// Quantity on the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upward {
    /// I/Os per second, from 0.
    Iops,
    /// Bytes per second, from 0.
    Bytes,
    /// Latency in ns, on a logarithmic scale.
    Latency,
}

/// A probe in a plot.
struct Point {
    /// Value on the horizontal axis.
    across: f64,
    /// Factor from the pair's values to the values of the plot.
    times: f64,
    pair: Pair,
    /// Whether the fit did not use the probe.
    held_out: bool,
    probe: Probe,
}

impl Point {
    fn measured(&self) -> f64 {
        self.pair.measured.median * self.times
    }

    fn model(&self) -> f64 {
        self.pair.model * self.times
    }

    /// Returns the measured value minus and plus one standard deviation.
    fn range(&self) -> Option<(f64, f64)> {
        let variation = self.pair.measured.variation?;
        Some((self.measured() * (1.0 - variation).max(0.0), self.measured() * (1.0 + variation)))
    }
}

/// A plot: its name, title, horizontal axis, and its probes from left to right.
pub(super) struct Figure {
    id: &'static str,
    title: &'static str,
    across: &'static str,
    placed_by: Quantity,
    ticks: Vec<Tick>,
    upward: Upward,
    points: Vec<Point>,
}

/// Returns the plots that have at least two probes.
pub(super) fn figures(target: &Target, calibration: &Calibration) -> Vec<Figure> {
    let all: Vec<&Residual> = calibration.residuals.iter().chain(&calibration.held_out).collect();
    // Closed loops of equal I/Os over the whole device.
    let plain = |probe: &Probe| {
        let is_loop = probe.think_ns == 0 && probe.flush_every == 0 && probe.parts == 0;
        probe.sectors == target.capacity_sectors && is_loop && probe.run == 0 && !probe.backward
    };
    let is_plain_read = |probe: &Probe| plain(probe) && !probe.writes();
    let random_4k = |probe: &Probe, read_percent: u32| {
        plain(probe) && !probe.sequential && probe.bytes == 4096 && probe.read_percent == read_percent
    };
    let single = |probe: &Probe, sequential| is_plain_read(probe) && probe.sequential == sequential && probe.depth == 1;
    let depth = |probe: &Probe| f64::from(probe.depth).log2();
    let size = |probe: &Probe| f64::from(probe.bytes).log2();
    let depths = |id, title, read_percent, upward, pair: fn(&Residual) -> Pair| {
        let points = points(&all, |probe| random_4k(probe, read_percent).then(|| depth(probe)), upward, pair);
        Figure {
            id,
            title,
            across: "depth: I/Os in flight",
            placed_by: Quantity::Power,
            ticks: power_ticks(&points, 0),
            upward,
            points,
        }
    };
    let sizes = |id, title, sequential| {
        let across = |probe: &Probe| single(probe, sequential).then(|| size(probe));
        let points = points(&all, across, Upward::Bytes, |residual| residual.iops);
        let ticks = power_ticks(&points, 10);
        Figure {
            id,
            title,
            across: "size of a read, KiB",
            placed_by: Quantity::Size,
            ticks,
            upward: Upward::Bytes,
            points,
        }
    };
    let mut figures = vec![
        depths("depth-iops", "Random reads of 4 KiB: IOPS", 100, Upward::Iops, |residual| residual.iops),
        depths("depth-p50", "Random reads of 4 KiB: median latency", 100, Upward::Latency, |residual| residual.p50_ns),
        depths("depth-p99", "Random reads of 4 KiB: p99", 100, Upward::Latency, |residual| residual.p99_ns),
        depths("depth-writes", "Random writes of 4 KiB: IOPS", 0, Upward::Iops, |residual| residual.iops),
        depths("depth-writes-p99", "Random writes of 4 KiB: p99", 0, Upward::Latency, |residual| residual.p99_ns),
        sizes("size-random", "Random reads, one at a time", false),
        sizes("size-sequential", "Sequential reads, one at a time", true),
        places(&all),
        distances(&all),
    ];
    figures.retain(|figure| figure.points.len() >= 2);
    figures
}

/// Returns the rates of sequential reads by position.
fn places(all: &[&Residual]) -> Figure {
    let place = |probe: &Probe| (probe.role == Role::Place).then_some(probe.start_sector as f64 * SECTOR);
    let points = points(all, place, Upward::Bytes, |residual| residual.iops);
    let end = points.last().map_or(1.0, |last| last.across);
    let ticks = linear_ticks(0.0, end, 4, ("GB", 1e9));
    Figure {
        id: "place",
        title: "Sequential reads of 256 KiB by position",
        across: "position, GB",
        placed_by: Quantity::Bytes,
        ticks,
        upward: Upward::Bytes,
        points,
    }
}

/// Returns the latencies of random reads by the size of the region of the reads.
fn distances(all: &[&Residual]) -> Figure {
    let width = |probe: &Probe| (probe.role == Role::Distance).then(|| (probe.sectors as f64 * SECTOR).log2());
    let points = points(all, width, Upward::Latency, |residual| residual.p50_ns);
    let ticks = power_ticks(&points, 20);
    Figure {
        id: "distance",
        title: "Random reads of 4 KiB within a part of the device: median latency",
        across: "size of the part, MiB",
        placed_by: Quantity::Size,
        ticks,
        upward: Upward::Latency,
        points,
    }
}

/// Returns the probes that have a value for the horizontal axis, from left to right.
fn points(
    all: &[&Residual],
    across: impl Fn(&Probe) -> Option<f64>,
    upward: Upward,
    pair: fn(&Residual) -> Pair,
) -> Vec<Point> {
    let mut points: Vec<Point> = all
        .iter()
        .filter_map(|residual| {
            let times = if upward == Upward::Bytes { f64::from(residual.probe.bytes) } else { 1.0 };
            let held_out = residual.probe.role == Role::HeldOut;
            Some(Point {
                across: across(&residual.probe)?,
                times,
                pair: pair(residual),
                held_out,
                probe: residual.probe,
            })
        })
        .collect();
    points.sort_by(|a, b| a.across.total_cmp(&b.across));
    points
}

/// Returns marks at the powers of two, for values that are binary logarithms. Labels are in units
/// of 2 to the power of `unit`.
fn power_ticks(points: &[Point], unit: i32) -> Vec<Tick> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let (from, to) = (first.across.ceil() as i32, last.across.floor() as i32);
    // Keeps the number of marks small enough to be legible.
    let step = usize::try_from((to - from) / 6 + 1).unwrap_or(1);
    let powers = (from..=to).step_by(step);
    powers.map(|power| Tick { at: power.into(), label: format!("{}", 2f64.powi(power - unit)) }).collect()
}

/// Returns all plots, with a legend.
pub(super) fn section(figures: &[Figure]) -> Markup {
    let repeated = figures.iter().flat_map(|figure| &figure.points).any(|point| point.range().is_some());
    html! {
        p .legend {
            "Dots: " span .(MEASURED) { span .coloured-name { "measured" } } " (hollow: the fit did not use this value)"
            @if repeated { ", with one standard deviation on each side" }
            ". Line: " span .(MODEL) { span .coloured-name { "the model" } } "."
        }
        div .facets { @for figure in figures { (draw(figure)) } }
    }
}

fn draw(figure: &Figure) -> Markup {
    let ends = |end: fn(&Point) -> f64| figure.points.iter().map(end).collect::<Vec<f64>>();
    let highs = ends(|point| point.model().max(point.range().map_or(point.measured(), |range| range.1)));
    let lows = ends(|point| point.model().min(point.measured()));
    let high = highs.into_iter().fold(f64::MIN_POSITIVE, f64::max);
    let low = lows.into_iter().fold(f64::INFINITY, f64::min);
    let (first, last) = (figure.points.first(), figure.points.last());
    let (from, to) = (first.map_or(0.0, |point| point.across), last.map_or(1.0, |point| point.across));
    let room = (to - from) * ROOM;
    let across = (from - room, to + room);
    let (plot, ticks, unit) = match figure.upward {
        Upward::Latency => {
            let factor = ROOM_FACTOR.max((SPAN_MIN * low / high).sqrt());
            let domain = (low / factor, high * factor);
            (Plot::log(SIZE, MARGIN, across, domain), log_time_ticks(domain.0, domain.1), String::new())
        }
        Upward::Iops | Upward::Bytes => {
            let end = nice_end(high, 5);
            let (name, size) = if figure.upward == Upward::Bytes { bytes_unit(end) } else { thousands(end) };
            let unit = if figure.upward == Upward::Bytes { format!("{name}/s") } else { name.to_owned() };
            (Plot::linear(SIZE, MARGIN, across, (0.0, end)), linear_ticks(0.0, end, 5, (name, size)), unit)
        }
    };
    let picture = Picture {
        id: format!("calibration-{}", figure.id),
        size: SIZE,
        title: figure.title.to_owned(),
        about: about(figure),
        body: body(figure, &plot, &ticks, &unit),
        chart: Some(chart(figure, &plot)),
    };
    html! {
        figure .facet {
            figcaption { (figure.title) }
            (picture.html())
        }
    }
}

/// Returns the data with which a script draws the plot again.
fn chart(figure: &Figure, plot: &Plot) -> Chart {
    let up = match figure.upward {
        Upward::Iops => Axis { unit: "IOPS".to_owned(), ..Axis::linear(Quantity::Number, plot.y.domain()) },
        Upward::Bytes => Axis::linear(Quantity::BytesPerSecond, plot.y.domain()),
        Upward::Latency => Axis::log(Quantity::Time, plot.y.domain()),
    };
    // The name has no unit, because a script chooses its own unit.
    let name = figure.across.split(',').next().unwrap_or_default();
    let axes = (Axis::linear(figure.placed_by, plot.x.domain()).named(name), up);
    let points = || figure.points.iter();
    let model = Series::plain(MODEL_COLOUR, "model", Draw::Line, points().map(Point::model));
    let measured = |name: &str, held_out: bool| {
        let if_drawn = |point: &Point, value: f64| if point.held_out == held_out { value } else { f64::NAN };
        let end = |end_of: fn((f64, f64)) -> f64| -> Vec<Value> {
            points()
                .map(|point| Value(point.range().map_or(f64::NAN, |range| if_drawn(point, end_of(range)))))
                .collect()
        };
        let dots = points().map(|point| if_drawn(point, point.measured()));
        Series {
            hollow: held_out,
            low: end(|range| range.0),
            high: end(|range| range.1),
            ..Series::plain(MEASURED_COLOUR, name, Draw::Dots, dots)
        }
    };
    let series = vec![model, measured("measured", false), measured("measured, not fitted", true)];
    Chart::plain(axes, points().map(|point| point.across), series)
}

/// Returns the unit of an axis of I/Os per second.
fn thousands(end: f64) -> (&'static str, f64) {
    if end >= 10_000.0 { ("thousand", 1e3) } else { ("", 1.0) }
}

fn body(figure: &Figure, plot: &Plot, ticks: &[Tick], unit: &str) -> Markup {
    let (left, _, _, bottom) = plot.inner();
    let mut line = Path::default();
    figure.points.iter().for_each(|point| line.line_to(plot.x.at(point.across), plot.y.at(point.model())));
    html! {
        (plot.y_axis(ticks, ""))
        @if !unit.is_empty() { text .tick x="0" y="12" { (unit) } }
        (plot.x_axis(&figure.ticks, false))
        text .tick x=(px(left)) y=(px(bottom + 34.0)) { (figure.across) }
        path .line .(MODEL) d=(line.data()) {}
        @for point in &figure.points {
            @let (x, y) = (px(plot.x.at(point.across)), px(plot.y.at(point.measured())));
            g .(MEASURED) {
                @if let Some((low, high)) = point.range() {
                    line .interval x1=(x) x2=(x) y1=(px(plot.y.at(low))) y2=(px(plot.y.at(high))) {}
                }
                circle .(if point.held_out { "hollow" } else { "dot" }) cx=(x) cy=(y) r="4" {
                    title { (point.probe) ": " (with_unit(figure.upward, point.measured())) ", model " (with_unit(figure.upward, point.model())) }
                }
            }
        }
    }
}

/// Returns a value with its unit.
fn with_unit(upward: Upward, value: f64) -> String {
    match upward {
        Upward::Iops => format!("{} IOPS", iosched_lab::grouped(value.round() as u64)),
        Upward::Bytes => format!("{}/s", crate::units::bytes(value)),
        Upward::Latency => time(value, 3),
    }
}

/// Returns the description for users who cannot see the plot.
fn about(figure: &Figure) -> String {
    let parts = figure.points.iter().map(|point| {
        let (measured, model) = (with_unit(figure.upward, point.measured()), with_unit(figure.upward, point.model()));
        format!("{}: measured {measured}, model {model}", point.probe)
    });
    parts.collect::<Vec<_>>().join("; ")
}
