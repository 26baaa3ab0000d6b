//! Latency distributions: percentile plots of sync and of async I/O.
//!
//! The horizontal axis has percentiles. The distances from 90 to 99, from 99 to 99.9 and so on are
//! equal, so that the tail is visible. The vertical axis has latencies on a logarithmic scale. A
//! line shows the latencies of all runs of a setting together. The band around the line is the
//! range from the lowest to the highest run.

use iosched_lab::{Direction, grouped};
use iosched_sim::{Histogram, Latencies};
use maud::{Markup, html};

use super::chart::{Axis, Chart, Draw, Quantity, Series, Value, good};
use super::parts::{Shown, key, name};
use super::svg::{Margin, Path, Picture, Plot, Tick, px, spread, width_of};
use super::units::{log_time_ticks, time};
use super::view::{Setting, View};

const SIZE: (f64, f64) = (500.0, 330.0);
/// Number of points of a line.
const POINTS: usize = 160;
/// Percentiles of the table, with their ranks.
const QUANTILES: [(&str, f64); 7] =
    [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];
const DOTS: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Latencies of a setting of one kind.
struct Distribution<'a> {
    setting: &'a Setting<'a>,
    /// Latencies of all runs together.
    all: Histogram,
    /// Latencies of each run.
    runs: Vec<Histogram>,
}

/// A kind of I/Os: the id of its plot, and the caption.
type Kind = (&'static str, &'static str);
const SYNC: Kind = ("latency-sync", "Sync: reads, and writes that a process waits for");
const ASYNC: Kind = ("latency-async", "Async: writes that no process waits for");

/// Returns the plot of sync I/O, if there is any.
pub(crate) fn pictures<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    picture(view, SYNC, &distributions(view, Latencies::sync))
}

/// Returns the plot of async I/O, if there is any.
pub(crate) fn pictures_async<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    picture(view, ASYNC, &distributions(view, |latency| latency.writes_async.clone()))
}

fn picture<'a>(view: &View<'a>, (id, title): Kind, distributions: &[Distribution<'_>]) -> Vec<Shown<'a>> {
    let drawn = (!distributions.is_empty()).then(|| plot(view.id(id), title, distributions));
    drawn.map(|picture| Shown::of_all(title, picture)).into_iter().collect()
}

pub(crate) fn section(view: &View<'_>) -> Markup {
    let sync = distributions(view, Latencies::sync);
    let nobody_waits = distributions(view, |latency| latency.writes_async.clone());
    html! {
        p .legend {
            "Latency from submission to completion, by percentile. Each line shows all runs together. The band \
             around the line reaches from the lowest to the highest run. A lower line is faster."
        }
        (key(&view.settings.iter().collect::<Vec<_>>()))
        div .pair {
            (kind(view, &SYNC, &sync))
            (kind(view, &ASYNC, &nobody_waits))
        }
        @if view.results.rounds == 0 {
            p .quiet { "No round is complete, so there are no latencies. A complete round has a run of every setting." }
        } @else {
            @if sync.is_empty() { p .quiet { "No sync I/O was completed." } }
            @if nobody_waits.is_empty() { p .quiet { "This workload has no async I/O." } }
        }
    }
}

fn distributions<'a>(view: &'a View<'_>, histogram_of: impl Fn(&Latencies) -> Histogram) -> Vec<Distribution<'a>> {
    let of_setting = |setting: &'a Setting<'a>| {
        let runs = view.records.complete_runs(setting.number);
        let runs: Vec<Histogram> =
            runs.iter().map(|run| histogram_of(&run.result.latency)).filter(|h| !h.is_empty()).collect();
        let mut all = Histogram::default();
        runs.iter().for_each(|run| all.merge(run));
        Distribution { setting, all, runs }
    };
    view.settings.iter().map(of_setting).filter(|distribution| !distribution.all.is_empty()).collect()
}

fn kind(view: &View<'_>, (id, title): &Kind, distributions: &[Distribution<'_>]) -> Markup {
    html! {
        @if !distributions.is_empty() {
            figure {
                figcaption { (title) }
                (plot(view.id(id), title, distributions).html())
                (table(distributions))
            }
        }
    }
}

/// Returns the position of a quantile on the axis: its number of nines.
fn nines(q: f64) -> f64 {
    -(1.0 - q).log10()
}

