//! The NBD server of a disk, in the disk's own thread: sockets through the ring, the protocol by [`iosched_nbd`].

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
use crate::{Messages, sys};
use account::Account;
use connection::{Connection, Peer, With};

/// Cookies of operations that came by NBD have this, those of others do not.
pub(super) const COOKIES: u64 = 1 << 63;

/// How long a listener that could not accept waits, in ns.
const DEAF_NS: u64 = 100 * iosched::MILLISECOND_NS;
/// The kernel keeps no less than this for a socket, bytes.
const SOCKET_BYTES_MIN: usize = 32 << 10;
/// The first connections: over the network the kernel chooses the size of their buffers, others have such as large
/// answers fit into.
const FEW: usize = 16;
/// What the kernel keeps for one of them on this machine at most, bytes: more has not made anything faster.
const FEW_SOCKET_BYTES_MAX: usize = 4 << 20;
/// Files that are open beside connections.
const OTHER_FILES: u64 = 32;

/// Where clients connect.
#[derive(Debug)]
pub enum Listener {
    /// A socket of this machine.
    Unix(UnixListener),
    /// A socket of the network.
    Tcp(TcpListener),
}

impl Listener {
    /// The sockets that systemd has made for this process, if it has: each is listened on from now on. To be asked
    /// once.
    ///
    /// # Errors
    /// If one of them is neither a unix nor a TCP socket.
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

/// What clients may use up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// How long a handshake may take, in ns.
    pub handshake_ns: u64,
    /// How long a client may stand still in the middle of a request, or over answers that it does not take, in ns.
    pub standstill_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 256, handshake_ns: 10 * iosched::SECOND_NS, standstill_ns: 60 * iosched::SECOND_NS }
    }
}

/// How a disk is served by NBD.
pub struct Config {
    /// Where clients connect.
    pub listeners: Vec<Listener>,
    /// What they may ask for.
    pub exports: Exports,
    /// How connections are secured, if they can be.
    pub tls: Option<Arc<ServerConfig>>,
    /// Whether clients may also do without TLS.
    pub plain: bool,
    /// What they may use up.
    pub limits: Limits,
}

/// What a connection may ask for, as it was when the client came. That goes on to hold for it.
#[derive(Clone)]
struct Catalogue {
    exports: Arc<Exports>,
    /// One for each export, in the same order.
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

    /// Groups and the weights that are declared of them.
    fn groups(&self) -> impl Iterator<Item = (&str, Option<u32>)> {
        self.exports.as_slice().iter().filter_map(|export| self.exports.group(export))
    }

    /// Gives groups their weights, but for those that had them from the catalogue `before`. Groups that are only in that
    /// one can be removed.
    fn weigh(&self, before: Option<&Self>, disk: &mut LiveDisk, messages: &Messages) {
        let before: Vec<_> = before.into_iter().flat_map(Self::groups).collect();
        for (gone, _) in before.iter().filter(|(name, _)| self.groups().all(|(known, _)| known != *name)) {
            disk.release_group(gone);
        }
        for (group, weight) in self.groups().filter(|group| !before.contains(group)) {
            if let Err(error) = disk.group(group, weight) {
                messages.say(&format!("warning: {error}"));
            }
        }
    }

    /// What an export's clients are to the disk.
    fn standing(&self, export: usize) -> Option<Standing> {
        let export = self.exports.as_slice().get(export)?;
        let group = self.exports.group(export).map(|(name, _)| name.to_owned());
        Some(Standing { ioprio: export.ioprio, group, sync: export.sync })
    }
}

/// What a client is to the disk, as its export declares it.
#[derive(Clone, PartialEq, Eq)]
struct Standing {
    ioprio: IoPriority,
    group: Option<String>,
    sync: SyncWrites,
}

/// What every connection begins with.
struct Door {
    catalogue: Catalogue,
    tls: Option<Arc<ServerConfig>>,
    tls_mode: TlsMode,
    limits: Limits,
    /// What the kernel keeps for each socket at most, bytes: all of them together three eighths of the budget.
    socket_bytes: usize,
    /// What it keeps for each of the first on this machine: together an eighth of the budget.
    few_socket_bytes: usize,
}

/// Longest read or write, bytes: what one client alone may hold.
fn length_max(budget_bytes: u64) -> u32 {
    let share_bytes = u32::try_from(budget_bytes / 2).unwrap_or(u32::MAX).max(LENGTH_MAX);
    1 << share_bytes.ilog2()
}

/// What an operation is to its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// All that the client asked for.
    Whole,
    /// A piece of a write, with the connection's number for that.
    Write(usize),
    /// A piece of the read that is done in pieces.
    Read,
}

/// An operation that a connection waits for.
struct PendingOperation {
    connection: u32,
    part: Part,
    kind: RequestKind,
    /// What the client's reply names it by.
    to: ReplyTo,
    length: u64,
    /// Memory that it holds.
    held_bytes: u64,
}

/// The server.
pub(super) struct Server {
    listeners: Vec<Listener>,
    door: Door,
    /// To tell a person what is to be known of connections.
    messages: Messages,
    account: Account,
    connections: Slab<Connection>,
    pending: Slab<PendingOperation>,
    /// Connections that wait to be told what is allocated; some may be over.
    statuses: VecDeque<u32>,
    /// Connections that something happened to.
    touched: Vec<u32>,
    /// Somebody could not be let in, which was told.
    deaf: bool,
    /// What is due when.
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

