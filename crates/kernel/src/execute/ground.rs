//! Targets of a workload's I/Os: the device, an existing file, or new files. New files are created
//! and filled before the clock starts, and removed afterwards.
//!
//! Files are created and opened relative to the descriptor of their directory, never by their path.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags};

use super::ExecuteError;
use super::memory::{ALIGN_BYTES, WriteData};
use super::port::Opened;
use crate::file::FileTarget;
use crate::target::{DirectoryTarget, OpenTarget, Target};
use iosched_system::open_directory::OpenDirectory;

/// Default limit for the size of a file that stands for a device, bytes.
const DISK_BYTES_MAX: u64 = 1 << 30;
/// Smallest size of a file that stands for a device, bytes.
const DISK_BYTES_MIN: u64 = 1 << 20;
/// Size of the pieces in which a file is filled, bytes.
const FILL_BYTES: usize = 1 << 20;
/// Number of pieces that iosched writes before it waits until the data is on the medium.
const PIECES_UNSYNCED: u64 = 32;
/// Name of a temporary file that shows the capabilities of the file system.
const PROBE: &str = "probe";
/// Block size of direct I/O if the file system does not report one, bytes.
const BLOCK_BYTES: u64 = 4096;

/// A file of the ground, or the device, and its range in the workload's addresses.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// Path for messages. Files in a directory are opened by the last part of the path.
    pub(super) path: PathBuf,
    /// Start in the workload's addresses, bytes.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

impl Piece {
    fn name(&self) -> &Path {
        Path::new(self.path.file_name().unwrap_or_default())
    }
}

/// Files that a workload needs in a directory.
pub(super) enum Need {
    /// A file that stands for a device. The workload uses the file up to the byte `reach_bytes`.
    Disk { reach_bytes: u64 },
    /// Files, each with its start in the workload's addresses and its size, bytes.
    Files(Vec<(u64, u64)>),
}

/// Options for opening a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) write: bool,
    pub(super) direct: bool,
    pub(super) buffered: bool,
    /// `O_SYNC`, `O_DSYNC`.
    pub(super) flags: OFlags,
}

impl Default for Access {
    fn default() -> Self {
        Self { write: false, direct: false, buffered: false, flags: OFlags::empty() }
    }
}

/// Target of a workload's I/Os. The module page has the details.
#[derive(Debug)]
pub(super) struct Ground<'t> {
    target: &'t Target,
    pub(super) pieces: Vec<Piece>,
    /// Whether files can be opened for direct I/O, and the block size of direct I/O in bytes.
    pub(super) direct: bool,
    pub(super) block_bytes: u64,
    /// Directory of this ground inside the target's directory. `None` for other targets.
    own_directory: Option<Arc<OpenDirectory>>,
    /// Whether the directory is kept for the next workload.
    keeps: bool,
}

/// Returns the size of the device that a workload sees on this target, bytes. `reach_bytes` is the
/// end of the range that the workload uses.
pub(super) fn disk_bytes(target: &Target, reach_bytes: u64) -> Result<u64, ExecuteError> {
    let directory = match &target.place {
        OpenTarget::Directory(directory) => directory,
        OpenTarget::ReadOnly(device) => return Ok(device.size_bytes()),
        OpenTarget::Writable(consent) => return Ok(consent.device().size_bytes()),
        OpenTarget::File(file) => return Ok(file.bytes()),
    };
    if let Some(bytes) = directory.disk_bytes() {
        return Ok(bytes.next_multiple_of(ALIGN_BYTES as u64));
    }
    let available_bytes = available(directory)?;
    let room = available_bytes / 2;
    if room < DISK_BYTES_MIN {
        let (path, needed_bytes) = (directory.given().to_owned(), 2 * DISK_BYTES_MIN);
        return Err(ExecuteError::NoRoom { path, needed_bytes, available_bytes });
    }
    Ok(reach_bytes.clamp(DISK_BYTES_MIN, DISK_BYTES_MAX).min(room).next_multiple_of(ALIGN_BYTES as u64))
}

