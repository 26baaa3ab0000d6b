//! Circumstances in which a bio was issued, if they matter.

use crate::context::IoPriority;

/// Part of an I/O that a bio is. Linux cuts I/O that is longer than
/// [`RequestQueue::max_sectors`](crate::RequestQueue::max_sectors) after io.max; hosts cut it
/// before. The part tells io.max how many sectors the whole I/O has.
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
    /// Ioprio of the process when it issued the bio, if that was earlier because the bio had to
    /// wait. Elevators of the single-queue layer use the present ioprio.
    pub ioprio: Option<IoPriority>,
    /// Part of an I/O that the bio is.
    pub part: Part,
    /// Whether the request is inserted at the head. It then merges with nothing and bypasses plugs
    /// and controllers. An elevator with head insertion serves it before all waiting requests.
    /// Linux inserts the data of a flush sequence and requeued requests in this way. Elevators of
    /// the single-queue layer make no difference.
    pub at_head: bool,
}