    /// Somebody has connected.
    pub(super) fn accepted(&mut self, now: Time, completed: Completed, disk: &mut LiveDisk, ring: &mut dyn Calls) {
        let Completed { tag: (_, listener), result, memory } = completed;
        if self.ending {
            return;
        }
        let Memory::Socket(socket) = memory else {
            // Most likely there are too many files open: it is tried again a little later.
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
            let text = format!("{name}: refused: there are already {limit} connections, the maximum");
            self.messages.note("connections refused because there were too many", &text);
            disk.connections.refused += 1;
            return;
        }
        disk.connections.accepted += 1;
        // The network's need for memory is the kernel's to judge, as long as there are few.
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

    /// Connections are looked at from time to time, as long as there are any.
    fn look_later(&mut self, now: Time) {
        self.agenda.retain(|(_, due)| *due != Due::Standstill);
        if !self.connections.is_empty() {
            self.agenda.insert((now + self.door.limits.standstill_ns / 4, Due::Standstill));
        }
    }

    /// Lets a connection act, if it is there; it is looked at afterwards.
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

    /// The kernel has received for a connection.
    pub(super) fn received(&mut self, now: Time, completed: Completed, disk: &mut LiveDisk) {
        let Completed { tag: (_, id), result, memory } = completed;
        self.act(now, id, disk, |connection, with| connection.received(result, memory, with));
    }

    /// The kernel has sent for a connection.
    pub(super) fn sent(&mut self, now: Time, completed: Completed, disk: &mut LiveDisk, ring: &mut dyn Calls) {
        let Completed { tag: (source, id), result, memory } = completed;
        let ring = &mut Submissions { ring, source };
        self.act(now, id, disk, |connection, with| connection.sent(result, memory, with, ring));
    }

    /// The disk has answered what came by NBD.
    pub(super) fn answer(&mut self, now: Time, done: Done, disk: &mut LiveDisk) {
        let Some(answered) = self.pending.try_remove((done.cookie & !COOKIES) as usize) else { return };
        self.act(now, answered.connection, disk, |connection, with| {
            connection.answer(&answered, done.result, with);
            connection.look_if_stalled(with);
        });
    }

    /// Tells those who wait for it what is allocated, each of them once: who asks again waits until others had their
    /// turn.
    pub(super) fn tell_extents(&mut self, now: Time, disk: &mut LiveDisk, backend: &dyn Backend) {
        for _ in 0..self.statuses.len() {
            let Some(id) = self.statuses.pop_front() else { return };
            self.act(now, id, disk, |connection, with| connection.tell_extents(backend, with));
        }
    }

    /// Lets the kernel send and receive for every connection that something happened to, and forgets those that are
    /// over.
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

    /// When [`Server::time`] or [`Server::tell_extents`] has something to do, or a little earlier than that.
    pub(super) fn next_time(&self) -> Option<Time> {
        let due = self.agenda.first().map(|&(at, _)| at);
        if self.statuses.is_empty() { due } else { Some(Time::BEGINNING) }
    }

    /// Ends handshakes that take too long and connections that stand still, and listens again.
    pub(super) fn time(&mut self, now: Time, disk: &mut LiveDisk, ring: &mut dyn Calls) {
        while let Some((at, due)) = self.agenda.pop_first() {
            if at > now {
                self.agenda.insert((at, due));
                return;
            }
            match due {
                Due::Listen(listener) => self.accept_on(listener, ring),
                Due::Standstill => self.end_standstills(now, disk),
                Due::Handshake(id) => self.act(now, id, disk, |connection, with| {
                    // It may be another's number by now.
                    if connection.deadline.is_some_and(|deadline| deadline <= now) {
                        connection.tell("handshakes that took too long", "closed: its handshake took too long", with);
                        connection.close(with);
                    }
                }),
            }
        }
    }

    fn end_standstills(&mut self, now: Time, disk: &mut LiveDisk) {
        let allowed_ns = self.door.limits.standstill_ns;
        let still = self
            .connections
            .iter_mut()
            .filter_map(|(id, connection)| connection.stands_still(now, allowed_ns).then_some(id as u32));
        for id in still.collect::<Vec<_>>() {
            self.act(now, id, disk, |connection, with| {
                let allowed_s = allowed_ns / iosched::SECOND_NS;
                let what = format!("closed: it stalled in the middle of a request for {allowed_s} s");
                connection.tell("connections that stalled", what, with);
                with.disk.connections.stood_still += 1;
                connection.close(with);
            });
        }
        self.look_later(now);
    }

    /// Exports are declared anew: see [`crate::Handle::set_exports`].
    pub(super) fn set_exports(&mut self, now: Time, exports: Exports, disk: &mut LiveDisk) {
        let catalogue = Catalogue::new(Arc::new(exports), disk);
        catalogue.weigh(Some(&self.door.catalogue), disk, &self.messages);
        for (_, connection) in &mut self.connections {
            connection.follow(now, &catalogue, disk);
        }
        self.door.catalogue = catalogue;
    }

    /// Nobody new is let in, and nothing new is done. Who comes now waits for whoever listens next.
    pub(super) fn end(&mut self, ring: &mut dyn Calls) {
        self.ending = true;
        (0..self.listeners.len()).for_each(|listener| ring.cancel((Source::Accept, listener as u32)));
    }

    /// The disk has ended: connections end when their answers are sent.
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

    /// Whether everything has been sent.
    pub(super) fn is_quiet(&self) -> bool {
        self.connections.iter().all(|(_, connection)| connection.closed || connection.output.bytes() == 0)
    }
}

/// What a server does when a time has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    /// A listener that could not accept tries again.
    Listen(u32),
    /// A connection's handshake has taken too long, if it is not over.
    Handshake(u32),
    /// Connections may have stood still.
    Standstill,
}
