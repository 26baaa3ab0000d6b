//! The request queue of a served disk. Operations of clients become bios. The bios pass through the
//! scheduler and reach the back end as commands.
//!
//! The queue is sans-IO: the caller manages the time, the connections of the clients and the back
//! end. A host makes the calls in this order:
//!
//! - *clients*: [`LiveDisk::connect`], [`LiveDisk::disconnect`] and [`LiveDisk::group`] define the
//!   clients, their priorities and weights.
//! - *submit*: [`LiveDisk::submit`] takes an operation with any offset and length.
//!   [`LiveDisk::has_room`] returns whether a front end should take more operations from the
//!   client.
//! - *commands*: `next_command` returns the next command for the back end. [`LiveDisk::complete`]
//!   takes the result of the command.
//! - *arrivals*: [`LiveDisk::arrive`] submits the work that completions have made possible.
//! - *answers*: [`LiveDisk::take_done`].
//! - *timer*: [`LiveDisk::next_timer`], [`LiveDisk::timer`].
//! - *control*: scheduler, attributes and tunables, at any moment.
//!
//! The [`Driver`] handles three kinds of events: a completion, a timer, and all arrivals of one
//! moment. After each event the host calls `next_command` until it returns `None`. These calls are
//! the event's turn. The simulator's engine uses the same order. When the engine replays a
//! recording of a served disk, it therefore makes the same decisions.
//!
//! Guarantees:
//!
//! - The disk answers each operation once, after the back end has completed all commands of the
//!   operation.
//! - An operation gets its own errors, and no errors of other operations.
//! - A flush covers every write that the disk answered before the flush was submitted.
//! - Memory is bounded. Each client has its own `nr_requests` in the queue, as each cgroup had in
//!   the single-queue block layer of Linux. Front ends keep the memory of operations within the
//!   byte budget. Further operations wait at the client.

mod client;
mod control;
mod failed;
mod operation;
mod salvage;
mod size;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::VecDeque;

use iosched::{
    Bio, Context, ContextId, Driver, Due, IoError, Op, Owner, QueueConfig, Registry, RequestId, RequestQueue, Rerun,
    Sector, Setting, SettingError, Step, Time,
};
use iosched_system::{Buffer, Pool, Segment};
use slab::Slab;

use crate::Errno;
use crate::backend::BackendCard;
use client::Clients;
pub use client::{
    Client, ClientId, ClientStat, Had, Identity, Latencies, RemoveGroupError, SyncWrites, TooManyClients,
    UnknownSyncWrites,
};
pub(crate) use control::MCLOCK;
pub use control::attribute_spec;
pub use failed::{Failed, Failures};
pub use operation::{Action, Operation};
use operation::{Conflicts, Running};
use salvage::Salvages;
pub use size::RescanError;
pub(crate) use size::{Measure, Size};
pub use watch::DecisionCounts;
use watch::{Extent, Watch};

/// Bytes in a sector.
const SECTOR_BYTES: u64 = iosched::SECTOR_BYTES;
/// Maximum number of sectors that one bio trims or zeroes. A request of this size does not delay
/// other requests for long.
const ZEROED_SECTORS_MAX: u64 = 65_536;
/// Number of low bits of a bio's cookie that hold the key of the bio's part. The other bits hold
/// the ordinal of the bio.
const KEY_BITS: u32 = 28;

/// Returns the key of the part from the cookie of its bio.
fn key(cookie: u64) -> u32 {
    (cookie & ((1 << KEY_BITS) - 1)) as u32
}

/// Parameters of a new served disk.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the disk.
    pub name: String,
    /// Setting that is in force from the first request.
    pub setting: Setting,
    /// Schedulers that the disk can be switched to.
    pub registry: Registry,
    /// Description of the back end. Its `depth` is the queue depth.
    pub card: BackendCard,
    /// Maximum number of bytes of all clients' operations, together with the answers that clients
    /// have not received. The front ends enforce this limit.
    pub budget_bytes: u64,
    /// Whether the disk records the driver's inputs and the decisions. See
    /// [`LiveDisk::take_records`].
    pub recorded: bool,
}

/// The answer to an operation.
#[derive(Debug)]
pub struct Done {
    /// Client that submitted the operation.
    pub client: ClientId,
    /// Cookie that the front end gave to the operation.
    pub cookie: u64,
    /// Result of the operation. The result of a read contains the data.
    pub result: Result<Option<Buffer>, Errno>,
}

