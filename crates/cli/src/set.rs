//! `iosched set`: writes attributes of disks and reads them back.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_attributes::{Disks, Earlier, Named, holds_root};
use iosched_kernel::settings::RULES;
use iosched_lab::request::{AttributeValue as Assignment, did_you_mean};
use iosched_live::Shares;

use crate::lasting::LastingRules;
use iosched_terminal::fail::{is_usage, report, usage};
use iosched_terminal::output::{self, WriteArgs, say};

/// Change attributes of disks
///
/// First, `iosched set` checks all values, and rejects wrong values. Then it writes the values in
/// the given order, reads back each value, and prints NAME=VALUE. If a write fails, or the kernel
/// stores a different value, `iosched set` stops with an error. The values that it already wrote
/// stay in force, and the error lists these values.
///
/// For a disk of the kernel, `iosched set` prints the previous values to standard error, and a command
/// that undoes the change. It also prints other attributes that the kernel changed as a result.
/// `iosched restore DISK` undoes all changes by `iosched set` and `iosched advise --apply` since
/// the system started.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SetArgs {
    /// A disk and attributes with new values, such as scheduler=cfq, nr_requests=64 or
    /// iosched/slice_idle=0
    ///
    /// Name a disk of the kernel as sda, /dev/sda, a mount point or a file on the disk. Name a
    /// served disk as live:NAME, or give its mount directory or its control socket. An attribute of
    /// a client is written as clients/3/ioprio=idle. Instead of a disk and an attribute you can
    /// write both in one word, such as sda/scheduler=bfq.
    #[arg(value_name = "DISK|NAME=VALUE", required = true)]
    words: Vec<String>,

    /// Use the disks in this directory, or this one disk, instead of the kernel's disks
    #[arg(long, value_name = "DIR|DISK", value_hint = ValueHint::AnyPath)]
    at: Option<PathBuf>,

    /// Also write to this directory a udev rule that sets the values at every boot; only for disks
    /// of the kernel
    ///
    /// The rule has the same form as the rule of `iosched advise`. It also keeps the values of
    /// earlier commands with --persist. To undo --persist, remove the rule.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = RULES,
          value_hint = ValueHint::DirPath)]
    persist: Option<PathBuf>,

    /// Allow new settings of the disk that holds the root file system; iosched requires this option only at a
    /// terminal
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    write: WriteArgs,
}

const EXAMPLES: &str = "Examples:
  iosched set sda/scheduler=bfq sda/iosched/low_latency=0
  iosched set /srv/data scheduler=mq-deadline --persist
  iosched set sda cgroup/backup.slice/io.max=wbps=50000000/wiops=100
  iosched set sda cgroup/io.cost.qos=enable=1 cgroup/db.slice/io.weight=800
  iosched set live:db scheduler=cfq slice_idle=0
  iosched set live:db clients/3/ioprio=idle
  iosched set live:db groups/backup/io.max=wbps=50000000/wiops=100
  iosched set live:db groups/old/remove=1";

fn assignment(text: &str) -> Result<Assignment> {
    text.parse().map_err(|error| {
        usage(format!(
            "{error}, such as scheduler=cfq (if this word is the directory for --persist, write \
             --persist=DIR)"
        ))
    })
}

pub(crate) fn run(args: &SetArgs) -> Result<ExitCode> {
    let (mut disks, words) = Disks::of(args.at.as_deref(), &args.words)?;
    if let (None, Some(word)) =
        (&args.at, words.first().filter(|word| words.len() == args.words.len() && !word.contains('=')))
    {
        let meant = did_you_mean(word, disks.disks.iter().map(|disk| disk.name.as_str()));
        return Err(usage(format!("{word}: this is neither a disk nor NAME=VALUE, such as scheduler=cfq{meant}")));
    }
    let assignments = words.iter().map(|word| assignment(word)).collect::<Result<Vec<_>>>()?;
    if assignments.is_empty() {
        return Err(usage(format!(
            "{}: NAME=VALUE is missing after the disk; add it, for example scheduler=cfq",
            args.words[0]
        )));
    }
    disks.check(&assignments)?;
    let files = files_of(&mut disks, &assignments);
    allows(&disks, &files, args.yes)?;
    let mut lasting = match &args.persist {
        Some(directory) => LastingRules::prepare(directory, &disks, &files, args.write)?,
        None => LastingRules::default(),
    };
    let earlier = Earlier::record(&disks, &files).unwrap_or_else(|error| {
        say!("warning: {error}; iosched restore cannot undo this change");
        Earlier::default()
    });
    let written = write(&mut disks, &assignments, &mut lasting);
    // If a scheduler was set together with its tunables, the files of the tunables exist only now.
    let files = files_of(&mut disks, &assignments);
    let code = written.map_or_else(|error| report(&error), |()| ExitCode::SUCCESS);
    earlier.report(&files).iter().for_each(|line| say!("{line}"));
    Ok(code)
}

/// Returns the files of the assignments that exist now.
fn files_of(disks: &mut Disks, assignments: &[Assignment]) -> Vec<Named> {
    assignments.iter().filter_map(|assignment| disks.only(assignment).ok()).collect()
}

/// Writes the values in their order, and adds them to the udev rules.
fn write(disks: &mut Disks, assignments: &[Assignment], lasting: &mut LastingRules) -> Result<()> {
    let mut done: Vec<String> = Vec::new();
    let mut written: Vec<Named> = Vec::new();
    for assignment in assignments {
        let value = disks.only(assignment).and_then(|file| {
            let value = disks.set(&file, &assignment.value)?;
            lasting.add(&file, assignment.value.trim());
            written.push(file);
            Ok(value)
        });
        let value = value.map_err(|error| with_done(error.into(), &done))?;
        let line = format!("{}={value}", assignment.name.trim_matches('/'));
        output::print(&format!("{line}\n"))?;
        done.push(line);
    }
    for shares in [Shares::Rates, Shares::Weights, Shares::Priorities] {
        if let Some(scheduler) = disks.ignores(&written, shares) {
            let (declared, written) = (shares.declared(), shares.written());
            say!("warning: {scheduler} ignores {declared}; set {written} to apply them");
        }
    }
    lasting.write(disks).map_err(|error| with_done(error, &done))
}

/// Adds the changes that were made before the error, and that stay in force, to an error.
fn with_done(error: anyhow::Error, done: &[String]) -> anyhow::Error {
    if done.is_empty() {
        return error;
    }
    let message = format!("{error}; the earlier changes of this command stay in force: {}", done.join(", "));
    if is_usage(&error) { usage(message) } else { anyhow::anyhow!(message) }
}

/// On a terminal, refuses to change the disk of the root file system unless `--yes` is given.
fn allows(disks: &Disks, files: &[Named], yes: bool) -> Result<()> {
    if yes || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(());
    }
    match holds_root(disks, files) {
        Some(file) => Err(usage(format_args!(
            "{disk}: the root file system is on this disk, so a wrong value may slow down or stop this machine. To \
             set the value, add --yes",
            disk = file.disk.name
        ))),
        None => Ok(()),
    }
}
