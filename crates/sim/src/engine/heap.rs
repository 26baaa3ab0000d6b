//! The events that a workload schedules while it runs.

/// Number of children of a node. Four children share one or two cache lines, and the tree is half
/// as deep as a binary tree.
const ARITY: usize = 4;

/// An event of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at_ns: u64,
    /// Number in the order of scheduling. It decides the order of events at the same time.
    sequence: u64,
    pub(super) task: u32,
    /// Kind of the event. The workload defines its values.
    pub(super) what: u32,
}

impl Event {
    #[inline]
    fn key(&self) -> (u64, u64) {
        (self.at_ns, self.sequence)
    }
}

/// A heap of events. The earliest event comes first. If several events have the same time, the
/// event that was scheduled first comes first.
///
/// Very often, a new event is also the next event: a task computes, and no other event is due
/// before the task ends. Therefore an event that is earlier than all others is kept outside the
/// heap.
#[derive(Debug, Default)]
pub(super) struct Heap {
    /// The earliest event, if it is not in the heap.
    first: Option<Event>,
    events: Vec<Event>,
    scheduled: u64,
}

impl Heap {
    /// Returns the time of the first event, or `u64::MAX` if there is none.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.first.as_ref().or(self.events.first()).map_or(u64::MAX, |event| event.at_ns)
    }

    #[inline]
    pub(super) fn push(&mut self, at_ns: u64, task: u32, what: u32) {
        let event = Event { at_ns, sequence: self.scheduled, task, what };
        self.scheduled += 1;
        if at_ns >= self.next_ns() {
            self.sift_up(event);
        } else if let Some(later) = self.first.replace(event) {
            self.sift_up(later);
        }
    }

    /// Adds an event of a task that continues. The event comes before other events at the same
    /// time. If no other event is due earlier, it becomes the next event.
    #[inline]
    pub(super) fn push_first(&mut self, at_ns: u64, task: u32, what: u32) {
        let event = Event { at_ns, sequence: self.scheduled, task, what };
        self.scheduled += 1;
        if at_ns > self.next_ns() {
            self.sift_up(event);
        } else if let Some(later) = self.first.replace(event) {
            self.sift_up(later);
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event> {
        self.first.take().or_else(|| self.pop_heap())
    }

    fn sift_up(&mut self, event: Event) {
        let mut hole = self.events.len();
        self.events.push(event);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.events[parent].key() <= event.key() {
                break;
            }
            self.events[hole] = self.events[parent];
            hole = parent;
        }
        self.events[hole] = event;
    }

    fn pop_heap(&mut self) -> Option<Event> {
        let last = self.events.pop()?;
        let Some(&first) = self.events.first() else {
            return Some(last);
        };
        let mut hole = 0;
        loop {
            let children = hole * ARITY + 1..(hole * ARITY + 1 + ARITY).min(self.events.len());
            let Some(least) = children.min_by_key(|&child| self.events[child].key()) else {
                break;
            };
            if last.key() <= self.events[least].key() {
                break;
            }
            self.events[hole] = self.events[least];
            hole = least;
        }
        self.events[hole] = last;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn continuing_task_precedes_other_tasks_at_equal_times() {
        let mut heap = Heap::default();
        (0..4).for_each(|task| heap.push(7, task, 0));
        let mut order = Vec::new();
        let mut left = [3u32, 2, 0, 1];
        while let Some(event) = heap.pop() {
            order.push(event.task);
            if let Some(fewer) = left[event.task as usize].checked_sub(1) {
                left[event.task as usize] = fewer;
                heap.push_first(7, event.task, 0);
            }
        }
        assert_eq!(order, [0, 0, 0, 0, 1, 1, 1, 2, 3, 3]);
    }

    proptest! {
        #[test]
        fn heap_orders_events_by_time_then_insertion(steps in proptest::collection::vec(proptest::option::weighted(0.6, 0u64..20), 0..200)) {
            let mut heap = Heap::default();
            let mut expected: Vec<(u64, u32)> = Vec::new();
            for (i, step) in steps.iter().enumerate() {
                match step {
                    Some(at_ns) => {
                        heap.push(*at_ns, i as u32, 0);
                        expected.push((*at_ns, i as u32));
                    }
                    None => {
                        expected.sort_unstable();
                        let next = if expected.is_empty() { None } else { Some(expected.remove(0)) };
                        prop_assert_eq!(heap.next_ns(), next.map_or(u64::MAX, |(at_ns, _)| at_ns));
                        prop_assert_eq!(heap.pop().map(|event| (event.at_ns, event.task)), next);
                    }
                }
            }
        }
    }
}
