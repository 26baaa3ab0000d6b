//! Doubts about the results, with numbers to which tables refer.

use iosched_lab::{Doubt, Figure};
use maud::{Markup, html};

use super::parts::prose;
use super::view::View;

/// Returns the list of all doubts.
pub(crate) fn section(view: &View<'_>) -> Markup {
    let doubts = &view.doubts;
    html! {
        @if doubts.is_empty() {
            p .quiet {
                @if view.several { "iosched found no doubts that concern only this device. Doubts that concern all \
                     devices are listed separately." }
                @else { "No doubts: iosched found no reason to doubt these results." }
            }
        } @else {
            (heading(view, &view.id("doubts")))
            ol .doubts {
                @for (number, doubt) in doubts.iter().enumerate() {
                    li id=(view.id(&format!("doubt-{}", number + 1))) { (prose(&doubt.to_string())) "." }
                }
            }
        }
    }
}

fn heading(view: &View<'_>, id: &str) -> Markup {
    const TITLE: &str = "Doubts, and what you can do about them";
    html! { @if view.several { h4 id=(id) { (TITLE) } } @else { h3 id=(id) { (TITLE) } } }
}

/// Returns the indices of the doubts that concern only `figure`. The doubts concern the setting
/// with the index `setting` or, if it is `None`, all settings.
pub(crate) fn about(view: &View<'_>, figure: Figure, setting: Option<usize>) -> Vec<usize> {
    let label = setting.map(|number| view.header().settings[number].label.as_str());
    let concerns = |doubt: &Doubt| match (doubt, label) {
        (Doubt::ThinTail { figure: of, .. }, None) => *of == figure,
        (Doubt::NoFairness { .. } | Doubt::FairnessPartial { .. }, None) => figure == Figure::Fairness,
        (Doubt::Incomplete { alone_missing, .. }, None) => figure == Figure::Fairness && *alone_missing > 0,
        _ => false,
    };
    let doubts = view.doubts.iter().enumerate();
    doubts.filter(|(_, doubt)| concerns(doubt)).map(|(number, _)| number + 1).collect()
}

/// Returns links to doubts by their numbers.
pub(crate) fn marks(view: &View<'_>, numbers: &[usize]) -> Markup {
    html! {
        @if !numbers.is_empty() {
            sup .marks {
                @for (i, number) in numbers.iter().enumerate() {
                    @if i > 0 { "," }
                    a href={ "#" (view.id(&format!("doubt-{number}"))) } title="see the doubt with this number" { (number) }
                }
            }
        }
    }
}
