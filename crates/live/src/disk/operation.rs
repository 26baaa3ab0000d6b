//! What a client asks for, and how it becomes transfers of whole blocks.
//!
//! A write of part of a block reads the block first. Meanwhile no other write may touch it, or one of the two would be
//! lost: such operations exclude others that overlap, and nothing is spent on that while there are none.

use std::collections::VecDeque;
use std::ops::Range;

use iosched::{Flags, Issued, Op, Sector, Time};
use iosched_system::{Buffer, Pool, Segment};
use slab::Slab;

use super::{ClientId, Part, SECTOR_BYTES};
use crate::Errno;

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Everything answered before is on stable storage when this is answered.
    Flush,
    /// The bytes are no longer needed.
    Trim,
    /// The bytes read as zeroes from now on.
    WriteZeroes,
}

/// What a client asks for.
#[derive(Debug)]
pub struct Operation {
    /// What to do.
    pub action: Action,
    /// First byte; ignored by a flush.
    pub offset: u64,
    /// Bytes; ignored by a flush.
    pub length: u64,
    /// On stable storage when it is answered.
    pub fua: bool,
    /// Of a write: somebody waits for it, as for one past a page cache (O_DIRECT).
    pub sync: bool,
    /// Of zeroes: their room stays allocated, so that later writes find it.
    pub no_hole: bool,
    /// Of a read: its data is only to be sent, so that it may be sent from where the back end has it.
    pub to_send: bool,
    /// The data of a write: `length` bytes.
    pub data: Option<Buffer>,
    /// The front end's name for it.
    pub cookie: u64,
}

impl Operation {
    /// One of that action on a range, with nothing special asked for and, if it is a write, still without its data.
    #[must_use]
    pub fn new(action: Action, offset: u64, length: u64) -> Self {
        Self { action, offset, length, fua: false, sync: false, no_hole: false, to_send: false, data: None, cookie: 0 }
    }

    /// Why it cannot be done on a disk of that size, if so.
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

/// Memory that every operation takes: itself, its requests in the queue and who waits for it, bytes.
const BYTES_OF_EVERY: u64 = 1024;

/// Memory that an operation takes on blocks of that size, bytes.
pub(super) fn bytes_of(action: Action, offset: u64, length: u64, block_bytes: u32) -> u64 {
    let (end, block) = (offset.saturating_add(length), u64::from(block_bytes));
    let blocks = offset / block * block..end.div_ceil(block).saturating_mul(block);
    let taken = |bytes: u64| usize::try_from(bytes).map_or(bytes, |bytes| Pool::bytes_taken(bytes) as u64);
    // Part of a block is put together in a buffer of its own.
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

/// A run of sectors to transfer, trim or zero, or a flush.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    op: Op,
    sector: Sector,
    nr_sectors: u64,
    /// Where its data is in the buffer.
    at: usize,
    /// The queue has a part of it.
    begun: bool,
}

impl Piece {
    const FLUSH: Self = Self { op: Op::Flush, sector: 0, nr_sectors: 0, at: 0, begun: false };

    fn new(op: Op, bytes: Range<u64>, at: u64) -> Self {
        let sector = bytes.start / SECTOR_BYTES;
        Self { op, sector, nr_sectors: bytes.end / SECTOR_BYTES - sector, at: at as usize, begun: false }
    }

    /// Whether it moves data.
    pub(super) fn is_transfer(&self) -> bool {
        matches!(self.op, Op::Read | Op::Write)
    }

    /// Its first part, of at most `most` sectors.
    pub(super) fn first(&self, operation: u32, most: u64) -> Part {
        let nr_sectors = self.nr_sectors.min(most) as u32;
        Part { operation, at: self.at, op: self.op, sector: self.sector, nr_sectors }
    }

