//! Plots of one quantity over time, with a line for each setting: I/Os per second, and I/Os in
//! flight.

use iosched_lab::{Direction, significant};
use iosched_sim::Timeline;
use maud::{Markup, html};

use super::chart::{Axis, Chart, Draw, Quantity, Series, Value, good};
use super::parts::{Shown, as_table, key, name, no_io_timelines, no_timelines, wide};
use super::svg::{Margin, Path, Picture, Plot, Tick, nice_end, ticks};
use super::units::{time, time_ticks, width};
use super::view::{Bins, Setting, View, io_bins, queue_bins, rebin, shared_width_ns};

const SIZE: (f64, f64) = (1044.0, 260.0);
const MARGIN: Margin = Margin { top: 26.0, right: 14.0, bottom: 26.0, left: 60.0 };
const BINS_MAX: usize = 180;
/// Minimum share of a bin that a run must cover. Values of bins with a smaller share are not shown.
const PART_MIN: f64 = 0.05;

/// A quantity over time.
pub(crate) struct Figure {
    /// Id of the plot.
    id: &'static str,
    title: &'static str,
    /// Name of a value in the table.
    name: &'static str,
    direction: Direction,
    legend: &'static str,
    /// Function that returns the bins of a timeline and the sum in each. It returns no bins if the
    /// timeline lacks the quantity.
    sums: fn(&Timeline) -> (Bins, Vec<u64>),
    /// Value of the quantity for a sum of 1 per second.
    per_second: f64,
}

/// I/Os completed per second.
pub(crate) const IOPS: Figure = Figure {
    id: "iops-plot",
    title: "I/Os completed per second",
    name: "I/Os per second",
    direction: Direction::Higher,
    legend: "completed I/Os of the processes per second; a merged or split I/O counts once",
    sums: ios,
    per_second: 1.0,
};

/// I/Os in flight.
pub(crate) const DEPTH: Figure = Figure {
    id: "depth-plot",
    title: "I/Os in flight",
    name: "I/Os in flight",
    direction: Direction::Neither,
    legend: "Mean number of I/Os in flight in each bin. The number includes I/Os in the device, in the queue, \
             and I/Os that wait for a place in the queue",
    sums: under_way,
    per_second: 1e-9,
};

fn ios(timeline: &Timeline) -> (Bins, Vec<u64>) {
    if timeline.io.is_empty() {
        return (queue_bins(timeline), timeline.bins.iter().map(|bin| bin.ios).collect());
    }
    (io_bins(timeline), timeline.io.bins.iter().map(|bin| bin.ios).collect())
}

fn under_way(timeline: &Timeline) -> (Bins, Vec<u64>) {
    (io_bins(timeline), timeline.io.bins.iter().map(|bin| bin.under_way_ns).collect())
}

/// Values of a setting by bin.
struct Course<'v, 'a> {
    setting: &'v Setting<'a>,
    values: Vec<f64>,
    mean: f64,
}

struct Courses<'v, 'a> {
    width_ns: u64,
    all: Vec<Course<'v, 'a>>,
}

