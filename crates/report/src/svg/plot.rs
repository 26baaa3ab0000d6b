//! A frame with two axes.

use iosched_lab::Direction;
use maud::{Markup, html};

use super::{Scale, px, width_of};
use crate::chart::good;

/// Size of text, pixels. The style sheet has the same size.
pub(crate) const TEXT: f64 = 12.0;

/// Space around the plot area, pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Margin {
    /// Space above, pixels.
    pub(crate) top: f64,
    /// Space to the right, pixels.
    pub(crate) right: f64,
    /// Space below, pixels.
    pub(crate) bottom: f64,
    /// Space to the left, pixels.
    pub(crate) left: f64,
}

/// A mark on an axis.
#[derive(Clone, Debug)]
pub(crate) struct Tick {
    /// Value of the mark.
    pub(crate) at: f64,
    /// Text of the mark.
    pub(crate) label: String,
}

/// A frame with its size and its scales.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plot {
    /// Total width and height, pixels.
    pub(crate) size: (f64, f64),
    /// Space around the plot area.
    pub(crate) margin: Margin,
    /// Scale from left to right.
    pub(crate) x: Scale,
    /// Scale from bottom to top.
    pub(crate) y: Scale,
}

impl Plot {
    /// Creates a frame with linear scales.
    pub(crate) fn linear(size: (f64, f64), margin: Margin, x: (f64, f64), y: (f64, f64)) -> Self {
        let (across, up) = ranges(size, margin);
        Self { size, margin, x: Scale::linear(x, across), y: Scale::linear(y, up) }
    }

    /// Creates a frame with a logarithmic vertical scale.
    pub(crate) fn log(size: (f64, f64), margin: Margin, x: (f64, f64), y: (f64, f64)) -> Self {
        let (across, up) = ranges(size, margin);
        Self { size, margin, x: Scale::linear(x, across), y: Scale::log(y, up) }
    }

    /// Returns left, top, right and bottom of the plot area.
    pub(crate) fn inner(&self) -> (f64, f64, f64, f64) {
        let Margin { top, right, bottom, left } = self.margin;
        (left, top, self.size.0 - right, self.size.1 - bottom)
    }

    /// Returns horizontal lines at `ticks` with labels to their left, and the unit above them.
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

    /// Returns the note above the plot area that names the better direction.
    pub(crate) fn good(&self, direction: Direction) -> Markup {
        let (left, top, ..) = self.inner();
        html! { text .good x=(px(left)) y=(px(top - 10.0)) { (good(direction)) } }
    }

    /// Returns the line below the plot, with marks and labels at `ticks`. With `grid`, the marks
    /// are lines over the whole height. A label that would overlap the previous label is left out.
    /// Labels at the ends stay within the picture.
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
