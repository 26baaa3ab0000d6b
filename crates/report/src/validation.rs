//! The page of a validation: the measured and the simulated distribution, and their differences.

use iosched::Op;
use iosched_lab::validate::{Closeness, Served, Validation};
use iosched_lab::{Decimals, grouped};
use maud::{Markup, html};

use super::chart::{Axis, Chart, Draw, Quantity, Series};
use super::parts;
use super::parts::{section, unbroken};
use super::svg::{Margin, Path, Picture, Plot, Tick, nice_end, px, ticks};

const SIZE: (f64, f64) = (500.0, 300.0);
/// Number of points of a line.
const POINTS: usize = 200;
const MARGIN: Margin = Margin { top: 24.0, right: 14.0, bottom: 40.0, left: 44.0 };

/// Returns the page as HTML.
pub(crate) fn document(validation: &Validation) -> Markup {
    let title = format!("{} against {}", last_part(&validation.device), last_part(&validation.trace));
    let overall = validation.overall();
    let body = html! {
        header {
            h1 { (title) }
            p .lead { (unbroken(&overall.decision())) }
        }
        (section("compared", "What was compared", &compared(validation)))
        (section("distributions", "Response times", &distributions(validation)))
        (section("kinds", "By kind of request", &kinds(validation, &overall)))
    };
    parts::document(env!("CARGO_PKG_VERSION"), &title, &body)
}

/// Returns the last part of a path.
fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn ms(value: f64) -> String {
    Decimals(3).show(value)
}

fn compared(validation: &Validation) -> Markup {
    let reads = validation.served.iter().filter(|served| served.service.op == Op::Read).count();
    html! {
        dl .facts {
            dt { "Trace" }
            dd {
                (validation.trace) ", " (grouped(validation.served.len() as u64)) " requests, "
                (grouped(reads as u64)) " of them reads"
            }
            dt { "Model" } dd { (validation.device) ", " (validation.about) }
            dt { "Seed" } dd { (validation.seed) }
        }
        p .legend {
            "The real disk got the requests one at a time. The model gets the same requests. After each \
             completion, the model waits for the recorded time before the next request. The position of the \
             platters is unknown. Therefore \
             iosched compares the distributions rank by rank, not single requests."
        }
    }
}

type Choice = fn(&Served) -> bool;

fn distributions(validation: &Validation) -> Markup {
    let parts: [(&str, &str, Choice); 4] = [
        ("all", "All requests", |_| true),
        ("reads", "Reads", |served| served.service.op == Op::Read),
        ("writes", "Writes", |served| served.service.op != Op::Read),
        ("medium", "Reads that the model served from the medium", |served| {
            served.service.op == Op::Read && served.from_medium == Some(true)
        }),
    ];
    let drawn = parts.iter().filter_map(|&(id, title, is_in)| {
        let (measured, simulated) = validation.sorted_ns(is_in);
        (!measured.is_empty()).then(|| figure(id, title, &measured, &simulated))
    });
    html! {
        p .legend {
            "The upper plot shows the distribution of response times: " span .s0 { span .coloured-name { "measured" } } ", "
            span .s1 { span .coloured-name { "simulated" } } ". Both lists of response times are sorted. The lower plot subtracts the measured from the simulated \
            time at each position: above zero, the simulation is slower. A line at the edge means that the \
            difference is larger than the plot."
        }
        div .pair { @for figure in drawn { (figure) } }
    }
}

fn figure(id: &str, title: &str, measured: &[u64], simulated: &[u64]) -> Markup {
    html! {
        figure {
            figcaption { (title) }
            (curves(id, title, measured, simulated))
            (differences(id, title, measured, simulated))
        }
    }
}

/// Returns the drawn ranks, as shares of all ranks, with their values in ms.
fn points(sorted: &[u64]) -> impl Iterator<Item = (f64, f64)> {
    ranks(sorted).map(|(share, ns)| (share, ns as f64 / 1e6))
}

/// Returns the drawn ranks, as shares of all ranks, with their values in ns.
fn ranks(sorted: &[u64]) -> impl Iterator<Item = (f64, u64)> {
    let last = sorted.len() - 1;
    let count = POINTS.min(sorted.len());
    (0..count).map(move |i| {
        let rank = if count == 1 { last } else { i * last / (count - 1) };
        ((rank + 1) as f64 / sorted.len() as f64, sorted[rank])
    })
}

fn marks(low: f64, high: f64, wanted: usize) -> Vec<Tick> {
    let (values, decimals) = ticks(low, high, wanted);
    values.into_iter().map(|at| Tick { at, label: format!("{at:.decimals$}") }).collect()
}

fn shares() -> Vec<Tick> {
    [0.0, 0.25, 0.5, 0.75, 1.0].map(|at| Tick { at, label: format!("{:.0}", at * 100.0) }).to_vec()
}

