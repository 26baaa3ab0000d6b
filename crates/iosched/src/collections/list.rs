//! A doubly linked list over elements of an arena, whose links stand in an array of their own.

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

impl ListLinks {
    /// The element before this one.
    pub(crate) fn prev<I: Id>(self) -> Option<I> {
        I::some(self.prev)
    }

    /// The element behind this one.
    pub(crate) fn next<I: Id>(self) -> Option<I> {
        I::some(self.next)
    }
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

    /// Puts `id` first.
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

    /// The last element.
    #[must_use]
    pub(crate) fn last(&self) -> Option<K::Id> {
        K::Id::some(self.tail)
    }

    /// Puts `id` last.
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

    /// Takes `id`, which is in this list, out.
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

    /// Puts `id`, which is in no list, right behind `at`.
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
