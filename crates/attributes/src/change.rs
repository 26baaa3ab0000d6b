//! Changes attributes. All values are checked before the first value is written. Each written value
//! is read back.

use std::collections::BTreeMap;
use std::io;

use iosched::{Rate, Registry};
use iosched_kernel::attribute::{Declaration, chosen, declaration, is_exactly, is_same};
use iosched_kernel::settings::SettingsError;
use iosched_lab::{AttributeValue as Assignment, did_you_mean, settings_meant};
use iosched_live::Shares;

use crate::check::wrong_value;
use crate::error::{failed, wrong};
use crate::{AttributesError, Disks, Named};

/// Directory of the present scheduler's tunables. They appear and disappear with the scheduler.
const TUNABLES: &str = "queue/iosched/";

impl Disks {
    /// Checks changes in order, before anything is written.
    ///
    /// # Errors
    /// The attribute does not exist, several disks have it, or the value is not accepted.
    pub fn check(&mut self, assignments: &[Assignment]) -> Result<(), AttributesError> {
        check(self, assignments)
    }

    /// Returns the one file that a change refers to.
    ///
    /// # Errors
    /// The attribute does not exist, or several disks have it.
    pub fn only(&mut self, assignment: &Assignment) -> Result<Named, AttributesError> {
        only(self, assignment)
    }

    /// Writes a value, reads it back and returns it.
    ///
    /// # Errors
    /// The disk does not accept the value, or stores another value.
    pub fn set(&mut self, file: &Named, value: &str) -> Result<String, AttributesError> {
        set(self, file, value)
    }

    /// Returns the scheduler of a served disk if this scheduler ignores the written properties
    /// (`shares`). Returns `None` if the scheduler uses them.
    pub fn ignores(&mut self, written: &[Named], shares: Shares) -> Option<String> {
        let is_share = |file: &&Named| match file.of_disk().split('/').collect::<Vec<_>>()[..] {
            ["groups", _, "reservation" | "limit"] => shares == Shares::Rates,
            ["groups" | "clients", _, "weight"] => shares == Shares::Weights,
            ["clients", _, "ioprio"] => shares == Shares::Priorities,
            _ => false,
        };
        let file = written.iter().find(is_share)?;
        let scheduler = self.scheduler(&file.disk)?;
        let tunable = |name: &str| {
            let text = self.tree.read(&file.disk.path_of(&format!("{TUNABLES}{name}"))).ok()?;
            text.trim().parse().ok()
        };
        shares.are_ignored_by(&scheduler, tunable).then_some(scheduler)
    }
}

/// Reports every problem that is known before anything is written.
fn check(disks: &mut Disks, assignments: &[Assignment]) -> Result<(), AttributesError> {
    // Schedulers that earlier assignments choose, by disk.
    let mut switched: BTreeMap<String, String> = BTreeMap::new();
    for assignment in assignments {
        let found = only(disks, assignment);
        // If an earlier assignment chooses another scheduler, a tunable of the present scheduler
        // does not count.
        let goes = |file: &Named| switched.contains_key(&file.disk.name) && file.of_disk().starts_with(TUNABLES);
        let file = match found {
            Ok(file) if !goes(&file) => file,
            Err(error) if switched.is_empty() => return Err(error),
            // The attribute may be a tunable of a scheduler that an earlier assignment chooses.
            found => match wrong_later(&switched, found.ok().map(|file| file.disk.name).as_deref(), assignment) {
                Some(problem) => return Err(wrong(problem)),
                None => continue,
            },
        };
        let present = || disks.scheduler(&file.disk).unwrap_or_default();
        let scheduler = switched.get(&file.disk.name).cloned().unwrap_or_else(present);
        if let Some(problem) = disks.wrong_value(&file, &scheduler, &assignment.value) {
            return Err(wrong(problem));
        }
        if file.of_disk() == "queue/scheduler" {
            switched.insert(file.disk.name, assignment.value.trim().to_owned());
        }
    }
    Ok(())
}

/// Returns the known problem with a tunable of a scheduler that an earlier assignment chooses.
/// `switched` has these schedulers by disk. If `disk` is known, only the scheduler of this disk
/// counts.
fn wrong_later(
    switched: &BTreeMap<String, String>,
    disk: Option<&str>,
    Assignment { name, value }: &Assignment,
) -> Option<String> {
    let (named, name) = Assignment::parts(name, switched.keys().map(String::as_str));
    let disk = named.or(disk);
    let (place, tunable) = name.rsplit_once('/').unwrap_or(("", name));
    let those = || switched.iter().filter(|(switching, _)| disk.is_none_or(|disk| disk == *switching));
    let path = format!("iosched/{tunable}");
    let mut declared = those().filter_map(|(disk, scheduler)| Some((disk, declaration(&path, scheduler)?))).peekable();
    if declared.peek().is_some() {
        return declared
            .find_map(|(disk, declared)| declared.check(value).err().map(|error| wrong_value(disk, &error)));
    }
    // Attributes of a client or a group are not tunables. The tunables of a scheduler that is not
    // in the registry are unknown.
    let known = those().all(|(_, scheduler)| Registry::linux().get(scheduler).is_ok());
    let (disk, scheduler) = those().next().filter(|_| known && (place.is_empty() || place.ends_with("iosched")))?;
    let elevator = Registry::linux().get(scheduler).ok()?;
    let texts = elevator.texts.iter().map(|spec| spec.name);
    let names: Vec<&str> = (elevator.tunables)().into_iter().map(|spec| spec.name).chain(texts).collect();
    let has = if names.is_empty() { "no tunables".to_owned() } else { format!("the tunables {}", names.join(", ")) };
    let meant = did_you_mean(tunable, names.iter().copied());
    Some(format!("{disk}: there is no attribute {tunable}; the scheduler {scheduler} has {has}{meant}"))
}

