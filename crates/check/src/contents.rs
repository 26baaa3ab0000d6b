//! The contents that a disk must have: the values that a read of each block may return now, and
//! after a power failure. A client of the disk can use this module, because it knows its own
//! requests and the answers to them.
//!
//! A write may take effect as soon as it is requested. Once the write is *settled*, it must have
//! taken effect. The only exception is that a second write, requested after the answer to the first
//! write, has replaced its data. For a read, a write is settled if it was answered before the read
//! was requested. For a power failure, a write is settled if it is durable: by FUA, or by a flush
//! that was requested after its answer. Requests that overlap in time may take effect in any order.

use std::collections::BTreeSet;
use std::ops::Range;

/// A written value. The value and the offset on the disk determine each byte. 0 stands for zeros.
pub type Stamp = u64;

/// A point in the order of the requests and answers of a disk's clients.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Moment(u64);

/// The finalizer of SplitMix64 (Steele, Lea, Flood, 2014).
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns the bytes of `value` that start at byte `offset` of the disk.
#[must_use]
pub fn bytes_of(value: Stamp, offset: u64, length: usize) -> Vec<u8> {
    if value == 0 {
        return vec![0; length];
    }
    let skipped = (offset % 8) as usize;
    let words = offset / 8..(offset + length as u64).div_ceil(8);
    let key = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes: Vec<u8> = Vec::with_capacity(length + 16);
    words.for_each(|word| bytes.extend_from_slice(&mix(key ^ word).to_le_bytes()));
    bytes.drain(..skipped);
    bytes.truncate(length);
    bytes
}

#[derive(Clone, Debug)]
enum Content {
    Value(Stamp),
    /// The contents of the whole block, which a check found on the disk.
    Found(Vec<u8>),
}

/// The part of a write in one block.
#[derive(Clone, Debug)]
struct Write {
    content: Content,
    /// Range in the block.
    bytes: Range<usize>,
    begun: Moment,
    answered: Option<Moment>,
    /// Whether the write was answered with success.
    done: bool,
    promised: bool,
}

impl Write {
    fn covers(&self, bytes: &Range<usize>) -> bool {
        self.bytes.start <= bytes.start && bytes.end <= self.bytes.end
    }

    fn is_before(&self, other: &Self) -> bool {
        self.answered.is_some_and(|answered| answered < other.begun)
    }
}

/// Contents that are not allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("bytes {bytes:?} of the disk are {found}, but can only be data of the writes {allowed:?}")]
pub struct Wrong {
    bytes: Range<u64>,
    found: String,
    allowed: Vec<Stamp>,
}

/// The contents that a disk must have.
pub struct Contents {
    block_bytes: usize,
    blocks: Vec<Vec<Write>>,
    now: Moment,
    /// Reads that are not answered.
    reads: BTreeSet<Moment>,
}

impl Contents {
    /// Creates the contents of a disk of `disk_bytes` bytes, all zeros. The disk writes a block of
    /// `block_bytes` bytes either completely or not at all.
    #[must_use]
    pub fn new(block_bytes: usize, disk_bytes: usize) -> Self {
        let mut contents = Self { block_bytes, blocks: Vec::new(), now: Moment(0), reads: BTreeSet::new() };
        contents.blocks.resize(disk_bytes / block_bytes, vec![contents.found(vec![0; block_bytes])]);
        contents
    }

    fn found(&self, content: Vec<u8>) -> Write {
        Write {
            content: Content::Found(content),
            bytes: 0..self.block_bytes,
            begun: self.now,
            answered: Some(self.now),
            done: true,
            promised: true,
        }
    }

    /// Returns the present moment, which is later than all earlier moments. Call this function when
    /// a flush is requested.
    pub const fn now(&mut self) -> Moment {
        self.now = Moment(self.now.0 + 1);
        self.now
    }

    fn blocks_of(&self, bytes: &Range<u64>) -> Range<usize> {
        let block = self.block_bytes as u64;
        (bytes.start / block) as usize..bytes.end.div_ceil(block) as usize
    }

    /// Returns the part of the disk's range `bytes` that is in `block`, relative to the block.
    fn within(&self, block: usize, bytes: &Range<u64>) -> Range<usize> {
        let start = (block * self.block_bytes) as u64;
        let place = |at: u64| at.saturating_sub(start).min(self.block_bytes as u64) as usize;
        place(bytes.start)..place(bytes.end)
    }

    /// Records the request of a write. Returns the moment of the request, which identifies the
    /// write from now on. Zeros, and trims after which reads return zeros, are writes of the value
    /// 0.
    pub fn write(&mut self, value: Stamp, bytes: &Range<u64>) -> Moment {
        let begun = self.now();
        for block in self.blocks_of(bytes) {
            let bytes = self.within(block, bytes);
            let content = Content::Value(value);
            self.blocks[block].push(Write { content, bytes, begun, answered: None, done: false, promised: false });
        }
        begun
    }

