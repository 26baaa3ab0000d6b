//! The reference page of fio's options and engines, written from their declarations.

use std::fmt::Write as _;

use iosched_workload::fio::{Category, EngineBehaviour, IO_ENGINES, JobOption, job_options};

const HEAD: &str = "\
# fio job files

Written by `cargo xtask reference` from the declarations in the code. `iosched job check FILE` says what a file runs, what of it
has no effect and what is not supported; `iosched job options [NAME]` lists what is below.

## The language

- A file holds sections, `[name]`, with an option on each line, `option=value`. `;` and `#` begin a comment anywhere in a line, as
  in fio. `[global]` (any name that begins so) holds defaults for the jobs behind it; there may be several.
- `include FILE` takes a file's options into the section; its path is relative to the file that includes it, and it holds no
  sections. At most 16 files within each other, 256 in all.
- `${NAME}` is an environment variable. One that is not set, or empty, is the empty string, as in fio; where that leaves no value,
  the message names the variable. `$pagesize`, `$mb_memory` and `$ncpus` are those of the machine that reads the file; arithmetic
  may stand beside them: `8*$mb_memory`.
- Numbers: decimal or `0x`, with `k`, `m`, `g`, `t`, `p`, in either case, and `b` behind it if you like. With `kb_base=1024` (the
  default) `k` is 1024 and `ki` is 1000; with `kb_base=1000` the other way round. Both hold for a whole section.
- Times: `us`, `ms`, `s`, `m`, `h`, `d`; without a suffix the unit of the option.
- Expressions begin with a parenthesis: `(1024*4+2)*2`, `(4k*2)`; `+ - * / % ^`. Times without a suffix within one are in us.
- Values for reads, writes and trims stand in this order with `,` between. The last one holds for the directions behind it, unless
  a comma follows: `8k,32k,` leaves trims at their default.
- Shares that are left out (`4k/50:1k/:32k/`) get the rest, evenly. If all are given and are less than 100 % together, the rest goes
  to the largest.
- `numjobs` makes copies of one name; only the first waits (`stonewall`) or begins a group (`new_group`).

What is stricter than fio: where fio reads only the beginning of a value (`bs=4x`, `size=1.5m`, `loops=1,2`) or cuts shares off
that add up to more than 100 %, the value is refused with a message. At most 4,096 jobs with their copies.

## What becomes of an option

- **honoured**: it does what it says.
- **no effect**: it is accepted and told about; the device sees the same I/Os.
- **not supported**: it shapes I/O in a way that is not modelled. A file that uses it is refused, with the option, its line and,
  where there is one, another way.
- **with another**: it counts together with another option only, and stands or falls with that.
- **with its engine**: it belongs to an I/O engine that is not supported.

Exit status of `iosched job check`: 0 if the file can be run, 1 if it uses what is not supported, 2 if it is no valid job file.
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
