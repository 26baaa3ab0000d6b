//! The separate plots of a comparison: their list, and each plot as a picture in its own file.

use iosched_lab::Records;

use super::parts::Shown;
use super::view::View;
use super::{differences, export, head, heat, latency, over_time, runs, scan, shares, sizes, slices, throughput};

/// A plot that is available in its own file.
#[derive(Clone, Copy)]
struct Plot {
    name: &'static str,
    about: &'static str,
    /// Whether the picture needs a key of the colours.
    needs_key: bool,
    pictures: for<'v, 'a> fn(&'v View<'a>) -> Vec<Shown<'a>>,
}

const PLOTS: [Plot; 14] = [
    plot("differences", "differences from the baseline, with confidence intervals", false, differences::pictures),
    plot("scan", "metrics for each value of a scanned parameter", false, scan::pictures),
    plot("runs", "each run as a dot, by metric", true, runs::pictures),
    plot("latency", "percentiles of sync latency", false, latency::pictures),
    plot("latency-async", "percentiles of async latency", false, latency::pictures_async),
    plot("heat", "sync latency over time, as a heat map", false, heat::pictures),
    plot("heat-async", "async latency over time, as a heat map", false, heat::pictures_async),
    plot("sizes", "latency by size of I/O", true, sizes::pictures),
    plot("throughput", "bytes per second over time", false, throughput::pictures),
    plot("iops", "I/Os per second over time", true, |view| over_time::IOPS.pictures(view)),
    plot("depth", "I/Os in flight over time: queue depth", true, |view| over_time::DEPTH.pictures(view)),
    plot("shares", "shares of the device over time, by process", false, shares::pictures),
    plot("turns", "turns, idling and preemption in a scheduler's queues", false, slices::pictures),
    plot("head", "position on the device over time", false, head::pictures),
];

const fn plot(
    name: &'static str,
    about: &'static str,
    needs_key: bool,
    pictures: for<'v, 'a> fn(&'v View<'a>) -> Vec<Shown<'a>>,
) -> Plot {
    Plot { name, about, needs_key, pictures }
}

/// Reason why there is no picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlot {
    /// No plot has this name.
    Unknown,
    /// The records have no data for the plot.
    Empty,
}

/// Returns the names of all plots, with their descriptions.
pub fn plots() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLOTS.iter().map(|plot| (plot.name, plot.about))
}

/// Returns a plot of `records` as a self-contained SVG document, in colours for paper. The plots of
/// several devices are one below the other. The same records give the same bytes.
///
/// # Errors
/// No plot has this name, or there is nothing to draw.
pub fn plot_svg(records: &Records, name: &str) -> Result<String, NoPlot> {
    let plot = PLOTS.iter().find(|plot| plot.name == name).ok_or(NoPlot::Unknown)?;
    let views: Vec<View<'_>> = records.devices().map(View::of).collect();
    let parts: Vec<export::Part<'_, '_>> = views
        .iter()
        .map(|view| export::Part { view, needs_key: plot.needs_key, shown: (plot.pictures)(view) })
        .filter(|part| !part.shown.is_empty())
        .collect();
    if parts.is_empty() {
        return Err(NoPlot::Empty);
    }
    Ok(export::document(plot.about, &parts))
}
