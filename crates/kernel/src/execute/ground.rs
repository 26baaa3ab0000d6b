//! Where the I/Os of a workload go: the device, a file that is there already, or files that are made and filled before
//! the clock starts and removed after.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags};

use super::ExecuteError;
use super::memory::{ALIGN_BYTES, WriteData};
use super::port::Opened;
use crate::file::FileTarget;
use crate::target::{DirectoryTarget, OpenTarget, Target};

/// The file that stands for a device is at most so large unless the target says otherwise, bytes.
const DISK_BYTES_MAX: u64 = 1 << 30;
/// And at least so large.
const DISK_BYTES_MIN: u64 = 1 << 20;
/// A file is filled in pieces of this size, bytes.
const FILL_BYTES: usize = 1 << 20;
/// What direct I/O needs where nobody says, bytes.
const BLOCK_BYTES: u64 = 4096;

/// A file of the ground, or the device.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) path: PathBuf,
    /// Where it begins in the workload's addresses, bytes.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// What a workload needs of a directory.
pub(super) enum Need {
    /// A file that stands for a device on which the workload reaches to this byte.
    Disk { reach_bytes: u64 },
    /// Files: where each begins in the workload's addresses, and its size, bytes.
    Files(Vec<(u64, u64)>),
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Access {
    pub(super) write: bool,
    pub(super) direct: bool,
    pub(super) buffered: bool,
    /// `O_SYNC`, `O_DSYNC`.
    pub(super) flags: i32,
}

/// See the module page.
#[derive(Debug)]
pub(super) struct Ground<'t> {
    target: &'t Target,
    pub(super) pieces: Vec<Piece>,
    /// Whether files can be opened past the page cache, and what is moved then at least, bytes.
    pub(super) direct: bool,
    pub(super) block_bytes: u64,
    /// Of a directory: the part of it that is this ground's.
    own: Option<PathBuf>,
    /// Whether that stays for the next workload.
    keeps: bool,
}

/// How large a device is to a workload on this target that reaches to `reach_bytes`.
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
    let room = available(directory)? / 2;
    Ok(reach_bytes.clamp(DISK_BYTES_MIN, DISK_BYTES_MAX).min(room).next_multiple_of(ALIGN_BYTES as u64))
}

