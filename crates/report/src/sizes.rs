//! Latency by size: median and p99 of every setting for each size of I/O.

use iosched_lab::{Direction, grouped};
use iosched_sim::{Histogram, SizeClass, Timeline};
use maud::{Markup, html};

use super::chart::{Axis, Chart, Draw, Quantity, Series, Value, good};
use super::parts::{Shown, as_table, key, name, no_io_timelines, no_timelines};
use super::svg::{Margin, Picture, Plot, Tick, px};
use super::units::{log_time_ticks, time};
use super::view::{Setting, View};

const SIZE: (f64, f64) = (500.0, 300.0);
const MARGIN: Margin = Margin { top: 26.0, right: 14.0, bottom: 40.0, left: 50.0 };
/// Share of the width of a size that its settings use.
const ROOM: f64 = 0.6;

/// Reads or writes.
type Kind = (&'static str, &'static str, fn(&SizeClass) -> &Histogram);
const KINDS: [Kind; 2] =
    [("sizes-reads", "Reads", |class| &class.reads), ("sizes-writes", "Writes", |class| &class.writes)];

/// Latencies of a setting at a size.
struct Point<'v, 'a> {
    setting: &'v Setting<'a>,
    from_bytes: u64,
    latency: &'a Histogram,
}

fn points<'v, 'a>(view: &'v View<'a>, (.., of): Kind) -> Vec<Point<'v, 'a>> {
    let of_setting = |(setting, timeline): (&'v Setting<'a>, &'a Timeline)| {
        let classes = timeline.io.sizes.iter().filter(move |class| !of(class).is_empty());
        classes.map(move |class| Point { setting, from_bytes: class.from_bytes, latency: of(class) })
    };
    view.io_timelines().into_iter().flat_map(of_setting).collect()
}

pub(crate) fn section(view: &View<'_>) -> Markup {
    if view.timelines().is_empty() {
        return no_timelines();
    }
    if view.io_timelines().is_empty() {
        return no_io_timelines();
    }
    let drawn: Vec<(Kind, Vec<Point<'_, '_>>)> =
        KINDS.into_iter().map(|kind| (kind, points(view, kind))).filter(|(_, points)| !points.is_empty()).collect();
    if drawn.is_empty() {
        return html! { p .quiet { "Nothing was read or written." } };
    }
    html! {
        p .legend {
            "Latency by size of I/O, in the first run of each setting: the median (filled), and the p99 above \
             it. Sizes are grouped: 4 KiB stands for all sizes from 4 KiB to just below 8 KiB."
        }
        (key(&view.settings.iter().collect::<Vec<_>>()))
        div .pair {
            @for ((id, title, _), points) in &drawn {
                figure {
                    figcaption { (title) }
                    (plot(view, id, title, points).html())
                    (as_table(&table(points)))
                }
            }
        }
    }
}

/// Returns the plots of reads and of writes, if there are any.
pub(crate) fn pictures<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    let drawn = KINDS.into_iter().map(|kind| (kind, points(view, kind))).filter(|(_, points)| !points.is_empty());
    drawn.map(|((id, title, _), points)| Shown::of_all(title, plot(view, id, title, &points))).collect()
}

/// Formats a size in binary units, such as "4 KiB".
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

