//! The reference pages, which are written from declarations: attributes and tunables, trace
//! formats, and fio's options.

mod fio;
mod traces;

use std::fmt::Write as _;

use iosched::{Registry, RequestQueue, Spec, TextSpec};
use iosched_kernel::attribute::{Choice, kernel_choices, kernel_numbers};

use crate::page;

/// Path of a page from the root of the repository, and the function that returns its text.
type Page = (&'static str, fn() -> String);

/// The longest line of a page, in columns. Lines of tables may be longer.
const COLUMNS_MAX: usize = 100;

const PAGES: [Page; 3] =
    [("docs/tunables.md", tunables), ("docs/traces.md", traces::page), ("docs/fio-options.md", fio::page)];

/// Arguments of `cargo xtask reference`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Check that the pages are up to date, and do not write them
    #[arg(long)]
    check: bool,
}

/// Writes or checks the pages.
pub(crate) fn run(args: &Args) -> anyhow::Result<std::process::ExitCode> {
    let files = PAGES.map(|(name, text)| (name.to_owned(), text()));
    page::write_or_check(&files, args.check, "reference")
}

fn tunables() -> String {
    let mut page = String::from(
        "# Attributes and tunables\n\n\
         This page lists the attributes of the request queue and the tunables of each scheduler. For example,\n\
         compare two settings of CFQ. The first has the defaults, and the second has two other values:\n\n\
         ```\n\
         iosched compare --workload docs/examples/mixed.fio --device sata-7200 \\\n    \
             --scheduler cfq --scheduler cfq:slice_idle=0,nr_requests=64\n\
         ```\n\n\
         If you write a value outside of the range, iosched refuses this value, and the tunable does not\n\
         change. If the column *range* contains the word `clamped`, iosched uses the nearest value in the\n\
         range instead. `iosched tune` tries only the values in the column *worth trying*.\n\
         `cargo xtask reference` writes this page from the declarations in the code.\n\n\
         ## The request queue\n\n\
         If you read the attribute `scheduler`, you get all schedulers, and the current scheduler is in\n\
         brackets. To select another scheduler, write its name to this attribute.\n\n",
    );
    table(&mut page, &RequestQueue::attribute_specs().collect::<Vec<_>>());
    page.push_str(
        "\nA setting with a blk-mq scheduler can also contain controllers: `io.max`, `io.latency`,\n\
         `io.weight`, `io.cost.qos` and `io.cost.model`. The page [Controllers](controllers.md) has the\n\
         syntax.\n",
    );
    page.push_str("\n## Attributes that only the kernel has\n\n");
    table(&mut page, &kernel_numbers().collect::<Vec<_>>());
    for Choice { name, values, doc } in kernel_choices() {
        let _ = writeln!(page, "| `{name}` | | | {} | | | {doc} |", values.join(", "));
    }
    for elevator in Registry::linux().elevators() {
        let about = filled(&format!("{}.", capitalised(elevator.about)));
        let _ = write!(page, "\n## {}\n\n{about}\n\n", elevator.name);
        let specs = (elevator.tunables)();
        if specs.is_empty() {
            page.push_str("No tunables.\n");
        } else {
            table(&mut page, &specs);
        }
        if !elevator.texts.is_empty() {
            page.push_str("\nThis scheduler also has these files:\n\n| name | takes | meaning |\n|---|---|---|\n");
            for TextSpec { name, takes, doc, .. } in elevator.texts {
                let takes = if takes.is_empty() { "read-only" } else { takes };
                let _ = writeln!(page, "| `{name}` | {takes} | {doc} |");
            }
        }
    }
    page
}

/// Wraps a paragraph into lines of at most 100 columns.
fn filled(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= COLUMNS_MAX {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn table(page: &mut String, specs: &[&Spec]) {
    page.push_str(
        "| name | unit | default | range | worth trying | kernels | meaning |\n|---|---|---|---|---|---|---|\n",
    );
    for spec in specs {
        let Spec { name, unit, min, max, doc, since, until, read_only, clamps, tuning, .. } = spec;
        let default = spec.number(spec.default);
        let mut range = if *read_only { "read-only".to_owned() } else { range(spec.number(*min), spec.number(*max)) };
        if *clamps {
            range.push_str(", `clamped`");
        }
        let until = until.unwrap_or("");
        let tuning = tuning.map_or(String::new(), |span| span.to_string());
        let _ = writeln!(page, "| `{name}` | {unit} | {default} | {range} | {tuning} | {since}..{until} | {doc} |");
    }
}

/// Formats a range. Leaves out an end that is only the limit of the type.
fn range(min: i128, max: i128) -> String {
    match (min <= i32::MIN.into(), max >= i128::from(i32::MAX) / 2) {
        (true, true) => "any".to_owned(),
        (true, false) => format!("..{max}"),
        (false, true) => format!("{min}.."),
        (false, false) => format!("{min}..{max}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn paragraphs_have_lines_of_at_most_100_columns() {
        let text = super::filled(&"word ".repeat(50));
        assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [99, 99, 49]);
    }

    use super::*;

    #[test]
    fn ranges_of_signed_numbers_have_a_sign() {
        assert_eq!(range(-20, 19), "-20..19");
        assert_eq!(range(1, u64::MAX.into()), "1..");
        assert_eq!(range(i32::MIN.into(), i32::MAX.into()), "any");
    }

    #[test]
    fn reference_pages_are_up_to_date() {
        for (name, text) in PAGES {
            let written = std::fs::read_to_string(page::path(name)).unwrap_or_default();
            assert_eq!(written, text(), "run `cargo xtask reference`");
        }
    }
}
