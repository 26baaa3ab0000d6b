//! The NBD server of a disk, on the disk's own thread. The ring handles the sockets, and
//! [`iosched_nbd`] handles the protocol.

mod account;
#[cfg(any(test, feature = "histories"))]
mod audit;
mod connection;
mod output;

use std::collections::{BTreeSet, VecDeque};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use iosched::{IoPriority, Time};
use iosched_nbd::{LENGTH_MAX, Offer, ReplyTo, RequestKind, TlsMode};
use iosched_system::{Call, Memory, call};
use slab::Slab;

use crate::backend::Backend;
use crate::disk::{Done, LiveDisk, SyncWrites};
use crate::nbd::{Exports, ServerConfig};
use crate::ring::{Calls, Completed, Source, Submissions};
use crate::{Messages, Portion, sys};
use account::Account;
use connection::{Connection, Peer, With};

/// Bit that marks the cookies of operations of the NBD server.
pub(super) const COOKIES: u64 = 1 << 63;

/// Pause before a listener accepts again after a failure, ns.
const DEAF_NS: u64 = 100 * iosched::MILLISECOND_NS;
/// Minimum buffer size of a socket in the kernel, bytes.
const SOCKET_BYTES_MIN: usize = 32 << 10;
/// Maximum number of connections with larger socket buffers. The kernel chooses the size for a
/// network connection. For a connection from this machine, the buffer can hold a large answer.
const FEW: usize = 16;
/// Maximum socket buffer for one of these connections if it comes from this machine, bytes. Larger
/// buffers were not faster.
const FEW_SOCKET_BYTES_MAX: usize = 4 << 20;
/// Number of open files that are not connections.
const OTHER_FILES: u64 = 32;

/// A socket for new connections.
#[derive(Debug)]
pub enum Listener {
    /// A unix socket.
    Unix(UnixListener),
    /// A TCP socket.
    Tcp(TcpListener),
}

impl Listener {
    /// Returns the listening sockets that systemd has passed to this process, if any. Call this
    /// function only once.
    ///
    /// # Errors
    /// A socket is neither a unix nor a TCP socket.
    pub fn from_systemd() -> std::io::Result<Vec<Self>> {
        let mut listeners = Vec::new();
        for socket in call::systemd_sockets()? {
            let tcp = TcpListener::from(socket);
            listeners.push(if tcp.local_addr().is_ok() {
                Self::Tcp(tcp)
            } else {
                let unix = UnixListener::from(OwnedFd::from(tcp));
                unix.local_addr()?;
                Self::Unix(unix)
            });
        }
        Ok(listeners)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// Limits for the clients of an NBD server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of connections at once.
    pub connections: usize,
    /// Maximum duration of a handshake, ns.
    pub handshake_ns: u64,
    /// Maximum time without progress in the middle of a request, or with unread answers, ns.
    pub stall_timeout_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 256, handshake_ns: 10 * iosched::SECOND_NS, stall_timeout_ns: 60 * iosched::SECOND_NS }
    }
}

/// Configuration of the NBD server of a disk.
pub struct Config {
    /// Sockets for new connections.
    pub listeners: Vec<Listener>,
    /// Exports that clients can choose.
    pub exports: Exports,
    /// TLS configuration, if connections can use TLS.
    pub tls: Option<Arc<ServerConfig>>,
    /// Whether clients may also connect without TLS.
    pub plain: bool,
    /// Limits for clients.
    pub limits: Limits,
}

/// Exports at the time when a client connected. They stay in force for the client's connection.
#[derive(Clone)]
struct Catalogue {
    exports: Arc<Exports>,
    /// Offers of the exports, in the same order.
    offers: Arc<[Offer]>,
    size_bytes: u64,
}

impl Catalogue {
    fn new(exports: Arc<Exports>, disk: &LiveDisk) -> Self {
        let size_bytes = disk.capacity_bytes();
        let mut offer = Offer::new(disk.name(), size_bytes);
        offer.rotational = disk.is_rotational();
        offer.fast_zero = disk.has_fast_zeroes();
        offer.preferred_block_bytes = disk.block_bytes().max(4096);
        offer.length_max = length_max(disk.budget_bytes());
        let offers = exports.offers(&offer);
        Self { exports, offers, size_bytes }
    }

    /// Iterates over the groups, with the weights, reservations and limits that exports declare for
    /// them.
    fn groups(&self) -> impl Iterator<Item = (&str, Portion)> {
        self.exports.as_slice().iter().filter_map(|export| self.exports.group(export))
    }

