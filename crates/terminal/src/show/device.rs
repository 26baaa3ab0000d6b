//! Device models, compared with the real devices.

use std::fmt::Write as _;

use anyhow::Result;
use iosched::Op;
use iosched_disk::io_cost::Family;
use iosched_disk::measure::{DataSheet, Distribution, Measured};
use iosched_disk::{Fit, Profile, Recorded, Validated};
use iosched_lab::grouped;
use serde_json::{Value, json};

/// Columns of a latency plot.
const PLOT_COLUMNS: usize = 32;
/// Bars of a plot, by height.
const PLOT_BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Quantiles in the table: name and share.
const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
/// Largest relative error of a metric that the model meets.
const TOLERANCE: f64 = 0.1;

/// Formats the least and the greatest value of all runs. Equal values appear once.
fn range((least, most): (u64, u64), divisor: f64) -> String {
    let number = |value: u64| rounded(value as f64 / divisor);
    let (least, most) = (number(least), number(most));
    if least == most { least } else { format!("{least}-{most}") }
}

/// Returns the members of a family with the ranges of their runs.
pub fn members(family: &Family) -> String {
    let mut text = format!("{}\n\n{:34}{:>5}", family.about, "", "runs");
    let heads = ["read MB/s", "seq. 1000/s", "random 1000/s", "write MB/s", "seq. 1000/s", "random 1000/s"];
    heads.iter().for_each(|head| {
        let _ = write!(text, "{head:>15}");
    });
    text.push('\n');
    for member in family.members() {
        let _ = write!(text, "{:34}{:>5}", member.name, member.runs.len());
        for (place, limits) in member.range().into_iter().enumerate() {
            let _ = write!(text, "{:>15}", range(limits, if place % 3 == 0 { 1e6 } else { 1e3 }));
        }
        text.push('\n');
    }
    text
}

/// Returns the fitted and the assumed parameters, as listed in the profile.
pub fn assumptions(profile: &Profile) -> String {
    let mut text = format!("{}: {}\n", profile.name(), profile.about());
    for (title, list) in [("fitted", profile.fitted_to()), ("assumed", profile.assumed())] {
        let _ = writeln!(text, "\n{title}:");
        list.iter().for_each(|entry| _ = writeln!(text, "  {entry}"));
        if list.is_empty() {
            text.push_str(
                "  the profile has no list of sources; comments in the file of the profile say where its values \
                 come from\n",
            );
        }
    }
    if let Some(recorded) = profile.fit().and_then(|fit| fit.recorded) {
        let covered = recorded.covered_percent;
        let _ = writeln!(text, "\n{covered} % of the errors against published measurements are at most these factors:");
        recorded.lines().iter().for_each(|line| _ = writeln!(text, "  {line}"));
    }
    text
}

/// Returns the data sheet of a profile as text.
pub fn text(profile: &Profile, sheet: &DataSheet) -> String {
    let card = profile.card();
    let gigabytes = card.capacity_sectors as f64 * 512.0 / 1e9;
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    let mut text = format!("{}: {}\n\n", profile.name(), profile.about());
    for (name, unit, value) in [
        ("capacity", "GB", format!("{gigabytes:.1}")),
        ("commands at once", "", card.depth.to_string()),
        ("largest command", "KiB", grouped(card.max_hw_sectors_kb.into())),
        ("seeking costs", "", yes(card.rotational).to_owned()),
        ("volatile write cache", "", yes(card.write_cache).to_owned()),
        ("force unit access", "", yes(card.fua).to_owned()),
    ] {
        let _ = writeln!(text, "{name:32}{unit:>5}{value:>11}");
    }
    if let Some(host) = profile.host() {
        let _ = writeln!(text, "{:32}{:>5}{:>11}", "processors of the host", "", host.cores);
        let _ =
            writeln!(text, "{:32}{:>5}{:>11}", "processor time of an I/O", "us", rounded(host.request_ns as f64 / 1e3));
    }
    let _ = writeln!(text, "\n{:37}{:>11}{:>11}{:>9}", "", "model", "real", "off");
    for measured in &sheet.figures {
        let Measured { figure, value, unit, anchor } = measured;
        let _ = write!(text, "{:32}{unit:>5}{:>11}", figure.title(), rounded(*value));
        if let (Some(anchor), Some(deviation)) = (anchor, measured.deviation()) {
            let _ = write!(text, "{:>11}{:>+7.1} %   {}", rounded(anchor.value), deviation * 100.0, anchor.source);
        }
        text.push('\n');
    }
    text.push('\n');
    latencies(&mut text, &sheet.distributions);
    let _ = writeln!(text, "\n{}", answer(&sheet.figures));
    if let Some(fit) = profile.fit() {
        let _ = writeln!(text, "{}", near(fit));
    }
    text
}

/// Returns a sentence about the errors of a profile's fit.
fn near(fit: Fit) -> String {
    let Fit { rate_error_percent, tail_error_percent, .. } = fit;
    let errors = format!(
        "in four cases of five, simulated rates are wrong by at most {rate_error_percent} %, and \
         p99 by at most {tail_error_percent} %"
    );
    if let (Some(Recorded { covered_percent, .. }), None) = (fit.recorded, fit.validated) {
        return format!(
            "compared with published measurements: {errors}. In {covered_percent} % of the cases, differences \
             between schedulers are wrong by at most the factors that --assumptions shows"
        );
    }
    match fit.validated {
        None if fit.rates_only => format!(
            "only maximum rates were measured: simulated rates may be wrong by \
             {rate_error_percent} %, and latencies by a factor of two or more"
        ),
        None => format!("calibrated: {errors}; not validated on the device: iosched validate DEVICE --profile FILE"),
        Some(Validated { trust_percent, wrong_orders, .. }) => {
            let orders = match wrong_orders {
                0 => "the profile predicts the right order for all pairs of schedulers".to_owned(),
                1 => "the profile predicts the wrong order for one pair of schedulers".to_owned(),
                orders => format!("the profile predicts the wrong order for {orders} pairs of schedulers"),
            };
            format!("validated on the device: score {trust_percent} %; {errors}; {orders}")
        }
    }
}

