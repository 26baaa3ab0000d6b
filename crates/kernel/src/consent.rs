//! Permission to write to a device. A person must type the device's name, and nobody else may use
//! the device. Code that opens a device for writing needs a [`Consent`], which only [`to_write`]
//! creates.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::block::{BlockDevice, DeviceNumber, Usage};

/// Option with which a person allows writing.
const OPTION: &str = "--destroy-data";

/// Permission to destroy all data on a device: a person typed its name, and it is not in use. While
/// this value exists, the device cannot be mounted, mapped or used for swap.
#[derive(Debug)]
pub struct Consent {
    device: BlockDevice,
    /// The device, opened exclusively.
    claim: File,
}

impl Consent {
    /// Returns the device that may be written.
    #[must_use]
    pub const fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// Opens the device with `options` and for writing.
    ///
    /// # Errors
    /// Errors of the system, or the name now belongs to another device.
    pub fn open(&self, options: &OpenOptions) -> io::Result<File> {
        let file = options.clone().write(true).open(self.device.path())?;
        if file.metadata()?.rdev() != self.claim.metadata()?.rdev() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "another device now has this name; run the command again with the right name",
            ));
        }
        Ok(file)
    }
}

/// Reason why a device may not be written.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No person has allowed destroying the data.
    #[error("{}: writing destroys the data on this device; to allow this, add {OPTION} \
        {}", path.display(), path.display())]
    NotAsked {
        /// Path of the device file.
        path: PathBuf,
    },
    /// A person typed another name.
    #[error("{OPTION} {}: the workload would write to another device, {}, so iosched wrote \
             nothing", typed.display(), path.display())]
    AnotherName {
        /// Typed name.
        typed: PathBuf,
        /// Path of the device file.
        path: PathBuf,
    },
    /// The root file system is on the disk.
    #[error("{}: the root file system is on {disk}", path.display())]
    UnderRoot {
        /// Path of the device file.
        path: PathBuf,
        /// Name of the whole disk.
        disk: String,
    },
    /// The device is in use.
    #[error("{}: this device is in use: {usage}", path.display())]
    InUse {
        /// Path of the device file.
        path: PathBuf,
        /// Uses of the device.
        usage: Usage,
    },
    /// Another program has opened the device exclusively. The kernel does not report which one.
    #[error(
        "{}: another program has opened this device exclusively; to find the program, run fuser -v {}",
        path.display(),
        path.display()
    )]
    Held {
        /// Path of the device file.
        path: PathBuf,
    },
    /// No person has allowed destroying the data, and the device has known contents.
    #[error("{}: the device holds {what}; a write would destroy this data", path.display())]
    Holds {
        /// Path of the device file.
        path: PathBuf,
        /// Description of the contents.
        what: &'static str,
    },
    /// No person has allowed destroying the data, and the contents cannot be read.
    #[error("{}: iosched cannot check the contents of this device: {}", path.display(), explained(error))]
    Unseen {
        /// Path of the device file.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
    /// The device is read-only.
    #[error("{}: this device is read-only", path.display())]
    ReadOnly {
        /// Path of the device file.
        path: PathBuf,
    },
    /// The device has no medium or no file, so its size is 0.
    #[error("{}: the drive has no medium, or the loop device has no file", path.display())]
    Empty {
        /// Path of the device file.
        path: PathBuf,
    },
    /// The device file is not this device.
    #[error(
        "{}: this device file does not belong to the block device {number}; check the device file with ls -l",
        path.display()
    )]
    NotThatDevice {
        /// Path of the device file.
        path: PathBuf,
        /// Number of the device.
        number: DeviceNumber,
    },
    /// The system refuses to open or examine the device.
    #[error("{}: {}", path.display(), explained(error))]
    Io {
        /// Path of the device file.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
}