/// Counts of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ConnectionCounts {
    pub(crate) accepted: u64,
    /// Connections that the server refused because the maximum number was reached.
    pub(crate) refused: u64,
    /// Connections that the server closed because the client made no progress in the middle of a
    /// request, or did not receive its answers.
    pub(crate) stalled: u64,
}

/// A part of an operation that is in the queue or in the back end.
#[derive(Clone, Copy, Debug)]
struct Part {
    operation: u32,
    /// Offset of the part's data in the operation's buffer, bytes.
    at: usize,
    op: Op,
    sector: Sector,
    nr_sectors: u32,
}

impl Part {
    fn bytes(&self) -> usize {
        self.nr_sectors as usize * SECTOR_BYTES as usize
    }
}

/// The purpose of a command to the back end.
#[derive(Clone, Copy, Debug)]
struct CommandFor {
    request: RequestId,
    /// The part that the command retries separately, after the whole request failed.
    alone: Option<u32>,
}

/// A command for the back end. The segments that come with the command hold its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Identifier of the command, for [`LiveDisk::complete`]. Identifiers are dense from 0.
    pub id: u32,
    /// Operation of the command.
    pub op: Op,
    /// First byte of the command.
    pub offset: u64,
    /// Number of bytes; 0 for a flush.
    pub length: u64,
    /// Whether the data must be on stable storage when the command completes.
    pub fua: bool,
    /// For a write of zeroes: whether the blocks stay allocated.
    pub no_hole: bool,
}

/// A disk with clients and a scheduler. See the documentation of this module.
pub struct LiveDisk {
    settings: Settings,
    size: Size,
    /// Function that measures a backing that can grow.
    measure: Option<Measure>,
    driver: Driver,
    pool: Pool,
    clients: Clients,
    /// Client of each I/O context, by the context's index.
    owners: Vec<ClientId>,
    operations: Slab<Running>,
    parts: Slab<Part>,
    commands: Slab<CommandFor>,
    /// Requests that the scheduler has dispatched and that have not become commands of the back end
    /// yet.
    started: VecDeque<RequestId>,
    /// Number of bios so far.
    bios: u64,
    /// Whether the queue offered room to clients that no longer need the room.
    declined: bool,
    /// Clients for which the queue may have room again.
    hungry: Vec<ClientId>,
    /// Whether a client has left. The queue's `nr_requests` must then change.
    rescale: bool,
    in_device: [u32; 2],
    conflicts: Conflicts,
    salvages: Salvages,
    /// Operations that may begin or continue before the current call ends. The list avoids deep
    /// recursion when many operations in a row each allow the next operation to begin.
    free: VecDeque<u32>,
    done: Vec<Done>,
    /// The `nr_requests` that users see: the number of requests of each client.
    nr_requests: u32,
    /// Observer of the decisions, if a user requested it.
    watch: Option<Box<Watch>>,
    /// Whether the queue is switching its scheduler. A switch can change the queue's `nr_requests`.
    switching: bool,
    /// Bios that completed while the queue processed a completion, with their results.
    finished: Vec<(u64, Result<(), Errno>)>,
    /// Counts of commands that failed in the back end.
    failures: Failures,
    /// Counts of connections. Front ends update them.
    pub(crate) connections: ConnectionCounts,
}

impl LiveDisk {
    /// Creates a disk without clients at `now`.
    ///
    /// # Errors
    /// The setting's scheduler does not exist, or the scheduler or the queue does not accept a
    /// value of the setting.
    pub fn new(now: Time, mut settings: Settings, pool: Pool) -> Result<Self, SettingError> {
        let registered = settings.setting.registered()?;
        // Adds the first scheduler to the registry. The disk can then switch back to this
        // scheduler, and the tree shows its tunables.
        let _ = settings.registry.add(registered);
        let config = QueueConfig {
            rotational: settings.card.device.rotational,
            groups: true,
            command_queueing: Some(settings.card.depth_max > 1),
            write_cache: settings.card.device.write_cache,
            fua: settings.card.device.fua,
            max_hw_sectors_kb: settings.card.device.max_hw_sectors_kb,
            depth: settings.card.device.depth,
            ..QueueConfig::default()
        };
        let queue = RequestQueue::new(now, &config, registered);
        let mut disk = Self {
            size: Size::new(settings.card.capacity_bytes()),
            measure: None,
            settings,
            driver: Driver::new(queue, Rerun::SERVED),
            started: VecDeque::new(),
            bios: 0,
            declined: false,
            hungry: Vec::new(),
            rescale: false,
            pool,
            clients: Clients::default(),
            owners: Vec::new(),
            operations: Slab::new(),
            parts: Slab::new(),
            commands: Slab::new(),
            in_device: [0; 2],
            conflicts: Conflicts::default(),
            salvages: Salvages::default(),
            free: VecDeque::new(),
            done: Vec::new(),
            nr_requests: 0,
            watch: None,
            switching: false,
            finished: Vec::new(),
            failures: Failures::new(),
            connections: ConnectionCounts::default(),
        };
        disk.adopt_nr_requests();
        if disk.settings.recorded {
            disk.driver.record(now, config, disk.settings.card.device.depth);
            disk.watch.get_or_insert_default().keep_decisions(true);
            disk.driver.record_decisions(true);
        }
        disk.adopt(now)?;
        Ok(disk)
    }

