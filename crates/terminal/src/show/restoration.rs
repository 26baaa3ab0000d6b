//! The messages of `iosched restore`.

use anyhow::Result;
use iosched_kernel::block::Identity;
use iosched_kernel::cgroup::LeftCgroup;
use iosched_kernel::directory::Cleared;
use iosched_kernel::settings::{Change, LeftAlone, PutBack, Restoration, RestoreOptions};
use iosched_lab::request::quoted;

use super::size;
use crate::output::{self, say};

/// Prints the results of a restoration, and records whether everything is restored.
#[derive(Debug)]
pub struct RestorationMessages {
    options: RestoreOptions,
    /// Whether the user named no disk, so that all changes are restored.
    is_all: bool,
    all_well: bool,
    lines: u32,
}

impl RestorationMessages {
    /// Creates messages without a line. `is_all` says that the user named no disk.
    pub const fn new(options: RestoreOptions, is_all: bool) -> Self {
        Self { options, is_all, all_well: true, lines: 0 }
    }

    /// Returns whether there is no message yet.
    pub const fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Returns whether everything that had to be restored is restored.
    pub const fn all_well(&self) -> bool {
        self.all_well
    }

    /// Prints a line of the result.
    pub fn line(&mut self, line: &str) -> Result<()> {
        self.lines += 1;
        output::print(&format!("{line}\n"))
    }

    /// Prints an error, and records that not everything is restored.
    pub fn failure(&mut self, error: &dyn std::error::Error) {
        self.lines += 1;
        self.all_well = false;
        say!("error: {error}");
    }

    /// Prints what happened to the settings of a disk.
    pub fn device(&mut self, device: &str, done: &Restoration) -> Result<()> {
        let text = match done {
            Restoration::PutBack(PutBack { changes, left }) => {
                let done = match (changes.is_empty(), self.options.dry_run) {
                    (true, _) if left.is_empty() => "this disk has its old settings already".to_owned(),
                    (true, _) => "nothing to restore".to_owned(),
                    (false, true) => format!("would be restored: {}", list(changes)),
                    (false, false) => format!("restored: {}", list(changes)),
                };
                if left.is_empty() { done } else { format!("{done}; {}", left_alone(device, left, self.options)) }
            }
            Restoration::Rebooted { changes } if changes.is_empty() => {
                "the machine was restarted after the change; the settings are the same as before the change".to_owned()
            }
            Restoration::Rebooted { changes } => {
                // These changes are reversed: from the earlier value back to the present value.
                let was = |Change { name, from, to }: &Change| {
                    format!("{name} was {to} and is now {}", from.as_deref().unwrap_or("gone"))
                };
                let differs: Vec<_> = changes.iter().map(was).collect();
                format!(
                    "the machine was restarted after the change, and has its default settings: {}",
                    differs.join(", ")
                )
            }
            Restoration::Forgotten if self.options.dry_run => {
                "the device is gone; iosched would discard the recorded settings of this device".to_owned()
            }
            Restoration::Forgotten => {
                "the device is gone; iosched discarded the recorded settings of this device".to_owned()
            }
            Restoration::Nothing => "nothing to restore".to_owned(),
            Restoration::Kept { reason } => {
                // If the user named no disk, a disk that a running command uses is not an error.
                self.all_well &= self.is_all && matches!(reason, LeftAlone::InUse { .. });
                format!("not restored: {}", why(reason))
            }
        };
        self.line(&format!("{device}: {text}"))
    }

    /// Prints a line about changes by a user, which stay unless the user names the disk.
    pub fn stays(&mut self, device: &str, changes: &[Change]) -> Result<()> {
        self.line(&format!(
            "{device}: a user changed this disk with iosched set. To undo these changes, run iosched restore {device}: {}",
            list(changes)
        ))
    }

    /// Prints what happened to a cgroup that was made for a workload.
    pub fn cgroup(&mut self, name: &str, done: &LeftCgroup) -> Result<()> {
        let text = match done {
            LeftCgroup::Removed { path } => {
                format!("{}: {}", path.display(), if self.options.dry_run { "would be removed" } else { "removed" })
            }
            LeftCgroup::Gone => format!("cgroup {name}: no longer exists"),
            LeftCgroup::InUse { pid } => {
                format!("cgroup {name}: not removed, because the cgroup contains process {pid}")
            }
        };
        self.line(&text)
    }

