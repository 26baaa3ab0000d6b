//! Machine-readable results: one JSON document, CSV with one value per line, and Markdown tables.

use std::fmt::Write as _;

use anyhow::Result;
use iosched_lab::{
    Comparison, Decision, DeviceRecord, Doubt, FigureOverview, FigureResults, Group, Header, Outcome, Overview,
    SettingFigure, runs_in_words,
};
use serde_json::{Map, Value, json};

use super::overview::{ahead, title};
use super::{Page, Sheet, cells};

/// Returns all results as one document. With one device, the document has the plan and the results.
/// With several devices, it has an overview and a list of the devices' results.
pub fn json(page: &Page<'_>) -> Result<String> {
    let mut document = json!({ "plan": page.header });
    let fields = document.as_object_mut().into_iter();
    match (&page.overview, page.sheets.as_slice()) {
        (None, sheets) => fields.zip(sheets).for_each(|(fields, sheet)| fields.extend(results(sheet))),
        (Some(across_devices), sheets) => {
            let device = |sheet: &Sheet<'_>| {
                let mut device = Map::from_iter([("device".to_owned(), sheet.device.name.as_str().into())]);
                device.extend(results(sheet));
                Value::Object(device)
            };
            let devices: Vec<Value> = sheets.iter().map(device).collect();
            fields.for_each(|fields| {
                fields.insert("devices".to_owned(), devices.clone().into());
                fields.insert("overview".to_owned(), overview(page.header, across_devices));
            });
        }
    }
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn overview(header: &Header, overview: &Overview) -> Value {
    let names = |settings: &[usize]| -> Vec<&str> {
        settings.iter().map(|&setting| header.settings[setting].label.as_str()).collect()
    };
    let device = |(device, outcome): (&DeviceRecord, &Outcome)| {
        let outcome = match outcome {
            Outcome::Unknown => json!({ "outcome": "unknown" }),
            Outcome::Equal => json!({ "outcome": "equal" }),
            Outcome::Idle => json!({ "outcome": "idle" }),
            Outcome::CannotTell { runs_needed } => json!({ "outcome": "cannot_tell", "runs_needed": runs_needed }),
            Outcome::NothingBetter => json!({ "outcome": "nothing_better" }),
            Outcome::Best { settings, margin } => json!({
                "outcome": "best",
                "settings": names(settings),
                "setting": names(&[margin.setting])[0],
                "than": names(&[margin.than])[0],
                "comparison": margin.comparison,
            }),
        };
        let mut fields = Map::from_iter([("device".to_owned(), device.name.as_str().into())]);
        fields.extend(outcome.as_object().cloned().unwrap_or_default());
        Value::Object(fields)
    };
    let figure = |figure: &FigureOverview| {
        json!({
            "metric": figure.figure.id(),
            "devices": header.devices.iter().zip(&figure.devices).map(device).collect::<Vec<_>>(),
            "best_everywhere": names(&figure.everywhere),
            "served": names(&figure.served),
        })
    };
    json!({
        "metrics": overview.figures.iter().map(figure).collect::<Vec<_>>(),
        "shared_doubts": overview.shared_doubts.iter().map(doubt).collect::<Vec<_>>(),
        "decision": {
            "text": overview.sentences.join("\n"),
            "sentences": overview.sentences,
            "judged": overview.judged,
        },
    })
}

fn doubt(doubt: &Doubt) -> Value {
    let mut value = serde_json::to_value(doubt).unwrap_or(Value::Null);
    if let Value::Object(fields) = &mut value {
        fields.insert("message".to_owned(), doubt.to_string().into());
    }
    value
}

/// Returns a decision: its kind, the setting to use, the metric that decided, and its sentences.
pub(super) fn decision<'l>(decision: &Decision, label: impl Fn(usize) -> &'l str + Copy) -> Value {
    json!({
        "kind": decision.kind,
        "setting": decision.setting.map(label),
        "otherwise": decision.otherwise.map(label),
        "metric": decision.metric,
        "text": decision.to_string(),
        "sentences": decision.sentences,
        "judged": decision.judged,
    })
}

