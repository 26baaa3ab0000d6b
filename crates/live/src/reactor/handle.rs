//! Access to a disk's thread from other threads.

use std::sync::{Arc, mpsc};

use iosched::Time;

use crate::disk::{ClientId, Identity, Operation, Size, TooManyClients};
use crate::nbd::Exports;
use crate::{Buffer, Errno, LiveDisk, Messages, Pool};

/// Function that gets the result of an operation. It runs on the disk's thread and must not block.
pub type Reply = Box<dyn FnOnce(Result<Option<Buffer>, Errno>) + Send>;

type Control = Box<dyn FnOnce(&mut LiveDisk, Time) + Send>;
#[cfg(feature = "vhost")]
type ForVhost = Box<dyn FnOnce(&mut super::vhost::Server, &mut super::vhost::Hands<'_>) + Send>;

/// A message from another thread to the disk's thread.
pub(super) enum Message {
    Submit(ClientId, Operation, Reply),
    Control(Control),
    #[cfg(feature = "vhost")]
    Vhost(ForVhost),
    /// New exports for NBD clients. The disk's thread notifies the channel when the exports are in
    /// force.
    Exports(Exports, mpsc::SyncSender<()>),
    Stop,
}

/// Queue of messages to a disk's thread.
pub(super) type Inbox = iosched_system::Inbox<Message>;

/// Error: the disk's thread has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the server no longer serves this disk")]
pub struct Stopped;

/// Reason why a client cannot connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The disk has ended.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The disk already has the maximum number of clients.
    #[error(transparent)]
    TooMany(#[from] TooManyClients),
}

/// Handle of a disk that a thread serves. A clone is another handle of the same disk.
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

    /// Returns the name of the disk.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the current size of the disk in bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.size.bytes()
    }

    /// Returns the block size of the back end in bytes: the smallest unit that the back end reads
    /// and writes. Operations need not be aligned to blocks.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Returns whether trimmed ranges read as zeroes.
    #[must_use]
    pub fn trim_zeroes(&self) -> bool {
        self.trim_zeroes
    }

    /// Returns the maximum number of bytes of all clients' operations together.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// Returns the queue for messages to the user.
    #[must_use]
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Returns a buffer for the data of a write. The buffer contains the data of its previous use.
    #[must_use]
    pub fn buffer(&self, length: usize) -> Buffer {
        self.pool.buffer(length)
    }

    /// Submits an operation and ignores its cookie. The disk's thread calls `reply` once. If the
    /// disk has ended, this function calls `reply` at once.
    pub fn submit(&self, client: ClientId, operation: Operation, reply: Reply) {
        if let Err(Message::Submit(_, _, reply)) = self.inbox.send(Message::Submit(client, operation, reply)) {
            reply(Err(Errno::ESHUTDOWN));
        }
    }

    /// Connects a new client to the served disk.
    ///
    /// # Errors
    /// The disk has ended, or it has the maximum number of clients.
    pub fn connect(&self, identity: Identity) -> Result<ClientId, ConnectError> {
        Ok(self.control(move |disk, now| disk.connect(now, identity))??)
    }

    /// Disconnects a client: see [`LiveDisk::disconnect`].
    pub fn disconnect(&self, client: ClientId) {
        // If the disk has ended, its clients are already disconnected.
        let _ = self.inbox.send(Message::Control(Box::new(move |disk, now| disk.disconnect(now, client))));
    }

    /// Runs `act` on the disk's thread and returns its result.
    ///
    /// # Errors
    /// The disk has ended.
    pub fn control<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut LiveDisk, Time) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (answer, answered) = mpsc::sync_channel(1);
        let control = Message::Control(Box::new(move |disk, now| {
            // This fails only if the caller has ended.
            let _ = answer.send(act(disk, now));
        }));
        self.inbox.send(control).map_err(|_| Stopped)?;
        answered.recv().map_err(|_| Stopped)
    }

    /// Runs `act` on the disk's thread, with access to the disks of guests, and returns its result.
    ///
    /// # Errors
    /// The disk has ended.
    #[cfg(feature = "vhost")]
    pub(crate) fn vhost<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut super::vhost::Server, &mut super::vhost::Hands<'_>) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (answer, answered) = mpsc::sync_channel(1);
        let act = Message::Vhost(Box::new(move |server, hands| {
            // This fails only if the caller has ended.
            let _ = answer.send(act(server, hands));
        }));
        self.inbox.send(act).map_err(|_| Stopped)?;
        answered.recv().map_err(|_| Stopped)
    }

    /// Replaces the exports: see [`Config::exports`](super::nbd::Config). Clients that connect by
    /// NBD from now on get the new exports.
    ///
    /// Connected clients stay. If their export has changed, its class, level, group and sync writes
    /// apply at once. The read-only flag does not change for them, because they read it when they
    /// connected. A weight changes only if its declaration has changed. Otherwise a weight that a
    /// user wrote in the control tree stays. A removed export gets no new clients.
    ///
    /// # Errors
    /// The disk has ended.
    pub fn set_exports(&self, exports: Exports) -> Result<(), Stopped> {
        let (done, is_done) = mpsc::sync_channel(1);
        self.inbox.send(Message::Exports(exports, done)).map_err(|_| Stopped)?;
        is_done.recv().map_err(|_| Stopped)
    }

    /// Ends the disk. The disk takes no more operations, completes its pending operations and
    /// flushes. Then its thread ends.
    pub fn stop(&self) {
        // The disk may have ended already.
        let _ = self.inbox.send(Message::Stop);
    }
}
