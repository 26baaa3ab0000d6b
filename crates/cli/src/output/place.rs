//! What stands at a path that is to be written, and how one writes there: into it, or a new file in its place.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::STANDARD_OUTPUT;
use crate::fail::{of_file, usage};

/// Links that are followed at most, as the kernel does.
const LINKS_MAX: usize = 40;

/// Where something is written to.
#[derive(Clone, Debug)]
pub(super) enum Destination {
    /// Standard output.
    StandardOutput,
    /// Standard error.
    StandardError,
    /// A character device or a pipe.
    Stream(PathBuf),
    /// A file, or where one is to be; no link.
    File(PathBuf),
}

impl Destination {
    /// What `path` stands for. Nothing is opened.
    ///
    /// # Errors
    /// Nothing can be written there.
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
            None => return Err(usage(format_args!("{name}: leads through too many symbolic links"))),
        };
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return new_file(path, end),
            metadata => metadata.map_err(|error| cannot(path, &error))?,
        };
        let kind = metadata.file_type();
        let refused = if kind.is_dir() {
            "is a directory; name a file in it"
        } else if kind.is_block_device() {
            "is a block device, whose data would be lost; name a file"
        } else if kind.is_socket() {
            "is a socket; name a file, a pipe or a terminal"
        } else if kind.is_file() {
            // Of a file that was removed, only its descriptor is left.
            return fs::canonicalize(path).map(Self::File).map_err(|error| cannot(path, &error));
        } else {
            return Ok(Self::Stream(path.to_owned()));
        };
        Err(usage(format_args!("{name}: {refused}")))
    }
}

/// Opens a character device or a pipe. A pipe waits for its reader.
///
/// # Errors
/// It cannot be opened for writing.
pub(super) fn open_stream(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).open(path).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &io::Error) -> anyhow::Error {
    of_file(format!("{}: cannot be written: {error}", path.display()), error)
}

/// A file that is not there yet, at the end of links; its directory must be.
fn new_file(path: &Path, end: PathBuf) -> Result<Destination> {
    let directory = directory_of(&end);
    let is_name = end.file_name().is_some() && !path.as_os_str().to_string_lossy().ends_with('/');
    match fs::metadata(directory) {
        _ if !is_name => Err(usage(format_args!("{}: is no name of a file", path.display()))),
        Ok(metadata) if metadata.is_dir() => {
            let whole = fs::canonicalize(directory).map_err(|error| cannot(path, &error))?;
            Ok(Destination::File(whole.join(end.file_name().unwrap_or_default())))
        }
        Ok(_) => {
            Err(usage(format_args!("{}: cannot be written: {} is no directory", path.display(), directory.display())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(usage(format_args!(
            "{}: cannot be written: there is no directory {}",
            path.display(),
            directory.display()
        ))),
        Err(error) => Err(cannot(path, &error)),
    }
}

/// The directory that a file is in.
pub(super) fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Where links end.
#[derive(Debug, PartialEq)]
enum End {
    /// An open file of ours, as /dev/stdout and /dev/fd/3 are.
    Descriptor(u32),
    /// Something with a name, or nothing.
    Path(PathBuf),
}

/// Follows links as far as they lead; `None` if that is in a circle.
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

/// The number of an open file of ours, if the path is its entry below /proc.
fn descriptor(path: &Path) -> Option<u32> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let directory = fs::canonicalize(directory_of(path)).ok()?;
    let own = Path::new("/proc").join(std::process::id().to_string());
    (directory.starts_with(own) && directory.ends_with("fd")).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_known_under_all_their_names() {
        for name in ["/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"] {
            assert_eq!(follow(Path::new(name)), Some(End::Descriptor(1)), "{name}");
        }
        assert_eq!(follow(Path::new("/dev/null")), Some(End::Path("/dev/null".into())));
    }
}
