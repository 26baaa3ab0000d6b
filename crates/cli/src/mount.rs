//! `iosched mount`: a served disk as a file, with its control tree.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::{Args, ValueHint};
use iosched_live::fuse::{self, MountOptions, Mounted, Unmounted, Unmounter};
use iosched_live::reactor::Served;

use crate::served::{Chosen, DiskArgs, about, end};
use iosched_terminal::ending::Ending;
use iosched_terminal::fail::usage;
use iosched_terminal::output::{self, say};

/// Serve a disk as a file in a mounted directory, through a scheduler
///
/// The file DIR/NAME contains the data of the disk, and is as large as the disk. You can use fio,
/// dd, losetup, mkfs and mount on this file. DIR/block/NAME corresponds to /sys/block/NAME of a
/// kernel disk. Read and write the files in this directory with cat and echo, or with `iosched get`
/// and `iosched set --at DIR`. The scheduler knows which process makes a request, and the priority
/// of the process. Therefore ionice works.
///
/// The command runs until the directory is unmounted or a signal (Ctrl-C, SIGTERM) arrives. After a
/// signal, the command unmounts the directory. If processes still have the disk open, the command
/// serves them until they close the disk. Then the command flushes all data and ends. A second
/// signal ends the command at once.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MountArgs {
    #[command(flatten)]
    disk: DiskArgs,

    /// Directory to mount on
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,

    /// Let other users use the disk too
    #[arg(long)]
    allow_other: bool,

    /// Serve the disk read-only
    #[arg(long)]
    read_only: bool,
}

const EXAMPLES: &str = "Examples:
  iosched mount disk.img /mnt/disk
  iosched mount model:sata-7200,size=4G /mnt/disk --scheduler deadline
  echo cfq > /mnt/disk/block/sata-7200/queue/scheduler
  ionice -c3 fio --name=backup --filename=/mnt/disk/sata-7200 --direct=1 \\
      --rw=read";

pub(crate) fn run(args: &MountArgs) -> Result<ExitCode> {
    let MountArgs { disk, directory, allow_other, read_only } = args;
    let ending = Ending::on_signal()?;
    let chosen = disk.choose(None)?;
    let opened = disk.open(&chosen, None)?;
    let full = fuse::check(&disk.name(), directory)?;
    hides_nothing(&full)?;
    ending.starts();
    let served = opened.serve(None)?;
    let options = MountOptions { directory: directory.clone(), allow_other: *allow_other, read_only: *read_only };
    let mounted = match fuse::mount(&served.handle, &options) {
        Ok(mounted) => mounted,
        Err(error) => {
            end(served)?;
            return Err(error.into());
        }
    };
    announce(&served, &chosen, &mounted);
    let unmounter = mounted.unmounter();
    let place = unmounter.directory().display().to_string();
    ending.by(move || unmount(&unmounter));
    // Without systemd, no process receives this notification.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let unmounted = mounted.wait();
    end(served)?;
    unmounted.map_err(|error| anyhow!("{place}: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a directory that contains files, because the mount would hide these files.
fn hides_nothing(directory: &Path) -> Result<()> {
    let some =
        std::fs::read_dir(directory).ok().and_then(|mut entries| entries.next()).and_then(std::result::Result::ok);
    match some {
        None => Ok(()),
        Some(entry) => Err(usage(format!(
            "{}: the directory is not empty, and the mount would hide {:?} and all other files; name an empty \
             directory",
            directory.display(),
            entry.file_name()
        ))),
    }
}

/// Unmounts the disk. If the disk is in use, detaches it. Returns whether the disk is being
/// unmounted.
fn unmount(unmounter: &Unmounter) -> bool {
    match unmounter.unmount() {
        Ok(Unmounted::Done) => true,
        Ok(Unmounted::InUse(users)) => {
            let users: Vec<_> = users.iter().map(ToString::to_string).collect();
            let by = if users.is_empty() { String::new() } else { format!(" by {}", users.join(", ")) };
            say!(
                "the disk is in use{by}; iosched serves the disk until no program uses it. A second signal ends the \
                 server at once"
            );
            true
        }
        Err(error) => {
            say!("{}: cannot be unmounted: {error}", unmounter.directory().display());
            false
        }
    }
}

fn announce(served: &Served, chosen: &Chosen, mounted: &Mounted) {
    let (name, directory) = (served.handle.name(), mounted.directory());
    output::announce(&format!(
        "{disk}: {about}\n{control}: control tree of this disk; iosched ls --at {at}\nto stop, press Ctrl-C or run: \
         umount {at}\n",
        disk = directory.join(name).display(),
        about = about(served, chosen),
        control = directory.join("block").join(name).display(),
        at = shown(directory),
    ));
}

/// Quotes a path for a shell.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+:,@%".contains(c));
    if is_plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