/// Returns the results of one device.
fn results(sheet: &Sheet<'_>) -> Map<String, Value> {
    let Sheet { header, results, .. } = sheet;
    let label = |setting: usize| header.settings[setting].label.as_str();
    let figure = |results: &FigureResults| {
        let of_setting = |(setting, figure): (usize, &Option<SettingFigure>)| {
            let mut value = serde_json::to_value(figure).unwrap_or(Value::Null);
            if let Value::Object(fields) = &mut value {
                fields.insert("setting".to_owned(), label(setting).into());
            }
            value
        };
        let settings: Vec<Value> =
            results.settings.iter().enumerate().map(of_setting).filter(|v| !v.is_null()).collect();
        json!({
            "metric": results.figure.id(),
            "name": results.label,
            "unit": results.figure.unit(),
            "better": results.figure.direction(),
            "about": results.figure.doc(),
            "settings": settings,
        })
    };
    let group = |group: &Group| {
        let settings: Vec<&str> = group.settings.iter().map(|&setting| label(setting)).collect();
        let Group { figures, is_certain, runs_needed, .. } = group;
        json!({ "settings": settings, "metrics": figures, "told": is_certain, "runs_needed": runs_needed })
    };
    let answer = &results.answer;
    let answer = json!({
        "best": answer.best.iter().map(group).collect::<Vec<_>>(),
        "served": answer.served.iter().map(group).collect::<Vec<_>>(),
        "served_only": answer.served_only,
        "equal": answer.equal,
        "cannot_tell": answer.open.as_ref().map(group),
        "idle_percent": answer.idle_percent.map(|percent| 100.0 - percent),
        "equal_within_percent": answer.equal_within_percent,
    });
    let sentences: Vec<Value> = (0..header.settings.len())
        .filter_map(|setting| {
            Some(json!({ "setting": label(setting), "sentence": results.sentence(header, setting)? }))
        })
        .collect();
    let document = json!({
        "rounds": results.rounds,
        "simulated_ns": results.simulated_ns,
        "simulated_ios": results.simulated_ios,
        "metrics": results.figures.iter().map(figure).collect::<Vec<_>>(),
        "doubts": results.doubts.iter().map(doubt).collect::<Vec<_>>(),
        "sentences": sentences,
        "answer": answer,
        "decision": decision(&results.decision, |setting| label(setting)),
    });
    document.as_object().cloned().unwrap_or_default()
}

