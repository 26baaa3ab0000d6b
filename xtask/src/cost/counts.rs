//! Instructions per request, counted by valgrind. All runs of the same program give the same count,
//! even if other programs use the machine. `xtask/counts.tsv` stores the counts, so that this
//! command detects an increase.
//!
//! [`Counter`] runs this program again under valgrind.

use std::fmt::Write as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail, ensure};
use iosched_judge::cost::{Column, CostError, Counter};
use iosched_judge::load::SHAPES;

use super::{rounded, wanted};
use crate::page;
use crate::parallel::on_all_processors;

/// Path of the stored counts, from the root of the repository.
const TABLE: &str = "xtask/counts.tsv";
const HEADER: &str = "elevator\tload\televator_instructions\twhole_instructions";
/// Largest increase over the recorded count, per cent. The second limit applies if the recorded
/// counts are from another compiler.
const MORE_PERCENT: f64 = 3.0;
const MORE_PERCENT_OF_OTHERS: f64 = 10.0;

/// Instructions per request of one case, with one decimal.
#[derive(Clone, PartialEq, Debug)]
struct Counts {
    elevator: String,
    load: String,
    alone: f64,
    whole: f64,
}

/// Counted or recorded instructions, and the compiler (`rustc -V`).
#[derive(Clone, PartialEq, Debug)]
struct Table {
    compiler: String,
    rows: Vec<Counts>,
}

fn compiler() -> Result<String> {
    let output = Command::new("rustc").arg("-V").output().context("rustc cannot be run")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Table {
    /// Counts every case whose name contains `only`. The name has the form `ELEVATOR SHAPE`.
    fn counted(only: Option<&str>) -> Result<Self> {
        let shapes: Vec<_> = SHAPES.iter().filter(|shape| !wanted(only, shape).is_empty()).collect();
        let loops = shapes.iter().map(|shape| (Column::Loop, "", shape.name));
        let names = shapes.iter().flat_map(|shape| wanted(only, shape).into_iter().map(|name| (name, shape.name)));
        let names: Vec<(&str, &str)> = names.collect();
        let columns = |&(elevator, load)| [Column::Elevator, Column::Whole].map(|column| (column, elevator, load));
        let cases: Vec<_> = loops.chain(names.iter().flat_map(columns)).collect();
        let counter = Counter::of_this_program(&["cost", "--counted"])?;
        let counts = on_all_processors(&cases, |(column, elevator, load)| counter.count(*column, elevator, load));
        let counts = counts.into_iter().collect::<Result<Vec<f64>, CostError>>()?;
        let found = |case| cases.iter().position(|other| *other == case).map_or(f64::NAN, |at| counts[at]);
        let tenth = |count| rounded(count, 1);
        for shape in &shapes {
            println!("the loop, {}: {:.1} instructions a request", shape.name, found((Column::Loop, "", shape.name)));
        }
        let row = |(elevator, load)| Counts {
            elevator: String::from(elevator),
            load: String::from(load),
            alone: tenth(found((Column::Elevator, elevator, load)) - found((Column::Loop, "", load))),
            whole: tenth(found((Column::Whole, elevator, load))),
        };
        Ok(Self { compiler: compiler()?, rows: names.into_iter().map(row).collect() })
    }

    /// Returns the text of the file.
    fn text(&self) -> String {
        let mut text = format!("# {}\n{HEADER}\n", self.compiler);
        for Counts { elevator, load, alone, whole } in &self.rows {
            let _ = writeln!(text, "{elevator}\t{load}\t{alone:.1}\t{whole:.1}");
        }
        text
    }

    fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let compiler =
            lines.next().and_then(|line| line.strip_prefix("# ")).context("its first line is no compiler")?;
        ensure!(lines.next() == Some(HEADER), "its second line is not {HEADER:?}");
        let row = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
            [elevator, load, alone, whole] => Ok(Counts {
                elevator: elevator.to_owned(),
                load: load.to_owned(),
                alone: alone.parse()?,
                whole: whole.parse()?,
            }),
            _ => bail!("{line:?} is not four columns"),
        };
        Ok(Self { compiler: compiler.to_owned(), rows: lines.map(row).collect::<Result<_>>()? })
    }

    /// Returns lines about the cases that need more instructions than in `recorded`, and then lines
    /// about the cases that need fewer. A case that was not recorded is in the first list.
    fn against(&self, recorded: &Self) -> (Vec<String>, Vec<String>) {
        let percent = if self.compiler == recorded.compiler { MORE_PERCENT } else { MORE_PERCENT_OF_OTHERS };
        let (mut dearer, mut cheaper) = (Vec::new(), Vec::new());
        for row in &self.rows {
            let name = format!("{} {}", row.elevator, row.load);
            let same = |other: &&Counts| (&other.elevator, &other.load) == (&row.elevator, &row.load);
            let Some(known) = recorded.rows.iter().find(same) else {
                dearer.push(format!("{name}: is not in {TABLE}"));
                continue;
            };
            for (column, now, then) in [("elevator", row.alone, known.alone), ("whole", row.whole, known.whole)] {
                let more = 100.0 * (now / then - 1.0);
                let line =
                    format!("{name}, {column}: {now:.1} instructions a request, {then:.1} recorded ({more:+.1} %)");
                if more > percent {
                    dearer.push(line);
                } else if more < -percent {
                    cheaper.push(line);
                }
            }
        }
        (dearer, cheaper)
    }
}

