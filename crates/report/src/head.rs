//! Where the device was sent over time: from the lowest to the highest position, and the last one.

use iosched_sim::{HeadBin, Timeline};
use maud::{Markup, html};

use super::parts::{facet, facets, no_timelines};
use super::svg::{Path, Plot, nice_end, picture};
use super::throughput::{MARGIN, SIZE, edges};
use super::units::{SECTOR, Unit, bytes, bytes_unit, linear_ticks, time_ticks, width};
use super::view::{Setting, View, rebin, shared_width_ns};

const BINS_MAX: usize = 150;

pub(crate) fn section(view: &View<'_>) -> Markup {
    let timelines = view.timelines();
    if timelines.is_empty() {
        return no_timelines();
    }
    let used = timelines.iter().flat_map(|(_, timeline)| &timeline.head).filter(|bin| is_used(bin));
    let (low, high) = used.fold((u64::MAX, 0), |(low, high), bin| (low.min(bin.min), high.max(bin.max)));
    if low > high {
        return html! { p .quiet { "Nothing was sent to the device but flushes, or nothing at all." } };
    }
    let (low, high) = (low as f64 * SECTOR, high as f64 * SECTOR);
    let unit = bytes_unit(high);
    // From 0, unless what is used lies far off.
    let bottom = if low < high * 0.5 { 0.0 } else { low };
    let top = if bottom == 0.0 { nice_end(high / unit.1, 4) * unit.1 } else { high };
    let width_ns = shared_width_ns(timelines.iter().map(|(_, timeline)| *timeline), BINS_MAX);
    html! {
        p .legend {
            "Position on the device at dispatch, in bins of " (width(width_ns)) ", first run of each setting: the \
             shade reaches from the lowest to the highest, the line joins the last of each bin. The less the line has to \
             travel, the less the device seeks. Requests went to " (bytes(low)) " to " (bytes(high)) " of "
            (bytes(view.device().capacity_sectors as f64 * SECTOR)) "."
        }
        div .(facets(timelines.len())) {
            @for &(setting, timeline) in &timelines {
                (facet(setting, &plot(view, setting, timeline, width_ns, (bottom, top, unit)), &html! {}))
            }
        }
    }
}

fn is_used(bin: &HeadBin) -> bool {
    *bin != HeadBin::default()
}

/// What bins next to each other say together; all 0 if none of them is used.
fn join(bins: &[HeadBin]) -> HeadBin {
    let joined = bins.iter().filter(|bin| is_used(bin)).copied();
    joined.reduce(|a, b| HeadBin { min: a.min.min(b.min), max: a.max.max(b.max), last: b.last }).unwrap_or_default()
}

fn plot(view: &View<'_>, setting: &Setting<'_>, timeline: &Timeline, width_ns: u64, up: (f64, f64, Unit)) -> Markup {
    let (bottom, top, unit) = up;
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
    let about = format!("from bin to bin the last positions lie {} apart altogether", bytes(travelled as f64 * SECTOR));
    picture(&view.id(&format!("head-{}", setting.number)), SIZE, &title, &about, &body)
}
