//! `iosched set`: attributes of disks, written and read back.

use std::io;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueHint};
use iosched_kernel::attribute::{Declaration, chosen, is_same};

use crate::fail::usage;
use crate::output;
use crate::tree::{Disks, Named, SYS_BLOCK};

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
    let declaration = disks.declaration(file);
    // A live disk says itself what is wrong; the kernel only that something is.
    if let Some(Declaration::Number(spec)) = declaration.filter(|_| disks.are_the_kernels)
        && !spec.read_only
        && let Err(error) = spec.parse(value)
    {
        bail!("{}: {error}", file.disk.name);
    }
    if let Err(error) = disks.tree.write(&file.path, value) {
        let is_unexplained = !error.explains && error.kind == io::ErrorKind::InvalidInput;
        match if is_unexplained { disks.takes(file) } else { None } {
            Some(takes) => bail!("{}: {value:?} is refused; {takes}", file.name),
            None => bail!("{error}"),
        }
    }
    let read = disks.tree.read(&file.path)?;
    let read = read.trim();
    if !is_same(declaration, read, value) {
        bail!("{}: {value} was written, and {read} is what it took", file.name);
    }
    Ok(chosen(read).to_owned())
}
