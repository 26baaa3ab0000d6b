//! Attributes of disks: a tree of files with the structure of `/sys/block`.
//!
//! There are three trees, which are listed, read, checked and written in the same way:
//!
//! - the kernel's tree, with the files that cgroups have for its disks
//! - the tree of a mounted disk
//! - the tree of a server, which the server offers on its control socket
//!
//! | file | contents |
//! |---|---|
//! | `lib.rs` | [`Tree`], [`Disks`]: find the tree that a command line names |
//! | `place.rs` | names of places: `sda`, `/dev/sda`, a mount point, a file, `live:NAME` |
//! | `name.rs` | names of attributes: `nr_requests`, `iosched/slice_idle`, `clients/3/ioprio`, `sda/scheduler` |
//! | `check.rs` | messages about wrong values, before anything is written |
//! | `change.rs` | changes of several attributes in order: check all, write, read back |
//! | `earlier.rs` | values before a change, and how to undo it |
//! | `lasting.rs` | values for every start of the system, in a udev rule |
//! | `load/` | rates, waits and shares of disks and clients over an interval, for `iosched top` |
//! | `summary.rs` | one line about each disk, for `iosched ls` |
//! | `directory.rs`, `kernel.rs`, `socket.rs` | the three trees |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod change;
mod check;
mod directory;
mod earlier;
mod error;
mod kernel;
mod lasting;
pub mod load;
mod name;
mod place;
mod socket;
mod summary;

use std::io;
use std::path::{Path, PathBuf};

use iosched_kernel::{BlockDevice, FindError, Roots};

pub use earlier::{Earlier, holds_root};
pub use error::{AttributesError, TreeError};
pub use lasting::LastingRule;
pub use name::{Disk, Named};
pub use place::{lives, socket_to_make};
pub use summary::{DiskSummary, KernelDisk};

use error::{failed as failed_with, wrong};

/// Directory of the kernel's disks.
pub const SYS_BLOCK: &str = "/sys/block";

/// Tree of files. A path has no slash at either end. The path of the root is an empty text.
pub trait Tree {
    /// Lists a directory, in order.
    ///
    /// # Errors
    /// The directory does not exist, or cannot be read.
    fn list(&mut self, path: &str) -> Result<Vec<Entry>, TreeError>;
    /// Reads a file.
    ///
    /// # Errors
    /// The file does not exist, or cannot be read.
    fn read(&mut self, path: &str) -> Result<String, TreeError>;
    /// Writes a value to a file.
    ///
    /// # Errors
    /// The file does not exist, or does not accept the value.
    fn write(&mut self, path: &str, value: &str) -> Result<(), TreeError>;
}

/// File or directory in a directory of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name of the entry in its directory.
    pub name: String,
    /// Whether the entry is a directory.
    pub is_directory: bool,
}

/// A tree, and the disks in it.
pub struct Disks {
    /// Tree of the disks.
    pub tree: Box<dyn Tree>,
    /// Disks, in the order of the tree.
    pub disks: Vec<Disk>,
    /// Whether the tree is the kernel's.
    pub are_the_kernels: bool,
}

