//! A running or committing transaction.

use std::collections::{BTreeMap, BTreeSet};

use super::Tid;
use super::log::Position;
use crate::fs::{Block, Ino};

/// A running or committing transaction.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) tid: Tid,
    /// First position of the transaction in the log. It is valid only when the transaction is in
    /// the log.
    pub(super) start: Position,
    /// Blocks of the transaction, in the order in which they joined. Each block occurs once.
    pub(super) blocks: Vec<Block>,
    /// Number of blocks that the transaction changes.
    pub(super) dirty: u32,
    /// Blocks that the transaction freed. Recovery must not restore older changes of these blocks.
    pub(super) revoked: BTreeSet<Block>,
    /// Files whose data must be written before the commit. The value is the position in the order
    /// in which they joined.
    ordered: BTreeMap<Ino, u32>,
    turns: u32,
    /// Number of open handles.
    pub(super) handles: u32,
    /// Number of blocks that open handles may still change.
    pub(super) credits: u32,
    /// Whether a task waits for the commit. The log is then written as sync I/O.
    pub(super) sync: bool,
    /// Whether a commit is requested.
    pub(super) wanted: bool,
    /// Whether the transaction accepts no new handles.
    pub(super) locked: bool,
}

impl Transaction {
    pub(super) const fn new(tid: Tid) -> Self {
        Self {
            tid,
            start: 0,
            blocks: Vec::new(),
            dirty: 0,
            revoked: BTreeSet::new(),
            ordered: BTreeMap::new(),
            turns: 0,
            handles: 0,
            credits: 0,
            sync: false,
            wanted: false,
            locked: false,
        }
    }

    /// Returns the number of blocks that the transaction changes or may still change.
    pub(super) const fn outstanding(&self) -> u32 {
        self.dirty + self.credits
    }

    pub(super) fn order(&mut self, ino: Ino) {
        let turn = self.turns;
        self.ordered.entry(ino).or_insert_with(|| {
            self.turns += 1;
            turn
        });
    }

    pub(super) fn forget_order(&mut self, ino: Ino) {
        self.ordered.remove(&ino);
    }

    /// Returns the files whose data is written first, in the order in which they joined.
    pub(super) fn take_ordered(&mut self) -> Vec<Ino> {
        let mut files: Vec<_> = std::mem::take(&mut self.ordered).into_iter().map(|(ino, turn)| (turn, ino)).collect();
        files.sort_unstable();
        files.into_iter().map(|(_, ino)| ino).collect()
    }
}