fn curves(id: &str, title: &str, measured: &[u64], simulated: &[u64]) -> Markup {
    let longest = measured.last().max(simulated.last()).map_or(1.0, |&ns| ns as f64 / 1e6);
    let end = nice_end(longest, 6);
    let plot = Plot::linear(SIZE, MARGIN, (0.0, end), (0.0, 1.0));
    let line = |sorted: &[u64]| {
        let mut path = Path::default();
        points(sorted).for_each(|(share, ms)| path.line_to(plot.x.at(ms), plot.y.at(share)));
        path
    };
    let (left, _, _, bottom) = plot.inner();
    let body = html! {
        (plot.y_axis(&shares(), "per cent"))
        (plot.x_axis(&marks(0.0, end, 6), true))
        text .tick x=(px(left)) y=(px(bottom + 34.0)) { "response time, ms" }
        path .line.s0 d=(line(measured).data()) {}
        path .line.thin.s1 d=(line(simulated).data()) {}
    };
    let about = format!("measured median {} ms, simulated {} ms", middle(measured), middle(simulated));
    // Each line has values at the positions of both lines.
    let mut places: Vec<u64> =
        [measured, simulated].into_iter().flat_map(|sorted| ranks(sorted).map(|(_, ns)| ns)).collect();
    places.sort_unstable();
    places.dedup();
    let share = |sorted: &[u64], ns: u64| sorted.partition_point(|&place| place <= ns) as f64 / sorted.len() as f64;
    let series =
        [("measured", measured), ("simulated", simulated)].into_iter().enumerate().map(|(number, (name, sorted))| {
            Series::plain(number, name, Draw::Line, places.iter().map(|&ns| share(sorted, ns)))
        });
    let times = Axis::linear(Quantity::Time, (0.0, end * 1e6)).named("response time");
    let axes = (times, Axis::linear(Quantity::Share, (0.0, 1.0)));
    let chart = Chart::plain(axes, places.iter().map(|&ns| ns as f64), series.collect());
    let (id, title) = (format!("curves-{id}"), title.to_owned());
    Picture { id, size: SIZE, title, about, body, chart: Some(chart) }.html()
}

fn middle(sorted: &[u64]) -> String {
    ms(sorted[sorted.len() / 2] as f64 / 1e6)
}

fn differences(id: &str, title: &str, measured: &[u64], simulated: &[u64]) -> Markup {
    const SIZE: (f64, f64) = (500.0, 170.0);
    let by_rank: Vec<(f64, f64)> = points(measured)
        .zip(points(simulated))
        .map(|((share, measured), (_, simulated))| (share, simulated - measured))
        .collect();
    let mut apart: Vec<f64> = by_rank.iter().map(|(_, ms)| ms.abs()).collect();
    apart.sort_by(f64::total_cmp);
    // The scale leaves out the few largest differences, because all other differences would look
    // equal.
    let reach = nice_end(apart[(apart.len() - 1) * 98 / 100].max(0.01), 2);
    let plot = Plot::linear(SIZE, MARGIN, (0.0, 1.0), (-reach, reach));
    let mut path = Path::default();
    by_rank.iter().for_each(|&(share, ms)| path.line_to(plot.x.at(share), plot.y.at(ms.clamp(-reach, reach))));
    let (left, _, right, bottom) = plot.inner();
    let zero = px(plot.y.at(0.0));
    let body = html! {
        (plot.y_axis(&marks(-reach, reach, 4), "ms"))
        (plot.x_axis(&shares(), true))
        line .zero x1=(px(left)) x2=(px(right)) y1=(zero) y2=(zero) {}
        text .tick x=(px(left)) y=(px(bottom + 34.0)) { "rank, percent" }
        path .line.thin.s1 d=(path.data()) {}
    };
    let ranks = Axis::linear(Quantity::Share, (0.0, 1.0)).named("rank");
    let axes = (ranks, Axis::linear(Quantity::Time, (-reach * 1e6, reach * 1e6)));
    let longer = Series::plain(1, "simulated minus measured", Draw::Line, by_rank.iter().map(|(_, ms)| ms * 1e6));
    let chart = Chart::plain(axes, by_rank.iter().map(|(share, _)| *share), vec![longer]);
    let (id, title) = (format!("differences-{id}"), title.to_owned());
    let about = "simulated minus measured time, by rank".to_owned();
    Picture { id, size: SIZE, title, about, body, chart: Some(chart) }.html()
}

fn kinds(validation: &Validation, overall: &Closeness) -> Markup {
    let kinds = validation.kinds();
    let rows = std::iter::once(("all", overall)).chain(kinds.iter().map(|kind| (kind.name.as_str(), &kind.closeness)));
    html! {
        p .legend {
            "For both columns, the model decides whether a request is served from the cache or from the medium. \
             If the real disk served requests differently, the error of the row is large."
        }
        div .scroll tabindex="0" {
            table .figures.many {
                thead {
                    tr {
                        th { "requests" }
                        th .number { "number" }
                        th .number { "distance, ms" }
                        th .number { "measured mean, ms" }
                        th .number { "simulated, ms" }
                        @for pair in &overall.quantiles {
                            th .number { "p" (pair.quantile * 100.0) " measured, ms" }
                            th .number { "simulated, ms" }
                        }
                    }
                }
                tbody {
                    @for (name, closeness) in rows {
                        tr {
                            th { (name.replace("  ", "\u{2003}")) }
                            td .number { (grouped(closeness.requests as u64)) }
                            td .number { (ms(closeness.rms_ms)) }
                            td .number { (ms(closeness.measured_mean_ms)) }
                            td .number { (ms(closeness.mean_ms)) }
                            @for pair in &closeness.quantiles {
                                td .number { (ms(pair.measured_ms)) }
                                td .number { (ms(pair.simulated_ms)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
