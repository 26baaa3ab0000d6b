//! A doubly linked list over elements of an arena.

use std::marker::PhantomData;

use super::{Id, Kind, NIL};

/// An element's neighbours in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListLinks {
    prev: u32,
    next: u32,
}

impl Default for ListLinks {
    fn default() -> Self {
        Self { prev: NIL, next: NIL }
    }
}

/// An arena whose elements carry links of lists of kind `K`.
pub(crate) trait ListNodes<K: Kind> {
    /// The links of the element numbered `id`.
    fn links(&self, id: u32) -> ListLinks;
    /// The same, to change.
    fn links_mut(&mut self, id: u32) -> &mut ListLinks;
}

/// A list: first and last element.
#[derive(Debug)]
pub(crate) struct List<K> {
    head: u32,
    tail: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K> Default for List<K> {
    fn default() -> Self {
        Self { head: NIL, tail: NIL, kind: PhantomData }
    }
}

impl<K: Kind> List<K> {
    /// The first element.
    #[must_use]
    pub(crate) fn first(&self) -> Option<K::Id> {
        K::Id::some(self.head)
    }

    /// Whether there is none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// The element behind `id`.
    pub(crate) fn next(&self, nodes: &impl ListNodes<K>, id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes.links(id.number()).next)
    }

    /// The element before `id`.
    pub(crate) fn prev(&self, nodes: &impl ListNodes<K>, id: K::Id) -> Option<K::Id> {
        K::Id::some(nodes.links(id.number()).prev)
    }

    /// Puts `id` last.
    #[inline]
    pub(crate) fn push_back(&mut self, nodes: &mut impl ListNodes<K>, id: K::Id) {
        let id = id.number();
        *nodes.links_mut(id) = ListLinks { prev: self.tail, next: NIL };
        if self.tail == NIL {
            self.head = id;
        } else {
            nodes.links_mut(self.tail).next = id;
        }
        self.tail = id;
    }

    /// Takes `id`, which is in this list, out.
    #[inline]
    pub(crate) fn remove(&mut self, nodes: &mut impl ListNodes<K>, id: K::Id) {
        let id = id.number();
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

    /// Puts `id`, which is in no list, right behind `at`.
    pub(crate) fn insert_after(&mut self, nodes: &mut impl ListNodes<K>, at: K::Id, id: K::Id) {
        let (at, id) = (at.number(), id.number());
        let next = nodes.links(at).next;
        *nodes.links_mut(id) = ListLinks { prev: at, next };
        nodes.links_mut(at).next = id;
        if next == NIL {
            self.tail = id;
        } else {
            nodes.links_mut(next).prev = id;
        }
    }
}