/// Returns the only file that the assignment names.
fn only(disks: &mut Disks, Assignment { name, value }: &Assignment) -> Result<Named, AttributesError> {
    let mut found = disks.find(name)?;
    match found.as_slice() {
        [_] => Ok(found.remove(0)),
        _ => {
            let first = &found[0].disk.name;
            let all: Vec<_> = found.iter().map(|file| file.disk.name.as_str()).collect();
            Err(wrong(format!(
                "{name}: several disks have this attribute: {}; write {first}/{name}={value}, or choose one of \
                 the disks with --at",
                all.join(", ")
            )))
        }
    }
}

/// Writes a value and reads it back.
fn set(disks: &mut Disks, file: &Named, value: &str) -> Result<String, AttributesError> {
    // If an earlier assignment has chosen the scheduler, its tunables are new and could not be
    // checked earlier.
    let scheduler = disks.scheduler(&file.disk).unwrap_or_default();
    if let Some(problem) = disks.wrong_value(file, &scheduler, value) {
        return Err(wrong(problem));
    }
    let declaration = Disks::declaration(file, &scheduler);
    // In settings, a slash stands for a space. The kernel's tree converts slashes itself.
    let is_words = matches!(declaration, Some(Declaration::Cgroup(_))) && !disks.are_the_kernels;
    let written = if is_words { value.replace('/', " ") } else { value.to_owned() };
    if let Err(error) = disks.tree.write(&file.path, &written) {
        if error.kind != io::ErrorKind::InvalidInput {
            return Err(AttributesError::Tree(error));
        }
        if disks.are_the_kernels && file.of_disk() == "queue/scheduler" {
            return Err(wrong(missing(disks, file, value)));
        }
        return Err(match disks.takes(file).filter(|_| !error.explains) {
            Some(takes) => wrong(format!("{}: {value:?} is not a valid value; {takes}", file.name)),
            None => wrong(error),
        });
    }
    let read = match disks.tree.read(&file.path) {
        // Writing to this file removes its group, so the file no longer exists.
        Err(_) if is_removal(file) => value.trim().to_owned(),
        read => read?,
    };
    let read = read.trim();
    if is_exactly(declaration, read, value) || is_rate(file, read, value) {
        return Ok(chosen(read).to_owned());
    }
    let why = if is_same(declaration, read, value) { " (the kernel stores whole jiffies)" } else { "" };
    Err(failed(format!("{}: the disk stored {read} instead of {value}{why}", file.name)))
}

/// Returns the message about a scheduler that the kernel does not have. `compare --on` prints the
/// same message.
fn missing(disks: &mut Disks, file: &Named, value: &str) -> String {
    let available = disks.schedulers(file).unwrap_or_default().join(", ");
    let error = SettingsError::Missing { device: file.disk.name.clone(), name: value.to_owned(), available };
    format!("{error}{}", settings_meant(&error))
}

/// Returns whether writing a file of a served disk removes a group.
fn is_removal(file: &Named) -> bool {
    matches!(file.of_disk().split('/').collect::<Vec<_>>()[..], ["groups", _, "remove"])
}

/// Returns whether a file holds a rate, and `read` and `value` are the same rate in two notations,
/// such as 1MB and 1000kB/s.
fn is_rate(file: &Named, read: &str, value: &str) -> bool {
    let holds_rate =
        matches!(file.of_disk().split('/').collect::<Vec<_>>()[..], ["groups", _, "reservation" | "limit"]);
    holds_rate && read.parse::<Rate>().is_ok_and(|rate| value.parse() == Ok(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunable_is_checked_against_the_future_scheduler() {
        let to_be =
            [("sda", "none"), ("sdb", "cfq")].map(|(disk, scheduler)| (disk.to_owned(), scheduler.to_owned())).into();
        let wrong = |name: &str, disk: Option<&str>, value: &str| {
            wrong_later(&to_be, disk, &Assignment { name: name.to_owned(), value: value.to_owned() })
        };
        for (name, disk) in [("slice_idle", None), ("sdb/slice_idle", None), ("iosched/slice_idle", Some("sdb"))] {
            assert_eq!(wrong(name, disk, "4"), None, "{name}");
            assert!(wrong(name, disk, "x").unwrap().starts_with("sdb: slice_idle"), "{name}");
        }
        let no_such = "there is no attribute fifo_batch; the scheduler none has no tunables";
        assert_eq!(wrong("fifo_batch", Some("sda"), "4").unwrap(), format!("sda: {no_such}"));
        assert_eq!(wrong("sda/queue/iosched/fifo_batch", None, "4").unwrap(), format!("sda: {no_such}"));
        assert!(wrong("slice_ide", Some("sdb"), "4").unwrap().ends_with("did you mean slice_idle?"));
        assert_eq!(wrong("sdb/clients/1/ioprio", None, "idle"), None, "the attribute is not a tunable");
    }
}
