//! Results for programs: one JSON document, CSV in long form, Markdown tables.

use std::fmt::Write as _;

use anyhow::Result;
use iosched_lab::{Comparison, FigureResults, SettingFigure};
use serde_json::{Value, json};

use super::{Page, cells};

/// Everything in one document.
pub(crate) fn json(page: &Page<'_>) -> Result<String> {
    let Page { header, results, .. } = page;
    let label = |setting: usize| header.settings[setting].label.as_str();
    let figure = |results: &FigureResults| {
        let own = |(setting, own): (usize, &Option<SettingFigure>)| {
            let mut value = serde_json::to_value(own).unwrap_or(Value::Null);
            if let Value::Object(fields) = &mut value {
                fields.insert("setting".to_owned(), label(setting).into());
            }
            value
        };
        let settings: Vec<Value> = results.settings.iter().enumerate().map(own).filter(|v| !v.is_null()).collect();
        json!({
            "figure": results.figure.id(),
            "name": results.figure.name(),
            "unit": results.figure.unit(),
            "better": results.figure.direction(),
            "about": results.figure.doc(),
            "settings": settings,
        })
    };
    let doubt = |doubt: &iosched_lab::Doubt| {
        let mut value = serde_json::to_value(doubt).unwrap_or(Value::Null);
        if let Value::Object(fields) = &mut value {
            fields.insert("message".to_owned(), doubt.to_string().into());
        }
        value
    };
    let best: Vec<Value> = results
        .answer
        .best
        .iter()
        .map(|(settings, figures)| {
            let settings: Vec<&str> = settings.iter().map(|&setting| label(setting)).collect();
            json!({ "settings": settings, "figures": figures })
        })
        .collect();
    let sentences: Vec<Value> = (0..header.settings.len())
        .filter_map(|setting| {
            Some(json!({ "setting": label(setting), "sentence": results.sentence(header, setting)? }))
        })
        .collect();
    let document = json!({
        "plan": header,
        "rounds": results.rounds,
        "simulated_ns": results.simulated_ns,
        "simulated_ios": results.simulated_ios,
        "figures": results.figures.iter().map(figure).collect::<Vec<_>>(),
        "doubts": results.doubts.iter().map(doubt).collect::<Vec<_>>(),
        "sentences": sentences,
        "answer": { "best": best, "alike": results.answer.alike, "sentence": results.answer_sentence(header) },
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// A line per figure and setting. Numbers are not rounded; differences are value minus baseline, in the unit.
pub(crate) fn csv(page: &Page<'_>) -> String {
    let mut text = "figure,unit,setting,mean,sd,n,diff,ci_low,ci_high,verdict,published_rule,survives_all\n".to_owned();
    for results in &page.results.figures {
        for (setting, own) in results.settings.iter().enumerate() {
            let Some(own) = own else { continue };
            let label = field(&page.header.settings[setting].label);
            let (id, unit, mean, n) = (results.figure.id(), results.figure.unit(), own.mean, own.values.len());
            let comparison = own.comparison.as_ref().map_or_else(|| ",,,baseline,,".to_owned(), compared);
            let _ = writeln!(text, "{id},{unit},{label},{mean},{},{n},{comparison}", optional(own.sd));
        }
    }
    text
}

fn compared(comparison: &Comparison) -> String {
    let published = comparison.published.map_or("", |differs| if differs { "differs" } else { "no_difference" });
    format!(
        "{},{},{},{},{published},{}",
        comparison.difference,
        optional(comparison.interval.map(|(low, _)| low)),
        optional(comparison.interval.map(|(_, high)| high)),
        comparison.verdict.id(),
        comparison.survives_all
    )
}

fn optional(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// A field as RFC 4180 wants it.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// The figures and the verdicts, each a table, then what is doubtful and the answer.
pub(crate) fn markdown(page: &Page<'_>) -> String {
    let Page { header, results, .. } = page;
    let labels: Vec<String> = header.settings.iter().map(|setting| format!("`{}`", setting.label)).collect();
    let mut text = format!(
        "`{}` on `{}` ({}), {} runs each\n\n",
        header.workload.name, header.device.name, header.device.about, results.rounds
    );
    let _ = writeln!(text, "| figure | unit | {} |\n|---|---|{}", labels.join(" | "), "---:|".repeat(labels.len()));
    for figure in &results.figures {
        let cell = |cell| match cell {
            None => "-".to_owned(),
            Some((mean, None)) => mean,
            Some((mean, Some(sd))) => format!("{mean} ± {sd}"),
        };
        let cells: Vec<String> = cells(figure).into_iter().map(cell).collect();
        let _ = writeln!(text, "| {} | {} | {} |", figure.figure.name(), figure.figure.unit(), cells.join(" | "));
    }
    let others: Vec<usize> = (0..labels.len()).filter(|&setting| setting != header.baseline).collect();
    if !others.is_empty() {
        let heads: Vec<&str> = others.iter().map(|&setting| labels[setting].as_str()).collect();
        let _ = write!(
            text,
            "\nAgainst {} (95 % confidence; \\* outside both standard deviations):\n\n",
            labels[header.baseline]
        );
        let _ = writeln!(text, "| figure | {} |\n|---|{}", heads.join(" | "), "---|".repeat(heads.len()));
        for figure in &results.figures {
            let cell = |&setting: &usize| {
                let comparison = figure.settings[setting].as_ref().and_then(|own| own.comparison.as_ref());
                comparison.map_or(String::new(), |comparison| {
                    let mark = if comparison.published == Some(true) { " \\*" } else { "" };
                    format!("{}{mark}", comparison.describe(figure.figure.unit()))
                })
            };
            let cells: Vec<String> = others.iter().map(cell).collect();
            let _ = writeln!(text, "| {} | {} |", figure.figure.name(), cells.join(" | "));
        }
    }
    if !results.doubts.is_empty() {
        text.push_str("\nDoubtful:\n\n");
        for doubt in &results.doubts {
            let _ = writeln!(text, "- {}", doubt.to_string().replace('*', "\\*"));
        }
    }
    let _ = writeln!(text, "\n{}", results.answer_sentence(header));
    text
}
