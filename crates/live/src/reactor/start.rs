//! Start of a served disk, and its results at the end. All steps that can fail come before the
//! first step with a visible effect.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::{fmt, io};

use iosched::{Registry, Setting, SettingError, Time};

use super::handle::{Handle, Inbox};
use super::record::{Driver, Output, RecordError, Recorded, Recorders, Recording};
use super::{Reactor, nbd};
use crate::backend::{Backend, Spec, SpecError};
use crate::disk::{LiveDisk, Settings};
use crate::ring::{self, Kernel};
use crate::{Errno, Messages, Pool, RingError, sys};

/// Default memory for clients' data, bytes.
const BUDGET_BYTES: u64 = 64 << 20;

/// Options of a served disk.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Name of the disk.
    pub name: String,
    /// Back end of the disk.
    pub backend: Spec,
    /// Whether other programs may also use the back end.
    pub shared: bool,
    /// Scheduler with the tunables and attributes that are in force from the first request.
    pub setting: Setting,
    /// Schedulers that the disk can be switched to.
    pub registry: Registry,
    /// Queue depth; `None` is the default of the back end.
    pub depth: Option<u32>,
    /// Maximum number of bytes of all clients' operations, together with the answers that clients
    /// have not received.
    pub budget_bytes: u64,
    /// Seed of the back end, if it is a model.
    pub seed: u64,
    /// File for a block trace of the disk.
    pub record: Option<PathBuf>,
    /// Receiver of the recording of the disk's driver, with all its inputs and decisions.
    pub recording: Option<Recording>,
    /// Whether the trace and the recording may replace files that contain data.
    pub replace: bool,
    /// Queue for messages to the user.
    pub messages: Messages,
}

impl ServeOptions {
    /// Creates the options of a disk `name` on `backend` under `setting`. No other program may use
    /// the back end, nothing is recorded, and messages are dropped. The disk can be switched to the
    /// schedulers of Linux.
    #[must_use]
    pub fn new(name: &str, backend: Spec, setting: Setting) -> Self {
        Self {
            name: name.to_owned(),
            backend,
            shared: false,
            setting,
            registry: Registry::linux(),
            depth: None,
            budget_bytes: BUDGET_BYTES,
            seed: 1,
            record: None,
            recording: None,
            replace: false,
            messages: Messages::to_nobody(),
        }
    }
}

/// Reason why a disk cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The back end cannot be opened.
    #[error(transparent)]
    Backend(#[from] SpecError),
    /// The scheduler does not exist, or the scheduler or the queue does not accept a value.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The back end does not support the queue depth.
    #[error("the queue depth {depth} is out of range for {about}; the depth must be from 1 to {max}")]
    Depth {
        /// Requested queue depth.
        depth: u32,
        /// Maximum queue depth of the back end.
        max: u32,
        /// Description of the back end.
        about: String,
    },
    /// The trace or recording cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The system provides no io_uring.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The system cannot start the disk.
    #[error("{0}")]
    System(io::Error),
}

/// A disk that is ready to be served. Its back end is open and locked. Clients cannot use the disk
/// yet.
pub struct Opened {
    /// The disk, for setup before clients use it.
    pub disk: LiveDisk,
    backend: Box<dyn Backend>,
    about: String,
    record: Option<Output>,
    recording: Option<Driver>,
    messages: Messages,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}, not yet served", self.disk.name(), self.about)
    }
}

/// A disk that is being served.
pub struct Served {
    /// Handle of the disk.
    pub handle: Handle,
    /// Description of the back end for the user.
    pub about: String,
    thread: JoinHandle<Ended>,
}

/// Results of a disk that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Result of the last flush; EIO if the disk's thread has failed.
    pub flushed: Result<(), Errno>,
    /// Result of the trace, if there is one.
    pub recorded: Option<Recorded>,
    /// Result of writing the driver's recording to a file, if such a file was requested.
    pub driver_recorded: Option<Recorded>,
    /// Path of the backing file, if somebody deleted or replaced the file while the disk was
    /// served.
    pub gone: Option<PathBuf>,
}

