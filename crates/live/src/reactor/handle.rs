//! A disk's thread as other threads see it.

use std::sync::{Arc, mpsc};

use iosched::Time;

use crate::disk::{ClientId, Identity, Operation, Size, TooManyClients};
use crate::nbd::Exports;
use crate::{Buffer, Errno, LiveDisk, Messages, Pool};

/// Who is told when an operation is done, on the disk's thread: it must not wait for anything.
pub type Reply = Box<dyn FnOnce(Result<Option<Buffer>, Errno>) + Send>;

type Control = Box<dyn FnOnce(&mut LiveDisk, Time) + Send>;
#[cfg(feature = "vhost")]
type ForVhost = Box<dyn FnOnce(&mut super::vhost::Server, &mut super::vhost::Hands<'_>) + Send>;

/// What other threads ask of the disk's thread.
pub(super) enum Message {
    Submit(ClientId, Operation, Reply),
    Control(Control),
    #[cfg(feature = "vhost")]
    Vhost(ForVhost),
    /// What NBD clients may ask for from now on; who is told when that is so.
    Exports(Exports, mpsc::SyncSender<()>),
    Stop,
}

/// Messages on their way to a disk's thread.
pub(super) type Inbox = iosched_system::Inbox<Message>;

/// The disk's thread has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the disk is no longer served")]
pub struct Stopped;

/// Why there is no client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The disk is gone.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// There are too many.
    #[error(transparent)]
    TooMany(#[from] TooManyClients),
}

/// A disk that is served by its thread. Cloning gives another handle to the same disk.
#[derive(Clone)]
pub struct Handle {
    inbox: Arc<Inbox>,
    pool: Pool,
    name: Arc<str>,
    size: Size,
    block_bytes: u32,
    trim_zeroes: bool,
    budget_bytes: u64,
    messages: Messages,
}

impl Handle {
    pub(super) fn new(inbox: Arc<Inbox>, disk: &LiveDisk, messages: Messages) -> Self {
        Self {
            inbox,
            pool: disk.pool().clone(),
            name: disk.name().into(),
            size: disk.size(),
            block_bytes: disk.block_bytes(),
            trim_zeroes: disk.trim_zeroes(),
            budget_bytes: disk.budget_bytes(),
            messages,
        }
    }

    /// What the disk is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its size in bytes now.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.size.bytes()
    }

    /// What its back end reads and writes at least, in bytes. Operations need not be aligned to it.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Whether what is trimmed reads as zeroes.
    #[must_use]
    pub fn trim_zeroes(&self) -> bool {
        self.trim_zeroes
    }

    /// Bytes that clients' operations are to hold together at most.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// Who is told what a person should know of it.
    #[must_use]
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// A buffer for the data of a write. What stands in it is what its last user left.
    #[must_use]
    pub fn buffer(&self, length: usize) -> Buffer {
        self.pool.buffer(length)
    }

    /// Hands an operation in; its cookie is not used. `reply` is called once, on the disk's thread, or at once if that
    /// has ended.
    pub fn submit(&self, client: ClientId, operation: Operation, reply: Reply) {
        if let Err(Message::Submit(_, _, reply)) = self.inbox.send(Message::Submit(client, operation, reply)) {
            reply(Err(Errno::ESHUTDOWN));
        }
    }

    /// A new client.
    ///
    /// # Errors
    /// If the disk is no longer served or there are too many.
    pub fn connect(&self, identity: Identity) -> Result<ClientId, ConnectError> {
        Ok(self.control(move |disk, now| disk.connect(now, identity))??)
    }

    /// The client is gone: see [`LiveDisk::disconnect`].
    pub fn disconnect(&self, client: ClientId) {
        // Without a disk there is nothing to leave.
        let _ = self.inbox.send(Message::Control(Box::new(move |disk, now| disk.disconnect(now, client))));
    }

    /// Does something to the disk on its thread, and waits for what comes of it.
    ///
    /// # Errors
    /// If the disk is no longer served.
    pub fn control<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut LiveDisk, Time) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (answer, answered) = mpsc::sync_channel(1);
        let control = Message::Control(Box::new(move |disk, now| {
            // Whoever asked may have gone.
            let _ = answer.send(act(disk, now));
        }));
        self.inbox.send(control).map_err(|_| Stopped)?;
        answered.recv().map_err(|_| Stopped)
    }

    /// Does something to the guests' disks on the disk's thread, and waits for what comes of it.
    ///
    /// # Errors
    /// If the disk is no longer served.
    #[cfg(feature = "vhost")]
    pub(crate) fn vhost<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut super::vhost::Server, &mut super::vhost::Hands<'_>) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (answer, answered) = mpsc::sync_channel(1);
        let act = Message::Vhost(Box::new(move |server, hands| {
            // Whoever asked may have gone.
            let _ = answer.send(act(server, hands));
        }));
        self.inbox.send(act).map_err(|_| Stopped)?;
        answered.recv().map_err(|_| Stopped)
    }

    /// Declares exports anew: see [`Config::exports`](super::nbd::Config). Who connects by NBD from now on finds these.
    ///
    /// Clients that are there stay. What has changed of their export is theirs at once: class, level, group and which
    /// writes are sync; not that it can only be read, which they were told. Weights are changed where another is
    /// declared than before, so that what was set meanwhile stays. An export that is gone has no new clients.
    ///
    /// # Errors
    /// If the disk is no longer served.
    pub fn set_exports(&self, exports: Exports) -> Result<(), Stopped> {
        let (done, is_done) = mpsc::sync_channel(1);
        self.inbox.send(Message::Exports(exports, done)).map_err(|_| Stopped)?;
        is_done.recv().map_err(|_| Stopped)
    }

    /// The disk is to end: it takes nothing more, finishes what it has, flushes, and its thread ends.
    pub fn stop(&self) {
        // It may have ended already.
        let _ = self.inbox.send(Message::Stop);
    }
}