    /// How the queue is told of its first part, of `nr_sectors`.
    pub(super) fn issued(&self, nr_sectors: u32) -> Issued {
        let part = match u32::try_from(self.nr_sectors) {
            _ if self.begun => iosched::Part::Rest,
            Ok(of_sectors) if of_sectors > nr_sectors => iosched::Part::First { of_sectors },
            _ => iosched::Part::Whole,
        };
        Issued { part, ..Issued::default() }
    }
}

/// The most pieces that an operation has at once: the block at each end and what is between.
const PIECES: usize = 3;

/// An operation under way.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) client: ClientId,
    pub(super) cookie: u64,
    pub(super) result: Result<(), Errno>,
    /// Parts in the queue or in the back end.
    pub(super) parts_under_way: u32,
    pub(super) action: Action,
    pub(super) began: Time,
    pub(super) length: u64,
    fua: bool,
    sync: bool,
    pub(super) no_hole: bool,
    /// The bytes it is about.
    bytes: Range<u64>,
    /// The blocks it is about, in bytes.
    blocks: Range<u64>,
    block_bytes: u64,
    /// What is transferred.
    buffer: Option<Buffer>,
    /// The client's data, while the blocks at its ends are read.
    data: Option<Buffer>,
    /// Whether it reads blocks before it changes a part of them.
    gathers: bool,
    /// Whether it has not begun, because of what is in its way.
    pub(super) waits: bool,
    /// Whether a flush ends it: no back end zeroes or trims to stable storage at once.
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

    /// The blocks that it is about altogether, in bytes.
    fn whole_blocks(&self) -> Range<u64> {
        let start = self.bytes.start.next_multiple_of(self.block_bytes);
        start..(self.bytes.end / self.block_bytes * self.block_bytes).max(start)
    }

    /// The first block, if only a part of it changes.
    fn head(&self) -> Option<Range<u64>> {
        let block = self.blocks.start..self.blocks.start + self.block_bytes;
        (self.bytes.start > block.start || self.bytes.end < block.end).then_some(block)
    }

    /// The last block, if it is not the first and only a part of it changes.
    fn tail(&self) -> Option<Range<u64>> {
        let block = self.blocks.end - self.block_bytes..self.blocks.end;
        (self.bytes.end < block.end && block.start > self.blocks.start).then_some(block)
    }

    /// Reads the blocks of which only a part changes; the last one to `tail_at` in the buffer.
    fn gather(&mut self, tail_at: u64) {
        if let Some(head) = self.head() {
            self.add(Piece::new(Op::Read, head, 0));
        }
        if let Some(tail) = self.tail() {
            self.add(Piece::new(Op::Read, tail, tail_at));
        }
    }

    /// What is planned has been done: plans what comes next, if anything does.
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

    /// The piece that goes to the queue next.
    pub(super) fn piece(&self) -> Option<Piece> {
        self.has_more().then(|| self.pieces[self.next_piece])
    }

    pub(super) fn has_more(&self) -> bool {
        self.next_piece < self.nr_pieces
    }

    /// So many sectors of the piece are in the queue.
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

    /// How the queue is to take a part of it, as Linux' block layer would: somebody waits for reads, for writes past a
    /// page cache, of which more may follow, and for what has to be on stable storage. Other writes are the clients'
    /// write-back.
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

    /// The answer.
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

/// Which operations have to wait for which.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    /// Under way, and exclude what overlaps.
    exclusive: Vec<u32>,
    /// Have not begun, oldest first.
    waiting: VecDeque<u32>,
}

impl Conflicts {
    /// Whether the operation may begin. If not it is named by [`Conflicts::ended`] later.
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

    /// Whether nothing under way, and none of the first `ahead` that wait, is in its way.
    fn is_free(&self, number: u32, operations: &Slab<Running>, ahead: usize) -> bool {
        let running = &operations[number as usize];
        let in_the_way = |&other: &u32| other != number && operations[other as usize].overlaps(running);
        // The few are asked first.
        if self.exclusive.iter().any(in_the_way) || self.waiting.iter().take(ahead).any(in_the_way) {
            return false;
        }
        !running.gathers
            || !operations.iter().any(|(other, under_way)| {
                under_way.changes() && !under_way.waits && other as u32 != number && under_way.overlaps(running)
            })
    }

    /// The operation `number`, which was `ended`, is no more; those that may begin now are put into `free`.
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

    /// The waiting operations of a client.
    pub(super) fn waiting_of(&self, client: ClientId, operations: &Slab<Running>) -> Vec<u32> {
        self.waiting.iter().copied().filter(|&number| operations[number as usize].client == client).collect()
    }
}
