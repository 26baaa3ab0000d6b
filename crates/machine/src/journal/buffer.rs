//! What a journal knows of a block.

use super::Tid;

/// What a transaction does with a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// Nothing.
    #[default]
    None,
    /// It changes it.
    Dirty,
    /// It frees it.
    Forgotten,
}

/// A block that some transaction has to do with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Buffer {
    pub(super) running: Part,
    pub(super) committing: Part,
    /// The last committed transaction whose change of it is in the log only.
    pub(super) checkpoint: Option<Tid>,
}

impl Buffer {
    /// Whether its contents may be written to their place: what is in memory is committed.
    pub(super) fn is_writable(&self) -> bool {
        self.running == Part::None && self.committing == Part::None
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_writable() && self.checkpoint.is_none()
    }
}