/// Counts, and prints, records or checks the counts.
pub(super) fn run(only: Option<&str>, record: bool, check: bool) -> Result<ExitCode> {
    let counted = Table::counted(only)?;
    if record {
        return page::write_or_check(&[(TABLE.to_owned(), counted.text())], false, "cost --instructions --record");
    }
    if !check {
        println!("\n{:34} {:>10} {:>10}", "instructions per request", "elevator", "whole");
        for Counts { elevator, load, alone, whole } in &counted.rows {
            println!("{:34} {alone:10.1} {whole:10.1}", format!("{elevator} {load}"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let text = std::fs::read_to_string(page::path(TABLE)).with_context(|| format!("{TABLE} cannot be read"))?;
    let recorded = Table::parse(&text).with_context(|| TABLE.to_owned())?;
    if counted.compiler != recorded.compiler {
        println!(
            "built by {}, recorded of {}: {MORE_PERCENT_OF_OTHERS} % are allowed instead of {MORE_PERCENT} %",
            counted.compiler, recorded.compiler
        );
    }
    let (dearer, cheaper) = counted.against(&recorded);
    if !cheaper.is_empty() {
        println!("takes less than recorded; `cargo xtask cost --instructions --record` keeps it so:");
        cheaper.iter().for_each(|line| println!("  {line}"));
    }
    if dearer.is_empty() {
        println!("{} cases counted, none takes more than recorded in {TABLE}", counted.rows.len());
        return Ok(ExitCode::SUCCESS);
    }
    dearer.iter().for_each(|line| eprintln!("{line}"));
    eprintln!(
        "error: {} counts are above {TABLE}: make them lower, or record them (`cargo xtask cost --instructions \
         --record`) and say why in the commit message",
        dearer.len()
    );
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(compiler: &str, rows: &[(&str, f64, f64)]) -> Table {
        let row = |&(elevator, alone, whole): &(&str, f64, f64)| Counts {
            elevator: elevator.to_owned(),
            load: "random".to_owned(),
            alone,
            whole,
        };
        Table { compiler: compiler.to_owned(), rows: rows.iter().map(row).collect() }
    }

    #[test]
    fn counts_table_round_trips() {
        let table = table("rustc 1.95.0 (59807616e 2026-04-14)", &[("cfq", 812.5, 1900.0), ("noop", 61.0, 900.1)]);
        assert_eq!(Table::parse(&table.text()).unwrap(), table);
        assert!(Table::parse("# rustc\n").is_err());
        assert!(Table::parse(&format!("# rustc\n{HEADER}\ncfq\t1\n")).is_err());
    }

    #[test]
    fn costs_changed_by_3_percent_and_new_ones_are_reported() {
        let recorded = table("a", &[("cfq", 1000.0, 2000.0), ("bfq", 1000.0, 2000.0), ("noop", 100.0, 200.0)]);
        let counted =
            table("a", &[("cfq", 1031.0, 2050.0), ("bfq", 1029.0, 2061.0), ("noop", 96.0, 200.0), ("none", 1.0, 2.0)]);
        let (dearer, cheaper) = counted.against(&recorded);
        let names = |lines: &[String]| lines.iter().map(|line| line.split(':').next().unwrap().to_owned()).collect();
        let dearer: Vec<String> = names(&dearer);
        assert_eq!(dearer, ["cfq random, elevator", "bfq random, whole", "none random"]);
        let cheaper: Vec<String> = names(&cheaper);
        assert_eq!(cheaper, ["noop random, elevator"]);
    }

    #[test]
    fn other_compiler_is_allowed_ten_percent_more() {
        let recorded = table("a", &[("cfq", 1000.0, 2000.0)]);
        assert!(table("b", &[("cfq", 1099.0, 2000.0)]).against(&recorded).0.is_empty());
        assert_eq!(table("b", &[("cfq", 1101.0, 2000.0)]).against(&recorded).0.len(), 1);
    }
}
