//! A block trace of a live disk, written by a thread of its own: the disk never waits for the file.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use iosched::recording::Record;
use iosched_trace::{BlkEvent, EventWriter, TraceError};

use crate::{LiveDisk, Messages};

/// Batches of events that wait for the file at most.
const BATCHES_MAX: usize = 1024;

/// A trace that cannot be written.
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
    #[error("{}: the disk's data is in it, and a trace would replace that; name another file", path.display())]
    IsTheDisk {
        /// The file.
        path: PathBuf,
    },
    /// It would be written over another disk's data.
    #[error("{}: is a block device, and a trace would replace what is on it; name a file", path.display())]
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

/// Whoever keeps what happens to a disk.
pub(super) struct Recorders {
    /// A block trace of it.
    pub(super) trace: Option<Recorder>,
    /// All that its driver is told and decides.
    pub(super) driver: Option<SyncSender<Vec<Record>>>,
}

impl Recorders {
    /// Takes what has happened since the last call.
    pub(super) fn take(&mut self, disk: &mut LiveDisk) {
        // Whoever only counts decisions has them looked at, too.
        let events = disk.take_events();
        if let Some(trace) = &mut self.trace {
            trace.push(events);
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

    pub(super) fn finish(self) -> Option<Recorded> {
        self.trace.map(Recorder::finish)
    }
}

/// What is known of a trace that is finished.
#[derive(Debug)]
pub struct Recorded {
    /// Events that the file was too slow for.
    pub lost: u64,
    /// Why it ends early, if it does.
    pub result: Result<(), TraceError>,
}

/// A trace under way.
pub(super) struct Recorder {
    events: SyncSender<Vec<BlkEvent>>,
    writer: JoinHandle<Result<(), TraceError>>,
    lost: u64,
}

impl Recorder {
    pub(super) fn create(path: &Path, messages: Messages) -> Result<Self, RecordError> {
        let failed = |error| RecordError::Io { path: path.to_owned(), error };
        let file = File::create(path).map_err(failed)?;
        let (events, coming) = sync_channel(BATCHES_MAX);
        let name = path.display().to_string();
        let write = move || {
            let written = write(file, &coming);
            if let Err(error) = &written {
                messages.say(&format!("warning: {name}: {error}; the trace ends here, the disk is served on"));
            }
            written
        };
        let writer = std::thread::Builder::new().name("record".to_owned()).spawn(write);
        Ok(Self { events, writer: writer.map_err(failed)?, lost: 0 })
    }

    pub(super) fn push(&mut self, events: Vec<BlkEvent>) {
        if events.is_empty() {
            return;
        }
        if let Err(TrySendError::Full(events) | TrySendError::Disconnected(events)) = self.events.try_send(events) {
            self.lost += events.len() as u64;
        }
    }

    pub(super) fn finish(self) -> Recorded {
        drop(self.events);
        let died = || Err(TraceError::Write(std::io::Error::other("the thread that wrote it has failed")));
        Recorded { lost: self.lost, result: self.writer.join().unwrap_or_else(|_| died()) }
    }
}

fn write(file: File, coming: &Receiver<Vec<BlkEvent>>) -> Result<(), TraceError> {
    let mut out = EventWriter::new(file);
    for events in coming {
        for event in &events {
            out.write(event)?;
        }
    }
    out.finish().map(drop)
}
