//! Plugs: lists that collect a task's requests before the elevator gets them.

use std::collections::VecDeque;

use crate::context::ContextId;
use crate::kernel::KernelVersion;
use crate::request::{RequestId, Requests};

/// Largest number of requests on a plug.
pub(super) const PLUG_MAX: usize = 16;

/// Selection of requests on a plug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OnPlug {
    /// The oldest request.
    Oldest,
    /// The newest request.
    Newest,
    /// Every request, the newest first.
    Each,
}

/// Rules for plugs of the multi-queue layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlugRules {
    /// Largest number of requests on a plug.
    pub(super) most: usize,
    /// Requests that a bio may join.
    pub(super) merging: OnPlug,
    /// Request that is checked for its length: if the request is long, the plug ends.
    pub(super) long: OnPlug,
    /// Whether the elevator gets the newest request first.
    pub(super) reversed: bool,
}

impl PlugRules {
    /// Returns the rules of a version of Linux.
    pub(super) fn of(kernel: KernelVersion) -> Self {
        let is_single_ended = kernel.is_since(5, 16);
        let tests_oldest = kernel.has((6, 13), &[(6, 12, 25)]);
        let merges_newest = !tests_oldest || kernel.has((6, 16), &[(6, 12, 35)]);
        Self {
            most: if is_single_ended { 32 } else { 16 },
            merging: match (is_single_ended, merges_newest) {
                (false, _) => OnPlug::Each,
                (true, true) => OnPlug::Newest,
                (true, false) => OnPlug::Oldest,
            },
            long: if tests_oldest { OnPlug::Oldest } else { OnPlug::Newest },
            reversed: kernel.is_since(5, 18) && !kernel.has((6, 3), &[(6, 1, 21)]),
        }
    }
}

/// Requests that one task has collected.
#[derive(Debug, Default)]
struct Plug {
    open: bool,
    /// Oldest first while collecting; by sector when `flushing`.
    requests: VecDeque<RequestId>,
    flushing: bool,
}

/// Plugs of all tasks of one queue.
#[derive(Debug, Default)]
pub(super) struct Plugs {
    table: Vec<Plug>,
}

impl Plugs {
    /// Opens the plug of `context`.
    pub(super) fn open(&mut self, context: ContextId) {
        if self.table.len() <= context.index() {
            self.table.resize_with(context.index() + 1, Plug::default);
        }
        self.table[context.index()].open = true;
    }

    /// Closes the plug of `context`.
    pub(super) fn close(&mut self, context: ContextId) {
        if let Some(plug) = self.table.get_mut(context.index()) {
            plug.open = false;
        }
    }

    #[inline]
    pub(super) fn is_open(&self, context: ContextId) -> bool {
        self.table.get(context.index()).is_some_and(|plug| plug.open)
    }

    /// Adds a request of `context`. Returns whether the plug is now full.
    pub(super) fn push(&mut self, context: ContextId, id: RequestId) -> bool {
        let plug = &mut self.table[context.index()];
        debug_assert!(!plug.flushing);
        plug.requests.push_back(id);
        plug.requests.len() >= PLUG_MAX
    }

    /// Returns the requests on the plug of `context`, newest first.
    pub(super) fn newest_first(&self, context: ContextId) -> impl Iterator<Item = RequestId> {
        self.table.get(context.index()).into_iter().flat_map(|plug| plug.requests.iter().rev().copied())
    }

    /// Returns the number of requests on the plug of `context`.
    pub(super) fn len(&self, context: ContextId) -> usize {
        self.table.get(context.index()).map_or(0, |plug| plug.requests.len())
    }

    /// Returns the oldest request on the plug of `context`.
    pub(super) fn oldest(&self, context: ContextId) -> Option<RequestId> {
        self.table.get(context.index()).and_then(|plug| plug.requests.front().copied())
    }

    /// Returns the newest request on the plug of `context`.
    pub(super) fn newest(&self, context: ContextId) -> Option<RequestId> {
        self.table.get(context.index()).and_then(|plug| plug.requests.back().copied())
    }

    /// Removes all requests, oldest first. The caller empties the list and [puts it
    /// back](Self::put_back), so that its memory is reused.
    pub(super) fn take(&mut self, context: ContextId) -> VecDeque<RequestId> {
        self.table.get_mut(context.index()).map_or_else(VecDeque::new, |plug| std::mem::take(&mut plug.requests))
    }

    /// Puts an emptied list back, to keep its memory.
    pub(super) fn put_back(&mut self, context: ContextId, emptied: VecDeque<RequestId>) {
        debug_assert!(emptied.is_empty());
        if let Some(plug) = self.table.get_mut(context.index()) {
            plug.requests = emptied;
        }
    }

    /// Removes the next request for the elevator: in sector order, and
    /// for equal sectors in the order of arrival.
    pub(super) fn pop(&mut self, requests: &Requests, context: ContextId) -> Option<RequestId> {
        let plug = self.table.get_mut(context.index())?;
        if !plug.flushing {
            plug.requests.make_contiguous().sort_by_key(|&id| requests[id].sector);
            plug.flushing = true;
        }
        let next = plug.requests.pop_front();
        plug.flushing = !plug.requests.is_empty();
        next
    }

    /// Returns the tasks with requests on their plugs.
    pub(super) fn contexts(&self) -> Vec<ContextId> {
        let held = self.table.iter().enumerate().filter(|(_, plug)| !plug.requests.is_empty());
        held.map(|(i, _)| ContextId(i as u32)).collect()
    }
}
