//! A frame with two axes.

use iosched_lab::Direction;
use maud::{Markup, html};

use super::{Scale, px, width_of};
use crate::chart::good;

/// Size of text, pixels; as in the style sheet.
pub(crate) const TEXT: f64 = 12.0;

/// Space around what is plotted, pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Margin {
    /// Above.
    pub(crate) top: f64,
    /// To the right.
    pub(crate) right: f64,
    /// Below.
    pub(crate) bottom: f64,
    /// To the left.
    pub(crate) left: f64,
}

/// A value that is marked on an axis.
#[derive(Clone, Debug)]
pub(crate) struct Tick {
    /// The value.
    pub(crate) at: f64,
    /// How it is written.
    pub(crate) label: String,
}

/// A frame: its size and its scales.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plot {
    /// Width and height altogether, pixels.
    pub(crate) size: (f64, f64),
    /// Space around.
    pub(crate) margin: Margin,
    /// Left to right.
    pub(crate) x: Scale,
    /// Bottom to top.
    pub(crate) y: Scale,
}

impl Plot {
    /// A frame with linear scales.
    pub(crate) fn linear(size: (f64, f64), margin: Margin, x: (f64, f64), y: (f64, f64)) -> Self {
        let (across, up) = ranges(size, margin);
        Self { size, margin, x: Scale::linear(x, across), y: Scale::linear(y, up) }
    }

    /// A frame with a logarithmic upward scale.
    pub(crate) fn log(size: (f64, f64), margin: Margin, x: (f64, f64), y: (f64, f64)) -> Self {
        let (across, up) = ranges(size, margin);
        Self { size, margin, x: Scale::linear(x, across), y: Scale::log(y, up) }
    }

    /// Left, top, right and bottom of what is plotted.
    pub(crate) fn inner(&self) -> (f64, f64, f64, f64) {
        let Margin { top, right, bottom, left } = self.margin;
        (left, top, self.size.0 - right, self.size.1 - bottom)
    }

    /// Lines across at `ticks` with labels to their left, and the unit above them.
    pub(crate) fn y_axis(&self, ticks: &[Tick], unit: &str) -> Markup {
        let (left, top, right, _) = self.inner();
        html! {
            @for tick in ticks {
                @let y = px(self.y.at(tick.at));
                line .grid x1=(px(left)) x2=(px(right)) y1=(y) y2=(y) {}
                text .tick x=(px(left - 5.0)) y=(y) dy=".35em" text-anchor="end" { (tick.label) }
            }
            @if !unit.is_empty() {
                text .tick x=(px(left - 5.0)) y=(px(top - 10.0)) text-anchor="end" { (unit) }
            }
        }
    }

    /// Which side is good, above what is plotted.
    pub(crate) fn good(&self, direction: Direction) -> Markup {
        let (left, top, ..) = self.inner();
        html! { text .good x=(px(left)) y=(px(top - 10.0)) { (good(direction)) } }
    }

    /// The line below, marks at `ticks` with labels; with `grid`, lines all the way up. Labels that would collide with
    /// the one before are left out, and those at the ends stay within the picture.
    pub(crate) fn x_axis(&self, ticks: &[Tick], grid: bool) -> Markup {
        let (left, top, right, bottom) = self.inner();
        let mut free_from = f64::NEG_INFINITY;
        let labels: Vec<Option<f64>> = ticks
            .iter()
            .map(|tick| {
                let half = width_of(&tick.label, TEXT) / 2.0;
                let x = self.x.at(tick.at).min(self.size.0 - half - 1.0).max(half + 1.0);
                let fits = x - half >= free_from;
                if fits {
                    free_from = x + half + 4.0;
                }
                fits.then_some(x)
            })
            .collect();
        html! {
            @for (tick, label) in ticks.iter().zip(labels) {
                @let x = px(self.x.at(tick.at));
                line .(if grid { "grid" } else { "axis" }) x1=(x) x2=(x)
                    y1=(px(if grid { top } else { bottom })) y2=(px(bottom + 4.0)) {}
                @if let Some(at) = label {
                    text .tick x=(px(at)) y=(px(bottom + 17.0)) text-anchor="middle" { (tick.label) }
                }
            }
            line .axis x1=(px(left)) x2=(px(right)) y1=(px(bottom)) y2=(px(bottom)) {}
        }
    }
}

fn ranges(size: (f64, f64), margin: Margin) -> ((f64, f64), (f64, f64)) {
    ((margin.left, size.0 - margin.right), (size.1 - margin.bottom, margin.top))
}
