//! The result of the negotiation between client and server: the form of requests and replies.

/// The form of replies. [`ReplyForm::Extended`] is also the form of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReplyForm {
    /// A reply is an error number, and the data of a successful read.
    #[default]
    Simple,
    /// A reply can consist of chunks: pieces of data, extents, and errors with a message.
    Structured,
    /// Every reply consists of chunks with 64-bit lengths. Requests also have 64-bit lengths.
    Extended,
}

/// The negotiated form of requests and replies, without the export.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Terms {
    /// The form of replies.
    pub form: ReplyForm,
    /// Whether the client may send [`RequestKind::BlockStatus`](crate::RequestKind::BlockStatus).
    pub block_status: bool,
}

impl Terms {
    /// Returns terms with replies of this form, without block status.
    #[must_use]
    pub const fn new(form: ReplyForm) -> Self {
        Self { form, block_status: false }
    }

    /// Returns the same terms with block status.
    #[must_use]
    pub const fn with_block_status(self) -> Self {
        Self { block_status: true, ..self }
    }

    /// Returns whether replies can consist of chunks.
    #[must_use]
    pub const fn has_chunks(self) -> bool {
        !matches!(self.form, ReplyForm::Simple)
    }
}
