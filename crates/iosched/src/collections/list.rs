//! Doubly linked list over elements of an arena. The links are in a separate array.

use std::marker::PhantomData;

use super::{Id, Kind, NIL};

/// Neighbours of an element in a list.
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

impl ListLinks {
    /// Returns the element before this element.
    pub(crate) fn prev<I: Id>(self) -> Option<I> {
        I::some(self.prev)
    }

    /// Returns the element after this element.
    pub(crate) fn next<I: Id>(self) -> Option<I> {
        I::some(self.next)
    }
}

/// List: its first and last element.
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
    /// Returns the first element.
    #[must_use]
    pub(crate) fn first(&self) -> Option<K::Id> {
        K::Id::some(self.head)
    }

    /// Returns whether the list is empty.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// Adds `id` at the front.
    #[inline]
    pub(crate) fn push_front(&mut self, nodes: &mut [ListLinks], id: K::Id) {
        let id = id.number();
        nodes[id as usize] = ListLinks { prev: NIL, next: self.head };
        if self.head == NIL {
            self.tail = id;
        } else {
            nodes[self.head as usize].prev = id;
        }
        self.head = id;
    }

    /// Returns the last element.
    #[must_use]
    pub(crate) fn last(&self) -> Option<K::Id> {
        K::Id::some(self.tail)
    }

    /// Adds `id` at the end.
    #[inline]
    pub(crate) fn push_back(&mut self, nodes: &mut [ListLinks], id: K::Id) {
        let id = id.number();
        nodes[id as usize] = ListLinks { prev: self.tail, next: NIL };
        if self.tail == NIL {
            self.head = id;
        } else {
            nodes[self.tail as usize].next = id;
        }
        self.tail = id;
    }

    /// Removes `id`, which is in this list.
    #[inline]
    pub(crate) fn remove(&mut self, nodes: &mut [ListLinks], id: K::Id) {
        let id = id.number();
        let ListLinks { prev, next } = std::mem::take(&mut nodes[id as usize]);
        if prev == NIL {
            self.head = next;
        } else {
            nodes[prev as usize].next = next;
        }
        if next == NIL {
            self.tail = prev;
        } else {
            nodes[next as usize].prev = prev;
        }
    }

    /// Inserts `id`, which is in no list, directly after `at`.
    pub(crate) fn insert_after(&mut self, nodes: &mut [ListLinks], at: K::Id, id: K::Id) {
        let (at, id) = (at.number(), id.number());
        let next = nodes[at as usize].next;
        nodes[id as usize] = ListLinks { prev: at, next };
        nodes[at as usize].next = id;
        if next == NIL {
            self.tail = id;
        } else {
            nodes[next as usize].prev = id;
        }
    }
}
