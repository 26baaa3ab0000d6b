//! `iosched restore`: restores settings that a killed iosched did not restore, and undoes
//! `iosched set`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_kernel::record::{LeftTracer, restore_tracer};
use iosched_kernel::settings::{self, LeftAlone, Restoration, RestoreOptions};
use iosched_kernel::{BlockDevice, Roots, StateDirectory, cgroup, directory, observe};

use iosched_terminal::fail::usage;
use iosched_terminal::output;
use iosched_terminal::show::restoration::RestorationMessages;

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
    /// Disks to restore, such as sda or /dev/sda [default: everything that iosched changed: disks, directories
    /// and cgroups]
    #[arg(value_name = "DEVICE", value_hint = ValueHint::AnyPath)]
    devices: Vec<PathBuf>,

    /// Restore all changed disks, and remove the directories and cgroups made for workloads; this
    /// is the default if you name no DEVICE
    #[arg(long, conflicts_with = "devices")]
    all: bool,

    /// Print what restore would do, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Forget the recorded settings of devices that were removed or replaced, and restore nothing
    #[arg(long)]
    forget: bool,

    /// Restore even after a reboot, after a later change by another program, or if another device now has
    /// the name of the changed device. Also forget recorded settings of missing devices
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
    let mut messages = RestorationMessages::new(options, is_all);
    for device in &devices {
        match settings::restore(&roots, &state, device, options) {
            Ok(Restoration::Nothing) if !is_all && settings::permanently_changed(&state).contains(device) => {}
            Ok(done) => messages.device(device, &done)?,
            Err(error) => messages.failure(&error),
        }
    }
    for device in settings::permanently_changed(&state).iter().filter(|device| is_all || devices.contains(device)) {
        // If the user names no disk, the changes of `iosched set` are only reported.
        let options = RestoreOptions { dry_run: options.dry_run || is_all, ..options };
        match settings::undo(&roots, &state, device, options) {
            Ok(Restoration::PutBack(done)) if is_all && !done.changes.is_empty() => {
                messages.stays(device, &done.changes)?;
            }
            Ok(Restoration::Kept { reason: LeftAlone::Changed { undo, .. } }) if is_all => {
                messages.stays(device, &undo)?
            }
            Ok(_) if is_all => {}
            Ok(done) => messages.device(device, &done)?,
            Err(error) => messages.failure(&error),
        }
    }
    for name in if is_all { directory::left_over(&state) } else { Vec::new() } {
        match directory::clear(&state, &name, options.dry_run) {
            Ok(done) => messages.directory(&name, &done)?,
            Err(error) => messages.failure(&error),
        }
    }
    for name in if is_all { cgroup::left_over(&state) } else { Vec::new() } {
        match cgroup::clear(&state, &name, options.dry_run) {
            Ok(done) => messages.cgroup(&name, &done)?,
            Err(error) => messages.failure(&error),
        }
    }
    if is_all {
        match restore_tracer(&roots, &state, options.dry_run) {
            Ok(LeftTracer::Nothing) => {}
            Ok(LeftTracer::InUse { pid }) => {
                messages.line(&format!("the kernel's tracer: not restored, because process {pid} is recording"))?
            }
            Ok(LeftTracer::PutBack) if options.dry_run => messages.line("the kernel's tracer: would be restored")?,
            Ok(LeftTracer::PutBack) => messages.line("the kernel's tracer: restored")?,
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
        messages.line(&format!("{instance}: {done}"))?;
    }
    if messages.is_empty() {
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
    Ok(if messages.all_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the name of the disk. If the disk was removed, the name comes from its journal of
/// changes.
fn name(roots: &Roots, state: &StateDirectory, device: &Path) -> Result<String> {
    let given = device.strip_prefix("/dev").unwrap_or(device).to_string_lossy().replace('/', "!");
    if settings::left_over(state).contains(&given) || settings::permanently_changed(state).contains(&given) {
        return Ok(given);
    }
    let found = BlockDevice::find(roots, device).map_err(usage)?;
    Ok(found.disk_name().to_owned())
}
