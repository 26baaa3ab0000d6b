//! A block trace of a live disk, written by a thread of its own: the disk never waits for the file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use iosched_trace::{BlkEvent, EventWriter, TraceError};

/// Batches of events that wait for the file at most.
const BATCHES_MAX: usize = 1024;

/// A trace that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}")]
pub struct RecordError {
    path: PathBuf,
    error: std::io::Error,
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
    pub(super) fn create(path: &Path) -> Result<Self, RecordError> {
        let failed = |error| RecordError { path: path.to_owned(), error };
        let file = File::create(path).map_err(failed)?;
        let (events, coming) = sync_channel(BATCHES_MAX);
        let writer = std::thread::Builder::new().name("record".to_owned()).spawn(move || write(file, &coming));
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