    /// Writes the attributes and tunables of the setting.
    fn adopt(&mut self, now: Time) -> Result<(), SettingError> {
        let setting = self.settings.setting.clone();
        setting.write(|of, name, value| match of {
            Owner::Queue => self.set_attribute(now, name, value),
            Owner::Elevator => self.set_tunable(now, name, value),
        })
    }

    // ---- clients

    /// Connects a new client to the disk.
    ///
    /// # Errors
    /// The disk already has the maximum number of clients.
    pub fn connect(&mut self, now: Time, identity: Identity) -> Result<ClientId, TooManyClients> {
        let cgroup = self.clients.cgroup(&mut self.driver, identity.group.as_deref());
        let pid = watch::trace_pid(identity.pid, self.clients.next_number());
        let context = self.driver.create_context(pid, identity.ioprio, cgroup);
        let id = match self.clients.add(identity, context) {
            Ok(id) => id,
            Err(error) => {
                self.driver.exit(now, context);
                return Err(error);
            }
        };
        if self.owners.len() <= context.index() {
            self.owners.resize(context.index() + 1, id);
        }
        self.owners[context.index()] = id;
        self.scale_requests(now);
        if let (Some(watch), Some(client)) = (&mut self.watch, self.clients.get(id)) {
            watch.connected(now, client.trace_pid(), &client.identity.name);
        }
        self.settle(now);
        Ok(id)
    }

    /// Disconnects a client. Its operations that are not yet in the queue fail with ESHUTDOWN.
    /// Parts that are already in the queue complete.
    pub fn disconnect(&mut self, now: Time, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if std::mem::replace(&mut client.leaving, true) {
            return;
        }
        let pending = std::mem::take(&mut client.pending);
        let context = client.context;
        for operation in pending {
            self.abandon(now, operation);
        }
        for operation in self.conflicts.waiting_of(id, &self.operations) {
            // If an earlier operation was abandoned, this operation may have begun as a result.
            if self.operations.get(operation as usize).is_some_and(|operation| operation.waits) {
                self.abandon(now, operation);
            }
        }
        self.begin_free(now);
        self.driver.exit(now, context);
        self.forget_if_idle(id);
        // The queue may have offered room to the client. Other clients can use this room now.
        self.settle(now);
    }

    fn forget_if_idle(&mut self, id: ClientId) {
        if self.clients.get(id).is_some_and(|client| client.leaving && client.operations == 0) {
            self.clients.remove(id);
            self.rescale = true;
        }
    }

    /// Drops the parts of an operation that are not yet in the queue. The operation fails with
    /// ESHUTDOWN.
    fn abandon(&mut self, now: Time, number: u32) {
        let Some(running) = self.operations.get_mut(number as usize) else { return };
        running.result = Err(Errno::ESHUTDOWN);
        running.skip_rest();
        if running.parts_under_way == 0 {
            self.finish(now, number);
        }
    }

    // ---- submit

    /// Returns whether a front end should take another operation from the client now. The front end
    /// itself must count the memory ([`LiveDisk::bytes_of`]).
    #[must_use]
    pub fn has_room(&self, id: ClientId) -> bool {
        self.clients.get(id).is_some_and(|client| client.operations < self.nr_requests)
    }

