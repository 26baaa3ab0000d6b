//! `iosched set`: attributes of disks, written and read back.

mod before;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, ValueHint};
use iosched::Registry;
use iosched_kernel::attribute::{Declaration, chosen, declaration, is_exactly, is_same};
use iosched_kernel::settings::{RULES, SettingsError};
use iosched_lab::asked::{AttributeValue as Assignment, did_you_mean, settings_meant};
use iosched_live::Shares;

use crate::fail::{is_usage, report, usage};
use crate::lasting::LastingRules;
use crate::output::{self, WriteArgs, say};
use crate::tree::{Disks, Named, wrong_value};
use before::{Earlier, allows};

/// Change attributes of disks
///
/// Before the first write, set checks all values and rejects those that are known to be wrong. It writes the values in
/// the given order, reads each one back, and prints NAME=VALUE. If a write fails, or the value read back differs, set
/// stops with an error. Values that set has already written stay in force, and the error lists them.
///
/// For a disk of the kernel, set also prints to standard error how to undo the change, the previous values, and other
/// attributes that the kernel changed. `iosched restore DISK` goes back to the settings before the first change since
/// the system started.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SetArgs {
    /// A disk, then attributes with new values, such as scheduler=cfq, nr_requests=64 or iosched/slice_idle=0
    ///
    /// Name a disk of the kernel as sda, /dev/sda, a mount point or a file on the disk. Name a served disk as
    /// live:NAME, by the directory it is mounted on, or by its control socket. An attribute of a client is written as
    /// clients/3/ioprio=idle. Instead of a disk and an attribute you can write both in one word, such as
    /// sda/scheduler=bfq.
    #[arg(value_name = "DISK|NAME=VALUE", required = true)]
    words: Vec<String>,

    /// Search this directory of disks, or this disk, instead of the kernel's disks
    #[arg(long, value_name = "DIR|DISK", value_hint = ValueHint::AnyPath)]
    at: Option<PathBuf>,

    /// Also write a udev rule to this directory, which sets the values at every boot; only for disks of the kernel
    ///
    /// The rule has the same form as that of `iosched advise`. It also keeps the values of earlier commands with
    /// --persist. To undo --persist, remove the rule.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = RULES,
          value_hint = ValueHint::DirPath)]
    persist: Option<PathBuf>,

    /// Do not ask before changing the disk of the root file system; iosched asks only at a terminal
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

/// Where tunables are: they come and go with the scheduler.
const TUNABLES: &str = "queue/iosched/";

fn assignment(text: &str) -> Result<Assignment> {
    text.parse().map_err(|error| {
        usage(format!("{error}, such as scheduler=cfq (write the directory of --persist as --persist=DIR)"))
    })
}

pub(crate) fn run(args: &SetArgs) -> Result<ExitCode> {
    let (mut disks, words) = Disks::of(args.at.as_deref(), &args.words)?;
    if let (None, Some(word)) =
        (&args.at, words.first().filter(|word| words.len() == args.words.len() && !word.contains('=')))
    {
        let meant = did_you_mean(word, disks.disks.iter().map(|disk| disk.name.as_str()));
        return Err(usage(format!("{word}: is neither a disk nor NAME=VALUE, such as scheduler=cfq{meant}")));
    }
    let assignments = words.iter().map(|word| assignment(word)).collect::<Result<Vec<_>>>()?;
    if assignments.is_empty() {
        return Err(usage(format!("{}: missing NAME=VALUE after the disk, such as scheduler=cfq", args.words[0])));
    }
    check(&mut disks, &assignments)?;
    let files = assignments.iter().filter_map(|own| only(&mut disks, own).ok()).collect::<Vec<_>>();
    allows(&disks, &files, args.yes)?;
    let mut lasting = match &args.persist {
        Some(directory) => LastingRules::prepare(directory, &disks, &files, args.write)?,
        None => LastingRules::default(),
    };
    let earlier = Earlier::record(&disks, &files);
    let written = write(&mut disks, &assignments, &mut lasting);
    // A tunable of a scheduler that was chosen with it is found now.
    let files = assignments.iter().filter_map(|own| only(&mut disks, own).ok()).collect::<Vec<_>>();
    let code = written.map_or_else(|error| report(&error), |()| ExitCode::SUCCESS);
    earlier.tell(&files);
    Ok(code)
}

