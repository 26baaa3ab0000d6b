//! Records the requests of a device with the kernel's block tracer, as blktrace does.
//!
//! | file | contents |
//! |---|---|
//! | `tracer.rs` | switches the tracer on, and restores its settings |
//! | `stream.rs` | finds records in the data from the kernel |
//! | `spool.rs` | stores records until they are written |
//! | `priorities.rs` | the ioprio of each process that submitted requests |
//! | `owners.rs` | the cgroup and the name of each thread that submitted requests |
//!
//! The tracer `blk` of tracefs gives the records of blktrace. It needs neither the ioctl of
//! blktrace nor debugfs. The machine has only one such tracer, so no other program may trace at the
//! same time.

mod owners;
mod priorities;
mod spool;
mod stream;
mod tracer;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iosched_trace::{
    Action, BlkEvent, EventReader, EventWriter, Payload, ProcessName, ReadOptions, TraceError, WHOLE_RECORDING,
};
use tempfile::SpooledTempFile;

use crate::block::BlockDevice;
use crate::ioprio::ioprio_of;
use crate::observe::{Owner, owner_of};
use crate::roots::Roots;
use crate::state::{StateDirectory, StateError};
use owners::Owners;
use priorities::Priorities;
use spool::Spool;
use stream::Stream;
use tracer::Tracer;

pub use tracer::{LeftTracer, restore_tracer};

/// Bytes of one read. The kernel returns at most a page at a time.
const READ_BYTES: usize = 64 * 1024;

/// Reason why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The kernel has no block tracer.
    #[error("this kernel cannot trace block devices (it is built without CONFIG_BLK_DEV_IO_TRACE)")]
    NoTracer,
    /// The file system of the tracer is not mounted.
    #[error("tracefs is not mounted; run `mount -t tracefs tracefs {}`", path.display())]
    NotMounted {
        /// Usual mount point of tracefs.
        path: PathBuf,
    },
    /// This process lacks permission.
    #[error("{}: only root may record the requests of a device", path.display())]
    Permission {
        /// Path that cannot be used.
        path: PathBuf,
    },
    /// The kernel does not allow even root to trace.
    #[error(
        "{}: the kernel refuses to trace{}; record on a machine whose kernel is not locked down",
        path.display(),
        if *locked { ", because the kernel is locked down (/sys/kernel/security/lockdown)" } else { ", even for root" }
    )]
    Refused {
        /// Path that cannot be used.
        path: PathBuf,
        /// Whether lockdown is in force.
        locked: bool,
    },
    /// Another program uses the tracer.
    #[error(
        "another program uses the kernel's tracing: {what}; stop that trace first, because only one trace can run \
         at a time"
    )]
    InUse {
        /// Description of the use.
        what: String,
    },
    /// Another recording of iosched uses the tracer.
    #[error(
        "process {pid} is already recording, and only one recording can run at a time; wait until that process ends"
    )]
    Recording {
        /// Process id of the other recording, 0 if not known.
        pid: u32,
    },
    /// Another program traces the device.
    #[error("another program, such as blktrace, already traces this device; end that program first")]
    Traced,
    /// The system refuses.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
    /// The previous settings of the tracer cannot be recorded.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Recording of a disk's trace events that is in progress.
#[derive(Debug)]
pub struct Recorder {
    // Declared before `tracer`, so that the pipe is closed before the settings of the tracer are
    // restored. An open pipe keeps the tracer in use.
    pipe: File,
    tracer: Tracer,
    pipe_path: PathBuf,
    stream: Stream,
    priorities: Priorities,
    /// Owners of threads, and the file system roots for reading them. `None` if owners are not
    /// recorded.
    owners: Option<(Roots, Owners)>,
    spool: Spool,
    buffer: Vec<u8>,
    /// Whole records of the last read.
    records: Vec<u8>,
    /// Start time since 1970.
    begun: Duration,
}

