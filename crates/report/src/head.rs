//! Positions on the device over time: the lowest, the highest and the last position in each bin.

use iosched_sim::{HeadBin, Timeline};
use maud::{Markup, html};

use super::chart::{Axis, Chart, Draw, Quantity, Series, Value};
use super::parts::{Shown, no_timelines, row};
use super::svg::{Path, Picture, Plot, nice_end};
use super::throughput::{MARGIN, SIZE, edges};
use super::units::{SECTOR, Unit, bytes, bytes_unit, linear_ticks, time_ticks, width};
use super::view::{Setting, View, queue_bins, rebin, shared_width_ns};

const BINS_MAX: usize = 150;

/// Properties that all plots share: the width of the bins, and the range of positions.
struct Frame {
    width_ns: u64,
    used: (f64, f64),
    bottom: f64,
    top: f64,
    unit: Unit,
}

/// Returns the frame, or `None` if the device got no reads or writes.
fn frame(view: &View<'_>) -> Option<Frame> {
    let timelines = view.timelines();
    let used = timelines.iter().flat_map(|(_, timeline)| &timeline.head).filter(|bin| is_used(bin));
    let (low, high) = used.fold((u64::MAX, 0), |(low, high), bin| (low.min(bin.min), high.max(bin.max)));
    if low > high {
        return None;
    }
    let (low, high) = (low as f64 * SECTOR, high as f64 * SECTOR);
    let unit = bytes_unit(high);
    // The axis begins at 0, unless the lowest position is far above 0.
    let bottom = if low < high * 0.5 { 0.0 } else { low };
    let top = if bottom == 0.0 { nice_end(high / unit.1, 4) * unit.1 } else { high };
    let width_ns = shared_width_ns(timelines.iter().map(|(_, timeline)| queue_bins(timeline)), BINS_MAX);
    Some(Frame { width_ns, used: (low, high), bottom, top, unit })
}

pub(crate) fn section(view: &View<'_>) -> Markup {
    if view.timelines().is_empty() {
        return no_timelines();
    }
    let Some(Frame { width_ns, used: (low, high), .. }) = frame(view) else {
        return html! { p .quiet { "The device got no reads or writes." } };
    };
    html! {
        p .legend {
            "Position on the device at dispatch, in bins of " (width(width_ns)) ", first run of each setting. The \
                shaded area reaches from the lowest to the highest position. The line joins the last position in \
                each bin. A shorter line means that the device seeks less. Requests went to " (bytes(low)) " to " (bytes(high)) " of "
            (bytes(view.device().capacity_sectors as f64 * SECTOR)) "."
        }
        (row(&pictures(view)))
    }
}

/// Returns a plot of each setting.
pub(crate) fn pictures<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    let Some(frame) = frame(view) else { return Vec::new() };
    let shown = |(setting, timeline)| Shown::of(setting, plot(view, setting, timeline, &frame));
    view.timelines().into_iter().map(shown).collect()
}

fn is_used(bin: &HeadBin) -> bool {
    *bin != HeadBin::default()
}

/// Joins neighbouring bins. Returns zeros if no bin is used.
fn join(bins: &[HeadBin]) -> HeadBin {
    let joined = bins.iter().filter(|bin| is_used(bin)).copied();
    joined.reduce(|a, b| HeadBin { min: a.min.min(b.min), max: a.max.max(b.max), last: b.last }).unwrap_or_default()
}

fn plot(view: &View<'_>, setting: &Setting<'_>, timeline: &Timeline, frame: &Frame) -> Picture {
    let &Frame { width_ns, bottom, top, unit, .. } = frame;
    let horizon_ns = view.horizon_ns();
    let plot = Plot::linear(SIZE, MARGIN, view.time_axis(), (bottom, top));
    let bins = rebin(&timeline.head, timeline.bin_ns, width_ns, join);
    let x: Vec<f64> = edges(bins.len(), width_ns, horizon_ns).iter().map(|&at| plot.x.at(at)).collect();
    let at = |sector: u64| plot.y.at(sector as f64 * SECTOR);
    let (mut range, mut last) = (Path::default(), Path::default());
    let mut travelled = 0u64;
    let mut before: Option<HeadBin> = None;
    for (i, bin) in bins.iter().enumerate() {
        if !is_used(bin) {
            before = None;
            continue;
        }
        range.bar(x[i], at(bin.max), (x[i + 1] - x[i]).max(0.3), at(bin.min) - at(bin.max));
        let middle = f64::midpoint(x[i], x[i + 1]);
        match before {
            Some(before) => {
                travelled += before.last.abs_diff(bin.last);
                last.line_to(middle, at(bin.last));
            }
            None => last.move_to(middle, at(bin.last)),
        }
        before = Some(*bin);
    }
    let body = html! {
        (plot.y_axis(&linear_ticks(bottom, top, 4, unit), unit.0))
        path .range d=(range.data()) {}
        path .line .thin d=(last.data()) {}
        (plot.x_axis(&time_ticks(plot.x.domain().0, plot.x.domain().1, 5), false))
    };
    let title = format!("Position on the device over time, {}", setting.label);
    let about = format!("length of the line: {}", bytes(travelled as f64 * SECTOR));
    let (id, chart) = (view.id(&format!("head-{}", setting.number)), chart(view, setting, &bins, frame));
    Picture { id, size: SIZE, title, about, body, chart: Some(chart) }
}

/// Returns the data for a script: the last position of each bin as a line, and the range as a band.
fn chart(view: &View<'_>, setting: &Setting<'_>, bins: &[HeadBin], frame: &Frame) -> Chart {
    let values = |pick: fn(&HeadBin) -> u64| {
        bins.iter().map(move |bin| if is_used(bin) { pick(bin) as f64 * SECTOR } else { f64::NAN })
    };
    let middle = |bin: usize| (bin as f64 + 0.5) * frame.width_ns as f64;
    let series = Series::of(setting, "last", Draw::Line, values(|bin| bin.last));
    let (low, high) = (values(|bin| bin.min).map(Value).collect(), values(|bin| bin.max).map(Value).collect());
    Chart {
        x: Axis::linear(Quantity::Time, view.time_axis()),
        y: Axis::linear(Quantity::Bytes, (frame.bottom, frame.top)),
        at: (0..bins.len()).map(|bin| Value(middle(bin))).collect(),
        series: vec![Series { low, high, ..series }],
        heat: None,
        stack: None,
        good: "",
        group: view.id("time"),
    }
}
