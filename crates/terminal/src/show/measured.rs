//! Published measurements, compared with simulated ones.

use std::fmt::Write as _;

use anyhow::Result;
use iosched_lab::measured::{
    COVERED_PERCENT, DifferenceErrors, MeasuredCase, MeasuredOptions, MeasuredResult, Metric, ORDER_PERCENT, Source,
    TailAgreement, Tally, Target,
};
use iosched_lab::{EQUAL_WITHIN_PERCENT, significant};

use super::grid::{Column, Look, Tone, set};

/// Returns the results of one source.
fn of_source<'r, 'c>(source: Source, results: &'r [MeasuredResult<'c>]) -> Vec<&'r MeasuredResult<'c>> {
    results.iter().filter(|result| result.case.source == source).collect()
}

/// Returns the tables of all sources, and a summary per source.
pub fn text(cases: &[MeasuredCase], results: &[MeasuredResult<'_>], look: Look) -> String {
    let mut text = String::new();
    for source in Source::ALL {
        let of_source = of_source(source, results);
        if !of_source.is_empty() {
            let _ = writeln!(text, "{}: {}\n\n{}", source.name(), source.about(), table(&of_source, look));
        }
    }
    for source in Source::ALL {
        let of_source = of_source(source, results);
        if !of_source.is_empty() {
            text.extend(obstacles(&of_source).map(|line| line + "\n"));
            text.extend(agreements(source, &of_source).map(|line| line + "\n"));
            let _ = writeln!(text, "{}", last_line(source, Tally::of(&of_source)));
        }
        text.extend(not_simulated(source, cases, of_source.len()));
    }
    text
}

/// Returns the names of the parts of results, in order.
fn parts<'a>(results: &[&'a MeasuredResult<'_>]) -> Vec<&'a str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in results.iter().map(|result| result.case.part()) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// Returns a sentence for each part of a source with many disks. It says how close the simulated
/// 99th percentiles are to the measured ones, and whether both rank the disks in the same order.
fn agreements<'a>(source: Source, results: &'a [&'a MeasuredResult<'_>]) -> impl Iterator<Item = String> + 'a {
    let parts = if source == Source::SsdLatency { parts(results) } else { Vec::new() };
    parts.into_iter().filter_map(move |part| {
        let of_part: Vec<_> = results.iter().copied().filter(|result| result.case.part() == part).collect();
        let TailAgreement { factor, rank_correlation } = TailAgreement::of(&of_part)?;
        Some(format!(
            "{}, {part}: p99 factor {factor:.2} (median), rank correlation {rank_correlation:.2}",
            source.name()
        ))
    })
}

/// Formats a summary, such as "icpe24: rates 5 of 88,
/// p99 4 of 88, orders 16 right / 3 wrong / 115 none".
fn last_line(source: Source, tally: Tally) -> String {
    let Tally { rates, rates_met, p99s, p99s_met, right, wrong, none } = tally;
    format!(
        "{}: rates {rates_met} of {rates}, p99 {p99s_met} of {p99s}, orders {right} right / {wrong} wrong / {none} none",
        source.name()
    )
}

/// Returns a sentence for each case that cannot be simulated.
fn obstacles<'a>(results: &'a [&'a MeasuredResult<'_>]) -> impl Iterator<Item = String> + 'a {
    results.iter().filter_map(|result| {
        let reason = result.case.obstacle?;
        Some(format!("{}, {}: not simulated, because {reason}", result.case.source.name(), result.case.head()))
    })
}

/// Returns a sentence about cases without a result after an interruption.
fn not_simulated(source: Source, cases: &[MeasuredCase], simulated: usize) -> Option<String> {
    let count = cases.iter().filter(|case| case.source == source).count() - simulated;
    let cases = if count == 1 { "case is" } else { "cases are" };
    (count > 0).then(|| format!("{}: {count} {cases} not simulated\n", source.name()))
}