/// Writes the values in their order, and what is to last.
fn write(disks: &mut Disks, assignments: &[Assignment], lasting: &mut LastingRules) -> Result<()> {
    let mut done: Vec<String> = Vec::new();
    let mut written: Vec<Named> = Vec::new();
    for assignment in assignments {
        let value = only(disks, assignment).and_then(|file| {
            let value = set(disks, &file, &assignment.value)?;
            lasting.add(&file, assignment.value.trim());
            written.push(file);
            Ok(value)
        });
        let value = value.map_err(|error| with_done(error, &done))?;
        let line = format!("{}={value}", assignment.name.trim_matches('/'));
        output::print(&format!("{line}\n"))?;
        done.push(line);
    }
    [Shares::Weights, Shares::Priorities].into_iter().for_each(|shares| warn_if_ignored(disks, &written, shares));
    lasting.write(disks).map_err(|error| with_done(error, &done))
}

/// Says what to do if shares of a served disk were written that its scheduler takes no notice of.
fn warn_if_ignored(disks: &mut Disks, written: &[Named], shares: Shares) {
    let is_share = |file: &&Named| match file.of_disk().split('/').collect::<Vec<_>>()[..] {
        ["groups" | "clients", _, "weight"] => shares == Shares::Weights,
        ["clients", _, "ioprio"] => shares == Shares::Priorities,
        _ => false,
    };
    let Some(file) = written.iter().find(is_share) else { return };
    let Some(scheduler) = disks.scheduler(&file.disk) else { return };
    let tunable = |name: &str| {
        let text = disks.tree.read(&file.disk.path_of(&format!("{TUNABLES}{name}"))).ok()?;
        text.trim().parse().ok()
    };
    if shares.are_ignored_by(&scheduler, tunable) {
        let (declared, kept) = (shares.declared(), shares.written());
        say!("warning: {scheduler} ignores {declared}; set {kept} to apply them");
    }
}

/// What is known to be wrong with any assignment is told before anything is written.
fn check(disks: &mut Disks, assignments: &[Assignment]) -> Result<()> {
    // The schedulers that will be there by then, by disk.
    let mut switched: BTreeMap<String, String> = BTreeMap::new();
    for assignment in assignments {
        let found = only(disks, assignment);
        // A tunable of the scheduler that is there is none of the one that is to come.
        let goes = |file: &Named| switched.contains_key(&file.disk.name) && file.of_disk().starts_with(TUNABLES);
        let file = match found {
            Ok(file) if !goes(&file) => file,
            Err(error) if switched.is_empty() => return Err(error),
            // Of a scheduler that is yet to come.
            found => match wrong_later(&switched, found.ok().map(|file| file.disk.name).as_deref(), assignment) {
                Some(problem) => return Err(usage(problem)),
                None => continue,
            },
        };
        let present = || disks.scheduler(&file.disk).unwrap_or_default();
        let scheduler = switched.get(&file.disk.name).cloned().unwrap_or_else(present);
        if let Some(problem) = disks.wrong(&file, &scheduler, &assignment.value) {
            return Err(usage(problem));
        }
        if file.of_disk() == "queue/scheduler" {
            switched.insert(file.disk.name, assignment.value.trim().to_owned());
        }
    }
    Ok(())
}

/// What is known to be wrong with a tunable of one of the schedulers that will be there, by disk; of that of `disk`, if
/// it is known.
fn wrong_later(
    switched: &BTreeMap<String, String>,
    disk: Option<&str>,
    Assignment { name, value }: &Assignment,
) -> Option<String> {
    let (named, name) = Assignment::parts(name, switched.keys().map(String::as_str));
    let disk = named.or(disk);
    let (place, tunable) = name.rsplit_once('/').unwrap_or(("", name));
    let those = || switched.iter().filter(|(own, _)| disk.is_none_or(|disk| disk == *own));
    let path = format!("iosched/{tunable}");
    let mut declared = those().filter_map(|(disk, own)| Some((disk, declaration(&path, own)?))).peekable();
    if declared.peek().is_some() {
        return declared.find_map(|(disk, own)| own.check(value).err().map(|error| wrong_value(disk, &error)));
    }
    // What is of a client or a group is no tunable, and what an elevator of others has is not known.
    let known = those().all(|(_, scheduler)| Registry::linux().get(scheduler).is_ok());
    let (disk, scheduler) = those().next().filter(|_| known && (place.is_empty() || place.ends_with("iosched")))?;
    let elevator = Registry::linux().get(scheduler).ok()?;
    let texts = elevator.texts.iter().map(|spec| spec.name);
    let names: Vec<&str> = (elevator.tunables)().into_iter().map(|spec| spec.name).chain(texts).collect();
    let has = if names.is_empty() { "no tunables".to_owned() } else { names.join(", ") };
    let meant = did_you_mean(tunable, names.iter().copied());
    Some(format!("{disk}: there is no attribute {tunable}, and {scheduler} has {has}{meant}"))
}

