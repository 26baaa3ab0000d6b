//! Turns of the scheduler's queues: a detailed view of a time window, and sums over the whole run.

use iosched_lab::{grouped, listed};
use iosched_sim::Timeline;
use maud::{Markup, html};

use super::parts::{Shown, name, no_timelines};
use super::svg::{Margin, Path, Picture, Plot, px, shorten};
use super::turns::{Queue, Total, Turns, Wait};
use super::units::{counted, percent, time, time_ticks};
use super::view::{Setting, View, process};

const WIDTH: f64 = 1044.0;
const LANE: f64 = 22.0;
const LANES_MAX: usize = 14;
const ROWS_MAX: usize = 16;
const LABEL: f64 = 170.0;
/// Desired minimum and maximum number of turns in a window.
const TURNS: (usize, usize) = (24, 120);

pub(crate) fn section(view: &View<'_>) -> Markup {
    let timelines = view.timelines();
    if timelines.is_empty() {
        return no_timelines();
    }
    let turns: Vec<(&Setting<'_>, &Timeline, Turns)> =
        timelines.into_iter().map(|(setting, timeline)| (setting, timeline, Turns::of(timeline))).collect();
    let (with, without): (Vec<_>, Vec<_>) = turns.iter().partition(|(.., turns)| !turns.turns.is_empty());
    html! {
        @if !with.is_empty() {
            p .legend {
                "First run. Each bar is the turn of a process (light: its async requests). In a \
                 turn, the scheduler sends only requests of this process; the device may still \
                 serve earlier requests. Marks show where the device waited for the next request \
                 of the process: "
                (key("idle-paid", with[0].0)) " the request arrived in time, " (key("idle-vain", with[0].0)) " no request arrived in time"
                @if with.iter().any(|(.., turns)| turns.waits.iter().any(|wait| wait.preempted)) {
                    ", " (key("idle-cut", with[0].0)) " another queue ended the wait"
                }
                ". "
                (key("preempt", with[0].0)) " marks a queue that preempted another queue."
            }
        }
        @for (setting, timeline, turns) in &with { (one(view, setting, timeline, turns)) }
        @if !without.is_empty() {
            p .quiet {
                (listed(&without.iter().map(|(setting, ..)| setting.label.to_owned()).collect::<Vec<_>>(), "and"))
                @if without.len() == 1 { " gives" } @else { " give" }
                " processes no turns, so this plot is empty."
            }
        }
    }
}

/// Returns a sample of a mark for the legend.
fn key(class: &str, setting: &Setting<'_>) -> Markup {
    html! {
        svg .swatch .(setting.class) viewBox="0 0 10 10" aria-hidden="true" {
            @if class == "preempt" { path .preempt d="M1 1H9L5 9Z" {} } @else { rect .(class) y="2.5" width="10" height="5" {} }
        }
    }
}

/// Returns the name of a queue.
fn queue_name(view: &View<'_>, setting: &Setting<'_>, (pid, sync): Queue) -> String {
    let task = view.tasks(setting.number).iter().find(|task| task.pid == pid);
    let process = process(task.map_or("", |task| &task.name), pid);
    if sync { process } else { format!("{process}, async") }
}

/// Returns a plot of each setting whose scheduler has turns.
pub(crate) fn pictures<'a>(view: &View<'a>) -> Vec<Shown<'a>> {
    let turns = view.timelines().into_iter().map(|(setting, timeline)| (setting, Turns::of(timeline)));
    turns
        .filter_map(|(setting, turns)| {
            let (_, window) = window(view, setting, &turns);
            (!lanes_of(&turns, window).is_empty()).then(|| Shown::of(setting, plot(view, setting, &turns, window)))
        })
        .collect()
}

/// Returns the end of the run and the window to draw, ns.
fn window(view: &View<'_>, setting: &Setting<'_>, turns: &Turns) -> (u64, (u64, u64)) {
    let end_ns = view.finished_ns(setting.number).max(turns.end_ns());
    (end_ns, turns.window(end_ns, TURNS.0, TURNS.1))
}

fn one(view: &View<'_>, setting: &Setting<'_>, timeline: &Timeline, turns: &Turns) -> Markup {
    let (end_ns, window) = window(view, setting, turns);
    let is_full_length = window == (0, end_ns.max(1));
    html! {
        figure .wide .lanes .(setting.class) data-setting=(setting.number) {
            figcaption {
                (name(setting))
                @if is_full_length { ", the whole run" } @else {
                    ", " (time((window.1 - window.0) as f64, 2)) " of " (time(end_ns as f64, 3)) ": the busiest, from "
                    (time(window.0 as f64, 4)) " on"
                }
            }
            (summary(turns, end_ns))
            @if !lanes_of(turns, window).is_empty() {
                div .scroll tabindex="0" { (plot(view, setting, turns, window).html()) }
            }
            div .scroll tabindex="0" { (table(view, setting, turns, end_ns)) }
            @if timeline.spans_shorter_dropped_ns > 0 {
                p .legend {
                    "The run has more turns than a timeline can hold. Turns and waits "
                    @match timeline.spans_shorter_dropped_ns {
                        1 => "that ended when they began",
                        shorter => { "shorter than " (time(shorter as f64, 2)) },
                    }
                    ", and some of the preemptions, are "
                    @if turns.sums_are_whole() { "not in the plot. The sums include them." } @else { "\
                        neither in the plot nor in the sums." }
                }
            }
        }
    }
}