impl Served {
    /// Waits until the disk has ended.
    #[must_use]
    pub fn wait(self) -> Ended {
        self.thread.join().unwrap_or(Ended {
            flushed: Err(Errno::EIO),
            recorded: None,
            driver_recorded: None,
            gone: None,
        })
    }
}

/// Opens a disk so that it can be served. Changes nothing.
///
/// # Errors
/// The back end, the scheduler or the system does not allow it, or the trace would replace the
/// disk's data.
pub fn open(options: &ServeOptions) -> Result<Opened, StartError> {
    drop(ring::new()?);
    let backing = options.backend.path();
    let record = options.record.as_deref().map(|path| Output::at(path, backing, options.replace)).transpose()?;
    let recording = options.recording.as_ref().map(|recording| recording.look(backing, options.replace)).transpose()?;
    let backend = options.backend.open(options.seed, options.shared)?;
    let mut card = backend.card().clone();
    let about = card.about.clone();
    card.device.depth = options.depth.unwrap_or(card.device.depth);
    if !(1..=card.depth_max).contains(&card.device.depth) {
        return Err(StartError::Depth { depth: card.device.depth, max: card.depth_max, about });
    }
    let settings = Settings {
        name: options.name.clone(),
        setting: options.setting.clone(),
        registry: options.registry.clone(),
        card,
        budget_bytes: options.budget_bytes,
        recorded: options.recording.is_some(),
    };
    let mut disk = LiveDisk::new(Time::BEGINNING, settings, Pool::within(options.budget_bytes))?;
    disk.measure_by(backend.measure());
    Ok(Opened { disk, backend, about, record, recording, messages: options.messages.clone() })
}

/// Starts to serve a disk, through its handle and optionally by NBD.
///
/// # Errors
/// The back end, the scheduler or the system does not allow it.
pub fn start(options: &ServeOptions, nbd: Option<nbd::Config>) -> Result<Served, StartError> {
    open(options)?.serve(nbd)
}

impl Opened {
    /// Starts to serve the disk, through its handle and optionally by NBD.
    ///
    /// # Errors
    /// The trace cannot be written, or the system cannot start the disk.
    pub fn serve(self, nbd: Option<nbd::Config>) -> Result<Served, StartError> {
        let Self { mut disk, backend, about, record, recording, messages } = self;
        let recorders = Recorders::create(record, recording, &messages)?;
        if recorders.traces() {
            disk.watch(Time::BEGINNING, true);
        }
        let nbd = nbd.map(|config| nbd::Server::new(config, &mut disk, messages.clone()));
        let inbox = Arc::new(Inbox::new().map_err(StartError::System)?);
        let handle = Handle::new(Arc::clone(&inbox), &disk, messages.clone());
        let name = format!("disk {}", disk.name());
        let (ready, readied) = std::sync::mpsc::sync_channel(1);
        let run = move || {
            // A ring belongs to the thread that creates it.
            match ring::new() {
                Ok(ring) => {
                    let _ = ready.send(Ok(()));
                    sys::sleep_exactly();
                    sys::run_before_others();
                    let kernel = Kernel::new(ring);
                    let mut reactor = Reactor::new(kernel, disk, backend, inbox, nbd, recorders, messages);
                    reactor.run();
                    reactor.end()
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                    Ended { flushed: Err(Errno::EIO), recorded: None, driver_recorded: None, gone: None }
                }
            }
        };
        let thread = std::thread::Builder::new().name(name).spawn(run).map_err(StartError::System)?;
        match readied.recv() {
            Ok(Ok(())) => Ok(Served { handle, about, thread }),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(StartError::System(io::Error::other("the disk's thread has failed"))),
        }
    }
}
