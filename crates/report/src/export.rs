//! Plots as separate pictures, for papers and slides: a self-contained SVG document.
//!
//! Fonts and colours are constants in the document, because programs that insert SVG files into
//! papers support neither CSS variables nor a dark theme.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use super::parts::{STYLE, Shown};
use super::svg::{PICTURE_STYLE, px, width_of};
use super::view::{Setting, View};

/// Fonts of different systems with similar widths.
const FONTS: &str = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans Condensed', sans-serif";
/// Space around the plots, and between them, pixels.
const EDGE: f64 = 14.0;
const GAP: f64 = 24.0;
/// Height of a line of text, pixels.
const LINE: f64 = 20.0;

/// Plots of one device.
pub(crate) struct Part<'v, 'a> {
    pub(crate) view: &'v View<'a>,
    /// Whether the picture needs a key of the colours.
    pub(crate) needs_key: bool,
    pub(crate) shown: Vec<Shown<'a>>,
}

/// The drawn content so far, and its size.
#[derive(Default)]
struct Sheet {
    body: String,
    width: f64,
    y: f64,
}

impl Sheet {
    fn put(&mut self, markup: Markup) {
        self.body.push_str(&markup.into_string());
    }
}

/// Returns the document of all parts.
pub(crate) fn document(title: &str, parts: &[Part<'_, '_>]) -> String {
    let mut sheet = Sheet { y: EDGE, ..Sheet::default() };
    for part in parts {
        lay_out(&mut sheet, part);
    }
    let size = (sheet.width + EDGE, sheet.y - GAP + EDGE);
    let settings = parts.iter().map(|part| part.view.settings.len()).max().unwrap_or(0);
    let about: Vec<String> = parts
        .iter()
        .flat_map(|part| &part.shown)
        .map(|shown| format!("{}: {}", shown.picture.title, shown.picture.about))
        .collect();
    let (width, height) = (px(size.0), px(size.1));
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
            viewBox={ "0 0 " (width) " " (height) } role="img" {
            (PreEscaped(format!("<!-- Made by iosched {} -->", env!("CARGO_PKG_VERSION"))))
            title { (title) }
            desc { (about.join(". ")) }
            style { (PreEscaped(style(settings))) }
            rect .paper width=(width) height=(height) {}
            (PreEscaped(sheet.body))
        }
    };
    format!("{}\n", svg.into_string())
}

fn lay_out(sheet: &mut Sheet, part: &Part<'_, '_>) {
    if part.view.several {
        let y = sheet.y + 13.0;
        sheet.put(html! { text .device x=(px(EDGE)) y=(px(y)) { (part.view.device().name) } });
        sheet.y += LINE + 4.0;
    }
    if part.needs_key && part.view.settings.len() > 1 {
        key(sheet, &part.view.settings);
    }
    let columns = columns(&part.shown);
    for row in part.shown.chunks(columns) {
        let (mut x, mut height): (f64, f64) = (EDGE, 0.0);
        let captions = row.iter().any(|shown| shown.setting.is_some() || !shown.caption.is_empty());
        let top = sheet.y + if captions { LINE } else { 0.0 };
        for shown in row {
            let (left, caption) = (px(x), px(sheet.y + 12.0));
            let class = shown.setting.as_ref().map_or("", |setting| setting.class.as_str());
            sheet.put(html! {
                g class=[(!class.is_empty()).then_some(class)] {
                    @match &shown.setting {
                        Some(setting) => {
                            rect .solid-mark x=(left) y=(px(sheet.y + 3.0)) width="9" height="9" rx="1.5" {}
                            text .caption x=(px(x + 14.0)) y=(caption) { (setting.label) }
                        }
                        None => text .caption x=(left) y=(caption) { (shown.caption) },
                    }
                    g transform={ "translate(" (left) " " (px(top)) ")" } { (shown.picture.body) }
                }
            });
            x += shown.picture.size.0 + GAP;
            height = height.max(shown.picture.size.1);
        }
        sheet.width = sheet.width.max(x - GAP);
        sheet.y = top + height + GAP;
    }
}

