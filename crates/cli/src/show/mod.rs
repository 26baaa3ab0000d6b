//! Results shown: as text for people, and as JSON, CSV and Markdown.

mod grid;
mod machine;
mod text;

use iosched_lab::{Decimals, FigureResults, Header, Results};

pub(crate) use grid::Look;
pub(crate) use machine::{csv, json, markdown};
pub(crate) use text::text;

/// What is shown.
#[derive(Clone, Debug)]
pub(crate) struct Page<'a> {
    /// The plan.
    pub(crate) header: &'a Header,
    /// What came of it.
    pub(crate) results: &'a Results,
    /// How long that took, s; not shown if not known.
    pub(crate) elapsed_s: Option<f64>,
    /// What to do next.
    pub(crate) next: Option<String>,
}

/// Mean and deviation of every setting: "3.12" and "0.02".
fn cells(results: &FigureResults) -> Vec<Option<(String, Option<String>)>> {
    let values: Vec<_> = results.settings.iter().map(|own| own.as_ref().map(|own| (own.mean, own.sd))).collect();
    let known: Vec<_> = values.iter().copied().flatten().collect();
    let mut decimals = Decimals::row(&known).into_iter();
    let mut show = |(mean, sd): (f64, Option<f64>)| {
        let decimals = decimals.next()?;
        Some((decimals.show(mean), sd.map(|sd| decimals.show(sd))))
    };
    values.into_iter().map(|value| show(value?)).collect()
}
