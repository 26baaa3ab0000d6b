//! State that the sessions, the database writer and the log writer share: the log and the dirty
//! blocks.

use std::collections::VecDeque;

/// Largest write to the log, bytes.
const LOG_WRITE_BYTES_MAX: u64 = 128 << 10;
/// Unit of writes to the log, bytes.
const LOG_BLOCK_BYTES: u64 = 512;

/// The log buffer and the log files.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Total number of bytes added to the buffer, and the number of these bytes that are on the
    /// disk.
    appended: u64,
    flushed: u64,
    /// Value of `flushed` after the current write is complete.
    writing: u64,
    /// Current log file, 0 or 1, and the offset in this file.
    file: usize,
    offset: u64,
}

/// A write to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogWrite {
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Log {
    /// Adds the records of a transaction to the buffer. Returns the log position that must be on
    /// the disk before the commit is complete.
    pub(super) const fn append(&mut self, bytes: u64) -> u64 {
        self.appended += bytes;
        self.appended
    }

    /// Returns whether the log up to a position is on the disk.
    pub(super) const fn has(&self, position: u64) -> bool {
        self.flushed >= position
    }

    pub(super) const fn is_pending(&self) -> bool {
        self.appended > self.flushed
    }

    fn next_bytes(&self) -> u64 {
        (self.appended - self.flushed).min(LOG_WRITE_BYTES_MAX)
    }

    /// Returns whether the next write does not fit into the current log file.
    pub(super) fn is_full(&self, file_bytes: u64) -> bool {
        self.offset + self.next_bytes().next_multiple_of(LOG_BLOCK_BYTES) > file_bytes
    }

    /// Switches to the other log file.
    pub(super) const fn change_file(&mut self) {
        self.file = 1 - self.file;
        self.offset = 0;
    }

    /// Begins the next write, of the contents of the buffer, but at most [`LOG_WRITE_BYTES_MAX`].
    pub(super) fn begin(&mut self) -> LogWrite {
        let bytes = self.next_bytes();
        self.writing = self.flushed + bytes;
        let write = LogWrite { file: self.file, offset: self.offset, bytes: bytes.next_multiple_of(LOG_BLOCK_BYTES) };
        self.offset += write.bytes;
        write
    }

    /// Ends the current write.
    pub(super) const fn end(&mut self) {
        self.flushed = self.writing;
    }
}

/// Blocks that were changed and not written yet.
#[derive(Debug, Default)]
pub(super) struct DirtyBlocks {
    /// Offsets of the blocks, the oldest first. Each block has the log position that must be on the
    /// disk before the block is written.
    waiting: VecDeque<(u64, u64)>,
    /// Number of oldest blocks that belong to the current checkpoint, including blocks that are
    /// being written.
    checkpoint: usize,
    /// Number of entries in the batch that is being written.
    taken: usize,
}

impl DirtyBlocks {
    pub(super) fn add(&mut self, offset: u64, log_position: u64) {
        self.waiting.push_back((offset, log_position));
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.taken
    }

    /// Starts a checkpoint of all blocks whose log records are on the disk.
    pub(super) fn start_checkpoint(&mut self, log: &Log) {
        self.checkpoint = self.taken + self.waiting.partition_point(|&(_, position)| log.has(position));
    }

    pub(super) const fn is_checkpoint(&self) -> bool {
        self.checkpoint > 0
    }

    /// Takes the next batch: at most `most` different blocks whose log records are on the disk.
    pub(super) fn take(&mut self, most: usize, log: &Log, batch: &mut Vec<u64>) {
        batch.clear();
        self.taken = 0;
        while batch.len() < most
            && let Some(&(offset, position)) = self.waiting.front()
            && log.has(position)
        {
            self.waiting.pop_front();
            self.taken += 1;
            if !batch.contains(&offset) {
                batch.push(offset);
            }
        }
    }

    /// Records that the batch is written.
    pub(super) const fn written(&mut self) {
        self.checkpoint = self.checkpoint.saturating_sub(self.taken);
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_is_written_in_order_in_chunks_up_to_128_kib() {
        let mut log = Log::default();
        assert_eq!(log.append(700), 700);
        assert_eq!(log.begin(), LogWrite { file: 0, offset: 0, bytes: 1_024 });
        log.append(200_000);
        log.end();
        assert!(log.has(700) && !log.has(701));
        assert_eq!(log.begin(), LogWrite { file: 0, offset: 1_024, bytes: 131_072 });
        log.end();
        assert_eq!(log.begin(), LogWrite { file: 0, offset: 132_096, bytes: 69_120 });
        log.end();
        assert!(!log.is_pending());
        log.append(1_000);
        assert!(log.is_full(202_000) && !log.is_full(202_240));
        log.change_file();
        assert_eq!(log.begin(), LogWrite { file: 1, offset: 0, bytes: 1_024 });
    }

    #[test]
    fn batch_has_the_oldest_blocks_whose_log_is_written() {
        let (mut blocks, mut log, mut batch) = (DirtyBlocks::default(), Log::default(), Vec::new());
        for (offset, position) in [(5, 0), (3, 0), (5, 0), (4, 0), (9, 100)] {
            blocks.add(offset, position);
        }
        blocks.start_checkpoint(&log);
        blocks.take(2, &log, &mut batch);
        assert_eq!((&batch[..], blocks.len()), (&[5, 3][..], 5));
        blocks.written();
        assert!(blocks.is_checkpoint());
        blocks.take(9, &log, &mut batch);
        assert_eq!(batch, [5, 4]);
        blocks.written();
        assert!(!blocks.is_checkpoint(), "the log records of the last block are not written");
        blocks.take(9, &log, &mut batch);
        assert!(batch.is_empty());
        log.append(100);
        log.begin();
        log.end();
        blocks.take(9, &log, &mut batch);
        blocks.written();
        assert_eq!((&batch[..], blocks.len()), (&[9][..], 0));
    }
}
