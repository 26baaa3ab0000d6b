//! Operations of clients, and their conversion to transfers of whole blocks.
//!
//! A write to a part of a block first reads the whole block. Until this write completes, no other
//! write may change the block. Otherwise, one of the two writes would be lost. A write to a part of
//! a block therefore excludes all overlapping operations. Without such writes, this check costs
//! nothing.

use std::collections::VecDeque;
use std::ops::Range;

use iosched::{Flags, Issued, Op, Sector, Time};
use iosched_system::{Buffer, Pool, Segment};
use slab::Slab;

use super::{ClientId, Part, SECTOR_BYTES};
use crate::Errno;

/// Kind of an operation that a client sends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Writes the data of all previously answered operations to stable storage.
    Flush,
    /// Marks bytes as no longer needed.
    Trim,
    /// Makes bytes read as zeroes.
    WriteZeroes,
}

/// An operation of a client.
#[derive(Debug)]
pub struct Operation {
    /// Kind of the operation.
    pub action: Action,
    /// First byte; ignored for a flush.
    pub offset: u64,
    /// Number of bytes; ignored for a flush.
    pub length: u64,
    /// Whether the data must be on stable storage before the disk answers the operation.
    pub fua: bool,
    /// For a write: whether a process waits for the write, as with `O_DIRECT`.
    pub sync: bool,
    /// For a write of zeroes: whether the blocks stay allocated, so that later writes need no new
    /// space.
    pub no_hole: bool,
    /// For a read: whether the front end only sends the data to the client. The kernel may then
    /// send the data directly from the memory of the back end.
    pub to_send: bool,
    /// Data of a write: `length` bytes.
    pub data: Option<Buffer>,
    /// Cookie that the front end gives to the operation.
    pub cookie: u64,
}

impl Operation {
    /// Creates an operation on a range, without flags. For a write, the caller must add the data.
    #[must_use]
    pub fn new(action: Action, offset: u64, length: u64) -> Self {
        Self { action, offset, length, fua: false, sync: false, no_hole: false, to_send: false, data: None, cookie: 0 }
    }

    /// Returns the error with which a disk of this size refuses the operation. Returns `None` if
    /// the disk accepts the operation.
    pub(super) fn refusal(&self, capacity_bytes: u64, read_only: bool) -> Option<Errno> {
        let writes = !matches!(self.action, Action::Read | Action::Flush);
        let end = self.offset.checked_add(self.length);
        if writes && read_only {
            Some(Errno::EPERM)
        } else if self.action != Action::Flush && end.is_none_or(|end| end > capacity_bytes) {
            Some(if writes { Errno::ENOSPC } else { Errno::EINVAL })
        } else if self.action == Action::Write && self.data.as_ref().map(|data| data.len() as u64) != Some(self.length)
        {
            Some(Errno::EINVAL)
        } else {
            None
        }
    }
}

/// Memory for an operation itself and its requests in the queue, without the data, bytes.
const BYTES_OF_EVERY: u64 = 1024;

/// Returns the memory that an operation needs on a disk with this block size, bytes.
pub(super) fn bytes_of(action: Action, offset: u64, length: u64, block_bytes: u32) -> u64 {
    let (end, block) = (offset.saturating_add(length), u64::from(block_bytes));
    let blocks = offset / block * block..end.div_ceil(block).saturating_mul(block);
    let taken = |bytes: u64| usize::try_from(bytes).map_or(bytes, |bytes| Pool::bytes_taken(bytes) as u64);
    // An operation on part of a block needs a separate buffer for the whole blocks.
    let gathers = blocks != (offset..end);
    let span = blocks.end - blocks.start;
    BYTES_OF_EVERY
        + match action {
            Action::Read => taken(span),
            Action::Write => taken(length) + if gathers { taken(span) } else { 0 },
            Action::WriteZeroes if gathers => taken(2 * block),
            Action::WriteZeroes | Action::Trim | Action::Flush => 0,
        }
}

/// A range of sectors to transfer, trim or zero, or a flush.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    op: Op,
    sector: Sector,
    nr_sectors: u64,
    /// Offset of the piece's data in the buffer, bytes.
    at: usize,
    /// Whether a part of the piece has entered the queue.
    begun: bool,
}

impl Piece {
    const FLUSH: Self = Self { op: Op::Flush, sector: 0, nr_sectors: 0, at: 0, begun: false };

    fn new(op: Op, bytes: Range<u64>, at: u64) -> Self {
        let sector = bytes.start / SECTOR_BYTES;
        Self { op, sector, nr_sectors: bytes.end / SECTOR_BYTES - sector, at: at as usize, begun: false }
    }