    /// Returns the bytes of memory that an operation holds from its submission to its answer.
    #[must_use]
    pub fn bytes_of(&self, action: Action, offset: u64, length: u64) -> u64 {
        operation::bytes_of(action, offset, length, self.settings.card.block_bytes)
    }

    /// Returns a buffer for the data of a write.
    #[must_use]
    pub fn buffer(&self, length: usize) -> Buffer {
        self.pool.buffer(length)
    }

    /// Returns a buffer as [`LiveDisk::buffer`] does, or `None` if the system has no memory for the
    /// buffer.
    #[must_use]
    pub fn try_buffer(&self, length: usize) -> Option<Buffer> {
        self.pool.try_buffer(length)
    }

    /// Takes an operation. [`LiveDisk::take_done`] returns the answer. The answer may be ready at
    /// once.
    pub fn submit(&mut self, now: Time, id: ClientId, mut operation: Operation) {
        let Operation { cookie, .. } = operation;
        let refusal = match self.clients.get(id) {
            Some(client) if !client.leaving => {
                operation.sync |= client.identity.sync == SyncWrites::All;
                operation.refusal(self.capacity_bytes(), client.identity.read_only)
            }
            _ => Some(Errno::ESHUTDOWN),
        };
        if let Some(errno) = refusal {
            self.done.push(Done { client: id, cookie, result: Err(errno) });
            return;
        }
        let running = Running::new(now, id, operation, self.settings.card.block_bytes, &self.pool);
        if let Some(client) = self.clients.get_mut(id) {
            client.operations += 1;
        }
        let number = self.operations.insert(running) as u32;
        if self.conflicts.may_begin(number, &mut self.operations) {
            self.begin(now, number);
        }
        if !self.free.is_empty() {
            self.settle(now);
        }
    }

    fn begin_free(&mut self, now: Time) {
        while let Some(number) = self.free.pop_front() {
            self.begin(now, number);
        }
    }

    /// Puts the operation behind the client's earlier operations.
    fn begin(&mut self, now: Time, number: u32) {
        let running = &self.operations[number as usize];
        let id = running.client;
        if !running.has_more() {
            self.finish(now, number);
            return;
        }
        match self.clients.get_mut(id) {
            Some(client) if !client.leaving => {
                client.pending.push_back(number);
                self.feed(now, id);
            }
            _ => self.abandon(now, number),
        }
    }

    /// Submits the client's operations to the queue until the client uses all its `nr_requests`.
    fn feed(&mut self, now: Time, id: ClientId) {
        let nr_requests = self.nr_requests;
        while let Some(client) = self.clients.get(id) {
            let Some(&number) = client.pending.front() else { return };
            if client.parts >= nr_requests {
                return;
            }
            let context = client.context;
            // A bio consists of whole blocks of the back end, even if a user has set a smaller
            // `max_sectors_kb`.
            let block_sectors = u64::from(self.settings.card.block_bytes) / SECTOR_BYTES;
            let max_sectors = u64::from(self.driver.queue().max_sectors()) / block_sectors * block_sectors;
            let running = &mut self.operations[number as usize];
            let Some(piece) = running.piece() else { return };
            let most = if piece.is_transfer() { max_sectors } else { ZEROED_SECTORS_MAX };
            let part = piece.first(number, most.max(block_sectors));
            let key = self.parts.insert(part);
            let flags = running.flags(part.op);
            let Part { op, sector, nr_sectors, .. } = part;
            self.bios += 1;
            let bio = Bio { op, flags, sector, nr_sectors, context, cookie: self.bios << KEY_BITS | key as u64 };
            if let Some(watch) = &mut self.watch {
                watch.look(&mut self.driver);
                let &Context { pid, ioprio, .. } = self.driver.queue().env().contexts.get(context);
                watch.queued(now, &Extent { pid, op, flags, sector, nr_sectors }, ioprio);
            }
            match self.driver.submit_issued(now, &bio, &piece.issued(nr_sectors)) {
                iosched::Submit::Full => {
                    self.parts.remove(key);
                    return;
                }
                submitted => {
                    running.taken(nr_sectors);
                    running.parts_under_way += 1;
                    let drained = !running.has_more();
                    if let Some(client) = self.clients.get_mut(id) {
                        client.parts += 1;
                        if drained {
                            client.pending.pop_front();
                        }
                    }
                    while let Some(request) = self.driver.kicked(now, self.back_end_has_room()) {
                        self.started.push_back(request);
                    }
                    if let iosched::Submit::Done(bio) = submitted {
                        self.part_done(now, bio.cookie, Ok(()));
                    }
                }
            }
        }
    }

