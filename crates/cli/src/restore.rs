//! `iosched restore`: restores the settings that a killed
//! iosched left changed, and undoes `iosched set`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_kernel::block::Identity;
use iosched_kernel::cgroup::{self, LeftCgroup};
use iosched_kernel::directory::{self, Cleared};
use iosched_kernel::observe;
use iosched_kernel::record::{LeftTracer, restore_tracer};
use iosched_kernel::settings::{self, Change, LeftAlone, PutBack, Restoration, RestoreOptions};
use iosched_kernel::{BlockDevice, Roots, StateDirectory};
use iosched_lab::request::quoted;

use iosched_terminal::fail::usage;
use iosched_terminal::output::{self, say};

/// Restore settings that iosched changed before it was killed
///
/// Commands that change settings of the kernel's disks for a while, such as `iosched compare --on`,
/// first record the old settings. They restore the old settings at the end, also after Ctrl-C. If
/// such a command was killed or the machine crashed, run restore. restore then restores the
/// scheduler, tunables, attributes and files of cgroups. It reads back each value that it writes,
/// and reports cgroups that no longer exist. It also removes directories and cgroups that iosched
/// made for a workload, resets the kernel's tracer after `iosched record`, and removes trace
/// instances of `iosched watch`.
///
/// For a disk that you name, restore also undoes changes by `iosched set` and `iosched advise --apply` since the system
/// started. If another program has changed such a setting since then, restore prints both values and changes nothing.
/// With --force, restore writes the old value anyway. Without DEVICE, `iosched restore` lists changes by `iosched set`
/// and `iosched advise --apply`, but does not undo them.
///
/// If another device now has the name of a changed disk, restore does not change that other device.
/// After a reboot, disks have the default settings of the kernel. Then `iosched restore` lists the
/// differences from the recorded settings, and changes nothing.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RestoreArgs {
    /// Disks to restore, such as sda or /dev/sda [default: all disks that were changed, and all directories and
    /// cgroups]
    #[arg(value_name = "DEVICE", value_hint = ValueHint::AnyPath)]
    devices: Vec<PathBuf>,

    /// Restore all changed disks, and remove the directories and cgroups made for workloads; this
    /// is the default if you name no DEVICE
    #[arg(long, conflicts_with = "devices")]
    all: bool,

    /// Print what restore would do, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Discard the recorded settings of devices that were removed or replaced, and change no
    /// setting
    #[arg(long)]
    forget: bool,

    /// Restore also in these cases: after a reboot, after a later change by another program, or if
    /// another device now has the name. Also discard recorded settings of missing devices
    #[arg(long, conflicts_with = "forget")]
    force: bool,
}

const EXAMPLES: &str = "iosched stores old settings in /var/lib/iosched, or in ~/.local/state/iosched
for users other than root. Set IOSCHED_STATE_DIR to use another directory.

Examples:
  iosched restore --dry-run
  iosched restore
  iosched restore sdb --forget";

