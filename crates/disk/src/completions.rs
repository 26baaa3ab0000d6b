//! Commands with a known completion time, in the order of completion.

use std::collections::VecDeque;

use iosched::Time;

/// Known completions. They are added nearly in order, so a new completion moves past only a few
/// others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Completions {
    /// Time, number of the submission, tag.
    queue: VecDeque<(Time, u64, u32)>,
}

impl Completions {
    pub(crate) fn new(depth: u32) -> Self {
        Self { queue: VecDeque::with_capacity(depth as usize) }
    }

    #[inline]
    pub(crate) fn push(&mut self, at: Time, sequence: u64, tag: u32) {
        let new = (at, sequence, tag);
        self.queue.push_back(new);
        let mut i = self.queue.len() - 1;
        while i > 0 && self.queue[i - 1] > new {
            self.queue.swap(i - 1, i);
            i -= 1;
        }
    }

    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        self.queue.front().map(|&(at, ..)| at)
    }

    /// Removes and returns the tag of the next completion that is due at `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Time) -> Option<u32> {
        if self.next()? > now {
            return None;
        }
        self.queue.pop_front().map(|(.., tag)| tag)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}