fn explained(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "only root and users with permission may open the device".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns the reason why iosched does not write to `device` if no person typed its name. For an
/// unused device without known contents, the reason is [`NotAsked`](Refusal::NotAsked), which
/// proposes to type the name.
#[must_use]
pub fn unasked(device: &BlockDevice) -> Refusal {
    let path = device.path();
    let looked_at = check_unused(device).and_then(|()| claim(device)).map(|_| device.signature());
    match looked_at {
        Err(refusal) => refusal,
        Ok(Ok(Some(what))) => Refusal::Holds { path, what },
        Ok(Ok(None)) => Refusal::NotAsked { path },
        Ok(Err(error)) => Refusal::Unseen { path, error },
    }
}

/// Returns the permission to write to `device` if `typed` is its device file. By typing this name,
/// a person allows iosched to destroy the data.
///
/// # Errors
/// - The root file system is on the disk.
/// - The device, a partition or the whole disk is mounted, used for swap or has a device built on
///   it.
/// - The device is read-only or has the size 0.
/// - No name or another name was typed.
/// - The device cannot be opened exclusively, or the device file is another device.
pub fn to_write(device: &BlockDevice, typed: Option<&Path>) -> Result<Consent, Refusal> {
    let path = device.path();
    let Some(typed) = typed else { return Err(unasked(device)) };
    check_unused(device)?;
    if typed != path {
        return Err(Refusal::AnotherName { typed: typed.to_owned(), path });
    }
    let claim = claim(device)?;
    let metadata = claim.metadata().map_err(|error| Refusal::Io { path: path.clone(), error })?;
    let number = device.number();
    if !metadata.file_type().is_block_device() || DeviceNumber::from_raw(metadata.rdev()) != number {
        return Err(Refusal::NotThatDevice { path, number });
    }
    Ok(Consent { device: device.clone(), claim })
}

/// Checks the uses that the kernel reports.
fn check_unused(device: &BlockDevice) -> Result<(), Refusal> {
    let path = device.path();
    if device.is_under_root() {
        return Err(Refusal::UnderRoot { path, disk: device.disk_name().to_owned() });
    }
    let usage = device.usage();
    if !usage.is_none() {
        return Err(Refusal::InUse { path, usage });
    }
    if device.size_bytes() == 0 {
        return Err(Refusal::Empty { path });
    }
    if device.is_read_only() {
        return Err(Refusal::ReadOnly { path });
    }
    Ok(())
}

fn claim(device: &BlockDevice) -> Result<File, Refusal> {
    let path = device.path();
    device.open_exclusively().map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => Refusal::Held { path },
        _ => Refusal::Io { path, error },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;

    fn refusal(machine: &Recorded, name: &str) -> Refusal {
        let device = machine.device(name);
        to_write(&device, Some(&device.path())).unwrap_err()
    }

    #[test]
    fn refusal_names_the_user_of_a_device() {
        let machine = Recorded::new();
        let message = |name: &str| {
            let root = format!("{}/", machine.path().display());
            refusal(&machine, name).to_string().replace(&root, "/")
        };
        assert_eq!(message("sdb"), "/dev/sdb: this device is in use: sdb1 is used for swap");
        assert_eq!(message("sdb1"), "/dev/sdb1: this device is in use: sdb1 is used for swap");
        assert_eq!(message("sdd"), "/dev/sdd: this device is in use: the device loop1 uses space on this device");
        assert_eq!(message("nvme0n1"), "/dev/nvme0n1: this device is in use: nvme0n1 is mounted on /srv/my data");
        for name in ["sda", "sda1", "sda2", "dm-0"] {
            assert!(message(name).contains("the root file system is on"), "{name}");
        }
        assert!(matches!(refusal(&machine, "loop0"), Refusal::Empty { .. }));
        machine.write("sys/devices/sdc/ro", "1\n");
        assert!(matches!(refusal(&machine, "sdc"), Refusal::ReadOnly { .. }));
    }

    #[test]
    fn write_is_refused_without_the_exact_device_name() {
        let machine = Recorded::new();
        let device = machine.device("sdc");
        let fill = |image: &[u8]| std::fs::write(machine.path().join("dev/sdc"), image).unwrap();
        fill(&[0; 8192 * 512]);
        assert!(matches!(to_write(&device, None), Err(Refusal::NotAsked { .. })));
        for typed in ["sdc", "/dev/sd", "/dev/sdc1", ""] {
            let refused = to_write(&device, Some(Path::new(typed)));
            assert!(matches!(refused, Err(Refusal::AnotherName { .. })), "{typed}");
        }
    }

    #[test]
    fn writing_is_proposed_only_for_unused_empty_devices() {
        let machine = Recorded::new();
        let message = |name: &str| to_write(&machine.device(name), None).unwrap_err().to_string();
        for name in ["sda", "sda1", "sda2", "dm-0", "sdb", "sdb1", "sdd", "nvme0n1", "loop0"] {
            assert!(!message(name).contains(OPTION), "{}", message(name));
        }
        let mut image = vec![0; 8192 * 512];
        let fill = |image: &[u8]| std::fs::write(machine.path().join("dev/sdc"), image).unwrap();
        fill(&image);
        assert!(message("sdc").contains(OPTION), "{}", message("sdc"));
        image[..4].copy_from_slice(b"XFSB");
        fill(&image);
        assert!(
            message("sdc").ends_with("sdc: the device holds an XFS file system; a write would destroy this data"),
            "{}",
            message("sdc")
        );
        fill(&[]);
        assert!(message("sdc").contains("cannot check the contents of this device"), "{}", message("sdc"));
    }

    #[test]
    fn regular_file_named_like_the_device_is_refused() {
        let machine = Recorded::new();
        assert!(matches!(refusal(&machine, "sdc"), Refusal::NotThatDevice { .. }));
    }
}
