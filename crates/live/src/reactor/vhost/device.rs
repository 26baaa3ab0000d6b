//! A guest's disk. It converts requests of the guest's queues to operations of the disk, and writes
//! the answers into the guest's memory. Data is copied once.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use iosched::Time;
use slab::Slab;

use super::queue::{BrokenRings, Queue};
use super::{COOKIES, Piece};
use crate::disk::{Action, ClientId, LiveDisk, Operation};
use crate::virtio::Refusal;
use crate::virtio::chain::Chain;
use crate::virtio::device::{F_FLUSH, F_PROTOCOL_FEATURES, QUEUES_MAX};
use crate::virtio::inflight::Region;
use crate::virtio::memory::{Memory, Span};
use crate::virtio::request::{self, ID_BYTES, IOERR, Kind, OK, Request};
use crate::{Buffer, Errno};

/// Maximum data of one operation, bytes. A longer request is executed in pieces of at most this
/// size.
const PIECE_BYTES_MAX: u64 = 1 << 20;
/// Maximum range of an operation without data, bytes.
const RANGE_BYTES_MAX: u64 = 1 << 30;

/// Maximum work for a guest in one turn, as the number of requests plus their descriptors. It is
/// enough for a full queue.
pub(super) const WORK_MAX: u32 = 4096;

/// A request that has not been returned to the guest.
struct UnderWay {
    queue: u16,
    head: u16,
    request: Request,
    /// Guest memory for the request's data.
    data: Vec<Span>,
    /// Number of bytes for which operations were submitted.
    begun: u64,
    /// Number of operations without an answer.
    pieces: u32,
    status: u8,
}

impl UnderWay {
    fn action(&self) -> Option<Action> {
        match self.request.kind {
            Kind::Do(action) => Some(action),
            Kind::Identify | Kind::Refuse(_) => None,
        }
    }
}

/// Result of serving a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ServedAs {
    /// There is no more work in this turn.
    Enough,
    /// The disk, or the guest's share of the memory, has no room. The next answer makes room.
    Full,
    /// This queue has ended, because the guest has violated the rules of virtio.
    Broken(u16),
}

pub(super) struct Device {
    pub(super) client: ClientId,
    pub(super) name: String,
    /// Name of the disk for the guest.
    serial: [u8; ID_BYTES],
    pub(super) memory: Option<Arc<Memory>>,
    pub(super) region: Option<Region>,
    pub(super) features: u64,
    /// Channel that reports changes to the frontend.
    pub(super) channel: Option<OwnedFd>,
    pub(super) queues: Vec<Queue>,
    requests: Slab<UnderWay>,
    /// Requests with pieces that have not been submitted, in order.
    waiting: VecDeque<usize>,
    /// Queue that the device serves next.
    turn: usize,
    /// Work that the device may still do in this turn.
    pub(super) left: u32,
    /// Memory of the operations, bytes.
    held_bytes: u64,
    /// Number of operations without an answer.
    pieces: u32,
    pub(super) full: bool,
    /// Channel to notify when all operations are complete. It is set after the frontend has
    /// disconnected.
    pub(super) closing: Option<SyncSender<()>>,
    chain: Chain,
    spare: Vec<Vec<Span>>,
}

/// State of the server that a device uses.
pub(super) struct With<'a> {
    pub(super) now: Time,
    pub(super) disk: &'a mut LiveDisk,
    pub(super) pieces: &'a mut Slab<Piece>,
    /// Index of the device.
    pub(super) id: usize,
    /// Maximum memory of the device, bytes.
    pub(super) share_bytes: u64,
    /// Whether the server takes no new requests.
    pub(super) ending: bool,
}

impl Device {
    pub(super) fn new(client: ClientId, name: String, serial: &str) -> Self {
        let mut id = [0; ID_BYTES];
        id.iter_mut().zip(serial.bytes()).for_each(|(to, from)| *to = from);
        Self {
            client,
            name,
            serial: id,
            memory: None,
            region: None,
            features: 0,
            channel: None,
            queues: Vec::new(),
            requests: Slab::new(),
            waiting: VecDeque::new(),
            turn: 0,
            left: 0,
            held_bytes: 0,
            pieces: 0,
            full: false,
            closing: None,
            chain: Chain::default(),
            spare: Vec::new(),
        }
    }