/// Checks the room for new files in a directory.
///
/// # Errors
/// The target is a directory, and its file system has less room than `needed_bytes`.
pub(super) fn check_files(target: &Target, needed_bytes: u64) -> Result<(), ExecuteError> {
    match &target.place {
        OpenTarget::Directory(directory) => check_room(directory, needed_bytes),
        OpenTarget::ReadOnly(_) | OpenTarget::Writable(_) | OpenTarget::File(_) => Ok(()),
    }
}

/// Checks the room in the file system of a directory.
///
/// # Errors
/// The file system has less room than `needed_bytes`.
fn check_room(directory: &DirectoryTarget, needed_bytes: u64) -> Result<(), ExecuteError> {
    let available_bytes = available(directory)?;
    if needed_bytes > available_bytes {
        return Err(ExecuteError::NoRoom { path: directory.given().to_owned(), needed_bytes, available_bytes });
    }
    Ok(())
}

const fn whole(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGN_BYTES as u64)
}

/// Returns the space for files of a workload on this target, bytes.
pub(super) fn file_bytes(target: &Target) -> Result<u64, ExecuteError> {
    match &target.place {
        OpenTarget::Directory(directory) => available(directory),
        OpenTarget::ReadOnly(_) | OpenTarget::Writable(_) | OpenTarget::File(_) => disk_bytes(target, 0),
    }
}

fn available(directory: &DirectoryTarget) -> Result<u64, ExecuteError> {
    directory.available_bytes().map_err(|error| ExecuteError::file(directory.given(), error))
}

impl<'t> Ground<'t> {
    /// Creates the ground for a workload. In a directory, the files are created but not filled.
    pub(super) fn new(target: &'t Target, need: Need) -> Result<Self, ExecuteError> {
        let device = match &target.place {
            OpenTarget::Directory(directory) => return Self::in_directory(target, directory, need),
            OpenTarget::File(file) => return Ok(Self::of_file(target, file)),
            OpenTarget::ReadOnly(device) => device,
            OpenTarget::Writable(consent) => consent.device(),
        };
        let piece = Piece { path: device.path(), start: 0, bytes: device.size_bytes() };
        if piece.bytes == 0 {
            return Err(ExecuteError::Empty { path: piece.path });
        }
        let block_bytes = u64::from(device.logical_block_bytes());
        Ok(Self { target, pieces: vec![piece], direct: true, block_bytes, own_directory: None, keeps: false })
    }

    fn of_file(target: &'t Target, file: &FileTarget) -> Self {
        let piece = Piece { path: file.path().to_owned(), start: 0, bytes: file.bytes() };
        let block_bytes = direct_block_bytes(file.file());
        Self { target, pieces: vec![piece], direct: true, block_bytes, own_directory: None, keeps: false }
    }

    fn in_directory(target: &'t Target, directory: &DirectoryTarget, need: Need) -> Result<Self, ExecuteError> {
        let kept_disk = directory.kept_disk().filter(|_| matches!(need, Need::Disk { .. })).map(Path::to_owned);
        let keeps = kept_disk.is_some();
        let name = kept_disk.unwrap_or_else(|| directory.fresh());
        let inside = directory.own_directory().map_err(|error| ExecuteError::file(directory.given(), error))?;
        let path = inside.path().join(&name);
        let pieces: Vec<Piece> = match need {
            Need::Disk { reach_bytes } => {
                vec![Piece { path: path.join("disk"), start: 0, bytes: disk_bytes(target, reach_bytes)? }]
            }
            Need::Files(files) => (0..)
                .zip(files)
                .map(|(number, (start, bytes))| Piece {
                    path: path.join(format!("{number}")),
                    start,
                    bytes: whole(bytes),
                })
                .collect(),
        };
        let there = if keeps { inside.directory(&name).ok() } else { None };
        let own_directory = match there
            .filter(|own_directory| pieces.iter().all(|piece| own_directory.has_file(piece.name(), piece.bytes)))
        {
            Some(own_directory) => own_directory,
            None => make((directory, inside), &name, &pieces)?,
        };
        let failed = |error| ExecuteError::file(&path.join(PROBE), error);
        let probe = Path::new(PROBE);
        own_directory.make_file(probe, OFlags::WRONLY | OFlags::EXCL).map_err(failed)?;
        let direct = own_directory.open_file(probe, OFlags::RDWR | OFlags::DIRECT).ok();
        own_directory.remove_file(probe).map_err(failed)?;
        let block_bytes = direct.as_ref().map_or(BLOCK_BYTES, direct_block_bytes);
        Ok(Self { target, pieces, direct: direct.is_some(), block_bytes, own_directory: Some(own_directory), keeps })
    }

