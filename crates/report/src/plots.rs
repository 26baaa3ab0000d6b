//! The plots of a comparison by themselves: which there are, and each as a picture in a file of its own.

use iosched_lab::Records;

use super::parts::Shown;
use super::view::View;
use super::{differences, export, head, heat, latency, over_time, runs, scan, shares, sizes, slices, throughput};

/// A plot that can be had by itself.
#[derive(Clone, Copy)]
struct Plot {
    name: &'static str,
    about: &'static str,
    /// Whether it has to be said which colour is whose.
    needs_key: bool,
    pictures: for<'v, 'a> fn(&'v View<'a>) -> Vec<Shown<'a>>,
}

const PLOTS: [Plot; 14] = [
    plot("differences", "differences from the baseline, with confidence intervals", false, differences::pictures),
    plot("scan", "metrics over a parameter that was scanned", false, scan::pictures),
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

/// Why there is no picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlot {
    /// There is no plot of that name.
    Unknown,
    /// The records have nothing to draw there.
    Empty,
}

/// The names of all plots, and what each shows.
pub fn plots() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLOTS.iter().map(|plot| (plot.name, plot.about))
}

/// A plot of `records` as an SVG document that needs nothing else, in colours for paper; of several devices one below
/// the other. The same records give the same bytes.
///
/// # Errors
/// There is no such plot, or nothing to draw.
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