/// Returns the page docs/accuracy.md: the accuracy by source and by part of a source.
pub fn markdown(
    cases: &[MeasuredCase],
    results: &[MeasuredResult<'_>],
    options: &MeasuredOptions<'_>,
    command: &str,
) -> String {
    let mut text = format!(
        "# Accuracy on named devices\n\n\
         This page compares simulated runs with results that others measured on named SSDs. It shows good\n\
         and bad predictions. iosched {} wrote the page with one command:\n\n```\n{command} --markdown\n```\n\n\
         Each case ran {} for {} s of simulated time, after a warm-up of {} s. Cases in which\n\
         several disks serve only small reads ran for a tenth of this time. If I/Os wait at the slowest\n\
         of several disks, the warm-up is up to twelve times as long. For the targets of io.cost, it is\n\
         70 times as long.\n\n\
         The model of the disk was fitted to rows of reads in `icpe24`, and to the write rates of an\n\
         io.cost model. The rows of one disk are in figures 1a, 1b, 2 and 3. Figure 9 shows how disks\n\
         differ. `iosched device show nvme-980pro --assumptions` lists the parameters. The costs of the\n\
         host were fitted to rows of figures 2, 3 and 7. These rows have 128 I/Os in flight on one\n\
         processor, or 5 to 14 processes on one disk.\n\n\
         Each disk of `ssd-latency` has three fitted values: the latency of a lone read, the rate of\n\
         storing written data, and the longest wait of a read for writes. The last value was fitted to\n\
         99th percentiles, so these percentiles are not pure predictions. All disks get the same closed\n\
         loop of I/O; the measured load was different.\n\n\
         The disk of `isol-iocost` has the rates of its io.cost model, the latency of its data sheet, and\n\
         the costs of the host in `icpe24`. The measured runs followed one another, and io.cost keeps its\n\
         rate between runs. In simulation, each case starts at the lowest rate of its setting.\n\n\
         The mails of `list-tables` do not describe everything. iosched assumes the disk `sata-7200` for\n\
         each rotating disk, ext4 for XFS, and mq-deadline for a scheduler without a name. Programs that\n\
         write use the page cache. This was chosen after a comparison with the row for a program that\n\
         starts. These cases ran for 20 s, after a warm-up of 4 s. An order of these cases compares any\n\
         two rows of a table. All other rows are predictions.\n\n\
         | column | meaning |\n|---|---|\n\
         | rates | how many rates (IOPS) are within the limit, of all rates |\n\
         | p99 | the same for the 99th percentiles of latency |\n\
         | rate ratio, p99 ratio | median of the ratio simulated / measured |\n\
         | order | cases in which a scheduler and `none` differ by more than {ORDER_PERCENT} % on the disk. *right*: the \
         simulation has the same order; *wrong*: the reverse order; *not predicted*: a difference below \
         {EQUAL_WITHIN_PERCENT} %, or below the error of the model |\n",
        env!("CARGO_PKG_VERSION"),
        if options.runs == 1 { "once".to_owned() } else { format!("{} times", options.runs) },
        options.seconds,
        options.seconds,
    );
    text.push_str(&targets(results));
    text.push_str(&errors(results));
    for source in Source::ALL {
        let of_source = of_source(source, results);
        let planned = cases.iter().any(|case| case.source == source);
        if planned {
            let _ = write!(text, "\n## {}\n\nMeasured on {}.\n", source.name(), source.about());
        }
        if let Some(sentence) = not_simulated(source, cases, of_source.len()) {
            let _ = write!(text, "\n{sentence}");
        }
        if of_source.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "\nModel: `{}`. Limits: {:.0} % for rates, a factor of {} for the p99.\n\n\
             | part | rates | p99 | rate ratio | p99 ratio | order right / wrong / not predicted |\n\
             |---|---:|---:|---:|---:|---:|\n",
            source.device(),
            (source.rate_within() - 1.0) * 100.0,
            source.p99_within()
        );
        for part in parts(&of_source) {
            let of_part: Vec<&MeasuredResult<'_>> =
                of_source.iter().copied().filter(|result| result.case.part() == part).collect();
            text.push_str(&markdown_row(part, &of_part));
        }
        text.push_str(&markdown_row("all", &of_source));
        let lines = agreements(source, &of_source).chain(obstacles(&of_source));
        let look = Look { width: None, colours: false, details: false };
        let lines: String = lines.map(|line| format!("{}\n", look.wrap(&format!("- {line}"), "  "))).collect();
        if !lines.is_empty() {
            let _ = write!(text, "\n{lines}");
        }
        if source == Source::ListTables {
            let _ = write!(text, "\n{}", figures(&of_source));
        }
    }
    text
}

