//! Throughput over time: one small plot per setting, with the same axes.

use iosched_lab::{Direction, significant};
use iosched_sim::Timeline;
use maud::{Markup, html};

use super::chart::{Axis, Chart, Draw, Quantity, Series, Value, good};
use super::parts::{Shown, as_table, name, no_timelines, row};
use super::svg::{Margin, Path, Picture, Plot, nice_end, px, steps_between, width_of};
use super::units::{Unit, bytes, bytes_unit, linear_ticks, time, time_ticks, width};
use super::view::{Bins, Setting, View, io_bins, queue_bins, rebin, shared_width_ns};

pub(crate) const SIZE: (f64, f64) = (340.0, 190.0);
pub(crate) const MARGIN: Margin = Margin { top: 24.0, right: 12.0, bottom: 26.0, left: 46.0 };
const BINS_MAX: usize = 120;
/// Multiple of the 95th percentile above which bins are cut, so that the other bins are legible.
const CUT_FACTOR: f64 = 4.0;
/// Maximum number of rows of the table.
const ROWS_MAX: usize = 16;

/// Bytes per second by bin: bytes read, and bytes read and written.
struct Rates {
    read: Vec<f64>,
    all: Vec<f64>,
}

/// Returns the bytes read and written by bin. For a simulated device, the queue counts these bytes.
/// For a real device, the submitting processes count them.
fn moved(timeline: &Timeline) -> (Bins, Vec<(u64, u64)>) {
    if timeline.bins.is_empty() {
        let bins = timeline.io.bins.iter().map(|bin| (bin.bytes_read, bin.bytes_written));
        return (io_bins(timeline), bins.collect());
    }
    let bins = timeline.bins.iter().map(|bin| (bin.bytes_read, bin.bytes_written));
    (queue_bins(timeline), bins.collect())
}

/// Returns rates for bins of `width_ns`. A partial last bin is not scaled up.
fn rates(timeline: &Timeline, width_ns: u64, horizon_ns: u64) -> Rates {
    let ((bin_ns, _), moved) = moved(timeline);
    let sums = rebin(&moved, bin_ns, width_ns, |bins: &[(u64, u64)]| {
        bins.iter().fold((0, 0), |sum, bin| (sum.0 + bin.0, sum.1 + bin.1))
    });
    let seconds = width_ns.min(horizon_ns) as f64 / 1e9;
    let rate = |bytes: u64| bytes as f64 / seconds;
    Rates {
        read: sums.iter().map(|&(read, _)| rate(read)).collect(),
        all: sums.iter().map(|&(read, written)| rate(read + written)).collect(),
    }
}

/// Returns the edges of `count` bins, ns, up to the horizon.
pub(crate) fn edges(count: usize, width_ns: u64, horizon_ns: u64) -> Vec<f64> {
    (0..=count as u64).map(|i| (i * width_ns).min(horizon_ns) as f64).collect()
}

/// Properties that all plots share.
struct Frame<'v, 'a> {
    width_ns: u64,
    horizon_ns: u64,
    all: Vec<(&'v Setting<'a>, Rates)>,
    top: f64,
    unit: Unit,
}

/// Returns the frame, or `None` if nothing was read or written.
fn frame<'v, 'a>(view: &'v View<'a>) -> Option<Frame<'v, 'a>> {
    let timelines = view.timelines();
    let width_ns = shared_width_ns(timelines.iter().map(|(_, timeline)| moved(timeline).0), BINS_MAX);
    let horizon_ns = view.horizon_ns();
    let all: Vec<(&Setting<'_>, Rates)> =
        timelines.iter().map(|&(setting, timeline)| (setting, rates(timeline, width_ns, horizon_ns))).collect();
    if all.iter().all(|(_, rates)| peak(rates).1 == 0.0) {
        return None;
    }
    let top = top_of(all.iter().flat_map(|(_, rates)| &rates.all).copied().collect());
    let unit = bytes_unit(top);
    let top = nice_end(top / unit.1, 4) * unit.1;
    Some(Frame { width_ns, horizon_ns, all, top, unit })
}

pub(crate) fn section(view: &View<'_>) -> Markup {
    let timelines = view.timelines();
    if timelines.is_empty() {
        return no_timelines();
    }
    let Some(frame) = frame(view) else { return html! { p .quiet { "Nothing was read or written." } } };
    html! {
        p .legend {
            "Bytes per second in the first run of each setting, in bins of " (width(frame.width_ns))
            ". Dark: reads. Light, above the reads: writes. A plot ends when its run ended. ↑ \
             higher is better."
            @if frame.all.iter().any(|(_, rates)| peak(rates).1 > frame.top) {
                " A few bins are much higher than all others. The plot cuts them off; the text above shows the \
                 highest value."
            }
        }
        (row(&plots(view, &frame)))
        (as_table(&table(&timelines)))
    }
}

/// Returns a plot of each setting.
pub(crate) fn pictures<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    frame(view).map(|frame| plots(view, &frame)).unwrap_or_default()
}

fn plots<'a>(view: &View<'a>, frame: &Frame<'_, 'a>) -> Vec<Shown<'a>> {
    frame.all.iter().map(|(setting, rates)| Shown::of(setting, plot(view, setting, rates, frame))).collect()
}

/// Returns the highest bin and its rate.
fn peak(rates: &Rates) -> (usize, f64) {
    rates.all.iter().copied().enumerate().fold((0, 0.0), |best, bin| if bin.1 > best.1 { bin } else { best })
}