fn plot(id: String, title: &str, distributions: &[Distribution<'_>]) -> Picture {
    let label = |d: &Distribution<'_>| format!("{} {}", d.setting.short, time(d.all.max_ns() as f64, 2));
    // The labels are bold, so they are wider than `width_of` says.
    let widest = distributions.iter().map(|d| width_of(&label(d), 12.0) * 1.1).fold(0.0, f64::max);
    let margin = Margin { top: 22.0, right: widest + 16.0, bottom: 40.0, left: 50.0 };
    let most = distributions.iter().map(|d| d.all.count()).max().unwrap_or(1);
    let end = (most as f64).log10().clamp(1.0, 6.0);
    let low = distributions.iter().map(|d| d.all.min_ns()).min().unwrap_or(1).max(1) as f64;
    let high = distributions.iter().map(|d| d.all.max_ns()).max().unwrap_or(10) as f64;
    // The axis has a margin of a factor of 1.3 and spans at least a decade.
    let (low, high) = (low / 1.3, (high * 1.3).max(low * 10.0));
    let plot = Plot::log(SIZE, margin, (0.0, end), (low, high));
    let (.., bottom) = plot.inner();
    let body = html! {
        (plot.y_axis(&log_time_ticks(low, high), ""))
        (plot.x_axis(&percentiles(end), true))
        (plot.good(Direction::Lower))
        text .tick x=(px(margin.left)) y=(px(bottom + 34.0)) { "percent of I/Os" }
        @for d in distributions { (band(&plot, d, end)) }
        @for (number, d) in distributions.iter().enumerate() {
            (line(&plot, d, end, distributions[..number].iter().any(|other| coincide(&plot, d, other, end))))
        }
        (ends(&plot, distributions, label))
    };
    let about: Vec<String> = distributions
        .iter()
        .map(|d| {
            let at = |q| time(d.all.quantile_ns(q) as f64, 2);
            format!(
                "{}: median {}, p99 {}, worst {}",
                d.setting.label,
                at(0.5),
                at(0.99),
                time(d.all.max_ns() as f64, 2)
            )
        })
        .collect();
    let (title, about, chart) = (title.to_owned(), about.join("; "), chart(&plot, distributions));
    Picture { id, size: SIZE, title, about, body, chart: Some(chart) }
}

/// Returns the data for a script. All lines have values at the same percentiles. The last value of
/// a line is its slowest I/O.
fn chart(plot: &Plot, distributions: &[Distribution<'_>]) -> Chart {
    let (_, end) = plot.x.domain();
    let at: Vec<f64> = (0..=POINTS).map(|i| end * i as f64 / POINTS as f64).collect();
    let step = end / POINTS as f64;
    let series = |d: &Distribution<'_>| {
        let last = (d.all.count() as f64).log10().clamp(0.0, end);
        let y = at.iter().map(|&place| match last - place {
            left if left < -step / 2.0 => f64::NAN,
            left if left < step / 2.0 => d.all.max_ns() as f64,
            _ => quantile(&d.all, place),
        });
        let ranks = |run: &Histogram| (run.count() as f64).log10();
        let shortest = d.runs.iter().map(ranks).fold(end, f64::min);
        let of_runs = |start: f64, pick: fn(f64, f64) -> f64| -> Vec<Value> {
            let end_at = |place: f64| d.runs.iter().map(|run| quantile(run, place)).fold(start, pick);
            let value = |&place: &f64| Value(if place <= shortest { end_at(place) } else { f64::NAN });
            if d.runs.len() < 2 { Vec::new() } else { at.iter().map(value).collect() }
        };
        let (low, high) = (of_runs(f64::INFINITY, f64::min), of_runs(0.0, f64::max));
        Series { low, high, ..Series::of(d.setting, d.setting.label, Draw::Line, y) }
    };
    Chart {
        x: Axis::linear(Quantity::Nines, (0.0, end)),
        y: Axis::log(Quantity::Time, plot.y.domain()),
        series: distributions.iter().map(series).collect(),
        at: at.iter().copied().map(Value).collect(),
        heat: None,
        stack: None,
        good: good(Direction::Lower),
        group: String::new(),
    }
}

/// Returns the marks 0, 50, 90, 99, 99.9 and so on, up to `end` nines.
fn percentiles(end: f64) -> Vec<Tick> {
    let mut ticks = vec![Tick { at: 0.0, label: "0".to_owned() }, Tick { at: nines(0.5), label: "50".to_owned() }];
    for nine in 1..=end.floor() as i32 {
        let decimals = usize::try_from(nine - 2).unwrap_or(0);
        let label = format!("{:.decimals$}", 100.0 - 10f64.powi(2 - nine));
        ticks.push(Tick { at: f64::from(nine), label });
    }
    ticks
}

/// Returns positions along the axis, up to the rank of the second slowest of `count` I/Os.
fn places(count: u64, end: f64) -> impl Iterator<Item = f64> {
    let last = (count as f64).log10().clamp(0.0, end);
    (0..=POINTS).map(move |i| last * i as f64 / POINTS as f64)
}

fn quantile(histogram: &Histogram, place: f64) -> f64 {
    histogram.quantile_ns(1.0 - 10f64.powf(-place)) as f64
}

/// Returns whether two lines mostly coincide. If they do, the upper line is dashed, so that both
/// are visible.
fn coincide(plot: &Plot, a: &Distribution<'_>, b: &Distribution<'_>, end: f64) -> bool {
    let place = |d: &Distribution<'_>, at| plot.y.at(quantile(&d.all, at));
    let (mut same, mut all) = (0, 0);
    for at in places(a.all.count().min(b.all.count()), end) {
        all += 1;
        same += usize::from((place(a, at) - place(b, at)).abs() < 1.0);
    }
    same * 2 > all
}

fn line(plot: &Plot, d: &Distribution<'_>, end: f64, is_shared: bool) -> Markup {
    let points: Vec<(f64, f64)> =
        places(d.all.count(), end).map(|place| (plot.x.at(place), plot.y.at(quantile(&d.all, place)))).collect();
    let mut path = Path::default();
    for (i, &(x, y)) in points.iter().enumerate() {
        // The inner points of a horizontal part are not needed.
        let level = |other: Option<&(f64, f64)>| other.is_some_and(|&(_, other)| px(other) == px(y));
        if i == 0 || !level(points.get(i - 1)) || !level(points.get(i + 1)) {
            path.line_to(x, y);
        }
    }
    let dots = DOTS.iter().filter(|&&q| nines(q) <= (d.all.count() as f64).log10());
    // The last I/O is the slowest.
    if let Some(&(x, _)) = points.last() {
        path.line_to(x, plot.y.at(d.all.max_ns() as f64));
    }
    html! {
        g .(d.setting.class) {
            path .line .shared[is_shared] d=(path.data()) {}
            @for &q in dots {
                @let value = d.all.quantile_ns(q) as f64;
                circle .dot cx=(px(plot.x.at(nines(q)))) cy=(px(plot.y.at(value))) r="3.2" {
                    title { (d.setting.label) ": " (q * 100.0) " % took at most " (time(value, 3)) }
                }
            }
        }
    }
}

/// Draws the band from the lowest to the highest run. It ends where the run with fewest I/Os ends.
fn band(plot: &Plot, d: &Distribution<'_>, end: f64) -> Markup {
    if d.runs.len() < 2 {
        return html! {};
    }
    let fewest = d.runs.iter().map(Histogram::count).min().unwrap_or(1);
    let x: Vec<f64> = places(fewest, end).collect();
    let of_runs = |place: f64, start: f64, pick: fn(f64, f64) -> f64| {
        plot.y.at(d.runs.iter().map(|run| quantile(run, place)).fold(start, pick))
    };
    let mut path = Path::default();
    for &place in &x {
        path.line_to(plot.x.at(place), of_runs(place, 0.0, f64::max));
    }
    for &place in x.iter().rev() {
        path.line_to(plot.x.at(place), of_runs(place, f64::INFINITY, f64::min));
    }
    path.close();
    html! { path .band .(d.setting.class) d=(path.data()) {} }
}

/// Draws names and the largest latencies at the ends of lines.
fn ends(plot: &Plot, distributions: &[Distribution<'_>], label: impl Fn(&Distribution<'_>) -> String) -> Markup {
    let (_, top, right, bottom) = plot.inner();
    let (_, end) = plot.x.domain();
    let wanted: Vec<f64> = distributions.iter().map(|d| plot.y.at(d.all.max_ns() as f64)).collect();
    let placed = spread(&wanted, 15.0, top, bottom);
    html! {
        @for ((d, &from), &to) in distributions.iter().zip(&wanted).zip(&placed) {
            @let last = plot.x.at((d.all.count() as f64).log10().clamp(0.0, end));
            g .(d.setting.class) {
                @if (from - to).abs() > 1.0 || right - last > 1.0 {
                    line .leader x1=(px(last)) y1=(px(from)) x2=(px(right + 6.0)) y2=(px(to)) {}
                }
                text .coloured x=(px(right + 8.0)) y=(px(to)) dy=".35em" { (label(d)) }
            }
        }
    }
}

fn table(distributions: &[Distribution<'_>]) -> Markup {
    let most = distributions.iter().map(|d| d.all.count()).max().unwrap_or(1);
    // Quantiles that fewer than one I/O exceeds are equal to the maximum, so they are not listed.
    let listed: Vec<(&str, f64)> = QUANTILES.into_iter().filter(|(_, q)| nines(*q) <= (most as f64).log10()).collect();
    super::parts::as_table(&html! {
        table {
            thead {
                tr {
                    th scope="col" { "Setting" }
                    th scope="col" .number { "I/Os" }
                    @for (label, _) in &listed { th scope="col" .number { (label) } }
                    th scope="col" .number { "worst" }
                }
            }
            tbody {
                @for d in distributions {
                    tr {
                        th scope="row" { (name(d.setting)) }
                        td .number { (grouped(d.all.count())) }
                        @for &(_, q) in &listed { td .number { (time(d.all.quantile_ns(q) as f64, 2)) } }
                        td .number { (time(d.all.max_ns() as f64, 2)) }
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_axis_is_labelled_up_to_99_99() {
        let labels: Vec<String> = percentiles(4.2).into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["0", "50", "90", "99", "99.9", "99.99"]);
    }
}