impl Disks {
    /// Returns the disks that a command line names, and the remaining words. The option `--at` or
    /// the first word can name the disks. If neither does, returns all disks of the kernel.
    ///
    /// # Errors
    /// The errors of [`Disks::open`].
    pub fn of<'w>(at: Option<&Path>, words: &'w [String]) -> Result<(Self, &'w [String]), AttributesError> {
        match (at, words.split_first()) {
            (Some(at), _) => Ok((Self::open(at)?, words)),
            (None, Some((first, rest))) if place::is_place(first) => Ok((Self::open(Path::new(first))?, rest)),
            (None, first) => {
                let mut kernels = Self::open(Path::new(SYS_BLOCK))?;
                match first {
                    // The word may also be the relative path of a mount point or a file. If an
                    // attribute has the same name, the word means the attribute.
                    Some((first, rest))
                        if !first.contains('=') && Path::new(first).exists() && kernels.find(first).is_err() =>
                    {
                        Ok((Self::open(Path::new(first))?, rest))
                    }
                    _ => Ok((kernels, words)),
                }
            }
        }
    }

    /// Opens the disks at `at`, which is one of:
    ///
    /// - a directory of disks, such as `/sys/block`, or the directory of one disk
    /// - the directory of a mounted disk
    /// - a control socket, or `live:` and the name of a served disk
    /// - the name or device file of a disk of the kernel
    /// - a mount point, directory or file on such a disk
    ///
    /// # Errors
    /// There is no disk at `at`, or its server does not answer.
    pub fn open(at: &Path) -> Result<Self, AttributesError> {
        if let Some(socket) = place::live(at)? {
            return Self::open(&socket);
        }
        if iosched_live::control::is_socket(at) {
            let mut tree = socket::Socket::connect(at)?;
            let listed = tree.list("").map_err(|error| socket::instead(at, error))?;
            let disks = listed.into_iter().filter(|entry| entry.is_directory);
            let disks = disks.map(|Entry { name, .. }| Disk { path: name.clone(), name }).collect();
            return Ok(Self { tree: Box::new(tree), disks, are_the_kernels: false });
        }
        let is_name = at.to_str().is_some_and(|name| BlockDevice::named(&Roots::default(), name).is_ok());
        if is_name || !at.is_dir() {
            return Self::on(at);
        }
        let at = at.to_owned();
        if let Err(error) = std::fs::read_dir(&at) {
            return Err(absent(&at, &error));
        }
        if !directory::has_attributes(&at) {
            return Self::on(&at);
        }
        let are_the_kernels = at.canonicalize().is_ok_and(|path| path.starts_with("/sys"));
        let is_disk = |path: &Path| path.join("queue").is_dir();
        if is_disk(&at) {
            let name = at.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
            let disk = Disk { name: name.unwrap_or_else(|| "disk".to_owned()), path: String::new() };
            let tree = tree(&at, Some(&disk.name).filter(|_| are_the_kernels));
            return Ok(Self { tree, disks: vec![disk], are_the_kernels });
        }
        let in_mount = at.join("block");
        let root: PathBuf = if in_mount.is_dir() { in_mount } else { at.clone() };
        let mut tree = if are_the_kernels { kernel::of_all(&root) } else { tree(&root, None) };
        let entries = tree.list("")?.into_iter().filter(|entry| is_disk(&root.join(&entry.name)));
        let disks: Vec<_> = entries.map(|Entry { name, .. }| Disk { path: name.clone(), name }).collect();
        if disks.is_empty() && root != Path::new(SYS_BLOCK) {
            return Self::on(&at);
        }
        Ok(Self { tree, disks, are_the_kernels })
    }

    /// Returns the disk of the kernel that `at` names, or on which `at` is stored.
    fn on(at: &Path) -> Result<Self, AttributesError> {
        let device = match BlockDevice::find(&Roots::default(), at) {
            Ok(device) => device,
            Err(FindError::Io { error, .. }) => return Err(absent(at, &error)),
            Err(FindError::NoDevice { path, kind }) => {
                return Err(wrong(format!(
                    "{}: this path is in a file system ({kind}) that is not on a disk; name a disk (sda or \
                     {SYS_BLOCK}/sda), the directory of a mounted disk, or a control socket",
                    path.display()
                )));
            }
            Err(error) => return Err(error.into()),
        };
        let name = device.disk_name().to_owned();
        let tree = tree(&Path::new(SYS_BLOCK).join(&name), Some(&name));
        Ok(Self { tree, disks: vec![Disk { name, path: String::new() }], are_the_kernels: true })
    }
}

/// Returns the tree below a directory. If `name` is given, the tree belongs to this disk of the
/// kernel.
fn tree(root: &Path, name: Option<&String>) -> Box<dyn Tree> {
    match name {
        Some(name) => kernel::of_one(root, name),
        None => Box::new(directory::Directory::of_mount(root)),
    }
}

fn absent(at: &Path, error: &io::Error) -> AttributesError {
    match error.kind() {
        io::ErrorKind::NotConnected => wrong(format!(
            "{}: the server of this mount has ended; unmount it with fusermount3 -u {0} or, as root, umount {0}",
            at.display()
        )),
        io::ErrorKind::NotFound => wrong(format!("{}: no such file or directory", at.display())),
        io::ErrorKind::NotADirectory => wrong(format!(
            "{}: this is neither a disk, nor a directory of disks, nor a control socket; name a disk, such as sda",
            at.display()
        )),
        _ => failed_with(format!("{}: {error}", at.display())),
    }
}
