//! A figure of a short run, request by request: requests in the device, waiting requests,
//! positions, and the times at which the scheduler idles. It is a self-contained SVG file.

use iosched_sim::{Service, ServiceLog};
use maud::{Markup, html};

use super::svg::{Margin, Path, Plot, px, shorten};
use super::units::{SECTOR, bytes_unit, linear_ticks, time_ticks};

const WIDTH: f64 = 960.0;
const MARGIN: Margin = Margin { top: 48.0, right: 104.0, bottom: 26.0, left: 116.0 };
const LANE: f64 = 30.0;
/// Height of the plot of positions, and the space above the plot, pixels.
const POSITIONS: f64 = 150.0;
const GAP: f64 = 22.0;
/// Position and height of bars within a lane, pixels: the bar of requests in the device, and below
/// it the bar of waiting requests.
const BAR: (f64, f64) = (5.0, 14.0);
const WAITING: (f64, f64) = (21.0, 4.0);

/// Style and colours of a self-contained figure.
const STYLE: &str = "
svg { --paper: #fff; --ink: #1c1c1e; --quiet: #63666b; --grid: #e8e9eb; --c0: #0069b4; --c1: #c64a00; --c2: #00805a; --c3: #a0448f;
  --c4: #8f6a00; --c5: #3b3f9e; --c6: #8a3b2f; --c7: #4d5560; background: var(--paper);
  font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, sans-serif }
