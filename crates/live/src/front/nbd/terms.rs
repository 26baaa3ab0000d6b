//! What client and server agreed on in the handshake: how requests and replies of the connection look.

/// How replies look, and with [`ReplyForm::Extended`] requests, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReplyForm {
    /// An error number and a read's data.
    #[default]
    Simple,
    /// Chunks: pieces of data, extents, errors with a message.
    Structured,
    /// Chunks throughout, with 64-bit lengths, as requests have them.
    Extended,
}

/// What client and server agreed on, apart from the export.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    /// How replies look.
    pub form: ReplyForm,
    /// The client may ask which parts of the export are allocated.
    pub block_status: bool,
}

impl Terms {
    /// Whether replies come in chunks.
    #[must_use]
    pub const fn has_chunks(self) -> bool {
        !matches!(self.form, ReplyForm::Simple)
    }
}