/// Returns the table of the goals and of the results.
fn targets(results: &[MeasuredResult<'_>]) -> String {
    let targets = Target::of(results);
    if targets.is_empty() {
        return String::new();
    }
    let mut text = "\n## Goals\n\n\
        The table counts all rows of this page, including those that a model was fitted to.\n\n\
        | figures | goal | result | met |\n|---|---|---|---|\n"
        .to_owned();
    for Target { about, wanted, reached, is_met } in targets {
        let _ = writeln!(text, "| {about} | {wanted} | {reached} | {} |", if is_met { "yes" } else { "no" });
    }
    text.push_str("\nThe goals for rotating disks and published experiments are on [another page](reproduction.md).\n");
    text
}

/// Returns a table of all metrics of results.
fn figures(results: &[&MeasuredResult<'_>]) -> String {
    let mut text = "| case | metric | measured | simulated |\n|---|---|---:|---:|\n".to_owned();
    for result in results {
        for (figure, simulated) in result.figures() {
            let simulated = simulated.map_or_else(|| "-".to_owned(), |value| significant(value, 3));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {simulated} |",
                named(result, &figure.job),
                figure.metric.label(),
                significant(figure.measured, 3)
            );
        }
    }
    text
}

/// Returns the name of a job of a case. In tables from mailing lists, a case has the name of its
/// first job.
fn named(result: &MeasuredResult<'_>, job: &str) -> String {
    let head = result.case.head();
    let is_repeated = result.case.source == Source::ListTables && result.case.figures[0].job == job;
    if is_repeated { head } else { format!("{head}, {job}") }
}

/// Returns a table of errors: of differences between schedulers, and of the profiles.
fn errors(results: &[MeasuredResult<'_>]) -> String {
    let with_record: Vec<&MeasuredResult<'_>> = results.iter().filter(|result| result.recorded.is_some()).collect();
    let Some(recorded) = with_record.first().and_then(|result| result.recorded) else { return String::new() };
    let mut text = format!(
        "\n## Errors of differences\n\n\
         A verdict compares two schedulers, so the error of their ratio matters. For each scheduler, the\n\
         simulation and the measurement each give a ratio to `none`. The error is the larger of the two\n\
         ratios divided by the smaller. {COVERED_PERCENT} % of the errors are at most the factor in the table. Results \
         that\n\
         were used to fit the costs of the host do not count. The profile contains these factors. If a\n\
         difference is smaller, its verdict is \"cannot tell\", here and in all commands.\n\n\
         | workload | rates: differences | error | in the profile | p99: differences | error | in the profile |\n\
         |---|---:|---:|---:|---:|---:|---:|\n"
    );
    for DifferenceErrors { load, rates, tails } in DifferenceErrors::of(&with_record) {
        let stored = |is_tail| significant(recorded.factor(load, is_tail), 3);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            load.words(),
            rates.0,
            significant(rates.1, 3),
            stored(false),
            tails.0,
            significant(tails.1, 3),
            stored(true)
        );
    }
    text
}

fn markdown_row(head: &str, results: &[&MeasuredResult<'_>]) -> String {
    let Tally { rates, rates_met, p99s, p99s_met, right, wrong, none } = Tally::of(results);
    let ratio = |is_one: fn(Metric) -> bool| {
        let all = results.iter().flat_map(|result| result.figures()).filter(|(figure, _)| is_one(figure.metric));
        let mut ratios: Vec<f64> = all.filter_map(|(figure, simulated)| Some(simulated? / figure.measured)).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).map_or_else(|| "-".to_owned(), |&ratio| significant(ratio, 2))
    };
    format!(
        "| {head} | {rates_met} of {rates} | {p99s_met} of {p99s} | {} | {} | {right} / {wrong} / {none} |\n",
        ratio(Metric::is_rate),
        ratio(Metric::is_tail)
    )
}

/// Returns a table with a row per job: each metric as measured, as simulated, and their ratio.
fn table(results: &[&MeasuredResult<'_>], look: Look) -> String {
    let mut heads = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    let has = |metric: Metric| results.iter().any(|result| result.figures().any(|(figure, _)| figure.metric == metric));
    let metrics = [
        Metric::Iops,
        Metric::WriteIops,
        Metric::Throughput,
        Metric::StartUp,
        Metric::P50,
        Metric::P99,
        Metric::DeviceP50,
        Metric::DeviceP99,
    ];
    let metrics: Vec<Metric> = metrics.into_iter().filter(|&metric| has(metric)).collect();
    for &metric in &metrics {
        let head = |what: &str| Column { head: format!("{}: {what}", metric.label()), ..Default::default() };
        columns.extend(["measured", "simulated", "ratio"].map(head));
    }
    for result in results {
        let mut jobs: Vec<&str> = result.case.figures.iter().map(|figure| figure.job.as_str()).collect();
        jobs.dedup();
        for job in jobs {
            heads.push(named(result, job));
            let cells = metrics.iter().flat_map(|&metric| match result.value(job, metric) {
                Some((measured, simulated)) => [measured, simulated, simulated / measured].map(|v| significant(v, 3)),
                None => ["-", "-", "-"].map(str::to_owned),
            });
            for (column, cell) in columns.iter_mut().zip(cells) {
                column.cells.push((cell, Tone::Plain));
            }
        }
    }
    set(&heads, &columns, look)
}

/// Returns a line per metric, then a line per source.
///
/// # Errors
/// A value cannot be written as JSON.
pub fn json(results: &[MeasuredResult<'_>]) -> Result<String> {
    let mut lines = Vec::new();
    for result in results {
        for (figure, simulated) in result.figures() {
            lines.push(serde_json::json!({
                "source": result.case.source.name(),
                "case": result.case.group,
                "scheduler": result.case.setting.to_string(),
                "job": figure.job,
                "metric": figure.metric.label(),
                "measured": figure.measured,
                "simulated": simulated,
            }));
        }
    }
    for source in Source::ALL {
        let Tally { rates, rates_met, p99s, p99s_met, right, wrong, none } = Tally::of(&of_source(source, results));
        if rates + p99s > 0 {
            lines.push(serde_json::json!({
                "source": source.name(), "rates": rates, "rates_met": rates_met, "p99s": p99s, "p99s_met": p99s_met,
                "orders_right": right, "orders_wrong": wrong, "orders_none": none,
            }));
        }
    }
    for part in parts(&of_source(Source::SsdLatency, results)) {
        let of_part: Vec<_> = results.iter().filter(|result| result.case.part() == part).collect();
        lines.extend(TailAgreement::of(&of_part).map(|TailAgreement { factor, rank_correlation }| {
            serde_json::json!({"p99s_of": part, "factor": factor, "rank_correlation": rank_correlation})
        }));
    }
    lines.extend(Target::of(results).into_iter().map(|Target { about, wanted, reached, is_met }| {
        serde_json::json!({"goal": about, "wanted": wanted, "reached": reached, "met": is_met})
    }));
    let all: Vec<&MeasuredResult<'_>> = results.iter().collect();
    for DifferenceErrors { load, rates, tails } in DifferenceErrors::of(&all) {
        lines.push(serde_json::json!({
            "errors_of": load.name(), "covered_percent": COVERED_PERCENT, "rates": rates.0, "rate_factor": rates.1,
            "p99s": tails.0, "p99_factor": tails.1,
        }));
    }
    let lines: Result<Vec<String>, _> = lines.iter().map(serde_json::to_string).collect();
    Ok(lines?.join("\n") + "\n")
}
