//! How a bio was issued, where that is not all the same.

use crate::context::IoPriority;

/// Which part of an I/O a bio is. Linux cuts what is longer than
/// [`RequestQueue::max_sectors`](crate::RequestQueue::max_sectors) behind io.max, hosts cut it before: they say what is
/// to count for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// The first of several. The rest comes right behind.
    First {
        /// Sectors of all parts together.
        of_sectors: u32,
    },
    /// One of the others.
    Rest,
}

/// How a bio was issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Issued {
    /// The ioprio that its process had when it issued it, if that was earlier, and it had to wait for its turn.
    /// Elevators of the single-queue layer go by what the ioprio is now.
    pub ioprio: Option<IoPriority>,
    /// Which part of an I/O it is.
    pub part: Part,
    /// Whether its request is inserted at the head: it merges with nothing, is on no plug and passes no controller, and
    /// an elevator that knows heads serves it before those that wait. Linux does so with the data of a flush sequence
    /// and with what a device gave back. Elevators of the single-queue layer see no difference.
    pub at_head: bool,
}
