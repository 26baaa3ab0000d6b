//! `iosched ublk`: a served disk as block devices.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_live::control::Forest;
use iosched_live::reactor::Served;
use iosched_live::ublk::{self, Devices, Stopper};

use crate::exports::{ExportArgs, describe};
use crate::served::{Chosen, DiskArgs, about, bind_control, by_options, end, warn_if_ignored};
use iosched_terminal::ending::Ending;
use iosched_terminal::output::{self, say};

/// Serve a disk as block devices /dev/ublkbN, through a scheduler
///
/// Each export becomes a block device. The scheduler treats this device as one client, with the
/// class, level and weight of the export. The kernel does not tell iosched which process sent a
/// request to the device. Therefore give each tenant of the disk a separate device. If you declare
/// no export, there is one device.
///
/// The command needs root, and the kernel's ublk driver: Linux 6.4 or later, `modprobe ublk_drv`.
///
/// On SIGTERM or Ctrl-C, the command waits until the devices are unmounted and the kernel has
/// written its cached data. Then the command removes the devices and flushes the backing. A second
/// signal ends the command at once.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UblkArgs {
    #[command(flatten)]
    disk: DiskArgs,

    #[command(flatten)]
    exports: ExportArgs,

    /// Number N of the device /dev/ublkbN [default: any free number]
    ///
    /// With several exports, the export with the alphabetically first name gets this number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=NUMBER_MAX))]
    number: Option<u32>,

    /// Unix socket for `iosched ls`, `get`, `set` and `top`: a path, or a name such as live:db; only its owner can use
    /// it
    ///
    /// A named socket is in /run/iosched; for users other than root, it is in $XDG_RUNTIME_DIR/iosched.
    #[arg(long, value_name = "SOCKET|live:NAME", value_hint = ValueHint::FilePath)]
    control: Option<PathBuf>,
}

/// Highest minor number of a block device.
const NUMBER_MAX: i64 = (1 << 20) - 1;

const EXAMPLES: &str = "Examples:
  iosched ublk disk.img
      then: mkfs.ext4 /dev/ublkb0
  iosched ublk /dev/sdb --export db,class=be,level=0,weight=800 \\
      --export scratch,weight=100
      one disk as two devices: /dev/ublkb0 for the database, and
      /dev/ublkb1; both hold all blocks of the disk
  iosched ublk model:sata-7200,size=4G --number 7 --control live:db
      then: iosched set live:db scheduler=deadline";

pub(crate) fn run(args: &UblkArgs) -> Result<ExitCode> {
    let ending = Ending::on_signal()?;
    args.disk.check_name()?;
    let exports = args.exports.load(&args.disk.name())?;
    let chosen = args.disk.choose(exports.shares())?;
    let disk = args.disk.open(&chosen, args.exports.file())?;
    ublk::check()?;
    ending.starts();
    let control = args.control.as_deref().map(bind_control).transpose()?;
    let served = disk.serve(None)?;
    let control = control.map(|listener| Forest::new(vec![served.handle.clone()]).serve(listener)).transpose()?;
    let devices = match ublk::attach(&served.handle, &exports, args.number) {
        Ok(devices) => devices,
        Err(error) => {
            end(served)?;
            return Err(error.into());
        }
    };
    let stopper = devices.stopper();
    warn_if_ignored(&served.handle, &exports, chosen.kept, by_options);
    announce(&served, &chosen, &devices, args);
    ending.by(move || stop(&stopper));
    // Without systemd, no process receives this notification.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let removed = devices.wait();
    end(served)?;
    drop(control);
    removed?;
    Ok(ExitCode::SUCCESS)
}

/// Removes the devices when they are no longer in use. Returns whether they were removed.
fn stop(stopper: &Stopper) -> bool {
    let in_use = |devices: &[PathBuf]| {
        let devices: Vec<_> = devices.iter().map(|device| device.display().to_string()).collect();
        say!(
            "the disk is in use: {}; iosched serves the disk until you unmount it. A second signal ends the server \
             at once",
            devices.join(", ")
        );
    };
    let stopped = stopper.stop(in_use);
    if let Err(error) = &stopped {
        say!("warning: {error}");
    }
    stopped.is_ok()
}

fn announce(served: &Served, chosen: &Chosen, devices: &Devices, args: &UblkArgs) {
    say!("{}: {}", served.handle.name(), about(served, chosen));
    for warning in &devices.warnings {
        say!("warning: {warning}");
    }
    if let Some(path) = &args.control {
        say!("control: iosched ls {}", path.display());
    }
    let lines =
        devices.as_slice().iter().map(|device| format!("{}: {}\n", device.path().display(), describe(&device.export)));
    output::announce(&lines.collect::<String>());
}