/// Returns a sentence about the whole run.
fn summary(turns: &Turns, end_ns: u64) -> Markup {
    let sum = Total::sum(turns.totals().iter().map(|(_, total)| total));
    let share = |ns: u64| percent(ns as f64 / end_ns.max(1) as f64);
    html! {
        p .legend {
            "Whole run: " (counted(sum.turns, "turn", "turns")) ", "
            (counted(sum.preemptions, "preemption", "preemptions")) "; time spent idling: " (share(sum.paid_ns))
            "\u{a0}% until a request arrived, " (share(sum.vain_ns)) "\u{a0}% in vain"
            @if sum.preempted_ns > 0 { ", " (share(sum.preempted_ns)) "\u{a0}% until another queue took over" }
            "."
        }
    }
}

/// Returns the part of `from..to` within `window`, if any.
fn within(from: u64, to: u64, window: (u64, u64)) -> Option<(f64, f64)> {
    (from < window.1 && to >= window.0).then(|| (from.max(window.0) as f64, to.min(window.1) as f64))
}

/// Bars of one lane, by kind.
#[derive(Default)]
struct Lane {
    turns: Bars,
    paid: Bars,
    vain: Bars,
    cut: Bars,
    preemptions: Path,
}

/// Bars in one row. Bars that are too close to each other are joined.
#[derive(Default)]
struct Bars {
    path: Path,
    open: Option<(f64, f64)>,
    place: (f64, f64),
}

impl Bars {
    fn add(&mut self, left: f64, right: f64, top: f64, height: f64) {
        self.place = (top, height);
        match &mut self.open {
            // Narrow bars are joined. Wide bars keep a gap.
            Some((from, to)) if left - *to < 0.5 && (*to - *from < 2.0 || right - left < 2.0) => *to = to.max(right),
            _ => {
                self.flush();
                self.open = Some((left, right));
            }
        }
    }

    fn flush(&mut self) {
        if let Some((left, right)) = self.open.take() {
            let gap = if right - left > 2.0 { 0.5 } else { 0.0 };
            self.path.bar(left, self.place.0, (right - left - gap).max(0.7), self.place.1);
        }
    }

    fn data(&mut self) -> &str {
        self.flush();
        self.path.data()
    }
}

fn plot(view: &View<'_>, setting: &Setting<'_>, turns: &Turns, window: (u64, u64)) -> Picture {
    let queues = lanes_of(turns, window);
    let shown = queues.len().min(LANES_MAX);
    let lanes = shown + usize::from(queues.len() > shown);
    let margin = Margin { top: 6.0, right: 14.0, bottom: 26.0, left: LABEL };
    let size = (WIDTH, margin.top + lanes as f64 * LANE + margin.bottom);
    let plot = Plot::linear(size, margin, (window.0 as f64, window.1 as f64), (0.0, 1.0));
    // Queues without a separate lane share the last lane.
    let lane_of = |queue: Queue| queues.iter().position(|&known| known == queue).map(|at| at.min(lanes - 1));
    let mut drawn: Vec<Lane> = (0..lanes).map(|_| Lane::default()).collect();
    let top = |lane: usize| margin.top + lane as f64 * LANE;
    let bar = |bars: &mut Bars, lane: usize, (from, to): (f64, f64), inset: f64| {
        bars.add(plot.x.at(from), plot.x.at(to), top(lane) + inset, LANE - 2.0 * inset);
    };
    for turn in &turns.turns {
        if let (Some(lane), Some(part)) = (lane_of(turn.queue), within(turn.from_ns, turn.to_ns, window)) {
            bar(&mut drawn[lane].turns, lane, part, 3.0);
        }
    }
    for wait in turns.waits.iter().filter(|wait| wait.to_ns > wait.from_ns) {
        let lane = wait.queue.and_then(lane_of);
        if let (Some(lane), Some(part)) = (lane, within(wait.from_ns, wait.to_ns, window)) {
            let lane_paths = &mut drawn[lane];
            let bars = match wait {
                Wait { paid: true, .. } => &mut lane_paths.paid,
                Wait { preempted: true, .. } => &mut lane_paths.cut,
                _ => &mut lane_paths.vain,
            };
            bar(bars, lane, part, 8.0);
        }
    }
    for preemption in &turns.preemptions {
        let lane = lane_of((preemption.pid, true)).or_else(|| lane_of((preemption.pid, false)));
        if let (Some(lane), Some((at, _))) = (lane, within(preemption.at_ns, preemption.at_ns, window)) {
            let (x, y, path) = (plot.x.at(at), top(lane), &mut drawn[lane].preemptions);
            path.move_to(x - 4.0, y - 1.0);
            path.across(x + 4.0);
            path.line_to(x, y + 6.0);
            path.close();
        }
    }
    let label = |lane: usize| {
        if lane >= shown { format!("{} others", queues.len() - shown) } else { queue_name(view, setting, queues[lane]) }
    };
    let body = html! {
        @for (number, lane) in drawn.iter_mut().enumerate() {
            @let y = top(number) + LANE / 2.0;
            line .lane x1=(px(LABEL)) x2=(px(WIDTH - margin.right)) y1=(px(y)) y2=(px(y)) {}
            text x=(px(LABEL - 8.0)) y=(px(y)) dy=".35em" text-anchor="end" {
                (shorten(&label(number), 12.0, LABEL - 12.0))
                title { (label(number)) }
            }
            path .(if number < shown && !queues[number].1 { "turn-async" } else { "turn" }) d=(lane.turns.data()) {}
            path .idle-paid d=(lane.paid.data()) {}
            path .idle-vain d=(lane.vain.data()) {}
            @if !lane.cut.data().is_empty() { path .idle-cut d=(lane.cut.data()) {} }
            path .preempt d=(lane.preemptions.data()) {}
        }
        (plot.x_axis(&time_ticks(window.0 as f64, window.1 as f64, 10), false))
    };
    let title = format!("Turns of processes over time, {}", setting.label);
    let about = format!(
        "{} turns of {} queues from {} to {}; the table shows the sums of the whole run",
        turns.turns.iter().filter(|turn| within(turn.from_ns, turn.to_ns, window).is_some()).count(),
        queues.len(),
        time(window.0 as f64, 3),
        time(window.1 as f64, 3)
    );
    Picture { id: view.id(&format!("turns-{}", setting.number)), size, title, about, body, chart: None }
}

