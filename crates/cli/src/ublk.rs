//! `iosched ublk`: a live disk as block devices.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_live::control::Forest;
use iosched_live::reactor::Served;
use iosched_live::ublk::{self, Devices, Stopper, UblkError};

use crate::exports::{ExportArgs, describe};
use crate::fail::INTERRUPTED;
use crate::output::{self, say};
use crate::served::{DiskArgs, about, bind, end};

/// Make a disk a block device /dev/ublkbN, with an elevator in its path
///
/// Every export is a device, and one client of the disk with its class, level and weight: the kernel does not say which process a request of a
/// device is from. Give each tenant of a disk a device of its own. Without a declaration there is one device.
///
/// Needs root, and the kernel's driver: Linux 6.4 or later, modprobe ublk_drv.
///
/// SIGTERM or Ctrl-C take the devices away as soon as nothing is mounted from them, after what the kernel has cached of them is written, and flush;
/// a second one ends at once.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UblkArgs {
    #[command(flatten)]
    disk: DiskArgs,

    #[command(flatten)]
    exports: ExportArgs,

    /// The device's number, the N of /dev/ublkbN; of several exports the first one's, in the order of names [default: any that is free]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=NUMBER_MAX))]
    number: Option<u32>,

    /// Answer iosched ls, get and set --at SOCKET there: a unix socket which only its owner may use
    #[arg(long, value_name = "SOCKET", value_hint = ValueHint::FilePath)]
    control: Option<PathBuf>,
}

/// Block devices' minor numbers are not more.
const NUMBER_MAX: i64 = (1 << 20) - 1;

const EXAMPLES: &str = "\
Examples:
  iosched ublk disk.img
      then: mkfs.ext4 /dev/ublkb0
  iosched ublk /dev/sdb --export db,class=be,level=0,weight=800 \\
      --export scratch,weight=100
      one disk as two devices, /dev/ublkb0 for the database and /dev/ublkb1,
      both with all of its blocks
  iosched ublk model:sata-7200,size=4G --number 7 --control disk.control
      then: iosched set --at disk.control scheduler=deadline";

/// What ends the wait.
enum Event {
    Signal,
    Gone(Result<(), UblkError>),
    StopFailed(UblkError),
}

pub(crate) fn run(args: &UblkArgs) -> Result<ExitCode> {
    args.disk.check_name()?;
    let exports = args.exports.load(&args.disk.name())?;
    ublk::check()?;
    let control = args.control.as_deref().map(bind).transpose()?;
    let served = args.disk.start(None)?;
    let control = control.map(|listener| Forest::new(vec![served.handle.clone()]).serve(listener)).transpose()?;
    let (sender, events) = mpsc::channel();
    let signals = sender.clone();
    ctrlc::set_handler(move || {
        // Nobody waits any more: it has ended.
        let _ = signals.send(Event::Signal);
    })?;
    let devices = match ublk::attach(&served.handle, &exports, args.number) {
        Ok(devices) => devices,
        Err(error) => {
            end(served)?;
            return Err(error.into());
        }
    };
    if let Err(error) = announce(&served, &devices, args.control.as_deref()) {
        say!("warning: {error}");
    }
    // Without systemd nobody listens.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let stopper = devices.stopper();
    let gone = sender.clone();
    std::thread::Builder::new().name("devices".to_owned()).spawn(move || {
        let _ = gone.send(Event::Gone(devices.wait()));
    })?;
    let mut ending = false;
    loop {
        match events.recv()? {
            Event::Signal if ending => {
                say!("ended at once; what was not flushed may be lost");
                return Ok(ExitCode::from(INTERRUPTED));
            }
            Event::Signal => {
                ending = true;
                stop(stopper.clone(), sender.clone())?;
            }
            Event::StopFailed(error) => {
                say!("warning: {error}");
                ending = false;
            }
            Event::Gone(removed) => {
                end(served)?;
                drop(control);
                removed?;
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

/// Takes the devices away, on a thread of its own: they may be in use for long.
fn stop(stopper: Stopper, sender: mpsc::Sender<Event>) -> std::io::Result<()> {
    let in_use = |devices: &[PathBuf]| {
        let devices: Vec<_> = devices.iter().map(|device| device.display().to_string()).collect();
        say!("in use: {}; serving until it is unmounted; a second signal ends at once", devices.join(", "));
    };
    let stop = move || {
        if let Err(error) = stopper.stop(in_use) {
            let _ = sender.send(Event::StopFailed(error));
        }
    };
    std::thread::Builder::new().name("stop".to_owned()).spawn(stop).map(drop)
}

fn announce(served: &Served, devices: &Devices, control: Option<&Path>) -> Result<()> {
    say!("{}: {}", served.handle.name(), about(served)?);
    for warning in &devices.warnings {
        say!("warning: {warning}");
    }
    if let Some(path) = control {
        say!("control: iosched ls --at {}", path.display());
    }
    let lines =
        devices.as_slice().iter().map(|device| format!("{}: {}\n", device.path().display(), describe(&device.export)));
    output::print(&lines.collect::<String>())
}
