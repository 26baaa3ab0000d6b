//! The few containers elevators are made of. All are intrusive: links stand in the element, elements in an
//! arena, and containers name them by number, so nothing is allocated while requests flow.

mod list;
mod rb_tree;

pub(crate) use list::{List, ListLinks};
pub(crate) use rb_tree::{NUMBERS_END, RbLinks, RbNode, RbTree};

/// No element.
pub(crate) const NIL: u32 = u32::MAX;

/// The name of an element: its number in the arena.
pub(crate) trait Id: Copy {
    /// The element numbered `number`, which is not [`NIL`].
    fn new(number: u32) -> Self;

    /// Its number.
    fn number(self) -> u32;

    /// The element numbered `number`, unless that is [`NIL`].
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

/// One use of links: an element that can be in several containers at once has links of several kinds.
pub(crate) trait Kind {
    /// What its elements are called.
    type Id: Id;
}
