//! The journal's record of a block.

use super::Tid;

/// Role of a block in a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// Not involved.
    #[default]
    None,
    /// The transaction changes the block.
    Dirty,
    /// The transaction frees the block.
    Forgotten,
}

/// A block of at least one transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Buffer {
    pub(super) running: Part,
    pub(super) committing: Part,
    /// The last committed transaction that changed the block, if this change is only in the log.
    pub(super) checkpoint: Option<Tid>,
}

impl Buffer {
    /// Returns whether the block may be written to its place, because its contents in memory are
    /// committed.
    pub(super) fn is_writable(&self) -> bool {
        self.running == Part::None && self.committing == Part::None
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_writable() && self.checkpoint.is_none()
    }
}