    /// Sets the weights, reservations and limits of groups. Skips groups whose declaration is the
    /// same in the catalogue `before`. Releases groups that only `before` declares; users can then
    /// remove them.
    fn weigh(&self, before: Option<&Self>, disk: &mut LiveDisk, messages: &Messages) {
        let before: Vec<_> = before.into_iter().flat_map(Self::groups).collect();
        for (gone, _) in before.iter().filter(|(name, _)| self.groups().all(|(known, _)| known != *name)) {
            disk.release_group(gone);
        }
        for (group, portion) in self.groups().filter(|group| !before.contains(group)) {
            if let Err(error) = disk.group(group, portion) {
                messages.say(&format!("warning: {error}"));
            }
        }
    }

    /// Returns the properties of an export's clients.
    fn standing(&self, export: usize) -> Option<Standing> {
        let export = self.exports.as_slice().get(export)?;
        let group = self.exports.group(export).map(|(name, _)| name.to_owned());
        Some(Standing { ioprio: export.ioprio, group, sync: export.sync })
    }
}

/// Properties of a client, as its export declares them.
#[derive(Clone, PartialEq, Eq)]
struct Standing {
    ioprio: IoPriority,
    group: Option<String>,
    sync: SyncWrites,
}

/// Initial state of every connection.
struct Door {
    catalogue: Catalogue,
    tls: Option<Arc<ServerConfig>>,
    tls_mode: TlsMode,
    limits: Limits,
    /// Maximum buffer of each socket in the kernel, bytes. The buffers of all sockets together use
    /// three eighths of the memory budget.
    socket_bytes: usize,
    /// Maximum buffer of each of the first connections from this machine, bytes. These buffers
    /// together use an eighth of the memory budget.
    few_socket_bytes: usize,
}

/// Returns the maximum length of a read or write, bytes: half of the memory budget, at least
/// [`LENGTH_MAX`], rounded down to a power of two.
fn length_max(budget_bytes: u64) -> u32 {
    let share_bytes = u32::try_from(budget_bytes / 2).unwrap_or(u32::MAX).max(LENGTH_MAX);
    1 << share_bytes.ilog2()
}

/// Role of an operation in its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// The complete request of the client.
    Whole,
    /// A piece of a write, with the write's key in the connection.
    Write(usize),
    /// A piece of the read that the connection executes in pieces.
    Read,
}

/// An operation for which a connection waits.
struct PendingOperation {
    connection: u32,
    part: Part,
    kind: RequestKind,
    /// Fields of the request that its reply repeats.
    to: ReplyTo,
    length: u64,
    /// Bytes of memory that the operation holds.
    held_bytes: u64,
}

/// The NBD server.
pub(super) struct Server {
    listeners: Vec<Listener>,
    door: Door,
    /// Queue for messages about connections.
    messages: Messages,
    account: Account,
    connections: Slab<Connection>,
    pending: Slab<PendingOperation>,
    /// Connections that wait for block status. Some of these connections may have ended.
    statuses: VecDeque<u32>,
    /// Connections with recent events.
    touched: Vec<u32>,
    /// Whether the server cannot accept connections and has reported this failure.
    deaf: bool,
    /// Tasks of the server, ordered by time.
    agenda: BTreeSet<(Time, Due)>,
    ending: bool,
}

impl Server {
    pub(super) fn new(config: Config, disk: &mut LiveDisk, messages: Messages) -> Self {
        let Config { listeners, exports, tls, plain, limits } = config;
        let catalogue = Catalogue::new(Arc::new(exports), disk);
        catalogue.weigh(None, disk, &messages);
        let tls_mode = match (&tls, plain) {
            (None, _) => TlsMode::Off,
            (Some(_), true) => TlsMode::Available,
            (Some(_), false) => TlsMode::Required,
        };
        let budget_bytes = disk.budget_bytes();
        let part = |eighths: u64, sockets: usize| {
            usize::try_from(budget_bytes / 8 * eighths / sockets.max(1) as u64).unwrap_or(usize::MAX)
        };
        let socket_bytes = part(3, limits.connections).max(SOCKET_BYTES_MIN);
        let few_socket_bytes = part(1, FEW).min(FEW_SOCKET_BYTES_MAX);
        if sys::allow_open_files().is_some_and(|files| files < limits.connections as u64 + OTHER_FILES) {
            messages.say(&format!(
                "warning: the limit of open files is too low for {} connections; raise it with ulimit -n",
                limits.connections
            ));
        }
        let door = Door { catalogue, tls, tls_mode, limits, socket_bytes, few_socket_bytes };
        Self {
            listeners,
            door,
            messages,
            account: Account::new(budget_bytes),
            connections: Slab::new(),
            pending: Slab::new(),
            statuses: VecDeque::new(),
            touched: Vec::new(),
            deaf: false,
            agenda: BTreeSet::new(),
            ending: false,
        }
    }

    pub(super) fn listen(&self, ring: &mut dyn Calls) {
        for listener in 0..self.listeners.len() {
            self.accept_on(listener as u32, ring);
        }
    }