pub(crate) fn run(args: &RestoreArgs) -> Result<ExitCode> {
    let state = StateDirectory::usual()?;
    let roots = Roots::default();
    let options = RestoreOptions { dry_run: args.dry_run, force: args.force, forget: args.forget };
    let is_all = args.devices.is_empty();
    let devices = if is_all {
        settings::left_over(&state)
    } else {
        args.devices.iter().map(|device| name(&roots, &state, device)).collect::<Result<_>>()?
    };
    let mut messages = Messages { all_well: true, lines: 0 };
    for device in &devices {
        match settings::restore(&roots, &state, device, options) {
            Ok(Restoration::Nothing) if !is_all && settings::kept(&state).contains(device) => {}
            Ok(done) => messages.device(device, &done, options, is_all)?,
            Err(error) => messages.failure(&error),
        }
    }
    for device in settings::kept(&state).iter().filter(|device| is_all || devices.contains(device)) {
        // Without a named disk, the changes are only reported.
        let options = RestoreOptions { dry_run: options.dry_run || is_all, ..options };
        match settings::undo(&roots, &state, device, options) {
            Ok(Restoration::PutBack(done)) if is_all && !done.changes.is_empty() => {
                messages.stays(device, &done.changes)?;
            }
            Ok(Restoration::Kept { reason: LeftAlone::Changed { undo, .. } }) if is_all => {
                messages.stays(device, &undo)?
            }
            Ok(_) if is_all => {}
            Ok(done) => messages.device(device, &done, options, is_all)?,
            Err(error) => messages.failure(&error),
        }
    }
    for name in if is_all { directory::left_over(&state) } else { Vec::new() } {
        match directory::clear(&state, &name, options.dry_run) {
            Ok(done) => messages.directory(&name, &done, options)?,
            Err(error) => messages.failure(&error),
        }
    }
    for name in if is_all { cgroup::left_over(&state) } else { Vec::new() } {
        match cgroup::clear(&state, &name, options.dry_run) {
            Ok(done) => messages.cgroup(&name, &done, options)?,
            Err(error) => messages.failure(&error),
        }
    }
    if is_all {
        match restore_tracer(&roots, &state, options.dry_run) {
            Ok(LeftTracer::Nothing) => {}
            Ok(LeftTracer::InUse { pid }) => {
                messages.say(&format!("the kernel's tracer: not restored, because process {pid} is recording"))?
            }
            Ok(LeftTracer::PutBack) if options.dry_run => messages.say("the kernel's tracer: would be restored")?,
            Ok(LeftTracer::PutBack) => messages.say("the kernel's tracer: restored")?,
            Err(error) => messages.failure(&error),
        }
    }
    let instances = match (is_all, options.dry_run) {
        (false, _) => Vec::new(),
        (true, true) => observe::left(&roots).iter().map(|path| path.display().to_string()).collect(),
        (true, false) => observe::remove_left(&roots),
    };
    for instance in instances {
        let done = if options.dry_run { "would be removed" } else { "removed" };
        messages.say(&format!("{instance}: {done}"))?;
    }
    if messages.lines == 0 {
        let of_root = if is_all && state != StateDirectory::of_root() {
            settings::left_over(&StateDirectory::of_root())
        } else {
            Vec::new()
        };
        if !of_root.is_empty() {
            anyhow::bail!("root changed the settings of {}; run restore as root", of_root.join(", "));
        }
        output::print("nothing to restore\n")?;
    }
    Ok(if messages.all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the name of the disk. For a removed disk, the name comes from its journal.
fn name(roots: &Roots, state: &StateDirectory, device: &Path) -> Result<String> {
    let given = device.strip_prefix("/dev").unwrap_or(device).to_string_lossy().replace('/', "!");
    if settings::left_over(state).contains(&given) || settings::kept(state).contains(&given) {
        return Ok(given);
    }
    let found = BlockDevice::find(roots, device).map_err(usage)?;
    Ok(found.disk_name().to_owned())
}

/// The messages so far, and whether all went well.
struct Messages {
    all_well: bool,
    lines: u32,
}

impl Messages {
    fn say(&mut self, line: &str) -> Result<()> {
        self.lines += 1;
        output::print(&format!("{line}\n"))
    }

    fn failure(&mut self, error: &dyn std::error::Error) {
        self.lines += 1;
        self.all_well = false;
        say!("error: {error}");
    }

    fn device(&mut self, device: &str, done: &Restoration, options: RestoreOptions, is_all: bool) -> Result<()> {
        let text = match done {
            Restoration::PutBack(PutBack { changes, left }) => {
                let done = match (changes.is_empty(), options.dry_run) {
                    (true, _) if left.is_empty() => "this disk has its old settings already".to_owned(),
                    (true, _) => "nothing to restore".to_owned(),
                    (false, true) => format!("would be restored: {}", list(changes)),
                    (false, false) => format!("restored: {}", list(changes)),
                };
                if left.is_empty() { done } else { format!("{done}; {}", left_alone(device, left, options)) }
            }
            Restoration::Rebooted { changes } if changes.is_empty() => {
                "the machine was restarted after the change; the settings are the same as before the change".to_owned()
            }
            Restoration::Rebooted { changes } => {
                // These changes are in the opposite direction: the old and the present value.
                let was = |Change { name, from, to }: &Change| {
                    format!("{name} was {to} and is now {}", from.as_deref().unwrap_or("gone"))
                };
                let differs: Vec<_> = changes.iter().map(was).collect();
                format!(
                    "the machine was restarted after the change, and has its default settings: {}",
                    differs.join(", ")
                )
            }
            Restoration::Forgotten if options.dry_run => {
                "the device is gone; iosched would discard the recorded settings of this device".to_owned()
            }
            Restoration::Forgotten => {
                "the device is gone; iosched discarded the recorded settings of this device".to_owned()
            }
            Restoration::Nothing => "nothing to restore".to_owned(),
            Restoration::Kept { reason } => {
                // A running command is not an error.
                self.all_well &= is_all && matches!(reason, LeftAlone::InUse { .. });
                format!("not restored: {}", why(reason))
            }
        };
        self.say(&format!("{device}: {text}"))
    }

    /// Reports changes of a user, which stay until the disk is named.
    fn stays(&mut self, device: &str, changes: &[Change]) -> Result<()> {
        self.say(&format!("{device}: changed by iosched set; iosched restore {device} would undo: {}", list(changes)))
    }

    fn cgroup(&mut self, name: &str, done: &LeftCgroup, options: RestoreOptions) -> Result<()> {
        let text = match done {
            LeftCgroup::Removed { path } => {
                format!("{}: {}", path.display(), if options.dry_run { "would be removed" } else { "removed" })
            }
            LeftCgroup::Gone => format!("cgroup {name}: no longer exists"),
            LeftCgroup::InUse { pid } => {
                format!("cgroup {name}: not removed, because the cgroup contains process {pid}")
            }
        };
        self.say(&text)
    }

    fn directory(&mut self, name: &str, done: &Cleared, options: RestoreOptions) -> Result<()> {
        let text = match done {
            Cleared::Removed { path } => {
                format!("{}: {}", path.display(), if options.dry_run { "would be removed" } else { "removed" })
            }
            Cleared::Gone => format!("{name}: no longer exists"),
            Cleared::InUse { pid } => format!("{name}: not removed, because process {pid} uses this directory"),
            Cleared::NotOurs { path } => {
                self.all_well = false;
                format!("{}: not removed, because this does not look like a directory of iosched", path.display())
            }
        };
        self.say(&text)
    }
}

/// Reports values that another program has set since, with the command that restores
/// them. After the restoration the journal is gone, so --force would not help.
fn left_alone(device: &str, left: &[Change], options: RestoreOptions) -> String {
    let one = |change: &Change| {
        format!("{} is {} (before: {})", change.name, change.from.as_deref().unwrap_or("gone"), change.to)
    };
    let all: Vec<_> = left.iter().map(one).collect();
    let back = if options.dry_run {
        "--force would restore these settings too".to_owned()
    } else {
        let words: Vec<_> = left.iter().map(|change| quoted(&format!("{}={}", change.name, change.to))).collect();
        format!("to restore these settings too, run: iosched set {device} {}", words.join(" "))
    };
    format!(
        "not restored, because another program changed these settings after iosched did: {}; {back}",
        all.join(", ")
    )
}

fn list(changes: &[Change]) -> String {
    changes.iter().map(Change::to_string).collect::<Vec<_>>().join(", ")
}

/// Describes a device by its size, and by its file or serial number.
fn described(identity: &Identity) -> String {
    let size = iosched_terminal::show::size(identity.size_bytes);
    let named = identity.backing_file.as_ref().map(|file| file.display().to_string());
    let named = named.or_else(|| identity.serial.clone());
    named.map_or_else(|| size.clone(), |named| format!("{size}, {named}"))
}

fn why(reason: &LeftAlone) -> String {
    match reason {
        LeftAlone::InUse { pid } => format!("process {pid} is changing the settings of this disk now"),
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
                "another program has changed {} since iosched set it; to restore the old values nevertheless, add \
                 --force: {}",
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
    fn a_device_that_was_attached_again_is_described_once() {
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
