//! Checks that the journal's records of blocks and transactions agree.

use super::Journal;
use super::buffer::Part;

impl Journal {
    /// Checks all invariants. It is slow, and meant for tests.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn check(&self) {
        let count = |is: &dyn Fn(&super::Buffer) -> bool| self.buffers.values().filter(|buffer| is(buffer)).count();
        let running = self.running.as_ref().map_or(0, |running| running.dirty as usize);
        assert_eq!(count(&|buffer| buffer.running == Part::Dirty), running);
        let committing = self.committing.as_ref().map_or(0, |committing| committing.dirty as usize);
        assert_eq!(count(&|buffer| buffer.committing == Part::Dirty), committing);
        for committed in &self.committed {
            assert_eq!(count(&|buffer| buffer.checkpoint == Some(committed.tid)), committed.left as usize);
            assert!(committed.start >= self.log.tail, "the tail of the log passed a transaction that is still needed");
        }
        assert_eq!(count(&|buffer| buffer.checkpoint.is_some()) as u64, self.checkpoint_blocks());
        assert!(self.buffers.values().all(|buffer| !buffer.is_idle()));
        assert!(self.log.tail <= self.log.head && self.log.head - self.log.tail <= self.log.blocks());
        for pair in self.committed.iter().zip(self.committed.iter().skip(1)) {
            assert_eq!(pair.0.tid.0 + 1, pair.1.tid.0);
        }
    }
}
