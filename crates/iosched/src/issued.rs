//! Circumstances in which a bio was issued, if they matter.

use crate::context::IoPriority;

/// Position of a bio in its I/O. Linux cuts an I/O that is longer than
/// [`RequestQueue::max_sectors`](crate::RequestQueue::max_sectors) after io.max has seen it, but
/// hosts cut it before io.max sees it. From the first part, io.max learns how many sectors the
/// whole I/O has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Part {
    /// The whole I/O.
    #[default]
    Whole,
    /// The first of several parts. The other parts follow directly.
    First {
        /// Sectors of all parts together.
        of_sectors: u32,
    },
    /// A part other than the first.
    Rest,
}

/// Circumstances in which a bio was issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Issued {
    /// Ioprio that the process had when it issued the bio, if the bio had to wait before this
    /// submission. Elevators of the single-queue layer use the present ioprio.
    pub ioprio: Option<IoPriority>,
    /// Position of the bio in its I/O.
    pub part: Part,
    /// Whether the request is inserted at the head. Such a request merges with no other request and
    /// bypasses plugs and controllers. An elevator with head insertion serves it before all waiting
    /// requests. Linux inserts the data of a flush sequence and requeued requests in this way. In
    /// the single-queue layer, this field has no effect.
    pub at_head: bool,
}