    // ---- commands

    /// Returns the next command for the back end, in the turn of the last event. Returns `None` if
    /// the back end has no room or the scheduler dispatches nothing. Fills `segments` with the data
    /// of the command. The memory of the segments stays valid until the command completes.
    pub(crate) fn next_command(&mut self, now: Time, segments: &mut Vec<Segment>) -> Option<Command> {
        segments.clear();
        if let Some((request, part)) = self.salvages.next() {
            let Part { op, sector, nr_sectors, .. } = self.parts[part as usize];
            self.add_segment(part, segments);
            let fua = self.driver.queue().request(request).needs_fua();
            return Some(self.command(CommandFor { request, alone: Some(part) }, op, sector, nr_sectors, fua));
        }
        loop {
            if let Some(request) = self.started.pop_front() {
                return Some(self.command_for(request, segments));
            }
            match self.driver.turn(now, self.back_end_has_room())? {
                Step::Start(request) => self.started.push_back(request),
                Step::Wake(context) => self.wake(now, context),
            }
        }
    }

    /// Submits, as one event, all work that completions and their turns have made possible. Returns
    /// whether there was any work. The host repeats the call until it returns false.
    pub fn arrive(&mut self, now: Time) -> bool {
        let switched = self.follow_switch(now);
        let (rescale, declined) = (std::mem::take(&mut self.rescale), std::mem::take(&mut self.declined));
        if !(switched || rescale || declined) && self.hungry.is_empty() && self.free.is_empty() {
            return false;
        }
        if rescale {
            self.scale_requests(now);
        }
        let mut hungry = std::mem::take(&mut self.hungry);
        for client in hungry.drain(..) {
            self.feed(now, client);
        }
        self.hungry = hungry;
        self.begin_free(now);
        if declined {
            self.feed_all(now);
        }
        true
    }

    fn back_end_has_room(&self) -> bool {
        self.driver.queue().in_driver() < self.settings.card.device.depth
    }

    fn command_for(&mut self, request: RequestId, segments: &mut Vec<Segment>) -> Command {
        let rq = self.driver.queue().request(request);
        let (op, sector, nr_sectors, fua) =
            (rq.op(), rq.sector(), rq.nr_sectors(), rq.needs_fua() && self.settings.card.device.fua);
        if matches!(op, Op::Read | Op::Write) {
            let (parts, operations) = (&self.parts, &mut self.operations);
            for cookie in self.driver.queue().bios(request) {
                let part = parts[key(cookie) as usize];
                segments.extend(operations[part.operation as usize].segment(part.at, part.bytes()));
            }
        }
        self.command(CommandFor { request, alone: None }, op, sector, nr_sectors, fua)
    }

    fn add_segment(&mut self, part: u32, segments: &mut Vec<Segment>) {
        let part = self.parts[part as usize];
        if matches!(part.op, Op::Read | Op::Write) {
            segments.extend(self.operations[part.operation as usize].segment(part.at, part.bytes()));
        }
    }

    fn command(&mut self, purpose: CommandFor, op: Op, sector: Sector, nr_sectors: u32, fua: bool) -> Command {
        self.in_device[usize::from(op.is_write())] += 1;
        let id = self.commands.insert(purpose) as u32;
        let no_hole = op == Op::WriteZeroes
            && self.driver.queue().bios(purpose.request).any(|cookie| self.needs_room(key(cookie)));
        let (offset, length) = (sector * SECTOR_BYTES, u64::from(nr_sectors) * SECTOR_BYTES);
        Command { id, op, offset, length, fua, no_hole }
    }

    fn needs_room(&self, part: u32) -> bool {
        self.operations[self.parts[part as usize].operation as usize].no_hole
    }

    /// Completes a command. Returns a description of the command if the command failed.
    pub fn complete(&mut self, now: Time, command: u32, result: Result<(), Errno>) -> Option<Failed> {
        let purpose = self.commands.remove(command as usize);
        let failed = result.err().map(|errno| self.failed(purpose, errno));
        self.completed(now, purpose, result);
        failed
    }