/// What was set before stays, and is told.
fn with_done(error: anyhow::Error, done: &[String]) -> anyhow::Error {
    if done.is_empty() {
        return error;
    }
    let told = format!("{error}; earlier changes stay in force: {}", done.join(", "));
    if is_usage(&error) { usage(told) } else { anyhow::anyhow!(told) }
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
                "{name}: several disks have it: {}; write {first}/{name}={value}, or choose a disk with --at",
                all.join(", ")
            )))
        }
    }
}

/// Writes, and reads back.
fn set(disks: &mut Disks, file: &Named, value: &str) -> Result<String> {
    // A scheduler that was just chosen has brought tunables that could not be looked at before.
    let scheduler = disks.scheduler(&file.disk).unwrap_or_default();
    if let Some(problem) = disks.wrong(file, &scheduler, value) {
        return Err(usage(problem));
    }
    let declaration = Disks::declaration(file, &scheduler);
    // As in settings a slash stands for a space, which the kernel's tree knows by itself.
    let is_words = matches!(declaration, Some(Declaration::Cgroup(_))) && !disks.are_the_kernels;
    let written = if is_words { value.replace('/', " ") } else { value.to_owned() };
    if let Err(error) = disks.tree.write(&file.path, &written) {
        if error.kind != io::ErrorKind::InvalidInput {
            bail!("{error}");
        }
        if disks.are_the_kernels && file.of_disk() == "queue/scheduler" {
            return Err(usage(missing(disks, file, value)));
        }
        return Err(match disks.takes(file).filter(|_| !error.explains) {
            Some(takes) => usage(format!("{}: {value:?} is not accepted; {takes}", file.name)),
            None => usage(error),
        });
    }
    let read = match disks.tree.read(&file.path) {
        // The file is gone with the group that it removes.
        Err(_) if is_removal(file) => value.trim().to_owned(),
        read => read?,
    };
    let read = read.trim();
    if is_exactly(declaration, read, value) {
        return Ok(chosen(read).to_owned());
    }
    let why = if is_same(declaration, read, value) { " (it is stored in whole jiffies)" } else { "" };
    bail!("{}: {read} was stored instead of {value}{why}", file.name)
}

/// The message about a scheduler that the kernel does not have, as `compare --on` prints it.
fn missing(disks: &mut Disks, file: &Named, value: &str) -> String {
    let available = disks.schedulers(file).unwrap_or_default().join(", ");
    let error = SettingsError::Missing { device: file.disk.name.clone(), name: value.to_owned(), available };
    format!("{error}{}", settings_meant(&error))
}

/// Whether a file of a served disk removes a group.
fn is_removal(file: &Named) -> bool {
    matches!(file.of_disk().split('/').collect::<Vec<_>>()[..], ["groups", _, "remove"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunable_is_held_against_the_scheduler_that_its_disk_will_have() {
        let to_be = [("sda", "none"), ("sdb", "cfq")].map(|(disk, own)| (disk.to_owned(), own.to_owned())).into();
        let wrong = |name: &str, disk: Option<&str>, value: &str| {
            wrong_later(&to_be, disk, &Assignment { name: name.to_owned(), value: value.to_owned() })
        };
        for (name, disk) in [("slice_idle", None), ("sdb/slice_idle", None), ("iosched/slice_idle", Some("sdb"))] {
            assert_eq!(wrong(name, disk, "4"), None, "{name}");
            assert!(wrong(name, disk, "x").unwrap().starts_with("sdb: slice_idle"), "{name}");
        }
        let no_such = "there is no attribute fifo_batch, and none has no tunables";
        assert_eq!(wrong("fifo_batch", Some("sda"), "4").unwrap(), format!("sda: {no_such}"));
        assert_eq!(wrong("sda/queue/iosched/fifo_batch", None, "4").unwrap(), format!("sda: {no_such}"));
        assert!(wrong("slice_ide", Some("sdb"), "4").unwrap().ends_with("did you mean slice_idle?"));
        assert_eq!(wrong("sdb/clients/1/ioprio", None, "idle"), None, "no tunable");
    }
}