@media (prefers-color-scheme: dark) { svg { --paper: #16181b; --ink: #e7e8ea; --quiet: #a0a4aa; --grid: #2a2d31; --c0: #5fb2f2;
  --c1: #ff9257; --c2: #3fc995; --c3: #e291d0; --c4: #ddb838; --c5: #a3a8ff; --c6: #e08d7e; --c7: #b9c0c9 } }
.s0 { --c: var(--c0) } .s1 { --c: var(--c1) } .s2 { --c: var(--c2) } .s3 { --c: var(--c3) }
.s4 { --c: var(--c4) } .s5 { --c: var(--c5) } .s6 { --c: var(--c6) } .s7 { --c: var(--c7) }
.paper { fill: var(--paper) } text { fill: var(--ink); font-variant-numeric: tabular-nums }
.title { font-size: 15px; font-weight: 600 } .tick { fill: var(--quiet) } .own { fill: var(--c); font-weight: 600 }
.grid { stroke: var(--grid) } .axis { stroke: var(--quiet) } .solid { fill: var(--c); fill-opacity: .8 } .waits { fill: var(--c); fill-opacity: .35 }
.held { fill: var(--quiet); fill-opacity: .22 } .travel { fill: none; stroke: var(--quiet); stroke-opacity: .45; stroke-width: .7 }
.dots { stroke: var(--c); stroke-width: 4; stroke-linecap: round; fill: none }
";

/// Content of the figure of service times.
#[derive(Clone, Copy, Debug)]
pub struct ServiceFigure<'a> {
    /// Log of the run.
    pub log: &'a ServiceLog,
    /// Title above the figure.
    pub title: &'a str,
    /// Line of smaller text below the title. A long text is shortened.
    pub about: &'a str,
    /// Shown time range, ns since the run's start.
    pub window_ns: (u64, u64),
    /// Highest shown position, sectors.
    pub sectors: u64,
}

impl ServiceFigure<'_> {
    /// Returns the figure as an SVG document. The same run gives the same bytes.
    #[must_use]
    pub fn svg(&self) -> String {
        let lanes = self.log.names().len();
        let lanes_end = MARGIN.top + lanes as f64 * LANE;
        let size = (WIDTH, lanes_end + GAP + POSITIONS + MARGIN.bottom);
        let (from_ns, to_ns) = self.window_ns;
        let unit = bytes_unit(self.sectors as f64 * SECTOR);
        let margin = Margin { top: lanes_end + GAP, ..MARGIN };
        let (across, up) = ((from_ns as f64, to_ns as f64), (0.0, self.sectors as f64 * SECTOR));
        let plot = Plot::linear(size, margin, across, up);
        let body = html! {
            rect .paper width=(px(size.0)) height=(px(size.1)) {}
            text .title x="12" y="20" { (self.title) }
            text .tick x="12" y="38" { (shorten(self.about, 12.0, WIDTH - 120.0)) }
            text .tick x=(px(WIDTH - 12.0)) y="38" text-anchor="end" { "served" }
            (self.held_back(&plot, lanes_end))
            @for (task, name) in self.log.names().iter().enumerate() { (self.lane(&plot, task, name)) }
            (plot.y_axis(&linear_ticks(0.0, up.1, 4, unit), unit.0))
            (self.positions(&plot))
            (plot.x_axis(&time_ticks(across.0, across.1, 6), false))
        };
        let svg = html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (px(size.0)) " " (px(size.1)) } role="img" {
                title { (self.title) }
                style { (maud::PreEscaped(STYLE)) }
                (body)
            }
        };
        svg.into_string()
    }

    fn requests(&self, task: usize) -> impl Iterator<Item = &Service> {
        self.log.requests().filter(move |request| request.task == task)
    }

    /// Returns the parts of spans within the window. Joins spans if the gap between them would be
    /// invisible.
    fn shown(&self, plot: &Plot, spans: impl Iterator<Item = (u64, u64)>) -> Vec<(f64, f64)> {
        let (from_ns, to_ns) = self.window_ns;
        let mut spans: Vec<_> = spans.filter(|&(from, to)| to >= from_ns && from < to_ns).collect();
        spans.sort_unstable();
        let mut joined: Vec<(f64, f64)> = Vec::new();
        for (from, to) in spans {
            let (left, right) = (plot.x.at(from as f64), plot.x.at(to as f64));
            match joined.last_mut() {
                Some(last) if left <= last.1 + 0.2 => last.1 = last.1.max(right),
                _ => joined.push((left, right)),
            }
        }
        joined
    }

    fn lane(&self, plot: &Plot, task: usize, name: &str) -> Markup {
        let top = MARGIN.top + task as f64 * LANE;
        let (left, _, right, _) = plot.inner();
        let (mut serving, mut waiting) = (Path::default(), Path::default());
        let served = self.requests(task).filter_map(|r| Some((r.dispatched_ns?, r.completed_ns.unwrap_or(u64::MAX))));
        for (left, right) in self.shown(plot, served) {
            serving.bar(left, top + BAR.0, (right - left).max(0.4), BAR.1);
        }
        let waits = self.requests(task).map(|r| (r.submitted_ns, r.dispatched_ns.unwrap_or(u64::MAX)));
        for (left, right) in self.shown(plot, waits.filter(|(from, to)| from < to)) {
            waiting.bar(left, top + WAITING.0, (right - left).max(0.4), WAITING.1);
        }
        html! {
            g .{ "s" (task % 8) } {
                line .grid x1=(px(left)) x2=(px(right)) y1=(px(top + LANE)) y2=(px(top + LANE)) {}
                text .coloured x=(px(left - 8.0)) y=(px(top + 17.0)) text-anchor="end" { (shorten(name, 12.0, left - 16.0)) }
                path .solid d=(serving.data()) {}
                path .waits d=(waiting.data()) {}
                text x=(px(WIDTH - 12.0)) y=(px(top + 17.0)) text-anchor="end" { (self.rate(task)) }
            }
        }
    }

    /// Returns the throughput of a task in the window.
    fn rate(&self, task: usize) -> String {
        let (from_ns, to_ns) = self.window_ns;
        let done = self.requests(task).filter(|r| r.completed_ns.is_some_and(|at| (from_ns..to_ns).contains(&at)));
        let bytes = done.map(|r| u64::from(r.nr_sectors)).sum::<u64>() as f64 * SECTOR;
        let megabytes = bytes / ((to_ns - from_ns) as f64 / 1e9) / 1e6;
        format!("{megabytes:.*} MB/s", usize::from(megabytes < 10.0))
    }

    fn held_back(&self, plot: &Plot, lanes_end: f64) -> Markup {
        let mut waiting_path = Path::default();
        for (left, right) in self.shown(plot, self.log.waits().iter().map(|wait| (wait.from_ns, wait.to_ns))) {
            waiting_path.bar(left, MARGIN.top, (right - left).max(0.4), lanes_end - MARGIN.top);
        }
        html! { path .held d=(waiting_path.data()) {} }
    }

    fn positions(&self, plot: &Plot) -> Markup {
        let (from_ns, to_ns) = self.window_ns;
        let mut sent: Vec<(u64, &Service)> = self
            .log
            .requests()
            .filter_map(|r| Some((r.dispatched_ns?, r)))
            .filter(|(at, _)| (from_ns..to_ns).contains(at))
            .collect();
        sent.sort_by_key(|&(at, request)| (at, request.submitted_ns));
        let mut travel = Path::default();
        let mut dots = vec![Path::default(); self.log.names().len()];
        for (at, request) in sent {
            let (x, y) = (plot.x.at(at as f64), plot.y.at(request.sector as f64 * SECTOR));
            travel.line_to(x, y);
            let path = &mut dots[request.task];
            path.move_to(x, y);
            path.across(x);
        }
        html! {
            path .travel d=(travel.data()) {}
            @for (task, path) in dots.iter().enumerate() { path .dots .{ "s" (task % 8) } d=(path.data()) {} }
        }
    }
}