/// Returns the queues with a turn in the window. The queues that were active longest come first.
fn lanes_of(turns: &Turns, window: (u64, u64)) -> Vec<Queue> {
    let mut sums: Vec<(f64, Queue)> = Vec::new();
    for turn in &turns.turns {
        let Some((from, to)) = within(turn.from_ns, turn.to_ns, window) else { continue };
        match sums.iter_mut().find(|(_, queue)| *queue == turn.queue) {
            Some((sum, _)) => *sum += to - from,
            None => sums.push((to - from, turn.queue)),
        }
    }
    sums.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    sums.into_iter().map(|(_, queue)| queue).collect()
}

/// Returns the table of sums over the whole run.
fn table(view: &View<'_>, setting: &Setting<'_>, turns: &Turns, end_ns: u64) -> Markup {
    let totals = turns.totals();
    let shown = if totals.len() <= ROWS_MAX + 1 { totals.len() } else { ROWS_MAX };
    let sum = |totals: &[(Option<Queue>, Total)]| Total::sum(totals.iter().map(|(_, total)| total));
    let cut = totals.iter().any(|(_, total)| total.preempted_ns > 0);
    let name = |queue: Option<Queue>| {
        queue.map_or_else(|| "other queues".to_owned(), |queue| queue_name(view, setting, queue))
    };
    html! {
        table .totals {
            thead {
                tr {
                    th scope="col" { "Whole run" }
                    th scope="col" .number { "turns" }
                    th scope="col" .number { "active" }
                    th scope="col" .number { "of the run, %" }
                    th scope="col" .number { "mean turn" }
                    th scope="col" .number { "idling: success" }
                    th scope="col" .number { "idling: in vain" }
                    @if cut { th scope="col" .number { "idling: preempted" } }
                    th scope="col" .number { "preempted others" }
                }
            }
            tbody {
                @for (queue, total) in &totals[..shown] { (total_row(&name(*queue), total, end_ns, cut)) }
                @if shown < totals.len() {
                    (total_row(&format!("{} others", totals.len() - shown), &sum(&totals[shown..]), end_ns, cut))
                }
                @if totals.len() > 1 { (total_row("all", &sum(&totals), end_ns, cut)) }
            }
        }
    }
}

fn total_row(name: &str, total: &Total, end_ns: u64, cut: bool) -> Markup {
    html! {
        tr .sum[name == "all"] {
            th scope="row" { (name) }
            td .number { (grouped(total.turns)) }
            td .number { (time(total.active_ns as f64, 3)) }
            td .number { (percent(total.active_ns as f64 / end_ns.max(1) as f64)) }
            td .number { (time(total.active_ns as f64 / total.turns.max(1) as f64, 2)) }
            td .number { (time(total.paid_ns as f64, 2)) }
            td .number { (time(total.vain_ns as f64, 2)) }
            @if cut { td .number { (time(total.preempted_ns as f64, 2)) } }
            td .number { (grouped(total.preemptions)) }
        }
    }
}
