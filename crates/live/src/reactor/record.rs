//! Records of a served disk: a block trace, and a recording of its driver. A separate thread writes
//! each record. The disk never waits for the file of a trace, so a trace can have gaps. The disk
//! waits for the receiver of a recording, because a recording with gaps is useless.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use iosched::recording::Record;
use iosched_system::open_directory::OpenDirectory;
use iosched_trace::{BlkEvent, EventWriter, TraceError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::{LiveDisk, Messages};

/// Maximum number of batches of events that wait to be written.
const BATCHES_MAX: usize = 1024;
/// Maximum time to wait for the reader of a recording's FIFO. After this time, the recording ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// First line of a recording. It contains the version of iosched that made the decisions.
pub const RECORDING_MARK: &str = concat!("# recording of iosched ", env!("CARGO_PKG_VERSION"));

/// Receiver of the recording of a disk's driver, with all its inputs and decisions.
#[derive(Clone, Debug)]
pub enum Recording {
    /// A file with one line for each [`Record`].
    File(PathBuf),
    /// A channel. The disk waits while the channel is full.
    Channel(SyncSender<Vec<Record>>),
}

impl Recording {
    /// Checks the recording's file, if there is one, as [`Output::at`] does.
    pub(super) fn look(&self, backing: Option<&Path>, replace: bool) -> Result<Driver, RecordError> {
        Ok(match self {
            Self::File(path) => Driver::File(Output::at(path, backing, replace)?),
            Self::Channel(driver) => Driver::Channel(driver.clone()),
        })
    }
}

/// Receiver of a recording whose file has been checked.
#[derive(Debug)]
pub(super) enum Driver {
    File(Output),
    Channel(SyncSender<Vec<Record>>),
}

/// Reason why a trace or recording cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Error of the system.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The file is a FIFO without a reader. Opening it would block.
    #[error("{}: this is a FIFO without a reader; start the reader first, or name a file", path.display())]
    NoReader {
        /// Path of the FIFO.
        path: PathBuf,
    },
    /// The file contains the disk's own data.
    #[error("{}: this file holds the data of the disk, which the recording would replace; name another \
             file", path.display())]
    IsTheDisk {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is a block device, which may contain data of another disk.
    #[error("{}: this is a block device, whose data the recording would replace; name a file", path.display())]
    IsADevice {
        /// Path of the device.
        path: PathBuf,
    },
    /// The file exists and contains data.
    #[error("{}: this file already exists, and the recording would replace it; name another file", path.display())]
    Exists {
        /// Path of the file.
        path: PathBuf,
    },
}

/// Opens a file to write it from its beginning. Replaces data in a file only if `replace` is true,
/// even if the file appeared after [`Output::at`]. Never writes to a regular file behind a link.
/// Does not wait for a FIFO that appeared after [`Output::at`].
///
/// `directory` is the directory of the file, as [`Output::at`] opened it. If the path now leads to
/// another directory, the function returns an error.
fn open(directory: &OpenDirectory, path: &Path, replace: bool) -> Result<File, RecordError> {
    let failed = |error| RecordError::Io { path: path.to_owned(), error };
    let name = path.file_name().ok_or_else(|| failed(ErrorKind::InvalidInput.into()))?;
    if !directory.is_at(directory_of(path)) {
        return Err(failed(io::Error::other(
            "another program renamed or replaced the directory of this file while the server started",
        )));
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    match directory.open_name(name, flags, Mode::from_raw_mode(0o666)) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        opened => return opened.map_err(failed),
    }
    let flags = OFlags::WRONLY | OFlags::NONBLOCK;
    let (file, is_link) = match directory.open_name(name, flags, Mode::empty()) {
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            // The target of the link is written only if it is not a regular file.
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            (OpenOptions::new().write(true).custom_flags(flags).open(path), true)
        }
        opened => (opened, false),
    };
    let file = file.map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.file_type().is_block_device() {
        return Err(RecordError::IsADevice { path: path.to_owned() });
    }
    if found.is_file() && (is_link || found.len() > 0) {
        if is_link || !replace {
            return Err(RecordError::Exists { path: path.to_owned() });
        }
        file.set_len(0).map_err(failed)?;
    }
    Ok(file)
}

/// Returns the directory of a file.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// File of a trace or recording.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    /// Directory of the file.
    directory: Arc<OpenDirectory>,
    /// The open file, if it is a FIFO or character device. Such a file stays open from the start,
    /// because its reader notices each opening and closing.
    open: Option<File>,
    /// Whether the output may replace a file that contains data.
    replace: bool,
}

