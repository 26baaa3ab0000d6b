//! Latency over time as a heat map. A stronger colour means more I/Os with this latency at this
//! time.
//!
//! The horizontal axis has bins of time. The vertical axis has classes of latency, on a logarithmic
//! scale. All settings have the same axes and shades. Shades represent counts on a logarithmic
//! scale, so that a single slow I/O is visible.

use iosched_lab::{Direction, grouped};
use iosched_sim::{IoBin, LatencyClasses, Timeline};
use maud::{Markup, html};

use super::chart::{Axis, Chart, Heat, Quantity, Value, good};
use super::parts::{Shown, no_io_timelines, no_timelines, row};
use super::svg::{Path, Picture, Plot};
use super::throughput::{MARGIN, SIZE};
use super::units::{log_time_ticks, time, time_ticks, width};
use super::view::{Setting, View, io_bins, rebin, shared_width_ns};

/// Maximum number of columns of a picture.
const COLUMNS_MAX: usize = 128;
/// Maximum number of rows. If there are more classes, neighbouring classes are joined.
const ROWS_MAX: usize = 40;
/// Number of shades.
const SHADES: u32 = 6;

/// Sync or async I/O.
#[derive(Clone, Copy)]
struct Kind {
    id: &'static str,
    title: &'static str,
    of: fn(&IoBin) -> &LatencyClasses,
}

const SYNC: Kind = Kind { id: "heat", title: "Sync: reads, and writes that a process waits for", of: |bin| &bin.sync };
const ASYNC: Kind =
    Kind { id: "heat-async", title: "Async: writes that no process waits for", of: |bin| &bin.nobody_waits };

/// Counts of one setting by column and row.
struct Grid<'v, 'a> {
    setting: &'v Setting<'a>,
    columns: Vec<LatencyClasses>,
}

/// Properties that the pictures of all settings share.
struct Grids<'v, 'a> {
    kind: Kind,
    width_ns: u64,
    /// First class that is drawn, number of classes per row, and number of rows.
    first: usize,
    per_row: usize,
    rows: usize,
    most: u64,
    all: Vec<Grid<'v, 'a>>,
}

/// Returns the grids, or `None` if no I/O of this kind completed.
fn grids<'v, 'a>(view: &'v View<'a>, kind: Kind) -> Option<Grids<'v, 'a>> {
    let timelines = view.io_timelines();
    let width_ns = shared_width_ns(timelines.iter().map(|(_, timeline)| io_bins(timeline)), COLUMNS_MAX);
    let grid = |(setting, timeline): (&'v Setting<'a>, &Timeline)| {
        let numbers: Vec<usize> = (0..timeline.io.bins.len()).collect();
        let columns = rebin(&numbers, timeline.io.bin_ns, width_ns, |part| {
            let mut column = LatencyClasses::default();
            part.iter().for_each(|&bin| column.merge((kind.of)(&timeline.io.bins[bin])));
            column
        });
        Grid { setting, columns }
    };
    let all: Vec<Grid<'_, '_>> = timelines.into_iter().map(grid).collect();
    let used = || all.iter().flat_map(|grid| &grid.columns).flat_map(LatencyClasses::classes);
    let first = used().map(|(class, _)| class).min()?;
    let last = used().map(|(class, _)| class).max()?;
    // Draw at least two powers of two, so that a single class is not a flat line.
    let classes = (last + 1 - first).max(8);
    let per_row = classes.div_ceil(ROWS_MAX);
    let mut grids = Grids { kind, width_ns, first, per_row, rows: classes.div_ceil(per_row), most: 0, all };
    grids.most = grids.all.iter().flat_map(|grid| &grid.columns).flat_map(|column| grids.cells(column)).max()?;
    Some(grids)
}

