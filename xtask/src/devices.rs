//! The tables of docs/device-anchors.md, measured on the models. The other text of the page is
//! written by hand.

use std::fmt::Write as _;

use anyhow::Context as _;
use iosched_disk::Profile;
use iosched_disk::measure::{Figure, Unit, measure_anchor};

use crate::page;

/// Path of the page, from the root of the repository.
const PAGE: &str = "docs/device-anchors.md";

/// Arguments of `cargo xtask devices`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Check that the tables are up to date, and do not write them
    #[arg(long)]
    check: bool,
}

/// Writes or checks the tables.
pub(crate) fn run(args: &Args) -> anyhow::Result<std::process::ExitCode> {
    let page = page::with_part(PAGE, "devices", &tables()?)?;
    page::write_or_check(&[(PAGE.to_owned(), page)], args.check, "devices")
}

fn tables() -> anyhow::Result<String> {
    let mut text = String::new();
    for name in Profile::names() {
        let profile = Profile::named(name)?;
        let _ = writeln!(text, "### {name}\n\n{}.\n", profile.about());
        text.push_str("| metric | unit | model | real | off | source |\n|---|---|---:|---:|---:|---|\n");
        for anchor in profile.anchors() {
            let measured = measure_anchor(&profile, anchor).context("a profile has anchors of its own kind only")?;
            let off = measured.deviation().unwrap_or(0.0) * 100.0;
            let (model, real) = (rounded(measured.value), rounded(anchor.value));
            // Avoid a negative zero.
            let off = if off.abs() < 0.05 { 0.0 } else { off };
            let (title, unit, source) = (anchor.figure.title(), anchor.unit, &anchor.source);
            let _ = writeln!(text, "| {title} | {unit} | {model} | {real} | {off:+.1} % | {source} |");
        }
        text.push('\n');
    }
    text.push_str(
        "### Metrics\n\nAn anchor can be one of these metrics:\n\n| name | unit | meaning |\n|---|---|---|\n",
    );
    for figure in Figure::ALL {
        let units: Vec<_> = Unit::ALL.iter().filter(|unit| unit.quantity() == figure.quantity()).collect();
        let units = units.iter().map(|unit| unit.name()).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "| `{figure}` | {units} | {} |", figure.doc());
    }
    Ok(text)
}

/// Formats a number with three significant digits. Never rounds digits before the decimal point.
fn rounded(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_tables_are_up_to_date() {
        let page = std::fs::read_to_string(page::path(PAGE)).unwrap();
        assert_eq!(page, page::with_part(PAGE, "devices", &tables().unwrap()).unwrap(), "run `cargo xtask devices`");
    }
}