    pub(super) fn queue(&mut self, number: u32) -> Result<&mut Queue, Refusal> {
        if number >= QUEUES_MAX.into() {
            return Err(Refusal::Queue { number });
        }
        while self.queues.len() <= number as usize {
            self.queues.push(Queue::new(self.queues.len() as u16)?);
        }
        Ok(&mut self.queues[number as usize])
    }

    /// Starts all queues that are ready.
    pub(super) fn start(&mut self) -> Result<(), Refusal> {
        let Some(memory) = &self.memory else { return Ok(()) };
        for queue in self.queues.iter_mut().filter(|queue| queue.is_ready()) {
            queue.start(memory, self.region.as_ref(), self.features)?;
        }
        Ok(())
    }

    /// Returns the running queues.
    pub(super) fn running(&mut self) -> Option<(&Memory, impl Iterator<Item = &mut Queue>)> {
        let by_default = self.features & F_PROTOCOL_FEATURES == 0;
        let runs = move |queue: &&mut Queue| queue.started && queue.enabled.unwrap_or(by_default);
        let memory = self.memory.as_deref()?;
        Some((memory, self.queues.iter_mut().filter(runs)))
    }

    /// Takes requests of the guest while there is room.
    pub(super) fn serve(&mut self, with: &mut With<'_>) -> ServedAs {
        let Some(memory) = self.memory.clone() else { return ServedAs::Enough };
        loop {
            while let Some(&number) = self.waiting.front() {
                if !self.begin(number, &memory, with) {
                    return ServedAs::Full;
                }
            }
            if with.ending || self.closing.is_some() || self.left == 0 {
                return ServedAs::Enough;
            }
            if !with.disk.has_room(self.client) {
                return ServedAs::Full;
            }
            match self.take(&memory) {
                Ok(Some((queue, head))) => self.arrived(queue, head, &memory),
                Ok(None) => return ServedAs::Enough,
                Err(number) => return ServedAs::Broken(number),
            }
        }
    }

    /// Returns the next request. Takes requests from all queues in turn. The error is the number of
    /// a broken queue.
    fn take(&mut self, memory: &Memory) -> Result<Option<(u16, u16)>, u16> {
        let by_default = self.features & F_PROTOCOL_FEATURES == 0;
        let count = self.queues.len();
        for _ in 0..count {
            let number = self.turn % count;
            self.turn = number + 1;
            let queue = &mut self.queues[number];
            if !queue.started || !queue.enabled.unwrap_or(by_default) {
                continue;
            }
            match queue.take(memory, self.region.as_ref()) {
                Ok(Some(head)) => return Ok(Some((number as u16, head))),
                Ok(None) => {}
                Err(BrokenRings) => {
                    queue.fail();
                    return Err(number as u16);
                }
            }
        }
        Ok(None)
    }

    /// Handles a new request of the guest.
    fn arrived(&mut self, queue: u16, head: u16, memory: &Memory) {
        let (table, descriptors) = self.queues[usize::from(queue)].descriptors();
        let read =
            self.chain.follow(memory, table, descriptors, head).and_then(|()| Request::read(memory, &mut self.chain));
        let descriptors = self.chain.readable.len() + self.chain.writable.len();
        self.left = self.left.saturating_sub(1 + descriptors as u32);
        let Ok(mut request) = read else {
            // The request has no memory for a status, so it is returned without a status.
            self.queues[usize::from(queue)].put(memory, self.region.as_ref(), head, 0);
            return;
        };
        let mut data = self.spare.pop().unwrap_or_default();
        data.clear();
        match request.kind {
            Kind::Do(Action::Read) | Kind::Identify => data.extend_from_slice(&self.chain.writable),
            Kind::Do(Action::Write) => data.extend_from_slice(&self.chain.readable),
            _ => {}
        }
        let mut status = OK;
        match request.kind {
            Kind::Refuse(refused) => status = refused,
            Kind::Identify if memory.scatter(&data, 0, &self.serial).is_err() => status = IOERR,
            Kind::Identify => request.length = request::total(&data).min(ID_BYTES as u64),
            Kind::Do(_) => {}
        }
        let number = self.requests.insert(UnderWay { queue, head, request, data, begun: 0, pieces: 0, status });
        self.waiting.push_back(number);
    }

