//! Containers for elevators. All are intrusive: elements are in an arena and have links, and
//! containers refer to elements by index. No memory is allocated while requests are processed.

mod list;
mod rb_tree;

pub(crate) use list::{List, ListLinks};
pub(crate) use rb_tree::{NUMBERS_END, RbLinks, RbNode, RbTree};

/// Number that stands for no element.
pub(crate) const NIL: u32 = u32::MAX;

/// Id of an element: its number in the arena.
pub(crate) trait Id: Copy {
    /// Returns the id for `number`, which must not be [`NIL`].
    fn new(number: u32) -> Self;

    /// Returns the number of the element.
    fn number(self) -> u32;

    /// Returns the id for `number`, or `None` for [`NIL`].
    #[inline]
    fn some(number: u32) -> Option<Self> {
        (number != NIL).then(|| Self::new(number))
    }
}

impl Id for u32 {
    fn new(number: u32) -> Self {
        number
    }

    fn number(self) -> u32 {
        self
    }
}

/// Kind of links. An element that can be in several containers at the same time has links of
/// several kinds.
pub(crate) trait Kind {
    /// Type of the elements' ids.
    type Id: Id;
}