/// Writes quantiles and a plot of each distribution. All plots share one axis.
fn latencies(text: &mut String, distributions: &[Distribution]) {
    let extreme = |share| distributions.iter().map(move |distribution| distribution.latencies.quantile_ns(share));
    let from_ns = extreme(0.0).min().unwrap_or(0).max(1) as f64;
    let to_ns = (extreme(1.0).max().unwrap_or(0) as f64).max(from_ns * 1.01);
    let (factor, unit) = if extreme(0.5).max().unwrap_or(0) < 1_000_000 { (1e3, "us") } else { (1e6, "ms") };
    let _ = write!(text, "{:32}{:>5}", "latency of 4 KiB", "");
    for (name, _) in QUANTILES {
        let _ = write!(text, "{name:>9}");
    }
    let _ = writeln!(text, "   from {} to {} {unit}", rounded(from_ns / factor), rounded(to_ns / factor));
    for Distribution { op, depth, latencies } in distributions {
        let direction = if *op == Op::Read { "read" } else { "write" };
        let _ = write!(text, "{:32}{unit:>5}", format!("random {direction}, depth {depth}"));
        for (_, share) in QUANTILES {
            let _ = write!(text, "{:>9}", rounded(latencies.quantile_ns(share) as f64 / factor));
        }
        let _ = writeln!(text, "   {}", plot(&latencies.histogram(from_ns, to_ns, PLOT_COLUMNS)).trim_end());
    }
}

fn plot(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let bar = |count: u64| match count {
        0 => ' ',
        count => PLOT_BARS[((count * 8).div_ceil(most) as usize).clamp(1, 8) - 1],
    };
    counts.iter().map(|&count| bar(count)).collect()
}

/// Returns a sentence that says which measurements the model meets.
fn answer(figures: &[Measured]) -> String {
    let known: Vec<_> = figures.iter().filter_map(|measured| Some((measured.figure, measured.deviation()?))).collect();
    let off: Vec<_> = known.iter().filter(|(_, deviation)| deviation.abs() > TOLERANCE).collect();
    let worst = known.iter().map(|(_, deviation)| deviation.abs()).fold(0.0, f64::max) * 100.0;
    match (known.len(), off.len()) {
        (0, _) => "the profile has no measurements of the real device (anchors)".to_owned(),
        (1, 0) => format!("the model differs from the one measurement of the real device by at most {worst:.1} %"),
        (all, 0) => format!("the model differs from all {all} measurements of the real device by at most {worst:.1} %"),
        (all, some) => {
            let names: Vec<_> = off.iter().map(|(figure, _)| figure.title()).collect();
            format!(
                "the model differs by more than 10 % from {some} of {all} measurements of the real device: {}",
                names.join("; ")
            )
        }
    }
}

/// Formats a number with three significant digits. Never rounds digits before the decimal point.
fn rounded(value: f64) -> String {
    match value {
        value if value >= 999.5 => grouped(value.round() as u64),
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Returns the data sheet of a profile as JSON.
///
/// # Errors
/// A value cannot be written as JSON.
pub fn json(profile: &Profile, sheet: &DataSheet) -> Result<Value> {
    let card = profile.card();
    let figures = sheet.figures.iter().map(|measured| {
        let mut value = serde_json::to_value(measured)?;
        value["title"] = measured.figure.title().into();
        value["deviation"] = measured.deviation().into();
        Ok(value)
    });
    let latencies = sheet.distributions.iter().map(|Distribution { op, depth, latencies }| {
        let mut row = json!({
            "op": if *op == Op::Read { "read" } else { "write" },
            "depth": depth,
            "commands": latencies.len(),
            "mean_ns": latencies.mean_ns(),
        });
        for (name, share) in QUANTILES {
            row[format!("{}_ns", name.replace('.', "_"))] = latencies.quantile_ns(share).into();
        }
        row
    });
    Ok(json!({
        "name": profile.name(),
        "kind": profile.model().kind(),
        "about": profile.about(),
        "capacity_sectors": card.capacity_sectors,
        "depth": card.depth,
        "max_hw_sectors_kb": card.max_hw_sectors_kb,
        "rotational": card.rotational,
        "write_cache": card.write_cache,
        "fua": card.fua,
        "fit": profile.fit(),
        "metrics": figures.collect::<Result<Vec<_>>>()?,
        "latencies": latencies.collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_least_three_digits() {
        assert_eq!(
            [0.0, 0.456, 9.996, 12.34, 99.96, 123.4, 98_765.4].map(rounded),
            ["0.00", "0.46", "10.0", "12.3", "100", "123", "98,765"]
        );
    }

    #[test]
    fn plot_scales_to_the_maximum_and_shows_small_values() {
        assert_eq!(plot(&[0, 1, 800, 400]), " ▁█▄");
    }
}