    /// Returns whether the piece transfers data.
    pub(super) fn is_transfer(&self) -> bool {
        matches!(self.op, Op::Read | Op::Write)
    }

    /// Returns the first part of the piece, of at most `most` sectors.
    pub(super) fn first(&self, operation: u32, most: u64) -> Part {
        let nr_sectors = self.nr_sectors.min(most) as u32;
        Part { operation, at: self.at, op: self.op, sector: self.sector, nr_sectors }
    }

    /// Returns the description of the piece's first `nr_sectors` sectors for the queue.
    pub(super) fn issued(&self, nr_sectors: u32) -> Issued {
        let part = match u32::try_from(self.nr_sectors) {
            _ if self.begun => iosched::Part::Rest,
            Ok(of_sectors) if of_sectors > nr_sectors => iosched::Part::First { of_sectors },
            _ => iosched::Part::Whole,
        };
        Issued { part, ..Issued::default() }
    }
}

/// Maximum number of pieces of an operation at once: the block at each end and the blocks between.
const PIECES: usize = 3;

/// An operation that the disk has not answered yet.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) client: ClientId,
    pub(super) cookie: u64,
    pub(super) result: Result<(), Errno>,
    /// Number of parts in the queue or in the back end.
    pub(super) parts_under_way: u32,
    pub(super) action: Action,
    pub(super) began: Time,
    pub(super) length: u64,
    fua: bool,
    sync: bool,
    pub(super) no_hole: bool,
    /// Range of the operation, bytes.
    bytes: Range<u64>,
    /// Range of the blocks that the operation touches, bytes.
    blocks: Range<u64>,
    block_bytes: u64,
    /// Data that the operation transfers.
    buffer: Option<Buffer>,
    /// The client's data, while the operation reads the blocks at the ends.
    data: Option<Buffer>,
    /// Whether the operation reads blocks before it changes parts of them.
    gathers: bool,
    /// Whether the operation waits for a conflicting operation and has not begun.
    pub(super) waits: bool,
    /// Whether the operation ends with a flush. A flush is needed because no back end can trim or
    /// write zeroes directly to stable storage.
    flushes: bool,
    pieces: [Piece; PIECES],
    next_piece: usize,
    nr_pieces: usize,
}

impl Running {
    pub(super) fn new(now: Time, client: ClientId, operation: Operation, block_bytes: u32, pool: &Pool) -> Self {
        let Operation { action, offset, length, fua, sync, no_hole, to_send, data, cookie } = operation;
        let block_bytes = u64::from(block_bytes);
        let bytes = offset..offset + length;
        let blocks = bytes.start / block_bytes * block_bytes..bytes.end.next_multiple_of(block_bytes);
        let aligned = bytes == blocks;
        let mut running = Self {
            client,
            cookie,
            result: Ok(()),
            parts_under_way: 0,
            action,
            began: now,
            length,
            fua,
            sync,
            no_hole,
            gathers: !aligned && matches!(action, Action::Write | Action::WriteZeroes),
            waits: false,
            flushes: fua && length > 0 && matches!(action, Action::Trim | Action::WriteZeroes),
            bytes,
            blocks,
            block_bytes,
            buffer: None,
            data,
            pieces: [Piece::FLUSH; PIECES],
            next_piece: 0,
            nr_pieces: 0,
        };
        running.plan(pool);
        if to_send {
            running.buffer = running.buffer.map(Buffer::only_to_send);
        }
        running
    }

    fn plan(&mut self, pool: &Pool) {
        if self.action == Action::Flush {
            self.nr_pieces = 1;
            return;
        }
        if self.length == 0 {
            self.gathers = false;
            self.buffer = if self.action == Action::Read { pool.try_buffer(0) } else { None };
            return;
        }
        let blocks = self.blocks.clone();
        let span = (blocks.end - blocks.start) as usize;
        let needed = match self.action {
            Action::Read => Some(span),
            Action::Write if self.gathers => Some(span),
            Action::WriteZeroes if self.gathers => Some(2 * self.block_bytes as usize),
            _ => None,
        };
        self.buffer = needed.and_then(|bytes| pool.try_buffer(bytes));
        if needed.is_some() && self.buffer.is_none() {
            self.result = Err(Errno::ENOMEM);
            self.skip_rest();
            return;
        }
        match self.action {
            Action::Read => self.add(Piece::new(Op::Read, blocks, 0)),
            Action::Write if self.gathers => self.gather(span as u64 - self.block_bytes),
            Action::Write => {
                self.buffer = self.data.take();
                self.add(Piece::new(Op::Write, blocks, 0));
            }
            Action::Trim => {
                let inside = self.whole_blocks();
                if !inside.is_empty() {
                    self.add(Piece::new(Op::Discard, inside, 0));
                }
            }
            Action::WriteZeroes if self.gathers => self.gather(self.block_bytes),
            Action::WriteZeroes => self.add(Piece::new(Op::WriteZeroes, blocks, 0)),
            Action::Flush => {}
        }
    }

