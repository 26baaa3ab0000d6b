//! The reference page of fio's options and engines, written from their declarations.

use std::fmt::Write as _;

use iosched_workload::fio::{Category, EngineBehaviour, IO_ENGINES, JobOption, job_options};

const HEAD: &str = "\
# Options of fio

This page lists every option and every I/O engine of fio, and whether iosched supports it. For
example, `iodepth` is honoured, and `cpus_allowed` has no effect. The page [fio job
files](fio.md#support-of-options) explains the words of the third column. `iosched job options NAME`
prints the row of one option.

`cargo xtask reference` writes this page from the declarations in the code.
";

pub(crate) fn page() -> String {
    let mut page = HEAD.to_owned();
    for category in Category::ALL {
        let with_engine = category == Category::Engine;
        let _ = write!(page, "\n## {}\n\n", category.title());
        let (head, rule) = if with_engine { ("engines | ", "---|") } else { ("", "") };
        let _ = writeln!(page, "| option | {head}value | here | meaning |\n|---|{rule}---|---|---|");
        for option in job_options().filter(|option| option.category == category) {
            row(&mut page, option, with_engine);
        }
    }
    page.push_str("\n## I/O engines\n\n| engine | here |\n|---|---|\n");
    for engine in IO_ENGINES {
        let names: Vec<_> = engine.aliases.iter().chain([&engine.name]).map(|name| format!("`{name}`")).collect();
        let here = match engine.behaviour {
            EngineBehaviour::Runs { client, note } => {
                let kind = format!("{client:?}").to_lowercase();
                if note.is_empty() { format!("runs, {kind}") } else { format!("runs, {kind}: {note}") }
            }
            EngineBehaviour::Refused { why, instead: "" } => format!("not supported: {why}"),
            EngineBehaviour::Refused { why, instead } => format!("not supported: {why}; {instead}"),
        };
        let _ = writeln!(page, "| {} | {here} |", names.join(", "));
    }
    page
}

fn row(page: &mut String, option: &JobOption, with_engine: bool) {
    let names: Vec<_> = [option.name].iter().chain(option.aliases).map(|name| format!("`{name}`")).collect();
    let engines = if with_engine { format!("{} | ", option.engines.join(", ")) } else { String::new() };
    let reason = option.treatment.reason();
    let colon = if reason.is_empty() { "" } else { ": " };
    let here = format!("{}{colon}{reason}", option.treatment.name());
    let _ = writeln!(page, "| {} | {engines}{} | {here} | {} |", names.join(", "), option.kind, option.help);
}