    /// Prints what happened to a directory that was made for a workload.
    pub fn directory(&mut self, name: &str, done: &Cleared) -> Result<()> {
        let text = match done {
            Cleared::Removed { path } => {
                format!("{}: {}", path.display(), if self.options.dry_run { "would be removed" } else { "removed" })
            }
            Cleared::Gone => format!("{name}: no longer exists"),
            Cleared::InUse { pid } => format!("{name}: not removed, because process {pid} uses this directory"),
            Cleared::NotOurs { path } => {
                self.all_well = false;
                format!("{}: not removed, because this does not look like a directory of iosched", path.display())
            }
        };
        self.line(&text)
    }
}

/// Returns a text about values that another program set after iosched, with the command that
/// restores them. The option --force would not help, because the restoration has removed the
/// journal.
fn left_alone(device: &str, left: &[Change], options: RestoreOptions) -> String {
    let difference = |change: &Change| {
        format!("{} is {} (before: {})", change.name, change.from.as_deref().unwrap_or("gone"), change.to)
    };
    let all: Vec<_> = left.iter().map(difference).collect();
    let back = if options.dry_run {
        "to restore these settings too, add --force".to_owned()
    } else {
        let words: Vec<_> = left.iter().map(|change| quoted(&format!("{}={}", change.name, change.to))).collect();
        format!("to restore these settings too, run: iosched set {device} {}", words.join(" "))
    };
    format!(
        "not restored, because another program changed these settings after iosched set them: {}; {back}",
        all.join(", ")
    )
}

fn list(changes: &[Change]) -> String {
    changes.iter().map(Change::to_string).collect::<Vec<_>>().join(", ")
}

/// Describes a device by its size, and by its file or serial number.
fn described(identity: &Identity) -> String {
    let size = size(identity.size_bytes);
    let named = identity.backing_file.as_ref().map(|file| file.display().to_string());
    let named = named.or_else(|| identity.serial.clone());
    named.map_or_else(|| size.clone(), |named| format!("{size}, {named}"))
}

fn why(reason: &LeftAlone) -> String {
    match reason {
        LeftAlone::InUse { pid } => format!(
            "process {pid} is changing the settings of this disk now; when \
             this process has ended, run iosched restore again"
        ),
        LeftAlone::Gone => "this device no longer exists; to discard its recorded settings, add --forget".to_owned(),
        LeftAlone::Another { then, now } => {
            let (then, now) = (described(then), described(now));
            let differ = if then == now {
                format!("the device ({now}) was removed and added again, so the recorded settings no longer apply")
            } else {
                format!("iosched recorded the settings of another device ({then}), not of the present device ({now})")
            };
            format!(
                "{differ}; restore did not change the present device; to discard the recorded settings, add --forget"
            )
        }
        LeftAlone::Changed { foreign, undo } => {
            let changes: Vec<_> = foreign.iter().map(Change::of_others).collect();
            format!(
                "after iosched set this disk, another program changed {}; to restore the old values nevertheless, \
                 add --force: {}",
                changes.join(", "),
                list(undo)
            )
        }
        LeftAlone::Damaged { path } => {
            format!(
                "iosched cannot read the recorded settings in {}; check the settings of the device yourself, then \
                 remove this file",
                path.display()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_describes_a_reattached_device_only_once() {
        let disk = |sequence, file: &str| {
            let number = "7:0".parse().unwrap();
            let backing_file = Some(file.into());
            Box::new(Identity { number, size_bytes: 1 << 30, sequence: Some(sequence), serial: None, backing_file })
        };
        let text = |now| why(&LeftAlone::Another { then: disk(3, "/a.img"), now });
        assert_eq!(
            text(disk(4, "/a.img")),
            "the device (1 GiB, /a.img) was removed and added again, so the recorded settings no longer apply; \
             restore did not change the present device; to discard the recorded settings, add --forget"
        );
        assert!(text(disk(4, "/b.img")).starts_with(
            "iosched recorded the settings of another device (1 GiB, /a.img), not of the present device (1 GiB, \
             /b.img);"
        ));
    }
}
