//! Shares of the device over time: the part of the bytes that each process moves.

use iosched_sim::Timeline;
use maud::{Markup, html};

use super::chart::{Axis, Chart, Part, Quantity, Stack, Value};
use super::parts::{Shown, facet, facets, no_timelines};
use super::svg::{Path, Picture, Plot, Tick, px, shorten, steps_between, width_of};
use super::throughput::{MARGIN, SIZE, edges};
use super::units::{counted, percent, time_ticks, width};
use super::view::{Setting, View, process, queue_bins, rebin, shared_width_ns};

const BINS_MAX: usize = 90;
/// Number of processes with a separate shade. All other processes share one shade.
const OWN_MAX: usize = 7;
/// Minimum height of a band with a label inside, pixels.
const LABEL_HEIGHT: f64 = 13.0;
const LABEL_SIZE: f64 = 11.0;

/// A band of the plot: a process, or all other processes together. All settings have the same
/// bands.
struct Band {
    /// Index in [`iosched_sim::Timeline::tasks`]. `None` for all other processes together.
    task: Option<usize>,
    /// Name and pid.
    label: String,
    /// Name without the pid, or the pid if there is no name.
    name: String,
    /// The pid, unless the pid is the name.
    pid: Option<u32>,
    /// Text inside the band: the name if it is unique, otherwise the label.
    inside: String,
}

pub(crate) fn section(view: &View<'_>) -> Markup {
    let timelines = view.timelines();
    if timelines.is_empty() {
        return no_timelines();
    }
    let bands = bands(view, &timelines);
    if bands.is_empty() {
        return html! { p .quiet { "No process moved any data." } };
    }
    if let [only] = bands.as_slice() {
        return html! { p .quiet { "One process, " (only.label) ", used the device alone." } };
    }
    let width_ns = width_ns(&timelines);
    html! {
        p .legend {
            "Share of each process in the completed bytes, in bins of " (width(width_ns)) ", first \
             run of each setting. The busiest process is at the bottom, and all plots have the \
             same order. In blank bins, no I/O completed. Below each plot are the shares of the \
             whole run."
        }
        div .(facets(timelines.len())) {
            @for (setting, timeline) in &timelines {
                @let shares = Shares::of(&bands, timeline, width_ns);
                (facet(setting, &plot(view, setting, &bands, &shares, width_ns).html(), &list(&bands, &shares)))
            }
        }
    }
}

fn width_ns(timelines: &[(&Setting<'_>, &Timeline)]) -> u64 {
    shared_width_ns(timelines.iter().map(|(_, timeline)| queue_bins(timeline)), BINS_MAX)
}

/// Returns a plot of each setting. Empty if there are fewer than two bands.
pub(crate) fn pictures<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    let timelines = view.timelines();
    let bands = if timelines.is_empty() { Vec::new() } else { bands(view, &timelines) };
    if bands.len() < 2 {
        return Vec::new();
    }
    let width_ns = width_ns(&timelines);
    let shown_of = |(setting, timeline)| {
        Shown::of(setting, plot(view, setting, &bands, &Shares::of(&bands, timeline, width_ns), width_ns))
    };
    timelines.into_iter().map(shown_of).collect()
}

/// Bytes and shares of all bands under one setting.
struct Shares {
    /// Bytes of each band by bin.
    bytes: Vec<Vec<f64>>,
    /// Bytes of all bands by bin.
    totals: Vec<f64>,
    /// Share of each band in the whole run, 0 to 1.
    parts: Vec<f64>,
}

impl Shares {
    fn of(bands: &[Band], timeline: &Timeline, width_ns: u64) -> Self {
        let bytes: Vec<Vec<f64>> = bands.iter().map(|band| bytes_of(band, bands, timeline, width_ns)).collect();
        let bins = bytes.iter().map(Vec::len).max().unwrap_or(0);
        let totals: Vec<f64> = (0..bins).map(|bin| bytes.iter().map(|band| band[bin]).sum()).collect();
        let all: f64 = totals.iter().sum();
        let part = |band: &Vec<f64>| if all > 0.0 { band.iter().sum::<f64>() / all } else { 0.0 };
        Self { parts: bytes.iter().map(part).collect(), bytes, totals }
    }
}

/// Returns the busiest processes over all settings, then the other processes together, if any.
fn bands(view: &View<'_>, timelines: &[(&Setting<'_>, &Timeline)]) -> Vec<Band> {
    let tasks = view.tasks(timelines[0].0.number);
    let total = |task: usize| -> u64 {
        timelines.iter().filter_map(|(_, t)| Some(t.tasks.get(task)?.bytes.iter().sum::<u64>())).sum()
    };
    let slots = timelines.iter().map(|(_, t)| t.tasks.len()).max().unwrap_or(0);
    let (mut shown, mut rest) = (Vec::new(), 0u64);
    for slot in 0..slots {
        let task = timelines.iter().find_map(|(_, t)| t.tasks.get(slot)?.task);
        match task {
            Some(_) if total(slot) > 0 => shown.push(slot),
            None if total(slot) > 0 => rest = tasks.len().saturating_sub(slot) as u64,
            _ => {}
        }
    }
    shown.sort_by_key(|&slot| (std::cmp::Reverse(total(slot)), slot));
    // The busiest processes get separate bands. All others share one band, even if there is only
    // one.
    let bands_shown = shown.len().min(OWN_MAX);
    rest += (shown.len() - bands_shown) as u64;
    let band = |&slot: &usize| {
        let task = timelines.iter().find_map(|(_, t)| t.tasks.get(slot)?.task).and_then(|task| tasks.get(task));
        let (name, pid) = task.map_or_else(Default::default, |task| {
            let name = task.name.trim();
            match name {
                "" => (format!("pid {}", task.pid), None),
                _ => (name.to_owned(), Some(task.pid)),
            }
        });
        let label = pid.map_or_else(|| name.clone(), |pid| process(&name, pid));
        Band { task: Some(slot), inside: name.clone(), label, name, pid }
    };
    let mut bands: Vec<Band> = shown[..bands_shown].iter().map(band).collect();
    for number in 0..bands.len() {
        if bands.iter().filter(|band| band.name == bands[number].name).count() > 1 {
            bands[number].inside =
                bands[number].pid.map_or_else(String::new, |pid| format!("{} {pid}", bands[number].name));
        }
    }
    if rest > 0 {
        let label = counted(rest, "other", "others");
        bands.push(Band { task: None, name: label.clone(), inside: label.clone(), label, pid: None });
    }
    bands
}

