//! A small layer over SVG: paths, scales, frames with axes, labels that do not overlap.

mod label;
mod plot;
mod scale;

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use super::chart::Chart;

pub(crate) use label::{shorten, spread, width_of};
pub(crate) use plot::{Margin, Plot, Tick};
pub(crate) use scale::{Scale, log_ticks, nice_end, ticks};

/// Style sheet of pictures, for pages and for files with one picture.
pub(crate) const PICTURE_STYLE: &str = include_str!("../picture.css");

/// Formats a coordinate with a precision of a tenth of a pixel.
pub(crate) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Data of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path(String);

impl Path {
    fn put(&mut self, command: char, numbers: &[f64]) {
        self.0.push(command);
        for (i, &number) in numbers.iter().enumerate() {
            let _ = write!(self.0, "{}{}", if i == 0 { "" } else { " " }, px(number));
        }
    }

    /// Moves to a point without drawing.
    pub(crate) fn move_to(&mut self, x: f64, y: f64) {
        self.put('M', &[x, y]);
    }

    /// Draws a line to a point. The first call of a path only moves to the point.
    pub(crate) fn line_to(&mut self, x: f64, y: f64) {
        self.put(if self.0.is_empty() { 'M' } else { 'L' }, &[x, y]);
    }

    /// Draws a horizontal line.
    pub(crate) fn across(&mut self, x: f64) {
        self.put('H', &[x]);
    }

    /// Draws a vertical line.
    pub(crate) fn down(&mut self, y: f64) {
        self.put('V', &[y]);
    }

    /// Draws a line back to the start.
    pub(crate) fn close(&mut self) {
        self.0.push('Z');
    }

    /// Draws a bar.
    pub(crate) fn bar(&mut self, left: f64, top: f64, width: f64, height: f64) {
        self.move_to(left, top);
        self.across(left + width);
        self.down(top + height);
        self.across(left);
        self.close();
    }

    /// Returns the value of the attribute `d`.
    pub(crate) fn data(&self) -> &str {
        &self.0
    }
}

/// Draws the area between the steps `low` and the steps `high`. Step `i` is from `x[i]` to
/// `x[i + 1]`, so `x` has one more element than `low` and `high`.
pub(crate) fn steps_between(path: &mut Path, x: &[f64], low: &[f64], high: &[f64]) {
    let (Some(&first), Some(&start)) = (x.first(), high.first()) else { return };
    path.move_to(first, start);
    for (i, &y) in high.iter().enumerate() {
        if i > 0 && px(y) != px(high[i - 1]) {
            path.down(y);
        }
        // Neighbours of the same height become one line.
        if high.get(i + 1).is_none_or(|&next| px(next) != px(y)) {
            path.across(x[i + 1]);
        }
    }
    for (i, &y) in low.iter().enumerate().rev() {
        if low.get(i + 1).is_none_or(|&next| px(next) != px(y)) {
            path.down(y);
        }
        if i == 0 || px(low[i - 1]) != px(y) {
            path.across(x[i]);
        }
    }
    path.close();
}

/// A picture, with a text for users who cannot see it.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    /// Id of the picture, unique in the page. Links lead to it.
    pub(crate) id: String,
    /// Width and height, pixels.
    pub(crate) size: (f64, f64),
    /// Title of the picture.
    pub(crate) title: String,
    /// Description of the picture's content.
    pub(crate) about: String,
    /// Drawing.
    pub(crate) body: Markup,
    /// Data with which a script draws the picture again. `None` if no script can draw it.
    pub(crate) chart: Option<Chart>,
}

impl Picture {
    /// Returns the picture as a part of a page, with a link to it and the data for a script.
    pub(crate) fn html(&self) -> Markup {
        let Self { id, size: (width, height), title, about, body, chart } = self;
        html! {
            div .picture id=(id) {
                svg viewBox={ "0 0 " (px(*width)) " " (px(*height)) } role="img"
                    aria-labelledby={ (id) "-t " (id) "-d" } {
                    title id={ (id) "-t" } { (title) }
                    desc id={ (id) "-d" } { (about) }
                    (body)
                }
                a .place href={ "#" (id) } aria-label={ "Link to: " (title) } { "#" }
                @if let Some(chart) = chart {
                    script .chart type="application/json" { (PreEscaped(chart.json())) }
                }
            }
        }
    }
}

/// Returns a picture without data for a script, as a part of a page.
pub(crate) fn picture(id: &str, size: (f64, f64), title: &str, about: &str, body: &Markup) -> Markup {
    let (id, title, about, body) = (id.to_owned(), title.to_owned(), about.to_owned(), body.clone());
    Picture { id, size, title, about, body, chart: None }.html()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_have_at_most_one_decimal() {
        assert_eq!([px(1.0), px(1.04), px(-0.04), px(12.35)], ["1", "1", "0", "12.3"].map(str::to_owned));
    }

    #[test]
    fn adjacent_equal_steps_are_one_path_segment() {
        let mut path = Path::default();
        steps_between(&mut path, &[0.0, 1.0, 2.0, 3.0], &[9.0, 9.0, 9.0], &[5.0, 5.0, 4.0]);
        assert_eq!(path.data(), "M0 5H2V4H3V9H0Z");
    }
}