impl Figure {
    fn courses<'v, 'a>(&self, view: &'v View<'a>) -> Option<Courses<'v, 'a>> {
        let setting_sums = |(setting, timeline)| (setting, (self.sums)(timeline));
        let sums: Vec<(&Setting<'a>, (Bins, Vec<u64>))> = view.timelines().into_iter().map(setting_sums).collect();
        let sums: Vec<_> = sums.into_iter().filter(|(_, (_, sums))| !sums.is_empty()).collect();
        let width_ns = shared_width_ns(sums.iter().map(|(_, (bins, _))| *bins), BINS_MAX);
        let course = |(setting, ((bin_ns, _), sums)): (&'v Setting<'a>, (Bins, Vec<u64>))| {
            let joined = rebin(&sums, bin_ns, width_ns, |part| part.iter().sum::<u64>());
            let (from_ns, end_ns) = view.counted(setting.number);
            let value = |(bin, &sum): (usize, &u64)| {
                let (from, to) = (bin as u64 * width_ns, (bin as u64 + 1) * width_ns);
                // Counting may have begun, or the run may have ended, within the bin.
                let counted_ns = to.min(end_ns.max(from)).saturating_sub(from.max(from_ns)) as f64;
                if counted_ns < PART_MIN * width_ns as f64 && joined.len() > 1 {
                    return f64::NAN;
                }
                sum as f64 * self.per_second * 1e9 / counted_ns.max(1.0)
            };
            let values = joined.iter().enumerate().map(value).collect();
            let whole_ns = end_ns.saturating_sub(from_ns).max(1);
            let mean = sums.iter().sum::<u64>() as f64 * self.per_second * 1e9 / whole_ns as f64;
            Course { setting, values, mean }
        };
        let all: Vec<_> = sums.into_iter().map(course).collect();
        (!all.is_empty()).then_some(Courses { width_ns, all })
    }

    pub(crate) fn section(&self, view: &View<'_>) -> Markup {
        if view.timelines().is_empty() {
            return no_timelines();
        }
        let Some(courses) = self.courses(view) else { return no_io_timelines() };
        let settings: Vec<&Setting<'_>> = courses.all.iter().map(|course| course.setting).collect();
        html! {
            p .legend { (self.legend) "; first run of each setting, in bins of " (width(courses.width_ns)) "." }
            (key(&settings))
            (wide(&Shown::of_all("", self.plot(view, &courses))))
            (as_table(&self.table(&courses)))
        }
    }

    /// Returns the plot, if there is one.
    pub(crate) fn pictures<'a>(&self, view: &View<'a>) -> Vec<Shown<'a>> {
        let courses = self.courses(view);
        courses.map(|courses| Shown::of_all(self.title, self.plot(view, &courses))).into_iter().collect()
    }

    fn plot(&self, view: &View<'_>, courses: &Courses<'_, '_>) -> Picture {
        let highest = courses.all.iter().flat_map(|course| &course.values).copied().fold(0.0, f64::max);
        let top = nice_end(highest.max(1.0), 4);
        let plot = Plot::linear(SIZE, MARGIN, view.time_axis(), (0.0, top));
        let middle = |bin: usize| (bin as f64 + 0.5) * courses.width_ns as f64;
        let (values, decimals) = ticks(0.0, top, 4);
        let marks: Vec<Tick> = values.iter().map(|&at| Tick { at, label: grouped(at, decimals) }).collect();
        let line = |course: &Course<'_, '_>| {
            let mut path = Path::default();
            let known = course.values.iter().enumerate().filter(|(_, value)| value.is_finite());
            known.for_each(|(bin, &value)| path.line_to(plot.x.at(middle(bin)), plot.y.at(value)));
            path
        };
        let body = html! {
            (plot.y_axis(&marks, ""))
            (plot.good(self.direction))
            @for course in &courses.all {
                g .(course.setting.class) { path .line .over-time d=(line(course).data()) {} }
            }
            (plot.x_axis(&time_ticks(plot.x.domain().0, plot.x.domain().1, 10), false))
        };
        let bins = courses.all.iter().map(|course| course.values.len()).max().unwrap_or(0);
        let series = |course: &Course<'_, '_>| {
            let rest = std::iter::repeat_n(f64::NAN, bins - course.values.len());
            Series::of(course.setting, course.setting.label, Draw::Line, course.values.iter().copied().chain(rest))
        };
        let chart = Chart {
            x: Axis::linear(Quantity::Time, plot.x.domain()),
            y: Axis::linear(Quantity::Number, (0.0, top)),
            at: (0..bins).map(|bin| Value(middle(bin))).collect(),
            series: courses.all.iter().map(series).collect(),
            heat: None,
            stack: None,
            good: good(self.direction),
            group: view.id("time"),
        };
        let means =
            courses.all.iter().map(|course| format!("{}: mean {}", course.setting.label, significant(course.mean, 3)));
        let about = means.collect::<Vec<_>>().join("; ");
        let (id, title) = (view.id(self.id), format!("{} over time", self.title));
        Picture { id, size: SIZE, title, about, body, chart: Some(chart) }
    }

    fn table(&self, courses: &Courses<'_, '_>) -> Markup {
        let known =
            |course: &Course<'_, '_>| course.values.iter().copied().filter(|v| v.is_finite()).collect::<Vec<_>>();
        html! {
            table {
                thead {
                    tr {
                        th scope="col" { "Setting" }
                        th scope="col" .number { (self.name) ", mean" }
                        th scope="col" .number { "lowest bin" }
                        th scope="col" .number { "highest bin" }
                        th scope="col" .number { "highest at" }
                    }
                }
                tbody {
                    @for course in &courses.all {
                        @let values = known(course);
                        @let highest = values.iter().copied().fold(0.0, f64::max);
                        @let at = course.values.iter().position(|&value| value == highest).unwrap_or(0);
                        tr {
                            th scope="row" { (name(course.setting)) }
                            td .number { (significant(course.mean, 3)) }
                            td .number { (significant(values.iter().copied().fold(highest, f64::min), 3)) }
                            td .number { (significant(highest, 3)) }
                            td .number { (time((at as u64 * courses.width_ns) as f64, 3)) }
                        }
                    }
                }
            }
        }
    }
}

/// Formats a mark of the axis, with separated thousands.
fn grouped(value: f64, decimals: usize) -> String {
    if decimals == 0 { iosched_lab::grouped(value.max(0.0) as u64) } else { format!("{value:.decimals$}") }
}
