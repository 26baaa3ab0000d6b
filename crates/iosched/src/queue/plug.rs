//! Plugs: a task's requests collect before they meet the elevator.

use std::collections::VecDeque;

use crate::context::ContextId;
use crate::kernel::KernelVersion;
use crate::request::{RequestId, Requests};

/// Requests a plug holds at most.
pub(super) const PLUG_MAX: usize = 16;

/// Which of the requests on a plug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OnPlug {
    /// The first of all.
    Oldest,
    /// The last of all.
    Newest,
    /// Every one, the newest first.
    Each,
}

/// What plugs of the multi-queue layer do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlugRules {
    /// Requests that a plug holds at most.
    pub(super) most: usize,
    /// The request that a bio is offered to.
    pub(super) merging: OnPlug,
    /// The request that ends the plug when it is long.
    pub(super) long: OnPlug,
    /// Whether the newest request goes to the elevator first.
    pub(super) reversed: bool,
}

impl PlugRules {
    /// Those of a version of Linux.
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

/// The requests one task has collected.
#[derive(Debug, Default)]
struct Plug {
    open: bool,
    /// Oldest first while collecting; once `flushing`, by sector.
    requests: VecDeque<RequestId>,
    flushing: bool,
}

/// The plugs of all tasks of one queue.
#[derive(Debug, Default)]
pub(super) struct Plugs {
    table: Vec<Plug>,
}

impl Plugs {
    /// From now on requests of `context` collect.
    pub(super) fn open(&mut self, context: ContextId) {
        if self.table.len() <= context.index() {
            self.table.resize_with(context.index() + 1, Plug::default);
        }
        self.table[context.index()].open = true;
    }

    /// From now on they do not.
    pub(super) fn close(&mut self, context: ContextId) {
        if let Some(plug) = self.table.get_mut(context.index()) {
            plug.open = false;
        }
    }

    #[inline]
    pub(super) fn is_open(&self, context: ContextId) -> bool {
        self.table.get(context.index()).is_some_and(|plug| plug.open)
    }

    /// Adds a request of `context`; says whether the plug is full now.
    pub(super) fn push(&mut self, context: ContextId, id: RequestId) -> bool {
        let plug = &mut self.table[context.index()];
        debug_assert!(!plug.flushing);
        plug.requests.push_back(id);
        plug.requests.len() >= PLUG_MAX
    }

    /// What `context` has collected, newest first.
    pub(super) fn newest_first(&self, context: ContextId) -> impl Iterator<Item = RequestId> {
        self.table.get(context.index()).into_iter().flat_map(|plug| plug.requests.iter().rev().copied())
    }

    /// How many requests `context` has collected.
    pub(super) fn len(&self, context: ContextId) -> usize {
        self.table.get(context.index()).map_or(0, |plug| plug.requests.len())
    }

    /// The first that `context` has collected.
    pub(super) fn oldest(&self, context: ContextId) -> Option<RequestId> {
        self.table.get(context.index()).and_then(|plug| plug.requests.front().copied())
    }

    /// The last that `context` has collected.
    pub(super) fn newest(&self, context: ContextId) -> Option<RequestId> {
        self.table.get(context.index()).and_then(|plug| plug.requests.back().copied())
    }

    /// Takes out all, oldest first. The emptied list is to be [put back](Self::put_back): it has the memory.
    pub(super) fn take(&mut self, context: ContextId) -> VecDeque<RequestId> {
        self.table.get_mut(context.index()).map_or_else(VecDeque::new, |plug| std::mem::take(&mut plug.requests))
    }

    /// Keeps the memory of a list that was taken.
    pub(super) fn put_back(&mut self, context: ContextId, emptied: VecDeque<RequestId>) {
        debug_assert!(emptied.is_empty());
        if let Some(plug) = self.table.get_mut(context.index()) {
            plug.requests = emptied;
        }
    }

    /// Takes out what goes to the elevator next: in sector order, equal sectors as they came.
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

    /// The tasks that have something on their plugs.
    pub(super) fn contexts(&self) -> Vec<ContextId> {
        let held = self.table.iter().enumerate().filter(|(_, plug)| !plug.requests.is_empty());
        held.map(|(i, _)| ContextId(i as u32)).collect()
    }
}
