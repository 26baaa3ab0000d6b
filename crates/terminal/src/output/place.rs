//! The destination of an output: an existing stream, or a new file in its place.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};

use crate::error::{of_file, usage};

/// Name of standard output on command lines.
const STANDARD_OUTPUT: &str = "-";
/// Largest number of links to follow, as in the kernel.
const LINKS_MAX: usize = 40;

/// Destination of an output.
#[derive(Clone, Debug)]
pub(super) enum Destination {
    /// Standard output.
    StandardOutput,
    /// Standard error.
    StandardError,
    /// A character device or a pipe.
    Stream(PathBuf),
    /// An existing or new file, never a link.
    File(Place),
}

/// A file name in an open directory. If a user renames a directory of the path or replaces it by a
/// symbolic link, the output still goes to the same directory.
#[derive(Clone, Debug)]
pub(super) struct Place {
    directory: Arc<OwnedFd>,
    name: OsString,
    /// Path for messages. It also shows whether two options name the same file.
    path: PathBuf,
}

impl Place {
    /// Creates the place of a file in a directory.
    ///
    /// # Errors
    /// The directory cannot be opened, or the path does not end in a file name.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = Arc::new(rustix::fs::open(directory_of(path), flags, Mode::empty())?);
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        Ok(Self { directory, name, path: path.to_owned() })
    }

    /// Returns another place in the same directory.
    pub(super) fn beside(&self, name: impl Into<OsString>) -> Self {
        let name = name.into();
        Self { directory: Arc::clone(&self.directory), path: self.path.with_file_name(&name), name }
    }

    /// Returns the path, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the directory is still at its path.
    pub(super) fn is_in_place(&self) -> bool {
        let held = rustix::fs::fstat(&self.directory);
        let there = fs::symlink_metadata(directory_of(&self.path));
        held.is_ok_and(|held| there.is_ok_and(|there| (held.st_dev, held.st_ino) == (there.dev(), there.ino())))
    }

    /// Opens the file, but not a symbolic link.
    pub(super) fn open(&self, flags: OFlags) -> io::Result<File> {
        self.open_with(&self.name, flags | OFlags::NOFOLLOW, Mode::empty())
    }

    /// Creates the file and opens it for writing.
    ///
    /// # Errors
    /// A file with this name exists, or the system refuses.
    pub(super) fn make(&self, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        self.open_with(&self.name, flags, Mode::from_raw_mode(mode))
    }

    /// Creates a file without a name in the directory.
    ///
    /// # Errors
    /// The file system does not support such files, or the system refuses.
    pub(super) fn make_unnamed(&self) -> rustix::io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        rustix::fs::openat(&self.directory, ".", flags, Mode::from_raw_mode(0o666)).map(File::from)
    }

    fn open_with(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<File> {
        Ok(rustix::fs::openat(&self.directory, name, flags | OFlags::CLOEXEC, mode)?.into())
    }

    /// Returns the metadata of the file.
    ///
    /// # Errors
    /// The file is a symbolic link, or the system refuses.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        let metadata = self.open(OFlags::PATH)?.metadata()?;
        if metadata.is_symlink() { Err(rustix::io::Errno::LOOP.into()) } else { Ok(metadata) }
    }

    /// Returns whether `file` is the file that now has this name in the directory.
    pub(super) fn is(&self, file: &File) -> bool {
        let Ok((open, there)) = file.metadata().and_then(|open| Ok((open, self.metadata()?))) else { return false };
        (open.dev(), open.ino()) == (there.dev(), there.ino())
    }

    /// Checks that the existing file may be written.
    pub(super) fn check_access(&self) -> io::Result<()> {
        Ok(rustix::fs::accessat(&self.directory, &self.name, Access::WRITE_OK, AtFlags::empty())?)
    }

    /// Gives this name to an open file. No file with this name may exist.
    pub(super) fn link(&self, file: &File) -> io::Result<()> {
        let descriptor = Path::new(DESCRIPTORS).join(file.as_raw_fd().to_string());
        Ok(rustix::fs::linkat(CWD, &descriptor, &self.directory, &self.name, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// Gives the file a second name in the same directory.
    pub(super) fn link_to(&self, second: &Self) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.directory, &self.name, &second.directory, &second.name, AtFlags::empty())?)
    }

    /// Renames the file to `target`, which it replaces.
    pub(super) fn rename_to(&self, target: &Self) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.directory, &self.name, &target.directory, &target.name)?)
    }

    /// Removes the file.
    pub(super) fn remove(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty())?)
    }
}

