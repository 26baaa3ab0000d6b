//! `iosched doctor`: shows which I/O settings of a disk take effect, and which do not.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, ValueHint};
use iosched_attributes::SYS_BLOCK;
use iosched_kernel::doctor::{DoctorError, Report, Snapshot};
use iosched_kernel::{BlockDevice, FindError, Roots};
use iosched_lab::request::nearest;

use iosched_terminal::fail::{of_file, usage};
use iosched_terminal::output;
use iosched_terminal::show::{Look, doctor};

/// Check which I/O settings take effect on a disk, and which do nothing
///
/// doctor examines everything between a process and the disk. This includes the scheduler, ionice,
/// writeback throttling, settings of cgroups, the disk itself, and layers such as LVM, dm-crypt and
/// RAID. For each finding, doctor prints the meaning, the certainty, a remedy, and the file that
/// doctor read. doctor changes nothing, and does not need root. Without DISK, doctor lists all
/// disks briefly, with the most important findings.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Disk to show in full, with its parts: sda, /dev/sda, a mount point or a file on the disk [default: all disks]
    #[arg(value_name = "DISK", value_hint = ValueHint::AnyPath)]
    disk: Option<PathBuf>,

    /// Output of `iostat -x` or `sar -d` for these disks, as text or JSON; - for standard input
    ///
    /// doctor then also says whether requests wait in a scheduler.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    rates: Option<PathBuf>,

    /// Print all findings as one JSON document
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  iosched doctor
  iosched doctor sda
  iosched doctor /srv/data
  iosched doctor sda --rates iostat.txt
      after: iostat -x 1 60 > iostat.txt
  iostat -x 1 60 | iosched doctor sda --rates -
  iosched doctor --json";

/// Width of the text in columns, without a terminal. On a terminal, the maximum width.
const WIDTH: usize = 80;

pub(crate) fn run(args: &DoctorArgs) -> Result<()> {
    let roots = Roots::default();
    let name = args.disk.as_deref().map(|given| find(&roots, given)).transpose()?;
    fs::read_dir(SYS_BLOCK)
        .map_err(|error| anyhow!("{SYS_BLOCK}: {error}; iosched needs this directory to find the disks"))?;
    let machine = Snapshot::of(&roots);
    let report = Report::of(&machine, name.as_deref(), args.rates.as_deref()).map_err(of_doctor)?;
    if args.json {
        return output::json(&report.document());
    }
    let look = Look::of_standard_output();
    let look = Look { width: Some(look.width.map_or(WIDTH, |width| width.min(WIDTH))), ..look };
    output::print(&if name.is_some() { doctor::in_full(&report, look) } else { doctor::briefly(&report, look) })
}

fn of_doctor(error: DoctorError) -> anyhow::Error {
    match error {
        DoctorError::Rates { ref source, .. } => of_file(format!("--rates {error}"), source),
        error => usage(error),
    }
}

/// Returns the name of the disk. The error for an unknown name suggests the nearest one.
fn find(roots: &Roots, given: &Path) -> Result<String> {
    match BlockDevice::find(roots, given) {
        Ok(device) => Ok(device.disk_name().to_owned()),
        Err(FindError::Unknown { name, known }) => {
            let meant = nearest(&name, known.split(", "));
            let hint = meant.map_or_else(|| format!("disks are {known}"), |meant| format!("did you mean {meant}?"));
            Err(usage(format!("{name}: there is no such disk; {hint}")))
        }
        Err(FindError::Io { path, error }) if error.kind() == std::io::ErrorKind::NotFound => {
            let last = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let disks = BlockDevice::disks(roots);
            let near = nearest(last, disks.iter().map(BlockDevice::name)).filter(|_| path.starts_with("/dev"));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean /dev/{near}?"));
            Err(usage(format!("{}: no such file or directory{hint}", path.display())))
        }
        Err(error) => Err(error.into()),
    }
}