impl Recorder {
    /// Starts to record the requests of `device`, a disk or a partition. Until the recording ends,
    /// `state` contains the settings to restore.
    ///
    /// # Errors
    /// See [`RecordError`].
    pub fn begin(device: &BlockDevice, state: &StateDirectory) -> Result<Self, RecordError> {
        let tracer = Tracer::begin(device, state)?;
        let pipe_path = tracer.pipe();
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let opened = OpenOptions::new().read(true).custom_flags(nonblocking).open(&pipe_path);
        let pipe = opened.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => tracer::refused(&pipe_path),
            _ => RecordError::Io { path: pipe_path.clone(), error },
        })?;
        let (spool, buffer) = (Spool::new(), vec![0; READ_BYTES]);
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            pipe,
            tracer,
            pipe_path,
            stream: Stream::default(),
            priorities: Priorities::default(),
            owners: None,
            spool,
            buffer,
            records: Vec::new(),
            begun,
        })
    }

    /// Also records the cgroup and the name of each thread that submits requests.
    #[must_use]
    pub fn with_owners(mut self, roots: &Roots) -> Self {
        self.owners = Some((roots.clone(), Owners::default()));
        self
    }

    /// Before it stores events, the recorder calls `reserve` with the total number of bytes. If
    /// `reserve` fails, the recording lacks all later events ([`no_room`](Self::no_room)). Room
    /// that `reserve` holds becomes free when the recording ends.
    #[must_use]
    pub fn with_room(mut self, reserve: impl FnMut(u64) -> io::Result<()> + 'static) -> Self {
        self.spool.reserve_with(reserve);
        self
    }

    /// Takes the events since the last call, without waiting. Call this function every few ms,
    /// because the kernel has room for only about 8 MiB of events per CPU.
    ///
    /// # Errors
    /// The kernel's events cannot be read.
    pub fn take(&mut self) -> Result<(), RecordError> {
        let failed = |error| RecordError::Io { path: self.pipe_path.clone(), error };
        self.priorities.begin();
        loop {
            match self.pipe.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    self.records.clear();
                    self.stream.take(&self.buffer[..bytes], &mut self.records);
                    self.priorities.take(&self.records, ioprio_of);
                    if let Some((roots, owners)) = &mut self.owners {
                        owners.take(&self.records, |tid| owner_of(roots, tid));
                    }
                    self.spool.write_all(&self.records).map_err(failed)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Returns the number of events of requests so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.stream.events()
    }

    /// Returns the error that occurred when the storage or the reserved room was full. The recording
    /// then lacks all later events, but keeps the earlier events.
    #[must_use]
    pub const fn no_room(&self) -> Option<&io::Error> {
        self.spool.no_room()
    }

    /// Ends the recording. The device is no longer traced, and all settings are restored.
    ///
    /// # Errors
    /// The last events cannot be read, or not all settings can be restored.
    pub fn end(mut self) -> Result<Recorded, RecordError> {
        self.tracer.stop()?;
        self.take()?;
        let names = self.tracer.names();
        drop(self.pipe);
        self.tracer.end()?;
        let Self { spool, stream, priorities, owners, begun, .. } = self;
        let owners = owners.map(|(_, owners)| owners.into_known()).unwrap_or_default();
        let (spool, no_room) =
            spool.into_file().map_err(|error| RecordError::Io { path: std::env::temp_dir(), error })?;
        Ok(Recorded { spool, no_room, names, stream, priorities, owners, begun })
    }
}

/// Result of a recording, ready to be written as a trace.
#[derive(Debug)]
pub struct Recorded {
    spool: SpooledTempFile,
    no_room: Option<io::Error>,
    names: Vec<(u32, Vec<u8>)>,
    stream: Stream,
    priorities: Priorities,
    owners: BTreeMap<u32, Owner>,
    begun: Duration,
}

impl Recorded {
    /// Returns the error that occurred when the storage or the reserved room was full. The recording
    /// then lacks all later events, but keeps the earlier events.
    #[must_use]
    pub const fn no_room(&self) -> Option<&io::Error> {
        self.no_room.as_ref()
    }

    /// Returns the cgroup and the name of each thread that submitted requests, as far as they are
    /// known. Empty without [`Recorder::with_owners`].
    #[must_use]
    pub const fn owners(&self) -> &BTreeMap<u32, Owner> {
        &self.owners
    }

