//! A doubly linked list over elements of an arena.

use super::NIL;

/// An element's neighbours in a list.
#[derive(Clone, Copy, Debug)]
pub struct ListLinks {
    prev: u32,
    next: u32,
}

impl Default for ListLinks {
    fn default() -> Self {
        Self { prev: NIL, next: NIL }
    }
}

/// An arena whose elements carry links of one list.
pub trait ListNodes {
    /// The links of element `id`.
    fn links(&self, id: u32) -> ListLinks;
    /// The same, to change.
    fn links_mut(&mut self, id: u32) -> &mut ListLinks;
}

/// A list: first and last element.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    tail: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NIL, tail: NIL }
    }
}

impl List {
    /// The first element.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        some(self.head)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// The element behind `id`.
    pub fn next(&self, nodes: &impl ListNodes, id: u32) -> Option<u32> {
        some(nodes.links(id).next)
    }

    /// The element before `id`.
    pub fn prev(&self, nodes: &impl ListNodes, id: u32) -> Option<u32> {
        some(nodes.links(id).prev)
    }

    /// Puts `id` last.
    #[inline]
    pub fn push_back(&mut self, nodes: &mut impl ListNodes, id: u32) {
        *nodes.links_mut(id) = ListLinks { prev: self.tail, next: NIL };
        if self.tail == NIL {
            self.head = id;
        } else {
            nodes.links_mut(self.tail).next = id;
        }
        self.tail = id;
    }

    /// Puts `id` first.
    #[inline]
    pub fn push_front(&mut self, nodes: &mut impl ListNodes, id: u32) {
        *nodes.links_mut(id) = ListLinks { prev: NIL, next: self.head };
        if self.head == NIL {
            self.tail = id;
        } else {
            nodes.links_mut(self.head).prev = id;
        }
        self.head = id;
    }

    /// Takes `id`, which is in this list, out.
    #[inline]
    pub fn remove(&mut self, nodes: &mut impl ListNodes, id: u32) {
        let ListLinks { prev, next } = nodes.links(id);
        if prev == NIL {
            self.head = next;
        } else {
            nodes.links_mut(prev).next = next;
        }
        if next == NIL {
            self.tail = prev;
        } else {
            nodes.links_mut(next).prev = prev;
        }
        *nodes.links_mut(id) = ListLinks::default();
    }

    /// Puts `new` where `old` stands and takes `old` out; `new` is in no list.
    pub fn replace(&mut self, nodes: &mut impl ListNodes, old: u32, new: u32) {
        let ListLinks { prev, next } = nodes.links(old);
        *nodes.links_mut(new) = ListLinks { prev, next };
        *nodes.links_mut(old) = ListLinks::default();
        if prev == NIL {
            self.head = new;
        } else {
            nodes.links_mut(prev).next = new;
        }
        if next == NIL {
            self.tail = new;
        } else {
            nodes.links_mut(next).prev = new;
        }
    }
}

fn some(id: u32) -> Option<u32> {
    (id != NIL).then_some(id)
}