/// Returns the upper end of the axis: the highest rate, unless it is far above nearly all other
/// rates.
fn top_of(mut rates: Vec<f64>) -> f64 {
    rates.retain(|&rate| rate > 0.0);
    rates.sort_by(f64::total_cmp);
    let Some(&highest) = rates.last() else { return 1.0 };
    let usual = rates[(rates.len() - 1) * 19 / 20];
    if highest > usual * CUT_FACTOR { usual * 1.5 } else { highest }.max(1.0)
}

/// Draws the value of a cut peak above the plot, without overlap with the text `ends` at its right.
fn cut(plot: &Plot, x: &[f64], (bin, rate): (usize, f64), ends: &str) -> Markup {
    let (left, top, right, _) = plot.inner();
    let label = format!("↑ {}/s", bytes(rate));
    let half = width_of(&label, 12.0) * 0.55;
    let last = right + 8.0 - width_of(ends, 12.0) * 1.1 - 8.0 - half;
    html! {
        @if rate > plot.y.domain().1 {
            @let middle = f64::midpoint(x[bin], x[bin + 1]).min(last).max(left + half);
            text .coloured x=(px(middle)) y=(px(top - 10.0)) text-anchor="middle" { (label) }
        }
    }
}

fn plot(view: &View<'_>, setting: &Setting<'_>, rates: &Rates, frame: &Frame<'_, '_>) -> Picture {
    let &Frame { width_ns, horizon_ns, top, unit, .. } = frame;
    let plot = Plot::linear(SIZE, MARGIN, view.time_axis(), (0.0, top));
    let x: Vec<f64> = edges(rates.all.len(), width_ns, horizon_ns).iter().map(|&at| plot.x.at(at)).collect();
    let up = |values: &[f64]| values.iter().map(|&value| plot.y.at(value)).collect::<Vec<_>>();
    let (read, all) = (up(&rates.read), up(&rates.all));
    let finished_ns = view.finished_ns(setting.number);
    let zero = vec![plot.y.at(0.0); all.len()];
    let (mut reads, mut writes) = (Path::default(), Path::default());
    steps_between(&mut reads, &x, &zero, &read);
    steps_between(&mut writes, &x, &read, &all);
    let unit_name = format!("↑ {}/s", unit.0);
    let body = html! {
        (plot.y_axis(&linear_ticks(0.0, top, 4, unit), &unit_name))
        path .area d=(writes.data()) {}
        path .solid d=(reads.data()) {}
        (plot.x_axis(&time_ticks(plot.x.domain().0, plot.x.domain().1, 5), false))
        (cut(&plot, &x, peak(rates), &ended(finished_ns)))
        (end(&plot, finished_ns))
    };
    let (_, peak) = peak(rates);
    let about = format!("highest {}/s; ended after {}", bytes(peak), time(finished_ns as f64, 3));
    let title = format!("Throughput over time, {}", setting.label);
    let series = |name: &str, draw, values: &[f64]| Series::of(setting, name, draw, values.iter().copied());
    let chart = Chart {
        x: Axis::linear(Quantity::Time, plot.x.domain()),
        y: Axis::linear(Quantity::BytesPerSecond, (0.0, top)),
        at: (0..rates.all.len() as u64).map(|bin| Value((bin * width_ns) as f64)).collect(),
        series: vec![series("all", Draw::Area, &rates.all), series("reads", Draw::Solid, &rates.read)],
        heat: None,
        stack: None,
        good: good(Direction::Higher),
        group: view.id("time"),
    };
    let id = view.id(&format!("throughput-{}", setting.number));
    Picture { id, size: SIZE, title, about, body, chart: Some(chart) }
}

fn ended(finished_ns: u64) -> String {
    format!("done in {}", time(finished_ns as f64, 3))
}

/// Draws a short mark and a label at the end of the run.
fn end(plot: &Plot, finished_ns: u64) -> Markup {
    let (_, top, right, _) = plot.inner();
    let label = ended(finished_ns);
    let at = plot.x.at(finished_ns as f64);
    let half = width_of(&label, 12.0) * 0.55;
    let middle = at.min(right + 8.0 - half);
    html! {
        @if finished_ns > 0 {
            line .axis x1=(px(at)) x2=(px(at)) y1=(px(top - 4.0)) y2=(px(top + 2.0)) {}
            text .coloured x=(px(middle)) y=(px(top - 10.0)) text-anchor="middle" { (label) }
        }
    }
}

/// Returns the table, with a row per interval of time and a column per setting.
fn table(timelines: &[(&Setting<'_>, &Timeline)]) -> Markup {
    let width_ns = shared_width_ns(timelines.iter().map(|(_, timeline)| moved(timeline).0), ROWS_MAX);
    let seconds = width_ns as f64 / 1e9;
    let columns: Vec<Vec<f64>> = timelines
        .iter()
        .map(|(_, timeline)| {
            let sum = |bins: &[(u64, u64)]| bins.iter().map(|(read, written)| read + written).sum::<u64>();
            let ((bin_ns, _), moved) = moved(timeline);
            rebin(&moved, bin_ns, width_ns, |bins| sum(bins) as f64 / 1e6 / seconds)
        })
        .collect();
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "From" }
                    @for (setting, _) in timelines { th scope="col" .number { (name(setting)) ", MB/s" } }
                }
            }
            tbody {
                @for row in 0..rows {
                    tr {
                        th scope="row" { (time((row as u64 * width_ns) as f64, 3)) }
                        @for column in &columns {
                            td .number { @if let Some(&rate) = column.get(row) { (significant(rate, 3)) } @else { "–" } }
                        }
                    }
                }
            }
        }
    }
}