/// Returns one line per metric and setting, and per device if there are several devices. Numbers
/// are not rounded. A difference is the value minus the baseline, in the unit of the metric.
pub fn csv(page: &Page<'_>) -> String {
    let several = page.overview.is_some();
    let mut text = if several { "device," } else { "" }.to_owned();
    text.push_str("metric,unit,setting,mean,sd,n,diff,ci_low,ci_high,verdict,published_rule,level\n");
    for Sheet { header, device, results, .. } in &page.sheets {
        let device = if several { field(&device.name) + "," } else { String::new() };
        for results in &results.figures {
            for (setting, figure) in results.settings.iter().enumerate() {
                let Some(figure) = figure else { continue };
                let label = field(&header.settings[setting].label);
                let (id, unit, mean, n) =
                    (results.figure.id(), results.figure.unit(), figure.mean, figure.values.len());
                let comparison = figure.comparison.as_ref().map_or_else(|| ",,,baseline,,".to_owned(), compared);
                let _ = writeln!(text, "{device}{id},{unit},{label},{mean},{},{n},{comparison}", optional(figure.sd));
            }
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
        comparison.level
    )
}

fn optional(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Quotes a field according to RFC 4180.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns the decision, tables of the metrics and of the verdicts, and the doubts. With several
/// devices, the parts of each device follow one another, and the best setting of each device comes
/// last.
pub fn markdown(page: &Page<'_>) -> String {
    let header = page.header;
    let Some(overview) = &page.overview else {
        let of_one = |sheet: &Sheet<'_>| {
            let DeviceRecord { name, about, .. } = sheet.device;
            let head = format!(
                "{}\n\n`{}` on `{name}` ({about}), {} runs each\n\n",
                marked(&sheet.results.decision.to_string()),
                header.workload.name,
                page.rounds()
            );
            head + &sheet_markdown(sheet)
        };
        return page.sheets.iter().map(of_one).collect();
    };
    let sentences: Vec<String> =
        overview.sentences.iter().chain(&overview.judged).map(|sentence| marked(sentence) + "\n\n").collect();
    let mut text = format!(
        "{}`{}` on {} devices, {} runs of each setting on each device\n",
        sentences.concat(),
        header.workload.name,
        page.sheets.len(),
        page.rounds()
    );
    for sheet in &page.sheets {
        let DeviceRecord { name, about, .. } = sheet.device;
        let _ = write!(text, "\n## `{name}`\n\n{about}\n\n{}", sheet_markdown(sheet));
    }
    let _ = writeln!(text, "\n## Which setting wins where");
    if !overview.figures.is_empty() {
        let _ = writeln!(text, "\n{}\n\n{}", capital(&title(header)), wins(header, overview));
    }
    text.push_str(&doubts("Doubts on every device", &overview.shared_doubts));
    text
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// Returns a table with a row per device and a column per metric.
fn wins(header: &Header, overview: &Overview) -> String {
    let heads: Vec<&str> = overview.figures.iter().map(|figure| figure.label.as_str()).collect();
    let mut text = format!("| device | {} |\n|---|{}", heads.join(" | "), "---|".repeat(heads.len()));
    for (number, device) in header.devices.iter().enumerate() {
        let cell = |figure: &FigureOverview| match &figure.devices[number] {
            Outcome::Unknown => "-".to_owned(),
            Outcome::Equal => "equal".to_owned(),
            Outcome::Idle => "idle".to_owned(),
            Outcome::NothingBetter => "nothing is better".to_owned(),
            Outcome::CannotTell { runs_needed: Some(runs) } => {
                format!("cannot tell, needs {}", runs_in_words(*runs))
            }
            Outcome::CannotTell { runs_needed: None } => "cannot tell".to_owned(),
            Outcome::Best { settings, margin } => {
                let best: Vec<String> = settings.iter().map(|&s| format!("`{}`", header.settings[s].label)).collect();
                format!("{}: {}", best.join(", "), ahead(header, figure, margin))
            }
        };
        let cells: Vec<String> = overview.figures.iter().map(cell).collect();
        let _ = write!(text, "\n| `{}` | {} |", device.name, cells.join(" | "));
    }
    text
}

/// Escapes the asterisks of a text for Markdown.
fn marked(text: &str) -> String {
    text.replace('*', "\\*")
}

fn doubts(title: &str, doubts: &[Doubt]) -> String {
    let mut text = String::new();
    if !doubts.is_empty() {
        let _ = writeln!(text, "\n{title}:\n");
    }
    for doubt in doubts {
        let _ = writeln!(text, "- {}", marked(&doubt.to_string()));
    }
    text
}

fn sheet_markdown(sheet: &Sheet<'_>) -> String {
    let Sheet { header, results, .. } = sheet;
    let labels: Vec<String> = header.settings.iter().map(|setting| format!("`{}`", setting.label)).collect();
    let mut text = format!("| metric | unit | {} |\n|---|---|{}\n", labels.join(" | "), "---:|".repeat(labels.len()));
    for figure in &results.figures {
        let cell = |cell| match cell {
            None => "-".to_owned(),
            Some((mean, None)) => mean,
            Some((mean, Some(sd))) => format!("{mean} ± {sd}"),
        };
        let cells: Vec<String> = cells(figure).into_iter().map(cell).collect();
        let _ = writeln!(text, "| {} | {} | {} |", figure.label, figure.figure.unit(), cells.join(" | "));
    }
    let others: Vec<usize> = (0..labels.len()).filter(|&setting| setting != header.baseline).collect();
    if !others.is_empty() {
        let heads: Vec<&str> = others.iter().map(|&setting| labels[setting].as_str()).collect();
        let _ = write!(text, "\nDifference from {} (95 % confidence for all rows):\n\n", labels[header.baseline]);
        let _ = writeln!(text, "| metric | {} |\n|---|{}", heads.join(" | "), "---|".repeat(heads.len()));
        for figure in &results.figures {
            let cell = |&setting: &usize| {
                let comparison = figure.settings[setting].as_ref().and_then(|value| value.comparison.as_ref());
                comparison.map_or(String::new(), |comparison| comparison.describe(figure.figure.unit()))
            };
            let cells: Vec<String> = others.iter().map(cell).collect();
            let _ = writeln!(text, "| {} | {} |", figure.label, cells.join(" | "));
        }
    }
    text.push_str(&doubts("Doubts", &sheet.doubts));
    text
}
