//! Sorts items that are slightly out of order, with bounded memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Holds a limited number of items and returns the one with the smallest key. Items with equal keys
/// keep their order. For items that arrive in order, this costs no more than a queue.
pub(crate) struct Reorder<T> {
    in_order: VecDeque<(Key, T)>,
    late: BinaryHeap<Reverse<Late<T>>>,
    capacity: usize,
    count: u64,
}

/// Time in ns, tie-break number of the caller, order of arrival.
type Key = (u64, u32, u64);

struct Late<T>(Key, T);

impl<T> PartialEq for Late<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Late<T> {}

impl<T> PartialOrd for Late<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Late<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl<T> Reorder<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { in_order: VecDeque::new(), late: BinaryHeap::new(), capacity, count: 0 }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.in_order.len() + self.late.len() >= self.capacity
    }

    #[inline]
    pub(crate) fn push(&mut self, time_ns: u64, tie: u32, item: T) {
        let key = (time_ns, tie, self.count);
        self.count += 1;
        if self.in_order.back().is_none_or(|(last, _)| *last < key) {
            self.in_order.push_back((key, item));
        } else {
            self.late.push(Reverse(Late(key, item)));
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let late_first = match (self.in_order.front(), self.late.peek()) {
            (Some((key, _)), Some(Reverse(late))) => late.0 < *key,
            (None, Some(_)) => true,
            _ => false,
        };
        if late_first {
            self.late.pop().map(|Reverse(Late(_, item))| item)
        } else {
            self.in_order.pop_front().map(|(_, item)| item)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reorder_sorts_items_within_its_window() {
        let mut window = Reorder::new(4);
        let mut out = Vec::new();
        for time in [1, 5, 3, 2, 4, 9, 7, 8, 6] {
            if window.is_full() {
                out.extend(window.pop());
            }
            window.push(time, 0, time);
        }
        out.extend(std::iter::from_fn(|| window.pop()));
        assert_eq!(out, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn reorder_keeps_the_order_of_equal_times() {
        let mut window = Reorder::new(10);
        for (time, item) in [(2, 'b'), (1, 'a'), (2, 'c'), (2, 'd')] {
            window.push(time, 0, item);
        }
        let out: String = std::iter::from_fn(|| window.pop()).collect();
        assert_eq!(out, "abcd");
    }
}