    /// Records the answer to the write `begun` of these bytes. `done` says whether the write
    /// succeeded. `stable` says whether the answer promises that the data is on stable storage. A
    /// failed write may have taken effect in part, but does not continue after the answer.
    pub fn answer(&mut self, begun: Moment, bytes: &Range<u64>, done: bool, stable: bool) {
        let now = self.now();
        for block in self.blocks_of(bytes) {
            if let Some(write) = self.blocks[block].iter_mut().find(|write| write.begun == begun) {
                (write.answered, write.done, write.promised) = (Some(now), done, done && stable);
            }
            if done && stable {
                self.forget_superseded(block);
            }
        }
    }

    /// Records the success of a flush that was requested at `begun`.
    pub fn flushed(&mut self, begun: Moment) {
        for block in 0..self.blocks.len() {
            let mut any = false;
            for write in &mut self.blocks[block] {
                let now = !write.promised && write.done && write.answered.is_some_and(|answered| answered < begun);
                write.promised |= now;
                any |= now;
            }
            if any {
                self.forget_superseded(block);
            }
        }
    }

    /// Drops writes that no read can return any more, not even after a power failure.
    fn forget_superseded(&mut self, block: usize) {
        let oldest_read = self.reads.first();
        let is_settled = |write: &&Write| write.promised && oldest_read.is_none_or(|read| write.answered < Some(*read));
        let writes = &mut self.blocks[block];
        let promised: Vec<Write> = writes.iter().filter(is_settled).cloned().collect();
        writes.retain(|write| !promised.iter().any(|by| by.covers(&write.bytes) && write.is_before(by)));
    }

    /// Records the request of a read. Returns its moment, which identifies the read from now on.
    pub fn read(&mut self) -> Moment {
        let begun = self.now();
        self.reads.insert(begun);
        begun
    }

    /// Records that the read `begun` failed.
    pub fn read_failed(&mut self, begun: Moment) {
        self.reads.remove(&begun);
    }

    /// Checks the data of the read `begun` of these bytes.
    ///
    /// # Errors
    /// If the disk must not return this data.
    pub fn check_read(&mut self, begun: Moment, bytes: &Range<u64>, data: &[u8]) -> Result<(), Wrong> {
        self.reads.remove(&begun);
        let settled = |write: &Write| write.done && write.answered.is_some_and(|answered| answered < begun);
        let mut data = data;
        for block in self.blocks_of(bytes) {
            let within = self.within(block, bytes);
            let (this, rest) = data.split_at(within.len());
            self.check_block(block, within, this, &settled)?;
            data = rest;
        }
        Ok(())
    }

    /// Checks the contents `image` of the disk after a power failure. From now on, they are the
    /// disk's contents.
    ///
    /// # Errors
    /// If the disk must not have these contents.
    pub fn cut(&mut self, image: &[u8]) -> Result<(), Wrong> {
        for (block, bytes) in image.chunks(self.block_bytes).enumerate() {
            self.check_block(block, 0..self.block_bytes, bytes, &|write| write.promised)?;
            self.blocks[block] = vec![self.found(bytes.to_vec())];
        }
        self.reads.clear();
        self.now();
        Ok(())
    }

    /// Checks a part of a block. Blocks change as a whole: between two offsets where a write begins
    /// or ends, all bytes belong to one write.
    fn check_block(
        &self,
        block: usize,
        within: Range<usize>,
        data: &[u8],
        settled: &dyn Fn(&Write) -> bool,
    ) -> Result<(), Wrong> {
        let writes = &self.blocks[block];
        let mut ends: Vec<usize> = writes.iter().flat_map(|write| [write.bytes.start, write.bytes.end]).collect();
        ends.extend([within.start, within.end]);
        ends.retain(|end| within.start <= *end && *end <= within.end);
        ends.sort_unstable();
        ends.dedup();
        for pair in ends.windows(2) {
            let part = pair[0]..pair[1];
            let there = &data[part.start - within.start..part.end - within.start];
            let may_be = |write: &&Write| {
                let superseded = |by: &Write| settled(by) && by.covers(&part) && write.is_before(by);
                write.covers(&part) && !writes.iter().any(superseded)
            };
            let from = (block * self.block_bytes + part.start) as u64;
            let is = |write: &Write| match &write.content {
                Content::Value(value) => bytes_of(*value, from, part.len()) == there,
                Content::Found(bytes) => &bytes[part.clone()] == there,
            };
            if !writes.iter().filter(may_be).any(is) {
                return Err(self.wrong(from, there, writes.iter().filter(may_be).collect(), writes));
            }
        }
        Ok(())
    }