    /// Submits an operation of the first waiting request. Returns whether there was room. Removes
    /// the request from the list if it has no further operations.
    fn begin(&mut self, number: usize, memory: &Memory, with: &mut With<'_>) -> bool {
        let Some(under_way) = self.requests.get_mut(number) else {
            self.waiting.pop_front();
            return true;
        };
        let Request { offset, length, no_hole, .. } = under_way.request;
        let left = length - under_way.begun;
        let action = under_way.action().filter(|&action| {
            let first = under_way.begun == 0 && under_way.pieces == 0;
            under_way.status == OK && (left > 0 || (action == Action::Flush && first))
        });
        let Some(action) = action else {
            self.waiting.pop_front();
            self.give_back_if_done(number, memory);
            return true;
        };
        if length > 0 && offset.checked_add(length).is_none_or(|end| end > with.disk.capacity_bytes()) {
            under_way.status = IOERR;
            return true;
        }
        let moves = matches!(action, Action::Read | Action::Write);
        let bytes = left.min(if moves { PIECE_BYTES_MAX } else { RANGE_BYTES_MAX });
        let at = under_way.begun;
        let first = offset.saturating_add(at);
        let room = with.disk.bytes_of(action, first, bytes);
        let fits = self.held_bytes == 0 || self.held_bytes + room <= with.share_bytes;
        if !fits || !with.disk.has_room(self.client) {
            return false;
        }
        let mut operation = Operation { no_hole, ..Operation::new(action, first, bytes) };
        // A driver that never flushes expects the data of answered writes on stable storage.
        operation.fua = self.features & F_FLUSH == 0 && !matches!(action, Action::Read | Action::Flush);
        if action == Action::Write {
            let mut data = with.disk.try_buffer(bytes as usize);
            let gathered = data.as_mut().map(|data| memory.gather(&under_way.data, at, data));
            if !matches!(gathered, Some(Ok(()))) {
                under_way.status = IOERR;
                return true;
            }
            operation.data = data;
        }
        let piece = Piece { device: with.id, request: number, at, held_bytes: room };
        operation.cookie = COOKIES | with.pieces.insert(piece) as u64;
        under_way.begun += bytes;
        under_way.pieces += 1;
        if under_way.begun == length {
            self.waiting.pop_front();
        }
        self.pieces += 1;
        self.held_bytes += room;
        with.disk.submit(with.now, self.client, operation);
        true
    }

    /// Handles the disk's answer to a piece.
    pub(super) fn answer(&mut self, piece: &Piece, result: Result<Option<Buffer>, Errno>) {
        self.pieces -= 1;
        self.held_bytes -= piece.held_bytes;
        if self.closing.is_some() {
            // The frontend is gone, and the server may no longer write to the guest's memory.
            return;
        }
        let (Some(memory), Some(under_way)) = (self.memory.clone(), self.requests.get_mut(piece.request)) else {
            return;
        };
        under_way.pieces -= 1;
        match result {
            Ok(Some(data)) if memory.scatter(&under_way.data, piece.at, &data).is_err() => under_way.status = IOERR,
            Ok(_) => {}
            Err(Errno::ENOTSUP) => under_way.status = request::UNSUPP,
            Err(_) => under_way.status = IOERR,
        }
        self.give_back_if_done(piece.request, &memory);
    }

    /// Returns a request to the guest if all its operations are complete.
    fn give_back_if_done(&mut self, number: usize, memory: &Memory) {
        let Some(under_way) = self.requests.get(number) else { return };
        let all_begun = under_way.begun == under_way.request.length || under_way.action().is_none();
        if under_way.pieces > 0 || !(all_begun || under_way.status != OK) {
            return;
        }
        let UnderWay { queue, head, request, data, status, .. } = self.requests.remove(number);
        self.spare.push(data);
        let answered = memory.write(request.status, &[status]).is_ok();
        let written = match request.kind {
            Kind::Do(Action::Read) | Kind::Identify if status == OK => request.length as u32,
            _ => 0,
        };
        if let Some(queue) = self.queues.get_mut(usize::from(queue)) {
            queue.put(memory, self.region.as_ref(), head, written + u32::from(answered));
            queue.tell(memory);
            if queue.under_way == 0
                && let Some(waits) = queue.stopping.take()
            {
                // If this fails, the waiting session has ended.
                let _ = waits.send(queue.next_available());
            }
        }
    }

    /// Returns whether the frontend has disconnected and all operations are complete.
    pub(super) fn is_over(&self) -> bool {
        self.closing.is_some() && self.pieces == 0
    }
}
