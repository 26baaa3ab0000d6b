//! The common knowledge of all clients of a history: their requests and answers, and the contents
//! of the disk that follow from them.

use std::ops::Range;

use iosched_check::{Contents, Moment, Random, Stamp, bytes_of};

use crate::Errno;
use crate::disk::Action;

/// Maximum length of most operations, bytes. A few operations are as long as the disk.
const LENGTH_MAX: u64 = 6000;

/// Errors that the disk's operations may return in this life.
#[derive(Clone, Debug, Default)]
pub(super) struct Excuses {
    /// Whether some operations fail with EIO.
    pub(super) eio: bool,
    /// Whether some operations that change data fail with ENOSPC.
    pub(super) enospc: bool,
    /// Range in which every operation fails with EIO.
    pub(super) bad: Range<u64>,
}

/// An operation that has no answer yet.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) action: Action,
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) fua: bool,
    pub(super) no_hole: bool,
    stamp: Stamp,
    at: Moment,
    /// Range that the operation changes, bytes.
    changed: Range<u64>,
    /// Error that the disk must return.
    refusal: Option<Errno>,
}

impl Ask {
    fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.length)
    }

    /// Returns the data of a write.
    pub(super) fn data(&self) -> Vec<u8> {
        bytes_of(self.stamp, self.offset, self.length as usize)
    }

    /// Returns whether the operation is a read.
    pub(super) fn is_read(&self) -> bool {
        self.action == Action::Read
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

pub(super) struct Witness {
    pub(super) contents: Contents,
    block_bytes: u64,
    capacity_bytes: u64,
    excuses: Excuses,
    stamps: Stamp,
    /// Writes whose clients disconnected before they got the answer.
    orphans: Vec<(Moment, Range<u64>)>,
    /// Whether clients deliberately do not tell the server that data must be on stable storage.
    pub(super) fua_unheard: bool,
    /// Whether the server of this disk is ending.
    pub(super) ending: bool,
    pub(super) answers: u64,
    pub(super) failures: u64,
    /// First violation.
    pub(super) wrong: Option<String>,
}

impl Witness {
    pub(super) fn new(
        contents: Contents,
        stamps: Stamp,
        block_bytes: u64,
        capacity_bytes: u64,
        excuses: Excuses,
    ) -> Self {
        Self {
            contents,
            block_bytes,
            capacity_bytes,
            excuses,
            stamps,
            orphans: Vec::new(),
            fua_unheard: false,
            ending: false,
            answers: 0,
            failures: 0,
            wrong: None,
        }
    }

    /// Returns whether the request tells the server that its data must be on stable storage.
    pub(super) fn tells_fua(&self, ask: &Ask) -> bool {
        ask.fua && !self.fua_unheard
    }

    /// Notes a violation, unless there is an earlier one.
    pub(super) fn is_wrong(&mut self, what: impl FnOnce() -> String) {
        if self.wrong.is_none() {
            self.wrong = Some(what());
        }
    }

    pub(super) fn last_stamp(&self) -> Stamp {
        self.stamps
    }

    /// Returns whether an operation that is executed in pieces may fail after some pieces.
    pub(super) fn has_faults(&self) -> bool {
        self.excuses.eio || self.excuses.enospc || !self.excuses.bad.is_empty()
    }

    /// Returns the range of all blocks that contain some of the bytes.
    fn blocks(&self, bytes: &Range<u64>) -> Range<u64> {
        bytes.start / self.block_bytes * self.block_bytes..bytes.end.next_multiple_of(self.block_bytes)
    }

    /// Returns the range of all blocks that lie completely in `bytes`.
    fn within(&self, bytes: &Range<u64>) -> Range<u64> {
        let start = bytes.start.next_multiple_of(self.block_bytes);
        start..(bytes.end / self.block_bytes * self.block_bytes).max(start)
    }

    /// Returns a random operation that begins now.
    pub(super) fn ask(&mut self, random: &mut Random, read_only: bool) -> Ask {
        let action = match random.index(20) {
            0..8 => Action::Write,
            8..13 => Action::Read,
            13..16 => Action::Flush,
            16..18 => Action::Trim,
            _ => Action::WriteZeroes,
        };
        let (block, capacity) = (self.block_bytes, self.capacity_bytes);
        let (offset, length) = match random.index(100) {
            _ if action == Action::Flush => (0, 0),
            0..50 => {
                let start = random.below(capacity / block) * block;
                (start, (1 + random.below(6)) * block)
            }
            50..70 => (random.below(capacity), 1 + random.below(200)),
            70..96 => (random.below(capacity), 1 + random.below(LENGTH_MAX)),
            96..98 => (0, capacity),
            _ => (capacity - 5, 10),
        };
        // For a trim beyond the end, NBD returns the error of a read, but the disk returns the
        // error of a write.
        let beyond = offset == capacity - 5 && length == 10 && action != Action::Trim;
        let length = if beyond { length } else { length.min(capacity - offset) } as u32;
        let changes = !matches!(action, Action::Read | Action::Flush);
        let refusal = if changes && read_only {
            Some(Errno::EPERM)
        } else if beyond {
            Some(if changes { Errno::ENOSPC } else { Errno::EINVAL })
        } else {
            None
        };
        let bytes = offset..offset + u64::from(length);
        let changed = match action {
            _ if refusal.is_some() => 0..0,
            Action::Read | Action::Flush => 0..0,
            Action::Trim => self.within(&bytes),
            Action::Write | Action::WriteZeroes => bytes,
        };
        self.stamps += 1;
        let stamp = if action == Action::Write { self.stamps } else { 0 };
        let at = match action {
            Action::Read if refusal.is_none() => self.contents.read(),
            Action::Read | Action::Flush => self.contents.now(),
            _ => self.contents.write(stamp, &changed),
        };
        let (fua, no_hole) = (changes && random.chance(15), action == Action::WriteZeroes && random.chance(50));
        Ask { action, offset, length, fua, no_hole, stamp, at, changed, refusal }
    }

    /// Handles an answer: data, or an error number of the protocol.
    pub(super) fn answer(&mut self, ask: &Ask, result: Result<&[u8], u32>) {
        self.answers += 1;
        match result {
            Ok(data) => self.done(ask, data),
            Err(errno) => self.failed(ask, errno),
        }
    }

    fn must_fail(&self, ask: &Ask) -> bool {
        let touched = match ask.action {
            Action::Flush => return false,
            Action::Trim => ask.changed.clone(),
            Action::Read | Action::Write | Action::WriteZeroes => self.blocks(&ask.bytes()),
        };
        !touched.is_empty() && overlap(&touched, &self.excuses.bad)
    }

    fn done(&mut self, ask: &Ask, data: &[u8]) {
        if let Some(refusal) = ask.refusal {
            return self.is_wrong(|| format!("the server carried out {ask:?} instead of refusing with {refusal}"));
        }
        if self.must_fail(ask) {
            return self.is_wrong(|| format!("the server reports success for {ask:?}, but the disk cannot do this"));
        }
        match ask.action {
            Action::Flush => self.contents.flushed(ask.at),
            Action::Read => {
                if data.len() != ask.length as usize {
                    return self.is_wrong(|| format!("the answer to {ask:?} has {} bytes", data.len()));
                }
                if let Err(wrong) = self.contents.check_read(ask.at, &ask.bytes(), data) {
                    self.is_wrong(|| format!("{ask:?}: {wrong}"));
                }
            }
            _ => self.contents.answer(ask.at, &ask.changed, true, ask.fua),
        }
    }

    fn failed(&mut self, ask: &Ask, errno: u32) {
        self.failures += 1;
        self.forget(ask);
        self.contents.answer(ask.at, &ask.changed, false, false);
        let shutdown = Errno::ESHUTDOWN.0.unsigned_abs();
        let excused = match i32::try_from(errno).map(Errno) {
            Ok(errno) if ask.refusal == Some(errno) => true,
            _ if ask.refusal.is_some() => self.ending && errno == shutdown,
            Ok(Errno::EIO) => self.excuses.eio || self.must_fail(ask),
            Ok(Errno::ENOSPC) => self.excuses.enospc && !ask.is_read(),
            Ok(Errno::ESHUTDOWN) => self.ending,
            _ => false,
        };
        if !excused {
            self.is_wrong(|| format!("{ask:?} fails with {errno}, but it must not fail with this error"));
        }
    }

    fn forget(&mut self, ask: &Ask) {
        if ask.is_read() {
            self.contents.read_failed(ask.at);
        }
    }

    /// Handles a request whose client has disconnected. The request may still take effect while the
    /// disk works on it.
    pub(super) fn lost(&mut self, ask: &Ask) {
        self.forget(ask);
        if !ask.changed.is_empty() {
            self.orphans.push((ask.at, ask.changed.clone()));
        }
    }

    pub(super) fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    /// Ends the requests of disconnected clients. Afterwards the disk no longer works on these
    /// requests.
    pub(super) fn settle_orphans(&mut self) {
        for (at, changed) in std::mem::take(&mut self.orphans) {
            self.contents.answer(at, &changed, false, false);
        }
    }
}