    fn completed(&mut self, now: Time, purpose: CommandFor, result: Result<(), Errno>) {
        let CommandFor { request, alone } = purpose;
        self.in_device[usize::from(self.driver.queue().request(request).op().is_write())] -= 1;
        if let Some(part) = alone {
            if self.salvages.tried(request, part, result) {
                self.request_done(now, request, Ok(()));
            }
            return;
        }
        // Several operations share the request. Each operation must get only its own errors.
        if result.is_err() && self.driver.queue().request(request).op().has_data() {
            let mut parts: Vec<u32> = self.driver.queue().bios(request).map(key).collect();
            if parts.len() > 1 {
                parts.reverse();
                self.salvages.begin(request, parts);
                return;
            }
        }
        self.request_done(now, request, result);
    }

    fn request_done(&mut self, now: Time, request: RequestId, result: Result<(), Errno>) {
        let mut finished = std::mem::take(&mut self.finished);
        let salvages = &mut self.salvages;
        let result = result.map_err(|errno| IoError(errno.0));
        self.driver.complete(now, request, result, |bio, result| {
            let alone = salvages.result(key(bio.cookie));
            finished.push((bio.cookie, alone.unwrap_or(result.map_err(|IoError(errno)| Errno(errno)))));
        });
        for (cookie, result) in finished.drain(..) {
            let client = self.part_done(now, cookie, result);
            if self.hungry.last() != Some(&client) {
                self.hungry.push(client);
            }
        }
        self.finished = finished;
    }

    /// Finishes a switch of the scheduler that is over, and begins the operations that the last
    /// event made possible.
    pub(super) fn settle(&mut self, now: Time) {
        self.follow_switch(now);
        self.begin_free(now);
    }

    /// Submits more operations of the client, when the queue has room for the client again. If the
    /// client no longer needs the room, other clients get it.
    fn wake(&mut self, now: Time, context: ContextId) {
        let id = self.owner(context);
        self.declined |= self.clients.get(id).is_none_or(|client| client.pending.is_empty());
        self.feed(now, id);
        // The queue may have merged the client's bio into a request, and the bio then needed no
        // room.
        self.driver.decline(context);
        self.begin_free(now);
    }

    fn owner(&self, context: ContextId) -> ClientId {
        self.owners[context.index()]
    }

    /// Completes a part of an operation. Returns the client of the operation.
    fn part_done(&mut self, now: Time, cookie: u64, result: Result<(), Errno>) -> ClientId {
        let number = self.parts.remove(key(cookie) as usize).operation;
        let running = &mut self.operations[number as usize];
        let id = running.client;
        running.parts_under_way -= 1;
        if let (Err(errno), Ok(())) = (result, running.result) {
            running.result = Err(errno);
        }
        let idle = running.parts_under_way == 0 && !running.has_more();
        if let Some(client) = self.clients.get_mut(id) {
            client.parts -= 1;
        }
        if idle {
            let running = &mut self.operations[number as usize];
            if running.result.is_ok() && running.advance() {
                self.free.push_back(number);
            } else {
                self.finish(now, number);
            }
        }
        id
    }

    /// Answers the operation.
    fn finish(&mut self, now: Time, number: u32) {
        let running = self.operations.remove(number as usize);
        let (id, cookie) = (running.client, running.cookie);
        if let Some(client) = self.clients.get_mut(id) {
            client.operations -= 1;
            client.pending.retain(|&other| other != number);
            client.stat.count(&running, now);
        }
        self.conflicts.ended(number, &running, &mut self.operations, &mut self.free);
        self.done.push(Done { client: id, cookie, result: running.into_result() });
        self.forget_if_idle(id);
    }

    /// Returns all answers since the last call, in order.
    pub fn take_done(&mut self) -> std::vec::Drain<'_, Done> {
        self.done.drain(..)
    }

    /// Returns whether the disk has no pending operations and no pending commands.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.operations.is_empty() && self.commands.is_empty()
    }

    // ---- timer

    /// Returns the time at which the host must call [`LiveDisk::timer`], if any. Every call of the
    /// disk can change this time.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        self.driver.next_due(None, None).map(|(at, _)| at)
    }

    /// Runs the timer as an event if it is due. Returns whether it ran.
    pub fn timer(&mut self, now: Time) -> bool {
        match self.driver.next_due(None, None).filter(|&(at, _)| at <= now) {
            // The result does not matter: every host runs the queue after every event.
            Some((_, Due::Timer)) => _ = self.driver.timer(now),
            Some(_) => self.driver.rerun(now),
            None => return false,
        }
        true
    }
}
