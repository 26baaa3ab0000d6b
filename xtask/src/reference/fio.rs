//! The reference page of fio's options and engines, written from their declarations.

use std::fmt::Write as _;

use iosched_workload::fio::{Category, Client, EngineBehaviour, IO_ENGINES, JobOption, job_options};

const HEAD: &str = "\
# Options of fio

This page lists every option and every I/O engine of fio, and whether iosched supports it. For
example, `iodepth` is honoured, and `cpus_allowed` has no effect. The page [fio job
files](fio.md#support-of-options) explains the words of the column *in iosched*.
`iosched job options NAME` describes one option.

`cargo xtask reference` writes this page from the declarations in the code.
";

pub(crate) fn page() -> String {
    let mut page = HEAD.to_owned();
    for category in Category::ALL {
        let with_engine = category == Category::Engine;
        let _ = write!(page, "\n## {}\n\n", category.title());
        let (head, rule) = if with_engine { ("engines | ", "---|") } else { ("", "") };
        let _ = writeln!(page, "| option | {head}value | in iosched | meaning |\n|---|{rule}---|---|---|");
        for option in job_options().filter(|option| option.category == category) {
            row(&mut page, option, with_engine);
        }
    }
    page.push_str("\n## I/O engines\n\n| engine | in iosched |\n|---|---|\n");
    for engine in IO_ENGINES {
        let names: Vec<_> = engine.aliases.iter().chain([&engine.name]).map(|name| format!("`{name}`")).collect();
        let here = match engine.behaviour {
            EngineBehaviour::Runs { client, note } => {
                let kind = match client {
                    Client::Sync => "synchronous",
                    Client::Async => "asynchronous",
                };
                let colon = if note.is_empty() { "" } else { ": " };
                format!("supported, {kind}{colon}{note}")
            }
            EngineBehaviour::Refused { why, instead: "" } => format!("not supported: {why}"),
            EngineBehaviour::Refused { why, instead } => format!("not supported: {why}. Instead, {instead}"),
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