impl Output {
    /// Checks that `path` can be written, and that it is not the file `backing`, which contains the
    /// disk's data. Does not wait: a FIFO must already have a reader.
    pub(super) fn at(path: &Path, backing: Option<&Path>, replace: bool) -> Result<Self, RecordError> {
        let failed = |error| RecordError::Io { path: path.to_owned(), error };
        let directory = OpenDirectory::reach(directory_of(path)).map_err(failed)?;
        let Ok(found) = std::fs::metadata(path) else {
            return Ok(Self { path: path.to_owned(), directory, open: None, replace });
        };
        if found.file_type().is_block_device() {
            return Err(RecordError::IsADevice { path: path.to_owned() });
        }
        let of_disk = backing.and_then(|backing| std::fs::metadata(backing).ok());
        if of_disk.is_some_and(|disk| (disk.dev(), disk.ino()) == (found.dev(), found.ino())) {
            return Err(RecordError::IsTheDisk { path: path.to_owned() });
        }
        let opened = OpenOptions::new().append(true).custom_flags(libc::O_NONBLOCK).open(path);
        let opened = opened.map_err(|error| match error.raw_os_error() {
            Some(libc::ENXIO) if found.file_type().is_fifo() => RecordError::NoReader { path: path.to_owned() },
            _ => failed(error),
        })?;
        let open = Some(opened).filter(|_| !found.is_file());
        Ok(Self { path: path.to_owned(), directory, open, replace })
    }

    /// Opens the file. Removes the previous content of a regular file.
    fn create(self) -> Result<Patient, RecordError> {
        let file = self.open.map_or_else(|| open(&self.directory, &self.path, self.replace), Ok)?;
        Ok(Patient { file, patience: PATIENCE })
    }
}

/// A file that waits for its reader for a limited time.
#[derive(Debug)]
struct Patient {
    file: File,
    patience: Duration,
}

impl Patient {
    /// Waits until the file accepts data. Fails after a limited time.
    fn wait(&self) -> io::Result<()> {
        let timeout = Timespec::try_from(self.patience).ok();
        match poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], timeout.as_ref()) {
            Ok(0) => {
                let seconds = self.patience.as_secs();
                Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("the program that reads this recording accepted no data for {seconds} s"),
                ))
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait()?,
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Result of a finished trace or recording.
#[derive(Debug)]
pub struct Recorded {
    /// Number of lost events. Events are lost if writing the file is too slow.
    pub lost: u64,
    /// Error that ended the file early, if any.
    pub result: Result<(), TraceError>,
}

/// Writes batches of `T` to a file.
pub(super) struct Recorder<T> {
    batches: SyncSender<Vec<T>>,
    writer: JoinHandle<Result<(), TraceError>>,
    lost: u64,
}

impl<T: Send + 'static> Recorder<T> {
    fn create(
        output: Output,
        messages: Messages,
        write: impl FnOnce(Patient, &Receiver<Vec<T>>) -> Result<(), TraceError> + Send + 'static,
    ) -> Result<Self, RecordError> {
        let path = output.path.clone();
        let file = output.create()?;
        let (batches, coming) = sync_channel(BATCHES_MAX);
        let name = path.display().to_string();
        let write = move || {
            let written = write(file, &coming);
            if let Err(error) = &written {
                messages
                    .say(&format!("warning: {name}: {error}; the recording ends here, but the disk is still served"));
            }
            written
        };
        let writer = std::thread::Builder::new().name("record".to_owned()).spawn(write);
        let writer = writer.map_err(|error| RecordError::Io { path, error })?;
        Ok(Self { batches, writer, lost: 0 })
    }

    fn finish(self) -> Recorded {
        drop(self.batches);
        let died = || Err(TraceError::Write(std::io::Error::other("the thread that writes the file has failed")));
        Recorded { lost: self.lost, result: self.writer.join().unwrap_or_else(|_| died()) }
    }
}

/// Recorders of all records of a disk.
#[derive(Default)]
pub(super) struct Recorders {
    trace: Option<Recorder<BlkEvent>>,
    driver: Option<SyncSender<Vec<Record>>>,
    driver_file: Option<Recorder<Record>>,
}