fn plot(view: &View<'_>, id: &str, title: &str, points: &[Point<'_, '_>]) -> Picture {
    let class = |bytes: u64| f64::from(bytes.max(1).ilog2());
    let sizes = || points.iter().map(|point| point.from_bytes);
    let across = (class(sizes().min().unwrap_or(1)) - 0.5, class(sizes().max().unwrap_or(1)) + 0.5);
    let quantiles = |point: &Point<'_, '_>| [0.5, 0.99].map(|q| point.latency.quantile_ns(q).max(1) as f64);
    let low = points.iter().map(|point| quantiles(point)[0]).fold(f64::MAX, f64::min);
    let high = points.iter().map(|point| quantiles(point)[1]).fold(1.0, f64::max);
    let up = (low / 1.3, (high * 1.3).max(low * 10.0));
    let plot = Plot::log(SIZE, MARGIN, across, up);
    // The points of the settings are side by side.
    let count = view.settings.len() as f64;
    let place = |point: &Point<'_, '_>| {
        let offset = (point.setting.number as f64 + 0.5) / count - 0.5;
        class(point.from_bytes) + ROOM * offset
    };
    let classes = (across.0 + 0.5) as u32..=(across.1 - 0.5) as u32;
    let marks: Vec<Tick> = classes.map(|class| Tick { at: f64::from(class), label: size(1 << class) }).collect();
    let (left, _, _, bottom) = plot.inner();
    let body = html! {
        (plot.y_axis(&log_time_ticks(up.0, up.1), ""))
        (plot.good(Direction::Lower))
        (plot.x_axis(&marks, false))
        text .tick x=(px(left)) y=(px(bottom + 34.0)) { "size" }
        @for point in points {
            @let [median, p99] = quantiles(point);
            @let x = px(plot.x.at(place(point)));
            g .(point.setting.class) {
                line .interval x1=(x) x2=(x) y1=(px(plot.y.at(median))) y2=(px(plot.y.at(p99))) {}
                circle .hollow cx=(x) cy=(px(plot.y.at(p99))) r="3" {}
                circle .dot cx=(x) cy=(px(plot.y.at(median))) r="3.6" {
                    title {
                        (point.setting.label) ", " (size(point.from_bytes))
                        ": median " (time(median, 3)) ", p99 " (time(p99, 3))
                    }
                }
            }
        }
    };
    let mut at: Vec<f64> = points.iter().map(place).collect();
    at.sort_by(f64::total_cmp);
    let series = |setting: &Setting<'_>| {
        let point_at = |at: &f64| points.iter().find(|p| p.setting.number == setting.number && place(p) == *at);
        let value = |q: usize| at.iter().map(move |at| point_at(at).map_or(f64::NAN, |point| quantiles(point)[q]));
        let to = value(1).map(Value).collect();
        Series { to, ..Series::of(setting, setting.label, Draw::Dots, value(0)) }
    };
    let chart = Chart {
        x: Axis::linear(Quantity::Size, across),
        y: Axis::log(Quantity::Time, up),
        series: view.settings.iter().map(series).collect(),
        at: at.iter().copied().map(Value).collect(),
        heat: None,
        stack: None,
        good: good(Direction::Lower),
        group: String::new(),
    };
    let about: Vec<String> = points
        .iter()
        .map(|point| {
            let [median, p99] = quantiles(point);
            format!(
                "{} {}: median {}, p99 {}",
                point.setting.label,
                size(point.from_bytes),
                time(median, 2),
                time(p99, 2)
            )
        })
        .collect();
    let title = format!("Latency by size, {}", title.to_lowercase());
    Picture { id: view.id(id), size: SIZE, title, about: about.join("; "), body, chart: Some(chart) }
}

fn table(points: &[Point<'_, '_>]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "Setting" }
                    th scope="col" .number { "size" }
                    th scope="col" .number { "I/Os" }
                    th scope="col" .number { "p50" }
                    th scope="col" .number { "p99" }
                    th scope="col" .number { "worst" }
                }
            }
            tbody {
                @for point in points {
                    tr {
                        th scope="row" { (name(point.setting)) }
                        td .number { (size(point.from_bytes)) }
                        td .number { (grouped(point.latency.count())) }
                        td .number { (time(point.latency.quantile_ns(0.5) as f64, 2)) }
                        td .number { (time(point.latency.quantile_ns(0.99) as f64, 2)) }
                        td .number { (time(point.latency.max_ns() as f64, 2)) }
                    }
                }
            }
        }
    }
}
