//! The output of `iosched job check`.

use std::fmt::Write as _;

use iosched_lab::grouped;
use iosched_workload::fio::{CheckedJobs, Files, Job, JobLine};
use serde_json::{Value, json};

use super::describe;
use crate::show::{Column, Look, Tone, set};

/// A row of the table: a job and the number of its copies.
struct Row<'a> {
    job: &'a Job,
    number: usize,
    copies: usize,
}

/// Returns the rows. All copies of a job share one row.
fn rows(jobs: &[Job]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        match rows.last_mut() {
            Some(row) if job.copy > 0 && row.job.line == job.line && row.job.name == job.name => row.copies += 1,
            _ => rows.push(Row { job, number, copies: 1 }),
        }
    }
    rows
}

/// Returns a column of the table. `None` if all its cells are empty.
fn column(head: &str, rows: &[Row<'_>], tell: impl Fn(&Row<'_>) -> String) -> Option<Column> {
    let cells: Vec<_> = rows.iter().map(|row| (tell(row), Tone::Plain)).collect();
    let is_empty = cells.iter().all(|(text, _)| text.is_empty());
    (!is_empty).then(|| Column { head: head.to_owned(), note: None, cells })
}

/// Returns the output as text.
pub fn text(checked: &CheckedJobs, look: Look) -> String {
    let rows = rows(&checked.jobs);
    let heads: Vec<String> = rows.iter().map(|row| row.job.name.clone()).collect();
    let columns: Vec<Column> = [
        column("copies", &rows, |row| if row.copies > 1 { grouped(row.copies as u64) } else { String::new() }),
        column("rw", &rows, |row| describe::pattern(row.job)),
        column("bs", &rows, |row| describe::block_size(row.job)),
        column("of", &rows, |row| describe::target(row.job)),
        column("size", &rows, |row| describe::region(row.job)),
        column("until", &rows, |row| describe::end(row.job)),
        column("engine", &rows, |row| row.job.io_engine.clone()),
        column("depth", &rows, |row| describe::depth(row.job)),
        column("cache", &rows, |row| describe::cache(row.job)),
        column("pace", &rows, |row| describe::pace(row.job)),
        column("prio", &rows, |row| describe::priority(row.job)),
        column("cgroup", &rows, |row| describe::cgroup(row.job)),
        column("starts", &rows, |row| describe::start(row.job, row.number == 0)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut text = set(&heads, &columns, look);
    let remarks = checked
        .remarks
        .iter()
        .map(|remark| (&remark.place, assignment(&remark.option, &remark.value), remark.why.clone()));
    notes(&mut text, "Without effect:", look, remarks);
    let refusals = checked.refusals.iter().map(|refusal| {
        let instead = if refusal.instead.is_empty() { String::new() } else { format!("; {}", refusal.instead) };
        (&refusal.place, assignment(&refusal.option, &refusal.value), format!("{}{instead}", refusal.why))
    });
    notes(&mut text, "Not supported:", look, refusals);
    let jobs = match checked.jobs.len() {
        1 => "1 job".to_owned(),
        jobs => format!("{} jobs", grouped(jobs as u64)),
    };
    let verdict = match checked.refusals.len() {
        0 => look.paint(&format!("{} can be run: {jobs}.", checked.name), Tone::Good),
        1 => look.paint(&format!("{} cannot be run: one option is not supported.", checked.name), Tone::Bad),
        many => look.paint(&format!("{} cannot be run: {many} options are not supported.", checked.name), Tone::Bad),
    };
    let _ = writeln!(text, "\n{verdict}");
    text
}

fn assignment(option: &str, value: &str) -> String {
    if value.is_empty() { option.to_owned() } else { format!("{option}={value}") }
}

/// Largest number of lines that are listed for one reason. Further lines are only counted.
const LINES_MAX: usize = 6;

/// Writes notes about options. Lines with the same option and reason share a note.
fn notes<'a>(text: &mut String, title: &str, look: Look, all: impl Iterator<Item = (&'a JobLine, String, String)>) {
    let mut grouped: Vec<(Vec<&JobLine>, String, String)> = Vec::new();
    for (place, option, why) in all {
        match grouped.iter_mut().find(|(_, known, reason)| *known == option && *reason == why) {
            Some((places, ..)) => places.push(place),
            None => grouped.push((vec![place], option, why)),
        }
    }
    if grouped.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}");
    for (places, option, why) in grouped {
        let _ = writeln!(text, "{}", look.wrap(&format!("  {}: {option}: {why}", lines(&places)), "    "));
    }
}

fn lines(places: &[&JobLine]) -> String {
    let line = |place: &&JobLine| match &place.included_at {
        None => place.line.to_string(),
        Some(_) => place.to_string(),
    };
    let shown: Vec<String> = places.iter().take(LINES_MAX).map(line).collect();
    let word = if places.len() == 1 { "line" } else { "lines" };
    let more = places.len().saturating_sub(LINES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{word} {}{more}", shown.join(", "))
}

/// Returns the output as JSON.
pub fn json(checked: &CheckedJobs) -> Value {
    let remarks = checked.remarks.iter().map(|remark| {
        json!({ "file": &*remark.place.file, "line": remark.place.line, "option": remark.option, "value": remark.value,
            "why": remark.why })
    });
    let refusals = checked.refusals.iter().map(|refusal| {
        json!({ "file": &*refusal.place.file, "line": refusal.place.line, "option": refusal.option,
            "value": refusal.value, "why": refusal.why, "instead": refusal.instead })
    });
    json!({
        "file": checked.name,
        "runs": checked.refusals.is_empty(),
        "jobs": checked.jobs.iter().enumerate().map(|(number, job)| json_of(number, job)).collect::<Vec<_>>(),
        "without_effect": remarks.collect::<Vec<_>>(),
        "not_supported": refusals.collect::<Vec<_>>(),
    })
}

fn json_of(number: usize, job: &Job) -> Value {
    let files = match &job.files {
        Files::Named(names) => json!(names),
        Files::Own(files) => json!({ "own": files }),
    };
    let options = |options: &[(String, String)]| {
        options.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<serde_json::Map<_, _>>()
    };
    json!({
        "name": job.name,
        "line": job.line,
        "copy": job.copy,
        "group": job.group,
        "rw": describe::pattern(job),
        "bs": describe::block_size(job),
        "files": files,
        "size": describe::region(job),
        "until": describe::end(job),
        "ioengine": job.io_engine,
        "iodepth": job.io_depth,
        "depth": describe::depth(job),
        "cache": describe::cache(job),
        "pace": describe::pace(job),
        "prio": describe::priority(job),
        "cgroup": describe::cgroup(job),
        "starts": describe::start(job, number == 0),
        "stonewall": job.stonewall,
        "wait_for": job.wait_for,
        "options": options(&job.options),
        "global_options": options(&job.global_options),
    })
}