    fn accept_on(&self, listener: u32, ring: &mut dyn Calls) {
        let Some(listening) = self.listeners.get(listener as usize) else { return };
        ring.push(listening.fd(), Call::Accept, (Source::Accept, listener));
    }

    /// Handles a new connection.
    pub(super) fn accepted(&mut self, now: Time, completed: Completed, disk: &mut LiveDisk, ring: &mut dyn Calls) {
        let Completed { tag: (_, listener), result, memory } = completed;
        if self.ending {
            return;
        }
        let Memory::Socket(socket) = memory else {
            // The most likely cause is too many open files. The server tries again after a pause.
            self.agenda.insert((now + DEAF_NS, Due::Listen(listener)));
            if !std::mem::replace(&mut self.deaf, true) {
                let why = std::io::Error::from_raw_os_error(-result);
                let text = format!("warning: cannot accept a connection: {why}");
                self.messages.note("connections that could not be accepted", &text);
            }
            return;
        };
        self.deaf = false;
        self.accept_on(listener, ring);
        let unix = matches!(self.listeners.get(listener as usize), Some(Listener::Unix(_)));
        let (name, pid) = if unix { sys::unix_peer(socket.as_fd()) } else { (sys::tcp_peer(socket.as_fd()), 0) };
        if self.connections.len() >= self.door.limits.connections {
            let limit = self.door.limits.connections;
            let text = format!("{name}: connection refused: there are already {limit} connections, the maximum");
            self.messages.note("connections refused because there were too many", &text);
            disk.connections.refused += 1;
            return;
        }
        disk.connections.accepted += 1;
        // With few connections, the kernel chooses the buffers of network sockets.
        let is_of_few = self.connections.len() < FEW;
        if unix || !is_of_few {
            sys::bound_buffers(socket.as_fd(), self.door.socket_bytes, !unix);
        }
        if unix && is_of_few {
            sys::widen_send_buffer(socket.as_fd(), self.door.few_socket_bytes);
        }
        if self.door.catalogue.size_bytes != disk.capacity_bytes() {
            self.door.catalogue = Catalogue::new(Arc::clone(&self.door.catalogue.exports), disk);
        }
        let mut connection = Connection::new(socket, Peer { name, pid }, &self.door, now);
        let held_bytes = connection.held_bytes();
        self.account.charge(&mut connection.charged, held_bytes);
        let deadline = connection.deadline;
        let id = self.connections.insert(connection) as u32;
        self.agenda.extend(deadline.map(|at| (at, Due::Handshake(id))));
        if self.connections.len() == 1 {
            self.look_later(now);
        }
        self.touched.push(id);
    }

    /// Schedules the next check for stalled connections, if there are any.
    fn look_later(&mut self, now: Time) {
        self.agenda.retain(|(_, due)| *due != Due::Stall);
        if !self.connections.is_empty() {
            self.agenda.insert((now + self.door.limits.stall_timeout_ns / 4, Due::Stall));
        }
    }