    /// Returns the index of the piece that contains an address of the workload.
    pub(super) fn piece_of(&self, start: u64) -> usize {
        self.pieces.partition_point(|piece| piece.start <= start).saturating_sub(1)
    }

    /// Fills the files and waits until all data is on the medium.
    pub(super) fn fill(&self, interrupt: Option<&AtomicBool>) -> Result<(), ExecuteError> {
        let Some(own_directory) = &self.own_directory else { return Ok(()) };
        self.check_place()?;
        // A kept file is already filled, except before its first use.
        for piece in self.pieces.iter().filter(|piece| !own_directory.has_file(piece.name(), piece.bytes)) {
            let file = own_directory.open_file(piece.name(), OFlags::WRONLY);
            let mut file = file.map_err(|error| ExecuteError::file(&piece.path, error))?;
            write_filler(&mut file, &piece.path, piece.bytes, interrupt)?;
        }
        self.check_place()
    }

    /// Checks that the directory of this ground still has its name.
    ///
    /// # Errors
    /// Another process replaced or moved the directory, or a directory above it.
    pub(super) fn check_place(&self) -> Result<(), ExecuteError> {
        let Some(own_directory) = &self.own_directory else { return Ok(()) };
        own_directory.check().map_err(|error| ExecuteError::file(self.given(), error))
    }

    /// Returns the path of the directory as the user gave it.
    fn given(&self) -> &Path {
        match &self.target.place {
            OpenTarget::Directory(directory) => directory.given(),
            _ => Path::new(""),
        }
    }

    /// Creates a directory in the directory of this ground.
    ///
    /// # Errors
    /// The target is not a directory, or the directory cannot be created.
    pub(super) fn subdirectory(&self, name: &str) -> Result<Arc<OpenDirectory>, ExecuteError> {
        let Some(own_directory) = &self.own_directory else {
            return Err(ExecuteError::file(self.given(), io::ErrorKind::NotADirectory.into()));
        };
        own_directory.make(Path::new(name)).map_err(|error| ExecuteError::file(&own_directory.path().join(name), error))
    }

    /// Drops the ground's data from the page cache.
    pub(super) fn drop_cached(&self) -> Result<(), ExecuteError> {
        self.check_place()?;
        for piece in &self.pieces {
            let failed = |error| ExecuteError::file(&piece.path, error);
            let file = self.open_file(piece, false, OFlags::empty()).map_err(failed)?;
            if self.own_directory.is_some() {
                file.sync_all().map_err(failed)?;
            }
            forget_cached(&file);
        }
        Ok(())
    }

    /// Opens a piece.
    pub(super) fn open(&self, piece: usize, access: Access) -> Result<Opened, ExecuteError> {
        self.check_place()?;
        let piece = &self.pieces[piece];
        let path = &piece.path;
        let open = |flags: OFlags| {
            let opened = self.open_file(piece, access.write, access.flags | flags);
            opened.map_err(|error| ExecuteError::file(path, error))
        };
        let direct = access.direct && self.direct;
        let file = open(if direct { OFlags::DIRECT } else { OFlags::empty() })?;
        let other = if access.buffered && direct { Some(open(OFlags::empty())?) } else { None };
        let is_device = matches!(self.target.place, OpenTarget::ReadOnly(_) | OpenTarget::Writable(_));
        let block_bytes = self.block_bytes;
        Ok(Opened { path: path.clone(), file, buffered: !direct, other, block_bytes, is_device })
    }

