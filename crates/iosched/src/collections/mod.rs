//! The few containers elevators are made of. All are intrusive: links stand in the element, elements in an
//! arena, and containers name them by number, so nothing is allocated while requests flow.

mod list;
mod rb_tree;

pub use list::{List, ListLinks, ListNodes};
pub use rb_tree::{RbLinks, RbNodes, RbTree};

/// No element.
pub const NIL: u32 = u32::MAX;