/// Room for files of a workload on this target, bytes.
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
    /// The ground for a workload: of a directory, its files are there, but not filled.
    pub(super) fn new(target: &'t Target, need: Need) -> Result<Self, ExecuteError> {
        let device = match &target.place {
            OpenTarget::Directory(directory) => return Self::in_directory(target, directory, need),
            OpenTarget::File(file) => return Self::of_file(target, file),
            OpenTarget::ReadOnly(device) => device,
            OpenTarget::Writable(consent) => consent.device(),
        };
        let piece = Piece { path: device.path(), start: 0, bytes: device.size_bytes() };
        if piece.bytes == 0 {
            return Err(ExecuteError::Empty { path: piece.path });
        }
        let block_bytes = u64::from(device.logical_block_bytes());
        Ok(Self { target, pieces: vec![piece], direct: true, block_bytes, own: None, keeps: false })
    }

    fn of_file(target: &'t Target, file: &FileTarget) -> Result<Self, ExecuteError> {
        let piece = Piece { path: file.path().to_owned(), start: 0, bytes: file.bytes() };
        let opened = File::open(file.path()).map_err(|error| ExecuteError::file(file.path(), error))?;
        let block_bytes = direct_block_bytes(&opened);
        Ok(Self { target, pieces: vec![piece], direct: true, block_bytes, own: None, keeps: false })
    }

    fn in_directory(target: &'t Target, directory: &DirectoryTarget, need: Need) -> Result<Self, ExecuteError> {
        let kept = directory.kept_disk().filter(|_| matches!(need, Need::Disk { .. })).map(Path::to_owned);
        let keeps = kept.is_some();
        let own = kept.unwrap_or_else(|| directory.fresh());
        let whole = |bytes: u64| bytes.next_multiple_of(ALIGN_BYTES as u64);
        let pieces: Vec<Piece> = match need {
            Need::Disk { reach_bytes } => {
                vec![Piece { path: own.join("disk"), start: 0, bytes: disk_bytes(target, reach_bytes)? }]
            }
            Need::Files(files) => (0..)
                .zip(files)
                .map(|(number, (start, bytes))| Piece {
                    path: own.join(format!("{number}")),
                    start,
                    bytes: whole(bytes),
                })
                .collect(),
        };
        if !(keeps && pieces.iter().all(is_filled)) {
            make(directory, &own, &pieces)?;
        }
        let own_path = Some(own.clone());
        let mut ground = Self { target, pieces, direct: false, block_bytes: BLOCK_BYTES, own: own_path, keeps };
        let probe = own.join("probe");
        File::create_new(&probe).map_err(|error| ExecuteError::file(&probe, error))?;
        if let Ok(file) = ground.open_file(&probe, true, OFlags::DIRECT.bits() as i32) {
            ground.direct = true;
            ground.block_bytes = direct_block_bytes(&file);
        }
        fs::remove_file(&probe).map_err(|error| ExecuteError::file(&probe, error))?;
        Ok(ground)
    }

    /// The piece in which an address of the workload is.
    pub(super) fn piece_of(&self, start: u64) -> usize {
        self.pieces.partition_point(|piece| piece.start <= start).saturating_sub(1)
    }

    /// Fills the files, and waits until all of it is on the medium.
    pub(super) fn fill(&self, interrupt: Option<&AtomicBool>) -> Result<(), ExecuteError> {
        if self.own.is_none() {
            return Ok(());
        }
        // What is kept is filled already, but for the first time.
        for Piece { path, bytes, .. } in self.pieces.iter().filter(|piece| !is_filled(piece)) {
            let file = OpenOptions::new().write(true).open(path);
            write_filler(&mut file.map_err(|error| ExecuteError::file(path, error))?, path, *bytes, interrupt)?;
        }
        Ok(())
    }

    /// Makes a directory in that of this ground.
    pub(super) fn subdirectory(&self, name: &str) -> Result<PathBuf, ExecuteError> {
        let path = self.own.as_deref().unwrap_or(Path::new("")).join(name);
        fs::create_dir(&path).map_err(|error| ExecuteError::file(&path, error))?;
        Ok(path)
    }

    /// The page cache lets go of what it has of the ground.
    pub(super) fn drop_cached(&self) -> Result<(), ExecuteError> {
        for Piece { path, .. } in &self.pieces {
            let file = File::open(path).map_err(|error| ExecuteError::file(path, error))?;
            if self.own.is_some() {
                file.sync_all().map_err(|error| ExecuteError::file(path, error))?;
            }
            forget_cached(&file);
        }
        Ok(())
    }

    /// Opens a piece.
    pub(super) fn open(&self, piece: usize, access: Access) -> Result<Opened, ExecuteError> {
        let path = &self.pieces[piece].path;
        let open = |flags: i32| {
            let opened = self.open_file(path, access.write, access.flags | flags);
            opened.map_err(|error| ExecuteError::file(path, error))
        };
        let direct = access.direct && self.direct;
        let file = open(if direct { OFlags::DIRECT.bits() as i32 } else { 0 })?;
        let other = if access.buffered && direct { Some(open(0)?) } else { None };
        let is_device = matches!(self.target.place, OpenTarget::ReadOnly(_) | OpenTarget::Writable(_));
        let block_bytes = self.block_bytes;
        Ok(Opened { path: path.clone(), file, buffered: !direct, other, block_bytes, is_device })
    }

    fn open_file(&self, path: &Path, write: bool, flags: i32) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags);
        match &self.target.place {
            OpenTarget::Writable(consent) if write => consent.open(&options),
            OpenTarget::Directory(_) => options.write(write).open(path),
            OpenTarget::ReadOnly(_) | OpenTarget::Writable(_) | OpenTarget::File(_) => options.open(path),
        }
    }
}

impl Drop for Ground<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own.as_ref().filter(|_| !self.keeps) {
            // What stays goes with the target's directory.
            let _ = fs::remove_dir_all(own);
        }
    }
}

/// Makes the files of a ground, empty.
fn make(directory: &DirectoryTarget, own: &Path, pieces: &[Piece]) -> Result<(), ExecuteError> {
    let needed_bytes = pieces.iter().fold(0u64, |sum, piece| sum.saturating_add(piece.bytes));
    let available_bytes = available(directory)?;
    if needed_bytes > available_bytes {
        return Err(ExecuteError::NoRoom { path: directory.given().to_owned(), needed_bytes, available_bytes });
    }
    // Of one that was to stay, and was not filled to its end.
    let _ = fs::remove_dir_all(own);
    fs::create_dir(own).map_err(|error| ExecuteError::file(own, error))?;
    for Piece { path, .. } in pieces {
        File::create_new(path).map_err(|error| ExecuteError::file(path, error))?;
    }
    Ok(())
}

/// Whether all of a file is there already.
fn is_filled(piece: &Piece) -> bool {
    fs::metadata(&piece.path).is_ok_and(|about| about.len() == piece.bytes)
}

/// Fills an empty file with data that no device can make smaller, and waits until all of it is on the medium.
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
    }
    file.sync_all().map_err(failed)
}

/// The page cache lets go of a file.
pub(super) fn forget_cached(file: &File) {
    // Advice that is not taken is told by nobody.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
}

/// What the file system says that direct I/O needs.
fn direct_block_bytes(file: &File) -> u64 {
    let about = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    let said = about.ok().map(|about| u64::from(about.stx_dio_offset_align));
    said.filter(|bytes| bytes.is_power_of_two()).unwrap_or(BLOCK_BYTES).max(512)
}
