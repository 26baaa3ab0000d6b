//! How a disk comes to be served, and what is left of it afterwards. What can fail comes before anything that others
//! see.

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

/// What clients' data takes on its way if nothing else is said, in bytes.
const BUDGET_BYTES: u64 = 64 << 20;

/// What a disk is served with.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// What it is called.
    pub name: String,
    /// What its data is on.
    pub backend: Spec,
    /// Whether somebody else may use the back end, too.
    pub shared: bool,
    /// Its elevator, and what is set of it and the queue, from the first request on.
    pub setting: Setting,
    /// The elevators that it can be switched to.
    pub registry: Registry,
    /// Commands the back end is given at once; `None`: as many as it likes best.
    pub depth: Option<u32>,
    /// Bytes that clients' operations, and answers that they have not taken, hold together.
    pub budget_bytes: u64,
    /// What a modelled back end leaves to chance.
    pub seed: u64,
    /// A file that a block trace of all that happens goes to.
    pub record: Option<PathBuf>,
    /// Who is given the recording of all that the disk's driver is told and decides.
    pub recording: Option<Recording>,
    /// Whether the trace and the recording may replace files that have data.
    pub replace: bool,
    /// Who is told what a person should know.
    pub messages: Messages,
}

impl ServeOptions {
    /// A disk called `name` on `backend` under `setting`: nobody else uses the back end, nothing is recorded, nobody is
    /// told of anything; it can be switched to the elevators of Linux.
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

/// Why a disk cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its back end cannot be had.
    #[error(transparent)]
    Backend(#[from] SpecError),
    /// There is no such elevator, or a value is not taken.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The back end does not take so many commands.
    #[error("the depth {depth} is out of range for {about}; it must be from 1 to {max}")]
    Depth {
        /// What was asked for.
        depth: u32,
        /// What it takes at most.
        max: u32,
        /// What it is.
        about: String,
    },
    /// The trace cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The system has no io_uring for us.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The system does not let us begin.
    #[error("{0}")]
    System(io::Error),
}

/// A disk that is ready to be served: its back end is open and locked, and nobody can use it yet.
pub struct Opened {
    /// To be set up before anybody uses it.
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
    /// To talk to it.
    pub handle: Handle,
    /// What its data is on, for people.
    pub about: String,
    thread: JoinHandle<Ended>,
}

/// How a disk has ended.
#[derive(Debug)]
pub struct Ended {
    /// What the back end said to the last flush; EIO if the disk's thread has failed.
    pub flushed: Result<(), Errno>,
    /// What became of the trace, if there is one.
    pub recorded: Option<Recorded>,
    /// What became of the file of the recording, if there is one.
    pub driver_recorded: Option<Recorded>,
    /// The file that its data was found by, if it was deleted or replaced meanwhile.
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

/// Gets a disk ready to be served. Nothing is changed by that.
///
/// # Errors
/// If the back end, the elevator or the system do not allow it, or the trace would replace the disk.
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

/// Begins to serve a disk: to whoever has its handle, and by NBD if that is asked for.
///
/// # Errors
/// If the back end, the elevator or the system do not allow it.
pub fn start(options: &ServeOptions, nbd: Option<nbd::Config>) -> Result<Served, StartError> {
    open(options)?.serve(nbd)
}

impl Opened {
    /// Begins to serve it: to whoever has its handle, and by NBD if that is asked for.
    ///
    /// # Errors
    /// If the trace cannot be written, or the system does not let us begin.
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
            // The ring belongs to the thread that makes it.
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