/// Returns the bytes of a band in each bin. The band of all other processes has the bytes of all
/// tasks without a separate band.
fn bytes_of(band: &Band, bands: &[Band], timeline: &Timeline, width_ns: u64) -> Vec<f64> {
    let bins = timeline.bins.len();
    let mut bytes = vec![0u64; bins];
    let has_band = |slot: usize| bands.iter().any(|band| band.task == Some(slot));
    for (slot, task) in timeline.tasks.iter().enumerate() {
        let counts = match band.task {
            Some(band_slot) => band_slot == slot,
            None => !has_band(slot),
        };
        if counts {
            bytes.iter_mut().zip(&task.bytes).for_each(|(sum, bytes)| *sum += bytes);
        }
    }
    rebin(&bytes, timeline.bin_ns, width_ns, |part| part.iter().sum::<u64>() as f64)
}

/// Returns the list of the shares in the whole run.
fn list(bands: &[Band], shares: &Shares) -> Markup {
    html! {
        ul .shares {
            @for (number, (band, &part)) in bands.iter().zip(&shares.parts).enumerate() {
                li title=(band.label) {
                    svg .swatch viewBox="0 0 10 10" aria-hidden="true" { rect .(shade(bands, number)) width="10" height="10" {} }
                    span .who { (band.name) }
                    @if let Some(pid) = band.pid { span .pid { (pid) } }
                    span .part { (percent(part)) " %" }
                }
            }
        }
    }
}

/// Returns the class of a band's shade.
fn shade(bands: &[Band], number: usize) -> String {
    if bands[number].task.is_none() { format!("p{OWN_MAX}") } else { format!("p{number}") }
}