    /// Calls `act` on a connection, if it exists. [`Server::go_on`] later processes the connection
    /// further.
    fn act(&mut self, now: Time, id: u32, disk: &mut LiveDisk, act: impl FnOnce(&mut Connection, &mut With<'_>)) {
        let Self { connections, door, account, pending, statuses, messages, touched, ending, .. } = self;
        let kept_bytes = account.kept(connections.len());
        let Some(connection) = connections.get_mut(id as usize) else { return };
        let ending = *ending;
        act(connection, &mut With { id, now, disk, door, account, pending, statuses, messages, kept_bytes, ending });
        let held_bytes = connection.held_bytes();
        account.charge(&mut connection.charged, held_bytes);
        if touched.last() != Some(&id) {
            touched.push(id);
        }
    }

    /// Handles bytes that the kernel has received for a connection.
    pub(super) fn received(&mut self, now: Time, completed: Completed, disk: &mut LiveDisk) {
        let Completed { tag: (_, id), result, memory } = completed;
        self.act(now, id, disk, |connection, with| connection.received(result, memory, with));
    }

    /// Handles bytes that the kernel has sent for a connection.
    pub(super) fn sent(&mut self, now: Time, completed: Completed, disk: &mut LiveDisk, ring: &mut dyn Calls) {
        let Completed { tag: (source, id), result, memory } = completed;
        let ring = &mut Submissions { ring, source };
        self.act(now, id, disk, |connection, with| connection.sent(result, memory, with, ring));
    }

    /// Handles the disk's answer to an operation from NBD.
    pub(super) fn answer(&mut self, now: Time, done: Done, disk: &mut LiveDisk) {
        let Some(answered) = self.pending.try_remove((done.cookie & !COOKIES) as usize) else { return };
        self.act(now, answered.connection, disk, |connection, with| {
            connection.answer(&answered, done.result, with);
            connection.check_for_stall(with);
        });
    }

    /// Answers pending requests for block status, one per connection. A further request of the same
    /// connection waits for one turn of every other connection.
    pub(super) fn tell_extents(&mut self, now: Time, disk: &mut LiveDisk, backend: &dyn Backend) {
        for _ in 0..self.statuses.len() {
            let Some(id) = self.statuses.pop_front() else { return };
            self.act(now, id, disk, |connection, with| connection.tell_extents(backend, with));
        }
    }

    /// Makes the kernel send and receive for every connection with recent events. Removes
    /// connections that have ended.
    pub(super) fn go_on(&mut self, ring: &mut dyn Calls) {
        let kept_bytes = self.account.kept(self.connections.len());
        while let Some(id) = self.touched.pop() {
            let Some(connection) = self.connections.get_mut(id as usize) else { continue };
            if !connection.closed {
                connection.send(id, &mut Submissions { ring, source: Source::Send });
                connection.receive(id, kept_bytes, &mut Submissions { ring, source: Source::Receive });
            }
            if connection.is_over() {
                self.account.charge(&mut connection.charged, 0);
                self.connections.remove(id as usize);
            }
        }
    }

    /// Returns the time of the next call of [`Server::time`] or [`Server::tell_extents`], or an
    /// earlier time.
    pub(super) fn next_time(&self) -> Option<Time> {
        let due = self.agenda.first().map(|&(at, _)| at);
        if self.statuses.is_empty() { due } else { Some(Time::BEGINNING) }
    }

    /// Closes stalled connections and connections whose handshake takes too long, and accepts again
    /// after a pause.
    pub(super) fn time(&mut self, now: Time, disk: &mut LiveDisk, ring: &mut dyn Calls) {
        while let Some((at, due)) = self.agenda.pop_first() {
            if at > now {
                self.agenda.insert((at, due));
                return;
            }
            match due {
                Due::Listen(listener) => self.accept_on(listener, ring),
                Due::Stall => self.close_stalled(now, disk),
                Due::Handshake(id) => self.act(now, id, disk, |connection, with| {
                    // The deadline is checked because another connection may have this number now.
                    if connection.deadline.is_some_and(|deadline| deadline <= now) {
                        connection.tell(
                            "handshakes that took too long",
                            "connection closed: the handshake took \
                            too long",
                            with,
                        );
                        connection.close(with);
                    }
                }),
            }
        }
    }

    fn close_stalled(&mut self, now: Time, disk: &mut LiveDisk) {
        let allowed_ns = self.door.limits.stall_timeout_ns;
        let still = self
            .connections
            .iter_mut()
            .filter_map(|(id, connection)| connection.has_stalled(now, allowed_ns).then_some(id as u32));
        for id in still.collect::<Vec<_>>() {
            self.act(now, id, disk, |connection, with| {
                let allowed_s = allowed_ns / iosched::SECOND_NS;
                let what =
                    format!("connection closed: the client stalled for {allowed_s} s in the middle of a request");
                connection.tell("connections that stalled", what, with);
                with.disk.connections.stalled += 1;
                connection.close(with);
            });
        }
        self.look_later(now);
    }

    /// Replaces the exports: see [`crate::Handle::set_exports`].
    pub(super) fn set_exports(&mut self, now: Time, exports: Exports, disk: &mut LiveDisk) {
        let catalogue = Catalogue::new(Arc::new(exports), disk);
        catalogue.weigh(Some(&self.door.catalogue), disk, &self.messages);
        for (_, connection) in &mut self.connections {
            connection.follow(now, &catalogue, disk);
        }
        self.door.catalogue = catalogue;
    }

    /// Stops accepting connections and starting operations. New clients wait at the socket for the
    /// next server.
    pub(super) fn end(&mut self, ring: &mut dyn Calls) {
        self.ending = true;
        (0..self.listeners.len()).for_each(|listener| ring.cancel((Source::Accept, listener as u32)));
    }

    /// Ends the connections after the disk has ended. Each connection ends when all its answers are
    /// sent.
    pub(super) fn finish(&mut self, now: Time, disk: &mut LiveDisk) {
        let ids: Vec<u32> = self.connections.iter().map(|(id, _)| id as u32).collect();
        for id in ids {
            self.act(now, id, disk, |connection, with| {
                connection.finish(with);
                if connection.output.bytes() == 0 {
                    connection.shut_down();
                }
            });
        }
    }

    /// Returns whether the server has sent all output.
    pub(super) fn is_quiet(&self) -> bool {
        self.connections.iter().all(|(_, connection)| connection.closed || connection.output.bytes() == 0)
    }
}

/// A task of the server that is due at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    /// Accept again at a listener after a failure.
    Listen(u32),
    /// Close a connection if its handshake is not complete.
    Handshake(u32),
    /// Check for stalled connections.
    Stall,
}
