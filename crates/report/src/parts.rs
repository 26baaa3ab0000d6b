//! Parts that several sections use: the frame of a page, names of settings, rows of small plots,
//! tables below plots.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::svg::{PICTURE_STYLE, Picture};
use super::view::Setting;
use super::{narrow, script};

/// Style sheet of a page. Its first rule has the colours.
pub(crate) const STYLE: &str = include_str!("style.css");

/// Returns a whole page with this title and body.
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

/// Returns the label of a setting. The browser may break it after each of its parts.
pub(crate) fn broken(label: &str) -> Markup {
    html! { @for part in label.split_inclusive([':', ',']) { (part) wbr; } }
}

/// Returns switches that hide settings, if there are several settings. The switches are invisible
/// until a script shows and handles them.
pub(crate) fn switches(settings: &[Setting<'_>]) -> Markup {
    html! {
        @if settings.len() > 1 {
            div #switches role="group" aria-label="Settings to show in plots" hidden {
                @for setting in settings { button type="button" aria-pressed="true" { (name(setting)) } }
            }
        }
    }
}

/// Makes the first letter a capital, and adds a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if text.is_empty() || text.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// Returns a text in which settings in backquotes are marked.
pub(crate) fn prose(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split('`').enumerate() {
            @if number % 2 == 1 { code .setting { (part) } } @else { (unbroken(part)) }
        }
    }
}

/// Keeps each number and its unit on one line.
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

/// Returns a link to the anchor `id` itself, which users can copy.
pub(crate) fn place(id: &str, title: &str) -> Markup {
    html! { a .place href={ "#" (id) } aria-label={ "Link to: " (title) } { "#" } }
}

/// Returns a setting's name with its colour.
pub(crate) fn name(setting: &Setting<'_>) -> Markup {
    html! {
        span .name .(setting.class) {
            (swatch())
            (broken(setting.label))
        }
    }
}

/// Returns a square in the colour of the surrounding setting.
pub(crate) fn swatch() -> Markup {
    html! { svg .swatch viewBox="0 0 10 10" aria-hidden="true" { rect width="10" height="10" rx="2" {} } }
}

/// A plot of one setting or of all settings, with its caption.
#[derive(Clone, Debug)]
pub(crate) struct Shown<'a> {
    pub(crate) setting: Option<Setting<'a>>,
    pub(crate) caption: String,
    pub(crate) picture: Picture,
}

impl<'a> Shown<'a> {
    /// Creates a plot of one setting.
    pub(crate) fn of(setting: &Setting<'a>, picture: Picture) -> Self {
        Self { setting: Some(setting.clone()), caption: String::new(), picture }
    }

    /// Creates a plot of all settings.
    pub(crate) fn of_all(caption: &str, picture: Picture) -> Self {
        Self { setting: None, caption: caption.to_owned(), picture }
    }
}

/// Returns a row of small plots.
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

/// Returns a plot with the whole width of the page.
pub(crate) fn wide(plot: &Shown<'_>) -> Markup {
    html! {
        figure .wide {
            @if !plot.caption.is_empty() { figcaption { (plot.caption) } }
            div .scroll tabindex="0" { (plot.picture.html()) }
        }
    }
}

/// Returns the key of a plot: the names of all settings, with their colours.
pub(crate) fn key(settings: &[&Setting<'_>]) -> Markup {
    html! { p .key { @for setting in settings { (name(setting)) " " } } }
}

/// Returns the text that replaces a plot. Records of earlier versions have no data for this plot.
pub(crate) fn no_io_timelines() -> Markup {
    html! {
        p .quiet {
            "The records have no data for this plot: no setting finished its first run, or an earlier \
             version of iosched wrote the records."
        }
    }
}

/// Returns a plot of one setting, with the setting's name above it.
pub(crate) fn facet(setting: &Setting<'_>, plot: &Markup, below: &Markup) -> Markup {
    html! {
        figure .facet .(setting.class) data-setting=(setting.number) {
            figcaption { (name(setting)) }
            (plot)
            (below)
        }
    }
}

/// Returns the class of a row of `count` small plots: three in a row, unless two make better rows.
pub(crate) const fn facets(count: usize) -> &'static str {
    if matches!(count, 1 | 2 | 4) { "facets two" } else { "facets" }
}

/// Returns the text that replaces plots over time.
pub(crate) fn no_timelines() -> Markup {
    html! { p .quiet { "These records have no timelines, because no setting finished its first run." } }
}

/// Returns a collapsed table with the values of the plot above it.
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
    fn sentences_start_with_a_capital_and_end_with_a_period() {
        assert_eq!([sentence("best: a"), sentence(""), sentence("A.")], ["Best: a.", "", "A."]);
    }
}