/// Returns the number of plots in a row.
fn columns(shown: &[Shown<'_>]) -> usize {
    let widest = shown.iter().map(|shown| shown.picture.size.0).fold(0.0, f64::max);
    match (widest, shown.len()) {
        (700.0.., _) => 1,
        (400.0.., _) | (_, 2 | 4) => 2,
        (_, count) => count.clamp(1, 3),
    }
}

/// Draws the key of the colours, in lines of at most 1000 pixels.
fn key(sheet: &mut Sheet, settings: &[Setting<'_>]) {
    let mut x = EDGE;
    for setting in settings {
        let wide = 14.0 + width_of(setting.label, 12.0) * 1.1 + 18.0;
        if x + wide > 1000.0 && x > EDGE {
            x = EDGE;
            sheet.y += LINE;
        }
        let y = sheet.y;
        sheet.put(html! {
            g .(setting.class) {
                rect .solid-mark x=(px(x)) y=(px(y + 3.0)) width="9" height="9" rx="1.5" {}
                text .caption x=(px(x + 14.0)) y=(px(y + 12.0)) { (setting.label) }
            }
        });
        x += wide;
        sheet.width = sheet.width.max(x);
    }
    sheet.y += LINE + 6.0;
}

/// Returns the style of pictures. Constants of the light theme replace its variables. Rules in a
/// setting's colour are repeated for each setting.
fn style(settings: usize) -> String {
    let colours = light();
    let colour = |name: &str| colours.iter().find(|(known, _)| *known == name).map_or("#000", |(_, value)| value);
    let plain = |text: &str| {
        let mut text = text.to_owned();
        for (name, value) in &colours {
            text = text.replace(&format!("var(--{name})"), value);
        }
        text
    };
    let rules_of_export = format!(
        ".paper {{ fill: {} }} .solid-mark {{ fill: var(--c) }} .caption {{ font-weight: 600 }} \
         .device {{ font-size: 15px; font-weight: 600 }}",
        colour("paper")
    );
    let mut style = format!("text {{ font-family: {FONTS} }}\n");
    let without_comment = PICTURE_STYLE.split_once("*/").map_or(PICTURE_STYLE, |(_, rules)| rules);
    for rule in [without_comment, &rules_of_export].iter().flat_map(|rules| rules.split('}')) {
        let Some((selectors, declarations)) = rule.split_once('{') else { continue };
        let selectors: Vec<&str> = selectors.split(',').map(|one| one.trim().trim_start_matches("svg ")).collect();
        if !declarations.contains("var(--c)") {
            let _ = writeln!(style, "{} {{{}}}", selectors.join(", "), plain(declarations));
            continue;
        }
        for number in 0..settings.min(Setting::COLOURS) {
            let within = selectors.iter().flat_map(|one| [format!(".s{number} {one}"), format!("{one}.s{number}")]);
            let declarations = plain(&declarations.replace("var(--c)", colour(&format!("c{number}"))));
            let _ = writeln!(style, "{} {{{declarations}}}", within.collect::<Vec<_>>().join(", "));
        }
    }
    style
}

/// Returns the variables of the light theme, from the first rule of the style sheet of pages.
fn light() -> Vec<(&'static str, &'static str)> {
    let rule = STYLE.split_once(":root {").and_then(|(_, rest)| rest.split_once('}')).map_or("", |(rule, _)| rule);
    let variables = rule.split(';').filter_map(|one| one.trim().strip_prefix("--")?.split_once(':'));
    variables.map(|(name, value)| (name, value.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_style_has_fixed_colours() {
        let style = style(2);
        assert!(!style.contains("var(") && !style.contains("--") && !style.contains("@media"), "{style}");
        assert!(style.contains(".s0 .line, .line.s0 { fill: none; stroke: #0069b4;"), "{style}");
        assert!(style.contains(".s1 .line, .line.s1 { fill: none; stroke: #c64a00;") && !style.contains(".s2 "));
        assert!(style.contains(".grid { stroke: #e8e9eb }"), "{style}");
    }
}