    fn wrong(&self, from: u64, there: &[u8], allowed: Vec<&Write>, writes: &[Write]) -> Wrong {
        let value = |write: &Write| match &write.content {
            Content::Value(value) => *value,
            Content::Found(_) => 0,
        };
        let known = writes.iter().find(|write| {
            let Content::Value(value) = write.content else { return false };
            bytes_of(value, from, there.len()) == there
        });
        let found = match known {
            Some(write) => format!("the data of the write {}, which a later write replaced", value(write)),
            None if there.iter().all(|&byte| byte == 0) => "zeroes".to_owned(),
            None => "not the data of a single known write".to_owned(),
        };
        let allowed = allowed.into_iter().map(value).collect();
        Wrong { bytes: from..from + there.len() as u64, found, allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 512;

    fn write(contents: &mut Contents, value: Stamp, bytes: Range<u64>, fua: bool) {
        let begun = contents.write(value, &bytes);
        contents.answer(begun, &bytes, true, fua);
    }

    fn image(values: &[Stamp]) -> Vec<u8> {
        values.iter().enumerate().flat_map(|(at, &value)| bytes_of(value, (at * BLOCK) as u64, BLOCK)).collect()
    }

    #[test]
    fn only_flushed_or_fua_writes_must_survive() {
        for (fua, flush, may_be_lost) in [(false, false, true), (true, false, false), (false, true, false)] {
            let mut contents = Contents::new(BLOCK, 2 * BLOCK);
            write(&mut contents, 7, 0..512, fua);
            if flush {
                let begun = contents.now();
                contents.flushed(begun);
            }
            assert_eq!(contents.cut(&image(&[0, 0])).is_ok(), may_be_lost, "fua {fua}, flush {flush}");
        }
    }

    #[test]
    fn a_flush_does_not_cover_writes_answered_after_it_began() {
        let mut contents = Contents::new(BLOCK, BLOCK);
        let write = contents.write(7, &(0..512));
        let flush = contents.now();
        contents.answer(write, &(0..512), true, false);
        contents.flushed(flush);
        assert!(contents.cut(&image(&[0])).is_ok());
    }

    #[test]
    fn writes_may_tear_between_blocks_but_not_within_one() {
        let mut contents = Contents::new(BLOCK, 2 * BLOCK);
        write(&mut contents, 7, 0..1024, false);
        let mut half = image(&[7, 7]);
        half[256..512].fill(0);
        assert!(contents.cut(&half).is_err());
        let mut contents = Contents::new(BLOCK, 2 * BLOCK);
        write(&mut contents, 7, 0..1024, false);
        assert!(contents.cut(&image(&[0, 7])).is_ok());
        assert!(contents.cut(&image(&[0, 0])).is_err(), "a block that was read after a power failure stays");
    }

    #[test]
    fn an_older_write_may_not_replace_a_durable_one() {
        let mut contents = Contents::new(BLOCK, 2 * BLOCK);
        write(&mut contents, 5, 0..512, false);
        write(&mut contents, 6, 512..1024, false);
        assert!(contents.cut(&image(&[0, 6])).is_ok());
        let mut contents = Contents::new(BLOCK, BLOCK);
        write(&mut contents, 5, 0..512, false);
        write(&mut contents, 6, 0..512, true);
        assert!(contents.cut(&image(&[5])).is_err());
    }

    #[test]
    fn zeroes_become_durable_like_data() {
        let mut contents = Contents::new(BLOCK, BLOCK);
        write(&mut contents, 5, 0..512, true);
        write(&mut contents, 0, 0..512, true);
        assert!(contents.cut(&image(&[5])).is_err());
    }

    #[test]
    fn reads_return_answered_or_in_flight_writes() {
        let mut contents = Contents::new(BLOCK, BLOCK);
        write(&mut contents, 5, 100..200, false);
        let begun = contents.read();
        let read = |contents: &mut Contents, value| contents.check_read(begun, &(100..200), &bytes_of(value, 100, 100));
        assert!(read(&mut contents, 5).is_ok() && read(&mut contents, 0).is_err());
        contents.write(6, &(0..512));
        assert!(read(&mut contents, 5).is_ok() && read(&mut contents, 6).is_ok() && read(&mut contents, 7).is_err());
    }
    #[test]
    fn a_read_may_return_data_overwritten_after_it_began() {
        let mut contents = Contents::new(BLOCK, BLOCK);
        let begun = contents.read();
        write(&mut contents, 5, 0..512, true);
        assert!(contents.check_read(begun, &(0..512), &bytes_of(0, 0, 512)).is_ok());
        let begun = contents.read();
        assert!(contents.check_read(begun, &(0..512), &bytes_of(0, 0, 512)).is_err());
    }
}