impl<'a> Grids<'_, 'a> {
    /// Returns the counts of a column, by row.
    fn cells(&self, column: &LatencyClasses) -> Vec<u64> {
        let mut cells = vec![0; self.rows];
        column.classes().for_each(|(class, count)| cells[(class - self.first) / self.per_row] += count);
        cells
    }

    /// Returns the lower bound of a row, ns.
    fn bound_ns(&self, row: usize) -> f64 {
        LatencyClasses::bound_ns(self.first + row * self.per_row).max(1.0)
    }

    /// Returns the shade of a count: 0 for a count of 0, otherwise a number from 1 on.
    fn shade(&self, count: u64) -> u32 {
        if count == 0 {
            return 0;
        }
        let part = (count as f64).ln_1p() / (self.most as f64).ln_1p();
        ((part * f64::from(SHADES)).ceil() as u32).clamp(1, SHADES)
    }

    fn plots(&self, view: &View<'a>) -> Vec<Shown<'a>> {
        self.all.iter().map(|grid| Shown::of(grid.setting, self.plot(view, grid))).collect()
    }

    fn plot(&self, view: &View<'_>, grid: &Grid<'_, '_>) -> Picture {
        let ends = (self.bound_ns(0), self.bound_ns(self.rows));
        let plot = Plot::log(SIZE, MARGIN, view.time_axis(), ends);
        let mut shades: Vec<Path> = (0..SHADES).map(|_| Path::default()).collect();
        let columns: Vec<Vec<u64>> = grid.columns.iter().map(|column| self.cells(column)).collect();
        let shade = |column: usize, row: usize| columns.get(column).map_or(0, |cells| self.shade(cells[row]));
        let left = |column: usize| plot.x.at((column as u64 * self.width_ns) as f64);
        for row in 0..self.rows {
            let (top, bottom) = (plot.y.at(self.bound_ns(row + 1)), plot.y.at(self.bound_ns(row)));
            let mut from = 0;
            // Neighbours with the same shade become one bar.
            for column in 0..columns.len() {
                let darkness = shade(column, row);
                if darkness == shade(column + 1, row) {
                    continue;
                }
                if darkness > 0 && left(column + 1) > left(from) {
                    shades[darkness as usize - 1].bar(left(from), top, left(column + 1) - left(from), bottom - top);
                }
                from = column + 1;
            }
        }
        let body = html! {
            (plot.y_axis(&log_time_ticks(ends.0, ends.1), ""))
            (plot.good(Direction::Lower))
            g .heat {
                @for (number, path) in shades.iter().enumerate().filter(|(_, path)| !path.data().is_empty()) {
                    path .{ "h" (number) } d=(path.data()) {}
                }
            }
            (plot.x_axis(&time_ticks(plot.x.domain().0, plot.x.domain().1, 5), false))
        };
        let pairs = |cells: &Vec<u64>| {
            let used = cells.iter().enumerate().filter(|(_, count)| **count > 0);
            used.flat_map(|(row, &count)| [row as u64, count]).collect()
        };
        let chart = Chart {
            x: Axis::linear(Quantity::Time, plot.x.domain()),
            y: Axis::log(Quantity::Time, ends),
            at: (0..columns.len()).map(|column| Value((column as u64 * self.width_ns) as f64)).collect(),
            series: Vec::new(),
            heat: Some(Heat {
                setting: grid.setting.number,
                width: Value(self.width_ns as f64),
                rows: (0..=self.rows).map(|row| Value(self.bound_ns(row))).collect(),
                columns: columns.iter().map(pairs).collect(),
                most: self.most,
            }),
            stack: None,
            good: good(Direction::Lower),
            group: view.id("time"),
        };
        let title = format!("Latency over time, {}", grid.setting.label);
        let about = self.about(&columns);
        let id = view.id(&format!("{}-{}", self.kind.id, grid.setting.number));
        Picture { id, size: SIZE, title, about, body, chart: Some(chart) }
    }

    /// Describes the latency of most I/Os, and the slowest I/Os.
    fn about(&self, columns: &[Vec<u64>]) -> String {
        let of_row = |row: usize| columns.iter().map(|cells| cells[row]).sum::<u64>();
        let Some(slowest) = (0..self.rows).rev().find(|&row| of_row(row) > 0) else { return "no I/O".to_owned() };
        let usual = (0..self.rows).max_by_key(|&row| of_row(row)).unwrap_or(0);
        let slow = columns.iter().position(|cells| cells[slowest] > 0).unwrap_or(0);
        format!(
            "most I/Os took {} to {}; the slowest I/Os took {} or more, and the first of these I/Os completed at {}",
            time(self.bound_ns(usual), 2),
            time(self.bound_ns(usual + 1), 2),
            time(self.bound_ns(slowest), 2),
            time((slow as u64 * self.width_ns) as f64, 3)
        )
    }
}

pub(crate) fn section(view: &View<'_>) -> Markup {
    if view.timelines().is_empty() {
        return no_timelines();
    }
    if view.io_timelines().is_empty() {
        return no_io_timelines();
    }
    let kinds = [SYNC, ASYNC].map(|kind| grids(view, kind));
    let Some(first) = kinds.iter().flatten().next() else { return html! { p .quiet { "No I/O was completed." } } };
    html! {
        p .legend {
            "Latency of the I/Os that completed in each bin of " (width(first.width_ns)) ", first \
             run of each setting. A stronger colour means more I/Os, on a logarithmic scale up to "
            (grouped(kinds.iter().flatten().map(|grids| grids.most).max().unwrap_or(0)))
            ". All settings have the same axes and shades."
        }
        @for grids in kinds.iter().flatten() {
            @if kinds.iter().flatten().count() > 1 { p .kind { (grids.kind.title) } }
            (row(&grids.plots(view)))
        }
    }
}

/// Returns a plot of sync I/O for each setting.
pub(crate) fn pictures<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    grids(view, SYNC).map(|grids| grids.plots(view)).unwrap_or_default()
}

/// Returns a plot of async I/O for each setting.
pub(crate) fn pictures_async<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    grids(view, ASYNC).map(|grids| grids.plots(view)).unwrap_or_default()
}