fn plot(view: &View<'_>, setting: &Setting<'_>, bands: &[Band], shares: &Shares, width_ns: u64) -> Picture {
    let Shares { bytes, totals, parts } = shares;
    let horizon_ns = view.horizon_ns();
    let plot = Plot::linear(SIZE, MARGIN, view.time_axis(), (0.0, 1.0));
    let x: Vec<f64> = edges(totals.len(), width_ns, horizon_ns).iter().map(|&at| plot.x.at(at)).collect();
    let ticks = [0.0, 0.25, 0.5, 0.75, 1.0].map(|at| Tick { at, label: format!("{:.0}", at * 100.0) });
    let mut below = vec![0.0; totals.len()];
    let mut shapes = Vec::new();
    for (number, band) in bytes.iter().enumerate() {
        let above: Vec<f64> = below
            .iter()
            .zip(band.iter().zip(totals))
            .map(|(below, (&bytes, &total))| below + if total > 0.0 { bytes / total } else { 0.0 })
            .collect();
        let up = |values: &[f64]| values.iter().map(|&value| plot.y.at(value)).collect::<Vec<_>>();
        let (low, high) = (up(&below), up(&above));
        let mut path = Path::default();
        for stretch in stretches(totals) {
            steps_between(&mut path, &x[stretch.start..=stretch.end], &low[stretch.clone()], &high[stretch]);
        }
        let label = inside(&bands[number].inside, &x, &low, &high);
        shapes.push((number, path, label));
        below = above;
    }
    let body = html! {
        (plot.y_axis(&ticks, "%"))
        @for (number, path, _) in &shapes {
            path .(shade(bands, *number)) d=(path.data()) { title { (bands[*number].label) ", " (percent(parts[*number])) " %" } }
        }
        @for (.., label) in &shapes {
            @if let Some((x, y, text)) = label {
                text .halo .inside x=(px(*x)) y=(px(*y)) dy=".35em" text-anchor="middle" { (text) }
            }
        }
        (plot.x_axis(&time_ticks(plot.x.domain().0, plot.x.domain().1, 5), false))
    };
    let about: Vec<String> =
        bands.iter().zip(parts).map(|(band, &part)| format!("{} {} %", band.label, percent(part))).collect();
    let title = format!("Shares of the device over time, {}", setting.label);
    let id = view.id(&format!("shares-{}", setting.number));
    let share = |(&bytes, &total): (&f64, &f64)| Value(if total > 0.0 { bytes / total } else { 0.0 });
    let part = |(number, bytes): (usize, &Vec<f64>)| Part {
        name: bands[number].label.clone(),
        class: shade(bands, number),
        y: bytes.iter().zip(totals).map(share).collect(),
    };
    let stack = Stack {
        setting: setting.number,
        width: Value(width_ns as f64),
        parts: bytes.iter().enumerate().map(part).collect(),
    };
    let axes = (Axis::linear(Quantity::Time, plot.x.domain()), Axis::linear(Quantity::Share, (0.0, 1.0)));
    let columns = (0..totals.len() as u64).map(|column| (column * width_ns) as f64);
    let chart = Chart { stack: Some(stack), group: view.id("time"), ..Chart::plain(axes, columns, Vec::new()) };
    Picture { id, size: SIZE, title, about: about.join(", "), body, chart: Some(chart) }
}

/// Returns the ranges of consecutive bins in which I/Os completed.
fn stretches(totals: &[f64]) -> Vec<std::ops::Range<usize>> {
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    for bin in (0..totals.len()).filter(|&bin| totals[bin] > 0.0) {
        match found.last_mut() {
            Some(last) if last.end == bin => last.end += 1,
            _ => found.push(bin..bin + 1),
        }
    }
    found
}

/// Returns the centre and the text of a label inside a band. `None` if the band is too thin
/// everywhere.
fn inside(name: &str, x: &[f64], low: &[f64], high: &[f64]) -> Option<(f64, f64, String)> {
    let text = shorten(name, LABEL_SIZE, 100.0);
    let width = width_of(&text, LABEL_SIZE) + 6.0;
    let mut best: Option<(f64, f64, f64)> = None;
    for from in 0..low.len() {
        let Some(to) = (from..low.len()).find(|&to| x[to + 1] - x[from] >= width) else { break };
        let bottom = low[from..=to].iter().copied().fold(f64::INFINITY, f64::min);
        let top = high[from..=to].iter().copied().fold(0.0, f64::max);
        let room = bottom - top;
        if room >= LABEL_HEIGHT && best.is_none_or(|(most, ..)| room > most) {
            best = Some((room, f64::midpoint(x[from], x[to + 1]), f64::midpoint(bottom, top)));
        }
    }
    best.map(|(_, x, y)| (x, y, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_cover_only_values_above_zero() {
        assert_eq!(stretches(&[0.0, 1.0, 1.0, 0.0, 2.0]), [1..3, 4..5]);
        assert_eq!(stretches(&[]), []);
    }

    #[test]
    fn label_is_placed_where_its_band_is_thick_enough() {
        let x: Vec<f64> = (0..=10).map(|i| f64::from(i) * 20.0).collect();
        let low = vec![100.0; 10];
        let mut high = vec![95.0; 10];
        assert_eq!(inside("ab", &x, &low, &high), None);
        high[4..8].fill(60.0);
        let (at, y, text) = inside("ab", &x, &low, &high).unwrap();
        assert!(at > 80.0 && at < 160.0 && y == 80.0 && text == "ab");
    }
}
