//! Parts that sections share: the frame of a page, names of settings, small plots beside each other, tables below
//! plots.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::view::Setting;

const STYLE: &str = include_str!("style.css");

/// A whole page of that title with that body.
pub(crate) fn document(version: &str, title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "iosched " (version) };
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    }
}

/// With a capital and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if text.is_empty() || text.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// Numbers stay on the line of their units.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

pub(crate) fn section(id: &str, title: &str, body: &Markup) -> Markup {
    html! {
        section id=(id) {
            h2 { (title) }
            (body)
        }
    }
}

/// A setting's name with its colour.
pub(crate) fn name(setting: &Setting<'_>) -> Markup {
    html! {
        span .name .(setting.class) {
            (swatch())
            @for part in setting.label.split_inclusive([':', ',']) { (part) wbr; }
        }
    }
}

/// A square of the colour of the setting it stands in.
pub(crate) fn swatch() -> Markup {
    html! { svg .swatch viewBox="0 0 10 10" aria-hidden="true" { rect width="10" height="10" rx="2" {} } }
}

/// A plot of one setting, with the setting's name above it.
pub(crate) fn facet(setting: &Setting<'_>, plot: &Markup, below: &Markup) -> Markup {
    html! {
        figure .facet .(setting.class) {
            figcaption { (name(setting)) }
            (plot)
            (below)
        }
    }
}

/// The class of a row of `count` small plots: three beside each other, unless two make better rows.
pub(crate) const fn facets(count: usize) -> &'static str {
    if matches!(count, 1 | 2 | 4) { "facets two" } else { "facets" }
}

/// Said instead of a plot over time.
pub(crate) fn no_timelines() -> Markup {
    html! { p .quiet { "These records hold no timelines: no first run of a setting came to its end." } }
}

/// A table that is there for those who want figures rather than the plot above.
pub(crate) fn as_table(table: &Markup) -> Markup {
    html! {
        details {
            summary { "As a table" }
            div .scroll tabindex="0" { (table) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_a_capital_and_end() {
        assert_eq!([sentence("best: a"), sentence(""), sentence("A.")], ["Best: a.", "", "A."]);
    }
}
