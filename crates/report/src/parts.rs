//! Parts that sections share: the frame of a page, names of settings, small plots beside each other, tables below
//! plots.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::svg::{PICTURE_STYLE, Picture};
use super::view::Setting;
use super::{narrow, script};

/// Looks of a page; its first rule has the colours.
pub(crate) const STYLE: &str = include_str!("style.css");

/// A whole page of that title with that body.
pub(crate) fn document(version: &str, title: &str, body: &Markup) -> Markup {
    let body = narrow::labelled(&body.0);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "iosched " (version) };
                title { (title) }
                style { (PreEscaped(script::style(&body))) (PreEscaped(STYLE)) (PreEscaped(PICTURE_STYLE)) }
            }
            body {
                main { (PreEscaped(&body)) }
                (script::scripts(&body))
            }
        }
    }
}

/// A setting's label that may be broken where one part of it ends.
pub(crate) fn broken(label: &str) -> Markup {
    html! { @for part in label.split_inclusive([':', ',']) { (part) wbr; } }
}

/// Switches for settings, where there are several; a script shows them and does what they say.
pub(crate) fn switches(settings: &[Setting<'_>]) -> Markup {
    html! {
        @if settings.len() > 1 {
            div #switches role="group" aria-label="Settings to show in plots" hidden {
                @for setting in settings { button type="button" aria-pressed="true" { (name(setting)) } }
            }
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

/// A text whose settings are marked: sentences have them in backquotes.
pub(crate) fn prose(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split('`').enumerate() {
            @if number % 2 == 1 { code .setting { (part) } } @else { (unbroken(part)) }
        }
    }
}

/// Numbers stay on the line of their units.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

pub(crate) fn section(id: &str, title: &str, body: &Markup) -> Markup {
    html! {
        section id=(id) {
            h2 { (title) (place(id, title)) }
            (body)
        }
    }
}

/// A link that leads to where it stands, to be copied.
pub(crate) fn place(id: &str, title: &str) -> Markup {
    html! { a .place href={ "#" (id) } aria-label={ "Link to: " (title) } { "#" } }
}

/// A setting's name with its colour.
pub(crate) fn name(setting: &Setting<'_>) -> Markup {
    html! {
        span .name .(setting.class) {
            (swatch())
            (broken(setting.label))
        }
    }
}

/// A square of the colour of the setting it stands in.
pub(crate) fn swatch() -> Markup {
    html! { svg .swatch viewBox="0 0 10 10" aria-hidden="true" { rect width="10" height="10" rx="2" {} } }
}

/// A plot as it stands among others: of one setting or of all, with what stands above it.
#[derive(Clone, Debug)]
pub(crate) struct Shown<'a> {
    pub(crate) setting: Option<Setting<'a>>,
    pub(crate) caption: String,
    pub(crate) picture: Picture,
}

impl<'a> Shown<'a> {
    /// A plot of one setting.
    pub(crate) fn of(setting: &Setting<'a>, picture: Picture) -> Self {
        Self { setting: Some(setting.clone()), caption: String::new(), picture }
    }

    /// A plot of all settings.
    pub(crate) fn of_all(caption: &str, picture: Picture) -> Self {
        Self { setting: None, caption: caption.to_owned(), picture }
    }
}

/// Small plots beside each other.
pub(crate) fn row(plots: &[Shown<'_>]) -> Markup {
    html! {
        div .(facets(plots.len())) {
            @for plot in plots {
                @match &plot.setting {
                    Some(setting) => (facet(setting, &plot.picture.html(), &html! {})),
                    None => figure .facet { figcaption { (plot.caption) } (plot.picture.html()) },
                }
            }
        }
    }
}

/// A plot over the whole width.
pub(crate) fn wide(plot: &Shown<'_>) -> Markup {
    html! {
        figure .wide {
            @if !plot.caption.is_empty() { figcaption { (plot.caption) } }
            div .scroll tabindex="0" { (plot.picture.html()) }
        }
    }
}

/// The names of all settings, with their colours: what lines of a plot are.
pub(crate) fn key(settings: &[&Setting<'_>]) -> Markup {
    html! { p .key { @for setting in settings { (name(setting)) " " } } }
}

/// Said instead of a plot of what records of earlier versions lack.
pub(crate) fn no_io_timelines() -> Markup {
    html! {
        p .quiet {
            "The records do not have this plot: no first run of a setting ended, or an earlier \
             version wrote the records."
        }
    }
}

/// A plot of one setting, with the setting's name above it.
pub(crate) fn facet(setting: &Setting<'_>, plot: &Markup, below: &Markup) -> Markup {
    html! {
        figure .facet .(setting.class) data-setting=(setting.number) {
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
    html! { p .quiet { "These records have no timelines, because no first run of a setting ended." } }
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