    fn add(&mut self, piece: Piece) {
        self.pieces[self.nr_pieces] = piece;
        self.nr_pieces += 1;
    }

    /// Returns the range of the blocks that lie completely in the operation's range, bytes.
    fn whole_blocks(&self) -> Range<u64> {
        let start = self.bytes.start.next_multiple_of(self.block_bytes);
        start..(self.bytes.end / self.block_bytes * self.block_bytes).max(start)
    }

    /// Returns the first block if the operation changes only a part of it.
    fn head(&self) -> Option<Range<u64>> {
        let block = self.blocks.start..self.blocks.start + self.block_bytes;
        (self.bytes.start > block.start || self.bytes.end < block.end).then_some(block)
    }

    /// Returns the last block if it differs from the first one and the operation changes only a
    /// part of it.
    fn tail(&self) -> Option<Range<u64>> {
        let block = self.blocks.end - self.block_bytes..self.blocks.end;
        (self.bytes.end < block.end && block.start > self.blocks.start).then_some(block)
    }

    /// Plans reads of the blocks that the operation changes only in part. The data of the last
    /// block goes to the offset `tail_at` in the buffer.
    fn gather(&mut self, tail_at: u64) {
        if let Some(head) = self.head() {
            self.add(Piece::new(Op::Read, head, 0));
        }
        if let Some(tail) = self.tail() {
            self.add(Piece::new(Op::Read, tail, tail_at));
        }
    }

    /// Plans the next step after all planned pieces are complete. Returns whether there is a next
    /// step.
    pub(super) fn advance(&mut self) -> bool {
        let gathered = std::mem::replace(&mut self.gathers, false);
        if !gathered && !std::mem::replace(&mut self.flushes, false) {
            return false;
        }
        (self.next_piece, self.nr_pieces) = (0, 0);
        if !gathered {
            self.add(Piece::FLUSH);
            return true;
        }
        let first = (self.bytes.start - self.blocks.start) as usize;
        match (self.buffer.as_mut(), self.data.take()) {
            (Some(buffer), Some(data)) => {
                buffer[first..first + data.len()].copy_from_slice(&data);
                self.add(Piece::new(Op::Write, self.blocks.clone(), 0));
            }
            _ => self.zero(first),
        }
        true
    }

    fn zero(&mut self, first: usize) {
        let (head, tail, middle) = (self.head(), self.tail(), self.whole_blocks());
        let block = self.block_bytes as usize;
        let end = (self.bytes.end - self.blocks.start) as usize;
        if let (Some(_), Some(buffer)) = (&head, &mut self.buffer) {
            buffer[first..end.min(block)].fill(0);
        }
        if let (Some(tail), Some(buffer)) = (&tail, &mut self.buffer) {
            buffer[block..block + (self.bytes.end - tail.start) as usize].fill(0);
        }
        if let Some(head) = head {
            self.add(Piece::new(Op::Write, head, 0));
        }
        if !middle.is_empty() {
            self.add(Piece::new(Op::WriteZeroes, middle, 0));
        }
        if let Some(tail) = tail {
            self.add(Piece::new(Op::Write, tail, self.block_bytes));
        }
    }

    /// Returns the next piece for the queue.
    pub(super) fn piece(&self) -> Option<Piece> {
        self.has_more().then(|| self.pieces[self.next_piece])
    }

    pub(super) fn has_more(&self) -> bool {
        self.next_piece < self.nr_pieces
    }

    /// Notes that the next `nr_sectors` sectors of the piece have entered the queue.
    pub(super) fn taken(&mut self, nr_sectors: u32) {
        let piece = &mut self.pieces[self.next_piece];
        piece.sector += Sector::from(nr_sectors);
        piece.nr_sectors -= u64::from(nr_sectors);
        piece.at += nr_sectors as usize * SECTOR_BYTES as usize;
        piece.begun = true;
        if piece.nr_sectors == 0 {
            self.next_piece += 1;
        }
    }