    fn open_file(&self, piece: &Piece, write: bool, flags: OFlags) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags.bits().cast_signed());
        match (&self.target.place, &self.own_directory) {
            (_, Some(own_directory)) => {
                own_directory.open_file(piece.name(), flags | if write { OFlags::RDWR } else { OFlags::RDONLY })
            }
            (OpenTarget::Writable(consent), _) if write => consent.open(&options),
            (OpenTarget::File(file), _) => file.open_again(flags),
            _ => options.open(&piece.path),
        }
    }
}

impl Ground<'_> {
    /// Removes the files, unless they are kept for the next workload.
    ///
    /// # Errors
    /// Another process replaced or moved the directory, or a file cannot be removed. Remaining
    /// files are removed with the target's directory.
    pub(super) fn remove(&mut self) -> Result<(), ExecuteError> {
        let Some(own_directory) = self.own_directory.take().filter(|_| !self.keeps) else { return Ok(()) };
        let removed = own_directory.empty(None).and_then(|()| own_directory.remove());
        removed.map_err(|error| ExecuteError::file(self.given(), error))
    }
}

impl Drop for Ground<'_> {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// Creates the directory `name` inside the target's directory, with empty files.
fn make(
    (directory, inside): (&DirectoryTarget, &Arc<OpenDirectory>),
    name: &Path,
    pieces: &[Piece],
) -> Result<Arc<OpenDirectory>, ExecuteError> {
    check_room(directory, pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.bytes)))?;
    // Remove the files of an earlier kept ground that was not filled completely.
    let _ = inside.remove_all(name);
    let own_directory = inside.make(name).map_err(|error| ExecuteError::file(&inside.path().join(name), error))?;
    for piece in pieces {
        let file = own_directory.make_file(piece.name(), OFlags::WRONLY | OFlags::EXCL);
        file.map_err(|error| ExecuteError::file(&piece.path, error))?;
    }
    Ok(own_directory)
}

/// Fills an empty file with incompressible data and waits until all data is on the medium.
pub(super) fn write_filler(
    file: &mut File,
    path: &Path,
    bytes: u64,
    interrupt: Option<&AtomicBool>,
) -> Result<(), ExecuteError> {
    let failed = |error| ExecuteError::file(path, error);
    let data = WriteData::new(bytes.min(FILL_BYTES as u64) as usize, bytes);
    let pieces = bytes.div_ceil(FILL_BYTES as u64);
    for number in 0..pieces {
        if interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(ExecuteError::Interrupted { at_ns: 0 });
        }
        let length = (bytes - number * FILL_BYTES as u64).min(FILL_BYTES as u64);
        file.write_all(data.of(number, length as usize)).map_err(failed)?;
        // Without this sync, many dirty pages could collect in the page cache. The kernel would
        // then write to a slow device for minutes, even after an interrupt.
        if (number + 1) % PIECES_UNSYNCED == 0 {
            file.sync_data().map_err(failed)?;
        }
    }
    file.sync_all().map_err(failed)
}

/// Drops a file from the page cache.
pub(super) fn forget_cached(file: &File) {
    // The call is only advice, so an error does not matter.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
}

/// Returns the block size of direct I/O that the file system reports.
fn direct_block_bytes(file: &File) -> u64 {
    let about = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    let alignment = about.ok().map(|about| u64::from(about.stx_dio_offset_align));
    alignment.filter(|bytes| bytes.is_power_of_two()).unwrap_or(BLOCK_BYTES).max(512)
}

#[cfg(test)]
#[path = "../tests/ground.rs"]
mod tests;
