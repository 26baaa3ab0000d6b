//! `iosched set`: attributes of disks, written and read back.

use std::io;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueHint};

use crate::fail::usage;
use crate::output;
use crate::tree::{Disks, Named, SYS_BLOCK, present};

/// Write attributes of disks
///
/// Values are written in the order given, read back, and printed as NAME=VALUE. What one is refused ends it; those before
/// it stay written.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SetArgs {
    /// An attribute and its new value, as scheduler=cfq, nr_requests=64, iosched/slice_idle=0 or clients/3/ioprio=idle; where
    /// there are several disks, with the disk's name as sda/scheduler=bfq
    #[arg(value_name = "NAME=VALUE", required = true, value_parser = assignment)]
    assignments: Vec<Assignment>,

    /// Whose: a directory of disks, one disk, the directory of a mounted disk, or a control socket
    #[arg(long, value_name = "TREE", default_value = SYS_BLOCK, value_hint = ValueHint::AnyPath)]
    at: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  iosched set sda/scheduler=bfq sda/iosched/low_latency=0
  iosched set --at /mnt/disk scheduler=cfq slice_idle=0
  iosched set --at /run/iosched.control clients/3/ioprio=idle";

#[derive(Clone, Debug)]
struct Assignment {
    name: String,
    value: String,
}

fn assignment(text: &str) -> Result<Assignment, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() && !value.contains('\n') => {
            Ok(Assignment { name: name.to_owned(), value: value.to_owned() })
        }
        _ => Err("is not NAME=VALUE, such as scheduler=cfq".to_owned()),
    }
}

pub(crate) fn run(args: &SetArgs) -> Result<()> {
    let mut disks = Disks::open(&args.at)?;
    for assignment in &args.assignments {
        let file = only(&mut disks, assignment)?;
        let value = set(&mut disks, &file, &assignment.value)?;
        output::print(&format!("{}={value}\n", assignment.name.trim_matches('/')))?;
    }
    Ok(())
}

/// The one file that is meant.
fn only(disks: &mut Disks, Assignment { name, value }: &Assignment) -> Result<Named> {
    let mut found = disks.find(name)?;
    match found.as_slice() {
        [_] => Ok(found.remove(0)),
        _ => {
            let first = &found[0].disk.name;
            let all: Vec<_> = found.iter().map(|file| file.disk.name.as_str()).collect();
            Err(usage(format!(
                "{name}: of which disk? There are {}; write {first}/{name}={value}, or name one with --at",
                all.join(", ")
            )))
        }
    }
}

/// Writes, and reads back.
fn set(disks: &mut Disks, file: &Named, value: &str) -> Result<String> {
    if let Err(error) = disks.tree.write(&file.path, value) {
        let is_unexplained = !error.explains && error.kind == io::ErrorKind::InvalidInput;
        match if is_unexplained { disks.takes(file) } else { None } {
            Some(takes) => bail!("{}: {value:?} is refused; {takes}", file.name),
            None => bail!("{error}"),
        }
    }
    let read = disks.tree.read(&file.path)?;
    let read = read.trim();
    if !is_same(read, value) {
        bail!("{}: {value} was written, and {read} is what it took", file.name);
    }
    Ok(present(read).to_owned())
}

/// Whether what is read is what was written: the same text, the same number, or the choice in brackets.
fn is_same(read: &str, written: &str) -> bool {
    let written = written.trim();
    let number = |text: &str| text.parse::<i128>().ok();
    read == written || present(read) == written || (number(read).is_some() && number(read) == number(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_back_is_what_was_written() {
        for (read, written, same) in [
            ("64", "64", true),
            ("64", " 064\n", true),
            ("63", "64", false),
            ("noop [cfq] deadline", "cfq", true),
            ("noop [cfq] deadline", "noop", false),
            ("be/4", "be/4", true),
            ("none", "none", true),
        ] {
            assert_eq!(is_same(read, written), same, "{read:?} {written:?}");
        }
    }
}