    pub(super) fn skip_rest(&mut self) {
        (self.gathers, self.flushes) = (false, false);
        self.next_piece = self.nr_pieces;
    }

    /// Returns the flags of a part, as in the Linux block layer. Sync operations have the flags of
    /// `O_DIRECT` writes: `SYNC`, and `IDLE`, because more writes may follow. Writes with FUA have
    /// the flag `SYNC`. All other writes count as writeback.
    pub(super) fn flags(&self, op: Op) -> Flags {
        if op != Op::Write {
            return Flags::empty();
        }
        let direct = if self.sync { Flags::SYNC | Flags::IDLE } else { Flags::empty() };
        let stable = if self.fua { Flags::SYNC | Flags::FUA } else { Flags::empty() };
        direct | stable
    }

    pub(super) fn segment(&mut self, at: usize, bytes: usize) -> Option<Segment> {
        self.buffer.as_mut().map(|buffer| buffer.lend(at, bytes))
    }

    /// Returns the answer.
    pub(super) fn into_result(mut self) -> Result<Option<Buffer>, Errno> {
        self.result?;
        if self.action != Action::Read {
            return Ok(None);
        }
        if let Some(buffer) = self.buffer.as_mut().filter(|_| self.length > 0) {
            buffer.narrow((self.bytes.start - self.blocks.start) as usize, self.length as usize);
        }
        Ok(self.buffer)
    }

    fn changes(&self) -> bool {
        !matches!(self.action, Action::Read | Action::Flush) && self.length > 0
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.blocks.start < other.blocks.end && other.blocks.start < self.blocks.end
    }
}

/// Decides the order of conflicting operations.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    /// Operations that have begun and exclude overlapping operations.
    exclusive: Vec<u32>,
    /// Operations that have not begun, oldest first.
    waiting: VecDeque<u32>,
}

impl Conflicts {
    /// Returns whether the operation may begin. If not, [`Conflicts::ended`] adds it to `free`
    /// later.
    pub(super) fn may_begin(&mut self, number: u32, operations: &mut Slab<Running>) -> bool {
        let running = &operations[number as usize];
        if !running.changes() || (self.exclusive.is_empty() && self.waiting.is_empty() && !running.gathers) {
            return true;
        }
        let free = self.is_free(number, operations, self.waiting.len());
        if free {
            self.began(number, running);
        } else {
            operations[number as usize].waits = true;
            self.waiting.push_back(number);
        }
        free
    }

    fn began(&mut self, number: u32, running: &Running) {
        if running.gathers {
            self.exclusive.push(number);
        }
    }

    /// Returns whether the operation conflicts with no running operation, and with none of the
    /// first `ahead` waiting operations.
    fn is_free(&self, number: u32, operations: &Slab<Running>, ahead: usize) -> bool {
        let running = &operations[number as usize];
        let in_the_way = |&other: &u32| other != number && operations[other as usize].overlaps(running);
        // These lists are short, so they are searched first.
        if self.exclusive.iter().any(in_the_way) || self.waiting.iter().take(ahead).any(in_the_way) {
            return false;
        }
        !running.gathers
            || !operations.iter().any(|(other, under_way)| {
                under_way.changes() && !under_way.waits && other as u32 != number && under_way.overlaps(running)
            })
    }

    /// Removes the operation `number`, which has ended. `ended` is the state of this operation.
    /// Adds the operations that may begin now to `free`.
    pub(super) fn ended(
        &mut self,
        number: u32,
        ended: &Running,
        operations: &mut Slab<Running>,
        free: &mut VecDeque<u32>,
    ) {
        if self.exclusive.is_empty() && self.waiting.is_empty() {
            return;
        }
        self.exclusive.retain(|&other| other != number);
        if ended.waits {
            self.waiting.retain(|&other| other != number);
        }
        let mut place = 0;
        while let Some(&candidate) = self.waiting.get(place) {
            let freed = operations[candidate as usize].overlaps(ended) && self.is_free(candidate, operations, place);
            if freed {
                self.waiting.remove(place);
                operations[candidate as usize].waits = false;
                self.began(candidate, &operations[candidate as usize]);
                free.push_back(candidate);
            } else {
                place += 1;
            }
        }
    }

    /// Returns the waiting operations of a client.
    pub(super) fn waiting_of(&self, client: ClientId, operations: &Slab<Running>) -> Vec<u32> {
        self.waiting.iter().copied().filter(|&number| operations[number as usize].client == client).collect()
    }
}
