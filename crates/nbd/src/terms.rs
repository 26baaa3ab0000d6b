//! The result of the negotiation of client and server: the form of requests and replies.

/// The form of replies; with [`ReplyForm::Extended`] also that of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReplyForm {
    /// An error number and a read's data.
    #[default]
    Simple,
    /// Chunks: pieces of data, extents, errors with a message.
    Structured,
    /// Only chunks, with 64-bit lengths. Requests have 64-bit lengths, too.
    Extended,
}

/// The negotiated form of requests and replies, without the export.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Terms {
    /// The form of replies.
    pub form: ReplyForm,
    /// The client may send [`RequestKind::BlockStatus`](crate::RequestKind::BlockStatus).
    pub block_status: bool,
}

impl Terms {
    /// Terms with replies of this form, without block status.
    #[must_use]
    pub const fn new(form: ReplyForm) -> Self {
        Self { form, block_status: false }
    }

    /// The same terms with block status.
    #[must_use]
    pub const fn with_block_status(self) -> Self {
        Self { block_status: true, ..self }
    }

    /// Whether replies come in chunks.
    #[must_use]
    pub const fn has_chunks(self) -> bool {
        !matches!(self.form, ReplyForm::Simple)
    }
}
