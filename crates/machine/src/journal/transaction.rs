//! A transaction on its way to the log.

use std::collections::{BTreeMap, BTreeSet};

use super::Tid;
use super::log::Position;
use crate::fs::{Block, Ino};

/// A running or committing transaction.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) tid: Tid,
    /// Where it begins in the log, once it is written there.
    pub(super) start: Position,
    /// Blocks it has to do with, each once, in the order it met them.
    pub(super) blocks: Vec<Block>,
    /// How many of them it changes.
    pub(super) dirty: u32,
    /// Blocks it freed, that an older change of must not bring back.
    pub(super) revoked: BTreeSet<Block>,
    /// Files whose data is to be written before the commit, with their turn.
    ordered: BTreeMap<Ino, u32>,
    turns: u32,
    /// Handles that are open.
    pub(super) handles: u32,
    /// Blocks that open handles may still change.
    pub(super) credits: u32,
    /// A task waits for it: its log is written as sync I/O.
    pub(super) sync: bool,
    /// Somebody wants it committed.
    pub(super) wanted: bool,
    /// It takes no new handles.
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

    /// Blocks it changes or may change.
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

    /// The files whose data goes first, in the order they joined.
    pub(super) fn take_ordered(&mut self) -> Vec<Ino> {
        let mut files: Vec<_> = std::mem::take(&mut self.ordered).into_iter().map(|(ino, turn)| (turn, ino)).collect();
        files.sort_unstable();
        files.into_iter().map(|(_, ino)| ino).collect()
    }
}