    /// Returns the number of events of requests.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.stream.events()
    }

    /// Returns the number of events that were lost because the kernel's buffer was full.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.stream.lost()
    }

    /// Returns the number of bytes in the pipe that come from another program, which has started to
    /// trace.
    #[must_use]
    pub fn foreign_bytes(&self) -> u64 {
        self.stream.foreign_bytes()
    }

    /// Writes the recording as a block trace in one file, which blkparse and btt also read. The
    /// trace contains the start time, and the names and priorities of processes.
    ///
    /// # Errors
    /// The trace cannot be written, or the stored records cannot be read.
    pub fn write(self, out: impl Write) -> Result<(), TraceError> {
        let spool = self.spool;
        let name = "recorded.blktrace.0";
        let mut writer = EventWriter::new(out);
        // The start time comes first, as in traces of blktrace. With it, even a recording without
        // requests is a valid trace.
        let payload =
            Payload::WallClock { seconds: self.begun.as_secs() as u32, nanoseconds: self.begun.subsec_nanos() };
        writer.write(&BlkEvent { payload, ..BlkEvent::new(Action::NoteTimestamp, iosched::Time::ZERO, 0, 0) })?;
        for (pid, name) in &self.names {
            writer.name_process(iosched::Time::ZERO, *pid, ProcessName::new(name))?;
        }
        let mut last = iosched::Time::ZERO;
        if self.stream.events() > 0 {
            // Requests in flight at the start and the end are incomplete, which is not an error.
            let mut events =
                EventReader::from_reader(spool, name, &ReadOptions { partial: true, ..ReadOptions::default() })?;
            let mut changes = self.priorities.into_changes().into_iter().peekable();
            while let Some(event) = events.next() {
                let event = event?;
                last = event.time;
                let now_ns = events.origin_ns() + last.as_ns();
                while let Some(change) = changes.next_if(|change| !event.is_note() && change.time_ns <= now_ns) {
                    writer.set_ioprio(last, change.pid, change.ioprio)?;
                }
                writer.write(&event)?;
            }
        }
        if self.stream.lost() == 0 {
            writer.write(&BlkEvent::new(Action::NoteMessage, last, 0, 0).with_message(WHOLE_RECORDING))?;
        }
        writer.finish().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use iosched::{Flags, Op, Time};
    use iosched_trace::TraceReader;

    use super::*;

    /// Returns records in the kernel's format, one read for each pair in `reads`. A pair is a time
    /// in ms and the id of the process that reads.
    fn kernel(reads: &[(u64, u32)]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = EventWriter::new(&mut out);
        for (number, &(ms, pid)) in (0..).zip(reads) {
            let event = BlkEvent::new(Action::Queue, Time::from_ns(ms * 1_000_000), 7 << 20, pid);
            writer.write(&event.with_extent(Op::Read, Flags::SYNC, number * 8, 8)).unwrap();
        }
        writer.finish().unwrap();
        out
    }

    /// Reads of processes with their times in ms, and the priorities of processes in this batch.
    type Batch<'a> = (&'a [(u64, u32)], &'a [(u32, &'a str)]);

    /// Returns the trace of a recording that takes one batch after another. In each batch, a
    /// process has the priority that the batch gives.
    fn recorded(batches: &[Batch<'_>]) -> Vec<u8> {
        let (mut stream, mut priorities) = (Stream::default(), Priorities::default());
        let mut spool = Spool::new();
        for (reads, ioprios) in batches {
            let mut records = Vec::new();
            priorities.begin();
            stream.take(&kernel(reads), &mut records);
            let answer =
                |pid| ioprios.iter().find(|(process, _)| *process == pid).map(|(_, text)| text.parse().unwrap());
            priorities.take(&records, answer);
            spool.write_all(&records).unwrap();
        }
        let names = vec![(1, b"db".to_vec()), (2, b"backup".to_vec())];
        let (spool, no_room) = spool.into_file().unwrap();
        let owners = BTreeMap::new();
        let recorded = Recorded { spool, no_room, names, stream, priorities, owners, begun: Duration::from_secs(1) };
        let mut out = Vec::new();
        recorded.write(&mut out).unwrap();
        out
    }

    /// Returns the process and the priority of each request.
    fn read_back(trace: Vec<u8>) -> Vec<(u32, Option<String>)> {
        let reader = TraceReader::from_reader(io::Cursor::new(trace), "recorded", &ReadOptions::default()).unwrap();
        let requests = reader.map(Result::unwrap);
        requests.map(|request| (request.pid, request.ioprio.map(|ioprio| ioprio.to_string()))).collect()
    }

    #[test]
    fn each_request_has_the_priority_of_its_process() {
        let first: Batch<'_> = (&[(1, 1), (2, 2), (3, 1)], &[(1, "none"), (2, "idle")]);
        let changed: Batch<'_> = (&[(10, 2), (11, 1), (12, 2)], &[(1, "none"), (2, "be/7")]);
        let found = read_back(recorded(&[first, changed]));
        let of = |pid, text: &str| (pid, Some(text.to_owned()));
        let expected = [of(1, "none"), of(2, "idle"), of(1, "none"), of(2, "be/7"), of(1, "none"), of(2, "be/7")];
        assert_eq!(found, expected);
    }

    #[test]
    fn each_thread_is_looked_up_once() {
        let queried = std::cell::RefCell::new(Vec::new());
        let look_up = |tid| {
            queried.borrow_mut().push(tid);
            let owner = Owner { cgroup: Some("db.slice".to_owned()), process: Some("db".to_owned()) };
            (tid == 1).then_some(owner)
        };
        let mut owners = Owners::default();
        owners.take(&kernel(&[(1, 1), (2, 2), (3, 1)]), look_up);
        owners.take(&kernel(&[(4, 2), (5, 1)]), look_up);
        assert_eq!(*queried.borrow(), [1, 2]);
        assert_eq!(owners.into_known().into_keys().collect::<Vec<u32>>(), [1]);
    }

    #[test]
    fn a_process_that_ended_too_early_has_no_priority() {
        let found = read_back(recorded(&[(&[(1, 1), (2, 2)], &[(1, "rt/0")])]));
        assert_eq!(found, [(1, Some("rt/0".to_owned())), (2, None)]);
    }
}