/// Directory with links to the open files of this process.
pub(super) const DESCRIPTORS: &str = "/proc/self/fd";

impl Destination {
    /// Returns the destination of `path`, without opening it.
    ///
    /// # Errors
    /// The destination cannot be written.
    pub(super) fn at(path: &Path) -> Result<Self> {
        if path == Path::new(STANDARD_OUTPUT) {
            return Ok(Self::StandardOutput);
        }
        let name = path.display();
        let end = match follow(path) {
            Some(End::Descriptor(1)) => return Ok(Self::StandardOutput),
            Some(End::Descriptor(2)) => return Ok(Self::StandardError),
            Some(End::Descriptor(_)) => path.to_owned(),
            Some(End::Path(end)) => end,
            None => return Err(usage(format_args!("{name}: the path has too many symbolic links"))),
        };
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return new_file(path, end),
            metadata => metadata.map_err(|error| cannot(path, &error))?,
        };
        let kind = metadata.file_type();
        let refused = if kind.is_dir() {
            "this is a directory; name a file in it"
        } else if kind.is_block_device() {
            "this is a block device, whose data would be lost; name a file"
        } else if kind.is_socket() {
            "this is a socket; name a file, a pipe or a terminal"
        } else if kind.is_file() {
            // A file whose name was removed can be reached only by its descriptor.
            let place = fs::canonicalize(path).and_then(|path| Place::of(&path));
            return place.map(Self::File).map_err(|error| cannot(path, &error));
        } else {
            return Ok(Self::Stream(path.to_owned()));
        };
        Err(usage(format_args!("{name}: {refused}")))
    }
}

/// Opens a character device or a pipe. For a pipe, it waits for a reader.
///
/// # Errors
/// The stream cannot be opened for writing.
pub(super) fn open_stream(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).open(path).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &io::Error) -> anyhow::Error {
    of_file(format!("{}: cannot be written: {error}", path.display()), error)
}

/// Returns the destination of a new file. `end` is the path to which the links of `path` lead. The
/// directory of `end` must exist.
fn new_file(path: &Path, end: PathBuf) -> Result<Destination> {
    let directory = directory_of(&end);
    let is_name = end.file_name().is_some() && !path.as_os_str().to_string_lossy().ends_with('/');
    match fs::metadata(directory) {
        _ if !is_name => {
            Err(usage(format_args!("{}: this path does not end in the name of a file; add a name", path.display())))
        }
        Ok(metadata) if metadata.is_dir() => {
            let resolved =
                fs::canonicalize(directory).map(|resolved| resolved.join(end.file_name().unwrap_or_default()));
            let place = resolved.and_then(|path| Place::of(&path));
            place.map(Destination::File).map_err(|error| cannot(path, &error))
        }
        Ok(_) => Err(usage(format_args!(
            "{}: cannot be written: {} is not a directory",
            path.display(),
            directory.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(usage(format_args!(
            "{}: cannot be written: there is no directory {}",
            path.display(),
            directory.display()
        ))),
        Err(error) => Err(cannot(path, &error)),
    }
}

/// Returns the directory of a file.
pub(super) fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The end of a chain of links.
#[derive(Debug, PartialEq)]
enum End {
    /// An open file of this process, such as /dev/stdout and /dev/fd/3.
    Descriptor(u32),
    /// A path, whether it exists or not.
    Path(PathBuf),
}

/// Follows links to their end. `None` if they form a circle.
fn follow(path: &Path) -> Option<End> {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        if let Some(number) = descriptor(&at) {
            return Some(End::Descriptor(number));
        }
        match fs::read_link(&at) {
            Ok(to) => at = directory_of(&at).join(to),
            Err(_) => return Some(End::Path(at)),
        }
    }
    None
}

/// Returns the number of an open file of this process, if the path is its entry in /proc.
fn descriptor(path: &Path) -> Option<u32> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let directory = fs::canonicalize(directory_of(path)).ok()?;
    let of_process = Path::new("/proc").join(std::process::id().to_string());
    (directory.starts_with(of_process) && directory.ends_with("fd")).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_file_descriptors_are_recognised() {
        for name in ["/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"] {
            assert_eq!(follow(Path::new(name)), Some(End::Descriptor(1)), "{name}");
        }
        assert_eq!(follow(Path::new("/dev/null")), Some(End::Path("/dev/null".into())));
    }
}