impl Recorders {
    pub(super) fn create(
        trace: Option<Output>,
        driver: Option<Driver>,
        messages: &Messages,
    ) -> Result<Self, RecordError> {
        let trace = trace.map(|output| Recorder::create(output, messages.clone(), write_trace)).transpose()?;
        Ok(match driver {
            None => Self { trace, ..Self::default() },
            Some(Driver::Channel(driver)) => Self { trace, driver: Some(driver), driver_file: None },
            Some(Driver::File(output)) => {
                let file = Recorder::create(output, messages.clone(), write_recording)?;
                Self { trace, driver: Some(file.batches.clone()), driver_file: Some(file) }
            }
        })
    }

    /// Returns whether there is a trace.
    pub(super) fn traces(&self) -> bool {
        self.trace.is_some()
    }

    /// Takes the events and records since the last call.
    pub(super) fn take(&mut self, disk: &mut LiveDisk) {
        // This call also processes decisions that the disk only counts.
        let events = disk.take_events();
        if let Some(trace) = self.trace.as_mut().filter(|_| !events.is_empty())
            && let Err(TrySendError::Full(events) | TrySendError::Disconnected(events)) = trace.batches.try_send(events)
        {
            trace.lost += events.len() as u64;
        }
        if let Some(driver) = &self.driver {
            let records = disk.take_records();
            if !records.is_empty() && driver.send(records).is_err() {
                // The receiver has ended.
                disk.end_records();
                self.driver = None;
            }
        }
    }

    /// Finishes the files. Returns the results of the trace and of the recording's file.
    pub(super) fn finish(self) -> (Option<Recorded>, Option<Recorded>) {
        drop(self.driver);
        (self.trace.map(Recorder::finish), self.driver_file.map(Recorder::finish))
    }
}

fn write_trace(file: Patient, coming: &Receiver<Vec<BlkEvent>>) -> Result<(), TraceError> {
    let mut out = EventWriter::new(file);
    for events in coming {
        for event in &events {
            out.write(event)?;
        }
    }
    out.finish().map(drop)
}

fn write_recording(file: Patient, coming: &Receiver<Vec<Record>>) -> Result<(), TraceError> {
    let mut out = BufWriter::new(file);
    let mut write = || {
        writeln!(out, "{RECORDING_MARK}")?;
        for record in coming.iter().flatten() {
            writeln!(out, "{record}")?;
        }
        out.flush()
    };
    write().map_err(TraceError::Write)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_fifo_without_a_reader_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        assert!(matches!(Output::at(&path, None, false), Err(RecordError::NoReader { .. })));
        let _reader = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
        assert!(Output::at(&path, None, false).unwrap().open.is_some());
    }

    #[test]
    fn write_to_a_stalled_reader_times_out() {
        let (_reader, writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let mut patient = Patient { file, patience: Duration::from_millis(20) };
        let error = patient.write_all(&[0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn only_empty_files_are_replaced_without_permission() {
        let here = tempfile::tempdir().unwrap();
        let directory = OpenDirectory::reach(here.path()).unwrap();
        let open = |path, replace| open(&directory, path, replace);
        let [data, empty, link, new] = ["data", "empty", "link", "new"].map(|name| here.path().join(name));
        fs::write(&data, "precious").unwrap();
        fs::write(&empty, "").unwrap();
        symlink(&data, &link).unwrap();
        assert!(open(&new, false).is_ok() && open(&empty, false).is_ok());
        for (path, replace) in [(&data, false), (&link, false), (&link, true)] {
            assert!(matches!(open(path, replace), Err(RecordError::Exists { .. })), "{}", path.display());
            assert_eq!(fs::read_to_string(&data).unwrap(), "precious");
        }
        let to_empty = here.path().join("to-empty");
        symlink(&empty, &to_empty).unwrap();
        assert!(matches!(open(&to_empty, true), Err(RecordError::Exists { .. })), "no file is written through a link");
        assert!(open(&data, true).is_ok());
        assert_eq!(fs::read_to_string(&data).unwrap(), "");
    }

    #[test]
    fn recording_fails_if_its_directory_is_replaced() {
        let here = tempfile::tempdir().unwrap();
        let [held, moved, victim] = ["held", "moved", "victim"].map(|name| here.path().join(name));
        [&held, &victim].into_iter().for_each(|path| fs::create_dir(path).unwrap());
        let output = Output::at(&held.join("trace"), None, false).unwrap();
        fs::rename(&held, &moved).unwrap();
        symlink(&victim, &held).unwrap();
        let error = output.create().unwrap_err().to_string();
        assert!(error.contains("renamed or replaced the directory of this file"), "{error}");
        assert!([&moved, &victim].iter().all(|path| fs::read_dir(path).unwrap().next().is_none()));
    }
}
