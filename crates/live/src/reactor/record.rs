//! What is kept of a live disk: a block trace, and a recording of its driver. Each is written by a thread of its own.
//! The disk never waits for the file of a trace, which may have gaps; it waits for whoever takes the recording, which
//! is good for nothing with one.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use iosched::recording::Record;
use iosched_trace::{BlkEvent, EventWriter, TraceError};

use crate::{LiveDisk, Messages};

/// Batches of events that wait for the file at most.
const BATCHES_MAX: usize = 1024;

/// The first line of a recording: what it is, and the version whose decisions are in it.
pub const RECORDING_MARK: &str = concat!("# recording of iosched ", env!("CARGO_PKG_VERSION"));

/// Who is given the recording of all that a disk's driver is told and decides.
#[derive(Clone, Debug)]
pub enum Recording {
    /// A file, a line for each [`Record`].
    File(PathBuf),
    /// Whoever has the other end. The disk waits for them.
    Channel(SyncSender<Vec<Record>>),
}

impl Recording {
    /// The file that it goes to, if to any.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Channel(_) => None,
        }
    }
}

/// A trace or recording that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The system refuses.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// It would be written over the disk's own data.
    #[error("{}: the disk's data is in it, and what is recorded would replace that; name another file", path.display())]
    IsTheDisk {
        /// The file.
        path: PathBuf,
    },
    /// It would be written over another disk's data.
    #[error("{}: is a block device, and what is recorded would replace what is on it; name a file", path.display())]
    IsADevice {
        /// The device.
        path: PathBuf,
    },
}

/// Whether a trace can be written at `path`, and harms nobody's data; the disk's own is in the file `backing`, if in
/// any.
pub(super) fn check(path: &Path, backing: Option<&Path>) -> Result<(), RecordError> {
    let failed = |error| RecordError::Io { path: path.to_owned(), error };
    let Ok(found) = std::fs::metadata(path) else {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return std::fs::metadata(directory).map(drop).map_err(failed);
    };
    if found.file_type().is_block_device() {
        return Err(RecordError::IsADevice { path: path.to_owned() });
    }
    let of_disk = backing.and_then(|backing| std::fs::metadata(backing).ok());
    if of_disk.is_some_and(|disk| (disk.dev(), disk.ino()) == (found.dev(), found.ino())) {
        return Err(RecordError::IsTheDisk { path: path.to_owned() });
    }
    if found.is_file() {
        OpenOptions::new().append(true).open(path).map_err(failed)?;
    }
    Ok(())
}

/// What is known of a trace or recording that is finished.
#[derive(Debug)]
pub struct Recorded {
    /// Events that the file was too slow for.
    pub lost: u64,
    /// Why it ends early, if it does.
    pub result: Result<(), TraceError>,
}

/// A file being written, from batches of `T`.
pub(super) struct Recorder<T> {
    batches: SyncSender<Vec<T>>,
    writer: JoinHandle<Result<(), TraceError>>,
    lost: u64,
}

impl<T: Send + 'static> Recorder<T> {
    fn create(
        path: &Path,
        messages: Messages,
        write: impl FnOnce(File, &Receiver<Vec<T>>) -> Result<(), TraceError> + Send + 'static,
    ) -> Result<Self, RecordError> {
        let failed = |error| RecordError::Io { path: path.to_owned(), error };
        let file = File::create(path).map_err(failed)?;
        let (batches, coming) = sync_channel(BATCHES_MAX);
        let name = path.display().to_string();
        let write = move || {
            let written = write(file, &coming);
            if let Err(error) = &written {
                messages.say(&format!("warning: {name}: {error}; it ends here, the disk is served on"));
            }
            written
        };
        let writer = std::thread::Builder::new().name("record".to_owned()).spawn(write);
        Ok(Self { batches, writer: writer.map_err(failed)?, lost: 0 })
    }

    fn finish(self) -> Recorded {
        drop(self.batches);
        let died = || Err(TraceError::Write(std::io::Error::other("the thread that wrote it has failed")));
        Recorded { lost: self.lost, result: self.writer.join().unwrap_or_else(|_| died()) }
    }
}

/// Whoever keeps what happens to a disk.
#[derive(Default)]
pub(super) struct Recorders {
    trace: Option<Recorder<BlkEvent>>,
    driver: Option<SyncSender<Vec<Record>>>,
    driver_file: Option<Recorder<Record>>,
}

impl Recorders {
    pub(super) fn create(
        trace: Option<&Path>,
        recording: Option<Recording>,
        messages: &Messages,
    ) -> Result<Self, RecordError> {
        let trace = trace.map(|path| Recorder::create(path, messages.clone(), write_trace)).transpose()?;
        Ok(match recording {
            None => Self { trace, ..Self::default() },
            Some(Recording::Channel(driver)) => Self { trace, driver: Some(driver), driver_file: None },
            Some(Recording::File(path)) => {
                let file = Recorder::create(&path, messages.clone(), write_recording)?;
                Self { trace, driver: Some(file.batches.clone()), driver_file: Some(file) }
            }
        })
    }

    /// Whether there is a trace.
    pub(super) fn traces(&self) -> bool {
        self.trace.is_some()
    }

    /// Takes what has happened since the last call.
    pub(super) fn take(&mut self, disk: &mut LiveDisk) {
        // Whoever only counts decisions has them looked at, too.
        let events = disk.take_events();
        if let Some(trace) = self.trace.as_mut().filter(|_| !events.is_empty())
            && let Err(TrySendError::Full(events) | TrySendError::Disconnected(events)) = trace.batches.try_send(events)
        {
            trace.lost += events.len() as u64;
        }
        if let Some(driver) = &self.driver {
            let records = disk.take_records();
            if !records.is_empty() && driver.send(records).is_err() {
                // Nobody listens any more.
                disk.end_records();
                self.driver = None;
            }
        }
    }

    /// What became of the trace and of the recording's file.
    pub(super) fn finish(self) -> (Option<Recorded>, Option<Recorded>) {
        drop(self.driver);
        (self.trace.map(Recorder::finish), self.driver_file.map(Recorder::finish))
    }
}

fn write_trace(file: File, coming: &Receiver<Vec<BlkEvent>>) -> Result<(), TraceError> {
    let mut out = EventWriter::new(file);
    for events in coming {
        for event in &events {
            out.write(event)?;
        }
    }
    out.finish().map(drop)
}

fn write_recording(file: File, coming: &Receiver<Vec<Record>>) -> Result<(), TraceError> {
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
